// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/mosaic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/area.h"
#include "plan/feather.h"
#include "plan/region_rows.h"

namespace cudaconv {

namespace {

using Rectangle = Rect<int64_t>;

// `frame`: a region's box in pixels of the frame. `share`: the pixels of the most subsampled plane that it touches;
// boxes that share pixels are joined. Both grow together.
struct Box {
  Rectangle frame, share;
};

// Removes the boxes that share pixels with `box` from a list, and grows `box` around them. Returns whether there are
// any.
bool take_met(std::vector<Box> *list, Box *box) {
  const Rectangle share = box->share;
  const auto met = std::partition(list->begin(), list->end(), [&](const Box &b) { return !b.share.meets(share); });
  for (auto b = met; b != list->end(); b++) *box = {box->frame.hull(b->frame), box->share.hull(b->share)};
  const bool any = met != list->end();
  list->erase(met, list->end());
  return any;
}

// Joins boxes until none share pixels. Boxes come from the top down. `open` boxes reach below the top of the latest
// box, `closed` boxes do not. Only a box that grows upwards can meet a closed one.
std::vector<Box> join(std::vector<Box> boxes) {
  std::sort(boxes.begin(), boxes.end(), [](const Box &a, const Box &b) { return a.share.y0 < b.share.y0; });
  std::vector<Box> open, closed;
  for (Box box : boxes) {
    const int64_t top = box.share.y0;
    const auto above = std::partition(open.begin(), open.end(), [&](const Box &b) { return b.share.y1 > top; });
    closed.insert(closed.end(), above, open.end());
    open.erase(above, open.end());
    while (take_met(&open, &box) || (box.share.y0 < top && take_met(&closed, &box))) continue;
    open.push_back(box);
  }
  closed.insert(closed.end(), open.begin(), open.end());
  return closed;
}

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

// The rectangle with the pixels that fade around it, and with whole blocks at its left and at its top, so that blocks
// stay where they are.
Rectangle with_feather(const Rectangle &r, const Regions &regions, const Pass &pass) {
  const int64_t reach = Feather{regions.feather, 1, 1}.reach();
  const auto blocks = [reach](int size) { return ceil_div(reach, size) * size; };
  return {r.x0 - blocks(pass.block_x), r.y0 - blocks(pass.block_y), r.x1 + reach, r.y1 + reach};
}

std::vector<Box> join_regions(const Regions &regions, const Plan &plan) {
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
    const auto column = [&](int64_t x) { return clip(ceil_div(x - regions.first_column, regions.column_step), width); };
    const auto clipped = [&](const Rectangle &r) {
      return Rectangle{column(r.x0), row(r.y0), column(r.x1), row(r.y1)};
    };
    if (region.width <= 0 || region.height <= 0 || clipped(r).empty()) return;
    const Rectangle box = with_feather(r, regions, plan.passes[0]), inside = clipped(box);
    const Rectangle share = {floor_div(inside.x0, unit_x), floor_div(inside.y0, unit_y), ceil_div(inside.x1, unit_x),
                             ceil_div(inside.y1, unit_y)};
    boxes.push_back({box, share});
  };
  for (const Region &r : regions.region) add(r);
  for (const RegionMask &m : regions.mask) add({m.box.x, m.box.y, m.box.width, m.box.height});
  for (const auto &pixels : regions.pixels) add(pixels->box);
  return join(std::move(boxes));
}

struct Line {
  int64_t first, step;  // position of a part's first pixel in the frame, and distance to the next pixel
};

int32_t phase_of(const MosaicAxis &axis, int64_t origin, const Line &line, int64_t pixel) {
  if (axis.size == 1) return 0;
  const int64_t at = line.first + pixel * line.step - origin;
  return static_cast<int32_t>(at - floor_div(at, axis.size) * axis.size);
}

// `step` is a power of two, since subsampling is, and fields are every second row or column.
MosaicAxis make_axis(int size, int64_t step) {
  if (size <= step) return {};
  return {size, ceil_log2(step)};
}

}  // namespace

std::vector<MosaicPart> mosaic_parts(const Regions &regions, const Plan &plan) {
  const Pass &pass = plan.passes[0];
  const int64_t width = plan.layout.width(), height = plan.layout.height();
  const bool by_region = regions.active && !regions.invert;
  std::vector<Box> boxes;
  if (by_region) boxes = join_regions(regions, plan);
  std::vector<MosaicPart> result;
  for (const Plan::Part &part : plan.parts) {
    const PlaneLayout &layout = plan.layout.plane[part.plane];
    const int64_t sub_x = int64_t{1} << layout.sub_x, sub_y = int64_t{1} << layout.sub_y;
    const int64_t row_step = part.row_step * regions.row_step, column_step = regions.column_step;
    const Line x = {regions.first_column, column_step * sub_x};
    const Line y = {regions.first_row + part.first_row * regions.row_step, row_step * sub_y};
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
    for (const auto &[r, share] : boxes) {
      const int64_t top = ceil_div(r.y0 - y.first, row_step), bottom = ceil_div(r.y1 - y.first, row_step);
      const int64_t left = ceil_div(r.x0 - x.first, column_step), right = ceil_div(r.x1 - x.first, column_step);
      if (clip(left, width) >= clip(right, width) || clip(top, rows) >= clip(bottom, rows)) continue;
      add(r.x0, r.y0, clip(floor_div(left, sub_x), layout.width), clip(ceil_div(right, sub_x), layout.width),
          clip(floor_div(top, sub_y), part.height), clip(ceil_div(bottom, sub_y), part.height));
    }
  }
  return result;
}

}  // namespace cudaconv
