// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sliding kernels of separable masks.
#include "cuda/sliding/sliding_kernels.h"
#include "cuda/sliding/linear.cuh"

namespace cudaconv::sliding {

SlidingKernel separable_sliding_kernel(const SwarKind &kind, Epilogue epilogue) {
  const bool shifts = epilogue == Epilogue::Shift, divides = epilogue == Epilogue::Divide;
  switch (kind.sliding) {
    case Sliding::Separable3:
      if (shifts) return sliding_kernel_of<SlidingBinomial<3>>(kind);
      return divides ? sliding_kernel_of<SlidingMean<3>>(kind) : sliding_kernel_of<SlidingSeparable<3>>(kind);
    case Sliding::Separable5:
      if (shifts) return sliding_kernel_of<SlidingBinomial<5>>(kind);
      return divides ? sliding_kernel_of<SlidingMean<5>>(kind) : sliding_kernel_of<SlidingSeparable<5>>(kind);
    case Sliding::Separable7:
      return divides ? sliding_kernel_of<SlidingMean<7>>(kind) : sliding_kernel_of<SlidingSeparable<7>>(kind);
    default:
      return {};
  }
}

}  // namespace cudaconv::sliding
