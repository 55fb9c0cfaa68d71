// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvframe.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "error.h"
#include "gstcudaconvformat.h"
#include "gstcudaconvstereo.h"

namespace cudaconv::gst {

namespace {

// GST_MAP_CUDA by its value, so that this file needs no CUDA headers.
constexpr int kMapCuda = GST_MAP_FLAG_LAST << 1;

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

std::string text_of(const GstVideoInfo &info) {
  return size_text(GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info)) + " " + GST_VIDEO_INFO_NAME(&info);
}

std::string planes_text(guint count) {
  return std::to_string(count) + (count == 1 ? " plane" : " planes");
}

// Bytes from one pixel to the next.
gssize pixel_bytes(const PlaneLayout &plane) {
  return gssize{plane.step} * plane.bytes_per_container();
}

// Why the metas of a buffer contradict its caps; empty, with the crop rectangle's corner in `*place`, where they do
// not. Has to be called before the buffer is mapped: gst_video_frame_map() takes a contradiction for a programming
// error.
std::string contradiction(GstBuffer *buffer, const GstVideoInfo &info, MappedFrame::Place *place) {
  const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
  const GstVideoCropMeta *crop = gst_buffer_get_video_crop_meta(buffer);
  if (meta && format_of(*meta) != GST_VIDEO_INFO_FORMAT(&info))
    return std::string("has a GstVideoMeta of format ") + format_text(format_of(*meta)) + ", but its caps say " +
           GST_VIDEO_INFO_NAME(&info) + "; elements that change the format must change both, as videoconvert does";
  if (meta && meta->n_planes != GST_VIDEO_INFO_N_PLANES(&info))
    return "has a GstVideoMeta with " + planes_text(meta->n_planes) + ", but " + GST_VIDEO_INFO_NAME(&info) + " has " +
           planes_text(GST_VIDEO_INFO_N_PLANES(&info));
  const gint64 left = crop ? crop->x : 0, top = crop ? crop->y : 0;
  // A meta may give any size up to the largest guint; caps only have sizes of a gint.
  const gint64 width = meta ? std::min<guint>(meta->width, G_MAXINT) : static_cast<guint>(GST_VIDEO_INFO_WIDTH(&info));
  const gint64 height =
      meta ? std::min<guint>(meta->height, G_MAXINT) : static_cast<guint>(GST_VIDEO_INFO_HEIGHT(&info));
  if (left + GST_VIDEO_INFO_WIDTH(&info) > width || top + GST_VIDEO_INFO_HEIGHT(&info) > height) {
    const std::string whole = size_text(static_cast<int>(width), static_cast<int>(height));
    if (!crop)
      return "has a GstVideoMeta of " + whole + ", which is smaller than the " + text_of(info) + " of its caps";
    return "has a GstVideoCropMeta at " + std::to_string(left) + "," + std::to_string(top) + ", from where the " +
           text_of(info) + " of its caps do not fit into the frame of " + whole;
  }
  *place = {static_cast<int>(left), static_cast<int>(top)};
  place->columns = packing_of(buffer, info) == Packing::Columns;
  // The rectangle counts the rows of the whole frame. Caps of an odd height give both fields the same rows: from an odd
  // row to the end of the frame, the top field has one less, and begins above the rectangle.
  if (has_fields(info)) {
    place->y = (place->y + (GST_VIDEO_BUFFER_IS_BOTTOM_FIELD(buffer) ? 0 : 1)) / 2;
    place->y = std::min(place->y, static_cast<int>((height + 1) / 2) - GST_VIDEO_INFO_FIELD_HEIGHT(&info));
  }
  return {};
}

// Why a buffer has too few bytes for its caps, or nothing where it has enough. Sets place->in_pieces where a plane,
// from its start to the end of the rectangle, is stored in several pieces of memory.
std::string shortage(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout,
                     MappedFrame::Place *place) {
  const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
  const gsize size = gst_buffer_get_size(buffer);
  if (!meta && size < GST_VIDEO_INFO_SIZE(&info))
    return "of " + std::to_string(size) + " bytes is too small for its caps: a frame of " + text_of(info) + " takes " +
           std::to_string(GST_VIDEO_INFO_SIZE(&info));
  for (int p = 0; meta && p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    const gsize offset = meta->offset[plane.memory_plane];
    const gssize rows_above = place->y >> plane.sub_y;
    const gsize left = (place->x >> plane.sub_x) * pixel_bytes(plane);
    // From the plane's first row to the rectangle's last one, which is lower in memory with a negative stride.
    const gssize down = meta->stride[plane.memory_plane] * (rows_above + plane.height - 1);
    const gsize below = std::min<gsize>(std::max<gssize>(-down, 0), offset);
    const gsize bytes = below + std::max<gssize>(down, 0) + left + row_bytes(plane);
    if (offset >= size)
      return "of " + std::to_string(size) + " bytes has a GstVideoMeta that puts plane " +
             std::to_string(plane.memory_plane) + " at byte " + std::to_string(offset);
    guint index, length;
    gsize skip;
    if (gst_buffer_find_memory(buffer, offset - below, std::min(bytes, size - (offset - below)), &index, &length,
                               &skip))
      place->in_pieces |= length > 1;
  }
  return {};
}

using Memories = std::array<GstMemory *, 16>;  // the most that a GstBuffer has

Memories memories_of(GstBuffer *buffer) {
  Memories memories = {};
  const guint count = std::min<guint>(gst_buffer_n_memory(buffer), memories.size());
  for (guint i = 0; i < count; i++) memories[i] = gst_buffer_peek_memory(buffer, i);
  return memories;
}

// Maps all planes in memory that the buffer keeps. If a memory fails to map for one plane, GstBuffer replaces it by a
// copy, even if it is mapped for another plane: results for that plane would be lost. The copy can be mapped again.
bool map_planes(GstVideoFrame *frame, const GstVideoInfo &info, GstBuffer *buffer, GstMapFlags flags) {
  for (int tries = 0; tries <= GST_VIDEO_MAX_PLANES; tries++) {
    const Memories before = memories_of(buffer);
    if (!gst_video_frame_map(frame, &info, buffer, flags)) return false;
    if (!(flags & GST_MAP_WRITE) || memories_of(buffer) == before) return true;
    gst_video_frame_unmap(frame);
  }
  return false;
}

}  // namespace

