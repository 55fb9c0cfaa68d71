// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Streams and segments: whether an event begins others, and which way time goes.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

// Whether a STREAM_START event begins another stream. The same one comes again if an element upstream is replaced; its
// flags and GstStream may be others.
bool is_other_stream(GstEvent *event, GstPad *sinkpad);

// Whether frames come with falling stream times: timestamps fall, or the source has turned the stream round.
bool plays_backwards(const GstSegment &segment);

// Whether a SEGMENT event brings another segment than `current`. `in_stream_time`: only other stream times count.
bool is_other_segment(GstEvent *event, const GstSegment &current, bool in_stream_time);

// Whether a SEGMENT event leaves frames the stream times that they have in `current`, perhaps with another start.
bool keeps_stream_times(GstEvent *event, const GstSegment &current);

}  // namespace cudaconv::gst
