// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How far mask=bilateral is from one with real weights: within the bound that tests/reference derives, and half a code
// of rounding, at every depth, with frames that are as bad as can be, of one channel and of RGB. The largest distances
// are printed. And the loops of the CPU backend, with rings of any number of pixels: all levels of instructions give
// the same results.
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

using Channels = std::vector<reference::Channel>;

// Filters a frame with a plane for each channel. border=keep leaves only windows inside the frame. The backend computes
// the rows that have any: blocks of samples of the other rows would take most of the time.
Channels filter(const FilterSettings &settings, const FrameLayout &layout, const Channels &in) {
  static const auto backend = make_cpu_backend(
      [](int n, const std::function<void(int)> &body) {
        for (int i = 0; i < n; i++) body(i);
      },
      1);
  GuardedFrame from(layout, placements()[0]), to(layout, placements()[0]);
  reference::Frame frame;
  for (size_t p = 0; p < in.size(); p++) frame.plane[p].push_back(in[p]);
  reference::write(frame, layout, from.view());
  const int radius = settings.size / 2;
  Regions inside;
  inside.active = true;
  inside.region.push_back({radius, radius, in[0].width - 2 * radius, in[0].height - 2 * radius});
  backend->retire(backend->submit(make_plan(settings, layout), from.view(), to.view(), inside));
  const reference::Frame got = reference::read(layout, to.view());
  Channels out;
  for (size_t p = 0; p < in.size(); p++) out.push_back(got.plane[p][0]);
  return out;
}

struct Setting {
  FilterSettings settings;
  FrameLayout layout;
  reference::BilateralMask mask;
  double bound;
};

void check(const Setting &setting, const FrameLayout &layout, const Channels &in, Largest *largest) {
  const auto &[settings, own_layout, mask, bound] = setting;
  std::vector<const reference::Channel *> channels;
  for (const reference::Channel &channel : in) channels.push_back(&channel);
  const Channels got = filter(settings, layout, in), want = reference::bilateral(channels, nullptr, mask);
  for (size_t c = 0; c < in.size(); c++)
    for (size_t i = 0; i < got[c].sample.size(); i++) {
      const auto distance = std::fabs(static_cast<double>(got[c].sample[i] - want[c].real[i]));
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
    // The difference of the last channel; the others differ less.
    const int difference =
        static_cast<int>(max * std::min(1.0, sigmas * settings.sigma_range / (layout.planes > 1 ? 1.5 : 1)));
    Channels in;
    for (int p = layout.planes; p-- > 0;) {
      const int own = difference >> (p ? p + 1 : 0);
      const int low = static_cast<int>(random() % static_cast<uint64_t>(max - own + 1));
      const bool up = random() % 2;
      in.push_back({side, side, std::vector<int>(side * side, up ? low + own : low), {}});
      in.back().sample[side * side / 2] = up ? low : low + own;
    }
    check(setting, layout, in, largest);
  }
}

void check_random(const Setting &setting, Random &random, Largest *largest) {
  const auto &[settings, layout, mask, bound] = setting;
  const int side = settings.size, width = side + 7, max = (1 << layout.plane[0].channel[0].depth) - 1;
  FrameLayout wide = layout;
  Channels in;
  for (int p = 0; p < layout.planes; p++) {
    wide.plane[p].width = width;
    in.push_back({width, side, {}, {}});
    for (int i = 0; i < width * side; i++) in.back().sample.push_back(static_cast<int>(random() % (max + 1)));
  }
  check(setting, wide, in, largest);
}

void check_depth(const char *format, int depth, Shape shape = Shape::Rect) {
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
        s.shape = shape;
        FrameLayout layout = format_named(format).layout(side, side);
        for (PlaneLayout &plane : layout.plane) plane.channel[0].depth = static_cast<uint8_t>(depth);
        Largest *const of = side == 5 && sigma == kAutoSigma && range == 0.1 ? &as_by_default : &largest;
        const reference::BilateralMask mask = reference::bilateral_mask(s, depth, {0, 0, 0}, 0);
        const Setting setting = {s, layout, mask, static_cast<double>(reference::bilateral_error(mask, layout.planes))};
        check_steps(setting, random, of);
        check_random(setting, random, of);
      }
  std::printf(
      "%s of %d bits: by default %.3f codes from the exact result (bound %.3f), at most %.3f (bound %.3f), with %s\n",
      format, depth, as_by_default.distance, 0.5 + as_by_default.bound, largest.distance, 0.5 + largest.bound,
      describe(largest.settings).c_str());
}

