// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The frames that wait in a roihold, with the events between them, and the regions in force for each.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "filter.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvref.h"
#include "gstcudaconvroimetas.h"
#include "gstroiholdcounts.h"
#include "gstroiholdregions.h"
#include "gstroiholdupstream.h"
#include "regions/types.h"

namespace cudaconv::gst {

enum class Unmarked { Pass, Mark, Drop };
inline constexpr Named<Unmarked> kUnmarkedNames[] = {
    {Unmarked::Pass, "pass", "Pass the frame on"},
    {Unmarked::Mark, "mark", "Mark the whole frame as a region"},
    {Unmarked::Drop, "drop", "Drop the frame"},
};

// The properties.
struct HoldSettings : HoldTimes {
  std::string types;  // as TypeFilter takes them
  Unmarked unmarked = Unmarked::Pass;
  bool report = false;
};

// Threads: upstream's streaming thread brings frames, serialized events and queries; a task of the source pad pushes
// all. Upstream's thread waits until what may leave has left, so that it gets downstream's flow return and answers as
// without the element. It does not wait for frames that wait for later ones.
class HoldQueue {
 public:
  HoldQueue(GstElement *element, GstPad *sinkpad, GstPad *srcpad, Messages &messages)
      : element_(element), sinkpad_(sinkpad), srcpad_(srcpad), messages_(messages) {}

  // READY to PAUSED, before the pads are active; PAUSED to READY, after they were.
  void start();
  void stop();
  // For the pads' activatemode functions. Deactivation waits for the task no longer than downstream holds it.
  gboolean activate(GstPad *pad, bool active);

  // Upstream's streaming thread. They throw nothing, and leave messages.
  GstFlowReturn take(Ref<GstBuffer> frame);
  gboolean take_event(Ref<GstEvent> event);
  gboolean take_query(GstQuery *query);
  // FLUSH_START and FLUSH_STOP; any thread.
  gboolean flush(Ref<GstEvent> event);

  // Any thread may call these. `change` is called with lock_ held.
  void set(const std::function<void(HoldSettings *settings)> &change);
  // Nanoseconds that each frame waits for those after it.
  GstClockTime latency() const;
  // Sets the latency of a live upstream; GST_CLOCK_TIME_NONE where it is not live.
  void set_live_latency(GstClockTime latency) { live_latency_ = latency; }
  // The value of the property "stats", counted since start(). Transfer full.
  GstStructure *stats() const;

 private:
  // A frame and its regions, or an event.
  struct Item {
    Ref<GstEvent> event;
    Ref<GstBuffer> frame;
    FrameRegions regions;
    bool ended = false;  // waits for no later frame
    bool lost = false;   // frames were dropped between the one before and this one
  };
  // Why frames leave early.
  enum class Early { Short, Stands, Late };

  RoiHistory::Span times_waiting() const;
  void look_again();
  void add(std::list<Item> &&place);
  void end_all();
  void look_at_event(GstEvent *event, bool other_stream);
  void announce_latency();

  bool is_due(const Item &item) const;
  size_t count_waiting() const;
  bool is_short_of_buffers() const;
  bool first_leaves() const;
  void know_pool();
  void look_for_standstill();
  gint64 let_go_by_clock();
  void note_lateness(const Item &item);
  void count_early(Early why);
  void report(std::optional<int64_t> time, bool ended);

  static void run(gpointer queue);
  void loop();
  bool wait_for_first(std::unique_lock<std::mutex> &guard);
  bool wait_until_left(std::unique_lock<std::mutex> &guard);
  bool let_all_go(std::unique_lock<std::mutex> &guard);
  void send_frame(std::unique_lock<std::mutex> &guard, Item &item);
  bool flushing() const { return !is_active_[0] || !is_active_[1] || flushes_; }

  GstElement *const element_;
  GstPad *const sinkpad_, *const srcpad_;
  Messages &messages_;
  std::atomic<GstClockTime> live_latency_{GST_CLOCK_TIME_NONE};

  mutable std::mutex lock_;  // guards the members below; never held while pushing or looking for regions in metas
  std::condition_variable changed_;
  std::thread::id task_;                // while it runs
  bool is_active_[2] = {false, false};  // the source pad, the sink pad
  bool flushes_ = false;
  guint interruptions_ = 0;  // flushes and pads that were deactivated
  HoldSettings settings_;
  std::shared_ptr<const TypeFilter> filter_ = std::make_shared<const TypeFilter>();  // of settings_.types
  bool looks_again_ = false;    // regions of frames that wait have to be looked for again, as for other types
  GstClockTime announced_ = 0;  // latency() when the last LATENCY message was left

  std::list<Item> items_;             // oldest first
  bool pushes_ = false;               // the task pushes what was the first item
  GstFlowReturn flow_ = GST_FLOW_OK;  // of frames that were pushed, until upstream gets it
  GstFlowReturn told_ = GST_FLOW_OK;  // the last one but OK that upstream got
  std::atomic<bool> refused_{false};  // downstream refused the latest event
  bool lost_ = false;                 // frames were dropped since the last one that was pushed
  bool lost_before_ = false;          // frames were dropped since the last one that was added

  HeldRegions regions_;
  RoiTypeWatch type_watch_{"types"};
  HoldCounts counts_;

  UpstreamBuffers buffers_;
  gint64 came_ = 0, alarm_ = 0;         // when the last frame came, when to look next: microseconds, monotonic
  GstClockTimeDiff lateness_ = 0;       // of the last frame that came from a live source
  std::vector<int64_t> left_by_clock_;  // stream times of the frames that the clock let go, since a frame came
};

}  // namespace cudaconv::gst
