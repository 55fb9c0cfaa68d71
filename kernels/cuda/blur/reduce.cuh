// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel that reduces samples to coarse samples, the first step of plan/decimation.h, as reduce() of cpu/blur.cpp
// does it. Coarse sample m is made of the 4D - 3 samples about m * D, in both directions. A thread loads a word of each
// row of a tile: four bytes, or two samples of 16 bits. It transposes the words of four rows, and multiplies a column
// of four bytes by four weights in one instruction. A row counts for four coarse rows, whose sums are in registers.
// Complete sums go to shared memory. From there they are summed along rows.
//
//    row 0   a0 b0 c0 d0        a0 a1 a2 a3        for each of four coarse rows, with its weights w:
//    row 1   a1 b1 c1 d1   ->   b0 b1 b2 b3        sum a += w0 a0 + w1 a1 + w2 a2 + w3 a3
//    row 2   a2 b2 c2 d2        c0 c1 c2 c3        the same for b, c and d
//    row 3   a3 b3 c3 d3        d0 d1 d2 d3
//
// Example, D = 2: the weights are 1 4 6 4 1, and coarse sample 10 is made of samples 18 to 22. Example, D = 8: a block
// makes 29 x 13 coarse samples of RGBA from 253 x 125 pixels.
#pragma once

#include "cuda/blur/blur.h"
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"

namespace cudaconv::blur {

// The same word of each row of the source: kSamples samples. The border mode makes
// samples outside the frame.
template <int kSamples>
class SampleWord {
 public:
  // The word begins `before` samples before pixel x0; samples before that pixel may have any value.
  __device__ SampleWord(const BlurParams &p, const PartParams &part, int x0, int before)
      : part_(part),
        mask_(kSamples == 4 ? UINT32_MAX : p.reduce_mask),
        words_(kSamples == 4 || p.words),
        first_(kBytes * (x0 * part.channels - before)) {
    inside_ = words_ && first_ >= 0 && first_ + 4 <= kBytes * part.width * part.channels;
    if (inside_ && p.border != Border::Constant) return;  // nothing else is read
#pragma unroll
    for (int i = 0; i < kSamples; i++) {
      const int s = max(i - before, 0), c = s % part.channels;
      const int x = border_index(p.border, x0 + s / part.channels, part.width);
      at_[i] = words_ ? kBytes * (max(x, 0) * part.channels + c) : max(x, 0) * kMaxChannels + c;
      if (x < 0) outside_ |= (kBytes == 1 ? 0xffu : 0xffffu) << (8 * kBytes * i);
      border_ |= static_cast<uint32_t>(part.channel[c].border_value) << (p.reduce_shift + 32 / kSamples * i);
    }
  }

  // The word lies in the row completely.
  __device__ bool inside() const {
    return inside_;
  }

  // Of row y, which is -1 for the border's value. load_inside() is for words inside.
  __device__ uint32_t load_inside(int y) const {
    const uint32_t word = *reinterpret_cast<const uint32_t *>(row(max(y, 0)) + first_);
    return y < 0 ? border_ : word & mask_;
  }
  __device__ uint32_t load(int y) const {
    uint32_t word = 0;
    each<kSamples>([&](int i) { word |= load_one(max(y, 0), at_[i]) << (8 * kBytes * i); });
    return y < 0 ? border_ : (word & mask_ & ~outside_) | (border_ & outside_);
  }

 private:
  static constexpr int kBytes = 4 / kSamples;

  __device__ const uint8_t *row(int y) const {
    return part_.source + int64_t{y} * static_cast<int32_t>(part_.source_pitch);
  }
  __device__ uint32_t load_one(int y, int at) const {
    if (kBytes == 1 || words_) return kBytes == 1 ? row(y)[at] : *reinterpret_cast<const uint16_t *>(row(y) + at);
    return ChannelReader(part_, part_.source, part_.source_pitch, at % kMaxChannels).at(at / kMaxChannels, y);
  }

