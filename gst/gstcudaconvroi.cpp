// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroi.h"

#include <algorithm>

#include "maskparser.h"

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

Region region_of(const GstVideoRegionOfInterestMeta &meta) {
  const auto limited = [](guint v) { return static_cast<int>(std::min<guint>(v, G_MAXINT)); };
  return {limited(meta.x), limited(meta.y), limited(meta.w), limited(meta.h)};
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

Regions RoiSelector::regions_of(GstBuffer *buffer, const GstVideoInfo &info) const {
  Regions regions = fixed_;
  if (meta_) add_metas(buffer, &regions.region);
  if (GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_ALTERNATE) {
    const int first_row = GST_VIDEO_BUFFER_IS_BOTTOM_FIELD(buffer) ? 1 : 0;
    for (Region &region : regions.region) region = in_field(region, first_row);
  }
  // Nothing of them may be rounded up to a pixel of a subsampled plane.
  const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_FIELD_HEIGHT(&info);
  const auto is_outside = [=](const Region &r) {
    return r.width == 0 || r.height == 0 || r.x >= width || r.y >= height || r.x <= -r.width || r.y <= -r.height;
  };
  regions.region.erase(std::remove_if(regions.region.begin(), regions.region.end(), is_outside), regions.region.end());
  return regions;
}

}  // namespace cudaconv::gst
