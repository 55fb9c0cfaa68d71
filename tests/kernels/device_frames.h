// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Frames in the memory of the current CUDA device, for tests. Throws std::runtime_error where a CUDA call fails.
#pragma once

#include <memory>
#include <vector>

#include "guarded_frame.h"

struct CUstream_st;

namespace cudaconv::test {

// Where the frames of a thread get their memory and are copied: a stream that waits for no other, and the device's
// pool, which keeps what is freed. cudaFree would wait for all that runs on the device, and everyone else for it.
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

// A copy of a GuardedFrame, guard bytes included. Each plane is a block by itself, exactly as large as on the host, so
// that a sanitizer sees the first byte beyond.
class DeviceFrame {
 public:
  // `home` has to outlive the frame.
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

// Nanoseconds that a copy of `bytes` within the device takes, the median of `runs` over memory larger than any cache.
double device_copy_ns(size_t bytes, int runs);

}  // namespace cudaconv::test
