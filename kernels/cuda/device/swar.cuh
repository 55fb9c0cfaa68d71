// SPDX-License-Identifier: LGPL-2.1-or-later
//
// SIMD within a register: operations on the 16-bit halves of a 32-bit register at once, as floats and by comparisons.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace cudaconv {

// Two integers in the halves of a register, as 16-bit floats. Apart from the sign, an integer from -2048 to 2048 has
// the bits of a (denormal or normal) float that is 2^24 times smaller. So additions and multiplications are exact. The
// float unit computes them in parallel to the integer unit. Larger results are rounded, monotonically.
struct HalfPair {
  uint32_t bits;
};
constexpr uint32_t kHalfMinus2048 = 0x88008800u;

__device__ inline __half2 as_half2(uint32_t bits) {
  __half2 h;
  memcpy(&h, &bits, sizeof h);
  return h;
}
__device__ inline HalfPair as_pair(__half2 h) {
  HalfPair p;
  memcpy(&p.bits, &h, sizeof h);
  return p;
}
__device__ inline HalfPair operator+(HalfPair a, HalfPair b) {
  return as_pair(__hadd2(as_half2(a.bits), as_half2(b.bits)));
}
__device__ inline HalfPair operator-(HalfPair a, HalfPair b) {
  return as_pair(__hsub2(as_half2(a.bits), as_half2(b.bits)));
}
// a * factor + b, rounded once. `factor` is a pair of ordinary 16-bit floats.
__device__ inline HalfPair multiply_add(HalfPair a, uint32_t factor, HalfPair b) {
  return as_pair(__hfma2(as_half2(a.bits), as_half2(factor), as_half2(b.bits)));
}
// max(a - b, 0), one instruction with Feature::HalfExcess.
__device__ inline HalfPair excess(HalfPair a, HalfPair b) {
  return as_pair(__hfma2_relu(as_half2(a.bits), as_half2(0x3c003c00u), __hneg2(as_half2(b.bits))));
}
__device__ inline HalfPair absolute(HalfPair a) {
  return as_pair(__habs2(as_half2(a.bits)));
}
__device__ inline HalfPair vmin(HalfPair a, HalfPair b) {
  return as_pair(__hmin2(as_half2(a.bits), as_half2(b.bits)));
}
// The integer in the low half, divided by 2^24.
__device__ inline float low_float(HalfPair a) {
  return __low2float(as_half2(a.bits));
}
__device__ inline float high_float(HalfPair a) {
  return __high2float(as_half2(a.bits));
}
// The inverse of low_float() and high_float(), rounded to integers.
__device__ inline HalfPair round_to_pair(float low, float high) {
  return as_pair(__floats2half2_rn(low, high));
}

// Minima and maxima of two samples in a register.
struct PairOrder {
  __device__ static uint32_t vmax(uint32_t a, uint32_t b) { return __vmaxu2(a, b); }
  __device__ static uint32_t vmin(uint32_t a, uint32_t b) { return __vminu2(a, b); }
  __device__ static uint32_t vmax(uint32_t a, uint32_t b, uint32_t c) { return __vimax3_u16x2(a, b, c); }
  __device__ static uint32_t vmin(uint32_t a, uint32_t b, uint32_t c) { return __vimin3_u16x2(a, b, c); }
};

}  // namespace cudaconv
