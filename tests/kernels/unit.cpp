// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compares the functions that every backend uses with their definitions.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "backend.h"
#include "plan/area.h"
#include "plan/region_rows.h"
#include "cpu/vector.h"
#include "error.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/border.h"
#include "plan/chords.h"
#include "plan/linear_compiler.h"
#include "plan/maskparser.h"
#include "plan/masks.h"
#include "plan/plan.h"
#include "plan/rounding.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

std::atomic<int> failures{0};

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

// The Error that `f` throws; an Error with an empty text if it throws none.
Error error_of(const std::function<void()> &f) {
  try {
    f();
  } catch (const Error &error) {
    return error;
  }
  return Error(Error::Kind::Settings, "");
}

std::unique_ptr<Backend> single_threaded_backend() {
  return make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);
}

// ---- border_index ---------------------------------------------------------------------------------------------------

void test_border_index() {
  for (const Named<Border> &border : kBorderNames)
    for (int n = 1; n <= 5; n++)
      for (int i = -40; i <= 40; i++) {
        const int want = reference::position(border.value, i, n);
        const std::string where = std::string("(") + border.nick + ")" + text({i, n});
        expect_equal(want, border_index(border.value, i, n), "border_index" + where);
        expect_equal(want, border_index_no_div(border.value, i, n), "border_index_no_div" + where);
      }
  // The pictures in the property's texts: dcb|abcd|cba.
  for (const Named<Border> &border : kBorderNames) {
    const char *const picture = std::strstr(border.text, "|abcd|");
    for (int i = -3; picture && i < 7; i++) {
      const char letter = picture[i < 0 ? i : i < 4 ? i + 1 : i + 2];
      expect_equal(letter - 'a', border_index(border.value, i, 4),
                   std::string("text of border=") + border.nick + text({i}));
    }
  }

  // The samples to the left and right of abcd, as in the documentation.
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

// The properties of modes in plan/border.h.
void test_border_properties() {
  for (const Named<Border> &border : kBorderNames)
    for (int n = 1; n <= 9; n++)
      for (int radius = 0; radius <= 12; radius++) {
        bool within = true, uniform = true;
        for (int x = 0; x < n; x++)
          for (int i = x - radius; i <= x + radius; i++) {
            const int from = border_index(border.value, i, n);
            if (from >= 0) within = within && std::abs(from - x) <= radius;
            if (i < 0 || i >= n) uniform = uniform && from == border_index(border.value, i < 0 ? -1 : n, n);
          }
        const std::string where = std::string(" of border=") + border.nick + text({n, radius});
        if (reads_within_window(border.value)) expect_equal(true, within, "samples in the window" + where);
        if (is_uniform_outside(border.value)) expect_equal(true, uniform, "equal samples" + where);
      }
}

// ---- round_to_sample ------------------------------------------------------------------------------------------------

using Integer = __int128;

// clamp(floor(v / divisor + bias + 1/2), 0, max), computed exactly. `absolute`: takes the absolute value before
// rounding. divisor > 0, bias in codes.
int rounded(Integer v, Integer divisor, Integer bias, bool absolute, int max) {
  Integer numerator = v + bias * divisor;
  if (absolute && numerator < 0) numerator = -numerator;
  numerator = 2 * numerator + divisor;
  Integer quotient = numerator / (2 * divisor);
  if (numerator < 0 && quotient * 2 * divisor != numerator) quotient--;
  return static_cast<int>(quotient < 0 ? 0 : quotient > max ? max : quotient);
}

// Tests the plan's rounding for a mask of one integer coefficient, on accumulators that samples can produce.
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
  if (pass.sum_gain != 1 || pass.center_gain != 0) return;  // a gain; only plain division is tested here

  const int depth = layout.plane[0].channel[0].depth, max = (1 << depth) - 1;
  expect_equal(max, r.max, "max");
  const Integer codes = static_cast<Integer>(std::ldexp(bias, depth));
  const int64_t scale = pass.mask[0].value[0] / coefficient;
  const int64_t reach = std::llabs(static_cast<int64_t>(coefficient)) * max;  // the largest accumulator, unscaled

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
  // Accumulators where the result changes (or many of these), around zero, and at both ends.
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
    const Format &format = format_named(name);
    for (int64_t divisor :
         {1, 2, 3, 4, 5, 7, 9, 16, 25, 49, 100, 255, 256, 257, 999, 4096, 65535, 65536, 1 << 20, 16777215})
      for (double bias : {0.0, 0.5, -0.25, 1.0, -1.0})
        for (bool absolute : {false, true})
          for (int coefficient : {1, -1, 3, 255, 30011, -1000003}) {
            test_rounding_of(divisor, bias, absolute, coefficient, format, random);
            tested++;
          }
  }
  expect_equal(3 * 20 * 5 * 2 * 6, tested, "number of divisions tried");
}

// ---- integer_sqrt ---------------------------------------------------------------------------------------------------

// Products for which double, the long double of x86, or both round to another integer.
void test_bias_offset() {
  const struct {
    double bias;
    int depth;
    int64_t divisor, offset;
  } cases[] = {
      {-0.418, 10, 1742970563136856, -746047176080594716},
      {-0.885, 8, 7024445400920908, -1591458350032640932},
      {0.965, 16, 33418273845944, 2113446494950913406},
      {-1, 16, int64_t{1} << 45, -(int64_t{1} << 61)},
      {0x1p-9, 8, 1, 1},
      {-0x1p-9, 8, 1, -1},
      {0x1.fffffffffffffp-10, 8, 1, 0},
      {0x1p-1074, 16, int64_t{1} << 45, 0},
      {0, 8, 2, 0},
  };
  for (const auto &c : cases)
    expect_equal(c.offset, bias_offset(c.bias, c.depth, c.divisor),
                 "bias_offset() of bias " + std::to_string(c.bias) + ", depth, divisor:" + text({c.depth, c.divisor}));
}

void test_integer_sqrt() {
  const auto check = [](uint64_t x) {
    const uint64_t r = integer_sqrt(x);
    if (r * r > x || (r + 1) * (r + 1) <= x)
      expect_equal(std::sqrt(static_cast<long double>(x)), r, "integer_sqrt" + text({static_cast<long long>(x)}));
  };
  for (uint64_t x = 0; x < 1 << 16; x++) check(x);
  // The estimate is most likely to be wrong at squares and their neighbours.
  for (uint64_t root = 1; root < (1 << 23); root += 1 + root / 4096)
    for (int64_t near = -2; near <= 2; near++)
      if (static_cast<int64_t>(root * root) + near >= 0) check(root * root + near);
  Random random(2);
  for (uint64_t root = 1 << 23; root < uint64_t{1} << 31; root += 1 + root / 4096)
    for (int near = -2; near <= 2; near++) check(root * root + near);
  for (int i = 0; i < 1000000; i++) check(random() >> (2 + random() % 56));
  check((uint64_t{1} << 46) - 1);
  check((uint64_t{1} << 62) - 1);
}

// ---- make_plan ------------------------------------------------------------------------------------------------------

template <typename F>
Error refusal_of(F change) {
  FilterSettings s;
  change(s);
  return error_of([&] { make_plan(s, formats()[0].layout(8, 8)); });
}

