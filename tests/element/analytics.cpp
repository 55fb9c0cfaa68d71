// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests regions from metas of GStreamer's analytics library: upright and rotated detections, and segmentation masks.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "regions.h"
#include "support.h"

#ifndef CUDACONV_ANALYTICS

int main() {
  fprintf(stderr, "SKIP: built without gstreamer-analytics-1.0, version 1.24\n");
  return 77;
}

#else

#include <gst/analytics/analytics.h>

#include <cmath>
#include <functional>
#include <vector>

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr int kWidth = 96, kHeight = 64;

const GstVideoInfo &gray() {
  static const GstVideoInfo info = video_info("GRAY8", kWidth, kHeight);
  return info;
}

GstAnalyticsRelationMeta *relations_of(GstBuffer *buffer) {
  GstAnalyticsRelationMeta *meta = gst_buffer_get_analytics_relation_meta(buffer);
  return meta ? meta : gst_buffer_add_analytics_relation_meta(buffer);
}

guint add_detection(GstBuffer *buffer, const char *label, const Region &r) {
  GstAnalyticsRelationMeta *meta = relations_of(buffer);
  const GQuark type = label ? g_quark_from_string(label) : 0;
  GstAnalyticsODMtd mtd;
#ifdef CUDACONV_ANALYTICS_ORIENTED
  fail_unless(gst_analytics_relation_meta_add_oriented_od_mtd(meta, type, r.x, r.y, r.width, r.height,
                                                              static_cast<gfloat>(r.rotation), 0.9f, &mtd));
#else
  fail_unless(gst_analytics_relation_meta_add_od_mtd(meta, type, r.x, r.y, r.width, r.height, 0.9f, &mtd));
#endif
  return mtd.id;
}

// Adds classes that are related to another mtd, from it to them or the other way round.
void add_classes(GstBuffer *buffer, guint to, const std::vector<std::pair<const char *, float> > &classes,
                 bool from_classes = false) {
  GstAnalyticsRelationMeta *meta = relations_of(buffer);
  std::vector<GQuark> names;
  std::vector<gfloat> confidence;
  for (const auto &[name, level] : classes) {
    names.push_back(g_quark_from_string(name));
    confidence.push_back(level);
  }
  GstAnalyticsClsMtd mtd;
  fail_unless(gst_analytics_relation_meta_add_cls_mtd(meta, classes.size(), confidence.data(), names.data(), &mtd));
  fail_unless(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                       from_classes ? mtd.id : to, from_classes ? to : mtd.id));
}

#ifdef CUDACONV_ANALYTICS_MASKS

// A segmentation mask to attach, in one of its formats. value(x, y) gives its samples.
struct Segmentation {
  int width = 24, height = 16;
  Region box = {0, 0, kWidth, kHeight};
  const char *format = "GRAY8";
  std::function<int(int x, int y)> value;
  std::vector<std::pair<guint, const char *> > classes;  // value and name; empty: no classes

  GstBuffer *make_mask() const {
    const Placement padded = {4, 12, 8};
    const GstVideoInfo info = place(video_info(format, width, height), padded);
    GstBuffer *mask = new_placed_buffer(info, 0xee);
    GstMapInfo map;
    gst_buffer_map(mask, &map, GST_MAP_WRITE);
    for (int y = 0; y < height; y++) {
      guint8 *row = map.data + info.offset[0] + y * info.stride[0];
      for (int x = 0; x < width; x++) {
        const auto v = static_cast<guint16>(value(x, y));
        if (!strcmp(format, "GRAY8"))
          row[x] = static_cast<guint8>(v);
        else if (!strcmp(format, "GRAY16_BE"))
          GST_WRITE_UINT16_BE(row + 2 * x, v);
        else
          GST_WRITE_UINT16_LE(row + 2 * x, v);
      }
    }
    gst_buffer_unmap(mask, &map);
    return mask;
  }

  guint attach(GstBuffer *buffer) const { return attach(buffer, make_mask()); }

  guint attach(GstBuffer *buffer, GstBuffer *mask) const {
    GstAnalyticsRelationMeta *meta = relations_of(buffer);
    std::vector<guint> ids = {0};
    std::vector<GQuark> names;
    std::vector<gfloat> confidence(classes.size(), -1);
    if (!classes.empty()) ids.clear();
    for (const auto &[id, name] : classes) {
      ids.push_back(id);
      names.push_back(g_quark_from_string(name));
    }
    GstAnalyticsSegmentationMtd segmentation;
    fail_unless(gst_analytics_relation_meta_add_segmentation_mtd(
        meta, mask, GST_SEGMENTATION_TYPE_INSTANCE, ids.size(), ids.data(), box.x, box.y, static_cast<guint>(box.width),
        static_cast<guint>(box.height), &segmentation));
    if (classes.empty()) return segmentation.id;
    GstAnalyticsClsMtd cls;
    fail_unless(gst_analytics_relation_meta_add_cls_mtd(meta, classes.size(), confidence.data(), names.data(), &cls));
    fail_unless(
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, segmentation.id, cls.id));
    return segmentation.id;
  }

  // The value of the mask for the pixel at x, y; -1 outside of the box.
  int at(int x, int y) const {
    const double column = (x + 0.5 - box.x) / box.width * width, row = (y + 0.5 - box.y) / box.height * height;
    if (column < 0 || row < 0 || column >= width || row >= height) return -1;
    return value(static_cast<int>(column), static_cast<int>(row));
  }
};

// A segmentation with background (0) and three objects: 12, 7 and 31.
int three_things(int x, int y) {
  if (x >= 2 && x < 7 && y >= 1 && y < 6) return 12;
  if (x >= 10 && x < 15 && y >= 4 && y < 12 && (x + y) % 3) return 7;
  if (x >= 18 && y >= 8) return 31;
  return 0;
}
const std::vector<std::pair<guint, const char *> > kFruit = {
    {0, "background"}, {12, "strawberry"}, {7, "strawberry"}, {31, "leaf"}};

// The expected pixel: filtered, as in the source, or either.
enum class Want { Filtered, Source, Either };

void check_pixels(GstBuffer *in, GstBuffer *out, const std::string &filter,
                  const std::function<Want(int x, int y)> &wanted) {
  Harness unrestricted(filter, gray());
  const Ref<GstBuffer> copy(gst_buffer_copy(in));
  const FrameBytes source(in, gray()), all(unrestricted.filter(copy.get()).get(), gray()), got(out, gray());
  const auto at = [](const FrameBytes &f, int x, int y) { return f.view.plane[0].data[y * f.view.plane[0].pitch + x]; };
  for (int y = 0; y < kHeight; y++) {
    for (int x = 0; x < kWidth; x++) {
      const Want want = wanted(x, y);
      const bool filtered = at(got, x, y) == at(all, x, y), same = at(got, x, y) == at(source, x, y);
      if (want == Want::Filtered ? !filtered : want == Want::Source ? !same : !same && !filtered)
        fail("%d,%d is %d; the filter gives %d, the source has %d: %d", x, y, at(got, x, y), at(all, x, y),
             at(source, x, y), static_cast<int>(want));
    }
  }
}

