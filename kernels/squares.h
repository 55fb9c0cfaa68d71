// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "fragments.h"
#include "launchers.h"

namespace cudaconv {

// Enqueues the pass at run.index with what make_fragments() says of it, `p`, where TensorKind::squares; false where the
// frame is not for these kernels. Throws Error{Device}.
bool enqueue_squares(const PassRun &run, DenseTensorParams p);

}  // namespace cudaconv
