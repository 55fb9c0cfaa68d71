// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests frame-packed stereo: each view is filtered as a separate frame, and no view affects the other.
#include <algorithm>
#include <cstring>

#include "reference.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

struct Picture {
  int x, y, width, height;
};

using Mode = GstVideoMultiviewMode;
constexpr Mode kBeside = GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE, kAbove = GST_VIDEO_MULTIVIEW_MODE_TOP_BOTTOM,
               kQuincunx = GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE_QUINCUNX,
               kRows = GST_VIDEO_MULTIVIEW_MODE_ROW_INTERLEAVED, kColumns = GST_VIDEO_MULTIVIEW_MODE_COLUMN_INTERLEAVED;

struct Case {
  const char *format;
  int width, height;
  Mode mode;
  GstVideoInterlaceMode interlacing;
  std::vector<Picture> pictures;  // expected pictures; none: alternate rows or columns
};

constexpr GstVideoInterlaceMode kProgressive = GST_VIDEO_INTERLACE_MODE_PROGRESSIVE,
                                kInterleaved = GST_VIDEO_INTERLACE_MODE_INTERLEAVED;

// The seam is in the middle, or at the last chroma pixel before it; with fields, at the last chroma pixel of both
// fields.
const std::vector<Case> &cases() {
  static const std::vector<Case> list = {
      {"GRAY8", 40, 30, kBeside, kProgressive, {{0, 0, 20, 30}, {20, 0, 20, 30}}},
      {"GRAY8", 40, 30, kQuincunx, kProgressive, {{0, 0, 20, 30}, {20, 0, 20, 30}}},
      {"GRAY8", 41, 31, kAbove, kProgressive, {{0, 0, 41, 15}, {0, 15, 41, 16}}},
      {"RGBA", 37, 20, kBeside, kProgressive, {{0, 0, 18, 20}, {18, 0, 19, 20}}},
      {"RGB", 37, 20, kBeside, kInterleaved, {{0, 0, 18, 20}, {18, 0, 19, 20}}},
      {"NV12", 64, 36, kBeside, kProgressive, {{0, 0, 32, 36}, {32, 0, 32, 36}}},
      {"NV12", 64, 36, kAbove, kProgressive, {{0, 0, 64, 18}, {0, 18, 64, 18}}},
      {"I420", 42, 30, kBeside, kProgressive, {{0, 0, 20, 30}, {20, 0, 22, 30}}},
      {"I420", 42, 30, kAbove, kProgressive, {{0, 0, 42, 14}, {0, 14, 42, 16}}},
      {"I420", 42, 30, kAbove, kInterleaved, {{0, 0, 42, 12}, {0, 12, 42, 18}}},
      {"NV12", 42, 30, kBeside, kInterleaved, {{0, 0, 20, 30}, {20, 0, 22, 30}}},
      {"P010_10LE", 40, 32, kBeside, kProgressive, {{0, 0, 20, 32}, {20, 0, 20, 32}}},
      {"P010_10LE", 42, 30, kAbove, kInterleaved, {{0, 0, 42, 12}, {0, 12, 42, 18}}},
      {"YUY2", 42, 20, kBeside, kProgressive, {{0, 0, 20, 20}, {20, 0, 22, 20}}},
      {"YUY2", 42, 22, kAbove, kProgressive, {{0, 0, 42, 11}, {0, 11, 42, 11}}},
      {"A420", 44, 24, kBeside, kProgressive, {{0, 0, 22, 24}, {22, 0, 22, 24}}},
      {"RGB10A2_LE", 22, 20, kBeside, kProgressive, {{0, 0, 11, 20}, {11, 0, 11, 20}}},
      {"I420", 2, 2, kBeside, kProgressive, {{0, 0, 2, 2}}},  // too small for two views
      {"GRAY8", 7, 1, kAbove, kProgressive, {{0, 0, 7, 1}}},
      {"GRAY8", 2, 1, kBeside, kProgressive, {{0, 0, 1, 1}, {1, 0, 1, 1}}},
      {"GRAY8", 41, 31, kRows, kProgressive, {}},
      {"RGBA", 23, 20, kRows, kProgressive, {}},
      {"NV12", 32, 36, kRows, kProgressive, {}},
      {"I420", 33, 38, kRows, kProgressive, {}},  // the last rows have no chroma
      {"P010_10LE", 20, 27, kRows, kProgressive, {}},
      {"YUY2", 26, 21, kRows, kProgressive, {}},
      {"A420", 28, 24, kRows, kProgressive, {}},
      {"GRAY8", 7, 1, kRows, kProgressive, {}},
      {"GRAY8", 41, 31, kColumns, kProgressive, {}},
      {"RGBA", 23, 20, kColumns, kProgressive, {}},
      {"RGB", 23, 21, kColumns, kInterleaved, {}},
      {"NV12", 32, 36, kColumns, kProgressive, {}},
      {"I420", 38, 33, kColumns, kProgressive, {}},  // the last columns have no chroma
      {"I420", 36, 30, kColumns, kInterleaved, {}},
      {"P010_10LE", 27, 20, kColumns, kProgressive, {}},
      {"YUY2", 26, 21, kColumns, kProgressive, {}},
      {"Y42B", 39, 17, kColumns, kProgressive, {}},
      {"A420", 28, 24, kColumns, kProgressive, {}},
      {"ARGB64", 21, 16, kColumns, kProgressive, {}},
      {"RGB10A2_LE", 23, 20, kColumns, kProgressive, {}},
      {"I420", 2, 3, kColumns, kProgressive, {}},  // the right view has no chroma
      {"GRAY8", 1, 7, kColumns, kProgressive, {}},
  };
  return list;
}

