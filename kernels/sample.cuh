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
  while (i + 1 < p.parts && static_cast<int>(blockIdx.x) >= p.part[i + 1].first_block) i++;
  const PartParams &part = p.part[i];
  const int tile = static_cast<int>(blockIdx.x) - part.first_block;
  return {part, tile % part.tiles_x * tile_width, tile / part.tiles_x * tile_height};
}

// Words are read byte by byte: neither a pitch nor an address need be a multiple of anything.
__device__ inline int read_container(Container container, const uint8_t *row, int index) {
  switch (container) {
    case Container::U8:
      return row[index];
    case Container::U16:
      return row[2 * index] | row[2 * index + 1] << 8;
    case Container::U16BE:
      return row[2 * index] << 8 | row[2 * index + 1];
    case Container::Packed32:
      break;
  }
  row += 4 * index;
  return static_cast<int>(row[0] | row[1] << 8 | row[2] << 16 | static_cast<uint32_t>(row[3]) << 24);
}

// Channel c of the pixel (x, y) of a view, which lies inside.
__device__ inline int read_sample(const PartParams &part, const uint8_t *data, int64_t pitch, int x, int y, int c) {
  const ChannelParams &channel = part.channel[c];
  const uint8_t *row = data + y * pitch;
  const int max = (1 << channel.depth) - 1;
  if (part.container == Container::Packed32)
    return static_cast<int>(static_cast<uint32_t>(read_container(Container::Packed32, row, x)) >> channel.offset) & max;
  return read_container(part.container, row, part.first + x * part.step + channel.offset) >> channel.shift & max;
}

// Channel c of the source at (x, y), anywhere.
__device__ inline int read_source(const FrameParams &p, const PartParams &part, int x, int y, int c) {
  x = border_index(p.border, x, part.width);
  y = border_index(p.border, y, part.height);
  if (x < 0 || y < 0) return part.channel[c].border_value;
  return read_sample(part, part.source, part.source_pitch, x, y, c);
}

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
    return read_sample(part, part.input, part.input_pitch, x, y, c);
  }
  *filtered = channel.action == Action::Filter && !is_kept(p, part, x, y);
  if (*filtered) return 0;
  return channel.action == Action::Fill ? channel.fill : read_sample(part, part.copy, part.copy_pitch, x, y, c);
}

}  // namespace cudaconv
