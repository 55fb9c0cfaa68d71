// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of medians.
#include "cuda/sliding/median5.cuh"
#include "cuda/sliding/ranks.cuh"
#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel median_kernel(const SwarKind &kind) {
  switch (kind.sliding) {
    case Sliding::Median3:
      return sliding_kernel_of<SlidingMedian3>(kind);
    case Sliding::Median5:
      return sliding_kernel_of<SlidingMedian5>(kind);
    default:
      return {};
  }
}

}  // namespace cudaconv::sliding
