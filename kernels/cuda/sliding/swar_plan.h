// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Decides which operation of sliding.cuh can carry out a pass, and computes its parameters.
#pragma once

#include "cuda/launch_params.h"
#include "plan/plan.h"

namespace cudaconv {

// The operations of sliding.cuh.
enum class Sliding {
  None,
  Separable3,
  Separable5,
  Separable7,
  Dense3,
  Cross3,
  Diamond5,
  HalfSquare3,
  HalfCross3,
  Emboss3,
  GradientL1,
  GradientL2,
  UnitGradientL1,
  UnitGradientL2,
  Extremum3,
  Extremum5,
  Extremum7,
  Extremum9,
  Element5,
  Element7,
  Kirsch3,
  RobertsL1,
  RobertsL2,
  Magnitude3,
  Median3,
  Median5
};

// Which operation carries out a pass, and on what samples.
struct SwarKind {
  Sliding sliding = Sliding::None;
  bool words = false;     // 16-bit containers, else 8-bit ones
  bool sums16 = false;    // 16-bit containers whose sums fit 16 bits, in planes of one or two channels
  bool least = false;     // extrema: minima, else maxima
  int most_channels = 1;  // most channels of any plane

  int sample_bytes() const { return words ? 2 : 1; }
};

// Which operations and epilogues may be chosen: those compiled for every GPU, or also those for sm_90 only.
enum class Tier { Generic, Sm90 };

// Computes the parameters of a pass for sums in the halves of registers. Sliding::None if no operation does the pass,
// planes are not dense, samples of planes differ, or half a register may not hold a sum.
SwarKind plan_swar(const Plan &plan, const Pass &pass, SwarParams &swar, Tier tier = Tier::Sm90);

}  // namespace cudaconv
