// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Device and DeviceFinder by GstCudaContext and GstCudaMemory, for builds with CUDA.
#include "gstcudaconvdevice.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "gstcudacompat.h"
#include "gstcudaconvref.h"

namespace cudaconv::gst {

namespace {

struct ObjectUnref {
  void operator()(gpointer object) const { gst_object_unref(object); }
};
using ContextRef = std::unique_ptr<GstCudaContext, ObjectUnref>;

// A CUDA context and the element's stream on it, shared by a device and the backends that it has made.
struct Context {
  // With the stream of `memory`, or a new one.
  explicit Context(GstCudaContext *context, GstMemory *memory = nullptr)
      : gst(GST_CUDA_CONTEXT(gst_object_ref(context))), stream(context, memory) {}
  const ContextRef gst;
  const CudaStream stream;
};

// Makes the context current on this thread while the object lives. A lost context cannot be made current: then it
// throws Error if the context `must` be.
class CurrentContext {
 public:
  explicit CurrentContext(const Context &context, bool must = true)
      : pushed_(gst_cuda_context_push(context.gst.get())) {
    if (must && !pushed_) throw Error(Error::Kind::Device, "cuCtxPushCurrent failed");
  }
  ~CurrentContext() {
    if (pushed_) gst_cuda_context_pop(nullptr);
  }
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

 private:
  const bool pushed_;
};

// Wraps the CUDA backend and makes the context current for each call.
class BackendInContext : public Backend {
 public:
  BackendInContext(std::shared_ptr<const Context> context, ParallelFor parallel_for) : context_(std::move(context)) {
    CurrentContext current(*context_);
    backend_ = make_cuda_backend(context_->stream.handle(), std::move(parallel_for));
  }
  // The backend has host memory to free even where the context is lost and cannot be made current.
  ~BackendInContext() override {
    CurrentContext current(*context_, false);
    backend_.reset();
  }

  const char *name() const override { return backend_->name(); }
  Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                const std::atomic<bool> *cancelled) override {
    CurrentContext current(*context_);
    return backend_->submit(planned, src, dst, cancelled);
  }
  void retire(Ticket ticket) override {
    CurrentContext current(*context_);
    backend_->retire(ticket);
  }
  Method method_of(const Plan &plan) const override { return backend_->method_of(plan); }  // asks no device
  BackendStats stats() const override { return backend_->stats(); }

 private:
  const std::shared_ptr<const Context> context_;
  std::unique_ptr<Backend> backend_;
};

int device_of(GstCudaContext *context) {
  guint id;
  g_object_get(context, "cuda-device-id", &id, nullptr);
  return static_cast<int>(id);
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(GstCudaContext *context, GstMemory *memory = nullptr)
      : context_(std::make_shared<const Context>(context, memory)) {}

  std::shared_ptr<Backend> make_backend(ParallelFor parallel_for) override {
    return std::make_shared<BackendInContext>(context_, std::move(parallel_for));
  }
  void in_context(const std::function<void()> &f) override {
    CurrentContext current(*context_, false);
    f();
  }
  int id() const override { return device_of(context_->gst.get()); }

  bool owns(GstBuffer *buffer) const override {
    if (gst_buffer_n_memory(buffer) != 1) return false;
    GstMemory *memory = gst_buffer_peek_memory(buffer, 0);
    return gst_is_cuda_memory(memory) && GST_CUDA_MEMORY_CAST(memory)->context == context_->gst.get();
  }
  bool owns(GstBufferPool *pool) const override {
    return GST_IS_CUDA_BUFFER_POOL(pool) && GST_CUDA_BUFFER_POOL(pool)->context == context_->gst.get();
  }

  void *stream_of(GstBuffer *buffer, bool if_pending) const override {
    return CudaStream::of(gst_buffer_peek_memory(buffer, 0), if_pending);
  }
  bool orders(GstBuffer *buffer) const override { return has_stream_of(buffer) && CudaStream::orders_release(buffer); }
  bool has_stream_of(GstBuffer *buffer) const override {
    void *const stream = stream_of(buffer, false);
    return stream && stream == context_->stream.handle();
  }
  std::shared_ptr<Device> with_stream_of(GstBuffer *buffer) const override {
    return std::make_shared<CudaDevice>(context_->gst.get(), gst_buffer_peek_memory(buffer, 0));
  }
  void mark_complete(GstBuffer *buffer) const override { CudaStream::mark_complete(gst_buffer_peek_memory(buffer, 0)); }

  GstBufferPool *new_pool() override { return gst_cuda_buffer_pool_new(context_->gst.get()); }
  void configure_pool(GstStructure *config) override { context_->stream.configure_pool(config); }

 private:
  const std::shared_ptr<const Context> context_;
};

// The contexts that elements of this process have made, by device. A GPU takes turns between contexts, so elements
// share one. GStreamer's own elements make one each where neither neighbours nor the application have one.
std::mutex shared_lock;
// Lives as long as any element. A GWeakRef of zeros refers to nothing; nodes of a map do not move.
auto &shared_contexts = *new std::map<int, GWeakRef>;

// The shared context of the device; makes one where there is none or it has failed. Transfer full; nullptr where that
// fails.
GstCudaContext *shared_context(int device_id) {
  std::lock_guard<std::mutex> guard(shared_lock);
  GWeakRef &known = shared_contexts[device_id];
  auto *context = static_cast<GstCudaContext *>(g_weak_ref_get(&known));
  if (!context && (context = gst_cuda_context_new(device_id))) g_weak_ref_set(&known, context);
  return context;
}

// The next element makes a new context where this one has failed.
void forget_shared(GstCudaContext *failed) {
  std::lock_guard<std::mutex> guard(shared_lock);
  GWeakRef &known = shared_contexts[device_of(failed)];
  gpointer context = g_weak_ref_get(&known);
  if (context == failed) g_weak_ref_set(&known, nullptr);
  if (context) g_object_unref(context);
}

// Asks the neighbours, and then the application, for a context. Each that has one calls set_context() of the element.
void ask_for_context(GstElement *element) {
  const Ref<GstQuery> query(gst_query_new_context(GST_CUDA_CONTEXT_TYPE));
  for (GList *pads : {element->srcpads, element->sinkpads})
    for (; pads; pads = pads->next) {
      GstContext *context = nullptr;
      if (!gst_pad_peer_query(GST_PAD(pads->data), query.get())) continue;
      gst_query_parse_context(query.get(), &context);
      if (!context) continue;
      gst_element_set_context(element, context);
      return;
    }
  gst_element_post_message(element, gst_message_new_need_context(GST_OBJECT_CAST(element), GST_CUDA_CONTEXT_TYPE));
}

class CudaDeviceFinder : public DeviceFinder {
 public:
  ~CudaDeviceFinder() override { close(); }

