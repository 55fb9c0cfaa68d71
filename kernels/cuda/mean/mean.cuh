// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Means of large windows of dense planes, at a cost that does not grow with the window. factored_row() and
// factored_column() of methods/operations.cuh make the same bytes with equal coefficients.
//
//    1. running sums down columns, of as many rows as a window has, go to a frame of 32-bit integers
//    2. a block sums up each row of that frame from its first pixel on, in shared memory
//    3. the sum of a window is the difference of two of these sums
//
// Sums of bytes are exact modulo 2^32, and a window's sum is below that; sums of 16-bit samples have 64 bits. Example,
// 3 columns of a row of column sums 10 20 30 40: prefix sums 10 30 60 100, and the windows have the sums 60 and 100 -
// 10 = 90.
#pragma once

#include <type_traits>

#include "cuda/device/tile.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "plan/area.h"

namespace cudaconv::mean {

constexpr int kMeanThreads = 256;

// A sum of a window of samples of kBytes bytes.
template <int kBytes>
using WindowSum = std::conditional_t<kBytes == 1, uint32_t, uint64_t>;

struct MeanParams : FrameParams {
  // Sums of columns, in the order of samples in a row; a row is `sums_pitch` sums, a part begins at `first_sum`. Both
  // are multiples of 4.
  uint32_t *sums;
  int64_t first_sum[kMaxParts];
  int32_t sums_pitch[kMaxParts];
  PixelRect summed[kMaxParts];  // what the kernel for columns sums: words across, rows down
  int32_t strip;                // rows of a block of it
  int32_t width, height;        // of the window
  int32_t factor;               // of all samples
  int32_t sample_shift;         // of samples in 16-bit containers
  uint32_t sample_mask;
};

// Samples of a word, whose containers have kBytes bytes.
template <int kBytes>
__device__ inline void split_samples(const MeanParams &p, uint32_t word, uint32_t (&sample)[4 / kBytes]) {
#pragma unroll
  for (int i = 0; i < 4 / kBytes; i++)
    sample[i] = kBytes == 1 ? word >> 8 * i & 0xff : word >> (16 * i + p.sample_shift) & p.sample_mask;
}

// Writes the sums of a column of words, one for each of `rows` windows, to `to` and every `pitch` sums on. listed[n]:
// the row that is row n of the first window and those below, negative for the word `border`. load(y) loads the word of
// row y.
template <int kBytes, typename Load>
__device__ inline void sum_column(const MeanParams &p, const int32_t *listed, int rows, uint32_t border, uint32_t *to,
                                  int pitch, Load load) {
  constexpr int kSamples = 4 / kBytes, kAtOnce = 8;  // rows that are loaded before the first one is added
  uint32_t sum[kSamples] = {};
  const auto load_rows = [&](int first, int end, uint32_t(&words)[kAtOnce]) {
#pragma unroll
    for (int n = 0; n < kAtOnce; n++) {
      const int y = listed[min(first + n, end - 1)];
      words[n] = load(max(y, 0));
      if (y < 0) words[n] = border;
    }
  };
  for (int first = 0; first < p.height; first += kAtOnce) {
    uint32_t enters[kAtOnce];
    load_rows(first, p.height, enters);
#pragma unroll
    for (int n = 0; n < kAtOnce; n++) {
      uint32_t more[kSamples];
      split_samples<kBytes>(p, first + n < p.height ? enters[n] : 0, more);
      each<kSamples>([&](int s) { sum[s] += more[s]; });
    }
  }
  for (int first = 0; first < rows; first += kAtOnce) {
    uint32_t enters[kAtOnce], leaves[kAtOnce];
    load_rows(p.height + first, p.height + rows, enters);  // the last one is listed, but not needed
    load_rows(first, rows, leaves);
#pragma unroll
    for (int n = 0; n < kAtOnce; n++) {
      if (first + n >= rows) break;
      store_words<kSamples>(to, sum);
      to += pitch;
      uint32_t more[kSamples], less[kSamples];
      split_samples<kBytes>(p, enters[n], more);
      split_samples<kBytes>(p, leaves[n], less);
      each<kSamples>([&](int s) { sum[s] += more[s] - less[s]; });
    }
  }
}

// A thread goes down a strip of a column of words.
template <int kBytes>
__global__ void __launch_bounds__(kMeanThreads, 4) mean_columns_kernel(const __grid_constant__ MeanParams p) {
  constexpr int kSamples = 4 / kBytes;
  const Tile block = locate_tile(p, 1);
  const PartParams &part = block.part;
  const int i = part.number, thread = static_cast<int>(threadIdx.x);
  const PixelRect &summed = p.summed[i];
  const int y0 = summed.y0 + block.y0 * p.strip, rows = min(p.strip, summed.y1 - y0);
  // The rows that windows of the strip reach, -1: the border's value.
  int32_t *const listed = shared_memory<int32_t>();
  for (int n = thread; n < rows + p.height; n += kMeanThreads)
    listed[n] = border_index(p.border, y0 - p.height / 2 + n, part.height);
  __syncthreads();
  const int word = summed.x0 + block.x0 * kMeanThreads + thread;
  const int bytes = part.width * part.channels * kBytes - 4 * word;  // of the row from the word on
  if (word >= summed.x1) return;

  uint32_t *const to = p.sums + p.first_sum[i] + int64_t{y0} * p.sums_pitch[i] + word * kSamples;
  const uint8_t *const column = part.source + 4 * word;
  const uint32_t border = border_word(part, 0, word);
  if (bytes >= 4)
    sum_column<kBytes>(p, listed, rows, border, to, p.sums_pitch[i], [&](int y) {
      return __ldg(reinterpret_cast<const uint32_t *>(column + y * part.source_pitch));
    });
  else
    sum_column<kBytes>(p, listed, rows, border, to, p.sums_pitch[i], [&](int y) {
      uint32_t word = 0;
      load_bytes<1>(column + y * part.source_pitch, bytes, &word);
      return word;
    });
}

// Sums that are loaded and stored at once.
template <typename Sum, int kCount>
struct alignas(kCount % 2                  ? sizeof(Sum)
               : kCount * sizeof(Sum) < 16 ? kCount * sizeof(Sum)
                                           : 16) SumsTogether {
  Sum of[kCount];
};

// Replaces the pixels of a line of `length` pixels by their sums from the first one on. `partial` has room for a pixel
// of each warp. All threads of the block call this together.
template <typename Sum, int kChannels>
__device__ inline void add_up_line(SumsTogether<Sum, kChannels> *line, int length,
                                   SumsTogether<Sum, kChannels> *partial) {
  // A share is odd, so that the threads of a warp read from different banks.
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int share = (length + kMeanThreads - 1) / kMeanThreads | 1;
  const int begin = min(thread * share, length), end = min(begin + share, length);
  SumsTogether<Sum, kChannels> sum = {}, before;
  const auto add = [&](const SumsTogether<Sum, kChannels> &pixel) {
    each<kChannels>([&](int c) { sum.of[c] += pixel.of[c]; });
  };
#pragma unroll 4
  for (int pixel = begin; pixel < end; pixel++) add(line[pixel]);
#pragma unroll
  for (int c = 0; c < kChannels; c++) {
    const Sum up_to = sum_to_lane(sum.of[c], lane);
    if (lane == 31) partial[warp].of[c] = up_to;
    before.of[c] = up_to - sum.of[c];
  }
  __syncthreads();
  sum = before;
  for (int w = 0; w < warp; w++) add(partial[w]);
#pragma unroll 4
  for (int pixel = begin; pixel < end; pixel++) {
    add(line[pixel]);
    line[pixel] = sum;
  }
}

// The sum of a window that is not filtered may be any number, see enqueue_columns(): its product wraps around.
template <typename Sum>
__device__ inline uint32_t round_mean(const MeanParams &p, Sum sum) {
  const Rounding &rounding = p.rounding[0];
  if (rounding.wide) return static_cast<uint32_t>(round_to_sample(static_cast<int64_t>(sum) * p.factor, rounding));
  const auto product = static_cast<uint32_t>(sum) * static_cast<uint32_t>(p.factor);
  return static_cast<uint32_t>(round_to_sample(static_cast<int32_t>(product), rounding));
}

// A block makes a row of results, or a part of it. The line has a pixel of zeros, then the pixels that windows reach,
// those beside the frame too.
template <int kChannels, int kBytes>
__device__ inline void make_row(const MeanParams &p, const Tile &tile) {
  using Sum = WindowSum<kBytes>;
  constexpr int kSamples = 4 / kBytes;
  constexpr int kTogether = kChannels % 2 ? 1 : kChannels < kSamples ? kChannels : kSamples;  // sums of aligned words
  const PartParams &part = tile.part;
  const int width = min(part.column_step, part.width - tile.x0);  // of the block's results
  if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, width, 1);
  const int thread = static_cast<int>(threadIdx.x), radius = p.width / 2, length = width + 2 * radius;
  using Pixel = SumsTogether<Sum, kChannels>;
  Pixel *const partial = shared_memory<Pixel>(), *const line = partial + kMeanThreads / 32;
  const uint32_t *const sums = p.sums + p.first_sum[part.number] + int64_t{tile.y0} * p.sums_pitch[part.number];
  const auto put = [&](int pixel, const uint32_t(&v)[kChannels]) {
    Pixel sum;
    each<kChannels>([&](int c) { sum.of[c] = v[c]; });
    line[pixel + radius + 1] = sum;
  };
#pragma unroll 4
  for (int i = thread; i < width; i += kMeanThreads) {
    uint32_t v[kChannels];
    load_words<kChannels>(sums + (tile.x0 + i) * kChannels, v);
    put(i, v);
  }
  for (int n = thread; n < 2 * radius; n += kMeanThreads) {
    const int beside = n < radius ? n - radius : width + n - radius;
    const int x = border_index(p.border, tile.x0 + beside, part.width);
    uint32_t v[kChannels];
    each<kChannels>([&](int c) { v[c] = static_cast<uint32_t>(part.channel[c].border_value) * p.height; });
    if (x >= 0) load_words<kChannels>(sums + x * kChannels, v);
    put(beside, v);
  }
  if (thread == 0) line[0] = {};
  __syncthreads();
  add_up_line(line + 1, length, partial);
  __syncthreads();

