// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Structuring elements as unions of runs, after Urbach and Wilkinson: extrema of runs of pixels, whose lengths are
// powers of two, are found once for all the places of the element that have such a run.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// 2^level pixels of a row from (x, y) on, counted from the window's upper left corner, and as many below them where it
// has two rows.
struct Chord {
  int x, y, level, rows;
};

// Chords that together are the element whose members are given row by row: the shorter ones first and, of one length,
// those of two rows first. Those that are alike and one above the other become one of two rows if `in_pairs`.
std::vector<Chord> chords_of(const std::vector<uint8_t> &member, int width, int height, bool in_pairs);

// Of an element whose rows are runs about the middle, none longer than one nearer to it, which is what rectangles,
// ellipses and crosses are: how far rows reach either side, by distance from the middle row, up to the farthest that
// has any members. Empty where the pass has another form of element.
std::vector<int> half_widths_of(const Pass &pass);

}  // namespace cudaconv
