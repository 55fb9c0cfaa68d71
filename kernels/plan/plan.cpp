// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/plan.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>

#include "error.h"
#include "plan/masks.h"
#include "plan/messages.h"

namespace cudaconv {

namespace {

// The largest side of a mask that is kept as a matrix; larger ones are kept by their factors.
constexpr int kLargestDense = 31;
// Integer coefficients up to here are kept as they are: doubled, they fit 32 bits.
constexpr double kLargestInteger = (1 << 30) - 1;
// Divisors up to here leave a sum of 16-bit samples its 63 bits, with every scale below.
constexpr double kLargestDivisor = 0x1p32;
// Codes by which the fixed-point form of a real mask may be off before the final rounding, which adds a half.
constexpr double kErrorAllowed = 0.45;

// By which a blur can be multiplied, 2^15 times the error that remains of its rows' sums.
constexpr double kLargestGain = kErrorAllowed * (1 << 15);

constexpr double kNarrowMax = INT32_MAX;
constexpr double kWideMax = 4.6e18;  // a little below 2^62

bool is_integer(double v) {
  return std::fabs(v) <= kLargestInteger && v == std::floor(v);
}

// The largest depth in the layout: what a mask has to be accurate for.
int largest_depth(const FrameLayout &layout) {
  int depth = 0;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) depth = std::max<int>(depth, layout.plane[p].channel[c].depth);
  return depth;
}

Rounding make_rounding(int64_t divisor, int depth, double bias, bool absolute, bool wide) {
  Rounding r;
  r.max = (1 << depth) - 1;
  r.half = divisor / 2;
  r.offset = std::llround(static_cast<long double>(bias) * (r.max + 1) * divisor);
  r.limit = (static_cast<int64_t>(r.max) + 1) * divisor - 1;
  r.absolute = absolute;
  r.wide = wide;
  const int bits = wide ? 64 : 32;
  const int log = ceil_log2(divisor);
  const int power = bits - 1 + log;  // magic = ceil(2^power / divisor) takes at most `bits` bits
  const unsigned __int128 numerator = static_cast<unsigned __int128>(1) << power;
  r.magic = static_cast<uint64_t>((numerator + divisor - 1) / divisor);
  r.shift = power - bits;
  return r;
}

// Whether a sum of at most `sum` in magnitude stays within 32 bits through round_to_sample.
bool fits_narrow(double sum, int64_t divisor, int depth, double bias) {
  const double codes = std::ldexp(1.0, depth);
  return sum + (std::fabs(bias) * codes + 0.5) * divisor + 1 <= kNarrowMax && codes * divisor <= kNarrowMax + 1.0;
}

double absolute_sum(const std::vector<int32_t> &v) {
  double sum = 0;
  for (int32_t c : v) sum += std::fabs(static_cast<double>(c));
  return sum;
}

// value = column x row in integers, where there are such: the first row with a non-zero coefficient, divided by the
// greatest common divisor of its coefficients, has to divide every other row.
void factorise(IntegerMask &mask, int width, int height) {
  const auto at = [&](int j, int i) -> int64_t { return mask.value[static_cast<size_t>(j) * width + i]; };
  int lead = 0;
  int64_t divisor = 0;
  for (; lead < height; lead++) {
    divisor = 0;
    for (int i = 0; i < width; i++) divisor = std::gcd(divisor, at(lead, i));
    if (divisor) break;
  }
  if (!divisor) return;
  std::vector<int32_t> row(width), column(height);
  int pivot = 0;
  for (int i = 0; i < width; i++) {
    row[i] = static_cast<int32_t>(at(lead, i) / divisor);
    if (row[i] && !row[pivot]) pivot = i;
  }
  for (int j = 0; j < height; j++) {
    if (at(j, pivot) % row[pivot]) return;
    column[j] = static_cast<int32_t>(at(j, pivot) / row[pivot]);
    for (int i = 0; i < width; i++)
      if (static_cast<int64_t>(column[j]) * row[i] != at(j, i)) return;
  }
  mask.row = std::move(row);
  mask.column = std::move(column);
}

// Turns a real mask into integers, which decides alone about every byte that follows: it knows the mask and the depth,
// not the method or the backend.
class LinearCompiler {
 public:
  LinearCompiler(const FilterSettings &settings, const FrameLayout &layout, Pass &pass)
      : s_(settings),
        layout_(layout),
        pass_(pass),
        depth_(largest_depth(layout)),
        largest_(std::ldexp(1.0, depth_) - 1) {
    switch (s_.negative) {
      case Negative::Auto:
        absolute_ = mask_is_absolute(s_.mask);
        break;
      case Negative::Clamp:
        absolute_ = false;
        break;
      case Negative::Absolute:
        absolute_ = true;
        break;
    }
  }