  std::shared_ptr<Device> open(GstElement *element, int device_id, std::string *why) override {
    if (!gst_cuda_load_library()) {
      *why = "the CUDA driver, libcuda.so.1, was not found or is too old";
      return nullptr;
    }
    const int count = cuda_device_count(why);
    if (count == 0) return nullptr;
    if (device_id >= count) {
      *why = "there is no CUDA device " + std::to_string(device_id) + "; the last one is " + std::to_string(count - 1);
      return nullptr;
    }

    ContextRef found = known_context(device_id);
    if (!found) {
      // The search calls set_context() of this element, and of neighbours that are searching in other threads: holding
      // the lock meanwhile could deadlock.
      ask_for_context(element);
      found = known_context(device_id);
    }
    if (!found) {
      const int wanted = std::max(device_id, 0);
      found.reset(shared_context(wanted));
      if (!found) {
        *why = "no CUDA context could be created on device " + std::to_string(wanted);
        const std::string reason = why_no_context(wanted);
        if (!reason.empty()) *why += ": " + reason;
        return nullptr;
      }
      keep(found.get());
      GstContext *offer = gst_context_new_cuda_context(found.get());
      gst_element_post_message(element, gst_message_new_have_context(GST_OBJECT_CAST(element), offer));
    }
    return std::make_shared<CudaDevice>(found.get());
  }

  std::shared_ptr<Device> follow(GstBuffer *buffer, int device_id) override {
    GstCudaContext *context = GST_CUDA_MEMORY_CAST(gst_buffer_peek_memory(buffer, 0))->context;
    if (device_id >= 0 && device_of(context) != device_id) return nullptr;
    keep(context);
    return std::make_shared<CudaDevice>(context);
  }

  void close() override {
    std::lock_guard<std::mutex> guard(lock_);
    gst_clear_object(&context_);
  }

  void abandon() override {
    std::lock_guard<std::mutex> guard(lock_);
    if (context_) forget_shared(context_);
  }

  void set_context(GstElement *element, GstContext *context, int device_id) override {
    std::lock_guard<std::mutex> guard(lock_);
    gst_cuda_handle_set_context(element, context, device_id, &context_);
  }

  bool answer_context_query(GstElement *element, GstQuery *query) override {
    std::lock_guard<std::mutex> guard(lock_);
    return gst_cuda_handle_context_query(element, query, context_);
  }

 private:
  void keep(GstCudaContext *context) {
    std::lock_guard<std::mutex> guard(lock_);
    gst_object_replace(reinterpret_cast<GstObject **>(&context_), GST_OBJECT_CAST(context));
  }

  // The context that was set or found last. Forgets one of another device.
  ContextRef known_context(int device_id) {
    std::lock_guard<std::mutex> guard(lock_);
    if (context_ && device_id >= 0 && device_of(context_) != device_id) gst_clear_object(&context_);
    return ContextRef(context_ ? GST_CUDA_CONTEXT(gst_object_ref(context_)) : nullptr);
  }

  std::mutex lock_;
  GstCudaContext *context_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceFinder> DeviceFinder::create() {
  return std::make_unique<CudaDeviceFinder>();
}

const char *const *cuda_memory_formats() {
  return kCudaMemoryFormats;
}

void init_cuda(GstPlugin *plugin) {
  if (gst_cuda_load_library())
    gst_cuda_memory_init_once();
  else
    add_status_warning(plugin, "The CUDA driver, libcuda.so.1, was not found: frames are filtered on the CPU.");
}

}  // namespace cudaconv::gst
