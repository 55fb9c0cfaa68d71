// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The views of frame-packed stereo: which pixels of a frame belong to each of them.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <vector>

#include "imageview.h"

namespace cudaconv::gst {

// How a frame holds its views. Rows and Columns: every second row, or column, of each plane.
enum class Packing { Mono, SideBySide, TopBottom, Rows, Columns };

// The packing of frames with these caps. Mono also where each buffer holds one view. Throws Error{Format} where views
// cannot be filtered apart.
Packing packing_of(const GstVideoInfo &info);

// Whether caps with two views in a frame allow frames of one view, too.
bool may_be_mono(const GstVideoInfo &info);

// The packing of a buffer's frame. Its flags tell where caps leave it open.
Packing packing_of(GstBuffer *buffer, const GstVideoInfo &info);

// The halves of a frame with `layout`, which is packed as SideBySide or TopBottom. The seam is in the middle, or before
// it where the middle cuts through a pixel of subsampled planes. One rectangle: the frame is too small for two views.
std::vector<GstVideoRectangle> halves_of(const GstVideoInfo &info, const FrameLayout &layout, Packing packing);

// The layout of every second column of `whole`, from `first` on, side by side. No planes: there are no such columns.
// The last columns of a view may have no chroma.
FrameLayout columns_of(const FrameLayout &whole, int first);

// Columns first, first + step, ... of a frame.
struct Columns {
  const FrameView &frame;
  int first, step;
};
// Copies the pixels of a plane from columns of one frame to columns of another one.
void copy_columns(const PlaneLayout &plane, const Columns &from, const Columns &to);

// A view of a column-interleaved frame in memory of its own, since backends filter neighbouring pixels.
class ColumnView {
 public:
  // Copies every second column of `frame`, from `first` on, whose layout is columns_of(). `in_place`: results replace
  // the copy. Throws std::bad_alloc.
  ColumnView(const FrameLayout &layout, int first, const FrameView &frame, bool in_place);

  const FrameView &source() const { return source_.view; }
  const FrameView &target() const { return target_.memory[0] ? target_.view : source_.view; }
  // Copies the results to the columns of `frame`.
  void put(const FrameView &frame) const;

 private:
  struct Memory {
    std::unique_ptr<uint8_t[]> memory[kMaxPlanes];
    FrameView view;
  };
  static Memory allocate(const FrameLayout &layout);

  FrameLayout layout_;
  int first_;
  Memory source_, target_;
};

}  // namespace cudaconv::gst
