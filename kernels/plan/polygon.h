// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Polygons as pixels of the frame.
#pragma once

#include <memory>
#include <vector>

#include "filter.h"

namespace cudaconv {

// A place in the frame. The centre of its first pixel is 0.5, 0.5. Coordinates count to 2^-16 of a pixel.
struct Point {
  double x, y;
};

// Whether the points enclose nothing because all of them lie on one line.
bool are_on_a_line(const std::vector<Point> &points);

// The pixels of a frame whose centres lie in the polygon by the even-odd rule. A centre on an edge counts where the
// polygon is to the right of it or below. `grow` adds the pixels around them: on each side this fraction of the width
// and height of the polygon's box. `box` of the result grows, too. Where it grows by more than 32768 pixels, the whole
// box takes the polygon's place.
std::shared_ptr<const RegionPixels> polygon_pixels(const std::vector<Point> &points, double grow, int width,
                                                   int height);

}  // namespace cudaconv
