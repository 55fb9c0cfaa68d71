// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests structuring elements on frames that are too large for the reference. Compares all bytes of both backends with
// each other, and some pixels, at random positions and at the corners, with the definition of dilation and erosion.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "checks.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/border.h"
#include "plan/masks.h"

namespace cudaconv::test {

namespace {

int large = 0;

struct Setting {
  std::string label;
  FilterSettings settings;
};

std::vector<Setting> make_settings() {
  std::vector<Setting> list;
  const auto add = [&](const std::string &label, Mask mask, Shape shape, int size, Coefficients coefficients = {}) {
    FilterSettings s;
    s.mask = mask;
    s.shape = shape;
    s.size = size;
    s.coefficients = std::move(coefficients);
    s.border = static_cast<Border>(list.size() % std::size(kBorderNames));
    list.push_back({label, s});
  };
  for (int size : {15, 31, 63, 127, 129, 255})
    for (Mask mask : {Mask::Dilate, Mask::Erode}) {
      const std::string label = std::string(mask_nick(mask)) + " " + std::to_string(size);
      add(label + " ellipse", mask, Shape::Ellipse, size);
      add(label + " cross", mask, Shape::Cross, size);
      if (size > 31) add(label + " rect", mask, Shape::Rect, size);
    }
  // Windows of one row, and of one column.
  for (int size : {15, 31})
    for (const bool row : {true, false}) {
      add(std::string("dilate a ") + (row ? "row" : "column") + " of " + std::to_string(size), Mask::Dilate,
          Shape::Rect, row ? size : 1);
      list.back().settings.size_y = row ? 1 : size;
    }
  // A square that takes several passes on CUDA, with every border.
  for (const Named<Border> &border : kBorderNames) {
    add(std::string("dilate 255 rect, border=") + border.nick, Mask::Dilate, Shape::Rect, 255);
    list.back().settings.border = border.value;
  }
  Random random(3);
  for (const auto &[width, height] : {std::pair(15, 15), {31, 31}, {31, 3}, {1, 31}, {29, 17}}) {
    Coefficients c = {width, height, {}};
    for (int i = 0; i < width * height; i++) c.value.push_back(random() % 2);
    c.value[random() % c.value.size()] = 1;
    add("custom " + std::to_string(width) + "x" + std::to_string(height), Mask::Dilate, Shape::Custom, 0, c);
    // The mirror image of the element before.
    std::reverse(c.value.begin(), c.value.end());
    add("custom " + std::to_string(width) + "x" + std::to_string(height) + " turned", Mask::Erode, Shape::Custom, 0, c);
  }
  return list;
}

int sample_at(const PlaneLayout &layout, const FrameView &frame, int c, int x, int y) {
  const PlaneView &view = frame.plane[layout.memory_plane];
  const size_t container = layout.first + static_cast<size_t>(x) * layout.step + layout.channel[c].offset;
  const uint8_t *const at = view.data + y * view.pitch + container * layout.bytes_per_container();
  const bool big = layout.container == Container::U16BE;
  const int value = layout.container == Container::U8 ? *at : at[big ? 1 : 0] | at[big ? 0 : 1] << 8;
  return value >> layout.channel[c].shift & ((1 << layout.channel[c].depth) - 1);
}

int by_definition(const Plan &plan, const PlaneLayout &layout, const FrameView &frame, int c, int x, int y) {
  const Pass &pass = plan.passes[0];
  const bool largest = pass.op == Op::Maximum;
  if (x < pass.keep_x || y < pass.keep_y || x >= layout.width - pass.keep_x || y >= layout.height - pass.keep_y)
    return sample_at(layout, frame, c, x, y);
  int extremum = -1;
  for (int dy = -pass.radius_y; dy <= pass.radius_y; dy++)
    for (int dx = -pass.radius_x; dx <= pass.radius_x; dx++) {
      if (!pass.has_member(dx, dy)) continue;
      const int sx = border_index(plan.border, x + dx, layout.width);
      const int sy = border_index(plan.border, y + dy, layout.height);
      const int v = sx < 0 || sy < 0 ? layout.border_value[c] : sample_at(layout, frame, c, sx, sy);
      if (extremum < 0 || (largest ? v > extremum : v < extremum)) extremum = v;
    }
  return extremum;
}

void check_pixels(const Plan &plan, const FrameView &source, const FrameView &target, const std::string &what) {
  constexpr int kPixels = 12;
  Random random(5);
  for (int p = 0; p < plan.layout.planes; p++) {
    const PlaneLayout &layout = plan.layout.plane[p];
    int wrong = 0;
    for (int i = 0; i < kPixels; i++) {
      int x = static_cast<int>(random() % layout.width), y = static_cast<int>(random() % layout.height);
      if (i < 4) x = i % 2 ? layout.width - 1 : 0, y = i / 2 ? layout.height - 1 : 0;
      for (int c = 0; c < layout.channels; c++)
        if (plan.action[p][c] == Action::Filter)
          wrong += sample_at(layout, target, c, x, y) != by_definition(plan, layout, source, c, x, y);
    }
    expect(wrong == 0, what + ": plane " + std::to_string(p) + ", " + std::to_string(wrong) + " samples");
  }
}

// Leaves few samples that can be a result. With random samples, almost every large window would have the extreme value.
void thin_out(GuardedFrame &frame, bool dilates, Random &random) {
  for (auto &block : frame.blocks())
    for (uint8_t &byte : block.bytes)
      if (random() % 20000) byte = dilates ? 0 : 0xff;
}

void test(Backend &cpu, Backend *cuda, const char *format, int width, int height) {
  FrameLayout layout = format_named(format).layout(width, height);
  for (const Setting &setting : make_settings()) {
    // Every second large element, and the others with the next format: the stand-in takes long.
    if (setting.settings.size > 31 && large++ % 2) continue;
    const auto plan = make_plan(setting.settings, layout);
    const std::string what =
        std::string(format) + " " + std::to_string(width) + "x" + std::to_string(height) + " " + setting.label;
    GuardedFrame source(layout, {0, 0, 256, 0}), target(layout, {0, 0, 256, 0});
    Random random(checks);
    source.fill(random);
    if (setting.settings.size > 63) thin_out(source, setting.settings.mask == Mask::Dilate, random);
    target.fill(random);
    GuardedFrame other = target;
    cpu.retire(cpu.submit(plan, source.view(), target.view()));
    check_pixels(*plan, source.view(), target.view(), what + " on cpu");
    if (!cuda) continue;
    cuda->retire(cuda->submit(plan, source.view(), other.view()));
    expect(target == other, what + ": cuda and cpu differ");
  }
}

// Elements of two rectangles, one a step narrower than the other. Tests every pixel around a single bright pixel.
void test_steps(Backend &backend) {
  const FrameLayout layout = format_named("GRAY8").layout(48, 48);
  for (const int step : {1, 2, 5}) {
    FilterSettings s;
    s.mask = Mask::Dilate;
    s.shape = Shape::Custom;
    s.coefficients = {15, 31, {}};
    for (int y = -15; y <= 15; y++)
      for (int x = -7; x <= 7; x++) s.coefficients.value.push_back(std::abs(x) <= (std::abs(y) <= 12 ? 7 : 7 - step));
    const auto plan = make_plan(s, layout);
    GuardedFrame source(layout, {0, 0, 16, 0});
    for (auto &block : source.blocks()) std::fill(block.bytes.begin(), block.bytes.end(), 0);
    GuardedFrame target = source;
    const PlaneView plane = source.view().plane[0];
    plane.data[24 * plane.pitch + 24] = 200;
    backend.retire(backend.submit(plan, source.view(), target.view()));
    int wrong = 0;
    for (int y = 0; y < 48; y++)
      for (int x = 0; x < 48; x++)
        wrong += sample_at(layout.plane[0], target.view(), 0, x, y) !=
                 by_definition(*plan, layout.plane[0], source.view(), 0, x, y);
    expect(wrong == 0, std::string("an element with a step of ") + std::to_string(step) + " on " + backend.name() +
                           ": " + std::to_string(wrong) + " samples");
  }
}

int run() {
  const auto one_thread = [](int n, const std::function<void(int)> &body) {
    for (int i = 0; i < n; i++) body(i);
  };
  const auto cpu = make_cpu_backend(one_thread, 2);
  std::string why;
  std::unique_ptr<Backend> cuda;
  if (cuda_device_count(&why) == 0)
    std::printf("CUDA is not tested: %s\n", why.c_str());
  else
    cuda = make_cuda_backend();
  test_steps(*cpu);
  if (cuda) test_steps(*cuda);
  // Frames of several tiles of every kernel, which end at different positions in the last tiles.
  test(*cpu, cuda.get(), "RGBA", 643, 67);
  test(*cpu, cuda.get(), "GRAY8", 301, 290);
  test(*cpu, cuda.get(), "NV12", 420, 90);
  test(*cpu, cuda.get(), "v308", 290, 34);
  test(*cpu, cuda.get(), "P010_10LE", 280, 66);
  // Of both byte orders: ARGB64 has the machine's.
  test(*cpu, cuda.get(), "ARGB64", 600, 40);
  test(*cpu, cuda.get(), "GRAY16_BE", 90, 40);
  test(*cpu, cuda.get(), "GRAY16_LE", 90, 40);
  return report();
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::run();
}
