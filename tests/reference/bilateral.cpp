// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bilateral.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>
#include <utility>

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
// are at most 1024 points up to the largest sum of differences or, if that comes first, the first whose weight is 0.
int64_t point_distance(const BilateralMask &m, int channels) {
  int64_t end = static_cast<int64_t>(channels) * ((1 << m.depth) - 1);
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

bool is_member(const BilateralMask &m, int dx, int dy) {
  const int64_t rx = m.width / 2, ry = m.height / 2;
  return !m.ellipse || dx * dx * ry * ry + dy * dy * rx * rx <= rx * rx * ry * ry;
}

struct Sums {
  std::vector<Integer> n;
  Integer d = 0;
  std::vector<Real> real_n;
  Real real_d = 0;
};

class Window {
 public:
  Window(const std::vector<const Channel *> &in, const Channel *weight, const BilateralMask &m)
      : in_(in),
        weight_(weight),
        m_(m),
        columns_(positions(m.border, in[0]->width, m.width)),
        rows_(positions(m.border, in[0]->height, m.height)),
        step_(point_distance(m, static_cast<int>(in.size()))),
        distances_(m.width * m.height) {}

  Sums add_up(int x, int y, bool weighted) {
    const size_t channels = in_.size();
    Sums sums;
    sums.n.resize(channels);
    sums.real_n.resize(channels);
    for (int dy = -(m_.height / 2); dy <= m_.height / 2; dy++)
      for (int dx = -(m_.width / 2); dx <= m_.width / 2; dx++) {
        if (!is_member(m_, dx, dy)) continue;
        int sum = 0;  // of differences
        for (size_t c = 0; c < channels; c++) sum += std::abs(sample(c, x + dx, y + dy) - sample(c, x, y));
        const int64_t a = weighted ? value(*weight_, m_.border_weight, x + dx, y + dy) : 1;
        const Weight &s = distance(std::abs(dx), std::abs(dy)), &r = difference(sum);
        const Integer w = static_cast<Integer>(s.integer * r.integer) * static_cast<Integer>(a);
        const Real real = s.real * r.real * static_cast<Real>(a);
        sums.d += w;
        sums.real_d += real;
        for (size_t c = 0; c < channels; c++) {
          const int p = sample(c, x + dx, y + dy);
          sums.n[c] += w * static_cast<Integer>(p);
          sums.real_n[c] += real * p;
        }
      }
    return sums;
  }

 private:
  struct Weight {
    int64_t integer = -1;  // not known yet
    Real real = 0;
  };
  int value(const Channel &in, int outside, int x, int y) const {
    const int column = columns_[x + m_.width / 2], row = rows_[y + m_.height / 2];
    return column < 0 || row < 0 ? outside : in.sample[row * in.width + column];
  }
  int sample(size_t c, int x, int y) const { return value(*in_[c], m_.border_value[c], x, y); }

  const Weight &distance(int dx, int dy) {
    Weight &weight = distances_[dy * m_.width + dx];
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

  const std::vector<const Channel *> &in_;
  const Channel *weight_;
  const BilateralMask &m_;
  const std::vector<int> columns_, rows_;
  const int64_t step_;
  std::vector<Weight> distances_;
  std::unordered_map<int, Weight> differences_;
};

}  // namespace

BilateralMask bilateral_mask(const FilterSettings &s, int depth, std::vector<int> border_value, int border_weight) {
  const int width = s.size ? s.size : 5, height = s.size_y ? s.size_y : width;
  const Real sigma = s.sigma >= 0 ? s.sigma : 0.3L * ((width - 1) * 0.5L - 1) + 0.8L;
  return {width,    height, s.shape == Shape::Ellipse, sigma,        static_cast<Real>(s.sigma_range),
          s.border, depth,  std::move(border_value),   border_weight};
}

std::vector<Channel> bilateral(const std::vector<const Channel *> &in, const Channel *weight, const BilateralMask &m) {
  const int width = in[0]->width, height = in[0]->height, rx = m.width / 2, ry = m.height / 2;
  std::vector<Channel> out(in.size(), Channel{width, height, {}, {}});
  Window window(in, weight, m);
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const bool crosses = x < rx || x >= width - rx || y < ry || y >= height - ry;
      const bool kept = m.border == Border::Keep && crosses;
      Sums sums;
      if (!kept) sums = window.add_up(x, y, weight != nullptr);
      if (!kept && sums.d == 0) sums = window.add_up(x, y, false);
      for (size_t c = 0; c < in.size(); c++) {
        out[c].sample.push_back(kept ? in[c]->sample[y * width + x]
                                     : static_cast<int>((2 * sums.n[c] + sums.d) / (2 * sums.d)));
        out[c].real.push_back(kept ? out[c].sample.back() : sums.real_n[c] / sums.real_d);
      }
    }
  }
  return out;
}

// Let S * R be the real weights, 1 in the middle, and W = S * R + e the integer weights over 65535^2.
// A result is off by sum(e * (p - mean)) / sum(W), and sum(W) is 1 at least. Samples differ from a mean by less than
// the range. If s is off by half of 1 / 65535, and r by b times that, |e| is at most (R / 2 + b * S + b / 2 / 65535) /
// 65535. R is 1 at most.
long double bilateral_error(const BilateralMask &m, int channels) {
  // Points are rounded by a half. Between points, a line is off by an eighth of the square of their distance times the
  // largest second derivative, 65535 / sigma^2, and is rounded, too.
  const Real step = static_cast<Real>(point_distance(m, channels)), sigma = m.sigma_range * ((1 << m.depth) - 1);
  const Real b = step == 1 ? 0.5L : 1 + step * step / 8 * kOne / (sigma * sigma);
  Real sum = 0;
  for (int dy = -(m.height / 2); dy <= m.height / 2; dy++)
    for (int dx = -(m.width / 2); dx <= m.width / 2; dx++)
      if ((dx || dy) && is_member(m, dx, dy)) sum += 0.5L + b * real_distance(m, dx, dy) + b / 2 / kOne;
  return sum / kOne * ((1 << m.depth) - 1);
}

}  // namespace cudaconv::reference