// Filters a frame with the metas that `attach` adds, and checks each pixel. The element has the properties of `filter`
// and `properties`.
void check(const std::string &filter, const std::string &properties, const std::function<void(GstBuffer *)> &attach,
           const std::function<Want(int x, int y)> &wanted) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  attach(in.get());
  Harness h(filter + " roi-meta=true " + properties, gray());
  const Ref<GstBuffer> out = h.filter(in.get());
  check_pixels(in.get(), out.get(), filter, wanted);
  fail_unless(gst_buffer_get_analytics_relation_meta(out.get()) != nullptr);
}

void check_segmentation(const Segmentation &segmentation, const std::string &properties,
                        const std::function<bool(int value)> &is_wanted) {
  check(
      "mask=gauss5", properties, [&](GstBuffer *b) { segmentation.attach(b); },
      [&](int x, int y) {
        const int value = segmentation.at(x, y);
        return is_wanted(value) ? Want::Filtered : Want::Source;
      });
}

#endif

}  // namespace

GST_START_TEST(detections_are_regions) {
  const Region face = {3, 4, 21, 12}, plate = {40, 30, 19, 9}, nameless = {70, 5, 8, 8}, roi = {5, 40, 10, 10};
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  add_detection(in.get(), "face", face);
  add_detection(in.get(), "plate", plate);
  add_detection(in.get(), nullptr, nameless);
  add_detection(in.get(), "face", {10, 10, 0, 5});
  add_detection(in.get(), "face", {60, 56, -8, -6});
  add_detection(in.get(), "face", {-10, -10, 9, 9});
  add_detection(in.get(), "face", {90, 60, G_MAXINT, G_MAXINT});
  add_roi(in.get(), "face", 5, 40, 10, 10);
  const Region corner = {90, 60, 100, 100}, backwards = {52, 50, 8, 6};
  Harness h("mask=gauss5 roi-meta=true", gray());
  check_frame(h, in.get(), gray(), "mask=gauss5", {{face, plate, nameless, roi, corner, backwards}});
  h.set("roi-type=face");
  check_frame(h, in.get(), gray(), "mask=gauss5", {{face, roi, corner, backwards}});
  h.set("roi-type=plate,cat roi-grow=1");
  check_frame(h, in.get(), gray(), "mask=gauss5", {{{21, 21, 57, 27}}});
  h.set("roi-type=cat");
  check_frame(h, in.get(), gray(), "mask=gauss5", {});
  h.set("roi-type=!face roi-grow=0");
  check_frame(h, in.get(), gray(), "mask=gauss5", {{plate, nameless}});
}
GST_END_TEST;

// The most probable of the classes that are related to a detection is a label of it.
GST_START_TEST(detections_have_the_labels_of_their_classes) {
  const Region a = {3, 4, 21, 12}, b = {40, 30, 19, 9}, c = {70, 5, 8, 8};
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  add_classes(in.get(), add_detection(in.get(), "animal", a), {{"dog", 0.2f}, {"cat", 0.7f}});
  add_classes(in.get(), add_detection(in.get(), nullptr, b), {{"dog\r", 0.9f}}, true);
  add_detection(in.get(), "animal", c);
  Harness h("mask=gauss5 roi-meta=true", gray());
  const struct {
    const char *types;
    std::vector<Region> wanted;
  } cases[] = {{"", {a, b, c}}, {"cat", {a}}, {"dog", {b}}, {"animal", {a, c}}, {"!cat", {b, c}}, {"dog,!animal", {b}}};
  for (const auto &one : cases) {
    h.set(std::string("roi-type='") + one.types + "'");
    check_frame(h, in.get(), gray(), "mask=gauss5", {one.wanted});
  }
  // Classes of the whole picture mark nothing.
  const Ref<GstBuffer> classified = random_frame(gray(), random);
  GstAnalyticsClsMtd mtd;
  fail_unless(gst_analytics_relation_meta_add_one_cls_mtd(relations_of(classified.get()), 0.9f,
                                                          g_quark_from_string("street"), &mtd));
  check_frame(h, classified.get(), gray(), "mask=gauss5", {});
}
GST_END_TEST;

// A frame of gray() whose picture is the rectangle of 50x40 at 20,10.
Ref<GstBuffer> cropped_frame(Random &random) {
  Ref<GstBuffer> frame = random_frame(gray(), random);
  gsize offset[GST_VIDEO_MAX_PLANES] = {};
  gint stride[GST_VIDEO_MAX_PLANES] = {GST_VIDEO_INFO_PLANE_STRIDE(&gray(), 0)};
  gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, kWidth, kHeight, 1,
                                 offset, stride);
  GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(frame.get());
  crop->x = 20;
  crop->y = 10;
  crop->width = 50;
  crop->height = 40;
  return frame;
}

// A detection counts from the corner of the whole frame, and the output has it where it is in the output.
GST_START_TEST(detections_of_cropped_frames) {
  Random random = seeded();
  const GstVideoInfo part = video_info("GRAY8", 50, 40);
  const Ref<GstBuffer> in = cropped_frame(random);
  add_detection(in.get(), "face", {30, 25, 21, 12});
  add_detection(in.get(), "face", {15, 5, 12, 9});
  const Ref<GstBuffer> copy(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&part), nullptr));
  const FrameBytes all(in.get(), gray());
  for (int y = 0; y < 40; y++)
    gst_buffer_fill(copy.get(), static_cast<gsize>(y) * GST_VIDEO_INFO_PLANE_STRIDE(&part, 0),
                    all.view.plane[0].data + (y + 10) * all.view.plane[0].pitch + 20, 50);
  const std::vector<Region> moved = {{10, 15, 21, 12}, {-5, -5, 12, 9}};
  Harness h("mask=fill roi-meta=true", part), next("mask=fill roi-meta=true", part), plain("mask=fill", part);
  const Ref<GstBuffer> out = h.filter(in.get());
  check_layers(copy.get(), out.get(), part, {{"mask=fill", {moved}}});
  // A second element reads what the first has passed on.
  gst_buffer_memset(out.get(), 0, 77, GST_VIDEO_INFO_SIZE(&part));
  const Ref<GstBuffer> unfiltered(gst_buffer_copy_deep(out.get()));
  // Each counts once, although the first element has added a meta of another kind for it.
  Harness hold("hold=0 roi-meta=true roi-type=none");
  hold.set_caps(part);
  fail_unless_equals_int(gst_harness_push(hold.get(), gst_buffer_ref(out.get())), GST_FLOW_OK);
  hold.pull();
  check_layers(unfiltered.get(), next.filter(out.get()).get(), part, {{"mask=fill", {moved}}});
  for (const Harness *h : {&hold, &next}) fail_unless_equals_uint64(stat(*h, "regions"), 2);
}
GST_END_TEST;

// The classes of detections select them behind an element that has cropped them, too.
GST_START_TEST(detections_of_cropped_frames_keep_their_classes) {
  Random random = seeded();
  const GstVideoInfo part = video_info("GRAY8", 50, 40);
  for (const char *properties : {"", " hold=1000000000"}) {
    Harness between(std::string("roi-meta=true roi-type=none") + properties),
        next("mask=fill roi-meta=true roi-type=face");
    for (Harness *h : {&between, &next}) h->set_caps(part);
    const Ref<GstBuffer> in = cropped_frame(random);
    add_classes(in.get(), add_detection(in.get(), "object", {30, 25, 21, 12}), {{"face", 0.9f}});
    add_detection(in.get(), "object", {50, 12, 9, 9});
    fail_unless_equals_int(gst_harness_push(between.get(), gst_buffer_ref(in.get())), GST_FLOW_OK);
    const Ref<GstBuffer> out = between.pull(), source(gst_buffer_copy_deep(out.get()));
    check_layers(source.get(), next.filter(out.get()).get(), part, {{"mask=fill", {{{10, 15, 21, 12}}}}});
    fail_unless_equals_uint64(stat(next, "regions"), 1);
  }
}
GST_END_TEST;

