// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/linear_compiler.h"

#include <algorithm>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "error.h"
#include "plan/decimation.h"
#include "plan/epilogue.h"
#include "plan/fixed_point.h"
#include "plan/masks.h"
#include "plan/messages.h"

namespace cudaconv {

namespace {

// Largest integer coefficient that stays an integer: doubled, it fits 32 bits.
constexpr double kLargestInteger = (1 << 30) - 1;
// Largest error of the fixed-point form of a real mask, in codes before the final rounding, which adds half a code.
constexpr double kErrorAllowed = 0.45;
// Blurs of more taps use a smaller frame if that is accurate enough.
constexpr int kLargestDirectBlur = 65;
// With more taps than this, a blur without a smaller frame is slow: a smaller frame may use up most of kErrorAllowed.
constexpr int kLongBlur = 255;
constexpr double kMostErrorAllowed = 0.9 * kErrorAllowed;
// With more taps than this, factors of 16 bits are faster than wider factors on the matrix instructions.
constexpr int kMostTapsOfWideFactors = 31;

// Largest gain of a blur. Rounding row sums to 14 bits of fraction leaves an error of 2^-15 codes. This gain turns it
// into kErrorAllowed.
constexpr double kLargestGain = kErrorAllowed * (1 << 15);

constexpr double kMost32 = INT32_MAX;
constexpr double kMost64 = 4.6e18;  // a little below 2^62

bool is_integer(double v) {
  return std::fabs(v) <= kLargestInteger && v == std::floor(v);
}

// Whether sums with a magnitude up to `sum` stay within 32 bits in round_to_sample().
bool fits_32_bits(double sum, int64_t divisor, int depth, double bias) {
  const double codes = std::ldexp(1.0, depth);
  return sum + (std::fabs(bias) * codes + 0.5) * divisor + 1 <= kMost32 && codes * divisor <= kMost32 + 1.0;
}

// Turns a real mask into integers. These alone decide every byte of the result: they depend on the mask and the depth,
// but on neither method nor backend.
class LinearCompiler {
 public:
  LinearCompiler(const FilterSettings &settings, const FrameLayout &layout, Pass &pass)
      : s_(settings), layout_(layout), pass_(pass) {}

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

