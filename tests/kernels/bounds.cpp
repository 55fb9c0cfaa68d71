// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the limits of settings: a value just within a limit filters as the reference does, a value just beyond is
// refused. Also tests sums that just fit their lanes, or just do not.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "checks.h"
#include "cpu/vector.h"
#include "error.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/fixed_point.h"
#include "plan/maskparser.h"
#include "plan/masks.h"
#include "plan/plan.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

// The text of the error that `f` throws, or "" if it throws none.
std::string refusal_of(const std::function<void()> &f) {
  try {
    f();
  } catch (const Error &error) {
    return error.what();
  }
  return {};
}

std::string refusal_of(const FilterSettings &settings, const char *format = "GRAY8") {
  return refusal_of([&] { make_plan(settings, format_named(format).layout(8, 8)); });
}

std::unique_ptr<Backend> new_backend() {
  return make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);
}

FilterSettings setting(Mask mask, int size = 0) {
  FilterSettings s;
  s.mask = mask;
  s.size = size;
  return s;
}

FilterSettings custom(int width, int height, std::vector<double> value, double divisor = 0, double bias = 0) {
  FilterSettings s = setting(Mask::Custom);
  s.coefficients = {width, height, std::move(value)};
  s.divisor = divisor;
  s.bias = bias;
  return s;
}

// Frames of noise, or of the smallest and largest sample alternately.
enum class Picture { Noise, Extremes };

GuardedFrame new_frame(const FrameLayout &layout, Picture picture) {
  GuardedFrame frame(layout, {0, 0, 1, 0});
  Random random(7);
  frame.fill(random);
  if (picture == Picture::Extremes)
    for (GuardedFrame::Block &block : frame.blocks())
      for (size_t i = 0; i < block.bytes.size(); i++) block.bytes[i] = random() % 3 ? 0xff : 0;
  return frame;
}

void expect_as_reference(const FilterSettings &settings, FrameLayout layout, const std::string &what,
                         const Regions &regions = {}) {
  const auto backend = new_backend();
  for (const Picture picture : {Picture::Noise, Picture::Extremes}) {
    const GuardedFrame source = new_frame(layout, picture);
    GuardedFrame got = source, want = source;
    const std::string refused =
        refusal_of([&] { backend->submit(make_plan(settings, layout), source.view(), got.view(), regions); });
    reference::write(reference::filter(settings, layout, reference::read(layout, source.view()), regions), layout,
                     want.view());
    expect(refused.empty() && got == want,
           what + (picture == Picture::Noise ? " of noise" : " of extremes") + " as in the reference: " + refused);
  }
}

// ---- Settings -------------------------------------------------------------------------------------------------------

void test_largest_and_smallest() {
  for (const Mask mask : {Mask::Box, Mask::Gauss, Mask::Unsharp}) {
    expect(refusal_of(setting(mask, 1501)).empty(), std::string("size=1501 of ") + mask_nick(mask));
    expect(!refusal_of(setting(mask, 1503)).empty(), std::string("size=1503 of ") + mask_nick(mask));
  }
  for (const auto &[mask, largest, step] :
       {std::tuple(Mask::Median, 127, 2), {Mask::Dilate, 255, 2}, {Mask::Mosaic, 255, 1}}) {
    expect(refusal_of(setting(mask, largest)).empty(), std::string("the largest size of ") + mask_nick(mask));
    expect(!refusal_of(setting(mask, largest + step)).empty(), std::string("a larger size of ") + mask_nick(mask));
  }
  FilterSettings s = setting(Mask::Gauss);
  s.sigma = 250;
  expect(refusal_of(s).empty(), "sigma=250");
  s.sigma = std::nextafter(250, 251);
  expect(!refusal_of(s).empty(), "a sigma above 250");
  s = {};
  for (const double bias : {-1.0, 1.0}) {
    s.bias = bias;
    expect(refusal_of(s).empty(), "a bias of the full range");
  }
  s.bias = NAN;
  expect(refusal_of(s).find("bias=") == 0, "a bias that is no number");
  s = {};
  for (const double divisor : {-0x1p32, 0x1p32}) {
    s.divisor = divisor;
    expect(refusal_of(s).empty(), "a divisor of 2^32");
  }
  s = setting(Mask::Unsharp);
  for (const double amount : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
    s.amount = amount;
    expect(refusal_of(s).find("amount=") == 0, "an amount that is no number");
  }
}

