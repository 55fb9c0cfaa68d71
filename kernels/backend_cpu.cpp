// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CPU backend: bands of rows on several threads. A row is first unpacked into samples with the border's samples on
// both sides, so that no loop over pixels has a special case at the ends; the loops are plain ones that compilers
// vectorise.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "backend.h"

namespace cudaconv {

namespace {

// One pass over one part of the frame, all that a band needs.
struct Job {
  const Plan *plan;
  const Pass *pass;
  Plan::Part part;
  const PlaneLayout *layout;
  // Row 0 of the part; pitches in bytes from row to row of the part.
  PlaneView source, subtrahend, copy, input, target;
  // nullptr: the whole part is filtered.
  const Regions *regions;
  std::vector<PartRegion> region;
};

template <typename F>
void for_each_container(const PlaneLayout &layout, F f) {
  switch (layout.container) {
    case Container::U8:
      f([](const uint8_t *p) -> int { return *p; }, [](uint8_t *p, int v) { *p = static_cast<uint8_t>(v); });
      break;
    case Container::U16:
      f([](const uint8_t *p) -> int { return p[0] | p[1] << 8; },
        [](uint8_t *p, int v) {
          p[0] = static_cast<uint8_t>(v);
          p[1] = static_cast<uint8_t>(v >> 8);
        });
      break;
    case Container::U16BE:
      f([](const uint8_t *p) -> int { return p[0] << 8 | p[1]; },
        [](uint8_t *p, int v) {
          p[0] = static_cast<uint8_t>(v >> 8);
          p[1] = static_cast<uint8_t>(v);
        });
      break;
    case Container::Packed32:
      break;
  }
}

uint32_t read_word(const uint8_t *p) {
  return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
}

void write_word(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = static_cast<uint8_t>(v >> (8 * i));
}

// Samples of a row, channels interleaved: T is uint8_t for dense 8-bit planes, else uint16_t.
template <typename T>
void unpack_row(const PlaneLayout &layout, const uint8_t *row, T *samples) {
  const int channels = layout.channels;
  if constexpr (sizeof(T) == 1) {
    std::memcpy(samples, row, static_cast<size_t>(layout.width) * channels);
    return;
  }
  for (int c = 0; c < channels; c++) {
    const ChannelLayout &channel = layout.channel[c];
    const int max = (1 << channel.depth) - 1;
    T *out = samples + c;
    if (layout.container == Container::Packed32) {
      for (int x = 0; x < layout.width; x++)
        out[x * channels] = static_cast<T>(read_word(row + 4 * x) >> channel.offset & max);
    } else {
      for_each_container(layout, [&](auto read, auto) {
        const int bytes = layout.bytes_per_container(), step = layout.step * bytes, shift = channel.shift;
        const uint8_t *in = row + (layout.first + channel.offset) * bytes;
        for (int x = 0; x < layout.width; x++) out[x * channels] = static_cast<T>(read(in + x * step) >> shift & max);
      });
    }
  }
}

template <typename T>
void pack_row(const PlaneLayout &layout, const T *samples, uint8_t *row) {
  const int channels = layout.channels;
  if constexpr (sizeof(T) == 1) {
    std::memcpy(row, samples, static_cast<size_t>(layout.width) * channels);
    return;
  }
  if (layout.container == Container::Packed32) {
    for (int x = 0; x < layout.width; x++) {
      uint32_t word = 0;
      for (int c = 0; c < channels; c++)
        word |= static_cast<uint32_t>(samples[x * channels + c]) << layout.channel[c].offset;
      write_word(row + 4 * x, word);
    }
    return;
  }
  for (int c = 0; c < channels; c++) {
    const T *in = samples + c;
    const int shift = layout.channel[c].shift;
    for_each_container(layout, [&](auto, auto write) {
      const int bytes = layout.bytes_per_container(), step = layout.step * bytes;
      uint8_t *out = row + (layout.first + layout.channel[c].offset) * bytes;
      for (int x = 0; x < layout.width; x++) write(out + x * step, in[x * channels] << shift);
    });
  }
}

// The rows of the source around a row, unpacked and extended by radius_x pixels of border on both sides. Rows enter in
// rising order; the last 2*radius_y+1 are kept.
template <typename T>
class RowWindow {
 public:
  explicit RowWindow(const Job &job)
      : job_(job),
        channels_(job.layout->channels),
        margin_(job.pass->radius_x * channels_),
        stride_(job.layout->width * channels_ + 2 * margin_),
        height_(job.pass->height()),
        rows_(static_cast<size_t>(stride_) * height_) {}

