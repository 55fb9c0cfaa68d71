// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/regions/put_in_place.h"

#include <algorithm>

namespace cudaconv {

namespace {

// A word with ones for columns x0 ... x1 - 1 of a cell.
uint32_t columns(int x0, int x1) {
  return static_cast<uint32_t>((uint64_t{1} << x1) - (uint64_t{1} << x0));
}

}  // namespace

void Selection::add(const Plan &plan, const RegionWork &work, int result) {
  constexpr int kCell = Area::kCell;
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const PixelRect &bounds = work.selected(i).bounds();
    const RegionRows &rows = work.rows(i);
    const int across = (work.selected(i).width() + kCell - 1) / kCell;
    across_[i] = across;
    latest_[i].resize(static_cast<size_t>(across) * ((work.selected(i).height() + kCell - 1) / kCell));
    for (int y = bounds.y0, end; y < bounds.y1; y = end) {
      // Equal rows are added together, down to the lower edge of their cells.
      const RegionRows::Row row = rows.row(y);
      const int bottom = std::min(bounds.y1, (y / kCell + 1) * kCell);
      for (end = y + 1; end < bottom && rows.row(end) == row;) end++;
      for (size_t r = row.begin; r < row.end; r++) {
        const RegionRows::Run run = rows.runs()[r];
        for (int x = run.begin, right; x < run.end; x = right) {
          right = std::min<int>(run.end, (x / kCell + 1) * kCell);
          add_rect(static_cast<int>(i), result, x / kCell, y / kCell,
                   {x % kCell, y % kCell, right - x / kCell * kCell, end - y / kCell * kCell});
        }
      }
    }
  }
}

// `rect` is in pixels of the cell.
void Selection::add_rect(int part, int result, int column, int row, const PixelRect &rect) {
  int32_t &latest = latest_[part][static_cast<size_t>(row) * across_[part] + column];
  const uint32_t ones = columns(rect.x0, rect.x1);
  for (int32_t at = latest; at; at = before_[at - 1]) {
    SelectedCell &cell = cells_[at - 1];
    if (cell.result == result) continue;
    uint32_t *const bits = bits_of(cell);  // these pixels no longer come from that cell's result
    for (int y = rect.y0; y < rect.y1; y++) bits[y] &= ~ones;
  }
  SelectedCell *const cell = latest ? &cells_[latest - 1] : nullptr;
  if (!cell || cell->result != result) {
    cells_.push_back({column * Area::kCell, row * Area::kCell, -1, static_cast<uint8_t>(part),
                      static_cast<uint8_t>(result), static_cast<uint8_t>(rect.x0), static_cast<uint8_t>(rect.y0),
                      static_cast<uint8_t>(rect.x1), static_cast<uint8_t>(rect.y1)});
    before_.push_back(latest);
    latest = static_cast<int32_t>(cells_.size());
    return;
  }
  if (cell->first_word < 0 && cell->x0 == rect.x0 && cell->x1 == rect.x1 && cell->y1 == rect.y0) {
    cell->y1 = static_cast<uint8_t>(rect.y1);
    return;
  }
  uint32_t *const bits = bits_of(*cell);
  for (int y = rect.y0; y < rect.y1; y++) bits[y] |= ones;
}

uint32_t *Selection::bits_of(SelectedCell &cell) {
  if (cell.first_word < 0) {
    cell.first_word = static_cast<int32_t>(bits_.size());
    bits_.resize(bits_.size() + Area::kCell);
    for (int y = cell.y0; y < cell.y1; y++) bits_[cell.first_word + y] = columns(cell.x0, cell.x1);
    cell.x0 = cell.y0 = 0;
    cell.x1 = cell.y1 = Area::kCell;
  }
  return &bits_[cell.first_word];
}

}  // namespace cudaconv
