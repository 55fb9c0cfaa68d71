// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Operations on sums: masks, magnitudes and compass responses. Sums use the narrowest integers that provably hold them.
// Lanes names the types of row sums and of totals.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "cpu/operation.h"
#include "cpu/pair_sums.h"
#include "cpu/round_samples.h"

namespace cudaconv {

template <typename RowSum, typename TotalSum>
struct Lanes {
  using Row = RowSum;
  using Total = TotalSum;
};

// Whether doubles hold all sums of a separable mask, see kExactInDouble. Vector units multiply and add doubles about
// twice as fast as integers of 64 bits.
template <typename T>
bool fits_doubles(const RowContext<T> &context, const IntegerMask &mask) {
  const double row = range_of(mask.row, context.largest_sample()).magnitude();
  // Rounding a row sum adds less than 1.
  const double total = range_of(mask.column, 1).magnitude() * (std::ldexp(row, -mask.row_shift) + 1);
  return mask.separable() && std::max(row, total) <= kExactInDouble;
}

// The sums of an integer mask. With row sums in doubles, samples are converted first, and totals last; the mask is then
// separable.
template <typename T, typename LanesType>
class MaskSum {
 public:
  using Row = typename LanesType::Row;
  using Total = typename LanesType::Total;
  static constexpr int kRowsTogether = 1;

  MaskSum(const RowContext<T> &context, const IntegerMask &mask, Total start)
      : context_(context), mask_(mask), start_(static_cast<Row>(start)) {
    if (mask.separable()) rows_ = Ring<Row>(context.scratch, context.samples, height_);
    if (!kDoubles) return;
    converted_ = context.scratch.template take<In>(row_length());
    sums_ = context.scratch.template take<Row>(context.blocks());
  }

  void enter(int y) {
    if (!mask_.separable()) return;
    const int same = repeated_.put(context_.job, y);
    if (same >= 0) {
      std::copy_n(rows_[same], context_.blocks(), rows_[y]);
      return;
    }
    const In *row = samples(y);
    sample_taps_.clear();
    for (int i = 0; i < width_; i++) add(sample_taps_, row + i * context_.channels, mask_.row[i]);
    sum(sample_taps_, 0, rows_[y]);
    // Row sums are only rounded in types wider than 16 bits.
    if constexpr (sizeof(Row) > 2)
      if (mask_.row_shift) context_.loops().shift_rounded(rows_[y], mask_.row_shift, rows_[y], context_.blocks());
  }

  void filter(int y, Total *out) {
    add_taps(y);
    if (!mask_.separable()) {
      if constexpr (!kDoubles) sum(sample_taps_, start_, out);
    } else if constexpr (kDoubles) {
      sum(row_taps_, start_, sums_);
      context_.loops().convert(sums_, out, context_.blocks());
    } else {
      sum(row_taps_, start_, out);
    }
  }

  // Makes samples at once. Returns false if filter() has to make sums first.
  bool filter(int y, const Rounding16 &rounding, T *out) {
    if constexpr (sizeof(T) == 1 && sizeof(Row) == 2) {
      add_taps(y);
      const int count = static_cast<int>(mask_.separable() ? row_taps_.size() : sample_taps_.size());
      if (rounding.shift || !count || count > kMostRounded) return false;
      const VectorLoops &loops = context_.loops();
      mask_.separable() ? loops.sum_rounded(row_taps_.data(), count, rounding, out, context_.padded())
                        : loops.sum_rounded(sample_taps_.data(), count, rounding, out, context_.padded());
      return true;
    }
    return false;
  }

 private:
  static constexpr bool kDoubles = std::is_same_v<Row, double>;
  using In = std::conditional_t<kDoubles, double, T>;

  int row_length() const { return context_.blocks() + (width_ - 1) * context_.channels; }

  const In *samples(int y) {
    if constexpr (kDoubles) {
      context_.loops().convert(context_.window[y], converted_, row_length());
      return converted_;
    } else {
      return context_.window[y];
    }
  }

