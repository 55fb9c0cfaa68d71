// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Queries to the neighbours during negotiation: the kind of memory for the output, and whether downstream takes crop
// rectangles.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

// Fixates the caps of the source pad, that is, chooses the memory. Downstream takes `othercaps`; the input has `caps`.
// If the next cudaconv filters on `device` too, frames go to CUDA memory; if it filters elsewhere, to system memory.
// Without a next cudaconv, they go to CUDA memory if downstream names it in its caps. Otherwise frames keep the input's
// memory. They also keep it if `device` is -1, the CPU, if `keep_memory` is set, or if CUDA memory would lose rows of
// them. Takes `othercaps` (transfer full), returns transfer full.
GstCaps *fixate_output(GstPad *srcpad, GstCaps *caps, GstCaps *othercaps, int device, bool keep_memory);

// Fixates `othercaps` to the memory of `caps` where they have it. Takes `othercaps` (transfer full), returns transfer
// full.
GstCaps *fixate_same_memory(GstCaps *caps, GstCaps *othercaps);

// Answers the query of fixate_output() of a cudaconv upstream: this element filters on `device`, -1 for the CPU.
// Returns false for any other query.
bool answer_device_query(GstQuery *query, int device);

// Asks, by an ALLOCATION query with the source pad's current caps, whether downstream takes GstVideoCropMeta.
bool takes_crop_meta(GstPad *srcpad);

}  // namespace cudaconv::gst
