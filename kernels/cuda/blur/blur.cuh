// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Wide Gaussians through a smaller frame: reduce (reduce.cuh), blur along rows, blur along columns, expand.
//
// Each kernel does one step of plan/decimation.h for all channels, in the same integers as cpu/blur.cpp.
//
// Example, D = 8: a frame of 1920x1080 has coarse samples for 240 columns and 135 rows, and some beside the frame. The
// sample in column 13 is made of the coarse samples 0 to 3 of 4 rows: 13 is in the cell from coarse sample 1 on, and a
// cell needs one before and two behind it.
#pragma once

#include "cuda/blur/reduce.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv::blur {

constexpr int kLineResults = 8;  // coarse samples of a line that a thread blurs

// Blurs kLineResults neighbours along a line: load(i) returns coarse sample i of the line, counted from the first
// result's. kFine: with the finer weights.
template <bool kFine, typename Load>
__device__ inline void blur_line(const BlurParamsOf<kFine> &p, Load load, int (&result)[kLineResults]) {
  int weight[kLineResults] = {}, next[kLineResults];
  int fine_weight[kLineResults] = {}, fine[kLineResults] = {};
#pragma unroll
  for (int i = 0; i < kLineResults; i++) {
    result[i] = 1 << (Decimation::kBlurBits - 1);
    next[i] = load(i - p.radius);
  }
  const int last = 2 * p.radius + kLineResults - 1;
#pragma unroll 1
  for (int tap0 = 0; tap0 <= last; tap0 += kLineResults) {
    int sample[kLineResults];
#pragma unroll
    for (int u = 0; u < kLineResults; u++) sample[u] = next[u];
    if (tap0 + kLineResults <= last) {
#pragma unroll
      for (int u = 0; u < kLineResults; u++) next[u] = load(tap0 + kLineResults + u - p.radius);
    }
#pragma unroll
    for (int u = 0; u < kLineResults; u++) {
      const int tap = tap0 + u;
      weight[u] = tap <= 2 * p.radius ? p.blur[tap] : 0;
      // Sample `tap` - i of the window of result i.
#pragma unroll
      for (int i = 0; i < kLineResults; i++) result[i] += weight[(u - i + kLineResults) % kLineResults] * sample[u];
      if constexpr (kFine) {
        fine_weight[u] = tap <= 2 * p.radius ? p.fine[tap] : 0;
#pragma unroll
        for (int i = 0; i < kLineResults; i++)
          fine[i] += fine_weight[(u - i + kLineResults) % kLineResults] * sample[u];
      }
    }
  }
  // The sum is result + fine / 2^kFineBits; the shift drops the fraction.
#pragma unroll
  for (int i = 0; i < kLineResults; i++)
    result[i] = (result[i] + (fine[i] >> Decimation::kFineBits)) >> Decimation::kBlurBits;
}

// A line of coarse samples, `pitch` apart; result i of blur() is centred on sample `first` + i.
class CoarseSamples {
 public:
  __device__ CoarseSamples(const BlurParams &p, const CoarseSpan &span, int first, const int16_t *samples,
                           int64_t pitch)
      : begin_(first - span.line.first - span.first), span_(span), samples_(samples), pitch_(pitch) {
    inside_ = begin_ >= p.radius && begin_ + p.radius + 2 * kLineResults <= span.count;
  }
  template <bool kFine>
  __device__ void blur(const BlurParamsOf<kFine> &p, int (&result)[kLineResults]) const {
    if (inside_)
      blur_line<kFine>(
          p, [&, at = samples_ + begin_ * pitch_](int i) { return at[i * pitch_]; }, result);
    else
      blur_line<kFine>(
          p,
          [&](int i) {
            // Clamps to the line, then to the samples that exist: those beyond are only read for results that are not
            // needed.
            int at = min(max(begin_ + i + span_.first, 0), span_.line.count - 1) - span_.first;
            at = min(max(at, 0), span_.count - 1);
            return samples_[at * pitch_];
          },
          result);
  }

