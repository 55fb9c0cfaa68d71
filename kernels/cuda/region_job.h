// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The work for the regions of a frame on the GPU: the pixels that each launch computes, then the pixels to put in
// place. The host makes it, and keeps it while regions stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend.h"
#include "cancellation.h"
#include "cuda/frame_copy.h"
#include "cuda/launchers.h"
#include "cuda/mosaic/tiles.h"
#include "cuda/prepared_plan.h"
#include "cuda/regions/put_in_place.h"
#include "plan/region_work.h"

namespace cudaconv {

constexpr size_t kMostBeside = 8;  // groups that are filtered beside each other, each to a frame of its own

// The regions of one strength: their plan, the work for them, the pixels to compute, and the pixels to put in place.
struct Group {
  std::shared_ptr<const PreparedPlan> prepared;
  RegionWork work;
  std::vector<std::vector<PartArea>> computed;  // [launch][part]; no part: all pixels of the frame
  std::vector<PreparedLaunch> launches;         // on these
  std::vector<size_t> tiles;                    // by launch: where the numbers of tiles begin in the lists of the job
  std::vector<MosaicTiles> mosaic;              // the tiles of a mosaic by part
  size_t mosaic_boxes;                          // where their boxes begin in the lists of the job
  Selection selected;
};

// The regions of a frame and the work for them.
struct RegionJob {
  std::vector<PlannedRegions> planned;  // what the job is for, if it can be reused; else empty
  std::vector<Group> groups;            // without groups that select no pixel
  Selection needed;                     // if there are more than kMostBeside groups: the pixels that any of them needs
  std::vector<uint8_t> lists;           // what kernels read on the device
  bool has_copies = false;
  RegionCopies copies;  // for frames in host memory that are filtered in place

  // Whether it is the work for these plans and regions, with copies if `with_copies`.
  bool is_for(const std::vector<PlannedRegions> &planned, bool with_copies) const;
};

// The work for the regions of a frame, with copies if `with_copies`.
std::shared_ptr<const RegionJob> make_region_job(const std::vector<PlannedRegions> &planned, bool with_copies,
                                                 PreparedPlans &prepared_plans, const Cancellation &cancellation);

}  // namespace cudaconv
