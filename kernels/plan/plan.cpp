// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "error.h"
#include "export.h"
#include "plan/bilateral.h"
#include "plan/decimation.h"
#include "plan/linear_compiler.h"
#include "plan/masks.h"
#include "plan/messages.h"
#include "plan/weighted.h"

namespace cudaconv {

namespace {

constexpr int kLargestOfMethods = 127;  // largest side of a window for methods other than auto
// Most bytes of a row, and most rows: twice as many, the period of border=reflect, still fit an int.
constexpr int64_t kLongestSide = (1 << 30) - 1;

class Builder {
 public:
  Builder(const FilterSettings &settings, const FrameLayout &layout) : s_(settings), plan_(std::make_shared<Plan>()) {
    plan_->layout = layout;
    plan_->border = s_.border;
    plan_->method = s_.method;
  }

  std::shared_ptr<const Plan> build() {
    check_settings();
    list_parts();
    plan_->memory = memory_planes_of(plan_->layout);
    choose_actions();
    list_passes();
    add_threshold();
    check_method();
    return plan_;
  }

 private:
  void check_settings() const {
    if (s_.iterations < 1) refuse("iterations=" + std::to_string(s_.iterations) + " is invalid; use 1 or more");
    if (!(std::fabs(s_.bias) <= 1)) refuse("bias=" + number_text(s_.bias) + " is outside -1 to 1");
    if (!(std::fabs(s_.divisor) <= kLargestDivisor))
      refuse("divisor=" + number_text(s_.divisor) + " is outside -" + number_text(kLargestDivisor) + " to " +
             number_text(kLargestDivisor));
    if (!(s_.threshold >= 0 && s_.threshold <= 1))
      refuse("threshold=" + number_text(s_.threshold) + " is outside 0 to 1");
    const Coefficients &c = s_.coefficients;
    if (!c.value.empty() &&
        (c.width < 1 || c.height < 1 || c.width % 2 == 0 || c.height % 2 == 0 || c.width > kLargestDense ||
         c.height > kLargestDense || c.value.size() != static_cast<size_t>(c.width) * c.height))
      refuse("coefficients: a mask of " + std::to_string(c.width) + "x" + std::to_string(c.height) +
             " is not supported; both sides must be odd and at most " + std::to_string(kLargestDense));
  }

  void list_parts() {
    const FrameLayout &layout = plan_->layout;
    if (layout.planes < 1 || layout.planes > kMaxPlanes)
      throw Error(Error::Kind::Format, "the format has " + std::to_string(layout.planes) + " planes; 1 to " +
                                           std::to_string(kMaxPlanes) + " can be filtered");
    for (int p = 0; p < layout.planes; p++) {
      const PlaneLayout &plane = layout.plane[p];
      if (plane.width < 1 || plane.height < 1 || plane.channels < 1 || plane.channels > kMaxChannels)
        throw Error(Error::Kind::Format, "plane " + std::to_string(p) + " has " + std::to_string(plane.width) + "x" +
                                             std::to_string(plane.height) + " pixels of " +
                                             std::to_string(plane.channels) + " channels; at least 1x1 of 1 to " +
                                             std::to_string(kMaxChannels) + " can be filtered");
      if (std::max<int64_t>(int64_t{plane.width} * plane.step * plane.bytes_per_container(), plane.height) >
          kLongestSide)
        throw Error(Error::Kind::Format, "a frame of " + std::to_string(layout.width()) + "x" +
                                             std::to_string(layout.height()) + " pixels is too large: at most " +
                                             std::to_string(kLongestSide) + " rows, of as many bytes, can be filtered");
      const int fields = layout.interlaced ? 2 : 1;
      for (int f = 0; f < fields; f++) {
        const int height = (plane.height - f + fields - 1) / fields;
        if (height > 0) plan_->parts.push_back({p, f, fields, height});
      }
    }
  }

  int channels_of(Role role) const {
    int count = 0;
    for (const PlaneLayout &plane : plan_->layout.plane)
      for (int c = 0; c < plane.channels; c++) count += plane.channel[c].role == role;
    return count;
  }

