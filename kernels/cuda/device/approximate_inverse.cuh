// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime.h>

namespace cudaconv {

// 1 / v, with a relative error below 2^-22, in one instruction.
__device__ inline float approximate_inverse(float v) {
#ifdef __CUDA_ARCH__
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
  return inverse;
#else
  return 1 / v;
#endif
}

}  // namespace cudaconv
