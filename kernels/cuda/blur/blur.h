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
  int32_t tile_columns;             // coarse samples of a row that a block reduces
  int32_t reduce[4 * kMostFactor];  // the last three are 0
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
  const int16_t *from;  // sample i of `span` and line n is at i * pitch + n
  int16_t *to;          // see BlurLineParams::along_rows
  int64_t pitch, to_pitch;
  CoarseSpan span;
  int32_t first, outputs;  // results of a line, centred on the samples of span.line from index `first` on
  int32_t count;           // of lines

  // The sample at index `index` of span.line: clamped to the line, then to the samples that exist. Samples that do
  // not exist have weights of 0.
  __device__ int64_t at(int index) const {
    index = min(max(index, 0), span.line.count - 1) - span.first;
    return min(max(index, 0), span.count - 1) * pitch;
  }
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

// Results and lines of a warp in the kernels that blur.
constexpr int kBlurThreads = 256;
constexpr int kBlurOutputs = 8, kBlurLines = 32;
constexpr int kBlurTile = kBlurThreads / 32 * kBlurOutputs;  // outputs of a block, along the lines

}  // namespace cudaconv::blur
