// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvpath.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "gstcudaconvformat.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvneighbours.h"
#include "gstcudaconvsegment.h"

namespace cudaconv::gst {

namespace {

constexpr gint64 kTick = G_USEC_PER_SEC / 4;  // how long no frame has come when the watcher first looks

// Why frames leave early.
constexpr char kShort[] = "upstream has too few buffers for roi-lookahead";
constexpr char kStands[] =
    "upstream has sent no frame for five seconds, perhaps because a queue of another branch is full and smaller than "
    "roi-lookahead";
constexpr char kLate[] = "frames come later than the latency of upstream allows";

const GstBaseTransformClass *base_class() {
  return GST_BASE_TRANSFORM_CLASS(g_type_class_peek(GST_TYPE_BASE_TRANSFORM));
}

// The number of buffers of a pool; 0: any number.
guint most_buffers(GstBufferPool *pool) {
  const Ref<GstStructure> config(gst_buffer_pool_get_config(pool));
  guint most = 0;
  gst_buffer_pool_config_get_params(config.get(), nullptr, nullptr, nullptr, &most);
  return most;
}

// Whether a pool acquires buffers in the way of the base class. In the pools of cameras and decoders a buffer comes
// with the next frame, which would be lost.
bool is_plain(GstBufferPool *pool) {
  const auto *base = static_cast<GstBufferPoolClass *>(g_type_class_peek(GST_TYPE_BUFFER_POOL));
  return GST_BUFFER_POOL_GET_CLASS(pool)->acquire_buffer == base->acquire_buffer;
}

bool is_empty(GstBufferPool *pool) {
  GstBufferPoolAcquireParams params = {};
  params.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT;
  GstBuffer *buffer = nullptr;
  const GstFlowReturn flow = gst_buffer_pool_acquire_buffer(pool, &buffer, &params);
  if (flow == GST_FLOW_OK) gst_buffer_unref(buffer);
  return flow == GST_FLOW_EOS;
}

// Whether a sink of the pipeline still waits for its first frame after the start, a seek or a pause.
bool awaits_frame(GstElement *element) {
  Ref<GstElement> top(GST_ELEMENT(gst_object_ref(element)));
  while (GstObject *bin = gst_object_get_parent(GST_OBJECT(top.get()))) top.reset(GST_ELEMENT(bin));
  return gst_element_get_state(top.get(), nullptr, nullptr, 0) == GST_STATE_CHANGE_ASYNC;
}

}  // namespace

void Path::stop() {
  GThread *watcher;
  {
    std::lock_guard<std::mutex> guard(lock_);
    ends_ = true;
    watcher = std::exchange(watcher_, nullptr);
  }
  changed_.notify_all();
  // A pad probe may stop the element while the watcher pushes a frame.
  if (watcher == g_thread_self())
    g_thread_unref(watcher);
  else if (watcher)
    g_thread_join(watcher);
  ends_ = false;
  forget_waiting();
  lost_ = false;
  crop_ = Crop::Unknown;
  context_ = nullptr;
  live_latency_ = GST_CLOCK_TIME_NONE;
}

// ---- What changes between frames ------------------------------------------------------------------------------------

void Path::update_passthrough() {
  gst_base_transform_set_passthrough(trans_, passes(*session_.context()));
}

// Whether the base class passes frames on.
bool Path::passes(const StreamContext &context) const {
  return context.passthrough() && crop_ != Crop::Copied;
}

// Reconfigures both pads too, since their buffer pools depend on passthrough.
void Path::set_passthrough(bool passthrough) {
  flight_.drain();
  announce_latency_();
  gst_base_transform_set_passthrough(trans_, passthrough);
  gst_base_transform_reconfigure_src(trans_);
  gst_base_transform_reconfigure_sink(trans_);
}

void Path::update_settings() {
  const std::shared_ptr<const StreamContext> before = session_.context();
  if (!session_.update()) return;
  const std::shared_ptr<const StreamContext> now = session_.context();
  const RoiSettings &old = before->settings.roi, &roi = now->settings.roi;
  if (now->passthrough() != before->passthrough()) crop_ = Crop::Unknown;
  announce_latency_();
  if (roi.meta != old.meta || roi.lookahead != old.lookahead) gst_base_transform_reconfigure_sink(trans_);
}

// Takes the context for the frame at hand. If it selects other regions than the context before, the frames that wait
// are searched again. So is a frame that has arrived before they leave.
void Path::take_context() {
  const std::shared_ptr<const StreamContext> now = session_.context();
  const auto selects_otherwise = [](const RoiSettings &a, const RoiSettings &b) {
    return a.meta != b.meta || a.types != b.types || a.invert != b.invert || a.holds_metas() != b.holds_metas();
  };
  if (now && context_ && selects_otherwise(now->settings.roi, context_->settings.roi)) {
    for (Waiting &waiting : waiting_) {
      session_.note_again(*now, waiting.frame.get(), trans_->segment, &waiting.regions);
      if (waiting_.empty()) return;  // a handler of a warning has stopped the element
    }
    if (arriving_) session_.note_again(*now, arriving_, trans_->segment, &arrived_);
  }
  context_ = now;
}

void Path::follow_context(GstBuffer *buffer) {
  const bool foreign = session_.is_foreign(buffer);
  if (!foreign && !session_.is_on_other_stream(buffer)) return;
  flight_.drain();  // the device may fail meanwhile
  const bool followed =
      foreign ? session_.is_foreign(buffer) && session_.follow(buffer) : session_.follow_stream(buffer);
  if (followed) gst_base_transform_reconfigure_src(trans_);  // the memory of the output follows, too
}

// In passthrough, copies the crop rectangle out where downstream does not take GstVideoCropMeta.
void Path::look_at_crop(GstBuffer *buffer) {
  if (GST_PAD_NEEDS_RECONFIGURE(trans_->srcpad)) crop_ = Crop::Unknown;
  const std::shared_ptr<const StreamContext> context = session_.context();
  if (crop_ != Crop::Unknown || !context || !context->passthrough() || !gst_buffer_get_video_crop_meta(buffer)) return;
  crop_ = takes_crop_meta(trans_->srcpad) ? Crop::Taken : Crop::Copied;
  GST_INFO_OBJECT(trans_, "crop rectangles are %s", crop_ == Crop::Taken ? "passed on" : "copied out");
}

// Sets the mode of the base class again where it is not what the settings ask for: an application can change it too.
void Path::check_passthrough() {
  const std::shared_ptr<const StreamContext> context = session_.context();
  if (context && passes(*context) != gst_base_transform_is_passthrough(trans_)) set_passthrough(passes(*context));
}

// ---- Frames ---------------------------------------------------------------------------------------------------------

GstFlowReturn Path::take(bool is_discont, Ref<GstBuffer> buffer) {
  if (!flight_.enter()) return GST_FLOW_FLUSHING;
  prepared_ = false;
  const guint interruptions = flight_.interruptions();
  const bool stopped = flight_.interrupted_since(interruptions);
  GstFlowReturn flow = guarded(trans_, GST_FLOW_ERROR, [&] { return prepare(is_discont, buffer.get()); });
  if (flow == GST_FLOW_OK) return flow;
  // An inactive source pad refuses caps. The base class takes that for a failure if the pad is active again by now. A
  // handler may have stopped the element, which then has no caps.
  if (flow == GST_FLOW_NOT_NEGOTIATED && (stopped || flight_.interrupted_since(interruptions)))
    flow = GST_FLOW_FLUSHING;
  if (flow == GST_FLOW_ERROR) session_.miss_regions(buffer.get(), trans_->segment);
  gst_clear_buffer(&trans_->queued_buf);
  lost_ = true;
  if (flow == GST_BASE_TRANSFORM_FLOW_DROPPED) {
    flight_.keep_flow(guarded(trans_, GST_FLOW_ERROR, [&] { return let_due_go(); }));
    const GstFlowReturn kept = flight_.take_flow();
    return kept == GST_FLOW_OK ? flow : kept;
  }
  prepared_ = false;
  flight_.drain();  // earlier frames come out before the error goes up
  return flow;
}

// Brings everything up to date for the next frame to leave.
void Path::prepare_for(GstBuffer *buffer) {
  const Ref<GstBuffer> kept(gst_buffer_ref(buffer));  // stop() drops the buffer where it waits
  if (trans_->segment.format == GST_FORMAT_TIME) {
    const GstClockTime time = gst_segment_to_stream_time(&trans_->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(trans_), time);
  }
  update_settings();
  follow_context(buffer);
  look_at_crop(buffer);
  check_passthrough();
  take_context();
}

// Looks for regions last, with the settings that they are then filtered with. A frame that the base class drops has
// regions too.
GstFlowReturn Path::prepare(bool is_discont, GstBuffer *frame) {
  prepare_for(waiting_.empty() ? frame : waiting_.front().frame.get());
  prepared_ = true;
  const GstFlowReturn flow = submit(is_discont, frame);
  take_context();
  const std::shared_ptr<const StreamContext> context = context_;
  arrived_ = session_.note_regions(context.get(), frame, trans_->segment, times_waiting());
  note_arrival(frame);
  // If time jumps back, no later frame follows the waiting ones.
  if (!waiting_.empty() && is_before(arrived_.time, waiting_.front().regions.time)) {
    arriving_ = frame;
    let_all_go();
    arriving_ = nullptr;
  }
  now_ = arrived_.time;
  return flow == GST_FLOW_OK && !context_ ? GST_FLOW_NOT_NEGOTIATED : flow;
}

// Hands the frame to the base class with its own segment, which may wait: a late frame is dropped by its running time.
GstFlowReturn Path::submit(bool is_discont, GstBuffer *frame) {
  const GstSegment leaving = trans_->segment;
  bool waits = false;
  for (const Waiting &waiting : waiting_)
    for (const Ref<GstEvent> &event : waiting.events)
      if (GST_EVENT_TYPE(event.get()) == GST_EVENT_SEGMENT) {
        gst_event_copy_segment(event.get(), &trans_->segment);
        waits = true;
      }
  const GstFlowReturn flow = base_class()->submit_input_buffer(trans_, is_discont, gst_buffer_ref(frame));
  if (waits && !waiting_.empty()) trans_->segment = leaving;
  return flow;
}

// Notes how late the frame that has arrived is. Counts frames that left by the clock, if it belongs to their
// look-ahead.
void Path::note_arrival(GstBuffer *frame) {
  const guint64 lookahead = context_ ? context_->settings.roi.lookahead : 0;
  const GstClockTimeDiff lateness = lookahead ? lateness_of(frame) : GST_CLOCK_STIME_NONE;
  lateness_ = GST_CLOCK_STIME_IS_VALID(lateness) ? std::max<GstClockTimeDiff>(lateness, 0) : 0;
  for (const int64_t time : std::exchange(left_by_clock_, {}))
    if (arrived_.time >= time && static_cast<guint64>(arrived_.time) - static_cast<guint64>(time) <= lookahead)
      session_.count_early(kLate);
}

GstFlowReturn Path::send() {
  if (!trans_->queued_buf) return GST_FLOW_OK;
  Ref<GstBuffer> in(std::exchange(trans_->queued_buf, nullptr));
  GstSegment &segment = trans_->segment;
  if (segment.format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID(in.get())) segment.position = end_time(in.get());
  return guarded(trans_, GST_FLOW_ERROR, [&] {
    try {
      waiting_.push_back({std::move(in), std::move(arrived_), {}, lost_});
      lost_ = false;
      return let_due_go();
    } catch (...) {
      prepared_ = false;
      flight_.drain();  // the earlier frames come out before the error goes up
      flight_.note_lost();
      throw;
    }
  });
}

// ---- Waiting for later frames ---------------------------------------------------------------------------------------

// Whether time `a` comes before `b` where the stream plays.
bool Path::is_before(int64_t a, int64_t b) const {
  return plays_backwards(trans_->segment) ? a > b : a < b;
}

// The first and the last of the times of waiting frames: not always those that came first and last.
RoiHistory::Span Path::times_waiting() const {
  RoiHistory::Span times;
  for (const Waiting &waiting : waiting_) times.add(waiting.regions.time);
  return times;
}

// Whether no later frame can add regions to a waiting one. Backwards, later frames precede it in stream time, so
// roi-hold counts, not roi-lookahead. After a field the other one may come with the same time.
bool Path::is_due(const Waiting &waiting) const {
  if (!context_ || context_->is_identity() || !waiting.regions.is_timed) return true;
  const RoiSettings &roi = context_->settings.roi;
  if (!roi.meta || !roi.lookahead) return true;
  const bool backwards = plays_backwards(trans_->segment);
  const guint64 wait = backwards ? roi.hold : roi.lookahead;
  const auto now = static_cast<guint64>(now_), time = static_cast<guint64>(waiting.regions.time);
  const guint64 passed = backwards ? time - now : now - time;
  return !is_before(now_, waiting.regions.time) && (has_fields(context_->info) ? passed > wait : passed >= wait);
}

// Whether upstream has no buffer left to send the next frame in.
bool Path::is_short_of_buffers() {
  if (waiting_.size() > most_waiting_) return true;
  GstBufferPool *pool = waiting_.front().frame->pool;
  if (pool != pool_.get()) {
    pool_.reset(pool ? GST_BUFFER_POOL(gst_object_ref(pool)) : nullptr);
    pool_size_ = pool ? most_buffers(pool) : 0;
    most_waiting_ = G_MAXSIZE;
  }
  if (pool_size_ == 0 || waiting_.size() < pool_size_) return false;
  return std::count_if(waiting_.begin(), waiting_.end(), [&](const Waiting &w) { return w.frame->pool == pool; }) >=
         pool_size_;
}

// Lets the oldest frame go, and the events behind it. `if_due`: not where settings that have changed keep it waiting.
GstFlowReturn Path::let_first_go(bool if_due) {
  std::list<Waiting> first;  // gone also where it cannot be filtered
  GstFlowReturn flow;
  const auto take_first = [&] {
    first.splice(first.begin(), waiting_, waiting_.begin());
    events_.splice(events_.end(), first.front().events);
  };
  if (waiting_.empty()) return GST_FLOW_OK;
  try {
    if (!std::exchange(prepared_, false)) prepare_for(waiting_.front().frame.get());
    if (waiting_.empty() || (if_due && !is_due(waiting_.front()))) return GST_FLOW_OK;
    take_first();
    if (first.front().follows_lost) flight_.note_lost();
    flow = filter(std::move(first.front().frame), first.front().regions);
    if (flow != GST_FLOW_OK) flight_.note_lost();
  } catch (...) {
    if (first.empty() && !waiting_.empty()) {
      session_.miss_regions(waiting_.front().regions.time);
      take_first();
    }
    forward_events();
    throw;
  }
  forward_events();
  return flow;
}

// Forwards events that no frame is before any more.
void Path::forward_events() {
  while (!events_.empty()) {
    Ref<GstEvent> event = std::move(events_.front());
    events_.pop_front();
    forward_(trans_, event.release());
  }
}

// Lets the frames go that are due. To be called when a frame has come, or been dropped.
GstFlowReturn Path::let_due_go() {
  GstFlowReturn flow = GST_FLOW_OK;
  while (!waiting_.empty() && flow == GST_FLOW_OK) {
    const bool due = is_due(waiting_.front());
    if (!due) {
      if (!is_short_of_buffers()) break;
      session_.count_early(kShort);
    }
    flow = let_first_go(due);
  }
  prepared_ = false;
  came_ = g_get_monotonic_time();
  set_alarm(kTick);
  return flow;
}

void Path::let_all_go() {
  while (!waiting_.empty()) flight_.keep_flow(guarded(trans_, GST_FLOW_ERROR, [&] { return let_first_go(); }));
  forget_waiting();
}

void Path::flush() {
  for (Waiting &waiting : waiting_) events_.splice(events_.end(), waiting.events);
  for (const Ref<GstEvent> &event : events_)
    if (GST_EVENT_IS_STICKY(event.get()) && GST_EVENT_TYPE(event.get()) != GST_EVENT_CAPS)
      gst_pad_store_sticky_event(trans_->srcpad, event.get());
  forget_waiting();
  lost_ = false;
}

void Path::forget_waiting() {
  waiting_.clear();
  events_.clear();
  most_waiting_ = G_MAXSIZE;
  pool_.reset();
  pool_size_ = 0;
  left_by_clock_.clear();
  set_alarm(kTick);
}

gboolean Path::take_event(GstEvent *event) {
  Ref<GstEvent> taken(event);
  const guint starts = session_.starts();
  if (!waiting_.empty() && ends_frames(event)) let_all_go();
  if (session_.starts() != starts) return FALSE;  // the event is of the stream before
  if (waiting_.empty()) return forward_(trans_, taken.release());
  // A gap event ends no wait: decoders send it before frames that they still hold.
  flight_.keep_flow(guarded(trans_, GST_FLOW_ERROR, [&] {
    waiting_.back().events.push_back(std::move(taken));
    return GST_FLOW_OK;
  }));
  return TRUE;
}

// Whether waiting frames must leave before the event, since it ends their caps, segment or stream.
bool Path::ends_frames(GstEvent *event) const {
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_CAPS: {
      GstCaps *caps;
      gst_event_parse_caps(event, &caps);
      const Ref<GstCaps> current(gst_pad_get_current_caps(trans_->sinkpad));
      return !current || !gst_caps_is_equal(current.get(), caps);
    }
    case GST_EVENT_SEGMENT: {
      const GstSegment *segment;
      gst_event_parse_segment(event, &segment);
      const bool turns = plays_backwards(*segment) != plays_backwards(trans_->segment);
      return turns || is_other_segment(event, trans_->segment, true);
    }
    case GST_EVENT_STREAM_START:
      return is_other_stream(event, trans_->sinkpad);
    case GST_EVENT_STREAM_GROUP_DONE:
    case GST_EVENT_SEGMENT_DONE:
    case GST_EVENT_EOS:
      return true;
    default:
      return false;
  }
}

