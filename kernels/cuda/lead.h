// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Keeps the GPU near where nobody waits for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "cuda/cuda_resources.h"
#include "cuda/patient_wait.h"

namespace cudaconv {

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
