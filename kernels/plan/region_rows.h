// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cancellation.h"
#include "plan/plan.h"

namespace cudaconv {

class RunUnion;

// The samples of a part of a plane that are filtered where regions are active, as runs along its rows: a sample costs
// the same however many regions it lies in, and so does a row.
class RegionRows {
 public:
  struct Row {
    size_t begin, end;  // in runs()
    bool operator==(const Row &other) const { return begin == other.begin && end == other.end; }
  };

  // Appends a row with the runs of `row`, or with what is left of `width` without them.
  void append(RunUnion &row, bool invert, int width);
  void repeat() { rows_.push_back(rows_.back()); }  // appends a row like the last one

  // The runs of a row are in rising order and do not touch. Rows of equal runs may share them.
  const std::vector<PixelRun> &runs() const { return runs_; }
  Row row(int y) const { return rows_[y]; }
  int rows() const { return static_cast<int>(rows_.size()); }

 private:
  std::vector<PixelRun> runs_;
  std::vector<Row> rows_;
};

// The rows of each part of a plan; an empty list if `cancellation` says that submit() is to give up. Parts may share
// them. n rectangles take O(n + pixels / 64); all other regions take O(their rows) in addition.
//
// Which pixels of the frame, or of a field, belong to a region: - A rectangle, rotated or not: every pixel that it
// touches. A pixel is a square of the frame. - An ellipse: pixels whose centre lies in the ellipse inscribed in all
// pixels that its rectangle touches; if rotated, in the ellipse itself. - A mask: pixels whose centre falls on a
// member. A polygon: pixels whose centre lies in it. `invert` selects the pixels that belong to no region. A subsampled
// plane selects each sample that covers a selected pixel, so that chroma shows nothing of a hidden region.
std::vector<std::shared_ptr<const RegionRows>> region_rows(const Regions &regions, const Plan &plan,
                                                           const Cancellation &cancellation);

}  // namespace cudaconv