  void choose_actions() {
    Chroma chroma = s_.chroma;
    if (chroma == Chroma::Auto) chroma = mask_is_edge_detector(s_.mask) ? Chroma::Neutral : Chroma::Filter;
    if (s_.mask == Mask::Identity) chroma = Chroma::Copy;
    const FrameLayout &layout = plan_->layout;
    const bool is_rgb = channels_of(Role::Luma) > 1;
    for (int p = 0; p < layout.planes; p++)
      for (int c = 0; c < layout.plane[p].channels; c++) {
        const ChannelLayout &channel = layout.plane[p].channel[c];
        const bool copies = s_.mask == Mask::Identity || channel.role == Role::Padding ||
                            (channel.role == Role::Luma && s_.luma == Luma::Copy && !is_rgb) ||
                            (channel.role == Role::Chroma && chroma == Chroma::Copy) ||
                            (channel.role == Role::Alpha && s_.alpha == Alpha::Copy);
        Action &action = plan_->action[p][c];
        action = copies ? Action::Copy : Action::Filter;
        if (s_.mask == Mask::Fill) {
          action = Action::Fill;
          plan_->fill[p][c] = layout.plane[p].fill_value[c];
        } else if (channel.role == Role::Chroma && chroma == Chroma::Neutral) {
          action = Action::Fill;
          plan_->fill[p][c] = static_cast<uint16_t>(1 << (channel.depth - 1));
        }
      }
  }

  bool filters() const { return s_.mask != Mask::Identity && s_.mask != Mask::Fill; }

  int new_buffer() { return ++plan_->temporaries; }

  // Appends `count` copies of pass `model`, from `source` through temporary frames to `target`.
  void chain(const Pass &model, int count, int source, int target) {
    int buffers[2] = {0, 0};
    for (int i = 0; i < count; i++) {
      Pass pass = model;
      pass.source = pass.copy_source = source;
      if (i == count - 1) {
        pass.target = target;
      } else {
        int &buffer = buffers[i % 2];
        if (!buffer) buffer = new_buffer();
        pass.target = buffer;
      }
      source = pass.target;
      plan_->passes.push_back(std::move(pass));
    }
  }

  void set_keep(Pass &pass, int times = 1) const {
    if (s_.border != Border::Keep) return;
    pass.keep_x = times * pass.radius_x;
    pass.keep_y = times * pass.radius_y;
  }

  void list_passes() {
    Pass pass;
    for (int p = 0; p < plan_->layout.planes; p++)
      for (int c = 0; c < plan_->layout.plane[p].channels; c++)
        pass.rounding[p][c] = make_rounding(2, plan_->layout.plane[p].channel[c].depth, 0, false, false);
    const MaskKind kind = mask_kind(s_.mask);
    if (s_.alpha == Alpha::Weighted && filters() && kind != MaskKind::Bilateral && alpha_of(plan_->layout).plane >= 0) {
      compile_weighted(s_, plan_->layout, pass);
      set_keep(pass);
      chain(pass, s_.iterations, Pass::kInput, Pass::kOutput);
      return;
    }
    int count = s_.iterations;
    switch (kind) {
      case MaskKind::Identity:
      case MaskKind::Fill:  // no channel is filtered
        pass.mask[0].value = {2};
        count = 1;
        break;
      case MaskKind::Linear:
      case MaskKind::Magnitude:
      case MaskKind::Compass:
        compile_linear(s_, plan_->layout, pass);
        break;
      case MaskKind::Median: {
        pass.op = Op::Median;
        const WindowSize size = window_size_of(s_);
        pass.radius_x = size.width / 2;
        pass.radius_y = size.height / 2;
        break;
      }
      case MaskKind::Bilateral:
        compile_bilateral(s_, plan_->layout, pass);
        break;
      case MaskKind::Mosaic: {
        // A mosaic ignores iterations: the mean of a block of means is that mean.
        const WindowSize block = window_size_of(s_);
        pass.op = Op::Mosaic;
        pass.block_x = block.width;
        pass.block_y = block.height;
        count = 1;
        break;
      }
      case MaskKind::Morphology:
        list_morphology(pass);
        return;
    }
    set_keep(pass);
    if (pass.decimation) {
      pass.radius_x = pass.decimation->reach();
      pass.radius_y = pass.decimation_y->reach();
    }
    chain(pass, count, Pass::kInput, Pass::kOutput);
  }