// A detector behind a roihold adds to the meta of the first one, or attaches one where that has found nothing. Where
// the picture is a crop rectangle, its detections still count behind an element that has filtered none of them, and
// count once.
void check_later_detections(bool is_alone) {
  const GstVideoInfo part = video_info("GRAY8", 50, 40);
  Random random = seeded();
  const Ref<GstBuffer> in = cropped_frame(random);
  if (!is_alone) {
    add_detection(in.get(), "face", {30, 25, 21, 12});
    add_detection(in.get(), "dog", {25, 15, 9, 9});
  }
  Harness hold(new_bin("roihold types=face ! identity")), between("roi-meta=true roi-type=none"),
      next("mask=fill roi-meta=true");
  for (Harness *h : {&hold, &between, &next}) h->set_caps(part);
  fail_unless_equals_int(gst_harness_push(hold.get(), gst_buffer_ref(in.get())), GST_FLOW_OK);
  const Ref<GstBuffer> held(gst_buffer_make_writable(hold.pull().release()));
  add_detection(held.get(), "plate", {45, 40, 8, 6});
  const Ref<GstBuffer> plain = between.filter(held.get());
  for (const char *type : {"plate", "face", "dog"}) {
    if (is_alone && strcmp(type, "plate") != 0) break;
    int metas = 0;
    gpointer state = nullptr;
    while (const GstMeta *meta =
               gst_buffer_iterate_meta_filtered(plain.get(), &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
      metas += reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta)->roi_type == g_quark_from_string(type);
    fail_unless(metas == 1, "%d regions of type %s", metas, type);
  }
  const Ref<GstBuffer> source(gst_buffer_copy_deep(plain.get()));
  const Ref<GstBuffer> out = next.filter(plain.get());
  guint64 regions = 0;
  fail_unless(gst_structure_get_uint64(stats_of(next.element()).get(), "regions", &regions));
  fail_unless_equals_int(regions, is_alone ? 1 : 2);
  std::vector<Region> hidden = {{25, 30, 8, 6}};
  if (!is_alone) hidden.push_back({10, 15, 21, 12});
  check_layers(source.get(), out.get(), part, {{"mask=fill", {hidden}}});
}

GST_START_TEST(later_detections_of_cropped_frames) {
  for (const bool is_alone : {false, true}) check_later_detections(is_alone);
}
GST_END_TEST;

#ifdef CUDACONV_ANALYTICS_MASKS
// An analytics meta that cannot be read marks all of the output, too.
GST_START_TEST(masks_of_cropped_frames) {
  static const GstAnalyticsMtdImpl unknown = {"hologram", nullptr, nullptr, {}};
  const GstVideoInfo part = video_info("GRAY8", 50, 40);
  Segmentation segmentation;
  segmentation.box = {10, 8, 48, 32};  // two pixels by two for each sample
  segmentation.value = [](int x, int y) { return x >= 6 && x < 14 && y >= 3 && y < 9; };
  for (const bool beside : {false, true}) {
    Random random = seeded();
    const Ref<GstBuffer> in = random_frame(gray(), random, kScattered);
    GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(in.get());
    crop->x = 20;
    crop->y = 10;
    crop->width = 50;
    crop->height = 40;
    segmentation.attach(in.get());
    GstAnalyticsMtd mtd;
    if (beside) fail_unless(gst_analytics_relation_meta_add_mtd(relations_of(in.get()), &unknown, 4, &mtd) != nullptr);
    Harness between("roi-meta=true roi-type=car", part), next("mask=fill roi-meta=true", part);
    const Ref<GstBuffer> out = between.filter(in.get());
    gst_buffer_memset(out.get(), 0, 77, GST_VIDEO_INFO_SIZE(&part));
    const Ref<GstBuffer> unfiltered(gst_buffer_copy_deep(out.get()));
    const std::vector<Region> hidden = {beside ? Region{0, 0, 50, 40} : Region{2, 4, 16, 12}};
    check_layers(unfiltered.get(), next.filter(out.get()).get(), part, {{"mask=fill", {hidden}}});
    if (beside)
      for (Harness *h : {&between, &next}) h->take(GST_MESSAGE_WARNING);
  }
  // A mask beside the crop rectangle does not take the place of its detection.
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random, kScattered);
  GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(in.get());
  crop->x = 38;
  crop->y = 10;
  crop->width = 50;
  crop->height = 40;
  const guint person = add_detection(in.get(), "person", segmentation.box), mask = segmentation.attach(in.get());
  fail_unless(
      gst_analytics_relation_meta_set_relation(relations_of(in.get()), GST_ANALYTICS_REL_TYPE_RELATE_TO, mask, person));
  const Ref<GstBuffer> unfiltered = Harness("roi-meta=true roi-type=car", part).filter(in.get());
  const Ref<GstBuffer> out = Harness("mask=fill roi-meta=true", part).filter(in.get());
  check_layers(unfiltered.get(), out.get(), part, {{"mask=fill", {{{0, 0, 20, 30}}}}});
}
GST_END_TEST;
#endif

// Changes the samples of the pixels in a rectangle of I420, chroma too.
void change_samples(GstBuffer *frame, const GstVideoInfo &info, const Region &r) {
  GstVideoFrame map;
  fail_unless(gst_video_frame_map(&map, &info, frame, GST_MAP_READWRITE));
  for (guint c = 0; c < 3; c++)
    for (int y = r.y; y < r.y + r.height; y++)
      for (int x = r.x; x < r.x + r.width; x++)
        static_cast<uint8_t *>(GST_VIDEO_FRAME_COMP_DATA(
            &map, c))[(y >> (c > 0)) * GST_VIDEO_FRAME_COMP_STRIDE(&map, c) + (x >> (c > 0))] ^= 85;
  gst_video_frame_unmap(&map);
}

// Behind an element that cuts an odd rectangle out, frames that differ in the pixels of a detection alone still give
// the same bytes.
GST_START_TEST(a_second_element_hides_chroma_at_odd_corners) {
  const GstVideoInfo whole = video_info("I420", kWidth, kHeight), part = video_info("I420", 50, 40);
  const Region mark = {30, 24, 5, 7};
  for (int i = 0; i < 4; i++) {
    Ref<GstBuffer> out[2];
    for (const bool changed : {false, true}) {
      Random random = seeded();
      const Ref<GstBuffer> in = random_frame(whole, random, kScattered);
      if (changed) change_samples(in.get(), whole, mark);
      GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(in.get());
      crop->x = 20 + i % 2;
      crop->y = 10 + i / 2;
      crop->width = 50;
      crop->height = 40;
      add_detection(in.get(), "face", mark);
      const Ref<GstBuffer> between = Harness("roi-meta=true roi-type=car", part).filter(in.get());
      out[changed] = Harness("mask=fill roi-meta=true", part).filter(between.get());
    }
    fail_unless(same_samples(out[0].get(), out[1].get(), part), "corner %d, %d", 20 + i % 2, 10 + i / 2);
  }
}
GST_END_TEST;

