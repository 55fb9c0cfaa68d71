// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The methods: the same operation with the source read from different places. Side by side:
//
//   method         source samples of a window come from              the mask comes from   outputs a thread
//   global         global memory, each read again by every thread    global memory         1
//   constant       global memory, the same way                       constant memory       1
//   tiled          a shared-memory tile with its halo, read once     constant memory       2
//   tiled-cached   a tile without halo; the halo through the cache   constant memory       2
//   blocked        global memory, each again through the cache       constant memory       16 or 4
//   cascade        a tile with halo, and a second one between two    none (3x3 extrema)    2
//                  3x3 steps that make a 5x5
//   separable      a tile row by row; row results in shared memory   constant memory       4
//
// A block works on one tile of one part of the frame, channel by channel; a thread works on the same pixels in each
// channel. One launch covers all parts of a frame. Outside the frame every method reads samples by the border mode.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "cuda/methods/operations.cuh"

namespace cudaconv::methods {

constexpr int kBlockWidth = 32, kBlockHeight = 8;  // threads
constexpr int kBlockThreads = kBlockWidth * kBlockHeight;

// Blocks that a multiprocessor is to hold: the most with which nothing spills.
constexpr int kMinBlocks = 6, kMinDirectBlocks = 5;

// Whether the windows of all pixels of a tile of this size lie inside the tile's part.
__device__ inline bool windows_inside(const LaunchParams &p, const Tile &tile, int width, int height) {
  const int radius_x = p.mask.radius_x, radius_y = p.mask.radius_y;
  return tile.x0 >= radius_x && tile.x0 + width + radius_x <= tile.part.width && tile.y0 >= radius_y &&
         tile.y0 + height + radius_y <= tile.part.height;
}

// The methods global, constant and blocked. With blocked a thread computes a square of p.side pixels a side:
// neighbouring windows share most of their samples, which the thread finds in the cache.

__device__ inline void filter_direct(const LaunchParams &p, const MaskParams &m) {
  const int side = p.side;
  const Tile tile = locate_tile(p, kBlockHeight * side);
  const PartParams &part = tile.part;
  const int x0 = tile.x0 + threadIdx.x * side, y0 = tile.y0 + threadIdx.y * side;
  const bool inside = windows_inside(p, tile, kBlockWidth * side, kBlockHeight * side);
#pragma unroll 1
  for (int c = 0; c < part.channels; c++)
#pragma unroll 1
    for (int y = y0; y < y0 + side; y++)
#pragma unroll 1
      for (int x = x0; x < x0 + side; x++)
        make_sample(p, part, x, y, c, [&](const Rounding &rounding) -> int {
          if (is_pointwise(m.op)) {
            const int from_x = min(x, part.width - 1), from_y = min(y, part.height - 1);
            return combine_samples(m.op, ChannelReader(part, part.source, part.source_pitch, c).at(from_x, from_y),
                                   ChannelReader(part, part.operand, part.operand_pitch, c).at(from_x, from_y),
                                   rounding);
          }
          return read_source(p, part, c, inside, [&](const auto &source) {
            return evaluate<std::decay_t<decltype(source)>::kUnroll>(
                p, m, rounding, [&](int dx, int dy) { return source.at(x + dx, y + dy); });
          });
        });
}

// Stores the mask in global memory, for the method global.
__global__ void __launch_bounds__(kBlockThreads) store_mask_kernel(const __grid_constant__ LaunchParams p) {
  const auto *const from = reinterpret_cast<const uint32_t *>(&p.mask);
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(MaskParams) / sizeof(uint32_t)); i += kBlockThreads)
    reinterpret_cast<uint32_t *>(p.stored_mask)[i] = from[i];
}

template <bool kGlobal>
__global__ void __launch_bounds__(kBlockThreads, kMinDirectBlocks)
    direct_kernel(const __grid_constant__ LaunchParams p) {
  if constexpr (kGlobal)
    filter_direct(p, *p.stored_mask);
  else
    filter_direct(p, p.mask);
}

// The other methods load one channel of a tile at a time to shared memory: `load` by all threads of the block, then
// `result` for each pixel of a thread, at (x, y) of the tile.

