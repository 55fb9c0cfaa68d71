// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The interface to CUDA contexts and CUDA memory that elements share. Each build links one implementation:
// gstcudaconvdevice.cpp with CUDA, gstcudaconvdevice_none.cpp without, or a test's.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <string>

#include "backend.h"

namespace cudaconv::gst {

// Whether `memory` is CUDA memory, of any context: by GST_CUDA_MEMORY_TYPE_NAME, for which builds without CUDA have no
// header.
inline bool is_cuda_memory(GstMemory *memory) {
  return gst_memory_is_type(memory, "gst.cuda.memory");
}

// A CUDA device, opened as a CUDA context.
class Device {
 public:
  virtual ~Device() = default;

  // Makes a backend on this context; its callers need not make the context current. `parallel_for`: see
  // make_cuda_backend(). Throws Error.
  virtual std::shared_ptr<Backend> make_backend(ParallelFor parallel_for) = 0;
  // Calls `f` with the context current. Where the context is lost and cannot be made current, calls `f` all the same.
  virtual void in_context(const std::function<void()> &f) = 0;

  virtual int id() const = 0;  // as the CUDA runtime counts devices

  // Whether the buffer is a single piece of CUDA memory of this context, or the pool makes buffers of that kind.
  virtual bool owns(GstBuffer *buffer) const = 0;
  virtual bool owns(GstBufferPool *pool) const = 0;

  // The CUstream that a buffer of this context belongs to, on which the work on it is ordered. nullptr where it has
  // none: the buffer then has to be complete before it is pushed. With `if_pending` also where no write to it is
  // pending.
  virtual void *stream_of(GstBuffer *buffer, bool if_pending) const = 0;
  // Whether the stream of a buffer of this context is the one that backends use, and whoever writes or frees the memory
  // next does so in its order.
  virtual bool orders(GstBuffer *buffer) const = 0;
  // Whether backends use the stream of a buffer of this context; also false where it has none.
  virtual bool has_stream_of(GstBuffer *buffer) const = 0;
  // The same context with the stream of `buffer`, which has one, for backends that are made from then on. nullptr where
  // that is not possible.
  virtual std::shared_ptr<Device> with_stream_of(GstBuffer *buffer) const = 0;
  // Tells GStreamer that all writes to the buffer are complete.
  virtual void mark_complete(GstBuffer *buffer) const = 0;

  // new_pool() makes a pool of CUDA memory, transfer full; nullptr where there is no CUDA memory. configure_pool() adds
  // to a pool's configuration the options that only CUDA memory needs.
  virtual GstBufferPool *new_pool() = 0;
  virtual void configure_pool(GstStructure *config) = 0;
};

// Finds the CUDA device of one element and shares its context by GstContext. Any thread may call. Functions that are
// not overridden know of no device.
class DeviceFinder {
 public:
  static std::unique_ptr<DeviceFinder> create();
  virtual ~DeviceFinder() = default;

  // Opens the context that was set or found last. Without one, asks the neighbours and the application; without an
  // answer, makes a new one. `device_id` -1 is any device. Returns nullptr if there is none, and explains in `*why`.
  virtual std::shared_ptr<Device> open(GstElement *, int /*device_id*/, std::string *why) {
    cuda_device_count(why);
    return nullptr;
  }
  // Changes over to the context that the CUDA memory of the buffer belongs to, and returns its device. Returns nullptr,
  // and changes nothing, where that is another device than the one with this id (-1: any).
  virtual std::shared_ptr<Device> follow(GstBuffer *, int) { return nullptr; }
  // Forgets the context that was set or found.
  virtual void close() {}
  // To be called where the context has failed: elements that start later do not get it.
  virtual void abandon() {}

  // For GstElement::set_context, before chaining up, and for GST_QUERY_CONTEXT. answer_context_query() returns whether
  // the query has been answered.
  virtual void set_context(GstElement *, GstContext *, int) {}
  virtual bool answer_context_query(GstElement *, GstQuery *) { return false; }
};

// The names of the formats that CUDA memory takes, then nullptr; no names where there is no CUDA memory.
const char *const *cuda_memory_formats();

// Loads the CUDA driver, or adds a warning to the plugin where there is none. To be called once, from plugin_init().
void init_cuda(GstPlugin *plugin);

}  // namespace cudaconv::gst
