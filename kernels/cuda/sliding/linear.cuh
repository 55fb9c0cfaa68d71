// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Operations of sliding.cuh for linear masks: each result is the rounded sum of coefficients times samples, as linear()
// of methods/operations.cuh makes it. Columns are summed as rows enter, then neighbouring column sums.
//
// Example, [1 2 1] down a column of samples 5 1 4 3: Binomial3 returns 5 + 2 * 1 + 4 = 11 when 4 enters, and then
// 1 + 2 * 4 + 3 = 12.
#pragma once

#include "cuda/sliding/operation.cuh"

namespace cudaconv::sliding {

// Sums [1 2 1] of consecutive numbers. Two successive sums share a pair of neighbours, so together they take three
// additions, two of them of three numbers, which are one instruction each.
struct Binomial3 {
  uint32_t last, pair;  // pair: the sum of the last two numbers; after an odd k, the number before the last

  // Takes number k and returns the sum that ends with it; valid from k = 2 on.
  __device__ uint32_t push(int k, uint32_t v) {
    uint32_t sum;
    if (k % 2) {
      sum = pair + last + v;
      pair = last;
    } else {
      const uint32_t now = last + v;
      sum = pair + last + now;
      pair = now;
    }
    last = v;
    return sum;
  }
};

// Adds up a row of column sums and rounds the results. row_sum(row, n) returns the sum at sample n, without `scale`.
template <Epilogue kEpilogue, typename Swar, int kRadius, typename RowSum>
__device__ inline void finish_columns(const SlidingParams &p, const uint32_t (&sums)[Swar::kSplit][4], uint32_t scale,
                                      RowSum row_sum, uint32_t (&out)[4]) {
  LaneRow<Swar, kRadius> row;
  row.set(sums);
  row.exchange();
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t parts[Swar::kSplit];
    part_sums<Swar>([&](int h) { return row_sum(row, Swar::kPerWord * i + h); }, parts);
    each<Swar::kSplit>([&](int h) { parts[h] = scale * parts[h] + p.swar.init; });
    out[i] = apply_epilogue<kEpilogue, Swar>(p, parts);
  }
}

// A mean, with all factors 1: a row that enters is added to the column sums, and the row that leaves is subtracted.
template <int kSize>
struct SlidingMean : SlidingOperation {
  static constexpr bool kRowByRow = kSize > 5;
  static constexpr int kRadius = kSize / 2, kStripRows = 4, kMinBlocks = kSize <= 5 ? 8 : 7;
  static constexpr int kFewerBlocks = kSize > 5, kWarps = kSize > 5 ? 2 : kMostWarps;

  template <typename Swar>
  struct State {
    static constexpr int kSplit = Swar::kSplit;
    uint32_t rows[kSize][4], sums[kSplit][4];

    __device__ static uint32_t row_sum(const LaneRow<Swar, kRadius> &sum, int n) {
      uint32_t result = sum.at(n);
#pragma unroll
      for (int t = 1; t <= kRadius; t++) result += sum.at(n - t * Swar::kChannels) + sum.at(n + t * Swar::kChannels);
      return result;
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      uint32_t(&last)[4] = rows[j % kSize];
      each<4, kSplit>([&](int i, int h) {
        const uint32_t part = part_or_word<Swar>(k, row[i], h);
        sums[h][i] = j ? sums[h][i] + part : part;
        if (j >= kSize) sums[h][i] -= part_or_word<Swar>(k, last[i], h);
      });
      each<4>([&](int i) { last[i] = row[i]; });
      if (j < 2 * kRadius) return;
      finish_columns<Epilogue::Divide, Swar, kRadius>(p, sums, 1, row_sum, out);
    }
  };
};

// A binomial mask, [1 2 1] or [1 4 6 4 1] in both directions, with a divisor that is a power of two.
template <int kSize>
struct SlidingBinomial : SlidingOperation {
  static_assert(kSize == 3 || kSize == 5);
  static constexpr int kRadius = kSize / 2, kStripRows = 4, kMinBlocks = kSize == 3 ? 8 : 7;

  template <typename Swar>
  struct State {
    static constexpr int kChannels = Swar::kChannels;
    static constexpr int kSplit = Swar::kSplit;
    // Scales sums so that their high byte is the result, see apply_epilogue().
    static constexpr uint32_t kScale = Swar::kSampleBytes == 1 && kSize == 3 ? 16 : 1;
    Binomial3 stages[kRadius][kSplit][4];

