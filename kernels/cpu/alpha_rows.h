// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reads the alpha of pixels, for means weighted by alpha.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/cpu_rows.h"
#include "plan/weighted.h"

namespace cudaconv {

// Alpha for the pixels of a part. Another part may hold the alpha, at another resolution.
template <typename T>
class AlphaRows {
 public:
  AlphaRows(const Job &job, const JobTile &tile, Scratch &scratch) : job_(job), grid_(alpha_grid(*job.plan, job.part)) {
    const AlphaPlace place = alpha_of(job.plan->layout);
    layout_ = &job.plan->layout.plane[place.plane];
    channel_ = place.channel;
    first_ = job.layout->width;
    int last = 0;
    for (int x = tile.x0 - job.pass->radius_x; x < tile.x1 + job.pass->radius_x; x++) {
      const int from = border_index(job.plan->border, x, job.layout->width);
      column_.push_back(from);
      if (from < 0) continue;
      first_ = std::min(first_, from);
      last = std::max(last, from + 1);
    }
    first_ <<= grid_.sub_x;
    count_ = std::min(last << grid_.sub_x, grid_.width) - first_;
    for (int i = 0; i < 1 << grid_.sub_y; i++)
      rows_.push_back(scratch.take<T>(static_cast<size_t>(std::max(count_, 0)) * layout_->channels + kVectorBlock));
  }

  // Writes one sample for each column of the window in row y, which may be outside the part.
  void read(int y, T *alpha) {
    const T outside = static_cast<T>(layout_->border_value[channel_]);
    const int source = border_index(job_.plan->border, y, job_.part.height);
    if (source < 0) {
      std::fill_n(alpha, column_.size(), outside);
      return;
    }
    const int top = source << grid_.sub_y;
    for (int i = 0; i < 1 << grid_.sub_y && top + i < grid_.height; i++)
      unpack_pixels(*job_.loops, *layout_, job_.alpha.data + (top + i) * job_.alpha.pitch, first_, count_, rows_[i]);
    const auto at = [&](int x, int row) { return rows_[row - top][(x - first_) * layout_->channels + channel_]; };
    for (size_t i = 0; i < column_.size(); i++)
      alpha[i] = column_[i] < 0 ? outside : static_cast<T>(alpha_at(grid_, column_[i], source, at));
  }

 private:
  const Job &job_;
  const AlphaGrid grid_;
  const PlaneLayout *layout_;
  int channel_;
  int first_, count_;        // range of pixels that are read of the part that holds alpha
  std::vector<int> column_;  // the part's column for each column of the window; -1: outside
  std::vector<T *> rows_;
};

}  // namespace cudaconv
