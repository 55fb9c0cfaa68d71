// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Converts polygons to pixels of the frame.
#pragma once

#include <memory>
#include <vector>

#include "cancellation.h"
#include "plan/regions.h"

namespace cudaconv {

// A position in the frame. The centre of the first pixel is 0.5, 0.5. Coordinates are rounded to 2^-16 of a pixel.
struct Point {
  double x, y;
};

// Whether all points are on one line, so that they enclose nothing.
bool are_on_a_line(const std::vector<Point> &points);

// The pixels of a frame whose centres are in the polygon, by the even-odd rule. A centre on an edge counts if the
// polygon is to the right of it or below. `grow` adds pixels on each side: this fraction of the width and height of the
// polygon's box. `box` of the result grows, too. If it grows by more than 32768 pixels, the whole box replaces the
// polygon. Throws Error{Cancelled}.
std::shared_ptr<const RegionPixels> polygon_pixels(const std::vector<Point> &points, double grow, int width, int height,
                                                   const Cancellation &cancellation = Cancellation(nullptr));

}  // namespace cudaconv