  // Lists the taps of row y: of row sums, or of samples.
  void add_taps(int y) {
    const int top = y - context_.pass().radius_y;
    if (mask_.separable()) {
      row_taps_.clear();
      for (int j = 0; j < height_; j++) add(row_taps_, rows_[top + j], mask_.column[j]);
    } else if constexpr (!kDoubles) {
      sample_taps_.clear();
      for (int j = 0; j < height_; j++)
        for (int i = 0; i < width_; i++)
          add(sample_taps_, context_.window[top + j] + i * context_.channels, mask_.value[j * width_ + i]);
    }
  }

  template <typename Sample>
  static void add(std::vector<Tap<Sample>> &taps, const Sample *in, int32_t coefficient) {
    if (coefficient) taps.push_back({in, coefficient});
  }

  template <typename Sample>
  void sum(const std::vector<Tap<Sample>> &taps, Row start, Row *out) {
    context_.loops().sum(taps.data(), static_cast<int>(taps.size()), start, out, context_.blocks());
  }

  const RowContext<T> &context_;
  const IntegerMask &mask_;
  const Row start_;
  const int width_ = context_.pass().width(), height_ = context_.pass().height();
  RepeatedRows repeated_ = RepeatedRows(height_);
  Ring<Row> rows_;
  In *converted_ = nullptr;  // samples of a row as doubles
  Row *sums_ = nullptr;      // totals as doubles
  std::vector<Tap<In>> sample_taps_;
  std::vector<Tap<Row>> row_taps_;
};

// Whether BoxSum suits a pass.
inline bool is_large_box(const Pass &pass) {
  return pass.mask[0].uniform() && (pass.width() >= kLargeSide || pass.height() >= kLargeSide);
}

// The sums of a mask with equal coefficients. Column sums slide from row to row. Sums along a row are differences of
// prefix sums. All arithmetic is modulo 2^32 or 2^64.
template <typename T, typename TotalSum>
class BoxSum {
 public:
  using Total = TotalSum;
  static constexpr int kRowsTogether = 1;

  BoxSum(const RowContext<T> &context, const IntegerMask &mask, Total start)
      : context_(context), coefficient_(mask.row[0] * mask.column[0]), start_(start) {
    std::fill_n(columns_, whole_blocks(length_), 0);
    std::fill_n(zeros_, whole_blocks(length_), T{0});
  }

  void enter(int y) {
    context_.loops().slide(context_.window[y], context_.leaving(y, zeros_), columns_, whole_blocks(length_));
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
  const int length_ = context_.window.length();
  int32_t *columns_ = context_.scratch.template take<int32_t>(whole_blocks(length_));
  Total *scan_ = context_.scratch.template take<Total>(whole_blocks(context_.samples) + length_);
  T *zeros_ = context_.scratch.template take<T>(whole_blocks(length_));
};

// The same for small windows of bytes: column sums have 16 bits. Along a row, sums of 2, 4, 8, ... columns are each
// made of two sums of half as many, and a window is made of these:
//
//   columns                  c0 c1 c2 c3 c4 c5 c6 ...
//   sums of 2                c0+c1  c1+c2  c2+c3 ...
//   sums of 4                (c0+c1)+(c2+c3) ...
//   a window of 7            4 from c0, 2 from c4, 1 from c6
template <typename TotalSum>
class SmallBoxSum {
 public:
  using Total = TotalSum;
  static constexpr int kRowsTogether = 1;

  static bool can(const RowContext<uint8_t> &context) {
    constexpr int kLongestLine = 128;  // BoxSum sums longer ones as fast
    const Pass &pass = context.pass();
    const bool is_line = std::min(pass.width(), pass.height()) == 1;
    return pass.mask[0].uniform() && (!is_line || (is_large_box(pass) && pass.width() <= kLongestLine)) &&
           pass.height() * UINT8_MAX <= UINT16_MAX && terms(pass.width(), largest(pass)) <= kMostAdded;
  }

  // `halved`: the sums are of the samples alone, see make_halved_rounding16().
  SmallBoxSum(const RowContext<uint8_t> &context, const IntegerMask &mask, Total start, bool halved)
      : context_(context), coefficient_(static_cast<Total>(halved ? 1 : mask.row[0] * mask.column[0])), start_(start) {
    std::fill_n(columns_, length_ + kSlack, uint16_t{0});
    std::fill_n(zeros_, length_, uint8_t{0});
    for (int size = 2; size <= largest_; size *= 2)
      sums_.push_back(context.scratch.take<uint16_t>(kStrip + whole_blocks(width_ * context.channels) + kSlack));
  }

