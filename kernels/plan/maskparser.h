// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "filter.h"

namespace cudaconv {

// Reads a mask as the user writes it: rows end in ';' or a newline, and numbers are separated by blanks or a comma and
// may be fractions, 1/9. Masks may also be written as other programs print matrices: with brackets of any paired kind
// around each row, around all rows, or both, as in [[0, -1, 0], [-1, 5, -1], [0, -1, 0]], and with GStreamer's types
// before values. A bare list of 9, 25 or 49 numbers is a square; with brackets or a final ';' it is a row.
// ImageMagick's kernels are read too, "3x3: 0,1,0 1,1,1 0,1,0": '-' and nan are 0, and the origin is the centre. Both
// sides are odd, at most 31. The decimal point is '.' in every locale. Throws Error{Settings} that names the row and
// column, both counted from 1.
Coefficients parse_coefficients(const std::string &text);

// Reads rectangles "x, y, width, height; ..." in whole pixels, separated like the numbers of a mask. x and y may be
// negative. Throws Error{Settings} that names the rectangle and the number, both counted from 1.
std::vector<Region> parse_regions(const std::string &text);

}  // namespace cudaconv
