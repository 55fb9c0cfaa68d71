// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvanalytics.h"

#ifdef CUDACONV_ANALYTICS
#define GST_USE_UNSTABLE_API
#include <gst/analytics/analytics.h>
#include <gst/video/video.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <numeric>
#include <optional>

#include "gstcudaconvformat.h"
#include "gstcudaconvref.h"
#endif

namespace cudaconv::gst {

#ifndef CUDACONV_ANALYTICS

GType analytics_meta_api() {
  return G_TYPE_INVALID;
}

void add_analytics(GstBuffer *buffer, const WantedLabels &, RoiList *list, std::string *trouble) {
  const GType api = g_type_from_name("GstAnalyticsRelationMetaAPI");
  gpointer state = nullptr;
  if (api == G_TYPE_INVALID || !gst_buffer_iterate_meta_filtered(buffer, &state, api)) return;
  *trouble =
      "this build cannot read the analytics metas that frames come with, and filters these frames whole: build it with "
      "gstreamer-analytics-1.0 (Debian: libgstreamer-plugins-bad1.0-dev), version 1.24 or newer";
  list->everywhere = true;
}

#else

namespace {

void add_detections(GstAnalyticsRelationMeta *meta, const WantedLabels &wanted, RoiList *list) {
  gpointer state = nullptr;
  GstAnalyticsODMtd detection;
  while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(), &detection)) {
    if (!wanted.wants({g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&detection))})) continue;
    Region region;
    gfloat confidence;
#ifdef CUDACONV_ANALYTICS_ORIENTED
    gfloat rotation = 0;
    if (!gst_analytics_od_mtd_get_oriented_location(&detection, &region.x, &region.y, &region.width, &region.height,
                                                    &rotation, &confidence))
      continue;
    if (std::isfinite(rotation)) region.rotation = std::remainder(static_cast<double>(rotation), 2 * G_PI);
#else
    if (!gst_analytics_od_mtd_get_location(&detection, &region.x, &region.y, &region.width, &region.height,
                                           &confidence))
      continue;
#endif
    list->region.push_back(region);
  }
}

#ifndef CUDACONV_ANALYTICS_MASKS

// Looks for what newer versions of the library attach.
void find_unreadable(GstAnalyticsRelationMeta *meta, RoiList *list, std::string *trouble) {
  gpointer state = nullptr;
  GstAnalyticsMtd mtd;
  while (gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
    const gchar *const name = gst_analytics_mtd_type_get_name(gst_analytics_mtd_get_mtd_type(&mtd));
    if (g_strcmp0(name, "segmentation") != 0) continue;
    *trouble =
        "this build cannot read the segmentation masks that frames come with, and filters these frames whole: build it "
        "with GStreamer 1.26 or newer";
    list->everywhere = true;
  }
}

#else

constexpr size_t kMostMasks = 64;   // made of one segmentation; beyond that one mask for all its values
constexpr gint64 kMostOverlap = 4;  // how many times the segmentation's samples they have; beyond that one mask

// The samples of a segmentation, row by row.
struct Values {
  int width = 0, height = 0;
  std::vector<guint16> value;
};

