// SPDX-License-Identifier: LGPL-2.1-or-later
#include "device_frames.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace cudaconv::test {

namespace {

void check(cudaError_t error, const char *call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
#define CHECK(call) check(call, #call)

}  // namespace

DeviceFrames::DeviceFrames() {
  int device;
  cudaMemPool_t pool;
  uint64_t everything = UINT64_MAX;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything));
  CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

DeviceFrames::~DeviceFrames() {
  cudaStreamDestroy(stream_);
}

void DeviceFrame::Free::operator()(uint8_t *p) const {
  cudaFreeAsync(p, stream);
}

DeviceFrame::DeviceFrame(const DeviceFrames &home, const GuardedFrame &host) : stream_(home.stream_) {
  view_.on_device = true;
  for (const GuardedFrame::Block &block : host.blocks()) {
    void *data;
    CHECK(cudaMallocAsync(&data, block.bytes.size(), stream_));
    blocks_.emplace_back(static_cast<uint8_t *>(data), Free{stream_});
    CHECK(cudaMemcpyAsync(data, block.bytes.data(), block.bytes.size(), cudaMemcpyHostToDevice, stream_));
    PlaneView &plane = view_.plane[blocks_.size() - 1];
    plane.data = blocks_.back().get() + block.offset;
    plane.pitch = block.pitch;
  }
  CHECK(cudaStreamSynchronize(stream_));
}

void DeviceFrame::download(GuardedFrame &host) const {
  for (size_t m = 0; m < blocks_.size(); m++) {
    auto &bytes = host.blocks()[m].bytes;
    CHECK(cudaMemcpyAsync(bytes.data(), blocks_[m].get(), bytes.size(), cudaMemcpyDeviceToHost, stream_));
  }
  CHECK(cudaStreamSynchronize(stream_));
}

double device_copy_ns(size_t bytes, int runs) {
  const size_t buffers = std::max<size_t>(2, (size_t{256} << 20) / bytes);
  void *data;
  CHECK(cudaMalloc(&data, 2 * buffers * bytes));
  const std::unique_ptr<void, cudaError_t (*)(void *)> memory(data, cudaFree);
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  std::vector<double> times;
  for (int i = 0; i < runs; i++) {
    uint8_t *to = static_cast<uint8_t *>(data) + i % buffers * 2 * bytes;
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
