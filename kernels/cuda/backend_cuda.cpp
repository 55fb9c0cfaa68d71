// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CUDA backend: copies frames to the device and back, and in between enqueues the passes of the plan through the
// launchers.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.h"
#include "cancellation.h"
#include "cuda/cuda_resources.h"
#include "cuda/frame_copy.h"
#include "cuda/method_launchers.h"
#include "cuda/mosaic/tiles.h"
#include "cuda/patient_wait.h"
#include "cuda/region_job.h"
#include "cuda/slot.h"

namespace cudaconv {

namespace {

// The first frames are timed, then one of sixteen. A frame that is not timed counts as the one timed last.
constexpr uint64_t kTimedAtFirst = 16, kTimedEach = 16;

// Three streams: the upload of a frame, the kernels of the frame before it, and the download of an earlier frame run at
// the same time. Events order the three for each frame.
//
// The thread that submits and the thread that retires share the lists of slots, guarded by mutex_, which is never held
// while waiting or copying. A slot in in_flight_ belongs to the thread that retires, any other to the one that submits.
class CudaBackend : public Backend {
 public:
  CudaBackend(cudaStream_t stream, ParallelFor parallel_for)
      : kernels_(find_kernels()),
        stream_(stream),
        launches_(stream_.get()),
        parallel_for_(std::move(parallel_for)),
        prepared_(kernels_) {}

  ~CudaBackend() override { synchronize(); }

  const char *name() const override { return "cuda"; }

  Method method_of(const Plan &plan) const override { return resolve_method(plan, plan.passes[0]); }

  using Backend::submit;
  Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                const std::atomic<bool> *cancelled) override {
    const Cancellation cancellation(cancelled);
    cancellation.check();
    const bool leaves = src.in_order && dst.in_order && src.stream == stream_.get() && dst.stream == stream_.get();
    std::unique_ptr<Slot> slot = take_slot();
    slot->plan = planned.back().plan;
    const FrameView source = copied_by_gpu(src);
    slot->destination = copied_by_gpu(dst);
    slot->leaves = leaves;
    slot->staged = !dst.on_device && (!slot->destination.pinned || src.plane[0].data == dst.plane[0].data);
    try {
      if (leaves) lead_.keep_short(stream_.get(), kernels_ns_);
      if (planned.back().regions.active)
        enqueue_regions(*slot, planned, source, cancellation);
      else
        enqueue_frame(*slot, source, planned.back().regions, cancellation);
      if (slot->leaves) {
        let_leave(std::move(slot));
        return kLeft;
      }
      std::lock_guard<std::mutex> lock(mutex_);
      slot->ticket = last_ticket_ + 1;
      in_flight_.push_back(std::move(slot));
      stats_.kernels = kernels_name_;
      return ++last_ticket_;
    } catch (const Error &error) {
      synchronize();           // so that nothing still reads or writes the frames
      slot->listed = nullptr;  // its lists may not have been enqueued
      std::lock_guard<std::mutex> lock(mutex_);
      if (error.kind() == Error::Kind::Cancelled) release(std::move(slot));
      throw;
    } catch (...) {
      synchronize();
      throw;
    }
  }

  void retire(Ticket ticket) override {
    std::lock_guard<std::mutex> turn(retire_mutex_);
    std::unique_lock<std::mutex> lock(mutex_);
    while (!in_flight_.empty() && in_flight_.front()->ticket <= ticket) {
      Slot &slot = *in_flight_.front();
      const size_t behind = in_flight_.size() - 1;  // frames submitted after this one
      lock.unlock();
      try {
        wait_.wait(slot.done(), std::chrono::nanoseconds(behind * kernels_ns_));
        finish(slot);
      } catch (...) {
        synchronize();  // before the slot's memory is freed
        lock.lock();
        const std::unique_ptr<Slot> failed = std::move(in_flight_.front());
        in_flight_.pop_front();
        lock.unlock();
        throw;
      }
      lock.lock();
      release_first();
    }
  }

  BackendStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

 private:
  void synchronize() const {
    for (const Stream *stream : {&upload_stream_, &download_stream_}) cudaStreamSynchronize(stream->get());
    launches_.synchronize();
  }