    __device__ static uint32_t row_sum(const LaneRow<Swar, kRadius> &sum, int n) {
      const uint32_t ends = sum.at(n - kRadius * kChannels) + sum.at(n + kRadius * kChannels);
      if constexpr (kSize == 3) return ends + 2 * sum.at(n);
      return ends + 4 * (sum.at(n - kChannels) + sum.at(n + kChannels)) + 6 * sum.at(n);
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      uint32_t sums[kSplit][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        each<kSplit>([&](int h) { sums[h][i] = part_or_word<Swar>(k, row[i], h); });
        each<kRadius, kSplit>([&](int t, int h) {
          if (j >= 2 * t) sums[h][i] = stages[t][h][i].push(j - 2 * t, sums[h][i]);
        });
      }
      if (j < 2 * kRadius) return;
      finish_columns<Epilogue::Shift, Swar, kRadius>(p, sums, kScale, row_sum, out);
    }
  };
};

// Any other 3x3 mask.
struct SlidingDense3 : SlidingOperation {
  static constexpr int kRadius = 1, kStripRows = 4, kMinBlocks = 8;

  template <typename Swar>
  struct State {
    static constexpr int kSplit = Swar::kSplit;
    uint32_t sums[3][4][kSplit];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      LaneRow<Swar, 1> samples;
      samples.load(k, row);
#pragma unroll
      for (int t = 0; t < 3; t++) {
        const int r = j - t;
        if (r < 0 || r >= kStripRows) continue;
#pragma unroll
        for (int i = 0; i < 4; i++) {
          uint32_t(&sum)[kSplit] = sums[r % 3][i];
          if (!t) each<kSplit>([&](int h) { sum[h] = k.init; });
#pragma unroll
          for (int dx = -1; dx <= 1; dx++)
#pragma unroll
            for (int h = 0; h < kSplit; h++)
              sum[h] += k.dense[t * 3 + 1 + dx] * samples.at(Swar::kPerWord * i + h + dx * Swar::kChannels);
        }
      }
      if (j < 2) return;
      finish_row<Swar>(p, sums[(j - 2) % 3], out);
    }
  };
};

// A 5x5 mask whose numbers depend only on the distance |dx| + |dy| and are 0 beyond 2: four samples have distance 1,
// eight distance 2.
struct SlidingDiamond5 : SlidingOperation {
  static constexpr bool kRowByRow = true;
  static constexpr int kRadius = 2, kStripRows = 4, kMinBlocks = 6;
  static constexpr int kFewerBlocks = 1, kWarps = 2;

  template <typename Swar>
  struct State {
    using Row = LaneRow<Swar, 2>;
    using Beside = LaneRow<Swar, 1>;
    static constexpr int kChannels = Swar::kChannels, kSplit = Swar::kSplit;
    uint32_t rows[5][4 + 2 * Row::kWords];  // words; neighbours' words are filled in when the next row has entered

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      each<4>([&](int i) { rows[j % 5][Row::kWords + i] = row[i]; });
      if (j >= 2) Row::exchange(rows[(j + 4) % 5]);
      if (j < 4) return;
      // Sums of rows at equal distance above and below the middle row: the rows next to it with their neighbours, and
      // the outermost ones.
      const auto pair = [&](int a, int b, int i, int h) {
        return Swar::part(k, rows[(j + a) % 5][i], h) + Swar::part(k, rows[(j + b) % 5][i], h);
      };
      Beside beside;
      Row middle;
      uint32_t far[4][kSplit];
#pragma unroll
      for (int h = 0; h < kSplit; h++) {
#pragma unroll
        for (int i = 0; i < 4 + 2 * Beside::kWords; i++)
          beside.part[h][i] = pair(2, 4, Row::kWords - Beside::kWords + i, h);
        each<4>([&](int i) { far[i][h] = pair(1, 0, Row::kWords + i, h); });
        each<4 + 2 * Row::kWords>([&](int i) { middle.part[h][i] = Swar::part(k, rows[(j + 3) % 5][i], h); });
      }
      uint32_t sums[4][kSplit];
      each<4, kSplit>([&](int i, int h) {
        const int n = Swar::kPerWord * i + h;
        const uint32_t one = beside.at(n) + middle.at(n - kChannels) + middle.at(n + kChannels);
        const uint32_t two = far[i][h] + middle.at(n - 2 * kChannels) + middle.at(n + 2 * kChannels) +
                             beside.at(n - kChannels) + beside.at(n + kChannels);
        sums[i][h] = k.init + k.dense[0] * middle.at(n) + k.dense[1] * one + k.dense[2] * two;
      });
      finish_row<Swar>(p, sums, out);
    }
  };
};

}  // namespace cudaconv::sliding
