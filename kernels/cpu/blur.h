// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Blur on the CPU: wide Gaussians through a smaller frame, see plan/decimation.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend.h"
#include "cpu/operation.h"
#include "plan/area.h"
#include "plan/decimation.h"

namespace cudaconv {

// The blurred coarse samples of a part, with interleaved channels.
class CoarsePart {
 public:
  // Computes the coarse samples that the results in `bounds` need. Returns when all threads are done.
  void make(const Job &job, const PixelRect &bounds, const ParallelFor &parallel_for, int threads);

  // Coarse row m from coarse sample `column` on; the first column is -1.
  const int32_t *at(int column, int m) const {
    return blurred_.data() + (m - first_row_) * stride_ + static_cast<size_t>(column + 1) * channels_;
  }

 private:
  template <typename T>
  void reduce(const Job &job, int begin, int end);
  void blur_row(const Job &job, const std::vector<int32_t> &reduced, int32_t *out) const;
  void blur_columns(const Job &job, int begin, int end);
  // The row of rows_ for coarse row m.
  const int32_t *row(int m) const { return rows_.data() + (y_.index(m) - made_begin_) * stride_; }

  int channels_ = 0;
  CoarseLine x_ = {}, y_ = {};  // coarse columns and rows that are computed
  size_t stride_ = 0;           // samples from row to row
  int first_row_ = 0;           // coarse row of the first row of blurred_
  int made_begin_ = 0;          // index in y_ of the first row in rows_
  std::vector<int32_t> rows_;   // coarse samples, blurred along rows
  std::vector<int32_t> blurred_;
};

template <typename T>
std::unique_ptr<Operation<T>> make_blur(const RowContext<T> &context);

}  // namespace cudaconv
