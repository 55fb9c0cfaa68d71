// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/video.h>

#include <stdexcept>
#include <string>

#include "gstcudaconvref.h"
#include "imageview.h"

namespace cudaconv::gst {

// A buffer that cannot be taken for a frame of its caps. The text is a sentence for the user.
class FrameError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a FrameView says of the memory that a buffer consists of.
struct BufferMemory {
  bool on_device = false;
  bool pinned = false;
  void *stream = nullptr;
};

// A buffer mapped as the frame that its caps describe, for as long as the object lives; the buffer is kept as long.
// Where the buffer has a GstVideoCropMeta, the frame is that rectangle of the picture that GstVideoMeta describes.
class MappedFrame {
 public:
  // The first pixel of the rectangle.
  struct Origin {
    int x = 0, y = 0;
  };

  // `layout` comes from describe_frame(info). `access` is GST_MAP_READ for an input and GST_MAP_WRITE for an output;
  // GST_MAP_CUDA is added for memory on the device. Throws FrameError, also where a plane of `layout` would reach
  // beyond the buffer's memory or the rectangle beyond the picture.
  MappedFrame(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout, GstMapFlags access,
              const BufferMemory &memory);
  ~MappedFrame() { gst_video_frame_unmap(&frame_); }
  MappedFrame(const MappedFrame &) = delete;
  MappedFrame &operator=(const MappedFrame &) = delete;

  const FrameView &view() const { return view_; }

 private:
  void map(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout, GstMapFlags flags);
  void place_plane(guint i, const GstVideoInfo &info, Origin origin);
  void check_plane(const PlaneLayout &plane) const;
  [[noreturn]] void refuse(const std::string &why) const;

  const char *const role_;  // "an input buffer" or "an output buffer"
  GstVideoFrame frame_;
  FrameView view_;
};

// Whether the rectangle of the buffer's GstVideoCropMeta begins within a macropixel of packed 4:2:2, from where no
// pointer sees both luma and chroma of its pixels.
bool splits_macropixel(GstBuffer *buffer, const GstVideoInfo &info);

// A copy of that rectangle in system memory, with the metas of the buffer: luma moves by single pixels, chroma by whole
// macropixels. Throws FrameError.
Ref<GstBuffer> copy_rectangle(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout);

}  // namespace cudaconv::gst
