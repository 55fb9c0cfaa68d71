// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The user's settings, named like the element's properties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudaconv {

enum class Mask {
  Identity,
  Box3,
  Box5,
  Box7,
  Box,
  Gauss3,
  Gauss5,
  Gauss7,
  Gauss9,
  Gauss,
  Sharpen,
  Unsharp,
  Emboss,
  Laplace,
  Laplace8,
  Log5,
  SobelX,
  SobelY,
  Sobel,
  ScharrX,
  ScharrY,
  Scharr,
  PrewittX,
  PrewittY,
  Prewitt,
  Roberts,
  Kirsch,
  Dilate,
  Erode,
  Open,
  Close,
  Gradient,
  Tophat,
  Blackhat,
  Median,
  Mosaic,
  Custom,
  Fill,
  Bilateral,
};

enum class Shape { Rect, Cross, Ellipse, Custom };
enum class Negative { Auto, Clamp, Absolute };
enum class Magnitude { L2, L1 };
enum class Border { Replicate, Reflect, Reflect101, Wrap, Constant, Keep };
enum class Luma { Filter, Copy };
enum class Chroma { Auto, Filter, Copy, Neutral };
enum class Alpha { Copy, Filter, Weighted };
enum class Method { Auto, Global, Constant, Tiled, TiledCached, Blocked, Cascade, Separable };

// A value of a setting as users see it. Each list has all values of its type, in their order.
template <typename Enum>
struct Named {
  Enum value;
  const char *nick, *text;
};

