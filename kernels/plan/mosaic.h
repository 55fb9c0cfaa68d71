// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The positions of the blocks of Op::Mosaic.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// How blocks divide the rows or the columns of a part. `size` is a block's side in pixels of the frame; neighbouring
// pixels of the part are 2^log_step of those apart. Where each pixel of the part is a block by itself, `size` is 1.
struct MosaicAxis {
  int32_t size = 1, log_step = 0;

  // The most pixels of the part that a block has along this axis.
  int length() const { return (size + (1 << log_step) - 1) >> log_step; }
};

// One of the disjoint rectangles of pixels of a part that are each cut into blocks by themselves.
struct MosaicBox {
  int32_t x, y, width, height;
  int32_t phase_x, phase_y;  // distance from the box's first block to its first pixel, in pixels of the frame
};

struct MosaicPart {
  MosaicAxis x, y;
  std::vector<MosaicBox> boxes;
};

// How many pixels of a box come before block `block`, which may be the number of blocks.
CUDACONV_HOST_DEVICE inline int mosaic_begin(const MosaicAxis &axis, int phase, int block, int length) {
  if (block <= 0) return 0;
  const int begin = (block * axis.size - phase + (1 << axis.log_step) - 1) >> axis.log_step;
  return begin < length ? begin : length;
}

// The block that holds pixel `pixel` of a box.
CUDACONV_HOST_DEVICE inline int mosaic_block(const MosaicAxis &axis, int phase, int pixel) {
  return (phase + (pixel << axis.log_step)) / axis.size;
}

// The number of blocks of a box; none of them is empty.
CUDACONV_HOST_DEVICE inline int mosaic_blocks(const MosaicAxis &axis, int phase, int length) {
  return mosaic_block(axis, phase, length - 1) + 1;
}

// The boxes of each part of a plan whose only pass is a mosaic. A pixel of a subsampled plane belongs to the block that
// its first pixel of the frame lies in. Where regions are inverted or not active, the whole frame is one box. Otherwise
// each region has one, the rectangle around it; regions that share pixels of a plane share a box, the rectangle around
// both. For this, rows of both fields count as one frame, so that all parts have the same boxes. Blocks begin at the
// box's top left corner, also where that lies outside the frame.
//
// n regions of about the same size take O(n log n), others at most O(n^2) comparisons, some 50 ms for 10,000.
std::vector<MosaicPart> mosaic_parts(const Regions &regions, const Plan &plan);

}  // namespace cudaconv
