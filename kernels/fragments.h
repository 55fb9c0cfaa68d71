// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the tensor kernels take by value, worked out from a pass: coefficients as rows of bytes, from which each block
// makes the operands of its matrix instructions. matrix.cuh says how.
#pragma once

#include <cstdint>

#include "border.h"
#include "launch_params.h"
#include "plan.h"

namespace cudaconv {

// A line of coefficients has this many bytes: those of a mask of radius r begin at byte class - r, where the class is
// the radius that the kernel was compiled for. Zeros fill the rest.
constexpr int kLineWords = 32, kLineBytes = 4 * kLineWords;
constexpr int kDenseLineWords = 8, kDenseRows = 32;
constexpr int kMostWeightBytes = 3;

// Of small masks without a row and a column, see pairs.cuh.
constexpr int kPairRadius = 4, kPairRows = 10, kPairLineWords = 3;
// Of larger ones, see squares.cuh.
constexpr int kSquareRadius = 8, kSquareHeight = 15;

enum class Tensor : uint8_t { None, Separable, Dense };

// Coefficients in lines of bytes, the lowest ones first: signed ones of 8 bits, or of 16; of Rounded and Long, whose
// rows' sums are rounded, 16 bits and 24, none negative but columns of Rounded.
enum class Weights : uint8_t { Byte, Word, Rounded, Long };

CUDACONV_HOST_DEVICE constexpr int weight_bytes(Weights weights) {
  return weights == Weights::Byte ? 1 : weights == Weights::Long ? 3 : 2;
}
CUDACONV_HOST_DEVICE constexpr bool has_signed_row(Weights weights) {
  return weights == Weights::Byte || weights == Weights::Word;
}
CUDACONV_HOST_DEVICE constexpr bool has_signed_column(Weights weights) {
  return weights != Weights::Long;
}
// Of a row's sum, which is not negative.
CUDACONV_HOST_DEVICE constexpr int row_sum_bytes(Weights weights, int sample_bytes) {
  return sample_bytes == 1 || weights == Weights::Rounded ? 2 : 3;
}

// Samples of planes: of 8 bits; of 10 to 16 in 16-bit containers, one or two channels, or four.
enum class Samples : uint8_t { Bytes, Words, FourWords };

struct TensorKind {
  Tensor structure = Tensor::None;
  int radius = 0;                   // the class: 4, 8, 16, 32 or 64, of Words 8, 16 or 32; dense 8 or 16
  Weights weights = Weights::Byte;  // Rounded and Long of Separable alone, Long of Words
  Samples samples = Samples::Bytes;
  bool pairs = false;    // whether the kernels of pairs.cuh can do what is Dense, too
  bool squares = false;  // and those of squares.cuh
};

// Which kernels of Separable there are: those that a mask may need that is not an oddity.
constexpr bool has_separable(int radius, Weights weights, Samples samples) {
  if (samples == Samples::Bytes) return weights != Weights::Long && (weights != Weights::Word || radius <= 16);
  if (weights == Weights::Rounded) return samples == Samples::Words && radius <= 16;
  return weights == Weights::Long || (weights == Weights::Byte && radius <= 16);
}

// Which kernels of Dense there are: of radius 16 all; what squares.cuh does not take of small masks of bytes is theirs.
constexpr bool has_dense(int radius, Weights weights, Samples samples) {
  return radius == 16 || samples != Samples::Bytes || weights != Weights::Byte;
}

// Of which of Rounded there are such for SumRounding::Sharpen.
constexpr bool has_sharpening(int radius, Samples samples) {
  return has_separable(radius, Weights::Rounded, samples) && (samples == Samples::Bytes || radius <= 8);
}

// Sums are made in parts: products of byte i of a sample and byte j of a coefficient belong to part i + j, which counts
// 256^(i + j). What sums begin with is divided between two of them, the other of which is this one.
CUDACONV_HOST_DEVICE constexpr int row_start_part(Weights weights) {
  return weights == Weights::Long ? 1 : 0;
}
CUDACONV_HOST_DEVICE constexpr int start_high_part(Weights weights) {
  return weights == Weights::Long ? 3 : 1;
}

// From a sum to a sample:
//   Shift       (start + sum) >> shift, clamped to the samples' range
//   Divide      v = start + sum; |v| where absolute; then + half, clamped to 0 ... limit, * magic >> 32 + shift
//   ShiftWide   of sums that 32 bits do not hold, Shift; that of the highest part, those below it left off
//   Byte        byte shift / 8 of start + sum, which is not negative; of 8-bit samples, where none needs the clamp
//   Sharpen     as Sharpening says
// Separable 8-bit ones alone have Byte. Separable Rounded has Shift, Byte and Sharpen, and nothing else has Sharpen.
struct SumRounding {
  enum How : uint8_t { Shift, Divide, ShiftWide, Byte, Sharpen } how;
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

struct TensorParams : FrameParams {
  int32_t radius_x, radius_y;  // of the mask
  int32_t tile_height;         // rows, a multiple of 8
  SumRounding finish;
  uint32_t sample_shift, sample_mask;  // of Words: see ChannelLayout, and the mask for both samples of a word
};

struct SeparableTensorParams : TensorParams {
  // A row's sum is row_start + sum, and never negative; of Rounded and Long the same >> row_shift. What row_start adds
  // to make it so is taken away in finish.start.
  int32_t row_start;                               // of part row_start_part()
  int32_t row_shift;                               // of Rounded 8-bit samples 8, of Long 16
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

struct DenseTensorParams : TensorParams {
  int32_t height;                                 // rows of the mask, and of zeros up to a multiple of 4
  bool spare;                                     // whether the last row is of zeros
  int32_t low_tiles;                              // rows of tiles at the bottom of a part that have half the height
  SumScale scale;                                 // of TensorKind::squares
  int32_t factor, magic;                          // the same, s * factor * magic >> 32; no magic where absolute
  uint32_t line[2][kDenseRows][kDenseLineWords];  // [byte][row]
};

struct PairTensorParams : TensorParams {
  int32_t height;                            // rows of the mask
  SumScale scale;                            // of Bytes, which have `start` alone of `finish`
  uint32_t line[kPairRows][kPairLineWords];  // of a mask of radius r from byte kPairRadius - r on
};

// Works the pass out for one of the structures and fills in its parameters, all but the frame and the tile height.
// `pairs`, if given, are filled in as well where TensorKind::pairs. Tensor::None where the pass is not linear, the
// planes are not dense, or coefficients or sums do not fit.
TensorKind make_fragments(const Plan &plan, const Pass &pass, SeparableTensorParams &separable,
                          DenseTensorParams &dense, PairTensorParams *pairs = nullptr);

}  // namespace cudaconv
