// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions/history.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

namespace cudaconv::gst {

namespace {

constexpr uint64_t kSlices = 8;  // slices in the longer one of the times

// An order of regions, in which equal ones are neighbours.
bool precedes(const DetectedRegion &one, const DetectedRegion &other) {
  const Region &a = one.region, &b = other.region;
  const auto ours = std::tie(a.x, a.y, a.width, a.height, a.rotation, one.cover),
             theirs = std::tie(b.x, b.y, b.width, b.height, b.rotation, other.cover);
  return ours != theirs ? ours < theirs : compare_labels(one, other) < 0;
}

// A region that covers both, and the detections that it is of.
DetectedRegion both_of(const DetectedRegion &a, const DetectedRegion &b) {
  if (is_same(a, b)) return a;
  const auto labels = have_same_labels(a, b) ? a.labels : nullptr;
  return {{labels, 0, Cover::Joined}, joined(a.region, b.region, false)};
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

void RoiHistory::Slice::reduce(FrameSize frame, Pixel to_frame) {
  const auto sort_by = [&](const auto &is_before) {
    std::sort(region.begin(), region.end(), [&](auto &a, auto &b) { return is_before(a.region, b.region); });
  };
  if (region.size() > kMostRegions) {
    sort_by(precedes);
    size_t kept = 0;
    for (size_t i = 1; i < region.size(); i++) {
      if (is_same(region[kept].region, region[i].region))
        region[kept].at.add(region[i].at);
      else
        region[++kept] = region[i];
    }
    region.resize(kept + 1);
  }
  if (region.size() > kMostRegions)
    sort_by([](const DetectedRegion &a, const DetectedRegion &b) {
      const int order = compare_labels(a, b);
      return order ? order < 0 : place(a.region) < place(b.region);
    });
  // Joined down to half of kMostRegions, since otherwise the next frame would exceed it again.
  for (bool full = region.size() > kMostRegions; full; full = region.size() > kMostRegions / 2) {
    for (size_t i = 0; i + 1 < region.size(); i += 2) {
      region[i].at.add(region[i + 1].at);
      region[i / 2] = {both_of(region[i].region, region[i + 1].region), region[i].at};
    }
    if (region.size() % 2) region[region.size() / 2] = region.back();
    region.resize((region.size() + 1) / 2);
  }
  if (mask.size() <= kMostMasks) return;
  std::vector<std::shared_ptr<const RoiMask>> all;
  TimeSpan at = mask[0].at;
  bool same = true;
  for (const auto &held : mask) {
    all.push_back(moved(held.region, to_frame));
    at.add(held.at);
    same &= have_same_labels(*held.region, *mask[0].region);
  }
  const auto labels = same ? mask[0].region->labels : nullptr;
  mask.clear();
  if (const auto one = joined(all, frame)) {
    auto both = std::make_shared<RoiMask>(*moved(one, Pixel{} - to_frame));
    both->labels = labels;
    both->cover = Cover::Joined;
    mask.push_back({std::move(both), at});
  }
}

Pixel RoiHistory::set_picture(const PicturePlace &place) {
  Pixel origin = place.corner;
  if (place_ && place.frame == place_->frame) {
    origin = place.corner - (place_->corner - origin_);
  } else if (place_ && place.picture == place_->picture) {
    origin = origin_;
  } else if (place_ && !slices_.empty()) {
    rescale(place_->corner - origin_, place_->frame, place.frame);
  }
  place_ = place;
  return origin_ = origin;
}

// Moves the regions by some pixels, and scales them from one size of frames to another.
void RoiHistory::rescale(Pixel by, FrameSize from, FrameSize to) {
  std::vector<Slice> slices = slices_;
  for (Slice &slice : slices) {
    for (auto &held : slice.region) {
      held.region.region = moved(held.region.region, by);
      held.region = rescaled(held.region, from, to);
    }
    for (auto &held : slice.mask) held.region = rescaled(*moved(held.region, by), from, to);
  }
  slices_.swap(slices);
  tracks_.clear();
}

void RoiHistory::add(const RoiList &found, int64_t time, const TimeSpan &open, RoiTimes times, const RoiList *before) {
  RoiTracks tracks = tracks_;
  // Timestamps that are out of order may take the stream back, so twice the longer one of the times counts.
  const uint64_t longer = 2 * std::min(std::max(times.before, times.after), UINT64_MAX / 2);
  const RoiTimes kept = {longer, longer};
  const auto counts = [&](const TimeSpan &at) {
    return before || at.is_in_force(open, kept) || at.is_in_force(time, kept);
  };
  tracks.keep(counts);
  const Region frame = moved(Region{0, 0, place_->frame.width, place_->frame.height}, origin_ - place_->corner);
  if (times.between)
    tracks.add(found.region, time, times, frame);
  else
    tracks.clear();
  RoiList dropped = before ? *before : RoiList();
  const auto keep = [&](const auto &from, auto *to, auto *drops, const auto &are_same) {
    for (const auto &held : from) {
      const auto is_it = [&](const auto &one) { return are_same(one, held.region); };
      const bool came_then = held.at.first == time && held.at.last == time;
      const auto drop = came_then ? std::find_if(drops->begin(), drops->end(), is_it) : drops->end();
      if (drop != drops->end())
        drops->erase(drop);
      else if (counts(held.at))
        to->push_back(held);
    }
  };
  std::vector<Slice> slices;
  for (const Slice &slice : slices_) {
    Slice left = {slice.begin, {}, {}, {}};
    keep(slice.region, &left.region, &dropped.region, is_same);
    keep(slice.mask, &left.mask, &dropped.mask, std::equal_to<>());
    if (counts(slice.everywhere)) left.everywhere = slice.everywhere;
    if (!left.region.empty() || !left.mask.empty() || !left.everywhere.empty()) slices.push_back(std::move(left));
  }
  if (!found.empty()) {
    const uint64_t length = std::max(times.before, times.after) / kSlices;
    auto slice = std::find_if(slices.begin(), slices.end(), [&](const Slice &s) {
      return is_within(s.begin, time, length) && is_within(time, s.begin, length);
    });
    if (slice == slices.end()) slice = slices.insert(slices.end(), {time, {}, {}, {}});
    for (const DetectedRegion &region : found.region) slice->region.push_back({region, time});
    for (const auto &mask : found.mask) slice->mask.push_back({mask, time});
    if (found.everywhere) slice->everywhere.add(time);
    slice->reduce(place_->frame, place_->corner - origin_);
  }
  slices_.swap(slices);
  tracks_ = std::move(tracks);
}

RoiList RoiHistory::in_force(int64_t time, RoiTimes times, const RoiList &own) const {
  RoiList list = own;
  std::vector<DetectedRegion> others;
  tracks_.add_between(time, times, &others);
  const std::set<RoiTracks::Place> left = tracks_.left(time, times);
  const auto is_left = [&](const DetectedRegion &region, const TimeSpan &at) {
    return at.first == at.last && left.count({at.first, region});
  };
  for (const Slice &slice : slices_) {
    for (const auto &held : slice.region)
      if (held.at.is_in_force(time, times) && !is_left(held.region, held.at)) others.push_back(held.region);
    for (const auto &held : slice.mask)
      if (held.at.is_in_force(time, times) &&
          std::find(own.mask.begin(), own.mask.end(), held.region) == own.mask.end())
        list.mask.push_back(held.region);
    list.everywhere |= slice.everywhere.is_in_force(time, times);
  }
  std::vector<DetectedRegion> sorted = own.region;
  std::sort(sorted.begin(), sorted.end(), precedes);
  std::sort(others.begin(), others.end(), precedes);
  others.erase(std::unique(others.begin(), others.end(), is_same), others.end());
  std::set_difference(others.begin(), others.end(), sorted.begin(), sorted.end(), std::back_inserter(list.region),
                      precedes);
  return list;
}

}  // namespace cudaconv::gst
