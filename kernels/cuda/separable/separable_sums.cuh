// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sums along rows, then along columns, by separable masks up to 65x65, on the matrix instructions.
//
// A warp goes down a strip of 16 pixels' width in steps of 8 rows. Lane (g, t) has g = lane / 4 and t = lane % 4.
//
//    first product     16 x k coefficients of the row    times   k x 8 samples, a column for each of the 8 rows
//    second product    16 x k row sums                   times   k x 8 coefficients of the column
//                      (row: pixel, k: row of the frame)         (column: row of results)
//
// The first product leaves lane (g, t) with the sums of pixels 2g and 2g + 1 in rows 2t and 2t + 1, 16 bits each. The
// second product needs exactly these of the lane. A chunk of its k is 16 rows, the rows of two steps: the lane's four
// of a chunk are rows 2t and 2t + 1 of the first step, then 2t and 2t + 1 of the second. So sums stay in registers, as
// high bytes and low bytes, and move up by half a chunk with each step.
//
// Example: lane 6, (1, 2), has pixels 2 and 3 in rows 4 and 5 of a step. In the second product its word is the rows 4,
// 5, 12 and 13 of a chunk.
#pragma once

#include "cuda/device/mma/sums.cuh"

namespace cudaconv::separable {

// Tuned on an H200 with kernel-bench --table=goals,formats --only="gauss 15,gauss 31,unsharp 15", and so are the blocks
// for which each strip limits its registers.
struct SeparableTuning {
  // Samples are prefetched to the L2 cache this many steps ahead, and read one step ahead.
  static constexpr int kPrefetchSteps = 2;
  // Rows of results of a strip, and how many more rows a strip takes the time of besides those that windows reach.
  // "Wide" strips are of three or four channels of bytes, see SeparableStrip, and have any number of rows.
  static constexpr int kLeastRows = 16, kLeastWideRows = 32, kMostRows = 512, kMoreRows = 16, kMoreWideRows = 8;
};

template <int kRadiusClass, Samples kSamplesKind>
struct SeparableShape {
  static constexpr int kRadius = kRadiusClass;
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr int kBytes = factor_bytes(kSamples);
  static_assert(kRadius % 8 == 0, "whole chunks along rows, and an odd number of steps down columns");
  static constexpr int kChunksX = (16 + 2 * kRadius) / 16;  // chunks of samples that windows of 16 pixels reach
  static constexpr int kSteps = 1 + kRadius / 4;            // steps that windows of 8 rows reach
  static constexpr int kChunksY = (kSteps + 1) / 2;         // the last one's second half has no weight
  static constexpr int kWords = kRadius / 2 + 1;            // words of a line that may be non-zero
  static constexpr int kLine = padded_words(kWords), kLines = 2 * kBytes;
  static constexpr size_t kLineBytes = (kLines * sizeof(uint32_t) * kLine + 15) / 16 * 16;

  // Stores the lines with their padding in shared memory.
  __device__ static void load_lines(const SeparableMmaParams &p, uint32_t *lines) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kLines * kLine; i += static_cast<int>(blockDim.x))
      lines[i] = padded_word(p.line[i / kLine / kBytes][i / kLine % kBytes], kWords, i % kLine);
  }
};

// A lane's words of the two matrices of coefficients.
template <typename Shape>
struct SeparableOperands {
  static constexpr int kBytes = Shape::kBytes, kChunksX = Shape::kChunksX, kChunksY = Shape::kChunksY;
  uint32_t row[kBytes][kChunksX][2], column[kBytes][kChunksY];  // low bytes first

  __device__ explicit SeparableOperands(const uint32_t *lines) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    constexpr int kLine = Shape::kLine;
#pragma unroll
    for (int b = 0; b < kBytes; b++) {
#pragma unroll
      for (int c = 0; c < kChunksX; c++)
#pragma unroll
        for (int i = 0; i < 2; i++) row[b][c][i] = four_bytes(lines + b * kLine, 16 * c + 4 * t - (2 * g + i));
#pragma unroll
      for (int c = 0; c < kChunksY; c++) {
        const int first = 16 * c + 2 * t - g;  // rows 2t and 2t + 1 of each step, relative to row g of results
        column[b][c] = __byte_perm(four_bytes(lines + (kBytes + b) * kLine, first),
                                   four_bytes(lines + (kBytes + b) * kLine, first + 8), 0x5410);
      }
    }
  }
};

// The bytes of the latest row sums, of pixels 2g and 2g + 1: the matrix from which columns are summed.
template <typename Shape>
struct RowSumBytes {
  static constexpr int kBytes = Shape::kBytes, kChunksY = Shape::kChunksY;
  uint32_t byte[kBytes][kChunksY][2] = {};

