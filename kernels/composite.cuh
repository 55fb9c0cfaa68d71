// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Openings, closings, and the differences that are made of small dilations and erosions, in one launch: the first step
// from a tile in shared memory to a second one, which reaches out as far as the next step needs, the second step from
// there, and the difference with the first tile's pixels on the way out.
//
// Between the steps, quads of the second tile that lie outside the frame are those that the border's rule makes of the
// first step's result, not what the first step makes of the frame's border.
#pragma once

#include "quads.cuh"

namespace cudaconv {

enum class CompositeResult : uint8_t { Plain, SourceMinus, MinusSource };

struct CompositeParams : FrameParams {
  QuadTile tile;
  uint32_t flip[2];  // of both steps: xored with the bytes before and after, for a minimum
  CompositeResult result;
};

constexpr int kCompositeWarps = 8;
constexpr int kCompositeColumns = 128;  // threads side by side
constexpr int kCompositeStrips = 32 * kCompositeWarps / kCompositeColumns;
constexpr int kCompositeWidth = kCompositeColumns - 2 * 2;  // quads; the first step reaches out by 2 at most
constexpr int kCompositePitch = kCompositeWidth + 2 * kChunk;

// a - b of each byte, 0 where that is less.
__device__ inline uint32_t subtract_bytes(uint32_t a, uint32_t b) {
  const uint32_t even = even_bytes(b), odd = b & 0xff00ff00u;
  return (__vmaxu2(even_bytes(a), even) - even) | (__vmaxu2(a & 0xff00ff00u, odd) - odd);
}

struct Greatest {
  __device__ static uint32_t of(uint32_t a, uint32_t b, uint32_t c) { return __vimax3_u16x2(a, b, c); }
};
struct Least {
  __device__ static uint32_t of(uint32_t a, uint32_t b, uint32_t c) { return __vimin3_u16x2(a, b, c); }
};

// The extrema of squares down a column of quads.
template <int kRadius, typename Extreme>
struct ColumnWindow {
  static constexpr int kSize = 2 * kRadius + 1;
  uint32_t even[kSize], odd[kSize];  // those of the last rows

