// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The bilateral filter by its definition, with the promised integer weights and with real weights. Several channels,
// the colours of RGB, have one weight: of the sum of their differences.
#pragma once

#include "reference.h"

namespace cudaconv::reference {

struct BilateralMask {
  int width, height;
  bool ellipse;             // only what lies in the ellipse around the middle that touches the window's edge samples
  long double sigma;        // of distances, in pixels
  long double sigma_range;  // of differences, as a fraction of the full range
  Border border;
  int depth;  // bits of a sample
  // With border=constant: of each channel, and of the weight.
  std::vector<int> border_value;
  int border_weight;
};

BilateralMask bilateral_mask(const FilterSettings &settings, int depth, std::vector<int> border_value,
                             int border_weight);

// `weight`: the alpha of each pixel; nullptr: all pixels have the same weight. Channel::real holds the results with
// real weights.
std::vector<Channel> bilateral(const std::vector<const Channel *> &in, const Channel *weight,
                               const BilateralMask &mask);

// The largest distance, in codes, between a result before rounding and the result with real weights, without alpha.
// `channels`: whose differences are added.
long double bilateral_error(const BilateralMask &mask, int channels);

}  // namespace cudaconv::reference