constexpr Region kLater = {70, 5, 8, 8};

// Detectors behind a roihold: one adds to the meta of the first one, the other attaches a meta of its own.
void detect_in_same_meta(GstBuffer *buffer) {
  add_classes(buffer, add_detection(buffer, nullptr, kLater), {{"plate", 0.9f}});
}

void detect_in_new_meta(GstBuffer *buffer) {
  GstAnalyticsODMtd mtd;
  fail_unless(gst_analytics_relation_meta_add_od_mtd(gst_buffer_add_analytics_relation_meta(buffer),
                                                     g_quark_from_string("plate"), kLater.x, kLater.y, kLater.width,
                                                     kLater.height, 0.9f, &mtd));
}

// What they find counts; what the roihold has left out does not.
GST_START_TEST(detections_behind_a_roihold_count_too) {
  using Detector = void (*)(GstBuffer *);
  const Region face = {3, 4, 21, 12}, dog = {40, 30, 19, 9};
  for (const Detector detector : {detect_in_same_meta, detect_in_new_meta}) {
    const struct {
      const char *line;
      std::vector<Region> hidden;
    } cases[] = {
        {"roihold types=face ! identity name=later", {face, kLater}},
        {"roihold types=face ! identity name=later ! queue ! roihold types=plate", {kLater}},
        {"roihold types=face ! identity name=later ! videoconvert ! roihold types=dog,plate", {dog, kLater}},
        {"identity name=later ! roihold types=face", {face}},
    };
    for (const auto &c : cases) {
      Harness h(new_bin(std::string(c.line) +
                        " ! cudaconv mask=gauss5 roi-meta=true backend=" + std::string(test_backend())));
      h.set_caps(gray());
      const Ref<GstPad> later(gst_element_get_static_pad(part_of(h.element(), "later").get(), "src"));
      const auto mark = [](GstPad *, GstPadProbeInfo *info, gpointer to) {
        GstBuffer *frame = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
        (*static_cast<const Detector *>(to))(frame);
        GST_PAD_PROBE_INFO_DATA(info) = frame;
        return GST_PAD_PROBE_OK;
      };
      gst_pad_add_probe(later.get(), GST_PAD_PROBE_TYPE_BUFFER, mark, const_cast<Detector *>(&detector), nullptr);
      Random random = seeded();
      const Ref<GstBuffer> in = random_frame(gray(), random);
      Ref<GstBuffer> marked(gst_buffer_copy_deep(in.get()));
      add_detection(marked.get(), "face", face);
      add_detection(marked.get(), "dog", dog);
      fail_unless_equals_int(gst_harness_push(h.get(), marked.release()), GST_FLOW_OK);
      const Ref<GstBuffer> out = h.pull();
      check_layers(in.get(), out.get(), gray(), {{"mask=gauss5", {c.hidden}}});
    }
  }
}
GST_END_TEST;

GST_START_TEST(upstream_is_asked_for_analytics) {
  for (const bool metas : {true, false}) {
    Harness h(metas ? "roi-meta=true" : "roi='1,1,5,5'", gray());
    const Ref<GstCaps> caps(gst_video_info_to_caps(&gray()));
    const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
    fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
    fail_unless_equals_int(gst_query_find_allocation_meta(query.get(), GST_ANALYTICS_RELATION_META_API_TYPE, nullptr),
                           metas);
  }
}
GST_END_TEST;

void add_tensors(GstBuffer *buffer) {
  const GType api = g_type_from_name("GstTensorMetaAPI");
  const GstMetaInfo *info = gst_meta_get_info("GstTensorMeta");
#ifdef CUDACONV_ANALYTICS_MASKS
  info = gst_tensor_meta_get_info();
#else
  static const gchar *tags[] = {nullptr};
  if (api == G_TYPE_INVALID)
    info = gst_meta_register(
        gst_meta_api_type_register("GstTensorMetaAPI", tags), "GstTensorMeta", sizeof(GstMeta),
        [](GstMeta *, gpointer, GstBuffer *) -> gboolean { return TRUE; }, nullptr, nullptr);
#endif
  (void)api;
  fail_unless(gst_buffer_add_meta(buffer, info, nullptr) != nullptr);
}

// Decoders attach an empty meta where they find nothing, and leave the tensors on the frame.
GST_START_TEST(a_frame_with_tensors_that_are_not_decoded_is_filtered_whole) {
  Random random = seeded();
  Harness h("mask=gauss5 roi-meta=true roi-type=face", gray());
  const Ref<GstBuffer> raw = random_frame(gray(), random), empty = random_frame(gray(), random),
                       found = random_frame(gray(), random);
  for (const Ref<GstBuffer> *frame : {&raw, &empty, &found}) add_tensors(frame->get());
  relations_of(empty.get());
  add_detection(found.get(), "face", {5, 6, 20, 10});
  for (int i = 0; i < 2; i++) check_frame(h, raw.get(), gray(), "mask=gauss5", {{{0, 0, kWidth, kHeight}}});
  fail_unless(strstr(h.take_one(GST_MESSAGE_WARNING).text.c_str(), "tensors that no element has decoded"));
  check_frame(h, empty.get(), gray(), "mask=gauss5", {});
  check_frame(h, found.get(), gray(), "mask=gauss5", {{{5, 6, 20, 10}}});
}
GST_END_TEST;

// What this build does not know may mark anything, also beside what it knows.
GST_START_TEST(a_frame_with_unknown_analytics_is_filtered_whole) {
  static const GstAnalyticsMtdImpl unknown = {"hologram", nullptr, nullptr, {}};
  Random random = seeded();
  for (const bool beside : {false, true}) {
    Harness h("mask=gauss5 roi-meta=true roi-type=face", gray());
    const Ref<GstBuffer> in = random_frame(gray(), random);
    if (beside) add_detection(in.get(), "face", {5, 6, 20, 10});
    GstAnalyticsMtd mtd;
    fail_unless(gst_analytics_relation_meta_add_mtd(relations_of(in.get()), &unknown, 4, &mtd) != nullptr);
    for (int i = 0; i < 2; i++) check_frame(h, in.get(), gray(), "mask=gauss5", {{{0, 0, kWidth, kHeight}}});
    const std::string text = h.take_one(GST_MESSAGE_WARNING).text;
    fail_unless(strstr(text.c_str(), "cannot read the analytics of type hologram"), "%s", text.c_str());
  }
}
GST_END_TEST;

