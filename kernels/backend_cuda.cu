// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CUDA backend: frames to the device and back, and for each pass of the plan one launch over all planes.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.h"
#include "cuda_resources.h"
#include "methods.cuh"
#include "packed.h"
#include "sliding.cuh"

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

// How a method carries out a pass.
struct Launch {
  void (*kernel)(LaunchParams, const MaskParams *) = nullptr;
  int tile_width = 0, tile_height = 0;  // pixels
  size_t shared_bytes = 0;
  bool factored = false;  // MaskParams holds row and column
};

// `Operation` works on a window of samples, by whatever method but separable and cascade.
template <typename Operation>
Launch window_launch(Method method, const Pass &pass) {
  const bool small = pass.width() == 3 && pass.height() == 3;
  switch (method) {
    case Method::Global:
      return {global_kernel<Operation>, kBlockWidth, kBlockHeight};
    case Method::Constant:
      return {constant_kernel<Operation>, kBlockWidth, kBlockHeight};
    case Method::TiledCached:
      return {tiled_kernel<Operation, false>, kTileWidth, kTileHeight, tile_bytes(0, 0)};
    case Method::Blocked:
      if (small) return {blocked_kernel<Operation, 4, 3>, 4 * kBlockWidth, 4 * kBlockHeight};
      return {blocked_kernel<Operation, 2, 0>, 2 * kBlockWidth, 2 * kBlockHeight};
    default:
      return {tiled_kernel<Operation, true>, kTileWidth, kTileHeight, tile_bytes(pass.radius_x, pass.radius_y)};
  }
}

// `Operation` works on rows, then on columns.
template <typename Operation>
Launch separable_launch(const Pass &pass) {
  return {separable_kernel<Operation>, kBlockWidth, kSeparableHeight,
          separable_bytes<typename Operation::RowValue>(pass.radius_x, pass.radius_y), true};
}

Launch choose_launch(Method method, const Pass &pass) {
  const bool separable = method == Method::Separable;
  switch (pass.op) {
    case Op::Linear: {
      if (separable)
        return pass.wide ? separable_launch<Factored<int64_t>>(pass) : separable_launch<Factored<int32_t>>(pass);
      if (!pass.mask[0].value.empty())
        return pass.wide ? window_launch<Linear<int64_t>>(method, pass) : window_launch<Linear<int32_t>>(method, pass);
      Launch launch =
          pass.wide ? window_launch<Factored<int64_t>>(method, pass) : window_launch<Factored<int32_t>>(method, pass);
      launch.factored = true;
      return launch;
    }
    case Op::Magnitude:
      return separable ? separable_launch<FactoredGradient2D>(pass) : window_launch<Gradient2D>(method, pass);
    case Op::Compass:
      return window_launch<Compass3x3>(method, pass);
    case Op::Minimum:
      if (method == Method::Cascade) return {cascade_kernel<false>, kTileWidth, kTileHeight, cascade_bytes()};
      return separable ? separable_launch<Extremum<false>>(pass) : window_launch<Extremum<false>>(method, pass);
    case Op::Maximum:
      if (method == Method::Cascade) return {cascade_kernel<true>, kTileWidth, kTileHeight, cascade_bytes()};
      return separable ? separable_launch<Extremum<true>>(pass) : window_launch<Extremum<true>>(method, pass);
    case Op::Median:
      return window_launch<Median>(method, pass);
    case Op::Difference:
      break;
  }
  return {difference_kernel, kBlockWidth, kBlockHeight};
}

