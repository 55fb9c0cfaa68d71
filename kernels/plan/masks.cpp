// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/masks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "plan/messages.h"

namespace cudaconv {

namespace {

// Limits of a window's sides.
struct SideLimits {
  int largest;
  bool odd = true;
};
constexpr SideLimits kSumLimits = {kMostTaps};
constexpr SideLimits kElementLimits = {255};  // of the named shapes
constexpr SideLimits kMedianLimits = {127};
constexpr SideLimits kBlockLimits = {255, false};
constexpr double kLargestSigma = 250;
constexpr int kLeastBilateral = 3, kLargestBilateral = 31;

RealMask square(std::vector<double> value) {
  const int side = static_cast<int>(std::lround(std::sqrt(value.size())));
  return {side, side, std::move(value), {}, {}, 1};
}

RealMask outer(const std::vector<double> &column, const std::vector<double> &row, double divisor) {
  RealMask mask = {static_cast<int>(row.size()), static_cast<int>(column.size()), {}, {}, {}, divisor};
  for (double c : column)
    for (double r : row) mask.value.push_back(c * r);
  return mask;
}

RealMask binomial_like(const std::vector<double> &line) {
  const double sum = std::accumulate(line.begin(), line.end(), 0.0);
  return outer(line, line, sum * sum);
}

RealMask box(const WindowSize &size) {
  const std::vector<double> row(size.width, 1.0), column(size.height, 1.0);
  const double count = static_cast<double>(size.width) * size.height;
  if (std::max(size.width, size.height) <= kLargestDense) return outer(column, row, count);
  return {size.width, size.height, {}, row, column, count};
}

// A first derivative, smoothed across its direction by `smooth`. The mask along y is the transpose of the mask along x.
RealMask derivative(const std::vector<double> &smooth, bool along_x) {
  const std::vector<double> difference = {-1, 0, 1};
  return along_x ? outer(smooth, difference, 1) : outer(difference, smooth, 1);
}

struct MaskRow {
  Mask mask;
  MaskKind kind;
  bool absolute;                     // negative=auto is absolute
  bool edge_detector;                // chroma=auto is neutral
  std::vector<RealMask> fixed = {};  // masks whose numbers follow from no setting
};

std::vector<MaskRow> mask_rows() {
  const std::vector<double> sobel = {1, 2, 1}, scharr = {3, 10, 3}, prewitt = {1, 1, 1};
  const std::vector<double> log5 = {0, 0, 1, 0, 0, 0, 1, 2, 1, 0, 1, 2, -16, 2, 1, 0, 1, 2, 1, 0, 0, 0, 1, 0, 0};
  // A 2x2 operator on the pixel and its right, lower and lower right neighbours, in a 3x3 window.
  const RealMask falling = square({0, 0, 0, 0, 1, 0, 0, 0, -1}), rising = square({0, 0, 0, 0, 0, 1, 0, -1, 0});
  return {
      {Mask::Identity, MaskKind::Identity, false, false},
      {Mask::Box3, MaskKind::Linear, false, false, {box({3, 3})}},
      {Mask::Box5, MaskKind::Linear, false, false, {box({5, 5})}},
      {Mask::Box7, MaskKind::Linear, false, false, {box({7, 7})}},
      {Mask::Box, MaskKind::Linear, false, false},
      {Mask::Gauss3, MaskKind::Linear, false, false, {binomial_like({1, 2, 1})}},
      {Mask::Gauss5, MaskKind::Linear, false, false, {binomial_like({1, 4, 6, 4, 1})}},
      {Mask::Gauss7, MaskKind::Linear, false, false, {binomial_like({2, 7, 14, 18, 14, 7, 2})}},
      {Mask::Gauss9, MaskKind::Linear, false, false, {binomial_like({4, 13, 30, 51, 60, 51, 30, 13, 4})}},
      {Mask::Gauss, MaskKind::Linear, false, false},
      {Mask::Sharpen, MaskKind::Linear, false, false, {square({0, -1, 0, -1, 5, -1, 0, -1, 0})}},
      {Mask::Unsharp, MaskKind::Linear, false, false},
      {Mask::Emboss, MaskKind::Linear, false, true, {square({-2, -1, 0, -1, 1, 1, 0, 1, 2})}},
      {Mask::Laplace, MaskKind::Linear, true, true, {square({0, 1, 0, 1, -4, 1, 0, 1, 0})}},
      {Mask::Laplace8, MaskKind::Linear, true, true, {square({1, 1, 1, 1, -8, 1, 1, 1, 1})}},
      {Mask::Log5, MaskKind::Linear, true, true, {square(log5)}},
      {Mask::SobelX, MaskKind::Linear, true, true, {derivative(sobel, true)}},
      {Mask::SobelY, MaskKind::Linear, true, true, {derivative(sobel, false)}},
      {Mask::Sobel, MaskKind::Magnitude, false, true, {derivative(sobel, true), derivative(sobel, false)}},
      {Mask::ScharrX, MaskKind::Linear, true, true, {derivative(scharr, true)}},
      {Mask::ScharrY, MaskKind::Linear, true, true, {derivative(scharr, false)}},
      {Mask::Scharr, MaskKind::Magnitude, false, true, {derivative(scharr, true), derivative(scharr, false)}},
      {Mask::PrewittX, MaskKind::Linear, true, true, {derivative(prewitt, true)}},
      {Mask::PrewittY, MaskKind::Linear, true, true, {derivative(prewitt, false)}},
      {Mask::Prewitt, MaskKind::Magnitude, false, true, {derivative(prewitt, true), derivative(prewitt, false)}},
      {Mask::Roberts, MaskKind::Magnitude, false, true, {falling, rising}},
      {Mask::Kirsch, MaskKind::Compass, false, true},
      {Mask::Dilate, MaskKind::Morphology, false, false},
      {Mask::Erode, MaskKind::Morphology, false, false},
      {Mask::Open, MaskKind::Morphology, false, false},
      {Mask::Close, MaskKind::Morphology, false, false},
      {Mask::Gradient, MaskKind::Morphology, false, true},
      {Mask::Tophat, MaskKind::Morphology, false, true},
      {Mask::Blackhat, MaskKind::Morphology, false, true},
      {Mask::Median, MaskKind::Median, false, false},
      {Mask::Mosaic, MaskKind::Mosaic, false, false},
      {Mask::Custom, MaskKind::Linear, false, false},
      {Mask::Fill, MaskKind::Fill, false, false},
      {Mask::Bilateral, MaskKind::Bilateral, false, false},
  };
}

const MaskRow &row_of(Mask mask) {
  // Never destroyed: threads may filter while the process exits.
  static const auto &masks = *new const std::vector<MaskRow>(mask_rows());
  for (const MaskRow &row : masks)
    if (row.mask == mask) return row;
  refuse("unknown mask " + std::to_string(static_cast<int>(mask)));
}

// Refuses a side that a mask cannot have. `property`: the property that set it.
int checked_side(Mask mask, const char *property, int side, const SideLimits &limits) {
  if (side >= 1 && side <= limits.largest && (side % 2 || !limits.odd)) return side;
  refuse(std::string(property) + "=" + std::to_string(side) + " does not suit mask=" + mask_nick(mask) +
         (limits.odd ? ": it must be odd and at most " : ": it must be 1 to ") + std::to_string(limits.largest));
}

WindowSize checked_size(const FilterSettings &s, int otherwise, const SideLimits &limits) {
  const int width = checked_side(s.mask, "size", s.size ? s.size : otherwise, limits);
  return {width, s.size_y ? checked_side(s.mask, "size-y", s.size_y, limits) : width};
}

// One axis of a Gaussian: its side and its standard deviation; 1 and 0: no blur.
struct GaussAxis {
  int side;
  double sigma;
};

// The standard deviation that a side implies, as in OpenCV.
double auto_sigma(int side) {
  return 0.3 * ((side - 1) * 0.5 - 1) + 0.8;
}

GaussAxis gauss_axis(Mask mask, const char *property, int size, double sigma) {
  const int side = size || sigma == kAutoSigma ? checked_side(mask, property, size ? size : 5, kSumLimits) : 0;
  if (sigma == 0 || side == 1) return {1, 0};
  if (sigma == kAutoSigma) return {side, auto_sigma(side)};
  return {side ? side : 2 * static_cast<int>(std::ceil(3 * sigma)) + 1, sigma};
}

// Refuses a standard deviation that a mask cannot have. `meaning`: of the value `least`, -1.
void check_sigma(const char *property, double sigma, double least, const char *meaning) {
  if (sigma == least || (sigma >= 0 && sigma <= kLargestSigma)) return;
  refuse(std::string(property) + "=" + number_text(sigma) + " is invalid; use 0 to " + number_text(kLargestSigma) +
         ", or -1 (" + meaning + ")");
}

struct GaussAxes {
  GaussAxis x, y;
};

GaussAxes gauss_axes(const FilterSettings &s) {
  check_sigma("sigma", s.sigma, kAutoSigma, "automatic");
  check_sigma("sigma-y", s.sigma_y, kSigmaYAsX, "same as sigma");
  return {gauss_axis(s.mask, "size", s.size, s.sigma),
          gauss_axis(s.mask, s.size_y ? "size-y" : "size", s.size_y ? s.size_y : s.size,
                     s.sigma_y == kSigmaYAsX ? s.sigma : s.sigma_y)};
}

// A Gaussian exp(-x^2 / (2 sigma^2)), sampled and normalised.
std::vector<double> gauss_line(const GaussAxis &axis) {
  if (axis.side == 1) return {1};
  std::vector<double> line;
  double sum = 0;
  for (int i = 0; i < axis.side; i++) {
    const double x = (i - axis.side / 2) / axis.sigma;
    line.push_back(std::exp(-0.5 * x * x));
    sum += line.back();
  }
  for (double &weight : line) weight /= sum;
  return line;
}

RealMask gauss(const FilterSettings &s) {
  const GaussAxes axes = gauss_axes(s);
  return {axes.x.side, axes.y.side, {}, gauss_line(axes.x), gauss_line(axes.y), 1};
}

const Coefficients &coefficients_of(const FilterSettings &s, const char *what) {
  if (s.coefficients.value.empty())
    refuse(std::string(what) +
           " needs the property coefficients, which is empty; set it, for example to \"0 -1 0; -1 5 -1; 0 -1 0\"");
  return s.coefficients;
}

RealMask custom(const FilterSettings &s) {
  const Coefficients &c = coefficients_of(s, "mask=custom");
  double sum = 0, magnitude = 0;
  for (double v : c.value) {
    sum += v;
    magnitude += std::fabs(v);
  }
  // Decimal fractions that cancel leave a few units in the last place. They count as 0.
  const double divisor = std::fabs(sum) <= 1e-12 * magnitude ? 1 : sum;
  return {c.width, c.height, c.value, {}, {}, divisor};
}

}  // namespace

MaskKind mask_kind(Mask mask) {
  return row_of(mask).kind;
}
bool mask_is_absolute(Mask mask) {
  return row_of(mask).absolute;
}
bool mask_is_edge_detector(Mask mask) {
  return row_of(mask).edge_detector;
}
bool mask_has_size_from_sigma(Mask mask) {
  return mask == Mask::Gauss || mask == Mask::Unsharp;
}

namespace {

// Whether results depend on the picture.
bool is_filter(Mask mask, Shape) {
  return mask != Mask::Identity && mask != Mask::Fill;
}
// Whether repetition and the samples outside the frame can change the result.
bool is_window(Mask mask, Shape) {
  return is_filter(mask, Shape::Rect) && mask != Mask::Mosaic;
}
bool has_sigma(Mask mask, Shape) {
  return mask_has_size_from_sigma(mask) || mask == Mask::Bilateral;
}
bool is_morphology(Mask mask, Shape) {
  return mask_kind(mask) == MaskKind::Morphology;
}
bool has_size(Mask mask, Shape shape) {
  return mask == Mask::Box || mask == Mask::Median || mask == Mask::Mosaic || mask == Mask::Bilateral ||
         mask_has_size_from_sigma(mask) || (is_morphology(mask, shape) && shape != Shape::Custom);
}
bool is_sum(Mask mask, Shape) {
  const MaskKind kind = mask_kind(mask);
  return kind == MaskKind::Linear || kind == MaskKind::Magnitude || kind == MaskKind::Compass;
}

// The masks that use each setting.
const struct {
  const char *property;
  bool (*uses)(Mask mask, Shape shape);
} kUsage[] = {
    {"sigma-y", [](Mask mask, Shape) { return mask_has_size_from_sigma(mask); }},
    {"sigma", has_sigma},
    {"size", has_size},
    {"size-y", has_size},
    {"sigma-range", [](Mask mask, Shape) { return mask == Mask::Bilateral; }},
    {"amount", [](Mask mask, Shape) { return mask == Mask::Unsharp; }},
    {"coefficients",
     [](Mask mask, Shape shape) {
       return mask == Mask::Custom || (is_morphology(mask, shape) && shape == Shape::Custom);
     }},
    {"shape", [](Mask mask, Shape shape) { return mask == Mask::Bilateral || is_morphology(mask, shape); }},
    {"divisor", [](Mask mask, Shape shape) { return is_sum(mask, shape) && mask != Mask::Unsharp; }},
    {"bias", is_sum},
    {"negative", is_sum},
    {"threshold", is_filter},
    {"magnitude", [](Mask mask, Shape) { return mask_kind(mask) == MaskKind::Magnitude; }},
    {"iterations", is_window},
    {"border", is_window},
    {"border-color", is_window},
    {"luma", is_filter},
    {"chroma", is_filter},
    {"alpha", is_filter},
    {"fill-color", [](Mask mask, Shape) { return mask == Mask::Fill; }},
};

// The nicks of the entries that satisfy the predicate.
template <typename List, typename Predicate>
std::string nicks_of(const List &list, Predicate predicate) {
  std::string nicks;
  for (const auto &entry : list)
    if (predicate(entry)) nicks += (nicks.empty() ? "" : ", ") + std::string(entry.nick);
  return nicks;
}

// The masks that use a setting, for example "gauss, unsharp"; "all but identity" if more than half use it.
std::string users_of(bool (*uses)(Mask mask, Shape shape)) {
  const auto always = [&](const Named<Mask> &m) { return uses(m.value, Shape::Rect); };
  const auto never = [&](const Named<Mask> &m) { return !uses(m.value, Shape::Rect); };
  const auto with_custom = [&](const Named<Mask> &m) { return never(m) && uses(m.value, Shape::Custom); };
  const auto count = std::count_if(std::begin(kMaskNames), std::end(kMaskNames), always);
  if (2 * count > std::end(kMaskNames) - std::begin(kMaskNames)) return "all but " + nicks_of(kMaskNames, never);
  const std::string more = nicks_of(kMaskNames, with_custom);
  return nicks_of(kMaskNames, always) + (more.empty() ? "" : ", and with shape=custom by " + more);
}

}  // namespace

std::string why_unused(const std::string &property, const FilterSettings &s) {
  const auto usage =
      std::find_if(std::begin(kUsage), std::end(kUsage), [&](const auto &row) { return row.property == property; });
  if (usage == std::end(kUsage) || usage->uses(s.mask, s.shape)) return {};
  const std::string text = property + " has no effect with mask=" + mask_nick(s.mask);
  // With another shape the mask may use the setting.
  const auto matters = [&](const Named<Shape> &other) { return usage->uses(s.mask, other.value); };
  const std::string shapes = nicks_of(kShapeNames, matters);
  if (shapes.empty()) return text + "; it is used by " + users_of(usage->uses);
  return text + " and shape=" + nick_of(kShapeNames, s.shape) + "; it is used with shape=" + shapes;
}

std::vector<RealMask> linear_masks(const FilterSettings &s) {
  if (const MaskRow &row = row_of(s.mask); !row.fixed.empty()) return row.fixed;
  switch (s.mask) {
    case Mask::Box:
      return {box(window_size_of(s))};
    case Mask::Gauss:
    case Mask::Unsharp:
      return {gauss(s)};
    case Mask::Custom:
      return {custom(s)};
    default:
      refuse(std::string("mask=") + mask_nick(s.mask) + " is not linear");
  }
}

WindowSize window_size_of(const FilterSettings &s) {
  switch (mask_kind(s.mask)) {
    case MaskKind::Morphology:
      return checked_size(s, 3, kElementLimits);
    case MaskKind::Median:
      return checked_size(s, 3, kMedianLimits);
    case MaskKind::Mosaic:
      return checked_size(s, 16, kBlockLimits);
    case MaskKind::Bilateral:
      return bilateral_window(s).size;
    default:
      return checked_size(s, 5, kSumLimits);
  }
}

BilateralWindow bilateral_window(const FilterSettings &s) {
  check_sigma("sigma", s.sigma, kAutoSigma, "automatic");
  const auto checked = [&](const char *property, int side, int least) {
    if (side >= least && side <= kLargestBilateral && side % 2) return side;
    refuse(std::string(property) + "=" + std::to_string(side) + " does not suit mask=" + mask_nick(s.mask) +
           ": it must be odd, " + std::to_string(least) + " to " + std::to_string(kLargestBilateral));
  };
  const int width = checked("size", s.size ? s.size : 5, kLeastBilateral);
  const int height = s.size_y ? checked("size-y", s.size_y, 1) : width;
  if (s.shape != Shape::Rect && s.shape != Shape::Ellipse)
    refuse(std::string("shape=") + nick_of(kShapeNames, s.shape) + " does not suit mask=" + mask_nick(s.mask) +
           "; use shape=rect or shape=ellipse");
  return {{width, height}, s.sigma == kAutoSigma ? auto_sigma(width) : s.sigma, s.shape == Shape::Ellipse};
}

Sigmas sigmas_of(const FilterSettings &s) {
  const GaussAxes axes = gauss_axes(s);
  return {axes.x.sigma, axes.y.sigma};
}

Window window_of(const FilterSettings &s) {
  Window w;
  if (s.shape == Shape::Custom) {
    const Coefficients &c = coefficients_of(s, "shape=custom");
    w.size = {c.width, c.height};
    for (double v : c.value) w.member.push_back(v != 0);
    if (std::find(w.member.begin(), w.member.end(), 1) == w.member.end())
      refuse("shape=custom: all numbers in coefficients are 0, so the structuring element is empty");
  } else {
    w.size = window_size_of(s);
    const int width = w.size.width, rx = width / 2, ry = w.size.height / 2;
    if (s.shape != Shape::Rect) w.member.assign(static_cast<size_t>(width) * w.size.height, 0);
    for (int dy = -ry; s.shape != Shape::Rect && dy <= ry; dy++) {
      int reach = dy == 0 ? rx : 0;         // members of the row are within this distance of the middle column
      if (s.shape == Shape::Ellipse && dy)  // as OpenCV's getStructuringElement
        reach = static_cast<int>(std::lrint(rx * std::sqrt((ry * ry - dy * dy) / (1.0 * ry * ry))));
      const auto middle = w.member.begin() + static_cast<ptrdiff_t>(ry + dy) * width + rx;
      std::fill(middle - reach, middle + reach + 1, uint8_t{1});
    }
  }
  if (std::find(w.member.begin(), w.member.end(), 0) == w.member.end()) w.member.clear();
  return w;
}

}  // namespace cudaconv
