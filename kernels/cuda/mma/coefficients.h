// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the kernels on the matrix instructions take by value, worked out from a pass: coefficients as rows of bytes,
// from which each block makes the operands of its instructions. matrix.cuh says how.
#pragma once

#include <cstdint>

#include "cuda/launch_params.h"
#include "plan/border.h"
#include "plan/plan.h"

namespace cudaconv {

// A line of coefficients has this many bytes: those of a mask of radius r begin at byte class - r, where the class is
// the radius that the kernel was compiled for. Zeros fill the rest.
constexpr int kLineWords = 32, kLineBytes = 4 * kLineWords;
constexpr int kDenseLineWords = 8, kDenseRows = 32;
constexpr int kMostWeightBytes = 3;

// The largest masks of row_pairs.cuh, and a line of their coefficients.
constexpr int kRowPairRadius = 4, kRowPairHeight = 10, kRowPairLineWords = 3;
// The largest masks of blocks4x4.cuh.
constexpr int kBlocks4x4Radius = 8, kBlocks4x4Height = 15;

enum class MmaShape : uint8_t { None, Separable, Dense };

// Coefficients in lines of bytes, the lowest ones first. S8, S16: signed ones of 8 or 16 bits. U16RoundedRows, U24:
// rows' sums are rounded, and coefficients have 16 or 24 bits without a sign, but for columns of U16RoundedRows, which
// have one.
enum class Weights : uint8_t { S8, S16, U16RoundedRows, U24 };

CUDACONV_HOST_DEVICE constexpr int weight_bytes(Weights weights) {
  return weights == Weights::S8 ? 1 : weights == Weights::U24 ? 3 : 2;
}
CUDACONV_HOST_DEVICE constexpr bool has_signed_row(Weights weights) {
  return weights == Weights::S8 || weights == Weights::S16;
}
CUDACONV_HOST_DEVICE constexpr bool has_signed_column(Weights weights) {
  return weights != Weights::U24;
}
// Bytes of a row's sum, which is not negative.
CUDACONV_HOST_DEVICE constexpr int row_sum_bytes(Weights weights, int sample_bytes) {
  return sample_bytes == 1 || weights == Weights::U16RoundedRows ? 2 : 3;
}

// Samples of planes: of 8 bits; of 10 to 16 in 16-bit containers, one or two channels, or four.
enum class Samples : uint8_t { U8, U16, U16x4 };

struct MmaKind {
  MmaShape shape = MmaShape::None;
  int radius = 0;                 // the class: 4, 8, 16, 32 or 64, of U16 8, 16 or 32; dense 8 or 16
  Weights weights = Weights::S8;  // U16RoundedRows and U24 of Separable alone, U24 of U16
  Samples samples = Samples::U8;
  bool row_pairs = false;  // whether the kernels of row_pairs.cuh can do what is Dense, too
  bool blocks4x4 = false;  // and those of blocks4x4.cuh
};

// Whether a separable kernel is compiled: those are that common masks need.
constexpr bool has_separable(int radius, Weights weights, Samples samples) {
  if (samples == Samples::U8) return weights != Weights::U24 && (weights != Weights::S16 || radius <= 16);
  if (weights == Weights::U16RoundedRows) return samples == Samples::U16 && radius <= 16;
  return weights == Weights::U24 || (weights == Weights::S8 && radius <= 16);
}

// Which kernels of Dense there are: of radius 16 all; what blocks4x4.cuh does not take of small masks of bytes is
// theirs.
constexpr bool has_dense(int radius, Weights weights, Samples samples) {
  return radius == 16 || samples != Samples::U8 || weights != Weights::S8;
}

// Whether a kernel for unsharp masks, SumRounding::Sharpen, is compiled for this radius class and these samples.
constexpr bool has_sharpening(int radius, Samples samples) {
  return has_separable(radius, Weights::U16RoundedRows, samples) && (samples == Samples::U8 || radius <= 8);
}

// Sums are made in parts: products of byte i of a sample and byte j of a coefficient belong to part i + j, which counts
// 256^(i + j). What sums begin with is divided between two of them, the other of which is this one.
CUDACONV_HOST_DEVICE constexpr int row_start_part(Weights weights) {
  return weights == Weights::U24 ? 1 : 0;
}
CUDACONV_HOST_DEVICE constexpr int start_high_part(Weights weights) {
  return weights == Weights::U24 ? 3 : 1;
}

// From a sum to a sample:
//   Shift       (start + sum) >> shift, clamped to the samples' range
//   Divide      v = start + sum; |v| where absolute; then + half, clamped to 0 ... limit, * magic >> 32 + shift
//   ShiftWide   of sums that 32 bits do not hold, Shift; that of the highest part, those below it left off
//   Byte        byte shift / 8 of start + sum, which is not negative; of 8-bit samples, where none needs the clamp
//   Sharpen     as Sharpening says
// Separable 8-bit ones alone have Byte. Separable U16RoundedRows has Shift, Byte and Sharpen, and nothing else has
// Sharpen.
struct SumRounding {
  enum Mode : uint8_t { Shift, Divide, ShiftWide, Byte, Sharpen } mode;
  bool absolute;
  int32_t start, start_high;  // what the sums begin with: part 0, and start_high_part()
  int32_t half, limit;
  uint32_t magic;
  int32_t shift;
};

// A sample from a sum and the sample in the middle of the window, see Pass::has_gain():
//   sample + (((sample * unit - ((start + sum) >> sum_shift)) * amount + offset) >> 32), clamped to the samples' range
struct Sharpening {
  int64_t offset;
  int32_t unit, amount, sum_shift;
};

struct MmaParams : FrameParams {
  int32_t radius_x, radius_y;  // of the mask
  int32_t tile_height;         // rows, a multiple of 8
  SumRounding epilogue;
  uint32_t sample_shift, sample_mask;  // of U16: see ChannelLayout, and the mask for both samples of a word
};

struct SeparableMmaParams : MmaParams {
  // A row's sum is row_start + sum, and never negative; of U16RoundedRows and U24 the same >> row_shift. What row_start
  // adds to make it so is taken away in epilogue.start.
  int32_t row_start;                               // of part row_start_part()
  int32_t row_shift;                               // of U16RoundedRows of 8-bit samples 8, of U24 16
  Sharpening sharpening;                           // of SumRounding::Sharpen
  uint32_t line[2][kMostWeightBytes][kLineWords];  // [row, column][byte]
};

// From a sum to an 8-bit sample, the second byte of 16 bits without sign, to which the following is clamped. s is
// the sum with its start, v the same, or where absolute |s| + half:
//   s >> shift, or where magic is not zero   v * 2^shift * magic >> 32
struct SumScale {
  int32_t half, shift, magic;
  bool absolute;
};

struct DenseMmaParams : MmaParams {
  int32_t height;                                 // rows of the mask, and of zeros up to a multiple of 4
  bool spare;                                     // whether the last row is of zeros
  int32_t low_tiles;                              // rows of tiles at the bottom of a part that have half the height
  SumScale scale;                                 // of MmaKind::blocks4x4
  int32_t factor, magic;                          // the same, s * factor * magic >> 32; no magic where absolute
  uint32_t line[2][kDenseRows][kDenseLineWords];  // [byte][row]
};

struct RowPairMmaParams : MmaParams {
  int32_t height;                                    // rows of the mask
  SumScale scale;                                    // of U8, which have `start` alone of `epilogue`
  uint32_t line[kRowPairHeight][kRowPairLineWords];  // of a mask of radius r from byte kRowPairRadius - r on
};

// Works the pass out for one of the structures and fills in its parameters, all but the frame and the tile height.
// `pairs`, if given, are filled in as well where MmaKind::row_pairs. MmaShape::None where the pass is not linear, the
// planes are not dense, or coefficients or sums do not fit.
MmaKind plan_mma(const Plan &plan, const Pass &pass, SeparableMmaParams &separable, DenseMmaParams &dense,
                 RowPairMmaParams *pairs = nullptr);

}  // namespace cudaconv
