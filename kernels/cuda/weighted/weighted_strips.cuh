// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel for weighted means of pixels of four bytes by separable masks up to 5x5.
// It makes the same bytes as weighted_samples_kernel() of weighted.cuh.
//
// Sums stay below 2^24, so floats hold them exactly. Floats are added and multiplied twice as fast as integers. A warp
// goes down a strip of pixels, four side by side for each lane, all in registers:
//
//    1. each lane multiplies its pixels of a row by their alpha, and adds the products to the sums of the columns that
//       contain them
//    2. a column that is complete goes to the lanes beside, whose rows are then complete, too
//
// The lanes at both ends of a warp have no results: they only load the halo. Example: a warp has results for 120 pixels
// of a row, lane 1 for the first four. Lane 0 loads the four pixels before these.
#pragma once

#include "cuda/device/rounded_means.cuh"
#include "cuda/device/sample.cuh"
#include "cuda/launch.cuh"

namespace cudaconv::weighted {

constexpr int kStripTaps = 5, kMostStripBits = 24;  // of a mask, and of its sums

struct WeightedStripParams : FrameParams {
  // Selectors for __byte_perm(): of the float of each channel, alpha last, and of a pixel from its four channels.
  uint32_t unpack[4], pack;
  int32_t rows;                               // of a strip
  float all;                                  // the sum of the mask
  float row[kStripTaps], column[kStripTaps];  // those of smaller masks have zeros on both sides
};

struct WeightedStripTuning {
  static constexpr int kStrips = 4;     // of a thread block, side by side
  static constexpr int kMinBlocks = 4;  // of a multiprocessor: 128 registers a thread, and nothing spills
  // Rows of results of a strip, and how many more rows a strip takes the time of besides those that windows reach.
  // Estimated, not tuned.
  static constexpr int kLeastRows = 8, kMoreRows = 4;
  // Pixels of a lane, and rows that are loaded before they are needed. Found on an H200, gauss5 at 4K: two pixels a
  // lane take 1.16 times as long, one row ahead 1.19, three rows 1.04.
  static constexpr int kPixels = 4, kRowsAhead = 2;
};

constexpr int kWeightedStripWidth = 30 * WeightedStripTuning::kPixels;  // of a warp's results, in pixels

// A word with the bytes b, 0, 0 and 0x4b, b the lowest, is the float 2^23 + b.
constexpr uint32_t kFloatOfByte = 0x4b000000;
constexpr float kTwo23 = 0x1p23f;

// A little less than 1 / d: by a part of 2^-22 to 2^-20 of it.
__device__ inline float below_inverse(float d) {
  return approximate_inverse(d) * (1 - 0x1p-21f);
}

// floor(n / d + 1/2), where that is at most 255, in the low byte of a word. n and d are integers, n + d / 2 is below
// 2^24. The estimate n * below_inverse(d) is at most 255 * 2^-20 too small and never too large. So its nearest integer
// is right, or one too small if the remainder is half of d or more. Floats take half the time of integers.
__device__ inline uint32_t rounded_quotient(float n, float d, float below) {
  const float nearest = fmaf(n, below, kTwo23);
  const float remainder = fmaf(kTwo23 - nearest, d, n);
  return __float_as_uint(nearest + __saturatef(fmaf(remainder, 2, 1 - d)));
}

class WeightedStrip {
  static constexpr int kRadius = kStripTaps / 2, kPixels = WeightedStripTuning::kPixels, kAlpha = 3;
  static constexpr int kRowsAhead = WeightedStripTuning::kRowsAhead;
  static_assert(kRadius <= kPixels, "windows reach the lanes beside, no others");
  using Line = float[kPixels];
  struct alignas(4 * kPixels) Pixels {
    uint32_t word[kPixels];
  };

 public:
  // x0, y0: the first pixel with a result.
  __device__ WeightedStrip(const WeightedStripParams &p, const PartParams &part, int x0, int y0)
      : p_(p),
        part_(part),
        x_(x0 + kPixels * (static_cast<int>(threadIdx.x % 32) - 1)),
        y0_(y0),
        whole_(x_ >= 0 && x_ + kPixels <= part.width),
        has_results_(x_ >= x0 && x_ < x0 + kWeightedStripWidth && x_ < part.width) {
#pragma unroll
    for (int i = 0; i < kPixels; i++) columns_[i] = border_index_no_div(p.border, x_ + i, part.width);
  }

  // If alpha is 0 in a whole window, its colours are means without alpha: strips with such windows are done twice.
  __device__ void run() {
    if (__any_sync(0xffffffffu, filter(true))) filter(false);
  }

 private:
  // Writes the results of windows with alpha if `weighted`, else of windows without. Returns whether the lane has
  // windows of the other kind.
  __device__ bool filter(bool weighted) {
    const int rows = min(p_.rows, part_.height - y0_);
    bool others = false;
    Line pending[kStripTaps - 1][4] = {};  // sums of columns, from the topmost that is not complete on
    Pixels pixels[kRowsAhead];
#pragma unroll
    for (int i = 0; i < kRowsAhead; i++) pixels[i] = load(i);
    uint8_t *to = part_.target + y0_ * part_.target_pitch + int64_t{x_} * 4;
#pragma unroll 1
    for (int row = 0; row < rows + 2 * kRadius; row++) {
      const Pixels next = load(row + kRowsAhead);
      Line column[4];
      add_products(pixels[0], weighted, pending, column);
#pragma unroll
      for (int i = 0; i + 1 < kRowsAhead; i++) pixels[i] = pixels[i + 1];
      pixels[kRowsAhead - 1] = next;
      if (row < 2 * kRadius) continue;
      others |= write(row - 2 * kRadius, reinterpret_cast<Pixels *>(to), weighted, column);
      to += part_.target_pitch;
    }
    return others;
  }

