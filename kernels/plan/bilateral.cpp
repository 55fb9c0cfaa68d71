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

// Tables end at the largest sum of differences or, if that comes first, at an entry that is 0.
RangeTable make_range(int depth, int components, double sigma_range) {
  const int max = (1 << depth) - 1, largest = components * max;
  const auto r = [&](double difference) { return weight(difference * difference, sigma_range * max); };
  int end = largest;  // the first difference that weighs 0, or the largest
  for (int step = largest / 2; step > 0; step /= 2)
    while (end > step && r(end - step) == 0) end -= step;
  RangeTable table;
  table.depth = depth;
  table.components = components;
  while (end >> table.shift >= kMostRangeEntries - 1) table.shift++;
  for (int i = 0; i <= largest >> table.shift && (i == 0 || table.entry.back() & 0xffff); i++) {
    const uint32_t here = r(std::ldexp(i, table.shift)), next = r(std::ldexp(i + 1, table.shift));
    table.entry.push_back(here | (here - next) << 16);
  }
  return table;
}

BilateralTables make_tables(const FrameLayout &layout, double sigma_range) {
  BilateralTables tables;
  int colours = 0;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      if (layout.plane[p].channel[c].role == Role::Luma && colours < kColours) tables.colour[colours++] = {p, c};
  tables.is_rgb = colours == kColours;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) {
      const int depth = layout.plane[p].channel[c].depth, components = tables.is_colour(p, c) ? kColours : 1;
      size_t i = 0;
      while (i < tables.range.size() && (tables.range[i].depth != depth || tables.range[i].components != components))
        i++;
      if (i == tables.range.size()) tables.range.push_back(make_range(depth, components, sigma_range));
      tables.table[p][c] = static_cast<uint8_t>(i);
    }
  return tables;
}

}  // namespace

bool BilateralTables::is_colour(int plane, int channel) const {
  return is_rgb && std::any_of(colour, colour + kColours,
                               [&](const Place &place) { return place.plane == plane && place.channel == channel; });
}

bool BilateralTables::has_colours(int plane) const {
  return is_rgb && std::any_of(colour, colour + kColours, [&](const Place &place) { return place.plane == plane; });
}

BilateralTables BilateralTables::spread() const {
  BilateralTables tables = *this;
  for (int c = 0; c < kMaxPlanes; c++) tables.table[c][0] = table[0][c];
  for (Place &place : tables.colour) place = {place.channel, 0};
  return tables;
}

void compile_bilateral(const FilterSettings &s, const FrameLayout &layout, Pass &pass) {
  if (!(s.sigma_range > 0 && s.sigma_range <= 1))
    refuse("sigma-range=" + number_text(s.sigma_range) + " is invalid; use a value above 0, at most 1");
  const BilateralWindow window = bilateral_window(s);
  pass.op = Op::Bilateral;
  pass.weighs_alpha = s.alpha == Alpha::Weighted && alpha_of(layout).plane >= 0;
  const int rx = pass.radius_x = window.size.width / 2, ry = pass.radius_y = window.size.height / 2;
  for (int y = -ry; y <= ry; y++)
    for (int x = -rx; x <= rx; x++) {
      const bool member = !window.ellipse || x * x * ry * ry + y * y * rx * rx <= rx * rx * ry * ry;
      pass.mask[0].value.push_back(member ? static_cast<int32_t>(weight(x * x + y * y, window.sigma)) : 0);
    }
  pass.bilateral = std::make_shared<BilateralTables>(make_tables(layout, s.sigma_range));
}

}  // namespace cudaconv
