// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Means over rectangles of any size, in one launch: running sums along the rows of a tile, from a few rows of quads
// that each warp stages in shared memory for itself, and then down the columns of these sums.
//
// Sums of up to 127 bytes fit 16 bits, so two lie in a register; even ones come from sums of whole words, without
// being taken apart first: word = even + 256 * odd, where both are pairs of lanes, also modulo 2^32. In the same way
// the lower sum of a pair comes from that of pairs.
#pragma once

#include "quads.cuh"

namespace cudaconv {

struct BoxParams : FrameParams {
  QuadTile tile;
  int32_t width, height;  // of the window
  int32_t stage_pitch;    // words of a staged row
  int32_t factor;         // of all samples
  // Nothing but (factor * sum + start) / divisor is needed, see Rounding: no magnitude, and no clamping.
  int32_t plain;
  uint32_t start;
};

// Its warps sum 32 / kGroups rows at a time, in each kGroups times kRun results.
template <int kGroups_, int kRun_>
struct BoxShape {
  static constexpr int kGroups = kGroups_, kRun = kRun_, kWidth = kGroups * kRun;
  static constexpr int kWarps = 8, kRowsAtOnce = 32 / kGroups;
  static constexpr int kColumns = 128, kStrips = 32 * kWarps / kColumns;
  static_assert(kRun % 2 == 1, "the lanes of a warp then find their quads in different banks");
};

// The sums of a window's samples, in the order of a quad's bytes.
struct PairSums {
  uint32_t words = 0, odd = 0;
  __device__ void add(uint32_t quad) {
    words += quad;
    odd += __byte_perm(quad, 0, 0x4341);
  }
  __device__ void subtract(uint32_t quad) {
    words -= quad;
    odd -= __byte_perm(quad, 0, 0x4341);
  }
  __device__ uint2 pairs() const { return make_uint2(words - (odd << 8), odd); }
};

struct WideSums {
  uint32_t even_pairs = 0, odd_pairs = 0, upper_even = 0, upper_odd = 0;
  __device__ void add(uint2 pairs) {
    even_pairs += pairs.x;
    odd_pairs += pairs.y;
    upper_even += pairs.x >> 16;
    upper_odd += pairs.y >> 16;
  }
  __device__ void subtract(uint2 pairs) {
    even_pairs -= pairs.x;
    odd_pairs -= pairs.y;
    upper_even -= pairs.x >> 16;
    upper_odd -= pairs.y >> 16;
  }
  // round(sum) makes a byte of each.
  template <typename Round>
  __device__ uint32_t quad(Round round) const {
    return round(even_pairs - (upper_even << 16)) | round(odd_pairs - (upper_odd << 16)) << 8 |
           round(upper_even) << 16 | round(upper_odd) << 24;
  }
};

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps, blocks_at_once(3))
    box_kernel(const __grid_constant__ BoxParams p) {
  const QuadTile &shape = p.tile;
  const Tile tile = locate_quad_tile(p, shape);
  const PartParams &part = tile.part;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, radius_x = p.width / 2, radius_y = p.height / 2;
  const int result_rows = min(shape.height, part.height - tile.y0), rows = result_rows + 2 * radius_y;
  uint2 *sums = shared_memory<uint2>();
  uint32_t *stage = reinterpret_cast<uint32_t *>(sums + (shape.height + 2 * radius_y) * Shape::kWidth) +
                    warp * Shape::kRowsAtOnce * p.stage_pitch;

  // Lanes of filtered channels.
  const uint32_t even_filter = even_bytes(part.filter_bits[0]) * 0x101u;
  const uint32_t odd_filter = even_bytes(part.filter_bits[0] >> 8) * 0x101u;
  for (int row0 = warp * Shape::kRowsAtOnce; row0 < rows; row0 += Shape::kWarps * Shape::kRowsAtOnce) {
    __syncwarp();  // what was staged before has been read
    load_rows(p, shape, tile, row0, min(Shape::kRowsAtOnce, rows - row0), p.stage_pitch, stage);
    wait_for_chunks();
    __syncwarp();
    const int row = row0 + lane / Shape::kGroups, column = lane % Shape::kGroups * Shape::kRun;
    if (row >= rows) continue;
    const uint32_t *quads = stage + lane / Shape::kGroups * p.stage_pitch + column + shape.halo_x - radius_x;
    uint2 *out = sums + row * Shape::kWidth + column;
    PairSums sum;
#pragma unroll 8
    for (int i = 0; i < p.width - 1; i++) sum.add(quads[i]);
#pragma unroll
    for (int i = 0; i < Shape::kRun; i++) {
      sum.add(quads[i + p.width - 1]);
      uint2 pairs = sum.pairs();
      if (part.merges) {
        // Pixels to be copied take the place of their sums.
        const uint32_t pixel = quads[i + radius_x];
        pairs.x = (pairs.x & even_filter) | (even_bytes(pixel) & ~even_filter);
        pairs.y = (pairs.y & odd_filter) | (__byte_perm(pixel, 0, 0x4341) & ~odd_filter);
      }
      out[i] = pairs;
      sum.subtract(quads[i]);
    }
  }
  __syncthreads();

  const int column = threadIdx.x % Shape::kColumns;
  const int strip = (result_rows + Shape::kStrips - 1) / Shape::kStrips, first = threadIdx.x / Shape::kColumns * strip;
  QuadWriter writer(shape, tile, column, first);
  if (column >= Shape::kWidth || !writer.writes()) return;
  const uint2 *pairs = sums + first * Shape::kWidth + column, *leaving = pairs;
  WideSums sum;
#pragma unroll 4
  for (int i = 0; i < p.height - 1; i++, pairs += Shape::kWidth) sum.add(*pairs);
  const Rounding &rounding = p.rounding[0];
  const auto round = [&](uint32_t v) -> uint32_t {
    if (p.plain) return high_product(v * p.factor + p.start, static_cast<uint32_t>(rounding.magic)) >> rounding.shift;
    return static_cast<uint32_t>(round_to_sample(static_cast<int32_t>(v * p.factor), rounding));
  };
  const int count = min(strip, writer.rows());
  writer.write([&](auto put) {
#pragma unroll 4
    for (int i = 0; i < count; i++, pairs += Shape::kWidth, leaving += Shape::kWidth) {
      sum.add(*pairs);
      uint32_t quad = sum.quad(round);
      if (part.merges) {
        const uint2 pixel = leaving[radius_y * Shape::kWidth];
        quad = merge_quad(part, quad, even_bytes(pixel.x) | even_bytes(pixel.y) << 8);
      }
      put(quad);
      sum.subtract(*leaving);
    }
  });
}

}  // namespace cudaconv
