// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests shapes of regions and held regions, without a stream: a joined region covers all its parts, and no region is
// lost.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "regions/history.h"
#include "regions/segmentation.h"
#include "regions/shapes.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::gst;
using namespace cudaconv::test;

namespace {

std::string text_of(const Region &r) {
  return std::to_string(r.x) + "," + std::to_string(r.y) + "," + std::to_string(r.width) + "," +
         std::to_string(r.height) + " turned by " + std::to_string(r.rotation);
}

struct Point {
  double x, y;
};

// The corners of the region after its rotation.
std::vector<Point> corners_of(const Region &r) {
  const double c = std::cos(r.rotation), s = std::sin(r.rotation), w = r.width / 2.0, h = r.height / 2.0;
  std::vector<Point> corners;
  for (const Point &p : {Point{-w, -h}, Point{w, -h}, Point{-w, h}, Point{w, h}})
    corners.push_back({r.x + w + p.x * c - p.y * s, r.y + h + p.x * s + p.y * c});
  return corners;
}

// Whether the point is in an upright region, or in the ellipse inscribed in it.
bool has(const Region &r, const Point &p, bool ellipse) {
  constexpr double kRounding = 1e-6;
  const double x = (p.x - r.x) / r.width * 2 - 1, y = (p.y - r.y) / r.height * 2 - 1;
  return ellipse ? x * x + y * y <= 1 + kRounding : std::max(std::fabs(x), std::fabs(y)) <= 1 + kRounding;
}

Region random_region(Random &random, int farthest, int largest, bool turned) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Region r = {below(2 * farthest) - farthest, below(2 * farthest) - farthest, 1 + below(largest), 1 + below(largest)};
  if (turned && below(2)) r.rotation = below(628) / 100.0;
  return r;
}

GST_START_TEST(a_joined_region_covers_both) {
  Random random = seeded();
  for (int turn = 0; turn < 4000; turn++) {
    const bool ellipse = turn % 2;
    const int largest = turn % 3 ? 40 : 2000;
    const Region a = random_region(random, 200, largest, true), b = random_region(random, 200, largest, true);
    const Region both = joined(a, b, ellipse);
    for (const Region *one : {&a, &b})
      for (const Point &corner : corners_of(*one))
        fail_unless(has(both, corner, ellipse), "%s has not all of %s", text_of(both).c_str(), text_of(*one).c_str());
    fail_unless(both.rotation == 0);
  }
  // Upright regions are joined to the smallest rectangle around both.
  const Region upright = joined({10, 20, 5, 6}, {30, 21, 7, 8}, false);
  fail_unless(upright == Region({10, 20, 27, 9}), "%s", text_of(upright).c_str());
}
GST_END_TEST;

GST_START_TEST(fractional_rectangles_include_every_pixel_that_they_touch) {
  const struct {
    double left, top, right, bottom;
    Region want;
  } cases[] = {
      {10, 20, 74, 52, {10, 20, 64, 32}},
      {0.25, 0.75, 0.5, 1.25, {0, 0, 1, 2}},
      {-0.5, -1.5, 0.5, 2, {-1, -2, 2, 4}},
      {33.3 * 1000 / 100, 0, 33.3 * 1000 / 100 + 66.7 * 1000 / 100, 1, {333, 0, 667, 1}},
      {5, 5, 5.0000000001, 5.0000000001, {5, 5, 1, 1}},
      {-2147483647.0, 0, 2147483647.0, 1, {-(1 << 30), 0, 2147483647, 1}},  // up to 2^30
  };
  for (const auto &c : cases) {
    const Region got = rectangle_around(c.left, c.top, c.right, c.bottom);
    fail_unless(got == c.want, "%s should be %s", text_of(got).c_str(), text_of(c.want).c_str());
  }
}
GST_END_TEST;