    // A Gaussian of one tap is also all ones, but unsharp with this Gaussian still has its amount.
    if (first.all_ones() && s_.mask != Mask::Unsharp) {
      compile_integers(masks, divisor, static_cast<double>(first.width) * first.height * largest_);
    } else if (first.value.empty()) {
      compile_blur(first, divisor);
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
  // Masks of integer coefficients with any divisor; exact if the divisor is an integer, too. `sum` bounds the sum's
  // magnitude.
  void compile_integers(const std::vector<RealMask> &masks, double divisor, double sum) {
    int sign = 1;  // factor of the coefficients
    if (divisor < 0) {
      divisor = -divisor;
      if (pass_.op == Op::Magnitude)
        refuse("divisor=" + number_text(s_.divisor) + " with mask=" + mask_nick(s_.mask) +
               " is invalid, since a magnitude has no sign; use a divisor above 0");
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
      // The divisor's fraction moves into the gain. A magnitude is rounded down to an integer before, so it gets eight
      // bits of fraction first.
      const int bits = pass_.op == Op::Magnitude ? 8 : 0;
      scale = 1 << bits;
      int gain_bits = 40;
      while (gain_bits > 0 && (std::ldexp(sum, gain_bits + bits + 1) > kMost64 ||
                               std::ldexp(divisor, gain_bits + bits + depth_ + 2) > kMost64))
        gain_bits--;
      pass_.sum_gain *= int64_t{1} << gain_bits;
      d = 2 * std::llround(std::ldexp(divisor, gain_bits + bits - 1));
      // d is off by at most 1. At the largest sample value this is an error of 2^depth / d codes.
      const double least = std::max(std::ldexp(8, depth_ - gain_bits - bits), bits ? 1.0 / 64 : 0);
      if (divisor < least)
        refuse("divisor=" + number_text(s_.divisor ? s_.divisor : divisor) +
               " is too small for the sum of the mask; the least is " + number_text(least));
    }
    sum *= scale;
    for (size_t m = 0; m < masks.size(); m++) {
      IntegerMask &mask = pass_.mask[m];
      for (double v : masks[m].value) mask.value.push_back(static_cast<int32_t>(sign * scale * v));
      if (masks[m].value.empty()) {
        mask.row.assign(masks[m].width, sign);
        mask.column.assign(masks[m].height, scale);
      } else {
        factorise(mask, pass_.width(), pass_.height());
      }
    }
    // A kirsch response is 8 * (three neighbours in a row) - 3 * (all eight): two numbers instead of eight masks.
    if (pass_.op == Op::Compass) pass_.mask[0].value = {scale * 8, scale * -3};
    if (pass_.op == Op::Magnitude && pass_.norm == Norm::L2Fraction) {
      sum *= 2;
      d *= 2;
    }
    finish(sum, d);
  }

  // A matrix of real coefficients, in fixed point. Takes the most bits of the first of these forms that is accurate
  // enough: int16 coefficients, which are fast in matrix and vector instructions; a 32-bit accumulator; for deep
  // samples, 24-bit coefficients, which the matrix instructions support; a 64-bit accumulator.
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
    const auto fits = [&](int bits) { return fits_32_bits(total(bits), int64_t{1} << bits, depth_, s_.bias); };
    // The most bits with which the sum fits and is off by at most `allowed`; 0: none.
    const auto choose = [&](int bits, double allowed, auto fits) {
      while (bits > 0 && !fits(bits)) bits--;
      return bits > 0 && error(bits) <= allowed ? bits : 0;
    };
    int bits = choose(30, kErrorAllowed / 8, [&](int n) { return fits(n) && std::ldexp(largest, n) <= INT16_MAX; });
    if (!bits) bits = choose(30, kErrorAllowed / 8, fits);
    const auto fits_64 = [&](int n, double most) {
      return total(n) <= kMost64 && std::ldexp(largest, n) <= most &&
             std::ldexp(1 + std::fabs(s_.bias), n + depth_) <= kMost64;
    };
    if (!bits && depth_ > 8) bits = choose(40, kErrorAllowed / 2, [&](int n) { return fits_64(n, (1 << 23) - 1); });
    if (!bits) bits = choose(40, kErrorAllowed, [&](int n) { return fits_64(n, INT32_MAX); });
    if (!bits) {
      const double coefficient = *std::max_element(real.value.begin(), real.value.end(),
                                                   [](double a, double b) { return std::fabs(a) < std::fabs(b); });
      refuse("coefficients: " + number_text(coefficient) + ", divided by " + number_text(divisor) +
             ", is too large for " + std::to_string(depth_) + "-bit results; use integers up to " +
             number_text(kLargestInteger) + ", or fractions up to about " +
             number_text(std::floor(std::ldexp(2 * kErrorAllowed / taps * INT32_MAX, -depth_))) + " times the divisor");
    }
    for (double v : real.value)
      pass_.mask[0].value.push_back(static_cast<int32_t>(std::llround(std::ldexp(v / divisor, bits))));
    factorise(pass_.mask[0], pass_.width(), pass_.height());
    finish(total(bits), int64_t{1} << bits);
  }

  // A blur as integers: its divisor, a bound of its sum, and its largest error in codes.
  struct Quantised {
    int64_t divisor;
    double total, error;
  };

  [[noreturn]] void refuse_gain(double divisor, int line = __builtin_LINE()) const {
    refuse("divisor=" + number_text(divisor) + " is too small for mask=" + mask_nick(s_.mask) + "; use at least " +
               number_text(std::ceil(1e6 / kLargestGain) / 1e6) + " (more for large masks)",
           __FILE__, line);
  }

  // Compiles a blur: a row and a column of real weights that each sum to 1, times a gain of 1 / divisor.
  void compile_blur(const RealMask &real, double divisor) {
    const bool sharpens = s_.mask == Mask::Unsharp;
    if (sharpens) divisor = 1;
    const double gain = 1 / divisor;
    // Row sums are rounded to at most 14 bits of fraction.
    if (!(std::fabs(gain) <= kLargestGain)) refuse_gain(divisor);
    // The amount of unsharp multiplies the blur's error.
    const double weight = sharpens ? std::max(1.0, std::fabs(s_.amount)) : 1;
    Quantised blur = {0, 0, kErrorAllowed / (sharpens ? 2 * weight : std::max(1.0, std::fabs(gain)))};
    const int taps = std::max(real.width, real.height);
    if (taps > kLargestDirectBlur) {
      Decimations found = make_decimations(real.row, real.column, depth_, blur.error);
      if (!found.x && sharpens && taps > kLongBlur) {
        blur.error = kMostErrorAllowed / weight;
        found = make_decimations(real.row, real.column, depth_, blur.error);
      }
      pass_.decimation = std::move(found.x);
      pass_.decimation_y = std::move(found.y);
    }
    if (pass_.decimation)
      apply_divisor(gain, blur);
    else
      blur = quantise_factors(real, gain, weight);
    if (sharpens) sharpen(blur);
    finish(blur.total, blur.divisor);
  }

