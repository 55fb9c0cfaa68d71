// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What frames are filtered with, and a frame in flight.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "gstcudaconvdevice.h"
#include "gstcudaconvframe.h"
#include "gstcudaconvref.h"
#include "gstcudaconvroi.h"
#include "gstcudaconvroistrength.h"

namespace cudaconv::gst {

// What the user asks for, as the properties have it.
struct Settings {
  FilterSettings filter;              // its coefficients are not filled in
  std::string coefficients;           // text
  guint32 border_color = 0xff000000;  // ARGB
  RoiSettings roi;

  // With the coefficients read, where the mask takes any. Throws Error{Settings}.
  FilterSettings complete() const;
};

// A backend and the device that it runs on, if any.
struct Engine {
  std::shared_ptr<Device> device;  // nullptr: the CPU
  std::shared_ptr<Backend> backend;
  BackendStats counted;  // what of the backend's statistics is in those of the element

  bool cuda() const { return device != nullptr; }
};

// A CPU backend for frames of this size. `threads` of 0: as many as pay off.
std::shared_ptr<Engine> make_cpu_engine(const GstVideoInfo &info, guint threads);
// A CUDA backend on the device. Throws Error.
std::shared_ptr<Engine> make_cuda_engine(std::shared_ptr<Device> device);

// Everything that frames are filtered with. Never changed, but for the plans that roi-scale adds: a change of caps, of
// settings or of the backend makes another, and a frame keeps to the one that it began with.
struct StreamContext {
  GstVideoInfo info;
  bool cuda_in, cuda_out;  // memory by the caps
  std::shared_ptr<Engine> engine;
  Settings settings;
  RoiSelector roi;
  std::shared_ptr<const Plan> progressive, interlaced;  // either may be missing where the caps rule it out
  Method method;                                        // in use
  std::shared_ptr<RoiStrength> strength;                // nullptr: as set

  // Throws Error.
  StreamContext(const GstVideoInfo &video_info, bool from_cuda, bool to_cuda, std::shared_ptr<Engine> filters_with,
                const Settings &wanted);

  // The same but for these. Throw Error.
  std::shared_ptr<const StreamContext> with(const Settings &wanted) const;
  std::shared_ptr<const StreamContext> with(std::shared_ptr<Engine> other) const;

  const std::shared_ptr<const Plan> &plan_for(GstBuffer *buffer) const;
  // What is done to `buffer`, with which these regions have come. The thread of upstream's alone.
  std::vector<PlannedRegions> plan_regions(GstBuffer *buffer, const RoiList &found) const;
  bool passthrough() const { return settings.filter.mask == Mask::Identity && cuda_in == cuda_out; }
  // 0 where the caps do not tell.
  GstClockTime buffer_duration() const;
};

// A frame in flight: its backend reads the input and writes the output until it is retired.
struct Frame {
  std::shared_ptr<const StreamContext> context;
  // `in` is missing where the frame is filtered in place, and `out` once that has been pushed.
  Ref<GstBuffer> in, out;
  std::vector<PlannedRegions> planned;  // never empty
  std::optional<MappedFrame> in_map, out_map;
  std::optional<SavedPixels> saved;  // of a frame in place
  Ticket ticket = 0;

  // Takes `buffer` for input and output, and maps it. Throws FrameError where it cannot be mapped, and takes nothing.
  void take_in_place(Ref<GstBuffer> &buffer);
  // Maps the buffers and hands them to the backend, which gives up when `cancelled` becomes true. Throws Error and
  // FrameError.
  void submit(const std::atomic<bool> &cancelled);
  // Whether, after a device has failed on the frame, another backend can filter it: its input is as it was, or can be
  // made so.
  bool can_be_filtered_again() const { return in || saved; }
  void unmap() {
    in_map.reset();
    out_map.reset();
  }
  // Whether who reads the output does so after what is on its stream, so that it may be pushed before it is complete.
  bool is_stream_ordered() const { return out_map && out_map->view().stream; }

 private:
  void map(std::optional<MappedFrame> &mapped, GstBuffer *buffer, GstMapFlags access);
};

// The value of the property "stats"; `context` is nullptr where there are no caps. Transfer full.
GstStructure *make_stats(const StreamContext *context, const BackendStats &totals, guint failovers);

// Writes that value to GStreamer's log, about `object`.
void log_stats(void *object, const StreamContext *context, const BackendStats &totals, guint failovers);

}  // namespace cudaconv::gst
