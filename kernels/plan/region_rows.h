// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cancellation.h"
#include "plan/plan.h"

namespace cudaconv {

// The pixels of a part of a plane that are filtered where regions are active, as runs along its rows: a pixel costs the
// same however many regions it lies in, and so does a row. n rectangles take O(n + pixels / 64); ellipses, rotated
// rectangles and masks take O(their rows) in addition.
//
// Which pixels belong to a region:
// - A rectangle, rotated or not: every pixel that it touches. A pixel is the square of the frame that it covers.
// - An ellipse: pixels whose centre lies in the ellipse inscribed in all pixels that its rectangle touches; if rotated,
// in the ellipse itself.
// - A mask: pixels that touch a member.
// A region that holds no pixel of the frame, or no row of the field, has no pixels, not even of subsampled planes,
// whose last pixels reach beyond a frame of odd size.
class RegionRows {
 public:
  struct Run {
    int32_t begin, end;  // pixels
  };
  struct Row {
    size_t begin, end;  // in runs()
    bool operator==(const Row &other) const { return begin == other.begin && end == other.end; }
  };

  // The rows are left unfinished if `cancellation` says that submit() is to give up.
  RegionRows(const Regions &regions, const Plan &plan, const Plan::Part &part, const Cancellation &cancellation);

  // The runs of a row are in rising order and do not touch. Rows of equal runs may share them.
  const std::vector<Run> &runs() const { return runs_; }
  Row row(int y) const { return rows_[y]; }
  int rows() const { return static_cast<int>(rows_.size()); }

 private:
  std::vector<Run> runs_;
  std::vector<Row> rows_;
};

}  // namespace cudaconv
