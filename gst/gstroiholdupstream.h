// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a roihold asks of upstream and of downstream: buffers for the frames that wait, and time.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "gstcudaconvref.h"

namespace cudaconv::gst {

// Nanoseconds that frames wait for later ones: a frame leaves when the first frame comes that is at least `lookahead`
// later; where frames share times, as fields do, when the first one comes that is later by more. `info`: of the frames,
// if it is known.
GstClockTime hold_latency(guint64 lookahead, const std::optional<GstVideoInfo> &info, bool shares_times);

// Answers upstream's ALLOCATION query as downstream does, and adds the frames that wait for `latency` nanoseconds.
gboolean answer_allocation_query(GstPad *srcpad, GstQuery *query, GstClockTime latency);

// Finds out why no frame comes while frames wait: upstream without buffers, a branch of the pipeline that blocks, a
// live source that has stopped. Then the first one has to leave early. One thread at a time, but for set_latency().
class UpstreamWatch {
 public:
  explicit UpstreamWatch(GstElement *element) : element_(element) {}

  // Sets the latency of a live upstream; GST_CLOCK_TIME_NONE where it is not live. Any thread may call.
  void set_latency(GstClockTime latency) { latency_ = latency; }

  // Sets the pool of the oldest frame that waits; nullptr where it has none, and when the element stops.
  void know_pool(GstBufferPool *pool);
  bool is_of_pool(const GstBuffer *buffer) const { return buffer->pool == pool_.get(); }
  // Whether upstream has no buffer left to send the next frame in, as far as is known. `waiting`: the number of frames
  // that wait in buffers of the pool.
  bool is_out_of_buffers(size_t waiting) const { return waiting > most_waiting_; }

  // A frame of this stream time has come, and waits for `wait` nanoseconds. Returns how many frames look() let go
  // because of the clock although this one belongs to their look-ahead.
  size_t note_frame(int64_t time, GstClockTime running_time, guint64 wait);
  // Microseconds until look() is to be called, if no other frame comes.
  gint64 left() const { return alarm_ - g_get_monotonic_time(); }

  static constexpr char kShort[] = "upstream has too few buffers for lookahead or interpolate";
  // Why the first of the frames that wait has to leave early, for a warning; nullptr where it has not. An empty text: a
  // live source should have sent all that the frame waits for. The frame has these times, and waits for `latency`.
  // `waiting`: as for is_out_of_buffers().
  const char *look(size_t waiting, int64_t time, GstClockTime running_time, GstClockTime latency);

 private:
  GstClockTimeDiff lateness_of(GstClockTime running_time) const;

  GstElement *const element_;
  std::atomic<GstClockTime> latency_{GST_CLOCK_TIME_NONE};
  Ref<GstBufferPool> pool_;
  size_t most_waiting_ = G_MAXSIZE;     // frames in buffers of the pool that leave upstream one
  gint64 came_ = 0, alarm_ = 0;         // when the last frame came, when to look next: microseconds, monotonic
  GstClockTimeDiff lateness_ = 0;       // of the last frame that came from a live source
  std::vector<int64_t> left_by_clock_;  // stream times of the frames that the clock let go, since a frame came
};

}  // namespace cudaconv::gst
