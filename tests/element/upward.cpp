// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests frames whose rows are stored from bottom to top: their GstVideoMeta has negative strides.
#include <algorithm>
#include <cstring>

#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr const char *kFormats[] = {"GRAY8", "I420",      "NV12",       "RGB",  "RGBA", "YUY2",
                                    "A420",  "P010_10LE", "RGB10A2_LE", "Y42B", "v308", "ARGB64"};

GstVideoInfo info_for(const char *format, int width, int height, GstVideoInterlaceMode mode) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(format), mode, width, height);
  info.fps_n = 30;
  return info;
}

// The same picture with the default strides.
Ref<GstBuffer> from_top_to_bottom(GstBuffer *frame, const GstVideoInfo &info) {
  Ref<GstBuffer> copy(new_placed_buffer(info, 0));
  GstVideoFrame source, target;
  fail_unless(gst_video_frame_map(&source, &info, frame, GST_MAP_READ));
  fail_unless(gst_video_frame_map(&target, &info, copy.get(), GST_MAP_WRITE));
  fail_unless(gst_video_frame_copy(&target, &source));
  gst_video_frame_unmap(&target);
  gst_video_frame_unmap(&source);
  return copy;
}

// Input, output, or both have such rows. The bytes between them stay.
GST_START_TEST(rows_from_bottom_to_top_are_filtered) {
  Random random = seeded();
  constexpr int kGuard = 0x5a;
  for (const char *format : kFormats)
    for (const GstVideoInterlaceMode mode :
         {GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, GST_VIDEO_INTERLACE_MODE_INTERLEAVED})
      for (const char *properties : {"mask=gauss5 chroma=filter", "mask=median size=3", "mask=tophat size=5"})
        for (const auto &[from, to] : {std::pair(kUpward, kScattered), {kScattered, kUpward}, {kUpward, kUpward}}) {
          const GstVideoInfo info = info_for(format, 37, 22, mode);
          Harness h(properties);
          const Ref<GstBufferPool> pool(new_placed_pool(place(info, to), kGuard));
          offer_pool(h, pool.get());
          h.set_caps(info);
          const Ref<GstBuffer> in = random_frame(info, random, from);
          const Ref<GstBuffer> out = h.filter(in.get());
          fail_unless_equals_int(gst_buffer_get_video_meta(out.get())->stride[0] < 0, to.upward);
          assert_filtered(in.get(), out.get(), info, properties, kGuard);
        }
}
GST_END_TEST;

// A frame in place is the same buffer. Its planes may follow each other in memory without a gap.
GST_START_TEST(rows_from_bottom_to_top_are_filtered_in_place) {
  Random random = seeded();
  for (const char *format : {"GRAY8", "I420", "NV12", "RGBA"})
    for (const bool tight : {false, true})
      for (const std::string mask : {"mask=gauss5", "mask=mosaic size=4", "mask=dilate iterations=2"}) {
        const GstVideoInfo info = video_info(format, 40, 24);
        const std::string properties = mask + " chroma=filter roi='3,2,21,13; 20,9,9,15'";
        const Placement placement = tight ? Placement{0, 0, 0, true} : kUpward;
        Harness want(properties, info), h(properties);
        gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
        h.set_caps(info);
        Ref<GstBuffer> in = random_frame(info, random, placement);
        const Ref<GstBuffer> expected = want.filter(from_top_to_bottom(in.get(), info).get());
        const GstBuffer *const sent = in.get();
        fail_unless_equals_int(gst_harness_push(h.get(), in.release()), GST_FLOW_OK);
        const Ref<GstBuffer> out = h.pull();
        fail_unless(out.get() == sent, "%s: copied", format);
        fail_unless(same_samples(out.get(), expected.get(), info), "%s, %s", format, properties.c_str());
      }
}
GST_END_TEST;

// Where planes share rows, results in place would become input: the frame is copied.
GST_START_TEST(planes_among_the_rows_of_others_are_not_filtered_in_place) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 32, 16);
  // U and V are beside each other, in rows of 32 bytes from bottom to top.
  gsize offset[] = {0, 512 + 7 * 32, 512 + 7 * 32 + 16};
  gint stride[] = {32, -32, -32};
  Ref<GstBuffer> in(gst_buffer_new_allocate(nullptr, 768, nullptr));
  std::vector<guint8> bytes(768);
  for (guint8 &byte : bytes) byte = static_cast<guint8>(random());
  gst_buffer_fill(in.get(), 0, bytes.data(), bytes.size());
  gst_buffer_add_video_meta_full(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, 32, 16, 3, offset, stride);
  const Ref<GstBuffer> before(gst_buffer_copy_deep(in.get()));
  Harness h("mask=gauss5 roi='0,0,32,16'");
  gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
  h.set_caps(info);
  const GstBuffer *const sent = in.get();
  fail_unless_equals_int(gst_harness_push(h.get(), in.release()), GST_FLOW_OK);
  const Ref<GstBuffer> out = h.pull();
  fail_if(out.get() == sent);
  assert_filtered(before.get(), out.get(), info, "mask=gauss5");
}
GST_END_TEST;

