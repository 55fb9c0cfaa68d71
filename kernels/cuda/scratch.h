// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Bytes of device memory that a pass needs besides frames, for the families of kernels that need some. All passes of a
// plan share one block.
#pragma once

#include <cstddef>

#include "plan/plan.h"

namespace cudaconv {

size_t coarse_bytes(const Plan &plan, const Pass &pass);
size_t long_sum_bytes(const Plan &plan, const Pass &pass);
size_t long_box_sum_bytes(const Plan &plan, const Pass &pass);
size_t long_mma_sum_bytes(const Plan &plan, const Pass &pass);
size_t mosaic_sum_bytes(const Plan &plan, const Pass &pass);

}  // namespace cudaconv
