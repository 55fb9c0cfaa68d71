// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests GstVideoCropMeta: the picture is the rectangle of the meta. Caps have the size of the rectangle, GstVideoMeta
// the size of the whole frame. The output has the bytes of a filtered copy of the rectangle, and no GstVideoCropMeta.
#include <algorithm>
#include <cstring>

#include "reference.h"
#include "support.h"
#ifdef HAVE_DEVICE_MEMORY
#include "devicememory.h"
#endif

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr int kWidth = 67, kHeight = 45;  // of whole frames

struct Rectangle {
  guint x, y, width, height;
};
const Rectangle kRectangles[] = {
    {0, 0, 32, 24},                       // at the top left
    {6, 4, 32, 24},                       // at even positions
    {5, 3, 31, 21},                       // at odd positions, and of an odd size
    {7, 2, 32, 23},                       // one coordinate odd, one even
    {34, 24, kWidth - 34, kHeight - 24},  // up to the far edges
    {33, 25, kWidth - 33, kHeight - 25},  // up to the far edges, from odd positions
    {kWidth - 1, kHeight - 1, 1, 1},      // one pixel
    {0, 0, kWidth, kHeight},              // the whole frame
};

std::string text_of(const Rectangle &r) {
  return std::to_string(r.width) + "x" + std::to_string(r.height) + " at " + std::to_string(r.x) + "," +
         std::to_string(r.y);
}

GstVideoInfo info_of(const char *format, int width, int height, bool interlaced = false) {
  GstVideoInfo info = video_info(format, width, height);
  if (interlaced)
    gst_video_info_set_interlaced_format(&info, GST_VIDEO_INFO_FORMAT(&info), GST_VIDEO_INTERLACE_MODE_INTERLEAVED,
                                         width, height);
  return info;
}

// The caps for the rectangle `r` in a frame described by `info`.
GstVideoInfo cropped(const GstVideoInfo &info, const Rectangle &r) {
  return info_of(GST_VIDEO_INFO_NAME(&info), static_cast<int>(r.width), static_cast<int>(r.height),
                 GST_VIDEO_INFO_IS_INTERLACED(&info));
}

void add_crop(GstBuffer *buffer, const Rectangle &r) {
  GstVideoCropMeta *meta = gst_buffer_add_video_crop_meta(buffer);
  meta->x = r.x;
  meta->y = r.y;
  meta->width = r.width;
  meta->height = r.height;
}

bool is_packed_422(const GstVideoInfo &info) {
  return GST_VIDEO_INFO_N_PLANES(&info) == 1 && GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, 1) == 1;
}

// The first row of a rectangle in a subsampled plane. Rows of fields alternate, like lines.
int first_row(const GstVideoInfo &info, const Rectangle &r, int sub_y) {
  const int line = static_cast<int>(r.y);
  if (!GST_VIDEO_INFO_IS_INTERLACED(&info)) return line >> sub_y;
  const auto row_of = [&](int y) { return 2 * ((y / 2) >> sub_y) + y % 2; };
  // After an odd line, the next line's row may be above the line's own.
  return line % 2 && row_of(line + 1) < row_of(line) ? row_of(line - 1) : row_of(line);
}

int rows_of(const FrameLayout &layout, guint memory_plane) {
  for (const PlaneLayout &plane : layout.plane)
    if (plane.memory_plane == static_cast<int>(memory_plane)) return plane.height;
  return 0;
}

// Copies the rectangle into a frame of the default layout.
Ref<GstBuffer> crop(GstBuffer *from, const GstVideoInfo &info, const Rectangle &r) {
  const GstVideoInfo small = cropped(info, r);
  const FrameLayout layout = layout_of(small);
  Ref<GstBuffer> to(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&small), nullptr));
  const FrameBytes source(from, info);
  FrameBytes target(to.get(), small);
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); p++) {
    gint component[GST_VIDEO_MAX_COMPONENTS];
    gst_video_format_info_component(info.finfo, p, component);
    const int c = component[0];
    int x = static_cast<int>(r.x >> GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, c)) * GST_VIDEO_INFO_COMP_PSTRIDE(&info, c);
    int bytes = GST_VIDEO_INFO_COMP_WIDTH(&small, c) * GST_VIDEO_INFO_COMP_PSTRIDE(&small, c);
    if (is_packed_422(info)) {
      // In packed 4:2:2 two pixels have four bytes.
      x = static_cast<int>(r.x / 2 * 4);
      bytes = static_cast<int>((r.width + 1) / 2 * 4);
    }
    const int y = first_row(info, r, static_cast<int>(GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, c)));
    for (int row = 0; row < rows_of(layout, p); row++) {
      uint8_t *const to = target.view.plane[p].data + row * target.view.plane[p].pitch;
      const uint8_t *const at = source.view.plane[p].data + (y + row) * source.view.plane[p].pitch + x;
      memcpy(to, at, bytes);
      // In packed 4:2:2 luma is copied from the pixel, chroma from the pixel's pair.
      if (!is_packed_422(info) || r.x % 2 == 0) continue;
      const int luma = GST_VIDEO_INFO_COMP_POFFSET(&info, 0);
      for (int i = 0; i < static_cast<int>(r.width); i++) to[luma + 2 * i] = at[luma + 2 * (i + 1)];
    }
  }
  gst_buffer_fill(to.get(), 0, target.bytes.data(), target.bytes.size());
  return to;
}

// A frame with a crop rectangle, and a copy of that rectangle.
struct Cropped {
  Ref<GstBuffer> frame, copy;
  GstVideoInfo info;  // of the copy

  Cropped(const GstVideoInfo &whole, const Rectangle &r, Random &random)
      : frame(random_frame(whole, random, kScattered)), copy(crop(frame.get(), whole, r)), info(cropped(whole, r)) {
    add_crop(frame.get(), r);
  }
};

void fail_unless_plain(GstBuffer *out, const GstVideoInfo &info) {
  fail_unless(gst_buffer_get_video_crop_meta(out) == nullptr, "the output has a crop rectangle");
  const GstVideoMeta *meta = gst_buffer_get_video_meta(out);
  if (!meta) return;
  fail_unless_equals_int(meta->width, GST_VIDEO_INFO_WIDTH(&info));
  fail_unless_equals_int(meta->height, GST_VIDEO_INFO_HEIGHT(&info));
}

void check(const GstVideoInfo &whole, const Rectangle &r, const std::string &properties) {
  Random random = seeded();
  const Cropped in(whole, r, random);
  Harness h(properties, in.info);
  const Ref<GstBuffer> out = h.filter(in.frame.get());
  fail_unless_plain(out.get(), in.info);
  std::string why;
  fail_unless(is_filtered(in.copy.get(), out.get(), in.info, properties, &why), "%s: %s", text_of(r).c_str(),
              why.c_str());
  fail_unless(gst_buffer_get_video_crop_meta(in.frame.get()) != nullptr, "the input lost its crop rectangle");
}

const char *const kFormats[] = {"I420",      "NV12",  "YUY2", "UYVY", "RGB",       "RGBA",
                                "P010_10LE", "GRAY8", "Y42B", "A420", "GRAY16_LE", "Y444"};

