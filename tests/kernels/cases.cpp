// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cases.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <sstream>

#include "plan/masks.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

// Sizes: widths near vectors and tiles, single rows and columns, frames smaller than most masks.
const std::vector<Size> kSizes = {
    {1, 1},   {1, 2},   {1, 7},    {1, 40},    {1, 67},  {2, 1},   {7, 1},   {40, 1},  {130, 1}, {2, 2},   {3, 3},
    {4, 3},   {5, 7},   {6, 5},    {7, 6},     {8, 4},   {9, 9},   {15, 16}, {16, 15}, {17, 17}, {31, 8},  {32, 7},
    {33, 5},  {63, 9},  {64, 5},   {65, 7},    {66, 5},  {67, 4},  {127, 5}, {128, 2}, {129, 3}, {130, 6}, {255, 3},
    {256, 4}, {257, 5}, {1998, 3}, {301, 131}, {3, 40},  {5, 64},  {9, 65},  {13, 33}, {16, 16}, {17, 67}, {24, 24},
    {31, 31}, {33, 31}, {34, 34},  {2, 129},   {4, 257}, {19, 13}, {12, 45}, {48, 40}, {80, 20},
};

// Cases that run once, after the others: frames with more rows or columns than a grid has blocks in a dimension, and
// frames with every pair of samples for magnitudes.
std::vector<Case> make_large_cases() {
  std::vector<Case> cases;
  const auto add = [&](Mask mask, const char *format, Size size, Content content) {
    Case c;
    c.settings.mask = mask;
    c.format = &format_named(format);
    c.size = size;
    c.content = content;
    cases.push_back(c);
  };
  for (const Size size : {Size{70000, 1}, Size{1, 70000}, Size{2, 2200000}})
    add(Mask::Gauss3, "GRAY8", size, Content::Random);
  add(Mask::Roberts, "GRAY8", {512, 512}, Content::EveryTwo);
  add(Mask::Roberts, "P010_10LE", {2048, 2048}, Content::EveryTwo);
  return cases;
}
const std::vector<Case> &large_cases() {
  static const std::vector<Case> cases = make_large_cases();
  return cases;
}

const std::vector<Placement> kPlacements = {
    {0, 0, 1, 0},                                                // rows end to end
    {1, 1, 1, 0},                                                // unaligned, and a pitch without alignment
    {0, 3, 256, 64},                                             // the alignment of CUDA and GStreamer
    {3, 5, 1, 7},       {16, 0, 16, 32}, {0, 3, 256, 64, true},  // rows from bottom to top
    {3, 5, 1, 7, true},
};

Coefficients coefficients(int width, int height, std::vector<double> value) {
  return {width, height, std::move(value)};
}

// Integers without symmetry, so that a flipped or transposed mask fails.
Coefficients integers(int width, int height, int spread) {
  Coefficients c = coefficients(width, height, {});
  for (int i = 0; i < width * height; i++) c.value.push_back(i * 7919 % (2 * spread + 1) - spread + (i == 0));
  return c;
}

// Fractions without symmetry.
Coefficients fractions(int width, int height) {
  Coefficients c = integers(width, height, 100);
  for (double &v : c.value) v = (v + 40) / 333;
  return c;
}

// A structuring element: the corners and about one pixel in `every` are members.
Coefficients members(int width, int height, unsigned every) {
  Coefficients c = coefficients(width, height, {});
  Random random(every);
  for (int i = 0; i < width * height; i++) c.value.push_back(random() % every == 0);
  c.value.front() = c.value.back() = c.value[width - 1] = 1;
  return c;
}

// The product of a row and a column.
Coefficients product(const std::vector<double> &row, const std::vector<double> &column) {
  Coefficients c = coefficients(static_cast<int>(row.size()), static_cast<int>(column.size()), {});
  for (double y : column)
    for (double x : row) c.value.push_back(y * x);
  return c;
}

// Masks for alpha=weighted: sums of 32 bits, 64 bits and more; separable and not.
void add_weighted(std::vector<FilterSettings> &list) {
  const auto add = [&](Mask mask, auto change) {
    FilterSettings s;
    s.mask = mask;
    s.alpha = Alpha::Weighted;
    change(s);
    list.push_back(s);
  };
  for (Mask m : {Mask::Box3, Mask::Gauss3, Mask::Gauss5, Mask::Gauss7, Mask::Gauss9}) add(m, [](FilterSettings &) {});
  for (int size : {5, 15, 31, 63, 127})
    for (Mask m : {Mask::Box, Mask::Gauss}) add(m, [&](FilterSettings &s) { s.size = size; });
  for (double sigma : {0.0, 0.4, 0.7, 1.0, 2.0, 4.0, 8.0})
    add(Mask::Gauss, [&](FilterSettings &s) { s.sigma = sigma; });
  add(Mask::Gauss5, [](FilterSettings &s) { s.iterations = 3; });
  add(Mask::Gauss5, [](FilterSettings &s) { s.divisor = 100, s.bias = -0.25; });
  add(Mask::Gauss5, [](FilterSettings &s) { s.divisor = -300, s.bias = 1; });
  add(Mask::Gauss5, [](FilterSettings &s) { s.divisor = -300, s.bias = 0.5, s.negative = Negative::Absolute; });
  add(Mask::Gauss3, [](FilterSettings &s) { s.divisor = 32; });
  add(Mask::Box, [](FilterSettings &s) { s.divisor = 7.3, s.bias = 0.1; });
  add(Mask::Gauss, [](FilterSettings &s) { s.sigma = 1, s.divisor = 0.7, s.bias = 0.1, s.iterations = 2; });
  add(Mask::Gauss5, [](FilterSettings &s) { s.threshold = 0.1, s.iterations = 2; });
  for (int size : {3, 9, 31}) add(Mask::Bilateral, [&](FilterSettings &s) { s.size = size, s.sigma_range = 0.3; });
  add(Mask::Bilateral, [](FilterSettings &s) { s.sigma = 2, s.iterations = 2; });
  add(Mask::Bilateral, [](FilterSettings &s) { s.size = 7, s.size_y = 3, s.shape = Shape::Ellipse; });
  const auto custom = [&](int width, int height, auto value, double divisor) {
    Coefficients c = coefficients(width, height, {});
    for (int i = 0; i < width * height; i++) c.value.push_back(value(i * 7919 % 101));
    add(Mask::Custom, [&](FilterSettings &s) { s.coefficients = c, s.divisor = divisor; });
  };
  custom(
      3, 3, [](int i) { return i % 10; }, 0);
  custom(
      5, 7, [](int i) { return i; }, 0);
  custom(
      31, 31, [](int i) { return i; }, 0);
  custom(
      13, 1, [](int i) { return i * i; }, 7);
  custom(
      1, 13, [](int i) { return i * i; }, 0);
  custom(
      3, 5, [](int i) { return 1073741823 - 10000000 * i; }, 0);
  custom(
      5, 5, [](int i) { return 0.01 + i / 333.0; }, 0);
  custom(
      31, 31, [](int i) { return 0.01 + i / 333.0; }, 2000);
  custom(
      3, 3, [](int i) { return 1e-9 * (1 + i % 3); }, 0);
  custom(
      3, 3, [](int) { return 0; }, 0);
}