constexpr int kTileWidth = kBlockWidth, kTileHeight = 2 * kBlockHeight;

// A channel of a tile. `inside`: its windows read nothing outside the frame.
struct TileChannel {
  const LaunchParams &p;
  const Tile &tile;
  int c;
  bool inside;
  SourceReader source;
};

template <typename Method>
__global__ void __launch_bounds__(kBlockThreads, kMinBlocks) tile_kernel(const __grid_constant__ LaunchParams p) {
  const Tile tile = locate_tile(p, Method::kHeight);
  const PartParams &part = tile.part;
  const bool inside = windows_inside(p, tile, kTileWidth, Method::kHeight);
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    const TileChannel channel = {p, tile, c, inside, SourceReader(p, part, c, inside)};
    if (part.channel[c].action == Action::Filter) {
      __syncthreads();  // the previous channel has been read
      Method::load(channel);
      __syncthreads();
    }
#pragma unroll 1
    for (int r = 0; r < Method::kHeight / kBlockHeight; r++) {
      const int x = threadIdx.x, y = threadIdx.y + r * kBlockHeight;
      make_sample(p, part, tile.x0 + x, tile.y0 + y, c,
                  [&](const Rounding &rounding) -> int { return Method::result(channel, rounding, x, y); });
    }
  }
}

// Bytes of shared memory for a tile with this halo.
constexpr size_t tile_bytes(int halo_x, int halo_y) {
  return sizeof(uint16_t) * (kTileWidth + 2 * halo_x) * (kTileHeight + 2 * halo_y);
}

// Loads a tile with its halo.
__device__ inline void load_tile(const TileChannel &t, int halo_x, int halo_y) {
  const int width = kTileWidth + 2 * halo_x, height = kTileHeight + 2 * halo_y;
  const int x0 = t.tile.x0 - halo_x, y0 = t.tile.y0 - halo_y;
  uint16_t *samples = shared_memory<uint16_t>();
  read_source(t.p, t.tile.part, t.c, t.inside, [&](const auto &source) {
#pragma unroll 1
    for (int y = threadIdx.y; y < height; y += kBlockHeight)
#pragma unroll 1
      for (int x = threadIdx.x; x < width; x += kBlockWidth)
        samples[y * width + x] = static_cast<uint16_t>(source.at(x0 + x, y0 + y));
  });
}

// The method tiled.
struct Tiled {
  static constexpr int kHeight = kTileHeight;

  __device__ static void load(const TileChannel &t) { load_tile(t, t.p.mask.radius_x, t.p.mask.radius_y); }
  __device__ static int result(const TileChannel &t, const Rounding &rounding, int x, int y) {
    const int halo_x = t.p.mask.radius_x, halo_y = t.p.mask.radius_y, pitch = kTileWidth + 2 * halo_x;
    const uint16_t *const samples = shared_memory<uint16_t>();
    return evaluate<4>(t.p, t.p.mask, rounding,
                       [&](int dx, int dy) -> int { return samples[(y + halo_y + dy) * pitch + x + halo_x + dx]; });
  }
};

// The method tiled-cached.
struct TiledCached {
  static constexpr int kHeight = kTileHeight;

  __device__ static void load(const TileChannel &t) { load_tile(t, 0, 0); }
  __device__ static int result(const TileChannel &t, const Rounding &rounding, int x, int y) {
    const uint16_t *samples = shared_memory<uint16_t>();
    return evaluate<1>(t.p, t.p.mask, rounding, [&](int dx, int dy) -> int {
      const int sx = x + dx, sy = y + dy;
      const bool in_tile = sx >= 0 && sx < kTileWidth && sy >= 0 && sy < kTileHeight;
      return in_tile ? samples[sy * kTileWidth + sx] : t.source.at(t.tile.x0 + sx, t.tile.y0 + sy);
    });
  }
};

