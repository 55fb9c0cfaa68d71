// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/mosaic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/region_rows.h"

namespace cudaconv {

namespace {

struct Rectangle {
  int64_t x0, y0, x1, y1;
  bool empty() const { return x0 >= x1 || y0 >= y1; }
  double area() const { return static_cast<double>(x1 - x0) * static_cast<double>(y1 - y0); }
};

bool meet(const Rectangle &a, const Rectangle &b) {
  return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
}

Rectangle around(const Rectangle &a, const Rectangle &b) {
  return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}

// `frame`: a region's box in pixels of the frame. `share`: the pixels of the most subsampled plane that it touches;
// boxes that share pixels are joined. Both grow together.
struct Box {
  Rectangle frame, share;
};

// Joins each box, in order, with the earlier boxes that it shares pixels with. A grid of cells finds them: each cell
// lists the boxes that reach into it. A box that grows looks only into the cells of its new part, and keeps its entries
// in the other cells.
class JoinedBoxes {
 public:
  JoinedBoxes(std::vector<Box> boxes, int64_t width, int64_t height)
      : box_(std::move(boxes)), joined_to_(box_.size()), joined_(box_.size()) {
    std::iota(joined_to_.begin(), joined_to_.end(), 0);
    choose_cells(width, height);
    for (size_t i = 0; i < box_.size(); i++) add(static_cast<int>(i));
  }

  std::vector<Rectangle> list() const {
    std::vector<Rectangle> result;
    for (size_t i = 0; i < box_.size(); i++)
      if (!joined_[i]) result.push_back(box_[i].frame);
    return result;
  }

 private:
  struct Entry {
    int box, next;
  };

  // Chooses cells of the average size of boxes. Doubles their sides while there are more than about four for each box.
  void choose_cells(int64_t width, int64_t height) {
    double sum_x = 0, sum_y = 0;
    for (const Box &b : box_) {
      sum_x += static_cast<double>(b.share.x1 - b.share.x0);
      sum_y += static_cast<double>(b.share.y1 - b.share.y0);
    }
    const double n = static_cast<double>(box_.size());
    cell_width_ = std::max<int64_t>(1, static_cast<int64_t>(sum_x / n));
    cell_height_ = std::max<int64_t>(1, static_cast<int64_t>(sum_y / n));
    const auto count = [&](int64_t length, int64_t cell) { return static_cast<double>(ceil_div(length, cell)); };
    while (count(width, cell_width_) * count(height, cell_height_) > 4 * n + 4) {
      cell_width_ *= count(width, cell_width_) > 1 ? 2 : 1;
      cell_height_ *= count(height, cell_height_) > 1 ? 2 : 1;
    }
    columns_ = ceil_div(width, cell_width_);
    first_.assign(columns_ * ceil_div(height, cell_height_), -1);
  }

  int joined(int i) {
    while (joined_to_[i] != i) i = joined_to_[i] = joined_to_[joined_to_[i]];
    return i;
  }

  void add(int i) {
    pending_ = {box_[i].share};
    while (!pending_.empty()) {
      const Rectangle part = pending_.back();
      pending_.pop_back();
      i = enter(i, part);
    }
  }

  // Lists box i in the cells of `part`, a part of the box, and joins it with the boxes that it meets there. Returns the
  // index of the box that box i then belongs to.
  int enter(int i, const Rectangle &part) {
    for (int64_t row = part.y0 / cell_height_; row <= (part.y1 - 1) / cell_height_; row++)
      for (int64_t column = part.x0 / cell_width_; column <= (part.x1 - 1) / cell_width_; column++) {
        int &first = first_[row * columns_ + column];
        bool listed = false;
        for (int e = first; e >= 0; e = entries_[e].next) {
          const int other = joined(entries_[e].box);
          listed |= other == i;
          if (other == i || !meet(box_[other].share, part)) continue;
          // The larger box stays. Its parts that are not listed yet are pending.
          const bool larger = box_[i].share.area() > box_[other].share.area();
          if (!larger) pending_.clear();
          join(larger ? i : other, larger ? other : i);
          if (!larger) return other;
          listed = true;
        }
        if (listed) continue;
        entries_.push_back({i, first});
        first = static_cast<int>(entries_.size()) - 1;
      }
    return i;
  }

  void join(int stays, int goes) {
    const Rectangle old = box_[stays].share, all = around(old, box_[goes].share);
    for (const Rectangle &more : {Rectangle{all.x0, all.y0, all.x1, old.y0}, Rectangle{all.x0, old.y1, all.x1, all.y1},
                                  Rectangle{all.x0, old.y0, old.x0, old.y1}, Rectangle{old.x1, old.y0, all.x1, old.y1}})
      if (!more.empty()) pending_.push_back(more);
    box_[stays] = {around(box_[stays].frame, box_[goes].frame), all};
    joined_to_[goes] = stays;
    joined_[goes] = true;
  }

