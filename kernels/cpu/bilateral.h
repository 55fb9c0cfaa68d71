// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Bilateral on the CPU.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/alpha_rows.h"
#include "cpu/operation.h"

namespace cudaconv {

// The pixels of a window as rings, by the weight of their distance.
template <typename T>
class WindowRings {
 public:
  explicit WindowRings(const Pass &pass) {
    for (int j = -pass.radius_y; j <= pass.radius_y; j++)
      for (int i = -pass.radius_x; i <= pass.radius_x; i++) {
        const int32_t weight = pass.mask[0].value[(j + pass.radius_y) * pass.width() + i + pass.radius_x];
        if (weight && (i || j)) offsets_[weight].emplace_back(i, j);
      }
  }

  // at(plane, dx, dy): where the samples of a plane begin that are this far from the middle.
  template <typename At>
  void list(int planes, At at) {
    in_.clear();
    rings_.clear();
    for (const auto &[weight, offsets] : offsets_)
      for (const auto &[dx, dy] : offsets)
        for (int p = 0; p < planes; p++) in_.push_back(at(p, dx, dy));
    const T *const *in = in_.data();
    for (const auto &[weight, offsets] : offsets_)
      for (size_t left = offsets.size(), count; left; left -= count, in += planes * count) {
        count = std::min<size_t>(left, kMostInRing);
        rings_.push_back({in, static_cast<int>(count), static_cast<uint32_t>(weight)});
      }
  }

  const BilateralRing<T> *data() const { return rings_.data(); }
  int count() const { return static_cast<int>(rings_.size()); }

 private:
  std::map<int32_t, std::vector<std::pair<int, int>>> offsets_;  // of the pixels with each weight
  std::vector<const T *> in_;
  std::vector<BilateralRing<T>> rings_;
};

template <typename T>
BilateralRange range_of(const RangeTable &table, Scratch &scratch) {
  BilateralRange range = {table.entry.data(), table.shift, table.last(), nullptr};
  if (sizeof(T) == 1) {
    auto *const weight = scratch.take<uint32_t>(kByteDifferences);
    for (int i = 0; i < kByteDifferences; i++)
      weight[i] = i > 255 * table.components ? 0 : range_weight(table.entry.data(), table.shift, range.last, i);
    range.weight = weight;
  }
  return range;
}

// Without alpha, all windows of a row at once; each channel alone.
template <typename T>
class BilateralOp : public Operation<T> {
 public:
  explicit BilateralOp(const RowContext<T> &context) : context_(context), rings_(context.pass()) {
    for (const RangeTable &table : context.pass().bilateral->range) add_table(table);
    if (tables_.size() > 1) row_ = context.scratch.template take<T>(context.padded());
  }

  void filter(int y, T *out) override {
    rings_.list(1, [&](int, int dx, int dy) { return context_.at(y, dx, dy); });
    const T *const middle = context_.at(y, 0, 0);
    const int n = context_.padded();
    for (const Table &table : tables_) {
      T *const to = table.samples ? row_ : out;
      context_.loops().bilateral(rings_.data(), rings_.count(), 1, &middle, table.range, &to, n);
      if (table.samples) context_.loops().blend(row_, table.samples, out, n);
    }
  }

 private:
  // A table, and a mask of the row's samples that it is for; no mask: all are.
  struct Table {
    BilateralRange range;
    const T *samples = nullptr;
  };

  void add_table(const RangeTable &table) {
    const BilateralTables &tables = *context_.pass().bilateral;
    const auto has_table = [&](int c) { return &tables.of(context_.job.part.plane, c) == &table; };
    int count = 0;
    for (int c = 0; c < context_.channels; c++) count += has_table(c);
    if (!count) return;
    Table t = {range_of<T>(table, context_.scratch), nullptr};
    if (count < context_.channels) {
      T *const samples = context_.scratch.template take<T>(context_.padded());
      for (int s = 0; s < context_.padded(); s++)
        samples[s] = static_cast<T>(has_table(s % context_.channels) ? ~0 : 0);
      t.samples = samples;
    }
    tables_.push_back(t);
  }

