// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/regions/region_job.h"

#include <algorithm>
#include <utility>

namespace cudaconv {

namespace {

// The copies to and from the device for a frame in host memory that is filtered in place.
RegionCopies copies_of(const std::vector<PlannedRegions> &planned, const std::vector<Group> &groups,
                       const Cancellation &cancellation) {
  const Plan &plan = *planned[0].plan;
  std::vector<Area> read, written;
  for (const Plan::Part &part : plan.parts) {
    read.emplace_back(plan.layout.plane[part.plane].width, part.height);
    written.push_back(read.back());
  }
  const auto add = [&](const RegionWork &work) {
    for (size_t i = 0; i < plan.parts.size(); i++) {
      read[i].add(work.needed(i));
      written[i].add(work.selected(i));
    }
  };
  for (const Group &group : groups)
    if (!group.prepared->unpacked) add(group.work);
  // Unpacked frames have other parts than the plan, so the work is computed once more for the plan's parts.
  if (!groups.empty() && groups[0].prepared->unpacked)
    for (const PlannedRegions &p : planned) {
      const RegionWork work(*p.plan, p.regions, cancellation);
      cancellation.check();
      add(work);
    }
  return copies_of_regions(plan, read, written);
}

}  // namespace

std::shared_ptr<const RegionJob> make_region_job(const std::shared_ptr<const RegionJob> &before,
                                                 const std::vector<PlannedRegions> &planned, bool with_copies,
                                                 PreparedPlans &prepared_plans, const Cancellation &cancellation) {
  const auto same = [](const PlannedRegions &a, const PlannedRegions &b) {
    return a.plan == b.plan && a.regions == b.regions;
  };
  if (before && before->has_copies >= with_copies &&
      std::equal(planned.begin(), planned.end(), before->planned.begin(), before->planned.end(), same))
    return before;
  auto job = std::make_shared<RegionJob>();
  for (const PlannedRegions &p : planned) {
    std::shared_ptr<const PreparedPlan> prepared = prepared_plans.get(p.plan);
    RegionWork work(prepared->filter(), p.regions, cancellation);
    cancellation.check();
    if (work.empty()) continue;
    std::vector<std::vector<PartArea>> computed;
    for (const PreparedLaunch &launch : prepared->launches) {
      const Pass &pass = prepared->filter().passes[launch.first];
      computed.emplace_back();
      for (size_t i = 0; i < prepared->filter().parts.size(); i++)
        computed.back().emplace_back(work.computed(launch.first + launch.passes() - 1, i), pass.radius_x,
                                     pass.radius_y);
    }
    job->groups.push_back({std::move(prepared), std::move(work), std::move(computed)});
  }
  for (size_t begin = 0; begin < job->groups.size(); begin += kMostResults) {
    const size_t end = std::min(job->groups.size(), begin + kMostResults);
    std::vector<const RegionWork *> works;
    for (size_t g = begin; g < end; g++) works.push_back(&job->groups[g].work);
    job->batches.push_back({begin, end, Selection(job->groups[begin].prepared->filter(), works), job->cells.size()});
    const Selection &selection = job->batches.back().selection;
    for (SelectedCell cell : selection.cells()) {
      if (cell.first_word >= 0) cell.first_word += static_cast<int32_t>(job->bits.size());
      job->cells.push_back(cell);
    }
    job->bits.insert(job->bits.end(), selection.bits().begin(), selection.bits().end());
  }
  job->has_copies = with_copies;
  if (with_copies) job->copies = copies_of(planned, job->groups, cancellation);
  // Jobs with masks are not reused: masks are large, and rarely stay the same from frame to frame.
  if (std::all_of(planned.begin(), planned.end(), [](const auto &p) { return p.regions.mask.empty(); }))
    job->planned = planned;
  return job;
}

}  // namespace cudaconv
