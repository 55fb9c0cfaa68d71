// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/sliding/swar_plan.h"

#include <algorithm>

namespace cudaconv::sliding {

namespace {

constexpr int64_t kHalfMax = 0xffff;
constexpr int64_t kHalfFloatMax = 2048;  // up to here integers are represented by HalfPair

uint32_t both_halves(int64_t v) {
  return (static_cast<uint32_t>(v) & 0xffffu) * 0x00010001u;
}

// An integer from -2048 to 2048 in the representation of HalfPair.
uint32_t half_integer(int64_t v) {
  return both_halves(v < 0 ? 0x8000 - v : v);
}

// A factor for such integers as an ordinary 16-bit float, also from -2048 to 2048.
uint32_t half_factor(int64_t v) {
  if (!v) return 0;
  int64_t mantissa = v < 0 ? -v : v, exponent = 25;
  while (mantissa < 0x400) {
    mantissa *= 2;
    exponent--;
  }
  if (mantissa == 0x800) {
    mantissa /= 2;
    exponent++;
  }
  return both_halves((v < 0 ? 0x8000 : 0) | exponent << 10 | (mantissa & 0x3ff));
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
  k.white = both_halves(k.sample_mask);
  return kind.words ? kind.most_channels != 3 : sample.depth == 8;
}

// A linear mask whose coefficients, offset and divisor are divided by the powers of two that all of them share.
struct Scaled {
  std::vector<int32_t> value, row, column;
  int64_t offset, divisor;

  Scaled(const IntegerMask &mask, const Rounding &rounding)
      : value(mask.value), row(mask.row), column(mask.column), offset(rounding.offset), divisor(2 * rounding.half) {
    const auto even = [](const std::vector<int32_t> &line) {
      return std::all_of(line.begin(), line.end(), [](int32_t c) { return c % 2 == 0; });
    };
    while (divisor % 2 == 0 && offset % 2 == 0 && even(value)) {
      // If all products are even, all numbers of the row or all of the column are.
      multiply(value, 1, 2);
      if (!row.empty()) multiply(even(column) ? column : row, 1, 2);
      offset /= 2;
      divisor /= 2;
    }
  }

  void scale_up(int factor) {
    multiply(value, factor, 1);
    if (!column.empty()) multiply(column, factor, 1);
    offset *= factor;
    divisor *= factor;
  }

  int64_t half() const { return divisor / 2; }
  SumRange range(int64_t largest_sample) const {
    SumRange result;
    for (int32_t c : value) result.add(c, largest_sample);
    return result;
  }