 private:
  const int begin_;
  const CoarseSpan &span_;
  const int16_t *const samples_;
  const int64_t pitch_;
  bool inside_;
};

// Blurs along rows. A warp processes 32 samples of columns of `reduced` and writes the results as rows; the warps of a
// block are neighbours along the row.
template <bool kFine>
__global__ void __launch_bounds__(kBlurThreads) blur_rows_kernel(const __grid_constant__ BlurParamsOf<kFine> p) {
  const CoarseTile tile = locate_coarse_tile(p, 1);
  const CoarseBuffers &coarse = p.coarse[tile.part];
  const int channels = p.part[tile.part].channels;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int sample = tile.x * 32 + lane, column0 = (tile.y * (kBlurThreads / 32) + warp) * kLineResults;
  if (sample >= coarse.y.count * channels || column0 >= coarse.columns) return;
  int result[kLineResults];
  CoarseSamples(p, coarse.x, coarse.first_column + column0, coarse.reduced + sample, coarse.reduced_pitch)
      .blur<kFine>(p, result);
  int16_t *const out = coarse.rows_blurred + sample / channels * coarse.pitch + sample % channels;
#pragma unroll
  for (int i = 0; i < kLineResults; i++)
    if (column0 + i < coarse.columns) out[(column0 + i) * channels] = static_cast<int16_t>(result[i]);
}

template <bool kFine>
__global__ void __launch_bounds__(kBlurThreads) blur_columns_kernel(const __grid_constant__ BlurParamsOf<kFine> p) {
  const CoarseTile tile = locate_coarse_tile(p, 2);
  const CoarseBuffers &coarse = p.coarse[tile.part];
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int sample = tile.x * 32 + lane, row0 = (tile.y * (kBlurThreads / 32) + warp) * kLineResults;
  if (sample >= coarse.columns * p.part[tile.part].channels || row0 >= coarse.rows) return;
  int result[kLineResults];
  CoarseSamples(p, coarse.y, coarse.first_row + row0, coarse.rows_blurred + sample, coarse.pitch)
      .blur<kFine>(p, result);
#pragma unroll
  for (int i = 0; i < kLineResults; i++)
    if (row0 + i < coarse.rows) coarse.blurred[(row0 + i) * coarse.pitch + sample] = static_cast<int16_t>(result[i]);
}

// Rounds the sum of a pixel to its sample.
__device__ inline int round_blur(const BlurParams &p, const Rounding &rounding, int sum, int centre) {
  if (p.has_gain) return round_to_sample(apply_gain(sum, p.sum_shift, p.sum_gain, p.center_gain, centre), rounding);
  if (rounding.wide) return round_to_sample<int64_t>(sum, rounding);
  return round_to_sample<int32_t>(sum, rounding);
}

constexpr int kExpandWidth = 128;  // groups of four samples of a row that a block computes
constexpr int kExpandRows = 32;
constexpr int kExpandRun = 8;  // rows for which a thread expands a coarse column

// Expands coarse columns from `cell0` - 1 on to the rows of a tile, in shared memory: a row of `samples` samples for
// each. Tiles begin at a multiple of kExpandRun rows.
template <int kLogFactor>
__device__ inline void expand_columns(const BlurParams &p, const Tile &tile, int cell0, int samples,
                                      int32_t *expanded) {
  const PartParams &part = tile.part;
  const CoarseBuffers &coarse = p.coarse[part.number];
  constexpr int kFactor = 1 << kLogFactor;
  static_assert(kExpandRun % kFactor == 0, "phases are known at compile time");
  const int half = 1 << (p.expand_shift - 1);
  for (int item = static_cast<int>(threadIdx.x); item < samples * (kExpandRows / kExpandRun); item += kBlurThreads) {
    const int run = item / samples, s = item - run * samples, y0 = tile.y0 + run * kExpandRun;
    if (y0 >= part.height) break;
    const int row = (y0 >> kLogFactor) - 1 - coarse.first_row;
    const int16_t *in = coarse.blurred + row * coarse.pitch + (cell0 - 1 - coarse.first_column) * part.channels + s;
    int a = in[0], b = in[coarse.pitch], c = in[2 * coarse.pitch], d = in[3 * coarse.pitch];
    in += 4 * coarse.pitch;
#pragma unroll
    for (int i = 0; i < kExpandRun; i++) {
      const int phase = i % kFactor;
      if (i && phase == 0) {  // the next coarse row; past the last row of the part there may be none
        a = b;
        b = c;
        c = d;
        if (y0 + i < part.height) d = *in;
        in += coarse.pitch;
      }
      const int32_t *weight = p.expand[phase];
      expanded[(run * kExpandRun + i) * samples + s] =
          (half + weight[0] * a + weight[1] * b + weight[2] * c + weight[3] * d) >> p.expand_shift;
    }
  }
}

