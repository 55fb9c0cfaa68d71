// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Streams, segments and times: whether an event begins others, which way time goes, when a frame is shown.
#pragma once

#include <gst/video/video.h>

#include <cstdint>
#include <optional>

namespace cudaconv::gst {

// Whether a STREAM_START event begins another stream. The same one comes again if an element upstream is replaced; its
// flags and GstStream may be others.
bool is_other_stream(GstEvent *event, GstPad *sinkpad);

// Whether frames come with falling stream times: timestamps fall, or the source has turned the stream round.
bool plays_backwards(const GstSegment &segment);

// The stream time of a frame in nanoseconds, which may be negative; its timestamp where the segment is not in time
// format.
struct StreamTime {
  int64_t time = 0;
  bool is_known = true;  // false: neither timestamp nor duration is known
};
// A frame without a timestamp follows the one before it, at `last`, by its duration, or by `duration` where it has
// none. The first one is at the start of the segment.
StreamTime stream_time_of(GstBuffer *buffer, const GstSegment &segment, GstClockTime duration,
                          std::optional<int64_t> last);

// Nanoseconds per buffer by the framerate of the caps; 0 where they have none.
GstClockTime buffer_duration(const GstVideoInfo &info);
// The sum of two times. Where it would be beyond 292 years: 292 years, or `a` where that is later.
GstClockTime add_times(GstClockTime a, GstClockTime b);
// A time multiplied by a factor; what is too long becomes the longest.
guint64 scaled(guint64 time, double by);

// Whether a SEGMENT event brings another segment of stream time than `current`.
bool is_other_segment(GstEvent *event, const GstSegment &current);

// Whether a SEGMENT event leaves frames the stream times that they have in `current`, perhaps with another start.
bool keeps_stream_times(GstEvent *event, const GstSegment &current);

}  // namespace cudaconv::gst
