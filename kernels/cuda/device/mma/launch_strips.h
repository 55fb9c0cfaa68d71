// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How the launchers of separable.cu and weighted.cu cut frames into strips, see strip_source.cuh.
#pragma once

#include "cuda/device/mma/strip_source.cuh"
#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

// The strips of a kernel.
struct StripHeights {
  // Limits of a strip's height, besides shared memory. most = 0: strips of any height, see choose_strip_height(). If a
  // warp has several strips, frames have too few strips for that.
  int least = 0, most = 0;
  int more_rows = 0;  // a strip takes the time of this many rows more than its own
};

// Cuts the frame, which has been filled in, into strips for a kernel of the shape. A multiprocessor works on `resident`
// blocks at once. No kernel if the device has no room for a block.
template <typename Shape, typename Params>
KernelLaunch<Params> cut_strips(void (*kernel)(Params), int resident, const StripHeights &heights, Params &p) {
  constexpr int kWarps = kStripThreads / 32;
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, TileCorners::Anywhere, [&](const PartParams &part) {
      return TileSize{kWarps * strip_width(part.channels * Shape::kSampleBytes), part.width, rows};
    });
  };
  const auto cost = [&](int rows) { return static_cast<uint64_t>(rows + heights.more_rows); };
  const int rows = heights.most
                       ? choose_tile_height(8, heights.least, heights.most, resident, strip_bytes<Shape>, cut, cost)
                       : choose_strip_height(heights.least, 8, resident, heights.more_rows, cut);
  if (!rows) return {};
  return {kernel, cut(rows), kStripThreads, strip_bytes<Shape>(rows)};
}

}  // namespace cudaconv
