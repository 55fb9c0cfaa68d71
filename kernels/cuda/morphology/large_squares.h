// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by squares that are too large for the kernels of van_herk.cuh: by several squares, one after
// the other.
#pragma once

#include <memory>

#include "plan/plan.h"

namespace cudaconv {

// Of the largest window that van_herk.cuh has a kernel for. A frame in shared memory that is wide and high enough for
// larger ones leaves next to no room for results.
inline int largest_radius(const FrameLayout &layout) {
  return layout.plane[0].container == Container::U8 ? 63 : 31;
}

// The plan with as many passes for each dilation and erosion by a square as have radii up to that, which together are
// its radius; nullptr where there is none too large, planes are not dense, or the user has selected a method. Only the
// last of them keeps pixels, and those come from the frame that the first one reads.
std::shared_ptr<const Plan> divide_squares(const Plan &plan);

}  // namespace cudaconv
