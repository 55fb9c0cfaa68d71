// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Means over rectangles of any size, in one launch: running sums along the rows of a tile in shared memory, in place,
// and then down the columns of these sums.
//
// Sums of up to 127 bytes fit 16 bits, so two lie in a register; even ones come from sums of whole words, without being
// taken apart first: word = even + 256 * odd, where both are pairs of lanes, also modulo 2^32. In the same way the
// lower sum of a pair comes from that of pairs.
#pragma once

#include "quads.cuh"

namespace cudaconv {

struct BoxParams : FrameParams {
  QuadTile tile;
  int32_t width, height;  // of the window
  int32_t factor;         // of all samples
  // Results are floor((sum + start) / divisor), no more than that, see Rounding: no magnitude, and no clamping.
  int32_t plain;
  uint32_t start;
  float reciprocal;  // of the divisor, not below it
};

// How a block works. Its warps load and then sum rows, 32 / kGroups at a time, in each kGroups times kRun results; then
// threads side by side go down two strips of columns.
template <int kGroups_, int kRun_, bool kWide_, int kMinBlocks_>
struct BoxShape {
  static constexpr int kGroups = kGroups_, kRun = kRun_, kWidth = kGroups * kRun, kMinBlocks = kMinBlocks_;
  static constexpr bool kWide = kWide_;  // sums may be more than 16 bits
  static constexpr int kWarps = 8, kThreads = 32 * kWarps;
  static constexpr int kRowsAtOnce = 32 / kGroups, kRowsOfRound = kRowsAtOnce * kWarps;
  static constexpr int kColumns = 128, kStrips = kThreads / kColumns;
  // Words of a row, of pairs of sums or of quads and a halo of kMaxRadius; such that the lanes of a warp, which are at
  // different rows and an odd number of words apart in each, find their quads in different banks.
  static constexpr int kMaxRadius = kRun <= 15 ? 15 : 63;
  static constexpr int pitch() {
    const int quads = kWidth + 2 * round_to_chunks(kMaxRadius);
    int words = quads > 2 * kWidth ? quads : 2 * kWidth;
    while (words % (2 * kGroups) != kGroups) words++;
    return words;
  }
  static constexpr int kPitch = pitch();
  static_assert(kRun % 2 == 1 && kWidth <= kColumns && kPitch % kChunk == 0);
};

// The sums of a row's samples, in the order of a quad's bytes.
struct PairSums {
  uint32_t words = 0, odd = 0;
  __device__ void change(uint32_t entering, uint32_t leaving) {
    words += entering - leaving;
    odd += __byte_perm(entering, 0, 0x4341) - __byte_perm(leaving, 0, 0x4341);
  }
  __device__ uint2 pairs() const { return make_uint2(words - (odd << 8), odd); }
};

// Sums of these.
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
  // round(sum) makes a byte of each, the rest of the word being anything.
  template <typename Round>
  __device__ uint32_t quad(Round round) const {
    uint32_t sums[4] = {even_pairs & 0xffffu, odd_pairs & 0xffffu, even_pairs >> 16, odd_pairs >> 16};
    if constexpr (kWide) {
      sums[0] = even_pairs - (upper_even << 16);
      sums[1] = odd_pairs - (upper_odd << 16);
      sums[2] = upper_even;
      sums[3] = upper_odd;
    }
    return __byte_perm(__byte_perm(round(sums[0]), round(sums[1]), 0x0040),
                       __byte_perm(round(sums[2]), round(sums[3]), 0x0040), 0x5410);
  }
};

// floor(v / divisor) in the low byte of a float's bits, v below 2^23 and 256 * divisor, the divisor below 2^15: the
// product is too large by less than 2^-15, and so reaches no further integer; 2^23 has it rounded down to one.
__device__ inline uint32_t divide_to_byte(uint32_t v, float reciprocal) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(__fmaf_rd(static_cast<float>(v), reciprocal, 8388608.0f));
#else
  return static_cast<uint32_t>(static_cast<double>(v) * static_cast<double>(reciprocal));
#endif
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, blocks_at_once(Shape::kMinBlocks))
    box_kernel(const __grid_constant__ BoxParams p) {
  constexpr int kPitch = Shape::kPitch, kPairPitch = kPitch / 2;
  const QuadTile &shape = p.tile;
  const Tile tile = locate_quad_tile(p, shape);
  const PartParams &part = tile.part;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, radius_x = p.width / 2, radius_y = p.height / 2;
  const int result_rows = min(shape.height, part.height - tile.y0), rows = result_rows + 2 * radius_y;
  uint32_t *const quads = shared_memory<uint32_t>();

  const int share = (rows + Shape::kRowsOfRound - 1) / Shape::kRowsOfRound * Shape::kRowsAtOnce;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  if (begin < end) load_rows(p, shape, tile, begin, end - begin, kPitch, quads + begin * kPitch);
  wait_for_chunks();
  __syncwarp();
  // Each warp sums the rows that it has loaded: once all of a row is in registers, sums take its place. Pixels to be
  // copied take the place of their sums.
  const uint32_t even_filter = even_bytes(part.filter_bits[0]) * 0x101u;
  const uint32_t odd_filter = even_bytes(part.filter_bits[0] >> 8) * 0x101u;
  for (int row0 = begin; row0 < end; row0 += Shape::kRowsAtOnce) {
    const int row = row0 + lane / Shape::kGroups, column = lane % Shape::kGroups * Shape::kRun;
    uint32_t *const line = quads + row * kPitch;
    uint2 pairs[Shape::kRun];
    if (row < end) {
      const uint32_t *from = line + column + shape.halo_x - radius_x;
      PairSums sum;
#pragma unroll 4
      for (int i = 0; i < p.width - 1; i++) sum.change(from[i], 0);
      uint32_t leaving = 0;
#pragma unroll
      for (int i = 0; i < Shape::kRun; i++) {
        sum.change(from[i + p.width - 1], leaving);
        leaving = from[i];
        pairs[i] = sum.pairs();
        if (part.merges) {
          const uint32_t pixel = from[i + radius_x];
          pairs[i].x = (pairs[i].x & even_filter) | (even_bytes(pixel) & ~even_filter);
          pairs[i].y = (pairs[i].y & odd_filter) | (__byte_perm(pixel, 0, 0x4341) & ~odd_filter);
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
  __syncthreads();

  const int column = threadIdx.x % Shape::kColumns;
  const int strip = (result_rows + Shape::kStrips - 1) / Shape::kStrips, first = threadIdx.x / Shape::kColumns * strip;
  if (__all_sync(0xffffffffu, tile.x0 + column >= part.width) || first >= result_rows) return;
  QuadWriter writer(shape, tile, column, first);
  const uint2 *entering = reinterpret_cast<const uint2 *>(quads) + first * kPairPitch + min(column, Shape::kWidth - 1);
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
        uint32_t quad = sum.quad(round);
        if (part.merges) {
          const uint2 pixel = leaving[radius_y * kPairPitch];
          quad = merge_quad(part, quad, even_bytes(pixel.x) | even_bytes(pixel.y) << 8);
        }
        put(quad);
      }
    });
  };
  if (p.plain)
    go_down(p.start, [&](uint32_t v) { return divide_to_byte(v, p.reciprocal); });
  else
    go_down(0, [&](uint32_t v) {
      return static_cast<uint32_t>(round_to_sample(static_cast<int32_t>(v * p.factor), rounding));
    });
}

}  // namespace cudaconv
