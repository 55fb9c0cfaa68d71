// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/region_job.h"

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
    if (!group.prepared->unpacks()) add(group.work);
  // Unpacked frames have other parts than the plan, so the work is computed once more for the plan's parts.
  if (!groups.empty() && groups[0].prepared->unpacks())
    for (const PlannedRegions &p : planned) {
      const RegionWork work(*p.plan, p.regions, cancellation);
      cancellation.check();
      add(work);
    }
  return copies_of_regions(plan, read, written);
}

// The pixels of each part that a launch computes. Few rectangles travel with it as parts of their own. The tiles of
// more rectangles are listed, or it computes the rectangle around all. Empty if that is the frame.
std::vector<PartArea> areas_of(const PreparedPlan &prepared, const PreparedLaunch &launch, const RegionWork &work) {
  const Plan &plan = prepared.lowered;
  const Pass &pass = plan.passes[launch.first];
  std::vector<PartArea> areas;
  // Listed tiles take less time than the rectangle around all if they are less than kMost of it. Each rectangle counts
  // as kMore pixels wider and higher. Found on H200 (region-bench).
  constexpr double kMore = 32, kMost = 0.75;
  double covered = 0, around = 0;
  size_t rectangles = 0;
  bool each = true, whole = true;
  for (size_t i = 0; i < plan.parts.size(); i++) {
    const Area &area = work.computed(launch.first + launch.passes() - 1, i);
    areas.push_back({area.width(), area.joined(pass.radius_x, pass.radius_y), area.bounds()});
    rectangles += areas[i].rectangles.size();
    for (const PixelRect &r : areas[i].rectangles) covered += (r.width() + kMore) * (r.height() + kMore);
    around += static_cast<double>(area.bounds().pixels());
    // The tiles of two rectangles may overlap, see has_fields().
    const bool fields = plan.layout.plane[plan.parts[i].plane].container == Container::Packed32;
    each = each && !(fields && areas[i].rectangles.size() > 1);
  }
  each = each && (rectangles <= kMaxParts || (launch.prepared.lists_tiles && covered < kMost * around));
  for (size_t i = 0; i < plan.parts.size(); i++) {
    PartArea &area = areas[i];
    if (!each && !area.bounds.empty()) area.rectangles = {area.bounds};
    whole = whole && area.rectangles.size() == 1 &&
            area.rectangles[0].pixels() == int64_t{area.width} * plan.parts[i].height;
  }
  if (whole) return {};
  return areas;
}

// The pixels of the frame that a stage of any group reads or writes, as a rectangle around those of each part.
Selection select_needed(const std::vector<Group> &groups) {
  Selection selection;
  for (size_t i = 0; i < groups[0].prepared->lowered.parts.size(); i++) {
    Area needed = groups[0].work.selected(i);
    for (const Group &group : groups) needed.add(group.work.needed(i));
    if (!needed.empty()) selection.rects.push_back({needed.bounds(), static_cast<int32_t>(i)});
  }
  return selection;
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
    RegionWork work(prepared->lowered, p.regions, cancellation);
    cancellation.check();
    if (work.empty()) continue;
    const Plan &filter = prepared->lowered;
    std::vector<std::vector<PartArea>> computed;
    for (const PreparedLaunch &launch : prepared->launches) computed.push_back(areas_of(*prepared, launch, work));
    std::vector<PreparedLaunch> launches = prepared->launches;
    for (size_t i = 0; i < launches.size(); i++)
      if (!computed[i].empty())
        launches[i] = prepare_on_areas(launches[i], filter, prepared_plans.kernels(), computed[i]);
    std::vector<size_t> tiles;
    for (const PreparedLaunch &launch : launches) tiles.push_back(append_list(launch.prepared.tiles, &job->lists));
    std::vector<MosaicTiledBox> boxes;
    std::vector<MosaicTiles> mosaic;
    if (!work.mosaic().empty()) mosaic = cut_mosaic(work.mosaic(), filter, &boxes);
    Selection selected = select_regions(filter, work, &job->lists);
    job->groups.push_back({std::move(prepared), std::move(work), std::move(computed), std::move(launches),
                           std::move(tiles), std::move(mosaic), append_list(boxes, &job->lists), std::move(selected)});
  }
  if (job->groups.size() > kMostBeside) job->needed = select_needed(job->groups);
  job->has_copies = with_copies;
  if (with_copies) job->copies = copies_of(planned, job->groups, cancellation);
  // Jobs with masks are not reused: masks are large, and rarely stay the same from frame to frame.
  if (std::all_of(planned.begin(), planned.end(), [](const auto &p) { return p.regions.mask.empty(); }))
    job->planned = planned;
  return job;
}

}  // namespace cudaconv
