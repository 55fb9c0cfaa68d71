// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of linear masks.
#include "cuda/sliding/linear.cuh"
#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel linear_kernel(const SwarKind &kind) {
  switch (kind.sliding) {
    case Sliding::Binomial3:
      return sliding_kernel_of<SlidingBinomial<3>>(kind);
    case Sliding::Binomial5:
      return sliding_kernel_of<SlidingBinomial<5>>(kind);
    case Sliding::Mean3:
      return sliding_kernel_of<SlidingMean<3>>(kind);
    case Sliding::Mean5:
      return sliding_kernel_of<SlidingMean<5>>(kind);
    case Sliding::Mean7:
      return sliding_kernel_of<SlidingMean<7>>(kind);
    case Sliding::Dense3:
      return sliding_kernel_of<SlidingDense3>(kind);
    case Sliding::Diamond5:
      return sliding_kernel_of<SlidingDiamond5>(kind);
    default:
      return {};
  }
}

}  // namespace cudaconv::sliding
