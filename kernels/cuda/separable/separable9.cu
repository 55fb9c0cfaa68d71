// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels on 8-bit pixels as they lie in memory.
#include "cuda/separable/separable9.cuh"

#include <algorithm>
#include <vector>

#include "cuda/cuda_resources.h"
#include "cuda/frame_launch.cuh"
#include "cuda/launchers.h"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace separable;

namespace {

struct Separable9Launch {
  void (*kernel)(SeparableMmaParams) = nullptr;
  size_t (*shared_bytes)(int tile_height) = nullptr;
  int resident = 0;  // blocks of a multiprocessor
};

template <Weights kWeights, bool kShiftOnly>
Separable9Launch separable9_launch() {
  return {separable9_kernel<kWeights, kShiftOnly>, separable9_bytes<kWeights>, separable9_blocks(kWeights, kShiftOnly)};
}

Separable9Launch choose_kernel(Weights weights, const SeparableMmaParams &p) {
  const bool shifts = p.epilogue.mode == SumRounding::Shift;
  if (weights == Weights::U16RoundedRows && shifts) return separable9_launch<Weights::U16RoundedRows, true>();
  if (weights != Weights::S8) return {};
  return shifts && p.row_start == 0 ? separable9_launch<Weights::S8, true>() : separable9_launch<Weights::S8, false>();
}

// Chooses the launch, without a kernel if the pass is not for this structure. The frame has been filled in.
KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, SeparableMmaParams &p) {
  const Pass &pass = query.pass();
  const int radius = pass.radius_x;
  if (!query.kernels.mma || pass.op != Op::Linear || std::max(radius, pass.radius_y) > kSeparable9Radius) return {};
  DenseMmaParams dense = {};
  const MmaKind kind = plan_mma(query.plan, pass, p, dense);
  if (kind.shape != MmaShape::Separable || kind.samples != Samples::U8 || p.epilogue.mode == SumRounding::Sharpen)
    return {};
  // Column coefficients are stored as two signed bytes: 256 * 127 + 127 is the largest.
  constexpr int kMost = 127 * 257;
  const std::vector<int32_t> &column = pass.mask[0].column;
  if (std::any_of(column.begin(), column.end(), [](int32_t c) { return c > kMost; })) return {};
  const Separable9Launch launch_as = choose_kernel(kind.weights, p);
  if (!launch_as.kernel) return {};

  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // Reflect101 needs radius + 1 pixels within the 16 bytes at an edge.
    if (!part.row_is_multiple_of_16 || (p.border == Border::Reflect101 && (radius + 1) * part.channels > kVectorBytes))
      return {};
  }
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      return TileSize{kSeparable9Warps * kWarpResults, part.width * part.channels, rows};
    });
  };
  using Tuning = Separable9Tuning;
  const int rows =
      choose_tile_height(8, Tuning::kLeastRows, Tuning::kMostRows, launch_as.resident, launch_as.shared_bytes, cut,
                         [](int rows) { return static_cast<uint64_t>(rows + Tuning::kMoreRows); })
          .height;
  if (!rows) return {};
  return {launch_as.kernel, cut(rows), kSeparable9Threads, launch_as.shared_bytes(rows)};
}

}  // namespace

Prepared prepare_separable9(const PassQuery &query) {
  return prepare_chosen<SeparableMmaParams>(query, choose);
}

}  // namespace cudaconv
