// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of dilations and erosions, and of two small steps of morphology.
#include "cuda/sliding/composite.cuh"
#include "cuda/sliding/ranks.cuh"

namespace cudaconv::sliding {

SlidingKernel extremum_kernel(const SwarKind &kind) {
  switch (kind.sliding) {
    case Sliding::Extremum3:
      return sliding_kernel_of<SlidingExtremum<3>>(kind);
    case Sliding::Extremum5:
      return sliding_kernel_of<SlidingExtremum<5>>(kind);
    case Sliding::Extremum7:
      return sliding_kernel_of<SlidingExtremum<7>>(kind);
    case Sliding::Extremum9:
      return sliding_kernel_of<SlidingExtremum9>(kind);
    case Sliding::Element5:
      return sliding_kernel_of<SlidingElement<2>>(kind);
    case Sliding::Element7:
      return sliding_kernel_of<SlidingElement<3>>(kind);
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
