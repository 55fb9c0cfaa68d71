// SPDX-License-Identifier: LGPL-2.1-or-later
#include "formats.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace cudaconv::test {

namespace {

constexpr Role Y = Role::Luma, C = Role::Chroma, A = Role::Alpha, X = Role::Padding;

int half(int n) {
  return (n + 1) / 2;
}

struct Depth {
  Container container = Container::U8;
  int depth = 8, shift = 0;
};
constexpr Depth k8{}, k16{Container::U16, 16, 0}, k16BE{Container::U16BE, 16, 0};
// ARGB64 has the byte order of the machine.
constexpr Depth kNative16 = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? k16BE : k16;
constexpr Depth kHigh10{Container::U16, 10, 6}, kLow10{Container::U16, 10, 0}, kLow10BE{Container::U16BE, 10, 0};
constexpr Depth kLow12{Container::U16, 12, 0};
constexpr Depth kHigh12{Container::U16, 12, 4}, kHigh12BE{Container::U16BE, 12, 4};

// A plane of interleaved channels with one container each.
PlaneLayout plane(int width, int height, int memory_plane, Depth depth, std::initializer_list<Role> roles) {
  PlaneLayout p;
  p.width = width;
  p.height = height;
  p.memory_plane = memory_plane;
  p.container = depth.container;
  for (Role role : roles) {
    ChannelLayout &c = p.channel[p.channels];
    c.role = role;
    c.offset = static_cast<uint8_t>(p.channels++);
    c.depth = static_cast<uint8_t>(depth.depth);
    c.shift = static_cast<uint8_t>(depth.shift);
  }
  p.step = p.channels;
  return p;
}

FrameLayout frame(std::initializer_list<PlaneLayout> planes) {
  FrameLayout f;
  for (const PlaneLayout &p : planes) f.plane[f.planes++] = p;
  return f;
}

// Red, green and blue in a plane each, and alpha in a fourth one.
FrameLayout planar_rgb(int w, int h, Depth depth, bool alpha = false) {
  FrameLayout f = frame({plane(w, h, 0, depth, {Y}), plane(w, h, 1, depth, {Y}), plane(w, h, 2, depth, {Y})});
  if (alpha) f.plane[f.planes++] = plane(w, h, 3, depth, {A});
  return f;
}

// A plane of chroma at half the width (sub_x = 1), half the height (sub_y = 1), or both.
PlaneLayout chroma_plane(int w, int h, int sub_x, int sub_y, int memory_plane, Depth depth,
                         std::initializer_list<Role> roles) {
  PlaneLayout p = plane(sub_x ? half(w) : w, sub_y ? half(h) : h, memory_plane, depth, roles);
  p.sub_x = sub_x;
  p.sub_y = sub_y;
  return p;
}

FrameLayout planar(int w, int h, int sub_x, int sub_y, Depth depth) {
  return frame({plane(w, h, 0, depth, {Y}), chroma_plane(w, h, sub_x, sub_y, 1, depth, {C}),
                chroma_plane(w, h, sub_x, sub_y, 2, depth, {C})});
}

FrameLayout semi_planar(int w, int h, int sub_x, int sub_y, Depth depth) {
  return frame({plane(w, h, 0, depth, {Y}), chroma_plane(w, h, sub_x, sub_y, 1, depth, {C, C})});
}

// Packed 4:2:2: luma and chroma are two views of one plane of memory. A pair of pixels has four containers.
FrameLayout packed422(int w, int h, int first_luma, Depth depth = k8) {
  PlaneLayout luma = plane(w, h, 0, depth, {Y}), chroma = chroma_plane(w, h, 1, 0, 0, depth, {C, C});
  luma.step = 2;
  luma.first = first_luma;
  chroma.step = 4;
  chroma.channel[0].offset = static_cast<uint8_t>(1 - first_luma);
  chroma.channel[1].offset = static_cast<uint8_t>(3 - first_luma);
  return frame({luma, chroma});
}

// Fields of ten bits from the lowest bit up, then two bits, which are alpha or unused.
FrameLayout packed1010102(int w, int h, bool alpha) {
  PlaneLayout p = plane(w, h, 0, {Container::Packed32, 10, 0}, {Y, Y, Y, A});
  for (int c = 0; c < 4; c++) p.channel[c].offset = static_cast<uint8_t>(10 * c);
  p.channel[3].depth = 2;
  p.channels = alpha ? 4 : 3;
  p.step = 1;
  return frame({p});
}

}  // namespace

