// SPDX-License-Identifier: LGPL-2.1-or-later
//
// CUDA memory for tests: GStreamer's memory or, in programs with the stand-in, the stand-in's.
#pragma once

#include <memory>

#include "support.h"

namespace cudaconv::test {

// One CUDA context and the memory in it.
class DeviceMemory {
 public:
  // Memory in the context of the element, which is in READY or above.
  static std::unique_ptr<DeviceMemory> of(GstElement *element);
  // Whether a context can be made on the device.
  static bool exists(int device_id);
  // Memory in a new context. Fails the test if none can be made, as where other processes use all of the device's
  // memory.
  static std::unique_ptr<DeviceMemory> create(int device_id = 0);
  virtual ~DeviceMemory() = default;

  // Offers this context to the element, which takes it if it has none.
  virtual void share_with(GstElement *element) = 0;
  // Whether the buffer is memory of this context.
  virtual bool holds(GstBuffer *buffer) = 0;
  // Sets `*released` to 1 when the context is gone.
  virtual void notify_of_release(int *released) = 0;
  // Marks pending writes to the buffer as complete, as gst_cuda_memory_sync() does before it waits for them. For the
  // stand-in alone.
  virtual void forget_pending(GstBuffer *) {}
  // Writes the bytes to the buffer's memory in the order of its stream, without waiting: the bytes stay. For the
  // stand-in alone.
  virtual void write_in_order(GstBuffer *, const std::vector<guint8> &) {}
  // Returns an active pool whose buffers have a GstVideoMeta.
  virtual GstBufferPool *new_pool(const GstVideoInfo &info) = 0;
  // Copies the samples of `from` into a new buffer of this memory.
  Ref<GstBuffer> copy(GstBuffer *from, const GstVideoInfo &info);
};

// Caps for `info` with CUDA memory.
Ref<GstCaps> device_caps(const GstVideoInfo &info);

// Sets the caps on both sides of the element, each with CUDA memory or with system memory.
void set_caps(Harness &h, const GstVideoInfo &info, bool device_in, bool device_out);

}  // namespace cudaconv::test
