// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CUDA backend: frames to the device and back, and in between the passes of the plan, which the launchers enqueue.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.h"
#include "cuda_resources.h"
#include "launchers.h"

namespace cudaconv {

namespace {

constexpr size_t kPitchAlignment = 256;  // bytes: whole memory transactions for every row of our own frames

size_t round_up(size_t v, size_t to) {
  return (v + to - 1) / to * to;
}

// A frame of ours in one allocation, each memory plane at an aligned pitch.
template <typename Buffer>
class OwnFrame {
 public:
  void prepare(const std::vector<MemoryPlane> &planes) {
    size_t offset[kMaxPlanes] = {}, bytes = 0;
    for (size_t i = 0; i < planes.size(); i++) {
      offset[i] = bytes;
      bytes += round_up(planes[i].row_bytes, kPitchAlignment) * planes[i].height;
    }
    buffer_.reserve(bytes);
    for (size_t i = 0; i < planes.size(); i++)
      view_.plane[i] = {buffer_.data() + offset[i],
                        static_cast<ptrdiff_t>(round_up(planes[i].row_bytes, kPitchAlignment))};
  }
  const FrameView &view() const { return view_; }

 private:
  Buffer buffer_;
  FrameView view_;
};

// The masks of a plan's passes in device memory, for method=global.
struct DeviceMasks {
  std::shared_ptr<const Plan> plan;
  DeviceBuffer buffer;  // MaskParams, one a pass
};

// A frame in flight and what it needs on the way.
struct Slot {
  OwnFrame<DeviceBuffer> source, target;    // device copies of frames in host memory
  OwnFrame<PinnedBuffer> upload, download;  // staging, so that copies run at full speed and do not block
  std::vector<OwnFrame<DeviceBuffer>> temporaries;
  std::shared_ptr<const DeviceMasks> masks;  // of method=global
  DeviceBuffer regions;                      // those of each part, one after the other
  FrameBuffers buffers;
  Event kernels_begin, kernels_end, done;
  Ticket ticket = 0;
  std::shared_ptr<const Plan> plan;
  FrameView destination;
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(cudaStream_t stream) : stream_(stream) {}

  ~CudaBackend() override { cudaStreamSynchronize(stream_.get()); }

  const char *name() const override { return "cuda"; }
  bool accepts_device_frames() const override { return true; }

  Method method_of(const Plan &plan) const override { return resolve_method(plan, plan.passes[0]); }

  Ticket submit(std::shared_ptr<const Plan> plan, const FrameView &src, const FrameView &dst,
                const Regions &regions) override {
    std::unique_ptr<Slot> slot = take_slot();
    slot->plan = std::move(plan);
    slot->destination = dst;
    try {
      enqueue(*slot, src, regions);
    } catch (...) {
      cudaStreamSynchronize(stream_.get());  // nothing may still read or write the frames
      throw;
    }
    slot->ticket = ++last_ticket_;
    in_flight_.push_back(std::move(slot));
    return last_ticket_;
  }

  void retire(Ticket ticket) override {
    while (!in_flight_.empty() && in_flight_.front()->ticket <= ticket) {
      std::unique_ptr<Slot> slot = std::move(in_flight_.front());
      in_flight_.pop_front();
      try {
        finish(*slot);
      } catch (...) {
        cudaStreamSynchronize(stream_.get());  // the slot's memory goes with it
        throw;
      }
      free_.push_back(std::move(slot));
    }
  }

  BackendStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

 private:
  std::unique_ptr<Slot> take_slot() {
    if (free_.empty()) return std::make_unique<Slot>();
    std::unique_ptr<Slot> slot = std::move(free_.back());
    free_.pop_back();
    return slot;
  }

  void enqueue(Slot &slot, const FrameView &src, const Regions &regions) {
    const Plan &plan = *slot.plan;
    FrameView source = src, target = slot.destination;
    if (!src.on_device) {
      slot.source.prepare(plan.memory);
      source = slot.source.view();
      upload(slot, src);
    }
    if (!target.on_device) {
      slot.target.prepare(plan.memory);
      target = slot.target.view();
    }
    slot.temporaries.resize(std::max<size_t>(slot.temporaries.size(), plan.temporaries));
    slot.buffers.temporary.resize(plan.temporaries);
    for (int i = 0; i < plan.temporaries; i++) {
      slot.temporaries[i].prepare(plan.memory);
      slot.buffers.temporary[i] = slot.temporaries[i].view();
    }
    if (regions.active) upload_regions(slot, regions);
    if (plan.method == Method::Global) {
      if (!masks_ || masks_->plan != slot.plan) masks_ = upload_masks(slot.plan);
      slot.masks = masks_;
    }

    // Nothing waits for work that is being captured into a graph, nor times it.
    cudaStreamCaptureStatus capture;
    check(cudaStreamIsCapturing(stream_.get(), &capture), "cudaStreamIsCapturing");
    const auto record = [&](const Event &event) {
      if (capture == cudaStreamCaptureStatusNone) check(cudaEventRecord(event.get(), stream_.get()), "cudaEventRecord");
    };
    record(slot.kernels_begin);
    slot.buffers.source = source;
    slot.buffers.target = target;
    slot.buffers.regions = &regions;
    const auto *masks = slot.masks ? reinterpret_cast<const MaskParams *>(slot.masks->buffer.data()) : nullptr;
    for (size_t i = 0; i < plan.passes.size();) {
      const PassRun run = {plan, i, slot.buffers, stream_.get(), masks};
      int launched = launch_sliding(run);
      if (!launched) launched = launch_method(run);
      i += launched;
    }
    record(slot.kernels_end);

    if (!slot.destination.on_device) download(slot);
    record(slot.done);
  }

