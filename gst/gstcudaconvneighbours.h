// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Queries to the neighbours during negotiation: the kind of memory for the output, and whether downstream takes crop
// rectangles.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

// Fixates `othercaps`, that is, chooses the memory; the other pad has `caps`. Where `device` is -1, frames keep the
// memory of `caps` if `othercaps` have it. Otherwise the caps are for `srcpad`: if the next cudaconv filters on
// `device` too, frames go to CUDA memory; if it filters elsewhere, to system memory. Without a next cudaconv, they go
// to CUDA memory if downstream names it in its caps. They keep the input's memory if downstream does not, or if CUDA
// memory would lose rows of them. Takes `othercaps` (transfer full), returns transfer full.
GstCaps *fixate_memory(GstPad *srcpad, GstCaps *caps, GstCaps *othercaps, int device);

// Answers the query of fixate_memory() of a cudaconv upstream: this element filters on `device`, -1 for the CPU.
// Returns false for any other query.
bool answer_device_query(GstQuery *query, int device);

// Answers a LATENCY query: what upstream answers, and the times that the element adds. Returns false where upstream
// does not answer. `upstream`: the latency of a live upstream, else GST_CLOCK_TIME_NONE.
bool answer_latency_query(GstPad *sinkpad, GstQuery *query, GstClockTime add_min, GstClockTime add_max,
                          GstClockTime *upstream = nullptr);

// Asks, by an ALLOCATION query with the source pad's current caps, whether downstream takes this meta.
bool takes_meta(GstPad *srcpad, GType api);

// Whether upstream may be told that the element takes GstVideoCropMeta: where the element that would attach it asks,
// such as videocrop or a decoder. Elements that work in place hand the answer on to those before them, and read whole
// frames as if these were the rectangle: then it must not be told.
bool may_send_crop_meta(GstPad *sinkpad);

}  // namespace cudaconv::gst
