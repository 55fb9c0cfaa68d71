// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Questions to the neighbours when caps are negotiated: which kind of memory frames leave in, and whether downstream
// takes crop rectangles.
#pragma once

#include <gst/gst.h>

#include <string>

namespace cudaconv::gst {

// Fixates the caps of the source pad, whose choice is that of the memory: `othercaps` are those that downstream takes,
// `caps` those of the input. Frames go to CUDA memory where the next cudaconv filters on `device` too, to system memory
// where it filters elsewhere, and, without a next cudaconv, to CUDA memory where downstream names it in its caps. Else
// they stay in the memory that they come in, and always do where `device` is -1, the CPU backend, or where
// `keep_memory` says that another memory gains nothing. Takes `othercaps` (transfer full), returns transfer full.
GstCaps *fixate_output(GstPad *srcpad, GstCaps *caps, GstCaps *othercaps, int device, bool keep_memory);

// Fixates `othercaps` to the memory of `caps` where they have it. Takes `othercaps` (transfer full), returns transfer
// full.
GstCaps *fixate_same_memory(GstCaps *caps, GstCaps *othercaps);

// Answers the query of fixate_output() of a cudaconv upstream: `device` is that on which this element filters, -1 for
// the CPU. Returns false for any other query.
bool answer_device_query(GstQuery *query, int device);

// Asks, by an ALLOCATION query with the source pad's current caps, whether downstream takes GstVideoCropMeta.
bool takes_crop_meta(GstPad *srcpad);

// The name of the element upstream that changes frames of `format` to the one that arrives here; empty where there is
// none.
std::string find_converter(GstPad *sinkpad, guint format);

}  // namespace cudaconv::gst
