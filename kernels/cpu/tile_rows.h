// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Filters that read the frame as they need it, unlike the operations of cpu_operations.h: they compute the rows of a
// tile one after the other.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "cpu/cpu_rows.h"
#include "plan/mosaic.h"

namespace cudaconv {

template <typename T>
class TileRows {
 public:
  virtual ~TileRows() = default;

  // Writes the tile's samples of row y. Rows are written in rising order.
  virtual void write(int y, T *row) = 0;
};

// Op::Mosaic, Op::Blur, Op::WeightedMean, and Op::Bilateral with alpha.
template <typename T>
std::unique_ptr<TileRows<T>> make_mosaic_rows(const Job &job, const JobTile &tile, Scratch &scratch);
template <typename T>
std::unique_ptr<TileRows<T>> make_blur_rows(const Job &job, const JobTile &tile, Scratch &scratch);
template <typename T>
std::unique_ptr<TileRows<T>> make_weighted_rows(const Job &job, const JobTile &tile, Scratch &scratch);
template <typename T>
std::unique_ptr<TileRows<T>> make_bilateral_alpha_rows(const Job &job, const JobTile &tile, Scratch &scratch);

// Cuts the boxes of a part into tiles for `threads` threads, at the edges of blocks.
std::vector<JobTile> mosaic_tiles(const MosaicPart &mosaic, int threads);

// Calls f(n) with n.value == channels, a constant.
template <typename F>
void with_channels(int channels, F f) {
  switch (channels) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    default:
      return f(std::integral_constant<int, 4>());
  }
}

}  // namespace cudaconv
