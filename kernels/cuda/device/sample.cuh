// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Samples in global memory. A block finds its tile by its number (locate_tile). Its threads read samples, inside the
// frame (ChannelReader) and outside (SourceReader), round sums (round_sum) and write results (write_sample).
// make_sample() filters, copies or fills a channel of a pixel, and writes it.
//
// Example, NV12 of 1920x1080 in tiles of 32 x 16 pixels. Part 0, luma, has 60 x 68 tiles: blocks 0 to 4079. Part 1,
// chroma, has 30 columns of tiles. Block 4120 is its tile 40, in column 10 of row 1, whose first pixel is (320, 16).
#pragma once

#include <cuda_runtime.h>

#include "cuda/launch_params.h"
#include "plan/border.h"
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

// The part of this number. With regions, several rectangles may stand for it, all with its addresses.
__device__ inline const PartParams &find_part(const FrameParams &p, int number) {
  int i = 0;
  while (i + 1 < p.parts && p.part[i].number != number) i++;
  return p.part[i];
}

// The pixel `more` pixels behind x, where both x and `more` are multiples of 16 bytes: as a product, so that the
// compiler knows that the sum is one, too. With a plain sum, or with x & -kPixels, nvcc 13 spills in two kernels of
// separable.cuh.
template <int kPixelBytes>
__device__ inline int aligned_column(int x, int more = 0) {
  constexpr int kPixels = kPixelBytes == 3 ? 16 : 16 / kPixelBytes;
  return (x / kPixels + more / kPixels) * kPixels;
}

// Reads one channel of a plane. In every container a sample is one byte or some bits of two bytes, also as a field of
// Packed32. Offset, shift and mask are computed once. Reads are byte by byte, so pitch and address need no
// alignment.
class ChannelReader {
 public:
  __device__ ChannelReader(const PartParams &part, const uint8_t *data, int64_t pitch, int c)
      : low_(data), pitch_(pitch), shift_(part.channel[c].shift), mask_((1 << part.channel[c].depth) - 1) {
    const int offset = part.channel[c].offset, containers = part.first + offset;
    switch (part.container) {
      case Container::U8:
        low_ += containers;
        step_ = part.step;
        break;
      case Container::U16:
        low_ += 2 * containers;
        step_ = 2 * part.step;
        to_high_ = 1;
        break;
      case Container::U16BE:
        low_ += 2 * containers + 1;
        step_ = 2 * part.step;
        to_high_ = -1;
        break;
      case Container::Packed32: {
        const int byte = min(offset / 8, 2);
        low_ += byte;
        step_ = 4;
        to_high_ = 1;
        shift_ = offset - 8 * byte;
        break;
      }
    }
  }

  // The sample of pixel (x, y), which lies inside the plane.
  __device__ int at(int x, int y) const {
    const uint8_t *low = low_ + y * pitch_ + x * step_;
    if (!to_high_) return low[0];
    return (low[0] | low[to_high_] << 8) >> shift_ & mask_;
  }

 private:
  const uint8_t *low_;  // low byte of the first sample
  int64_t pitch_;
  int step_ = 0, to_high_ = 0;  // distances in bytes; to_high_ is 0 for samples of one byte
  int shift_, mask_;
};

// Reads channel c of the source inside the frame and outside, by the border mode.
class SourceReader {
 public:
  static constexpr int kUnroll = 1;  // unroll factor for loops along a row

  // `inside`: nothing outside the frame is read.
  __device__ SourceReader(const FrameParams &p, const PartParams &part, int c, bool inside)
      : reader_(part, part.source, part.source_pitch, c),
        border_(p.border),
        width_(part.width),
        height_(part.height),
        border_value_(part.channel[c].border_value),
        inside_(inside) {}

  __device__ int at(int x, int y) const {
    if (!inside_) {
      x = border_index(border_, x, width_);
      y = border_index(border_, y, height_);
      if (x < 0 || y < 0) return border_value_;
    }
    return reader_.at(x, y);
  }

 private:
  ChannelReader reader_;
  Border border_;
  int width_, height_, border_value_;
  bool inside_;
};

// Reads one channel of 8-bit containers, inside the frame only, with little code.
class ByteReader {
 public:
  static constexpr int kUnroll = 4;

