// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Long Gaussians of any depth on the matrix instructions: sums along rows, then along columns, of the planes of
// long_planes.cuh. They make the same bytes as factored_row() and factored_column() of methods/operations.cuh.
//
// A block computes kLongMmaOutputs neighbouring outputs of kLongMmaLines lines. The bytes of lines are copied to shared
// memory, chunk by chunk, while the chunks before are summed. A step is the 32 values of an instruction:
//
//      weights, 16 x 32: a row for each output     values, 32 x 8: a column for each line
//
// Each pair of a byte of a weight and a byte of a value takes an instruction. Since the order of the 32 is free, lane
// (g, t) takes bytes 8t to 8t + 7 of a line at once. Row g of the weights begins g bytes later than row 0:
//
//      row 0    w0 w1 w2 w3 w4 ...
//      row 1    0  w0 w1 w2 w3 ...
//      row 2    0  0  w0 w1 w2 ...
//
// Lane t gets the sums of columns 2t and 2t + 1 of each of four tiles of 8 lines; these are lines 8t to 8t + 7.
// Example: line 13 is column 3 of tile 2.
//
// There are eight copies of the line of weights, each shifted by one byte more, so that every lane reads whole words of
// its own copy.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/long/long_planes.cuh"
#include "cuda/device/mma/matrix.cuh"

namespace cudaconv::long_masks {

// Bytes per value and per weight.
template <int kValueBytes_, int kWeightBytes_>
struct LongMmaShape {
  static constexpr int kValueBytes = kValueBytes_, kWeightBytes = kWeightBytes_;
  static constexpr int kParts = kValueBytes + kWeightBytes - 1;
  static constexpr int kMinBlocks = kWeightBytes > 3 ? 1 : 2;
  // Lowest bytes of a sum that are dropped before its last shift: the rest fits 32 bits.
  static constexpr int kRowBytesDropped = kParts > 3 ? 2 : 1, kColumnBytesDropped = kParts > 3 ? 4 : 2;
};

constexpr int kLongMmaSlots = 3;  // of chunks in shared memory
constexpr int kLongMmaChunkSteps = kLongMmaChunk / 32;
// Pitch in words of a line of a chunk: eight lanes read two words each at once, from four lines, without bank
// conflicts.
constexpr int kLongMmaPitch = kLongMmaChunk / 4 + 8;
template <typename Shape>
CUDACONV_HOST_DEVICE constexpr size_t long_mma_bytes(int taps) {
  return sizeof(uint32_t) * (static_cast<size_t>(Shape::kWeightBytes) * weight_words(taps) +
                             kLongMmaSlots * Shape::kValueBytes * kLongMmaLines * kLongMmaPitch);
}

// ---- Sums ----

// The sums of kLongMmaLines lines. Warp w computes outputs 16w to 16w + 15 of every line; a lane has outputs g and g +
// 8 of lines 8t to 8t + 7.
template <typename Shape>
class LongMmaSums {
 public:
  // Computes the sums of lines `line` ... from output `output` on; lines behind the last one of `count` are read from
  // that one. `axis`: 0 along rows, 1 along columns. `start`: what sums begin with, in units of 256^kStartPart. All
  // threads of the block call this together.
  template <int kStartPart>
  __device__ void run(const LongMmaParams &p, int axis, const LongPlanes &planes, int line, int count, int output,
                      int32_t start) {
    taps_ = p.taps[axis];
    uint32_t *const weights = shared_memory<uint32_t>();
    const int words = Shape::kWeightBytes * weight_words(taps_), thread = static_cast<int>(threadIdx.x);
    for (int i = 4 * thread; i < words; i += 4 * kLongMmaThreads) copy_async(weights + i, p.weights[axis] + i);
    // A thread copies the same 16 bytes of each chunk of a line. `row`: 8 * tile + column.
    constexpr int kPieces = kLongMmaChunk / 16, kSlotWords = Shape::kValueBytes * kLongMmaLines * kLongMmaPitch;
    static_assert(kLongMmaThreads == kPieces * kLongMmaLines);
    const int copied = thread / kPieces, piece = thread % kPieces, chunks = chunks_read(taps_);
    const int row = copied / 2 % 4 * 8 + copied / 8 * 2 + copied % 2;
    const uint8_t *const from = planes.line(0, line + min(copied, count - 1)) + first_read(taps_) + output + 16 * piece;
    const int64_t plane = planes.plane();
    const auto copy = [&](int chunk) {
      uint32_t *const to = weights + words + chunk % kLongMmaSlots * kSlotWords + row * kLongMmaPitch + 4 * piece;
      if (chunk < chunks)
#pragma unroll
        for (int v = 0; v < Shape::kValueBytes; v++)
          copy_async(to + v * kLongMmaLines * kLongMmaPitch, from + chunk * kLongMmaChunk + v * plane);
      commit_copies();
    };
    each<kLongMmaSlots - 1>([&](int chunk) { copy(chunk); });
#pragma unroll
    for (Tile &tile : sums_) each<Shape::kParts>([&](int k) { tile.part[k] = all(k == kStartPart ? start : 0); });
    const int length = taps_ + unused_values(taps_);
    const int begin = 16 * warp_ / 32, end = (16 * warp_ + 15 + length + 31) / 32;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk++) {
      wait_for_groups<kLongMmaSlots - 2>();
      __syncthreads();
      copy(chunk + kLongMmaSlots - 1);
      const int first = chunk * kLongMmaChunkSteps, last = min(end, first + kLongMmaChunkSteps);
      const uint32_t *const values = weights + words + chunk % kLongMmaSlots * kSlotWords;
#pragma unroll 1
      for (int step = max(begin, first); step < last; step++) add_step(step, weights, values + 8 * (step - first));
    }
  }

