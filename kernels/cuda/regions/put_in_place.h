// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The pixels that lie in regions go from frames of results to their places in the frame.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/area.h"
#include "plan/plan.h"
#include "plan/region_work.h"

namespace cudaconv {

constexpr int kMostResults = 4;  // frames of results that one launch takes pixels from

// Pixels of one cell of a part, a square of Area::kCell pixels: those of rows y0 ... y1 - 1 and columns x0 ... x1 - 1
// of the cell, or of them those that have a bit.
struct SelectedCell {
  int32_t x, y;        // of its corner, pixels of the part
  int32_t first_word;  // of a word of bits for each of its rows, from the left; -1: all pixels
  uint8_t part;        // of the plan
  uint8_t result;      // which frame of results
  uint8_t x0, y0, x1, y1;
};

// What is copied in one launch. Where regions of several frames of results overlap, those added last count.
class Selection {
 public:
  void add(const Plan &plan, const RegionWork &work, int result);

  const std::vector<SelectedCell> &cells() const { return cells_; }
  const std::vector<uint32_t> &bits() const { return bits_; }

 private:
  static constexpr int kMostParts = 2 * kMaxPlanes;

  void add_rect(int part, int result, int column, int row, const PixelRect &rect);
  uint32_t *bits_of(SelectedCell &cell);

  // Of each part, by place: the number of the cell there that was added last, and 1; and of each cell, that of the one
  // before it at its place.
  std::vector<int32_t> latest_[kMostParts];
  int across_[kMostParts] = {};  // places of a row
  std::vector<int32_t> before_;
  std::vector<SelectedCell> cells_;
  std::vector<uint32_t> bits_;
};

// Enqueues the copy of lists from pinned host memory, by a kernel where they are short: what the copy engine takes to
// begin is longer than what they take on the bus. Addresses are multiples of 16 bytes. Throws Error{Device}.
void launch_fetch(const uint8_t *host, uint8_t *device, size_t bytes, cudaStream_t stream);

// Enqueues the copy of `count` cells, which are in device memory with their bits. All frames are of the plan's layout.
// Throws Error{Device}.
void launch_put_in_place(const Plan &plan, const SelectedCell *cells, size_t count, const uint32_t *bits,
                         const std::vector<FrameView> &results, const FrameView &frame, cudaStream_t stream);

}  // namespace cudaconv
