// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The threads that backends run their loops on.
#pragma once

#include "backend.h"

namespace cudaconv::gst {

// The most threads that one element's CPU backend uses on this machine; at least 1.
int worker_count();

// Makes a ParallelFor on the calling thread and up to `threads` - 1 others, which live as long as the result and its
// copies. Any number of threads may call it at once. An exception from a body is rethrown to the caller, the first
// where there are several.
ParallelFor make_parallel_for(int threads);

}  // namespace cudaconv::gst