MappedFrame::Place MappedFrame::find(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout,
                                     GstMapFlags access) {
  Place place;
  std::string why = contradiction(buffer, info, &place);
  if (why.empty()) why = shortage(buffer, info, layout, &place);
  if (why.empty()) return place;
  refuse(access, why);
}

// The constructor that it begins with maps the buffer. So where it throws, the destructor is called.
MappedFrame::MappedFrame(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout, const Place &place,
                         GstMapFlags access, bool on_device, bool pinned)
    : MappedFrame(buffer, info, place.in_pieces, access, on_device) {
  view_.on_device = on_device;
  view_.pinned = pinned;
  for (int p = 0; p < layout.planes; p++) place_plane(layout.plane[p], layout.interlaced, place);
  for (int p = 0; p < layout.planes; p++) check_plane(layout.plane[p]);
  for (int p = 0; p < layout.planes; p++)
    for (int other = 0; other < layout.planes; other++) {
      if (layout.plane[p].memory_plane == layout.plane[other].memory_plane) continue;
      const bool in_place = access == GST_MAP_READWRITE;
      if (in_place || layout.interlaced) check_apart(layout.plane[p], layout.plane[other], !in_place);
    }
  if (on_device && access == GST_MAP_READ) {
    held_.reset(gst_buffer_ref(buffer));
    gst_video_frame_unmap(&frame_);
  }
}

void MappedFrame::refuse(GstMapFlags access, const std::string &why) {
  throw FrameError((access & GST_MAP_READ ? "An input buffer " : "An output buffer ") + why + ".");
}