// GStreamer 1.28.0 to 1.28.2 lose detections where a buffer is copied: then all of the frame is filtered. Copies that
// the elements make have them all.
GST_START_TEST(copies_with_lost_detections_are_filtered_whole) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random), marked(gst_buffer_copy_deep(in.get()));
  const Region face = {30, 25, 21, 12};
  add_detection(marked.get(), "face", face);
  const Ref<GstBuffer> copy(gst_buffer_copy(marked.get()));
  GstAnalyticsODMtd mtd;
  const bool lost = !gst_analytics_relation_meta_get_od_mtd(relations_of(copy.get()), 0, &mtd);
  Harness h("mask=gauss5 roi-meta=true", gray());
  check_frame(h, copy.get(), gray(), "mask=gauss5", {{lost ? Region{0, 0, kWidth, kHeight} : face}});
  const auto warnings = h.take(GST_MESSAGE_WARNING);
  fail_unless_equals_int(warnings.size(), lost);
  for (const auto &warning : warnings) fail_unless(strstr(warning.text.c_str(), "lose them where a buffer is copied"));
  for (const char *line : {"roihold ! identity", "roihold hold=1 ! cudaconv mask=gauss5 roi-meta=true roi-type=dog",
                           "cudaconv mask=gauss5 roi=1,1,9,9", "roihold types=dog ! identity"}) {
    Harness copies(new_bin(line));
    copies.set_caps(gray());
    fail_unless_equals_int(gst_harness_push(copies.get(), gst_buffer_ref(marked.get())), GST_FLOW_OK);
    const Ref<GstBuffer> out = copies.pull();
    fail_unless(out != marked);
    gint x, y, w, height;
    gfloat confidence;
    fail_unless(gst_analytics_relation_meta_get_od_mtd(relations_of(out.get()), 0, &mtd) &&
                    gst_analytics_od_mtd_get_location(&mtd, &x, &y, &w, &height, &confidence) &&
                    Region({x, y, w, height}) == face,
                "%s", line);
  }
}
GST_END_TEST;

// The number of an object is no region.
GST_START_TEST(tracks_mark_nothing) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  GstAnalyticsTrackingMtd mtd;
  fail_unless(gst_analytics_relation_meta_add_tracking_mtd(relations_of(in.get()), 7, 0, &mtd));
  Harness h("mask=gauss5 roi-meta=true", gray());
  check_frame(h, in.get(), gray(), "mask=gauss5", {});
}
GST_END_TEST;

// With interpolate of roihold, the detection of a tracker's object moves to the next one. Others change places.
GST_START_TEST(tracked_detections_move) {
  constexpr GstClockTime kFrame = 40 * GST_MSECOND;
  Harness h("mask=gauss5 roi-meta=true lookahead=160000000 interpolate=true", gray());
  Random random = seeded();
  std::vector<Ref<GstBuffer> > frames;
  for (int i = 0; i < 5; i++) {
    frames.push_back(random_frame(gray(), random));
    GstBuffer *const frame = frames.back().get();
    GST_BUFFER_PTS(frame) = static_cast<guint>(i) * kFrame;
    for (const bool lower : {i == 4, i == 0}) {
      if (i % 4) continue;
      const guint detection = add_detection(frame, "face", {10 + 8 * i, lower ? 40 : 10, 12, 8});
      GstAnalyticsTrackingMtd track;
      fail_unless(gst_analytics_relation_meta_add_tracking_mtd(relations_of(frame), lower ? 7 : 8, 0, &track));
      fail_unless(gst_analytics_relation_meta_set_relation(relations_of(frame), GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                           detection, track.id));
    }
    fail_unless_equals_int(h.push(frame), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < 5; i++)
    check_layers(frames[static_cast<size_t>(i)].get(), h.pull().get(), gray(),
                 {{"mask=gauss5", {{{10 + 8 * i, 40, 12, 8}, {10 + 8 * i, 10, 12, 8}}}}});
}
GST_END_TEST;

#ifdef CUDACONV_ANALYTICS_KEYPOINTS

guint add_group(GstBuffer *buffer, const char *tag, const std::vector<gint> &points) {
  GstAnalyticsGroupMtd group;
  fail_unless(gst_analytics_relation_meta_add_keypoints_group(
      relations_of(buffer), tag, GST_ANALYTICS_KEYPOINT_DIMENSIONS_2D, points.size(), points.data(), points.size() / 2,
      nullptr, nullptr, 0, nullptr, &group));
  return group.id;
}

// Half of the longer side of their box around keypoints is filtered too.
GST_START_TEST(groups_of_keypoints_are_regions) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  add_group(in.get(), "face-68-kp", {20, 20, 29, 24, 25, 22});
  const guint hand = add_group(in.get(), "hand-21-kp", {60, 40, 60, 46});
  add_classes(in.get(), hand, {{"thumb", 0.8f}});
  const Region face = {15, 15, 20, 15}, thumb = {56, 36, 9, 15};
  Harness h("mask=gauss5 roi-meta=true", gray());
  check_frame(h, in.get(), gray(), "mask=gauss5", {{face, thumb}});
  h.set("roi-type=face-68-kp");
  check_frame(h, in.get(), gray(), "mask=gauss5", {{face}});
  h.set("roi-type=thumb");
  check_frame(h, in.get(), gray(), "mask=gauss5", {{thumb}});
  // The box of the farthest keypoints has the picture in it.
  const GstVideoInfo info = gray();
  const Ref<GstBuffer> far = random_frame(info, random);
  add_group(far.get(), "thumb", {G_MININT, G_MININT, G_MAXINT, G_MAXINT});
  check_frame(h, far.get(), info, "mask=gauss5", {{{0, 0, GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info)}}});
}
GST_END_TEST;

GST_START_TEST(keypoints_without_an_extent_make_the_frame_a_region) {
  Random random = seeded();
  for (const bool grouped : {false, true}) {
    const Ref<GstBuffer> in = random_frame(gray(), random);
    GstAnalyticsKeypointMtd point;
    if (grouped)
      add_group(in.get(), "nose", {20, 20, 20, 20});
    else
      fail_unless(gst_analytics_relation_meta_add_keypoint_mtd(
          relations_of(in.get()), GST_ANALYTICS_KEYPOINT_DIMENSIONS_2D, 20, 20, 0, 0, 0.9f, &point));
    Harness h("mask=gauss5 roi-meta=true", gray());
    check_frame(h, in.get(), gray(), "mask=gauss5", {{{0, 0, kWidth, kHeight}}});
    h.take_one(GST_MESSAGE_WARNING);
  }
}
GST_END_TEST;

GST_START_TEST(semantic_tags_are_labels) {
  const Region a = {3, 4, 21, 12}, b = {40, 30, 19, 9};
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  GstAnalyticsMtd mtd = {add_detection(in.get(), nullptr, a), relations_of(in.get())};
  fail_unless(gst_analytics_mtd_set_semantic_tag(&mtd, "person"));
  add_detection(in.get(), "car", b);
  Harness h("mask=gauss5 roi-meta=true roi-type=person", gray());
  check_frame(h, in.get(), gray(), "mask=gauss5", {{a}});
  h.set("roi-type=!person");
  check_frame(h, in.get(), gray(), "mask=gauss5", {{b}});
}
GST_END_TEST;

#endif

// GStreamer 1.26 also has rotated detections and segmentation masks.
#ifdef CUDACONV_ANALYTICS_MASKS

