// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of two small steps of morphology.
#include "cuda/sliding/sliding_kernels.h"
#include "cuda/sliding/composite.cuh"

namespace cudaconv::sliding {

SlidingKernel composite_sliding_kernel(const SwarKind &kind) {
  switch (kind.sliding) {
    case Sliding::Closing3:
      return sliding_kernel_of<CompositeClosing<1>>(kind);
    case Sliding::Closing5:
      return sliding_kernel_of<CompositeClosing<2>>(kind);
    case Sliding::MorphGradient3:
      return sliding_kernel_of<CompositeGradient<1>>(kind);
    case Sliding::MorphGradient5:
      return sliding_kernel_of<CompositeGradient<2>>(kind);
    default:
      return {};
  }
}

}  // namespace cudaconv::sliding
