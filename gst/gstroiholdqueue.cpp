// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstroiholdqueue.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "gstcudaconvtask.h"
#include "gstroiholdmeta.h"

namespace cudaconv::gst {

namespace {

constexpr gint64 kTick = G_USEC_PER_SEC / 4;      // how long no frame has come when the task first looks why
constexpr gint64 kVeryLong = 5 * G_USEC_PER_SEC;  // how long no frame has come when the first one leaves early

}  // namespace

// ---- Starting and stopping ------------------------------------------------------------------------------------------

void HoldQueue::start() {
  std::lock_guard<std::mutex> guard(lock_);
  // The pipeline may have forgotten the latency that the last start announced, or still count it.
  if (announced_) announced_ = GST_CLOCK_TIME_NONE;
  flushes_ = false;
  flow_ = told_ = GST_FLOW_OK;
  lost_ = lost_before_ = false;
  regions_.reset();
  type_watch_.reset();
  counts_ = {};
  messages_.restart();
  live_latency_ = GST_CLOCK_TIME_NONE;
}

void HoldQueue::stop() {
  std::list<Item> items;  // released without the lock
  std::lock_guard<std::mutex> guard(lock_);
  items.swap(items_);
  know_pool();
}

gboolean HoldQueue::activate(GstPad *pad, bool active) {
  const bool is_source = pad == srcpad_;
  bool is_task;
  {
    std::lock_guard<std::mutex> guard(lock_);
    is_active_[is_source ? 0 : 1] = active;
    if (!active) interruptions_++;
    is_task = task_ == std::this_thread::get_id();
  }
  changed_.notify_all();
  if (!is_source) return TRUE;
  if (active) {
    if (start_task(pad, run, this)) return TRUE;
    GST_ELEMENT_ERROR(element_, RESOURCE, FAILED, ("There is no thread for the frames that wait."), (nullptr));
    return FALSE;
  }
  if (!is_task) gst_pad_stop_task(pad);  // else a pad probe stops the element: the task ends when it returns
  return TRUE;
}

gboolean HoldQueue::flush(Ref<GstEvent> event) {
  if (GST_EVENT_TYPE(event.get()) == GST_EVENT_FLUSH_START) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      flushes_ = true;
      interruptions_++;
    }
    changed_.notify_all();
    const gboolean done = gst_pad_push_event(srcpad_, event.release());
    gst_pad_pause_task(srcpad_);
    return done;
  }
  std::list<Item> items;
  bool active;
  {
    std::lock_guard<std::mutex> guard(lock_);
    items.swap(items_);
    know_pool();
    flow_ = GST_FLOW_OK;
    lost_ = lost_before_ = false;
    look_at_event(event.get(), false);
    flushes_ = false;
    active = is_active_[0];
  }
  // Events that stay with the pad are kept, but for caps and segment: the source pad has the same caps already.
  for (const Item &item : items) {
    GstEvent *const waits = item.event.get();
    if (waits && GST_EVENT_IS_STICKY(waits) && GST_EVENT_TYPE(waits) != GST_EVENT_CAPS &&
        GST_EVENT_TYPE(waits) != GST_EVENT_SEGMENT && GST_EVENT_TYPE(waits) != GST_EVENT_EOS)
      gst_pad_store_sticky_event(srcpad_, waits);
  }
  const gboolean done = gst_pad_push_event(srcpad_, event.release());
  if (active) start_task(srcpad_, run, this);
  return done;
}

// ---- Properties, queries --------------------------------------------------------------------------------------------

void HoldQueue::set(const std::function<void(HoldSettings *)> &change) {
  bool asks_for_buffers;
  {
    std::lock_guard<std::mutex> guard(lock_);
    HoldSettings settings = settings_;
    change(&settings);
    if (settings.types != settings_.types) {
      filter_ = std::make_shared<const TypeFilter>(settings.types);
      looks_again_ = true;
    }
    if (settings.holds() && !settings_.holds()) looks_again_ = true;  // the regions of those that wait are not held
    if (settings.interpolate && !settings_.interpolate) looks_again_ = true;  // nor are they matched
    asks_for_buffers = settings.wait(false) != settings_.wait(false) && is_active_[1];
    settings_ = std::move(settings);
    if (is_active_[1]) announce_latency();
  }
  changed_.notify_all();
  if (asks_for_buffers) gst_pad_push_event(sinkpad_, gst_event_new_reconfigure());
}

