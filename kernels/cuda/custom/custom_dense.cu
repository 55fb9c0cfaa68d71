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

template <int kRadius, Weights kWeights, Samples kSamples>
MmaLaunch<DenseMmaParams> dense_launch() {
  using Shape = DenseShape<kRadius, kWeights, kSamples>;
  constexpr int kRows = Shape::kThreads / 32 * Shape::kRows;  // rows that a block's warps process at once
  return {dense_mma_kernel<Shape>,
          Shape::kThreads,
          Shape::shared_bytes,
          kMmaTileWidth,
          kSamples == Samples::U16x4 ? DenseTuning::kLeastU16x4Rows : kRows,
          DenseTuning::kMostRows,
          Shape::kMinBlocks,
          DenseTuning::kMoreRows,
          false,
          true};
}

template <int kRadius, Samples kSamples>
MmaLaunch<DenseMmaParams> dense_launch(Weights weights) {
  if constexpr (has_dense(kRadius, Weights::S8, kSamples))
    if (weights == Weights::S8) return dense_launch<kRadius, Weights::S8, kSamples>();
  if constexpr (has_dense(kRadius, Weights::S16, kSamples))
    if (weights == Weights::S16) return dense_launch<kRadius, Weights::S16, kSamples>();
  if constexpr (has_dense(kRadius, Weights::S24, kSamples))
    if (weights == Weights::S24) return dense_launch<kRadius, Weights::S24, kSamples>();
  return {};
}

template <Samples kSamples>
MmaLaunch<DenseMmaParams> dense_launch(MmaKind kind) {
  return kind.radius == 8 ? dense_launch<8, kSamples>(kind.weights) : dense_launch<16, kSamples>(kind.weights);
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

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in.
KernelLaunch<DenseMmaParams> choose(const PassQuery &query, DenseMmaParams &p) {
  if (!query.kernels.mma) return {};
  SeparableMmaParams separable = {};
  const MmaKind kind = plan_mma(query.plan, query.pass(), separable, p);
  if (kind.shape != MmaShape::Dense) return {};
  return for_samples(kind.samples, [&](auto samples) {
    constexpr Samples kSamples = decltype(samples)::value;
    const MmaLaunch<DenseMmaParams> tiles = dense_launch<kSamples>(kind);
    KernelLaunch<DenseMmaParams> launch_as = cut_frame(tiles, sample_bytes(kSamples), p.height, p);
    choose_low_tiles(tiles.resident, launch_as, p);
    return launch_as;
  });
}

}  // namespace

Prepared prepare_custom_dense(const PassQuery &query) {
  return prepare_chosen<DenseMmaParams>(query, choose);
}

const void *any_mma() {
  return reinterpret_cast<const void *>(dense_mma_kernel<DenseShape<16, Weights::S8, Samples::U8>>);
}

}  // namespace cudaconv