// A magnitude is rounded before it is divided, so its divisor cannot be as small as the divisor of a plain sum.
void test_small_divisors() {
  FilterSettings s = setting(Mask::Sobel);
  s.divisor = 1.0 / 64;
  expect(refusal_of(s).empty(), "a magnitude divided by 1/64");
  s.divisor = 1.0 / 65;
  expect(refusal_of(s).find("the least is 0.015625") != std::string::npos, "a magnitude divided by 1/65");
  s.mask = Mask::SobelX;
  expect(refusal_of(s).empty(), "a sum divided by 1/65");
}

void test_divisors_of_masks() {
  const FrameLayout layout = format_named("GRAY8").layout(37, 11);
  for (const double divisor : {-1.0, -3.0, -2.5, 7.0}) {
    FilterSettings s = setting(Mask::Kirsch);
    s.divisor = divisor;
    s.bias = 0.75;
    for (const Negative negative : {Negative::Clamp, Negative::Absolute}) {
      s.negative = negative;
      if (divisor == std::floor(divisor)) expect_as_reference(s, layout, "kirsch by " + std::to_string(divisor));
    }
  }
  // The divisor has no effect on an unsharp mask.
  const auto backend = new_backend();
  const GuardedFrame source = new_frame(layout, Picture::Noise);
  GuardedFrame plain = source, divided = source;
  FilterSettings s = setting(Mask::Unsharp);
  backend->submit(make_plan(s, layout), source.view(), plain.view());
  s.divisor = 3;
  backend->submit(make_plan(s, layout), source.view(), divided.view());
  expect(plain == divided, "an unsharp mask with a divisor");
}

// Coefficients whose sum is 0 have the divisor 1, fractions as well as integers.
void test_sums_of_zero() {
  const FrameLayout layout = format_named("GRAY8").layout(40, 9);
  expect(refusal_of(custom(3, 1, {0.1, 0.2, -0.3})).empty(), "fractions that cancel");
  const auto backend = new_backend();
  GuardedFrame source(layout, {0, 0, 1, 0}), got = source;
  for (uint8_t &byte : source.blocks()[0].bytes) byte = 100;
  backend->submit(make_plan(custom(3, 1, {0.1, 0.2, -0.3}, 0, 0.5), layout), source.view(), got.view());
  for (const uint8_t byte : got.blocks()[0].bytes)
    expect(byte == 128, "a sum of 0 and a bias is " + std::to_string(byte));
}

void test_windows_of_methods() {
  for (const Method method : {Method::Global, Method::Tiled, Method::Blocked, Method::Separable}) {
    FilterSettings s = setting(Mask::Box, 127);
    s.method = method;
    expect(refusal_of(s).empty(), std::string("box of 127 by ") + method_nick(method));
    s.size = 129;
    expect(!refusal_of(s).empty(), std::string("box of 129 by ") + method_nick(method));
  }
  // A custom element with all members set is a rectangle.
  for (const auto &[width, height] : {std::pair(5, 5), {5, 3}, {3, 5}, {7, 5}}) {
    FilterSettings s = setting(Mask::Dilate);
    s.shape = Shape::Custom;
    s.coefficients = {width, height, std::vector<double>(static_cast<size_t>(width) * height, 1)};
    const std::string what = "a full element of " + std::to_string(width) + "x" + std::to_string(height);
    s.method = Method::Separable;
    expect(refusal_of(s).empty(), what + " by separable");
    s.method = Method::Cascade;
    expect(refusal_of(s).empty() == (width == 5 && height == 5), what + " by cascade");
    s.method = Method::Separable;
    s.coefficients.value[1] = 0;
    expect(!refusal_of(s).empty(), what + " without a member by separable");
  }
}

std::string ones(int count, const char *between) {
  std::string text;
  for (int i = 0; i < count; i++) text += (i ? between : "") + std::string("1");
  return text;
}

void test_sides_of_text() {
  expect(parse_coefficients(ones(31, ";")).height == 31, "31 rows");
  expect(!refusal_of([] { parse_coefficients(ones(33, ";")); }).empty(), "33 rows");
  expect(!refusal_of([] { parse_coefficients(ones(33, " ")); }).empty(), "33 columns");
  for (const auto &[count, side] : {std::pair(9, 3), {25, 5}, {49, 7}})
    expect(parse_coefficients(ones(count, " ")).height == side, std::to_string(count) + " numbers are a square");
  for (const char *end : {";", " ; "})
    expect(parse_coefficients(ones(9, " ") + end).height == 1, "9 numbers and a ';' are a row");
  for (const int count : {1, 3, 31}) expect(parse_coefficients(ones(count, " ")).height == 1, "a row of numbers");
  expect(!refusal_of([] { parse_coefficients(ones(81, " ")); }).empty(), "81 numbers are no square");
}

