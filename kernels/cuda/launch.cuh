// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The seam between kernels and the runtime: every launch, and every use of dynamic shared memory, goes through here.
// The tests replace the runtime below it with one that executes kernels on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#ifndef __CUDACC__
#include "standin.h"
#endif

namespace cudaconv {

class LaunchGraph;

// LaunchGraph::add()
void add_launch(LaunchGraph &launches, const cudaKernelNodeParams &kernel, const size_t *bytes, size_t arguments);

// Adds kernel(args...) to `launches`; arguments are copied at the call. `name` is for messages. For more than 48 KiB of
// shared memory see allow_shared_memory(). Throws Error{Device}.
template <typename... Params, typename... Args>
void enqueue([[maybe_unused]] const char *name, void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
             LaunchGraph &launches, const Args &...args) {
  static_assert((std::is_same_v<Params, Args> && ...), "a kernel reads its parameters as they are, unconverted");
#ifndef __CUDACC__
  standin::register_kernel(name, kernel);
#endif
  void *addresses[] = {const_cast<void *>(static_cast<const void *>(&args))...};
  constexpr size_t kBytes[] = {sizeof(Args)...};
  cudaKernelNodeParams node = {};
  node.func = reinterpret_cast<void *>(kernel);
  node.gridDim = grid;
  node.blockDim = block;
  node.sharedMemBytes = static_cast<unsigned>(shared_bytes);
  node.kernelParams = addresses;
  add_launch(launches, node, kBytes, sizeof...(Args));
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
