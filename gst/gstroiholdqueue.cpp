// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstroiholdqueue.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "gstcudaconvanalytics.h"
#include "gstroiholdmeta.h"
#include "regions/selector.h"

namespace cudaconv::gst {

// ---- Starting and stopping ------------------------------------------------------------------------------------------

void HoldQueue::start() {
  std::lock_guard<std::mutex> guard(lock_);
  pads_.flushes = false;
  sent_ = {};
  regions_.reset();
  metas_.start();
  counts_ = {};
  messages_.restart();
  upstream_.set_latency(GST_CLOCK_TIME_NONE);
}

void HoldQueue::stop() {
  std::list<Item> items;  // released without the lock
  std::lock_guard<std::mutex> guard(lock_);
  items.swap(items_);
  upstream_.know_pool(nullptr);
}

gboolean HoldQueue::activate(GstPad *pad, bool active) {
  const bool is_source = pad == pads_.source;
  bool is_task;
  {
    std::lock_guard<std::mutex> guard(lock_);
    (is_source ? pads_.source_is_active : pads_.sink_is_active) = active;
    if (!active) pads_.interruptions++;
    is_task = pads_.task == std::this_thread::get_id();
  }
  changed_.notify_all();
  if (!is_source) return TRUE;
  if (active) {
    if (start_task<&HoldQueue::loop>(pad, this)) return TRUE;
    GST_ELEMENT_ERROR(element_, RESOURCE, FAILED, ("There is no thread for the frames that wait."), (nullptr));
    return FALSE;
  }
  if (!is_task) gst_pad_stop_task(pad);  // else a pad probe stops the element: the task ends when it returns
  return TRUE;
}

GstFlowReturn HoldQueue::flush(Ref<GstEvent> event) {
  if (GST_EVENT_TYPE(event.get()) == GST_EVENT_FLUSH_START) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      pads_.flushes = true;
      pads_.interruptions++;
    }
    changed_.notify_all();
    const gboolean done = gst_pad_push_event(pads_.source, event.release());
    gst_pad_pause_task(pads_.source);
    return done ? GST_FLOW_OK : GST_FLOW_ERROR;
  }
  std::list<Item> items;
  bool active;
  {
    std::lock_guard<std::mutex> guard(lock_);
    items.swap(items_);
    sent_.flow = GST_FLOW_OK;
    sent_.lost = sent_.lost_before = false;
    look_at_event(event.get(), false);
    pads_.flushes = false;
    active = pads_.source_is_active;
  }
  // Events that stay with the pad are kept, but for caps and segment: the source pad has the same caps already.
  for (const Item &item : items) {
    GstEvent *const waits = item.event.get();
    if (waits && GST_EVENT_IS_STICKY(waits) && GST_EVENT_TYPE(waits) != GST_EVENT_CAPS &&
        GST_EVENT_TYPE(waits) != GST_EVENT_SEGMENT && GST_EVENT_TYPE(waits) != GST_EVENT_EOS)
      gst_pad_store_sticky_event(pads_.source, waits);
  }
  const gboolean done = gst_pad_push_event(pads_.source, event.release());
  if (active) start_task<&HoldQueue::loop>(pads_.source, this);
  return done ? GST_FLOW_OK : GST_FLOW_ERROR;
}

void HoldQueue::flush_source(bool begins) {
  std::unique_lock<std::mutex> guard(lock_);
  pads_.flushes = begins;
  pads_.interruptions += begins;
  sent_.flow = GST_FLOW_OK;
  const bool starts = !begins && pads_.source_is_active;
  guard.unlock();
  changed_.notify_all();  // the task pauses
  if (starts) start_task<&HoldQueue::loop>(pads_.source, this);
}

// ---- Properties, queries --------------------------------------------------------------------------------------------

void HoldQueue::update() {
  bool asks_for_buffers;
  {
    std::lock_guard<std::mutex> guard(lock_);
    HoldSettings settings = *properties_.published();
    if (settings.types != settings_.types) looks_again_ = true;
    if (settings.holds() && !settings_.holds()) looks_again_ = true;  // the regions of those that wait are not held
    if (settings.interpolate && !settings_.interpolate) looks_again_ = true;  // nor are they matched
    if (settings.report && !settings_.report) counts_.begin_reports();
    asks_for_buffers = settings.wait(false) != settings_.wait(false) && pads_.sink_is_active;
    settings_ = std::move(settings);
    if (pads_.sink_is_active) announce_latency();
  }
  changed_.notify_all();
  if (asks_for_buffers) gst_pad_push_event(pads_.sink, gst_event_new_reconfigure());
}

