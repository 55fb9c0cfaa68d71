// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How kernels compare the samples of a u8x4, four bytes or two 16-bit samples: by maxima of three.
//
// Bytes are compared in pairs, as the upper bytes of 16-bit halves. The upper bytes decide, and the lower bytes do no
// harm. The odd bytes are the u8x4 itself; the even ones are its product with 256, which a unit computes that is
// otherwise idle:
//
//   u8x4  d c b a   ->   odd  d c b a, compares d and b;   even  c b a 0, compares c and a
//
// A u8x4 has two 16-bit samples as they are. A pixel of four 16-bit samples is two u8x4s.
#pragma once

#include "cuda/device/swar.cuh"

namespace cudaconv {

// How the samples of a u8x4 are compared: split() prepares a u8x4 for greatest(), the maximum of three, and join()
// restores one.
struct U8x4Order {
  static constexpr bool kWords = false;
  struct Split {
    uint32_t even, odd;
  };
  __device__ static Split split(uint32_t u8x4) { return {u8x4 << 8, u8x4}; }
  __device__ static uint32_t join(Split s) { return __byte_perm(s.even, s.odd, 0x7351); }
  __device__ static Split greatest(Split a, Split b, Split c) {
    return {PairOrder::vmax(a.even, b.even, c.even), PairOrder::vmax(a.odd, b.odd, c.odd)};
  }
};

struct U16x2Order {
  static constexpr bool kWords = true;
  using Split = uint32_t;
  __device__ static Split split(uint32_t u8x4) { return u8x4; }
  __device__ static uint32_t join(Split s) { return s; }
  __device__ static Split greatest(Split a, Split b, Split c) { return PairOrder::vmax(a, b, c); }
};

}  // namespace cudaconv
