// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The times of frames, and for how long their regions are in force.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cudaconv::gst {

// For how many nanoseconds a region is in force before the first frame that came with it, and after the last one.
struct RoiTimes {
  uint64_t before = 0, after = 0;
  uint64_t between = 0;    // how far apart two detections may be that an object moves between; 0: none moves
  bool backwards = false;  // the stream plays so: frames come with falling times
};

// Whether b is at most `distance` later than a. Differences of any two times fit into 64 bits.
inline bool is_within(int64_t a, int64_t b, uint64_t distance) {
  return b <= a || static_cast<uint64_t>(b) - static_cast<uint64_t>(a) <= distance;
}

// The first and the last of some times, or of none.
struct TimeSpan {
  int64_t first = INT64_MAX, last = INT64_MIN;

  TimeSpan() = default;
  TimeSpan(int64_t time) : first(time), last(time) {}
  bool empty() const { return first > last; }
  void add(const TimeSpan &other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
  // Whether what came with frames of these times is in force at any time of `span`.
  bool is_in_force(const TimeSpan &span, RoiTimes times) const {
    return !empty() && is_within(span.last, first, times.before) && is_within(last, span.first, times.after);
  }
};

}  // namespace cudaconv::gst
