// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Mosaic on the CPU: means of blocks.
#pragma once

#include <cstddef>
#include <vector>

#include "cpu/cpu_rows.h"
#include "plan/mosaic.h"

namespace cudaconv {

// Cuts the boxes of a part into tiles for `threads` threads, at the edges of blocks.
std::vector<JobTile> mosaic_tiles(const MosaicPart &mosaic, int threads);

// The mosaic in a tile, row by row.
template <typename T>
class MosaicRows {
 public:
  MosaicRows(const Job &job, const JobTile &tile, Scratch &scratch);

  // Writes the tile's samples of row y. Rows are written in rising order.
  void write(int y, T *row);

 private:
  void add_rows(int x, int count, int y0, int y1);
  void make_blocks(int y0, int y1);
  template <int kChannels>
  void fill_blocks(int first_block, int last_block, int rows);

  static constexpr int kAtOnce = 4;  // rows that are added at a time
  // Samples of a row that are added at a time, so that their sums stay in the first-level cache.
  static constexpr int kChunkSamples = 4096;

  // Holds a sum of up to 255 samples of a column.
  using Sum = std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t>;

  const Job &job_;
  const JobTile tile_;
  int end_;                // the first row below the current row of blocks
  T *row_;                 // the result, the same for each row of these blocks
  T *rows_[kAtOnce];       // unpacked rows of the source, if they cannot be read in place
  std::vector<Sum> sums_;  // sums of the columns of these blocks
};

}  // namespace cudaconv
