// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto prefers for small masks on planes whose samples lie side by side: they run near the speed of a
// copy.
//
// A lane owns 16 bytes of a row, a warp 30 such columns and the one on either side that its neighbours need. All rows
// of a strip are loaded at once, straight-line, so that many loads are under way; then the window slides down in
// registers: columns first, neighbours by warp shuffles, no shared memory. Lanes outside the frame load the pixels next
// to it by themselves; only where rows do not consist of whole lanes is a strip gathered in shared memory.
//
// All of it is exact; where lanes (see lanes.cuh) would not hold a sum the other kernels do the pass.
#pragma once

#include <type_traits>

#include "lanes.cuh"
#include "launch.cuh"
#include "sample.cuh"

namespace cudaconv {

constexpr int kLaneBytes = 16, kWarpLanes = 30, kWarpBytes = kLaneBytes * kWarpLanes;
constexpr int kSlidingWarps = 4, kSlidingThreads = 32 * kSlidingWarps;  // of a block, one below the other

// Sums, offset as PackedParams says, to a word of samples.
template <Finish kFinish, typename Lanes>
__device__ inline uint32_t finish_word(const SlidingParams &p, uint32_t even, uint32_t odd) {
  const PackedParams &k = p.packed;
  if constexpr (!Lanes::kPairs) {
    if constexpr (kFinish == Finish::Shift) return Lanes::join(k, even >> k.shift, odd >> k.shift);
    return Lanes::join(k, round_to_sample(static_cast<int32_t>(even), p.rounding[0]),
                       round_to_sample(static_cast<int32_t>(odd), p.rounding[0]));
  } else if constexpr (kFinish == Finish::Shift) {
    return permute_bytes(even, odd, 0x7351);
  } else if constexpr (kFinish == Finish::Clamp) {
    return Lanes::join(k, clamp_to_byte(even, k.minus_low), clamp_to_byte(odd, k.minus_low));
  } else if constexpr (kFinish == Finish::Absolute) {
    const auto sample = [&](uint32_t t) {
      return least(absolute(HalfPair{t} - HalfPair{k.zero}), HalfPair{0x00ff00ffu}).bits;
    };
    return Lanes::join(k, sample(even), sample(odd));
  } else if constexpr (kFinish == Finish::Divide) {
    return permute_bytes(permute_bytes((even & 0xffffu) * k.magic, (odd & 0xffffu) * k.magic, 0x0073),
                         permute_bytes((even >> 16) * k.magic, (odd >> 16) * k.magic, 0x0073), 0x5410);
  } else {
    const auto sample = [&](uint32_t t) {
      t = k.absolute ? difference<Lanes>(t, k.zero) + k.half : Lanes::largest(t, k.low) - k.low;
      t = Lanes::least(t, k.limit);
      if (!k.magic) return t >> k.shift & 0x00ff00ffu;
      return permute_bytes((t & 0xffffu) * k.magic, (t >> 16) * k.magic, 0x4743) & 0x00ff00ffu;
    };
    return Lanes::join(k, sample(even), sample(odd));
  }
}

// An operation takes the rows of the strip from above; each enter() may complete one row of results, four words. It
// says its radius, how many rows of results a strip has, and how many blocks a multiprocessor is to hold, which bounds
// the registers of a thread by 65536 / (blocks * 128): more of them hide more latency as long as nothing spills.
// General is the operation that does the same with the same parameters, whatever the finish.

// A mask with a row and a column: columns are summed as rows enter, then each finished row of sums along the row.
template <int kSize, Finish kFinish>
struct SlidingSeparable {
  using General = SlidingSeparable<kSize, Finish::Any>;
  static constexpr int kRadius = kSize / 2, kStripRows = 4;
  static constexpr int kMinBlocks = kSize == 3 ? 8 : kSize == 5 ? 7 : 5;
  // A mean's row is symmetric and begins with 1. Larger rows have to be symmetric: one multiplication then serves two
  // samples.
  static constexpr bool kMean = kFinish == Finish::Shift || kFinish == Finish::Divide;
  static constexpr bool kSymmetric = kMean || kSize > 3;

  template <typename Lanes>
  struct State {
    static constexpr int kChannels = Lanes::kChannels;
    uint32_t sums[kSize][2][4];

