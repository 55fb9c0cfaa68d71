// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the methods that the user can select, which also carry out every pass that no faster structure takes.
#include "cuda/methods/methods.cuh"

#include <algorithm>

#include "cuda/cuda_resources.h"
#include "cuda/frame_launch.cuh"

namespace cudaconv {

using namespace methods;

namespace {

// The kernel with which a method carries out a pass, and how to launch it.
struct Launch {
  void (*kernel)(LaunchParams, const MaskParams *) = nullptr;
  int tile_width = 0, tile_height = 0;  // size of a tile in pixels
  size_t shared_bytes = 0;
  bool factored = false;  // MaskParams holds the row and column factors
};

// For operations that work on a window of samples, with every method except separable and cascade.
template <typename Operation>
Launch window_launch(Method method, const Pass &pass) {
  const int side = pass.width() == 3 && pass.height() == 3 ? 4 : 2;
  switch (method) {
    case Method::Global:
      return {global_kernel<Operation>, kBlockWidth, kBlockHeight};
    case Method::Constant:
      return {constant_kernel<Operation>, kBlockWidth, kBlockHeight};
    case Method::TiledCached:
      return {tiled_kernel<Operation, false>, kTileWidth, kTileHeight, tile_bytes(0, 0)};
    case Method::Blocked:
      return {blocked_kernel<Operation>, side * kBlockWidth, side * kBlockHeight};
    default:
      // A halo that does not fit a block's shared memory is read through the cache.
      if (tile_bytes(pass.radius_x, pass.radius_y) > current_limits().block_bytes)
        return window_launch<Operation>(Method::TiledCached, pass);
      return {tiled_kernel<Operation, true>, kTileWidth, kTileHeight, tile_bytes(pass.radius_x, pass.radius_y)};
  }
}

// For operations that work on rows, then on columns.
template <typename Operation>
Launch separable_launch(const Pass &pass) {
  return {separable_kernel<Operation>, kBlockWidth, kSeparableHeight,
          separable_bytes<typename Operation::RowValue>(pass.radius_x, pass.radius_y), true};
}

Launch choose_launch(Method method, const Pass &pass) {
  const bool separable = method == Method::Separable;
  switch (pass.op) {
    case Op::Linear: {
      if (separable)
        return pass.wide ? separable_launch<Factored<int64_t>>(pass) : separable_launch<Factored<int32_t>>(pass);
      if (!pass.mask[0].value.empty())
        return pass.wide ? window_launch<Linear<int64_t>>(method, pass) : window_launch<Linear<int32_t>>(method, pass);
      Launch launch = window_launch<Factored<int64_t>>(method, pass);
      launch.factored = true;
      return launch;
    }
    case Op::Magnitude:
      return separable ? separable_launch<FactoredGradient2D>(pass) : window_launch<Gradient2D>(method, pass);
    case Op::Compass:
      return window_launch<Compass3x3>(method, pass);
    case Op::Minimum:
    case Op::Maximum:
      if (method == Method::Cascade) return {cascade_kernel, kTileWidth, kTileHeight, cascade_bytes()};
      return separable ? separable_launch<Extremum>(pass) : window_launch<Extremum>(method, pass);
    case Op::Median:
      return window_launch<Median>(method, pass);
    case Op::Bilateral:
      return window_launch<Bilateral>(method, pass);
    case Op::Difference:
    case Op::Mosaic:  // launch_method() carries these out
    case Op::Blur:
    case Op::WeightedMean:
      break;
  }
  return {difference_kernel, kBlockWidth, kBlockHeight};
}

// Stores a structuring element: a bit for each pixel of the window or, if these are too many, one run for each row.
// Only named shapes are so large, and their rows are single runs.
void fill_element(const Pass &pass, MaskParams &m) {
  m.has_element = 1;
  m.element_words = (pass.width() + 31) / 32;
  const bool as_runs = m.element_words * pass.height() > kMaxMaskValues;
  if (as_runs) m.element_words = 0;
  for (int j = 0; j < pass.height(); j++)
    for (int i = 0; i < pass.width(); i++) {
      if (!pass.element[static_cast<size_t>(j) * pass.width() + i]) continue;
      if (!as_runs)
        m.value[j * m.element_words + i / 32] |= static_cast<int32_t>(1u << i % 32);
      else
        m.value[j] = m.value[j] ? m.value[j] + (1 << 16) : i | 1 << 16;
    }
}

void fill_mask(const Pass &pass, bool factored, MaskParams &m) {
  m = {};
  m.width = pass.width();
  m.height = pass.height();
  m.radius_x = pass.radius_x;
  m.radius_y = pass.radius_y;
  m.flip = pass.op == Op::Minimum ? 0xffff : 0;
  int32_t *out = m.value;
  for (const IntegerMask &mask : pass.mask) {
    if (factored && mask.separable()) {
      m.row_shift = mask.row_shift;
      out = std::copy(mask.row.begin(), mask.row.end(), out);
      out = std::copy(mask.column.begin(), mask.column.end(), out);
    } else {
      out = std::copy(mask.value.begin(), mask.value.end(), out);
    }
  }
  if (!pass.element.empty()) {
    fill_element(pass, m);
  }
  if (pass.op == Op::Bilateral) fill_range(pass, m.range);
}

}  // namespace

// auto takes `separable` for masks that separate, because it saves the more work the larger the mask is, and `tiled`
// for others, because it reads memory once.
Method resolve_method(const Plan &plan, const Pass &pass) {
  if (plan.method != Method::Auto) return plan.method;
  if (pass.op == Op::Mosaic || pass.reads_alpha() || pass.op == Op::Blur) return Method::Constant;
  return pass.separable() ? Method::Separable : Method::Tiled;
}

std::vector<MaskParams> global_masks(const Plan &plan) {
  std::vector<MaskParams> masks(plan.passes.size());
  for (size_t i = 0; i < masks.size(); i++)
    fill_mask(plan.passes[i], choose_launch(Method::Global, plan.passes[i]).factored, masks[i]);
  return masks;
}

namespace {

// The difference of frames that auto brings to dense planes.
void launch_difference(const PassRun &run) {
  LaunchParams p = {};
  fill_frame(run, p);
  const unsigned blocks = cut_tiles(p, [](const PartParams &part) {
    const int row_bytes = part.width * part.channels * (part.container == Container::U8 ? 1 : 2);
    return TileSize{kBlockWidth * kVectorBytes, row_bytes, kBlockHeight};
  });
  PassRun named = run;
  named.name = "difference";
  const KernelLaunch<LaunchParams, const MaskParams *> launch = {difference_vectors_kernel, blocks,
                                                                 dim3(kBlockWidth, kBlockHeight), 0};
  const MaskParams *const none = nullptr;
  enqueue(named, launch, p, none);
  if (run.pass().keep_x || run.pass().keep_y) launch_restore(run);
}

}  // namespace

void launch_method(const PassRun &run) {
  if (run.pass().op == Op::Difference && run.plan.method == Method::Auto && run.plan.layout.uniform_dense())
    return launch_difference(run);
  if (run.pass().op == Op::Mosaic) return launch_mosaic_samples(run);
  if (run.pass().op == Op::Blur) return launch_blur_samples(run);
  if (run.pass().op == Op::WeightedMean) return launch_weighted_any(run);
  if (run.pass().weighs_alpha) return launch_bilateral_alpha(run);
  const Method method = resolve_method(run.plan, run.pass());
  const Launch launch_as = choose_launch(method, run.pass());
  LaunchParams p = {};
  fill_frame(run, p);
  fill_mask(run.pass(), launch_as.factored, p.mask);
  const unsigned blocks = cut_tiles(p, launch_as.tile_width, launch_as.tile_height);
  const MaskParams *mask = method == Method::Global ? run.masks + run.index : nullptr;
  PassRun named = run;
  named.name = method_nick(method);
  const KernelLaunch<LaunchParams, const MaskParams *> launch = {
      launch_as.kernel, blocks, dim3(kBlockWidth, kBlockHeight), launch_as.shared_bytes};
  enqueue(named, launch, p, mask);
}

void launch_restore(const PassRun &run) {
  RestoreParams p = {};
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++) {
    PartParams &part = p.part[i];
    const int pixel_bytes = part.channels * (part.container == Container::U8 ? 1 : 2);
    const int row_bytes = part.width * pixel_bytes;
    const int columns = (row_bytes + kRestoredWidth - 1) / kRestoredWidth;
    const int rows = (part.height + kRestoredHeight - 1) / kRestoredHeight;
    // Counts the tiles that contain kept pixels at either end of a line of tiles.
    const auto ends = [](int kept, int length, int tile, int tiles, int32_t *first, int32_t *last) {
      *first = std::min((kept + tile - 1) / tile, tiles);
      *last = kept ? std::min(tiles - (length - std::min(kept, length)) / tile, tiles - *first) : 0;
    };
    RestoreParams::Rim &rim = p.rim[i];
    ends(p.keep_y, part.height, kRestoredHeight, rows, &rim.top, &rim.bottom);
    ends(p.keep_x * pixel_bytes, row_bytes, kRestoredWidth, columns, &rim.left, &rim.right);
    rim.between = rows - rim.top - rim.bottom;
    const int between = rim.between * (rim.left + rim.right);
    p.first_block[i] = p.tiles;
    number_columns(part, columns, 1);
    p.tiles += columns * (rim.top + rim.bottom) + (between + columns - 1) / columns * columns;
  }
  const int blocks = std::min(p.tiles, kManyBlocks * current_limits().multiprocessors);
  const auto restore = [p, blocks, stream = run.stream](const uint32_t *) {
    check(launch("restore", restore_kernel, dim3(static_cast<unsigned>(blocks)), dim3(kBlockWidth, kBlockHeight), 0,
                 stream, p),
          "cudaLaunchKernel");
  };
  if (run.deferred)
    run.deferred->add(restore);
  else
    restore(nullptr);
}

const void *any_method() {
  return reinterpret_cast<const void *>(difference_kernel);
}

}  // namespace cudaconv
