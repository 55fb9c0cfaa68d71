// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mosaic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>

namespace cudaconv::reference {

namespace {

// A rectangle in pixels of the frame.
struct Box {
  int64_t x0, y0, x1, y1;
};

Box box_of(const Region &r) {
  Box box = {r.x, r.y, int64_t{r.x} + r.width, int64_t{r.y} + r.height};
  if (r.rotation == 0) return box;
  const long double c = std::cos(static_cast<long double>(r.rotation)),
                    s = std::sin(static_cast<long double>(r.rotation));
  const long double middle_x = r.x + r.width / 2.0L, middle_y = r.y + r.height / 2.0L;
  box = {INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN};
  for (int corner = 0; corner < 4; corner++) {
    const long double dx = corner % 2 ? r.width / 2.0L : -r.width / 2.0L;
    const long double dy = corner / 2 ? r.height / 2.0L : -r.height / 2.0L;
    const long double x = middle_x + dx * c - dy * s, y = middle_y + dx * s + dy * c;
    // A coordinate that is an integer except for rounding counts as that integer.
    box.x0 = std::min(box.x0, static_cast<int64_t>(std::floor(x + 5e-7L)));
    box.y0 = std::min(box.y0, static_cast<int64_t>(std::floor(y + 5e-7L)));
    box.x1 = std::max(box.x1, static_cast<int64_t>(std::ceil(x - 5e-7L)));
    box.y1 = std::max(box.y1, static_cast<int64_t>(std::ceil(y - 5e-7L)));
  }
  return box;
}

int64_t frame_row(const Mosaic &m, int row) {
  return m.regions->first_row + static_cast<int64_t>(row) * m.regions->row_step;
}

int64_t frame_column(const Mosaic &m, int column) {
  return m.regions->first_column + static_cast<int64_t>(column) * m.regions->column_step;
}

// Flags of the units along a line of `count` columns or rows: whether the box has a column or row of the unit.
template <typename Has>
std::vector<bool> units(int count, int unit, Has has) {
  std::vector<bool> result((count + unit - 1) / unit);
  for (int i = 0; i < count; i++)
    if (has(i)) result[i / unit] = true;
  return result;
}

bool have_common(const std::vector<bool> &a, const std::vector<bool> &b) {
  for (size_t i = 0; i < a.size(); i++)
    if (a[i] && b[i]) return true;
  return false;
}

struct Joined {
  Box box;
  std::vector<bool> columns, rows;  // units of the buffer that the box touches
};

Joined joined(const Mosaic &m, const Box &box) {
  return {
      box,
      units(m.columns, m.unit_x, [&](int x) { return frame_column(m, x) >= box.x0 && frame_column(m, x) < box.x1; }),
      units(m.rows, m.unit_y, [&](int y) { return frame_row(m, y) >= box.y0 && frame_row(m, y) < box.y1; })};
}

std::vector<Joined> boxes_of(const Mosaic &m) {
  std::vector<Joined> boxes;
  const Regions &regions = *m.regions;
  const int feather = static_cast<int>(std::ceil(regions.feather / 256.0));
  const auto any = [](const std::vector<bool> &flags) { return std::count(flags.begin(), flags.end(), true) > 0; };
  const auto add = [&](Box box) {
    const Joined in_buffer = joined(m, box);
    if (!any(in_buffer.columns) || !any(in_buffer.rows)) return;
    // Room for the pixels that fade. Blocks stay where they are.
    for (int left = feather; left > 0; left -= m.block_x) box.x0 -= m.block_x;
    for (int above = feather; above > 0; above -= m.block_y) box.y0 -= m.block_y;
    box.x1 += feather;
    box.y1 += feather;
    boxes.push_back(joined(m, box));
  };
  for (const Region &r : regions.region)
    if (r.width > 0 && r.height > 0) add(box_of(r));
  for (const RegionMask &r : regions.mask) add(box_of({r.box.x, r.box.y, r.box.width, r.box.height}));
  for (const auto &pixels : regions.pixels) add(box_of(pixels->box));
  for (size_t i = 0; i < boxes.size(); i++)
    for (size_t j = 0; j < i; j++) {
      const Box a = boxes[i].box, b = boxes[j].box;
      if (!have_common(boxes[i].columns, boxes[j].columns) || !have_common(boxes[i].rows, boxes[j].rows)) continue;
      boxes.erase(boxes.begin() + i);
      boxes[j] = joined(m, {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)});
      i = j = 0;  // starts again, since the larger box may meet other boxes
      break;
    }
  return boxes;
}

int64_t floor_of_quotient(int64_t a, int64_t b) {
  return (a - ((a % b) + b) % b) / b;
}

}  // namespace

Channel mosaic(const Channel &in, const Mosaic &m) {
  const bool by_region = m.regions->active && !m.regions->invert;
  const std::vector<Joined> boxes = by_region ? boxes_of(m) : std::vector<Joined>();
  using Block = std::tuple<int, int64_t, int64_t>;  // the number of its box, and the block's column and row in the box
  std::map<Block, std::vector<int>> pixels;
  for (int y = 0; y < in.height; y++)
    for (int x = 0; x < in.width; x++) {
      const int column = x << m.sub_x, row = m.first_row + (y << m.sub_y) * m.row_step;
      int number = -1;
      Box box = {0, 0, 0, 0};
      for (size_t i = 0; i < boxes.size(); i++) {
        bool has_column = false, has_row = false;
        for (int k = 0; k < 1 << m.sub_x; k++) {
          const int64_t c = frame_column(m, column + k);
          has_column |= column + k < m.columns && c >= boxes[i].box.x0 && c < boxes[i].box.x1;
        }
        for (int k = 0; k < 1 << m.sub_y; k++) {
          const int r = row + k * m.row_step;
          has_row |= r < m.rows && frame_row(m, r) >= boxes[i].box.y0 && frame_row(m, r) < boxes[i].box.y1;
        }
        if (has_column && has_row) number = static_cast<int>(i), box = boxes[i].box;
      }
      if (by_region && number < 0) continue;
      pixels[{number, floor_of_quotient(frame_column(m, column) - box.x0, m.block_x),
              floor_of_quotient(frame_row(m, row) - box.y0, m.block_y)}]
          .push_back(y * in.width + x);
    }
  Channel out{in.width, in.height, in.sample, {}};
  for (const auto &[block, members] : pixels) {
    int64_t sum = 0, n = static_cast<int64_t>(members.size());
    for (int i : members) sum += in.sample[i];
    for (int i : members) out.sample[i] = static_cast<int>((sum + n / 2) / n);
  }
  return out;
}

}  // namespace cudaconv::reference
