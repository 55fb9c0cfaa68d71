// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames in the memory of the current CUDA device, for tests. Functions throw std::runtime_error if a CUDA call fails.
#pragma once

#include <memory>
#include <vector>

#include "guarded_frame.h"

struct CUstream_st;

namespace cudaconv::test {

// The stream and the memory pool for the frames of one thread. The stream waits for no other stream, and the pool keeps
// freed memory: cudaFree() would wait for all work on the device, and block all other threads.
class DeviceFrames {
 public:
  DeviceFrames();
  ~DeviceFrames();
  DeviceFrames(const DeviceFrames &) = delete;
  DeviceFrames &operator=(const DeviceFrames &) = delete;

 private:
  friend class DeviceFrame;
  CUstream_st *stream_ = nullptr;
};

// A copy of a GuardedFrame in device memory, guard bytes included. Each plane is a separate allocation, exactly as
// large as on the host, so that a sanitizer finds an access to the first byte behind it.
class DeviceFrame {
 public:
  // Copies `host` to the device. `home` must outlive this frame.
  DeviceFrame(const DeviceFrames &home, const GuardedFrame &host);

  FrameView view() const { return view_; }
  // Copies every byte back to a frame of the same layout and placement.
  void download(GuardedFrame &host) const;

 private:
  struct Free {
    CUstream_st *stream;
    void operator()(uint8_t *p) const;
  };
  CUstream_st *stream_;
  std::vector<std::unique_ptr<uint8_t, Free>> blocks_;
  FrameView view_;
};

// The time in nanoseconds of a copy of `bytes` within the device: the median of `runs`, in memory larger than any
// cache.
double device_copy_ns(size_t bytes, int runs);

}  // namespace cudaconv::test
