// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sets of pixels of a part: the pixels that active regions need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "filter.h"

namespace cudaconv {

class RegionRows;

// A rectangle of pixels: columns x0 ... x1 - 1 of rows y0 ... y1 - 1.
template <typename V>
struct Rect {
  V x0, y0, x1, y1;

  V width() const { return x1 - x0; }
  V height() const { return y1 - y0; }
  bool empty() const { return x0 >= x1 || y0 >= y1; }
  int64_t pixels() const { return empty() ? 0 : int64_t{width()} * height(); }
  bool meets(const Rect &o) const { return x0 < o.x1 && o.x0 < x1 && y0 < o.y1 && o.y0 < y1; }
  // The least rectangle that holds both; neither is empty.
  Rect hull(const Rect &o) const {
    return {std::min(x0, o.x0), std::min(y0, o.y0), std::max(x1, o.x1), std::max(y1, o.y1)};
  }
};
using PixelRect = Rect<int32_t>;

// A set of pixels, kept as one rectangle for each cell of a grid. Adding pixels to a cell grows its rectangle. So the
// size of a set is bounded, but it may hold more pixels than were added.
class Area {
 public:
  static constexpr int kCell = 32;  // pixels

  Area(int width, int height);                          // empty
  Area(const RegionRows &rows, int width, int height);  // the pixels of the runs

  void add(const PixelRect &rect);  // cut off at the edges
  void add(const Area &other);      // "other" has the same size

  bool empty() const { return bounds_.empty(); }
  const PixelRect &bounds() const { return bounds_; }
  int width() const { return width_; }
  int height() const { return height_; }

  // Disjoint rectangles that hold the set, joined where cells fit together.
  std::vector<PixelRect> rectangles() const;

  // Disjoint rectangles that hold the set, for windows of these radii. They are rectangles(), joined where filtering
  // the joined rectangle, with the pixels between, reads fewer pixels than filtering each.
  std::vector<PixelRect> joined(int radius_x, int radius_y) const;

  // The pixels that windows of these radii read to filter the set. With Border::Wrap, windows continue at the opposite
  // side of the part. If reads_within_window() is true for the mode, samples that replace samples outside are within
  // the grown set. With other modes, windows that cross an edge read whole rows or columns.
  Area grown(int radius_x, int radius_y, Border border) const;

 private:
  struct Cell {
    uint8_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // empty if x0 == x1
  };
  Cell &cell(int column, int row) { return cells_[static_cast<size_t>(row) * columns_ + column]; }
  const Cell &cell(int column, int row) const { return cells_[static_cast<size_t>(row) * columns_ + column]; }

  int width_, height_;  // pixels
  int columns_;
  std::vector<Cell> cells_;
  PixelRect bounds_ = {0, 0, 0, 0};
};

// The pixels of a part that a launch works on: rectangles, and the rectangle around them. Both may be empty.
struct PartArea {
  int width;  // of the part, in pixels
  std::vector<PixelRect> rectangles;
  PixelRect bounds;
};

}  // namespace cudaconv
