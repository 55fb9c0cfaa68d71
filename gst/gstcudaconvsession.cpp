// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvsession.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gstcudaconvformat.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvsegment.h"

namespace cudaconv::gst {

namespace {

// Default number of frames in flight: one in upload, one in the kernels, one in download, and one that the CPU works
// on.
constexpr guint kFramesThatPay = 4;

// Nanoseconds of device time a frame. With slower filters, two frames in flight keep the GPU busy, and more would only
// prolong the wait when the element stops. With faster ones, and no copies to wait for, frames come faster than threads
// can be woken: then the most are in flight that the property allows.
constexpr guint64 kSlowFilter = 20 * GST_MSECOND, kFastFilter = 50 * GST_USECOND;

}  // namespace

// ---- Device and backend ---------------------------------------------------------------------------------------------

bool Session::start() {
  {
    std::lock_guard<std::mutex> guard(lock_);
    started_ = true;
    failovers_ = 0;
    counts_ = {};
  }
  caps_error_.clear();
  memory_error_.clear();
  messages_.restart();
  type_watch_.reset();
  last_time_.reset();
  has_stream_ = false;
  other_streams_ = 0;
  return open();
}

void Session::stop() {
  std::shared_ptr<const StreamContext> context;  // is destroyed after the lock is released
  std::lock_guard<std::mutex> guard(lock_);
  started_ = false;
  context.swap(context_);
  contexts_++;
}

void Session::release(bool with_context) {
  {
    std::shared_ptr<Device> device;  // destroyed after the lock is released
    std::shared_ptr<Engine> engine;
    std::lock_guard<std::mutex> guard(lock_);
    chosen_ = false;
    engine.swap(cuda_engine_);
    device.swap(device_);
  }
  if (with_context) finder_->close();
}

void Session::use(std::shared_ptr<Device> device, std::shared_ptr<Engine> engine) {
  std::lock_guard<std::mutex> guard(lock_);
  device_ = std::move(device);
  cuda_engine_ = std::move(engine);
}

bool Session::open() {
  const std::shared_ptr<const Configuration> wanted = properties_.published();
  bool failed;
  {
    std::lock_guard<std::mutex> guard(lock_);
    const std::shared_ptr<const Configuration> before = std::exchange(wanted_, wanted);
    frames_in_flight_ = wanted->frames_in_flight;
    if (chosen_ && before->backend == wanted->backend && before->device_id == wanted->device_id) return true;
    failed = std::exchange(device_failed_, false);
  }
  // A context that the application may have set is kept, unless its device has failed.
  release(failed);
  if (wanted->backend != BackendChoice::Cpu) {
    std::string why;
    try {
      std::shared_ptr<Device> device = finder_->open(element_, wanted->device_id, &why);
      if (device) use(device, make_cuda_engine(device));
    } catch (const Error &e) {
      why = e.what();
    }
    if (!cuda_engine_ && wanted->backend == BackendChoice::Cuda) {
      release(true);
      GST_ELEMENT_ERROR(element_, RESOURCE, NOT_FOUND, ("backend=cuda found no usable CUDA device: %s", why.c_str()),
                        (nullptr));
      return false;
    }
    if (!cuda_engine_)
      GST_ELEMENT_INFO(element_, RESOURCE, NOT_FOUND, ("Frames are filtered on the CPU: %s", why.c_str()),
                       ("Frames are filtered on the CPU: %s", why.c_str()));  // gst-launch-1.0 shows only this
  }
  std::lock_guard<std::mutex> guard(lock_);
  chosen_ = true;
  if (cuda_engine_)
    GST_INFO_OBJECT(element_, "filters on CUDA device %d", device_->id());
  else
    GST_INFO_OBJECT(element_, "filters on the CPU");
  return true;
}

std::shared_ptr<const StreamContext> Session::fail_over(const StreamContext &context, const Error &e) {
  if (e.kind() != Error::Kind::Device || !context.engine->cuda()) {
    post_error(element_, e);
    return nullptr;
  }
  std::unique_lock<std::mutex> guard(lock_);
  const std::shared_ptr<const StreamContext> current = context_;
  if (current->engine != context.engine) return context.with(current->engine);  // another frame has failed over already
  const bool reported = std::exchange(device_failed_, true);
  finder_->abandon();
  chosen_ = false;  // the next start tries the device again
  if (wanted_->backend != BackendChoice::Auto) {
    guard.unlock();
    if (!reported) post_error(element_, e);
    return nullptr;
  }
  context_ = current->with(make_cpu_engine(context.info, wanted_->threads));
  contexts_++;
  failovers_++;
  cuda_engine_ = nullptr;
  const std::shared_ptr<const StreamContext> replacement = context_;
  guard.unlock();
  // At once: the task has no other occasion, and nothing is held.
  gst_element_message_full(element_, GST_MESSAGE_WARNING, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED,
                           g_strdup_printf("The CUDA device failed; from this frame on the CPU filters. %s", e.what()),
                           nullptr, e.file(), "", e.line());
  return current.get() == &context ? replacement : context.with(replacement->engine);
}

bool Session::find_memory_device() {
  if (allocation_needs().device) return true;
  std::string why = "it does not offer CUDA memory";
  std::shared_ptr<Device> device = finder_->open(element_, wanted_->device_id, &why);
  if (!device) {
    if (std::exchange(memory_error_, why) != why)
      GST_ELEMENT_ERROR(element_, RESOURCE, NOT_FOUND,
                        ("CUDA memory was negotiated, but no CUDA device is usable: %s", why.c_str()), (nullptr));
    return false;
  }
  use(std::move(device), nullptr);
  memory_error_.clear();
  return true;
}

// ---- Caps and settings ----------------------------------------------------------------------------------------------

// Makes `context` the current one. `serial` belongs to its settings. Returns false if the current one is no longer
// `instead_of`: the device of a frame in flight has failed meanwhile.
bool Session::install(std::shared_ptr<const StreamContext> context, guint serial, const StreamContext *instead_of) {
  warn_of_unused(context->settings);
  for (const bool interlaced : {false, true})
    for (const FrameKind &kind : context->kinds[interlaced])
      for (const View &view : kind.views)
        GST_DEBUG_OBJECT(element_, "%s, %s frames, view at %d,%d: %s", context->engine->backend->name(),
                         interlaced ? "interlaced" : "progressive", view.x, view.y, describe(*view.plan).c_str());
  std::lock_guard<std::mutex> guard(lock_);
  if (!started_ || (instead_of && context_.get() != instead_of)) return false;
  tried_serial_ = serial;
  context_.swap(context);
  contexts_++;
  return true;
}

// Warns of settings that have no effect with the mask and the other settings. Settings that have had an effect since
// the start are not named. With mask=identity there is no warning, since the next mask may use them.
void Session::warn_of_unused(const Settings &settings) {
  if (settings.filter.mask == Mask::Identity) return;
  for (const std::string &property : properties_that_are_set(settings)) {
    const std::string why = why_without_effect(property, settings);
    if (why.empty())
      messages_.pass_over(property);
    else
      messages_.warn_once(property, why);
  }
}

// Warns of regions, or of their strengths.
void Session::warn_of_regions(const std::string &text) {
  if (!text.empty()) messages_.warn_of_numbers(text, text, "the stream goes on", false);
}

// Warns of settings that cannot be carried out.
void Session::warn_of_settings(const Settings &settings, const Error &e) {
  const std::string about =
      mask_nick(settings.filter.mask) + settings.coefficients + settings.roi.rectangles + e.what();
  messages_.warn_of_numbers(about, e.what(), "the last good settings stay in force", true);
}

bool Session::configure(const GstVideoInfo &info, bool cuda_in, bool cuda_out) {
  const std::shared_ptr<const Configuration> published = properties_.published();
  const Settings &settings = published->settings;
  const std::shared_ptr<const StreamContext> previous = context();
  const bool rejected = previous && published->serial == tried_serial_;  // already tried and warned of
  try {
    std::shared_ptr<Engine> engine;
    {
      std::lock_guard<std::mutex> guard(lock_);
      engine = cuda_engine_ ? cuda_engine_ : make_cpu_engine(info, wanted_->threads);
    }
    std::shared_ptr<const StreamContext> context;
    try {
      context = std::make_shared<const StreamContext>(info, cuda_in, cuda_out, engine, settings);
    } catch (const Error &e) {
      if (!previous || e.kind() != Error::Kind::Settings) throw;
      context = std::make_shared<const StreamContext>(info, cuda_in, cuda_out, engine, previous->settings);
      if (!rejected) warn_of_settings(settings, e);
    }
    caps_error_.clear();
    return install(std::move(context), published->serial);
  } catch (const Error &e) {
    if (std::exchange(caps_error_, e.what()) != e.what()) post_error(element_, e);
  }
  return false;
}

bool Session::update() {
  if (properties_.serial() == tried_serial_) return false;
  const std::shared_ptr<const Configuration> published = properties_.published();
  const Settings &settings = published->settings;
  for (;;) {
    const std::shared_ptr<const StreamContext> before = context();
    if (!before || published->serial == tried_serial_) return false;
    std::shared_ptr<const StreamContext> after;
    try {
      after = before->with(settings);
    } catch (const Error &e) {
      tried_serial_ = published->serial;
      warn_of_settings(settings, e);
      return false;
    }
    if (install(std::move(after), published->serial, before.get())) return true;
  }
}

void Session::take_context(std::shared_ptr<const StreamContext> *context) {
  if (contexts_ == taken_ && *context) return;
  std::lock_guard<std::mutex> guard(lock_);
  taken_ = contexts_;
  *context = context_;
}

// ---- Regions --------------------------------------------------------------------------------------------------------

RoiList Session::find_regions(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment) {
  const RoiSettings &roi = context.settings.roi;
  if (!context.roi.takes_metas()) return {};
  std::string trouble;
  RoiTypeCounts types;
  RoiList found = gst::find_regions(buffer, context.roi.types(), &trouble, &types);
  messages_.warn_once("metas", trouble);
  if (!roi.types.empty()) {
    last_time_ = stream_time_of(buffer, segment, buffer_duration(context.info), last_time_).time;
    const int64_t now = plays_backwards(segment) ? -*last_time_ : *last_time_;
    messages_.warn_once("roi-type matches", type_watch_.look(buffer, roi.types, found, now));
  }
  if (!found.empty()) {
    std::lock_guard<std::mutex> guard(lock_);
    counts_.add(found.region.size() + found.mask.size(), types);
  }
  return moved(std::move(found), Pixel{} - picture_place(buffer, context.info).corner);
}

void Session::look_at_event(GstEvent *event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) messages_.warn_once("roi-type matches", type_watch_.end());
  if (GST_EVENT_TYPE(event) != GST_EVENT_FLUSH_STOP && GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT) return;
  type_watch_.restart_time();
  last_time_.reset();
}

