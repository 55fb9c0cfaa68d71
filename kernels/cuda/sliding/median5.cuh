// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The 5x5 median for the sliding kernels, as median() of methods/operations.cuh makes it. Squares of 2x2 results share
// most of the work:
//
// clang-format off
//     o a a a a p      The windows of the four results consist of o, a, c and m; of a, p, m and d; of c, m, q and b;
//     c m m m m d      and of m, d, b and r.
//     c m m m m d
//     c m m m m d      A sample with 13 others above it, or 13 below it, cannot be the median of 25. Equal numbers of
//     c m m m m d      small and large samples are dropped as soon as possible:
//     q b b b b r        16 samples of m                     the middle 10 remain, for all four windows
//                        10, and the 4 of c or d             6 remain, for two results one above the other
//                        6, and the 4 of a or b              2 remain; these and the corner have the median
// clang-format on
//
// Columns, pairs of columns and m are merged by networks. Sorted columns serve two rows of results, sorted pairs of
// columns two neighbouring squares.
#pragma once

#include "cuda/device/networks.cuh"
#include "cuda/sliding/operation.cuh"

namespace cudaconv::sliding {

// Arranges a lane's 16 bytes of a row as registers of two samples, so that in all formats neighbours of a channel are
// kStep registers apart. A register has two channels of a pixel. With an odd number of channels it has a sample of the
// first 8 bytes and the sample 8 bytes after it. Medians, unlike sums, leave room for two 16-bit samples in a register.
template <typename Swar>
struct PairRow {
  static constexpr int kPerWord = Swar::kPairs ? 2 : 1, kCount = 4 * kPerWord;  // registers
  static constexpr bool kApart = Swar::kChannels % 2 == 1;
  static constexpr int kStep = kApart ? Swar::kChannels : Swar::kChannels / 2;
  static constexpr int kHalo = 2 * kStep, kHaloWords = kHalo / kPerWord;

  // Arranges the words of a row as words of kPerWord registers each, in order.
  __device__ static void arrange(const SwarParams &k, const uint32_t (&row)[4], uint32_t (&words)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      words[i] = row[i];
      if constexpr (kApart) words[i] = __byte_perm(row[i / 2], row[i / 2 + 2], i % 2 ? 0x7632 : 0x5410);
      if constexpr (Swar::kPairs && Swar::kChannels == 2) words[i] = __byte_perm(row[i], 0, 0x3120);
      if constexpr (!Swar::kPairs) words[i] &= (k.sample_mask << k.sample_shift) * 0x10001u;
    }
  }
  // Register m of arranged words.
  template <int kWords>
  __device__ static uint32_t at(const SwarParams &k, const uint32_t (&words)[kWords], int m) {
    if constexpr (!Swar::kPairs) return words[m];
    return Swar::part(k, words[m / 2], m % 2);
  }
  // Converts registers of results back to the words of a row.
  __device__ static void restore(const SwarParams &k, const uint32_t (&registers)[kCount], uint32_t (&row)[4]) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      words[i] = registers[kPerWord * i];
      if constexpr (Swar::kPairs) words[i] = join_parts<Swar>(k, [&](int h) { return registers[2 * i + h]; });
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      row[i] = words[i];
      if constexpr (kApart) row[i] = __byte_perm(words[i % 2 * 2], words[i % 2 * 2 + 1], i / 2 ? 0x7632 : 0x5410);
      if constexpr (Swar::kPairs && Swar::kChannels == 2) row[i] = __byte_perm(words[i], 0, 0x3120);
    }
  }

  // From the lane's register, or word, m places before its end: the one m places before its first, which the left
  // neighbour has. Every lane of the warp takes part.
  __device__ static uint32_t before(uint32_t own) {
    const uint32_t left = __shfl_up_sync(0xffffffffu, own, 1);
    return kApart ? __byte_perm(left, own, 0x5432) : left;
  }
  // From the lane's register, or word, m places after its first: the one m places after its last, which the right
  // neighbour has.
  __device__ static uint32_t after(uint32_t own) {
    const uint32_t right = __shfl_down_sync(0xffffffffu, own, 1);
    return kApart ? __byte_perm(own, right, 0x5432) : right;
  }
};

// The last steps to the median, on registers of two samples; for kHalf see PairNetworks.
template <bool kHalf>
struct Median5 : PairNetworks<kHalf> {
  using PairNetworks<kHalf>::vmin, PairNetworks<kHalf>::vmax, PairNetworks<kHalf>::exchange;

  // The middle six, sorted, of the ten and of four more, c. This is Batcher's merge without exchanges of dropped
  // samples; its first step exchanges c[i] and number i + 3 of the ten.
  __device__ static void narrow(const uint32_t (&v)[10], const uint32_t (&c)[4], uint32_t (&six)[6]) {
    uint32_t low4 = c[1], high4 = v[4], low5 = c[2], high5 = v[5], low6 = vmin(c[3], v[6]), high6 = v[2];
    uint32_t low3 = v[7], high3 = vmax(c[0], v[3]);
    exchange(1, low4, high4);
    exchange(0, low5, high5);
    exchange(1, low6, high6);
    exchange(0, low3, high3);
    six[0] = low3;
    six[1] = vmax(low6, low4, v[0]);
    six[2] = vmax(low5, v[1]);
    six[3] = high6;
    six[4] = vmin(high3, high5, v[9]);
    six[5] = vmin(high4, v[8]);
    exchange(1, six[0], six[2]);
    exchange(0, six[3], six[5]);
    exchange(1, six[0], six[1]);
    exchange(0, six[2], six[3]);
    exchange(1, six[4], six[5]);
  }

