// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Separable masks that are too long for any tile, of frames of any layout: sums along rows go to a frame of 32-bit
// integers, then these are summed along columns. They make the same bytes as Factored of methods/operations.cuh. If all
// coefficients are equal, the kernels use running sums.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/launch.cuh"
#include "plan/area.h"

namespace cudaconv::long_masks {

constexpr int kMostLongTaps = 1501;
constexpr int kLongThreads = 256;
constexpr int kLongResults = 8;   // results of a thread, side by side or one below the other
constexpr int kLongColumns = 32;  // pixels across a tile of the kernel for columns
constexpr int kLongRows = kLongThreads / kLongColumns * kLongResults;
constexpr int kLongSegment = kLongThreads * kLongResults;  // pixels of a row that a block sums

struct LongParams : FrameParams {
  int32_t *sums;                     // row sums, a plane for each channel
  int64_t first_sum[kMaxParts];      // where the sums of a part begin; a plane has height * width sums
  int32_t first_segment[kMaxParts];  // number of a part's first block in the kernel for rows
  PixelRect summed[kMaxParts];       // the pixels whose row sums that kernel makes
  int32_t row_taps, column_taps, row_shift;
  int32_t strip;  // rows of a thread if all coefficients are equal
  int32_t row[kMostLongTaps], column[kMostLongTaps];
};

// Adds the products of kLongResults neighbouring windows of a line to their sums: load(i) returns value i of the line,
// counted from the first value of the first window.
template <typename Load>
__device__ inline void sum_windows(const int32_t *coefficient, int taps, Load load, int64_t (&sum)[kLongResults]) {
  int weight[kLongResults] = {};
#pragma unroll 1
  for (int tap0 = 0; tap0 < taps + kLongResults - 1; tap0 += kLongResults) {
#pragma unroll
    for (int u = 0; u < kLongResults; u++) {
      const int tap = tap0 + u;
      if (tap >= taps + kLongResults - 1) break;
      weight[u] = tap < taps ? coefficient[tap] : 0;
      const int v = load(tap);
#pragma unroll
      for (int i = 0; i < kLongResults; i++)
        sum[i] += static_cast<int64_t>(weight[(u - i + kLongResults) % kLongResults]) * v;
    }
  }
}

// Replaces every value by its prefix sum. `partial` has room for two numbers of each thread. All threads of the block
// call this together.
__device__ inline void scan_line(int32_t *values, int length, int32_t *partial) {
  // A share is odd, so that the threads of a warp read from different banks.
  const int thread = static_cast<int>(threadIdx.x), share = (length + kLongThreads - 1) / kLongThreads | 1;
  const int begin = min(thread * share, length), end = min(begin + share, length);
  int32_t sum = 0;
  for (int i = begin; i < end; i++) sum += values[i];
  partial[thread] = sum;
  int from = 0;
  for (int distance = 1; distance < kLongThreads; distance *= 2, from = kLongThreads - from) {
    __syncthreads();
    const int32_t before = thread >= distance ? partial[from + thread - distance] : 0;
    partial[kLongThreads - from + thread] = partial[from + thread] + before;
  }
  __syncthreads();
  sum = thread ? partial[from + thread - 1] : 0;
  for (int i = begin; i < end; i++) {
    sum += values[i];
    values[i] = sum;
  }
}

// Sums along a segment of a row, channel by channel, from samples in shared memory.
template <bool kUniform>
__global__ void __launch_bounds__(kLongThreads) long_rows_kernel(const __grid_constant__ LongParams p) {
  int i = 0;
  const int block = static_cast<int>(blockIdx.x);
  while (i + 1 < p.parts && block >= p.first_segment[i + 1]) i++;
  const PartParams &part = p.part[i];
  const PixelRect &summed = p.summed[i];
  const int segments = (summed.x1 - summed.x0 + kLongSegment - 1) / kLongSegment;
  const int y = summed.y0 + (block - p.first_segment[i]) / segments;
  const int x0 = summed.x0 + (block - p.first_segment[i]) % segments * kLongSegment;
  const int width = min(kLongSegment, summed.x1 - x0), length = width + p.row_taps - 1;
  int32_t *const samples = shared_memory<int32_t>();
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    if (part.channel[c].action != Action::Filter) continue;
    const SourceReader source(p, part, c, false);
    __syncthreads();  // the previous channel has been read
    for (int s = thread; s < length; s += kLongThreads) samples[s] = source.at(x0 - p.row_taps / 2 + s, y);
    __syncthreads();
    if (kUniform) {
      scan_line(samples, length, samples + kLongSegment + kMostLongTaps);
      __syncthreads();
    }
    int32_t *const out = p.sums + p.first_sum[i] + (int64_t{c} * part.height + y) * part.width + x0;
    const auto rounded = [&](int64_t sum) {
      if (p.row_shift) sum = (sum + (int64_t{1} << (p.row_shift - 1))) >> p.row_shift;
      return static_cast<int32_t>(sum);
    };
    if (kUniform) {
      for (int x = thread; x < width; x += kLongThreads)
        out[x] = rounded(int64_t{p.row[0]} * (samples[x + p.row_taps - 1] - (x ? samples[x - 1] : 0)));
      continue;
    }
    const int first = thread * kLongResults;
    if (first >= width) continue;
    int64_t sum[kLongResults] = {};
    sum_windows(
        p.row, p.row_taps, [&](int s) { return samples[min(first + s, length - 1)]; }, sum);
#pragma unroll
    for (int r = 0; r < kLongResults; r++)
      if (first + r < width) out[first + r] = rounded(sum[r]);
  }
}

