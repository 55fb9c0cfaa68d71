// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::WeightedMean on the CPU.
#pragma once

#include <algorithm>
#include <climits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "cpu/alpha_rows.h"
#include "cpu/operation.h"

namespace cudaconv {

// A tap of 128-bit sums.
template <typename In>
struct LongTap {
  const In *in;
  int64_t coefficient;
};

template <typename In, typename Sum>
void add_up(const VectorLoops &loops, const std::vector<Tap<In>> &taps, Sum *out, int n) {
  loops.sum(taps.data(), static_cast<int>(taps.size()), Sum{0}, out, n);
}
template <typename In>
void add_up(const VectorLoops &, const std::vector<LongTap<In>> &taps, Uint128 *out, int n) {
  std::fill_n(out, n, 0);
  for (const LongTap<In> &tap : taps)
    for (int s = 0; s < n; s++) out[s] += static_cast<Uint128>(tap.in[s]) * static_cast<uint64_t>(tap.coefficient);
}

// Weighted means, with window sums of type Sum. A pixel has a slot for each channel. If another part holds its alpha,
// it has one more slot. Slots hold alpha times colour, or alpha itself, so that one loop sums all.
//
// If alpha is 0 in a whole window, colours are means without alpha. Only rows with a transparent window compute the
// sums for them.
template <typename T, typename Sum>
class WeightedOp : public Operation<T> {
  using Unsigned = std::conditional_t<std::is_same_v<Sum, int32_t>, uint32_t,
                                      std::conditional_t<std::is_same_v<Sum, int64_t>, uint64_t, Uint128>>;
  using Wide = std::conditional_t<std::is_same_v<Sum, Uint128>, uint32_t, Sum>;
  static constexpr bool kLong = std::is_same_v<Sum, Uint128>;
  using Factor = std::conditional_t<kLong, int64_t, int32_t>;
  template <typename In>
  using Taps = std::vector<std::conditional_t<kLong, LongTap<In>, Tap<In>>>;
  using Product = std::conditional_t<sizeof(T) == 1, uint16_t, Wide>;

 public:
  explicit WeightedOp(const RowContext<T> &context) : context_(context) {
    Scratch &scratch = context.scratch;
    if (!packed_) {
      alpha_rows_ = std::make_unique<AlphaRows<T>>(job_, tile_, scratch);
      alpha_ = scratch.take<T>(columns_);
    }
    const Pass &pass = context.pass();
    const int height = pass.height();
    for (Rows &rows : rows_) {
      rows.made.assign(height, INT_MIN);
      rows.repeated = RepeatedRows(height);
      if (mask_.separable())
        rows.sums = Ring<Sum>(scratch, tile_.width() * slots_, height);
      else
        rows.products = Ring<Product>(scratch, columns_ * slots_, height);
    }
    if (mask_.separable()) {
      row_.assign(mask_.row.begin(), mask_.row.end());
      column_.assign(mask_.column.begin(), mask_.column.end());
      if constexpr (kLong) {
        if (!pass.long_row.empty()) {
          row_ = pass.long_row;
          column_ = pass.long_column;
        }
      }
      product_ = scratch.take<Product>(whole_blocks(columns_ * slots_) + kVectorBlock);
      all_ = std::accumulate(row_.begin(), row_.end(), Unsigned{0}) *
             std::accumulate(column_.begin(), column_.end(), Unsigned{0});
    } else {
      all_ = std::accumulate(mask_.value.begin(), mask_.value.end(), Unsigned{0});
    }
  }

  void enter(int y) override { make_row(y, true); }

  void filter(int y, T *row) override {
    const int radius = job_.pass->radius_y;
    add_rows(y, true, weighted_);
    bool transparent = false;
    for (int x = 0; x < tile_.width(); x++) transparent |= weighted_[x * slots_ + alpha_slot_] == 0;
    if (transparent) {
      for (int from = y - radius; from <= y + radius; from++) make_row(from, false);
      add_rows(y, false, unweighted_);
    }
    finish(row);
  }

 private:
  struct Rows {
    Ring<Sum> sums;          // row sums
    Ring<Product> products;  // products, for a mask that is not separable
    std::vector<int> made;   // which row each row of the ring holds
    RepeatedRows repeated{0};
  };

