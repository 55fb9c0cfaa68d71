// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvstream.h"

#include <algorithm>
#include <utility>

#include "gstcudaconvformat.h"
#include "gstcudaconvmessages.h"
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

StreamContext::StreamContext(const GstVideoInfo &video_info, bool from_cuda, bool to_cuda,
                             std::shared_ptr<Engine> filters_with, const Settings &wanted)
    : info(video_info),
      cuda_in(from_cuda),
      cuda_out(to_cuda),
      engine(std::move(filters_with)),
      settings(wanted),
      roi(wanted.roi) {
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  if (mode == GST_VIDEO_INTERLACE_MODE_FIELDS)
    throw Error(Error::Kind::Format, "interlace-mode=fields is not supported");
  if (GST_VIDEO_INFO_MULTIVIEW_MODE(&info) == GST_VIDEO_MULTIVIEW_MODE_SEPARATED)
    throw Error(Error::Kind::Format, "multiview-mode=separated is not supported");
  const FilterSettings filter = settings.complete();
  const auto plan = [&](bool fields) {
    FrameLayout layout;
    if (!describe_frame(info, settings.border_color, &layout, fields))
      throw Error(Error::Kind::Format, std::string("format ") + GST_VIDEO_INFO_NAME(&info) + " is not supported");
    return make_plan(filter, layout);
  };
  if (mode != GST_VIDEO_INTERLACE_MODE_INTERLEAVED) progressive = plan(false);
  if (mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED || mode == GST_VIDEO_INTERLACE_MODE_MIXED) interlaced = plan(true);
  method = engine->backend->method_of(progressive ? *progressive : *interlaced);
  if (settings.roi.scale > 0 && filter.mask != Mask::Identity && RoiStrength::unused(filter).empty())
    strength = std::make_shared<RoiStrength>(filter, settings.roi.scale);
}

std::shared_ptr<const StreamContext> StreamContext::with(const Settings &wanted) const {
  return std::make_shared<const StreamContext>(info, cuda_in, cuda_out, engine, wanted);
}

std::shared_ptr<const StreamContext> StreamContext::with(std::shared_ptr<Engine> other) const {
  return std::make_shared<const StreamContext>(info, cuda_in, cuda_out, std::move(other), settings);
}

const std::shared_ptr<const Plan> &StreamContext::plan_for(GstBuffer *buffer) const {
  if (!interlaced) return progressive;
  if (!progressive || GST_BUFFER_FLAG_IS_SET(buffer, GST_VIDEO_BUFFER_FLAG_INTERLACED)) return interlaced;
  return progressive;
}

std::vector<PlannedRegions> StreamContext::plan_regions(GstBuffer *buffer, const RoiList &found) const {
  RoiSelection selection = roi.select(found, buffer, info);
  const std::shared_ptr<const Plan> &plan = plan_for(buffer);
  if (strength) return strength->plan(plan, std::move(selection));
  return {{plan, std::move(selection.regions)}};
}

GstClockTime StreamContext::buffer_duration() const {
  if (info.fps_n < 1 || info.fps_d < 1) return 0;
  const int fields = GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_ALTERNATE ? 2 : 1;
  return gst_util_uint64_scale(GST_SECOND, info.fps_d, gint64{fields} * info.fps_n);
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
    if (memory.on_device)
      memory.stream = device->stream_of(buffer, access);
    else
      memory.pinned = is_pinned(buffer, device);
  }
  const FrameLayout &layout = context->plan_for(buffer)->layout;
  const bool is_input = access & GST_MAP_READ;
  const MappedFrame::Place found = is_input ? place : MappedFrame::find(buffer, context->info, layout, access);
  mapped.emplace(buffer, context->info, layout, found, access, memory);
}

void Frame::submit(const std::atomic<bool> &cancelled) {
  if (in) {
    map(in_map, in.get(), GST_MAP_READ);
    map(out_map, out.get(), GST_MAP_WRITE);
  } else {
    if (!out_map) map(out_map, out.get(), GST_MAP_READWRITE);
    // A frame in place: a device that fails may have overwritten some of its source, which another backend still needs.
    if (saved)
      saved->put_back(out_map->view());
    else if (context->engine->cuda() && !out_map->view().on_device)
      saved.emplace(out_map->view(), planned[0].plan->layout, planned);
  }
  const FrameView &from = in ? in_map->view() : out_map->view();
  ticket = context->engine->backend->submit(planned, from, out_map->view(), &cancelled);
}

GstStructure *make_stats(const StreamContext *context, const BackendStats &totals, guint failovers) {
  const char *method = nullptr;
  if (context) {
    const bool selected = context->settings.filter.method != Method::Auto;
    method = totals.kernels && !selected ? totals.kernels : method_nick(context->method);
  }
  // clang-format off
  return gst_structure_new(
      "application/x-cudaconv-stats",
      "frames", G_TYPE_UINT64, static_cast<guint64>(totals.frames),
      "backend", G_TYPE_STRING, context ? context->engine->backend->name() : nullptr,
      "method", G_TYPE_STRING, method,
      "device-time", G_TYPE_UINT64, static_cast<guint64>(totals.device_ns),
      "bytes-uploaded", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_uploaded),
      "bytes-downloaded", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_downloaded),
      "bytes-staged", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_staged),
      "failovers", G_TYPE_UINT, failovers,
      nullptr);
  // clang-format on
}

void log_stats(void *object, const StreamContext *context, const BackendStats &totals, guint failovers) {
  if (gst_debug_category_get_threshold(GST_CAT_DEFAULT) < GST_LEVEL_INFO) return;
  GstStructure *stats = make_stats(context, totals, failovers);
  GST_INFO_OBJECT(object, "%" GST_PTR_FORMAT, stats);
  gst_structure_free(stats);
}

}  // namespace cudaconv::gst
