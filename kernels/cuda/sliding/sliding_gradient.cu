// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of gradients and compass masks.
#include "cuda/sliding/gradients.cuh"
#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel gradient_kernel(const SwarKind &kind) {
  switch (kind.sliding) {
    case Sliding::Gradient:
      return sliding_kernel_of<SlidingGradient>(kind);
    case Sliding::Roberts:
      return sliding_kernel_of<SlidingWindow3<RobertsFunction>>(kind);
    case Sliding::Magnitude3:
      return sliding_kernel_of<SlidingWindow3<MagnitudeFunction>>(kind);
    case Sliding::Kirsch3:
      return sliding_kernel_of<SlidingWindow3<KirschFunction>>(kind);
    default:
      return {};
  }
}

}  // namespace cudaconv::sliding