// Windows that are not square: around the limits of the kernels for squares, rows, columns, and the largest.
void add_not_square(std::vector<FilterSettings> &list) {
  const auto add = [&](Mask mask, int width, int height, auto... changes) {
    FilterSettings s;
    s.mask = mask;
    s.size = width;
    s.size_y = height;
    (changes(s), ...);
    list.push_back(s);
  };
  const auto shape = [](Shape v) { return [=](FilterSettings &s) { s.shape = v; }; };
  const auto times = [](int v) { return [=](FilterSettings &s) { s.iterations = v; }; };
  const auto weighted = [](FilterSettings &s) { s.alpha = Alpha::Weighted; };
  for (const Size size : {Size{3, 1}, Size{1, 3}, Size{5, 3}, Size{3, 7}, Size{9, 1}, Size{1, 9}, Size{31, 33},
                          Size{41, 1}, Size{1, 41}, Size{127, 9}, Size{9, 129}, Size{1501, 1}, Size{1, 1501}})
    add(Mask::Box, size.width, size.height);
  add(Mask::Box, 15, 63, weighted);
  add(Mask::Box, 129, 3, weighted);
  for (const Size size : {Size{3, 5}, Size{5, 1}, Size{1, 5}, Size{7, 3}, Size{9, 15}, Size{31, 1}, Size{1, 31},
                          Size{61, 1}, Size{1, 61}, Size{63, 5}, Size{15, 127}, Size{255, 3}, Size{3, 255}}) {
    add(Mask::Dilate, size.width, size.height);
    add(Mask::Erode, size.width, size.height, shape(Shape::Ellipse));
    add(Mask::Dilate, size.width, size.height, shape(Shape::Cross), times(2));
  }
  for (Mask m : {Mask::Open, Mask::Close, Mask::Gradient, Mask::Tophat, Mask::Blackhat})
    for (const Size size : {Size{3, 5}, Size{5, 3}, Size{1, 5}, Size{15, 1}, Size{255, 129}})
      add(m, size.width, size.height);
  for (const Size size :
       {Size{3, 1}, Size{1, 3}, Size{3, 5}, Size{5, 3}, Size{9, 1}, Size{1, 25}, Size{7, 9}, Size{1, 61}, Size{13, 127},
        Size{127, 1}, Size{1, 127}, Size{127, 3}, Size{3, 127}, Size{31, 15}})
    add(Mask::Median, size.width, size.height);
  for (const Size size : {Size{1, 2}, Size{2, 1}, Size{8, 3}, Size{3, 64}, Size{255, 1}, Size{1, 255}, Size{17, 255}})
    add(Mask::Mosaic, size.width, size.height);
  // Gaussians of two sigmas; one of them is 0.
  const auto sigmas = [](double x, double y) { return [=](FilterSettings &s) { s.sigma = x, s.sigma_y = y; }; };
  const auto alpha = [](Alpha v) { return [=](FilterSettings &s) { s.alpha = v; }; };
  for (Alpha a : {Alpha::Copy, Alpha::Weighted}) {
    add(Mask::Gauss, 9, 3, alpha(a));
    add(Mask::Gauss, 0, 0, sigmas(4, 1), alpha(a));
    add(Mask::Gauss, 0, 0, sigmas(1.5, 0), alpha(a));
    add(Mask::Gauss, 0, 0, sigmas(0, 2.5), alpha(a));
    add(Mask::Gauss, 0, 0, sigmas(20, 0), alpha(a));
    add(Mask::Gauss, 0, 0, sigmas(0, 250), alpha(a));
    add(Mask::Gauss, 0, 0, sigmas(60, 24), alpha(a));
  }
  add(Mask::Gauss, 0, 0, sigmas(0, 0));
  add(Mask::Gauss, 0, 0, sigmas(kAutoSigma, 6));
  add(Mask::Gauss, 0, 0, sigmas(250, 3));
  // Row sums lose 18 bits, and factors of columns have fewer than 17.
  add(Mask::Gauss, 0, 0, sigmas(250, 0.5));
  add(Mask::Gauss, 0, 0, sigmas(30, 0), [](FilterSettings &s) { s.bias = 0.25; });
  add(Mask::Gauss, 65, 127, sigmas(30, 30));
  add(Mask::Unsharp, 0, 0, sigmas(3, 0));
  add(Mask::Unsharp, 0, 0, sigmas(0, 0));
  add(Mask::Unsharp, 0, 0, sigmas(0.8, 14));
  add(Mask::Unsharp, 25, 5);
}