GstStructure *HoldQueue::stats() const {
  std::lock_guard<std::mutex> guard(lock_);
  return counts_.all();
}

GstClockTime HoldQueue::latency() const {
  std::lock_guard<std::mutex> guard(lock_);
  return hold_latency(settings_.wait(false), regions_.info());
}

// Leaves a LATENCY message if the latency has changed since the last one. Call with lock_ held.
void HoldQueue::announce_latency() {
  const GstClockTime latency = hold_latency(settings_.wait(false), regions_.info());
  if (std::exchange(announced_, latency) == latency) return;
  GST_DEBUG_OBJECT(element_, "frames wait %" GST_TIME_FORMAT " for later ones", GST_TIME_ARGS(latency));
  messages_.add(gst_message_new_latency(GST_OBJECT(element_)));
}

gboolean HoldQueue::take_query(GstQuery *query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) return answer_allocation_query(srcpad_, query, latency());
  {
    std::unique_lock<std::mutex> guard(lock_);
    if (!let_all_go(guard)) return FALSE;
  }
  return gst_pad_peer_query(srcpad_, query);
}

// ---- What comes -----------------------------------------------------------------------------------------------------

// The first and the last of the times of waiting frames: not always those that came first and last.
RoiHistory::Span HoldQueue::times_waiting() const {
  RoiHistory::Span times;
  for (const Item &item : items_)
    if (item.frame) times.add(item.regions.at.time);
  return times;
}

// Looks for the regions of the frames that wait once more, for other types, and matches them. Call with lock_ held.
void HoldQueue::look_again() {
  looks_again_ = false;
  regions_.begin_again();
  for (Item &item : items_) {
    if (!item.frame) continue;
    try {
      std::string trouble;
      RoiTypeCounts types;
      regions_.replace(&item.regions, find_regions(item.frame.get(), *filter_, &trouble, &types), settings_);
      item.regions.types = std::move(types);
      messages_.warn_once("metas", trouble);
    } catch (const std::exception &) {
      regions_.miss_again(&item.regions);
      messages_.warn_once("again",
                          std::string("all of a frame is a region, since its regions could not be found again"));
    }
  }
}

GstFlowReturn HoldQueue::take(Ref<GstBuffer> frame) {
  FrameRegions located;
  std::shared_ptr<const TypeFilter> filter;
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (flushing()) return GST_FLOW_FLUSHING;
    if (!regions_.info()) return GST_FLOW_NOT_NEGOTIATED;
    filter = filter_;
    located = regions_.locate(frame.get());
  }
  try {
    std::list<Item> place(1);  // in items_, allocated before anything changes
    std::string trouble;
    RoiTypeCounts types;
    RoiList found = find_regions(frame.get(), *filter, &trouble, &types);
    const int64_t now = regions_.playing_time(located.at.time);
    const std::string unmatched = type_watch_.look(frame.get(), filter->text(), found, now);
    std::unique_lock<std::mutex> guard(lock_);
    messages_.warn_once("metas", trouble);
    messages_.warn_once("types", unmatched);
    if (looks_again_) look_again();
    place.front().regions = located;
    regions_.add(&place.front().regions, std::move(found), settings_, times_waiting());
    place.front().regions.types = std::move(types);
    place.front().frame = std::move(frame);
    add(std::move(place));
    if (!wait_until_left(guard)) return GST_FLOW_FLUSHING;
    const GstFlowReturn flow = std::exchange(flow_, GST_FLOW_OK);
    if (flow != GST_FLOW_OK) told_ = flow;
    return flow;
  } catch (const std::exception &e) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      regions_.miss(located);
      lost_before_ = true;
      told_ = GST_FLOW_ERROR;
    }
    post_error(element_, e);
    return GST_FLOW_ERROR;
  }
}

