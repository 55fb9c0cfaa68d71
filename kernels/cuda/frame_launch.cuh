// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Enqueues kernels whose blocks work on the tiles of a frame.
//
// A launch is chosen once for a plan, and each frame only fills in its addresses. For a frame with regions it is chosen
// again, since tiles of other sizes suit these better.
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
};

// Enqueues a launch that does not depend on tiles. Throws Error{Device}.
template <typename... Params>
void enqueue_whole(const PassRun &run, const char *name, void (*kernel)(Params...), unsigned blocks, dim3 threads,
                   size_t shared_bytes, const Params &...args) {
  if (!blocks) return;
  allow_shared_memory(run, reinterpret_cast<const void *>(kernel), shared_bytes);
  enqueue(name, kernel, dim3(blocks), threads, shared_bytes, *run.launches, args...);
}

// Enqueues a launch on the tiles that the parameters describe. Throws Error{Device}.
template <typename Params, typename... Args>
void enqueue(const PassRun &run, const KernelLaunch<Params, Args...> &launch_as, const Params &p, const Args &...args) {
  const auto enqueue_on = [&](unsigned blocks, const Params &params) {
    enqueue_whole(run, run.name, launch_as.kernel, blocks, launch_as.threads, launch_as.shared_bytes, params, args...);
  };
  if (!p.host[0].area) return enqueue_on(launch_as.blocks, p);
  Params on_areas = p;
  const unsigned blocks = cut_areas(on_areas);
  enqueue_on(blocks, on_areas);
}

// Completes `p`, whose frame is filled in, and returns the launch, without a kernel if the pass is not for the form.
// Throws Error{Device}.
template <typename Params>
using ChooseLaunch = KernelLaunch<Params> (*)(const PassQuery &query, Params &p);

// The form of a structure whose launches `choose` chooses. Throws Error{Device}.
template <typename Params>
Prepared prepare_chosen(const PassQuery &query, ChooseLaunch<Params> choose) {
  Params whole = {};
  fill_frame(query, whole);
  const KernelLaunch<Params> launch_as = choose(query, whole);
  if (!launch_as.kernel) return {};
  return {1, [=](const PassRun &run) {
            Params p = whole;
            fill_addresses(run, run.index, p);
            if (!p.host[0].area) return enqueue(run, launch_as, p);
            p = {};
            fill_frame(run, p);
            const KernelLaunch<Params> on_area = choose(run, p);
            enqueue(run, on_area, p);
          }};
}

}  // namespace cudaconv
