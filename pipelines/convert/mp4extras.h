// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What GStreamer does not read of MP4 files and transport streams, or writes wrongly.
#pragma once

#include <gst/gst.h>

#include <string>

#include "../boxes.h"

namespace media {

// Whether an MP4 or QuickTime file has these, by its box `moov`. qtdemux gives neither, up to 1.28 at least.
bool has_chapters(const Box &movie);
bool has_timecodes(const Box &movie);

// How many programs a transport stream has. tsdemux gives one of them. 0: the file is no transport stream.
int transport_programs(const std::string &file);

// mp4mux of GStreamer 1.22 counts the duration from the times of decoding: where the frame rate varies, the last frames
// come after it and are not shown.
void mend_durations_of(GstElement *muxer);

// mp4mux before GStreamer 1.24 writes the numbers of Opus in little endian: players skip the first 0.3 s of the sound.
void mend_opus(GstElement *muxer);

}  // namespace media