GstStructure *HoldQueue::stats() const {
  std::lock_guard<std::mutex> guard(lock_);
  return counts_.all();
}

GstClockTime HoldQueue::latency() const {
  std::lock_guard<std::mutex> guard(lock_);
  return known_latency();
}

GstClockTime HoldQueue::known_latency() const {
  return hold_latency(settings_.wait(false), regions_.info(), regions_.shares_times());
}

// Leaves a LATENCY message if the latency has changed since the last one. Call with lock_ held.
void HoldQueue::announce_latency() {
  messages_.announce_latency(known_latency());
}

gboolean HoldQueue::take_query(GstQuery *query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) return answer_allocation_query(pads_.source, query, latency());
  {
    std::unique_lock<std::mutex> guard(lock_);
    if (!let_all_go(guard)) return FALSE;
  }
  return gst_pad_peer_query(pads_.source, query);
}

// ---- What comes -----------------------------------------------------------------------------------------------------

// Looks for the regions of the frames that wait once more, for other types, and matches them. Call with lock_ held.
void HoldQueue::look_again() {
  looks_again_ = false;
  regions_.begin_again();
  for (Item &item : items_) {
    if (!item.frame) continue;
    try {
      RoiTypeCounts types;
      regions_.replace(&item.regions,
                       metas_.read_again(item.frame.get(), item.regions.place, TypeFilter(settings_.types), &types),
                       settings_);
      item.regions.types = std::move(types);
    } catch (const std::exception &) {
      regions_.miss_again(&item.regions);
      messages_.warn_once("again", "all of a frame is a region, since its regions could not be found again");
    }
  }
}

GstFlowReturn HoldQueue::take(Ref<GstBuffer> frame) {
  FrameRegions located;
  try {
    TypeFilter types;
    {
      std::lock_guard<std::mutex> guard(lock_);
      if (pads_.flushing()) return GST_FLOW_FLUSHING;
      if (!regions_.info()) return GST_FLOW_NOT_NEGOTIATED;
      located = regions_.locate(frame.get());
      types = TypeFilter(settings_.types);
    }
    std::list<Item> place(1);  // in items_, allocated before anything changes
    RoiTypeCounts counts;
    RoiList found = metas_.read(frame.get(), located.place, types, regions_.playing_time(located.at.time), &counts);
    std::unique_lock<std::mutex> guard(lock_);
    if (settings_.types != types.text()) looks_again_ = true;  // they have changed meanwhile
    place.front().regions = located;
    TimeSpan waiting;  // not always from the frame that came first to the one that came last
    for (const Item &item : items_)
      if (item.frame) waiting.add(item.regions.at.time);
    regions_.add(&place.front().regions, std::move(found), settings_, waiting);
    place.front().regions.types = std::move(counts);
    place.front().frame = std::move(frame);
    add(std::move(place));
    if (!wait_until_left(guard)) return GST_FLOW_FLUSHING;
    const GstFlowReturn flow = std::exchange(sent_.flow, GST_FLOW_OK);
    if (flow != GST_FLOW_OK) sent_.told = flow;
    return flow;
  } catch (const std::exception &e) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      regions_.miss(located);
      sent_.lost_before = true;
      sent_.told = GST_FLOW_ERROR;
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
  for (size_t late = upstream_.note_frame(item.regions.at.time, item.regions.running_time, settings_.wait(false)); late;
       late--)
    count_early("frames come later than the latency of upstream allows");
  // If time jumps back, no later frame follows the waiting ones. Frames out of order are no jump.
  const auto first = std::find_if(items_.begin(), items_.end(), [](const Item &one) { return one.frame != nullptr; });
  if (first != items_.end()) {
    if (regions_.stands_still())
      for (const Item &one : items_)
        if (one.frame) count_early("timestamps do not go on");
    if (regions_.jumps_back(first->regions, item.regions, settings_)) end_all();
  }
  announce_latency();
  item.lost = std::exchange(sent_.lost_before, false);
  items_.splice(items_.end(), place);
  changed_.notify_all();
}

