// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the step from exact sums to samples. Compares every form in the backends with round_to_sample(), which unit.cpp
// compares with the definition. Tests sums where a result changes, and at both ends of a mask's range.
#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cpu/round_samples.h"
#include "cpu/vector.h"
#include "error.h"
#include "formats.h"
#include "plan/plan.h"
#include "reference.h"
#ifdef HAVE_STANDIN
#include "cuda/custom/custom_blocks.cuh"
#include "cuda/custom/custom_dense.cuh"
#include "cuda/device/rounded_means.cuh"
#include "cuda/device/mma/coefficients.h"
#include "cuda/device/mma/sums.cuh"
#include "cuda/methods/methods.cuh"
#include "cuda/separable/separable.cuh"
#include "cuda/sliding/linear.cuh"
#include "cuda/sliding/swar_plan.h"
#endif

namespace cudaconv::test {

#ifdef HAVE_STANDIN
using namespace custom;
using namespace separable;
using namespace sliding;
#endif

namespace {

int failures = 0;
std::map<std::string, int64_t> compared;  // number of samples compared, by form

// A mask whose sums are rounded; sums are multiples of `unit` from `low` to `high`.
struct Case {
  std::string name;
  FrameLayout layout;
  std::shared_ptr<const Plan> plan;
  int64_t low, high, unit, largest_sample;

