// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests alpha=weighted on both backends, beyond the conformance test: against alpha=filter, with transparent windows,
// at the limits of sums, and with settings that are refused.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "backend.h"
#include "cancellation.h"
#include "checks.h"
#include "error.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/region_work.h"
#include "plan/weighted.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

FilterSettings settings(Mask mask, int size = 0, double sigma = kAutoSigma) {
  FilterSettings s;
  s.mask = mask;
  s.size = size;
  s.sigma = sigma;
  s.alpha = Alpha::Weighted;
  return s;
}

// Filters on the CPU and, if there is a device, on the GPU, which must give the same.
reference::Frame filtered(const FilterSettings &s, const FrameLayout &layout, const reference::Frame &in) {
  static const auto cpu = make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);
  static const auto cuda = cuda_device_count(nullptr) > 0 ? make_cuda_backend() : nullptr;
  const auto plan = make_plan(s, layout);
  const auto filtered_by = [&](Backend &backend) {
    GuardedFrame source(layout, {0, 0, 1, 0}), target(layout, {0, 0, 1, 0});
    reference::write(in, layout, source.view());
    backend.retire(backend.submit(plan, source.view(), target.view()));
    return reference::read(layout, target.view());
  };
  const reference::Frame out = filtered_by(*cpu);
  if (!cuda) return out;
  const reference::Frame other = filtered_by(*cuda);
  bool same = true;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) same &= out.plane[p][c].sample == other.plane[p][c].sample;
  expect(same, describe(*plan) + ": CPU and GPU differ");
  return out;
}

// A frame of random colours, with alpha from alpha(x, y).
template <typename F>
reference::Frame frame_of(const FrameLayout &layout, F alpha) {
  Random random(7);
  reference::Frame frame;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++) {
      const PlaneLayout &plane = layout.plane[p];
      reference::Channel channel{plane.width, plane.height, {}, {}};
      const bool is_alpha = plane.channel[c].role == Role::Alpha;
      for (int y = 0; y < plane.height; y++)
        for (int x = 0; x < plane.width; x++)
          channel.sample.push_back(is_alpha ? alpha(x, y)
                                            : static_cast<int>(random() >> (64 - plane.channel[c].depth)));
      frame.plane[p].push_back(channel);
    }
  return frame;
}

// The largest difference of colour samples.
int distance(const FrameLayout &layout, const reference::Frame &a, const reference::Frame &b) {
  int most = 0;
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      for (size_t i = 0; i < a.plane[p][c].sample.size(); i++)
        if (layout.plane[p].channel[c].role != Role::Alpha)
          most = std::max(most, std::abs(a.plane[p][c].sample[i] - b.plane[p][c].sample[i]));
  return most;
}

// With the same alpha everywhere, even 0, colours are as with alpha=filter; with integer masks exactly.
void test_uniform_alpha() {
  struct Frame {
    const char *format;
    int width;
  };
  // In frames of 40, kernels that write four pixels at once have no remainder. Chroma of AYUV is copied.
  for (const auto &[format, width] :
       {Frame{"RGBA", 37}, Frame{"RGBA", 40}, Frame{"ARGB", 37}, Frame{"ARGB", 40}, Frame{"AYUV", 40},
        Frame{"ARGB64", 37}, Frame{"A420", 37}, Frame{"RGB10A2_LE", 37}, Frame{"A422_12LE", 37}}) {
    const FrameLayout layout = format_named(format).layout(width, 23);
    const AlphaPlace place = alpha_of(layout);
    const int max = (1 << layout.plane[place.plane].channel[place.channel].depth) - 1;
    for (FilterSettings s : {settings(Mask::Gauss5), settings(Mask::Box, 15), settings(Mask::Gauss, 0, 1.5),
                             settings(Mask::Gauss, 31), settings(Mask::Gauss, 127)})
      for (const int alpha : {0, 1, max}) {
        s.border = Border::Reflect;
        if (!std::strcmp(format, "AYUV")) s.chroma = Chroma::Copy;
        const reference::Frame in = frame_of(layout, [&](int, int) { return alpha; });
        FilterSettings filter = s;
        filter.alpha = Alpha::Filter;
        const int off = distance(layout, filtered(s, layout, in), filtered(filter, layout, in));
        expect(off <= (s.mask == Mask::Gauss), std::string(format) + " mask=" + mask_nick(s.mask) + " alpha " +
                                                   std::to_string(alpha) + ": " + std::to_string(off) + " codes off");
      }
  }
}

