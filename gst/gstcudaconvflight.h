// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The frames of one element between its pads: their order, the threads that wait for them, and recovery when a device
// fails.
#pragma once

#include <gst/base/gstbasetransform.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// Threads: the sink pad's streaming thread submits frames. Where one frame at a time may be on the device, that thread
// also waits for it and pushes it. Where several may be, a task of the source pad waits for them in order and pushes
// each when it is done. So no frame waits for the next one to arrive. The sink pad's streaming thread sends serialized
// events, queries and caps after drain().
//
// Frames that leave in the order of a CUDA stream (Frame::has_left()) are never in flight here: the sink pad's
// streaming thread enqueues their work and pushes them, once all earlier frames have been pushed.
//
// A flow return that the task gets from downstream is returned by the next submit() or push(), once. The frames that
// are in flight then are dropped.
class Flight {
 public:
  // Returns a replacement for the context of a frame on which the device failed; nullptr, with an error message posted,
  // if there is none. Called on either thread.
  using FailOver = std::function<std::shared_ptr<const StreamContext>(const StreamContext &, const Error &)>;

  Flight(GstBaseTransform *trans, FailOver fail_over);

  // Call await_start() before the sink pad becomes active, then start() unless the element cannot start, and
  // end_start() when the pad is active. start() resets the counts. `with_task`: several frames may be in flight.
  void await_start() { set_start(Start::Awaited); }
  void start(bool with_task);
  void end_start(bool started) { set_start(started ? Start::Done : Start::Stopped); }
  // To be called by the sink pad's streaming thread before it does anything: GstPad lets it in before the element has
  // started. Waits for that. False where the element cannot start, or has stopped: queries reach inactive pads, too.
  bool enter();
  // A number, and whether a flush or a deactivated pad has interrupted the stream since it was returned, or still does.
  guint interruptions() const { return interruptions_; }
  bool interrupted_since(guint number) const;

  // To be called when the source pad is activated, `by_source_pad`, and by start(). Undoes halt().
  void resume(bool by_source_pad);
  // To be called when a pad is deactivated; `by_source_pad`: which one. Stops the task and drops the frames in flight;
  // waits no longer than a kernel takes.
  void halt(bool by_source_pad);
  // To be called when the element stops.
  void stop();
  // To be called on FLUSH_START: submit(), push() and drain() return, and the frames in flight are dropped.
  void begin_flush();
  // To be called on FLUSH_STOP, with the sink pad's stream lock. Waits until nothing is in flight but a frame that this
  // thread is pushing.
  void end_flush();

  // Filters the frame and pushes its output, in the order of frames. `most`: how many frames may be on the device at
  // once; up to 1 the frame has been pushed when this returns. Returns what downstream returned for this frame or an
  // earlier one; GST_FLOW_FLUSHING; or GST_FLOW_ERROR, with an error message posted, where the frame cannot be
  // filtered.
  GstFlowReturn submit(std::unique_ptr<Frame> frame, guint most);
  // Pushes a buffer as it is, after the frames in flight. Returns what downstream returned for it or an earlier frame.
  GstFlowReturn push(Ref<GstBuffer> buffer);
  // Waits until all frames have been pushed and nothing is left on the device, or until a flush or halt(). A flow
  // return other than OK is kept for the next submit() or push(), the first one where there are several.
  void drain();
  // Returns the flow return that was kept, once. Where there is one, waits until the frames in flight are dropped.
  GstFlowReturn take_flow();
  // Forgets a flow return of GST_FLOW_EOS, since a new segment or stream begins.
  void forget_eos();

  // Sets the pool that output buffers come from; nullptr: none. Interruptions wake the thread that waits for one.
  void set_pool(Ref<GstBufferPool> pool);

  // Becomes true where work on the next frame is to be given up.
  const std::atomic<bool> &stopped() const { return stopped_; }
  // Notes that a frame is dropped before it gets here, so that the next one becomes a discontinuity.
  void note_lost() { lost_ = true; }
  // Whether frames were lost before the one that is being prepared. Clears the note.
  bool take_lost() { return lost_.exchange(false); }

  BackendStats totals() const;                         // since start()
  guint64 device_ns() const { return device_ns_; }     // of the latest frame; 0 before the first one
  guint64 pushed() const { return pushed_; }           // frames since start() or a flush
  GstClockTime position() const { return position_; }  // end timestamp of the frame that was pushed last

 private:
  enum class Start { Stopped, Awaited, Done };

  void set_start(Start start);
  void wait_for_earlier();
  void land_first(std::unique_lock<std::mutex> &guard);
  void wait_for_frame();
  GstFlowReturn filter(Frame &frame, bool submitted, bool waits);
  bool fail_over(Frame &frame, const Error &e);
  void abandon(Frame &frame);
  void land(std::unique_ptr<Frame> frame, bool drop);
  void note_flow(GstFlowReturn flow);
  GstFlowReturn push_now(Ref<GstBuffer> buffer);
  void count(Engine &engine, size_t views);
  void set_pool_flushing();

  GstBaseTransform *const trans_;
  const FailOver fail_over_;
  std::atomic<bool> stopped_{true};  // flushing, or the pads are inactive: backends give up
  std::atomic<guint> interruptions_{0};
  std::atomic<bool> lost_{false};
  std::atomic<guint64> pushed_{0};
  std::atomic<guint64> device_ns_{0};
  std::atomic<GstClockTime> position_{GST_CLOCK_TIME_NONE};

  // Held while the task is being started: halt() then stops it. Recursive, since GstPad posts a message meanwhile.
  std::recursive_mutex starting_;
  std::mutex waking_;                  // held while the pool gets the state of stopped_: the latest one stays
  mutable std::mutex lock_;            // guards the members below; never held while waiting for a device or downstream
  std::condition_variable changed_;    // signals changes of these members and of stopped_, but to the task
  std::condition_variable submitted_;  // signals to the task that there is a frame, or that it ends
  Start start_ = Start::Stopped;
  std::list<std::unique_ptr<Frame>> frames_;  // in flight, oldest first
  guint on_device_ = 0;                       // frames submitted and not yet retired
  guint unpushed_ = 0;                        // frames in flight whose output is still to be pushed
  guint landing_ = 0;                         // frames that threads have taken from frames_ and are completing
  std::thread::id lander_;                    // the thread that took the latest of them
  bool wants_task_ = false, runs_task_ = false;
  bool source_is_active_ = false;     // the source pad, whose deactivation waits for the task
  guint halts_ = 0;                   // threads in halt(): the task ends. Pads may be deactivated at the same time.
  GstFlowReturn flow_ = GST_FLOW_OK;  // from downstream to the task, until submit() or push() returns it
  BackendStats totals_;
  Ref<GstBufferPool> pool_;  // the base class's, which it may release at any time
};

}  // namespace cudaconv::gst
