// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvanalytics.h"

#include <gst/video/video.h>

#ifdef CUDACONV_ANALYTICS
#include <gst/analytics/analytics.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "gstcudaconvformat.h"
#include "regions/segmentation.h"
#endif

namespace cudaconv::gst {

namespace {

// Tensors are what a model has found, before a decoder has made detections of them. All of GStreamer's decoders attach
// a GstAnalyticsRelationMeta, with or without detections, and leave the tensors on the buffer.
bool has_undecoded_tensors(GstBuffer *buffer) {
  return has_meta(buffer, "GstTensorMetaAPI") && !has_meta(buffer, kAnalyticsApi);
}

void filter_whole(const std::string &why, RoiList *list, std::string *trouble) {
  *trouble = why;
  list->everywhere = true;
}

constexpr char kUndecoded[] =
    "frames come with tensors that no element has decoded, and are filtered whole: put a decoder for the model behind "
    "the inference, such as yolov8tensordec";

}  // namespace

bool has_meta(GstBuffer *buffer, const char *api) {
  const GType type = g_type_from_name(api);
  return type != G_TYPE_INVALID && gst_buffer_get_meta(buffer, type);
}

bool is_analytics(const GstMeta *meta) {
  return !g_strcmp0(g_type_name(meta->info->api), kAnalyticsApi);
}

#ifndef CUDACONV_ANALYTICS

GType analytics_meta_api() {
  return G_TYPE_INVALID;
}

gsize analytics_length(const GstMeta *) {
  return 1;
}

static constexpr bool copies_lose_detections() {
  return false;
}

void add_analytics(GstBuffer *buffer, const PicturePlace &, const WantedLabels &, const AnalyticsPart &part,
                   RoiList *list, std::string *trouble) {
  if (has_undecoded_tensors(buffer)) return filter_whole(kUndecoded, list, trouble);
  gpointer state = nullptr;
  size_t number = 0;
  bool found = false;
  while (const GstMeta *meta = gst_buffer_iterate_meta(buffer, &state))
    found |= is_analytics(meta) && part.has(number++, 0);
  if (!found) return;
  filter_whole(
      "this build cannot read the analytics metas that frames come with, and filters these frames whole: build it with "
      "gstreamer-analytics-1.0 (Debian: libgstreamer-plugins-bad1.0-dev), version 1.24 or newer",
      list, trouble);
}

#else

namespace {

using Mtd = GstAnalyticsMtd;  // two words; functions of 1.24 take no pointer to a const one

// Whether the analytics library in use is one that loses detections where a buffer is copied.
bool copies_lose_detections() {
  static const bool lose = [] {
    const Ref<GstBuffer> buffer(gst_buffer_new());
    Mtd mtd;
    gst_analytics_relation_meta_add_od_mtd(gst_buffer_add_analytics_relation_meta(buffer.get()), 0, 0, 0, 1, 1, 1.0f,
                                           &mtd);
    const Ref<GstBuffer> copy(gst_buffer_copy(buffer.get()));
    return !gst_analytics_relation_meta_get_od_mtd(gst_buffer_get_analytics_relation_meta(copy.get()), mtd.id, &mtd);
  }();
  return lose;
}

template <typename Use>
void for_each(GstAnalyticsRelationMeta *meta, GstAnalyticsMtdType type, const Use &use) {
  gpointer state = nullptr;
  Mtd mtd;
  while (gst_analytics_relation_meta_iterate(meta, &state, type, &mtd)) use(mtd);
}

// Calls `use` for each mtd of the type that is related to `mtd`, in either direction.
template <typename Use>
void for_each_related(Mtd mtd, GstAnalyticsMtdType type, const Use &use) {
  const auto leads = [meta = mtd.meta](guint from, guint to) {
    return gst_analytics_relation_meta_get_relation(meta, from, to) != GST_ANALYTICS_REL_TYPE_NONE;
  };
  for_each(mtd.meta, type, [&](Mtd other) {
    if (other.id != mtd.id && (leads(mtd.id, other.id) || leads(other.id, mtd.id))) use(other);
  });
}

bool has_related(Mtd mtd, GstAnalyticsMtdType type) {
  bool found = false;
  for_each_related(mtd, type, [&](Mtd) { found = true; });
  return found;
}

void add_label(const gchar *label, Labels *labels) {
  if (label && *label) labels->push_back(label);
}

// The classes of the highest confidence: a classifier may list all that it knows.
void add_classes(Mtd classes, Labels *labels) {
  const auto confidence = [&](gsize i) { return gst_analytics_cls_mtd_get_level(&classes, i); };
  const gsize count = gst_analytics_cls_mtd_get_length(&classes);
  gfloat best = -1;
  for (gsize i = 0; i < count; i++) best = std::max(best, confidence(i));
  for (gsize i = 0; i < count; i++)
    if (!(confidence(i) < best)) add_label(g_quark_to_string(gst_analytics_cls_mtd_get_quark(&classes, i)), labels);
}

void add_tag([[maybe_unused]] Mtd mtd, [[maybe_unused]] Labels *labels) {
#ifdef CUDACONV_ANALYTICS_KEYPOINTS
  g_autofree gchar *tag = gst_analytics_mtd_get_semantic_tag(&mtd);
  add_label(tag, labels);
#endif
}

#ifdef CUDACONV_ANALYTICS_KEYPOINTS

bool is_member(Mtd group, Mtd mtd) {
  for (gsize i = 0; i < gst_analytics_group_mtd_get_member_count(&group); i++) {
    Mtd member;
    if (gst_analytics_group_mtd_get_member(&group, i, &member) && member.id == mtd.id) return true;
  }
  return false;
}

#endif

// The labels that an mtd has itself: its type, its tag, the classes that are related to it, the tags of its groups.
Labels own_labels(Mtd mtd) {
  Labels labels;
  if (gst_analytics_mtd_get_mtd_type(&mtd) == gst_analytics_od_mtd_get_mtd_type())
    add_label(g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&mtd)), &labels);
  add_tag(mtd, &labels);
  for_each_related(mtd, gst_analytics_cls_mtd_get_mtd_type(), [&](Mtd classes) {
    add_classes(classes, &labels);
    add_tag(classes, &labels);
  });
#ifdef CUDACONV_ANALYTICS_KEYPOINTS
  for_each(mtd.meta, gst_analytics_group_mtd_get_mtd_type(), [&](Mtd group) {
    if (is_member(group, mtd)) add_tag(group, &labels);
  });
#endif
  return labels;
}

