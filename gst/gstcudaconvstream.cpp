// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvstream.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "gstcudaconvformat.h"
#include "gstcudaconvpinned.h"
#include "gstcudaconvworkers.h"
#include "plan/maskparser.h"

namespace cudaconv::gst {

FilterSettings Settings::complete() const {
  FilterSettings result = filter;
  if ((filter.mask == Mask::Custom || filter.shape == Shape::Custom) && !coefficients.empty())
    result.coefficients = parse_coefficients(coefficients);
  return result;
}

std::shared_ptr<Engine> make_cpu_engine(const GstVideoInfo &info, guint threads) {
  // From about this many pixels on it pays off to use one more thread.
  constexpr int kPixelsPerThread = 1 << 15;
  const gint64 pixels = static_cast<gint64>(GST_VIDEO_INFO_WIDTH(&info)) * GST_VIDEO_INFO_HEIGHT(&info);
  const int count = threads ? static_cast<int>(threads)
                            : static_cast<int>(std::clamp<gint64>(pixels / kPixelsPerThread, 1, worker_count()));
  return std::make_shared<Engine>(Engine{nullptr, make_cpu_backend(make_parallel_for(count), count), {}});
}

std::shared_ptr<Engine> make_cuda_engine(std::shared_ptr<Device> device) {
  // Threads for copies of staging memory: a few fill the bus, and more would keep the threads of other elements
  // waiting.
  std::shared_ptr<Backend> backend = device->make_backend(make_parallel_for(std::min(worker_count(), 8)));
  return std::make_shared<Engine>(Engine{std::move(device), std::move(backend), {}});
}

namespace {

bool is_packed_stereo(const GstVideoInfo &info) {
  const GstVideoMultiviewMode mode = GST_VIDEO_INFO_MULTIVIEW_MODE(&info);
  return mode == GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE || mode == GST_VIDEO_MULTIVIEW_MODE_TOP_BOTTOM;
}

// The pictures of a frame; with `packed` the two views of stereo, unless the frame is too small for two. The seam lies
// in the middle, or before it where the middle would cut through a pixel of subsampled planes.
std::vector<GstVideoRectangle> pictures_of(const GstVideoInfo &info, const FrameLayout &layout, bool packed) {
  const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_FIELD_HEIGHT(&info);
  int unit_x = 1, unit_y = layout.interlaced ? 2 : 1;
  for (int p = 0; p < layout.planes; p++) {
    unit_x = std::max(unit_x, 1 << layout.plane[p].sub_x);
    unit_y = std::max(unit_y, (layout.interlaced ? 2 : 1) << layout.plane[p].sub_y);
  }
  const int x = width / 2 / unit_x * unit_x, y = height / 2 / unit_y * unit_y;
  const int frame_height = GST_VIDEO_INFO_HEIGHT(&info), fields = frame_height > height ? 2 : 1;
  const bool beside = GST_VIDEO_INFO_MULTIVIEW_MODE(&info) == GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE;
  if (packed && beside && x > 0) return {{0, 0, x, frame_height}, {x, 0, width - x, frame_height}};
  if (packed && !beside && y > 0) return {{0, 0, width, fields * y}, {0, y, width, frame_height - fields * y}};
  return {{0, 0, width, frame_height}};
}

}  // namespace

StreamContext::StreamContext(const GstVideoInfo &video_info, bool from_cuda, bool to_cuda,
                             std::shared_ptr<Engine> filters_with, const Settings &wanted)
    : info(video_info),
      cuda_in(from_cuda),
      cuda_out(to_cuda),
      engine(std::move(filters_with)),
      settings(wanted),
      roi(wanted.roi, video_info) {
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  if (mode == GST_VIDEO_INTERLACE_MODE_FIELDS)
    throw Error(Error::Kind::Format, "interlace-mode=fields is not supported; use interlace-mode=alternate");
  if (GST_VIDEO_INFO_MULTIVIEW_MODE(&info) == GST_VIDEO_MULTIVIEW_MODE_SEPARATED)
    throw Error(Error::Kind::Format, "multiview-mode=separated is not supported");
  const FilterSettings filter = settings.complete();
  const auto layout_of = [&](const GstVideoInfo &picture, bool interlaced, bool in_cuda_memory) {
    FrameLayout layout;
    if (!describe_frame(picture, settings.border_color, &layout, interlaced, settings.filter.fill_color))
      throw Error(Error::Kind::Format, std::string("format ") + GST_VIDEO_INFO_NAME(&info) +
                                           " is not supported; convert it with videoconvert");
    // CUDA memory has no room for rows that only interlaced frames have, see loses_rows_in_cuda_memory().
    for (PlaneLayout &plane : layout.plane)
      if (in_cuda_memory)
        plane.height = std::min(plane.height, GST_VIDEO_SUB_SCALE(plane.sub_y, GST_VIDEO_INFO_HEIGHT(&picture)));
    return layout;
  };
  const bool stereo = is_packed_stereo(info),
             may_be_mono = GST_VIDEO_INFO_MULTIVIEW_FLAGS(&info) & GST_VIDEO_MULTIVIEW_FLAGS_MIXED_MONO;
  for (const bool interlaced : {false, true}) {
    if (mode != GST_VIDEO_INTERLACE_MODE_MIXED && interlaced != (mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED))
      continue;
    for (const bool packed : {false, true}) {
      if (packed ? !stereo : stereo && !may_be_mono) continue;
      FrameKind &kind = kinds[interlaced][packed];
      kind.layout = layout_of(info, interlaced, cuda_in || cuda_out);
      kind.output = layout_of(info, interlaced, cuda_out);
      for (const GstVideoRectangle &r : pictures_of(info, kind.layout, packed)) {
        GstVideoInfo picture = info;
        picture.width = r.w;
        picture.height = r.h;
        FrameLayout layout = layout_of(picture, interlaced, cuda_in || cuda_out);
        // GStreamer 1.22 has no room for the last row of chroma of some interlaced frames; nor has the last view then.
        for (int p = 0; p < layout.planes; p++) {
          const PlaneLayout &whole = kind.layout.plane[p];
          layout.plane[p].height = std::min(layout.plane[p].height, whole.height - (r.y >> whole.sub_y));
        }
        kind.views.push_back({r.x, r.y, make_plan(filter, layout)});
      }
      method = engine->backend->method_of(*kind.views[0].plan);
    }
  }
  if (settings.roi.scale > 0 && filter.mask != Mask::Identity && RoiStrength::unused(filter).empty())
    strength = std::make_shared<RoiStrength>(filter, settings.roi.scale);
}

std::shared_ptr<const StreamContext> StreamContext::with(const Settings &wanted) const {
  return std::make_shared<const StreamContext>(info, cuda_in, cuda_out, engine, wanted);
}

std::shared_ptr<const StreamContext> StreamContext::with(std::shared_ptr<Engine> other) const {
  return std::make_shared<const StreamContext>(info, cuda_in, cuda_out, std::move(other), settings);
}

const FrameKind &StreamContext::kind_of(GstBuffer *buffer) const {
  const auto flag = [buffer](guint flag) { return (GST_BUFFER_FLAGS(buffer) & flag) != 0; };
  const auto exists = [](const FrameKind(&kinds)[2]) { return !kinds[0].views.empty() || !kinds[1].views.empty(); };
  const bool interlaced = exists(kinds[1]) && (!exists(kinds[0]) || flag(GST_VIDEO_BUFFER_FLAG_INTERLACED));
  const FrameKind(&of_rows)[2] = kinds[interlaced];
  const bool packed =
      !of_rows[1].views.empty() && (of_rows[0].views.empty() || flag(GST_VIDEO_BUFFER_FLAG_MULTIPLE_VIEW));
  return of_rows[packed];
}

std::vector<PlannedView> StreamContext::plan_regions(GstBuffer *buffer, const RoiList &found,
                                                     const std::atomic<bool> &cancelled) const {
  const RoiSelection selection = roi.select(found, buffer, info);
  std::vector<PlannedView> planned;
  for (const View &view : kind_of(buffer).views) {
    RoiSelection selected = selection;
    move_regions(&selected.regions, -view.x, -view.y);
    if (strength)
      planned.push_back({view.x, view.y, strength->plan(view.plan, std::move(selected), cancelled)});
    else
      planned.push_back({view.x, view.y, {{view.plan, std::move(selected.regions)}}});
  }
  return planned;
}

GstClockTime add_times(GstClockTime a, GstClockTime b) {
  GstClockTime sum;
  const bool fits = !__builtin_add_overflow(a, b, &sum) && sum <= G_MAXINT64;
  return fits ? sum : std::max<GstClockTime>(a, G_MAXINT64);
}

GstClockTime end_time(GstBuffer *buffer) {
  const GstClockTime time = GST_BUFFER_PTS(buffer);
  return GST_BUFFER_DURATION_IS_VALID(buffer) ? add_times(time, GST_BUFFER_DURATION(buffer)) : time;
}

GstClockTime StreamContext::buffer_duration() const {
  if (info.fps_n < 1 || info.fps_d < 1) return 0;
  return gst_util_uint64_scale(GST_SECOND, info.fps_d, gint64{has_fields(info) ? 2 : 1} * info.fps_n);
}

void Frame::take_in_place(Ref<GstBuffer> &buffer) {
  map(out_map, buffer.get(), GST_MAP_READWRITE);
  out = std::move(buffer);
}

void Frame::map(std::optional<MappedFrame> &mapped, GstBuffer *buffer, GstMapFlags access) {
  const std::shared_ptr<Device> &device = context->engine->device;
  BufferMemory memory;
  if (device) {
    memory.on_device = device->owns(buffer);
    if (!memory.on_device) memory.pinned = is_pinned(buffer, device);
  }
  // GStreamer forgets that writes are pending before it waits for them: another holder of the memory may be waiting.
  const bool known = gst_buffer_is_writable(buffer) && gst_buffer_is_all_memory_writable(buffer);
  const FrameKind &kind = context->kind_of(buffer);
  const bool is_input = access & GST_MAP_READ;
  const FrameLayout &layout = is_input ? kind.layout : kind.output;
  const MappedFrame::Place found = is_input ? place : MappedFrame::find(buffer, context->info, layout, access);
  mapped.emplace(buffer, context->info, layout, found, access, memory);
  // After mapping: mapping uploads on the stream what the CPU has written, without waiting.
  if (memory.on_device) mapped->set_stream(device->stream_of(buffer, known && !(access & GST_MAP_WRITE)));
}

void Frame::submit(const std::atomic<bool> &cancelled) {
  if (in) {
    map(in_map, in.get(), GST_MAP_READ);
    map(out_map, out.get(), GST_MAP_WRITE);
  } else if (!out_map) {
    map(out_map, out.get(), GST_MAP_READWRITE);
  }
  tickets.clear();
  tickets.reserve(views.size());  // without memory for its ticket, a view would stay on the device
  try {
    for (const auto &[x, y, planned] : views)
      tickets.push_back(context->engine->backend->submit(planned, (in ? in_map : out_map)->view_from(x, y),
                                                         out_map->view_from(x, y), &cancelled));
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
  for (size_t i = 0; i < views.size(); i++) {
    bool complete = false;
    try {
      if (i < tickets.size()) context->engine->backend->retire(tickets[i]);
      complete = i < tickets.size();
    } catch (...) {
      why = std::current_exception();
    }
    if (!complete) std::swap(views[left++], views[i]);
  }
  tickets.clear();
  if (left && !in) views.resize(left);
  if (why) std::rethrow_exception(why);
  if (!in || !out_map) return;  // `out` may have been pushed
  const FrameKind &kind = context->kind_of(out.get());
  out_map->repeat_rows(kind.layout, kind.output);
}

bool Frame::is_done() const {
  try {
    return std::all_of(tickets.begin(), tickets.end(),
                       [this](Ticket ticket) { return context->engine->backend->is_done(ticket); });
  } catch (const Error &) {
    return true;
  }
}

}  // namespace cudaconv::gst
