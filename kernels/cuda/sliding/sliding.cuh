// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto prefers for small masks on dense planes: they run near the speed of a copy.
//
// A lane owns a vector, 16 bytes of a row; a warp has 30 such columns and the one on either side that its neighbours
// need. All rows of a strip are loaded at once, straight-line, so that many loads are in flight; then the window slides
// down in registers: columns first, neighbours by warp shuffles, no shared memory. Lanes beside the frame load the 16
// bytes at its edge and put them in the border's order. Where a row is not a multiple of 16 bytes it ends with a tail:
// the warps at the edges gather what lies in and beside it byte by byte, in shared memory, and write its results from
// there.
//
// All of it is exact; where the halves of registers (see swar.cuh) would not hold a sum other kernels do the pass.
#pragma once

#include <type_traits>

#include "cuda/device/swar.cuh"
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "cuda/sliding/median5.cuh"

namespace cudaconv {

constexpr int kWarpLanes = 30, kWarpBytes = kVectorBytes * kWarpLanes;
constexpr int kMostWarps = 4;  // of a block, one below the other

// A signed sum to a sample of 16 bits or less.
template <typename Swar>
__device__ inline uint32_t clamp_to_sample(const SwarParams &k, uint32_t sum) {
  const int v = static_cast<int>(sum);
  return Swar::vmin(static_cast<uint32_t>(k.absolute ? abs(v) : max(v, 0)), k.sample_mask);
}

// Sums, offset as SwarParams says, to a word of samples.
template <Epilogue kEpilogue, typename Swar>
__device__ inline uint32_t apply_epilogue(const SlidingParams &p, const uint32_t (&sum)[Swar::kSplit]) {
  const SwarParams &k = p.swar;
  [[maybe_unused]] const uint32_t even = sum[0], odd = sum[Swar::kSplit - 1];
  const auto each = [&](auto sample) { return join_parts<Swar>(k, [&](int h) { return sample(sum[h]); }); };
  if constexpr (!Swar::kPairs) {
    if constexpr (kEpilogue == Epilogue::Shift) return Swar::join(k, even >> k.shift, odd >> k.shift);
    if constexpr (kEpilogue == Epilogue::Divide)
      return Swar::join(k, high_product(even, k.magic) >> k.shift, high_product(odd, k.magic) >> k.shift);
    if constexpr (kEpilogue == Epilogue::Clamp)
      return Swar::join(k, clamp_to_sample<Swar>(k, even), clamp_to_sample<Swar>(k, odd));
    return Swar::join(k, round_to_sample(static_cast<int32_t>(even), p.rounding[0]),
                      round_to_sample(static_cast<int32_t>(odd), p.rounding[0]));
  } else if constexpr (Swar::kSampleBytes > 1) {
    static_assert(kEpilogue == Epilogue::Shift || kEpilogue == Epilogue::Divide || kEpilogue == Epilogue::Clamp,
                  "of sums of 16 bits");
    return each([&](uint32_t t) {
      if constexpr (kEpilogue == Epilogue::Shift) return t >> k.shift & k.white;
      // The sum in the low half is too small to change the quotient of the high one.
      if constexpr (kEpilogue == Epilogue::Divide)
        return __byte_perm(high_product(t & 0xffffu, k.magic), high_product(t, k.magic), 0x7610);
      if (k.absolute) t = Swar::vmax(t, 2 * k.zero - t);
      return clamp_pair<Swar>(k, t, k.minus_low);
    });
  } else if constexpr (kEpilogue == Epilogue::Shift) {
    return __byte_perm(even, odd, 0x7351);
  } else if constexpr (kEpilogue == Epilogue::Clamp) {
    return each([&](uint32_t t) { return clamp_pair<Swar>(k, t, k.minus_low); });
  } else if constexpr (kEpilogue == Epilogue::Absolute) {
    return each([&](uint32_t t) { return vmin(absolute(HalfPair{t} - HalfPair{k.zero}), HalfPair{0x00ff00ffu}).bits; });
  } else if constexpr (kEpilogue == Epilogue::Distance) {
    return each([&](uint32_t t) { return clamp_pair<Swar>(k, Swar::vmax(t, 2 * k.zero - t), k.minus_low); });
  } else if constexpr (kEpilogue == Epilogue::Divide) {
    // The sum in the low half is below a third of 2^16, too small to change the quotient of the high one.
    return __byte_perm(__byte_perm((even & 0xffffu) * k.magic, (odd & 0xffffu) * k.magic, 0x0073),
                       __byte_perm(high_product(even, k.magic), high_product(odd, k.magic), 0x0051), 0x5410);
  } else {
    return each([&](uint32_t t) {
      t = k.absolute ? difference<Swar>(t, k.zero) + k.half : Swar::vmax(t, k.low) - k.low;
      t = Swar::vmin(t, k.limit);
      if (!k.magic) return t >> k.shift & 0x00ff00ffu;
      return __byte_perm((t & 0xffffu) * k.magic, (t >> 16) * k.magic, 0x4743) & 0x00ff00ffu;
    });
  }
}

// An operation takes the rows of the strip from above; each enter() may complete one row of results, four words. It
// says its radius, how many rows of results a strip has, and:
// - kMinBlocks: how many blocks of four warps a multiprocessor is to hold, which bounds the registers of a thread by
//   65536 / (blocks * 128): more of them hide more latency as long as nothing spills. kFewerBlocks is how many fewer
//   they are of words, and of pixels that are not words.
// - kWarps, of bytes, and kWordWarps, where pixels are words: where there is much to do, blocks of two warps, twice as
//   many, may keep multiprocessors busier than those of four.
// - kAllArchs: it is compiled for every GPU, else for sm_90 and newer alone, see Feature::MaskKernels.
// - kHasTailKernel: it is for sm_90 and newer alone and still has kernels for rows that are not a multiple of 16 bytes.
// - Tall: the same with strips of more rows, which load fewer rows twice and add up less, but keep a small frame's
//   multiprocessors waiting.
// - kRowByRow: no row of results is begun before the last one is written, where registers are scarce; 16-bit samples,
//   and GPUs before 9.0, always do so.
// - kHoldsMiddle: once row j has entered, middle() knows the words of row j - kRadius.
// - kRecomputesRows: whether a row of packed pixels lies in the frame is worked out anew for each row, which takes one
//   register less.

// Sums [1 2 1] of what comes one after the other. Of two results that follow each other both have a pair of neighbours:
// that makes three additions, two of them of three numbers, which take one instruction.
struct Binomial3 {
  uint32_t last, pair;  // pair: the last two or, after an odd number, the last but one

  // Takes number k, and returns the sum whose last is that; not before k = 2.
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

// Where neighbours are whole words, sums of the even pairs are made of the words as they are, which add 256 times the
// odd pairs: one subtraction of a result takes the place of a mask on each row.
template <typename Swar>
constexpr bool kWholeWords = Swar::kSampleBytes == 1 && Swar::kChannels == 4;

template <typename Swar>
__device__ inline uint32_t part_or_word(const SwarParams &k, uint32_t word, int h) {
  return kWholeWords<Swar> && !h ? word : Swar::part(k, word, h);
}

// The sums of a word's samples, a register each: sum_of(h) sums part_or_word(h).
template <typename Swar, typename SumOf>
__device__ inline void part_sums(SumOf sum_of, uint32_t (&sums)[Swar::kSplit]) {
#pragma unroll
  for (int h = Swar::kSplit - 1; h >= 0; h--) sums[h] = sum_of(h);
  if constexpr (kWholeWords<Swar>) sums[0] -= sums[1] << 8;
}

struct SlidingOperation {
  using Params = SlidingParams;
  static constexpr int kFewerBlocks = 0, kWarps = kMostWarps, kWordWarps = kMostWarps;
  static constexpr bool kHasTailKernel = false;
  static constexpr bool kAllArchs = true, kRowByRow = false, kHoldsMiddle = false, kRecomputesRows = false;
};

// A separable mask: columns are summed as rows enter, then each finished row of sums along the row.
template <int kSize, Epilogue kEpilogue>
struct SlidingSeparable : SlidingOperation {
  using Tall = SlidingSeparable;
  static constexpr bool kAllArchs = kEpilogue == Epilogue::Any, kRowByRow = kSize > 3;
  static constexpr int kRadius = kSize / 2, kStripRows = 4, kMinBlocks = kSize == 3 ? 8 : kSize == 5 ? 7 : 6;
  static constexpr int kFewerBlocks = kSize == 5;
  // Larger rows have to be symmetric: one multiplication then serves two samples.
  static constexpr bool kSymmetric = kSize > 3;

