// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The bilateral filter by its definition, with the promised integer weights and with real weights.
#pragma once

#include "reference.h"

namespace cudaconv::reference {

struct BilateralMask {
  int side;
  long double sigma;        // of distances, in pixels
  long double sigma_range;  // of differences, as a fraction of the full range
  Border border;
  int depth;                        // bits of a sample
  int border_value, border_weight;  // with border=constant
};

BilateralMask bilateral_mask(const FilterSettings &settings, int depth, int border_value, int border_weight);

// `weight`: the alpha of each pixel; nullptr: all pixels have the same weight. Channel::real holds the results with
// real weights.
Channel bilateral(const Channel &in, const Channel *weight, const BilateralMask &mask);

// The largest distance, in codes, between a result before rounding and the result with real weights, without alpha.
long double bilateral_error(const BilateralMask &mask);

}  // namespace cudaconv::reference
