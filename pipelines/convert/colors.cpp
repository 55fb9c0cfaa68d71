// SPDX-License-Identifier: LGPL-2.1-or-later
#include "colors.h"

#include <algorithm>
#include <cmath>

namespace media {

namespace {

constexpr int kUnit = 1 << 16;

// The codes of black, and from black to white and from the least chroma to the most.
struct Range {
  int black;
  double luma, chroma;
};

Range range_of(const GstVideoColorimetry &colors) {
  return colors.range == GST_VIDEO_COLOR_RANGE_0_255 ? Range{0, 255, 255} : Range{16, 219, 224};
}

guint8 code(int sum) {
  return static_cast<guint8>(std::clamp((sum + kUnit / 2) >> 16, 0, 255));
}

int sum(const std::array<int, 3> &factors, int y, int u, int v) {
  return factors[0] * y + factors[1] * u + factors[2] * v;
}

}  // namespace

bool Colors::convertible(const GstVideoColorimetry &colors) {
  gdouble red, blue;
  return gst_video_color_matrix_get_Kr_Kb(colors.matrix, &red, &blue);
}

bool Colors::differ(const GstVideoColorimetry &a, const GstVideoColorimetry &b) {
  return a.matrix != b.matrix || range_of(a).black != range_of(b).black;
}

Colors::Colors(const GstVideoColorimetry &from, const GstVideoColorimetry &to) {
  gdouble kr, kb, to_kr, to_kb;
  gst_video_color_matrix_get_Kr_Kb(from.matrix, &kr, &kb);
  gst_video_color_matrix_get_Kr_Kb(to.matrix, &to_kr, &to_kb);
  const Range in = range_of(from), out = range_of(to);
  // U and V, from -1/2 to 1/2, add this to red, green and blue beside the luma.
  const double kg = 1 - kr - kb;
  const double red[] = {0, 2 * (1 - kr)}, blue[] = {2 * (1 - kb), 0};
  const double green[] = {-blue[0] * kb / kg, -red[1] * kr / kg};
  const auto fixed = [](double factor) { return static_cast<int>(std::lround(factor * kUnit)); };
  luma_[0] = fixed(out.luma / in.luma);
  blue_[0] = red_[0] = 0;  // grey stays grey
  for (const int i : {0, 1}) {
    const double luma = to_kr * red[i] + (1 - to_kr - to_kb) * green[i] + to_kb * blue[i];
    luma_[i + 1] = fixed(luma * out.luma / in.chroma);
    blue_[i + 1] = fixed((blue[i] - luma) / (2 * (1 - to_kb)) * out.chroma / in.chroma);
    red_[i + 1] = fixed((red[i] - luma) / (2 * (1 - to_kr)) * out.chroma / in.chroma);
  }
  black_ = in.black;
  new_black_ = out.black;
}

void Colors::convert(GstVideoFrame *frame) const {
  const int width = GST_VIDEO_FRAME_WIDTH(frame), height = GST_VIDEO_FRAME_HEIGHT(frame);
  const int chroma_width = GST_VIDEO_FRAME_COMP_WIDTH(frame, 1), chroma_height = GST_VIDEO_FRAME_COMP_HEIGHT(frame, 1);
  const int step = GST_VIDEO_FRAME_COMP_PSTRIDE(frame, 1);
  const bool fields = GST_VIDEO_FRAME_IS_INTERLACED(frame);  // each has its own rows of chroma
  const auto row_of = [frame](int component, int row) {
    return static_cast<guint8 *>(GST_VIDEO_FRAME_COMP_DATA(frame, component)) +
           static_cast<gsize>(row) * GST_VIDEO_FRAME_COMP_STRIDE(frame, component);
  };
  for (int y = 0; y < height; y++) {
    const int covering = std::min(fields ? (y / 4 * 2 | (y & 1)) : y / 2, chroma_height - 1);
    const guint8 *const u = row_of(1, covering), *const v = row_of(2, covering);
    guint8 *const luma = row_of(0, y);
    for (int x = 0; x < width; x++)
      luma[x] = code(sum(luma_, luma[x] - black_, u[x / 2 * step] - 128, v[x / 2 * step] - 128) + new_black_ * kUnit);
  }
  for (int y = 0; y < chroma_height; y++) {
    guint8 *const u = row_of(1, y), *const v = row_of(2, y);
    for (int x = 0; x < chroma_width * step; x += step) {
      const int a = u[x] - 128, b = v[x] - 128;
      u[x] = code(sum(blue_, 0, a, b) + 128 * kUnit);
      v[x] = code(sum(red_, 0, a, b) + 128 * kUnit);
    }
  }
}

}  // namespace media
