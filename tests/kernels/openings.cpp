// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests what openings and closings promise, with structuring elements that are not symmetric: opening <= source <=
// closing, and a second run changes nothing. It must hold where no window leaves the frame, and at the edges as far as
// gst/README.md says for each border mode. All bytes are compared with the reference, too.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "checks.h"
#include "formats.h"
#include "guarded_frame.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

// How the members of an element are drawn.
enum class Members {
  Few,        // one to three
  Corner,     // in one quarter of the window, without the middle
  Half,       // half of the pixels
  NearlyAll,  // all but one
  Filled,     // with each member also every pixel of the rectangle between it and the middle
  Mirrored,   // symmetric from left to right and from top to bottom, with or without the middle
};
constexpr Members kMembers[] = {Members::Few,       Members::Corner, Members::Half,
                                Members::NearlyAll, Members::Filled, Members::Mirrored};

class Element {
 public:
  Element(int width, int height, Members kind, Random &random)
      : rx_(width / 2), ry_(height / 2), c_{width, height, std::vector<double>(static_cast<size_t>(width) * height)} {
    const auto any = [&] { set(within(random, -rx_, rx_), within(random, -ry_, ry_)); };
    const int count = within(random, 1, 3);
    switch (kind) {
      case Members::Few:
        for (int i = 0; i < count; i++) any();
        break;
      case Members::Corner:
        for (int i = 0; i <= count; i++) set(within(random, std::min(1, rx_), rx_), within(random, -ry_, 0));
        break;
      case Members::Half:
        any();
        for (double &v : c_.value) v = v != 0 || random() % 2;
        break;
      case Members::NearlyAll:
        for (double &v : c_.value) v = 1;
        if (c_.value.size() > 1) c_.value[random() % c_.value.size()] = 0;
        break;
      case Members::Filled:
        for (int i = 0; i < count; i++) fill(within(random, -rx_, rx_), within(random, -ry_, ry_));
        break;
      case Members::Mirrored:
        for (int i = 0; i < count; i++) {
          const int dx = within(random, 0, rx_), dy = within(random, 0, ry_);
          for (const int x : {-dx, dx})
            for (const int y : {-dy, dy}) set(x, y);
        }
        break;
    }
  }

  const Coefficients &coefficients() const { return c_; }
  int reach_x() const { return rx_; }
  int reach_y() const { return ry_; }
  bool has_middle() const { return has(0, 0); }
  bool is_filled() const {
    return all_members(
        [&](int dx, int dy) { return has(dx - (dx > 0) + (dx < 0), dy) && has(dx, dy - (dy > 0) + (dy < 0)); });
  }
  bool is_mirrored() const {
    return all_members([&](int dx, int dy) { return has(-dx, dy) && has(dx, -dy); });
  }
  std::string text() const {
    std::string text;
    for (size_t i = 0; i < c_.value.size(); i++)
      text += std::string(i == 0 ? "" : i % c_.width ? " " : "; ") + (c_.value[i] != 0 ? "1" : "0");
    return text;
  }

 private:
  double &at(int dx, int dy) { return c_.value[static_cast<size_t>(ry_ + dy) * c_.width + rx_ + dx]; }
  bool has(int dx, int dy) const { return c_.value[static_cast<size_t>(ry_ + dy) * c_.width + rx_ + dx] != 0; }
  void set(int dx, int dy) { at(dx, dy) = 1; }
  void fill(int dx, int dy) {
    for (int y = std::min(dy, 0); y <= std::max(dy, 0); y++)
      for (int x = std::min(dx, 0); x <= std::max(dx, 0); x++) set(x, y);
  }
  template <typename F>
  bool all_members(F f) const {
    for (int dy = -ry_; dy <= ry_; dy++)
      for (int dx = -rx_; dx <= rx_; dx++)
        if (has(dx, dy) && !f(dx, dy)) return false;
    return true;
  }

  int rx_, ry_;
  Coefficients c_;
};

// The promises of a filter at the edges of the frame.
struct Edges {
  bool ordered = false, repeats = false;
};

// As gst/README.md says. With border=constant samples outside do not count in the second step.
Edges edges_of(const Element &element, Border border) {
  switch (border) {
    case Border::Wrap:
      return {true, true};
    case Border::Replicate:
      return {element.is_filled(), element.is_filled()};
    case Border::Reflect:
    case Border::Reflect101:
      return {element.is_mirrored(), element.is_mirrored()};
    case Border::Constant:
      return {true, element.has_middle()};
    default:
      return {};
  }
}

