// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sums of neighbouring windows of a line, with symmetric weights. A thread loads each value of the line once for all
// its windows. It multiplies the sum of two values that are equally far from the middle.
//
// Example, two windows of five of the values a b c d e f: abcde and bcdef.
//
//    step 0    w0 * (a + e)    w0 * (b + f)      loaded: b e (a and f were before)
//    step 1    w1 * (b + d)    w1 * (c + e)      loaded: c d
//    last      w2 * c          w2 * d
//
// A step keeps all values but one on either side of the middle. So they stay in their registers, which count as a ring.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace cudaconv {

// Adds the sums of kResults windows of 2 * radius + 1 values to `sum`. weight[k] is for value k of a window and for the
// value as far behind the middle. load(i) returns value i of the line, counted from the first value of the first
// window. The sum of two values must fit 32 bits.
template <int kResults, typename Load>
__device__ inline void sum_windows(const int32_t *weight, int radius, Load load, int64_t (&sum)[kResults]) {
  int before[kResults], behind[kResults];  // in step k: value n at n % kResults, and at (n - 2 * radius) % kResults
#pragma unroll
  for (int i = 0; i < kResults - 1; i++) {
    before[i] = load(i);
    behind[i + 1] = load(2 * radius + 1 + i);
  }
  int next_before = load(kResults - 1), next_behind = load(2 * radius);  // loaded a step early
#pragma unroll 1
  for (int first = 0; first < radius; first += kResults) {
#pragma unroll
    for (int u = 0; u < kResults; u++) {
      const int k = first + u;
      if (k >= radius) break;
      before[(u + kResults - 1) % kResults] = next_before;
      behind[(kResults - u) % kResults] = next_behind;
      next_before = load(k + kResults);
      next_behind = load(2 * radius - k - 1);
#pragma unroll
      for (int i = 0; i < kResults; i++)
        sum[i] += int64_t{weight[k]} * (before[(u + i) % kResults] + behind[(i - u + kResults) % kResults]);
    }
  }
#pragma unroll
  for (int i = 0; i < kResults; i++) sum[i] += int64_t{weight[radius]} * load(radius + i);
}

}  // namespace cudaconv
