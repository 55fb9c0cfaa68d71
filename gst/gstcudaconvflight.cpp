// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvflight.h"

#include <algorithm>
#include <utility>

#include "gstcudaconvmessages.h"
#include "gstcudaconvsegment.h"
#include "gstcudaconvtask.h"

namespace cudaconv::gst {

Flight::Flight(GstBaseTransform *trans, FailOver fail_over) : trans_(trans), fail_over_(std::move(fail_over)) {}

// ---- Starting and stopping ------------------------------------------------------------------------------------------

void Flight::start(bool with_task) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    wants_task_ = with_task;
    totals_ = BackendStats();
  }
  pushed_ = 0;
  device_ns_ = 0;
  position_ = GST_CLOCK_TIME_NONE;
  lost_ = false;
  resume(false);
}

void Flight::set_start(Start start) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (start != Start::Done || start_ == Start::Awaited) start_ = start;  // a handler may have stopped the element
  }
  changed_.notify_all();
}

bool Flight::enter() {
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return start_ != Start::Awaited; });
  return start_ == Start::Done;
}

bool Flight::interrupted_since(guint number) const {
  std::lock_guard<std::mutex> guard(lock_);
  return stopped_ || interruptions_ != number;
}

void Flight::resume(bool by_source_pad) {
  {
    std::lock_guard<std::recursive_mutex> starting(starting_);
    bool starts;
    {
      std::lock_guard<std::mutex> guard(lock_);
      stopped_ = false;
      flow_ = GST_FLOW_OK;
      source_is_active_ |= by_source_pad;
      starts = wants_task_ && !runs_task_ && !halts_ && source_is_active_;
      if (starts) runs_task_ = true;
    }
    const auto run = [](gpointer flight) { static_cast<Flight *>(flight)->wait_for_frame(); };
    if (starts && !start_task(GST_BASE_TRANSFORM_SRC_PAD(trans_), run, this)) {
      std::lock_guard<std::mutex> guard(lock_);
      runs_task_ = false;  // frames go one by one
    }
  }
  set_pool_flushing();
}

void Flight::halt(bool by_source_pad) {
  bool stop_task;
  {
    std::lock_guard<std::recursive_mutex> starting(starting_);
    std::lock_guard<std::mutex> guard(lock_);
    stopped_ = true;
    interruptions_++;
    halts_++;
    source_is_active_ &= !by_source_pad;
    // The base class stops the element when those that have entered have left. Queries reach inactive pads, too.
    if (!by_source_pad) start_ = Start::Stopped;
    stop_task = runs_task_;
  }
  changed_.notify_all();
  submitted_.notify_all();
  set_pool_flushing();
  if (stop_task) gst_pad_stop_task(GST_BASE_TRANSFORM_SRC_PAD(trans_));
  std::unique_lock<std::mutex> guard(lock_);
  runs_task_ = false;
  halts_--;
  while (!frames_.empty()) land_first(guard);
  flow_ = GST_FLOW_OK;
}

void Flight::stop() {
  {
    std::lock_guard<std::mutex> guard(lock_);
    wants_task_ = false;
  }
  halt(false);
  set_pool(nullptr);
}

void Flight::begin_flush() {
  {
    std::lock_guard<std::mutex> guard(lock_);
    stopped_ = true;
    interruptions_++;
  }
  changed_.notify_all();
  submitted_.notify_all();
  set_pool_flushing();
}

void Flight::end_flush() {
  std::unique_lock<std::mutex> guard(lock_);
  const bool lands = lander_ == std::this_thread::get_id();  // a pad probe seeks while this thread pushes a frame
  while (lands && !frames_.empty()) land_first(guard);
  changed_.wait(guard, [&] { return (frames_.empty() && landing_ == (lands ? 1u : 0u)) || halts_ || !runs_task_; });
  if (halts_) return;  // halt() has been called meanwhile: the pads are being deactivated
  stopped_ = false;
  flow_ = GST_FLOW_OK;
  guard.unlock();
  pushed_ = 0;
  position_ = GST_CLOCK_TIME_NONE;
  lost_ = false;
  set_pool_flushing();
}

// Wakes the sink pad's streaming thread, which may be waiting for a buffer of the output pool while all are in use.
void Flight::set_pool_flushing() {
  std::lock_guard<std::mutex> waking(waking_);
  Ref<GstBufferPool> pool;
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (pool_) pool.reset(GST_BUFFER_POOL(gst_object_ref(pool_.get())));
  }
  if (pool) gst_buffer_pool_set_flushing(pool.get(), stopped_);
}

void Flight::set_pool(Ref<GstBufferPool> pool) {
  std::lock_guard<std::mutex> guard(lock_);
  pool_.swap(pool);  // the other one is released without the lock: arguments outlive local variables
}

// ---- The sink pad's streaming thread --------------------------------------------------------------------------------