  // The sum of output g + 8 * upper of the warp and of line 8t + i.
  __device__ uint64_t sum(int upper, int i) const {
    uint64_t sum = 0;
#pragma unroll
    for (int k = 0; k < Shape::kParts; k++) {
      // A multiply-add to 64 bits takes one instruction, a shift of 64 bits several.
      const uint32_t v = part(k, upper, i);
      sum += k < 4 ? uint64_t{v} * (1u << 8 * k % 32) : uint64_t{v << 8 * k % 32} << 32;
    }
    return sum;
  }
  // The same without its lowest kDropped bytes; the rest fits 32 bits.
  template <int kDropped>
  __device__ uint32_t high_sum(int upper, int i) const {
    uint32_t sum = part(0, upper, i);
#pragma unroll
    for (int k = 1; k < Shape::kParts; k++)
      sum = k <= kDropped ? (sum >> 8) + part(k, upper, i) : sum + (part(k, upper, i) << 8 * (k - kDropped));
    return sum;
  }
  __device__ int output(int upper) const {
    return 16 * warp_ + static_cast<int>(threadIdx.x % 32 / 4) + 8 * upper;
  }
  __device__ static int first_line() {
    return static_cast<int>(threadIdx.x % 4 * 8);
  }

 private:
  using Tile = PartialSums<Shape::kParts>;

  __device__ uint32_t part(int k, int upper, int i) const {
    return static_cast<uint32_t>(sums_[i / 2].part[k].v[2 * upper + i % 2]);
  }

  // `values`: the words of lines from the step on.
  __device__ void add_step(int step, const uint32_t *weights, const uint32_t *values) {
    const int g = static_cast<int>(threadIdx.x % 32 / 4), t = static_cast<int>(threadIdx.x % 4);
    weights += weight_copy(taps_, g) + 2 * t - 4 * warp_ - kLongMmaFirst / 4 + 8 * step;
    values += g * kLongMmaPitch + 2 * t;
    uint32_t a[Shape::kWeightBytes][4];
#pragma unroll
    for (int q = 0; q < Shape::kWeightBytes; q++, weights += weight_words(taps_)) {
      a[q][0] = weights[0];
      a[q][1] = weights[-2];  // 8 outputs farther
      a[q][2] = weights[1];
      a[q][3] = weights[-1];
    }
    each<kLongMmaLineTiles, Shape::kValueBytes>([&](int tile, int v) {
      uint32_t b[2];
      load_words<2>(values + (v * kLongMmaLines + 8 * tile) * kLongMmaPitch, b);
#pragma unroll
      for (int q = 0; q < Shape::kWeightBytes; q++) {
        Sums &sums = sums_[tile].part[v + q];
        sums = mma<false, false, 2>(a[q], b, sums);
      }
    });
  }

  const int warp_ = warp_uniform(static_cast<int>(threadIdx.x) / 32);
  int taps_;
  Tile sums_[kLongMmaLineTiles];
};

// ---- Along rows ----

