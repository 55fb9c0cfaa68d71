// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels that compute blocks of 4x4 results.
#include "cuda/custom/custom_blocks.cuh"

#include "cuda/frame_launch.cuh"
#include "cuda/tile_height.h"

namespace cudaconv {

using namespace custom;

namespace {

template <typename Shape>
KernelLaunch<DenseMmaParams> launch_of(DenseMmaParams &p) {
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, TileCorners::Anywhere, [&](const PartParams &part) {
      return TileSize{blocks4x4_tile_width(part.channels), part.width, rows};
    });
  };
  using Tuning = Blocks4x4Tuning;
  const int rows = choose_strip_height(Tuning::kLeastRows, Tuning::kRowsStep, Tuning::kBlocks,
                                       4 * Shape::kSteps + Tuning::kMoreRows, cut);
  return {blocks4x4_kernel<Shape>, cut(rows), kBlocks4x4Threads, Shape::shared_bytes(rows)};
}

KernelLaunch<DenseMmaParams> choose(const PassQuery &query, DenseMmaParams &p) {
  if (!query.kernels.mma || !plan_dense(query.plan, query.pass(), p).blocks4x4) return {};
  for (int i = 0; i < p.parts; i++)
    if (p.border == Border::Wrap && !p.part[i].row_is_multiple_of_16) return {};
  if (p.radius_y <= 3 && p.radius_x <= 6) return launch_of<Blocks4x4Shape<10, 4>>(p);
  if (p.radius_y <= 5 && p.radius_x <= 6) return launch_of<Blocks4x4Shape<14, 4>>(p);
  return launch_of<Blocks4x4Shape<18, 5>>(p);
}

}  // namespace

Prepared prepare_custom_blocks(const PassQuery &query) {
  return prepare_chosen<DenseMmaParams>(query, choose);
}

}  // namespace cudaconv
