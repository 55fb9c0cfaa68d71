// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The mosaic, block by block as it is defined.
#pragma once

#include "reference.h"

namespace cudaconv::reference {

struct Mosaic {
  int size;  // of a block, pixels of the frame
  const Regions *regions;
  int columns, rows;   // of the buffer
  int unit_x, unit_y;  // columns and rows that the largest pixel of any plane has, rows of both fields together
  // Pixel (x, y) of the channel begins with column x * 2^sub_x, row first_row + y * 2^sub_y * row_step of the buffer.
  int sub_x, sub_y, first_row, row_step;
};

// Each pixel that lies in a box becomes the mean of its block.
Channel mosaic(const Channel &in, const Mosaic &m);

}  // namespace cudaconv::reference
