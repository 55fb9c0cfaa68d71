// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for dilations and erosions.
#include "extremum.cuh"

#include <algorithm>
#include <vector>

#include "quads.h"

namespace cudaconv {

namespace {

struct ExtremumLaunch {
  void (*kernel)(ExtremumParams);
  int groups, pitch, threads, blocks, rows_of_round;
  bool low;
};

template <typename Shape>
ExtremumLaunch extremum_launch() {
  return {extremum_kernel<Shape>, Shape::kGroups,      Shape::kPitch, 32 * Shape::kWarps,
          Shape::kMinBlocks,      Shape::kRowsOfRound, Shape::kLow};
}

// Those for windows of a size, the one for large frames first. The sizes that are asked for most have special kernels,
// see lanes.cuh.
template <bool kLeast, bool kFolded>
std::vector<ExtremumLaunch> choose_bytes(int size, bool special) {
  using Q = ByteQuads;
  if (special) {
    if (size == 9) return {extremum_launch<ExtremumShape<Q, 9, true, 8, 4, kLeast>>()};
    if (size == 15) return {extremum_launch<ExtremumShape<Q, 15, true, 8, 4, kLeast, kFolded>>()};
    if (size == 31)
      return {extremum_launch<ExtremumShape<Q, 31, true, 4, 3, kLeast, kFolded>>(),
              extremum_launch<ExtremumShape<Q, 31, true, 2, 3, kLeast, kFolded>>()};
  }
  if (size <= 15) return {extremum_launch<ExtremumShape<Q, 15, false, 8, 4>>()};
  if (size <= 31) return {extremum_launch<ExtremumShape<Q, 31, false, 4, 3>>()};
  if (size <= 63) return {extremum_launch<ExtremumShape<Q, 63, false, 2, 2>>()};
  return {extremum_launch<ExtremumShape<Q, 127, false, 1, 1>>()};
}

// The same for 16-bit samples, kStep quads a pixel; none for the largest windows.
template <int kStep>
std::vector<ExtremumLaunch> choose_words(int size, bool special) {
  using Q = WordQuads;
  constexpr bool kFolded = kStep == 1;
  if (special) {
    if constexpr (kStep == 2)
      if (size == 7) return {extremum_launch<ExtremumShape<Q, 7, true, 16, 4, false, false, kStep>>()};
    if (size == 9) return {extremum_launch<ExtremumShape<Q, 9, true, 16, 4, false, false, kStep>>()};
    if (size == 15) return {extremum_launch<ExtremumShape<Q, 15, true, 8, 4, false, kFolded, kStep>>()};
    if (size == 31) return {extremum_launch<ExtremumShape<Q, 31, true, 4, 3, false, kFolded, kStep>>()};
  }
  if (size <= 31) return {extremum_launch<ExtremumShape<Q, 31, false, 4, 3, false, false, kStep>>()};
  if (size <= 63) return {extremum_launch<ExtremumShape<Q, 63, false, 2, 2, false, false, kStep>>()};
  return {};
}

std::vector<ExtremumLaunch> choose_extremum(const PassRun &run, bool words, int step) {
  const int size = run.pass().width();
  const bool special = run.kernels.special;
  if (words) return step == 2 ? choose_words<2>(size, special) : choose_words<1>(size, special);
  const FrameLayout &layout = run.plan.layout;
  const bool folds =
      std::all_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels <= 2; });
  if (run.pass().op == Op::Minimum)
    return folds ? choose_bytes<true, true>(size, special) : choose_bytes<true, false>(size, special);
  return folds ? choose_bytes<false, true>(size, special) : choose_bytes<false, false>(size, special);
}

}  // namespace

int launch_extremum(const PassRun &run) {
  const Pass &pass = run.pass();
  const int size = pass.width();
  const bool words = in_quads(run, Container::U16);
  if ((!words && !in_quads(run)) || (pass.op != Op::Minimum && pass.op != Op::Maximum) || !pass.element.empty() ||
      size != pass.height() || size < 3 || size > 127 || pass.copy_source != pass.source)
    return 0;
  ExtremumParams p = {};
  fill_frame(run, p);
  p.size = size;
  p.flip = pass.op == Op::Minimum ? 0xffffffffu : 0;
  const int step = words ? halve_pixels(p) : 1;
  const ChannelLayout &sample = run.plan.layout.plane[0].channel[0];
  p.sample_bits = (((1u << sample.depth) - 1) << sample.shift) * 0x10001u;
  const auto width_of = [&](const ExtremumLaunch &as) { return as.groups * size / kChunk * kChunk; };
  const auto bytes_of = [&](const ExtremumLaunch &as, int height) {
    return sizeof(uint32_t) * as.pitch * (height + size - 1);
  };
  const auto cut = [&](const ExtremumLaunch &as, int height) {
    p.tile = make_quad_tile(width_of(as), height, size / 2, size / 2, step);
    return cut_quad_tiles(p, p.tile);
  };
  ExtremumLaunch launch_as = {};
  TileHeight best;
  for (const ExtremumLaunch &as : choose_extremum(run, words, step)) {
    // Windows that a thread does, one after the other: along rows and down columns.
    const auto cost = [&](int height) {
      const int columns = width_of(as) * ((height + size - 1) / size);
      return (height + size - 1 + as.rows_of_round - 1) / as.rows_of_round + (columns + as.threads - 1) / as.threads;
    };
    // Whole windows of rows, but where windows are very high.
    const int step = as.low ? 8 : size;
    const TileHeight tile = choose_tile_height(
        step, step, std::max(96, step), as.blocks, [&](int height) { return bytes_of(as, height); },
        [&](int height) { return cut(as, height); }, cost);
    if (tile.time >= best.time) continue;
    best = tile;
    launch_as = as;
  }
  if (!best.height) return 0;
  const unsigned blocks = cut(launch_as, best.height);
  enqueue("extremum", launch_as.kernel, dim3(blocks), dim3(launch_as.threads), bytes_of(launch_as, best.height),
          run.stream, p);
  return 1;
}

}  // namespace cudaconv
