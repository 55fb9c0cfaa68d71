// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Minima and maxima over structuring elements on the CPU: RectangleOp over rectangles, StackOp over a few centred
// rectangles, ElementOp over all other elements.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/operation.h"
#include "plan/chords.h"

namespace cudaconv {

// Extrema of runs of pixels along a row.
template <typename T>
class Runs {
 public:
  Runs(const RowContext<T> &context, bool largest) : context_(context), largest_(largest) {}

  // out[s] = the extremum of the `count` samples in[s], in[s + step], ..., for n samples.
  void pick(const T *in, int step, int count, T *out, int n) const {
    const T *taps[8];
    for (int k = 0; k < count; k++) taps[k] = in + k * step;
    context_.loops().extremum(largest_, taps, count, out, std::max(n, kVectorBlock));
  }

  // out[s] = the extremum of the `width` pixels from sample s on, for all samples of the tile. The scratch rows have
  // the window's length. Example, 21 pixels: runs of 8, then of 16; two runs of 16, 5 pixels apart, cover 21.
  void pick_wide(const T *in, int width, T *scratch[2], T *out) const {
    const int c = context_.channels;
    if (width <= 8) return pick(in, c, width, out, context_.samples);
    int length = 8, valid = context_.samples + (width - length) * c;
    pick(in, c, length, scratch[0], valid);
    for (; 2 * length <= width; length *= 2) {
      valid -= length * c;
      pick(scratch[0], length * c, 2, scratch[1], valid);
      std::swap(scratch[0], scratch[1]);
    }
    pick(scratch[0], (width - length) * c, 2, out, context_.samples);
  }

 private:
  const RowContext<T> &context_;
  const bool largest_;
};

// Extrema over a rectangle: along rows, then down columns. Tall rectangles use the algorithm of van Herk and of Gil and
// Werman. It divides rows into groups as tall as the rectangle, so each window is the end of one group and the start of
// the next. Extrema from the start of a group to each row are computed as rows enter. Extrema from each row to the
// group's end are computed when the group is complete.
template <typename T>
class RectangleOp : public Operation<T> {
 public:
  RectangleOp(const RowContext<T> &context, bool largest)
      : RectangleOp(context, largest, context.pass().radius_x, context.pass().radius_y) {}

  // A rectangle centred in the window.
  RectangleOp(const RowContext<T> &context, bool largest, int radius_x, int radius_y)
      : context_(context),
        largest_(largest),
        runs_(context, largest),
        width_(2 * radius_x + 1),
        height_(2 * radius_y + 1),
        radius_y_(radius_y),
        beside_((context.pass().radius_x - radius_x) * context.channels),
        rows_(context.scratch, context.samples, height_) {
    for (T *&row : scratch_) row = context.scratch.template take<T>(context.window.length());
    if (height_ >= kLargeSide) start_ = context.scratch.template take<T>(context.samples);
    taps_.resize(height_);
  }

  void enter(int y) override {
    // The last row of the rectangle, at or above the last row of the window.
    y -= context_.pass().radius_y - radius_y_;
    if (y < context_.tile.y0 - radius_y_) return;
    T *row = rows_[y];
    runs_.pick_wide(context_.window[y] + beside_, width_, scratch_, row);
    if (!start_) return;
    const int place = place_of(y);
    extremum(place ? start_ : row, row, start_);
    if (place == height_ - 1)
      for (int k = 1; k < height_; k++) extremum(rows_[y - k], rows_[y - k + 1], rows_[y - k]);
  }

  void filter(int y, T *out) override {
    const int top = y - radius_y_;
    if (start_ && place_of(top) == 0) {
      std::memcpy(out, rows_[top], context_.samples * sizeof(T));
    } else if (start_) {
      extremum(rows_[top], start_, out);
    } else {
      for (int j = 0; j < height_; j++) taps_[j] = rows_[top + j];
      context_.loops().extremum(largest_, taps_.data(), height_, out, context_.padded());
    }
  }

 private:
  // The index of a row in its group.
  int place_of(int y) const { return (y - context_.tile.y0 + radius_y_) % height_; }

  void extremum(const T *a, const T *b, T *out) const {
    const T *const taps[] = {a, b};
    context_.loops().extremum(largest_, taps, 2, out, context_.padded());
  }