// The labels of the related detections that an mtd is wanted for, each with the `own` ones of the mtd. Joined where it
// is not wanted for others. No labels: it is not wanted.
[[maybe_unused]] Detected wanted_part(Mtd mtd, const Labels &own, bool background, const WantedLabels &wanted) {
  std::vector<Labels> detections;
  if (!background)
    for_each_related(mtd, gst_analytics_od_mtd_get_mtd_type(),
                     [&](Mtd detection) { detections.push_back(own_labels(detection)); });
  if (detections.empty()) detections.emplace_back();
  Labels labels;
  size_t taken = 0;
  for (Labels &one : detections) {
    one.insert(one.end(), own.begin(), own.end());
    if (!wanted.wants(one, background)) continue;
    if (taken++) labels.emplace_back();
    labels.insert(labels.end(), one.begin(), one.end());
  }
  if (!taken) return {};
  return {std::make_shared<const Labels>(std::move(labels)), 0,
          taken == detections.size() ? Cover::Exact : Cover::Joined};
}

// The id that a tracker has given to a detection; 0 where there is none.
int64_t tracked_id(Mtd detection) {
  guint64 id = 0;
  for_each_related(detection, gst_analytics_tracking_mtd_get_mtd_type(), [&](Mtd tracking) {
    GstClockTime first, last;
    gboolean lost;
    gst_analytics_tracking_mtd_get_info(&tracking, &id, &first, &last, &lost);
  });
  return static_cast<int64_t>(id);
}

// Returns false where the detection has no place. A negative size counts to the left, or upwards.
bool locate(Mtd detection, Region *region) {
  gfloat confidence;
#ifdef CUDACONV_ANALYTICS_ORIENTED
  gfloat rotation = 0;
  if (!gst_analytics_od_mtd_get_oriented_location(&detection, &region->x, &region->y, &region->width, &region->height,
                                                  &rotation, &confidence))
    return false;
  if (std::isfinite(rotation)) region->rotation = std::remainder(static_cast<double>(rotation), 2 * G_PI);
#else
  if (!gst_analytics_od_mtd_get_location(&detection, &region->x, &region->y, &region->width, &region->height,
                                         &confidence))
    return false;
#endif
  *region = moved(*region, {std::min(region->width, 0), std::min(region->height, 0)});
  for (int *length : {&region->width, &region->height}) *length = to_int(std::abs(gint64{*length}));
  return true;
}

#ifdef CUDACONV_ANALYTICS_KEYPOINTS