GST_START_TEST(only_the_rectangle_is_filtered) {
  for (const char *format : kFormats)
    for (const Rectangle &r : kRectangles) {
      check(info_of(format, kWidth, kHeight), r, "mask=gauss5");
      check(info_of(format, kWidth, kHeight), r, "mask=median border=reflect");
    }
}
GST_END_TEST;

// Pixels outside the rectangle are not read: the border mode applies at the rectangle's edges.
GST_START_TEST(the_border_mode_applies_at_the_rectangles_edges) {
  for (const Nick &border : nicks_of("border"))
    for (const char *mask : {"mask=box7", "mask=sobel", "mask=dilate size=5", "mask=gauss5 iterations=3"})
      for (const char *format : {"I420", "RGBA"})
        check(info_of(format, kWidth, kHeight), {11, 9, 30, 20}, std::string(mask) + " border=" + border.nick);
}
GST_END_TEST;

GST_START_TEST(rectangles_of_interlaced_frames) {
  for (const char *format : {"I420", "NV12", "YUY2", "RGBA"}) {
    for (const Rectangle &r :
         {Rectangle{0, 0, 32, 24}, Rectangle{6, 4, 32, 24}, Rectangle{5, 8, 31, 20}, Rectangle{2, 2, 32, 24}})
      check(info_of(format, kWidth, kHeight, true), r, "mask=gauss5");
    // Down to the last line, for every start of the rectangle: it never needs a row that the frame does not have.
    for (const int height : {21, 22, 23, 24})
      for (guint y = 0; y < 9; y++) check(info_of(format, kWidth, height, true), {2, y, 20, height - y}, "mask=gauss5");
  }
}
GST_END_TEST;

// With interlace-mode=alternate, a buffer has every second row of the frame, so also of the rectangle.
GST_START_TEST(rectangles_of_single_fields) {
  for (const char *format : {"GRAY8", "I420", "RGBA"}) {
    const GstVideoInfo field = video_info(format, kWidth, 22);
    // The last rectangle has 20 rows of the bottom field and 19 of the top field, to which its caps give 20 too.
    for (const Rectangle &r :
         {Rectangle{6, 4, 32, 24}, Rectangle{5, 7, 31, 24}, Rectangle{0, 20, 32, 24}, Rectangle{6, 5, 32, 39}}) {
      for (const bool bottom : {false, true}) {
        Random random = seeded();
        // The rows of the field that are in the rectangle.
        const guint height = (r.height + 1) / 2, first = bottom ? r.y / 2 : (r.y + 1) / 2;
        const Rectangle rows = {r.x, std::min(first, 22 - height), r.width, height};
        const Ref<GstBuffer> frame = random_frame(field, random), copy = crop(frame.get(), field, rows);
        gsize offset[GST_VIDEO_MAX_PLANES] = {};
        gint stride[GST_VIDEO_MAX_PLANES] = {};
        std::copy_n(field.offset, GST_VIDEO_INFO_N_PLANES(&field), offset);
        std::copy_n(field.stride, GST_VIDEO_INFO_N_PLANES(&field), stride);
        gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&field), kWidth,
                                       44, GST_VIDEO_INFO_N_PLANES(&field), offset, stride);
        add_crop(frame.get(), r);
        GST_BUFFER_FLAG_SET(frame.get(), bottom ? GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD : GST_VIDEO_BUFFER_FLAG_TOP_FIELD);
        GstVideoInfo info;
        gst_video_info_set_interlaced_format(&info, GST_VIDEO_INFO_FORMAT(&field), GST_VIDEO_INTERLACE_MODE_ALTERNATE,
                                             static_cast<int>(r.width), static_cast<int>(r.height));
        info.fps_n = 30;
        Harness h("mask=gauss5", info);
        const Ref<GstBuffer> out = h.filter(frame.get());
        assert_filtered(copy.get(), out.get(), cropped(field, rows), "mask=gauss5");
      }
    }
  }
}
GST_END_TEST;

// A copy of the frame and its metas, with its bytes in several pieces of memory.
Ref<GstBuffer> in_pieces(GstBuffer *frame, gsize bytes) {
  Ref<GstBuffer> copy(gst_buffer_new());
  GstVideoMeta *meta = gst_buffer_get_video_meta(frame);
  gst_buffer_add_video_meta_full(copy.get(), meta->flags, meta->format, meta->width, meta->height, meta->n_planes,
                                 meta->offset, meta->stride);
  const GstVideoCropMeta *crop = gst_buffer_get_video_crop_meta(frame);
  add_crop(copy.get(), {crop->x, crop->y, crop->width, crop->height});
  const gsize size = gst_buffer_get_size(frame);
  for (gsize at = 0; at < size; at += bytes) {
    const gsize length = std::min(bytes, size - at);
    GstMemory *memory = gst_allocator_alloc(nullptr, length, nullptr);
    GstMapInfo map;
    fail_unless(gst_memory_map(memory, &map, GST_MAP_WRITE));
    gst_buffer_extract(frame, at, map.data, length);
    gst_memory_unmap(memory, &map);
    gst_buffer_append_memory(copy.get(), memory);
  }
  return copy;
}

// A rectangle may begin in another memory than its plane, and its last byte may be in another one than all others.
GST_START_TEST(rectangles_of_planes_in_several_pieces_of_memory) {
  Random random = seeded();
  for (const char *format : {"GRAY8", "I420", "YUY2", "RGBA"})
    for (const bool interlaced : {false, true}) {
      const GstVideoInfo whole = info_of(format, 32, 24, interlaced);
      for (guint y = 0; y <= 16; y += 4)
        for (const int pieces : {2, 3, 5, 0}) {  // 0: until that byte
          const Rectangle r = {6, y, 20, 8};
          const Cropped in(whole, r, random);
          const gsize size = gst_buffer_get_size(in.frame.get());
          const GstVideoMeta *meta = gst_buffer_get_video_meta(in.frame.get());
          const gsize last =
              meta->offset[0] + (y + 7) * meta->stride[0] + 26 * GST_VIDEO_INFO_COMP_PSTRIDE(&whole, 0) - 1;
          const Ref<GstBuffer> frame = in_pieces(in.frame.get(), pieces ? size / pieces + 1 : last);
          Harness h("mask=gauss5", in.info);
          const Ref<GstBuffer> out = h.filter(frame.get());
          std::string why;
          fail_unless(is_filtered(in.copy.get(), out.get(), in.info, "mask=gauss5", &why), "%s, %d pieces, row %u: %s",
                      format, pieces, y, why.c_str());
        }
    }
}
GST_END_TEST;