  const Pass &pass() const { return plan->passes[0]; }
  const IntegerMask &mask() const { return pass().mask[0]; }
  const Rounding &rounding() const { return pass().rounding[0][0]; }
  int round(int64_t sum) const {
    return rounding().wide ? round_to_sample<int64_t>(sum, rounding())
                           : round_to_sample<int32_t>(static_cast<int32_t>(sum), rounding());
  }
};

void expect(const std::string &form, const Case &c, int64_t sum, int want, int got) {
  compared[form]++;
  if (want != got && failures++ < 20)
    std::printf("FAILED %s of %s: sum %lld is %d, want %d\n", form.c_str(), c.name.c_str(), static_cast<long long>(sum),
                got, want);
}

// Sums to test, rounded to multiples of `unit`. Their number is a multiple of four.
std::vector<int64_t> sums_of(const Case &c, int64_t unit) {
  const Rounding &r = c.rounding();
  std::vector<int64_t> sums;
  const auto add = [&](int64_t sum) {
    for (int64_t near = -2; near <= 2; near++) {
      int64_t v = sum + near * unit;
      v -= (v % unit + unit) % unit;
      if (v >= c.low && v <= c.high) sums.push_back(v);
    }
  };
  for (int64_t sum : {c.low, c.high, int64_t{0}, -r.offset, (c.low + c.high) / 2}) add(sum);
  for (int n = 0; n < 12; n++) {
    const int64_t code = n < 3 ? n : n < 6 ? r.max + 4 - n : int64_t{r.max} * (2 * n - 11) / 14;
    for (int sign : {1, -1}) add(sign * (code * 2 * r.half - r.half) - r.offset);
  }
  while (sums.size() % 4) sums.push_back(sums[0]);
  return sums;
}

// ---- CPU ------------------------------------------------------------------------------------------------------------

template <typename Sum, typename Sample>
void test_loops(const std::string &form, const Case &c, const VectorLoops &loops, const std::vector<int64_t> &sums) {
  std::vector<Sum> in(whole_blocks(static_cast<int>(sums.size())));
  std::vector<Sample> out(in.size());
  std::copy(sums.begin(), sums.end(), in.begin());
  loops.round(in.data(), c.rounding(), out.data(), static_cast<int>(in.size()));
  for (size_t i = 0; i < sums.size(); i++) expect(form, c, sums[i], c.round(sums[i]), out[i]);
}

// Unsharp masks: sums and centre samples, with gains that are divided by their common factor.
void test_gains(const Case &c, const VectorLoops &loops) {
  const Pass &pass = c.pass();
  Gain gain = {pass.sum_gain, pass.center_gain, pass.sum_shift, false};
  Rounding reduced = c.rounding();
  if (c.high > INT32_MAX || !make_narrow(&gain, &reduced, static_cast<int>(c.largest_sample))) return;
  std::vector<int32_t> sums(256);
  std::vector<uint8_t> centres(256), out(256);
  for (int i = 0; i < 256; i++) {
    sums[i] = static_cast<int32_t>(c.low + (c.high - c.low) * (i * 37 % 256) / 255);
    centres[i] = static_cast<uint8_t>(i);
  }
  loops.round(sums.data(), gain, centres.data(), reduced, out.data(), 256);
  for (int i = 0; i < 256; i++) {
    const int64_t gained = apply_gain(sums[i], pass.sum_shift, pass.sum_gain, pass.center_gain, centres[i]);
    expect("cpu gain", c, sums[i], round_to_sample(gained, c.rounding()), out[i]);
  }
}

// Sums of 16 bits: as they are, halved, and added up in the same loop.
void test_rounding16(const Case &c, const VectorLoops &loops, const std::vector<int64_t> &sums) {
  const int n = whole_blocks(static_cast<int>(sums.size()));
  std::vector<uint16_t> in(n);
  std::vector<uint8_t> out(n);
  const auto test = [&](const std::string &form, const Rounding16 &rounding, int unit, auto round) {
    for (size_t i = 0; i < sums.size(); i++) in[i] = static_cast<uint16_t>(rounding.start + floor_div(sums[i], unit));
    round();
    for (size_t i = 0; i < sums.size(); i++)
      expect(form + (rounding.shift ? ", magic" : "") + (rounding.absolute ? ", absolute" : ""), c, sums[i],
             c.round(unit * floor_div(sums[i], unit)), out[i]);
  };
  Rounding16 r;
  if (make_rounding16(c.rounding(), {c.low, c.high}, &r)) {
    test("cpu 16 bits", r, 1, [&] { loops.round(in.data(), r, out.data(), n); });
    if (!r.shift)
      test("cpu 16 bits at once", r, 1, [&] {
        for (uint16_t &v : in) v = static_cast<uint16_t>(v - r.start);
        const Tap<uint16_t> tap = {in.data(), 1};
        loops.sum_rounded(&tap, 1, r, out.data(), n);
      });
  }
  if (make_halved_rounding16(c.rounding(), {floor_div(c.low, 2), c.high / 2}, &r))
    test("cpu 16 bits halved", r, 2, [&] { loops.round(in.data(), r, out.data(), n); });
}

void test_cpu(const Case &c) {
  const bool bytes = c.largest_sample <= 255;
  for (const VectorLoops *loops : vector_levels()) {
    if (c.pass().has_gain()) {
      if (bytes) test_gains(c, *loops);
      continue;
    }
    const std::vector<int64_t> sums = sums_of(c, 1);
    if (c.rounding().wide)
      bytes ? test_loops<int64_t, uint8_t>("cpu 64 bits", c, *loops, sums)
            : test_loops<int64_t, uint16_t>("cpu 64 bits", c, *loops, sums);
    else
      bytes ? test_loops<int32_t, uint8_t>("cpu 32 bits", c, *loops, sums)
            : test_loops<int32_t, uint16_t>("cpu 32 bits", c, *loops, sums);
    if (bytes) test_rounding16(c, *loops, sums);
  }
}

#ifdef HAVE_STANDIN

// ---- GPU ------------------------------------------------------------------------------------------------------------

// The ratio of a kernel's coefficients to the plan's: multiples or fractions by a power of two.
struct Ratio {
  int64_t up = 1, unit = 1;