// The method cascade: a 5x5 extremum is the 3x3 extremum of the 3x3 extrema; both steps are in one launch.
struct Cascade {
  static constexpr int kHeight = kTileHeight;
  static constexpr int kSourcePitch = kTileWidth + 4, kMiddlePitch = kTileWidth + 2, kMiddleHeight = kTileHeight + 2;
  static constexpr int kSamples = kSourcePitch * (kTileHeight + 4);  // before the middle ones
  static constexpr size_t kBytes = sizeof(uint16_t) * (kSamples + kMiddlePitch * kMiddleHeight);

  __device__ static int extremum(const TileChannel &t, const uint16_t *corner, int pitch) {
    int v = 0;
    each<3, 3>([&](int j, int i) { v = max(v, corner[j * pitch + i] ^ t.p.mask.flip); });
    return v ^ t.p.mask.flip;
  }
  __device__ static void load(const TileChannel &t) {
    uint16_t *samples = shared_memory<uint16_t>(), *middle = samples + kSamples;
    load_tile(t, 2, 2);
    __syncthreads();
    for (int y = threadIdx.y; y < kMiddleHeight; y += kBlockHeight)
      for (int x = threadIdx.x; x < kMiddlePitch; x += kBlockWidth)
        middle[y * kMiddlePitch + x] = static_cast<uint16_t>(extremum(t, samples + y * kSourcePitch + x, kSourcePitch));
  }
  __device__ static int result(const TileChannel &t, const Rounding &, int x, int y) {
    return extremum(t, shared_memory<uint16_t>() + kSamples + y * kMiddlePitch + x, kMiddlePitch);
  }
};

// The method separable: kBlockHeight source rows at a time are loaded and summed along the row; then the row sums of
// the tile, and of its halo above and below, are summed along columns.
struct Separable {
  static constexpr int kHeight = 4 * kBlockHeight;

  static constexpr size_t bytes(int radius_x, int radius_y) {
    return sizeof(int64_t) * kBlockWidth * (kHeight + 2 * radius_y) +
           sizeof(uint16_t) * kBlockHeight * (kBlockWidth + 2 * radius_x);
  }
  __device__ static void load(const TileChannel &t) {
    const int radius_x = t.p.mask.radius_x, radius_y = t.p.mask.radius_y;
    const int height = kHeight + 2 * radius_y, pitch = kBlockWidth + 2 * radius_x, tx = threadIdx.x;
    int64_t *row_values = shared_memory<int64_t>();
    uint16_t *strip = reinterpret_cast<uint16_t *>(row_values + kBlockWidth * height) + threadIdx.y * pitch;
#pragma unroll 1
    for (int y0 = 0; y0 < height; y0 += kBlockHeight) {
      const int y = y0 + threadIdx.y;
      if (y0) __syncthreads();  // the strip has been read
      if (y < height)
#pragma unroll 1
        for (int i = tx; i < pitch; i += kBlockWidth)
          strip[i] = static_cast<uint16_t>(t.source.at(t.tile.x0 - radius_x + i, t.tile.y0 - radius_y + y));
      __syncthreads();
      if (y < height)
        row_values[y * kBlockWidth + tx] =
            row_value(t.p.mask, [&](int dx) -> int { return strip[tx + radius_x + dx]; });
    }
  }
  __device__ static int result(const TileChannel &t, const Rounding &rounding, int x, int y) {
    const int64_t *row_values = shared_memory<int64_t>() + (y + t.p.mask.radius_y) * kBlockWidth + x;
    return evaluate_column(
        t.p, t.p.mask, rounding, [&](int dy) { return row_values[dy * kBlockWidth]; },
        [&](int dx, int dy) { return t.source.at(t.tile.x0 + x + dx, t.tile.y0 + y + dy); });
  }
};

// Parameters of the kernel of pointwise passes.
struct PointwiseParams : FrameParams {
  Op op;
  uint32_t threshold;  // Op::Threshold: in both halves, or in each byte, as samples are stored
};

// The source where it differs from the operand by more than the threshold, else the operand, in each byte or half.
__device__ inline uint32_t select_changed(bool bytes, uint32_t source, uint32_t operand, uint32_t threshold) {
  const uint32_t changed = bytes ? __vcmpgtu4(__vabsdiffu4(source, operand), threshold)
                                 : __vcmpgtu2(__vabsdiffu2(source, operand), threshold);
  return (source & changed) | (operand & ~changed);
}

