// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for separable masks.
#include <algorithm>

#include "cuda/device/mma/launch_strips.h"
#include "cuda/separable/separable.cuh"

namespace cudaconv {

using namespace separable;

namespace {

template <int kRadius, Samples kSamples, bool kFewChannels>
KernelLaunch<SeparableMmaParams> launch_of(SeparableMmaParams &p) {
  using Shape = SeparableShape<kRadius, kSamples>;
  using Strip = SeparableStrip<Shape, kFewChannels>;
  using Tuning = SeparableTuning;
  const StripHeights heights =
      Strip::kWide ? StripHeights{Tuning::kLeastWideRows, 0, kRadius + Tuning::kMoreWideRows}
                   : StripHeights{Tuning::kLeastRows, Tuning::kMostRows, 2 * kRadius + Tuning::kMoreRows};
  return cut_strips<Shape>(strip_mma_kernel<Shape, kFewChannels>, Strip::kMinBlocks, heights, p);
}

template <Samples kSamples, bool kFewChannels>
KernelLaunch<SeparableMmaParams> launch_for(int radius, SeparableMmaParams &p) {
  return radius == 8    ? launch_of<8, kSamples, kFewChannels>(p)
         : radius == 16 ? launch_of<16, kSamples, kFewChannels>(p)
                        : launch_of<32, kSamples, kFewChannels>(p);
}

KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, SeparableMmaParams &p) {
  if (!query.kernels.mma) return {};
  const MmaKind kind = plan_separable(query.plan, query.pass(), p);
  if (!kind.radius) return {};
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
