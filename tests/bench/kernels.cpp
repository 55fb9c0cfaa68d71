// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compares the time of the CUDA kernels with a copy of the same bytes on the device and, if built in, with NPP.
//
//   kernel-bench [--table=goals,formats,widths,packed,seeds,sizes,hats] [--size=WxH] [--only=TEXT,TEXT] [--json=FILE]
//
// Figures are the time of the kernels alone: 40 launches in a graph, the median of 15 replays. Frames have random
// contents, and together exceed the L2 cache several times. A copy is a cudaMemcpyAsync() within the device, and ratios
// are to the copy in the same run. Exits with 77 if there is no device.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "graph_timing.h"
#include "peers.h"

namespace cudaconv::bench {

namespace {

struct Case {
  std::string label;
  FilterSettings settings;
};

FilterSettings settings(Mask mask, int size = 0) {
  FilterSettings s;
  s.mask = mask;
  s.size = size;
  s.chroma = Chroma::Filter;
  s.alpha = Alpha::Filter;
  return s;
}

FilterSettings dilation(Shape shape, int side) {
  FilterSettings s = settings(Mask::Dilate, side);
  s.shape = shape;
  return s;
}

// The settings with the element's defaults for chroma and alpha.
FilterSettings with_defaults(FilterSettings s) {
  s.chroma = FilterSettings().chroma;
  s.alpha = FilterSettings().alpha;
  return s;
}

FilterSettings keeping_edges(Mask mask) {
  FilterSettings s = settings(mask);
  s.border = Border::Keep;
  return s;
}

// A mask of random fractions.
FilterSettings fractions(int side) {
  FilterSettings s = settings(Mask::Custom);
  s.coefficients.width = s.coefficients.height = side;
  std::mt19937 random(side);
  for (int i = 0; i < side * side; i++) s.coefficients.value.push_back(random() / 4294967296.0 - 0.25);
  return s;
}

// A mask of random coefficients of `bits` bits. Its divisor is a power of two, so that NPP can divide by it.
FilterSettings custom(int side, int bits) {
  FilterSettings s = settings(Mask::Custom);
  s.coefficients.width = s.coefficients.height = side;
  std::mt19937 random(side);
  const int reach = 1 << (bits - 1);
  for (int i = 0; i < side * side; i++)
    s.coefficients.value.push_back(static_cast<double>(static_cast<int>(random() % (2 * reach)) - reach));
  s.divisor = std::ldexp(1.0, bits + static_cast<int>(std::ceil(std::log2(side))) - 1);
  return s;
}

// A dilation by an element of random members, about half of the square.
FilterSettings element(int side) {
  FilterSettings s = settings(Mask::Dilate);
  s.shape = Shape::Custom;
  s.coefficients.width = s.coefficients.height = side;
  std::mt19937 random(side);
  for (int i = 0; i < side * side; i++) s.coefficients.value.push_back(random() % 2);
  return s;
}

// The labels of one case for each structure of kernels.
const std::vector<std::string> kUsual = {"gauss5",   "sobel l2", "gauss7",     "median 3",
                                         "gauss 15", "box 31",   "custom 7x7", "custom 11x11"};

std::vector<Case> goal_cases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string &label, FilterSettings s) { cases.push_back({label, std::move(s)}); };
  const auto l1 = [](Mask mask) {
    FilterSettings s = settings(mask);
    s.magnitude = Magnitude::L1;
    return s;
  };
  add("box3", settings(Mask::Box3));
  add("box5", settings(Mask::Box5));
  add("gauss3", settings(Mask::Gauss3));
  add("gauss5", settings(Mask::Gauss5));
  add("sharpen", settings(Mask::Sharpen));
  add("laplace", settings(Mask::Laplace));
  add("emboss", settings(Mask::Emboss));
  add("sobel-x", settings(Mask::SobelX));
  add("sobel l1", l1(Mask::Sobel));
  add("scharr-x", settings(Mask::ScharrX));
  add("scharr l1", l1(Mask::Scharr));
  add("prewitt l1", l1(Mask::Prewitt));
  add("dilate 3", settings(Mask::Dilate, 3));
  add("dilate 5", settings(Mask::Dilate, 5));
  add("erode 5", settings(Mask::Erode, 5));
  add("sobel l2", settings(Mask::Sobel));
  add("scharr l2", settings(Mask::Scharr));
  add("log5", settings(Mask::Log5));
  add("kirsch", settings(Mask::Kirsch));
  add("roberts", settings(Mask::Roberts));
  add("gauss7", settings(Mask::Gauss7));
  add("gauss9", settings(Mask::Gauss9));
  add("box7", settings(Mask::Box7));
  add("dilate 7", settings(Mask::Dilate, 7));
  add("dilate 9", settings(Mask::Dilate, 9));
  add("dilate 15", settings(Mask::Dilate, 15));
  add("dilate 31", settings(Mask::Dilate, 31));
  add("open 3", settings(Mask::Open, 3));
  add("gradient 3", settings(Mask::Gradient, 3));
  add("tophat 3", settings(Mask::Tophat, 3));
  add("median 3", settings(Mask::Median, 3));
  add("median 5", settings(Mask::Median, 5));
  for (int size : {7, 9, 11, 15, 31, 63, 127}) add("median " + std::to_string(size), settings(Mask::Median, size));
  for (int size : {3, 5, 9, 15, 31}) add("bilateral " + std::to_string(size), settings(Mask::Bilateral, size));
  for (int size : {4, 16, 17, 64, 255}) add("mosaic " + std::to_string(size), settings(Mask::Mosaic, size));
  add("gauss 15", settings(Mask::Gauss, 15));
  add("gauss 31", settings(Mask::Gauss, 31));
  add("box 15", settings(Mask::Box, 15));
  add("box 31", settings(Mask::Box, 31));
  for (int side : {7, 11, 15, 31}) add("custom " + std::to_string(side) + "x" + std::to_string(side), custom(side, 8));
  for (int side : {7, 15})
    add("custom " + std::to_string(side) + "x" + std::to_string(side) + " 16-bit", custom(side, 16));
  add("custom 7x7 fractions", fractions(7));
  add("unsharp 5", settings(Mask::Unsharp, 5));
  add("unsharp 15", settings(Mask::Unsharp, 15));
  add("dilate cross 5", dilation(Shape::Cross, 5));
  for (int size : {15, 31, 63, 127, 255}) add("dilate ellipse " + std::to_string(size), dilation(Shape::Ellipse, size));
  for (int size : {31, 255}) add("dilate cross " + std::to_string(size), dilation(Shape::Cross, size));
  for (int size : {63, 127, 129, 255}) add("dilate " + std::to_string(size), settings(Mask::Dilate, size));
  for (int side : {15, 31}) add("dilate custom " + std::to_string(side), element(side));
  add("gauss5 keep", keeping_edges(Mask::Gauss5));
  for (const std::string &label : kUsual) {
    const auto like = std::find_if(cases.begin(), cases.end(), [&](const Case &c) { return c.label == label; });
    add(label + " defaults", with_defaults(like->settings));
  }
  for (const char *label : {"gauss5", "median 3", "dilate 15"}) {
    const auto like = std::find_if(cases.begin(), cases.end(), [&](const Case &c) { return c.label == label; });
    add(std::string(label) + " threshold", like->settings);
    cases.back().settings.threshold = 0.1;
  }
  for (int size : {5, 9, 15})  // alpha, which is not filtered then, takes no time
    add("bilateral " + std::to_string(size) + " defaults", with_defaults(settings(Mask::Bilateral, size)));
  return cases;
}

