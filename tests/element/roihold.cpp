// SPDX-License-Identifier: LGPL-2.1-or-later
//
// roihold by itself: its properties, the metas that leave with frames, and what lies between it and the filter.
// lookahead.cpp tests the regions in force, and privacy.cpp how long they are held.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "regions.h"
#include "overlappingcall.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr GstClockTime kFrame = 40 * GST_MSECOND;
constexpr Region kFace = {8, 8, 16, 12}, kPlate = {30, 20, 9, 7};

GstVideoInfo gray(int width = 48, int height = 32) {
  GstVideoInfo info = video_info("GRAY8", width, height);
  info.fps_n = 25;
  info.fps_d = 1;
  return info;
}

Ref<GstElement> new_hold(const std::string &properties) {
  GstElement *element = gst_element_factory_make("roihold", nullptr);
  fail_unless(element != nullptr, "no element roihold: is GST_PLUGIN_PATH_1_0 set?");
  gst_object_ref_sink(element);
  const Ref<GstBus> bus(gst_bus_new());
  gst_element_set_bus(element, bus.get());
  set_properties(element, properties);
  return Ref<GstElement>(element);
}

// A roihold alone, ready for frames.
struct Alone : Harness {
  explicit Alone(const std::string &properties, const GstVideoInfo &info = gray()) : Harness(new_hold(properties)) {
    set_caps(info);
  }
};

// A bright frame with a dark dot in the middle of each region.
Ref<GstBuffer> frame_at(int number, const std::vector<std::pair<const char *, Region>> &regions,
                        const GstVideoInfo &info = gray()) {
  Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
  gst_buffer_memset(frame.get(), 0, 200, static_cast<gsize>(-1));
  GST_BUFFER_PTS(frame.get()) = number * kFrame;
  for (const auto &[type, r] : regions)
    add_roi(frame.get(), type, static_cast<guint>(r.x), static_cast<guint>(r.y), static_cast<guint>(r.width),
            static_cast<guint>(r.height));
  return frame;
}

// The metas with regions of a frame, as text.
std::string rois_of(GstBuffer *frame) {
  std::vector<std::string> all;
  gpointer state = nullptr;
  while (const GstMeta *meta =
             gst_buffer_iterate_meta_filtered(frame, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
    const auto *roi = reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta);
    const gchar *const type = g_quark_to_string(roi->roi_type);
    all.push_back(std::string(type ? type : "") + " " + std::to_string(roi->x) + "," + std::to_string(roi->y) + "," +
                  std::to_string(roi->w) + "," + std::to_string(roi->h));
  }
  std::sort(all.begin(), all.end());
  std::string text;
  for (const std::string &one : all) text += (text.empty() ? "" : "; ") + one;
  return text;
}

bool has_own_meta(GstBuffer *frame) {
  gpointer state = nullptr;
  while (const GstMeta *meta = gst_buffer_iterate_meta(frame, &state))
    if (!strcmp(g_type_name(meta->info->api), "RoiHoldMetaAPI")) return true;
  return false;
}

// Whether a pixel of a frame is black.
bool is_hidden(GstBuffer *frame, int x, int y, int width = 48) {
  guint8 value;
  gst_buffer_extract(frame, static_cast<gsize>(y) * width + x, &value, 1);
  return value == 0;
}

}  // namespace

GST_START_TEST(properties_have_their_defaults_limits_and_flags) {
  const Ref<GstElement> element = new_hold("");
  std::map<std::string, bool> known = {{"types", false},       {"hold", false},     {"lookahead", false},
                                       {"interpolate", false}, {"unmarked", false}, {"report", false},
                                       {"stats", false}};
  guint count;
  GParamSpec **specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element.get()), &count);
  for (guint i = 0; i < count; i++) {
    if (specs[i]->owner_type != G_OBJECT_TYPE(element.get())) continue;
    fail_unless(known.count(specs[i]->name), "%s is not tested", specs[i]->name);
    known[specs[i]->name] = true;
    const bool stats = !strcmp(specs[i]->name, "stats");
    fail_unless_equals_int(!!(specs[i]->flags & GST_PARAM_MUTABLE_PLAYING), !stats);
    fail_unless_equals_int(!!(specs[i]->flags & G_PARAM_WRITABLE), !stats);
    if (!G_IS_PARAM_SPEC_UINT64(specs[i])) continue;
    fail_unless(G_PARAM_SPEC_UINT64(specs[i])->minimum == 0 && G_PARAM_SPEC_UINT64(specs[i])->maximum == G_MAXUINT64);
    fail_unless_equals_uint64(G_PARAM_SPEC_UINT64(specs[i])->default_value, 0);
  }
  g_free(specs);
  for (const auto &[name, seen] : known) fail_unless(seen, "there is no property %s", name.c_str());
  set_properties(element.get(),
                 "types=face,plate hold=18446744073709551615 lookahead=7 interpolate=true unmarked=mark report=true");
  gchar *types;
  guint64 hold, lookahead;
  gint unmarked;
  gboolean interpolate, report;
  g_object_get(element.get(), "types", &types, "hold", &hold, "lookahead", &lookahead, "interpolate", &interpolate,
               "unmarked", &unmarked, "report", &report, nullptr);
  assert_same_text(types, "face,plate");
  g_free(types);
  fail_unless(hold == G_MAXUINT64 && lookahead == 7 && unmarked == 1 && interpolate && report);
}
GST_END_TEST;

