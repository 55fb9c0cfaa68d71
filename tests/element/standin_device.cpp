// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Implements the element's Device, and the tests' DeviceMemory, on the stand-in for the CUDA runtime.
#include <gst/video/video.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devicememory.h"
#include "gstcudaconvdevice.h"

namespace {

// With CUDACONV_TEST_STREAMS each memory belongs to a stream, as in GStreamer since 1.24: to that of its pool, or to
// one of its own. A buffer may be pushed before it is complete. Reading it without waiting for the stream gives
// garbage.
bool stream_ordered() {
  return g_getenv("CUDACONV_TEST_STREAMS") != nullptr;
}

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream &) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};
using SharedStream = std::shared_ptr<Stream>;

// ---- Contexts: numbers from 1 on, each of one device ----------------------------------------------------------------

constexpr char kContextType[] = "gst.cuda.context";

class Contexts {
 public:
  int make(int device) {
    std::lock_guard<std::mutex> guard(lock_);
    devices_.push_back(device);
    return static_cast<int>(devices_.size());
  }
  int device_of(int context) {
    std::lock_guard<std::mutex> guard(lock_);
    return devices_[context - 1];
  }
  // The context that elements share if no other context is set.
  int shared(int device) {
    std::lock_guard<std::mutex> guard(lock_);
    int &context = shared_[device];
    if (!context) {
      devices_.push_back(device);
      context = static_cast<int>(devices_.size());
    }
    return context;
  }
  // The next element that asks for the shared context gets a new one.
  void forget(int context) {
    std::lock_guard<std::mutex> guard(lock_);
    for (auto &[device, shared] : shared_)
      if (shared == context) shared = 0;
  }

 private:
  std::mutex lock_;
  std::vector<int> devices_;
  std::map<int, int> shared_;
} contexts;

GstContext *new_gst_context(int context) {
  GstContext *result = gst_context_new(kContextType, TRUE);
  gst_structure_set(gst_context_writable_structure(result), kContextType, G_TYPE_INT, context, nullptr);
  return result;
}

// The number in a GstContext; 0 if it has another type.
int number_of(GstContext *context) {
  int number = 0;
  if (context && gst_context_has_context_type(context, kContextType))
    gst_structure_get_int(gst_context_get_structure(context), kContextType, &number);
  return number;
}

// ---- Memory: of the device, with a copy in system memory once that is mapped ----------------------------------------

constexpr char kMemoryType[] = "gst.cuda.memory";
constexpr int kMapDevice = GST_MAP_FLAG_LAST << 1;  // GST_MAP_CUDA
constexpr int kPitchAlignment = 64;                 // bytes

struct StandinMemory {
  GstMemory memory;
  int context;
  void *device;
  guint8 *host;
  bool host_is_newer, device_is_newer;
  cudaStream_t stream;  // nullptr: no stream
  SharedStream *owner;  // of the stream
  bool needs_sync;
};

// Memory of a stream is uploaded on the stream, and nothing waits for that.
bool upload(StandinMemory *self, gsize size) {
  if (!self->stream) return cudaMemcpy(self->device, self->host, size, cudaMemcpyHostToDevice) == cudaSuccess;
  self->needs_sync = true;
  return cudaMemcpyAsync(self->device, self->host, size, cudaMemcpyHostToDevice, self->stream) == cudaSuccess;
}

gpointer map_memory(GstMemory *memory, gsize size, GstMapFlags flags) {
  static std::mutex lock;  // several branches may map a memory at once
  const std::lock_guard<std::mutex> guard(lock);
  auto *self = reinterpret_cast<StandinMemory *>(memory);
  if (flags & kMapDevice) {
    if (self->host_is_newer && !upload(self, size)) return nullptr;
    self->host_is_newer = false;
    if (flags & GST_MAP_WRITE) {
      self->device_is_newer = true;
      self->needs_sync = self->stream != nullptr;
    }
    return self->device;
  }
  if (self->needs_sync && cudaStreamSynchronize(self->stream) != cudaSuccess) return nullptr;
  self->needs_sync = false;
  if (!self->host) {
    self->host = static_cast<guint8 *>(g_malloc(size));
    self->device_is_newer = true;
  }
  if (self->device_is_newer && cudaMemcpy(self->host, self->device, size, cudaMemcpyDeviceToHost) != cudaSuccess)
    return nullptr;
  self->device_is_newer = false;
  if (flags & GST_MAP_WRITE) self->host_is_newer = true;
  return self->host;
}