MappedFrame::MappedFrame(GstBuffer *buffer, const GstVideoInfo &info, bool whole, GstMapFlags access, bool cuda)
    : access_(access) {
  const auto flags = static_cast<GstMapFlags>(access | (cuda ? kMapCuda : 0));
  const GstMemory *const on_device = cuda ? gst_buffer_peek_memory(buffer, 0) : nullptr;
  bool mapped;
  if (whole) {
    frame_ = {};
    frame_.info = info;
    frame_.id = -1;
    mapped = gst_buffer_map(buffer, &frame_.map[0], flags);
    if (mapped) frame_.buffer = gst_buffer_ref(buffer);
    const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
    for (guint i = 0; mapped && i < meta->n_planes; i++) {
      frame_.data[i] = frame_.map[0].data + meta->offset[i];
      frame_.info.stride[i] = meta->stride[i];
    }
  } else {
    mapped = map_planes(&frame_, info, buffer, flags);
  }
  // GStreamer copies memory that it cannot map, also to system memory.
  const auto is_copy = [&](const GstMapInfo &map) { return map.memory && map.memory != on_device; };
  if (on_device && (!mapped || std::any_of(std::begin(frame_.map), std::end(frame_.map), is_copy))) {
    if (mapped) gst_video_frame_unmap(&frame_);
    throw Error(Error::Kind::Device, "gst_video_frame_map failed on CUDA memory");
  }
  if (!mapped)
    refuse(access_, "of " + std::to_string(gst_buffer_get_size(buffer)) + " bytes in " +
                        std::to_string(gst_buffer_n_memory(buffer)) +
                        " pieces of memory could not be mapped as a frame of " + text_of(info));
}

FrameView MappedFrame::view_from(int x, int y, const FrameLayout &layout) const {
  FrameView view = view_;
  for (int p = 0; p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    const auto &[data, pitch] = view_.plane[plane.memory_plane];
    view.plane[plane.memory_plane].data = data + (y >> plane.sub_y) * pitch + (x >> plane.sub_x) * pixel_bytes(plane);
  }
  return view;
}

void MappedFrame::repeat_rows(const FrameLayout &complete, const FrameLayout &all) const {
  for (int p = 0; p < all.planes; p++)
    for (int y = complete.plane[p].height; y < all.plane[p].height; y++) {
      const PlaneView &plane = view_.plane[all.plane[p].memory_plane];
      uint8_t *const row = plane.data + y * plane.pitch;
      std::memcpy(row, row - std::min(y, 2) * plane.pitch, row_bytes(all.plane[p]));
    }
}

// Sets where a memory plane of the view begins: at the sample for the first pixel, which may be subsampled. Packed
// luma and chroma are in one memory plane. It begins where chroma does, which comes last: at the pixel's macropixel.
void MappedFrame::place_plane(const PlaneLayout &plane, bool interlaced, const Place &place) {
  const int i = plane.memory_plane;
  const gint stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i);
  // The rows of fields alternate. An even line begins with the row of its field. After an odd line, which is in the
  // bottom field, the rows alternate as its lines do only if it is the last line that shares its row. Columns of views
  // likewise.
  const auto alternate = [](int line, int sub) {
    return 2 * gssize{line >> (sub + 1)} + ((line + 1) % (2 << sub) == 0);
  };
  const bool has_own_columns = GST_VIDEO_FRAME_N_PLANES(&frame_) > 1;  // not those of other components
  const gssize row = interlaced ? alternate(place.y, plane.sub_y) : place.y >> plane.sub_y;
  const gssize column = place.columns && has_own_columns ? alternate(place.x, plane.sub_x) : place.x >> plane.sub_x;
  view_.plane[i] = {
      static_cast<uint8_t *>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, i)) + row * stride + column * pixel_bytes(plane),
      stride};
}

// Throws FrameError where the plane does not lie within the mapped memory: a GstVideoMeta may have any strides and
// offsets.
void MappedFrame::check_plane(const PlaneLayout &plane) const {
  const int i = plane.memory_plane;
  const GstMapInfo &map = frame_.meta ? frame_.map[i] : frame_.map[0];
  const PlaneView &view = view_.plane[i];
  const gsize row = row_bytes(plane);
  if (static_cast<gsize>(std::abs(view.pitch)) < row)
    refuse(access_, "has a stride of " + std::to_string(view.pitch) + " bytes in plane " + std::to_string(i) +
                        ", whose rows take " + std::to_string(row));
  const gssize start = lowest_row(plane) - reinterpret_cast<intptr_t>(map.data);
  const gsize bytes = std::abs(view.pitch * (plane.height - 1)) + row;
  if (start < 0 || static_cast<gsize>(start) > map.size || bytes > map.size - start)
    refuse(access_, "is too small for its caps: plane " + std::to_string(i) + " needs " + std::to_string(bytes) +
                        " bytes from byte " + std::to_string(start) + " of a memory of " + std::to_string(map.size));
}

