// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Structuring elements as unions of runs of pixels (chords), after Urbach and Wilkinson. Run lengths are powers of two;
// the extremum of a run is found once and used wherever the element has such a run.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// A run of 2^level pixels that begins at (x, y), counted from the window's upper left corner; with two rows, also the
// run directly below it.
struct Chord {
  int x, y, level, rows;
};

// Chords whose union is the element with these members, given row by row. They are sorted: shorter ones first and,
// among equal lengths, those of two rows first. With `in_pairs`, two equal chords one above the other become one of two
// rows.
std::vector<Chord> chords_of(const std::vector<uint8_t> &member, int width, int height, bool in_pairs);

// Half widths by row, for elements whose rows are runs centred on the middle column that never get longer away from the
// middle row, such as rectangles, ellipses and crosses: how far the row at distance i from the middle row reaches to
// either side, up to the last row with members. Empty for other elements.
std::vector<int> half_widths_of(const Pass &pass);

}  // namespace cudaconv