// Keypoints are eyes, joints or knuckles: a face or a hand reaches beyond them. So the region is larger than the box
// around them, on each side by half of the box's longer side.
Region around(int left, int top, int right, int bottom) {
  const gint64 width = gint64{right} - left + 1, height = gint64{bottom} - top + 1;
  const gint64 by = (std::max(width, height) + 1) / 2;
  return rectangle_around(static_cast<double>(left - by), static_cast<double>(top - by),
                          static_cast<double>(right + by + 1), static_cast<double>(bottom + by + 1));
}

// Adds the region of a group of keypoints. Keypoints at one place have no size: all of the frame is a region.
void add_keypoints(Mtd group, const WantedLabels &wanted, RoiList *list, std::string *trouble) {
  int left = G_MAXINT, top = G_MAXINT, right = G_MININT, bottom = G_MININT;
  gpointer state = nullptr;
  Mtd point;
  while (gst_analytics_group_mtd_iterate(&group, &state, gst_analytics_keypoint_mtd_get_mtd_type(), &point)) {
    gint x, y, z;
    GstAnalyticsKeypointDimensions dimensions;
    if (!gst_analytics_keypoint_mtd_get_position(&point, &x, &y, &z, &dimensions)) continue;
    left = std::min(left, x);
    top = std::min(top, y);
    right = std::max(right, x);
    bottom = std::max(bottom, y);
  }
  if (left > right) return;  // a group of others
  const Detected found = wanted_part(group, own_labels(group), false, wanted);
  if (!found.labels) return;
  wanted.count(*found.labels);
  if (left == right && top == bottom)
    return filter_whole("frames come with keypoints that are all at one place, and are filtered whole", list, trouble);
  list->add(around(left, top, right, bottom), *found.labels, 0, found.cover);
}

#endif

#ifdef CUDACONV_ANALYTICS_MASKS

// Whether the rows of a mask are not where its GstVideoMeta says: it has the stride of its pool's larger pictures, but
// yolosegv8tensordec of GStreamer 1.28 writes rows of the mask's own width, one after the other.
bool has_stride_of_pool(GstBuffer *mask, const GstVideoMeta &meta) {
  if (!mask->pool) return false;
  const Ref<GstStructure> config(gst_buffer_pool_get_config(mask->pool));
  GstCaps *caps = nullptr;
  GstVideoInfo info;
  return gst_buffer_pool_config_get_params(config.get(), &caps, nullptr, nullptr, nullptr) && caps &&
         gst_video_info_from_caps(&info, caps) && static_cast<guint>(GST_VIDEO_INFO_WIDTH(&info)) > meta.width &&
         GST_VIDEO_INFO_PLANE_STRIDE(&info, 0) == meta.stride[0];
}

// Reads the samples of a segmentation mask. Returns why that is not possible, or an empty text.
std::string read_values(GstBuffer *mask, Segmentation *values) {
  const GstVideoMeta *meta = gst_buffer_get_video_meta(mask);
  if (!meta) return "has no GstVideoMeta";
  const guint format = format_of(*meta);
  const bool bytes = format == GST_VIDEO_FORMAT_GRAY8, big_endian = format == GST_VIDEO_FORMAT_GRAY16_BE;
  if (!bytes && !big_endian && format != GST_VIDEO_FORMAT_GRAY16_LE)
    return std::string("is of format ") + format_text(format) + "; GRAY8 or GRAY16 is needed";
  const gint64 row = gint64{meta->width} * (bytes ? 1 : 2), stride = meta->stride[0];
  const gsize size = gst_buffer_get_size(mask);
  if (meta->width < 1 || meta->height < 1 || meta->width > INT_MAX || meta->height > INT_MAX || stride < row ||
      meta->offset[0] > size || static_cast<gint64>(size - meta->offset[0]) < stride * meta->height)
    return "of " + std::to_string(size) + " bytes is too small for its " + std::to_string(meta->width) + "x" +
           std::to_string(meta->height) + " " + format_text(format) + " of stride " + std::to_string(stride);
  values->width = static_cast<int>(meta->width);
  values->height = static_cast<int>(meta->height);
  values->value.resize(static_cast<size_t>(meta->width) * meta->height);
  GstMapInfo map;
  if (!gst_buffer_map(mask, &map, GST_MAP_READ)) return "cannot be mapped";
  guint16 *to = values->value.data();
  for (guint y = 0; y < meta->height; y++) {
    const guint8 *from = map.data + meta->offset[0] + y * stride;
    for (guint x = 0; x < meta->width; x++)
      *to++ = bytes ? from[x] : big_endian ? GST_READ_UINT16_BE(from + 2 * x) : GST_READ_UINT16_LE(from + 2 * x);
  }
  gst_buffer_unmap(mask, &map);
  return "";
}

