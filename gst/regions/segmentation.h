// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Segmentations, whose samples have values: masks of the regions in them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "regions/shapes.h"

namespace cudaconv::gst {

// The samples of a segmentation, row by row.
struct Segmentation {
  int width = 0, height = 0;
  std::vector<uint16_t> value;
};

// Adds a mask for each value that is wanted, so that each grows and is filtered by its own size. Adds one mask for all
// where there are very many values, or where their extents overlap so much that masks would take far more time than the
// segmentation. `box` is the rectangle that the segmentation covers, in pixels of the picture. `found_of` is called
// once for each value that there is, and returns no labels for one that is not wanted.
using FoundOfValue = std::function<Detected(uint16_t value)>;
void add_masks(const Segmentation &segmentation, const Region &box, const FoundOfValue &found_of, RoiList *list);

}  // namespace cudaconv::gst