  int stride() const { return stride_; }

  // Unpacks row y, which may lie outside the part.
  void enter(int y) {
    T *row = slot(y);
    const PlaneLayout &layout = *job_.layout;
    const Border border = job_.plan->border;
    const int source = border_index(border, y, job_.part.height);
    if (source < 0) {
      for (int i = 0; i < stride_; i++) row[i] = static_cast<T>(layout.border_value[i % channels_]);
      return;
    }
    T *first = row + margin_;
    unpack_row(layout, job_.source.data + source * job_.source.pitch, first);
    const auto extend = [&](int begin, int end) {
      for (int i = begin; i < end; i++) {
        const int x = border_index(border, i, layout.width);
        for (int c = 0; c < channels_; c++)
          first[i * channels_ + c] = x < 0 ? static_cast<T>(layout.border_value[c]) : first[x * channels_ + c];
      }
    };
    extend(-job_.pass->radius_x, 0);
    extend(layout.width, layout.width + job_.pass->radius_x);
  }

  // A row that has entered; its sample i is channel i % channels of the pixel at x = i / channels - radius_x.
  const T *operator[](int y) const { return const_cast<RowWindow *>(this)->slot(y); }

 private:
  T *slot(int y) { return rows_.data() + static_cast<size_t>((y % height_ + height_) % height_) * stride_; }

  const Job &job_;
  int channels_, margin_, stride_, height_;
  std::vector<T> rows_;
};

// A ring of rows of intermediate values, addressed like RowWindow.
template <typename V>
class ValueRing {
 public:
  ValueRing(int width, int height) : width_(width), height_(height), rows_(static_cast<size_t>(width) * height) {}
  V *operator[](int y) { return rows_.data() + static_cast<size_t>((y % height_ + height_) % height_) * width_; }

 private:
  int width_, height_;
  std::vector<V> rows_;
};

// Each operation turns the window of rows around y into a row of samples: enter(y) as rows come in, then filter(y,
// out).

template <typename T, typename Acc>
class LinearSum {
 public:
  // The sums of one integer mask for the rows of `window`; `samples` of them a row, `channels` apart from pixel to
  // pixel.
  LinearSum(const RowWindow<T> &window, const IntegerMask &mask, int width, int height, int samples, int channels)
      : window_(window),
        mask_(mask),
        width_(width),
        height_(height),
        samples_(samples),
        channels_(channels),
        row_sums_(mask.separable() ? samples : 0, height) {}

  void enter(int y) {
    if (!mask_.separable()) return;
    Acc *__restrict__ sum = row_sums_[y];
    std::fill(sum, sum + samples_, 0);
    const T *row = window_[y];
    for (int i = 0; i < width_; i++) add(mask_.row[i], row + i * channels_, sum);
    if (mask_.row_shift) {
      const Acc half = Acc{1} << (mask_.row_shift - 1);
      for (int s = 0; s < samples_; s++) sum[s] = (sum[s] + half) >> mask_.row_shift;
    }
  }

  void sum(int y, Acc *__restrict__ out) {
    std::fill(out, out + samples_, 0);
    for (int j = 0; j < height_; j++) {
      const int at = y + j - height_ / 2;
      if (mask_.separable()) {
        add(mask_.column[j], row_sums_[at], out);
      } else {
        const T *row = window_[at];
        for (int i = 0; i < width_; i++) add(mask_.value[j * width_ + i], row + i * channels_, out);
      }
    }
  }

 private:
  template <typename V>
  void add(int32_t coefficient, const V *__restrict__ in, Acc *__restrict__ out) {
    if (coefficient == 0) return;
    for (int s = 0; s < samples_; s++) out[s] += static_cast<Acc>(coefficient) * in[s];
  }

  const RowWindow<T> &window_;
  const IntegerMask &mask_;
  int width_, height_, samples_, channels_;
  ValueRing<Acc> row_sums_;
};

template <typename T>
struct RowContext {
  const Job &job;
  const RowWindow<T> &window;
  int channels, samples, margin;  // margin: samples from the start of a window row to the pixel at x = 0

  const Rounding *rounding() const { return job.pass->rounding[job.part.plane]; }

