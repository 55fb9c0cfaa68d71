// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Compares the time of the CPU backend with OpenCV's functions on the same frames.
//
//   cpu-bench [--size=WxH] [--threads=N] [--format=FORMAT] [--only=TEXT] [--filters=NAME,...] [--minima] [--alone]
//             [--seconds=S] [--json=FILE]
//
// --only takes filters whose names contain a text, --filters those with exactly these names. --alone times no OpenCV:
// opencv.py compares with the OpenCV that Python has.
//
// Both sides use OpenCV's threads and take turns, so that other load on the machine affects both. Figures are medians,
// or minima, which other load affects least. Contents are random, borders replicated, and all channels filtered. If
// both define the filter in the same way, their bytes must be equal: differences are counted, and make the program
// fail.
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend.h"
#include "cpu/vector.h"

namespace cudaconv::bench {

namespace {

constexpr int kFrames = 4;  // pairs of frames, filtered in turn
constexpr int kFewestRounds = 9, kMostRounds = 201;
constexpr double kEnough = 0.5;  // seconds for a case, after the minimum number of rounds; see --seconds

using Peer = std::function<void(const cv::Mat &, cv::Mat &)>;

struct Case {
  std::string label;
  FilterSettings settings;
  Peer peer;
  int differs = 0;     // codes by which the peer may differ; -1: the peer filters differently
  Peer exact = {};     // compared instead of the peer, if the peer is inaccurate
  bool deep = false;   // whether the peer supports samples of 16 bits
  bool three = false;  // whether the peer supports three channels, not four
};

FilterSettings settings(Mask mask, int size = 0) {
  FilterSettings s;
  s.mask = mask;
  s.size = size;
  return s;
}

cv::Mat matrix(const Coefficients &c, double divisor) {
  cv::Mat kernel(c.height, c.width, CV_32F);
  for (int j = 0; j < c.height; j++)
    for (int i = 0; i < c.width; i++) kernel.at<float>(j, i) = static_cast<float>(c.value[j * c.width + i] / divisor);
  return kernel;
}

cv::Mat square(std::vector<float> value) {
  const int side = static_cast<int>(std::lround(std::sqrt(value.size())));
  return cv::Mat(value, true).reshape(1, side);
}

// OpenCV's correlation with a kernel. Intermediate images stay allocated from run to run.
Peer correlation(const cv::Mat &kernel, bool absolute) {
  const cv::Point centre(-1, -1);
  if (!absolute)
    return [=](const cv::Mat &in, cv::Mat &out) { cv::filter2D(in, out, -1, kernel, centre, 0, cv::BORDER_REPLICATE); };
  return [=, sums = cv::Mat()](const cv::Mat &in, cv::Mat &out) mutable {
    cv::filter2D(in, sums, CV_16S, kernel, centre, 0, cv::BORDER_REPLICATE);
    cv::convertScaleAbs(sums, out);
  };
}

// Derives an image: Sobel and Scharr with their own functions, other masks with their factors.
void derive(const cv::Mat &in, cv::Mat &out, int depth, const std::vector<float> &smooth, bool along_x) {
  if (smooth == std::vector<float>{1, 2, 1})
    cv::Sobel(in, out, depth, along_x, !along_x, 3, 1, 0, cv::BORDER_REPLICATE);
  else if (smooth == std::vector<float>{3, 10, 3})
    cv::Scharr(in, out, depth, along_x, !along_x, 1, 0, cv::BORDER_REPLICATE);
  else if (along_x)
    cv::sepFilter2D(in, out, depth, std::vector<float>{-1, 0, 1}, smooth, {-1, -1}, 0, cv::BORDER_REPLICATE);
  else
    cv::sepFilter2D(in, out, depth, smooth, std::vector<float>{-1, 0, 1}, {-1, -1}, 0, cv::BORDER_REPLICATE);
}

Peer derivative(std::vector<float> smooth, bool along_x) {
  return [=, sums = cv::Mat()](const cv::Mat &in, cv::Mat &out) mutable {
    derive(in, sums, CV_16S, smooth, along_x);
    cv::convertScaleAbs(sums, out);
  };
}

Peer magnitude(std::vector<float> smooth, Magnitude norm) {
  if (norm == Magnitude::L1)
    return [=, x = cv::Mat(), y = cv::Mat(), ax = cv::Mat(), ay = cv::Mat()](const cv::Mat &in, cv::Mat &out) mutable {
      derive(in, x, CV_16S, smooth, true);
      derive(in, y, CV_16S, smooth, false);
      cv::convertScaleAbs(x, ax);
      cv::convertScaleAbs(y, ay);
      cv::add(ax, ay, out);
    };
  return [=, x = cv::Mat(), y = cv::Mat(), root = cv::Mat()](const cv::Mat &in, cv::Mat &out) mutable {
    derive(in, x, CV_32F, smooth, true);
    derive(in, y, CV_32F, smooth, false);
    cv::magnitude(x, y, root);
    root.convertTo(out, CV_8U);
  };
}

Peer gauss(int size) {
  return [=](const cv::Mat &in, cv::Mat &out) { cv::GaussianBlur(in, out, {size, size}, 0, 0, cv::BORDER_REPLICATE); };
}

double sigma_of(int size) {
  return 0.3 * ((size - 1) * 0.5 - 1) + 0.8;
}

// The result is compared with a blur in double precision. For 8-bit images, GaussianBlur gives weights 8 bits of
// fraction, so results of large masks are up to 2 or 3 codes off. The sigma is given: otherwise size 9 would take
// weights from a table.
Case gauss_of(const std::string &label, FilterSettings s, int size, double sigma) {
  const auto kernel = [=] { return cv::getGaussianKernel(size, sigma, CV_64F); };
  return {label,
          std::move(s),
          [=](const cv::Mat &in, cv::Mat &out) {
            cv::GaussianBlur(in, out, {size, size}, sigma, 0, cv::BORDER_REPLICATE);
          },
          1,
          [=](const cv::Mat &in, cv::Mat &out) {
            cv::Mat real;
            cv::sepFilter2D(in, real, CV_64F, kernel(), kernel(), {-1, -1}, 0, cv::BORDER_REPLICATE);
            real.convertTo(out, in.depth());
          },
          true};
}

Case gauss_by_size(int size) {
  return gauss_of("gauss " + std::to_string(size), settings(Mask::Gauss, size), size, sigma_of(size));
}

Case gauss_by_sigma(int sigma) {
  FilterSettings s = settings(Mask::Gauss);
  s.sigma = sigma;
  return gauss_of("gauss sigma " + std::to_string(sigma), s, 6 * sigma + 1, sigma);
}

Peer unsharp(int size, double sigma) {
  return [=, blur = cv::Mat()](const cv::Mat &in, cv::Mat &out) mutable {
    cv::GaussianBlur(in, blur, {size, size}, sigma, 0, cv::BORDER_REPLICATE);
    cv::addWeighted(in, 2, blur, -1, 0, out);
  };
}

// A mosaic with a size that divides the frame's size.
Case mosaic(int size) {
  return {"mosaic " + std::to_string(size),
          settings(Mask::Mosaic, size),
          [=, means = cv::Mat()](const cv::Mat &in, cv::Mat &out) mutable {
            cv::resize(in, means, {in.cols / size, in.rows / size}, 0, 0, cv::INTER_AREA);
            cv::resize(means, out, in.size(), 0, 0, cv::INTER_NEAREST);
          },
          1,
          {},
          true};
}

Peer box(int size) {
  return [=](const cv::Mat &in, cv::Mat &out) { cv::blur(in, out, {size, size}, {-1, -1}, cv::BORDER_REPLICATE); };
}

Peer morphology(int operation, int size, int shape = cv::MORPH_RECT) {
  const cv::Mat element = cv::getStructuringElement(shape, {size, size});
  return [=](const cv::Mat &in, cv::Mat &out) {
    cv::morphologyEx(in, out, operation, element, {-1, -1}, 1, cv::BORDER_REPLICATE);
  };
}

// A dilation by an element of random members, about half of the square.
Case element(int side) {
  Case c = {"dilate custom " + std::to_string(side), settings(Mask::Dilate), {}, 0, {}, true};
  c.settings.shape = Shape::Custom;
  c.settings.coefficients.width = c.settings.coefficients.height = side;
  cv::Mat members(side, side, CV_8U);
  std::mt19937 random(side);
  for (int i = 0; i < side * side; i++) {
    members.data[i] = random() % 2;
    c.settings.coefficients.value.push_back(members.data[i]);
  }
  c.peer = [=](const cv::Mat &in, cv::Mat &out) { cv::dilate(in, out, members, {-1, -1}, 1, cv::BORDER_REPLICATE); };
  return c;
}

Peer kirsch() {
  std::vector<cv::Mat> kernels;
  const int ring[8] = {0, 1, 2, 5, 8, 7, 6, 3};
  for (int k = 0; k < 8; k++) {
    std::vector<float> value(9, -3);
    value[4] = 0;
    for (int i = 0; i < 3; i++) value[ring[(k + i) % 8]] = 5;
    kernels.push_back(square(value));
  }
  return [=, response = cv::Mat()](const cv::Mat &in, cv::Mat &out) mutable {
    for (size_t k = 0; k < kernels.size(); k++) {
      cv::filter2D(in, k ? response : out, -1, kernels[k], {-1, -1}, 0, cv::BORDER_REPLICATE);
      if (k) cv::max(out, response, out);
    }
  };
}

// A mask of random coefficients, integers or fractions, that is not separable.
Case custom(int side, bool fractions = false) {
  Case c = {"custom " + std::to_string(side) + "x" + std::to_string(side) + (fractions ? " fractions" : ""),
            settings(Mask::Custom),
            {},
            0,
            {},
            true};
  c.settings.coefficients.width = c.settings.coefficients.height = side;
  std::mt19937 random(side);
  for (int i = 0; i < side * side; i++)
    c.settings.coefficients.value.push_back(static_cast<int>(random() % 256) - 128 + (fractions ? 1 / 3. : 0));
  c.settings.divisor = std::ldexp(1.0, 7 + static_cast<int>(std::ceil(std::log2(side))));
  c.peer = correlation(matrix(c.settings.coefficients, c.settings.divisor), false);
  c.differs = 1;  // OpenCV rounds halves to even, and filters large masks with a Fourier transform
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](const std::string &label, FilterSettings s, Peer peer, int differs = 0) {
    list.push_back({label, std::move(s), std::move(peer), differs, {}});
  };
  const auto add_deep = [&](const std::string &label, FilterSettings s, Peer peer, int differs = 0) {
    add(label, std::move(s), std::move(peer), differs);
    list.back().deep = true;
  };
  const auto shaped = [](Mask mask, int size, Shape shape) {
    FilterSettings s = settings(mask, size);
    s.shape = shape;
    return s;
  };
  const auto l1 = [](Mask mask) {
    FilterSettings s = settings(mask);
    s.magnitude = Magnitude::L1;
    return s;
  };
  const auto numbered = [](const char *name, int size) { return std::string(name) + " " + std::to_string(size); };
  // OpenCV's window is a disc, as that of shape=ellipse.
  for (const bool disc : {false, true})
    for (int size : {3, 5, 9, 15, 31}) {
      add(
          numbered("bilateral", size) + (disc ? " ellipse" : ""),
          disc ? shaped(Mask::Bilateral, size, Shape::Ellipse) : settings(Mask::Bilateral, size),
          [=](const cv::Mat &in, cv::Mat &out) {
            cv::bilateralFilter(in, out, size, 0.1 * 255, sigma_of(size), cv::BORDER_REPLICATE);
          },
          disc ? 1 : -1);
      list.back().three = true;
    }
  const std::vector<float> sobel = {1, 2, 1}, scharr = {3, 10, 3}, prewitt = {1, 1, 1};

