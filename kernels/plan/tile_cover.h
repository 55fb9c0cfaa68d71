// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Covers the pixels that regions need with tiles.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/area.h"

namespace cudaconv {

// The size of tiles and the grid of their corners, in any units of columns and rows. Corners are at multiples of step_x
// and step_y, which may be less than the size.
struct TileGrid {
  int width, height, step_x, step_y;

  bool operator==(const TileGrid &other) const {
    return width == other.width && height == other.height && step_x == other.step_x && step_y == other.step_y;
  }
};

struct TileCorner {
  int32_t x, y;
};

// Tiles that cover all rectangles, row by row. Every tile holds a part of a rectangle; tiles may overlap.
std::vector<TileCorner> cover_with_tiles(std::vector<PixelRect> rectangles, const TileGrid &grid);

}  // namespace cudaconv
