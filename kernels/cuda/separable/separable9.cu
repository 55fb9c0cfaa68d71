// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels on 8-bit pixels as they lie in memory.
#include "cuda/separable/separable9.cuh"

#include <algorithm>
#include <cstdint>

#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"
#include "plan/epilogue.h"

namespace cudaconv {

using namespace separable;

namespace {

// Whether the row's and the column's coefficients are from 0 to 127, so that sums along rows have two bytes.
bool has_small_coefficients(const Pass &pass, const SeparableMmaParams &p) {
  constexpr uint32_t kLowBytes = 0x5140;
  return p.row_bytes == kLowBytes && all_within(pass.mask[0].row, 0, 127) && all_within(pass.mask[0].column, 0, 127);
}

KernelLaunch<SeparableMmaParams> choose(const PassQuery &query, SeparableMmaParams &p) {
  const Pass &pass = query.pass();
  const int radius = pass.radius_x;
  if (!query.kernels.mma || std::max(radius, pass.radius_y) > kSeparable9Radius) return {};
  const MmaKind kind = plan_separable(query.plan, pass, p);
  if (!kind.radius || kind.samples != Samples::U8 || p.epilogue.mode == SumRounding::Sharpen) return {};
  // Column coefficients are stored as two signed bytes: 256 * 127 + 127 is the largest.
  constexpr int kMost = 127 * 257;
  if (!all_within(pass.mask[0].column, INT32_MIN, kMost)) return {};
  for (int i = 0; i < p.parts; i++) {
    const PartParams &part = p.part[i];
    // Reflect101 needs radius + 1 pixels within the 16 bytes at an edge.
    if (!part.row_is_multiple_of_16 || (p.border == Border::Reflect101 && (radius + 1) * part.channels > kVectorBytes))
      return {};
  }
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, TileCorners::Anywhere, [&](const PartParams &part) {
      return TileSize{kSeparable9Warps * kWarpResults, part.width * part.channels, rows};
    });
  };
  using Tuning = Separable9Tuning;
  const bool small = has_small_coefficients(pass, p);
  const auto bytes = small ? separable9_bytes<1> : separable9_bytes<2>;
  const auto cost = [](int rows) { return static_cast<uint64_t>(rows + Tuning::kMoreRows); };
  const int rows =
      choose_tile_height(8, Tuning::kLeastRows, Tuning::kMostRows, separable9_blocks(small ? 1 : 2), bytes, cut, cost);
  if (!rows) return {};
  return {small ? separable9_kernel<1> : separable9_kernel<2>, cut(rows), kSeparable9Threads, bytes(rows)};
}

}  // namespace

Prepared prepare_separable9(const PassQuery &query) {
  return prepare_chosen<SeparableMmaParams>(query, choose);
}

}  // namespace cudaconv
