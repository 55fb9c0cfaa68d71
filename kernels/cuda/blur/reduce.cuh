// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that reduce samples to coarse samples, the first step of plan/decimation.h, as reduce() of cpu/blur.cpp
// does it. Coarse sample m is made of the 4D - 3 samples about m * D, in both directions. Example, D = 2: the weights
// are 1 4 6 4 1, and coarse sample 10 is made of samples 18 to 22.
#pragma once

#include <type_traits>

#include "cuda/blur/blur.h"
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"

namespace cudaconv::blur {

constexpr int kBlurThreads = 256;
// Rows of samples that a thread loads at once when it reduces columns, and rows before those that it needs.
constexpr int kReduceAtOnce = 8, kReduceBefore = 3;
// Blocks of a multiprocessor that reduce words, as registers allow.
constexpr int kReduceBlocks = 3;

// How many rows of samples are read from the first needed one on, to reduce them to `rows` coarse rows.
CUDACONV_HOST_DEVICE constexpr int reduce_rows_read(int log_factor, int rows) {
  return (((rows + 3) << log_factor) + kReduceAtOnce - 1) / kReduceAtOnce * kReduceAtOnce - kReduceBefore;
}

// The tile of a block: its part and position among the tiles that CoarseBuffers counts for a kernel.
struct CoarseTile {
  int part, x, y;
};

__device__ inline CoarseTile locate_coarse_tile(const BlurParams &p, int kernel) {
  const int block = static_cast<int>(blockIdx.x);
  int i = 0;
  while (i + 1 < p.parts && block >= p.coarse[i + 1].first_tile[kernel]) i++;
  const int tile = block - p.coarse[i].first_tile[kernel], columns = p.coarse[i].tiles_x[kernel];
  return {i, tile % columns, tile / columns};
}

// Four neighbouring samples: bytes of a word or, if kDeep, halves of two.
template <bool kDeep>
struct FourSamples {
  static constexpr int kBits = kDeep ? 16 : 8, kOfWord = 32 / kBits;
  uint32_t word[4 / kOfWord];

  __device__ void add(int i, uint32_t sample) { word[i / kOfWord] |= sample << (kBits * (i % kOfWord)); }
};

// Four neighbouring samples of each row of the source; they may lie outside the frame. Sample s has channel
// s % channels. kWords: rows can be loaded as words, of 16-bit containers; else samples may lie in any way.
template <bool kWords>
class SampleColumn {
 public:
  using Four = FourSamples<true>;

  // `inside`: the samples are words that lie inside. It is the same for a warp, so that none loads in two ways.
  __device__ SampleColumn(const BlurParams &p, const PartParams &part, int first_sample, bool inside)
      : p_(p), part_(part), first_(first_sample), inside_(inside) {
    if (inside) {
#pragma unroll
      for (int w = 0; w < kRowWords; w++) border_.word[w] = border_word(part, kBytes * first_sample, w);
      unpack(border_);
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int s = first_sample + i, channels = part.channels;
      int x = s / channels, c = s - x * channels;
      if (c < 0) {
        x--;
        c += channels;
      }
      x = border_index(p.border, x, part.width);
      if (x < 0) outside_.add(i, (1u << Four::kBits) - 1);
      at_[i] = kWords ? max(x, 0) * channels + c : max(x, 0) * kMaxChannels + c;
      border_.add(i, part.channel[c].border_value & ((1u << Four::kBits) - 1));
    }
  }

  // Loads the samples of a row that lies inside, of columns that do.
  __device__ Four load(int y) const {
    Four four;
    load_words<kRowWords>(part_.source + y * part_.source_pitch + kBytes * first_, four.word);
    unpack(four);
    return four;
  }

  // Loads the samples of any row; `row` is what border_index() makes of it.
  __device__ Four load_any(int row) const {
    const int y = max(row, 0);
    Four four = {};
    if (inside_) {
      four = load(y);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) four.add(i, load_one(y, at_[i]));
#pragma unroll
      for (int w = 0; w < kRowWords; w++)
        four.word[w] = (four.word[w] & ~outside_.word[w]) | (border_.word[w] & outside_.word[w]);
    }
#pragma unroll
    for (int w = 0; w < kRowWords; w++) four.word[w] = row < 0 ? border_.word[w] : four.word[w];
    return four;
  }

 private:
  static constexpr int kBytes = 2, kRowWords = kBytes;

  // Makes samples of containers.
  __device__ void unpack(Four &four) const {
#pragma unroll
    for (uint32_t &word : four.word) word = word >> p_.sample_shift & (p_.sample_mask << 16 | p_.sample_mask);
  }

  __device__ uint32_t load_one(int y, int at) const {
    if constexpr (!kWords) {
      const ChannelReader reader(part_, part_.source, part_.source_pitch, at % kMaxChannels);
      return static_cast<uint32_t>(reader.at(at / kMaxChannels, y));
    }
    const uint8_t *const sample = part_.source + y * part_.source_pitch + kBytes * at;
    return *reinterpret_cast<const uint16_t *>(sample) >> p_.sample_shift & p_.sample_mask;
  }