void fill_mask(const Pass &pass, bool factored, MaskParams &m) {
  m = {};
  m.width = pass.width();
  m.height = pass.height();
  m.radius_x = pass.radius_x;
  m.radius_y = pass.radius_y;
  int32_t *out = m.value;
  for (const IntegerMask &mask : pass.mask) {
    if (factored && mask.separable()) {
      m.row_shift = mask.row_shift;
      out = std::copy(mask.row.begin(), mask.row.end(), out);
      out = std::copy(mask.column.begin(), mask.column.end(), out);
    } else {
      out = std::copy(mask.value.begin(), mask.value.end(), out);
    }
  }
  if (!pass.element.empty()) {
    m.has_element = 1;
    m.element_words = (pass.width() + 31) / 32;
    for (int j = 0; j < pass.height(); j++)
      for (int i = 0; i < pass.width(); i++)
        if (pass.element[static_cast<size_t>(j) * pass.width() + i])
          m.value[j * m.element_words + i / 32] |= static_cast<int32_t>(1u << i % 32);
  }
}

struct SlidingLaunch {
  void (*kernel)(SlidingParams);
  size_t shared_bytes;
};

// Blocks that a multiprocessor is to hold bound the registers of a thread: 65536 / (blocks * 128). More of them hide
// more latency as long as nothing spills.
template <typename Operation, int kMinBlocks>
SlidingLaunch sliding_launch() {
  return {sliding_kernel<Operation, kMinBlocks>, sliding_bytes(Operation::kRadius)};
}

SlidingLaunch choose_sliding(Sliding sliding, Finish finish) {
  switch (sliding) {
    case Sliding::Separable3:
      switch (finish) {
        case Finish::Shift:
          return sliding_launch<SlidingSeparable<3, Finish::Shift>, 8>();
        case Finish::Divide:
          return sliding_launch<SlidingSeparable<3, Finish::Divide>, 8>();
        case Finish::AbsoluteShift:
          return sliding_launch<SlidingSeparable<3, Finish::AbsoluteShift>, 8>();
        default:
          return sliding_launch<SlidingSeparable<3, Finish::Any>, 8>();
      }
    case Sliding::Separable5:
      switch (finish) {
        case Finish::Shift:
          return sliding_launch<SlidingSeparable<5, Finish::Shift>, 7>();
        case Finish::Divide:
          return sliding_launch<SlidingSeparable<5, Finish::Divide>, 7>();
        default:
          return sliding_launch<SlidingSeparable<5, Finish::Any>, 6>();
      }
    case Sliding::Separable7:
      return sliding_launch<SlidingSeparable<7, Finish::Any>, 5>();
    case Sliding::Dense3:
      switch (finish) {
        case Finish::ClampShift:
          return sliding_launch<SlidingDense<3, Finish::ClampShift>, 8>();
        case Finish::AbsoluteShift:
          return sliding_launch<SlidingDense<3, Finish::AbsoluteShift>, 8>();
        default:
          return sliding_launch<SlidingDense<3, Finish::Any>, 8>();
      }
    case Sliding::Diamond5:
      return sliding_launch<SlidingDense<5, Finish::Any>, 6>();
    case Sliding::Gradient3:
      return sliding_launch<SlidingGradient, 7>();
    case Sliding::Extremum3:
      return sliding_launch<SlidingExtremum<3>, 8>();
    case Sliding::Extremum5:
      return sliding_launch<SlidingExtremum<5>, 7>();
    case Sliding::Extremum7:
      return sliding_launch<SlidingExtremum<7>, 5>();
    case Sliding::Kirsch3:
      return sliding_launch<SlidingWindow3<KirschFunction>, 5>();
    case Sliding::Roberts3:
      return sliding_launch<SlidingWindow3<RobertsFunction>, 8>();
    case Sliding::Median3:
      return sliding_launch<SlidingWindow3<Median3Function>, 6>();
    case Sliding::None:
      break;
  }
  return {};
}