template <typename F>
void expect_refused(const char *what, F change) {
  const Error error = refusal_of(change);
  expect_equal(false, std::string(error.what()).empty(), std::string("refused: ") + what);
  expect_equal(static_cast<int>(Error::Kind::Settings), static_cast<int>(error.kind()), what);
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
    for (int size : {-1, 2, 4, 128, 1503}) expect_refused("an even, negative or too large size", mask(m, size));
  for (Shape s : {Shape::Rect, Shape::Cross, Shape::Ellipse}) {
    FilterSettings largest;
    mask(Mask::Dilate, 255, s)(largest);
    expect_equal(255, window_of(largest).size.width, "the largest structuring element");
    expect_refused("a too large structuring element", mask(Mask::Erode, 257, s));
  }
  expect_refused("a median of 129", mask(Mask::Median, 129));
  const auto high = [](Mask m, int size_y) {
    return [=](FilterSettings &s) {
      s.mask = m;
      s.size_y = size_y;
    };
  };
  for (Mask m : {Mask::Box, Mask::Gauss, Mask::Unsharp, Mask::Dilate, Mask::Blackhat, Mask::Median})
    for (int size : {-1, 2, 4, 128, 1503}) expect_refused("an even, negative or too large height", high(m, size));
  expect_refused("an element of 3x257", high(Mask::Erode, 257));
  expect_refused("a median of 3x129", high(Mask::Median, 129));
  for (int size : {-1, 256}) expect_refused("blocks of no height or a too large one", high(Mask::Mosaic, size));
  for (const double sigma : {-0.5, -2.0, 250.5, static_cast<double>(NAN)})
    expect_refused("a sigma of columns out of range",
                   [sigma](FilterSettings &s) { s.mask = Mask::Gauss, s.sigma_y = sigma; });
  for (int size : {-1, 256}) expect_refused("blocks of no size or a too large one", mask(Mask::Mosaic, size));
  for (int size : {-3, 1, 4, 33}) expect_refused("bilateral with an invalid size", mask(Mask::Bilateral, size));
  for (double range : {0.0, -0.1, 1.001, std::nan("")})
    expect_refused("bilateral with an invalid range",
                   [=](FilterSettings &s) { s.mask = Mask::Bilateral, s.sigma_range = range; });
  for (double sigma : {-2.0, 250.5})
    expect_refused("bilateral with an invalid sigma",
                   [=](FilterSettings &s) { s.mask = Mask::Bilateral, s.sigma = sigma; });
  for (int size : {-1, 2, 33})
    expect_refused("bilateral with an invalid height",
                   [=](FilterSettings &s) { s.mask = Mask::Bilateral, s.size_y = size; });
  for (Shape shape : {Shape::Cross, Shape::Custom})
    expect_refused("bilateral with another shape", mask(Mask::Bilateral, 5, shape));
  for (Method m : {Method::Cascade, Method::Separable})
    expect_refused("bilateral with another method", method(Mask::Bilateral, 5, m));
  expect_refused("shape=custom without coefficients", mask(Mask::Erode, 3, Shape::Custom));
  expect_refused("mask=custom without coefficients", mask(Mask::Custom, 0));
  expect_refused("an even mask", custom(2, 1, {1, 1}));
  expect_refused("too wide a mask", custom(33, 1, std::vector<double>(33, 1)));
  expect_refused("a mask with too few coefficients", custom(3, 3, {1, 1}));
  expect_refused("an infinite coefficient", custom(1, 1, {INFINITY}));
  expect_refused("a coefficient that is no number", custom(1, 1, {NAN}));
  for (const double sigma : {-0.5, -2.0})
    expect_refused("a negative sigma", [sigma](FilterSettings &s) { s.mask = Mask::Gauss, s.sigma = sigma; });
  expect_refused("no iterations", [](FilterSettings &s) { s.iterations = 0; });
  expect_refused("a divisor beyond 2^32", [](FilterSettings &s) { s.divisor = -0x1.8p32; });
  expect_refused("a divisor that is no number", [](FilterSettings &s) { s.divisor = NAN; });
  for (const Mask m : {Mask::Gauss, Mask::Gauss5, Mask::Sobel, Mask::Kirsch})
    for (const double divisor : {1e-300, 1e-15})
      expect_refused("a divisor near 0", [=](FilterSettings &s) { s.mask = m, s.divisor = divisor; });
  expect_refused("a coefficient that 32 bits do not hold twice", [&](FilterSettings &s) {
    custom(1, 1, {2000000000})(s);
    s.divisor = 1;
  });
  expect_refused("too much bias", [](FilterSettings &s) { s.bias = 1.5; });
  expect_refused("a magnitude with a sign", [](FilterSettings &s) { s.mask = Mask::Sobel, s.divisor = -2; });
  expect_refused("cascade for a convolution", method(Mask::Gauss5, 0, Method::Cascade));
  expect_refused("cascade for a 3x3", method(Mask::Dilate, 3, Method::Cascade));
  expect_refused("separable for laplace", method(Mask::Laplace, 0, Method::Separable));
  expect_refused("separable for a median", method(Mask::Median, 3, Method::Separable));
  for (Method m : {Method::Global, Method::Tiled, Method::TiledCached, Method::Blocked, Method::Cascade})
    expect_refused("a method for windows for a mosaic", method(Mask::Mosaic, 0, m));
}

// Texts of errors name property, value and limit. Numbers look as users write them, in any locale.
void test_texts() {
  const auto expect_text = [](const Error &error, std::initializer_list<const char *> parts) {
    for (const char *part : parts)
      expect_equal(true, std::strstr(error.what(), part) != nullptr,
                   std::string("\"") + part + "\" in \"" + error.what() + "\"");
  };
  const auto settings = [](auto change) { return refusal_of(change); };
  const auto one = [](double v) { return Coefficients{1, 1, {v}}; };
  for (const char *locale : {"C", "de_DE.UTF-8"}) {
    std::setlocale(LC_ALL, locale);
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Gauss, s.sigma = 250.5; }), {"sigma=250.5 ", "250"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Gauss, s.divisor = 1e-9; }),
                {"divisor=1e-09 ", "gauss"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Dilate, s.size = 257; }),
                {"size=257 ", "mask=dilate", "odd", "255"});
    expect_text(settings([](FilterSettings &s) { s.bias = -1.25; }), {"bias=-1.25 ", "-1 to 1"});
    expect_text(settings([](FilterSettings &s) { s.threshold = 1.5; }), {"threshold=1.5 ", "0 to 1"});
    expect_text(settings([](FilterSettings &s) { s.threshold = std::nan(""); }), {"threshold=nan ", "0 to 1"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Mosaic, s.size = 256; }),
                {"size=256 ", "mask=mosaic", "1 to 255"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Mosaic, s.method = Method::Tiled; }),
                {"method=tiled ", "mask=mosaic", "use method=auto, constant"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Bilateral, s.size = 33; }),
                {"size=33 ", "mask=bilateral", "odd", "3 to 31"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Bilateral, s.size_y = 4; }),
                {"size-y=4 ", "mask=bilateral", "odd", "1 to 31"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Bilateral, s.shape = Shape::Cross; }),
                {"shape=cross ", "mask=bilateral", "shape=rect or shape=ellipse"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Bilateral, s.sigma_range = 0; }),
                {"sigma-range=0 ", "above 0", "1"});
    expect_text(settings([](FilterSettings &s) { s.divisor = 5e9; }), {"divisor=5000000000 ", "4294967296"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Sobel, s.divisor = -0.5; }),
                {"divisor=-0.5 ", "sobel"});
    expect_text(settings([](FilterSettings &s) { s.mask = Mask::Unsharp, s.amount = 12345.5; }), {"amount=12345.5 "});
    expect_text(settings([&](FilterSettings &s) { s.mask = Mask::Custom, s.coefficients = one(2e9), s.divisor = 1; }),
                {"coefficients: 2000000000", " 1,", "1073741823"});
  }
  std::setlocale(LC_ALL, "C");
  for (const char *format : {"RGB", "GBR", "RGB10A2_LE"})
    for (Method m : {Method::Global, Method::Tiled, Method::TiledCached, Method::Blocked, Method::Cascade}) {
      FilterSettings s;
      s.mask = Mask::Bilateral;
      s.method = m;
      expect_text(error_of([&] { make_plan(s, format_named(format).layout(8, 8)); }),
                  {method_nick(m), " does not support mask=bilateral of RGB; ", "use method=auto, constant"});
    }
  const auto mask = [](const std::string &s) { return error_of([&] { parse_coefficients(s); }); };
  const auto region = [](const std::string &s) { return error_of([&] { parse_regions(s); }); };
  expect_text(mask("1 2; 3 \xb5m"), {"coefficients: row 2, column 2", "\"?m\""});
  expect_text(mask("\xc2\xb5 1 1"), {"\"\xc2\xb5\""});
  expect_text(mask("\xe2\x82 1 1"), {"\"??\""});
  expect_text(mask("1\x07"
                   "1"),
              {"\"1?1\""});
  for (const char *bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"})
    expect_text(mask(bad), {("\"" + std::string(std::strlen(bad), '?') + "\"").c_str()});
  expect_text(mask(std::string(40, 'x')), {("\"" + std::string(40, 'x') + "\"").c_str()});
  expect_text(mask(std::string(5000, 'x')), {("\"" + std::string(40, 'x') + "...\"").c_str()});
  expect_text(mask("1e999"), {"column 1", "\"1e999\"", "1e308"});
  expect_text(region("1,2,3,0%"), {"roi: region 1, number 4", "height 0 makes an empty region"});
  expect_text(region("1,2,3,4;-2147483648,2,3,4"), {"region 2, number 1", "-2147483648", "-2147483647 to 2147483647"});
  expect_text(region("0,0,4e9,4"), {"4000000000", "2147483647"});
}

