// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A wide Gaussian by way of a smaller frame, at a cost that does not grow with sigma: reduce, blur, expand. What one
// axis does, in integers; both axes do the same, and kernels/README.md says how far results are from exact ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/border.h"

namespace cudaconv {

// A coarse sample stands for D = factor() samples; coarse sample m is at sample m * D. "Rounded" is to the nearest
// integer, halves up.
struct Decimation {
  int log_factor = 1;  // log2 of D, at least 1
  int fraction = 0;    // bits below a code that coarse samples have, which are 16-bit integers with a sign

  // From 4D-3 samples about m * D to coarse sample m: the convolution of four boxes of D samples. Sum: D^4.
  std::vector<int32_t> reduce;
  // From 2 * radius() + 1 coarse samples to one. Each fits 16 bits with a sign. Sum: 2^kBlurBits.
  std::vector<int32_t> blur;
  // Sample n * D + phase from coarse samples n-1, n, n+1, n+2, by phase. Sum: D^3.
  std::vector<std::array<int32_t, 4>> expand;

  static constexpr int kBlurBits = 15;

  int factor() const { return 1 << log_factor; }
  int radius() const { return static_cast<int>(blur.size()) / 2; }
  // Samples from a result to the farthest that it depends on.
  int reach() const { return (radius() + 2) * factor() + 2 * factor() - 2; }
  // By how much sums in the order of work are shifted, down where positive, to have `fraction` bits again.
  int reduce_rows_shift() const { return 4 * log_factor - fraction; }  // of columns of samples
  int reduce_columns_shift() const { return 4 * log_factor; }          // of rows of what that makes
  int expand_shift() const { return 3 * log_factor; }                  // of columns
  // Bits below a code of what expanding a row adds up to, which is not shifted.
  int result_fraction() const { return fraction + 3 * log_factor; }
};

// Which coarse samples of a line are made. Those before `first` are like the first one, those after the last one like
// it: the borders that are not so have all that the blur reads.
struct CoarseLine {
  int first, count;
  int index(int m) const { return m < first ? 0 : m >= first + count ? count - 1 : m - first; }
};
CoarseLine coarse_line(const Decimation &decimation, Border border, int length);

// Those that are expanded to a line of samples.
inline CoarseLine expanded_line(const Decimation &decimation, int length) {
  return {-1, ((length - 1) >> decimation.log_factor) + 4};
}

// The decimation for a line of weights, symmetric and of sum 1, and samples of `depth` bits: the coarsest with which
// results, before they are rounded, are within `allowed` codes of exact ones. nullptr: none is.
std::shared_ptr<const Decimation> make_decimation(const std::vector<double> &weights, int depth, double allowed);

}  // namespace cudaconv