// Wakes the watcher when no frame has come for some microseconds.
void Path::set_alarm(gint64 after) {
  std::lock_guard<std::mutex> guard(lock_);
  const gint64 before = std::exchange(alarm_, waiting_.empty() ? 0 : g_get_monotonic_time() + after);
  if (!alarm_ || (before && watcher_)) return;
  const auto watch = [](gpointer path) -> gpointer {
    static_cast<Path *>(path)->watch();
    return nullptr;
  };
  if (!watcher_) watcher_ = g_thread_try_new("cudaconv-watch", watch, this, nullptr);
  changed_.notify_all();
}

void Path::watch() {
  std::unique_lock<std::mutex> guard(lock_);
  while (!ends_) {
    const gint64 left = alarm_ - g_get_monotonic_time();
    if (!alarm_) {
      changed_.wait(guard);
    } else if (left > 0) {
      changed_.wait_for(guard, std::chrono::microseconds(left));
    } else {
      const Ref<GstElement> element(GST_ELEMENT(gst_object_ref(trans_)));
      guard.unlock();
      look_for_standstill();
      guard.lock();
      if (watcher_ == g_thread_self()) continue;
      guard.unlock();  // stopped by this thread: with the element, all else may go
      return;
    }
  }
}

// Nanoseconds since a live source should have sent the frame; GST_CLOCK_STIME_NONE if that is not known.
GstClockTimeDiff Path::lateness_of(GstBuffer *frame) const {
  const GstClockTime upstream = live_latency_;
  const Ref<GstClock> clock(gst_element_get_clock(GST_ELEMENT(trans_)));
  if (!GST_CLOCK_TIME_IS_VALID(upstream) || !clock || trans_->segment.format != GST_FORMAT_TIME)
    return GST_CLOCK_STIME_NONE;
  const GstClockTime time = gst_segment_to_running_time(&trans_->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(frame));
  if (!GST_CLOCK_TIME_IS_VALID(time)) return GST_CLOCK_STIME_NONE;
  const GstClockTime now = gst_clock_get_time(clock.get()) - gst_element_get_base_time(GST_ELEMENT(trans_));
  return GST_CLOCK_DIFF(add_times(time, upstream), now);
}

