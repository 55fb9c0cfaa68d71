// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Kernels of a frame that follow each other: the blocks of one start, and wait, while the last ones of the kernel
// before it run, which hides the time that a launch takes (programmatic dependent launch in CUDA's documentation). They
// have to be launched with enqueue_early(). On GPUs before 9.0 they start when the kernel before has ended.
#pragma once

#include "cuda/device/arch.cuh"

namespace cudaconv {

// Returns when all kernels before this one have ended and what they wrote can be read. To be called by all threads,
// before they return and before they use memory that a kernel before reads or writes.
__device__ inline void wait_for_kernels_before() {
#ifdef __CUDA_ARCH__
  if constexpr (kHas<Feature::EarlyStart>) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets blocks of the next kernel start as soon as all blocks of this one have started, and there is room.
__device__ inline void let_next_kernel_start() {
#ifdef __CUDA_ARCH__
  if constexpr (kHas<Feature::EarlyStart>) asm volatile("griddepcontrol.launch_dependents;");
#endif
}

}  // namespace cudaconv
