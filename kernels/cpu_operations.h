// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the CPU backend does to a window of rows. Each operation turns the rows around y into a row of samples: enter(y)
// as rows come in, in rising order, then filter(y, out) once the window's last row, y + radius_y, has entered.
//
// Sums are kept in the narrowest lanes that provably hold them. A type Lanes names those of the rows' sums and of the
// totals.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu_rows.h"

namespace cudaconv {

// Sides from which sums and extrema are taken in a time that does not depend on the size.
constexpr int kLargeSide = 10;

template <typename T>
struct RowContext {
  const Job &job;
  const RowWindow<T> &window;
  Scratch &scratch;
  int channels, samples;
  int first_y;  // the tile's

  const VectorLoops &loops() const { return *job.loops; }
  const Pass &pass() const { return *job.pass; }
  const Rounding *rounding() const { return job.pass->rounding[job.part.plane]; }
  int blocks() const { return whole_blocks(samples); }
  // For loops that take any number of samples from one block.
  int padded() const { return std::max(samples, kVectorBlock); }
  // The row of samples that stands `dx` pixels right and `dy` rows down of the results of row y.
  const T *at(int y, int dx, int dy) const { return window[y + dy] + (dx + pass().radius_x) * channels; }
  int largest_sample() const {
    int depth = 0;
    for (int c = 0; c < channels; c++) depth = std::max<int>(depth, job.layout->channel[c].depth);
    return (1 << depth) - 1;
  }
};

template <typename RowSum, typename TotalSum>
struct Lanes {
  using Row = RowSum;
  using Total = TotalSum;
};

inline SumRange range_of(const std::vector<int32_t> &coefficients, int64_t largest_sample) {
  SumRange range;
  for (int32_t c : coefficients) range.add(c, largest_sample);
  return range;
}

inline bool all_equal(const std::vector<int32_t> &v) {
  return std::all_of(v.begin(), v.end(), [&](int32_t c) { return c == v[0]; });
}

// The sums of an integer mask.
template <typename T, typename LanesType>
class MaskSum {
 public:
  using Row = typename LanesType::Row;
  using Total = typename LanesType::Total;

  MaskSum(const RowContext<T> &context, const IntegerMask &mask, Total start)
      : context_(context),
        mask_(mask),
        start_(start),
        width_(context.pass().width()),
        height_(context.pass().height()) {
    if (!mask.separable()) return;
    if (mask.row_shift) unshifted_ = context.scratch.template take<Wide>(context.blocks());
    rows_ = Ring<Row>(context.scratch, context.samples, height_);
  }

  void enter(int y) {
    if (!mask_.separable()) return;
    std::vector<Tap<T>> &taps = taps_of(T{});
    const T *row = context_.window[y];
    for (int i = 0; i < width_; i++) add(taps, row + i * context_.channels, mask_.row[i]);
    const int count = static_cast<int>(taps.size()), n = context_.blocks();
    if (mask_.row_shift) {
      context_.loops().sum(taps.data(), count, Wide{1} << (mask_.row_shift - 1), unshifted_, n);
      context_.loops().shift(unshifted_, mask_.row_shift, rows_[y], n);
    } else {
      context_.loops().sum(taps.data(), count, Row{0}, rows_[y], n);
    }
    taps.clear();
  }

  void filter(int y, Total *out) {
    const int radius_y = context_.pass().radius_y;
    if (mask_.separable()) {
      auto &taps = taps_of(Row{});
      for (int j = 0; j < height_; j++) add(taps, rows_[y + j - radius_y], mask_.column[j]);
      finish(taps, out);
    } else {
      auto &taps = taps_of(T{});
      for (int j = 0; j < height_; j++)
        for (int i = 0; i < width_; i++)
          add(taps, context_.window[y + j - radius_y] + i * context_.channels, mask_.value[j * width_ + i]);
      finish(taps, out);
    }
  }

 private:
  // What a row's sum needs before it is rounded to fit.
  using Wide = std::conditional_t<sizeof(Row) == 2, int32_t, Row>;

  template <typename In>
  static void add(std::vector<Tap<In>> &taps, const In *in, int32_t coefficient) {
    if (coefficient) taps.push_back({in, coefficient});
  }

  template <typename In>
  void finish(std::vector<Tap<In>> &taps, Total *out) {
    context_.loops().sum(taps.data(), static_cast<int>(taps.size()), start_, out, context_.blocks());
    taps.clear();
  }

  template <typename In>
  std::vector<Tap<In>> &taps_of(In) {
    if constexpr (std::is_same_v<In, T>)
      return sample_taps_;
    else
      return row_taps_;
  }

