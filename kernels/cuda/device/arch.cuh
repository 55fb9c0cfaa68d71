// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What an architecture has, by names of what is had: the one file that compares __CUDA_ARCH__ with numbers.
//
// A source is compiled for a few virtual architectures, the steps of cuda_kernels in kernels/meson.build, from each of
// which code for all GPUs up to the next is made. So what it asks for is there from the next step on, not from the
// architecture that has it; a source none of whose steps has it does not compile.
#pragma once

#include <climits>

namespace cudaconv {

enum class Feature : int {
  AsyncCopy = 80,    // copies from global to shared memory that take no registers
  IntegerMma = 80,   // matrix instructions on 16x8 sums of 32 products of bytes
  HalfExcess = 80,   // multiply-adds of 16-bit floats that are not below 0
  Packed16Bit = 90,  // minima and maxima, of three numbers too, and sums clamped by them, of pairs of 16-bit integers
  // Not the architecture's, but ours: kernels for single masks. Older GPUs take longer to read and write than to work,
  // and gain little by them: there their bodies are empty, to save compile time, and KernelSets keeps them from being
  // launched.
  MaskKernels = 90,
};

// The virtual architecture, such as 80. The host, which runs kernels for the tests, has everything but AsyncCopy.
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
constexpr int kNewestStep = INT_MAX;  // compiled by hand
#endif

constexpr bool has_in(int arch, Feature feature) {
  return arch >= static_cast<int>(feature);
}

template <Feature kFeature>
struct FeatureHere {
  static_assert(has_in(kNewestStep, kFeature), "no step of this source in kernels/meson.build has what it asks for");
  static constexpr bool kThere = has_in(kArch, kFeature);
};

// Whether the code is for GPUs that have it.
template <Feature kFeature>
constexpr bool kHas = FeatureHere<kFeature>::kThere;

// How many blocks of a Shape a multiprocessor is to hold, which bounds the registers of a thread: kMinBlocks, tried on
// an H200; where the same code takes more registers, half of them, so that nothing spills.
template <typename Shape>
constexpr int kBlocksAtOnce = has_in(kArch, Feature::Packed16Bit) || Shape::kMinBlocks == 1 ? Shape::kMinBlocks
                                                                                            : Shape::kMinBlocks / 2;

}  // namespace cudaconv

// AsyncCopy for the preprocessor, which keeps its instructions from the host's compiler.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define CUDACONV_HAS_ASYNC_COPY 1
#else
#define CUDACONV_HAS_ASYNC_COPY 0
#endif
