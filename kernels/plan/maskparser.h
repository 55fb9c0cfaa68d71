// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "filter.h"

namespace cudaconv {

// Reads a mask as the user writes it. Rows end in ';' or a newline. Blanks or a comma separate numbers; a number may be
// a fraction, 1/9. Brackets of any paired kind may be around each row, around all rows, or both: [[0, -1, 0], [-1, 5,
// -1], [0, -1, 0]]. GStreamer's types may be before values. A bare list of 9, 25 or 49 numbers is a square; with
// brackets or a final ';' it is a row. ImageMagick's kernels, "3x3: 0,1,0 1,1,1 0,1,0", are read, too: '-' and nan are
// 0, and the origin must be the centre. Both sides are odd, at most 31. The decimal point is '.' in every locale.
// Throws Error{Settings} that names the row and column, both counted from 1.
Coefficients parse_coefficients(const std::string &text);

// A region as the user writes it: x, y, width and height of a rectangle, or x and y of each point of a polygon.
struct WrittenRegion {
  struct Number {
    double value;
    bool percent;  // of the picture's width or height; else pixels

    bool operator==(const Number &o) const { return value == o.value && percent == o.percent; }
  };
  std::vector<Number> number;

  bool operator==(const WrittenRegion &o) const { return number == o.number; }
  bool is_polygon() const { return number.size() > 4; }
};

// Reads regions "x,y,width,height; x,y x,y x,y; ...", with the separators of masks. Numbers may be fractions or
// percentages, 25%; x and y may be negative. Throws Error{Settings} that names the region and the number, both counted
// from 1.
std::vector<WrittenRegion> parse_regions(const std::string &text);

}  // namespace cudaconv
