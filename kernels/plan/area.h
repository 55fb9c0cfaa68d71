// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which pixels of a part are worked on where regions are in force.
#pragma once

#include <cstdint>
#include <vector>

#include "filter.h"

namespace cudaconv {

class RegionRows;

// Pixels x0 ... x1 - 1 of rows y0 ... y1 - 1.
struct PixelRect {
  int32_t x0, y0, x1, y1;

  int width() const { return x1 - x0; }
  int height() const { return y1 - y0; }
  bool empty() const { return x0 >= x1 || y0 >= y1; }
  int64_t pixels() const { return empty() ? 0 : int64_t{width()} * height(); }
};

// A set of pixels, kept as one rectangle for each cell of a grid: what is added to a cell makes that rectangle larger.
// A set therefore has a bounded size whatever it was made of, and may hold somewhat more than was added.
class Area {
 public:
  static constexpr int kCell = 32;  // pixels

  Area(int width, int height);                          // empty
  Area(const RegionRows &rows, int width, int height);  // what the runs hold

  void add(const PixelRect &rect);  // cut off at the edges
  void add(const Area &other);      // of the same size

  bool empty() const { return bounds_.empty(); }
  const PixelRect &bounds() const { return bounds_; }
  int width() const { return width_; }
  int height() const { return height_; }

  // Disjoint rectangles that hold the set, joined where cells fit together.
  std::vector<PixelRect> rectangles() const;

  // Disjoint rectangles that hold the set, for windows that reach so far: rectangles() joined, with pixels between
  // them, where that reads fewer pixels than each of them by itself.
  std::vector<PixelRect> joined(int radius_x, int radius_y) const;

  // The pixels from which windows that reach so far make those of the set. With Border::Wrap windows go on at the other
  // side of the part; for reads_within_window() see border.h; with any other border they reach all of a row or column.
  Area grown(int radius_x, int radius_y, Border border) const;

 private:
  struct Cell {
    uint8_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // empty where x0 == x1
  };
  Cell &cell(int column, int row) { return cells_[static_cast<size_t>(row) * columns_ + column]; }
  const Cell &cell(int column, int row) const { return cells_[static_cast<size_t>(row) * columns_ + column]; }

  int width_, height_;  // pixels
  int columns_;
  std::vector<Cell> cells_;
  PixelRect bounds_ = {0, 0, 0, 0};
};

}  // namespace cudaconv
