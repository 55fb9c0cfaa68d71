// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launcher of the kernels of squares.
#include "squares.cuh"

#include "cuda_resources.h"
#include "launchers.h"
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
  // The busiest multiprocessor has so many blocks, kSquareBlocks at a time: n of them take (n + 1) / 2 times as long as
  // one, and each the time of so many rows more, which windows reach or in which it prepares.
  constexpr int kLeast = 8, kMost = 512, kMoreRows = 4 * Shape::kSteps + 8;
  const unsigned multiprocessors = current_limits().multiprocessors;
  int rows = kLeast;
  uint64_t least = UINT64_MAX;
  for (int height = kLeast; height <= kMost; height += 4) {
    const uint64_t blocks = (cut(height) + multiprocessors - 1) / multiprocessors;
    const uint64_t rounds = (blocks + kSquareBlocks - 1) / kSquareBlocks;
    const uint64_t time = (blocks + rounds) * (height + kMoreRows);
    if (time <= least) {
      least = time;
      rows = height;
    }
    if (blocks == 1) break;
  }
  const unsigned tiles = cut(rows);
  enqueue("squares", square_kernel<Shape>, dim3(tiles), dim3(kSquareThreads), Shape::shared_bytes(rows), run.stream, p);
}

}  // namespace

bool enqueue_squares(const PassRun &run, DenseTensorParams p) {
  fill_frame(run, p);
  for (int i = 0; i < p.parts; i++)
    if (!p.part[i].aligned || (p.border == Border::Wrap && !p.part[i].whole_lanes)) return false;
  if (p.height <= 12 && p.radius_x <= 6)
    enqueue_shape<SquareShape<14, 4>>(run, p);
  else
    enqueue_shape<SquareShape<18, 5>>(run, p);
  return true;
}

}  // namespace cudaconv
