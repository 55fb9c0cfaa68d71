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
constexpr int kMaxMaskValues = 31 * 31;

// The tables of Op::Bilateral, at most two: for two depths, or for colours and alpha.
struct RangeParams {
  struct Table {
    int32_t max;                 // the largest sample of the depth that it is for
    int32_t shift, first, last;  // of `entry`, see range_weight()
  } table[2];
  uint32_t entry[2 * kMostRangeEntries];

  // If the tables are for two depths.
  CUDACONV_HOST_DEVICE const Table &of_max(int max) const { return table[table[0].max != max]; }
  CUDACONV_HOST_DEVICE uint32_t weight(const Table &t, int difference) const {
    return range_weight(entry + t.first, t.shift, t.last, difference < 0 ? -difference : difference);
  }
};

struct MaskParams {
  Op op;
  bool factored;          // `value` holds factors
  int32_t width, height;  // size of the window in pixels
  int32_t radius_x, radius_y;
  int32_t row_shift;  // see IntegerMask
  int32_t flip;       // of extrema, see extremum() in methods/operations.cuh
  // One of these:
  // - the mask row by row, followed by the second mask of a magnitude;
  // - the row factor, the column factor, and the same of the second mask;
  // - two words for each row of a structuring element: the run from its first to its last member, first | length << 16,
  //   and the members: bit i % 32 for column i. Rows without gaps have ones only.
  int32_t value[kMaxMaskValues + 1];
  RangeParams range;  // Op::Bilateral
};

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

// Parameters of the kernels of methods.cuh.
struct LaunchParams : FrameParams {
  MaskParams mask;
  int32_t side;  // pixels of a thread, across and down; see filter_direct()
};

// How a sum becomes a sample, see SwarParams. Any handles every case.
enum class Epilogue : uint8_t { Shift, Divide, Clamp, Any };

// Parameters for sums in the halves of registers, see swar.cuh. "Both halves" marks words whose two halves are equal.
// With 16-bit containers a sum takes a whole register and Any uses Rounding.
struct SwarParams {
  Epilogue epilogue;
  uint32_t init;       // both halves: the initial value of sums
  uint32_t column[4];  // the factors of a gradient; for a structuring element see SlidingElement
  uint32_t dense[9];   // the factors of a mask
  // A sample from a final sum t, clamped to the range of samples unless it always fits:
  //   Shift     t >> 8; 16-bit containers: t >> shift
  //   Divide    t * magic >> 24; 16-bit containers: t * magic >> (32 + shift)
  //   Clamp     |t - zero| if absolute, where t is at most 2 * zero, else t + minus_low; 16-bit containers: |t| if
  //             absolute, else t
  //   Any       v = min(absolute ? |t - zero| + half : max(t - low, 0), limit), then v >> shift or v * magic >> 24
  uint32_t zero, half, low, minus_low, limit;  // both halves
  uint32_t magic, shift;
  bool absolute;
  uint32_t flip;                       // extrema: xored with words before and after, so that maxima give minima
  uint32_t sample_shift, sample_mask;  // position and mask of a sample in its container
};

// Parameters of the kernel of sliding.cuh.
struct SlidingParams : FrameParams {
  SwarParams swar;
  bool difference;  // CompositeClosing: the result is the difference between closing and samples, not the closing
};

}  // namespace cudaconv
