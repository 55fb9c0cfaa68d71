// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for separable masks.
#include <algorithm>

#include "cuda/device/mma/launch_tiles.h"
#include "cuda/separable/separable.cuh"

namespace cudaconv {

using namespace separable;

namespace {

template <int kRadius, Samples kSamples, bool kFewChannels>
MmaLaunch<SeparableMmaParams> launch_of() {
  using Shape = SeparableShape<kRadius, kSamples>;
  using Strip = SeparableStrip<Shape, kFewChannels>;
  using Tuning = SeparableTuning;
  return {strip_mma_kernel<Shape, kFewChannels>,
          kStripThreads,
          [](int, int tile_height) { return strip_bytes<Shape>(tile_height); },
          true,
          kStripThreads / 2,
          Strip::kWide ? Tuning::kLeastWideRows : Tuning::kLeastRows,
          Strip::kWide ? 0 : Tuning::kMostRows,
          Strip::kMinBlocks,
          Strip::kWide ? Shape::kRadius + Tuning::kMoreWideRows : 2 * Shape::kRadius + Tuning::kMoreRows};
}

template <Samples kSamples, bool kFewChannels>
KernelLaunch<SeparableMmaParams> launch_for(int radius, SeparableMmaParams &p) {
  return cut_frame(radius == 8    ? launch_of<8, kSamples, kFewChannels>()
                   : radius == 16 ? launch_of<16, kSamples, kFewChannels>()
                                  : launch_of<32, kSamples, kFewChannels>(),
                   sample_bytes(kSamples), p);
}

KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, SeparableMmaParams &p) {
  if (!query.kernels.mma) return {};
  DenseMmaParams dense = {};
  const MmaKind kind = plan_mma(query.plan, query.pass(), p, dense);
  if (kind.shape != MmaShape::Separable) return {};
  const auto few = std::count_if(p.part, p.part + p.parts, [](const PartParams &part) { return part.channels <= 2; });
  if (few > 0 && few < p.parts) return {};
  if (kind.samples == Samples::U8 && few > 0) return launch_for<Samples::U8, true>(kind.radius, p);
  return for_samples(kind.samples, [&](auto samples) { return launch_for<samples.value, false>(kind.radius, p); });
}

}  // namespace

Prepared prepare_separable(const PassQuery &query) {
  return prepare_chosen<SeparableMmaParams>(query, choose);
}

}  // namespace cudaconv
