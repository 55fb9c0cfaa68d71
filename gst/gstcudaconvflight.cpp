// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvflight.h"

#include <algorithm>
#include <utility>

#include "gstcudaconvmessages.h"
#include "gstcudaconvsession.h"

namespace cudaconv::gst {

// ---- Starting and stopping ------------------------------------------------------------------------------------------

void Flight::start() {
  counts_.restart();
  lost_ = false;
  resume(false);
}

guint Flight::begin() {
  std::lock_guard<std::mutex> guard(lock_);
  if (line_.empty() && flow_ == GST_FLOW_OK) failed_ = false;
  return stopped_ ? 0 : interruptions_;
}

GstFlowReturn Flight::flow_of_failure(guint interruptions, GstFlowReturn otherwise) const {
  // GstPad marks the source pad before it calls halt(), and clears the mark after resume().
  GstPad *const srcpad = GST_BASE_TRANSFORM_SRC_PAD(trans_);
  GST_OBJECT_LOCK(srcpad);
  const bool flushing = GST_PAD_IS_FLUSHING(srcpad);
  GST_OBJECT_UNLOCK(srcpad);
  std::lock_guard<std::mutex> guard(lock_);
  return flushing || stopped_ || interruptions_ != interruptions ? GST_FLOW_FLUSHING : otherwise;
}

// Stops the stream, and wakes all threads that wait. `ends_task`: the task of the source pad ends.
void Flight::interrupt(bool ends_task) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    stopped_ = true;
    interruptions_++;
    task_runs_ &= !ends_task;
  }
  changed_.notify_all();
  pool_.follow(stopped_);
}

void Flight::resume(bool by_source_pad) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    stopped_ = false;
    flow_ = GST_FLOW_OK;
    task_runs_ |= by_source_pad;
  }
  pool_.follow(stopped_);
  if (by_source_pad) start_pushing();
}

void Flight::start_pushing() {
  if (start_task<&Flight::wait_for_frame>(GST_BASE_TRANSFORM_SRC_PAD(trans_), this)) return;
  std::lock_guard<std::mutex> guard(lock_);
  task_runs_ = false;  // frames go one by one
}

void Flight::halt(bool by_source_pad) {
  // The base class stops the element when those that have entered have left.
  if (!by_source_pad) lets_in_ = false;
  interrupt(by_source_pad);
  if (by_source_pad) gst_pad_stop_task(GST_BASE_TRANSFORM_SRC_PAD(trans_));
  land_all();
  std::lock_guard<std::mutex> guard(lock_);
  flow_ = GST_FLOW_OK;
}

// Waits until nothing is in flight but a frame that this thread is pushing. Drops the frames where the stream is
// stopped.
void Flight::land_all() {
  std::lock_guard<std::recursive_mutex> landing(landing_);
  while (land_first()) continue;
}

void Flight::end_flush(bool by_source_pad) {
  std::unique_lock<std::mutex> guard(lock_);
  const guint interruptions = interruptions_;
  guard.unlock();
  land_all();
  guard.lock();
  if (interruptions_ != interruptions) return;  // pads are being deactivated
  stopped_ = false;
  flow_ = GST_FLOW_OK;
  task_runs_ |= by_source_pad;
  guard.unlock();
  counts_.restart_position();
  lost_ = by_source_pad;  // upstream does not know of it, and marks no discontinuity
  pool_.follow(stopped_);
  if (by_source_pad) start_pushing();
}

// ---- The sink pad's streaming thread --------------------------------------------------------------------------------

