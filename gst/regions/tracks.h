// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Objects that are found in several frames, and where they are in the frames between.
//
// Detections of two frames are matched in two ways: by their ids, and by their places. A detection has the place where
// it was found, and the place where the object would be now had it moved on as before. The two detections of a type
// that overlap most are one object, then the next two, then the two with the nearest centres. A match is certain only
// where ids and places agree, or, without ids, where two overlap each other and nothing else. All other matches are
// guesses. All that may be true are made: also between rectangles that overlap, as where objects split, and between
// those that overlap none. Guesses add regions, and a certain match may take some away.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "regions/shapes.h"
#include "regions/times.h"

namespace cudaconv::gst {

// A copy is as it was before a call that has thrown.
class RoiTracks {
 public:
  // In frames with more detections nothing is matched, and no frame has more matches.
  static constexpr size_t kMostObjects = 256, kMostMatches = 1024;

  void clear() { *this = RoiTracks(); }
  // Matches the detections of the frame at `time` with the detections of earlier frames. To be called for each
  // frame. If time has stepped back, nothing is matched. `frame`: all of the frame, in the coordinates of the
  // detections.
  void add(const std::vector<DetectedRegion> &found, int64_t time, RoiTimes times, const Region &frame);
  // Drops the matches of detections whose times do not count.
  template <typename F>
  void keep(const F &counts) {
    const auto end = std::remove_if(matches_.begin(), matches_.end(), [&](const Match &m) { return !counts(m.at); });
    matches_.erase(end, matches_.end());
  }

  // Adds a region for each match that the time lies between: the rectangle of the one detection, moved in a straight
  // line towards the other. Its edges are rounded outwards.
  void add_between(int64_t time, RoiTimes times, std::vector<DetectedRegion> *regions) const;

  // A detection at a time, borrowed. One rectangle may be of several types.
  struct Place {
    int64_t time;
    const DetectedRegion &found;
    bool operator<(const Place &other) const;
  };
  // The detections of objects that certainly are elsewhere at `time`.
  std::set<Place> left(int64_t time, RoiTimes times) const;

 private:
  // Two detections of an object, the earlier one first.
  struct Match {
    DetectedRegion from, to;
    Region begin, end;  // of the way between them
    TimeSpan at;
    bool is_certain;
  };
  // The last detection of an object, and the pixels that its centre moved in each nanosecond before.
  struct Object {
    DetectedRegion found;
    int64_t time;
    double across = 0, down = 0;
  };

  void forget_old(int64_t time, RoiTimes times);
  void match(const std::vector<DetectedRegion> &found, int64_t time, const Region &frame);

  std::vector<Match> matches_;
  std::vector<Object> objects_;  // those last seen long ago first
  int64_t last_time_ = 0;        // of the last frame
  bool begins_ = true;           // there is none
};

}  // namespace cudaconv::gst
