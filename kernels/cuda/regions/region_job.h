// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The work for the regions of a frame on the GPU.
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
#include "cuda/launchers.h"
#include "cuda/regions/put_in_place.h"
#include "cuda/unpack.h"
#include "plan/region_work.h"

namespace cudaconv {

// A plan as this backend carries it out.
struct PreparedPlan {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const UnpackedPlan> unpacked;  // nullptr: frames are filtered as they are
  std::shared_ptr<const Plan> divided;   // one of these two with squares divided that are too large; nullptr: none is
  std::vector<PreparedLaunch> launches;  // for filter()

  const Plan &dense() const { return unpacked ? unpacked->plan : *plan; }
  const Plan &filter() const { return divided ? *divided : dense(); }
};

// A prepared plan, the work for its regions, and the pixels that each launch computes, by part.
struct Group {
  std::shared_ptr<const PreparedPlan> prepared;
  RegionWork work;
  std::vector<std::vector<PartArea>> computed;
};

// Groups whose results are put in place together, the pixels to copy for them, and where the cells of these are among
// those of all batches.
struct Batch {
  size_t begin, end;
  Selection selection;
  size_t first_cell;
};

// The regions of a frame and the work for them.
struct RegionJob {
  std::vector<PlannedRegions> planned;  // what the job is for, if it can be reused; else empty
  std::vector<Group> groups;            // without groups that select no pixel
  std::vector<Batch> batches;
  std::vector<SelectedCell> cells;
  std::vector<uint32_t> bits;
  bool has_copies = false;
  RegionCopies copies;  // for frames in host memory that are filtered in place
};

using PreparePlan = std::function<std::shared_ptr<const PreparedPlan>(const std::shared_ptr<const Plan> &)>;

// The work for the regions of a frame, with copies if `with_copies`. Returns `before`, the job of the previous frame,
// if it has the same plans and regions, as is common.
std::shared_ptr<const RegionJob> make_region_job(const std::shared_ptr<const RegionJob> &before,
                                                 const std::vector<PlannedRegions> &planned, bool with_copies,
                                                 const PreparePlan &prepare_plan, const Cancellation &cancellation);

}  // namespace cudaconv
