// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <memory>

namespace cudaconv::gst {

struct Unref {
  void operator()(GstBuffer *buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstQuery *query) const { gst_query_unref(query); }
  void operator()(GstAllocator *allocator) const { gst_object_unref(allocator); }
  void operator()(GstBufferPool *pool) const { gst_object_unref(pool); }
  // Mini objects and GObjects are released by different functions, and C structs do not say which they are: a type
  // that is not named above does not compile.
  void operator()(void *) const = delete;
};

// Owns one reference.
template <typename T>
using Ref = std::unique_ptr<T, Unref>;

}  // namespace cudaconv::gst
