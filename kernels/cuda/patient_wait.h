// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How a thread waits for the GPU, and how far it may be ahead where it does not.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "cuda/cuda_resources.h"

namespace cudaconv {

// Waits for what `event` has recorded to end, with naps of an eighth of the time waited so far. Events that the
// driver's waits sleep for cost an interrupt each, whether a thread waits or not, and half a core where frames come
// fast.
inline void nap_until_ended(const Event &event) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (!event.has_ended())
    std::this_thread::sleep_for(std::min<Clock::duration>((Clock::now() - begin) / 8, std::chrono::microseconds(500)));
}

// Waits for events, one after the other, with little of the processor and little delay. The driver's own waits either
// spin, and take a core for each stream, or block, and are woken up to 0.2 ms late. So the thread sleeps for nearly as
// long as the wait before took, and polls at the end. It naps where the GPU takes longer than that.
class PatientWait {
 public:
  // Waits until what `event` has recorded has ended. `behind`: the time that the GPU takes for work enqueued after
  // that; it does not run dry for so long. Throws Error{Device}.
  void wait(const Event &event, std::chrono::nanoseconds behind) {
    while (behind > kAwake && !event.has_ended())
      std::this_thread::sleep_for(std::min<Clock::duration>(behind - kAwake, kLongestNap));
    const Clock::time_point begin = Clock::now();
    if (!event.has_ended()) {
      if (expected_ > kAwake) std::this_thread::sleep_for(expected_ - kAwake);
      const Clock::time_point end = Clock::now() + kPolling;
      while (!event.has_ended()) {
        if (Clock::now() < end) continue;
        nap_until_ended(event);
        break;
      }
    }
    const Clock::duration took = Clock::now() - begin;
    // A single long wait, behind another stream say, must not make the next ones late.
    expected_ = took < expected_ ? took : std::min<Clock::duration>(expected_ + (took - expected_) / 4, kLongest);
  }

 private:
  using Clock = std::chrono::steady_clock;
  // The end of a wait during which the thread does not sleep: the system wakes threads about 55 us late.
  static constexpr std::chrono::microseconds kAwake{80};
  static constexpr std::chrono::microseconds kPolling{60};
  // A frame that takes less than the one before is at most so late. For longer waits the delay of blocking is little.
  static constexpr std::chrono::microseconds kLongest{2000};
  static constexpr std::chrono::microseconds kLongestNap{500};

  Clock::duration expected_{0};
};

// How far frames that nobody waits for are ahead of the GPU: at most 32 of them, or 20 ms of its time, since an element
// stops as late as that. A frame more may be enqueued where one takes longer.
class Lead {
 public:
  // To be called before the work of a frame is enqueued on the stream. `frame_ns`: how long the GPU takes for one; 0:
  // not known, perhaps very long. Waits where the lead is too long. Throws Error{Device}.
  void keep_short(cudaStream_t stream, uint64_t frame_ns) {
    constexpr uint64_t kMost = 32, kMostNs = 20'000'000;
    const uint64_t most = frame_ns ? std::clamp<uint64_t>(kMostNs / frame_ns, 1, kMost) : 1;
    // An event each few frames: the events that are still looked at cover the lead.
    const uint64_t each = std::max<uint64_t>(most / events_.size(), 1);
    const size_t behind = std::min<size_t>(most, events_.size());
    if (frames_++ % each != 0) return;
    const std::unique_ptr<Event> &oldest = events_[(next_ + events_.size() - behind) % events_.size()];
    if (oldest) nap_until_ended(*oldest);
    std::unique_ptr<Event> &event = events_[next_];
    if (!event) event = std::make_unique<Event>(cudaEventDisableTiming);
    event->record(stream);
    next_ = (next_ + 1) % events_.size();
  }

 private:
  uint64_t frames_ = 0;
  std::array<std::unique_ptr<Event>, 4> events_;  // recorded between frames
  size_t next_ = 0;
};

}  // namespace cudaconv
