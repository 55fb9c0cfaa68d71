// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/regions/put_in_place.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace cudaconv {

namespace {

// Calls f(row, y0, y1) for the rows of a part. Rows in which the same pixels are in regions share a call, but none goes
// beyond the next multiple of `step`.
template <typename Function>
void for_equal_rows(const RegionWork &work, size_t part, int step, Function f) {
  const PixelRect &bounds = work.selected(part).bounds();
  const RegionRows &rows = work.rows(part);
  for (int y = bounds.y0, end; y < bounds.y1; y = end) {
    const RegionRows::Row row = rows.row(y);
    const int bottom = std::min<int64_t>(bounds.y1, (int64_t{y} / step + 1) * step);
    for (end = y + 1; end < bottom && rows.row(end) == row;) end++;
    f(row, y, end);
  }
}

}  // namespace

Selection::Selection(const Plan &plan, const std::vector<const RegionWork *> &works, int first_result) {
  const auto add_rects = [&] {
    for (size_t i = 0; i < works.size(); i++)
      if (!this->add_rects(plan, *works[i], first_result + static_cast<int>(i))) return false;
    return !rects_overlap();
  };
  const bool fades = std::any_of(works.begin(), works.end(), [](const RegionWork *work) { return work->fades(); });
  if (!fades && add_rects()) return;
  rects_.clear();
  for (size_t i = 0; i < works.size(); i++) add_cells(plan, *works[i], first_result + static_cast<int>(i));
}

// Returns whether all rectangles could be added.
bool Selection::add_rects(const Plan &plan, const RegionWork &work, int result) {
  bool fits = true;
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const size_t first = rects_.size();  // of this part
    for_equal_rows(work, i, INT_MAX, [&](const RegionRows::Row &row, int y0, int y1) {
      for (size_t r = row.begin; fits && r < row.end; r++) {
        const PixelRun run = work.rows(i).runs()[r];
        const auto goes_on = [&](const SelectedRect &above) {
          return above.pixels.y1 == y0 && above.pixels.x0 == run.begin && above.pixels.x1 == run.end;
        };
        const auto above = std::find_if(rects_.begin() + static_cast<ptrdiff_t>(first), rects_.end(), goes_on);
        if (above != rects_.end())
          above->pixels.y1 = y1;
        else if (rects_.size() < kMostSelectedRects)
          rects_.push_back({{run.begin, y0, run.end, y1}, static_cast<uint8_t>(i), static_cast<uint8_t>(result)});
        else
          fits = false;
      }
    });
  }
  return fits;
}

bool Selection::rects_overlap() const {
  for (const SelectedRect &a : rects_)
    for (const SelectedRect &b : rects_)
      if (a.part == b.part && a.result < b.result && a.pixels.meets(b.pixels)) return true;
  return false;
}

void Selection::add_cells(const Plan &plan, const RegionWork &work, int result) {
  constexpr int kCell = Area::kCell;
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const int across = (work.selected(i).width() + kCell - 1) / kCell;
    across_[i] = across;
    latest_[i].resize(static_cast<size_t>(across) * ((work.selected(i).height() + kCell - 1) / kCell));
    for_equal_rows(work, i, kCell, [&](const RegionRows::Row &row, int y0, int y1) {
      for (size_t r = row.begin; r < row.end; r++) {
        const PixelRun run = work.rows(i).runs()[r];
        const uint8_t *const shares = work.rows(i).shares(r);
        for (int x = run.begin, right; x < run.end; x = right) {
          right = std::min<int>(run.end, (x / kCell + 1) * kCell);
          const PixelRect rect = {x % kCell, y0 % kCell, right - x / kCell * kCell, y1 - y0 / kCell * kCell};
          SelectedCell &cell = add_to_cell(static_cast<int>(i), result, x / kCell, y0 / kCell, rect);
          if (shares) add_shares(cell, rect, shares + (x - run.begin));
        }
      }
    });
  }
}

// `rect` is in pixels of the cell. Returns the cell.
SelectedCell &Selection::add_to_cell(int part, int result, int column, int row, const PixelRect &rect) {
  int32_t &latest = latest_[part][static_cast<size_t>(row) * across_[part] + column];
  const uint32_t ones = columns_of_cell(rect.x0, rect.x1);
  for (int32_t at = latest; at; at = before_[at - 1]) {
    SelectedCell &cell = cells_[at - 1];
    if (cell.result == result) continue;
    uint32_t *const bits = bits_of(cell);  // these pixels no longer come from that cell's result
    for (int y = rect.y0; y < rect.y1; y++) bits[y] &= ~ones;
  }
  SelectedCell *const cell = latest ? &cells_[latest - 1] : nullptr;
  if (!cell || cell->result != result) {
    cells_.push_back({column * Area::kCell, row * Area::kCell, -1, -1, static_cast<uint8_t>(part),
                      static_cast<uint8_t>(result), static_cast<uint8_t>(rect.x0), static_cast<uint8_t>(rect.y0),
                      static_cast<uint8_t>(rect.x1), static_cast<uint8_t>(rect.y1)});
    before_.push_back(latest);
    latest = static_cast<int32_t>(cells_.size());
    return cells_.back();
  }
  if (cell->first_word < 0 && cell->x0 == rect.x0 && cell->x1 == rect.x1 && cell->y1 == rect.y0) {
    cell->y1 = static_cast<uint8_t>(rect.y1);
    return *cell;
  }
  uint32_t *const bits = bits_of(*cell);
  for (int y = rect.y0; y < rect.y1; y++) bits[y] |= ones;
  return *cell;
}

// `shares`: of the rectangle's columns, the same in all its rows.
void Selection::add_shares(SelectedCell &cell, const PixelRect &rect, const uint8_t *shares) {
  constexpr int kCell = Area::kCell;
  if (cell.first_share < 0) {
    cell.first_share = static_cast<int32_t>(shares_.size());
    shares_.resize(shares_.size() + kCell * kCell);
  }
  for (int y = rect.y0; y < rect.y1; y++)
    std::memcpy(&shares_[cell.first_share + y * kCell + rect.x0], shares, rect.width());
}

uint32_t *Selection::bits_of(SelectedCell &cell) {
  if (cell.first_word < 0) {
    cell.first_word = static_cast<int32_t>(bits_.size());
    bits_.resize(bits_.size() + Area::kCell);
    for (int y = cell.y0; y < cell.y1; y++) bits_[cell.first_word + y] = columns_of_cell(cell.x0, cell.x1);
    cell.x0 = cell.y0 = 0;
    cell.x1 = cell.y1 = Area::kCell;
  }
  return &bits_[cell.first_word];
}

}  // namespace cudaconv