// A single opaque pixel gives its colour to every window that contains it, however small its alpha and weight.
void test_lone_pixel() {
  for (const char *format : {"RGBA", "ARGB", "ARGB64", "RGB10A2_LE"}) {
    const FrameLayout layout = format_named(format).layout(41, 41);
    for (const FilterSettings &s :
         {settings(Mask::Gauss5), settings(Mask::Box, 31), settings(Mask::Gauss, 0, 0.4), settings(Mask::Gauss, 7, 0.1),
          settings(Mask::Gauss, 31), settings(Mask::Gauss, 15), settings(Mask::Gauss, 9)}) {
      const reference::Frame in = frame_of(layout, [](int x, int y) { return x == 20 && y == 20; });
      const reference::Frame out = filtered(s, layout, in);
      const int radius = make_plan(s, layout)->passes[0].radius_x;
      bool right = true;
      for (int c = 0; c < 4; c++)
        for (int y = 20 - radius; y <= 20 + radius; y++)
          for (int x = 20 - radius; x <= 20 + radius; x++)
            if (layout.plane[0].channel[c].role != Role::Alpha)
              right &= out.plane[0][c].sample[y * 41 + x] == in.plane[0][c].sample[20 * 41 + 20];
      expect(right, std::string(format) + " mask=" + mask_nick(s.mask) + ": a lone pixel gives its colour");
    }
  }
}

// With colours and alpha at the top of their range, sums are the largest possible.
void test_largest_sums() {
  for (const char *format : {"RGBA", "ARGB64", "A422_12LE"}) {
    const FrameLayout layout = format_named(format).layout(40, 12);
    reference::Frame in = frame_of(layout, [](int, int) { return 0; });
    for (auto &plane : in.plane)
      for (reference::Channel &channel : plane) std::fill(channel.sample.begin(), channel.sample.end(), 0);
    for (int p = 0; p < layout.planes; p++)
      for (int c = 0; c < layout.plane[p].channels; c++)
        std::fill(in.plane[p][c].sample.begin(), in.plane[p][c].sample.end(),
                  (1 << layout.plane[p].channel[c].depth) - 1);
    for (const FilterSettings &s :
         {settings(Mask::Gauss5), settings(Mask::Gauss9), settings(Mask::Box, 127), settings(Mask::Gauss, 127),
          settings(Mask::Gauss, 15), settings(Mask::Gauss, 3, 0.3)})
      expect(distance(layout, filtered(s, layout, in), in) == 0,
             std::string(format) + " mask=" + mask_nick(s.mask) + ": white stays white");
  }
}

