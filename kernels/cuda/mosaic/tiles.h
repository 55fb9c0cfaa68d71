// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How the boxes of a mosaic are cut into tiles: blocks side by side, which a block of threads does at once.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/mosaic.h"

namespace cudaconv {

constexpr int kMosaicThreads = 256;

struct MosaicTiledBox : MosaicBox {
  int32_t first_tile, tiles_x;  // its tiles come row by row
};

// The tiles of a part.
struct MosaicTiles {
  MosaicAxis x, y;
  MosaicTiledBox box;        // the first one
  int32_t first_box, boxes;  // in the list of all parts, where there are several
  int32_t tiles, blocks;     // how many there are, and how many blocks of a row each has at most
  int32_t log_threads;       // threads side by side, 16 bytes each; of a block, where those do one each
};

// Whether there are kernels for tiles of words of such frames: samples of a row lie side by side, and all are alike.
bool has_mosaic_tiles(const Plan &plan);

// By part, as `parts` are. Appends the boxes of those that have several.
std::vector<MosaicTiles> cut_mosaic(const std::vector<MosaicPart> &parts, const Plan &plan,
                                    std::vector<MosaicTiledBox> *boxes);

}  // namespace cudaconv