  // The frame as the GPU copies it: rows from bottom to top would be a copy each, so the CPU copies them.
  static FrameView copied_by_gpu(FrameView frame) {
    for (const PlaneView &plane : frame.plane) frame.pinned = frame.pinned && plane.pitch >= 0;
    return frame;
  }

  // Counts a frame whose work is enqueued. The next frame may use its slot: that work follows on the same stream.
  void let_leave(std::unique_ptr<Slot> slot) {
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.frames++;
    stats_.device_ns += kernels_ns_;
    stats_.kernels = kernels_name_;
    if (slot->timed)
      timing_ = std::move(slot);
    else
      release(std::move(slot));
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

  // Call with mutex_ held.
  void release(std::unique_ptr<Slot> slot) {
    slot->plan.reset();
    free_.push_back(std::move(slot));
  }

  // Counts the frame that was submitted first, which has ended, and releases its slot. Call with mutex_ held.
  void release_first() {
    std::unique_ptr<Slot> slot = std::move(in_flight_.front());
    in_flight_.pop_front();
    const FrameView &dst = slot->destination;
    const size_t bytes = dst.on_device ? 0 : bytes_of(slot->down);
    stats_.frames++;
    stats_.device_ns += kernels_ns_;
    stats_.bytes_downloaded += bytes;
    if (!dst.pinned) stats_.bytes_staged += bytes;
    release(std::move(slot));
  }

  // Makes scratch memory large enough for a plan. For several plans of a frame this is done before the first launch.
  void reserve_scratch(const PreparedPlan &prepared) {
    size_t bytes = 0;
    for (const PreparedLaunch &launch : prepared.launches) bytes = std::max(bytes, launch.prepared.scratch);
    if (bytes <= scratch_.size()) return;
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");  // frames in flight use the old memory
    scratch_.reserve(bytes);
  }

  void prepare_temporaries(Slot &slot, const PreparedPlan &prepared) {
    const Plan &filter = prepared.lowered;
    reserve_scratch(prepared);
    slot.buffers.scratch = scratch_.data();
    slot.temporaries.resize(std::max<size_t>(slot.temporaries.size(), filter.temporaries));
    slot.buffers.temporary.resize(filter.temporaries);
    for (int i = 0; i < filter.temporaries; i++) slot.buffers.temporary[i] = slot.temporaries[i].prepare(filter.memory);
  }

  // Whether kernels can use a frame in place.
  static bool works_on(const FrameView &frame, const Plan &plan) {
    return frame.on_device && (plan.method != Method::Auto || is_aligned(frame, plan.memory));
  }

  // Whether the stream is being captured into a graph. Captured work is neither waited for nor timed.
  bool is_captured() const {
    cudaStreamCaptureStatus capture;
    check(cudaStreamIsCapturing(stream_.get(), &capture), "cudaStreamIsCapturing");
    return capture != cudaStreamCaptureStatusNone;
  }

  // Calls launch(0) ... launch(count - 1). At most kLaunchesAhead of them are ahead of the GPU, since a frame that is
  // given up waits for these.
  template <typename Launch>
  void launch_all(Slot &slot, size_t count, bool captured, const Cancellation &cancellation, Launch launch) {
    if (count > kLaunchesAhead) launch_one_by_one();
    for (size_t i = 0; i < count; i++) {
      std::unique_ptr<Event> &launched_here = slot.launched[i % kLaunchesAhead];
      if (!captured) {
        if (i >= kLaunchesAhead) nap_until_ended(*launched_here);
        cancellation.check();
      }
      launch(i);
      if (captured || i + kLaunchesAhead >= count) continue;
      if (!launched_here) launched_here = std::make_unique<Event>(cudaEventDisableTiming);
      launched_here->record(stream_.get());
    }
  }

  // Decides how the launches of a frame are enqueued: together, unless they are timed or captured. Times some frames
  // only: the two events with times cost the host more than a launch. Returns is_captured().
  bool begin_frame(Slot &slot) {
    const bool captured = is_captured();
    if (captured) slot.leaves = false;
    slot.timed = !captured && (submitted_ < kTimedAtFirst || submitted_ % kTimedEach == 0) && !is_timing();
    submitted_++;
    launches_.begin(!captured && !slot.timed);
    return captured;
  }

  // Whether the frame that was timed last, and has left, still runs. Its time is read here, where another frame is to
  // be timed: to ask for each frame whether an event has ended would take the host longer than a launch.
  bool is_timing() {
    if (!timing_) return false;
    if (!timing_->timed_end->has_ended()) return true;
    read_time(*timing_);
    std::lock_guard<std::mutex> lock(mutex_);
    release(std::move(timing_));
    return false;
  }

  void launch_one_by_one() {
    launches_.enqueue();
    launches_.begin(false);
  }

  void begin_kernels(Slot &slot) const {
    if (!slot.timed) return;
    for (std::unique_ptr<Event> *event : {&slot.timed_begin, &slot.timed_end})
      if (!*event) *event = std::make_unique<Event>();
    slot.timed_begin->record(stream_.get());
  }

  void end_kernels(const Slot &slot, bool captured) {
    launches_.enqueue();
    if (slot.timed) slot.timed_end->record(stream_.get());
    if (!captured && !slot.leaves) slot.kernels_end.record(stream_.get());
  }

  // `regions` are not active; they only say which field of a frame this is.
  void enqueue_frame(Slot &slot, const FrameView &src, const Regions &regions, const Cancellation &cancellation) {
    const Plan &plan = *slot.plan;
    const FrameView &dst = slot.destination;
    const bool captured = begin_frame(slot);
    slot.buffers.source = src;
    if (src.on_device) wait_for_others(src, slot.source_ready);
    if (!works_on(src, plan)) {
      slot.buffers.source = slot.source.prepare(plan.memory);
      if (src.on_device)
        copy_frame(plan, src, slot.buffers.source);
      else
        upload(slot, src, whole_frame(plan.memory), cancellation);
    }
    slot.buffers.target = dst;
    if (dst.on_device) wait_for_others(dst, slot.target_free);
    if (!works_on(dst, plan)) slot.buffers.target = slot.target.prepare(plan.memory);
    const std::shared_ptr<const PreparedPlan> prepared = prepared_.get(slot.plan);
    const LoweredPlan &filter = prepared->lowered;
    const FrameView packed_source = slot.buffers.source, packed_target = slot.buffers.target;
    if (prepared->unpacks()) {
      slot.buffers.source = slot.unpacked_source.prepare(filter.memory);
      slot.buffers.target = slot.unpacked_target.prepare(filter.memory);
    }
    prepare_temporaries(slot, *prepared);
    std::vector<MosaicTiles> mosaic;
    std::vector<MosaicTiledBox> none;  // stays empty, since the frame is one box
    if (filter.passes[0].op == Op::Mosaic) mosaic = cut_mosaic(mosaic_parts(regions, filter), filter, &none);
    slot.buffers.mosaic = &mosaic;
    slot.buffers.mosaic_boxes = nullptr;

    begin_kernels(slot);
    if (prepared->unpacks()) launch_unpack(filter, packed_source, slot.buffers.source, launches_);
    kernels_name_ = prepared->launches.front().name();
    launch_all(slot, prepared->launches.size(), captured, cancellation, [&](size_t i) {
      launch_prepared(prepared->launches[i], {{filter, 0, kernels_}, slot.buffers, &launches_});
    });
    if (prepared->unpacks()) launch_pack(filter, slot.buffers.target, packed_target, launches_);
    if (dst.on_device && !works_on(dst, plan)) copy_frame(plan, slot.target.view(), dst);
    end_kernels(slot, captured);
    slot.down = whole_frame(plan.memory);
    hand_over(slot, slot.target.view());
  }

  // Filters a frame with regions in place, on the device: results go to a separate frame until all results of a plan's
  // stage are complete.
  void enqueue_regions(Slot &slot, const std::vector<PlannedRegions> &planned, const FrameView &src,
                       const Cancellation &cancellation) {
    const bool with_copies = !src.on_device && src.plane[0].data == slot.destination.plane[0].data;
    const std::shared_ptr<const RegionJob> job = job_for(planned, with_copies, cancellation);
    const bool captured = begin_frame(slot);
    const FrameView frame = place_frame(slot, src, *job, cancellation);
    if (job->groups.empty()) {
      begin_kernels(slot);
      return end_on_device(slot, frame, captured);
    }

    const PreparedPlan &first = *job->groups[0].prepared;
    const FrameView filtered = first.unpacks() ? slot.unpacked_source.prepare(first.lowered.memory) : frame;
    upload_lists(slot, job, captured);
    const Launches launches = launches_of(slot, *job, filtered);

    begin_kernels(slot);
    kernels_name_ = job->groups.back().prepared->launches.front().name();
    if (first.unpacks()) launch_unpack(first.lowered, frame, filtered, launches_);
    launch_all(slot, launches.size(), captured, cancellation, [&](size_t i) { launches[i](); });
    if (first.unpacks()) launch_pack(first.lowered, filtered, frame, launches_);
    end_on_device(slot, frame, captured);
  }

  // The work for the regions of a frame. As is common, one of the two frames before had the same regions.
  std::shared_ptr<const RegionJob> job_for(const std::vector<PlannedRegions> &planned, bool with_copies,
                                           const Cancellation &cancellation) {
    const auto fits = [&] { return regions_[0] && regions_[0]->is_for(planned, with_copies); };
    if (!fits()) std::swap(regions_[0], regions_[1]);
    if (!fits()) regions_[0] = make_region_job(planned, with_copies, prepared_, cancellation);
    return regions_[0];
  }

  // Hands over `frame`, whose regions have been filtered.
  void end_on_device(Slot &slot, const FrameView &frame, bool captured) {
    const FrameView &dst = slot.destination;
    if (dst.on_device && frame.plane[0].data != dst.plane[0].data) copy_frame(*slot.plan, frame, dst);
    end_kernels(slot, captured);
    hand_over(slot, frame);
  }

  // Brings the frame to where it is filtered and returns that place: the target, if it is in device memory that kernels
  // can use, else a frame of the slot. A frame in host memory that is filtered in place is copied only where needed.
  FrameView place_frame(Slot &slot, const FrameView &src, const RegionJob &job, const Cancellation &cancellation) {
    const Plan &plan = *slot.plan;
    const FrameView &dst = slot.destination;
    const bool same = src.plane[0].data == dst.plane[0].data;
    if (src.on_device) wait_for_others(src, slot.source_ready);
    if (dst.on_device && !same) wait_for_others(dst, slot.target_free);
    if (src.on_device && dst.on_device && works_on(dst, plan)) {
      if (!same) copy_frame(plan, src, dst);
      return dst;
    }
    slot.source.prepare(plan.memory);
    slot.down = whole_frame(plan.memory);
    if (src.on_device) {
      copy_frame(plan, src, slot.source.view());
    } else if (!same) {
      upload(slot, src, slot.down, cancellation);
    } else {
      upload(slot, src, job.copies.up, cancellation);
      slot.down = job.copies.down;
    }
    return slot.source.view();
  }

  using Launches = std::vector<std::function<void()>>;

  // The launches of all stages. Up to kMostBeside groups are filtered beside each other, then each is put in place over
  // the ones before it. More groups read a copy of the frame as it is before the stage.
  Launches launches_of(Slot &slot, const RegionJob &job, const FrameView &frame) {
    const Plan &first = job.groups[0].prepared->lowered;
    for (const Group &group : job.groups) reserve_scratch(*group.prepared);
    const size_t groups = job.groups.size();
    const bool copies = groups > kMostBeside;
    const FrameView before = copies ? slot.before.prepare(first.memory) : frame;
    std::vector<FrameView> results;
    for (size_t i = 0; i < std::min(groups, kMostBeside); i++) results.push_back(slot.results[i].prepare(first.memory));
    Launches launches;
    const auto place = [&](const Selection &pixels, const FrameView &from, const FrameView &to) {
      launches.emplace_back([=, &first, &pixels, lists = slot.lists.data()] {
        launches_.join_branches();
        launch_put_in_place(first, pixels, lists, from, to, launches_);
      });
    };
    for (size_t stage = 0; stage < stages_of(first).size(); stage++) {
      if (copies) place(job.needed, frame, before);
      for (size_t begin = 0; begin < groups; begin += kMostBeside) {
        const size_t end = std::min(begin + kMostBeside, groups);
        for (size_t i = begin; i < end; i++) {
          // Groups that share memory take turns on the stream itself, as does the last group.
          const size_t branch = shares_memory(job.groups[i]) ? 0 : end - 1 - i;
          add_stage(slot, job.groups[i], stage, branch, before, results[i - begin], launches);
        }
        for (size_t i = begin; i < end; i++) place(job.groups[i].selected, results[i - begin], frame);
      }
    }
    return launches;
  }

  // Whether the launches of a group need memory that others have, too.
  static bool shares_memory(const Group &group) {
    const std::vector<PreparedLaunch> &launches = group.prepared->launches;
    return group.prepared->lowered.temporaries > 0 ||
           std::any_of(launches.begin(), launches.end(),
                       [](const PreparedLaunch &launch) { return launch.prepared.scratch > 0; });
  }

  // Adds the launches of a group's stage, from one frame to another, on a branch.
  void add_stage(Slot &slot, const Group &group, size_t index, size_t branch, const FrameView &from,
                 const FrameView &to, Launches &launches) {
    const Plan &filter = group.prepared->lowered;
    const std::vector<Stage> stages = stages_of(filter);
    prepare_temporaries(slot, *group.prepared);
    FrameBuffers &buffers = slot.buffers;
    buffers.source = buffers.target = from;
    buffers.mosaic = &group.mosaic;
    buffers.mosaic_boxes = reinterpret_cast<const MosaicTiledBox *>(slot.lists.data() + group.mosaic_boxes);
    const auto set = [&](int buffer, const FrameView &view) {
      (buffer == Pass::kOutput ? buffers.target : buffers.temporary[buffer - 1]) = view;
    };
    // The results of earlier stages are read from the frame.
    for (size_t s = 0; s < index; s++) set(filter.passes[stages[s].end - 1].target, from);
    set(filter.passes[stages[index].end - 1].target, to);
    for (size_t i = 0; i < group.launches.size(); i++) {
      const PreparedLaunch &launch = group.launches[i];
      if (launch.first < stages[index].begin || launch.first >= stages[index].end) continue;
      const std::vector<PartArea> *const areas = group.computed[i].empty() ? nullptr : &group.computed[i];
      const auto *const tiles = reinterpret_cast<const uint32_t *>(slot.lists.data() + group.tiles[i]);
      launches.emplace_back([=, &filter, &launch] {
        launches_.begin_branch(branch);
        PassRun run = {{filter, 0, kernels_, areas}, buffers, &launches_};
        if (!launch.prepared.tiles.empty()) run.tile_list = tiles;
        launch_prepared(launch, run);
      });
    }
  }

  // Brings the lists of a job to the device, unless a frame that had the slot before left them there.
  void upload_lists(Slot &slot, const std::shared_ptr<const RegionJob> &job, bool captured) {
    const size_t bytes = job->lists.size();
    if (bytes == 0 || slot.listed == job) return;
    slot.listed = captured ? nullptr : job;
    HostLists &host = slot.host_lists[slot.next_lists];
    slot.next_lists = (slot.next_lists + 1) % slot.host_lists.size();
    if (host.fetched) nap_until_ended(*host.fetched);
    host.data.reserve(bytes);
    slot.lists.reserve(bytes);
    std::memcpy(host.data.data(), job->lists.data(), bytes);
    launch_copy_lists(host.data.data(), slot.lists.data(), bytes, launches_);
    if (!slot.leaves) return;
    launches_.enqueue();
    if (!host.fetched) host.fetched = std::make_unique<Event>(cudaEventDisableTiming);
    host.fetched->record(stream_.get());
  }

  // Brings a filtered frame to its destination unless it is there already.
  void hand_over(Slot &slot, const FrameView &frame) {
    const FrameView &dst = slot.destination;
    if (!dst.on_device)
      download(slot, frame);
    else if (is_of_others(dst))
      slot.kernels_end.make_wait(static_cast<cudaStream_t>(dst.stream));
  }

  void copy_frame(const Plan &plan, const FrameView &from, const FrameView &to) {
    if (plan.layout.dense() && is_aligned(from, plan.memory) && is_aligned(to, plan.memory))
      return launch_put_in_place(plan, select_all(plan), nullptr, from, to, launches_);
    launches_.enqueue();
    copy_rects(whole_frame(plan.memory), from, to, cudaMemcpyDeviceToDevice, stream_.get());
  }

  bool is_of_others(const FrameView &frame) const { return frame.stream && frame.stream != stream_.get(); }

  // Makes the kernels wait for what others have enqueued for a frame in device memory.
  void wait_for_others(const FrameView &frame, const Event &event) const {
    if (!is_of_others(frame)) return;
    event.record(static_cast<cudaStream_t>(frame.stream));
    event.make_wait(stream_.get());
  }

  // Uploads rectangles of a frame to slot.source.
  void upload(Slot &slot, const FrameView &src, const std::vector<CopyRect> &rects, const Cancellation &cancellation) {
    const FrameView *from = &src;
    if (!src.pinned) {
      from = &slot.upload.prepare(slot.plan->memory);
      copy_on_host(rects, src, *from, parallel_for_, &cancellation);
      cancellation.check();
    }
    copy_rects(rects, *from, slot.source.view(), cudaMemcpyHostToDevice, upload_stream_.get());
    slot.source_ready.record(upload_stream_.get());
    slot.source_ready.make_wait(stream_.get());
    const size_t bytes = bytes_of(rects);
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_uploaded += bytes;
    if (!src.pinned) stats_.bytes_staged += bytes;
  }

  // Downloads the rectangles of slot.down.
  void download(Slot &slot, const FrameView &frame) {
    const FrameView &to = slot.staged ? slot.download.prepare(slot.plan->memory) : slot.destination;
    slot.kernels_end.make_wait(download_stream_.get());
    copy_rects(slot.down, frame, to, cudaMemcpyDeviceToHost, download_stream_.get());
    slot.downloaded.record(download_stream_.get());
  }

  // Reads how long the kernels of a frame that was timed have taken.
  void read_time(const Slot &slot) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, slot.timed_begin->get(), slot.timed_end->get()), "cudaEventElapsedTime");
    kernels_ns_ = std::max<uint64_t>(static_cast<uint64_t>(milliseconds * 1e6), 1);
  }

  void finish(Slot &slot) {
    if (slot.timed) read_time(slot);
    if (slot.staged) copy_on_host(slot.down, slot.download.view(), slot.destination, parallel_for_, nullptr);
  }

  const KernelSets kernels_;
  // The members down to regions_, except the streams, are used only by the thread that submits.
  Stream upload_stream_, stream_, download_stream_;
  LaunchGraph launches_;  // of the frame at hand
  const ParallelFor parallel_for_;
  DeviceBuffer scratch_;  // for all frames, which the stream filters one after the other
  PreparedPlans prepared_;
  std::shared_ptr<const RegionJob> regions_[2];  // of the latest frame with regions, and of the other view
  uint64_t submitted_ = 0;                       // frames
  std::unique_ptr<Slot> timing_;                 // of a frame that has left and is timed
  Lead lead_;                                    // of frames that have left
  const char *kernels_name_ = nullptr;           // see BackendStats; of the latest frame
  std::mutex retire_mutex_;                      // held by the thread that retires, also while it waits
  PatientWait wait_;                             // for the thread that retires
  std::atomic<uint64_t> kernels_ns_{0};          // of the latest frame that was timed
  mutable std::mutex mutex_;                     // guards the members below
  std::deque<std::unique_ptr<Slot>> in_flight_;
  std::vector<std::unique_ptr<Slot>> free_;
  Ticket last_ticket_ = 0;
  BackendStats stats_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(void *stream, ParallelFor parallel_for) {
  return std::make_unique<CudaBackend>(static_cast<cudaStream_t>(stream), std::move(parallel_for));
}

}  // namespace cudaconv
