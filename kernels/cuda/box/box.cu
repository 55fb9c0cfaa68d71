// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for means.
#include "cuda/box/box_strips.cuh"
#include "cuda/box/box_tiles.cuh"

#include <algorithm>

#include "cuda/device/u8x4_tile.h"
#include "cuda/tile_height.h"

namespace cudaconv {

namespace {

template <bool kWide>
KernelLaunch<BoxParams> tile_launch(BoxParams &p) {
  using Shape = BoxShape<kWide>;
  const auto bytes = [&](int height) { return sizeof(uint32_t) * Shape::kPitch * (height + p.height - 1); };
  const auto blocks = [&](int height) {
    p.tile = make_u8x4_tile(Shape::kWidth, height, p.width / 2, p.height / 2);
    return cut_u8x4_tiles(p, p.tile);
  };
  // The cost of a tile: rows to sum, and results; the first windows of columns cost more.
  const auto cost = [&](int height) {
    const int round = Shape::kRowsOfRound;
    return (height + p.height - 1 + round - 1) / round * round + height + p.height / 2;
  };
  const int height =
      choose_tile_height(2, 2, BoxTuning::kMostTileRows, BoxTuning::kTileBlocks, bytes, blocks, cost).height;
  if (!height) return {};
  return {box_kernel<Shape>, blocks(height), Shape::kThreads, bytes(height)};
}

// Chooses tiles; no kernel if windows are too wide.
KernelLaunch<BoxParams> choose_tiles(BoxParams &p) {
  if (p.width > BoxTuning::kMostTileWidth) return {};
  const int64_t most = int64_t{255} * p.width * p.height + (p.unclamped ? p.start : 0);
  return most > 0xffff ? tile_launch<true>(p) : tile_launch<false>(p);
}

// Chooses strips; no kernel if tiles are faster.
KernelLaunch<BoxParams> choose_strips(BoxParams &p) {
  p.pitch = 0;
  for (int i = 0; i < p.parts; i++) p.pitch = std::max(p.pitch, box_row_bytes(p.part[i].channels, p.width));
  const size_t bytes = box_shared_bytes(p.height, p.pitch);
  const DeviceLimits device = current_limits();
  if (bytes > device.block_bytes) return {};
  const auto blocks = [&](int height) {
    p.tile = make_u8x4_tile(box_strip_width(p.width), height, 0, 0);
    return cut_u8x4_tiles(p, p.tile);
  };
  const int at_once =
      std::clamp<int>(device.multiprocessor_bytes / (bytes + kReservedBytes), 1, BoxTuning::kStripBlocks);
  const int best = choose_strip_height(kBoxWarps, kBoxWarps, at_once, p.height / 2 + kBoxWarps, blocks);
  if (!p.host[0].area && p.width <= BoxTuning::kMostTileWidth && best < BoxTuning::kLeastStripHeight) return {};
  return {box_strip_kernel, blocks(best), kBoxThreads, bytes};
}

// Fills in the parameters of the pass; the frame has been filled in. False if the pass is of another kind.
bool fill_box(const PassQuery &query, BoxParams &p) {
  const Pass &pass = query.pass();
  if (pass.op != Op::Linear || pass.wide || pass.has_gain() || !pass.mask[0].uniform() || pass.width() > 127 ||
      pass.height() > 127 || pass.copy_source != pass.source || !is_uniform_dense(query))
    return false;
  p.width = pass.width();
  p.height = pass.height();
  p.factor = pass.mask[0].row[0] * pass.mask[0].column[0];
  plan_box_epilogue(p.rounding[0], p);
  return true;
}

// Tiles have to split and join pixels of three bytes, which costs more than the matrix instructions do. Such frames are
// left to the structures below in the table, and get to launch_box_tiles() only if none of these takes them.
bool has_three_channels(const FrameLayout &layout) {
  return std::any_of(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels == 3; });
}

KernelLaunch<BoxParams> choose(const PassQuery &query, BoxParams &p) {
  if (!fill_box(query, p)) return {};
  const KernelLaunch<BoxParams> strips = choose_strips(p);
  return strips.kernel || has_three_channels(query.plan.layout) ? strips : choose_tiles(p);
}

KernelLaunch<BoxParams> choose_any_tiles(const PassQuery &query, BoxParams &p) {
  return fill_box(query, p) ? choose_tiles(p) : KernelLaunch<BoxParams>();
}

}  // namespace

int takes_box(const PassQuery &query) {
  return takes<BoxParams>(query, choose);
}

void launch_box(const PassRun &run) {
  launch_chosen<BoxParams>(run, choose);
}

int takes_box_tiles(const PassQuery &query) {
  return takes<BoxParams>(query, choose_any_tiles);
}

void launch_box_tiles(const PassRun &run) {
  launch_chosen<BoxParams>(run, choose_any_tiles);
}

}  // namespace cudaconv
