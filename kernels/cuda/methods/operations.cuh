// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The operations: evaluate() makes one sample from the window around a pixel. fetch(dx, dy) returns the source sample
// at that offset from the pixel; the method decides where it is read from. Loops along a row are unrolled by kUnroll.
//
// The method separable takes two steps: row_value() for each row of the window, then evaluate_column().
#pragma once

#include "cuda/device/range_params.h"
#include "cuda/device/sample.cuh"

namespace cudaconv::methods {

struct MaskParams {
  Op op;
  bool factored;          // `value` holds factors
  int32_t width, height;  // size of the window in pixels
  int32_t radius_x, radius_y;
  int32_t row_shift;  // see IntegerMask
  int32_t flip;       // of extrema, see extremum() in methods/operations.cuh
  // One of these:
  // - the mask row by row, followed by the second mask of a magnitude;
  // - the row factor, the column factor, and the same of the second mask;
  // - two words for each row of a structuring element: the run from its first to its last member, first | length << 16,
  //   and the members: bit i % 32 for column i. Rows without gaps have ones only.
  int32_t value[kMaxMaskValues + 1];
  RangeParams range;  // Op::Bilateral
};

// Parameters of the kernels of methods.cuh.
struct LaunchParams : FrameParams {
  MaskParams mask;
  MaskParams *stored_mask;  // method=global: the mask in global memory
  int32_t side;             // pixels of a thread, across and down; see filter_direct()
};

// The sum of all coefficients times their samples.
template <int kUnroll, typename Fetch>
__device__ inline int64_t linear(const MaskParams &m, Fetch fetch) {
  int64_t sum = 0;
#pragma unroll 1
  for (int j = 0; j < m.height; j++)
#pragma unroll kUnroll
    for (int i = 0; i < m.width; i++)
      sum += static_cast<int64_t>(m.value[j * m.width + i]) * fetch(i - m.radius_x, j - m.radius_y);
  return sum;
}

// The sum of a row of a separable mask, rounded if the mask has a row_shift.
template <int kUnroll, typename FetchRow>
__device__ inline int64_t factored_row(const MaskParams &m, FetchRow fetch) {
  int64_t sum = 0;
#pragma unroll kUnroll
  for (int i = 0; i < m.width; i++) sum += static_cast<int64_t>(m.value[i]) * fetch(i - m.radius_x);
  return m.row_shift ? (sum + (int64_t{1} << (m.row_shift - 1))) >> m.row_shift : sum;
}

// The sum of a column of row sums.
template <int kUnroll, typename RowValue>
__device__ inline int64_t factored_column(const MaskParams &m, RowValue row_value) {
  int64_t sum = 0;
#pragma unroll kUnroll
  for (int j = 0; j < m.height; j++) sum += static_cast<int64_t>(m.value[m.width + j]) * row_value(j - m.radius_y);
  return sum;
}

// The magnitude sqrt(x^2 + y^2) or |x| + |y| of the sums of two masks.
template <int kUnroll, typename Fetch>
__device__ inline int gradient(Norm norm, const MaskParams &m, Fetch fetch) {
  int x = 0, y = 0;
#pragma unroll 1
  for (int j = 0; j < m.height; j++)
#pragma unroll kUnroll
    for (int i = 0; i < m.width; i++) {
      const int v = fetch(i - m.radius_x, j - m.radius_y);
      x += m.value[j * m.width + i] * v;
      y += m.value[m.width * m.height + j * m.width + i] * v;
    }
  return magnitude(norm, x, y);
}

// The largest of the eight compass responses, value[0] * (three neighbours in a row) + value[1] * (all eight).
template <typename Fetch>
__device__ inline int compass3x3(const MaskParams &m, Fetch fetch) {
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
  return m.value[0] * largest + m.value[1] * all;
}

// The smallest or largest sample within the structuring element: the largest of samples that are xored with
// MaskParams::flip, which gives the smallest where these are all ones.
template <int kUnroll, typename Fetch>
__device__ inline int extremum(const MaskParams &m, Fetch fetch) {
  int v = 0;
#pragma unroll 1
  for (int j = 0; j < m.height; j++) {
    const int first = m.value[2 * j] & 0xffff, end = first + (m.value[2 * j] >> 16);
    const uint32_t members = static_cast<uint32_t>(m.value[2 * j + 1]);
#pragma unroll kUnroll
    for (int i = first; i < end; i++)
      if (members >> i % 32 & 1) v = max(v, fetch(i - m.radius_x, j - m.radius_y) ^ m.flip);
  }
  return v ^ m.flip;
}

// The median, found bit by bit: the largest value that at most half of the window's samples are less than.
template <int kUnroll, typename Fetch>
__device__ inline int median(const MaskParams &m, const Rounding &rounding, Fetch fetch) {
  const int half = m.width * m.height / 2;
  int median = 0;
  for (int bit = (rounding.max + 1) / 2; bit; bit /= 2) {
    int below = 0;
#pragma unroll 1
    for (int j = 0; j < m.height; j++)
#pragma unroll kUnroll
      for (int i = 0; i < m.width; i++) below += fetch(i - m.radius_x, j - m.radius_y) < (median | bit);
    if (below <= half) median |= bit;
  }
  return median;
}

// The mean of samples weighted by their distance and their difference from the middle.
template <typename Fetch>
__device__ inline int bilateral_mean(const MaskParams &m, const Rounding &rounding, Fetch fetch) {
  const RangeParams::Table &table = m.range.of_max(rounding.max);
  const int middle = fetch(0, 0);
  uint64_t n = 0, d = 0;
#pragma unroll 1
  for (int j = 0; j < m.height; j++)
#pragma unroll 1
    for (int i = 0; i < m.width; i++) {
      const int v = fetch(i - m.radius_x, j - m.radius_y);
      const uint32_t weight = static_cast<uint32_t>(m.value[j * m.width + i]) * m.range.weight(table, v - middle);
      d += weight;
      n += uint64_t{weight} * static_cast<uint32_t>(v);
    }
  return rounded_mean(n, d);
}

template <typename Fetch>
__device__ inline int round_sum(const LaunchParams &p, const Rounding &rounding, int64_t sum, Fetch fetch) {
  return cudaconv::round_sum(p, rounding, sum, p.has_gain && p.center_gain ? fetch(0, 0) : 0);
}

template <int kUnroll, typename Fetch>
__device__ inline int evaluate(const LaunchParams &p, const MaskParams &m, const Rounding &rounding, Fetch fetch) {
  int64_t sum;
  switch (m.op) {
    case Op::Minimum:
    case Op::Maximum:
      return extremum<kUnroll>(m, fetch);
    case Op::Median:
      return median<kUnroll>(m, rounding, fetch);
    case Op::Bilateral:
      return bilateral_mean(m, rounding, fetch);
    case Op::Magnitude:
      sum = gradient<kUnroll>(p.norm, m, fetch);
      break;
    case Op::Compass:
      sum = compass3x3(m, fetch);
      break;
    default:
      if (m.factored)
        sum = factored_column<1>(
            m, [&](int dy) { return factored_row<kUnroll>(m, [&](int dx) { return fetch(dx, dy); }); });
      else
        sum = linear<kUnroll>(m, fetch);
  }
  return round_sum(p, rounding, sum, fetch);
}

// A row of a window: its sum, its extremum, or the sums of both masks of a magnitude in the halves of the result.
template <typename FetchRow>
__device__ inline int64_t row_value(const MaskParams &m, FetchRow fetch) {
  if (m.op == Op::Linear) return factored_row<4>(m, fetch);
  int x = 0, y = 0;
  for (int i = 0; i < m.width; i++) {
    const int v = fetch(i - m.radius_x);
    if (m.op == Op::Magnitude) {
      x += m.value[i] * v;
      y += m.value[m.width + m.height + i] * v;
    } else {
      x = max(x, v ^ m.flip);
    }
  }
  return static_cast<int64_t>(uint64_t{static_cast<uint32_t>(y)} << 32 | static_cast<uint32_t>(x));
}

template <typename RowValue, typename Fetch>
__device__ inline int evaluate_column(const LaunchParams &p, const MaskParams &m, const Rounding &rounding,
                                      RowValue row_value, Fetch fetch) {
  if (m.op == Op::Linear) return round_sum(p, rounding, factored_column<4>(m, row_value), fetch);
  int x = 0, y = 0;
  for (int j = 0; j < m.height; j++) {
    const int64_t v = row_value(j - m.radius_y);
    if (m.op == Op::Magnitude) {
      x += m.value[m.width + j] * static_cast<int>(v);
      y += m.value[2 * m.width + m.height + j] * static_cast<int>(v >> 32);
    } else {
      x = max(x, static_cast<int>(v));
    }
  }
  return m.op == Op::Magnitude ? round_sum(p, rounding, magnitude(p.norm, x, y), fetch) : x ^ m.flip;
}

}  // namespace cudaconv::methods