  // Row n enters, n % kSize == j; quad(i) is its quad number i from the left of the window.
  template <typename Quad>
  __device__ void enter(int j, Quad quad) {
    even[j] = even_bytes(quad(0));
    odd[j] = quad(0);
#pragma unroll
    for (int i = 1; i < kSize; i += 2) {
      even[j] = Extreme::of(even[j], even_bytes(quad(i)), even_bytes(quad(i + 1)));
      odd[j] = Extreme::of(odd[j], quad(i), quad(i + 1));
    }
  }
  __device__ uint32_t result() const {
    uint32_t e = even[0], o = odd[0];
#pragma unroll
    for (int i = 1; i < kSize; i += 2) {
      e = Extreme::of(e, even[i], even[i + 1]);
      o = Extreme::of(o, odd[i], odd[i + 1]);
    }
    return join_bytes(e, o);
  }
};

// Slides windows down `rows` results, the first one's upper left quad being `quads`; emit(row) when they are complete.
template <int kRadius, typename... Windows, typename Emit>
__device__ inline void slide_down(const uint32_t *quads, uint32_t flip, int rows, Emit emit, Windows &...windows) {
  constexpr int kSize = 2 * kRadius + 1;
  for (int base = 0; base < rows + 2 * kRadius; base += kSize) {
#pragma unroll
    for (int j = 0; j < kSize; j++) {
      const int row = base + j;
      if (row >= rows + 2 * kRadius) return;
      uint32_t line[kSize];
#pragma unroll
      for (int i = 0; i < kSize; i++) line[i] = quads[row * kCompositePitch + i] ^ flip;
      (windows.enter(j, [&](int i) { return line[i]; }), ...);
      if (row >= 2 * kRadius) emit(row - 2 * kRadius);
    }
  }
}

// Puts into the quads of the second tile that lie outside the frame what the border's rule says. Its first is the one
// kRadius up and left of the tile's first result.
template <int kRadius>
__device__ inline void extend_tile(const FrameParams &p, const QuadTile &shape, const Tile &tile, uint32_t *quads) {
  const PartParams &part = tile.part;
  const int count = subtiles(part.channels), x0 = tile.x0 - kRadius, y0 = tile.y0 - kRadius;
  const int columns = shape.width + 2 * kRadius;
  const int rows = min(shape.height, part.height - tile.y0) + 2 * kRadius;
  for (int column = threadIdx.x % kCompositeColumns; column < columns; column += kCompositeColumns)
    for (int row = threadIdx.x / kCompositeColumns; row < rows; row += kCompositeStrips) {
      const int sy = border_index(p.border, y0 + row, part.height);
      for (int s = 0; s < count; s++) {
        // Of subtiles that lie outside altogether nothing is seen.
        const int left = x0 + s * shape.width, x = left + column;
        if (left + kRadius >= part.width || x >= part.width + kRadius) break;
        const int sx = border_index(p.border, x, part.width);
        if (sx >= 0 && sx == x && sy >= 0 && sy == y0 + row) continue;
        const uint32_t bits = count == 1 ? 0xffffffffu : (count == 2 ? 0xffffu : 0xffu) << s * (32 / count);
        const uint32_t from = sx < 0 || sy < 0 ? part.border_word[0] : quads[(sy - y0) * kCompositePitch + sx - left];
        uint32_t &quad = quads[row * kCompositePitch + column];
        quad = (quad & ~bits) | (from & bits);
      }
    }
}

__device__ inline void load_tile(const FrameParams &p, const QuadTile &shape, const Tile &tile, uint32_t *quads) {
  const int rows = min(shape.height, tile.part.height - tile.y0) + 2 * shape.halo_y;
  const int share = (rows + kCompositeWarps - 1) / kCompositeWarps, first = threadIdx.x / 32 * share;
  if (first < rows)
    load_rows(p, shape, tile, first, min(share, rows - first), kCompositePitch, quads + first * kCompositePitch);
  wait_for_chunks();
  __syncthreads();
}

// The rows of a thread's strip, of so many.
struct Strip {
  int first, rows;
  __device__ explicit Strip(int all) {
    const int share = (all + kCompositeStrips - 1) / kCompositeStrips;
    first = threadIdx.x / kCompositeColumns * share;
    rows = min(share, all - first);
  }
};

// Two steps, one after the other.
template <int kRadius>
__global__ void __launch_bounds__(32 * kCompositeWarps, blocks_at_once(5))
    two_step_kernel(const __grid_constant__ CompositeParams p) {
  const QuadTile &shape = p.tile;
  const Tile tile = locate_quad_tile(p, shape);
  const PartParams &part = tile.part;
  uint32_t *source = shared_memory<uint32_t>();
  uint32_t *middle = source + kCompositePitch * (shape.height + 4 * kRadius);
  load_tile(p, shape, tile, source);

  const int column = threadIdx.x % kCompositeColumns, rows = min(shape.height, part.height - tile.y0);
  ColumnWindow<kRadius, Greatest> window;
  if (column < shape.width + 2 * kRadius) {
    const Strip strip(rows + 2 * kRadius);
    const uint32_t *from = source + strip.first * kCompositePitch + column + shape.halo_x - 2 * kRadius;
    uint32_t *to = middle + strip.first * kCompositePitch + column;
    slide_down<kRadius>(
        from, p.flip[0], strip.rows, [&](int row) { to[row * kCompositePitch] = window.result() ^ p.flip[0]; }, window);
  }
  __syncthreads();
  const int right = tile.x0 + shape.width * subtiles(part.channels) + kRadius;
  if (tile.x0 < kRadius || right > part.width || tile.y0 < kRadius || tile.y0 + rows + kRadius > part.height) {
    extend_tile<kRadius>(p, shape, tile, middle);
    __syncthreads();
  }

  const Strip strip(rows);
  QuadWriter writer(shape, tile, column, strip.first);
  if (column >= shape.width || !writer.writes()) return;
  const uint32_t *from = middle + strip.first * kCompositePitch + column;
  const uint32_t *pixels = source + (strip.first + 2 * kRadius) * kCompositePitch + column + shape.halo_x;
  writer.write([&](auto put) {
    slide_down<kRadius>(
        from, p.flip[1], strip.rows,
        [&](int row) {
          const uint32_t pixel = pixels[row * kCompositePitch];
          uint32_t quad = window.result() ^ p.flip[1];
          if (p.result == CompositeResult::SourceMinus) quad = subtract_bytes(pixel, quad);
          if (p.result == CompositeResult::MinusSource) quad = subtract_bytes(quad, pixel);
          put(part.merges ? merge_quad(part, quad, pixel) : quad);
        },
        window);
  });
}

// The difference of the two steps, each from the source.
template <int kRadius>
__global__ void __launch_bounds__(32 * kCompositeWarps, blocks_at_once(5))
    range_kernel(const __grid_constant__ CompositeParams p) {
  const QuadTile &shape = p.tile;
  const Tile tile = locate_quad_tile(p, shape);
  const PartParams &part = tile.part;
  uint32_t *source = shared_memory<uint32_t>();
  load_tile(p, shape, tile, source);

  const int column = threadIdx.x % kCompositeColumns;
  const Strip strip(min(shape.height, part.height - tile.y0));
  QuadWriter writer(shape, tile, column, strip.first);
  if (column >= shape.width || !writer.writes()) return;
  const uint32_t *from = source + strip.first * kCompositePitch + column + shape.halo_x - kRadius;
  ColumnWindow<kRadius, Greatest> upper;
  ColumnWindow<kRadius, Least> lower;
  writer.write([&](auto put) {
    slide_down<kRadius>(
        from, 0, strip.rows,
        [&](int row) {
          const uint32_t quad = upper.result() - lower.result();  // of no byte less than 0
          put(part.merges ? merge_quad(part, quad, from[(row + kRadius) * kCompositePitch + kRadius]) : quad);
        },
        upper, lower);
  });
}

}  // namespace cudaconv