GstFlowReturn Flight::submit(std::unique_ptr<Frame> frame, guint most) {
  GstFlowReturn flow;
  {
    std::unique_lock<std::mutex> guard(lock_);
    if (!runs_task_) most = 1;
    if (most <= 1) frame->may_leave = false;
    // This frame is pushed from here, so all others must be out: frames of an engine that has failed may be in flight.
    const auto ready = [&] { return most > 1 ? on_device_ < most : frames_.empty() && !landing_; };
    changed_.wait(guard, [&] { return stopped_ || flow_ != GST_FLOW_OK || ready(); });
    if (stopped_) return GST_FLOW_FLUSHING;
    flow = flow_;
  }
  if (flow != GST_FLOW_OK) return take_flow();

  std::list<std::unique_ptr<Frame>> place(1);  // in frames_, allocated before the device uses the frame
  flow = filter(*frame, false, most <= 1);
  if (flow != GST_FLOW_OK) {
    drain();  // earlier frames go out before upstream gets the error
    return flow;
  }
  if (!frame->out) {
    lost_ = true;
    return GST_FLOW_OK;
  }
  const bool left = frame->has_left();
  if (left) {
    wait_for_earlier();
    count(*frame->context->engine, frame->views.size());
    frame->unmap();
  }
  if (left || most <= 1) {
    Ref<GstBuffer> out = std::move(frame->out);
    frame.reset();
    return push_now(std::move(out));
  }

  Ref<GstBuffer> ordered;
  if (frame->is_stream_ordered()) {
    wait_for_earlier();
    frame->out_map.reset();
    ordered = std::move(frame->out);
  }
  bool in_time;
  {
    std::lock_guard<std::mutex> guard(lock_);
    in_time = !halts_ && runs_task_;
    on_device_++;
    GST_LOG_OBJECT(trans_, "%u of at most %u frames are on the device", on_device_, most);
    if (in_time) {
      if (!ordered) unpushed_++;
      place.front() = std::move(frame);
      frames_.splice(frames_.end(), place);
    }
    submitted_.notify_one();
  }
  if (!in_time) land(std::move(frame), true);
  return ordered ? push_now(std::move(ordered)) : GST_FLOW_OK;
}

// Waits until all earlier frames have been pushed.
void Flight::wait_for_earlier() {
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return stopped_ || unpushed_ == 0; });
}

GstFlowReturn Flight::push(Ref<GstBuffer> buffer) {
  drain();
  if (stopped_) return GST_FLOW_FLUSHING;
  const GstFlowReturn flow = take_flow();
  return flow == GST_FLOW_OK ? push_now(std::move(buffer)) : flow;
}

void Flight::drain() {
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return stopped_ || !runs_task_ || (frames_.empty() && !landing_); });
}

void Flight::forget_eos() {
  std::lock_guard<std::mutex> guard(lock_);
  if (flow_ == GST_FLOW_EOS) flow_ = GST_FLOW_OK;
}

GstFlowReturn Flight::take_flow() {
  {
    std::unique_lock<std::mutex> guard(lock_);
    if (flow_ == GST_FLOW_OK) return GST_FLOW_OK;
  }
  drain();  // waits until the frames that are in flight have been dropped
  std::lock_guard<std::mutex> guard(lock_);
  return std::exchange(flow_, GST_FLOW_OK);
}

// ---- The task of the source pad -------------------------------------------------------------------------------------

void Flight::wait_for_frame() {
  std::unique_lock<std::mutex> guard(lock_);
  submitted_.wait(guard, [this] { return halts_ || (!frames_.empty() && !landing_); });
  if (halts_) return;  // halt() drops the frames that are left
  land_first(guard);
}

// Takes the oldest frame in flight and lands it. Call with lock_ held, which is not held meanwhile.
void Flight::land_first(std::unique_lock<std::mutex> &guard) {
  std::unique_ptr<Frame> frame = std::move(frames_.front());
  frames_.pop_front();
  landing_++;
  lander_ = std::this_thread::get_id();
  const bool drop = stopped_ || flow_ != GST_FLOW_OK, pushes = frame->out != nullptr;
  guard.unlock();
  land(std::move(frame), drop);
  guard.lock();
  if (--landing_ == 0) lander_ = {};
  if (pushes) unpushed_--;  // by land(), not by submit()
  changed_.notify_all();
  submitted_.notify_one();
}

// Waits until a frame in flight is complete, and pushes its output if submit() has not. `drop`: discards the frame.
void Flight::land(std::unique_ptr<Frame> frame, bool drop) {
  const bool pushes = frame->out != nullptr;
  GstFlowReturn flow = GST_FLOW_OK;
  if (drop)
    abandon(*frame);
  else
    flow = filter(*frame, true, true);
  Ref<GstBuffer> out = std::move(frame->out);
  frame.reset();  // releases the input, which upstream may be waiting for
  {
    std::lock_guard<std::mutex> guard(lock_);
    on_device_--;
    // The next frame becomes a discontinuity. It may be in flight already.
    const bool lost = pushes && (drop || !out);
    if (lost && !drop && !frames_.empty() && frames_.front()->out)
      GST_BUFFER_FLAG_SET(frames_.front()->out.get(), GST_BUFFER_FLAG_DISCONT);
    else if (lost)
      lost_ = true;
  }
  changed_.notify_all();
  note_flow(flow);
  if (out && flow == GST_FLOW_OK && !drop && !stopped_) note_flow(push_now(std::move(out)));
}

