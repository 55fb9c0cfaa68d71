// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cpu/median.h"

#include <algorithm>

namespace cudaconv {

ColumnMedianOp::ColumnMedianOp(const RowContext<uint8_t> &context)
    : context_(context),
      coarse_(context.scratch.take<uint8_t>(static_cast<size_t>(context.window.length()) * kMedianBins)),
      fine_(context.scratch.take<uint8_t>(static_cast<size_t>(context.window.length()) * kMedianBins * kMedianBins)) {
  std::fill_n(coarse_, static_cast<size_t>(context.window.length()) * kMedianBins, uint8_t{0});
  std::fill_n(fine_, static_cast<size_t>(context.window.length()) * kMedianBins * kMedianBins, uint8_t{0});
}

void ColumnMedianOp::enter(int y) {
  const int leaves = y - context_.pass().height();
  const bool filled = leaves >= context_.first_y - context_.pass().radius_y;
  context_.loops().count_columns(context_.window[y], filled ? context_.window[leaves] : nullptr, coarse_, fine_,
                                 context_.window.length());
}

void ColumnMedianOp::filter(int, uint8_t *out) {
  const Pass &pass = context_.pass();
  context_.loops().median_of_columns(coarse_, fine_, context_.channels, pass.width(), pass.width() * pass.height() / 2,
                                     out, context_.samples);
}

WanderingMedianOp::Histogram::Histogram(Scratch &scratch, int depth, int half) : half_(half) {
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

int WanderingMedianOp::Histogram::median() {
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

WanderingMedianOp::WanderingMedianOp(const RowContext<uint16_t> &context) : context_(context) {
  const int half = context.pass().width() * context.pass().height() / 2;
  for (int c = 0; c < context.channels; c++)
    histogram_.emplace_back(context.scratch, context.job.layout->depth(), half);
}

void WanderingMedianOp::change_column(Histogram &histogram, int y, int first, bool enters) {
  const int radius = context_.pass().radius_y;
  for (int j = y - radius; j <= y + radius; j++) {
    const int v = context_.window[j][first];
    enters ? histogram.add(v) : histogram.remove(v);
  }
}

void WanderingMedianOp::change_row(Histogram &histogram, int y, int first, bool enters) {
  const uint16_t *row = context_.window[y] + first;
  for (int i = 0; i < context_.pass().width(); i++) {
    const int v = row[i * context_.channels];
    enters ? histogram.add(v) : histogram.remove(v);
  }
}

void WanderingMedianOp::filter(int y, uint16_t *out) {
  const Pass &pass = context_.pass();
  const int channels = context_.channels, pixels = context_.samples / channels, step = backwards_ ? -1 : 1;
  for (int c = 0; c < channels; c++) {
    Histogram &histogram = histogram_[c];
    int x = backwards_ ? pixels - 1 : 0;
    if (y == context_.first_y) {
      for (int j = y - pass.radius_y; j <= y + pass.radius_y; j++) change_row(histogram, j, c, true);
    } else {
      change_row(histogram, y + pass.radius_y, x * channels + c, true);
      change_row(histogram, y - pass.radius_y - 1, x * channels + c, false);
    }
    out[x * channels + c] = static_cast<uint16_t>(histogram.median());
    for (int i = 1; i < pixels; i++) {
      change_column(histogram, y, (x + (backwards_ ? -1 : pass.width())) * channels + c, true);
      change_column(histogram, y, (x + (backwards_ ? pass.width() - 1 : 0)) * channels + c, false);
      x += step;
      out[x * channels + c] = static_cast<uint16_t>(histogram.median());
    }
  }
  backwards_ = !backwards_;
}

}  // namespace cudaconv
