// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that blur coarse samples on the matrix instructions, the second step of plan/decimation.h. The kernels
// blur_rows_kernel() and blur_columns_kernel() of blur.cuh make the same values.
//
// A warp blurs kBlurOutputs neighbours of each of kBlurLines lines, whose samples are side by side in memory. A step is
// 32 samples of each line. The weights are a 16 x 32 matrix, a row for each output. Words of samples are transposed:
// the low bytes of four neighbours of a line become one word, the high bytes another. Products of bytes are summed by
// the power of 256 that they count.
//
// Example, the sample 0x1234 times the weight 0x0506: 0x34 * 0x06 counts 1, 0x34 * 0x05 + 0x12 * 0x06 counts 256, and
// 0x12 * 0x05 counts 65536.
#pragma once

#include <type_traits>

#include "cuda/blur/blur.h"
#include "cuda/blur/reduce.cuh"
#include "cuda/device/integer_mma.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv::blur {

constexpr int kBlurOutputs = 16, kBlurLines = 32;
constexpr int kBlurBefore = 16;                              // zeros before the weights in shared memory
constexpr int kBlurTile = kBlurThreads / 32 * kBlurOutputs;  // outputs of a block, along the lines

// Steps from the first sample of the first output's window to the last one of the last output's.
CUDACONV_HOST_DEVICE constexpr int blur_steps(int radius) {
  return (2 * radius + kBlurOutputs + 31) / 32;
}
// Bytes of a weight.
CUDACONV_HOST_DEVICE constexpr int blur_weight_bytes(bool fine) {
  return fine ? 3 : 2;
}
// Words of a line of weights as bytes, zeros included. Shared memory has four copies of each line, each a byte further
// to the left, so that each row of the matrix is read as words.
CUDACONV_HOST_DEVICE constexpr int blur_line_words(int radius) {
  return 8 * blur_steps(radius) + kBlurBefore / 4 + 1;
}

// Puts the weights into shared memory. All threads of the block call it.
template <bool kFine>
__device__ inline void store_blur_weights(const BlurParamsOf<kFine> &p, uint32_t *lines) {
  constexpr int kBytes = blur_weight_bytes(kFine);
  const int words = blur_line_words(p.radius);
  for (int i = static_cast<int>(threadIdx.x); i < 4 * words; i += kBlurThreads) {
    const int copy = i / words, first = 4 * (i - copy * words) + copy - kBlurBefore;
    uint32_t word[kBytes] = {};
#pragma unroll
    for (int b = 0; b < 4; b++) {
      const int tap = first + b;
      int weight = 0;
      if (tap >= 0 && tap <= 2 * p.radius) {
        weight = p.blur[tap];
        if constexpr (kFine) weight = weight * (1 << Decimation::kFineBits) + p.fine[tap];
      }
#pragma unroll
      for (int k = 0; k < kBytes; k++) word[k] |= (static_cast<uint32_t>(weight) >> 8 * k & 0xff) << 8 * b;
    }
#pragma unroll
    for (int k = 0; k < kBytes; k++) lines[4 * k * words + i] = word[k];
  }
  __syncthreads();
}

// The four lines that a lane loads, and the samples of them that a warp needs.
struct BlurSource {
  const int16_t *from;
  int64_t pitch;
  int first;  // the first sample of the first output's window
  const CoarseSpan &span;

  // Loads what lane 4g + t needs of a step: samples 16h + 4t + i to words[h][i].
  __device__ void load(int step, int t, uint32_t (&words)[2][4][2]) const {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        // Clamps to the line, then to the samples that exist: those beyond are only read for weights of 0.
        int at = min(max(first + 32 * step + 16 * h + 4 * t + i, 0), span.line.count - 1) - span.first;
        at = min(max(at, 0), span.count - 1);
        load_words<2>(from + at * pitch, words[h][i]);
      }
  }
};

// Sums of the four lines; of[n] has the products of bytes that count 256^n.
template <bool kFine>
struct BlurSums {
  static constexpr int kBytes = blur_weight_bytes(kFine), kBits = Decimation::kBlurBits + kFine * Decimation::kFineBits;
  Sums of[kBytes + 1][4];

  __device__ void start() {
#pragma unroll
    for (int s = 0; s < 4; s++) {
      of[0][s] = all(1 << (kBits - 1));
#pragma unroll
      for (int n = 1; n <= kBytes; n++) of[n][s] = all(0);
    }
  }

  // Adds the products of a step. `words`: see BlurSource. weights[k]: the weights' bytes that count 256^k.
  __device__ void add(const uint32_t (&words)[2][4][2], const uint32_t (&weights)[kBytes][4]) {
#pragma unroll
    for (int w = 0; w < 2; w++) {
      uint32_t bytes[2][4];  // low and high bytes of one line, then of the next
#pragma unroll
      for (int h = 0; h < 2; h++) transpose({words[h][0][w], words[h][1][w], words[h][2][w], words[h][3][w]}, bytes[h]);
#pragma unroll
      for (int k = 0; k < 2; k++) {
        const int s = 2 * w + k;
        const uint32_t low[2] = {bytes[0][2 * k], bytes[1][2 * k]};
        const uint32_t high[2] = {bytes[0][2 * k + 1], bytes[1][2 * k + 1]};
        // The highest bytes have a sign.
#pragma unroll
        for (int n = 0; n < kBytes - 1; n++) {
          of[n][s] = mma<false, false, 2>(weights[n], low, of[n][s]);
          of[n + 1][s] = mma<false, true, 2>(weights[n], high, of[n + 1][s]);
        }
        of[kBytes - 1][s] = mma<true, false, 2>(weights[kBytes - 1], low, of[kBytes - 1][s]);
        of[kBytes][s] = mma<true, true, 2>(weights[kBytes - 1], high, of[kBytes][s]);
      }
    }
  }

