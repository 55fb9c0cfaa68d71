// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Implements the tests' device memory with GStreamer's CUDA memory.
#include "devicememory.h"
#include "gstcudacompat.h"

namespace cudaconv::test {

namespace {

class CudaDeviceMemory : public DeviceMemory {
 public:
  // Takes the reference to `context`.
  explicit CudaDeviceMemory(GstCudaContext *context) : context_(context) {}
  ~CudaDeviceMemory() override { gst_object_unref(context_); }

  void share_with(GstElement *element) override {
    GstContext *context = gst_context_new_cuda_context(context_);
    gst_element_set_context(element, context);
    gst_context_unref(context);
  }
  bool holds(GstBuffer *buffer) override {
    if (gst_buffer_n_memory(buffer) != 1) return false;
    GstMemory *memory = gst_buffer_peek_memory(buffer, 0);
    return gst_is_cuda_memory(memory) && GST_CUDA_MEMORY_CAST(memory)->context == context_;
  }
  void notify_of_release(int *released) override {
    g_object_weak_ref(
        G_OBJECT(context_), [](gpointer data, GObject *) { *static_cast<int *>(data) = 1; }, released);
  }
  GstBufferPool *new_pool(const GstVideoInfo &info) override {
    GstBufferPool *pool = gst_cuda_buffer_pool_new(context_);
    GstStructure *config = gst_buffer_pool_get_config(pool);
    const Ref<GstCaps> caps = device_caps(info);
    gst_buffer_pool_config_set_params(config, caps.get(), static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), 0, 0);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    fail_unless(gst_buffer_pool_set_config(pool, config));
    fail_unless(gst_buffer_pool_set_active(pool, TRUE));
    return pool;
  }

 private:
  GstCudaContext *const context_;
};

GstCudaContext *new_context(int device_id) {
  return gst_cuda_load_library() ? gst_cuda_context_new(static_cast<guint>(device_id)) : nullptr;
}

}  // namespace

std::unique_ptr<DeviceMemory> DeviceMemory::of(GstElement *element) {
  const Ref<GstQuery> query(gst_query_new_context(GST_CUDA_CONTEXT_TYPE));
  const Ref<GstPad> pad(gst_element_get_static_pad(element, "src"));
  fail_unless(gst_pad_query(pad.get(), query.get()), "the element does not answer a query for its CUDA context");
  GstContext *context = nullptr;
  gst_query_parse_context(query.get(), &context);
  GstCudaContext *found = nullptr;
  gst_structure_get(gst_context_get_structure(context), GST_CUDA_CONTEXT_TYPE, GST_TYPE_CUDA_CONTEXT, &found, nullptr);
  fail_unless(found != nullptr);
  return std::make_unique<CudaDeviceMemory>(found);
}

bool DeviceMemory::exists(int device_id) {
  GstCudaContext *context = new_context(device_id);
  if (context) gst_object_unref(context);
  return context;
}

std::unique_ptr<DeviceMemory> DeviceMemory::create(int device_id) {
  GstCudaContext *context = new_context(device_id);
  fail_unless(context != nullptr, "no CUDA context could be made on device %d; do other processes use all its memory?",
              device_id);
  gst_cuda_memory_init_once();
  return std::make_unique<CudaDeviceMemory>(context);
}

}  // namespace cudaconv::test
