// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel for weighted means by short masks that are the product of a row and a column, of pixels of four bytes with
// sums of 32 bits. A warp goes down a strip of pixels, two side by side for each lane, all in registers:
//
//    1. each lane multiplies its pixels of a row by their alpha, and adds the products to the sums of the columns that
//       contain them
//    2. a column that is complete is handed to the lanes beside, whose rows are then complete, too
//
// The lanes at both ends of a warp have no results: they only load the halo.
#pragma once

#include "cuda/device/sample.cuh"
#include "cuda/launch.cuh"
#include "plan/weighted.h"

namespace cudaconv {

// Found on an H200: of longer masks the kernel of mma/separable_weighted.cuh is faster.
constexpr int kMostStripTaps = 5;

struct WeightedStripParams : FrameParams {
  int32_t alpha_channel;
  int32_t rows;                                          // of a strip
  uint32_t all;                                          // the sum of the mask
  uint32_t row[kMostStripTaps], column[kMostStripTaps];  // in the middle of kTaps, with zeros on both sides
};

constexpr int kWeightedStrips = 4;  // of a thread block, side by side

// Lanes at each end of a warp that have no results.
CUDACONV_HOST_DEVICE constexpr int halo_lanes(int taps) {
  return (taps / 2 + 1) / 2;
}
// The width of a warp's results in pixels.
CUDACONV_HOST_DEVICE constexpr int weighted_strip_width(int taps) {
  return 2 * (32 - 2 * halo_lanes(taps));
}

template <int kTaps>
class WeightedStrip {
  static constexpr int kRadius = kTaps / 2, kHaloLanes = halo_lanes(kTaps), kPixels = 2, kChannels = 4, kAlpha = 3;
  using Sums = uint32_t[kPixels][kChannels];

 public:
  // x0, y0: the first pixel with a result.
  __device__ WeightedStrip(const WeightedStripParams &p, const PartParams &part, int x0, int y0)
      : p_(p),
        part_(part),
        lane_(static_cast<int>(threadIdx.x % 32)),
        x_(x0 + kPixels * (lane_ - kHaloLanes)),
        y0_(y0),
        to_alpha_last_(p.alpha_channel == 0 ? 0x0321u : 0x3210u),
        from_alpha_last_(p.alpha_channel == 0 ? 0x2103u : 0x3210u),
        whole_(x_ >= 0 && x_ + kPixels <= part.width) {
#pragma unroll
    for (int i = 0; i < kPixels; i++) from_[i] = border_index(p.border, x_ + i, part.width);
  }

  // If alpha is 0 in a whole window, its colours are means without alpha: strips with such windows are done twice.
  __device__ void run() {
    if (__any_sync(0xffffffffu, filter(true))) filter(false);
  }

 private:
  // Writes the results of windows with alpha, or else those of windows without. Returns whether any of the lane's
  // windows is one of the others.
  __device__ bool filter(bool weighted) {
    const int rows = min(p_.rows, part_.height - y0_);
    bool others = false;
    Sums pending[kTaps - 1] = {};  // of columns, from the topmost that is not complete on
    uint2 pixels = load(-kRadius);
#pragma unroll 1
    for (int row = -kRadius; row < rows + kRadius; row++) {
      const uint2 next = load(row + 1);
      Sums column;
      add_products({pixels.x, pixels.y}, weighted, pending, column);
      pixels = next;
      if (row < kRadius) continue;
      Sums sum;
      add_rows(column, sum);
      others |= write(row - kRadius, weighted, sum);
    }
    return others;
  }

  // The lane's pixels, `row` rows below its first result.
  __device__ uint2 load(int row) const {
    int y = y0_ + row;
    if (y < 0 || y >= part_.height) y = border_index(p_.border, y, part_.height);
    if (y < 0) return make_uint2(part_.border_word[0], part_.border_word[0]);
    const auto *const line = reinterpret_cast<const uint32_t *>(part_.source + y * part_.source_pitch);
    if (whole_) return *reinterpret_cast<const uint2 *>(line + x_);
    return make_uint2(from_[0] < 0 ? part_.border_word[0] : line[from_[0]],
                      from_[1] < 0 ? part_.border_word[0] : line[from_[1]]);
  }