// The name of the class of each value; nullptr for a value without a class.
std::vector<const char *> find_names(Mtd segmentation) {
  std::vector<const char *> names(1 << 16);
  for_each_related(segmentation, gst_analytics_cls_mtd_get_mtd_type(), [&](Mtd classes) {
    const gsize count = std::min(gst_analytics_cls_mtd_get_length(&classes),
                                 gst_analytics_segmentation_mtd_get_region_count(&segmentation));
    for (gsize i = 0; i < count; i++) {
      const guint value = gst_analytics_segmentation_mtd_get_region_id(&segmentation, i);
      if (value < names.size()) names[value] = g_quark_to_string(gst_analytics_cls_mtd_get_quark(&classes, i));
    }
  });
  return names;
}

bool is_background(guint value, const char *name) {
  return name ? g_ascii_strcasecmp(name, "background") == 0 : value == 0;
}

// Adds the masks of the values that are wanted. A value has the labels of the detections, its class and its number.
void add_values(const Segmentation &values, const Region &box, Mtd segmentation, const WantedLabels &wanted,
                RoiList *list) {
  const std::vector<const char *> names = find_names(segmentation);
  Labels tag;
  add_tag(segmentation, &tag);
  const bool is_detection = !tag.empty() || has_related(segmentation, gst_analytics_od_mtd_get_mtd_type());
  bool counted = false;
  const auto found_of = [&](guint16 value) {
    const bool background = is_background(value, names[value]);
    Labels own = background ? Labels() : tag;
    if (names[value]) own.push_back(names[value]);
    own.push_back(std::to_string(value));
    const Detected found = wanted_part(segmentation, own, background, wanted);
    // A detection counts once, also with several values in its mask.
    const bool is_part = is_detection && !background;
    if (found.labels && !(is_part && std::exchange(counted, true))) wanted.count(*found.labels);
    return found;
  };
  add_masks(values, box, found_of, list);
}

// Adds the masks of a segmentation.
void add_segmentation(Mtd segmentation, const WantedLabels &wanted, RoiList *list, std::string *trouble) {
  gint x, y;
  guint width = 0, height = 0;
  const Ref<GstBuffer> mask(gst_analytics_segmentation_mtd_get_mask(&segmentation, &x, &y, &width, &height));
  if (!mask || !width || !height) return;
  const Region box = {x, y, to_int(width), to_int(height)};
  const GstVideoMeta *meta = gst_buffer_get_video_meta(mask.get());
  if (meta && has_stride_of_pool(mask.get(), *meta)) {
    // Without a detection nothing tells whether it is wanted.
    Detected found = wanted_part(segmentation, {}, false, wanted);
    if (!found.labels && has_related(segmentation, gst_analytics_od_mtd_get_mtd_type())) return;
    *trouble =
        "the rows of a segmentation mask are not where its GstVideoMeta says, as by yolosegv8tensordec before "
        "GStreamer 1.30: its rectangle is filtered whole";
    if (!found.labels) found.labels = std::make_shared<const Labels>();
    wanted.count(*found.labels);
    found.cover = Cover::Joined;
    return add_masks(
        {1, 1, {1}}, box, [&](guint16) { return found; }, list);
  }
  Segmentation values;
  const std::string why = read_values(mask.get(), &values);
  if (why.empty()) return add_values(values, box, segmentation, wanted, list);
  filter_whole("a segmentation mask " + why + ": the frame is filtered whole", list, trouble);
}

#endif

using Ids = std::set<guint>;

// Whether an mtd marks no part of the picture by itself: what it says is about others.
bool is_about_others(Mtd mtd, const std::string &name) {
  return name == "classification" || name == "object-tracking" ||
         (name == "tensor" && has_related(mtd, gst_analytics_od_mtd_get_mtd_type()));
}

