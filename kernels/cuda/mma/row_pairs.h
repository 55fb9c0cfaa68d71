// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Small masks that are not separable on matrix instructions, see row_pairs.cuh.
#pragma once

#include "cuda/launchers.h"
#include "cuda/mma/coefficients.h"

namespace cudaconv {

// Enqueues the pass at run.index with what plan_mma() says of it; false where it is not for these kernels. Throws
// Error{Device}.
bool enqueue_row_pairs(const PassRun &run, Samples samples, RowPairMmaParams &p);

}  // namespace cudaconv
