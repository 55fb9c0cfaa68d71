// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sums of products by the matrix instructions of tensor cores, mma.sync, on 8-bit integers, all of it exact.
//
// An instruction adds to 16 x 8 sums the product of a 16 x k and a k x 8 matrix of bytes, k 32 or 16. Of those a lane
// of the warp, g = lane / 4 and t = lane % 4, holds words of 4 bytes in a row (column) of k:
//
//   16 x k    a[0] row g, a[1] row g + 8, of k = 4t ... 4t + 3; a[2] and a[3] the same of k + 16
//   k x 8     b[0] column g of k = 4t ... 4t + 3; b[1] the same of k + 16
//   sums      c[0], c[1] row g, columns 2t and 2t + 1; c[2], c[3] the same of row g + 8
//
// 16 of k are a chunk here: two words of the one matrix and one of the other. Any two chunks make an instruction.
//
// A row of a mask becomes a Toeplitz matrix: 16 neighbouring pixels are its rows, the samples that their windows reach
// its columns, and the weight of each sample for each pixel its coefficients, zero outside the window. Rows g and g + 8
// stand for pixels 2g and 2g + 1, so that a lane's results lie side by side. A word of it is four neighbours in the
// line of coefficients, from byte (sample - pixel), with zeros before and behind the line.
#pragma once

#include "cuda/device/arch.cuh"
#include "cuda/launch.cuh"
#include "cuda/mma/coefficients.h"

namespace cudaconv {

// For GPUs without these instructions kernels are empty, to save compile time, and KernelSets keeps them from being
// launched.
constexpr bool kHasMma = kHas<Feature::IntegerMma>;

struct Sums {
  int32_t v[4];
};

__device__ inline Sums all(int32_t v) {
  return {{v, v, v, v}};
}

// The product of one chunk each, or of two, added to `c`; the bytes of either matrix are signed or not.
template <bool kSignedA, bool kSignedB, int kChunks>
__device__ inline Sums mma(const uint32_t (&a)[2 * kChunks], const uint32_t (&b)[kChunks], const Sums &c) {
  static_assert(!kSignedA || !kSignedB, "samples have no sign");
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

// sums + a * b over all chunks.
template <bool kSignedA, bool kSignedB, int kChunks>
__device__ inline Sums multiply(const uint32_t (&a)[kChunks][2], const uint32_t (&b)[kChunks], Sums sums) {
#pragma unroll
  for (int c = 0; c + 1 < kChunks; c += 2)
    sums = mma<kSignedA, kSignedB, 2>({a[c][0], a[c][1], a[c + 1][0], a[c + 1][1]}, {b[c], b[c + 1]}, sums);
  if constexpr (kChunks % 2) sums = mma<kSignedA, kSignedB, 1>(a[kChunks - 1], {b[kChunks - 1]}, sums);
  return sums;
}

// sums * 256 + more, modulo 2^32.
__device__ inline Sums times_256(const Sums &sums, int32_t more) {
  const auto one = [&](int32_t v) {
    return static_cast<int32_t>(static_cast<uint32_t>(v) * 256 + static_cast<uint32_t>(more));
  };
  return {{one(sums.v[0]), one(sums.v[1]), one(sums.v[2]), one(sums.v[3])}};
}

// `v`, which all lanes share, as a number that might differ from lane to lane: then x * 256 + v is a multiply-add.
// Known to be shared it would become a shift, and the units that shift have more to do than those that multiply.
__device__ inline int32_t in_register(int32_t v) {
  return __shfl_sync(0xffffffffu, v, 0);
}

// ---- Samples of two bytes ----
//
// Their low and their high bytes are planes of their own, and what the coefficients make of each adds up in the end:
// with 16-bit samples a pixel of n channels has 2n of these planes.

CUDACONV_HOST_DEVICE constexpr int sample_bytes(Samples samples) {
  return samples == Samples::U8 ? 1 : 2;
}

// Sums of products of byte i of one number and byte j of another, at i + j: `part[k]` counts 256^k.
template <int kParts>
struct PartialSums {
  Sums part[kParts];

  // Modulo 2^32, which is all of it where 32 bits hold the sum.
  __device__ Sums total() const {
    Sums sums = part[kParts - 1];
#pragma unroll
    for (int k = kParts - 2; k >= 0; k--)
#pragma unroll
      for (int i = 0; i < 4; i++)
        sums.v[i] = static_cast<int32_t>(static_cast<uint32_t>(part[k].v[i]) + (static_cast<uint32_t>(sums.v[i]) << 8));
    return sums;
  }

  // Sum i without its last 8 * (kParts - 1) bits.
  __device__ int32_t highest(int i) const {
    int32_t v = part[0].v[i];
#pragma unroll
    for (int k = 1; k < kParts; k++) v = (v >> 8) + part[k].v[i];
    return v;
  }
};

// ---- Lines of coefficients ----

// In shared memory a line has zeros before and behind it.
constexpr int kLinePadding = 32;  // bytes, on either side
CUDACONV_HOST_DEVICE constexpr int padded_words(int line_words) {
  return line_words + 2 * kLinePadding / 4;
}

// Word i of `line` with its padding.
__device__ inline uint32_t padded_word(const uint32_t *line, int line_words, int i) {
  i -= kLinePadding / 4;
  return i >= 0 && i < line_words ? line[i] : 0;
}

// Four bytes of a padded line from byte `first` of the line, which is at least -kLinePadding. Reads a word past them.
__device__ inline uint32_t four_bytes(const uint32_t *padded, int first) {
  first += kLinePadding;
  return __funnelshift_r(padded[first / 4], padded[first / 4 + 1], first % 4 * 8);
}

}  // namespace cudaconv
