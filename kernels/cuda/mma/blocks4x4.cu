// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels of squares.
#include "cuda/mma/blocks4x4.cuh"

#include "cuda/device/u8x4_tile.h"
#include "cuda/mma/blocks4x4.h"

namespace cudaconv {

namespace {

template <typename Shape>
void enqueue_shape(const PassRun &run, DenseMmaParams &p) {
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      const int width = blocks4x4_tile_width(part.channels);
      return TileCount{(part.width + width - 1) / width, (part.height + rows - 1) / rows};
    });
  };
  // Windows reach rows more, and a block prepares.
  constexpr int kLeast = 8, kStep = 4, kMoreRows = 4 * Shape::kSteps + 8;
  const int rows = choose_strip_height(kLeast, kStep, kBlocks4x4MinBlocks, kMoreRows, cut);
  const unsigned tiles = cut(rows);
  enqueue("squares", blocks4x4_kernel<Shape>, dim3(tiles), dim3(kBlocks4x4Threads), Shape::shared_bytes(rows),
          run.stream, p);
}

}  // namespace

bool enqueue_blocks4x4(const PassRun &run, DenseMmaParams p) {
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++)
    if (p.border == Border::Wrap && !p.part[i].row_is_multiple_of_16) return false;
  if (p.height <= 12 && p.radius_x <= 6)
    enqueue_shape<Blocks4x4Shape<14, 4>>(run, p);
  else
    enqueue_shape<Blocks4x4Shape<18, 5>>(run, p);
  return true;
}

}  // namespace cudaconv
