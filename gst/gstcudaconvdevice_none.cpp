// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Implements gstcudaconvdevice.h for builds without CUDA: there is never a device.
#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

std::unique_ptr<DeviceFinder> DeviceFinder::create() {
  return std::make_unique<DeviceFinder>();
}

const char *const *cuda_memory_formats() {
  static constexpr const char *kNone[] = {nullptr};
  return kNone;
}

void init_cuda(GstPlugin *) {}

}  // namespace cudaconv::gst
