// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvsegment.h"

#include "gstcudaconvref.h"

namespace cudaconv::gst {

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

bool is_other_segment(GstEvent *event, const GstSegment &current, bool in_stream_time) {
  GstSegment segment;
  gst_event_copy_segment(event, &segment);
  if (in_stream_time)
    return segment.format != current.format || segment.start != current.start || segment.time != current.time ||
           segment.applied_rate != current.applied_rate || (segment.applied_rate < 0 && segment.stop != current.stop);
  segment.position = current.position;  // moves with the frames
  return !gst_segment_is_equal(&segment, &current);
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

}  // namespace cudaconv::gst
