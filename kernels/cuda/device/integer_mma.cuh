// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The matrix instructions of tensor cores, mma.sync, on 8-bit integers; all results are exact.
//
// An instruction adds the product of a 16 x k and a k x 8 matrix of bytes to 16 x 8 sums; k is 32 or 16. A lane of the
// warp, with g = lane / 4 and t = lane % 4, holds words of four bytes that are consecutive in k:
//
//   16 x k    a[0] row g, a[1] row g + 8, of k = 4t ... 4t + 3; a[2] and a[3] the same of k + 16
//   k x 8     b[0] column g of k = 4t ... 4t + 3; b[1] the same of k + 16
//   sums      c[0], c[1] row g, columns 2t and 2t + 1; c[2], c[3] the same of row g + 8
//
// Here a chunk is 16 of k: two words of the one matrix and one of the other. Any two chunks make an instruction.
#pragma once

#include "cuda/device/arch.cuh"
#include "cuda/launch.cuh"

namespace cudaconv {

// On GPUs without these instructions the kernels are empty, to save compile time, and KernelSets keeps them from being
// launched.
constexpr bool kHasMma = kHas<Feature::IntegerMma>;

struct Sums {
  int32_t v[4];
};

__device__ inline Sums all(int32_t v) {
  return {{v, v, v, v}};
}

// Adds the product of one or two chunks of each matrix to `c`; the bytes of one matrix may be signed.
template <bool kSignedA, bool kSignedB, int kChunks>
__device__ inline Sums mma(const uint32_t (&a)[2 * kChunks], const uint32_t (&b)[kChunks], const Sums &c) {
  static_assert(!kSignedA || !kSignedB, "no kernel has both");
  Sums d = c;
#ifndef __CUDACC__
  standin::integer_mma(16 * kChunks, a, kSignedA, b, kSignedB, c.v, d.v);
#else
#define CUDACONV_MMA(types)                                                                                        \
  if constexpr (kChunks == 2)                                                                                      \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." types                                                             \
        ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                                 \
        : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                                                   \
        : "r"(a[0]), "r"(a[1]), "r"(a[2 * kChunks - 2]), "r"(a[2 * kChunks - 1]), "r"(b[0]), "r"(b[kChunks - 1]),  \
          "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]));                                                     \
  else                                                                                                             \
    asm("mma.sync.aligned.m16n8k16.row.col.s32." types ".s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" \
        : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                                                   \
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]))
  if constexpr (!kHasMma) {
  } else if constexpr (kSignedA) {
    CUDACONV_MMA("s8.u8");
  } else if constexpr (kSignedB) {
    CUDACONV_MMA("u8.s8");
  } else {
    CUDACONV_MMA("u8.u8");
  }
#undef CUDACONV_MMA
#endif
  return d;
}

}  // namespace cudaconv
