// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Rows of samples in the registers of a warp for the operations of sliding.cuh, and how words are split into registers.
//
// 8-bit samples are processed in pairs, one in each half of a register: bytes 0 and 2 of a word are its even pair,
// bytes 1 and 3 its odd pair. Samples of 16-bit containers take a register each: the even and the odd sample of a word.
// Either way a word makes two registers, and the same code processes both. Where 16-bit samples are only compared, two
// of them share one register, as in the word.
//
//    word, bytes 3 to 0          64 c8 0a 05
//    even pair, bytes 2 and 0    00 c8 00 05        odd pair, bytes 3 and 1    00 64 00 0a
//    even pair times 3           02 58 00 0f        200 * 3 and 5 * 3 by one multiplication
//
// Sums of products are linear: one 32-bit multiply-add processes both halves, even where partial sums are negative.
// Offsets that the plan computes make both halves correct and non-negative at the points where they are separated.
#pragma once

#include "cuda/device/swar.cuh"
#include "cuda/device/words.cuh"
#include "cuda/sliding/swar_plan.h"

namespace cudaconv::sliding {

// Dense planes of 8-bit samples with kChannels channels.
template <int kChannels_>
struct SwarU8 : PairOrder {
  static constexpr int kChannels = kChannels_;
  static constexpr int kSampleBytes = 1, kPerWord = 4;  // samples
  static constexpr int kSplit = 2;                      // registers of a word
  static constexpr bool kPairs = true;                  // a register holds two samples

  // The even pair of a word, h = 0, or the odd one.
  __device__ static uint32_t part(const SwarParams &, uint32_t word, int h) {
    return h ? __byte_perm(word, 0, 0x4341) : word & 0x00ff00ffu;
  }
  // Joins pairs, whose samples are in the low bytes of halves, to a word.
  __device__ static uint32_t join(const SwarParams &, const uint32_t (&parts)[2]) {
    return __byte_perm(parts[0], parts[1], 0x6240);
  }
  // The largest sample value, in both halves.
  __device__ static uint32_t white(const SwarParams &) { return 0x00ff00ffu; }
};

// Dense planes of samples in 16-bit containers, little-endian, shifted left by sample_shift; one in a register.
template <int kChannels_>
struct SwarU16 {
  static constexpr int kChannels = kChannels_;
  static constexpr int kSampleBytes = 2, kPerWord = 2, kSplit = 2;
  static constexpr bool kPairs = false;

  __device__ static uint32_t part(const SwarParams &k, uint32_t word, int h) {
    return word >> (k.sample_shift + 16 * h) & k.sample_mask;
  }
  __device__ static uint32_t join(const SwarParams &k, const uint32_t (&parts)[2]) {
    return (parts[0] | parts[1] << 16) << k.sample_shift;
  }
  __device__ static uint32_t vmax(uint32_t a, uint32_t b) { return a > b ? a : b; }
  __device__ static uint32_t vmin(uint32_t a, uint32_t b) { return a < b ? a : b; }
  __device__ static uint32_t vmax(uint32_t a, uint32_t b, uint32_t c) { return __vimax3_u32(a, b, c); }
  __device__ static uint32_t vmin(uint32_t a, uint32_t b, uint32_t c) { return __vimin3_u32(a, b, c); }
};

// Dense planes of samples in 16-bit containers that are compared, two in a register.
template <int kChannels_>
struct SwarU16Ordered : PairOrder {
  static constexpr int kChannels = kChannels_;
  static constexpr int kSampleBytes = 2, kPerWord = 2, kSplit = 1;
  static constexpr bool kPairs = true;

  __device__ static uint32_t part(const SwarParams &k, uint32_t word, int) {
    return word & (k.sample_mask << k.sample_shift) * 0x10001u;
  }
  __device__ static uint32_t join(const SwarParams &, const uint32_t (&parts)[1]) { return parts[0]; }
};

// Joins the registers part_of(h) to a word.
template <typename Swar, typename PartOf>
__device__ inline uint32_t join_parts(const SwarParams &k, PartOf part_of) {
  uint32_t parts[Swar::kSplit];
  each<Swar::kSplit>([&](int h) { parts[h] = part_of(h); });
  return Swar::join(k, parts);
}

// The absolute difference |a - b| of unsigned numbers.
template <typename Swar>
__device__ inline uint32_t difference(uint32_t a, uint32_t b) {
  return Swar::vmax(a, b) - Swar::vmin(a, b);
}

// A row of samples in registers: the lane's 16 bytes, and as many words of each neighbouring lane as hold kReach
// pixels.
template <typename Swar, int kReach>
struct LaneRow {
  static constexpr int kWords = (kReach * Swar::kChannels + Swar::kPerWord - 1) / Swar::kPerWord;
  static_assert(kWords <= 4, "what is farther off is not the neighbour's");
  uint32_t part[Swar::kSplit][4 + 2 * kWords];  // of a split word [0] is the even part, [1] the odd part