// A column of row sums, extended above and below by the border mode.
class SumColumn {
 public:
  __device__ SumColumn(const LongParams &p, int part, int x, int c)
      : sums_(p.sums + p.first_sum[part] + int64_t{c} * p.part[part].height * p.part[part].width + x),
        border_(p.border),
        width_(p.part[part].width),
        height_(p.part[part].height) {
    int64_t outside = 0;
    if (border_ == Border::Constant)
      for (int i = 0; i < p.row_taps; i++) outside += int64_t{p.row[i]} * p.part[part].channel[c].border_value;
    if (p.row_shift) outside = (outside + (int64_t{1} << (p.row_shift - 1))) >> p.row_shift;
    outside_ = static_cast<int>(outside);
  }
  __device__ int at(int y) const {
    y = border_index(border_, y, height_);
    return y < 0 ? outside_ : sums_[int64_t{y} * width_];
  }
  // The sum of `count` rows from row y on.
  __device__ int64_t sum(int y, int count) const {
    int64_t sum = 0;
    const int end = y + count, inside = min(end, height_);
    for (; y < min(end, 0); y++) sum += at(y);
    const int32_t *from = sums_ + int64_t{y} * width_;
#pragma unroll 8
    for (; y < inside; y++, from += width_) sum += *from;
    for (; y < end; y++) sum += at(y);
    return sum;
  }

 private:
  const int32_t *sums_;
  Border border_;
  int width_, height_, outside_;
};

__device__ inline int round_long(const LongParams &p, const PartParams &part, int x, int y, int c,
                                 const Rounding &rounding, int64_t sum) {
  if (p.has_gain) {
    const int centre =
        ChannelReader(part, part.source, part.source_pitch, c).at(min(x, part.width - 1), min(y, part.height - 1));
    return round_to_sample(apply_gain(sum, p.sum_shift, p.sum_gain, p.center_gain, centre), rounding);
  }
  if (rounding.wide) return round_to_sample(sum, rounding);
  return round_to_sample(static_cast<int32_t>(sum), rounding);
}

// Sums along columns and writes the results of a pixel and of those below it, channel by channel. One thread does all
// channels of a pixel, since formats of bit fields are written field by field.
template <bool kUniform>
__global__ void __launch_bounds__(kLongThreads) long_columns_kernel(const __grid_constant__ LongParams p) {
  const int rows_of_thread = kUniform ? p.strip : kLongResults;
  const Tile tile = locate_tile(p, kLongThreads / kLongColumns * rows_of_thread);
  const PartParams &part = tile.part;
  const int number = part.number;
  const int x = tile.x0 + static_cast<int>(threadIdx.x % kLongColumns);
  const int y0 = tile.y0 + static_cast<int>(threadIdx.x / kLongColumns) * rows_of_thread;
  const int radius = p.column_taps / 2, inside_x = min(x, part.width - 1);
  if (y0 >= part.height) return;  // returns as a whole warp
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    const bool filters = part.channel[c].action == Action::Filter;
    const SumColumn column(p, number, inside_x, c);
    const auto write = [&](int y, int64_t sum) {
      make_sample(p, part, x, y, c,
                  [&](const Rounding &rounding) { return round_long(p, part, x, y, c, rounding, sum); });
    };
    if (kUniform) {
      int64_t sum = filters ? column.sum(y0 - radius, p.column_taps) : 0;
      for (int y = y0; y < min(y0 + rows_of_thread, part.height); y++) {
        write(y, sum * p.column[0]);
        if (filters) sum += column.at(y + 1 + radius) - column.at(y - radius);
      }
    } else {
      int64_t sum[kLongResults] = {};
      if (filters)
        sum_windows(
            p.column, p.column_taps, [&](int s) { return column.at(y0 - radius + s); }, sum);
#pragma unroll
      for (int r = 0; r < kLongResults; r++)
        if (y0 + r < part.height) write(y0 + r, sum[r]);
    }
  }
}

}  // namespace cudaconv::long_masks
