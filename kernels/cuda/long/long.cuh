// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Separable masks that are too long for any tile, of frames of any layout: sums along rows go to a frame of 32-bit
// integers, then these are summed along columns. They make the same bytes as factored_row() and
// factored_column() of methods/operations.cuh.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/launch.cuh"
#include "plan/area.h"
#include "plan/masks.h"

namespace cudaconv::long_masks {

constexpr int kLongThreads = 256;
constexpr int kLongResults = 8;   // results of a thread, side by side or one below the other
constexpr int kLongColumns = 32;  // pixels across a tile of the kernel for columns
constexpr int kLongRows = kLongThreads / kLongColumns * kLongResults;
constexpr int kLongSegment = kLongThreads * kLongResults;  // pixels of a row that a block sums

struct LongParams : FrameParams {
  int32_t *sums;                             // row sums, a plane for each channel
  int64_t first_sum[kMaxParts];              // where the sums of a part begin; a plane has height * width sums
  PixelRect summed[kMaxParts];               // the pixels whose row sums that kernel makes
  int32_t outside[kMaxParts][kMaxChannels];  // border=constant: the sum of a row outside the frame
  int32_t row_taps, column_taps, row_shift;
  int32_t row[kMostTaps], column[kMostTaps];
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

// Sums along a segment of a row, channel by channel, from samples in shared memory.
__global__ void __launch_bounds__(kLongThreads) long_rows_kernel(const __grid_constant__ LongParams p) {
  const Tile block = locate_tile(p, 1);  // of segments
  const PartParams &part = block.part;
  const PixelRect &summed = p.summed[part.number];
  const int y = summed.y0 + block.y0, x0 = summed.x0 + block.x0 * kLongSegment;
  const int width = min(kLongSegment, summed.x1 - x0), length = width + p.row_taps - 1;
  int32_t *const samples = shared_memory<int32_t>();
  const int thread = static_cast<int>(threadIdx.x), first = thread * kLongResults;
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    if (part.channel[c].action != Action::Filter) continue;
    const SourceReader source(p, part, c, false);
    __syncthreads();  // the previous channel has been read
    for (int s = thread; s < length; s += kLongThreads) samples[s] = source.at(x0 - p.row_taps / 2 + s, y);
    __syncthreads();
    if (first >= width) continue;
    int64_t sum[kLongResults] = {};
    sum_windows(
        p.row, p.row_taps, [&](int s) { return samples[min(first + s, length - 1)]; }, sum);
    int32_t *const out = p.sums + p.first_sum[part.number] + (int64_t{c} * part.height + y) * part.width + x0 + first;
    const int64_t half = p.row_shift ? int64_t{1} << (p.row_shift - 1) : 0;
#pragma unroll
    for (int r = 0; r < kLongResults; r++)
      if (first + r < width) out[r] = static_cast<int32_t>((sum[r] + half) >> p.row_shift);
  }
}

// Sums along columns and writes the results of a pixel and of those below it, channel by channel. One thread does all
// channels of a pixel, since formats of bit fields are written field by field.
__global__ void __launch_bounds__(kLongThreads) long_columns_kernel(const __grid_constant__ LongParams p) {
  const Tile tile = locate_tile(p, kLongRows);
  const PartParams &part = tile.part;
  // With regions, tiles reach beyond the row sums. Pixels there get any result: it is not copied to the frame.
  const PixelRect &summed = p.summed[part.number];
  const int x = tile.x0 + static_cast<int>(threadIdx.x % kLongColumns);
  const int inside_x = max(summed.x0, min(x, summed.x1 - 1));
  const int y0 = tile.y0 + static_cast<int>(threadIdx.x / kLongColumns) * kLongResults;
  if (y0 >= part.height) return;  // returns as a whole warp
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    const int32_t *const column = p.sums + p.first_sum[part.number] + int64_t{c} * part.height * part.width + inside_x;
    int64_t sum[kLongResults] = {};
    const auto load = [&](int s) {
      const int y = border_index_no_div(p.border, y0 - p.column_taps / 2 + s, part.height);
      return y < 0 ? p.outside[part.number][c] : column[int64_t{max(summed.y0, min(y, summed.y1 - 1))} * part.width];
    };
    if (part.channel[c].action == Action::Filter) sum_windows(p.column, p.column_taps, load, sum);
#pragma unroll 1
    for (int r = 0; r < kLongResults; r++) {
      const int y = y0 + r;
      if (y >= part.height) break;
      make_sample(p, part, x, y, c, [&](const Rounding &rounding) {
        const ChannelReader source(part, part.source, part.source_pitch, c);
        return round_sum(p, rounding, sum[0], p.has_gain ? source.at(inside_x, y) : 0);
      });
#pragma unroll
      for (int i = 0; i + 1 < kLongResults; i++) sum[i] = sum[i + 1];
    }
  }
}

}  // namespace cudaconv::long_masks
