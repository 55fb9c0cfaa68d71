// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The masks by name: their numbers, and generators of those that depend on settings.
#pragma once

#include <string>
#include <vector>

#include "filter.h"

namespace cudaconv {

// The largest side of a mask that is kept as a matrix; larger masks are kept as their factors.
constexpr int kLargestDense = 31;

enum class MaskKind { Identity, Linear, Magnitude, Compass, Morphology, Median, Mosaic };

// A mask of real numbers, rows from the top, both sides odd, the anchor in the centre.
struct RealMask {
  int width = 0, height = 0;
  std::vector<double> value;        // empty where only the factors are given
  std::vector<double> row, column;  // value[j][i] = column[j] * row[i]; each all ones, or summing to 1
  double divisor = 1;               // the mask's own
};

MaskKind mask_kind(Mask mask);
// What negative=auto and chroma=auto mean for the mask: whether negative results become their absolute values, and
// whether chroma becomes neutral.
bool mask_is_absolute(Mask mask);
bool mask_is_edge_detector(Mask mask);

// The masks of MaskKind::Linear (one) and Magnitude (the two directions). Throws Error{Settings}.
std::vector<RealMask> linear_masks(const FilterSettings &settings);

// A setting that differs from its default although the mask and shape do not use it. `text` says so in a sentence that
// names the masks which do. `property` is static.
struct UnusedSetting {
  const char *property;
  std::string text;
};

// `has_coefficients`: whether the user has given any, valid or not. Throws nothing.
std::vector<UnusedSetting> unused_settings(const FilterSettings &settings, bool has_coefficients);

// A structuring element or a square window: side lengths, and members in rows from the top; no members: all pixels are.
struct Window {
  int width = 0, height = 0;
  std::vector<uint8_t> member;
};

// For MaskKind::Morphology and Median. Throws Error{Settings}.
Window window_of(const FilterSettings &settings);

// The side of a block of MaskKind::Mosaic. Throws Error{Settings}.
int block_of(const FilterSettings &settings);

}  // namespace cudaconv