struct StandinAllocator {
  GstAllocator parent;
};
struct StandinAllocatorClass {
  GstAllocatorClass parent_class;
};
G_DEFINE_TYPE(StandinAllocator, standin_allocator, GST_TYPE_ALLOCATOR)

void standin_allocator_class_init(StandinAllocatorClass *klass) {
  GST_ALLOCATOR_CLASS(klass)->free = [](GstAllocator *, GstMemory *memory) {
    auto *self = reinterpret_cast<StandinMemory *>(memory);
    if (self->stream) cudaStreamSynchronize(self->stream);  // cudaFree() synchronises with the whole device
    delete self->owner;
    cudaFree(self->device);
    g_free(self->host);
    g_free(self);
  };
}

void standin_allocator_init(StandinAllocator *self) {
  GstAllocator *allocator = GST_ALLOCATOR_CAST(self);
  allocator->mem_type = kMemoryType;
  allocator->mem_map = map_memory;
  allocator->mem_unmap = [](GstMemory *) {};
  GST_OBJECT_FLAG_SET(self, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

GstMemory *new_memory(int context, gsize size, const SharedStream &stream) {
  static GstAllocator *const allocator =
      static_cast<GstAllocator *>(gst_object_ref_sink(g_object_new(standin_allocator_get_type(), nullptr)));
  void *device = nullptr;
  if (cudaMalloc(&device, size) != cudaSuccess) return nullptr;
  auto *self = g_new0(StandinMemory, 1);
  gst_memory_init(&self->memory, GST_MEMORY_FLAG_NO_SHARE, allocator, nullptr, size, 0, 0, size);
  self->context = context;
  self->device = device;
  if (stream_ordered()) {
    self->owner = new SharedStream(stream ? stream : std::make_shared<Stream>());
    self->stream = (*self->owner)->get();
  }
  return &self->memory;
}

// The context of a buffer's memory; 0 for memory of another kind.
int context_of(GstBuffer *buffer) {
  if (gst_buffer_n_memory(buffer) != 1) return 0;
  GstMemory *memory = gst_buffer_peek_memory(buffer, 0);
  return gst_memory_is_type(memory, kMemoryType) ? reinterpret_cast<StandinMemory *>(memory)->context : 0;
}

bool is_memory_of(GstBuffer *buffer, int context) {
  return context_of(buffer) == context;
}

// ---- Pool -----------------------------------------------------------------------------------------------------------

constexpr char kStreamField[] = "standin-stream";  // of a pool's configuration

struct StandinPool {
  GstBufferPool parent;
  int context;
  GstVideoInfo info;
  SharedStream *stream;  // nullptr: each memory has its own
};
struct StandinPoolClass {
  GstBufferPoolClass parent_class;
};
G_DEFINE_TYPE(StandinPool, standin_pool, GST_TYPE_BUFFER_POOL)

void standin_pool_class_init(StandinPoolClass *klass) {
  GstBufferPoolClass *pool_class = GST_BUFFER_POOL_CLASS(klass);
  G_OBJECT_CLASS(klass)->finalize = [](GObject *object) {
    delete reinterpret_cast<StandinPool *>(object)->stream;
    G_OBJECT_CLASS(standin_pool_parent_class)->finalize(object);
  };
  pool_class->get_options = [](GstBufferPool *) {
    static const gchar *options[] = {GST_BUFFER_POOL_OPTION_VIDEO_META, nullptr};
    return options;
  };
  pool_class->set_config = [](GstBufferPool *pool, GstStructure *config) {
    auto *self = reinterpret_cast<StandinPool *>(pool);
    GstCaps *caps = nullptr;
    guint min, max;
    if (!gst_buffer_pool_config_get_params(config, &caps, nullptr, &min, &max) || !caps ||
        !gst_video_info_from_caps(&self->info, caps))
      return FALSE;
    // Like GstCudaAllocator: without the row of chroma that only interlaced frames have.
    if (GST_VIDEO_INFO_INTERLACE_MODE(&self->info) != GST_VIDEO_INTERLACE_MODE_ALTERNATE)
      GST_VIDEO_INFO_INTERLACE_MODE(&self->info) = GST_VIDEO_INTERLACE_MODE_PROGRESSIVE;
    guint64 stream = 0;  // a pointer: GStreamer compares configurations, and pointers are no values to compare
    if (gst_structure_get_uint64(config, kStreamField, &stream) && stream) {
      if (!self->stream) self->stream = new SharedStream;
      *self->stream = reinterpret_cast<Stream *>(stream)->shared_from_this();
    }
    GstVideoAlignment alignment;
    gst_video_alignment_reset(&alignment);
    for (guint &stride : alignment.stride_align) stride = kPitchAlignment - 1;
    gst_video_info_align(&self->info, &alignment);
    gst_buffer_pool_config_set_params(config, caps, GST_VIDEO_INFO_SIZE(&self->info), min, max);
    return GST_BUFFER_POOL_CLASS(standin_pool_parent_class)->set_config(pool, config);
  };
  pool_class->alloc_buffer = [](GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *) {
    auto *self = reinterpret_cast<StandinPool *>(pool);
    GstMemory *memory =
        new_memory(self->context, GST_VIDEO_INFO_SIZE(&self->info), self->stream ? *self->stream : nullptr);
    if (!memory) return GST_FLOW_ERROR;
    *buffer = gst_buffer_new();
    gst_buffer_append_memory(*buffer, memory);
    gst_buffer_add_video_meta_full(*buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&self->info),
                                   GST_VIDEO_INFO_WIDTH(&self->info), GST_VIDEO_INFO_HEIGHT(&self->info),
                                   GST_VIDEO_INFO_N_PLANES(&self->info), self->info.offset, self->info.stride);
    return GST_FLOW_OK;
  };
}

void standin_pool_init(StandinPool *) {}

GstBufferPool *new_pool_of(int context) {
  auto *pool = static_cast<StandinPool *>(g_object_new(standin_pool_get_type(), nullptr));
  gst_object_ref_sink(pool);
  pool->context = context;
  return GST_BUFFER_POOL(pool);
}

}  // namespace