  template <typename Swar>
  struct State {
    static constexpr int kChannels = Swar::kChannels;
    static constexpr int kSplit = Swar::kSplit;
    uint32_t sums[kSize][kSplit][4];

    __device__ static uint32_t row_sum(const SwarParams &k, const LaneRow<Swar, kRadius> &sum, int n) {
      uint32_t result = k.init;
#pragma unroll
      for (int t = 0; t <= (kSymmetric ? kRadius : kSize - 1); t++) {
        const uint32_t left = sum.at(n + (t - kRadius) * kChannels), right = sum.at(n + (kRadius - t) * kChannels);
        result += (kSymmetric && t != kRadius ? left + right : left) * k.row[t];
      }
      return result;
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t parts[kSplit];
#pragma unroll
        for (int h = 0; h < kSplit; h++) parts[h] = Swar::part(k, row[i], h);
#pragma unroll
        for (int t = 0; t < kSize; t++) {
          const int r = j - t;  // the result that this row is row t of
          if (r < 0 || r >= kStripRows) continue;
          uint32_t(&sum)[kSplit][4] = sums[r % kSize];
#pragma unroll
          for (int h = 0; h < kSplit; h++) sum[h][i] = (t ? sum[h][i] : k.column_init) + k.column[t] * parts[h];
        }
      }
      const int r = j - 2 * kRadius;
      if (r < 0) return;
      LaneRow<Swar, kRadius> sum;
      sum.set(sums[r % kSize]);
      sum.exchange();
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t parts[kSplit];
#pragma unroll
        for (int h = 0; h < kSplit; h++) parts[h] = row_sum(k, sum, Swar::kPerWord * i + h);
        out[i] = apply_epilogue<kEpilogue, Swar>(p, parts);
      }
    }
  };
};

// A mean, all ones: a row that enters is added to the sums of columns, and the one that leaves subtracted.
template <int kSize, bool kTall = false>
struct SlidingMean : SlidingOperation {
  using Tall = SlidingMean<kSize, (kSize > 5)>;
  static constexpr bool kAllArchs = false, kHasTailKernel = !kTall, kRowByRow = kSize > 5, kHoldsMiddle = true;
  static constexpr int kRadius = kSize / 2, kStripRows = kTall ? 8 : 4;
  static constexpr int kMinBlocks = kSize <= 5 ? 8 : kTall ? 5 : 6;
  static constexpr int kFewerBlocks = kTall, kWarps = kSize > 5 ? 2 : kMostWarps, kWordWarps = kWarps;

  template <typename Swar>
  struct State {
    static constexpr int kSplit = Swar::kSplit;
    uint32_t rows[kSize][4], sums[kSplit][4];

    __device__ void middle(const SwarParams &, int j, uint32_t (&words)[4]) const {
#pragma unroll
      for (int i = 0; i < 4; i++) words[i] = rows[(j - kRadius) % kSize][i];
    }

    __device__ static uint32_t row_sum(const LaneRow<Swar, kRadius> &sum, int n) {
      uint32_t result = sum.at(n);
#pragma unroll
      for (int t = 1; t <= kRadius; t++) result += sum.at(n - t * Swar::kChannels) + sum.at(n + t * Swar::kChannels);
      return result;
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t(&last)[4] = rows[j % kSize];
#pragma unroll
        for (int h = 0; h < kSplit; h++) {
          const uint32_t part = part_or_word<Swar>(k, row[i], h);
          sums[h][i] = j ? sums[h][i] + part : part;
          if (j >= kSize) sums[h][i] -= part_or_word<Swar>(k, last[i], h);
        }
        last[i] = row[i];
      }
      if (j < 2 * kRadius) return;
      LaneRow<Swar, kRadius> sum;
      sum.set(sums);
      sum.exchange();
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t parts[kSplit];
        part_sums<Swar>([&](int h) { return row_sum(sum, Swar::kPerWord * i + h); }, parts);
#pragma unroll
        for (int h = 0; h < kSplit; h++) parts[h] += k.init;
        out[i] = apply_epilogue<Epilogue::Divide, Swar>(p, parts);
      }
    }
  };
};

// [1 1] by itself so many times that it has kSize numbers, both ways, with a divisor that is a power of two.
template <int kSize>
struct SlidingBinomial : SlidingOperation {
  static_assert(kSize == 3 || kSize == 5);
  using Tall = SlidingBinomial;
  static constexpr bool kAllArchs = false, kHasTailKernel = true;
  static constexpr int kRadius = kSize / 2, kStripRows = 4, kMinBlocks = 8;
  static constexpr int kFewerBlocks = kSize == 5;

  template <typename Swar>
  struct State {
    static constexpr int kChannels = Swar::kChannels;
    static constexpr int kSplit = Swar::kSplit;
    // So that a sum's high byte is the result, see apply_epilogue().
    static constexpr uint32_t kScale = Swar::kSampleBytes == 1 && kSize == 3 ? 16 : 1;
    Binomial3 stages[kRadius][kSplit][4];

    __device__ static uint32_t row_sum(const LaneRow<Swar, kRadius> &sum, int n) {
      const uint32_t ends = sum.at(n - kRadius * kChannels) + sum.at(n + kRadius * kChannels);
      if constexpr (kSize == 3) return ends + 2 * sum.at(n);
      return ends + 4 * (sum.at(n - kChannels) + sum.at(n + kChannels)) + 6 * sum.at(n);
    }

    // The sum along a row of columns' sums, two in a register, that take all of 16 bits.
    __device__ static uint32_t dot_row(const LaneRow<Swar, kRadius> &sum, int n, uint32_t result) {
      constexpr uint32_t kRow[] = {1, 4, 6, 4, 1};
      // The factor of column m, or 0.
      const auto factor = [&](int m) {
        const int distance = m - n;
        return distance % kChannels || abs(distance) > kRadius * kChannels ? 0 : kRow[distance / kChannels + kRadius];
      };
#pragma unroll
      for (int word = -sum.kWords; word < 4 + sum.kWords; word++)
        if (const uint32_t factors = factor(2 * word) | factor(2 * word + 1) << 8)
          result = __dp2a_lo(sum.part[0][sum.kWords + word], factors, result);
      return result;
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      uint32_t sums[kSplit][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int h = 0; h < kSplit; h++) sums[h][i] = part_or_word<Swar>(k, row[i], h);
#pragma unroll
        for (int t = 0; t < kRadius; t++)
#pragma unroll
          for (int h = 0; h < kSplit; h++)
            if (j >= 2 * t) sums[h][i] = stages[t][h][i].push(j - 2 * t, sums[h][i]);
      }
      if (j < 2 * kRadius) return;
      LaneRow<Swar, kRadius> sum;
      sum.set(sums);
      sum.exchange();
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if constexpr (kSplit == 1 && kSize == 5) {
          // Columns have 16 bits, sums of rows more; a result is the second and third byte of one.
          out[i] = __byte_perm(dot_row(sum, 2 * i, k.init), dot_row(sum, 2 * i + 1, k.init), 0x6521) << k.sample_shift;
        } else {
          uint32_t parts[kSplit];
          part_sums<Swar>([&](int h) { return row_sum(sum, Swar::kPerWord * i + h); }, parts);
#pragma unroll
          for (int h = 0; h < kSplit; h++) parts[h] = kScale * parts[h] + k.init;
          out[i] = apply_epilogue<Epilogue::Shift, Swar>(p, parts);
        }
      }
    }
  };
};

