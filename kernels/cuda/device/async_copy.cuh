// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Asynchronous copies from global to shared memory (cp.async): they take no registers and run while the thread goes on.
// GPUs before 8.0, and the host, copy at once.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/arch.cuh"

namespace cudaconv {

static_assert(has_in(kNewestStep, Feature::AsyncCopy), "no step of this source in kernels/meson.build has these");

// The cache in which a copy leaves its bytes: L1 for bytes that several warps read.
enum class Cache { L2, L1 };

// Copies the first `bytes` of 16 bytes; both addresses are multiples of 16. The rest of the 16 bytes in shared memory
// is undefined.
template <Cache kCache = Cache::L2>
__device__ inline void copy_async(void *to, const void *from, int bytes = 16) {
#if CUDACONV_HAS_ASYNC_COPY
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (kCache == Cache::L2)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
#else
  if (bytes == 16) {
    *static_cast<uint4 *>(to) = __ldg(static_cast<const uint4 *>(from));
    return;
  }
#pragma unroll 1
  for (int i = 0; i < bytes; i++) static_cast<uint8_t *>(to)[i] = __ldg(static_cast<const uint8_t *>(from) + i);
#endif
}

// Closes a group of copies: all that the thread began since its last group.
__device__ inline void commit_copies() {
#if CUDACONV_HAS_ASYNC_COPY
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all of the thread's groups except the last kGroups. Other threads see the bytes after a barrier.
template <int kGroups>
__device__ inline void wait_for_groups() {
#if CUDACONV_HAS_ASYNC_COPY
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

// Waits for all of the thread's copies, in groups or not.
__device__ inline void wait_for_copies() {
#if CUDACONV_HAS_ASYNC_COPY
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace cudaconv
