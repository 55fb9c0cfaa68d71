// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The weights of differences in bilaterals, as kernels of any layout take them.
#pragma once

#include <algorithm>

#include "plan/bilateral.h"
#include "plan/plan.h"

namespace cudaconv {

constexpr int kMaxMaskValues = 31 * 31;  // the weights of distances, and the values of other masks

// The tables of Op::Bilateral, at most two: for two depths, or for colours and alpha.
struct RangeParams {
  struct Table {
    int32_t max;                 // the largest sample of the depth that it is for
    int32_t shift, first, last;  // of `entry`, see range_weight()
  } table[2];
  uint32_t entry[2 * kMostRangeEntries];

  // If the tables are for two depths.
  CUDACONV_HOST_DEVICE const Table &of_max(int max) const { return table[table[0].max != max]; }
  CUDACONV_HOST_DEVICE uint32_t weight(const Table &t, int difference) const {
    return range_weight(entry + t.first, t.shift, t.last, difference < 0 ? -difference : difference);
  }
};

inline void fill_range(const Pass &pass, RangeParams &range) {
  int tables = 0, first = 0;
  for (const RangeTable &table : pass.bilateral->range) {
    const int entries = static_cast<int>(table.entry.size());
    range.table[tables++] = {(1 << table.depth) - 1, table.shift, first, table.last()};
    std::copy(table.entry.begin(), table.entry.end(), range.entry + first);
    first += entries;
  }
}

}  // namespace cudaconv
