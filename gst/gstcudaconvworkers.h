// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "backend.h"

namespace cudaconv::gst {

// How many threads one element's CPU backend uses at most on this machine; at least 1.
int worker_count();

// A ParallelFor on the calling thread and `threads` - 1 others of a GstSharedTaskPool, which lives as long as the
// result and its copies. An exception from a body is thrown to the caller, the first where there are several.
ParallelFor make_parallel_for(int threads);

}  // namespace cudaconv::gst