  const RowContext<T> &context_;
  const IntegerMask &mask_;
  const Total start_;
  const int width_, height_;
  Ring<Row> rows_;
  Wide *unshifted_ = nullptr;
  std::vector<Tap<T>> sample_taps_;
  std::vector<Tap<Row>> row_taps_;
};

// The sums of a mask whose coefficients are all alike: of each column of samples kept from row to row, and along the
// row as differences of sums from its start, all modulo 2^16 or 2^32.
template <typename T, typename LanesType>
class BoxSum {
 public:
  using Total = typename LanesType::Total;

  static bool can(const Pass &pass, const IntegerMask &mask) {
    return mask.separable() && !mask.row_shift && !pass.wide && all_equal(mask.row) && all_equal(mask.column) &&
           (pass.width() >= kLargeSide || pass.height() >= kLargeSide);
  }

  BoxSum(const RowContext<T> &context, const IntegerMask &mask, Total start)
      : context_(context),
        coefficient_(mask.row[0] * mask.column[0]),
        start_(start),
        length_(context.window.length()),
        columns_(context.scratch.template take<Total>(whole_blocks(length_))),
        scan_(context.scratch.template take<Total>(whole_blocks(context.samples) + length_)),
        zeros_(context.scratch.template take<T>(whole_blocks(length_))) {
    std::fill_n(columns_, whole_blocks(length_), Total{0});
    std::fill_n(zeros_, whole_blocks(length_), T{0});
  }

  void enter(int y) {
    const int leaves = y - context_.pass().height();
    const bool filled = leaves >= context_.first_y - context_.pass().radius_y;
    context_.loops().slide(context_.window[y], filled ? context_.window[leaves] : zeros_, columns_,
                           whole_blocks(length_));
  }

  void filter(int, Total *out) {
    context_.loops().scan(columns_, context_.channels, scan_, length_);
    const Tap<Total> taps[] = {{scan_ + context_.pass().width() * context_.channels, coefficient_},
                               {scan_, -coefficient_}};
    context_.loops().sum(taps, 2, start_, out, context_.blocks());
    std::fill(out + context_.samples, out + context_.padded(), Total{0});
  }

 private:
  const RowContext<T> &context_;
  const int32_t coefficient_;
  const Total start_;
  const int length_;
  Total *columns_, *scan_;
  T *zeros_;
};

// From sums in 32 or 64 bits to samples. All channels of a plane are rounded alike but where their depths differ.
template <typename T, typename Acc>
void round_row(const RowContext<T> &context, int y, const Acc *sum, T *out) {
  const Pass &pass = context.pass();
  const Rounding *rounding = context.rounding();
  const ChannelLayout *channel = context.job.layout->channel;
  const bool uniform = std::all_of(channel, channel + context.channels,
                                   [&](const ChannelLayout &c) { return c.depth == channel->depth; });
  const T *centre = context.at(y, 0, 0);
  const Gain gain = {pass.sum_gain, pass.center_gain, pass.sum_shift};
  if (!uniform) {
    for (int s = 0; s < context.samples; s++) {
      const Rounding &r = rounding[s % context.channels];
      out[s] = static_cast<T>(pass.has_gain()
                                  ? round_to_sample(apply_gain(sum[s], gain.shift, gain.sum, gain.centre, centre[s]), r)
                                  : round_to_sample(sum[s], r));
    }
  } else if (pass.has_gain()) {
    context.loops().round(sum, gain, centre, *rounding, out, context.padded());
  } else {
    context.loops().round(sum, *rounding, out, context.padded());
  }
}

// Sums in 16-bit lanes, which only 8-bit samples have.
template <typename T, template <typename, typename> class Sum>
class NarrowOp {
 public:
  using Lanes16 = Lanes<uint16_t, uint16_t>;

  static bool can(const Pass &pass, const Rounding &rounding, Rounding16 *result) {
    const IntegerMask &mask = pass.mask[0];
    if (pass.wide || pass.has_gain() || mask.row_shift || mask.value.empty()) return false;
    return make_rounding16(rounding, range_of(mask.value, rounding.max), result);
  }

  NarrowOp(const RowContext<T> &context, const Rounding16 &rounding)
      : context_(context),
        rounding_(rounding),
        sum_(context, context.pass().mask[0], rounding.start),
        total_(context.scratch.template take<uint16_t>(context.blocks())) {}
  void enter(int y) { sum_.enter(y); }
  void filter(int y, T *out) {
    sum_.filter(y, total_);
    context_.loops().round(total_, rounding_, out, context_.padded());
  }

 private:
  const RowContext<T> &context_;
  const Rounding16 rounding_;
  Sum<T, Lanes16> sum_;
  uint16_t *total_;
};

template <typename T, typename SumType>
class LinearOp {
 public:
  explicit LinearOp(const RowContext<T> &context)
      : context_(context),
        sum_(context, context.pass().mask[0], 0),
        total_(context.scratch.template take<Total>(context.blocks())) {}
  void enter(int y) { sum_.enter(y); }
  void filter(int y, T *out) {
    sum_.filter(y, total_);
    round_row(context_, y, total_, out);
  }