struct Case {
  FilterSettings settings;
  Element element;
  FrameLayout layout;
  std::string text;

  bool opens() const { return settings.mask == Mask::Open || settings.mask == Mask::Tophat; }
};

class Runner {
 public:
  explicit Runner(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  void run(const Case &c, const GuardedFrame &source, const reference::Frame &want, const reference::Frame &hat) {
    const std::string where = c.text + " on " + backend_->name();
    FilterSettings settings = c.settings;
    const GuardedFrame once = filter(settings, c.layout, source), twice = filter(settings, c.layout, once);
    const reference::Frame in = reference::read(c.layout, source.view()), out = reference::read(c.layout, once.view()),
                           again = reference::read(c.layout, twice.view());
    expect(equals(out, want), where + ": differs from the reference");
    settings.mask = c.opens() ? Mask::Tophat : Mask::Blackhat;
    expect(equals(reference::read(c.layout, filter(settings, c.layout, source).view()), hat),
           where + ": the hat differs from the reference");

    const Edges edges = edges_of(c.element, c.settings.border);
    const int n = c.settings.iterations;
    int disordered = 0, changed = 0;
    for_each_sample(c.layout, [&](int p, int channel, int x, int y, int width, int height) {
      const size_t i = static_cast<size_t>(y) * width + x;
      // Two steps reach two windows, two runs four.
      const auto inside = [&](int windows) {
        const int rx = windows * n * c.element.reach_x(), ry = windows * n * c.element.reach_y();
        return x >= rx && y >= ry && x < width - rx && y < height - ry;
      };
      const int before = in.plane[p][channel].sample[i], after = out.plane[p][channel].sample[i];
      if (edges.ordered || inside(2)) disordered += c.opens() ? after > before : after < before;
      if (edges.repeats || inside(4)) changed += again.plane[p][channel].sample[i] != after;
    });
    expect(disordered == 0, where + ": " + std::to_string(disordered) + " samples on the wrong side of the source");
    expect(changed == 0, where + ": a second run changes " + std::to_string(changed) + " samples");
  }

 private:
  GuardedFrame filter(const FilterSettings &settings, const FrameLayout &layout, const GuardedFrame &source) {
    GuardedFrame target = source;
    backend_->retire(backend_->submit(make_plan(settings, layout), source.view(), target.view()));
    return target;
  }

  static bool equals(const reference::Frame &a, const reference::Frame &b) {
    for (int p = 0; p < kMaxPlanes; p++)
      for (size_t c = 0; c < a.plane[p].size(); c++)
        if (a.plane[p][c].sample != b.plane[p][c].sample) return false;
    return true;
  }

  template <typename F>
  static void for_each_sample(const FrameLayout &layout, F f) {
    for (int p = 0; p < layout.planes; p++)
      for (int c = 0; c < layout.plane[p].channels; c++)
        for (int y = 0; y < layout.plane[p].height; y++)
          for (int x = 0; x < layout.plane[p].width; x++) f(p, c, x, y, layout.plane[p].width, layout.plane[p].height);
  }

  std::unique_ptr<Backend> backend_;
};

Case draw_case(int number, Random &random) {
  struct Look {
    const char *format;
    int width, height, largest;  // the largest side of an element
  };
  static const Look looks[] = {{"GRAY8", 70, 66, 15}, {"GRAY8", 41, 37, 9}, {"P010_10LE", 34, 30, 5},
                               {"RGBA", 33, 31, 7},   {"GRAY8", 7, 5, 5},   {"GRAY16_BE", 30, 27, 5}};
  const Look &look = looks[number % std::size(looks)];
  const Border border = kBorderNames[number / std::size(looks) % std::size(kBorderNames)].value;
  const Members kind = kMembers[number / (std::size(looks) * std::size(kBorderNames)) % std::size(kMembers)];
  const int rx = within(random, 0, look.largest / 2), ry = within(random, rx == 0, look.largest / 2);
  FilterSettings s;
  const size_t turn = number / (std::size(looks) * std::size(kBorderNames) * std::size(kMembers));
  s.mask = turn % 2 ? Mask::Close : Mask::Open;
  s.shape = Shape::Custom;
  s.border = border;
  s.chroma = Chroma::Filter;
  s.alpha = Alpha::Filter;
  s.iterations = look.largest <= 9 ? within(random, 1, 3) : 1;
  Element element(2 * rx + 1, 2 * ry + 1, kind, random);
  s.coefficients = element.coefficients();
  FrameLayout layout = format_named(look.format).layout(look.width, look.height);
  // The second step's samples outside must not win.
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      layout.plane[p].border_value[c] =
          static_cast<uint16_t>(s.mask == Mask::Open ? 0 : (1 << layout.plane[p].channel[c].depth) - 1);
  const std::string text = std::string("mask=") + mask_nick(s.mask) + " border=" + border_nick(border) +
                           " iterations=" + std::to_string(s.iterations) + " coefficients=\"" + element.text() + "\" " +
                           look.format + " " + std::to_string(look.width) + "x" + std::to_string(look.height);
  return {s, element, layout, text};
}

void run_cases(std::vector<Runner> &runners) {
  constexpr int kCases = 432;  // each look, border and kind of element, opened and closed
  Random random(11);
  for (int i = 0; i < kCases; i++) {
    const Case c = draw_case(i, random);
    GuardedFrame source(c.layout, {0, 3, 16, 0});
    source.fill(random);
    const reference::Frame in = reference::read(c.layout, source.view());
    FilterSettings hat = c.settings;
    hat.mask = c.opens() ? Mask::Tophat : Mask::Blackhat;
    const reference::Frame want = reference::filter(c.settings, c.layout, in),
                           want_hat = reference::filter(hat, c.layout, in);
    for (Runner &runner : runners) runner.run(c, source, want, want_hat);
  }
}

// Each of two regions has the opening of the whole frame, and so has a frame in place.
void run_regions(Backend &backend) {
  Random random(12);
  const FrameLayout layout = format_named("GRAY8").layout(61, 43);
  FilterSettings s;
  s.shape = Shape::Custom;
  s.coefficients = {5, 3, {0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}};
  Regions regions;
  regions.active = true;
  regions.region = {{3, 2, 20, 17}, {18, 11, 37, 30}};
  for (const Mask mask : {Mask::Open, Mask::Close, Mask::Tophat, Mask::Blackhat})
    for (const int n : {1, 2})
      for (const bool in_place : {false, true}) {
        s.mask = mask;
        s.iterations = n;
        GuardedFrame source(layout, {0, 0, 16, 0});
        source.fill(random);
        GuardedFrame target = source, want = source;
        reference::write(reference::filter(s, layout, reference::read(layout, source.view()), regions), layout,
                         want.view());
        backend.retire(
            backend.submit(make_plan(s, layout), in_place ? target.view() : source.view(), target.view(), regions));
        expect(target == want, std::string("regions, mask=") + mask_nick(mask) + " iterations=" + std::to_string(n) +
                                   (in_place ? " in place" : "") + " on " + backend.name());
      }
}

// With an element that is symmetric both steps have the same one, so that kernels for both steps at once take it.
void check_symmetric_elements() {
  const FrameLayout layout = format_named("GRAY8").layout(40, 30);
  for (const Shape shape : {Shape::Rect, Shape::Cross, Shape::Ellipse}) {
    FilterSettings s;
    s.mask = Mask::Open;
    s.shape = shape;
    s.size = 7;
    s.size_y = 5;
    const auto plan = make_plan(s, layout);
    expect(plan->passes.size() == 2 && plan->passes[0].element == plan->passes[1].element,
           std::string("both steps of an opening by shape=") + nick_of(kShapeNames, shape));
  }
}

int run() {
  const auto one_thread = [](int n, const std::function<void(int)> &body) {
    for (int i = 0; i < n; i++) body(i);
  };
  std::string why;
  std::vector<Runner> runners;
  runners.emplace_back(make_cpu_backend(one_thread, 2));
  run_regions(*make_cpu_backend(one_thread, 2));
  if (cuda_device_count(&why) == 0) {
    std::printf("CUDA is not tested: %s\n", why.c_str());
  } else {
    runners.emplace_back(make_cuda_backend());
    run_regions(*make_cuda_backend());
  }
  run_cases(runners);
  check_symmetric_elements();
  return report();
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  return cudaconv::test::run();
}
