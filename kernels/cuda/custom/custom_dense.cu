// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for masks that are not separable.
#include "cuda/custom/custom_dense.cuh"

#include <algorithm>

#include "cuda/device/mma/launch_tiles.h"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace custom;

namespace {

template <int kRadius, Samples kSamples>
MmaLaunch<DenseMmaParams> dense_launch(int height, int digits) {
  using Shape = DenseShape<kRadius, kSamples>;
  using Tuning = DenseTuning;
  const auto bytes = [=](int channels, int tile_height) {
    return Shape::shared_bytes(channels, tile_height, height, digits);
  };
  return {dense_mma_kernel<Shape>, Shape::kThreads,  bytes, false, kMmaTileWidth, Tuning::kLeastRows, Tuning::kMostRows,
          Shape::kMinBlocks,       Tuning::kMoreRows};
}

// If the last tiles would leave most of the device idle, cuts the tiles at the bottom in half. This is done for single
// parts only: with several, the tiles at the bottom of a part are not the last ones.
void choose_low_tiles(int resident, KernelLaunch<DenseMmaParams> &launch_as, DenseMmaParams &p) {
  constexpr int kRows = 32;  // half of this is what a block's warps process at once
  const unsigned at_once = tiles_at_once(resident, launch_as.shared_bytes), columns = p.part[0].tiles_x;
  const unsigned last = launch_as.blocks % at_once;
  if (!launch_as.kernel || p.parts > 1 || p.host[0].area || p.tile_height % kRows || launch_as.blocks < at_once ||
      2 * (last + columns) > at_once)
    return;
  p.low_tiles = static_cast<int32_t>(2 * ((last + columns - 1) / columns));
  const int height = p.host[0].tile_height, high = high_tiles(p.part[0].height, height, p.low_tiles);
  const int half = height / 2, low = (std::max(p.part[0].height - high * height, 0) + half - 1) / half;
  launch_as.blocks = static_cast<unsigned>(high + low) * columns;
}

KernelLaunch<DenseMmaParams> choose(const PassQuery &query, DenseMmaParams &p) {
  if (!query.kernels.mma) return {};
  SeparableMmaParams separable = {};
  const MmaKind kind = plan_mma(query.plan, query.pass(), separable, p);
  if (kind.shape != MmaShape::Dense) return {};
  return for_samples(kind.samples, [&](auto samples) {
    constexpr Samples kSamples = decltype(samples)::value;
    MmaLaunch<DenseMmaParams> tiles = dense_launch<16, kSamples>(p.height, p.digits);
    if constexpr (has_narrow_dense(kSamples))
      if (kind.radius == 8) tiles = dense_launch<8, kSamples>(p.height, p.digits);
    KernelLaunch<DenseMmaParams> launch_as = cut_frame(tiles, sample_bytes(kSamples), p);
    choose_low_tiles(tiles.resident, launch_as, p);
    return launch_as;
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
