// SPDX-License-Identifier: LGPL-2.1-or-later

// Without vector registers GCC -O3 unrolls the loops over blocks into scalar code, which takes minutes to compile.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SSE2__) && !defined(__ARM_NEON) && !defined(__ALTIVEC__) && \
    !defined(__S390_VX__) && !defined(__riscv_vector) && !defined(__loongarch_sx) && !defined(__mips_msa)
#pragma GCC optimize("O2")
#endif

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#ifdef __AARCH64EL__
#include <arm_neon.h>
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