// Reads the samples of a segmentation mask. Returns why that is not possible, or an empty text.
std::string read_values(GstBuffer *mask, Values *values) {
  const GstVideoMeta *meta = gst_buffer_get_video_meta(mask);
  if (!meta) return "has no GstVideoMeta";
  const guint format = format_of(*meta);
  const bool bytes = format == GST_VIDEO_FORMAT_GRAY8, big_endian = format == GST_VIDEO_FORMAT_GRAY16_BE;
  if (!bytes && !big_endian && format != GST_VIDEO_FORMAT_GRAY16_LE)
    return std::string("is of format ") + format_text(format) + "; GRAY8 or GRAY16 is needed";
  const gint64 row = gint64{meta->width} * (bytes ? 1 : 2), stride = meta->stride[0];
  const gsize size = gst_buffer_get_size(mask);
  if (meta->width < 1 || meta->height < 1 || meta->width > INT_MAX || meta->height > INT_MAX || stride < row ||
      meta->offset[0] > size || stride > G_MAXINT32 ||
      static_cast<gint64>(size - meta->offset[0]) < stride * (gint64{meta->height} - 1) + row)
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

constexpr size_t kValues = 1 << 16;

// The name of the class of each value; nullptr for a value without a class.
std::vector<const char *> find_names(const GstAnalyticsSegmentationMtd &segmentation) {
  std::vector<const char *> names(kValues);
  GstAnalyticsMtd classes;
  if (!gst_analytics_relation_meta_get_direct_related(segmentation.meta, segmentation.id,
                                                      GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                      gst_analytics_cls_mtd_get_mtd_type(), nullptr, &classes))
    return names;
  const gsize count = std::min(gst_analytics_cls_mtd_get_length(&classes),
                               gst_analytics_segmentation_mtd_get_region_count(&segmentation));
  for (gsize i = 0; i < count; i++) {
    const guint value = gst_analytics_segmentation_mtd_get_region_id(&segmentation, i);
    if (value < kValues) names[value] = g_quark_to_string(gst_analytics_cls_mtd_get_quark(&classes, i));
  }
  return names;
}

bool is_wanted(guint value, const char *name, const WantedLabels &wanted) {
  const bool background = name ? g_ascii_strcasecmp(name, "background") == 0 : value == 0;
  return (wanted.with_background || !background) && wanted.wants({name, std::to_string(value).c_str()});
}

// The smallest rectangle, in samples, around all samples of one value.
struct Extent {
  guint16 value = 0;
  int left = INT_MAX, top = INT_MAX, right = 0, bottom = 0;
  bool wanted = false;

  void add(int x, int y) {
    left = std::min(left, x);
    top = std::min(top, y);
    right = std::max(right, x + 1);
    bottom = std::max(bottom, y + 1);
  }
};

// Returns the extents of the values that the settings select.
std::vector<Extent> find_extents(const Values &values, const GstAnalyticsSegmentationMtd &segmentation,
                                 const WantedLabels &wanted) {
  const std::vector<const char *> names = find_names(segmentation);
  std::vector<std::optional<Extent> > of(kValues);
  const guint16 *at = values.value.data();
  for (int y = 0; y < values.height; y++) {
    for (int x = 0; x < values.width; x++) {
      std::optional<Extent> &extent = of[*at++];
      if (!extent) {
        extent.emplace();
        extent->value = at[-1];
        extent->wanted = is_wanted(extent->value, names[extent->value], wanted);
      }
      extent->add(x, y);
    }
  }
  std::vector<Extent> found;
  for (const std::optional<Extent> &extent : of)
    if (extent && extent->wanted) found.push_back(*extent);
  return found;
}

// A line of `samples` samples covers `length` pixels. Widens [*begin, *end), in samples, to where edges of samples are
// edges of pixels, and returns the pixels that this covers.
struct Pixels {
  int first, length;
};
Pixels widen(int *begin, int *end, int samples, int length) {
  const int common = std::gcd(samples, length), period = samples / common;
  const int first = *begin / period, last = (*end + period - 1) / period;
  *begin = first * period;
  *end = last * period;
  return {first * (length / common), (last - first) * (length / common)};
}

// Makes a mask of the samples within `extent` for which `member` is true. `box` is the rectangle that all of `values`
// covers, in pixels of the picture.
template <typename IsMember>
std::shared_ptr<const RoiMask> cut_out(const Values &values, const Region &box, Extent extent, const IsMember &member) {
  auto result = std::make_shared<RoiMask>();
  const auto side = [](gint64 samples, gint64 length, gint64 of) { return (samples * length + of - 1) / of; };
  result->shorter_side = static_cast<int>(std::min(side(extent.right - extent.left, box.width, values.width),
                                                   side(extent.bottom - extent.top, box.height, values.height)));
  const Pixels across = widen(&extent.left, &extent.right, values.width, box.width);
  const Pixels down = widen(&extent.top, &extent.bottom, values.height, box.height);
  const auto moved = [](int start, int by) { return static_cast<int>(std::min<gint64>(gint64{start} + by, INT_MAX)); };
  RegionMask &mask = result->mask;
  mask.box = {moved(box.x, across.first), moved(box.y, down.first), across.length, down.length};
  mask.width = extent.right - extent.left;
  mask.height = extent.bottom - extent.top;
  mask.member.reserve(static_cast<size_t>(mask.width) * mask.height);
  for (int y = extent.top; y < extent.bottom; y++)
    for (int x = extent.left; x < extent.right; x++)
      mask.member.push_back(member(values.value[static_cast<size_t>(y) * values.width + x]));
  return result;
}

// Adds a mask for each value, so that each grows and is filtered by its own size. Adds one mask for all where there are
// very many values, or where their extents overlap so much that masks would take far more time than the segmentation.
void add_masks(const Values &values, const Region &box, const std::vector<Extent> &extents, RoiList *list) {
  gint64 samples = 0;
  for (const Extent &e : extents) samples += gint64{e.right - e.left} * (e.bottom - e.top);
  if (extents.size() <= kMostMasks && samples <= kMostOverlap * gint64{values.width} * values.height) {
    for (const Extent &e : extents)
      list->mask.push_back(cut_out(values, box, e, [&](guint16 value) { return value == e.value; }));
    return;
  }
  Extent all;
  std::vector<bool> wanted(kValues);
  for (const Extent &e : extents) {
    all.add(e.left, e.top);
    all.add(e.right - 1, e.bottom - 1);
    wanted[e.value] = true;
  }
  list->mask.push_back(cut_out(values, box, all, [&](guint16 value) { return wanted[value]; }));
}

void add_segmentations(GstAnalyticsRelationMeta *meta, const WantedLabels &wanted, RoiList *list,
                       std::string *trouble) {
  gpointer state = nullptr;
  GstAnalyticsSegmentationMtd segmentation;
  while (
      gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_segmentation_mtd_get_mtd_type(), &segmentation)) {
    gint x, y;
    guint width, height;
    const Ref<GstBuffer> mask(gst_analytics_segmentation_mtd_get_mask(&segmentation, &x, &y, &width, &height));
    if (!mask || !width || !height) continue;
    const auto limited = [](guint v) { return static_cast<int>(std::min<guint>(v, G_MAXINT)); };
    const Region box = {x, y, limited(width), limited(height)};
    Values values;
    const std::string why = read_values(mask.get(), &values);
    if (why.empty()) {
      add_masks(values, box, find_extents(values, segmentation, wanted), list);
    } else {
      *trouble = "a segmentation mask " + why + ": its rectangle is filtered whole";
      list->region.push_back(box);
    }
  }
}

#endif

}  // namespace

GType analytics_meta_api() {
  return GST_ANALYTICS_RELATION_META_API_TYPE;
}

void add_analytics(GstBuffer *buffer, const WantedLabels &wanted, RoiList *list, std::string *trouble) {
  gpointer state = nullptr;
  while (GstMeta *meta = gst_buffer_iterate_meta_filtered(buffer, &state, GST_ANALYTICS_RELATION_META_API_TYPE)) {
    auto *relations = reinterpret_cast<GstAnalyticsRelationMeta *>(meta);
    add_detections(relations, wanted, list);
#ifdef CUDACONV_ANALYTICS_MASKS
    add_segmentations(relations, wanted, list, trouble);
#else
    find_unreadable(relations, list, trouble);
#endif
  }
}

#endif

}  // namespace cudaconv::gst