// A pointwise pass, see combine_samples(), over dense planes whose addresses and pitches are multiples of 16 bytes, a
// vector of 16 bytes for each thread. Borders are not kept.
__global__ void __launch_bounds__(kBlockThreads, kMinBlocks)
    pointwise_kernel(const __grid_constant__ PointwiseParams p) {
  const Tile tile = locate_tile(p, kBlockHeight);
  const PartParams &part = tile.part;
  const bool bytes = part.container == Container::U8;
  const int first = tile.x0 + static_cast<int>(threadIdx.x) * kVectorBytes, y = tile.y0 + static_cast<int>(threadIdx.y);
  const int left = part.width * part.channels * (bytes ? 1 : 2) - first;
  if (left <= 0 || y >= part.height) return;
  const int period = word_period(bytes ? part.channels : 2);
  uint32_t source[4] = {}, operand[4] = {}, original[4] = {};
  load_bytes<4>(part.source + y * part.source_pitch + first, left, source);
  load_bytes<4>(part.operand + y * part.operand_pitch + first, left, operand);
  if (part.has_unfiltered) load_bytes<4>(part.copy + y * part.copy_pitch + first, left, original);
  // Bits of 16-bit containers that are no samples' are 0 in results.
  const uint32_t samples =
      bytes ? 0xffffffffu : (((1u << part.channel[0].depth) - 1) << part.channel[0].shift) * 0x10001u;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint32_t a = source[i] & samples, b = operand[i] & samples;
    const uint32_t result = p.op == Op::Threshold ? select_changed(bytes, a, b, p.threshold)
                                                  : (bytes ? __vmaxu4(a, b) : __vmaxu2(a, b)) - b;
    source[i] = blend_channels(part, result, original[i], (first / 4 + i) % period);
  }
  store_bytes<4>(part.target + y * part.target_pitch + first, left, source);
}

// Counts of pixels are unsigned: a frame of GStreamer has less than 2^32 bytes.
struct RestoreParams : FrameParams {
  uint32_t first_pixel[kMaxParts];  // number of a part's first kept pixel
  uint32_t pixels;                  // of all parts
};

// How many of `size` rows are kept whole, or how many of `size` pixels of each other row: `keep` on either side.
__host__ __device__ inline int kept_of(int size, int keep) {
  return 2 * keep < size ? 2 * keep : size;
}

// Counts the kept pixels; the frame has been filled in.
inline void count_kept(RestoreParams &p) {
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    const uint32_t rows = kept_of(part.height, p.keep_y), width = part.width, height = part.height;
    p.first_pixel[i] = p.pixels;
    p.pixels += rows * width + (height - rows) * kept_of(part.width, p.keep_x);
  }
}

// Puts back the pixels that border=keep keeps, from the pass's copy_source. A thread has one pixel. Pixels of
// whole rows come first, then the ends of the other rows.
__global__ void __launch_bounds__(kBlockThreads) restore_kernel(const __grid_constant__ RestoreParams p) {
  uint32_t n = blockIdx.x * kBlockThreads + threadIdx.x;
  int i = 0;
  if (n >= p.pixels) return;
  while (i + 1 < p.parts && n >= p.first_pixel[i + 1]) i++;
  n -= p.first_pixel[i];
  const PartParams &part = p.part[i];
  const int rows = kept_of(part.height, p.keep_y), ends = kept_of(part.width, p.keep_x);
  const uint32_t width = part.width, of_rows = rows * width;
  int x = static_cast<int>(n % width), y = static_cast<int>(n / width);
  if (n >= of_rows) {
    x = static_cast<int>((n - of_rows) % ends);
    y = p.keep_y + static_cast<int>((n - of_rows) / ends);
    if (x >= ends / 2) x += part.width - ends;
  } else if (y >= rows / 2) {
    y += part.height - rows;
  }
#pragma unroll 1
  for (int c = 0; c < part.channels; c++)
    if (part.channel[c].action == Action::Filter)
      write_sample(part, x, y, c, ChannelReader(part, part.copy, part.copy_pitch, c).at(x, y));
}

}  // namespace cudaconv::methods
