// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A GstBuffer as a frame of the backends: checks its metas, and maps it.
#pragma once

#include <gst/video/video.h>

#include <stdexcept>
#include <string>

#include "gstcudaconvref.h"
#include "imageview.h"

namespace cudaconv::gst {

// Thrown where a buffer cannot be taken for a frame of its caps. The text is a sentence for the user.
class FrameError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Maps a buffer as the frame that its caps describe, while the object lives, and keeps a reference to it. Where the
// buffer has a GstVideoCropMeta, the frame is that rectangle of the picture that GstVideoMeta describes.
// CUDA memory that is only read is mapped for a moment, to get its address: a GstMemory can be mapped 255 times at
// once, and one picture may be in flight more often, in several elements.
class MappedFrame {
 public:
  // Where the frame is in its buffer.
  struct Place {
    int x = 0, y = 0;        // the top left pixel of the crop rectangle; 0,0 without one
    bool in_pieces = false;  // a plane is stored in several pieces of memory, which have to be mapped as one
    bool columns = false;    // columns of two views alternate
  };

  // Finds the frame of `info` in a buffer, by its size and its metas. `layout` comes from describe_frame(info).
  // `access` is GST_MAP_READ for an input, GST_MAP_WRITE for an output, and GST_MAP_READWRITE for an input that is
  // filtered in place. Throws FrameError where the buffer cannot be that frame.
  static Place find(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout, GstMapFlags access);

  // `place` comes from find(), `on_device` and `pinned` go to FrameView. GST_MAP_CUDA is added to `access` for memory
  // on the device. Throws Error{Device} where that memory cannot be mapped, FrameError where other memory cannot. Also
  // throws FrameError where a plane of `layout` would reach beyond the memory or the rectangle beyond the picture, and
  // where planes of an interlaced frame overlap; with GST_MAP_READWRITE where a plane begins among another's rows.
  MappedFrame(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout, const Place &place,
              GstMapFlags access, bool on_device = false, bool pinned = false);
  ~MappedFrame() {
    if (!held_) gst_video_frame_unmap(&frame_);
  }
  MappedFrame(const MappedFrame &) = delete;
  MappedFrame &operator=(const MappedFrame &) = delete;

  const FrameView &view() const { return view_; }
  // Sets FrameView::stream and in_order. Call it before the view is used.
  void set_stream(void *stream, bool in_order) {
    view_.stream = stream;
    view_.in_order = in_order;
  }
  // The view from pixel x, y of the frame on, which begins a pixel of every plane and, in subsampled planes, of the
  // same field.
  FrameView view_from(int x, int y, const FrameLayout &layout) const;
  // Fills the rows that `all` has more than `complete`: with the last row of their field.
  void repeat_rows(const FrameLayout &complete, const FrameLayout &all) const;

 private:
  MappedFrame(GstBuffer *buffer, const GstVideoInfo &info, bool whole, GstMapFlags access, bool cuda);
  void place_plane(const PlaneLayout &plane, bool interlaced, const Place &place);
  void check_plane(const PlaneLayout &plane) const;
  void check_apart(const PlaneLayout &plane, const PlaneLayout &other, bool beside) const;
  intptr_t lowest_row(const PlaneLayout &plane) const;
  [[noreturn]] static void refuse(GstMapFlags access, const std::string &why);

  const GstMapFlags access_;
  GstVideoFrame frame_;
  FrameView view_;
  Ref<GstBuffer> held_;  // in place of the map
};

// Whether the buffer's GstVideoCropMeta begins within a macropixel of packed 4:2:2. No pointer then addresses both luma
// and chroma of its pixels: see copy_rectangle().
bool splits_macropixel(GstBuffer *buffer, const GstVideoInfo &info);

// Copies the crop rectangle of a buffer for which splits_macropixel() is true to new system memory, with the metas of
// the buffer but for GstVideoMeta and GstVideoCropMeta. Luma begins at the rectangle, chroma at the macropixel. Throws
// FrameError.
Ref<GstBuffer> copy_rectangle(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout);

}  // namespace cudaconv::gst