  // The divisor, the bound and the gain of a blur through a smaller frame.
  void apply_divisor(double gain, Quantised &blur) {
    constexpr int kGainBits = 16;
    pass_.op = Op::Blur;
    blur.divisor = int64_t{1} << pass_.decimation->result_fraction();
    blur.total = (largest_ + 1) * static_cast<double>(blur.divisor);
    if (gain == 1) return;
    pass_.sum_gain = std::llround(std::ldexp(gain, kGainBits));
    blur.divisor <<= kGainBits;
  }

  // Quantises the factors to fixed point, and row sums to some bits of fraction. Takes the first of several forms that
  // is accurate enough. The fewer bytes factors and row sums have, the fewer products of bytes the matrix instructions
  // need.
  Quantised quantise_factors(const RealMask &real, double gain, double weight) {
    // For 8-bit samples, more accuracy than promised costs too much.
    const double most = s_.mask == Mask::Unsharp ? kErrorAllowed / 2 : kErrorAllowed;
    const double allowed = depth_ > 8 ? kErrorAllowed / 2 : most;
    const bool large_gain = std::fabs(gain) >= 64;
    Quantised blur = {0, 0, 1};
    // Row sums of 16 bits and sums of 32, with samples of up to 12 bits.
    const int fraction = 16 - depth_;
    if (fraction >= 4) {
      blur = quantise(real, gain, {16, 15, fraction});
      if (!fits_32_bits(blur.total, blur.divisor, depth_, s_.bias) && s_.mask != Mask::Unsharp) blur.error = 1;
      if (blur.error * weight <= allowed) return blur;
    }
    // The most bits with which the factors of a line are integers up to `largest`.
    const auto most_bits = [&](const std::vector<double> &line, double largest) {
      const double factor = *std::max_element(line.begin(), line.end()) * std::max(1.0, std::fabs(gain));
      int bits = 0;
      while (bits < 27 && std::ldexp(factor, bits + 1) <= largest) bits++;
      return bits;
    };
    // If one line is much longer, or the only one: fewer bits of row sums leave more bits for factors in 32-bit sums.
    if (fraction >= 4 && real.row != real.column && std::max(real.width, real.height) > kLargestDirectBlur) {
      constexpr int kFraction = 4;
      blur = quantise(real, gain,
                      {std::min(most_bits(real.row, INT16_MAX), 30 - depth_),
                       std::min(most_bits(real.column, INT16_MAX), 30 - kFraction - depth_), kFraction});
      if (blur.error * weight <= allowed && fits_32_bits(blur.total, blur.divisor, depth_, s_.bias)) return blur;
    }
    pass_.wide = true;
    // All bits that 16-bit factors can have: the longer a mask, the smaller its factors.
    if (fraction >= 4 && std::max(real.width, real.height) > kMostTapsOfWideFactors && !large_gain) {
      blur = quantise(real, gain, {most_bits(real.row, UINT16_MAX), most_bits(real.column, UINT16_MAX), fraction});
      if (blur.error * weight <= allowed) return blur;
    }
    // Factors of three bytes; 27 bits are the most with which doubles hold every sum of 16-bit samples exactly.
    if (!large_gain) {
      blur = quantise(real, gain, {24, 24, 8});
      if (blur.error * weight <= allowed) return blur;
      blur = quantise(real, gain, {27, 27, 8});
      if (blur.error * weight <= most) return blur;
    }
    int column_bits = 30;
    while (column_bits > 1 && std::ldexp(std::fabs(gain) + std::fabs(s_.bias) + 1, column_bits + 14 + depth_) > kMost64)
      column_bits--;
    if (std::fabs(gain) >= 2)
      column_bits = std::min(column_bits, 29 - ceil_log2(static_cast<int64_t>(gain < 0 ? -gain : gain)));
    if (column_bits < 8) refuse_gain(1 / gain);
    blur = quantise(real, gain, {30, column_bits, 14});
    if (blur.error > kErrorAllowed) refuse_gain(1 / gain);
    return blur;
  }

  struct Bits {
    int row, column, fraction;  // bits of the row's factors, of the column's, and of a row sum's fraction
  };

  Quantised quantise(const RealMask &real, double gain, Bits bits) {
    IntegerMask &mask = pass_.mask[0];
    mask.row = fixed_point(real.row, bits.row, 1);
    mask.column = fixed_point(real.column, bits.column, gain);
    mask.row_shift = bits.row - bits.fraction;
    const auto row_sum = static_cast<int64_t>(range_of(mask.row, 1).magnitude() * largest_);
    const double total =
        range_of(mask.column, 1).magnitude() * ((row_sum + (int64_t{1} << mask.row_shift >> 1)) >> mask.row_shift);
    const double off = std::fabs(gain) * error_of(mask.row, bits.row, 1, real.row) +
                       error_of(mask.column, bits.column, gain, real.column);
    return {int64_t{1} << (bits.column + bits.fraction), total,
            off * largest_ + std::fabs(gain) * std::ldexp(0.5, -bits.fraction)};
  }