  // The lane's pixels, `row` rows below the first row that windows reach.
  __device__ Pixels load(int row) const {
    int y = y0_ - kRadius + row;
    if (y < 0 || y >= part_.height) y = border_index(p_.border, y, part_.height);
    const auto *const line = reinterpret_cast<const uint32_t *>(part_.source + y * part_.source_pitch);
    if (whole_ && y >= 0) return *reinterpret_cast<const Pixels *>(line + x_);
    Pixels pixels;
#pragma unroll
    for (int i = 0; i < kPixels; i++)
      pixels.word[i] = y < 0 || columns_[i] < 0 ? part_.border_word[0] : line[columns_[i]];
    return pixels;
  }

  // Adds the products of a row to all columns that contain it. `column` is the one that it completes.
  __device__ void add_products(const Pixels &pixels, bool weighted, Line (&pending)[kStripTaps - 1][4],
                               Line (&column)[4]) const {
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      const auto channel = [&](int c) {
        return __uint_as_float(__byte_perm(pixels.word[i], kFloatOfByte, p_.unpack[c]));
      };
      const float alpha = channel(kAlpha) - kTwo23, weight = weighted ? alpha : 1, excess = -kTwo23 * weight;
#pragma unroll
      for (int c = 0; c < 4; c++) {
        const float v = c == kAlpha ? alpha : fmaf(channel(c), weight, excess);
        column[c][i] = fmaf(v, p_.column[kStripTaps - 1], pending[0][c][i]);
#pragma unroll
        for (int k = 0; k + 2 < kStripTaps; k++)
          pending[k][c][i] = fmaf(v, p_.column[kStripTaps - 2 - k], pending[k + 1][c][i]);
        pending[kStripTaps - 2][c][i] = v * p_.column[0];
      }
    }
  }

  // Adds up the row of columns around each pixel.
  __device__ void add_row(const Line &column, Line &sum) const {
    float line[3 * kPixels];  // from the pixels of the lane before on
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      line[kPixels + i] = column[i];
      if (i >= kPixels - kRadius) line[i] = __shfl_up_sync(0xffffffffu, column[i], 1);
      if (i < kRadius) line[2 * kPixels + i] = __shfl_down_sync(0xffffffffu, column[i], 1);
    }
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      sum[i] = line[kPixels - kRadius + i] * p_.row[0];
#pragma unroll
      for (int k = 1; k < kStripTaps; k++) sum[i] = fmaf(line[kPixels - kRadius + i + k], p_.row[k], sum[i]);
    }
  }

  // Writes the results of row `row` of the strip whose windows have alpha, or have none. Returns whether there are
  // others.
  __device__ bool write(int row, Pixels *to, bool weighted, const Line (&column)[4]) const {
    const float below_of_all = below_inverse(p_.all);
    Line weight, of_colours, below;
    uint32_t result[kPixels][4];  // [pixel][channel]
    add_row(column[kAlpha], weight);
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      result[i][kAlpha] = rounded_quotient(weight[i], p_.all, below_of_all);
      of_colours[i] = weighted ? weight[i] : p_.all;
      below[i] = weighted ? below_inverse(weight[i]) : below_of_all;
    }
#pragma unroll
    for (int c = 0; c < kAlpha; c++) {
      Line sum;
      add_row(column[c], sum);
#pragma unroll
      for (int i = 0; i < kPixels; i++) result[i][c] = rounded_quotient(sum[i], of_colours[i], below[i]);
    }
    Pixels pixels;
    float least = weight[0];
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      pixels.word[i] = __byte_perm(__byte_perm(result[i][0], result[i][1], 0x0040),
                                   __byte_perm(result[i][2], result[i][3], 0x0040), p_.pack);
      least = fminf(least, weight[i]);
    }
    if (!has_results_) return false;
    if (!weighted || least == 0 || !whole_ || part_.has_unfiltered)
      return write_some(row, to, weighted, weight, pixels);
    *to = pixels;
    return false;
  }

  // Writes those pixels that are results, with their unfiltered channels. Returns whether there are others.
  __device__ bool write_some(int row, Pixels *to, bool weighted, const Line &weight, const Pixels &pixels) const {
    const auto *const copy = reinterpret_cast<const uint32_t *>(part_.copy + (y0_ + row) * part_.copy_pitch) + x_;
    bool others = false;
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      if (x_ + i >= part_.width) break;
      if ((weight[i] != 0) == weighted)
        to->word[i] = part_.has_unfiltered ? blend_channels(part_, pixels.word[i], copy[i]) : pixels.word[i];
      else
        others = true;
    }
    return others;
  }

  const WeightedStripParams &p_;
  const PartParams &part_;
  const int x_, y0_;                // x_: the lane's first pixel
  const bool whole_, has_results_;  // whether all pixels of the lane lie inside the frame, and whether any is a result
  int columns_[kPixels];            // those that stand for the lane's pixels, -1 for the border value
};

__global__ void __launch_bounds__(32 * WeightedStripTuning::kStrips, WeightedStripTuning::kMinBlocks)
    weighted_strips_kernel(const __grid_constant__ WeightedStripParams p) {
  const Tile tile = locate_tile(p, p.rows);
  const int x0 = aligned_column<4>(tile.x0, warp_uniform(static_cast<int>(threadIdx.x / 32)) * kWeightedStripWidth);
  if (x0 >= tile.part.width) return;  // returns as a whole warp
  WeightedStrip(p, tile.part, x0, tile.y0).run();
}

}  // namespace cudaconv::weighted
