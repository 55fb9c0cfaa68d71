// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions/segmentation.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <optional>

namespace cudaconv::gst {

namespace {

constexpr size_t kValues = 1 << 16;
constexpr size_t kMostMasks = 64;    // made of one segmentation; beyond that one mask for all its values
constexpr int64_t kMostOverlap = 4;  // how many times the segmentation's samples they have; beyond that one mask

// The smallest rectangle, in samples, around all samples of one value.
struct Extent {
  uint16_t value = 0;
  int left = INT_MAX, top = INT_MAX, right = 0, bottom = 0;
  Detected found;  // without labels: not wanted

  void add(int x, int y) {
    left = std::min(left, x);
    top = std::min(top, y);
    right = std::max(right, x + 1);
    bottom = std::max(bottom, y + 1);
  }
};

// Returns the extents of the values that are wanted.
std::vector<Extent> find_extents(const Segmentation &segmentation, const FoundOfValue &found_of) {
  std::vector<std::optional<Extent>> of(kValues);
  const uint16_t *at = segmentation.value.data();
  for (int y = 0; y < segmentation.height; y++) {
    for (int x = 0; x < segmentation.width; x++) {
      std::optional<Extent> &extent = of[*at++];
      if (!extent) {
        extent.emplace();
        extent->value = at[-1];
        extent->found = found_of(extent->value);
      }
      extent->add(x, y);
    }
  }
  std::vector<Extent> found;
  for (const std::optional<Extent> &extent : of)
    if (extent && extent->found.labels) found.push_back(*extent);
  return found;
}

// A line of `samples` samples covers `length` pixels. Widens [*begin, *end), in samples, to where edges of samples are
// edges of pixels, and returns the pixels that this covers.
struct Pixels {
  int first, length;
};
Pixels widen(int *begin, int *end, int samples, int length) {
  const int common = std::gcd(samples, length), period = samples / common;
  const int first = *begin / period, last = (*end + period - 1) / period;
  *begin = first * period;
  *end = last * period;
  return {first * (length / common), (last - first) * (length / common)};
}

// Makes a mask of the samples within `extent` for which `member` is true.
template <typename IsMember>
std::shared_ptr<const RoiMask> cut_out(const Segmentation &segmentation, const Region &box, Extent extent,
                                       const IsMember &member) {
  auto result = std::make_shared<RoiMask>();
  static_cast<Detected &>(*result) = extent.found;
  const auto side = [](int64_t samples, int64_t length, int64_t of) { return (samples * length + of - 1) / of; };
  result->shorter_side = static_cast<int>(std::min(side(extent.right - extent.left, box.width, segmentation.width),
                                                   side(extent.bottom - extent.top, box.height, segmentation.height)));
  const Pixels across = widen(&extent.left, &extent.right, segmentation.width, box.width);
  const Pixels down = widen(&extent.top, &extent.bottom, segmentation.height, box.height);
  RegionMask &mask = result->mask;
  mask.box = moved(Region{box.x, box.y, across.length, down.length}, {across.first, down.first});
  mask.width = extent.right - extent.left;
  mask.height = extent.bottom - extent.top;
  mask.member.reserve(static_cast<size_t>(mask.width) * mask.height);
  for (int y = extent.top; y < extent.bottom; y++)
    for (int x = extent.left; x < extent.right; x++)
      mask.member.push_back(member(segmentation.value[static_cast<size_t>(y) * segmentation.width + x]));
  return result;
}

}  // namespace

void add_masks(const Segmentation &segmentation, const Region &box, const FoundOfValue &found_of, RoiList *list) {
  const std::vector<Extent> extents = find_extents(segmentation, found_of);
  int64_t samples = 0;
  for (const Extent &e : extents) samples += int64_t{e.right - e.left} * (e.bottom - e.top);
  if (extents.size() <= kMostMasks && samples <= kMostOverlap * int64_t{segmentation.width} * segmentation.height) {
    for (const Extent &e : extents)
      list->mask.push_back(cut_out(segmentation, box, e, [&](uint16_t value) { return value == e.value; }));
    return;
  }
  Extent all;
  std::vector<bool> wanted(kValues);
  for (const Extent &e : extents) {
    all.add(e.left, e.top);
    all.add(e.right - 1, e.bottom - 1);
    all.found.cover = std::max(all.found.cover, e.found.cover);
    wanted[e.value] = true;
  }
  list->mask.push_back(cut_out(segmentation, box, all, [&](uint16_t value) { return wanted[value]; }));
}

}  // namespace cudaconv::gst