std::vector<FilterSettings> make_variants() {
  std::vector<FilterSettings> list;
  const auto add = [&](Mask mask, auto... changes) {
    FilterSettings s;
    s.mask = mask;
    (changes(s), ...);
    list.push_back(s);
  };
  const auto size = [](int v) { return [=](FilterSettings &s) { s.size = v; }; };
  const auto sigma = [](double v) { return [=](FilterSettings &s) { s.sigma = v; }; };
  const auto amount = [](double v) { return [=](FilterSettings &s) { s.amount = v; }; };
  const auto divisor = [](double v) { return [=](FilterSettings &s) { s.divisor = v; }; };
  const auto bias = [](double v) { return [=](FilterSettings &s) { s.bias = v; }; };
  const auto negative = [](Negative v) { return [=](FilterSettings &s) { s.negative = v; }; };
  const auto shape = [](Shape v) { return [=](FilterSettings &s) { s.shape = v; }; };
  const auto times = [](int v) { return [=](FilterSettings &s) { s.iterations = v; }; };
  const auto coefs = [](Coefficients v) { return [=](FilterSettings &s) { s.coefficients = v; }; };
  const auto l1 = [](FilterSettings &s) { s.magnitude = Magnitude::L1; };

  add(Mask::Identity);
  for (Mask m : {Mask::Box3, Mask::Box5, Mask::Box7, Mask::Gauss3, Mask::Gauss5, Mask::Gauss7, Mask::Gauss9}) add(m);
  add(Mask::Gauss3, times(3));
  add(Mask::Gauss5, times(2));
  add(Mask::Gauss5, divisor(100), bias(-0.25));
  for (int side : {0, 1, 9, 15, 31, 33, 63, 127, 129, 257, 1501}) add(Mask::Box, size(side));
  add(Mask::Box, size(301), divisor(-50000), bias(0.75));
  add(Mask::Box, size(3), divisor(2));
  add(Mask::Box, size(5), divisor(7.3));
  add(Mask::Gauss);
  add(Mask::Gauss, size(1));
  add(Mask::Gauss, size(7), sigma(0.1));
  add(Mask::Gauss, sigma(2.5));
  add(Mask::Gauss, sigma(6));
  add(Mask::Gauss, size(127), sigma(20));
  for (double s : {11.0, 15.5, 24.0, 45.0, 100.0, 250.0}) add(Mask::Gauss, sigma(s));
  add(Mask::Gauss, size(201), sigma(250));  // nearly a box, which no smaller frame can approximate
  add(Mask::Gauss, size(1501));
  add(Mask::Gauss, sigma(12), divisor(0.7), bias(-0.1));
  // All factors of the column are 0.
  for (int side : {13, 15}) add(Mask::Gauss, size(side), divisor(131072));
  add(Mask::Gauss, sigma(1), divisor(0.7), bias(0.1));
  add(Mask::Gauss, sigma(0.8), times(3));
  add(Mask::Sharpen);
  add(Mask::Sharpen, times(2), negative(Negative::Absolute));
  add(Mask::Unsharp);
  add(Mask::Unsharp, amount(2.5), sigma(1.5));
  add(Mask::Unsharp, amount(-0.5), size(3));
  add(Mask::Unsharp, amount(1.25), size(25));
  add(Mask::Unsharp, amount(1.5), sigma(14));
  add(Mask::Unsharp, amount(0.75), sigma(60));
  add(Mask::Unsharp, amount(0.3), sigma(1), times(2));
  add(Mask::Emboss);
  add(Mask::Emboss, bias(0.5));
  for (Mask m : {Mask::Laplace, Mask::Laplace8, Mask::Log5}) {
    add(m);
    add(m, negative(Negative::Clamp), bias(0.5));
  }
  for (Mask m : {Mask::SobelX, Mask::SobelY, Mask::ScharrX, Mask::ScharrY, Mask::PrewittX, Mask::PrewittY}) {
    add(m);
    add(m, negative(Negative::Clamp), divisor(4), bias(0.5));
  }
  for (Mask m : {Mask::Sobel, Mask::Scharr, Mask::Prewitt, Mask::Roberts}) {
    add(m);
    add(m, l1);
    add(m, divisor(3), bias(0.25));
  }
  add(Mask::Sobel, bias(-0.5), negative(Negative::Absolute));
  add(Mask::Sobel, divisor(2.5));
  add(Mask::Sobel, times(2));
  add(Mask::Kirsch);
  add(Mask::Kirsch, divisor(15));
  for (Mask m : {Mask::Dilate, Mask::Erode, Mask::Open, Mask::Close, Mask::Gradient, Mask::Tophat, Mask::Blackhat}) {
    add(m);
    add(m, size(5));
    add(m, size(7), shape(Shape::Ellipse));
    add(m, size(5), shape(Shape::Cross), times(2));
  }
  for (Mask m : {Mask::Dilate, Mask::Erode}) {
    add(m, size(1));
    for (int side : {7, 9, 13, 15, 17, 31, 33, 63}) add(m, size(side));
    add(m, times(2));
    add(m, size(5), times(2));
    add(m, size(31), shape(Shape::Ellipse));
    add(m, size(127));
    for (Shape element : {Shape::Rect, Shape::Cross, Shape::Ellipse})
      for (int side : {15, 63, 129, 255})
        if (element != Shape::Rect || side > 127) add(m, size(side), shape(element));
    // Elements with half of the window's pixels as members, and with few.
    add(m, shape(Shape::Custom), coefs(members(15, 15, 2)));
    add(m, shape(Shape::Custom), coefs(members(31, 31, 2)));
    add(m, shape(Shape::Custom), coefs(members(31, 9, 5)));
    add(m, shape(Shape::Custom), coefs(members(5, 29, 7)));
    add(m, shape(Shape::Custom), coefs(coefficients(31, 5, std::vector<double>(155, 1))));
  }
  // Large squares, which CUDA filters in several passes.
  for (Mask m : {Mask::Open, Mask::Gradient, Mask::Tophat})
    for (int side : {129, 255}) add(m, size(side));
  add(Mask::Erode, size(129), times(3));
  add(Mask::Close, size(255), times(2));
  add(Mask::Close, size(129), shape(Shape::Ellipse));
  add(Mask::Blackhat, size(63), shape(Shape::Cross));
  add(Mask::Gradient, shape(Shape::Custom), coefs(members(15, 13, 3)));
  add(Mask::Dilate, shape(Shape::Custom), coefs(coefficients(3, 3, {0, 1, 1, 0, 0, 0, 1, 0, 0})));
  add(Mask::Erode, shape(Shape::Custom), coefs(coefficients(5, 1, {1, 0, 0, 0, 0})));
  add(Mask::Open, shape(Shape::Custom), coefs(coefficients(1, 7, {1, 1, 0, 0, 1, 0, 0})));
  add(Mask::Close, shape(Shape::Custom), coefs(members(9, 7, 5)));
  add(Mask::Tophat, shape(Shape::Custom), coefs(coefficients(3, 3, {0, 0, 0, 0, 1, 1, 0, 1, 0})), times(2));
  add(Mask::Blackhat, shape(Shape::Custom), coefs(coefficients(3, 5, {0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1})));
  add(Mask::Gradient, size(5), times(3));
  add(Mask::Median);
  add(Mask::Median, size(1));
  add(Mask::Median, size(5));
  for (int side : {7, 9, 11, 13, 15, 17, 31, 127}) add(Mask::Median, size(side));
  add(Mask::Median, times(2));
  for (int side : {0, 1, 2, 3, 8, 13, 17, 64, 255}) add(Mask::Mosaic, size(side));
  const auto range = [](double v) { return [=](FilterSettings &s) { s.sigma_range = v; }; };
  const auto threshold = [](double v) { return [=](FilterSettings &s) { s.threshold = v; }; };
  for (double v : {1e-9, 1 / 255.0, 10 / 255.0, 0.25, 1.0}) add(Mask::Median, threshold(v));
  for (Mask m : {Mask::Box3, Mask::Gauss7, Mask::Sobel, Mask::Kirsch, Mask::Dilate, Mask::Close, Mask::Gradient,
                 Mask::Tophat, Mask::Mosaic, Mask::Bilateral})
    add(m, threshold(20 / 255.0));
  add(Mask::Median, threshold(0.1), size(9), times(3));
  add(Mask::Open, threshold(0.1), size(5), times(2));
  add(Mask::Unsharp, threshold(3 / 255.0), sigma(1.5));
  add(Mask::Gauss, threshold(0.05), sigma(20));
  for (int side = 0; side <= 31; side += side ? 2 : 3) add(Mask::Bilateral, size(side));
  for (double r : {0.001, 0.02, 0.105, 0.3, 1.0}) add(Mask::Bilateral, range(r));
  add(Mask::Bilateral, size(31), sigma(250), range(0.05));
  add(Mask::Bilateral, size(9), sigma(0.1));
  add(Mask::Bilateral, size(7), sigma(3), range(0.2), times(3));
  for (int side : {3, 5, 7, 9, 15, 31}) add(Mask::Bilateral, size(side), shape(Shape::Ellipse), range(0.2));
  const auto size_y = [](int v) { return [=](FilterSettings &s) { s.size_y = v; }; };
  add(Mask::Bilateral, size(9), size_y(3));
  add(Mask::Bilateral, size(3), size_y(31), shape(Shape::Ellipse));
  add(Mask::Bilateral, size(31), size_y(1));
  add(Mask::Custom, coefs(coefficients(1, 1, {3})));
  add(Mask::Custom, coefs(integers(3, 3, 9)));
  add(Mask::Custom, coefs(integers(9, 1, 5)), divisor(3));
  add(Mask::Custom, coefs(integers(1, 9, 5)), divisor(3));
  add(Mask::Custom, coefs(integers(31, 1, 4)), bias(0.5));
  add(Mask::Custom, coefs(integers(1, 31, 4)), bias(0.5));
  add(Mask::Custom, coefs(integers(5, 3, 20)), divisor(-11), bias(0.5));
  add(Mask::Custom, coefs(integers(7, 7, 1000)), negative(Negative::Absolute));
  // Masks that are not separable: sizes and coefficients around the limits of the kernels for 8-bit samples.
  add(Mask::Custom, coefs(integers(5, 5, 50)));
  add(Mask::Custom, coefs(integers(7, 7, 128)), divisor(1024));
  add(Mask::Custom, coefs(integers(5, 9, 100)), divisor(-777), bias(0.3));
  add(Mask::Custom, coefs(integers(9, 7, 60)), divisor(96), negative(Negative::Absolute));
  add(Mask::Custom, coefs(integers(9, 9, 127)), divisor(8), bias(-0.2));
  add(Mask::Custom, coefs(integers(11, 11, 127)), divisor(2048));
  add(Mask::Custom, coefs(integers(13, 11, 100)), divisor(777), bias(0.2));
  add(Mask::Custom, coefs(integers(11, 3, 60)), divisor(96), negative(Negative::Absolute));
  add(Mask::Custom, coefs(integers(15, 15, 127)), divisor(4096));
  add(Mask::Custom, coefs(integers(17, 15, 20)), divisor(-300), bias(0.4));
  add(Mask::Custom, coefs(integers(3, 15, 90)), divisor(256), negative(Negative::Absolute));
  add(Mask::Custom, coefs(integers(17, 9, 9)), divisor(8));
  add(Mask::Custom, coefs(integers(19, 17, 9)), divisor(64));
  add(Mask::Custom, coefs(integers(31, 31, 3)), divisor(50));
  add(Mask::Custom, coefs(integers(31, 31, 127)), divisor(30000), bias(0.3));
  // With 16-bit samples, these are the largest sums of one digit of the coefficients.
  std::vector<double> low(31 * 31, -1024);
  low[0] = 1;
  add(Mask::Custom, coefs(coefficients(31, 31, low)), divisor(-1024 * 960));
  add(Mask::Custom, coefs(coefficients(3, 3, {2, 4, 2, -4, -8, -4, 6, 12, 6})), divisor(9));  // separable
  // Separable masks of 7x7 and 9x9: with a power of two as divisor, with negative numbers, and with more than 8 bits.
  add(Mask::Custom, coefs(product({1, 0, 3, 7, 5, 10, 6}, {11, 4, 6, 2, 3, 5, 1})), divisor(1024));
  add(Mask::Custom, coefs(product({1, 2, 3, 4, 5, 4, 7, 2, 4}, {4, 3, 2, 1, 8, 5, 6, 2, 1})), divisor(1024));
  add(Mask::Custom, coefs(product({1, -2, 3, 7, 5, 0, 2}, {-1, 4, 6, 9, 3, 2, 1})), divisor(48), bias(-0.1));
  add(Mask::Custom, coefs(product({-1, 2, -3, 4, 5, -4, 7, -2, 4}, {4, 3, -2, -1, 8, 5, -6, 2, 1})), divisor(64),
      negative(Negative::Absolute));
  add(Mask::Custom, coefs(product({127, -128, 3, 1, 5, 0, 2}, {-128, 4, 6, 127, 3, 2, 1})), divisor(5000), bias(0.5));
  add(Mask::Custom, coefs(product({1, 200, 3, 1, 5, 0, 2}, {2, 4, 6, 101, 3, 2, 1})), divisor(25228));
  add(Mask::Custom, coefs(product({90, 120, 3, 127, 5, 0, 2, 1, 1}, {2, 4, 6, 101, 3, 2, 1, 3, 5})), divisor(44000));
  // The largest coefficients allowed.
  add(Mask::Custom, coefs(coefficients(3, 3, {1073741823, -1, 7, -1073741823, 1073741823, 0, 99, 536870912, 3})),
      divisor(2147483647));
  add(Mask::Custom, coefs(coefficients(3, 1, {-715827882, 1073741822, 715827881})), divisor(1073741821), bias(0.25));
  // Equal coefficients, which use running sums: tall, wide, negative, and with their own divisors.
  const auto uniform = [](int width, int height, double v) {
    return coefficients(width, height, std::vector<double>(width * height, v));
  };
  add(Mask::Custom, coefs(uniform(31, 1, 1)));
  add(Mask::Custom, coefs(uniform(1, 31, 1)));
  add(Mask::Custom, coefs(uniform(17, 5, 2)), bias(0.3));
  add(Mask::Custom, coefs(uniform(29, 7, -1)), divisor(203), negative(Negative::Absolute));
  add(Mask::Custom, coefs(uniform(27, 31, 1)), divisor(100));
  add(Mask::Custom, coefs(coefficients(3, 3, {0.1, 0.25, 0.05, -0.3, 1.7, 0.111, 0.2, -0.4, 0.15})));
  add(Mask::Custom, coefs(fractions(7, 5)), negative(Negative::Absolute));
  add(Mask::Custom, coefs(fractions(13, 21)), bias(0.25));
  // Fractions that need more than 16 bits beside a large one, for every depth.
  const auto with_middle = [](Coefficients c, double v) {
    c.value[c.value.size() / 2] = v;
    return c;
  };
  add(Mask::Custom, coefs(fractions(31, 31)), divisor(40));
  add(Mask::Custom, coefs(with_middle(fractions(9, 9), 25.3)), divisor(30));
  add(Mask::Custom, coefs(with_middle(fractions(15, 11), -7.7)), negative(Negative::Absolute), bias(-0.1));
  add(Mask::Custom, coefs(coefficients(5, 1, {0.3, -0.1, 0.7, 0.05, 0.2})), bias(-0.05), times(2));
  add(Mask::Custom, coefs(coefficients(3, 3, {0, 0, 0, 0, 1, 0, 0, 0, 0})), bias(1.0 / 3));
  add_weighted(list);
  add_not_square(list);
  // Masks that are not in the list yet.
  const auto is_listed = [&](Mask mask, Alpha alpha) {
    return std::any_of(list.begin(), list.end(),
                       [&](const FilterSettings &s) { return s.mask == mask && s.alpha == alpha; });
  };
  for (const Named<Mask> &mask : kMaskNames) {
    if (!is_listed(mask.value, Alpha::Copy)) add(mask.value);
    if (!is_listed(mask.value, Alpha::Weighted) && reference::is_mean(mask.value))
      add(mask.value, [](FilterSettings &s) { s.alpha = Alpha::Weighted; });
  }
  return list;
}