GST_START_TEST(rectangles_come_change_and_go) {
  const GstVideoInfo info = video_info("NV12", 32, 24);
  const struct {
    int width, height;
    Rectangle r;
  } frames[] = {
      {67, 45, {5, 3, 32, 24}}, {67, 45, {6, 4, 32, 24}}, {40, 30, {0, 0, 32, 24}},
      {33, 25, {1, 1, 32, 24}}, {32, 24, {0, 0, 32, 24}}, {67, 45, {35, 21, 32, 24}},
  };
  for (const char *properties : {"mask=gauss5", "mask=gauss5 frames-in-flight=1", "mask=gauss5 frames-in-flight=5"}) {
    Random random = seeded();
    Harness h(properties, info);
    std::vector<Ref<GstBuffer>> copies;
    const auto push = [&](const Ref<GstBuffer> &frame, Ref<GstBuffer> copy) {
      GST_BUFFER_PTS(frame.get()) = gst_util_uint64_scale(copies.size(), GST_SECOND, 30);
      fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
      copies.push_back(std::move(copy));
    };
    const auto push_whole = [&] {
      const Ref<GstBuffer> whole = random_frame(info, random);
      push(whole, Ref<GstBuffer>(gst_buffer_ref(whole.get())));
    };
    for (int round = 0; round < 3; round++) {
      push_whole();
      for (const auto &f : frames) {
        Cropped in(video_info("NV12", f.width, f.height), f.r, random);
        push(in.frame, std::move(in.copy));
        if (round == 1) push_whole();
      }
    }
    push_event(h, gst_event_new_eos());
    for (const Ref<GstBuffer> &copy : copies) {
      const Ref<GstBuffer> out(gst_harness_pull(h.get()));
      fail_unless_plain(out.get(), info);
      assert_filtered(copy.get(), out.get(), info, "mask=gauss5");
    }
  }
}
GST_END_TEST;

// Each rectangle has another size, and caps change with it.
GST_START_TEST(caps_change_with_the_rectangle) {
  Random random = seeded();
  Harness h("mask=sobel");
  for (const Rectangle &r : kRectangles) {
    const Cropped in(info_of("I420", kWidth, kHeight), r, random);
    h.set_caps(in.info);
    const Ref<GstBuffer> out = h.filter(in.frame.get());
    fail_unless_plain(out.get(), in.info);
    assert_filtered(in.copy.get(), out.get(), in.info, "mask=sobel");
  }
}
GST_END_TEST;

// ---- Regions --------------------------------------------------------------------------------------------------------

bool is_filtered_in(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const char *properties,
                    const Regions &regions) {
  const FrameLayout layout = layout_of(info);
  const reference::Frame want =
      reference::filter(settings_of(properties), layout, reference::read(layout, FrameBytes(in, info).view), regions);
  const reference::Frame got = reference::read(layout, FrameBytes(out, info).view);
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      if (got.plane[p][c].sample != want.plane[p][c].sample) return false;
  return true;
}

struct NamedRegion {
  const char *type;
  Region region;
};
// In pixels of the whole frame: within each of the rectangles, across their edges, and beside them.
const NamedRegion kMarks[] = {
    {"face", {14, 10, 9, 7}}, {"face", {2, 1, 7, 30}}, {"car", {30, 20, 60, 60}}, {"face", {-5, -3, 12, 9}}};

void add_marks(GstBuffer *buffer, guint left, guint top) {
  for (const NamedRegion &mark : kMarks) {
    const Region &r = mark.region;
    gst_buffer_add_video_region_of_interest_meta(buffer, mark.type, r.x - left, r.y - top, r.width, r.height);
  }
}

// Regions of the settings count from the rectangle's corner, metas from the corner of the whole frame. The element
// drops nothing of a region that its output can name.
// A region of the whole frame in the picture of a rectangle. At odd corners chroma is off its pixels, so it covers
// more.
Region in_picture(Region region, const Rectangle &r, const GstVideoInfo &info) {
  region.x -= static_cast<int>(r.x);
  region.y -= static_cast<int>(r.y);
  region.width += r.x % 2 && GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, 1);
  region.height += r.y % 2 && GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, 1);
  return region;
}

GST_START_TEST(regions_of_metas_count_from_the_whole_frame) {
  for (const char *format : {"I420", "NV12", "YUY2", "RGBA"}) {
    for (const Rectangle &r : {Rectangle{6, 4, 32, 24}, Rectangle{5, 3, 31, 21}}) {
      for (const bool by_meta : {false, true}) {
        for (const bool invert : {false, true}) {
          Random random = seeded();
          const Cropped in(info_of(format, kWidth, kHeight), r, random);
          if (by_meta) add_marks(in.frame.get(), 0, 0);
          Harness h(std::string("mask=gauss5 ") + (by_meta ? "roi-meta=true" : "roi='4,2,9,7; 20,15,60,60'") +
                        (invert ? " roi-invert=true" : ""),
                    in.info);
          const Ref<GstBuffer> out = h.filter(in.frame.get());
          fail_unless_plain(out.get(), in.info);
          Regions regions;
          regions.active = true;
          regions.invert = invert;
          regions.region = {{4, 2, 9, 7}, {20, 15, 60, 60}};
          if (by_meta) regions.region.clear();
          for (const NamedRegion &mark : kMarks) {
            Region moved = in_picture(mark.region, r, in.info);
            // What is shown is smaller.
            if (invert && (moved.width > mark.region.width || moved.height > mark.region.height))
              moved = {moved.x + 1, moved.y + 1, moved.width - 2, moved.height - 2};
            if (by_meta) regions.region.push_back(moved);
          }
          fail_unless(is_filtered_in(in.copy.get(), out.get(), in.info, "mask=gauss5", regions),
                      "%s, %s, by meta %d, inverted %d", format, text_of(r).c_str(), by_meta, invert);
          if (!by_meta) continue;
          gpointer state = nullptr;
          for (const NamedRegion &mark : kMarks) {
            const Region moved = in_picture(mark.region, r, in.info);
            const int left = moved.x, top = moved.y;
            const int width = moved.width + std::min(left, 0), height = moved.height + std::min(top, 0);
            if (width <= 0 || height <= 0) continue;
            const auto *meta = reinterpret_cast<GstVideoRegionOfInterestMeta *>(
                gst_buffer_iterate_meta_filtered(out.get(), &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
            fail_unless(meta && meta->roi_type == g_quark_from_string(mark.type) &&
                            meta->x == static_cast<guint>(std::max(left, 0)) &&
                            meta->y == static_cast<guint>(std::max(top, 0)) && meta->w == static_cast<guint>(width) &&
                            meta->h == static_cast<guint>(height),
                        "%s: a meta of the output is wrong", text_of(r).c_str());
          }
        }
      }
    }
  }
}
GST_END_TEST;

// Filters a frame with a rectangle, and a copy of that rectangle whose metas are moved, with the same settings.
GST_START_TEST(regions_are_those_of_a_copy_of_the_rectangle) {
  const char *const settings[] = {
      "mask=fill",
      "mask=fill roi-invert=true",
      "mask=mosaic size=4 roi-type=face",
      "mask=gauss5 roi-type=!face roi-grow=0.5",
      "mask=gauss roi-scale=0.2 size=3 roi-grow=0.1",
      "mask=fill roi-shape=ellipse",
      "mask=box7 roi-feather=5",
      "mask=dilate roi='25%,25%,10%,100%; 3,3 20,5 9,18'",
      "mask=box7 unmarked=mark roi-type=car",
      "mask=fill hold=1000000000",
      "mask=fill lookahead=1",
  };
  for (const char *format : kFormats) {
    for (const bool interlaced : {false, true}) {
      for (const GstVideoMultiviewMode view : {GST_VIDEO_MULTIVIEW_MODE_NONE, GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE}) {
        const Rectangle r = {6, 8, 33, 24};
        Random random = seeded();
        for (const char *properties : settings) {
          Cropped in(info_of(format, kWidth, kHeight, interlaced), r, random);
          GST_VIDEO_INFO_MULTIVIEW_MODE(&in.info) = view;
          in.info.fps_n = 30;
          add_marks(in.frame.get(), 0, 0);
          add_marks(in.copy.get(), r.x, r.y);
          Ref<GstBuffer> out[2];
          for (const bool whole : {false, true}) {
            GstBuffer *const frame = (whole ? in.frame : in.copy).get();
            if (view == GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE)
              GST_BUFFER_FLAG_SET(frame, GST_VIDEO_BUFFER_FLAG_MULTIPLE_VIEW);
            GST_BUFFER_PTS(frame) = 0;
            Harness h(std::string("roi-meta=true ") + properties, in.info);
            fail_unless_equals_int(h.push(frame), GST_FLOW_OK);
            fail_unless(gst_harness_push_event(h.get(), gst_event_new_eos()));
            out[whole] = h.pull();
          }
          fail_unless(same_samples(out[0].get(), out[1].get(), in.info), "%s, interlaced %d, view %d, %s", format,
                      interlaced, view, properties);
        }
      }
    }
  }
}
GST_END_TEST;

// Changes all samples of the pixels in a rectangle, chroma too.
void change(GstBuffer *frame, const GstVideoInfo &info, const Rectangle &r) {
  GstVideoFrame map;
  fail_unless(gst_video_frame_map(&map, &info, frame, GST_MAP_READWRITE));
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++) {
    const guint sub = GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, c);
    for (guint y = r.y; y < r.y + r.height; y++) {
      const auto alternate = [](guint at, guint by) { return 2 * ((at / 2) >> by) + at % 2; };
      const bool rows = GST_VIDEO_INFO_IS_INTERLACED(&info) ||
                        GST_VIDEO_INFO_MULTIVIEW_MODE(&info) == GST_VIDEO_MULTIVIEW_MODE_ROW_INTERLEAVED,
                 columns = GST_VIDEO_INFO_MULTIVIEW_MODE(&info) == GST_VIDEO_MULTIVIEW_MODE_COLUMN_INTERLEAVED;
      const guint row = rows ? alternate(y, sub) : y >> sub;
      for (guint x = r.x; x < r.x + r.width; x++) {
        const guint across = GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, c),
                    column = columns ? alternate(x, across) : x >> across;
        static_cast<uint8_t *>(GST_VIDEO_FRAME_COMP_DATA(
            &map, c))[row * GST_VIDEO_FRAME_COMP_STRIDE(&map, c) + column * GST_VIDEO_FRAME_COMP_PSTRIDE(&map, c)] ^=
            85;
      }
    }
  }
  gst_video_frame_unmap(&map);
}