// Upstream's thread waits until the task is `done`. Returns false where it was interrupted: the end of a flush and a
// stop wait until this thread has left the sink pad. Call with lock_ held.
template <typename Done>
bool HoldQueue::wait_until(std::unique_lock<std::mutex> &guard, const Done &done) {
  changed_.wait(guard, [&] { return pads_.flushing() || (!pushes_ && done()); });
  return !pads_.flushing();
}

// Waits until what may leave has left. Call with lock_ held.
bool HoldQueue::wait_until_left(std::unique_lock<std::mutex> &guard) {
  return wait_until(guard, [&] { return sent_.flow != GST_FLOW_OK || !first_leaves(); });
}

// Has all leave that waits, and waits for that. Call with lock_ held.
bool HoldQueue::let_all_go(std::unique_lock<std::mutex> &guard) {
  end_all();
  return wait_until(guard, [&] { return items_.empty(); });
}

// Has all frames leave that wait. Call with lock_ held.
void HoldQueue::end_all() {
  for (Item &item : items_) item.ended = true;
  changed_.notify_all();
}

GstFlowReturn HoldQueue::take_event(Ref<GstEvent> event) {
  const GstEventType type = GST_EVENT_TYPE(event.get());
  const bool ends = regions_.ends_frames(event.get(), pads_.sink);
  const bool other_stream = type == GST_EVENT_STREAM_START && is_other_stream(event.get(), pads_.sink);
  GstFlowReturn left_with = GST_FLOW_OK, told;
  std::list<Item> place(1);
  GstFlowReturn flow = GST_FLOW_OK;
  {
    std::unique_lock<std::mutex> guard(lock_);
    if (pads_.flushing() || (ends && !let_all_go(guard))) return GST_FLOW_FLUSHING;
    if (type == GST_EVENT_EOS) left_with = std::exchange(sent_.flow, GST_FLOW_OK);
    told = sent_.told;
    if ((type == GST_EVENT_SEGMENT || type == GST_EVENT_STREAM_START) && sent_.flow == GST_FLOW_EOS)
      sent_.flow = GST_FLOW_OK;
    look_at_event(event.get(), other_stream);
    if (type == GST_EVENT_CAPS) announce_latency();
    place.front().event = std::move(event);
    items_.splice(items_.end(), place);
    sent_.refused = false;
    changed_.notify_all();
    if (!wait_until_left(guard))
      flow = GST_FLOW_FLUSHING;
    else if (sent_.refused)
      flow = type == GST_EVENT_CAPS ? GST_FLOW_NOT_NEGOTIATED : GST_FLOW_ERROR;
  }
  post_last_flow(element_, left_with, told);
  return flow;
}

