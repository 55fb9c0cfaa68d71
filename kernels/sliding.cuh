// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto prefers for small masks on dense 8-bit planes: they run at the speed of a copy.
//
// A lane owns 16 bytes of a row, a warp 30 such columns and the one on either side that its neighbours need. All rows
// of a block's strip are loaded at once, straight-line, so that many loads are under way; then the window slides down
// in registers: columns first, neighbours by warp shuffles, no shared memory.
//
// Samples are worked on in pairs, two 16-bit lanes in a register: bytes 0 and 2 of a word are its even pair, bytes 1
// and 3 its odd pair. Sums of products are linear, so one 32-bit multiply-add does both lanes, also where partial sums
// are negative: offsets that the plan works out make both lanes right, and not negative, at the points where lanes are
// taken apart. All of it is exact; where 16 bits would not hold a sum the other kernels do the pass.
#pragma once

#include "launch.cuh"
#include "sample.cuh"

namespace cudaconv {

constexpr int kLaneBytes = 16, kWarpLanes = 30, kWarpBytes = kLaneBytes * kWarpLanes;
constexpr int kStripRows = 4;                                           // output rows of a warp
constexpr int kSlidingWarps = 4, kSlidingThreads = 32 * kSlidingWarps;  // of a block, one below the other
constexpr int kSlidingHeight = kStripRows * kSlidingWarps;

__device__ inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  return __byte_perm(a, b, selector);
}
__device__ inline uint32_t even_pair(uint32_t word) {
  return word & 0x00ff00ffu;
}
__device__ inline uint32_t odd_pair(uint32_t word) {
  return permute_bytes(word, 0, 0x4341);
}
// The pair of the second lane of `a` and the first of `b`.
__device__ inline uint32_t straddle(uint32_t a, uint32_t b) {
  return permute_bytes(a, b, 0x5432);
}
__device__ inline uint32_t max_pair(uint32_t a, uint32_t b) {
  return __vmaxu2(a, b);
}
__device__ inline uint32_t min_pair(uint32_t a, uint32_t b) {
  return __vminu2(a, b);
}

__device__ inline uint32_t difference_pair(uint32_t a, uint32_t b) {
  return max_pair(a, b) - min_pair(a, b);
}

// The even and odd pairs of a lane's four words and of kWords words of each neighbour.
template <int kWords>
struct PairRow {
  uint32_t even[4 + 2 * kWords], odd[4 + 2 * kWords];

  // Bytes n and n + 2 of the row, byte 0 being the lane's first.
  __device__ uint32_t at(int n) const {
    const int word = (n + 4 * kWords) / 4;
    switch ((n + 4 * kWords) % 4) {
      case 0:
        return even[word];
      case 1:
        return odd[word];
      case 2:
        return straddle(even[word], even[word + 1]);
      default:
        return straddle(odd[word], odd[word + 1]);
    }
  }
};

// Fills in the neighbours' words of a row whose own are there. Every lane of the warp takes part.
template <int kWords>
__device__ inline void exchange(uint32_t (&row)[4 + 2 * kWords]) {
#pragma unroll
  for (int i = 0; i < kWords; i++) {
    row[i] = __shfl_up_sync(0xffffffffu, row[4 + i], 1);
    row[kWords + 4 + i] = __shfl_down_sync(0xffffffffu, row[kWords + i], 1);
  }
}

__device__ inline uint32_t join_pairs(uint32_t even, uint32_t odd) {
  return even | odd << 8;
}

// Sums, offset as PackedParams says, to samples: `round` takes two sums to two samples in the low bytes of the lanes.
template <typename Round>
__device__ inline void round_pairs(const uint32_t (&even)[4], const uint32_t (&odd)[4], uint32_t (&out)[4],
                                   Round round) {
#pragma unroll
  for (int i = 0; i < 4; i++) out[i] = join_pairs(round(even[i]), round(odd[i]));
}

