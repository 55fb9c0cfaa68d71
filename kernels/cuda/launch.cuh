// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The seam between kernels and the runtime: every launch, and every use of dynamic shared memory, goes through here.
// The tests replace the runtime below it with one that executes kernels on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#ifndef __CUDACC__
#include "standin.h"
#endif

namespace cudaconv {

class LaunchGraph;

// LaunchGraph::add()
void add_launch(LaunchGraph &launches, const cudaKernelNodeParams &kernel, size_t bytes);

// Adds kernel(p) to `launches`, unless it has no block; the parameters are copied at the call. `name` is for messages.
// Throws Error{Device}.
template <typename Params>
void enqueue([[maybe_unused]] const char *name, void (*kernel)(Params), unsigned blocks, dim3 threads,
             size_t shared_bytes, LaunchGraph &launches, const Params &p) {
#ifndef __CUDACC__
  standin::register_kernel(name, kernel);
#endif
  if (!blocks) return;
  void *parameters = const_cast<Params *>(&p);
  cudaKernelNodeParams node = {};
  node.func = reinterpret_cast<void *>(kernel);
  node.gridDim = dim3(blocks);
  node.blockDim = threads;
  node.sharedMemBytes = static_cast<unsigned>(shared_bytes);
  node.kernelParams = &parameters;
  add_launch(launches, node, sizeof p);
}

// The block's dynamic shared memory, aligned to 16 bytes.
template <typename T>
__device__ inline T *shared_memory() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char memory[];
  return reinterpret_cast<T *>(memory);
#else
  return static_cast<T *>(standin::shared_memory());
#endif
}

}  // namespace cudaconv
