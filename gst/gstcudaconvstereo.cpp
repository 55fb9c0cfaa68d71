// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvstereo.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "error.h"
#include "plan/plan.h"

namespace cudaconv::gst {

Packing packing_of(const GstVideoInfo &info) {
  const auto refuse = [](const std::string &why) { throw Error(Error::Kind::Format, "multiview-mode=" + why); };
  switch (GST_VIDEO_INFO_MULTIVIEW_MODE(&info)) {
    case GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE:
    case GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE_QUINCUNX:
      return Packing::SideBySide;
    case GST_VIDEO_MULTIVIEW_MODE_TOP_BOTTOM:
      return Packing::TopBottom;
    case GST_VIDEO_MULTIVIEW_MODE_COLUMN_INTERLEAVED:
      return Packing::Columns;
    case GST_VIDEO_MULTIVIEW_MODE_ROW_INTERLEAVED:
      if (GST_VIDEO_INFO_INTERLACE_MODE(&info) != GST_VIDEO_INTERLACE_MODE_PROGRESSIVE)
        refuse("row-interleaved is not supported in interlaced video, where rows alternate between fields");
      return Packing::Rows;
    case GST_VIDEO_MULTIVIEW_MODE_CHECKERBOARD:
      refuse(
          "checkerboard is not supported, because the neighbours of each pixel belong to the other view; use "
          "side-by-side or top-bottom");
      break;
    default:
      break;
  }
  return Packing::Mono;
}

bool may_be_mono(const GstVideoInfo &info) {
  return GST_VIDEO_INFO_MULTIVIEW_FLAGS(&info) & GST_VIDEO_MULTIVIEW_FLAGS_MIXED_MONO;
}

Packing packing_of(GstBuffer *buffer, const GstVideoInfo &info) {
  if (may_be_mono(info) && !GST_BUFFER_FLAG_IS_SET(buffer, GST_VIDEO_BUFFER_FLAG_MULTIPLE_VIEW)) return Packing::Mono;
  return packing_of(info);
}

std::vector<GstVideoRectangle> halves_of(const GstVideoInfo &info, const FrameLayout &layout, Packing packing) {
  const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_FIELD_HEIGHT(&info);
  int unit_x = 1, unit_y = layout.interlaced ? 2 : 1;
  for (int p = 0; p < layout.planes; p++) {
    unit_x = std::max(unit_x, 1 << layout.plane[p].sub_x);
    unit_y = std::max(unit_y, (layout.interlaced ? 2 : 1) << layout.plane[p].sub_y);
  }
  const int x = width / 2 / unit_x * unit_x, y = height / 2 / unit_y * unit_y;
  const int frame_height = GST_VIDEO_INFO_HEIGHT(&info), fields = frame_height > height ? 2 : 1;
  if (packing == Packing::SideBySide && x > 0) return {{0, 0, x, frame_height}, {x, 0, width - x, frame_height}};
  if (packing == Packing::TopBottom && y > 0)
    return {{0, 0, width, fields * y}, {0, y, width, frame_height - fields * y}};
  return {{0, 0, width, frame_height}};
}

FrameLayout columns_of(const FrameLayout &whole, int first) {
  FrameLayout layout = whole;
  layout.planes = 0;
  for (int p = 0; p < whole.planes; p++) {
    PlaneLayout plane = whole.plane[p];
    plane.width = (plane.width - first + 1) / 2;
    if (plane.width > 0) layout.plane[layout.planes++] = plane;
  }
  return layout;
}

namespace {

// Copies `count` units of bytes between rows of pixels.
template <size_t kBytes>
void copy_units(const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step, int count) {
  for (int i = 0; i < count; i++, from += from_step, to += to_step) std::memcpy(to, from, kBytes);
}

// By the number of bytes, of a pixel or of a container.
constexpr decltype(&copy_units<1>) kCopyUnits[] = {nullptr, copy_units<1>, copy_units<2>, copy_units<3>, copy_units<4>,
                                                   nullptr, copy_units<6>, nullptr,       copy_units<8>};

}  // namespace

void copy_columns(const PlaneLayout &plane, const Columns &from, const Columns &to) {
  const size_t container = plane.bytes_per_container(), pixel = plane.step * container;
  const bool words = plane.container == Container::Packed32;
  const bool whole = words || plane.dense();  // all channels of a pixel are next to each other
  const PlaneView &source = from.frame.plane[plane.memory_plane], &target = to.frame.plane[plane.memory_plane];
  for (int y = 0; y < plane.height; y++)
    for (int c = 0; c < (whole ? 1 : plane.channels); c++) {
      const size_t at = (plane.first + (words ? 0 : plane.channel[c].offset)) * container;
      kCopyUnits[whole ? pixel : container](source.data + y * source.pitch + at + from.first * pixel, from.step * pixel,
                                            target.data + y * target.pitch + at + to.first * pixel, to.step * pixel,
                                            plane.width);
    }
}

ColumnView::Memory ColumnView::allocate(const FrameLayout &layout) {
  Memory result;
  const std::vector<MemoryPlane> planes = memory_planes_of(layout);
  for (size_t i = 0; i < planes.size(); i++) {
    // Backends read and write pixels alone, so the bytes between them stay undefined.
    result.memory[i].reset(new uint8_t[planes[i].row_bytes * planes[i].height]);
    result.view.plane[i] = {result.memory[i].get(), static_cast<ptrdiff_t>(planes[i].row_bytes)};
  }
  return result;
}

ColumnView::ColumnView(const FrameLayout &layout, int first, const FrameView &frame, bool in_place)
    : layout_(layout), first_(first), source_(allocate(layout)) {
  if (!in_place) target_ = allocate(layout);
  for (int p = 0; p < layout.planes; p++) copy_columns(layout.plane[p], {frame, first, 2}, {source_.view, 0, 1});
}

void ColumnView::put(const FrameView &frame) const {
  for (int p = 0; p < layout_.planes; p++) copy_columns(layout_.plane[p], {target(), 0, 1}, {frame, first_, 2});
}

}  // namespace cudaconv::gst
