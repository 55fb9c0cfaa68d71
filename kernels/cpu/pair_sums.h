// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sums of pairs of samples, with the instruction that multiplies two pairs of 16-bit numbers and adds both products.
//
//   along a row:    pair x is samples x and x + 1 of a channel:   (s0 s1) (s1 s2) (s2 s3) ...
//   down a column:  a pair is rows y and y + 1, y even:           (r0 r1) (r2 r3) (r4 r5) ...
//
// Example, [1 2 1]: along a row (s0 s1) * (1 2) + (s2 s3) * (1 0). Down a column the same from row 0 on; from row 1 on
// (r0 r1) * (0 1) + (r2 r3) * (2 1).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "cpu/operation.h"

namespace cudaconv {

// factor times the sum of the coefficients, modulo 2^32.
inline uint32_t times(int32_t factor, const std::vector<int32_t> &coefficients) {
  uint32_t sum = 0;
  for (int32_t c : coefficients) sum += static_cast<uint32_t>(factor) * static_cast<uint32_t>(c);
  return sum;
}

// Weighted sums of pairs from several rows, for kRows rows of results at a time.
template <int kRows>
class PairTerms {
 public:
  // Adds a term: the pairs of a row from index x on. Each half of a pair has a coefficient for each row of results.
  void add(int row, int x, const int32_t (&first)[kRows], const int32_t (&second)[kRows]) {
    Term low = {row, x, {}}, high = low;
    for (int r = 0; r < kRows; r++) {
      low.coefficients[r] = pair_of(first[r], second[r]);
      high.coefficients[r] = pair_of(upper(first[r]), upper(second[r]));
    }
    if (any(high)) list_.insert(list_.begin() + high_++, high);
    if (any(low)) list_.push_back(low);
  }

  template <typename Row, typename Sum>
  void sum(Row row, Sum f) {
    taps_.clear();
    for (const Term &t : list_) {
      taps_.push_back({row(t.row) + t.x, {}});
      std::copy_n(t.coefficients, kRows, taps_.back().coefficients);
    }
    f(taps_.data(), high_, static_cast<int>(taps_.size()));
  }

 private:
  struct Term {
    int row, x;
    int32_t coefficients[kRows];
  };

  // A coefficient without its low 16 bits, which count as a signed number.
  static int32_t upper(int32_t c) { return (c - static_cast<int16_t>(c)) >> 16; }
  static bool any(const Term &term) {
    return std::any_of(term.coefficients, term.coefficients + kRows, [](int32_t c) { return c != 0; });
  }

  std::vector<Term> list_;
  int high_ = 0;  // number of terms, at the front, that are multiplied by 2^16
  std::vector<PairTap<kRows>> taps_;
};

// The sums of a separable mask, in pairs along rows, then in pairs of row sums.
template <typename T>
class PairSum {
 public:
  using Total = int32_t;
  static constexpr int kRowsTogether = 1;

  static bool can(const RowContext<T> &context, const IntegerMask &mask) {
    if (context.pass().wide || !mask.separable()) return false;
    const SumRange range = range_of_rows(context, mask);
    return range.high - zero_of(range) <= INT16_MAX && range.low - zero_of(range) >= INT16_MIN;
  }

  PairSum(const RowContext<T> &context, const IntegerMask &mask, int32_t start)
      : context_(context), mask_(mask), start_(static_cast<uint32_t>(start)) {
    const int height = context.pass().height();
    const auto factor = [&](int j) { return j >= 0 && j < height ? mask.column[j] : 0; };
    for (int odd : {0, 1})
      for (int j = -odd; j < height; j += 2) column_[odd].add((j + odd) / 2, 0, {factor(j)}, {factor(j + 1)});
    const int32_t zero = zero_of(range_of_rows(context, mask));
    start_ += times(zero, mask.column);
    row_start_ = static_cast<uint32_t>(half_of(mask)) - (static_cast<uint32_t>(zero) << mask.row_shift);
    if (mask.row_shift) {
      pairs_ = context.scratch.template take<int32_t>(whole_blocks(context.window.length()) + kVectorBlock);
      for (int i = 0; i < width_; i += 2)
        row_.add(0, i * context.channels, {mask.row[i]}, {i + 1 < width_ ? mask.row[i + 1] : 0});
      row_start_ += times(pair_zero(T{}), mask.row);
    }
  }

