// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for separable masks.
#include <algorithm>

#include "cuda/device/mma/launch_tiles.h"
#include "cuda/separable/separable.cuh"

namespace cudaconv {

using namespace separable;

namespace {

template <typename Shape, bool kFewChannels>
MmaLaunch<SeparableMmaParams> launch_of() {
  using Strip = SeparableStrip<Shape, kFewChannels>;
  using Tuning = SeparableTuning;
  return {strip_mma_kernel<Shape, kFewChannels>,
          kStripThreads,
          Strip::shared_bytes,
          kStripThreads / 2,
          Strip::kWide ? Tuning::kLeastWideRows : Tuning::kLeastRows,
          Strip::kWide ? 0 : Tuning::kMostRows,
          Strip::kMinBlocks,
          Strip::kWide ? Shape::kRadius + Tuning::kMoreWideRows : 2 * Shape::kRadius + Tuning::kMoreRows,
          true};
}

template <int kRadius, Samples kSamples>
MmaLaunch<SeparableMmaParams> launch_of(bool few_channels) {
  using Shape = SeparableShape<kRadius, kSamples>;
  if constexpr (kSamples == Samples::U8)
    if (few_channels) return launch_of<Shape, true>();
  return launch_of<Shape, false>();
}

template <Samples kSamples>
KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, const MmaKind &kind, SeparableMmaParams &p) {
  const FrameLayout &layout = query.plan.layout;
  const auto few_channels =
      std::count_if(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels <= 2; });
  if (few_channels > 0 && few_channels < layout.planes) return {};
  return cut_frame(kind.radius == 8    ? launch_of<8, kSamples>(few_channels > 0)
                   : kind.radius == 16 ? launch_of<16, kSamples>(few_channels > 0)
                                       : launch_of<32, kSamples>(few_channels > 0),
                   sample_bytes(kSamples), 0, p);
}

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in.
KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, SeparableMmaParams &p) {
  if (!query.kernels.mma) return {};
  DenseMmaParams dense = {};
  const MmaKind kind = plan_mma(query.plan, query.pass(), p, dense);
  if (kind.shape != MmaShape::Separable) return {};
  return for_samples(kind.samples, [&](auto samples) { return choose<decltype(samples)::value>(query, kind, p); });
}

}  // namespace

Prepared prepare_separable(const PassQuery &query) {
  return prepare_chosen<SeparableMmaParams>(query, choose);
}

}  // namespace cudaconv