template <Finish kFinish>
__device__ inline void round_row(const PackedParams &k, const uint32_t (&even)[4], const uint32_t (&odd)[4],
                                 uint32_t (&out)[4]) {
  const auto shift = [&](uint32_t t) { return t >> k.shift & 0x00ff00ffu; };
  const auto divide = [&](uint32_t t) {
    return permute_bytes((t & 0xffffu) * k.magic, (t >> 16) * k.magic, 0x4743) & 0x00ff00ffu;
  };
  const auto clamp = [&](uint32_t t) { return min_pair(max_pair(t, k.low) - k.low, k.limit); };
  const auto absolute = [&](uint32_t t) { return min_pair(difference_pair(t, k.zero) + k.half, k.limit); };
  if constexpr (kFinish == Finish::Shift) round_pairs(even, odd, out, shift);
  if constexpr (kFinish == Finish::Divide) round_pairs(even, odd, out, divide);
  if constexpr (kFinish == Finish::ClampShift) round_pairs(even, odd, out, [&](uint32_t t) { return shift(clamp(t)); });
  if constexpr (kFinish == Finish::AbsoluteShift)
    round_pairs(even, odd, out, [&](uint32_t t) { return shift(absolute(t)); });
  if constexpr (kFinish == Finish::Any)
    round_pairs(even, odd, out, [&](uint32_t t) {
      t = k.absolute ? absolute(t) : clamp(t);
      return k.magic ? divide(t) : shift(t);
    });
}

// An operation takes the rows of the strip from above; each enter() may complete one row of results, four words.

// A mask with a row and a column: columns are summed as rows enter, then each finished row of sums along the row.
template <int kSize, Finish kFinish>
struct SlidingSeparable {
  static constexpr int kRadius = kSize / 2;
  // Larger rows have to be: one multiplication then serves two samples.
  static constexpr bool kSymmetric = kSize > 3;

  template <int kChannels>
  struct State {
    static constexpr int kWords = (kRadius * kChannels + 3) / 4;
    uint32_t sums[kSize][2][4];

    __device__ static uint32_t folded(const PairRow<kWords> &sum, int n, int t) {
      const uint32_t v = sum.at(n + (t - kRadius) * kChannels);
      return kSymmetric && t != kRadius ? v + sum.at(n + (kRadius - t) * kChannels) : v;
    }

    __device__ void enter(const PackedParams &k, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t even = even_pair(row[i]), odd = odd_pair(row[i]);
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
      PairRow<kWords> sum;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        sum.even[kWords + i] = sums[r % kSize][0][i];
        sum.odd[kWords + i] = sums[r % kSize][1][i];
      }
      exchange<kWords>(sum.even);
      exchange<kWords>(sum.odd);
      uint32_t even[4], odd[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        even[i] = odd[i] = k.init;
#pragma unroll
        for (int t = 0; t <= (kSymmetric ? kRadius : kSize - 1); t++) {
          even[i] += k.row[t] * folded(sum, 4 * i, t);
          odd[i] += k.row[t] * folded(sum, 4 * i + 1, t);
        }
      }
      round_row<kFinish>(k, even, odd, out);
    }
  };
};

// A mask without factors: 3x3, or the diamond |dx| + |dy| <= 2 of a 5x5.
template <int kSize, Finish kFinish>
struct SlidingDense {
  static constexpr int kRadius = kSize / 2;

  template <int kChannels>
  struct State {
    uint32_t sums[kSize][2][4];

    __device__ void enter(const PackedParams &k, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      constexpr int kWords = (kRadius * kChannels + 3) / 4;
      uint32_t words[4 + 2 * kWords];
      PairRow<kWords> pairs;
#pragma unroll
      for (int i = 0; i < 4; i++) words[kWords + i] = row[i];
      exchange<kWords>(words);
#pragma unroll
      for (int i = 0; i < 4 + 2 * kWords; i++) {
        pairs.even[i] = even_pair(words[i]);
        pairs.odd[i] = odd_pair(words[i]);
      }
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
            even += k.dense[t * kSize + kRadius + dx] * pairs.at(4 * i + dx * kChannels);
            odd += k.dense[t * kSize + kRadius + dx] * pairs.at(4 * i + 1 + dx * kChannels);
          }
          sum[0][i] = even;
          sum[1][i] = odd;
        }
      }
      const int r = j - 2 * kRadius;
      if (r < 0) return;
      round_row<kFinish>(k, sums[r % kSize][0], sums[r % kSize][1], out);
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
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(fx * fx + fy * fy));
#else
  const float root = __builtin_sqrtf(fx * fx + fy * fy);