GST_START_TEST(regions_grow_by_whole_pixels_on_each_side) {
  const struct {
    Region region;
    double by;
    Region want;
  } cases[] = {
      {{10, 10, 20, 10}, 0.5, {0, 5, 40, 20}},
      {{10, 10, 5, 3}, 0.1, {9, 9, 7, 5}},
      {{10, 10, 20, 10}, 0, {10, 10, 20, 10}},
      {{10, 10, 0, 10}, 1, {10, 10, 0, 10}},
  };
  for (const auto &c : cases) {
    const Region got = grown(c.region, c.by);
    fail_unless(got == c.want, "%s becomes %s", text_of(c.region).c_str(), text_of(got).c_str());
  }
  // Regions far outside stay outside. Regions that reach into frames from there still do.
  const Region far = grown({INT32_MIN, INT32_MIN, 100, 100}, 1);
  fail_unless(far.x < 0 && far.y < 0 && is_outside(far, {100, 100}), "%s", text_of(far).c_str());
  const Region wide = grown({INT32_MIN, 3, INT32_MAX, 4}, 0.25);
  fail_unless(wide.x < 0 && int64_t{wide.x} + wide.width > 100 && wide.y == 2 && wide.height == 6, "%s",
              text_of(wide).c_str());
  const Region turned = grown({10, 10, 8, 4, 0.5}, 1);
  fail_unless(turned == Region({2, 6, 24, 12, 0.5}), "%s", text_of(turned).c_str());
}
GST_END_TEST;

GST_START_TEST(a_region_without_a_pixel_is_outside) {
  const FrameSize frame = {100, 50};
  for (const Region &r : {Region{-10, 0, 10, 5}, Region{100, 0, 1, 5}, Region{0, -5, 9, 5}, Region{0, 50, 9, 5},
                          Region{5, 5, 0, 5}, Region{5, 5, 5, -1}, Region{-40, 20, 40, 2, 0}})
    fail_unless(is_outside(r, frame), "%s", text_of(r).c_str());
  for (const Region &r : {Region{-10, 0, 11, 5}, Region{99, 0, 1, 5}, Region{0, -5, 9, 6}, Region{0, 49, 9, 5},
                          Region{10, -20, 2, 40, 1.57}})
    fail_if(is_outside(r, frame), "%s", text_of(r).c_str());
  // Regions that reach into the frame only with rotation, or only without.
  fail_unless(is_outside(Region{-20, 20, 24, 2, 1.5707963}, frame));
  fail_if(is_outside(Region{-3, -5, 2, 24, 1.5707963}, frame));
}
GST_END_TEST;

// A mask of one member, with at most `finest` samples for each pixel, across and down.
RegionMask random_mask(Random &random, int farthest, int largest, int finest) {
  RegionMask mask;
  mask.box = random_region(random, farthest, largest, false);
  mask.width = 1 + static_cast<int>(random() % static_cast<unsigned>(finest * mask.box.width));
  mask.height = 1 + static_cast<int>(random() % static_cast<unsigned>(finest * mask.box.height));
  mask.member.resize(static_cast<size_t>(mask.width) * mask.height);
  mask.member[random() % mask.member.size()] = 1;
  return mask;
}

// Whether the centre of the pixel is on a member.
bool has(const RegionMask &mask, int x, int y) {
  const int column = (2 * (x - mask.box.x) + 1) * mask.width, row = (2 * (y - mask.box.y) + 1) * mask.height;
  if (column < 0 || row < 0 || column >= 2 * mask.width * mask.box.width || row >= 2 * mask.height * mask.box.height)
    return false;
  return mask.member[row / (2 * mask.box.height) * mask.width + column / (2 * mask.box.width)] != 0;
}

