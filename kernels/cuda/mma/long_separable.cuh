// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Long Gaussians of any depth on the matrix instructions: first sums along rows, to a transposed frame of 32-bit
// integers, then sums along its rows, which are columns of the picture. Both work alike: a block computes
// kLongMmaOutputs neighbouring outputs of each of kLongMmaLines lines, whose values it splits into bytes in shared
// memory, in stages if they are too many.
//
// A step is the 32 values of an instruction. The weights are its 16 x 32 matrix, with a row for each output, the values
// its 32 x 8 matrix, with a column for each line; each pair of a byte of a weight and a byte of a value takes an
// instruction. Since the order of the 32 is free, lane (g, t) takes bytes 8t to 8t + 7 of a line at once. The weights
// of row g begin g bytes later than those of row 0: shared memory has eight copies of the line of weights, each shifted
// by one byte more, so that every lane reads whole words of its own copy.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/mma/matrix.cuh"

namespace cudaconv {

constexpr int kMostLongTaps = 1501;

struct LongMmaParams : FrameParams {
  int32_t *sums;                             // row sums: of sample s, counted along the row, and row y at s * pitch + y
  int64_t first_sum[kMaxParts];              // where the sums of a part begin
  int32_t sum_pitch[kMaxParts];              // a multiple of 8
  int32_t outside[kMaxParts][kMaxChannels];  // border=constant: the sum of a row outside the frame
  int32_t first_tile[kMaxParts];             // number of a part's first block in the kernel for rows
  int32_t taps[2], row_shift;                // taps of a row and of a column
  int32_t result_shift;                      // see shift_of(); 0: results are rounded in any other way
  int32_t line[2][kMostLongTaps];            // weights, none negative
};

// Bytes per value and per weight.
template <int kValueBytes_, int kWeightBytes_>
struct LongMmaShape {
  static constexpr int kValueBytes = kValueBytes_, kWeightBytes = kWeightBytes_;
  static constexpr int kParts = kValueBytes + kWeightBytes - 1;
  static constexpr int kMinBlocks = kParts > 5 ? 1 : 2;
};

constexpr int kLongMmaWarps = 8, kLongMmaThreads = 32 * kLongMmaWarps;
constexpr int kLongMmaLines = 32, kLongMmaLineTiles = kLongMmaLines / 8;
constexpr int kLongMmaOutputs = 16 * kLongMmaWarps;
constexpr int kLongMmaStageSteps = 12;
// Pitch in words of a line of a stage: eight lanes read two words each at once, from four lines, without bank
// conflicts.
constexpr int kLongMmaPitch = 8 * kLongMmaStageSteps + 8;
static_assert(kLongMmaPitch % 32 == 8);
constexpr int kLongMmaFirst = -24;  // the byte of the line of weights at which its copies begin

// Values before the first one of the first window, so that lines are read from a multiple of four on.
CUDACONV_HOST_DEVICE constexpr int values_before(int taps) {
  return -(taps / 2) & 3;
}
// Pitch in words of a copy of the weights, zeros before and behind them included.
CUDACONV_HOST_DEVICE constexpr int weight_pitch(int taps) {
  return (taps / 4 + 24 + 31 - 8) / 32 * 32 + 8;
}
template <typename Shape>
CUDACONV_HOST_DEVICE constexpr size_t long_mma_bytes(int taps) {
  return sizeof(uint32_t) * (static_cast<size_t>(Shape::kWeightBytes) * 8 * weight_pitch(taps) +
                             Shape::kValueBytes * kLongMmaLines * kLongMmaPitch);
}

// Packs byte `index` of each of four values.
__device__ inline uint32_t bytes_of(const int (&v)[4], int index) {
  const uint32_t two = static_cast<uint32_t>(index | (index + 4) << 4);
  return __byte_perm(__byte_perm(static_cast<uint32_t>(v[0]), static_cast<uint32_t>(v[1]), two),
                     __byte_perm(static_cast<uint32_t>(v[2]), static_cast<uint32_t>(v[3]), two), 0x5410);
}

// The sums of a block. Warp w computes outputs 16w to 16w + 15 of every line; a lane has outputs g and g + 8 of lines
// 8t to 8t + 7.
template <typename Shape>
class LongMmaSums {
 public:
  // All threads of the block call this together. open(line) returns an object whose load(first, values) loads four
  // values of the line, counted from values_before() the first window on. Where is_inside(first, count) says that these
  // all lie inside the frame, with_loader(f) calls f with a function that loads them faster.
  template <typename Open>
  __device__ LongMmaSums(const int32_t *line, const int32_t &taps, uint32_t *memory, Open open)
      : taps_(taps),
        warp_(warp_uniform(static_cast<int>(threadIdx.x) / 32)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        weights_(memory),
        values_(memory + Shape::kWeightBytes * 8 * weight_pitch(taps)) {
    make_weights(line);
#pragma unroll
    for (PartialSums<Shape::kParts> &tile : sums_)
#pragma unroll
      for (Sums &part : tile.part) part = all(0);
    const int length = taps + values_before(taps), last = (kLongMmaOutputs - 1 + length + 31) / 32;
    const int begin = 16 * warp_ / 32, end = (16 * warp_ + 15 + length + 31) / 32;
#pragma unroll 1
    for (int stage = 0; stage < last; stage += kLongMmaStageSteps) {
      const int steps = min(kLongMmaStageSteps, last - stage);
      __syncthreads();
      load_stage(stage, steps, open);
      __syncthreads();
#pragma unroll 1
      for (int step = max(begin, stage); step < min(end, stage + steps); step++) add_step(step, step - stage);
    }
  }

  // The sum of output g + 8 * upper of the warp and of line 8t + i.
  __device__ uint64_t sum(int upper, int i) const {
    const PartialSums<Shape::kParts> &tile = sums_[i / 2];
    uint64_t sum = 0;
#pragma unroll
    for (int k = 0; k < Shape::kParts; k++) {
      const auto part = static_cast<uint32_t>(tile.part[k].v[2 * upper + i % 2]);
      // A multiply-add to 64 bits takes one instruction, a shift of 64 bits several.
      sum += k < 4 ? uint64_t{part} * (1u << 8 * k % 32) : uint64_t{part << 8 * k % 32} << 32;
    }
    return sum;
  }
  __device__ int output(int upper) const {
    return 16 * warp_ + lane_ / 4 + 8 * upper;
  }
  __device__ int first_line() const {
    return lane_ % 4 * 8;
  }

 private:
  // Packs the bytes of weights in words, then makes the copies.
  __device__ void make_weights(const int32_t *line) {
    const int thread = static_cast<int>(threadIdx.x), words = (taps_ + 3) / 4, pitch = weight_pitch(taps_);
    for (int i = thread; i < words; i += kLongMmaThreads) {
      int v[4];
#pragma unroll
      for (int u = 0; u < 4; u++) v[u] = 4 * i + u < taps_ ? line[4 * i + u] : 0;
#pragma unroll
      for (int q = 0; q < Shape::kWeightBytes; q++) values_[q * words + i] = bytes_of(v, q);
    }
    __syncthreads();
    const int before = values_before(taps_);
#pragma unroll
    for (int q = 0; q < Shape::kWeightBytes; q++) {
      const auto word = [&](int i) { return i >= 0 && i < words ? values_[q * words + i] : 0; };
      for (int i = thread; i < 8 * pitch; i += kLongMmaThreads) {
        const int copy = i / pitch, first = kLongMmaFirst + i % pitch * 4 - copy - before;
        weights_[q * 8 * pitch + i] = __funnelshift_r(word(first >> 2), word((first >> 2) + 1), (first & 3) * 8);
      }
    }
  }

  template <typename Open>
  __device__ void load_stage(int stage, int steps, Open open) {
#pragma unroll 1
    for (int line = warp_; line < kLongMmaLines; line += kLongMmaWarps) {
      const auto source = open(line);
      // Columns 2t and 2t + 1 of four tiles are lines 8t to 8t + 7.
      const int row = line / 2 % 4 * 8 + line / 8 * 2 + line % 2;
      const auto store = [&](int quad, const int(&v)[4]) {
#pragma unroll
        for (int q = 0; q < Shape::kValueBytes; q++)
          values_[(q * kLongMmaLines + row) * kLongMmaPitch + quad] = bytes_of(v, q);
      };
      if (source.is_inside(32 * stage, 32 * steps)) {
        source.with_loader([&](auto load) {
#pragma unroll 2
          for (int quad = lane_; quad < 8 * steps; quad += 32) {
            int v[4];
            load(32 * stage + 4 * quad, v);
            store(quad, v);
          }
        });
      } else {
#pragma unroll 1
        for (int quad = lane_; quad < 8 * steps; quad += 32) {
          int v[4];
          source.load(32 * stage + 4 * quad, v);
          store(quad, v);
        }
      }
    }
  }

  __device__ void add_step(int step, int step_of_stage) {
    const int g = lane_ / 4, t = lane_ % 4, pitch = weight_pitch(taps_);
    const uint32_t *weights = weights_ + g * pitch + (32 * step - 16 * warp_ + 8 * t - kLongMmaFirst) / 4;
    const uint32_t *values = values_ + g * kLongMmaPitch + 8 * step_of_stage + 2 * t;
    uint32_t a[Shape::kWeightBytes][4];
#pragma unroll
    for (int q = 0; q < Shape::kWeightBytes; q++) {
      const uint2 first = *reinterpret_cast<const uint2 *>(weights + q * 8 * pitch);
      const uint2 second = *reinterpret_cast<const uint2 *>(weights + q * 8 * pitch - 2);  // 8 outputs farther
      a[q][0] = first.x;
      a[q][1] = second.x;
      a[q][2] = first.y;
      a[q][3] = second.y;
    }
#pragma unroll
    for (int tile = 0; tile < kLongMmaLineTiles; tile++)
#pragma unroll
      for (int v = 0; v < Shape::kValueBytes; v++) {
        const uint2 b = *reinterpret_cast<const uint2 *>(values + (v * kLongMmaLines + 8 * tile) * kLongMmaPitch);
#pragma unroll
        for (int q = 0; q < Shape::kWeightBytes; q++) {
          Sums &sums = sums_[tile].part[v + q];
          sums = mma<false, false, 2>(a[q], {b.x, b.y}, sums);
        }
      }
  }

  const int32_t &taps_;
  const int warp_, lane_;
  uint32_t *const weights_, *const values_;
  PartialSums<Shape::kParts> sums_[kLongMmaLineTiles];
};

// ---- Along rows ----

// Loads samples of channel c of a row; value 0 is the sample at x0, a multiple of four.
template <typename Container>
struct LongRow {
  const Container *row;
  int c, x0, width, channels, shift, mask, border_value;
  Border border;