  void enter(int y) {
    const T *row = context_.window[y];
    const VectorLoops &loops = context_.loops();
    const int channels = context_.channels;
    const bool second = y & 1;
    const int same = repeated_.put(context_.job, y);
    if (!second) repeated_.lose(y + 1);  // put_half() clears the second half
    if (same >= 0) {
      const int32_t *const pairs = rows_[same >> 1];
      const int shift = same & 1 ? 16 : 0;
      for (int i = 0; i < context_.blocks(); i++) sums_[i] = static_cast<uint16_t>(pairs[i] >> shift);
      loops.put_half(sums_, second, rows_[y >> 1], context_.blocks());
    } else if (mask_.row_shift) {
      loops.pair(row, channels, pairs_, context_.blocks() + (width_ - 1) * channels);
      row_.sum([&](int) { return pairs_; },
               [&](const PairTap<1> *taps, int high, int count) {
                 loops.sum_pairs_to_half(taps, high, count, row_start_, mask_.row_shift, second, rows_[y >> 1],
                                         context_.blocks());
               });
    } else {
      // The final row sums fit 16 bits, so they can be added modulo 2^16.
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
    column_[top & 1].sum([&](int j) { return rows_[(top >> 1) + j]; },
                         [&](const PairTap<1> *taps, int high, int count) {
                           context_.loops().sum_pairs(taps, high, count, start_, &out, context_.blocks());
                         });
  }

 private:
  static int32_t half_of(const IntegerMask &mask) { return mask.row_shift ? 1 << (mask.row_shift - 1) : 0; }

  // The range of row sums.
  static SumRange range_of_rows(const RowContext<T> &context, const IntegerMask &mask) {
    const SumRange range = range_of(mask.row, context.largest_sample());
    const int64_t half = half_of(mask);
    return {(range.low + half) >> mask.row_shift, (range.high + half) >> mask.row_shift};
  }
  // Is subtracted from row sums so that they fit 16 bits. It is 0 where they do without: with a large row_shift, more
  // would not fit 32 bits.
  static int32_t zero_of(SumRange range) { return range.low < 0 || range.high <= INT16_MAX ? 0 : 1 << 15; }

  const RowContext<T> &context_;
  const IntegerMask &mask_;
  uint32_t start_, row_start_ = 0;
  const int width_ = context_.pass().width();
  RepeatedRows repeated_ = RepeatedRows(context_.pass().height() + 1);
  Ring<int32_t> rows_ = Ring<int32_t>(context_.scratch, context_.samples, (context_.pass().height() + 1) / 2);
  uint16_t *const sums_ = context_.scratch.template take<uint16_t>(context_.blocks());  // of a row
  int32_t *pairs_ = nullptr;                                                            // pairs of a row's samples
  PairTerms<1> row_, column_[2];  // column_[1]: for windows that begin at an odd row
  std::vector<Tap<T>> taps_;
};

// The sums of a mask that is not separable, in pairs of neighbours, for kRowsAtATime rows of results at a time. Sums of
// 64 bits are split: coefficients into signed digits, whose sums over many taps fit 32 bits and are added up.
template <typename T, typename TotalSum>
class DensePairSum {
 public:
  using Total = TotalSum;
  static constexpr int kRowsTogether = kRowsAtATime;

  DensePairSum(const RowContext<T> &context, const IntegerMask &mask, Total start) : context_(context), start_(start) {
    for (Total *&sums : later_) sums = context.scratch.template take<Total>(context.blocks());
    for (int32_t c : mask.value) start_ += int64_t{pair_zero(T{})} * c;
    if (kWide) {
      for (int32_t *&sums : sums_) sums = context.scratch.template take<int32_t>(context.blocks());
      add_digits(mask.value);
    } else {
      chunks_.push_back({0, {}});
      add_terms(mask.value, 0);
    }
  }

  void enter(int y) {
    const int length = context_.blocks() + (context_.pass().width() - 1) * context_.channels;
    context_.loops().pair(context_.window[y], context_.channels, rows_[y], length);
  }