  void enter(int y) { context_.loops().slide(context_.window[y], context_.leaving(y, zeros_), columns_, length_); }

  void filter(int, Total *out) {
    for (int begin = 0; begin < context_.blocks(); begin += kStrip)
      sum_strip(columns_ + begin, out + begin, std::min(kStrip, context_.blocks() - begin));
    std::fill(out + context_.samples, out + context_.padded(), Total{0});
  }

 private:
  static constexpr int kStrip = 8 * kVectorBlock;                 // sums of a strip stay in the first-level cache
  static constexpr int kSlack = 2 * kVectorBlock * kMaxChannels;  // what is read beyond a row's end

  // The most columns, a power of two, whose sums fit 16 bits.
  static int largest(const Pass &pass) {
    int size = 1;
    while (2 * size <= pass.width() && 2 * size * pass.height() * UINT8_MAX <= UINT16_MAX) size *= 2;
    return size;
  }
  // The number of sums that a window is made of.
  static int terms(int width, int largest) { return width / largest + __builtin_popcount(width % largest); }

  void sum_strip(const uint16_t *columns, Total *out, int n) {
    const int channels = context_.channels;
    const VectorLoops &loops = context_.loops();
    const uint16_t *in = columns, *rows[kMostAdded];
    int size = 1;
    for (uint16_t *sums : sums_) {
      const uint16_t *const halves[2] = {in, in + size * channels};
      size *= 2;
      loops.add(halves, 2, uint16_t{0}, uint16_t{1}, sums, whole_blocks(n + (width_ - size) * channels));
      in = sums;
    }
    int count = 0, at = 0;
    for (; at + largest_ <= width_; at += largest_) rows[count++] = in + at * channels;
    const int whole = count;
    for (int k = static_cast<int>(sums_.size()) - 1; k >= 0; k--) {
      size = 1 << k;
      if (!(width_ % largest_ & size)) continue;
      rows[count++] = (k ? sums_[k - 1] : columns) + at * channels;
      at += size;
    }
    if (sizeof(Total) > 2 && count - whole > 1) {
      loops.add(rows + whole, count - whole, uint16_t{0}, uint16_t{1}, rest_, n);
      rows[whole] = rest_;
      count = whole + 1;
    }
    loops.add(rows, count, start_, coefficient_, out, n);
  }

  const RowContext<uint8_t> &context_;
  const Total coefficient_, start_;
  const int width_ = context_.pass().width(), largest_ = largest(context_.pass());
  const int length_ = whole_blocks(context_.window.length());
  uint16_t *columns_ = context_.scratch.take<uint16_t>(length_ + kSlack);
  uint16_t *rest_ = context_.scratch.take<uint16_t>(kStrip);  // sums of the columns left over, fewer than largest_
  uint8_t *zeros_ = context_.scratch.take<uint8_t>(length_);
  std::vector<uint16_t *> sums_;  // of 2, 4, 8, ... columns
};

// Whether 16 bits hold everything from the sums of a pass to samples; if so, fills in *rounding.
inline bool fits_16_bits(const RowContext<uint8_t> &context, Rounding16 *rounding) {
  const Pass &pass = context.pass();
  const IntegerMask &mask = pass.mask[0];
  if (pass.wide || pass.has_gain() || mask.row_shift || mask.value.empty()) return false;
  SumRange range = range_of(mask.value, context.largest_sample());
  // Responses are never below 0: the largest of the eight sums of three is at least their mean.
  if (pass.op == Op::Compass) range = {0, int64_t{15} * mask.value[0] / 8 * context.largest_sample()};
  return make_rounding16(*context.rounding(), range, rounding);
}

// Whether they hold sums of samples, where all coefficients are 2.
inline bool fits_16_bits_halved(const RowContext<uint8_t> &context, Rounding16 *rounding) {
  const Pass &pass = context.pass();
  const IntegerMask &mask = pass.mask[0];
  if (pass.wide || pass.has_gain() || mask.row_shift || mask.row[0] * mask.column[0] != 2) return false;
  const SumRange range = {0, int64_t{pass.width()} * pass.height() * context.largest_sample()};
  return make_halved_rounding16(*context.rounding(), range, rounding);
}

// Rounds a row of sums: sums of 16 bits as `narrow` says, others as the pass says.
template <typename T, typename Acc>
void round_row(const RowContext<T> &context, int y, const Acc *sum, const Rounding16 &narrow, T *out) {
  if constexpr (sizeof(Acc) == 2)
    context.loops().round(sum, narrow, out, context.padded());
  else
    round_samples(context.job, context.samples, sum, context.at(y, 0, 0), out);
}

template <typename T, typename SumType>
class LinearOp : public Operation<T> {
 public:
  // `rounding`: of sums of 16 bits.
  template <typename... More>
  explicit LinearOp(const RowContext<T> &context, const Rounding16 &rounding = {}, More... more)
      : context_(context), rounding_(rounding), sum_(context, context.pass().mask[0], rounding.start, more...) {}
  void enter(int y) override { sum_.enter(y); }
  void filter(int y, T *out) override {
    if constexpr (std::is_same_v<SumType, MaskSum<T, Lanes<uint16_t, uint16_t>>>)
      if (sum_.filter(y, rounding_, out)) return;
    sum_.filter(y, total_);
    round_row(context_, y, total_, rounding_, out);
  }
  int rows_together() const override { return SumType::kRowsTogether; }

