// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What frames are filtered with, and a frame on its way.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <optional>
#include <string>

#include "backend.h"
#include "gstcudaconvdevice.h"
#include "gstcudaconvframe.h"
#include "gstcudaconvroi.h"

namespace cudaconv::gst {

struct Unref {
  void operator()(GstBuffer *buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstQuery *query) const { gst_query_unref(query); }
  void operator()(gpointer object) const { gst_object_unref(object); }
};
template <typename T>
using Ref = std::unique_ptr<T, Unref>;

// What the user asks for, as the properties have it.
struct Settings {
  FilterSettings filter;              // its coefficients are not filled in
  std::string coefficients;           // text
  guint32 border_color = 0xff000000;  // ARGB
  RoiSettings roi;

  // With the coefficients read, where the mask takes any. Throws Error{Settings}.
  FilterSettings complete() const;
};

struct Engine {
  std::shared_ptr<Backend> backend;
  bool cuda;
  BackendStats counted;  // what of the backend's statistics is in those of the element

  Engine(std::shared_ptr<Backend> b, bool on_cuda) : backend(std::move(b)), cuda(on_cuda) {}
};

// Everything that frames are filtered with. Never changed: a change of caps, of settings or of the backend makes
// another, and a frame keeps to the one that it began with.
struct StreamContext {
  GstVideoInfo info;
  bool cuda_in, cuda_out;  // memory by the caps
  std::shared_ptr<Engine> engine;
  Settings settings;
  RoiSelector roi;
  std::shared_ptr<const Plan> progressive, interlaced;  // either may be missing where the caps rule it out
  Method method;                                        // in use

  // Throws Error.
  StreamContext(const GstVideoInfo &video_info, bool from_cuda, bool to_cuda, std::shared_ptr<Engine> filters_with,
                const Settings &wanted);

  // The same but for these. Throw Error.
  std::shared_ptr<const StreamContext> with(const Settings &wanted) const;
  std::shared_ptr<const StreamContext> with(std::shared_ptr<Engine> other) const;

  const std::shared_ptr<const Plan> &plan_for(GstBuffer *buffer) const;
  bool passthrough() const { return settings.filter.mask == Mask::Identity && cuda_in == cuda_out; }
  // 0 where the caps do not tell.
  GstClockTime buffer_duration() const;
};

// A frame and its backend, which has its input until it is retired.
struct Frame {
  std::shared_ptr<const StreamContext> context;
  Ref<GstBuffer> in, out;  // no longer `out` once that has been pushed
  std::optional<MappedFrame> in_map, out_map;
  Ticket ticket = 0;
  guint most_in_flight = G_MAXUINT;  // for upstream's sake

  // Maps the buffers and hands them to the backend; `device` is that of a CUDA backend. Throws Error and FrameError.
  void submit(const std::shared_ptr<Device> &device);
  void unmap() {
    in_map.reset();
    out_map.reset();
  }
};

}  // namespace cudaconv::gst