// Frames that differ in the marked pixels alone give the same bytes, from any corner of the rectangle. `second`:
// another element takes the rectangle out first, and the metas of its output tell what to hide.
GST_START_TEST(chroma_shows_nothing_of_marked_pixels) {
  const Rectangle mark = {12, 12, 2, 3};
  for (const char *format : {"I420", "NV12", "YUY2", "UYVY", "Y42B", "A420", "Y444"}) {
    for (int i = 0; i < 64; i++) {
      const bool interlaced = i & 16, second = i & 32;
      const Rectangle r = {4u + i % 4, 4u + i / 4 % 4, 32, 24};
      const GstVideoInfo whole = info_of(format, kWidth, kHeight, interlaced), info = cropped(whole, r);
      Ref<GstBuffer> out[2];
      for (const bool changed : {false, true}) {
        Random random = seeded();
        Ref<GstBuffer> frame = random_frame(whole, random, kScattered);
        if (changed) change(frame.get(), whole, mark);
        add_crop(frame.get(), r);
        gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", mark.x, mark.y, mark.width, mark.height);
        if (second) frame = Harness("roi-meta=true roi-type=car", info).filter(frame.get());
        out[changed] = Harness("roi-meta=true mask=fill", info).filter(frame.get());
      }
      fail_unless(same_samples(out[0].get(), out[1].get(), info), "%s, interlaced %d, second %d, %s", format,
                  interlaced, second, text_of(r).c_str());
    }
  }
}
GST_END_TEST;

// At the edges of the picture, not all pixels of a sample are in it.
GST_START_TEST(chroma_at_the_edges_shows_nothing_of_marked_pixels) {
  for (const char *format : {"I420", "YUY2"})
    for (const GstVideoMultiviewMode view : {GST_VIDEO_MULTIVIEW_MODE_NONE, GST_VIDEO_MULTIVIEW_MODE_ROW_INTERLEAVED,
                                             GST_VIDEO_MULTIVIEW_MODE_COLUMN_INTERLEAVED})
      for (int i = 0; i < 64; i++) {
        const bool interlaced = view == GST_VIDEO_MULTIVIEW_MODE_NONE && i & 32;
        const Rectangle r = {4u + i % 4, 4u + i / 4 % 4, i & 16 ? 29u : 30u, i & 16 ? 19u : 22u};
        GstVideoInfo whole = info_of(format, kWidth, kHeight, interlaced), info = cropped(whole, r);
        GST_VIDEO_INFO_MULTIVIEW_MODE(&whole) = GST_VIDEO_INFO_MULTIVIEW_MODE(&info) = view;
        const Rectangle mark = i % 5 ? Rectangle{r.x + 3 + i % 7, r.y + r.height - 1, 1, 1}
                                     : Rectangle{r.x + r.width - 1, r.y + 4 + i % 5, 1, 1};
        Ref<GstBuffer> out[2];
        for (const bool changed : {false, true}) {
          Random random = seeded();
          const Ref<GstBuffer> frame = random_frame(whole, random, kScattered);
          if (changed) change(frame.get(), whole, mark);
          add_crop(frame.get(), r);
          gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", mark.x, mark.y, 1, 1);
          out[changed] = Harness("roi-meta=true mask=fill", info).filter(frame.get());
        }
        fail_unless(same_samples(out[0].get(), out[1].get(), info), "%s, interlaced %d, view %d, %s: %s", format,
                    interlaced, view, text_of(r).c_str(), text_of(mark).c_str());
      }
}
GST_END_TEST;

GstBuffer *with_time(const Ref<GstBuffer> &frame, int number) {
  GST_BUFFER_PTS(frame.get()) = gst_util_uint64_scale(number, GST_SECOND, 30);
  return frame.get();
}

