// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the kernels for wide Gaussians take, see plan/decimation.h, and the coarse samples that lie between them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/launch_params.h"
#include "plan/decimation.h"

namespace cudaconv {

// Of a blur: a side of 1501 at the least factor, and what the least squares add.
constexpr int kMostCoarseTaps = 1501 / 2 + 8;
constexpr int kMostFactor = 8;

// A line of coarse samples, `count` of those of `line` from its index `first` on.
struct CoarseSpan {
  CoarseLine line;
  int32_t first, count;
};

// Coarse samples are 16-bit integers; channels are interleaved.
struct CoarseBuffers {
  // From samples, columns of `x` and rows of `y`: pixel (column, row) at column * reduced_pitch + row, as what comes
  // next runs along rows.
  int16_t *reduced;
  // Blurred along rows, then along columns too: `columns` coarse samples from `first_column` on, counted as they are
  // expanded, in the rows of `y`, or `rows` from `first_row` on.
  int16_t *rows_blurred, *blurred;
  int64_t reduced_pitch, pitch;  // samples
  CoarseSpan x, y;
  int32_t first_column, columns, first_row, rows;
  int32_t first_tile[3], tiles_x[3];  // of the kernels that reduce, blur rows and blur columns
};

struct BlurParams : FrameParams {
  CoarseBuffers coarse[kMaxParts];
  int32_t log_factor, radius;  // radius of the blur, coarse samples
  int32_t rows_shift, columns_shift, expand_shift;
  int32_t result_shift;             // from sums of rows of results to samples; 0 where it takes more than that
  int32_t tile_columns, tile_rows;  // coarse samples that a block reduces
  int32_t reduce[4 * kMostFactor];  // the last three are 0
  int32_t expand[kMostFactor][4];
  int16_t blur[kMostCoarseTaps + 1];
};

}  // namespace cudaconv
