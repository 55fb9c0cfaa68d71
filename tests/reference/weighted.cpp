// SPDX-License-Identifier: LGPL-2.1-or-later
#include "weighted.h"

#include <algorithm>
#include <cmath>

namespace cudaconv::reference {

namespace {

using Integer = __int128;
using Real = long double;

// The sums over a window.
template <typename Number>
struct Sums {
  Number colours = 0, weights = 0;  // c * a * p and c * a
  Number samples = 0, all = 0;      // c * p and c
};

// `columns` and `rows`: the positions of the window's columns and rows.
template <typename Number>
Sums<Number> add_up(const Channel &in, const Channel &weight, const WeightedMask &m,
                    const std::vector<Number> &coefficient, const int *columns, const int *rows) {
  Sums<Number> sums;
  for (int j = 0; j < m.height; j++) {
    for (int i = 0; i < m.width; i++) {
      int column = columns[i];
      int row = rows[j];
      bool outside = column < 0 || row < 0;
      Number c = coefficient[j * m.width + i];
      Number p = outside ? m.border_value : in.sample[row * in.width + column];
      Number a = outside ? m.border_weight : weight.sample[row * in.width + column];
      sums.colours += c * a * p;
      sums.weights += c * a;
      sums.samples += c * p;
      sums.all += c;
    }
  }
  return sums;
}

// floor(v + 1/2), clamped to 0 to max, for v = all / divisor * n / d + bias, or for |v| if `absolute` is set.
int rounded(const WeightedMask &m, Integer all, Integer n, Integer d) {
  Integer divisor = static_cast<Integer>(m.divisor), bias = static_cast<Integer>(m.bias);
  // v = above / below
  Integer above = all * n + bias * divisor * d, below = divisor * d;
  if (below < 0) above = -above, below = -below;
  if (m.absolute && above < 0) above = -above;
  int result = 0;
  while (result < m.max && 2 * above >= (2 * result + 1) * below) {
    int step = 1;  // doubled while the result is not too far
    while (result + 2 * step <= m.max && 2 * above >= (2 * (result + 2 * step) - 1) * below) step *= 2;
    result += step;
  }
  return result;
}

}  // namespace

Channel weights_of(const Channel &alpha, int width, int height, int sub_x, int sub_y) {
  Channel weights{width, height, {}, {}};
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      int sum = 0, count = 0;
      for (int row = y << sub_y; row < (y + 1) << sub_y; row++) {
        for (int column = x << sub_x; column < (x + 1) << sub_x; column++) {
          if (row >= alpha.height || column >= alpha.width) continue;
          sum += alpha.sample[row * alpha.width + column];
          count++;
        }
      }
      weights.sample.push_back(static_cast<int>(std::floor(static_cast<Real>(sum) / count + 0.5L)));
    }
  }
  return weights;
}

Channel weighted_mean(const Channel &in, const Channel &weight, const WeightedMask &m) {
  Channel out{in.width, in.height, {}, {}};
  const std::vector<int> columns = positions(m.border, in.width, m.width);
  const std::vector<int> rows = positions(m.border, in.height, m.height);
  std::vector<Integer> integers;
  if (m.exact)
    for (Real c : m.coefficient) integers.push_back(static_cast<Integer>(c));
  for (int y = 0; y < in.height; y++) {
    for (int x = 0; x < in.width; x++) {
      bool crosses =
          x < m.width / 2 || x >= in.width - m.width / 2 || y < m.height / 2 || y >= in.height - m.height / 2;
      if (m.border == Border::Keep && crosses) {
        int copy = in.sample[y * in.width + x];
        out.sample.push_back(copy);
        if (!m.exact) out.real.push_back(copy);
        continue;
      }
      if (m.exact) {
        Sums<Integer> s = add_up(in, weight, m, integers, &columns[x], &rows[y]);
        bool weighted = s.weights != 0;
        if (s.all == 0) s.weights = 1, weighted = true;  // the mask's coefficients add up to 0
        out.sample.push_back(rounded(m, s.all, weighted ? s.colours : s.samples, weighted ? s.weights : s.all));
        continue;
      }
      Sums<Real> s = add_up(in, weight, m, m.coefficient, &columns[x], &rows[y]);
      Real mean = s.weights != 0 ? s.colours / s.weights : s.all != 0 ? s.samples / s.all : 0;
      Real v = s.all / m.divisor * mean + m.bias;
      if (m.absolute) v = std::abs(v);
      v = std::clamp<Real>(v, 0, m.max);
      out.sample.push_back(static_cast<int>(std::min<Real>(std::floor(v + 0.5L), m.max)));
      out.real.push_back(v);
    }
  }
  return out;
}

}  // namespace cudaconv::reference
