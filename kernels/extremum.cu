// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for dilations and erosions.
#include "extremum.cuh"

#include "cuda_resources.h"
#include "launchers.h"
#include "quads.h"

namespace cudaconv {

namespace {

struct ExtremumLaunch {
  void (*kernel)(ExtremumParams);
  int groups, pitch;
  bool low;
  int rows;  // of results: about the height that tiles are to have
};

template <typename Shape>
ExtremumLaunch extremum_launch(int rows) {
  return {extremum_kernel<Shape>, Shape::kGroups, Shape::kPitch, Shape::kLow, rows};
}

// The sizes that are asked for most have kernels of their own.
ExtremumLaunch choose_extremum(int size) {
  if (size == 9) return extremum_launch<ExtremumShape<9, true, 16, 4>>(63);
  if (size == 15) return extremum_launch<ExtremumShape<15, true, 8, 4>>(60);
  if (size == 31) return extremum_launch<ExtremumShape<31, true, 4, 3>>(62);
  if (size < 15) return extremum_launch<ExtremumShape<15, false, 8, 4>>(60);
  if (size < 31) return extremum_launch<ExtremumShape<31, false, 4, 3>>(62);
  if (size <= 63) return extremum_launch<ExtremumShape<63, false, 2, 2>>(63);
  return extremum_launch<ExtremumShape<127, false, 1, 1>>(64);
}

}  // namespace

int launch_extremum(const PassRun &run) {
  const Pass &pass = run.pass();
  const int size = pass.width();
  if (!in_quads(run, pass) || (pass.op != Op::Minimum && pass.op != Op::Maximum) || !pass.element.empty() ||
      size != pass.height() || size < 3 || size > 127 || pass.copy_source != pass.source)
    return 0;
  const ExtremumLaunch launch_as = choose_extremum(size);
  ExtremumParams p = {};
  fill_frame(run, p);
  p.size = size;
  p.flip = pass.op == Op::Minimum ? 0xffffffffu : 0;
  // Whole windows of rows; fewer in small frames, until there are enough tiles for all multiprocessors.
  const int width = launch_as.groups * size / kChunk * kChunk;
  const auto bytes = [&](int height) { return sizeof(uint32_t) * launch_as.pitch * (height + size - 1); };
  const size_t room = shared_memory_of_block();
  int height = launch_as.low ? launch_as.rows : launch_as.rows / size * size;
  unsigned blocks;
  do {
    if (height < 1) return 0;
    p.tile = make_quad_tile(width, height, size / 2, size / 2);
    blocks = cut_quad_tiles(p, p.tile);
    height -= launch_as.low ? 8 : size;
  } while (bytes(p.tile.height) > room || (blocks < kEnoughBlocks && height >= 24));
  enqueue_quads("extremum", launch_as.kernel, blocks, bytes(p.tile.height), run.stream, p);
  return 1;
}

}  // namespace cudaconv