    __device__ static uint32_t row_sum(const PackedParams &k, const LaneRow<Lanes, kRadius> &sum, int n) {
      uint32_t result = k.init;
#pragma unroll
      for (int t = 0; t <= (kSymmetric ? kRadius : kSize - 1); t++) {
        const uint32_t left = sum.at(n + (t - kRadius) * kChannels), right = sum.at(n + (kRadius - t) * kChannels);
        if (kMean && t == 0)
          result += left + right;
        else
          result += k.row[t] * (kSymmetric && t != kRadius ? left + right : left);
      }
      return result;
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const PackedParams &k = p.packed;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t even = Lanes::even(k, row[i]), odd = Lanes::odd(k, row[i]);
#pragma unroll
        for (int t = 0; t < kSize; t++) {
          const int r = j - t;  // the result that this row is row t of
          if (r < 0 || r >= kStripRows) continue;
          uint32_t(&sum)[2][4] = sums[r % kSize];
          sum[0][i] = (t ? sum[0][i] : k.column_init) + k.column[t] * even;
          sum[1][i] = (t ? sum[1][i] : k.column_init) + k.column[t] * odd;
        }
      }
      const int r = j - 2 * kRadius;
      if (r < 0) return;
      LaneRow<Lanes, kRadius> sum;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        sum.even[sum.kWords + i] = sums[r % kSize][0][i];
        sum.odd[sum.kWords + i] = sums[r % kSize][1][i];
      }
      sum.exchange();
#pragma unroll
      for (int i = 0; i < 4; i++)
        out[i] = finish_word<kFinish, Lanes>(p, row_sum(k, sum, Lanes::kPerWord * i),
                                             row_sum(k, sum, Lanes::kPerWord * i + 1));
    }
  };
};

// A mask without factors: 3x3, or the diamond |dx| + |dy| <= 2 of a 5x5.
template <int kSize, Finish kFinish>
struct SlidingDense {
  using General = SlidingDense<kSize, Finish::Any>;
  static constexpr int kRadius = kSize / 2, kStripRows = 4;
  static constexpr int kMinBlocks = kSize == 3 ? 7 : 6;

  template <typename Lanes>
  struct State {
    static constexpr int kChannels = Lanes::kChannels;
    uint32_t sums[kSize][2][4];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const PackedParams &k = p.packed;
      LaneRow<Lanes, kRadius> samples;
      samples.load(k, row);
#pragma unroll
      for (int t = 0; t < kSize; t++) {
        const int r = j - t;
        if (r < 0 || r >= kStripRows) continue;
        const int dy = t < kRadius ? kRadius - t : t - kRadius, reach = kSize == 3 ? 1 : kRadius - dy;
        uint32_t(&sum)[2][4] = sums[r % kSize];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          uint32_t even = t ? sum[0][i] : k.init, odd = t ? sum[1][i] : k.init;
#pragma unroll
          for (int dx = -reach; dx <= reach; dx++) {
            const int n = Lanes::kPerWord * i + dx * kChannels;
            even += k.dense[t * kSize + kRadius + dx] * samples.at(n);
            odd += k.dense[t * kSize + kRadius + dx] * samples.at(n + 1);
          }
          sum[0][i] = even;
          sum[1][i] = odd;
        }
      }
      const int r = j - 2 * kRadius;
      if (r < 0) return;
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = finish_word<kFinish, Lanes>(p, sums[r % kSize][0][i], sums[r % kSize][1][i]);
    }
  };
};

// A lane of a pair as a float: its bits become the last ones of 2^23.
__device__ inline float lane_to_float(uint32_t pair, uint32_t selector) {
  return __uint_as_float(permute_bytes(pair, 0x4b000000u, selector)) - 8388608.0f;
}

// sqrt(x^2 + y^2), rounded to an integer in the last bits. Squares of integers are far enough from those of halves, by
// a quarter at least, for the approximate root to fall on the right side.
__device__ inline uint32_t rounded_root(uint32_t x, uint32_t y, uint32_t selector) {
  const float fx = lane_to_float(x, selector), fy = lane_to_float(y, selector);
#ifdef __CUDA_ARCH__
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(fx * fx + fy * fy));
#else
  const float root = __builtin_sqrtf(fx * fx + fy * fy);
#endif
  return __float_as_uint(root + 8388608.0f);
}

// Magnitudes of pairs of absolute values x and y, to samples in the low bytes of lanes.
template <bool kEuclidean>
__device__ inline uint32_t magnitude_pair(uint32_t x, uint32_t y) {
  constexpr uint32_t kMax = 0x00ff00ffu;
  if constexpr (!kEuclidean) return __vminu2(x + y, kMax);
  // What is over the largest sample makes the root so too.
  x = __vminu2(x, kMax);
  y = __vminu2(y, kMax);
  return __vminu2(permute_bytes(rounded_root(x, y, 0x7610), rounded_root(x, y, 0x7632), 0x5410), kMax);
}

