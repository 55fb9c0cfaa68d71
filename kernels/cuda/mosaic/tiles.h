// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Cuts the boxes of a mosaic into tiles: blocks side by side, which one thread block processes together.
//
// Example, a box of 1920x1080 of GRAY8 in blocks of 8x8, 32 threads side by side: these load 512 bytes, so a tile is 64
// blocks of a row. 240 blocks of a row are 4 tiles, and the box has 4 * 135 = 540, numbered row by row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/mosaic.h"

namespace cudaconv {

constexpr int kMosaicThreads = 256;

struct MosaicTiledBox : MosaicBox {
  int32_t first_tile, tiles_x;  // tiles are numbered row by row
};

// The tiles of a part.
struct MosaicTiles {
  MosaicAxis x, y;
  MosaicTiledBox box;        // the first box
  int32_t first_box, boxes;  // if there are several: their place in the list for all parts
  int32_t tiles, blocks;     // number of tiles, and the most blocks of a row in each
  // log2 of the threads side by side, with 16 bytes each; in filter_samples(), of the threads for each block.
  int32_t log_threads;
  // Tall tiles are cut into slices of `slice_rows` rows, one for each thread block. The sums of slice s of tile t begin
  // at element first_sum + (t * slices + s) * blocks * channels of the scratch memory.
  int32_t slices, slice_rows, first_sum;

  // How many sums the slices have. Where any part has slices, tiles of the others count as one each.
  int64_t sums(int channels) const { return int64_t{tiles} * slices * blocks * channels; }
};

// Whether the kernels of dense planes can do such frames: all planes are dense, and all samples have the same form.
bool has_mosaic_tiles(const Plan &plan);

inline bool has_slices(const std::vector<MosaicTiles> &tiles) {
  return std::any_of(tiles.begin(), tiles.end(), [](const MosaicTiles &t) { return t.slices > 1; });
}

// Bytes of device memory that the sums of a pass's slices take at most.
size_t mosaic_sum_bytes(const Plan &plan, const Pass &pass);

// The tiles by part, in the order of `parts`. If any has slices, the sums fit in mosaic_sum_bytes(). Appends the boxes
// of parts that have several to `boxes`.
std::vector<MosaicTiles> cut_mosaic(const std::vector<MosaicPart> &parts, const Plan &plan,
                                    std::vector<MosaicTiledBox> *boxes);

}  // namespace cudaconv
