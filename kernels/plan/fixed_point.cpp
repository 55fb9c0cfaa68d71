// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/fixed_point.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace cudaconv {

std::vector<int32_t> fixed_point(const std::vector<double> &weight, int bits, double gain) {
  const size_t middle = weight.size() / 2;
  std::vector<int32_t> q;
  std::vector<double> rest;  // exact values minus rounded values
  int64_t missing = std::llround(std::ldexp(gain, bits));
  for (double w : weight) {
    const double exact = std::ldexp(w * gain, bits);
    q.push_back(static_cast<int32_t>(std::llround(exact)));
    rest.push_back(exact - q.back());
    missing -= q.back();
  }
  const int step = missing < 0 ? -1 : 1;
  std::vector<size_t> pairs(middle);
  std::iota(pairs.begin(), pairs.end(), 0);
  std::stable_sort(pairs.begin(), pairs.end(), [&](size_t a, size_t b) { return step * rest[a] > step * rest[b]; });
  for (size_t k = 0; k < middle && std::abs(missing) >= 2; k++, missing -= 2 * step) {
    q[pairs[k]] += step;
    q[weight.size() - 1 - pairs[k]] += step;
  }
  q[middle] += static_cast<int32_t>(missing);
  return q;
}

}  // namespace cudaconv
