// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CUDA backend: frames to the device and back, and in between the passes of the plan, which the launchers enqueue.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.h"
#include "cancellation.h"
#include "cuda/cuda_resources.h"
#include "cuda/launchers.h"
#include "cuda/unpack.h"

namespace cudaconv {

namespace {

// Bytes: whole memory transactions for every row of our own frames, and yet the pitch that many host frames have.
constexpr size_t kPitchAlignment = 128;
constexpr size_t kPieceBytes = 256 << 10;  // of a copy on the host that it pays to hand to another thread
// Launches that a frame may be ahead of the GPU: so many are to come to an end when a frame is given up, and they are
// enough to keep the GPU busy.
constexpr size_t kLaunchesAhead = 8;

size_t round_up(size_t v, size_t to) {
  return (v + to - 1) / to * to;
}

// A frame of ours in one allocation, each memory plane at an aligned pitch.
template <typename Buffer>
class OwnedFrame {
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
  OwnedFrame<DeviceBuffer> source, target;  // device copies of frames that kernels do not take as they lie
  OwnedFrame<DeviceBuffer> unpacked_source, unpacked_target;
  OwnedFrame<PinnedBuffer> upload, download;  // staging, so that copies of pageable memory do not block
  std::vector<OwnedFrame<DeviceBuffer>> temporaries;
  std::shared_ptr<const DeviceMasks> masks;  // of method=global
  DeviceBuffer regions;                      // those of each part, one after the other
  FrameBuffers buffers;
  Event kernels_begin, kernels_end;
  Event source_ready{cudaEventDisableTiming}, target_free{cudaEventDisableTiming}, downloaded{cudaEventDisableTiming};
  // The event after launch n, at n modulo their number, in plans of more passes than that; made as they are needed.
  std::array<std::unique_ptr<Event>, kLaunchesAhead> launched;
  Ticket ticket = 0;
  std::shared_ptr<const Plan> plan;
  FrameView destination;

  const Event &done() const { return destination.on_device ? kernels_end : downloaded; }
};

size_t bytes_of(const std::vector<MemoryPlane> &planes) {
  size_t bytes = 0;
  for (const MemoryPlane &plane : planes) bytes += plane.row_bytes * plane.height;
  return bytes;
}

// Whether both frames lie in one piece, byte for byte in the same way, with nothing between the bytes of their pixels.
bool same_block(const FrameView &a, const FrameView &b, const std::vector<MemoryPlane> &planes) {
  size_t bytes = 0;
  for (size_t i = 0; i < planes.size(); i++) {
    const MemoryPlane &plane = planes[i];
    for (const FrameView *frame : {&a, &b}) {
      const PlaneView &view = frame->plane[i];
      if (view.data != frame->plane[0].data + bytes || static_cast<size_t>(view.pitch) != plane.row_bytes) return false;
    }
    if (plane.runs.size() != 1 || plane.runs[0].length != plane.row_bytes) return false;
    bytes += plane.row_bytes * plane.height;
  }
  return true;
}

// Whether the kernels of method=auto take the frame as it lies: rows begin at multiples of 16 bytes.
bool is_aligned(const FrameView &frame, const std::vector<MemoryPlane> &planes) {
  for (size_t i = 0; i < planes.size(); i++) {
    const PlaneView &view = frame.plane[i];
    if ((reinterpret_cast<uintptr_t>(view.data) | static_cast<uintptr_t>(view.pitch)) % 16) return false;
  }
  return true;
}

// Three streams, so that the upload of a frame, the kernels of the one before, and the download of the one before that
// run at the same time. Events order them frame by frame.
//
// The thread that submits and the one that retires meet in the lists of slots, under mutex_, which nobody holds while
// waiting or copying. A slot in in_flight_ belongs to the thread that retires, any other to the one that submits.
class CudaBackend : public Backend {
 public:
  CudaBackend(cudaStream_t stream, ParallelFor parallel_for)
      : kernels_(find_kernels()), stream_(stream), parallel_for_(std::move(parallel_for)) {}

  ~CudaBackend() override { synchronize(); }

  const char *name() const override { return "cuda"; }
  bool accepts_device_frames() const override { return true; }

  Method method_of(const Plan &plan) const override { return resolve_method(plan, plan.passes[0]); }