// Lets the frames go that a live source, which sends nothing, should have followed by others. If frames have come late,
// as from a detector that does not report its latency, the others may be as late. Returns the microseconds until it has
// to be called again if still nothing comes.
gint64 Path::let_go_by_clock() {
  GstFlowReturn flow = GST_FLOW_OK;
  while (flow == GST_FLOW_OK && !waiting_.empty() && GST_STATE(trans_) == GST_STATE_PLAYING) {
    const GstClockTimeDiff lateness = lateness_of(waiting_.front().frame.get());
    if (!GST_CLOCK_STIME_IS_VALID(lateness)) break;
    const auto wait = static_cast<GstClockTimeDiff>(add_times(session_.lookahead(), lateness_));
    const GstClockTimeDiff left = lateness < 0 ? wait : wait - lateness;
    if (left >= 0) return std::min<gint64>(GST_TIME_AS_USECONDS(left) + 1, kTick);
    flow = guarded(trans_, GST_FLOW_ERROR, [&] {
      left_by_clock_.push_back(waiting_.front().regions.time);
      return let_first_go();
    });
    flight_.keep_flow(flow);
  }
  return kTick;
}

// Upstream may have fewer buffers than their pool says, or hold some itself. Where the pool has none left, or where
// nothing comes for very long while the pipeline plays or a sink waits, the oldest frame leaves early.
void Path::look_for_standstill() {
  constexpr gint64 kVeryLong = 5 * G_USEC_PER_SEC;
  // No wait for the lock: the thread that holds it brings frames on, and may be in stop(), which waits for the watcher.
  if (!GST_PAD_STREAM_TRYLOCK(trans_->sinkpad)) {
    std::lock_guard<std::mutex> guard(lock_);
    if (alarm_) alarm_ += kTick;
    return;
  }
  bool due;
  {
    std::lock_guard<std::mutex> guard(lock_);
    due = !ends_ && alarm_ && g_get_monotonic_time() >= alarm_;
  }
  gint64 next = kTick;
  if (due && !waiting_.empty()) {
    if (GST_STATE(trans_) != GST_STATE_PLAYING && !awaits_frame(GST_ELEMENT(trans_)))
      came_ = g_get_monotonic_time();  // a pause
    const bool is_long = g_get_monotonic_time() - came_ >= kVeryLong;
    const bool asks = pool_size_ && is_plain(pool_.get()), stands = asks ? is_empty(pool_.get()) : is_long;
    if (stands && asks) most_waiting_ = waiting_.size() - 1;
    const auto let_go = [&] {
      session_.count_early(asks ? kShort : kStands);
      return let_first_go();
    };
    if (stands) flight_.keep_flow(guarded(trans_, GST_FLOW_ERROR, let_go));
    next = let_go_by_clock();
  }
  if (due) set_alarm(next);
  GST_PAD_STREAM_UNLOCK(trans_->sinkpad);
}

