// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Blur on the CPU: wide Gaussians by way of a smaller frame, see plan/decimation.h.
#pragma once

#include <cstdint>
#include <vector>

#include "backend.h"
#include "cpu/cpu_rows.h"
#include "plan/area.h"

namespace cudaconv {

// The coarse samples of a part, blurred; channels are interleaved.
class CoarsePart {
 public:
  // Makes those that the results in `bounds` are expanded from. The calling thread waits for the others.
  void make(const Job &job, const PixelRect &bounds, const ParallelFor &parallel_for, int threads);

  // Row m of those about coarse sample `column`, of which -1 is the first.
  const int32_t *at(int column, int m) const {
    return blurred_.data() + (m - first_row_) * stride_ + static_cast<size_t>(column + 1) * channels_;
  }

 private:
  template <typename T>
  void reduce(const Job &job, int begin, int end);
  void blur_row(const Job &job, const std::vector<int32_t> &reduced, int32_t *out) const;
  void blur_columns(const Job &job, int begin, int end);
  // Of rows_, the one that stands for coarse row m.
  const int32_t *row(int m) const { return rows_.data() + (y_.index(m) - made_begin_) * stride_; }

  int channels_ = 0;
  CoarseLine x_ = {}, y_ = {};  // that are reduced to
  size_t stride_ = 0;           // samples from row to row
  int first_row_ = 0;           // of blurred_
  int made_begin_ = 0;          // of y_, the first row in rows_
  std::vector<int32_t> rows_;   // blurred along rows
  std::vector<int32_t> blurred_;
};

// The results of a tile, row by row.
template <typename T>
class BlurRows {
 public:
  BlurRows(const Job &job, const JobTile &tile, Scratch &scratch);

  // The tile's samples of row y.
  void write(int y, T *out);

 private:
  void spread(const int32_t *coarse);

  const Job &job_;
  const JobTile tile_;
  const int channels_, samples_;
  const int first_;         // coarse sample in whose reach the tile begins
  int32_t *row_, *spread_;  // coarse samples of a row of results, and each as often as it stands for pixels
  int32_t *weight_[4];      // of the samples of a row
  int32_t *sum_;
  T *centre_;
};

}  // namespace cudaconv
