// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a video says of its light and its colours beyond the pixels, for encoders and muxers that say less of it.
#pragma once

#include <gst/video/video.h>

#include "encoders.h"

namespace media {

// A colorimetry of the same matrix and range that vp9enc knows: its stream names no transfer, and the container does.
GstVideoColorimetry named_by_vp9enc(const GstVideoColorimetry &colors);

// The caps for the muxer, from those that an encoder gives: with what the frames say of their colours and their light.
GstCaps *labelled(const GstCaps *coded, const GstCaps *frames, const Container &container);

// Whether the frames tell their mastering display or their light level, and the file does not.
bool loses_light(const GstCaps *frames, const Container &container, const Coding &coding);

}  // namespace media
