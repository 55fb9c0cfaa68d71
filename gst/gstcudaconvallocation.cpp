// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvallocation.h"

#include <algorithm>
#include <new>
#include <utility>

#include "gstcudaconvanalytics.h"
#include "gstcudaconvformat.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvpinned.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

namespace {

// A new pool of CUDA memory if `device` is set, else of system memory. nullptr where the device has no CUDA memory.
Ref<GstBufferPool> new_pool(Device *device) {
  return Ref<GstBufferPool>(device ? device->new_pool() : gst_video_buffer_pool_new());
}

// Configures the pool for `caps` and raises `*size` to the size of its buffers. `device` owns the pool's memory; it may
// be nullptr. `allocator` makes the memory; it may be nullptr. `max` 0: any number of buffers. Returns false if the
// pool refuses.
bool configure_pool(GstBufferPool *pool, Device *device, GstAllocator *allocator, GstCaps *caps, guint *size, guint min,
                    guint max) {
  GstStructure *config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps, *size, min, max);
  if (gst_buffer_pool_has_option(pool, GST_BUFFER_POOL_OPTION_VIDEO_META))
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (device) device->configure_pool(config);
  if (allocator) gst_buffer_pool_config_set_allocator(config, allocator, nullptr);
  const Ref<GstStructure> wanted(gst_structure_copy(config));
  if (!gst_buffer_pool_set_config(pool, config)) {
    // The pool has adapted the configuration, or refused it: GStreamer would say that it has this one already.
    Ref<GstStructure> adapted(gst_buffer_pool_get_config(pool));
    if (gst_structure_is_equal(adapted.get(), wanted.get())) return false;
    if (!gst_buffer_pool_config_validate_params(adapted.get(), caps, *size, min, max)) return false;
    if (!gst_buffer_pool_set_config(pool, adapted.release())) return false;
  }
  const Ref<GstStructure> in_use(gst_buffer_pool_get_config(pool));
  gst_buffer_pool_config_get_params(in_use.get(), nullptr, size, nullptr, nullptr);
  return true;
}

// Sets the query's allocator. Users of the query's pool configure it again, with this allocator.
void set_allocator(GstQuery *query, GstAllocator *allocator) {
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  if (gst_query_get_n_allocation_params(query) > 0) {
    gst_query_parse_nth_allocation_param(query, 0, nullptr, &params);
    gst_query_set_nth_allocation_param(query, 0, allocator, &params);
  } else {
    gst_query_add_allocation_param(query, allocator, &params);
  }
}

Ref<GstAllocator> allocator_of(GstBufferPool *pool) {
  const Ref<GstStructure> config(gst_buffer_pool_get_config(pool));
  GstAllocator *allocator = nullptr;
  gst_buffer_pool_config_get_allocator(config.get(), &allocator, nullptr);
  if (allocator) gst_object_ref(allocator);
  return Ref<GstAllocator>(allocator);
}

// Whether buffers of this pool are plain system memory, which pinned memory can replace.
bool is_plain_pool(GstBufferPool *pool) {
  if (G_OBJECT_TYPE(pool) != GST_TYPE_VIDEO_BUFFER_POOL && G_OBJECT_TYPE(pool) != GST_TYPE_BUFFER_POOL) return false;
  const Ref<GstStructure> config(gst_buffer_pool_get_config(pool));
  return !allocator_of(pool) &&
         !gst_buffer_pool_config_has_option(config.get(), GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
}

// Whether downstream's allocator and pool are of a special kind of system memory, such as shared memory or display
// buffers. Frames that are written there save downstream a copy. Plain memory saves none, since any input buffer is
// plain memory. Nor does pinned memory: it only makes copies faster, and filtering in place needs none.
bool has_memory(GstAllocator *allocator, GstBufferPool *pool) {
  if (allocator && !is_pinned_allocator(allocator) && g_strcmp0(allocator->mem_type, GST_ALLOCATOR_SYSMEM) != 0)
    return true;
  if (!pool || is_plain_pool(pool)) return false;
  const Ref<GstAllocator> its_own = allocator_of(pool);
  return !its_own || !is_pinned_allocator(its_own.get());
}

}  // namespace

