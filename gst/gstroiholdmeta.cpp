// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstroiholdmeta.h"

#include <gst/video/video.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace cudaconv::gst {

namespace {

struct HeldRegionsMeta {
  GstMeta meta;
  std::shared_ptr<const RegionsInForce> *held;  // shared by copies of the buffer
};

const GstMetaInfo *meta_info();

void add(GstBuffer *buffer, std::shared_ptr<const RegionsInForce> held) {
  auto *meta = reinterpret_cast<HeldRegionsMeta *>(gst_buffer_add_meta(buffer, meta_info(), nullptr));
  *meta->held = std::move(held);
}

#if GST_CHECK_VERSION(1, 28, 0)

using Matrix = GstVideoMetaTransformMatrix;

Pixel transformed(Pixel from, const Matrix &matrix) {
  gint x = to_int(from.x), y = to_int(from.y);
  gst_video_meta_transform_matrix_point(&matrix, &x, &y);
  return {x, y};
}

// Whether the one rectangle becomes the other, neither turned nor mirrored.
bool is_upright(const Matrix &matrix) {
  const GstVideoRectangle &in = matrix.in_rectangle, &out = matrix.out_rectangle;
  const auto leads = [&](Pixel from, Pixel to) {
    const Pixel got = transformed(from, matrix);
    return got.x == to.x && got.y == to.y;
  };
  return in.w > 0 && in.h > 0 && out.w > 0 && out.h > 0 && leads({in.x, in.y}, {out.x, out.y}) &&
         leads({in.x + in.w, in.y}, {out.x + out.w, out.y}) && leads({in.x, in.y + in.h}, {out.x, out.y + out.h});
}

// The rectangle around what the matrix makes of a region, and a pixel more, since it rounds.
DetectedRegion transformed(DetectedRegion found, const Matrix &matrix) {
  const Region r = upright(found.region);
  Pixel first = {G_MAXINT, G_MAXINT}, end = {G_MININT, G_MININT};
  for (const gint64 x : {gint64{r.x}, gint64{r.x} + r.width})
    for (const gint64 y : {gint64{r.y}, gint64{r.y} + r.height}) {
      const Pixel corner = transformed(Pixel{x, y}, matrix);
      first = {std::min(first.x, corner.x), std::min(first.y, corner.y)};
      end = {std::max(end.x, corner.x), std::max(end.y, corner.y)};
    }
  found.cover = Cover::Joined;
  found.region = rectangle_around(static_cast<double>(first.x - 1), static_cast<double>(first.y - 1),
                                  static_cast<double>(end.x + 1), static_cast<double>(end.y + 1));
  return found;
}

// A mask that is turned or mirrored becomes its rectangle.
RoiList transformed(const RoiList &regions, const Matrix &matrix) {
  if (is_upright(matrix)) {
    const GstVideoRectangle &in = matrix.in_rectangle, &out = matrix.out_rectangle;
    return moved(rescaled(moved(regions, {-gint64{in.x}, -gint64{in.y}}), {in.w, in.h}, {out.w, out.h}),
                 {out.x, out.y});
  }
  RoiList result;
  result.everywhere = regions.everywhere;
  for (const DetectedRegion &found : regions.region) result.region.push_back(transformed(found, matrix));
  for (const auto &found : regions.mask)
    result.region.push_back(transformed(DetectedRegion{*found, found->mask.box}, matrix));
  return result;
}

#endif

FrameSize size_of(const GstVideoInfo &info) {
  return {GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info)};
}

// Where a scaler puts the picture if it adds borders to keep its shape: all of the frame where it needs none.
PicturePlace within_borders(const GstVideoInfo &in, const GstVideoInfo &out) {
  PicturePlace place = {size_of(out), size_of(out), {}};
  gint n, d;  // the shape of the picture, in pixels of the output
  if (!gst_util_fraction_multiply(in.par_n, in.par_d, out.par_d, out.par_n, &n, &d) ||
      !gst_util_fraction_multiply(in.width, in.height, n, d, &n, &d) || n <= 0)
    return place;
  const auto scaled = [](int value, int by, int of) {
    return static_cast<int>(gst_util_uint64_scale_int(static_cast<guint64>(value), by, of));
  };
  place.picture.height = std::min(place.frame.height, scaled(place.frame.width, d, n));
  if (place.picture.height == place.frame.height)
    place.picture.width = std::min(place.frame.width, scaled(place.frame.height, n, d));
  place.corner = {(place.frame.width - place.picture.width) / 2, (place.frame.height - place.picture.height) / 2};
  return place;
}