// Whether alpha=weighted supports the mask within a code of the exact result. Gaussians that reach too far are not:
// their outermost weights are too close to 0.
bool takes_weights(const FilterSettings &s) {
  switch (s.mask) {
    case Mask::Gauss: {
      const auto takes = [](int size, double sigma) {
        return sigma <= 0 || std::max(size / 2.0, std::ceil(3 * sigma)) <= 5 * sigma;
      };
      return takes(s.size, s.sigma) && takes(s.size_y ? s.size_y : s.size, s.sigma_y < 0 ? s.sigma : s.sigma_y);
    }
    case Mask::Custom:
      return std::all_of(s.coefficients.value.begin(), s.coefficients.value.end(), [](double v) { return v >= 0; });
    default:
      return reference::is_mean(s.mask);
  }
}

Size window(const FilterSettings &s) {
  if (s.mask == Mask::Custom || s.shape == Shape::Custom) return {s.coefficients.width, s.coefficients.height};
  if (s.mask == Mask::Mosaic || s.mask == Mask::Fill) return {1, 1};  // the reference reads each pixel once
  const auto side_of = [](int size, double sigma) {
    return size ? size : sigma >= 0 ? 2 * static_cast<int>(3 * sigma + 1) + 1 : 9;
  };
  const int width = side_of(s.size, s.sigma);
  const int height = side_of(s.size_y ? s.size_y : s.size, s.sigma_y < 0 ? s.sigma : s.sigma_y);
  // The reference sums large boxes and Gaussians along rows, then along columns, unless alpha weights them.
  const bool along_lines =
      (s.mask == Mask::Box || s.mask == Mask::Gauss || s.mask == Mask::Unsharp) && s.alpha != Alpha::Weighted;
  if (along_lines && width * height > 1000) return {width + height, 1};
  return {width, height};
}

