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

// Cells that are filtered together, as a block of whole cells. Blocks do not overlap.
struct Block {
  PixelRect cells, pixels;  // `pixels`: around those of its cells; empty once the block has been joined to another one
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
  const auto cost = [&](const PixelRect &r) { return cost_of(r, radius_x, radius_y); };
  const auto total = [&](const std::vector<PixelRect> &list) {
    return std::accumulate(list.begin(), list.end(), int64_t{0},
                           [&](int64_t sum, const PixelRect &r) { return sum + cost(r); });
  };
  constexpr int kNone = -1;
  std::vector<Block> blocks;
  std::vector<int> owners(cells_.size(), kNone);  // the block of each cell; it has empty cells between its cells, too
  const auto owner = [&](int column, int row) -> int & { return owners[static_cast<size_t>(row) * columns_ + column]; };
  // Joins block b to block a, unless that costs more or would overlap another block.
  const auto join = [&](int a, int b) {
    Block &to = blocks[a], &from = blocks[b];
    const Block both = {to.cells.hull(from.cells), to.pixels.hull(from.pixels)};
    if (cost(both.pixels) > cost(to.pixels) + cost(from.pixels)) return;
    for (const bool takes : {false, true})
      for (int row = both.cells.y0; row < both.cells.y1; row++)
        for (int column = both.cells.x0; column < both.cells.x1; column++) {
          int &o = owner(column, row);
          if (takes)
            o = a;
          else if (o != kNone && o != a && o != b)
            return;
        }
    to = both;
    from.pixels = {0, 0, 0, 0};
  };
  for (int row = bounds_.y0 / kCell; row * kCell < bounds_.y1; row++) {
    for (int column = bounds_.x0 / kCell; column * kCell < bounds_.x1; column++) {
      const Cell &c = cell(column, row);
      if (c.x0 == c.x1) continue;
      const int left = column > 0 ? owner(column - 1, row) : kNone, added = static_cast<int>(blocks.size());
      const int x = column * kCell, y = row * kCell;
      blocks.push_back({{column, row, column + 1, row + 1}, {x + c.x0, y + c.y0, x + c.x1, y + c.y1}});
      owner(column, row) = added;
      if (left != kNone) join(left, added);
    }
    // The blocks of the row with those above that touch them.
    for (int column = 0; row > 0 && column < columns_; column++) {
      const int below = owner(column, row), above = owner(column, row - 1);
      if (below != kNone && above != kNone && below != above) join(above, below);
    }
  }
  std::vector<PixelRect> joined;
  for (const Block &block : blocks)
    if (!block.pixels.empty()) joined.push_back(block.pixels);
  std::vector<PixelRect> plain = rectangles();
  return total(joined) < total(plain) ? joined : plain;
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