// Its members count, not its rectangle.
GST_START_TEST(a_mask_without_a_pixel_is_outside) {
  Random random = seeded();
  const FrameSize frame = {20, 12};
  int outside = 0;
  for (int turn = 0; turn < 4000; turn++) {
    const RegionMask mask = random_mask(random, 15, 30, 2);
    bool seen = false;
    for (int y = 0; y < frame.height; y++)
      for (int x = 0; x < frame.width; x++) seen |= has(mask, x, y);
    fail_unless(is_outside(mask, {0, 0, frame.width, frame.height}) == !seen, "%s of %dx%d", text_of(mask.box).c_str(),
                mask.width, mask.height);
    outside += !seen;
  }
  fail_unless(outside > 400 && outside < 3600, "%d masks are outside", outside);
}
GST_END_TEST;

// Whether a pixel that is at most `distance` away, across and down, is a member.
bool is_near(const RegionMask &mask, int x, int y, int distance) {
  for (int down = -distance; down <= distance; down++)
    for (int across = -distance; across <= distance; across++)
      if (has(mask, x + across, y + down)) return true;
  return false;
}

// Masks beside the frame may grow into it.
GST_START_TEST(a_joined_mask_grows_as_its_parts_do) {
  Random random = seeded();
  const FrameSize frame = {20, 12};
  for (int turn = 0; turn < 400; turn++) {
    std::vector<std::shared_ptr<const RoiMask>> masks;
    for (int i = 0; i < 3; i++) {
      auto mask = std::make_shared<RoiMask>();
      mask->mask = random_mask(random, 25, 12, 1);
      mask->shorter_side = 1 + static_cast<int>(random() % 4);
      masks.push_back(std::move(mask));
    }
    const double fraction = turn % 5 / 2.0;
    const auto both = joined(masks, frame), all = both ? grown(*both, fraction, frame) : nullptr;
    for (const auto &mask : masks) {
      const int distance = static_cast<int>(std::ceil(fraction * mask->shorter_side));
      for (int y = 0; y < frame.height; y++)
        for (int x = 0; x < frame.width; x++)
          fail_if(is_near(mask->mask, x, y, distance) && !(all && has(all->mask, x, y)), "%d,%d of %s", x, y,
                  text_of(mask->mask.box).c_str());
    }
  }
}
GST_END_TEST;

// Fields and views may have samples at several distances.
GST_START_TEST(a_widened_mask_covers_all_between) {
  Random random = seeded();
  const FrameSize frame = {20, 12};
  for (int turn = 0; turn < 400; turn++) {
    RoiList list;
    list.mask.push_back(std::make_shared<const RoiMask>(RoiMask{{}, random_mask(random, 20, 12, 2), 1}));
    const Pixel by = {static_cast<int>(random() % 3), static_cast<int>(random() % 5)};
    const RegionMask before = list.mask[0]->mask, after = widened(list, by, frame).mask.at(0)->mask;
    for (int y = 0; y < frame.height; y++)
      for (int x = 0; x < frame.width; x++) {
        bool covered = false;
        for (int64_t i = 0; i <= by.x; i++)
          for (int64_t j = 0; j <= by.y; j++) covered |= has(before, x - static_cast<int>(i), y - static_cast<int>(j));
        fail_if(covered && !has(after, x, y), "%d,%d of %s", x, y, text_of(before.box).c_str());
      }
  }
}
GST_END_TEST;

FrameSize random_size(Random &random) {
  return {1 + static_cast<int>(random() % 300), 1 + static_cast<int>(random() % 300)};
}