// kCount: 1, or 3 for RGB. `last`: the last difference that has a weight.
template <int kCount>
void check_levels(int last, int most_in_ring, Random &random) {
  constexpr int kSamples = 3 * kVectorBlock + 7;
  std::vector<uint32_t> weight(kByteDifferences);
  for (int i = 0; i <= last; i++) weight[i] = i ? static_cast<uint32_t>(1 + random() % 65535) : 65535;
  const BilateralRange range = {weight.data(), 0, last, weight.data()};
  std::vector<std::vector<uint8_t>> pixels(kCount * (2 * kMostInRing + 1), std::vector<uint8_t>(kSamples));
  // Loops differ by how much the pixels differ.
  const int spread = 16 << random() % 5, low = static_cast<int>(random() % (257 - spread));
  for (auto &samples : pixels)
    for (uint8_t &v : samples)
      v = static_cast<uint8_t>(low + (random() % 4 ? random() % spread : random() % 2 * (spread - 1)));
  std::vector<const uint8_t *> in;
  for (const auto &samples : pixels) in.push_back(samples.data());
  std::vector<BilateralRing<uint8_t>> rings;
  const uint8_t *const *next = in.data() + kCount;
  for (int k = 0; k < 2; k++) {
    const int count = 1 + static_cast<int>(random() % most_in_ring);
    rings.push_back({next, count, static_cast<uint32_t>(random() % 65536)});
    next += kCount * count;
  }
  std::vector<uint8_t> want;
  for (const VectorLoops *loops : vector_levels()) {
    std::vector<uint8_t> got(kCount * kSamples);
    uint8_t *const out[] = {got.data(), got.data() + (kCount - 1) * kSamples / 2, got.data() + (kCount - 1) * kSamples};
    loops->bilateral(rings.data(), static_cast<int>(rings.size()), kCount, in.data(), range, out, kSamples);
    if (want.empty()) want = got;
    if (got == want || failures++ >= 20) continue;
    std::printf("FAILED %s: %d channels, rings of %d and %d, weights up to %d: other results than %s\n", loops->level,
                kCount, rings[0].count, rings[1].count, last, vector_levels()[0]->level);
  }
}

template <typename T>
void check_split(int channels, int n, Random &random) {
  std::vector<T> in(static_cast<size_t>(channels) * n);
  for (T &v : in) v = static_cast<T>(random());
  for (const VectorLoops *loops : vector_levels()) {
    std::vector<T> rows[4], joined(in.size());
    T *split[4];
    for (int c = 0; c < 4; c++) {
      rows[c].resize(n);
      split[c] = rows[c].data();
    }
    loops->split(in.data(), channels, split, n);
    loops->join(split, channels, joined.data(), n);
    bool right = joined == in;
    for (int i = 0; i < channels * n; i++) right &= rows[i % channels][i / channels] == in[i];
    if (!right && failures++ < 20) std::printf("FAILED %s: split and join of %d channels\n", loops->level, channels);
  }
}

}  // namespace

}  // namespace cudaconv::test

int main() {
  using namespace cudaconv;
  using namespace cudaconv::test;
  check_depth("GRAY8", 8);
  check_depth("GRAY8", 8, Shape::Ellipse);
  for (int depth : {10, 12, 14, 16}) check_depth("GRAY16_LE", depth);
  check_depth("GBR", 8);
  for (int depth : {10, 12, 16}) check_depth("GBR_12LE", depth);
  Random random = random_for(7, 0);
  for (int last : {1, 15, 16, 100, 126, 127, 128, 200, 254, 255})
    for (int most : {1, 9, kMostInRing / 2, kMostInRing})
      for (int i = 0; i < 20; i++) check_levels<1>(last, most, random);
  for (int last : {1, 15, 31, 127, 128, 254, 255, 256, 400, 511, 512, 600, 765})
    for (int most : {1, 9, kMostInRing})
      for (int i = 0; i < 20; i++) check_levels<3>(last, most, random);
  for (int channels : {3, 4})
    for (int n : {1, 5, 63, 64, 65, 200}) {
      check_split<uint8_t>(channels, n, random);
      check_split<uint16_t>(channels, n, random);
    }
  std::printf("%d failed\n", failures);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
