// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cpu/blur.h"

#include <algorithm>

namespace cudaconv {

namespace {

// Filters a line of pixels with [1 4 6 4 1] (four boxes of 2) and keeps every second result. The first result is
// centred on pixel 2. Repeated log2(D) times, this sums four boxes of D samples: a box of 2 * D is a box of 2, then a
// box of D on every second result.
template <int kChannels, typename In, typename Out>
void halve(const In *in, int results, Out *out) {
  for (int i = 0; i < results; i++, in += 2 * kChannels, out += kChannels)
    for (int c = 0; c < kChannels; c++)
      out[c] = (Out{in[c]} + in[4 * kChannels + c]) + 4 * (Out{in[kChannels + c]} + in[3 * kChannels + c]) +
               6 * Out{in[2 * kChannels + c]};
}

// Reduces a line of column sums to coarse samples. The line begins 2 * D - 2 pixels before the first result.
template <int kChannels>
void reduce_columns(const Decimation &decimation, std::vector<int32_t> &line, int results, int32_t *out) {
  const int shift = decimation.reduce_columns_shift(), levels = decimation.log_factor;
  // All levels but the last work in place: no result overwrites the input of a later result.
  int needed = results;
  for (int level = 1; level < levels; level++) needed = 2 * needed + 3;
  for (int level = 1; level < levels; level++, needed = (needed - 3) / 2)
    halve<kChannels>(line.data(), needed, line.data());
  std::vector<int32_t> sums(static_cast<size_t>(results) * kChannels);
  halve<kChannels>(line.data(), results, sums.data());
  for (int i = 0; i < results * kChannels; i++) out[i] = (sums[i] + (1 << (shift - 1))) >> shift;
}

// Blurs across the lines line(0) ... line(2 * radius): the sum of each line times its weight, for `blocks` samples.
template <typename Line>
void blur_lines(const Job &job, const Decimation &d, Line line, int blocks, int32_t *out) {
  const auto sum = [&](const std::vector<int32_t> &weights, int32_t *to) {
    std::vector<Tap<int32_t>> tap(weights.size());
    for (size_t i = 0; i < tap.size(); i++) tap[i] = {line(static_cast<int>(i)), weights[i]};
    job.loops->sum(tap.data(), static_cast<int>(tap.size()), 0, to, blocks);
  };
  sum(d.blur, out);
  if (!d.fine.empty()) {
    // The sum is out + fine / 2^kFineBits. Its fraction can be dropped here, since the shift below drops it too.
    std::vector<int32_t> fine(static_cast<size_t>(blocks));
    sum(d.fine, fine.data());
    for (int i = 0; i < blocks; i++) out[i] += fine[static_cast<size_t>(i)] >> Decimation::kFineBits;
  }
  job.loops->shift_rounded(out, Decimation::kBlurBits, out, blocks);
}

}  // namespace

void CoarsePart::make(const Job &job, const PixelRect &bounds, const ParallelFor &parallel_for, int threads) {
  const Decimation &d = *job.pass->decimation_y;
  channels_ = job.layout->channels;
  x_ = coarse_line(*job.pass->decimation, job.plan->border, job.layout->width);
  y_ = coarse_line(d, job.plan->border, job.part.height);
  stride_ = whole_blocks(expanded_line(d, job.layout->width).count * channels_);
  first_row_ = (bounds.y0 >> d.log_factor) - 1;
  const int rows = ((bounds.y1 - 1) >> d.log_factor) + 3 - first_row_;
  made_begin_ = y_.index(first_row_ - d.radius());
  const int made = y_.index(first_row_ + rows - 1 + d.radius()) + 1 - made_begin_;
  // The buffers are not cleared: every value is written before it is read.
  rows_.resize(std::max(rows_.size(), made * stride_ + kVectorBlock));
  blurred_.resize(std::max(blurred_.size(), rows * stride_ + kVectorBlock));
  const auto share = [&](int all, const auto &body) {
    const int tasks = std::clamp(all / 4, 1, 4 * threads);
    parallel_for(tasks, [&](int i) {
      body(static_cast<int>(int64_t{all} * i / tasks), static_cast<int>(int64_t{all} * (i + 1) / tasks));
    });
  };
  share(made, [&](int begin, int end) {
    if (job.layout->container == Container::U8)
      reduce<uint8_t>(job, made_begin_ + begin, made_begin_ + end);
    else
      reduce<uint16_t>(job, made_begin_ + begin, made_begin_ + end);
  });
  share(rows, [&](int begin, int end) { blur_columns(job, begin, end); });
}

// Computes rows begin ... end - 1 of y_: reduces samples to coarse samples, then blurs these along the row.
template <typename T>
void CoarsePart::reduce(const Job &job, int begin, int end) {
  const Decimation &d = *job.pass->decimation;
  const int factor = d.factor(), taps = 4 * factor - 3, shift = d.reduce_rows_shift();
  // Pixels to the left and right of the part that its coarse samples are reduced from. The window's rows hold them.
  const int before = 2 * factor - 2 - x_.first * factor;
  const int after = (x_.first + x_.count - 1) * factor + 2 * factor - 2 - (job.layout->width - 1);
  Pass pass = *job.pass;
  pass.radius_x = std::max(before, after);
  Job wide = job;
  wide.pass = &pass;
  Scratch scratch;
  RowWindow<T> window(wide, {0, job.layout->width, 0, job.part.height}, scratch, taps);
  const int skip = (pass.radius_x - before) * channels_, blocks = whole_blocks(window.length());
  std::vector<int32_t> sums(blocks), reduced(static_cast<size_t>(x_.count) * channels_);
  std::vector<Tap<T>> tap(taps);
  const int up = std::max(0, -shift);
  int entered = (y_.first + begin) * factor - (2 * factor - 2);
  for (int row = begin; row < end && !job.cancellation->requested(); row++) {
    const int middle = (y_.first + row) * factor;
    for (; entered <= middle + 2 * factor - 2; entered++) window.enter(entered);
    for (int i = 0; i < taps; i++) tap[i] = {window[middle + i - (2 * factor - 2)], d.reduce[i] << up};
    job.loops->sum(tap.data(), taps, 0, sums.data(), blocks);
    if (shift > 0) job.loops->shift_rounded(sums.data(), shift, sums.data(), blocks);
    std::copy(sums.begin() + skip, sums.end(), sums.begin());
    with_channels(channels_, [&](auto channels) { reduce_columns<channels.value>(d, sums, x_.count, reduced.data()); });
    blur_row(job, reduced, rows_.data() + (row - made_begin_) * stride_);
  }
}

// Blurs a row of coarse samples of the line x_; the first result is for coarse sample -1.
void CoarsePart::blur_row(const Job &job, const std::vector<int32_t> &reduced, int32_t *out) const {
  const Decimation &d = *job.pass->decimation;
  const int results = expanded_line(d, job.layout->width).count, radius = d.radius();
  std::vector<int32_t> line(static_cast<size_t>(results + 2 * radius) * channels_ + 2 * kVectorBlock);
  for (int i = 0; i < results + 2 * radius; i++)
    std::copy_n(reduced.begin() + x_.index(i - 1 - radius) * channels_, channels_, line.begin() + i * channels_);
  blur_lines(
      job, d, [&](int i) { return line.data() + i * channels_; }, whole_blocks(results * channels_), out);
}

// Computes rows begin ... end - 1 of blurred_.
void CoarsePart::blur_columns(const Job &job, int begin, int end) {
  const Decimation &d = *job.pass->decimation_y;
  for (int r = begin; r < end && !job.cancellation->requested(); r++)
    blur_lines(
        job, d, [&](int i) { return row(first_row_ + r + i - d.radius()); }, static_cast<int>(stride_),
        blurred_.data() + r * stride_);
}

namespace {

template <typename T>
class BlurOp : public Operation<T> {
 public:
  explicit BlurOp(const RowContext<T> &context) : context_(context) {
    for (int32_t *&weight : weight_) {
      weight = context.scratch.template take<int32_t>(whole_blocks(samples_));
      std::fill(weight + samples_, weight + whole_blocks(samples_), 0);  // sums behind the last sample are read, too
    }
    for (int s = 0; s < samples_; s++) {
      const auto &weights = d_.expand[(tile_.x0 + s / channels_) & (d_.factor() - 1)];
      for (int k = 0; k < 4; k++) weight_[k][s] = weights[k];
    }
  }