template <typename T>
T pick(Random &random, std::initializer_list<T> list) {
  return list.begin()[random() % list.size()];
}

double uniform(Random &random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) / 0x1p53);
}

// Draws a mask over a rectangle of about the size of the frame.
RegionMask draw_mask(Random &random, const Region &box) {
  RegionMask mask;
  mask.box = {box.x, box.y, box.width, box.height};
  mask.width = static_cast<int>(1 + random() % 40);
  mask.height = static_cast<int>(1 + random() % 30);
  const unsigned run = 1 + random() % 12;  // length of runs of equal samples
  uint8_t value = 0;
  for (int i = 0; i < mask.width * mask.height; i++) {
    if (random() % run == 0) value = static_cast<uint8_t>(random() % 3);
    mask.member.push_back(value);
  }
  return mask;
}

// Draws runs of pixels in rows from `box.y` on. Some runs are outside the frame.
std::shared_ptr<const RegionPixels> draw_pixels(Random &random, const Region &box) {
  auto pixels = std::make_shared<RegionPixels>();
  pixels->box = {box.x, box.y, box.width, box.height};
  pixels->top = box.y;
  for (int y = 0; y < box.height; y++) {
    for (int x = static_cast<int>(random() % 9); x < box.width;) {
      const int end = std::min(x + 1 + static_cast<int>(random() % 9), box.width);
      pixels->run.push_back({box.x + x, box.x + end});
      x = end + 1 + static_cast<int>(random() % 9);
    }
    pixels->first.push_back(pixels->run.size());
  }
  return pixels;
}

