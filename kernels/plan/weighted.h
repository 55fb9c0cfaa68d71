// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::WeightedMean: masks without negative coefficients with alpha=weighted. With coefficients c, samples p and the
// alpha a of their pixels, the means are
//
//   colours   sum(c * a * p) / sum(c * a); if that divides by 0, sum(c * p) / sum(c)
//   alpha     sum(c * p) / sum(c)
//
// times a gain, plus the bias. Numerators and denominators are exact integers, and each quotient is rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "filter.h"
#include "imageview.h"
#include "plan/plan.h"

namespace cudaconv {

// The plane and channel that hold alpha; plane is -1 if there is no alpha.
struct AlphaPlace {
  int plane = -1, channel = 0;
};
AlphaPlace alpha_of(const FrameLayout &layout);

// The index of the part that holds the alpha for a part, of the same field.
size_t alpha_part(const Plan &plan, const Plan::Part &part);

// Fills in operation, mask, gain and roundings of a pass for a format with alpha. Throws Error{Settings} if the mask is
// not linear or has a negative coefficient.
void compile_weighted(const FilterSettings &settings, const FrameLayout &layout, Pass &pass);

// The position of a part's pixels in the part that holds their alpha: each covers 2^sub_x by 2^sub_y pixels of alpha.
struct AlphaGrid {
  int32_t sub_x = 0, sub_y = 0;
  int32_t width = 0, height = 0;  // size of the part with alpha
};
AlphaGrid alpha_grid(const Plan &plan, const Plan::Part &part);

// The alpha of pixel (x, y) of a part: the mean, halves up, of the samples at(x, y) of alpha that it covers.
template <typename At>
CUDACONV_HOST_DEVICE inline int alpha_at(const AlphaGrid &grid, int x, int y, At at) {
  if (grid.sub_x == 0 && grid.sub_y == 0) return at(x, y);
  const int x0 = x << grid.sub_x, y0 = y << grid.sub_y;
  const int x1 = x0 + (1 << grid.sub_x) < grid.width ? x0 + (1 << grid.sub_x) : grid.width;
  const int y1 = y0 + (1 << grid.sub_y) < grid.height ? y0 + (1 << grid.sub_y) : grid.height;
  int sum = 0;
  for (int row = y0; row < y1; row++)
    for (int column = x0; column < x1; column++) sum += at(column, row);
  const int n = (x1 - x0) * (y1 - y0);
  return (sum + n / 2) / n;
}

CUDACONV_HOST_DEVICE inline float to_float(float v) {
  return v;
}
CUDACONV_HOST_DEVICE inline float to_float(uint32_t v) {
  return static_cast<float>(v);
}
// `v` has at most 63 bits, so it is converted as a signed integer, which takes one instruction.
CUDACONV_HOST_DEVICE inline float to_float(uint64_t v) {
  return static_cast<float>(static_cast<int64_t>(v));
}
CUDACONV_HOST_DEVICE inline float to_float(Uint128 v) {
  return static_cast<float>(static_cast<uint64_t>(v >> 64)) * 0x1p64f + static_cast<float>(static_cast<uint64_t>(v));
}

// An approximation of 1 / d.
template <typename Sum>
CUDACONV_HOST_DEVICE inline float inverse_of(Sum d) {
  return 1 / to_float(d);
}

// min(floor(n / d), max), for max below 2^16. `inverse` is about 1 / d. The estimate is at most one off and is
// corrected.
template <typename Sum>
CUDACONV_HOST_DEVICE inline int clamped_quotient(Sum n, Sum d, float inverse, int max) {
  const float estimate = to_float(n) * inverse;
  uint32_t q = estimate < static_cast<float>(max) ? static_cast<uint32_t>(estimate) : static_cast<uint32_t>(max);
  const Sum product = d * q;
  if (product > n)
    q--;
  else if (n - product >= d && q < static_cast<uint32_t>(max))
    q++;
  return static_cast<int>(q);
}

// Whether the value to be rounded is the mean itself, without gain or bias.
CUDACONV_HOST_DEVICE inline bool is_mean(int64_t gain, const Rounding &r) {
  return gain == 2 && r.half == 1 && r.offset == 0;
}

// round_mean() with a gain, a bias or an absolute value. It is called in many places: not inlined, it keeps code small.
CUDACONV_HOST_DEVICE __attribute__((noinline)) inline int round_scaled_mean(Uint128 n, Uint128 d, int64_t gain,
                                                                            const Rounding &r) {
  Int128 v = static_cast<Int128>(n) * gain + static_cast<Int128>(d) * r.offset;
  if (r.absolute && v < 0) v = -v;
  v += static_cast<Int128>(d) * r.half;
  if (v < 0) v = 0;
  const Uint128 divisor = static_cast<Uint128>(d) * static_cast<uint64_t>(r.half) * 2;
  return clamped_quotient<Uint128>(static_cast<Uint128>(v), divisor, inverse_of(divisor), r.max);
}

// Rounds the mean n / d to a sample; d is above 0, and `inverse` is about 1 / d. The result is
//
//   clamp(floor((gain * n + offset * d [absolute value] + half * d) / (2 * half * d)), 0, max)
template <typename Sum>
CUDACONV_HOST_DEVICE inline int round_mean(Sum n, Sum d, float inverse, int64_t gain, const Rounding &r) {
  return is_mean(gain, r) ? clamped_quotient<Sum>(n + d / 2, d, inverse, r.max) : round_scaled_mean(n, d, gain, r);
}

}  // namespace cudaconv
