// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compares the time of regions with the whole frame and with a copy of it:
//
//   region-bench [--backend=cuda|cpu] [--only=TEXT]
//
// cuda: 4K RGBA in device memory, filtered in place; and 4K NV12 in pinned host memory, in frames a second. Like
// kernel-bench, measures 40 frames in a graph, over frames that exceed the L2 cache. The time includes the lists of
// pixels, which the graph copies to the device, but for regions that stay. Exits with 77 if there is no
// device.
//
// cpu: 4K RGBA in host memory, filtered in place on all processors, the median of 15 frames.
//
// --only: the lines of a table that contain TEXT.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <utility>

#include "../kernels/workers.h"
#include "graph_timing.h"
#include "plan/polygon.h"

namespace cudaconv::bench {

namespace {

constexpr int kWidth = 3840, kHeight = 2160;

FilterSettings settings(Mask mask, int size, double sigma = kAutoSigma) {
  FilterSettings s;
  s.mask = mask;
  s.size = size;
  s.sigma = sigma;
  return s;
}

Regions rectangles(std::vector<Region> list) {
  Regions regions;
  regions.active = true;
  regions.region = std::move(list);
  return regions;
}

// A region with the shape of the frame and `part` of its area.
Regions part_of_frame(double part) {
  const int w = static_cast<int>(kWidth * std::sqrt(part)), h = static_cast<int>(kHeight * std::sqrt(part));
  return rectangles({{kWidth / 3, kHeight / 3, w, h}});
}

// Squares on a grid, moved by some pixels. They do not touch.
std::vector<Region> squares(int count, int least, int most) {
  std::vector<Region> list;
  std::mt19937_64 random(4);
  for (int i = 0; i < count; i++) {
    const int side = least + static_cast<int>(random() % (most - least + 1));
    list.push_back(
        {i % 28 * 137 + static_cast<int>(random() % 30), i / 28 * 119 + static_cast<int>(random() % 20), side, side});
  }
  return list;
}

// A backend and frames for it. Times are in microseconds per frame.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual const char *memory() const = 0;
  virtual double copy() = 0;
  // `stay`: the regions are those of the frames before.
  virtual double filter(const std::vector<PlannedRegions> &planned, bool in_place, bool stay) = 0;
};

class DeviceTimer : public Timer {
 public:
  explicit DeviceTimer(const FrameLayout &layout) : frames_(layout) {
    check(cudaStreamCreate(&stream_), "cudaStreamCreate");
  }
  const char *memory() const override { return "device"; }
  double copy() override {
    return time_graph(stream_, [&](int i) {
      const PlaneView from = frames_.source(i).plane[0], to = frames_.target(i).plane[0];
      check(cudaMemcpyAsync(to.data, from.data, frames_.bytes(), cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
    });
  }
  double filter(const std::vector<PlannedRegions> &planned, bool in_place, bool stay) override {
    const auto backend = make_cuda_backend(stream_);
    Ticket last = 0;
    for (int i = 0; stay && i < kLaunches; i++)
      last = backend->submit(planned, frames_.target(i), frames_.target(i), nullptr);
    backend->retire(last);
    int calls = 0;
    return time_graph(stream_, [&](int i) {
      const FrameView target = frames_.target(i);
      const Ticket ticket = backend->submit(planned, in_place ? target : frames_.source(i), target, nullptr);
      if (calls++ < 2) backend->retire(ticket);  // later frames are captured and do not complete
    });
  }

 private:
  const Frames frames_;
  cudaStream_t stream_ = nullptr;
};

class HostTimer : public Timer {
 public:
  HostTimer() : backend_(make_cpu_backend(std::ref(workers_), kThreads)) {
    std::mt19937 random(1);
    for (auto *frames : {&source_, &target_})
      for (std::vector<uint8_t> &frame : *frames) {
        frame.resize(kBytes);
        std::generate(frame.begin(), frame.end(), std::ref(random));
      }
  }
  const char *memory() const override { return "host"; }
  double copy() override {
    return median_time([&](int i) {
      workers_(kThreads, [&](int t) {
        const size_t begin = kBytes / kThreads * t;
        std::memcpy(target_[i].data() + begin, source_[i].data() + begin, kBytes / kThreads);
      });
    });
  }
  double filter(const std::vector<PlannedRegions> &planned, bool in_place, bool) override {
    return median_time([&](int i) {
      const FrameView target = view_of(target_[i]);
      backend_->retire(backend_->submit(planned, in_place ? target : view_of(source_[i]), target, nullptr));
    });
  }

 private:
  static constexpr size_t kBytes = size_t{4} * kWidth * kHeight;
  static constexpr int kFrames = 4, kRounds = 15;

  static FrameView view_of(std::vector<uint8_t> &frame) {
    FrameView view;
    view.plane[0] = {frame.data(), 4 * kWidth};
    return view;
  }
  // f(i): with the i-th pair of frames.
  template <typename F>
  static double median_time(F f) {
    std::vector<double> us;
    for (int i = 0; i < kRounds + kFrames; i++) {
      const auto begin = std::chrono::steady_clock::now();
      f(i % kFrames);
      const double time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
      if (i >= kFrames) us.push_back(time);
    }
    std::nth_element(us.begin(), us.begin() + kRounds / 2, us.end());
    return us[kRounds / 2];
  }

  const int kThreads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  test::Workers workers_{kThreads};
  std::unique_ptr<Backend> backend_;
  std::vector<uint8_t> source_[kFrames], target_[kFrames];
};

class RegionBench {
 public:
  RegionBench(Timer *timer, std::string only)
      : layout_(layout_of("RGBA", kWidth, kHeight)), timer_(timer), only_(std::move(only)) {
    copy_ = timer_->copy();
    std::printf("4K RGBA in %s memory, us; a copy of the frame: %.2f\n", timer_->memory(), copy_);
    std::printf("%-44s %9s %9s %9s\n", "", "us", "x copy", "% whole");
  }

  void run() {
    const std::pair<const char *, FilterSettings> filters[] = {{"gauss 31", settings(Mask::Gauss, 31)},
                                                               {"median 5", settings(Mask::Median, 5)},
                                                               {"dilate 31", settings(Mask::Dilate, 31)},
                                                               {"mosaic 32", settings(Mask::Mosaic, 32)},
                                                               {"fill", settings(Mask::Fill, 0)}};
    for (const auto &[name, s] : filters) {
      const std::string filter = name;
      const auto plan = make_plan(s, layout_);
      whole_ = 0;
      time(filter + ", the whole frame", {{plan, {}}}, false);
      for (const double part : {0.5, 0.25, 0.1, 0.01}) {
        const std::string text = filter + ", a region of " + std::to_string(static_cast<int>(100 * part)) + " %";
        time(text, {{plan, part_of_frame(part)}}, true);
        if (part == 0.1) time(text + ", not writable", {{plan, part_of_frame(part)}}, false);
      }
    }
    const auto gauss = make_plan(settings(Mask::Gauss, 31), layout_);
    whole_ = 0;
    time("gauss 31", {{gauss, {}}}, false);
    const std::vector<Region> many = squares(500, 64, 64);
    time("gauss 31, one region of the same area", {{gauss, part_of_frame(500.0 * 64 * 64 / kWidth / kHeight)}}, true);
    time("gauss 31, 500 regions of 64x64", {{gauss, rectangles(many)}}, true);
    Regions ellipses = rectangles(many);
    ellipses.ellipse = true;
    time("gauss 31, 500 ellipses of 64x64", {{gauss, ellipses}}, true);
    time("gauss 31, 10 regions of 64x64", {{gauss, rectangles(squares(10, 64, 64))}}, true);
    time("gauss, 10 of 32 to 96, each its sigma", by_strength(squares(10, 32, 96)), true);
    time("gauss, 500 of 32 to 96, each its sigma", by_strength(squares(500, 32, 96)), true);
    time("gauss 31, 10,000 regions of 64x64", {{gauss, rectangles(scattered(10000))}}, true);
    time("gauss 31, a mask of the frame's size", {{gauss, disks()}}, true);
    time("gauss 31, a polygon of 10 %", {{gauss, diamond(0.1)}}, true);
    time("gauss 31, a polygon of 10 % that stays", {{gauss, diamond(0.1)}}, true, true);
    time("gauss 31, all but a region of 10 %", {{gauss, inverted(part_of_frame(0.1))}}, true);
    for (const auto &[name, s] : {filters[0], filters[3]}) {
      const auto plan = make_plan(s, layout_);
      for (const int count : {1, 8}) {
        const std::string regions = std::string(name) + ", " + std::to_string(count) + " of ";
        time(regions + "200x200 that stay", {{plan, apart(count, 200, 0)}}, true, true);
        time(regions + "200x200, feather 16, that stay", {{plan, apart(count, 200, 16)}}, true, true);
        time(regions + "200x200, feather 16", {{plan, apart(count, 200, 16)}}, true);
        time(regions + "232x232 that stay", {{plan, apart(count, 232, 0)}}, true, true);
      }
    }
  }

 private:
  // Plans in steps of a quarter of an octave, as roi-scale=0.09 makes them.
  std::vector<PlannedRegions> by_strength(const std::vector<Region> &list) {
    std::vector<PlannedRegions> planned;
    std::vector<int> steps;
    for (const Region &r : list) {
      const int step = static_cast<int>(std::ceil(4 * std::log2(r.width * 0.09)));
      size_t i = 0;
      while (i < steps.size() && steps[i] != step) i++;
      if (i == steps.size()) {
        steps.push_back(step);
        planned.push_back({make_plan(settings(Mask::Gauss, 0, std::exp2(step / 4.0)), layout_), rectangles({})});
      }
      planned[i].regions.region.push_back(r);
    }
    return planned;
  }

  static std::vector<Region> scattered(int count) {
    std::vector<Region> list;
    std::mt19937_64 random(5);
    for (int i = 0; i < count; i++)
      list.push_back({static_cast<int>(random() % kWidth), static_cast<int>(random() % kHeight), 64, 64});
    return list;
  }

  // A polygon with `part` of the frame's area.
  static Regions diamond(double part) {
    const double x = kWidth / 2.0, y = kHeight / 2.0, across = x * std::sqrt(2 * part), down = y * std::sqrt(2 * part);
    Regions regions = rectangles({});
    regions.pixels = {
        polygon_pixels({{x - across, y}, {x, y - down}, {x + across, y}, {x, y + down}}, 0, kWidth, kHeight)};
    return regions;
  }

  // Squares that are out of reach of each other.
  static Regions apart(int count, int side, int feather) {
    Regions regions = rectangles({});
    regions.feather = 256 * feather;
    for (int i = 0; i < count; i++) regions.region.push_back({101 + i % 4 * 901, 203 + i / 4 * 1003, side, side});
    return regions;
  }

  static Regions inverted(Regions regions) {
    regions.invert = true;
    return regions;
  }

  // A mask whose members cover half of the frame.
  static Regions disks() {
    Regions regions = rectangles({});
    RegionMask mask;
    mask.box = {0, 0, kWidth, kHeight};
    mask.width = kWidth;
    mask.height = kHeight;
    for (int y = 0; y < kHeight; y++)
      for (int x = 0; x < kWidth; x++) {
        const int dx = x % 240 - 120, dy = y % 240 - 120;
        mask.member.push_back(dx * dx + dy * dy < 96 * 96);
      }
    regions.mask.push_back(std::move(mask));
    return regions;
  }

  // Prints a line. Lines are compared with the first line after whole_ = 0.
  void time(const std::string &what, const std::vector<PlannedRegions> &planned, bool in_place, bool stay = false) {
    if (what.find(only_) == std::string::npos) return;
    const double us = timer_->filter(planned, in_place, stay);
    std::printf("%-44s %9.2f %9.2f", what.c_str(), us, us / copy_);
    std::printf(whole_ ? " %8.1f\n" : "\n", 100 * us / whole_);
    std::fflush(stdout);
    if (!whole_) whole_ = us;
  }

  const FrameLayout layout_;
  Timer *const timer_;
  const std::string only_;
  double copy_ = 0, whole_ = 0;
};

// Frames a second of NV12 in pinned host memory, four in flight, each filtered in place.
double host_frames(const FilterSettings &s, const Regions &regions) {
  const FrameLayout layout = layout_of("NV12", kWidth, kHeight);
  const auto plan = make_plan(s, layout);
  const auto backend = make_cuda_backend();
  constexpr int kFrames = 8, kInFlight = 4, kCount = 2000;
  std::vector<FrameView> source(kFrames), target(kFrames);
  for (auto *views : {&source, &target})
    for (FrameView &view : *views) {
      auto *data = static_cast<uint8_t *>(new_pinned_memory(kWidth * kHeight * 3 / 2));
      std::memset(data, 77, kWidth * kHeight * 3 / 2);
      view.pinned = true;
      view.plane[0] = {data, kWidth};
      view.plane[1] = {data + kWidth * kHeight, kWidth};
    }
  std::deque<Ticket> tickets;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCount; i++) {
    const FrameView &to = target[i % kFrames];
    tickets.push_back(backend->submit(plan, regions.active ? to : source[i % kFrames], to, regions));
    if (tickets.size() < kInFlight) continue;
    backend->retire(tickets.front());
    tickets.pop_front();
  }
  while (!tickets.empty()) {
    backend->retire(tickets.front());
    tickets.pop_front();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (auto *views : {&source, &target})
    for (FrameView &view : *views) delete_pinned_memory(view.plane[0].data);
  return kCount / seconds;
}

}  // namespace

int run(const std::string &backend, const std::string &only) {
  if (backend == "cpu") {
    HostTimer timer;
    RegionBench(&timer, only).run();
    return 0;
  }
  if (cuda_device_count() == 0) {
    std::printf("SKIP: no CUDA device\n");
    return 77;
  }
  DeviceTimer timer(layout_of("RGBA", kWidth, kHeight));
  RegionBench(&timer, only).run();
  if (!only.empty()) return 0;
  const FilterSettings gauss = settings(Mask::Gauss, 31);
  const double whole = host_frames(gauss, {});
  std::printf("4K NV12 in pinned host memory, frames a second: %.0f\n", whole);
  for (const double part : {0.1, 0.01}) {
    const double regions = host_frames(gauss, part_of_frame(part));
    std::printf("  a region of %g %%, in place: %.0f, %.1f times as many\n", 100 * part, regions, regions / whole);
  }
  return 0;
}

}  // namespace cudaconv::bench

int main(int argc, char **argv) {
  std::string backend = "cuda", only;
  for (int i = 1; i < argc; i++) {
    const std::string option = argv[i], value = option.substr(option.find('=') + 1);
    if (option == "--backend=cuda" || option == "--backend=cpu") {
      backend = value;
    } else if (option.rfind("--only=", 0) == 0) {
      only = value;
    } else {
      std::fprintf(stderr, "usage: %s [--backend=cuda|cpu] [--only=TEXT]\n", argv[0]);
      return 2;
    }
  }
  return cudaconv::bench::run(backend, only);
}
