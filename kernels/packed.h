// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "launch_params.h"
#include "plan.h"

namespace cudaconv {

// The structures of sliding.cuh, and which of them carries out a pass.
enum class Sliding {
  None,
  Separable3,
  Separable5,
  Separable7,
  Dense3,
  Diamond5,
  Gradient3,
  Extremum3,
  Extremum5,
  Extremum7,
  Kirsch3,
  Roberts3,
  Median3
};

// Works the pass out for 16-bit lanes; None where the pass is another kind, a plane is not of 8-bit samples side by
// side, or a sum may leave 16 bits.
Sliding make_packed(const Plan &plan, const Pass &pass, PackedParams &packed);

}  // namespace cudaconv
