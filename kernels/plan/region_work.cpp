// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/region_work.h"

#include <algorithm>
#include <utility>

#include "plan/run_union.h"
#include "plan/weighted.h"

namespace cudaconv {

std::vector<Stage> stages_of(const Plan &plan) {
  std::vector<Stage> stages;
  size_t begin = 0;
  for (size_t i = 0; i < plan.passes.size(); i++) {
    if (!plan.passes[i].in_regions) continue;
    stages.push_back({begin, i + 1});
    begin = i + 1;
  }
  return stages;
}

namespace {

// Adds the runs to the covered rows, and the pixels that were not covered before to `uncovered`.
void cover(const RegionRows &rows, CoveredRows *covered, Area *uncovered) {
  RunUnion all(uncovered->width());
  for (int y = 0; y < uncovered->height(); y++) {
    std::vector<PixelRun> &before = (*covered)[y];
    for (const PixelRun &run : before) all.add(run);
    const RegionRows::Row row = rows.row(y);
    for (size_t i = row.begin; i < row.end; i++) {
      const PixelRun &run = rows.runs()[i];
      if (!rows.shares(i)) all.add(run);  // what fades shows the results below it
      int x = run.begin;
      for (const PixelRun &other : before) {
        if (other.end <= x || other.begin >= run.end) continue;
        uncovered->add({x, y, other.begin, y + 1});
        x = other.end;
      }
      uncovered->add({x, y, run.end, y + 1});
    }
    before.clear();
    all.list(&before);
    all.clear();
  }
}

}  // namespace

RegionWork::RegionWork(const Plan &plan, const Regions &regions, const Cancellation &cancellation,
                       std::vector<CoveredRows> *covered)
    : plan_(plan) {
  rows_ = region_rows(regions, plan, cancellation);
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const int width = plan.layout.plane[plan.parts[i].plane].width, height = plan.parts[i].height;
    selected_.push_back(rows_.empty() || covered ? std::make_shared<const Area>(width, height)
                                                 : std::make_shared<const Area>(*rows_[i], width, height));
  }
  for (size_t i = 0; covered && i < rows_.size() && !cancellation.requested(); i++) {
    if (covered->size() == i) covered->emplace_back(plan.parts[i].height);
    auto uncovered = std::make_shared<Area>(*selected_[i]);
    cover(*rows_[i], &(*covered)[i], uncovered.get());
    selected_[i] = std::move(uncovered);
  }
  if (plan.passes[0].op == Op::Mosaic && !cancellation.requested()) mosaic_ = mosaic_parts(regions, plan);
  computed_.resize(plan.passes.size());
  for (const Stage &stage : stages_of(plan)) {
    std::vector<std::shared_ptr<const Area>> area = selected_;
    for (size_t i = stage.end; i-- > stage.begin && !cancellation.requested();) {
      computed_[i] = area;
      const Pass &pass = plan.passes[i];
      if (i == stage.begin || (pass.radius_x == 0 && pass.radius_y == 0)) continue;
      for (auto &of_part : area)
        of_part = std::make_shared<const Area>(of_part->grown(pass.radius_x, pass.radius_y, plan.border));
    }
  }
}

bool RegionWork::empty() const {
  return std::all_of(selected_.begin(), selected_.end(), [](const auto &area) { return area->empty(); });
}

bool RegionWork::fades() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const auto &rows) { return rows->fades(); });
}

// Adds the pixels of alpha that the windows of part `other` read.
void RegionWork::add_alpha(size_t other, Area &area) const {
  const Pass &first = plan_.passes[0];
  const AlphaGrid grid = alpha_grid(plan_, plan_.parts[other]);
  for (const PixelRect &r : computed_[0][other]->grown(first.radius_x, first.radius_y, plan_.border).rectangles())
    area.add({r.x0 << grid.sub_x, r.y0 << grid.sub_y, r.x1 << grid.sub_x, r.y1 << grid.sub_y});
}

Area RegionWork::needed(size_t part) const {
  // Every stage reads the same pixels, since all runs of the filter have the same passes.
  const Pass &first = plan_.passes[0];
  Area area = computed_[0][part]->grown(first.radius_x, first.radius_y, plan_.border);
  area.add(*selected_[part]);
  if (first.reads_alpha())
    for (size_t other = 0; other < plan_.parts.size(); other++)
      if (alpha_part(plan_, plan_.parts[other]) == part) add_alpha(other, area);
  if (!mosaic_.empty())
    for (const MosaicBox &box : mosaic_[part].boxes) area.add({box.x, box.y, box.x + box.width, box.y + box.height});
  return area;
}

}  // namespace cudaconv
