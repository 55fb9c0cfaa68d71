// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels of squares.
#include "squares.cuh"

#include "quads.h"
#include "squares.h"

namespace cudaconv {

namespace {

template <typename Shape>
void enqueue_shape(const PassRun &run, DenseTensorParams &p) {
  const auto cut = [&](int rows) {
    p.tile_height = rows;
    return cut_tiles(p, [&](const PartParams &part) {
      const int width = square_tile_width(part.channels);
      return TileCount{(part.width + width - 1) / width, (part.height + rows - 1) / rows};
    });
  };
  // Windows reach rows more, and a block prepares.
  constexpr int kLeast = 8, kStep = 4, kMoreRows = 4 * Shape::kSteps + 8;
  const int rows = choose_strip_height(kLeast, kStep, kSquareBlocks, kMoreRows, cut);
  const unsigned tiles = cut(rows);
  enqueue("squares", square_kernel<Shape>, dim3(tiles), dim3(kSquareThreads), Shape::shared_bytes(rows), run.stream, p);
}

}  // namespace

bool enqueue_squares(const PassRun &run, DenseTensorParams p) {
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++)
    if (p.border == Border::Wrap && !p.part[i].whole_lanes) return false;
  if (p.height <= 12 && p.radius_x <= 6)
    enqueue_shape<SquareShape<14, 4>>(run, p);
  else
    enqueue_shape<SquareShape<18, 5>>(run, p);
  return true;
}

}  // namespace cudaconv
