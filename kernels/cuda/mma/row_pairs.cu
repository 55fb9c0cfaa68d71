// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels that work on pairs of rows.
#include "cuda/mma/row_pairs.cuh"

#include <algorithm>

#include "cuda/cuda_resources.h"
#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

namespace {

template <int kPairs, Samples kSamples>
KernelLaunch<RowPairMmaParams> launch_of(RowPairMmaParams &p) {
  using Shape = RowPairShape<kPairs, kSamples>;
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      return TileSize{row_pair_tile_width<kSamples>(part), part.width, rows};
    });
  };
  using Tuning = RowPairTuning;
  const int best = choose_tile_height(
                       2, Tuning::kLeastRows, Tuning::kMostRows, Shape::kMinBlocks, [](int) { return 0; }, cut,
                       [](int rows) { return uint64_t{rows + 2u * kPairs + Tuning::kMoreRows}; })
                       .height;
  return {row_pair_kernel<Shape>, cut(best), kRowPairThreads, Shape::shared_bytes(best)};
}

template <int kPairs>
KernelLaunch<RowPairMmaParams> launch_of(Samples samples, RowPairMmaParams &p) {
  if (samples == Samples::U8) return launch_of<kPairs, Samples::U8>(p);
  if (samples == Samples::U16) return launch_of<kPairs, Samples::U16>(p);
  // For six or seven rows, the kernels of dense.cuh, which process rows by fours, are faster on large frames.
  if constexpr (kPairs == 4)
    return {};
  else
    return launch_of<kPairs, Samples::U16x4>(p);
}

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in.
KernelLaunch<RowPairMmaParams> choose(const PassQuery &query, RowPairMmaParams &p) {
  if (!query.kernels.mma) return {};
  SeparableMmaParams separable = {};
  DenseMmaParams dense = {};
  const MmaKind kind = plan_mma(query.plan, query.pass(), separable, dense, &p);
  if (!kind.row_pairs) return {};
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // With Wrap, words are copied from the other end of a row. They have to be whole words there, too, and the 16-byte
    // copies of the row must not overwrite them.
    if (p.border == Border::Wrap && (!part.row_is_multiple_of_16 || part.width < kRowPairRadius)) return {};
  }
  if (p.height <= 5) return launch_of<3>(kind.samples, p);
  if (p.height <= 7) return launch_of<4>(kind.samples, p);
  return launch_of<5>(kind.samples, p);
}

}  // namespace

int takes_row_pairs(const PassQuery &query) {
  return takes<RowPairMmaParams>(query, choose);
}

void launch_row_pairs(const PassRun &run) {
  launch_chosen<RowPairMmaParams>(run, choose);
}

}  // namespace cudaconv
