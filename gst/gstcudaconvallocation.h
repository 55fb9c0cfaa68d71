// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The ALLOCATION query on both sides: pools, allocators, and the metas that the element understands.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <memory>

#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

struct StreamContext;

struct AllocationNeeds {
  std::shared_ptr<Device> device;  // whose memory CUDA caps mean; nullptr: none
  bool pinned;                     // system memory is copied from and to by `device`
  guint frames;                    // that may be in flight, of which each has its buffers; 1: none is
  bool regions;                    // they come with the frames
};

// What downstream has answered, as far as it matters to frames that were not made for it.
struct Downstream {
  bool takes_video_meta = false;  // and with it any strides and offsets
  bool has_memory = false;        // system memory of a kind of its own, which spares it a copy
};

// Completes upstream's query with what suits the element. False where the query has no caps of video.
bool propose_allocation(GstQuery *query, const AllocationNeeds &needs);

// Replaces what downstream offers in the query by what the element takes of it: its pool where frames can be written
// there, its allocator wherever it names one. Returns what the query said before. Throws Error where no pool can be
// made.
Downstream decide_allocation(GstObject *element, GstQuery *query, const AllocationNeeds &needs);

// Whether a meta goes from input to output. Nothing moves, and neither sizes nor the meaning of colours change:
// whatever is not tied to the memory stays true.
bool keeps_meta(GType api);

// Whether a frame is filtered where it lies: the pixels outside of its regions then cost nothing. The buffer goes
// downstream as it is but for those in the regions. So all of it is writable, it is in the memory that the caps name,
// and it is laid out as downstream takes it. A buffer with a crop rectangle is not: the output is the rectangle.
bool filters_in_place(GstBuffer *buffer, const StreamContext &context, const Downstream &downstream);

// A new buffer of the base class's pool, with the metas of `inbuf`; transfer full. Posts an error where there is no
// memory for it.
GstFlowReturn new_output_buffer(GstBaseTransform *trans, GstBuffer *inbuf, GstBuffer **outbuf);

}  // namespace cudaconv::gst
