// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cases.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>

#include "layouts.h"
#include "picture.h"

namespace cudaconv::verify {

namespace {

constexpr int kRoundsExact = 5;  // frames for each variant and border
constexpr int kRoundsNear = 2;   // frames if results are not exact

struct Size {
  int width, height;
};

// Sizes: single pixels, rows and columns; sides around 16, 32 and 64, where vectors and tiles end; several tiles of
// rows and columns. The numbers of sizes and of borders have no common factor, so that any size meets any border.
constexpr Size kSizes[] = {
    {64, 48},  {1, 1},   {33, 31},  {40, 1},   {16, 16},  {5, 7},    {129, 19}, {1, 40},  {48, 40}, {37, 23},
    {2, 2},    {65, 33}, {9, 5},    {96, 24},  {17, 17},  {131, 1},  {32, 32},  {3, 3},   {63, 9},  {160, 12},
    {1, 67},   {31, 31}, {80, 20},  {4, 3},    {66, 21},  {500, 11}, {8, 8},    {34, 34}, {7, 1},   {19, 13},
    {128, 16}, {13, 33}, {64, 33},  {2, 1},    {48, 47},  {257, 9},  {15, 16},  {17, 67}, {1, 9},   {127, 17},
    {3, 40},   {64, 64}, {499, 13}, {48, 130}, {272, 40}, {24, 257}, {200, 70},
};
constexpr size_t kSizeCount = sizeof kSizes / sizeof kSizes[0];
static_assert(std::gcd(kSizeCount, std::size(kBorderNames)) == 1);

// A third of all vectors have one of these formats.
const std::vector<std::string> kCommonFormats = {"NV12",  "I420",      "RGBA",      "RGB",
                                                 "GRAY8", "P010_10LE", "GRAY16_LE", "YUY2"};

// Settings whose results are exact.
constexpr const char *kExact[] = {
    "mask=identity",
    "mask=box3",
    "mask=box5",
    "mask=box7",
    "mask=gauss3",
    "mask=gauss5",
    "mask=gauss7",
    "mask=gauss9",
    "mask=gauss3 iterations=3",
    "mask=gauss5 iterations=2",
    "mask=gauss5 divisor=100 bias=-0.25",
    "mask=gauss5 divisor=-300 bias=0.5 negative=absolute",
    "mask=box",
    "mask=box size=1",
    "mask=box size=9",
    "mask=box size=15",
    "mask=box size=31",
    "mask=box size=33",
    "mask=box size=63",
    "mask=box size=127",
    "mask=box size=129",
    "mask=box size=257",
    "mask=box size=1501",
    "mask=box size=301 divisor=-50000 bias=0.75",
    "mask=box size=3 divisor=2",
    "mask=sharpen",
    "mask=sharpen iterations=2 negative=absolute",
    "mask=emboss",
    "mask=emboss bias=0.5",
    "mask=laplace",
    "mask=laplace bias=0.5 negative=clamp",
    "mask=laplace8",
    "mask=laplace8 bias=0.5 negative=clamp",
    "mask=log5",
    "mask=log5 bias=0.5 negative=clamp",
    "mask=sobel-x",
    "mask=sobel-y",
    "mask=scharr-x",
    "mask=scharr-y",
    "mask=prewitt-x",
    "mask=prewitt-y",
    "mask=sobel-x divisor=4 bias=0.5 negative=clamp",
    "mask=sobel-y divisor=4 bias=0.5 negative=clamp",
    "mask=scharr-x divisor=16 bias=0.5 negative=clamp",
    "mask=prewitt-y divisor=3 bias=0.5 negative=clamp",
    "mask=sobel",
    "mask=scharr",
    "mask=prewitt",
    "mask=roberts",
    "mask=sobel magnitude=l1",
    "mask=scharr magnitude=l1 divisor=8",
    "mask=prewitt magnitude=l1",
    "mask=roberts magnitude=l1",
    "mask=sobel divisor=4",
    "mask=scharr divisor=16",
    "mask=prewitt divisor=3 bias=0.25",
    "mask=roberts divisor=2 bias=-0.25",
    "mask=sobel bias=-0.5 negative=absolute",
    "mask=sobel iterations=2",
    "mask=kirsch",
    "mask=kirsch divisor=15",
    "mask=dilate",
    "mask=erode",
    "mask=open",
    "mask=close",
    "mask=gradient",
    "mask=tophat",
    "mask=blackhat",
    "mask=dilate size=5",
    "mask=erode size=5",
    "mask=open size=5",
    "mask=close size=5",
    "mask=gradient size=5",
    "mask=tophat size=5",
    "mask=blackhat size=5",
    "mask=open size=7 shape=ellipse",
    "mask=close size=9 shape=cross",
    "mask=gradient size=7 shape=ellipse",
    "mask=tophat size=5 shape=cross iterations=2",
    "mask=blackhat size=5 shape=ellipse iterations=2",
    "mask=gradient size=3 iterations=3",
    "mask=open iterations=2",
    "mask=dilate size=1",
    "mask=erode size=7",
    "mask=dilate size=9",
    "mask=erode size=13",
    "mask=dilate size=15",
    "mask=erode size=17",
    "mask=dilate size=31",
    "mask=erode size=33",
    "mask=dilate size=63",
    "mask=erode size=127",
    "mask=dilate size=129",
    "mask=erode size=255",
    "mask=dilate iterations=2",
    "mask=erode size=5 iterations=2",
    "mask=dilate size=7 shape=ellipse",
    "mask=erode size=5 shape=ellipse",
    "mask=dilate size=31 shape=ellipse",
    "mask=erode size=63 shape=ellipse",
    "mask=dilate size=255 shape=ellipse",
    "mask=erode size=15 shape=cross",
    "mask=dilate size=129 shape=cross",
    "mask=erode size=255 shape=cross",
    "mask=close size=129 shape=ellipse",
    "mask=blackhat size=63 shape=cross",
    "mask=dilate shape=custom coefficients=\"0 1 1; 0 0 0; 1 0 0\"",
    "mask=erode shape=custom coefficients=\"1 0 0 0 0\"",
    "mask=open shape=custom coefficients=\"1; 1; 0; 0; 1; 0; 0\"",
    "mask=median",
    "mask=median size=1",
    "mask=median size=5",
    "mask=median size=7",
    "mask=median size=9",
    "mask=median size=11",
    "mask=median size=13",
    "mask=median size=21",
    "mask=median size=31",
    "mask=median size=63",
    "mask=median size=127",
    "mask=median iterations=2",
    "mask=mosaic",
    "mask=mosaic size=1",
    "mask=mosaic size=2",
    "mask=mosaic size=3",
    "mask=mosaic size=8",
    "mask=mosaic size=13",
    "mask=mosaic size=17",
    "mask=mosaic size=64",
    "mask=mosaic size=255",
    "mask=box3 alpha=weighted",
    "mask=box5 alpha=weighted",
    "mask=box7 alpha=weighted",
    "mask=box size=15 alpha=weighted",
    "mask=box size=31 alpha=weighted",
    "mask=gauss3 alpha=weighted",
    "mask=gauss5 alpha=weighted",
    "mask=gauss7 alpha=weighted",
    "mask=gauss9 alpha=weighted",
    "mask=gauss5 alpha=weighted iterations=2",
    "mask=gauss5 alpha=weighted divisor=100 bias=-0.25",
    "mask=gauss5 alpha=weighted divisor=-300 bias=0.5 negative=absolute",
    "mask=custom alpha=weighted coefficients=\"0 0 0; 0 0 0; 0 0 0\"",
    "mask=custom alpha=weighted coefficients=\"1 0 7; 3 9 2; 5 1 8\"",
    "mask=custom alpha=weighted coefficients=\"1 4 9 16 25 36 49\" divisor=7",
    "mask=custom alpha=weighted coefficients=\"1073741823 1 500000000; 3 9 2; 5 1 8\"",
    "mask=bilateral",
    "mask=bilateral size=3",
    "mask=bilateral size=9 sigma-range=0.3",
    "mask=bilateral size=15 sigma=4 sigma-range=1",
    "mask=bilateral size=31",
    "mask=bilateral size=7 sigma-range=0.02 iterations=2",
    "mask=bilateral alpha=weighted",
    "mask=bilateral size=9 sigma-range=0.4 alpha=weighted",
    "mask=custom coefficients=\"3\"",
    "mask=custom coefficients=\"0\" bias=0.5",
    "mask=custom coefficients=\"2 4 2; -4 -8 -4; 6 12 6\" divisor=9",
    "mask=custom coefficients=\"1073741823 -1 7; -1073741823 1073741823 0; 99 536870912 3\" divisor=2147483647",
    "mask=custom coefficients=\"-715827882 1073741822 715827881\" divisor=1073741821 bias=0.25",
};

// Settings whose results may be one code off the exact value.
constexpr const char *kNear[] = {
    "mask=gauss",
    "mask=gauss size=1",
    "mask=gauss size=7 sigma=0.1",
    "mask=gauss sigma=0.8",
    "mask=gauss sigma=1 divisor=0.7 bias=0.1",
    "mask=gauss sigma=2.5",
    "mask=gauss size=31",
    "mask=gauss sigma=6",
    "mask=gauss size=127 sigma=20",
    "mask=gauss sigma=11",
    "mask=gauss sigma=15.5",
    "mask=gauss sigma=24",
    "mask=gauss sigma=45",
    "mask=gauss sigma=100",
    "mask=gauss sigma=250",
    "mask=gauss size=201 sigma=250",
    "mask=gauss size=1501",
    "mask=gauss sigma=12 divisor=0.7 bias=-0.1",
    "mask=gauss size=5 alpha=weighted",
    "mask=gauss sigma=1 alpha=weighted",
    "mask=gauss sigma=4 alpha=weighted",
    "mask=gauss size=31 alpha=weighted",
    "mask=unsharp",
    "mask=unsharp amount=2.5 sigma=1.5",
    "mask=unsharp amount=-0.5 size=3",
    "mask=unsharp amount=1.25 size=25",
    "mask=unsharp amount=1.5 sigma=14",
    "mask=unsharp amount=0.75 sigma=60",
    "mask=sobel divisor=2.5",
    "mask=box size=5 divisor=7.3",
    "mask=box size=5 divisor=7.3 bias=0.1 alpha=weighted",
    "mask=custom coefficients=\"0.1 0.25 0.05; -0.3 1.7 0.111; 0.2 -0.4 0.15\"",
    "mask=custom coefficients=\"0.3 -0.1 0.7 0.05 0.2\" bias=-0.05",
    "mask=custom coefficients=\"0 0 0; 0 1 0; 0 0 0\" bias=0.333",
    "mask=custom coefficients=\"0.5 0.1 0.25; 0.75 1.5 0.3; 0.2 0.4 0.6\" alpha=weighted",
};

Coefficients coefficients(int width, int height) {
  Coefficients c;
  c.width = width;
  c.height = height;
  return c;
}

// A mask of integers without symmetry, so that a flipped or transposed mask fails.
FilterSettings integers(int width, int height, int spread, double divisor, double bias = 0,
                        Negative negative = Negative::Auto) {
  FilterSettings s;
  s.mask = Mask::Custom;
  s.coefficients = coefficients(width, height);
  for (int i = 0; i < width * height; i++)
    s.coefficients.value.push_back(i * 7919 % (2 * spread + 1) - spread + (i == 0));
  s.divisor = divisor;
  s.bias = bias;
  s.negative = negative;
  return s;
}

FilterSettings uniform(int width, int height, double value, double divisor) {
  FilterSettings s;
  s.mask = Mask::Custom;
  s.coefficients = coefficients(width, height);
  s.coefficients.value.assign(static_cast<size_t>(width) * height, value);
  s.divisor = divisor;
  return s;
}

// The product of a row and a column.
FilterSettings product(const std::vector<double> &row, const std::vector<double> &column, double divisor) {
  FilterSettings s;
  s.mask = Mask::Custom;
  s.coefficients = coefficients(static_cast<int>(row.size()), static_cast<int>(column.size()));
  for (double y : column)
    for (double x : row) s.coefficients.value.push_back(y * x);
  s.divisor = divisor;
  return s;
}

// A structuring element: the corners and about one pixel in `every` are members.
FilterSettings element(Mask mask, int width, int height, unsigned every) {
  FilterSettings s;
  s.mask = mask;
  s.shape = Shape::Custom;
  s.coefficients = coefficients(width, height);
  Random random(every);
  std::vector<double> &member = s.coefficients.value;
  for (int i = 0; i < width * height; i++) member.push_back(random() % every == 0);
  member.front() = member.back() = member[width - 1] = 1;
  return s;
}

void add_custom(std::vector<FilterSettings> &list) {
  for (const int side : {3, 5, 7, 9, 11, 13, 15, 17, 21, 31}) list.push_back(integers(side, side, 9, 2 * side * side));
  list.push_back(integers(3, 3, 9, 0));
  list.push_back(integers(9, 1, 5, 3));
  list.push_back(integers(1, 9, 5, 3));
  list.push_back(integers(31, 1, 4, 9, 0.5));
  list.push_back(integers(1, 31, 4, 9, 0.5));
  list.push_back(integers(5, 3, 20, -11, 0.5));
  list.push_back(integers(7, 7, 1000, 0, 0, Negative::Absolute));
  list.push_back(integers(5, 9, 100, -777, 0.25));
  list.push_back(integers(9, 7, 60, 96, 0, Negative::Absolute));
  list.push_back(integers(9, 9, 127, 8, -0.25));
  list.push_back(integers(13, 11, 100, 777, 0.25));
  list.push_back(integers(17, 15, 20, -300, 0.5));
  list.push_back(integers(3, 15, 90, 256, 0, Negative::Absolute));
  list.push_back(uniform(31, 1, 1, 0));
  list.push_back(uniform(1, 31, 1, 0));
  list.push_back(uniform(17, 5, 2, 100));
  list.push_back(uniform(27, 31, 1, 500));
  list.push_back(product({1, 0, 3, 7, 5, 10, 6}, {11, 4, 6, 2, 3, 5, 1}, 1024));
  list.push_back(product({-1, 2, -3, 4, 5, -4, 7, -2, 4}, {4, 3, -2, -1, 8, 5, -6, 2, 1}, 64));
  list.push_back(product({1, 200, 3, 1, 5, 0, 2}, {2, 4, 6, 101, 3, 2, 1}, 25228));
  list.push_back(element(Mask::Dilate, 15, 15, 2));
  list.push_back(element(Mask::Erode, 31, 31, 2));
  list.push_back(element(Mask::Dilate, 31, 9, 5));
  list.push_back(element(Mask::Erode, 5, 29, 7));
  list.push_back(element(Mask::Gradient, 15, 13, 3));
  list.push_back(element(Mask::Erode, 31, 5, 1));
}

// Windows that are not square.
constexpr const char *kThresholds[] = {
    "mask=median threshold=0.1",
    "mask=median size=5 threshold=1e-9",
    "mask=median size=3 threshold=0.25 iterations=2",
    "mask=gauss5 threshold=0.2",
    "mask=box3 threshold=0.1 alpha=weighted",
    "mask=sharpen threshold=0.5",
    "mask=sobel threshold=0.3",
    "mask=dilate size=5 threshold=0.5",
    "mask=open size=5 threshold=0.15",
    "mask=tophat threshold=0.2",
    "mask=mosaic size=7 threshold=0.2",
    "mask=bilateral threshold=0.05",
};

constexpr const char *kSoftEdges[] = {
    "mask=gauss5",
    "mask=median size=5",
    "mask=mosaic size=5",
    "mask=close size=3",
    "mask=kirsch",
    "mask=box3 iterations=2",
    "mask=box5 alpha=weighted",
    "mask=bilateral",
    "mask=median threshold=0.2",
};

constexpr const char *kExactWindows[] = {
    "mask=box size=5 size-y=3",
    "mask=box size=41 size-y=1",
    "mask=box size=15 size-y=129 divisor=1000 bias=0.25",
    "mask=dilate size=9 size-y=1",
    "mask=erode size=3 size-y=31",
    "mask=gradient size=7 size-y=5",
    "mask=open size=61 size-y=3 iterations=2",
    "mask=dilate size=15 size-y=5 shape=ellipse",
    "mask=blackhat size=5 size-y=9 shape=cross",
    "mask=median size=1 size-y=5",
    "mask=median size=9 size-y=3",
    "mask=median size=13 size-y=63",
    "mask=mosaic size=8 size-y=3",
    "mask=box size=5 size-y=9 alpha=weighted",
};
constexpr const char *kNearWindows[] = {
    "mask=gauss size=9 size-y=3",
    "mask=gauss sigma=4 sigma-y=1",
    "mask=gauss sigma=0 sigma-y=2.5",
    "mask=gauss sigma=20 sigma-y=0",
    "mask=gauss sigma=60 sigma-y=24",
    "mask=gauss sigma=2 sigma-y=0.5 alpha=weighted",
    "mask=unsharp amount=1.5 sigma=3 sigma-y=0",
};

constexpr const char *kBilateralWindows[] = {
    "mask=bilateral shape=ellipse",
    "mask=bilateral size=9 shape=ellipse sigma-range=0.3",
    "mask=bilateral size=31 shape=ellipse",
    "mask=bilateral size=9 size-y=3",
    "mask=bilateral size=3 size-y=31 sigma-range=1",
    "mask=bilateral size=7 size-y=15 shape=ellipse alpha=weighted",
};

// Masks that are not in the lines above.
std::vector<FilterSettings> others() {
  std::vector<FilterSettings> list;
  for (const Named<Mask> &mask : kMaskNames) {
    const std::string word = std::string("mask=") + mask.nick;
    const auto has_it = [&](const char *line) { return line == word || std::string(line).rfind(word + " ", 0) == 0; };
    if (std::any_of(std::begin(kExact), std::end(kExact), has_it) ||
        std::any_of(std::begin(kNear), std::end(kNear), has_it))
      continue;
    list.emplace_back();
    list.back().mask = mask.value;
  }
  return list;
}

std::vector<FilterSettings> variants(bool exact) {
  std::vector<FilterSettings> list;
  if (exact) {
    for (const char *text : kExact) list.push_back(parse_vector(text).settings);
    add_custom(list);
  } else {
    for (const char *text : kNear) list.push_back(parse_vector(text).settings);
  }
  return list;
}

int channels_of(const std::string &format, Role role) {
  const FrameLayout layout = layout_of(format, 1, 1);
  int count = 0;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) count += layout.plane[p].channel[c].role == role;
  return count;
}

bool has_alpha(const std::string &format) {
  return channels_of(format, Role::Alpha) > 0;
}

int side_of(const FilterSettings &s) {
  if (!s.coefficients.value.empty()) return std::max(s.coefficients.width, s.coefficients.height);
  const double sigma = std::max(s.sigma, s.sigma_y);
  if (s.size || s.size_y) return std::max(s.size, s.size_y);
  return sigma >= 0 ? 2 * static_cast<int>(std::ceil(3 * sigma)) + 1 : 9;
}

// The approximate number of operations of a naive filter for a frame.
double work(const FilterSettings &s, Size size) {
  const double side = side_of(s), pixels = 1.0 * size.width * size.height;
  if (s.mask == Mask::Mosaic || s.mask == Mask::Identity) return pixels;
  const bool by_lines = (s.mask == Mask::Box || s.mask == Mask::Gauss || s.mask == Mask::Unsharp) && side > 31 &&
                        s.alpha != Alpha::Weighted;
  const double steps = s.mask == Mask::Kirsch || (s.mask >= Mask::Open && s.mask <= Mask::Blackhat) ? 4 : 1;
  return pixels * side * (by_lines ? 2 : side) * s.iterations * steps * (s.mask == Mask::Median ? 6 : 1);
}

// Draws a method: mostly auto, else a method that supports this mask at this size.
Method draw_method(Random &random, const FilterSettings &s) {
  const Method any[] = {Method::Global, Method::Constant, Method::Tiled, Method::TiledCached, Method::Blocked};
  if (random() % 5 || s.alpha == Alpha::Weighted) return Method::Auto;
  const bool square = s.shape == Shape::Rect;
  const uint64_t r = random();
  if ((s.mask == Mask::Dilate || s.mask == Mask::Erode) && s.size == 5 && !s.size_y && square && r % 2)
    return Method::Cascade;
  const bool separable = (s.mask >= Mask::Box3 && s.mask <= Mask::Gauss9) || s.mask == Mask::Sobel ||
                         s.mask == Mask::ScharrX || s.mask == Mask::PrewittY ||
                         (s.mask >= Mask::Dilate && s.mask <= Mask::Blackhat && square);
  if (separable && r % 4 == 0) return Method::Separable;
  return any[r / 4 % 5];
}

double angle(Random &random) {
  return (static_cast<double>(random() % 6000) - 3000.5) / 1000;  // never a multiple of a quarter turn
}

// Draws regions, mostly none.
void draw_regions(Random &random, Vector &v) {
  if (random() % 4) return;
  Regions &regions = v.regions;
  const auto within = [&](int from, int to) { return from + static_cast<int>(random() % (to - from + 1)); };
  const auto draw = [&] {
    return Region{within(-v.width / 2, v.width), within(-v.height / 2, v.height), within(1, v.width + 2),
                  within(1, v.height + 2)};
  };
  regions.active = true;
  regions.ellipse = random() % 3 == 0;
  regions.invert = random() % 3 == 0;
  for (int i = within(0, 3); i > 0; i--) regions.region.push_back(draw());
  if (random() % 3 == 0) {
    for (int i = within(1, 2); i > 0; i--) {
      regions.region.push_back(draw());
      regions.region.back().rotation = angle(random);
    }
  }
  if (random() % 3 == 0) {
    RegionMask mask;
    mask.box = draw();
    mask.width = within(1, 20);
    mask.height = within(1, 20);
    regions.mask.push_back(mask);
  }
  if (!v.interlaced && random() % 5 == 0) {
    regions.row_step = 2;
    regions.first_row = within(0, 1);
  }
  v.in_place = random() % 2;
}

Vector make_case(const FilterSettings &settings, Border border, uint64_t number, bool exact) {
  Random random(number);
  const bool common = settings.alpha != Alpha::Weighted && random() % 3 == 0;
  const std::vector<std::string> &formats = common ? kCommonFormats : format_names();
  Vector v;
  v.settings = settings;
  v.settings.border = border;
  const bool weighted = settings.alpha == Alpha::Weighted;
  size_t format = random() % formats.size();
  while (weighted && !has_alpha(formats[format])) format = (format + 1) % formats.size();
  v.format = formats[format];
  const double most = exact ? 4e6 : 2e6;
  size_t size = number % kSizeCount;
  for (size_t i = 0; i < kSizeCount && work(settings, kSizes[size]) > most; i++) size = (size + 1) % kSizeCount;
  if (work(settings, kSizes[size]) > most) size = 1;
  v.width = kSizes[size].width;
  v.height = kSizes[size].height;
  const Chroma chromas[] = {Chroma::Auto, Chroma::Filter, Chroma::Filter, Chroma::Copy, Chroma::Neutral};
  v.settings.chroma = chromas[random() % 5];
  const bool filter_alpha = random() % 2;
  if (!weighted && filter_alpha) v.settings.alpha = Alpha::Filter;
  v.settings.method = draw_method(random, v.settings);
  if (settings.mask == Mask::Mosaic || side_of(settings) > 31) v.settings.method = Method::Auto;
  const bool of_rgb = settings.mask == Mask::Bilateral && channels_of(v.format, Role::Luma) > 1;
  if (of_rgb && v.settings.method != Method::Auto) v.settings.method = Method::Constant;
  v.interlaced = random() % 6 == 0;
  draw_regions(random, v);
  v.on_device = random() % 3 == 0;
  v.seed = number;
  return v;
}

// A case with regions whose edges are soft.
Vector make_soft_case(const FilterSettings &settings, Border border, uint64_t number) {
  constexpr uint64_t kMostCases = 1000000;
  for (uint64_t draw = number;; draw += kMostCases) {
    Vector v = make_case(settings, border, draw, true);
    if (v.regions.region.empty() || v.regions.invert) continue;
    v.regions.feather = 1 + static_cast<int>(number * 977 % (256 * 12));
    return v;
  }
}

}  // namespace

std::vector<Vector> make_cases() {
  std::vector<Vector> cases;
  const auto add = [&](const std::vector<FilterSettings> &list, int rounds, bool exact) {
    for (int round = 0; round < rounds; round++)
      for (const FilterSettings &settings : list)
        for (const Named<Border> &border : kBorderNames)
          cases.push_back(make_case(settings, border.value, cases.size() + 1, exact));
  };
  add(variants(true), kRoundsExact, true);
  add(variants(false), kRoundsNear, false);
  add(others(), kRoundsExact, true);  // later additions are at the end, so that earlier lines do not change
  const auto add_lines = [&](const auto &lines, bool exact) {
    std::vector<FilterSettings> list;
    for (const char *text : lines) list.push_back(parse_vector(text).settings);
    add(list, 1, exact);
  };
  add_lines(kExactWindows, true);
  add_lines(kNearWindows, false);
  add_lines(kBilateralWindows, true);
  add_lines(kThresholds, true);
  for (const char *text : kSoftEdges)
    for (const Named<Border> &border : kBorderNames)
      cases.push_back(make_soft_case(parse_vector(text).settings, border.value, cases.size() + 1));
  return cases;
}

}  // namespace cudaconv::verify
