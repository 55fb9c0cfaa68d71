// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The operations of the CPU backend. An operation turns the window of rows around y into a row of samples. enter(y) is
// called for each row, in rising order. filter(y, out) is called when row y + radius_y, the window's last, has entered.
// An operation may compute kRowsTogetherOf rows of results at a time. All rows of their windows then enter before the
// first filter().
//
// Sums use the narrowest integers that provably hold them. Lanes names the types of row sums and of totals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "cpu/pair_sums.h"
#include "cpu/round_samples.h"
#include "cpu/row_context.h"

namespace cudaconv {

template <typename RowSum, typename TotalSum>
struct Lanes {
  using Row = RowSum;
  using Total = TotalSum;
};

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
        height_(context.pass().height()),
        repeated_(height_) {
    if (mask.separable()) rows_ = Ring<Row>(context.scratch, context.samples, height_);
  }

  void enter(int y) {
    if (!mask_.separable()) return;
    const int same = repeated_.put(context_.job, y);
    if (same >= 0) {
      std::copy_n(rows_[same], context_.blocks(), rows_[y]);
      return;
    }
    std::vector<Tap<T>> &taps = taps_of(T{});
    const T *row = context_.window[y];
    for (int i = 0; i < width_; i++) add(taps, row + i * context_.channels, mask_.row[i]);
    const Row half = static_cast<Row>(Row{1} << mask_.row_shift >> 1);
    context_.loops().sum(taps.data(), static_cast<int>(taps.size()), half, rows_[y], context_.blocks());
    // Row sums are only rounded in types wider than 16 bits.
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
  RepeatedRows repeated_;
  Ring<Row> rows_;
  std::vector<Tap<T>> sample_taps_;
  std::vector<Tap<Row>> row_taps_;
};

// The sums of a separable mask in doubles, which are exact up to kExactInDouble. Vector units multiply and add doubles
// about twice as fast as integers of 64 bits.
template <typename T>
class DoubleSum {
 public:
  using Total = int64_t;

  static bool can(const RowContext<T> &context, const IntegerMask &mask) {
    if (!mask.separable()) return false;
    const auto magnitude = [](const std::vector<int32_t> &factors) {
      double sum = 0;
      for (int32_t f : factors) sum += std::fabs(static_cast<double>(f));
      return sum;
    };
    const double row = magnitude(mask.row) * context.largest_sample();
    // Rounding a row sum adds less than 1.
    const double total = magnitude(mask.column) * (std::ldexp(row, -mask.row_shift) + 1);
    return std::max(row, total) <= kExactInDouble;
  }

  DoubleSum(const RowContext<T> &context, const IntegerMask &mask, int64_t start)
      : context_(context),
        mask_(mask),
        start_(static_cast<double>(start)),
        length_(context.blocks() + (context.pass().width() - 1) * context.channels),
        repeated_(context.pass().height()),
        rows_(context.scratch, context.samples, context.pass().height()),
        samples_(context.scratch.template take<double>(whole_blocks(length_))),
        total_(context.scratch.template take<double>(context.blocks())) {}

  void enter(int y) {
    const VectorLoops &loops = context_.loops();
    const int same = repeated_.put(context_.job, y);
    if (same >= 0) {
      std::copy_n(rows_[same], context_.blocks(), rows_[y]);
      return;
    }
    loops.convert(context_.window[y], samples_, length_);
    taps_.clear();
    for (int i = 0; i < context_.pass().width(); i++)
      if (mask_.row[i]) taps_.push_back({samples_ + i * context_.channels, mask_.row[i]});
    loops.sum(taps_.data(), static_cast<int>(taps_.size()), 0, rows_[y], context_.blocks());
    if (mask_.row_shift) loops.shift_rounded(rows_[y], mask_.row_shift, rows_[y], context_.blocks());
  }

  void filter(int y, int64_t *out) {
    const VectorLoops &loops = context_.loops();
    taps_.clear();
    for (int j = 0; j < context_.pass().height(); j++)
      if (mask_.column[j]) taps_.push_back({rows_[y + j - context_.pass().radius_y], mask_.column[j]});
    loops.sum(taps_.data(), static_cast<int>(taps_.size()), start_, total_, context_.blocks());
    loops.convert(total_, out, context_.blocks());
  }

 private:
  const RowContext<T> &context_;
  const IntegerMask &mask_;
  const double start_;
  const int length_;
  RepeatedRows repeated_;
  Ring<double> rows_;
  double *samples_, *total_;
  std::vector<Tap<double>> taps_;
};

// The sums of a mask with equal coefficients. Column sums slide from row to row. Sums along a row are differences of
// prefix sums. All arithmetic is modulo 2^16, 2^32 or 2^64.
template <typename T, typename LanesType>
class BoxSum {
 public:
  using Column = typename LanesType::Row;
  using Total = typename LanesType::Total;

  static bool can(const Pass &pass, const IntegerMask &mask) {
    return mask.uniform() && (pass.width() >= kLargeSide || pass.height() >= kLargeSide);
  }

  BoxSum(const RowContext<T> &context, const IntegerMask &mask, Total start)
      : context_(context),
        coefficient_(mask.row[0] * mask.column[0]),
        start_(start),
        length_(context.window.length()),
        columns_(context.scratch.template take<Column>(whole_blocks(length_))),
        scan_(context.scratch.template take<Total>(whole_blocks(context.samples) + length_)),
        zeros_(context.scratch.template take<T>(whole_blocks(length_))) {
    std::fill_n(columns_, whole_blocks(length_), Column{0});
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
  Column *columns_;
  Total *scan_;
  T *zeros_;
};

template <typename T, typename Acc>
void round_row(const RowContext<T> &context, int y, const Acc *sum, T *out) {
  round_samples(context.job, context.samples, sum, context.at(y, 0, 0), out);
}

// Sums in 16-bit lanes, for 8-bit samples only.
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

// The number of rows of results that an operation computes at a time.
template <typename Op, typename = void>
constexpr int kRowsTogetherOf = 1;
template <typename Op>
constexpr int kRowsTogetherOf<Op, std::void_t<decltype(Op::kRowsTogether)>> = Op::kRowsTogether;

template <typename T, typename SumType>
class LinearOp {
 public:
  static constexpr int kRowsTogether = kRowsTogetherOf<SumType>;

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
  // Whether 16-bit lanes hold both sums as signed numbers.
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
    // Responses are never below 0: the largest of the eight sums of three is at least their mean.
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

}  // namespace cudaconv