std::vector<PlannedView> Session::plan_regions(const StreamContext &context, GstBuffer *buffer, const RoiList &found,
                                               const std::atomic<bool> &cancelled) {
  std::vector<PlannedView> planned = context.plan_regions(buffer, found, cancelled);
  warn_of_regions(context.roi.complaint());  // not at the caps: others may come before a frame
  if (context.strength) warn_of_regions(context.strength->complaint());
  return planned;
}

// ---- Devices of frames ----------------------------------------------------------------------------------------------

bool Session::is_foreign(const StreamContext &context, GstBuffer *buffer) {
  if (!context.engine->cuda() || gst_buffer_n_memory(buffer) != 1) return false;
  const Device &device = *context.engine->device;
  return device.is_device_memory(gst_buffer_peek_memory(buffer, 0)) && !device.owns(buffer);
}

bool Session::follow(GstBuffer *buffer) {
  std::shared_ptr<Device> device = finder_->follow(buffer, wanted_->device_id);
  if (!device) {
    GST_CAT_LOG_OBJECT(gst_cuda_conv_performance, element_,
                       "CUDA memory of another device is copied through system memory");
    return false;
  }
  GST_INFO_OBJECT(element_, "frames come in another CUDA context, of device %d", device->id());
  has_stream_ = false;
  change_over(std::move(device));
  return true;
}

