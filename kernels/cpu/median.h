// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Medians on the CPU, see cpu_operations.h for what an operation is: of small windows sample by sample, all the windows
// of a row at once; of larger ones from histograms that change by what enters and leaves a window.
#pragma once

#include <vector>

#include "cpu/cpu_operations.h"

namespace cudaconv {

// Of small windows, from all their samples.
template <typename T>
class MedianOp {
 public:
  explicit MedianOp(const RowContext<T> &context) : context_(context) {
    while (1 << depth_ <= context.largest_sample()) depth_++;
  }
  void enter(int) {}
  void filter(int y, T *out) {
    const Pass &pass = context_.pass();
    taps_.clear();
    for (int j = -pass.radius_y; j <= pass.radius_y; j++)
      for (int i = -pass.radius_x; i <= pass.radius_x; i++) taps_.push_back(context_.at(y, i, j));
    context_.loops().median(taps_.data(), static_cast<int>(taps_.size()), depth_, out, context_.padded());
  }

 private:
  const RowContext<T> &context_;
  int depth_ = 0;
  std::vector<const T *> taps_;
};

// Of 8-bit samples, in a time that does not depend on the size: by histograms of the columns of samples that windows
// consist of.
class ColumnMedianOp {
 public:
  static constexpr int kLeastSide = 13;
  static constexpr int kColumnBytes = kMedianBins * (1 + kMedianBins);  // of a sample of a row

  explicit ColumnMedianOp(const RowContext<uint8_t> &context);
  void enter(int y);
  void filter(int y, uint8_t *out);

 private:
  const RowContext<uint8_t> &context_;
  uint8_t *coarse_, *fine_;
};

// Of samples of more bits: by a histogram of the window, which wanders to and fro along the rows and changes by a
// column a step.
class WanderingMedianOp {
 public:
  static constexpr int kLeastSide = 21;

  explicit WanderingMedianOp(const RowContext<uint16_t> &context);
  void enter(int) {}
  void filter(int y, uint16_t *out);

 private:
  // The samples of one channel's window.
  class Histogram {
   public:
    Histogram(Scratch &scratch, int depth, int half);
    void add(int v) { change(v, 1); }
    void remove(int v) { change(v, -1); }
    // The sample that `half` samples at most are less than.
    int median();

   private:
    static constexpr int kMid = 5, kTop = 10;  // bits of what a bin of these levels counts
    void change(int v, int by) {
      count_[v] = static_cast<uint16_t>(count_[v] + by);
      mid_[v >> kMid] = static_cast<uint16_t>(mid_[v >> kMid] + by);
      top_[v >> kTop] = static_cast<uint16_t>(top_[v >> kTop] + by);
      below_ += v < median_ ? by : 0;
    }

    const int half_;
    uint16_t *count_, *mid_, *top_;
    int median_ = 0, below_ = 0;  // the last median, and how many samples are less than that
  };

  // Adds or removes the column or row of the window in which the sample stands first; `first` counts the samples of the
  // row.
  void change_column(Histogram &histogram, int y, int first, bool enters);
  void change_row(Histogram &histogram, int y, int first, bool enters);

  const RowContext<uint16_t> &context_;
  std::vector<Histogram> histogram_;  // by channel
  bool backwards_ = false;            // the next row
};

}  // namespace cudaconv
