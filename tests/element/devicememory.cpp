// SPDX-License-Identifier: LGPL-2.1-or-later
#include "devicememory.h"

#include <algorithm>
#include <cstring>

namespace cudaconv::test {

Ref<GstBuffer> DeviceMemory::copy(GstBuffer *from, const GstVideoInfo &info) {
  GstBufferPool *pool = new_pool(info);
  GstBuffer *buffer = nullptr;
  fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
  GstVideoFrame source, target;
  fail_unless(gst_video_frame_map(&source, &info, from, GST_MAP_READ));
  fail_unless(gst_video_frame_map(&target, &info, buffer, GST_MAP_WRITE));
  // Copies whole rows, since gst_video_frame_copy() skips the last chroma of odd rows of packed 4:2:2.
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); p++) {
    gint component[GST_VIDEO_MAX_COMPONENTS];
    gst_video_format_info_component(info.finfo, p, component);
    const gint from_stride = GST_VIDEO_FRAME_PLANE_STRIDE(&source, p),
               to_stride = GST_VIDEO_FRAME_PLANE_STRIDE(&target, p);
    for (gint y = 0; y < GST_VIDEO_INFO_COMP_HEIGHT(&info, component[0]); y++)
      memcpy(static_cast<guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&target, p)) + y * to_stride,
             static_cast<guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&source, p)) + y * from_stride,
             std::min(from_stride, to_stride));
  }
  gst_video_frame_unmap(&target);
  gst_video_frame_unmap(&source);
  // The buffer holds a reference to its pool, which stays active until the buffer is released.
  gst_object_unref(pool);
  return Ref<GstBuffer>(buffer);
}

Ref<GstCaps> device_caps(const GstVideoInfo &info) {
  GstCaps *caps = gst_video_info_to_caps(&info);
  gst_caps_set_features_simple(caps, gst_caps_features_new_single("memory:CUDAMemory"));
  return Ref<GstCaps>(caps);
}

void set_caps(Harness &h, const GstVideoInfo &info, bool device_in, bool device_out) {
  const auto caps = [&](bool on_device) {
    return on_device ? device_caps(info).release() : gst_video_info_to_caps(&info);
  };
  gst_harness_set_sink_caps(h.get(), caps(device_out));
  gst_harness_set_src_caps(h.get(), caps(device_in));
}

}  // namespace cudaconv::test
