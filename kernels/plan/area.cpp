// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/area.h"

#include <algorithm>
#include <numeric>

#include "plan/border.h"
#include "plan/region_rows.h"

namespace cudaconv {

namespace {

// The cost of filtering a rectangle: the pixels that its windows read, plus a constant.
int64_t cost_of(const PixelRect &r, int radius_x, int radius_y) {
  return 512 + (int64_t{r.width()} + 2 * radius_x) * (int64_t{r.height()} + 2 * radius_y);
}

// Joins cells of an area to blocks of whole cells that do not overlap, row by row from the top. `pixels` of a block is
// the bounding box of the pixels of its cells.
class BlockJoiner {
 public:
  // `columns` and `rows`: the size of the grid of cells.
  BlockJoiner(int columns, int rows, int radius_x, int radius_y)
      : columns_(columns),
        radius_x_(radius_x),
        radius_y_(radius_y),
        owner_(static_cast<size_t>(columns) * rows, kNone) {}

  // Cells of a row come from left to right. A block of the row takes the next cell if that is cheaper.
  void add(int column, int row, const PixelRect &pixels) {
    const int left = column > 0 ? owner(column - 1, row) : kNone, added = static_cast<int>(blocks_.size());
    blocks_.push_back({{column, row, column + 1, row + 1}, pixels});
    owner(column, row) = added;
    if (left != kNone) join(left, added);
  }

  // Joins the blocks of a complete row with the blocks above that touch them.
  void end_row(int row) {
    if (row == 0) return;
    for (int column = 0; column < columns_; column++) {
      const int below = owner(column, row), above = owner(column, row - 1);
      if (below != kNone && above != kNone && below != above) join(above, below);
    }
  }

  std::vector<PixelRect> rectangles() const {
    std::vector<PixelRect> list;
    for (const Block &block : blocks_)
      if (!block.pixels.empty()) list.push_back(block.pixels);
    return list;
  }

 private:
  static constexpr int kNone = -1;

  struct Block {
    PixelRect cells, pixels;  // `pixels` is empty once it has been joined with another one
  };

  int64_t cost(const PixelRect &r) const { return cost_of(r, radius_x_, radius_y_); }
  int &owner(int column, int row) { return owner_[static_cast<size_t>(row) * columns_ + column]; }

  // Joins block b to block a, unless that costs more or would overlap another block.
  void join(int a, int b) {
    Block &to = blocks_[a], &from = blocks_[b];
    const PixelRect pixels = to.pixels.hull(from.pixels), cells = to.cells.hull(from.cells);
    if (cost(pixels) > cost(to.pixels) + cost(from.pixels)) return;
    // Calls f(owner) for the cells that do not belong to block a; stops if it returns false.
    const auto each = [&](auto f) {
      for (int row = cells.y0; row < cells.y1; row++)
        for (int column = cells.x0; column < cells.x1; column++) {
          if (row >= to.cells.y0 && row < to.cells.y1 && column == to.cells.x0) column = to.cells.x1;
          if (column < cells.x1 && !f(owner(column, row))) return false;
        }
      return true;
    };
    if (!each([&](int o) { return o == kNone || o == b; })) return;
    each([&](int &o) {
      o = a;
      return true;
    });
    to = {cells, pixels};
    from.pixels = {0, 0, 0, 0};
  }

