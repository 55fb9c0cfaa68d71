// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for means.
#include "box.cuh"

#include <algorithm>

#include "quads.h"

namespace cudaconv {

namespace {

struct BoxLaunch {
  void (*kernel)(BoxParams);
  int width, groups, rows_at_once;
};

template <typename Shape>
BoxLaunch box_launch() {
  return {box_kernel<Shape>, Shape::kWidth, Shape::kGroups, Shape::kWarps * Shape::kRowsAtOnce};
}

// Long runs cost less where windows are large, short ones take less shared memory.
BoxLaunch choose_box(int width) {
  return width <= 31 ? box_launch<BoxShape<8, 15>>() : box_launch<BoxShape<4, 31>>();
}

bool is_box(const Pass &pass) {
  if (pass.op != Op::Linear || pass.wide || pass.has_gain()) return false;
  const IntegerMask &mask = pass.mask[0];
  const auto same = [](const std::vector<int32_t> &line) {
    return std::all_of(line.begin(), line.end(), [&](int32_t v) { return v == line[0]; });
  };
  return mask.separable() && !mask.row_shift && pass.width() <= 127 && pass.height() <= 127 &&
         pass.copy_source == pass.source && same(mask.row) && same(mask.column);
}

}  // namespace

int launch_box(const PassRun &run) {
  const Pass &pass = run.pass();
  if (!is_box(pass) || !in_quads(run, pass)) return 0;
  const BoxLaunch launch_as = choose_box(pass.width());
  BoxParams p = {};
  fill_frame(run, p);
  p.width = pass.width();
  p.height = pass.height();
  p.factor = pass.mask[0].row[0] * pass.mask[0].column[0];
  const Rounding &rounding = p.rounding[0];
  const int64_t start = rounding.offset + rounding.half;
  p.plain = !rounding.absolute && p.factor > 0 && start >= 0 &&
            start + int64_t{255} * p.factor * p.width * p.height <= rounding.limit;
  p.start = static_cast<uint32_t>(start);

  const auto words = [&](int height) {
    return static_cast<size_t>(launch_as.rows_at_once) * p.stage_pitch +
           2 * static_cast<size_t>(launch_as.width) * (height + p.height - 1);
  };
  const size_t room = shared_memory_of_block();
  p.tile = make_quad_tile(launch_as.width, 64, p.width / 2, p.height / 2);
  p.stage_pitch = p.tile.chunks * kChunk;
  while (p.stage_pitch % (2 * launch_as.groups) != launch_as.groups) p.stage_pitch++;
  // Two blocks of a multiprocessor, of which one loads while the other computes, or else one of as many rows as fit.
  const auto height_in = [&](size_t bytes) {
    int height = 64;
    while (height > 0 && sizeof(uint32_t) * words(height) > bytes) height -= 8;
    return height;
  };
  int height = height_in(room / 2 - 1024);
  if (height < 24) height = height_in(room);
  unsigned blocks;
  do {
    if (height < 8) return 0;
    p.tile = make_quad_tile(launch_as.width, height, p.width / 2, p.height / 2);
    blocks = cut_quad_tiles(p, p.tile);
    height -= 8;
  } while (blocks < kEnoughBlocks && height >= 16);
  enqueue_quads("box", launch_as.kernel, blocks, sizeof(uint32_t) * words(p.tile.height), run.stream, p);
  return 1;
}

}  // namespace cudaconv
