// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The path of a frame from the sink pad to Flight: its wait for later ones, its settings, its regions, and its output
// buffer.
#pragma once

#include <gst/base/gstbasetransform.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "gstcudaconvallocation.h"
#include "gstcudaconvflight.h"
#include "gstcudaconvsession.h"

namespace cudaconv::gst {

// For the thread that holds the stream lock of the sink pad, but for stop(), which Flight::enter() keeps apart from it.
//
// With roi-lookahead, frames wait here, and with them the events between them. A thread watches while any wait: it
// takes the stream lock and lets the oldest frame go early where upstream has no buffer left to send the next one in.
//
// Pad probes and handlers of messages may call stop() in the midst of any function: then nothing waits any more, and
// there is no context.
class Path {
 public:
  // `announce_latency` is called where the latency may have changed. `forward` handles an event (transfer full) when
  // the frames before it have left.
  Path(GstBaseTransform *trans, Session &session, Flight &flight, std::function<void()> announce_latency,
       gboolean (*forward)(GstBaseTransform *trans, GstEvent *event))
      : trans_(trans),
        session_(session),
        flight_(flight),
        announce_latency_(std::move(announce_latency)),
        forward_(forward) {}
  ~Path() { stop(); }

  void stop();

  // For GstBaseTransform's set_caps, after Session::configure().
  void update_passthrough();
  // For decide_allocation and propose_allocation.
  void set_downstream(const Downstream &downstream) { downstream_ = downstream; }
  const Downstream &downstream() const { return downstream_; }
  // For submit_input_buffer: brings settings, device and crop rectangle up to date, hands the frame to the base class,
  // which may negotiate anew or drop it, and looks for its regions. Posts an error message if that fails.
  GstFlowReturn take(bool is_discont, Ref<GstBuffer> buffer);
  // For generate_output: filters or passes on, by way of Flight, the frame that the base class has kept and those that
  // waited for it, or has it wait. Posts an error message if that fails.
  GstFlowReturn send();
  // Handles a serialized event (transfer full), or has it wait behind frames.
  gboolean take_event(GstEvent *event);
  // Sends all waiting frames and events, with the regions known so far.
  void let_all_go();
  // Drops all waiting frames and events, except events that stay with the pad. Caps that wait are those that the sink
  // pad has already.
  void flush();
  // Sets the latency of a live upstream; GST_CLOCK_TIME_NONE where it is not live. Any thread may call.
  void set_live_latency(GstClockTime latency) { live_latency_ = latency; }

 private:
  // Handling of GstVideoCropMeta in passthrough: downstream takes it, or the element copies the rectangle out.
  enum class Crop { Unknown, Taken, Copied };
  // A frame, and the events between it and the next one.
  struct Waiting {
    Ref<GstBuffer> frame;
    FrameRegions regions;
    std::list<Ref<GstEvent>> events;
    bool follows_lost;  // frames were dropped between the one before and this one
  };

  bool passes(const StreamContext &context) const;
  void set_passthrough(bool passthrough);
  void update_settings();
  void take_context();
  void follow_context(GstBuffer *buffer);
  void look_at_crop(GstBuffer *buffer);
  void check_passthrough();
  void prepare_for(GstBuffer *buffer);
  GstFlowReturn prepare(bool is_discont, GstBuffer *frame);
  GstFlowReturn submit(bool is_discont, GstBuffer *frame);
  void note_arrival(GstBuffer *frame);
  bool is_before(int64_t a, int64_t b) const;
  RoiHistory::Span times_waiting() const;
  bool ends_frames(GstEvent *event) const;
  void forget_waiting();
  bool is_due(const Waiting &waiting) const;
  bool is_short_of_buffers();
  GstFlowReturn let_first_go(bool if_due = false);
  void forward_events();
  GstFlowReturn let_due_go();
  GstFlowReturn add_buffers(Ref<GstBuffer> in, Frame *frame);
  GstFlowReturn pass(Ref<GstBuffer> buffer);
  GstFlowReturn drop(GstBuffer *buffer);
  GstFlowReturn filter(Ref<GstBuffer> in, const FrameRegions &frame_regions);

  void watch();
  GstClockTimeDiff lateness_of(GstBuffer *frame) const;
  gint64 let_go_by_clock();
  void look_for_standstill();
  void set_alarm(gint64 after);

  GstBaseTransform *const trans_;
  Session &session_;
  Flight &flight_;
  const std::function<void()> announce_latency_;
  gboolean (*const forward_)(GstBaseTransform *, GstEvent *);
  Crop crop_ = Crop::Unknown;
  Downstream downstream_;                         // from the last ALLOCATION query
  std::shared_ptr<const StreamContext> context_;  // of the frame at hand; the frames that wait have its regions
  FrameRegions arrived_;                          // of the frame that the base class has, from take() to send()
  GstBuffer *arriving_ = nullptr;                 // that frame, where all that wait leave before it
  bool lost_ = false;                             // frames were dropped since the last one that waited
  bool prepared_ = false;                         // prepare_for() has been called for the next frame to leave

  std::list<Waiting> waiting_;          // oldest first
  std::list<Ref<GstEvent>> events_;     // behind the frame that leaves
  int64_t now_ = 0;                     // the stream time up to which all frames have come
  size_t most_waiting_ = G_MAXSIZE;     // frames that leave upstream a buffer, as far as is known
  Ref<GstBufferPool> pool_;             // of the oldest frame
  guint pool_size_ = 0;                 // the number of its buffers; 0: any number
  gint64 came_ = 0;                     // when the last frame came, in microseconds of the monotonic time
  GstClockTimeDiff lateness_ = 0;       // of the last frame that came from a live source
  std::vector<int64_t> left_by_clock_;  // stream times of the frames that the clock let go, since a frame came

  std::atomic<GstClockTime> live_latency_{GST_CLOCK_TIME_NONE};

  std::mutex lock_;  // guards the members below
  std::condition_variable changed_;
  GThread *watcher_ = nullptr;
  gint64 alarm_ = 0;  // when the watcher is to look, in microseconds of the monotonic time; 0: not at all
  bool ends_ = false;
};

}  // namespace cudaconv::gst
