// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <utility>
#include <vector>

#include "filter.h"
#include "plan/area.h"
#include "plan/region_rows.h"

namespace cudaconv {

// The pixels of a part that are in later regions of a list. Where regions overlap, the later region wins.
class CoveredRows {
 public:
  explicit CoveredRows(int height) : rows_(height) {}

  // Adds the pixels of `rows`. Pixels that were not covered before are also added to `uncovered`.
  void add(const RegionRows &rows, Area *uncovered) {
    for (int y = 0; y < static_cast<int>(rows_.size()); y++) {
      std::vector<PixelRun> all;
      const auto row = rows.row(y);
      Line before{rows_[y], 0, rows_[y].size()};
      Line added{rows.runs(), row.begin, row.end};
      for (int x = 0, from = 0; (x = std::min(before.next(), added.next())) != INT_MAX; from = x) {
        if (added.inside && !before.inside) uncovered->add({from, y, x, y + 1});
        const bool was_inside = before.inside || added.inside;
        before.pass(x);
        added.pass(x);
        if ((before.inside || added.inside) == was_inside) continue;
        if (!was_inside) all.push_back({x, x});
        all.back().end = x;
      }
      rows_[y] = std::move(all);
    }
  }

 private:
  // Walks along runs, from each begin or end to the next.
  struct Line {
    const std::vector<PixelRun> &runs;
    size_t at, end;
    bool inside = false;

    int next() const { return at == end ? INT_MAX : inside ? runs[at].end : runs[at].begin; }
    void pass(int x) {
      if (next() != x) return;
      at += inside;
      inside = !inside;
    }
  };

  std::vector<std::vector<PixelRun>> rows_;  // disjoint runs in rising order
};

}  // namespace cudaconv