// A region that is held, or looked for ahead, stays where it was in the whole frame while the rectangle moves, and
// where it was in the picture when the same picture comes in another frame.
GST_START_TEST(regions_in_time_stay_at_their_place) {
  const struct {
    int width, height;  // of the whole frame
    Rectangle r;
    int x, y;  // where the region is then, in the rectangle
  } other[] = {
      {67, 45, {6, 4, 32, 24}, 14, 11},     // the same rectangle
      {67, 45, {16, 0, 32, 24}, 4, 15},     // it moves
      {67, 45, {35, 21, 32, 24}, -15, -6},  // away from the region
      {80, 64, {40, 33, 32, 24}, 14, 11},   // the same picture in a larger frame
      {32, 24, {0, 0, 32, 24}, 14, 11},     // without anything around it
  };
  for (const auto &o : other) {
    for (const bool ahead : {false, true}) {
      Random random = seeded();
      const Cropped marked(info_of("GRAY8", 67, 45), {6, 4, 32, 24}, random),
          plain(info_of("GRAY8", o.width, o.height), o.r, random);
      gst_buffer_add_video_region_of_interest_meta(marked.frame.get(), "face", 20, 15, 8, 6);
      GstVideoInfo info = marked.info;
      info.fps_n = 30;
      Harness h(std::string("mask=fill roi-meta=true ") + (ahead ? "lookahead=1000000000" : "hold=1000000000"), info);
      const Ref<GstBuffer> &before = ahead ? plain.frame : marked.frame, &after = ahead ? marked.frame : plain.frame;
      fail_unless_equals_int(h.push(with_time(before, 0)), GST_FLOW_OK);
      fail_unless_equals_int(h.push(with_time(after, 1)), GST_FLOW_OK);
      fail_unless(gst_harness_push_event(h.get(), gst_event_new_eos()));
      const Ref<GstBuffer> out[] = {h.pull(), h.pull()};
      Regions regions;
      regions.active = true;
      regions.region = {{o.x, o.y, 8, 6}};
      fail_unless(is_filtered_in(plain.copy.get(), out[ahead ? 0 : 1].get(), info, "mask=fill", regions),
                  "%dx%d, %s, ahead %d", o.width, o.height, text_of(o.r).c_str(), ahead);
    }
  }
}
GST_END_TEST;

// A GstVideoMeta may give a size that no caps can have.
GST_START_TEST(regions_of_frames_of_any_size) {
  Random random = seeded();
  const GstVideoInfo whole = video_info("GRAY8", kWidth, 44);
  const Rectangle r = {6, 4, 32, 24};
  for (const guint size : {guint{G_MAXINT}, guint{G_MAXUINT}}) {
    const Ref<GstBuffer> frame = random_frame(whole, random), copy = crop(frame.get(), whole, r);
    gsize offset[GST_VIDEO_MAX_PLANES] = {};
    gint stride[GST_VIDEO_MAX_PLANES] = {GST_VIDEO_INFO_PLANE_STRIDE(&whole, 0)};
    gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, size, size, 1,
                                   offset, stride);
    add_crop(frame.get(), r);
    gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 14, 11, 9, 7);
    const GstVideoInfo info = cropped(whole, r);
    Harness h("mask=fill roi-meta=true", info);
    const Ref<GstBuffer> out = h.filter(frame.get());
    Regions regions;
    regions.active = true;
    regions.region = {{8, 7, 9, 7}};
    fail_unless(is_filtered_in(copy.get(), out.get(), info, "mask=fill", regions), "%u", size);
  }
}
GST_END_TEST;

// A field has every second row of the rectangle; regions count the rows of the whole frame.
GST_START_TEST(regions_of_single_fields) {
  for (const bool bottom : {false, true}) {
    Random random = seeded();
    const GstVideoInfo field = video_info("GRAY8", kWidth, 22);
    const Rectangle r = {6, 4, 32, 24}, rows = {6, 2, 32, 12};
    const Ref<GstBuffer> frame = random_frame(field, random), copy = crop(frame.get(), field, rows);
    gsize offset[GST_VIDEO_MAX_PLANES] = {};
    gint stride[GST_VIDEO_MAX_PLANES] = {GST_VIDEO_INFO_PLANE_STRIDE(&field, 0)};
    gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, kWidth, 44, 1,
                                   offset, stride);
    add_crop(frame.get(), r);
    GST_BUFFER_FLAG_SET(frame.get(), bottom ? GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD : GST_VIDEO_BUFFER_FLAG_TOP_FIELD);
    gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 14, 11, 9, 7);
    GstVideoInfo info;
    gst_video_info_set_interlaced_format(&info, GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_INTERLACE_MODE_ALTERNATE, 32, 24);
    info.fps_n = 30;
    Harness h("mask=fill roi-meta=true", info);
    const Ref<GstBuffer> out = h.filter(frame.get());
    Regions regions;
    regions.active = true;
    regions.first_row = bottom;
    regions.row_step = 2;
    regions.region = {{8, 7, 9, 7}};
    fail_unless(is_filtered_in(copy.get(), out.get(), cropped(field, rows), "mask=fill", regions), "bottom %d", bottom);
  }
}
GST_END_TEST;

// The height of a frame, or of a rectangle, and the row where that begins may be odd. Marked pixels are hidden, also by
// a second element, and at most two rows beside them.
GST_START_TEST(regions_of_single_fields_of_odd_rows) {
  const struct {
    guint height;
    Rectangle r;
  } cases[] = {{44, {6, 5, 32, 24}}, {44, {5, 7, 31, 23}},  {44, {9, 1, 24, 42}}, {43, {6, 0, 32, 43}},
               {43, {5, 2, 30, 41}}, {43, {10, 3, 27, 25}}, {44, {6, 8, 32, 25}}, {44, {6, 5, 32, 39}}};
  const Region face = {14, 11, 9, 7};
  for (const auto &c : cases)
    for (const bool bottom : {false, true})
      for (const char *properties : {"roi-meta=true", "roi-meta=true hold=1"}) {
        const guint rows = (c.height + 1) / 2;
        gsize offset[GST_VIDEO_MAX_PLANES] = {};
        gint stride[GST_VIDEO_MAX_PLANES] = {kWidth};
        const Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, kWidth * rows, nullptr));
        gst_buffer_memset(frame.get(), 0, 200, kWidth * rows);
        gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, kWidth, c.height,
                                       1, offset, stride);
        add_crop(frame.get(), c.r);
        GST_BUFFER_FLAG_SET(frame.get(), bottom ? GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD : GST_VIDEO_BUFFER_FLAG_TOP_FIELD);
        gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 14, 11, 9, 7);
        GstVideoInfo info;
        gst_video_info_set_interlaced_format(&info, GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_INTERLACE_MODE_ALTERNATE,
                                             static_cast<int>(c.r.width), static_cast<int>(c.r.height));
        info.fps_n = 30;
        Harness h(std::string("mask=fill ") + properties, info), second("mask=fill roi-meta=true", info);
        const Ref<GstBuffer> once = h.filter(frame.get()), again(gst_buffer_copy_deep(once.get()));
        gst_buffer_memset(again.get(), 0, 200, gst_buffer_get_size(again.get()));
        const Ref<GstBuffer> twice = second.filter(again.get());
        const int first = std::min(static_cast<int>(bottom ? c.r.y / 2 : (c.r.y + 1) / 2),
                                   static_cast<int>(rows) - GST_VIDEO_INFO_FIELD_HEIGHT(&info));
        for (GstBuffer *out : {once.get(), twice.get()}) {
          const FrameBytes bytes(out, info);
          for (int y = 0; y < GST_VIDEO_INFO_FIELD_HEIGHT(&info); y++)
            for (int x = 0; x < static_cast<int>(c.r.width); x++) {
              const int at_x = static_cast<int>(c.r.x) + x, at_y = 2 * (first + y) + bottom;
              const bool hidden = bytes.view.plane[0].data[y * bytes.view.plane[0].pitch + x] != 200;
              const auto is_in = [&](int more) {
                return at_x >= face.x && at_x < face.x + face.width && at_y >= face.y - more &&
                       at_y < face.y + face.height + more;
              };
              fail_unless(hidden ? is_in(2) : !is_in(0), "%ux%u at %u,%u of %u rows, bottom %d, %s, %s: %d at %d,%d",
                          c.r.width, c.r.height, c.r.x, c.r.y, c.height, bottom, properties,
                          out == once.get() ? "first" : "second", hidden, x, y);
            }
        }
      }
}
GST_END_TEST;

