// SPDX-License-Identifier: LGPL-2.1-or-later
#include "packed.h"

#include <algorithm>

namespace cudaconv {

namespace {

constexpr int64_t kLaneMax = 0xffff;

uint32_t both_lanes(int64_t v) {
  return static_cast<uint32_t>(v) * 0x00010001u;
}

// Extremes of a sum of coefficients times 8-bit samples.
struct Range {
  int64_t low = 0, high = 0;
  void add(int64_t coefficient) { (coefficient < 0 ? low : high) += 255 * coefficient; }
};

bool all_dense_8bit(const Plan &plan) {
  return std::all_of(plan.layout.plane, plan.layout.plane + plan.layout.planes, [](const PlaneLayout &p) {
    return p.container == Container::U8 && p.dense() && p.channel[0].depth == 8;
  });
}

// How a sum in `range` becomes a sample; false where 16 bits do not hold it on the way.
bool make_finish(const Rounding &rounding, Range range, PackedParams &k, int64_t *start) {
  const int64_t offset = rounding.offset, half = rounding.half, divisor = 2 * half;
  if (rounding.wide || divisor > 256) return false;
  int64_t largest;  // what is divided
  if (rounding.absolute) {
    *start = std::max<int64_t>({-range.low, offset, 0});
    const int64_t zero = *start - offset;
    if (zero > kLaneMax) return false;
    k.zero = both_lanes(zero);
    k.half = both_lanes(half);
    largest = std::max(range.high + offset, -(range.low + offset)) + half;
  } else {
    *start = std::max<int64_t>({-range.low, offset + half, 0});
    k.low = both_lanes(*start - offset - half);
    largest = range.high + offset + half;
  }
  if (*start + range.high > kLaneMax || *start - offset - half > kLaneMax || largest > kLaneMax) return false;
  k.absolute = rounding.absolute;
  k.limit = both_lanes(std::min(rounding.limit, kLaneMax));
  const bool clamps = k.low || largest > rounding.limit;
  if ((divisor & (divisor - 1)) == 0) {
    while (int64_t{1} << k.shift < divisor) k.shift++;
    k.finish = rounding.absolute ? Finish::AbsoluteShift : clamps ? Finish::ClampShift : Finish::Shift;
  } else {
    // Exact for every dividend up to 256 * divisor, since the reciprocal is less than 1 too large in units of 2^-24.
    k.magic = static_cast<uint32_t>(((int64_t{1} << 24) + divisor - 1) / divisor);
    k.finish = rounding.absolute || clamps ? Finish::Any : Finish::Divide;
  }
  return true;
}

Sliding linear(const Pass &pass, PackedParams &k) {
  const IntegerMask &mask = pass.mask[0];
  const int size = pass.width();
  if (pass.wide || pass.has_gain() || mask.row_shift || size != pass.height() || mask.value.empty())
    return Sliding::None;
  Range range;
  for (int32_t c : mask.value) range.add(c);
  int64_t start;
  if (!make_finish(pass.rounding[0][0], range, k, &start)) return Sliding::None;

  const auto symmetric = [](const std::vector<int32_t> &line) {
    return std::equal(line.begin(), line.end(), line.rbegin());
  };
  if (mask.separable() && (size == 3 || ((size == 5 || size == 7) && symmetric(mask.row)))) {
    Range column;
    int64_t row_sum = 0;
    for (int i = 0; i < size; i++) {
      column.add(mask.column[i]);
      row_sum += mask.row[i];
      k.column[i] = static_cast<uint32_t>(mask.column[i]);
      k.row[i] = static_cast<uint32_t>(mask.row[i]);
    }
    if (column.high - column.low > kLaneMax) return Sliding::None;
    // Lanes are taken apart between column and row: there each holds its sum above the lowest.
    k.column_init = both_lanes(-column.low);
    k.init = both_lanes(start + column.low * row_sum);
    return size == 3 ? Sliding::Separable3 : size == 5 ? Sliding::Separable5 : Sliding::Separable7;
  }
  if (size == 3 || size == 5) {
    for (int j = 0; j < size; j++)
      for (int i = 0; i < size; i++) {
        const int32_t c = mask.value[j * size + i];
        if (size == 5 && c && std::abs(i - 2) + std::abs(j - 2) > 2) return Sliding::None;
        k.dense[j * size + i] = static_cast<uint32_t>(c);
      }
    k.init = both_lanes(start);
    return size == 3 ? Sliding::Dense3 : Sliding::Diamond5;
  }
  return Sliding::None;
}

// A mask of [-1 0 1] and a smoothing [a b a], and its transpose, or roberts; with nothing to round but the root.
Sliding gradient(const Pass &pass, PackedParams &k) {
  const Rounding &rounding = pass.rounding[0][0];
  if (pass.has_gain() || pass.width() != 3 || pass.norm == Norm::L2Fraction || rounding.offset || rounding.half != 1)
    return Sliding::None;
  k.euclidean = pass.norm == Norm::L2;
  const std::vector<int32_t> &x = pass.mask[0].value, &y = pass.mask[1].value;
  // The plan has doubled the masks to have a half to add.
  if (x == std::vector<int32_t>{0, 0, 0, 0, 2, 0, 0, 0, -2} && y == std::vector<int32_t>{0, 0, 0, 0, 0, 2, 0, -2, 0})
    return Sliding::Roberts3;
  const int32_t a = x[2] / 2, b = x[5] / 2;
  const std::vector<int32_t> expected = {-2 * a, 0, 2 * a, -2 * b, 0, 2 * b, -2 * a, 0, 2 * a};
  if (x != expected || a < 1 || b < 0 || 2 * a + b > 16) return Sliding::None;
  for (int j = 0; j < 3; j++)
    for (int i = 0; i < 3; i++)
      if (y[j * 3 + i] != x[i * 3 + j]) return Sliding::None;
  k.column[0] = static_cast<uint32_t>(a);
  k.column[1] = static_cast<uint32_t>(b);
  k.zero = both_lanes(256 * (2 * a + b));  // differences are kept above 256
  return Sliding::Gradient3;
}

Sliding compass(const Pass &pass, PackedParams &k) {
  if (pass.has_gain()) return Sliding::None;
  // No response is below 0, since the largest of the eight sums of three is no less than their mean.
  const int64_t gain = pass.mask[0].value[0];
  int64_t start;
  if (!make_finish(pass.rounding[0][0], {0, gain / 8 * 15 * 255}, k, &start) || k.magic || k.absolute)
    return Sliding::None;
  k.init = both_lanes(start);
  k.dense[0] = static_cast<uint32_t>(gain);
  k.dense[1] = static_cast<uint32_t>(pass.mask[0].value[1]);
  return Sliding::Kirsch3;
}

}  // namespace

Sliding make_packed(const Plan &plan, const Pass &pass, PackedParams &k) {
  k = {};
  if (!all_dense_8bit(plan) || pass.keep_x || pass.keep_y || pass.copy_source != pass.source) return Sliding::None;
  switch (pass.op) {
    case Op::Linear:
      return linear(pass, k);
    case Op::Magnitude:
      return gradient(pass, k);
    case Op::Compass:
      return compass(pass, k);
    case Op::Median:
      return pass.width() == 3 ? Sliding::Median3 : Sliding::None;
    case Op::Minimum:
    case Op::Maximum: {
      if (!pass.element.empty() || pass.width() != pass.height()) return Sliding::None;
      k.flip = pass.op == Op::Minimum ? 0xffffffffu : 0;
      if (pass.width() == 3) return Sliding::Extremum3;
      if (pass.width() == 5) return Sliding::Extremum5;
      if (pass.width() == 7) return Sliding::Extremum7;
      return Sliding::None;
    }
    default:
      return Sliding::None;
  }
}

}  // namespace cudaconv
