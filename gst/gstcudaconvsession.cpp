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

// The time between two frames where the caps have no framerate.
constexpr GstClockTime kUnknownDuration = GST_SECOND / 30;

// Nanoseconds of device time a frame. With slower filters, two frames in flight keep the GPU busy, and more would only
// prolong the wait when the element stops. With faster ones, and no copies to wait for, frames come faster than threads
// can be woken: then the most are in flight that the property allows.
constexpr guint64 kSlowFilter = 20 * GST_MSECOND, kFastFilter = 50 * GST_USECOND;

std::string without_numbers(std::string text) {
  const auto is_of_number = [](char c) { return g_ascii_isdigit(c) || c == '-' || c == '.'; };
  text.erase(std::remove_if(text.begin(), text.end(), is_of_number), text.end());
  return text;
}

}  // namespace

// ---- Device and backend ---------------------------------------------------------------------------------------------

bool Session::start() {
  {
    std::lock_guard<std::mutex> guard(lock_);
    started_ = true;
    failovers_ = 0;
  }
  starts_++;
  caps_error_.clear();
  memory_error_.clear();
  forget_regions();
  complaints_.clear();
  numbers_.clear();
  type_watch_.reset();
  last_time_.reset();
  has_stream_ = false;
  other_streams_ = 0;
  counts_.reset();
  return open();
}

void Session::stop() {
  std::shared_ptr<const StreamContext> context;  // is destroyed after the lock is released
  std::lock_guard<std::mutex> guard(lock_);
  started_ = false;
  context.swap(context_);
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
    limits_frames_ = wanted->frames_in_flight != 0;
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
  failovers_++;
  cuda_engine_ = nullptr;
  const std::shared_ptr<const StreamContext> replacement = context_;
  guard.unlock();
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
// `instead_of`: the device of a frame in flight has failed meanwhile. Returns false too if a handler of a warning has
// stopped the element, which may be running again.
bool Session::install(std::shared_ptr<const StreamContext> context, guint serial, const StreamContext *instead_of) {
  const guint starts = starts_;
  complain_of_unused(context->settings);
  for (const bool interlaced : {false, true})
    for (const FrameKind &kind : context->kinds[interlaced])
      for (const View &view : kind.views)
        GST_DEBUG_OBJECT(element_, "%s, %s frames, view at %d,%d: %s", context->engine->backend->name(),
                         interlaced ? "interlaced" : "progressive", view.x, view.y, describe(*view.plan).c_str());
  std::lock_guard<std::mutex> guard(lock_);
  if (!started_ || starts_ != starts || (instead_of && context_.get() != instead_of)) return false;
  tried_serial_ = serial;
  context_.swap(context);
  return true;
}

// Warns of settings that have no effect with the mask and the other settings. Settings that have had an effect since
// the start are not named. With mask=identity there is no warning, since the next mask may use them.
void Session::complain_of_unused(const Settings &settings) {
  if (settings.filter.mask == Mask::Identity) return;
  for (const std::string &property : properties_that_are_set(settings)) {
    const std::string why = why_without_effect(property, settings);
    if (why.empty())
      complaints_.insert(property);
    else
      complain_once(property, why);
  }
}

// Posts a warning, unless its text is empty, once since the start for each thing that it is about.
void Session::complain_once(const std::string &about, const std::string &text) {
  if (!text.empty() && complaints_.insert(about).second)
    GST_ELEMENT_WARNING(element_, LIBRARY, SETTINGS, ("%s", text.c_str()), ("the stream goes on"));
}

// Posts a warning whose numbers may change with each frame, as a slider, a controller or a region that moves makes
// them: at most once a second where only the numbers of `about` change, and not twice with the same text unless it
// `repeats`. The log has the others.
void Session::complain_of_numbers(const std::string &about, const std::string &text, const char *debug, bool repeats) {
  constexpr size_t kMost = 100;  // texts of settings may be new for ever
  if (numbers_.size() >= kMost) numbers_.clear();
  const gint64 now = g_get_monotonic_time();
  const auto [last, is_new] = numbers_.try_emplace(without_numbers(about));
  if (!is_new && !repeats && last->second.text == text) return;
  if (!is_new && now - last->second.at < G_USEC_PER_SEC) {
    GST_WARNING_OBJECT(element_, "%s", text.c_str());
    return;
  }
  last->second = {text, now};
  GST_ELEMENT_WARNING(element_, LIBRARY, SETTINGS, ("%s", text.c_str()), ("%s", debug));
}

// Warns of regions, or of their strengths.
void Session::complain_of_regions(const std::string &text) {
  if (!text.empty()) complain_of_numbers(text, text, "the stream goes on", false);
}

// Warns of settings that cannot be carried out.
void Session::warn_of_settings(const Settings &settings, const Error &e) {
  const std::string about =
      mask_nick(settings.filter.mask) + settings.coefficients + settings.roi.rectangles + e.what();
  complain_of_numbers(about, e.what(), "the last good settings stay in force", true);
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
      if (!this->context()) return false;  // a handler of the warning has stopped the element
    }
    caps_error_.clear();
    return install(std::move(context), published->serial);
  } catch (const Error &e) {
    // Noted first: a handler of the error may start the element again, which clears it.
    if (std::exchange(caps_error_, e.what()) != e.what()) post_error(element_, e);
  }
  return false;
}

