// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Separable masks of larger radii than the strips of separable_strip.cuh, by the same instructions, on tiles in shared
// memory: a plane of samples and a plane of results for each channel.
#pragma once

#include "cuda/mma/separable.cuh"

namespace cudaconv {

// Pitch of a plane with rows of `bytes` bytes: an odd multiple of 16, so that four neighbouring words in each of eight
// rows lie in different banks.
CUDACONV_HOST_DEVICE constexpr int plane_pitch(int bytes) {
  return (bytes + 15) / 16 % 2 ? (bytes + 15) / 16 * 16 : (bytes + 15) / 16 * 16 + 16;
}

// Columns of a plane to the left and right of the tile, for a class of radii: whole vectors of 16 bytes.
CUDACONV_HOST_DEVICE constexpr int plane_margin(int radius) {
  return (radius + 15) / 16 * 16;
}

CUDACONV_HOST_DEVICE constexpr int source_pitch(int radius) {
  return plane_pitch(kMmaTileWidth + 2 * plane_margin(radius));
}
constexpr int kResultPitch = plane_pitch(kMmaTileWidth + 1);

// One plane for each channel in shared memory. `data` is the sample of channel 0 at the tile's corner.
struct Planes {
  uint8_t *data;
  int pitch, plane_bytes;
  __device__ uint8_t *at(int c, int x, int y) const { return data + c * plane_bytes + y * pitch + x; }
};

// Loads the groups of columns first ... last - 1 of the tile's rows, halo included. The columns lie inside the part;
// with kInside so do the rows.
template <int kChannels, bool kInside>
__device__ inline void load_groups(const MmaParams &p, const Tile &tile, const Planes &planes, int first, int last,
                                   int top, int bottom) {
  using G = Group<kChannels>;
  // kBatch: groups that a thread has in flight at a time.
  constexpr int kNone = INT32_MIN;
  constexpr int kBatch = kChannels == 3 ? 2 : kInside ? 6 : 4;
  const PartParams &part = tile.part;
  const int columns = (last - first) / G::kPixels, threads = static_cast<int>(blockDim.x);
  int y = top + static_cast<int>(threadIdx.x) / columns, column = static_cast<int>(threadIdx.x) % columns;
  const int step_y = threads / columns, step_column = threads % columns;
  while (y < bottom) {
    uint32_t word[kBatch][G::kWords];
    int to[kBatch];  // offset from the tile's corner
#pragma unroll
    for (int k = 0; k < kBatch; k++) {
      to[k] = kNone;
      if (y < bottom) {
        const int x = first + column * G::kPixels, row = kInside ? y : border_index(p.border, y, part.height);
        to[k] = (y - tile.y0) * planes.pitch + x - tile.x0;
        if (kInside || row >= 0) {
          const auto *from = reinterpret_cast<const uint4 *>(part.source + row * part.source_pitch + x * kChannels);
#pragma unroll
          for (int i = 0; i < G::kVectors; i++) {
            const uint4 v = __ldg(from + i);
            word[k][4 * i] = v.x;
            word[k][4 * i + 1] = v.y;
            word[k][4 * i + 2] = v.z;
            word[k][4 * i + 3] = v.w;
          }
        } else {
#pragma unroll
          for (int i = 0; i < G::kWords; i++) word[k][i] = part.border_word[i % 3];
        }
      }
      y += step_y;
      column += step_column;
      if (column >= columns) {
        column -= columns;
        y++;
      }
    }
#pragma unroll
    for (int k = 0; k < kBatch; k++) {
      if (to[k] == kNone) continue;
      uint32_t plane[G::kWords];
      deinterleave_group<kChannels>(word[k], plane);
#pragma unroll
      for (int c = 0; c < kChannels; c++)
        store_words<G::kPlaneWords>(planes.data + to[k] + c * planes.plane_bytes, plane + c * G::kPlaneWords);
    }
  }
}

// Fills the planes with all samples that windows of the tile's pixels reach. All threads of the block take part.
template <int kChannels>
__device__ inline void load_planes(const MmaParams &p, const Tile &tile, const Planes &planes) {
  constexpr int kPixels = Group<kChannels>::kPixels;
  const PartParams &part = tile.part;
  const int left = tile.x0 - p.radius_x, right = min(tile.x0 + kMmaTileWidth, part.width) + p.radius_x;
  const int top = tile.y0 - p.radius_y, bottom = min(tile.y0 + p.tile_height, part.height) + p.radius_y;
  int first = max(left & ~(kPixels - 1), 0);
  int last = min((right + kPixels - 1) & ~(kPixels - 1), part.width & ~(kPixels - 1));
  if (last < first) first = last = left;
  if (first < last) {
    if (top >= 0 && bottom <= part.height)
      load_groups<kChannels, true>(p, tile, planes, first, last, top, bottom);
    else
      load_groups<kChannels, false>(p, tile, planes, first, last, top, bottom);
  }
  // The columns before and behind the groups, pixel by pixel.
  const int before = max(first - left, 0), columns = before + max(right - last, 0);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < columns * (bottom - top); i += static_cast<int>(blockDim.x)) {
    const int row = i / columns, column = i - row * columns;
    const int x = column < before ? left + column : last + column - before, y = top + row;
    const int from_x = border_index(p.border, x, part.width), from_y = border_index(p.border, y, part.height);
    const uint8_t *from = part.source + from_y * part.source_pitch + from_x * kChannels;
    uint8_t *to = planes.at(0, x - tile.x0, y - tile.y0);
#pragma unroll
    for (int c = 0; c < kChannels; c++)
      to[c * planes.plane_bytes] =
          from_x < 0 || from_y < 0 ? static_cast<uint8_t>(part.channel[c].border_value) : __ldg(from + c);
  }
}

