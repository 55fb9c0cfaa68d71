// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvengine.h"

#include <algorithm>
#include <utility>

#include "gstcudaconvmessages.h"
#include "gstcudaconvproperties.h"
#include "gstcudaconvsegment.h"
#include "gstcudaconvworkers.h"

namespace cudaconv::gst {

std::shared_ptr<Engine> make_cuda_engine(std::shared_ptr<Device> device) {
  // Threads for copies of staging memory: a few fill the bus, and more would keep the threads of other elements
  // waiting.
  std::shared_ptr<Backend> backend = device->make_backend(make_parallel_for(std::min(worker_count(), 8)));
  return std::make_shared<Engine>(Engine{std::move(device), std::move(backend), {}});
}

bool EngineChoice::open() {
  const std::shared_ptr<const Configuration> wanted = properties_.published();
  memory_error_.clear();
  frames_in_flight_ = wanted->frames_in_flight;
  bool failed;
  {
    std::lock_guard<std::mutex> guard(lock_);
    failed = std::exchange(failed_, false);
    const bool chosen = wanted_ && !failed;
    const bool stays = chosen && wanted_->backend == wanted->backend && wanted_->device_id == wanted->device_id;
    wanted_ = stays ? wanted : nullptr;
    if (stays) return true;
  }
  // A context that the application may have set is kept, unless its device has failed.
  set(nullptr, nullptr);
  if (failed) finder_->close();
  std::shared_ptr<Engine> engine;
  std::string why;
  try {
    std::shared_ptr<Device> device =
        wanted->backend == BackendChoice::Cpu ? nullptr : finder_->open(element_, wanted->device_id, &why);
    if (device) engine = make_cuda_engine(std::move(device));
  } catch (const Error &e) {
    why = e.what();
  }
  if (!engine && wanted->backend == BackendChoice::Cuda) {
    finder_->close();
    GST_ELEMENT_ERROR(element_, RESOURCE, NOT_FOUND, ("backend=cuda found no usable CUDA device: %s", why.c_str()),
                      (nullptr));
    return false;
  }
  if (!engine && wanted->backend == BackendChoice::Auto)
    GST_ELEMENT_INFO(element_, RESOURCE, NOT_FOUND, ("Frames are filtered on the CPU: %s", why.c_str()),
                     ("Frames are filtered on the CPU: %s", why.c_str()));  // gst-launch-1.0 shows only this
  const std::shared_ptr<Device> device = engine ? engine->device : nullptr;
  GST_INFO_OBJECT(element_, "filters on %s",
                  device ? ("CUDA device " + std::to_string(device->id())).c_str() : "the CPU");
  set(device, std::move(engine));
  std::lock_guard<std::mutex> guard(lock_);
  wanted_ = wanted;
  return true;
}

void EngineChoice::close() {
  set(nullptr, nullptr);
  finder_->close();
  std::lock_guard<std::mutex> guard(lock_);
  wanted_ = nullptr;
}

// Arguments outlive local variables: what was set before is released without the lock.
void EngineChoice::set(std::shared_ptr<Device> device, std::shared_ptr<Engine> engine) {
  std::lock_guard<std::mutex> guard(lock_);
  device_.swap(device);
  engine_.swap(engine);
}

bool EngineChoice::find_memory_device() {
  if (device()) return true;
  std::string why = "it does not offer CUDA memory";
  std::shared_ptr<Device> device = finder_->open(element_, wanted_->device_id, &why);
  if (!device) {
    if (std::exchange(memory_error_, why) != why)
      GST_ELEMENT_ERROR(element_, RESOURCE, NOT_FOUND,
                        ("CUDA memory was negotiated, but no CUDA device is usable: %s", why.c_str()), (nullptr));
    return false;
  }
  memory_error_.clear();
  set(std::move(device), nullptr);
  return true;
}

std::shared_ptr<Device> EngineChoice::device_of(GstBuffer *buffer) {
  return finder_->follow(buffer, wanted_->device_id);
}

bool EngineChoice::fail() {
  finder_->abandon();
  std::lock_guard<std::mutex> guard(lock_);
  failed_ = true;
  const bool replaces = wanted_->backend == BackendChoice::Auto;
  if (replaces) engine_ = nullptr;
  return replaces;
}

std::shared_ptr<Engine> EngineChoice::cpu(const GstVideoInfo &info) const {
  // From about this many pixels on it pays off to use one more thread.
  constexpr int kPixelsPerThread = 1 << 15;
  const gint64 pixels = static_cast<gint64>(GST_VIDEO_INFO_WIDTH(&info)) * GST_VIDEO_INFO_HEIGHT(&info);
  guint threads;
  {
    std::lock_guard<std::mutex> guard(lock_);
    threads = wanted_->threads;
  }
  const int count = threads ? static_cast<int>(threads)
                            : static_cast<int>(std::clamp<gint64>(pixels / kPixelsPerThread, 1, worker_count()));
  return std::make_shared<Engine>(Engine{nullptr, make_cpu_backend(make_parallel_for(count), count), {}});
}

std::shared_ptr<Device> EngineChoice::device() const {
  std::lock_guard<std::mutex> guard(lock_);
  return device_;
}

std::shared_ptr<Engine> EngineChoice::engine() const {
  std::lock_guard<std::mutex> guard(lock_);
  return engine_;
}

// ---- Counts ---------------------------------------------------------------------------------------------------------

void FrameCounts::restart() {
  restart_position();
  device_ns_ = 0;
  std::lock_guard<std::mutex> guard(lock_);
  totals_ = BackendStats();
}

void FrameCounts::restart_position() {
  pushed_ = 0;
  position_ = GST_CLOCK_TIME_NONE;
}

void FrameCounts::note_push(GstBuffer *buffer) {
  if (GST_BUFFER_PTS_IS_VALID(buffer))
    position_ =
        add_times(GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : 0);
  pushed_++;
}

void FrameCounts::add(Engine &engine, size_t views) {
  std::lock_guard<std::mutex> guard(lock_);
  const BackendStats now = engine.backend->stats();
  if (g_strcmp0(now.kernels, totals_.kernels) != 0)
    GST_DEBUG_OBJECT(element_, "kernels of the first pass: %s", now.kernels ? now.kernels : "the method's");
  if (now.bytes_staged > engine.counted.bytes_staged)
    GST_CAT_LOG_OBJECT(gst_cuda_conv_performance, element_,
                       "%" G_GUINT64_FORMAT " bytes are copied by the CPU too, since their memory is pageable",
                       static_cast<guint64>(now.bytes_staged - engine.counted.bytes_staged));
  const guint64 filtered = now.frames - engine.counted.frames;
  if (filtered) device_ns_ = (now.device_ns - engine.counted.device_ns) / filtered * views;
  totals_.frames += filtered / views;
  for (const auto sum : {&BackendStats::device_ns, &BackendStats::bytes_uploaded, &BackendStats::bytes_downloaded,
                         &BackendStats::bytes_staged})
    totals_.*sum += now.*sum - engine.counted.*sum;
  totals_.kernels = now.kernels;
  engine.counted = now;
  engine.counted.frames -= filtered % views;  // counts with the other views
}

BackendStats FrameCounts::totals() const {
  std::lock_guard<std::mutex> guard(lock_);
  return totals_;
}

}  // namespace cudaconv::gst