  // Adds the products of a row to all columns that contain it. `column` is the one that it completes.
  __device__ void add_products(const uint32_t (&pixels)[kPixels], bool weighted, Sums (&pending)[kTaps - 1],
                               Sums &column) const {
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      const uint32_t pixel = __byte_perm(pixels[i], 0, to_alpha_last_);
      const uint32_t alpha = pixel >> 24, weight = weighted ? alpha : 1;
#pragma unroll
      for (int c = 0; c < kChannels; c++) {
        const uint32_t v = c == kAlpha ? alpha : (pixel >> 8 * c & 0xff) * weight;
        column[i][c] = pending[0][i][c] + v * p_.column[kTaps - 1];
#pragma unroll
        for (int k = 0; k + 2 < kTaps; k++) pending[k][i][c] = pending[k + 1][i][c] + v * p_.column[kTaps - 2 - k];
        pending[kTaps - 2][i][c] = v * p_.column[0];
      }
    }
  }

  // Adds up the row of columns around each pixel.
  __device__ void add_rows(const Sums &column, Sums &sum) const {
#pragma unroll
    for (int c = 0; c < kChannels; c++) {
      uint32_t line[kPixels * (2 * kHaloLanes + 1)];  // from the pixels of kHaloLanes lanes before on
#pragma unroll
      for (int i = 0; i < kPixels; i++) {
        line[kPixels * kHaloLanes + i] = column[i][c];
#pragma unroll
        for (int d = 1; d <= kHaloLanes; d++) {
          line[kPixels * (kHaloLanes - d) + i] = __shfl_up_sync(0xffffffffu, column[i][c], d);
          line[kPixels * (kHaloLanes + d) + i] = __shfl_down_sync(0xffffffffu, column[i][c], d);
        }
      }
#pragma unroll
      for (int i = 0; i < kPixels; i++) {
        sum[i][c] = 0;
#pragma unroll
        for (int k = 0; k < kTaps; k++) sum[i][c] += line[kPixels * kHaloLanes - kRadius + i + k] * p_.row[k];
      }
    }
  }

  // Writes the results of a row whose windows have alpha, or have none. Returns whether there are others.
  __device__ bool write(int row, bool weighted, const Sums &sum) const {
    const bool has_results = lane_ >= kHaloLanes && lane_ < 32 - kHaloLanes;
    const int y = y0_ + row;
    uint32_t result[kPixels];
    bool writes[kPixels], others = false;
#pragma unroll
    for (int i = 0; i < kPixels; i++) {
      const bool inside = has_results && x_ + i < part_.width;
      writes[i] = inside && (sum[i][kAlpha] != 0) == weighted;
      others |= inside && !writes[i];
      const uint32_t of_colours = weighted ? max(sum[i][kAlpha], 1u) : p_.all;
      const float inverse = inverse_of(of_colours), inverse_of_all = inverse_of(p_.all);
      uint32_t pixel = 0;
#pragma unroll
      for (int c = 0; c < kChannels; c++) {
        const uint32_t d = c == kAlpha ? p_.all : of_colours;
        pixel |= static_cast<uint32_t>(
                     clamped_quotient<uint32_t>(sum[i][c] + d / 2, d, c == kAlpha ? inverse_of_all : inverse, 255))
                 << 8 * c;
      }
      result[i] = __byte_perm(pixel, 0, from_alpha_last_);
    }
    if (part_.has_unfiltered) {
      const auto *const copy = reinterpret_cast<const uint32_t *>(part_.copy + y * part_.copy_pitch);
#pragma unroll
      for (int i = 0; i < kPixels; i++)
        if (writes[i]) result[i] = blend_channels(part_, result[i], copy[x_ + i]);
    }
    auto *const to = reinterpret_cast<uint32_t *>(part_.target + y * part_.target_pitch) + x_;
    if (writes[0] && writes[1]) {
      *reinterpret_cast<uint2 *>(to) = make_uint2(result[0], result[1]);
    } else {
      if (writes[0]) to[0] = result[0];
      if (writes[1]) to[1] = result[1];
    }
    return others;
  }

  const WeightedStripParams &p_;
  const PartParams &part_;
  const int lane_, x_, y0_;                         // x_: the lane's first pixel
  const unsigned to_alpha_last_, from_alpha_last_;  // selectors of bytes
  const bool whole_;                                // all pixels of the lane lie inside the frame
  int from_[kPixels];  // the columns that stand for the lane's pixels, -1 for the border value
};

template <int kTaps>
__global__ void __launch_bounds__(32 * kWeightedStrips)
    weighted_strips_kernel(const __grid_constant__ WeightedStripParams p) {
  const Tile tile = locate_tile(p, p.rows);
  const int x0 = tile.x0 + warp_uniform(static_cast<int>(threadIdx.x / 32)) * weighted_strip_width(kTaps);
  if (x0 >= tile.part.width) return;  // returns as a whole warp
  WeightedStrip<kTaps>(p, tile.part, x0, tile.y0).run();
}

}  // namespace cudaconv