// Frames leave as they came, in their memory, with the metas of others. Rectangles in force that did not come with them
// are metas too.
GST_START_TEST(frames_leave_with_what_is_in_force) {
  Alone h("types=face hold=40000000 lookahead=40000000");
  std::vector<GstMemory *> memory;
  for (int i = 0; i < 6; i++) {
    Ref<GstBuffer> frame = frame_at(i, {});
    if (i == 3) add_roi(frame.get(), "face", 8, 8, 16, 12);
    if (i == 3) add_roi(frame.get(), "dog", 1, 2, 3, 4);
    if (i == 4) add_roi(frame.get(), "face", 9, 8, 16, 12);
    memory.push_back(gst_buffer_peek_memory(frame.get(), 0));
    fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  const char *const rois[] = {"",
                              "",
                              "face 8,8,16,12",
                              "dog 1,2,3,4; face 8,8,16,12; face 9,8,16,12",
                              "face 8,8,16,12; face 9,8,16,12",
                              "face 9,8,16,12"};
  for (int i = 0; i < 6; i++) {
    const Ref<GstBuffer> out = h.pull();
    fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), i * kFrame);
    fail_unless(gst_buffer_peek_memory(out.get(), 0) == memory[i]);
    fail_unless(has_own_meta(out.get()));
    assert_same_text(rois_of(out.get()), rois[i]);
  }
}
GST_END_TEST;

// A frame that others hold too is not changed for them.
GST_START_TEST(frames_of_others_stay_as_they_are) {
  Alone h("hold=40000000");
  const Ref<GstBuffer> first = frame_at(0, {{"face", kFace}}), second = frame_at(1, {});
  for (const auto *frame : {&first, &second}) fail_unless_equals_int(h.push(frame->get()), GST_FLOW_OK);
  h.pull();
  assert_same_text(rois_of(h.pull().get()), "face 8,8,16,12");
  fail_unless(rois_of(second.get()).empty() && !has_own_meta(second.get()));
}
GST_END_TEST;

// All of a frame is a region for encoders too.
GST_START_TEST(a_whole_frame_is_a_meta) {
  Alone h("unmarked=mark");
  fail_unless_equals_int(gst_harness_push(h.get(), frame_at(0, {}).release()), GST_FLOW_OK);
  assert_same_text(rois_of(h.pull().get()), "whole-frame 0,0,48,32");
}
GST_END_TEST;

// Regions of other types that stay on a frame are not filtered. One roihold may serve several filters.
GST_START_TEST(the_filter_takes_what_is_in_force_alone) {
  for (const char *roi_type : {"", "roi-type=face", "roi-type=!face"}) {
    const bool face = strcmp(roi_type, "roi-type=!face") != 0, plate = strcmp(roi_type, "roi-type=face") != 0;
    Harness h(std::string("mask=fill roi-meta=true types=face,plate ") + roi_type, gray());
    fail_unless_equals_int(
        gst_harness_push(h.get(), frame_at(0, {{"face", kFace}, {"plate", kPlate}, {"dog", {0, 0, 4, 4}}}).release()),
        GST_FLOW_OK);
    const Ref<GstBuffer> out = h.pull();
    fail_unless_equals_int(is_hidden(out.get(), 12, 12), face);
    fail_unless_equals_int(is_hidden(out.get(), 33, 23), plate);
    fail_unless(!is_hidden(out.get(), 2, 2));
    // A second filter finds the same regions.
    Harness second("mask=fill roi-meta=true fill-color=0xff000000", gray());
    GstBuffer *again = gst_buffer_copy_deep(out.get());
    gst_buffer_memset(again, 0, 200, static_cast<gsize>(-1));
    fail_unless_equals_int(gst_harness_push(second.get(), again), GST_FLOW_OK);
    const Ref<GstBuffer> twice = second.pull();
    fail_unless(is_hidden(twice.get(), 12, 12) && is_hidden(twice.get(), 33, 23) && !is_hidden(twice.get(), 2, 2));
  }
}
GST_END_TEST;

