// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The named masks: their coefficients, or the functions that compute them from settings.
#pragma once

#include <string>
#include <vector>

#include "filter.h"

namespace cudaconv {

// The largest side of box, gauss and unsharp.
constexpr int kMostTaps = 1501;
// The largest side of a mask that is stored as a matrix. Larger masks are stored as their factors.
constexpr int kLargestDense = 31;

enum class MaskKind { Identity, Linear, Magnitude, Compass, Morphology, Median, Mosaic, Fill, Bilateral };

// A mask of real numbers, rows from the top. Both sides are odd, and the anchor is the centre.
struct RealMask {
  int width = 0, height = 0;
  std::vector<double> value;        // empty if only the factors are given
  std::vector<double> row, column;  // value[j][i] = column[j] * row[i]; each is all ones or sums to 1
  double divisor = 1;               // the mask's own

  // Whether only the factors are given and all are 1. A line of several taps that sums to 1 contains no 1.
  bool all_ones() const { return value.empty() && row[0] == 1 && column[0] == 1; }
};

MaskKind mask_kind(Mask mask);
// negative=auto and chroma=auto for the mask: whether results become absolute values, and whether chroma becomes
// neutral.
bool mask_is_absolute(Mask mask);
bool mask_is_edge_detector(Mask mask);
// Whether the mask's default size follows from sigma.
bool mask_has_size_from_sigma(Mask mask);

// The masks of MaskKind::Linear (one) and Magnitude (the two directions). Throws Error{Settings}.
std::vector<RealMask> linear_masks(const FilterSettings &settings);

// Why the mask and shape do not use the property of a setting: a sentence that names the masks that use it. Empty where
// they do, and for properties that belong to no mask. Throws only std::bad_alloc.
std::string why_unused(const std::string &property, const FilterSettings &settings);

struct WindowSize {
  int width, height;
};

// The window of a mask that has a size and no sigma, or the block of a mosaic. Throws Error{Settings}.
WindowSize window_size_of(const FilterSettings &settings);

// The standard deviations of gauss and unsharp, in pixels; 0: no blur. Throws Error{Settings}.
struct Sigmas {
  double x, y;
};
Sigmas sigmas_of(const FilterSettings &settings);

// A structuring element: its members in rows from the top. No members: every pixel is a member.
struct Window {
  WindowSize size;
  std::vector<uint8_t> member;
};

// For MaskKind::Morphology. Throws Error{Settings}.
Window window_of(const FilterSettings &settings);

// For MaskKind::Bilateral: the window, and the standard deviation of distances in pixels; 0: none. Throws
// Error{Settings}.
struct BilateralWindow {
  WindowSize size;
  double sigma;
  bool ellipse;  // only pixels whose centre is in the ellipse inscribed in the window, or on it
};
BilateralWindow bilateral_window(const FilterSettings &settings);

}  // namespace cudaconv
