// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What differs in CUDA memory among the versions of GStreamer that the plugin builds with. Of analytics metas the build
// asks what there is, see gstcudaconvanalytics.h; the matrix that moves metas, since 1.28, is used by both files of
// metas.
#pragma once

#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>
#if GST_CHECK_VERSION(1, 24, 0)
#include <gst/cuda/gstcudastream.h>
#endif

namespace cudaconv::gst {

// The CUDA stream of an element and of its buffer pools. Since GStreamer 1.24 CUDA memory belongs to a stream, on which
// the work that writes it is ordered. Older versions have no such streams: CUDA memory is complete when its buffer is
// pushed.
#if GST_CHECK_VERSION(1, 24, 0)
class CudaStream {
 public:
  // The stream of `memory`, which has one, or a new one.
  CudaStream(GstCudaContext *context, GstMemory *memory)
      : stream_(memory ? gst_cuda_stream_ref(get(memory)) : gst_cuda_stream_new(context)) {}
  ~CudaStream() { gst_clear_cuda_stream(&stream_); }
  CudaStream(const CudaStream &) = delete;
  CudaStream &operator=(const CudaStream &) = delete;

  // The CUstream, or nullptr.
  void *handle() const { return stream_ ? gst_cuda_stream_get_handle(stream_) : nullptr; }
  void configure_pool(GstStructure *config) const {
    if (stream_) gst_buffer_pool_config_set_cuda_stream(config, stream_);
  }
  // The CUstream of `memory`. nullptr where it has none, or, with `if_pending`, where no write to it is pending.
  static void *of(GstMemory *memory, bool if_pending) {
    if (if_pending && !GST_MEMORY_FLAG_IS_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC)) return nullptr;
    return get(memory) ? gst_cuda_stream_get_handle(get(memory)) : nullptr;
  }
  // Whether the buffer may be released while the GPU still reads it in the order of its stream, since whoever writes it
  // next does so in that order. Wrapped memory may be written by others, and the CPU may write again what has not been
  // uploaded.
  static bool orders_release(GstBuffer *buffer) {
    return buffer->pool && GST_IS_CUDA_BUFFER_POOL(buffer->pool) &&
           !GST_MEMORY_FLAG_IS_SET(gst_buffer_peek_memory(buffer, 0), GST_CUDA_MEMORY_TRANSFER_NEED_UPLOAD);
  }
  // Tells GStreamer that all writes to `memory` are complete, so that no reader synchronises with its stream.
  static void mark_complete(GstMemory *memory) { GST_MEMORY_FLAG_UNSET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC); }

 private:
  static GstCudaStream *get(GstMemory *memory) { return gst_cuda_memory_get_stream(GST_CUDA_MEMORY_CAST(memory)); }

  GstCudaStream *stream_;
};
#else
struct CudaStream {
  CudaStream(GstCudaContext *, GstMemory *) {}
  void *handle() const { return nullptr; }
  void configure_pool(GstStructure *) const {}
  static void *of(GstMemory *, bool) { return nullptr; }
  static bool orders_release(GstBuffer *) { return false; }
  static void mark_complete(GstMemory *) {}
};
#endif

// Adds a warning to the plugin, which gst-inspect-1.0 shows and the registry keeps. Before 1.24 it is only logged.
inline void add_status_warning(GstPlugin *plugin, const char *text) {
#if GST_CHECK_VERSION(1, 24, 0)
  gst_plugin_add_status_warning(plugin, text);
#else
  GST_INFO_OBJECT(plugin, "%s", text);
#endif
}

// The formats for which gst_cuda_allocator_alloc() has a layout, then nullptr.
// clang-format off
constexpr const char *kCudaMemoryFormats[] = {
    "NV12", "I420", "YV12", "NV21", "Y42B", "Y444", "YUY2", "UYVY",
    "P010_10LE", "P016_LE", "I420_10LE", "I422_10LE", "I422_12LE", "Y444_16LE",
    "RGBA", "BGRA", "ARGB", "ABGR", "RGBx", "BGRx", "RGB", "BGR", "RGBP", "BGRP", "GBR", "GBRA",
    "BGR10A2_LE", "RGB10A2_LE",
#if GST_CHECK_VERSION(1, 24, 0)
    "P012_LE", "I420_12LE", "Y444_10LE", "Y444_12LE", "GBR_10LE", "GBR_12LE", "GBR_16LE",
#endif
#if GST_CHECK_VERSION(1, 26, 0)
    "VUYA",
#endif
#if GST_CHECK_VERSION(1, 28, 0)
    "ARGB64",
#endif
    nullptr,
};
// clang-format on

}  // namespace cudaconv::gst
