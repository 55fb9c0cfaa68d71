// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What launchers of kernels on strips of rows (sliding.cuh) have in common.
#pragma once

#include "sliding.cuh"

#include "cuda_resources.h"
#include "launchers.h"
#include "packed.h"

namespace cudaconv {

template <typename Params>
struct StripLaunch {
  void (*kernel)(Params) = nullptr;
  int radius = 0, rows = 0;  // of results, those of a strip
  bool gathers = false;      // a gathered_kernel, else a sliding_kernel, which wants whole lanes
};

template <typename Operation, Channels kChannels, template <int> typename Lanes>
StripLaunch<typename Operation::Params> strip_launch() {
  return {sliding_kernel<Operation, kChannels, Lanes>, Operation::kRadius, Operation::kStripRows};
}

template <typename Operation, template <int> typename Lanes>
StripLaunch<SlidingParams> gathered_launch() {
  return {gathered_kernel<Operation, Lanes>, Operation::kRadius, Operation::kStripRows, true};
}

// Whether a sliding_kernel can do all parts.
inline bool has_whole_lanes(const FrameParams &p, const PackedKind &kind, int radius) {
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // Reflections want as many pixels beyond the first one as the radius, of the 16 bytes at an edge.
    const int pixel_bytes = part.channels * kind.sample_bytes();
    // Kernels of planes of one or two channels filter all of them, or none.
    const bool mixed = part.channels < 3 && part.filters && part.merges;
    if (!part.whole_lanes || part.height <= radius || mixed ||
        (p.border == Border::Reflect101 && (radius + 1) * pixel_bytes > kLaneBytes))
      return false;
  }
  return true;
}

// Throws Error{Device}.
template <typename Params>
void enqueue_strips(const PassRun &run, const char *name, const StripLaunch<Params> &launch_as, const PackedKind &kind,
                    Params &p) {
  const int height = launch_as.rows * kSlidingWarps;
  const unsigned blocks = cut_tiles(p, [&](const PartParams &part) {
    const int row_bytes = part.width * (launch_as.gathers ? 1 : part.channels) * kind.sample_bytes();
    return TileCount{(row_bytes + kWarpBytes - 1) / kWarpBytes, (part.height + height - 1) / height};
  });
  const size_t gathered = kSlidingThreads * kLaneBytes * (launch_as.rows + 2 * launch_as.radius);
  check(launch(name, launch_as.kernel, dim3(blocks), dim3(kSlidingThreads), launch_as.gathers ? gathered : 0,
               run.stream, p),
        "cudaLaunchKernel");
}

}  // namespace cudaconv