// Absolute or signed x and y to samples.
template <bool kEuclidean, typename Lanes>
__device__ inline uint32_t magnitude_sample(const SlidingParams &p, uint32_t x, uint32_t y) {
  if constexpr (Lanes::kPairs) return magnitude_pair<kEuclidean>(x, y);
  // With the doubled masks that the plan's rounding is for.
  return round_to_sample(magnitude(p.norm, 2 * static_cast<int>(x), 2 * static_cast<int>(y)), p.rounding[0]);
}

// |x| + |y| or its root of a smoothing column with a difference row, and the transpose: sobel, scharr, prewitt. kSmall:
// no sum is over 2047.
template <bool kEuclidean, bool kSmall>
struct SlidingGradient {
  using General = SlidingGradient;
  static constexpr int kRadius = 1, kStripRows = 4;
  static constexpr int kMinBlocks = kSmall && !kEuclidean ? 7 : 6;

  template <typename Lanes>
  struct State {
    static constexpr int kChannels = Lanes::kChannels;
    uint32_t last[2][2][4];  // the two rows before: [age][even, odd][word]

    // a b a, of both lanes.
    __device__ static uint32_t smooth(const PackedParams &k, uint32_t first, uint32_t middle, uint32_t last) {
      // There a is 1.
      if constexpr (kSmall) return multiply_add(HalfPair{middle}, k.column[1], HalfPair{first} + HalfPair{last}).bits;
      return (first + last) * k.column[0] + middle * k.column[1];
    }
    // Differences are kept 256 up in each lane where lanes are integers: that times the smoothing row's sum is k.zero.
    __device__ static uint32_t minus(uint32_t a, uint32_t b) {
      if constexpr (kSmall) return (HalfPair{a} - HalfPair{b}).bits;
      return a - b + (Lanes::kPairs ? 0x01000100u : 0);
    }

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const PackedParams &k = p.packed;
      LaneRow<Lanes, 1> sum, delta;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t now[2] = {Lanes::even(k, row[i]), Lanes::odd(k, row[i])};
        if (j >= 2) {
          sum.even[sum.kWords + i] = smooth(k, now[0], last[0][0][i], last[1][0][i]);
          sum.odd[sum.kWords + i] = smooth(k, now[1], last[0][1][i], last[1][1][i]);
          delta.even[sum.kWords + i] = minus(now[0], last[1][0][i]);
          delta.odd[sum.kWords + i] = minus(now[1], last[1][1][i]);
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
          last[1][h][i] = last[0][h][i];
          last[0][h][i] = now[h];
        }
      }
      if (j < 2) return;
      sum.exchange();
      delta.exchange();
      const auto sample = [&](int n) {
        const uint32_t left = sum.at(n - kChannels), right = sum.at(n + kChannels);
        const uint32_t y = smooth(k, delta.at(n - kChannels), delta.at(n), delta.at(n + kChannels));
        if constexpr (kSmall) {
          const HalfPair x = absolute(HalfPair{right} - HalfPair{left});
          if constexpr (!kEuclidean) return least(x + absolute(HalfPair{y}), HalfPair{0x00ff00ffu}).bits;
          return magnitude_pair<kEuclidean>(x.bits, absolute(HalfPair{y}).bits);
        } else if constexpr (Lanes::kPairs) {
          return magnitude_pair<kEuclidean>(difference<Lanes>(left, right), difference<Lanes>(y, k.zero));
        } else {
          return magnitude_sample<kEuclidean, Lanes>(p, right - left, y);
        }
      };
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = Lanes::join(k, sample(Lanes::kPerWord * i), sample(Lanes::kPerWord * i + 1));
    }
  };
};

// Any function of the 3x3 samples around a pixel. Function::sample<Lanes>(p, at) makes a register of results of
// at(dx, dy), the samples dx pixels on in the row dy below.
template <typename Function>
struct SlidingWindow3 {
  using General = SlidingWindow3;
  static constexpr int kRadius = 1, kStripRows = Function::kStripRows;
  static constexpr int kMinBlocks = Function::kMinBlocks;

  template <typename Lanes>
  struct State {
    LaneRow<Lanes, 1> rows[3];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      rows[j % 3].load(p.packed, row);
      if (j < 2) return;
      const auto sample = [&](int n) {
        return Function::template sample<Lanes>(
            p, [&](int dx, int dy) { return rows[(j + 2 + dy) % 3].at(n + dx * Lanes::kChannels); });
      };
#pragma unroll
      for (int i = 0; i < 4; i++)
        out[i] = Lanes::join(p.packed, sample(Lanes::kPerWord * i), sample(Lanes::kPerWord * i + 1));
    }
  };
};

