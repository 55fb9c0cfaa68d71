// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel that blurs coarse samples on the matrix instructions, the second step of plan/decimation.h. blur_kernel()
// of blur.cuh makes the same values.
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

constexpr int kBlurBefore = 16;  // zeros before the weights in shared memory

// Steps from the first sample of the first output's window to the last one of the last output's.
CUDACONV_HOST_DEVICE constexpr int blur_steps(int radius) {
  return (2 * radius + kBlurOutputs + 31) / 32;
}
// Words of a line of weights as bytes, zeros included. Shared memory has four copies of each line, each a byte further
// to the left, so that each row of the matrix is read as words.
CUDACONV_HOST_DEVICE constexpr int blur_line_words(int radius) {
  return 8 * blur_steps(radius) + kBlurBefore / 4 + 1;
}

// Puts the weights into shared memory. All threads of the block call it.
template <int kBytes>
__device__ inline void store_blur_weights(const BlurLineParams &p, uint32_t *lines) {
  const int words = blur_line_words(p.radius);
  for (int i = static_cast<int>(threadIdx.x); i < 4 * words; i += kBlurThreads) {
    const int copy = i / words, first = 4 * (i - copy * words) + copy - kBlurBefore;
    uint32_t word[kBytes] = {};
#pragma unroll
    for (int b = 0; b < 4; b++) {
      const int tap = first + b;
      const auto weight = static_cast<uint32_t>(tap >= 0 && tap <= 2 * p.radius ? p.weight[tap] : 0);
#pragma unroll
      for (int k = 0; k < kBytes; k++) word[k] |= (weight >> 8 * k & 0xff) << 8 * b;
    }
#pragma unroll
    for (int k = 0; k < kBytes; k++) lines[4 * k * words + i] = word[k];
  }
  __syncthreads();
}

// The samples of a step for lane 4g + t: words[h][i] has samples 16h + 4t + i of four lines.
struct BlurStep {
  uint32_t words[2][4][2];
};

// Loads a step from line `line` and the sample at index `first` on.
__device__ inline void load_step(const BlurredLines &lines, int line, int first, BlurStep &step) {
  const int t = static_cast<int>(threadIdx.x % 4);
  each<2, 4>(
      [&](int h, int i) { load_words<2>(lines.from + line + lines.at(first + 16 * h + 4 * t + i), step.words[h][i]); });
}

// Sums of the four lines; of[n] has the products of bytes that count 256^n. kBytes: of a weight.
template <int kBytes>
struct BlurSums {
  Sums of[kBytes + 1][4];

  __device__ void start(int shift) {
#pragma unroll
    for (int s = 0; s < 4; s++) {
      of[0][s] = all(1 << (shift - 1));
#pragma unroll
      for (int n = 1; n <= kBytes; n++) of[n][s] = all(0);
    }
  }

  // Adds the products of a step. weights[k]: the weights' bytes that count 256^k.
  __device__ void add(const BlurStep &step, const uint32_t (&weights)[kBytes][4]) {
#pragma unroll
    for (int w = 0; w < 2; w++) {
      uint32_t bytes[2][4];  // low and high bytes of one line, then of the next
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const auto &words = step.words[h];
        transpose({words[0][w], words[1][w], words[2][w], words[3][w]}, bytes[h]);
      }
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
  __device__ int16_t result(int q, int s, int shift) const {
    using Sum = std::conditional_t<kBytes == 2, uint32_t, int64_t>;  // with two bytes sums fit 32 bits in the end
    const int i = 2 * q + s / 4;
    Sum sum = static_cast<Sum>(of[kBytes][s % 4].v[i]);
#pragma unroll
    for (int n = kBytes - 1; n >= 0; n--) sum = sum * 256 + static_cast<Sum>(of[n][s % 4].v[i]);
    return static_cast<int16_t>(static_cast<std::make_signed_t<Sum>>(sum) >> shift);
  }
};

// Stores output `output` of lines `line` ... `line` + 7.
__device__ inline void store_blurred(const BlurLineParams &p, const BlurredLines &lines, int channels, int output,
                                     int line, const int16_t (&result)[8]) {
  if (!p.along_rows) {
    // Rows are whole vectors; the last one may have no lines at its end.
    if (line >= lines.count) return;
    uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; w++)
      words[w] = static_cast<uint16_t>(result[2 * w]) | static_cast<uint32_t>(result[2 * w + 1]) << 16;
    return store_words<4>(lines.to + output * lines.to_pitch + line, words);
  }
  int16_t *const to = lines.to + output * channels;
#pragma unroll
  for (int s = 0; s < 8; s += 4) {
    if (channels == 4) {
      if (line + s < lines.count)
        *reinterpret_cast<short4 *>(to + (line + s) / 4 * lines.to_pitch) =
            make_short4(result[s], result[s + 1], result[s + 2], result[s + 3]);
      continue;
    }
#pragma unroll
    for (int k = s; k < s + 4; k++)
      if (line + k < lines.count) to[(line + k) / channels * lines.to_pitch + (line + k) % channels] = result[k];
  }
}

// kBytes: of a weight.
template <int kBytes>
__global__ void __launch_bounds__(kBlurThreads, kBytes == 2 ? 2 : 1)
    blur_mma_kernel(const __grid_constant__ BlurLineParams p) {
  if constexpr (kHasMma) {
    uint32_t *const memory = shared_memory<uint32_t>();
    store_blur_weights<kBytes>(p, memory);
    const Tile tile = locate_tile(p, 1);  // of lines and outputs
    const BlurredLines &lines = p.lines[tile.part.number];
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const int g = lane / 4, t = lane % 4;
    const int line0 = tile.x0 * kBlurLines, output0 = (tile.y0 * (kBlurThreads / 32) + warp) * kBlurOutputs;
    if (output0 >= lines.outputs) return;

    // Lines behind the last one are read from it.
    const int line = min(line0 + 4 * g, (lines.count - 1) & -4), first = lines.first + output0 - p.radius;
    BlurSums<kBytes> sums;
    sums.start(p.shift);
    const int line_words = blur_line_words(p.radius), steps = blur_steps(p.radius);
    const uint32_t *const weights = memory + (-g & 3) * line_words;  // the copy for rows g and g + 8
    BlurStep next;
    load_step(lines, line, first, next);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      const BlurStep now = next;
      if (step + 1 < steps) load_step(lines, line, first + 32 * (step + 1), next);
      uint32_t of_step[kBytes][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint32_t *const at = weights + ((kBlurBefore + 32 * step + 4 * t + 16 * (i / 2) - g - 8 * (i % 2)) >> 2);
#pragma unroll
        for (int k = 0; k < kBytes; k++) of_step[k][i] = at[4 * k * line_words];
      }
      sums.add(now, of_step);
    }
    const int channels = tile.part.channels;
#pragma unroll
    for (int q = 0; q < 2; q++) {
      const int output = output0 + g + 8 * q;
      int16_t result[8];
#pragma unroll
      for (int s = 0; s < 8; s++) result[s] = sums.result(q, s, p.shift);
      if (output < lines.outputs) store_blurred(p, lines, channels, output, line0 + 8 * t, result);
    }
  }
}

}  // namespace cudaconv::blur