 private:
  static void multiply(std::vector<int32_t> &line, int factor, int divisor) {
    for (int32_t &c : line) c = c * factor / divisor;
  }
};

using Line = std::vector<int32_t>;

// Whether a line is one of the binomial rows that have kernels: 1 2 1 and 1 4 6 4 1.
bool binomial(const Line &line) {
  return line == Line{1, 2, 1} || line == Line{1, 4, 6, 4, 1};
}

bool ones(const Line &line) {
  return std::all_of(line.begin(), line.end(), [](int32_t c) { return c == 1; });
}

bool is_mean(const Scaled &mask) {
  return !mask.row.empty() && ones(mask.row) && ones(mask.column);
}

// Chooses how a sum becomes a byte (Any can always do it) and what the sum starts from. False if 16 bits do not hold a
// partial sum.
bool plan_u8_epilogue(Scaled &mask, const Rounding &rounding, SwarParams &k, int64_t *start) {
  if (mask.divisor > 256) return false;
  const SumRange before = mask.range(255);
  const bool power_of_two = (mask.divisor & (mask.divisor - 1)) == 0;
  // Divide is exact for sums below 2^15. Rounding up the reciprocal adds less than half of 1 / divisor to a quotient.
  // The sum in the low half adds less than another half to the quotient of the high half.
  const bool mean = power_of_two ? binomial(mask.row) && binomial(mask.column)
                                 : is_mean(mask) && before.high + mask.offset + mask.half() < 1 << 15;
  if (mean && !rounding.absolute && before.low == 0 && mask.offset + mask.half() >= 0 &&
      before.high + mask.offset + mask.half() < 256 * mask.divisor) {
    *start = mask.offset + mask.half();
    if (power_of_two) {
      // Scaled so that the high byte of 16 bits is the result.
      const int factor = static_cast<int>(256 / mask.divisor);
      mask.scale_up(factor);
      *start *= factor;
      k.epilogue = Epilogue::Shift;
    } else {
      k.epilogue = Epilogue::Divide;
    }
  } else {
    const int64_t offset = mask.offset;
    k.absolute = rounding.absolute;
    if (rounding.absolute) {
      *start = std::max<int64_t>({-before.low, offset, 0});
      const int64_t zero = *start - offset;
      if (zero > kHalfMax || std::max(before.high + offset, -(before.low + offset)) + mask.half() > kHalfMax)
        return false;
      k.zero = both_halves(zero);
      k.half = both_halves(mask.half());
      const bool clamps = mask.divisor == 1 && *start + before.high <= 2 * zero && 2 * zero <= 0x7fff;
      k.epilogue = clamps ? Epilogue::Clamp : Epilogue::Any;
      if (clamps) k.minus_low = both_halves(-zero);
    } else {
      *start = std::max<int64_t>({-before.low, offset + mask.half(), 0});
      const int64_t low = *start - offset - mask.half();
      if (low > kHalfMax) return false;
      if (mask.divisor == 1 && *start + before.high <= 0x7fff && low <= 0x7fff) {
        k.epilogue = Epilogue::Clamp;
        k.minus_low = both_halves(-low);
      } else {
        k.epilogue = Epilogue::Any;
      }
      k.low = both_halves(low);
    }
    if (*start + before.high > kHalfMax) return false;
  }
  k.limit = both_halves(std::min(256 * mask.divisor - 1, kHalfMax));
  if ((mask.divisor & (mask.divisor - 1)) == 0) {
    k.shift = static_cast<uint32_t>(ceil_log2(mask.divisor));
  } else {
    // Exact for every dividend up to 256 * divisor, since the reciprocal is too large by less than 1 in units of 2^-24.
    k.magic = static_cast<uint32_t>(((int64_t{1} << 24) + mask.divisor - 1) / mask.divisor);
  }
  return true;
}

// Chooses how a 32-bit sum becomes a sample of a 16-bit container, and what the sum starts from.
void plan_u16_epilogue(const Scaled &mask, const Rounding &rounding, SwarParams &k, int64_t *start) {
  k.epilogue = Epilogue::Any;
  *start = 0;
  const SumRange range = mask.range(k.sample_mask);
  const int64_t most = int64_t{k.sample_mask + 1} * mask.divisor;
  if (binomial(mask.row) && binomial(mask.column) && !rounding.absolute && (mask.divisor & (mask.divisor - 1)) == 0 &&
      mask.offset + mask.half() >= 0 && range.high + mask.offset + mask.half() < most && most <= INT32_MAX) {
    *start = mask.offset + mask.half();
    k.epilogue = Epilogue::Shift;
    k.shift = static_cast<uint32_t>(ceil_log2(mask.divisor));
  } else if (is_mean(mask) && mask.divisor > 1 && !rounding.absolute && mask.offset + mask.half() >= 0 &&
             range.high + mask.offset + mask.half() < most && most <= INT32_MAX) {
    *start = mask.offset + mask.half();
    k.epilogue = Epilogue::Divide;
    // Exact for dividends below 2^31, see kernels/README.md.
    const int log = ceil_log2(mask.divisor);
    k.magic = static_cast<uint32_t>(((int64_t{1} << (31 + log)) + mask.divisor - 1) / mask.divisor);
    k.shift = static_cast<uint32_t>(log - 1);
  } else if (mask.divisor == 1) {
    *start = mask.offset;
    k.absolute = rounding.absolute;
    k.epilogue = Epilogue::Clamp;
  }
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

// Computes the parameters of a 5x5 mask with distance_factors() if 16-bit floats hold all its partial sums; else
// returns false. All partial sums but the last are multiples of a power of two, no more of them than a float can count;
// the last one may be rounded where it is beyond all samples.
bool halves_by_distance(const Scaled &mask, const Line &factors, const Rounding &rounding, SwarParams &k) {
  if (mask.divisor != 1 || std::abs(mask.offset) > kHalfFloatMax) return false;
  k.init = half_integer(mask.offset);
  k.sign_bits = rounding.absolute ? 0x7fff7fffu : 0xffffffffu;
  constexpr int64_t kCount[] = {1, 4, 8};
  int64_t unit = mask.offset & -mask.offset;
  SumRange range = {mask.offset, mask.offset};
  for (int i = 0; i < 3; i++) {
    const int64_t factor = std::abs(factors[i]), lowest = factor & -factor;
    if (factor > kHalfFloatMax) return false;
    if (lowest) unit = unit ? std::min(unit, lowest) : lowest;
    range.add(factors[i], kCount[i] * 255);
    if (i < 2 && std::max(range.high, -range.low) > kHalfFloatMax * unit) return false;
    k.dense[i] = half_factor(factors[i]);
  }
  return true;
}

// The operation for a separable mask and its epilogue. None for masks beyond 3x3 that are neither binomials nor means:
// the matrix instructions do them.
Sliding separable_of(int size, Epilogue epilogue) {
  if (epilogue == Epilogue::Shift) return size == 3 ? Sliding::Binomial3 : Sliding::Binomial5;
  if (epilogue == Epilogue::Divide) return size == 3 ? Sliding::Mean3 : size == 5 ? Sliding::Mean5 : Sliding::Mean7;
  return size == 3 ? Sliding::Separable3 : Sliding::None;
}

void set_factors(const Scaled &mask, SwarParams &k) {
  std::copy(mask.row.begin(), mask.row.end(), k.row);
  std::copy(mask.column.begin(), mask.column.end(), k.column);
}

// set_factors() for two samples in a register, with the initial value of column sums, for which `start` is corrected.
// False if 16 bits do not hold a column sum.
bool set_pair_factors(const Scaled &mask, SwarParams &k, int64_t *start) {
  set_factors(mask, k);
  SumRange column;
  int64_t row_sum = 0;
  for (size_t i = 0; i < mask.row.size(); i++) {
    column.add(mask.column[i], k.sample_mask);
    row_sum += mask.row[i];
  }
  // Halves are separated between columns and rows: there each holds its sum minus the lowest possible one.
  k.column_init = both_halves(-column.low);
  *start += column.low * row_sum;
  return column.high - column.low <= kHalfMax;
}

SwarKind linear(const Pass &pass, SwarParams &k, SwarKind kind) {
  const SwarKind none;
  const IntegerMask &mask = pass.mask[0];
  const Rounding &rounding = pass.rounding[0][0];
  const int size = pass.width();
  if (pass.wide || pass.has_gain() || mask.row_shift || size != pass.height() || size < 3 || size > 7 ||
      mask.value.empty() || rounding.wide)
    return none;
  const bool separable = mask.separable();
  if (!separable && size > 5) return none;
  Scaled scaled(mask, rounding);
  int64_t start;
  if (!separable && size == 5) {
    const Line factors = distance_factors(scaled.value);
    if (factors.empty()) return none;
    kind.sliding = Sliding::Diamond5;
    if (!kind.words) return halves_by_distance(scaled, factors, rounding, k) ? kind : none;
    if (scaled.divisor != 1) return none;
    k.init = static_cast<uint32_t>(scaled.offset);
    k.absolute = rounding.absolute;
    std::copy(factors.begin(), factors.end(), k.dense);
    return kind;
  }
  if (kind.words) {
    // Any uses the plan's Rounding, so the mask keeps the plan's scale.
    plan_u16_epilogue(scaled, rounding, k, &start);
    if (k.epilogue == Epilogue::Any) {
      scaled.value = mask.value;
      scaled.row = mask.row;
      scaled.column = mask.column;
    }
  } else {
    if (!plan_u8_epilogue(scaled, rounding, k, &start)) return none;
  }

  if (separable) {
    if (kind.words)
      set_factors(scaled, k);
    else if (!set_pair_factors(scaled, k, &start))
      return none;
    kind.sliding = separable_of(size, k.epilogue);
  } else {
    for (size_t i = 0; i < scaled.value.size(); i++) k.dense[i] = static_cast<uint32_t>(scaled.value[i]);
    kind.sliding = Sliding::Dense3;
  }
  k.init = kind.words ? static_cast<uint32_t>(start) : both_halves(start);
  return kind;
}

// Gradients with any rounding: 3x3 masks [-1 0 1] times a smoothing [a b a], and the transpose.
SwarKind any_gradient(const Pass &pass, SwarParams &k, SwarKind kind) {
  const std::vector<int32_t> &x = pass.mask[0].value, &y = pass.mask[1].value;
  const int32_t a = x[2], b = x[5];
  // The squares of two sums that share a register fit 32 bits; with 16-bit containers a sum has a register to itself.
  if (a < 0 || b < 0 || x != std::vector<int32_t>{-a, 0, a, -b, 0, b, -a, 0, a} ||
      y != std::vector<int32_t>{-a, -b, -a, 0, 0, 0, a, b, a} ||
      (2 * int64_t{a} + b) * k.sample_mask > (kind.words ? INT32_MAX / 4 : kHalfMax / 2))
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
  const SwarKind none;
  const Rounding &rounding = pass.rounding[0][0];
  if (pass.has_gain() || rounding.wide || pass.wide) return none;
  const int32_t gain = pass.mask[0].value[0], all = pass.mask[0].value[1];
  kind.sliding = Sliding::Kirsch3;
  // Responses are never below 0: the largest of the eight sums of three is at least their mean.
  const int64_t offset = rounding.offset, divisor = 2 * rounding.half, high = int64_t{gain} / 8 * 15 * k.sample_mask;
  if (divisor != 2 || gain % 2 || all % 2 || offset % 2 || rounding.absolute) return none;
  k.dense[0] = static_cast<uint32_t>(gain / 2);
  k.dense[1] = static_cast<uint32_t>(all / 2);
  const int64_t start = std::max<int64_t>(offset / 2, 0);
  if (kind.words) {
    k.init = static_cast<uint32_t>(offset / 2);
    return kind;
  }
  if (start + high / 2 > 0x7fff || start - offset / 2 > 0x7fff) return none;
  k.init = both_halves(start);
  k.minus_low = both_halves(offset / 2 - start);
  return kind;
}

// A structuring element of up to 7x7 that is symmetric in both directions and has no gaps; SlidingElement describes its
// columns.
SwarKind element(const Pass &pass, SwarParams &k, SwarKind kind) {
  const SwarKind none;
  const int radius = std::max(pass.radius_x, pass.radius_y);
  if (radius > 3) return none;
  for (int dx = 0; dx <= pass.radius_x; dx++)
    for (int dy = 0; dy <= pass.radius_y; dy++)
      if (pass.has_member(dx, dy)) k.column[dx] = static_cast<uint32_t>(dy + 1);
  for (int dx = -pass.radius_x; dx <= pass.radius_x; dx++)
    for (int dy = -pass.radius_y; dy <= pass.radius_y; dy++)
      if (pass.has_member(dx, dy) != (static_cast<uint32_t>(std::abs(dy)) < k.column[std::abs(dx)])) return none;
  kind.sliding = radius <= 2 ? Sliding::Element5 : Sliding::Element7;
  return kind;
}

}  // namespace

SwarKind plan_swar(const Plan &plan, const Pass &pass, SwarParams &k) {
  k = {};
  const SwarKind none;
  SwarKind kind;
  if (pass.copy_source != pass.source || !describe_samples(plan, k, kind)) return none;
  // Each neighbouring lane contributes at most 16 bytes.
  if (std::max(pass.radius_x, pass.radius_y) * kind.lane_bytes() > 16) return none;
  switch (pass.op) {
    case Op::Linear:
      return linear(pass, k, kind);
    case Op::Magnitude:
      return gradient(pass, k, kind);
    case Op::Compass:
      return compass(pass, k, kind);
    case Op::Median:
      if (pass.width() != pass.height()) return none;
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
      return none;
  }
}

}  // namespace cudaconv::sliding
