// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The path of a frame from the sink pad to Flight: what it is filtered with, its regions, and the buffer it is written
// to.
#pragma once

#include <gst/base/gstbasetransform.h>

#include <functional>
#include <memory>

#include "gstcudaconvallocation.h"
#include "gstcudaconvflight.h"
#include "gstcudaconvsession.h"

namespace cudaconv::gst {

// For the sink pad's streaming thread alone, but for start() and stop(), which Flight::enter() keeps apart from it.
class Path {
 public:
  // `announce_latency` is called where the latency may have changed.
  Path(GstBaseTransform *trans, Session &session, Flight &flight, std::function<void()> announce_latency)
      : trans_(trans), session_(session), flight_(flight), announce_latency_(std::move(announce_latency)) {}

  void start();
  void stop();

  // For GstBaseTransform's set_caps, after Session::configure().
  void update_passthrough();
  // For decide_allocation.
  void set_downstream(const Downstream &downstream) { downstream_ = downstream; }
  // For submit_input_buffer: brings settings, device and crop rectangle up to date, hands the frame to the base class,
  // which may negotiate anew or drop it, and looks for its regions. With an error message posted where that fails.
  GstFlowReturn take(bool is_discont, Ref<GstBuffer> buffer);
  // For prepare_output_buffer: the input buffer itself where the frame is filtered in place, as in the base class.
  GstFlowReturn find_output(GstBuffer *in, GstBuffer **out);
  // For generate_output: filters or passes on, by way of Flight, the frame that the base class has kept. With an error
  // message posted where that fails.
  GstFlowReturn send();

 private:
  // What becomes of a GstVideoCropMeta in passthrough: downstream takes it, or the element copies the rectangle out.
  enum class Crop { Unknown, Taken, Copied };

  void set_passthrough(bool passthrough);
  void update_settings();
  void follow_context(GstBuffer *buffer);
  void look_at_crop(GstBuffer *buffer);
  GstFlowReturn prepare(bool is_discont, Ref<GstBuffer> buffer);
  GstFlowReturn add_buffers(Ref<GstBuffer> in, Frame *frame);
  GstFlowReturn pass(Ref<GstBuffer> buffer);
  GstFlowReturn filter(Ref<GstBuffer> in);

  GstBaseTransform *const trans_;
  Session &session_;
  Flight &flight_;
  const std::function<void()> announce_latency_;
  Crop crop_ = Crop::Unknown;
  Downstream downstream_;  // from the last ALLOCATION query
  // Of the frame at hand, from take() to send().
  std::shared_ptr<const StreamContext> context_;
  RoiList regions_;
};

}  // namespace cudaconv::gst
