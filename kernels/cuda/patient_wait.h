// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How a thread waits for the GPU.
#pragma once

#include <algorithm>
#include <chrono>
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

}  // namespace cudaconv
