// SPDX-License-Identifier: LGPL-2.1-or-later
//
// CUDA contexts and CUDA memory as GStreamer shares them. Each build links one implementation of this: the real one,
// one that has no device, or a test's.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"

namespace cudaconv::gst {

// An open CUDA context.
class Device {
 public:
  virtual ~Device() = default;

  // A backend on this context; calling it needs no context to be current. `parallel_for` as in make_cuda_backend().
  // Throws Error.
  virtual std::shared_ptr<Backend> make_backend(ParallelFor parallel_for) = 0;
  // Calls `f` with the context current, or without one where it is lost.
  virtual void in_context(const std::function<void()> &f) = 0;

  virtual int id() const = 0;  // as the CUDA runtime counts devices

  // Whether it is CUDA memory, of any context.
  virtual bool is_device_memory(GstMemory *memory) const = 0;
  // Whether the buffer is one piece of CUDA memory of this context.
  virtual bool owns(GstBuffer *buffer) const = 0;
  virtual bool owns(GstBufferPool *pool) const = 0;

  // Whether memory belongs to streams, on which the work on it is ordered. A buffer of memory that does not is complete
  // when it is pushed.
  virtual bool is_stream_ordered() const = 0;
  // The CUstream that a buffer of this context belongs to. Nullptr: to none, or for reading where nothing is left to be
  // written.
  virtual void *stream_of(GstBuffer *buffer, GstMapFlags access) const = 0;
  // To be called where what has been written to a buffer is complete.
  virtual void mark_complete(GstBuffer *buffer) const = 0;

  // A pool of CUDA memory, transfer full, and what its configuration needs beyond that of any video pool. nullptr where
  // there is no CUDA memory.
  virtual GstBufferPool *new_pool() = 0;
  virtual void configure_pool(GstStructure *config) = 0;
};

// Finds the device of one element, by way of GstContext. Any thread may call.
class DeviceFinder {
 public:
  static std::unique_ptr<DeviceFinder> create();
  virtual ~DeviceFinder() = default;

  // The context that was set or found last, else that of the neighbours or the application, else a new one. -1 for
  // `device_id` is any device. nullptr where there is none; `why` is then a sentence that says what was looked for.
  virtual std::shared_ptr<Device> open(GstElement *element, int device_id, std::string *why) = 0;
  // The device of the context that the CUDA memory of `buffer` belongs to, which is the context from then on. nullptr
  // where that is of another device than `device_id`, -1 being any.
  virtual std::shared_ptr<Device> follow(GstBuffer *buffer, int device_id) = 0;
  // Forgets the context that was set or found.
  virtual void close() = 0;

  // For GstElement::set_context, before chaining up, and GST_QUERY_CONTEXT. The query is answered where this is true.
  virtual void set_context(GstElement *element, GstContext *context, int device_id) = 0;
  virtual bool answer_context_query(GstElement *element, GstQuery *query) = 0;
};

// The formats that CUDA memory takes, by name; empty where there is no CUDA memory.
const std::vector<const char *> &cuda_memory_formats();

// To be called once, when the plugin is loaded.
void init_cuda(GstPlugin *plugin);

}  // namespace cudaconv::gst