bool has_default_layout(GstBuffer *buffer, const GstVideoInfo &info) {
  if (gst_buffer_get_size(buffer) != GST_VIDEO_INFO_SIZE(&info)) return false;
  const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
  if (!meta) return true;
  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES(&info); i++)
    if (i >= meta->n_planes || meta->offset[i] != GST_VIDEO_INFO_PLANE_OFFSET(&info, i) ||
        meta->stride[i] != GST_VIDEO_INFO_PLANE_STRIDE(&info, i))
      return false;
  return true;
}

bool propose_allocation(GstQuery *query, const AllocationNeeds &needs, const Downstream &downstream) {
  GstCaps *caps;
  gboolean need_pool;
  GstVideoInfo info;
  gst_query_parse_allocation(query, &caps, &need_pool);
  if (!caps || !gst_video_info_from_caps(&info, caps)) return false;

  const bool cuda = is_cuda_caps(caps);
  Device *device = cuda ? needs.device.get() : nullptr;
  if (need_pool && (device || !cuda)) {
    // Downstream holds upstream's buffers, too, where frames are filtered in place.
    const guint held = (needs.frames > 1 ? needs.frames : 0) + (needs.in_place ? downstream.buffers : 0);
    const guint min = held ? held + 1 : 0;
    const Ref<GstAllocator> allocator(!cuda && needs.pinned ? new_pinned_allocator(needs.device) : nullptr);
    const Ref<GstBufferPool> pool = new_pool(device);
    guint size = GST_VIDEO_INFO_SIZE(&info);
    if (pool && configure_pool(pool.get(), device, allocator.get(), caps, &size, min, 0))
      gst_query_add_allocation_pool(query, pool.get(), size, min, 0);
    if (allocator) set_allocator(query, allocator.get());
  }
  // The base class has removed these metas, as tied to the memory or the size. The element takes both all the same: it
  // reads any strides, and the crop rectangle of any larger frame.
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  if (needs.crop) gst_query_add_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr);
  for (const GType api : {GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE, analytics_meta_api()})
    if (needs.regions && api != G_TYPE_INVALID && !gst_query_find_allocation_meta(query, api, nullptr))
      gst_query_add_allocation_meta(query, api, nullptr);
  return true;
}

Downstream decide_allocation(GstObject *element, GstQuery *query, const AllocationNeeds &needs) {
  GstCaps *caps;
  GstVideoInfo info;
  gst_query_parse_allocation(query, &caps, nullptr);
  gst_video_info_from_caps(&info, caps);  // the base class has negotiated them
  Device *const device = is_cuda_caps(caps) ? needs.device.get() : nullptr;

  const bool proposed = gst_query_get_n_allocation_pools(query) > 0;
  GstBufferPool *first = nullptr;
  guint size = 0, min = 0, max = 0;
  if (proposed) gst_query_parse_nth_allocation_pool(query, 0, &first, &size, &min, &max);
  Ref<GstBufferPool> pool(first);
  GstAllocator *named = nullptr;
  if (gst_query_get_n_allocation_params(query) > 0) gst_query_parse_nth_allocation_param(query, 0, &named, nullptr);
  Ref<GstAllocator> offered(named);
  const Downstream downstream = {gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr) != FALSE,
                                 has_memory(offered.get(), pool.get()), min};
  size = std::max<guint>(size, GST_VIDEO_INFO_SIZE(&info));

  // System memory comes from the allocator that downstream names, in the query or in its pool. Where it names none and
  // offers no special pool, pinned memory is allocated, which the GPU can write to directly.
  Ref<GstAllocator> allocator;
  if (!device) {
    allocator = std::move(offered);
    if (!allocator && pool) allocator = allocator_of(pool.get());
    if (!allocator && needs.pinned && (!pool || is_plain_pool(pool.get()))) {
      allocator.reset(new_pinned_allocator(needs.device));
      pool.reset();
    }
  } else if (pool && !device->owns(pool.get())) {
    GST_CAT_INFO_OBJECT(gst_cuda_conv_performance, element,
                        "downstream's pool %" GST_PTR_FORMAT " does not have CUDA memory of device %d", pool.get(),
                        device->id());
    pool.reset();
  }
  if (pool && needs.frames > 1) min += needs.frames;
  if (max) min = std::min(min, max);
  // A pool that fails to allocate its minimum at once leaks some buffers. Pools of CUDA memory grow on demand.
  if (device) min = 0;
  if (pool && !configure_pool(pool.get(), device, nullptr, caps, &size, min, max)) {
    GST_DEBUG_OBJECT(element, "downstream's %" GST_PTR_FORMAT " cannot be configured", pool.get());
    pool.reset();
  }
  const bool own = !pool;
  if (own) {
    min = max = 0;  // it grows on demand, too
    // An allocator without this function only makes memory by way of its own pool, as for DMA buffers.
    if (allocator && !GST_ALLOCATOR_GET_CLASS(allocator.get())->alloc) allocator.reset();
    pool = new_pool(device);
    if (!pool || !configure_pool(pool.get(), device, allocator.get(), caps, &size, min, max))
      throw Error(Error::Kind::Device, "no buffer pool could be configured for the output");
  }
  if (!device) set_allocator(query, allocator.get());
  GST_DEBUG_OBJECT(
      element,
      "output: %s pool %" GST_PTR_FORMAT " of %s memory, allocator %" GST_PTR_FORMAT ", %u bytes, %u to %u buffers",
      own ? "own" : "downstream's", pool.get(), device ? "CUDA" : "system", allocator.get(), size, min, max);
  if (proposed)
    gst_query_set_nth_allocation_pool(query, 0, pool.get(), size, min, max);
  else
    gst_query_add_allocation_pool(query, pool.get(), size, min, max);
  return downstream;
}

