// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/regions/put_in_place.h"

#include <algorithm>

namespace cudaconv {

namespace {

// Appends the rectangles of a part's pixels. Returns whether all could be added.
bool add_rects(const RegionWork &work, size_t part, std::vector<SelectedRect> *rects) {
  const PixelRect &bounds = work.selected(part).bounds();
  const RegionRows &rows = work.rows(part);
  const size_t first = rects->size();
  for (int y = bounds.y0, end; y < bounds.y1; y = end) {
    const RegionRows::Row row = rows.row(y);
    for (end = y + 1; end < bounds.y1 && rows.row(end) == row;) end++;
    for (size_t r = row.begin; r < row.end; r++) {
      const PixelRun run = rows.runs()[r];
      const auto goes_on = [&](const SelectedRect &above) {
        return above.pixels.y1 == y && above.pixels.x0 == run.begin && above.pixels.x1 == run.end;
      };
      const auto above = std::find_if(rects->begin() + static_cast<ptrdiff_t>(first), rects->end(), goes_on);
      if (above != rects->end())
        above->pixels.y1 = end;
      else if (rects->size() < kMostSelectedRects)
        rects->push_back({{run.begin, y, run.end, end}, static_cast<int32_t>(part)});
      else
        return false;
    }
  }
  return true;
}

}  // namespace

Selection select_regions(const Plan &plan, const RegionWork &work, std::vector<uint8_t> *lists) {
  Selection selection;
  bool fits = !work.fades();
  for (size_t i = 0; fits && i < plan.parts.size(); i++) fits = add_rects(work, i, &selection.rects);
  if (fits) return selection;
  selection.rects.clear();
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const RegionRows &rows = work.rows(i);
    const PixelRect &bounds = work.selected(i).bounds();
    if (!bounds.empty()) selection.rects.push_back({bounds, static_cast<int32_t>(i)});
    if (i > 0 && &rows == &work.rows(i - 1)) {
      selection.rows.push_back(selection.rows.back());
      continue;
    }
    selection.rows.push_back({append_list(rows.all_rows(), lists), append_list(rows.runs(), lists),
                              append_list(rows.first_shares(), lists), append_list(rows.all_shares(), lists),
                              rows.fades()});
  }
  return selection;
}

Selection select_all(const Plan &plan) {
  Selection selection;
  for (const Plan::Part &part : plan.parts)
    selection.rects.push_back(
        {{0, 0, plan.layout.plane[part.plane].width, part.height}, static_cast<int32_t>(selection.rects.size())});
  return selection;
}

}  // namespace cudaconv
