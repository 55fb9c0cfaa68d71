// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions as the property `roi` writes them, and as points of the picture.
#pragma once

#include <string>
#include <vector>

namespace tune {

struct Point {
  double x, y;
};

// The corners in turn.
using Region = std::vector<Point>;

// The regions in the text that can be read. Percentages are of the picture's size.
std::vector<Region> regions_of(const std::string &text, int width, int height);
// The text with one more region, in whole pixels and within the picture: a rectangle between two points, or a polygon
// of more. The text itself where that region is empty.
std::string with_region(const std::string &text, const Region &points, int width, int height);

}  // namespace tune