// Adds a frame to those that wait. Call with lock_ held.
void HoldQueue::add(std::list<Item> &&place) {
  Item &item = place.front();
  if (settings_.wait(false) && !item.regions.at.is_known)
    messages_.warn_once("timestamps",
                        "lookahead and interpolate have no effect on frames that have neither timestamp nor duration");
  note_lateness(item);
  // If time jumps back, no later frame follows the waiting ones.
  const auto first = std::find_if(items_.begin(), items_.end(), [](const Item &one) { return one.frame != nullptr; });
  if (first != items_.end() && regions_.is_before(item.regions.at.time, first->regions.at.time)) end_all();
  item.lost = std::exchange(lost_before_, false);
  items_.splice(items_.end(), place);
  know_pool();
  came_ = g_get_monotonic_time();
  alarm_ = came_ + kTick;
  changed_.notify_all();
}

// Upstream's thread waits until what may leave has left. Returns false where it was interrupted, even if the element
// runs again. Call with lock_ held.
bool HoldQueue::wait_until_left(std::unique_lock<std::mutex> &guard) {
  const guint before = interruptions_;
  changed_.wait(guard, [&] {
    return flushing() || interruptions_ != before || (!pushes_ && (flow_ != GST_FLOW_OK || !first_leaves()));
  });
  return !flushing() && interruptions_ == before;
}

// Has all leave that waits, and waits for that. Returns false where that was interrupted. Call with lock_ held.
bool HoldQueue::let_all_go(std::unique_lock<std::mutex> &guard) {
  const guint before = interruptions_;
  end_all();
  changed_.wait(guard, [&] { return flushing() || interruptions_ != before || (items_.empty() && !pushes_); });
  return !flushing() && interruptions_ == before;
}

// Has all frames leave that wait. Call with lock_ held.
void HoldQueue::end_all() {
  for (Item &item : items_) item.ended = true;
  changed_.notify_all();
}

gboolean HoldQueue::take_event(Ref<GstEvent> event) {
  const GstEventType type = GST_EVENT_TYPE(event.get());
  const bool ends = regions_.ends_frames(event.get(), sinkpad_);
  const bool other_stream = type == GST_EVENT_STREAM_START && is_other_stream(event.get(), sinkpad_);
  GstFlowReturn left_with = GST_FLOW_OK;
  std::list<Item> place(1);
  bool refused;
  {
    std::unique_lock<std::mutex> guard(lock_);
    if (flushing() || (ends && !let_all_go(guard))) return FALSE;
    if (type == GST_EVENT_EOS) left_with = std::exchange(flow_, GST_FLOW_OK);
    if (left_with == told_) left_with = GST_FLOW_OK;  // upstream accepts what it has been told before
    if ((type == GST_EVENT_SEGMENT || type == GST_EVENT_STREAM_START) && flow_ == GST_FLOW_EOS) flow_ = GST_FLOW_OK;
    look_at_event(event.get(), other_stream);
    if (type == GST_EVENT_SEGMENT) regions_.set_segment(event.get());
    if (type == GST_EVENT_CAPS) {
      regions_.set_caps(event.get());
      announce_latency();
    }
    place.front().event = std::move(event);
    items_.splice(items_.end(), place);
    refused_ = false;
    changed_.notify_all();
    refused = !wait_until_left(guard) || refused_;
  }
  // As queue does: upstream sends no other frame that would return it. An element that returns GST_FLOW_ERROR has
  // posted an error itself.
  if (left_with == GST_FLOW_NOT_LINKED || (left_with < GST_FLOW_EOS && left_with != GST_FLOW_ERROR))
    GST_ELEMENT_FLOW_ERROR(element_, left_with);
  return !refused;
}

// Ends a report where time may jump. Call with lock_ held.
void HoldQueue::look_at_event(GstEvent *event, bool other_stream) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) messages_.warn_once("types", type_watch_.end());
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) type_watch_.restart_time();
  if (regions_.look_at_event(event, other_stream) && settings_.report) report({}, true);
}

void HoldQueue::report(std::optional<int64_t> time, bool ended) {
  if (GstStructure *structure = counts_.report(time, ended))
    messages_.add(gst_message_new_element(GST_OBJECT(element_), structure));
}

// ---- When frames leave ----------------------------------------------------------------------------------------------

bool HoldQueue::is_due(const Item &item) const {
  return item.ended || regions_.is_over(item.regions, settings_);
}

