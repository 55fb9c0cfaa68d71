// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of linear masks, gradients and compass masks.
#include "cuda/sliding/gradients.cuh"
#include "cuda/sliding/linear.cuh"
#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel sum_kernel(const SwarKind &kind) {
  return kernel_among<Named<Sliding::Binomial3, SlidingBinomial<3>>, Named<Sliding::Binomial5, SlidingBinomial<5>>,
                      Named<Sliding::Mean3, SlidingMean<3>>, Named<Sliding::Mean5, SlidingMean<5>>,
                      Named<Sliding::Mean7, SlidingMean<7>>, Named<Sliding::Dense3, SlidingDense3>,
                      Named<Sliding::Diamond5, SlidingDiamond5>, Named<Sliding::Gradient, SlidingGradient>,
                      Named<Sliding::Roberts, SlidingWindow3<RobertsFunction>>,
                      Named<Sliding::Magnitude3, SlidingWindow3<MagnitudeFunction>>,
                      Named<Sliding::Kirsch3, SlidingWindow3<KirschFunction>>>(kind);
}

}  // namespace cudaconv::sliding
