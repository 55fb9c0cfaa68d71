// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Medians on the CPU: operations as in cpu_operations.h. Small windows compare all their samples, for all windows of a
// row at once. Larger windows have histograms, updated by the samples that enter and leave.
#pragma once

#include <vector>

#include "cpu/cpu_operations.h"

namespace cudaconv {

// Medians of small windows, from all their samples.
template <typename T>
class MedianOp {
 public:
  explicit MedianOp(const RowContext<T> &context) : context_(context) {}
  void enter(int) {}
  void filter(int y, T *out) {
    const Pass &pass = context_.pass();
    taps_.clear();
    for (int j = -pass.radius_y; j <= pass.radius_y; j++)
      for (int i = -pass.radius_x; i <= pass.radius_x; i++) taps_.push_back(context_.at(y, i, j));
    context_.loops().median(taps_.data(), static_cast<int>(taps_.size()), context_.job.layout->depth(), out,
                            context_.padded());
  }

 private:
  const RowContext<T> &context_;
  std::vector<const T *> taps_;
};

// Medians of 8-bit samples, from histograms of the window's columns. The time does not depend on the window's size.
class ColumnMedianOp {
 public:
  static bool can(const Pass &pass) { return pass.width() * pass.height() >= kLeastSamples; }
  static constexpr int kColumnBytes = kMedianBins * (1 + kMedianBins);  // bytes of histograms for each sample of a row

  explicit ColumnMedianOp(const RowContext<uint8_t> &context);
  void enter(int y);
  void filter(int y, uint8_t *out);

 private:
  static constexpr int kLeastSamples = 13 * 13;  // MedianOp counts up to 255 bytes

  const RowContext<uint8_t> &context_;
  uint8_t *coarse_, *fine_;
};

// Medians of deeper samples, from one histogram of the window. The window moves along rows, alternately to the right
// and to the left. Each step changes one column.
class WanderingMedianOp {
 public:
  // A step removes a column, adds a column and searches the median. MedianOp compares all samples, many windows at
  // once.
  static bool can(const Pass &pass) { return pass.width() * pass.height() >= 10 * (pass.height() + 23); }

  explicit WanderingMedianOp(const RowContext<uint16_t> &context);
  void enter(int) {}
  void filter(int y, uint16_t *out);

 private:
  // A histogram of the samples of one channel in the window.
  class Histogram {
   public:
    Histogram(Scratch &scratch, int depth, int half);
    void add(int v) { change(v, 1); }
    void remove(int v) { change(v, -1); }
    // The median m: at most `half` samples are below m, and more than `half` are m or below.
    int median();

   private:
    static constexpr int kMid = 5, kTop = 10;  // a bin counts 2^kMid values in mid_, 2^kTop in top_
    void change(int v, int by) {
      count_[v] = static_cast<uint16_t>(count_[v] + by);
      mid_[v >> kMid] = static_cast<uint16_t>(mid_[v >> kMid] + by);
      top_[v >> kTop] = static_cast<uint16_t>(top_[v >> kTop] + by);
      below_ += v < median_ ? by : 0;
    }

    const int half_;
    uint16_t *count_, *mid_, *top_;
    int median_ = 0, below_ = 0;  // the last median, and how many samples are less than it
  };

  // Adds or removes a column or a row of the window. Its first sample is at index `first` of each row.
  void change_column(Histogram &histogram, int y, int first, bool enters);
  void change_row(Histogram &histogram, int y, int first, bool enters);

  const RowContext<uint16_t> &context_;
  std::vector<Histogram> histogram_;  // by channel
  bool backwards_ = false;            // direction of the next row
};

}  // namespace cudaconv