// The counts of regions by type in `stats`, as text.
std::string types_in(const GstStructure *stats) {
  const GstStructure *const types = gst_value_get_structure(gst_structure_get_value(stats, "regions-by-type"));
  std::map<std::string, guint64> counts;
  for (int i = 0; i < gst_structure_n_fields(types); i++) {
    const gchar *const name = gst_structure_nth_field_name(types, static_cast<guint>(i));
    gst_structure_get_uint64(types, name, &counts[name]);
  }
  std::string text;
  for (const auto &[name, count] : counts) text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text;
}

// A detector behind a roihold, which marks plates.
GstPadProbeReturn mark_plate(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstBuffer *frame = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  add_roi(frame, "plate", kPlate.x, kPlate.y, kPlate.width, kPlate.height);
  GST_PAD_PROBE_INFO_DATA(info) = frame;
  return GST_PAD_PROBE_OK;
}

// Marks of a detector behind a roihold are hidden too. A later roihold selects among all regions, and counts each
// once.
GST_START_TEST(what_later_elements_mark_counts_too) {
  const std::string filter = " cudaconv mask=fill roi-meta=true backend=" + std::string(test_backend());
  const std::string copies =
      " videoconvert ! video/x-raw,format=I420 ! videoconvert ! video/x-raw,format=GRAY8 ! queue !";
  const struct {
    std::string line;
    bool face, plate, dog;  // are hidden
    const char *counts;     // of the last element with the name "last"
  } cases[] = {
      {"roihold types=face !" + filter + " ! identity name=later ! roihold types=plate name=last !" + filter, true,
       true, false, "plate 2"},
      {"roihold types=face !" + filter + " ! identity name=later ! roihold name=last !" + filter, true, true, true,
       "dog 2, face 2, plate 2"},
      {"roihold types=face ! videoscale ! video/x-raw,width=37,height=29 ! videoscale ! video/x-raw,width=48,height=32 "
       "!"
       " identity name=later ! roihold name=last !" +
           filter,
       true, true, true, "dog 2, face 2, plate 2"},
      {"roihold types=face !" + filter + " ! identity name=later ! roihold types=dog name=last !" + filter, true, false,
       true, "dog 2"},
      {"roihold types=face ! roihold types=dog ! identity name=later !" + filter + " name=last", false, true, true,
       "dog 2, plate 2"},
      {"roihold types=face ! identity name=later !" + filter + " name=last", true, true, false, "face 2, plate 2"},
      {"roihold types=face !" + copies + " identity name=later !" + copies + filter + " name=last", true, true, false,
       "face 2, plate 2"},
      {"roihold types=face ! identity name=later !" + filter + " roi-type=plate name=last", false, true, false,
       "plate 2"},
      {"roihold types=face !" + filter + " ! identity name=later !" + filter + " name=last", true, true, false,
       "face 2, plate 2"},
  };
  for (const auto &c : cases) {
    Harness h(new_bin(c.line));
    h.set_caps(gray());
    const Ref<GstPad> later(gst_element_get_static_pad(part_of(h.element(), "later").get(), "src"));
    gst_pad_add_probe(later.get(), GST_PAD_PROBE_TYPE_BUFFER, mark_plate, nullptr, nullptr);
    for (int i = 0; i < 2; i++)
      fail_unless_equals_int(gst_harness_push(h.get(), frame_at(i, {{"face", kFace}, {"dog", {0, 0, 4, 4}}}).release()),
                             GST_FLOW_OK);
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 2; i++) {
      const Ref<GstBuffer> out = h.pull();
      fail_unless(is_hidden(out.get(), 12, 12) == c.face && is_hidden(out.get(), 33, 23) == c.plate &&
                      is_hidden(out.get(), 2, 2) == c.dog,
                  "%s", c.line.c_str());
    }
    assert_same_text(types_in(stats_of(part_of(h.element(), "last").get()).get()), c.counts);
  }
}
GST_END_TEST;

// A compositor puts metas of several pictures on one frame. Marks of pictures that no roihold has seen count too.
GST_START_TEST(metas_of_other_pictures_count_too) {
  const Region face = {4, 4, 8, 8}, plate = {30, 20, 8, 8};
  for (const char *first : {"", "types=face", "types=dog hold=1"}) {
    for (const char *second : {"", "types=plate", "types=dog hold=1"}) {
      const Ref<GstBuffer> both = frame_at(0, {});
      const auto add = [&](const char *properties, const char *type, const Region &region) {
        Ref<GstBuffer> picture = frame_at(0, {{type, region}});
        Alone h(properties);
        if (*properties) {
          fail_unless_equals_int(gst_harness_push(h.get(), picture.release()), GST_FLOW_OK);
          picture = h.pull();
        }
        fail_unless(gst_buffer_copy_into(both.get(), picture.get(), GST_BUFFER_COPY_META, 0, static_cast<gsize>(-1)));
      };
      add(first, "face", face);
      add(second, "plate", plate);
      Harness filter("mask=fill roi-meta=true", gray());
      const Ref<GstBuffer> out = filter.filter(both.get());
      fail_unless(strstr(first, "dog") || is_hidden(out.get(), 6, 6), "'%s', '%s'", first, second);
      fail_unless(strstr(second, "dog") || is_hidden(out.get(), 33, 23), "'%s', '%s'", first, second);
      fail_unless(!is_hidden(out.get(), 20, 15));
    }
  }
}
GST_END_TEST;

