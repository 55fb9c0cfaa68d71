// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the launchers of long masks share.
#pragma once

#include <cstdint>
#include <numeric>

#include "plan/plan.h"

namespace cudaconv::long_masks {

constexpr int kMostLongTaps = 1501;

// The rounded sum of a row whose samples all are `sample`.
inline int64_t row_sum(const IntegerMask &mask, int64_t sample) {
  const int64_t half = mask.row_shift ? int64_t{1} << (mask.row_shift - 1) : 0;
  return (sample * std::accumulate(mask.row.begin(), mask.row.end(), int64_t{0}) + half) >> mask.row_shift;
}

}  // namespace cudaconv::long_masks
