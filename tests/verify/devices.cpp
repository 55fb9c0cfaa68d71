// SPDX-License-Identifier: LGPL-2.1-or-later
#include "devices.h"

#include <stdexcept>
#ifdef HAVE_DEVICE_FRAMES
#include <cuda_runtime.h>
#endif

namespace cudaconv::verify {

#ifdef HAVE_DEVICE_FRAMES

namespace {

void check(cudaError_t error, const char *call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

}  // namespace

// The plugin has its own CUDA runtime. It uses the thread's current context in the driver, which cudaSetDevice() sets.
std::string use_device(int device) {
  check(cudaSetDevice(device), "cudaSetDevice");
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

#else

std::string use_device(int) {
  throw std::runtime_error("built without CUDA");
}

#endif

}  // namespace cudaconv::verify
