// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of linear masks.
#include "cuda/sliding/linear.cuh"
#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel linear_kernel(const SwarKind &kind) {
  return kernel_among<Named<Sliding::Binomial3, SlidingBinomial<3>>, Named<Sliding::Binomial5, SlidingBinomial<5>>,
                      Named<Sliding::Mean3, SlidingMean<3>>, Named<Sliding::Mean5, SlidingMean<5>>,
                      Named<Sliding::Mean7, SlidingMean<7>>, Named<Sliding::Dense3, SlidingDense3>,
                      Named<Sliding::Diamond5, SlidingDiamond5>>(kind);
}

}  // namespace cudaconv::sliding