 private:
  using Total = typename SumType::Total;
  const RowContext<T> &context_;
  const Rounding16 rounding_;
  SumType sum_;
  Total *total_ = context_.scratch.template take<Total>(context_.blocks());
};

template <typename T, typename Acc>
class MagnitudeOp : public Operation<T> {
 public:
  // Whether 16-bit lanes hold both sums as signed numbers.
  static bool can(const RowContext<T> &context) {
    if (sizeof(Acc) != 2) return true;
    return std::all_of(context.pass().mask, context.pass().mask + 2, [&](const IntegerMask &mask) {
      const SumRange range = range_of(mask.value, context.largest_sample());
      return range.low >= INT16_MIN && range.high <= INT16_MAX;
    });
  }

  explicit MagnitudeOp(const RowContext<T> &context) : context_(context) {}
  void enter(int y) override {
    x_.enter(y);
    y_.enter(y);
  }
  void filter(int y, T *out) override {
    x_.filter(y, gx_);
    y_.filter(y, gy_);
    context_.loops().magnitudes(context_.pass().norm, large_, gx_, gy_, magnitude_, context_.padded());
    round_row(context_, y, magnitude_, {}, out);
  }

 private:
  // If neither sum exceeds this, the sum of their squares is below 2^52.
  static constexpr int64_t kMostExact = 1 << 25;
  int64_t reach(int mask) const {
    const SumRange range = range_of(context_.pass().mask[mask].value, context_.largest_sample());
    return std::max(-range.low, range.high);
  }

  const RowContext<T> &context_;
  MaskSum<T, Lanes<Acc, Acc>> x_{context_, context_.pass().mask[0], 0}, y_{context_, context_.pass().mask[1], 0};
  Acc *gx_ = context_.scratch.template take<Acc>(context_.blocks());
  Acc *gy_ = context_.scratch.template take<Acc>(context_.blocks());
  int32_t *magnitude_ = context_.scratch.template take<int32_t>(context_.blocks());
  const bool large_ = reach(0) > kMostExact || reach(1) > kMostExact;
};

template <typename T, typename Acc>
class CompassOp : public Operation<T> {
 public:
  // `rounding`: of sums of 16 bits.
  explicit CompassOp(const RowContext<T> &context, const Rounding16 &rounding = {})
      : context_(context), rounding_(rounding), response_(context.scratch.template take<Acc>(context.blocks())) {}
  void filter(int y, T *out) override {
    const T *const rows[3] = {context_.at(y, -1, -1), context_.at(y, -1, 0), context_.at(y, -1, 1)};
    const std::vector<int32_t> &mask = context_.pass().mask[0].value;
    context_.loops().compass(rows, context_.channels, mask[0], mask[1], static_cast<Acc>(rounding_.start), response_,
                             context_.padded());
    round_row(context_, y, response_, rounding_, out);
  }

 private:
  const RowContext<T> &context_;
  const Rounding16 rounding_;
  Acc *response_;
};

}  // namespace cudaconv
