// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for separable masks.
#include <algorithm>

#include "cuda/device/mma/launch_tiles.h"
#include "cuda/separable/separable.cuh"

namespace cudaconv {

using namespace separable;

namespace {

// Which variant of a kernel: for unsharp masks or not, and for few channels or many.
struct SeparableVariant {
  bool sharpens;
  bool few_channels;  // for planes of one or two channels, else for three or four
};

template <int kRadius, Weights kWeights, Samples kSamples, bool kSharpens = false>
MmaLaunch<SeparableMmaParams> strip_launch(SeparableVariant variant) {
  using Shape = SeparableShape<kRadius, kWeights, kSamples, kSharpens>;
  const auto launch = [](auto few_channels) -> MmaLaunch<SeparableMmaParams> {
    constexpr bool kFewChannels = decltype(few_channels)::value;
    using Strip = SeparableStrip<Shape, kFewChannels>;
    using Tuning = SeparableTuning;
    return {strip_mma_kernel<Shape, kFewChannels>,
            kStripThreads,
            Strip::shared_bytes,
            kStripThreads / 2,
            Strip::kWide ? Tuning::kLeastWideRows : Tuning::kLeastRows,
            Strip::kWide ? 0 : Tuning::kMostRows,
            Strip::kMinBlocks,
            Strip::kWide ? kRadius + Tuning::kMoreWideRows : 2 * kRadius + Tuning::kMoreRows,
            true};
  };
  if constexpr (kSamples == Samples::U8 && !kSharpens)
    if (variant.few_channels) return launch(std::true_type());
  return launch(std::false_type());
}

template <int kRadius, Samples kSamples>
MmaLaunch<SeparableMmaParams> separable_launch(Weights weights, SeparableVariant variant) {
  if constexpr (has_sharpening(kRadius, kSamples))
    if (variant.sharpens) return strip_launch<kRadius, Weights::U16RoundedRows, kSamples, true>(variant);
  if constexpr (has_separable(kRadius, Weights::S8, kSamples))
    if (weights == Weights::S8) return strip_launch<kRadius, Weights::S8, kSamples>(variant);
  if constexpr (has_separable(kRadius, Weights::S16, kSamples))
    if (weights == Weights::S16) return strip_launch<kRadius, Weights::S16, kSamples>(variant);
  if constexpr (has_separable(kRadius, Weights::U24, kSamples))
    if (weights == Weights::U24) return strip_launch<kRadius, Weights::U24, kSamples>(variant);
  if constexpr (has_separable(kRadius, Weights::U16RoundedRows, kSamples))
    if (weights == Weights::U16RoundedRows) return strip_launch<kRadius, Weights::U16RoundedRows, kSamples>(variant);
  return {};
}

template <Samples kSamples>
MmaLaunch<SeparableMmaParams> separable_launch(MmaKind kind, SeparableVariant variant) {
  switch (kind.radius) {
    case 8:
      return separable_launch<8, kSamples>(kind.weights, variant);
    case 16:
      return separable_launch<16, kSamples>(kind.weights, variant);
    default:
      return separable_launch<32, kSamples>(kind.weights, variant);
  }
}

template <Samples kSamples>
KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, const MmaKind &kind, SeparableMmaParams &p) {
  const FrameLayout &layout = query.plan.layout;
  const auto few_channels =
      std::count_if(layout.plane, layout.plane + layout.planes, [](const PlaneLayout &p) { return p.channels <= 2; });
  if (few_channels > 0 && few_channels < layout.planes) return {};
  const SeparableVariant variant = {p.epilogue.mode == SumRounding::Sharpen, few_channels > 0};
  return cut_frame(separable_launch<kSamples>(kind, variant), sample_bytes(kSamples), 0, p);
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