// Writes the tile to the target: filtered channels from `results`, copied ones from `source`.
template <int kChannels>
__device__ inline void store_planes(const MmaParams &p, const Tile &tile, const Planes &source, const Planes &results) {
  using G = Group<kChannels>;
  constexpr int kColumns = kMmaTileWidth / G::kPixels;
  const PartParams &part = tile.part;
  const int rows = min(p.tile_height, part.height - tile.y0);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < rows * kColumns; i += static_cast<int>(blockDim.x)) {
    const int y = i / kColumns, x = i % kColumns * G::kPixels;
    const int pixels = min(part.width - (tile.x0 + x), G::kPixels);
    if (pixels <= 0) continue;
    uint8_t *to = part.target + (tile.y0 + y) * part.target_pitch + (tile.x0 + x) * kChannels;
    const auto from = [&](int c) { return (part.channel[c].action == Action::Filter ? results : source).at(c, x, y); };
    if (pixels == G::kPixels) {
      uint32_t plane[G::kWords], word[G::kWords];
#pragma unroll
      for (int c = 0; c < kChannels; c++) {
        load_words<G::kPlaneWords>(from(c), plane + c * G::kPlaneWords);
        if (part.channel[c].action != Action::Fill) continue;
#pragma unroll
        for (int w = 0; w < G::kPlaneWords; w++) plane[c * G::kPlaneWords + w] = part.channel[c].fill * 0x01010101u;
      }
      interleave_group<kChannels>(plane, word);
      store_words<G::kWords>(to, word);
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < pixels; i++, to += kChannels)
#pragma unroll
      for (int c = 0; c < kChannels; c++)
        to[c] = part.channel[c].action == Action::Fill ? static_cast<uint8_t>(part.channel[c].fill) : from(c)[i];
  }
}

__device__ inline void load_planes(const MmaParams &p, const Tile &tile, const Planes &planes) {
  switch (tile.part.channels) {
    case 1:
      return load_planes<1>(p, tile, planes);
    case 2:
      return load_planes<2>(p, tile, planes);
    case 3:
      return load_planes<3>(p, tile, planes);
    default:
      return load_planes<4>(p, tile, planes);
  }
}

__device__ inline void store_planes(const MmaParams &p, const Tile &tile, const Planes &source, const Planes &results) {
  switch (tile.part.channels) {
    case 1:
      return store_planes<1>(p, tile, source, results);
    case 2:
      return store_planes<2>(p, tile, source, results);
    case 3:
      return store_planes<3>(p, tile, source, results);
    default:
      return store_planes<4>(p, tile, source, results);
  }
}

