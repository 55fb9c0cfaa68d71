// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Small masks without a row and a column on matrix instructions, see pairs.cuh.
#pragma once

#include "fragments.h"
#include "launchers.h"

namespace cudaconv {

// Enqueues the pass at run.index with what make_fragments() says of it; false where it is not for these kernels. Throws
// Error{Device}.
bool enqueue_pairs(const PassRun &run, Samples samples, PairTensorParams &p);

}  // namespace cudaconv