  // The lane's output g + 8q of line 8t + s.
  __device__ int16_t result(int q, int s) const {
    using Sum = std::conditional_t<kFine, int64_t, uint32_t>;  // with two bytes sums fit 32 bits in the end
    const int i = 2 * q + s / 4;
    Sum sum = static_cast<Sum>(of[kBytes][s % 4].v[i]);
#pragma unroll
    for (int n = kBytes - 1; n >= 0; n--) sum = sum * 256 + static_cast<Sum>(of[n][s % 4].v[i]);
    return static_cast<int16_t>(static_cast<std::make_signed_t<Sum>>(sum) >> kBits);
  }
};

// Stores output `output` of lines `sample` ... `sample` + 7 of `samples`: along rows those are different rows.
template <bool kRows>
__device__ inline void store_blurred(const CoarseBuffers &coarse, int channels, int output, int sample, int samples,
                                     const int16_t (&result)[8]) {
  if constexpr (kRows) {
    int16_t *const to = coarse.rows_blurred + output * channels;
#pragma unroll
    for (int s = 0; s < 8; s += 4) {
      if (channels == 4) {
        if (sample + s < samples)
          *reinterpret_cast<short4 *>(to + (sample + s) / 4 * coarse.pitch) =
              make_short4(result[s], result[s + 1], result[s + 2], result[s + 3]);
        continue;
      }
#pragma unroll
      for (int k = s; k < s + 4; k++)
        if (sample + k < samples) to[(sample + k) / channels * coarse.pitch + (sample + k) % channels] = result[k];
    }
  } else {
    // Rows are whole vectors; the last one may have no lines at its end.
    if (sample >= samples) return;
    uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; w++)
      words[w] = static_cast<uint16_t>(result[2 * w]) | static_cast<uint32_t>(result[2 * w + 1]) << 16;
    store_words<4>(coarse.blurred + output * coarse.pitch + sample, words);
  }
}

// kRows: along rows, from `reduced`, whose columns lie side by side, to rows; else along columns.
template <bool kRows, bool kFine>
__global__ void __launch_bounds__(kBlurThreads, kFine ? 1 : 2)
    blur_mma_kernel(const __grid_constant__ BlurParamsOf<kFine> p) {
  if constexpr (kHasMma) {
    uint32_t *const lines = shared_memory<uint32_t>();
    store_blur_weights<kFine>(p, lines);
    const CoarseTile tile = locate_coarse_tile(p, kRows ? 1 : 2);
    const CoarseBuffers &coarse = p.coarse[tile.part];
    const int channels = p.part[tile.part].channels;
    const CoarseSpan &span = kRows ? coarse.x : coarse.y;
    const int samples = (kRows ? coarse.y.count : coarse.columns) * channels;
    const int outputs = kRows ? coarse.columns : coarse.rows;
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const int g = lane / 4, t = lane % 4;
    const int sample0 = tile.x * kBlurLines, output0 = (tile.y * (kBlurThreads / 32) + warp) * kBlurOutputs;
    if (output0 >= outputs) return;

    // Lines behind the last one are read from it.
    const int line = min(sample0 + 4 * g, (samples - 1) & -4);
    const BlurSource source = {
        (kRows ? coarse.reduced : coarse.rows_blurred) + line, kRows ? coarse.reduced_pitch : coarse.pitch,
        (kRows ? coarse.first_column : coarse.first_row) + output0 - p.radius - span.line.first, span};
    BlurSums<kFine> sums;
    sums.start();
    const int line_words = blur_line_words(p.radius), steps = blur_steps(p.radius);
    const uint32_t *const weights = lines + (-g & 3) * line_words;  // the copy for rows g and g + 8
    uint32_t next[2][4][2];
    source.load(0, t, next);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      uint32_t words[2][4][2];
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int w = 0; w < 2; w++) words[h][i][w] = next[h][i][w];
      if (step + 1 < steps) source.load(step + 1, t, next);
      constexpr int kBytes = blur_weight_bytes(kFine);
      uint32_t of_step[kBytes][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t *const at = weights + ((kBlurBefore + 32 * step + 4 * t + 16 * (i / 2) - g - 8 * (i % 2)) >> 2);
#pragma unroll
        for (int k = 0; k < kBytes; k++) of_step[k][i] = at[4 * k * line_words];
      }
      sums.add(words, of_step);
    }
#pragma unroll
    for (int q = 0; q < 2; q++) {
      const int output = output0 + g + 8 * q;
      int16_t result[8];
#pragma unroll
      for (int s = 0; s < 8; s++) result[s] = sums.result(q, s);
      if (output < outputs) store_blurred<kRows>(coarse, channels, output, sample0 + 8 * t, samples, result);
    }
  }
}

}  // namespace cudaconv::blur
