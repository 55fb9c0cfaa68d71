// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvpath.h"

#include <stdexcept>
#include <utility>

#include "gstcudaconvanalytics.h"
#include "gstcudaconvflight.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvneighbours.h"
#include "gstcudaconvmetas.h"
#include "gstcudaconvroimetas.h"
#include "gstcudaconvsession.h"

namespace cudaconv::gst {

void Path::stop() {
  takes_crop_ = takes_strides_ = std::nullopt;
  context_ = nullptr;
}

// ---- What changes between frames ------------------------------------------------------------------------------------

void Path::take_caps() {
  context_ = session_.context();
  gst_base_transform_set_passthrough(trans_, passes(*context_));
}

// Whether the base class passes frames on.
bool Path::passes(const StreamContext &context) const {
  return context.passthrough() && takes_crop_ != false;
}

void Path::update_settings() {
  const std::shared_ptr<const StreamContext> before = context_;
  if (!session_.update()) return;
  context_ = session_.context();
  if (context_->passthrough() != before->passthrough()) takes_crop_ = takes_strides_ = std::nullopt;
  session_.announce_latency();
  if (context_->settings.roi.meta != before->settings.roi.meta) gst_base_transform_reconfigure_sink(trans_);
}

void Path::follow_device(GstBuffer *buffer) {
  if (!session_.is_elsewhere(*context_, buffer)) return;
  flight_.drain();                                                          // the device may fail meanwhile
  if (session_.follow(buffer)) gst_base_transform_reconfigure_src(trans_);  // the memory of the output follows, too
  context_ = session_.context();
}

// In passthrough, copies the crop rectangle out where downstream does not take GstVideoCropMeta.
void Path::look_at_crop(GstBuffer *buffer) {
  if (GST_PAD_NEEDS_RECONFIGURE(trans_->srcpad)) takes_crop_ = takes_strides_ = std::nullopt;
  if (takes_crop_ || !context_->passthrough() || !gst_buffer_get_video_crop_meta(buffer)) return;
  takes_crop_ = takes_meta(trans_->srcpad, GST_VIDEO_CROP_META_API_TYPE);
  GST_INFO_OBJECT(trans_, "crop rectangles are %s", *takes_crop_ ? "passed on" : "copied out");
}

// Whether downstream finds the planes of a buffer that passes. After a change to passthrough upstream still sends some
// with the strides that it has chosen for the filter: these are copied.
bool Path::downstream_reads(GstBuffer *buffer) {
  if (context_->cuda_out || !gst_buffer_get_video_meta(buffer) || has_default_layout(buffer, context_->info))
    return true;
  if (!takes_strides_) takes_strides_ = takes_meta(trans_->srcpad, GST_VIDEO_META_API_TYPE);
  return *takes_strides_;
}

// Brings everything up to date for the frame that has come. An application can change the mode of the base class too.
void Path::prepare_for(GstBuffer *buffer) {
  if (trans_->segment.format == GST_FORMAT_TIME) {
    const GstClockTime time = gst_segment_to_stream_time(&trans_->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(trans_), time);
  }
  context_ = session_.context();
  if (!context_) return;
  update_settings();
  follow_device(buffer);
  look_at_crop(buffer);
  if (passes(*context_) == gst_base_transform_is_passthrough(trans_)) return;
  flight_.drain();
  session_.announce_latency();
  gst_base_transform_set_passthrough(trans_, passes(*context_));
  gst_base_transform_reconfigure_src(trans_);  // the buffer pools depend on passthrough
  gst_base_transform_reconfigure_sink(trans_);
}

// ---- Frames ---------------------------------------------------------------------------------------------------------

GstFlowReturn Path::take(bool is_discont, Ref<GstBuffer> buffer) {
  if (!flight_.lets_in()) return GST_FLOW_FLUSHING;
  const guint interruptions = flight_.begin();
  const auto *base = GST_BASE_TRANSFORM_CLASS(g_type_class_peek(GST_TYPE_BASE_TRANSFORM));
  GstFlowReturn flow;
  try {
    prepare_for(buffer.get());
    flow = base->submit_input_buffer(trans_, is_discont, buffer.release());
    if (flow == GST_FLOW_OK && context_) {
      flow = filter(Ref<GstBuffer>(std::exchange(trans_->queued_buf, nullptr)));
      if (flow != GST_FLOW_OK) flight_.note_lost();
      return flow;
    }
  } catch (const std::exception &e) {
    flight_.drain();  // earlier frames come out before the error goes up
    flight_.report(e);
    flow = flight_.flow_of_failure(interruptions, GST_FLOW_ERROR);
  }
  // An inactive source pad refuses caps. The base class takes that for a failure if the pad is active again by now.
  if (flow == GST_FLOW_OK || flow == GST_FLOW_NOT_NEGOTIATED)
    flow = flight_.flow_of_failure(interruptions, GST_FLOW_NOT_NEGOTIATED);
  gst_clear_buffer(&trans_->queued_buf);
  flight_.note_lost();
  if (flow == GST_BASE_TRANSFORM_FLOW_DROPPED) {
    const GstFlowReturn kept = flight_.take_flow();
    return kept == GST_FLOW_OK ? flow : kept;
  }
  flight_.drain();  // earlier frames come out before the error goes up
  return flow;
}

// Sets the buffers that the frame is read from and written to.
GstFlowReturn Path::add_buffers(Ref<GstBuffer> in, Frame *frame) {
  if (filters_in_place(in.get(), *frame->context, downstream_)) {
    // A buffer that claims to be writable may fail to map: such a frame is copied. An invalid frame fails again later.
    try {
      frame->take_in_place(in);
      return GST_FLOW_OK;
    } catch (const std::runtime_error &e) {
      GST_DEBUG_OBJECT(trans_, "a frame is not filtered in place: %s", e.what());
    }
  }
  GstBuffer *out = nullptr;
  const GstFlowReturn flow = new_output_buffer(trans_, in.get(), &out);
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
      if (Ref<GstBuffer> copy = copy_buffer(buffer.get())) buffer = std::move(copy);
    if (gst_buffer_is_writable(buffer.get()))
      GST_BUFFER_FLAG_SET(buffer.get(), GST_BUFFER_FLAG_DISCONT);
    else
      flight_.note_lost();  // a shared buffer of memory that cannot be copied: a later one gets the flag
  }
  return flight_.push(std::move(buffer));
}