// A gain times the largest sum of three neighbours in a row, and another times all eight.
struct KirschFunction {
  static constexpr int kStripRows = 4, kMinBlocks = 5;

  template <typename Lanes, typename At>
  __device__ static uint32_t sample(const SlidingParams &p, At at) {
    const PackedParams &k = p.packed;
    const uint32_t ring[8] = {at(-1, -1), at(0, -1), at(1, -1), at(1, 0), at(1, 1), at(0, 1), at(-1, 1), at(-1, 0)};
    uint32_t three[8];
#pragma unroll
    for (int i = 0; i < 8; i++) three[i] = ring[i] + ring[(i + 1) % 8] + ring[(i + 2) % 8];
    const uint32_t a = Lanes::largest(three[0], three[1], three[2]);
    const uint32_t b = Lanes::largest(three[3], three[4], three[5]);
    const uint32_t all = three[0] + three[3] + ring[6] + ring[7];
    const uint32_t t =
        k.init + k.dense[0] * Lanes::largest(Lanes::largest(a, b), three[6], three[7]) + k.dense[1] * all;
    if constexpr (Lanes::kPairs) return clamp_to_byte(t, k.minus_low);
    return round_to_sample(static_cast<int32_t>(t), p.rounding[0]);
  }
};

template <bool kEuclidean>
struct RobertsFunction {
  static constexpr int kStripRows = 4, kMinBlocks = 7;

  template <typename Lanes, typename At>
  __device__ static uint32_t sample(const SlidingParams &p, At at) {
    const auto minus = [](uint32_t a, uint32_t b) {
      if constexpr (Lanes::kPairs) return absolute(HalfPair{a} - HalfPair{b}).bits;
      return a - b;
    };
    return magnitude_sample<kEuclidean, Lanes>(p, minus(at(0, 0), at(1, 1)), minus(at(1, 0), at(0, 1)));
  }
};

// The middle of: the greatest of the columns' least, the middle of their middles, the least of their greatest. Columns
// are sorted as rows enter, once for the three windows that they are part of.
struct SlidingMedian3 {
  using General = SlidingMedian3;
  static constexpr int kRadius = 1, kStripRows = 4, kMinBlocks = 6;

  template <typename Lanes>
  struct State {
    // What is left of three when the least and the largest are taken away.
    __device__ static uint32_t middle(uint32_t a, uint32_t b, uint32_t c, uint32_t least, uint32_t largest) {
      if constexpr (Lanes::kPairs)
        return (HalfPair{a} - HalfPair{least} + (HalfPair{b} - HalfPair{largest}) + HalfPair{c}).bits;
      return a + b + c - least - largest;
    }
    __device__ static uint32_t middle(uint32_t a, uint32_t b, uint32_t c) {
      return middle(a, b, c, Lanes::least(a, b, c), Lanes::largest(a, b, c));
    }

    uint32_t last[2][2][4];  // the two rows before: [age][even, odd][word]

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const PackedParams &k = p.packed;
      LaneRow<Lanes, 1> least, mid, largest;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t now[2] = {Lanes::even(k, row[i]), Lanes::odd(k, row[i])};
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const uint32_t a = now[h], b = last[0][h][i], c = last[1][h][i];
          if (j >= 2) {
            const uint32_t low = Lanes::least(a, b, c), high = Lanes::largest(a, b, c);
            (h ? least.odd : least.even)[least.kWords + i] = low;
            (h ? largest.odd : largest.even)[least.kWords + i] = high;
            (h ? mid.odd : mid.even)[least.kWords + i] = middle(a, b, c, low, high);
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
        constexpr int c = Lanes::kChannels;
        return middle(Lanes::largest(least.at(n - c), least.at(n), least.at(n + c)),
                      middle(mid.at(n - c), mid.at(n), mid.at(n + c)),
                      Lanes::least(largest.at(n - c), largest.at(n), largest.at(n + c)));
      };
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = Lanes::join(k, sample(Lanes::kPerWord * i), sample(Lanes::kPerWord * i + 1));
    }
  };
};

template <typename Lanes>
__device__ inline void exchange_in_order(uint32_t &a, uint32_t &b) {
  const uint32_t low = Lanes::least(a, b);
  b = Lanes::largest(a, b);
  a = low;
}

template <typename Lanes>
__device__ inline void sort5(uint32_t (&v)[5]) {
  constexpr int kPairs[9][2] = {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1}, {2, 4}, {1, 2}, {3, 4}, {2, 3}};
#pragma unroll
  for (int i = 0; i < 9; i++) exchange_in_order<Lanes>(v[kPairs[i][0]], v[kPairs[i][1]]);
}

