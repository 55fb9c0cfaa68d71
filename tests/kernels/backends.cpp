// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CUDA backend against the CPU backend, all bytes of a frame, where kernels do what the small frames of the
// conformance test do not reach: strips of wide masks at both ends of a row, wide Gaussians in several tiles, large
// means, and mosaics in slices; bilaterals of all sizes with loops of their own; and frames at odd addresses.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "formats.h"
#include "guarded_frame.h"

namespace cudaconv::test {

namespace {

// A copy of a frame of dense planes. Rows begin at an odd address and have an odd pitch.
class OddFrame {
 public:
  OddFrame(const FrameLayout &layout, const FrameView &frame) {
    for (int i = 0; i < layout.planes; i++) {
      const PlaneLayout &plane = layout.plane[i];
      const size_t row = static_cast<size_t>(plane.width) * plane.channels * plane.bytes_per_container();
      planes_.push_back({row, static_cast<size_t>(plane.height), std::vector<uint8_t>(2 + plane.height * pitch(row))});
      for_rows(i, frame, [&](uint8_t *to, const uint8_t *from) { std::copy_n(from, row, to); });
    }
  }

  FrameView view() {
    FrameView v;
    for (size_t i = 0; i < planes_.size(); i++)
      v.plane[i] = {first_row(i), static_cast<ptrdiff_t>(pitch(planes_[i].row))};
    return v;
  }

  bool has_bytes_of(const FrameView &frame) {
    bool equal = true;
    for (size_t i = 0; i < planes_.size(); i++)
      for_rows(i, frame, [&](uint8_t *a, const uint8_t *b) { equal &= std::equal(a, a + planes_[i].row, b); });
    return equal;
  }

 private:
  struct Plane {
    size_t row, height;  // bytes of a row, rows
    std::vector<uint8_t> bytes;
  };

  static size_t pitch(size_t row) { return row + 1 + row % 2; }
  uint8_t *first_row(size_t i) {
    uint8_t *data = planes_[i].bytes.data();
    return data + (reinterpret_cast<uintptr_t>(data) % 2 ? 0 : 1);
  }
  template <typename F>
  void for_rows(size_t i, const FrameView &frame, F f) {
    for (size_t y = 0; y < planes_[i].height; y++)
      f(first_row(i) + y * pitch(planes_[i].row), frame.plane[i].data + y * frame.plane[i].pitch);
  }

  std::vector<Plane> planes_;
};

class Comparison {
 public:
  // Filters a frame of random bytes with both backends, in its regions.
  void run(const FilterSettings &settings, const char *format, int width, int height, const Regions &regions = {}) {
    FrameLayout layout = format_named(format).layout(width, height);
    for (PlaneLayout &plane : layout.plane)
      for (int c = 0; c < kMaxChannels; c++) plane.border_value[c] = static_cast<uint16_t>(20 + 50 * c);
    const auto plan = make_plan(settings, layout);
    Random random(static_cast<uint64_t>(frames_));  // a new frame each time: memory may still hold the last one
    GuardedFrame source(layout, {0, 0, 16, 0}), want(layout, {0, 0, 16, 0});
    source.fill(random);
    GuardedFrame got = want;
    cpu_->retire(cpu_->submit(plan, source.view(), want.view(), regions));
    cuda_->retire(cuda_->submit(plan, source.view(), got.view(), regions));
    frames_++;
    if (got == want) return;
    failed_++;
    std::printf("FAILED mask=%s size=%d sigma=%g border=%s, %s %dx%d%s\n", mask_nick(settings.mask), settings.size,
                settings.sigma, border_nick(settings.border), format, width, height, regions.active ? ", regions" : "");
  }

