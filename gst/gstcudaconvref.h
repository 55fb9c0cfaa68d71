// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Owning references to objects of GStreamer, and the task of a pad, which may own none.
#pragma once

#include <gst/gst.h>

#include <memory>
#include <utility>

namespace cudaconv::gst {

struct Unref {
  void operator()(GstBuffer *buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstEvent *event) const { gst_event_unref(event); }
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstQuery *query) const { gst_query_unref(query); }
  void operator()(GstAllocator *allocator) const { gst_object_unref(allocator); }
  void operator()(GstElement *element) const { gst_object_unref(element); }
  void operator()(GstClock *clock) const { gst_object_unref(clock); }
  void operator()(GstPad *pad) const { gst_object_unref(pad); }
  void operator()(GstBufferPool *pool) const { gst_object_unref(pool); }
  void operator()(GstTask *task) const { gst_object_unref(task); }
  void operator()(GstStructure *structure) const { gst_structure_free(structure); }
  // Buffers and allocators are released by different functions, and a C struct does not say whether it is a
  // GstMiniObject or a GObject: a type that is not named above does not compile.
  void operator()(void *) const = delete;
};

// A smart pointer that owns one reference.
template <typename T>
using Ref = std::unique_ptr<T, Unref>;

// Starts a task that calls a function of the object. The pad has none where the system has no thread for it: to wait
// for its end would take for ever.
template <auto kFunction, typename T>
bool start_task(GstPad *pad, T *object) {
  const auto run = [](gpointer data) { (static_cast<T *>(data)->*kFunction)(); };
  if (gst_pad_start_task(pad, run, object, nullptr)) return true;
  GST_OBJECT_LOCK(pad);
  const Ref<GstTask> task(std::exchange(GST_PAD_TASK(pad), nullptr));
  GST_OBJECT_UNLOCK(pad);
  if (task) {  // a thread may take it later, and ends at once: after the pad, perhaps
    gst_task_set_leave_callback(task.get(), nullptr, nullptr, nullptr);
    gst_task_stop(task.get());
  }
  return false;
}

}  // namespace cudaconv::gst