// Sums kFours times four samples from a row of expanded columns. kChannels: channels of the part, 0 for any number.
// With four channels, four samples are a pixel. D is a multiple of kFours, so kFours pixels share four coarse columns.
template <int kChannels, int kFours, int kLogFactor>
class ExpandedSamples {
 public:
  __device__ ExpandedSamples(const BlurParams &p, const PartParams &part, int sample, int cell0)
      : channels_(part.channels) {
    const int last = part.width * part.channels - 1, mask = (1 << kLogFactor) - 1;
#pragma unroll
    for (int i = 0; i < kSamples; i++) {
      const int s = min(sample + i, last), x = s / part.channels;
      at_[i] = ((x >> kLogFactor) - cell0) * part.channels + s % part.channels;
    }
#pragma unroll
    for (int i = 0; i < kWeights; i++) {
      const int x = kChannels == 4 ? sample / 4 + i : min(sample + i, last) / part.channels;
#pragma unroll
      for (int k = 0; k < 4; k++) weight_[i][k] = p.expand[x & mask][k];
    }
  }

  __device__ void sum(const int32_t *row, int (&sum)[kFours][4]) const {
    if constexpr (kChannels == 4) {
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const int4 v = *reinterpret_cast<const int4 *>(row + at_[0] + 4 * k);
#pragma unroll
        for (int w = 0; w < kFours; w++) {
          sum[w][0] += weight_[w][k] * v.x;
          sum[w][1] += weight_[w][k] * v.y;
          sum[w][2] += weight_[w][k] * v.z;
          sum[w][3] += weight_[w][k] * v.w;
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) sum[0][i] += weight_[i][k] * row[at_[i] + k * channels_];
    }
  }

 private:
  static_assert(kChannels == 4 || kFours == 1, "");
  static constexpr int kSamples = kChannels == 4 ? 1 : 4, kWeights = kChannels == 4 ? kFours : 4;
  const int channels_;
  int at_[kSamples], weight_[kWeights][4];
};

// Makes four samples of results. kDeep: in 16-bit containers. `four`: the source's, which are used with gains and for
// unfiltered channels, then the results. `first`: the first one's index in the row.
template <bool kDeep>
__device__ inline void finish_samples(const BlurParams &p, const PartParams &part, int first, const int (&sum)[4],
                                      FourSamples<kDeep> &four) {
  const auto centre = [&](int i) {
    return static_cast<int>(kDeep ? four.word[kDeep * (i / 2)] >> (16 * (i % 2) + p.sample_shift) & p.sample_mask
                                  : four.word[0] >> (8 * i) & 0xff);
  };
  FourSamples<kDeep> result = {};
  const auto make = [&](auto sample) {
    if constexpr (kDeep) {
      const int most = static_cast<int>(p.sample_mask);
#pragma unroll
      for (int i = 0; i < 4; i++) result.add(i, static_cast<uint32_t>(min(max(sample(i), 0), most)) << p.sample_shift);
    } else {
      result.word[0] = pack_clamped(sample(0), sample(1), sample(2), sample(3));
    }
  };
  switch (p.finish) {
    case BlurFinish::Shift:
      make([&](int i) { return sum[i] >> p.result_shift; });
      break;
    case BlurFinish::Gain:
      make([&](int i) {
        return static_cast<int>(
            (apply_gain(sum[i], p.sum_shift, p.sum_gain, p.center_gain, centre(i)) + p.result_offset) >>
            p.result_shift);
      });
      break;
    case BlurFinish::Any:
      make([&](int i) { return round_blur(p, p.rounding[0], sum[i], centre(i)); });
      break;
  }
  if (part.has_unfiltered) {
    const int phase = kDeep ? 0 : part.channels == 3 ? first / 4 % 3 : first / 4 % 2;
#pragma unroll
    for (int w = 0; w < (kDeep ? 2 : 1); w++)
      result.word[w] = blend_channels(part, result.word[w], four.word[w], phase + w);
  }
  four = result;
}