  void apply(int64_t plan, int64_t kernel) {
    if (std::llabs(kernel) >= std::llabs(plan))
      up *= kernel / plan;
    else
      unit *= plan / kernel;
    const int64_t shared = std::min(up, unit);
    up /= shared;
    unit /= shared;
  }
  int64_t scaled(int64_t sum) const { return sum / unit * up; }
};

size_t first_of(const std::vector<int32_t> &values) {
  return std::find_if(values.begin(), values.end(), [](int32_t v) { return v != 0; }) - values.begin();
}

// Coefficient `index` of a line. Its bytes are `stride` words apart.
int64_t coefficient(const uint32_t *line, size_t stride, int bytes, bool is_signed, int index) {
  int64_t value = 0;
  for (int b = 0; b < bytes; b++) {
    const uint32_t byte = line[b * stride + index / 4] >> index % 4 * 8 & 0xff;
    value += (is_signed && b == bytes - 1 ? int64_t{static_cast<int8_t>(byte)} : int64_t{byte}) * (1 << 8 * b);
  }
  return value;
}

// Four sums in a lane's order, for two pixels in each of two rows, split into parts like sums of bytes.
template <int kParts>
PartialSums<kParts> parts_of(const int64_t *sums) {
  PartialSums<kParts> result;
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < kParts; k++)
      result.part[k].v[i] = static_cast<int32_t>(k < kParts - 1 ? sums[i] >> 8 * k & 0xff : sums[i] >> 8 * k);
  return result;
}

constexpr int kByteOrder[4] = {0, 2, 1, 3};  // the order of these sums in a word of bytes

void expect_bytes(const std::string &form, const Case &c, const int64_t *sums, uint32_t word) {
  for (int i = 0; i < 4; i++) {
    const int64_t sum = sums[kByteOrder[i]];
    expect(form, c, sum, c.round(sum), static_cast<int>(word >> 8 * i & 0xff));
  }
}

// Tests round_sums() and round_pixels(). `more`: the excess of the kernel's sums.
template <int kParts>
void test_sum_rounding(const Case &c, const MmaParams &p, bool bytes, const Ratio &ratio, int64_t more) {
  const std::vector<int64_t> all = sums_of(c, c.unit);
  static const char *const modes[] = {"shift", "divide", "wide shift"};
  const std::string name = std::string("mma ") + modes[p.epilogue.mode] + (p.epilogue.absolute ? ", absolute" : "") +
                           (bytes ? "" : ", 16 bits");
  for (size_t n = 0; n < all.size(); n += 4) {
    int64_t sums[4];
    for (int i = 0; i < 4; i++) sums[i] = ratio.scaled(all[n + i]) + more;
    PartialSums<kParts> parts = parts_of<kParts>(sums);
    for (int i = 0; i < 4; i++) {
      parts.part[0].v[i] =
          static_cast<int32_t>(static_cast<uint32_t>(parts.part[0].v[i]) + static_cast<uint32_t>(p.epilogue.start));
      if (!bytes) parts.part[3].v[i] += p.epilogue.start_high;
    }
    if (bytes) {
      const Sums total[1][1] = {{parts.total()}};
      uint32_t word[1][1];
      round_pixels(p.epilogue, total, word);
      expect_bytes(name, c, &all[n], word[0][0]);
    } else {
      uint32_t pairs[2];
      round_sums(p, parts, pairs);
      for (int i = 0; i < 4; i++)
        expect(name, c, all[n + i], c.round(all[n + i]),
               static_cast<int>((pairs[i % 2] >> i / 2 * 16 & 0xffff) >> p.sample_shift));
    }
  }
}

// Tests how custom_blocks.cuh rounds sums of bytes.
void test_scales(const Case &c, const DenseMmaParams &p, const MmaKind &kind, const Ratio &ratio) {
  const std::vector<int64_t> all = sums_of(c, c.unit);
  const PartParams part = {};
  const SummedChannels<1> channels(part);
  const char *const name = !p.magic ? "blocks, absolute" : p.factor > 1 ? "blocks, factor" : "blocks";
  for (size_t n = 0; n < all.size(); n += 4) {
    PartialSums<1> sums[1][1];
    for (int i = 0; i < 4; i++)
      sums[0][0].part[0].v[i] = static_cast<int32_t>(ratio.scaled(all[n + i]) + p.epilogue.start);
    uint32_t word[1][1];
    if (!kind.blocks4x4) continue;
    if (p.magic)
      pack_sums(channels, sums[0], word[0], [&](int32_t v) { return scale_by_factor(p, v); });
    else
      pack_sums(channels, sums[0], word[0], [&](int32_t v) { return divide_sum(p.epilogue, v) << 8; });
    expect_bytes(name, c, &all[n], word[0][0]);
  }
}

void test_sharpening(const Case &c, const SeparableMmaParams &p, int64_t more) {
  const Pass &pass = c.pass();
  for (int i = 0; i < 256; i++) {
    const int64_t sum = c.low + (c.high - c.low) * (i * 37 % 256) / 255;
    const int centre = static_cast<int>(c.largest_sample * i / 255);
    const int64_t gained = apply_gain(sum, pass.sum_shift, pass.sum_gain, pass.center_gain, centre);
    const int32_t got =
        sharpen(p.sharpening, static_cast<int32_t>(sum + more + p.epilogue.start), static_cast<uint32_t>(centre));
    expect("mma sharpen", c, sum, round_to_sample(gained, c.rounding()),
           static_cast<int>(std::clamp<int64_t>(got, 0, c.largest_sample)));
  }
}

void test_separable_mma(const Case &c, const SeparableMmaParams &p, const MmaKind &kind) {
  const bool bytes = kind.samples == Samples::U8;
  const IntegerMask &mask = c.mask();
  Ratio ratio;
  int64_t column_sum = 0;
  const auto at = [&](int line, int radius, int i) {
    return coefficient(p.line[line][0], kLineWords, factor_bytes(kind.samples),
                       line ? bytes || p.signed_column : !p.row_shift, kind.radius - radius + i);
  };
  const int x = static_cast<int>(first_of(mask.row)), y = static_cast<int>(first_of(mask.column));
  ratio.apply(mask.row[x], at(0, p.radius_x, x) >> (p.row_shift - mask.row_shift));
  ratio.apply(mask.column[y], at(1, p.radius_y, y));
  for (size_t i = 0; i < mask.column.size(); i++) column_sum += at(1, p.radius_y, static_cast<int>(i));
  const int64_t more = (int64_t{p.row_start} * (bytes ? 1 : 256) >> p.row_shift) * column_sum;
  if (p.epilogue.mode == SumRounding::Sharpen) return test_sharpening(c, p, more);
  if (bytes)
    test_sum_rounding<3>(c, p, true, ratio, more);
  else
    test_sum_rounding<5>(c, p, false, ratio, more);
}

// Coefficient `index` of a row of a dense mask, from its digits.
int64_t dense_coefficient(const DenseMmaParams &p, bool bytes, int row, int index) {
  int64_t value = 0;
  for (int n = 0; n < p.digits; n++) {
    const int digit = bytes ? n : p.digits - 1 - n;  // the digits that count most first
    value = value * 256 + static_cast<int8_t>(p.line[digit][row][index / 4] >> index % 4 * 8 & 0xff);
  }
  return value;
}

// Four sums in a lane's order as DigitSums, which digit after digit has made of products of samples and coefficients.
template <int kSampleBytes>
DigitSums<kSampleBytes> digit_sums_of(const int64_t *sums, int digits, int32_t start) {
  DigitSums<kSampleBytes> result;
  for (int n = 0; n < digits; n++) {
    const bool last = n == digits - 1;
    result.begin_digit(n, last ? start : 0);
    const int shift = 8 * (kSampleBytes == 1 ? digits - 1 - n : n);
    for (int i = 0; i < 4; i++) {
      // Bytes of the sum; the digit that counts most has the rest.
      const bool most = kSampleBytes == 1 ? n == 0 : last;
      const int64_t part = most ? sums[i] >> shift : sums[i] >> shift & 0xff;
      if (kSampleBytes == 2 && most) result.part[kSampleBytes - 1].v[i] += static_cast<int32_t>(part >> 8);
      result.part[0].v[i] = static_cast<int32_t>(static_cast<uint32_t>(result.part[0].v[i]) +
                                                 static_cast<uint32_t>(kSampleBytes == 2 && most ? part & 0xff : part));
    }
  }
  return result;
}

template <typename Shape>
void test_dense_mma(const Case &c, const DenseMmaParams &p, const MmaKind &kind) {
  constexpr int kBytes = Shape::kSampleBytes;
  const std::vector<int32_t> &value = c.mask().value;
  const int n = static_cast<int>(first_of(value)), width = c.pass().width();
  Ratio ratio;
  ratio.apply(value[n], dense_coefficient(p, kBytes == 1, n / width, kind.radius - p.radius_x + n % width));
  const std::vector<int64_t> all = sums_of(c, c.unit);
  static const char *const modes[] = {"shift", "divide", "wide shift", "64-bit shift"};
  const std::string name = std::string("dense ") + modes[p.epilogue.mode] + (p.digits > 1 ? ", digits" : "") +
                           (p.epilogue.absolute ? ", absolute" : "") + (kBytes == 1 ? "" : ", 16 bits");
  for (size_t n = 0; n < all.size(); n += 4) {
    int64_t scaled[4];
    for (int i = 0; i < 4; i++) scaled[i] = ratio.scaled(all[n + i]);
    const DigitSums<kBytes> sums[1][1][1] = {{{digit_sums_of<kBytes>(scaled, p.digits, p.epilogue.start)}}};
    Rounded<Shape> results[1][1][1];
    round_all<Shape>(p, sums, results);
    if constexpr (kBytes == 1)
      expect_bytes(name, c, &all[n], results[0][0][0]);
    else
      for (int i = 0; i < 4; i++)
        expect(name, c, all[n + i], c.round(all[n + i]),
               static_cast<int>((results[0][0][0][i % 2] >> i / 2 * 16 & 0xffff) >> p.sample_shift));
  }
  if (kBytes == 1) test_scales(c, p, kind, ratio);
}

void test_mma(const Case &c) {
  SeparableMmaParams separable = {};
  DenseMmaParams dense = {};
  if (const MmaKind kind = plan_separable(*c.plan, c.pass(), separable); kind.radius)
    return test_separable_mma(c, separable, kind);
  const MmaKind kind = plan_dense(*c.plan, c.pass(), dense);
  if (!kind.radius) return;
  if (kind.samples == Samples::U8)
    test_dense_mma<DenseShape<16, Samples::U8>>(c, dense, kind);
  else
    test_dense_mma<DenseShape<16, Samples::U16>>(c, dense, kind);
}

// Calls apply_epilogue() in the form that `p` selects, and returns the word of results.
template <typename Swar>
uint32_t apply(const SlidingParams &p, const uint32_t (&sums)[Swar::kSplit]) {
  switch (p.swar.epilogue) {
    case Epilogue::Shift:
      return apply_epilogue<Epilogue::Shift, Swar>(p, sums);
    case Epilogue::Divide:
      return apply_epilogue<Epilogue::Divide, Swar>(p, sums);
    case Epilogue::Clamp:
      return apply_epilogue<Epilogue::Clamp, Swar>(p, sums);
    default:
      break;
  }
  return apply_epilogue<Epilogue::Any, Swar>(p, sums);
}

void test_swar(const Case &c) {
  SlidingParams p = {};
  SwarParams &k = p.swar;
  const SwarKind kind = plan_swar(*c.plan, c.pass(), k);
  p.rounding[0] = c.rounding();
  const IntegerMask &mask = c.mask();
  Ratio ratio;
  if (kind.sliding >= Sliding::Binomial3 && kind.sliding <= Sliding::Mean7) {
    // Binomials and means have built-in factors. The first one is 1, or 16 for 3x3 bytes.
    ratio.apply(mask.value[0], kind.sliding == Sliding::Binomial3 && !kind.words ? 16 : 1);
  } else if (kind.sliding == Sliding::Dense3) {
    const size_t n = first_of(mask.value);
    ratio.apply(mask.value[n], static_cast<int32_t>(k.dense[n]));
  } else {
    return;
  }
  static const char *const names[] = {"shift", "divide", "clamp", "any"};
  const std::string name = std::string("swar ") + names[static_cast<int>(k.epilogue)] +
                           (k.epilogue != Epilogue::Divide && k.absolute ? ", absolute" : "") +
                           (kind.words ? ", 16-bit samples" : "");
  const std::vector<int64_t> all = sums_of(c, c.unit);
  for (size_t n = 0; n < all.size(); n += 4) {
    uint32_t sums[4];
    for (int i = 0; i < 4; i++) sums[i] = static_cast<uint32_t>(ratio.scaled(all[n + i]) + k.init);
    const auto pair = [&](int low, int high) { return (sums[low] & 0xffffu) | sums[high] << 16; };
    int got[4];
    if (kind.words) {
      for (int i = 0; i < 4; i += 2) {
        const uint32_t word = apply<SwarU16<1>>(p, {sums[i], sums[i + 1]});
        got[i] = static_cast<int>((word >> k.sample_shift) & 0xffffu);
        got[i + 1] = static_cast<int>(word >> k.sample_shift >> 16);
      }
    } else {
      const uint32_t word = apply<SwarU8<1>>(p, {pair(0, 2), pair(1, 3)});
      for (int i = 0; i < 4; i++) got[i] = static_cast<int>(word >> 8 * i & 0xff);
    }
    for (int i = 0; i < 4; i++) expect(name, c, all[n + i], c.round(all[n + i]), got[i]);
  }
}

// Puts back kept pixels whose numbers need 32 bits. The rows of the first part are one row of memory.
void test_kept_pixels() {
  constexpr int kWidth = 1 << 16, kHeight = 1 << 15, kFew = 5;
  std::vector<uint8_t> source(kWidth, 1), target(kWidth, 2), few_source(kFew * kFew, 3), few_target(kFew * kFew, 4);
  methods::RestoreParams p = {};
  p.parts = 2;
  p.keep_x = p.keep_y = kHeight;
  for (int i = 0; i < p.parts; i++) {
    PartParams &part = p.part[i];
    part.copy = i ? few_source.data() : source.data();
    part.target = i ? few_target.data() : target.data();
    part.copy_pitch = part.target_pitch = i ? kFew : 0;
    part.width = i ? kFew : kWidth;
    part.height = i ? kFew : kHeight;
    part.channels = part.step = 1;
    part.channel[0].action = Action::Filter;
    part.channel[0].depth = 8;
  }
  methods::count_kept(p);
  const auto restore = [&](uint32_t first) {
    blockIdx.x = first / methods::kBlockThreads;
    for (threadIdx.x = 0; threadIdx.x < methods::kBlockThreads; threadIdx.x++) methods::restore_kernel(p);
  };
  restore(uint32_t{kWidth} * kHeight);
  restore(uint32_t{kWidth} * (kHeight - 1));
  threadIdx = blockIdx = {};
  const bool right = few_target == few_source && target[methods::kBlockThreads - 1] == 1 &&
                     target[methods::kBlockThreads] == 2 && p.pixels == uint32_t{kWidth} * kHeight + kFew * kFew;
  if (!right && failures++ < 20) std::printf("FAILED: kept pixels\n");
}

// Quotients by divisors of up to 48 bits, at and around the middles between codes, where an estimate in floating point
// does not tell which one is nearest.
void test_quotients() {
  std::mt19937_64 random(5);
  Case c;
  for (int i = 0; i < 200000; i++) {
    const uint64_t d = std::max<uint64_t>(random() >> (16 + i % 48), 1), code = random() % 256;
    const uint64_t middle = code * d + d / 2;
    for (uint64_t n : {middle - (middle > 0), middle, middle + 1, middle + d / 3, code * d}) {
      if (n > 255 * d) continue;
      c.name = std::to_string(n) + " / " + std::to_string(d);
      expect("means", c, 0, static_cast<int>((n + d / 2) / d * 0x01000001u + 0xff00u),
             static_cast<int>(rounded_means<uint64_t>({n, d * 255, 0, n}, {d, d, d, d})));
    }
  }
}

#endif

// ---- Masks ----------------------------------------------------------------------------------------------------------

// Finds the range of the sums that are rounded last. If row sums are rounded too, it is the range of the columns' sums.
void find_sums(Case &c) {
  const IntegerMask &mask = c.mask();
  SumRange range;
  if (mask.row_shift) {
    int64_t row = int64_t{1} << (mask.row_shift - 1);
    for (int32_t v : mask.row) row += v * c.largest_sample;
    for (int32_t v : mask.column) range.add(v, row >> mask.row_shift);
  } else if (mask.separable()) {
    for (int32_t x : mask.row)
      for (int32_t y : mask.column) range.add(int64_t{x} * y, c.largest_sample);
  } else {
    for (int32_t v : mask.value) range.add(v, c.largest_sample);
  }
  c.low = range.low;
  c.high = range.high;
  const auto shared = [](const std::vector<int32_t> &values) {
    return std::accumulate(values.begin(), values.end(), int64_t{0}, std::gcd<int64_t, int64_t>);
  };
  c.unit = !mask.separable() ? shared(mask.value) : shared(mask.column) * (mask.row_shift ? 1 : shared(mask.row));
}

void test(const FilterSettings &settings, const Format &format, const std::string &name) {
  Case c;
  c.name = name;
  c.layout = format.layout(64, 64);
  try {
    c.plan = make_plan(settings, c.layout);
  } catch (const Error &) {
    return;  // no accumulator holds these sums
  }
  if (c.plan->passes.size() != 1 || c.pass().op != Op::Linear) return;
  c.largest_sample = c.rounding().max;
  find_sums(c);
  test_cpu(c);
#ifdef HAVE_STANDIN
  test_mma(c);
  if (c.pass().has_gain()) return;
  test_swar(c);
#endif
}

using Numbers = std::vector<double>;

Numbers product(const Numbers &row, const Numbers &column) {
  Numbers values;
  for (double y : column)
    for (double x : row) values.push_back(x * y);
  return values;
}

// `count` numbers from -range to range, for a mask that is not separable.
Numbers any_numbers(int count, int range) {
  Numbers values;
  for (int i = 0; i < count; i++) values.push_back((i * i * 7 + i * 13 + 3) % (2 * range + 1) - range);
  return values;
}

std::vector<Numbers> masks() {
  const auto ones = [](int n) { return Numbers(n, 1.0); };
  const Numbers three = {1, 2, 1}, five = {1, 4, 6, 4, 1};
  return {ones(9),
          ones(25),
          ones(31 * 31),
          product(three, three),
          product(five, five),
          product({-1, 0, 1}, three),
          product({-9, 0, 9}, three),
          product({3, -7, 11, -7, 3}, {2, 5, 9, 5, 2}),
          product({100, 301, 200, 301, 100}, {1, 500, 3, 500, 1}),
          product({1, 5, 9, 2, 30, 2, 9, 5, 1}, {7, 1, 1, 3, 12, 3, 1, 1, 7}),
          {0, -1, 0, -1, 5, -1, 0, -1, 0},
          {-2, -1, 0, -1, 1, 1, 0, 1, 2},
          {0, 1, 0, 1, -4, 1, 0, 1, 0},
          any_numbers(9, 3),
          any_numbers(9, 40),
          any_numbers(49, 20),
          any_numbers(121, 9),
          any_numbers(25 * 25, 3),
          any_numbers(81, 3000)};
}

void test_custom_masks() {
  int number = 0;
  for (const Numbers &values : masks()) {
    const int size = static_cast<int>(std::lround(std::sqrt(static_cast<double>(values.size()))));
    for (const char *format : {"GRAY8", "I420_10LE", "GRAY16_LE"})
      for (int divisor :
           {1, 2, 3, 4, 5, 7, 9, 16, 25, 41, 49, 100, 225, 255, 256, 257, 961, 999, 4096, 8191, 65535, 65536, 1 << 20})
        for (double bias : {0.0, 0.5, -0.25, 0.1, 1.0, -1.0})
          for (Negative negative : {Negative::Clamp, Negative::Absolute}) {
            FilterSettings s;
            s.mask = Mask::Custom;
            s.coefficients = {size, size, values};
            s.divisor = divisor;
            s.bias = bias;
            s.negative = negative;
            test(s, format_named(format),
                 "mask " + std::to_string(number) + ", divisor " + std::to_string(divisor) + ", bias " +
                     std::to_string(bias) + (negative == Negative::Absolute ? ", absolute, " : ", ") + format);
          }
    number++;
  }
}

void test_gaussians() {
  for (Mask mask : {Mask::Gauss, Mask::Unsharp})
    for (const char *format : {"GRAY8", "I420_10LE", "GRAY16_LE"})
      for (int size : {3, 5, 9, 15, 31, 63})
        for (double amount : {0.3, 1.0, 4.0})
          for (double bias : {0.0, 0.25, -0.5}) {
            FilterSettings s;
            s.mask = mask;
            s.size = size;
            s.amount = amount;
            s.bias = bias;
            test(s, format_named(format), std::string(mask_nick(mask)) + " " + std::to_string(size) + " " + format);
          }
}

}  // namespace

