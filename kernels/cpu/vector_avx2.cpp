// SPDX-License-Identifier: LGPL-2.1-or-later
#ifdef __x86_64__

#include <immintrin.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "cpu/vector.h"

// The target applies from here on. The includes are above it: code that other files share must not be compiled for it.
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#define CUDACONV_LEVEL "avx2"
#define CUDACONV_VECTOR 32
#include "cpu/vector_loops.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

namespace cudaconv {

const VectorLoops &vector_loops_avx2() {
  return kLoops;
}

}  // namespace cudaconv

#endif