// A scaler does not tell the transform function of metas whether it adds borders. Where it may, regions cover both.
RoiList scaled(const RoiList &regions, const GstVideoInfo &in, const GstVideoInfo &out) {
  RoiList result = rescaled(regions, size_of(in), size_of(out));
  const PicturePlace place = within_borders(in, out);
  if (place.picture == place.frame || !place.picture.width || !place.picture.height) return result;
  // A pixel more on each side, since scalers round in other ways.
  RoiList bordered = moved(rescaled(regions, size_of(in), place.picture), place.corner - Pixel{1, 1});
  bordered = widened(std::move(bordered), {2, 2}, place.frame);
  for (size_t i = 0; i < result.region.size(); i++) {
    DetectedRegion &found = result.region[i];
    if (found.region.width <= 0 || found.region.height <= 0) continue;
    found.region = joined(found.region, bordered.region[i].region, false);
    found.cover = Cover::Joined;
  }
  result.mask.insert(result.mask.end(), bordered.mask.begin(), bordered.mask.end());
  for (auto &mask : result.mask) {
    auto copy = std::make_shared<RoiMask>(*mask);
    copy->cover = Cover::Joined;
    mask = std::move(copy);
  }
  return result;
}

// How many metas with regions a buffer has as far as the meta `end`; each mtd of an analytics meta counts.
gsize count_marks(GstBuffer *buffer, const GstMeta *end) {
  gsize count = 0;
  gpointer state = nullptr;
  for (const GstMeta *meta; (meta = gst_buffer_iterate_meta(buffer, &state)) && meta != end;)
    count +=
        is_analytics(meta) ? 1 + analytics_length(meta) : meta->info->api == GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE;
  return count;
}

// Adds the regions in force to `to`. Marks all of the frame where there is no memory.
gboolean transform(GstBuffer *to, GstMeta *meta, GstBuffer *from, GQuark type, gpointer data) {
  std::shared_ptr<const RegionsInForce> held = *reinterpret_cast<HeldRegionsMeta *>(meta)->held;
  try {
    RegionsInForce made = *held;
    made.mixed |= count_marks(to, nullptr) > count_marks(from, meta);
    if (GST_VIDEO_META_TRANSFORM_IS_SCALE(type)) {
      const auto *scale = static_cast<GstVideoMetaTransform *>(data);
      made.regions = scaled(held->regions, *scale->in_info, *scale->out_info);
#if GST_CHECK_VERSION(1, 28, 0)
    } else if (GST_VIDEO_META_TRANSFORM_IS_MATRIX(type)) {
      made.regions = transformed(held->regions, *static_cast<Matrix *>(data));
#endif
    } else if (!GST_META_TRANSFORM_IS_COPY(type)) {
      return FALSE;
    }
    held = std::make_shared<const RegionsInForce>(std::move(made));
  } catch (const std::exception &) {
    static const auto all = std::make_shared<const RegionsInForce>(RegionsInForce{{{}, {}, true}, {}, {}});
    held = all;
  }
  add(to, std::move(held));
  return TRUE;
}

const GstMetaInfo *meta_info() {
  static const GstMetaInfo *const info = gst_meta_register(
      held_regions_api(), "RoiHoldMeta", sizeof(HeldRegionsMeta),
      [](GstMeta *meta, gpointer, GstBuffer *) -> gboolean {
        reinterpret_cast<HeldRegionsMeta *>(meta)->held = new std::shared_ptr<const RegionsInForce>();
        return TRUE;
      },
      [](GstMeta *meta, GstBuffer *) { delete reinterpret_cast<HeldRegionsMeta *>(meta)->held; }, transform);
  return info;
}

}  // namespace

GType held_regions_api() {
  // With these tags elements treat the meta as they treat GstVideoRegionOfInterestMeta.
  static const gchar *tags[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_ORIENTATION_STR, GST_META_TAG_VIDEO_SIZE_STR,
                                nullptr};
  static const GType type = gst_meta_api_type_register("RoiHoldMetaAPI", tags);
  return type;
}

SeenAnalytics analytics_lengths(GstBuffer *buffer, const GstMeta *end) {
  SeenAnalytics lengths;
  gpointer state = nullptr;
  for (const GstMeta *meta; (meta = gst_buffer_iterate_meta(buffer, &state)) && meta != end;)
    if (is_analytics(meta)) lengths.push_back(analytics_length(meta));
  return lengths;
}

void set_held_regions(GstBuffer *buffer, RegionsInForce held) {
  auto kept = std::make_shared<const RegionsInForce>(std::move(held));
  while (GstMeta *before = gst_buffer_get_meta(buffer, held_regions_api())) gst_buffer_remove_meta(buffer, before);
  add(buffer, std::move(kept));
}

const RegionsInForce &held_regions(const GstMeta *meta) {
  return **reinterpret_cast<const HeldRegionsMeta *>(meta)->held;
}

const RegionsInForce *get_held_regions(GstBuffer *buffer) {
  const GstMeta *meta = gst_buffer_get_meta(buffer, held_regions_api());
  return meta ? &held_regions(meta) : nullptr;
}

// The metas of a buffer are in the order in which elements have added them, and copies of the buffer keep it.
SeenAnalytics seen_analytics(GstBuffer *buffer, const RegionsInForce *held) {
  if (!held || held->mixed) return {};
  const size_t before = analytics_lengths(buffer, gst_buffer_get_meta(buffer, held_regions_api())).size();
  return before == held->analytics.size() ? held->analytics : SeenAnalytics();  // an element has dropped one: which?
}

}  // namespace cudaconv::gst
