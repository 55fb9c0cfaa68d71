// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Enqueues kernels whose blocks work on the tiles of a frame.
#pragma once

#include "cuda/launch.cuh"
#include "cuda/launchers.h"

namespace cudaconv {

// A kernel and its launch configuration. `kernel` is nullptr if there is none for the pass.
template <typename... Params>
struct KernelLaunch {
  void (*kernel)(Params...) = nullptr;
  unsigned blocks = 0;
  dim3 threads;
  size_t shared_bytes = 0;
  Start start = Start::AfterAll;
};

// Enqueues a launch on the tiles that the parameters describe: at once or, with regions, deferred with a list of its
// tiles where it needs one. Throws Error{Device}.
template <typename Params, typename... Args>
void enqueue(const PassRun &run, const KernelLaunch<Params, Args...> &launch_as, const Params &p, const Args &...args) {
  const auto enqueue_on = [name = run.name, launch_as, stream = run.stream, args...](unsigned blocks, const Params &p) {
    enqueue(name, launch_as.start, launch_as.kernel, dim3(blocks), launch_as.threads, launch_as.shared_bytes, stream, p,
            args...);
  };
  if (!run.deferred) return enqueue_on(launch_as.blocks, p);
  if (!p.host[0].area)
    return run.deferred->add([enqueue_on, p, blocks = launch_as.blocks](const uint32_t *) { enqueue_on(blocks, p); });
  Params listed = p;
  const size_t first = run.deferred->tiles().size();
  const TileSelection selection = run.deferred->select_tiles(listed);
  if (selection.tiles == 0) return;
  run.deferred->add([enqueue_on, listed, first, selection](const uint32_t *tiles) {
    Params on_tiles = listed;
    if (selection.listed) on_tiles.tile_list = tiles + first;
    enqueue_on(selection.tiles, on_tiles);
  });
}

// takes() and launch() of a row of the dispatch table, for structures with a function `choose`. It gets a pass and its
// parameters with the frame filled in, fills in the rest, the same each time, and returns the launch; without a kernel
// if the pass is not for the structure. All throw Error{Device}.
template <typename Params>
using ChooseLaunch = KernelLaunch<Params> (*)(const PassQuery &query, Params &p);

template <typename Params>
int takes(const PassQuery &query, ChooseLaunch<Params> choose) {
  Params p = {};
  fill_frame(query, p);
  return choose(query, p).kernel != nullptr;
}

template <typename Params>
void launch_chosen(const PassRun &run, ChooseLaunch<Params> choose) {
  Params p = {};
  fill_frame(run, p);
  const KernelLaunch<Params> launch_as = choose(run, p);
  enqueue(run, launch_as, p);
}

}  // namespace cudaconv
