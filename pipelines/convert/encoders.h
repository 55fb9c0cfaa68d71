// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The containers that a conversion writes, and the encoders for their streams.
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

namespace media {

struct Container {
  const char *suffix, *muxer;
  bool text;  // takes subtitles; the muxer for WebM does not refuse them, but players do
  // Formats to encode to, the best first, and the packages that have encoders for them.
  std::vector<const char *> video, audio;
  const char *packages;
};

constexpr char kH264[] = "video/x-h264", kVp8[] = "video/x-vp8", kVp9[] = "video/x-vp9";

// The container that a file name asks for; nullptr where there is none.
const Container *container_of(const std::string &name);
// Whether caps, or an encoder's format, are of this name.
bool is_format(const GstCaps *caps, const char *name);
// The first of the formats but `unfit` that an installed element encodes to; nullptr where there is none.
GstCaps *find_format(const std::vector<const char *> &formats, GstElementFactoryListType kind, const char *unfit = "");

// Throws Failure where there is no such element.
GstElement *make(const char *factory);
GstElement *make_video_encoder(GstCaps *format);
GstElement *make_audio_encoder(GstCaps *format, const GstCaps *sound);

// The name of a request pad of the muxer for such a stream; nullptr where it takes none.
const char *template_for(GstElement *muxer, const GstCaps *caps);
// Whether the muxer takes this sound as it is. Sound with incomplete caps goes to a parser first.
bool takes_sound(GstElement *muxer, const GstCaps *caps);

}  // namespace media