// Detections are rotated about their centre, clockwise on the screen. Pixels at the edges may be either.
GST_START_TEST(detections_may_be_rotated) {
  for (const float turn : {0.5f, -0.5f, 1.5707964f, 2.0f, 6.0f, 100.0f}) {
    for (const bool ellipse : {false, true}) {
      for (const double grow : {0.0, 0.25}) {
        const Region r = {30, 24, 36, 14, turn};
        const auto wanted = [&](int x, int y) {
          const double dx = x + 0.5 - (r.x + r.width / 2.0), dy = y + 0.5 - (r.y + r.height / 2.0);
          const double c = std::cos(r.rotation), s = std::sin(r.rotation);
          const double along = std::fabs(dx * c + dy * s), across = std::fabs(dy * c - dx * s);
          // Growth is rounded up to whole pixels.
          const double a = r.width / 2.0 + std::ceil(grow * r.width), b = r.height / 2.0 + std::ceil(grow * r.height);
          const auto inside = [&](double more) {
            if (!ellipse) return along <= a + more && across <= b + more;
            return std::hypot(along / (a + more), across / (b + more)) <= 1;
          };
          return inside(-1) ? Want::Filtered : inside(1) ? Want::Either : Want::Source;
        };
        check(
            "mask=gauss5", std::string(ellipse ? "roi-shape=ellipse" : "") + (grow > 0 ? " roi-grow=0.25" : ""),
            [&](GstBuffer *b) { add_detection(b, "face", r); }, wanted);
      }
    }
  }
  for (const float nonsense : {NAN, INFINITY}) {
    const Region r = {30, 24, 36, 14, nonsense};
    check(
        "mask=gauss5", "", [&](GstBuffer *b) { add_detection(b, "face", r); },
        [](int x, int y) { return x >= 30 && x < 66 && y >= 24 && y < 38 ? Want::Filtered : Want::Source; });
  }
}
GST_END_TEST;

GST_START_TEST(values_of_segmentations_are_regions) {
  for (const char *format : {"GRAY8", "GRAY16_LE", "GRAY16_BE"}) {
    for (const Region &box : {Region{0, 0, kWidth, kHeight}, Region{10, 8, 48, 32}, Region{-7, 5, 61, 43},
                              Region{50, 40, 101, 77}, Region{0, 0, 24, 16}, Region{3, 3, 11, 9}}) {
      Segmentation s;
      s.format = format;
      s.box = box;
      s.value = three_things;
      check_segmentation(s, "", [](int v) { return v > 0; });
      check_segmentation(s, "roi-type=7", [](int v) { return v == 7; });
      check_segmentation(s, "roi-type=leaf", [](int) { return false; });
      s.classes = kFruit;
      check_segmentation(s, "", [](int v) { return v > 0; });
      check_segmentation(s, "roi-type=strawberry", [](int v) { return v == 12 || v == 7; });
      check_segmentation(s, "roi-type=leaf,12", [](int v) { return v == 31 || v == 12; });
      check_segmentation(s, "roi-type=background", [](int v) { return v == 0; });
      // roi-type=! excludes a value by its number or by its class. The background is not among the other values.
      check_segmentation(s, "roi-type=!leaf", [](int v) { return v == 12 || v == 7; });
      check_segmentation(s, "roi-type=!12", [](int v) { return v == 31 || v == 7; });
      check_segmentation(s, "roi-type=!strawberry", [](int v) { return v == 31; });
      check_segmentation(s, "roi-type=strawberry,!12", [](int v) { return v == 7; });
      check_segmentation(s, "roi-invert=true roi-type=leaf", [](int v) { return v != 31; });
    }
  }
}
GST_END_TEST;

// Classes decide the background: here value 31 has that name, so 0 is not background. Values without a class are
// objects.
GST_START_TEST(classes_name_the_background) {
  Segmentation s;
  s.value = three_things;
  s.classes = {{0, "wall"}, {31, "Background"}};
  check_segmentation(s, "", [](int v) { return v >= 0 && v != 31; });
}
GST_END_TEST;

// An object grows by a fraction of its shorter side in all directions, and at most one sample more.
GST_START_TEST(segmentations_grow) {
  for (const Region &box : {Region{0, 0, kWidth, kHeight}, Region{-7, 5, 61, 43}, Region{20, 10, 12, 8}}) {
    Segmentation s;
    s.box = box;
    s.value = three_things;
    // The object with value 12 has five samples in width and height.
    const double wide = box.width / 24.0, high = box.height / 16.0;
    const double distance = std::ceil(0.5 * std::min(std::ceil(5 * wide), std::ceil(5 * high)));
    check(
        "mask=gauss5", "roi-type=12 roi-grow=0.5", [&](GstBuffer *b) { s.attach(b); },
        [&](int x, int y) {
          const double left = box.x + 2 * wide, top = box.y + 1 * high;
          const auto inside = [&](double more_x, double more_y) {
            return x + 0.5 > left - more_x && x + 0.5 < left + 5 * wide + more_x && y + 0.5 > top - more_y &&
                   y + 0.5 < top + 5 * high + more_y;
          };
          const double sample = std::max(1.0, std::max(wide, high));
          return inside(distance, distance)                             ? Want::Filtered
                 : inside(distance + sample + 1, distance + sample + 1) ? Want::Either
                                                                        : Want::Source;
        });
  }
}
GST_END_TEST;

// No region is in force for a frame that has an object beside the picture alone: one that is wide grows by its height,
// and the rectangle around samples that are not whole pixels may reach into the picture.
GST_START_TEST(objects_beside_the_picture_mark_no_frame) {
  Random random = seeded();
  const struct {
    Region box;
    int first, end;  // columns of samples
    const char *settings;
  } cases[] = {{{-kWidth, 0, kWidth, kHeight}, 8, 17, "roi-grow=1"}, {{-7, 5, 61, 43}, 0, 2, ""}};
  for (const auto &c : cases) {
    Harness h(std::string("mask=gauss5 roi-meta=true unmarked=mark ") + c.settings, gray());
    const Ref<GstBuffer> in = random_frame(gray(), random);
    Segmentation s;
    s.box = c.box;
    s.value = [&](int x, int y) { return x >= c.first && x < c.end && y == 5; };
    s.attach(in.get());
    const Ref<GstBuffer> out = h.filter(in.get());
    check_pixels(in.get(), out.get(), "mask=gauss5", [](int, int) { return Want::Filtered; });
  }
  // A turned region beside the corner, so that only the rectangle around it has pixels.
  check(
      "mask=gauss5", "unmarked=mark",
      [](GstBuffer *b) {
        add_detection(b, "face", {-18, -18, 20, 20, 0.785398});
      },
      [](int, int) { return Want::Filtered; });
}
GST_END_TEST;

GST_START_TEST(segmentations_are_held) {
  for (const Region &box : {Region{0, 0, kWidth, kHeight}, Region{-7, 5, 61, 43}, Region{-7, 5, 60, 40}}) {
    Random random = seeded();
    Harness h("mask=gauss5 roi-meta=true hold=10000000000", gray());
    Segmentation s;
    s.box = box;
    // An object moves to the right and is joined with its earlier positions. If samples are not whole pixels, the
    // joined mask may be larger by a sample and a pixel.
    const double wide = box.width / 24.0, high = box.height / 16.0;
    const double x_more = wide == std::floor(wide) ? 0 : wide + 1, y_more = high == std::floor(high) ? 0 : high + 1;
    for (int i = 0; i < 40; i++) {
      const Ref<GstBuffer> in = random_frame(gray(), random);
      s.value = [&](int x, int y) { return x >= i / 2 && x < i / 2 + 3 && y >= 3 && y < 7; };
      if (i % 3 == 0) s.attach(in.get());
      const int samples = i / 3 * 3 / 2 + 3;
      const Ref<GstBuffer> out = h.filter(in.get());
      check_pixels(in.get(), out.get(), "mask=gauss5", [&](int x, int y) {
        const auto inside = [&](double across, double down) {
          return x + 0.5 >= box.x - across && x + 0.5 < box.x + samples * wide + across &&
                 y + 0.5 >= box.y + 3 * high - down && y + 0.5 < box.y + 7 * high + down;
        };
        return inside(0, 0) ? Want::Filtered : inside(x_more, y_more) ? Want::Either : Want::Source;
      });
    }
  }
}
GST_END_TEST;

