// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroi.h"

#include <algorithm>

#include "gstcudaconvanalytics.h"
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

// Coordinates of the meta are unsigned, but regions may begin left of the picture or above it: -5 comes as 4294967291.
Region region_of(const GstVideoRegionOfInterestMeta &meta) {
  const auto limited = [](guint v) { return static_cast<int>(std::min<guint>(v, G_MAXINT)); };
  return {static_cast<int>(meta.x), static_cast<int>(meta.y), limited(meta.w), limited(meta.h)};
}

}  // namespace

FrameSize frame_size(const GstVideoInfo &info) {
  // Both fields have the same number of rows in GStreamer, also where that of the frame is odd.
  const bool fields = GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_ALTERNATE;
  return {GST_VIDEO_INFO_WIDTH(&info), fields ? 2 * GST_VIDEO_INFO_FIELD_HEIGHT(&info) : GST_VIDEO_INFO_HEIGHT(&info)};
}

RoiSelector::RoiSelector(const RoiSettings &settings)
    : meta_(settings.meta), grow_(settings.grow), types_(split_types(settings.types)) {
  if (!settings.rectangles.empty()) fixed_.region = parse_regions(settings.rectangles);
  fixed_.active = meta_ || !fixed_.region.empty();
  fixed_.ellipse = settings.shape == RoiShape::Ellipse;
  fixed_.invert = settings.invert;
}

bool RoiSelector::wants(const char *type) const {
  return types_.empty() || (type && std::find(types_.begin(), types_.end(), type) != types_.end());
}

RoiList RoiSelector::find(GstBuffer *buffer, std::string *trouble) const {
  RoiList list;
  if (!meta_) return list;
  gpointer state = nullptr;
  while (const GstMeta *meta =
             gst_buffer_iterate_meta_filtered(buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
    const auto *roi = reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta);
    if (wants(g_quark_to_string(roi->roi_type))) list.region.push_back(region_of(*roi));
  }
  add_analytics(buffer, {!types_.empty(), [this](const char *label) { return wants(label); }}, &list, trouble);
  return list;
}

std::string RoiSelector::complaint(const GstVideoInfo &info) const {
  const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_HEIGHT(&info);
  const auto outside = [&](const Region &r) { return is_outside(grown(r, grow_), {width, height}); };
  const std::vector<Region> &all = fixed_.region;
  if (all.empty() || meta_ || fixed_.invert || !std::all_of(all.begin(), all.end(), outside)) return {};
  const Region &r = all[0];
  return "nothing is filtered: all rectangles of roi, such as " + std::to_string(r.x) + "," + std::to_string(r.y) +
         "," + std::to_string(r.width) + "," + std::to_string(r.height) + ", lie outside the picture of " +
         std::to_string(width) + "x" + std::to_string(height);
}

RoiSelection RoiSelector::select(const RoiList &found, GstBuffer *buffer, const GstVideoInfo &info) const {
  const FrameSize frame = frame_size(info);
  RoiSelection selection;
  selection.regions = fixed_;
  Regions &regions = selection.regions;
  regions.region.clear();
  if (GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_ALTERNATE) {
    regions.first_row = GST_VIDEO_BUFFER_IS_BOTTOM_FIELD(buffer) ? 1 : 0;
    regions.row_step = 2;
  }
  // Regions outside the frame are dropped here: they would be rounded up to a pixel of a subsampled plane.
  const auto add = [&](const Region &given) {
    const Region region = grown(given, grow_);
    if (is_outside(region, frame)) return;
    regions.region.push_back(region);
    selection.region_side.push_back(std::min(region.width, region.height));
  };
  if (found.everywhere) {
    regions.ellipse = false;
    if (!regions.invert) add({0, 0, frame.width, frame.height});
    return selection;
  }
  std::for_each(fixed_.region.begin(), fixed_.region.end(), add);
  std::for_each(found.region.begin(), found.region.end(), add);
  for (const auto &given : found.mask) {
    const std::shared_ptr<const RoiMask> mask = grow_ > 0 ? grown(*given, grow_, frame) : given;
    if (!mask || is_outside(mask->mask.box, frame)) continue;
    regions.mask.push_back(mask->mask);
    selection.mask_side.push_back(mask->shorter_side);
  }
  return selection;
}

void move_regions(Regions *regions, int dx, int dy) {
  const auto move = [regions, dx, dy](Region *r) {
    const auto within = [](gint64 v) { return static_cast<int>(std::clamp<gint64>(v, G_MININT, G_MAXINT)); };
    r->x = within(gint64{r->x} + dx);
    r->y = within(gint64{r->y} + gint64{dy} * regions->row_step);
  };
  for (Region &r : regions->region) move(&r);
  for (RegionMask &m : regions->mask) move(&m.box);
}

}  // namespace cudaconv::gst
