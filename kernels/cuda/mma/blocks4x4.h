// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "cuda/launchers.h"
#include "cuda/mma/coefficients.h"

namespace cudaconv {

// Enqueues the pass at run.index with what plan_mma() says of it, `p`, where MmaKind::blocks4x4; false where the
// frame is not for these kernels. Throws Error{Device}.
bool enqueue_blocks4x4(const PassRun &run, DenseMmaParams p);

}  // namespace cudaconv
