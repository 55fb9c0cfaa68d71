// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions/tracks.h"

#include <climits>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace cudaconv::gst {

namespace {

constexpr size_t kMostGuesses = 64;  // between rectangles that overlap none

struct Edges {
  double left, top, right, bottom;
};

// The rectangle around a region. `turns`: around the region, however it is turned.
Edges edges_of(const Region &region, bool turns = false) {
  constexpr double kFarthest = 1 << 30;  // no frame reaches it
  const Region r = turns ? region : upright(region);
  const double x = r.x + r.width / 2.0, y = r.y + r.height / 2.0, diagonal = std::hypot(r.width, r.height);
  const double across = (turns ? diagonal : r.width) / 2, down = (turns ? diagonal : r.height) / 2;
  const auto within = [](double v) { return std::clamp(v, -kFarthest, 2 * kFarthest); };
  return {within(x - across), within(y - down), within(x + across), within(y + down)};
}

// The area that both have in common, as a fraction of the area of both.
double overlap_of(const Edges &a, const Edges &b) {
  const double across = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double down = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (across <= 0 || down <= 0) return 0;
  const auto area = [](const Edges &e) { return (e.right - e.left) * (e.bottom - e.top); };
  return across * down / (area(a) + area(b) - across * down);
}

double distance_of(const Edges &a, const Edges &b) {
  return std::hypot(a.left + a.right - b.left - b.right, a.top + a.bottom - b.top - b.bottom) / 2;
}

double nanoseconds(int64_t from, int64_t to) {
  const double length =
      static_cast<double>(static_cast<uint64_t>(std::max(from, to)) - static_cast<uint64_t>(std::min(from, to)));
  return from <= to ? length : -length;
}

// The number of an object and of a detection that may be the same.
using Pair = std::pair<size_t, size_t>;
struct Candidate {
  Pair pair;
  double overlap, distance;
  bool same_id;
};

// All pairs of the same type, the best ones first.
std::vector<Candidate> candidates(const std::vector<DetectedRegion> &objects, const std::vector<Edges> &places,
                                  const std::vector<DetectedRegion> &found) {
  std::vector<Candidate> all;
  for (size_t j = 0; j < found.size(); j++) {
    const Edges at = edges_of(found[j].region);
    for (size_t i = 0; i < objects.size(); i++)
      if (have_same_labels(objects[i], found[j]))
        all.push_back({{i, j}, overlap_of(places[i], at), distance_of(places[i], at), objects[i].id == found[j].id});
  }
  std::sort(all.begin(), all.end(), [](const Candidate &a, const Candidate &b) {
    return std::tie(b.overlap, a.distance, b.same_id, a.pair) < std::tie(a.overlap, b.distance, a.same_id, b.pair);
  });
  return all;
}

// Each object and each detection at most once, the best pairs first.
std::set<Pair> best_of(const std::vector<Candidate> &all) {
  std::set<size_t> objects, found;
  std::set<Pair> best;
  for (const Candidate &one : all) {
    if (objects.count(one.pair.first) || found.count(one.pair.second)) continue;
    objects.insert(one.pair.first);
    found.insert(one.pair.second);
    best.insert(one.pair);
  }
  return best;
}

// The pairs with the same id. An id that several have, in either frame, is the id of an object of its type.
std::set<Pair> same_ids(const std::vector<DetectedRegion> &objects, const std::vector<DetectedRegion> &found) {
  const auto only_one = [](const std::vector<DetectedRegion> &all, const DetectedRegion &like) {
    std::vector<size_t> with_id, of_type;
    for (size_t i = 0; i < all.size(); i++) {
      if (all[i].id != like.id) continue;
      with_id.push_back(i);
      if (have_same_labels(all[i], like)) of_type.push_back(i);
    }
    const auto &which = with_id.size() > 1 ? of_type : with_id;
    return which.size() == 1 ? std::optional<size_t>(which[0]) : std::nullopt;
  };
  std::set<Pair> pairs;
  for (size_t j = 0; j < found.size(); j++) {
    if (found[j].id == 0) continue;
    const auto i = only_one(objects, found[j]);
    if (i && only_one(found, found[j]) == j && only_one(objects, objects[*i]) == i) pairs.insert({*i, j});
  }
  return pairs;
}

// The pairs that overlap each other and nothing else, and whose ids do not differ.
std::set<Pair> alone(const std::vector<Candidate> &all) {
  std::map<size_t, int> objects, found;
  for (const Candidate &one : all) {
    if (one.overlap == 0) continue;
    objects[one.pair.first]++;
    found[one.pair.second]++;
  }
  std::set<Pair> pairs;
  for (const Candidate &one : all)
    if (one.overlap > 0 && one.same_id && objects[one.pair.first] == 1 && found[one.pair.second] == 1)
      pairs.insert(one.pair);
  return pairs;
}

// Pairs that overlap, and pairs of those that overlap none.
std::vector<Pair> guesses(const std::vector<Candidate> &all) {
  std::set<size_t> objects, found;
  std::vector<Pair> pairs, apart;
  for (const Candidate &one : all) {  // first those that overlap
    if (one.overlap > 0) {
      objects.insert(one.pair.first);
      found.insert(one.pair.second);
      pairs.push_back(one.pair);
    } else if (!objects.count(one.pair.first) && !found.count(one.pair.second)) {
      apart.push_back(one.pair);
    }
  }
  if (apart.size() <= kMostGuesses) pairs.insert(pairs.end(), apart.begin(), apart.end());
  return pairs;
}

// Detectors cut objects off at the edges of the frame, to a pixel. The side that is cut off moves in another way than
// the object: it is at the edge before the object has come to its second place, or after it has left its first one.
// Where one rectangle ends at an edge, and is not as long as the other one, both end there.
void end_at_edges(Region *a, Region *b, const Region &frame) {
  if (a->rotation != 0 || b->rotation != 0) return;
  struct Cut {
    bool near, far;
  };
  // In one direction: the sides that may be cut off at the edges.
  const auto cut = [](int at, int length, int edge, int edges) {
    const auto is_at = [](int64_t side, int64_t edge) { return std::abs(side - edge) <= 1; };
    return Cut{is_at(at, edge), is_at(int64_t{at} + length, int64_t{edge} + edges)};
  };
  const auto end = [&](int *at, int *length, int other, int other_length, int edge, int edges) {
    const Cut here = cut(*at, *length, edge, edges), there = cut(other, other_length, edge, edges);
    const bool is_whole = *length == other_length && !((here.near || here.far) && (there.near || there.far));
    if (is_whole) return;
    int64_t first = *at, last = first + *length;
    if (there.near) first = std::min<int64_t>(first, edge);
    if (there.far) last = std::max(last, int64_t{edge} + edges);
    *at = static_cast<int>(first);
    *length = static_cast<int>(std::min<int64_t>(last - first, INT_MAX));
  };
  const Region from = *a, to = *b;
  for (const auto &[one, other] : {std::pair(a, to), std::pair(b, from)}) {
    end(&one->x, &one->width, other.x, other.width, frame.x, frame.width);
    end(&one->y, &one->height, other.y, other.height, frame.y, frame.height);
  }
}

// The region of an object that has come `part` of the way from `begin` to `end`.
DetectedRegion moved(const DetectedRegion &from, const DetectedRegion &to, const Region &begin, const Region &end,
                     double part) {
  const bool turned = begin.rotation != 0 || end.rotation != 0;
  const bool turns = begin.rotation != end.rotation;
  const Edges a = edges_of(begin, turns), b = edges_of(end, turns);
  const auto at = [part](double first, double last) { return first + (last - first) * part; };
  const bool exact = from.cover == Cover::Exact && to.cover == Cover::Exact && !turned;
  return {{have_same_labels(from, to) ? from.labels : nullptr, from.id == to.id ? from.id : 0,
           exact ? Cover::Moved : Cover::Joined},
          rectangle_around(at(a.left, b.left), at(a.top, b.top), at(a.right, b.right), at(a.bottom, b.bottom))};
}

}  // namespace

