// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The ALLOCATION query on both sides: pools, allocators, and the metas that the element understands.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

struct AllocationNeeds {
  std::shared_ptr<Device> device;  // whose memory CUDA caps mean; nullptr: none
  bool pinned;                     // system memory is copied from and to by `device`
  guint frames;                    // that may be in flight, of which each has its buffers; 1: none is
  bool regions;                    // they come with the frames
};

// Completes upstream's query with what suits the element. False where the query has no caps of video.
bool propose_allocation(GstQuery *query, const AllocationNeeds &needs);

// Replaces what downstream offers in the query by what the element takes of it: its pool where frames can be written
// there, its allocator wherever it names one. Throws Error where no pool can be made.
void decide_allocation(GstObject *element, GstQuery *query, const AllocationNeeds &needs);

}  // namespace cudaconv::gst
