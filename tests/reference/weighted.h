// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The mean of colours weighted by a mask and by alpha, by its definition.
#pragma once

#include "reference.h"

namespace cudaconv::reference {

struct WeightedMask {
  int width, height;
  std::vector<long double> coefficient;  // rows from the top
  long double divisor, bias;             // bias in codes of the result
  bool exact;                            // coefficients, divisor and bias are integers
  bool absolute;
  Border border;
  int max;                          // largest sample value
  int border_value, border_weight;  // with border=constant
};

// The alpha of each pixel of a plane of this size, whose pixels span 2^sub_x by 2^sub_y samples of `alpha`.
Channel weights_of(const Channel &alpha, int width, int height, int sub_x, int sub_y);

Channel weighted_mean(const Channel &in, const Channel &weight, const WeightedMask &mask);

}  // namespace cudaconv::reference