GstVideoInfo info_of(const Case &c) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(c.format), c.interlacing, c.width, c.height);
  info.fps_n = 30;
  GST_VIDEO_INFO_MULTIVIEW_MODE(&info) = c.mode;
  info.views = 2;
  return info;
}

// Filters a part of a frame as a frame of its own.
void filter_part(const FrameLayout &layout, const FrameView &view, const std::string &properties,
                 const Regions &regions) {
  reference::write(reference::filter(settings_of(properties), layout, reference::read(layout, view), regions), layout,
                   view);
}

// Filters every second row, or column, of the frame. Their pixels are next to each other for the filter, which finds
// `regions` and blocks of mosaics in the frame.
void filter_alternate(const GstVideoInfo &info, const FrameView &frame, bool columns, int first,
                      const std::string &properties, Regions regions) {
  const FrameLayout whole = layout_of(info);
  FrameLayout layout = whole;
  FrameView view = frame;
  layout.planes = 0;
  for (int p = 0; p < whole.planes; p++) {
    PlaneLayout plane = whole.plane[p];
    (columns ? plane.width : plane.height) = ((columns ? plane.width : plane.height) - first + 1) / 2;
    if (columns) {
      plane.first += first * plane.step;
      plane.step *= 2;
    }
    if (plane.width > 0 && plane.height > 0) layout.plane[layout.planes++] = plane;
  }
  if (layout.planes == 0) return;
  (columns ? regions.first_column : regions.first_row) = first;
  (columns ? regions.column_step : regions.row_step) = 2;
  for (PlaneView &plane : view.plane) {
    if (columns) continue;
    plane.data += first * plane.pitch;
    plane.pitch *= 2;
  }
  filter_part(layout, view, properties, regions);
}

