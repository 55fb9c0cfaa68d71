// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The structures that kernel launches take by value. Kernel parameters lie in constant memory, a copy for every launch:
// no mask is ever shared by two elements, and a mask that changes while frames are in flight changes for later frames
// only.
#pragma once

#include <cstdint>

#include "filter.h"
#include "imageview.h"
#include "plan/plan.h"

namespace cudaconv {

struct PartArea;

constexpr int kMaxParts = 2 * kMaxPlanes;  // both fields of every plane

struct ChannelParams {
  Action action;
  uint8_t offset, shift, depth;
  uint8_t rounding;  // index in FrameParams::rounding
  uint8_t range;     // Bilateral: index in RangeParams::table
  uint16_t fill, border_value;
};

// A part of the frame. The members that every kernel needs come first, in one line of the constant cache. Threads wait
// for this line before they load a sample, a good part of the time of a small frame. Each further line costs a kernel
// about a tenth of a microsecond.
//
// With method=auto all addresses and pitches are multiples of 16 bytes; with other methods they can have any value.
struct alignas(64) PartParams {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_pitch, target_pitch;  // bytes
  int32_t width, height;               // pixels
  int32_t tiles_x;                     // tiles in a row of tiles
  uint32_t tiles_x_reciprocal;         // floor((2^32 - 1) / tiles_x)
  int32_t column_step;                 // from one column of tiles to the next, in what the kernel counts columns in
  int32_t first_column;                // of the first tile
  uint16_t first_row;                  // of the first tile
  bool has_filtered, has_unfiltered;   // whether any channel is filtered, and whether any is not
  int32_t channels;

  // The members in the next line are for kernels on dense planes.
  // For the 32-bit words of a row of a dense plane. Element n is for words n, n + 3, n + 6, ... of a row with three
  // channels, else for words n, n + 2, n + 4, ...
  uint32_t filter_bits[3], copy_bits[3], fill_word[3], border_word[3];

  int32_t first, step;  // containers, see PlaneLayout
  uint8_t number;       // index of the part in the plan
  Container container;
  bool row_is_multiple_of_16;  // rows are a multiple of 16 bytes
  const uint8_t *operand, *copy;
  int64_t operand_pitch, copy_pitch;
  ChannelParams channel[kMaxChannels];
};

// The frame with all its parts: every kernel takes this or a class derived from it.
struct FrameParams {
  int32_t parts;  // for regions, each rectangle to work on is a part of its own
  Border border;
  // The tiles have numbers, part by part and row by row; these are the parts' first ones. A block works on the tile of
  // its own number.
  int32_t first_block[kMaxParts];
  // With KernelLaunch::lists_tiles, for many rectangles: the numbers of the tiles to work on, a block each, in device
  // memory. These tiles overlap: one begins at each row and column where tiles for regions may begin.
  const uint32_t *tile_list;
  PartParams part[kMaxParts];
  int32_t keep_x, keep_y;  // these, the gains, the shift and the norm: see Pass
  int64_t sum_gain, center_gain;
  int32_t sum_shift;
  int32_t has_gain;
  Norm norm;
  Rounding rounding[2];  // channels of a frame have at most two depths
  // For the host only: how a part was cut into tiles.
  struct Host {
    const PartArea *area;     // the pixels to work on, nullptr for all
    int32_t tile_width, row;  // of a tile, and of a row of the part, in what the kernel counts columns in
    int32_t tile_height;      // rows
    int32_t step_x, step_y;   // the grid on which tiles for regions begin, in columns and rows
  } host[kMaxParts];
};

}  // namespace cudaconv
