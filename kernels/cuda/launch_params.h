// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a kernel launch takes by value. Kernel parameters live in constant memory, a copy for every launch: no mask is
// ever shared by two elements, and a mask that changes while frames are in flight changes for later frames only.
#pragma once

#include <cstdint>

#include "filter.h"
#include "imageview.h"
#include "plan/plan.h"

namespace cudaconv {

struct PartArea;

constexpr int kMaxParts = 2 * kMaxPlanes;  // both fields of every plane
constexpr int kMaxMaskValues = 31 * 31;

struct MaskParams {
  int32_t width, height;  // of the window, pixels
  int32_t radius_x, radius_y;
  int32_t row_shift;      // see IntegerMask
  int32_t has_element;    // value holds a structuring element
  int32_t element_words;  // of a row, as bits; 0: as runs
  // One of: the mask row by row, and after it the second mask of a magnitude; the row factor, and after it the column
  // factor, then the same of the second mask; a bit for each pixel of a structuring element's window or, where
  // they are too many, of each row its first member and how many follow from there on, first | count << 16.
  int32_t value[kMaxMaskValues + 1];
};

struct ChannelParams {
  Action action;
  uint8_t offset, shift, depth;
  uint8_t rounding;  // index in LaunchParams
  uint16_t fill, border_value;
};

// What every kernel needs at once comes first, in one line of the constant cache: before the first load of a sample a
// thread waits for it, and that is a good part of the time of a small frame.
//
// With method=auto all addresses and pitches are multiples of 16 bytes; other methods take them as they come.
struct alignas(64) PartParams {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_pitch, target_pitch;  // bytes
  int32_t width, height;               // pixels
  int32_t tiles_x;                     // tiles in a row of tiles
  uint32_t tiles_x_reciprocal;         // floor((2^32 - 1) / tiles_x)
  int32_t channels, step;
  Container container;
  bool row_is_multiple_of_16;         // the number of bytes of a row is a multiple of 16
  bool has_filtered, has_unfiltered;  // some channels are filtered; some are not

  int32_t first;
  const uint8_t *subtrahend, *copy;
  int64_t subtrahend_pitch, copy_pitch;
  ChannelParams channel[kMaxChannels];
  // For dense planes, words of a row: with three channels at 4 * (n, n + 3, n + 6, ...) bytes, else at
  // 4 * (n, n + 2, ...).
  uint32_t filter_bits[3], copy_bits[3], fill_word[3], border_word[3];
};

// What every kernel takes: the frame, part by part.
struct FrameParams {
  int32_t parts;
  int32_t first_block[kMaxParts];  // number of a part's first tile
  // In device memory, the numbers of the tiles that the blocks work on; nullptr: a block's tile has its number.
  const uint32_t *tile_list;
  Border border;
  PartParams part[kMaxParts];
  int32_t keep_x, keep_y;
  int64_t sum_gain, center_gain;  // see Pass
  int32_t sum_shift;
  int32_t has_gain;
  Norm norm;
  Rounding rounding[2];  // a frame's channels have at most two depths
  // For the host: what of a part is worked on, nullptr for all of it, and its tiles, `width` of whose unit make the
  // `row` of the part.
  struct Host {
    const PartArea *area;
    int32_t tile_width, row, tile_height;
  } host[kMaxParts];
};

// For the kernels of methods.cuh.
struct LaunchParams : FrameParams {
  MaskParams mask;
};

// For the kernel that puts back the pixels that border=keep keeps.
struct RestoreParams : FrameParams {
  // The tiles of a part that may have something to put back, in numbers of them: whole rows at the top and at the
  // bottom, and of the rows between those on the left and on the right.
  struct Rim {
    int32_t top, bottom, between, left, right;
  } rim[kMaxParts];
  int32_t tiles;  // of all parts
};

// The steps that a sum needs to become a sample, see SwarParams; Any takes them as they are needed.
enum class Epilogue : uint8_t { Shift, Divide, Clamp, Absolute, Distance, Any };

// Sums in the halves of registers, see swar.cuh. "Both halves": a word whose two halves are alike; with 16-bit
// containers a sum has the whole register, unless sums have 16 bits, and Any rounds as Rounding says.
struct SwarParams {
  Epilogue epilogue;
  uint32_t column_init, init;  // both halves: what sums of columns, and final sums, start from
  uint32_t column[9], row[9];  // factors; of a structuring element, see SlidingElement
  uint32_t dense[25];
  uint32_t sign_bits;  // of a sum of 16-bit floats, the bits that stay: those of its absolute value, or all
  // From a final sum t:
  //   Shift     t >> 8, with 16-bit containers t >> shift; that is 8 of columns of 16 bits and rows of five
  //   Divide    t * magic >> 24, with 16-bit containers >> 32 + shift, with sums of 16 bits >> 32
  //   Clamp     t + minus_low, clamped; with 16-bit containers |t| where absolute, else t, clamped; with sums of 16
  //   bits
  //             |t - zero| where absolute, else t + minus_low, clamped
  //   Absolute  |t - zero|, clamped; no more than 11 bits
  //   Distance  the same; t no more than 2 * zero
  //   Any       |t - zero| + half where absolute, else t - low but not below 0; then at most limit; then t >> shift, or
  //             t * magic >> 24
  uint32_t zero, half, low, minus_low, limit;  // both halves
  uint32_t magic, shift;
  bool absolute;
  uint32_t flip;  // of composites and structuring elements: xored with the words before and after, for the least
  uint32_t sample_shift, sample_mask;  // of a container
  uint32_t white;                      // both halves: sample_mask
};

// For the kernels of sliding.cuh.
struct SlidingParams : FrameParams {
  SwarParams swar;
};

}  // namespace cudaconv