// The frame before a detection has its region, also where it comes behind it.
GST_START_TEST(a_frame_out_of_order_has_the_regions_of_later_ones) {
  Alone h("lookahead=40000000");
  for (const int number : {0, 3, 4, 5, 2}) {
    const Ref<GstBuffer> frame = frame_at(number, {});
    if (number == 3) add_roi(frame.get(), "face", 8, 8, 16, 12);
    fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  for (const char *regions : {"", "face 8,8,16,12", "", "", "face 8,8,16,12"})
    assert_same_text(rois_of(h.pull().get()), regions);
}
GST_END_TEST;

// Drops the metas of roihold, as an element does that copies only metas that it knows.
GstPadProbeReturn forget_own_meta(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstBuffer *frame = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  gst_buffer_foreach_meta(
      frame,
      [](GstBuffer *, GstMeta **meta, gpointer) -> gboolean {
        if (!strcmp(g_type_name((*meta)->info->api), "RoiHoldMetaAPI")) *meta = nullptr;
        return TRUE;
      },
      nullptr);
  GST_PAD_PROBE_INFO_DATA(info) = frame;
  return GST_PAD_PROBE_OK;
}

// Where an element between loses the meta, the others still hide what is held, and all of a frame that is marked whole,
// also with roi-invert and other types.
GST_START_TEST(without_the_meta_no_less_is_hidden) {
  for (const char *more : {"", " roi-invert=true", " roi-type=plate"}) {
    Harness h(std::string("mask=fill roi-meta=true hold=40000000 unmarked=mark") + more, gray());
    const Ref<GstPad> pad(gst_element_get_static_pad(part_of(h.element(), "hold").get(), "src"));
    gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, forget_own_meta, nullptr, nullptr);
    for (int i = 0; i < 4; i++) {
      Ref<GstBuffer> frame = frame_at(i, {});
      if (i == 1) add_roi(frame.get(), strstr(more, "type") ? "plate" : "face", 8, 8, 16, 12);
      fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
      const Ref<GstBuffer> out = h.pull();
      const bool whole = i == 0 || i == 3, inverts = strstr(more, "invert");
      fail_unless_equals_int(is_hidden(out.get(), 12, 12), whole || !inverts);
      fail_unless_equals_int(is_hidden(out.get(), 40, 2), whole || inverts);
    }
  }
}
GST_END_TEST;

// What lies between the two changes nothing. Scaled pictures have scaled regions, also turned ones and masks.
GST_START_TEST(elements_between_keep_the_regions) {
  const struct {
    const char *between;
    int width, height;
  } cases[] = {
      {"identity", 48, 32},
      {"queue", 48, 32},
      {"tee ! queue", 48, 32},
      {"videoconvert ! video/x-raw,format=I420 ! videoconvert ! video/x-raw,format=GRAY8", 48, 32},
      {"videoscale ! video/x-raw,width=96,height=64", 96, 64},
      {"videoscale ! video/x-raw,width=24,height=16", 24, 16},
      {"videoscale ! video/x-raw,width=37,height=29", 37, 29},
      {"videorate", 48, 32},
  };
  for (const auto &c : cases)
    for (const char *invert : {"false", "true"}) {
      const std::string line = std::string("roihold types=face hold=40000000 ! ") + c.between +
                               " ! cudaconv mask=fill roi-meta=true roi-invert=" + invert +
                               " backend=" + test_backend();
      Harness harness(new_bin(line));
      GstHarness *const h = harness.get();
      const GstVideoInfo info = gray();
      gst_harness_set_src_caps(h, gst_video_info_to_caps(&info));
      for (int i = 0; i < 4; i++) {
        Ref<GstBuffer> frame = frame_at(i, {});
        if (i == 1) add_roi(frame.get(), "face", 8, 8, 16, 12);
        if (i == 1) add_roi(frame.get(), "dog", 40, 24, 6, 6);
        GST_BUFFER_DURATION(frame.get()) = kFrame;
        fail_unless_equals_int(gst_harness_push(h, frame.release()), GST_FLOW_OK);
      }
      gst_harness_push_event(h, gst_event_new_eos());
      for (int i = 0; i < 4; i++) {
        const Ref<GstBuffer> out(gst_harness_pull(h));
        fail_unless(out != nullptr);
        const bool in_force = i == 1 || i == 2, inverts = !strcmp(invert, "true");
        int wrong = 0;
        for (int y = 0; y < c.height; y++)
          for (int x = 0; x < c.width; x++) {
            // The pixel in the picture before, and how far it is from the region's edge.
            const double at_x = (x + 0.5) * 48 / c.width, at_y = (y + 0.5) * 32 / c.height;
            const double outside = std::max({8 - at_x, at_x - 24, 8 - at_y, at_y - 20});
            const double pixel = std::max(48.0 / c.width, 32.0 / c.height);
            const bool inside = in_force && outside < 0;
            if (in_force && std::abs(outside) < 2 * pixel && pixel != 1) continue;  // an edge that was rounded
            wrong += is_hidden(out.get(), x, y, GST_ROUND_UP_4(c.width)) != (inside != inverts);
          }
        fail_unless(wrong == 0, "%s, invert %s, frame %d: %d pixels", c.between, invert, i, wrong);
      }
    }
}
GST_END_TEST;