void Session::change_over(std::shared_ptr<Device> device) {
  std::shared_ptr<Engine> engine;
  try {
    engine = make_cuda_engine(device);
  } catch (const Error &e) {
    const Error failed(Error::Kind::Device, e.what(), e.file(), e.line());
    if (fail_over(*context(), failed)) return;
    throw Error(Error::Kind::Cancelled, "the error has been posted");
  }
  install(context()->with(engine), tried_serial_);
  use(std::move(device), engine);
}

// Frames of two streams may alternate, behind an element that selects one of two: then the first one stays.
bool Session::is_on_other_stream(const StreamContext &context, GstBuffer *buffer) {
  constexpr guint kForGood = 64;  // frames
  if (!context.engine->cuda() || !context.cuda_in || !context.engine->device->owns(buffer)) return false;
  const Device &device = *context.engine->device;
  if (!device.stream_of(buffer, false)) return false;
  if (device.has_stream_of(buffer)) {
    has_stream_ = true;
    other_streams_ = 0;
    return false;
  }
  return !has_stream_ || ++other_streams_ >= kForGood;
}

bool Session::follow_stream(GstBuffer *buffer) {
  has_stream_ = true;
  other_streams_ = 0;
  const std::shared_ptr<Engine> engine = context()->engine;
  std::shared_ptr<Device> device = engine->cuda() ? engine->device->with_stream_of(buffer) : nullptr;
  if (!device) return false;
  GST_INFO_OBJECT(element_, "frames are filtered on the CUDA stream that they come with");
  change_over(std::move(device));
  return true;
}

