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

// Without alpha, all windows of a row at once. Where samples of a plane have several tables, or one weight for several
// colours, rows are split into a row for each channel, and results are joined.
template <typename T>
class BilateralOp : public Operation<T> {
 public:
  explicit BilateralOp(const RowContext<T> &context)
      : context_(context), tables_(*context.pass().bilateral), rings_(context.pass()) {
    const int plane = context.job.part.plane;
    const bool colours = tables_.has_colours(plane);
    for (int c = 0; c < context.channels; c++)
      splits_ |= colours ? !tables_.is_planar() : &tables_.of(plane, c) != &tables_.of(plane, 0);
    if (!splits_) {
      colours ? add({0, 0, 0}, tables_.of_colours()) : add({0}, tables_.of(plane, 0));
      return;
    }
    const auto &colour = tables_.colour;
    if (colours) add({colour[0].channel, colour[1].channel, colour[2].channel}, tables_.of_colours());
    for (int c = 0; c < context.channels; c++) {
      split_[c] = Ring<T>(context.scratch, columns(), context.pass().height());
      results_[c] = context.scratch.template take<T>(padded());
      if (context.job.plan->action[plane][c] == Action::Filter && !tables_.is_colour(plane, c))
        add({c}, tables_.of(plane, c));
    }
  }

  void enter(int y) override {
    if (!splits_) return;
    T *rows[kMaxChannels] = {};
    for (int c = 0; c < context_.channels; c++) rows[c] = split_[c][y];
    context_.loops().split(context_.window[y], context_.channels, rows, columns());
  }

  void filter(int y, T *out) override {
    const VectorLoops &loops = context_.loops();
    for (const Alike &alike : alike_) {
      const auto count = static_cast<int>(alike.channels.size());
      const T *middle[kColours];
      T *to[kColours];
      for (int k = 0; k < count; k++) {
        middle[k] = at(alike, k, 0, y);
        to[k] = splits_ ? results_[alike.channels[k]] : k ? context_.others[k - 1].out : out;
      }
      rings_.list(count, [&](int k, int dx, int dy) { return at(alike, k, dx, y + dy); });
      loops.bilateral(rings_.data(), rings_.count(), count, middle, alike.range, to, padded());
    }
    if (splits_) loops.join(results_, context_.channels, out, context_.tile.width());
  }

 private:
  // Samples with one table: of one channel; of the three colours, which have one weight; or of all channels at once.
  struct Alike {
    std::vector<int> channels;
    BilateralRange range;
  };

  void add(std::vector<int> channels, const RangeTable &table) {
    alike_.push_back({std::move(channels), range_of<T>(table, context_.scratch)});
  }

  int columns() const { return context_.tile.width() + 2 * context_.pass().radius_x; }
  int padded() const { return splits_ ? std::max(context_.tile.width(), kVectorBlock) : context_.padded(); }

  // The samples `dx` pixels to the right of the results in row y. Where colours are planes, each has a window.
  const T *at(const Alike &alike, int k, int dx, int y) const {
    const int x = dx + context_.pass().radius_x;
    if (splits_) return split_[alike.channels[k]][y] + x;
    return (k ? context_.others[k - 1].window : context_.window)[y] + x * context_.channels;
  }

  const RowContext<T> &context_;
  const BilateralTables &tables_;
  WindowRings<T> rings_;
  std::vector<Alike> alike_;
  bool splits_ = false;
  Ring<T> split_[kMaxChannels];
  T *results_[kMaxChannels] = {};
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