// ---- maskparser -----------------------------------------------------------------------------------------------------

void test_parser() {
  const std::vector<double> sharpen = {0, -1, 0, -1, 5, -1, 0, -1, 0};
  for (const char *text : {"0 -1 0; -1 5 -1; 0 -1 0",
                           "0,-1,0\n-1,5,-1\n0,-1,0\n",
                           "0 -1 0\r\n-1 5 -1\r\n0 -1 0\r\n",
                           "0 -1 0 -1 5 -1 0 -1 0",
                           "+0 -1 0;\n\n-1 +5 -1;\n0 -1 +0",
                           "[[0,-1,0],[-1,5,-1],[0,-1,0]]",
                           "((0,-1,0),(-1,5,-1),(0,-1,0))",
                           "((0, -1, 0),\n (-1, 5, -1),\n (0, -1, 0),)",
                           "{{0, -1, 0}, {-1, 5, -1}, {0, -1, 0}}",
                           "{ { 0, -1, 0 }; { -1, 5, -1 }; { 0, -1, 0 } }",
                           "< <0,-1,0>, <-1,5,-1>, <0,-1,0> >",
                           "< < (int)0, (int)-1, (int)0 >, < (int)-1, (int)5, (int)-1 >, < (int)0, (int)-1, (int)0 > >",
                           "< (array)< (double)0, -1, 0 >, (array)< -1, 5, -1 >, < 0, -1, 0 > >",
                           "[[ 0 -1  0]\n [-1  5 -1]\n [ 0 -1  0]]",
                           "[[ 0. -1.  0.]\n [-1.  5. -1.]\n [ 0. -1.  0.]]",
                           "[[0 -1\n 0] [-1 5 -1] [0 -1 0]]",
                           "[0 -1 0; -1 5 -1; 0 -1 0]",
                           "[0, -1, 0\n-1, 5, -1\n0, -1, 0]",
                           "[0,-1,0],[-1,5,-1],[0,-1,0]",
                           "(0 -1 0) (-1 5 -1) (0 -1 0)",
                           "3x3: 0,-1,0 -1,5,-1 0,-1,0",
                           "3: 0,-1,0 -1,5,-1 0,-1,0",
                           " 3x3+1+1 :\n  0,-1, 0\n -1, 5,-1\n  0,-1, 0\n",
                           "3:0 -1 0 -1 5 -1 0 -1 0",
                           "3: -,-1,nan -1,5,-1 0 -1 -",
                           "0/1 -2/2 0/-3; -1 15/3 -0.5/0.5; 0 -1 0"}) {
    Coefficients got;
    const Error error = error_of([&] { got = parse_coefficients(text); });
    expect_equal(true, got.width == 3 && got.height == 3 && got.value == sharpen,
                 std::string("mask \"") + text + "\": " + error.what());
  }
  expect_equal(true, parse_coefficients("1/9").value[0] == 1.0 / 9, "1/9 is the nearest number to it");
  const struct {
    const char *text;
    int width, height;
  } kRows[] = {{"0 -1 0 -1 5 -1 0 -1 0;", 9, 1},     {"[0 -1 0 -1 5 -1 0 -1 0]", 9, 1},
               {"[[0,-1,0,-1,5,-1,0,-1,0]]", 9, 1},  {"<0,-1,0,-1,5,-1,0,-1,0>", 9, 1},
               {"9x1: 0,-1,0 -1,5,-1 0,-1,0", 9, 1}, {"1x9: 0,-1,0 -1,5,-1 0,-1,0", 1, 9},
               {"0 -1 0 -1 5 -1 0 -1 0\n", 3, 3},    {"0;-1;0;-1;5;-1;0;-1;0;", 1, 9}};
  for (const auto &row : kRows) {
    Coefficients got;
    const Error error = error_of([&] { got = parse_coefficients(row.text); });
    expect_equal(true, got.width == row.width && got.height == row.height && got.value == sharpen,
                 std::string("row \"") + row.text + "\": " + error.what());
  }
  expect_equal(3, parse_coefficients("3x1: 1,2,1").width, "the width of ImageMagick's row");
  expect_equal(123456, static_cast<int>(parse_coefficients("< 1, 123456, 0.5 >").value[1]), "an array of integers");

  using Written = std::vector<WrittenRegion>;
  const Written want = {{{{10, false}, {20, false}, {64, false}, {32, false}}},
                        {{{-1, false}, {0, false}, {5, false}, {6, false}}}};
  for (const char *text : {"10,20,64,32; -1,0,5,6", "[[10,20,64,32],[-1,0,5,6]]", "(10, 20, 64, 32), (-1, 0, 5, 6)",
                           "< < 10, 20, 64, 32 >, < -1, 0, 5, 6 > >", "+10 20 128/2 32\r\n-1 0 5 6"}) {
    Written got;
    const Error error = error_of([&] { got = parse_regions(text); });
    expect_equal(true, got == want, std::string("roi \"") + text + "\": " + error.what());
  }
  const Written mixed = {{{{0, false}, {0, false}, {20, true}, {100, true}}},
                         {{{-1.5, false}, {10, false}, {200, false}, {10, false}, {50, true}, {1.5, true}}}};
  for (const char *text : {"0,0,20%,100%; -1.5,10 200,10 50%,1.5%", "[0,0,20%,100%] [-3/2,10,200,10,50%,3/2%]",
                           " 0 0 20% 100% ;-1.5 , 10 200 , 10  50% , 1.5% ;"}) {
    Written got;
    const Error error = error_of([&] { got = parse_regions(text); });
    expect_equal(true, got == mixed, std::string("roi \"") + text + "\": " + error.what());
  }

  const struct {
    const char *text, *where, *why;
  } kBad[] = {
      {"", "", "no numbers"},
      {" \r\n", "", "no numbers"},
      {"1 2 1; 2", "row 2", "1 number, row 1 has 3"},
      {"1 2; 3 4", "", "rows have 2 numbers, which is not odd; both sides of a mask are odd, 1 to 31"},
      {"1 2 3; 4 5 6", "", "it has 2 rows, which is not odd; both sides of a mask are odd, 1 to 31"},
      {"1 +-1 1", "row 1, column 2", "\"+-1\" is not a number"},
      {"1 ++1 1", "row 1, column 2", "\"++1\" is not a number"},
      {"1 + 1", "row 1, column 2", "\"+\" is not a number"},
      {"1,,1", "row 1, column 2", "a number is missing"},
      {"1;;1", "row 2, column 1", "a number is missing"},
      {"1 1e999 1", "row 1, column 2", "\"1e999\" is beyond"},
      {"1 1e-999 1", "row 1, column 2", "\"1e-999\" is beyond"},
      {"inf", "row 1, column 1", "\"inf\" is not a finite number"},
      {"1e308/1e-308", "row 1, column 1", "is not a finite number"},
      {"1 2 1; 1 1/0 1", "row 2, column 2", "\"1/0\" divides by 0"},
      {"1/2/3", "row 1, column 1", "\"1/2/3\" is not a number"},
      {"1/", "row 1, column 1", "\"1/\" is not a number"},
      {"1 / 9", "row 1, column 2", "\"/\" is not a number"},
      {"[[1,2,1],[2,4,2],[1,2,1]", "row 4, column 1", "\"]\" is missing"},
      {"[[1,2,1],[2,4,2],[1,2,1", "row 3, column 4", "\"]\" is missing"},
      {"[[1,2,1],[2,4,2],[1,2,1]]]", "row 4, column 1", "\"]\" closes no bracket"},
      {"1 2 1]", "row 1, column 4", "\"]\" closes no bracket"},
      {"[[1,2,1),[2,4,2],[1,2,1]]", "row 1, column 4", "\")\" where \"]\""},
      {"[[1,2,1],[2,4,2],[1,2,1]}", "row 4, column 1", "\"}\" where \"]\""},
      {"[1,2,1; [2,4,2]; 1,2,1]", "row 2, column 1", "\"[\" opens a bracket"},
      {"1,2,1; [2,4,2]; 1,2,1", "row 2, column 1", "\"[\" opens a bracket"},
      {"[1,2,1], 2,4,2, [1,2,1]", "row 2, column 1", "the brackets differ"},
      {"[[1,2,1], 2,4,2]", "row 2, column 1", "the brackets differ"},
      {"[1, [2], 1]", "row 1, column 2", "\"[\" within a row"},
      {"1 [2] 1", "row 1, column 2", "\"[\" within a row"},
      {"[[[1]]]", "row 1, column 1", "\"[\" is one bracket too many"},
      {"[[1,2;1]]", "row 1, column 3", "\";\" within the brackets"},
      {"[[1,2,1],[],[1,2,1]]", "row 2, column 1", "a number is missing"},
      {"[[1],,[1]]", "row 2, column 1", "the brackets differ"},
      {"[", "row 1, column 1", "\"]\" is missing"},
      {"[]", "row 1, column 1", "a number is missing"},
      {"(int", "row 1, column 1", "\"int\" is not a number"},
      {"3: 1,2,3 4,5,6 7,8", "row 3", "ends the kernel with 8 numbers; 3x3 has 9"},
      {"3: 1,2,3 4,5,6", "row 2", "ends the kernel with 6 numbers; 3x3 has 9"},
      {"3x12297829382473034411: 5", "", "\"3x12297829382473034411\" before the ':' is not the size"},
      {"3x1: 1,2,1 1", "row 2", "ends the kernel with 4 numbers; 3x1 has 3"},
      {"3: 1,2,3 4,x,6 7,8,9", "row 2, column 2", "\"x\" is not a number"},
      {"3: 1,2,3; 4,5,6; 7,8,9", "row 1, column 4", "\";\" within a kernel of fixed width"},
      {"3: [1,2,3 4,5,6 7,8,9]", "row 1, column 1", "\"[\" within a kernel of fixed width"},
      {"3x3+0+0: 1,2,3 4,5,6 7,8,9", "", "has to be its centre, +1+1"},
      {"Disk:3", "", "\"Disk\" before the ':' is not the size of a kernel, such as 3x3"},
      {"3x: 1", "", "\"3x\" before the ':'"},
      {"0: 1", "", "\"0\" before the ':'"},
      {"2: 1,2 3,4", "", "rows have 2 numbers, which is not odd"},
      {"3:", "", "no numbers"},
      {"- 1 1", "row 1, column 1", "\"-\" is not a number"},
      {"< 0.000000, 0.000000, 0.333333 >", "", "rounded to six digits; set a string"},
      {"< < 1.000000, 2.000000 >, < 0.000000, 0.333333 > >", "", "rounded to six digits; set a string"},
      {"< 0,000000, 0,000000, 0,333333 >", "", "rounded to six digits; set a string"},
      {"{ 2.500000 }", "", "rounded to six digits; set a string"},
  };
  for (const auto &bad : kBad) {
    const std::string what = error_of([&] { parse_coefficients(bad.text); }).what();
    expect_equal(true, what.find(bad.where) != what.npos && what.find(bad.why) != what.npos,
                 std::string("\"") + bad.text + "\" refused with \"" + what + "\"");
  }
}