  // Sums to samples. All channels of a plane are rounded alike but where their depths differ.
  template <typename Acc>
  void round(int y, const Acc *sum, T *out) const {
    const Pass &pass = *job.pass;
    const bool uniform = std::all_of(job.layout->channel, job.layout->channel + channels,
                                     [&](const ChannelLayout &c) { return c.depth == job.layout->channel[0].depth; });
    if (pass.has_gain()) {
      const T *centre = window[y] + margin;
      for (int s = 0; s < samples; s++)
        out[s] = static_cast<T>(round_to_sample(
            apply_gain(sum[s], pass.sum_shift, pass.sum_gain, pass.center_gain, centre[s]), rounding()[s % channels]));
    } else if (uniform) {
      const Rounding r = rounding()[0];
      for (int s = 0; s < samples; s++) out[s] = static_cast<T>(round_to_sample(sum[s], r));
    } else {
      for (int s = 0; s < samples; s++) out[s] = static_cast<T>(round_to_sample(sum[s], rounding()[s % channels]));
    }
  }
};

template <typename T, typename Acc>
class LinearOp {
 public:
  explicit LinearOp(const RowContext<T> &context)
      : context_(context),
        sum_(context.window, context.job.pass->mask[0], context.job.pass->width(), context.job.pass->height(),
             context.samples, context.channels),
        total_(context.samples) {}
  void enter(int y) { sum_.enter(y); }
  void filter(int y, T *out) {
    sum_.sum(y, total_.data());
    context_.round(y, total_.data(), out);
  }

 private:
  const RowContext<T> &context_;
  LinearSum<T, Acc> sum_;
  std::vector<Acc> total_;
};

template <typename T>
class MagnitudeOp {
 public:
  explicit MagnitudeOp(const RowContext<T> &context)
      : context_(context),
        x_(make_sum(context, 0)),
        y_(make_sum(context, 1)),
        gx_(context.samples),
        gy_(context.samples) {}
  void enter(int y) {
    x_.enter(y);
    y_.enter(y);
  }
  void filter(int y, T *out) {
    x_.sum(y, gx_.data());
    y_.sum(y, gy_.data());
    const Norm norm = context_.job.pass->norm;
    for (int s = 0; s < context_.samples; s++) gx_[s] = magnitude(norm, gx_[s], gy_[s]);
    context_.round(y, gx_.data(), out);
  }

 private:
  static LinearSum<T, int32_t> make_sum(const RowContext<T> &c, int which) {
    return {c.window, c.job.pass->mask[which], c.job.pass->width(), c.job.pass->height(), c.samples, c.channels};
  }
  const RowContext<T> &context_;
  LinearSum<T, int32_t> x_, y_;
  std::vector<int32_t> gx_, gy_;
};

template <typename T>
class CompassOp {
 public:
  explicit CompassOp(const RowContext<T> &context) : context_(context), response_(context.samples) {}
  void enter(int) {}
  void filter(int y, T *out) {
    const int c = context_.channels;
    const int32_t three_gain = context_.job.pass->mask[0].value[0], all_gain = context_.job.pass->mask[0].value[1];
    const T *a = context_.window[y - 1], *b = context_.window[y], *d = context_.window[y + 1];
    for (int s = 0; s < context_.samples; s++) {
      const int ring[8] = {a[s], a[s + c], a[s + 2 * c], b[s + 2 * c], d[s + 2 * c], d[s + c], d[s], b[s]};
      int all = 0, largest = 0;
      for (int k = 0; k < 8; k++) {
        all += ring[k];
        largest = std::max(largest, ring[k] + ring[(k + 1) % 8] + ring[(k + 2) % 8]);
      }
      response_[s] = three_gain * largest + all_gain * all;
    }
    context_.round(y, response_.data(), out);
  }

 private:
  const RowContext<T> &context_;
  std::vector<int32_t> response_;
};

template <typename T, bool kMaximum>
class ExtremumOp {
 public:
  explicit ExtremumOp(const RowContext<T> &context)
      : context_(context),
        pass_(*context.job.pass),
        row_extrema_(pass_.element.empty() ? context.samples : 0, pass_.height()),
        scratch_(context.window.stride()) {}

