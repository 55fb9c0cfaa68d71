// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Device memory that passes need besides frames, one block for all passes of a plan.
#pragma once

#include <algorithm>
#include <cstddef>

#include "plan/plan.h"

namespace cudaconv {

// By the families of kernels that need some; 0 where none of the plan's passes is theirs.
size_t coarse_bytes(const Plan &plan);
size_t long_sum_bytes(const Plan &plan);

inline size_t scratch_bytes(const Plan &plan) {
  return std::max(coarse_bytes(plan), long_sum_bytes(plan));
}

}  // namespace cudaconv
