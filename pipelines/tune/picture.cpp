// SPDX-License-Identifier: LGPL-2.1-or-later
#include "picture.h"

namespace tune {

namespace {

constexpr GstVideoFormat kSurfaceFormat =  // CAIRO_FORMAT_RGB24 is in the byte order of the host
    G_BYTE_ORDER == G_LITTLE_ENDIAN ? GST_VIDEO_FORMAT_BGRx : GST_VIDEO_FORMAT_xRGB;

// Describes the pixels of a surface with the size of the frame.
GstVideoInfo surface_info(const GstVideoInfo &frame, int stride) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, kSurfaceFormat, frame.width, frame.height);
  info.stride[0] = stride;
  info.size = static_cast<gsize>(stride) * frame.height;
  // The converter refuses to change these.
  info.interlace_mode = frame.interlace_mode;
  info.fps_n = frame.fps_n;
  info.fps_d = frame.fps_d;
  return info;
}

}  // namespace

void Converter::set_up(const GstVideoInfo *info) {
  if (converter_) gst_video_converter_free(converter_);
  converter_ = nullptr;
  if (!info) return;
  info_ = *info;
  GstVideoInfo out = surface_info(info_, 4 * info_.width);
  GstStructure *options = gst_structure_new("options", GST_VIDEO_CONVERTER_OPT_THREADS, G_TYPE_UINT, 0, nullptr);
  converter_ = gst_video_converter_new(&info_, &out, options);  // 0: a thread for each processor
}

Surface Converter::convert(GstSample *sample) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, gst_sample_get_caps(sample))) return {};
  // GStreamer's converter takes the only row of a frame for that of the frame before.
  if (!converter_ || info.height == 1 || !gst_video_info_is_equal(&info, &info_)) set_up(&info);
  Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, info.width, info.height));
  if (!converter_ || cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) return {};

  GstVideoInfo out_info = surface_info(info, cairo_image_surface_get_stride(surface.get()));
  GstBuffer *out =
      gst_buffer_new_wrapped_full(static_cast<GstMemoryFlags>(0), cairo_image_surface_get_data(surface.get()),
                                  out_info.size, 0, out_info.size, nullptr, nullptr);
  GstVideoFrame from, to;
  bool good = gst_video_frame_map(&from, &info, gst_sample_get_buffer(sample), GST_MAP_READ);
  if (good) {
    good = gst_video_frame_map(&to, &out_info, out, GST_MAP_WRITE);
    if (good) {
      gst_video_converter_frame(converter_, &from, &to);
      gst_video_frame_unmap(&to);
    }
    gst_video_frame_unmap(&from);
  }
  gst_buffer_unref(out);
  cairo_surface_mark_dirty(surface.get());
  if (!good) surface.reset();
  return surface;
}

}  // namespace tune