  std::vector<Box> box_;
  std::vector<int> joined_to_;
  std::vector<bool> joined_;
  std::vector<Rectangle> pending_;
  int64_t cell_width_ = 1, cell_height_ = 1, columns_ = 1;
  std::vector<int> first_;  // first entry of each cell's list, linked by `next`; -1: none
  std::vector<Entry> entries_;
};

Rectangle rectangle_around(const Region &r) {
  const Rectangle upright = {r.x, r.y, int64_t{r.x} + r.width, int64_t{r.y} + r.height};
  if (r.rotation == 0) return upright;
  const double c = std::fabs(std::cos(r.rotation)), s = std::fabs(std::sin(r.rotation));
  const double x = r.x + r.width / 2.0, y = r.y + r.height / 2.0;
  const double reach_x = (r.width * c + r.height * s) / 2, reach_y = (r.width * s + r.height * c) / 2;
  // Less than kLeastOverlap, so that the rectangle has all pixels of the region.
  constexpr double kRounding = kLeastOverlap / 2;
  const auto first = [](double v) { return static_cast<int64_t>(std::floor(v + kRounding)); };
  const auto last = [](double v) { return static_cast<int64_t>(std::ceil(v - kRounding)); };
  return {first(x - reach_x), first(y - reach_y), last(x + reach_x), last(y + reach_y)};
}

std::vector<Rectangle> join_regions(const Regions &regions, const Plan &plan) {
  const int64_t width = plan.layout.width(), height = plan.layout.height();
  // Pixels of the buffer for each pixel of the most subsampled plane, with rows of both fields counted together.
  int64_t unit_x = 1, unit_y = 1;
  for (int p = 0; p < plan.layout.planes; p++) {
    unit_x = std::max(unit_x, int64_t{1} << plan.layout.plane[p].sub_x);
    unit_y = std::max(unit_y, int64_t{1} << plan.layout.plane[p].sub_y);
  }
  if (plan.layout.interlaced) unit_y *= 2;
  const auto clip = [](int64_t v, int64_t end) { return std::clamp<int64_t>(v, 0, end); };
  std::vector<Box> boxes;
  const auto add = [&](const Region &region) {
    const Rectangle r = rectangle_around(region);
    const auto row = [&](int64_t y) { return clip(ceil_div(y - regions.first_row, regions.row_step), height); };
    const Rectangle inside = {clip(r.x0, width), row(r.y0), clip(r.x1, width), row(r.y1)};
    if (region.width <= 0 || region.height <= 0 || inside.empty()) return;
    boxes.push_back({r,
                     {floor_div(inside.x0, unit_x), floor_div(inside.y0, unit_y), ceil_div(inside.x1, unit_x),
                      ceil_div(inside.y1, unit_y)}});
  };
  for (const Region &r : regions.region) add(r);
  for (const RegionMask &m : regions.mask) add({m.box.x, m.box.y, m.box.width, m.box.height});
  for (const auto &pixels : regions.pixels) add(pixels->box);
  if (boxes.empty()) return {};
  return JoinedBoxes(std::move(boxes), ceil_div(width, unit_x), ceil_div(height, unit_y)).list();
}

struct Line {
  int64_t first, step;  // position of a part's first pixel in the frame, and distance to the next pixel
};

int32_t phase_of(const MosaicAxis &axis, int64_t origin, const Line &line, int64_t pixel) {
  if (axis.size == 1) return 0;
  const int64_t at = line.first + pixel * line.step - origin;
  return static_cast<int32_t>(at - floor_div(at, axis.size) * axis.size);
}

// `step` is a power of two, since subsampling is, and fields are every second row.
MosaicAxis make_axis(int size, int64_t step) {
  if (size <= step) return {};
  return {size, ceil_log2(step)};
}

}  // namespace

std::vector<MosaicPart> mosaic_parts(const Regions &regions, const Plan &plan) {
  const Pass &pass = plan.passes[0];
  const int64_t width = plan.layout.width(), height = plan.layout.height();
  const bool by_region = regions.active && !regions.invert;
  std::vector<Rectangle> boxes;
  if (by_region) boxes = join_regions(regions, plan);
  std::vector<MosaicPart> result;
  for (const Plan::Part &part : plan.parts) {
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    const int64_t sub_x = int64_t{1} << layout.sub_x, sub_y = int64_t{1} << layout.sub_y;
    const int64_t row_step = part.row_step * regions.row_step;
    const Line x = {0, sub_x}, y = {regions.first_row + part.first_row * regions.row_step, row_step * sub_y};
    MosaicPart &out = result.emplace_back();
    out.x = make_axis(pass.block_x, x.step);
    out.y = make_axis(pass.block_y, y.step);
    const auto add = [&](int64_t left, int64_t top, int64_t x0, int64_t x1, int64_t y0, int64_t y1) {
      // The last lines of a field may have no chroma, see PlaneLayout::height.
      if (x0 >= x1 || y0 >= y1) return;
      out.boxes.push_back({static_cast<int32_t>(x0), static_cast<int32_t>(y0), static_cast<int32_t>(x1 - x0),
                           static_cast<int32_t>(y1 - y0), phase_of(out.x, left, x, x0), phase_of(out.y, top, y, y0)});
    };
    if (!by_region) add(0, 0, 0, layout.width, 0, part.height);
    // As in region_rows(): the pixels that the box touches, if the box holds any pixel of the field.
    const int64_t rows = ceil_div(height - part.first_row, part.row_step);
    const auto clip = [](int64_t v, int64_t end) { return std::clamp<int64_t>(v, 0, end); };
    for (const Rectangle &r : boxes) {
      const int64_t top = ceil_div(r.y0 - y.first, row_step), bottom = ceil_div(r.y1 - y.first, row_step);
      if (clip(r.x0, width) >= clip(r.x1, width) || clip(top, rows) >= clip(bottom, rows)) continue;
      add(r.x0, r.y0, clip(floor_div(r.x0, sub_x), layout.width), clip(ceil_div(r.x1, sub_x), layout.width),
          clip(floor_div(top, sub_y), part.height), clip(ceil_div(bottom, sub_y), part.height));
    }
  }
  return result;
}

}  // namespace cudaconv