  void compile() {
    if (s_.mask == Mask::Kirsch) {
      pass_.op = Op::Compass;
      pass_.radius_x = pass_.radius_y = 1;
      compile_integers({}, s_.divisor ? s_.divisor : 1, 30 * largest_);
      return;
    }
    const std::vector<RealMask> masks = linear_masks(s_);
    const RealMask &first = masks[0];
    pass_.op = masks.size() == 2 ? Op::Magnitude : Op::Linear;
    pass_.radius_x = first.width / 2;
    pass_.radius_y = first.height / 2;
    pass_.norm = s_.magnitude == Magnitude::L1 ? Norm::L1 : absolute_ && s_.bias < 0 ? Norm::L2Fraction : Norm::L2;
    const double divisor = s_.divisor ? s_.divisor : first.divisor;

    if (first.value.empty()) {
      compile_factors(first, divisor);
    } else if (std::all_of(masks.begin(), masks.end(),
                           [](const RealMask &m) { return std::all_of(m.value.begin(), m.value.end(), is_integer); })) {
      double sum = 0;
      for (double v : first.value) sum += std::fabs(v);
      compile_integers(masks, divisor, (masks.size() == 2 ? 2 : 1) * sum * largest_);
    } else {
      compile_reals(first, divisor);
    }
  }

 private:
  // Integer coefficients, divided by any number: exact where that is an integer too. `sum` bounds the sum's magnitude.
  void compile_integers(const std::vector<RealMask> &masks, double divisor, double sum) {
    int sign = 1;  // of the coefficients
    if (divisor < 0) {
      divisor = -divisor;
      if (pass_.op == Op::Magnitude)
        refuse("divisor=" + number_text(s_.divisor) + " with mask=" + mask_nick(s_.mask) +
               ": a magnitude has no sign; the divisor has to be above 0");
      if (pass_.op == Op::Linear)
        sign = -1;
      else
        pass_.sum_gain = -1;
    }
    int scale = 1;
    int64_t d;
    if (divisor == std::floor(divisor)) {
      d = static_cast<int64_t>(divisor);
      scale = d % 2 ? 2 : 1;  // an even divisor has an exact half
      d *= scale;
    } else {
      // The divisor's fraction moves into the gain. A magnitude is itself rounded down to an integer, so it gets eight
      // bits of fraction first.
      const int bits = pass_.op == Op::Magnitude ? 8 : 0;
      scale = 1 << bits;
      int gain_bits = 40;
      while (gain_bits > 0 && (std::ldexp(sum, gain_bits + bits + 1) > kWideMax ||
                               std::ldexp(divisor, gain_bits + bits + depth_ + 2) > kWideMax))
        gain_bits--;
      pass_.sum_gain *= int64_t{1} << gain_bits;
      d = 2 * std::llround(std::ldexp(divisor, gain_bits + bits - 1));
      // d is off by at most 1, which at the largest sample value makes 2^depth / d codes.
      const double least = std::max(std::ldexp(8, depth_ - gain_bits - bits), bits ? 1.0 / 64 : 0);
      if (divisor < least)
        refuse("divisor=" + number_text(s_.divisor ? s_.divisor : divisor) +
               " is too small for what the mask adds up to: the least is " + number_text(least));
    }
    sum *= scale;
    for (size_t m = 0; m < masks.size(); m++) {
      IntegerMask &mask = pass_.mask[m];
      for (double v : masks[m].value) mask.value.push_back(static_cast<int32_t>(sign * scale * v));
      factorise(mask, pass_.width(), pass_.height());
    }
    // A response is 8 * (three neighbours in a row) - 3 * (all eight): two numbers instead of eight masks.
    if (pass_.op == Op::Compass) pass_.mask[0].value = {scale * 8, scale * -3};
    if (pass_.op == Op::Magnitude && pass_.norm == Norm::L2Fraction) {
      sum *= 2;
      d *= 2;
    }
    if (pass_.op == Op::Linear && masks[0].width * masks[0].height > kLargestDense * kLargestDense)
      pass_.mask[0].value.clear();
    finish(sum, d);
  }

