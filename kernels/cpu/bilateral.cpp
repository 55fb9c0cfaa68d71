// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cpu/bilateral.h"

#include <algorithm>
#include <memory>

#include "cpu/alpha_rows.h"
#include "cpu/tile_rows.h"

namespace cudaconv {

template <typename T>
BilateralOp<T>::BilateralOp(const RowContext<T> &context) : context_(context) {
  const Pass &pass = context.pass();
  for (int j = -pass.radius_y; j <= pass.radius_y; j++)
    for (int i = -pass.radius_x; i <= pass.radius_x; i++) {
      const int32_t weight = pass.mask[0].value[(j + pass.radius_y) * pass.width() + i + pass.radius_x];
      if (weight && (i || j)) offsets_[weight].emplace_back(i, j);
    }
  for (const RangeTable &table : pass.bilateral->range) add_depth(table.depth);
  if (depths_.size() > 1) row_ = context.scratch.template take<T>(context.padded());
}

template <typename T>
void BilateralOp<T>::add_depth(int depth) {
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

template <typename T>
void BilateralOp<T>::filter(int y, T *out) {
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

template class BilateralOp<uint8_t>;
template class BilateralOp<uint16_t>;

namespace {

// With alpha, sample by sample.
template <typename T>
class BilateralAlphaRows : public TileRows<T> {
 public:
  BilateralAlphaRows(const Job &job, const JobTile &tile, Scratch &scratch)
      : job_(job),
        tile_(tile),
        pass_(*job.pass),
        channels_(job.layout->channels),
        window_(job, tile, scratch, job.pass->height() + 1),
        next_(tile.y0 - job.pass->radius_y) {
    const AlphaPlace place = alpha_of(job.plan->layout);
    alpha_channel_ = place.plane == job.part.plane ? place.channel : -1;
    if (alpha_channel_ >= 0) return;
    alpha_rows_ = std::make_unique<AlphaRows<T>>(job, tile, scratch);
    alpha_ = Ring<T>(scratch, tile.width() + 2 * job.pass->radius_x, job.pass->height() + 1);
  }

  void write(int y, T *row) override {
    for (; next_ <= y + pass_.radius_y; next_++) {
      window_.enter(next_);
      if (alpha_rows_) alpha_rows_->read(next_, alpha_[next_]);
    }
    for (int x = 0; x < tile_.width(); x++)
      for (int c = 0; c < channels_; c++) row[x * channels_ + c] = sample(x, y, c);
  }

 private:
  T sample(int x, int y, int c) const {
    Uint128 n = 0, d = 0;
    if (c != alpha_channel_) add_up(x, y, c, true, &n, &d);
    if (d == 0) add_up(x, y, c, false, &n, &d);
    return static_cast<T>(
        clamped_quotient<Uint128>(n + d / 2, d, inverse_of(d), (1 << job_.layout->channel[c].depth) - 1));
  }

  void add_up(int x, int y, int c, bool weighted, Uint128 *n, Uint128 *d) const {
    const RangeTable &table = pass_.bilateral->of_depth(job_.layout->channel[c].depth);
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

  const Job &job_;
  const JobTile tile_;
  const Pass &pass_;
  const int channels_;
  RowWindow<T> window_;
  int next_;           // the next row to enter
  int alpha_channel_;  // -1: another part has the alpha
  std::unique_ptr<AlphaRows<T>> alpha_rows_;
  Ring<T> alpha_;
};

}  // namespace

template <typename T>
std::unique_ptr<TileRows<T>> make_bilateral_alpha_rows(const Job &job, const JobTile &tile, Scratch &scratch) {
  return std::make_unique<BilateralAlphaRows<T>>(job, tile, scratch);
}

template std::unique_ptr<TileRows<uint8_t>> make_bilateral_alpha_rows(const Job &, const JobTile &, Scratch &);
template std::unique_ptr<TileRows<uint16_t>> make_bilateral_alpha_rows(const Job &, const JobTile &, Scratch &);

}  // namespace cudaconv