// Draws no regions for most cases. Other cases have rectangles, which may overlap and reach out of the frame. Some have
// many small rectangles, rotated ones, masks or, if the frame is not interlaced, the rows of one field. Some frames are
// every second column of the frame that regions count in.
Regions draw_regions(Random &random, Size frame, bool interlaced) {
  Regions regions;
  if (random() % 5) return regions;
  regions.active = true;
  regions.ellipse = random() % 2;
  regions.invert = random() % 2;
  const bool crowd = random() % 8 == 0;
  const int count = static_cast<int>(crowd ? 60 + random() % 100 : random() % 4);
  const int w = frame.width, h = frame.height, most_w = crowd ? w / 8 + 1 : w + 2, most_h = crowd ? h / 8 + 1 : h + 2;
  for (int i = 0; i < count; i++) {
    const auto within = [&](int from, int to) { return from + static_cast<int>(random() % (to - from + 1)); };
    regions.region.push_back({within(-w / 2, w), within(-h / 2, h), within(1, most_w), within(1, most_h)});
    // Angles are drawn so that no corner is exactly on the edge of a pixel.
    if (random() % 4 == 0) regions.region.back().rotation = uniform(random, -3.1, 3.1);
    if (random() % (crowd ? 50 : 6) == 0) regions.mask.push_back(draw_mask(random, regions.region.back()));
    if (random() % (crowd ? 50 : 6) == 0) regions.pixels.push_back(draw_pixels(random, regions.region.back()));
  }
  if (!regions.invert && random() % 2)
    regions.feather = static_cast<int>(random() % (random() % 4 ? 256 * 12 : 256 * 80));
  if (!interlaced && random() % 5 == 0) {
    regions.row_step = 2;
    regions.first_row = static_cast<int>(random() % 2);
  }
  if (random() % 5 == 0) {
    regions.column_step = 2;
    regions.first_column = static_cast<int>(random() % 2);
  }
  return regions;
}

template <typename Enum, size_t n>
std::vector<Enum> values_of(const Named<Enum> (&names)[n]) {
  std::vector<Enum> values;
  for (const Named<Enum> &name : names) values.push_back(name.value);
  return values;
}

}  // namespace

const std::vector<Placement> &placements() {
  return kPlacements;
}

const std::vector<Border> &borders() {
  static const std::vector<Border> list = values_of(kBorderNames);
  return list;
}

const std::vector<Method> &methods() {
  static const std::vector<Method> list = values_of(kMethodNames);
  return list;
}

const char *content_name(Content content) {
  static const char *const names[] = {"random",  "near-zero", "near-full", "checkerboard",
                                      "impulse", "extremes",  "every-two"};
  return names[static_cast<int>(content)];
}

std::string describe(const FilterSettings &s) {
  const FilterSettings d;
  std::ostringstream out;
  out.precision(17);
  out << "mask=" << mask_nick(s.mask) << " border=" << border_nick(s.border);
  if (s.size != d.size) out << " size=" << s.size;
  if (s.size_y != d.size_y) out << " size-y=" << s.size_y;
  if (s.sigma != d.sigma) out << " sigma=" << s.sigma;
  if (s.sigma_y != d.sigma_y) out << " sigma-y=" << s.sigma_y;
  if (s.sigma_range != d.sigma_range) out << " sigma-range=" << s.sigma_range;
  if (s.amount != d.amount) out << " amount=" << s.amount;
  if (!s.coefficients.value.empty()) {
    out << " coefficients=\"";
    for (int i = 0; i < s.coefficients.width * s.coefficients.height; i++)
      out << (i == 0 ? "" : i % s.coefficients.width ? " " : "; ") << s.coefficients.value[i];
    out << "\"";
  }
  if (s.shape != d.shape) out << " shape=" << nick_of(kShapeNames, s.shape);
  if (s.divisor != d.divisor) out << " divisor=" << s.divisor;
  if (s.bias != d.bias) out << " bias=" << s.bias;
  if (s.negative != d.negative) out << " negative=" << nick_of(kNegativeNames, s.negative);
  if (s.magnitude != d.magnitude) out << " magnitude=" << nick_of(kMagnitudeNames, s.magnitude);
  if (s.threshold != d.threshold) out << " threshold=" << s.threshold;
  if (s.iterations != d.iterations) out << " iterations=" << s.iterations;
  if (s.luma != d.luma) out << " luma=" << nick_of(kLumaNames, s.luma);
  if (s.chroma != d.chroma) out << " chroma=" << nick_of(kChromaNames, s.chroma);
  if (s.alpha != d.alpha) out << " alpha=" << nick_of(kAlphaNames, s.alpha);
  return out.str();
}