  const int first_byte = tile.x0 * kChannels * kBytes, row_bytes = width * kChannels * kBytes;
  const int last = width * kChannels - kTogether;
  using Together = SumsTogether<Sum, kTogether>;
  const auto *const sums_of_line = reinterpret_cast<const Together *>(line);
  const uint8_t *const from = part.source + tile.y0 * part.source_pitch + first_byte;
  uint8_t *const to = part.target + tile.y0 * part.target_pitch + first_byte;
  for (int word = thread; 4 * word < row_bytes; word += kMeanThreads) {
    uint32_t result = 0, original = 0;
#pragma unroll
    for (int i = 0; i < kSamples; i += kTogether) {
      // min(): nothing behind the row's end is written.
      const int first = min(word * kSamples + i, last) / kTogether;
      const Together before = sums_of_line[first], up_to = sums_of_line[first + p.width * kChannels / kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; k++)
        result |= round_mean(p, up_to.of[k] - before.of[k])
                  << (8 * kBytes * (i + k) + (kBytes == 2 ? p.sample_shift : 0));
    }
    const int bytes = row_bytes - 4 * word;
    if (part.has_unfiltered) {
      load_bytes<1>(from + 4 * word, bytes, &original);
      result = blend_channels(part, result, original, (first_byte / 4 + word) % word_period(kChannels * kBytes));
    }
    store_bytes<1>(to + 4 * word, bytes, &result);
  }
}

template <int kBytes>
__global__ void __launch_bounds__(kMeanThreads) mean_rows_kernel(const __grid_constant__ MeanParams p) {
  const Tile tile = locate_tile(p, 1);
  const int channels = tile.part.channels;
  if (channels == 1) return make_row<1, kBytes>(p, tile);
  if (channels == 2) return make_row<2, kBytes>(p, tile);
  // There are no three samples of 16 bits, see is_uniform_dense().
  if constexpr (kBytes == 1)
    if (channels == 3) return make_row<3, kBytes>(p, tile);
  make_row<4, kBytes>(p, tile);
}

}  // namespace cudaconv::mean
