// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/bilateral.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "plan/masks.h"
#include "plan/messages.h"
#include "plan/plan.h"
#include "plan/weighted.h"

namespace cudaconv {

namespace {

uint32_t weight(double squared_distance, double sigma) {
  const double twice_square = 2 * sigma * sigma;  // 0 also if sigma is too small
  if (twice_square == 0) return squared_distance == 0 ? kBilateralOne : 0;
  return static_cast<uint32_t>(std::lround(kBilateralOne * std::exp(-squared_distance / twice_square)));
}

// Tables end at the largest difference or, if that comes first, at an entry that is 0.
RangeTable make_range(int depth, double sigma_range) {
  const int max = (1 << depth) - 1;
  const auto r = [&](double difference) { return weight(difference * difference, sigma_range * max); };
  int end = max;  // the first difference that weighs 0, or the largest
  for (int step = max / 2; step > 0; step /= 2)
    while (end > step && r(end - step) == 0) end -= step;
  RangeTable table;
  table.depth = depth;
  while (end >> table.shift >= kMostRangeEntries - 1) table.shift++;
  for (int i = 0; i <= max >> table.shift && (i == 0 || table.entry.back() & 0xffff); i++) {
    const uint32_t here = r(std::ldexp(i, table.shift)), next = r(std::ldexp(i + 1, table.shift));
    table.entry.push_back(here | (here - next) << 16);
  }
  return table;
}

}  // namespace

const RangeTable &BilateralTables::of_depth(int depth) const {
  return *std::find_if(range.begin(), range.end(), [&](const RangeTable &table) { return table.depth == depth; });
}

void compile_bilateral(const FilterSettings &s, const FrameLayout &layout, Pass &pass) {
  if (!(s.sigma_range > 0 && s.sigma_range <= 1))
    refuse("sigma-range=" + number_text(s.sigma_range) + " is invalid; use a value above 0, at most 1");
  const BilateralWindow window = bilateral_window(s);
  pass.op = Op::Bilateral;
  pass.weighs_alpha = s.alpha == Alpha::Weighted && alpha_of(layout).plane >= 0;
  pass.radius_x = pass.radius_y = window.side / 2;
  for (int y = -pass.radius_y; y <= pass.radius_y; y++)
    for (int x = -pass.radius_x; x <= pass.radius_x; x++)
      pass.mask[0].value.push_back(static_cast<int32_t>(weight(x * x + y * y, window.sigma)));
  auto tables = std::make_shared<BilateralTables>();
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) {
      const int depth = layout.plane[p].channel[c].depth;
      const auto same = [&](const RangeTable &table) { return table.depth == depth; };
      if (std::none_of(tables->range.begin(), tables->range.end(), same))
        tables->range.push_back(make_range(depth, s.sigma_range));
    }
  pass.bilateral = std::move(tables);
}

}  // namespace cudaconv
