// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The seam between kernels and the runtime: every launch, and every use of dynamic shared memory, goes through here.
// The tests replace the runtime below it with one that executes kernels on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "cuda/cuda_resources.h"
#ifndef __CUDACC__
#include "standin.h"
#endif

namespace cudaconv {

// Enqueues kernel(args...) on `stream`; arguments are copied at the call. `name` is for messages. For more than 48 KiB
// of shared memory see allow_shared_memory(). Throws Error{Device}.
template <typename... Params, typename... Args>
void enqueue([[maybe_unused]] const char *name, void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
             cudaStream_t stream, const Args &...args) {
  static_assert((std::is_same_v<Params, Args> && ...), "a kernel reads its parameters as they are, unconverted");
#ifdef __CUDACC__
  void *addresses[] = {const_cast<void *>(static_cast<const void *>(&args))...};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  const cudaError_t result = cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), addresses);
#else
  const cudaError_t result = standin::launch(
      name, grid, block, shared_bytes, stream, [=] { kernel(args...); }, reinterpret_cast<const void *>(kernel));
#endif
  check(result, "cudaLaunchKernel");
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
