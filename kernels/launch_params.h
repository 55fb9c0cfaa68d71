// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a kernel launch takes by value. Kernel parameters live in constant memory, a copy for every launch: no mask is
// ever shared by two elements, and a mask that changes while frames are in flight changes for later frames only.
#pragma once

#include <cstdint>

#include "filter.h"
#include "imageview.h"
#include "plan.h"

namespace cudaconv {

constexpr int kMaxParts = 2 * kMaxPlanes;  // both fields of every plane
constexpr int kMaxMaskValues = 31 * 31;

struct MaskParams {
  int32_t width, height;  // of the window, pixels
  int32_t radius_x, radius_y;
  int32_t row_shift;    // see IntegerMask
  int32_t has_element;  // value holds a bit for each pixel of the window, element_words words a row
  int32_t element_words;
  // One of: the mask row by row, and after it the second mask of a magnitude; the row factor, and after it the column
  // factor, then the same of the second mask; the bits of a structuring element.
  int32_t value[kMaxMaskValues + 1];
};

struct ChannelParams {
  Action action;
  uint8_t offset, shift, depth;
  uint8_t rounding;  // index in LaunchParams
  uint16_t fill, border_value;
};

struct PartParams {
  const uint8_t *source, *subtrahend, *copy, *input;
  uint8_t *target;
  int64_t source_pitch, subtrahend_pitch, copy_pitch, input_pitch, target_pitch;  // bytes
  const PartRegion *region;                                                       // in device memory
  int32_t regions;
  int32_t width, height;  // pixels
  int32_t first_block;    // blockIdx.x of the part's first tile
  int32_t tiles_x;        // tiles in a row of tiles
  int32_t channels, step, first;
  Container container;
  ChannelParams channel[kMaxChannels];
};

struct LaunchParams {
  MaskParams mask;
  Border border;
  int32_t keep_x, keep_y;
  int64_t sum_gain, center_gain;  // see Pass
  int32_t sum_shift;
  int32_t has_gain;
  Norm norm;
  bool in_regions, ellipse, invert;  // see Regions
  Rounding rounding[2];              // a frame's channels have at most two depths
  int32_t parts;
  PartParams part[kMaxParts];
};

}  // namespace cudaconv