bool RoiTracks::Place::operator<(const Place &other) const {
  const auto numbers = [](const Place &place) {
    const Region &r = place.found.region;
    return std::make_tuple(place.time, place.found.id, r.x, r.y, r.width, r.height, r.rotation);
  };
  const auto ours = numbers(*this), theirs = numbers(other);
  return ours != theirs ? ours < theirs : compare_labels(found, other.found) < 0;
}

void RoiTracks::add(const std::vector<DetectedRegion> &found, int64_t time, RoiTimes times, const Region &frame) {
  const bool steps_back = !begins_ && (times.backwards ? time > last_time_ : time < last_time_);
  if (steps_back) objects_.clear();
  begins_ = false;
  last_time_ = time;
  forget_old(time, times);
  std::vector<DetectedRegion> now;
  for (const DetectedRegion &one : found)
    if (one.region.width > 0 && one.region.height > 0) now.push_back(one);
  if (!now.empty() && now.size() <= kMostObjects) match(now, time, frame);
  if (objects_.size() > kMostObjects) objects_.erase(objects_.begin(), objects_.end() - kMostObjects);
}

void RoiTracks::forget_old(int64_t time, RoiTimes times) {
  const auto is_old = [&](const Object &object) {
    return !is_within(object.time, time, times.between) || !is_within(time, object.time, times.between);
  };
  objects_.erase(std::remove_if(objects_.begin(), objects_.end(), is_old), objects_.end());
}