// ---- Any thread -----------------------------------------------------------------------------------------------------

std::shared_ptr<const StreamContext> Session::context() const {
  std::lock_guard<std::mutex> guard(lock_);
  return context_;
}

int Session::device_in_use() const {
  std::lock_guard<std::mutex> guard(lock_);
  return cuda_engine_ ? device_->id() : -1;
}

bool Session::leaves_order_to_streams(const StreamContext &context) const {
  return context.engine->cuda() && context.cuda_in && context.cuda_out && !context.has_several_views() &&
         frames_in_flight_ == 0;
}

guint Session::most_in_flight(const StreamContext &context, guint64 device_ns) const {
  if (!context.engine->cuda() || context.has_several_views()) return 1;
  const guint set = frames_in_flight_, most = set ? set : kFramesThatPay;
  if (device_ns > kSlowFilter) return std::min(most, 2u);
  const bool copies = !context.cuda_in || !context.cuda_out;
  const bool fast = device_ns > 0 && device_ns < kFastFilter;
  return fast && !copies && !set ? kMostFramesInFlight : most;
}

GstClockTime Session::longest_wait() const {
  const std::shared_ptr<const StreamContext> context = this->context();
  if (!context || context->passthrough()) return 0;
  const guint frames = most_in_flight(*context, 0);
  return frames > 1 ? gst_util_uint64_scale(buffer_duration(context->info), frames, 1) : 0;
}

AllocationNeeds Session::allocation_needs() const {
  const bool regions = properties_.published()->settings.roi.meta;
  const std::shared_ptr<const StreamContext> context = this->context();
  const bool in_place = context && context->suits_in_place();
  const guint frames = context ? most_in_flight(*context, 0) : 1;
  std::lock_guard<std::mutex> guard(lock_);
  return {device_, cuda_engine_ != nullptr, frames, regions, in_place, false};
}

GstStructure *Session::stats(const BackendStats &totals) const {
  std::unique_lock<std::mutex> guard(lock_);
  const std::shared_ptr<const StreamContext> context = context_;
  const guint failovers = failovers_;
  const RoiCounts counts = counts_;
  guard.unlock();
  const char *method = nullptr;
  if (context) {
    const bool selected = context->settings.filter.method != Method::Auto;
    method = totals.kernels && !selected ? totals.kernels : method_nick(context->method);
  }
  // clang-format off
  GstStructure *stats = gst_structure_new(
      "application/x-cudaconv-stats",
      "frames", G_TYPE_UINT64, static_cast<guint64>(totals.frames),
      "backend", G_TYPE_STRING, context ? context->engine->backend->name() : nullptr,
      "method", G_TYPE_STRING, method,
      "device-time", G_TYPE_UINT64, static_cast<guint64>(totals.device_ns),
      "bytes-uploaded", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_uploaded),
      "bytes-downloaded", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_downloaded),
      "bytes-staged", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_staged),
      "failovers", G_TYPE_UINT, failovers,
      nullptr);
  // clang-format on
  counts.write(stats);
  return stats;
}

}  // namespace cudaconv::gst