// Writes four samples of results; some may be behind the row's end.
template <bool kDeep>
__device__ inline void write_samples(const BlurParams &p, const PartParams &part, int y, int first,
                                     const int (&sum)[4]) {
  constexpr int kBytes = kDeep ? 2 : 1;
  const int bytes = kBytes * min(part.width * part.channels - first, 4);
  const uint8_t *const from = part.source + y * part.source_pitch + kBytes * first;
  uint8_t *const to = part.target + y * part.target_pitch + kBytes * first;
  FourSamples<kDeep> four = {};
#pragma unroll
  for (int i = 0; i < 4 * kBytes; i++)
    if (i < bytes) four.word[i / 4] |= static_cast<uint32_t>(from[i]) << (8 * (i % 4));
  finish_samples(p, part, first, sum, four);
#pragma unroll
  for (int i = 0; i < 4 * kBytes; i++)
    if (i < bytes) to[i] = static_cast<uint8_t>(four.word[i / 4] >> (8 * (i % 4)));
}

// Computes a tile of results. kChannels: as ExpandedSamples. kDeep: in 16-bit containers.
template <int kChannels, bool kDeep, int kLogFactor>
__global__ void __launch_bounds__(kBlurThreads) expand_kernel(const __grid_constant__ BlurParams p) {
  constexpr int kBytes = kDeep ? 2 : 1;
  // Groups of four samples of a row that a thread computes.
  constexpr int kFours = kChannels == 4 ? (kLogFactor == 1 ? 2 : 4) : 1;
  const Tile tile = locate_tile(p, kExpandRows);
  const PartParams &part = tile.part;
  const int channels = part.channels, row_samples = part.width * channels;
  const int end = min(tile.x0 + 4 * kExpandWidth, row_samples);
  if (!part.has_filtered) {
    const int x = kBytes * tile.x0, y = tile.y0 + static_cast<int>(threadIdx.x / 32), step = kBlurThreads / 32;
    const int bottom = min(tile.y0 + kExpandRows, part.height);
    if (!kDeep && channels == 3)
      copy_rows<3>(part, x, kBytes * end, y, step, bottom);
    else
      copy_rows<2>(part, x, kBytes * end, y, step, bottom);
    return;
  }
  // The tile lies in cells, the pixels from one coarse sample to the next; it needs the coarse samples of these, of one
  // cell before and of two behind them.
  const int cell0 = (tile.x0 / channels) >> kLogFactor;
  const int samples = ((((end - 1) / channels) >> kLogFactor) + 4 - cell0) * channels;
  int32_t *const expanded = shared_memory<int32_t>();
  expand_columns<kLogFactor>(p, tile, cell0, samples, expanded);
  __syncthreads();

  constexpr int kThreadsOfRow = kExpandWidth / kFours;
  const int first = tile.x0 + 4 * kFours * static_cast<int>(threadIdx.x % kThreadsOfRow);
  if (first >= row_samples) return;
  const ExpandedSamples<kChannels, kFours, kLogFactor> columns(p, part, first, cell0);
  const bool whole = first + 4 * kFours <= row_samples, reads = p.has_gain || part.has_unfiltered;
  int start = p.finish == BlurFinish::Shift ? 1 << (p.result_shift - 1) : 0;
  if constexpr (kDeep) start += p.offset_of_results;
  const int rows = min(kExpandRows, part.height - tile.y0);
  const int32_t *row = expanded + static_cast<int>(threadIdx.x / kThreadsOfRow) * samples;
  // Rows at once: with one gauss of GRAY8 takes 5 % longer, with two RGBA 1 %. kernel-bench --table=sizes --only=sigma,
  // H200.
  [[maybe_unused]] constexpr int kAtOnce = kChannels != 4 ? 2 : 1;
#pragma unroll kAtOnce
  for (int r = static_cast<int>(threadIdx.x / kThreadsOfRow); r < rows; r += kBlurThreads / kThreadsOfRow) {
    const int y = tile.y0 + r;
    int sum[kFours][4];
#pragma unroll
    for (int w = 0; w < kFours; w++)
#pragma unroll
      for (int i = 0; i < 4; i++) sum[w][i] = start;
    columns.sum(row, sum);
    row += kBlurThreads / kThreadsOfRow * samples;
    if (whole) {
      uint32_t words[kFours * kBytes] = {};
      if (reads) load_words<kFours * kBytes>(part.source + y * part.source_pitch + kBytes * first, words);
#pragma unroll
      for (int w = 0; w < kFours; w++) {
        FourSamples<kDeep> four;
#pragma unroll
        for (int i = 0; i < kBytes; i++) four.word[i] = words[kBytes * w + i];
        finish_samples(p, part, first + 4 * w, sum[w], four);
#pragma unroll
        for (int i = 0; i < kBytes; i++) words[kBytes * w + i] = four.word[i];
      }
      store_words<kFours * kBytes>(part.target + y * part.target_pitch + kBytes * first, words);
      continue;
    }
#pragma unroll 1
    for (int w = 0; w < kFours; w++) {
      int of_four[4];
#pragma unroll
      for (int v = 0; v < kFours; v++)
        if (v == w)
#pragma unroll
          for (int i = 0; i < 4; i++) of_four[i] = sum[v][i];
      if (first + 4 * w < row_samples) write_samples<kDeep>(p, part, y, first + 4 * w, of_four);
    }
  }
}

