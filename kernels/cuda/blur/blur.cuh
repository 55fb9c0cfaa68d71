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
#include "cuda/device/sample.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv::blur {

// Sums of kBlurOutputs neighbouring windows with symmetric weights: load(i) returns value i, and sum[i] is of values i
// to i + 2 * radius. A step multiplies the sum of two values that are equally far from the middle. All values of
// kBlurOutputs steps are loaded at once, so that the loads wait for memory together: coarse frames give each
// multiprocessor few warps. Up to kBlurOutputs values beside the windows are loaded, too. Example, two windows of five
// of the values a b c d e f: abcde and bcdef.
//
//    step 0    w0 * (a + e)    w0 * (b + f)      loaded: b c and d e (a and f were before)
//    step 1    w1 * (b + d)    w1 * (c + e)
//    last      w2 * c          w2 * d
template <typename Load, typename Sum>
__device__ inline void blur_windows(const BlurLineParams &p, Load load, Sum (&sum)[kBlurOutputs]) {
  constexpr int kMore = kBlurOutputs - 1;
  // For kBlurOutputs steps from step `first` on: values `first` + n, and 2 * radius - first - kMore + n.
  int before[kBlurOutputs + kMore], behind[kBlurOutputs + kMore];
  each<kMore>([&](int i) {
    before[kBlurOutputs + i] = load(i);
    behind[i] = load(2 * p.radius + 1 + i);
  });
#pragma unroll 1
  for (int first = 0; first < p.radius; first += kBlurOutputs) {
    each<kMore>([&](int i) {
      before[i] = before[kBlurOutputs + i];
      behind[kBlurOutputs + i] = behind[i];
    });
    each<kBlurOutputs>([&](int i) {
      before[kMore + i] = load(first + kMore + i);
      behind[kMore - i] = load(2 * p.radius - first - i);
    });
#pragma unroll
    for (int u = 0; u < kBlurOutputs; u++) {
      if (first + u >= p.radius) break;
      each<kBlurOutputs>([&](int i) { sum[i] += Sum{p.weight[first + u]} * (before[u + i] + behind[kMore - u + i]); });
    }
  }
  each<kBlurOutputs>([&](int i) { sum[i] += Sum{p.weight[p.radius]} * load(p.radius + i); });
}

// Blurs lines along themselves: a lane blurs a line, a warp kBlurOutputs results of it. Sum: holds the sums.
template <typename Sum>
__global__ void __launch_bounds__(kLineThreads) blur_kernel(const __grid_constant__ BlurLineParams p) {
  const Tile tile = locate_tile(p, 1);  // of lines and outputs
  const BlurredLines &lines = p.lines[tile.part.number];
  const int channels = tile.part.channels, line = tile.x0 * kBlurLines + static_cast<int>(threadIdx.x % 32);
  const int first = (tile.y0 * (kLineThreads / 32) + static_cast<int>(threadIdx.x / 32)) * kBlurOutputs;
  if (line >= lines.count || first >= lines.outputs) return;
  Sum sum[kBlurOutputs];
  each<kBlurOutputs>([&](int i) { sum[i] = Sum{1} << (p.shift - 1); });
  const int begin = lines.first + first - p.radius, last = lines.samples - 1,
            pitch = lines.pitch * int{sizeof(int16_t)};
  const auto *const from = reinterpret_cast<const uint8_t *>(lines.from + line);  // bytes: one instruction an address
  const auto load = [&](int i) {
    return int{*reinterpret_cast<const int16_t *>(from + int64_t{min(max(begin + i, 0), last)} * pitch)};
  };
  blur_windows(p, load, sum);
  const int64_t step = p.along_rows ? channels : lines.to_pitch;
  int16_t *to = lines.to + first * step + (p.along_rows ? line / channels * lines.to_pitch + line % channels : line);
#pragma unroll
  for (int i = 0; i < kBlurOutputs; i++, to += step)
    if (first + i < lines.outputs) *to = static_cast<int16_t>(sum[i] >> p.shift);
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

// Sums kFours times four samples from a row of expanded columns. With kFours > 1 the part has four channels: four
// samples are a pixel. D is a multiple of kFours, so kFours pixels share four coarse columns.
template <int kFours>
class ExpandedSamples {
 public:
  __device__ ExpandedSamples(const BlurParams &p, const PartParams &part, int sample, int cell0)
      : channels_(part.channels) {
    const int last = part.width * part.channels - 1, mask = (1 << p.log_factor) - 1;
#pragma unroll
    for (int i = 0; i < kSamples; i++) {
      const int s = min(sample + i, last), x = s / part.channels;
      at_[i] = ((x >> p.log_factor) - cell0) * part.channels + s % part.channels;
    }
#pragma unroll
    for (int i = 0; i < kWeights; i++) {
      const int x = kFours > 1 ? sample / 4 + i : min(sample + i, last) / part.channels;
      each<4>([&](int k) { weight_[i][k] = p.expand[x & mask][k]; });
    }
  }

  __device__ void sum(const int32_t *row, int (&sum)[kFours][4]) const {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if constexpr (kFours > 1) {
        const int4 v = *reinterpret_cast<const int4 *>(row + at_[0] + 4 * k);
#pragma unroll
        for (int w = 0; w < kFours; w++) {
          sum[w][0] += weight_[w][k] * v.x;
          sum[w][1] += weight_[w][k] * v.y;
          sum[w][2] += weight_[w][k] * v.z;
          sum[w][3] += weight_[w][k] * v.w;
        }
      } else {
        each<4>([&](int i) { sum[0][i] += weight_[i][k] * row[at_[i] + k * channels_]; });
      }
    }
  }

 private:
  static constexpr int kSamples = kFours > 1 ? 1 : 4, kWeights = kFours > 1 ? kFours : 4;
  const int channels_;
  int at_[kSamples], weight_[kWeights][4];
};

