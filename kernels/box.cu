// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for means.
#include "box.cuh"

#include <algorithm>
#include <cmath>

#include "quads.h"

namespace cudaconv {

namespace {

struct BoxLaunch {
  void (*kernel)(BoxParams);
  int threads, width, pitch, blocks, rows_of_round;
};

template <typename Shape>
BoxLaunch box_launch() {
  return {box_kernel<Shape>, Shape::kThreads, Shape::kWidth, Shape::kPitch, Shape::kMinBlocks, Shape::kRowsOfRound};
}

// Long runs cost less where windows are large, short ones take fewer registers.
BoxLaunch choose_box(int width, bool wide) {
  if (width <= 31 && !wide) return box_launch<BoxShape<8, 15, false, 3>>();
  if (width <= 15) return box_launch<BoxShape<8, 15, true, 3>>();
  return box_launch<BoxShape<4, 31, true, 2>>();
}

// The least float not below 1 / divisor.
float reciprocal_above(int divisor) {
  const float nearest = 1.0f / static_cast<float>(divisor);
  return static_cast<double>(nearest) * divisor < 1 ? std::nextafter(nearest, 1.0f) : nearest;
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
  if (!is_box(pass) || !in_quads(run)) return 0;
  // Pixels of three bytes are taken apart and put together here, which costs more than matrix instructions do.
  const FrameLayout &layout = run.plan.layout;
  if (std::any_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels == 3; }))
    if (const int passes = launch_tensor(run)) return passes;
  BoxParams p = {};
  fill_frame(run, p);
  p.width = pass.width();
  p.height = pass.height();
  p.factor = pass.mask[0].row[0] * pass.mask[0].column[0];
  const Rounding &rounding = p.rounding[0];
  const int64_t start = rounding.offset + rounding.half, divisor = 2 * rounding.half;
  const int64_t samples = int64_t{p.width} * p.height;
  p.plain = !rounding.absolute && p.factor > 0 && divisor % p.factor == 0 && divisor / p.factor < 1 << 15 &&
            start >= 0 && start + 255 * samples * p.factor <= rounding.limit;
  int64_t most = 255 * samples;
  if (p.plain) {
    // floor((factor * sum + start) / divisor), divided by the factor above and below.
    p.start = static_cast<uint32_t>(start / p.factor);
    p.reciprocal = reciprocal_above(static_cast<int>(divisor / p.factor));
    most += p.start;
  }
  const BoxLaunch launch_as = choose_box(p.width, most > 0xffff);
  const auto bytes = [&](int height) { return sizeof(uint32_t) * launch_as.pitch * (height + p.height - 1); };
  const auto blocks = [&](int height) {
    p.tile = make_quad_tile(launch_as.width, height, p.width / 2, p.height / 2);
    return cut_quad_tiles(p, p.tile);
  };
  // Rows to sum, and results; the first ones of columns cost more.
  const auto cost = [&](int height) {
    const int round = launch_as.rows_of_round;
    return (height + p.height - 1 + round - 1) / round * round + height + p.height / 2;
  };
  const int height = choose_tile_height(2, 2, 96, launch_as.blocks, bytes, blocks, cost).height;
  if (!height) return 0;
  enqueue("box", launch_as.kernel, dim3(blocks(height)), dim3(launch_as.threads), bytes(height), run.stream, p);
  return 1;
}

}  // namespace cudaconv
