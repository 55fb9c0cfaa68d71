// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The context that frames are filtered with, and a single frame in flight.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "gstcudaconvengine.h"
#include "gstcudaconvframe.h"
#include "gstcudaconvproperties.h"
#include "gstcudaconvstereo.h"

namespace cudaconv::gst {

class RoiStrength;

// One picture of a frame, filtered as a frame of its own: the whole frame, or one view of frame-packed stereo. The
// views of row-interleaved stereo are one picture with an interlaced layout.
struct View {
  int x, y;  // its first pixel in the frame
  std::shared_ptr<const Plan> plan;
};
struct PlannedView {
  int x, y;
  std::vector<PlannedRegions> planned;  // never empty
  std::optional<ColumnView> columns;    // of a column-interleaved frame, while the backend has it
  std::optional<Ticket> ticket;         // while the backend has the view
};

struct FrameKind {
  Packing packing = Packing::Mono;
  FrameLayout layout;  // of the whole frame
  FrameLayout output;  // of the result, with rows that CUDA memory at the input lacks
  std::vector<View> views;
};

// All data for filtering frames. A change of caps, settings or backend makes a new context, and each frame keeps the
// one that it began with. Contexts never change, except that roi-scale adds plans and the first frame makes the pixels
// of polygons.
struct StreamContext {
  GstVideoInfo info;
  bool cuda_in, cuda_out;  // whether the caps of the pads name CUDA memory
  std::shared_ptr<Engine> engine;
  Settings settings;
  RoiSelector roi;
  // Frames of the caps may be progressive or interlaced, and hold one picture or two; no views where caps rule that
  // out.
  FrameKind kinds[2][2];                  // [interlaced][packed]
  Method method;                          // the one that the backend uses for the first pass
  std::shared_ptr<RoiStrength> strength;  // by roi-scale; nullptr: strength is as set

  // Throws Error where the settings cannot be carried out, or views cannot be filtered apart.
  StreamContext(const GstVideoInfo &video_info, bool from_cuda, bool to_cuda, std::shared_ptr<Engine> filters_with,
                const Settings &wanted);

  // A copy with other settings, or with another engine. Throws Error.
  std::shared_ptr<const StreamContext> with(const Settings &wanted) const;
  std::shared_ptr<const StreamContext> with(std::shared_ptr<Engine> other) const;

  // The kind of the buffer's frame, by its flags where the caps leave that open.
  const FrameKind &kind_of(GstBuffer *buffer) const;
  bool has_several_views() const;  // whether a frame may have
  // The plans for the views of `buffer` and their regions, where the regions `found` are in force. For the sink pad's
  // streaming thread alone. Throws Error{Cancelled} when `cancelled` becomes true.
  std::vector<PlannedView> plan_regions(GstBuffer *buffer, const RoiList &found,
                                        const std::atomic<bool> &cancelled) const;
  bool passthrough() const { return settings.filter.mask == Mask::Identity && cuda_in == cuda_out; }
  // Whether frames are filtered in place, if their buffers allow it.
  bool suits_in_place() const { return (settings.roi.meta || !settings.roi.rectangles.empty()) && cuda_in == cuda_out; }

 private:
  FrameKind kind_of_frames(bool interlaced, Packing packing, const FilterSettings &filter) const;
};

// A frame in flight: its backend reads the input and writes the output until it is retired.
struct Frame {
  std::shared_ptr<const StreamContext> context;
  // `in` is empty where the frame is filtered in place, `out` once that has been pushed or the frame dropped.
  Ref<GstBuffer> in, out;
  MappedFrame::Place place;        // of the frame in the input buffer
  std::vector<PlannedView> views;  // never empty
  bool may_leave = false;          // see has_left()
  std::optional<MappedFrame> in_map, out_map;

  // Takes `buffer` as input and output, and maps it. Throws Error and FrameError where it cannot be mapped, and leaves
  // it alone.
  void take_in_place(Ref<GstBuffer> &buffer);
  // Maps the buffers and hands their views to the backend, which gives up when `cancelled` becomes true. Throws Error
  // and FrameError; nothing of the frame is then in flight. Frames of two views must be alone in flight.
  void submit(const std::atomic<bool> &cancelled);
  // Waits until all views are complete. Throws Error. A frame in place then has only the views that are not complete,
  // since no view may be filtered twice.
  void retire();
  // Whether nobody has to wait for the frame, since streams order all work on its memory.
  bool has_left() const;
  // Whether another backend can filter the frame after a device has failed on it: its input is unchanged, except in
  // place in CUDA memory.
  bool can_be_filtered_again() const { return in || !context->cuda_out; }
  void unmap() {
    in_map.reset();
    out_map.reset();
  }
  // Whether readers of the output wait for its CUDA stream, so that it may be pushed before it is complete.
  bool is_stream_ordered() const { return out_map && out_map->view().stream; }

 private:
  void map(std::optional<MappedFrame> &mapped, GstBuffer *buffer, GstMapFlags access);
};

}  // namespace cudaconv::gst