void add_mtd(Mtd mtd, const Ids &replaced, const WantedLabels &wanted, RoiList *list, std::string *trouble) {
  const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
  if (type == GST_ANALYTICS_MTD_TYPE_ANY) {  // lost on the way here, since it lies outside the picture now
    if (copies_lose_detections())
      filter_whole(
          "frames have lost detections, and are filtered whole: GStreamer 1.28.0 to 1.28.2 lose them where a "
          "buffer is copied",
          list, trouble);
    return;
  }
  if (type == gst_analytics_od_mtd_get_mtd_type()) {
    Region region;
    const Labels labels = own_labels(mtd);
    if (replaced.count(mtd.id) || !locate(mtd, &region) || !wanted.wants(labels, false)) return;
    wanted.count(labels);
    return list->add(region, labels, tracked_id(mtd));
  }
#ifdef CUDACONV_ANALYTICS_MASKS
  if (type == gst_analytics_segmentation_mtd_get_mtd_type()) return;  // done
#endif
#ifdef CUDACONV_ANALYTICS_KEYPOINTS
  if (type == gst_analytics_group_mtd_get_mtd_type()) return add_keypoints(mtd, wanted, list, trouble);
  if (type == gst_analytics_keypoint_mtd_get_mtd_type()) {
    bool grouped = false;
    for_each(mtd.meta, gst_analytics_group_mtd_get_mtd_type(), [&](Mtd group) { grouped |= is_member(group, mtd); });
    if (!grouped)
      filter_whole("frames come with keypoints that are in no group, and are filtered whole", list, trouble);
    return;
  }
#endif
  const gchar *const known = gst_analytics_mtd_type_get_name(type);
  const std::string name = known ? known : "?";
  if (is_about_others(mtd, name)) return;
  filter_whole("this build cannot read the analytics of type " + name +
                   " that frames come with, and filters these frames whole: a build with a newer GStreamer may",
               list, trouble);
}

}  // namespace

GType analytics_meta_api() {
  return GST_ANALYTICS_RELATION_META_API_TYPE;
}

gsize analytics_length(const GstMeta *meta) {
  return gst_analytics_relation_get_length(reinterpret_cast<GstAnalyticsRelationMeta *>(const_cast<GstMeta *>(meta)));
}

// The ids of mtds count from 0, in the order in which they were added.
void add_analytics(GstBuffer *buffer, [[maybe_unused]] const PicturePlace &place, const WantedLabels &wanted,
                   const AnalyticsPart &part, RoiList *list, std::string *trouble) {
  if (has_undecoded_tensors(buffer)) filter_whole(kUndecoded, list, trouble);
  gpointer state = nullptr;
  for (size_t number = 0; GstMeta *meta = gst_buffer_iterate_meta_filtered(buffer, &state, analytics_meta_api());
       number++) {
    auto *relations = reinterpret_cast<GstAnalyticsRelationMeta *>(meta);
    const auto counts = [&](Mtd mtd) { return part.has(number, mtd.id); };
    Ids replaced;  // detections whose place is taken by masks
#ifdef CUDACONV_ANALYTICS_MASKS
    const Region picture = moved(Region{0, 0, place.picture.width, place.picture.height}, place.corner);
    for_each(relations, gst_analytics_segmentation_mtd_get_mtd_type(), [&](Mtd segmentation) {
      if (!counts(segmentation)) return;
      const size_t first = list->mask.size();
      add_segmentation(segmentation, wanted, list, trouble);
      for_each_related(segmentation, gst_analytics_od_mtd_get_mtd_type(), [&](Mtd detection) {
        Region at;
        const auto has_pixel = [&](const auto &mask) { return !is_outside(mask->mask, common(upright(at), picture)); };
        if (locate(detection, &at) &&
            std::any_of(list->mask.begin() + static_cast<ptrdiff_t>(first), list->mask.end(), has_pixel))
          replaced.insert(detection.id);
      });
    });
#endif
    for_each(relations, GST_ANALYTICS_MTD_TYPE_ANY, [&](Mtd mtd) {
      if (counts(mtd)) add_mtd(mtd, replaced, wanted, list, trouble);
    });
  }
}

#endif

// Scaling to the same size copies what a copy loses.
bool copy_detections(GstBuffer *to, const GstMeta *meta, GstBuffer *from) {
  if (!copies_lose_detections()) return false;
  GstVideoInfo info;
  gst_video_info_init(&info);
  info.width = info.height = 1;
  GstVideoMetaTransform scale = {&info, &info};
  return meta->info->transform_func(to, const_cast<GstMeta *>(meta), from, gst_video_meta_transform_scale_get_quark(),
                                    &scale);
}

Ref<GstBuffer> copy_buffer(GstBuffer *buffer) {
  Ref<GstBuffer> copy(gst_buffer_copy(buffer));
  if (!copy || !copies_lose_detections()) return copy;
  while (GstMeta *lost = gst_buffer_get_meta(copy.get(), analytics_meta_api()))
    gst_buffer_remove_meta(copy.get(), lost);
  gpointer state = nullptr;
  while (const GstMeta *meta = gst_buffer_iterate_meta_filtered(buffer, &state, analytics_meta_api()))
    copy_detections(copy.get(), meta, buffer);
  return copy;
}

}  // namespace cudaconv::gst
