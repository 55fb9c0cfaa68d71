// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the CPU backend does to a window of rows. Each operation turns the rows around y into a row of samples: enter(y)
// as rows come in, in rising order, then filter(y, out) once the window's last row, y + radius_y, has entered.
//
// Sums are kept in the narrowest lanes that provably hold them. A type Lanes names those of the rows' sums and of the
// totals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/cpu_rows.h"

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
    if (mask.separable()) rows_ = Ring<Row>(context.scratch, context.samples, height_);
  }

  void enter(int y) {
    if (!mask_.separable()) return;
    std::vector<Tap<T>> &taps = taps_of(T{});
    const T *row = context_.window[y];
    for (int i = 0; i < width_; i++) add(taps, row + i * context_.channels, mask_.row[i]);
    const Row half = static_cast<Row>(Row{1} << mask_.row_shift >> 1);
    context_.loops().sum(taps.data(), static_cast<int>(taps.size()), half, rows_[y], context_.blocks());
    // Only wider lanes hold what is rounded.
    if constexpr (sizeof(Row) > 2)
      if (mask_.row_shift) context_.loops().shift(rows_[y], mask_.row_shift, rows_[y], context_.blocks());
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
    return mask.uniform() && !pass.wide && (pass.width() >= kLargeSide || pass.height() >= kLargeSide);
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

// The sums of a mask in pairs: of samples side by side and, where the mask separates, of the rows' sums one above the
// other, y and y + 1 where y is even.
template <typename T>
class PairSum {
 public:
  using Total = int32_t;

  static bool can(const RowContext<T> &context, const IntegerMask &mask) {
    if (context.pass().wide) return false;
    if (!mask.separable()) return true;
    const SumRange range = range_of_rows(context, mask);
    return range.high - zero_of(range) <= INT16_MAX && range.low - zero_of(range) >= INT16_MIN;
  }

  PairSum(const RowContext<T> &context, const IntegerMask &mask, int32_t start)
      : context_(context), mask_(mask), start_(static_cast<uint32_t>(start)), width_(context.pass().width()) {
    const int length = context.window.length(), height = context.pass().height();
    if (!mask.separable()) {
      rows_ = Ring<int32_t>(context.scratch, length, height);
      for (int j = 0; j < height; j++) add_row(window_, j, &mask.value[j * width_]);
      start_ += times(pair_zero(T{}), mask.value);
      return;
    }
    rows_ = Ring<int32_t>(context.scratch, context.samples, (height + 1) / 2);
    const auto factor = [&](int j) { return j >= 0 && j < height ? mask.column[j] : 0; };
    for (int odd : {0, 1})
      for (int j = -odd; j < height; j += 2) column_[odd].add((j + odd) / 2, 0, factor(j), factor(j + 1));
    const int32_t zero = zero_of(range_of_rows(context, mask));
    start_ += times(zero, mask.column);
    row_start_ = static_cast<uint32_t>(half_of(mask) - zero * (1 << mask.row_shift));
    if (mask.row_shift) {
      pairs_ = context.scratch.template take<int32_t>(whole_blocks(length) + kVectorBlock);
      add_row(row_, 0, mask.row.data());
      row_start_ += times(pair_zero(T{}), mask.row);
    } else {
      sums_ = context.scratch.template take<uint16_t>(context.blocks());
    }
  }

  void enter(int y) {
    const T *row = context_.window[y];
    const VectorLoops &loops = context_.loops();
    const int channels = context_.channels, length = context_.blocks() + (width_ - 1) * channels;
    const bool second = y & 1;
    if (!mask_.separable()) {
      loops.pair(row, channels, rows_[y], length);
    } else if (mask_.row_shift) {
      loops.pair(row, channels, pairs_, length);
      row_.sum([&](int) { return pairs_; },
               [&](const Tap<int32_t> *taps, int high, int count) {
                 loops.sum_pairs(taps, high, count, row_start_, mask_.row_shift, second, rows_[y >> 1],
                                 context_.blocks());
               });
    } else {
      // Rows' sums fit 16 bits in the end, so they are summed modulo 2^16.
      taps_.clear();
      for (int i = 0; i < width_; i++)
        if (mask_.row[i]) taps_.push_back({row + i * channels, mask_.row[i]});
      loops.sum(taps_.data(), static_cast<int>(taps_.size()), static_cast<uint16_t>(row_start_), sums_,
                context_.blocks());
      loops.put_half(sums_, second, rows_[y >> 1], context_.blocks());
    }
  }

  void filter(int y, int32_t *out) {
    const int top = y - context_.pass().radius_y;
    const auto sum = [&](const Tap<int32_t> *taps, int high, int count) {
      context_.loops().sum_pairs(taps, high, count, start_, out, context_.blocks());
    };
    if (mask_.separable())
      column_[top & 1].sum([&](int j) { return rows_[(top >> 1) + j]; }, sum);
    else
      window_.sum([&](int j) { return rows_[top + j]; }, sum);
  }

 private:
  // A sum over pairs in several rows.
  class Terms {
   public:
    // The halves of the pairs from the x-th in a row, each with a coefficient.
    void add(int row, int x, int32_t first, int32_t second) {
      const int32_t low = pair_of(first, second), high = pair_of(upper(first), upper(second));
      if (high) list_.insert(list_.begin() + high_++, {row, x, high});
      if (low) list_.push_back({row, x, low});
    }

    template <typename Row, typename Sum>
    void sum(Row row, Sum f) {
      taps_.clear();
      for (const Term &t : list_) taps_.push_back({row(t.row) + t.x, t.coefficients});
      f(taps_.data(), high_, static_cast<int>(taps_.size()));
    }

   private:
    // The rest of a coefficient above its lower 16 bits, taken as a signed number.
    static int32_t upper(int32_t c) { return (c - static_cast<int16_t>(c)) >> 16; }

    struct Term {
      int row, x;
      int32_t coefficients;
    };
    std::vector<Term> list_;
    int high_ = 0;  // of the list, counted 2^16-fold
    std::vector<Tap<int32_t>> taps_;
  };

  void add_row(Terms &terms, int row, const int32_t *coefficient) {
    for (int i = 0; i < width_; i += 2)
      terms.add(row, i * context_.channels, coefficient[i], i + 1 < width_ ? coefficient[i + 1] : 0);
  }

  static int32_t half_of(const IntegerMask &mask) { return mask.row_shift ? 1 << (mask.row_shift - 1) : 0; }

  // Modulo 2^32.
  static uint32_t times(int32_t factor, const std::vector<int32_t> &coefficients) {
    uint32_t sum = 0;
    for (int32_t c : coefficients) sum += static_cast<uint32_t>(factor) * static_cast<uint32_t>(c);
    return sum;
  }

  // The range of rows' sums; zero_of() is subtracted from them so that they fit.
  static SumRange range_of_rows(const RowContext<T> &context, const IntegerMask &mask) {
    const SumRange range = range_of(mask.row, context.largest_sample());
    const int64_t half = half_of(mask);
    return {(range.low + half) >> mask.row_shift, (range.high + half) >> mask.row_shift};
  }
  static int32_t zero_of(SumRange range) { return range.low < 0 ? 0 : 1 << 15; }

  const RowContext<T> &context_;
  const IntegerMask &mask_;
  uint32_t start_, row_start_ = 0;
  const int width_;
  Ring<int32_t> rows_;
  int32_t *pairs_ = nullptr;        // of a row's samples
  uint16_t *sums_ = nullptr;        // of a row
  Terms window_, row_, column_[2];  // column_[1]: of windows from an odd row
  std::vector<Tap<T>> taps_;
};

// Divides gains and rounding by the power of two that they share, if 32 bits then hold all that comes of 32-bit sums.
inline bool make_narrow(Gain *gain, Rounding *rounding, int largest_sample) {
  const int64_t half = rounding->half;
  if (half & (half - 1)) return false;
  const int shared = __builtin_ctzll(static_cast<uint64_t>(gain->sum | gain->centre | rounding->offset | half));
  const Gain g = {gain->sum >> shared, gain->centre >> shared, gain->shift, true};
  Rounding r = *rounding;
  r.offset >>= shared;
  r.half >>= shared;
  r.limit = (int64_t{r.max} + 1) * 2 * r.half - 1;
  const double reach = std::fabs(static_cast<double>(g.sum)) * ((INT32_MAX >> g.shift) + 1.0) +
                       std::fabs(static_cast<double>(g.centre)) * largest_sample +
                       std::fabs(static_cast<double>(r.offset)) + static_cast<double>(r.half);
  if (reach > INT32_MAX || r.limit > INT32_MAX) return false;
  *gain = g;
  *rounding = r;
  return true;
}

// From sums in 32 or 64 bits to samples. All channels of a plane are rounded alike but where their depths differ.
template <typename T, typename Acc>
void round_row(const RowContext<T> &context, int y, const Acc *sum, T *out) {
  const Pass &pass = context.pass();
  const Rounding *rounding = context.rounding();
  const ChannelLayout *channel = context.job.layout->channel;
  const bool uniform = std::all_of(channel, channel + context.channels,
                                   [&](const ChannelLayout &c) { return c.depth == channel->depth; });
  const T *centre = context.at(y, 0, 0);
  Gain gain = {pass.sum_gain, pass.center_gain, pass.sum_shift, false};
  if (!uniform) {
    for (int s = 0; s < context.samples; s++) {
      const Rounding &r = rounding[s % context.channels];
      out[s] = static_cast<T>(pass.has_gain()
                                  ? round_to_sample(apply_gain(sum[s], gain.shift, gain.sum, gain.centre, centre[s]), r)
                                  : round_to_sample(sum[s], r));
    }
  } else if (pass.has_gain()) {
    Rounding reduced = *rounding;
    if (sizeof(Acc) == 4) make_narrow(&gain, &reduced, context.largest_sample());
    context.loops().round(sum, gain, centre, reduced, out, context.padded());
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
  // The place of a row in its group.
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
    // Where they are few, the members themselves are less work than runs, each level of which is read and written.
    const int members =
        static_cast<int>(std::count_if(pass.element.begin(), pass.element.end(), [](uint8_t m) { return m != 0; }));
    int levels = list_members(true);
    if (members <= static_cast<int>(members_.size()) + 3 * levels) levels = list_members(false);
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

  // As runs or one by one. Returns the highest level.
  int list_members(bool as_runs) {
    const Pass &pass = context_.pass();
    members_.clear();
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
      for (int i = 0; i < pass.width(); i++) {
        if (!row[i]) continue;
        const int begin = i;
        while (as_runs && i + 1 < pass.width() && row[i + 1]) i++;
        add_run(j, begin, i + 1);
      }
    }
    return levels;
  }

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

}  // namespace cudaconv