inline constexpr Named<Mask> kMaskNames[] = {
    {Mask::Identity, "identity", "No filter: frames pass unchanged"},
    {Mask::Box3, "box3", "Mean of 3x3 pixels"},
    {Mask::Box5, "box5", "Mean of 5x5 pixels"},
    {Mask::Box7, "box7", "Mean of 7x7 pixels"},
    {Mask::Box, "box", "Mean of size x size-y pixels"},
    {Mask::Gauss3, "gauss3", "3x3 Gaussian blur, [1 2 1]/4 along rows and columns"},
    {Mask::Gauss5, "gauss5", "5x5 Gaussian blur, [1 4 6 4 1]/16 along rows and columns"},
    {Mask::Gauss7, "gauss7", "7x7 Gaussian blur, [2 7 14 18 14 7 2]/64 along rows and columns"},
    {Mask::Gauss9, "gauss9", "9x9 Gaussian blur, [4 13 30 51 60 51 30 13 4]/256 along rows and columns"},
    {Mask::Gauss, "gauss", "Gaussian blur by sigma, sigma-y, size and size-y"},
    {Mask::Sharpen, "sharpen", "Sharpening, [0 -1 0; -1 5 -1; 0 -1 0]"},
    {Mask::Unsharp, "unsharp", "Unsharp masking by amount, sigma, sigma-y, size and size-y"},
    {Mask::Emboss, "emboss", "Relief, [-2 -1 0; -1 1 1; 0 1 2]"},
    {Mask::Laplace, "laplace", "Laplacian, [0 1 0; 1 -4 1; 0 1 0]"},
    {Mask::Laplace8, "laplace8", "Laplacian of eight neighbours, [1 1 1; 1 -8 1; 1 1 1]"},
    {Mask::Log5, "log5", "Laplacian of a Gaussian, 5x5"},
    {Mask::SobelX, "sobel-x", "Horizontal Sobel gradient, [-1 0 1; -2 0 2; -1 0 1]"},
    {Mask::SobelY, "sobel-y", "Vertical Sobel gradient"},
    {Mask::Sobel, "sobel", "Magnitude of the Sobel gradient"},
    {Mask::ScharrX, "scharr-x", "Horizontal Scharr gradient, [-3 0 3; -10 0 10; -3 0 3]"},
    {Mask::ScharrY, "scharr-y", "Vertical Scharr gradient"},
    {Mask::Scharr, "scharr", "Magnitude of the Scharr gradient"},
    {Mask::PrewittX, "prewitt-x", "Horizontal Prewitt gradient, [-1 0 1; -1 0 1; -1 0 1]"},
    {Mask::PrewittY, "prewitt-y", "Vertical Prewitt gradient"},
    {Mask::Prewitt, "prewitt", "Magnitude of the Prewitt gradient"},
    {Mask::Roberts, "roberts", "Magnitude of the diagonal differences of 2x2 pixels"},
    {Mask::Kirsch, "kirsch", "Largest of the eight compass responses of [5 5 5; -3 0 -3; -3 -3 -3]"},
    {Mask::Dilate, "dilate", "Largest value within the structuring element"},
    {Mask::Erode, "erode", "Smallest value within the structuring element"},
    {Mask::Open, "open", "Erosion, then dilation: removes small bright spots"},
    {Mask::Close, "close", "Dilation, then erosion: removes small dark spots"},
    {Mask::Gradient, "gradient", "Dilation minus erosion: outlines"},
    {Mask::Tophat, "tophat", "Source minus its opening: small bright spots"},
    {Mask::Blackhat, "blackhat", "Closing minus the source: small dark spots"},
    {Mask::Median, "median", "Median of size x size-y pixels"},
    {Mask::Mosaic, "mosaic",
     "Pixelation: each block of size x size-y pixels becomes its mean; blocks start at the top left corner of the "
     "frame or region"},
    {Mask::Custom, "custom", "Mask of the property coefficients"},
    {Mask::Fill, "fill", "Every pixel, alpha included, becomes fill-color"},
    {Mask::Bilateral, "bilateral", "Gaussian blur that keeps edges, by size, size-y, shape, sigma and sigma-range"},
};
inline constexpr Named<Shape> kShapeNames[] = {
    {Shape::Rect, "rect", "Whole window"},
    {Shape::Cross, "cross", "Middle row and middle column"},
    {Shape::Ellipse, "ellipse", "Ellipse inscribed in the window"},
    {Shape::Custom, "custom", "Nonzero numbers of the property coefficients"},
};
inline constexpr Named<Negative> kNegativeNames[] = {
    {Negative::Auto, "auto", "absolute for directional gradients, laplace, laplace8 and log5, clamp for others"},
    {Negative::Clamp, "clamp", "Negative results become 0"},
    {Negative::Absolute, "absolute", "Negative results become their absolute value"},
};
inline constexpr Named<Magnitude> kMagnitudeNames[] = {
    {Magnitude::L2, "l2", "Length of the gradient, sqrt(gx^2 + gy^2)"},
    {Magnitude::L1, "l1", "Sum of the absolute components, |gx| + |gy|"},
};
inline constexpr Named<Border> kBorderNames[] = {
    {Border::Replicate, "replicate", "Repeat the edge pixel: aaa|abcd|ddd"},
    {Border::Reflect, "reflect", "Mirror the frame at its edge: cba|abcd|dcb"},
    {Border::Reflect101, "reflect101", "Mirror the frame at its edge pixel: dcb|abcd|cba"},
    {Border::Wrap, "wrap", "Repeat the frame: bcd|abcd|abc"},
    {Border::Constant, "constant", "Use border-color outside the frame"},
    {Border::Keep, "keep", "Copy pixels whose window crosses the edge"},
};
inline constexpr Named<Luma> kLumaNames[] = {
    {Luma::Filter, "filter", "Filter luma"},
    {Luma::Copy, "copy", "Copy luma"},
};
inline constexpr Named<Chroma> kChromaNames[] = {
    {Chroma::Auto, "auto", "neutral for gradients, laplacians, emboss, tophat and blackhat, filter for others"},
    {Chroma::Filter, "filter", "Filter chroma like luma, at its own resolution"},
    {Chroma::Copy, "copy", "Copy chroma"},
    {Chroma::Neutral, "neutral", "Set chroma to grey"},
};
inline constexpr Named<Alpha> kAlphaNames[] = {
    {Alpha::Copy, "copy", "Copy alpha"},
    {Alpha::Filter, "filter", "Filter alpha like the colours"},
    {Alpha::Weighted, "weighted",
     "Filter alpha and weight colours by it, so that transparent pixels do not bleed; not for negative coefficients"},
};
inline constexpr Named<Method> kMethodNames[] = {
    {Method::Auto, "auto", "Fastest for the mask, format and frame"},
    {Method::Global, "global", "Frame and mask in global memory"},
    {Method::Constant, "constant", "Mask in constant memory, frame read without a tile"},
    {Method::Tiled, "tiled", "Shared-memory tile with halo, mask in constant memory"},
    {Method::TiledCached, "tiled-cached", "Tile without halo, its neighbours read through the cache"},
    {Method::Blocked, "blocked", "Several pixels per thread, without shared memory"},
    {Method::Cascade, "cascade", "5x5 morphology as two 3x3 steps in one launch"},
    {Method::Separable, "separable", "Row and column passes in one launch, for separable masks"},
};

