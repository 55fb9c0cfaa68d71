// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of medians.
#include "cuda/sliding/median5.cuh"
#include "cuda/sliding/ranks.cuh"
#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel median_kernel(const SwarKind &kind) {
  return kernel_among<Named<Sliding::Median3, SlidingMedian3>, Named<Sliding::Median5, SlidingMedian5>>(kind);
}

}  // namespace cudaconv::sliding