// A 3x3 mask that is not separable. kCross: only the middle row and column count.
template <Epilogue kEpilogue, bool kCross = false>
struct SlidingDense3 : SlidingOperation {
  using Tall = SlidingDense3;
  static constexpr bool kAllArchs = kEpilogue == Epilogue::Any;
  static constexpr int kRadius = 1, kStripRows = 4, kMinBlocks = 7;

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
          const int reach = kCross && t != 1 ? 0 : 1;
          if (!t)
#pragma unroll
            for (int h = 0; h < kSplit; h++) sum[h] = k.init;
#pragma unroll
          for (int dx = -reach; dx <= reach; dx++)
#pragma unroll
            for (int h = 0; h < kSplit; h++)
              sum[h] += k.dense[t * 3 + 1 + dx] * samples.at(Swar::kPerWord * i + h + dx * Swar::kChannels);
        }
      }
      if (j < 2) return;
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = apply_epilogue<kEpilogue, Swar>(p, sums[(j - 2) % 3][i]);
    }
  };
};

// A negative number has the highest bit.
template <typename Swar>
__device__ inline uint32_t join_halves(const SwarParams &k, uint32_t even, uint32_t odd) {
  return Swar::join(k, clamp_pair<Swar>(k, even & k.sign_bits, 0), clamp_pair<Swar>(k, odd & k.sign_bits, 0));
}

// A 5x5 mask whose numbers depend on the distance |dx| + |dy| alone, and are 0 beyond 2: four samples have distance 1,
// eight distance 2. Pairs of bytes are 16-bit floats, which hold either sum, and every partial sum.
template <bool kTall = false>
struct SlidingDiamond5 : SlidingOperation {
  using Tall = SlidingDiamond5<true>;
  static constexpr bool kAllArchs = !kTall, kRowByRow = true;
  static constexpr int kRadius = 2, kStripRows = kTall ? 8 : 4, kMinBlocks = kTall ? 5 : 6;
  static constexpr int kFewerBlocks = 1, kWarps = 2, kWordWarps = 2;

  template <typename Swar>
  struct State {
    using Row = LaneRow<Swar, 2>;
    using Beside = LaneRow<Swar, 1>;
    static constexpr int kChannels = Swar::kChannels, kSplit = Swar::kSplit;
    static constexpr bool kHalves = Swar::kSampleBytes == 1;
    uint32_t rows[5][4 + 2 * Row::kWords];  // words; with their neighbours from when the next row has entered

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
#pragma unroll
      for (int i = 0; i < 4; i++) rows[j % 5][Row::kWords + i] = row[i];
      if (j >= 2) Row::exchange(rows[(j + 4) % 5]);
      if (j < 4) return;
      // Sums of the rows above and below the middle one: those next to it with their neighbours, and those beyond.
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
#pragma unroll
        for (int i = 0; i < 4; i++) far[i][h] = pair(1, 0, Row::kWords + i, h);
#pragma unroll
        for (int i = 0; i < 4 + 2 * Row::kWords; i++) middle.part[h][i] = Swar::part(k, rows[(j + 3) % 5][i], h);
      }
      uint32_t sums[4][kSplit];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < kSplit; h++) {
          uint32_t &sum = sums[i][h];
          const int n = Swar::kPerWord * i + h;
          const uint32_t one = beside.at(n) + middle.at(n - kChannels) + middle.at(n + kChannels);
          const uint32_t two = far[i][h] + middle.at(n - 2 * kChannels) + middle.at(n + 2 * kChannels) +
                               beside.at(n - kChannels) + beside.at(n + kChannels);
          if constexpr (kHalves) {
            HalfPair s = multiply_add(HalfPair{middle.at(n)}, k.dense[0], HalfPair{k.init});
            s = multiply_add(HalfPair{one}, k.dense[1], s);
            sum = multiply_add(HalfPair{two}, k.dense[2], s).bits;
          } else {
            sum = k.init + k.dense[0] * middle.at(n) + k.dense[1] * one + k.dense[2] * two;
          }
        }
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if constexpr (kHalves)
          out[i] = join_halves<Swar>(k, sums[i][0], sums[i][1]);
        else
          out[i] = apply_epilogue<Epilogue::Clamp, Swar>(p, sums[i]);
      }
    }
  };
};

// 3x3 where 16-bit floats hold every partial sum. kCross: only the middle row and column count.
template <bool kCross, bool kTall = false>
struct SlidingHalf3 : SlidingOperation {
  using Tall = SlidingHalf3<kCross, !kCross>;
  static constexpr bool kAllArchs = !kCross && !kTall, kRowByRow = !kCross;
  static constexpr int kRadius = 1, kStripRows = kTall ? 8 : 4, kMinBlocks = kTall ? 6 : 8;

  template <typename Swar>
  struct State {
    uint32_t sums[3][2][4];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      LaneRow<Swar, 1> samples;
      samples.load(k, row);
#pragma unroll
      for (int t = 0; t < 3; t++) {
        const int r = j - t;
        if (r < 0 || r >= kStripRows) continue;
        const int reach = kCross && t != 1 ? 0 : 1;
#pragma unroll
        for (int n = 0; n < 8; n++) {
          HalfPair sum = {t ? sums[r % 3][n % 2][n / 2] : k.init};
#pragma unroll
          for (int dx = -reach; dx <= reach; dx++)
            sum = multiply_add(HalfPair{samples.at(n / 2 * Swar::kPerWord + n % 2 + dx * Swar::kChannels)},
                               k.dense[t * 3 + 1 + dx], sum);
          sums[r % 3][n % 2][n / 2] = sum.bits;
        }
      }
      if (j < 2) return;
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = join_halves<Swar>(k, sums[(j - 2) % 3][0][i], sums[(j - 2) % 3][1][i]);
    }
  };
};

// [-2 -1 0; -1 1 1; 0 1 2]: two samples on the right and two below, the corner in both, less the same on the left and
// above. Two on the right of one result are two on the left of another in the next row.
struct SlidingEmboss : SlidingOperation {
  using Tall = SlidingEmboss;
  static constexpr bool kAllArchs = false, kRecomputesRows = true;
  static constexpr int kRadius = 1, kStripRows = 4, kMinBlocks = 8;

  template <typename Swar>
  struct State {
    using Row = LaneRow<Swar, 1>;
    static constexpr int kChannels = Swar::kChannels, kSplit = Swar::kSplit;
    Row last;
    uint32_t sums[2][4][kSplit];  // of results whose first row has entered: the one before, and its first two

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      Row now, down;  // down: sums of this row and the last
      now.load(k, row);
      if (j >= 1) {
#pragma unroll
        for (int i = 0; i < 4 + 2 * Row::kWords; i++)
#pragma unroll
          for (int h = 0; h < kSplit; h++) down.part[h][i] = last.part[h][i] + now.part[h][i];
      }
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t result[kSplit] = {};
#pragma unroll
        for (int h = 0; h < kSplit; h++) {
          const int n = Swar::kPerWord * i + h, before = n - kChannels, after = n + kChannels;
          if (j >= 2) result[h] = sums[j % 2][i][h] + down.at(after) + (now.at(n) + now.at(after));
          if (j >= 1) sums[(j + 1) % 2][i][h] += now.at(n) - down.at(before);
          sums[j % 2][i][h] = k.init - now.at(before) - now.at(n);
        }
        if (j >= 2) out[i] = apply_epilogue<Epilogue::Clamp, Swar>(p, result);
      }
      last = now;
    }
  };
};

// Word i of the lane's results: sample(n) makes the one at n in rows.
template <typename Swar, typename Sample>
__device__ inline uint32_t make_word(const SwarParams &k, int i, Sample sample) {
  uint32_t parts[Swar::kSplit];
#pragma unroll
  for (int h = 0; h < Swar::kSplit; h++) parts[h] = sample(Swar::kPerWord * i + h);
  return Swar::join(k, parts);
}

__device__ inline float approximate_root(float v) {
#ifdef __CUDA_ARCH__
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
  return root;
#else
  return __builtin_sqrtf(v);
#endif
}