GST_START_TEST(scaled_regions_cover_the_same_pixels) {
  Random random = seeded();
  for (int turn = 0; turn < 2000; turn++) {
    const FrameSize from = random_size(random), to = random_size(random);
    const Region r = random_region(random, 300, 300, false), got = rescaled(r, from, to);
    const double x = 1.0 * to.width / from.width, y = 1.0 * to.height / from.height;
    const auto is_near = [](double edge, double exact, int side) {
      return side * (edge - exact) >= -1e-6 && side * (edge - exact) < 1 + 1e-6;
    };
    fail_unless(is_near(got.x, r.x * x, -1) && is_near(got.y, r.y * y, -1) &&
                    is_near(got.x + got.width, (r.x + r.width) * x, 1) &&
                    is_near(got.y + got.height, (r.y + r.height) * y, 1),
                "%s becomes %s", text_of(r).c_str(), text_of(got).c_str());
  }
  // Regions far outside stay outside.
  const Region far = rescaled({INT32_MAX, INT32_MAX, 9, 9}, {100, 100}, {200, 200});
  fail_unless(far.x >= 200 && far.y >= 200 && is_outside(far, {200, 200}), "%s", text_of(far).c_str());
}
GST_END_TEST;

GST_START_TEST(a_scaled_region_covers_a_turned_one) {
  Random random = seeded();
  for (int turn = 0; turn < 2000; turn++) {
    const FrameSize from = random_size(random), to = random_size(random);
    const Region r = random_region(random, 300, 300, true), got = rescaled(r, from, to);
    for (const bool ellipse : {false, true})
      for (Point p : corners_of(r)) {
        p = {p.x * to.width / from.width, p.y * to.height / from.height};
        fail_unless(got.rotation == 0 && has(got, p, ellipse && r.rotation != 0), "%s becomes %s", text_of(r).c_str(),
                    text_of(got).c_str());
      }
  }
}
GST_END_TEST;

// A scaled mask has each pixel that a pixel of the mask before touches, and little more.
GST_START_TEST(a_scaled_mask_covers_the_same_pixels) {
  Random random = seeded();
  for (int turn = 0; turn < 600; turn++) {
    const auto side = [&] { return 1 + static_cast<int>(random() % 40); };
    const FrameSize from = {side(), side()}, to = {turn % 5 ? side() : from.width, turn % 3 ? side() : from.height};
    const RegionMask mask = random_mask(random, 20, 20, 2);
    const auto scaled = rescaled(RoiMask{{}, mask, 1}, from, to);
    if (to == from) fail_unless(scaled->mask == mask && scaled->cover == Cover::Exact);
    const double across = 1.0 * from.width / to.width, down = 1.0 * from.height / to.height;
    for (int y = 0; y < to.height; y++)
      for (int x = 0; x < to.width; x++) {
        bool touched = false, near = false;
        for (int v = static_cast<int>(y * down + 1e-9); v < (y + 1) * down - 1e-9; v++)
          for (int u = static_cast<int>(x * across + 1e-9); u < (x + 1) * across - 1e-9; u++)
            touched |= has(mask, u, v);
        // Samples may be finer than pixels.
        const auto is_near = [](int sample, int of, int begin, int length, int pixel, double scale) {
          const double size = 1.0 * length / of, start = begin + sample * size,
                       most = 1 + scale + std::max(scale, size / 4);
          return start - (pixel + 1) * scale < most && pixel * scale - start - size < most;
        };
        for (int j = 0; j < mask.height; j++)
          for (int i = 0; i < mask.width; i++)
            near |= mask.member[static_cast<size_t>(j * mask.width + i)] &&
                    is_near(i, mask.width, mask.box.x, mask.box.width, x, across) &&
                    is_near(j, mask.height, mask.box.y, mask.box.height, y, down);
        const bool got = has(scaled->mask, x, y);
        fail_unless(got ? near : !touched, "%s of %dx%d, from %dx%d to %dx%d: %d at %d,%d", text_of(mask.box).c_str(),
                    mask.width, mask.height, from.width, from.height, to.width, to.height, got, x, y);
      }
  }
}
GST_END_TEST;