// A scaler may keep the shape of the picture by borders, or not: what is marked is hidden in both cases.
GST_START_TEST(borders_of_scalers_show_nothing) {
  const GstVideoInfo info = gray();
  for (const char *scaler :
       {"videoscale method=nearest-neighbour", "videoscale method=nearest-neighbour add-borders=false",
        "videoconvertscale method=nearest-neighbour"})
    for (const auto &[width, height] : {std::pair(48, 64), std::pair(96, 32), std::pair(44, 17), std::pair(144, 32)}) {
      Harness h(new_bin(
          std::string("roihold ! ") + scaler + " ! video/x-raw,pixel-aspect-ratio=1/1,width=" + std::to_string(width) +
          ",height=" + std::to_string(height) + " ! cudaconv mask=fill roi-meta=true backend=" + test_backend()));
      h.set_caps(info);
      const std::vector<Region> marks = {{0, 0, 5, 4}, {20, 9, 7, 10}, {41, 27, 7, 5}};
      Ref<GstBuffer> frame = frame_at(0, {});
      gst_buffer_memset(frame.get(), 0, 0, static_cast<gsize>(-1));
      for (const Region &r : marks) {
        for (int y = r.y; y < r.y + r.height; y++)
          gst_buffer_memset(frame.get(), static_cast<gsize>(y) * 48 + r.x, 200, r.width);
        add_roi(frame.get(), "face", r.x, r.y, r.width, r.height);
      }
      fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
      const Ref<GstBuffer> out = h.pull();
      int shown = 0;
      for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
          guint8 value = 0;
          gst_buffer_extract(out.get(), static_cast<gsize>(y) * GST_ROUND_UP_4(width) + x, &value, 1);
          shown += value == 200;
        }
      fail_unless(shown == 0, "%s, %dx%d: %d pixels", scaler, width, height, shown);
    }
}
GST_END_TEST;

// Before elements that are not ours: an encoder with regions, one that ignores them, a sink.
GST_START_TEST(other_elements_take_the_frames) {
  for (const char *behind : {"x264enc speed-preset=ultrafast ! fakesink", "identity ! fakesink", "fakesink",
                             "videoconvert ! video/x-raw,format=NV12 ! jpegenc ! fakesink"}) {
    bool known = true;
    for (const char *name : {"x264enc", "jpegenc"}) {
      const Ref<GstElementFactory> found(gst_element_factory_find(name));
      known &= found || !strstr(behind, name);
    }
    if (!known) continue;
    Pipeline pipeline(
        std::string("videotestsrc num-buffers=30 ! video/x-raw,width=64,height=48,framerate=30/1 ! roihold "
                    "hold=100000000 lookahead=100000000 unmarked=mark name=hold ! ") +
        behind);
    fail_unless(pipeline.go_to(GST_STATE_PLAYING));
    assert_same_text(pipeline.wait_for_end(), "");
    const Ref<GstStructure> stats = stats_of(pipeline.element("hold").get());
    guint64 unmarked;
    fail_unless(gst_structure_get_uint64(stats.get(), "frames-unmarked", &unmarked));
    fail_unless_equals_uint64(unmarked, 30);
  }
}
GST_END_TEST;

// Applications and tests count references: a thread that only waits holds none.
GST_START_TEST(only_the_application_holds_the_element) {
  const GstVideoInfo info = gray();
  for (const guint64 lookahead : {guint64{0}, guint64{100 * GST_MSECOND}}) {
    GstHarness *h = gst_harness_new("roihold");
    g_object_set(h->element, "lookahead", lookahead, nullptr);
    gst_harness_set_src_caps(h, gst_video_info_to_caps(&info));
    fail_unless_equals_int(gst_harness_push(h, frame_at(0, {}).release()), GST_FLOW_OK);
    const auto references = [&] { return GST_OBJECT_REFCOUNT_VALUE(h->element); };
    wait_until([&] { return references() == 1; });  // the frame may be leaving
    fail_unless_equals_int(references(), 1);
    gst_harness_teardown(h);
  }
}
GST_END_TEST;