  const RowContext<T> &context_;
  WindowRings<T> rings_;
  std::vector<Table> tables_;
  T *row_ = nullptr;  // results of one of several tables
};

// RGB without alpha, all windows of a row at once. Rows of interleaved colours are split into a row for each channel,
// and results are joined; a plane for each colour is read and written as it is.
template <typename T>
class BilateralRgbOp : public Operation<T> {
 public:
  explicit BilateralRgbOp(const RowContext<T> &context)
      : context_(context),
        tables_(*context.pass().bilateral),
        rings_(context.pass()),
        range_(range_of<T>(tables_.of_colours(), context.scratch)) {
    if (tables_.is_planar()) return;
    const int plane = context.job.part.plane;
    for (int c = 0; c < context.channels; c++) {
      split_[c] = Ring<T>(context.scratch, columns(), context.pass().height());
      results_[c] = context.scratch.template take<T>(padded());
      if (context.job.plan->action[plane][c] != Action::Filter || tables_.is_colour(plane, c)) continue;
      alpha_channel_ = c;
      alpha_ = range_of<T>(tables_.of(plane, c), context.scratch);
    }
  }

  void enter(int y) override {
    if (tables_.is_planar()) return;
    T *rows[kMaxChannels] = {};
    for (int c = 0; c < context_.channels; c++) rows[c] = split_[c][y];
    context_.loops().split(context_.window[y], context_.channels, rows, columns());
  }

  void filter(int y, T *out) override {
    const VectorLoops &loops = context_.loops();
    const T *middle[kColours];
    T *to[kColours];
    for (int k = 0; k < kColours; k++) {
      middle[k] = colour(k, 0, y);
      to[k] = !tables_.is_planar() ? results_[tables_.colour[k].channel] : k ? context_.others[k - 1].out : out;
    }
    rings_.list(kColours, [&](int k, int dx, int dy) { return colour(k, dx, y + dy); });
    loops.bilateral(rings_.data(), rings_.count(), kColours, middle, range_, to, padded());
    if (tables_.is_planar()) return;
    if (alpha_channel_ >= 0) {
      rings_.list(1, [&](int, int dx, int dy) { return channel(alpha_channel_, dx, y + dy); });
      const T *const alpha = channel(alpha_channel_, 0, y);
      loops.bilateral(rings_.data(), rings_.count(), 1, &alpha, alpha_, &results_[alpha_channel_], padded());
    }
    loops.join(results_, context_.channels, out, context_.tile.width());
  }

 private:
  int columns() const { return context_.tile.width() + 2 * context_.pass().radius_x; }
  int padded() const { return std::max(context_.tile.width(), kVectorBlock); }

  const T *channel(int c, int dx, int y) const { return split_[c][y] + dx + context_.pass().radius_x; }
  const T *colour(int k, int dx, int y) const {
    if (!tables_.is_planar()) return channel(tables_.colour[k].channel, dx, y);
    const RowWindow<T> &window = k ? context_.others[k - 1].window : context_.window;
    return window[y] + dx + context_.pass().radius_x;
  }

  const RowContext<T> &context_;
  const BilateralTables &tables_;
  WindowRings<T> rings_;
  const BilateralRange range_;
  Ring<T> split_[kMaxChannels];
  T *results_[kMaxChannels] = {};
  int alpha_channel_ = -1;  // if it is filtered
  BilateralRange alpha_ = {};
};

// With alpha, sample by sample.
template <typename T>
class BilateralAlphaOp : public Operation<T> {
 public:
  explicit BilateralAlphaOp(const RowContext<T> &context)
      : context_(context), pass_(context.pass()), tables_(*pass_.bilateral), channels_(context.channels) {
    const Job &job = context.job;
    const AlphaPlace place = alpha_of(job.plan->layout);
    alpha_channel_ = place.plane == job.part.plane ? place.channel : -1;
    if (alpha_channel_ >= 0) return;
    alpha_rows_ = std::make_unique<AlphaRows<T>>(job, context.tile, context.scratch);
    alpha_ = Ring<T>(context.scratch, context.tile.width() + 2 * pass_.radius_x, pass_.height());
  }

