// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Soft edges of regions. Around a region, results fade into the original:
//
//   share   of the original, in 256ths: floor(256 * d / (feather + 1)). d is the distance, in pixels of the frame, from
//           the middle of a pixel to the middle of the nearest pixel in a region. From 256 on the pixel stays as it is.
//   sample  (filtered * (256 - share) + original * share + 128) >> 8
//
// In regions d is 0, and nothing of the original is left. Example: with a feather of 3 pixels the four pixels beside a
// straight edge have the shares 64, 128, 192 and 256.
#pragma once

#include <cstdint>
#include <vector>

#include "cancellation.h"
#include "plan/border.h"
#include "plan/region_rows.h"

namespace cudaconv {

// A sample that fades, from its filtered and its original value, of up to 16 bits.
template <typename T>
CUDACONV_HOST_DEVICE constexpr T faded(T filtered, T original, T share) {
  return static_cast<T>((filtered * (256 - share) + original * share + 128) >> 8);
}

struct Feather {
  int width;  // 256ths of a pixel, see Regions::feather
  // Pixels of the frame from one column, or row, of a part to the next.
  int64_t column_step, row_step;

  // The largest distance, across or down, of a pixel that fades from one in a region.
  int64_t reach() const { return (width + 255) / 256; }
};

// `pixels`, with the pixels that fade around them. n pixels that fade take O(n). If the frame is cancelled, rows are
// missing.
RegionRows feathered(const RegionRows &pixels, int columns, const Feather &feather, const Cancellation &cancellation);

// The share of each squared distance, up to the largest one below 256.
std::vector<uint8_t> shares_by_square(int feather);

}  // namespace cudaconv
