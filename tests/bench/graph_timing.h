// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Functions for the benchmarks of the CUDA kernels: frames in device memory, and the time of launches in a graph.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"

namespace cudaconv::bench {

constexpr int kLaunches = 40, kReplays = 15;
constexpr size_t kTotalBytes = 800 << 20;  // bytes of all frames of a case, if 40 pairs are enough

inline void check(cudaError_t result, const char *call) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}

// Frame layouts by the names of GStreamer's formats.
inline FrameLayout layout_of(const std::string &format, int width, int height) {
  FrameLayout layout;
  const auto plane = [&](int w, int h, int channels, Container container, int depth, int shift, Role role) {
    PlaneLayout &p = layout.plane[layout.planes];
    p.width = w;
    p.height = h;
    p.channels = p.step = channels;
    p.memory_plane = layout.planes++;
    p.container = container;
    for (int c = 0; c < channels; c++)
      p.channel[c] = {role, static_cast<uint8_t>(c), static_cast<uint8_t>(depth), static_cast<uint8_t>(shift)};
  };
  const int cw = (width + 1) / 2, ch = (height + 1) / 2;
  if (format == "GRAY8") plane(width, height, 1, Container::U8, 8, 0, Role::Luma);
  if (format == "RGB") plane(width, height, 3, Container::U8, 8, 0, Role::Luma);
  if (format == "RGBA") {
    plane(width, height, 4, Container::U8, 8, 0, Role::Luma);
    layout.plane[0].channel[3].role = Role::Alpha;
  }
  if (format == "GRAY16_LE") plane(width, height, 1, Container::U16, 16, 0, Role::Luma);
  if (format == "RGBA64_LE") plane(width, height, 4, Container::U16, 16, 0, Role::Luma);
  if (format == "NV12") {
    plane(width, height, 1, Container::U8, 8, 0, Role::Luma);
    plane(cw, ch, 2, Container::U8, 8, 0, Role::Chroma);
  }
  if (format == "I420") {
    plane(width, height, 1, Container::U8, 8, 0, Role::Luma);
    plane(cw, ch, 1, Container::U8, 8, 0, Role::Chroma);
    plane(cw, ch, 1, Container::U8, 8, 0, Role::Chroma);
  }
  if (format == "P010_10LE") {
    plane(width, height, 1, Container::U16, 10, 6, Role::Luma);
    plane(cw, ch, 2, Container::U16, 10, 6, Role::Chroma);
  }
  if (format == "YUY2") {  // two views of one plane of memory
    plane(width, height, 1, Container::U8, 8, 0, Role::Luma);
    layout.plane[0].step = 2;
    plane(cw, height, 2, Container::U8, 8, 0, Role::Chroma);
    PlaneLayout &chroma = layout.plane[1];
    chroma.step = 4;
    chroma.channel[0].offset = 1;
    chroma.channel[1].offset = 3;
    chroma.memory_plane = 0;
  }
  if (format == "RGB10A2_LE") {
    plane(width, height, 4, Container::Packed32, 10, 0, Role::Luma);
    PlaneLayout &p = layout.plane[0];
    p.step = 1;
    for (int c = 0; c < 4; c++) p.channel[c].offset = static_cast<uint8_t>(10 * c);
    p.channel[3].depth = 2;
    p.channel[3].role = Role::Alpha;
  }
  return layout;
}

// Pairs of frames in device memory. Rows are padded to multiples of 16 bytes.
class Frames {
 public:
  Frames(const FrameLayout &layout) {
    for (int i = 0; i < layout.planes; i++) {
      const PlaneLayout &p = layout.plane[i];
      if (p.memory_plane != i) continue;  // another view of a plane of memory
      offset_[i] = bytes_;
      pitch_[i] = (static_cast<ptrdiff_t>(p.width) * p.step * p.bytes_per_container() + 15) / 16 * 16;
      bytes_ += static_cast<size_t>(pitch_[i]) * p.height;
    }
    planes_ = layout.planes;
    const int pairs = static_cast<int>(std::clamp<size_t>(kTotalBytes / (2 * bytes_), 5, kLaunches));
    std::vector<uint8_t> noise(bytes_);
    std::mt19937_64 random(1);
    for (size_t i = 0; i + 8 <= bytes_; i += 8) {
      const uint64_t v = random();
      std::memcpy(noise.data() + i, &v, 8);
    }
    for (int i = 0; i < 2 * pairs; i++) {
      void *data = nullptr;
      check(cudaMalloc(&data, bytes_), "cudaMalloc");
      memory_.push_back(static_cast<uint8_t *>(data));
      check(cudaMemcpy(data, noise.data(), bytes_, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }
  ~Frames() {
    for (uint8_t *p : memory_) cudaFree(p);
  }
  Frames(const Frames &) = delete;

  size_t bytes() const { return bytes_; }
  FrameView source(int i) const { return view(i % pairs() * 2); }
  FrameView target(int i) const { return view(i % pairs() * 2 + 1); }

 private:
  int pairs() const { return static_cast<int>(memory_.size() / 2); }
  FrameView view(int i) const {
    FrameView v;
    v.on_device = true;
    for (int p = 0; p < planes_; p++) v.plane[p] = {memory_[i] + offset_[p], pitch_[p]};
    return v;
  }

  std::vector<uint8_t *> memory_;
  size_t offset_[kMaxPlanes] = {}, bytes_ = 0;
  ptrdiff_t pitch_[kMaxPlanes] = {};
  int planes_ = 0;
};

// The time in microseconds of a launch by enqueue(i).
inline double time_graph(cudaStream_t stream, const std::function<void(int)> &enqueue) {
  enqueue(0);  // prepares what the first launch needs
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const auto start = std::chrono::steady_clock::now();
  enqueue(0);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  // Slow launches need no averaging.
  const bool slow = std::chrono::steady_clock::now() - start > std::chrono::milliseconds(1);
  const int launches = slow ? 4 : kLaunches, replays = slow ? 3 : kReplays;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  for (int i = 0; i < launches; i++) enqueue(i);
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  for (int i = 0; i < 2; i++) check(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
  std::vector<float> times;
  for (int i = 0; i < replays; i++) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    check(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    times.push_back(ms * 1000 / launches);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace cudaconv::bench
