// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvstream.h"

#include <utility>

#include "gstcudaconvformat.h"
#include "gstcudaconvpinned.h"
#include "maskparser.h"

namespace cudaconv::gst {

FilterSettings Settings::complete() const {
  FilterSettings result = filter;
  if ((filter.mask == Mask::Custom || filter.shape == Shape::Custom) && !coefficients.empty())
    result.coefficients = parse_coefficients(coefficients);
  return result;
}

StreamContext::StreamContext(const GstVideoInfo &video_info, bool from_cuda, bool to_cuda,
                             std::shared_ptr<Engine> filters_with, const Settings &wanted)
    : info(video_info),
      cuda_in(from_cuda),
      cuda_out(to_cuda),
      engine(std::move(filters_with)),
      settings(wanted),
      roi(wanted.roi) {
  FrameLayout layout;
  if (!describe_frame(info, settings.border_color, &layout))
    throw Error(Error::Kind::Settings, std::string("format ") + GST_VIDEO_INFO_NAME(&info) + " is not supported");
  const FilterSettings filter = settings.complete();
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  if (mode == GST_VIDEO_INTERLACE_MODE_FIELDS)
    throw Error(Error::Kind::Settings, "interlace-mode=fields is not supported");
  if (mode != GST_VIDEO_INTERLACE_MODE_INTERLEAVED) progressive = make_plan(filter, layout);
  if (mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED || mode == GST_VIDEO_INTERLACE_MODE_MIXED) {
    layout.interlaced = true;
    interlaced = make_plan(filter, layout);
  }
  method = engine->backend->method_of(progressive ? *progressive : *interlaced);
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

GstClockTime StreamContext::buffer_duration() const {
  if (info.fps_n < 1 || info.fps_d < 1) return 0;
  const int fields = GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_ALTERNATE ? 2 : 1;
  return gst_util_uint64_scale(GST_SECOND, info.fps_d, gint64{fields} * info.fps_n);
}

void Frame::submit(const std::shared_ptr<Device> &device) {
  const std::shared_ptr<const Plan> &plan = context->plan_for(in.get());
  const Regions regions = context->roi.regions_of(in.get(), context->info);
  const auto map = [&](std::optional<MappedFrame> &mapped, GstBuffer *buffer, GstMapFlags access) {
    BufferMemory memory;
    if (context->engine->cuda) {
      memory.on_device = device->owns(buffer);
      if (memory.on_device)
        memory.stream = device->stream_of(buffer, access);
      else
        memory.pinned = is_pinned(buffer, device);
    }
    mapped.emplace(buffer, context->info, plan->layout, access, memory);
  };
  map(in_map, in.get(), GST_MAP_READ);
  map(out_map, out.get(), GST_MAP_WRITE);
  ticket = context->engine->backend->submit(plan, in_map->view(), out_map->view(), regions);
}

}  // namespace cudaconv::gst