  // Sample n of the row, counted from the lane's first; in a register of two, also the next sample of the same part.
  __device__ uint32_t at(int n) const {
    constexpr int kPerWord = Swar::kPerWord, kSplit = Swar::kSplit;
    const int word = (n + kPerWord * kWords) / kPerWord, rest = (n + kPerWord * kWords) % kPerWord;
    const uint32_t(&words)[4 + 2 * kWords] = part[rest % kSplit];
    // The register may straddle two words: the second half of one and the first half of the next.
    return rest < kSplit ? words[word] : __byte_perm(words[word], words[word + 1], 0x5432);
  }

  // Sets the lane's own words, [part][word].
  __device__ void set(const uint32_t (&own)[Swar::kSplit][4]) {
    each<Swar::kSplit, 4>([&](int h, int i) { part[h][kWords + i] = own[h][i]; });
  }

  // Fills in the neighbours' words by shuffles; the own words are set. Every lane of the warp takes part.
  __device__ void exchange() {
    each<Swar::kSplit>([&](int h) { exchange(part[h]); });
  }

  __device__ static void exchange(uint32_t (&row)[4 + 2 * kWords]) {
#pragma unroll
    for (int i = 0; i < kWords; i++) {
      row[i] = __shfl_up_sync(0xffffffffu, row[4 + i], 1);
      row[kWords + 4 + i] = __shfl_down_sync(0xffffffffu, row[kWords + i], 1);
    }
  }

  // Sets the row from the lane's four words, and fills in the neighbours' words.
  __device__ void load(const SwarParams &k, const uint32_t (&row)[4]) {
    uint32_t words[4 + 2 * kWords];
    each<4>([&](int i) { words[kWords + i] = row[i]; });
    exchange(words);
    each<Swar::kSplit, 4 + 2 * kWords>([&](int h, int i) { part[h][i] = Swar::part(k, words[i], h); });
  }
};

// Samples that are compared, not added. The high byte of a half decides a comparison, so the odd pair of bytes can be
// the unmasked word. This needs an even number of channels, because otherwise neighbours in a row are in pairs of the
// other kind.
template <typename Swar>
struct Ordered {
  static constexpr bool kRawOdd = Swar::kSampleBytes == 1 && Swar::kChannels % 2 == 0;
  using Row = uint32_t[Swar::kSplit][4];  // [part][word]

  // Splits the words, each xored with `flip`.
  __device__ static void split(const SwarParams &k, const uint32_t (&words)[4], uint32_t flip, Row &row) {
    each<4, Swar::kSplit>([&](int i, int h) { row[h][i] = part(k, words[i] ^ flip, h); });
  }
  __device__ static uint32_t part(const SwarParams &k, uint32_t word, int h) {
    return kRawOdd && h ? word : Swar::part(k, word, h);
  }
  __device__ static uint32_t join(const SwarParams &k, const Row &row, int i) {
    if constexpr (kRawOdd) {
      return __byte_perm(row[0][i], row[1][i], 0x7250);
    } else {
      return join_parts<Swar>(k, [&](int h) { return row[h][i]; });
    }
  }
  __device__ static void join(const SwarParams &k, const Row &row, uint32_t flip, uint32_t (&words)[4]) {
    each<4>([&](int i) { words[i] = join(k, row, i) ^ flip; });
  }
};

// The last kSize rows, and the minima or maxima of squares in them.
template <typename Swar, int kRadius>
struct SquareRows {
  static constexpr int kSize = 2 * kRadius + 1;
  using Row = typename Ordered<Swar>::Row;
  Row rows[kSize];

  template <bool kMin>
  __device__ static uint32_t extreme(uint32_t a, uint32_t b, uint32_t c) {
    return kMin ? Swar::vmin(a, b, c) : Swar::vmax(a, b, c);
  }

  template <bool kMin>
  __device__ void extrema(Row &result) const {
    LaneRow<Swar, kRadius> column;
    each<4, Swar::kSplit>([&](int i, int h) {
      uint32_t &extremum = column.part[h][column.kWords + i];
      extremum = rows[0][h][i];
#pragma unroll
      for (int t = 1; t < kSize; t += 2) extremum = extreme<kMin>(extremum, rows[t][h][i], rows[t + 1][h][i]);
    });
    column.exchange();
    each<4, Swar::kSplit>([&](int i, int h) {
      const auto sample = [&](int t) { return column.at(Swar::kPerWord * i + h + (t - kRadius) * Swar::kChannels); };
      result[h][i] = sample(0);
#pragma unroll
      for (int t = 1; t < kSize; t += 2) result[h][i] = extreme<kMin>(result[h][i], sample(t), sample(t + 1));
    });
  }
};

// t + offset in both halves, as signed numbers, clamped to the range of samples.
template <typename Swar>
__device__ inline uint32_t clamp_pair(const SwarParams &k, uint32_t t, uint32_t offset) {
  return __viaddmin_s16x2_relu(t, offset, Swar::white(k));
}

}  // namespace cudaconv::sliding
