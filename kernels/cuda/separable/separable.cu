// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels for separable masks.
#include <algorithm>

#include "cuda/frame_launch.cuh"
#include "cuda/separable/separable.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace separable;

namespace {

template <int kRadius, Samples kSamples, bool kFewChannels>
KernelLaunch<SeparableMmaParams> launch_of(SeparableMmaParams &p) {
  using Shape = SeparableShape<kRadius, kSamples>;
  using Strip = SeparableStrip<Shape, kFewChannels>;
  using Tuning = SeparableTuning;
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, TileCorners::Anywhere, [&](const PartParams &part) {
      return TileSize{kStripThreads / 32 * strip_width(part.channels * Shape::kSampleBytes), part.width, rows};
    });
  };
  // A strip takes the time of this many rows more than its own.
  constexpr int kMore = Strip::kWide ? kRadius + Tuning::kMoreWideRows : 2 * kRadius + Tuning::kMoreRows;
  const auto cost = [](int rows) { return static_cast<uint64_t>(rows + kMore); };
  // If a warp has several strips, frames have too few of them for choose_strip_height().
  const int rows = Strip::kWide ? choose_strip_height(Tuning::kLeastWideRows, 8, Strip::kMinBlocks, kMore, cut)
                                : choose_tile_height(8, Tuning::kLeastRows, Tuning::kMostRows, Strip::kMinBlocks,
                                                     strip_bytes<Shape>, cut, cost);
  if (!rows) return {};
  return {strip_mma_kernel<Shape, kFewChannels>, cut(rows), kStripThreads, strip_bytes<Shape>(rows), true};
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
