// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a roihold asks of upstream and of downstream: buffers for the frames that wait, and time.
#pragma once

#include <gst/video/video.h>

#include <optional>

#include "gstcudaconvref.h"

namespace cudaconv::gst {

// Nanoseconds that frames wait for later ones: a frame leaves when the first frame comes that is at least `lookahead`
// later; a field, when the first field comes that is later by more. `info`: of the frames, if it is known.
GstClockTime hold_latency(guint64 lookahead, const std::optional<GstVideoInfo> &info);

// Answers upstream's ALLOCATION query as downstream does, and adds the frames that wait for `latency` nanoseconds.
gboolean answer_allocation_query(GstPad *srcpad, GstQuery *query, GstClockTime latency);

// Nanoseconds since a live source, whose latency is `upstream`, should have sent the frame; GST_CLOCK_STIME_NONE if
// that is not known.
GstClockTimeDiff lateness_of(GstElement *element, GstClockTime running_time, GstClockTime upstream);

// Whether a sink of the pipeline still waits for its first frame after the start, a seek or a pause.
bool awaits_frame(GstElement *element);

// The buffers that upstream has for frames, as far as is known.
class UpstreamBuffers {
 public:
  // The pool of the oldest frame that waits, which may have none.
  void know(GstBufferPool *pool);
  void forget();

  bool owns(const GstBuffer *buffer) const { return buffer->pool == pool_.get(); }
  // Whether upstream has no buffer left to send the next frame in. `waiting`: the number of frames that wait;
  // `of_pool`: of those that wait in buffers of the pool.
  bool are_used(size_t waiting, size_t of_pool) const;
  // Whether the pool can be asked, and then whether it has no buffer left: upstream may hold some itself.
  bool can_be_asked() const;
  bool are_none_left() const;
  // Notes that upstream has no buffer where this number of frames waits.
  void leave_one(size_t waiting) { most_waiting_ = waiting - 1; }

 private:
  size_t most_waiting_ = G_MAXSIZE;  // frames that leave upstream a buffer
  Ref<GstBufferPool> pool_;
  guint size_ = 0;  // of the pool 0: any number
};

}  // namespace cudaconv::gst