// Magnitudes of pairs, to samples of no more than `white`, up to 1023. The approximate root is rounded to the right
// integer: squares of integers are n^2 + n or less, or n^2 + n + 1 or more, so that up to n = 1022 a root is farther
// from n + 1/2 than 1 / (8n + 4), which is more than 2^-23 times the root, and that is as far as the instruction errs.
template <bool kEuclidean>
__device__ inline uint32_t magnitude_pair(HalfPair x, HalfPair y, uint32_t white) {
  if constexpr (!kEuclidean) return vmin(absolute(x) + absolute(y), HalfPair{white}).bits;
  const auto root = [](float a, float b) { return approximate_root(a * a + b * b); };
  return __vminu2(round_to_pair(root(low_float(x), low_float(y)), root(high_float(x), high_float(y))).bits, white);
}

// sqrt(x^2 + y^2) rounded to an integer, |x| and |y| less than 2^22. The float estimate is one off at most; whether it
// is follows from the difference of the squares, which 32 bits hold even where they do not hold the squares.
__device__ inline uint32_t rounded_magnitude(int x, int y) {
  constexpr uint32_t kMagic = 0x4b400000u;  // 1.5 * 2^23: the last bits of a float between 2^23 and 2^24 count units
  const float fx = __uint_as_float(kMagic + static_cast<uint32_t>(x)) - 12582912.0f;
  const float fy = __uint_as_float(kMagic + static_cast<uint32_t>(y)) - 12582912.0f;
  const int root = static_cast<int>(__float_as_uint(approximate_root(fx * fx + fy * fy) + 12582912.0f) - kMagic);
  const uint32_t ux = static_cast<uint32_t>(x), uy = static_cast<uint32_t>(y), r = static_cast<uint32_t>(root);
  const int difference = static_cast<int>(ux * ux + uy * uy - r * r);
  return r + (difference > root) - (difference <= -root && root > 0);
}

// Signed x and y to samples.
template <bool kEuclidean, typename Swar>
__device__ inline uint32_t magnitude_sample(const SwarParams &k, uint32_t x, uint32_t y) {
  if constexpr (Swar::kPairs) {
    return magnitude_pair<kEuclidean>(HalfPair{x}, HalfPair{y}, Swar::white(k));
  } else {
    const int sx = static_cast<int>(x), sy = static_cast<int>(y);
    return Swar::vmin(kEuclidean ? rounded_magnitude(sx, sy) : static_cast<uint32_t>(abs(sx) + abs(sy)), k.sample_mask);
  }
}

// |x| + |y| or its root of a smoothing column [a b a] with a difference row [-1 0 1], and the transpose: sobel, scharr,
// prewitt. kUnit: a is 1.
//
// Pairs are 16-bit floats. Sums of three are kept 2048 down where they may exceed 2047; a difference is rounded only
// where it is beyond all samples, and so is the result.
template <bool kEuclidean, bool kUnit, bool kTall = false>
struct SlidingGradient : SlidingOperation {
  using Tall = SlidingGradient<kEuclidean, kUnit, kEuclidean || !kUnit>;
  static constexpr bool kAllArchs = !kUnit && !kTall;
  static constexpr bool kHoldsMiddle = true, kRecomputesRows = true;
  static constexpr int kRadius = 1, kStripRows = kTall ? 6 : 4, kMinBlocks = 8;
  static constexpr int kFewerBlocks = kTall, kWordWarps = 2;

  template <typename Swar>
  struct State {
    static constexpr int kChannels = Swar::kChannels, kSplit = Swar::kSplit;
    uint32_t last[2][kSplit][4];  // the two rows before: [age][part][word]

    __device__ static uint32_t smooth(const SwarParams &k, uint32_t first, uint32_t middle, uint32_t last,
                                      uint32_t init) {
      if constexpr (!Swar::kPairs) return (first + last) * k.column[0] + middle * k.column[1];
      HalfPair ends = HalfPair{first} + HalfPair{last};
      if constexpr (!kUnit) ends = multiply_add(ends, k.column[0], HalfPair{init});
      return multiply_add(HalfPair{middle}, k.column[1], ends).bits;
    }
    __device__ static uint32_t minus(uint32_t a, uint32_t b) {
      if constexpr (Swar::kPairs) return (HalfPair{a} - HalfPair{b}).bits;
      return a - b;
    }

    __device__ void middle(const SwarParams &k, int, uint32_t (&words)[4]) const {
#pragma unroll
      for (int i = 0; i < 4; i++) words[i] = join_parts<Swar>(k, [&](int h) { return last[1][h][i]; });
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      LaneRow<Swar, 1> sum, delta;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t now[kSplit];
#pragma unroll
        for (int h = 0; h < kSplit; h++) now[h] = Swar::part(k, row[i], h);
        if (j >= 2) {
#pragma unroll
          for (int h = 0; h < kSplit; h++)
            sum.part[h][sum.kWords + i] = smooth(k, now[h], last[0][h][i], last[1][h][i], kHalfMinus2048);
#pragma unroll
          for (int h = 0; h < kSplit; h++) delta.part[h][sum.kWords + i] = minus(now[h], last[1][h][i]);
        }
#pragma unroll
        for (int h = 0; h < kSplit; h++) {
          last[1][h][i] = last[0][h][i];
          last[0][h][i] = now[h];
        }
      }
      if (j < 2) return;
      sum.exchange();
      delta.exchange();
      const auto sample = [&](int n) {
        return magnitude_sample<kEuclidean, Swar>(
            k, minus(sum.at(n + kChannels), sum.at(n - kChannels)),
            smooth(k, delta.at(n - kChannels), delta.at(n), delta.at(n + kChannels), 0));
      };
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = make_word<Swar>(k, i, sample);
    }
  };
};

// Any function of the 3x3 samples around a pixel. Function::sample<Swar>(p, at) makes a register of results of
// at(dx, dy), the samples dx pixels on in the row dy below.
template <typename Function>
struct SlidingWindow3 : SlidingOperation {
  using Tall = SlidingWindow3;
  static constexpr bool kRowByRow = true, kHoldsMiddle = true;
  static constexpr int kRadius = 1, kStripRows = Function::kStripRows;
  static constexpr int kMinBlocks = Function::kMinBlocks;

  template <typename Swar>
  struct State {
    LaneRow<Swar, 1> rows[3];

    __device__ void middle(const SwarParams &k, int j, uint32_t (&words)[4]) const { rows[(j + 2) % 3].join(k, words); }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      rows[j % 3].load(p.swar, row);
      if (j < 2) return;
      const auto sample = [&](int n) {
        return Function::template sample<Swar>(
            p, [&](int dx, int dy) { return rows[(j + 2 + dy) % 3].at(n + dx * Swar::kChannels); });
      };
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = make_word<Swar>(p.swar, i, sample);
    }
  };
};

template <bool kEuclidean>
struct RobertsFunction {
  static constexpr int kStripRows = 4, kMinBlocks = 8;

  template <typename Swar, typename At>
  __device__ static uint32_t sample(const SlidingParams &p, At at) {
    const auto minus = [](uint32_t a, uint32_t b) {
      if constexpr (Swar::kPairs) return (HalfPair{a} - HalfPair{b}).bits;
      return a - b;
    };
    return magnitude_sample<kEuclidean, Swar>(p.swar, minus(at(0, 0), at(1, 1)), minus(at(1, 0), at(0, 1)));
  }
};

// The magnitude of a smoothing column [a b a] with a difference row [-1 0 1], and of the transpose, with any norm and
// any rounding: with a bias, say, or a divisor.
struct MagnitudeFunction {
  static constexpr int kStripRows = 4, kMinBlocks = 6;

  template <typename Swar, typename At>
  __device__ static uint32_t sample(const SlidingParams &p, At at) {
    const auto smooth = [&](uint32_t first, uint32_t middle, uint32_t last) {
      return (first + last) * p.swar.column[0] + middle * p.swar.column[1];
    };
    const uint32_t left = smooth(at(-1, -1), at(-1, 0), at(-1, 1)), right = smooth(at(1, -1), at(1, 0), at(1, 1));
    const uint32_t above = smooth(at(-1, -1), at(0, -1), at(1, -1)), below = smooth(at(-1, 1), at(0, 1), at(1, 1));
    if constexpr (Swar::kPairs) {
      return round<true>(p, (right & 0xffffu) - (left & 0xffffu), (below & 0xffffu) - (above & 0xffffu)) |
             round<true>(p, (right >> 16) - (left >> 16), (below >> 16) - (above >> 16)) << 16;
    } else {
      return round<false>(p, right - left, below - above);
    }
  }