// Some detectors read rows as if they had no padding. An encoder behind may ask for padded rows.
GST_START_TEST(a_detector_gets_no_padded_rows) {
  const GstVideoInfo info = gray(50, 32);
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  for (const char *properties : {"", "lookahead=100000000"})
    for (const guint max : {0u, 100u})
      for (const bool pads : {false, true}) {
        Harness h(new_hold(properties));
        const Ref<GstBufferPool> pool(gst_video_buffer_pool_new());
        GstStructure *config = gst_buffer_pool_get_config(pool.get());
        gst_buffer_pool_config_set_params(config, caps.get(), static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), 0, max);
        if (pads) {
          GstVideoAlignment alignment;
          gst_video_alignment_reset(&alignment);
          alignment.stride_align[0] = 15;
          gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
          gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
          gst_buffer_pool_config_set_video_alignment(config, &alignment);
        }
        fail_unless(gst_buffer_pool_set_config(pool.get(), config));
        offer_pool(h, pool.get(), max);
        h.set_caps(info);
        const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
        fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
        fail_unless_equals_int(gst_query_get_n_allocation_pools(query.get()), 1);
        GstBufferPool *offered;
        gst_query_parse_nth_allocation_pool(query.get(), 0, &offered, nullptr, nullptr, nullptr);
        const Ref<GstBufferPool> owned(offered);
        fail_unless(offered == (pads ? nullptr : pool.get()));
        fail_unless(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
      }
}
GST_END_TEST;

// An object moves through the picture. The detector finds it late, and misses it for at most as long as it is held: for
// each frame rate, pool of upstream and element between, no frame shows it.
GST_START_TEST(no_frame_shows_what_a_detector_misses) {
  Random random = seeded();
  const int rounds = number_from_environment("CUDACONV_TEST_STORM", 1);
  int shown = 0, frames = 0, lost = 0, disorder = 0;
  for (int round = 0; round < rounds; round++)
    for (const int rate : {5, 24, 60})
      for (const char *between : {"", "queue !", "tee ! queue !", "identity !"})
        for (const guint pool_size : {0u, 40u}) {
          const GstClockTime step = GST_SECOND / static_cast<guint>(rate);
          const int misses = 4, late = 3;
          const std::string line = "roihold hold=" + std::to_string(misses * step) +
                                   " lookahead=" + std::to_string(late * step) + " ! " + between +
                                   " cudaconv mask=fill roi-meta=true backend=" + test_backend();
          Harness harness(new_bin(line));
          GstHarness *const h = harness.get();
          GstVideoInfo info = gray();
          info.fps_n = rate;
          gst_harness_set_src_caps(h, gst_video_info_to_caps(&info));
          const Ref<GstBufferPool> pool(gst_buffer_pool_new());
          GstStructure *config = gst_buffer_pool_get_config(pool.get());
          gst_buffer_pool_config_set_params(config, nullptr, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), 0,
                                            pool_size);
          fail_unless(gst_buffer_pool_set_config(pool.get(), config) && gst_buffer_pool_set_active(pool.get(), TRUE));
          constexpr int kFrames = 80;
          const int begin = 10 + static_cast<int>(random() % 10);  // the object is there from here on
          int missed = late;
          int next = 0;
          const auto look = [&](const Ref<GstBuffer> &out) {
            const auto i = static_cast<int>(GST_BUFFER_PTS(out.get()) / step);
            disorder += i != next++;
            frames++;
            // It rests in the middle of the picture.
            if (i >= begin && i < kFrames - misses) shown += !is_hidden(out.get(), 20, 16);
          };
          for (int i = 0; i < kFrames; i++) {
            GstBuffer *frame;
            GstBufferPoolAcquireParams params = {};
            params.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT;
            while (const Ref<GstBuffer> out = Ref<GstBuffer>(gst_harness_try_pull(h))) look(out);
            // All may be on their way to the harness, filtered in place.
            while (gst_buffer_pool_acquire_buffer(pool.get(), &frame, &params) != GST_FLOW_OK) {
              const Ref<GstBuffer> out(gst_harness_pull(h));
              fail_unless(out != nullptr);
              look(out);
            }
            gst_buffer_memset(frame, 0, 200, static_cast<gsize>(-1));
            GST_BUFFER_PTS(frame) = static_cast<guint>(i) * step;
            if (i >= begin && missed-- <= 0) {
              add_roi(frame, "face", 16, 12, 8, 8);
              missed = static_cast<int>(random() % static_cast<unsigned>(misses));
            }
            fail_unless_equals_int(gst_harness_push(h, frame), GST_FLOW_OK);
          }
          gst_harness_push_event(h, gst_event_new_eos());
          while (next < kFrames) {
            const Ref<GstBuffer> out(gst_harness_pull(h));
            if (!out) break;
            look(out);
          }
          lost += kFrames - next;
          gst_buffer_pool_set_active(pool.get(), FALSE);
        }
  g_print("%d frames: promised but shown %d, lost %d, out of order %d\n", frames, shown, lost, disorder);
  fail_unless_equals_int(shown, 0);
  fail_unless_equals_int(lost, 0);
  fail_unless_equals_int(disorder, 0);
}
GST_END_TEST;