// ---- Filtering ------------------------------------------------------------------------------------------------------

// Sets the buffers that the frame is read from and written to.
GstFlowReturn Path::add_buffers(Ref<GstBuffer> in, Frame *frame) {
  if (filters_in_place(in.get(), *frame->context, downstream_)) {
    // A buffer that claims to be writable may fail to map: such a frame is copied. An invalid frame fails again later.
    try {
      frame->take_in_place(in);
      return GST_FLOW_OK;
    } catch (const std::runtime_error &e) {
      GST_DEBUG_OBJECT(trans_, "a frame is not filtered in place: %s", e.what());
    }
  }
  GstBuffer *out = nullptr;
  const GstFlowReturn flow = new_output_buffer(trans_, in.get(), &out);
  if (flow != GST_FLOW_OK) return flow;
  frame->out.reset(out);
  const GstVideoInfo &info = frame->context->info;
  if (splits_macropixel(in.get(), info)) {
    const FrameLayout &layout = frame->context->kind_of(in.get()).layout;
    in = copy_rectangle(in.get(), info, layout);
    frame->place = MappedFrame::find(in.get(), info, layout, GST_MAP_READ);
  }
  frame->in = std::move(in);
  return GST_FLOW_OK;
}

// Passes on a buffer as it is.
GstFlowReturn Path::pass(Ref<GstBuffer> buffer) {
  if (flight_.take_lost()) {
    if (!gst_buffer_is_writable(buffer.get()))
      if (GstBuffer *copy = gst_buffer_copy(buffer.get())) buffer.reset(copy);
    if (gst_buffer_is_writable(buffer.get()))
      GST_BUFFER_FLAG_SET(buffer.get(), GST_BUFFER_FLAG_DISCONT);
    else
      flight_.note_lost();  // a shared buffer of memory that cannot be copied: a later one gets the flag
  }
  return flight_.push(std::move(buffer));
}