// Notes the flow return of a frame in flight: those behind it are dropped.
void Flight::note_flow(GstFlowReturn flow) {
  if (flow == GST_FLOW_OK) return;
  GST_DEBUG_OBJECT(trans_, "a frame in flight ended with %s", gst_flow_get_name(flow));
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (flow_ == GST_FLOW_OK) flow_ = flow;
  }
  changed_.notify_all();
}

// ---- Both threads ---------------------------------------------------------------------------------------------------

GstFlowReturn Flight::push_now(Ref<GstBuffer> buffer) {
  if (GST_BUFFER_PTS_IS_VALID(buffer.get())) position_ = end_time(buffer.get());
  pushed_++;
  // A kind of success is of no use upstream: it may be for an earlier frame.
  const GstFlowReturn flow = std::min(gst_pad_push(GST_BASE_TRANSFORM_SRC_PAD(trans_), buffer.release()), GST_FLOW_OK);
  if (flow != GST_FLOW_OK) lost_ = true;
  return flow;
}

// Has the backend filter the frame, or the one that replaces a backend that fails on it. `submitted`: the backend has
// the frame already. `waits`: until the frame is complete. Returns GST_FLOW_OK also where fail_over() has dropped the
// frame, whose `out` is then empty; GST_FLOW_FLUSHING where the frame has been cancelled; and GST_FLOW_ERROR, with an
// error message posted, where it cannot be filtered.
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
        count(engine, frame.views.size());
        return GST_FLOW_OK;
      } catch (const Error &e) {
        frame.unmap();
        if (e.kind() == Error::Kind::Cancelled) return GST_FLOW_FLUSHING;
        if (!fail_over(frame, e)) return GST_FLOW_ERROR;
        if (!frame.out) return GST_FLOW_OK;
      }
    }
  } catch (const std::exception &e) {
    frame.unmap();
    post_error(GST_ELEMENT_CAST(trans_), e);
  }
  return GST_FLOW_ERROR;
}

// Replaces the backend of a frame on which it failed. Returns false, with an error message posted, where nothing may
// replace it. A frame that was filtered in place in CUDA memory may be part source and part result: it is dropped, and
// its `out` is then empty.
bool Flight::fail_over(Frame &frame, const Error &e) {
  frame.context = fail_over_(*frame.context, e);
  if (!frame.context) return false;
  if (frame.out && !frame.can_be_filtered_again()) {
    GST_WARNING_OBJECT(trans_, "a frame that was filtered in place is lost with the device");
    frame.out.reset();
  }
  return true;
}

// Waits until the device no longer uses a frame that is to be dropped.
void Flight::abandon(Frame &frame) {
  try {
    frame.retire();
    count(*frame.context->engine, frame.views.size());
  } catch (const std::exception &e) {
    GST_DEBUG_OBJECT(trans_, "error of a dropped frame: %s", e.what());
  }
  frame.unmap();
}

// Adds the engine's statistics since the last call to the element's. `views`: of each frame.
void Flight::count(Engine &engine, size_t views) {
  std::lock_guard<std::mutex> guard(lock_);
  const BackendStats now = engine.backend->stats();
  if (g_strcmp0(now.kernels, totals_.kernels) != 0)
    GST_DEBUG_OBJECT(trans_, "kernels of the first pass: %s", now.kernels ? now.kernels : "the method's");
  if (now.bytes_staged > engine.counted.bytes_staged)
    GST_CAT_LOG_OBJECT(gst_cuda_conv_performance, trans_,
                       "%" G_GUINT64_FORMAT " bytes are copied by the CPU too, since their memory is pageable",
                       static_cast<guint64>(now.bytes_staged - engine.counted.bytes_staged));
  const guint64 filtered = now.frames - engine.counted.frames;
  if (filtered) device_ns_ = (now.device_ns - engine.counted.device_ns) / filtered * views;
  totals_.frames += filtered / views;
  totals_.device_ns += now.device_ns - engine.counted.device_ns;
  totals_.bytes_uploaded += now.bytes_uploaded - engine.counted.bytes_uploaded;
  totals_.bytes_downloaded += now.bytes_downloaded - engine.counted.bytes_downloaded;
  totals_.bytes_staged += now.bytes_staged - engine.counted.bytes_staged;
  totals_.kernels = now.kernels;
  engine.counted = now;
  engine.counted.frames -= filtered % views;  // counts with the other views
}

BackendStats Flight::totals() const {
  std::lock_guard<std::mutex> guard(lock_);
  return totals_;
}

}  // namespace cudaconv::gst
