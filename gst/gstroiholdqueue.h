// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The frames that wait in a roihold, with the events between them, and the regions in force for each.
#pragma once

#include <gst/video/video.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "filter.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvpropertytable.h"
#include "gstcudaconvref.h"
#include "gstcudaconvroimetas.h"
#include "gstroiholdregions.h"
#include "gstroiholdupstream.h"

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
  HoldQueue(GstElement *element, GstPad *sinkpad, GstPad *srcpad, const PropertyValues<HoldSettings> &properties,
            Messages &messages)
      : element_(element),
        properties_(properties),
        messages_(messages),
        pads_{sinkpad, srcpad},
        metas_(messages, "types", RoiMetaReader::Beside::kAll),
        upstream_(element) {}

  // READY to PAUSED, before the pads are active; PAUSED to READY, after they were.
  void start();
  void stop();
  // For the pads' activatemode functions. Deactivation waits for the task no longer than downstream holds it.
  gboolean activate(GstPad *pad, bool active);

  // Upstream's streaming thread. They throw nothing, and leave messages.
  GstFlowReturn take(Ref<GstBuffer> frame);
  GstFlowReturn take_event(Ref<GstEvent> event);
  gboolean take_query(GstQuery *query);
  // FLUSH_START and FLUSH_STOP; any thread.
  GstFlowReturn flush(Ref<GstEvent> event);
  // The same from downstream, which resets the source pad: the frames that wait stay.
  void flush_source(bool begins);

  // Any thread may call these. update(): takes the properties that have been published.
  void update();
  // Nanoseconds that each frame waits for those after it.
  GstClockTime latency() const;
  // Sets the latency of a live upstream; GST_CLOCK_TIME_NONE where it is not live.
  void set_live_latency(GstClockTime latency) { upstream_.set_latency(latency); }
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
  struct Pads {
    GstPad *const sink, *const source;
    bool sink_is_active = false, source_is_active = false;
    bool flushes = false;
    guint interruptions = 0;  // flushes and pads that were deactivated
    std::thread::id task{};   // of the source pad, while it runs

    bool flushing() const { return !source_is_active || !sink_is_active || flushes; }
  };
  // How the pushes of the task ended.
  struct Sent {
    GstFlowReturn flow = GST_FLOW_OK;  // of frames, until upstream gets it
    GstFlowReturn told = GST_FLOW_OK;  // the last one but OK that upstream got
    bool refused = false;              // downstream refused the latest event
    bool lost = false;                 // frames were dropped since the last one that was pushed
    bool lost_before = false;          // frames were dropped since the last one that was added
  };

  void look_again();
  void add(std::list<Item> &&place);
  void end_all();
  void look_at_event(GstEvent *event, bool other_stream);
  GstClockTime known_latency() const;
  void announce_latency();

  bool is_due(const Item &item) const;
  size_t count_waiting() const;
  bool first_leaves();
  void look_upstream();
  void count_early(const char *why);
  void report(std::optional<int64_t> time, bool ended);

  void loop();
  bool wait_for_first(std::unique_lock<std::mutex> &guard);
  template <typename Done>
  bool wait_until(std::unique_lock<std::mutex> &guard, const Done &done);
  bool wait_until_left(std::unique_lock<std::mutex> &guard);
  bool let_all_go(std::unique_lock<std::mutex> &guard);
  void send_frame(std::unique_lock<std::mutex> &guard, Item &item);

  GstElement *const element_;
  const PropertyValues<HoldSettings> &properties_;
  Messages &messages_;

  mutable std::mutex lock_;  // guards the members below; never held while pushing or looking for regions in metas
  std::condition_variable changed_;
  Pads pads_;
  HoldSettings settings_;
  bool looks_again_ = false;  // regions of frames that wait have to be looked for again, as for other types
  std::list<Item> items_;     // oldest first
  bool pushes_ = false;       // the task pushes what was the first item
  Sent sent_;
  HeldRegions regions_;
  RoiMetaReader metas_;  // for upstream's thread alone, but for read_again()
  HoldCounts counts_;
  UpstreamWatch upstream_;
};

}  // namespace cudaconv::gst