bool filters_in_place(GstBuffer *buffer, const StreamContext &context, const Downstream &downstream) {
  if (!context.suits_in_place()) return false;
  const Device *device = context.engine->device.get();
  // The CPU copies the GPU's results for a frame in place in system memory. With roi-invert they are most of the frame:
  // a new buffer costs less.
  if (context.settings.roi.invert && device && !context.cuda_out) return false;
  if (!gst_buffer_is_writable(buffer) || !gst_buffer_is_all_memory_writable(buffer)) return false;
  if (gst_buffer_get_video_crop_meta(buffer)) return false;
  // Downstream would draw the texture, which is not filtered.
  if (gst_buffer_get_video_gl_texture_upload_meta(buffer)) return false;
  if (context.cuda_out) return device && device->owns(buffer);
  for (guint i = 0; i < gst_buffer_n_memory(buffer); i++) {
    GstMemory *memory = gst_buffer_peek_memory(buffer, i);
    if (is_cuda_memory(memory) || GST_MEMORY_IS_READONLY(memory)) return false;
  }
  return !downstream.has_memory && (downstream.takes_video_meta || has_default_layout(buffer, context.info));
}

GstFlowReturn new_output_buffer(GstBaseTransform *trans, GstBuffer *inbuf, GstBuffer **outbuf) {
  gpointer base = g_type_class_peek(GST_TYPE_BASE_TRANSFORM);
  GstFlowReturn ret;
  do {
    // Where an application has just switched it to passthrough, the base class returns the input without a reference.
    if (gst_base_transform_is_passthrough(trans)) gst_base_transform_set_passthrough(trans, FALSE);
    ret = GST_BASE_TRANSFORM_CLASS(base)->prepare_output_buffer(trans, inbuf, outbuf);
  } while (ret == GST_FLOW_OK && *outbuf == inbuf);
  if (ret == GST_FLOW_ERROR) {
    const Ref<GstBufferPool> pool(gst_base_transform_get_buffer_pool(trans));
    if (pool && gst_buffer_pool_is_active(pool.get()))
      throw std::bad_alloc();  // else the base class has posted an error
  }
  return ret;
}

void OutputPool::set(Ref<GstBufferPool> pool) {
  std::lock_guard<std::mutex> guard(lock_);
  pool_.swap(pool);  // the other one is released without the lock: arguments outlive local variables
}

// A pool is inactive until its first buffer: GStreamer would warn.
void OutputPool::follow(const std::atomic<bool> &stopped) {
  std::lock_guard<std::mutex> guard(lock_);
  if (pool_ && gst_buffer_pool_is_active(pool_.get())) gst_buffer_pool_set_flushing(pool_.get(), stopped);
}

}  // namespace cudaconv::gst