#endif
  return __float_as_uint(root + 8388608.0f);
}

// Magnitudes of absolute values x and y, even pairs then odd ones, to samples. One branch a row.
__device__ inline void magnitude_row(const PackedParams &k, const uint32_t (&x)[2][4], const uint32_t (&y)[2][4],
                                     uint32_t (&out)[4]) {
  constexpr uint32_t kMax = 0x00ff00ffu;
  if (k.euclidean) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t result[2];
#pragma unroll
      for (int odd = 0; odd < 2; odd++) {
        // What is over the largest sample makes the root so too.
        const uint32_t cx = min_pair(x[odd][i], kMax), cy = min_pair(y[odd][i], kMax);
        result[odd] = min_pair(permute_bytes(rounded_root(cx, cy, 0x7610), rounded_root(cx, cy, 0x7632), 0x5410), kMax);
      }
      out[i] = join_pairs(result[0], result[1]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++)
      out[i] = join_pairs(min_pair(x[0][i] + y[0][i], kMax), min_pair(x[1][i] + y[1][i], kMax));
  }
}

// |x| + |y| or its root of a smoothing column with a difference row, and the transpose: sobel, scharr, prewitt.
struct SlidingGradient {
  static constexpr int kRadius = 1;

  template <int kChannels>
  struct State {
    uint32_t last[2][2][4];  // the two rows before: [age][even, odd][word]

    __device__ void enter(const PackedParams &k, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      constexpr int kWords = (kChannels + 3) / 4;
      PairRow<kWords> smooth, difference;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t even = even_pair(row[i]), odd = odd_pair(row[i]);
        if (j >= 2) {
          smooth.even[kWords + i] = (even + last[1][0][i]) * k.column[0] + last[0][0][i] * k.column[1];
          smooth.odd[kWords + i] = (odd + last[1][1][i]) * k.column[0] + last[0][1][i] * k.column[1];
          difference.even[kWords + i] = even - last[1][0][i] + 0x01000100u;
          difference.odd[kWords + i] = odd - last[1][1][i] + 0x01000100u;
        }
        last[1][0][i] = last[0][0][i];
        last[1][1][i] = last[0][1][i];
        last[0][0][i] = even;
        last[0][1][i] = odd;
      }
      if (j < 2) return;
      exchange<kWords>(smooth.even);
      exchange<kWords>(smooth.odd);
      exchange<kWords>(difference.even);
      exchange<kWords>(difference.odd);
      uint32_t x[2][4], y[2][4];
#pragma unroll
      for (int odd = 0; odd < 2; odd++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const int n = 4 * i + odd;
          x[odd][i] = difference_pair(smooth.at(n - kChannels), smooth.at(n + kChannels));
          // 256 in each lane of the differences, times the smoothing row's sum, is zero
          const uint32_t t = (difference.at(n - kChannels) + difference.at(n + kChannels)) * k.column[0] +
                             difference.at(n) * k.column[1];
          y[odd][i] = difference_pair(t, k.zero);
        }
      magnitude_row(k, x, y, out);
    }
  };
};

// Any function of the 3x3 samples around a pixel. Function::row(k, at, out) makes a row of results of at(n, dx, dy),
// bytes n and n + 2 of the row dy below, dx pixels on.
template <typename Function>
struct SlidingWindow3 {
  static constexpr int kRadius = 1;

  template <int kChannels>
  struct State {
    static constexpr int kWords = (kChannels + 3) / 4;
    PairRow<kWords> rows[3];

    __device__ void enter(const PackedParams &k, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      uint32_t words[4 + 2 * kWords];
#pragma unroll
      for (int i = 0; i < 4; i++) words[kWords + i] = row[i];
      exchange<kWords>(words);
#pragma unroll
      for (int i = 0; i < 4 + 2 * kWords; i++) {
        rows[j % 3].even[i] = even_pair(words[i]);
        rows[j % 3].odd[i] = odd_pair(words[i]);
      }
      if (j < 2) return;
      Function::row(
          k, [&](int n, int dx, int dy) { return rows[(j + 2 + dy) % 3].at(n + dx * kChannels); }, out);
    }
  };
};