// Makes four samples of results in containers of kBytes bytes. `words`: the source's, which are used with gains and for
// unfiltered channels, then the results. `first`: the first one's index in the row.
template <int kBytes>
__device__ inline void finish_samples(const BlurParams &p, const PartParams &part, int first, const int (&sum)[4],
                                      uint32_t *words) {
  int v[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint32_t centre = words[kBytes * i / 4] >> (8 * kBytes * i % 32 + p.sample_shift) & p.sample_mask;
    v[i] = p.result_shift ? sum[i] >> p.result_shift : round_sum(p, p.rounding[0], sum[i], static_cast<int>(centre));
  }
  uint32_t result[kBytes] = {};
  if constexpr (kBytes == 1) {
    result[0] = pack_clamped(v[0], v[1], v[2], v[3]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++)
      result[i / 2] |= static_cast<uint32_t>(min(max(v[i], 0), static_cast<int>(p.sample_mask)))
                       << (16 * (i % 2) + p.sample_shift);
  }
  const int phase = kBytes == 2 ? 0 : part.channels == 3 ? first / 4 % 3 : first / 4 % 2;
#pragma unroll
  for (int w = 0; w < kBytes; w++)
    words[w] = part.has_unfiltered ? blend_channels(part, result[w], words[w], phase + w) : result[w];
}

// Expands the rows of a tile from its expanded columns. kFours: groups of four samples of a row that a thread computes.
template <int kFours, int kBytes>
__device__ inline void expand_rows(const BlurParams &p, const Tile &tile, int cell0, int samples,
                                   const int32_t *expanded) {
  constexpr int kThreadsOfRow = kExpandWidth / kFours, kRows = kBlurThreads / kThreadsOfRow;
  const PartParams &part = tile.part;
  const int row0 = static_cast<int>(threadIdx.x) / kThreadsOfRow, rows = min(kExpandRows, part.height - tile.y0);
  const int first = tile.x0 + 4 * kFours * (static_cast<int>(threadIdx.x) % kThreadsOfRow);
  const int bytes = kBytes * (part.width * part.channels - first);  // from there on in the row
  if (bytes <= 0) return;
  const ExpandedSamples<kFours> columns(p, part, first, cell0);
  const bool reads = p.has_gain || part.has_unfiltered;
  const int start = p.offset_of_results + (p.result_shift ? 1 << (p.result_shift - 1) : 0);
  const int32_t *row = expanded + row0 * samples;
  // Rows at once: with one gauss of GRAY8 takes 5 % longer, with two RGBA 1 %. kernel-bench --table=sizes --only=sigma,
  // H200.
  [[maybe_unused]] constexpr int kAtOnce = kFours == 1 && kBytes == 1 ? 2 : 1;
#pragma unroll kAtOnce
  for (int r = row0; r < rows; r += kRows, row += kRows * samples) {
    const int y = tile.y0 + r;
    int sum[kFours][4];
    each<kFours, 4>([&](int w, int i) { sum[w][i] = start; });
    columns.sum(row, sum);
    uint32_t words[kFours * kBytes] = {};
    if (reads) load_bytes<kFours * kBytes>(part.source + y * part.source_pitch + kBytes * first, bytes, words);
    each<kFours>([&](int w) { finish_samples<kBytes>(p, part, first + 4 * w, sum[w], words + kBytes * w); });
    store_bytes<kFours * kBytes>(part.target + y * part.target_pitch + kBytes * first, bytes, words);
  }
}

// Expands a tile of dense planes.
template <int kFours>
__device__ inline void expand_tile(const BlurParams &p) {
  const Tile tile = locate_tile(p, kExpandRows);
  const PartParams &part = tile.part;
  const int channels = part.channels, end = min(tile.x0 + 4 * kExpandWidth, part.width * channels);
  if (!part.has_filtered) return copy_samples(part, tile.x0, 4 * kExpandWidth, tile.y0, kExpandRows);
  // The tile lies in cells, the pixels from one coarse sample to the next; it needs the coarse samples of these, of one
  // cell before and of two behind them.
  const int cell0 = (tile.x0 / channels) >> p.log_factor;
  const int samples = ((((end - 1) / channels) >> p.log_factor) + 4 - cell0) * channels;
  int32_t *const expanded = shared_memory<int32_t>();
  if (p.log_factor == 1)
    expand_columns<1>(p, tile, cell0, samples, expanded);
  else if (p.log_factor == 2)
    expand_columns<2>(p, tile, cell0, samples, expanded);
  else
    expand_columns<3>(p, tile, cell0, samples, expanded);
  __syncthreads();
  if (kFours == 1 && p.deep) return expand_rows<1, 2>(p, tile, cell0, samples, expanded);
  expand_rows<kFours, 1>(p, tile, cell0, samples, expanded);
}

constexpr int kSampleTile = 16;  // pixels across and down

// Expands a tile sample by sample, with one thread for each pixel.
__device__ inline void expand_samples(const BlurParams &p) {
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
      return round_sum(p, rounding, sum, centre);
    });
  }
}

// Computes a tile of results. kFours: of dense planes, 2 with D = 2, else 4, where all parts have bytes and four
// channels; else 1. Of other frames, 0.
template <int kFours>
__global__ void __launch_bounds__(kBlurThreads) expand_kernel(const __grid_constant__ BlurParams p) {
  if constexpr (kFours > 0)
    expand_tile<kFours>(p);
  else
    expand_samples(p);
}

}  // namespace cudaconv::blur