void test_descriptions() {
  const auto expect_description = [](const FilterSettings &s, const char *format, const char *want) {
    FrameLayout layout = format_named(format).layout(17, 9);
    if (s.mask == Mask::Sobel) layout = with_fields(layout);
    const std::string got = describe(*make_plan(s, layout));
    expect_equal(0, got.compare(want), std::string("\"") + want + "\", got \"" + got + "\"");
  };
  FilterSettings s;
  expect_description(s, "NV12", "method=auto border=replicate parts=17x9,9x5; linear 5x5 separable 32-bit in->out");
  s.border = Border::Keep;
  s.method = Method::Tiled;
  s.mask = Mask::Sobel;
  s.iterations = 2;
  expect_description(s, "GRAY8",
                     "method=tiled border=keep parts=17x5,17x4; magnitude 3x3 separable 32-bit in->t1; magnitude 3x3 "
                     "separable 32-bit t1->out");
  s = {};
  s.mask = Mask::Tophat;
  s.shape = Shape::Cross;
  s.size = 5;
  expect_description(s, "GRAY8",
                     "method=auto border=replicate parts=17x9; minimum 5x5 in->t1; maximum 5x5 t1->t2; difference 1x1 "
                     "in-t2->out");
  s = {};
  s.mask = Mask::Median;
  s.iterations = 2;
  s.threshold = 0.1;
  expect_description(s, "GRAY8",
                     "method=auto border=replicate parts=17x9; median 3x3 in->t2; threshold 1x1 t2-in->t1; median 3x3 "
                     "t1->t2; threshold 1x1 t2-t1->out");
  s = {};
  s.mask = Mask::Gauss;
  s.sigma = 3;
  expect_description(s, "GRAY16_LE", "method=auto border=replicate parts=17x9; linear 19x19 separable 64-bit in->out");
}

// An error names the file that found its cause, not the file of a function that only throws.
void test_origins() {
  const auto expect_origin = [](const char *file, const Error &error) {
    const char *name = std::strrchr(error.file(), '/');
    expect_equal(0, std::strcmp(file, name ? name + 1 : error.file()), std::string(error.what()) + " is of " + file);
  };
  const Error iterations = refusal_of([](FilterSettings &s) { s.iterations = 0; });
  const Error bias = refusal_of([](FilterSettings &s) { s.bias = 2; });
  const Error side = refusal_of([](FilterSettings &s) { s.mask = Mask::Box, s.size = 2; });
  const Error word = error_of([] { parse_coefficients("x"); }), rows = error_of([] { parse_coefficients("1 2 1; 2"); });
  expect_origin("plan.cpp", iterations);
  expect_origin("plan.cpp", bias);
  expect_origin("masks.cpp", side);
  expect_origin("maskparser.cpp", word);
  expect_origin("maskparser.cpp", rows);
  expect_equal(false, iterations.line() == bias.line(), "two checks of the plan have different lines");
  expect_equal(false, word.line() == rows.line(), "two checks of the parser have different lines");

  FrameLayout layout = formats()[0].layout(8, 8);
  layout.planes = kMaxPlanes + 1;
  const Error format = error_of([&] { make_plan({}, layout); });
  expect_equal(static_cast<int>(Error::Kind::Format), static_cast<int>(format.kind()), "kind of a layout of 5 planes");
}

// The longest sides: beyond them, the period of a reflected row would not fit an int.
void test_longest_sides() {
  const auto refused = [](const char *name, int width, int height) {
    try {
      make_plan({}, format_named(name).layout(width, height));
    } catch (const Error &error) {
      return error.kind() == Error::Kind::Format;
    }
    return false;
  };
  constexpr int kMost = (1 << 30) - 1;
  for (const auto &[name, bytes] : {std::pair("GRAY8", 1), {"RGBA", 4}, {"GRAY16_LE", 2}, {"RGB10A2_LE", 4}}) {
    expect_equal(false, refused(name, kMost / bytes, 1), std::string(name) + ": the longest row");
    expect_equal(true, refused(name, kMost / bytes + 1, 1), std::string(name) + ": a longer row");
  }
  expect_equal(true, refused("GRAY8", INT_MAX, 1), "the row of most pixels");
  expect_equal(false, refused("GRAY8", 1, kMost), "the most rows");
  expect_equal(true, refused("GRAY8", 1, kMost + 1), "more rows");
}