  void enter(int y) {
    if (!pass_.element.empty()) return;
    // Runs of 1, 2, 4, ... pixels, then two runs that together cover the width.
    const int c = context_.channels, width = pass_.width();
    T *__restrict__ run = scratch_.data();
    int length = 1, valid = context_.window.stride();
    std::memcpy(run, context_.window[y], valid * sizeof(T));
    while (2 * length <= width) {
      valid -= length * c;
      // In place: sample s reads only samples at and above s.
      for (int s = 0; s < valid; s++) run[s] = pick(run[s], run[s + length * c]);
      length *= 2;
    }
    T *__restrict__ out = row_extrema_[y];
    const int rest = (width - length) * c;
    for (int s = 0; s < context_.samples; s++) out[s] = pick(run[s], run[s + rest]);
  }

  void filter(int y, T *__restrict__ out) {
    bool first = true;
    const auto combine = [&](const T *__restrict__ in) {
      if (first)
        std::memcpy(out, in, context_.samples * sizeof(T));
      else
        for (int s = 0; s < context_.samples; s++) out[s] = pick(out[s], in[s]);
      first = false;
    };
    for (int j = 0; j < pass_.height(); j++) {
      const int at = y + j - pass_.radius_y;
      if (pass_.element.empty()) {
        combine(row_extrema_[at]);
        continue;
      }
      for (int i = 0; i < pass_.width(); i++)
        if (pass_.element[j * pass_.width() + i]) combine(context_.window[at] + i * context_.channels);
    }
  }

 private:
  static T pick(T a, T b) { return kMaximum ? std::max(a, b) : std::min(a, b); }
  const RowContext<T> &context_;
  const Pass &pass_;
  ValueRing<T> row_extrema_;
  std::vector<T> scratch_;
};

// The median is the largest value that at most half of the window lies below; found bit by bit, for a row at once.
template <typename T>
class MedianOp {
 public:
  explicit MedianOp(const RowContext<T> &context)
      : context_(context), candidate_(context.samples), below_(context.samples) {}
  void enter(int) {}
  void filter(int y, T *__restrict__ out) {
    const Pass &pass = *context_.job.pass;
    const int half = pass.width() * pass.height() / 2;
    int depth = 0;
    for (int c = 0; c < context_.channels; c++) depth = std::max<int>(depth, context_.job.layout->channel[c].depth);
    T *__restrict__ candidate = candidate_.data();
    uint8_t *__restrict__ below = below_.data();
    std::fill(out, out + context_.samples, 0);
    for (int bit = depth - 1; bit >= 0; bit--) {
      for (int s = 0; s < context_.samples; s++) candidate[s] = static_cast<T>(out[s] | 1 << bit);
      std::fill(below, below + context_.samples, 0);
      for (int j = -pass.radius_y; j <= pass.radius_y; j++)
        for (int i = 0; i < pass.width(); i++) {
          const T *__restrict__ in = context_.window[y + j] + i * context_.channels;
          for (int s = 0; s < context_.samples; s++) below[s] = static_cast<uint8_t>(below[s] + (in[s] < candidate[s]));
        }
      for (int s = 0; s < context_.samples; s++) out[s] = below[s] <= half ? candidate[s] : out[s];
    }
  }

 private:
  const RowContext<T> &context_;
  std::vector<T> candidate_;
  std::vector<uint8_t> below_;
};

template <typename T>
class DifferenceOp {
 public:
  explicit DifferenceOp(const RowContext<T> &context) : context_(context), subtrahend_(context.samples) {}
  void enter(int) {}
  void filter(int y, T *__restrict__ out) {
    const Job &job = context_.job;
    unpack_row(*job.layout, job.subtrahend.data + y * job.subtrahend.pitch, subtrahend_.data());
    const T *__restrict__ minuend = context_.window[y];
    for (int s = 0; s < context_.samples; s++)
      out[s] = static_cast<T>(minuend[s] > subtrahend_[s] ? minuend[s] - subtrahend_[s] : 0);
  }