std::string describe(const Case &c) {
  std::ostringstream out;
  out << "case=" << c.number << " " << describe(c.settings) << " format=" << c.format->name << " size=" << c.size.width
      << "x" << c.size.height << (c.interlaced ? " interlaced" : "");
  if (c.regions.active) {
    out << (c.regions.invert ? " outside" : " within") << (c.regions.ellipse ? " ellipses \"" : " rectangles \"");
    for (const Region &r : c.regions.region) {
      out << r.x << "," << r.y << "," << r.width << "," << r.height;
      if (r.rotation != 0) out << " turned " << r.rotation;
      out << ";";
    }
    out << "\"";
    for (const RegionMask &m : c.regions.mask)
      out << " and a mask of " << m.width << "x" << m.height << " over " << m.box.x << "," << m.box.y << ","
          << m.box.width << "," << m.box.height;
    for (const auto &p : c.regions.pixels)
      out << " and " << p->run.size() << " runs within " << p->box.x << "," << p->box.y << "," << p->box.width << ","
          << p->box.height;
    if (c.regions.feather) out << " feather " << c.regions.feather / 256.0;
    if (c.regions.row_step > 1) out << " field " << c.regions.first_row;
    if (c.regions.column_step > 1) out << " columns from " << c.regions.first_column;
    if (c.in_place) out << " in place";
  }
  out << " content=" << content_name(c.content) << " placement=" << c.source_placement << "," << c.target_placement;
  return out.str();
}

Random random_for(uint64_t seed, uint64_t number) {
  std::seed_seq sequence{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(number),
                         static_cast<uint32_t>(number >> 32)};
  return Random(sequence);
}

Cases::Cases(Kind kind, uint64_t seed, bool small, uint64_t count_or_rounds)
    : kind_(kind),
      seed_(seed),
      rounds_(count_or_rounds),
      count_(count_or_rounds),
      small_(small),
      variants_(make_variants()),
      sizes_(kSizes) {
  if (small) {
    sizes_.erase(std::remove_if(sizes_.begin(), sizes_.end(), [](Size s) { return s.width * s.height > 320; }),
                 sizes_.end());
  }
  const size_t others = formats().size() * kContents * kPlacements.size();
  while (std::gcd(sizes_.size(), others) != 1) sizes_.pop_back();
  if (kind == Kind::Thinned) count_ = variants_.size() * borders().size() * rounds_;
  if (kind == Kind::Whole) count_ = variants_.size() * borders().size() * formats().size() * sizes_.size();
}

std::string Cases::rule() const {
  std::ostringstream out;
  switch (kind_) {
    case Kind::Random:
      out << count_ << " cases, drawn at random";
      break;
    case Kind::Whole:
      out << count_ << " cases: " << variants_.size() << " masks and variants x " << borders().size() << " borders x "
          << formats().size() << " formats x " << sizes_.size() << " sizes; case n takes content n mod " << kContents
          << ", placement n mod " << kPlacements.size();
      break;
    case Kind::Thinned:
      out << count_ << " cases: " << variants_.size() << " masks and variants x " << borders().size() << " borders x "
          << rounds_ << " rounds; case n takes format n mod " << formats().size() << ", size n mod " << sizes_.size()
          << ", content n mod " << kContents << ", placement n mod " << kPlacements.size();
      if (!small_) out << "; and " << large_cases().size() << " large frames";
      break;
  }
  out << "; chroma, alpha, interlacing, regions and border colour drawn from seed " << seed_ << " and n";
  return out.str();
}

uint64_t Cases::count() const {
  return count_ + (kind_ == Kind::Thinned && !small_ ? large_cases().size() : 0);
}

Case Cases::operator[](uint64_t number) const {
  if (number >= count_) {
    Case c = large_cases()[number - count_];
    c.number = number;
    return c;
  }
  Case c = kind_ == Kind::Random ? at_random(number) : in_order(number);
  c.number = number;
  c.target_placement =
      (c.source_placement + static_cast<int>(number / kPlacements.size())) % static_cast<int>(kPlacements.size());
  limit_work(c);
  Random random = random_for(seed_ ^ 0x7e9, number);
  c.regions = draw_regions(random, c.size, c.interlaced);
  c.in_place = c.regions.active && random() % 2;
  return c;
}

Case Cases::in_order(uint64_t number) const {
  uint64_t rest = number;
  const auto digit = [&](size_t base) {
    const size_t d = rest % base;
    rest /= base;
    return d;
  };
  Case c;
  size_t format = number % formats().size(), size = number % sizes_.size();
  if (kind_ == Kind::Whole) {
    format = digit(formats().size());
    size = digit(sizes_.size());
  } else {
    digit(rounds_);
  }
  const Border border = borders()[digit(borders().size())];
  c.settings = variants_[digit(variants_.size())];
  c.settings.border = border;
  c.format = &formats()[format];
  c.size = sizes_[size];
  c.content = static_cast<Content>(number % kContents);
  c.source_placement = static_cast<int>(number % kPlacements.size());

  Random random = random_for(seed_, number);
  c.settings.chroma = pick(random, {Chroma::Auto, Chroma::Filter, Chroma::Filter, Chroma::Copy, Chroma::Neutral});
  const Alpha alpha = pick(random, {Alpha::Copy, Alpha::Filter, Alpha::Weighted});
  if (c.settings.alpha != Alpha::Weighted)
    c.settings.alpha = alpha == Alpha::Weighted && !takes_weights(c.settings) ? Alpha::Filter : alpha;
  c.interlaced = random() % 4 == 0;
  if (random() % 6 == 0) c.settings.luma = Luma::Copy;
  return c;
}

