// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "backend.h"
#include "cases.h"
#include "workers.h"
#ifdef HAVE_DEVICE_FRAMES
#include "device_frames.h"
#endif

namespace cudaconv::test {

namespace {

constexpr int kWidth = 1920, kHeight = 1080;
constexpr int kWarmUp = 3, kRuns = 41, kFewRuns = 5;
constexpr double kEnough = 1e9;  // nanoseconds; after this total, kFewRuns are enough
// Frames of one plane that are filtered in turn. They are 2 x 32 frames of at least 2 MB, so that none is still in a
// cache when its turn comes again.
constexpr int kFrames = 32;

struct Filter {
  const char *name;
  FilterSettings settings;
};

std::vector<Filter> filters() {
  std::vector<Filter> list;
  const auto add = [&](const char *name, Mask mask, int size = 0, Shape shape = Shape::Rect) {
    FilterSettings s;
    s.mask = mask;
    s.size = size;
    s.shape = shape;
    list.push_back({name, s});
  };
  add("gauss3", Mask::Gauss3);
  add("gauss5", Mask::Gauss5);
  add("gauss9", Mask::Gauss9);
  add("box 15", Mask::Box, 15);
  add("gauss 31", Mask::Gauss, 31);
  add("sharpen", Mask::Sharpen);
  add("sobel", Mask::Sobel);
  add("kirsch", Mask::Kirsch);
  add("dilate 3", Mask::Dilate);
  add("dilate 5", Mask::Dilate, 5);
  add("dilate 5 ellipse", Mask::Dilate, 5, Shape::Ellipse);
  add("open 3", Mask::Open);
  add("median 3", Mask::Median, 3);
  add("median 5", Mask::Median, 5);
  for (const char *name : {"mosaic 4", "mosaic 16", "mosaic 64", "mosaic 255"})
    add(name, Mask::Mosaic, std::atoi(std::strchr(name, ' ')));
  return list;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

template <typename F>
double wall_ns(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

struct Bench {
  Backend &backend;
  const Format &format;
  std::vector<GuardedFrame> host;         // kFrames sources, then kFrames targets
  std::vector<FrameView> source, target;  // views of `host`, or of device memory
  double copy_ns = 0;

  // Nanoseconds per frame: the GPU's own time, or wall-clock time.
  double time(const std::shared_ptr<const Plan> &plan) {
    std::vector<double> times;
    double total = 0;
    for (int i = 0; i < kWarmUp + kRuns && (total < kEnough || i < kWarmUp + kFewRuns); i++) {
      const uint64_t before = backend.stats().device_ns;
      const double wall =
          wall_ns([&] { backend.retire(backend.submit(plan, source[i % kFrames], target[i % kFrames])); });
      total += wall;
      const double device = static_cast<double>(backend.stats().device_ns - before);
      if (i >= kWarmUp) times.push_back(std::string(backend.name()) == "cuda" ? device : wall);
    }
    return median(std::move(times));
  }

  void print(const std::vector<std::string> &masks, const std::vector<std::string> &chosen) {
    const FrameLayout layout = format.layout(kWidth, kHeight);
    std::printf("\n%s, %s %dx%d: a copy takes %.1f us\n%-18s", backend.name(), format.name, kWidth, kHeight,
                copy_ns / 1e3, "us (x copy)");
    std::vector<Method> columns;
    for (Method m : methods())
      if (wanted(chosen, method_nick(m))) columns.push_back(m);
    for (Method m : columns) std::printf(" %17s", method_nick(m));
    std::printf("\n");
    for (const Filter &f : filters()) {
      if (!wanted(masks, mask_nick(f.settings.mask))) continue;
      std::printf("%-18s", f.name);
      for (Method m : columns) {
        FilterSettings s = f.settings;
        s.method = m;
        try {
          const double ns = time(make_plan(s, layout));
          std::printf(" %8.1f (%6.2f)", ns / 1e3, ns / copy_ns);
        } catch (const Error &error) {
          if (error.kind() != Error::Kind::Settings) throw;
          std::printf(" %17s", "-");
        }
        std::fflush(stdout);
      }
      std::printf("\n");
    }
  }
};

std::vector<GuardedFrame> make_frames(const FrameLayout &layout, size_t alignment) {
  Random random = random_for(1, 0);
  std::vector<GuardedFrame> frames;
  for (int i = 0; i < 2 * kFrames; i++) {
    frames.emplace_back(layout, Placement{0, 0, alignment, 0});
    frames.back().fill(random);
  }
  return frames;
}

void bench_cpu(const Format &format, const std::vector<std::string> &masks, const std::vector<std::string> &chosen) {
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Workers workers(threads);
  const auto backend = make_cpu_backend(std::ref(workers), threads);
  Bench bench{*backend, format, make_frames(format.layout(kWidth, kHeight), 64), {}, {}};
  for (int i = 0; i < kFrames; i++) {
    bench.source.push_back(bench.host[i].view());
    bench.target.push_back(bench.host[kFrames + i].view());
  }
  std::vector<double> copies;
  for (int i = 0; i < kWarmUp + kRuns; i++) {
    const auto &from = bench.host[i % kFrames].blocks()[0].bytes;
    auto &to = bench.host[kFrames + i % kFrames].blocks()[0].bytes;
    const double ns = wall_ns([&] {
      workers(threads, [&](int k) {
        const size_t begin = from.size() * k / threads, end = from.size() * (k + 1) / threads;
        std::memcpy(to.data() + begin, from.data() + begin, end - begin);
      });
    });
    if (i >= kWarmUp) copies.push_back(ns);
  }
  bench.copy_ns = median(std::move(copies));
  std::printf("\n%d threads:", threads);
  bench.print(masks, chosen);
}

#ifdef HAVE_DEVICE_FRAMES
void bench_cuda(const Format &format, const std::vector<std::string> &masks, const std::vector<std::string> &chosen) {
  const auto backend = make_cuda_backend();
  Bench bench{*backend, format, make_frames(format.layout(kWidth, kHeight), 256), {}, {}};
  const DeviceFrames home;
  std::vector<DeviceFrame> device;
  for (const GuardedFrame &frame : bench.host) device.emplace_back(home, frame);
  for (int i = 0; i < kFrames; i++) {
    bench.source.push_back(device[i].view());
    bench.target.push_back(device[kFrames + i].view());
  }
  bench.copy_ns = device_copy_ns(bench.host[0].blocks()[0].bytes.size(), kRuns);
  bench.print(masks, chosen);
}
#endif

}  // namespace

bool wanted(const std::vector<std::string> &list, const std::string &name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

void run_bench(const std::vector<std::string> &backends, const std::vector<std::string> &masks,
               const std::vector<std::string> &chosen) {
  for (const Format &format : formats()) {
    if (std::strcmp(format.name, "GRAY8") && std::strcmp(format.name, "RGBA")) continue;
    if (wanted(backends, "cpu")) bench_cpu(format, masks, chosen);
#ifdef HAVE_DEVICE_FRAMES
    if (wanted(backends, "cuda") && cuda_device_count() > 0) bench_cuda(format, masks, chosen);
#endif
  }
}

}  // namespace cudaconv::test
