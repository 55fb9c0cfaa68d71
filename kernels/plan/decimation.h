// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A wide Gaussian by way of a smaller frame, at a cost that does not grow with sigma: reduce, blur, expand. This file
// describes one axis, in integers; both axes do the same, each with its blur. kernels/README.md says how far results
// are from exact ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/border.h"

namespace cudaconv {

// The filters of one axis. A coarse sample stands for D = factor() samples; coarse sample m lies at sample m * D. Every
// rounding is to the nearest integer, halves up.
struct Decimation {
  int log_factor = 1;  // log2 of D, at least 1
  int fraction = 0;    // bits below a code in coarse samples
  // Offset subtracted from coarse samples so that they fit int16. The shift of each step cancels the sum of its
  // weights, so the offset changes no result.
  int32_t offset = 0;

  // Reduction: weights of the 4D-3 samples about m * D that make coarse sample m, the convolution of four boxes of D
  // samples. Their sum is D^4.
  std::vector<int32_t> reduce;
  // Blur: weights of 2 * radius() + 1 coarse samples that make one. Each fits a signed 16-bit integer. Their sum is
  // 2^kBlurBits. Samples of more than 8 bits take finer weights, blur + fine / 2^kFineBits, which have that sum; `fine`
  // is from -2^(kFineBits-1) to 2^(kFineBits-1) - 1, and empty for other samples.
  std::vector<int32_t> blur, fine;
  // Expansion, by phase: weights of coarse samples n-1, n, n+1, n+2 that make sample n * D + phase. Their sum is D^3.
  std::vector<std::array<int32_t, 4>> expand;

  static constexpr int kBlurBits = 15, kFineBits = 7;

  // `fraction` by the depth of samples: deep ones have an offset, which leaves room for one bit more.
  static constexpr int fraction_of(int depth) { return (depth > 8 ? 15 : 14) - depth; }
  int factor() const { return 1 << log_factor; }
  int radius() const { return static_cast<int>(blur.size()) / 2; }
  // Distance from a result to the farthest sample that it depends on.
  int reach() const { return (radius() + 2) * factor() + 2 * factor() - 2; }
  // Right shifts of the sums of each step, in the order of work, after which they have `fraction` bits again. A
  // negative one is a left shift.
  int reduce_rows_shift() const { return 4 * log_factor - fraction; }  // first the sums down columns of samples
  int reduce_columns_shift() const { return 4 * log_factor; }          // then those along rows of the results
  int expand_shift() const { return 3 * log_factor; }                  // after the blur, the sums down columns
  // Bits below a code in the sums of the last step, the expansion along rows, which are not shifted.
  int result_fraction() const { return fraction + 3 * log_factor; }
};

// The coarse samples of a line that are computed. Samples before `first` equal the first one, samples after the last
// one equal the last one. If a border mode makes them differ, the line holds all samples that the blur reads.
struct CoarseLine {
  int first, count;
  int index(int m) const { return m < first ? 0 : m >= first + count ? count - 1 : m - first; }
};
CoarseLine coarse_line(const Decimation &decimation, Border border, int length);

// The coarse samples from which a line of samples is expanded.
inline CoarseLine expanded_line(const Decimation &decimation, int length) {
  return {-1, ((length - 1) >> decimation.log_factor) + 4};
}

// The decimations along rows and down columns, which have the same factor; equal weights have the same one.
struct Decimations {
  std::shared_ptr<const Decimation> x, y;
};

// The decimations for symmetric lines of weights with sum 1 each and samples of `depth` bits: the coarsest whose
// results, before they are rounded, are within `allowed` codes of exact ones. nullptr: there are none.
Decimations make_decimations(const std::vector<double> &row, const std::vector<double> &column, int depth,
                             double allowed);

}  // namespace cudaconv