  // Computes the sums or products of row y in rows_[weighted], unless they are there.
  void make_row(int y, bool weighted) {
    Rows &rows = rows_[weighted];
    const auto height = static_cast<int>(rows.made.size());
    int &made = rows.made[(y % height + height) % height];
    if (made == y) return;
    made = y;
    const int same = mask_.separable() ? rows.repeated.put(job_, y) : RepeatedRows::kNone;
    if (same >= 0) {
      std::copy_n(rows.sums[same], length_, rows.sums[y]);
      return;
    }
    Product *const product = mask_.separable() ? product_ : rows.products[y];
    multiply(y, weighted, product);
    const int n = columns_ * slots_;
    std::fill(product + n, product + whole_blocks(n) + kVectorBlock, Product{0});
    if (!mask_.separable()) return;
    Taps<Product> taps;
    list_taps(row_, static_cast<const Product *>(product), &taps);
    add_up(*job_.loops, taps, rows.sums[y], length_);
  }

  // Lists the non-zero factors as taps on consecutive pixels.
  template <typename In>
  void list_taps(const std::vector<Factor> &factors, const In *in, Taps<In> *taps) const {
    for (size_t i = 0; i < factors.size(); i++)
      if (factors[i]) taps->push_back({in + static_cast<ptrdiff_t>(i) * slots_, factors[i]});
  }

  void multiply(int y, bool weighted, Product *out) {
    if (weighted && !packed_) alpha_rows_->read(y, alpha_);
    const T *in = window_[y];
    for (int x = 0; x < columns_; x++, in += channels_, out += slots_) {
      const Product a = packed_ ? in[alpha_slot_] : alpha_[x], weight = weighted ? a : Product{1};
      for (int c = 0; c < channels_; c++) out[c] = static_cast<Product>(weight * in[c]);
      out[alpha_slot_] = a;
    }
  }

  void add_rows(int y, bool weighted, Sum *out) {
    const Rows &rows = rows_[weighted];
    const int top = y - job_.pass->radius_y, width = job_.pass->width(), height = job_.pass->height();
    if (mask_.separable()) {
      Taps<Sum> taps;
      for (int j = 0; j < height; j++)
        if (column_[j]) taps.push_back({rows.sums[top + j], column_[j]});
      return add_up(*job_.loops, taps, out, length_);
    }
    Taps<Product> taps;
    for (int j = 0; j < height; j++) {
      const auto begin = mask_.value.begin() + static_cast<ptrdiff_t>(j) * width;
      list_taps({begin, begin + width}, static_cast<const Product *>(rows.products[top + j]), &taps);
    }
    add_up(*job_.loops, taps, out, length_);
  }

  void finish(T *row) const {
    const Rounding *const rounding = job_.pass->rounding[job_.part.plane];
    const int64_t gain = job_.pass->sum_gain;
    const float inverse_of_all = inverse_of(all_);
    for (int x = 0; x < tile_.width(); x++) {
      const Sum *const sum = weighted_ + x * slots_;
      const auto weight = static_cast<Unsigned>(sum[alpha_slot_]);
      const Sum *const colours = weight == 0 ? unweighted_ + x * slots_ : sum;
      const Unsigned d = weight == 0 ? all_ : weight;
      const float inverse = inverse_of(d);
      for (int c = 0; c < channels_; c++)
        if (c != alpha_slot_)
          row[x * channels_ + c] =
              static_cast<T>(round_mean(static_cast<Unsigned>(colours[c]), d, inverse, gain, rounding[c]));
      if (packed_)
        row[x * channels_ + alpha_slot_] =
            static_cast<T>(round_mean(weight, all_, inverse_of_all, gain, rounding[alpha_slot_]));
    }
  }

  const RowContext<T> &context_;
  const Job &job_ = context_.job;
  const JobTile &tile_ = context_.tile;
  const RowWindow<T> &window_ = context_.window;
  const IntegerMask &mask_ = context_.pass().mask[0];
  const int channels_ = context_.channels;
  std::vector<Factor> row_, column_;
  const AlphaPlace place_ = alpha_of(job_.plan->layout);
  const bool packed_ = place_.plane == job_.part.plane;
  const int slots_ = channels_ + !packed_, alpha_slot_ = packed_ ? place_.channel : channels_;
  const int columns_ = context_.window.length() / channels_;  // pixels of a window's row
  const int length_ = whole_blocks(tile_.width() * slots_);   // slots of a row of results
  std::unique_ptr<AlphaRows<T>> alpha_rows_;
  T *alpha_ = nullptr;
  Product *product_ = nullptr;
  Rows rows_[2];  // [0]: without alpha, [1]: with alpha
  Sum *const weighted_ = context_.scratch.template take<Sum>(length_);
  Sum *const unweighted_ = context_.scratch.template take<Sum>(length_);
  Unsigned all_;  // the sum of the mask's coefficients
};

}  // namespace cudaconv
