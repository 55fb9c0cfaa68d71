// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvstream.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "gstcudaconvformat.h"
#include "gstcudaconvpinned.h"
#include "gstcudaconvroimetas.h"
#include "regions/strength.h"

namespace cudaconv::gst {

namespace {

// The layout of a picture of these caps. `as_progressive`: without the rows that only interlaced frames have, see
// loses_rows_in_cuda_memory().
FrameLayout layout_of(const GstVideoInfo &picture, const Settings &settings, bool interlaced, bool as_progressive) {
  FrameLayout layout;
  if (!describe_frame(picture, settings.border_color, &layout, interlaced, settings.filter.fill_color))
    throw Error(Error::Kind::Format,
                std::string(GST_VIDEO_INFO_NAME(&picture)) + " is not supported");  // nor by the pads
  for (PlaneLayout &plane : layout.plane)
    if (as_progressive)
      plane.height = std::min(plane.height, GST_VIDEO_SUB_SCALE(plane.sub_y, GST_VIDEO_INFO_HEIGHT(&picture)));
  return layout;
}

}  // namespace

StreamContext::StreamContext(const GstVideoInfo &video_info, bool from_cuda, bool to_cuda,
                             std::shared_ptr<Engine> filters_with, const Settings &wanted)
    : info(video_info),
      cuda_in(from_cuda),
      cuda_out(to_cuda),
      engine(std::move(filters_with)),
      settings(wanted),
      roi(wanted.roi, frame_size(video_info),
          GST_VIDEO_INFO_IS_INTERLACED(&video_info) || packing_of(video_info) >= Packing::Rows) {
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  const Packing packing = packing_of(info);
  const FilterSettings filter = settings.complete();
  settings.check_feather();
  for (const bool interlaced : {false, true}) {
    if (mode != GST_VIDEO_INTERLACE_MODE_MIXED && interlaced != (mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED))
      continue;
    for (const Packing each : {Packing::Mono, packing}) {
      if (each == Packing::Mono && packing != Packing::Mono && !may_be_mono(info)) continue;
      FrameKind &kind = kinds[interlaced][each != Packing::Mono];
      kind = kind_of_frames(interlaced, each, filter);
      method = engine->backend->method_of(*kind.views[0].plan);
    }
  }
  if (settings.roi.scale > 0 && filter.mask != Mask::Identity && RoiStrength::unused(filter).empty())
    strength = std::make_shared<RoiStrength>(filter, settings.roi.scale);
}

FrameKind StreamContext::kind_of_frames(bool interlaced, Packing packing, const FilterSettings &filter) const {
  // Rows of two views alternate like the rows of two fields. Their frames have the rows of progressive ones.
  const bool by_rows = packing == Packing::Rows, alternates = interlaced || by_rows,
             as_progressive = cuda_in || cuda_out || by_rows;
  FrameKind kind;
  kind.packing = packing;
  kind.layout = layout_of(info, settings, alternates, as_progressive);
  kind.output = layout_of(info, settings, alternates, cuda_out || by_rows);
  if (packing == Packing::Columns) {
    for (const int first : {0, 1})
      if (const FrameLayout layout = columns_of(kind.layout, first); layout.planes > 0)
        kind.views.push_back({first, 0, make_plan(filter, layout)});
    return kind;
  }
  for (const GstVideoRectangle &r : halves_of(info, kind.layout, packing)) {
    GstVideoInfo picture = info;
    picture.width = r.w;
    picture.height = r.h;
    FrameLayout layout = layout_of(picture, settings, alternates, as_progressive);
    // GStreamer 1.22 has no room for the last row of chroma of some interlaced frames; nor has the last view then.
    for (int p = 0; p < layout.planes; p++) {
      const PlaneLayout &whole = kind.layout.plane[p];
      layout.plane[p].height = std::min(layout.plane[p].height, whole.height - (r.y >> whole.sub_y));
    }
    kind.views.push_back({r.x, r.y, make_plan(filter, layout)});
  }
  return kind;
}

std::shared_ptr<const StreamContext> StreamContext::with(const Settings &wanted) const {
  return std::make_shared<const StreamContext>(info, cuda_in, cuda_out, engine, wanted);
}

std::shared_ptr<const StreamContext> StreamContext::with(std::shared_ptr<Engine> other) const {
  return std::make_shared<const StreamContext>(info, cuda_in, cuda_out, std::move(other), settings);
}

const FrameKind &StreamContext::kind_of(GstBuffer *buffer) const {
  const auto exists = [](const FrameKind(&kinds)[2]) { return !kinds[0].views.empty() || !kinds[1].views.empty(); };
  const bool interlaced =
      exists(kinds[1]) && (!exists(kinds[0]) || GST_BUFFER_FLAG_IS_SET(buffer, GST_VIDEO_BUFFER_FLAG_INTERLACED));
  return kinds[interlaced][packing_of(buffer, info) != Packing::Mono];
}

bool StreamContext::has_several_views() const {
  return std::any_of(&kinds[0][0], &kinds[0][0] + 4, [](const FrameKind &kind) { return kind.views.size() > 1; });
}

std::vector<PlannedView> StreamContext::plan_regions(GstBuffer *buffer, const RoiList &found,
                                                     const std::atomic<bool> &cancelled) const {
  const bool fields = has_fields(info), is_bottom = fields && GST_VIDEO_BUFFER_IS_BOTTOM_FIELD(buffer);
  const RoiSelection selection = roi.select(found, is_bottom ? 1 : 0, fields ? 2 : 1, Cancellation(&cancelled));
  const FrameKind &kind = kind_of(buffer);
  const bool columns = kind.packing == Packing::Columns;
  std::vector<PlannedView> planned;
  for (const View &view : kind.views) {
    RoiSelection selected = selection;
    if (!columns) move_regions(&selected.regions, -view.x, -view.y);
    PlannedView &here = planned.emplace_back();
    here.x = view.x;
    here.y = view.y;
    if (strength)
      here.planned = strength->plan(view.plan, std::move(selected), cancelled);
    else
      here.planned = {{view.plan, std::move(selected.regions)}};
    for (PlannedRegions &each : here.planned)
      if (columns) each.regions.first_column = view.x, each.regions.column_step = 2;
  }
  return planned;
}

void Frame::take_in_place(Ref<GstBuffer> &buffer) {
  map(out_map, buffer.get(), GST_MAP_READWRITE);
  out = std::move(buffer);
}

void Frame::map(std::optional<MappedFrame> &mapped, GstBuffer *buffer, GstMapFlags access) {
  const std::shared_ptr<Device> &device = context->engine->device;
  const FrameKind &kind = context->kind_of(buffer);
  bool on_device = false, pinned = false;
  // The CPU takes columns apart. CUDA memory is then mapped as system memory, which GStreamer copies.
  if (device && kind.packing != Packing::Columns) {
    on_device = device->owns(buffer);
    if (!on_device) pinned = is_pinned(buffer, device);
  }
  const bool in_order = on_device && may_leave && device->orders(buffer);  // before mapping uploads anything
  // GStreamer forgets that writes are pending before it waits for them: another holder of the memory may be waiting.
  const bool known = gst_buffer_is_writable(buffer) && gst_buffer_is_all_memory_writable(buffer);
  const bool is_input = access & GST_MAP_READ;
  const FrameLayout &layout = is_input ? kind.layout : kind.output;
  const MappedFrame::Place found = is_input ? place : MappedFrame::find(buffer, context->info, layout, access);
  mapped.emplace(buffer, context->info, layout, found, access, on_device, pinned);
  // After mapping: mapping uploads on the stream what the CPU has written, without waiting.
  if (on_device)
    mapped->set_stream(device->stream_of(buffer, !in_order && known && !(access & GST_MAP_WRITE)), in_order);
}

void Frame::submit(const std::atomic<bool> &cancelled) {
  if (in) {
    map(in_map, in.get(), GST_MAP_READ);
    map(out_map, out.get(), GST_MAP_WRITE);
  } else if (!out_map) {
    map(out_map, out.get(), GST_MAP_READWRITE);
  }
  const MappedFrame &from = in ? *in_map : *out_map;
  const FrameKind &kind = context->kind_of(out.get());
  const bool columns = kind.packing == Packing::Columns;
  for (PlannedView &view : views)
    if (columns) view.columns.emplace(view.planned.back().plan->layout, view.x, from.view(), !in);
  try {
    for (PlannedView &view : views) {
      const FrameView source = columns ? view.columns->source() : from.view_from(view.x, view.y, kind.layout),
                      target = columns ? view.columns->target() : out_map->view_from(view.x, view.y, kind.layout);
      view.ticket = context->engine->backend->submit(view.planned, source, target, &cancelled);
    }
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    try {
      retire();
    } catch (const Error &) {
    }
    std::rethrow_exception(why);
  }
}

void Frame::retire() {
  std::exception_ptr why;
  size_t left = 0;
  for (PlannedView &view : views) {
    bool complete = false;
    try {
      if (view.ticket) context->engine->backend->retire(*view.ticket);
      complete = view.ticket.has_value();
      if (complete && view.columns) view.columns->put(out_map->view());
    } catch (...) {
      why = std::current_exception();
    }
    view.ticket.reset();
    view.columns.reset();
    if (!complete) std::swap(views[left++], view);
  }
  if (left && !in) views.resize(left);
  if (why) std::rethrow_exception(why);
  if (!in || !out_map) return;  // `out` may have been pushed
  const FrameKind &kind = context->kind_of(out.get());
  out_map->repeat_rows(kind.layout, kind.output);
}

bool Frame::has_left() const {
  return std::all_of(views.begin(), views.end(), [](const PlannedView &view) { return view.ticket == kLeft; });
}

}  // namespace cudaconv::gst