  // Lists the passes of a morphological filter. `pass` has its roundings already.
  void list_morphology(Pass pass) {
    const Window window = window_of(s_);
    pass.radius_x = window.size.width / 2;
    pass.radius_y = window.size.height / 2;
    pass.element = window.member;
    set_keep(pass);
    Pass erode = pass, dilate = pass;
    erode.op = Op::Minimum;
    dilate.op = Op::Maximum;
    // Appends the last pass, minuend - subtrahend. `depth`: the number of passes, one after the other, before its
    // operands.
    const auto difference = [&](int minuend, int subtrahend, int depth) {
      Pass last = pass;
      last.op = Op::Difference;
      last.source = minuend;
      last.operand = subtrahend;
      last.target = Pass::kOutput;
      last.element.clear();
      set_keep(last, depth);
      last.radius_x = last.radius_y = 0;
      plan_->passes.push_back(std::move(last));
    };
    const int n = s_.iterations, out = Pass::kOutput, in = Pass::kInput;
    const bool dilates = s_.mask == Mask::Dilate || s_.mask == Mask::Close || s_.mask == Mask::Blackhat;
    const Pass &first = dilates ? dilate : erode;
    // The second step of an opening or closing turns the element by 180 degrees: only then do both steps cover the same
    // pixels, so that open <= source <= close, and both repeat to themselves.
    Pass second = dilates ? erode : dilate;
    std::reverse(second.element.begin(), second.element.end());
    switch (s_.mask) {
      case Mask::Gradient: {
        const int upper = new_buffer(), lower = new_buffer();
        chain(dilate, n, in, upper);
        chain(erode, n, in, lower);
        difference(upper, lower, n);
        break;
      }
      case Mask::Open:
      case Mask::Close: {
        const int middle = new_buffer();
        chain(first, n, in, middle);
        chain(second, n, middle, out);
        break;
      }
      case Mask::Tophat:
      case Mask::Blackhat: {
        const int middle = new_buffer(), result = new_buffer();
        chain(first, n, in, middle);
        chain(second, n, middle, result);
        dilates ? difference(result, in, 2 * n) : difference(in, result, 2 * n);
        break;
      }
      default:
        chain(first, n, in, out);
        return;
    }
    // Regions apply only to the last result of the filter, not to the passes that lead to it.
    for (Pass &each : plan_->passes) each.in_regions = each.target == Pass::kOutput;
  }

  // Makes the result of each run of the filter the source of a pass that compares it with the run's input.
  void add_threshold() {
    if (!filters() || s_.threshold == 0) return;
    Pass compare;
    compare.op = Op::Threshold;
    for (int p = 0; p < plan_->layout.planes; p++)
      for (int c = 0; c < plan_->layout.plane[p].channels; c++) {
        Rounding &rounding = compare.rounding[p][c] = plan_->passes[0].rounding[p][c];
        // A difference that is as large as the threshold but for the threshold's own rounding is not larger.
        constexpr double kEqual = 1e-6;  // codes
        rounding.threshold = static_cast<uint16_t>(s_.threshold * rounding.max + kEqual);
      }
    compare.source = new_buffer();
    std::vector<Pass> passes;
    for (Pass &pass : plan_->passes) {
      passes.push_back(std::move(pass));
      Pass &last = passes.back();
      if (!last.in_regions) continue;
      compare.target = last.target;
      last.target = compare.source;
      last.in_regions = false;
      passes.push_back(compare);
      compare.operand = compare.copy_source = compare.target;
    }
    plan_->passes = std::move(passes);
  }

  static bool can(Method method, const Pass &pass) {
    if (pass.op == Op::Mosaic || pass.reads_alpha() || pass.reads_colours())
      return method == Method::Auto || method == Method::Constant;
    // A blur through a smaller frame reads the same samples with every method.
    if (pass.op == Op::Blur) return method != Method::Cascade;
    if (pass.op == Op::Linear && std::max(pass.width(), pass.height()) > kLargestOfMethods)
      return method == Method::Auto;
    switch (method) {
      case Method::Separable:
        return pass.separable();
      case Method::Cascade:
        return (pass.op == Op::Minimum || pass.op == Op::Maximum) && pass.element.empty() && pass.radius_x == 2 &&
               pass.radius_y == 2;
      default:
        return true;
    }
  }

  bool can(Method method) const {
    return std::all_of(plan_->passes.begin(), plan_->passes.end(),
                       [&](const Pass &pass) { return pass.is_pointwise() || can(method, pass); });
  }

  void check_method() const {
    if (!filters() || can(s_.method)) return;
    std::string able;
    for (const Named<Method> &m : kMethodNames)
      if (can(m.value)) able += (able.empty() ? "" : ", ") + std::string(m.nick);
    std::string why;
    if (s_.method == Method::Separable) why = ": the mask is not separable";
    for (const Pass &pass : plan_->passes)
      if (pass.op == Op::Linear && std::max(pass.width(), pass.height()) > kLargestOfMethods)
        why = ": its window has " + std::to_string(pass.width()) + "x" + std::to_string(pass.height()) +
              " pixels, methods other than auto take at most " + std::to_string(kLargestOfMethods);
    if (s_.method == Method::Cascade) why = ": it needs dilate or erode of size 5 with shape=rect";
    if (plan_->passes[0].reads_colours()) why = " of RGB";
    if (plan_->passes[0].reads_alpha()) why = " with alpha=weighted";
    refuse(std::string("method=") + method_nick(s_.method) + " does not support mask=" + mask_nick(s_.mask) + why +
           "; use method=" + able);
  }

