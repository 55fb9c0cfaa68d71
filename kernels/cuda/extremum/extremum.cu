// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for dilations and erosions by squares.
#include "cuda/extremum/extremum.cuh"

#include <algorithm>

#include "cuda/device/u8x4_tile.h"
#include "cuda/extremum/large_squares.h"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace extremum;

namespace {

// A kernel, and what its launcher has to know of its shape.
struct VanHerkLaunch {
  void (*kernel)(VanHerkParams) = nullptr;
  int groups = 0, pitch = 0;    // of a row: groups of results, words in shared memory
  int threads = 0, blocks = 0;  // of a block; of a multiprocessor
  int rows_of_round = 0;        // rows that a block filters at a time
};

template <typename Shape>
VanHerkLaunch van_herk_launch() {
  return {van_herk_kernel<Shape>, Shape::kGroups,    Shape::kPitch,
          32 * Shape::kWarps,     Shape::kMinBlocks, Shape::kRowsOfRound};
}

// The kernels for a window size. Sizes 15 and 31 have kernels of their own. The numbers of a shape: the largest window,
// whether it is the only one, groups of a row, blocks of a multiprocessor, and u8x4s of the largest pixel.

// For 8-bit samples. `three`: some pixels have three bytes, so that their rows cannot be filtered as they lie in
// memory.
VanHerkLaunch choose_u8(int size, bool three) {
  using Q = U8x4Order;
  if (size == 15 && !three) return van_herk_launch<VanHerkShape<Q, 15, true, 8, 4>>();
  if (size == 31 && !three) return van_herk_launch<VanHerkShape<Q, 31, true, 4, 3>>();
  if (size <= 15) return van_herk_launch<VanHerkShape<Q, 15, false, 8, 4>>();
  if (size <= 31) return van_herk_launch<VanHerkShape<Q, 31, false, 4, 3>>();
  return van_herk_launch<VanHerkShape<Q, 63, false, 2, 2>>();
}

// For 16-bit samples. `step`: u8x4s of a pixel. If that is one, rows of the largest shape have less of a halo, so that
// two blocks fit.
VanHerkLaunch choose_u16(int size, int step) {
  using Q = U16x2Order;
  if (size <= 9) return van_herk_launch<VanHerkShape<Q, 9, false, 16, 4>>();
  if (size == 15) return van_herk_launch<VanHerkShape<Q, 15, true, 8, 4>>();
  if (size == 31) return van_herk_launch<VanHerkShape<Q, 31, true, 4, 3>>();
  if (size < 31) return van_herk_launch<VanHerkShape<Q, 31, false, 4, 3>>();
  if (step == 1) return van_herk_launch<VanHerkShape<Q, 63, false, 2, 2, 1>>();
  return van_herk_launch<VanHerkShape<Q, 63, false, 2, 2>>();
}

// Channels that are not filtered are copied from the source. If copy_source is another frame, it has the same in these
// channels, see large_squares.h.
KernelLaunch<VanHerkParams> choose(const PassQuery &query, VanHerkParams &p) {
  const Pass &pass = query.pass();
  const int size = pass.width();
  const int step = fill_extremum(query, p);
  if (!step || !pass.element.empty() || size != pass.height() || size < 3 || size > 2 * kLargestSquareRadius + 1)
    return {};
  p.size = size;
  ignore_outside(p);
  const auto width_of = [&](const VanHerkLaunch &as) { return as.groups * size / kChunk * kChunk; };
  const auto bytes_of = [&](const VanHerkLaunch &as, int height) {
    return sizeof(uint32_t) * as.pitch * (height + size - 1);
  };
  const auto cut = [&](const VanHerkLaunch &as, int height) {
    p.tile = make_u8x4_tile(width_of(as), height, size / 2, size / 2, step);
    return cut_u8x4_tiles(p, p.tile);
  };
  const bool three = std::any_of(p.part, p.part + p.parts, [](const PartParams &part) { return part.channels == 3; });
  const VanHerkLaunch as = p.sample_bits ? choose_u16(size, step) : choose_u8(size, three);
  // The cost of a tile: windows that a thread computes, one after the other, along rows and down columns.
  const auto cost = [&](int height) {
    const int columns = width_of(as) * ((height + size - 1) / size);
    return (height + size - 1 + as.rows_of_round - 1) / as.rows_of_round + (columns + as.threads - 1) / as.threads;
  };
  const int rows = size;  // tile heights are multiples of it
  const int height = choose_tile_height(
      rows, rows, std::max(VanHerkTuning::kMostRows, rows), as.blocks, [&](int height) { return bytes_of(as, height); },
      [&](int height) { return cut(as, height); }, cost);
  if (!height) return {};
  return {as.kernel, cut(as, height), as.threads, bytes_of(as, height)};
}

}  // namespace

Prepared prepare_extremum(const PassQuery &query) {
  return prepare_chosen<VanHerkParams>(query, choose);
}

}  // namespace cudaconv