  // Bounds the error of a sum of samples with factors in fixed point, as a fraction of the largest sample. Errors that
  // add up to 0 count half, from the middle of the range.
  static double error_of(const std::vector<int32_t> &fixed, int bits, double gain, const std::vector<double> &real) {
    double sum = 0, absolute = 0;
    for (size_t i = 0; i < real.size(); i++) {
      const double off = std::ldexp(fixed[i], -bits) - gain * real[i];
      sum += off;
      absolute += std::fabs(off);
    }
    return (absolute + std::fabs(sum)) / 2;
  }

  // Unsharp: src + amount * (src - gauss), in units of 1 / (divisor * 2^amount_bits) codes. The blur keeps 12 bits of
  // fraction.
  void sharpen(Quantised &blur) {
    constexpr int kBlurFraction = 12;
    while (blur.divisor > int64_t{1} << kBlurFraction) {
      blur.divisor >>= 1;
      pass_.sum_shift++;
    }
    blur.error += std::ldexp(0.5, -kBlurFraction);
    int amount_bits = 20;
    const double reach = 2 + 2 * std::fabs(s_.amount) + std::fabs(s_.bias);
    while (amount_bits > 0 && std::ldexp(reach * blur.divisor, amount_bits + depth_) > kMost64) amount_bits--;
    const double off = largest_ * std::ldexp(0.5, -amount_bits) + std::fabs(s_.amount) * blur.error;
    if (!std::isfinite(s_.amount) || off > kErrorAllowed)
      refuse("amount=" + number_text(s_.amount) + " is too large; use at most about " +
             number_text(std::floor(kErrorAllowed / blur.error)));
    const int64_t amount = std::llround(std::ldexp(s_.amount, amount_bits));
    pass_.sum_gain = -amount;
    pass_.center_gain = blur.divisor * ((int64_t{1} << amount_bits) + amount);
    blur.divisor <<= amount_bits;
  }

  void finish(double sum, int64_t divisor) {
    // Coefficients and divisors within their limits always fit 64-bit accumulators.
    assert(sum <= kMost64 && std::ldexp(static_cast<double>(divisor), depth_) <= kMost64);
    if (!pass_.has_gain() && !fits_32_bits(sum, divisor, depth_, s_.bias)) pass_.wide = true;
    if (pass_.has_gain() && sum > kMost32) pass_.wide = true;
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
  const int depth_ = layout_.depth();                   // the largest decides the required accuracy of a mask
  const double largest_ = std::ldexp(1.0, depth_) - 1;  // sample value
  // Negative results become their absolute value.
  const bool absolute_ = s_.negative == Negative::Auto ? mask_is_absolute(s_.mask) : s_.negative == Negative::Absolute;
};

}  // namespace

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

int64_t bias_offset(double bias, int depth, int64_t divisor) {
  constexpr int kBits = DBL_MANT_DIG;
  int exponent;
  const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(bias, &exponent), kBits));
  const int shift = kBits - exponent - depth;
  if (shift > 126) return 0;
  const Int128 product = Int128{std::abs(mantissa)} * divisor, half = Int128{1} << (shift - 1);
  const auto offset = static_cast<int64_t>((product + half) >> shift);
  return bias < 0 ? -offset : offset;
}

Rounding make_rounding(int64_t divisor, int depth, double bias, bool absolute, bool wide) {
  Rounding r;
  r.max = (1 << depth) - 1;
  r.half = divisor / 2;
  r.offset = bias_offset(bias, depth, divisor);
  r.limit = (static_cast<int64_t>(r.max) + 1) * divisor - 1;
  r.absolute = absolute;
  r.wide = wide;
  const int bits = wide ? 64 : 32;
  const int log = ceil_log2(divisor);
  const int power = bits - 1 + log;  // magic = ceil(2^power / divisor) then takes at most `bits` bits
  const Uint128 numerator = Uint128{1} << power;
  r.magic = static_cast<uint64_t>((numerator + divisor - 1) / divisor);
  r.shift = power - bits;
  return r;
}

void compile_linear(const FilterSettings &settings, const FrameLayout &layout, Pass &pass) {
  LinearCompiler(settings, layout, pass).compile();
}

}  // namespace cudaconv
