// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Mosaic on the CPU.
#pragma once

#include <cstddef>
#include <vector>

#include "cpu/cpu_rows.h"
#include "plan/mosaic.h"

namespace cudaconv {

// Cuts the boxes of a part, between blocks, into tiles for so many threads.
std::vector<JobTile> mosaic_tiles(const MosaicPart &mosaic, int threads);

// The mosaic of a tile, row by row.
template <typename T>
class MosaicRows {
 public:
  MosaicRows(const Job &job, const JobTile &tile, Scratch &scratch);

  // The tile's samples of row y, in rising order of rows.
  void write(int y, T *row);

 private:
  void add_rows(int x, int count, int y0, int y1);
  void make_blocks(int y0, int y1);
  template <int kChannels>
  void fill_blocks(int first_block, int last_block, int rows);

  static constexpr int kAtOnce = 4;  // rows that are added up together
  // Of a row, so that they stay in the first-level cache.
  static constexpr int kChunkSamples = 4096;

  // Of up to 255 rows.
  using Sum = std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t>;

  const Job &job_;
  const JobTile tile_;
  int end_;                // the row at which the blocks in force end
  T *row_;                 // what every row of the blocks in force is
  T *rows_[kAtOnce];       // of the source, where they do not lie in memory as samples
  std::vector<Sum> sums_;  // of the columns of a row of blocks
};

}  // namespace cudaconv
