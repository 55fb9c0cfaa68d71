// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Runtime services that need no backend: which devices there are, and pinned host memory.
#include <cuda_runtime.h>

#include <atomic>
#include <future>
#include <string>
#include <system_error>

#include "backend.h"
#include "cuda/cuda_resources.h"

namespace cudaconv {

namespace {

std::atomic<cudaError_t> fatal_error = cudaSuccess;

}  // namespace

void remember_fatal(cudaError_t result) {
  switch (result) {
    // Errors after which, by CUDA's documentation, the process must be ended to use CUDA again.
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      fatal_error = result;
      break;
    default:
      break;
  }
}

int cuda_device_count(std::string *why) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  if (why) *why = result == cudaSuccess ? "the driver lists no CUDA device" : cudaGetErrorString(result);
  cudaGetLastError();  // so that the next call does not find this answer as an error
  return 0;
}

std::string why_no_context(int device) {
  // In a thread, which may change its device: the calling thread may have a context of the application, which
  // cudaSetDevice() replaces by the device's own.
  const auto make_context = [device] {
    cudaError_t result = cudaSetDevice(device);
    if (result == cudaSuccess) result = cudaFree(nullptr);  // only creates the context
    return result;
  };
  cudaError_t result;
  try {
    result = std::async(std::launch::async, make_context).get();
  } catch (const std::system_error &) {
    return {};  // the system refuses a thread
  }
  std::string why = result == cudaSuccess ? "" : describe(result);
  if (!why.empty() && fatal_error != cudaSuccess)
    why += "; earlier in this process: " + describe(fatal_error) + ", after which CUDA needs a new process";
  return why;
}

void *new_pinned_memory(size_t bytes) {
  void *data = nullptr;
  if (allocate_pinned(&data, bytes) == cudaSuccess) return data;
  cudaGetLastError();  // the caller can use other memory
  return nullptr;
}

void delete_pinned_memory(void *data) {
  cudaFreeHost(data);
}

bool pin_memory(void *data, size_t bytes) {
  if (cudaHostRegister(data, bytes, cudaHostRegisterPortable) == cudaSuccess) return true;
  cudaGetLastError();  // the caller can use unpinned memory
  return false;
}

void unpin_memory(void *data) {
  cudaHostUnregister(data);
}

}  // namespace cudaconv
