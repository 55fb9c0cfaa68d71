// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The last step of a mask, from sums to samples, in the units that suit a backend. Every faster form of Rounding is
// derived from this.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/rounding.h"

namespace cudaconv {

// The range of a sum of coefficients times samples.
struct SumRange {
  int64_t low = 0, high = 0;
  void add(int64_t coefficient, int64_t largest_sample) {
    (coefficient < 0 ? low : high) += coefficient * largest_sample;
  }
  double magnitude() const { return static_cast<double>(high - low); }
};
SumRange range_of(const std::vector<int32_t> &coefficients, int64_t largest_sample);

bool all_within(const std::vector<int32_t> &values, int64_t low, int64_t high);

// An epilogue in 16 bits without sign. With t = start + sum, the sample is v / divisor, rounded down, of
//
//   v = min(absolute ? |t - zero| + half : max(t - low, 0), limit)
struct Epilogue16 {
  uint16_t start = 0, zero = 0, half = 0, low = 0, limit = 0;
  bool absolute = false;
};

// A sample is clamp(floor((sum + offset [absolute value] + half) / divisor), 0, max), as in Rounding. But the divisor
// may be odd, and without an absolute value `offset` includes half, and `half` is 0.
//
// Sums with another unit have another epilogue. Example, a mean of 3x3: the plan has coefficients of 2 and a divisor of
// 18, so `offset` is 9; reduced, the coefficients are 1, the divisor is 9 and `offset` is 4.
struct MaskEpilogue {
  int64_t offset, half, divisor;
  int32_t max;
  bool absolute;

  // `negative`: whether sums may be negative.
  explicit MaskEpilogue(const Rounding &rounding, bool negative = true);

  // Halves the coefficients and the divisor, which stays at least `least`, while that changes no sample:
  //   floor((2s + c) / 2d) = floor((s + floor(c / 2)) / d)
  void reduce(std::vector<int32_t> &coefficients, int64_t least = 1);
  // Doubles them while the divisor is below `wanted` and coefficients stay within -most - 1 to most.
  void extend(std::vector<int32_t> &coefficients, int64_t wanted, int32_t most);

  bool is_power() const { return (divisor & (divisor - 1)) == 0; }
  // Whether a sample is (sum + offset) >> log2(divisor), clamped.
  bool shifts() const { return !absolute && is_power(); }
  int64_t limit() const { return (int64_t{max} + 1) * divisor - 1; }  // of useful dividends
  // ceil(2^power / divisor)
  int64_t reciprocal(int power) const { return ceil_div(int64_t{1} << power, divisor); }

  // The largest dividend of the sums in a range.
  int64_t largest(SumRange range) const;
  // Whether 16 bits hold everything from the sums in a range to the dividend; if so, fills in *result.
  bool fit_16_bits(SumRange range, Epilogue16 *result) const;
};

}  // namespace cudaconv
