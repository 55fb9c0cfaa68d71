// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Parameters of the kernels for wide Gaussians, see plan/decimation.h, and the coarse samples that they pass on.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/launch_params.h"
#include "plan/decimation.h"
#include "plan/masks.h"

namespace cudaconv::blur {

// Most taps of the coarse blur: for the largest side at the smallest factor, and some that least squares add.
constexpr int kMostCoarseTaps = kMostTaps / 2 + 8;
constexpr int kMostFactor = 8;

// A part of a line of coarse samples: `count` samples of `line` from its index `first` on.
struct CoarseSpan {
  CoarseLine line;
  int32_t first, count;
};

// The coarse samples of a part, less Decimation::offset: 16-bit integers with interleaved channels.
struct CoarseBuffers {
  // Reduced samples, columns `x` and rows `y`: pixel (column, row) is at column * reduced_pitch + row, since the next
  // step runs along rows.
  int16_t *reduced;
  // rows_blurred: blurred along rows, `columns` coarse samples from `first_column` on (numbered as they are expanded),
  // in the rows of `y`. blurred: blurred along columns, too, `rows` rows from `first_row` on.
  int16_t *rows_blurred, *blurred;
  int64_t reduced_pitch, pitch;  // samples
  CoarseSpan x, y;
  int32_t first_column, columns, first_row, rows;
};

struct BlurParams : FrameParams {
  CoarseBuffers coarse[kMaxParts];
  int32_t log_factor;
  int32_t rows_shift, columns_shift, expand_shift;
  // Not 0: sums become samples by this shift, if they include half of the divisor. 0: by round_sum().
  int32_t result_shift;
  int32_t tile_rows;                // coarse rows that a block reduces
  int32_t reduce[4 * kMostFactor];  // the last three are 0
  // [t][g][k]: four weights, a byte each, for coarse row k. They are for four of the D rows of samples between two
  // coarse rows: the first ones (g = 0) or the others (g = 1). A weight is the sum of its bytes in both t.
  uint32_t reduce_bytes[2][2][4];
  bool words;            // rows of the source are words of samples
  int32_t reduce_shift;  // position of 16-bit samples in their words
  uint32_t reduce_mask;  // their bits
  int32_t expand[kMostFactor][4];
  int32_t offset;             // see Decimation
  int32_t offset_of_results;  // the same in the sums of the last step
  // Position and mask of a sample in its 16-bit container. Samples of dense planes are read and written as words.
  int32_t sample_shift;
  uint32_t sample_mask;
  bool deep;  // in 16-bit containers
};

// The lines of coarse samples of a part that are blurred: rows, or columns.
struct BlurredLines {
  const int16_t *from;  // sample i of line n is at i * pitch + n
  int16_t *to;          // see BlurLineParams::along_rows
  int32_t pitch;
  int64_t to_pitch;
  int32_t samples;         // of a line; the ones before and behind them have the values of the first and last
  int32_t first, outputs;  // results of a line, centred on the samples from index `first` on
  int32_t count;           // of lines
};

// Parameters of the kernels that blur: apart, since each launch copies its parameters.
struct BlurLineParams : BlurParams {
  BlurredLines lines[kMaxParts];
  // Whether result i of line n, which is a row of a channel, is at n / channels * to_pitch + i * channels + n %
  // channels. Else it is at i * to_pitch + n.
  bool along_rows;
  int32_t radius;                           // in coarse samples
  int32_t shift;                            // of the sums
  int32_t weight[kMostCoarseTaps / 2 + 1];  // up to the middle one
};

constexpr int kBlurThreads = 256;
// Blocks of reduce_kernel(): how many a multiprocessor holds, and samples of a row and coarse rows of one.
constexpr int kReduceBlocks = 3, kReducedSamples = 1024, kLeastReducedRows = 5, kMostReducedRows = 21;

CUDACONV_HOST_DEVICE constexpr int reduced_columns(int log_factor, int channels) {
  return kReducedSamples / (channels << log_factor) - 3;
}
// Rows of samples of a block, for its coarse rows and three more.
CUDACONV_HOST_DEVICE constexpr int reduce_rows_read(int tile_rows) {
  return (tile_rows + 3) * kMostFactor;
}

// Results and lines of a warp in the kernels that blur. Blocks are small, since a coarse frame has few lines.
constexpr int kLineThreads = 64, kBlurOutputs = 8, kBlurLines = 32;
constexpr int kBlurTile = kLineThreads / 32 * kBlurOutputs;  // outputs of a block, along the lines

}  // namespace cudaconv::blur