 private:
  // kFits32: 32 bits hold the squares, and the float estimate of the root of their sum is one off at most.
  template <bool kFits32>
  __device__ static uint32_t round(const SlidingParams &p, uint32_t x, uint32_t y) {
    int v;
    if (!kFits32 || p.norm == Norm::L1) {
      v = magnitude(p.norm, static_cast<int>(x), static_cast<int>(y));
    } else {
      const uint32_t square = x * x + y * y;
      uint32_t root = static_cast<uint32_t>(approximate_root(static_cast<float>(square)));
      if (root * root > square) root--;
      if ((root + 1) * (root + 1) <= square) root++;
      v = static_cast<int>(p.norm == Norm::L2 ? root : 2 * root + (root * root != square));
    }
    return static_cast<uint32_t>(round_to_sample(v, p.rounding[0]));
  }
};

// A gain times the largest sum of three neighbours in a row, of the ring of eight, and another times all eight.
template <bool kTall = false>
struct SlidingKirsch : SlidingOperation {
  using Tall = SlidingKirsch<true>;
  static constexpr bool kAllArchs = !kTall, kRowByRow = true, kHoldsMiddle = true;
  static constexpr int kRadius = 1, kStripRows = kTall ? 6 : 4, kMinBlocks = kTall ? 5 : 6;
  static constexpr int kFewerBlocks = kTall ? 1 : 2, kWarps = 2, kWordWarps = 2;

  template <typename Swar>
  struct State {
    using Row = LaneRow<Swar, 1>;
    static constexpr int kChannels = Swar::kChannels;
    Row rows[3];

    __device__ void middle(const SwarParams &k, int j, uint32_t (&words)[4]) const { rows[(j + 2) % 3].join(k, words); }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      rows[j % 3].load(k, row);
      if (j < 2) return;
      const Row &above = rows[(j + 1) % 3], &middle = rows[(j + 2) % 3], &below = rows[j % 3];
      Row column;  // sums of three
#pragma unroll
      for (int i = 0; i < 4 + 2 * Row::kWords; i++)
#pragma unroll
        for (int h = 0; h < Swar::kSplit; h++)
          column.part[h][i] = above.part[h][i] + middle.part[h][i] + below.part[h][i];
      const auto sample = [&](int n) {
        const int before = n - kChannels, after = n + kChannels;
        // Both corners on a side have the sample between them, and one of two pairs in a row.
        const auto pair = [&](int m) {
          return Swar::vmax(above.at(m) + above.at(m + kChannels), below.at(m) + below.at(m + kChannels));
        };
        const uint32_t top = above.at(before) + above.at(n) + above.at(after);
        const uint32_t bottom = below.at(before) + below.at(n) + below.at(after);
        const uint32_t edges = Swar::vmax(Swar::vmax(top, bottom), column.at(before), column.at(after));
        const uint32_t most = Swar::vmax(edges, pair(before) + middle.at(before), pair(n) + middle.at(after));
        const uint32_t all = top + bottom + middle.at(before) + middle.at(after);
        const uint32_t t = k.init + k.dense[0] * most + k.dense[1] * all;
        if constexpr (Swar::kPairs) return clamp_pair<Swar>(k, t, k.minus_low);
        return clamp_to_sample<Swar>(k, t);
      };
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = make_word<Swar>(k, i, sample);
    }
  };
};

// The middle of: the greatest of the columns' least, the middle of their middles, the least of their greatest. Columns
// are sorted as rows enter, once for the three windows that they are part of.
template <bool kTall = false>
struct SlidingMedian3 : SlidingOperation {
  using Tall = SlidingMedian3<true>;
  static constexpr bool kAllArchs = !kTall;
  static constexpr int kRadius = 1, kStripRows = kTall ? 8 : 4, kMinBlocks = kTall ? 6 : 7;
  static constexpr int kFewerBlocks = kTall, kWordWarps = 2;
  static constexpr bool kHoldsMiddle = !kTall, kRecomputesRows = !kTall;

  template <typename Swar>
  struct State {
    // Median of three: a + b + c - min - max. FP16 additions, two at a time, issue on another pipe than the integer
    // comparisons.
    template <bool kFloats>
    __device__ static uint32_t middle(uint32_t a, uint32_t b, uint32_t c, uint32_t least, uint32_t largest) {
      if constexpr (kFloats && Swar::kSampleBytes == 1)
        return (HalfPair{a} - HalfPair{least} + (HalfPair{b} - HalfPair{largest}) + HalfPair{c}).bits;
      return a + b + c - least - largest;
    }
    __device__ static uint32_t middle(uint32_t a, uint32_t b, uint32_t c) {
      return middle<true>(a, b, c, Swar::vmin(a, b, c), Swar::vmax(a, b, c));
    }

    uint32_t last[2][Swar::kSplit][4];  // the two rows before: [age][part][word]

    __device__ void middle(const SwarParams &k, int, uint32_t (&words)[4]) const {
#pragma unroll
      for (int i = 0; i < 4; i++) words[i] = join_parts<Swar>(k, [&](int h) { return last[1][h][i]; });
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      LaneRow<Swar, 1> least, mid, largest;
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int h = 0; h < Swar::kSplit; h++) {
          const uint32_t a = Swar::part(k, row[i], h), b = last[0][h][i], c = last[1][h][i];
          if (j >= 2) {
            const int word = least.kWords + i;
            const uint32_t low = Swar::vmin(a, b, c), high = Swar::vmax(a, b, c);
            least.part[h][word] = low;
            largest.part[h][word] = high;
            mid.part[h][word] = middle<kTall>(a, b, c, low, high);
          }
          last[1][h][i] = b;
          last[0][h][i] = a;
        }
      }
      if (j < 2) return;
      least.exchange();
      mid.exchange();
      largest.exchange();
      const auto sample = [&](int n) {
        constexpr int c = Swar::kChannels;
        return middle(Swar::vmax(least.at(n - c), least.at(n), least.at(n + c)),
                      middle(mid.at(n - c), mid.at(n), mid.at(n + c)),
                      Swar::vmin(largest.at(n - c), largest.at(n), largest.at(n + c)));
      };
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = make_word<Swar>(k, i, sample);
    }
  };
};

// The greatest of a square window, or the least.
template <int kSize, bool kMin, bool kTall = false>
struct SlidingExtremum : SlidingOperation {
  using Tall = SlidingExtremum<kSize, kMin, (kSize > 5)>;
  static constexpr bool kAllArchs = false, kHasTailKernel = !kTall, kRowByRow = kSize > 5, kHoldsMiddle = true;
  static constexpr int kRadius = kSize / 2, kStripRows = kTall ? 8 : 4;
  static constexpr int kMinBlocks = kSize <= 5 ? 8 : kTall ? 5 : 6;
  static constexpr int kFewerBlocks = kSize == 5, kWarps = kSize > 5 ? 2 : kMostWarps, kWordWarps = kWarps;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    SquareRows<Swar, kRadius> square;

    __device__ void middle(const SwarParams &k, int j, uint32_t (&words)[4]) const {
      Order::join(k, square.rows[(j - kRadius) % kSize], 0, words);
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      Order::split(k, row, 0, square.rows[j % kSize]);
      if (j < 2 * kRadius) return;
      typename Order::Row extremum;
      square.template extrema<kMin>(extremum);
      Order::join(k, extremum, 0, out);
    }
  };
};

// The greatest of a structuring element that is symmetric both ways and has no gaps, or the least; squares are special
// ones. At each distance from the middle a column of so many pixels above and below it, so many and one are k.column,
// or 0 for no column.
template <int kRadius_>
struct SlidingElement : SlidingOperation {
  using Tall = SlidingElement;
  static constexpr int kRadius = kRadius_, kStripRows = 4;
  static constexpr int kMinBlocks = kRadius == 2 ? 5 : 4;
  static constexpr int kFewerBlocks = 1;
  static constexpr bool kRowByRow = true, kHoldsMiddle = true;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    using Row = typename Order::Row;
    static constexpr int kSize = 2 * kRadius + 1;
    Row rows[kSize];

