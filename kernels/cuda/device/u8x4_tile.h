// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the launchers of kernels on tiles of u8x4s share, see u8x4_tile.cuh.
#pragma once

#include "cuda/device/u8x4_tile.cuh"

#include <algorithm>
#include <cstdint>

#include "cuda/cuda_resources.h"
#include "cuda/frame_launch.cuh"

namespace cudaconv {

// Whether the kernels on u8x4s can read and write the frame, which has samples of this kind.
inline bool is_uniform_dense(const PassQuery &query, Container container = Container::U8) {
  const FrameLayout &layout = query.plan.layout;
  return layout.uniform_dense() && std::all_of(layout.plane, layout.plane + layout.planes, [&](const PlaneLayout &p) {
           return p.container == container && (container == Container::U8 ? p.channel[0].depth == 8 : p.channels != 3);
         });
}

// Makes of 16-bit samples the bytes that the kernels on u8x4s know, and of pixels of eight bytes two halves. Returns
// how many a pixel has.
inline int halve_pixels(FrameParams &p) {
  int halves = 1;
  for (int i = 0; i < p.parts; i++) {
    PartParams &part = p.part[i];
    part.channels *= 2;
    if (part.channels <= 4) continue;
    halves = 2;
    part.channels = 4;
    part.width *= 2;
  }
  return halves;
}

// For extrema of windows whose rows and columns are runs about their middle: what these borders make of samples inside
// is in every window that reaches it, so that they need not be looked up.
inline void ignore_outside(FrameParams &p, bool least) {
  if (p.border != Border::Replicate && p.border != Border::Reflect && p.border != Border::Reflect101) return;
  p.border = Border::Constant;
  for (int i = 0; i < p.parts; i++) std::fill_n(p.part[i].border_word, 3, least ? 0xffffffffu : 0);
}

inline unsigned cut_u8x4_tiles(FrameParams &p, const U8x4Tile &tile) {
  return cut_tiles(p, [&](const PartParams &part) {
    return TileSize{tile.pixels[part.channels - 1], part.width, tile.height};
  });
}

constexpr size_t kReservedBytes = 1024;  // of shared memory, by the runtime, for each block

// How many blocks a device works on at once, of a multiprocessor no more than `resident`, if it has the memory.
inline unsigned tiles_at_once(int resident, size_t bytes) {
  const DeviceLimits device = current_limits();
  const size_t fit = device.multiprocessor_bytes / (bytes + kReservedBytes);
  return static_cast<unsigned>(std::max<size_t>(1, std::min<size_t>(resident, fit)) * device.multiprocessors);
}

// A tile's height, 0 where shared memory holds none, and the time that the whole frame takes with it, in any unit.
struct TileHeight {
  int height = 0;
  uint64_t time = UINT64_MAX;
};

// The tile height, from `least` to `most` by `step`, at which the whole frame is done soonest.
// bytes_of(height), blocks_of(height) and cost_of(height) are a block's shared memory, how many blocks there are, and
// what one of them takes. A multiprocessor works on `resident` of them at once, if it has the memory.
template <typename BytesOf, typename BlocksOf, typename CostOf>
TileHeight choose_tile_height(int step, int least, int most, int resident, BytesOf bytes_of, BlocksOf blocks_of,
                              CostOf cost_of) {
  const DeviceLimits device = current_limits();
  TileHeight best;
  for (int height = least; height <= most; height += step) {
    const size_t bytes = bytes_of(height);
    if (bytes > device.block_bytes) break;
    const unsigned at_once = tiles_at_once(resident, bytes);
    const uint64_t time = (blocks_of(height) + at_once - 1) / at_once * cost_of(height);
    if (time <= best.time) best = {height, time};
  }
  return best;
}

// The height of strips, from `least` to 512, at which the whole frame is done soonest. Each takes the time of more_rows
// rows more than its own.
// Blocks of a multiprocessor, of which it works on `resident` at once, share its time but for what each waits for,
// and so do those that follow each other: where the busiest has n in r rounds, they take (n + r) / 2 times as long as
// one.
template <typename BlocksOf>
int choose_strip_height(int least, int step, int resident, int more_rows, BlocksOf blocks_of) {
  constexpr int kMost = 512;
  const unsigned multiprocessors = current_limits().multiprocessors;
  TileHeight best;
  for (int height = least; height <= kMost; height += step) {
    const uint64_t blocks = (blocks_of(height) + multiprocessors - 1) / multiprocessors;
    const uint64_t rounds = (blocks + resident - 1) / resident;
    const uint64_t time = (blocks + rounds) * (height + more_rows);
    if (time <= best.time) best = {height, time};
    if (blocks == 1) break;  // of higher ones there is no fewer
  }
  return best.height;
}

}  // namespace cudaconv