  const BlurParams &p_;
  const PartParams &part_;
  const int first_;
  const bool inside_;
  int at_[4];                        // samples of the row or, without kWords, pixel * kMaxChannels + channel
  Four border_ = {}, outside_ = {};  // border samples; ones in place of samples that are such
};

// Makes a line of values half as long. Value k of the result is:
//
//   v[2k - 2] + 4 v[2k - 1] + 6 v[2k] + 4 v[2k + 1] + v[2k + 2]
//
// Repeated log2 D times, this is the reduction by D without its rounding. Four boxes of 4 samples, for example, are
// four boxes of two neighbours, then four boxes of two samples two apart.
class Halving {
 public:
  // Takes values 2k + 1 and 2k + 2, and returns value k of the result. The first call with v[0], and the next one,
  // return values that are not complete.
  __device__ uint32_t add(uint32_t odd, uint32_t even) {
    const uint32_t four = 4 * odd, result = pending_ + four + even;
    pending_ = even_ + four + 6 * even;
    even_ = even;
    return result;
  }

 private:
  uint32_t even_ = 0, pending_ = 0;
};

// Sums four neighbouring columns of samples, of up to 12 bits, for one coarse row after the other.
template <int kLogFactor>
class ColumnReducer {
 public:
  static constexpr int kFactor = 1 << kLogFactor;

  // Takes the next D rows.
  __device__ void add(const FourSamples<true> *rows, uint32_t (&sum)[4]) {
    // Two sums share a word while they fit 16 bits: 4095 * 16 does.
    uint32_t twice[kFactor / 2][2];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int k = 0; k < kFactor / 2; k++) twice[k][h] = first_[h].add(rows[2 * k].word[h], rows[2 * k + 1].word[h]);
    if constexpr (kLogFactor == 1) {
      split(twice[0], sum);
    } else {
      uint32_t four_times[kFactor / 4][4];
#pragma unroll
      for (int k = 0; k < kFactor / 4; k++) {
        uint32_t odd[4], even[4];
        split(twice[2 * k], odd);
        split(twice[2 * k + 1], even);
#pragma unroll
        for (int i = 0; i < 4; i++) four_times[k][i] = second_[i].add(odd[i], even[i]);
      }
#pragma unroll
      for (int i = 0; i < 4; i++)
        sum[i] = kLogFactor == 2 ? four_times[0][i] : third_[i].add(four_times[0][i], four_times[kFactor / 4 - 1][i]);
    }
  }

 private:
  // Splits two pairs.
  __device__ static void split(const uint32_t (&pairs)[2], uint32_t (&sum)[4]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      sum[2 * h] = pairs[h] & 0xffff;
      sum[2 * h + 1] = pairs[h] >> 16;
    }
  }

  Halving first_[2], second_[4], third_[4];
};

// Calls store(row, sum) for `rows` coarse rows. The first one is made of load(0) to load(4D - 4). Some rows of samples
// before and behind are loaded, too: see reduce_rows_read().
template <int kLogFactor, typename Load, typename Store>
__device__ inline void reduce_columns(int rows, Load load, Store store) {
  constexpr int kFactor = 1 << kLogFactor, kSteps = kReduceAtOnce / kFactor;
  ColumnReducer<kLogFactor> reducer;
#pragma unroll 1
  for (int step0 = 0; step0 < rows + 3; step0 += kSteps) {
    FourSamples<true> four[kReduceAtOnce];
#pragma unroll
    for (int u = 0; u < kReduceAtOnce; u++) four[u] = load(step0 * kFactor + u - kReduceBefore);
#pragma unroll
    for (int s = 0; s < kSteps; s++) {
      uint32_t sum[4];
      reducer.add(four + s * kFactor, sum);
      const int row = step0 + s - 3;
      if (row >= 0 && row < rows) store(row, sum);
    }
  }
}

