// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/weighted.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "plan/linear_compiler.h"
#include "plan/masks.h"
#include "plan/messages.h"

namespace cudaconv {

namespace {

// Largest error of a mean, in codes, before rounding, which adds half a code.
constexpr double kErrorAllowed = 0.45;
constexpr int kMost64 = 63;      // bits of a sum that int64_t holds
constexpr int kWeightBits = 30;  // bits of the largest weight: int32_t holds it
// Bits of a column's weights if row sums take 32 bits: three bytes, which the matrix instructions support.
constexpr int kColumnBits = 24;
constexpr int kMostOfSums = 125;  // bits of a numerator or denominator
// Bits of 64-bit weights. Sums of 128 bits hold two weights times two 16-bit numbers, without a gain or with a gain of
// 20 bits.
constexpr int kLongBits = 45, kLongBitsWithGain = 34;
constexpr double kLargestGain = 1 << 30;

bool is_integer(double v) {
  return v < 1 << kWeightBits && v == std::floor(v);
}

template <typename Integer>
double sum_of(const std::vector<Integer> &v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

// The number of bits of floor(v).
int bits_of(double v) {
  return v < 1 ? 0 : std::ilogb(v) + 1;
}

// Weights in fixed point: each times `scale`, rounded. Non-zero weights stay at least 1: if the rest of the window is
// transparent, the smallest weight alone decides the mean.
template <typename Integer = int32_t>
std::vector<Integer> fixed_point(const std::vector<double> &weight, double scale) {
  std::vector<Integer> fixed;
  for (double w : weight)
    fixed.push_back(w > 0 ? std::max(Integer{1}, static_cast<Integer>(std::llround(w * scale))) : Integer{0});
  return fixed;
}

// The relative error e of the fixed weights. Each weight is its exact value times a common factor and a factor between
// 1 - e and 1 + e. A mean of samples from 0 to m is then off by at most m / 2 * e / (1 - e).
template <typename Integer>
double spread(const std::vector<double> &weight, const std::vector<Integer> &fixed, double scale) {
  double least = INFINITY, most = 0;
  for (size_t i = 0; i < weight.size(); i++) {
    if (!(weight[i] > 0)) continue;
    const double ratio = static_cast<double>(fixed[i]) / (weight[i] * scale);
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  return most > 0 ? (most - least) / (most + least) : 0;
}

class WeightedCompiler {
 public:
  WeightedCompiler(const FilterSettings &settings, const FrameLayout &layout, Pass &pass)
      : s_(settings), layout_(layout), pass_(pass) {
    const AlphaPlace place = alpha_of(layout);
    const int alpha_depth = layout.plane[place.plane].channel[place.channel].depth;
    largest_ = std::ldexp(1.0, layout.depth()) - 1;
    largest_product_ = (std::ldexp(1.0, alpha_depth) - 1) * largest_;
  }

  void compile() {
    check_mask();
    const RealMask real = linear_masks(s_)[0];
    check_coefficients(real);
    pass_.op = Op::WeightedMean;
    pass_.radius_x = real.width / 2;
    pass_.radius_y = real.height / 2;
    double sum = 1;
    const bool is_box = real.all_ones();
    if (!real.value.empty()) sum = std::accumulate(real.value.begin(), real.value.end(), 0.0);
    if (is_box) sum = real.divisor;
    if (sum == 0) return compile_linear(s_, layout_, pass_);  // all weights are 0
    const double divisor = s_.divisor ? s_.divisor : sum, gain = sum / divisor;
    if (is_box)
      keep_ones(real);
    else if (real.value.empty())
      choose_factors(real, gain);
    else if (std::all_of(real.value.begin(), real.value.end(), is_integer))
      keep_integers(real);
    else
      choose_matrix(real, gain);
    count_bits();
    choose_gain(sum, divisor);
  }

 private:
  void check_mask() const {
    if (mask_kind(s_.mask) == MaskKind::Linear && s_.mask != Mask::Unsharp) return;
    refuse(std::string("alpha=weighted does not support mask=") + mask_nick(s_.mask) + what_it_can());
  }

  void check_coefficients(const RealMask &real) const {
    for (size_t i = 0; i < real.value.size(); i++) {
      const double v = real.value[i];
      if (v >= 0 && v <= 0x1p1000) continue;
      const auto width = static_cast<size_t>(real.width);
      const std::string where =
          " in row " + std::to_string(i / width + 1) + ", column " + std::to_string(i % width + 1);
      if (s_.mask != Mask::Custom)
        refuse(std::string("alpha=weighted does not support mask=") + mask_nick(s_.mask) + ", which has " +
               number_text(v) + where + what_it_can());
      if (v < 0)
        refuse("coefficients: " + number_text(v) + where + " is negative, which alpha=weighted does not support" +
               what_it_can());
      refuse("coefficients: " + number_text(v) + where + " is too large; use at most " + number_text(0x1p1000));
    }
  }

  static std::string what_it_can() {
    std::string nicks;
    for (const Named<Mask> &mask : kMaskNames) {
      FilterSettings s;
      s.mask = mask.value;
      if (s.mask == Mask::Bilateral) nicks += std::string(mask.nick) + ", ";
      if (mask_kind(s.mask) != MaskKind::Linear || s.mask == Mask::Unsharp || s.mask == Mask::Custom) continue;
      const RealMask real = linear_masks(s)[0];  // masks of a row and a column have no negative coefficients
      if (std::all_of(real.value.begin(), real.value.end(), [](double v) { return v >= 0; }))
        nicks += std::string(mask.nick) + ", ";
    }
    return "; use a mask without negative coefficients (" + nicks + "custom), or set alpha=copy or alpha=filter";
  }

  // The largest error of results, in codes, with weights of a line or matrix whose relative error is e.
  double codes(double e, double gain) const {
    return e < 1 ? largest_ / 2 * e / (1 - e) * std::max(1.0, std::fabs(gain)) : INFINITY;
  }

  void keep_integers(const RealMask &real) {
    IntegerMask &mask = pass_.mask[0];
    for (double v : real.value) mask.value.push_back(static_cast<int32_t>(v));
    factorise(mask, real.width, real.height);
  }

  void keep_ones(const RealMask &real) {
    pass_.mask[0].row.assign(real.width, 1);
    pass_.mask[0].column.assign(real.height, 1);
  }

  // Quantises a matrix to the most bits whose sums fit 64 bits, if that is accurate enough, otherwise to the most bits
  // of a weight.
  void choose_matrix(const RealMask &real, double gain) {
    IntegerMask &mask = pass_.mask[0];
    const double largest = *std::max_element(real.value.begin(), real.value.end());
    std::vector<double> weight;
    for (double v : real.value) weight.push_back(v / largest);
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    for (const int bits : {kMost64 - 1 - bits_of(largest_product_ * total), kWeightBits}) {
      const double scale = std::ldexp(1.0, std::min(bits, kWeightBits));
      mask.value = fixed_point(weight, scale);
      if (codes(spread(weight, mask.value, scale), gain) <= kErrorAllowed) break;
    }
    factorise(mask, real.width, real.height);
  }

  // Quantises a row and a column, each with sum 1. Takes the first of these forms that is accurate enough: row sums of
  // 32 bits, window sums of 64 bits, window sums of more bits.
  void choose_factors(const RealMask &real, double gain) {
    IntegerMask &mask = pass_.mask[0];
    const std::vector<double> &row = real.row, &column = real.column;
    const double scale = std::ldexp(1.0, kColumnBits);
    mask.column = fixed_point(column, scale);
    const double of_column = spread(column, mask.column, scale);
    // Tries scales from half of the range of 32 bits up to all of it: some suit the smallest weights better.
    constexpr int kScales = 512;
    const double most = std::floor((std::ldexp(1.0, 32) - 1) / (largest_product_ + largest_product_ / largest_));
    const double least = *std::min_element(row.begin(), row.end());
    for (int i = 0; i < kScales && least * most > 8; i++) {
      const double row_scale = (most - static_cast<double>(row.size()) / 2) * (1 - 0.5 * i / kScales);
      mask.row = fixed_point(row, row_scale);
      if (sum_of(mask.row) <= most && codes(spread(row, mask.row, row_scale) + of_column, gain) <= kErrorAllowed)
        return;
    }
    const double half = std::ldexp(1.0, (kMost64 - 1 - bits_of(largest_product_)) / 2);
    mask.row = fixed_point(row, half);
    mask.column = fixed_point(column, half);
    if (codes(spread(row, mask.row, half) + spread(column, mask.column, half), gain) <= kErrorAllowed) return;
    const double most_of_long = std::ldexp(1.0, gain == 1 && s_.bias == 0 ? kLongBits : kLongBitsWithGain);
    pass_.long_row = fixed_point<int64_t>(row, most_of_long);
    pass_.long_column = fixed_point<int64_t>(column, most_of_long);
  }

  void count_bits() {
    const IntegerMask &mask = pass_.mask[0];
    double total = sum_of(mask.value);
    if (mask.separable()) total = sum_of(mask.row) * sum_of(mask.column);
    if (!pass_.long_row.empty()) total = sum_of(pass_.long_row) * sum_of(pass_.long_column);
    // The bits include half of the denominator, which rounding adds to the numerator.
    pass_.sum_bits = bits_of(total * (largest_product_ + largest_product_ / largest_));
  }

  // Expresses the factor of the mean, sum / divisor, as a quotient of two integers, above / below. `below` becomes the
  // divisor of the rounding; the bias is in units of 1 / below codes.
  void choose_gain(double sum, double divisor) {
    const double gain = sum / divisor;
    // Gain times numerator stays below 2^126, so that round_scaled_mean() can add the bias and half of the denominator.
    const double largest_gain = std::min(kLargestGain, std::ldexp(1.0, kMostOfSums - pass_.sum_bits));
    if (!(std::fabs(gain) <= largest_gain))
      refuse("divisor=" + number_text(s_.divisor) + " is too small for the sum of the mask, " + number_text(sum) +
             "; with alpha=weighted the least is " + number_text(sum / largest_gain));
    double above = 1, below = 1;
    const double largest = std::ldexp(1.0, kMostOfSums - 4 - pass_.sum_bits);
    if (sum == divisor) {
      scale_for_bias(&above, &below);
    } else if (sum == std::floor(sum) && divisor == std::floor(divisor) && sum < 0x1p52 &&
               std::fabs(divisor) <= largest) {
      const double common = static_cast<double>(std::gcd(static_cast<int64_t>(sum), static_cast<int64_t>(divisor)));
      above = sum / common;
      below = divisor / common;
      if (below < 0) {
        above = -above;
        below = -below;
      }
      scale_for_bias(&above, &below);
    } else {
      const int most = std::min(kMostOfSums - 4 - pass_.sum_bits, 60) - std::max(0, std::ilogb(gain));
      below = std::ldexp(1.0, std::clamp(most, 0, 40));
      above = std::round(gain * below);
    }
    pass_.sum_gain = 2 * static_cast<int64_t>(above);
    for (int p = 0; p < layout_.planes; p++)
      for (int c = 0; c < layout_.plane[p].channels; c++) {
        Rounding r;
        r.half = static_cast<int64_t>(below);
        r.max = (1 << layout_.plane[p].channel[c].depth) - 1;
        r.offset = bias_offset(s_.bias, layout_.plane[p].channel[c].depth, 2 * r.half);
        r.absolute = s_.negative == Negative::Absolute;
        r.wide = true;
        pass_.rounding[p][c] = r;
      }
  }

  // Makes the units of the bias finer, since a bias that is not a whole number of codes is rounded to one of them.
  void scale_for_bias(double *above, double *below) const {
    while (s_.bias != 0 && *below < 4096) {
      *above *= 2;
      *below *= 2;
    }
  }

  const FilterSettings &s_;
  const FrameLayout &layout_;
  Pass &pass_;
  double largest_;          // largest sample value
  double largest_product_;  // largest product of a sample and an alpha
};

}  // namespace

AlphaPlace alpha_of(const FrameLayout &layout) {
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      if (layout.plane[p].channel[c].role == Role::Alpha) return {p, c};
  return {};
}

size_t alpha_part(const Plan &plan, const Plan::Part &part) {
  return part_of_plane(plan, alpha_of(plan.layout).plane, part);
}

AlphaGrid alpha_grid(const Plan &plan, const Plan::Part &part) {
  const Plan::Part &of_alpha = plan.parts[alpha_part(plan, part)];
  const PlaneLayout &alpha = plan.layout.plane[of_alpha.plane], &own = plan.layout.plane[part.plane];
  return {own.sub_x - alpha.sub_x, own.sub_y - alpha.sub_y, alpha.width, of_alpha.height};
}

void compile_weighted(const FilterSettings &settings, const FrameLayout &layout, Pass &pass) {
  WeightedCompiler(settings, layout, pass).compile();
}

}  // namespace cudaconv
