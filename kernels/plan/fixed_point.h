// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Converts real weights to integers with an exact sum.
#pragma once

#include <cstdint>
#include <vector>

namespace cudaconv {

// weight * gain * 2^bits as integers whose sum is the rounded gain * 2^bits. Weights are first rounded to the nearest
// integer. Then symmetric pairs change by 1 until the sum is right, first the pairs that come nearest to their exact
// values. The middle weight gets the rest. `weight` is symmetric.
std::vector<int32_t> fixed_point(const std::vector<double> &weight, int bits, double gain);

}  // namespace cudaconv
