// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstddef>
#include <utility>

#include "vector.h"
#include "vector_levels.h"

#define CUDACONV_LEVEL "baseline"
#include "vector_loops.h"

namespace cudaconv {

const VectorLoops &vector_loops_baseline() {
  return kLoops;
}

}  // namespace cudaconv
