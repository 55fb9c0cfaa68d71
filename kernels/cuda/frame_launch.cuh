// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Enqueues kernels whose blocks work on the tiles of a frame.
//
// A launch is chosen once for a plan, and each frame only fills in its addresses. For regions it is chosen again, since
// tiles of other sizes suit these better, and kept while the regions stay.
#pragma once

#include <utility>
#include <vector>

#include "cuda/launch.cuh"
#include "cuda/launchers.h"

namespace cudaconv {

// A kernel and its launch configuration. `kernel` is nullptr if there is none for the pass.
template <typename Params>
struct KernelLaunch {
  void (*kernel)(Params) = nullptr;
  unsigned blocks = 0;
  dim3 threads;
  size_t shared_bytes = 0;
  bool lists_tiles = false;  // whether the kernel takes FrameParams::tile_list
};

// Enqueues a launch on all tiles that the parameters describe, or on those of the areas. Throws Error{Device}.
template <typename Params>
void enqueue(const PassRun &run, const KernelLaunch<Params> &launch_as, Params p) {
  const unsigned blocks = p.host[0].area ? cut_areas(p) : launch_as.blocks;
  enqueue(run.name, launch_as.kernel, blocks, launch_as.threads, launch_as.shared_bytes, *run.launches, p);
}

// A launch with these parameters, of `passes` passes, whose tiles have been cut. Each frame only brings its addresses.
template <typename Params>
Prepared prepare_launch(KernelLaunch<Params> launch_as, Params params, int passes = 1) {
  std::vector<uint32_t> tiles;
  if (params.host[0].area) launch_as.blocks = cut_areas(params, &tiles);
  const auto launch = [=](const PassRun &run) {
    Params p = params;
    fill_addresses(run, run.index + passes - 1, p);
    p.tile_list = run.tile_list;
    enqueue(run.name, launch_as.kernel, launch_as.blocks, launch_as.threads, launch_as.shared_bytes, *run.launches, p);
  };
  return {passes, launch, 0, launch_as.lists_tiles, std::move(tiles)};
}

// Completes `p`, whose frame is filled in, and returns the launch, without a kernel if the pass is not for the form.
// Throws Error{Device}.
template <typename Params>
using ChooseLaunch = KernelLaunch<Params> (*)(const PassQuery &query, Params &p);

// The form of a structure whose launches `choose` chooses. It takes no pass whose blocks need more shared memory than
// the device has. Throws Error{Device}.
template <typename Params>
Prepared prepare_chosen(const PassQuery &query, ChooseLaunch<Params> choose) {
  Params p = {};
  fill_frame(query, p);
  const KernelLaunch<Params> launch_as = choose(query, p);
  if (!launch_as.kernel || launch_as.shared_bytes > current_limits().block_bytes) return {};
  return prepare_launch(launch_as, p);
}

}  // namespace cudaconv
