// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvpinned.h"

#include <cstring>
#include <mutex>
#include <new>

namespace cudaconv::gst {

namespace {

// To pin existing memory costs more than to stage one frame. Memory is pinned when it is used for this many times,
// which tells memory of pools from memory that is used once. 0: never, every frame is staged.
constexpr int kPinAtUse = 3;
// Bytes. Smaller pieces of memory share their pages with others, and cost nothing to stage.
constexpr gsize kLeastToPin = 64 << 10;

// The state of a piece of system memory: qdata of the GstMemory, deleted just before the memory is freed.
struct Mark {
  int uses = 0;                       // up to kPinAtUse
  std::shared_ptr<Device> device;     // where `data` is pinned
  void *data = nullptr;               // nullptr: the memory is not pinned
  void (*release)(void *) = nullptr;  // unpins `data`, or deletes what was allocated pinned

  ~Mark() {
    if (data) device->in_context([this] { release(data); });
  }
  void set(const std::shared_ptr<Device> &on, void *pinned, void (*releases)(void *)) {
    device = on;
    data = pinned;
    release = releases;
  }
};

std::mutex marks_lock;  // two elements may look at the same memory

GQuark mark_quark() {
  static const GQuark quark = g_quark_from_static_string("cudaconv-pinned");
  return quark;
}

void set_mark(GstMemory *memory, Mark *mark) {
  gst_mini_object_set_qdata(GST_MINI_OBJECT(memory), mark_quark(), mark,
                            [](gpointer data) { delete static_cast<Mark *>(data); });
}

// Returns the mark of `memory`, a new one where it has none. Call with marks_lock held.
Mark *mark_of(GstMemory *memory) {
  auto *mark = static_cast<Mark *>(gst_mini_object_get_qdata(GST_MINI_OBJECT(memory), mark_quark()));
  if (!mark) set_mark(memory, mark = new Mark());
  return mark;
}

void pin(GstMemory *memory, const std::shared_ptr<Device> &device, Mark *mark) {
  GstMapInfo map;
  gsize offset, whole;
  gst_memory_get_sizes(memory, &offset, &whole);
  if (whole < kLeastToPin) return;
  if (!gst_memory_map(memory, &map, GST_MAP_READ)) return;
  guint8 *const data = map.data - offset;  // all of it: a later resize may expose bytes that are hidden now
  gst_memory_unmap(memory, &map);
  bool pinned = false;
  device->in_context([&] { pinned = pin_memory(data, whole); });
  if (pinned) mark->set(device, data, unpin_memory);
}

// ---- The allocator --------------------------------------------------------------------------------------------------

// Upstream may keep the allocator for ever. Without its device it allocates plain memory.
G_DECLARE_FINAL_TYPE(GstCudaConvPinnedAllocator, gst_cuda_conv_pinned_allocator, GST, CUDA_CONV_PINNED_ALLOCATOR,
                     GstAllocator)
struct _GstCudaConvPinnedAllocator {
  GstAllocator parent;
  std::weak_ptr<Device> *device;
};

GstMemory *allocate(GstAllocator *allocator, gsize size, GstAllocationParams *params) {
  const std::shared_ptr<Device> device = GST_CUDA_CONV_PINNED_ALLOCATOR(allocator)->device->lock();
  const gsize bytes = size + params->prefix + params->padding;
  void *data = nullptr;
  // No exception may reach GStreamer, which calls this.
  std::unique_ptr<Mark> mark(new (std::nothrow) Mark());
  // Pinned memory begins at a page, which meets any alignment, but only without a prefix before the data.
  if (mark && device && params->prefix == 0) device->in_context([&] { data = new_pinned_memory(bytes); });
  if (!data) return gst_allocator_alloc(nullptr, size, params);
  if (params->flags & GST_MEMORY_FLAG_ZERO_PADDED) std::memset(static_cast<guint8 *>(data) + size, 0, params->padding);
  GstMemory *memory = gst_memory_new_wrapped(params->flags, data, bytes, 0, size, nullptr, nullptr);
  mark->set(device, data, delete_pinned_memory);
  set_mark(memory, mark.release());
  return memory;
}

G_DEFINE_TYPE(GstCudaConvPinnedAllocator, gst_cuda_conv_pinned_allocator, GST_TYPE_ALLOCATOR)

void gst_cuda_conv_pinned_allocator_class_init(GstCudaConvPinnedAllocatorClass *klass) {
  GST_ALLOCATOR_CLASS(klass)->alloc = allocate;
  // It needs no free(): gst_memory_new_wrapped() makes memory of the system allocator.
  G_OBJECT_CLASS(klass)->finalize = [](GObject *object) {
    delete GST_CUDA_CONV_PINNED_ALLOCATOR(object)->device;
    G_OBJECT_CLASS(gst_cuda_conv_pinned_allocator_parent_class)->finalize(object);
  };
}

void gst_cuda_conv_pinned_allocator_init(GstCudaConvPinnedAllocator *) {}

}  // namespace

GstAllocator *new_pinned_allocator(const std::shared_ptr<Device> &device) {
  auto *allocator = GST_CUDA_CONV_PINNED_ALLOCATOR(g_object_new(gst_cuda_conv_pinned_allocator_get_type(), nullptr));
  gst_object_ref_sink(allocator);
  allocator->device = new std::weak_ptr<Device>(device);
  return GST_ALLOCATOR_CAST(allocator);
}

bool is_pinned_allocator(GstAllocator *allocator) {
  return GST_IS_CUDA_CONV_PINNED_ALLOCATOR(allocator);
}

bool is_pinned(GstBuffer *buffer, const std::shared_ptr<Device> &device) {
  if (gst_buffer_n_memory(buffer) != 1) return false;
  GstMemory *memory = gst_buffer_peek_memory(buffer, 0);
  while (memory->parent) memory = memory->parent;
  // Memory of other types may lie at another address each time it is mapped.
  if (!gst_memory_is_type(memory, GST_ALLOCATOR_SYSMEM)) return false;
  std::lock_guard<std::mutex> guard(marks_lock);
  Mark *mark = mark_of(memory);
  if (!mark->data && mark->uses < kPinAtUse && ++mark->uses == kPinAtUse) pin(memory, device, mark);
  return mark->data;
}

}  // namespace cudaconv::gst
