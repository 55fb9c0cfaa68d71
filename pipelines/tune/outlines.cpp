// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlines.h"

#include <gst/video/video.h>

#include <algorithm>

namespace tune {

namespace {

// The name of a parameter. A copy of the buffer keeps it, and the roihold gives none to the metas that it adds.
constexpr char kCame[] = "came-with-frame";

bool came_with_frame(GstVideoRegionOfInterestMeta *meta) {
  return gst_video_region_of_interest_meta_get_param(meta, kCame) != nullptr;
}

template <typename F>
void for_each_meta(GstBuffer *buffer, const F &f) {
  gpointer state = nullptr;
  while (GstMeta *meta = gst_buffer_iterate_meta_filtered(buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
    f(reinterpret_cast<GstVideoRegionOfInterestMeta *>(meta));
}

}  // namespace

GstBuffer *note_regions(GstBuffer *buffer) {
  if (!gst_buffer_get_video_region_of_interest_meta(buffer)) return buffer;
  buffer = gst_buffer_make_writable(buffer);
  for_each_meta(buffer, [](GstVideoRegionOfInterestMeta *meta) {
    if (!came_with_frame(meta)) gst_video_region_of_interest_meta_add_param(meta, gst_structure_new_empty(kCame));
  });
  return buffer;
}

std::vector<Outline> outlines_of(GstBuffer *buffer, int width, int height) {
  std::vector<Outline> outlines;
  for_each_meta(buffer, [&](GstVideoRegionOfInterestMeta *meta) {
    // A region may begin left of the picture or above it: these numbers are negative then.
    const gint64 x = static_cast<gint>(meta->x), y = static_cast<gint>(meta->y);
    const auto left = static_cast<double>(std::max<gint64>(x, 0)), top = static_cast<double>(std::max<gint64>(y, 0));
    const auto right = static_cast<double>(std::min<gint64>(x + meta->w, width)),
               bottom = static_cast<double>(std::min<gint64>(y + meta->h, height));
    if (left < right && top < bottom)
      outlines.push_back({{{left, top}, {right, top}, {right, bottom}, {left, bottom}}, !came_with_frame(meta)});
  });
  return outlines;
}

}  // namespace tune
