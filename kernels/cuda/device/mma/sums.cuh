// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Converts the sums of the matrix instructions to pixels, with the same bytes as round_to_sample() of plan/rounding.h.
//
// A lane (g, t) has four sums of each channel, of a pair of neighbouring pixels in each of two columns. The pair is
// rows g and g + 8 of the product. A column is a row of results, a block of 16 pixels, or a square, as the kernel says:
//
//    v[0]  first pixel, column 2t        v[1]  first pixel, column 2t + 1
//    v[2]  second pixel, column 2t       v[3]  second pixel, column 2t + 1
//
// Results are in the order of memory: the pair in column 2t, then the pair in column 2t + 1. Example, RGB: a pair has
// the bytes R G B R G B. The lane's first word has R, G and B of the first pixel, and R of the second.
#pragma once

#include "cuda/device/mma/pixels.cuh"

namespace cudaconv {

// The index of the sum of pixel i of a lane's four, in the order of memory.
__device__ constexpr int sum_of_pixel(int i) {
  return i % 2 * 2 + i / 2;
}

// SumRounding::Divide for a sum `v` that includes its start.
__device__ inline int32_t divide_sum(const SumRounding &r, int32_t v) {
  if (r.absolute) v = abs(v);
  v = min(max(v + r.half, 0), r.limit);
  return static_cast<int32_t>(high_product(static_cast<uint32_t>(v), r.magic) >> r.shift);
}

// Packs two values as 16-bit samples, each clamped to 0 ... 65535.
__device__ inline uint32_t pack_clamped(int32_t low, int32_t high) {
#ifdef __CUDACC__
  uint32_t word;
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(word) : "r"(high), "r"(low));
  return word;
#else
  const auto clamped = [](int32_t v) { return static_cast<uint32_t>(min(max(v, 0), 65535)); };
  return clamped(low) | clamped(high) << 16;
#endif
}

// Rounds sums to 16-bit samples as they lie in memory: pairs[0] has a lane's two pixels in column 2t, pairs[1] those in
// 2t + 1.
template <typename Round>
__device__ inline void pack_samples(const MmaParams &p, uint32_t (&pairs)[2], Round round) {
#pragma unroll
  for (int i = 0; i < 2; i++)
    pairs[i] = __vminu2(pack_clamped(round(i), round(i + 2)), p.sample_mask) << p.sample_shift;
}

// Joins a lane's 16-bit samples, as pack_samples() makes them, to pixels. Each half of `words` holds a pair of
// neighbouring pixels as they lie in memory. pixels.cuh has the same for bytes.
template <int kChannels>
__device__ inline void join_channels(const uint32_t (&pairs)[kChannels][2], uint32_t (&words)[2 * kChannels]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    uint32_t *to = words + i * kChannels;
    if constexpr (kChannels == 1) to[0] = pairs[0][i];
#pragma unroll
    for (int c = 0; c + 1 < kChannels; c += 2) {
      to[c / 2] = __byte_perm(pairs[c][i], pairs[c + 1][i], 0x5410);
      to[(c + kChannels) / 2] = __byte_perm(pairs[c][i], pairs[c + 1][i], 0x7632);
    }
  }
}

// The channels of a plane that are split off and summed: all of them.
template <int kPixelChannels, int kSummed = kPixelChannels>
struct SummedChannels {
  static constexpr int kChannels = kPixelChannels, kCount = kSummed;
  static_assert(kChannels == kCount, "all of them");
  __device__ explicit SummedChannels(const PartParams &) {}

  // The channel of a pixel that is number i of the summed ones.
  __device__ int channel(int i) const { return i; }

  // Splits four pixels, as they lie in memory, into one word for each summed byte.
  template <Samples kSamples, int kBytes>
  __device__ void take_apart(const MmaParams &p, uint32_t (&words)[kBytes], uint32_t (&bytes)[kBytes]) const {
    cudaconv::take_apart<kSamples>(p, words, bytes);
  }

  // Joins a lane's results to pixels, like join_channels().
  template <typename Result, int kWords>
  __device__ void join(const Result (&results)[kCount], uint32_t (&words)[kWords]) const {
    join_channels<kChannels>(results, words);
  }
};

// Three of the four channels of 8-bit pixels, see sums_three(). The other channel's byte of a result is undefined.
template <>
struct SummedChannels<4, 3> {
  static constexpr int kChannels = 4, kCount = 3;

  __device__ explicit SummedChannels(const PartParams &part) : first_(first_summed(part)) {}

  __device__ int channel(int i) const { return first_ + i; }

  template <Samples = Samples::U8>
  __device__ void take_apart(const MmaParams &, uint32_t (&words)[4], uint32_t (&bytes)[3]) const {
    deinterleave_three(words, first_, bytes);
  }

  __device__ void join(const uint32_t (&results)[3], uint32_t (&words)[4]) const {
    const uint32_t pairs[2] = {__byte_perm(results[0], results[1], 0x5140),
                               __byte_perm(results[0], results[1], 0x7362)};
#pragma unroll
    for (int i = 0; i < 4; i++)
      words[i] = __byte_perm(pairs[i / 2], results[2], selector(i % 2 * 2, i % 2 * 2 + 1, 4 + i));
  }
  // A selector for __byte_perm() from the selectors of the three channels' bytes.
  __device__ uint32_t selector(uint32_t first, uint32_t second, uint32_t third) const {
    return (first | second << 4 | third << 8) << 4 * first_;
  }

 private:
  int first_;  // channel
};

}  // namespace cudaconv