 private:
  using Total = typename SumType::Total;
  const RowContext<T> &context_;
  SumType sum_;
  Total *total_;
};

// Whether each row's sum is from 0 to 2^16 - 1 when its column's factor multiplies it.
template <typename T>
bool row_sums_fit(const RowContext<T> &context) {
  const IntegerMask &mask = context.pass().mask[0];
  if (!mask.separable() || context.pass().wide) return false;
  const SumRange range = range_of(mask.row, context.largest_sample());
  const int64_t half = mask.row_shift ? int64_t{1} << (mask.row_shift - 1) : 0;
  return range.low == 0 && (range.high + half) >> mask.row_shift <= 0xffff;
}

template <typename T, typename Acc>
class MagnitudeOp {
 public:
  // Whether 16-bit lanes hold both sums, with their signs.
  static bool can(const RowContext<T> &context) {
    if (sizeof(Acc) != 2) return true;
    return std::all_of(context.pass().mask, context.pass().mask + 2, [&](const IntegerMask &mask) {
      const SumRange range = range_of(mask.value, context.largest_sample());
      return range.low >= INT16_MIN && range.high <= INT16_MAX;
    });
  }

  explicit MagnitudeOp(const RowContext<T> &context)
      : context_(context),
        x_(context, context.pass().mask[0], 0),
        y_(context, context.pass().mask[1], 0),
        gx_(context.scratch.template take<Acc>(context.blocks())),
        gy_(context.scratch.template take<Acc>(context.blocks())),
        magnitude_(context.scratch.template take<int32_t>(context.blocks())) {}
  void enter(int y) {
    x_.enter(y);
    y_.enter(y);
  }
  void filter(int y, T *out) {
    x_.filter(y, gx_);
    y_.filter(y, gy_);
    context_.loops().magnitudes(context_.pass().norm, gx_, gy_, magnitude_, context_.padded());
    round_row(context_, y, magnitude_, out);
  }

 private:
  const RowContext<T> &context_;
  MaskSum<T, Lanes<Acc, Acc>> x_, y_;
  Acc *gx_, *gy_;
  int32_t *magnitude_;
};

template <typename T>
class CompassOp {
 public:
  explicit CompassOp(const RowContext<T> &context) : context_(context) {
    // No response is below 0, since the largest of the eight sums of three is no less than their mean.
    const SumRange range = {0, int64_t{15} * context.pass().mask[0].value[0] / 8 * context.largest_sample()};
    if (sizeof(T) == 1 && !context.pass().has_gain() && make_rounding16(*context.rounding(), range, &rounding_))
      narrow_ = context.scratch.template take<uint16_t>(context.blocks());
    else
      response_ = context.scratch.template take<int32_t>(context.blocks());
  }
  void enter(int) {}
  void filter(int y, T *out) {
    const T *const rows[3] = {context_.at(y, -1, -1), context_.at(y, -1, 0), context_.at(y, -1, 1)};
    const VectorLoops &loops = context_.loops();
    const int channels = context_.channels, n = context_.padded();
    const int32_t three = context_.pass().mask[0].value[0], all = context_.pass().mask[0].value[1];
    if constexpr (sizeof(T) == 1) {
      if (narrow_) {
        loops.compass(rows, channels, three, all, rounding_.start, narrow_, n);
        loops.round(narrow_, rounding_, out, n);
        return;
      }
    }
    loops.compass(rows, channels, three, all, 0, response_, n);
    round_row(context_, y, response_, out);
  }

 private:
  const RowContext<T> &context_;
  Rounding16 rounding_;
  uint16_t *narrow_ = nullptr;
  int32_t *response_ = nullptr;
};

// Extrema of runs of pixels along a row, of lengths that double, in rows as long as the window's.
template <typename T>
class Runs {
 public:
  Runs(const RowContext<T> &context, bool largest) : context_(context), largest_(largest) {}

  // out[s] = the extremum of `count` samples of in[s], in[s + step], ...; n of them.
  void pick(const T *in, int step, int count, T *out, int n) const {
    const T *taps[8];
    for (int k = 0; k < count; k++) taps[k] = in + k * step;
    context_.loops().extremum(largest_, taps, count, out, std::max(n, kVectorBlock));
  }