  for (int size : {3, 5, 7, 15, 31, 63, 127}) add_deep(numbered("box", size), settings(Mask::Box, size), box(size), 1);
  add_deep("gauss3", settings(Mask::Gauss3), gauss(3));
  add_deep("gauss5", settings(Mask::Gauss5), gauss(5));
  add_deep("gauss7", settings(Mask::Gauss7), gauss(7));
  add_deep("gauss9", settings(Mask::Gauss9), gauss(9), 1);
  for (int size : {9, 15, 31, 63}) list.push_back(gauss_by_size(size));
  for (int sigma : {13, 25, 50, 100}) list.push_back(gauss_by_sigma(sigma));
  add_deep("sharpen", settings(Mask::Sharpen), correlation(square({0, -1, 0, -1, 5, -1, 0, -1, 0}), false));
  add_deep("unsharp 5", settings(Mask::Unsharp, 5), unsharp(5, 0), -1);
  for (int sigma : {2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 20}) {
    FilterSettings s = settings(Mask::Unsharp);
    s.sigma = sigma;
    add_deep(numbered("unsharp sigma", sigma), s, unsharp(6 * sigma + 1, sigma), -1);
  }
  add_deep("emboss", settings(Mask::Emboss), correlation(square({-2, -1, 0, -1, 1, 1, 0, 1, 2}), false));
  add("laplace", settings(Mask::Laplace), correlation(square({0, 1, 0, 1, -4, 1, 0, 1, 0}), true));
  add("laplace8", settings(Mask::Laplace8), correlation(square({1, 1, 1, 1, -8, 1, 1, 1, 1}), true));
  add("log5", settings(Mask::Log5),
      correlation(square({0, 0, 1, 0, 0, 0, 1, 2, 1, 0, 1, 2, -16, 2, 1, 0, 1, 2, 1, 0, 0, 0, 1, 0, 0}), true));
  add("sobel-x", settings(Mask::SobelX), derivative(sobel, true));
  add("sobel-y", settings(Mask::SobelY), derivative(sobel, false));
  add("scharr-x", settings(Mask::ScharrX), derivative(scharr, true));
  add("prewitt-x", settings(Mask::PrewittX), derivative(prewitt, true));
  add("sobel l1", l1(Mask::Sobel), magnitude(sobel, Magnitude::L1));
  add("sobel l2", settings(Mask::Sobel), magnitude(sobel, Magnitude::L2));
  add("scharr l2", settings(Mask::Scharr), magnitude(scharr, Magnitude::L2));
  add("prewitt l2", settings(Mask::Prewitt), magnitude(prewitt, Magnitude::L2));
  add("kirsch", settings(Mask::Kirsch), kirsch());
  for (int side : {5, 7, 11, 15, 31}) list.push_back(custom(side));
  for (int side : {7, 31}) list.push_back(custom(side, true));
  const struct {
    const char *name;
    Mask mask;
    int operation;
  } extrema[] = {{"dilate", Mask::Dilate, cv::MORPH_DILATE},
                 {"open", Mask::Open, cv::MORPH_OPEN},
                 {"gradient", Mask::Gradient, cv::MORPH_GRADIENT},
                 {"tophat", Mask::Tophat, cv::MORPH_TOPHAT},
                 {"blackhat", Mask::Blackhat, cv::MORPH_BLACKHAT}};
  const struct {
    const char *name;
    Shape shape;
    int element;
  } shapes[] = {{"", Shape::Rect, cv::MORPH_RECT},
                {" cross", Shape::Cross, cv::MORPH_CROSS},
                {" ellipse", Shape::Ellipse, cv::MORPH_ELLIPSE}};
  for (const auto &s : shapes)
    for (int size : {3, 5, 7, 15, 31, 63, 127, 255})
      for (const auto &e : extrema)
        if (size <= 31 || e.mask == Mask::Dilate)
          add_deep(numbered((std::string(e.name) + s.name).c_str(), size), shaped(e.mask, size, s.shape),
                   morphology(e.operation, size, s.element));
  add_deep("erode 5", settings(Mask::Erode, 5), morphology(cv::MORPH_ERODE, 5));
  add_deep("close 5", settings(Mask::Close, 5), morphology(cv::MORPH_CLOSE, 5));
  for (int side : {15, 31}) list.push_back(element(side));
  for (int size : {3, 5, 7, 9, 11, 13, 15, 31, 127}) {
    add(numbered("median", size), settings(Mask::Median, size),
        [=](const cv::Mat &in, cv::Mat &out) { cv::medianBlur(in, out, size); });
    list.back().deep = size <= 5;
  }
  for (int size : {4, 8, 40}) list.push_back(mosaic(size));
  return list;
}

FrameLayout layout_of(int width, int height, int channels, int depth) {
  FrameLayout layout;
  layout.planes = 1;
  PlaneLayout &p = layout.plane[0];
  p.width = width;
  p.height = height;
  p.channels = p.step = channels;
  p.container = depth > 8 ? Container::U16 : Container::U8;
  for (int c = 0; c < channels; c++)
    p.channel[c] = {Role::Luma, static_cast<uint8_t>(c), static_cast<uint8_t>(depth), 0};
  return layout;
}

FrameView view_of(const cv::Mat &image) {
  FrameView view;
  view.plane[0] = {image.data, static_cast<ptrdiff_t>(image.step)};
  return view;
}

double minimum(std::vector<double> v) {
  return *std::min_element(v.begin(), v.end());
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

template <typename F>
double seconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void in_parallel(int n, const std::function<void(int)> &body) {
  cv::parallel_for_({0, n}, [&](const cv::Range &range) {
    for (int i = range.start; i < range.end; i++) body(i);
  });
}

struct Result {
  std::string format, label;
  double ours, peers, copy;  // milliseconds
  size_t differ;             // samples that differ by more than the case allows
};

class Bench {
 public:
  Bench(int width, int height, int threads, double enough, bool minima, bool alone)
      : width_(width),
        height_(height),
        enough_(enough),
        alone_(alone),
        figure_(minima ? minimum : median),
        backend_(make_cpu_backend(in_parallel, threads)) {}

  Result run(const std::string &format, int channels, int depth, const Case &c) {
    prepare(CV_MAKETYPE(depth > 8 ? CV_16U : CV_8U, channels));
    const auto plan = make_plan(c.settings, layout_of(width_, height_, channels, depth));
    const auto ours = [&](int i) {
      backend_->retire(backend_->submit(plan, view_of(source_[i % kFrames]), view_of(target_[i % kFrames])));
    };
    // The peer filters another frame than cudaconv just did, since that frame is still in the cache.
    const auto peers = [&](int i) {
      if (!alone_) c.peer(source_[(i + 2) % kFrames], peers_target_[(i + 2) % kFrames]);
    };
    for (int i = 0; i < kFrames; i++) {
      ours(i);
      peers(i);
    }
    size_t differ = 0;
    if (c.differs >= 0 && !alone_) {
      cv::Mat difference;
      if (c.exact) c.exact(source_[0], peers_target_[0]);
      cv::absdiff(target_[0], peers_target_[0], difference);
      differ = cv::countNonZero(difference.reshape(1) > c.differs);
    }
    std::vector<double> a, b, copy;
    double total = 0;
    for (int i = 0; i < kMostRounds && (i < kFewestRounds || total < enough_); i++) {
      a.push_back(seconds([&] { ours(i); }));
      b.push_back(seconds([&] { peers(i); }));
      copy.push_back(seconds([&] { copy_frame((i + 1) % kFrames); }));
      total += a.back() + b.back();
    }
    return {format, c.label, 1e3 * figure_(a), 1e3 * figure_(b), 1e3 * figure_(copy), differ};
  }

 private:
  void prepare(int type) {
    if (!source_.empty() && source_[0].type() == type) return;
    source_.assign(kFrames, {});
    target_.assign(kFrames, {});
    peers_target_.assign(kFrames, {});
    for (int i = 0; i < kFrames; i++) {
      for (auto *images : {&source_, &target_, &peers_target_}) (*images)[i].create(height_, width_, type);
      cv::randu(source_[i], 0, CV_MAT_DEPTH(type) == CV_16U ? 65536 : 256);
    }
  }

  void copy_frame(int i) {
    const size_t bytes = source_[i].total() * source_[i].elemSize() / 2;
    in_parallel(2,
                [&](int half) { std::memcpy(target_[i].data + half * bytes, source_[i].data + half * bytes, bytes); });
  }

  const int width_, height_;
  const double enough_;
  const bool alone_;
  double (*const figure_)(std::vector<double>);
  std::unique_ptr<Backend> backend_;
  std::vector<cv::Mat> source_, target_, peers_target_;
};

void write_json(const char *path, int width, int height, int threads, const std::vector<Result> &results) {
  std::FILE *file = std::fopen(path, "w");
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  std::fprintf(file, "{\"vectors\": \"%s\", \"opencv\": \"%s\", \"width\": %d, \"height\": %d, \"threads\": %d, ",
               vector_loops().level, CV_VERSION, width, height, threads);
  std::fprintf(file, "\"results\": [");
  const char *separator = "\n";
  for (const Result &r : results) {
    std::fprintf(file,
                 "%s  {\"format\": \"%s\", \"filter\": \"%s\", \"ms\": %.4f, \"opencv_ms\": %.4f, \"copy_ms\": %.4f, "
                 "\"differ\": %zu}",
                 separator, r.format.c_str(), r.label.c_str(), r.ours, r.peers, r.copy, r.differ);
    separator = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

}  // namespace

struct Options {
  int width = 1920, height = 1080, threads = 2;
  double enough = kEnough;
  bool minima = false, alone = false;
  std::string only, filters, format;
  const char *json = nullptr;

  bool takes(const std::string &label) const {
    return label.find(only) != std::string::npos &&
           (filters.empty() || ("," + filters + ",").find("," + label + ",") != std::string::npos);
  }
};

bool parse(int argc, char **argv, Options *o) {
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals), value = equals + 1 ? argument.substr(equals + 1) : "";
    if (key == "--only")
      o->only = value;
    else if (key == "--filters")
      o->filters = value;
    else if (key == "--format")
      o->format = value;
    else if (key == "--json")
      o->json = argv[i] + equals + 1;
    else if (argument == "--minima")
      o->minima = true;
    else if (argument == "--alone")
      o->alone = true;
    else if (key == "--seconds" && std::atof(value.c_str()) > 0)
      o->enough = std::atof(value.c_str());
    else if (key == "--threads" && std::atoi(value.c_str()) > 0)
      o->threads = std::atoi(value.c_str());
    else if (key != "--size" || std::sscanf(value.c_str(), "%dx%d", &o->width, &o->height) != 2 || o->width < 1 ||
             o->height < 1)
      return false;
  }
  return true;
}

int main(int argc, char **argv) {
  Options o;
  if (!parse(argc, argv, &o)) {
    std::fprintf(stderr,
                 "usage: %s [--size=WxH] [--threads=N] [--format=FORMAT] [--only=TEXT] [--filters=NAME,...] [--minima] "
                 "[--alone] [--seconds=S] [--json=FILE]\n",
                 argv[0]);
    return 2;
  }
  cv::setNumThreads(o.threads);
  const struct {
    const char *name;
    int channels, depth;
  } formats[] = {{"GRAY8", 1, 8}, {"RGBA", 4, 8}, {"RGB", 3, 8}, {"GRAY16_LE", 1, 16}, {"RGBA64_LE", 4, 16}};
  std::vector<Result> results;
  size_t differ = 0;
  Bench bench(o.width, o.height, o.threads, o.enough, o.minima, o.alone);
  const std::vector<Case> list = cases();
  for (const auto &format : formats) {
    if (!o.format.empty() && o.format != format.name) continue;
    std::printf("\n%s %dx%d, %d threads, vectors: %s, OpenCV %s\n%-20s %10s %10s %8s %8s\n", format.name, o.width,
                o.height, o.threads, vector_loops().level, CV_VERSION, "", "ms", "OpenCV ms", "times", "copies");
    for (const Case &c : list) {
      if (!o.takes(c.label) || (format.depth > 8 && !c.deep)) continue;
      if (format.channels > 1 && c.three != (format.channels == 3)) continue;
      const Result r = bench.run(format.name, format.channels, format.depth, c);
      std::printf("%-20s %10.3f %10.3f %8.2f %8.2f", r.label.c_str(), r.ours, r.peers, r.peers / r.ours,
                  r.ours / r.copy);
      if (r.differ) std::printf("  %zu samples differ", r.differ);
      std::printf("\n");
      std::fflush(stdout);
      differ += r.differ;
      results.push_back(r);
    }
  }
  if (o.json) write_json(o.json, o.width, o.height, o.threads, results);
  return differ ? 1 : 0;
}

}  // namespace cudaconv::bench

int main(int argc, char **argv) {
  try {
    return cudaconv::bench::main(argc, argv);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