// The bytes of the buffer with each view filtered by the reference. `regions` count pixels of the whole frame.
std::vector<uint8_t> filtered(GstBuffer *buffer, const GstVideoInfo &info, const std::vector<Picture> &pictures,
                              const std::string &properties, const Regions &regions) {
  FrameBytes bytes(buffer, info);
  for (int first = 0; first < 2 && pictures.empty(); first++)
    filter_alternate(info, bytes.view, GST_VIDEO_INFO_MULTIVIEW_MODE(&info) == kColumns, first, properties, regions);
  for (const Picture &p : pictures) {
    GstVideoInfo picture = info;
    picture.width = p.width;
    picture.height = p.height;
    const FrameLayout layout = layout_of(picture);
    FrameView view = bytes.view;
    for (int i = 0; i < layout.planes; i++) {
      const PlaneLayout &plane = layout.plane[i];
      // Planes that share memory begin at the same byte. The most subsampled plane gives it.
      if (plane.memory_plane == 0 && i > 0 && layout.plane[0].memory_plane == 0 && plane.step != 4) continue;
      view.plane[plane.memory_plane].data = bytes.view.plane[plane.memory_plane].data +
                                            (p.y >> plane.sub_y) * bytes.view.plane[plane.memory_plane].pitch +
                                            (p.x >> plane.sub_x) * plane.step * plane.bytes_per_container();
    }
    Regions here = regions;
    for (Region &r : here.region) r.x -= p.x, r.y -= p.y;
    filter_part(layout, view, properties, here);
  }
  return std::move(bytes.bytes);
}

void check(const Case &c, const std::string &properties, const Regions &regions, const std::string &roi) {
  Random random = seeded();
  const GstVideoInfo info = info_of(c);
  for (const Placement *placement : {static_cast<const Placement *>(nullptr), c.height % 2 ? &kUpward : &kScattered})
    for (const bool in_place : {false, true}) {
      if (in_place && !regions.active) continue;
      Harness h(properties + roi);
      gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
      h.set_caps(info);
      Ref<GstBuffer> in = placement ? random_frame(info, random, *placement) : random_frame(info, random);
      const std::vector<uint8_t> want = filtered(in.get(), info, c.pictures, properties, regions);
      Ref<GstBuffer> expected(gst_buffer_copy_deep(in.get())), out;
      gst_buffer_fill(expected.get(), 0, want.data(), want.size());
      if (in_place) {
        const GstBuffer *const sent = in.get();
        fail_unless_equals_int(gst_harness_push(h.get(), in.release()), GST_FLOW_OK);
        out = h.pull();
        // With roi-invert the GPU writes most of the frame, to a new buffer.
        const bool stays = !regions.invert || strcmp(test_backend(), "cuda") != 0;
        fail_unless_equals_int(out.get() == sent, stays);
        // Outside regions, unused bits stay, too; the reference clears them.
        const bool has_unused_bits = !strcmp(c.format, "P010_10LE");
        fail_unless(!stays || has_unused_bits || FrameBytes(out.get(), info).bytes == want,
                    "%s %dx%d, mode %d, in place: %s%s", c.format, c.width, c.height, c.mode, properties.c_str(),
                    roi.c_str());
      } else {
        out = h.filter(in.get());
      }
      fail_unless(same_samples(expected.get(), out.get(), info), "%s %dx%d, mode %d: %s%s", c.format, c.width, c.height,
                  c.mode, properties.c_str(), roi.c_str());
      fail_unless_equals_uint64(stat(h, "frames"), 1);
    }
}

GST_START_TEST(each_view_is_filtered_separately) {
  for (const Case &c : cases())
    for (const char *properties :
         {"mask=gauss5 chroma=filter", "mask=box size=21 border=wrap", "mask=median border=reflect",
          "mask=sobel chroma=filter", "mask=open size=5 border=keep", "mask=mosaic size=6", "mask=gauss7 iterations=3"})
      check(c, properties, {}, "");
}
GST_END_TEST;

// Regions count pixels of the whole frame, and may reach over the seam.
GST_START_TEST(regions_may_span_both_views) {
  for (const Case &c : cases())
    for (const char *properties : {"mask=gauss5 chroma=filter", "mask=mosaic size=4", "mask=dilate iterations=2"})
      for (const bool invert : {false, true}) {
        Regions regions;
        regions.active = true;
        regions.invert = invert;
        regions.region = {{c.width / 2 - 3, c.height / 2 - 4, 9, 8}, {1, 1, 4, 3}, {c.width - 5, c.height - 5, 5, 5}};
        std::string roi;
        for (Region &r : regions.region) {
          if (r.x < 0 || r.y < 0) r = {0, 0, 2, 1};
          roi += (roi.empty() ? " roi='" : "; ") + std::to_string(r.x) + "," + std::to_string(r.y) + "," +
                 std::to_string(r.width) + "," + std::to_string(r.height);
        }
        if (c.width < 10 || c.height < 10) continue;
        check(c, properties, regions, roi + (invert ? "' roi-invert=true" : "'"));
      }
}
GST_END_TEST;