  // Filters a frame at odd addresses, with an odd pitch, with both backends. Compares its bytes with the aligned
  // frame's.
  void run_at_odd_addresses(const FilterSettings &settings, const char *format, int width, int height) {
    const FrameLayout layout = format_named(format).layout(width, height);
    const auto plan = make_plan(settings, layout);
    Random random(static_cast<uint64_t>(width));
    GuardedFrame source(layout, {0, 0, 16, 0}), want(layout, {0, 0, 16, 0});
    source.fill(random);
    cpu_->retire(cpu_->submit(plan, source.view(), want.view(), {}));
    OddFrame from(layout, source.view());
    for (Backend *backend : {cpu_.get(), cuda_.get()}) {
      OddFrame to(layout, source.view());
      backend->retire(backend->submit(plan, from.view(), to.view(), {}));
      frames_++;
      if (to.has_bytes_of(want.view())) continue;
      failed_++;
      std::printf("FAILED mask=%s size=%d, %s %dx%d at odd addresses by %s\n", mask_nick(settings.mask), settings.size,
                  format, width, height, backend == cpu_.get() ? "the CPU" : "CUDA");
    }
  }

  int finish() const {
    std::printf("%d frames, %d failed\n", frames_, failed_);
    return failed_ != 0;
  }

 private:
  const std::unique_ptr<Backend> cpu_ = make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);
  const std::unique_ptr<Backend> cuda_ = make_cuda_backend();
  int frames_ = 0, failed_ = 0;
};

// Widths at which the last strip is whole, moved to the left, or read pixel by pixel.
void compare_strips(Comparison &comparison) {
  for (const char *format : {"GRAY8", "NV12", "v308", "RGBA"})
    for (const auto &[mask, size] : {std::pair(Mask::Gauss, 65), {Mask::Unsharp, 35}})
      for (const Named<Border> &border : kBorderNames)
        for (const int width : {64, 72, 76, 97, 132}) {
          FilterSettings s;
          s.mask = mask;
          s.size = size;
          s.border = border.value;
          s.luma = width == 97 ? Luma::Copy : Luma::Filter;
          s.chroma = Chroma::Filter;
          s.alpha = width % 3 ? Alpha::Filter : Alpha::Copy;
          comparison.run(s, format, width, 12);
        }
}

// `size`: 0 for the side that follows from sigma.
FilterSettings wide_blur(Mask mask, double sigma, int size, Border border, int width) {
  FilterSettings s;
  s.mask = mask;
  s.sigma = sigma;
  s.size = size;
  s.border = border;
  s.chroma = Chroma::Filter;
  s.alpha = width % 2 ? Alpha::Filter : Alpha::Copy;
  return s;
}

// One region inside the frame and one that reaches beyond its corner.
Regions two_regions(int width, int height) {
  Regions regions;
  regions.active = true;
  regions.region = {{width / 3, 2, width / 2, height / 3}, {width - 20, height - 9, 40, 40}};
  return regions;
}

// Gaussians through smaller frames of 1/2, 1/4 and 1/8: tiles side by side, one above the other, across an edge, and
// outside the frame, farther than the frame is wide; tails of rows; tall tiles.
void compare_blurs(Comparison &comparison) {
  const auto run = [&](double sigma, Border border, const char *format, int width, int height) {
    const FilterSettings s = wide_blur(Mask::Gauss, sigma, sigma < 10 ? 127 : 0, border, width);
    comparison.run(s, format, width, height);
    if (sigma == 11) comparison.run(s, format, width, height, two_regions(width, height));
  };
  for (const auto &[format, width] : {std::pair("GRAY8", 2101), {"NV12", 1290}, {"v308", 703}, {"RGBA", 525}})
    for (const Named<Border> &border : kBorderNames) run(11, border.value, format, width, 70);
  for (const auto &[format, width] : {std::pair("GRAY8", 2101), {"RGBA", 525}})
    for (const Border border : {Border::Replicate, Border::Wrap, Border::Constant}) run(25, border, format, width, 150);
  for (const Border border : {Border::Replicate, Border::Wrap}) run(8, border, "RGBA", 525, 70);
  for (const Border border : {Border::Replicate, Border::Wrap, Border::Reflect101}) run(250, border, "RGBA", 300, 30);
  for (const double sigma : {11.0, 25.0}) run(sigma, Border::Reflect, "GRAY8", 23, 9001);
}

// Gaussians through a smaller frame with samples of 10 bits, which have finer weights: dense planes, unsharp,
// big-endian samples, bit fields, packed 4:2:2, and the kernels that read sample by sample.
void compare_deep_blurs(Comparison &comparison) {
  const auto run = [&](Mask mask, double sigma, Border border, const char *format, int width, int height,
                       Method method = Method::Auto) {
    FilterSettings s = wide_blur(mask, sigma, sigma < 20 ? 127 : 0, border, width);
    s.amount = 0.5;
    s.method = method;
    comparison.run(s, format, width, height);
    if (sigma == 22 && border == Border::Reflect) comparison.run(s, format, width, height, two_regions(width, height));
  };
  for (const Named<Border> &border : kBorderNames) run(Mask::Gauss, 22, border.value, "P010_10LE", 646, 50);
  for (const double sigma : {50.0, 100.0})
    for (const Border border : {Border::Wrap, Border::Constant})
      run(Mask::Gauss, sigma, border, sigma == 50 ? "P010_10LE" : "I420_10LE", 301, 90);
  run(Mask::Unsharp, 60, Border::Reflect, "P010_10LE", 330, 70);
  run(Mask::Unsharp, 120, Border::Replicate, "RGB10x2_LE", 150, 50);
  run(Mask::Gauss, 22, Border::Reflect, "I420_10BE", 330, 70);
  for (const char *format : {"RGB10A2_LE", "Y410", "Y210"}) run(Mask::Gauss, 50, Border::Constant, format, 151, 70);
  run(Mask::Gauss, 100, Border::Reflect, "RGB10A2_LE", 151, 40);
  for (const double sigma : {8.0, 14.0})
    for (const char *format : {"P010_10LE", "RGB10A2_LE"})
      run(Mask::Gauss, sigma, Border::Constant, format, 151, 40, Method::Constant);
}

// Gaussians of deep samples, for which no smaller frame is accurate enough: several tiles and groups of lines; numbers
// of two, three and four bytes; stages that hold a whole line or a part; every way to round.
void compare_long_blurs(Comparison &comparison) {
  const auto run = [&](FilterSettings s, const char *format, int width, int height) {
    comparison.run(s, format, width, height);
    if (s.border == Border::Reflect) comparison.run(s, format, width, height, two_regions(width, height));
  };
  for (const Named<Border> &border : kBorderNames)
    for (const auto &[format, width] : {std::pair("P010_10LE", 278), {"GRAY16_LE", 131}, {"ARGB64", 67}}) {
      const FilterSettings s = wide_blur(Mask::Gauss, 14, 0, border.value, width);
      run(s, format, width, 301);
      // At 150 no window of a tile reaches the top or bottom edge; at 2 windows do.
      for (const int y : {150, 2}) {
        Regions regions;
        regions.active = true;
        regions.region = {{width / 2, y, 20, 8}};
        comparison.run(s, format, width, 301, regions);
      }
    }
  for (const double sigma : {45.0, 80.0, 250.0})
    for (const Border border : {Border::Replicate, Border::Wrap, Border::Constant})
      run(wide_blur(Mask::Gauss, sigma, 0, border, 131), "GRAY16_LE", 131, 37);
  for (const double amount : {0.5, -1.5, 40.0})
    for (const auto &[format, sigma] : {std::pair("GRAY16_LE", 3.0), {"P010_10LE", 12.0}, {"ARGB64", 1.0}}) {
      FilterSettings s = wide_blur(Mask::Unsharp, sigma, 0, Border::Reflect101, 140);
      s.amount = amount;
      run(s, format, 140, 40);
      s.bias = 0.125;
      run(s, format, 141, 40);
      s.negative = Negative::Absolute;
      run(s, format, 142, 40);
    }
  FilterSettings s = wide_blur(Mask::Gauss, 12, 0, Border::Reflect, 150);
  s.divisor = 0.4;
  run(s, "GRAY16_LE", 150, 40);
}

// Means over windows that reach beyond several strips of rows, and beyond the frame.
void compare_means(Comparison &comparison) {
  for (const auto &[format, width] :
       {std::pair("GRAY8", 1101), {"NV12", 390}, {"v308", 303}, {"RGBA", 301}, {"P010_10LE", 299}, {"ARGB64", 150}})
    for (const Named<Border> &border : kBorderNames) {
      FilterSettings s;
      s.mask = Mask::Box;
      s.size = border.value == Border::Wrap ? 1501 : 129;
      s.border = border.value;
      s.chroma = Chroma::Filter;
      s.alpha = width % 2 ? Alpha::Filter : Alpha::Copy;
      comparison.run(s, format, width, 150);
      Regions regions;
      regions.active = true;
      regions.region = {{20, 30, 100, 40}, {90, 60, 70, 300}};
      if (border.value == Border::Reflect) comparison.run(s, format, width, 150, regions);
    }
}

// 16-bit samples at odd addresses, which cannot be read as 16-bit words; and rows of several planes.
void compare_odd_addresses(Comparison &comparison) {
  for (const char *format : {"GRAY16_LE", "ARGB64", "P010_10LE", "GRAY8"})
    for (const Mask mask : {Mask::Gauss3, Mask::Gauss, Mask::Dilate, Mask::Median, Mask::Tophat, Mask::Mosaic}) {
      FilterSettings s;
      s.mask = mask;
      s.chroma = Chroma::Filter;
      s.border = mask == Mask::Dilate ? Border::Keep : Border::Replicate;
      comparison.run_at_odd_addresses(s, format, 150, 20);
    }
}

// Tall blocks that several thread blocks share, in whole frames and in boxes of regions.
void compare_mosaics(Comparison &comparison) {
  for (const char *format : {"GRAY8", "NV12", "I420", "v308", "RGBA", "P010_10LE"})
    for (const int size : {65, 130, 255}) {
      FilterSettings s;
      s.mask = Mask::Mosaic;
      s.size = size;
      s.chroma = size % 2 ? Chroma::Filter : Chroma::Copy;
      comparison.run(s, format, 430, 290);
      Regions regions;
      regions.active = true;
      regions.region = {{3, 5, 140, 270}, {150, 1, 90, 30}, {250, 17, 177, 273}};
      comparison.run(s, format, 430, 290, regions);
    }
}

// Small sizes have loops of their own, others share one. RGB has one weight for each pixel.
void compare_bilaterals(Comparison &comparison) {
  for (const char *format : {"GRAY8", "RGB", "RGBA", "ARGB", "GBR", "GBRA", "ARGB64", "GBR_10BE", "NV12", "P010_10LE"})
    for (const int size : {3, 5, 7, 9, 11, 31}) {
      FilterSettings s;
      s.mask = Mask::Bilateral;
      s.size = size;
      s.sigma = size / 3.0;
      s.sigma_range = 0.3;
      s.chroma = Chroma::Filter;
      comparison.run(s, format, 70, 36);
      s.shape = Shape::Ellipse;
      s.sigma_range = 1;  // differences of all sizes have a weight
      s.alpha = Alpha::Filter;
      comparison.run(s, format, 70, 36);
      s.size_y = 5;
      comparison.run(s, format, 70, 36);
    }
}

}  // namespace

int compare_backends() {
  std::string why;
  if (cuda_device_count(&why) == 0) {
    std::printf("SKIP: %s\n", why.c_str());
    return 77;
  }
  Comparison comparison;
  compare_strips(comparison);
  compare_blurs(comparison);
  compare_deep_blurs(comparison);
  compare_long_blurs(comparison);
  compare_means(comparison);
  compare_mosaics(comparison);
  compare_bilaterals(comparison);
  compare_odd_addresses(comparison);
  return comparison.finish();
}

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::compare_backends();
}
