// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the methods that the user can select, which also carry out every pass that no faster structure takes.
#include "cuda/methods/methods.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/method_launchers.h"

namespace cudaconv {

using namespace methods;

namespace {

// The kernel with which a method carries out a pass, and how to launch it.
struct Launch {
  void (*kernel)(LaunchParams) = nullptr;
  int tile_width = 0, tile_height = 0;  // size of a tile in pixels
  size_t shared_bytes = 0;
  int side = 1;  // see LaunchParams
};

Launch choose_launch(Method method, const Pass &pass) {
  switch (pass.is_pointwise() ? Method::Constant : method) {
    case Method::Global:
      return {direct_kernel<true>, kBlockWidth, kBlockHeight};
    case Method::Constant:
      return {direct_kernel<false>, kBlockWidth, kBlockHeight};
    case Method::Blocked: {
      const int side = pass.width() == 3 && pass.height() == 3 ? 4 : 2;
      return {direct_kernel<false>, side * kBlockWidth, side * kBlockHeight, 0, side};
    }
    case Method::Cascade:
      return {tile_kernel<Cascade>, kTileWidth, kTileHeight, Cascade::kBytes};
    case Method::Separable:
      if (Separable::bytes(pass.radius_x, pass.radius_y) <= current_limits().block_bytes)
        return {tile_kernel<Separable>, kTileWidth, Separable::kHeight, Separable::bytes(pass.radius_x, pass.radius_y)};
      break;
    default:
      if (method != Method::TiledCached && tile_bytes(pass.radius_x, pass.radius_y) <= current_limits().block_bytes)
        return {tile_kernel<Tiled>, kTileWidth, kTileHeight, tile_bytes(pass.radius_x, pass.radius_y)};
  }
  // A halo that does not fit a block's shared memory is read through the cache.
  return {tile_kernel<TiledCached>, kTileWidth, kTileHeight, tile_bytes(0, 0)};
}

void fill_element(const Pass &pass, MaskParams &m) {
  for (int j = 0; j < m.height; j++) {
    int first = 0, end = 0;
    uint32_t members = 0;
    for (int i = 0; i < m.width; i++) {
      if (!pass.has_member(i - m.radius_x, j - m.radius_y)) continue;
      if (!end) first = i;
      end = i + 1;
      members |= 1u << i % 32;
    }
    m.value[2 * j] = first | (end - first) << 16;
    m.value[2 * j + 1] = static_cast<int32_t>(members);
  }
}

void fill_mask(const Pass &pass, Method method, MaskParams &m) {
  m = {};
  m.op = pass.op;
  m.factored = method == Method::Separable || pass.mask[0].value.empty();
  m.width = pass.width();
  m.height = pass.height();
  m.radius_x = pass.radius_x;
  m.radius_y = pass.radius_y;
  m.flip = pass.op == Op::Minimum ? 0xffff : 0;
  if (pass.op == Op::Minimum || pass.op == Op::Maximum) return fill_element(pass, m);
  int32_t *out = m.value;
  for (const IntegerMask &mask : pass.mask) {
    if (m.factored) {
      m.row_shift |= mask.row_shift;
      out = std::copy(mask.row.begin(), mask.row.end(), out);
      out = std::copy(mask.column.begin(), mask.column.end(), out);
    } else {
      out = std::copy(mask.value.begin(), mask.value.end(), out);
    }
  }
  if (pass.op == Op::Bilateral) fill_range(pass, m.range);
}

// A pointwise pass over frames that auto brings to dense planes.
void launch_pointwise(const PassRun &run) {
  PointwiseParams p = {};
  fill_frame(run, p);
  const ChannelLayout &sample = run.plan.layout.plane[0].channel[0];
  p.op = run.pass().op;
  p.threshold = static_cast<uint32_t>(p.rounding[0].threshold) << sample.shift;
  p.threshold *= run.plan.layout.plane[0].container == Container::U8 ? 0x01010101u : 0x10001u;
  const unsigned blocks = cut_tiles(p, TileCorners::Anywhere, [](const PartParams &part) {
    const int row_bytes = part.width * part.channels * (part.container == Container::U8 ? 1 : 2);
    return TileSize{kBlockWidth * kVectorBytes, row_bytes, kBlockHeight};
  });
  const KernelLaunch<PointwiseParams> launch = {pointwise_kernel, blocks, dim3(kBlockWidth, kBlockHeight), 0};
  enqueue(named(run, "pointwise"), launch, p);
  if (run.pass().keep_x || run.pass().keep_y) launch_restore(run);
}

}  // namespace

// auto takes `separable` for masks that separate, because it saves the more work the larger the mask is, and `tiled`
// for others, because it reads memory once.
Method resolve_method(const Plan &plan, const Pass &pass) {
  if (plan.method != Method::Auto) return plan.method;
  if (pass.op == Op::Mosaic || pass.reads_alpha() || pass.reads_colours() || pass.op == Op::Blur)
    return Method::Constant;
  return pass.separable() ? Method::Separable : Method::Tiled;
}

size_t method_bytes(const Plan &plan, const Pass &pass) {
  return plan.method == Method::Global ? std::max(coarse_bytes(plan, pass), sizeof(MaskParams))
                                       : coarse_bytes(plan, pass);
}

void launch_method(const PassRun &run) {
  if (run.pass().is_pointwise() && run.plan.method == Method::Auto && run.plan.layout.uniform_dense())
    return launch_pointwise(run);
  if (run.pass().op == Op::Mosaic) return launch_mosaic_samples(run);
  if (run.pass().op == Op::Blur) return launch_blur_samples(run);
  if (run.pass().reads_alpha()) return launch_weighted_samples(run);
  if (run.pass().reads_colours()) return launch_bilateral_pixels(run);
  const Method method = resolve_method(run.plan, run.pass());
  const Launch launch_as = choose_launch(method, run.pass());
  LaunchParams p = {};
  fill_frame(run, p);
  fill_mask(run.pass(), method, p.mask);
  p.side = launch_as.side;
  const unsigned blocks = cut_tiles(p, launch_as.tile_width, launch_as.tile_height);
  p.stored_mask = static_cast<MaskParams *>(run.buffers.scratch);
  if (launch_as.kernel == direct_kernel<true>)
    enqueue("store_mask", store_mask_kernel, 1, kBlockThreads, 0, *run.launches, p);
  const KernelLaunch<LaunchParams> launch = {launch_as.kernel, blocks, dim3(kBlockWidth, kBlockHeight),
                                             launch_as.shared_bytes};
  enqueue(named(run, method_nick(method)), launch, p);
}

void launch_restore(const PassRun &run) {
  RestoreParams p = {};
  fill_frame(run, p);
  count_kept(p);
  enqueue("restore", restore_kernel, static_cast<unsigned>(pieces_of(p.pixels, kBlockThreads)), kBlockThreads, 0,
          *run.launches, p);
}

const void *any_method() {
  return reinterpret_cast<const void *>(direct_kernel<false>);
}

}  // namespace cudaconv
