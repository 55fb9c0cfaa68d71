// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of linear masks that do not separate.
#include "cuda/sliding/sliding_kernels.h"
#include "cuda/sliding/linear.cuh"

namespace cudaconv::sliding {

SlidingKernel dense_sliding_kernel(const SwarKind &kind) {
  switch (kind.sliding) {
    case Sliding::Dense3:
      return sliding_kernel_of<SlidingDense3>(kind);
    case Sliding::Diamond5:
      return sliding_kernel_of<SlidingDiamond5>(kind);
    case Sliding::Half3:
      return sliding_kernel_of<SlidingHalf3>(kind);
    default:
      return {};
  }
}

}  // namespace cudaconv::sliding
