// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The methods: the same operation with the source read from different places. Set them side by side:
//
//   method         source samples of a window come from              the mask comes from   outputs a thread
//   global         global memory, each read again by every thread    global memory         1
//   constant       global memory, the same way                       constant memory       1
//   tiled          a shared-memory tile with its halo, read once     constant memory       2
//   tiled-cached   a tile without halo; the halo through the cache   constant memory       2
//   blocked        registers (3x3: a 6x6 patch) or the cache         constant memory       16 or 4
//   cascade        a tile with halo, and a second one between two    none (3x3 extrema)    2
//                  3x3 steps that make a 5x5
//   separable      a tile row by row; row results in shared memory   constant memory       4
//
// A block works on one tile of one part of the frame, channel by channel, a thread on the same pixels of it in each.
// All parts of a frame are in one launch. Outside the frame every method sees the border's samples.
#pragma once

#include "launch.cuh"
#include "operations.cuh"
#include "sample.cuh"

namespace cudaconv {

constexpr int kBlockWidth = 32, kBlockHeight = 8;  // threads
constexpr int kBlockThreads = kBlockWidth * kBlockHeight;

// global, constant.

template <typename Operation>
__device__ inline void filter_direct(const LaunchParams &p, const MaskParams &m) {
  const Tile tile = locate_tile(p, kBlockWidth, kBlockHeight);
  const PartParams &part = tile.part;
  const int x = tile.x0 + threadIdx.x, y = tile.y0 + threadIdx.y;
  if (x >= part.width || y >= part.height) return;
  const bool inside = window_inside(p, part, x, y);
  PixelWriter writer;
  for (int c = 0; c < part.channels; c++) {
    bool filtered;
    int v = unfiltered(p, part, x, y, c, &filtered);
    if (filtered) {
      const Rounding &rounding = p.rounding[part.channel[c].rounding];
      const SourceReader source(p, part, c);
      if (inside)
        v = Operation::template evaluate<0>(p, m, rounding, [&](int dx, int dy) { return source.at(x + dx, y + dy); });
      else
        v = Operation::template evaluate<0>(p, m, rounding,
                                            [&](int dx, int dy) { return source.anywhere(x + dx, y + dy); });
    }
    writer.put(part, x, y, c, v);
  }
}

template <typename Operation>
__global__ void __launch_bounds__(kBlockThreads)
    global_kernel(const __grid_constant__ LaunchParams p, const MaskParams *mask) {
  filter_direct<Operation>(p, *mask);
}

template <typename Operation>
__global__ void __launch_bounds__(kBlockThreads)
    constant_kernel(const __grid_constant__ LaunchParams p, const MaskParams *) {
  filter_direct<Operation>(p, p.mask);
}

// tiled, tiled-cached.

constexpr int kTileWidth = kBlockWidth, kTileRows = 2, kTileHeight = kBlockHeight * kTileRows;

// Bytes of shared memory for a tile with this halo, one channel of it.
constexpr size_t tile_bytes(int halo_x, int halo_y) {
  return sizeof(uint16_t) * (kTileWidth + 2 * halo_x) * (kTileHeight + 2 * halo_y);
}

// Fills `samples` with channel c of the source around the tile; all threads of the block take part.
__device__ inline void load_tile(const LaunchParams &p, const Tile &tile, int c, int halo_x, int halo_y,
                                 uint16_t *samples) {
  const PartParams &part = tile.part;
  const int width = kTileWidth + 2 * halo_x, height = kTileHeight + 2 * halo_y;
  const int x0 = tile.x0 - halo_x, y0 = tile.y0 - halo_y;
  const SourceReader source(p, part, c);
  const bool inside = x0 >= 0 && y0 >= 0 && x0 + width <= part.width && y0 + height <= part.height;
  for (int y = threadIdx.y; y < height; y += kBlockHeight)
    for (int x = threadIdx.x; x < width; x += kBlockWidth)
      samples[y * width + x] =
          static_cast<uint16_t>(inside ? source.at(x0 + x, y0 + y) : source.anywhere(x0 + x, y0 + y));
}

template <typename Operation, bool kHalo>
__global__ void __launch_bounds__(kBlockThreads)
    tiled_kernel(const __grid_constant__ LaunchParams p, const MaskParams *) {
  const Tile tile = locate_tile(p, kTileWidth, kTileHeight);
  const PartParams &part = tile.part;
  const int halo_x = kHalo ? p.mask.radius_x : 0, halo_y = kHalo ? p.mask.radius_y : 0;
  const int pitch = kTileWidth + 2 * halo_x;
  uint16_t *samples = shared_memory<uint16_t>();
  PixelWriter writer[kTileRows];
  for (int c = 0; c < part.channels; c++) {
    const SourceReader source(p, part, c);
    if (part.channel[c].action == Action::Filter) {
      __syncthreads();  // the last channel's tile has been read
      load_tile(p, tile, c, halo_x, halo_y, samples);
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kTileRows; r++) {
      const int tx = threadIdx.x, ty = threadIdx.y + r * kBlockHeight;
      const int x = tile.x0 + tx, y = tile.y0 + ty;
      if (x >= part.width || y >= part.height) continue;
      bool filtered;
      int v = unfiltered(p, part, x, y, c, &filtered);
      if (filtered) {
        const auto fetch = [&](int dx, int dy) -> int {
          if constexpr (kHalo) {
            return samples[(ty + halo_y + dy) * pitch + tx + halo_x + dx];
          } else {
            const int sx = tx + dx, sy = ty + dy;
            const bool in_tile = sx >= 0 && sx < kTileWidth && sy >= 0 && sy < kTileHeight;
            return in_tile ? samples[sy * pitch + sx] : source.anywhere(x + dx, y + dy);
          }
        };
        v = Operation::template evaluate<0>(p, p.mask, p.rounding[part.channel[c].rounding], fetch);
      }
      writer[r].put(part, x, y, c, v);
    }
  }
}

// blocked: kSide x kSide outputs a thread. With a window of 3x3 all they need fits in registers.

template <typename Operation, int kSide, int kWidth>
__global__ void __launch_bounds__(kBlockThreads)
    blocked_kernel(const __grid_constant__ LaunchParams p, const MaskParams *) {
  constexpr int kPatch = kSide + kWidth - 1;  // used where kWidth is known
  const Tile tile = locate_tile(p, kBlockWidth * kSide, kBlockHeight * kSide);
  const PartParams &part = tile.part;
  const int x0 = tile.x0 + threadIdx.x * kSide, y0 = tile.y0 + threadIdx.y * kSide;
  if (x0 >= part.width || y0 >= part.height) return;
  const bool inside = window_inside(p, part, x0, y0) && window_inside(p, part, x0 + kSide - 1, y0 + kSide - 1);
  PixelWriter writer[kSide][kSide];
  for (int c = 0; c < part.channels; c++) {
    const Rounding &rounding = p.rounding[part.channel[c].rounding];
    const SourceReader reader(p, part, c);
    const auto source = [&](int x, int y) { return inside ? reader.at(x, y) : reader.anywhere(x, y); };
    int patch[kWidth ? kPatch : 1][kWidth ? kPatch : 1];
    if constexpr (kWidth > 0) {
      if (part.channel[c].action == Action::Filter) {
#pragma unroll
        for (int j = 0; j < kPatch; j++)
#pragma unroll
          for (int i = 0; i < kPatch; i++) patch[j][i] = source(x0 + i - kWidth / 2, y0 + j - kWidth / 2);
      }
    }
#pragma unroll
    for (int j = 0; j < kSide; j++)
#pragma unroll
      for (int i = 0; i < kSide; i++) {
        const int x = x0 + i, y = y0 + j;
        if (x >= part.width || y >= part.height) continue;
        bool filtered;
        int v = unfiltered(p, part, x, y, c, &filtered);
        if (filtered)
          v = Operation::template evaluate<kWidth>(p, p.mask, rounding, [&](int dx, int dy) {
            if constexpr (kWidth > 0)
              return patch[j + dy + kWidth / 2][i + dx + kWidth / 2];
            else
              return source(x + dx, y + dy);
          });
        writer[j][i].put(part, x, y, c, v);
      }
  }
}

// cascade: a 5x5 extremum is the 3x3 extremum of the 3x3 extrema, here both in one launch.

template <bool kMaximum>
__global__ void __launch_bounds__(kBlockThreads)
    cascade_kernel(const __grid_constant__ LaunchParams p, const MaskParams *) {
  const Tile tile = locate_tile(p, kTileWidth, kTileHeight);
  const PartParams &part = tile.part;
  constexpr int kSourcePitch = kTileWidth + 4, kMiddlePitch = kTileWidth + 2, kMiddleHeight = kTileHeight + 2;
  uint16_t *samples = shared_memory<uint16_t>(), *middle = samples + kSourcePitch * (kTileHeight + 4);
  const auto extremum3x3 = [](const uint16_t *corner, int pitch) {
    int v = Extremum<kMaximum>::identity();
#pragma unroll
    for (int j = 0; j < 3; j++)
#pragma unroll
      for (int i = 0; i < 3; i++) v = Extremum<kMaximum>::pick(v, corner[j * pitch + i]);
    return v;
  };
  PixelWriter writer[kTileRows];
  for (int c = 0; c < part.channels; c++) {
    if (part.channel[c].action == Action::Filter) {
      __syncthreads();  // the last channel's tiles have been read
      load_tile(p, tile, c, 2, 2, samples);
      __syncthreads();
      for (int y = threadIdx.y; y < kMiddleHeight; y += kBlockHeight)
        for (int x = threadIdx.x; x < kMiddlePitch; x += kBlockWidth)
          middle[y * kMiddlePitch + x] =
              static_cast<uint16_t>(extremum3x3(samples + y * kSourcePitch + x, kSourcePitch));
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kTileRows; r++) {
      const int tx = threadIdx.x, ty = threadIdx.y + r * kBlockHeight;
      const int x = tile.x0 + tx, y = tile.y0 + ty;
      if (x >= part.width || y >= part.height) continue;
      bool filtered;
      int v = unfiltered(p, part, x, y, c, &filtered);
      if (filtered) v = extremum3x3(middle + ty * kMiddlePitch + tx, kMiddlePitch);
      writer[r].put(part, x, y, c, v);
    }
  }
}

constexpr size_t cascade_bytes() {
  return sizeof(uint16_t) * ((kTileWidth + 4) * (kTileHeight + 4) + (kTileWidth + 2) * (kTileHeight + 2));
}

// separable: kBlockHeight source rows at a time are staged and summed along the row; the row results of the tile and
// its halo above and below then serve the columns.

constexpr int kSeparableRows = 4, kSeparableHeight = kBlockHeight * kSeparableRows;

template <typename RowValue>
constexpr size_t separable_bytes(int radius_x, int radius_y) {
  return sizeof(RowValue) * kBlockWidth * (kSeparableHeight + 2 * radius_y) +
         sizeof(uint16_t) * kBlockHeight * (kBlockWidth + 2 * radius_x);
}

template <typename Operation>
__global__ void __launch_bounds__(kBlockThreads)
    separable_kernel(const __grid_constant__ LaunchParams p, const MaskParams *) {
  using RowValue = typename Operation::RowValue;
  const Tile tile = locate_tile(p, kBlockWidth, kSeparableHeight);
  const PartParams &part = tile.part;
  const int radius_x = p.mask.radius_x, radius_y = p.mask.radius_y;
  const int height = kSeparableHeight + 2 * radius_y, strip_pitch = kBlockWidth + 2 * radius_x;
  const int tx = threadIdx.x, ty = threadIdx.y;
  const bool inside = tile.x0 >= radius_x && tile.x0 + kBlockWidth + radius_x <= part.width && tile.y0 >= radius_y &&
                      tile.y0 + kSeparableHeight + radius_y <= part.height;
  RowValue *row_values = shared_memory<RowValue>();
  uint16_t *strip = reinterpret_cast<uint16_t *>(row_values + kBlockWidth * height);
  PixelWriter writer[kSeparableRows];
  for (int c = 0; c < part.channels; c++) {
    const SourceReader source(p, part, c);
    if (part.channel[c].action == Action::Filter) {
      for (int y0 = 0; y0 < height; y0 += kBlockHeight) {
        __syncthreads();  // the strip, and the last channel's row values, have been read
        const int y = y0 + ty;
        if (y < height)
          for (int i = tx; i < strip_pitch; i += kBlockWidth) {
            const int sx = tile.x0 - radius_x + i, sy = tile.y0 - radius_y + y;
            strip[ty * strip_pitch + i] = static_cast<uint16_t>(inside ? source.at(sx, sy) : source.anywhere(sx, sy));
          }
        __syncthreads();
        if (y < height)
          row_values[y * kBlockWidth + tx] =
              Operation::row(p.mask, [&](int dx) -> int { return strip[ty * strip_pitch + tx + radius_x + dx]; });
      }
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kSeparableRows; r++) {
      const int row = ty + r * kBlockHeight, x = tile.x0 + tx, y = tile.y0 + row;
      if (x >= part.width || y >= part.height) continue;
      bool filtered;
      int v = unfiltered(p, part, x, y, c, &filtered);
      if (filtered)
        v = Operation::column(
            p, p.mask, p.rounding[part.channel[c].rounding],
            [&](int dy) { return row_values[(row + radius_y + dy) * kBlockWidth + tx]; },
            [&](int dx, int dy) { return source.at(x + dx, y + dy); });
      writer[r].put(part, x, y, c, v);
    }
  }
}

// The last step of the morphological gradient and the hats.
__global__ void __launch_bounds__(kBlockThreads)
    difference_kernel(const __grid_constant__ LaunchParams p, const MaskParams *) {
  const Tile tile = locate_tile(p, kBlockWidth, kBlockHeight);
  const PartParams &part = tile.part;
  const int x = tile.x0 + threadIdx.x, y = tile.y0 + threadIdx.y;
  if (x >= part.width || y >= part.height) return;
  PixelWriter writer;
  for (int c = 0; c < part.channels; c++) {
    bool filtered;
    int v = unfiltered(p, part, x, y, c, &filtered);
    if (filtered)
      v = max(0, ChannelReader(part, part.source, part.source_pitch, c).at(x, y) -
                     ChannelReader(part, part.subtrahend, part.subtrahend_pitch, c).at(x, y));
    writer.put(part, x, y, c, v);
  }
}

}  // namespace cudaconv