constexpr int kSampleTile = 16;  // pixels across and down

// expand_kernel() for frames of any layout, with one thread for each pixel.
__global__ void __launch_bounds__(kBlurThreads) expand_samples_kernel(const __grid_constant__ BlurParams p) {
  const Tile tile = locate_tile(p, kSampleTile);
  const PartParams &part = tile.part;
  const CoarseBuffers &coarse = p.coarse[part.number];
  const int x = tile.x0 + static_cast<int>(threadIdx.x % kSampleTile);
  const int y = tile.y0 + static_cast<int>(threadIdx.x / kSampleTile);
  const int inside_x = min(x, part.width - 1), inside_y = min(y, part.height - 1), factor = 1 << p.log_factor;
  const int column = (inside_x >> p.log_factor) - 1 - coarse.first_column;
  const int row = (inside_y >> p.log_factor) - 1 - coarse.first_row;
#pragma unroll 1
  for (int c = 0; c < part.channels; c++) {
    make_sample(p, part, x, y, c, [&](const Rounding &rounding) {
      const int16_t *in = coarse.blurred + row * coarse.pitch + column * part.channels + c;
      int sum = p.offset_of_results;
      for (int k = 0; k < 4; k++) {
        int of_column = 1 << (p.expand_shift - 1);
        for (int j = 0; j < 4; j++)
          of_column += p.expand[inside_y & (factor - 1)][j] * in[j * coarse.pitch + k * part.channels];
        sum += p.expand[inside_x & (factor - 1)][k] * (of_column >> p.expand_shift);
      }
      const int centre = ChannelReader(part, part.source, part.source_pitch, c).at(inside_x, inside_y);
      return round_blur(p, rounding, sum, centre);
    });
  }
}

}  // namespace cudaconv::blur