// A gain times the largest sum of three neighbours in a row, and another times all eight.
struct KirschFunction {
  template <typename At>
  __device__ static uint32_t sum(const PackedParams &k, At at, int n) {
    const uint32_t ring[8] = {at(n, -1, -1), at(n, 0, -1), at(n, 1, -1), at(n, 1, 0),
                              at(n, 1, 1),   at(n, 0, 1),  at(n, -1, 1), at(n, -1, 0)};
    uint32_t three[8];
#pragma unroll
    for (int i = 0; i < 8; i++) three[i] = ring[i] + ring[(i + 1) % 8] + ring[(i + 2) % 8];
    const uint32_t a = __vimax3_u16x2(three[0], three[1], three[2]), b = __vimax3_u16x2(three[3], three[4], three[5]);
    const uint32_t all = three[0] + three[3] + ring[6] + ring[7];
    return k.init + k.dense[0] * __vimax3_u16x2(max_pair(a, b), three[6], three[7]) + k.dense[1] * all;
  }

  template <typename At>
  __device__ static void row(const PackedParams &k, At at, uint32_t (&out)[4]) {
    uint32_t even[4], odd[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      even[i] = sum(k, at, 4 * i);
      odd[i] = sum(k, at, 4 * i + 1);
    }
    round_row<Finish::ClampShift>(k, even, odd, out);
  }
};

struct RobertsFunction {
  template <typename At>
  __device__ static void row(const PackedParams &k, At at, uint32_t (&out)[4]) {
    uint32_t x[2][4], y[2][4];
#pragma unroll
    for (int odd = 0; odd < 2; odd++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int n = 4 * i + odd;
        x[odd][i] = difference_pair(at(n, 0, 0), at(n, 1, 1));
        y[odd][i] = difference_pair(at(n, 1, 0), at(n, 0, 1));
      }
    magnitude_row(k, x, y, out);
  }
};

// The middle of: the greatest of the columns' least, the middle of their middles, the least of their greatest.
struct Median3Function {
  // What is left of three when the least and the greatest are taken away, in both lanes.
  __device__ static uint32_t middle(uint32_t a, uint32_t b, uint32_t c) {
    return a + b + c - __vimin3_u16x2(a, b, c) - __vimax3_u16x2(a, b, c);
  }

  template <typename At>
  __device__ static uint32_t median(At at, int n) {
    uint32_t least[3], mid[3], greatest[3];
#pragma unroll
    for (int i = 0; i < 3; i++) {
      const uint32_t a = at(n, i - 1, -1), b = at(n, i - 1, 0), c = at(n, i - 1, 1);
      least[i] = __vimin3_u16x2(a, b, c);
      greatest[i] = __vimax3_u16x2(a, b, c);
      mid[i] = a + b + c - least[i] - greatest[i];
    }
    return middle(__vimax3_u16x2(least[0], least[1], least[2]), middle(mid[0], mid[1], mid[2]),
                  __vimin3_u16x2(greatest[0], greatest[1], greatest[2]));
  }

  template <typename At>
  __device__ static void row(const PackedParams &, At at, uint32_t (&out)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] = join_pairs(median(at, 4 * i), median(at, 4 * i + 1));
  }
};

// The greatest of a square window, or the least, which is the greatest of the complements, complemented. A lane of 16
// bits is decided by its high byte, so that the odd pair is the word as it is.
template <int kSize>
struct SlidingExtremum {
  static constexpr int kRadius = kSize / 2;

  template <int kChannels>
  struct State {
    // With an even number of channels, neighbours in a pair's row are of its own kind.
    static constexpr bool kRawOdd = kChannels % 2 == 0;
    uint32_t rows[kSize][2][4];