// The ellipse of a scaled region covers the exact one, and with roi-invert the exact one covers it.
GST_START_TEST(a_scaled_ellipse_covers_the_exact_one) {
  Random random = seeded();
  int shown = 0;
  for (int turn = 0; turn < 4000; turn++) {
    const FrameSize from = random_size(random), to = random_size(random);
    const Region r = random_region(random, 300, 60, false);
    DetectedRegion scaled = rescaled(DetectedRegion{{}, r}, from, to);
    fail_unless(turn % 2 || scaled.cover != Cover::Joined);
    if (turn % 2) scaled = rescaled(DetectedRegion{{nullptr, 0, Cover::Rounded}, r}, from, to);
    const Region outer = for_ellipse(scaled), inner = for_invert(scaled, true);
    shown += inner.width > 0;
    for (int degrees = 0; degrees < 360; degrees++) {
      const double c = std::cos(degrees * M_PI / 180), s = std::sin(degrees * M_PI / 180);
      const Point p = {(r.x + r.width * (1 + c) / 2) * to.width / from.width,
                       (r.y + r.height * (1 + s) / 2) * to.height / from.height};
      fail_unless(has(outer, p, true), "%s becomes %s", text_of(r).c_str(), text_of(outer).c_str());
      if (inner.width <= 0 || scaled.cover == Cover::Exact) continue;
      const double x = (inner.x + inner.width * (1 + c) / 2) * from.width / to.width,
                   y = (inner.y + inner.height * (1 + s) / 2) * from.height / to.height;
      fail_unless(has(r, {x, y}, true), "%s shows %s", text_of(r).c_str(), text_of(inner).c_str());
    }
  }
  fail_unless(shown > 100, "%d", shown);
}
GST_END_TEST;

// With roi-invert a region is shown: what was rounded is shown within the exact region alone.
GST_START_TEST(regions_that_are_shown_do_not_grow) {
  RoiHistory history;
  history.set_picture({{100, 100}, {100, 100}, {}});
  RoiList found;
  found.add({10, 10, 31, 31, 0.5}, {});
  found.add({10, 10, 31, 31}, {});
  history.add(found, 0, 0, {1, 1});
  fail_unless_equals_int(history.in_force(0, {1, 1}, {}).region.size(), 2);
  history.set_picture({{99, 99}, {99, 99}, {}});
  const RoiList list = history.in_force(0, {1, 1}, {});
  fail_unless_equals_int(list.region.size(), 2);
  int shown = 0;
  for (const DetectedRegion &one : list.region) {
    const Region r = for_invert(one, false);
    if (r.width <= 0) continue;
    shown++;
    fail_unless(r.x >= 9.9 && r.y >= 9.9 && r.x + r.width <= 40.59 && r.y + r.height <= 40.59, "%s",
                text_of(r).c_str());
  }
  fail_unless_equals_int(shown, 1);  // not the turned one
}
GST_END_TEST;

// roi-grow and roi-scale take the shorter side of a mask. It may be another one after a change of size.
GST_START_TEST(the_shorter_side_of_a_mask_is_scaled) {
  const auto mask = std::make_shared<RoiMask>(RoiMask{{}, {{20, 20, 10, 80}, 1, 1, {1}}, 10});
  for (const auto &[size, side] :
       {std::pair(FrameSize{100, 100}, 10), {{200, 100}, 20}, {{100, 200}, 20}, {{50, 100}, 10}, {{25, 25}, 3}}) {
    RoiHistory history;
    history.set_picture({{100, 100}, {100, 100}, {}});
    history.add({{}, {mask}, false}, 0, 0, {1, 1});
    history.set_picture({size, size, {}});
    fail_unless_equals_int(history.in_force(0, {1, 1}, {}).mask.at(0)->shorter_side, side);
  }
}
GST_END_TEST;

// Whether one region of the list covers all of `r`.
bool covers(const RoiList &list, const Region &r) {
  return std::any_of(list.region.begin(), list.region.end(), [&](const DetectedRegion &one) {
    const std::vector<Point> corners = corners_of(r);
    return std::all_of(corners.begin(), corners.end(), [&](const Point &p) { return has(one.region, p, false); });
  });
}

