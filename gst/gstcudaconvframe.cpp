// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvframe.h"

#include <string>

#include "gstcudaconvformat.h"

namespace cudaconv::gst {

namespace {

// GST_MAP_CUDA by its definition, so that mapping needs no CUDA headers.
constexpr int kMapCuda = GST_MAP_FLAG_LAST << 1;

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

// gst_video_frame_map() takes a disagreement of meta and caps for a mistake in the program.
void check_meta(GstBuffer *buffer, const GstVideoInfo &info) {
  const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
  if (!meta) return;
  if (meta->format != GST_VIDEO_INFO_FORMAT(&info) || meta->n_planes != GST_VIDEO_INFO_N_PLANES(&info))
    throw FrameError(std::string("a buffer's GstVideoMeta says format ") + gst_video_format_to_string(meta->format) +
                     ", its caps say " + gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info)));
  const int width = static_cast<int>(meta->width), height = static_cast<int>(meta->height);
  if (width < GST_VIDEO_INFO_WIDTH(&info) || height < GST_VIDEO_INFO_HEIGHT(&info))
    throw FrameError("a buffer's GstVideoMeta says " + size_text(width, height) + ", which is smaller than the caps' " +
                     size_text(GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info)));
}

}  // namespace

MappedFrame::MappedFrame(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout, GstMapFlags flags,
                         const BufferMemory &memory) {
  check_meta(buffer, info);
  const int all_flags = flags | (memory.on_device ? kMapCuda : 0);
  if (!gst_video_frame_map(&frame_, &info, buffer, static_cast<GstMapFlags>(all_flags)))
    throw FrameError("a buffer of " + std::to_string(gst_buffer_get_size(buffer)) +
                     " bytes could not be mapped as a frame of " +
                     size_text(GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info)) + " " +
                     gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info)));
  try {
    for (int p = 0; p < layout.planes; p++) check_plane(layout.plane[p]);
  } catch (...) {
    gst_video_frame_unmap(&frame_);
    throw;
  }
  for (guint i = 0; i < GST_VIDEO_FRAME_N_PLANES(&frame_); i++)
    view_.plane[i] = {static_cast<uint8_t *>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, i)),
                      GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i)};
  view_.on_device = memory.on_device;
  view_.pinned = memory.pinned;
  view_.stream = memory.stream;
}

// A GstVideoMeta can say anything about strides and offsets.
void MappedFrame::check_plane(const PlaneLayout &plane) const {
  const int i = plane.memory_plane;
  const GstMapInfo &map = frame_.meta ? frame_.map[i] : frame_.map[0];
  const gint stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i);
  const gsize row = row_bytes(plane);
  if (stride < 0 || static_cast<gsize>(stride) < row)
    throw FrameError("plane " + std::to_string(i) + " of a buffer has a stride of " + std::to_string(stride) +
                     " bytes, and rows of " + std::to_string(row));
  const gsize start = static_cast<guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, i)) - map.data;
  const gsize bytes = static_cast<gsize>(stride) * (plane.height - 1) + row;
  if (start > map.size || bytes > map.size - start)
    throw FrameError("a buffer is too small for its caps: plane " + std::to_string(i) + " needs " +
                     std::to_string(bytes) + " bytes from byte " + std::to_string(start) + " of a memory of " +
                     std::to_string(map.size));
}

}  // namespace cudaconv::gst