// Sums the columns' sums of a tile, in shared memory, along rows. `sums`: the first sample that windows reach, of rows
// `pitch` samples apart. `reduced`: where the tile's first coarse sample goes.
template <int kChannels, int kLogFactor>
__device__ inline void reduce_rows(const BlurParams &p, const int16_t *sums, int pitch, int columns, int rows,
                                   int64_t reduced_pitch, int16_t *reduced) {
  constexpr int kFactor = 1 << kLogFactor, kTaps = 4 * kFactor - 3;
  constexpr int kTogether = kChannels == 4 ? 4 : 1;  // channels of a thread
  const int items = rows * (kChannels / kTogether);  // of a column
  const int thread = static_cast<int>(threadIdx.x), more_columns = kBlurThreads / items;
  int column = thread / items, item = thread - column * items;
  while (column < columns) {
    const int row = item * kTogether / kChannels, c = item * kTogether % kChannels;
    const int16_t *const in = sums + row * pitch + column * kFactor * kChannels + c;
    int sum[kTogether];
#pragma unroll
    for (int &v : sum) v = 1 << (p.columns_shift - 1);
#pragma unroll
    for (int i = 0; i < kTaps; i++) {
      if constexpr (kTogether == 4) {
        const short4 v = *reinterpret_cast<const short4 *>(in + i * kChannels);
        sum[0] += p.reduce[i] * v.x;
        sum[1] += p.reduce[i] * v.y;
        sum[2] += p.reduce[i] * v.z;
        sum[3] += p.reduce[i] * v.w;
      } else {
        sum[0] += p.reduce[i] * in[i * kChannels];
      }
    }
    int16_t *const to = reduced + column * reduced_pitch + item * kTogether;
    if constexpr (kTogether == 4)
      *reinterpret_cast<short4 *>(to) =
          make_short4(static_cast<short>(sum[0] >> p.columns_shift), static_cast<short>(sum[1] >> p.columns_shift),
                      static_cast<short>(sum[2] >> p.columns_shift), static_cast<short>(sum[3] >> p.columns_shift));
    else
      *to = static_cast<int16_t>(sum[0] >> p.columns_shift);
    column += more_columns;
    item += kBlurThreads - more_columns * items;
    if (item >= items) {
      item -= items;
      column++;
    }
  }
}

// Reduces samples to a tile of coarse samples: column sums go to shared memory, sums of these along rows to the frame.
// kWords: see SampleColumn.
template <bool kWords, int kLogFactor>
__global__ void __launch_bounds__(kBlurThreads, kWords ? kReduceBlocks : 2)
    reduce_kernel(const __grid_constant__ BlurParams p) {
  constexpr int kFactor = 1 << kLogFactor;
  const CoarseTile tile = locate_coarse_tile(p, 0);
  const PartParams &part = p.part[tile.part];
  const CoarseBuffers &coarse = p.coarse[tile.part];
  const int channels = part.channels;
  const int column0 = tile.x * p.tile_columns, row0 = tile.y * p.tile_rows;
  const int columns = min(p.tile_columns, coarse.x.count - column0), rows = min(p.tile_rows, coarse.y.count - row0);
  // The samples that the tile is made of begin at x0; they are loaded from the multiple of four before them on.
  const int x0 = (coarse.x.line.first + coarse.x.first + column0 - 2) * kFactor + 2;
  const int y0 = (coarse.y.line.first + coarse.y.first + row0 - 2) * kFactor + 2;
  const int first = x0 * channels & ~3, skip = x0 * channels - first;
  const int words = (skip + ((columns + 3) * kFactor - 3) * channels + 3) / 4;
  // A row for each coarse row, 4 * words samples long. If any of the rows of samples that are read lies outside, a list
  // of them is behind these rows.
  int16_t *const sums = shared_memory<int16_t>();
  int32_t *const listed = reinterpret_cast<int32_t *>(sums + 4 * words * rows);
  const int count = kReduceBefore + reduce_rows_read(kLogFactor, rows);
  const bool rows_inside = y0 >= kReduceBefore && y0 - kReduceBefore + count <= part.height;
  if (!rows_inside) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlurThreads)
      listed[i] = border_index(p.border, y0 - kReduceBefore + i, part.height);
    __syncthreads();
  }

  for (int word = static_cast<int>(threadIdx.x); word < words; word += kBlurThreads) {
    const int first_of_warp = first + 4 * (word & ~31);
    const bool inside = kWords && first_of_warp >= 0 && first_of_warp + 4 * 32 <= part.width * channels;
    const SampleColumn<kWords> source(p, part, first + 4 * word, inside);
    const auto shifted = [&](uint32_t v) {
      const uint32_t sum = p.rows_shift > 0 ? (v + (1u << (p.rows_shift - 1))) >> p.rows_shift : v << -p.rows_shift;
      return static_cast<short>(static_cast<int>(sum) - p.offset);
    };
    const auto store = [&](int row, const uint32_t(&sum)[4]) {
      *reinterpret_cast<short4 *>(sums + (row * words + word) * 4) =
          make_short4(shifted(sum[0]), shifted(sum[1]), shifted(sum[2]), shifted(sum[3]));
    };
    if (inside && rows_inside)
      reduce_columns<kLogFactor>(
          rows, [&](int i) { return source.load(y0 + i); }, store);
    else
      reduce_columns<kLogFactor>(
          rows, [&](int i) { return source.load_any(rows_inside ? y0 + i : listed[i + kReduceBefore]); }, store);
  }
  __syncthreads();

  int16_t *const reduced = coarse.reduced + column0 * coarse.reduced_pitch + row0 * channels;
  const auto reduce = [&](auto constant) {
    reduce_rows<decltype(constant)::value, kLogFactor>(p, sums + skip, 4 * words, columns, rows, coarse.reduced_pitch,
                                                       reduced);
  };
  if (channels == 1) return reduce(std::integral_constant<int, 1>());
  if (channels == 2) return reduce(std::integral_constant<int, 2>());
  if (channels == 3) return reduce(std::integral_constant<int, 3>());
  reduce(std::integral_constant<int, 4>());
}

}  // namespace cudaconv::blur