Case Cases::at_random(uint64_t number) const {
  Random random = random_for(seed_, number);
  Case c;
  FilterSettings &s = c.settings;
  s.mask = static_cast<Mask>(random() % std::size(kMaskNames));
  s.border = borders()[random() % borders().size()];
  s.chroma = pick(random, {Chroma::Auto, Chroma::Filter, Chroma::Copy, Chroma::Neutral});
  const Alpha alpha = pick(random, {Alpha::Copy, Alpha::Filter, Alpha::Weighted, Alpha::Weighted});
  s.negative = pick(random, {Negative::Auto, Negative::Auto, Negative::Clamp, Negative::Absolute});
  s.magnitude = pick(random, {Magnitude::L2, Magnitude::L1});
  s.iterations = pick(random, {1, 1, 1, 2, 3});
  s.bias = pick(random, {0.0, 0.0, 0.5, static_cast<int>(random() % 513 - 256) / 256.0, uniform(random, -1, 1)});
  if (random() % 3 == 0) s.divisor = pick(random, {1.0, 2.0, 7.0, 16.0, -3.0, 1000.0, uniform(random, 0.2, 20)});
  s.size = pick(random, {0, 1, 3, 5, 7});
  if (random() % 4 == 0) s.size = pick(random, {9, 11, 15, 31, 63});
  if (mask_kind(s.mask) == MaskKind::Morphology && random() % 16 == 0)
    s.size = 1 + 2 * static_cast<int>(random() % 128);
  if (random() % 2) s.sigma = random() % 8 ? uniform(random, 0.05, random() % 4 ? 2 : 9) : 0;
  if (random() % 4 == 0) s.size_y = pick(random, {1, 3, 5, 7, 9, 15, 31, 63});
  if (random() % 4 == 0) s.sigma_y = random() % 4 ? uniform(random, 0.05, random() % 4 ? 2 : 9) : 0;
  if (s.mask == Mask::Mosaic) {
    const auto side = [&] { return static_cast<int>(random() % (random() % 4 ? 24 : 256)); };
    s.size = side();
    if (s.size_y) s.size_y = side();
  }
  if (s.mask == Mask::Bilateral) {
    s.size = pick(random, {0, 3, 5, 7, 9, 15, 3 + 2 * static_cast<int>(random() % 15)});
    if (s.size_y) s.size_y = pick(random, {1, 3, 5, 7, 9, 15, 31});
    s.shape = pick(random, {Shape::Rect, Shape::Rect, Shape::Ellipse});
    s.sigma_y = kSigmaYAsX;
    s.sigma_range = pick(random, {0.1, 0.02, uniform(random, 0.001, 1)});
  } else if (s.mask != Mask::Gauss && s.mask != Mask::Unsharp) {
    s.sigma = kAutoSigma;
    s.sigma_y = kSigmaYAsX;
  }
  if (random() % 4 == 0)
    s.threshold = pick(random, {1e-9, 1 / 1023.0, 10 / 255.0, 0.1, 0.5, 1.0, uniform(random, 0, 1)});
  if (s.mask == Mask::Unsharp) {
    s.amount = pick(random, {1.0, 0.5, uniform(random, -2, 6)});
    s.divisor = 0;
  }
  if (s.mask >= Mask::Dilate && s.mask <= Mask::Blackhat)
    s.shape = pick(random, {Shape::Rect, Shape::Rect, Shape::Cross, Shape::Ellipse, Shape::Custom});

  Coefficients &k = s.coefficients;
  k.width = 1 + 2 * static_cast<int>(random() % (random() % 6 ? 4 : 16));
  k.height = 1 + 2 * static_cast<int>(random() % (random() % 6 ? 4 : 16));
  const bool real = s.mask == Mask::Custom && random() % 3 == 0, sparse = random() % 3 == 0;
  const double spread = pick(random, {1, 9, 1000});
  std::vector<double> row, column;
  const bool separable = !real && random() % 3 == 0;
  for (int i = 0; i < k.width; i++) row.push_back(std::floor(uniform(random, -9, 10)));
  for (int j = 0; j < k.height; j++) column.push_back(std::floor(uniform(random, -9, 10)));
  for (int i = 0; i < k.width * k.height; i++) {
    double v = real ? uniform(random, -1, 1.5) : std::floor(uniform(random, -spread, spread + 1));
    if (separable) v = row[i % k.width] * column[i / k.width];
    k.value.push_back(sparse && random() % 2 ? 0 : v);
  }
  if (s.mask != Mask::Custom) {
    if (std::all_of(k.value.begin(), k.value.end(), [](double v) { return v == 0; })) k.value[0] = 1;
    if (s.shape != Shape::Custom) k = {};
  }

  if (s.mask == Mask::Custom && alpha == Alpha::Weighted)
    for (double &v : k.value) v = std::fabs(v);
  s.alpha = alpha == Alpha::Weighted && !takes_weights(s) ? Alpha::Filter : alpha;

  c.format = &formats()[random() % formats().size()];
  c.size = {1 + static_cast<int>(random() % (random() % 8 ? 70 : 700)), 1 + static_cast<int>(random() % 40)};
  if (small_) c.size = {1 + static_cast<int>(random() % 40), 1 + static_cast<int>(random() % 12)};
  c.interlaced = random() % 4 == 0;
  if (random() % 6 == 0) c.settings.luma = Luma::Copy;
  c.content = static_cast<Content>(random() % kContents);
  c.source_placement = static_cast<int>(random() % kPlacements.size());
  return c;
}

void Cases::limit_work(Case &c) const {
  // Few cases have large windows with alpha=weighted. With a lower limit they would be frames of single pixels.
  const double limit = small_ ? 3e5 : c.settings.alpha == Alpha::Weighted ? 2e7 : 4e6;
  const Size w = window(c.settings);
  const double taps = 1.0 * w.width * w.height * c.settings.iterations;
  const auto too_much = [&] { return c.size.width * c.size.height * taps > limit; };
  for (size_t i = c.number; too_much() && i < c.number + sizes_.size(); i++) c.size = sizes_[i % sizes_.size()];
  if (too_much()) c.size = sizes_.front();
}

}  // namespace cudaconv::test
