// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Divides dilations and erosions by squares that are too large for the kernels of extremum.cuh into several smaller
// ones, one after the other. Example: radius 50 is 31 and then 19.
#pragma once

#include <memory>

#include "plan/plan.h"

namespace cudaconv {

// Radius of the largest window for which extremum.cuh has a kernel. With larger windows a tile and its halo in shared
// memory would leave too little room for results: two passes take less time.
constexpr int kLargestSquareRadius = 31;

// The plan with each dilation or erosion by a square that is too large replaced by several passes, whose radii add up
// to its radius. nullptr if there is none too large, planes are not dense, or the user has selected a method. Only the
// last of these passes keeps pixels, and takes them from the frame that the first one reads.
std::shared_ptr<const Plan> divide_squares(const Plan &plan);

}  // namespace cudaconv
