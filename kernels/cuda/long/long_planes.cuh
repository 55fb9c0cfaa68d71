// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The planes of bytes that long_mma.cuh sums: one plane for each byte of a value. Lines have as many values before the
// frame and behind it as windows reach:
//
//      |  zeros  | values before the frame | values of the frame | values behind it | zeros |
//      0                                   values_before(taps), a multiple of 32
//
// Example, 101 taps, a row of 1920 values of 16 bits: two planes. Value 0 is at byte 64, the first window begins at
// byte 64 - 50 = 14, and blocks read from byte first_read(101) = 0 on; unused_values(101) = 14 of those bytes have
// weight 0.
//
// One kernel makes the planes of samples, whose lines are rows, and lays out the weights. Another extends the planes of
// row sums, whose lines are columns, beyond the frame.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "plan/area.h"
#include "plan/masks.h"

namespace cudaconv::long_masks {

// The planes of a part, one behind the other: for each byte of a value, from the lowest on, `lines` lines.
struct LongPlanes {
  uint8_t *first;
  int32_t lines, pitch;  // pitch: bytes from line to line, a multiple of 32

  // Bytes from plane to plane.
  __device__ int64_t plane() const { return int64_t{lines} * pitch; }
  __device__ uint8_t *line(int byte, int line) const { return first + byte * plane() + int64_t{line} * pitch; }
};

// Parameters of all kernels but the one that makes planes of samples.
struct LongMmaParams : FrameParams {
  // The pixels of a part whose row sums are made: all, or those that windows of an area reach. The first row and column
  // are multiples of 32.
  PixelRect range[kMaxParts];
  LongPlanes samples[kMaxParts];             // lines: row y of channel c is line c * height + y
  LongPlanes sums[kMaxParts];                // lines: column s of samples, counted along the row
  int32_t outside[kMaxParts][kMaxChannels];  // border=constant: the sum of a row outside the frame
  int32_t taps[2];                           // of a row and of a column
  uint32_t *weights[2];                      // eight copies of each byte of the weights, see weight_word()
  int32_t row_shift, sum_bytes;              // sum_bytes: of a row sum
  int32_t start;                             // of sums along columns, in units of 256
  int32_t result_shift;                      // see shift_of(); 0: results are rounded in another way
};

// Parameters of the kernel that makes planes of samples.
struct LongSplitParams : LongMmaParams {
  int32_t weight_bytes[2];
  int32_t line[2][kMostTaps];  // weights, none negative
};

constexpr int kLongMmaWarps = 8, kLongMmaThreads = 32 * kLongMmaWarps;
constexpr int kLongMmaLines = 32, kLongMmaLineTiles = kLongMmaLines / 8;
constexpr int kLongMmaOutputs = 16 * kLongMmaWarps;
constexpr int kLongMmaChunk = 128;  // bytes of a line, of which blocks read whole chunks
constexpr int kLongMmaFirst = -24;  // the byte of the line of weights at which its copies begin

// Where a line has value 0: at a multiple of the 32 bytes that memory is written in.
CUDACONV_HOST_DEVICE constexpr int values_before(int taps) {
  return (taps / 2 + 31) / 32 * 32;
}
// Where a line is read from, a multiple of 16, and how many values there are before the first one of the first window.
CUDACONV_HOST_DEVICE constexpr int first_read(int taps) {
  return (values_before(taps) - taps / 2) / 16 * 16;
}
CUDACONV_HOST_DEVICE constexpr int unused_values(int taps) {
  return values_before(taps) - taps / 2 - first_read(taps);
}
// Bytes of a line of `count` values that blocks read and write, a multiple of 32.
CUDACONV_HOST_DEVICE constexpr int line_bytes(int count, int taps) {
  const int outputs = (count + kLongMmaOutputs - 1) / kLongMmaOutputs * kLongMmaOutputs;
  const int reach = (taps + unused_values(taps) + kLongMmaChunk - 1) / kLongMmaChunk * kLongMmaChunk;
  return (first_read(taps) + outputs + reach + 63) / 32 * 32;
}
// Words of a line that contain values before the first one.
CUDACONV_HOST_DEVICE constexpr int words_before(int taps) {
  return (taps / 2 + 3) / 4;
}
// Pitch in words of a copy of the weights: at least 24 more than these take, zeros that lanes read before and behind
// them, and 8 more than a multiple of the 32 banks of shared memory.
CUDACONV_HOST_DEVICE constexpr int weight_pitch(int taps) {
  return (taps / 4 + 24 + 31 - 8) / 32 * 32 + 8;
}
// Where copy g of a byte of the weights begins, in words. Lanes read words 2t apart. Copies 4 to 7 begin one word
// later, so that their words are in other banks.
CUDACONV_HOST_DEVICE constexpr int weight_copy(int taps, int g) {
  return g * weight_pitch(taps) + g / 4;
}
// Words of all copies of a byte of the weights.
CUDACONV_HOST_DEVICE constexpr int weight_words(int taps) {
  return weight_copy(taps, 8) + 2;
}
// Chunks of a line that a block reads.
CUDACONV_HOST_DEVICE constexpr int chunks_read(int taps) {
  return (kLongMmaOutputs - 1 + taps + unused_values(taps) + kLongMmaChunk - 1) / kLongMmaChunk;
}

// ---- Samples and weights ----

// Word i of all copies of a byte of the weights.
__device__ inline uint32_t weight_word(const int32_t *line, int taps, int byte, int i) {
  int copy = 7;
  while (copy > 0 && i < weight_copy(taps, copy)) copy--;
  const int first = kLongMmaFirst + 4 * (i - weight_copy(taps, copy)) - copy - unused_values(taps);
  int v[4];
#pragma unroll
  for (int u = 0; u < 4; u++) v[u] = first + u >= 0 && first + u < taps ? line[first + u] : 0;
  return pick_bytes(byte, v[0], v[1], v[2], v[3]);
}

// Words of a line of samples, from the first one that a window reaches to the last one.
CUDACONV_HOST_DEVICE constexpr int words_of_line(int width, int taps) {
  return words_before(taps) + (width + taps / 2 + 3) / 4;
}

// Makes the planes of samples; each thread a word of a line, or a word of the weights in the first blocks.
__global__ void __launch_bounds__(kLongMmaThreads) long_mma_split_kernel(const __grid_constant__ LongSplitParams p) {
  const int thread = static_cast<int>(threadIdx.x);
  if (static_cast<int>(blockIdx.x) < p.first_block[0]) {
    int i = static_cast<int>(blockIdx.x) * kLongMmaThreads + thread;
#pragma unroll 1
    for (int axis = 0; axis < 2; axis++) {
      const int of_byte = weight_words(p.taps[axis]), words = p.weight_bytes[axis] * of_byte;
      if (i >= 0 && i < words) p.weights[axis][i] = weight_word(p.line[axis], p.taps[axis], i / of_byte, i % of_byte);
      i -= words;
    }
    return;
  }
  const Tile block = locate_tile(p, 1);
  const PartParams &part = block.part;
  const PixelRect &range = p.range[part.number];
  const int words = words_of_line(range.x1 - range.x0, p.taps[0]);
  const int i = block.x0 * kLongMmaThreads + thread, line = i / words;
  const int c = line % part.channels, y = range.y0 + line / part.channels;
  const ChannelParams &channel = part.channel[c];
  if (y >= range.y1 || channel.action != Action::Filter) return;
  const int x = range.x0 + 4 * (i % words - words_before(p.taps[0]));
  const uint8_t *const row = part.source + y * part.source_pitch;
  int v[4];
#pragma unroll
  for (int u = 0; u < 4; u++) {
    const int from = border_index(p.border, x + u, part.width), s = max(from, 0) * part.channels + c;
    const int container = part.container == Container::U8 ? row[s] : reinterpret_cast<const uint16_t *>(row)[s];
    v[u] = from < 0 ? channel.border_value : container >> channel.shift & ((1 << channel.depth) - 1);
  }
  const LongPlanes &planes = p.samples[part.number];
  uint8_t *const to = planes.line(0, c * part.height + y) + values_before(p.taps[0]) + x;
  *reinterpret_cast<uint32_t *>(to) = pick_bytes(0, v[0], v[1], v[2], v[3]);
  *reinterpret_cast<uint32_t *>(to + planes.plane()) = pick_bytes(1, v[0], v[1], v[2], v[3]);
}

// ---- Row sums ----

// Words of a line of row sums that contain values outside the frame, wherever in a word its last row lies.
CUDACONV_HOST_DEVICE constexpr int extended_words(int taps) {
  return words_before(taps) + (3 + taps / 2 + 3) / 4;
}

// Extends the lines of row sums above and below the frame; each thread a word of a line.
__global__ void __launch_bounds__(kLongMmaThreads) long_mma_extend_kernel(const __grid_constant__ LongMmaParams p) {
  const Tile block = locate_tile(p, 1);
  const PartParams &part = block.part;
  const int number = part.number, i = block.x0 * kLongMmaThreads + static_cast<int>(threadIdx.x);
  const LongPlanes &planes = p.sums[number];
  const int words = extended_words(p.taps[1]), word = i % words;
  const int line = p.range[number].x0 * part.channels + i / words, c = line % part.channels;
  if (line >= p.range[number].x1 * part.channels || part.channel[c].action != Action::Filter) return;
  const int above = words_before(p.taps[1]);
  const int y = (word < above ? 0 : part.height & -4) + 4 * (word - above);
  int from[4];
  each<4>([&](int u) { from[u] = border_index(p.border, y + u, part.height); });
  uint8_t *values = planes.line(0, line) + values_before(p.taps[1]);
#pragma unroll 1
  for (int byte = 0; byte < p.sum_bytes; byte++, values += planes.plane()) {
    int v[4];
    each<4>([&](int u) { v[u] = from[u] < 0 ? p.outside[number][c] >> 8 * byte : values[from[u]]; });
    if (y + 3 < 0 || y >= part.height) {
      *reinterpret_cast<uint32_t *>(values + y) = pick_bytes(0, v[0], v[1], v[2], v[3]);
      continue;
    }
#pragma unroll
    for (int u = 0; u < 4; u++)
      if (y + u >= part.height) values[y + u] = static_cast<uint8_t>(v[u]);
  }
}

}  // namespace cudaconv::long_masks
