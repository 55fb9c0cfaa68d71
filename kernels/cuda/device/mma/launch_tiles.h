// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the launchers of separable.cu, custom_dense.cu and weighted.cu have in common: how frames are cut into tiles or
// strips.
#pragma once

#include <algorithm>
#include <functional>
#include <type_traits>

#include "cuda/cuda_resources.h"
#include "cuda/frame_launch.cuh"
#include "cuda/launchers.h"
#include "cuda/device/mma/pixels.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

// A kernel on the matrix instructions, and how to cut frames for it. Heights and widths are in rows and pixels.
template <typename Params>
struct MmaLaunch {
  void (*kernel)(Params) = nullptr;
  int threads = 0;  // of a block
  std::function<size_t(int channels, int tile_height)> shared_bytes;
  // Whether each warp goes down subtiles() strips, side by side; a block may then have any number of warps. Else a tile
  // has subtiles() groups of rows, one below the other.
  bool strips = false;
  int tile_width = 0;  // of planes with one subtile
  // Limits of a tile's height, besides shared memory. most_rows = 0: strips of any height, see choose_strip_height().
  // If a warp has several strips, frames have too few strips for that.
  int least_rows = 0, most_rows = 0;
  int resident = 0;   // tiles that a multiprocessor works on at once
  int more_rows = 0;  // a tile takes the time of this many rows more than its own
};

// Whether regions are narrower than two tiles of strips, on average: as these begin where words do, they would compute
// up to a tile more than is needed.
template <typename Params>
bool has_narrow_areas(const MmaLaunch<Params> &launch_as, int sample_bytes, const Params &p) {
  double widths = 0, tiles = 0;
  for (int i = 0; i < p.parts; i++) {
    const PartArea *const area = p.host[i].area;
    if (!area) return false;
    widths += area->widths;
    tiles += static_cast<double>(area->rectangles.size()) * launch_as.tile_width *
             subtiles(p.part[i].channels * sample_bytes);
  }
  return widths < 2 * tiles;
}

// Cuts the frame, which has been filled in, into tiles. No kernel if the device has no room for a tile.
template <typename Params>
KernelLaunch<Params> cut_frame(MmaLaunch<Params> launch_as, int sample_bytes, Params &p) {
  if (launch_as.strips && has_narrow_areas(launch_as, sample_bytes, p)) {
    const int warps = launch_as.threads / 32;
    launch_as.threads = 32;
    launch_as.tile_width /= warps;
    launch_as.resident *= warps;
  }
  const auto bytes = [&](int rows) {
    size_t most = 0;
    for (int i = 0; i < p.parts; i++) most = std::max(most, launch_as.shared_bytes(p.part[i].channels, rows));
    return most;
  };
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      const int more = subtiles(part.channels * sample_bytes);
      return launch_as.strips ? TileSize{launch_as.tile_width * more, part.width, rows}
                              : TileSize{launch_as.tile_width, part.width, rows * more};
    });
  };
  const int step = launch_as.strips ? 8 : 16;
  const auto cost = [&](int rows) { return static_cast<uint64_t>(rows + launch_as.more_rows); };
  const int rows =
      launch_as.most_rows
          ? choose_tile_height(step, launch_as.least_rows, launch_as.most_rows, launch_as.resident, bytes, cut, cost)
          : choose_strip_height(launch_as.least_rows, step, launch_as.resident, launch_as.more_rows, cut);
  if (!rows) return {};
  return {launch_as.kernel, cut(rows), launch_as.threads, bytes(rows)};
}

// Calls function() with the kind of samples as an integral_constant.
template <typename Function>
auto for_samples(Samples samples, Function function) {
  switch (samples) {
    case Samples::U16:
      return function(std::integral_constant<Samples, Samples::U16>());
    case Samples::U16x4:
      return function(std::integral_constant<Samples, Samples::U16x4>());
    default:
      return function(std::integral_constant<Samples, Samples::U8>());
  }
}

}  // namespace cudaconv
