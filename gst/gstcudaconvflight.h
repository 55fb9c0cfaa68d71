// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The frames of one element between its pads: their order, the threads that wait for them, and recovery when a device
// fails.
#pragma once

#include <gst/base/gstbasetransform.h>

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>

#include "gstcudaconvallocation.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

class Session;

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
  Flight(GstBaseTransform *trans, Session &session) : trans_(trans), session_(session), counts_(trans) {}

  // Whether frames, serialized events and queries may enter: GstPad lets them in before the element has started, and
  // queries when it has stopped. Call let_in() with the stream lock of the sink pad, before the element starts, and
  // where it cannot start. A handler may stop it meanwhile: halt() undoes let_in().
  bool lets_in() const { return lets_in_; }
  void let_in(bool in) { lets_in_ = in; }
  // Resets the counts.
  void start();
  // To be called for each frame and event of upstream. Returns how often the stream was interrupted.
  guint begin();
  // The flow return of a failure of what began then: GST_FLOW_FLUSHING where a flush or a deactivated pad has
  // interrupted the stream since, or still does. It may be running again by now.
  GstFlowReturn flow_of_failure(guint interruptions, GstFlowReturn otherwise) const;
  // Posts an error, unless a frame that was in flight at the same time has failed, too: a lost device is one error.
  void report(const std::exception &e);

  // To be called when the source pad is activated, `by_source_pad`, which starts the task, and by start(). Undoes
  // halt().
  void resume(bool by_source_pad);
  // To be called when a pad is deactivated; `by_source_pad`: which one, the source pad's stops the task. Drops the
  // frames in flight; waits no longer than a kernel takes.
  void halt(bool by_source_pad);
  // To be called on FLUSH_START: submit(), push() and drain() return, and the frames in flight are dropped.
  // `by_source_pad`: it comes from downstream, and the task pauses.
  void begin_flush(bool by_source_pad) { interrupt(by_source_pad); }
  // To be called on FLUSH_STOP, with the stream lock of the pad. Waits until nothing is in flight but a frame that this
  // thread is pushing.
  void end_flush(bool by_source_pad);

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

  OutputPool &pool() { return pool_; }
  const FrameCounts &counts() const { return counts_; }

  // Becomes true where work on the next frame is to be given up.
  const std::atomic<bool> &stopped() const { return stopped_; }
  // Notes that a frame is dropped before it gets here, so that the next one becomes a discontinuity.
  void note_lost() { lost_ = true; }
  // Whether frames were lost before the one that is being prepared. Clears the note.
  bool take_lost() { return lost_.exchange(false); }

 private:
  struct InFlight {
    std::list<std::unique_ptr<Frame>> frames;  // oldest first, but for the one that lands
    guint on_device = 0;                       // frames submitted and not yet retired
    guint unpushed = 0;                        // frames whose output is still to be pushed

    bool empty() const { return !on_device && !unpushed; }
  };

  void start_pushing();
  void land_all();
  bool is_drained() const { return stopped_ || !task_runs_ || line_.empty(); }
  bool land_first();
  void wait_for_frame();
  GstFlowReturn filter(Frame &frame, bool submitted, bool waits);
  void abandon(Frame &frame);
  void note_flow(GstFlowReturn flow);
  GstFlowReturn push_now(Ref<GstBuffer> buffer);
  void interrupt(bool ends_task);

  GstBaseTransform *const trans_;
  Session &session_;
  OutputPool pool_;
  FrameCounts counts_;
  std::atomic<bool> stopped_{true};  // flushing, or the pads are inactive: backends give up
  std::atomic<bool> lets_in_{false};
  std::atomic<bool> lost_{false};
  std::atomic<bool> failed_{false};  // an error has been posted, and frames may be in flight that fail in its wake

  // Held while a frame lands, before lock_. Recursive as GstPad's stream lock: a probe may seek in the thread that
  // pushes. The stream lock itself will not do, since the task also holds it while it waits for a frame.
  std::recursive_mutex landing_;
  mutable std::mutex lock_;          // guards the members below; never held while waiting for a device or downstream
  std::condition_variable changed_;  // signals changes of these members and of stopped_
  bool task_runs_ = false;           // the source pad is active, and the system had a thread
  InFlight line_;
  guint interruptions_ = 1;           // how often the stream was stopped
  GstFlowReturn flow_ = GST_FLOW_OK;  // from downstream to the task, until submit() or push() returns it
};

}  // namespace cudaconv::gst
