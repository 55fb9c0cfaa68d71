// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The regions in force for each frame of a stream, and their counts.
#pragma once

#include <gst/video/video.h>

#include <cstdint>
#include <optional>

#include "gstcudaconvformat.h"
#include "gstcudaconvroimetas.h"
#include "gstcudaconvsegment.h"
#include "regions/history.h"

namespace cudaconv::gst {

// For how many nanoseconds a region is in force after the last frame that came with it, and before the first one.
struct HoldTimes {
  guint64 hold = 0, lookahead = 0;
  bool interpolate = false;  // objects move between two detections

  bool holds() const { return hold || lookahead; }
  // How far apart two detections may be that an object moves between; 0: none moves.
  guint64 between() const { return interpolate ? add_times(hold, lookahead) : 0; }
  // How long a frame waits for later ones. Backwards, later frames precede it in stream time, so `hold` counts. The
  // frame after a detection has to wait for the next one.
  guint64 wait(bool backwards) const { return interpolate ? between() : !lookahead ? 0 : backwards ? hold : lookahead; }
};

// A frame in its stream, and the regions that came with it.
struct FrameRegions {
  StreamTime at;
  GstClockTime running_time = GST_CLOCK_TIME_NONE;
  PicturePlace place;
  Pixel origin;  // of the picture, in the coordinates of RoiHistory
  RoiList own;   // in the same coordinates
  RoiTypeCounts types;
};

// One thread at a time, but for the const functions that upstream's thread calls, which alone changes caps and segment.
// No function that throws changes anything.
class HeldRegions {
 public:
  // Forgets the stream.
  void reset() { *this = HeldRegions(); }
  const std::optional<GstVideoInfo> &info() const { return info_; }  // of the caps
  // Whether several frames may have the same time: both fields of a frame, and frames of streams where it is usual.
  bool shares_times() const { return shares_times_ || (info_ && has_fields(*info_)); }
  // The time in nanoseconds that grows as the stream plays.
  int64_t playing_time(int64_t time) const { return plays_backwards(segment_) ? -time : time; }

  // When and where the frame is. There are caps.
  FrameRegions locate(GstBuffer *buffer) const;
  // Takes the regions of a frame, in pixels of its whole frame, and holds them. `waiting`: the times of the frames that
  // wait.
  void add(FrameRegions *frame, RoiList found, const HoldTimes &times, const TimeSpan &waiting);
  // Instead of the regions that were held for the frames that wait: begin_again(), then the same for each of them.
  void begin_again() { held_.forget_tracks(); }
  void replace(FrameRegions *frame, RoiList found, const HoldTimes &times);
  // Notes that the regions of a frame are not known: for as long as they would be in force, all of each frame is one.
  void miss(const FrameRegions &frame);
  // Also for a frame whose regions could not be found again.
  void miss_again(FrameRegions *frame);
  // The regions in force for a frame, first its own.
  RoiList in_force(const FrameRegions &frame, const HoldTimes &times) const;

  // Whether time `a` comes before `b` where the stream plays.
  bool is_before(int64_t a, int64_t b) const { return plays_backwards(segment_) ? a > b : a < b; }
  // Whether the frame that was added last is earlier than the first one that waits, by more than that one waits. Also
  // whether it begins a segment and is earlier than the frame before it, and whether time stands still. After a jump
  // stands_still() counts anew.
  bool jumps_back(const FrameRegions &first, const FrameRegions &frame, const HoldTimes &times);
  // Whether many frames have come that were not later than all others: those that wait would wait for ever.
  bool stands_still() const { return still_ >= 128; }
  // Whether no later frame can add regions to this one.
  bool is_over(const FrameRegions &frame, const HoldTimes &times) const;
  // Whether waiting frames must leave before the event, since it ends their caps, segment or stream.
  bool ends_frames(GstEvent *event, GstPad *sinkpad) const;
  // To be called for each event of the sink pad: caps and segments count from then on. Forgets all regions after a
  // flush, and in a segment of another stream or with other stream times. Returns whether time may jump.
  bool look_at_event(GstEvent *event, bool other_stream);

 private:
  RoiTimes in_time(const HoldTimes &times) const;

  std::optional<GstVideoInfo> info_;
  GstSegment segment_ = {};
  bool stream_starts_ = false;        // no segment of the latest stream has come
  bool segment_begins_ = false;       // no frame of the latest segment has come
  bool jumps_ = false;                // the last frame was the first of its segment, and earlier than the one before
  bool shares_times_ = false;         // two times in a row, or the first one, had several frames each
  bool last_shared_ = false;          // the last time had several
  bool earlier_shared_ = true;        // the time before it had several, or there is none
  std::optional<int64_t> last_time_;  // of the last frame
  std::optional<int64_t> newest_;     // the latest time where the stream plays
  guint still_ = 0;                   // frames that have come since
  int64_t now_ = 0;                   // the stream time up to which all frames have come
  RoiHistory held_;                   // the regions of all frames that count
  TimeSpan missed_;                   // the times of frames whose regions are not known
};

// Counts of frames and their regions, for the property "stats" of roihold and its reports. Not locked.
class HoldCounts {
 public:
  // A frame that leaves, with or without a region in force, and the regions that came with it.
  void add_frame(bool marked, guint64 regions, const RoiTypeCounts &types);
  void add_early() { all_.early++, unreported_.early++; }

  // All counts. Transfer full.
  GstStructure *all() const { return all_.write("application/x-roihold-stats"); }
  // Begins the counts of the first report.
  void begin_reports();
  // The counts since the last report, as the structure of a message; nullptr where the last report is less than a
  // second of stream time before `time`. `ended`: reports what is left. Transfer full.
  GstStructure *report(std::optional<int64_t> time, bool ended);

 private:
  struct Counts {
    guint64 marked = 0, unmarked = 0, early = 0;
    RoiCounts regions;

    GstStructure *write(const char *name) const;
  };

  Counts all_, unreported_;       // since the start, since the last report
  std::optional<int64_t> begin_;  // of the next report
};

}  // namespace cudaconv::gst
