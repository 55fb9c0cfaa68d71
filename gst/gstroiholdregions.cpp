// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstroiholdregions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gstcudaconvref.h"

namespace cudaconv::gst {

FrameRegions HeldRegions::locate(GstBuffer *buffer) const {
  FrameRegions frame;
  frame.at = stream_time_of(buffer, segment_, buffer_duration(*info_), last_time_);
  frame.place = picture_place(buffer, *info_);
  if (segment_.format == GST_FORMAT_TIME)
    frame.running_time = gst_segment_to_running_time(&segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  return frame;
}

// Without look-ahead, `hold` is wall-clock time where the stream plays faster, and counts in both directions, unless
// frames wait for the next detection.
RoiTimes HeldRegions::in_time(const HoldTimes &times) const {
  const bool backwards = plays_backwards(segment_);
  if (times.lookahead) return {times.lookahead, times.hold, times.between(), backwards};
  const double rate = segment_.format == GST_FORMAT_TIME ? std::abs(segment_.rate * segment_.applied_rate) : 1;
  const guint64 hold = scaled(times.hold, std::max(rate, 1.0));
  return {times.interpolate && !backwards ? 0 : hold, hold, times.between(), backwards};
}

void HeldRegions::add(FrameRegions *frame, RoiList found, const HoldTimes &times, const TimeSpan &waiting) {
  if (!times.holds()) {
    held_.clear();
    missed_ = {};
  }
  frame->origin = held_.set_picture(frame->place);
  frame->own = moved(std::move(found), frame->origin - frame->place.corner);
  if (times.holds()) {
    TimeSpan open = waiting;
    open.add(last_time_.value_or(frame->at.time));
    held_.add(frame->own, frame->at.time, open, in_time(times));
  }
  const int64_t time = frame->at.time;
  jumps_ = std::exchange(segment_begins_, false) && last_time_ && is_before(time, *last_time_);
  if (frame->at.is_known && last_time_ == time) {
    shares_times_ |= earlier_shared_;
    last_shared_ = true;
  } else if (last_time_) {
    earlier_shared_ = std::exchange(last_shared_, false);
  }
  last_time_ = now_ = time;
  if (jumps_ || !newest_ || is_before(*newest_, time)) {
    newest_ = time;
    still_ = 0;
  } else {
    still_++;
  }
}

void HeldRegions::replace(FrameRegions *frame, RoiList found, const HoldTimes &times) {
  RoiList now = moved(std::move(found), frame->origin - frame->place.corner);
  if (times.holds()) held_.add(now, frame->at.time, last_time_.value_or(frame->at.time), in_time(times), &frame->own);
  frame->own = std::move(now);
}

void HeldRegions::miss(const FrameRegions &frame) {
  last_time_ = frame.at.time;
  missed_.add(frame.at.time);
}

void HeldRegions::miss_again(FrameRegions *frame) {
  frame->own.everywhere = true;
  missed_.add(frame->at.time);
}

RoiList HeldRegions::in_force(const FrameRegions &frame, const HoldTimes &times) const {
  const RoiTimes in_force = in_time(times);
  RoiList regions = times.holds() ? held_.in_force(frame.at.time, in_force, frame.own) : frame.own;
  regions.everywhere |= missed_.is_in_force(frame.at.time, in_force);
  return regions;
}

bool HeldRegions::jumps_back(const FrameRegions &first, const FrameRegions &frame, const HoldTimes &times) {
  const bool backwards = plays_backwards(segment_);
  const int64_t from = first.at.time, to = frame.at.time;
  const bool jumps = jumps_ || stands_still() ||
                     !(backwards ? is_within(from, to, times.wait(true)) : is_within(to, from, times.wait(false)));
  if (jumps) newest_.reset();
  return jumps;
}

bool HeldRegions::is_over(const FrameRegions &frame, const HoldTimes &times) const {
  const bool backwards = plays_backwards(segment_);
  const guint64 wait = times.wait(backwards);
  if (!frame.at.is_known || !(times.lookahead || wait)) return true;
  const auto now = static_cast<guint64>(now_), time = static_cast<guint64>(frame.at.time);
  const guint64 passed = backwards ? time - now : now - time;
  return !is_before(now_, frame.at.time) && (shares_times() ? passed > wait : passed >= wait);
}

bool HeldRegions::ends_frames(GstEvent *event, GstPad *sinkpad) const {
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_CAPS: {
      GstCaps *caps;
      gst_event_parse_caps(event, &caps);
      const Ref<GstCaps> current(gst_pad_get_current_caps(sinkpad));
      return !current || !gst_caps_is_equal(current.get(), caps);
    }
    case GST_EVENT_SEGMENT: {
      const GstSegment *segment;
      gst_event_parse_segment(event, &segment);
      return plays_backwards(*segment) != plays_backwards(segment_) || !keeps_stream_times(event, segment_);
    }
    case GST_EVENT_STREAM_START:
      return is_other_stream(event, sinkpad);
    case GST_EVENT_STREAM_GROUP_DONE:
    case GST_EVENT_SEGMENT_DONE:
    case GST_EVENT_EOS:
      return true;
    default:
      return false;  // decoders send a gap event before frames that they still hold
  }
}

bool HeldRegions::look_at_event(GstEvent *event, bool other_stream) {
  const GstEventType type = GST_EVENT_TYPE(event);
  // Within a stream, a pad offset or another rate changes the running time of frames, not their stream time.
  stream_starts_ |= other_stream;
  const bool flushes = type == GST_EVENT_FLUSH_STOP, is_segment = type == GST_EVENT_SEGMENT,
             same_stream = is_segment && !std::exchange(stream_starts_, false);
  const bool ends = flushes || (is_segment && !(same_stream && !is_other_segment(event, segment_)));
  segment_begins_ |= is_segment;
  if (ends && (!same_stream || !keeps_stream_times(event, segment_))) {
    held_.clear();
    missed_ = {};
  }
  if (ends) {
    last_time_.reset();
    newest_.reset();
  }
  if (is_segment) gst_event_copy_segment(event, &segment_);
  GstCaps *caps;
  if (type == GST_EVENT_CAPS) {
    gst_event_parse_caps(event, &caps);
    if (!gst_video_info_from_caps(&info_.emplace(), caps)) info_.reset();
  }
  return ends || type == GST_EVENT_SEGMENT_DONE || type == GST_EVENT_EOS;
}

// ---- Counts ---------------------------------------------------------------------------------------------------------

void HoldCounts::add_frame(bool marked, guint64 regions, const RoiTypeCounts &types) {
  for (Counts *counts : {&all_, &unreported_}) {
    (marked ? counts->marked : counts->unmarked)++;
    counts->regions.add(regions, types);
  }
}

GstStructure *HoldCounts::Counts::write(const char *name) const {
  GstStructure *structure = gst_structure_new(name, "frames-marked", G_TYPE_UINT64, marked, "frames-unmarked",
                                              G_TYPE_UINT64, unmarked, "frames-early", G_TYPE_UINT64, early, nullptr);
  regions.write(structure);
  return structure;
}

void HoldCounts::begin_reports() {
  unreported_ = {};
  begin_.reset();
}

GstStructure *HoldCounts::report(std::optional<int64_t> time, bool ended) {
  if (!begin_) begin_ = time;
  const int64_t at = time.value_or(0), begin = begin_.value_or(at);  // backwards, the end comes first
  const guint64 passed = static_cast<guint64>(std::max(at, begin)) - static_cast<guint64>(std::min(at, begin));
  const bool due = time && passed >= GST_SECOND;
  if (!due && !ended) return nullptr;
  const std::optional<int64_t> from = std::exchange(begin_, time);
  if (ended && !unreported_.marked && !unreported_.unmarked) return nullptr;
  GstStructure *structure = unreported_.write("roihold-regions");
  if (from && *from >= 0)
    gst_structure_set(structure, "stream-time", G_TYPE_UINT64, static_cast<guint64>(*from), nullptr);
  unreported_ = {};
  return structure;
}

}  // namespace cudaconv::gst
