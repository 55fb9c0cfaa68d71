// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvsession.h"

#include <algorithm>
#include <utility>

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

// Whether the buffer is a piece of CUDA memory of another context than the frames are filtered in.
bool is_foreign(const StreamContext &context, GstBuffer *buffer) {
  if (!context.engine->cuda() || gst_buffer_n_memory(buffer) != 1) return false;
  return is_cuda_memory(gst_buffer_peek_memory(buffer, 0)) && !context.engine->device->owns(buffer);
}

}  // namespace

// ---- Starting and stopping ------------------------------------------------------------------------------------------

bool Session::start() {
  stop();  // a pad probe may have stopped the element while it got caps
  failovers_ = 0;
  caps_error_.clear();
  messages_.restart();
  other_streams_ = kForGood;
  return engines_.open();
}

void Session::stop() {
  std::shared_ptr<const StreamContext> context;  // is destroyed after the lock is released
  std::lock_guard<std::mutex> guard(lock_);
  context.swap(context_);
}

std::shared_ptr<const StreamContext> Session::fail_over(const StreamContext &context, const Error &e) {
  if (e.kind() != Error::Kind::Device || !context.engine->cuda()) throw Error(e);
  if (this->context()->engine == context.engine && !engines_.fail()) throw Error(e);
  std::unique_lock<std::mutex> guard(lock_);
  if (context_->engine != context.engine) return context.with(context_->engine);  // another frame has failed over
  context_ = context_->with(engines_.cpu(context.info));
  failovers_++;
  const std::shared_ptr<Engine> replacement = context_->engine;
  guard.unlock();
  announce_latency();
  // At once: the task has no other occasion, and nothing is held.
  gst_element_message_full(element_, GST_MESSAGE_WARNING, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED,
                           g_strdup_printf("The CUDA device failed; from this frame on the CPU filters. %s", e.what()),
                           nullptr, e.file(), "", e.line());
  return context.with(replacement);
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
  if (instead_of && context_.get() != instead_of) return false;
  tried_serial_ = serial;
  context_.swap(context);
  return true;
}

// Warns of settings that have no effect with the mask and the other settings. Settings that have had an effect since
// the start are not named. With mask=identity there is no warning, since the next mask may use them.
void Session::warn_of_unused(const Settings &settings) {
  if (settings.filter.mask == Mask::Identity) return;
  for (const std::string &property : properties_that_are_set(settings))
    messages_.warn_once(property, why_without_effect(property, settings));
}

// Warns of settings that cannot be carried out.
void Session::warn_of_settings(const Settings &settings, const Error &e) {
  const std::string about =
      mask_nick(settings.filter.mask) + settings.coefficients + settings.roi.rectangles + e.what();
  messages_.warn_of_numbers(about, e.what(), "the last good settings stay in force", true);
}

bool Session::configure(const GstVideoInfo &info, bool cuda_in, bool cuda_out) {
  const auto published = properties_.published();
  const Settings &settings = published->settings;
  const std::shared_ptr<const StreamContext> previous = context();
  const bool rejected = previous && published->serial == tried_serial_;  // already tried and warned of
  try {
    const std::shared_ptr<Engine> chosen = engines_.engine(), engine = chosen ? chosen : engines_.cpu(info);
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
  const auto published = properties_.published();
  if (published->serial == tried_serial_) return false;
  const Settings &settings = published->settings;
  for (;;) {
    const std::shared_ptr<const StreamContext> before = context();
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

// ---- Devices of frames ----------------------------------------------------------------------------------------------

// Frames of two streams may alternate, behind an element that selects one of two: then the first one stays.
bool Session::is_elsewhere(const StreamContext &context, GstBuffer *buffer) {
  if (is_foreign(context, buffer)) return true;
  if (!context.engine->cuda() || !context.cuda_in || !context.engine->device->owns(buffer)) return false;
  const Device &device = *context.engine->device;
  if (!device.stream_of(buffer, false)) return false;
  other_streams_ = device.has_stream_of(buffer) ? 0 : std::min(other_streams_ + 1, kForGood);
  return other_streams_ == kForGood;
}

bool Session::follow(GstBuffer *buffer) {
  const std::shared_ptr<const StreamContext> context = this->context();
  std::shared_ptr<Device> device;
  if (is_foreign(*context, buffer)) {
    device = engines_.device_of(buffer);
    if (!device) {
      GST_CAT_LOG_OBJECT(gst_cuda_conv_performance, element_,
                         "CUDA memory of another device is copied through system memory");
      return false;
    }
    GST_INFO_OBJECT(element_, "frames come in another CUDA context, of device %d", device->id());
    other_streams_ = kForGood;
  } else {
    other_streams_ = 0;
    device = context->engine->cuda() ? context->engine->device->with_stream_of(buffer) : nullptr;
    if (!device) return false;
    GST_INFO_OBJECT(element_, "frames are filtered on the CUDA stream that they come with");
  }
  std::shared_ptr<Engine> engine;
  try {
    engine = make_cuda_engine(std::move(device));
  } catch (const Error &e) {
    fail_over(*context, Error(Error::Kind::Device, e.what(), e.file(), e.line()));
    return true;
  }
  install(context->with(engine), tried_serial_);
  engines_.set(engine->device, engine);
  return true;
}

// ---- Any thread -----------------------------------------------------------------------------------------------------

std::shared_ptr<const StreamContext> Session::context() const {
  std::lock_guard<std::mutex> guard(lock_);
  return context_;
}

int Session::device_in_use() const {
  const std::shared_ptr<Engine> engine = engines_.engine();
  return engine ? engine->device->id() : -1;
}

bool Session::leaves_order_to_streams(const StreamContext &context) const {
  return context.engine->cuda() && context.cuda_in && context.cuda_out && !context.has_several_views() &&
         engines_.frames_in_flight() == 0;
}

guint Session::most_in_flight(const StreamContext &context, guint64 device_ns) const {
  if (!context.engine->cuda() || context.has_several_views()) return 1;
  const guint set = engines_.frames_in_flight(), most = set ? set : kFramesThatPay;
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
  return {engines_.device(), engines_.engine() != nullptr, frames, regions, in_place, false};
}

}  // namespace cudaconv::gst