 private:
  const RowContext<T> &context_;
  std::vector<T> subtrahend_;
};

// Which pixels of row y lie where regions let the filter work.
void mark_row(const Job &job, int y, std::vector<uint8_t> &filtered) {
  std::fill(filtered.begin(), filtered.end(), job.regions->invert);
  for (const PartRegion &r : job.region) {
    if (y < r.y || y >= r.y + r.height) continue;
    const int end = std::min<int>(r.x + r.width, job.layout->width);
    for (int x = std::max(r.x, 0); x < end; x++)
      if (in_region(r, job.regions->ellipse, x, y)) filtered[x] = !job.regions->invert;
  }
}

// Replaces what is not filtered in a row of results: copied and filled channels, and the pixels that border=keep
// copies.
template <typename T>
void merge_row(const Job &job, int y, const T *original, T *out) {
  const PlaneLayout &layout = *job.layout;
  const Pass &pass = *job.pass;
  const int channels = layout.channels;
  const bool keep_row = y < pass.keep_y || y >= job.part.height - pass.keep_y;
  const int kept = keep_row ? layout.width : std::min(pass.keep_x, layout.width);
  for (int c = 0; c < channels; c++) {
    switch (job.plan->action[job.part.plane][c]) {
      case Action::Fill: {
        const T fill = static_cast<T>(job.plan->fill[job.part.plane][c]);
        for (int x = 0; x < layout.width; x++) out[x * channels + c] = fill;
        break;
      }
      case Action::Copy:
        for (int x = 0; x < layout.width; x++) out[x * channels + c] = original[x * channels + c];
        break;
      case Action::Filter:
        for (int x = 0; x < kept; x++) out[x * channels + c] = original[x * channels + c];
        for (int x = std::max(kept, layout.width - kept); x < layout.width; x++)
          out[x * channels + c] = original[x * channels + c];
        break;
    }
  }
}

template <typename T, typename OpType>
void run_op(const Job &job, int begin, int end) {
  const PlaneLayout &layout = *job.layout;
  const int channels = layout.channels, samples = layout.width * channels, radius = job.pass->radius_y;
  const Action *action = job.plan->action[job.part.plane];
  const bool merges = job.pass->keep_x || job.pass->keep_y ||
                      !std::all_of(action, action + channels, [](Action a) { return a == Action::Filter; });

  RowWindow<T> window(job);
  const RowContext<T> context = {job, window, channels, samples, job.pass->radius_x * channels};
  OpType op(context);
  std::vector<T> result(samples), original(merges || job.regions ? samples : 0);
  std::vector<uint8_t> filtered(job.regions ? layout.width : 0);
  for (int y = begin - radius; y < begin + radius; y++) {
    window.enter(y);
    op.enter(y);
  }
  for (int y = begin; y < end; y++) {
    window.enter(y + radius);
    op.enter(y + radius);
    op.filter(y, result.data());
    if (merges) {
      unpack_row(layout, job.copy.data + y * job.copy.pitch, original.data());
      merge_row(job, y, original.data(), result.data());
    }
    if (job.regions) {
      mark_row(job, y, filtered);
      unpack_row(layout, job.input.data + y * job.input.pitch, original.data());
      for (int s = 0; s < samples; s++)
        if (!filtered[s / channels]) result[s] = original[s];
    }
    pack_row(layout, result.data(), job.target.data + y * job.target.pitch);
  }
}

// A part of which no channel is filtered.
template <typename T>
void copy_rows(const Job &job, int begin, int end) {
  std::vector<T> row(job.layout->width * job.layout->channels);
  for (int y = begin; y < end; y++) {
    unpack_row(*job.layout, job.copy.data + y * job.copy.pitch, row.data());
    merge_row(job, y, row.data(), row.data());
    pack_row(*job.layout, row.data(), job.target.data + y * job.target.pitch);
  }
}

template <typename T>
void run_band(const Job &job, int begin, int end) {
  const Action *action = job.plan->action[job.part.plane];
  if (!job.regions && std::none_of(action, action + job.layout->channels, [](Action a) { return a == Action::Filter; }))
    return copy_rows<T>(job, begin, end);
  switch (job.pass->op) {
    case Op::Linear:
      return job.pass->wide ? run_op<T, LinearOp<T, int64_t>>(job, begin, end)
                            : run_op<T, LinearOp<T, int32_t>>(job, begin, end);
    case Op::Magnitude:
      return run_op<T, MagnitudeOp<T>>(job, begin, end);
    case Op::Compass:
      return run_op<T, CompassOp<T>>(job, begin, end);
    case Op::Minimum:
      return run_op<T, ExtremumOp<T, false>>(job, begin, end);
    case Op::Maximum:
      return run_op<T, ExtremumOp<T, true>>(job, begin, end);
    case Op::Median:
      return run_op<T, MedianOp<T>>(job, begin, end);
    case Op::Difference:
      return run_op<T, DifferenceOp<T>>(job, begin, end);
  }
}

class CpuBackend : public Backend {
 public:
  CpuBackend(ParallelFor parallel_for, int threads)
      : parallel_for_(std::move(parallel_for)), threads_(std::max(1, threads)) {}