// If the caps allow frames that are not stereo, each buffer has a flag.
GST_START_TEST(some_frames_may_be_of_one_view) {
  Random random = seeded();
  for (const Case &c : cases()) {
    if (strcmp(c.format, "NV12") != 0 || c.interlacing != kProgressive) continue;
    GstVideoInfo info = info_of(c);
    GST_VIDEO_INFO_MULTIVIEW_FLAGS(&info) = GST_VIDEO_MULTIVIEW_FLAGS_MIXED_MONO;
    const std::string properties = "mask=gauss5";
    Harness h(properties, info);
    for (int i = 0; i < 4; i++) {
      const Ref<GstBuffer> in = random_frame(info, random);
      if (i % 2) GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_MULTIPLE_VIEW);
      const Ref<GstBuffer> out = h.filter(in.get());
      const std::vector<uint8_t> want = filtered(
          in.get(), info, i % 2 ? c.pictures : std::vector<Picture>{{0, 0, c.width, c.height}}, properties, {});
      fail_unless(FrameBytes(out.get(), info).bytes == want, "mode %d, frame %d", c.mode, i);
    }
  }
}
GST_END_TEST;

// Regions of any form hide the same pixels of the frame, whichever view has them.
GST_START_TEST(regions_of_any_form_count_pixels_of_the_frame) {
  Regions polygon;
  polygon.active = true;
  auto pixels = std::make_shared<RegionPixels>();  // a triangle: row y has columns 5 to 5 + 2 * y
  pixels->box = {5, 0, 34, 17};
  for (int y = 0; y < 17; y++) {
    pixels->run.push_back({5, 6 + 2 * y});
    pixels->first.push_back(pixels->run.size());
  }
  polygon.pixels = {pixels};
  Regions ellipse;
  ellipse.active = ellipse.ellipse = true;
  ellipse.region = {{3, 2, 17, 14}};
  Regions corner = ellipse;  // it has a pixel of a view, but the ellipse of the whole frame has none
  corner.region = {{-3, -3, 4, 4}};
  Regions soft_polygon = polygon, soft_ellipse = ellipse;
  soft_polygon.feather = 7 * 256;
  soft_ellipse.feather = 4 * 256 + 128;
  for (const Case &c : cases()) {
    if (!c.pictures.empty() || c.interlacing != kProgressive || c.width < 23 || c.height < 20) continue;
    for (const char *properties : {"mask=gauss5 chroma=filter", "mask=mosaic size=5", "mask=dilate iterations=2"}) {
      check(c, properties, polygon, " roi='5,0 39,17 5,17'");
      check(c, properties, ellipse, " roi='3,2,17,14' roi-shape=ellipse");
      check(c, properties, corner, " roi='-3,-3,4,4' roi-shape=ellipse");
      check(c, properties, soft_polygon, " roi='5,0 39,17 5,17' roi-feather=7");
      check(c, properties, soft_ellipse, " roi='3,2,17,14' roi-shape=ellipse roi-feather=4.5");
    }
  }
}
GST_END_TEST;

