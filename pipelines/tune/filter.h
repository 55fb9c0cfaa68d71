// SPDX-License-Identifier: LGPL-2.1-or-later
//
// cudaconv without a pipeline: one frame in, one frame out.
#pragma once

#include <gst/gst.h>

#include "../media.h"

namespace tune {

class Filter {
 public:
  // Throws media::Failure where the plugin is not found.
  Filter();
  ~Filter();
  Filter(const Filter &) = delete;

  GstElement *element() const { return element_.get(); }
  // Warnings and errors of the element arrive here.
  GstBus *bus() const { return bus_.get(); }
  // Filters the frame in the sample with the settings of this moment. Returns null if the element drops the frame or
  // fails. After a failure the element starts anew with the next frame. Always the same thread calls.
  media::Owned<GstSample> filter(GstSample *sample);

 private:
  static GstFlowReturn take(GstPad *pad, GstObject *parent, GstBuffer *buffer);
  static gboolean take_event(GstPad *pad, GstObject *parent, GstEvent *event);
  bool start(GstCaps *caps);

  const media::Owned<GstElement> element_;
  const media::Owned<GstBus> bus_;
  media::Owned<GstPad> to_, from_;  // linked to the element's sink pad and source pad
  media::Owned<GstCaps> caps_;      // of the last frame; null: not started
  media::Owned<GstCaps> out_caps_;
  GstBuffer *out_ = nullptr;
};

}  // namespace tune
