// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/epilogue.h"

#include <algorithm>

namespace cudaconv {

static bool even(int64_t v) {
  return v % 2 == 0;
}

SumRange range_of(const std::vector<int32_t> &coefficients, int64_t largest_sample) {
  SumRange range;
  for (int32_t c : coefficients) range.add(c, largest_sample);
  return range;
}

bool all_within(const std::vector<int32_t> &values, int64_t low, int64_t high) {
  return std::all_of(values.begin(), values.end(), [=](int32_t v) { return v >= low && v <= high; });
}

MaskEpilogue::MaskEpilogue(const Rounding &r, bool negative)
    : offset(r.offset),
      half(r.half),
      divisor(2 * r.half),
      max(r.max),
      absolute(r.absolute && (negative || r.offset < 0)) {
  if (absolute) return;
  offset += half;
  half = 0;
}

void MaskEpilogue::reduce(std::vector<int32_t> &coefficients, int64_t least) {
  while (even(divisor) && divisor / 2 >= least && (!absolute || even(offset)) &&
         std::all_of(coefficients.begin(), coefficients.end(), even)) {
    for (int32_t &c : coefficients) c /= 2;
    divisor /= 2;
    offset >>= 1;  // rounds down
    half >>= 1;
  }
}

void MaskEpilogue::extend(std::vector<int32_t> &coefficients, int64_t wanted, int32_t most) {
  while (divisor < wanted && all_within(coefficients, (-most - 1) / 2, most / 2)) {
    for (int32_t &c : coefficients) c *= 2;
    divisor *= 2;
    offset *= 2;
    half *= 2;
  }
}

int64_t MaskEpilogue::largest(SumRange range) const {
  return std::max(range.high + offset, absolute ? -(range.low + offset) : 0) + half;
}

bool MaskEpilogue::fit_16_bits(SumRange range, Epilogue16 *result) const {
  constexpr int64_t kMost = UINT16_MAX;
  const int64_t start = std::max<int64_t>({-range.low, offset, 0}), more = start - offset;
  if (std::max({start + range.high, largest(range), more}) > kMost) return false;
  result->start = static_cast<uint16_t>(start);
  result->half = static_cast<uint16_t>(half);
  result->limit = static_cast<uint16_t>(std::min(limit(), kMost));
  (absolute ? result->zero : result->low) = static_cast<uint16_t>(more);
  result->absolute = absolute;
  return true;
}

}  // namespace cudaconv