// A crop rectangle counts rows from the top of the picture, which is the end of the memory.
GST_START_TEST(rectangles_of_rows_from_bottom_to_top_are_filtered) {
  Random random = seeded();
  struct Rectangle {
    int x, y, width, height;
  };
  for (const char *format : {"GRAY8", "I420", "NV12", "YUY2", "RGB"})
    for (const Rectangle &r : {Rectangle{0, 0, 20, 12}, {4, 6, 22, 14}, {3, 2, 11, 9}, {14, 14, 26, 18}}) {
      const GstVideoInfo whole = video_info(format, 40, 32), info = video_info(format, r.width, r.height);
      const auto filtered = [&](const Ref<GstBuffer> &frame) {
        GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(frame.get());
        crop->x = r.x, crop->y = r.y, crop->width = r.width, crop->height = r.height;
        return Harness("mask=gauss5 chroma=filter", info).filter(frame.get());
      };
      const Ref<GstBuffer> upward = random_frame(whole, random, kUpward);
      const Ref<GstBuffer> want = filtered(from_top_to_bottom(upward.get(), whole)), got = filtered(upward);
      fail_unless(same_samples(got.get(), want.get(), info), "%s, %dx%d at %d,%d", format, r.width, r.height, r.x, r.y);
    }
}
GST_END_TEST;

// Rows begin in one memory of the buffer and end in another memory.
GST_START_TEST(rows_from_bottom_to_top_may_span_several_memories) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("mask=gauss5", info);
  const Ref<GstBuffer> whole = random_frame(info, random, kUpward);
  const FrameBytes bytes(whole.get(), info);
  for (const gsize first : {gsize{100}, gsize{700}, bytes.bytes.size() - 90}) {
    const Ref<GstBuffer> in(gst_buffer_new());
    for (const auto &[from, to] : {std::pair(gsize{0}, first), {first, bytes.bytes.size()}}) {
      gst_buffer_append_memory(in.get(), gst_allocator_alloc(nullptr, to - from, nullptr));
      gst_buffer_fill(in.get(), from, bytes.bytes.data() + from, to - from);
    }
    GstVideoMeta *meta = gst_buffer_get_video_meta(whole.get());
    gst_buffer_add_video_meta_full(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, 32, 18, 3, meta->offset,
                                   meta->stride);
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(whole.get(), out.get(), info, "mask=gauss5");
  }
}
GST_END_TEST;

// 4:2:0 of 22 lines has 12 rows of chroma with fields, 11 without. A meta without the row is an error.
GST_START_TEST(chroma_of_fields_must_not_reach_into_other_planes) {
  const GstVideoInfo info = info_for("NV12", 32, 22, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
  Harness h("", info);
  // Luma, and above it in memory chroma, whose twelfth row would be luma's last.
  gsize offset[] = {21 * 32, (22 + 10) * 32};
  gint stride[] = {-32, -32};
  Ref<GstBuffer> in(gst_buffer_new_allocate(nullptr, 33 * 32, nullptr));
  gst_buffer_memset(in.get(), 0, 0, 33 * 32);
  gst_buffer_add_video_meta_full(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12, 32, 22, 2, offset, stride);
  fail_unless_equals_int(h.push(in.get()), GST_FLOW_ERROR);
  assert_same_text(h.take_one(GST_MESSAGE_ERROR).text,
                   "An input buffer has a GstVideoMeta that begins plane 1 within plane 0, which has 22 rows in an "
                   "interlaced frame of 32x22 NV12.");
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("upward");
  TCase *tc = tcase_create("general");
  tcase_add_test(tc, rows_from_bottom_to_top_are_filtered);
  tcase_add_test(tc, rows_from_bottom_to_top_are_filtered_in_place);
  tcase_add_test(tc, planes_among_the_rows_of_others_are_not_filtered_in_place);
  tcase_add_test(tc, rectangles_of_rows_from_bottom_to_top_are_filtered);
  tcase_add_test(tc, rows_from_bottom_to_top_may_span_several_memories);
  tcase_add_test(tc, chroma_of_fields_must_not_reach_into_other_planes);
  suite_add_tcase(suite, tc);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "upward", make_suite, !strcmp(test_backend(), "cuda"));
}