// ---- Neighbours -----------------------------------------------------------------------------------------------------

bool announces_crop(Harness &h, const GstVideoInfo &info) {
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
  gst_pad_peer_query(h.get()->srcpad, query.get());
  return gst_query_find_allocation_meta(query.get(), GST_VIDEO_CROP_META_API_TYPE, nullptr);
}

// A harness whose downstream supports GstVideoMeta and, if `takes_crop`, GstVideoCropMeta.
std::unique_ptr<Harness> harness_before(bool takes_crop, const std::string &properties, const GstVideoInfo &info) {
  auto h = std::make_unique<Harness>(properties);
  gst_harness_add_propose_allocation_meta(h->get(), GST_VIDEO_META_API_TYPE, nullptr);
  if (takes_crop) gst_harness_add_propose_allocation_meta(h->get(), GST_VIDEO_CROP_META_API_TYPE, nullptr);
  h->set_caps(info);
  return h;
}

GST_START_TEST(upstream_may_leave_the_cropping_to_the_element) {
  const GstVideoInfo info = video_info("I420", 32, 24);
  for (const bool takes_crop : {false, true})
    fail_unless(announces_crop(*harness_before(takes_crop, "mask=gauss5", info), info));
  fail_unless(announces_crop(*harness_before(true, "mask=identity", info), info));
}
GST_END_TEST;

// Whether the element announces crop rectangles in a pipeline: `before` stands between videotestsrc and the element.
bool announces_in(const std::string &before) {
  Pipeline pipeline("videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=64,height=48 ! " + before +
                    " ! cudaconv name=c backend=" + test_backend() + " ! fakesink");
  bool announced = false;
  const Ref<GstElement> element = pipeline.element("c");
  const Ref<GstPad> pad(gst_element_get_static_pad(element.get(), "sink"));
  gst_pad_add_probe(
      pad.get(), GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM,
      [](GstPad *, GstPadProbeInfo *info, gpointer data) {
        GstQuery *const query = GST_PAD_PROBE_INFO_QUERY(info);
        if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION && gst_query_get_n_allocation_metas(query))
          *static_cast<bool *>(data) = gst_query_find_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr);
        return GST_PAD_PROBE_OK;
      },
      &announced, nullptr);
  pipeline.go_to(GST_STATE_PLAYING);
  assert_same_text(pipeline.wait_for_end(), "");
  return announced;
}

// An element that works in place hands the announcement on to one that crops, and then reads other pixels.
GST_START_TEST(crop_rectangles_are_announced_to_what_crops_alone) {
  const struct {
    const char *element, *before;
    bool announced;
  } cases[] = {
      {"identity", "identity", true},
      {"videocrop", "videocrop left=4", true},
      {"aspectratiocrop", "aspectratiocrop aspect-ratio=1/1", true},
      {"videocrop", "videocrop left=4 ! queue ! identity ! capsfilter ! tee ! queue", true},
      {"videocrop", "videocrop left=4 ! videoconvert ! videorate", true},
      {"videobalance", "videocrop left=4 ! videobalance contrast=0.5", false},
      {"gamma", "videocrop left=4 ! queue ! gamma gamma=2 ! queue", false},
      {"timeoverlay", "videocrop left=4 ! timeoverlay", false},
      {"facedetect", "videocrop left=4 ! videoconvert ! facedetect display=false ! videoconvert", false},
  };
  for (const auto &c : cases) {
    const Ref<GstElementFactory> factory(gst_element_factory_find(c.element)),
        crop(gst_element_factory_find("videocrop"));
    if (factory && crop) fail_unless(announces_in(c.before) == c.announced, "%s", c.before);
  }
}
GST_END_TEST;

GST_START_TEST(filtered_frames_have_no_rectangle_for_downstream_that_takes_them) {
  Random random = seeded();
  const Cropped in(info_of("I420", kWidth, kHeight), {5, 3, 31, 21}, random);
  const auto h = harness_before(true, "mask=gauss5", in.info);
  const Ref<GstBuffer> out = h->filter(in.frame.get());
  fail_unless_plain(out.get(), in.info);
  assert_filtered(in.copy.get(), out.get(), in.info, "mask=gauss5");
}
GST_END_TEST;

GST_START_TEST(identity_leaves_rectangles_to_downstream_that_takes_them) {
  for (const bool asks : {false, true}) {
    Random random = seeded();
    const Rectangle r = {5, 3, 31, 21};
    const Cropped in(info_of("I420", kWidth, kHeight), r, random);
    const auto h = harness_before(true, "mask=identity", in.info);
    if (asks) announces_crop(*h, in.info);
    const Ref<GstBuffer> out = h->filter(in.frame.get());
    const GstVideoCropMeta *meta = gst_buffer_get_video_crop_meta(out.get());
    fail_unless(meta != nullptr, "the rectangle is gone");
    fail_unless(meta->x == r.x && meta->y == r.y && meta->width == r.width && meta->height == r.height);
    fail_unless(same_samples(in.frame.get(), out.get(), info_of("I420", kWidth, kHeight)));
  }
}
GST_END_TEST;

GST_START_TEST(identity_crops_for_downstream_that_takes_no_rectangles) {
  for (const char *format : kFormats) {
    for (const Rectangle &r : kRectangles) {
      Random random = seeded();
      const Cropped in(info_of(format, kWidth, kHeight), r, random);
      const auto h = harness_before(false, "mask=identity roi-meta=true", in.info);
      const Ref<GstBuffer> out = h->filter(in.frame.get());
      fail_unless_plain(out.get(), in.info);
      fail_unless(same_samples(in.copy.get(), out.get(), in.info), "%s, %s", format, text_of(r).c_str());
      // Then a frame without a rectangle passes through, and the next frame with a rectangle is cropped.
      const Ref<GstBuffer> plain = random_frame(in.info, random), next = h->filter(plain.get());
      fail_unless(same_samples(plain.get(), next.get(), in.info));
      const Ref<GstBuffer> last = h->filter(in.frame.get());
      fail_unless_plain(last.get(), in.info);
      fail_unless(same_samples(in.copy.get(), last.get(), in.info));
    }
  }
}
GST_END_TEST;

