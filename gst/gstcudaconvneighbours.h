// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which memory an element and the next ones keep their frames in.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

// Fixates the caps of the source pad: of `othercaps`, which downstream takes, those of the memory that costs least.
// Frames stay in the memory of `caps`, in which they come, but for a neighbour that names CUDA memory: where that can
// be reached from `device` they go there. `device` is that of the CUDA backend, -1 with that of the CPU; `keep_memory`:
// nothing is to be gained by another memory. Takes `othercaps`; transfer full.
GstCaps *fixate_output(GstPad *srcpad, GstCaps *caps, GstCaps *othercaps, int device, bool keep_memory);

// The same for caps that have to be of the memory of `caps` where they can. Takes `othercaps`; transfer full.
GstCaps *fixate_same_memory(GstCaps *caps, GstCaps *othercaps);

// Answers the question of fixate_output() in an element upstream: which device frames are filtered on, -1 for the CPU.
// False where the query is another one.
bool answer_device_query(GstQuery *query, int device);

// Whether downstream of the source pad, whose caps are set, takes buffers with a GstVideoCropMeta.
bool takes_crop_meta(GstPad *srcpad);

}  // namespace cudaconv::gst
