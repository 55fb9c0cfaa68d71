// SPDX-License-Identifier: LGPL-2.1-or-later
//
// CUDA memory for tests: GStreamer's, or in programs that have the stand-in for the CUDA runtime the stand-in's.
#pragma once

#include <memory>

#include "support.h"

namespace cudaconv::test {

// One CUDA context and the memory in it.
class DeviceMemory {
 public:
  // In the context of the element, which is in READY or above.
  static std::unique_ptr<DeviceMemory> of(GstElement *element);
  // In a new context.
  static std::unique_ptr<DeviceMemory> create();
  virtual ~DeviceMemory() = default;

  // Lets an element in NULL use this context.
  virtual void share_with(GstElement *element) = 0;
  // Whether the buffer is memory of this context.
  virtual bool holds(GstBuffer *buffer) = 0;
  // Sets `*released` to 1 when the context is gone.
  virtual void notify_of_release(int *released) = 0;
  // An active pool of buffers with a GstVideoMeta.
  virtual GstBufferPool *new_pool(const GstVideoInfo &info) = 0;
  // The samples of `from`.
  Ref<GstBuffer> copy(GstBuffer *from, const GstVideoInfo &info);
};

// `info` as caps of device memory.
Ref<GstCaps> device_caps(const GstVideoInfo &info);

}  // namespace cudaconv::test