const std::vector<Format> &formats() {
  static const std::vector<Format> list = {
      {"GRAY8", [](int w, int h) { return frame({plane(w, h, 0, k8, {Y})}); }},
      {"RGBA",
       [](int w, int h) {
         return frame({plane(w, h, 0, k8, {Y, Y, Y, A})});
       }},
      {"I420", [](int w, int h) { return planar(w, h, 1, 1, k8); }},
      {"GRAY16_LE", [](int w, int h) { return frame({plane(w, h, 0, k16, {Y})}); }},
      {"NV12", [](int w, int h) { return semi_planar(w, h, 1, 1, k8); }},
      {"RGB",
       [](int w, int h) {
         return frame({plane(w, h, 0, k8, {Y, Y, Y})});
       }},
      {"P010_10LE", [](int w, int h) { return semi_planar(w, h, 1, 1, kHigh10); }},
      {"YUY2", [](int w, int h) { return packed422(w, h, 0); }},
      {"RGB10A2_LE", [](int w, int h) { return packed1010102(w, h, true); }},
      {"GRAY16_BE", [](int w, int h) { return frame({plane(w, h, 0, k16BE, {Y})}); }},
      {"v308",
       [](int w, int h) {
         return frame({plane(w, h, 0, k8, {Y, C, C})});
       }},
      {"Y42B", [](int w, int h) { return planar(w, h, 1, 0, k8); }},
      {"ARGB64",
       [](int w, int h) {
         return frame({plane(w, h, 0, kNative16, {A, Y, Y, Y})});
       }},
      {"RGBx",
       [](int w, int h) {
         return frame({plane(w, h, 0, k8, {Y, Y, Y, X})});
       }},
      {"I420_10LE", [](int w, int h) { return planar(w, h, 1, 1, kLow10); }},
      {"UYVY", [](int w, int h) { return packed422(w, h, 1); }},
      {"ARGB",
       [](int w, int h) {
         return frame({plane(w, h, 0, k8, {A, Y, Y, Y})});
       }},
      {"Y444", [](int w, int h) { return planar(w, h, 0, 0, k8); }},
      {"AYUV",
       [](int w, int h) {
         return frame({plane(w, h, 0, k8, {A, Y, C, C})});
       }},
      {"NV16", [](int w, int h) { return semi_planar(w, h, 1, 0, k8); }},
      {"I420_10BE", [](int w, int h) { return planar(w, h, 1, 1, kLow10BE); }},
      {"A420",
       [](int w, int h) {
         FrameLayout f = planar(w, h, 1, 1, k8);
         f.plane[f.planes++] = plane(w, h, 3, k8, {A});
         return f;
       }},
      {"Y210", [](int w, int h) { return packed422(w, h, 0, kHigh10); }},
      {"v216", [](int w, int h) { return packed422(w, h, 1, k16); }},
      {"Y212_BE", [](int w, int h) { return packed422(w, h, 0, kHigh12BE); }},
      {"Y410",
       [](int w, int h) {
         FrameLayout f = packed1010102(w, h, true);
         f.plane[0].channel[0].role = f.plane[0].channel[2].role = C;
         return f;
       }},
      {"P012_LE", [](int w, int h) { return semi_planar(w, h, 1, 1, kHigh12); }},
      {"Y444_16LE", [](int w, int h) { return planar(w, h, 0, 0, k16); }},
      // Three fields, and two unused bits.
      {"RGB10x2_LE", [](int w, int h) { return packed1010102(w, h, false); }},
      {"Y416_LE",
       [](int w, int h) {
         return frame({plane(w, h, 0, k16, {C, Y, C, A})});
       }},
      {"A422_12LE",
       [](int w, int h) {
         FrameLayout f = planar(w, h, 1, 0, kLow12);
         f.plane[f.planes++] = plane(w, h, 3, kLow12, {A});
         return f;
       }},
      {"GBR", [](int w, int h) { return planar_rgb(w, h, k8); }},
      {"GBRA", [](int w, int h) { return planar_rgb(w, h, k8, true); }},
      {"GBR_10BE", [](int w, int h) { return planar_rgb(w, h, kLow10BE); }},
      {"GBRA_12LE", [](int w, int h) { return planar_rgb(w, h, kLow12, true); }},
      {"GBR_12LE", [](int w, int h) { return planar_rgb(w, h, kLow12); }},
  };
  return list;
}

FrameLayout with_fields(FrameLayout layout, bool room) {
  layout.interlaced = true;
  int lines = 0;
  for (int p = 0; p < layout.planes; p++) lines = std::max(lines, layout.plane[p].sub_y ? 0 : layout.plane[p].height);
  for (int p = 0; p < layout.planes && room; p++) {
    PlaneLayout &plane = layout.plane[p];
    for (int y = 0; y < lines; y++) plane.height = std::max(plane.height, 2 * ((y / 2) >> plane.sub_y) + y % 2 + 1);
  }
  return layout;
}

const Format &format_named(std::string_view name) {
  for (const Format &format : formats())
    if (name == format.name) return format;
  std::fprintf(stderr, "there is no format %s\n", std::string(name).c_str());
  std::abort();
}

}  // namespace cudaconv::test
