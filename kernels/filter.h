// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the user asks for, in the words of the element's properties.
#pragma once

#include <cstdint>
#include <string>
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
};

enum class Shape { Rect, Cross, Ellipse, Custom };
enum class Negative { Auto, Clamp, Absolute };
enum class Magnitude { L2, L1 };
enum class Border { Replicate, Reflect, Reflect101, Wrap, Constant, Keep };
enum class Chroma { Auto, Filter, Copy, Neutral };
enum class Alpha { Copy, Filter, Weighted };
enum class Method { Auto, Global, Constant, Tiled, TiledCached, Blocked, Cascade, Separable };

// Coefficients as the user wrote them, row by row. Empty: none.
struct Coefficients {
  int width = 0, height = 0;
  std::vector<double> value;
};

// A rectangle in pixels of the frame, or the ellipse inscribed in it; what lies outside the frame is cut off.
struct Region {
  int x = 0, y = 0, width = 0, height = 0;
  double rotation = 0;  // radians, clockwise on the screen, about the centre

  bool operator==(const Region &o) const {
    return x == o.x && y == o.y && width == o.width && height == o.height && rotation == o.rotation;
  }
};

// A rectangle of the frame of which some pixels are members: those whose centre falls on a sample of `member` that is
// not 0, once the samples are spread over the rectangle.
struct RegionMask {
  Region box;                   // not rotated
  int width = 0, height = 0;    // samples
  std::vector<uint8_t> member;  // width * height, row by row

  bool operator==(const RegionMask &o) const {
    return box == o.box && width == o.width && height == o.height && member == o.member;
  }
};

// Which pixels of one frame are filtered; the others are copied from the input.
struct Regions {
  bool active = false;   // false: all are filtered
  bool ellipse = false;  // each `region` is the ellipse inscribed in the rectangle
  bool invert = false;   // filter what lies in no region
  std::vector<Region> region;
  std::vector<RegionMask> mask;
  // Row y of the buffer is row first_row + y * row_step of the frame that the regions' coordinates refer to: the buffer
  // may hold a single field.
  int first_row = 0, row_step = 1;

  bool operator==(const Regions &o) const {
    return active == o.active && ellipse == o.ellipse && invert == o.invert && region == o.region && mask == o.mask &&
           first_row == o.first_row && row_step == o.row_step;
  }
};

struct FilterSettings {
  Mask mask = Mask::Gauss5;
  int size = 0;      // side of the mask or structuring element; 0: the mask's own default
  double sigma = 0;  // pixels; 0: from size
  double amount = 1;
  Coefficients coefficients;
  Shape shape = Shape::Rect;
  double divisor = 0;  // 0: the mask's own
  double bias = 0;     // fraction of the full range, -1 to 1
  Negative negative = Negative::Auto;
  Magnitude magnitude = Magnitude::L2;
  int iterations = 1;
  Border border = Border::Replicate;
  Chroma chroma = Chroma::Auto;
  Alpha alpha = Alpha::Copy;
  Method method = Method::Auto;
};

const char *mask_nick(Mask mask);
const char *method_nick(Method method);

}  // namespace cudaconv