    __device__ void enter(const PackedParams &k, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      constexpr int kWords = (kRadius * kChannels + 3) / 4;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t word = row[i] ^ k.flip;
        rows[j % kSize][0][i] = even_pair(word);
        rows[j % kSize][1][i] = kRawOdd ? word : odd_pair(word);
      }
      if (j < 2 * kRadius) return;
      PairRow<kWords> column;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t even = rows[0][0][i], odd = rows[0][1][i];
#pragma unroll
        for (int t = 1; t < kSize; t += 2) {
          even = __vimax3_u16x2(even, rows[t][0][i], rows[t + 1][0][i]);
          odd = __vimax3_u16x2(odd, rows[t][1][i], rows[t + 1][1][i]);
        }
        column.even[kWords + i] = even;
        column.odd[kWords + i] = odd;
      }
      exchange<kWords>(column.even);
      exchange<kWords>(column.odd);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t result[2];
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
          const int n = 4 * i + odd - kRadius * kChannels;
          result[odd] = column.at(n);
#pragma unroll
          for (int t = 1; t < kSize; t += 2)
            result[odd] = __vimax3_u16x2(result[odd], column.at(n + t * kChannels), column.at(n + (t + 1) * kChannels));
        }
        out[i] = permute_bytes(result[0], result[1], kRawOdd ? 0x7250 : 0x6240) ^ k.flip;
      }
    }
  };
};

// The warp's own part of shared memory: kRows rows of 16 bytes a lane.
template <int kRows>
__device__ inline uint4 *warp_memory() {
  return shared_memory<uint4>() + threadIdx.x / 32 * (32 * kRows);
}

// The 16 bytes of a lane, for each row of the strip from kRadius above its first result. Bytes outside the frame are
// those of the border, as far out as the window reaches.
template <int kChannels, int kRadius, int kRows>
__device__ inline void load_strip(const FrameParams &p, const PartParams &part, int first_byte, int y0,
                                  uint32_t (&strip)[kRows][4]) {
  const int row_bytes = part.width * kChannels, top = y0 - kRadius;
  const bool inside = part.aligned && first_byte >= 0 && first_byte + kLaneBytes <= row_bytes;
  if (__all_sync(0xffffffffu, inside) && top >= 0 && top + kRows <= part.height) {
    const uint8_t *source = part.source + top * part.source_pitch + first_byte;
#pragma unroll
    for (int j = 0; j < kRows; j++) {
      const uint4 v = __ldg(reinterpret_cast<const uint4 *>(source + j * part.source_pitch));
      strip[j][0] = v.x;
      strip[j][1] = v.y;
      strip[j][2] = v.z;
      strip[j][3] = v.w;
    }
    return;
  }
  // At an edge of the frame the bytes of lanes that do not lie inside are gathered one by one, into shared memory, by
  // the whole warp together: one lane alone would wait for each in turn.
  const int lane = threadIdx.x % 32;
  const int row_of_lane = border_index(p.border, top + lane, part.height);  // lane j: that of row j of the strip
  uint4 *rows = warp_memory<kRows>();
  __syncwarp();  // what was staged there before has been read
  for (unsigned left = __ballot_sync(0xffffffffu, !inside); left; left &= left - 1) {
    const int owner = __ffs(left) - 1, owner_byte = first_byte + (owner - lane) * kLaneBytes;
#pragma unroll
    for (int k = 0; k < (kRows * kLaneBytes + 31) / 32; k++) {
      const int item = k * 32 + lane, j = min(item / kLaneBytes, kRows - 1), byte = owner_byte + item % kLaneBytes;
      const int y = __shfl_sync(0xffffffffu, row_of_lane, j);
      // Rounds down; no byte is less than -kLaneBytes.
      const int pixel = (byte + kLaneBytes * kChannels) / kChannels - kLaneBytes, channel = byte - pixel * kChannels;
      if (item >= kRows * kLaneBytes || pixel < -kRadius || pixel >= part.width + kRadius) continue;
      const int x = border_index(p.border, pixel, part.width);
      reinterpret_cast<uint8_t *>(rows + 32 * j + owner)[item % kLaneBytes] =
          static_cast<uint8_t>(x < 0 || y < 0 ? part.channel[channel].border_value
                                              : part.source[y * part.source_pitch + x * kChannels + channel]);
    }
  }
  __syncwarp();
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    const int y = __shfl_sync(0xffffffffu, row_of_lane, j);
    uint4 v;
    if (!inside) {
      v = rows[32 * j + lane];
    } else if (y >= 0) {
      v = __ldg(reinterpret_cast<const uint4 *>(part.source + y * part.source_pitch + first_byte));
    } else {
      const int phase = first_byte / 4 % 3;
      v.x = part.border_word[phase];
      v.y = part.border_word[(phase + 1) % 3];
      v.z = part.border_word[(phase + 2) % 3];
      v.w = v.x;
    }
    strip[j][0] = v.x;
    strip[j][1] = v.y;
    strip[j][2] = v.z;
    strip[j][3] = v.w;
  }
  __syncwarp();  // before rows are overwritten
}

