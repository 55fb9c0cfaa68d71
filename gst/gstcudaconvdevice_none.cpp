// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Implements gstcudaconvdevice.h for builds without CUDA: there is never a device.
#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

namespace {

class NoDeviceFinder : public DeviceFinder {
 public:
  std::shared_ptr<Device> open(GstElement *, int, std::string *why) override {
    cuda_device_count(why);
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<DeviceFinder> DeviceFinder::create() {
  return std::make_unique<NoDeviceFinder>();
}

const char *const *cuda_memory_formats() {
  static constexpr const char *kNone[] = {nullptr};
  return kNone;
}

void init_cuda(GstPlugin *) {}

}  // namespace cudaconv::gst