bool Session::update() {
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

// ---- Regions --------------------------------------------------------------------------------------------------------

namespace {

// Converts a time; what is beyond 292 years becomes the largest.
gint64 nanoseconds(GstClockTime time) {
  return static_cast<gint64>(std::min<GstClockTime>(time, G_MAXINT64));
}

guint64 scaled(guint64 time, double by) {
  const double result = static_cast<double>(time) * by;
  return by == 1 ? time : result < 1e19 ? static_cast<guint64>(result) : G_MAXUINT64;
}

// The stream time of a frame in nanoseconds, which may be negative; its timestamp where the segment is not in time
// format. A frame without a timestamp follows the one before it, at `last`, by its duration. The first one is at the
// start of the segment.
FrameRegions timed(GstBuffer *buffer, const StreamContext &context, const GstSegment &segment,
                   std::optional<gint64> last) {
  GstClockTime time = GST_BUFFER_PTS(buffer);
  bool is_timed = true;
  if (!GST_CLOCK_TIME_IS_VALID(time)) {
    const GstClockTime duration =
        GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : context.buffer_duration();
    const double speed = segment.format == GST_FORMAT_TIME ? std::abs(segment.applied_rate) : 1;
    const gint64 length = nanoseconds(scaled(duration, speed)), step = plays_backwards(segment) ? -length : length;
    is_timed = duration > 0;
    gint64 sum;
    if (last && __builtin_add_overflow(*last, step, &sum)) sum = step < 0 ? G_MININT64 : G_MAXINT64;
    if (last) return {sum, is_timed, {}, {}, {}};
    time = segment.rate < 0 && GST_CLOCK_TIME_IS_VALID(segment.stop) ? segment.stop : segment.start;
  }
  guint64 stream = time;
  const int sign =
      segment.format == GST_FORMAT_TIME ? gst_segment_to_stream_time_full(&segment, GST_FORMAT_TIME, time, &stream) : 1;
  return {sign < 0 ? -nanoseconds(stream) : nanoseconds(sign ? stream : time), is_timed, {}, {}, {}};
}

// How long regions are in force. Without look-ahead, roi-hold is wall-clock time where the stream plays faster, and
// counts in both directions.
RoiTimes times_of(const RoiSettings &roi, const GstSegment &segment) {
  if (!roi.meta) return {};
  if (roi.lookahead) return {roi.lookahead, roi.hold};
  const double rate = segment.format == GST_FORMAT_TIME ? std::abs(segment.rate * segment.applied_rate) : 1;
  const guint64 hold = scaled(roi.hold, std::max(rate, 1.0));
  return {hold, hold};
}

}  // namespace

// Returns a sentence for the user where a meta cannot be read.
std::string Session::find_regions(const StreamContext &context, GstBuffer *buffer, FrameRegions *frame) {
  std::string trouble;
  frame->types.clear();
  const Pixel to_origin = frame->origin - picture_place(buffer, context.info).corner;
  frame->own = moved(context.roi.find(buffer, &trouble, &frame->types), to_origin);
  return trouble;
}

FrameRegions Session::note_regions(const StreamContext *context, GstBuffer *buffer, const GstSegment &segment,
                                   const RoiHistory::Span &waiting) {
  if (!context) return {};
  const RoiSettings &roi = context->settings.roi;
  if (!roi.holds_metas()) forget_regions();
  FrameRegions frame = timed(buffer, *context, segment, last_time_);
  frame.origin = held_.set_picture(picture_place(buffer, context->info), roi.shape == RoiShape::Ellipse, roi.invert);
  complain_once("metas", find_regions(*context, buffer, &frame));
  complain_once("roi-type matches",
                type_watch_.look(buffer, roi, frame.own, plays_backwards(segment) ? -frame.time : frame.time));
  hold(*context, segment, waiting, frame);
  last_time_ = frame.time;
  if (roi.meta && roi.lookahead && !frame.is_timed)
    complain_once("timestamps", "roi-lookahead has no effect on frames that have neither timestamp nor duration");
  return frame;
}

// It does not throw: the other waiting frames have to be searched again too.
void Session::note_again(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment,
                         FrameRegions *frame) {
  try {
    const RoiList before = frame->own;
    const std::string trouble = find_regions(context, buffer, frame);
    hold(context, segment, {}, *frame, &before);
    complain_once("metas", trouble);  // last: a handler may stop the element, which drops the frame
  } catch (const std::exception &e) {
    frame->own.everywhere = true;
    miss_regions(frame->time);
    GST_ELEMENT_WARNING(element_, RESOURCE, FAILED,
                        ("all of a frame is filtered: its regions could not be found again"), ("%s", e.what()));
  }
}

void Session::hold(const StreamContext &context, const GstSegment &segment, const RoiHistory::Span &waiting,
                   const FrameRegions &frame, const RoiList *before) {
  const RoiSettings &roi = context.settings.roi;
  if (!roi.holds_metas()) return;
  const bool ellipse = roi.shape == RoiShape::Ellipse;
  RoiHistory::Span open = waiting;
  open.add(last_time_.value_or(frame.time));
  held_.add(frame.own, frame.time, open, times_of(roi, segment), ellipse, roi.invert, before);
}

RoiList Session::regions_in_force(const StreamContext &context, const FrameRegions &frame, const GstSegment &segment) {
  const RoiTimes times = times_of(context.settings.roi, segment);
  RoiList list = times.before || times.after ? held_.in_force(frame.time, times, frame.own) : frame.own;
  list.everywhere |= missed_.is_in_force(frame.time, times);
  return context.roi.in_picture(moved(std::move(list), Pixel{} - frame.origin));
}

void Session::count_frame(const StreamContext &context, const FrameRegions &frame, bool marked) {
  const RoiSettings &roi = context.settings.roi;
  Ref<GstStructure> report(roi.report ? counts_.report(frame.time, false) : nullptr);
  if (roi.meta) counts_.add_frame(marked, frame.own.region.size() + frame.own.mask.size(), frame.types);
  if (!roi.report) counts_.restart_reports();
  post_report(std::move(report));  // last: a handler may start the element again, which forgets the counts
}

void Session::post_report(Ref<GstStructure> report) {
  if (report) gst_element_post_message(element_, gst_message_new_element(GST_OBJECT(element_), report.release()));
}

void Session::count_early(const char *why) {
  counts_.add_early();
  complain_once(why, std::string(why) + ": frames leave early, with the regions known so far");
}

void Session::miss_regions(GstBuffer *buffer, const GstSegment &segment) noexcept {
  const std::shared_ptr<const StreamContext> context = this->context();
  if (!context) return;
  last_time_ = timed(buffer, *context, segment, last_time_).time;  // allocates nothing
  miss_regions(*last_time_);
}

void Session::forget_regions() {
  held_.clear();
  missed_ = {};
}

void Session::look_at_event(GstEvent *event, const GstSegment &current) {
  const GstEventType type = GST_EVENT_TYPE(event);
  if (type == GST_EVENT_EOS) complain_once("roi-type matches", type_watch_.end());
  // Within a stream, a pad offset or another rate changes the running time of frames, not their stream time.
  if (type == GST_EVENT_STREAM_START) stream_starts_ |= is_other_stream(event, GST_BASE_TRANSFORM_SINK_PAD(element_));
  const bool flushes = type == GST_EVENT_FLUSH_STOP, is_segment = type == GST_EVENT_SEGMENT,
             same_stream = is_segment && !std::exchange(stream_starts_, false);
  const bool ends = flushes || (is_segment && is_other_segment(event, current, same_stream));
  if (ends) {
    if (flushes) type_watch_.restart_time();
    if (!same_stream || !keeps_stream_times(event, current)) forget_regions();
    last_time_.reset();
  }
  if (!ends && type != GST_EVENT_SEGMENT_DONE && type != GST_EVENT_EOS) return;
  const std::shared_ptr<const StreamContext> context = this->context();
  if (context && context->settings.roi.report) post_report(Ref<GstStructure>(counts_.report({}, true)));
}

std::vector<PlannedView> Session::plan_regions(const StreamContext &context, GstBuffer *buffer, const RoiList &found,
                                               const std::atomic<bool> &cancelled) {
  std::vector<PlannedView> planned = context.plan_regions(buffer, found, cancelled);
  complain_of_regions(context.roi.complaint());  // not at the caps: others may come before a frame
  if (context.strength) complain_of_regions(context.strength->complaint());
  return planned;
}

// ---- Devices of frames ----------------------------------------------------------------------------------------------

bool Session::is_foreign(GstBuffer *buffer) const {
  const std::shared_ptr<const StreamContext> context = this->context();
  if (!context || !context->engine->cuda() || gst_buffer_n_memory(buffer) != 1) return false;
  const Device &device = *context->engine->device;
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
bool Session::is_on_other_stream(GstBuffer *buffer) {
  constexpr guint kForGood = 64;  // frames
  const std::shared_ptr<const StreamContext> context = this->context();
  if (!context || !context->engine->cuda() || !context->cuda_in || !context->engine->device->owns(buffer)) return false;
  const Device &device = *context->engine->device;
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
         !limits_frames_;
}

guint Session::most_in_flight(guint64 device_ns) const {
  std::lock_guard<std::mutex> guard(lock_);
  if (!context_ || !context_->engine->cuda() || context_->has_several_views()) return 1;
  const guint set = wanted_->frames_in_flight, most = set ? set : kFramesThatPay;
  if (device_ns > kSlowFilter) return std::min(most, 2u);
  const bool copies = !context_->cuda_in || !context_->cuda_out;
  const bool fast = device_ns > 0 && device_ns < kFastFilter;
  return fast && !copies && !set ? kMostFramesInFlight : most;
}

GstClockTime Session::longest_wait() const {
  const std::shared_ptr<const StreamContext> context = this->context();
  if (!context || context->passthrough()) return 0;
  const guint frames = most_in_flight(0);
  return frames > 1 ? gst_util_uint64_scale(context->buffer_duration(), frames, 1) : 0;
}

GstClockTime Session::lookahead() const {
  const std::shared_ptr<const StreamContext> context = this->context();
  const std::shared_ptr<const Configuration> published = properties_.published();
  const Settings &settings = context ? context->settings : published->settings;
  if (!settings.roi.meta || settings.filter.mask == Mask::Identity) return 0;
  // A frame leaves when the first frame comes that is at least roi-lookahead later; a field, when the first field comes
  // that is later by more.
  const GstClockTime wait = std::min<GstClockTime>(settings.roi.lookahead, G_MAXINT64);
  if (!context || wait == 0) return wait;
  if (!context->buffer_duration()) return add_times(wait, kUnknownDuration);
  // The duration of a frame in nanoseconds may be a fraction.
  const guint64 per = static_cast<guint64>(context->info.fps_n), seconds = context->info.fps_d * GST_SECOND;
  const guint64 frames = has_fields(context->info) ? gst_util_uint64_scale(wait, per, seconds) + 1
                                                   : gst_util_uint64_scale_ceil(wait, per, seconds);
  return std::min<GstClockTime>(gst_util_uint64_scale_ceil(frames, seconds, per), G_MAXINT64);
}

AllocationNeeds Session::allocation_needs() const {
  const bool regions = properties_.published()->settings.roi.meta;
  const std::shared_ptr<const StreamContext> context = this->context();
  constexpr GstClockTime kMost = 256;  // frames, since the pool allocates that number at once
  const GstClockTime known = context ? context->buffer_duration() : 0, duration = known ? known : kUnknownDuration;
  const auto waiting = context ? static_cast<guint>(std::min(lookahead() / duration, kMost)) : 0;
  const bool in_place = context && context->suits_in_place();
  const guint frames = most_in_flight(0);
  std::lock_guard<std::mutex> guard(lock_);
  return {device_, cuda_engine_ != nullptr, frames, waiting, regions, in_place, false};
}

GstStructure *Session::stats(const BackendStats &totals) const {
  std::unique_lock<std::mutex> guard(lock_);
  const std::shared_ptr<const StreamContext> context = context_;
  const guint failovers = failovers_;
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
  counts_.add_to(stats);
  return stats;
}

}  // namespace cudaconv::gst
