// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/video.h>

#include <stdexcept>

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
class MappedFrame {
 public:
  // `layout` comes from describe_frame(info). `flags` are those of gst_video_frame_map(), GST_MAP_CUDA aside, which
  // memory on the device adds. Throws FrameError, also where a plane of `layout` would reach beyond the buffer's
  // memory.
  MappedFrame(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout, GstMapFlags flags,
              const BufferMemory &memory);
  ~MappedFrame() { gst_video_frame_unmap(&frame_); }
  MappedFrame(const MappedFrame &) = delete;
  MappedFrame &operator=(const MappedFrame &) = delete;

  const FrameView &view() const { return view_; }

 private:
  void check_plane(const PlaneLayout &plane) const;

  GstVideoFrame frame_;
  FrameView view_;
};

}  // namespace cudaconv::gst
