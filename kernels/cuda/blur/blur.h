// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Parameters of the kernels for wide Gaussians, see plan/decimation.h, and the coarse samples that they pass on.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/launch_params.h"
#include "plan/decimation.h"

namespace cudaconv::blur {

// Most taps of the coarse blur: for a side of 1501 at the smallest factor, and some that least squares add.
constexpr int kMostCoarseTaps = 1501 / 2 + 8;
constexpr int kMostFactor = 8;
constexpr int kReduceWords = 8;  // of the 4D - 3 weights that reduce, as bytes

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
  int32_t first_tile[3], tiles_x[3];  // for the kernels that reduce, blur rows and blur columns
};

// How sums become samples:
//   Shift  the sum, which includes half of the divisor, >> result_shift
//   Gain   apply_gain(sum) + result_offset, >> result_shift
//   Any    round_blur()
enum class BlurFinish : int32_t { Shift, Gain, Any };

struct BlurParams : FrameParams {
  CoarseBuffers coarse[kMaxParts];
  int32_t log_factor, radius;  // radius of the blur in coarse samples
  int32_t rows_shift, columns_shift, expand_shift;
  BlurFinish finish;
  int32_t result_shift;
  int64_t result_offset;
  int32_t tile_columns, tile_rows;  // coarse samples that a block computes
  int32_t reduce[4 * kMostFactor];  // the last three are 0
  // The same weights as sums of two bytes, in the order of memory.
  uint32_t reduce_bytes[2][kReduceWords];
  int32_t expand[kMostFactor][4];
  int16_t blur[kMostCoarseTaps + 1];
  int32_t offset;             // see Decimation
  int32_t offset_of_results;  // the same in the sums of the last step
  // Position and mask of a sample in its 16-bit container.
  int32_t sample_shift;
  uint32_t sample_mask;
};

// With the finer weights of deep samples: apart, since each launch copies its parameters.
struct FineBlurParams : BlurParams {
  int8_t fine[kMostCoarseTaps + 1];
};

template <bool kFine>
using BlurParamsOf = std::conditional_t<kFine, FineBlurParams, BlurParams>;

}  // namespace cudaconv::blur