// ---- memory_planes_of -----------------------------------------------------------------------------------------------

// Compares the runs of a row with its bytes, which are marked one by one.
void expect_marked(const FrameLayout &layout, const std::string &where) {
  const std::vector<MemoryPlane> planes = memory_planes_of(layout);
  for (size_t m = 0; m < planes.size(); m++) {
    std::vector<bool> want;
    int height = 0;
    for (int p = 0; p < layout.planes; p++) {
      const PlaneLayout &view = layout.plane[p];
      if (view.memory_plane != static_cast<int>(m)) continue;
      height = std::max(height, view.height);
      const size_t size = view.bytes_per_container();
      for (int x = 0; x < view.width; x++)
        for (int c = 0; c < view.channels; c++) {
          const int offset = view.container == Container::Packed32 ? 0 : view.channel[c].offset;
          for (size_t b = 0; b < size; b++) {
            const size_t byte = (view.first + x * view.step + offset) * size + b;
            if (byte >= want.size()) want.resize(byte + 1);
            want[byte] = true;
          }
        }
    }
    std::vector<bool> got(want.size() + 64);
    size_t end = 0;
    bool apart = true;  // runs are in rising order and do not touch
    for (const MemoryPlane::Run &run : planes[m].runs) {
      apart = apart && run.length > 0 && (end == 0 || run.begin > end);
      end = run.begin + run.length;
      for (size_t b = run.begin; b < std::min(end, got.size()); b++) got[b] = true;
    }
    expect_equal(want.size(), end, "end of the runs of " + where);
    got.resize(want.size());
    expect_equal(true, got == want && apart, "runs of " + where);
    expect_equal(want.size(), planes[m].row_bytes, "bytes of a row of " + where);
    expect_equal(height, planes[m].height, "rows of " + where);
  }
}

void test_memory_planes() {
  for (int width = 1; width <= 70; width++) {
    for (const Format &format : formats()) expect_marked(format.layout(width, 6), format.name + text({width}));
    // Layouts with gaps: between pixels, and at different positions of two views.
    FrameLayout gaps = format_named("RGBx").layout(width, 6);
    gaps.plane[0].channels = 3;
    expect_marked(gaps, "RGBx without x" + text({width}));
    FrameLayout views = format_named("v216").layout(width, 6);
    views.plane[1].channels = 1;
    expect_marked(views, "v216 without Cr" + text({width}));
    views.plane[0].width = (width + 1) / 2;
    expect_marked(views, "v216 with less luma" + text({width}));
  }
  // Runs of huge rows are found at once. Byte by byte takes seconds.
  const auto planes = memory_planes_of(format_named("RGBA").layout(536870911, 1));
  expect_equal(1, planes[0].runs.size(), "runs of a huge row");
  expect_equal(4ll * 536870911, planes[0].row_bytes, "bytes of a huge row");
  const auto packed = memory_planes_of(format_named("YUY2").layout(400000001, 1));
  expect_equal(2, packed[0].runs.size(), "runs of a huge row of odd width");
}

// ---- Regions --------------------------------------------------------------------------------------------------------

Regions regions_of(std::vector<Region> list, bool ellipse = false) {
  Regions regions;
  regions.active = true;
  regions.ellipse = ellipse;
  regions.region = std::move(list);
  return regions;
}

// A region without a row in a field, or without a pixel in the frame, selects no chroma either.
void test_regions_beyond_the_end() {
  struct {
    const char *format;
    int width, height;
    bool interlaced;
    Region region, alike;  // two regions with the same pixels
  } const kCases[] = {
      {"I420", 16, 18, true, {0, 17, 16, 1}, {0, 17, 16, 5}},  {"I420", 16, 18, true, {0, 16, 16, 1}, {0, 16, 16, 1}},
      {"NV12", 17, 17, false, {0, 17, 17, 1}, {0, 17, 17, 9}}, {"NV12", 17, 17, false, {17, 0, 1, 17}, {17, 0, 9, 17}},
      {"YUY2", 17, 17, false, {17, 0, 1, 17}, {17, 0, 9, 17}}, {"I420", 17, 3, true, {0, 3, 17, 1}, {0, 3, 17, 8}},
  };
  FilterSettings settings;
  settings.mask = Mask::Tophat;
  const auto backend = single_threaded_backend();
  for (const auto &c : kCases)
    for (const bool ellipse : {false, true}) {
      FrameLayout layout = format_named(c.format).layout(c.width, c.height);
      if (c.interlaced) layout = with_fields(layout);
      Random random(1);
      GuardedFrame source(layout, {0, 0, 1, 0});
      source.fill(random);
      const std::string where = std::string(c.format) + text({c.width, c.height, c.region.x, c.region.y, ellipse});
      for (const Region &region : {c.region, c.alike}) {
        const Regions regions = regions_of({region}, ellipse);
        GuardedFrame got = source, want = source;
        backend->submit(make_plan(settings, layout), source.view(), got.view(), regions);
        reference::write(reference::filter(settings, layout, reference::read(layout, source.view()), regions), layout,
                         want.view());
        expect_equal(true, got == want, "regions at the end of " + where + " as in the reference");
        const bool outside = region.x >= c.width || region.y >= c.height;
        if (outside) expect_equal(true, got == source, "a region outside " + where + " leaves all as it was");
        // The taller region reaches into rows of a field that do not exist.
        const Regions shorter = regions_of({c.region}, false);
        GuardedFrame like = source;
        backend->submit(make_plan(settings, layout), source.view(), like.view(), shorter);
        if (!ellipse) expect_equal(true, got == like, "regions that end beyond " + where);
      }
    }
}

// Flags for the pixels of row y: whether the regions select it.
std::vector<bool> selected_in_row(const RegionRows &rows, int y, int width) {
  std::vector<bool> selected(width);
  for (size_t i = rows.row(y).begin; i < rows.row(y).end; i++)
    std::fill(selected.begin() + rows.runs()[i].begin, selected.begin() + rows.runs()[i].end, true);
  return selected;
}

// Ellipses compared with their definition, for sides of any length.
void test_large_ellipses() {
  const FrameLayout layout = format_named("GRAY8").layout(61, 47);
  const auto plan = make_plan({}, layout);
  Random random(1);
  const auto check = [&](const Region &r) {
    const RegionRows rows = *region_rows(regions_of({r}, true), *plan, Cancellation(nullptr))[0];
    for (int y = 0; y < 47; y++) {
      const std::vector<bool> got = selected_in_row(rows, y, 61);
      for (int x = 0; x < 61; x++) {
        const Integer dx = 2 * Integer{x} + 1 - 2 * Integer{r.x} - r.width, w = r.width, h = r.height;
        const Integer dy = 2 * Integer{y} + 1 - 2 * Integer{r.y} - r.height;
        const bool want =
            (dx < 0 ? -dx : dx) < w && (dy < 0 ? -dy : dy) < h && dx * dx * h * h + dy * dy * w * w <= w * w * h * h;
        expect_equal(want, got[x], "ellipse" + text({r.x, r.y, r.width, r.height}) + " at" + text({x, y}));
      }
    }
  };
  // The edges of these ellipses are within the frame, near the axes and between them.
  const int kLargest = std::numeric_limits<int>::max();
  check({-kLargest, -kLargest, kLargest, kLargest});
  check({-kLargest / 2, -kLargest / 2, kLargest, kLargest});
  for (const int side : {20, 32766, 32767, 32768, 46341, 65535, 65536, 1 << 20, 1 << 30, kLargest})
    for (const int other : {30, 32767, 32768, 70000, 3 << 20, kLargest})
      for (int turn = 0; turn < 6; turn++) {
        const double angle = 0.5 + turn;
        const double at_x = side / 2.0 * (1 + std::cos(angle)), at_y = other / 2.0 * (1 + std::sin(angle));
        check({static_cast<int>(30 - at_x), static_cast<int>(20 - at_y), side, other});
        check({static_cast<int>(10 - static_cast<int>(random() % 40)), static_cast<int>(20 - at_y), side, other});
      }
}

