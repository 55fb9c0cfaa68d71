// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Maps GStreamer's video formats to the layouts of kernels/: which formats the element takes, how their samples are
// stored, and caps.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "imageview.h"

namespace cudaconv::gst {

constexpr char kFeatureCudaMemory[] = "memory:CUDAMemory";

// Fills `layout` for the visible pixels of a frame of `info`. Sizes of subsampled components are rounded up as in
// GStreamer, and memory_plane is GStreamer's plane index. `border_color` and `fill_color` (0xAARRGGBB, full-range RGB)
// are converted to the frame's colour space, range and depth. `interlaced`: the frame holds two fields; `info` may
// leave this open. Returns false, with `layout` undefined, for a format that a FrameLayout cannot express exactly.
bool describe_frame(const GstVideoInfo &info, guint32 border_color, FrameLayout *layout, bool interlaced = false,
                    guint32 fill_color = 0xff000000);

// Whether each buffer has one field of a frame: every second row (interlace-mode=alternate).
inline bool has_fields(const GstVideoInfo &info) {
  return GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_ALTERNATE;
}

// Whether frames have a row of chroma more than progressive ones, since each field has rows of its own. GStreamer's
// CUDA memory has no room for it, and its elements do not copy it.
bool loses_rows_in_cuda_memory(const GstVideoInfo &info);

// The format in a GstVideoMeta: as a number, since it may be none that GStreamer knows.
guint format_of(const GstVideoMeta &meta);

// The name of a format, or its number where GStreamer does not know it.
std::string format_text(guint format);

// Bytes from the start of a row to the end of its last visible sample.
gsize row_bytes(const PlaneLayout &plane);

// The caps of the pad templates: CUDA memory, where this build knows any, before system memory, each also with overlays
// beside the picture (meta:GstVideoOverlayComposition). Transfer full.
GstCaps *template_caps();

// Whether the features name CUDA memory: ANY does not.
bool is_cuda(const GstCapsFeatures *features);

// Whether the first structure of `caps` has the feature memory:CUDAMemory.
bool is_cuda_caps(const GstCaps *caps);

// Caps features with the other kind of memory; those that begin with "meta:" stay. Transfer full. nullptr where there
// are further features, which exist in one kind of memory only.
GstCapsFeatures *in_other_memory(const GstCapsFeatures *features);

// `caps`, and after them their structures with the other kind of memory. Transfer full.
GstCaps *with_either_memory(const GstCaps *caps);

// `caps` without interlace-mode=fields and multiview-mode=separated, whose frames are spread over several memories of a
// buffer: neither GStreamer nor the element maps these as one frame. Takes `caps` (transfer full), returns transfer
// full.
GstCaps *without_split_frames(GstCaps *caps);

// `caps` with each list of formats in the order of the pad templates. A source that makes all of them takes the first,
// and without this the first one may be the slowest. Takes `caps` (transfer full), returns transfer full.
GstCaps *with_common_formats_first(GstCaps *caps);

}  // namespace cudaconv::gst