// ---- The element's side ---------------------------------------------------------------------------------------------

namespace cudaconv::gst {

namespace {

class StandinDevice : public Device {
 public:
  explicit StandinDevice(int context, SharedStream stream = nullptr) : context_(context), stream_(std::move(stream)) {
    if (stream_ordered() && !stream_) stream_ = std::make_shared<Stream>();
  }
  std::shared_ptr<Backend> make_backend(ParallelFor parallel_for) override {
    return make_cuda_backend(handle(), std::move(parallel_for));
  }
  void in_context(const std::function<void()> &f) override { f(); }
  int id() const override { return contexts.device_of(context_); }
  bool owns(GstBuffer *buffer) const override { return is_memory_of(buffer, context_); }
  bool owns(GstBufferPool *pool) const override {
    return G_TYPE_CHECK_INSTANCE_TYPE(pool, standin_pool_get_type()) &&
           reinterpret_cast<StandinPool *>(pool)->context == context_;
  }
  void *stream_of(GstBuffer *buffer, bool if_pending) const override {
    const auto *memory = reinterpret_cast<StandinMemory *>(gst_buffer_peek_memory(buffer, 0));
    return if_pending && !memory->needs_sync ? nullptr : memory->stream;
  }
  bool orders(GstBuffer *buffer) const override {
    const auto *memory = reinterpret_cast<StandinMemory *>(gst_buffer_peek_memory(buffer, 0));
    return has_stream_of(buffer) && buffer->pool && owns(buffer->pool) && !memory->host_is_newer;
  }
  bool has_stream_of(GstBuffer *buffer) const override { return handle() && stream_of(buffer, false) == handle(); }
  std::shared_ptr<Device> with_stream_of(GstBuffer *buffer) const override {
    const auto *memory = reinterpret_cast<StandinMemory *>(gst_buffer_peek_memory(buffer, 0));
    return std::make_shared<StandinDevice>(context_, *memory->owner);
  }
  void mark_complete(GstBuffer *buffer) const override {
    reinterpret_cast<StandinMemory *>(gst_buffer_peek_memory(buffer, 0))->needs_sync = false;
  }
  GstBufferPool *new_pool() override { return new_pool_of(context_); }
  void configure_pool(GstStructure *config) override {
    if (stream_)
      gst_structure_set(config, kStreamField, G_TYPE_UINT64, reinterpret_cast<guint64>(stream_.get()), nullptr);
  }

 private:
  void *handle() const { return stream_ ? stream_->get() : nullptr; }

