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
  size_t gather_bytes = 0;     // of shared memory, where rows do not consist of whole, aligned lanes
  int radius = 0, height = 0;  // rows of a block
};

template <typename Operation, Channels kChannels, template <int> typename Lanes>
StripLaunch<typename Operation::Params> strip_launch() {
  return {sliding_kernel<Operation, kChannels, Lanes>,
          kSlidingWarps * kLanePitch * (Operation::kStripRows + 2 * Operation::kRadius), Operation::kRadius,
          Operation::kStripRows * kSlidingWarps};
}

// Throws Error{Device}.
template <typename Params>
void enqueue_strips(const PassRun &run, const char *name, const StripLaunch<Params> &launch_as, const PackedKind &kind,
                    Params &p) {
  const int sample_bytes = kind.words ? 2 : 1;
  const unsigned blocks = cut_tiles(p, [&](const PartParams &part) {
    const int row_bytes = part.width * part.channels * sample_bytes;
    return TileCount{(row_bytes + kWarpBytes - 1) / kWarpBytes,
                     (part.height + launch_as.height - 1) / launch_as.height};
  });
  bool gathers = false;
  for (int i = 0; i < p.parts; i++) {
    // Reflections want as many pixels beyond the first one as the radius, of the 16 bytes at an edge.
    const int pixel_bytes = p.part[i].channels * sample_bytes;
    if (p.border == Border::Reflect101 && (launch_as.radius + 1) * pixel_bytes > kLaneBytes)
      p.part[i].whole_lanes = false;
    gathers |= !p.part[i].whole_lanes;
  }
  check(launch(name, launch_as.kernel, dim3(blocks), dim3(kSlidingThreads), gathers ? launch_as.gather_bytes : 0,
               run.stream, p),
        "cudaLaunchKernel");
}

}  // namespace cudaconv