GstFlowReturn Flight::submit(std::unique_ptr<Frame> frame, guint most) {
  {
    std::unique_lock<std::mutex> guard(lock_);
    if (!task_runs_) most = 1;
    // This frame is pushed from here, so all others must be out: frames of an engine that has failed may be in flight.
    const auto ready = [&] { return most > 1 ? line_.on_device < most : line_.empty(); };
    changed_.wait(guard, [&] { return stopped_ || flow_ != GST_FLOW_OK || ready(); });
    if (stopped_) return GST_FLOW_FLUSHING;
  }
  GstFlowReturn flow = take_flow();
  if (flow != GST_FLOW_OK) return flow;

  const bool waits = most <= 1;
  if (waits) frame->may_leave = false;
  std::list<std::unique_ptr<Frame>> place(1);  // in line_.frames, allocated before the device uses the frame
  flow = filter(*frame, false, waits);
  if (flow != GST_FLOW_OK) {
    drain();  // earlier frames go out before upstream gets the error
    return flow;
  }
  if (!frame->out) {
    lost_ = true;
    return GST_FLOW_OK;
  }
  Ref<GstBuffer> out;  // what this thread pushes
  const bool left = frame->has_left();
  if (left || waits || frame->is_stream_ordered()) {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait(guard, [this] { return stopped_ || line_.unpushed == 0; });
    guard.unlock();
    frame->out_map.reset();
    out = std::move(frame->out);
  }
  if (left) counts_.add(*frame->context->engine, frame->views.size());
  if (left || waits) {
    frame.reset();
  } else if (std::unique_lock<std::mutex> guard(lock_); task_runs_) {
    line_.on_device++;
    GST_LOG_OBJECT(trans_, "%u frames are on the device", line_.on_device);
    if (frame->out) line_.unpushed++;
    place.front() = std::move(frame);
    line_.frames.splice(line_.frames.end(), place);
    changed_.notify_all();
  } else {  // the source pad has gone off meanwhile
    guard.unlock();
    if (frame->out) lost_ = true;
    abandon(*frame);
    frame.reset();
  }
  return out ? push_now(std::move(out)) : GST_FLOW_OK;
}

GstFlowReturn Flight::push(Ref<GstBuffer> buffer) {
  drain();
  if (stopped_) return GST_FLOW_FLUSHING;
  const GstFlowReturn flow = take_flow();
  return flow == GST_FLOW_OK ? push_now(std::move(buffer)) : flow;
}

void Flight::drain() {
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return is_drained(); });
}

void Flight::forget_eos() {
  std::lock_guard<std::mutex> guard(lock_);
  if (flow_ == GST_FLOW_EOS) flow_ = GST_FLOW_OK;
}

GstFlowReturn Flight::take_flow() {
  std::unique_lock<std::mutex> guard(lock_);
  if (flow_ != GST_FLOW_OK) changed_.wait(guard, [this] { return is_drained(); });
  return std::exchange(flow_, GST_FLOW_OK);
}

// ---- The task of the source pad -------------------------------------------------------------------------------------

void Flight::wait_for_frame() {
  {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait(guard, [this] { return !task_runs_ || !line_.frames.empty(); });
    if (!task_runs_) {  // halt() or end_flush() drops the frames that are left
      guard.unlock();
      gst_pad_pause_task(GST_BASE_TRANSFORM_SRC_PAD(trans_));
      return;
    }
  }
  std::lock_guard<std::recursive_mutex> landing(landing_);
  land_first();  // if nobody else has
}

