// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Structuring elements as unions of runs of pixels (chords), after Urbach and Wilkinson. Run lengths are powers of two;
// the extremum of a run is computed once and used for every run of that length in the element.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// A run of 2^level pixels that begins at (x, y), counted from the window's upper left corner. If rows is 2, also the
// run directly below it.
struct Chord {
  int x, y, level, rows;
};

// Chords whose union is the element with these members, given row by row. Shorter chords come first; among equal
// lengths, chords of two rows come first. With `in_pairs`, two equal chords one above the other become one of two rows.
std::vector<Chord> chords_of(const std::vector<uint8_t> &member, int width, int height, bool in_pairs);

// Half widths of the rows at distance i from the middle row, up to the last row with members. Each row must be one run,
// centred on the middle column, and no longer than the row nearer the middle. Rectangles, ellipses and crosses are like
// this; the result is empty for other elements.
std::vector<int> half_widths_of(const Pass &pass);

}  // namespace cudaconv
