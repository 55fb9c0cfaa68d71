// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Device memory that passes need besides frames, one block for all passes of a plan: bytes by pass, of the families of
// kernels that need some.
#pragma once

#include <cstddef>

#include "plan/plan.h"

namespace cudaconv {

size_t coarse_bytes(const Plan &plan, const Pass &pass);
size_t long_sum_bytes(const Plan &plan, const Pass &pass);
size_t long_mma_sum_bytes(const Plan &plan, const Pass &pass);

}  // namespace cudaconv
