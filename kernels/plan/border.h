// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The border modes: which sample replaces a sample outside the frame. Every backend and method uses these functions.
#pragma once

#include "filter.h"

#ifdef __CUDACC__
#define CUDACONV_HOST_DEVICE __host__ __device__
#else
#define CUDACONV_HOST_DEVICE
#endif

namespace cudaconv {

// The index in [0, n) that replaces position i of a line of n >= 1 samples, at any distance outside. -1: Constant reads
// the border value. Keep reads as Replicate, since pixels whose window crosses the edge are copied, not filtered.
CUDACONV_HOST_DEVICE constexpr int border_index(Border border, int i, int n) {
  if (i >= 0 && i < n) return i;
  switch (border) {
    case Border::Constant:
      return -1;
    case Border::Wrap: {
      int m = i % n;
      return m < 0 ? m + n : m;
    }
    case Border::Reflect: {  // dcba|abcd|dcba: period 2n
      int m = i % (2 * n);
      if (m < 0) m += 2 * n;
      return m < n ? m : 2 * n - 1 - m;
    }
    case Border::Reflect101: {  // dcb|abcd|cba: period 2n-2, and a line of one sample only repeats it
      if (n == 1) return 0;
      int m = i % (2 * n - 2);
      if (m < 0) m += 2 * n - 2;
      return m < n ? m : 2 * n - 2 - m;
    }
    case Border::Replicate:
    case Border::Keep:
      break;
  }
  return i < 0 ? 0 : n - 1;
}

// border_index() without divisions, which cost registers and calls in kernels. It takes one step for every n positions
// that i is outside.
CUDACONV_HOST_DEVICE constexpr int border_index_no_div(Border border, int i, int n) {
  while (i < 0 || i >= n) {
    if (border == Border::Constant) return -1;
    if (border == Border::Wrap)
      i += i < 0 ? n : -n;
    else if (border == Border::Reflect)
      i = (i < 0 ? -1 : 2 * n - 1) - i;
    else if (border == Border::Reflect101 && n > 1)
      i = (i < 0 ? 0 : 2 * n - 2) - i;
    else
      i = i < 0 ? 0 : n - 1;
  }
  return i;
}

// Whether every sample that replaces a sample outside the frame is within the same window. Then results for a rectangle
// depend only on the rectangle grown by the window's radius. False for modes that may read outside the window; wrap
// reads at the opposite edge.
constexpr bool reads_within_window(Border border) {
  return border == Border::Replicate || border == Border::Reflect || border == Border::Reflect101 ||
         border == Border::Constant || border == Border::Keep;
}

// Whether all samples beyond an edge of a row or column are equal.
constexpr bool is_uniform_outside(Border border) {
  return border == Border::Replicate || border == Border::Constant || border == Border::Keep;
}

}  // namespace cudaconv