std::string refusal_of(const FilterSettings &s, const char *format) {
  try {
    make_plan(s, format_named(format).layout(8, 8));
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

void test_refusals() {
  const auto expect_says = [](const FilterSettings &s, std::vector<const char *> words) {
    const std::string text = refusal_of(s, "RGBA");
    for (const char *word : words)
      expect(text.find(word) != std::string::npos, "\"" + text + "\" should say \"" + word + "\"");
    expect(refusal_of(s, "NV12").empty() || s.method != Method::Auto, "no effect without alpha: " + text);
  };
  for (const Mask mask : {Mask::Sharpen, Mask::Unsharp, Mask::Emboss, Mask::Laplace, Mask::SobelX, Mask::Sobel,
                          Mask::Kirsch, Mask::Dilate, Mask::Open, Mask::Median, Mask::Mosaic})
    expect_says(settings(mask), {"alpha=weighted", mask_nick(mask), "alpha=filter"});
  FilterSettings custom = settings(Mask::Custom);
  custom.coefficients = {3, 1, {1, 2, -0.5}};
  expect_says(custom, {"coefficients: -0.5", "row 1, column 3", "alpha=weighted"});
  for (const Method method :
       {Method::Global, Method::Tiled, Method::TiledCached, Method::Blocked, Method::Cascade, Method::Separable}) {
    FilterSettings s = settings(Mask::Gauss5);
    s.method = method;
    const std::string text = refusal_of(s, "RGBA");
    expect(text.find(method_nick(method)) != std::string::npos && text.find("auto, constant") != std::string::npos,
           "\"" + text + "\" should name the methods that can");
  }
  // A gain must leave room in sums of 128 bits.
  FilterSettings small = settings(Mask::Gauss, 601);
  small.size_y = 1;
  small.divisor = 1e-9;
  expect(refusal_of(small, "ARGB64").find("divisor") != std::string::npos, "a divisor of 1e-9 is too small");
  for (const Mask mask : {Mask::Identity, Mask::Box, Mask::Gauss})
    expect(refusal_of(settings(mask), "RGBA").empty(), std::string(mask_nick(mask)) + " is not refused");
}

// A plan takes the fewest bits for sums that are accurate enough.
void test_bits() {
  const auto expect_bits = [](const FilterSettings &s, const char *format, int row, int sum) {
    const auto plan = make_plan(s, format_named(format).layout(8, 8));
    const Pass &pass = plan->passes[0];
    const double largest = std::ldexp(1, plan->layout.depth()) - 1;
    const std::vector<int32_t> &factors = pass.mask[0].row;
    const int row_bits = std::ilogb(std::accumulate(factors.begin(), factors.end(), 0.0) * largest * largest) + 1;
    const auto width = [](int bits) { return bits <= 32 ? 32 : bits <= 63 ? 64 : 128; };
    expect(width(row_bits) == row && width(pass.sum_bits) == sum,
           std::string(format) + " " + describe(*plan) + ": sums of " + std::to_string(row_bits) + " and " +
               std::to_string(pass.sum_bits) + " bits");
  };
  expect_bits(settings(Mask::Gauss5), "RGBA", 32, 32);
  expect_bits(settings(Mask::Gauss9), "RGBA", 32, 32);
  expect_bits(settings(Mask::Box, 127), "RGBA", 32, 32);
  expect_bits(settings(Mask::Gauss, 15), "RGBA", 32, 64);
  expect_bits(settings(Mask::Gauss, 31), "RGBA", 32, 64);
  expect_bits(settings(Mask::Gauss, 127), "RGBA", 64, 64);
  expect_bits(settings(Mask::Gauss5), "ARGB64", 64, 64);
}

// With a large divisor, sums of many bits leave few bits for the bias. Nothing but the bias remains of the mean.
void test_large_divisors() {
  const FrameLayout layout = format_named("ARGB64").layout(20, 12);
  const reference::Frame in = frame_of(layout, [](int x, int y) { return 60000 - 100 * x - y; });
  for (const double divisor : {3e6, 1e9, 4294967295.0, -1e9})
    for (const double bias : {0.25, 0.75}) {
      FilterSettings s = settings(Mask::Gauss);
      s.divisor = divisor;
      s.bias = bias;
      const reference::Frame out = filtered(s, layout, in);
      const int want = static_cast<int>(bias * 65536), got = out.plane[0][1].sample[105];
      expect(std::abs(got - want) <= 1, "divisor " + std::to_string(divisor) + ", bias " + std::to_string(bias) +
                                            ": want " + std::to_string(want) + ", got " + std::to_string(got));
    }
}

// Chroma of a region needs alpha beyond the windows of the alpha plane, since windows of chroma reach farther.
void test_needed_alpha() {
  for (const bool interlaced : {false, true}) {
    FrameLayout layout = format_named("A420").layout(400, 400);
    if (interlaced) layout = with_fields(layout);
    const auto plan = make_plan(settings(Mask::Box, 31), layout);
    Regions regions;
    regions.active = true;
    regions.region = {{192, 192, 16, 16}};
    const RegionWork work(*plan, regions, Cancellation(nullptr));
    for (size_t part = 0; part < plan->parts.size(); part++) {
      if (plan->parts[part].plane != alpha_of(layout).plane) continue;
      const PixelRect r = work.needed(part).bounds();
      const int top = interlaced ? 96 : 192, bottom = interlaced ? 104 : 208;
      expect(r.x0 <= 192 - 30 && r.x1 >= 208 + 30 && r.y0 <= top - 30 && r.y1 >= bottom + 30,
             "the alpha that chroma reads: " + std::to_string(r.x0) + "," + std::to_string(r.y0) + " to " +
                 std::to_string(r.x1) + "," + std::to_string(r.y1));
    }
  }
}

// A bilateral leaves samples as they are if the square of a standard deviation is too small for a double.
void test_tiny_deviations() {
  const FrameLayout layout = format_named("RGBA").layout(9, 7);
  const reference::Frame in = frame_of(layout, [](int x, int) { return x % 2 * 200; });
  for (const Alpha alpha : {Alpha::Filter, Alpha::Weighted})
    for (const Method method : {Method::Auto, Method::Constant})
      for (const bool of_range : {false, true}) {
        FilterSettings s = settings(Mask::Bilateral, 5);
        s.alpha = alpha;
        s.method = method;
        (of_range ? s.sigma_range : s.sigma) = 1e-200;
        const reference::Frame out = filtered(s, layout, in);
        bool same = true;
        for (int c = 0; c < 4; c++) same &= out.plane[0][c].sample == in.plane[0][c].sample;
        expect(same, std::string("a tiny ") + (of_range ? "sigma-range" : "sigma") +
                         " with method=" + method_nick(method) + (alpha == Alpha::Weighted ? ", weighted" : ""));
      }
}

}  // namespace

int weighted() {
  test_uniform_alpha();
  test_lone_pixel();
  test_largest_sums();
  test_refusals();
  test_bits();
  test_needed_alpha();
  test_large_divisors();
  test_tiny_deviations();
  return report();
}

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::weighted();
}
