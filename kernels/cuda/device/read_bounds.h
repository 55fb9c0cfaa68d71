// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How many of the sums that the first of two kernels makes the second one needs.
#pragma once

#include <algorithm>

#include "cuda/launchers.h"
#include "plan/border.h"

namespace cudaconv {

// The pixels that windows of these radii read for the pixels of a part to work on, as a rectangle.
inline PixelRect read_bounds(const PartParams &part, const FrameParams::Host &host, Border border, int radius_x,
                             int radius_y) {
  if (!host.area) return {0, 0, part.width, part.height};
  PixelRect r = host.area->bounds;
  if (r.empty()) return r;
  r = {r.x0 - radius_x, r.y0 - radius_y, r.x1 + radius_x, r.y1 + radius_y};
  // With other modes a sample beyond an edge may stand for any of the row or column.
  if (!reads_within_window(border)) {
    if (r.x0 < 0 || r.x1 > part.width) r.x0 = 0, r.x1 = part.width;
    if (r.y0 < 0 || r.y1 > part.height) r.y0 = 0, r.y1 = part.height;
  }
  return {std::max(r.x0, 0), std::max(r.y0, 0), std::min(r.x1, part.width), std::min(r.y1, part.height)};
}

}  // namespace cudaconv