  __device__ ByteReader(const PartParams &part, int c)
      : first_(part.source + part.first + part.channel[c].offset), pitch_(part.source_pitch), step_(part.step) {}

  __device__ int at(int x, int y) const { return first_[y * pitch_ + x * step_]; }

 private:
  const uint8_t *first_;
  int64_t pitch_;
  int step_;
};

// Calls function(reader) with the fastest reader for the channel, and returns its result.
template <typename Function>
__device__ inline auto read_source(const FrameParams &p, const PartParams &part, int c, bool inside,
                                   Function function) {
  if (inside && part.container == Container::U8) return function(ByteReader(part, c));
  return function(SourceReader(p, part, c, inside));
}

// Rounds any sum to a sample. `centre`: the source's sample at that place, used with a gain.
__device__ inline int round_sum(const FrameParams &p, const Rounding &rounding, int64_t sum, int centre) {
  if (p.has_gain) return round_to_sample(apply_gain(sum, p.sum_shift, p.sum_gain, p.center_gain, centre), rounding);
  if (rounding.wide) return round_to_sample(sum, rounding);
  return round_to_sample(static_cast<int32_t>(sum), rounding);
}

// Whether the windows of all pixels of a tile of this size lie inside the tile's part.
__device__ inline bool windows_inside(const LaunchParams &p, const Tile &tile, int width, int height) {
  const int radius_x = p.mask.radius_x, radius_y = p.mask.radius_y;
  return tile.x0 >= radius_x && tile.x0 + width + radius_x <= tile.part.width && tile.y0 >= radius_y &&
         tile.y0 + height + radius_y <= tile.part.height;
}

__device__ inline bool is_kept(const FrameParams &p, const PartParams &part, int x, int y) {
  return x < p.keep_x || x >= part.width - p.keep_x || y < p.keep_y || y >= part.height - p.keep_y;
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

// Writes channel c of a pixel of the target. One thread writes all channels of a pixel, in the order 0, 1, 2, ...
__device__ inline void write_sample(const PartParams &part, int x, int y, int c, int value) {
  const ChannelParams &channel = part.channel[c];
  uint8_t *row = part.target + y * part.target_pitch;
  const int index = part.first + x * part.step + channel.offset;
  if (part.container == Container::U8) {
    row[index] = static_cast<uint8_t>(value << channel.shift);
  } else if (part.container == Container::Packed32) {
    uint32_t word = static_cast<uint32_t>(value) << channel.offset;
    for (int i = 0; i < 4; i++, word >>= 8)
      row[4 * x + i] = static_cast<uint8_t>(word | (c ? row[4 * x + i] : 0));  // keeps the fields written before
  } else {
    const int high = part.container == Container::U16;
    value <<= channel.shift;
    row[2 * index + 1 - high] = static_cast<uint8_t>(value);
    row[2 * index + high] = static_cast<uint8_t>(value >> 8);
  }
}

// The sample of channel c of a pixel if it is not filtered; sets *filtered to whether it is.
__device__ inline int unfiltered(const FrameParams &p, const PartParams &part, int x, int y, int c, bool *filtered) {
  const ChannelParams &channel = part.channel[c];
  *filtered = channel.action == Action::Filter && !is_kept(p, part, x, y);
  if (*filtered) return 0;
  return channel.action == Action::Fill ? channel.fill : ChannelReader(part, part.copy, part.copy_pitch, c).at(x, y);
}

// Computes and writes channel c of a pixel if it lies inside the part; filter(rounding) returns a filtered sample. All
// lanes of a warp call this together. If any lane filters, all do, even outside: the compiler then computes uniform
// values, like counters and coefficients of loops over the window, once for the warp.
template <typename Filter>
__device__ inline void make_sample(const FrameParams &p, const PartParams &part, int x, int y, int c, Filter filter) {
  const bool inside = x < part.width && y < part.height;
  bool filtered = false;
  int v = inside ? unfiltered(p, part, x, y, c, &filtered) : 0;
  if (__any_sync(0xffffffffu, filtered)) {
    const int result = filter(p.rounding[part.channel[c].rounding]);
    if (filtered) v = result;
  }
  if (inside) write_sample(part, x, y, c, v);
}

}  // namespace cudaconv
