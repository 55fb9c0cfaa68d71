// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A naive mosaic, block by block, by its definition.
#pragma once

#include "reference.h"

namespace cudaconv::reference {

struct Mosaic {
  int block_x, block_y;  // size of a block, in pixels of the frame
  const Regions *regions;
  int columns, rows;   // of the buffer
  int unit_x, unit_y;  // columns and rows of the largest pixel of any plane, rows of both fields together
  // Pixel (x, y) of the channel begins at column x * 2^sub_x and row first_row + y * 2^sub_y * row_step of the buffer.
  int sub_x, sub_y, first_row, row_step;
};

// Returns the channel with the mean of its block for each pixel in a box.
Channel mosaic(const Channel &in, const Mosaic &m);

}  // namespace cudaconv::reference