  // out[s] = the extremum of the `width` pixels from sample s, for the tile's samples. Each of the scratch rows is as
  // long as the window's.
  void pick_wide(const T *in, int width, T *scratch[2], T *out) const {
    const int c = context_.channels;
    if (width <= 8) return pick(in, c, width, out, context_.samples);
    int length = 8, valid = context_.window.length() - 7 * c;
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

// Over a rectangle: along rows, then down columns. Tall ones by van Herk and by Gil and Werman: the rows are taken in
// groups as tall as the window, which then is the end of one group and the start of the next. Extrema from each row of
// a group to its end are found when the group is complete, those from its start as rows enter.
template <typename T>
class RectangleOp {
 public:
  RectangleOp(const RowContext<T> &context, bool largest)
      : context_(context),
        largest_(largest),
        runs_(context, largest),
        height_(context.pass().height()),
        rows_(context.scratch, context.samples, height_) {
    for (T *&row : scratch_) row = context.scratch.template take<T>(context.window.length());
    if (height_ >= kLargeSide) start_ = context.scratch.template take<T>(context.samples);
    taps_.resize(height_);
  }

  void enter(int y) {
    T *row = rows_[y];
    runs_.pick_wide(context_.window[y], context_.pass().width(), scratch_, row);
    if (!start_) return;
    const int place = place_of(y);
    extremum(place ? start_ : row, row, start_);
    if (place == height_ - 1)
      for (int k = 1; k < height_; k++) extremum(rows_[y - k], rows_[y - k + 1], rows_[y - k]);
  }

  void filter(int y, T *out) {
    const int top = y - context_.pass().radius_y;
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
  // Of a row in its group.
  int place_of(int y) const { return (y - context_.first_y + context_.pass().radius_y) % height_; }

  void extremum(const T *a, const T *b, T *out) const {
    const T *const taps[] = {a, b};
    context_.loops().extremum(largest_, taps, 2, out, context_.padded());
  }

  const RowContext<T> &context_;
  const bool largest_;
  const Runs<T> runs_;
  const int height_;
  Ring<T> rows_;        // extrema along rows; of a complete group, of these to the end of the group
  T *start_ = nullptr;  // from the start of the group that rows are entering
  T *scratch_[2];
  std::vector<const T *> taps_;
};

// Over any members of the window: each of its rows is a few runs, and a run is covered by two whose length is a power
// of two.
template <typename T>
class ElementOp {
 public:
  ElementOp(const RowContext<T> &context, bool largest)
      : context_(context), largest_(largest), runs_(context, largest) {
    const Pass &pass = context.pass();
    int levels = 0;
    const auto add_run = [&](int y, int begin, int end) {
      int level = 0;
      while (2 << level <= end - begin) level++;
      members_.push_back({y, level, begin});
      if (1 << level < end - begin) members_.push_back({y, level, end - (1 << level)});
      levels = std::max(levels, level);
    };
    for (int j = 0; j < pass.height(); j++) {
      const uint8_t *row = &pass.element[j * pass.width()];
      for (int i = 0; i < pass.width();) {
        const int begin = i;
        while (i < pass.width() && row[i]) i++;
        if (i > begin) add_run(j, begin, i);
        if (i < pass.width()) i++;
      }
    }
    for (int k = 0; k < levels; k++) levels_.emplace_back(context.scratch, context.window.length(), pass.height());
    taps_.resize(members_.size());
  }

  void enter(int y) {
    const T *runs = context_.window[y];
    int length = 1, valid = context_.window.length();
    for (const Ring<T> &level : levels_) {
      valid -= length * context_.channels;
      runs_.pick(runs, length * context_.channels, 2, level[y], valid);
      runs = level[y];
      length *= 2;
    }
  }

  void filter(int y, T *out) {
    for (size_t m = 0; m < members_.size(); m++) {
      const int row = y + members_[m].y - context_.pass().radius_y, level = members_[m].level;
      taps_[m] = (level ? levels_[level - 1][row] : context_.window[row]) + members_[m].x * context_.channels;
    }
    context_.loops().extremum(largest_, taps_.data(), static_cast<int>(taps_.size()), out, context_.padded());
  }

 private:
  struct Member {
    int y, level, x;  // in the window, from its upper left; 2^level pixels
  };
  const RowContext<T> &context_;
  const bool largest_;
  const Runs<T> runs_;
  std::vector<Member> members_;
  std::vector<Ring<T>> levels_;  // extrema of runs of 2, 4, ... pixels
  std::vector<const T *> taps_;
};

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

template <typename T>
class DifferenceOp {
 public:
  DifferenceOp(const RowContext<T> &context, const Tile &tile)
      : context_(context), tile_(tile), subtrahend_(context.scratch.template take<T>(context.samples)) {}
  void enter(int) {}
  void filter(int y, T *out) {
    const Job &job = context_.job;
    unpack_pixels(*job.loops, *job.layout, job.subtrahend.data + y * job.subtrahend.pitch, tile_.x0, tile_.width(),
                  subtrahend_);
    context_.loops().subtract(context_.window[y], subtrahend_, out, context_.padded());
  }

 private:
  const RowContext<T> &context_;
  const Tile tile_;
  T *subtrahend_;
};

}  // namespace cudaconv