  void upload(Slot &slot, const FrameView &src) {
    slot.upload.prepare(slot.plan->memory);
    size_t bytes = 0;
    for (size_t i = 0; i < slot.plan->memory.size(); i++) {
      const MemoryPlane &plane = slot.plan->memory[i];
      const PlaneView &from = src.plane[i], &staged = slot.upload.view().plane[i], &to = slot.source.view().plane[i];
      for (int y = 0; y < plane.height; y++)
        std::memcpy(staged.data + y * staged.pitch, from.data + y * from.pitch, plane.row_bytes);
      check(cudaMemcpy2DAsync(to.data, to.pitch, staged.data, staged.pitch, plane.row_bytes, plane.height,
                              cudaMemcpyHostToDevice, stream_.get()),
            "cudaMemcpy2DAsync to the device");
      bytes += plane.row_bytes * plane.height;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_uploaded += bytes;
  }

  std::shared_ptr<const DeviceMasks> upload_masks(const std::shared_ptr<const Plan> &plan) const {
    auto masks = std::make_shared<DeviceMasks>();
    masks->plan = plan;
    const std::vector<MaskParams> host = global_masks(*plan);
    masks->buffer.reserve(host.size() * sizeof(MaskParams));
    // From pageable memory: the runtime has read it when the call returns.
    check(cudaMemcpyAsync(masks->buffer.data(), host.data(), host.size() * sizeof(MaskParams), cudaMemcpyHostToDevice,
                          stream_.get()),
          "cudaMemcpyAsync of the masks");
    return masks;
  }

  void upload_regions(Slot &slot, const Regions &regions) {
    std::vector<PartRegion> all;
    slot.buffers.part_regions.clear();
    for (const Plan::Part &part : slot.plan->parts) {
      const std::vector<PartRegion> here = regions_of_part(regions, slot.plan->layout.plane[part.plane], part);
      slot.buffers.part_regions.push_back({static_cast<int>(all.size()), static_cast<int>(here.size())});
      all.insert(all.end(), here.begin(), here.end());
    }
    if (all.empty()) return;
    slot.regions.reserve(all.size() * sizeof(PartRegion));
    slot.buffers.region = reinterpret_cast<const PartRegion *>(slot.regions.data());
    // From pageable memory: the runtime has read it when the call returns.
    check(cudaMemcpyAsync(slot.regions.data(), all.data(), all.size() * sizeof(PartRegion), cudaMemcpyHostToDevice,
                          stream_.get()),
          "cudaMemcpyAsync of the regions");
  }

  void download(Slot &slot) {
    slot.download.prepare(slot.plan->memory);
    for (size_t i = 0; i < slot.plan->memory.size(); i++) {
      const MemoryPlane &plane = slot.plan->memory[i];
      const PlaneView &from = slot.target.view().plane[i], &staged = slot.download.view().plane[i];
      check(cudaMemcpy2DAsync(staged.data, staged.pitch, from.data, from.pitch, plane.row_bytes, plane.height,
                              cudaMemcpyDeviceToHost, stream_.get()),
            "cudaMemcpy2DAsync from the device");
    }
  }

  void finish(Slot &slot) {
    check(cudaEventSynchronize(slot.done.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, slot.kernels_begin.get(), slot.kernels_end.get()),
          "cudaEventElapsedTime");
    size_t bytes = 0;
    if (!slot.destination.on_device) {
      for (size_t i = 0; i < slot.plan->memory.size(); i++) {
        const MemoryPlane &plane = slot.plan->memory[i];
        const PlaneView &staged = slot.download.view().plane[i], &to = slot.destination.plane[i];
        for (int y = 0; y < plane.height; y++)
          for (const MemoryPlane::Run &run : plane.runs)
            std::memcpy(to.data + y * to.pitch + run.begin, staged.data + y * staged.pitch + run.begin, run.length);
        bytes += plane.row_bytes * plane.height;
      }
    }
    slot.plan.reset();
    slot.masks.reset();
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.frames++;
    stats_.device_ns += static_cast<uint64_t>(milliseconds * 1e6);
    stats_.bytes_downloaded += bytes;
  }

  Stream stream_;
  std::shared_ptr<const DeviceMasks> masks_;  // of the latest plan with method=global
  std::deque<std::unique_ptr<Slot>> in_flight_;
  std::vector<std::unique_ptr<Slot>> free_;
  Ticket last_ticket_ = 0;
  mutable std::mutex mutex_;
  BackendStats stats_;
};

}  // namespace

int cuda_device_count(std::string *why) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  if (why) *why = result == cudaSuccess ? "the driver lists no CUDA device" : cudaGetErrorString(result);
  cudaGetLastError();  // a missing driver is an answer, not an error to be found by the next call
  return 0;
}

std::unique_ptr<Backend> make_cuda_backend(void *stream) {
  cudaFuncAttributes attributes;
  const cudaError_t result = cudaFuncGetAttributes(&attributes, any_kernel());
  if (result != cudaSuccess) {
    cudaGetLastError();
    throw Error(Error::Kind::NoDevice, std::string("the CUDA device cannot run the kernels of this build: ") +
                                           cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")");
  }
  return std::make_unique<CudaBackend>(static_cast<cudaStream_t>(stream));
}

}  // namespace cudaconv
