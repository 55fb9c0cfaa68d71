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

// Two sums, offset as PackedParams says, to two samples in the low bytes of the lanes.
__device__ inline uint32_t round_pair(const PackedParams &k, uint32_t t) {
  if (k.absolute)
    t = max_pair(t, k.zero) - min_pair(t, k.zero) + k.half;
  else if (k.low)
    t = max_pair(t, k.low) - k.low;
  if (k.limit) t = min_pair(t, k.limit);
  if (k.magic == 0) return t >> k.shift & 0x00ff00ffu;
  return permute_bytes((t & 0xffffu) * k.magic, (t >> 16) * k.magic, 0x4743) & 0x00ff00ffu;
}

__device__ inline uint32_t join_pairs(uint32_t even, uint32_t odd) {
  return even | odd << 8;
}

// An operation takes the rows of the strip from above; each enter() may complete one row of results, four words.

// A mask with a row and a column: columns are summed as rows enter, then each finished row of sums along the row.
template <int kSize>
struct SlidingSeparable {
  static constexpr int kRadius = kSize / 2;

  template <int kChannels>
  struct State {
    uint32_t sums[kSize][2][4];

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
      constexpr int kWords = (kRadius * kChannels + 3) / 4;
      PairRow<kWords> sum;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        sum.even[kWords + i] = sums[r % kSize][0][i];
        sum.odd[kWords + i] = sums[r % kSize][1][i];
      }
      exchange<kWords>(sum.even);
      exchange<kWords>(sum.odd);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t even = k.init, odd = k.init;
#pragma unroll
        for (int t = 0; t < kSize; t++) {
          even += k.row[t] * sum.at(4 * i + (t - kRadius) * kChannels);
          odd += k.row[t] * sum.at(4 * i + 1 + (t - kRadius) * kChannels);
        }
        out[i] = join_pairs(round_pair(k, even), round_pair(k, odd));
      }
    }
  };
};

// A mask without factors: 3x3, or the diamond |dx| + |dy| <= 2 of a 5x5.
template <int kSize>
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
#pragma unroll
      for (int i = 0; i < 4; i++)
        out[i] = join_pairs(round_pair(k, sums[r % kSize][0][i]), round_pair(k, sums[r % kSize][1][i]));
    }
  };
};

// |x| + |y| of a smoothing column with a difference row, and the transpose: sobel, scharr, prewitt.
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
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t result[2];
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
          const int n = 4 * i + odd;
          const uint32_t left = smooth.at(n - kChannels), right = smooth.at(n + kChannels);
          const uint32_t x = max_pair(left, right) - min_pair(left, right);
          // 256 in each lane of the differences, times the smoothing row's sum
          const uint32_t ty = (difference.at(n - kChannels) + difference.at(n + kChannels)) * k.column[0] +
                              difference.at(n) * k.column[1];
          const uint32_t y = max_pair(ty, k.zero) - min_pair(ty, k.zero);
          result[odd] = round_magnitude(k, x, y);
        }
        out[i] = join_pairs(result[0], result[1]);
      }
    }

    // The root of x^2 + y^2 <= 2 * 4080^2 to the nearest integer, and no further than 255 matters. Integers next to a
    // boundary (n + 1/2)^2 are off it by a quarter at least, which is far more than the root's error.
    __device__ static uint32_t root(uint32_t x, uint32_t y) {
      const float square = static_cast<float>(x * x + y * y);
      return static_cast<uint32_t>(fminf(square_root(square), 255.0f) + 0.5f);
    }

    __device__ static float square_root(float v) {
#ifdef __CUDA_ARCH__
      float r;
      asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
      return r;
#else
      return __builtin_sqrtf(v);
#endif
    }

    __device__ static uint32_t round_magnitude(const PackedParams &k, uint32_t x, uint32_t y) {
      if (k.euclidean) return root(x & 0xffffu, y & 0xffffu) | root(x >> 16, y >> 16) << 16;
      return min_pair(x + y, 0x00ff00ffu);
    }
  };
};

// The greatest or least of a square window. A lane of 16 bits is decided by its high byte, so that the odd pair is the
// word as it is.
template <bool kMaximum, int kSize>
struct SlidingExtremum {
  static constexpr int kRadius = kSize / 2;

  __device__ static uint32_t pick(uint32_t a, uint32_t b, uint32_t c) {
    return kMaximum ? __vimax3_u16x2(a, b, c) : __vimin3_u16x2(a, b, c);
  }