template <typename Shape>
__global__ void __launch_bounds__(kLongMmaThreads, Shape::kMinBlocks)
    long_mma_rows_kernel(const __grid_constant__ LongMmaParams p) {
  if constexpr (kHasMma) {
    const Tile block = locate_tile(p, 1);
    const PartParams &part = block.part;
    const int number = part.number, c = block.x0 % part.channels;
    const PixelRect &range = p.range[number];
    if (part.channel[c].action != Action::Filter) return;
    const int x0 = range.x0 + block.x0 / part.channels * kLongMmaOutputs;
    const int y0 = range.y0 + block.y0 * kLongMmaLines, y = y0 + LongMmaSums<Shape>::first_line();
    LongMmaSums<Shape> sums;
    sums.template run<0>(p, 0, p.samples[number], c * part.height + y0, range.y1 - y0, x0, 1 << (p.row_shift - 1));
    if (y >= range.y1) return;
    const LongPlanes &planes = p.sums[number];
#pragma unroll
    for (int upper = 0; upper < 2; upper++) {
      const int x = x0 + sums.output(upper);
      if (x >= range.x1) continue;
      constexpr int kDropped = Shape::kRowBytesDropped;
      uint32_t rounded[8];
      each<8>([&](int i) { rounded[i] = sums.template high_sum<kDropped>(upper, i) >> (p.row_shift - 8 * kDropped); });
      // Sums of rows below the last one are replaced later, or not read.
      uint8_t *to = planes.line(0, x * part.channels + c) + values_before(p.taps[1]) + y;
#pragma unroll
      for (int byte = 0; byte < 4; byte++, to += planes.plane())
        if (byte < p.sum_bytes)
          *reinterpret_cast<uint2 *>(to) = make_uint2(pick_bytes(byte, rounded[0], rounded[1], rounded[2], rounded[3]),
                                                      pick_bytes(byte, rounded[4], rounded[5], rounded[6], rounded[7]));
    }
  }
}

// ---- Along columns ----

// Makes the results of a group's sums, of columns of samples from `sample` on.
template <typename Shape>
__device__ inline void finish_columns(const LongMmaParams &p, const Tile &tile, const LongMmaSums<Shape> &sums,
                                      int sample) {
  constexpr int kDropped = Shape::kColumnBytesDropped;
  const PartParams &part = tile.part;
  const ChannelParams &channel = part.channel[0];
  const bool is_byte = part.container == Container::U8;
  const int first = is_byte ? sample : 2 * sample;  // in bytes
  const int bytes = (is_byte ? 1 : 2) * part.width * part.channels - first;
#pragma unroll
  for (int upper = 0; upper < 2; upper++) {
    const int y = tile.y0 + sums.output(upper);
    if (y >= part.height) continue;
    uint32_t source[4] = {}, words[4], containers[8];
    const uint8_t *const from = part.source + y * part.source_pitch + first;
    if (p.has_gain || part.has_unfiltered)
      is_byte ? load_bytes<2>(from, bytes, source) : load_bytes<4>(from, bytes, source);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (p.result_shift) {
        containers[i] = sums.template high_sum<kDropped>(upper, i) >> (p.result_shift - 8 * kDropped) << channel.shift;
        continue;
      }
      const uint32_t container = is_byte ? source[i / 4] >> 8 * (i % 4) : source[i / 2] >> 16 * (i % 2);
      const uint32_t centre = container >> channel.shift & ((1u << channel.depth) - 1);
      const auto sum = static_cast<int64_t>(sums.sum(upper, i));
      containers[i] = static_cast<uint32_t>(round_sum(p, p.rounding[0], sum, static_cast<int>(centre)))
                      << channel.shift;
    }
    // Containers of unfiltered channels can have any bits.
    each<4>([&](int w) { words[w] = __byte_perm(containers[2 * w], containers[2 * w + 1], 0x5410); });
    if (is_byte) each<2>([&](int w) { words[w] = __byte_perm(words[2 * w], words[2 * w + 1], 0x6420); });
    if (part.has_unfiltered)
#pragma unroll
      for (int w = 0; w < 4; w++)
        words[w] = blend_channels(part, words[w], source[w], part.channels == 3 ? (first / 4 + w) % 3 : w % 2);
    uint8_t *const to = part.target + y * part.target_pitch + first;
    is_byte ? store_bytes<2>(to, bytes, words) : store_bytes<4>(to, bytes, words);
  }
}

// Columns of tiles are samples.
template <typename Shape>
__global__ void __launch_bounds__(kLongMmaThreads, Shape::kMinBlocks)
    long_mma_columns_kernel(const __grid_constant__ LongMmaParams p) {
  if constexpr (kHasMma) {
    const Tile tile = locate_tile(p, kLongMmaOutputs);
    const PartParams &part = tile.part;
    if (!part.has_filtered) return copy_samples(part, tile.x0, kLongMmaLines, tile.y0, kLongMmaOutputs);
    const int row = part.width * part.channels, sample = tile.x0 + LongMmaSums<Shape>::first_line();
    LongMmaSums<Shape> sums;
    sums.template run<1>(p, 1, p.sums[part.number], tile.x0, row - tile.x0, tile.y0, p.start);
    if (sample < row) finish_columns(p, tile, sums, sample);
  }
}

}  // namespace cudaconv::long_masks
