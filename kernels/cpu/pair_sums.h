// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sums of pairs of samples, with the instruction that multiplies two pairs of 16-bit numbers and adds both products.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "cpu/row_context.h"

namespace cudaconv {

inline SumRange range_of(const std::vector<int32_t> &coefficients, int64_t largest_sample) {
  SumRange range;
  for (int32_t c : coefficients) range.add(c, largest_sample);
  return range;
}

// A weighted sum of pairs from several rows.
class PairTerms {
 public:
  // Adds both halves of the pairs from index x of a row on, each half with a coefficient.
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
  // The part of a coefficient above its low 16 bits, which are taken as a signed number.
  static int32_t upper(int32_t c) { return (c - static_cast<int16_t>(c)) >> 16; }

  struct Term {
    int row, x;
    int32_t coefficients;
  };
  std::vector<Term> list_;
  int high_ = 0;  // how many terms at the front count 2^16-fold
  std::vector<Tap<int32_t>> taps_;
};

// The sums of a mask in pairs: pairs of neighbours in a row or, if the mask separates, of row sums one below the other,
// those of rows y and y + 1 with y even.
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
      // The row sums fit 16 bits in the end, so they can be added modulo 2^16.
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
  void add_row(PairTerms &terms, int row, const int32_t *coefficient) {
    for (int i = 0; i < width_; i += 2)
      terms.add(row, i * context_.channels, coefficient[i], i + 1 < width_ ? coefficient[i + 1] : 0);
  }

  static int32_t half_of(const IntegerMask &mask) { return mask.row_shift ? 1 << (mask.row_shift - 1) : 0; }

  // factor times the sum of the coefficients, modulo 2^32.
  static uint32_t times(int32_t factor, const std::vector<int32_t> &coefficients) {
    uint32_t sum = 0;
    for (int32_t c : coefficients) sum += static_cast<uint32_t>(factor) * static_cast<uint32_t>(c);
    return sum;
  }

  // The range of row sums; zero_of() is subtracted from them so that they fit 16 bits.
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
  int32_t *pairs_ = nullptr;            // pairs of a row's samples
  uint16_t *sums_ = nullptr;            // sums of a row
  PairTerms window_, row_, column_[2];  // column_[1]: for windows that begin at an odd row
  std::vector<Tap<T>> taps_;
};

// The sums of a mask that does not separate and whose sums need more than 32 bits. Coefficients are split into digits
// of base 2048, from -1024 to 1023, so that sums of many taps fit 32 bits; those sums are added in 64 bits.
template <typename T>
class WidePairSum {
 public:
  using Total = int64_t;

  WidePairSum(const RowContext<T> &context, const IntegerMask &mask, int64_t start)
      : context_(context), width_(context.pass().width()), start_(start) {
    const int height = context.pass().height();
    rows_ = Ring<int32_t>(context.scratch, context.window.length(), height);
    sums_ = context.scratch.template take<int32_t>(context.blocks());
    for (int32_t c : mask.value) start_ += int64_t{pair_zero(T{})} * c;
    std::vector<int32_t> rest = mask.value, digits(rest.size());
    for (int shift = 0; std::any_of(rest.begin(), rest.end(), [](int32_t c) { return c != 0; }); shift += kDigitBits) {
      for (size_t i = 0; i < rest.size(); i++) {
        digits[i] = (rest[i] & kDigitMask) - ((rest[i] & kDigitHalf) << 1);
        rest[i] = static_cast<int32_t>((int64_t{rest[i]} - digits[i]) >> kDigitBits);
      }
      add_chunks(digits, height, shift);
    }
  }

  void enter(int y) {
    const int length = context_.blocks() + (width_ - 1) * context_.channels;
    context_.loops().pair(context_.window[y], context_.channels, rows_[y], length);
  }

  void filter(int y, int64_t *out) {
    const int top = y - context_.pass().radius_y, n = context_.blocks();
    const VectorLoops &loops = context_.loops();
    std::fill_n(out, n, start_);
    for (Chunk &chunk : chunks_)
      chunk.terms.sum([&](int j) { return rows_[top + j]; },
                      [&](const Tap<int32_t> *taps, int high, int count) {
                        loops.sum_pairs(taps, high, count, 0, sums_, n);
                        loops.add_shifted(sums_, chunk.shift, out, n);
                      });
  }

 private:
  static constexpr int kDigitBits = 11, kDigitMask = (1 << kDigitBits) - 1, kDigitHalf = 1 << (kDigitBits - 1);
  // Bound of the sum of absolute digits of a chunk: halves of pairs are at least -2^15, so its sums fit 32 bits.
  static constexpr int kMostOfChunk = INT32_MAX >> 15;

  // Pairs whose sum fits 32 bits and counts 2^shift-fold.
  struct Chunk {
    int shift;
    PairTerms terms;
  };

  void add_chunks(const std::vector<int32_t> &digits, int height, int shift) {
    int size = kMostOfChunk + 1;
    for (int j = 0; j < height; j++)
      for (int i = 0; i < width_; i += 2) {
        const int32_t *const digit = &digits[j * width_ + i];
        const int32_t second = i + 1 < width_ ? digit[1] : 0, more = std::abs(digit[0]) + std::abs(second);
        if (more == 0) continue;
        size += more;
        if (size > kMostOfChunk) {
          chunks_.push_back({shift, {}});
          size = more;
        }
        chunks_.back().terms.add(j, i * context_.channels, digit[0], second);
      }
  }

  const RowContext<T> &context_;
  const int width_;
  int64_t start_;
  Ring<int32_t> rows_;
  int32_t *sums_ = nullptr;
  std::vector<Chunk> chunks_;
};

}  // namespace cudaconv
