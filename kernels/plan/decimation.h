// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A wide Gaussian through a smaller frame: reduce, blur, expand. The cost does not grow with sigma. This file describes
// one axis, in integers; both axes do the same, each with its own blur. kernels/numbers.md has the accuracy.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/border.h"

namespace cudaconv {

// The filters of one axis. There is one coarse sample for D = factor() samples; coarse sample m is at sample m * D.
// Every rounding is to the nearest integer, halves up.
struct Decimation {
  int log_factor = 1;  // log2 of D, at least 1
  int fraction = 0;    // bits of fraction in coarse samples
  // Offset subtracted from coarse samples so that they fit int16. The shift of each step cancels the sum of its
  // weights, so the offset changes no result.
  int32_t offset = 0;

  // Reduction: weights of the 4D-3 samples around m * D in coarse sample m, the convolution of four boxes of D samples.
  // Their sum is D^4.
  std::vector<int32_t> reduce;
  // Blur: weights of 2 * radius() + 1 coarse samples in a result. Each fits a signed 16-bit integer. Their sum is
  // 2^kBlurBits. Samples of more than 8 bits have finer weights, blur + fine / 2^kFineBits, with the same sum. `fine`
  // is from -2^(kFineBits-1) to 2^(kFineBits-1) - 1; it is empty for samples of 8 bits.
  std::vector<int32_t> blur, fine;
  // Expansion, by phase: weights of coarse samples n-1, n, n+1, n+2 in sample n * D + phase. Their sum is D^3.
  std::vector<std::array<int32_t, 4>> expand;

  static constexpr int kBlurBits = 15, kFineBits = 7;

  // `fraction` by the depth of samples. Above 8 bits, the offset leaves room for one more bit.
  static constexpr int fraction_of(int depth) { return (depth > 8 ? 15 : 14) - depth; }
  int factor() const { return 1 << log_factor; }
  int radius() const { return static_cast<int>(blur.size()) / 2; }
  // Distance from a result to the farthest sample that it depends on.
  int reach() const { return (radius() + 2) * factor() + 2 * factor() - 2; }
  // Right shifts of the sums of each step, in the order of the steps. After each, sums have `fraction` bits of fraction
  // again. A negative shift is a left shift.
  int reduce_rows_shift() const { return 4 * log_factor - fraction; }  // 1: sums down columns of samples
  int reduce_columns_shift() const { return 4 * log_factor; }          // 2: sums along rows of the results
  int expand_shift() const { return 3 * log_factor; }                  // 3, after the blur: sums down columns
  // Bits of fraction in the sums of the last step, the expansion along rows. They are not shifted.
  int result_fraction() const { return fraction + 3 * log_factor; }
};

// The coarse samples of a line that are computed. Samples before `first` equal the first computed sample; samples after
// the last equal the last. If a border mode makes them differ, the line holds all samples that the blur reads.
struct CoarseLine {
  int first, count;
  int index(int m) const { return m < first ? 0 : m >= first + count ? count - 1 : m - first; }
};
CoarseLine coarse_line(const Decimation &decimation, Border border, int length);

// The coarse samples that a line of samples needs for its expansion.
inline CoarseLine expanded_line(const Decimation &decimation, int length) {
  return {-1, ((length - 1) >> decimation.log_factor) + 4};
}

// The decimations along rows and down columns. Both have the same factor; for equal weights they are the same object.
struct Decimations {
  std::shared_ptr<const Decimation> x, y;
};

// The decimations for symmetric lines of weights, each with sum 1, and samples of `depth` bits. They are the coarsest
// whose results, before rounding, are within `allowed` codes of the exact value. nullptr: there are none.
Decimations make_decimations(const std::vector<double> &row, const std::vector<double> &column, int depth,
                             double allowed);

}  // namespace cudaconv