// A live pipeline and one that is not pause, seek and play on, with two branches and without queues.
GST_START_TEST(pauses_and_seeks_never_hang) {
  for (const char *live : {"false", "true"})
    for (const char *behind :
         {"cudaconv roi-meta=true ! fakesink sync=true",
          "tee name=t ! queue ! cudaconv roi-meta=true ! fakesink sync=true t. ! queue ! fakesink sync=true"}) {
      Pipeline pipeline(std::string("videotestsrc is-live=") + live +
                        " ! video/x-raw,width=48,height=32,framerate=50/1 ! roihold lookahead=100000000 "
                        "hold=100000000 ! " +
                        behind);
      const auto go_to = [&](GstState state) {  // a live pipeline has no frame in a pause
        gst_element_set_state(pipeline.get(), state);
        const GstStateChangeReturn ret = gst_element_get_state(pipeline.get(), nullptr, nullptr, 20 * GST_SECOND);
        return ret == GST_STATE_CHANGE_SUCCESS || ret == GST_STATE_CHANGE_NO_PREROLL;
      };
      fail_unless(go_to(GST_STATE_PLAYING));
      for (int i = 0; i < 8; i++) {
        g_usleep(20000 * static_cast<unsigned>(i % 3));
        fail_unless(go_to(i % 2 ? GST_STATE_PLAYING : GST_STATE_PAUSED), "%s, %s", live, behind);
        if (i % 4 == 1 && !strcmp(live, "false"))
          fail_unless(gst_element_seek_simple(pipeline.get(), GST_FORMAT_TIME,
                                              static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE),
                                              i * GST_SECOND));
      }
    }
}
GST_END_TEST;

// A handler may set properties, and read them, while frames leave.
GST_START_TEST(reports_may_be_answered) {
  Alone h("report=true");
  const Ref<GstBus> bus(gst_element_get_bus(h.element()));
  gst_bus_set_sync_handler(
      bus.get(),
      [](GstBus *, GstMessage *message, gpointer) {
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT)
          set_properties(GST_ELEMENT(GST_MESSAGE_SRC(message)), "hold=1000000000 lookahead=0 types=face");
        gst_message_unref(message);
        return GST_BUS_DROP;
      },
      nullptr, nullptr);
  for (int i = 0; i < 60; i++)
    fail_unless_equals_int(gst_harness_push(h.get(), frame_at(i, {{"face", kFace}}).release()), GST_FLOW_OK);
  guint64 hold;
  g_object_get(h.element(), "hold", &hold, nullptr);
  fail_unless_equals_uint64(hold, GST_SECOND);
  gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
}
GST_END_TEST;

// A thread may be setting properties, here without an end, while another one sets others. Then the changes of the
// second take effect, and those of the first do not yet.
GST_START_TEST(a_call_publishes_its_own_properties_alone) {
  Alone h("");
  const auto stage = [&](const char *name, const GValue *value) {
    GObject *const object = G_OBJECT(h.element());
    GParamSpec *const spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), name);
    G_OBJECT_GET_CLASS(object)->set_property(object, spec->param_id, value, spec);
  };
  const auto rois = [&](int number) {
    fail_unless_equals_int(gst_harness_push(h.get(), frame_at(number, {}).release()), GST_FLOW_OK);
    return rois_of(h.pull().get());
  };
  GValue mark = G_VALUE_INIT, lookahead = G_VALUE_INIT;
  g_value_init(&mark, g_object_class_find_property(G_OBJECT_GET_CLASS(h.element()), "unmarked")->value_type);
  g_value_set_enum(&mark, 1);
  g_value_init(&lookahead, G_TYPE_UINT64);
  g_value_set_uint64(&lookahead, kFrame);
  stage("unmarked", &mark);
  stage("lookahead", &lookahead);
  set_properties(h.element(), "hold=40000000 types=face interpolate=false report=false");
  assert_same_text(rois(0), "");
  fail_unless_equals_uint64(gst_harness_query_latency(h.get()), 0);
  g_object_notify(G_OBJECT(h.element()), "unmarked");
  assert_same_text(rois(1), "whole-frame 0,0,48,32");
  g_object_notify(G_OBJECT(h.element()), "lookahead");
  fail_unless_equals_uint64(gst_harness_query_latency(h.get()), kFrame);
  g_value_unset(&mark);
  g_value_unset(&lookahead);
}
GST_END_TEST;

