// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The features of architectures, by name. This is the only file that compares __CUDA_ARCH__ with numbers.
//
// A source is compiled for a few virtual architectures, the steps of cuda_kernels in kernels/meson.build; the code of a
// step serves all GPUs up to the next step. A feature is therefore used from the first step on that has it, not from
// the architecture on that has it. A source none of whose steps has a feature that it asks for does not compile.
#pragma once

#include <climits>

namespace cudaconv {

enum class Feature : int {
  AsyncCopy = 80,    // copies from global to shared memory that take no registers
  IntegerMma = 80,   // matrix instructions on 16x8 sums of 32 products of bytes
  HalfExcess = 80,   // multiply-adds of 16-bit floats with negative results set to 0
  Packed16Bit = 90,  // minima and maxima (of three numbers too) and clamped sums of pairs of 16-bit integers
};

// The virtual architecture, such as 80. The host, which runs kernels in tests, counts as having everything; AsyncCopy
// is tested by CUDACONV_HAS_ASYNC_COPY.
#ifdef __CUDA_ARCH__
constexpr int kArch = __CUDA_ARCH__ / 10;
#else
constexpr int kArch = INT_MAX;
#endif

#ifdef CUDACONV_NEWEST_STEP
constexpr int kNewestStep = CUDACONV_NEWEST_STEP;
#ifdef __CUDA_ARCH__
static_assert(kArch <= kNewestStep, "kernels/meson.build compiles this source for no architecture as new as this");
#endif
#else
constexpr int kNewestStep = INT_MAX;  // compiled without kernels/meson.build
#endif

constexpr bool has_in(int arch, Feature feature) {
  return arch >= static_cast<int>(feature);
}

template <Feature kFeature>
struct FeatureHere {
  static_assert(has_in(kNewestStep, kFeature), "no step of this source in kernels/meson.build has what it asks for");
  static constexpr bool kThere = has_in(kArch, kFeature);
};

// Whether the code is compiled for GPUs that have the feature.
template <Feature kFeature>
constexpr bool kHas = FeatureHere<kFeature>::kThere;

// How many blocks of a Shape a multiprocessor is to hold, which limits the registers of a thread: kMinBlocks, tuned on
// an H200. GPUs on which the same code takes more registers hold half as many, so that nothing spills.
template <typename Shape>
constexpr int kBlocksAtOnce = has_in(kArch, Feature::Packed16Bit) || Shape::kMinBlocks == 1 ? Shape::kMinBlocks
                                                                                            : Shape::kMinBlocks / 2;

}  // namespace cudaconv

// AsyncCopy for the preprocessor, which hides its instructions from the host's compiler.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define CUDACONV_HAS_ASYNC_COPY 1
#else
#define CUDACONV_HAS_ASYNC_COPY 0
#endif
