// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The parameters of the kernels on the matrix instructions, computed from a pass. Coefficients are rows of bytes, from
// which each block makes the operands of its instructions, see matrix.cuh.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/launch_params.h"
#include "plan/border.h"
#include "plan/plan.h"

namespace cudaconv {

// Length of a line of coefficients. The class is the radius that a kernel is compiled for. A mask of radius r begins at
// byte class - r; zeros fill the rest.
constexpr int kLineWords = 17;
constexpr int kDenseLineWords = 8, kDenseRows = 32;
constexpr int kMostWeightBytes = 3, kMostDigits = 4;  // of separable and of dense masks

// The largest masks of blocks4x4.cuh.
constexpr int kBlocks4x4Radius = 8, kBlocks4x4Height = 15;

enum class MmaShape : uint8_t { None, Separable, Dense };

// How coefficients are stored, as lines of bytes, the low bytes first.
// S8, S16, S24: signed 8, 16 or 24 bits.
// U16RoundedRows, U24: masks whose row sums are rounded; coefficients have 16 or 24 bits, unsigned except for the
// columns of U16RoundedRows.
enum class Weights : uint8_t { S8, S16, S24, U16RoundedRows, U24 };

CUDACONV_HOST_DEVICE constexpr int weight_bytes(Weights weights) {
  return weights == Weights::S8 ? 1 : weights == Weights::S24 || weights == Weights::U24 ? 3 : 2;
}
CUDACONV_HOST_DEVICE constexpr bool has_signed_row(Weights weights) {
  return weights == Weights::S8 || weights == Weights::S16 || weights == Weights::S24;
}
CUDACONV_HOST_DEVICE constexpr bool has_signed_column(Weights weights) {
  return weights != Weights::U24;
}
// Bytes of a row sum, which is never negative.
CUDACONV_HOST_DEVICE constexpr int row_sum_bytes(Weights weights, int sample_bytes) {
  return sample_bytes == 1 || weights == Weights::U16RoundedRows ? 2 : 3;
}

// Kinds of samples: 8 bits; 10 to 16 bits in 16-bit containers with one or two channels; the same with four channels.
enum class Samples : uint8_t { U8, U16, U16x4 };

struct MmaKind {
  MmaShape shape = MmaShape::None;
  int radius = 0;  // the class: 8, 16 or 32; for Dense 8 or 16
  // U16RoundedRows and U24 only with Separable, U24 only with 16-bit containers; S24 only with Dense
  Weights weights = Weights::S8;
  Samples samples = Samples::U8;
  bool blocks4x4 = false;  // whether the kernels of blocks4x4.cuh can do this Dense mask, too
};

// Whether a separable kernel is compiled: those that common masks need are.
constexpr bool has_separable(int radius, Weights weights, Samples samples) {
  if (weights == Weights::S24) return false;
  if (samples == Samples::U8) return weights != Weights::U24 && (weights != Weights::S16 || radius <= 8);
  if (weights == Weights::U16RoundedRows) return samples == Samples::U16 && radius <= 16;
  return weights == Weights::U24 || (weights == Weights::S8 && radius <= 16);
}

// Whether a dense kernel is compiled for radius 8 besides radius 16: custom_blocks.cuh does most such masks of bytes.
constexpr bool has_narrow_dense(Samples samples) {
  return samples != Samples::U8;
}

// Whether a kernel for unsharp masks, SumRounding::Sharpen, is compiled for this radius class and these samples.
constexpr bool has_sharpening(int radius, Samples samples) {
  return has_separable(radius, Weights::U16RoundedRows, samples) && (samples == Samples::U8 || radius <= 8);
}

// Sums are computed in parts: products of byte i of a sample and byte j of a coefficient belong to part i + j, which
// counts 256^(i + j). The initial value of a row sum is in part row_start_part(). The initial value of a final sum is
// split between part 0 and start_high_part().
CUDACONV_HOST_DEVICE constexpr int row_start_part(Weights weights) {
  return weights == Weights::U24 ? 1 : 0;
}
CUDACONV_HOST_DEVICE constexpr int start_high_part(Weights weights) {
  return weight_bytes(weights) == 3 ? 3 : 1;
}

// How a sum becomes a sample:
//   Shift      (start + sum) >> shift, clamped to the range of samples
//   Divide     v = start + sum; |v| if absolute; then v + half, clamped to 0 ... limit, * magic >> (32 + shift)
//   ShiftWide  Shift for sums that 32 bits do not hold: PartialSums::highest() >> shift
//   Shift64    Shift for such sums with any shift; if absolute, of |start + sum| + 2^shift / 2
//   Byte       byte shift / 8 of start + sum, for sums of 8-bit samples that need no clamp
//   Sharpen    see Sharpening
// Only S24 uses Shift64. Only separable masks of 8-bit samples use Byte. Separable U16RoundedRows uses Shift, Byte and
// Sharpen, and nothing else uses Sharpen.
struct SumRounding {
  enum Mode : uint8_t { Shift, Divide, ShiftWide, Shift64, Byte, Sharpen } mode;
  bool absolute;
  int32_t start, start_high;  // initial values of part 0 and of start_high_part()
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
  // A row sum is row_start + sum, which is never negative. For U16RoundedRows and U24 it is then shifted right by
  // row_shift. epilogue.start subtracts again the amount that row_start adds to avoid negative sums.
  int32_t row_start;                               // of part row_start_part()
  int32_t row_shift;                               // 8 for U16RoundedRows of 8-bit samples, 16 for U24
  Sharpening sharpening;                           // SumRounding::Sharpen
  uint32_t line[2][kMostWeightBytes][kLineWords];  // [row, column][byte]
};

// How a sum becomes an 8-bit sample: the second byte of a scaled value that is clamped to 16 bits unsigned. s is the
// sum including its start; v is s or, if absolute, |s| + half. The scaled value is:
//   magic is 0   s >> shift
//   else         v * 2^shift * magic >> 32
struct SumScale {
  int32_t half, shift, magic;
  bool absolute;
};

struct DenseMmaParams : MmaParams {
  int32_t height;         // rows of the mask, rounded up to a multiple of 4 with rows of zeros
  bool spare;             // whether the last row is zeros
  int32_t digits;         // bytes of coefficients, each -128 to 127
  int32_t low_tiles;      // rows of tiles at the bottom of a part that have half the height
  SumScale scale;         // for MmaKind::blocks4x4
  int32_t factor, magic;  // `scale` as s * factor * magic >> 32; magic is 0 if absolute
  // [digit][row]: the digits that count most come first for 8-bit samples, last for others, see DigitSums.
  uint32_t line[kMostDigits][kDenseRows][kDenseLineWords];
};

// Whether all values are `low` to `high`.
bool all_within(const std::vector<int32_t> &values, int64_t low, int64_t high);

// Puts the lowest `bytes` bytes of the factors of a separable mask into the lines, which are zeros, for kernels of the
// class `radius`.
void put_factors(const std::vector<int32_t> &row, const std::vector<int32_t> &column, int radius, int bytes,
                 SeparableMmaParams &p);

// Chooses a structure for the pass and fills in its parameters except the frame and the tile height. MmaShape::None if
// the pass is not linear, planes are not dense, or coefficients or sums do not fit.
MmaKind plan_mma(const Plan &plan, const Pass &pass, SeparableMmaParams &separable, DenseMmaParams &dense);

}  // namespace cudaconv
