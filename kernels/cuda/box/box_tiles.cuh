// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Means of windows of up to 15 pixels' width in small frames, see box.cuh.
#pragma once

#include "cuda/box/box.cuh"

namespace cudaconv {

// How a block works. Its warps load and then sum rows, 32 / kGroups at a time; kGroups groups of a row compute kRun
// results each. Then threads go down columns, which are divided into kStrips strips.
template <bool kWide_>
struct BoxShape {
  static constexpr bool kWide = kWide_;  // sums may have more than 16 bits
  static constexpr int kGroups = 8, kRun = 15, kWidth = kGroups * kRun;
  static constexpr int kWarps = 8, kThreads = 32 * kWarps;
  static constexpr int kRowsAtOnce = 32 / kGroups, kRowsOfRound = kRowsAtOnce * kWarps;
  static constexpr int kColumns = 128, kStrips = kThreads / kColumns;
  // Words of a row: pairs of sums, or u8x4s and a halo of kMaxRadius. The lanes of a warp are at different rows and, in
  // each row, an odd number of words apart; the pitch puts their u8x4s in different banks.
  static constexpr int kMaxRadius = 7;
  static constexpr int pitch() {
    const int u8x4s = kWidth + 2 * round_to_chunks(kMaxRadius);
    int words = u8x4s > 2 * kWidth ? u8x4s : 2 * kWidth;
    while (words % (2 * kGroups) != kGroups) words++;
    return words;
  }
  static constexpr int kPitch = pitch();
  static_assert(kRun % 2 == 1 && kWidth <= kColumns && kPitch % kChunk == 0);
};

// The sums of u8x4s along a row, byte by byte: of words, and of odd pairs.
struct PairSums {
  uint32_t words = 0, odd = 0;
  __device__ void change(uint32_t entering, uint32_t leaving) {
    words += entering - leaving;
    odd += odd_pair(entering) - odd_pair(leaving);
  }
  __device__ uint2 pairs() const { return make_uint2(words - (odd << 8), odd); }
};

// The sums of PairSums over rows.
template <bool kWide>
struct WindowSums {
  uint32_t even_pairs = 0, odd_pairs = 0, upper_even = 0, upper_odd = 0;
  __device__ void change(uint2 entering, uint2 leaving) {
    even_pairs += entering.x - leaving.x;
    odd_pairs += entering.y - leaving.y;
    if constexpr (kWide) {
      upper_even += (entering.x >> 16) - (leaving.x >> 16);
      upper_odd += (entering.y >> 16) - (leaving.y >> 16);
    }
  }
  // Makes a u8x4 of samples: round(sum) rounds each sum.
  template <typename Round>
  __device__ uint32_t u8x4(Round round) const {
    uint32_t sums[4] = {even_pairs & 0xffffu, odd_pairs & 0xffffu, even_pairs >> 16, odd_pairs >> 16};
    if constexpr (kWide) {
      sums[0] = even_pairs - (upper_even << 16);
      sums[1] = odd_pairs - (upper_odd << 16);
      sums[2] = upper_even;
      sums[3] = upper_odd;
    }
    return pack_clamped(round(sums[0]), round(sums[1]), round(sums[2]), round(sums[3]));
  }
};

// Sums rows `begin` to `end` - 1, which the warp has loaded: when all of a row is in registers, sums replace it, and
// pixels to be copied replace their sums.
template <typename Shape>
__device__ inline void sum_tile_rows(const BoxParams &p, const PartParams &part, int lane, int radius_x, int begin,
                                     int end, uint32_t *u8x4s) {
  constexpr int kPitch = Shape::kPitch;
  const uint32_t even_filter = even_bytes(part.filter_bits[0]) * 0x101u;
  const uint32_t odd_filter = even_bytes(part.filter_bits[0] >> 8) * 0x101u;
  for (int row0 = begin; row0 < end; row0 += Shape::kRowsAtOnce) {
    const int row = row0 + lane / Shape::kGroups, column = lane % Shape::kGroups * Shape::kRun;
    uint32_t *const line = u8x4s + row * kPitch;
    uint2 pairs[Shape::kRun];
    if (row < end) {
      const uint32_t *from = line + column + p.tile.halo_x - radius_x;
      PairSums sum;
#pragma unroll 4
      for (int i = 0; i < p.width - 1; i++) sum.change(from[i], 0);
      uint32_t leaving = 0;
#pragma unroll
      for (int i = 0; i < Shape::kRun; i++) {
        sum.change(from[i + p.width - 1], leaving);
        leaving = from[i];
        pairs[i] = sum.pairs();
        if (part.has_unfiltered) {
          const uint32_t pixel = from[i + radius_x];
          pairs[i].x = (pairs[i].x & even_filter) | (even_bytes(pixel) & ~even_filter);
          pairs[i].y = (pairs[i].y & odd_filter) | (odd_pair(pixel) & ~odd_filter);
        }
      }
    }
    __syncwarp();
    if (row < end) {
      uint2 *to = reinterpret_cast<uint2 *>(line) + column;
#pragma unroll
      for (int i = 0; i < Shape::kRun; i++) to[i] = pairs[i];
    }
  }
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, BoxTuning::kTileBoundBlocks)
    box_kernel(const __grid_constant__ BoxParams p) {
  constexpr int kPitch = Shape::kPitch, kPairPitch = kPitch / 2;
  const U8x4Tile &shape = p.tile;
  const Tile tile = locate_tile(p, shape.height);
  const PartParams &part = tile.part;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, radius_x = p.width / 2, radius_y = p.height / 2;
  const int result_rows = min(shape.height, part.height - tile.y0), rows = result_rows + 2 * radius_y;
  uint32_t *const u8x4s = shared_memory<uint32_t>();

  const int share = (rows + Shape::kRowsOfRound - 1) / Shape::kRowsOfRound * Shape::kRowsAtOnce;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  if (begin < end) load_rows(p, shape, tile, begin, end - begin, kPitch, u8x4s + begin * kPitch);
  wait_for_copies();
  __syncwarp();
  sum_tile_rows<Shape>(p, part, lane, radius_x, begin, end, u8x4s);
  __syncthreads();

  const int column = threadIdx.x % Shape::kColumns;
  const int strip = (result_rows + Shape::kStrips - 1) / Shape::kStrips, first = threadIdx.x / Shape::kColumns * strip;
  if (__all_sync(0xffffffffu, tile.x0 + column >= part.width) || first >= result_rows) return;
  U8x4Writer writer(shape, tile, column, first);
  const uint2 *entering = reinterpret_cast<const uint2 *>(u8x4s) + first * kPairPitch + min(column, Shape::kWidth - 1);
  const uint2 *leaving = entering;
  const Rounding &rounding = p.rounding[0];
  const auto go_down = [&](uint32_t start, auto round) {
    WindowSums<Shape::kWide> sum;
    sum.change(make_uint2(start * 0x10001u, start * 0x10001u), make_uint2(0, 0));
    if constexpr (Shape::kWide) sum.upper_even = sum.upper_odd = start;
#pragma unroll 4
    for (int i = 0; i < p.height - 1; i++, entering += kPairPitch) sum.change(*entering, make_uint2(0, 0));
    uint2 last = make_uint2(0, 0);
    const int count = min(strip, result_rows - first);
    writer.write([&](auto put) {
#pragma unroll 4
      for (int i = 0; i < count; i++, entering += kPairPitch, leaving += kPairPitch) {
        sum.change(*entering, last);
        last = *leaving;
        uint32_t u8x4 = sum.u8x4(round);
        if (part.has_unfiltered) {
          const uint2 pixel = leaving[radius_y * kPairPitch];
          u8x4 = blend_channels(part, u8x4, even_bytes(pixel.x) | even_bytes(pixel.y) << 8);
        }
        put(u8x4);
      }
    });
  };
  if (p.unclamped)
    go_down(p.start, [&](uint32_t v) { return divide(v, p.reciprocal); });
  else
    go_down(0, [&](uint32_t v) { return round_to_sample(static_cast<int32_t>(v * p.factor), rounding); });
}

}  // namespace cudaconv
