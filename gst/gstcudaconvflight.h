// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The frames of one element between its pads: their order, what becomes of them when a device fails, and who waits for
// what.
#pragma once

#include <gst/base/gstbasetransform.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// The thread of upstream submits frames. One at a time, that thread also waits for the frame and pushes it. Where
// several may be on the GPU, a task of the source pad waits for them one by one and pushes each when it is done, so
// that none stays behind for want of a next one. Everything else that goes downstream in the order of the stream,
// events, serialized queries and caps, goes from the thread of upstream after drain().
//
// What downstream returns to the task is returned by the next submit() or push(), once, and the frames that were in
// flight then are dropped.
class Flight {
 public:
  // What takes the place of the context of a frame on which the device failed; nullptr, with an error message posted,
  // where nothing may. Called on either thread.
  using FailOver = std::function<std::shared_ptr<const StreamContext>(const StreamContext &, const Error &)>;

  Flight(GstBaseTransform *trans, FailOver fail_over);

  // The element starts; `with_task`: frames may be in flight. Resets the counts.
  void start(bool with_task);
  // The pads are activated: goes on after halt().
  void resume();
  // The pads are deactivated: stops the task, and drops what is in flight, with no more waiting than a kernel takes.
  void halt();
  // The element stops.
  void stop();
  // A flush begins: submit(), push() and drain() return, and what is in flight is dropped.
  void begin_flush();
  // It ends, and nothing is in flight any more. On the thread of upstream.
  void end_flush();

  // Filters the frame, whose output is pushed after those before it. `most` is how many frames may be on the device at
  // once: up to 1 the frame has been pushed when this returns. What downstream said of this frame or an earlier one;
  // GST_FLOW_ERROR, with an error message posted, where the frame cannot be filtered.
  GstFlowReturn submit(std::unique_ptr<Frame> frame, guint most);
  // Pushes a buffer as it is, after the frames in flight.
  GstFlowReturn push(Ref<GstBuffer> buffer);
  // Waits until all frames have been pushed and nothing is left on the device. What downstream said is kept for the
  // next submit() or push(), and never replaced by what it says later.
  void drain();
  // What downstream said is of no more interest where it was GST_FLOW_EOS: a new segment begins.
  void forget_eos();

  // A frame is dropped before it gets here: the next one is a discontinuity.
  void note_lost() { lost_ = true; }
  // Whether the frame that is prepared now comes after one that was lost.
  bool take_lost() { return lost_.exchange(false); }

  BackendStats totals() const;                         // since start()
  guint64 pushed() const { return pushed_; }           // frames since start() or a flush
  GstClockTime position() const { return position_; }  // the end of the frame that was pushed last, in the segment

 private:
  static void run_task(gpointer flight);
  void wait_for_frame();
  bool begin(Frame &frame);
  bool fail_over(Frame &frame, const Error &e);
  bool finish(Frame &frame);
  void abandon(Frame &frame);
  void land(std::unique_ptr<Frame> frame, bool drop);
  void set_flow(GstFlowReturn flow);
  GstFlowReturn take_flow();
  GstFlowReturn push_now(Ref<GstBuffer> buffer);
  void count(Engine &engine);
  void set_pool_flushing(bool flushing);

  GstBaseTransform *const trans_;
  const FailOver fail_over_;
  std::atomic<bool> stopped_{true};  // flushing, or the pads are not active: backends give up
  std::atomic<bool> lost_{false};
  std::atomic<guint64> pushed_{0};
  std::atomic<GstClockTime> position_{GST_CLOCK_TIME_NONE};

  mutable std::mutex lock_;                    // guards what follows, and is never held while something waits
  std::condition_variable changed_;            // any of it
  std::deque<std::unique_ptr<Frame>> frames_;  // in flight, oldest first
  guint on_device_ = 0;                        // frames submitted and not yet retired
  guint unpushed_ = 0;                         // frames in flight whose output is still to be pushed
  bool landing_ = false;                       // the task has a frame in hand
  bool wants_task_ = false, runs_task_ = false, ends_task_ = false;
  GstFlowReturn flow_ = GST_FLOW_OK;  // what downstream said, until it is returned
  BackendStats totals_;
};

}  // namespace cudaconv::gst