  // A matrix of real coefficients: fixed point with as many bits as 16-bit integers have, which is what the matrix
  // instructions and the CPU's are fast with, or else as the accumulator leaves.
  void compile_reals(const RealMask &real, double divisor) {
    double sum = 0, largest = 0;
    int taps = 0;
    for (double v : real.value) {
      sum += std::fabs(v / divisor);
      largest = std::max(largest, std::fabs(v / divisor));
      taps += v != 0;
    }
    const auto error = [&](int bits) {
      double off = 0;
      for (double v : real.value) {
        const double exact = std::ldexp(v / divisor, bits);
        off += std::fabs(std::round(exact) - exact);
      }
      return std::ldexp(off * largest_ + (s_.bias != 0) * 0.5, -bits);
    };
    const auto total = [&](int bits) { return std::ldexp(sum, bits) * largest_ + taps * largest_; };
    const auto fits = [&](int bits) { return fits_narrow(total(bits), int64_t{1} << bits, depth_, s_.bias); };
    // The most bits with which the sum fits and is not off by more than `allowed`; 0 where there are none.
    const auto choose = [&](int bits, double allowed, auto fits) {
      while (bits > 0 && !fits(bits)) bits--;
      return bits > 0 && error(bits) <= allowed ? bits : 0;
    };
    int bits = choose(30, kErrorAllowed / 8, [&](int n) { return fits(n) && std::ldexp(largest, n) <= INT16_MAX; });
    if (!bits) bits = choose(30, kErrorAllowed / 8, fits);
    if (!bits)
      bits = choose(40, kErrorAllowed, [&](int n) {
        return total(n) <= kWideMax && std::ldexp(largest, n) <= INT32_MAX &&
               std::ldexp(1 + std::fabs(s_.bias), n + depth_) <= kWideMax;
      });
    if (!bits) {
      const double coefficient = *std::max_element(real.value.begin(), real.value.end(),
                                                   [](double a, double b) { return std::fabs(a) < std::fabs(b); });
      refuse("coefficients: " + number_text(coefficient) + ", to be divided by " + number_text(divisor) +
             ", is too large: integers can be up to " + number_text(kLargestInteger) + ", other numbers here up to " +
             "about " + number_text(std::floor(std::ldexp(2 * kErrorAllowed / taps * INT32_MAX, -depth_))) +
             " times the divisor, to keep " + std::to_string(depth_) +
             "-bit results within one code of the exact ones");
    }
    for (double v : real.value)
      pass_.mask[0].value.push_back(static_cast<int32_t>(std::llround(std::ldexp(v / divisor, bits))));
    factorise(pass_.mask[0], pass_.width(), pass_.height());
    finish(total(bits), int64_t{1} << bits);
  }

