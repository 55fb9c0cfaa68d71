// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Decides which operation of sliding.cuh can carry out a pass, and computes its parameters.
#pragma once

#include "cuda/launch_params.h"
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

// Computes the parameters of a pass for sums in the halves of registers. Sliding::None if no operation does the pass,
// planes are not dense, samples of planes differ, or half a register may not hold a sum.
SwarKind plan_swar(const Plan &plan, const Pass &pass, SwarParams &swar);

}  // namespace cudaconv::sliding
