// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames as cairo draws them.
#pragma once

#include <cairo.h>
#include <gst/video/video.h>

#include <memory>
#include <string>
#include <vector>

#include "outlines.h"

namespace tune {

struct ReleaseSurface {
  void operator()(cairo_surface_t *surface) const { cairo_surface_destroy(surface); }
};
using Surface = std::unique_ptr<cairo_surface_t, ReleaseSurface>;

// One frame before and after the filter.
struct Picture {
  Surface before, after;  // `after` is null where the element gave nothing
  int width = 0, height = 0;
  double pixel_aspect = 1;  // width of a pixel over its height
  std::string format;
  GstClockTime time = GST_CLOCK_TIME_NONE;
  std::vector<Outline> outlines;  // of the regions in its metas
};

// Converts frames to surfaces.
class Converter {
 public:
  Converter() = default;
  ~Converter() { set_up(nullptr); }
  Converter(const Converter &) = delete;
  // Null where the frame cannot be read.
  Surface convert(GstSample *sample);

 private:
  void set_up(const GstVideoInfo *info);

  GstVideoInfo info_;
  GstVideoConverter *converter_ = nullptr;
};

}  // namespace tune