// Drops a frame for which no region is in force.
GstFlowReturn Path::drop(GstBuffer *buffer) {
  flight_.drain();
  flight_.note_lost();
  const GstFlowReturn flow = flight_.take_flow();
  if (flow != GST_FLOW_OK) return flow;
  if (GST_BUFFER_PTS_IS_VALID(buffer))
    gst_pad_push_event(trans_->srcpad, gst_event_new_gap(GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer)));
  return GST_FLOW_OK;
}

// Filters or passes on a frame by way of Flight. Marks discontinuities: the base class does so only for what it pushes.
GstFlowReturn Path::filter(Ref<GstBuffer> in, const FrameRegions &frame_regions) {
  const std::shared_ptr<const StreamContext> context = context_;
  if (!context) return GST_FLOW_NOT_NEGOTIATED;
  const bool empty_gap = GST_BUFFER_FLAG_IS_SET(in.get(), GST_BUFFER_FLAG_GAP) && gst_buffer_get_size(in.get()) == 0;
  if ((gst_base_transform_is_passthrough(trans_) && context->passthrough()) || empty_gap) return pass(std::move(in));
  const RoiSettings &roi = context->settings.roi;
  RoiList regions = session_.regions_in_force(*context, frame_regions, trans_->segment);
  const bool marked = !regions.empty();
  session_.count_frame(*context, frame_regions, marked);
  if (context_ != context) return GST_FLOW_OK;  // a handler of a message has stopped the element: no frame leaves
  // With mask=identity no frame is dropped, whether it is passed on or copied to other memory.
  if (roi.meta && !marked && roi.unmarked == RoiUnmarked::Drop && !context->is_identity()) return drop(in.get());
  if (roi.meta && !marked && roi.unmarked == RoiUnmarked::Filter) regions.everywhere = true;
  auto frame = std::make_unique<Frame>();
  frame->context = context;
  frame->may_leave = session_.leaves_order_to_streams(*context);
  frame->place = MappedFrame::find(in.get(), context->info, context->kind_of(in.get()).layout, GST_MAP_READ);
  try {
    frame->views = session_.plan_regions(*context, in.get(), regions, flight_.stopped());
  } catch (const Error &e) {
    if (e.kind() == Error::Kind::Cancelled) return GST_FLOW_FLUSHING;
    throw;
  }
  if (context_ != context) return GST_FLOW_OK;  // so may a handler of a warning
  const GstFlowReturn flow = add_buffers(std::move(in), frame.get());
  if (flow != GST_FLOW_OK) return flow;
  if (flight_.take_lost()) GST_BUFFER_FLAG_SET(frame->out.get(), GST_BUFFER_FLAG_DISCONT);
  return flight_.submit(std::move(frame), session_.most_in_flight(flight_.device_ns()));
}

}  // namespace cudaconv::gst