// Throws FrameError where `other` begins among the rows of the plane: a GstVideoMeta may lack the row that only
// interlaced frames have, and in place the results of the one would be input of the other. `beside`: rows of both may
// alternate.
void MappedFrame::check_apart(const PlaneLayout &plane, const PlaneLayout &other, bool beside) const {
  const gssize bytes = row_bytes(plane), pitch = std::abs(view_.plane[plane.memory_plane].pitch),
               at = lowest_row(other) - lowest_row(plane), column = at % pitch;
  if (at < 0 || at >= pitch * (plane.height - 1) + bytes) return;
  const bool alternates = column >= bytes && column + static_cast<gssize>(row_bytes(other)) <= pitch &&
                          std::abs(view_.plane[other.memory_plane].pitch) == pitch;
  if (beside && alternates) return;
  refuse(access_, "has a GstVideoMeta that begins plane " + std::to_string(other.memory_plane) + " within plane " +
                      std::to_string(plane.memory_plane) + ", which has " + std::to_string(plane.height) + " rows in " +
                      (beside ? "an interlaced" : "a") + " frame of " + text_of(frame_.info));
}

// The address of the row that is the lowest in memory: with a negative stride the last one. A number, since it may lie
// outside of the memory.
intptr_t MappedFrame::lowest_row(const PlaneLayout &plane) const {
  const PlaneView &view = view_.plane[plane.memory_plane];
  return reinterpret_cast<intptr_t>(view.data) + std::min<intptr_t>(view.pitch * (plane.height - 1), 0);
}

bool splits_macropixel(GstBuffer *buffer, const GstVideoInfo &info) {
  const GstVideoCropMeta *crop = gst_buffer_get_video_crop_meta(buffer);
  const GstVideoFormatInfo *finfo = info.finfo;
  return crop && crop->x % 2 && GST_VIDEO_FORMAT_INFO_N_PLANES(finfo) == 1 &&
         GST_VIDEO_FORMAT_INFO_N_COMPONENTS(finfo) > 1 && GST_VIDEO_FORMAT_INFO_W_SUB(finfo, 1) == 1;
}

Ref<GstBuffer> copy_rectangle(GstBuffer *buffer, const GstVideoInfo &info, const FrameLayout &layout) {
  // The macropixel begins a pixel left of the rectangle, so that luma from there on is a pixel wider.
  FrameLayout wider = layout;
  for (int p = 0; p < wider.planes; p++) wider.plane[p].width += wider.plane[p].sub_x == 0;
  const MappedFrame source(buffer, info, wider, MappedFrame::find(buffer, info, wider, GST_MAP_READ), GST_MAP_READ);
  Ref<GstBuffer> copy(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
  if (!copy) throw std::bad_alloc();
  gst_buffer_copy_into(copy.get(), buffer,
                       static_cast<GstBufferCopyFlags>(GST_BUFFER_COPY_METADATA | GST_BUFFER_COPY_META), 0, -1);
  for (GstMeta *meta : {gst_buffer_get_meta(copy.get(), GST_VIDEO_META_API_TYPE),
                        gst_buffer_get_meta(copy.get(), GST_VIDEO_CROP_META_API_TYPE)})
    if (meta) gst_buffer_remove_meta(copy.get(), meta);

  GstMapInfo target;
  if (!gst_buffer_map(copy.get(), &target, GST_MAP_WRITE)) throw std::bad_alloc();
  FrameView to;
  to.plane[0] = {target.data, GST_VIDEO_INFO_PLANE_STRIDE(&info, 0)};
  for (int p = 0; p < layout.planes; p++)
    copy_columns(layout.plane[p], {source.view(), layout.plane[p].sub_x == 0, 1}, {to, 0, 1});
  gst_buffer_unmap(copy.get(), &target);
  return copy;
}

}  // namespace cudaconv::gst