// ---- Sums -----------------------------------------------------------------------------------------------------------

// Sums, biases and divisors that together come close to the limits of 16, 32 and 64 bits.
void test_sums_that_just_fit() {
  for (const char *format : {"GRAY8", "GRAY16_LE"}) {
    const FrameLayout layout = format_named(format).layout(70, 5);
    const auto check = [&](const FilterSettings &s, const std::string &what) {
      expect_as_reference(s, layout, std::string(format) + ": " + what);
    };
    for (const double c : {32766.0, 32767.0, 32768.0, 32769.0, 16384.0, 16383.0, 8388607.0, 8388608.0, 128.0, 127.0,
                           129.0, 255.0, 256.0, 257.0, 1073741823.0})
      for (const double share : {1.0, 2.0, 0.5})
        for (const double bias : {0.0, 0.5, 1.0, -1.0}) {
          if (c * share != std::floor(c * share) || c * share > 0x1p30) continue;
          const std::string what =
              std::to_string(c) + " by " + std::to_string(c * share) + " and " + std::to_string(bias);
          check(custom(1, 1, {c}, c * share, bias), what);
          check(custom(3, 1, {c, 0, -c}, c * share, bias), what + " of a difference");
        }
    for (const double divisor : {1.0, 2.0, 3.0, 32744.0, 32758.0, 32762.0, 32766.0, 32768.0, 65536.0})
      for (const double bias : {0.0, 1.0, -1.0}) {
        FilterSettings s = setting(Mask::Kirsch);
        s.divisor = divisor;
        s.bias = bias;
        check(s, "kirsch by " + std::to_string(divisor) + " and " + std::to_string(bias));
        s.mask = Mask::Sobel;
        check(s, "sobel by " + std::to_string(divisor) + " and " + std::to_string(bias));
        s.mask = Mask::Roberts;
        s.negative = Negative::Absolute;
        s.bias = -1.0 / 256;
        check(s, "roberts by " + std::to_string(divisor));
      }
  }
}

// Separable masks with factors of 15 bits. Their sums range from a fraction of the largest exact double to many times
// that.
void test_sums_around_those_of_doubles() {
  const FrameLayout layout = format_named("GRAY16_LE").layout(70, 5);
  Random random(5);
  for (const int side : {3, 5, 7, 9, 11, 15, 31})
    for (const bool signs : {false, true}) {
      std::vector<double> row, column, value;
      double sum = 0;
      for (int i = 0; i < side; i++)
        for (std::vector<double> *factors : {&row, &column})
          factors->push_back((32767 - static_cast<int>(random() % 9)) * (signs && random() % 2 ? -1.0 : 1.0));
      for (const double c : column)
        for (const double r : row) {
          value.push_back(c * r);
          sum += c * r;
        }
      for (const double divisor : {std::min(std::fabs(sum), 0x1p32), 3.0 * side})
        expect_as_reference(custom(side, side, value, divisor), layout,
                            std::to_string(side) + " rows of factors by " + std::to_string(divisor));
    }
}

// Integers in doubles at both ends of the exact range, and halves of either sign, at every level of the loops.
void test_integers_in_doubles() {
  constexpr int64_t kMost = int64_t{1} << 51;
  for (const VectorLoops *loops : vector_levels())
    for (int shift = 1; shift <= 40; shift++) {
      const int64_t unit = int64_t{1} << shift;
      std::vector<int64_t> number = {0, kMost, -kMost, kMost - 1, 1 - kMost};
      for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{255}, kMost / unit - 2})
        for (const int64_t sign : {-1, 1})
          for (const int64_t more : {-1, 0, 1}) {
            number.push_back(sign * n * unit + unit / 2 + more);
            number.push_back(sign * n * unit + more);
          }
      number.resize(2 * kVectorBlock, 7);
      const std::vector<double> in(number.begin(), number.end());
      std::vector<double> shifted(in.size());
      std::vector<int64_t> out(in.size()), shifted_out(in.size());
      const int n = static_cast<int>(in.size());
      loops->shift_rounded(in.data(), shift, shifted.data(), n);
      loops->convert(in.data(), out.data(), n);
      loops->convert(shifted.data(), shifted_out.data(), n);
      bool right = out == number;
      for (size_t i = 0; i < number.size(); i++) right &= shifted_out[i] == (number[i] + unit / 2) >> shift;
      expect(right, std::string("doubles of integers by ") + loops->level + " shifted by " + std::to_string(shift));
    }
}

