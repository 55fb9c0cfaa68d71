// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "launch_params.h"
#include "plan.h"

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
struct PackedKind {
  Sliding sliding = Sliding::None;
  bool words = false;     // 16-bit containers, else bytes
  bool narrow = false;    // of such, 16 bits hold all sums; of frames without packed pixels
  bool least = false;     // of extrema: the least, else the greatest
  int most_channels = 1;  // of any plane

  int sample_bytes() const { return words ? 2 : 1; }
};

// The structures, and ways to finish, to choose from: those of any device, see lanes.cuh, or all of them.
enum class Kinds { General, All };

// Works the pass out for lanes of registers; Sliding::None where the pass is another kind, samples of a plane do not
// lie side by side or differ from those of another, or a lane may not hold a sum.
PackedKind make_packed(const Plan &plan, const Pass &pass, PackedParams &packed, Kinds kinds = Kinds::All);

}  // namespace cudaconv
