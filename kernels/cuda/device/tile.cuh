// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tiles, and the words of dense planes. A block finds its tile by its number (locate_tile). Words of results get the
// channels that are not filtered (blend_channels), and parts without filtered channels are copied (copy_tile).
//
// Example, NV12 of 1920x1080 in tiles of 32 x 16 pixels. Part 0, luma, has 60 x 68 tiles: blocks 0 to 4079. Part 1,
// chroma, has 30 columns of tiles. Block 4120 is its tile 40, in column 10 of row 1, whose first pixel is (320, 16).
#pragma once

#include <cuda_runtime.h>

#include "cuda/launch_params.h"
#include "plan/rounding.h"

namespace cudaconv {

// Broadcasts `v`, which is the same in all lanes of the warp, so that the compiler knows that it is uniform.
__device__ inline int warp_uniform(int v) {
  return __shfl_sync(0xffffffffu, v, 0);
}

// The sum of the values of this lane and of all lanes before it.
template <typename Sum>
__device__ inline Sum sum_to_lane(Sum v, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Sum before = __shfl_up_sync(0xffffffffu, v, static_cast<unsigned>(distance));
    if (lane >= distance) v += before;
  }
  return v;
}

// A tile: its part, and its first column and row there. Columns count pixels or what else cut_tiles() was told.
struct Tile {
  const PartParams &part;
  int x0, y0;
};

// The tile of this block. kListed: for kernels whose launches have KernelLaunch::lists_tiles.
template <bool kListed = false>
__device__ inline Tile locate_tile(const FrameParams &p, int tile_height) {
  int number = static_cast<int>(blockIdx.x), i = 0;
  if constexpr (kListed)
    if (p.tile_list) {
      number = warp_uniform(static_cast<int>(p.tile_list[number]));
      tile_height = 1;
    }
  while (i + 1 < p.parts && number >= p.first_block[i + 1]) i++;
  const PartParams &part = p.part[i];
  const int tile = number - p.first_block[i];
  // The estimate of the row is exact or one too small.
  int row = static_cast<int>(high_product(static_cast<uint32_t>(tile), part.tiles_x_reciprocal));
  int column = tile - row * part.tiles_x;
  if (column >= part.tiles_x) {
    row++;
    column -= part.tiles_x;
  }
  return {part, part.first_column + column * part.column_step, part.first_row + row * tile_height};
}

// The pixel `more` pixels behind x, where both x and `more` are multiples of 16 bytes: as a product, so that the
// compiler knows that the sum is one, too. With a plain sum, or with x & -kPixels, nvcc 13 spills in two kernels of
// separable.cuh.
template <int kPixelBytes>
__device__ inline int aligned_column(int x, int more = 0) {
  constexpr int kPixels = kPixelBytes == 3 ? 16 : 16 / kPixelBytes;
  return (x / kPixels + more / kPixels) * kPixels;
}

// Merges copied and filled channels into a word of results; copied ones come from `original`, filled ones from the
// plan. `phase`: index of the word in the arrays of PartParams.
__device__ inline uint32_t blend_channels(const PartParams &part, uint32_t result, uint32_t original, int phase = 0) {
  return (result & part.filter_bits[phase]) | (original & part.copy_bits[phase]) | part.fill_word[phase];
}

// After how many words the words of a row repeat in PartParams.
CUDACONV_HOST_DEVICE constexpr int word_period(int pixel_bytes) {
  return pixel_bytes == 3 ? 3 : 2;
}

// Merges the copied and filled channels of `original` into pixels as they lie in memory. The first word begins with a
// pixel.
template <int kPixelBytes, int kWords>
__device__ inline void blend_pixels(const PartParams &part, const uint32_t (&original)[kWords], uint32_t *words) {
#pragma unroll
  for (int i = 0; i < kWords; i++) words[i] = blend_channels(part, words[i], original[i], i % word_period(kPixelBytes));
}

// A word of border samples: the one `i` words after the word at byte `first_byte` of a row.
__device__ inline uint32_t border_word(const PartParams &part, int first_byte, int i) {
  return part.border_word[part.channels == 3 ? (first_byte / 4 + 6 + i) % 3 : i % 2];
}

// Writes rows of a dense part that has no filtered channels, by one warp: bytes first ... last - 1 of rows y, y + step,
// ... above `bottom`. `first` is a multiple of 16. kPeriod: word_period().
template <int kPeriod>
__device__ inline void copy_rows(const PartParams &part, int first, int last, int y, int step, int bottom) {
  constexpr int kBytes = 16;
  const int lane = static_cast<int>(threadIdx.x % 32), end = last & -kBytes;
  const bool copies = part.copy_bits[0] | part.copy_bits[1] | part.copy_bits[2];
#pragma unroll 1
  for (; y < bottom; y += step) {
    const uint8_t *from = part.source + y * part.source_pitch;
    uint8_t *to = part.target + y * part.target_pitch;
#pragma unroll 1
    for (int byte = first + lane * kBytes; byte < end; byte += 32 * kBytes) {
      const auto word = [&](uint32_t v, int w) {
        return blend_channels(part, 0, v, kPeriod == 2 ? w % 2 : (byte / 4 + w) % kPeriod);
      };
      uint4 v = {};
      if (copies) v = *reinterpret_cast<const uint4 *>(from + byte);
      *reinterpret_cast<uint4 *>(to + byte) = make_uint4(word(v.x, 0), word(v.y, 1), word(v.z, 2), word(v.w, 3));
    }
#pragma unroll 1
    for (int byte = end + lane; byte < last; byte += 32) {
      const int phase = byte / 4 % kPeriod, bit = byte % 4 * 8;
      const uint32_t original = copies ? from[byte] : 0;
      to[byte] = static_cast<uint8_t>(blend_channels(part, 0, original << bit, phase) >> bit);
    }
  }
}

// Write a tile of a part that has no filtered channels, by all warps of the block: `samples` samples of each row from
// `first` on, a multiple of 16 bytes, or `width` pixels from x0 on.
__device__ inline void copy_samples(const PartParams &part, int first, int samples, int y0, int height) {
  const int bytes = part.container == Container::U8 ? 1 : 2, last = min(first + samples, part.width * part.channels);
  const int y = y0 + static_cast<int>(threadIdx.x / 32), step = static_cast<int>(blockDim.x / 32);
  const int bottom = min(y0 + height, part.height);
  if (word_period(bytes * part.channels) == 3)
    copy_rows<3>(part, bytes * first, bytes * last, y, step, bottom);
  else
    copy_rows<2>(part, bytes * first, bytes * last, y, step, bottom);
}
__device__ inline void copy_tile(const PartParams &part, int x0, int y0, int width, int height) {
  copy_samples(part, x0 * part.channels, width * part.channels, y0, height);
}

}  // namespace cudaconv
