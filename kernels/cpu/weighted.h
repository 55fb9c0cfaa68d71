// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::WeightedMean on the CPU.
#pragma once

#include <memory>

#include "cpu/cpu_rows.h"

namespace cudaconv {

// The weighted means of a tile, row by row.
template <typename T>
class WeightedRows {
 public:
  virtual ~WeightedRows() = default;

  // Writes the tile's samples of row y. Rows are written in rising order.
  virtual void write(int y, T *row) = 0;
};

template <typename T>
std::unique_ptr<WeightedRows<T>> make_weighted_rows(const Job &job, const JobTile &tile, Scratch &scratch);

}  // namespace cudaconv
