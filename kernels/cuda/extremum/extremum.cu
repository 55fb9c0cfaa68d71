// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for dilations and erosions by squares.
#include "cuda/extremum/extremum.cuh"

#include <algorithm>

#include "cuda/device/u8x4_tile.h"
#include "cuda/tile_height.h"
#include "plan/lower.h"

namespace cudaconv {

using namespace extremum;

namespace {

template <typename Shape>
KernelLaunch<VanHerkParams> launch_of(int step, VanHerkParams &p) {
  constexpr int kThreads = 32 * Shape::kWarps;
  const int size = p.size, width = Shape::kGroups * size / kChunk * kChunk;
  const auto bytes = [&](int height) { return sizeof(uint32_t) * Shape::kPitch * (height + size - 1); };
  const auto cut = [&](int height) {
    p.tile = make_u8x4_tile(width, height, size / 2, size / 2, step);
    return cut_u8x4_tiles(p, p.tile);
  };
  // The cost of a tile: windows that a thread computes, one after the other, along rows and down columns.
  const auto cost = [&](int height) {
    const int columns = width * ((height + size - 1) / size);
    return (height + size - 1 + Shape::kRowsOfRound - 1) / Shape::kRowsOfRound + (columns + kThreads - 1) / kThreads;
  };
  // Tile heights are multiples of the window's size.
  const int height =
      choose_tile_height(size, size, std::max(VanHerkTuning::kMostRows, size), Shape::kMinBlocks, bytes, cut, cost);
  if (!height) return {};
  return {van_herk_kernel<Shape>, cut(height), kThreads, bytes(height)};
}

// The kernels for a window size. Sizes 15 and 31 have kernels of their own. The numbers of a shape: the largest window,
// whether it is the only one, groups of a row, blocks of a multiprocessor, and u8x4s of the largest pixel.

// For 8-bit samples. Rows of pixels of three bytes cannot be filtered as they lie in memory.
KernelLaunch<VanHerkParams> choose_u8(VanHerkParams &p) {
  using Q = U8x4Order;
  const int size = p.size;
  const bool three = std::any_of(p.part, p.part + p.parts, [](const PartParams &part) { return part.channels == 3; });
  if (size == 15 && !three) return launch_of<VanHerkShape<Q, 15, true, 8, 4>>(1, p);
  if (size == 31 && !three) return launch_of<VanHerkShape<Q, 31, true, 4, 3>>(1, p);
  if (size <= 15) return launch_of<VanHerkShape<Q, 15, false, 8, 4>>(1, p);
  if (size <= 31) return launch_of<VanHerkShape<Q, 31, false, 4, 3>>(1, p);
  return launch_of<VanHerkShape<Q, 63, false, 2, 2>>(1, p);
}

// For 16-bit samples. `step`: u8x4s of a pixel. If that is one, rows of the largest shape have less of a halo, so that
// two blocks fit.
KernelLaunch<VanHerkParams> choose_u16(int step, VanHerkParams &p) {
  using Q = U16x2Order;
  const int size = p.size;
  if (size <= 9) return launch_of<VanHerkShape<Q, 9, false, 16, 4>>(step, p);
  if (size == 15) return launch_of<VanHerkShape<Q, 15, true, 8, 4>>(step, p);
  if (size == 31) return launch_of<VanHerkShape<Q, 31, true, 4, 3>>(step, p);
  if (size < 31) return launch_of<VanHerkShape<Q, 31, false, 4, 3>>(step, p);
  if (step == 1) return launch_of<VanHerkShape<Q, 63, false, 2, 2, 1>>(step, p);
  return launch_of<VanHerkShape<Q, 63, false, 2, 2>>(step, p);
}

// Channels that are not filtered are copied from the source. If copy_source is another frame, it has the same in these
// channels, see divide_squares() in plan/lower.cpp.
KernelLaunch<VanHerkParams> choose(const PassQuery &query, VanHerkParams &p) {
  const Pass &pass = query.pass();
  const int size = pass.width();
  const int step = fill_extremum(query, p);
  if (!step || !pass.element.empty() || size != pass.height() || size < 3 || size > 2 * kLargestSquareRadius + 1)
    return {};
  p.size = size;
  ignore_outside(p);
  return p.sample_bits ? choose_u16(step, p) : choose_u8(p);
}

}  // namespace

Prepared prepare_extremum(const PassQuery &query) {
  return prepare_chosen<VanHerkParams>(query, choose);
}

}  // namespace cudaconv