// Whether an upright region has the pixel in column x of row y of a field, by the definition.
bool has_pixel(const Region &r, bool ellipse, int x, int y, const Plan::Part &part) {
  const auto row = [&](int frame_row) {  // the first row of the field at or below a row of the frame
    int n = (frame_row - part.first_row) / part.row_step - 1;
    while (part.first_row + n * part.row_step < frame_row) n++;
    return n;
  };
  const Integer top = row(r.y), bottom = row(r.y + r.height), w = r.width, h = bottom - top;
  if (x < r.x || x >= r.x + r.width || y < top || y >= bottom) return false;
  const Integer dx = 2 * (x - r.x) + 1 - w, dy = 2 * (y - top) + 1 - h;
  return !ellipse || dx * dx * h * h + dy * dy * w * w <= w * w * h * h;
}

// Quarter turns of ellipses have the pixels whose centre is inside or on the edge, in integers. With sides of 5n pixels
// some centres are on it.
void test_quarter_ellipses() {
  const FrameLayout layout = format_named("GRAY8").layout(61, 47);
  const auto plan = make_plan({}, layout);
  for (int w = 5; w <= 45; w += 5)
    for (int h = 5; h <= 45; h += 5)
      for (const int quarters : {1, 2, 3}) {
        Region r = {28 - w / 2, 23 - h / 2, w, h};
        r.rotation = quarters * 1.57079632679489662;
        const RegionRows rows = *region_rows(regions_of({r}, true), *plan, Cancellation(nullptr))[0];
        const int across = quarters == 2 ? w : h, down = quarters == 2 ? h : w;
        for (int y = 0; y < 47; y++) {
          const std::vector<bool> got = selected_in_row(rows, y, 61);
          std::vector<bool> want(61);
          for (int x = 0; x < 61; x++) {
            const int dx = 2 * x + 1 - 2 * r.x - w, dy = 2 * y + 1 - 2 * r.y - h;
            want[x] = dx * dx * down * down + dy * dy * across * across <= across * across * down * down;
          }
          expect_equal(true, got == want, "quarter turns of an ellipse" + text({quarters, w, h, y}));
        }
      }
}

// The runs of a row are the samples with any selected pixel, each once.
void test_region_rows() {
  Random random(5);
  const auto within = [&](int from, int to) { return from + static_cast<int>(random() % (to - from + 1)); };
  const char *const formats[] = {"I420", "YUY2", "A420", "NV12", "Y42B", "GRAY8"};
  for (int turn = 0; turn < 400; turn++) {
    const int columns = within(1, 131), lines = within(1, 40);
    FrameLayout layout = format_named(formats[turn % 6]).layout(columns, lines);
    layout.interlaced = turn % 5 < 2;
    const auto plan = make_plan({}, layout);
    Regions regions = regions_of({}, turn % 2);
    regions.invert = turn % 4 >= 2;
    for (int i = turn % 60; i > 0; i--)
      regions.region.push_back({within(-40, 140), within(-20, 42), within(1, turn % 3 ? 9 : 90), within(1, 30)});
    const std::vector<std::shared_ptr<const RegionRows>> all = region_rows(regions, *plan, Cancellation(nullptr));
    for (size_t p = 0; p < plan->parts.size(); p++) {
      const Plan::Part &part = plan->parts[p];
      const RegionRows &rows = *all[p];
      const PlaneLayout &plane = layout.plane[part.plane];
      const auto is_selected = [&](int x, int y) {
        return std::any_of(regions.region.begin(), regions.region.end(), [&](const Region &r) {
                 return has_pixel(r, regions.ellipse, x, y, part);
               }) != regions.invert;
      };
      for (int y = 0; y < part.height; y++) {
        std::vector<bool> want(plane.width);
        for (int row = y << plane.sub_y; row < (y + 1) << plane.sub_y; row++)
          for (int x = 0; part.first_row + row * part.row_step < lines && x < columns; x++)
            if (is_selected(x, row)) want[x >> plane.sub_x] = true;
        bool apart = true;
        for (size_t i = rows.row(y).begin; i < rows.row(y).end; i++) {
          const PixelRun run = rows.runs()[i];
          apart = apart && run.begin < run.end && (i == rows.row(y).begin || run.begin > rows.runs()[i - 1].end);
        }
        const bool equal = selected_in_row(rows, y, plane.width) == want;
        expect_equal(true, apart && equal, "runs of regions" + text({turn, part.plane, part.first_row, y}));
      }
    }
  }
}

// The rectangles of an area are disjoint, and cover the added pixels and few others. After growing, they cover the
// pixels that windows read.
void test_areas() {
  Random random(6);
  const auto within = [&](int from, int to) { return from + static_cast<int>(random() % (to - from + 1)); };
  for (int turn = 0; turn < 400; turn++) {
    const int width = within(1, 200), height = within(1, 150), radius = within(0, turn % 3 ? 9 : 300);
    const Border border = kBorderNames[turn % std::size(kBorderNames)].value;
    std::vector<int> added(width * height), grown(width * height);
    Area area(width, height);
    for (int i = turn % 9; i > 0; i--) {
      const int x = within(-20, width), y = within(-20, height);
      const PixelRect r = {x, y, x + within(0, 90), y + within(0, 90)};
      area.add(r);
      for (int py = std::max(r.y0, 0); py < std::min(r.y1, height); py++)
        for (int px = std::max(r.x0, 0); px < std::min(r.x1, width); px++) added[py * width + px] = 1;
    }
    const auto counts = [&](const std::vector<PixelRect> &rects) {
      std::vector<int> n(width * height);
      for (const PixelRect &r : rects)
        for (int y = r.y0; y < r.y1; y++)
          for (int x = r.x0; x < r.x1; x++) n.at(y * width + x)++;
      return n;
    };
    const std::vector<int> got = counts(area.rectangles());
    const std::vector<int> more = counts(area.grown(radius, radius / 2, border).rectangles());
    const std::vector<int> joined = counts(area.joined(radius, radius / 2));
    const auto read = [&](const std::vector<PixelRect> &rects) {
      int64_t pixels = 0;
      for (const PixelRect &r : rects)
        pixels += 512 + (int64_t{r.width()} + 2 * radius) * (r.height() + radius / 2 * 2);
      return pixels;
    };
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        if (!got[y * width + x]) continue;
        // The ends of the window's rows and columns, and its centre.
        for (const int dx : {-radius, 0, radius})
          for (const int dy : {-(radius / 2), 0, radius / 2}) {
            const int px = reference::position(border, x + dx, width), py = reference::position(border, y + dy, height);
            if (px >= 0 && py >= 0) grown[py * width + px] = 1;
          }
      }
    bool holds = true, once = true, reaches = true;
    for (int i = 0; i < width * height; i++) {
      holds = holds && got[i] >= added[i];
      holds = holds && joined[i] >= got[i];
      once = once && got[i] <= 1 && more[i] <= 1 && joined[i] <= 1;
      reaches = reaches && more[i] >= grown[i];
    }
    reaches = reaches && read(area.joined(radius, radius / 2)) <= read(area.rectangles());
    expect_equal(true, holds && once && reaches, "area" + text({turn, width, height, radius, holds, once, reaches}));
  }
  Area one(640, 480);
  one.add({101, 53, 398, 333});
  expect_equal(1, one.rectangles().size(), "a rectangle remains one");
  expect_equal(297ll * 280, one.rectangles()[0].pixels(), "pixels of a rectangle");
  Area disk(640, 480);
  for (int y = -60; y <= 60; y++) {
    const int half = static_cast<int>(std::sqrt(60 * 60 - y * y));
    disk.add({300 - half, 200 + y, 300 + half, 201 + y});
  }
  expect_equal(1, disk.joined(15, 15).size(), "a disk is one rectangle for wide windows");
}

