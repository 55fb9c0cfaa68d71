// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Host functions for launchers of kernels that work on tiles of u8x4s, see u8x4_tile.cuh.
#pragma once

#include "cuda/device/u8x4_tile.cuh"

#include <algorithm>
#include <cstdint>

#include "cuda/cuda_resources.h"
#include "cuda/frame_launch.cuh"

namespace cudaconv {

// Whether kernels on u8x4s can read and write the frame and it has this container.
inline bool is_uniform_dense(const PassQuery &query, Container container = Container::U8) {
  const FrameLayout &layout = query.plan.layout;
  return layout.uniform_dense() && std::all_of(layout.plane, layout.plane + layout.planes, [&](const PlaneLayout &p) {
           return p.container == container && (container == Container::U8 ? p.channel[0].depth == 8 : p.channels != 3);
         });
}

// Presents 16-bit samples as bytes, which kernels on u8x4s know, and pixels of eight bytes as two half pixels. Returns
// how many such pixels a pixel has.
inline int halve_pixels(FrameParams &p) {
  int halves = 1;
  for (int i = 0; i < p.parts; i++) {
    PartParams &part = p.part[i];
    part.channels *= 2;
    if (part.channels <= 4) continue;
    halves = 2;
    part.channels = 4;
    part.width *= 2;
    part.step /= 2;
  }
  return halves;
}

// Makes a minimum or maximum ignore samples outside the frame, for windows whose rows and columns are runs about their
// middle. With these border modes every outside sample equals an inside sample of the same window, so it need not be
// looked up.
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

constexpr size_t kReservedBytes = 1024;  // shared memory that the runtime reserves for each block

// How many blocks the device runs at once: at most `resident` on a multiprocessor, fewer if shared memory does not
// suffice.
inline unsigned tiles_at_once(int resident, size_t bytes) {
  const DeviceLimits device = current_limits();
  const size_t fit = device.multiprocessor_bytes / (bytes + kReservedBytes);
  return static_cast<unsigned>(std::max<size_t>(1, std::min<size_t>(resident, fit)) * device.multiprocessors);
}

// A tile's height, 0 if shared memory holds no tile, and the time for the whole frame with it, in any unit.
struct TileHeight {
  int height = 0;
  uint64_t time = UINT64_MAX;
};

// Finds the tile height, from `least` to `most` by `step`, with which the whole frame takes the least time.
// bytes_of(height), blocks_of(height) and cost_of(height) return a block's shared memory, the number of blocks, and the
// time of a block. A multiprocessor runs `resident` blocks at once, if its shared memory suffices.
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

// Finds the height of strips, from `least` to 512, with which the whole frame takes the least time. A strip takes the
// time of more_rows rows more than its own.
// The model: blocks that run at once on a multiprocessor, at most `resident`, share its time except for what each waits
// for, and so do blocks that follow each other. If the busiest multiprocessor has n blocks in r rounds, they take (n +
// r) / 2 times as long as one block.
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
    if (blocks == 1) break;  // with larger heights it cannot become fewer
  }
  return best.height;
}

}  // namespace cudaconv
