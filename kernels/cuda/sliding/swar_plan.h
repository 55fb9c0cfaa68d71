// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "cuda/launch_params.h"
#include "plan/plan.h"

namespace cudaconv {

// The structures of sliding.cuh.
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

// Which structure carries out a pass, and on what samples.
struct SwarKind {
  Sliding sliding = Sliding::None;
  bool words = false;     // 16-bit containers, else bytes
  bool sums16 = false;    // 16-bit containers whose sums fit 16 bits; of planes of one or two channels
  bool least = false;     // of extrema: the least, else the greatest
  int most_channels = 1;  // of any plane

  int sample_bytes() const { return words ? 2 : 1; }
};

// The structures, and epilogues, to choose from: those compiled for every GPU, or for sm_90 too.
enum class Tier { Generic, Sm90 };

// Works the pass out for the halves of registers; Sliding::None where the pass is another kind, planes are not dense,
// samples of one differ from those of another, or half a register may not hold a sum.
SwarKind plan_swar(const Plan &plan, const Pass &pass, SwarParams &swar, Tier tier = Tier::Sm90);

}  // namespace cudaconv
