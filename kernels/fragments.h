// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the tensor kernels take by value, worked out from a pass: coefficients as rows of bytes, from which each block
// makes the operands of its matrix instructions. tensor.cuh says how.
#pragma once

#include <cstdint>

#include "launch_params.h"
#include "plan.h"

namespace cudaconv {

// A line of coefficients has this many bytes: those of a mask of radius r begin at byte class - r, where the class is
// the radius that the kernel was compiled for. Zeros fill the rest.
constexpr int kLineWords = 32, kLineBytes = 4 * kLineWords;
constexpr int kDenseLineWords = 8, kDenseRows = 32;

enum class Tensor : uint8_t { None, Separable, Dense };

// Coefficients in lines of bytes: signed ones of 8 bits in one line; those of 16 in two, of the low bytes and of the
// high ones. Of Rounded, whose rows' sums are rounded, the row's are not signed.
enum class Weights : uint8_t { Byte, Word, Rounded };

struct TensorKind {
  Tensor structure = Tensor::None;
  int radius = 0;                   // the class: 4, 8, 16, 32 or 64, dense 8 or 16
  Weights weights = Weights::Byte;  // Rounded of Separable alone
};

// From a sum to a sample:
//   shifts   (start + sum) >> shift, clamped to 0 ... 255
//   else     v = start + sum; |v| where absolute; then + half, clamped to 0 ... limit, * magic >> 32 + shift
struct SumRounding {
  int32_t start;  // what the accumulators begin with
  int32_t half, limit;
  uint32_t magic;
  int32_t shift;
  bool shifts, absolute;
};

struct TensorParams : FrameParams {
  int32_t radius_x, radius_y;  // of the mask
  int32_t tile_height;         // rows, a multiple of 8
  SumRounding finish;
};

struct SeparableTensorParams : TensorParams {
  // A row's sum is row_start + sum, of Rounded the same >> 8: 16 bits and never negative. What row_start adds to make
  // it so is taken away in finish.start.
  int32_t row_start;
  uint32_t line[2][2][kLineWords];  // [row, column][low, high]
};

struct DenseTensorParams : TensorParams {
  int32_t height;                                 // rows of the mask, and of zeros up to a multiple of 4
  bool spare;                                     // whether the last row is of zeros
  uint32_t line[2][kDenseRows][kDenseLineWords];  // [low, high][row]
};

// Works the pass out for one of the structures and fills in its parameters, all but the frame and the tile height.
// Tensor::None where the pass is not linear, the planes are not dense 8-bit ones, or coefficients or sums do not fit.
TensorKind make_fragments(const Plan &plan, const Pass &pass, SeparableTensorParams &separable,
                          DenseTensorParams &dense);

}  // namespace cudaconv
