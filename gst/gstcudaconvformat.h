// SPDX-License-Identifier: LGPL-2.1-or-later
//
// GStreamer's video formats in the words of kernels/: which ones there are, and how their samples lie in memory.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "imageview.h"

namespace cudaconv::gst {

constexpr char kFeatureCudaMemory[] = "memory:CUDAMemory";

// Fills `layout` for a frame of `info`: visible pixels only, sizes of subsampled components rounded up as GStreamer
// does, memory_plane counting as GStreamer's planes do, border values from `border_color` (0xAARRGGBB, full-range RGB)
// in the frame's own colour space, range and depth. Leaves `interlaced` false. False for a format that a FrameLayout
// cannot express exactly; `layout` is then undefined.
bool describe_frame(const GstVideoInfo &info, guint32 border_color, FrameLayout *layout);

// The format that a meta has: as a number, since it may be none that GStreamer knows.
guint format_of(const GstVideoMeta &meta);

// The name of a format, or its number where GStreamer does not know it.
std::string format_text(guint format);

// Bytes from the start of a row to the end of its last visible sample.
gsize row_bytes(const PlaneLayout &plane);

// The caps of the pad templates: CUDA memory, where this build knows any, before system memory, each also with overlays
// beside the picture (meta:GstVideoOverlayComposition). Transfer full.
GstCaps *template_caps();

// Whether the first structure names CUDA memory.
bool is_cuda_caps(const GstCaps *caps);

// `caps` followed by the same with the memory exchanged; metas among the features stay. Transfer full.
GstCaps *with_either_memory(const GstCaps *caps);

// `caps` without frames that are spread over several memories of a buffer, which GStreamer maps as one frame no more
// than the element does: interlace-mode=fields and multiview-mode=separated. Transfer full, in and out.
GstCaps *without_split_frames(GstCaps *caps);

// `caps` with each list of formats in the order of the pad templates: a source that makes all of them takes the first,
// and its own first one may be the slowest. Transfer full, in and out.
GstCaps *with_common_formats_first(GstCaps *caps);

}  // namespace cudaconv::gst
