// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Where the blocks of Op::Mosaic lie.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace cudaconv {

// Blocks along the rows or the columns of a part: `size` is a block's side in pixels of the frame, of which there are
// 2^log_step from one pixel of the part to the next. Where each pixel is a block by itself, `size` is 1.
struct MosaicAxis {
  int32_t size = 1, log_step = 0;

  // The most pixels of the part that a block has.
  int length() const { return (size + (1 << log_step) - 1) >> log_step; }
};

// Disjoint rectangles of pixels of a part, each cut into blocks by itself.
struct MosaicBox {
  int32_t x, y, width, height;
  int32_t phase_x, phase_y;  // from where the box's first block begins to the box's first pixel, in pixels of the frame
};

struct MosaicPart {
  MosaicAxis x, y;
  std::vector<MosaicBox> boxes;
};

// How many pixels of a box come before block `block`, which is at most the number of blocks.
CUDACONV_HOST_DEVICE inline int mosaic_begin(const MosaicAxis &axis, int phase, int block, int length) {
  if (block <= 0) return 0;
  const int begin = (block * axis.size - phase + (1 << axis.log_step) - 1) >> axis.log_step;
  return begin < length ? begin : length;
}

// The block that holds pixel `pixel` of a box.
CUDACONV_HOST_DEVICE inline int mosaic_block(const MosaicAxis &axis, int phase, int pixel) {
  return (phase + (pixel << axis.log_step)) / axis.size;
}

// No block of the box is empty.
CUDACONV_HOST_DEVICE inline int mosaic_blocks(const MosaicAxis &axis, int phase, int length) {
  return mosaic_block(axis, phase, length - 1) + 1;
}

// By part of the plan, whose only pass is a mosaic. A pixel belongs to the block that its first pixel of the frame lies
// in. All of the frame is a box where regions are inverted or not active; else each region has one, the rectangle
// around it, and those that share pixels of a plane have one together, the rectangle around both. Rows of two fields
// count as one there, so that all parts have the same boxes. Blocks begin at the box's top left corner, also where that
// lies outside the frame.
//
// n regions take O(n log n), if they are about of one size. They never take more than O(n^2) comparisons, some 50 ms
// for 10,000.
std::vector<MosaicPart> mosaic_parts(const Regions &regions, const Plan &plan);

}  // namespace cudaconv