// Frames wait for later ones while the mask becomes identity. Identity passes frames, and needs no pool until a waiting
// frame has a rectangle. Its rows are longer than the rectangle.
GST_START_TEST(frames_wait_while_the_mask_becomes_identity) {
  Random random = seeded();
  const Cropped in(info_of("GRAY8", kWidth, kHeight), kRectangles[2], random);
  const auto h = harness_before(false, "roi-meta=true lookahead=1000000000", in.info);
  const Ref<GstBuffer> plain = random_frame(in.info, random);
  GST_BUFFER_PTS(plain.get()) = 0;
  GST_BUFFER_PTS(in.frame.get()) = 1;
  fail_unless_equals_int(h->push(plain.get()), GST_FLOW_OK);
  fail_unless_equals_int(h->push(in.frame.get()), GST_FLOW_OK);
  h->set("mask=identity");
  push_event(*h, gst_event_new_eos());
  const Ref<GstBuffer> first = h->pull(), second = h->pull();
  fail_unless(same_samples(plain.get(), first.get(), in.info));
  fail_unless_plain(second.get(), in.info);
  fail_unless(same_samples(in.copy.get(), second.get(), in.info));
}
GST_END_TEST;

GST_START_TEST(the_mask_changes_while_frames_have_rectangles) {
  for (const bool takes_crop : {false, true}) {
    Random random = seeded();
    const GstVideoInfo whole = info_of("NV12", kWidth, kHeight);
    const auto h = harness_before(takes_crop, "mask=gauss5", cropped(whole, kRectangles[2]));
    for (const char *mask : {"mask=gauss5", "mask=identity", "mask=sobel", "mask=identity", "mask=identity"}) {
      h->set(mask);
      const Cropped in(whole, kRectangles[2], random);
      const Ref<GstBuffer> out = h->filter(in.frame.get());
      if (gst_buffer_get_video_crop_meta(out.get())) {
        fail_unless(takes_crop && !strcmp(mask, "mask=identity"), "%s leaves the rectangle", mask);
        fail_unless(same_samples(in.frame.get(), out.get(), whole));
        continue;
      }
      assert_filtered(in.copy.get(), out.get(), in.info, mask);
    }
  }
}
GST_END_TEST;

// The element asks again whether downstream takes crop rectangles after a reconfigure event and after a restart.
GST_START_TEST(downstream_may_change_its_mind) {
  for (const bool restarts : {false, true}) {
    Random random = seeded();
    const GstVideoInfo whole = info_of("I420", kWidth, kHeight);
    const Cropped in(whole, {5, 3, 31, 21}, random), other(whole, {6, 4, 32, 24}, random);
    const auto h = harness_before(false, "mask=identity", in.info);
    const Ref<GstBuffer> out = h->filter(in.frame.get());
    fail_unless_plain(out.get(), in.info);
    // Other caps are no reason to ask again.
    h->set_caps(other.info);
    const Ref<GstBuffer> next = h->filter(other.frame.get());
    fail_unless_plain(next.get(), other.info);
    fail_unless(same_samples(other.copy.get(), next.get(), other.info));

    if (restarts) gst_element_set_state(h->element(), GST_STATE_READY);
    gst_harness_add_propose_allocation_meta(h->get(), GST_VIDEO_CROP_META_API_TYPE, nullptr);
    if (restarts) {
      gst_element_set_state(h->element(), GST_STATE_PLAYING);
      h->set_caps(in.info);
      h->set_caps(other.info);
    } else {
      fail_unless(gst_pad_push_event(h->get()->sinkpad, gst_event_new_reconfigure()));
    }
    const Ref<GstBuffer> last = h->filter(other.frame.get());
    fail_unless(gst_buffer_get_video_crop_meta(last.get()) != nullptr, "the rectangle is gone");
    fail_unless(same_samples(other.frame.get(), last.get(), whole));
  }
}
GST_END_TEST;

// ---- Errors ---------------------------------------------------------------------------------------------------------

// A row of five pixels has three macropixels. The first byte of the last macropixel is read, so it must be in memory.
GST_START_TEST(a_macropixel_that_the_memory_cuts_off_is_an_error) {
  const GstVideoInfo whole = info_of("YUY2", 5, 2);
  const Rectangle r = {1, 0, 4, 2};
  const gsize stride = GST_VIDEO_INFO_PLANE_STRIDE(&whole, 0);
  for (const gsize last_row : {gsize{8}, gsize{9}, gsize{12}}) {
    Harness h("", cropped(whole, r));
    const Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, stride + last_row, nullptr));
    gst_buffer_memset(frame.get(), 0, 0, -1);
    gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_YUY2, 5, 2, 1,
                                   const_cast<gsize *>(whole.offset), const_cast<gint *>(whole.stride));
    add_crop(frame.get(), r);
    const bool fits = last_row > 8;
    fail_unless_equals_int(h.push(frame.get()), fits ? GST_FLOW_OK : GST_FLOW_ERROR);
    if (fits) continue;
    assert_same_text(h.take_one(GST_MESSAGE_ERROR).text,
                     "An input buffer is too small for its caps: plane 0 needs " + std::to_string(stride + 9) +
                         " bytes from byte 0 of a memory of " + std::to_string(stride + 8) + ".");
  }
}
GST_END_TEST;

GST_START_TEST(a_rectangle_beyond_the_frame_is_an_error) {
  const Rectangle beyond[] = {
      {kWidth - 31, 0, 32, 24}, {0, kHeight - 23, 32, 24},  {kWidth, kHeight, 32, 24},
      {G_MAXUINT, 0, 32, 24},   {0, G_MAXUINT - 3, 32, 24}, {G_MAXINT, G_MAXINT, 32, 24},
  };
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    for (const Rectangle &r : beyond) {
      Random random = seeded();
      const GstVideoInfo whole = info_of("I420", kWidth, kHeight);
      const auto h = harness_before(false, mask, video_info("I420", 32, 24));
      const Ref<GstBuffer> frame = random_frame(whole, random, kScattered);
      add_crop(frame.get(), r);
      fail_unless_equals_int(h->push(frame.get()), GST_FLOW_ERROR);
      fail_unless_equals_int(gst_harness_buffers_in_queue(h->get()), 0);
      const Report report = h->take_one(GST_MESSAGE_ERROR);
      // The message names the frame's size.
      fail_unless((report.text + report.debug).find("67x45") != std::string::npos, "%s: %s", report.text.c_str(),
                  report.debug.c_str());
    }
  }
}
GST_END_TEST;

// ---- CUDA memory ----------------------------------------------------------------------------------------------------

#ifdef HAVE_DEVICE_MEMORY
GST_START_TEST(rectangles_of_frames_in_cuda_memory) {
  if (strcmp(test_backend(), "cuda") != 0) return;
  // Heights are even: GStreamer 1.22 reads planar 4:2:0 of an odd height back from CUDA memory without its last rows.
  for (const char *format : {"NV12", planar_format(), "RGBA", "P010_10LE"}) {
    for (const Rectangle &r : {Rectangle{0, 0, 32, 24}, Rectangle{6, 4, 32, 24}, Rectangle{5, 3, 31, 22}}) {
      for (const bool device_out : {false, true}) {
        for (const char *properties : {"mask=gauss5", "mask=sobel frames-in-flight=1"}) {
          Random random = seeded();
          const GstVideoInfo whole = info_of(format, kWidth + 1, kHeight + 1);
          const Cropped in(whole, r, random);
          Harness h(properties);
          set_caps(h, in.info, true, device_out);
          const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
          for (int i = 0; i < 2; i++) {
            const Ref<GstBuffer> frame = device->copy(in.frame.get(), whole);
            add_crop(frame.get(), r);
            const Ref<GstBuffer> out = h.filter(frame.get());
            fail_unless(device->holds(out.get()) == device_out, "the output is in the wrong memory");
            fail_unless_plain(out.get(), in.info);
            assert_filtered(in.copy.get(), out.get(), in.info, properties);
            h.settle();  // until the element holds the frame no more
            add_marks(frame.get(), 0, 0);
            h.set("roi-meta=true");
            const Ref<GstBuffer> marked = h.filter(frame.get());
            Regions regions;
            regions.active = true;
            for (const NamedRegion &mark : kMarks) regions.region.push_back(in_picture(mark.region, r, in.info));
            fail_unless(is_filtered_in(in.copy.get(), marked.get(), in.info, properties, regions));
            h.set("roi-meta=false");
          }
        }
      }
    }
  }
}
GST_END_TEST;
#endif

