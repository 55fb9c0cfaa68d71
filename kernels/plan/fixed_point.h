// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Real weights as integers whose sum is right.
#pragma once

#include <cstdint>
#include <vector>

namespace cudaconv {

// weight * gain * 2^bits, rounded so that the sum is right: what the nearest integers add up to too much or too
// little is taken from pairs, or added to them, that it brings the least away from their exact values, and what is
// left of it from the middle. `weight` is symmetric.
std::vector<int32_t> fixed_point(const std::vector<double> &weight, int bits, double gain);

}  // namespace cudaconv
