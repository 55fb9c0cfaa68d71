// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What launchers of kernels on strips of rows (sliding.cuh) have in common.
#pragma once

#include "sliding.cuh"

#include <algorithm>

#include "cuda_resources.h"
#include "launchers.h"
#include "packed.h"

namespace cudaconv {

template <typename Params>
struct StripLaunch {
  void (*kernel)(Params) = nullptr;
  int radius = 0, rows = 0;  // of results, those of a strip
  int warps = 0;             // of a block
  Ends ends = Ends::Whole;
};

template <typename Operation, Channels kChannels, template <int> typename Lanes, Ends kEnds = Ends::Whole>
StripLaunch<typename Operation::Params> strip_launch() {
  return {sliding_kernel<Operation, kChannels, Lanes, kEnds>, Operation::kRadius, Operation::kStripRows,
          block_warps<Operation, kChannels, Lanes<1>>(), kEnds};
}

// Whether a sliding_kernel can do all parts, if need be one for cut lanes.
inline bool can_slide(const FrameParams &p, const PackedKind &kind) {
  return std::all_of(p.part, p.part + p.parts, [&](const PartParams &part) {
    // Kernels of planes of one or two channels filter all of them, or none.
    const bool mixed = part.channels < 3 && part.filters && part.merges;
    return part.width * part.channels * kind.sample_bytes() >= kLaneBytes && !mixed;
  });
}

// Whether it can be one for whole lanes.
inline bool has_whole_lanes(const FrameParams &p, const PackedKind &kind, int radius) {
  return std::all_of(p.part, p.part + p.parts, [&](const PartParams &part) {
    // Reflections want as many pixels beyond the first one as the radius, of the 16 bytes at an edge.
    const int pixel_bytes = part.channels * kind.sample_bytes();
    return part.whole_lanes && part.height > radius &&
           (p.border != Border::Reflect101 || (radius + 1) * pixel_bytes <= kLaneBytes);
  });
}

// Throws Error{Device}.
template <typename Params>
void enqueue_strips(const PassRun &run, const char *name, const StripLaunch<Params> &launch_as, const PackedKind &kind,
                    Params &p) {
  const int height = launch_as.rows * launch_as.warps;
  const unsigned blocks = cut_tiles(p, [&](const PartParams &part) {
    const int row_bytes = part.width * part.channels * kind.sample_bytes();
    return TileCount{(row_bytes + kWarpBytes - 1) / kWarpBytes, (part.height + height - 1) / height};
  });
  const size_t bytes =
      launch_as.ends == Ends::Cut ? edge_bytes(launch_as.warps, launch_as.rows + 2 * launch_as.radius) : 0;
  check(launch(name, launch_as.kernel, dim3(blocks), dim3(32 * launch_as.warps), bytes, run.stream, p),
        "cudaLaunchKernel");
}

}  // namespace cudaconv
