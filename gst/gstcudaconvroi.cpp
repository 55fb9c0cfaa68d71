// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroi.h"

#include <algorithm>

#include "plan/maskparser.h"

namespace cudaconv::gst {

namespace {

std::vector<std::string> split_types(const std::string &text) {
  std::vector<std::string> types;
  gchar **words = g_strsplit(text.c_str(), ",", -1);
  for (gchar **word = words; *word; word++)
    if (*g_strstrip(*word)) types.emplace_back(*word);
  g_strfreev(words);
  return types;
}

// A detector's region may begin left of the picture or above it: its -5 arrives as 4294967291.
Region region_of(const GstVideoRegionOfInterestMeta &meta) {
  const auto limited = [](guint v) { return static_cast<int>(std::min<guint>(v, G_MAXINT)); };
  return {static_cast<int>(meta.x), static_cast<int>(meta.y), limited(meta.w), limited(meta.h)};
}

bool is_outside(const Region &r, int width, int height) {
  return r.width <= 0 || r.height <= 0 || r.x >= width || r.y >= height || gint64{r.x} + r.width <= 0 ||
         gint64{r.y} + r.height <= 0;
}

// From rows of the frame to those of the field that has rows first_row, first_row + 2, ...
Region in_field(const Region &region, int first_row) {
  const auto field_row = [first_row](gint64 frame_row) { return static_cast<int>((frame_row - first_row + 1) >> 1); };
  const int top = field_row(region.y), bottom = field_row(gint64{region.y} + region.height);
  return {region.x, top, region.width, bottom - top};
}

}  // namespace

RoiSelector::RoiSelector(const RoiSettings &settings) : meta_(settings.meta), types_(split_types(settings.types)) {
  if (!settings.rectangles.empty()) fixed_.region = parse_regions(settings.rectangles);
  fixed_.active = meta_ || !fixed_.region.empty();
  fixed_.ellipse = settings.shape == RoiShape::Ellipse;
  fixed_.invert = settings.invert;
}

bool RoiSelector::wants_type(GQuark type) const {
  const gchar *name = g_quark_to_string(type);
  return types_.empty() || (name && std::find(types_.begin(), types_.end(), name) != types_.end());
}

void RoiSelector::add_metas(GstBuffer *buffer, std::vector<Region> *regions) const {
  gpointer state = nullptr;
  while (const GstMeta *meta =
             gst_buffer_iterate_meta_filtered(buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
    const auto *roi = reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta);
    if (wants_type(roi->roi_type)) regions->push_back(region_of(*roi));
  }
}

std::string RoiSelector::complaint(const GstVideoInfo &info) const {
  const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_HEIGHT(&info);
  const auto outside = [=](const Region &r) { return is_outside(r, width, height); };
  const std::vector<Region> &all = fixed_.region;
  if (all.empty() || meta_ || fixed_.invert || !std::all_of(all.begin(), all.end(), outside)) return {};
  const Region &r = all[0];
  return "nothing is filtered: all rectangles of roi, such as " + std::to_string(r.x) + "," + std::to_string(r.y) +
         "," + std::to_string(r.width) + "," + std::to_string(r.height) + ", lie outside the picture of " +
         std::to_string(width) + "x" + std::to_string(height);
}

Regions RoiSelector::regions_of(GstBuffer *buffer, const GstVideoInfo &info) const {
  Regions regions = fixed_;
  if (meta_) add_metas(buffer, &regions.region);
  if (GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_ALTERNATE) {
    const int first_row = GST_VIDEO_BUFFER_IS_BOTTOM_FIELD(buffer) ? 1 : 0;
    for (Region &region : regions.region) region = in_field(region, first_row);
  }
  // Nothing of them may be rounded up to a pixel of a subsampled plane.
  const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_FIELD_HEIGHT(&info);
  const auto outside = [=](const Region &r) { return is_outside(r, width, height); };
  regions.region.erase(std::remove_if(regions.region.begin(), regions.region.end(), outside), regions.region.end());
  return regions;
}

}  // namespace cudaconv::gst
