// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The path of a frame from the sink pad to Flight: its settings, its regions, and its output buffer.
#pragma once

#include <gst/base/gstbasetransform.h>

#include <memory>
#include <optional>

#include "gstcudaconvallocation.h"
#include "regions/shapes.h"

namespace cudaconv::gst {

class Flight;
struct Frame;
class RegionFinder;
class Session;

// For the thread that holds the stream lock of the sink pad, but for stop(), which Flight::lets_in() keeps apart from
// it.
class Path {
 public:
  Path(GstBaseTransform *trans, Session &session, RegionFinder &regions, Flight &flight)
      : trans_(trans), session_(session), regions_(regions), flight_(flight) {}

  void stop();

  // For GstBaseTransform's set_caps, after Session::configure().
  void take_caps();
  // For decide_allocation and propose_allocation.
  void set_downstream(const Downstream &downstream) { downstream_ = downstream; }
  const Downstream &downstream() const { return downstream_; }
  // For transform_meta: copies a meta of the frame at hand that has to move; see copy_moved_meta().
  bool copy_moved(GstBuffer *output, const GstMeta *meta, GstBuffer *input) const;
  // For submit_input_buffer: brings settings, device and crop rectangle up to date, and hands the frame to the base
  // class, which may negotiate anew or drop it. Filters the frame that it keeps, or passes it on, by way of Flight.
  // Posts an error message if that fails.
  GstFlowReturn take(bool is_discont, Ref<GstBuffer> buffer);

 private:
  bool passes(const StreamContext &context) const;
  void update_settings();
  void follow_device(GstBuffer *buffer);
  void look_at_crop(GstBuffer *buffer);
  bool downstream_reads(GstBuffer *buffer);
  void prepare_for(GstBuffer *buffer);
  GstFlowReturn add_buffers(Ref<GstBuffer> in, Frame *frame);
  GstFlowReturn pass(Ref<GstBuffer> buffer);
  GstFlowReturn filter(Ref<GstBuffer> in);

  GstBaseTransform *const trans_;
  Session &session_;
  RegionFinder &regions_;
  Flight &flight_;
  // Whether downstream takes these in passthrough; nullopt: it is to be asked. Crop rectangles that it does not take
  // are copied out.
  std::optional<bool> takes_crop_, takes_strides_;
  Downstream downstream_;  // from the last ALLOCATION query
  // The frame at hand has these. The place is found once, not for each meta: the search goes through all metas.
  std::shared_ptr<const StreamContext> context_;
  PicturePlace place_;
};

}  // namespace cudaconv::gst