void RoiTracks::match(const std::vector<DetectedRegion> &found, int64_t time, const Region &frame) {
  std::vector<DetectedRegion> objects;
  std::vector<Edges> places, expected;
  for (const Object &object : objects_) {
    const double passed = nanoseconds(object.time, time), x = object.across * passed, y = object.down * passed;
    const Edges at = edges_of(object.found.region);
    objects.push_back(object.found);
    places.push_back(at);
    expected.push_back({at.left + x, at.top + y, at.right + x, at.bottom + y});
  }
  const std::vector<Candidate> by_place = candidates(objects, places, found);
  const std::set<Pair> ids = same_ids(objects, found), best = best_of(by_place),
                       best_expected = best_of(candidates(objects, expected, found));

  // The matches, and whether they are certain. An object and a detection that each have a certain match make no guess.
  std::map<Pair, bool> matches;
  std::set<size_t> sure_objects, sure_found;
  const auto add = [&](const Pair &pair, bool certain) {
    matches[pair] = certain;
    if (!certain) return;
    sure_objects.insert(pair.first);
    sure_found.insert(pair.second);
  };
  for (const Pair &pair : ids) add(pair, best.count(pair) || best_expected.count(pair));
  for (const Pair &pair : alone(by_place))
    if (!matches.count(pair)) add(pair, best_expected.count(pair));
  const auto guess = [&](const Pair &pair) {
    const bool other = sure_objects.count(pair.first) && sure_found.count(pair.second);
    if (!other && matches.size() < kMostMatches) matches.insert({pair, false});
  };
  for (const auto *pairs : {&best, &best_expected})
    for (const Pair &pair : *pairs) guess(pair);
  for (const Pair &pair : guesses(by_place)) guess(pair);
  for (const auto &[pair, certain] : matches) {
    const Object &object = objects_[pair.first];
    const DetectedRegion &now = found[pair.second];
    if (object.time == time) continue;
    Match match = {object.found, now, {}, {}, {object.time}, certain};
    if (object.time > time) std::swap(match.from, match.to);
    match.at.add(time);
    match.begin = match.from.region;
    match.end = match.to.region;
    end_at_edges(&match.begin, &match.end, frame);
    matches_.push_back(std::move(match));
  }

  // Objects that were found again, and new ones. Other objects are still looked for, also where only a detection with
  // another id may be theirs.
  std::vector<Object> again;
  std::set<size_t> seen;
  for (size_t j = 0; j < found.size(); j++) {
    Object object = {found[j], time};
    for (const auto *pairs : {&ids, &best_expected, &best}) {
      const auto pair = std::find_if(pairs->begin(), pairs->end(), [&](const Pair &one) { return one.second == j; });
      if (pair == pairs->end()) continue;
      const Object &before = objects_[pair->first];
      if (!before.found.id || !found[j].id || before.found.id == found[j].id) seen.insert(pair->first);
      const Edges from = edges_of(before.found.region), to = edges_of(found[j].region);
      const double passed = nanoseconds(before.time, time);
      object.across = passed == 0 ? before.across : (to.left + to.right - from.left - from.right) / 2 / passed;
      object.down = passed == 0 ? before.down : (to.top + to.bottom - from.top - from.bottom) / 2 / passed;
      break;
    }
    again.push_back(std::move(object));
  }
  for (auto i = seen.rbegin(); i != seen.rend(); ++i) objects_.erase(objects_.begin() + static_cast<ptrdiff_t>(*i));
  objects_.insert(objects_.end(), again.begin(), again.end());
}

void RoiTracks::add_between(int64_t time, RoiTimes times, std::vector<DetectedRegion> *regions) const {
  for (const Match &match : matches_) {
    const auto [first, last] = match.at;
    if (first < time && time < last && is_within(first, last, times.between))
      regions->push_back(
          moved(match.from, match.to, match.begin, match.end, nanoseconds(first, time) / nanoseconds(first, last)));
  }
}

std::set<RoiTracks::Place> RoiTracks::left(int64_t time, RoiTimes times) const {
  std::set<Place> places;
  for (const Match &match : matches_) {
    if (!match.is_certain || !is_within(match.at.first, match.at.last, times.between)) continue;
    if (time > match.at.first) places.insert({match.at.first, match.from});
    if (time < match.at.last) places.insert({match.at.last, match.to});
  }
  return places;
}

}  // namespace cudaconv::gst
