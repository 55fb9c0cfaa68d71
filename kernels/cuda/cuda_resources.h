// SPDX-License-Identifier: LGPL-2.1-or-later
//
// RAII owners of CUDA resources, and the check that every call goes through.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "error.h"

namespace cudaconv {

// Remembers an error after which the process cannot use CUDA any more, for why_no_context(). Any thread may call it.
void remember_fatal(cudaError_t result);

inline std::string describe(cudaError_t result) {
  return std::string(cudaGetErrorString(result)) + " (" + cudaGetErrorName(result) + ")";
}

// Throws Error{Device} that names the call and the reason unless `result` is cudaSuccess.
inline void check(cudaError_t result, const char *call, const char *file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (result == cudaSuccess) return;
  remember_fatal(result);
  throw Error(Error::Kind::Device, std::string(call) + " failed: " + describe(result), file, line);
}

// Memory that grows and never shrinks. Its contents are lost when it grows.
template <cudaError_t (*kAllocate)(void **, size_t), cudaError_t (*kFree)(void *)>
class GrowingBuffer {
 public:
  explicit GrowingBuffer(const char *call) : call_(call) {}
  GrowingBuffer(GrowingBuffer &&other) noexcept
      : call_(other.call_), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  GrowingBuffer &operator=(GrowingBuffer &&) = delete;
  ~GrowingBuffer() {
    if (data_) kFree(data_);
  }

  uint8_t *data() const { return static_cast<uint8_t *>(data_); }

  size_t size() const { return size_; }
  void reserve(size_t bytes, const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (bytes <= size_) return;
    if (data_) kFree(std::exchange(data_, nullptr));
    size_ = 0;
    check(kAllocate(&data_, bytes), call_, file, line);
    size_ = bytes;
  }

 private:
  const char *call_;
  void *data_ = nullptr;
  size_t size_ = 0;
};

inline cudaError_t allocate_device(void **data, size_t bytes) {
  return cudaMalloc(data, bytes);
}
inline cudaError_t allocate_pinned(void **data, size_t bytes) {
  return cudaHostAlloc(data, bytes, cudaHostAllocPortable);
}

struct DeviceBuffer : GrowingBuffer<allocate_device, cudaFree> {
  DeviceBuffer() : GrowingBuffer("cudaMalloc") {}
};

struct PinnedBuffer : GrowingBuffer<allocate_pinned, cudaFreeHost> {
  PinnedBuffer() : GrowingBuffer("cudaHostAlloc") {}
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags");
  }
  Event(Event &&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

  void record(cudaStream_t stream, const char *file = __builtin_FILE(), int line = __builtin_LINE()) const {
    check(cudaEventRecord(event_, stream), "cudaEventRecord", file, line);
  }
  // Whether what was recorded last has ended.
  bool has_ended(const char *file = __builtin_FILE(), int line = __builtin_LINE()) const {
    const cudaError_t result = cudaEventQuery(event_);
    if (result != cudaErrorNotReady)
      check(result, "cudaEventQuery", file, line);
    else
      cudaGetLastError();  // so that the next call does not find this answer as an error
    return result == cudaSuccess;
  }
  // Makes work enqueued on `stream` from here on wait for what was recorded last.
  void make_wait(cudaStream_t stream, const char *file = __builtin_FILE(), int line = __builtin_LINE()) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent", file, line);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// A stream that is created and owned here, or one borrowed from its owner.
class Stream {
 public:
  explicit Stream(cudaStream_t borrowed = nullptr) : stream_(borrowed), owned_(borrowed == nullptr) {
    if (owned_) check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  Stream(Stream &&) = delete;
  ~Stream() {
    if (owned_) cudaStreamDestroy(stream_);
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
  bool owned_;
};

}  // namespace cudaconv
