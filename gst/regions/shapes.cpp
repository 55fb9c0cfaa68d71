// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions/shapes.h"

#include <cmath>
#include <utility>

#include "plan/area.h"
#include "plan/rounding.h"

namespace cudaconv::gst {

namespace {

// The farthest left and top edge of a region: no frame reaches it, and sums with it fit in an int.
constexpr int64_t kFarthest = int64_t{1} << 30;

using Box = Rect<int64_t>;

Box box_of(const Region &r) {
  return {r.x, r.y, int64_t{r.x} + r.width, int64_t{r.y} + r.height};
}

// The smallest box around the region as it is rotated.
Box bounds_of(const Region &r) {
  if (r.rotation == 0) return box_of(r);
  const double c = std::fabs(std::cos(r.rotation)), s = std::fabs(std::sin(r.rotation));
  const double across = (r.width * c + r.height * s) / 2, down = (r.width * s + r.height * c) / 2;
  const double x = r.x + r.width / 2.0, y = r.y + r.height / 2.0;
  const auto integer = [](double v) { return static_cast<int64_t>(v); };
  return {integer(std::floor(x - across)), integer(std::floor(y - down)), integer(std::ceil(x + across)),
          integer(std::ceil(y + down))};
}

Box common(const Box &a, const Box &b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

Box clipped(const Box &box, FrameSize frame) {
  return common(box, {0, 0, frame.width, frame.height});
}

// The part of the box that is at most a frame away from the frame: what is beside it may grow into it.
Box around(const Box &box, FrameSize frame) {
  return common(box, {-frame.width, -frame.height, 2 * int64_t{frame.width}, 2 * int64_t{frame.height}});
}

Region region_of(const Box &box) {
  const int64_t left = std::clamp(box.x0, -kFarthest, kFarthest), top = std::clamp(box.y0, -kFarthest, kFarthest);
  return {to_int(left), to_int(top), to_int(box.x1 - left), to_int(box.y1 - top)};
}

// A row or column of a mask: `count` samples over `length` pixels from pixel `start`.
struct Line {
  int64_t start, length, count;
};
struct Span {
  int64_t begin, end;
};
// The samples [begin, end) of line `from` that lie within `distance` pixels of sample `i` of line `onto`.
Span near(const Line &from, const Line &onto, int64_t i, int64_t distance) {
  const __int128 scale = __int128{onto.count} * from.length;
  const __int128 left = __int128{i} * onto.length + __int128{onto.start - distance - from.start} * onto.count;
  const __int128 right = __int128{i + 1} * onto.length + __int128{onto.start + distance - from.start} * onto.count;
  return {std::clamp<int64_t>(floor_div(left * from.count, scale), 0, from.count),
          std::clamp<int64_t>(ceil_div(right * from.count, scale), 0, from.count)};
}

// How many units of length the pixels of two frames have, and a distance in these units.
struct Units {
  int64_t from = 1, onto = 1, distance = 0;
};

// Adds to `onto` all samples that are partly within the distances, across and down, of a member of `from`.
void paint(const RegionMask &from, Units across, Units down, RegionMask *onto) {
  // The number of members above and left of each corner of a sample: a summed-area table.
  const size_t pitch = static_cast<size_t>(from.width) + 1;
  std::vector<uint32_t> sum(pitch * (static_cast<size_t>(from.height) + 1));
  for (int y = 0; y < from.height; y++) {
    uint32_t row = 0;
    for (int x = 0; x < from.width; x++) {
      row += from.member[static_cast<size_t>(y) * from.width + x] != 0;
      sum[(y + 1) * pitch + x + 1] = sum[y * pitch + x + 1] + row;
    }
  }
  const auto line = [](int start, int length, int count, int64_t unit) {
    return Line{start * unit, length * unit, count};
  };
  const Line from_x = line(from.box.x, from.box.width, from.width, across.from),
             onto_x = line(onto->box.x, onto->box.width, onto->width, across.onto);
  const Line from_y = line(from.box.y, from.box.height, from.height, down.from),
             onto_y = line(onto->box.y, onto->box.height, onto->height, down.onto);
  std::vector<Span> columns(onto->width);
  for (int x = 0; x < onto->width; x++) columns[x] = near(from_x, onto_x, x, across.distance);
  for (int y = 0; y < onto->height; y++) {
    const Span rows = near(from_y, onto_y, y, down.distance);
    const uint32_t *above = &sum[rows.begin * pitch], *below = &sum[std::max(rows.begin, rows.end) * pitch];
    uint8_t *to = &onto->member[static_cast<size_t>(y) * onto->width];
    for (int x = 0; x < onto->width; x++) {
      const auto [begin, end] = columns[x];
      if (begin < end) to[x] |= below[end] - below[begin] != above[end] - above[begin];
    }
  }
}

// A mask over `box`, of `width` x `height` samples without members.
RegionMask blank(const Box &box, int64_t width, int64_t height) {
  RegionMask mask;
  mask.box = region_of(box);
  mask.width = static_cast<int>(width);
  mask.height = static_cast<int>(height);
  mask.member.resize(static_cast<size_t>(width) * height);
  return mask;
}

// The number of samples for `length` pixels, with `count` samples for `of` pixels: rounded up, one a pixel at most.
int64_t samples(int64_t length, int64_t count, int64_t of) {
  return std::clamp<int64_t>(ceil_div(__int128{count} * length, of), 1, length);
}

int64_t share(int length, double fraction) {
  return static_cast<int64_t>(std::ceil(fraction * length));
}

}  // namespace

size_t RoiList::count() const {
  const auto counts = [](const DetectedRegion &found) { return !found.repeats; };
  return static_cast<size_t>(std::count_if(region.begin(), region.end(), counts)) + mask.size();
}

void RoiList::add(const Region &rectangle, const Labels &labels, int64_t id, Cover cover) {
  const bool shares = !region.empty() && region.back().labels && *region.back().labels == labels;
  region.push_back(
      {{shares ? region.back().labels : std::make_shared<const Labels>(labels), std::max<int64_t>(id, 0), cover},
       rectangle});
}

bool have_same_labels(const Detected &a, const Detected &b) {
  return a.labels == b.labels || (a.labels && b.labels && *a.labels == *b.labels);
}

int compare_labels(const Detected &a, const Detected &b) {
  if (a.labels == b.labels) return 0;
  if (!a.labels || !b.labels) return a.labels ? 1 : -1;
  return *a.labels < *b.labels ? -1 : *b.labels < *a.labels;
}

bool is_same(const DetectedRegion &a, const DetectedRegion &b) {
  return a.region == b.region && a.cover == b.cover && have_same_labels(a, b);
}

Region moved(Region region, Pixel by) {
  return {to_int(region.x + by.x), to_int(region.y + by.y), region.width, region.height, region.rotation};
}

std::shared_ptr<const RoiMask> moved(const std::shared_ptr<const RoiMask> &mask, Pixel by) {
  auto copy = std::make_shared<RoiMask>(*mask);
  copy->mask.box = moved(mask->mask.box, by);
  return copy;
}

RoiList moved(RoiList regions, Pixel by) {
  if (by.x == 0 && by.y == 0) return regions;
  for (DetectedRegion &found : regions.region) found.region = moved(found.region, by);
  for (auto &mask : regions.mask) mask = moved(mask, by);
  return regions;
}

bool is_outside(const Region &region, FrameSize frame) {
  if (region.width <= 0 || region.height <= 0) return true;
  return clipped(bounds_of(region), frame).empty();
}

bool is_outside(const RegionMask &mask, const Region &rectangle) {
  const Box box = common(box_of(mask.box), box_of(rectangle));
  if (box.empty()) return true;
  // The samples that centres of pixels are on; pixels count from the start of the mask.
  const auto samples_of = [](int64_t pixel, int64_t end, int64_t count, int64_t length) {
    std::vector<int64_t> samples;
    for (; pixel < end; pixel++) {
      const int64_t sample = (2 * pixel + 1) * count / (2 * length);
      if (samples.empty() || samples.back() != sample) samples.push_back(sample);
    }
    return samples;
  };
  const auto columns = samples_of(box.x0 - mask.box.x, box.x1 - mask.box.x, mask.width, mask.box.width);
  for (const int64_t y : samples_of(box.y0 - mask.box.y, box.y1 - mask.box.y, mask.height, mask.box.height))
    for (const int64_t x : columns)
      if (mask.member[y * mask.width + x]) return false;
  return true;
}

Region upright(const Region &region) {
  return region.rotation == 0 ? region : region_of(bounds_of(region));
}

Region common(const Region &a, const Region &b) {
  return region_of(common(box_of(a), box_of(b)));
}

Region rectangle_around(double left, double top, double right, double bottom) {
  constexpr double kRounding = 0x1p-20;  // of products such as 33.3 per cent of 1000
  const auto first = [&](double v) { return static_cast<int64_t>(std::floor(v + kRounding)); };
  const auto end = [&](double v) { return static_cast<int64_t>(std::ceil(v - kRounding)); };
  const int64_t x = first(left), y = first(top);
  return region_of(Box{x, y, std::max(end(right), x + 1), std::max(end(bottom), y + 1)});
}

Region grown(const Region &region, double fraction) {
  if (fraction <= 0 || region.width <= 0 || region.height <= 0) return region;
  const Box box = box_of(region);
  const int64_t across = share(region.width, fraction), down = share(region.height, fraction);
  Region result = region_of({box.x0 - across, box.y0 - down, box.x1 + across, box.y1 + down});
  result.rotation = region.rotation;
  return result;
}

std::shared_ptr<const RoiMask> grown(const RoiMask &mask, double fraction, FrameSize frame) {
  const int64_t distance = share(mask.shorter_side, fraction);
  const Box box = box_of(mask.mask.box);
  const Box wanted = clipped({box.x0 - distance, box.y0 - distance, box.x1 + distance, box.y1 + distance}, frame);
  if (wanted.empty()) return nullptr;
  auto result = std::make_shared<RoiMask>();
  result->mask = blank(wanted, samples(wanted.width(), mask.mask.width, mask.mask.box.width),
                       samples(wanted.height(), mask.mask.height, mask.mask.box.height));
  result->shorter_side = to_int(mask.shorter_side + 2 * distance);
  paint(mask.mask, {1, 1, distance}, {1, 1, distance}, &result->mask);
  return result;
}

Region joined(const Region &a, const Region &b, bool ellipse) {
  Box box = bounds_of(a).hull(bounds_of(b));
  if (ellipse) {
    // The ellipse through the corners of a rectangle is the square root of 2 times as wide and as high.
    constexpr double kMore = 0.2072;  // (sqrt(2) - 1) / 2, rounded up
    const auto more = [](int64_t length) { return static_cast<int64_t>(std::ceil(kMore * length)); };
    const int64_t across = more(box.width()), down = more(box.height());
    box = {box.x0 - across, box.y0 - down, box.x1 + across, box.y1 + down};
  }
  return region_of(box);
}

std::shared_ptr<const RoiMask> joined(const std::vector<std::shared_ptr<const RoiMask>> &masks, FrameSize frame) {
  Box all = {0, 0, 0, 0};
  // The size of samples in whole pixels. They lie at multiples of it, so that joining once more does not move edges.
  int64_t across = INT_MAX, down = INT_MAX;
  int shorter_side = 0;
  for (const auto &m : masks) {
    const Box box = around(box_of(m->mask.box), frame);
    if (box.empty()) continue;
    all = all.empty() ? box : all.hull(box);
    across = std::min<int64_t>(across, std::max(m->mask.box.width / m->mask.width, 1));
    down = std::min<int64_t>(down, std::max(m->mask.box.height / m->mask.height, 1));
    shorter_side = std::max(shorter_side, m->shorter_side);
  }
  if (all.empty()) return nullptr;
  all = {floor_div(all.x0, across) * across, floor_div(all.y0, down) * down, ceil_div(all.x1, across) * across,
         ceil_div(all.y1, down) * down};
  auto result = std::make_shared<RoiMask>();
  result->mask = blank(all, all.width() / across, all.height() / down);
  result->shorter_side = shorter_side;
  for (const auto &m : masks)
    if (!around(box_of(m->mask.box), frame).empty()) paint(m->mask, {}, {}, &result->mask);
  return result;
}

RoiList widened(RoiList regions, Pixel by, FrameSize frame) {
  if (by.x == 0 && by.y == 0) return regions;
  const bool little = by.x <= 1 && by.y <= 1;
  for (DetectedRegion &found : regions.region) {
    if (found.region.width <= 0 || found.region.height <= 0) continue;
    found.cover = found.cover == Cover::Exact && found.region.rotation == 0 && little ? Cover::Rounded : Cover::Joined;
    found.region = joined(found.region, moved(found.region, by), false);
  }
  for (auto &mask : regions.mask) {
    std::vector<std::shared_ptr<const RoiMask>> places;
    for (int64_t y = 0; y <= by.y; y++)
      for (int64_t x = 0; x <= by.x; x++) places.push_back(moved(mask, {x, y}));
    const auto all = joined(places, frame);
    if (!all) continue;
    auto copy = std::make_shared<RoiMask>(*all);
    static_cast<Detected &>(*copy) = *mask;
    copy->cover = Cover::Joined;
    mask = std::move(copy);
  }
  return regions;
}

Region rescaled(const Region &region, FrameSize from, FrameSize to) {
  // Scaled sides would not cover a turned region. An upright one does, and so does the ellipse in it.
  const Box box = box_of(region.rotation == 0 ? region : joined(region, region, true));
  const auto down = [](int64_t v, int by, int of) { return floor_div(__int128{v} * by, of); };
  const auto up = [](int64_t v, int by, int of) { return ceil_div(__int128{v} * by, of); };
  return region_of({down(box.x0, to.width, from.width), down(box.y0, to.height, from.height),
                    up(box.x1, to.width, from.width), up(box.y1, to.height, from.height)});
}

DetectedRegion rescaled(DetectedRegion found, FrameSize from, FrameSize to) {
  const auto rounds = [](int at, int by, int of) { return int64_t{at} * by % of != 0; };
  const Region &r = found.region;
  if (rounds(r.x, to.width, from.width) || rounds(r.y, to.height, from.height) ||
      rounds(r.width, to.width, from.width) || rounds(r.height, to.height, from.height))
    found.cover = found.cover == Cover::Exact ? Cover::Rounded : Cover::Joined;
  if (r.rotation != 0) found.cover = Cover::Joined;
  found.region = rescaled(r, from, to);
  return found;
}

// Whether edges of samples stay at edges of pixels, so that a scaled line of a mask has the same pixels.
static bool stays_exact(int samples, int length, int from, int to) {
  return to == from || (to % from == 0 && length % samples == 0);
}

std::shared_ptr<const RoiMask> rescaled(const RoiMask &mask, FrameSize from, FrameSize to) {
  auto result = std::make_shared<RoiMask>(mask);
  // The longer side may have become the shorter one.
  const int64_t side = mask.shorter_side;
  result->shorter_side =
      to_int(std::max(ceil_div(side * to.width, from.width), ceil_div(side * to.height, from.height)));
  const Region &given = mask.mask.box, box = rescaled(given, from, to);
  result->mask.box = box;
  if (stays_exact(mask.mask.width, given.width, from.width, to.width) &&
      stays_exact(mask.mask.height, given.height, from.height, to.height))
    return result;
  result->cover = Cover::Joined;
  // A pixel that has its middle on a member reaches half a pixel beyond it.
  const Box whole = box_of(given), wider = {whole.x0 - 1, whole.y0 - 1, whole.x1 + 1, whole.y1 + 1};
  const Box wanted = around(box_of(rescaled(region_of(wider), from, to)), to);
  if (wanted.empty()) return result;
  constexpr int kFiner = 4;  // samples for each one before, as far as there are pixels
  result->mask = blank(wanted, samples(wanted.width(), kFiner * int64_t{mask.mask.width}, box.width),
                       samples(wanted.height(), kFiner * int64_t{mask.mask.height}, box.height));
  paint(mask.mask, {to.width, from.width, (to.width + 1) / 2}, {to.height, from.height, (to.height + 1) / 2},
        &result->mask);
  return result;
}

RoiList rescaled(const RoiList &regions, FrameSize from, FrameSize to) {
  RoiList result;
  result.everywhere = regions.everywhere;
  for (const DetectedRegion &found : regions.region) result.region.push_back(rescaled(found, from, to));
  for (const auto &found : regions.mask) result.mask.push_back(rescaled(*found, from, to));
  return result;
}

// Margins across and down. A rectangle was rounded outwards, each edge by less than a pixel, so its centre has moved by
// less than half a pixel. Enlarged by these margins, its inscribed ellipse covers the one before rounding.
static Pixel margins(const Region &r) {
  const double ratio = 1.0 * r.width / r.height;
  const auto more = [](double by) { return static_cast<int64_t>(std::ceil(std::hypot(1, by) / 2)); };
  return {more(ratio), more(1 / ratio)};
}

Region for_ellipse(const DetectedRegion &found) {
  const Region &r = found.region;
  if (found.cover == Cover::Exact || r.width <= 0 || r.height <= 0) return r;
  if (found.cover == Cover::Joined) return joined(r, r, true);
  const Box box = box_of(r);
  const Pixel by = margins(r);
  return region_of({box.x0 - by.x, box.y0 - by.y, box.x1 + by.x, box.y1 + by.y});
}

Region for_invert(const DetectedRegion &found, bool ellipse) {
  const Region &r = found.region;
  if (found.cover == Cover::Exact) return r;
  if (found.cover != Cover::Rounded || r.rotation != 0 || r.width < 3 || r.height < 3) return {};
  const Pixel by = ellipse ? margins({0, 0, r.width - 2, r.height - 2}) : Pixel();
  const Box box = box_of(r), inner = {box.x0 + 1 + by.x, box.y0 + 1 + by.y, box.x1 - 1 - by.x, box.y1 - 1 - by.y};
  return inner.empty() ? Region() : region_of(inner);
}

}  // namespace cudaconv::gst
