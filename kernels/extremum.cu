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
  int groups, words, pitch, threads, blocks, rows_of_round;
  bool low, of_three;

  int words_of(int size) const { return of_three ? words : size; }  // of a group's results
};

template <typename Shape>
ExtremumLaunch extremum_launch() {
  return {extremum_kernel<Shape>, Shape::kGroups,      Shape::kWords, Shape::kPitch,  32 * Shape::kWarps,
          Shape::kMinBlocks,      Shape::kRowsOfRound, Shape::kLow,   Shape::kOfThree};
}

// Those for windows of a size, the one for large frames first. The sizes that are asked for most have special kernels,
// see lanes.cuh.
template <Rows kRows, bool kLeast>
std::vector<ExtremumLaunch> choose_bytes(int size, bool special) {
  using Q = ByteQuads;
  if (special) {
    if (size == 15) return {extremum_launch<ExtremumShape<Q, 15, true, 8, 4, kRows, kLeast>>()};
    if (size == 31)
      return {extremum_launch<ExtremumShape<Q, 31, true, 4, 3, kRows, kLeast>>(),
              extremum_launch<ExtremumShape<Q, 31, true, 2, 3, kRows, kLeast>>()};
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
  constexpr Rows kRows = Rows::Words;
  if (special) {
    if constexpr (kStep == 2)
      if (size == 7) return {extremum_launch<ExtremumShape<Q, 7, true, 16, 4, kRows, false, kStep>>()};
    if (size == 9) return {extremum_launch<ExtremumShape<Q, 9, true, 16, 4, Rows::Quads, false, kStep>>()};
    if (size == 15) return {extremum_launch<ExtremumShape<Q, 15, true, 8, 4, kRows, false, kStep>>()};
    if (size == 31) return {extremum_launch<ExtremumShape<Q, 31, true, 4, 3, kRows, false, kStep>>()};
  }
  if (size <= 31) return {extremum_launch<ExtremumShape<Q, 31, false, 4, 3, Rows::Quads, false, kStep>>()};
  if (size <= 63) return {extremum_launch<ExtremumShape<Q, 63, false, 2, 2, Rows::Quads, false, kStep>>()};
  return {};
}

std::vector<ExtremumLaunch> choose_extremum(const PassRun &run, bool words, int step) {
  const int size = run.pass().width();
  const bool special = run.kernels.special, least = run.pass().op == Op::Minimum;
  if (words) return step == 2 ? choose_words<2>(size, special) : choose_words<1>(size, special);
  const FrameLayout &layout = run.plan.layout;
  const auto planes =
      std::count_if(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels == 3; });
  if (planes == layout.planes)
    return least ? choose_bytes<Rows::WordsOfThree, true>(size, special)
                 : choose_bytes<Rows::WordsOfThree, false>(size, special);
  return least ? choose_bytes<Rows::Words, true>(size, special && !planes)
               : choose_bytes<Rows::Words, false>(size, special && !planes);
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
  ignore_outside(p, pass.op == Op::Minimum);
  const ChannelLayout &sample = run.plan.layout.plane[0].channel[0];
  p.sample_bits = (((1u << sample.depth) - 1) << sample.shift) * 0x10001u;
  const auto width_of = [&](const ExtremumLaunch &as) { return as.groups * as.words_of(size) / kChunk * kChunk; };
  const auto bytes_of = [&](const ExtremumLaunch &as, int height) {
    return sizeof(uint32_t) * as.pitch * (height + size - 1);
  };
  const auto cut = [&](const ExtremumLaunch &as, int height) {
    p.tile = make_quad_tile(width_of(as), height, size / 2, size / 2, step, as.of_three);
    return cut_quad_tiles(p, p.tile);
  };
  ExtremumLaunch launch_as = {};
  TileHeight best;
  int best_blocks = 0;
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
    if (!tile.height) continue;
    // Of two that take as long, the one with fewer blocks for a multiprocessor.
    const int multiprocessors = current_limits().multiprocessors;
    const int blocks = (static_cast<int>(cut(as, tile.height)) + multiprocessors - 1) / multiprocessors;
    if (tile.time > best.time || (tile.time == best.time && blocks >= best_blocks)) continue;
    best = tile;
    best_blocks = blocks;
    launch_as = as;
  }
  if (!best.height) return 0;
  const unsigned blocks = cut(launch_as, best.height);
  enqueue("extremum", launch_as.kernel, dim3(blocks), dim3(launch_as.threads), bytes_of(launch_as, best.height),
          run.stream, p);
  return 1;
}

}  // namespace cudaconv
