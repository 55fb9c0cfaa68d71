// SPDX-License-Identifier: LGPL-2.1-or-later
#include "device_frames.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace cudaconv::test {

namespace {

void check(cudaError_t error, const char *call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
#define CHECK(call) check(call, #call)

uint8_t *allocate(size_t bytes) {
  void *p = nullptr;
  CHECK(cudaMalloc(&p, bytes));
  return static_cast<uint8_t *>(p);
}

}  // namespace

void DeviceFrame::Free::operator()(uint8_t *p) const {
  cudaFree(p);
}

DeviceFrame::DeviceFrame(const GuardedFrame &host) {
  view_.on_device = true;
  for (const GuardedFrame::Block &block : host.blocks()) {
    const size_t m = blocks_.size();
    blocks_.emplace_back(allocate(block.bytes.size()));
    CHECK(cudaMemcpy(blocks_.back().get(), block.bytes.data(), block.bytes.size(), cudaMemcpyHostToDevice));
    view_.plane[m].data = blocks_.back().get() + block.offset;
    view_.plane[m].pitch = block.pitch;
  }
  // A copy from pageable memory may return while the last of it is still on the way, and the filter's streams need not
  // wait for the stream that it runs on.
  CHECK(cudaStreamSynchronize(nullptr));
}

void DeviceFrame::download(GuardedFrame &host) const {
  for (size_t m = 0; m < blocks_.size(); m++) {
    auto &bytes = host.blocks()[m].bytes;
    CHECK(cudaMemcpy(bytes.data(), blocks_[m].get(), bytes.size(), cudaMemcpyDeviceToHost));
  }
}

double device_copy_ns(size_t bytes, int runs) {
  const size_t buffers = std::max<size_t>(2, (size_t{256} << 20) / bytes);
  std::unique_ptr<uint8_t, void (*)(uint8_t *)> memory(allocate(2 * buffers * bytes), [](uint8_t *p) { cudaFree(p); });
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  std::vector<double> times;
  for (int i = 0; i < runs; i++) {
    uint8_t *to = memory.get() + i % buffers * 2 * bytes;
    CHECK(cudaEventRecord(start, nullptr));
    CHECK(cudaMemcpyAsync(to, to + bytes, bytes, cudaMemcpyDeviceToDevice, nullptr));
    CHECK(cudaEventRecord(stop, nullptr));
    CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    times.push_back(ms * 1e6);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace cudaconv::test