  // A row and a column of real weights that sum to 1: the row's sums are kept with some bits of fraction, so that both
  // steps stay within the accumulator. For up to 12 bits that is a 16-bit row sum and a 32-bit total.
  void compile_factors(const RealMask &real, double divisor) {
    if (s_.mask == Mask::Unsharp) divisor = 1;
    const double gain = 1 / divisor;
    // What multiplies the rounding of a row's sum to 14 bits of fraction, the finest there is.
    const auto refuse_gain = [&](int line = __builtin_LINE()) {
      refuse("divisor=" + number_text(divisor) + " is too small for mask=" + mask_nick(s_.mask) + ": from about " +
                 number_text(1 / kLargestGain) + " on, more for large masks, results are within one code of exact ones",
             __FILE__, line);
    };
    if (!(std::fabs(gain) <= kLargestGain)) refuse_gain();
    IntegerMask &mask = pass_.mask[0];

    double total = 0;
    int64_t d = 0;
    const auto quantise = [&](int row_bits, int column_bits, int fraction) {
      mask.row = fixed_point(real.row, row_bits, 1);
      mask.column = fixed_point(real.column, column_bits, gain);
      mask.row_shift = row_bits - fraction;
      d = int64_t{1} << (column_bits + fraction);
      const int64_t row_sum = static_cast<int64_t>(absolute_sum(mask.row) * largest_);
      total = absolute_sum(mask.column) * ((row_sum + (int64_t{1} << mask.row_shift >> 1)) >> mask.row_shift);
      double off = 0;
      for (int i = 0; i < real.width; i++) off += std::fabs(std::ldexp(mask.row[i], -row_bits) - real.row[i]);
      off *= std::fabs(gain);
      for (int i = 0; i < real.height; i++)
        off += std::fabs(std::ldexp(mask.column[i], -column_bits) - gain * real.column[i]);
      return off * largest_ + std::fabs(gain) * std::ldexp(0.5, -fraction);
    };

    const int fraction = 16 - depth_;
    double error = 1;
    if (fraction >= 4) {
      error = quantise(16, 15, fraction);
      if (!fits_narrow(total, d, depth_, s_.bias) && s_.mask != Mask::Unsharp) error = 1;
    }
    // The amount multiplies the blur's error.
    const bool sharpens = s_.mask == Mask::Unsharp;
    const double weight = sharpens ? std::max(1.0, std::fabs(s_.amount)) : 1;
    // Three bytes of each factor and of a row's sum are what the matrix instructions can take, of samples of more than
    // 8 bits: for those of 8 bits more accuracy than promised has a high price.
    const double allowed = depth_ > 8 || sharpens ? kErrorAllowed / 2 : kErrorAllowed;
    if (error * weight > allowed && std::fabs(gain) < 64) {
      error = quantise(24, 24, 8);
      pass_.wide = true;
    }
    if (error * weight > allowed) {
      int column_bits = 30;
      while (column_bits > 1 &&
             std::ldexp(std::fabs(gain) + std::fabs(s_.bias) + 1, column_bits + 14 + depth_) > kWideMax)
        column_bits--;
      if (std::fabs(gain) >= 2)
        column_bits = std::min(column_bits, 29 - ceil_log2(static_cast<int64_t>(gain < 0 ? -gain : gain)));
      if (column_bits < 8) refuse_gain();
      error = quantise(30, column_bits, 14);
      pass_.wide = true;
      if (error > kErrorAllowed) refuse_gain();
    }

    if (s_.mask == Mask::Unsharp) {
      // src + amount * (src - gauss), in units of 1 / (d * 2^amount_bits) codes, the blur kept with 12 bits of
      // fraction.
      constexpr int kBlurFraction = 12;
      while (d > int64_t{1} << kBlurFraction) {
        d >>= 1;
        pass_.sum_shift++;
      }
      error += std::ldexp(0.5, -kBlurFraction);
      int amount_bits = 20;
      const double reach = 2 + 2 * std::fabs(s_.amount) + std::fabs(s_.bias);
      while (amount_bits > 0 && std::ldexp(reach * d, amount_bits + depth_) > kWideMax) amount_bits--;
      const double off = largest_ * std::ldexp(0.5, -amount_bits) + std::fabs(s_.amount) * error;
      if (!std::isfinite(s_.amount) || off > kErrorAllowed)
        refuse("amount=" + number_text(s_.amount) + " is too large: up to about " +
               number_text(std::floor(kErrorAllowed / error)) + " results are within one code of exact ones");
      const int64_t amount = std::llround(std::ldexp(s_.amount, amount_bits));
      pass_.sum_gain = -amount;
      pass_.center_gain = d * ((int64_t{1} << amount_bits) + amount);
      d <<= amount_bits;
    }
    finish(total, d);
  }

  // weight * gain * 2^bits, rounded so that the sum is right: what the nearest integers add up to too much or too
  // little is taken from pairs, or added to them, that it brings the least away from their exact values, and what is
  // left of it from the middle. `weight` is symmetric.
  static std::vector<int32_t> fixed_point(const std::vector<double> &weight, int bits, double gain) {
    const size_t middle = weight.size() / 2;
    std::vector<int32_t> q;
    std::vector<double> rest;  // of the exact value
    int64_t missing = std::llround(std::ldexp(gain, bits));
    for (double w : weight) {
      const double exact = std::ldexp(w * gain, bits);
      q.push_back(static_cast<int32_t>(std::llround(exact)));
      rest.push_back(exact - q.back());
      missing -= q.back();
    }
    const int step = missing < 0 ? -1 : 1;
    std::vector<size_t> pairs(middle);
    std::iota(pairs.begin(), pairs.end(), 0);
    std::stable_sort(pairs.begin(), pairs.end(), [&](size_t a, size_t b) { return step * rest[a] > step * rest[b]; });
    for (size_t k = 0; k < middle && std::abs(missing) >= 2; k++, missing -= 2 * step) {
      q[pairs[k]] += step;
      q[weight.size() - 1 - pairs[k]] += step;
    }
    q[middle] += static_cast<int32_t>(missing);
    return q;
  }

