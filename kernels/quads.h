// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the launchers of kernels on tiles of quads share, see quads.cuh.
#pragma once

#include "quads.cuh"

#include <algorithm>

#include "cuda_resources.h"
#include "launchers.h"

namespace cudaconv {

constexpr int kQuadThreads = 256;  // of a block
// Tiles are to be no larger than makes this many blocks, if they can be smaller: some for each multiprocessor.
constexpr unsigned kEnoughBlocks = 384;

// Whether the kernels on quads can read and write the frame, and are to.
inline bool in_quads(const PassRun &run, const Pass &pass) {
  const FrameLayout &layout = run.plan.layout;
  return run.plan.method == Method::Auto && !run.buffers.regions->active && !pass.keep_x && !pass.keep_y &&
         std::all_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) {
           return p.container == Container::U8 && p.dense() && p.channel[0].depth == 8;
         });
}

// Bytes that a block may have on the current device.
inline size_t shared_memory_of_block() {
  int device, bytes;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  return static_cast<size_t>(bytes);
}

inline unsigned cut_quad_tiles(FrameParams &p, const QuadTile &tile) {
  return cut_tiles(p, [&](const PartParams &part) {
    const int width = tile.width * subtiles(part.channels);
    return TileCount{(part.width + width - 1) / width, (part.height + tile.height - 1) / tile.height};
  });
}

template <typename Params>
void enqueue_quads(const char *name, void (*kernel)(Params), unsigned blocks, size_t shared_bytes, cudaStream_t stream,
                   const Params &p) {
  // Beyond 48 KiB a kernel has to ask. It costs little, so there is no need to remember on which devices it has.
  check(cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)),
        "cudaFuncSetAttribute");
  check(launch(name, kernel, dim3(blocks), dim3(kQuadThreads), shared_bytes, stream, p), "cudaLaunchKernel");
}

}  // namespace cudaconv