// Differences of two extrema, beside an `open`, which is two extrema.
std::vector<Case> hat_cases() {
  std::vector<Case> cases;
  for (const auto &[name, shape] : {std::pair("", Shape::Rect), {" ellipse", Shape::Ellipse}, {" cross", Shape::Cross}})
    for (int size : {3, 5, 7, 15, 31, 63, 127})
      for (const auto &[label, mask] : {std::pair("open", Mask::Open),
                                        {"gradient", Mask::Gradient},
                                        {"tophat", Mask::Tophat},
                                        {"blackhat", Mask::Blackhat}}) {
        cases.push_back({std::string(label) + name + " " + std::to_string(size), settings(mask, size)});
        cases.back().settings.shape = shape;
      }
  return cases;
}

FilterSettings with_sigma(Mask mask, double sigma) {
  FilterSettings s = settings(mask);
  s.sigma = sigma;
  return s;
}

FilterSettings weighted(FilterSettings s) {
  s.alpha = Alpha::Weighted;
  return s;
}

// Masks of all sizes.
std::vector<Case> size_cases() {
  std::vector<Case> cases;
  const auto number = [](double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", v);
    return std::string(text);
  };
  for (double sigma : {1., 2., 4., 5., 6., 8., 10., 11., 13., 16., 21., 25., 32., 50., 64., 100., 128., 180., 250.})
    cases.push_back({"gauss sigma " + number(sigma), with_sigma(Mask::Gauss, sigma)});
  for (double sigma : {2., 8., 25., 100.})
    cases.push_back({"unsharp sigma " + number(sigma), with_sigma(Mask::Unsharp, sigma)});
  for (int side : {3, 5, 7, 9, 11, 15, 21, 31, 63, 127})
    cases.push_back({"median " + std::to_string(side), settings(Mask::Median, side)});
  for (int side : {3, 7, 15, 31, 63, 127, 255}) {
    const std::string text = std::to_string(side);
    cases.push_back({"dilate " + text, settings(Mask::Dilate, side)});
    cases.push_back({"dilate ellipse " + text, dilation(Shape::Ellipse, side)});
    cases.push_back({"dilate cross " + text, dilation(Shape::Cross, side)});
    cases.push_back({"open ellipse " + text, settings(Mask::Open, side)});
    cases.back().settings.shape = Shape::Ellipse;
  }
  for (int side : {7, 15, 31}) {
    cases.push_back({"dilate custom " + std::to_string(side), element(side)});
    cases.push_back({"custom " + std::to_string(side) + " fractions", fractions(side)});
  }
  for (int side : {15, 31, 63, 127, 255, 511, 1501})
    cases.push_back({"box " + std::to_string(side), settings(Mask::Box, side)});
  for (int size : {4, 16, 17, 32, 64, 255})
    cases.push_back({"mosaic " + std::to_string(size), settings(Mask::Mosaic, size)});
  cases.push_back({"mosaic 32 defaults", with_defaults(settings(Mask::Mosaic, 32))});
  cases.push_back({"gauss5 weighted", weighted(settings(Mask::Gauss5))});
  for (int size : {15, 31})
    cases.push_back({"gauss " + std::to_string(size) + " weighted", weighted(settings(Mask::Gauss, size))});
  return cases;
}