// The middle of v[0] to v[n - 1], n odd: the first (n + 3) / 2 lose their least and their largest, neither of which can
// be it, one more takes a place, and so on.
template <typename Lanes, int kCount>
__device__ inline uint32_t middle_of(uint32_t (&v)[kCount]) {
  constexpr int kFirst = (kCount + 3) / 2;
#pragma unroll
  for (int n = kFirst, begin = 0; n > 2; n--, begin++) {
    // v[begin] to v[begin + n - 1]; the least goes first and drops out, the largest last, where the next one takes over
    uint32_t *const w = v + begin;
#pragma unroll
    for (int i = 0; i < n / 2; i++) exchange_in_order<Lanes>(w[i], w[n - 1 - i]);
#pragma unroll
    for (int i = 1; i < (n + 1) / 2; i++) exchange_in_order<Lanes>(w[0], w[i]);
#pragma unroll
    for (int i = n / 2; i < n - 1; i++) exchange_in_order<Lanes>(w[i], w[n - 1]);
    if (kFirst + begin < kCount) w[n - 1] = v[kFirst + begin];
  }
  return v[kFirst - 2];
}

// Columns of five are sorted as rows enter, then of each window the five rows of what is first, second and so on in its
// columns. In a square that is sorted both ways, six samples are below the middle one for certain and six above; what
// is left are thirteen, of which the ends of four rows give away one more at either end.
struct SlidingMedian5 {
  using General = SlidingMedian5;
  static constexpr int kRadius = 2, kStripRows = 4, kMinBlocks = 4;

  template <typename Lanes>
  struct State {
    uint32_t rows[5][4];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const PackedParams &k = p.packed;
#pragma unroll
      for (int i = 0; i < 4; i++) rows[j % 5][i] = row[i];
      if (j < 4) return;
      LaneRow<Lanes, 2> rank[5];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          uint32_t column[5];
#pragma unroll
          for (int t = 0; t < 5; t++) column[t] = h ? Lanes::odd(k, rows[t][i]) : Lanes::even(k, rows[t][i]);
          sort5<Lanes>(column);
#pragma unroll
          for (int t = 0; t < 5; t++) (h ? rank[t].odd : rank[t].even)[rank[t].kWords + i] = column[t];
        }
#pragma unroll
      for (int t = 0; t < 5; t++) rank[t].exchange();
#pragma unroll
      for (int i = 0; i < 4; i++)
        out[i] = Lanes::join(k, median(rank, Lanes::kPerWord * i), median(rank, Lanes::kPerWord * i + 1));
    }

    __device__ static uint32_t median(const LaneRow<Lanes, 2> (&rank)[5], int n) {
      uint32_t v[5][5];
#pragma unroll
      for (int t = 0; t < 5; t++) {
#pragma unroll
        for (int dx = 0; dx < 5; dx++) v[t][dx] = rank[t].at(n + (dx - 2) * Lanes::kChannels);
        sort5<Lanes>(v[t]);
      }
      // The ends of rows 0 to 3, within the thirteen.
      uint32_t low[4] = {v[0][3], v[1][2], v[2][1], v[3][0]}, high[4] = {v[0][4], v[1][4], v[2][3], v[3][2]};
#pragma unroll
      for (int i = 1; i < 4; i++) {
        exchange_in_order<Lanes>(low[0], low[i]);
        exchange_in_order<Lanes>(high[i], high[0]);
      }
      uint32_t rest[11] = {low[1],  low[2],  low[3],  high[1], high[2], high[3],
                           v[1][3], v[2][2], v[3][1], v[4][0], v[4][1]};
      return middle_of<Lanes>(rest);
    }
  };
};

// The greatest of a square window, or the least, which is the greatest of the complements, complemented. A lane of 16
// bits is decided by its high byte, so that the odd pair is the word as it is.
template <int kSize>
struct SlidingExtremum {
  using General = SlidingExtremum;
  static constexpr int kRadius = kSize / 2, kStripRows = 4;
  static constexpr int kMinBlocks = kSize == 3 ? 8 : kSize == 5 ? 7 : 5;

  template <typename Lanes>
  struct State {
    // With an even number of channels, neighbours in a pair's row are of its own kind.
    static constexpr bool kRawOdd = Lanes::kPairs && Lanes::kChannels % 2 == 0;
    uint32_t rows[kSize][2][4];