// Bytes of shared memory of a block for windows of this radius.
constexpr size_t sliding_bytes(int radius) {
  return kSlidingThreads * kLaneBytes * (kStripRows + 2 * radius);
}

// kRows is that of the strip, whose shared memory serves here once more.
template <int kChannels, int kRows>
__device__ inline void store_row(const PartParams &part, int first_byte, int y, const uint32_t (&row)[4]) {
  uint8_t *target = part.target + y * part.target_pitch + first_byte;
  const int bytes = part.width * kChannels - first_byte;
  const uint4 v = make_uint4(row[0], row[1], row[2], row[3]);
  if (part.aligned && bytes >= kLaneBytes) {
    *reinterpret_cast<uint4 *>(target) = v;
    return;
  }
  uint4 *staged = warp_memory<kRows>() + threadIdx.x % 32;
  *staged = v;
#pragma unroll 1
  for (int b = 0; b < min(bytes, kLaneBytes); b++) target[b] = reinterpret_cast<const uint8_t *>(staged)[b];
}

// Copied and filled channels in place of filtered ones.
template <int kChannels>
__device__ inline void merge_channels(const PartParams &part, int first_byte, const uint32_t (&original)[4],
                                      uint32_t (&row)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    // The pattern of channels comes round every word, or every third.
    const int phase = kChannels == 3 ? (first_byte / 4 + i) % 3 : 0;
    row[i] = (row[i] & part.filter_bits[phase]) | (original[i] & part.copy_bits[phase]) | part.fill_word[phase];
  }
}

template <typename Operation, int kChannels>
__device__ inline void slide(const SlidingParams &p, const PartParams &part, int column, int y0) {
  constexpr int kRadius = Operation::kRadius, kRows = kStripRows + 2 * kRadius;
  const int lane = threadIdx.x % 32, first_byte = (column * kWarpLanes + lane - 1) * kLaneBytes;
  const bool stores = lane > 0 && lane <= kWarpLanes && first_byte < part.width * kChannels;
  if (!part.filters) {
    uint32_t row[1][4];
    for (int y = y0; y < min(y0 + kStripRows, part.height); y++) {
      load_strip<kChannels, 0, 1>(p, part, first_byte, y, row);
      if (!stores) continue;
      merge_channels<kChannels>(part, first_byte, row[0], row[0]);
      store_row<kChannels, 1>(part, first_byte, y, row[0]);
    }
    return;
  }
  uint32_t strip[kRows][4], out[4];
  load_strip<kChannels, kRadius>(p, part, first_byte, y0, strip);
  typename Operation::template State<kChannels> state;
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    state.enter(p.packed, j, strip[j], out);
    const int y = y0 + j - 2 * kRadius;
    if (j < 2 * kRadius || !stores || y >= part.height) continue;
    if (part.merges) merge_channels<kChannels>(part, first_byte, strip[j - kRadius], out);
    store_row<kChannels, kRows>(part, first_byte, y, out);
  }
}

template <typename Operation, int kMinBlocks>
__global__ void __launch_bounds__(kSlidingThreads, kMinBlocks) sliding_kernel(const __grid_constant__ SlidingParams p) {
  const Tile tile = locate_tile(p, 1, kSlidingHeight);
  const int column = tile.x0, y0 = tile.y0 + threadIdx.x / 32 * kStripRows;
  if (y0 >= tile.part.height) return;  // the whole warp
  switch (tile.part.channels) {
    case 1:
      return slide<Operation, 1>(p, tile.part, column, y0);
    case 2:
      return slide<Operation, 2>(p, tile.part, column, y0);
    case 3:
      return slide<Operation, 3>(p, tile.part, column, y0);
    default:
      return slide<Operation, 4>(p, tile.part, column, y0);
  }
}

}  // namespace cudaconv
