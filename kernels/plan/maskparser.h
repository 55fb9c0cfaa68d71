// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "filter.h"

namespace cudaconv {

// Reads a mask as the user writes it: rows end in ';' or a newline, numbers are separated by blanks or a comma, and may
// be fractions, 1/9. Or as other programs print matrices: each row in brackets, or all of them, or both, of any kind
// that has a pair, as in [[0, -1, 0], [-1, 5, -1], [0, -1, 0]], and with GStreamer's types before values. One row of 9,
// 25 or 49 numbers is taken as a square. Both sides are odd, at most 31. The decimal point is '.' in every locale.
// Throws Error{Settings} that names the row and column, both counted from 1.
Coefficients parse_coefficients(const std::string &text);

// Reads rectangles "x, y, width, height; ..." in pixels, in whole numbers separated as those of a mask are. x and y may
// be negative. Throws Error{Settings} that names the rectangle and the number, both counted from 1.
std::vector<Region> parse_regions(const std::string &text);

}  // namespace cudaconv