  const RowContext<T> &context_;
  const bool largest_;
  const Runs<T> runs_;
  const int width_, height_, radius_y_;
  const int beside_;    // samples of a window's row before the rectangle
  Ring<T> rows_;        // extrema along rows; in a complete group, from each row to the group's end
  T *start_ = nullptr;  // extrema from the start of the group that rows are entering
  T *scratch_[2];
  std::vector<const T *> taps_;
};

// Extrema over a union of a few centred rectangles, for example a cross.
template <typename T>
class StackOp : public Operation<T> {
 public:
  static bool can(const Pass &pass) {
    // A rectangle costs about as much as kRows rows of an element in ElementOp.
    constexpr int kRows = 12;
    std::vector<int> widths = half_widths_of(pass);
    const auto rows = static_cast<int>(2 * widths.size());
    widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
    return !widths.empty() && kRows * static_cast<int>(widths.size()) <= rows;
  }

  StackOp(const RowContext<T> &context, bool largest)
      : context_(context), largest_(largest), row_(context.scratch.template take<T>(context.samples)) {
    const std::vector<int> widths = half_widths_of(context.pass());
    for (size_t dy = 0; dy < widths.size(); dy++)
      if (dy + 1 == widths.size() || widths[dy + 1] != widths[dy])
        rectangles_.emplace_back(context, largest, widths[dy], static_cast<int>(dy));
  }

  void enter(int y) override {
    for (RectangleOp<T> &rectangle : rectangles_) rectangle.enter(y);
  }

  void filter(int y, T *out) override {
    rectangles_.front().filter(y, out);
    for (size_t i = 1; i < rectangles_.size(); i++) {
      rectangles_[i].filter(y, row_);
      const T *const taps[] = {out, row_};
      context_.loops().extremum(largest_, taps, 2, out, context_.padded());
    }
  }

 private:
  const RowContext<T> &context_;
  const bool largest_;
  T *row_;
  std::vector<RectangleOp<T>> rectangles_;
};

// Extrema over any element. Each row of the element is a few runs. Two runs whose length is a power of two cover each
// run.
template <typename T>
class ElementOp : public Operation<T> {
 public:
  ElementOp(const RowContext<T> &context, bool largest)
      : context_(context), largest_(largest), runs_(context, largest) {
    const Pass &pass = context.pass();
    chords_ = chords_of(pass.element, pass.width(), pass.height(), false);
    const int levels = chords_.back().level;
    // A few members are faster one by one: each level of runs reads and writes whole rows of extrema.
    const int members =
        static_cast<int>(std::count_if(pass.element.begin(), pass.element.end(), [](uint8_t m) { return m != 0; }));
    if (members <= static_cast<int>(chords_.size()) + 3 * levels) list_members();
    for (int k = 0; k < chords_.back().level; k++)
      levels_.emplace_back(context.scratch, context.window.length(), pass.height());
    taps_.resize(chords_.size());
  }

  void enter(int y) override {
    const T *runs = context_.window[y];
    int length = 1, valid = context_.window.length();
    for (const Ring<T> &level : levels_) {
      valid -= length * context_.channels;
      runs_.pick(runs, length * context_.channels, 2, level[y], valid);
      runs = level[y];
      length *= 2;
    }
  }

  void filter(int y, T *out) override {
    for (size_t m = 0; m < chords_.size(); m++) {
      const int row = y + chords_[m].y - context_.pass().radius_y, level = chords_[m].level;
      taps_[m] = (level ? levels_[level - 1][row] : context_.window[row]) + chords_[m].x * context_.channels;
    }
    context_.loops().extremum(largest_, taps_.data(), static_cast<int>(taps_.size()), out, context_.padded());
  }

 private:
  // Lists the members one by one, as chords of one pixel.
  void list_members() {
    const Pass &pass = context_.pass();
    chords_.clear();
    for (int j = 0; j < pass.height(); j++)
      for (int i = 0; i < pass.width(); i++)
        if (pass.has_member(i - pass.radius_x, j - pass.radius_y)) chords_.push_back({i, j, 0, 1});
  }

  const RowContext<T> &context_;
  const bool largest_;
  const Runs<T> runs_;
  std::vector<Chord> chords_;
  std::vector<Ring<T>> levels_;  // extrema of runs of 2, 4, ... pixels
  std::vector<const T *> taps_;
};

}  // namespace cudaconv