template <typename Shape>
struct SeparableTile {
  static constexpr int kRadius = Shape::kRadius;
  static constexpr int kThreads = 512, kMinBlocks = 1;

  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int channels, int tile_height, int) {
    return Shape::kLineBytes + static_cast<size_t>(channels) *
                                   (source_pitch(kRadius) * (tile_height + 2 * kRadius) + kResultPitch * tile_height);
  }
};

template <typename Shape>
__global__ void __launch_bounds__(SeparableTile<Shape>::kThreads, SeparableTile<Shape>::kMinBlocks)
    separable_mma_kernel(const __grid_constant__ SeparableMmaParams p) {
  if constexpr (kHasMma) {
    static_assert(Shape::kSamples == Samples::U8, "planes in shared memory are of whole samples");
    constexpr int kRadius = Shape::kRadius, kPitch = source_pitch(kRadius), kSteps = Shape::kSteps;
    const Tile tile = locate_tile(p, p.tile_height);
    const PartParams &part = tile.part;
    if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, kMmaTileWidth, p.tile_height);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

    uint32_t *lines = shared_memory<uint32_t>();
    uint8_t *memory = shared_memory<uint8_t>() + Shape::kLineBytes;
    const int source_bytes = kPitch * (p.tile_height + 2 * kRadius);
    const Planes source = {memory + kRadius * kPitch + plane_margin(kRadius), kPitch, source_bytes};
    const Planes results = {memory + part.channels * source_bytes, kResultPitch, kResultPitch * p.tile_height};

    Shape::load_lines(p, lines);
    load_planes(p, tile, source);
    __syncthreads();
    const SeparableOperands<Shape> operands(lines);

    const int steps = (min(p.tile_height, part.height - tile.y0) + 7) / 8;
#pragma unroll 1
    for (int unit = static_cast<int>(threadIdx.x) / 32; unit < part.channels * kMmaTileBlocks;
         unit += SeparableTile<Shape>::kThreads / 32) {
      const int channel = unit / kMmaTileBlocks, x = unit % kMmaTileBlocks * 16;
      if (part.channel[channel].action != Action::Filter || tile.x0 + x >= part.width) continue;
      const uint8_t *from = source.at(channel, x + 4 * t - kRadius, g - kRadius);
      uint8_t *to = results.at(channel, x + 2 * g, 2 * t - 8 * (kSteps - 1));
      SeparableSums<Shape, false> sums;
#pragma unroll 1
      for (int step = 0; step < steps + kSteps - 1; step++, from += 8 * kPitch, to += 8 * kResultPitch) {
        uint32_t window[1][Shape::kChunksX];
#pragma unroll
        for (int c = 0; c < Shape::kChunksX; c++) window[0][c] = *reinterpret_cast<const uint32_t *>(from + 16 * c);
        sums.enter(p, operands, p.row_start, window);
        if (step < kSteps - 1) continue;
        Sums total[1][1] = {{sums.total(operands, p.epilogue.start, 0).total()}};
        uint32_t out[1][1];
        if (Shape::kWeights == Weights::U16RoundedRows && p.epilogue.mode == SumRounding::Sharpen) {
          const uint8_t *centre = source.at(channel, x + 2 * g, 2 * t + 8 * (step - kSteps + 1));
#pragma unroll
          for (int i = 0; i < 4; i++)
            total[0][0].v[i] = sharpen(p.sharpening, total[0][0].v[i], centre[i % 2 * kPitch + i / 2]);
        }
        round_pixels<Shape::kWeights>(p.epilogue, total, out);
        *reinterpret_cast<uint16_t *>(to) = static_cast<uint16_t>(out[0][0]);
        *reinterpret_cast<uint16_t *>(to + kResultPitch) = static_cast<uint16_t>(out[0][0] >> 16);
      }
    }
    __syncthreads();
    store_planes(p, tile, source, results);
  }
}

}  // namespace cudaconv
