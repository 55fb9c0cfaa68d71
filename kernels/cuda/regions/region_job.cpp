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

// Adds a placement to a batch, and its lists to the lists of the job.
void add_placement(RegionJob *job, Batch *batch, Selection selection) {
  const auto first_word = static_cast<int32_t>(job->bits.size()),
             first_share = static_cast<int32_t>(job->shares.size());
  batch->placements.push_back({std::move(selection), job->cells.size()});
  const Selection &added = batch->placements.back().selection;
  for (SelectedCell cell : added.cells()) {
    if (cell.first_word >= 0) cell.first_word += first_word;
    if (cell.first_share >= 0) cell.first_share += first_share;
    job->cells.push_back(cell);
  }
  job->bits.insert(job->bits.end(), added.bits().begin(), added.bits().end());
  job->shares.insert(job->shares.end(), added.shares().begin(), added.shares().end());
}

// Cuts the groups into batches.
void make_batches(RegionJob *job) {
  const std::vector<Group> &groups = job->groups;
  const bool fades = std::any_of(groups.begin(), groups.end(), [](const Group &group) { return group.work.fades(); });
  const size_t together = fades ? 1 : kMostResults;
  for (size_t begin = 0; begin < groups.size(); begin += kMostResults) {
    Batch &batch = job->batches.emplace_back(Batch{begin, std::min(groups.size(), begin + kMostResults), {}});
    for (size_t first = begin; first < batch.end; first += together) {
      std::vector<const RegionWork *> works;
      for (size_t g = first; g < std::min(batch.end, first + together); g++) works.push_back(&groups[g].work);
      add_placement(job, &batch, Selection(groups[begin].prepared->filter(), works, static_cast<int>(first - begin)));
    }
  }
}

}  // namespace

bool RegionJob::is_for(const std::vector<PlannedRegions> &other, bool with_copies) const {
  return has_copies >= with_copies && planned == other;
}

std::shared_ptr<const RegionJob> make_region_job(const std::vector<PlannedRegions> &planned, bool with_copies,
                                                 PreparedPlans &prepared_plans, const Cancellation &cancellation) {
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
  make_batches(job.get());
  job->has_copies = with_copies;
  if (with_copies) job->copies = copies_of(planned, job->groups, cancellation);
  // Jobs with masks are not reused: masks are large, and rarely stay the same from frame to frame.
  if (std::all_of(planned.begin(), planned.end(), [](const auto &p) { return p.regions.mask.empty(); }))
    job->planned = planned;
  return job;
}

}  // namespace cudaconv