// The time for a frame does not grow with the number of regions around a pixel.
void test_many_regions() {
  const FrameLayout layout = format_named("NV12").layout(1920, 1080);
  GuardedFrame source(layout, {0, 0, 1, 0}), target(layout, {0, 0, 1, 0});
  Random random(1);
  const auto backend = single_threaded_backend();
  for (const bool ellipse : {false, true}) {
    Regions regions = regions_of({}, ellipse);
    for (int i = 0; i < (ellipse ? 2000 : 300000); i++)
      regions.region.push_back({static_cast<int>(random() % 1900), static_cast<int>(random() % 1000),
                                static_cast<int>(1 + random() % 200), static_cast<int>(1 + random() % 200)});
    const auto begin = std::chrono::steady_clock::now();
    backend->submit(make_plan({}, layout), source.view(), target.view(), regions);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%zu %s: %.0f ms\n", regions.region.size(), ellipse ? "ellipses" : "rectangles", 1e3 * seconds);
    // If the time grew with regions times pixels, it would be minutes.
    expect_equal(true, seconds < 30, "a frame of many regions comes to an end");
  }
}

// ---- why_unused -----------------------------------------------------------------------------------------------------

// Heights that equal widths change nothing. Two large sigmas use a smaller frame. Otherwise, sums of 8-bit samples stay
// in 32 bits.
void test_windows_that_are_not_square() {
  const FrameLayout layout = format_named("GRAY8").layout(64, 48);
  const auto plan_of = [&](Mask mask, int size, int size_y, double sigma = kAutoSigma, double sigma_y = kSigmaYAsX) {
    FilterSettings s;
    s.mask = mask;
    s.size = size;
    s.size_y = size_y;
    s.sigma = sigma;
    s.sigma_y = sigma_y;
    return make_plan(s, layout);
  };
  for (Mask m : {Mask::Box, Mask::Gauss, Mask::Unsharp, Mask::Dilate, Mask::Median, Mask::Mosaic})
    expect_equal(true, describe(*plan_of(m, 9, 9)) == describe(*plan_of(m, 9, 0)), "a height that equals the width");
  expect_equal(true, describe(*plan_of(Mask::Gauss, 0, 0, 20, 20)) == describe(*plan_of(Mask::Gauss, 0, 0, 20)),
               "a sigma of columns that equals the sigma of rows");
  const auto wide = plan_of(Mask::Gauss, 0, 0, 60, 24), long_x = plan_of(Mask::Gauss, 0, 0, 250, 1),
             long_y = plan_of(Mask::Gauss, 0, 0, 0, 250);
  expect_equal(true, wide->passes[0].op == Op::Blur, "two large sigmas");
  expect_equal(true, wide->passes[0].radius_x > wide->passes[0].radius_y, "their reach");
  for (const auto &plan : {long_x, long_y})
    expect_equal(true, plan->passes[0].op == Op::Linear && !plan->passes[0].wide, "a large sigma and a small one");
  expect_equal(1, long_y->passes[0].width(), "no blur along rows");
  // Without a smaller frame, large windows take fifty times as long.
  for (double sigma = 42.4; sigma <= 250; sigma += 1.6)
    expect_equal(true, plan_of(Mask::Unsharp, 0, 0, sigma)->passes[0].op == Op::Blur,
                 "unsharp with sigma=" + std::to_string(sigma));
}

// A setting is reported as unused exactly if no value of it changes a byte.
void test_unused_settings() {
  const Coefficients one = {3, 3, {1, 0, 3, 0, 0, 2, 4, 1, 1}}, other = {3, 1, {1, 0, 2}};
  const struct {
    const char *property;
    std::vector<std::function<void(FilterSettings &s)>> values;
  } kProperties[] = {
      {"size", {[](auto &s) { s.size = 7; }, [](auto &s) { s.size = 3; }}},
      {"size-y", {[](auto &s) { s.size_y = 7; }, [](auto &s) { s.size_y = 1; }}},
      {"sigma-y", {[](auto &s) { s.sigma_y = 0.6; }, [](auto &s) { s.sigma_y = 2; }}},
      {"sigma", {[](auto &s) { s.sigma = 0.6; }, [](auto &s) { s.sigma = 2; }}},
      {"amount", {[](auto &s) { s.amount = 3; }}},
      {"coefficients", {[&](auto &s) { s.coefficients = other; }}},
      {"shape",
       {[](auto &s) { s.shape = Shape::Cross; }, [](auto &s) { s.shape = Shape::Custom; },
        [](auto &s) { s.shape = Shape::Ellipse; }}},
      {"divisor", {[](auto &s) { s.divisor = 3; }, [](auto &s) { s.divisor = 2000; }}},
      {"bias", {[](auto &s) { s.bias = 0.25; }}},
      {"negative", {[](auto &s) { s.negative = Negative::Absolute; }, [](auto &s) { s.negative = Negative::Clamp; }}},
      {"magnitude", {[](auto &s) { s.magnitude = Magnitude::L1; }}},
      {"iterations", {[](auto &s) { s.iterations = 2; }}},
      {"border", {[](auto &s) { s.border = Border::Wrap; }, [](auto &s) { s.border = Border::Constant; }}},
      {"chroma", {[](auto &s) { s.chroma = Chroma::Copy; }, [](auto &s) { s.chroma = Chroma::Neutral; }}},
      {"alpha", {[](auto &s) { s.alpha = Alpha::Filter; }}},
  };
  // The plan gets fill-color as samples of the layout.
  for (const Named<Mask> &mask : kMaskNames) {
    FilterSettings coloured;
    coloured.mask = mask.value;
    expect_equal(mask.value == Mask::Fill, why_unused("fill-color", coloured).empty(),
                 std::string("fill-color with ") + mask.nick);
  }
  const auto is_refused = [](const FilterSettings &s) {
    return s.mask == Mask::Bilateral && (s.shape == Shape::Cross || s.shape == Shape::Custom);
  };
  const FrameLayout layout = format_named("AYUV").layout(14, 11);
  GuardedFrame source(layout, {0, 0, 1, 0});
  // The contrast is low, so that the steepest gradient stays within the range.
  for (size_t i = 0; i < source.blocks()[0].bytes.size(); i++)
    source.blocks()[0].bytes[i] = static_cast<uint8_t>(i * i % 251 % 16);
  const auto backend = single_threaded_backend();
  const auto filtered = [&](const FilterSettings &settings) {
    GuardedFrame target(layout, {0, 0, 1, 0});
    backend->submit(make_plan(settings, layout), source.view(), target.view());
    return target;
  };
  for (const Named<Mask> &mask : kMaskNames)
    for (const Shape shape : {Shape::Rect, Shape::Cross, Shape::Ellipse, Shape::Custom})
      for (const auto &p : kProperties) {
        const bool is_shape = !std::strcmp(p.property, "shape");
        if (is_shape && shape != Shape::Rect) continue;
        bool changes = false, reported = true;
        for (const auto &set : p.values) {
          for (const double bias : {0.0, -0.5}) {  // some settings only matter for negative results
            FilterSettings s;
            s.mask = mask.value;
            s.shape = shape;
            s.coefficients = one;
            s.bias = bias;
            if (is_refused(s)) continue;
            const GuardedFrame before = filtered(s);
            set(s);
            changes = changes || (!is_refused(s) && filtered(s) != before);
          }
          FilterSettings s;
          s.mask = mask.value;
          s.shape = shape;
          s.coefficients = one;
          if (is_refused(s)) continue;
          set(s);
          reported = reported && !why_unused(p.property, s).empty();
        }
        expect_equal(
            changes, !reported,
            std::string(p.property) + " is used by " + mask.nick + " of shape" + text({static_cast<int>(shape)}));
      }

  FilterSettings s;
  const auto expect_text = [&](const char *property, const char *want) {
    const std::string got = why_unused(property, s);
    expect_equal(true, got == want, std::string("text of ") + property + ": " + got);
  };
  expect_text("sigma", "sigma has no effect with mask=gauss5; it is used by gauss, unsharp, bilateral");
  expect_text("coefficients",
              "coefficients has no effect with mask=gauss5; it is used by custom, and with shape=custom by dilate, "
              "erode, open, close, gradient, tophat, blackhat");
  expect_text("border", "");
  expect_text("mask", "");
  s.mask = Mask::Median;
  expect_text("divisor",
              "divisor has no effect with mask=median; it is used by all but identity, unsharp, dilate, erode, open, "
              "close, gradient, tophat, blackhat, median, mosaic, fill, bilateral");
  s.mask = Mask::Mosaic;
  expect_text("iterations", "iterations has no effect with mask=mosaic; it is used by all but identity, mosaic, fill");
  expect_text("border", "border has no effect with mask=mosaic; it is used by all but identity, mosaic, fill");
  s.mask = Mask::Dilate;
  expect_text("coefficients",
              "coefficients has no effect with mask=dilate and shape=rect; it is used with shape=custom");
  s.shape = Shape::Custom;
  expect_text("size",
              "size has no effect with mask=dilate and shape=custom; it is used with shape=rect, cross, ellipse");
}

