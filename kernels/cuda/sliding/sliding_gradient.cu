// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of gradients and compass masks.
#include "cuda/sliding/gradients.cuh"
#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel gradient_kernel(const SwarKind &kind) {
  return kernel_among<Named<Sliding::Gradient, SlidingGradient>,
                      Named<Sliding::Roberts, SlidingWindow3<RobertsFunction>>,
                      Named<Sliding::Magnitude3, SlidingWindow3<MagnitudeFunction>>,
                      Named<Sliding::Kirsch3, SlidingWindow3<KirschFunction>>>(kind);
}

}  // namespace cudaconv::sliding
