// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/sliding/swar_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "plan/epilogue.h"

namespace cudaconv::sliding {

namespace {

uint32_t both_halves(int64_t v) {
  return (static_cast<uint32_t>(v) & 0xffffu) * 0x00010001u;
}

// A factor for HalfPair, from -2048 to 2048, as an ordinary 16-bit float in both halves.
uint32_t half_factor(int64_t v) {
  if (!v) return 0;
  int exponent;
  const auto mantissa = static_cast<int64_t>(std::frexp(static_cast<double>(v), &exponent) * 0x800);  // 11 bits
  return both_halves((v < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | (std::abs(mantissa) & 0x3ff));
}

// Fills in what the samples of all planes have in common. False if planes are not dense or differ.
bool describe_samples(const Plan &plan, SwarParams &k, SwarKind &kind) {
  const PlaneLayout &first = plan.layout.plane[0];
  const ChannelLayout &sample = first.channel[0];
  kind.words = first.container == Container::U16;
  kind.most_channels = 1;
  if (!plan.layout.uniform_dense()) return false;
  for (int i = 0; i < plan.layout.planes; i++)
    kind.most_channels = std::max(kind.most_channels, plan.layout.plane[i].channels);
  k.sample_shift = sample.shift;
  k.sample_mask = (1u << sample.depth) - 1;
  return kind.words ? kind.most_channels != 3 : sample.depth == 8;
}

using Line = std::vector<int32_t>;

// A linear mask, with its epilogue, in the smallest unit.
struct Scaled {
  Line value;
  MaskEpilogue epilogue;

  Scaled(const IntegerMask &mask, const Rounding &rounding) : value(mask.value), epilogue(rounding) {
    epilogue.reduce(value);
  }
  // Whether the mask is the product of `line` as a column and as a row.
  bool is_square_of(const Line &line) const {
    const size_t size = line.size();
    if (value.size() != size * size) return false;
    for (size_t i = 0; i < value.size(); i++)
      if (value[i] != line[i / size] * line[i % size]) return false;
    return true;
  }
};

// The operation with built-in factors for a binomial or a mean.
Sliding built_in_of(const Scaled &mask) {
  if (mask.is_square_of({1, 2, 1})) return Sliding::Binomial3;
  if (mask.is_square_of({1, 4, 6, 4, 1})) return Sliding::Binomial5;
  if (mask.is_square_of(Line(3, 1))) return Sliding::Mean3;
  if (mask.is_square_of(Line(5, 1))) return Sliding::Mean5;
  return mask.is_square_of(Line(7, 1)) ? Sliding::Mean7 : Sliding::None;
}

// Computes the parameters of a binomial or a mean none of whose results has to be clamped. Sliding::None for other
// masks.
Sliding plan_built_in(const Scaled &mask, bool words, SwarParams &k) {
  const Sliding found = built_in_of(mask);
  const MaskEpilogue &e = mask.epilogue;
  const int64_t start = e.offset, highest = range_of(mask.value, e.max).high + start;
  if (found == Sliding::None || e.absolute || start < 0 || highest > e.limit() ||
      e.limit() >= (words ? INT32_MAX : 256 * 256))
    return Sliding::None;
  const int log = ceil_log2(e.divisor);
  if (found == Sliding::Binomial3 || found == Sliding::Binomial5) {
    // Bytes are scaled so that the high byte of 16 bits is the result, by 16 or by 1.
    if (words ? !e.is_power() : e.divisor != (found == Sliding::Binomial3 ? 16 : 256)) return Sliding::None;
    k.epilogue = Epilogue::Shift;
    k.shift = static_cast<uint32_t>(log);
    k.init = words ? static_cast<uint32_t>(start) : both_halves(start * (256 / e.divisor));
    return found;
  }
  // Bytes: exact for sums below 2^15. Rounding up the reciprocal adds less than half of 1 / divisor to a quotient. The
  // sum in the low half adds less than another half to the quotient of the high half. 16-bit containers: exact for
  // dividends below 2^31, see kernels/numbers.md.
  if (e.divisor == 1 || (!words && (e.is_power() || highest >= 1 << 15))) return Sliding::None;
  k.epilogue = Epilogue::Divide;
  k.magic = static_cast<uint32_t>(e.reciprocal(words ? 31 + log : 24));
  k.shift = static_cast<uint32_t>(log - 1);
  k.init = words ? static_cast<uint32_t>(start) : both_halves(start);
  return found;
}

// Chooses how a sum becomes a byte (Any can always do it) and what the sum starts from. False if 16 bits do not hold a
// partial sum.
bool plan_bytes(const Scaled &mask, SwarParams &k) {
  const MaskEpilogue &e = mask.epilogue;
  const SumRange range = range_of(mask.value, e.max);
  Epilogue16 as;
  if (e.divisor > 256 || !e.fit_16_bits(range, &as)) return false;
  k.absolute = as.absolute;
  k.init = both_halves(as.start);
  k.zero = both_halves(as.zero);
  k.half = both_halves(as.half);
  k.low = both_halves(as.low);
  k.limit = both_halves(as.limit);
  k.epilogue = Epilogue::Any;
  const int low = as.absolute ? as.zero : as.low, most = as.absolute ? 2 * low : INT16_MAX;
  if (e.divisor == 1 && as.start + range.high <= most && std::max(low, most) <= INT16_MAX) {
    k.epilogue = Epilogue::Clamp;
    k.minus_low = both_halves(-low);
  }
  // Exact for every dividend up to 256 * divisor, since the reciprocal is too large by less than 1 in units of 2^-24.
  if (e.is_power())
    k.shift = static_cast<uint32_t>(ceil_log2(e.divisor));
  else
    k.magic = static_cast<uint32_t>(e.reciprocal(24));
  return true;
}

// The factors for distances 0, 1 and 2 of a 5x5 mask whose numbers depend only on |dx| + |dy| and are 0 beyond 2; empty
// for other masks.
Line distance_factors(const Line &value) {
  const Line factors = {value[12], value[11], value[10]};
  for (int j = 0; j < 5; j++)
    for (int i = 0; i < 5; i++) {
      const int distance = std::abs(i - 2) + std::abs(j - 2);
      if (value[j * 5 + i] != (distance <= 2 ? factors[distance] : 0)) return {};
    }
  return factors;
}

SwarKind linear(const Pass &pass, SwarParams &k, SwarKind kind) {
  const IntegerMask &mask = pass.mask[0];
  const Rounding &rounding = pass.rounding[0][0];
  const int size = pass.width();
  if (pass.wide || pass.has_gain() || mask.row_shift || size != pass.height() || size < 3 || size > 7 ||
      mask.value.empty() || rounding.wide)
    return {};
  const Scaled scaled(mask, rounding);
  kind.sliding = plan_built_in(scaled, kind.words, k);
  if (kind.sliding != Sliding::None) return kind;
  if (size == 7 || (size == 5 && distance_factors(scaled.value).empty())) return {};  // the matrix instructions do it
  kind.sliding = size == 3 ? Sliding::Dense3 : Sliding::Diamond5;
  if (!kind.words && !plan_bytes(scaled, k)) return {};
  // A sum of 32 bits is a sample but for clamping, or Any uses the plan's Rounding and the plan's scale.
  const bool clamps = scaled.epilogue.divisor == 1, keeps_scale = kind.words && !clamps;
  if (kind.words) {
    k.epilogue = clamps ? Epilogue::Clamp : Epilogue::Any;
    k.absolute = rounding.absolute;
    k.init = clamps ? static_cast<uint32_t>(scaled.epilogue.offset) : 0;
  }
  const Line &value = keeps_scale ? mask.value : scaled.value;
  const Line dense = size == 5 ? distance_factors(value) : value;
  std::copy(dense.begin(), dense.end(), k.dense);
  return kind;
}

// Gradients with any rounding: 3x3 masks [-1 0 1] times a smoothing [a b a], and the transpose.
SwarKind any_gradient(const Pass &pass, SwarParams &k, SwarKind kind) {
  const std::vector<int32_t> &x = pass.mask[0].value, &y = pass.mask[1].value;
  const int32_t a = x[2], b = x[5];
  // The squares of two sums that share a register fit 32 bits. With 16-bit containers a sum has a register to itself;
  // magnitude<true>() wants it below 2^22.
  if (a < 0 || b < 0 || x != std::vector<int32_t>{-a, 0, a, -b, 0, b, -a, 0, a} ||
      y != std::vector<int32_t>{-a, -b, -a, 0, 0, 0, a, b, a} ||
      (2 * int64_t{a} + b) * k.sample_mask > (kind.words ? (1 << 22) - 1 : UINT16_MAX / 2))
    return {};
  k.column[0] = static_cast<uint32_t>(a);
  k.column[1] = static_cast<uint32_t>(b);
  kind.sliding = Sliding::Magnitude3;
  return kind;
}

// Gradients whose root alone is rounded, and roberts; any_gradient() does the others.
SwarKind gradient(const Pass &pass, SwarParams &k, SwarKind kind) {
  const Rounding &rounding = pass.rounding[0][0];
  if (pass.has_gain() || pass.wide || rounding.wide || pass.width() != 3 || pass.height() != 3) return {};
  const SwarKind any = any_gradient(pass, k, kind);
  if (pass.norm == Norm::L2Fraction || rounding.offset || rounding.half != 1) return any;
  const std::vector<int32_t> &x = pass.mask[0].value, &y = pass.mask[1].value;
  // The plan has doubled the masks so that half the divisor is an integer.
  if (x == std::vector<int32_t>{0, 0, 0, 0, 2, 0, 0, 0, -2} && y == std::vector<int32_t>{0, 0, 0, 0, 0, 2, 0, -2, 0}) {
    kind.sliding = Sliding::Roberts;
    return kind;
  }
  const int32_t a = x[2] / 2, b = x[5] / 2;
  if (any.sliding == Sliding::None || x[2] % 2 || x[5] % 2 || a < 1 || 2 * a + b > 16) return any;
  k.column[0] = kind.words ? static_cast<uint32_t>(a) : half_factor(a);
  k.column[1] = kind.words ? static_cast<uint32_t>(b) : half_factor(b);
  kind.sliding = Sliding::Gradient;
  return kind;
}

SwarKind compass(const Pass &pass, SwarParams &k, SwarKind kind) {
  const Rounding &rounding = pass.rounding[0][0];
  if (pass.has_gain() || rounding.wide || pass.wide) return {};
  kind.sliding = Sliding::Kirsch3;
  const Scaled mask(pass.mask[0], rounding);
  const int64_t offset = mask.epilogue.offset, start = std::max<int64_t>(offset, 0);
  if (mask.epilogue.divisor != 1 || rounding.absolute) return {};
  std::copy(mask.value.begin(), mask.value.end(), k.dense);
  if (kind.words) {
    k.init = static_cast<uint32_t>(offset);
    return kind;
  }
  // Responses are never below 0: the largest of the eight sums of three is at least their mean.
  const int64_t high = int64_t{mask.value[0]} / 8 * 15 * k.sample_mask;
  if (start + high > INT16_MAX || start - offset > INT16_MAX) return {};
  k.init = both_halves(start);
  k.minus_low = both_halves(offset - start);
  return kind;
}

// A structuring element of up to 7x7 that is symmetric in both directions and has no gaps; SlidingElement describes its
// columns.
SwarKind element(const Pass &pass, SwarParams &k, SwarKind kind) {
  const int radius = std::max(pass.radius_x, pass.radius_y);
  if (radius > 3) return {};
  for (int dx = 0; dx <= pass.radius_x; dx++)
    for (int dy = 0; dy <= pass.radius_y; dy++)
      if (pass.has_member(dx, dy)) k.column[dx] = static_cast<uint32_t>(dy + 1);
  for (int dx = -pass.radius_x; dx <= pass.radius_x; dx++)
    for (int dy = -pass.radius_y; dy <= pass.radius_y; dy++)
      if (pass.has_member(dx, dy) != (static_cast<uint32_t>(std::abs(dy)) < k.column[std::abs(dx)])) return {};
  kind.sliding = radius <= 2 ? Sliding::Element5 : Sliding::Element7;
  return kind;
}

}  // namespace

SwarKind plan_swar(const Plan &plan, const Pass &pass, SwarParams &k) {
  k = {};
  SwarKind kind;
  if (pass.copy_source != pass.source || !describe_samples(plan, k, kind)) return {};
  // Each neighbouring lane contributes at most 16 bytes.
  if (std::max(pass.radius_x, pass.radius_y) * kind.lane_bytes() > 16) return {};
  switch (pass.op) {
    case Op::Linear:
      return linear(pass, k, kind);
    case Op::Magnitude:
      return gradient(pass, k, kind);
    case Op::Compass:
      return compass(pass, k, kind);
    case Op::Median:
      if (pass.width() != pass.height()) return {};
      if (pass.width() == 3) kind.sliding = Sliding::Median3;
      if (pass.width() == 5) kind.sliding = Sliding::Median5;
      return kind;
    case Op::Minimum:
    case Op::Maximum: {
      k.flip = pass.op == Op::Maximum ? 0 : kind.words ? k.sample_mask * 0x00010001u << k.sample_shift : 0xffffffffu;
      if (!pass.element.empty() || pass.width() != pass.height()) return element(pass, k, kind);
      if (pass.width() == 3) kind.sliding = Sliding::Extremum3;
      if (pass.width() == 5) kind.sliding = Sliding::Extremum5;
      if (pass.width() == 7) kind.sliding = Sliding::Extremum7;
      if (pass.width() == 9 && !kind.words) kind.sliding = Sliding::Extremum9;
      return kind;
    }
    default:
      return {};
  }
}

}  // namespace cudaconv::sliding