  // The first of each kRowsAtATime rows computes the sums of all. Rows below the tile get undefined sums.
  void filter(int y, Total *out) {
    const int later = (y - context_.tile.y0) % kRowsAtATime, top = y - context_.pass().radius_y, n = context_.blocks();
    if (later) {
      std::copy_n(later_[later - 1], n, out);
      return;
    }
    Total *totals[kRowsAtATime] = {out};
    std::copy_n(later_, kRowsAtATime - 1, totals + 1);
    const VectorLoops &loops = context_.loops();
    const auto row = [&](int j) { return rows_[top + j]; };
    if constexpr (kWide) {
      for (Total *total : totals) std::fill_n(total, n, start_);
      for (Chunk &chunk : chunks_)
        chunk.terms.sum(row, [&](const PairTap<kRowsAtATime> *taps, int high, int count) {
          loops.sum_pairs(taps, high, count, 0, sums_, n);
          for (int r = 0; r < kRowsAtATime; r++) loops.add_shifted(sums_[r], chunk.shift, totals[r], n);
        });
    } else {
      chunks_[0].terms.sum(row, [&](const PairTap<kRowsAtATime> *taps, int high, int count) {
        loops.sum_pairs(taps, high, count, static_cast<uint32_t>(start_), totals, n);
      });
    }
  }

 private:
  static constexpr bool kWide = sizeof(Total) == 8;
  // Two digits hold coefficients of 31 bits for 8-bit samples, of 23 bits for 16-bit samples.
  static constexpr int kDigitBits = sizeof(T) == 1 ? 16 : 12;
  static constexpr int kDigitMask = (1 << kDigitBits) - 1, kDigitHalf = 1 << (kDigitBits - 1);
  // Bound of the sum of absolute digits of a chunk, so that its sums fit 32 bits. Halves of pairs have a magnitude of
  // at most 255 or 2^15.
  static constexpr int kMostOfChunk = INT32_MAX / (sizeof(T) == 1 ? 255 : 1 << 15);

  // Terms whose sums fit 32 bits and are multiplied by 2^shift.
  struct Chunk {
    int shift;
    PairTerms<kRowsAtATime> terms;
  };

  // of[r]: the coefficient of the window's row j, column i, in row r of results. One window covers the masks of all
  // kRowsAtATime rows; each mask begins a row lower than the one before.
  void coefficients(const std::vector<int32_t> &mask, int j, int i, int32_t (&of)[kRowsAtATime]) const {
    const int width = context_.pass().width();
    for (int r = 0; r < kRowsAtATime; r++)
      of[r] = i < width && j >= r && j - r < height_ ? mask[(j - r) * width + i] : 0;
  }

  void add_digits(std::vector<int32_t> rest) {
    std::vector<int32_t> digits(rest.size());
    for (int shift = 0; std::any_of(rest.begin(), rest.end(), [](int32_t c) { return c != 0; }); shift += kDigitBits) {
      for (size_t i = 0; i < rest.size(); i++) {
        digits[i] = (rest[i] & kDigitMask) - ((rest[i] & kDigitHalf) << 1);
        rest[i] = static_cast<int32_t>((int64_t{rest[i]} - digits[i]) >> kDigitBits);
      }
      add_terms(digits, shift);
    }
  }

  // Adds the terms of a mask to the last chunk or, if sums have 64 bits, to new chunks.
  void add_terms(const std::vector<int32_t> &mask, int shift) {
    int32_t first[kRowsAtATime], second[kRowsAtATime];
    int64_t size[kRowsAtATime];
    std::fill_n(size, kRowsAtATime, kMostOfChunk + 1);
    for (int j = 0; j < height_ + kRowsAtATime - 1; j++)
      for (int i = 0; i < context_.pass().width(); i += 2) {
        coefficients(mask, j, i, first);
        coefficients(mask, j, i + 1, second);
        int64_t more[kRowsAtATime];
        bool any = false, full = false;
        for (int r = 0; r < kRowsAtATime; r++) {
          more[r] = std::abs(int64_t{first[r]}) + std::abs(int64_t{second[r]});
          any |= more[r] > 0;
          full |= kWide && size[r] + more[r] > kMostOfChunk;
        }
        if (!any) continue;
        if (full) {
          chunks_.push_back({shift, {}});
          std::fill_n(size, kRowsAtATime, 0);
        }
        for (int r = 0; r < kRowsAtATime; r++) size[r] += more[r];
        chunks_.back().terms.add(j, i * context_.channels, first, second);
      }
  }

  const RowContext<T> &context_;
  const int height_ = context_.pass().height();
  Ring<int32_t> rows_ = Ring<int32_t>(context_.scratch, context_.window.length(), height_ + kRowsAtATime - 1);
  int64_t start_;
  Total *later_[kRowsAtATime - 1];  // sums of the rows after the first
  int32_t *sums_[kRowsAtATime];     // of a chunk
  std::vector<Chunk> chunks_;
};

}  // namespace cudaconv
