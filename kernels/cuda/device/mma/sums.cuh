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

// SumRounding::Shift64 for a sum `v` that includes its start.
__device__ inline int32_t shift_sum(const SumRounding &r, int64_t v) {
  if (r.absolute) v = (v < 0 ? -v : v) + (int64_t{1} << r.shift >> 1);
  return static_cast<int32_t>(v >> r.shift);
}

// The initial value of sums of 64 bits.
__device__ inline int64_t start_of(const SumRounding &r) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(r.start_high)) << 32 |
                              static_cast<uint32_t>(r.start));
}

// A lane's sums of products of samples and coefficients, over the digits of coefficients, see DenseMmaParams::digits.
template <int kSampleBytes>
struct DigitSums;

// Samples of one byte: the first digit counts most. Sums are right modulo 2^32.
template <>
struct DigitSums<1> {
  Sums part[1];

  __device__ void begin_digit(int digit, int32_t start) { part[0] = digit ? times_256(part[0], start) : all(start); }
  __device__ int32_t total(int i, int) const { return part[0].v[i]; }
};

// Samples of two bytes: the first digit counts least. Each digit begins with the sums so far, divided by 256, and the
// remainders are kept.
template <>
struct DigitSums<2> {
  Sums part[2];  // of the low bytes of samples, and of the high bytes, which count 256
  uint32_t remainder[4];

  __device__ void begin_digit(int digit, int32_t) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      remainder[i] = digit ? __funnelshift_r(remainder[i], static_cast<uint32_t>(part[0].v[i]), 8) : 0;
      part[0].v[i] = digit ? (part[0].v[i] >> 8) + part[1].v[i] : 0;
      part[1].v[i] = 0;
    }
  }
  // Sum i, exactly, without its initial value.
  __device__ int64_t total(int i, int digits) const {
    const int bits = 8 * (digits - 1);
    const int64_t high = int64_t{part[1].v[i]} * 256 + part[0].v[i];
    return static_cast<int64_t>(static_cast<uint64_t>(high) << bits | uint64_t{remainder[i]} >> (32 - bits));
  }
};

// Sharpening without the clamp; `sum` includes its start.
__device__ inline int32_t sharpen(const Sharpening &s, int32_t sum, uint32_t sample) {
  const int32_t more = static_cast<int32_t>(sample) * s.unit - (sum >> s.sum_shift);
  return static_cast<int32_t>(sample) + static_cast<int32_t>((int64_t{more} * s.amount + s.offset) >> 32);
}

// Rounds a lane's sums of all channels to 8-bit samples as they lie in memory: the pair of neighbouring pixels in
// column 2t, then the pair in 2t + 1. Several such sets are rounded together, so that none waits for another.
template <int kCount, int kChannels>
__device__ inline void round_pixels(const SumRounding &r, const Sums (&sums)[kCount][kChannels],
                                    uint32_t (&words)[kCount][kChannels]) {
  const auto pack = [&](auto round) {
#pragma unroll
    for (int i = 0; i < kCount * kChannels; i++) {
      const auto sample = [&](int n) {
        n += i % kChannels * 4;
        return round(sums[i / kChannels][n % kChannels].v[sum_of_pixel(n / kChannels)]);
      };
      words[i / kChannels][i % kChannels] = pack_clamped(sample(0), sample(1), sample(2), sample(3));
    }
  };
  if (r.mode == SumRounding::Divide) return pack([&](int32_t v) { return divide_sum(r, v); });
  pack([&](int32_t v) { return v >> r.shift; });
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

template <int kParts>
__device__ inline void round_sums(const MmaParams &p, const PartialSums<kParts> &sums, uint32_t (&pairs)[2]) {
  const SumRounding &r = p.epilogue;
  const auto pack = [&](auto round) { pack_samples(p, pairs, round); };
  if (r.mode == SumRounding::ShiftWide) return pack([&](int i) { return sums.highest(i) >> r.shift; });
  const Sums total = sums.total();
  if (r.mode == SumRounding::Divide) return pack([&](int i) { return divide_sum(r, total.v[i]); });
  pack([&](int i) { return total.v[i] >> r.shift; });
}

// Joins a lane's 16-bit samples, as round_sums() makes them, to pixels. Each half of `words` holds a pair of
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

// Rounds a lane's sums of all channels to two pairs of neighbouring pixels as they lie in memory, for kCount sets at
// once. sums_of(i, c) returns the sums of set i and channel c.
template <int kCount, int kChannels, typename Shape, typename SumsOf>
__device__ inline void make_pixels(const MmaParams &p, SumsOf sums_of,
                                   uint32_t (&words)[kCount][kChannels * Shape::kSampleBytes]) {
  if constexpr (Shape::kSamples == Samples::U8) {
    Sums total[kCount][kChannels];
    each<kCount, kChannels>([&](int i, int c) { total[i][c] = sums_of(i, c).total(); });
    round_pixels(p.epilogue, total, words);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      uint32_t pairs[kChannels][2];
#pragma unroll
      for (int c = 0; c < kChannels; c++) round_sums(p, sums_of(i, c), pairs[c]);
      join_channels<kChannels>(pairs, words[i]);
    }
  }
}

// Rounds a lane's sums of all channels to pixels as they lie in memory, the pair in column 2t and then the pair in 2t +
// 1. A sample is the second byte of scaled(sum), clamped to 16 bits.
template <int kChannels, typename Scaled>
__device__ inline void pack_sums(const PartialSums<1> (&sums)[kChannels], uint32_t (&words)[kChannels], Scaled scaled) {
  const auto sample = [&](int n) { return scaled(sums[n % kChannels].part[0].v[sum_of_pixel(n / kChannels)]); };
#pragma unroll
  for (int i = 0; i < kChannels; i++)
    words[i] = __byte_perm(pack_clamped(sample(4 * i), sample(4 * i + 1)),
                           pack_clamped(sample(4 * i + 2), sample(4 * i + 3)), 0x7531);
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

  // Joins a lane's results to pixels, like join_channels() and cudaconv::pack_sums().
  template <typename Result, int kWords>
  __device__ void join(const Result (&results)[kCount], uint32_t (&words)[kWords]) const {
    join_channels<kChannels>(results, words);
  }
  template <typename Scaled>
  __device__ void pack_sums(const PartialSums<1> (&sums)[kCount], uint32_t (&words)[kChannels], Scaled scaled) const {
    cudaconv::pack_sums(sums, words, scaled);
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
  template <typename Scaled>
  __device__ void pack_sums(const PartialSums<1> (&sums)[3], uint32_t (&words)[4], Scaled scaled) const {
    const auto sample = [&](int i, int c) { return scaled(sums[c].part[0].v[sum_of_pixel(i)]); };
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const uint32_t third = pack_clamped(sample(i, 2), sample(i + 1, 2));
#pragma unroll
      for (int k = 0; k < 2; k++)
        words[i + k] = __byte_perm(pack_clamped(sample(i + k, 0), sample(i + k, 1)), third, selector(1, 3, 5 + 2 * k));
    }
  }

 private:
  // A selector for __byte_perm() from the selectors of the three channels' bytes.
  __device__ uint32_t selector(uint32_t first, uint32_t second, uint32_t third) const {
    return (first | second << 4 | third << 8) << 4 * first_;
  }

  int first_;  // channel
};

// Scales a sum for pack_sums(), see DenseMmaParams::factor.
__device__ inline int32_t scale_by_factor(const DenseMmaParams &p, int32_t v) {
  return __mulhi(v * p.factor, p.magic);
}

}  // namespace cudaconv