  __device__ bool is_inside(int first, int count) const { return x0 + first >= 0 && x0 + first + count <= width; }
  __device__ int sample(int x) const { return row[x * channels + c] >> shift & mask; }
  __device__ void load(int first, int (&v)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int inside = border_index(border, x0 + first + i, width);
      v[i] = inside < 0 ? border_value : sample(inside);
    }
  }
  template <typename F>
  __device__ void with_loader(F f) const {
    if (channels == 1)
      f([&](int first, int(&v)[4]) { load_pixels<1>(x0 + first, v); });
    else if (channels == 2)
      f([&](int first, int(&v)[4]) { load_pixels<2>(x0 + first, v); });
    else
      f([&](int first, int(&v)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = sample(x0 + first + i);
      });
  }

 private:
  // Loads four pixels at once.
  template <int kChannels>
  __device__ void load_pixels(int x, int (&v)[4]) const {
    constexpr int kBytes = static_cast<int>(sizeof(Container)), kPixelBytes = kBytes * kChannels;
    uint32_t word[kPixelBytes];
    load_words<kPixelBytes>(row + x * kChannels, word);
    const int bit = 8 * kBytes * c + shift;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int byte = i * kPixelBytes;
      v[i] = static_cast<int>(word[byte / 4] >> (byte % 4 * 8 + bit)) & mask;
    }
  }
};