// Views of one colour stay so, also where a crop rectangle begins between them.
GST_START_TEST(views_of_one_colour_stay_so) {
  for (const Mode mode : {kBeside, kQuincunx, kAbove, kRows, kColumns})
    for (const char *format : {"GRAY8", "I420", "NV12", "YUY2", "RGBA", "RGB10A2_LE"})
      for (const Picture &crop :
           {Picture{0, 0, 48, 40}, Picture{1, 0, 40, 40}, Picture{2, 3, 36, 32}, Picture{5, 2, 24, 20}}) {
        const bool halves = mode == kBeside || mode == kQuincunx || mode == kAbove;
        if (halves && crop.x + crop.y > 0) continue;  // a rectangle has its own middle
        const GstVideoInfo whole = video_info(format, 48, 40);
        Ref<GstBuffer> in(new_placed_buffer(whole, 0));
        FrameBytes bytes(in.get(), whole);
        const FrameLayout layout = layout_of(whole);
        reference::Frame frame = reference::read(layout, bytes.view);
        for (int p = 0; p < layout.planes; p++)
          for (int c = 0; c < layout.plane[p].channels; c++) {
            reference::Channel &channel = frame.plane[p][c];
            const int width = channel.width, height = channel.height, max = (1 << layout.plane[p].channel[c].depth) - 1;
            for (int i = 0; i < width * height; i++) {
              const int x = i % width, y = i / width;
              const int view = mode == kRows      ? y % 2
                               : mode == kColumns ? x % 2
                               : mode == kAbove   ? y >= height / 2
                                                  : x >= width / 2;
              channel.sample[i] = view ? max : 0;
            }
          }
        reference::write(frame, layout, bytes.view);
        gst_buffer_fill(in.get(), 0, bytes.bytes.data(), bytes.bytes.size());
        GstVideoInfo info = video_info(format, crop.width, crop.height);
        GST_VIDEO_INFO_MULTIVIEW_MODE(&info) = mode;
        info.views = 2;
        GstVideoCropMeta *meta = gst_buffer_add_video_crop_meta(in.get());
        meta->x = crop.x, meta->y = crop.y, meta->width = crop.width, meta->height = crop.height;
        for (const char *mask : {"mask=gauss5", "mask=median", "mask=mosaic size=8", "mask=close"}) {
          Harness h(std::string(mask) + " alpha=filter", info);
          const Ref<GstBuffer> out = h.filter(in.get());
          const reference::Frame got = reference::read(layout_of(info), FrameBytes(out.get(), info).view);
          for (int p = 0; p < layout.planes; p++)
            for (int c = 0; c < layout.plane[p].channels; c++) {
              const int max = (1 << layout.plane[p].channel[c].depth) - 1;
              int mixed = 0;
              for (const int v : got.plane[p][c].sample) mixed += v != 0 && v != max;
              fail_unless_equals_int(mixed, 0);
            }
        }
      }
}
GST_END_TEST;

GST_START_TEST(views_that_cannot_be_told_apart_are_refused) {
  const auto error_for = [](const std::string &caps) {
    Harness h("");
    gst_harness_set_src_caps_str(h.get(),
                                 ("video/x-raw,format=GRAY8,width=32,height=24,framerate=25/1," + caps).c_str());
    return h.take_one(GST_MESSAGE_ERROR).text;
  };
  assert_same_text(error_for("multiview-mode=checkerboard,views=2"),
                   "multiview-mode=checkerboard is not supported, because the neighbours of each pixel belong to the "
                   "other view; use side-by-side or top-bottom");
  for (const char *mode : {"interleaved", "mixed"})
    assert_same_text(error_for(std::string("multiview-mode=row-interleaved,views=2,interlace-mode=") + mode),
                     "multiview-mode=row-interleaved is not supported in interlaced video, where rows alternate "
                     "between fields");
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("stereo");
  TCase *tc = tcase_create("general");
  tcase_add_test(tc, each_view_is_filtered_separately);
  tcase_add_test(tc, regions_may_span_both_views);
  tcase_add_test(tc, some_frames_may_be_of_one_view);
  tcase_add_test(tc, regions_of_any_form_count_pixels_of_the_frame);
  tcase_add_test(tc, views_of_one_colour_stay_so);
  tcase_add_test(tc, views_that_cannot_be_told_apart_are_refused);
  suite_add_tcase(suite, tc);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "stereo", make_suite, !strcmp(test_backend(), "cuda"));
}