  using Backend::submit;
  Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                const std::atomic<bool> *cancelled) override {
    const std::shared_ptr<const Plan> plan = planned.back().plan;
    const Regions &regions = planned.back().regions;
    const Cancellation cancellation(cancelled);
    cancellation.check();
    std::unique_ptr<Slot> slot = take_slot();
    slot->plan = plan;
    slot->destination = dst;
    try {
      enqueue(*slot, src, regions, cancellation);
    } catch (const Error &error) {
      synchronize();  // nothing may still read or write the frames
      if (error.kind() == Error::Kind::Cancelled) release(std::move(slot));
      throw;
    } catch (...) {
      synchronize();
      throw;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    slot->ticket = ++last_ticket_;
    in_flight_.push_back(std::move(slot));
    return last_ticket_;
  }

  void retire(Ticket ticket) override {
    while (Slot *slot = first_until(ticket)) {
      try {
        finish(*slot);
      } catch (...) {
        synchronize();  // the slot's memory goes with it
        take_first();
        throw;
      }
      release(take_first());
    }
  }

  bool is_done(Ticket ticket) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (in_flight_.empty() || ticket < in_flight_.front()->ticket) return true;
    const cudaError_t result = cudaEventQuery(in_flight_[ticket - in_flight_.front()->ticket]->done().get());
    if (result == cudaErrorNotReady) cudaGetLastError();  // an answer, not an error to be found by the next call
    return result != cudaErrorNotReady;
  }

  BackendStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

 private:
  void synchronize() const {
    for (const Stream *stream : {&upload_stream_, &stream_, &download_stream_}) cudaStreamSynchronize(stream->get());
  }