int epilogues() {
  test_custom_masks();
  test_gaussians();
#ifdef HAVE_STANDIN
  test_kept_pixels();
  test_quotients();
#endif
  std::vector<std::string> forms = {"cpu 16 bits",
                                    "cpu 16 bits, magic",
                                    "cpu 16 bits, absolute",
                                    "cpu 16 bits, magic, absolute",
                                    "cpu 16 bits at once",
                                    "cpu 16 bits at once, absolute",
                                    "cpu 16 bits halved",
                                    "cpu 16 bits halved, magic",
                                    "cpu 32 bits",
                                    "cpu 64 bits",
                                    "cpu gain"};
#ifdef HAVE_STANDIN
  for (const char *form : {"mma shift",
                           "mma divide",
                           "mma divide, absolute",
                           "mma sharpen",
                           "mma shift, 16 bits",
                           "mma divide, 16 bits",
                           "mma divide, absolute, 16 bits",
                           "mma wide shift, 16 bits",
                           "dense shift",
                           "dense divide",
                           "dense divide, absolute",
                           "dense shift, digits",
                           "dense divide, digits",
                           "dense divide, digits, absolute",
                           "dense divide, 16 bits",
                           "dense divide, absolute, 16 bits",
                           "dense divide, digits, 16 bits",
                           "dense divide, digits, absolute, 16 bits",
                           "dense 64-bit shift, 16 bits",
                           "dense 64-bit shift, digits, 16 bits",
                           "dense 64-bit shift, digits, absolute, 16 bits",
                           "means",
                           "blocks",
                           "blocks, factor",
                           "blocks, absolute",
                           "swar shift",
                           "swar divide",
                           "swar clamp",
                           "swar clamp, absolute",
                           "swar any",
                           "swar any, absolute",
                           "swar shift, 16-bit samples",
                           "swar divide, 16-bit samples",
                           "swar clamp, 16-bit samples",
                           "swar clamp, absolute, 16-bit samples",
                           "swar any, 16-bit samples"})
    forms.push_back(form);
#endif
  for (const std::string &form : forms) {
    std::printf("%-32s %10lld\n", form.c_str(), static_cast<long long>(compared[form]));
    if (!compared[form] && failures++ < 20) std::printf("FAILED: no sums of this form\n");
  }
  std::printf("%d failed\n", failures);
  return failures ? 1 : 0;
}

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::epilogues();
}
