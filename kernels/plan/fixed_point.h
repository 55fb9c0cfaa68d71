// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Converts real weights to integers with an exact sum.
#pragma once

#include <cstdint>
#include <vector>

namespace cudaconv {

// weight * gain * 2^bits as integers whose sum is the rounded gain * 2^bits. Weights are rounded to the nearest integer
// first; what the sum then has too much or too little is corrected by 1 in symmetric pairs, those first that this
// brings nearest to their exact values, and the rest in the middle weight. `weight` is symmetric.
std::vector<int32_t> fixed_point(const std::vector<double> &weight, int bits, double gain);

}  // namespace cudaconv
