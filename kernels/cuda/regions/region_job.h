// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the regions of a frame come to on the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend.h"
#include "cancellation.h"
#include "cuda/dispatch.h"
#include "cuda/frame_copy.h"
#include "cuda/regions/put_in_place.h"
#include "cuda/unpack.h"
#include "plan/region_work.h"

namespace cudaconv {

// A plan as this backend carries it out.
struct PreparedPlan {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const UnpackedPlan> unpacked;  // nullptr: frames are filtered as they lie
  std::shared_ptr<const Plan> divided;           // of one of these, where that has squares that are too large
  std::vector<PreparedLaunch> launches;          // of filter()

  const Plan &dense() const { return unpacked ? unpacked->plan : *plan; }
  const Plan &filter() const { return divided ? *divided : dense(); }
};
// A plan and its regions.
struct Group {
  std::shared_ptr<const PreparedPlan> prepared;
  RegionWork work;
};

// Groups whose results are put in place together, and the cells that are.
struct Batch {
  size_t begin, end, first_cell, cells;
};

// The regions of a frame, and what is to be done for them.
struct RegionJob {
  std::vector<PlannedRegions> planned;  // what it is for, if it may be used again
  std::vector<Group> groups;            // without those that select nothing
  std::vector<Batch> batches;
  std::vector<SelectedCell> cells;
  std::vector<uint32_t> bits;
  bool has_copies = false;
  RegionCopies copies;  // of frames in host memory that are filtered in place
};

using PreparePlan = std::function<std::shared_ptr<const PreparedPlan>(const std::shared_ptr<const Plan> &)>;

// What is to be done for the regions, `with_copies` if need be; `before`, if that is for the same ones, as often those
// of the frame before are.
std::shared_ptr<const RegionJob> make_region_job(const std::shared_ptr<const RegionJob> &before,
                                                 const std::vector<PlannedRegions> &planned, bool with_copies,
                                                 const PreparePlan &prepare_plan, const Cancellation &cancellation);

}  // namespace cudaconv
