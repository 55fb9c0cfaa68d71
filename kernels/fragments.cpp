// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fragments.h"

#include <algorithm>
#include <vector>

namespace cudaconv {

namespace {

constexpr int64_t kLargestSample = 255, kRowSumMax = 0xffff;
constexpr int kRowBits = 8;  // that a rounded row's sum leaves off

bool all_dense_8bit(const Plan &plan) {
  return std::all_of(plan.layout.plane, plan.layout.plane + plan.layout.planes, [](const PlaneLayout &p) {
    return p.container == Container::U8 && p.dense() && p.channel[0].depth == 8;
  });
}

bool all_within(const std::vector<int32_t> &values, int32_t low, int32_t high) {
  return std::all_of(values.begin(), values.end(), [=](int32_t v) { return v >= low && v <= high; });
}
bool all_bytes(const std::vector<int32_t> &values) {
  return all_within(values, INT8_MIN, INT8_MAX);
}
bool all_words(const std::vector<int32_t> &values) {
  return all_within(values, INT16_MIN, INT16_MAX);
}

void put_byte(uint32_t *line, int index, int32_t value) {
  line[index / 4] |= (static_cast<uint32_t>(value) & 0xffu) << index % 4 * 8;
}

// Quotients of sums with a common factor of two are those of half the sums:
//   floor((2s + c) / 2d) = floor((s + floor(c / 2)) / d)
// Masks with an odd divisor come doubled; halved, more of them fit a byte.
struct Quotient {
  int64_t offset, half, divisor;
  bool absolute;

  explicit Quotient(const Rounding &r) : offset(r.offset), half(r.half), divisor(2 * r.half), absolute(r.absolute) {
    if (absolute) return;
    offset += half;
    half = 0;
  }

  void reduce(std::vector<int32_t> &values) {
    const auto even = [](int64_t v) { return v % 2 == 0; };
    // A magnitude's divisor stays even: that of 1 has no reciprocal.
    while (even(divisor) && (!absolute || (divisor > 2 && even(offset))) &&
           std::all_of(values.begin(), values.end(), even)) {
      for (int32_t &v : values) v /= 2;
      divisor /= 2;
      offset = offset >> 1;  // rounds down
      half = half >> 1;
    }
  }

  SumRounding rounding() const {
    SumRounding r = {};
    r.start = static_cast<int32_t>(offset);
    r.half = static_cast<int32_t>(half);
    r.limit = static_cast<int32_t>((kLargestSample + 1) * divisor - 1);
    r.absolute = absolute;
    int log = 0;
    while (int64_t{1} << log < divisor) log++;
    r.shifts = !absolute && int64_t{1} << log == divisor;
    if (r.shifts) {
      r.shift = log;
    } else {
      // Exact for dividends below 2^31, see README.md: divisor > 1.
      r.magic = static_cast<uint32_t>(((int64_t{1} << (31 + log)) + divisor - 1) / divisor);
      r.shift = log - 1;
    }
    return r;
  }
};

TensorKind make_separable(const Pass &pass, SeparableTensorParams &p) {
  const IntegerMask &mask = pass.mask[0];
  const int radius = std::max(pass.radius_x, pass.radius_y);
  Quotient quotient(pass.rounding[0][0]);
  std::vector<int32_t> column = mask.column;
  quotient.reduce(column);
  TensorKind kind = {Tensor::Separable, 4, Weights::Byte};
  while (kind.radius < radius) kind.radius *= 2;
  if (mask.row_shift)
    kind.weights = Weights::Rounded;
  else if (!all_bytes(mask.row) || !all_bytes(column))
    kind.weights = Weights::Word;
  // There are larger ones, but boxes alone, whose coefficients are small.
  if (radius >= 64 || (kind.weights == Weights::Word && radius > 16) || !all_words(column) ||
      (mask.row_shift ? mask.row_shift != kRowBits || !all_within(mask.row, 0, UINT16_MAX) : !all_words(mask.row)))
    return {};

  int64_t low = 0, high = 0, column_sum = 0;
  for (int32_t v : mask.row) (v < 0 ? low : high) += kLargestSample * v;
  for (int32_t v : column) column_sum += v;
  const int64_t half = mask.row_shift ? int64_t{1} << (mask.row_shift - 1) : 0;
  // Rounded up, and with a row's rounding that may reach one below.
  const int64_t added = low < 0 ? ((-low) >> mask.row_shift) + 1 : 0;
  const int64_t start = half + (added << mask.row_shift);
  if ((start + high) >> mask.row_shift > kRowSumMax) return {};
  p.row_start = static_cast<int32_t>(start);
  p.finish = quotient.rounding();
  // Sums are right modulo 2^32, and final ones fit.
  p.finish.start =
      static_cast<int32_t>(static_cast<uint32_t>(p.finish.start) - static_cast<uint32_t>(added * column_sum));

  for (int byte = 0; byte < (kind.weights == Weights::Byte ? 1 : 2); byte++) {
    for (int i = 0; i < pass.width(); i++)
      put_byte(p.line[0][byte], kind.radius - pass.radius_x + i, mask.row[i] >> 8 * byte);
    for (int j = 0; j < pass.height(); j++)
      put_byte(p.line[1][byte], kind.radius - pass.radius_y + j, column[j] >> 8 * byte);
  }
  return kind;
}

TensorKind make_dense(const Pass &pass, DenseTensorParams &p) {
  const int width = pass.width(), height = pass.height();
  if (pass.mask[0].value.empty() || width > 31 || height > 31) return {};
  Quotient quotient(pass.rounding[0][0]);
  std::vector<int32_t> value = pass.mask[0].value;
  quotient.reduce(value);
  if (!all_words(value)) return {};
  const TensorKind kind = {Tensor::Dense, pass.radius_x <= 8 ? 8 : 16,
                           all_bytes(value) ? Weights::Byte : Weights::Word};
  p.finish = quotient.rounding();
  p.height = (height + 3) / 4 * 4;
  p.spare = p.height > height;
  for (int byte = 0; byte < (kind.weights == Weights::Byte ? 1 : 2); byte++)
    for (int j = 0; j < height; j++)
      for (int i = 0; i < width; i++)
        put_byte(p.line[byte][j], kind.radius - pass.radius_x + i, value[j * width + i] >> 8 * byte);
  return kind;
}

}  // namespace

TensorKind make_fragments(const Plan &plan, const Pass &pass, SeparableTensorParams &separable,
                          DenseTensorParams &dense) {
  if (pass.op != Op::Linear || pass.wide || pass.has_gain() || pass.keep_x || pass.keep_y ||
      pass.copy_source != pass.source || !all_dense_8bit(plan))
    return {};
  const auto finish = [&](TensorKind kind, TensorParams &p) {
    p.radius_x = pass.radius_x;
    p.radius_y = pass.radius_y;
    return kind;
  };
  if (pass.mask[0].separable()) {
    const TensorKind kind = make_separable(pass, separable);
    if (kind.structure != Tensor::None) return finish(kind, separable);
    if (pass.mask[0].row_shift) return {};
  }
  return finish(make_dense(pass, dense), dense);
}

}  // namespace cudaconv
