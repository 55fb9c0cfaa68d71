// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Decoders that need care.
#pragma once

#include <gst/gst.h>

namespace media {

// Whether a factory of this name has made the element.
bool is_made_by(gpointer element, const char *name);
// gifdec repeats a GIF as often as the file says, which may be for ever. Where there is another decoder, the programs
// take that one. Call after gst_init().
void avoid_gifdec();
// To be called for each element that a pipeline gets: makes a gifdec play its file once, ends the GIF of a demuxer that
// reads for ever, and gives each frame of avdec_gif its own time.
void mend_gif(GstElement *element);
// The same: gives the frames of MPEG-4 and MPEG-2 in AVI their times, where B frames are among them.
void mend_avi(GstElement *element);
// The same: makes qtdemux give all streams of a file, and each stream to its end, also after an edit list that begins
// within the media.
void mend_durations(GstElement *element);
// The same: makes a parser of H.264 or H.265 tell the range of the stream, where a demuxer knows only one.
void mend_range(GstElement *element);
// To be called for each element that a bin gets, before data flows. decodebin and parsebin lose the error of an element
// that fails while they add it, and then wait for ever: such an error is posted again.
void keep_errors(GstBin *bin, GstElement *element);

}  // namespace media