    __device__ void middle(const SwarParams &k, int j, uint32_t (&words)[4]) const {
      Order::join(k, rows[(j - kRadius) % kSize], k.flip, words);
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
      Order::split(k, row, k.flip, rows[j % kSize]);
      if (j < 2 * kRadius) return;
      // The greatest of each column's middle, and of one, two ... pixels above and below it.
      Row columns[kRadius + 1];
#pragma unroll
      for (int above = 0; above <= kRadius; above++)
#pragma unroll
        for (int h = 0; h < Swar::kSplit; h++)
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const uint32_t first = rows[(j - kRadius - above) % kSize][h][i];
            const uint32_t last = rows[(j - kRadius + above) % kSize][h][i];
            columns[above][h][i] = above ? Swar::vmax(columns[above ? above - 1 : 0][h][i], first, last) : first;
          }
      Row greatest = {};
      add_columns<0>(k, columns, greatest);
      Order::join(k, greatest, k.flip, out);
    }

    // Takes the maxima of columns kDistance pixels from the middle, and farther, into `greatest`.
    template <int kDistance>
    __device__ static void add_columns(const SwarParams &k, const Row (&columns)[kRadius + 1], Row &greatest) {
      if constexpr (kDistance <= kRadius) {
        if (k.column[kDistance]) {
          Row column;
#pragma unroll
          for (int h = 0; h < Swar::kSplit; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
              column[h][i] = columns[0][h][i];
#pragma unroll
              for (int above = 1; above <= kRadius; above++)
                if (k.column[kDistance] > above) column[h][i] = columns[above][h][i];
            }
          LaneRow<Swar, kDistance> line;
          line.set(column);
          line.exchange();
#pragma unroll
          for (int h = 0; h < Swar::kSplit; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
              const int n = Swar::kPerWord * i + h, far = kDistance * Swar::kChannels;
              greatest[h][i] = Swar::vmax(greatest[h][i], line.at(n - far), line.at(n + far));
            }
        }
        add_columns<kDistance + 1>(k, columns, greatest);
      }
    }
  };
};

// The greatest of a square of 9x9 bytes, or the least, as three of threes, three apart, both ways.
template <bool kMin, bool kTall = false>
struct SlidingExtremum9 : SlidingOperation {
  using Tall = SlidingExtremum9<kMin, true>;
  static constexpr bool kAllArchs = false, kRowByRow = true;
  static constexpr int kRadius = 4, kStripRows = kTall ? 8 : 6, kMinBlocks = kTall ? 4 : 5;
  static constexpr int kFewerBlocks = !kTall;

  template <typename Swar>
  struct State {
    using Order = Ordered<Swar>;
    using Row = typename Order::Row;
    uint32_t rows[3][4], threes[7][4];  // the last rows, and the extrema of three of them; words

    __device__ static uint32_t extreme(uint32_t a, uint32_t b, uint32_t c) {
      return kMin ? Swar::vmin(a, b, c) : Swar::vmax(a, b, c);
    }

    __device__ static void down(const SwarParams &k, const uint32_t (&a)[4], const uint32_t (&b)[4],
                                const uint32_t (&c)[4], Row &result) {
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < Swar::kSplit; h++)
          result[h][i] = extreme(Order::part(k, a[i], h), Order::part(k, b[i], h), Order::part(k, c[i], h));
    }

    // Extrema of three samples of a row each, kStep pixels apart.
    template <int kStep>
    __device__ static void along(Row &row) {
      LaneRow<Swar, kStep> samples;
      samples.set(row);
      samples.exchange();
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < Swar::kSplit; h++) {
          constexpr int kApart = kStep * Swar::kChannels;
          const int n = Swar::kPerWord * i + h;
          row[h][i] = extreme(samples.at(n - kApart), samples.at(n), samples.at(n + kApart));
        }
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const SwarParams &k = p.swar;
#pragma unroll
      for (int i = 0; i < 4; i++) rows[j % 3][i] = row[i];
      if (j < 2) return;
      Row result;
      down(k, rows[0], rows[1], rows[2], result);
      Order::join(k, result, 0, threes[j % 7]);
      if (j < 2 * kRadius) return;
      down(k, threes[j % 7], threes[(j + 4) % 7], threes[(j + 1) % 7], result);
      along<1>(result);
      along<3>(result);
      Order::join(k, result, 0, out);
    }
  };
};

// A lane's part of a strip of rows.
struct LaneStrip {
  int first_byte;  // of a row of the part; outside the frame in lanes at its edges
  int y0;          // row of the first result
};

template <typename Swar>
constexpr int kPixelBytes = Swar::kChannels * 4 / Swar::kPerWord;

// Copied and filled channels in place of filtered ones, in the words at `first_byte` of a row.
template <typename Swar>
__device__ inline void blend_vector(const PartParams &part, int first_byte, const uint32_t (&original)[4],
                                    uint32_t (&row)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int phase = Swar::kChannels == 3 ? (first_byte / 4 + 6 + i) % 3 : i % 2;  // also of lanes before the frame
    row[i] = blend_channels(part, row[i], original[i], phase);
  }
}

// Which of the frame's 16 bytes at its left or right edge is byte n of the lane beside that edge.
template <int kPixel>
__device__ constexpr int mirrored_byte(Border border, bool left, int n) {
  const int distance = left ? kVectorBytes - 1 - n : n;
  const int outside = distance / kPixel;  // pixels between this one and the frame
  const int inside = border == Border::Replicate ? 0 : border == Border::Reflect ? outside : outside + 1;
  const int byte = inside * kPixel + kPixel - 1 - distance % kPixel;
  return left ? byte : kVectorBytes - 1 - byte;
}

// The four bytes of word i of such a lane, as a digit each.
template <int kPixel>
__device__ constexpr uint32_t mirrored_bytes(Border border, bool left, int i) {
  uint32_t bytes = 0;
  for (int b = 0; b < 4; b++) bytes |= (mirrored_byte<kPixel>(border, left, 4 * i + b) & 15u) << 4 * b;
  return bytes;
}

// Word i from the frame on.
template <int kPixel>
__device__ inline uint32_t mirrored_word(Border border, bool left, int i) {
  const auto of = [&](Border b) {
    return left ? mirrored_bytes<kPixel>(b, true, 3 - i) : mirrored_bytes<kPixel>(b, false, i);
  };
  return border == Border::Replicate ? of(Border::Replicate)
         : border == Border::Reflect ? of(Border::Reflect)
                                     : of(Border::Reflect101);
}

// Makes of the 16 bytes at an edge, which lanes beside the frame have loaded, the pixels as far as the radius.
template <typename Swar, int kRadius, int kRows>
__device__ inline void mirror(const FrameParams &p, const PartParams &part, int first_byte, bool left, bool right,
                              uint32_t (&strip)[kRows][4]) {
  constexpr int kWords = (kRadius * kPixelBytes<Swar> + 3) / 4;
  if (p.border == Border::Wrap) return;  // what lies at the other edge is what they need
  uint32_t bytes[kWords], of_half[kWords], fixed[kWords];
#pragma unroll
  for (int i = 0; i < kWords; i++) {
    bytes[i] = mirrored_word<kPixelBytes<Swar>>(p.border, left, i);
    of_half[i] = 0x3210u | (bytes[i] >> 1 & 0x4444u);
    bytes[i] &= 0x7777u;
    fixed[i] = border_word<Swar::kChannels>(part, first_byte, left ? 3 - i : i);
  }
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t word[kWords];
#pragma unroll
    for (int i = 0; i < kWords; i++) {
      word[i] = __byte_perm(__byte_perm(strip[j][0], strip[j][1], bytes[i]),
                            __byte_perm(strip[j][2], strip[j][3], bytes[i]), of_half[i]);
      if (p.border == Border::Constant) word[i] = fixed[i];
    }
#pragma unroll
    for (int i = 0; i < kWords; i++) {
      // Words that no neighbour reads are left undefined.
      if (left) strip[j][3 - i] = word[i];
      if (right) strip[j][i] = word[i];
    }
  }
}