  const int context_;
  SharedStream stream_;  // nullptr: none
};

class StandinDeviceFinder : public DeviceFinder {
 public:
  std::shared_ptr<Device> open(GstElement *, int device_id, std::string *why) override {
    const int count = cuda_device_count(why);
    if (count == 0) return nullptr;
    if (device_id >= count) {
      *why = "there is no CUDA device " + std::to_string(device_id);
      return nullptr;
    }
    std::lock_guard<std::mutex> guard(lock_);
    if (context_ && device_id >= 0 && contexts.device_of(context_) != device_id) context_ = 0;
    if (!context_) context_ = contexts.shared(std::max(device_id, 0));
    return std::make_shared<StandinDevice>(context_);
  }
  std::shared_ptr<Device> follow(GstBuffer *buffer, int device_id) override {
    const int context = context_of(buffer);
    if (device_id >= 0 && contexts.device_of(context) != device_id) return nullptr;
    std::lock_guard<std::mutex> guard(lock_);
    context_ = context;
    return std::make_shared<StandinDevice>(context);
  }
  void close() override {
    std::lock_guard<std::mutex> guard(lock_);
    context_ = 0;
  }
  void abandon() override {
    std::lock_guard<std::mutex> guard(lock_);
    contexts.forget(context_);
  }
  // Like gst_cuda_handle_set_context(): a context that is already set stays.
  void set_context(GstElement *, GstContext *context, int device_id) override {
    const int number = number_of(context);
    std::lock_guard<std::mutex> guard(lock_);
    if (number && !context_ && (device_id < 0 || contexts.device_of(number) == device_id)) context_ = number;
  }
  bool answer_context_query(GstElement *, GstQuery *query) override {
    const gchar *type = nullptr;
    gst_query_parse_context_type(query, &type);
    std::lock_guard<std::mutex> guard(lock_);
    if (g_strcmp0(type, kContextType) != 0 || !context_) return false;
    GstContext *context = new_gst_context(context_);
    gst_query_set_context(query, context);
    gst_context_unref(context);
    return true;
  }

 private:
  std::mutex lock_;
  int context_ = 0;  // 0: none
};

}  // namespace

std::unique_ptr<DeviceFinder> DeviceFinder::create() {
  return std::make_unique<StandinDeviceFinder>();
}

const char *const *cuda_memory_formats() {
  static constexpr const char *kFormats[] = {"NV12", "I420", "P010_10LE", "RGBA", "RGBx",
                                             "RGB",  "Y444", "YUY2",      nullptr};
  return kFormats;
}

void init_cuda(GstPlugin *) {}

}  // namespace cudaconv::gst

// ---- The tests' side ------------------------------------------------------------------------------------------------

namespace cudaconv::test {

namespace {

class StandinDeviceMemory : public DeviceMemory {
 public:
  explicit StandinDeviceMemory(int context) : context_(context) {}
  void share_with(GstElement *element) override {
    GstContext *context = new_gst_context(context_);
    gst_element_set_context(element, context);
    gst_context_unref(context);
  }
  void notify_of_release(int *) override {}
  bool holds(GstBuffer *buffer) override { return is_memory_of(buffer, context_); }
  void forget_pending(GstBuffer *buffer) override {
    reinterpret_cast<StandinMemory *>(gst_buffer_peek_memory(buffer, 0))->needs_sync = false;
  }
  void write_in_order(GstBuffer *buffer, const std::vector<guint8> &bytes) override {
    auto *memory = reinterpret_cast<StandinMemory *>(gst_buffer_peek_memory(buffer, 0));
    cudaMemcpyAsync(memory->device, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, memory->stream);
    memory->needs_sync = memory->device_is_newer = true;
  }
  GstBufferPool *new_pool(const GstVideoInfo &info) override {
    GstBufferPool *pool = new_pool_of(context_);
    GstStructure *config = gst_buffer_pool_get_config(pool);
    const Ref<GstCaps> caps = device_caps(info);
    gst_buffer_pool_config_set_params(config, caps.get(), static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), 0, 0);
    gst_buffer_pool_set_config(pool, config);
    gst_buffer_pool_set_active(pool, TRUE);
    return pool;
  }

 private:
  const int context_;
};

}  // namespace

std::unique_ptr<DeviceMemory> DeviceMemory::of(GstElement *element) {
  const Ref<GstQuery> query(gst_query_new_context(kContextType));
  const Ref<GstPad> pad(gst_element_get_static_pad(element, "src"));
  fail_unless(gst_pad_query(pad.get(), query.get()), "the element does not answer a query for its CUDA context");
  GstContext *context = nullptr;
  gst_query_parse_context(query.get(), &context);
  return std::make_unique<StandinDeviceMemory>(number_of(context));
}

bool DeviceMemory::exists(int device_id) {
  return device_id < cuda_device_count();
}

std::unique_ptr<DeviceMemory> DeviceMemory::create(int device_id) {
  fail_unless(exists(device_id), "there is no device %d", device_id);
  return std::make_unique<StandinDeviceMemory>(contexts.make(device_id));
}

}  // namespace cudaconv::test
