// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bilateral.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>

namespace cudaconv::reference {

namespace {

using Integer = unsigned __int128;
using Real = long double;

constexpr int kOne = 65535, kPoints = 1024;

Real bell(Real x, Real sigma) {
  return sigma > 0 ? std::exp(-x * x / (2 * sigma * sigma)) : x == 0 ? 1 : 0;
}

int64_t to_integer(Real weight) {
  return static_cast<int64_t>(std::floor(weight * kOne + 0.5L));
}

Real real_distance(const BilateralMask &m, int dx, int dy) {
  return bell(std::sqrt(static_cast<Real>(dx * dx + dy * dy)), m.sigma);
}

Real real_difference(const BilateralMask &m, int64_t difference) {
  return bell(static_cast<Real>(difference), m.sigma_range * ((1 << m.depth) - 1));
}

// Distance of the points at which integer weights are the Gaussian's; between points they are on a line. There
// are at most 1024 points up to the largest difference or, if that comes first, the first whose weight is 0.
int64_t point_distance(const BilateralMask &m) {
  int64_t end = (1 << m.depth) - 1;
  for (int64_t half = end / 2; half > 0; half /= 2)
    while (end > half && to_integer(real_difference(m, end - half)) == 0) end -= half;
  int64_t step = 1;
  while (end / step >= kPoints) step *= 2;
  return step;
}

int64_t integer_difference(const BilateralMask &m, int64_t difference, int64_t step) {
  const int64_t before = to_integer(real_difference(m, difference / step * step));
  const int64_t after = to_integer(real_difference(m, (difference / step + 1) * step));
  if (before == 0) return 0;
  // Rounded to the nearest, halves down.
  const int64_t fall = (before - after) * (difference % step);
  return before - (fall + step / 2) / step;
}

struct Sums {
  Integer n = 0, d = 0;
  Real real_n = 0, real_d = 0;
};

class Window {
 public:
  Window(const Channel &in, const Channel *weight, const BilateralMask &m)
      : in_(in), weight_(weight), m_(m), step_(point_distance(m)), distances_(m.side * m.side) {}

  Sums add_up(int x, int y, bool weighted) {
    Sums sums;
    const int middle = in_.sample[y * in_.width + x];
    for (int dy = -m_.side / 2; dy <= m_.side / 2; dy++)
      for (int dx = -m_.side / 2; dx <= m_.side / 2; dx++) {
        const int column = position(m_.border, x + dx, in_.width), row = position(m_.border, y + dy, in_.height);
        const bool outside = column < 0 || row < 0;
        const int p = outside ? m_.border_value : in_.sample[row * in_.width + column];
        int64_t a = 1;
        if (weighted) a = outside ? m_.border_weight : weight_->sample[row * in_.width + column];
        const Weight &s = distance(std::abs(dx), std::abs(dy)), &r = difference(std::abs(p - middle));
        const Integer w = static_cast<Integer>(s.integer * r.integer) * static_cast<Integer>(a);
        sums.d += w;
        sums.n += w * static_cast<Integer>(p);
        const Real real = s.real * r.real * static_cast<Real>(a);
        sums.real_d += real;
        sums.real_n += real * p;
      }
    return sums;
  }

 private:
  struct Weight {
    int64_t integer = -1;  // not known yet
    Real real = 0;
  };
  const Weight &distance(int dx, int dy) {
    Weight &weight = distances_[dy * m_.side + dx];
    if (weight.integer < 0) {
      weight.real = real_distance(m_, dx, dy);
      weight.integer = to_integer(weight.real);
    }
    return weight;
  }
  const Weight &difference(int v) {
    Weight &weight = differences_[v];
    if (weight.integer < 0) weight = {integer_difference(m_, v, step_), real_difference(m_, v)};
    return weight;
  }

  const Channel &in_;
  const Channel *weight_;
  const BilateralMask &m_;
  const int64_t step_;
  std::vector<Weight> distances_;
  std::unordered_map<int, Weight> differences_;
};

}  // namespace

BilateralMask bilateral_mask(const FilterSettings &s, int depth, int border_value, int border_weight) {
  const int side = s.size ? s.size : 5;
  const Real sigma = s.sigma >= 0 ? s.sigma : 0.3L * ((side - 1) * 0.5L - 1) + 0.8L;
  return {side, sigma, static_cast<Real>(s.sigma_range), s.border, depth, border_value, border_weight};
}

Channel bilateral(const Channel &in, const Channel *weight, const BilateralMask &m) {
  Channel out{in.width, in.height, {}, {}};
  Window window(in, weight, m);
  for (int y = 0; y < in.height; y++) {
    for (int x = 0; x < in.width; x++) {
      const int r = m.side / 2;
      const bool crosses = x < r || x >= in.width - r || y < r || y >= in.height - r;
      if (m.border == Border::Keep && crosses) {
        out.sample.push_back(in.sample[y * in.width + x]);
        out.real.push_back(out.sample.back());
        continue;
      }
      Sums sums = window.add_up(x, y, weight != nullptr);
      if (sums.d == 0) sums = window.add_up(x, y, false);
      out.sample.push_back(static_cast<int>((2 * sums.n + sums.d) / (2 * sums.d)));
      out.real.push_back(sums.real_n / sums.real_d);
    }
  }
  return out;
}

// Let S * R be the real weights, 1 in the middle, and W = S * R + e the integer weights over 65535^2.
// A result is off by sum(e * (p - mean)) / sum(W), and sum(W) is 1 at least. Samples differ from a mean by less than
// the range. If s is off by half of 1 / 65535, and r by b times that, |e| is at most (R / 2 + b * S + b / 2 / 65535) /
// 65535. R is 1 at most.
long double bilateral_error(const BilateralMask &m) {
  // Points are rounded by a half. Between points, a line is off by an eighth of the square of their distance times the
  // largest second derivative, 65535 / sigma^2, and is rounded, too.
  const Real step = static_cast<Real>(point_distance(m)), sigma = m.sigma_range * ((1 << m.depth) - 1);
  const Real b = step == 1 ? 0.5L : 1 + step * step / 8 * kOne / (sigma * sigma);
  Real sum = 0;
  for (int dy = -m.side / 2; dy <= m.side / 2; dy++)
    for (int dx = -m.side / 2; dx <= m.side / 2; dx++)
      if (dx || dy) sum += 0.5L + b * real_distance(m, dx, dy) + b / 2 / kOne;
  return sum / kOne * ((1 << m.depth) - 1);
}

}  // namespace cudaconv::reference
