// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for masks that are not separable.
#include "cuda/custom/custom_dense.cuh"

#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/method_launchers.h"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace custom;

namespace {

// If the last tiles would leave most of the device idle, cuts the tiles at the bottom in half. This is done for single
// parts only: with several, the tiles at the bottom of a part are not the last ones.
void choose_low_tiles(int resident, KernelLaunch<DenseMmaParams> &launch_as, DenseMmaParams &p) {
  constexpr int kRows = 32;  // half of this is what a block's warps process at once
  const unsigned at_once = tiles_at_once(resident, launch_as.shared_bytes), columns = p.part[0].tiles_x;
  const unsigned last = launch_as.blocks % at_once;
  if (p.parts > 1 || p.host[0].area || p.tile_height % kRows || launch_as.blocks < at_once ||
      2 * (last + columns) > at_once)
    return;
  p.low_tiles = static_cast<int32_t>(2 * ((last + columns - 1) / columns));
  const int height = p.host[0].tile_height, high = high_tiles(p.part[0].height, height, p.low_tiles);
  const int half = height / 2, low = (std::max(p.part[0].height - high * height, 0) + half - 1) / half;
  launch_as.blocks = static_cast<unsigned>(high + low) * columns;
}

template <typename Shape>
KernelLaunch<DenseMmaParams> launch_of(DenseMmaParams &p) {
  using Tuning = DenseTuning;
  const auto bytes = [&](int rows) {
    size_t most = 0;
    for (int i = 0; i < p.parts; i++)
      most = std::max(most, Shape::shared_bytes(p.part[i].channels, rows, p.height, p.digits));
    return most;
  };
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, TileCorners::Anywhere, [&](const PartParams &part) {
      return TileSize{kDenseTileWidth, part.width, rows * Shape::row_groups(part.channels)};
    });
  };
  const auto cost = [](int rows) { return static_cast<uint64_t>(rows + Tuning::kMoreRows); };
  const int rows = choose_tile_height(16, Tuning::kLeastRows, Tuning::kMostRows, Shape::kMinBlocks, bytes, cut, cost);
  if (!rows) return {};
  KernelLaunch<DenseMmaParams> launch_as = {dense_mma_kernel<Shape>, cut(rows), Shape::kThreads, bytes(rows)};
  choose_low_tiles(Shape::kMinBlocks, launch_as, p);
  return launch_as;
}

KernelLaunch<DenseMmaParams> choose(const PassQuery &query, DenseMmaParams &p) {
  if (!query.kernels.mma) return {};
  const MmaKind kind = plan_dense(query.plan, query.pass(), p);
  if (!kind.radius) return {};
  return for_samples(kind.samples, [&](auto samples) {
    constexpr Samples kSamples = decltype(samples)::value;
    if constexpr (has_narrow_dense(kSamples))
      if (kind.radius == 8) return launch_of<DenseShape<8, kSamples>>(p);
    return launch_of<DenseShape<16, kSamples>>(p);
  });
}

}  // namespace

Prepared prepare_custom_dense(const PassQuery &query) {
  return prepare_chosen<DenseMmaParams>(query, choose);
}

const void *any_mma() {
  return reinterpret_cast<const void *>(dense_mma_kernel<DenseShape<16, Samples::U8>>);
}

}  // namespace cudaconv