  std::unique_ptr<Slot> take_slot() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Slot> slot = std::move(free_.back());
        free_.pop_back();
        return slot;
      }
    }
    return std::make_unique<Slot>();
  }

  void release(std::unique_ptr<Slot> slot) {
    slot->plan.reset();
    slot->masks.reset();
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(slot));
  }

  // The frame that was submitted first, if it is to be retired with `ticket`, else nullptr.
  Slot *first_until(Ticket ticket) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return !in_flight_.empty() && in_flight_.front()->ticket <= ticket ? in_flight_.front().get() : nullptr;
  }

  std::unique_ptr<Slot> take_first() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Slot> slot = std::move(in_flight_.front());
    in_flight_.pop_front();
    return slot;
  }

  void enqueue(Slot &slot, const FrameView &src, const Regions &regions, const Cancellation &cancellation) {
    const Plan &plan = *slot.plan;
    const FrameView &dst = slot.destination;
    const auto in_place = [&](const FrameView &frame) {
      return frame.on_device && (plan.method != Method::Auto || is_aligned(frame, plan.memory));
    };
    slot.buffers.source = src;
    if (src.on_device) wait_for_others(src, slot.source_ready);
    if (!in_place(src)) {
      slot.source.prepare(plan.memory);
      slot.buffers.source = slot.source.view();
      if (src.on_device)
        copy(plan.memory, src, slot.source.view(), cudaMemcpyDeviceToDevice, stream_);
      else
        upload(slot, src, cancellation);
    }
    slot.buffers.target = dst;
    if (dst.on_device) wait_for_others(dst, slot.target_free);
    if (!in_place(dst)) {
      slot.target.prepare(plan.memory);
      slot.buffers.target = slot.target.view();
    }
    if (plan_ != slot.plan) {
      std::shared_ptr<const UnpackedPlan> unpacked = unpack_plan(plan);
      prepared_ = prepare(unpacked ? unpacked->plan : plan, kernels_);
      unpacked_ = std::move(unpacked);
      plan_ = slot.plan;
    }
    const UnpackedPlan *const unpacked = unpacked_.get();
    const Plan &filter = unpacked ? unpacked->plan : plan;
    const FrameView packed_source = slot.buffers.source, packed_target = slot.buffers.target;
    if (unpacked) {
      slot.unpacked_source.prepare(filter.memory);
      slot.unpacked_target.prepare(filter.memory);
      slot.buffers.source = slot.unpacked_source.view();
      slot.buffers.target = slot.unpacked_target.view();
    }
    slot.temporaries.resize(std::max<size_t>(slot.temporaries.size(), plan.temporaries));
    slot.buffers.temporary.resize(plan.temporaries);
    for (int i = 0; i < plan.temporaries; i++) {
      slot.temporaries[i].prepare(filter.memory);
      slot.buffers.temporary[i] = slot.temporaries[i].view();
    }
    if (regions.active) upload_regions(slot, filter, regions);
    if (plan.method == Method::Global) {
      if (!masks_ || masks_->plan != slot.plan) masks_ = upload_masks(slot.plan);
      slot.masks = masks_;
    }

    // Nothing waits for work that is being captured into a graph, nor times it.
    cudaStreamCaptureStatus capture;
    check(cudaStreamIsCapturing(stream_.get(), &capture), "cudaStreamIsCapturing");
    const bool record = capture == cudaStreamCaptureStatusNone;
    if (record) slot.kernels_begin.record(stream_.get());
    slot.buffers.regions = &regions;
    if (unpacked) launch_unpack(*unpacked, packed_source, slot.buffers.source, stream_.get());
    const auto *masks = slot.masks ? reinterpret_cast<const MaskParams *>(slot.masks->buffer.data()) : nullptr;
    note_kernels(prepared_.front().name());
    for (size_t i = 0; i < prepared_.size(); i++) {
      std::unique_ptr<Event> &launched_here = slot.launched[i % kLaunchesAhead];
      if (record) {
        if (i >= kLaunchesAhead) launched_here->synchronize();
        cancellation.check();
      }
      launch_prepared(prepared_[i], {{filter, 0, kernels_}, slot.buffers, stream_.get(), masks});
      if (!record || i + kLaunchesAhead >= prepared_.size()) continue;
      if (!launched_here) launched_here = std::make_unique<Event>(cudaEventDisableTiming);
      launched_here->record(stream_.get());
    }
    if (unpacked) launch_pack(*unpacked, slot.buffers.target, packed_target, stream_.get());
    if (dst.on_device && !in_place(dst)) copy(plan.memory, slot.target.view(), dst, cudaMemcpyDeviceToDevice, stream_);
    if (record) slot.kernels_end.record(stream_.get());

    if (!dst.on_device)
      download(slot);
    else if (is_of_others(dst))
      slot.kernels_end.make_wait(static_cast<cudaStream_t>(dst.stream));
  }

  void note_kernels(const char *kernels) {
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.kernels = kernels;
  }

  bool is_of_others(const FrameView &frame) const { return frame.stream && frame.stream != stream_.get(); }

  // Has the kernels wait for what others have enqueued for a frame in device memory.
  void wait_for_others(const FrameView &frame, const Event &event) const {
    if (!is_of_others(frame)) return;
    event.record(static_cast<cudaStream_t>(frame.stream));
    event.make_wait(stream_.get());
  }

  void upload(Slot &slot, const FrameView &src, const Cancellation &cancellation) {
    const std::vector<MemoryPlane> &planes = slot.plan->memory;
    const FrameView *from = &src;
    if (!src.pinned) {
      slot.upload.prepare(planes);
      from = &slot.upload.view();
      copy_on_host(planes, src, *from, &cancellation);
      cancellation.check();
    }
    copy(planes, *from, slot.source.view(), cudaMemcpyHostToDevice, upload_stream_);
    slot.source_ready.record(upload_stream_.get());
    slot.source_ready.make_wait(stream_.get());
    const size_t bytes = bytes_of(planes);
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_uploaded += bytes;
    if (!src.pinned) stats_.bytes_staged += bytes;
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

  void upload_regions(Slot &slot, const Plan &plan, const Regions &regions) {
    std::vector<PartRegion> all;
    slot.buffers.part_regions.clear();
    for (const Plan::Part &part : plan.parts) {
      const std::vector<PartRegion> here = regions_of_part(regions, plan, part);
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
    const std::vector<MemoryPlane> &planes = slot.plan->memory;
    const FrameView *to = &slot.destination;
    if (!to->pinned) {
      slot.download.prepare(planes);
      to = &slot.download.view();
    }
    slot.kernels_end.make_wait(download_stream_.get());
    copy(planes, slot.target.view(), *to, cudaMemcpyDeviceToHost, download_stream_);
    slot.downloaded.record(download_stream_.get());
  }

  void finish(Slot &slot) {
    slot.done().synchronize();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, slot.kernels_begin.get(), slot.kernels_end.get()),
          "cudaEventElapsedTime");
    const FrameView &dst = slot.destination;
    const bool staged = !dst.on_device && !dst.pinned;
    const size_t bytes = dst.on_device ? 0 : bytes_of(slot.plan->memory);
    if (staged) copy_on_host(slot.plan->memory, slot.download.view(), dst, nullptr);
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.frames++;
    stats_.device_ns += static_cast<uint64_t>(milliseconds * 1e6);
    stats_.bytes_downloaded += bytes;
    if (staged) stats_.bytes_staged += bytes;
  }

  // Enqueues the copy of the bytes of pixels, and no others, between pinned memory and the device, or within it.
  static void copy(const std::vector<MemoryPlane> &planes, const FrameView &from, const FrameView &to,
                   cudaMemcpyKind kind, const Stream &stream) {
    if (same_block(from, to, planes)) {
      check(cudaMemcpyAsync(to.plane[0].data, from.plane[0].data, bytes_of(planes), kind, stream.get()),
            "cudaMemcpyAsync");
      return;
    }
    for (size_t i = 0; i < planes.size(); i++)
      for (const MemoryPlane::Run &run : planes[i].runs)
        check(cudaMemcpy2DAsync(to.plane[i].data + run.begin, to.plane[i].pitch, from.plane[i].data + run.begin,
                                from.plane[i].pitch, run.length, planes[i].height, kind, stream.get()),
              "cudaMemcpy2DAsync");
  }

  // Copies the bytes of pixels, and no others, from and to host memory, by as many threads as there are. Stops where it
  // is to give up.
  void copy_on_host(const std::vector<MemoryPlane> &planes, const FrameView &from, const FrameView &to,
                    const Cancellation *cancellation) const {
    int first_piece[kMaxPlanes + 1] = {};
    for (size_t i = 0; i < planes.size(); i++) {
      const size_t pieces = (planes[i].row_bytes * planes[i].height + kPieceBytes - 1) / kPieceBytes;
      first_piece[i + 1] = first_piece[i] + std::min(static_cast<int>(pieces), planes[i].height);
    }
    const auto copy_piece = [&](int piece) {
      if (cancellation && cancellation->requested()) return;
      int i = 0;
      while (piece >= first_piece[i + 1]) i++;
      const MemoryPlane &plane = planes[i];
      const int64_t pieces = first_piece[i + 1] - first_piece[i], index = piece - first_piece[i];
      const int end = static_cast<int>((index + 1) * plane.height / pieces);
      for (int y = static_cast<int>(index * plane.height / pieces); y < end; y++)
        for (const MemoryPlane::Run &run : plane.runs)
          std::memcpy(to.plane[i].data + y * to.plane[i].pitch + run.begin,
                      from.plane[i].data + y * from.plane[i].pitch + run.begin, run.length);
    };
    const int pieces = first_piece[planes.size()];
    if (parallel_for_ && pieces > 1) return parallel_for_(pieces, copy_piece);
    for (int piece = 0; piece < pieces; piece++) copy_piece(piece);
  }

  const KernelSets kernels_;
  // Used by the thread that submits alone, but for the streams.
  Stream upload_stream_, stream_, download_stream_;
  const ParallelFor parallel_for_;
  std::shared_ptr<const DeviceMasks> masks_;  // of the latest plan with method=global
  std::shared_ptr<const Plan> plan_;          // the latest, and what it is for frames that are unpacked
  std::shared_ptr<const UnpackedPlan> unpacked_;
  std::vector<PreparedLaunch> prepared_;  // of these
  mutable std::mutex mutex_;              // of what follows
  std::deque<std::unique_ptr<Slot>> in_flight_;
  std::vector<std::unique_ptr<Slot>> free_;
  Ticket last_ticket_ = 0;
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

