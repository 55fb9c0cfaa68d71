// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The few functions that every backend builds on, each against its definition.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "border.h"
#include "error.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan.h"
#include "reference.h"
#include "rounding.h"

namespace cudaconv::test {

namespace {

int failures = 0;

template <typename T, typename U>
void expect_equal(T want, U got, const std::string &what) {
  if (static_cast<long long>(want) == static_cast<long long>(got)) return;
  if (failures++ < 20)
    std::printf("FAILED %s: want %lld, got %lld\n", what.c_str(), static_cast<long long>(want),
                static_cast<long long>(got));
}

std::string text(std::initializer_list<long long> numbers) {
  std::string s;
  for (long long n : numbers) s += " " + std::to_string(n);
  return s;
}

// ---- border_index ---------------------------------------------------------------------------------------------------

void test_border_index() {
  for (Border border :
       {Border::Replicate, Border::Reflect, Border::Reflect101, Border::Wrap, Border::Constant, Border::Keep})
    for (int n = 1; n <= 5; n++)
      for (int i = -40; i <= 40; i++) {
        const int want = reference::position(border, i, n);
        const std::string where = text({static_cast<int>(border), i, n});
        expect_equal(want, border_index(border, i, n), "border_index(border, i, n)" + where);
        expect_equal(want, near_border_index(border, i, n), "near_border_index(border, i, n)" + where);
      }

  // As they are drawn: what stands left and right of abcd.
  struct Picture {
    Border border;
    const char *samples;  // positions -9 to 12
  };
  const Picture pictures[] = {
      {Border::Replicate,
       "aaaaaaaaa"
       "abcd"
       "ddddddddd"},  //
      {Border::Keep,
       "aaaaaaaaa"
       "abcd"
       "ddddddddd"},
      {Border::Reflect,
       "aabcddcba"
       "abcd"
       "dcbaabcdd"},
      {Border::Reflect101,
       "dcbabcdcb"
       "abcd"
       "cbabcdcba"},
      {Border::Wrap,
       "dabcdabcd"
       "abcd"
       "abcdabcda"},
      {Border::Constant,
       "---------"
       "abcd"
       "---------"},
  };
  for (const Picture &p : pictures) {
    for (int i = -9; i <= 12; i++) {
      const char letter = p.samples[i + 9];
      expect_equal(letter == '-' ? -1 : letter - 'a', border_index(p.border, i, 4),
                   "picture of border" + text({static_cast<int>(p.border), i}));
    }
  }
}

// ---- round_to_sample ------------------------------------------------------------------------------------------------

using Integer = __int128;

// clamp(floor(v / divisor + bias + 1/2), 0, max), `absolute` before the rounding; exact. divisor > 0, bias in codes.
int rounded(Integer v, Integer divisor, Integer bias, bool absolute, int max) {
  Integer numerator = v + bias * divisor;
  if (absolute && numerator < 0) numerator = -numerator;
  numerator = 2 * numerator + divisor;
  Integer quotient = numerator / (2 * divisor);
  if (numerator < 0 && quotient * 2 * divisor != numerator) quotient--;
  return static_cast<int>(quotient < 0 ? 0 : quotient > max ? max : quotient);
}

// What the plan makes of a mask of one integer coefficient, over accumulators that samples times it can give.
void test_rounding_of(int64_t divisor, double bias, bool absolute, int coefficient, const Format &format,
                      Random &random) {
  FilterSettings s;
  s.mask = Mask::Custom;
  s.coefficients = {1, 1, {static_cast<double>(coefficient)}};
  s.divisor = static_cast<double>(divisor);
  s.bias = bias;
  s.negative = absolute ? Negative::Absolute : Negative::Clamp;
  const FrameLayout layout = format.layout(4, 4);
  const auto plan = make_plan(s, layout);
  const Pass &pass = plan->passes[0];
  const Rounding &r = pass.rounding[0][0];
  if (pass.sum_gain != 1 || pass.center_gain != 0) return;  // not the plain division that is tested here

  const int depth = layout.plane[0].channel[0].depth, max = (1 << depth) - 1;
  expect_equal(max, r.max, "max");
  const Integer codes = static_cast<Integer>(std::ldexp(bias, depth));
  const int64_t scale = pass.mask[0].value[0] / coefficient;
  const int64_t reach = std::llabs(static_cast<int64_t>(coefficient)) * max;  // what the accumulator can hold, unscaled

  const auto check = [&](int64_t v) {
    if (v < -reach || v > reach) return;
    const int want = rounded(v, divisor, codes, absolute, max);
    const std::string what = "round_to_sample(" + std::to_string(v) + "), divisor, bias, absolute, depth, wide:" +
                             text({divisor, static_cast<long long>(codes), absolute, depth, r.wide});
    if (r.wide)
      expect_equal(want, round_to_sample<int64_t>(v * scale, r), what);
    else
      expect_equal(want, round_to_sample<int32_t>(static_cast<int32_t>(v * scale), r), what);
  };
  // Around every place where the result changes, or many of them, and around zero and both ends.
  for (int i = 0; i < 300; i++) {
    const int64_t code = i < 8 ? i : i < 16 ? max - (i - 8) : static_cast<int64_t>(random() % (max + 1));
    for (int sign : {-1, 1}) {
      const int64_t step = static_cast<int64_t>((2 * (sign * code - codes) + 1) * divisor / 2);
      for (int64_t near = -2; near <= 2; near++) check(step + near);
    }
    check(static_cast<int64_t>(random() % (2 * static_cast<uint64_t>(reach) + 1)) - reach);
  }
  for (int64_t v : {int64_t{0}, int64_t{1}, int64_t{-1}, reach, -reach, reach - 1, 1 - reach}) check(v);
}

void test_rounding() {
  Random random(1);
  int tested = 0;
  for (const char *name : {"GRAY8", "GRAY16_LE", "I420_10LE"}) {
    for (const Format &format : formats()) {
      if (std::string(format.name) != name) continue;
      for (int64_t divisor :
           {1, 2, 3, 4, 5, 7, 9, 16, 25, 49, 100, 255, 256, 257, 999, 4096, 65535, 65536, 1 << 20, 16777215})
        for (double bias : {0.0, 0.5, -0.25, 1.0, -1.0})
          for (bool absolute : {false, true})
            for (int coefficient : {1, -1, 3, 255, 30011, -1000003}) {
              test_rounding_of(divisor, bias, absolute, coefficient, format, random);
              tested++;
            }
    }
  }
  expect_equal(3 * 20 * 5 * 2 * 6, tested, "number of divisions tried");
}

// ---- integer_sqrt ---------------------------------------------------------------------------------------------------

void test_integer_sqrt() {
  const auto check = [](uint64_t x) {
    const uint64_t r = integer_sqrt(x);
    if (r * r > x || (r + 1) * (r + 1) <= x)
      expect_equal(std::sqrt(static_cast<long double>(x)), r, "integer_sqrt" + text({static_cast<long long>(x)}));
  };
  for (uint64_t x = 0; x < 1 << 16; x++) check(x);
  // Squares and their neighbours are where an estimate goes wrong.
  for (uint64_t root = 1; root < (1 << 23); root += 1 + root / 4096)
    for (int64_t near = -2; near <= 2; near++)
      if (static_cast<int64_t>(root * root) + near >= 0) check(root * root + near);
  Random random(2);
  for (int i = 0; i < 1000000; i++) check(random() >> (18 + random() % 40));
  check((uint64_t{1} << 46) - 1);
}

// ---- make_plan ------------------------------------------------------------------------------------------------------

template <typename F>
void expect_refused(const char *what, F change) {
  FilterSettings s;
  change(s);
  try {
    make_plan(s, formats()[0].layout(8, 8));
    failures++;
    std::printf("FAILED %s is not refused\n", what);
  } catch (const Error &error) {
    expect_equal(static_cast<int>(Error::Kind::Settings), static_cast<int>(error.kind()), what);
  }
}

void test_refusals() {
  const auto mask = [](Mask m, int size, Shape shape = Shape::Rect) {
    return [=](FilterSettings &s) {
      s.mask = m;
      s.size = size;
      s.shape = shape;
    };
  };
  const auto method = [](Mask m, int size, Method method) {
    return [=](FilterSettings &s) {
      s.mask = m;
      s.size = size;
      s.method = method;
    };
  };
  const auto custom = [](int width, int height, std::vector<double> value) {
    return [=](FilterSettings &s) {
      s.mask = Mask::Custom;
      s.coefficients = {width, height, value};
    };
  };
  for (Mask m : {Mask::Box, Mask::Gauss, Mask::Unsharp, Mask::Dilate, Mask::Blackhat, Mask::Median})
    for (int size : {-1, 2, 4, 128, 129}) expect_refused("an even, negative or too large size", mask(m, size));
  expect_refused("a median of 9", mask(Mask::Median, 9));
  expect_refused("shape=custom without coefficients", mask(Mask::Erode, 3, Shape::Custom));
  expect_refused("mask=custom without coefficients", mask(Mask::Custom, 0));
  expect_refused("an even mask", custom(2, 1, {1, 1}));
  expect_refused("too wide a mask", custom(33, 1, std::vector<double>(33, 1)));
  expect_refused("a mask with too few coefficients", custom(3, 3, {1, 1}));
  expect_refused("an infinite coefficient", custom(1, 1, {INFINITY}));
  expect_refused("a coefficient that is no number", custom(1, 1, {NAN}));
  expect_refused("a negative sigma", [](FilterSettings &s) { s.mask = Mask::Gauss, s.sigma = -1; });
  expect_refused("no iterations", [](FilterSettings &s) { s.iterations = 0; });
  expect_refused("too much bias", [](FilterSettings &s) { s.bias = 1.5; });
  expect_refused("a magnitude with a sign", [](FilterSettings &s) { s.mask = Mask::Sobel, s.divisor = -2; });
  expect_refused("cascade for a convolution", method(Mask::Gauss5, 0, Method::Cascade));
  expect_refused("cascade for a 3x3", method(Mask::Dilate, 3, Method::Cascade));
  expect_refused("separable for laplace", method(Mask::Laplace, 0, Method::Separable));
  expect_refused("separable for a median", method(Mask::Median, 3, Method::Separable));
}

}  // namespace

int unit() {
  test_border_index();
  test_rounding();
  test_integer_sqrt();
  test_refusals();
  std::printf("%d failed\n", failures);
  return failures ? 1 : 0;
}

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::unit();
}