// Position i of a line of more than one sample, not farther outside than it is long, by the border's rule.
__device__ inline int fold(Border border, int i, int n) {
  if (i >= 0 && i < n) return i;
  if (border == Border::Constant) return -1;
  if (border == Border::Wrap) return i < 0 ? i + n : i - n;
  if (border == Border::Reflect) return (i < 0 ? -1 : 2 * n - 1) - i;
  if (border == Border::Reflect101) return (i < 0 ? 0 : 2 * n - 2) - i;
  return i < 0 ? 0 : n - 1;
}

// Loads the rows of a strip from `column` on, the address of the lane's bytes in row 0 of the part. row_at(y) is the
// row that row y is like, -1 where that is the border's value.
template <typename Swar, int kRadius, int kRows, typename RowAt>
__device__ inline void load_rows(const PartParams &part, LaneStrip s, const uint8_t *column, RowAt row_at,
                                 uint32_t (&strip)[kRows][4]) {
  const int top = s.y0 - kRadius;
  if (top >= 0 && top + kRows <= part.height) {
    const uint8_t *at = column + top * part.source_pitch;
#pragma unroll
    for (int j = 0; j < kRows; j++, at += part.source_pitch)
      split_words(__ldg(reinterpret_cast<const uint4 *>(at)), strip[j]);
  } else {
    const int row_of_lane = row_at(top + static_cast<int>(threadIdx.x % 32));  // lane j's is row j of the strip
#pragma unroll
    for (int j = 0; j < kRows; j++) {
      const int y = __shfl_sync(0xffffffffu, max(row_of_lane, 0), j);
      split_words(__ldg(reinterpret_cast<const uint4 *>(column + y * part.source_pitch)), strip[j]);
    }
    if (const unsigned filled = __ballot_sync(0xffffffffu, row_of_lane < 0)) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t border = border_word<Swar::kChannels>(part, s.first_byte, i);
#pragma unroll
        for (int j = 0; j < kRows; j++)
          if (filled >> j & 1) strip[j][i] = border;
      }
    }
  }
}

// A strip of a warp whose lanes lie either wholly inside or wholly outside the frame, which has more rows than the
// radius.
template <typename Swar, int kRadius, int kRows>
__device__ inline void load_strip(const FrameParams &p, const PartParams &part, LaneStrip s,
                                  uint32_t (&strip)[kRows][4]) {
  const int row_bytes = part.width * kPixelBytes<Swar>;
  const bool left = s.first_byte < 0, right = s.first_byte >= row_bytes;
  int byte = s.first_byte;
  if (left || right) byte = left == (p.border == Border::Wrap) ? row_bytes - kVectorBytes : 0;
  // A row that is outside even so is farther from the frame than any window reaches.
  const auto row_at = [&](int y) { return min(fold(p.border, y, part.height), part.height - 1); };
  load_rows<Swar, kRadius>(part, s, part.source + byte, row_at, strip);
  if (__any_sync(0xffffffffu, left || right)) mirror<Swar, kRadius>(p, part, s.first_byte, left, right, strip);
}

// ---- Rows that end with a tail ----

// Bytes at either edge of a row that lanes beside the frame, or with its end in them, may need: those of edge 0 end
// with byte 0 of the frame, those of edge 1 begin with the lane in which its last row's bytes end.
constexpr int kEdgeBytes = 32, kEdges = 2;

// Dynamic shared memory of a block, bytes, for strips of so many rows, with what windows reach.
CUDACONV_HOST_DEVICE constexpr size_t edge_bytes(int warps, int rows) {
  return static_cast<size_t>(warps) * kEdges * kEdgeBytes * rows;
}

// The first byte of edge 1.
template <typename Swar>
__device__ inline int second_edge(const PartParams &part) {
  return part.width * kPixelBytes<Swar> & -kVectorBytes;
}

// A warp's rows of edges in shared memory.
template <int kRows>
__device__ inline uint8_t *warp_edges(int edge) {
  return shared_memory<uint8_t>() + (threadIdx.x / 32 * kRows * kEdges + edge) * kEdgeBytes;
}

// Puts the strip's bytes at the edges there, a byte of each row a lane. Before its rows are loaded: then it takes no
// registers that they need.
template <typename Swar, int kRadius, int kRows>
__device__ inline void gather_edges(const FrameParams &p, const PartParams &part, LaneStrip s) {
  constexpr int kPixel = kPixelBytes<Swar>, kRowBytes = kEdges * kEdgeBytes;
  constexpr int kBefore = 48;  // so many bytes before the frame numbers are not negative; of whole pixels and words
  const int lane = threadIdx.x % 32, warp_byte = s.first_byte - lane * kVectorBytes, last = second_edge<Swar>(part);
  const int row_of_lane = border_index_no_div(p.border, s.y0 - kRadius + lane, part.height);
#pragma unroll 1
  for (int edge = 0; edge < kEdges; edge++) {
    if (edge ? warp_byte + 32 * kVectorBytes <= last : warp_byte >= 0) continue;
    const int byte = (edge ? last : -kEdgeBytes) + lane + kBefore, pixel = byte / kPixel - kBefore / kPixel;
    const bool is_needed = pixel >= -kRadius && pixel < part.width + kRadius;
    const int x = is_needed ? border_index_no_div(p.border, pixel, part.width) : -1;
    const uint32_t word = part.border_word[byte / 4 % (Swar::kChannels == 3 ? 3 : 2)];
    const uint8_t *from = part.source + max(x, 0) * kPixel + byte % kPixel;
    uint8_t *to = warp_edges<kRows>(edge) + lane;
#pragma unroll
    for (int j = 0; j < kRows; j++) {
      const int y = __shfl_sync(0xffffffffu, row_of_lane, j);
      const uint32_t sample = __ldg(from + max(y, 0) * part.source_pitch);
      to[j * kRowBytes] = static_cast<uint8_t>(x < 0 || y < 0 ? word >> byte % 4 * 8 : sample);
    }
  }
  __syncwarp();
}

// Loads this lane's 16 bytes from the gathered edge; only lanes left of byte 0, or at and after the row's tail, have
// any.
template <typename Swar, int kRows>
__device__ inline void take_edges(const PartParams &part, LaneStrip s, uint32_t (&strip)[kRows][4]) {
  const int edge = s.first_byte >= 0;
  const int byte = edge ? s.first_byte - second_edge<Swar>(part) : kEdgeBytes - kVectorBytes;
  if (byte < 0 || byte >= kEdgeBytes) return;
  const auto *own = reinterpret_cast<const uint4 *>(warp_edges<kRows>(edge) + byte);
#pragma unroll
  for (int j = 0; j < kRows; j++) split_words(own[j * (kEdges * kEdgeBytes / kVectorBytes)], strip[j]);
}

// A strip of a warp, of rows of at least one whole lane.
template <typename Swar, int kRadius, int kRows>
__device__ inline void load_tail_strip(const FrameParams &p, const PartParams &part, LaneStrip s,
                                       uint32_t (&strip)[kRows][4]) {
  const bool is_whole = s.first_byte >= 0 && s.first_byte + kVectorBytes <= part.width * kPixelBytes<Swar>;
  const bool gathers = !__all_sync(0xffffffffu, is_whole);
  if (gathers) gather_edges<Swar, kRadius, kRows>(p, part, s);
  const auto row_at = [&](int y) { return border_index_no_div(p.border, y, part.height); };
  load_rows<Swar, kRadius>(part, s, part.source + (is_whole ? s.first_byte : 0), row_at, strip);
  if (gathers) take_edges<Swar>(part, s, strip);
}