template <typename Shape, typename Container>
__device__ inline void sum_rows(const LongMmaParams &p, int number, int c, int x0, int y0, uint32_t *memory) {
  const PartParams &part = p.part[number];
  const ChannelParams &channel = part.channel[c];
  const LongMmaSums<Shape> sums(p.line[0], p.taps[0], memory, [&](int line) {
    const auto *row =
        reinterpret_cast<const Container *>(part.source + min(y0 + line, part.height - 1) * part.source_pitch);
    return LongRow<Container>{row,
                              c,
                              x0 - p.taps[0] / 2 - values_before(p.taps[0]),
                              part.width,
                              part.channels,
                              channel.shift,
                              (1 << channel.depth) - 1,
                              channel.border_value,
                              p.border};
  });
  const int y = y0 + sums.first_line(), pitch = p.sum_pitch[number];
  if (y >= pitch) return;
#pragma unroll
  for (int upper = 0; upper < 2; upper++) {
    const int x = x0 + sums.output(upper);
    if (x >= part.width) continue;
    uint32_t rounded[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
      rounded[i] = static_cast<uint32_t>((sums.sum(upper, i) + (uint64_t{1} << (p.row_shift - 1))) >> p.row_shift);
    store_words<8>(p.sums + p.first_sum[number] + int64_t{x * part.channels + c} * pitch + y, rounded);
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kLongMmaThreads, Shape::kMinBlocks)
    long_mma_rows_kernel(const __grid_constant__ LongMmaParams p) {
  if constexpr (kHasMma) {
    int number = 0;
    const int block = static_cast<int>(blockIdx.x);
    while (number + 1 < p.parts && block >= p.first_tile[number + 1]) number++;
    const PartParams &part = p.part[number];
    const int tile = (block - p.first_tile[number]) / part.channels;
    const int c = (block - p.first_tile[number]) % part.channels;
    if (part.channel[c].action != Action::Filter) return;
    const int across = (part.width + kLongMmaOutputs - 1) / kLongMmaOutputs;
    const int x0 = tile % across * kLongMmaOutputs, y0 = tile / across * kLongMmaLines;
    if (part.container == Container::U8)
      sum_rows<Shape, uint8_t>(p, number, c, x0, y0, shared_memory<uint32_t>());
    else
      sum_rows<Shape, uint16_t>(p, number, c, x0, y0, shared_memory<uint32_t>());
  }
}

// ---- Along columns ----

// Loads row sums of a column of samples; value 0 is the one of row y0, a multiple of four.
struct LongColumn {
  const int32_t *sums;
  int y0, height, outside;
  Border border;

  __device__ bool is_inside(int first, int count) const { return y0 + first >= 0 && y0 + first + count <= height; }
  __device__ void load(int first, int (&v)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int inside = border_index(border, y0 + first + i, height);
      v[i] = inside < 0 ? outside : sums[inside];
    }
  }
  template <typename F>
  __device__ void with_loader(F f) const {
    f([&](int first, int(&v)[4]) {
      const int4 four = *reinterpret_cast<const int4 *>(sums + y0 + first);
      v[0] = four.x;
      v[1] = four.y;
      v[2] = four.z;
      v[3] = four.w;
    });
  }
};

// Rounds a sum to sample `index` of row y.
template <typename Container>
__device__ inline int round_sum(const LongMmaParams &p, const PartParams &part, int index, int y, uint64_t total) {
  if (p.result_shift) return static_cast<int>((total + (uint64_t{1} << (p.result_shift - 1))) >> p.result_shift);
  auto sum = static_cast<int64_t>(total);
  const ChannelParams &channel = part.channel[index % part.channels];
  const Rounding &rounding = p.rounding[channel.rounding];
  if (p.has_gain) {
    const int v = reinterpret_cast<const Container *>(part.source + y * part.source_pitch)[index];
    sum = apply_gain(sum, p.sum_shift, p.sum_gain, p.center_gain, v >> channel.shift & ((1 << channel.depth) - 1));
  } else if (!rounding.wide) {
    return round_to_sample(static_cast<int32_t>(sum), rounding);
  }
  return round_to_sample(sum, rounding);
}

// Writes samples `first` to `first` + 7 of row y.
template <typename Container>
__device__ inline void put_samples(const LongMmaParams &p, const PartParams &part, int first, int y,
                                   const int (&results)[8]) {
  auto *const to = reinterpret_cast<Container *>(part.target + y * part.target_pitch) + first;
  const int row = part.width * part.channels;
  if (part.has_unfiltered || first + 8 > row) {
#pragma unroll 1
    for (int i = 0; i < 8 && first + i < row; i++) {
      const int x = (first + i) / part.channels, c = (first + i) % part.channels;
      bool filtered;
      int v = unfiltered(p, part, x, y, c, &filtered);
#pragma unroll
      for (int r = 0; r < 8; r++)
        if (filtered && r == i) v = results[r];
      to[i] = static_cast<Container>(v << part.channel[c].shift);
    }
    return;
  }
  const int shift = part.channel[0].shift;
  constexpr int kOfWord = 4 / sizeof(Container);
  uint32_t words[8 / kOfWord] = {};
#pragma unroll
  for (int i = 0; i < 8; i++)
    words[i / kOfWord] |= static_cast<uint32_t>(results[i] << shift) << i % kOfWord * 8 * sizeof(Container);
  store_words<8 / kOfWord>(to, words);
}

template <typename Shape, typename Container>
__device__ inline void sum_columns(const LongMmaParams &p, const Tile &tile, int first_sample, uint32_t *memory) {
  const PartParams &part = tile.part;
  const int number = part.number, row = part.width * part.channels;
  const LongMmaSums<Shape> sums(p.line[1], p.taps[1], memory, [&](int line) {
    const int index = min(first_sample + line, row - 1);
    return LongColumn{p.sums + p.first_sum[number] + int64_t{index} * p.sum_pitch[number],
                      tile.y0 - p.taps[1] / 2 - values_before(p.taps[1]), part.height,
                      p.outside[number][index % part.channels], p.border};
  });
  const int first = first_sample + sums.first_line();
  if (first >= row) return;
#pragma unroll
  for (int upper = 0; upper < 2; upper++) {
    const int y = tile.y0 + sums.output(upper);
    if (y >= part.height) continue;
    int results[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
      results[i] = round_sum<Container>(p, part, min(first + i, row - 1), y, sums.sum(upper, i));
    put_samples<Container>(p, part, first, y, results);
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kLongMmaThreads, Shape::kMinBlocks)
    long_mma_columns_kernel(const __grid_constant__ LongMmaParams p) {
  if constexpr (kHasMma) {
    const Tile tile = locate_tile(p, kLongMmaOutputs);
    if (!tile.part.has_filtered) return copy_tile(tile.part, tile.x0, tile.y0, kLongMmaLines, kLongMmaOutputs);
    const int end = min(tile.x0 + kLongMmaLines, tile.part.width) * tile.part.channels;
#pragma unroll 1
    for (int first = tile.x0 * tile.part.channels; first < end; first += kLongMmaLines) {
      __syncthreads();  // the previous lines have been summed
      if (tile.part.container == Container::U8)
        sum_columns<Shape, uint8_t>(p, tile, first, shared_memory<uint32_t>());
      else
        sum_columns<Shape, uint16_t>(p, tile, first, shared_memory<uint32_t>());
    }
  }
}

}  // namespace cudaconv
