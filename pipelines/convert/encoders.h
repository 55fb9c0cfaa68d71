// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The containers that a conversion writes, and the encoders for their streams.
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

#include "../media.h"

namespace media {

struct Container {
  const char *suffix, *muxer;
  bool text;  // takes subtitles; the muxer for WebM does not refuse them, but players do
  // Formats to encode to, the best first, and the packages that have encoders for them.
  std::vector<const char *> video, audio;
  // Formats for video of more than 8 bits, the one that keeps most first. None of the others has an encoder for it.
  std::vector<const char *> deep;
  const char *packages;
};

constexpr char kH264[] = "video/x-h264", kH265[] = "video/x-h265", kAv1[] = "video/x-av1", kVp8[] = "video/x-vp8",
               kVp9[] = "video/x-vp9";

// A format for a coded video, and its encoder.
struct Coding {
  Owned<GstCaps> format;
  Owned<GstCaps> frames;  // what the encoder gets
  std::string encoder;    // a factory, for video of more than 8 bits; empty: GStreamer's choice
  bool deep() const { return !encoder.empty(); }
};

// The container that a file name asks for; nullptr where there is none.
const Container *container_of(const std::string &name);
// The codings that installed encoders have for a container, the best one first; `deep`: for video of more than 8 bits.
std::vector<Coding> codings_of(const Container &container, bool deep);
// Whether caps, or an encoder's format, are of this name.
bool is_format(const GstCaps *caps, const char *name);
// The first of the formats that an installed element encodes to; nullptr where there is none.
GstCaps *find_format(const std::vector<const char *> &formats, GstElementFactoryListType kind);

// Throws Failure where there is no such element.
GstElement *make(const char *factory);
GstElement *make_video_encoder(const Coding &coding);
// Whether the encoder writes the closed captions that come with frames into its stream.
bool keeps_captions(GstElement *video_encoder);
GstElement *make_audio_encoder(GstCaps *format, const GstCaps *sound);

// The name of a request pad of the muxer for such a stream; nullptr where it takes none.
const char *template_for(GstElement *muxer, const GstCaps *caps);
// The caps of a coded stream at the muxer: AAC loses the headers of transport streams.
Owned<GstCaps> as_muxed(const GstCaps *caps);
// Whether the muxer takes this sound as it is. Sound with incomplete caps goes to a parser first.
bool takes_sound(GstElement *muxer, const GstCaps *coded);

}  // namespace media