  void filter(int y, T *out) override {
    const int cell = y >> d_.log_factor;
    const auto &weights = d_.expand[y & (d_.factor() - 1)];
    Tap<int32_t> tap[4];
    for (int k = 0; k < 4; k++) tap[k] = {job_.coarse->at(first_ - 1, cell - 1 + k), weights[k]};
    const int coarse = whole_blocks(cells_ * channels_);
    job_.loops->sum(tap, 4, 0, row_, coarse);
    job_.loops->shift_rounded(row_, d_.expand_shift(), row_, coarse);
    spread(row_);
    const int32_t *in[4];
    const int skip = (tile_.x0 - (first_ << d_.log_factor)) * channels_;
    for (int k = 0; k < 4; k++) in[k] = spread_ + skip + k * d_.factor() * channels_;
    job_.loops->sum_products(in, weight_, sum_, whole_blocks(samples_));
    const T *centre = centre_;
    if (job_.pass->has_gain()) centre = samples_of(job_, tile_, job_.source, y, centre_);
    round_samples(job_, samples_, sum_, centre, out);
  }

 private:
  // Repeats each coarse sample D times, once for each of its pixels.
  void spread(const int32_t *coarse) {
    int32_t *out = spread_;
    for (int i = 0; i < cells_; i++, coarse += channels_)
      for (int k = 0; k < d_.factor(); k++)
        for (int c = 0; c < channels_; c++) *out++ = coarse[c];
  }

  const RowContext<T> &context_;
  const Job &job_ = context_.job;
  const JobTile &tile_ = context_.tile;
  const Decimation &d_ = *job_.pass->decimation;
  const int channels_ = context_.channels, samples_ = context_.samples;
  const int first_ = tile_.x0 >> d_.log_factor;  // coarse sample at or before the tile's first pixel
  const int cells_ = ((tile_.x1 - 1) >> d_.log_factor) + 4 - first_;
  // Coarse samples of a row of results, and these repeated for each pixel.
  int32_t *const row_ = context_.scratch.template take<int32_t>(whole_blocks(cells_ * channels_));
  int32_t *const spread_ = context_.scratch.template take<int32_t>(
      static_cast<size_t>(cells_) * d_.factor() * channels_ + whole_blocks(samples_));
  int32_t *weight_[4];  // expansion weights of the samples of a row
  int32_t *const sum_ = context_.scratch.template take<int32_t>(context_.blocks());
  T *const centre_ = context_.scratch.template take<T>(context_.blocks());
};

}  // namespace

template <typename T>
std::unique_ptr<Operation<T>> make_blur(const RowContext<T> &context) {
  return std::make_unique<BlurOp<T>>(context);
}

template std::unique_ptr<Operation<uint8_t>> make_blur(const RowContext<uint8_t> &);
template std::unique_ptr<Operation<uint16_t>> make_blur(const RowContext<uint16_t> &);

}  // namespace cudaconv
