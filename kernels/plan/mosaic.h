// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The positions of the blocks of Op::Mosaic.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

struct Regions;

// How blocks divide the rows or the columns of a part. `size` is a block's side in pixels of the frame. Neighbouring
// pixels of the part are 2^log_step pixels of the frame apart. `size` is 1 if each pixel of the part is a block.
struct MosaicAxis {
  int32_t size = 1, log_step = 0;

  // The most pixels of the part that a block has along this axis.
  int length() const { return (size + (1 << log_step) - 1) >> log_step; }
};

// A rectangle of pixels of a part that is cut into blocks, independently of other boxes. Boxes are disjoint.
struct MosaicBox {
  int32_t x, y, width, height;
  int32_t phase_x, phase_y;  // distance from the box's first block to its first pixel, in pixels of the frame
};

struct MosaicPart {
  MosaicAxis x, y;
  std::vector<MosaicBox> boxes;
};

// The number of pixels of a box before block `block`, which may be the number of blocks.
CUDACONV_HOST_DEVICE inline int mosaic_begin(const MosaicAxis &axis, int phase, int block, int length) {
  if (block <= 0) return 0;
  const int begin = (block * axis.size - phase + (1 << axis.log_step) - 1) >> axis.log_step;
  return begin < length ? begin : length;
}

// The block that holds pixel `pixel` of a box.
CUDACONV_HOST_DEVICE inline int mosaic_block(const MosaicAxis &axis, int phase, int pixel) {
  return (phase + (pixel << axis.log_step)) / axis.size;
}

// The number of blocks of a box. No block is empty.
CUDACONV_HOST_DEVICE inline int mosaic_blocks(const MosaicAxis &axis, int phase, int length) {
  return mosaic_block(axis, phase, length - 1) + 1;
}

// The boxes of each part of a plan whose only pass is a mosaic. A pixel of a subsampled plane belongs to the block of
// its first pixel of the frame. If regions are inverted or not active, the whole frame is one box. Otherwise the
// rectangle around each region is a box; regions that share pixels of a plane share a box, the rectangle around both.
// For this, rows of both fields count as one frame, so that all parts have the same boxes. Blocks begin at the box's
// top left corner, even if it is outside the frame. Where regions have a feather, their rectangles have it too, rounded
// up to whole blocks at the left and at the top.
//
// n regions take at most O(n^2) comparisons: about 50 ms for 10,000 regions.
std::vector<MosaicPart> mosaic_parts(const Regions &regions, const Plan &plan);

}  // namespace cudaconv