// Takes the oldest frame in flight, waits until it is complete, and pushes its output if submit() has not. Drops the
// frame where the stream is stopped or has failed. Returns false where there is none. Call with landing_ held.
bool Flight::land_first() {
  std::unique_lock<std::mutex> guard(lock_);
  if (line_.frames.empty()) return false;
  std::unique_ptr<Frame> frame = std::move(line_.frames.front());
  line_.frames.pop_front();
  const bool drop = stopped_ || flow_ != GST_FLOW_OK, pushes = frame->out != nullptr;
  guard.unlock();
  GstFlowReturn flow = GST_FLOW_OK;
  if (drop)
    abandon(*frame);
  else
    flow = filter(*frame, true, true);
  Ref<GstBuffer> out = std::move(frame->out);
  frame.reset();  // releases the input, which upstream may be waiting for
  guard.lock();
  note_flow(flow);
  line_.on_device--;
  // The next frame becomes a discontinuity. It may be in flight already.
  const bool lost = pushes && (drop || !out);
  if (lost && !drop && !line_.frames.empty() && line_.frames.front()->out)
    GST_BUFFER_FLAG_SET(line_.frames.front()->out.get(), GST_BUFFER_FLAG_DISCONT);
  else if (lost)
    lost_ = true;
  guard.unlock();
  changed_.notify_all();
  const bool goes = out && flow == GST_FLOW_OK && !drop && !stopped_;
  flow = goes ? push_now(std::move(out)) : GST_FLOW_OK;
  guard.lock();
  note_flow(flow);
  line_.unpushed -= pushes;
  guard.unlock();
  changed_.notify_all();
  return true;
}

// Notes the flow return of a frame in flight: those behind it are dropped. Call with lock_ held.
void Flight::note_flow(GstFlowReturn flow) {
  if (flow == GST_FLOW_OK) return;
  GST_DEBUG_OBJECT(trans_, "a frame in flight ended with %s", gst_flow_get_name(flow));
  flow_ = flow;
}

// ---- Both threads ---------------------------------------------------------------------------------------------------

GstFlowReturn Flight::push_now(Ref<GstBuffer> buffer) {
  counts_.note_push(buffer.get());
  // A kind of success is of no use upstream: it may be for an earlier frame.
  const GstFlowReturn flow = std::min(gst_pad_push(GST_BASE_TRANSFORM_SRC_PAD(trans_), buffer.release()), GST_FLOW_OK);
  if (flow != GST_FLOW_OK) lost_ = true;
  return flow;
}

// Has the backend filter the frame, or the one that replaces a backend that fails on it. `submitted`: the backend has
// the frame already. `waits`: until the frame is complete. Returns GST_FLOW_OK also where the frame is lost with its
// device, and its `out` is then empty; GST_FLOW_FLUSHING where the frame has been cancelled; and GST_FLOW_ERROR, with
// an error message posted, where it cannot be filtered.
GstFlowReturn Flight::filter(Frame &frame, bool submitted, bool waits) {
  try {
    for (;; submitted = false) {
      Engine &engine = *frame.context->engine;
      try {
        if (!submitted) frame.submit(stopped_);
        if (!waits) return GST_FLOW_OK;
        frame.retire();
        const bool on_device = frame.out_map && frame.out_map->view().on_device;
        frame.unmap();
        if (on_device) engine.device->mark_complete(frame.out.get());
        counts_.add(engine, frame.views.size());
        return GST_FLOW_OK;
      } catch (const Error &e) {
        frame.unmap();
        if (e.kind() == Error::Kind::Cancelled) return GST_FLOW_FLUSHING;
        frame.context = session_.fail_over(*frame.context, e);
        if (!frame.out) return GST_FLOW_OK;
        if (!frame.can_be_filtered_again()) {  // part source, perhaps, and part result
          GST_WARNING_OBJECT(trans_, "a frame that was filtered in place is lost with the device");
          frame.out.reset();
          return GST_FLOW_OK;
        }
      }
    }
  } catch (const std::exception &e) {
    frame.unmap();
    report(e);
  }
  return GST_FLOW_ERROR;
}

void Flight::report(const std::exception &e) {
  if (!failed_.exchange(true)) post_error(GST_ELEMENT_CAST(trans_), e);
}

// Waits until the device no longer uses a frame that is to be dropped.
void Flight::abandon(Frame &frame) {
  try {
    frame.retire();
    counts_.add(*frame.context->engine, frame.views.size());
  } catch (const std::exception &e) {
    GST_DEBUG_OBJECT(trans_, "error of a dropped frame: %s", e.what());
  }
  frame.unmap();
}

}  // namespace cudaconv::gst