    __device__ void enter(const SlidingParams &p, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      const PackedParams &k = p.packed;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t word = row[i] ^ k.flip;
        rows[j % kSize][0][i] = Lanes::even(k, word);
        rows[j % kSize][1][i] = kRawOdd ? word : Lanes::odd(k, word);
      }
      if (j < 2 * kRadius) return;
      LaneRow<Lanes, kRadius> column;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t even = rows[0][0][i], odd = rows[0][1][i];
#pragma unroll
        for (int t = 1; t < kSize; t += 2) {
          even = Lanes::largest(even, rows[t][0][i], rows[t + 1][0][i]);
          odd = Lanes::largest(odd, rows[t][1][i], rows[t + 1][1][i]);
        }
        column.even[column.kWords + i] = even;
        column.odd[column.kWords + i] = odd;
      }
      column.exchange();
      const auto sample = [&](int n) {
        uint32_t result = column.at(n - kRadius * Lanes::kChannels);
#pragma unroll
        for (int t = 1; t < kSize; t += 2)
          result = Lanes::largest(result, column.at(n + (t - kRadius) * Lanes::kChannels),
                                  column.at(n + (t + 1 - kRadius) * Lanes::kChannels));
        return result;
      };
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t even = sample(Lanes::kPerWord * i), odd = sample(Lanes::kPerWord * i + 1);
        out[i] = (kRawOdd ? permute_bytes(even, odd, 0x7250) : Lanes::join(k, even, odd)) ^ k.flip;
      }
    }
  };
};

// A lane's part of a strip of rows.
struct LaneStrip {
  int first_byte;  // of a row of the part; outside the frame in lanes at its edges
  int y0;          // row of the first result
};

template <typename Lanes>
constexpr int kPixelBytes = Lanes::kChannels * 4 / Lanes::kPerWord;

constexpr int kLanePitch = 32 * kLaneBytes;  // bytes of a row that a warp holds in shared memory

// The warp's own part of shared memory, `rows` rows of 16 bytes a lane.
__device__ inline uint8_t *warp_memory(int rows) {
  return shared_memory<uint8_t>() + threadIdx.x / 32 * (kLanePitch * rows);
}

// Bytes of shared memory of a block.
template <typename Operation>
constexpr size_t sliding_bytes() {
  return kSlidingWarps * kLanePitch * (Operation::kStripRows + 2 * Operation::kRadius);
}

// The word of a row of border samples that comes `i` words after the word at `first_byte`.
__device__ inline uint32_t border_word(const PartParams &part, int first_byte, int i) {
  return part.channels == 3 ? part.border_word[(first_byte / 4 + i) % 3] : part.border_word[i % 2];
}

// Copied and filled channels in place of filtered ones, in words whose first is number `word` of the row.
template <typename Lanes>
__device__ inline void merge_channels(const PartParams &part, int word, const uint32_t (&original)[4],
                                      uint32_t (&row)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int phase = Lanes::kChannels == 3 ? (word + i) % 3 : i % 2;
    row[i] = (row[i] & part.filter_bits[phase]) | (original[i] & part.copy_bits[phase]) | part.fill_word[phase];
  }
}

__device__ inline void split_words(uint4 v, uint32_t (&row)[4]) {
  row[0] = v.x;
  row[1] = v.y;
  row[2] = v.z;
  row[3] = v.w;
}

// The pixels next to the frame, as far as the radius, in lanes that lie outside; `row_of_lane` says which row of the
// frame row j of the strip is, in lane j.
template <typename Lanes, int kRadius, int kRows>
__device__ inline void load_outside(const FrameParams &p, const PartParams &part, int first_byte, int row_of_lane,
                                    uint32_t (&strip)[kRows][4]) {
  constexpr int kPixel = kPixelBytes<Lanes>, kUnit = kPixel % 4 == 0 ? 4 : kPixel == 2 ? 2 : 1;  // bytes of a load
  constexpr int kBytes = kRadius * kPixel;
  const bool left = first_byte < 0;
  int offset[kRadius];
#pragma unroll
  for (int k = 0; k < kRadius; k++) {
    const int x = border_index(p.border, left ? k - kRadius : part.width + k, part.width);
    offset[k] = x < 0 ? -1 : x * kPixel;
  }
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    const int y = __shfl_sync(0xffffffffu, row_of_lane, j);
    if (first_byte >= 0 && first_byte < part.width * kPixel) continue;
    const uint8_t *row = part.source + max(y, 0) * part.source_pitch;
    uint32_t words[5] = {};  // the pixels, one after the other
#pragma unroll
    for (int k = 0; k < kRadius; k++)
#pragma unroll
      for (int b = 0; b < kPixel; b += kUnit) {
        uint32_t v;
        if (y < 0 || offset[k] < 0)
          v = part.border_word[Lanes::kChannels == 3 ? 0 : b / 4] >> b % 4 * 8;
        else if (kUnit == 4)
          v = __ldg(reinterpret_cast<const uint32_t *>(row + offset[k] + b));
        else if (kUnit == 2)
          v = __ldg(reinterpret_cast<const uint16_t *>(row + offset[k] + b));
        else
          v = __ldg(row + offset[k] + b);
        if (kUnit < 4) v &= kUnit == 2 ? 0xffffu : 0xffu;
        const int n = k * kPixel + b;
        words[n / 4] |= v << n % 4 * 8;
      }
    // To the end of the 16 bytes that are left of the frame, or to the beginning of those right of it.
    constexpr int kGap = kLaneBytes - kBytes;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int from = 4 * i - kGap;  // byte of the pixels that byte 0 of word i is
      uint32_t tail = 0;
      if (from >= 0)
        tail = from % 4 ? permute_bytes(words[from / 4], words[from / 4 + 1], 0x3210 + from % 4 * 0x1111)
                        : words[from / 4];
      else if (from > -4)
        tail = words[0] << -from * 8;
      strip[j][i] = left ? tail : words[i];
    }
  }
}