// With about as many regions as the bound, each region applies for the whole time to hold.
GST_START_TEST(no_held_region_is_lost) {
  constexpr uint64_t kHold = 8000;
  constexpr auto kMost = static_cast<int>(RoiHistory::kMostRegions);
  Random random = seeded();
  for (const int count : {3, kMost - 1, kMost, kMost + 1, kMost + 3, 2 * kMost + 1}) {
    RoiHistory history;
    history.set_picture({{2000, 2000}, {2000, 2000}, {}});
    std::vector<std::pair<int64_t, Region>> seen;
    for (int64_t time = 0; time < 1000; time += 400) {  // all in one slice
      RoiList found;
      for (int i = 0; i < count; i++) {
        found.add(random_region(random, 1000, 9, false), i % 3 ? Labels{"face"} : Labels{"plate"});
        seen.emplace_back(time, found.region.back().region);
      }
      history.add(found, time, time, {kHold, kHold});
      fail_unless(history.in_force(time, {kHold, kHold}, {}).region.size() <=
                  std::max<size_t>(RoiHistory::kMostRegions, 3 * count));
    }
    for (const int64_t time : {900, 8000, 8001, 8400, 8401, 8800, 8801}) {
      history.add({}, time, time, {kHold, kHold});
      const RoiList list = history.in_force(time, {kHold, kHold}, {});
      size_t in_force = 0;
      for (size_t i = 0; i < seen.size(); i++) {
        if (time - seen[i].first > int64_t{kHold}) continue;
        in_force++;
        if (i % 37 && i + 1 != seen.size()) continue;  // only some regions, since checking each takes long
        fail_unless(covers(list, seen[i].second), "of %d, %s of %d is lost at %d", count,
                    text_of(seen[i].second).c_str(), static_cast<int>(seen[i].first), static_cast<int>(time));
      }
      if (!in_force) fail_unless(list.region.empty());
    }
  }
}
GST_END_TEST;

// With roi-invert, what no region covers is hidden: a joined region would show some of it, and says so.
GST_START_TEST(regions_that_are_joined_say_so) {
  constexpr RoiTimes kTimes = {8000, 8000};
  Random random = seeded();
  RoiHistory history;
  history.set_picture({{2000, 2000}, {2000, 2000}, {}});
  RoiList all;
  for (int64_t time = 0; time < 900; time += 300) {  // all in one slice
    RoiList found;
    for (size_t i = 0; i < RoiHistory::kMostRegions - 9; i++)
      found.add(random_region(random, 1000, 9, false), i % 2 ? Labels{"face"} : Labels{"plate"});
    for (size_t i = 0; i < RoiHistory::kMostMasks; i++)
      found.mask.push_back(std::make_shared<RoiMask>(RoiMask{{}, random_mask(random, 1000, 9, 1), 1}));
    history.add(found, time, time, kTimes);
    all.region.insert(all.region.end(), found.region.begin(), found.region.end());
    all.mask.insert(all.mask.end(), found.mask.begin(), found.mask.end());
    const RoiList list = history.in_force(time, kTimes, {});
    size_t joined = 0, of_any_type = 0;
    for (const DetectedRegion &r : list.region) {
      joined += r.cover == Cover::Joined;
      of_any_type += !r.labels;
      if (r.cover == Cover::Joined) continue;
      const auto is_it = [&](const DetectedRegion &one) { return is_same(one, r); };
      fail_if(std::none_of(all.region.begin(), all.region.end(), is_it), "%s", text_of(r.region).c_str());
    }
    for (const auto &mask : list.mask)
      fail_if(mask->cover == Cover::Exact && std::find(all.mask.begin(), all.mask.end(), mask) == all.mask.end(), "%s",
              text_of(mask->mask.box).c_str());
    fail_if(list.region.empty() || list.region.size() > RoiHistory::kMostRegions);
    fail_unless((joined > 0) == (time > 0) && of_any_type <= 2, "%zu are joined, %zu of any type", joined, of_any_type);
  }
}
GST_END_TEST;

