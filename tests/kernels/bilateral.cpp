// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How far mask=bilateral is from one with real weights: within the bound that tests/reference derives, and half a code
// of rounding, at every depth, with frames that are as bad as can be. The largest distances are printed. And the loops
// of the CPU backend, with rings of any number of pixels: all levels of instructions give the same results.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "backend.h"
#include "bilateral.h"
#include "cases.h"
#include "cpu/vector.h"
#include "formats.h"
#include "guarded_frame.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

int failures = 0;

struct Largest {
  double distance = 0, bound = 0;  // in codes, the bound without rounding
  FilterSettings settings;
};

// Filters a frame of one channel. border=keep leaves only windows inside the frame.
reference::Channel filter(const FilterSettings &settings, const FrameLayout &layout, const reference::Channel &in) {
  static const auto backend = make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);
  GuardedFrame from(layout, placements()[0]), to(layout, placements()[0]);
  reference::Frame frame;
  frame.plane[0].push_back(in);
  reference::write(frame, layout, from.view());
  backend->retire(backend->submit(make_plan(settings, layout), from.view(), to.view()));
  return reference::read(layout, to.view()).plane[0][0];
}

struct Setting {
  FilterSettings settings;
  FrameLayout layout;
  reference::BilateralMask mask;
  double bound;
};

void check(const Setting &setting, const FrameLayout &layout, const reference::Channel &in, Largest *largest) {
  const auto &[settings, own_layout, mask, bound] = setting;
  const reference::Channel got = filter(settings, layout, in), want = reference::bilateral(in, nullptr, mask);
  for (size_t i = 0; i < got.sample.size(); i++) {
    const auto distance = std::fabs(static_cast<double>(got.sample[i] - want.real[i]));
    if (distance > largest->distance) *largest = {distance, bound, settings};
    if (distance <= 0.5 + bound + 1e-9) continue;
    if (failures++ < 20)
      std::printf("FAILED %s depth %d: %g codes from the exact result, more than %g\n", describe(settings).c_str(),
                  mask.depth, distance, 0.5 + bound);
    return;
  }
}

// A pixel of one value among others that all differ from it alike, by what has a large and a small weight.
void check_steps(const Setting &setting, Random &random, Largest *largest) {
  const auto &[settings, layout, mask, bound] = setting;
  const int side = settings.size, max = (1 << layout.plane[0].channel[0].depth) - 1;
  const int steps = side > 15 ? 24 : 48;
  for (int i = 0; i < steps; i++) {
    // Every second one is where weights are about to round to 0, and few bits of them are left.
    const double sigmas = i % 2 ? 4 + 0.9 * i / steps : 5.0 * (i + 1) / steps;
    const int difference = static_cast<int>(max * std::min(1.0, sigmas * settings.sigma_range));
    const int low = static_cast<int>(random() % static_cast<uint64_t>(max - difference + 1));
    const bool up = random() % 2;
    reference::Channel in{side, side, std::vector<int>(side * side, up ? low + difference : low), {}};
    in.sample[side * side / 2] = up ? low : low + difference;
    check(setting, layout, in, largest);
  }
}

void check_random(const Setting &setting, Random &random, Largest *largest) {
  const auto &[settings, layout, mask, bound] = setting;
  const int side = settings.size, width = side + 7, max = (1 << layout.plane[0].channel[0].depth) - 1;
  FrameLayout wide = layout;
  wide.plane[0].width = width;
  reference::Channel in{width, side, {}, {}};
  for (int i = 0; i < width * side; i++) in.sample.push_back(static_cast<int>(random() % (max + 1)));
  check(setting, wide, in, largest);
}

void check_depth(const char *format, int depth) {
  Random random = random_for(7, depth);
  Largest largest, as_by_default;
  for (int side : {3, 5, 9, 15, 31})
    for (double sigma : {kAutoSigma, 0.4, 250.0})
      for (double range : {0.002, 0.02, 0.1, 0.4, 1.0}) {
        FilterSettings s;
        s.mask = Mask::Bilateral;
        s.border = Border::Keep;
        s.size = side;
        s.sigma = sigma;
        s.sigma_range = range;
        FrameLayout layout = format_named(format).layout(side, side);
        layout.plane[0].channel[0].depth = static_cast<uint8_t>(depth);
        Largest *const of = side == 5 && sigma == kAutoSigma && range == 0.1 ? &as_by_default : &largest;
        const reference::BilateralMask mask = reference::bilateral_mask(s, depth, 0, 0);
        const Setting setting = {s, layout, mask, static_cast<double>(reference::bilateral_error(mask))};
        check_steps(setting, random, of);
        check_random(setting, random, of);
      }
  std::printf("%d bits: by default %.3f codes from the exact result (bound %.3f), at most %.3f (bound %.3f), with %s\n",
              depth, as_by_default.distance, 0.5 + as_by_default.bound, largest.distance, 0.5 + largest.bound,
              describe(largest.settings).c_str());
}

// `last`: the last difference that has a weight.
void check_levels(int last, int most_in_ring, Random &random) {
  constexpr int kSamples = 3 * kVectorBlock + 7;
  std::vector<uint32_t> weight(256);
  for (int i = 0; i <= last; i++) weight[i] = i ? static_cast<uint32_t>(1 + random() % 65535) : 65535;
  const BilateralRange range = {weight.data(), 0, last, weight.data()};
  std::vector<std::vector<uint8_t>> pixels(2 * kMostInRing + 1, std::vector<uint8_t>(kSamples));
  // Loops differ by how much the pixels differ.
  const int spread = 16 << random() % 5, low = static_cast<int>(random() % (257 - spread));
  for (auto &samples : pixels)
    for (uint8_t &v : samples)
      v = static_cast<uint8_t>(low + (random() % 4 ? random() % spread : random() % 2 * (spread - 1)));
  std::vector<const uint8_t *> in;
  for (const auto &samples : pixels) in.push_back(samples.data());
  std::vector<BilateralRing<uint8_t>> rings;
  const uint8_t *const *next = in.data() + 1;
  for (int k = 0; k < 2; k++) {
    const int count = 1 + static_cast<int>(random() % most_in_ring);
    rings.push_back({next, count, static_cast<uint32_t>(random() % 65536)});
    next += count;
  }
  std::vector<uint8_t> want;
  for (const VectorLoops *loops : vector_levels()) {
    std::vector<uint8_t> got(kSamples);
    loops->bilateral(rings.data(), static_cast<int>(rings.size()), in[0], range, got.data(), kSamples);
    if (want.empty()) want = got;
    if (got == want || failures++ >= 20) continue;
    std::printf("FAILED %s: rings of %d and %d, weights up to %d: other results than %s\n", loops->level,
                rings[0].count, rings[1].count, last, vector_levels()[0]->level);
  }
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  using namespace cudaconv;
  using namespace cudaconv::test;
  check_depth("GRAY8", 8);
  for (int depth : {10, 12, 14, 16}) check_depth("GRAY16_LE", depth);
  Random random = random_for(7, 0);
  for (int last : {1, 15, 16, 100, 126, 127, 128, 200, 255})
    for (int most : {1, 9, kMostInRing / 2, kMostInRing})
      for (int i = 0; i < 20; i++) check_levels(last, most, random);
  std::printf("%d failed\n", failures);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