// ---- Pipelines ------------------------------------------------------------------------------------------------------

bool has_elements(std::initializer_list<const char *> names) {
  for (const char *name : names) {
    const Ref<GstElementFactory> factory(gst_element_factory_find(name));
    if (factory) continue;
    g_print("SKIP: no element %s\n", name);
    return false;
  }
  return true;
}

struct Collected {
  std::vector<Ref<GstBuffer>> frame;  // deep copies
  int with_crop = 0;

  static GstPadProbeReturn take(GstPad *, GstPadProbeInfo *info, gpointer data) {
    auto *self = static_cast<Collected *>(data);
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    self->with_crop += gst_buffer_get_video_crop_meta(buffer) != nullptr;
    self->frame.emplace_back(gst_buffer_copy_deep(buffer));
    return GST_PAD_PROBE_OK;
  }
};

// Runs the pipeline and collects frames and caps at the sink pad of the element.
Collected collect(const std::string &line, const char *element) {
  Collected collected;
  Pipeline pipeline(line);
  const Ref<GstElement> at = pipeline.element(element);
  const Ref<GstPad> pad(gst_element_get_static_pad(at.get(), "sink"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, Collected::take, &collected, nullptr);
  pipeline.go_to(GST_STATE_PLAYING);
  const std::string why = pipeline.wait_for_end();
  pipeline.go_to(GST_STATE_NULL);
  assert_same_text(why, "");
  return collected;
}

GST_START_TEST(videocrop_leaves_the_cropping_to_the_element) {
  if (!has_elements({"videotestsrc", "videocrop"})) return;
  for (const char *format : {"I420", "NV12", "YUY2", "RGBA"}) {
    for (const char *crop : {"left=64 top=64", "left=6 top=10 right=4 bottom=2", "left=63 top=33 right=1"}) {
      const std::string source =
          std::string("videotestsrc num-buffers=2 pattern=zone-plate kx2=20 ky2=20 kt=1 ! video/x-raw,format=") +
          format + ",width=128,height=128 ! videocrop " + crop;
      const std::string filter = std::string(" ! cudaconv name=c backend=") + test_backend() + " mask=";
      const Collected plain = collect(source + " ! fakesink name=sink", "sink");
      fail_unless_equals_int(plain.with_crop, 0);
      fail_unless_equals_int(plain.frame.size(), 2);
      int left = 0, top = 0, right = 0, bottom = 0;
      for (const auto &[name, value] :
           {std::pair{"left=", &left}, {"top=", &top}, {"right=", &right}, {"bottom=", &bottom}})
        if (const char *at = strstr(crop, name)) *value = atoi(at + strlen(name));
      const GstVideoInfo info = video_info(format, 128 - left - right, 128 - top - bottom);
      // videocrop itself is wrong for these frames: it does not move the last luma sample of a row.
      if (is_packed_422(info) && left % 2) continue;

      for (const char *mask : {"gauss5", "identity"}) {
        fail_unless_equals_int(collect(source + filter + mask + " ! fakesink name=sink", "c").with_crop,
                               !strcmp(mask, "identity") ? 0 : 2);
        const Collected filtered = collect(source + filter + mask + " ! fakesink name=sink", "sink");
        fail_unless_equals_int(filtered.with_crop, 0);
        fail_unless_equals_int(filtered.frame.size(), 2);
        for (size_t i = 0; i < 2; i++)
          assert_filtered(plain.frame[i].get(), filtered.frame[i].get(), info, std::string("mask=") + mask);
      }
      // Two elements in a row; the first element crops.
      const Collected twice = collect(source + filter + "box3 ! queue" + " ! cudaconv backend=" + test_backend() +
                                          " mask=identity ! video/x-raw ! fakesink name=sink",
                                      "sink");
      fail_unless_equals_int(twice.frame.size(), 2);
      for (size_t i = 0; i < 2; i++) assert_filtered(plain.frame[i].get(), twice.frame[i].get(), info, "mask=box3");
    }
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("crop");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, only_the_rectangle_is_filtered);
  tcase_add_test(tc, the_border_mode_applies_at_the_rectangles_edges);
  tcase_add_test(tc, rectangles_of_interlaced_frames);
  tcase_add_test(tc, rectangles_of_single_fields);
  tcase_add_test(tc, rectangles_of_planes_in_several_pieces_of_memory);
  tcase_add_test(tc, rectangles_come_change_and_go);
  tcase_add_test(tc, caps_change_with_the_rectangle);
  tcase_add_test(tc, regions_of_metas_count_from_the_whole_frame);
  tcase_add_test(tc, regions_are_those_of_a_copy_of_the_rectangle);
  tcase_add_test(tc, chroma_shows_nothing_of_marked_pixels);
  tcase_add_test(tc, chroma_at_the_edges_shows_nothing_of_marked_pixels);
  tcase_add_test(tc, regions_in_time_stay_at_their_place);
  tcase_add_test(tc, regions_of_frames_of_any_size);
  tcase_add_test(tc, regions_of_single_fields);
  tcase_add_test(tc, regions_of_single_fields_of_odd_rows);
  tcase_add_test(tc, upstream_may_leave_the_cropping_to_the_element);
  tcase_add_test(tc, crop_rectangles_are_announced_to_what_crops_alone);
  tcase_add_test(tc, filtered_frames_have_no_rectangle_for_downstream_that_takes_them);
  tcase_add_test(tc, identity_leaves_rectangles_to_downstream_that_takes_them);
  tcase_add_test(tc, identity_crops_for_downstream_that_takes_no_rectangles);
  tcase_add_test(tc, frames_wait_while_the_mask_becomes_identity);
  tcase_add_test(tc, the_mask_changes_while_frames_have_rectangles);
  tcase_add_test(tc, downstream_may_change_its_mind);
  tcase_add_test(tc, a_macropixel_that_the_memory_cuts_off_is_an_error);
  tcase_add_test(tc, a_rectangle_beyond_the_frame_is_an_error);
#ifdef HAVE_DEVICE_MEMORY
  tcase_add_test(tc, rectangles_of_frames_in_cuda_memory);
#endif
  tcase_add_test(tc, videocrop_leaves_the_cropping_to_the_element);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "crop", make_suite, !strcmp(test_backend(), "cuda"));
}