std::string why_no_context(int device) {
  int before = 0;
  cudaError_t result = cudaGetDevice(&before);
  if (result == cudaSuccess) result = cudaSetDevice(device);
  if (result == cudaSuccess) result = cudaFree(nullptr);  // does nothing but make the context
  const std::string why =
      result == cudaSuccess ? "" : std::string(cudaGetErrorString(result)) + " (" + cudaGetErrorName(result) + ")";
  cudaSetDevice(before);
  cudaGetLastError();  // an answer, not an error to be found by the next call
  return why;
}

void *new_pinned_memory(size_t bytes) {
  void *data = nullptr;
  if (allocate_pinned(&data, bytes) == cudaSuccess) return data;
  cudaGetLastError();  // there are other ways
  return nullptr;
}

void delete_pinned_memory(void *data) {
  free_pinned(data);
}

bool pin_memory(void *data, size_t bytes) {
  if (cudaHostRegister(data, bytes, cudaHostRegisterPortable) == cudaSuccess) return true;
  cudaGetLastError();  // there are other ways
  return false;
}

void unpin_memory(void *data) {
  cudaHostUnregister(data);
}

std::unique_ptr<Backend> make_cuda_backend(void *stream, ParallelFor parallel_for) {
  return std::make_unique<CudaBackend>(static_cast<cudaStream_t>(stream), std::move(parallel_for));
}

}  // namespace cudaconv
