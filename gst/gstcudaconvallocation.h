// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Answers upstream's ALLOCATION query and evaluates downstream's answer to ours: pools, allocators and metas.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "gstcudaconvdevice.h"
#include "gstcudaconvref.h"

namespace cudaconv::gst {

struct StreamContext;

// The element's buffer requirements, for propose_allocation() and decide_allocation().
struct AllocationNeeds {
  std::shared_ptr<Device> device;  // whose memory CUDA caps stand for; nullptr: there is none
  bool pinned;                     // `device` copies from and to system memory, which should be pinned for it
  guint frames;                    // how many frames may be in flight, each with its own buffers; 1: none is
  bool regions;                    // regions come with the frames, as metas
  bool in_place;                   // frames are filtered in place, if their buffers allow it
  bool crop;                       // upstream may leave cropping to the element
};

// Downstream's answer to the ALLOCATION query, as far as it matters to frames that are filtered in place.
struct Downstream {
  bool takes_video_meta = false;  // GstVideoMeta, and thus any strides and offsets
  bool has_memory = false;        // system memory of a special kind; writing there saves downstream a copy
  guint buffers = 0;              // how many buffers it needs
};

// Adds the pool, allocator and metas that suit the element to upstream's query. False where the query has no video
// caps.
bool propose_allocation(GstQuery *query, const AllocationNeeds &needs, const Downstream &downstream);

// Decides on pool and allocator of the output, and puts them into the query that downstream has answered: downstream's
// pool where frames can be written to it, else an own one, and downstream's allocator if it names one. Returns what
// downstream answered. Throws Error where no pool can be made.
Downstream decide_allocation(GstObject *element, GstQuery *query, const AllocationNeeds &needs);

// Whether a frame is filtered in place, so that pixels outside its regions cost nothing. The buffer itself then goes
// downstream: all of it must be writable, in the kind of memory that the output caps name, and laid out as downstream
// takes it. A buffer with a crop rectangle is never filtered in place, since the output is only the rectangle.
bool filters_in_place(GstBuffer *buffer, const StreamContext &context, const Downstream &downstream);

// Whether planes and rows are stored where a reader without support for GstVideoMeta expects them.
bool has_default_layout(GstBuffer *buffer, const GstVideoInfo &info);

// A new buffer of the base class's pool, with the metas of `inbuf`; transfer full. Throws std::bad_alloc where there
// is no memory for it.
GstFlowReturn new_output_buffer(GstBaseTransform *trans, GstBuffer *inbuf, GstBuffer **outbuf);

// The pool that output buffers come from: the base class's, which it may release at any time. Any thread may call.
class OutputPool {
 public:
  void set(Ref<GstBufferPool> pool);
  // Wakes the thread that waits for a buffer, and lets none wait while `stopped` is true.
  void follow(const std::atomic<bool> &stopped);

 private:
  std::mutex lock_;  // guards pool_, also while it gets a state: the latest one stays
  Ref<GstBufferPool> pool_;
};

}  // namespace cudaconv::gst
