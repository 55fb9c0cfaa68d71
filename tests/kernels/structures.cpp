// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which kernels method=auto takes: what looks alike to users is to be alike fast, whatever a frame's width. The exit
// code is 77 where there is no device.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "backend.h"
#include "formats.h"
#include "guarded_frame.h"

namespace cudaconv::test {

namespace {

struct Expectation {
  FilterSettings settings;
  // Structures of kernels for 8-bit samples, and for those in 16-bit containers, of one channel or two and of four.
  const char *bytes, *words, *four_words = words;
};

FilterSettings settings(Mask mask, int size = 0, Shape shape = Shape::Rect) {
  FilterSettings s;
  s.mask = mask;
  s.size = size;
  s.shape = shape;
  return s;
}

FilterSettings divided(Mask mask, double divisor) {
  FilterSettings s = settings(mask);
  s.divisor = divisor;
  return s;
}

FilterSettings custom(int side) {
  FilterSettings s = settings(Mask::Custom);
  s.coefficients.width = s.coefficients.height = side;
  for (int i = 0; i < side * side; i++) s.coefficients.value.push_back(i * i % 11 - 3);
  return s;
}

const Expectation kExpected[] = {
    {settings(Mask::Gauss5), "sliding", "sliding"},
    {settings(Mask::Box3), "sliding", "sliding"},
    {settings(Mask::Sharpen), "sliding", "sliding"},
    {settings(Mask::Sobel), "sliding", "sliding"},
    {divided(Mask::Sobel, 4), "sliding", "sliding"},
    {settings(Mask::Kirsch), "sliding", "sliding"},
    {settings(Mask::Dilate, 3), "sliding", "sliding"},
    {settings(Mask::Median, 3), "sliding", "sliding"},
    {settings(Mask::Median, 5), "sliding", "sliding"},
    {settings(Mask::Dilate, 5, Shape::Ellipse), "sliding", "sliding"},
    {settings(Mask::Open, 3), "composite", "composite"},
    {settings(Mask::Gradient, 5), "composite", "composite"},
    {settings(Mask::Erode, 15), "extremum", "extremum"},
    {settings(Mask::Dilate, 9, Shape::Ellipse), "element", "element"},
    {settings(Mask::Erode, 31, Shape::Cross), "element", "element"},
    {settings(Mask::Box, 15), "box", "tensor"},
    {settings(Mask::Gauss, 31), "tensor", "tensor"},
    {settings(Mask::Gauss, 127), "tensor", nullptr},
    {settings(Mask::Unsharp, 5), "tensor", "tensor", nullptr},
    {custom(7), "tensor", "tensor"},
};

int run() {
  std::string why;
  if (cuda_device_count(&why) == 0) {
    std::printf("SKIP: %s\n", why.c_str());
    return 77;
  }
  const auto backend = make_cuda_backend();
  int tried = 0, failed = 0;
  for (const char *name : {"GRAY8", "NV12", "v308", "RGBA", "P010_10LE", "YUY2", "RGB10A2_LE", "I420_10BE", "ARGB64"}) {
    const Format &format = format_named(name);
    for (const int width : {64, 38, 37}) {
      const FrameLayout layout = format.layout(width, 12);
      Random random(1);
      GuardedFrame source(layout, {0, 0, 1, 0}), target(layout, {0, 0, 1, 0});
      source.fill(random);
      for (const Expectation &expected : kExpected) {
        const PlaneLayout &first = layout.plane[0];
        const char *want = first.container == Container::U8                           ? expected.bytes
                           : first.channels == 4 && first.container == Container::U16 ? expected.four_words
                                                                                      : expected.words;
        if (!want) continue;
        FilterSettings s = expected.settings;
        s.chroma = Chroma::Filter;
        backend->retire(backend->submit(make_plan(s, layout), source.view(), target.view()));
        const char *got = backend->stats().kernels;
        tried++;
        if (got && !std::strcmp(got, want)) continue;
        failed++;
        std::printf("FAILED %s %dx12 mask=%s size=%d: want %s, got %s\n", name, width, mask_nick(s.mask), s.size, want,
                    got ? got : "those of a method");
      }
    }
  }
  std::printf("%d passed, %d failed\n", tried - failed, failed);
  return failed ? 1 : 0;
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  try {
    return cudaconv::test::run();
  } catch (const std::exception &e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