// Each value of a segmentation becomes a mask of the same samples at the same place. Edges of its samples are edges of
// pixels. Beyond 64 values there is one mask.
GST_START_TEST(values_of_a_segmentation_become_masks) {
  Random random = seeded();
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int turn = 0; turn < 600; turn++) {
    const int most = turn % 4 ? 5 : 200;
    Segmentation samples = {1 + below(20), 1 + below(20), {}};
    for (int i = 0; i < samples.width * samples.height; i++)
      samples.value.push_back(static_cast<uint16_t>(300 * below(most)));
    const Region box = {below(40) - 20, below(40) - 20, 1 + below(60), 1 + below(60)};
    std::vector<uint16_t> values;
    const auto found_of = [&](uint16_t value) -> Detected {
      if (value % 900 == 0) return {};
      values.push_back(value);
      return {std::make_shared<const Labels>(Labels{std::to_string(value)})};
    };
    RoiList list;
    add_masks(samples, box, found_of, &list);
    std::sort(values.begin(), values.end());
    fail_unless(std::adjacent_find(values.begin(), values.end()) == values.end(), "a value was asked for twice");
    fail_unless(list.mask.size() == values.size() || (list.mask.size() == 1 && !list.mask[0]->labels));
    fail_unless(values.size() <= 64 || list.mask.size() == 1);
    if (values.empty()) continue;
    std::vector<bool> covered(samples.value.size());
    for (const auto &found : list.mask) {
      const RegionMask &mask = found->mask;
      // The mask's first sample, and its scale.
      const int left = (mask.box.x - box.x) * samples.width / box.width;
      const int top = (mask.box.y - box.y) * samples.height / box.height;
      fail_unless_equals_int((mask.box.x - box.x) * samples.width, left * box.width);
      fail_unless_equals_int((mask.box.y - box.y) * samples.height, top * box.height);
      fail_unless_equals_int(mask.box.width * samples.width, mask.width * box.width);
      fail_unless_equals_int(mask.box.height * samples.height, mask.height * box.height);
      for (int i = 0; i < mask.width * mask.height; i++) {
        const int at = (top + i / mask.width) * samples.width + left + i % mask.width;
        const uint16_t value = samples.value[at];
        const bool of_all = !found->labels;
        fail_unless(mask.member[i] == (of_all ? value % 900 != 0 : found->labels->front() == std::to_string(value)));
        if (mask.member[i]) covered[at] = true;
      }
    }
    for (size_t i = 0; i < covered.size(); i++) fail_unless(covered[i] == (samples.value[i] % 900 != 0));
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("roishapes");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, a_joined_region_covers_both);
  tcase_add_test(tc, fractional_rectangles_include_every_pixel_that_they_touch);
  tcase_add_test(tc, regions_grow_by_whole_pixels_on_each_side);
  tcase_add_test(tc, a_region_without_a_pixel_is_outside);
  tcase_add_test(tc, a_mask_without_a_pixel_is_outside);
  tcase_add_test(tc, a_joined_mask_grows_as_its_parts_do);
  tcase_add_test(tc, a_widened_mask_covers_all_between);
  tcase_add_test(tc, scaled_regions_cover_the_same_pixels);
  tcase_add_test(tc, a_scaled_region_covers_a_turned_one);
  tcase_add_test(tc, a_scaled_mask_covers_the_same_pixels);
  tcase_add_test(tc, a_scaled_ellipse_covers_the_exact_one);
  tcase_add_test(tc, regions_that_are_shown_do_not_grow);
  tcase_add_test(tc, the_shorter_side_of_a_mask_is_scaled);
  tcase_add_test(tc, no_held_region_is_lost);
  tcase_add_test(tc, regions_that_are_joined_say_so);
  tcase_add_test(tc, values_of_a_segmentation_become_masks);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "roishapes", make_suite, false);
}