// The size of an object is the size of its bounding box: value 12 has a shorter side of 20 pixels, 31 of 24.
GST_START_TEST(objects_are_filtered_by_their_size) {
  Segmentation s;
  s.value = three_things;
  for (const auto &[value, filter] : {std::make_pair(12, "mask=box size=5"), std::make_pair(31, "mask=box size=7")})
    check(
        filter, "roi-type=" + std::to_string(value) + " size=3 roi-scale=0.25", [&](GstBuffer *b) { s.attach(b); },
        [&, thing = value](int x, int y) { return s.at(x, y) == thing ? Want::Filtered : Want::Source; });
}
GST_END_TEST;

// Noise with very many values. The bounding box of each value is nearly the whole mask.
GST_START_TEST(many_values_take_bounded_time) {
  Random random = seeded();
  Segmentation s;
  s.format = "GRAY16_LE";
  s.width = 960;
  s.height = 640;
  std::vector<int> noise(static_cast<size_t>(s.width) * s.height);
  for (int &v : noise) v = static_cast<int>(random() & 0xffff);
  s.value = [&](int x, int y) { return noise[static_cast<size_t>(y) * s.width + x]; };
  const std::clock_t begin = std::clock();  // of the processor: the machine may do other work
  check_segmentation(s, "", [](int v) { return v > 0; });
  fail_unless(std::clock() - begin < 10 * CLOCKS_PER_SEC);
}
GST_END_TEST;

// The mask of a detection has its label, and takes the place of its rectangle.
GST_START_TEST(masks_of_detections_take_their_place) {
  Segmentation s;
  s.box = {10, 8, 48, 32};
  s.value = [](int x, int y) { return x > 3 && x < 20 && y > 2 && y < 13 ? 1 + x % 3 : 0; };
  for (const bool from_mask : {false, true}) {
    for (const char *types : {"", "person", "!car", "car", "!person"}) {
      const bool wanted = !strcmp(types, "") || !strcmp(types, "person") || !strcmp(types, "!car");
      check(
          "mask=gauss5", std::string("roi-type='") + types + "'",
          [&](GstBuffer *b) {
            const guint person = add_detection(b, "person", s.box);
            const guint id = s.attach(b);
            fail_unless(gst_analytics_relation_meta_set_relation(relations_of(b), GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                                 from_mask ? id : person, from_mask ? person : id));
          },
          [&](int x, int y) { return wanted && s.at(x, y) > 0 ? Want::Filtered : Want::Source; });
    }
  }
  // Counted once. A mask of nothing leaves the rectangle in force.
  Random random = seeded();
  Harness h("mask=gauss5 roi-meta=true", gray());
  for (const bool empty : {false, true}) {
    const Ref<GstBuffer> in = random_frame(gray(), random);
    Segmentation mask = s;
    if (empty) mask.value = [](int, int) { return 0; };
    const guint person = add_detection(in.get(), "person", s.box), id = mask.attach(in.get());
    fail_unless(
        gst_analytics_relation_meta_set_relation(relations_of(in.get()), GST_ANALYTICS_REL_TYPE_RELATE_TO, id, person));
    const Ref<GstBuffer> out = h.filter(in.get());
    if (empty) check_layers(in.get(), out.get(), gray(), {{"mask=gauss5", {{s.box}}}});
  }
  const Ref<GstStructure> stats = h.stats();
  const GstStructure *types = gst_value_get_structure(gst_structure_get_value(stats.get(), "regions-by-type"));
  guint64 people = 0;
  fail_unless(gst_structure_n_fields(types) == 1 && gst_structure_get_uint64(types, "person", &people) && people == 2);
}
GST_END_TEST;

// A mask of several detections is hidden where one of them is, and takes the place of those that it has pixels in.
GST_START_TEST(masks_of_several_detections) {
  const Region face = {10, 8, 20, 32}, plate = {60, 8, 12, 9};
  const auto in = [](const Region &r, int x, int y) {
    return x >= r.x && x < r.x + r.width && y >= r.y && y < r.y + r.height;
  };
  Segmentation s;
  s.box = {10, 8, 48, 32};
  s.value = [](int x, int y) { return x > 3 && x < 20 && y > 2 && y < 13; };
  s.classes = {{1, "skin"}};
  const struct {
    const char *properties;
    bool mask, face, plate;  // which are filtered
  } cases[] = {{"", true, false, true},
               {"roi-type=face", true, false, false},
               {"roi-type=plate", true, false, true},
               {"roi-type=!plate", true, false, false},
               {"roi-type=!face", true, false, true},
               {"roi-type=skin", true, false, false},
               {"roi-type=!skin", false, true, true},
               {"roi-type=car", false, false, false}};
  const auto attach = [&](GstBuffer *b) {
    const guint id = s.attach(b);
    for (const guint detection : {add_detection(b, "face", face), add_detection(b, "plate", plate)})
      fail_unless(
          gst_analytics_relation_meta_set_relation(relations_of(b), GST_ANALYTICS_REL_TYPE_CONTAIN, id, detection));
  };
  for (const auto &c : cases) {
    for (const char *hold : {"", " hold=0"}) {
      if (*hold && !strcmp(c.properties, "roi-type=!skin"))
        continue;  // the roihold knows no types: masks take the places
      check("mask=gauss5", std::string(c.properties) + hold, attach, [&](int x, int y) {
        const bool hidden = (c.mask && s.at(x, y) > 0) || (c.face && in(face, x, y)) || (c.plate && in(plate, x, y));
        return hidden ? Want::Filtered : Want::Source;
      });
    }
  }
  // What shows the face alone does not show the mask of both.
  check("mask=gauss5", "roi-type=face roi-invert=true", attach, [](int, int) { return Want::Filtered; });
  // A mask without a pixel in the picture takes no place, also where a part of its samples is there.
  const struct {
    Region mask, box;
  } outside[] = {{{10, -40, 48, 40}, {12, -30, 20, 40}},
                 {{-48, 8, 48, 32}, {-30, 12, 40, 20}},
                 {{kWidth, 8, 48, 32}, {kWidth - 10, 12, 40, 20}},
                 {{kWidth - 8, 8, 48, 32}, {kWidth - 20, 12, 40, 20}},
                 {{10, kHeight - 6, 48, 32}, {12, kHeight - 10, 20, 40}}};
  for (const auto &[mask, box] : outside) {
    s.box = mask;
    for (const char *hold : {"", "hold=0"})
      check(
          "mask=gauss5", hold,
          [&, at = box](GstBuffer *b) {
            const guint id = s.attach(b), detection = add_detection(b, "face", at);
            fail_unless(gst_analytics_relation_meta_set_relation(relations_of(b), GST_ANALYTICS_REL_TYPE_CONTAIN, id,
                                                                 detection));
          },
          [&, at = box](int x, int y) { return in(at, x, y) ? Want::Filtered : Want::Source; });
  }
  // A mask of nothing but background takes no place.
  s.box = {10, 8, 48, 32};
  s.classes = {{1, "background"}, {0, "background"}};
  check("mask=gauss5", "", attach,
        [&](int x, int y) { return in(face, x, y) || in(plate, x, y) ? Want::Filtered : Want::Source; });
}
GST_END_TEST;