// A strip of a warp whose lanes lie either wholly inside or wholly outside the frame.
template <typename Lanes, int kRadius, int kRows>
__device__ inline void load_strip(const FrameParams &p, const PartParams &part, LaneStrip s,
                                  uint32_t (&strip)[kRows][4]) {
  const int row_bytes = part.width * kPixelBytes<Lanes>, top = s.y0 - kRadius;
  const uint8_t *column = part.source + min(max(s.first_byte, 0), row_bytes - kLaneBytes);
  const bool outside = s.first_byte < 0 || s.first_byte >= row_bytes;
  if (top >= 0 && top + kRows <= part.height) {
    column += top * part.source_pitch;
#pragma unroll
    for (int j = 0; j < kRows; j++)
      split_words(__ldg(reinterpret_cast<const uint4 *>(column + j * part.source_pitch)), strip[j]);
    if (__any_sync(0xffffffffu, outside))
      load_outside<Lanes, kRadius>(p, part, s.first_byte, top + static_cast<int>(threadIdx.x % 32), strip);
  } else {
    const int row_of_lane = border_index(p.border, top + static_cast<int>(threadIdx.x % 32), part.height);
#pragma unroll
    for (int j = 0; j < kRows; j++) {
      const int y = __shfl_sync(0xffffffffu, row_of_lane, j);
      split_words(__ldg(reinterpret_cast<const uint4 *>(column + max(y, 0) * part.source_pitch)), strip[j]);
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (y < 0) strip[j][i] = border_word(part, s.first_byte, i);
    }
    if (__any_sync(0xffffffffu, outside)) load_outside<Lanes, kRadius>(p, part, s.first_byte, row_of_lane, strip);
  }
}

// The same where addresses are not aligned, or a row ends within the bytes of a lane: byte by byte, through shared
// memory, so that the whole warp can read what one lane needs.
__device__ __noinline__ void gather_strip(const FrameParams &p, const PartParams &part, LaneStrip s, int pixel_bytes,
                                          int rows, int radius, uint8_t *strip) {
  const int lane = threadIdx.x % 32, row_bytes = part.width * pixel_bytes, sample_bytes = pixel_bytes / part.channels;
  const int row_of_lane = border_index(p.border, s.y0 - radius + lane, part.height);
  const bool needed = s.first_byte < row_bytes + radius * pixel_bytes;
  for (unsigned left = __ballot_sync(0xffffffffu, needed); left; left &= left - 1) {
    const int owner = __ffs(left) - 1, owner_byte = s.first_byte + (owner - lane) * kLaneBytes;
    // Lanes take bytes next to each other, of two rows. Rounds down; no byte is less than -kLaneBytes.
    const int byte = owner_byte + lane % kLaneBytes,
              pixel = (byte + kLaneBytes * pixel_bytes) / pixel_bytes - kLaneBytes;
    const int rest = byte - pixel * pixel_bytes;
    const bool read = pixel >= -radius && pixel < part.width + radius;
    const int x = border_index(p.border, pixel, part.width);
    const ChannelParams &channel = part.channel[rest / sample_bytes];
    const uint8_t outside = static_cast<uint8_t>(channel.border_value << channel.shift >> rest % sample_bytes * 8);
    const uint8_t *column = part.source + x * pixel_bytes + rest;
#pragma unroll 4
    for (int j = lane / kLaneBytes; j < (rows + 1) / 2 * 2; j += 2) {
      const int y = __shfl_sync(0xffffffffu, row_of_lane, j);
      if (read && j < rows)
        strip[j * kLanePitch + owner * kLaneBytes + lane % kLaneBytes] =
            x >= 0 && y >= 0 ? column[y * part.source_pitch] : outside;
    }
  }
  __syncwarp();
}

