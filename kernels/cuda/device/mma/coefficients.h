// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The parameters of the kernels on the matrix instructions, computed from a pass. Coefficients are rows of bytes, from
// which each block makes the operands of its instructions, see matrix.cuh.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "cuda/launch_params.h"
#include "plan/border.h"
#include "plan/plan.h"

namespace cudaconv {

// Length of a line of coefficients. The class is the radius that a kernel is compiled for. A mask of radius r begins at
// byte class - r; zeros fill the rest. Example, class 8: [1 4 6 4 1] is in bytes 6 to 10.
constexpr int kLineWords = 17;
constexpr int kDenseLineWords = 8, kDenseRows = 32;
constexpr int kMostFactorBytes = 3;  // of separable masks
constexpr int kMostDigits = 4;       // of dense masks

// The largest masks of custom_blocks.cuh.
constexpr int kBlocks4x4Radius = 8, kBlocks4x4Height = 15;

// Kinds of samples: 8 bits; 10 to 16 bits in 16-bit containers with one or two channels; the same with four channels.
enum class Samples : uint8_t { U8, U16, U16x4 };

// Calls function() with the kind of samples as an integral_constant.
template <typename Function>
auto for_samples(Samples samples, Function function) {
  if (samples == Samples::U16) return function(std::integral_constant<Samples, Samples::U16>());
  if (samples == Samples::U16x4) return function(std::integral_constant<Samples, Samples::U16x4>());
  return function(std::integral_constant<Samples, Samples::U8>());
}

// How many bytes factors of separable masks and row sums have; the low bytes are stored first.
CUDACONV_HOST_DEVICE constexpr int factor_bytes(Samples samples) {
  return samples == Samples::U8 ? 2 : 3;
}

// Which kernel can carry out a pass.
struct MmaKind {
  int radius = 0;  // the class: 8, 16 or 32, for dense masks 8 or 16; 0: none
  Samples samples = Samples::U8;
  bool blocks4x4 = false;  // whether the kernels of custom_blocks.cuh can do this dense mask, too
};

// Rows of results that dense kernels sum at a time.
CUDACONV_HOST_DEVICE constexpr int dense_rows(Samples samples) {
  return samples == Samples::U8 ? 4 : 2;
}

// Whether a dense kernel is compiled for radius 8 besides radius 16: custom_blocks.cuh does most such masks of bytes.
constexpr bool has_narrow_dense(Samples samples) {
  return samples != Samples::U8;
}

// Whether separable kernels have code for unsharp masks, SumRounding::Sharpen.
CUDACONV_HOST_DEVICE constexpr bool has_sharpening(Samples samples) {
  return samples != Samples::U16x4;
}

// Sums of separable masks are computed in parts: products of byte i of a sample or row sum and byte j of a factor
// belong to part i + j, which counts 256^(i + j).

// How a sum becomes a sample:
//   Shift      (start + sum) >> shift, clamped to the range of samples
//   Divide     v = start + sum; |v| if absolute; then v + half, clamped to 0 ... limit, * magic >> (32 + shift)
//   ShiftWide  Shift for sums that 32 bits do not hold: PartialSums::highest() >> shift
//   Shift64    Shift for sums of 64 bits; if absolute, of |start + sum| + 2^shift / 2
//   Sharpen    see Sharpening
// Separable masks use Shift, Divide and Sharpen, and for 16-bit samples ShiftWide. Dense masks use Divide, and Shift
// for 8-bit samples or Shift64 for others.
struct SumRounding {
  enum Mode : uint8_t { Shift, Divide, ShiftWide, Shift64, Sharpen } mode;
  bool absolute;
  int32_t start, start_high;  // ShiftWide: initial values of parts 0 and 3; Shift64: the two halves of one
  int32_t half, limit;
  uint32_t magic;
  int32_t shift;
};

// The sample of a pass with gains, see Pass::has_gain(), from the sum and the sample in the middle of the window:
//   sample + (((sample * unit - ((start + sum) >> sum_shift)) * amount + offset) >> 32), clamped to the samples' range
struct Sharpening {
  int64_t offset;
  int32_t unit, amount, sum_shift;
};

struct MmaParams : FrameParams {
  int32_t radius_x, radius_y;  // of the mask
  int32_t tile_height;         // rows, a multiple of 8
  SumRounding epilogue;
  uint32_t sample_shift, sample_mask;  // U16: see ChannelLayout; the mask for both samples of a word
};

struct SeparableMmaParams : MmaParams {
  // A row sum is start + sum, shifted right by row_shift; it is never negative. epilogue.start subtracts again what
  // `start` adds to avoid negative sums. row_start is `start` for 8-bit samples, start / 256 for others. row_shift is
  // 0, with factors of the row modulo 256^bytes, or 8 for 8-bit samples and 16 for others, with unsigned factors.
  int32_t row_start, row_shift;
  uint32_t row_bytes;     // 8-bit samples: the bytes of two sums that are kept, a selector for __byte_perm()
  bool signed_column;     // for 16-bit samples; columns for 8-bit samples always have signs
  Sharpening sharpening;  // SumRounding::Sharpen
  uint32_t line[2][kMostFactorBytes][kLineWords];  // [row, column][byte]
};

struct DenseMmaParams : MmaParams {
  int32_t height;     // rows of the mask, rounded up to a multiple of dense_rows() with rows of zeros
  bool spare;         // whether the last row is zeros
  int32_t low_tiles;  // rows of tiles at the bottom of a part that have half the height
  // MmaKind::blocks4x4: a sample is the second byte of s * factor * magic >> 32, clamped to 16 bits unsigned, where s
  // is the sum including its start. If magic is 0, SumRounding::Divide makes the sample, of an absolute value.
  int32_t factor, magic;
  int32_t digits;  // bytes of coefficients, each -128 to 127
  // [digit][row]: the digits that count most come first for 8-bit samples, last for others, see DigitSums.
  uint32_t line[kMostDigits][kDenseRows][kDenseLineWords];
};

// Fill in the parameters of a pass except the frame and the tile height. Return no kind if the pass is not linear,
// planes are not dense, or coefficients or sums do not fit. Dense kernels are for masks that separable ones cannot do.
MmaKind plan_separable(const Plan &plan, const Pass &pass, SeparableMmaParams &p);
MmaKind plan_dense(const Plan &plan, const Pass &pass, DenseMmaParams &p);

}  // namespace cudaconv
