// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cancellation.h"
#include "plan/plan.h"

namespace cudaconv {

// The pixels of a part of a plane that regions leave to the filter, as runs along its rows: a pixel costs the same
// however many regions it lies in, and so does a row. n rectangles take O(n + pixels / 64); ellipses, turned rectangles
// and masks O(their rows) as well.
//
// Every pixel that a rectangle touches belongs to it, turned ones too, for which a pixel is the square that it covers
// of the frame. Of an ellipse it is those whose centre lies in the one inscribed in all the pixels that its rectangle
// touches; of a turned one, those whose centre lies in it. To a mask belong the pixels that touch a member. A region
// that holds no pixel of the frame, or no row of the field, touches none, not even of subsampled planes, whose last
// pixels reach beyond a frame of odd size.
class RegionRows {
 public:
  struct Run {
    int32_t begin, end;  // pixels
  };
  struct Row {
    size_t begin, end;  // in runs()
    bool operator==(const Row &other) const { return begin == other.begin && end == other.end; }
  };

  // Left unfinished where submit() is to give up.
  RegionRows(const Regions &regions, const Plan &plan, const Plan::Part &part, const Cancellation &cancellation);

  // Runs of a row rise and do not touch. Rows that are alike may be equal.
  const std::vector<Run> &runs() const { return runs_; }
  Row row(int y) const { return rows_[y]; }
  int rows() const { return static_cast<int>(rows_.size()); }

 private:
  std::vector<Run> runs_;
  std::vector<Row> rows_;
};

}  // namespace cudaconv