// A pause between cases, since a device lowers its clock under heavy load.
constexpr std::chrono::milliseconds kRest{150};

struct Result {
  std::string table, format, label, method;
  int width, height;
  double microseconds, copy, npp;  // npp: 0 if NPP has no such function
  size_t bytes;                    // bytes read and written
  std::string kernels;             // the structure that auto selected, see kernels/cuda/dispatch.h; empty: the method
};

class Bench {
 public:
  Bench(std::string only) : only_(std::move(only)) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~Bench() { cudaStreamDestroy(stream_); }

  const std::vector<Result> &results() const { return results_; }

  // Measures each case with each method, and prints one line per case.
  void run(const std::string &table, const std::string &format, int width, int height, const std::vector<Case> &cases,
           const std::vector<Method> &methods) {
    const FrameLayout layout = layout_of(format, width, height);
    const Frames frames(layout);
    const double copy = time_graph(stream_, [&](int i) {
      check(cudaMemcpyAsync(frames.target(i).plane[0].data, frames.source(i).plane[0].data, frames.bytes(),
                            cudaMemcpyDeviceToDevice, stream_),
            "cudaMemcpyAsync");
    });
    std::printf("\n%s %s %dx%d: a copy takes %.2f us, %.0f GB/s\n%-22s", table.c_str(), format.c_str(), width, height,
                copy, 2 * frames.bytes() / copy / 1e3, "us (x copy)");
    for (Method m : methods) std::printf(" %17s", method_nick(m));
    std::printf(" %17s\n", "NPP");
    for (const Case &c : cases) {
      if (!wanted(c.label)) continue;
      std::printf("%-22s", c.label.c_str());
      std::this_thread::sleep_for(kRest);
      const double npp = time_npp(frames, layout, c.settings);
      std::string taken;
      for (Method method : methods) {
        FilterSettings s = c.settings;
        s.method = method;
        try {
          const double us = time_method(frames, make_plan(s, layout));
          if (method == Method::Auto) taken = kernels_;
          results_.push_back({table, format, c.label, method_nick(method), width, height, us, copy, npp,
                              2 * frames.bytes(), kernels_});
          std::printf(" %9.2f (%5.2f)", us, us / copy);
        } catch (const Error &error) {
          if (error.kind() != Error::Kind::Settings) throw;
          std::printf(" %17s", "-");
        }
        std::fflush(stdout);
      }
      if (npp > 0)
        std::printf(" %9.2f (%5.2f)", npp, npp / copy);
      else
        std::printf(" %17s", "-");
      std::printf(" %s\n", taken.c_str());
    }
  }

