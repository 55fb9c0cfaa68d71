// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The regions of a frame that are filtered, as the element finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cudaconv {

// A rectangle in pixels of the frame, or the ellipse inscribed in it; clipped at the frame's edges.
struct Region {
  int x = 0, y = 0, width = 0, height = 0;
  double rotation = 0;  // radians, clockwise on the screen, about the centre

  bool operator==(const Region &o) const {
    return x == o.x && y == o.y && width == o.width && height == o.height && rotation == o.rotation;
  }
};

// Some pixels of a rectangle. `member` is scaled to the rectangle. A pixel is a member if its centre is on a sample
// other than 0.
struct RegionMask {
  Region box;                   // not rotated
  int width = 0, height = 0;    // samples
  std::vector<uint8_t> member;  // width * height, row by row

  bool operator==(const RegionMask &o) const {
    return box == o.box && width == o.width && height == o.height && member == o.member;
  }
};

// Pixels of a row: `begin` up to `end` - 1.
struct PixelRun {
  int32_t begin, end;
};

// A region given by its pixels, for example a polygon. Row top + i of the frame has the runs first[i] ... first[i + 1]
// - 1, in rising order, with gaps between them.
struct RegionPixels {
  Region box;  // the rectangle that the region was drawn in, which may be larger than the pixels need
  int top = 0;
  std::vector<size_t> first = {0};
  std::vector<PixelRun> run;

  int64_t bottom() const { return top + static_cast<int64_t>(first.size()) - 1; }
};

// The pixels of a frame that are filtered; the others are copied from the input.
struct Regions {
  bool active = false;   // false: all are filtered
  bool ellipse = false;  // each `region` is the ellipse inscribed in the rectangle
  bool invert = false;   // filter the pixels in no region
  // How far results fade into the original around the regions, in 256ths of a pixel, see plan/feather.h. 0 with
  // `invert`.
  int feather = 0;
  std::vector<Region> region;
  std::vector<RegionMask> mask;
  std::vector<std::shared_ptr<const RegionPixels>> pixels;  // the same objects from frame to frame
  // The buffer may hold a single field, or every second column: its row y is row first_row + y * row_step of the frame,
  // in which coordinates of regions count, and its column x is column first_column + x * column_step. Steps are 1 or 2.
  int first_row = 0, row_step = 1;
  int first_column = 0, column_step = 1;

  bool operator==(const Regions &o) const {
    return active == o.active && ellipse == o.ellipse && invert == o.invert && feather == o.feather &&
           region == o.region && mask == o.mask && pixels == o.pixels && first_row == o.first_row &&
           row_step == o.row_step && first_column == o.first_column && column_step == o.column_step;
  }
};

}  // namespace cudaconv
