// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The operations: each makes one sample from the window around a pixel. fetch(dx, dy) returns the source sample at that
// offset from the pixel; the method decides where it is read from. `Window` is a WindowSize.
#pragma once

#include "cuda/launch_params.h"

namespace cudaconv::methods {

// The size of a window. Loops along a row are unrolled by kUnroll.
template <int kUnroll>
struct WindowSize {
  static constexpr int kRowUnroll = kUnroll;
  int width, height, radius_x, radius_y;
  __device__ explicit WindowSize(const MaskParams &m)
      : width(m.width), height(m.height), radius_x(m.radius_x), radius_y(m.radius_y) {}
};

template <typename Acc, typename Fetch>
__device__ inline int round_sum(const LaunchParams &p, const Rounding &rounding, Acc sum, Fetch fetch) {
  if (p.has_gain)
    return round_to_sample(apply_gain(sum, p.sum_shift, p.sum_gain, p.center_gain, p.center_gain ? fetch(0, 0) : 0),
                           rounding);
  if (sizeof(Acc) > 4 && !rounding.wide) return round_to_sample(static_cast<int32_t>(sum), rounding);
  return round_to_sample(sum, rounding);
}

// The sum of all coefficients times their samples.
template <typename Acc>
struct Linear {
  template <typename Window, typename Fetch>
  __device__ static int evaluate(const LaunchParams &p, const MaskParams &m, const Rounding &rounding, Fetch fetch) {
    const Window w(m);
    Acc sum = 0;
#pragma unroll 1
    for (int j = 0; j < w.height; j++)
#pragma unroll Window::kRowUnroll
      for (int i = 0; i < w.width; i++)
        sum += static_cast<Acc>(m.value[j * w.width + i]) * fetch(i - w.radius_x, j - w.radius_y);
    return round_sum(p, rounding, sum, fetch);
  }
};

// A separable mask: each row's sum, rounded if the mask has a row_shift, times the column's factor.
template <typename Acc>
struct Factored {
  using RowValue = Acc;

  template <typename Window, typename FetchRow>
  __device__ static RowValue row(const MaskParams &m, FetchRow fetch) {
    const Window w(m);
    Acc sum = 0;
#pragma unroll Window::kRowUnroll
    for (int i = 0; i < w.width; i++) sum += static_cast<Acc>(m.value[i]) * fetch(i - w.radius_x);
    if (m.row_shift) sum = (sum + (Acc{1} << (m.row_shift - 1))) >> m.row_shift;
    return sum;
  }

  template <typename Window, typename FetchRowValue, typename Fetch>
  __device__ static int column(const LaunchParams &p, const MaskParams &m, const Rounding &rounding,
                               FetchRowValue row_value, Fetch fetch) {
    const Window w(m);
    Acc sum = 0;
#pragma unroll Window::kRowUnroll
    for (int j = 0; j < w.height; j++) sum += static_cast<Acc>(m.value[w.width + j]) * row_value(j - w.radius_y);
    return round_sum(p, rounding, sum, fetch);
  }

  template <typename Window, typename Fetch>
  __device__ static int evaluate(const LaunchParams &p, const MaskParams &m, const Rounding &rounding, Fetch fetch) {
    const auto row_value = [&](int dy) { return row<Window>(m, [&](int dx) { return fetch(dx, dy); }); };
    return column<Window>(p, m, rounding, row_value, fetch);
  }
};

// The magnitude sqrt(x^2 + y^2) or |x| + |y| of the sums of two masks.
struct Gradient2D {
  template <typename Fetch>
  __device__ static int combine(const LaunchParams &p, const Rounding &rounding, int x, int y, Fetch fetch) {
    return round_sum(p, rounding, magnitude(p.norm, x, y), fetch);
  }

  template <typename Window, typename Fetch>
  __device__ static int evaluate(const LaunchParams &p, const MaskParams &m, const Rounding &rounding, Fetch fetch) {
    const Window w(m);
    int x = 0, y = 0;
#pragma unroll 1
    for (int j = 0; j < w.height; j++)
#pragma unroll Window::kRowUnroll
      for (int i = 0; i < w.width; i++) {
        const int v = fetch(i - w.radius_x, j - w.radius_y);
        x += m.value[j * w.width + i] * v;
        y += m.value[w.width * w.height + j * w.width + i] * v;
      }
    return combine(p, rounding, x, y, fetch);
  }
};

// The magnitude of the sums of two separable masks.
struct FactoredGradient2D {
  struct RowValue {
    int x, y;
  };

  template <typename Window, typename FetchRow>
  __device__ static RowValue row(const MaskParams &m, FetchRow fetch) {
    RowValue sum = {0, 0};
    for (int i = 0; i < m.width; i++) {
      const int v = fetch(i - m.radius_x);
      sum.x += m.value[i] * v;
      sum.y += m.value[m.width + m.height + i] * v;
    }
    return sum;
  }

