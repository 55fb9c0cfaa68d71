// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The metas that go from an input to its output.
#pragma once

#include <gst/video/video.h>

namespace cudaconv::gst {

// Whether metas of this type go from the input to the output. The filter keeps size, position and meaning of the
// pixels, so that every meta which is not tied to the memory stays true.
bool keeps_meta(GType api);

// Copies a meta that says where something is in the picture, if keeps_meta() is true and the input has a
// GstVideoCropMeta: the output is the rectangle alone, so positions count from its corner. GStreamer moves analytics
// metas since 1.28; before, their detections become GstVideoRegionOfInterestMetas. `info`: of the output. Returns false
// where the meta can be copied as it is.
bool copy_moved_meta(GstBuffer *output, const GstMeta *meta, GstBuffer *input, const GstVideoInfo &info);

}  // namespace cudaconv::gst
