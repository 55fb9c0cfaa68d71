// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames in the memory of the current CUDA device, for tests. Throws std::runtime_error where a CUDA call fails.
#pragma once

#include <memory>
#include <vector>

#include "guarded_frame.h"

namespace cudaconv::test {

// A copy of a GuardedFrame, guard bytes included.
class DeviceFrame {
 public:
  explicit DeviceFrame(const GuardedFrame &host);

  FrameView view() const { return view_; }
  // Copies every byte back to a frame of the same layout and placement.
  void download(GuardedFrame &host) const;

 private:
  struct Free {
    void operator()(uint8_t *p) const;
  };
  std::vector<std::unique_ptr<uint8_t, Free>> blocks_;
  FrameView view_;
};

// Nanoseconds that a copy of `bytes` within the device takes, the median of `runs` over memory larger than any cache.
double device_copy_ns(size_t bytes, int runs);

}  // namespace cudaconv::test
