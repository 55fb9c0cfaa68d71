// SPDX-License-Identifier: LGPL-2.1-or-later
//
// 32-bit words of samples in registers: unrolled loops, loads, stores, and permutations of their bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace cudaconv {

constexpr int kVectorBytes = 16;  // the most that a thread loads or stores at once

// The number of pieces of a row that lie side by side, so that together they are words of four bytes.
__host__ __device__ constexpr int subtiles(int pixel_bytes) {
  return pixel_bytes == 1 ? 4 : pixel_bytes == 2 ? 2 : 1;
}

// Calls function(i, j, ...) for all i below kCount, j below the next count, and so on: nested loops, all unrolled.
template <int kCount, int... kCounts, typename Function>
__device__ inline void each(Function function) {
#pragma unroll
  for (int i = 0; i < kCount; i++) {
    if constexpr (sizeof...(kCounts) > 0)
      each<kCounts...>([&](auto... others) { function(i, others...); });
    else
      function(i);
  }
}

// Loads or stores kWords words, at an address that is a multiple of their size, or of 16 bytes if there are more than
// four words. kReadOnly: no thread writes there while the kernel runs.
template <int kWords, bool kReadOnly = false>
__device__ inline void load_words(const void *from, uint32_t *to) {
  const auto load = [](const auto *at) { return kReadOnly ? __ldg(at) : *at; };
  if constexpr (kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kWords / 4; i++) {
      const uint4 v = load(static_cast<const uint4 *>(from) + i);
      to[4 * i] = v.x;
      to[4 * i + 1] = v.y;
      to[4 * i + 2] = v.z;
      to[4 * i + 3] = v.w;
    }
  } else if constexpr (kWords == 2) {
    const uint2 v = load(static_cast<const uint2 *>(from));
    to[0] = v.x;
    to[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i++) to[i] = load(static_cast<const uint32_t *>(from) + i);
  }
}
template <int kWords>
__device__ inline void read_words(const void *from, uint32_t *to) {
  load_words<kWords, true>(from, to);
}

template <int kWords>
__device__ inline void store_words(void *to, const uint32_t *from) {
  if constexpr (kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kWords / 4; i++)
      static_cast<uint4 *>(to)[i] = make_uint4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
  } else if constexpr (kWords == 2) {
    *static_cast<uint2 *>(to) = make_uint2(from[0], from[1]);
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i++) static_cast<uint32_t *>(to)[i] = from[i];
  }
}

// load_words() or store_words() for the first `bytes` bytes of kWords words, all or fewer. Words to load into are 0
// before.
template <int kWords>
__device__ inline void load_bytes(const uint8_t *from, int bytes, uint32_t *to) {
  if (bytes >= 4 * kWords) return load_words<kWords>(from, to);
#pragma unroll
  for (int i = 0; i < 4 * kWords; i++)
    if (i < bytes) to[i / 4] |= static_cast<uint32_t>(from[i]) << 8 * (i % 4);
}
template <int kWords>
__device__ inline void store_bytes(uint8_t *to, int bytes, const uint32_t *from) {
  if (bytes >= 4 * kWords) return store_words<kWords>(to, from);
#pragma unroll
  for (int i = 0; i < 4 * kWords; i++)
    if (i < bytes) to[i] = static_cast<uint8_t>(from[i / 4] >> 8 * (i % 4));
}

// Splits a vector into its four words. With load_words<4>() instead, nvcc 13 spills in separable9.cuh, and makes up to
// 2 % more instructions of strip_io.cuh.
__device__ inline void split_words(uint4 v, uint32_t (&row)[4]) {
  row[0] = v.x;
  row[1] = v.y;
  row[2] = v.z;
  row[3] = v.w;
}

// Transposes four words of four bytes as a 4x4 matrix.
__device__ inline void transpose(const uint32_t (&in)[4], uint32_t (&out)[4]) {
  const uint32_t t0 = __byte_perm(in[0], in[1], 0x5140), t1 = __byte_perm(in[2], in[3], 0x5140);
  const uint32_t t2 = __byte_perm(in[0], in[1], 0x7362), t3 = __byte_perm(in[2], in[3], 0x7362);
  out[0] = __byte_perm(t0, t1, 0x5410);
  out[1] = __byte_perm(t0, t1, 0x7632);
  out[2] = __byte_perm(t2, t3, 0x5410);
  out[3] = __byte_perm(t2, t3, 0x7632);
}

// Packs byte n of four values, the first one's lowest.
__device__ inline uint32_t pick_bytes(int n, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  const uint32_t selector = static_cast<uint32_t>(n * 0x11 + 0x40);
  return __byte_perm(__byte_perm(a, b, selector), __byte_perm(c, d, selector), 0x5410);
}

// Packs four values into a word, each clamped to 0 ... 255, the first in the lowest byte.
__device__ inline uint32_t pack_clamped(int32_t a, int32_t b, int32_t c, int32_t d) {
#ifdef __CUDACC__
  uint32_t high, word;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(b), "r"(a), "r"(high));
  return word;
#else
  const auto clamped = [](int32_t v) { return static_cast<uint32_t>(min(max(v, 0), 255)); };
  return clamped(a) | clamped(b) << 8 | clamped(c) << 16 | clamped(d) << 24;
#endif
}

}  // namespace cudaconv