template <typename Enum, size_t n>
constexpr bool are_in_order(const Named<Enum> (&names)[n]) {
  for (size_t i = 0; i < n; i++)
    if (static_cast<size_t>(names[i].value) != i) return false;
  return true;
}
static_assert(are_in_order(kMaskNames) && are_in_order(kShapeNames) && are_in_order(kNegativeNames) &&
              are_in_order(kMagnitudeNames) && are_in_order(kBorderNames) && are_in_order(kLumaNames) &&
              are_in_order(kChromaNames) && are_in_order(kAlphaNames) && are_in_order(kMethodNames));

template <typename Enum, size_t n>
constexpr const char *nick_of(const Named<Enum> (&names)[n], Enum value) {
  const auto i = static_cast<size_t>(value);
  return i < n ? names[i].nick : "unknown";
}
constexpr const char *mask_nick(Mask mask) {
  return nick_of(kMaskNames, mask);
}
constexpr const char *border_nick(Border border) {
  return nick_of(kBorderNames, border);
}
constexpr const char *method_nick(Method method) {
  return nick_of(kMethodNames, method);
}

// Coefficients as the user wrote them, row by row. Empty: none.
struct Coefficients {
  int width = 0, height = 0;
  std::vector<double> value;
};

// sigma: derived from the size.
inline constexpr double kAutoSigma = -1;
// sigma_y: same as sigma.
inline constexpr double kSigmaYAsX = -1;

struct FilterSettings {
  Mask mask = Mask::Gauss5;
  int size = 0;                 // side of the mask or structuring element; 0: the mask's own default
  int size_y = 0;               // its height; 0: as size
  double sigma = kAutoSigma;    // pixels; 0: no blur
  double sigma_y = kSigmaYAsX;  // down the columns
  double sigma_range = 0.1;     // bilateral: fraction of the full range, above 0 to 1
  double amount = 1;
  Coefficients coefficients;
  Shape shape = Shape::Rect;
  double divisor = 0;    // 0: the mask's own
  double bias = 0;       // fraction of the full range, -1 to 1
  double threshold = 0;  // fraction of the full range, 0 to 1; 0: results always count
  Negative negative = Negative::Auto;
  Magnitude magnitude = Magnitude::L2;
  int iterations = 1;
  Border border = Border::Replicate;
  Luma luma = Luma::Filter;  // of YUV and grey; colour primaries are always filtered
  Chroma chroma = Chroma::Auto;
  Alpha alpha = Alpha::Copy;
  uint32_t fill_color = 0xff000000;  // ARGB, of mask=fill; its samples are PlaneLayout::fill_value
  Method method = Method::Auto;
};

}  // namespace cudaconv
