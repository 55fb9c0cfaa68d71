// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the CUDA backend keeps for a frame while it is on its way.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "backend.h"
#include "cuda/cuda_resources.h"
#include "cuda/frame_copy.h"
#include "cuda/launchers.h"
#include "cuda/regions/put_in_place.h"
#include "cuda/region_job.h"

namespace cudaconv {

// How many launches a frame may be ahead of the GPU: enough to keep it busy, and few enough to wait for when a frame is
// given up.
constexpr size_t kLaunchesAhead = 8;

// Lists in pinned memory that the GPU fetches.
struct HostLists {
  PinnedBuffer data;
  std::unique_ptr<Event> fetched;  // nullptr: never
};

// A frame in flight with the resources that it needs.
struct Slot {
  OwnedFrame<DeviceBuffer> source, target;  // device copies of frames that kernels cannot use in place
  OwnedFrame<DeviceBuffer> unpacked_source, unpacked_target;
  OwnedFrame<PinnedBuffer> upload, download;  // staging, so that copies of pageable memory do not block
  std::vector<OwnedFrame<DeviceBuffer>> temporaries;
  // With regions: the results of a stage of plans and, if these are more, the frame before the stage.
  OwnedFrame<DeviceBuffer> results[kMostBeside], before;
  // The lists of a job. A frame that has left may still read its host lists.
  std::array<HostLists, 4> host_lists;
  size_t next_lists = 0;
  DeviceBuffer lists;
  std::shared_ptr<const RegionJob> listed;  // the job whose lists are on the device; nullptr: none
  FrameBuffers buffers;
  // Recorded around the kernels of a frame that is timed.
  std::unique_ptr<Event> timed_begin, timed_end;
  bool timed = false;
  Event kernels_end{cudaEventDisableTiming}, downloaded{cudaEventDisableTiming};
  Event source_ready{cudaEventDisableTiming}, target_free{cudaEventDisableTiming};
  // launched[n % kLaunchesAhead] is recorded after launch n of a plan with more launches than that; created when
  // needed.
  std::array<std::unique_ptr<Event>, kLaunchesAhead> launched;
  Ticket ticket = 0;
  std::shared_ptr<const Plan> plan;
  FrameView destination;
  // Whether results for host memory come by way of `download`: memory that is not pinned, and frames that are filtered
  // in place. These keep their samples until the device is done, since another backend needs them if it fails.
  bool staged = false;
  bool leaves = false;         // nobody waits for the frame: see kLeft
  std::vector<CopyRect> down;  // what is copied back of a frame in host memory

  const Event &done() const { return destination.on_device ? kernels_end : downloaded; }
};

}  // namespace cudaconv