// A mask of a pool of larger pictures may have rows of its own width where its GstVideoMeta has the pool's stride.
GST_START_TEST(masks_with_the_stride_of_a_larger_picture_are_not_trusted) {
  Random random = seeded();
  const Region box = {10, 8, 40, 30};
  const GstVideoInfo large = video_info("GRAY8", 160, 160);
  const Ref<GstBufferPool> pool(gst_video_buffer_pool_new());
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  const Ref<GstCaps> caps(gst_video_info_to_caps(&large));
  gst_buffer_pool_config_set_params(config, caps.get(), GST_VIDEO_INFO_SIZE(&large), 0, 0);
  gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config) && gst_buffer_pool_set_active(pool.get(), TRUE));
  GstBuffer *mask = nullptr;
  fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &mask, nullptr), GST_FLOW_OK);
  gst_buffer_memset(mask, 0, 1, 40 * 30);
  GstVideoMeta *meta = gst_buffer_get_video_meta(mask);
  meta->width = 40;
  meta->height = 30;
  {
    const Ref<GstBuffer> in = random_frame(gray(), random);
    Segmentation s;
    s.box = box;
    const guint id = s.attach(in.get(), mask);
    // Its values are not known: any type may be among them, but for the types of its detection.
    for (const char *type : {"", "face", "dog"}) {
      if (!strcmp(type, "dog"))
        fail_unless(gst_analytics_relation_meta_set_relation(relations_of(in.get()), GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                             add_detection(in.get(), "dog", box), id));
      Harness h(std::string("mask=gauss5 roi-meta=true roi-type=") + type, gray());
      for (int i = 0; i < 2; i++) check_frame(h, in.get(), gray(), "mask=gauss5", {{box}});
      h.take_one(GST_MESSAGE_WARNING);
    }
    Harness h("mask=gauss5 roi-meta=true roi-type=face", gray());
    check_frame(h, in.get(), gray(), "mask=gauss5", {});
  }
  gst_buffer_pool_set_active(pool.get(), FALSE);
}
GST_END_TEST;

GST_START_TEST(segmentations_that_cannot_be_read_are_filtered_whole) {
  Random random = seeded();
  const Region box = {10, 8, 40, 30};
  Segmentation s;
  s.box = box;
  s.value = three_things;
  GstBuffer *small = s.make_mask(), *bare = s.make_mask();
  gst_buffer_set_size(small, 300);
  const struct {
    GstBuffer *mask;
    const char *text;
  } cases[] = {{small,
                "a segmentation mask of 300 bytes is too small for its 24x16 GRAY8 of stride 36: the frame is filtered "
                "whole"},
               {bare, "a segmentation mask has no GstVideoMeta: the frame is filtered whole"}};
  for (const auto &c : cases) {
    const Ref<GstBuffer> in = random_frame(gray(), random);
    s.attach(in.get(), c.mask);
    if (c.mask == bare) gst_buffer_remove_meta(bare, gst_buffer_get_meta(bare, GST_VIDEO_META_API_TYPE));
    Harness h("mask=gauss5 roi-meta=true", gray());
    for (int i = 0; i < 2; i++) check_frame(h, in.get(), gray(), "mask=gauss5", {{{0, 0, kWidth, kHeight}}});
    assert_same_text(h.take_one(GST_MESSAGE_WARNING).text, c.text);
    // With roi-invert, all is filtered: the rectangle is not known to be harmless.
    Harness inverse("mask=gauss5 roi-meta=true roi-invert=true", gray());
    check_frame(inverse, in.get(), gray(), "mask=gauss5", {{}, false, true});
    inverse.take_one(GST_MESSAGE_WARNING);
    // The same if it becomes so while the frame waits.
    Harness waits("mask=gauss5 roi-meta=true lookahead=1", gray());
    for (const int second : {0, 1}) {
      const Ref<GstBuffer> frame(second ? random_frame(gray(), random).release() : gst_buffer_copy(in.get()));
      GST_BUFFER_PTS(frame.get()) = second * GST_SECOND;
      fail_unless_equals_int(waits.push(frame.get()), GST_FLOW_OK);
      waits.set("roi-invert=true");
    }
    check_pixels(in.get(), waits.pull().get(), "mask=gauss5", [](int, int) { return Want::Filtered; });
    waits.take_one(GST_MESSAGE_WARNING);
  }
  // A box without a pixel has no regions.
  s.box = {10, 10, 0, 5};
  check(
      "mask=gauss5", "", [&](GstBuffer *b) { s.attach(b); }, [](int, int) { return Want::Source; });
}
GST_END_TEST;

#endif

static Suite *make_suite() {
  Suite *suite = suite_create("analytics");
  TCase *tc = tcase_create("analytics");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, detections_are_regions);
  tcase_add_test(tc, detections_have_the_labels_of_their_classes);
  tcase_add_test(tc, detections_of_cropped_frames);
  tcase_add_test(tc, detections_of_cropped_frames_keep_their_classes);
  tcase_add_test(tc, later_detections_of_cropped_frames);
  tcase_add_test(tc, a_second_element_hides_chroma_at_odd_corners);
  tcase_add_test(tc, detections_behind_a_roihold_count_too);
  tcase_add_test(tc, upstream_is_asked_for_analytics);
  tcase_add_test(tc, a_frame_with_tensors_that_are_not_decoded_is_filtered_whole);
  tcase_add_test(tc, a_frame_with_unknown_analytics_is_filtered_whole);
  tcase_add_test(tc, copies_with_lost_detections_are_filtered_whole);
  tcase_add_test(tc, tracks_mark_nothing);
  tcase_add_test(tc, tracked_detections_move);
#ifdef CUDACONV_ANALYTICS_KEYPOINTS
  tcase_add_test(tc, groups_of_keypoints_are_regions);
  tcase_add_test(tc, keypoints_without_an_extent_make_the_frame_a_region);
  tcase_add_test(tc, semantic_tags_are_labels);
#endif
#ifdef CUDACONV_ANALYTICS_MASKS
  tcase_add_test(tc, masks_of_cropped_frames);
  tcase_add_test(tc, detections_may_be_rotated);
  tcase_add_test(tc, values_of_segmentations_are_regions);
  tcase_add_test(tc, classes_name_the_background);
  tcase_add_test(tc, segmentations_grow);
  tcase_add_test(tc, objects_beside_the_picture_mark_no_frame);
  tcase_add_test(tc, segmentations_are_held);
  tcase_add_test(tc, objects_are_filtered_by_their_size);
  tcase_add_test(tc, many_values_take_bounded_time);
  tcase_add_test(tc, masks_of_detections_take_their_place);
  tcase_add_test(tc, masks_of_several_detections);
  tcase_add_test(tc, masks_with_the_stride_of_a_larger_picture_are_not_trusted);
  tcase_add_test(tc, segmentations_that_cannot_be_read_are_filtered_whole);
#endif
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "analytics", make_suite, !strcmp(test_backend(), "cuda"));
}

#endif