// What kernels of dense 8-bit planes need to know of a part: `part` is filled in but for this.
void fill_words(PartParams &part) {
  const auto multiple = [](const void *address, int64_t pitch) {
    return (reinterpret_cast<uintptr_t>(address) | static_cast<uintptr_t>(pitch)) % kLaneBytes == 0;
  };
  part.aligned = multiple(part.source, part.source_pitch) && multiple(part.target, part.target_pitch);
  for (int b = 0; b < 12; b++) {
    const ChannelParams &channel = part.channel[b % part.channels];
    const int shift = b % 4 * 8;
    part.filters |= channel.action == Action::Filter;
    part.merges |= channel.action != Action::Filter;
    if (channel.action == Action::Filter) part.filter_bits[b / 4] |= 0xffu << shift;
    if (channel.action == Action::Copy) part.copy_bits[b / 4] |= 0xffu << shift;
    if (channel.action == Action::Fill) part.fill_word[b / 4] |= uint32_t{channel.fill} << shift;
    part.border_word[b / 4] |= uint32_t{channel.border_value} << shift;
  }
}

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
  struct PartRegions {
    int first, count;
  };
  std::vector<PartRegions> part_regions;
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

  // From a measured table: a row and a column are the less work the larger the mask, and a tile the less traffic.
  static Method resolve(const Plan &plan, const Pass &pass) {
    if (plan.method != Method::Auto) return plan.method;
    return pass.separable() ? Method::Separable : Method::Tiled;
  }

  Method method_of(const Plan &plan) const override { return resolve(plan, plan.passes[0]); }

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
    for (int i = 0; i < plan.temporaries; i++) slot.temporaries[i].prepare(plan.memory);
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
    for (size_t i = 0; i < plan.passes.size(); i++) run_pass(slot, i, source, target, regions);
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
    std::vector<MaskParams> host(plan->passes.size());
    for (size_t i = 0; i < host.size(); i++)
      fill_mask(plan->passes[i], choose_launch(Method::Global, plan->passes[i]).factored, host[i]);
    masks->buffer.reserve(host.size() * sizeof(MaskParams));
    // From pageable memory: the runtime has read it when the call returns.
    check(cudaMemcpyAsync(masks->buffer.data(), host.data(), host.size() * sizeof(MaskParams), cudaMemcpyHostToDevice,
                          stream_.get()),
          "cudaMemcpyAsync of the masks");
    return masks;
  }

  void upload_regions(Slot &slot, const Regions &regions) {
    std::vector<PartRegion> all;
    slot.part_regions.clear();
    for (const Plan::Part &part : slot.plan->parts) {
      const std::vector<PartRegion> here = regions_of_part(regions, slot.plan->layout.plane[part.plane], part);
      slot.part_regions.push_back({static_cast<int>(all.size()), static_cast<int>(here.size())});
      all.insert(all.end(), here.begin(), here.end());
    }
    if (all.empty()) return;
    slot.regions.reserve(all.size() * sizeof(PartRegion));
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

  void run_pass(Slot &slot, size_t index, const FrameView &source, const FrameView &target, const Regions &regions) {
    const Plan &plan = *slot.plan;
    const Pass &pass = plan.passes[index];
    if (plan.method == Method::Auto && !regions.active) {
      SlidingParams p = {};
      const Sliding sliding = make_packed(plan, pass, p.packed);
      if (sliding != Sliding::None) {
        const int64_t blocks = fill_frame(p, slot, pass, source, target, regions, [](const PartParams &part) {
          return TileCount{(part.width * part.channels + kWarpBytes - 1) / kWarpBytes,
                           (part.height + kSlidingHeight - 1) / kSlidingHeight};
        });
        for (int i = 0; i < p.parts; i++) fill_words(p.part[i]);
        const SlidingLaunch launch_as = choose_sliding(sliding, p.packed.finish);
        check(launch("sliding", launch_as.kernel, dim3(static_cast<unsigned>(blocks)), dim3(kSlidingThreads),
                     launch_as.shared_bytes, stream_.get(), p),
              "cudaLaunchKernel");
        return;
      }
    }

    const Method method = resolve(plan, pass);
    const Launch launch_as = choose_launch(method, pass);
    LaunchParams p = {};
    fill_mask(pass, launch_as.factored, p.mask);
    const int64_t blocks = fill_frame(p, slot, pass, source, target, regions, [&](const PartParams &part) {
      return TileCount{(part.width + launch_as.tile_width - 1) / launch_as.tile_width,
                       (part.height + launch_as.tile_height - 1) / launch_as.tile_height};
    });
    const MaskParams *mask =
        method == Method::Global ? reinterpret_cast<const MaskParams *>(slot.masks->buffer.data()) + index : nullptr;
    check(launch(method_nick(method), launch_as.kernel, dim3(static_cast<unsigned>(blocks)),
                 dim3(kBlockWidth, kBlockHeight), launch_as.shared_bytes, stream_.get(), p, mask),
          "cudaLaunchKernel");
  }

  struct TileCount {
    int x, y;
  };

  // Everything but the mask. `tiles_of` gives a part's number of tiles; returns that of the frame: a launch has one
  // dimension of blocks, because the other two end at 65,535.
  template <typename TilesOf>
  int64_t fill_frame(FrameParams &p, const Slot &slot, const Pass &pass, const FrameView &source,
                     const FrameView &target, const Regions &regions, TilesOf tiles_of) const {
    const Plan &plan = *slot.plan;
    p.border = plan.border;
    p.keep_x = pass.keep_x;
    p.keep_y = pass.keep_y;
    p.sum_gain = pass.sum_gain;
    p.center_gain = pass.center_gain;
    p.sum_shift = pass.sum_shift;
    p.has_gain = pass.has_gain();
    p.norm = pass.norm;
    p.in_regions = regions.active && pass.in_regions;
    p.ellipse = regions.ellipse;
    p.invert = regions.invert;
    const auto buffer = [&](int which) -> const FrameView & {
      return which == Pass::kInput ? source : which == Pass::kOutput ? target : slot.temporaries[which - 1].view();
    };
    int64_t blocks = 0;
    int roundings = 0;
    for (const Plan::Part &part : plan.parts) {
      const PlaneLayout &layout = plan.layout.plane[part.plane];
      PartParams &out = p.part[p.parts++];
      const auto rows = [&](int which, int64_t *pitch) {
        const PlaneView &view = buffer(which).plane[layout.memory_plane];
        *pitch = view.pitch * part.row_step;
        return view.data + part.first_row * view.pitch;
      };
      out.source = rows(pass.source, &out.source_pitch);
      out.subtrahend = rows(pass.subtrahend, &out.subtrahend_pitch);
      out.copy = rows(pass.copy_source, &out.copy_pitch);
      out.input = rows(Pass::kInput, &out.input_pitch);
      out.target = rows(pass.target, &out.target_pitch);
      if (p.in_regions) {
        const Slot::PartRegions &here = slot.part_regions[p.parts - 1];
        out.region = reinterpret_cast<const PartRegion *>(slot.regions.data()) + here.first;
        out.regions = here.count;
      }
      out.width = layout.width;
      out.height = part.height;
      out.channels = layout.channels;
      out.step = layout.step;
      out.first = layout.first;
      out.container = layout.container;
      for (int c = 0; c < layout.channels; c++) {
        const ChannelLayout &channel = layout.channel[c];
        const Rounding &rounding = pass.rounding[part.plane][c];
        int r = 0;
        while (r < roundings && p.rounding[r].max != rounding.max) r++;
        if (r == roundings) p.rounding[roundings++] = rounding;
        out.channel[c] = {plan.action[part.plane][c], channel.offset,           channel.shift,         channel.depth,
                          static_cast<uint8_t>(r),    plan.fill[part.plane][c], layout.border_value[c]};
      }
      const TileCount tiles = tiles_of(out);
      out.first_block = static_cast<int32_t>(blocks);
      out.tiles_x = tiles.x;
      blocks += int64_t{tiles.x} * tiles.y;
    }
    return blocks;
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
  const cudaError_t result = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(difference_kernel));
  if (result != cudaSuccess) {
    cudaGetLastError();
    throw Error(Error::Kind::NoDevice, std::string("the CUDA device cannot run the kernels of this build: ") +
                                           cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")");
  }
  return std::make_unique<CudaBackend>(static_cast<cudaStream_t>(stream));
}

}  // namespace cudaconv
