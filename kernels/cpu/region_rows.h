// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cancellation.h"
#include "plan/plan.h"

namespace cudaconv {

// The pixels of a part of a plane that lie in regions, as runs along its rows: a pixel costs the same however many
// regions it lies in, and so does a row. n rectangles take O(n + pixels / 64), ellipses O(their rows) as well.
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

 private:
  std::vector<Run> runs_;
  std::vector<Row> rows_;
};

}  // namespace cudaconv
