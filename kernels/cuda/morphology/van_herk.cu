// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for dilations and erosions by squares.
#include "cuda/morphology/van_herk.cuh"

#include <algorithm>
#include <vector>

#include "cuda/device/u8x4_tile.h"
#include "cuda/morphology/large_squares.h"
#include "cuda/tile_height.h"

namespace cudaconv {

namespace {

struct VanHerkLaunch {
  void (*kernel)(VanHerkParams);
  int groups, words, pitch, threads, blocks, rows_of_round;
  bool low, of_three;

  int words_of(int size) const { return of_three ? words : size; }  // words of a group's results
};

template <typename Shape>
VanHerkLaunch van_herk_launch() {
  return {van_herk_kernel<Shape>, Shape::kGroups,      Shape::kWords, Shape::kPitch,        32 * Shape::kWarps,
          Shape::kMinBlocks,      Shape::kRowsOfRound, Shape::kLow,   Shape::kThreeChannels};
}

// The kernels for 8-bit samples and a window size, the one for large frames first. The most common sizes have kernels
// of their own, see Feature::MaskKernels.
template <Rows kRows, bool kMin>
std::vector<VanHerkLaunch> choose_u8(int size, bool sm90) {
  using Q = U8x4Order;
  if (sm90) {
    if (size == 15) return {van_herk_launch<VanHerkShape<Q, 15, true, 8, 4, kRows, kMin>>()};
    if (size == 31)
      return {van_herk_launch<VanHerkShape<Q, 31, true, 4, 3, kRows, kMin>>(),
              van_herk_launch<VanHerkShape<Q, 31, true, 2, 3, kRows, kMin>>()};
  }
  if (size <= 15) return {van_herk_launch<VanHerkShape<Q, 15, false, 8, 4>>()};
  if (size <= 31) return {van_herk_launch<VanHerkShape<Q, 31, false, 4, 3>>()};
  if (size <= 63) return {van_herk_launch<VanHerkShape<Q, 63, false, 2, 2>>()};
  return {van_herk_launch<VanHerkShape<Q, 127, false, 1, 1>>()};
}

// The kernels for 16-bit samples and a window size, with kStep u8x4s a pixel; none for the largest windows.
template <int kStep>
std::vector<VanHerkLaunch> choose_u16(int size, bool sm90) {
  using Q = U16x2Order;
  constexpr Rows kRows = Rows::Words;
  if (sm90) {
    if constexpr (kStep == 2)
      if (size == 7) return {van_herk_launch<VanHerkShape<Q, 7, true, 16, 4, kRows, false, kStep>>()};
    if (size == 9) return {van_herk_launch<VanHerkShape<Q, 9, true, 16, 4, Rows::U8x4s, false, kStep>>()};
    if (size == 15) return {van_herk_launch<VanHerkShape<Q, 15, true, 8, 4, kRows, false, kStep>>()};
    if (size == 31) return {van_herk_launch<VanHerkShape<Q, 31, true, 4, 3, kRows, false, kStep>>()};
  }
  if (size <= 31) return {van_herk_launch<VanHerkShape<Q, 31, false, 4, 3, Rows::U8x4s, false, kStep>>()};
  if (size <= 63) return {van_herk_launch<VanHerkShape<Q, 63, false, 2, 2, Rows::U8x4s, false, kStep>>()};
  return {};
}

std::vector<VanHerkLaunch> choose_kernels(const PassQuery &query, bool words, int step) {
  const int size = query.pass().width();
  const bool sm90 = query.kernels.sm90, least = query.pass().op == Op::Minimum;
  if (words) return step == 2 ? choose_u16<2>(size, sm90) : choose_u16<1>(size, sm90);
  const FrameLayout &layout = query.plan.layout;
  const auto planes =
      std::count_if(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels == 3; });
  if (planes == layout.planes)
    return least ? choose_u8<Rows::WordsOfThree, true>(size, sm90) : choose_u8<Rows::WordsOfThree, false>(size, sm90);
  return least ? choose_u8<Rows::Words, true>(size, sm90 && !planes)
               : choose_u8<Rows::Words, false>(size, sm90 && !planes);
}

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in. Channels
// that are not filtered are copied from the source; if copy_source is another frame, it has the same in these channels,
// see large_squares.h.
KernelLaunch<VanHerkParams> choose(const PassQuery &query, VanHerkParams &p) {
  const Pass &pass = query.pass();
  const int size = pass.width();
  const bool words = is_uniform_dense(query, Container::U16);
  if ((!words && !is_uniform_dense(query)) || (pass.op != Op::Minimum && pass.op != Op::Maximum) ||
      !pass.element.empty() || size != pass.height() || size < 3 || size > 2 * largest_radius(query.plan.layout) + 1)
    return {};
  p.size = size;
  p.flip = pass.op == Op::Minimum ? 0xffffffffu : 0;
  const int step = words ? halve_pixels(p) : 1;
  ignore_outside(p, pass.op == Op::Minimum);
  const ChannelLayout &sample = query.plan.layout.plane[0].channel[0];
  p.sample_bits = (((1u << sample.depth) - 1) << sample.shift) * 0x10001u;
  const auto width_of = [&](const VanHerkLaunch &as) { return as.groups * as.words_of(size) / kChunk * kChunk; };
  const auto bytes_of = [&](const VanHerkLaunch &as, int height) {
    return sizeof(uint32_t) * as.pitch * (height + size - 1);
  };
  const auto cut = [&](const VanHerkLaunch &as, int height) {
    p.tile = make_u8x4_tile(width_of(as), height, size / 2, size / 2, step, as.of_three);
    return cut_u8x4_tiles(p, p.tile);
  };
  VanHerkLaunch launch_as = {};
  TileHeight best;
  int best_blocks = 0;
  for (const VanHerkLaunch &as : choose_kernels(query, words, step)) {
    // The cost of a tile: windows that a thread computes, one after the other, along rows and down columns.
    const auto cost = [&](int height) {
      const int columns = width_of(as) * ((height + size - 1) / size);
      return (height + size - 1 + as.rows_of_round - 1) / as.rows_of_round + (columns + as.threads - 1) / as.threads;
    };
    // Tile heights are multiples of the window's size, except for the largest windows.
    const int step = as.low ? VanHerkTuning::kLowStep : size;
    const TileHeight tile = choose_tile_height(
        step, step, std::max(VanHerkTuning::kMostRows, step), as.blocks,
        [&](int height) { return bytes_of(as, height); }, [&](int height) { return cut(as, height); }, cost);
    if (!tile.height) continue;
    // If two kernels take equally long, the one with fewer blocks for each multiprocessor wins.
    const int multiprocessors = current_limits().multiprocessors;
    const int blocks = (static_cast<int>(cut(as, tile.height)) + multiprocessors - 1) / multiprocessors;
    if (tile.time > best.time || (tile.time == best.time && blocks >= best_blocks)) continue;
    best = tile;
    best_blocks = blocks;
    launch_as = as;
  }
  if (!best.height) return {};
  return {launch_as.kernel, cut(launch_as, best.height), launch_as.threads, bytes_of(launch_as, best.height)};
}

}  // namespace

int takes_van_herk(const PassQuery &query) {
  return takes<VanHerkParams>(query, choose);
}

void launch_van_herk(const PassRun &run) {
  launch_chosen<VanHerkParams>(run, choose);
}

}  // namespace cudaconv
