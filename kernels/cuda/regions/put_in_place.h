// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Copies the pixels in regions from frames of results to their places in the frame, and blends pixels that fade.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/launch_params.h"
#include "plan/area.h"
#include "plan/plan.h"
#include "plan/region_work.h"

namespace cudaconv {

constexpr int kMostResults = 8;  // most frames of results in one launch

// The selected pixels of one cell of a part, a square of Area::kCell pixels: rows y0 ... y1 - 1 and columns x0 ... x1 -
// 1 of the cell. If the cell has bits, only pixels whose bit is set.
struct SelectedCell {
  int32_t x, y;        // the cell's corner, in pixels of the part
  int32_t first_word;  // index of the cell's bits, a word for each row, from the left; -1: all pixels
  // Index of the original's shares in the cell's pixels, row by row, see plan/feather.h; -1: no pixel fades.
  int32_t first_share;
  uint8_t part;    // index of the part
  uint8_t result;  // index of the frame of results
  uint8_t x0, y0, x1, y1;
};

// A word with ones for columns x0 ... x1 - 1 of a cell.
CUDACONV_HOST_DEVICE inline uint32_t columns_of_cell(int x0, int x1) {
  return (x1 < Area::kCell ? 1u << x1 : 0) - (1u << x0);
}

// A rectangle of pixels of a part to copy from one of the frames of results.
struct SelectedRect {
  PixelRect pixels;
  uint8_t part, result;
};

constexpr int kMostSelectedRects = 16;  // what the parameters of a launch hold

// The pixels that one launch copies: as rectangles if they are few, which need not be brought to the device, else as
// cells.
class Selection {
 public:
  // `works`: the pixels of each frame of results, from `first_result` on. Where they overlap, the later frames count. A
  // work that fades is alone: it is blended with what the works before it have put in place.
  Selection(const Plan &plan, const std::vector<const RegionWork *> &works, int first_result = 0);

  const std::vector<SelectedRect> &rects() const { return rects_; }
  const std::vector<SelectedCell> &cells() const { return cells_; }
  const std::vector<uint32_t> &bits() const { return bits_; }
  const std::vector<uint8_t> &shares() const { return shares_; }

 private:
  bool add_rects(const Plan &plan, const RegionWork &work, int result);
  bool rects_overlap() const;
  void add_cells(const Plan &plan, const RegionWork &work, int result);
  SelectedCell &add_to_cell(int part, int result, int column, int row, const PixelRect &rect);
  void add_shares(SelectedCell &cell, const PixelRect &rect, const uint8_t *shares);
  uint32_t *bits_of(SelectedCell &cell);

  // latest_[part][place] is 1 + the index of the cell that was added last at that place, 0 if there is none;
  // before_[cell] is the same for the one added before it at its place.
  std::vector<int32_t> latest_[kMaxParts];
  int across_[kMaxParts] = {};  // places in a row of cells
  std::vector<int32_t> before_;
  std::vector<SelectedRect> rects_;
  std::vector<SelectedCell> cells_;
  std::vector<uint32_t> bits_;
  std::vector<uint8_t> shares_;
};

// Enqueues the copy of lists from pinned host memory. Short ones are copied by a kernel, since the copy engine takes
// longer to start than they take on the bus. Addresses are multiples of 16 bytes. Throws Error{Device}.
void launch_fetch(const uint8_t *host, uint8_t *device, size_t bytes, cudaStream_t stream);

// Lists of selections in device memory.
struct SelectedLists {
  const SelectedCell *cells = nullptr;
  const uint32_t *bits = nullptr;
  const uint8_t *shares = nullptr;  // nullptr: pixels that fade are copied too
};

// Enqueues the copy of a selection, whose lists, if it has any, are in device memory. All frames have the plan's
// layout. Throws Error{Device}.
void launch_put_in_place(const Plan &plan, const Selection &selection, const SelectedLists &lists,
                         const std::vector<FrameView> &results, const FrameView &frame, cudaStream_t stream);

}  // namespace cudaconv