// Weights in fixed point add up to the right sum, are symmetric, and each is within one unit of its exact value.
void test_weights() {
  for (const int side : {1, 3, 5, 9, 31, 101})
    for (const double sigma : {0.4, 1.0, 2.7, 15.0})
      for (const int bits : {8, 15, 24})
        for (const double gain : {1.0, -1.0, 0.3}) {
          std::vector<double> weight;
          double sum = 0;
          for (int i = 0; i < side; i++) {
            weight.push_back(std::exp(-0.5 * (i - side / 2) * (i - side / 2) / (sigma * sigma)));
            sum += weight.back();
          }
          for (double &w : weight) w /= sum;
          const std::vector<int32_t> fixed = fixed_point(weight, bits, gain);
          int64_t total = 0;
          bool symmetric = true, close = true;
          for (int i = 0; i < side; i++) {
            total += fixed[i];
            symmetric = symmetric && fixed[i] == fixed[side - 1 - i];
            close = close && std::fabs(fixed[i] - std::ldexp(weight[i] * gain, bits)) <= 1.5;
          }
          const std::string what = std::to_string(side) + " weights of sigma " + std::to_string(sigma) + " in " +
                                   std::to_string(bits) + " bits, gain " + std::to_string(gain);
          expect(total == std::llround(std::ldexp(gain, bits)), what + " add up to " + std::to_string(total));
          expect(symmetric && close, what + " are symmetric and close");
        }
}

// ---- Frames ---------------------------------------------------------------------------------------------------------

void test_regions_of_any_size() {
  constexpr int kLargest = std::numeric_limits<int>::max();
  for (const char *format : {"I420", "YUY2"})
    for (const bool interlaced : {false, true}) {
      FrameLayout layout = format_named(format).layout(34, 21);
      if (interlaced) layout = with_fields(layout);
      for (const Region &r : {Region{3, 5, kLargest, kLargest}, Region{-9, 4, kLargest, 3}, Region{4, -9, 3, kLargest},
                              Region{0, 0, 34, 21}, Region{33, 20, 1, 1}, Region{2, 3, 5, 1}, Region{2, 4, 5, 1}}) {
        Regions regions;
        regions.active = true;
        regions.region.assign(1, r);
        const std::string what = std::string(format) + (interlaced ? ", fields, " : ", ") + std::to_string(r.x) + "," +
                                 std::to_string(r.y) + "," + std::to_string(r.width) + "," + std::to_string(r.height);
        expect_as_reference(setting(Mask::Dilate), layout, what, regions);
        regions.invert = true;
        expect_as_reference(setting(Mask::Dilate), layout, "all but " + what, regions);
      }
    }
}

// Elements made of centred rectangles, whose widths differ by one pixel or by many.
void test_towers() {
  for (const int wide : {1, 2, 5, 15})
    for (const int narrow : {0, 1, 4})
      for (const int tall : {0, 3, 7, 14}) {
        if (narrow >= wide) continue;
        FilterSettings s = setting(Mask::Dilate);
        s.shape = Shape::Custom;
        s.coefficients = {2 * wide + 1, 31, {}};
        for (int y = -15; y <= 15; y++)
          for (int x = -wide; x <= wide; x++)
            s.coefficients.value.push_back(std::abs(x) <= (std::abs(y) <= tall ? wide : narrow));
        const std::string what = "a tower of " + std::to_string(wide) + " on " + std::to_string(narrow) + ", " +
                                 std::to_string(tall) + " high";
        for (const char *format : {"GRAY8", "GRAY16_LE"})
          expect_as_reference(s, format_named(format).layout(45, 40), what);
      }
}

// Blocks of a mosaic begin at the corner of each separate region. Regions that share a pixel have common blocks, from
// the corner of the rectangle around them. Pixels of the most subsampled plane count, and rows of both fields.
void test_blocks_of_neighbours() {
  for (const char *format : {"GRAY8", "I420", "YUY2"})
    for (const bool interlaced : {false, true})
      for (int gap = 0; gap < 6; gap++) {
        FrameLayout layout = format_named(format).layout(40, 30);
        if (interlaced) layout = with_fields(layout);
        Regions regions;
        regions.active = true;
        for (const Region &r : {Region{3, 1, 9, 6}, Region{3, 7 + gap, 9, 8}, Region{12 + gap, 1, 8, 6}})
          regions.region.push_back(r);
        const std::string what =
            std::string(format) + (interlaced ? ", fields" : "") + ", regions " + std::to_string(gap) + " apart";
        expect_as_reference(setting(Mask::Mosaic, 4), layout, what, regions);
        expect_as_reference(setting(Mask::Mosaic, 5), layout, what, regions);
      }
}