 private:
  bool wanted(const std::string &label) const {
    for (size_t begin = 0, end; begin <= only_.size(); begin = end + 1) {
      end = std::min(only_.find(',', begin), only_.size());
      if (label.find(only_.substr(begin, end - begin)) != std::string::npos) return true;
    }
    return false;
  }

  double time_method(const Frames &frames, const std::shared_ptr<const Plan> &plan) {
    const auto backend = make_cuda_backend(stream_);
    int calls = 0;
    const double us = time_graph(stream_, [&](int i) {
      const Ticket ticket = backend->submit(plan, frames.source(i), frames.target(i));
      if (calls++ < 2) backend->retire(ticket);  // later frames are captured into a graph and do not complete
    });
    const char *kernels = backend->stats().kernels;
    kernels_ = kernels ? kernels : "";
    return us;
  }

  double time_npp(const Frames &frames, const FrameLayout &layout, const FilterSettings &s) {
    if (layout.planes != 1 || layout.plane[0].container != Container::U8) return 0;
    const auto filter = npp_filter(s, layout.plane[0].channels);
    if (!filter) return 0;
    try {
      return time_graph(stream_, [&](int i) {
        const PlaneView from = frames.source(i).plane[0], to = frames.target(i).plane[0];
        (*filter)(from.data, static_cast<int>(from.pitch), to.data, static_cast<int>(to.pitch), layout.plane[0].width,
                  layout.plane[0].height, stream_);
      });
    } catch (const std::exception &e) {
      std::fprintf(stderr, "NPP: %s\n", e.what());
      return 0;
    }
  }

  std::string only_, kernels_;
  cudaStream_t stream_ = nullptr;
  std::vector<Result> results_;
};