  // Appends the sums of the step's two rows, and drops the oldest ones. `selector`: for __byte_perm(), the two low
  // bytes that are kept of a sum.
  __device__ void enter(const Sums &sums, uint32_t selector = 0x5140) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint32_t first = static_cast<uint32_t>(sums.v[2 * i]), second = static_cast<uint32_t>(sums.v[2 * i + 1]);
      // The low bytes of both sums, then their second bytes.
      const uint32_t pair = __byte_perm(first, second, selector);
      append<0>(i, pair, false);
      append<1>(i, pair, true);
      if constexpr (kBytes > 2) append<2>(i, __byte_perm(first, second, 0x0062), false);
    }
  }

 private:
  // Appends byte kByte of both sums, from the low or the high half of `pair`.
  template <int kByte>
  __device__ void append(int i, uint32_t pair, bool upper) {
    auto &chunks = byte[kByte];
#pragma unroll
    for (int c = 0; c + 1 < kChunksY; c++) chunks[c][i] = __byte_perm(chunks[c][i], chunks[c + 1][i], 0x5432);
    chunks[kChunksY - 1][i] = upper ? pair >> 16 : pair;
  }
};

// The latest row sums of a channel, from which columns are summed. Of 8-bit samples each part of a sum is computed from
// the one before. That takes fewer instructions, but more time if the warp has no other sum to compute meanwhile.
template <typename Shape>
struct SeparableSums {
  static constexpr int kSampleBytes = Shape::kSampleBytes, kBytes = Shape::kBytes, kChunksX = Shape::kChunksX;
  static constexpr bool kChains = kSampleBytes == 1;
  RowSumBytes<Shape> rows;

  // Sums the next 8 rows of samples; `window` has a window of each byte of a sample.
  __device__ void enter(const SeparableMmaParams &p, const SeparableOperands<Shape> &k, int32_t start,
                        const uint32_t (&window)[kSampleBytes][kChunksX]) {
    if constexpr (kChains) {
      // A shift is a choice of bytes.
      rows.enter(
          add_parts<kBytes>(start, [&](int part, Sums s) { return multiply<false, false>(k.row[part], window[0], s); }),
          p.row_bytes);
    } else {
      PartialSums<kBytes + 1> parts;
#pragma unroll
      for (int i = 0; i <= kBytes; i++) parts.part[i] = all(i == 1 ? start : 0);
#pragma unroll
      for (int i = 0; i < kSampleBytes; i++)
#pragma unroll
        for (int b = 0; b < kBytes; b++)
          parts.part[i + b] = multiply<false, false>(k.row[b], window[i], parts.part[i + b]);
      Sums sums = parts.total();
      // The bits that the shift by 16 drops do not fit 32 bits together with the rest, so parts are shifted one by one.
      if (p.row_shift)
#pragma unroll
        for (int i = 0; i < 4; i++)
          sums.v[i] =
              (((parts.part[0].v[i] >> 8) + parts.part[1].v[i]) >> 8) + parts.part[2].v[i] + (parts.part[3].v[i] << 8);
      rows.enter(sums);
    }
  }

  // Computes the sums of 8 rows of results. `start` is added to them, and start_high to part 3, see SumRounding.
  static constexpr int kTotals = kChains ? 1 : 2 * kBytes - 1;
  __device__ PartialSums<kTotals> total(const SeparableMmaParams &p, const SeparableOperands<Shape> &k,
                                        int32_t start) const {
    if constexpr (kChains) {
      return {{add_parts<2 * kBytes - 1>(start, [&](int part, Sums s) {
#pragma unroll
        for (int i = kBytes - 1; i >= 0; i--) {
          if (part - i == kBytes - 1)
            s = multiply<false, true>(rows.byte[i], k.column[part - i], s);
          else if (part - i >= 0 && part - i < kBytes)
            s = multiply<false, false>(rows.byte[i], k.column[part - i], s);
        }
        return s;
      })}};
    } else {
      PartialSums<kTotals> parts;
#pragma unroll
      for (int i = 0; i < kTotals; i++) parts.part[i] = all(i == 0 ? start : i == 3 ? p.epilogue.start_high : 0);
#pragma unroll
      for (int i = 0; i < kBytes; i++)
#pragma unroll
        for (int b = 0; b < kBytes; b++)
          if (b == kBytes - 1 && p.signed_column)
            parts.part[i + b] = multiply<false, true>(rows.byte[i], k.column[b], parts.part[i + b]);
          else
            parts.part[i + b] = multiply<false, false>(rows.byte[i], k.column[b], parts.part[i + b]);
      return parts;
    }
  }

 private:
  // Applies add(part, sums) part by part, from the highest one down, and multiplies by 256 in between. The last part
  // begins with `start`.
  template <int kCount, typename Add>
  __device__ static Sums add_parts(int32_t start, Add add) {
    Sums sums = all(kCount == 1 ? start : 0);
#pragma unroll
    for (int part = kCount - 1; part >= 0; part--) {
      if (part < kCount - 1) sums = times_256(sums, part ? 0 : start);
      sums = add(part, sums);
    }
    return sums;
  }
};

}  // namespace cudaconv::separable
