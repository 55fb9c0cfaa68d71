// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Checks which kernels method=auto takes: masks that look equal to users are equally fast, at any frame width. Also
// checks that the table of gst/README.md names all structures, and that folders and sources have their names.
//
//   structures MANUAL
//
// The exit code is 77 if there is no device.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "cuda/dispatch.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/lower.h"

namespace cudaconv::test {

namespace {

struct Expectation {
  FilterSettings settings;
  // The expected structures: 8-bit samples; 16-bit containers of one or two channels; of four channels; 8-bit samples
  // of three channels; of four channels.
  const char *bytes, *words, *four_words = words, *three_bytes = bytes, *four_bytes = bytes;
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

// An erosion by an element in which one pixel in `every` is a member.
FilterSettings element(int width, int height, int every) {
  FilterSettings s = settings(Mask::Erode, 0, Shape::Custom);
  s.coefficients.width = width;
  s.coefficients.height = height;
  for (int i = 0; i < width * height; i++) s.coefficients.value.push_back(i % every == 0);
  return s;
}

// A mask whose coefficients need more than 16 bits, for 8-bit samples too.
FilterSettings fractions(int side) {
  FilterSettings s = settings(Mask::Custom);
  s.coefficients.width = s.coefficients.height = side;
  for (int i = 0; i < side * side; i++) s.coefficients.value.push_back((i * i % 11 - 3) / 333.0);
  s.coefficients.value[side * side / 2] = 7.7;
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
    {settings(Mask::Median, 7), "median", "median"},
    {settings(Mask::Median, 9), "median", "median"},
    {settings(Mask::Median, 11), "median", "median"},
    {settings(Mask::Median, 13), "median", "median"},
    {settings(Mask::Median, 15), "median", "median"},
    {settings(Mask::Median, 17), "median", "median"},
    {settings(Mask::Median, 127), "median", "median"},
    {settings(Mask::Dilate, 5, Shape::Ellipse), "sliding", "sliding"},
    {settings(Mask::Gauss, 67), "blur", nullptr},
    {settings(Mask::Gauss, 67), "blur", "long"},
    {settings(Mask::Box, 67), "mean", "mean"},
    {settings(Mask::Box, 129), "mean", "mean"},
    {settings(Mask::Open, 3), "sliding", "sliding"},
    {settings(Mask::Gradient, 5), "sliding", "sliding"},
    {settings(Mask::Erode, 15), "extremum", "extremum"},
    {settings(Mask::Dilate, 127), "extremum", "extremum"},
    {settings(Mask::Erode, 255), "extremum", "extremum"},
    {settings(Mask::Dilate, 9, Shape::Ellipse), "element", "element", "element", "element", "element"},
    {settings(Mask::Erode, 31, Shape::Cross), "element", "element", "element", "element", "element"},
    {settings(Mask::Erode, 63, Shape::Ellipse), "element", "element", "element"},
    {settings(Mask::Erode, 65, Shape::Ellipse), "element", "element"},
    {settings(Mask::Erode, 255, Shape::Ellipse), "element", "element"},
    {settings(Mask::Dilate, 255, Shape::Cross), "element", "element"},
    {element(31, 9, 1), "element", "element", "element", "element", "element"},
    {element(15, 15, 2), "element", "element"},
    {element(31, 31, 2), "element", "element"},
    {settings(Mask::Box, 15), "separable", "separable"},
    {settings(Mask::Gauss, 31), "separable", "separable"},
    {settings(Mask::Gauss, 65), "separable", "long", "separable"},
    {settings(Mask::Unsharp, 5), "separable", "separable", nullptr},
    {custom(7), "custom", "custom"},
    {custom(13), "custom", "custom"},
    {custom(21), "custom", "custom"},
    {fractions(9), "custom", "custom"},
    {settings(Mask::Bilateral, 3), "bilateral", "bilateral"},
    {settings(Mask::Bilateral, 31), "bilateral", "bilateral"},
    {settings(Mask::Mosaic, 8), "mosaic", "mosaic", "mosaic"},
    {settings(Mask::Mosaic, 255), "mosaic", "mosaic", "mosaic"},
};

const char *expected_of(const Expectation &expected, const PlaneLayout &plane) {
  if (plane.container == Container::U8)
    return plane.channels == 3 ? expected.three_bytes : plane.channels == 4 ? expected.four_bytes : expected.bytes;
  return plane.channels == 4 && plane.container == Container::U16 ? expected.four_words : expected.words;
}

struct Count {
  int tried = 0, failed = 0;

