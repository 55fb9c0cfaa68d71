// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The sliding kernels, by operation. Each source that compiles some has a function here. It returns the kernel for a
// pass, or none.
#pragma once

#include "cuda/sliding/sliding.cuh"

namespace cudaconv::sliding {

SlidingKernel separable_sliding_kernel(const SwarKind &kind, Epilogue epilogue);
SlidingKernel dense_sliding_kernel(const SwarKind &kind);
SlidingKernel gradient_sliding_kernel(const SwarKind &kind);
SlidingKernel extremum_sliding_kernel(const SwarKind &kind);
SlidingKernel median_sliding_kernel(const SwarKind &kind);
SlidingKernel composite_sliding_kernel(const SwarKind &kind);

}  // namespace cudaconv::sliding
