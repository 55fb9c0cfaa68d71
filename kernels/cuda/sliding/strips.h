// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the launchers of kernels on strips of rows (sliding.cuh) have in common.
#pragma once

#include "cuda/sliding/sliding.cuh"

#include <algorithm>

#include "cuda/cuda_resources.h"
#include "cuda/frame_launch.cuh"
#include "cuda/sliding/swar_plan.h"

namespace cudaconv {

template <typename Params>
struct StripLaunch {
  void (*kernel)(Params) = nullptr;
  int radius = 0, rows = 0;  // rows of results of a strip
  int warps = 0;             // warps of a block
  Ends ends = Ends::Whole;
};

template <typename Operation, Channels kChannels, template <int> typename Swar, Ends kEnds = Ends::Whole>
StripLaunch<typename Operation::Params> strip_launch() {
  return {sliding_kernel<Operation, kChannels, Swar, kEnds>, Operation::kRadius, Operation::kStripRows,
          block_warps<Operation, kChannels, Swar<1>>(), kEnds};
}

// Whether a sliding_kernel, with or without tails, can do all parts.
inline bool can_slide(const FrameParams &p, const SwarKind &kind) {
  return std::all_of(p.part, p.part + p.parts, [&](const PartParams &part) {
    // Kernels for planes of one or two channels filter all channels of a plane or none.
    const bool mixed = part.channels < 3 && part.has_filtered && part.has_unfiltered;
    return part.width * part.channels * kind.sample_bytes() >= kVectorBytes && !mixed;
  });
}

// Whether a sliding_kernel without tails can do all parts.
inline bool rows_are_multiples_of_16(const FrameParams &p, const SwarKind &kind, int radius) {
  return std::all_of(p.part, p.part + p.parts, [&](const PartParams &part) {
    // Reflect101 needs radius + 1 pixels within the 16 bytes at an edge.
    const int pixel_bytes = part.channels * kind.sample_bytes();
    return part.row_is_multiple_of_16 && part.height > radius &&
           (p.border != Border::Reflect101 || (radius + 1) * pixel_bytes <= kVectorBytes);
  });
}

// Cuts the frame into strips and enqueues the launch. Throws Error{Device}.
template <typename Params>
void enqueue_strips(const PassRun &run, const StripLaunch<Params> &launch_as, const SwarKind &kind, Params &p) {
  const int height = launch_as.rows * launch_as.warps;
  const unsigned blocks = cut_tiles(p, [&](const PartParams &part) {
    return TileSize{kWarpBytes, part.width * part.channels * kind.sample_bytes(), height};
  });
  const size_t bytes =
      launch_as.ends == Ends::Tail ? edge_bytes(launch_as.warps, launch_as.rows + 2 * launch_as.radius) : 0;
  enqueue(run, KernelLaunch<Params>{launch_as.kernel, blocks, dim3(32 * launch_as.warps), bytes}, p);
}

}  // namespace cudaconv
