// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Decides which operation of sliding.cuh can carry out a pass, and computes its parameters.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace cudaconv::sliding {

// The operations of sliding.cuh.
enum class Sliding {
  None,
  Binomial3,
  Binomial5,
  Mean3,
  Mean5,
  Mean7,
  Dense3,
  Diamond5,
  Gradient,
  Extremum3,
  Extremum5,
  Extremum7,
  Extremum9,
  Element5,
  Element7,
  Kirsch3,
  Roberts,
  Magnitude3,
  Median3,
  Median5,
  // Of several passes:
  Closing3,
  Closing5,
  MorphGradient3,
  MorphGradient5
};

// The operation for a pass, and its samples.
struct SwarKind {
  Sliding sliding = Sliding::None;
  bool words = false;     // 16-bit containers, else 8-bit ones
  int most_channels = 1;  // most channels of any plane

  int sample_bytes() const { return words ? 2 : 1; }
  // Channels of a pixel in registers, at most, and bytes.
  int lane_channels() const { return lane_channels(most_channels); }
  static int lane_channels(int channels) { return channels == 3 ? 4 : channels; }
  int lane_bytes() const { return lane_channels() * sample_bytes(); }
};

// How a sum becomes a sample, see SwarParams. Any handles every case.
enum class Epilogue : uint8_t { Shift, Divide, Clamp, Any };

// Parameters for sums in the halves of registers, see lane_row.cuh. "Both halves" marks words whose two halves are
// equal. With 16-bit containers a sum takes a whole register and Any uses Rounding.
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

// Computes the parameters of a pass for sums in the halves of registers. Sliding::None if no operation does the pass,
// planes are not dense, samples of planes differ, or half a register may not hold a sum.
SwarKind plan_swar(const Plan &plan, const Pass &pass, SwarParams &swar);

}  // namespace cudaconv::sliding