  // The median of six and four samples, both sorted, and one more. Batcher's merge, without exchanges of dropped
  // samples, gives x and y, the middle two of the ten.
  __device__ static uint32_t middle(const uint32_t (&six)[6], const uint32_t (&a)[4], uint32_t corner) {
    const uint32_t x = vmax(vmin(six[2], a[3]), vmin(six[4], a[1]), six[0]);
    const uint32_t y = vmin(vmax(six[3], a[0]), vmax(vmin(six[5], a[2]), six[1]));
    if constexpr (!kHalf) return vmax(vmin(x, y), vmin(vmax(x, y), corner));
    // The median of three is their sum minus the minimum and the maximum.
    return (HalfPair{x} - HalfPair{vmin(x, y, corner)} + (HalfPair{y} - HalfPair{vmax(x, y, corner)}) +
            HalfPair{corner})
        .bits;
  }
};

// The operation: columns of four are sorted, and squares narrowed down, with every second row of results.
struct SlidingMedian5 : SlidingOperation {
  static constexpr int kRadius = 2, kStripRows = 4, kMinBlocks = 4;
  static constexpr bool kRowByRow = true;
  static_assert(kStripRows % 2 == 0);

  template <typename Swar>
  struct State {
    using Row = PairRow<Swar>;
    using Network = Median5<Swar::kPairs>;
    static constexpr int kCount = Row::kCount, kStep = Row::kStep, kHalo = Row::kHalo;

    uint32_t rows[kStripRows + 4][4];  // arranged words
    uint32_t six[kCount][6];           // for each register of results, see Median5::narrow()

    // Whether register m is the left result of a square; the right one, kStep farther, may be in another lane.
    __device__ static constexpr bool is_first(int m) { return m >= 0 && m / kStep % 2 == 0; }

    __device__ void narrow(const SwarParams &k, int top) {
      uint32_t column[kCount + 2 * kHalo][4];  // begins kHalo registers before the lane's own
#pragma unroll
      for (int m = 0; m < kCount; m++) {
        uint32_t(&own)[4] = column[kHalo + m];
        each<4>([&](int t) { own[t] = Row::at(k, rows[top + t], m); });
        Network::sort(own);
      }
      each<kHalo, 4>([&](int m, int t) {
        column[m][t] = Row::before(column[kCount + m][t]);
        if (is_first(kCount + m - 3 * kStep)) column[kHalo + kCount + m][t] = Row::after(column[kHalo + m][t]);
      });
      // pair[m]: the column of register m, merged with the one before it.
      uint32_t pair[kCount + kHalo][8];
      each<kCount>([&](int m) { Network::template merge<0>(column[kHalo - kStep + m], column[kHalo + m], pair[m]); });
      each<kHalo, 8>([&](int m, int t) {
        if (is_first(kCount + m - 2 * kStep)) pair[kCount + m][t] = Row::after(pair[m][t]);
      });
#pragma unroll
      for (int m = 0; m < kCount; m++) {
        if (!is_first(m)) continue;
        uint32_t ten[10];
        Network::template merge<3>(pair[m], pair[m + kHalo], ten);
        Network::narrow(ten, column[m], six[m]);
        if (m + kStep < kCount) Network::narrow(ten, column[m + kHalo + 3 * kStep], six[m + kStep]);
      }
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      Row::arrange(k, row, rows[j]);
      if (j < 4) return;
      // The row of the window that the other row of results does not have: its last row for odd j, its first for even
      // j.
      if (j % 2 == 0) narrow(k, j - 3);
      const uint32_t(&own)[4] = rows[j % 2 ? j : j - 4];
      uint32_t words[4 + 2 * Row::kHaloWords];
      each<4>([&](int i) { words[Row::kHaloWords + i] = own[i]; });
#pragma unroll
      for (int i = 0; i < Row::kHaloWords; i++) {
        words[i] = Row::before(own[4 - Row::kHaloWords + i]);
        words[Row::kHaloWords + 4 + i] = Row::after(own[i]);
      }
      uint32_t result[kCount];
#pragma unroll
      for (int m = 0; m < kCount; m++) {
        if (!is_first(m)) continue;
        const auto at = [&](int dx) { return Row::at(k, words, kHalo + m + dx * kStep); };
        uint32_t four[4] = {at(-1), at(0), at(1), at(2)};
        Network::sort(four);
        result[m] = Network::middle(six[m], four, at(-2));
        if (m + kStep < kCount) result[m + kStep] = Network::middle(six[m + kStep], four, at(3));
      }
      Row::restore(k, result, out);
    }
  };
};

}  // namespace cudaconv::sliding