  void enter(int y) override {
    if (alpha_rows_) alpha_rows_->read(y, alpha_[y]);
  }

  void filter(int y, T *out) override {
    const int plane = context_.job.part.plane;
    for (int x = 0; x < context_.tile.width(); x++) {
      if (tables_.has_colours(plane)) filter_colours(x, y, out);
      for (int c = 0; c < channels_; c++) {
        const Source source = {&context_.window, c, channels_};
        if (!tables_.is_colour(plane, c))
          filter_sources<1>(x, y, &source, tables_.of(plane, c), c != alpha_channel_, &out[x * channels_ + c]);
      }
    }
  }

 private:
  struct Source {
    const RowWindow<T> *window;
    int channel, channels;

    int at(int x, int y) const { return (*window)[y][x * channels + channel]; }
  };

  void filter_colours(int x, int y, T *out) const {
    Source sources[kColours];
    T results[kColours];
    for (int k = 0; k < kColours; k++)
      sources[k] = tables_.is_planar() && k ? Source{&context_.others[k - 1].window, 0, 1}
                                            : Source{&context_.window, tables_.colour[k].channel, channels_};
    filter_sources<kColours>(x, y, sources, tables_.of_colours(), true, results);
    for (int k = 0; k < kColours; k++)
      (tables_.is_planar() && k ? context_.others[k - 1].out[x] : out[x * channels_ + tables_.colour[k].channel]) =
          results[k];
  }

  // Filters pixel x of samples that have one weight.
  template <int kCount>
  void filter_sources(int x, int y, const Source *sources, const RangeTable &table, bool weighted, T *results) const {
    Uint128 n[kCount] = {}, d = 0;
    if (weighted) add_up<kCount>(x, y, sources, table, true, n, &d);
    if (d == 0) add_up<kCount>(x, y, sources, table, false, n, &d);
    for (int k = 0; k < kCount; k++)
      results[k] = static_cast<T>(clamped_quotient<Uint128>(n[k] + d / 2, d, inverse_of(d), (1 << table.depth) - 1));
  }

  template <int kCount>
  void add_up(int x, int y, const Source *sources, const RangeTable &table, bool weighted, Uint128 *n,
              Uint128 *d) const {
    int middle[kCount];
    for (int k = 0; k < kCount; k++) middle[k] = sources[k].at(x + pass_.radius_x, y);
    const int32_t *space = pass_.mask[0].value.data();
    for (int j = y - pass_.radius_y; j <= y + pass_.radius_y; j++)
      for (int i = x; i < x + pass_.width(); i++) {
        int difference = 0;
        for (int k = 0; k < kCount; k++) difference += std::abs(sources[k].at(i, j) - middle[k]);
        uint64_t weight = uint64_t{static_cast<uint32_t>(*space++)} *
                          range_weight(table.entry.data(), table.shift, table.last(), difference);
        if (weighted) weight *= alpha_channel_ < 0 ? alpha_[j][i] : context_.window[j][i * channels_ + alpha_channel_];
        *d += weight;
        for (int k = 0; k < kCount; k++)
          n[k] += static_cast<Uint128>(weight) * static_cast<uint32_t>(sources[k].at(i, j));
      }
  }

  const RowContext<T> &context_;
  const Pass &pass_;
  const BilateralTables &tables_;
  const int channels_;
  int alpha_channel_;  // -1: another part has the alpha
  std::unique_ptr<AlphaRows<T>> alpha_rows_;
  Ring<T> alpha_;
};

}  // namespace cudaconv
