// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroihistory.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

namespace cudaconv::gst {

namespace {

constexpr uint64_t kSlices = 8;  // slices in the time to hold

auto key(const Region &r) {
  return std::tie(r.x, r.y, r.width, r.height, r.rotation);
}

bool is_near(int64_t a, int64_t b, uint64_t distance) {
  return (a > b ? static_cast<uint64_t>(a) - b : static_cast<uint64_t>(b) - a) <= distance;
}

// Adds times. A sum that is too large becomes the largest time.
int64_t later(int64_t time, int64_t by) {
  int64_t sum;
  return __builtin_add_overflow(time, by, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// The Z-order code of the region's centre. Regions that are near each other in this order are near in the frame.
uint64_t place(const Region &r) {
  const auto coordinate = [](int start, int length) {
    return static_cast<uint64_t>(std::clamp<int64_t>(start + int64_t{length} / 2, 0, 0xffff));
  };
  const uint64_t x = coordinate(r.x, r.width), y = coordinate(r.y, r.height);
  uint64_t bits = 0;
  for (int i = 15; i >= 0; i--) bits = bits << 2 | ((y >> i) & 1) << 1 | ((x >> i) & 1);
  return bits;
}

}  // namespace

void RoiHistory::Slice::reduce(bool ellipse, FrameSize frame) {
  if (region.size() > kMostRegions) {
    std::sort(region.begin(), region.end(), [](const Held &a, const Held &b) {
      return std::tuple_cat(key(a.region), std::tie(b.at)) < std::tuple_cat(key(b.region), std::tie(a.at));
    });
    const auto same = [](const Held &a, const Held &b) { return key(a.region) == key(b.region); };
    region.erase(std::unique(region.begin(), region.end(), same), region.end());
  }
  if (region.size() > kMostRegions)
    std::sort(region.begin(), region.end(),
              [](const Held &a, const Held &b) { return place(a.region) < place(b.region); });
  // Joined down to half of kMostRegions, since otherwise the next frame would exceed it again.
  for (bool full = region.size() > kMostRegions; full; full = region.size() > kMostRegions / 2) {
    for (size_t i = 0; i + 1 < region.size(); i += 2)
      region[i / 2] = {joined(region[i].region, region[i + 1].region, ellipse),
                       std::max(region[i].at, region[i + 1].at)};
    if (region.size() % 2) region[region.size() / 2] = region.back();
    region.resize((region.size() + 1) / 2);
  }
  if (mask.size() <= kMostMasks) return;
  std::vector<std::shared_ptr<const RoiMask>> all;
  int64_t last = mask[0].at;
  for (const HeldMask &held : mask) {
    all.push_back(held.mask);
    last = std::max(last, held.at);
  }
  mask.clear();
  if (auto one = joined(all, frame)) mask.push_back({std::move(one), last});
}

void RoiHistory::clear() {
  slices_.clear();
  everywhere_.reset();
  now_.reset();
}

void RoiHistory::set_frame_size(FrameSize size) {
  if (!slices_.empty() && (size_.width != size.width || size_.height != size.height)) {
    std::vector<Slice> slices = slices_;
    for (Slice &slice : slices) {
      for (Slice::Held &held : slice.region) held.region = rescaled(held.region, size_, size);
      for (Slice::HeldMask &held : slice.mask) {
        auto mask = std::make_shared<RoiMask>(*held.mask);
        mask->mask.box = rescaled(mask->mask.box, size_, size);
        mask->shorter_side = static_cast<int>(int64_t{mask->shorter_side} * size.height / size_.height);
        held.mask = std::move(mask);
      }
    }
    slices_.swap(slices);
  }
  size_ = size;
}

void RoiHistory::add(const RoiList &found, std::optional<int64_t> time, int64_t duration, uint64_t hold, bool ellipse) {
  const int64_t now = time ? *time : now_ ? later(*now_, duration) : 0;
  std::vector<Slice> slices;
  const auto counts = [&](const auto &held) { return is_near(held.at, now, hold); };
  for (const Slice &slice : slices_) {
    Slice left = {slice.begin, {}, {}};
    std::copy_if(slice.region.begin(), slice.region.end(), std::back_inserter(left.region), counts);
    std::copy_if(slice.mask.begin(), slice.mask.end(), std::back_inserter(left.mask), counts);
    if (!left.region.empty() || !left.mask.empty()) slices.push_back(std::move(left));
  }
  if (!found.region.empty() || !found.mask.empty()) {
    auto slice = std::find_if(slices.begin(), slices.end(),
                              [&](const Slice &s) { return is_near(s.begin, now, hold / kSlices); });
    if (slice == slices.end()) slice = slices.insert(slices.end(), {now, {}, {}});
    for (const Region &region : found.region) slice->region.push_back({region, now});
    for (const auto &mask : found.mask) slice->mask.push_back({mask, now});
    slice->reduce(ellipse, size_);
  }
  slices_.swap(slices);
  now_ = now;
  if (found.everywhere)
    everywhere_ = now;
  else if (everywhere_ && !is_near(*everywhere_, now, hold))
    everywhere_.reset();
}

RoiList RoiHistory::in_force() const {
  RoiList list;
  for (const Slice &slice : slices_) {
    for (const Slice::Held &held : slice.region) list.region.push_back(held.region);
    for (const Slice::HeldMask &held : slice.mask) list.mask.push_back(held.mask);
  }
  const auto before = [](const Region &a, const Region &b) { return key(a) < key(b); };
  const auto same = [](const Region &a, const Region &b) { return key(a) == key(b); };
  std::sort(list.region.begin(), list.region.end(), before);
  list.region.erase(std::unique(list.region.begin(), list.region.end(), same), list.region.end());
  list.everywhere = everywhere_.has_value();
  return list;
}

}  // namespace cudaconv::gst
