// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvpath.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gstcudaconvmessages.h"
#include "gstcudaconvneighbours.h"

namespace cudaconv::gst {

namespace {

// Nanoseconds of device time per frame. With slower filters, two frames in flight keep the GPU busy, and more would
// only prolong the wait when the element stops.
constexpr guint64 kLongFilter = 20 * GST_MSECOND;

const GstBaseTransformClass *base_class() {
  return GST_BASE_TRANSFORM_CLASS(g_type_class_peek(GST_TYPE_BASE_TRANSFORM));
}

}  // namespace

void Path::start() {
  crop_ = Crop::Unknown;
}

void Path::stop() {
  context_ = nullptr;
}

// ---- What changes between frames ------------------------------------------------------------------------------------

void Path::update_passthrough() {
  gst_base_transform_set_passthrough(trans_, session_.context()->passthrough() && crop_ != Crop::Copied);
}

// Reconfigures both pads too, since their buffer pools depend on passthrough.
void Path::set_passthrough(bool passthrough) {
  flight_.drain();
  announce_latency_();
  gst_base_transform_set_passthrough(trans_, passthrough);
  gst_base_transform_reconfigure_src(trans_);
  gst_base_transform_reconfigure_sink(trans_);
}

void Path::update_settings() {
  const std::shared_ptr<const StreamContext> before = session_.context();
  if (!session_.update()) return;
  const std::shared_ptr<const StreamContext> now = session_.context();
  if (now->passthrough() != before->passthrough()) {
    crop_ = Crop::Unknown;
    set_passthrough(now->passthrough());
  } else if (now->roi.takes_metas() != before->roi.takes_metas()) {
    gst_base_transform_reconfigure_sink(trans_);
  }
}

void Path::follow_context(GstBuffer *buffer) {
  if (!session_.is_foreign(buffer)) return;
  flight_.drain();
  if (session_.follow(buffer)) gst_base_transform_reconfigure_src(trans_);
}

// In passthrough, copies the crop rectangle out where downstream does not take GstVideoCropMeta.
void Path::look_at_crop(GstBuffer *buffer) {
  if (GST_PAD_NEEDS_RECONFIGURE(trans_->srcpad)) crop_ = Crop::Unknown;
  const std::shared_ptr<const StreamContext> context = session_.context();
  if (crop_ != Crop::Unknown || !context || !context->passthrough() || !gst_buffer_get_video_crop_meta(buffer)) return;
  crop_ = takes_crop_meta(trans_->srcpad) ? Crop::Taken : Crop::Copied;
  const bool passes = crop_ == Crop::Taken;
  if (passes == gst_base_transform_is_passthrough(trans_)) return;
  GST_INFO_OBJECT(trans_, "crop rectangles are %s", passes ? "passed on" : "copied out");
  set_passthrough(passes);
}

// ---- Frames ---------------------------------------------------------------------------------------------------------

GstFlowReturn Path::take(bool is_discont, Ref<GstBuffer> buffer) {
  if (!flight_.enter()) return GST_FLOW_FLUSHING;
  const Ref<GstBuffer> frame(gst_buffer_ref(buffer.get()));
  const GstFlowReturn flow = guarded(trans_, GST_FLOW_ERROR, [&] { return prepare(is_discont, std::move(buffer)); });
  if (flow == GST_FLOW_OK) return flow;
  if (flow == GST_FLOW_ERROR) session_.miss_regions(frame.get());
  gst_clear_buffer(&trans_->queued_buf);
  flight_.note_lost();
  if (flow != GST_BASE_TRANSFORM_FLOW_DROPPED) flight_.drain();  // earlier frames come out before the error goes up
  return flow;
}

// Looks for regions last, so that they are filtered with what they were looked for with.
GstFlowReturn Path::prepare(bool is_discont, Ref<GstBuffer> buffer) {
  if (trans_->segment.format == GST_FORMAT_TIME) {
    const GstClockTime time =
        gst_segment_to_stream_time(&trans_->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer.get()));
    if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(trans_), time);
  }
  const Ref<GstBuffer> frame(gst_buffer_ref(buffer.get()));  // one that is dropped has regions too
  update_settings();
  follow_context(frame.get());
  look_at_crop(frame.get());
  const GstFlowReturn flow = base_class()->submit_input_buffer(trans_, is_discont, buffer.release());
  context_ = session_.context();
  regions_ = session_.look_for_regions(context_.get(), frame.get(), trans_->segment);
  return flow;
}

GstFlowReturn Path::find_output(GstBuffer *in, GstBuffer **out) {
  if (!context_ || !filters_in_place(in, *context_, downstream_)) return new_output_buffer(trans_, in, out);
  *out = in;
  return GST_FLOW_OK;
}