// Rows with fewer samples than vector loops take at once, and formats with unused bits.
void test_narrow_frames() {
  for (const char *format : {"GRAY8", "I420_10LE", "P010_10LE", "Y210", "RGB10A2_LE", "I420_10BE", "NV12", "Y416_LE"})
    for (const int width : {1, 2, 3, 5, 31, 33}) {
      const std::string what = std::string(format) + ", " + std::to_string(width) + " wide";
      for (const Mask mask : {Mask::Dilate, Mask::Box3, Mask::Median})
        expect_as_reference(setting(mask), format_named(format).layout(width, 5), what);
    }
}

// Compares region masks with their definition: a mask selects the pixels whose centre falls on a member.
void test_masks() {
  constexpr int kWidth = 90, kHeight = 61;
  const FrameLayout layout = format_named("GRAY8").layout(kWidth, kHeight);
  const auto backend = new_backend();
  const auto plan = make_plan(setting(Mask::Dilate), layout);
  Random random(11);
  const GuardedFrame source = new_frame(layout, Picture::Noise);
  GuardedFrame whole = source;
  backend->submit(plan, source.view(), whole.view());
  for (int turn = 0; turn < 60; turn++) {
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    RegionMask mask;
    mask.box = {below(40) - 10, below(30) - 10, 20 + below(60), 10 + below(50)};
    mask.width = 1 + below(30);
    mask.height = 1 + below(20);
    for (int i = 0; i < mask.width * mask.height; i++) mask.member.push_back(turn % 3 ? i % 24 < 13 : below(2));
    Regions regions;
    regions.active = true;
    regions.mask.push_back(mask);
    GuardedFrame got = source, want = source;
    backend->submit(plan, source.view(), got.view(), regions);
    for (int y = 0; y < kHeight; y++)
      for (int x = 0; x < kWidth; x++) {
        const int across = x - mask.box.x, down = y - mask.box.y;
        if (across < 0 || down < 0 || across >= mask.box.width || down >= mask.box.height) continue;
        const int column = (2 * across + 1) * mask.width / (2 * mask.box.width);
        const int row = (2 * down + 1) * mask.height / (2 * mask.box.height);
        const auto at = [&](const GuardedFrame &f) { return f.view().plane[0].data + y * f.view().plane[0].pitch + x; };
        if (mask.member[row * mask.width + column]) *at(want) = *at(whole);
      }
    expect(got == want, "a mask of " + std::to_string(mask.width) + "x" + std::to_string(mask.height) + " over " +
                            std::to_string(mask.box.width) + "x" + std::to_string(mask.box.height));
  }
}

// Several threads may call submit() of one backend at the same time.
void test_threads() {
  const auto backend = new_backend();
  const FrameLayout layout = format_named("I420").layout(160, 90);
  std::vector<std::thread> threads;
  std::vector<int> wrong(3);
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&, t] {
      FilterSettings s = setting(t % 2 ? Mask::Tophat : Mask::Open, 3 + 2 * t);
      s.iterations = 2;
      const auto plan = make_plan(s, layout);
      const GuardedFrame source = new_frame(layout, Picture::Noise);
      GuardedFrame want = source;
      new_backend()->submit(plan, source.view(), want.view());
      for (int i = 0; i < 150; i++) {
        GuardedFrame got = source;
        backend->submit(plan, source.view(), got.view());
        wrong[t] += got != want;
      }
    });
  for (std::thread &thread : threads) thread.join();
  for (const int n : wrong) expect(n == 0, std::to_string(n) + " frames of several threads at once are wrong");
}

int run() {
  test_largest_and_smallest();
  test_small_divisors();
  test_divisors_of_masks();
  test_sums_of_zero();
  test_windows_of_methods();
  test_sides_of_text();
  test_sums_that_just_fit();
  test_sums_around_those_of_doubles();
  test_integers_in_doubles();
  test_weights();
  test_regions_of_any_size();
  test_towers();
  test_blocks_of_neighbours();
  test_narrow_frames();
  test_masks();
  test_threads();
  return report();
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::run();
}