  template <int kChannels>
  struct State {
    // With an even number of channels, neighbours in a pair's row are of its own kind.
    static constexpr bool kRawOdd = kChannels % 2 == 0;
    uint32_t rows[kSize][2][4];

    __device__ void enter(const PackedParams &, int j, const uint32_t (&row)[4], uint32_t (&out)[4]) {
      constexpr int kWords = (kRadius * kChannels + 3) / 4;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        rows[j % kSize][0][i] = even_pair(row[i]);
        rows[j % kSize][1][i] = kRawOdd ? row[i] : odd_pair(row[i]);
      }
      if (j < 2 * kRadius) return;
      PairRow<kWords> column;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t even = rows[0][0][i], odd = rows[0][1][i];
#pragma unroll
        for (int t = 1; t < kSize; t += 2) {
          even = pick(even, rows[t][0][i], rows[t + 1][0][i]);
          odd = pick(odd, rows[t][1][i], rows[t + 1][1][i]);
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
            result[odd] = pick(result[odd], column.at(n + t * kChannels), column.at(n + (t + 1) * kChannels));
        }
        out[i] = permute_bytes(result[0], result[1], kRawOdd ? 0x7250 : 0x6240);
      }
    }
  };
};

// The 16 bytes of a lane, for each row of the strip from kRadius above its first result. Bytes outside the frame are
// those of the border, as far out as the window reaches.
template <int kChannels, int kRadius, int kRows>
__device__ inline void load_strip(const FrameParams &p, const PartParams &part, int first_byte, int y0,
                                  uint32_t (&strip)[kRows][4]) {
  const int row_bytes = part.width * kChannels;
  const bool inside = part.aligned && first_byte >= 0 && first_byte + kLaneBytes <= row_bytes;
  // Elsewhere bytes are gathered here one by one, or, where a pixel is a word, four by four.
  uint32_t *gathered = shared_memory<uint32_t>() + threadIdx.x * 4;
  constexpr int kUnit = kChannels == 4 ? 4 : 1;
  const int begin = max(first_byte, -kRadius * kChannels),
            end = min(first_byte + kLaneBytes, row_bytes + kRadius * kChannels);
  const int top = y0 - kRadius;
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
#pragma unroll
  for (int j = 0; j < kRows; j++) {
    const int y = border_index(p.border, top + j, part.height);
    const uint8_t *row = part.source + y * part.source_pitch;
    uint4 v;
    if (inside && y >= 0) {
      v = __ldg(reinterpret_cast<const uint4 *>(row + first_byte));
    } else {
#pragma unroll 1
      for (int byte = begin; byte < end; byte += kUnit) {
        // Rounds down; begin is no less than -kLaneBytes.
        const int pixel = (byte + kLaneBytes * kChannels) / kChannels - kLaneBytes, channel = byte - pixel * kChannels;
        const int x = border_index(p.border, pixel, part.width), at = x * kChannels + channel;
        if constexpr (kUnit == 4)
          gathered[(byte - first_byte) / 4] =
              x < 0 || y < 0 ? part.border_word[0] : static_cast<uint32_t>(read_container(Container::Packed32, row, x));
        else
          reinterpret_cast<uint8_t *>(gathered)[byte - first_byte] =
              static_cast<uint8_t>(x < 0 || y < 0 ? part.channel[channel].border_value : row[at]);
      }
      v = *reinterpret_cast<const uint4 *>(gathered);
    }
    strip[j][0] = v.x;
    strip[j][1] = v.y;
    strip[j][2] = v.z;
    strip[j][3] = v.w;
  }
}

// Bytes of shared memory of a block.
constexpr size_t kSlidingBytes = kSlidingThreads * kLaneBytes;

template <int kChannels>
__device__ inline void store_row(const PartParams &part, int first_byte, int y, const uint32_t (&row)[4]) {
  uint8_t *target = part.target + y * part.target_pitch + first_byte;
  const int bytes = part.width * kChannels - first_byte;
  if (part.aligned && bytes >= kLaneBytes) {
    *reinterpret_cast<uint4 *>(target) = make_uint4(row[0], row[1], row[2], row[3]);
    return;
  }
#pragma unroll
  for (int b = 0; b < kLaneBytes; b++)
    if (b < bytes) target[b] = static_cast<uint8_t>(row[b / 4] >> b % 4 * 8);
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
      store_row<kChannels>(part, first_byte, y, row[0]);
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
    store_row<kChannels>(part, first_byte, y, out);
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