// Two threads set the same properties. No frame meets one property of the first and one of the second.
GST_START_TEST(calls_that_overlap_are_not_mixed) {
  Alone h("types=face");
  const auto rois = [&](int number) {
    fail_unless_equals_int(gst_harness_push(h.get(), frame_at(number, {}).release()), GST_FLOW_OK);
    return rois_of(h.pull().get());
  };
  OverlappingCall other(h.element(), "unmarked=mark", "types=plate");
  g_object_set(h.element(), "types", "person", "unmarked", 0, nullptr);
  assert_same_text(rois(0), "");
  other.end();
  assert_same_text(rois(1), "whole-frame 0,0,48,32");
}
GST_END_TEST;

// A scaler rounds the metas of a frame in another way than the regions of the roihold before it. They still are regions
// of it to a later roihold, and count once. Regions of other types count too.
GST_START_TEST(regions_that_were_scaled_count_once) {
  for (const char *scaler : {"videoscale ! video/x-raw,width=37,height=29",
                             "videoscale ! video/x-raw,width=37,height=29,pixel-aspect-ratio=1/1"}) {
    Harness h(new_bin(std::string("roihold types=face,plate ! ") + scaler +
                      " ! roihold name=hold ! cudaconv name=filter roi-meta=true backend=" + test_backend()));
    h.set_caps(gray());
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> frame = frame_at(i, {{"face", {7, 9, 15, 11}}, {"plate", kPlate}, {"dog", {3, 3, 5, 5}}});
      fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
      h.pull();
    }
    for (const char *name : {"hold", "filter"}) {
      const Ref<GstStructure> stats = stats_of(part_of(h.element(), name).get());
      guint64 regions = 0;
      fail_unless(gst_structure_get_uint64(stats.get(), "regions", &regions));
      fail_unless(regions == 9, "%s, %s: %d regions", scaler, name, static_cast<int>(regions));
    }
  }
}
GST_END_TEST;

// A frame that another element holds cannot leave with metas of its own where its memory cannot be copied.
GST_START_TEST(a_shared_frame_that_cannot_be_copied_is_an_error) {
  for (const char *properties : {"", "unmarked=mark", "lookahead=40000000"}) {
    Alone h(properties);
    const Ref<GstBuffer> frame = unmappable_buffer(48 * 32);
    add_roi(frame.get(), "face", 8, 8, 16, 12);
    GST_BUFFER_PTS(frame.get()) = 0;
    GstFlowReturn flow = h.push(frame.get());
    for (int i = 1; i < 3 && flow == GST_FLOW_OK; i++) flow = gst_harness_push(h.get(), frame_at(i, {}).release());
    fail_unless_equals_int(flow, GST_FLOW_ERROR);
    h.take_one(GST_MESSAGE_ERROR);
    fail_unless_equals_int(gst_harness_push(h.get(), frame_at(3, {{"face", kFace}}).release()), GST_FLOW_OK);
    push_event(h, gst_event_new_eos());
    const Ref<GstBuffer> out = h.pull();
    fail_unless(GST_BUFFER_IS_DISCONT(out.get()));
    // A frame of its own needs no copy.
    Alone other(properties);
    fail_unless_equals_int(gst_harness_push(other.get(), unmappable_buffer(48 * 32).release()), GST_FLOW_OK);
    push_event(other, gst_event_new_eos());
    other.pull();
    other.take(GST_MESSAGE_WARNING);
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("roihold");
  TCase *tc = tcase_create("roihold");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, properties_have_their_defaults_limits_and_flags);
  tcase_add_test(tc, frames_leave_with_what_is_in_force);
  tcase_add_test(tc, frames_of_others_stay_as_they_are);
  tcase_add_test(tc, a_whole_frame_is_a_meta);
  tcase_add_test(tc, the_filter_takes_what_is_in_force_alone);
  tcase_add_test(tc, what_later_elements_mark_counts_too);
  tcase_add_test(tc, metas_of_other_pictures_count_too);
  tcase_add_test(tc, a_frame_out_of_order_has_the_regions_of_later_ones);
  tcase_add_test(tc, without_the_meta_no_less_is_hidden);
  tcase_add_test(tc, elements_between_keep_the_regions);
  tcase_add_test(tc, borders_of_scalers_show_nothing);
  tcase_add_test(tc, other_elements_take_the_frames);
  tcase_add_test(tc, only_the_application_holds_the_element);
  tcase_add_test(tc, a_detector_gets_no_padded_rows);
  tcase_add_test(tc, no_frame_shows_what_a_detector_misses);
  tcase_add_test(tc, pauses_and_seeks_never_hang);
  tcase_add_test(tc, reports_may_be_answered);
  tcase_add_test(tc, a_call_publishes_its_own_properties_alone);
  tcase_add_test(tc, calls_that_overlap_are_not_mixed);
  tcase_add_test(tc, regions_that_were_scaled_count_once);
  tcase_add_test(tc, a_shared_frame_that_cannot_be_copied_is_an_error);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "roihold", make_suite, !strcmp(test_backend(), "cuda"));
}
