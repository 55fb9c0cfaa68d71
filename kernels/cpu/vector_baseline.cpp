// SPDX-License-Identifier: LGPL-2.1-or-later
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstddef>
#include <type_traits>
#include <utility>

#include "cpu/vector.h"

#define CUDACONV_LEVEL "baseline"
#define CUDACONV_VECTOR 16
#include "cpu/vector_loops.h"

namespace cudaconv {

const VectorLoops &vector_loops_baseline() {
  return kLoops;
}

}  // namespace cudaconv
