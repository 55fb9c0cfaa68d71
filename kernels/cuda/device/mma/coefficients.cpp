// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cuda/device/mma/coefficients.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "plan/epilogue.h"

namespace cudaconv {

namespace {

// Fills in what separable and dense masks have in common. False if the pass is for neither.
bool describe(const Plan &plan, const Pass &pass, MmaKind &kind, MmaParams &p) {
  const PlaneLayout &first = plan.layout.plane[0];
  const ChannelLayout &sample = first.channel[0];
  const bool words = first.container == Container::U16, four = first.channels == 4;
  if (pass.op != Op::Linear || pass.copy_source != pass.source || !plan.layout.uniform_dense()) return false;
  for (int i = 0; i < plan.layout.planes; i++) {
    const int channels = plan.layout.plane[i].channels;
    if (words && (channels == 3 || (channels == 4) != four)) return false;
  }
  kind.samples = !words ? Samples::U8 : four ? Samples::U16x4 : Samples::U16;
  p.sample_shift = sample.shift;
  p.sample_mask = ((1u << sample.depth) - 1) * 0x00010001u;
  p.radius_x = pass.radius_x;
  p.radius_y = pass.radius_y;
  return words || (sample.depth == 8 && sample.shift == 0 && !pass.wide);
}

bool any_negative(const std::vector<int32_t> &values) {
  return std::any_of(values.begin(), values.end(), [](int32_t v) { return v < 0; });
}

// Sets byte `index` of a line, which is 0, to the lowest byte of `value`.
void put_byte(uint32_t *line, int index, int32_t value) {
  line[index / 4] |= (static_cast<uint32_t>(value) & 0xffu) << index % 4 * 8;
}

// The divisor of an absolute value stays above 1, which has no reciprocal.
int64_t least_divisor(const MaskEpilogue &e) {
  return e.absolute ? 2 : 1;
}

// The rounding of sums that fit 32 bits and are too large by `more`.
SumRounding round_32(const MaskEpilogue &e, int64_t more) {
  const int log = ceil_log2(e.divisor);
  SumRounding r = {};
  r.absolute = e.absolute;
  // Sums are right modulo 2^32.
  r.start = static_cast<int32_t>(static_cast<uint32_t>(e.offset - more));
  r.mode = e.shifts() ? SumRounding::Shift : SumRounding::Divide;
  if (e.shifts()) {
    r.shift = log;
  } else {
    // Exact for dividends below 2^31, see kernels/numbers.md; the divisor is greater than 1.
    r.half = static_cast<int32_t>(e.half);
    r.limit = static_cast<int32_t>(e.limit());
    r.magic = static_cast<uint32_t>(e.reciprocal(31 + log));
    r.shift = log - 1;
  }
  return r;
}

// ShiftWide for sums that are too large by `more`. False if there is none.
bool round_wide(const MaskEpilogue &e, int64_t more, SumRounding &r) {
  constexpr int64_t kMost = 1 << 30;
  const int64_t start = e.offset - more, high = start >> 24;
  r = {};
  r.mode = SumRounding::ShiftWide;
  r.shift = ceil_log2(e.divisor) - 32;
  r.start = static_cast<int32_t>(start & 0xffffff);
  r.start_high = static_cast<int32_t>(high);
  return e.shifts() && r.shift >= 0 && high >= -kMost && high <= kMost;
}

// Shift64 for sums up to `largest_sum`. False if there is none.
bool round_64(const MaskEpilogue &e, int64_t largest_sum, SumRounding &r) {
  r = {};
  r.absolute = e.absolute;
  r.mode = SumRounding::Shift64;
  r.shift = ceil_log2(e.divisor);
  r.start = static_cast<int32_t>(static_cast<uint32_t>(e.offset));
  r.start_high = static_cast<int32_t>(e.offset >> 32);
  // Shifted, the sum has to fit 32 bits.
  return e.is_power() && (largest_sum + std::abs(e.offset)) >> r.shift < INT32_MAX - 1;
}

// The rounding of a pass with gains, whose sums are rounded first. The epilogue must not have been reduced.
bool sharpen(const MaskEpilogue &e, const Pass &pass, int64_t more, SumRounding &r, Sharpening &s) {
  const int log = ceil_log2(e.divisor);
  if (!e.shifts() || pass.wide || log > 32) return false;
  // The gains are `gain` of the sum and divisor - gain * unit of the middle sample, as in unsharp masks.
  const int64_t gain = pass.sum_gain, rest = e.divisor - pass.center_gain;
  const int64_t unit = gain ? rest / gain : 0, scale = int64_t{1} << (32 - log);
  if (unit * gain != rest || unit < 0 || unit > INT32_MAX / e.max || std::abs(gain) > INT32_MAX / scale ||
      std::abs(e.offset) > INT64_MAX / 4 / scale)
    return false;
  r = {};
  r.mode = SumRounding::Sharpen;
  r.start = static_cast<int32_t>((pass.sum_shift ? int64_t{1} << (pass.sum_shift - 1) : 0) - more);
  s.sum_shift = pass.sum_shift;
  s.unit = static_cast<int32_t>(unit);
  s.amount = static_cast<int32_t>(-gain * scale);
  s.offset = e.offset * scale;
  return true;
}

// Fills in factor and magic for sums up to `largest_sum`. False if there are none.
bool make_scale(const MaskEpilogue &e, int64_t largest_sum, DenseMmaParams &p) {
  if (e.divisor >= 1 << 16) return false;
  // factor * magic / 2^32 is 256 / divisor or slightly more. The excess, times the largest sum that has a sample, is
  // less than 256 / divisor: too little to reach the next sample.
  int shift = 0;
  while (e.reciprocal(40 - shift) > INT32_MAX) shift++;
  p.factor = 1 << shift;
  p.magic = static_cast<int32_t>(e.reciprocal(40 - shift));
  return (largest_sum + std::abs(e.offset)) << shift <= INT32_MAX && e.divisor * e.divisor << shift < int64_t{1} << 32;
}

// How many digits of -128 to 127, each of a byte, all values have; 0 if they have too many.
int digits_of(const std::vector<int32_t> &values) {
  int64_t ones = 1;  // the number whose digits are ones
  for (int digits = 1; digits <= kMostDigits; digits++, ones = ones * 256 + 1)
    if (all_within(values, INT8_MIN * ones, INT8_MAX * ones)) return digits;
  return 0;
}

// Puts the lowest `bytes` bytes of the factors of a separable mask into the lines, which are zeros, for kernels of the
// class `radius`.
void put_factors(const std::vector<int32_t> &row, const std::vector<int32_t> &column, int radius, int bytes,
                 SeparableMmaParams &p) {
  const std::vector<int32_t> *const factors[] = {&row, &column};
  for (int line = 0; line < 2; line++) {
    const int size = static_cast<int>(factors[line]->size());
    for (int byte = 0; byte < bytes; byte++)
      for (int i = 0; i < size; i++)
        put_byte(p.line[line][byte], radius - size / 2 + i, (*factors[line])[i] >> 8 * byte);
  }
}

}  // namespace

MmaKind plan_separable(const Plan &plan, const Pass &pass, SeparableMmaParams &p) {
  MmaKind kind;
  if (!describe(plan, pass, kind, p) || !pass.mask[0].separable()) return {};
  const IntegerMask &mask = pass.mask[0];
  const int radius = std::max(pass.radius_x, pass.radius_y);
  const bool words = kind.samples != Samples::U8;
  // With gains results may be negative although sums never are.
  MaskEpilogue epilogue(pass.rounding[0][0], pass.has_gain() || any_negative(mask.row) || any_negative(mask.column));
  std::vector<int32_t> row = mask.row, column = mask.column;
  if (!pass.has_gain()) epilogue.reduce(column, least_divisor(epilogue));
  kind.radius = 8;
  while (kind.radius < radius) kind.radius *= 2;
  // Long windows of 16-bit samples: other structures are faster, except with factors of 24 bits.
  if (radius > 32 || (words && kind.radius == 32 && !(pass.wide && mask.row_shift == 16))) return {};

  const int bytes = factor_bytes(kind.samples);
  const int64_t end = int64_t{1} << 8 * bytes;
  p.row_shift = mask.row_shift ? 8 * (bytes - 1) : 0;
  p.row_bytes = p.row_shift ? 0x6251 : 0x5140;
  p.signed_column = any_negative(column);
  if (mask.row_shift > p.row_shift || (!words && mask.row_shift != p.row_shift) ||
      !all_within(row, mask.row_shift ? 0 : -end / 2, (end >> (p.row_shift - mask.row_shift)) - 1))
    return {};
  for (int32_t &v : row) v *= 1 << (p.row_shift - mask.row_shift);
  if (words && pass.wide) epilogue.extend(column, int64_t{1} << 32, static_cast<int32_t>(end / 2 - 1));
  const bool has_sign = !words || p.signed_column;
  if (!all_within(column, has_sign ? -end / 2 : 0, has_sign ? end / 2 - 1 : end - 1)) return {};

  const SumRange range = range_of(row, epilogue.max);
  const int64_t half = p.row_shift ? int64_t{1} << (p.row_shift - 1) : 0;
  // Rounded up, since rounding a row sum may reach one below, and to what row_start counts.
  int64_t added = range.low < 0 ? ((-range.low) >> p.row_shift) + 1 : 0;
  if (words && !p.row_shift) added = (added + 255) & ~int64_t{255};
  const int64_t start = half + (added << p.row_shift);
  if ((start + range.high) >> p.row_shift >= end) return {};
  p.row_start = static_cast<int32_t>(words ? start >> 8 : start);
  const int64_t more = added * std::accumulate(column.begin(), column.end(), int64_t{0});
  if (pass.has_gain()) {
    if (!mask.row_shift || !has_sharpening(kind.samples) || !sharpen(epilogue, pass, more, p.epilogue, p.sharpening))
      return {};
  } else if (!pass.wide) {
    p.epilogue = round_32(epilogue, more);
  } else if (!round_wide(epilogue, more, p.epilogue)) {
    return {};
  }

  put_factors(row, column, kind.radius, bytes, p);
  return kind;
}

MmaKind plan_dense(const Plan &plan, const Pass &pass, DenseMmaParams &p) {
  MmaKind kind;
  if (!describe(plan, pass, kind, p) || pass.has_gain() || pass.mask[0].row_shift) return {};
  const int width = pass.width(), height = pass.height();
  if (pass.mask[0].value.empty() || width > 31 || height > 31) return {};
  MaskEpilogue epilogue(pass.rounding[0][0], any_negative(pass.mask[0].value));
  std::vector<int32_t> value = pass.mask[0].value;
  epilogue.reduce(value, least_divisor(epilogue));
  if (kind.samples == Samples::U8) epilogue.extend(value, 1024, INT8_MAX);  // then sums need no factor
  kind.radius = has_narrow_dense(kind.samples) && pass.radius_x <= 8 ? 8 : 16;
  p.digits = digits_of(value);
  if (!p.digits) return {};
  const SumRange range = range_of(value, epilogue.max);
  const int64_t largest_sum = range.high - range.low;
  if (kind.samples == Samples::U8 || (!pass.wide && !epilogue.shifts()))
    p.epilogue = round_32(epilogue, 0);
  else if (!round_64(epilogue, largest_sum, p.epilogue))
    return {};
  const int rows = dense_rows(kind.samples);
  p.height = (height + rows - 1) / rows * rows;
  p.spare = p.height > height;
  for (int j = 0; j < height; j++)
    for (int i = 0; i < width; i++) {
      int64_t rest = value[j * width + i];
      for (int n = 0; n < p.digits; n++) {
        const auto digit = static_cast<int8_t>(rest);
        put_byte(p.line[kind.samples == Samples::U8 ? p.digits - 1 - n : n][j], kind.radius - pass.radius_x + i, digit);
        rest = (rest - digit) / 256;
      }
    }
  if (kind.samples == Samples::U8 && p.digits == 1 && pass.radius_x <= kBlocks4x4Radius && height <= kBlocks4x4Height)
    kind.blocks4x4 = epilogue.absolute || make_scale(epilogue, largest_sum, p);
  return kind;
}

}  // namespace cudaconv