// Ends a report where time may jump. Call with lock_ held.
void HoldQueue::look_at_event(GstEvent *event, bool other_stream) {
  metas_.look_at_event(event);
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

// The number of frames that wait in buffers of the pool.
size_t HoldQueue::count_waiting() const {
  const auto is_of_pool = [&](const Item &item) { return item.frame && upstream_.is_of_pool(item.frame.get()); };
  return static_cast<size_t>(std::count_if(items_.begin(), items_.end(), is_of_pool));
}

bool HoldQueue::first_leaves() {
  if (items_.empty()) return false;
  const Item &first = items_.front();
  if (first.event || is_due(first)) return true;
  upstream_.know_pool(first.frame->pool);
  return upstream_.is_out_of_buffers(count_waiting());
}

void HoldQueue::count_early(const char *why) {
  counts_.add_early();
  messages_.warn_once(why, why, ": frames leave early, with the regions known so far");
}

// Ends the wait of the first frame where it has to leave early.
void HoldQueue::look_upstream() {
  Item &first = items_.front();
  const char *const why =
      upstream_.look(count_waiting(), first.regions.at.time, first.regions.running_time, known_latency());
  if (!why) return;
  first.ended = true;
  if (*why) count_early(why);
}

// ---- The task of the source pad -------------------------------------------------------------------------------------

// Waits until the first item may leave. Returns false where nothing may. Call with lock_ held.
bool HoldQueue::wait_for_first(std::unique_lock<std::mutex> &guard) {
  while (pads_.source_is_active && !pads_.flushes) {
    if (first_leaves()) {
      if (looks_again_) look_again();
      return true;
    }
    if (items_.empty()) {
      changed_.wait(guard);
      continue;
    }
    const gint64 left = upstream_.left();
    if (left > 0) {
      changed_.wait_for(guard, std::chrono::microseconds(left));
      continue;
    }
    try {
      look_upstream();
    } catch (const std::exception &) {  // no memory for a note of it: next time
    }
  }
  return false;
}

void HoldQueue::loop() {
  Ref<GstElement> kept;  // released after guard
  std::unique_lock<std::mutex> guard(lock_);
  pads_.task = std::this_thread::get_id();
  if (!wait_for_first(guard)) {
    pads_.task = {};
    gst_pad_pause_task(pads_.source);  // with lock_ held: a thread that starts the task comes after this
    return;
  }
  kept.reset(GST_ELEMENT(gst_object_ref(element_)));  // a pad probe may stop and release it
  std::list<Item> first;
  first.splice(first.begin(), items_, items_.begin());
  pushes_ = true;
  if (first.front().frame) {
    send_frame(guard, first.front());
  } else {
    guard.unlock();
    const bool refused = !gst_pad_push_event(pads_.source, first.front().event.release());
    guard.lock();
    sent_.refused = refused;
  }
  guard.unlock();
  messages_.post();
  guard.lock();
  pushes_ = false;
  pads_.task = {};
  changed_.notify_all();
}

// Pushes a frame with the regions in force, unless it is dropped. Call with lock_ held.
void HoldQueue::send_frame(std::unique_lock<std::mutex> &guard, Item &item) {
  if (!is_due(item)) count_early(UpstreamWatch::kShort);
  const guint flushed = pads_.interruptions;
  GstFlowReturn flow = GST_FLOW_OK;
  try {
    const FrameRegions &in_stream = item.regions;
    RoiList regions = regions_.in_force(in_stream, settings_);
    const bool marked = !is_outside(moved(regions, Pixel{} - in_stream.origin), in_stream.place.picture);
    if (settings_.report) report(in_stream.at.time, false);
    counts_.add_frame(marked, in_stream.own.count(), in_stream.types);
    const bool drops = !marked && settings_.unmarked == Unmarked::Drop;
    regions.everywhere |= !marked && settings_.unmarked == Unmarked::Mark;
    const bool discont = std::exchange(sent_.lost, drops) || item.lost;
    std::string types = settings_.types;
    guard.unlock();
    if (drops) {
      GstBuffer *const frame = item.frame.get();
      if (GST_BUFFER_PTS_IS_VALID(frame))
        gst_pad_push_event(pads_.source, gst_event_new_gap(GST_BUFFER_PTS(frame), GST_BUFFER_DURATION(frame)));
    } else {
      if (!gst_buffer_is_writable(item.frame.get())) item.frame = copy_buffer(item.frame.get());
      GstBuffer *const frame = item.frame.get();
      if (!frame)
        throw std::runtime_error(
            "Regions cannot be attached to a frame that another element holds, too: its memory could not be copied.");
      if (discont) GST_BUFFER_FLAG_SET(frame, GST_BUFFER_FLAG_DISCONT);
      regions = moved(std::move(regions), in_stream.place.corner - in_stream.origin);
      add_roi_metas(frame, regions, in_stream.own.region.size(), in_stream.own.mask.size(), in_stream.place.frame);
      set_held_regions(frame, {std::move(regions), std::move(types), analytics_lengths(frame)});
      // A kind of success is of no use upstream: it may be for an earlier frame.
      flow = std::min(gst_pad_push(pads_.source, item.frame.release()), GST_FLOW_OK);
    }
  } catch (const std::exception &e) {
    if (guard.owns_lock()) guard.unlock();
    flow = GST_FLOW_ERROR;
    post_error(element_, e);
  }
  guard.lock();
  if (flow == GST_FLOW_OK || pads_.interruptions != flushed) return;  // a pad probe may seek meanwhile
  sent_.flow = flow;
  sent_.lost = true;
  while (!items_.empty() && items_.front().frame && is_due(items_.front())) {  // they would have left with it
    Ref<GstBuffer> frame = std::move(items_.front().frame);
    items_.pop_front();
    guard.unlock();
    frame.reset();
    guard.lock();
  }
}

}  // namespace cudaconv::gst