  void add(bool passed, const std::string &what) {
    tried++;
    if (passed) return;
    failed++;
    std::printf("FAILED %s\n", what.c_str());
  }
};

std::string quoted(const char *name) {
  return name ? name : "a method";
}

// Checks that each structure has a folder of its name, whose sources begin with that name.
void check_names(const char *manual, Count &count) {
  namespace fs = std::filesystem;
  const fs::path cuda = fs::path(manual).parent_path() / "../kernels/cuda";
  for (const Structure &structure : structures()) {
    int sources = 0;
    std::error_code error;
    for (const fs::directory_entry &entry : fs::directory_iterator(cuda / structure.name, error)) {
      if (entry.path().extension() != ".cu") continue;
      const std::string source = entry.path().filename().string();
      sources++;
      count.add(!source.compare(0, std::strlen(structure.name), structure.name),
                source + ": a source of " + structure.name + " without its name");
    }
    count.add(sources > 0, std::string("no sources in kernels/cuda/") + structure.name);
  }
}

// Checks that the table of structures in gst/README.md has the names of the dispatch table, in the same order.
void check_manual(const char *path, Count &count) {
  std::vector<std::string> listed;
  std::ifstream manual(path);
  bool inside = false;
  for (std::string line; std::getline(manual, line);) {
    if (line == "<!-- structures -->") inside = true;
    if (line == "<!-- end -->") inside = false;
    if (inside && line.rfind("| `", 0) == 0) listed.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  listed.erase(listed.begin(), listed.begin() + !listed.empty());  // the heading
  std::string want;
  std::vector<std::string> names;
  for (const Structure &structure : structures()) {
    names.push_back(structure.name);
    want += std::string(" ") + structure.name;
  }
  count.add(listed == names, std::string(path) + ": the table of structures should have, in this order:" + want);
}

// Whether all forms of the structure need the matrix instructions.
bool is_on_mma(const PreparedLaunch &launch) {
  const std::string name = launch.structure ? launch.name() : "";
  return name == "separable" || name == "custom";
}

// Checks that a structure never gets a border that its row of the table lacks. For example, with wrap an opening takes
// a launch for each step.
void check_borders(Count &count) {
  const FrameLayout layout = format_named("GRAY8").layout(64, 12);
  for (const Named<Border> &border : kBorderNames) {
    FilterSettings s = settings(Mask::Open, 3);
    s.border = border.value;
    const std::vector<PreparedLaunch> launches = prepare(*make_plan(s, layout), {true});
    const auto does_it = [&](const Structure &structure) { return (structure.borders & border_bit(s.border)) != 0; };
    const bool any_does = std::any_of(structures().begin(), structures().end(), [&](const Structure &structure) {
      return !std::strcmp(structure.name, "sliding") && does_it(structure);
    });
    for (const PreparedLaunch &launch : launches)
      count.add(launch.structure ? does_it(*launch.structure) : !any_does,
                std::string("border=") + border.nick + ": taken by " + quoted(launch.name()));
    if (s.border == Border::Wrap) count.add(launches.size() == 2, "wrap: an opening in one launch");
  }
}

// Checks squares that are too large for one pass. Each pass is small enough, all passes together reach as far, and only
// the last pass keeps pixels and has regions.
void check_divided(Count &count) {
  for (const auto &[format, most] : {std::pair("RGBA", 31), {"ARGB64", 31}})
    for (int size : {63, 65, 127, 129, 255}) {
      FilterSettings s = settings(Mask::Dilate, size);
      s.border = Border::Keep;
      const LoweredPlan divided = lower(*make_plan(s, format_named(format).layout(64, 12)));
      const std::string what = std::string(format) + " " + std::to_string(size);
      count.add((divided.passes.size() == 1) == (size / 2 <= most), what + ": divided or not");
      int reach = 0, source = Pass::kInput;
      for (const Pass &pass : divided.passes) {
        const bool last = &pass == &divided.passes.back();
        count.add(pass.radius_x <= most && pass.radius_x == pass.radius_y, what + ": too large");
        count.add(pass.source == source && (pass.target == Pass::kOutput) == last, what + ": frames");
        count.add(pass.keep_x == (last ? size / 2 : 0) && pass.in_regions == last, what + ": pixels that are kept");
        count.add(pass.copy_source == (last ? Pass::kInput : source), what + ": the source of kept pixels");
        reach += pass.radius_x;
        source = pass.target;
      }
      count.add(reach == size / 2, what + ": reaches " + std::to_string(reach));
    }
}

// Checks the prepared launches of a plan: they have each pass once, and only kernels that the device has. Tests devices
// with all kernels and with few.
void check_prepared(const Plan &plan, const std::string &what, Count &count) {
  for (const KernelSets &kernels : {KernelSets{true}, KernelSets{}}) {
    size_t passes = 0;
    bool in_order = true, there = true;
    for (const PreparedLaunch &launch : prepare(plan, kernels)) {
      in_order &= launch.first == passes && launch.passes() > 0;
      there &= kernels.mma || !is_on_mma(launch);
      passes += launch.passes();
    }
    count.add(in_order && passes == plan.passes.size(), what + ": launches leave out passes, or repeat them");
    count.add(there, what + ": matrix instructions for a device that has none");
  }
}

// Checks the structure for colours that are weighted by alpha.
void check_weighted(Count &count) {
  for (const char *name : {"RGBA", "ARGB64", "A420", "AYUV"})
    for (const Mask mask : {Mask::Gauss5, Mask::Box, Mask::Gauss}) {
      FilterSettings s = settings(mask, mask == Mask::Gauss5 ? 0 : 31);
      s.alpha = Alpha::Weighted;
      const PreparedLaunch launch = prepare(*make_plan(s, format_named(name).layout(37, 12)), {true}).front();
      count.add(launch.name() && !std::strcmp(launch.name(), "weighted"),
                std::string(name) + " mask=" + mask_nick(mask) + " alpha=weighted: got " + quoted(launch.name()));
    }
}

// Checks that a long Gaussian of a narrow frame takes no more memory than a sum for each sample: its lines are mostly
// margins, which as planes of bytes take gigabytes, and have more words than an int counts.
void check_narrow(Count &count) {
  FilterSettings s = settings(Mask::Gauss);
  s.sigma = 250;
  for (const auto &[width, height] : {std::pair(4, 6000000), {6000000, 4}}) {
    const auto plan = make_plan(s, format_named("GRAY16_LE").layout(width, height));
    const size_t bytes = prepare(*plan, {true}).front().prepared.scratch;
    count.add(bytes <= sizeof(int32_t) * width * height, "GRAY16_LE " + std::to_string(width) + "x" +
                                                             std::to_string(height) + ": takes " +
                                                             std::to_string(bytes) + " bytes");
  }
}

// Checks that wide frames take the structure of narrow ones: several blocks share a row.
void check_wide(Count &count) {
  for (const int width : {10000, 20000, 100000}) {
    const auto plan = make_plan(settings(Mask::Box, 255), format_named("RGBA").layout(width, 4));
    const char *got = prepare(*plan, {true}).front().name();
    count.add(got && !std::strcmp(got, "mean"),
              "RGBA " + std::to_string(width) + "x4 mask=box size=255: got " + quoted(got));
  }
}

void check_format(const char *name, int width, Backend &backend, Count &count) {
  const Format &format = format_named(name);
  const FrameLayout layout = format.layout(width, 12);
  Random random(1);
  GuardedFrame source(layout, {0, 0, 1, 0}), target(layout, {0, 0, 1, 0});
  source.fill(random);
  for (const Expectation &expected : kExpected) {
    const char *want = expected_of(expected, layout.plane[0]);
    if (!want) continue;
    FilterSettings s = expected.settings;
    s.chroma = Chroma::Filter;
    const std::shared_ptr<const Plan> plan = make_plan(s, layout);
    const std::string what = std::string(name) + " " + std::to_string(width) + "x12 mask=" + mask_nick(s.mask) +
                             " size=" + std::to_string(s.size);
    backend.retire(backend.submit(plan, source.view(), target.view()));
    const char *got = backend.stats().kernels;
    count.add(got && !std::strcmp(got, want), what + ": want " + want + ", got " + quoted(got));
    check_prepared(*plan, what, count);
    const char *prepared = prepare(lower(*plan), find_kernels()).front().name();
    count.add(prepared == got, what + ": prepared " + quoted(prepared) + ", launched " + quoted(got));
  }
}

int run(const char *manual) {
  Count count;
  check_names(manual, count);
  check_manual(manual, count);
  std::string why;
  if (cuda_device_count(&why) == 0) {
    if (count.failed) return 1;
    std::printf("SKIP: %s\n", why.c_str());
    return 77;
  }
  const auto backend = make_cuda_backend();
  check_borders(count);
  check_weighted(count);
  check_divided(count);
  check_narrow(count);
  check_wide(count);
  for (const char *name : {"GRAY8", "NV12", "v308", "RGBA", "P010_10LE", "YUY2", "RGB10A2_LE", "I420_10BE", "ARGB64"})
    for (const int width : {64, 38, 37}) check_format(name, width, *backend, count);
  std::printf("%d passed, %d failed\n", count.tried - count.failed, count.failed);
  return count.failed ? 1 : 0;
}

}  // namespace

}  // namespace cudaconv::test

int main(int argc, char **argv) {
  if (argc != 2) {
    std::printf("usage: structures MANUAL\n");
    return 1;
  }
  try {
    return cudaconv::test::run(argv[1]);
  } catch (const std::exception &e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