// Where rows are not made of whole, aligned lanes.
template <typename Operation, typename Lanes>
__device__ __noinline__ void slide_gathered(const SlidingParams &p, const PartParams &part, LaneStrip s) {
  constexpr int kRadius = Operation::kRadius, kRows = Operation::kStripRows + 2 * kRadius;
  const int lane = threadIdx.x % 32, bytes = part.width * kPixelBytes<Lanes> - s.first_byte;
  uint8_t *const staged = warp_memory(kRows), *const own = staged + lane * kLaneBytes;
  gather_strip(p, part, s, kPixelBytes<Lanes>, kRows, kRadius, staged);
  typename Operation::template State<Lanes> state;
  uint32_t strip[kRows][4];
#pragma unroll
  for (int j = 0; j < kRows; j++) split_words(*reinterpret_cast<const uint4 *>(own + j * kLanePitch), strip[j]);
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t out[4];
    state.enter(p, j, strip[j], out);
    const int r = j - 2 * kRadius;
    if (r < 0) continue;
    if (part.merges) merge_channels<Lanes>(part, s.first_byte / 4, strip[j - kRadius], out);
    // Results of a lane may take the place of what it alone has loaded.
    *reinterpret_cast<uint4 *>(own + r * kLanePitch) = make_uint4(out[0], out[1], out[2], out[3]);
  }
  if (lane < 1 || lane > kWarpLanes) return;
  for (int r = 0; r < min(Operation::kStripRows, part.height - s.y0); r++) {
    uint8_t *target = part.target + (s.y0 + r) * part.target_pitch + s.first_byte;
    for (int b = 0; b < min(bytes, kLaneBytes); b++) target[b] = own[r * kLanePitch + b];
  }
}

// In 16-bit containers, a finish has parameters of its own.
template <typename Operation, typename Lanes>
using GeneralFor = std::conditional_t<Lanes::kPairs, typename Operation::General, Operation>;

template <typename Operation, typename Lanes>
__device__ inline void slide(const SlidingParams &p, const PartParams &part, int column, int y0) {
  constexpr int kRadius = Operation::kRadius, kRows = Operation::kStripRows + 2 * kRadius;
  const int lane = threadIdx.x % 32;
  const LaneStrip s = {(column * kWarpLanes + lane - 1) * kLaneBytes, y0};
  if (!part.whole_lanes) return slide_gathered<GeneralFor<Operation, Lanes>, Lanes>(p, part, s);

  uint32_t strip[kRows][4];
  load_strip<Lanes, kRadius>(p, part, s, strip);
  const bool stores = lane >= 1 && lane <= kWarpLanes && s.first_byte < part.width * kPixelBytes<Lanes>;
  uint8_t *target = part.target + y0 * part.target_pitch + s.first_byte;
  typename Operation::template State<Lanes> state;
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    uint32_t out[4];
    state.enter(p, j, strip[j], out);
    const int r = j - 2 * kRadius;
    if (r < 0) continue;
    if (part.merges) merge_channels<Lanes>(part, s.first_byte / 4, strip[j - kRadius], out);
    if (stores && y0 + r < part.height)
      *reinterpret_cast<uint4 *>(target + r * part.target_pitch) = make_uint4(out[0], out[1], out[2], out[3]);
  }
}

// The numbers of channels that a kernel is made for: frames of one or two a plane, and packed pixels of three or four.
enum class Channels { Planar, Packed3, Packed4 };

template <typename Operation, Channels kChannels, template <int> typename Lanes>
__global__ void __launch_bounds__(kSlidingThreads, Operation::kMinBlocks)
    sliding_kernel(const __grid_constant__ SlidingParams p) {
  const Tile tile = locate_tile(p, 1, Operation::kStripRows * kSlidingWarps);
  // From one lane to all: the compiler sees that the warp branches together.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const int column = tile.x0, y0 = tile.y0 + warp * Operation::kStripRows;
  if (y0 >= tile.part.height) return;  // the whole warp
  if constexpr (kChannels == Channels::Packed3) {
    slide<Operation, Lanes<3>>(p, tile.part, column, y0);
  } else if constexpr (kChannels == Channels::Packed4) {
    slide<Operation, Lanes<4>>(p, tile.part, column, y0);
  } else {
    if (tile.part.channels == 1)
      slide<Operation, Lanes<1>>(p, tile.part, column, y0);
    else
      slide<Operation, Lanes<2>>(p, tile.part, column, y0);
  }
}

}  // namespace cudaconv