  const FilterSettings &s_;
  std::shared_ptr<Plan> plan_;
};

}  // namespace

bool IntegerMask::uniform() const {
  const auto alike = [](const std::vector<int32_t> &line) {
    return std::all_of(line.begin(), line.end(), [&](int32_t c) { return c == line[0]; });
  };
  return separable() && !row_shift && alike(row) && alike(column);
}

int64_t IntegerMask::row_sum(int64_t sample) const {
  const int64_t half = int64_t{1} << row_shift >> 1;
  return (sample * std::accumulate(row.begin(), row.end(), int64_t{0}) + half) >> row_shift;
}

bool Pass::separable() const {
  switch (op) {
    case Op::Linear:
    case Op::WeightedMean:
      return mask[0].separable();
    case Op::Magnitude:
      return mask[0].separable() && mask[1].separable();
    case Op::Minimum:
    case Op::Maximum:
      return element.empty();
    default:
      return false;
  }
}

bool Pass::reads_colours() const {
  return op == Op::Bilateral && bilateral->is_rgb;
}

namespace {

// The bytes of a row that hold a channel: `size` bytes of each pixel, `step` bytes apart.
struct ChannelBytes {
  size_t begin, end, size, step;

  bool has(size_t byte) const { return byte >= begin && byte < end && (byte - begin) % step < size; }
};

}  // namespace

std::vector<MemoryPlane> memory_planes_of(const FrameLayout &layout) {
  int count = 0;
  for (int i = 0; i < layout.planes; i++) count = std::max(count, layout.plane[i].memory_plane + 1);
  std::vector<MemoryPlane> planes(count);
  for (int m = 0; m < count; m++) {
    MemoryPlane &plane = planes[m];
    std::vector<ChannelBytes> channels;
    // Bytes from `begin` to `end` belong to all channels, and repeat after each period.
    size_t period = 1, begin = 0, end = SIZE_MAX;
    for (int i = 0; i < layout.planes; i++) {
      const PlaneLayout &view = layout.plane[i];
      if (view.memory_plane != m) continue;
      plane.height = std::max(plane.height, view.height);
      const bool words = view.container == Container::Packed32;  // each holds all channels of a pixel
      const size_t size = view.bytes_per_container(), step = words ? size : view.step * size;
      period = std::lcm(period, step);
      for (int c = 0; c < (words ? 1 : view.channels); c++) {
        const size_t first = (view.first + (words ? 0 : view.channel[c].offset)) * size;
        channels.push_back({first, first + view.width * step, size, step});
        plane.row_bytes = std::max(plane.row_bytes, channels.back().end - step + size);
        begin = std::max(begin, first);
        end = std::min(end, channels.back().end);
      }
    }
    const auto used = [&](size_t byte) {
      return std::any_of(channels.begin(), channels.end(), [&](const ChannelBytes &c) { return c.has(byte); });
    };
    bool gapless = true;
    for (size_t b = begin; b < begin + period; b++) gapless = gapless && used(b);
    for (size_t b = 0, next; b < plane.row_bytes; b = next) {
      next = gapless && b >= begin && b < end ? end : b + 1;
      if (!used(b)) continue;
      if (!plane.runs.empty() && plane.runs.back().begin + plane.runs.back().length == b)
        plane.runs.back().length += next - b;
      else
        plane.runs.push_back({b, next - b});
    }
  }
  return planes;
}

std::string describe(const Plan &plan) {
  static const char *const kOps[] = {"linear",     "magnitude", "compass", "minimum", "maximum",       "median",
                                     "difference", "threshold", "mosaic",  "blur",    "weighted-mean", "bilateral"};
  const auto size = [](int width, int height) { return std::to_string(width) + "x" + std::to_string(height); };
  const auto buffer = [](int index) {
    return index == Pass::kInput ? "in" : index == Pass::kOutput ? "out" : "t" + std::to_string(index);
  };
  std::string text =
      std::string("method=") + method_nick(plan.method) + " border=" + border_nick(plan.border) + " parts=";
  for (const Plan::Part &part : plan.parts)
    text += (&part == plan.parts.data() ? "" : ",") + size(plan.layout.plane[part.plane].width, part.height);
  for (const Pass &pass : plan.passes) {
    text += "; " + std::string(kOps[static_cast<int>(pass.op)]) + " ";
    text += pass.op == Op::Mosaic ? size(pass.block_x, pass.block_y) : size(pass.width(), pass.height());
    if (pass.separable()) text += " separable";
    if (pass.op <= Op::Compass) text += pass.wide || pass.has_gain() ? " 64-bit" : " 32-bit";
    if (pass.op == Op::WeightedMean) text += " " + std::to_string(pass.sum_bits) + "-bit";
    text += " " + buffer(pass.source) + (pass.is_pointwise() ? "-" + buffer(pass.operand) : "") + "->" +
            buffer(pass.target);
  }
  return text;
}

CUDACONV_EXPORT std::shared_ptr<const Plan> make_plan(const FilterSettings &settings, const FrameLayout &layout) {
  return Builder(settings, layout).build();
}

}  // namespace cudaconv