  const int columns_, radius_x_, radius_y_;
  std::vector<int> owner_;  // block of each cell; a block also owns the empty cells between its cells
  std::vector<Block> blocks_;
};

}  // namespace

Area::Area(int width, int height)
    : width_(width),
      height_(height),
      columns_((width + kCell - 1) / kCell),
      cells_(static_cast<size_t>(columns_) * ((height + kCell - 1) / kCell)) {}

Area::Area(const RegionRows &rows, int width, int height) : Area(width, height) {
  for (int y = 0, end; y < height; y = end) {
    const RegionRows::Row row = rows.row(y);
    for (end = y + 1; end < height && rows.row(end) == row;) end++;
    for (size_t i = row.begin; i < row.end; i++) add({rows.runs()[i].begin, y, rows.runs()[i].end, end});
  }
}

void Area::add(const PixelRect &rect) {
  const PixelRect r = {std::max(rect.x0, 0), std::max(rect.y0, 0), std::min(rect.x1, width_),
                       std::min(rect.y1, height_)};
  if (r.empty()) return;
  bounds_ = empty() ? r : bounds_.hull(r);
  const auto within = [](int v, int cell) { return static_cast<uint8_t>(std::clamp(v - cell * kCell, 0, kCell)); };
  for (int row = r.y0 / kCell; row * kCell < r.y1; row++)
    for (int column = r.x0 / kCell; column * kCell < r.x1; column++) {
      Cell &c = cell(column, row);
      const Cell add = {within(r.x0, column), within(r.y0, row), within(r.x1, column), within(r.y1, row)};
      c = c.x0 == c.x1
              ? add
              : Cell{std::min(c.x0, add.x0), std::min(c.y0, add.y0), std::max(c.x1, add.x1), std::max(c.y1, add.y1)};
    }
}

void Area::add(const Area &other) {
  for (const PixelRect &rect : other.rectangles()) add(rect);
}

std::vector<PixelRect> Area::rectangles() const {
  std::vector<PixelRect> done, above, here;  // above: the rectangles that end with the previous row of cells
  for (int row = bounds_.y0 / kCell; row * kCell < bounds_.y1; row++) {
    here.clear();
    for (int column = bounds_.x0 / kCell; column * kCell < bounds_.x1; column++) {
      const Cell &c = cell(column, row);
      if (c.x0 == c.x1) continue;
      const PixelRect r = {column * kCell + c.x0, row * kCell + c.y0, column * kCell + c.x1, row * kCell + c.y1};
      PixelRect *const left = here.empty() ? nullptr : &here.back();
      if (left && left->x1 == r.x0 && left->y0 == r.y0 && left->y1 == r.y1)
        left->x1 = r.x1;
      else
        here.push_back(r);
    }
    // `here` and `above` are both in order from left to right.
    size_t next = 0;
    for (PixelRect &r : here) {
      while (next < above.size() && above[next].x0 < r.x0) done.push_back(above[next++]);
      if (next == above.size() || above[next].x0 != r.x0 || above[next].x1 != r.x1 || above[next].y1 != r.y0) continue;
      r.y0 = above[next++].y0;
    }
    done.insert(done.end(), above.begin() + static_cast<ptrdiff_t>(next), above.end());
    above.swap(here);
  }
  done.insert(done.end(), above.begin(), above.end());
  return done;
}

std::vector<PixelRect> Area::joined(int radius_x, int radius_y) const {
  const int rows = static_cast<int>(cells_.size()) / std::max(columns_, 1);
  BlockJoiner joiner(columns_, rows, radius_x, radius_y);
  for (int row = bounds_.y0 / kCell; row * kCell < bounds_.y1; row++) {
    for (int column = bounds_.x0 / kCell; column * kCell < bounds_.x1; column++) {
      const Cell &c = cell(column, row);
      if (c.x0 == c.x1) continue;
      joiner.add(column, row, {column * kCell + c.x0, row * kCell + c.y0, column * kCell + c.x1, row * kCell + c.y1});
    }
    joiner.end_row(row);
  }
  std::vector<PixelRect> joined = joiner.rectangles(), plain = rectangles();
  const auto cost = [&](const std::vector<PixelRect> &list) {
    return std::accumulate(list.begin(), list.end(), int64_t{0},
                           [&](int64_t sum, const PixelRect &r) { return sum + cost_of(r, radius_x, radius_y); });
  };
  return cost(joined) < cost(plain) ? joined : plain;
}

Area Area::grown(int radius_x, int radius_y, Border border) const {
  if (radius_x == 0 && radius_y == 0) return *this;
  Area result(width_, height_);
  const auto add = [&](int64_t x0, int64_t y0, int64_t x1, int64_t y1) {
    const auto clip = [](int64_t v, int end) { return static_cast<int32_t>(std::clamp<int64_t>(v, 0, end)); };
    result.add({clip(x0, width_), clip(y0, height_), clip(x1, width_), clip(y1, height_)});
  };
  for (const PixelRect &r : rectangles()) {
    const int64_t x0 = int64_t{r.x0} - radius_x, x1 = int64_t{r.x1} + radius_x;
    const int64_t y0 = int64_t{r.y0} - radius_y, y1 = int64_t{r.y1} + radius_y;
    if (reads_within_window(border)) {
      add(x0, y0, x1, y1);
      continue;
    }
    // A rectangle that wraps more than once covers the whole width or height. So does a rectangle beyond an edge with
    // an unknown border mode.
    const auto all = [border](int64_t begin, int64_t end, int length) {
      return end - begin >= length || (border != Border::Wrap && (begin < 0 || end > length));
    };
    const bool all_x = all(x0, x1, width_), all_y = all(y0, y1, height_);
    for (const int64_t dx : {-int64_t{width_}, int64_t{0}, int64_t{width_}})
      for (const int64_t dy : {-int64_t{height_}, int64_t{0}, int64_t{height_}})
        add(all_x ? 0 : x0 + dx, all_y ? 0 : y0 + dy, all_x ? width_ : x1 + dx, all_y ? height_ : y1 + dy);
  }
  return result;
}

}  // namespace cudaconv
