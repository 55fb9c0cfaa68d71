// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The operation of sliding.cuh for means weighted by alpha, of pixels of four bytes, by separable masks up to 5x5. It
// makes the same bytes as weighted_samples_kernel() of weighted/weighted.cuh.
//
// Sums stay below 2^24, so floats hold them exactly. Floats are added and multiplied twice as fast as integers. A lane
// multiplies its pixels of five rows by their alpha, adds up columns, and fetches the columns beside them.
#pragma once

#include "cuda/device/rounded_means.cuh"
#include "cuda/sliding/operation.cuh"
#include "cuda/sliding/strip_io.cuh"

namespace cudaconv::sliding {

// A word with the bytes b, 0, 0 and 0x4b, b the lowest, is the float 2^23 + b.
constexpr uint32_t kFloatOfByte = 0x4b000000;
constexpr float kTwo23 = 0x1p23f;

// A little less than 1 / d: by a part of 2^-22 to 2^-20 of it.
__device__ inline float below_inverse(float d) {
  return approximate_inverse(d) * (1 - 0x1p-21f);
}

// floor(n / d + 1/2), where that is at most 255, in the low byte of a word. n and d are integers, n + d / 2 is below
// 2^24. The estimate n * below_inverse(d) is at most 255 * 2^-20 too small and never too large. So its nearest integer
// is right, or one too small if the remainder is half of d or more. Floats take half the time of integers.
__device__ inline uint32_t rounded_quotient(float n, float d, float below) {
  const float nearest = fmaf(n, below, kTwo23);
  const float remainder = fmaf(kTwo23 - nearest, d, n);
  return __float_as_uint(nearest + __saturatef(fmaf(remainder, 2, 1 - d)));
}

struct SlidingWeightedMean : SlidingOperation {
  static constexpr int kRadius = kMeanTaps / 2, kStripRows = 4, kMinBlocks = 4;
  static constexpr WordSamples kWords = WordSamples::None;
  static constexpr bool kRowByRow = true, kSeesStrip = true, kPlanes = false;

  template <typename Swar>
  struct State {
    static constexpr int kRows = kStripRows + 2 * kRadius, kPixels = 4, kAlpha = 3;
    using Line = float[kPixels];

    // Adds up the row of columns around each pixel.
    __device__ static void add_row(const WeightedMeanParams &k, const Line &column, Line &sum) {
      float line[kPixels + 2 * kRadius];
#pragma unroll
      for (int i = 0; i < kPixels; i++) line[kRadius + i] = column[i];
#pragma unroll
      for (int i = 0; i < kRadius; i++) {
        line[i] = __shfl_up_sync(0xffffffffu, column[kPixels - kRadius + i], 1);
        line[kRadius + kPixels + i] = __shfl_down_sync(0xffffffffu, column[i], 1);
      }
#pragma unroll
      for (int i = 0; i < kPixels; i++) {
        sum[i] = line[i] * k.row[0];
#pragma unroll
        for (int t = 1; t < kMeanTaps; t++) sum[i] = fmaf(line[i + t], k.row[t], sum[i]);
      }
    }

    // Makes the means of the windows of rows j - 4 to j, without alpha unless `weighted`, and the sums of alpha.
    __device__ static void make_means(const WeightedMeanParams &k, const uint32_t (&strip)[kRows][4], int j,
                                      bool weighted, Line &weight, uint32_t (&out)[4]) {
      Line column[4] = {};  // of each channel, alpha last
      each<kMeanTaps, kPixels>([&](int t, int i) {
        const auto channel = [&](int c) {
          return __uint_as_float(__byte_perm(strip[j - 2 * kRadius + t][i], kFloatOfByte, k.unpack[c]));
        };
        const float alpha = channel(kAlpha) - kTwo23, factor = (weighted ? alpha : 1) * k.column[t];
        column[kAlpha][i] = fmaf(alpha, k.column[t], column[kAlpha][i]);
#pragma unroll
        for (int c = 0; c < kAlpha; c++) column[c][i] += fmaf(channel(c), factor, -kTwo23 * factor);
      });
      add_row(k, column[kAlpha], weight);
      uint32_t result[4][kPixels];
      each<4>([&](int c) {
        Line sum;
        if (c < kAlpha) add_row(k, column[c], sum);
#pragma unroll
        for (int i = 0; i < kPixels; i++) {
          const float d = weighted && c < kAlpha ? weight[i] : k.all;
          result[c][i] = rounded_quotient(c < kAlpha ? sum[i] : weight[i], d, below_inverse(d));
        }
      });
#pragma unroll
      for (int i = 0; i < kPixels; i++)
        out[i] = __byte_perm(__byte_perm(result[0][i], result[1][i], 0x0040),
                             __byte_perm(result[2][i], result[3][i], 0x0040), k.pack);
    }

    __device__ void enter(const SlidingParams &p, const PartParams &, LaneStrip, int j,
                          const uint32_t (&strip)[kRows][4], uint32_t (&out)[4]) {
      if (j < 2 * kRadius) return;
      Line weight, all;
      make_means(p.mean, strip, j, true, weight, out);
      const bool none = weight[0] == 0 || weight[1] == 0 || weight[2] == 0 || weight[3] == 0;
      // If alpha is 0 in a whole window, its colours are means without alpha.
      if (!__any_sync(0xffffffffu, none)) return;
      uint32_t plain[4];
      make_means(p.mean, strip, j, false, all, plain);
#pragma unroll
      for (int i = 0; i < kPixels; i++)
        if (weight[i] == 0) out[i] = plain[i];
    }
  };
};

}  // namespace cudaconv::sliding