// Takes the rows of a strip through the operation; store(r, words, original) has the words of row r of results, and
// original(words) the samples in their place. It returns whether there are more of them in the frame.
template <typename Operation, typename Swar, int kRows, typename Store>
__device__ inline void run_strip(const typename Operation::Params &p, const PartParams &part, LaneStrip s,
                                 const uint32_t (&strip)[kRows][4], Store store) {
  typename Operation::template State<Swar> state;
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t out[4];
    if constexpr (std::is_same_v<typename Operation::Params, SlidingParams>)
      state.enter(p, j, strip[j], out);
    else
      state.enter(p, part, s, j, strip, out);
    const auto original = [&](uint32_t(&words)[4]) {
      if constexpr (Operation::kHoldsMiddle) {
        state.middle(p.swar, j, words);
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] = strip[j - Operation::kRadius][i];
      }
    };
    if (j >= 2 * Operation::kRadius && !store(j - 2 * Operation::kRadius, out, original)) return;
  }
}

// How rows end. Whole: rows of all parts are a multiple of 16 bytes, and there are more of them than the radius. Tail:
// rows have at least 16 bytes.
enum class Ends { Whole, Tail };

template <typename Operation, typename Swar, Ends kEnds>
__device__ inline void slide(const typename Operation::Params &p, const PartParams &part, int column, int y0) {
  // Planes of one or two channels are filtered whole, or not at all, see can_slide().
  constexpr bool kBlends = Swar::kChannels > 2;
  const int lane = threadIdx.x % 32;
  constexpr int kRows = Operation::kStripRows + 2 * Operation::kRadius;
  const LaneStrip s = {(column * kWarpLanes + lane - 1) * kVectorBytes, y0};
  const bool writes = lane >= 1 && lane <= kWarpLanes && s.first_byte < part.width * kPixelBytes<Swar>;
  const int left = part.height - s.y0, rows = writes ? left : 0, end = writes ? part.height : 0;
  uint32_t strip[kRows][4];
  if constexpr (kEnds == Ends::Whole)
    load_strip<Swar, Operation::kRadius>(p, part, s, strip);
  else
    load_tail_strip<Swar, Operation::kRadius>(p, part, s, strip);
  // The tail's samples lie in shared memory, where its results take their places.
  const bool is_tail = kEnds == Ends::Tail && writes && s.first_byte + kVectorBytes > part.width * kPixelBytes<Swar>;
  uint4 *const tail = kEnds == Ends::Tail ? reinterpret_cast<uint4 *>(warp_edges<kRows>(1)) : nullptr;
  constexpr int kTailPitch = kEdges * kEdgeBytes / kVectorBytes;
  const auto has_row = [&](int r) { return Operation::kRecomputesRows ? s.y0 + r < end : r < rows; };
  uint8_t *target = part.target + s.y0 * part.target_pitch + s.first_byte;
  constexpr bool kRowByRow = Operation::kRowByRow || !Swar::kPairs || !kHas<Feature::MaskKernels>;
  // Channels to be copied are kept in registers, or read again where registers are scarce.
  constexpr bool kRereads =
      (kRowByRow && !(Operation::kHoldsMiddle && Swar::kPairs)) || (Operation::kRadius > 1 && Swar::kChannels != 4);
  run_strip<Operation, Swar>(p, part, s, strip, [&](int r, uint32_t(&out)[4], auto original) {
    const auto blend = [&] {
      uint32_t words[4];
      if constexpr (kRereads) {
        const uint8_t *source = part.source + (s.y0 + r) * part.source_pitch + s.first_byte;
        split_words(is_tail ? tail[(r + Operation::kRadius) * kTailPitch] : *reinterpret_cast<const uint4 *>(source),
                    words);
      } else {
        original(words);
      }
      blend_vector<Swar>(part, s.first_byte, words, out);
    };
    const auto put = [&] {
      const uint4 words = make_uint4(out[0], out[1], out[2], out[3]);
      if (is_tail)
        tail[r * kTailPitch] = words;
      else
        *reinterpret_cast<uint4 *>(target) = words;
    };
    if constexpr (!kBlends) {
      if (writes) put();
      // Also keeps the compiler from beginning more rows at once than there are registers for.
      if (r + 1 >= left) return false;
    } else if constexpr (kRowByRow) {
      if (has_row(r)) {
        if (part.has_unfiltered) blend();
        put();
      }
    } else {
      // All lanes blend, or none: what is left is a store with a condition, and no branch.
      if (part.has_unfiltered && (!kRereads || has_row(r))) blend();
      if (has_row(r)) put();
    }
    target += part.target_pitch;
    return true;
  });
  if constexpr (kEnds == Ends::Tail) {
    if (!__any_sync(0xffffffffu, is_tail)) return;
    __syncwarp();
    const int last = second_edge<Swar>(part);
    if (lane >= part.width * kPixelBytes<Swar> - last) return;
    const auto *from = reinterpret_cast<const uint8_t *>(tail) + lane;
    uint8_t *to = part.target + s.y0 * part.target_pitch + last + lane;
#pragma unroll
    for (int r = 0; r < Operation::kStripRows; r++)
      if (r < part.height - s.y0) to[r * part.target_pitch] = from[r * kEdges * kEdgeBytes];
  }
}

// The numbers of channels that a kernel is made for: frames of one or two a plane, and packed pixels of three or four.
enum class Channels { Planar, Packed3, Packed4 };

// Warps of a block.
template <typename Operation, Channels kChannels, typename Swar>
CUDACONV_HOST_DEVICE constexpr int block_warps() {
  if (Swar::kSampleBytes > 1) return kMostWarps;
  return kChannels == Channels::Packed4 ? Operation::kWordWarps : Operation::kWarps;
}

// How many blocks of four warps a multiprocessor is to hold. 16-bit samples that are added take a register each, and
// so do neighbours that are parts of two words; GPUs that have no instruction for an extremum of three pairs take more
// of them.
template <typename Operation, Channels kChannels, typename Swar, Ends kEnds>
__host__ __device__ constexpr int min_blocks() {
  if (!kHas<Feature::Packed16Bit>) return Operation::kMinBlocks / 2;
  if (kEnds == Ends::Tail) return Operation::kMinBlocks - 2;  // tails take registers
  if (!Swar::kPairs) return Operation::kMinBlocks - (Operation::kFewerBlocks > 1 ? Operation::kFewerBlocks : 1);
  return Operation::kMinBlocks - (kChannels == Channels::Packed4 ? 0 : Operation::kFewerBlocks);
}

// The first of the warp's rows of results.
template <typename Operation>
__device__ inline int strip_row(const Tile &tile) {
  return tile.y0 + warp_uniform(static_cast<int>(threadIdx.x / 32)) * Operation::kStripRows;
}

template <typename Operation, Channels kChannels, template <int> typename Swar, Ends kEnds = Ends::Whole>
__global__ void __launch_bounds__(32 * block_warps<Operation, kChannels, Swar<1>>(),
                                  min_blocks<Operation, kChannels, Swar<1>, kEnds>() * kMostWarps /
                                      block_warps<Operation, kChannels, Swar<1>>())
    sliding_kernel(const __grid_constant__ typename Operation::Params p) {
  if constexpr ((Operation::kAllArchs && kSwarOnAllArchs<Swar>) || kHas<Feature::MaskKernels>) {
    constexpr int kWarps = block_warps<Operation, kChannels, Swar<1>>();
    const Tile tile = locate_tile(p, 1, Operation::kStripRows * kWarps);
    const int column = tile.x0, y0 = strip_row<Operation>(tile);
    if (y0 >= tile.part.height) return;  // the whole warp
    if constexpr (kChannels == Channels::Planar) {
      if (!tile.part.has_filtered) {
        const int first = column * kWarpBytes, last = tile.part.width * tile.part.channels * Swar<1>::kSampleBytes;
        return copy_rows<2>(tile.part, first, min(first + kWarpBytes, last), y0, 1,
                            min(y0 + Operation::kStripRows, tile.part.height));
      }
    }
    if constexpr (kChannels == Channels::Packed3) {
      slide<Operation, Swar<3>, kEnds>(p, tile.part, column, y0);
    } else if constexpr (kChannels == Channels::Packed4) {
      slide<Operation, Swar<4>, kEnds>(p, tile.part, column, y0);
    } else {
      if (tile.part.channels == 1)
        slide<Operation, Swar<1>, kEnds>(p, tile.part, column, y0);
      else
        slide<Operation, Swar<2>, kEnds>(p, tile.part, column, y0);
    }
  }
}

}  // namespace cudaconv
