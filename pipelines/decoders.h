// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Decoders that need care.
#pragma once

#include <gst/gst.h>

namespace media {

// gifdec repeats a GIF as often as the file says, which may be for ever. Where there is another decoder, the programs
// take that one. Call after gst_init().
void avoid_gifdec();
// To be called for each element that a pipeline gets: makes a gifdec play its file once.
void play_once(GstElement *element);

}  // namespace media
