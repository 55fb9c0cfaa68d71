// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for means.
#include "cuda/box/box.cuh"

#include <algorithm>
#include <cmath>

#include "cuda/device/u8x4_tile.h"

namespace cudaconv {

namespace {

// Tiles are for windows of up to this width, where frames are so small that strips are lower than that: these take some
// time to begin.
constexpr int kMostTileWidth = 15, kLeastStripHeight = 32;

template <bool kWide>
int enqueue_tiles(const PassRun &run, BoxParams &p) {
  using Shape = BoxShape<kWide>;
  const auto bytes = [&](int height) { return sizeof(uint32_t) * Shape::kPitch * (height + p.height - 1); };
  const auto blocks = [&](int height) {
    p.tile = make_u8x4_tile(Shape::kWidth, height, p.width / 2, p.height / 2);
    return cut_u8x4_tiles(p, p.tile);
  };
  // Rows to sum, and results; the first ones of columns cost more.
  const auto cost = [&](int height) {
    const int round = Shape::kRowsOfRound;
    return (height + p.height - 1 + round - 1) / round * round + height + p.height / 2;
  };
  const int height = choose_tile_height(2, 2, 96, Shape::kMinBlocks, bytes, blocks, cost).height;
  if (!height) return 0;
  enqueue("box", box_kernel<Shape>, dim3(blocks(height)), dim3(Shape::kThreads), bytes(height), run.stream, p);
  return 1;
}

// None where tiles do better.
int enqueue_strips(const PassRun &run, BoxParams &p) {
  p.pitch = 0;
  for (int i = 0; i < p.parts; i++) p.pitch = std::max(p.pitch, box_row_bytes(p.part[i].channels, p.width));
  const size_t bytes = box_shared_bytes(p.height, p.pitch);
  const DeviceLimits device = current_limits();
  if (bytes > device.block_bytes) return 0;
  const auto blocks = [&](int height) {
    p.tile = make_u8x4_tile(box_strip_width(p.width), height, 0, 0);
    return cut_u8x4_tiles(p, p.tile);
  };
  const int at_once = std::clamp<int>(device.multiprocessor_bytes / (bytes + kReservedBytes), 1, kBoxMinBlocks);
  const int best = choose_strip_height(kBoxWarps, kBoxWarps, at_once, p.height / 2 + kBoxWarps, blocks);
  if (p.width <= kMostTileWidth && best < kLeastStripHeight) return 0;
  enqueue("box", box_strip_kernel, dim3(blocks(best)), dim3(kBoxThreads), bytes, run.stream, p);
  return 1;
}

// The least float not below 1 / divisor.
float reciprocal_above(int divisor) {
  const float nearest = 1.0f / static_cast<float>(divisor);
  return static_cast<double>(nearest) * divisor < 1 ? std::nextafter(nearest, 1.0f) : nearest;
}

bool is_box(const Pass &pass) {
  if (pass.op != Op::Linear || pass.wide || pass.has_gain()) return false;
  return pass.mask[0].uniform() && pass.width() <= 127 && pass.height() <= 127 && pass.copy_source == pass.source;
}

}  // namespace

int launch_box(const PassRun &run) {
  const Pass &pass = run.pass();
  if (!is_box(pass) || !is_uniform_dense(run)) return 0;
  BoxParams p = {};
  fill_frame(run, p);
  p.width = pass.width();
  p.height = pass.height();
  p.factor = pass.mask[0].row[0] * pass.mask[0].column[0];
  const Rounding &rounding = p.rounding[0];
  const int64_t start = rounding.offset + rounding.half, divisor = 2 * rounding.half;
  const int64_t samples = int64_t{p.width} * p.height;
  p.unclamped = !rounding.absolute && p.factor > 0 && divisor % p.factor == 0 && divisor / p.factor < 1 << 15 &&
                start >= 0 && start + 255 * samples * p.factor <= rounding.limit;
  int64_t most = 255 * samples;
  if (p.unclamped) {
    // floor((factor * sum + start) / divisor), divided by the factor above and below.
    p.start = static_cast<uint32_t>(start / p.factor);
    p.reciprocal = reciprocal_above(static_cast<int>(divisor / p.factor));
    most += p.start;
  }
  if (const int passes = enqueue_strips(run, p)) return passes;
  if (p.width > kMostTileWidth) return 0;
  // Tiles take pixels of three bytes apart and put them together, which costs more than matrix instructions do.
  const FrameLayout &layout = run.plan.layout;
  if (std::any_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels == 3; }))
    if (const int passes = launch_mma(run)) return passes;
  return most > 0xffff ? enqueue_tiles<true>(run, p) : enqueue_tiles<false>(run, p);
}

}  // namespace cudaconv
