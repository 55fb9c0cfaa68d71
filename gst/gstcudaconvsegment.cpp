// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvsegment.h"

#include <algorithm>
#include <cmath>

#include "gstcudaconvformat.h"
#include "gstcudaconvref.h"

namespace cudaconv::gst {

namespace {

// Converts a time; what is beyond 292 years becomes the largest.
int64_t nanoseconds(GstClockTime time) {
  return static_cast<int64_t>(std::min<GstClockTime>(time, G_MAXINT64));
}

}  // namespace

bool is_other_stream(GstEvent *event, GstPad *sinkpad) {
  const Ref<GstEvent> current(gst_pad_get_sticky_event(sinkpad, GST_EVENT_STREAM_START, 0));
  if (!current) return true;
  const gchar *id, *current_id;
  guint group = GST_GROUP_ID_INVALID, current_group = GST_GROUP_ID_INVALID;
  gst_event_parse_stream_start(event, &id);
  gst_event_parse_group_id(event, &group);
  gst_event_parse_stream_start(current.get(), &current_id);
  gst_event_parse_group_id(current.get(), &current_group);
  return g_strcmp0(id, current_id) != 0 || group != current_group;
}

bool plays_backwards(const GstSegment &segment) {
  // Without an end, a negative applied rate gives no stream times: timestamps count.
  const bool turned =
      segment.format == GST_FORMAT_TIME && segment.applied_rate < 0 && segment.stop != GST_CLOCK_TIME_NONE;
  return (segment.rate < 0) != turned;
}

bool is_other_segment(GstEvent *event, const GstSegment &current) {
  const GstSegment *segment;
  gst_event_parse_segment(event, &segment);
  return segment->format != current.format || segment->start != current.start || segment->time != current.time ||
         segment->applied_rate != current.applied_rate || (segment->applied_rate < 0 && segment->stop != current.stop);
}

bool keeps_stream_times(GstEvent *event, const GstSegment &current) {
  const GstSegment *segment;
  gst_event_parse_segment(event, &segment);
  if (segment->format != current.format || segment->applied_rate != current.applied_rate) return false;
  // The position that the time of the segment belongs to.
  const guint64 at = segment->applied_rate < 0 ? segment->stop : segment->start;
  guint64 time;
  return gst_segment_to_stream_time_full(&current, current.format, at, &time) == 1 && time == segment->time;
}

GstClockTime add_times(GstClockTime a, GstClockTime b) {
  GstClockTime sum;
  const bool fits = !__builtin_add_overflow(a, b, &sum) && sum <= G_MAXINT64;
  return fits ? sum : std::max<GstClockTime>(a, G_MAXINT64);
}

GstClockTime buffer_duration(const GstVideoInfo &info) {
  if (info.fps_n < 1 || info.fps_d < 1) return 0;
  return gst_util_uint64_scale(GST_SECOND, info.fps_d, gint64{has_fields(info) ? 2 : 1} * info.fps_n);
}

guint64 scaled(guint64 time, double by) {
  const double result = static_cast<double>(time) * by;
  return by == 1 ? time : result < 1e19 ? static_cast<guint64>(result) : G_MAXUINT64;
}

StreamTime stream_time_of(GstBuffer *buffer, const GstSegment &segment, GstClockTime duration,
                          std::optional<int64_t> last) {
  GstClockTime time = GST_BUFFER_PTS(buffer);
  bool is_known = true;
  if (!GST_CLOCK_TIME_IS_VALID(time)) {
    if (GST_BUFFER_DURATION_IS_VALID(buffer)) duration = GST_BUFFER_DURATION(buffer);
    const double speed = segment.format == GST_FORMAT_TIME ? std::abs(segment.applied_rate) : 1;
    const int64_t length = nanoseconds(scaled(duration, speed)), step = plays_backwards(segment) ? -length : length;
    is_known = duration > 0;
    if (last) {
      int64_t sum;
      if (__builtin_add_overflow(*last, step, &sum)) sum = step < 0 ? G_MININT64 : G_MAXINT64;
      return {sum, is_known};
    }
    time = segment.rate < 0 && GST_CLOCK_TIME_IS_VALID(segment.stop) ? segment.stop : segment.start;
  }
  guint64 stream = time;
  const int sign =
      segment.format == GST_FORMAT_TIME ? gst_segment_to_stream_time_full(&segment, GST_FORMAT_TIME, time, &stream) : 1;
  return {sign < 0 ? -nanoseconds(stream) : nanoseconds(sign ? stream : time), is_known};
}

}  // namespace cudaconv::gst
