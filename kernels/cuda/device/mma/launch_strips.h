// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How the launchers of separable.cu and weighted.cu cut frames into strips, see strip_source.cuh.
#pragma once

#include "cuda/device/mma/strip_source.cuh"
#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

// A kernel whose warps go down strips, and what its launcher has to know of it.
template <typename Params>
struct StripLaunch {
  void (*kernel)(Params) = nullptr;
  size_t (*shared_bytes)(int height) = nullptr;  // of a block, whose strips have this height
  // Limits of a strip's height, besides shared memory. most_rows = 0: strips of any height, see choose_strip_height().
  // If a warp has several strips, frames have too few strips for that.
  int least_rows = 0, most_rows = 0;
  int resident = 0;   // blocks that a multiprocessor works on at once
  int more_rows = 0;  // a strip takes the time of this many rows more than its own
};

// Whether regions are narrower than two blocks of strips, on average: as these begin where words do, they would compute
// up to a block more than is needed.
inline bool has_narrow_areas(int sample_bytes, const FrameParams &p) {
  double widths = 0, blocks = 0;
  for (int i = 0; i < p.parts; i++) {
    const PartArea *const area = p.host[i].area;
    if (!area) return false;
    widths += area->widths;
    blocks += static_cast<double>(area->rectangles.size()) * kStripThreads / 32 *
              strip_width(p.part[i].channels * sample_bytes);
  }
  return widths < 2 * blocks;
}

// Cuts the frame, which has been filled in, into strips. No kernel if the device has no room for a block.
template <typename Params>
KernelLaunch<Params> cut_strips(const StripLaunch<Params> &launch_as, int sample_bytes, Params &p) {
  constexpr int kMostWarps = kStripThreads / 32;
  const int warps = has_narrow_areas(sample_bytes, p) ? 1 : kMostWarps;
  const int resident = launch_as.resident * (kMostWarps / warps);
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      return TileSize{warps * strip_width(part.channels * sample_bytes), part.width, rows};
    });
  };
  const auto cost = [&](int rows) { return static_cast<uint64_t>(rows + launch_as.more_rows); };
  const int rows = launch_as.most_rows
                       ? choose_tile_height(8, launch_as.least_rows, launch_as.most_rows, resident,
                                            launch_as.shared_bytes, cut, cost)
                       : choose_strip_height(launch_as.least_rows, 8, resident, launch_as.more_rows, cut);
  if (!rows) return {};
  return {launch_as.kernel, cut(rows), 32 * warps, launch_as.shared_bytes(rows)};
}

}  // namespace cudaconv