void write_json(const char *path, const std::vector<Result> &results) {
  std::FILE *file = std::fopen(path, "w");
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::fprintf(file, "{\"device\": \"%s\", \"multiprocessors\": %d, \"results\": [", device.name,
               device.multiProcessorCount);
  const char *separator = "\n";
  for (const Result &r : results) {
    std::fprintf(file,
                 "%s  {\"table\": \"%s\", \"format\": \"%s\", \"width\": %d, \"height\": %d, \"filter\": \"%s\", "
                 "\"method\": \"%s\", \"us\": %.3f, \"copy_us\": %.3f, \"npp_us\": %.3f, \"gb_per_s\": %.1f, "
                 "\"kernels\": \"%s\"}",
                 separator, r.table.c_str(), r.format.c_str(), r.width, r.height, r.label.c_str(), r.method.c_str(),
                 r.microseconds, r.copy, r.npp, r.bytes / r.microseconds / 1e3, r.kernels.c_str());
    separator = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

int main(int argc, char **argv) {
  std::string tables = "goals,formats,widths,packed,seeds,sizes,hats", only, formats;
  const char *json = nullptr;
  std::vector<std::pair<int, int>> sizes = {{1920, 1080}, {3840, 2160}, {7680, 4320}};  // for goals and formats
  for (int i = 1; i < argc; i++) {
    if (!std::strncmp(argv[i], "--table=", 8))
      tables = argv[i] + 8;
    else if (!std::strncmp(argv[i], "--only=", 7))
      only = argv[i] + 7;
    else if (!std::strncmp(argv[i], "--format=", 9))
      formats = std::string(",") + (argv[i] + 9) + ",";
    else if (!std::strncmp(argv[i], "--json=", 7))
      json = argv[i] + 7;
    else if (int w, h; std::sscanf(argv[i], "--size=%dx%d", &w, &h) == 2)
      sizes = {{w, h}};
    else {
      std::fprintf(
          stderr,
          "usage: %s [--table=goals,formats,widths,packed,seeds,sizes,hats] [--format=FORMAT,FORMAT] [--size=WxH] "
          "[--only=TEXT,TEXT] [--json=FILE]\n",
          argv[0]);
      return 2;
    }
  }
  std::string why;
  if (cuda_device_count(&why) == 0) {
    std::printf("SKIP: %s\n", why.c_str());
    return 77;
  }
  const auto wanted = [&](const char *table) { return tables.find(table) != std::string::npos; };
  const std::vector<Method> all = {Method::Auto,        Method::Global,  Method::Constant, Method::Tiled,
                                   Method::TiledCached, Method::Blocked, Method::Cascade,  Method::Separable};
  Bench bench(only);
  if (wanted("goals"))
    for (const auto &[w, h] : sizes) bench.run("goals", "RGBA", w, h, goal_cases(), {Method::Auto});
  if (wanted("formats"))
    for (const char *format : {"GRAY8", "NV12", "RGB", "P010_10LE", "RGBA64_LE"})
      for (const auto &[w, h] : sizes) {
        if (!formats.empty() && formats.find(std::string(",") + format + ",") == std::string::npos) continue;
        if (w > 4000 && !std::strcmp(format, "RGB")) continue;
        bench.run("formats", format, w, h, goal_cases(), {Method::Auto});
      }
  std::vector<Case> usual;
  for (Case &c : goal_cases())
    if (std::find(kUsual.begin(), kUsual.end(), c.label) != kUsual.end() || c.label == "dilate 5" ||
        c.label == "open 3")
      usual.push_back(std::move(c));
  if (wanted("widths"))  // rows whose length is not a multiple of 16 bytes
    for (const char *format : {"RGBA", "NV12", "P010_10LE"})
      for (const auto &[w, h] : {std::pair(1918, 1080), std::pair(1366, 768), std::pair(854, 480)})
        bench.run("widths", format, w, h, usual, {Method::Auto});
  if (wanted("packed")) {  // samples that are not dense
    for (Case &c : usual) c.settings.alpha = Alpha::Copy;
    for (const char *format : {"YUY2", "RGB10A2_LE"})
      for (const auto &[w, h] : {std::pair(1920, 1080), std::pair(3840, 2160)})
        bench.run("packed", format, w, h, usual, {Method::Auto});
  }
  if (wanted("sizes"))
    for (const char *format : {"RGBA", "GRAY8", "P010_10LE", "GRAY16_LE", "RGBA64_LE"})
      for (const auto &[w, h] : {std::pair(1920, 1080), std::pair(3840, 2160)}) {
        if (!formats.empty() && formats.find(std::string(",") + format + ",") == std::string::npos) continue;
        if (sizes.size() == 1 && sizes[0].first != w) continue;
        if (w < 3840 && std::strcmp(format, "RGBA")) continue;
        bench.run("sizes", format, w, h, size_cases(), {Method::Auto});
      }
  if (wanted("hats"))
    for (const char *format : {"RGBA", "GRAY8", "P010_10LE"})
      bench.run("hats", format, 3840, 2160, hat_cases(), {Method::Auto});
  if (wanted("seeds")) {
    std::vector<Case> convolutions;
    for (int side : {5, 7, 11})
      convolutions.push_back({"custom " + std::to_string(side) + "x" + std::to_string(side), custom(side, 8)});
    bench.run("seeds", "RGB", 1024, 1024, convolutions, all);
    bench.run("seeds", "GRAY8", 4096, 2048, {{"gauss5", settings(Mask::Gauss5)}, {"custom 5x5", custom(5, 8)}}, all);
    bench.run(
        "seeds", "GRAY8", 8192, 8192,
        {{"dilate 5", settings(Mask::Dilate, 5)}, {"sobel", settings(Mask::Sobel)}, {"gauss3", settings(Mask::Gauss3)}},
        all);
  }
  if (json) write_json(json, bench.results());
  return 0;
}

}  // namespace

int run(int argc, char **argv) {
  try {
    return main(argc, argv);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace cudaconv::bench

int main(int argc, char **argv) {
  return cudaconv::bench::run(argc, argv);
}
