// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests regions on every backend, beyond the conformance test: several plans for one frame, bytes outside regions,
// bytes over the bus, and very many regions.
//
//   regions            every backend
//   regions --device   the CUDA backend, and what is computed before any backend: the CPU backend has no other code
//   there regions --streams  what the CUDA backend has on several streams
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "checks.h"
#include "formats.h"
#include "guarded_frame.h"
#include "plan/polygon.h"
#include "plan/region_work.h"
#include "reference.h"

namespace cudaconv::test {

namespace {

// Samples other than 0 are in the regions: a filter makes a black frame white there.
reference::Frame selected_samples(const FrameLayout &layout, const reference::Frame &like, const Regions &regions) {
  reference::Frame black = like;
  for (auto &plane : black.plane)
    for (reference::Channel &channel : plane) channel.sample.assign(channel.sample.size(), 0);
  FilterSettings white;
  white.mask = Mask::Box3;
  white.bias = 1;
  white.chroma = Chroma::Filter;
  white.alpha = Alpha::Filter;
  return reference::filter(white, layout, black, regions);
}

// Copies the chosen samples (not 0 in `chosen`) from another frame of the same layout.
void take_chosen(const reference::Frame &chosen, const reference::Frame &from, reference::Frame *into) {
  for (int p = 0; p < kMaxPlanes; p++)
    for (size_t c = 0; c < into->plane[p].size(); c++)
      for (size_t i = 0; i < into->plane[p][c].sample.size(); i++)
        if (chosen.plane[p][c].sample[i]) into->plane[p][c].sample[i] = from.plane[p][c].sample[i];
}

// The expected result: each plan filters the incoming frame, and each puts its regions over those of earlier plans.
reference::Frame filter_groups(const std::vector<FilterSettings> &settings, const FrameLayout &layout,
                               const reference::Frame &source, const std::vector<Regions> &regions) {
  reference::Frame frame = source;
  // An opening is n erosions, then n dilations, so only its end can be compared.
  const bool whole = settings[0].mask == Mask::Open;
  for (int n = whole ? 1 : settings[0].iterations; n > 0; n--) {
    reference::Frame next = frame;
    for (size_t g = 0; g < settings.size(); g++) {
      FilterSettings once = settings[g];
      if (!whole) once.iterations = 1;
      next = reference::in_regions(reference::filter(once, layout, frame), next, layout, regions[g]);
    }
    frame = next;
  }
  return frame;
}

// A pixel in regions of several plans is filtered once, by the last plan. Rectangles begin and end at cells of areas,
// so that areas hold them exactly.
void test_pixels_are_filtered_once() {
  Random random(8);
  const auto cells = [&](int from, int to) { return Area::kCell * within(random, from, to); };
  for (const char *name : {"GRAY8", "I420", "RGBA"}) {
    const FrameLayout layout = format_named(name).layout(1024, 512);
    FilterSettings settings;
    settings.chroma = Chroma::Filter;
    const auto plan = make_plan(settings, layout);
    std::vector<Regions> strengths(12);
    Regions all;
    all.active = true;
    for (Regions &regions : strengths) {
      regions.active = true;
      for (int i = 0; i < 10; i++)
        regions.region.push_back({2 * cells(-1, 14), 2 * cells(-1, 7), 2 * cells(0, 6), 2 * cells(0, 4)});
      all.region.insert(all.region.end(), regions.region.begin(), regions.region.end());
    }
    const auto pixels = [&](const RegionWork &work) {
      int64_t sum = 0;
      for (size_t part = 0; part < plan->parts.size(); part++)
        for (const PixelRect &r : work.selected(part).rectangles()) sum += r.pixels();
      return sum;
    };
    const Cancellation never(nullptr);
    std::vector<CoveredRows> covered;
    int64_t filtered = 0;
    for (size_t i = strengths.size(); i-- > 0;) filtered += pixels(RegionWork(*plan, strengths[i], never, &covered));
    const int64_t want = pixels(RegionWork(*plan, all, never));
    expect(filtered == want, std::string(name) + ": " + std::to_string(filtered) + " pixels are filtered, of " +
                                 std::to_string(want) + " in regions");
  }
}

// Several plans of one mask in different sizes, with regions that overlap.
void test_groups(Backend &backend) {
  Random random(3);
  const Mask masks[] = {Mask::Dilate, Mask::Box, Mask::Median, Mask::Open, Mask::Box};
  const char *formats[] = {"RGBA", "NV12", "GRAY8", "YUY2", "P010_10LE", "RGB10A2_LE", "RGB"};
  for (int turn = 0; turn < 120; turn++) {
    FrameLayout layout = format_named(formats[turn % 7]).layout(within(random, 3, 90), within(random, 3, 70));
    if (turn % 6 == 5) layout = with_fields(layout);
    std::vector<FilterSettings> settings;
    std::vector<Regions> regions;
    std::vector<PlannedRegions> planned;
    const int feather = turn < 60 ? 0 : within(random, 1, 256 * 20);
    for (int g = within(random, 1, turn % 2 ? 3 : 12); g > 0; g--) {
      FilterSettings s;
      s.mask = masks[turn % 5];
      s.size = 3 + 2 * (g % 4);
      s.iterations = turn % 4 == 3 || turn % 8 == 6 ? 2 : 1;
      s.border = turn % 3 ? Border::Reflect101 : Border::Wrap;
      if (turn % 10 == 9) s.border = Border::Keep;
      Regions r;
      r.active = true;
      r.ellipse = random() % 3 == 0;
      r.feather = feather;
      for (int i = within(random, turn % 4 ? 0 : 1, 3); i > 0; i--)
        r.region.push_back({within(random, -20, 80), within(random, -20, 60), within(random, 1, 60),
                            within(random, 1, 50), random() % 3 ? 0.0 : 0.1 * within(random, 1, 30)});
      settings.push_back(s);
      regions.push_back(r);
      planned.push_back({make_plan(s, layout), r});
    }
    const bool in_place = turn % 2 == 0;
    GuardedFrame source(layout, {16, 3, 16, 5});
    source.fill(random);
    GuardedFrame want = source;
    reference::write(reference::read(layout, source.view()), layout, source.view());  // clears unused bits
    want = source;
    GuardedFrame target = source;
    if (!in_place) target.fill(random), want = target;
    const reference::Frame frame = reference::read(layout, source.view());
    reference::write(filter_groups(settings, layout, frame, regions), layout, want.view());
    const GuardedFrame before = source;
    // Filtered twice: the second run reuses the first run's preparations.
    GuardedFrame again = target;
    backend.retire(backend.submit(planned, in_place ? target.view() : source.view(), target.view(), nullptr));
    backend.retire(backend.submit(planned, in_place ? again.view() : source.view(), again.view(), nullptr));
    const std::string what = "plans of regions, turn " + std::to_string(turn) + " on " + backend.name();
    expect(target == want, what);
    expect(again == want, what + ", second run");
    expect(source == before, what + ": the source stays");
  }
}

// Pixels outside regions keep all their bits, also unused bits.
void test_unused_bits(Backend &backend) {
  for (const char *format : {"P010_10LE", "GRAY16_LE", "RGBx", "Y210"})
    for (const bool in_place : {false, true}) {
      const FrameLayout layout = format_named(format).layout(70, 50);
      Random random(9);
      GuardedFrame source(layout, {0, 0, 16, 0});
      source.fill(random);
      source.dirty_unused_bits(layout, random);
      GuardedFrame target = source;
      if (!in_place) target.fill(random);
      const GuardedFrame before = source;
      Regions regions;
      regions.active = true;
      regions.region = {{20, 16, 30, 20}};
      backend.retire(
          backend.submit(make_plan({}, layout), in_place ? target.view() : source.view(), target.view(), regions));
      // Compares every byte of the pixels in the rows above and below the regions.
      bool same = true;
      const std::vector<MemoryPlane> planes = memory_planes_of(layout);
      for (size_t p = 0; p < planes.size(); p++)
        for (int y = 0; y < planes[p].height; y++) {
          if (y * 50 >= 14 * planes[p].height && y * 50 < 38 * planes[p].height) continue;
          for (const MemoryPlane::Run &run : planes[p].runs)
            for (size_t b = run.begin; b < run.begin + run.length; b++)
              same = same && target.view().plane[p].data[y * target.view().plane[p].pitch + b] ==
                                 before.view().plane[p].data[y * before.view().plane[p].pitch + b];
        }
      expect(same, std::string("bits outside regions of ") + format + (in_place ? " in place" : "") + " on " +
                       backend.name());
    }
}

// In place, only the pixels that regions need cross the bus. Without a region, nothing does.
void test_traffic(Backend &backend) {
  if (std::string(backend.name()) != "cuda") return;
  const FrameLayout layout = format_named("NV12").layout(1280, 720);
  GuardedFrame frame(layout, {0, 0, 16, 0});
  Random random(2);
  frame.fill(random);
  const auto plan = make_plan({}, layout);
  const auto uploaded = [&](Regions regions) {
    regions.active = true;
    const BackendStats before = backend.stats();
    backend.retire(backend.submit(plan, frame.view(), frame.view(), regions));
    const BackendStats after = backend.stats();
    return std::max(after.bytes_uploaded - before.bytes_uploaded, after.bytes_downloaded - before.bytes_downloaded);
  };
  const uint64_t all = 1280 * 720 * 3 / 2;
  Regions regions;
  expect(uploaded(regions) == 0, "bytes without a region");
  regions.region = {{100, 100, 400, 230}};
  expect(uploaded(regions) < all / 5, "bytes of a tenth of the frame");
  regions.region = {{100, 100, 40, 23}, {1200, 700, 40, 23}};
  expect(uploaded(regions) < all / 20, "bytes of two corners");
  regions.region.clear();
  for (int i = 0; i < 2000; i++) regions.region.push_back({within(random, 0, 1270), within(random, 0, 710), 9, 9});
  expect(uploaded(regions) <= all, "bytes of very many regions");
}

// One plan with regions that change or stay, in place and not. Wide blurs read farther than their masks reach. The rest
// of a frame on the device is from the frame before.
void test_one_plan(Backend &backend) {
  const FrameLayout layout = format_named("GRAY8").layout(400, 260);
  FilterSettings settings;
  settings.mask = Mask::Gauss;
  settings.sigma = 12;
  const auto plan = make_plan(settings, layout);
  Random random(4);
  GuardedFrame source(layout, {0, 0, 16, 0});
  GuardedFrame white = source, whole = source;
  for (uint8_t &byte : white.blocks()[0].bytes) byte = 255;
  for (uint8_t &byte : source.blocks()[0].bytes) byte = static_cast<uint8_t>(random() % 6);
  backend.retire(backend.submit(plan, source.view(), whole.view(), {}));
  const Region here = {130, 90, 128, 64}, there = {20, 30, 64, 40}, beside = {100, 20, 59, 30};
  struct {
    Region region;
    bool in_place;
  } const kCases[] = {{here, false}, {here, true}, {there, true}, {here, false}, {there, false}, {beside, true}};
  for (const auto &[region, in_place] : kCases) {
    Regions regions;
    regions.active = true;
    regions.region.assign(1, region);
    GuardedFrame frame = in_place ? source : white, other = white;
    backend.retire(backend.submit(plan, white.view(), other.view(), {}));
    backend.retire(backend.submit(plan, in_place ? frame.view() : source.view(), frame.view(), regions));
    int wrong = 0;
    for (int y = 0; y < 260; y++)
      for (int x = 0; x < 400; x++) {
        const bool inside =
            x >= region.x && x < region.x + region.width && y >= region.y && y < region.y + region.height;
        const auto at = [&](const GuardedFrame &f) { return f.view().plane[0].data[y * f.view().plane[0].pitch + x]; };
        wrong += at(frame) != at(inside ? whole : source);
      }
    expect(wrong == 0, std::to_string(wrong) + " pixels of a region at " + std::to_string(region.x) +
                           (in_place ? " in place on " : " on ") + backend.name());
  }
}

// With alpha=weighted, each rectangle reads the alpha of its own pixels, which another plane may hold.
void test_alpha(Backend &backend) {
  Random random(6);
  for (const char *name : {"A420", "A422_12LE", "AYUV", "ARGB64"}) {
    const FrameLayout layout = format_named(name).layout(200, 70);
    for (const Mask mask : {Mask::Gauss5, Mask::Custom, Mask::Box}) {
      FilterSettings settings;
      settings.mask = mask;
      settings.alpha = Alpha::Weighted;
      settings.chroma = Chroma::Filter;
      if (mask == Mask::Box) settings.size = 39;
      if (mask == Mask::Custom) settings.coefficients = {3, 3, {1, 0, 7, 3, 9, 2, 5, 1, 8}};
      const auto plan = make_plan(settings, layout);
      GuardedFrame source(layout, {0, 0, 16, 0});
      source.fill(random);
      GuardedFrame whole = source, target = source;
      backend.retire(backend.submit(plan, source.view(), whole.view(), {}));
      Regions regions;
      regions.active = true;
      regions.region = {{150, -10, 80, 30}, {20, 44, 70, 12}};
      backend.retire(backend.submit(plan, source.view(), target.view(), regions));
      reference::Frame want = reference::read(layout, source.view());
      take_chosen(selected_samples(layout, want, regions), reference::read(layout, whole.view()), &want);
      const reference::Frame got = reference::read(layout, target.view());
      int wrong = 0;
      for (int p = 0; p < layout.planes; p++)
        for (size_t c = 0; c < want.plane[p].size(); c++)
          for (size_t i = 0; i < want.plane[p][c].sample.size(); i++)
            wrong += want.plane[p][c].sample[i] != got.plane[p][c].sample[i];
      expect(wrong == 0, std::to_string(wrong) + " samples of " + name + " in two regions, mask=" + mask_nick(mask) +
                             " alpha=weighted on " + backend.name());
    }
  }
}

// Masks too long for a tile store their sums in a separate frame for each plane.
void test_long_masks(Backend &backend) {
  const FrameLayout layout = format_named("I420").layout(200, 90);
  FilterSettings settings;
  settings.mask = Mask::Box;
  settings.size = 151;
  Random random(6);
  GuardedFrame source(layout, {0, 0, 16, 0});
  source.fill(random);
  GuardedFrame got = source, want = source;
  backend.retire(backend.submit(make_plan(settings, layout), source.view(), got.view(), {}));
  reference::write(reference::filter(settings, layout, reference::read(layout, source.view())), layout, want.view());
  expect(got == want, std::string("a long mask on several planes on ") + backend.name());

  // With regions, only the sums that windows of the regions' pixels read are computed.
  for (const Region &region : {Region{90, 40, 9, 7}, Region{0, 0, 5, 5}, Region{190, 85, 10, 5}})
    for (const Border border : {Border::Replicate, Border::Wrap, Border::Reflect101}) {
      Regions regions;
      regions.active = true;
      regions.region = {region};
      settings.size = 61;
      settings.size_y = 41;
      settings.border = border;
      settings.mask = border == Border::Wrap ? Mask::Gauss : Mask::Box;
      settings.size += settings.mask == Mask::Box ? 80 : 0;
      got = want = source;
      if (settings.mask == Mask::Gauss) {
        const auto cpu = make_cpu_backend(
            [](int n, const auto &body) {
              for (int i = 0; i < n; i++) body(i);
            },
            1);
        cpu->retire(cpu->submit(make_plan(settings, layout), source.view(), want.view(), regions));
      } else {
        reference::write(reference::filter(settings, layout, reference::read(layout, source.view()), regions), layout,
                         want.view());
      }
      backend.retire(backend.submit(make_plan(settings, layout), source.view(), got.view(), regions));
      expect(got == want, std::string("a region with a long mask on ") + backend.name());
    }

  // Sums that were not computed overflow nothing, also where a divisor makes results large. The memory of a new backend
  // has garbage.
  const std::unique_ptr<Backend> made = backend.name() == std::string("cuda") ? make_cuda_backend() : nullptr;
  Backend &fresh = made ? *made : backend;
  const FrameLayout small = format_named("NV12").layout(137, 36);
  settings = {};
  settings.mask = Mask::Box;
  settings.size = 41;
  settings.divisor = 0.7;
  Regions regions;
  regions.active = true;
  regions.region = {{40, 10, 20, 10}};
  GuardedFrame from(small, {0, 0, 16, 0});
  from.fill(random);
  GuardedFrame results = from, wanted = from;
  reference::write(reference::filter(settings, small, reference::read(small, from.view()), regions), small,
                   wanted.view());
  fresh.retire(fresh.submit(make_plan(settings, small), from.view(), results.view(), regions));
  expect(results == wanted, std::string("a region with a long mask and a small divisor on ") + backend.name());
}

// Regions whose windows reach beyond the left edge by part of what a thread block loads.
void test_left_edge(Backend &backend) {
  FilterSettings settings;
  settings.mask = Mask::Custom;
  settings.coefficients.width = settings.coefficients.height = 11;
  for (int i = 0; i < 11 * 11; i++) settings.coefficients.value.push_back(1 + i * i % 7);
  Random random(12);
  for (const char *format : {"RGBA", "ARGB64", "GRAY8", "GRAY16_LE", "RGB"})
    for (const Border border : {Border::Constant, Border::Reflect101, Border::Wrap}) {
      const FrameLayout layout = format_named(format).layout(150, 20);
      settings.border = border;
      const std::shared_ptr<const Plan> plan = make_plan(settings, layout);
      GuardedFrame source(layout, {0, 0, 16, 0});
      source.fill(random);
      for (int x = 0; x < 20; x++) {
        Regions regions;
        regions.active = true;
        regions.region = {Region{x, 3, 5, 9}};
        GuardedFrame got = source, want = source;
        reference::write(reference::filter(settings, layout, reference::read(layout, source.view()), regions), layout,
                         want.view());
        backend.retire(backend.submit(plan, source.view(), got.view(), regions));
        expect(got == want, std::string("a region at x=") + std::to_string(x) + " of " + format +
                                ", border=" + border_nick(border) + ", on " + backend.name());
      }
    }
}

// Pixels whose channels are fields of one word, which two blocks must not write at the same time: a GPU does that now
// and then. The CPU and the stand-in never do.
void test_fields(Backend &backend) {
  if (std::string(backend.name()) != "cuda" || std::getenv("CUDACONV_STANDIN_DEVICES")) return;
  struct Case {
    FilterSettings settings;
    int width, height;
    std::vector<Region> region;
  };
  Case cases[2] = {{{}, 666, 456, {{183, 146, 305, 213, 1.38}, {403, 265, 70, 272, 0.32}}}, {{}, 923, 420, {}}};
  cases[0].settings.mask = Mask::Gauss3;
  cases[0].settings.alpha = Alpha::Weighted;
  cases[1].settings.mask = Mask::Sobel;
  cases[1].settings.method = Method::Blocked;
  Random random(13);
  for (int i = 0; i < 17; i++) {
    Case &c = cases[1];
    c.region.push_back({within(random, 0, 900), within(random, 0, 400), within(random, 10, 220),
                        within(random, 10, 100), i % 2 ? 0 : within(random, 0, 100) / 50.0});
  }
  for (const Case &c : cases) {
    const FrameLayout layout = format_named("RGB10A2_LE").layout(c.width, c.height);
    const std::shared_ptr<const Plan> plan = make_plan(c.settings, layout);
    Regions regions;
    regions.active = true;
    regions.region = c.region;
    GuardedFrame source(layout, {0, 0, 16, 0});
    source.fill(random);
    GuardedFrame want = source;
    reference::write(reference::filter(c.settings, layout, reference::read(layout, source.view()), regions), layout,
                     want.view());
    for (int i = 0; i < 10; i++) {
      GuardedFrame got = source;
      backend.retire(backend.submit(plan, source.view(), got.view(), regions));
      expect(got == want, std::string("regions of RGB10A2_LE on ") + backend.name());
    }
  }
}

// Bytes that belong to no pixel stay, also if rows have no gap between them.
void test_gaps(Backend &backend) {
  const FrameLayout layout = format_named("YUY2").layout(127, 4);
  Random random(8);
  GuardedFrame source(layout, {0, 0, 1, 0}), target = source;
  source.fill(random);
  target.fill(random);
  GuardedFrame want = target;
  const FilterSettings settings;
  reference::write(reference::filter(settings, layout, reference::read(layout, source.view())), layout, want.view());
  FrameView to = target.view();
  to.pinned = true;
  backend.retire(backend.submit(make_plan(settings, layout), source.view(), to, {}));
  expect(target == want, std::string("bytes between pixels on ") + backend.name());
}

// Lists of pixels, which are copied to the device before the kernels: of more rectangles than a launch takes without a
// list, and of a mask, a long one.
void test_long_lists(Backend &backend) {
  Random random(12);
  for (const bool bits : {false, true}) {
    const int width = bits ? 720 : 2000, height = bits ? 640 : 1900;
    const FrameLayout layout = format_named("GRAY8").layout(width, height);
    FilterSettings settings;
    settings.mask = bits ? Mask::Box3 : Mask::Mosaic;
    settings.size = bits ? 0 : 8;
    Regions regions;
    regions.active = true;
    if (bits) {
      RegionMask mask;
      mask.box = {0, 0, width, height};
      mask.width = width;
      mask.height = height;
      for (int i = 0; i < width * height; i++) mask.member.push_back(random() % 2);
      regions.mask.push_back(std::move(mask));
    } else {
      // More rectangles than launches take without a list.
      for (int i = 0; i < 20; i++) regions.region.push_back({3 + i % 5 * 399, 5 + i / 5 * 470, 390, 461});
    }
    GuardedFrame source(layout, {0, 0, 16, 0});
    source.fill(random);
    GuardedFrame got = source, want = source;
    const reference::Frame frame = reference::read(layout, source.view());
    reference::write(reference::filter(settings, layout, frame, regions), layout, want.view());
    const auto plan = make_plan(settings, layout);
    for (int turn = 0; turn < 2; turn++) {
      got = source;
      backend.retire(backend.submit(plan, got.view(), got.view(), regions));
      expect(got == want, std::string("lists of ") + (bits ? "a mask" : "rectangles") + " on " + backend.name());
    }
  }
}

// Regions as wide as tiles, which begin elsewhere. Few are rectangles to work on, others a list of tiles or the
// rectangle around all, on one plane or several. The expected pixels come from the whole frame, filtered with the same
// plan.
void test_tiles(Backend &backend) {
  const struct {
    const char *format;
    Mask mask;
    int size;
    double sigma;
    int pitch;  // from region to region. Regions of wide masks would be joined if they were closer
  } kCases[] = {{"RGBA", Mask::Gauss, 3, kAutoSigma, 67},   {"RGBA", Mask::Gauss, 31, kAutoSigma, 67},
                {"RGBA", Mask::Gauss, 31, kAutoSigma, 150}, {"RGB", Mask::Gauss, 31, kAutoSigma, 67},
                {"NV12", Mask::Gauss, 31, kAutoSigma, 150}, {"RGBA", Mask::Dilate, 15, kAutoSigma, 67},
                {"NV12", Mask::Gauss, 9, kAutoSigma, 67},   {"I420", Mask::Gauss, 0, 13, 190},
                {"GRAY8", Mask::Median, 5, kAutoSigma, 67}};
  for (const auto &[format, mask, size, sigma, pitch] : kCases) {
    const int height = 2 * pitch + 7, width_of_many = pitch / 2 - 3;
    const FrameLayout layout = format_named(format).layout(6 * pitch + 9, height);
    FilterSettings settings;
    settings.mask = mask;
    settings.size = size;
    settings.sigma = sigma;
    Random random(14);
    GuardedFrame source(layout, {0, 0, 16, 0});
    source.fill(random);
    const auto plan = make_plan(settings, layout);
    GuardedFrame whole = source;
    backend.retire(backend.submit(plan, source.view(), whole.view(), {}));
    const reference::Frame before = reference::read(layout, source.view()),
                           filtered = reference::read(layout, whole.view());
    for (const int width : {64, 120, 128, 256, width_of_many}) {
      Regions regions;
      regions.active = true;
      if (width == width_of_many)
        for (int i = 0; i < 12; i++)
          regions.region.push_back({5 + i % 6 * pitch, height - 41 - i / 6 * pitch, width, 41});
      else
        regions.region.push_back({11, 9, width, 97});
      reference::Frame expected = before;
      take_chosen(selected_samples(layout, before, regions), filtered, &expected);
      GuardedFrame got = source, want = source;
      reference::write(expected, layout, want.view());
      backend.retire(backend.submit(plan, got.view(), got.view(), regions));
      expect(got == want, std::string("regions ") + std::to_string(width) + " wide, " + std::to_string(pitch) +
                              " apart, of " + format + " on " + backend.name());
    }
  }
}

// Regions below row 65,535, the last one at which tiles begin.
void test_tall_frame(Backend &backend) {
  const FrameLayout layout = format_named("GRAY8").layout(20, 65700);
  Random random(16);
  GuardedFrame source(layout, {0, 0, 16, 0});
  source.fill(random);
  for (const Mask mask : {Mask::Gauss5, Mask::Median}) {
    FilterSettings settings;
    settings.mask = mask;
    Regions regions;
    regions.active = true;
    regions.region = {{3, 65530, 9, 8}, {5, 65650, 15, 41}};
    GuardedFrame got = source, want = source;
    reference::write(reference::filter(settings, layout, reference::read(layout, source.view()), regions), layout,
                     want.view());
    backend.retire(backend.submit(make_plan(settings, layout), got.view(), got.view(), regions));
    expect(got == want, std::string("regions of a tall frame, mask=") + mask_nick(mask) + " on " + backend.name());
  }
}

// Whether a region has pixels in the frame, compared with the reference. It has where its middle is in the frame.
void test_pixels_in_the_frame() {
  constexpr int kWidth = 20, kHeight = 12;
  const FrameLayout layout = format_named("GRAY8").layout(kWidth, kHeight);
  GuardedFrame frame(layout, {0, 0, 0, 0});
  Random random(21);
  frame.fill(random);
  const reference::Frame like = reference::read(layout, frame.view());
  int none = 0;
  for (int turn = 0; turn < 4000; turn++) {
    Regions regions;
    regions.active = true;
    regions.ellipse = turn % 2;
    regions.region.push_back({within(random, -30, 30), within(random, -30, 30), within(random, 1, 30),
                              within(random, 1, 30), turn % 4 < 2 ? 0.01 * within(random, 0, 628) : 0.0});
    const Region &r = regions.region[0];
    const std::vector<int> sample = selected_samples(layout, like, regions).plane[0][0].sample;
    const bool any = std::any_of(sample.begin(), sample.end(), [](int v) { return v != 0; });
    const int x = r.x + r.width / 2, y = r.y + r.height / 2;
    const bool has_middle = x >= 0 && x < kWidth && y >= 0 && y < kHeight;
    expect(have_pixels(regions, kWidth, kHeight) == any && (!has_middle || sample[y * kWidth + x]),
           "region in the frame: turn " + std::to_string(turn));
    none += !any;
  }
  expect(none > 400 && none < 3600, std::to_string(none) + " regions have no pixel in the frame");
}

// Compares polygons with their definition, pixel by pixel. Coordinates are quarters of pixels, so that centres may be
// on edges.
void test_polygons() {
  Random random(15);
  int on_edges = 0;
  for (int turn = 0; turn < 3000; turn++) {
    const int width = within(random, 1, 40), height = within(random, 1, 30), reach = turn % 7 ? 20 : 300;
    std::vector<Point> points;
    std::vector<std::pair<int64_t, int64_t>> quarters;
    for (int i = within(random, 3, 9); i > 0; i--) {
      const int step = turn % 3 ? 1 : 4;
      quarters.emplace_back(within(random, -reach, 4 * width + reach) / step * step,
                            within(random, -reach, 4 * height + reach) / step * step);
      if (turn % 11 == 5) quarters.back() = quarters.front();  // degenerate: most points are the same
      points.push_back(
          {static_cast<double>(quarters.back().first) / 4, static_cast<double>(quarters.back().second) / 4});
    }
    // The box in whole pixels, and its growth.
    const double grow = turn % 2 ? 0 : 0.01 * within(random, 0, 60);
    int64_t left = INT64_MAX, top = INT64_MAX, right = INT64_MIN, bottom = INT64_MIN;
    for (const auto &[x, y] : quarters) {
      left = std::min(left, x), right = std::max(right, x);
      top = std::min(top, y), bottom = std::max(bottom, y);
    }
    const auto floor4 = [](int64_t v) { return (v - ((v % 4) + 4) % 4) / 4; };
    left = floor4(left), top = floor4(top), right = -floor4(-right), bottom = -floor4(-bottom);
    const auto dx = static_cast<int64_t>(std::ceil(grow * static_cast<double>(right - left)));
    const auto dy = static_cast<int64_t>(std::ceil(grow * static_cast<double>(bottom - top)));
    // Eighths of pixels have centres at odd multiples of 4.
    const auto encloses = [&](int64_t x, int64_t y) {
      const int64_t cx = 8 * x + 4, cy = 8 * y + 4;
      bool inside = false;
      for (size_t i = 0; i < quarters.size(); i++) {
        const auto &a = quarters[i], &b = quarters[(i + 1) % quarters.size()];
        const int64_t ax = 2 * a.first, ay = 2 * a.second, bx = 2 * b.first, by = 2 * b.second;
        if ((ay > cy) == (by > cy)) continue;
        const int64_t side = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);  // 0: on the edge
        on_edges += side == 0;
        if (by > ay ? side > 0 : side < 0) inside = !inside;
      }
      return inside;
    };
    std::vector<std::vector<bool>> want(height, std::vector<bool>(width));
    for (int64_t y = std::max<int64_t>(top, -dy); y < std::min<int64_t>(bottom, height + dy); y++)
      for (int64_t x = std::max<int64_t>(left, -dx); x < std::min<int64_t>(right, width + dx); x++) {
        if (!encloses(x, y)) continue;
        for (int64_t j = std::max<int64_t>(y - dy, 0); j <= std::min<int64_t>(y + dy, height - 1); j++)
          for (int64_t i = std::max<int64_t>(x - dx, 0); i <= std::min<int64_t>(x + dx, width - 1); i++)
            want[j][i] = true;
      }
    const auto pixels = polygon_pixels(points, grow, width, height);
    std::vector<std::vector<bool>> got(height, std::vector<bool>(width));
    bool apart = pixels->top >= 0 && pixels->bottom() <= height;
    for (int64_t y = pixels->top; apart && y < pixels->bottom(); y++) {
      int end = -1;
      for (size_t i = pixels->first[y - pixels->top]; i < pixels->first[y - pixels->top + 1]; i++) {
        const PixelRun &run = pixels->run[i];
        apart = apart && run.begin > end && run.begin < run.end && run.end <= width;
        end = run.end;
        for (int x = run.begin; x < run.end; x++) got[y][x] = true;
      }
    }
    const std::string what = "polygon " + std::to_string(turn);
    expect(apart && got == want, what);
    expect(pixels->box == Region({static_cast<int>(left - dx), static_cast<int>(top - dy),
                                  static_cast<int>(right - left + 2 * dx), static_cast<int>(bottom - top + 2 * dy)}),
           "box of " + what);
  }
  expect(on_edges > 100, "centres on edges of polygons");
  // Polygons far larger than the frame take no longer.
  const double far = 2147483647;
  for (const double grow : {0.0, 4.0}) {
    const auto all = polygon_pixels({{-far, -far}, {far, -far}, {far, far}, {-far, far}}, grow, 40, 30);
    expect(all->bottom() - all->top == 30 && all->run.size() == 30 && all->run[7].end - all->run[7].begin == 40,
           "a polygon around the frame");
  }
  const std::atomic<bool> stop{true};
  bool cancelled = false;
  try {
    polygon_pixels({{0, 0}, {9, 0}, {9, 9}}, 0, 40, 30, Cancellation(&stop));
  } catch (const Error &e) {
    cancelled = e.kind() == Error::Kind::Cancelled;
  }
  expect(cancelled, "a polygon is given up");
  expect(are_on_a_line({{1, 1}, {5, 5}, {3, 3}}) && are_on_a_line({{1, 1}, {1, 1}, {1, 1}}) &&
             !are_on_a_line({{1, 1}, {5, 5}, {3, 4}}),
         "points on a line");
}

// The time depends on the pixels, not on the number of regions. 10,000 regions take less than the seconds of filtering
// one by one.
void test_many(Backend &backend, int width, int height) {
  const FrameLayout layout = format_named("RGBA").layout(width, height);
  GuardedFrame frame(layout, {0, 0, 16, 0});
  Random random(2);
  frame.fill(random);
  const auto plan = make_plan({}, layout);
  for (int kind = 0; kind < 4; kind++) {
    Regions regions;
    regions.active = true;
    regions.ellipse = kind == 1;
    regions.invert = kind == 3;
    for (int i = 0; i < 10000; i++)
      regions.region.push_back({within(random, -50, width), within(random, -50, height), within(random, 1, width / 4),
                                within(random, 1, height / 4), kind == 2 ? 0.1 * within(random, 1, 30) : 0.0});
    const auto begin = std::chrono::steady_clock::now();
    backend.retire(backend.submit(plan, frame.view(), frame.view(), regions));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("10000 regions of kind %d on %s: %.0f ms\n", kind, backend.name(), 1e3 * seconds);
    expect(seconds < 5, "10,000 regions of kind " + std::to_string(kind) + " on " + backend.name());
  }
}

void test(Backend &backend, int width, int height) {
  test_groups(backend);
  test_unused_bits(backend);
  test_traffic(backend);
  test_one_plan(backend);
  test_gaps(backend);
  test_alpha(backend);
  test_long_masks(backend);
  test_left_edge(backend);
  test_fields(backend);
  test_long_lists(backend);
  test_tiles(backend);
  test_tall_frame(backend);
  test_many(backend, width, height);
}

}  // namespace

int run(const std::string &part) {
  const auto one_thread = [](int n, const std::function<void(int)> &body) {
    for (int i = 0; i < n; i++) body(i);
  };
  if (part.empty()) {
    test(*make_cpu_backend(one_thread, 1), 640, 360);
    test_groups(*make_cpu_backend(one_thread, 4));
  }
  if (part != "--streams") {
    test_pixels_are_filtered_once();
    test_pixels_in_the_frame();
    test_polygons();
  }
  std::string why;
  if (cuda_device_count(&why) == 0) {
    std::printf("CUDA is not tested: %s\n", why.c_str());
  } else if (part == "--streams") {
    const auto backend = make_cuda_backend();
    test_groups(*backend);
    test_traffic(*backend);
    test_one_plan(*backend);
    test_alpha(*backend);
    test_long_masks(*backend);
    test_long_lists(*backend);
  } else {
    test(*make_cuda_backend(), 320, 180);
  }
  return report();
}

}  // namespace cudaconv::test

int main(int argc, char **argv) {
  return cudaconv::test::run(argc > 1 ? argv[1] : "");
}