// Notes the pool of the oldest frame.
void HoldQueue::know_pool() {
  const auto first = std::find_if(items_.begin(), items_.end(), [](const Item &item) { return item.frame != nullptr; });
  if (first == items_.end())
    buffers_.forget();
  else
    buffers_.know(first->frame->pool);
}

size_t HoldQueue::count_waiting() const {
  const auto is_frame = [](const Item &item) { return item.frame != nullptr; };
  return static_cast<size_t>(std::count_if(items_.begin(), items_.end(), is_frame));
}

bool HoldQueue::is_short_of_buffers() const {
  const auto is_of_pool = [&](const Item &item) { return item.frame && buffers_.owns(item.frame.get()); };
  return buffers_.are_used(count_waiting(),
                           static_cast<size_t>(std::count_if(items_.begin(), items_.end(), is_of_pool)));
}

bool HoldQueue::first_leaves() const {
  return !items_.empty() && (items_.front().event || is_due(items_.front()) || is_short_of_buffers());
}

void HoldQueue::count_early(Early why) {
  counts_.add_early();
  const char *const text = why == Early::Short ? "upstream has too few buffers for lookahead or interpolate"
                           : why == Early::Stands
                               ? "upstream has sent no frame for five seconds, perhaps because a queue of another "
                                 "branch is full and smaller than lookahead"
                               : "frames come later than the latency of upstream allows";
  messages_.warn_once(text, std::string(text) + ": frames leave early, with the regions known so far");
}

// Notes how late the frame that has come is. Counts frames that left by the clock, if it belongs to their look-ahead.
void HoldQueue::note_lateness(const Item &item) {
  const guint64 wait = settings_.wait(false);
  const GstClockTimeDiff lateness =
      wait ? lateness_of(element_, item.regions.running_time, live_latency_) : GST_CLOCK_STIME_NONE;
  lateness_ = GST_CLOCK_STIME_IS_VALID(lateness) ? std::max<GstClockTimeDiff>(lateness, 0) : 0;
  for (const int64_t time : std::exchange(left_by_clock_, {}))
    if (item.regions.at.time >= time && static_cast<guint64>(item.regions.at.time) - static_cast<guint64>(time) <= wait)
      count_early(Early::Late);
}

// Ends the wait of the first frame if a live source, which sends nothing, should have sent all that it waits for. If
// frames have come late, as from a detector that does not report its latency, the others may be as late. Returns the
// microseconds until it has to be called again if still nothing comes.
gint64 HoldQueue::let_go_by_clock() {
  Item &first = items_.front();
  const GstClockTimeDiff lateness = GST_STATE(element_) == GST_STATE_PLAYING
                                        ? lateness_of(element_, first.regions.running_time, live_latency_)
                                        : GST_CLOCK_STIME_NONE;
  if (!GST_CLOCK_STIME_IS_VALID(lateness)) return kTick;
  const auto wait =
      static_cast<GstClockTimeDiff>(add_times(hold_latency(settings_.wait(false), regions_.info()), lateness_));
  const GstClockTimeDiff left = lateness < 0 ? wait : wait - lateness;
  if (left >= 0) return std::min<gint64>(GST_TIME_AS_USECONDS(left) + 1, kTick);
  first.ended = true;
  left_by_clock_.push_back(first.regions.at.time);
  return 0;
}

// Upstream may have fewer buffers than their pool says, or hold some itself. Where the pool has none left, or where
// nothing comes for very long while the pipeline plays or a sink waits, the wait of the first frame ends.
void HoldQueue::look_for_standstill() {
  const gint64 now = g_get_monotonic_time();
  if (GST_STATE(element_) != GST_STATE_PLAYING && !awaits_frame(element_)) came_ = now;  // a pause
  const bool asks = buffers_.can_be_asked(), stands = asks ? buffers_.are_none_left() : now - came_ >= kVeryLong;
  alarm_ = now + kTick;
  if (!stands) {
    alarm_ = now + let_go_by_clock();
    return;
  }
  if (asks) buffers_.leave_one(count_waiting());
  count_early(asks ? Early::Short : Early::Stands);
  items_.front().ended = true;
}

// ---- The task of the source pad -------------------------------------------------------------------------------------

