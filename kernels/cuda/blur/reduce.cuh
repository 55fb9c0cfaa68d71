// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel that reduces samples of any layout to coarse samples, the first step of plan/decimation.h, as reduce() of
// cpu/blur.cpp does it. Coarse sample m is made of the 4D - 3 samples about m * D, in both directions. Example, D = 2:
// the weights are 1 4 6 4 1, and coarse sample 10 is made of samples 18 to 22.
#pragma once

#include "cuda/blur/blur.h"
#include "cuda/device/sample.cuh"
#include "cuda/launch.cuh"

namespace cudaconv::blur {

// Coarse rows of a block, and rows of samples for these and three more. Blocks of 9 and 13 rows are too few to share
// the work well: kernel-bench --table=sizes --only=sigma, H200.
constexpr int kReducedRows = 5, kReduceRows = (kReducedRows + 3) * kMostFactor;
constexpr int kReduceAtOnce = 4;  // rows of samples that a thread loads at once

// Reduces a column of samples and calls store(row, sum) for `rows` coarse rows. load(i) returns sample i of the column,
// counted from the first one in the window of the first coarse row. A sample counts for four coarse rows.
template <typename Load, typename Store>
__device__ inline void reduce_column(const BlurParams &p, int rows, Load load, Store store) {
  const int factor = 1 << p.log_factor;
  uint32_t sum[4] = {};
#pragma unroll 1
  for (int first = 0; first < (rows + 3) * factor; first += kReduceAtOnce) {
    int v[kReduceAtOnce];
#pragma unroll
    for (int u = 0; u < kReduceAtOnce; u++) v[u] = load(first + u);
#pragma unroll
    for (int u = 0; u < kReduceAtOnce; u++) {
      const int phase = (first + u) & (factor - 1), row = ((first + u) >> p.log_factor) - 3;
#pragma unroll
      for (int k = 0; k < 4; k++) sum[k] += static_cast<uint32_t>(p.reduce[(3 - k) * factor + phase] * v[u]);
      if (phase < factor - 1) continue;
      if (row >= 0 && row < rows) store(row, sum[0]);
#pragma unroll
      for (int k = 0; k < 4; k++) sum[k] = k < 3 ? sum[k + 1] : 0;
    }
  }
}

// Reduces samples to a tile of coarse samples: column sums go to shared memory, sums of these along rows to the frame.
__global__ void __launch_bounds__(kBlurThreads) reduce_kernel(const __grid_constant__ BlurParams p) {
  const Tile tile = locate_tile(p, 1);  // of coarse samples
  const PartParams &part = tile.part;
  const CoarseBuffers &coarse = p.coarse[part.number];
  const int channels = part.channels, factor = 1 << p.log_factor, thread = static_cast<int>(threadIdx.x);
  const int column0 = tile.x0 * p.tile_columns, row0 = tile.y0 * kReducedRows;
  const int columns = min(p.tile_columns, coarse.x.count - column0), rows = min(kReducedRows, coarse.y.count - row0);
  // The first sample in the window of the first coarse sample.
  const int x0 = (coarse.x.line.first + coarse.x.first + column0 - 2) * factor + 2;
  const int y0 = (coarse.y.line.first + coarse.y.first + row0 - 2) * factor + 2;
  const int samples = ((columns + 3) * factor - 3) * channels;
  // The rows of samples, -1 for the border's value, then the sums: a row for each coarse row.
  int32_t *const listed = shared_memory<int32_t>();
  int16_t *const sums = reinterpret_cast<int16_t *>(listed + kReduceRows);
  if (thread < kReduceRows) listed[thread] = border_index(p.border, y0 + thread, part.height);
  __syncthreads();
  for (int s = thread; s < samples; s += kBlurThreads) {
    const int c = s % channels, x = border_index(p.border, x0 + s / channels, part.width);
    const auto store = [&](int row, uint32_t v) {
      const uint32_t sum = p.rows_shift > 0 ? (v + (1u << (p.rows_shift - 1))) >> p.rows_shift : v << -p.rows_shift;
      sums[row * samples + s] = static_cast<int16_t>(static_cast<int>(sum) - p.offset);
    };
    const ChannelReader reader(part, part.source, part.source_pitch, c);
    const auto load = [&](int i) {
      const int y = listed[i], v = reader.at(max(x, 0), max(y, 0));
      return x < 0 || y < 0 ? part.channel[c].border_value : v;
    };
    reduce_column(p, rows, load, store);
  }
  __syncthreads();

  int16_t *const reduced = coarse.reduced + column0 * coarse.reduced_pitch + row0 * channels;
  const int items = rows * channels;  // of a column
  for (int i = thread; i < columns * items; i += kBlurThreads) {
    const int column = i / items, item = i % items;
    const int16_t *const in = sums + item / channels * samples + column * factor * channels + item % channels;
    int sum = 1 << (p.columns_shift - 1);
#pragma unroll 4
    for (int k = 0; k < 4 * factor - 3; k++) sum += p.reduce[k] * in[k * channels];
    reduced[column * coarse.reduced_pitch + item] = static_cast<int16_t>(sum >> p.columns_shift);
  }
}

}  // namespace cudaconv::blur
