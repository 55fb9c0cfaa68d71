// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which pixels regions select, and the soft edges around them, by definition: each pixel looks at all pixels of
// regions. Shares are the shares of the original, in 256ths: 0 in regions, 256 where a pixel stays as it is.
#pragma once

#include <functional>
#include <vector>

#include "filter.h"
#include "imageview.h"
#include "plan/regions.h"

namespace cudaconv::reference {

struct FeatherGrid {
  int columns, rows;   // pixels of the frame, or of a field
  int step_x, step_y;  // distances between neighbours, in pixels of the frame that regions count in
  double feather;      // pixels
};

// The share in each pixel, row by row.
std::vector<int> original_shares(const FeatherGrid &grid, const std::function<bool(int x, int y)> &in_region);

// A sample that has this share of the original.
int mixed(int filtered, int original, int share);

// The shares in the samples of a plane or of a field: the least of their pixels. The frame has `columns` x `rows`
// pixels. Uses `regions` when it is called.
using Shares = std::function<int(int x, int y)>;
Shares shares_of(const Regions &regions, int columns, int rows, const PlaneLayout &plane, bool interlaced, int field);
// The same for a whole plane, with the rows of both fields.
Shares shares_of(const Regions &regions, int columns, int rows, const PlaneLayout &plane, bool interlaced);

}  // namespace cudaconv::reference
