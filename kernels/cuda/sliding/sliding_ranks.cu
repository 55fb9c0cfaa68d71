// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of medians, of dilations and erosions, and of two small steps of morphology.
#include "cuda/sliding/composite.cuh"
#include "cuda/sliding/median5.cuh"
#include "cuda/sliding/ranks.cuh"

namespace cudaconv::sliding {

SlidingKernel rank_kernel(const SwarKind &kind) {
  return kernel_among<Named<Sliding::Extremum3, SlidingExtremum<3>>, Named<Sliding::Extremum5, SlidingExtremum<5>>,
                      Named<Sliding::Extremum7, SlidingThrees<2>>, Named<Sliding::Extremum9, SlidingThrees<3>>,
                      Named<Sliding::Element5, SlidingElement<2>>, Named<Sliding::Element7, SlidingElement<3>>,
                      Named<Sliding::Median3, SlidingMedian3>, Named<Sliding::Median5, SlidingMedian5>,
                      Named<Sliding::Closing3, CompositeClosing<1>>, Named<Sliding::Closing5, CompositeClosing<2>>,
                      Named<Sliding::MorphGradient3, CompositeGradient<1>>,
                      Named<Sliding::MorphGradient5, CompositeGradient<2>>>(kind);
}

}  // namespace cudaconv::sliding
