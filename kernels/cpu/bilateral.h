// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Bilateral on the CPU.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/alpha_rows.h"
#include "cpu/operation.h"

namespace cudaconv {

// Without alpha, all windows of a row at once.
template <typename T>
class BilateralOp : public Operation<T> {
 public:
  explicit BilateralOp(const RowContext<T> &context) : context_(context) {
    const Pass &pass = context.pass();
    for (int j = -pass.radius_y; j <= pass.radius_y; j++)
      for (int i = -pass.radius_x; i <= pass.radius_x; i++) {
        const int32_t weight = pass.mask[0].value[(j + pass.radius_y) * pass.width() + i + pass.radius_x];
        if (weight && (i || j)) offsets_[weight].emplace_back(i, j);
      }
    for (const RangeTable &table : pass.bilateral->range) add_depth(table.depth);
    if (depths_.size() > 1) row_ = context.scratch.template take<T>(context.padded());
  }

  void filter(int y, T *out) override {
    in_.clear();
    rings_.clear();
    for (const auto &[weight, offsets] : offsets_)
      for (const auto &[dx, dy] : offsets) in_.push_back(context_.at(y, dx, dy));
    const T *const *in = in_.data();
    for (const auto &[weight, offsets] : offsets_)
      for (size_t left = offsets.size(), count; left; left -= count, in += count) {
        count = std::min<size_t>(left, kMostInRing);
        rings_.push_back({in, static_cast<int>(count), static_cast<uint32_t>(weight)});
      }
    const int n = context_.padded();
    for (const Depth &depth : depths_) {
      T *const to = depth.samples ? row_ : out;
      context_.loops().bilateral(rings_.data(), static_cast<int>(rings_.size()), context_.at(y, 0, 0), depth.range, to,
                                 n);
      if (depth.samples) context_.loops().blend(row_, depth.samples, out, n);
    }
  }

 private:
  // The table of a depth, and a mask of the row's samples that have this depth; no mask: all have.
  struct Depth {
    BilateralRange range;
    const T *samples = nullptr;
  };

  void add_depth(int depth) {
    const PlaneLayout &layout = *context_.job.layout;
    const auto has_depth = [&](const ChannelLayout &channel) { return channel.depth == depth; };
    const auto *const end = layout.channel + layout.channels;
    if (std::none_of(layout.channel, end, has_depth)) return;
    const RangeTable &table = context_.pass().bilateral->of_depth(depth);
    Depth d = {{table.entry.data(), table.shift, static_cast<int>(table.entry.size()) - 1, nullptr}, nullptr};
    if (sizeof(T) == 1) {
      auto *const weight = context_.scratch.template take<uint32_t>(256);
      for (int i = 0; i < 256; i++) weight[i] = range_weight(table.entry.data(), table.shift, d.range.last, i);
      d.range.weight = weight;
    }
    if (!std::all_of(layout.channel, end, has_depth)) {
      T *const samples = context_.scratch.template take<T>(context_.padded());
      for (int s = 0; s < context_.padded(); s++)
        samples[s] = static_cast<T>(has_depth(layout.channel[s % layout.channels]) ? ~0 : 0);
      d.samples = samples;
    }
    depths_.push_back(d);
  }

  const RowContext<T> &context_;
  std::map<int32_t, std::vector<std::pair<int, int>>> offsets_;  // of the pixels with each weight of distance
  std::vector<Depth> depths_;
  std::vector<const T *> in_;
  std::vector<BilateralRing<T>> rings_;
  T *row_ = nullptr;  // results of one of several depths
};

// With alpha, sample by sample.
template <typename T>
class BilateralAlphaOp : public Operation<T> {
 public:
  explicit BilateralAlphaOp(const RowContext<T> &context)
      : context_(context), pass_(context.pass()), window_(context.window), channels_(context.channels) {
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
    for (int x = 0; x < context_.tile.width(); x++)
      for (int c = 0; c < channels_; c++) out[x * channels_ + c] = sample(x, y, c);
  }

 private:
  T sample(int x, int y, int c) const {
    Uint128 n = 0, d = 0;
    if (c != alpha_channel_) add_up(x, y, c, true, &n, &d);
    if (d == 0) add_up(x, y, c, false, &n, &d);
    return static_cast<T>(
        clamped_quotient<Uint128>(n + d / 2, d, inverse_of(d), (1 << context_.job.layout->channel[c].depth) - 1));
  }

  void add_up(int x, int y, int c, bool weighted, Uint128 *n, Uint128 *d) const {
    const RangeTable &table = pass_.bilateral->of_depth(context_.job.layout->channel[c].depth);
    const int last = static_cast<int>(table.entry.size()) - 1;
    const int middle = window_[y][(x + pass_.radius_x) * channels_ + c];
    const int32_t *space = pass_.mask[0].value.data();
    for (int j = y - pass_.radius_y; j <= y + pass_.radius_y; j++)
      for (int i = x; i < x + pass_.width(); i++) {
        const int v = window_[j][i * channels_ + c];
        const uint32_t r = range_weight(table.entry.data(), table.shift, last, v < middle ? middle - v : v - middle);
        uint64_t weight = uint64_t{static_cast<uint32_t>(*space++)} * r;
        if (weighted) weight *= alpha_channel_ < 0 ? alpha_[j][i] : window_[j][i * channels_ + alpha_channel_];
        *d += weight;
        *n += static_cast<Uint128>(weight) * static_cast<uint32_t>(v);
      }
  }

  const RowContext<T> &context_;
  const Pass &pass_;
  const RowWindow<T> &window_;
  const int channels_;
  int alpha_channel_;  // -1: another part has the alpha
  std::unique_ptr<AlphaRows<T>> alpha_rows_;
  Ring<T> alpha_;
};

}  // namespace cudaconv
