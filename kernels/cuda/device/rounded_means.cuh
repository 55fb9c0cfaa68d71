// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Quotients of sums, by estimates in floating point.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/words.cuh"
#include "plan/weighted.h"

namespace cudaconv {

// 1 / v, with a relative error below 2^-22, in one instruction.
__device__ inline float approximate_inverse(float v) {
#ifdef __CUDA_ARCH__
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
  return inverse;
#else
  return 1 / v;
#endif
}

// floor(n / d + 1/2), as the first bytes of a word; others are 0. Quotients are at most 255. Sum: uint64_t, or float
// for integers of at most 24 bits.
template <typename Sum, int kCount>
__device__ inline uint32_t rounded_means(const Sum (&n)[kCount], const Sum (&d)[kCount]) {
  constexpr float kInteger = 0x1.8p23f;  // floats of this size are integers, in their lowest bits
  uint32_t byte[4] = {};
  bool close = false;  // to a half, so that an estimate, less than 2^-13 off, may round to the other side
#pragma unroll
  for (int b = 0; b < kCount; b++) {
    const float dividend = to_float(n[b]), inverse = approximate_inverse(to_float(d[b]));
    const float rounded = fmaf(dividend, inverse, kInteger);
    byte[b] = __float_as_uint(rounded);
    close |= fabsf(fmaf(dividend, inverse, kInteger - rounded)) > 0.5f - 0x1p-13f;
  }
  if (close)
    for (int b = 0; b < kCount; b++) {
      const auto of = static_cast<uint64_t>(d[b]);
      byte[b] = clamped_quotient<uint64_t>(static_cast<uint64_t>(n[b]) + of / 2, of, inverse_of(of), 255);
    }
  return pick_bytes(0, byte[0], byte[1], byte[2], byte[3]);
}

}  // namespace cudaconv