// ---- The CPU backend's submit() -------------------------------------------------------------------------------------

// Filters a small frame and checks it. `where`: text for the message.
void expect_right(Backend &backend, const std::string &where) {
  FilterSettings settings;
  settings.mask = Mask::Open;
  const FrameLayout layout = format_named("NV12").layout(97, 31);
  Random random(3);
  GuardedFrame source(layout, {0, 3, 1, 5}), got(layout, {0, 3, 1, 5});
  source.fill(random);
  got.fill(random);
  GuardedFrame want = got;
  backend.retire(backend.submit(make_plan(settings, layout), source.view(), got.view()));
  reference::write(reference::filter(settings, layout, reference::read(layout, source.view())), layout, want.view());
  expect_equal(true, got == want, "a small frame is right " + where);
}

void test_cancellation() {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::duration d) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
  };
  FilterSettings settings;
  settings.mask = Mask::Median;
  settings.size = 7;
  const auto backend = single_threaded_backend();
  expect_equal(true, backend->stats().kernels == nullptr, "no loops are in use before the first frame");
  expect_equal(false, why_no_context(999).empty(), "there is no device 999");
  // Cancels before the first pass, between passes, and within a long pass.
  for (int kind = 0; kind < 3; kind++) {
    const bool from_start = kind == 0;
    settings.iterations = kind == 2 ? 1 : 300;
    const FrameLayout layout =
        kind == 2 ? format_named("GRAY16_LE").layout(7680, 4320) : format_named("NV12").layout(1920, 1080);
    const auto plan = make_plan(settings, layout);
    GuardedFrame source(layout, {0, 0, 1, 0}), target(layout, {0, 0, 1, 0});
    for (GuardedFrame::Block &block : source.blocks())
      for (size_t i = 0; i < block.bytes.size(); i++) block.bytes[i] = static_cast<uint8_t>(i * i >> 7);
    std::atomic<bool> cancelled{from_start};
    const Clock::time_point begin = Clock::now();
    Clock::time_point asked = begin;
    std::thread other([&] {
      if (from_start) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      asked = Clock::now();
      cancelled = true;
    });
    const Error error = error_of([&] { backend->submit(plan, source.view(), target.view(), {}, &cancelled); });
    const Clock::time_point end = Clock::now();
    other.join();
    expect_equal(static_cast<int>(Error::Kind::Cancelled), static_cast<int>(error.kind()), "kind of a cancellation");
    expect_equal(true, end >= asked && milliseconds(end - asked) < 100,
                 "submit() gives up within 100 ms; it took " + text({milliseconds(end - asked)}));
    expect_right(*backend, "after a cancellation");
  }
  expect_equal(true, backend->stats().kernels == std::string(vector_loops().level), "the loops in use are named");
  expect_equal(3, backend->stats().frames, "filtered frames, without the cancelled frames");
}

// The union of an element's chords are its members. Chords are sorted by level; only chords in pairs have two rows.
void test_chords() {
  Random random(1);
  int elements = 0;
  const auto check_element = [&](const std::vector<uint8_t> &member, int width, int height) {
    for (const bool in_pairs : {false, true}) {
      std::vector<uint8_t> made(member.size());
      bool sorted = true, alone = true;
      const std::vector<Chord> chords = chords_of(member, width, height, in_pairs);
      for (size_t i = 0; i < chords.size(); i++) {
        const Chord &c = chords[i];
        for (int row = 0; row < c.rows; row++)
          for (int x = 0; x < 1 << c.level; x++) made[static_cast<size_t>(c.y + row) * width + c.x + x] = 1;
        alone &= c.rows == 1 || in_pairs;
        sorted &=
            i == 0 || chords[i - 1].level < c.level || (chords[i - 1].level == c.level && chords[i - 1].rows >= c.rows);
      }
      const std::string what = "chords of element " + std::to_string(elements) + ", " + std::to_string(width) + "x" +
                               std::to_string(height) + (in_pairs ? " in pairs" : "");
      expect_equal(true, made == member, what + ": their union");
      expect_equal(true, sorted && alone, what + ": their order");
    }
    elements++;
  };
  for (int i = 0; i < 300; i++) {
    const int width = 1 + 2 * static_cast<int>(random() % 16), height = 1 + 2 * static_cast<int>(random() % 16);
    std::vector<uint8_t> member(static_cast<size_t>(width) * height);
    const unsigned full = 1 + random() % 8;
    for (uint8_t &m : member) m = random() % 8 < full;
    member[random() % member.size()] = 1;
    check_element(member, width, height);
  }
  for (Shape shape : {Shape::Cross, Shape::Ellipse})
    for (int size : {3, 5, 31, 127, 255}) {
      FilterSettings s;
      s.mask = Mask::Dilate;
      s.shape = shape;
      s.size = size;
      const Window window = window_of(s);
      check_element(window.member, window.size.width, window.size.height);
    }
}

// Half widths exist for elements that are symmetric in both directions, and whose rows are never longer than the rows
// nearer the middle.
void test_half_widths() {
  const auto widths_of = [](int width, int height, std::vector<uint8_t> member) {
    Pass pass;
    pass.radius_x = width / 2;
    pass.radius_y = height / 2;
    pass.element = std::move(member);
    std::string text;
    for (int w : half_widths_of(pass)) text += std::to_string(w) + " ";
    return text;
  };
  const auto expect = [&](const char *want, int width, int height, std::vector<uint8_t> member) {
    const std::string got = widths_of(width, height, std::move(member));
    expect_equal(true, got == want, std::string("half widths: want ") + want + ", got " + got);
  };
  expect("2 2 ", 5, 3, {});
  expect("1 0 ", 3, 3, {0, 1, 0, 1, 1, 1, 0, 1, 0});
  expect("0 ", 3, 3, {0, 0, 0, 0, 1, 0, 0, 0, 0});
  expect("0 0 ", 3, 5, {0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0});
  expect("", 3, 3, {1, 1, 1, 0, 1, 0, 1, 1, 1});                    // a row longer than the middle row
  expect("", 3, 3, {0, 0, 0, 0, 1, 1, 0, 0, 0});                    // not centred
  expect("", 3, 3, {0, 1, 0, 1, 1, 1, 0, 0, 0});                    // only upwards
  expect("", 3, 3, {0, 0, 0, 1, 0, 1, 0, 0, 0});                    // two runs in a row
  expect("", 3, 3, {0, 1, 0, 0, 0, 0, 0, 1, 0});                    // an empty middle row
  expect("", 3, 5, {0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0});  // empty rows in between
}

// Plans with temporary frames. Threads would share these if submit() did not make them wait for their turn.
void test_turns() {
  const auto backend = make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));  // lets the other threads run
          body(i);
        }
      },
      1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; i++) expect_right(*backend, "beside other threads' frames");
    });
  for (std::thread &t : threads) t.join();
  expect_equal(15, backend->stats().frames, "frames of three threads");
}

}  // namespace

int unit() {
  test_border_index();
  test_border_properties();
  test_rounding();
  test_bias_offset();
  test_integer_sqrt();
  test_refusals();
  test_texts();
  test_parser();
  test_descriptions();
  test_origins();
  test_longest_sides();
  test_memory_planes();
  test_regions_beyond_the_end();
  test_large_ellipses();
  test_quarter_ellipses();
  test_region_rows();
  test_areas();
  test_many_regions();
  test_windows_that_are_not_square();
  test_unused_settings();
  test_cancellation();
  test_chords();
  test_half_widths();
  test_turns();
  std::printf("%d failed\n", failures.load());
  return failures ? 1 : 0;
}

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::unit();
}