  void finish(double sum, int64_t divisor) {
    // No accumulator is too small for what is within the limits of coefficients and divisor.
    assert(sum <= kWideMax && std::ldexp(static_cast<double>(divisor), depth_) <= kWideMax);
    if (!pass_.has_gain() && !fits_narrow(sum, divisor, depth_, s_.bias)) pass_.wide = true;
    if (pass_.has_gain() && sum > kNarrowMax) pass_.wide = true;
    if (pass_.op != Op::Linear && pass_.wide) {
      // Magnitudes and compass responses fit 32 bits at every depth; only their rounding may not.
      pass_.wide = false;
      if (!pass_.has_gain()) {
        pass_.sum_gain = 2;
        divisor *= 2;
      }
    }
    const bool wide = pass_.wide || pass_.has_gain();
    for (int p = 0; p < layout_.planes; p++)
      for (int c = 0; c < layout_.plane[p].channels; c++)
        pass_.rounding[p][c] = make_rounding(divisor, layout_.plane[p].channel[c].depth, s_.bias, absolute_, wide);
  }

  const FilterSettings &s_;
  const FrameLayout &layout_;
  Pass &pass_;
  int depth_;
  double largest_;  // sample value
  bool absolute_ = false;
};

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
    check_method();
    return plan_;
  }

 private:
  void check_settings() const {
    if (s_.iterations < 1) refuse("iterations=" + std::to_string(s_.iterations) + " is less than 1");
    if (!(std::fabs(s_.bias) <= 1)) refuse("bias=" + number_text(s_.bias) + " is outside -1 to 1");
    if (!(std::fabs(s_.divisor) <= kLargestDivisor))
      refuse("divisor=" + number_text(s_.divisor) + " is outside -" + number_text(kLargestDivisor) + " to " +
             number_text(kLargestDivisor));
    const Coefficients &c = s_.coefficients;
    if (!c.value.empty() &&
        (c.width < 1 || c.height < 1 || c.width % 2 == 0 || c.height % 2 == 0 || c.width > kLargestDense ||
         c.height > kLargestDense || c.value.size() != static_cast<size_t>(c.width) * c.height))
      refuse("coefficients form a mask of " + std::to_string(c.width) + "x" + std::to_string(c.height) +
             "; both sides are odd and at most " + std::to_string(kLargestDense));
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
      const int fields = layout.interlaced ? 2 : 1;
      for (int f = 0; f < fields; f++) {
        const int height = (plane.height - f + fields - 1) / fields;
        if (height > 0) plan_->parts.push_back({p, f, fields, height});
      }
    }
  }

  void choose_actions() {
    Chroma chroma = s_.chroma;
    if (chroma == Chroma::Auto) chroma = mask_is_edge_detector(s_.mask) ? Chroma::Neutral : Chroma::Filter;
    if (s_.mask == Mask::Identity) chroma = Chroma::Copy;
    const FrameLayout &layout = plan_->layout;
    for (int p = 0; p < layout.planes; p++)
      for (int c = 0; c < layout.plane[p].channels; c++) {
        const ChannelLayout &channel = layout.plane[p].channel[c];
        Action &action = plan_->action[p][c];
        action = Action::Filter;
        switch (channel.role) {
          case Role::Luma:
            break;
          case Role::Chroma:
            if (chroma == Chroma::Copy) action = Action::Copy;
            if (chroma == Chroma::Neutral) {
              action = Action::Fill;
              plan_->fill[p][c] = static_cast<uint16_t>(1 << (channel.depth - 1));
            }
            break;
          case Role::Alpha:
            if (s_.alpha == Alpha::Copy) action = Action::Copy;
            break;
          case Role::Padding:
            action = Action::Copy;
            break;
        }
        if (s_.mask == Mask::Identity) action = Action::Copy;
      }
  }

  int new_buffer() { return ++plan_->temporaries; }

  // `count` passes in a row from `source` to `target`, each like `model`.
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

  // Regions apply to the result of a filter alone, not to the passes that lead to it.
  void apply_regions_to_last_pass() {
    for (Pass &pass : plan_->passes) pass.in_regions = pass.target == Pass::kOutput;
  }

  void list_passes() {
    Pass pass;
    for (int p = 0; p < plan_->layout.planes; p++)
      for (int c = 0; c < plan_->layout.plane[p].channels; c++)
        pass.rounding[p][c] = make_rounding(2, plan_->layout.plane[p].channel[c].depth, 0, false, false);
    const int n = s_.iterations;
    switch (mask_kind(s_.mask)) {
      case MaskKind::Identity:
        pass.mask[0].value = {2};
        plan_->passes.push_back(pass);
        return;
      case MaskKind::Linear:
      case MaskKind::Magnitude:
      case MaskKind::Compass:
        LinearCompiler(s_, plan_->layout, pass).compile();
        set_keep(pass);
        chain(pass, n, Pass::kInput, Pass::kOutput);
        return;
      case MaskKind::Median: {
        pass.op = Op::Median;
        pass.radius_x = pass.radius_y = window_of(s_).width / 2;
        set_keep(pass);
        chain(pass, n, Pass::kInput, Pass::kOutput);
        return;
      }
      case MaskKind::Morphology:
        break;
    }

    const Window window = window_of(s_);
    pass.radius_x = window.width / 2;
    pass.radius_y = window.height / 2;
    pass.element = window.member;
    set_keep(pass);
    Pass erode = pass, dilate = pass;
    erode.op = Op::Minimum;
    dilate.op = Op::Maximum;
    // Both operands of the last step, and how many passes lie behind them.
    const auto difference = [&](int minuend, int subtrahend, int depth) {
      Pass last = pass;
      last.op = Op::Difference;
      last.source = minuend;
      last.subtrahend = subtrahend;
      last.target = Pass::kOutput;
      last.element.clear();
      set_keep(last, depth);
      last.radius_x = last.radius_y = 0;
      plan_->passes.push_back(std::move(last));
    };
    const int out = Pass::kOutput, in = Pass::kInput;
    switch (s_.mask) {
      case Mask::Dilate:
        chain(dilate, n, in, out);
        break;
      case Mask::Erode:
        chain(erode, n, in, out);
        break;
      case Mask::Open:
      case Mask::Close: {
        const bool open = s_.mask == Mask::Open;
        const int middle = new_buffer();
        chain(open ? erode : dilate, n, in, middle);
        chain(open ? dilate : erode, n, middle, out);
        apply_regions_to_last_pass();
        break;
      }
      case Mask::Gradient: {
        const int upper = new_buffer(), lower = new_buffer();
        chain(dilate, n, in, upper);
        chain(erode, n, in, lower);
        difference(upper, lower, n);
        apply_regions_to_last_pass();
        break;
      }
      case Mask::Tophat:
      case Mask::Blackhat: {
        const bool tophat = s_.mask == Mask::Tophat;
        const int middle = new_buffer(), result = new_buffer();
        chain(tophat ? erode : dilate, n, in, middle);
        chain(tophat ? dilate : erode, n, middle, result);
        if (tophat)
          difference(in, result, 2 * n);
        else
          difference(result, in, 2 * n);
        apply_regions_to_last_pass();
        break;
      }
      default:
        break;
    }
  }

  static bool can(Method method, const Pass &pass) {
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
                       [&](const Pass &pass) { return pass.op == Op::Difference || can(method, pass); });
  }

  void check_method() const {
    if (s_.mask == Mask::Identity || can(s_.method)) return;
    std::string able;
    for (Method m : {Method::Auto, Method::Global, Method::Constant, Method::Tiled, Method::TiledCached,
                     Method::Blocked, Method::Cascade, Method::Separable})
      if (can(m)) able += (able.empty() ? "" : ", ") + std::string(method_nick(m));
    std::string why;
    if (s_.method == Method::Separable) why = ", which is not the product of a row and a column";
    if (s_.method == Method::Cascade) why = "; it does dilate and erode of size 5 with shape=rect";
    refuse(std::string("method=") + method_nick(s_.method) + " cannot do mask=" + mask_nick(s_.mask) + " as it is set" +
           why + "; these can: " + able);
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

bool Pass::separable() const {
  switch (op) {
    case Op::Linear:
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

namespace {

// Bytes from one pixel of a view to the next.
size_t pixel_bytes(const PlaneLayout &view) {
  return static_cast<size_t>(view.container == Container::Packed32 ? 1 : view.step) * view.bytes_per_container();
}

// Marks the bytes of the first `width` pixels of a row of a view.
void mark_pixels(const PlaneLayout &view, int64_t width, std::vector<bool> *bytes) {
  const size_t size = view.bytes_per_container(), first = view.container == Container::Packed32 ? 0 : view.first * size;
  for (int64_t x = 0; x < width; x++)
    for (int c = 0; c < view.channels; c++) {
      const size_t offset = view.container == Container::Packed32 ? 0 : view.channel[c].offset * size;
      const size_t begin = first + x * pixel_bytes(view) + offset;
      bytes->resize(std::max(bytes->size(), begin + size));
      std::fill_n(bytes->begin() + begin, size, true);
    }
}

}  // namespace

std::vector<MemoryPlane> memory_planes_of(const FrameLayout &layout) {
  int count = 0;
  for (int i = 0; i < layout.planes; i++) count = std::max(count, layout.plane[i].memory_plane + 1);
  std::vector<MemoryPlane> planes(count);
  for (int m = 0; m < count; m++) {
    std::vector<const PlaneLayout *> views;
    for (int i = 0; i < layout.planes; i++)
      if (layout.plane[i].memory_plane == m) views.push_back(&layout.plane[i]);
    // What a row is made of repeats itself: from each view as many pixels are taken out as are in so many periods, and
    // put back once the rest is looked at byte by byte.
    size_t period = 1, begin = 0;
    for (const PlaneLayout *view : views) {
      period = std::lcm(period, pixel_bytes(*view));
      begin = std::max<size_t>(begin, view->first * view->bytes_per_container());
    }
    constexpr int64_t kKept = 4;  // periods: more than views begin apart
    int64_t left_out = INT64_MAX;
    for (const PlaneLayout *view : views)
      left_out = std::min(left_out, static_cast<int64_t>(view->width * pixel_bytes(*view) / period) - kKept);
    left_out = std::max<int64_t>(left_out, 0);
    std::vector<bool> bytes;
    for (const PlaneLayout *view : views) {
      planes[m].height = std::max(planes[m].height, view->height);
      mark_pixels(*view, view->width - left_out * static_cast<int64_t>(period / pixel_bytes(*view)), &bytes);
    }
    size_t more = left_out * period;
    // A period within all views. Where it has gaps, each one is a run of its own.
    const auto from = bytes.begin() + (views.empty() ? 0 : begin);
    if (more && std::find(from, from + period, false) != from + period) {
      const std::vector<bool> one(from, from + period);
      std::vector<bool> whole(bytes.begin(), from);
      for (int64_t i = 0; i < left_out; i++) whole.insert(whole.end(), one.begin(), one.end());
      whole.insert(whole.end(), from, bytes.end());
      bytes = std::move(whole);
      more = 0;
    }
    planes[m].row_bytes = bytes.size() + more;
    for (size_t b = 0; b < bytes.size(); b++) {
      if (!bytes[b]) continue;
      const size_t at = b > begin ? b + more : b, length = more && b == begin ? 1 + more : 1;
      if (b > 0 && bytes[b - 1])
        planes[m].runs.back().length += length;
      else
        planes[m].runs.push_back({at, length});
    }
  }
  return planes;
}

namespace {

// `Square` holds (width*height)^2.
template <typename Square>
PixelRun ellipse_row_in(int64_t width, int64_t height, int64_t row) {
  // (dx/w)^2 + (dy/h)^2 <= 1 of the distances from the centre, doubled, times (w*h)^2
  const int64_t dy = 2 * row + 1 - height;
  const auto square = [](int64_t v) { return static_cast<Square>(v) * v; };
  const Square room = square(width * height) - square(dy * width);
  const auto inside = [&](int64_t x) { return square((2 * x + 1 - width) * height) <= room; };
  // An estimate that is right but for rounding, of one end: the other one is its mirror image.
  const double reach = std::sqrt(static_cast<double>(room)) / static_cast<double>(height);
  const int64_t middle = (width + 1) / 2;
  int64_t begin = std::clamp<int64_t>(static_cast<int64_t>((static_cast<double>(width) - reach) / 2), 0, middle);
  while (begin > 0 && inside(begin - 1)) begin--;
  while (begin < middle && !inside(begin)) begin++;
  return {begin, std::max(begin, width - begin)};
}

}  // namespace

PixelRun ellipse_row(int64_t width, int64_t height, int64_t row) {
  constexpr int64_t kLongest = (1 << 15) - 1;  // whose squares 64 bits hold
  if (std::max(width, height) <= kLongest) return ellipse_row_in<int64_t>(width, height, row);
  return ellipse_row_in<__int128>(width, height, row);
}

namespace {

// Division that rounds down, and up.
int64_t down(int64_t v, int64_t by) {
  return v >= 0 ? v / by : -((-v + by - 1) / by);
}
int64_t up(int64_t v, int64_t by) {
  return -down(-v, by);
}

}  // namespace

FrameRows frame_rows_of(const Regions &regions, const Plan::Part &part) {
  return {regions.first_row + int64_t{regions.row_step} * part.first_row, int64_t{regions.row_step} * part.row_step};
}

PartSize unsubsampled_size(const Plan &plan, const Plan::Part &part) {
  // That of the planes that are not subsampled, of which there is always one.
  PartSize size = {INT64_MAX, INT64_MAX};
  for (int p = 0; p < plan.layout.planes; p++) {
    const PlaneLayout &plane = plan.layout.plane[p];
    size.columns = std::min(size.columns, int64_t{plane.width} << plane.sub_x);
    size.rows = std::min(size.rows, int64_t{plane.height} << plane.sub_y);
  }
  size.rows = up(size.rows - part.first_row, part.row_step);
  return size;
}

std::vector<PartRegion> regions_of_part(const Regions &regions, const Plan &plan, const Plan::Part &part) {
  const PlaneLayout &layout = plan.layout.plane[part.plane];
  const int64_t sub_x = int64_t{1} << layout.sub_x, sub_y = int64_t{1} << layout.sub_y;
  const PartSize size = unsubsampled_size(plan, part);
  const FrameRows field = frame_rows_of(regions, part);

  std::vector<PartRegion> result;
  const auto add = [&](int64_t x0, int64_t x1, int64_t y0, int64_t y1) {
    result.push_back({static_cast<int32_t>(x0), static_cast<int32_t>(y0), static_cast<int32_t>(x1 - x0),
                      static_cast<int32_t>(y1 - y0)});
  };
  const auto clip = [](int64_t v, int64_t end) { return std::clamp<int64_t>(v, 0, end); };
  for (const Region &r : regions.region) {
    if (r.rotation != 0) continue;
    // Frame rows to rows of the field, and then, as across, to pixels of the plane, which reach out.
    const int64_t left = r.x, right = left + r.width;
    const int64_t top = up(int64_t{r.y} - field.first, field.step);
    const int64_t bottom = up(int64_t{r.y} + r.height - field.first, field.step);
    if (clip(left, size.columns) >= clip(right, size.columns) || clip(top, size.rows) >= clip(bottom, size.rows))
      continue;
    const int64_t x0 = down(left, sub_x), x1 = up(right, sub_x), y0 = down(top, sub_y), y1 = up(bottom, sub_y);
    if (regions.ellipse)
      add(x0, x1, y0, y1);  // keeps its shape where the frame cuts it off
    else
      add(clip(x0, layout.width), clip(x1, layout.width), clip(y0, part.height), clip(y1, part.height));
  }
  return result;
}

std::string describe(const Plan &plan) {
  static const char *const kOps[] = {"linear", "magnitude", "compass", "minimum", "maximum", "median", "difference"};
  static const char *const kBorders[] = {"replicate", "reflect", "reflect101", "wrap", "constant", "keep"};
  const auto size = [](int width, int height) { return std::to_string(width) + "x" + std::to_string(height); };
  const auto buffer = [](int index) {
    return index == Pass::kInput ? "in" : index == Pass::kOutput ? "out" : "t" + std::to_string(index);
  };
  std::string text = std::string("method=") + method_nick(plan.method) +
                     " border=" + kBorders[static_cast<int>(plan.border)] + " parts=";
  for (const Plan::Part &part : plan.parts)
    text += (&part == plan.parts.data() ? "" : ",") + size(plan.layout.plane[part.plane].width, part.height);
  for (const Pass &pass : plan.passes) {
    text += "; " + std::string(kOps[static_cast<int>(pass.op)]) + " " + size(pass.width(), pass.height());
    if (pass.separable()) text += " separable";
    if (pass.op <= Op::Compass) text += pass.wide || pass.has_gain() ? " 64-bit" : " 32-bit";
    text += " " + buffer(pass.source) + (pass.op == Op::Difference ? "-" + buffer(pass.subtrahend) : "") + "->" +
            buffer(pass.target);
  }
  return text;
}

std::shared_ptr<const Plan> make_plan(const FilterSettings &settings, const FrameLayout &layout) {
  return Builder(settings, layout).build();
}

}  // namespace cudaconv
