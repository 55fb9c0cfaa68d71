// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Medians on the CPU. Small windows compare all their samples, for all windows of a row at once. Larger windows have
// histograms, updated by the samples that enter and leave.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/operation.h"

namespace cudaconv {

// Medians of small windows, from all their samples.
template <typename T>
class MedianOp : public Operation<T> {
 public:
  explicit MedianOp(const RowContext<T> &context) : context_(context) {}
  void filter(int y, T *out) override {
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
class ColumnMedianOp : public Operation<uint8_t> {
 public:
  static bool can(const Pass &pass) { return pass.width() * pass.height() >= kLeastSamples; }

  explicit ColumnMedianOp(const RowContext<uint8_t> &context)
      : context_(context),
        coarse_(context.scratch.take<uint8_t>(static_cast<size_t>(context.window.length()) * kMedianBins)),
        fine_(context.scratch.take<uint8_t>(static_cast<size_t>(context.window.length()) * kMedianBins * kMedianBins)) {
    std::fill_n(coarse_, static_cast<size_t>(context.window.length()) * kMedianBins, uint8_t{0});
    std::fill_n(fine_, static_cast<size_t>(context.window.length()) * kMedianBins * kMedianBins, uint8_t{0});
  }

  void enter(int y) override {
    context_.loops().count_columns(context_.window[y], context_.leaving(y, nullptr), coarse_, fine_,
                                   context_.window.length());
  }

  void filter(int, uint8_t *out) override {
    const Pass &pass = context_.pass();
    context_.loops().median_of_columns(coarse_, fine_, context_.channels, pass.width(),
                                       pass.width() * pass.height() / 2, out, context_.samples);
  }

 private:
  static constexpr int kLeastSamples = 13 * 13;  // MedianOp counts up to 255 bytes

  const RowContext<uint8_t> &context_;
  uint8_t *coarse_, *fine_;
};

// Medians of deeper samples, from one histogram of the window. The window moves along rows, alternately to the right
// and to the left. Each step changes one column.
class WanderingMedianOp : public Operation<uint16_t> {
 public:
  // A step removes a column, adds a column and searches the median. MedianOp compares all samples, many windows at
  // once.
  static bool can(const Pass &pass) { return pass.width() * pass.height() >= 10 * (pass.height() + 23); }

  explicit WanderingMedianOp(const RowContext<uint16_t> &context) : context_(context) {
    const int half = context.pass().width() * context.pass().height() / 2;
    for (int c = 0; c < context.channels; c++)
      histogram_.emplace_back(context.scratch, context.job.layout->depth(), half);
  }

  void filter(int y, uint16_t *out) override {
    const Pass &pass = context_.pass();
    const int channels = context_.channels, pixels = context_.samples / channels, step = backwards_ ? -1 : 1;
    for (int c = 0; c < channels; c++) {
      Histogram &histogram = histogram_[c];
      int x = backwards_ ? pixels - 1 : 0;
      if (y == context_.tile.y0) {
        for (int j = y - pass.radius_y; j <= y + pass.radius_y; j++) change_row(histogram, j, c, 1);
      } else {
        change_row(histogram, y + pass.radius_y, x * channels + c, 1);
        change_row(histogram, y - pass.radius_y - 1, x * channels + c, -1);
      }
      out[x * channels + c] = static_cast<uint16_t>(histogram.median());
      for (int i = 1; i < pixels; i++) {
        change_column(histogram, y, (x + (backwards_ ? -1 : pass.width())) * channels + c, 1);
        change_column(histogram, y, (x + (backwards_ ? pass.width() - 1 : 0)) * channels + c, -1);
        x += step;
        out[x * channels + c] = static_cast<uint16_t>(histogram.median());
      }
    }
    backwards_ = !backwards_;
  }

 private:
  // A histogram of the samples of one channel in the window.
  class Histogram {
   public:
    Histogram(Scratch &scratch, int depth, int half) : half_(half) {
      const auto bins = [&](int bits) {
        const size_t count = size_t{1} << std::max(depth - bits, 0);
        uint16_t *counts = scratch.take<uint16_t>(count);
        std::fill_n(counts, count, uint16_t{0});
        return counts;
      };
      count_ = bins(0);
      mid_ = bins(kMid);
      top_ = bins(kTop);
    }

    // Counts value v once more, or once less: `by` is 1 or -1.
    void change(int v, int by) {
      count_[v] = static_cast<uint16_t>(count_[v] + by);
      mid_[v >> kMid] = static_cast<uint16_t>(mid_[v >> kMid] + by);
      top_[v >> kTop] = static_cast<uint16_t>(top_[v >> kTop] + by);
      below_ += v < median_ ? by : 0;
    }
    // The median m: at most `half` samples are below m, and more than `half` are m or below.
    int median() {
      const auto at_start = [&](int bits) { return (median_ & ((1 << bits) - 1)) == 0; };
      while (below_ + count_[median_] <= half_) {
        if (at_start(kTop) && below_ + top_[median_ >> kTop] <= half_) {
          below_ += top_[median_ >> kTop];
          median_ += 1 << kTop;
        } else if (at_start(kMid) && below_ + mid_[median_ >> kMid] <= half_) {
          below_ += mid_[median_ >> kMid];
          median_ += 1 << kMid;
        } else {
          below_ += count_[median_++];
        }
      }
      while (below_ > half_) {
        if (at_start(kTop) && below_ - top_[(median_ >> kTop) - 1] > half_) {
          below_ -= top_[(median_ >> kTop) - 1];
          median_ -= 1 << kTop;
        } else if (at_start(kMid) && below_ - mid_[(median_ >> kMid) - 1] > half_) {
          below_ -= mid_[(median_ >> kMid) - 1];
          median_ -= 1 << kMid;
        } else {
          below_ -= count_[--median_];
        }
      }
      return median_;
    }

   private:
    static constexpr int kMid = 5, kTop = 10;  // a bin counts 2^kMid values in mid_, 2^kTop in top_

    const int half_;
    uint16_t *count_, *mid_, *top_;
    int median_ = 0, below_ = 0;  // the last median, and how many samples are less than it
  };

  // Adds a column or a row of the window, by 1, or removes it, by -1. Its first sample is at index `first` of each row.
  void change_column(Histogram &histogram, int y, int first, int by) {
    const int radius = context_.pass().radius_y;
    for (int j = y - radius; j <= y + radius; j++) histogram.change(context_.window[j][first], by);
  }

  void change_row(Histogram &histogram, int y, int first, int by) {
    const uint16_t *row = context_.window[y] + first;
    for (int i = 0; i < context_.pass().width(); i++) histogram.change(row[i * context_.channels], by);
  }

  const RowContext<uint16_t> &context_;
  std::vector<Histogram> histogram_;  // by channel
  bool backwards_ = false;            // direction of the next row
};

}  // namespace cudaconv