  const PartParams &part_;
  const uint32_t mask_;
  const bool words_;  // always with bytes
  const int first_;   // byte of a row
  bool inside_;
  int at_[kSamples] = {};              // bytes of a row or, without words, pixel * kMaxChannels + channel
  uint32_t border_ = 0, outside_ = 0;  // border samples; ones in samples that are such
};

// Calls store(row, sums) for `rows` coarse rows of a word. load(i) returns row i of the word, counted from the first
// one in the window of the first coarse row; it is called for rows up to the next multiple of eight, too.
template <int kLogFactor, int kSamples, typename Load, typename Store>
__device__ inline void reduce_columns(const BlurParams &p, int rows, Load load, Store store) {
  constexpr int kFactor = 1 << kLogFactor, kTerms = kFactor == 8 ? 2 : 1;      // see BlurParams::reduce_bytes
  constexpr int kGroups = kFactor == 8 ? 2 : 1, kDone = kFactor == 2 ? 2 : 1;  // kDone rows are complete after kGroups
  uint32_t sum[4][kSamples] = {};
#pragma unroll 1
  for (int first = 0; first < (rows + 3) * kFactor; first += 8) {
    uint32_t in[8];
    each<8>([&](int i) { in[i] = load(first + i); });
    each<2>([&](int g) {
      const uint32_t *const row = in + 4 * g;
      uint32_t column[4];  // of bytes, or both halves of each column of 16-bit samples
      if constexpr (kSamples == 4)
        transpose({row[0], row[1], row[2], row[3]}, column);
      else
        each<4>([&](int i) { column[i] = __byte_perm(row[i % 2 * 2], row[i % 2 * 2 + 1], i < 2 ? 0x5410u : 0x7632u); });
      each<kTerms, 4, kSamples>([&](int term, int k, int s) {
        if (term && k % 3 == 0) return;  // 0, as all weights at the ends of the window are bytes
        const uint32_t weights = p.reduce_bytes[term][g % kGroups][k];
        if constexpr (kSamples == 4)
          sum[k][s] = __dp4a(column[s], weights, sum[k][s]);
        else
          sum[k][s] = __dp2a_hi(column[2 * s + 1], weights, __dp2a_lo(column[2 * s], weights, sum[k][s]));
      });
      if (g + 1 < kGroups) return;
      each<kDone>([&](int i) {
        const int r = (first + 4 * (g + 1)) / kFactor - 4 + i;
        if (r >= 0 && r < rows) store(r, sum[i]);
      });
      each<4, kSamples>([&](int k, int s) { sum[k][s] = k + kDone < 4 ? sum[(k + kDone) % 4][s] : 0; });
    });
  }
}

// Sums the sums of a tile along rows. kTogether: channels of a thread.
template <int kFactor, int kTogether>
__device__ inline void reduce_rows(const BlurParams &p, int channels, const int16_t *sums, int pitch, int columns,
                                   int rows, int64_t reduced_pitch, int16_t *reduced) {
  const int items = rows * channels / kTogether;  // of a column
  for (int i = static_cast<int>(threadIdx.x); i < columns * items; i += kBlurThreads) {
    const int column = i / items, item = i % items * kTogether;
    const int16_t *in = sums + item / channels * pitch + column * kFactor * channels + item % channels;
    int16_t *const to = reduced + column * reduced_pitch + item;
    int sum[kTogether];
    each<kTogether>([&](int c) { sum[c] = 1 << (p.columns_shift - 1); });
#pragma unroll
    for (int k = 0; k < 4 * kFactor - 3; k++, in += channels) {
      if constexpr (kTogether == 4) {
        const short4 v = *reinterpret_cast<const short4 *>(in);
        sum[0] += p.reduce[k] * v.x;
        sum[1] += p.reduce[k] * v.y;
        sum[2] += p.reduce[k] * v.z;
        sum[3] += p.reduce[k] * v.w;
      } else {
        sum[0] += p.reduce[k] * in[0];
      }
    }
    each<kTogether>([&](int c) { to[c] = static_cast<int16_t>(sum[c] >> p.columns_shift); });
  }
}

// Sums the words of a tile down columns. `listed`: its rows of samples, -1 for the border's value.
template <int kLogFactor, int kSamples>
__device__ inline void reduce_words(const BlurParams &p, const PartParams &part, int x0, int skip, int words, int rows,
                                    const int32_t *listed, int16_t *sums) {
  for (int word = static_cast<int>(threadIdx.x); word * kSamples < 4 * words; word += kBlurThreads) {
    const SampleWord<kSamples> source(p, part, x0, skip - word * kSamples);
    const auto store = [&](int row, const uint32_t(&sum)[kSamples]) {
      int16_t *const to = sums + 4 * words * row + word * kSamples;
      each<kSamples>([&](int s) {
        const uint32_t v = sum[s] >> p.reduce_shift;
        const uint32_t shifted =
            p.rows_shift > 0 ? (v + (1u << (p.rows_shift - 1))) >> p.rows_shift : v << -p.rows_shift;
        to[s] = static_cast<int16_t>(static_cast<int>(shifted) - p.offset);
      });
    };
    if (source.inside())
      reduce_columns<kLogFactor, kSamples>(
          p, rows, [&](int i) { return source.load_inside(listed[i]); }, store);
    else
      reduce_columns<kLogFactor, kSamples>(
          p, rows, [&](int i) { return source.load(listed[i]); }, store);
  }
}

template <int kLogFactor>
__global__ void __launch_bounds__(kBlurThreads, kReduceBlocks) reduce_kernel(const __grid_constant__ BlurParams p) {
  constexpr int kFactor = 1 << kLogFactor;
  const Tile tile = locate_tile(p, 1);  // of coarse samples
  const PartParams &part = tile.part;
  const CoarseBuffers &coarse = p.coarse[part.number];
  const int channels = part.channels, across = reduced_columns(kLogFactor, channels);
  const int column0 = tile.x0 * across, row0 = tile.y0 * p.tile_rows;
  const int columns = min(across, coarse.x.count - column0), rows = min(p.tile_rows, coarse.y.count - row0);
  // The first sample in the window of the first coarse sample. Words begin at a multiple of four samples before it.
  const int x0 = (coarse.x.line.first + coarse.x.first + column0 - 2) * kFactor + 2;
  const int y0 = (coarse.y.line.first + coarse.y.first + row0 - 2) * kFactor + 2;
  const int skip = x0 * channels & 3, words = (skip + ((columns + 3) * kFactor - 3) * channels + 3) / 4;
  int32_t *const listed = shared_memory<int32_t>();
  int16_t *const sums = reinterpret_cast<int16_t *>(listed + reduce_rows_read(p.tile_rows));
  for (int i = static_cast<int>(threadIdx.x); i < reduce_rows_read(p.tile_rows); i += kBlurThreads)
    listed[i] = border_index(p.border, y0 + i, part.height);
  __syncthreads();
  if (p.words && !p.deep)
    reduce_words<kLogFactor, 4>(p, part, x0, skip, words, rows, listed, sums);
  else
    reduce_words<kLogFactor, 2>(p, part, x0, skip, words, rows, listed, sums);
  __syncthreads();
  int16_t *const reduced = coarse.reduced + column0 * coarse.reduced_pitch + row0 * channels;
  if (channels == 4)
    reduce_rows<kFactor, 4>(p, 4, sums, 4 * words, columns, rows, coarse.reduced_pitch, reduced);
  else
    reduce_rows<kFactor, 1>(p, channels, sums + skip, 4 * words, columns, rows, coarse.reduced_pitch, reduced);
}

}  // namespace cudaconv::blur
