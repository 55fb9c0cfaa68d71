// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Samples in global memory: addressing, unpacking, border, and what happens to a result on its way out.
#pragma once

#include "border.h"
#include "launch_params.h"

namespace cudaconv {

// The part and the pixel of it at which a block's tile begins.
struct Tile {
  const PartParams &part;
  int x0, y0;
};

__device__ inline Tile locate_tile(const FrameParams &p, int tile_width, int tile_height) {
  int i = 0;
  while (i + 1 < p.parts && static_cast<int>(blockIdx.x) >= p.first_block[i + 1]) i++;
  const PartParams &part = p.part[i];
  const int tile = static_cast<int>(blockIdx.x) - p.first_block[i];
  int row = static_cast<int>(high_product(static_cast<uint32_t>(tile), part.tiles_x_reciprocal));  // or one less
  int column = tile - row * part.tiles_x;
  if (column >= part.tiles_x) {
    row++;
    column -= part.tiles_x;
  }
  return {part, column * tile_width, row * tile_height};
}

// Reads one channel of a view. What every read needs is worked out once.
class ChannelReader {
 public:
  __device__ ChannelReader(const PartParams &part, const uint8_t *data, int64_t pitch, int c)
      : pitch_(pitch), container_(part.container), mask_((1 << part.channel[c].depth) - 1) {
    const int bytes = container_ == Container::U8 ? 1 : container_ == Container::Packed32 ? 4 : 2;
    const bool packed = container_ == Container::Packed32;
    step_ = bytes * part.step;
    base_ = data + (packed ? 0 : bytes * (part.first + part.channel[c].offset));
    shift_ = packed ? part.channel[c].offset : part.channel[c].shift;
  }

  // The sample of the pixel (x, y), which lies inside. Words are read byte by byte: neither a pitch nor an address need
  // be a multiple of anything.
  __device__ int at(int x, int y) const {
    const uint8_t *p = base_ + y * pitch_ + x * step_;
    uint32_t word = 0;
    switch (container_) {
      case Container::U8:
        return p[0];
      case Container::U16:
        word = p[0] | p[1] << 8;
        break;
      case Container::U16BE:
        word = p[0] << 8 | p[1];
        break;
      case Container::Packed32:
        word = p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
        break;
    }
    return static_cast<int>(word >> shift_) & mask_;
  }

 private:
  const uint8_t *base_;
  int64_t pitch_;
  Container container_;
  int step_, shift_, mask_;
};

// Channel c of the source, with the border around it.
class SourceReader {
 public:
  __device__ SourceReader(const FrameParams &p, const PartParams &part, int c)
      : reader_(part, part.source, part.source_pitch, c),
        border_(p.border),
        width_(part.width),
        height_(part.height),
        border_value_(part.channel[c].border_value) {}

  // The pixel lies inside.
  __device__ int at(int x, int y) const { return reader_.at(x, y); }

  __device__ int anywhere(int x, int y) const {
    x = border_index(border_, x, width_);
    y = border_index(border_, y, height_);
    return x < 0 || y < 0 ? border_value_ : reader_.at(x, y);
  }

 private:
  ChannelReader reader_;
  Border border_;
  int width_, height_, border_value_;
};

// Whether the whole window around the pixel lies inside the part.
__device__ inline bool window_inside(const LaunchParams &p, const PartParams &part, int x, int y) {
  return x >= p.mask.radius_x && x < part.width - p.mask.radius_x && y >= p.mask.radius_y &&
         y < part.height - p.mask.radius_y;
}

__device__ inline bool is_kept(const FrameParams &p, const PartParams &part, int x, int y) {
  return x < p.keep_x || x >= part.width - p.keep_x || y < p.keep_y || y >= part.height - p.keep_y;
}

__device__ inline bool in_regions(const FrameParams &p, const PartParams &part, int x, int y) {
  for (int i = 0; i < part.regions; i++)
    if (in_region(part.region[i], p.ellipse, x, y)) return !p.invert;
  return p.invert;
}

// Writes the channels of one pixel of the target, in the order 0, 1, 2, ...
class PixelWriter {
 public:
  __device__ void put(const PartParams &part, int x, int y, int c, int value) {
    const ChannelParams &channel = part.channel[c];
    uint8_t *row = part.target + y * part.target_pitch;
    const int index = part.first + x * part.step + channel.offset;
    value <<= part.container == Container::Packed32 ? 0 : channel.shift;
    switch (part.container) {
      case Container::U8:
        row[index] = static_cast<uint8_t>(value);
        break;
      case Container::U16:
        row[2 * index] = static_cast<uint8_t>(value);
        row[2 * index + 1] = static_cast<uint8_t>(value >> 8);
        break;
      case Container::U16BE:
        row[2 * index] = static_cast<uint8_t>(value >> 8);
        row[2 * index + 1] = static_cast<uint8_t>(value);
        break;
      case Container::Packed32:
        word_ = (c ? word_ : 0) | static_cast<uint32_t>(value) << channel.offset;
        if (c == part.channels - 1)
          for (int i = 0; i < 4; i++) row[4 * x + i] = static_cast<uint8_t>(word_ >> (8 * i));
        break;
    }
  }

 private:
  uint32_t word_ = 0;
};

// What channel c of the pixel becomes where it is not filtered; `filtered` says whether it is.
__device__ inline int unfiltered(const FrameParams &p, const PartParams &part, int x, int y, int c, bool *filtered) {
  const ChannelParams &channel = part.channel[c];
  if (p.in_regions && !in_regions(p, part, x, y)) {
    *filtered = false;
    return ChannelReader(part, part.input, part.input_pitch, c).at(x, y);
  }
  *filtered = channel.action == Action::Filter && !is_kept(p, part, x, y);
  if (*filtered) return 0;
  return channel.action == Action::Fill ? channel.fill : ChannelReader(part, part.copy, part.copy_pitch, c).at(x, y);
}

}  // namespace cudaconv
