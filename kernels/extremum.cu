// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for dilations and erosions.
#include "extremum.cuh"

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

// The sizes that are asked for most have kernels of their own.
template <bool kLeast>
ExtremumLaunch choose_extremum(int size) {
  if (size == 9) return extremum_launch<ExtremumShape<9, true, 8, 4, kLeast>>();
  if (size == 15) return extremum_launch<ExtremumShape<15, true, 8, 4, kLeast>>();
  if (size == 31) return extremum_launch<ExtremumShape<31, true, 4, 3, kLeast>>();
  if (size < 15) return extremum_launch<ExtremumShape<15, false, 8, 4, kLeast>>();
  if (size < 31) return extremum_launch<ExtremumShape<31, false, 4, 3, kLeast>>();
  if (size <= 63) return extremum_launch<ExtremumShape<63, false, 2, 2, kLeast>>();
  return extremum_launch<ExtremumShape<127, false, 1, 1, kLeast>>();
}

}  // namespace

int launch_extremum(const PassRun &run) {
  const Pass &pass = run.pass();
  const int size = pass.width();
  if (!in_quads(run, pass) || (pass.op != Op::Minimum && pass.op != Op::Maximum) || !pass.element.empty() ||
      size != pass.height() || size < 3 || size > 127 || pass.copy_source != pass.source)
    return 0;
  const ExtremumLaunch launch_as = pass.op == Op::Minimum ? choose_extremum<true>(size) : choose_extremum<false>(size);
  ExtremumParams p = {};
  fill_frame(run, p);
  p.size = size;
  const int width = launch_as.groups * size / kChunk * kChunk;
  const auto bytes = [&](int height) { return sizeof(uint32_t) * launch_as.pitch * (height + size - 1); };
  const auto blocks = [&](int height) {
    p.tile = make_quad_tile(width, height, size / 2, size / 2);
    return cut_quad_tiles(p, p.tile);
  };
  // Windows that a thread does, one after the other: along rows and down columns.
  const auto cost = [&](int height) {
    const int columns = width * ((height + size - 1) / size);
    return (height + size - 1 + launch_as.rows_of_round - 1) / launch_as.rows_of_round +
           (columns + launch_as.threads - 1) / launch_as.threads;
  };
  // Whole windows of rows, but where windows are very high.
  const int step = launch_as.low ? 8 : size;
  const int height = choose_tile_height(step, std::max(96, step), launch_as.blocks, bytes, blocks, cost);
  if (!height) return 0;
  enqueue("extremum", launch_as.kernel, dim3(blocks(height)), dim3(launch_as.threads), bytes(height), run.stream, p);
  return 1;
}

}  // namespace cudaconv
