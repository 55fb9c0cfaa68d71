// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sums of products by the matrix instructions, see device/integer_mma.cuh.
//
// A row of a mask becomes a Toeplitz matrix. Its rows are 16 neighbouring pixels, its columns the samples that their
// windows reach. Each element is the weight of a sample for a pixel, zero outside the window. Example, the mask 1 2 1:
//
//                 sample  0 1 2 3 4 ...
//       pixel 0           1 2 1 0 0
//       pixel 1           0 1 2 1 0
//       pixel 2           0 0 1 2 1
//
// Rows g and g + 8 stand for pixels 2g and 2g + 1, so that a lane's results are neighbours. A word of the matrix is
// four neighbours in the line of coefficients, from byte (sample - pixel) on, with zeros before and behind the line.
#pragma once

#include "cuda/device/integer_mma.cuh"
#include "cuda/device/mma/coefficients.h"

namespace cudaconv {

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

// Makes a uniform `v` look different from lane to lane: then x * 256 + v is a multiply-add. If the compiler knew that v
// is uniform, it would use a shift, and the shift units have more to do than the multipliers.
__device__ inline int32_t in_register(int32_t v) {
  return __shfl_sync(0xffffffffu, v, 0);
}

// ---- Samples of two bytes ----
//
// The low and the high bytes of 16-bit samples are planes of their own, whose sums are added in the end: a pixel of n
// channels has 2n such planes.

CUDACONV_HOST_DEVICE constexpr int sample_bytes(Samples samples) {
  return samples == Samples::U8 ? 1 : 2;
}

// Sums of the products of byte i of one number and byte j of another, kept by i + j: part[k] counts 256^k.
template <int kParts>
struct PartialSums {
  Sums part[kParts];

  // The sum modulo 2^32, which is exact where 32 bits hold it.
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

// Word i of a line with its padding.
__device__ inline uint32_t padded_word(const uint32_t *line, int line_words, int i) {
  i -= kLinePadding / 4;
  return i >= 0 && i < line_words ? line[i] : 0;
}

// Four bytes of a padded line from byte `first` of the line on, which is at least -kLinePadding. Also reads the word
// behind them.
__device__ inline uint32_t four_bytes(const uint32_t *padded, int first) {
  first += kLinePadding;
  return __funnelshift_r(padded[first / 4], padded[first / 4 + 1], first % 4 * 8);
}

}  // namespace cudaconv