  const char *name() const override { return "cpu"; }
  bool accepts_device_frames() const override { return false; }

  Ticket submit(std::shared_ptr<const Plan> plan, const FrameView &src, const FrameView &dst,
                const Regions &regions) override {
    if (src.on_device || dst.on_device)
      throw Error(Error::Kind::Device, "the CPU backend was given a frame in device memory");
    prepare_temporaries(*plan);
    for (const Pass &pass : plan->passes) run_pass(*plan, pass, src, dst, regions);
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.frames++;
    return ++last_ticket_;
  }

  void retire(Ticket) override {}  // submit returns with the frame complete

  // There is one way for each operation here; the methods differ in where a GPU reads its samples from.
  Method method_of(const Plan &plan) const override {
    if (plan.method != Method::Auto) return plan.method;
    return plan.passes[0].separable() ? Method::Separable : Method::Constant;
  }

  BackendStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

 private:
  struct Temporary {
    std::vector<uint8_t> memory[kMaxPlanes];
    FrameView view;
  };

  void prepare_temporaries(const Plan &plan) {
    temporaries_.resize(plan.temporaries);
    for (Temporary &t : temporaries_)
      for (int p = 0; p < plan.layout.planes; p++) {
        const PlaneLayout &layout = plan.layout.plane[p];
        const size_t pitch =
            static_cast<size_t>(layout.first + layout.width * layout.step) * layout.bytes_per_container();
        const size_t bytes = pitch * layout.height;
        // Views that share memory in the frame need not share it here, but must not lie in one another's way.
        if (t.memory[p].size() < bytes) t.memory[p].resize(bytes);
        t.view.plane[p] = {t.memory[p].data(), static_cast<ptrdiff_t>(pitch)};
      }
  }

  // Where part `part` of buffer `index` begins.
  PlaneView part_of(const Plan &plan, const Plan::Part &part, int index, const FrameView &src,
                    const FrameView &dst) const {
    PlaneView view = index == Pass::kInput    ? src.plane[plan.layout.plane[part.plane].memory_plane]
                     : index == Pass::kOutput ? dst.plane[plan.layout.plane[part.plane].memory_plane]
                                              : temporaries_[index - 1].view.plane[part.plane];
    view.data += part.first_row * view.pitch;
    view.pitch *= part.row_step;
    return view;
  }

  void run_pass(const Plan &plan, const Pass &pass, const FrameView &src, const FrameView &dst,
                const Regions &regions) {
    struct Task {
      Job job;
      int begin, end;
    };
    std::vector<Task> tasks;
    for (const Plan::Part &part : plan.parts) {
      Job job = {&plan, &pass, part, &plan.layout.plane[part.plane], {}, {}, {}, {}, {}, nullptr, {}};
      job.source = part_of(plan, part, pass.source, src, dst);
      job.subtrahend = part_of(plan, part, pass.subtrahend, src, dst);
      job.copy = part_of(plan, part, pass.copy_source, src, dst);
      job.input = part_of(plan, part, Pass::kInput, src, dst);
      if (regions.active && pass.in_regions) {
        job.regions = &regions;
        job.region = regions_of_part(regions, *job.layout, part);
      }
      job.target = part_of(plan, part, pass.target, src, dst);
      // A band repeats the work of its halo: not too many of them, nor too few to share out.
      const int bands = std::max(1, std::min(threads_, part.height / (16 + pass.height())));
      for (int b = 0; b < bands; b++)
        tasks.push_back({job, static_cast<int>(int64_t{part.height} * b / bands),
                         static_cast<int>(int64_t{part.height} * (b + 1) / bands)});
    }
    parallel_for_(static_cast<int>(tasks.size()), [&](int i) {
      const Task &task = tasks[i];
      if (task.job.layout->container == Container::U8 && task.job.layout->dense())
        run_band<uint8_t>(task.job, task.begin, task.end);
      else
        run_band<uint16_t>(task.job, task.begin, task.end);
    });
  }

  ParallelFor parallel_for_;
  int threads_;
  std::vector<Temporary> temporaries_;
  mutable std::mutex mutex_;
  BackendStats stats_;
  Ticket last_ticket_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ParallelFor parallel_for, int threads) {
  return std::make_unique<CpuBackend>(std::move(parallel_for), threads);
}

}  // namespace cudaconv
