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

struct Case {
  const char *format;
  int width, height;
  bool beside;
  GstVideoInterlaceMode interlacing;
  std::vector<Picture> pictures;  // expected pictures
};

constexpr GstVideoInterlaceMode kProgressive = GST_VIDEO_INTERLACE_MODE_PROGRESSIVE,
                                kInterleaved = GST_VIDEO_INTERLACE_MODE_INTERLEAVED;

// The seam is in the middle, or at the last chroma pixel before it; with fields, at the last chroma pixel of both
// fields.
const std::vector<Case> &cases() {
  static const std::vector<Case> list = {
      {"GRAY8", 40, 30, true, kProgressive, {{0, 0, 20, 30}, {20, 0, 20, 30}}},
      {"GRAY8", 41, 31, false, kProgressive, {{0, 0, 41, 15}, {0, 15, 41, 16}}},
      {"RGBA", 37, 20, true, kProgressive, {{0, 0, 18, 20}, {18, 0, 19, 20}}},
      {"RGB", 37, 20, true, kInterleaved, {{0, 0, 18, 20}, {18, 0, 19, 20}}},
      {"NV12", 64, 36, true, kProgressive, {{0, 0, 32, 36}, {32, 0, 32, 36}}},
      {"NV12", 64, 36, false, kProgressive, {{0, 0, 64, 18}, {0, 18, 64, 18}}},
      {"I420", 42, 30, true, kProgressive, {{0, 0, 20, 30}, {20, 0, 22, 30}}},
      {"I420", 42, 30, false, kProgressive, {{0, 0, 42, 14}, {0, 14, 42, 16}}},
      {"I420", 42, 30, false, kInterleaved, {{0, 0, 42, 12}, {0, 12, 42, 18}}},
      {"NV12", 42, 30, true, kInterleaved, {{0, 0, 20, 30}, {20, 0, 22, 30}}},
      {"P010_10LE", 40, 32, true, kProgressive, {{0, 0, 20, 32}, {20, 0, 20, 32}}},
      {"P010_10LE", 42, 30, false, kInterleaved, {{0, 0, 42, 12}, {0, 12, 42, 18}}},
      {"YUY2", 42, 20, true, kProgressive, {{0, 0, 20, 20}, {20, 0, 22, 20}}},
      {"YUY2", 42, 22, false, kProgressive, {{0, 0, 42, 11}, {0, 11, 42, 11}}},
      {"A420", 44, 24, true, kProgressive, {{0, 0, 22, 24}, {22, 0, 22, 24}}},
      {"RGB10A2_LE", 22, 20, true, kProgressive, {{0, 0, 11, 20}, {11, 0, 11, 20}}},
      {"I420", 2, 2, true, kProgressive, {{0, 0, 2, 2}}},  // too small for two views
      {"GRAY8", 7, 1, false, kProgressive, {{0, 0, 7, 1}}},
      {"GRAY8", 2, 1, true, kProgressive, {{0, 0, 1, 1}, {1, 0, 1, 1}}},
  };
  return list;
}

GstVideoInfo info_of(const Case &c) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(c.format), c.interlacing, c.width, c.height);
  info.fps_n = 30;
  GST_VIDEO_INFO_MULTIVIEW_MODE(&info) =
      c.beside ? GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE : GST_VIDEO_MULTIVIEW_MODE_TOP_BOTTOM;
  info.views = 2;
  return info;
}

// The bytes of the buffer with each picture filtered by the reference. `regions` count pixels of the whole frame.
std::vector<uint8_t> filtered(GstBuffer *buffer, const GstVideoInfo &info, const std::vector<Picture> &pictures,
                              const std::string &properties, const Regions &regions) {
  FrameBytes bytes(buffer, info);
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
    reference::write(reference::filter(settings_of(properties), layout, reference::read(layout, view), here), layout,
                     view);
  }
  return std::move(bytes.bytes);
}

void check(const Case &c, const std::string &properties, const Regions &regions, const std::string &roi) {
  Random random = seeded();
  const GstVideoInfo info = info_of(c);
  for (const bool scattered : {false, true})
    for (const bool in_place : {false, true}) {
      if (in_place && !regions.active) continue;
      Harness h(properties + roi);
      gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
      h.set_caps(info);
      Ref<GstBuffer> in = scattered ? random_frame(info, random, kScattered) : random_frame(info, random);
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
        fail_unless(!stays || has_unused_bits || FrameBytes(out.get(), info).bytes == want, "%s %dx%d in place: %s%s",
                    c.format, c.width, c.height, properties.c_str(), roi.c_str());
      } else {
        out = h.filter(in.get());
      }
      fail_unless(same_samples(expected.get(), out.get(), info), "%s %dx%d, beside %d: %s%s", c.format, c.width,
                  c.height, c.beside, properties.c_str(), roi.c_str());
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
  const Case &c = cases()[4];
  GstVideoInfo info = info_of(c);
  GST_VIDEO_INFO_MULTIVIEW_FLAGS(&info) = GST_VIDEO_MULTIVIEW_FLAGS_MIXED_MONO;
  const std::string properties = "mask=gauss5";
  Harness h(properties, info);
  for (int i = 0; i < 4; i++) {
    const Ref<GstBuffer> in = random_frame(info, random);
    if (i % 2) GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_MULTIPLE_VIEW);
    const Ref<GstBuffer> out = h.filter(in.get());
    const std::vector<uint8_t> want =
        filtered(in.get(), info, i % 2 ? c.pictures : std::vector<Picture>{{0, 0, c.width, c.height}}, properties, {});
    fail_unless(FrameBytes(out.get(), info).bytes == want, "frame %d", i);
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("stereo");
  TCase *tc = tcase_create("general");
  tcase_add_test(tc, each_view_is_filtered_separately);
  tcase_add_test(tc, regions_may_span_both_views);
  tcase_add_test(tc, some_frames_may_be_of_one_view);
  suite_add_tcase(suite, tc);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "stereo", make_suite, !strcmp(test_backend(), "cuda"));
}