  template <typename Window, typename FetchRowValue, typename Fetch>
  __device__ static int column(const LaunchParams &p, const MaskParams &m, const Rounding &rounding,
                               FetchRowValue row_value, Fetch fetch) {
    int x = 0, y = 0;
    for (int j = 0; j < m.height; j++) {
      const RowValue v = row_value(j - m.radius_y);
      x += m.value[m.width + j] * v.x;
      y += m.value[2 * m.width + m.height + j] * v.y;
    }
    return Gradient2D::combine(p, rounding, x, y, fetch);
  }
};

// The largest of the eight compass responses, value[0] * (three neighbours in a row) + value[1] * (all eight).
struct Compass3x3 {
  template <typename Window, typename Fetch>
  __device__ static int evaluate(const LaunchParams &p, const MaskParams &m, const Rounding &rounding, Fetch fetch) {
    // Twice around, but for six: the last three samples of each place make a response from the third one on.
    int all = 0, largest = 0, before = 0, last = 0;
#pragma unroll 1
    for (int k = 0; k < 10; k++) {
      const int dx = k % 4 == 3 ? (k % 8 < 4 ? 1 : -1) : ((k + 1) % 8 < 4 ? k % 4 - 1 : 1 - k % 4);
      const int dy = k % 4 == 3 ? 0 : (k % 8 < 4 ? -1 : 1);
      const int v = fetch(dx, dy);
      if (k < 8) all += v;
      if (k >= 2) largest = max(largest, before + last + v);
      before = last;
      last = v;
    }
    return round_sum(p, rounding, m.value[0] * largest + m.value[1] * all, fetch);
  }
};

// The smallest or largest sample within the structuring element: the largest of samples that are xored with
// MaskParams::flip, which gives the smallest where these are all ones.
struct Extremum {
  using RowValue = uint16_t;

  template <typename Window, typename FetchRow>
  __device__ static RowValue row(const MaskParams &m, FetchRow fetch) {
    int v = 0;
    for (int i = 0; i < m.width; i++) v = max(v, fetch(i - m.radius_x) ^ m.flip);
    return static_cast<RowValue>(v ^ m.flip);
  }

  template <typename Window, typename FetchRowValue, typename Fetch>
  __device__ static int column(const LaunchParams &, const MaskParams &m, const Rounding &, FetchRowValue row_value,
                               Fetch) {
    int v = 0;
    for (int j = 0; j < m.height; j++) v = max(v, row_value(j - m.radius_y) ^ m.flip);
    return v ^ m.flip;
  }

  template <typename Window, typename Fetch>
  __device__ static int evaluate(const LaunchParams &, const MaskParams &m, const Rounding &, Fetch fetch) {
    const Window w(m);
    int v = 0;
    if (m.has_element && !m.element_words) {
#pragma unroll 1
      for (int j = 0; j < w.height; j++) {
        const int first = (m.value[j] & 0xffff) - w.radius_x, end = first + (m.value[j] >> 16);
#pragma unroll 1
        for (int i = first; i < end; i++) v = max(v, fetch(i, j - w.radius_y) ^ m.flip);
      }
      return v ^ m.flip;
    }
#pragma unroll 1
    for (int j = 0; j < w.height; j++)
#pragma unroll Window::kRowUnroll
      for (int i = 0; i < w.width; i++) {
        if (m.has_element && !(m.value[j * m.element_words + i / 32] >> i % 32 & 1)) continue;
        v = max(v, fetch(i - w.radius_x, j - w.radius_y) ^ m.flip);
      }
    return v ^ m.flip;
  }
};

// The mean of samples weighted by their distance and their difference from the middle.
struct Bilateral {
  template <typename Window, typename Fetch>
  __device__ static int evaluate(const LaunchParams &, const MaskParams &m, const Rounding &rounding, Fetch fetch) {
    const Window w(m);
    const RangeParams::Table &table = m.range.of_max(rounding.max);
    const int middle = fetch(0, 0);
    uint64_t n = 0, d = 0;
#pragma unroll 1
    for (int j = 0; j < w.height; j++)
#pragma unroll 1
      for (int i = 0; i < w.width; i++) {
        const int v = fetch(i - w.radius_x, j - w.radius_y);
        const uint32_t weight = static_cast<uint32_t>(m.value[j * w.width + i]) * m.range.weight(table, v - middle);
        d += weight;
        n += uint64_t{weight} * static_cast<uint32_t>(v);
      }
    return rounded_mean(n, d);
  }
};

// The median, found bit by bit: the largest value that at most half of the window's samples are less than.
struct Median {
  template <typename Window, typename Fetch>
  __device__ static int evaluate(const LaunchParams &, const MaskParams &m, const Rounding &rounding, Fetch fetch) {
    const Window w(m);
    const int half = w.width * w.height / 2;
    int median = 0;
    for (int bit = (rounding.max + 1) / 2; bit; bit /= 2) {
      int below = 0;
#pragma unroll 1
      for (int j = 0; j < w.height; j++)
#pragma unroll Window::kRowUnroll
        for (int i = 0; i < w.width; i++) below += fetch(i - w.radius_x, j - w.radius_y) < (median | bit);
      if (below <= half) median |= bit;
    }
    return median;
  }
};

}  // namespace cudaconv::methods