// Sets the buffers that the frame is read from and written to.
GstFlowReturn Path::add_buffers(Ref<GstBuffer> in, Frame *frame) {
  GstBuffer *out = nullptr;
  GstFlowReturn flow = GST_BASE_TRANSFORM_GET_CLASS(trans_)->prepare_output_buffer(trans_, in.get(), &out);
  if (flow == GST_FLOW_OK && out == in.get()) {
    // A buffer that claims to be writable may fail to map: such a frame is copied. An invalid frame fails again later.
    try {
      frame->take_in_place(in);
      return GST_FLOW_OK;
    } catch (const FrameError &e) {
      GST_DEBUG_OBJECT(trans_, "a frame is not filtered in place: %s", e.what());
    }
    flow = new_output_buffer(trans_, in.get(), &out);
  }
  if (flow != GST_FLOW_OK) return flow;
  frame->out.reset(out);
  const GstVideoInfo &info = frame->context->info;
  if (splits_macropixel(in.get(), info)) {
    const FrameLayout &layout = frame->context->kind_of(in.get()).layout;
    in = copy_rectangle(in.get(), info, layout);
    frame->place = MappedFrame::find(in.get(), info, layout, GST_MAP_READ);
  }
  frame->in = std::move(in);
  return GST_FLOW_OK;
}

// Passes on a buffer as it is.
GstFlowReturn Path::pass(Ref<GstBuffer> buffer) {
  if (flight_.take_lost()) {
    if (!gst_buffer_is_writable(buffer.get()))
      if (GstBuffer *copy = gst_buffer_copy(buffer.get())) buffer.reset(copy);
    if (gst_buffer_is_writable(buffer.get()))
      GST_BUFFER_FLAG_SET(buffer.get(), GST_BUFFER_FLAG_DISCONT);
    else
      flight_.note_lost();  // a shared buffer of memory that cannot be copied: a later one gets the flag
  }
  return flight_.push(std::move(buffer));
}

// Filters or passes on a frame by way of Flight. Marks discontinuities: the base class does so only for what it pushes.
GstFlowReturn Path::filter(Ref<GstBuffer> in) {
  if (!context_) return GST_FLOW_NOT_NEGOTIATED;
  const bool empty_gap = GST_BUFFER_FLAG_IS_SET(in.get(), GST_BUFFER_FLAG_GAP) && gst_buffer_get_size(in.get()) == 0;
  if ((gst_base_transform_is_passthrough(trans_) && context_->passthrough()) || empty_gap) return pass(std::move(in));
  auto frame = std::make_unique<Frame>();
  frame->context = context_;
  try {
    frame->place = MappedFrame::find(in.get(), context_->info, context_->kind_of(in.get()).layout, GST_MAP_READ);
  } catch (const FormatError &e) {
    const std::string converter = find_converter(trans_->sinkpad, e.format);
    if (converter.empty()) throw;
    throw FrameError(e.what() + (" " + converter) +
                     " has changed the format and not the meta. Use videoconvert instead.");
  }
  frame->views = session_.plan_regions(*context_, in.get(), regions_);
  const GstFlowReturn flow = add_buffers(std::move(in), frame.get());
  if (flow != GST_FLOW_OK) return flow;
  if (flight_.take_lost()) GST_BUFFER_FLAG_SET(frame->out.get(), GST_BUFFER_FLAG_DISCONT);
  guint most = session_.most_in_flight();
  const BackendStats totals = flight_.totals();
  if (totals.frames && totals.device_ns / totals.frames > kLongFilter) most = std::min(most, 2u);
  const GstFlowReturn result = flight_.submit(std::move(frame), most);
  if (result != GST_FLOW_OK) flight_.note_lost();
  return result;
}

GstFlowReturn Path::send() {
  if (!trans_->queued_buf) return GST_FLOW_OK;
  Ref<GstBuffer> in(std::exchange(trans_->queued_buf, nullptr));
  GstSegment &segment = trans_->segment;
  if (segment.format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID(in.get())) {
    segment.position = GST_BUFFER_PTS(in.get());
    if (GST_BUFFER_DURATION_IS_VALID(in.get())) segment.position += GST_BUFFER_DURATION(in.get());
  }
  return guarded(trans_, GST_FLOW_ERROR, [&] {
    try {
      return filter(std::move(in));
    } catch (...) {
      flight_.drain();  // the earlier frames come out before the error goes up
      flight_.note_lost();
      throw;
    }
  });
}

}  // namespace cudaconv::gst