// Waits until the first item may leave. Returns false where nothing may. Call with lock_ held.
bool HoldQueue::wait_for_first(std::unique_lock<std::mutex> &guard) {
  while (is_active_[0] && !flushes_) {
    if (first_leaves()) {
      if (looks_again_) look_again();
      return true;
    }
    if (items_.empty()) {
      changed_.wait(guard);
      continue;
    }
    const gint64 left = alarm_ - g_get_monotonic_time();
    if (left > 0) {
      changed_.wait_for(guard, std::chrono::microseconds(left));
      continue;
    }
    try {
      look_for_standstill();
    } catch (const std::exception &) {  // no memory for a note of it: next time
    }
  }
  return false;
}

void HoldQueue::run(gpointer queue) {
  static_cast<HoldQueue *>(queue)->loop();
}

void HoldQueue::loop() {
  const Ref<GstElement> kept(GST_ELEMENT(gst_object_ref(element_)));  // a pad probe may stop and release it
  std::unique_lock<std::mutex> guard(lock_);
  task_ = std::this_thread::get_id();
  if (!wait_for_first(guard)) {
    task_ = {};
    guard.unlock();
    gst_pad_pause_task(srcpad_);
    return;
  }
  std::list<Item> first;
  first.splice(first.begin(), items_, items_.begin());
  pushes_ = true;
  if (first.front().frame) {
    send_frame(guard, first.front());
    guard.unlock();
  } else {
    guard.unlock();
    refused_ = !gst_pad_push_event(srcpad_, first.front().event.release());
  }
  messages_.post();
  guard.lock();
  know_pool();
  pushes_ = false;
  task_ = {};
  changed_.notify_all();
}

// Pushes a frame with the regions in force, unless it is dropped. Call with lock_ held.
void HoldQueue::send_frame(std::unique_lock<std::mutex> &guard, Item &item) {
  if (!is_due(item)) count_early(Early::Short);
  const guint flushed = interruptions_;
  GstFlowReturn flow = GST_FLOW_OK;
  try {
    const FrameRegions &in_stream = item.regions;
    RoiList regions = regions_.in_force(in_stream, settings_);
    const bool marked = !is_outside(moved(regions, Pixel{} - in_stream.origin), in_stream.place.picture);
    if (settings_.report) report(in_stream.at.time, false);
    counts_.add_frame(marked, in_stream.own.region.size() + in_stream.own.mask.size(), in_stream.types);
    if (!settings_.report) counts_.restart_reports();
    const bool drops = !marked && settings_.unmarked == Unmarked::Drop;
    regions.everywhere |= !marked && settings_.unmarked == Unmarked::Mark;
    const bool discont = std::exchange(lost_, drops) || item.lost;
    guard.unlock();
    if (drops) {
      GstBuffer *const frame = item.frame.get();
      if (GST_BUFFER_PTS_IS_VALID(frame))
        gst_pad_push_event(srcpad_, gst_event_new_gap(GST_BUFFER_PTS(frame), GST_BUFFER_DURATION(frame)));
    } else {
      GstBuffer *const frame = gst_buffer_make_writable(item.frame.release());
      item.frame.reset(frame);
      if (discont) GST_BUFFER_FLAG_SET(frame, GST_BUFFER_FLAG_DISCONT);
      attach_regions(frame, moved(std::move(regions), in_stream.place.corner - in_stream.origin),
                     in_stream.own.region.size(), in_stream.own.mask.size(), in_stream.place.frame);
      // A kind of success is of no use upstream: it may be for an earlier frame.
      flow = std::min(gst_pad_push(srcpad_, item.frame.release()), GST_FLOW_OK);
    }
  } catch (const std::exception &e) {
    if (guard.owns_lock()) guard.unlock();
    flow = GST_FLOW_ERROR;
    post_error(element_, e);
  }
  guard.lock();
  if (flow == GST_FLOW_OK || interruptions_ != flushed) return;  // a pad probe may seek meanwhile
  flow_ = flow;
  lost_ = true;
  while (!items_.empty() && items_.front().frame && is_due(items_.front())) {  // they would have left with it
    Ref<GstBuffer> frame = std::move(items_.front().frame);
    items_.pop_front();
    guard.unlock();
    frame.reset();
    guard.lock();
  }
}

}  // namespace cudaconv::gst
