// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How launchers choose the height of tiles and strips.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/launchers.h"

namespace cudaconv {

constexpr size_t kReservedBytes = 1024;  // shared memory that the runtime reserves for each block

// How many blocks the device runs at once: at most `resident` on a multiprocessor, fewer if shared memory does not
// suffice.
inline unsigned tiles_at_once(int resident, size_t bytes) {
  const DeviceLimits device = current_limits();
  const size_t fit = device.multiprocessor_bytes / (bytes + kReservedBytes);
  return static_cast<unsigned>(std::max<size_t>(1, std::min<size_t>(resident, fit)) * device.multiprocessors);
}

// The best height so far, and the time for the whole frame with it, in any unit.
struct TileHeight {
  int height = 0;
  uint64_t time = UINT64_MAX;
};

// Finds the tile height, from `least` to `most` by `step`, with which the whole frame takes the least time.
// bytes_of(height), blocks_of(height) and cost_of(height) return a block's shared memory, the number of blocks, and the
// time of a block. A multiprocessor runs `resident` blocks at once, if its shared memory suffices. 0: shared memory
// holds no tile.
template <typename BytesOf, typename BlocksOf, typename CostOf>
int choose_tile_height(int step, int least, int most, int resident, BytesOf bytes_of, BlocksOf blocks_of,
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
  return best.height;
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