bool Path::copy_moved(GstBuffer *output, const GstMeta *meta, GstBuffer *input) const {
  return context_ && copy_moved_meta(output, meta, input, place_, context_->info);
}

// Filters or passes on a frame by way of Flight. Marks discontinuities: the base class does so only for what it pushes.
GstFlowReturn Path::filter(Ref<GstBuffer> in) {
  const StreamContext &context = *context_;
  const bool empty_gap = GST_BUFFER_FLAG_IS_SET(in.get(), GST_BUFFER_FLAG_GAP) && gst_buffer_get_size(in.get()) == 0;
  const bool passes = gst_base_transform_is_passthrough(trans_) && context.passthrough();
  if (empty_gap || (passes && downstream_reads(in.get()))) return pass(std::move(in));
  // Where a frame in flight has failed, this one would fail in its wake.
  const GstFlowReturn earlier = flight_.take_flow();
  if (earlier != GST_FLOW_OK) return earlier;
  auto frame = std::make_unique<Frame>();
  frame->context = context_;
  frame->may_leave = session_.leaves_order_to_streams(context);
  frame->place = MappedFrame::find(in.get(), context.info, context.kind_of(in.get()).layout, GST_MAP_READ);
  place_ = picture_place(in.get(), context.info);
  frame->views = regions_.plan(context, in.get(), trans_->segment, flight_.stopped());
  const GstFlowReturn flow = add_buffers(std::move(in), frame.get());
  if (passes) gst_base_transform_set_passthrough(trans_, TRUE);  // not while it makes a buffer for the copy
  if (flow != GST_FLOW_OK) return flow;
  if (flight_.take_lost()) GST_BUFFER_FLAG_SET(frame->out.get(), GST_BUFFER_FLAG_DISCONT);
  return flight_.submit(std::move(frame), session_.most_in_flight(context, flight_.counts().device_ns()));
}

}  // namespace cudaconv::gst
