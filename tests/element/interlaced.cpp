// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests frames of two fields, of any height: each field is filtered separately, down to its last row.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "reference.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr int kWidth = 11;

// On the stand-in some heights: every remainder of rows of chroma and of fields, and both sides of 8 rows of a field
// and of 32 of a frame, which a block of threads filters.
std::vector<int> heights() {
  if (has_address_sanitizer()) return {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 18, 32, 33};
  std::vector<int> all(40);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

struct Mode {
  GstVideoInterlaceMode mode;
  bool fields;  // whether buffers hold two fields
};
constexpr Mode kModes[] = {{GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, false},
                           {GST_VIDEO_INTERLACE_MODE_INTERLEAVED, true},
                           {GST_VIDEO_INTERLACE_MODE_MIXED, true},
                           {GST_VIDEO_INTERLACE_MODE_MIXED, false},
                           {GST_VIDEO_INTERLACE_MODE_ALTERNATE, false}};

GstVideoInfo info_of(const char *format, GstVideoInterlaceMode mode, int width, int height) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(format), mode, width, height);
  info.fps_n = 30;
  return info;
}

Ref<GstBuffer> frame_of(const GstVideoInfo &info, bool fields, bool scattered, Random &random) {
  Ref<GstBuffer> frame = scattered ? random_frame(info, random, kScattered) : random_frame(info, random);
  if (fields) GST_BUFFER_FLAG_SET(frame.get(), GST_VIDEO_BUFFER_FLAG_INTERLACED);
  return frame;
}

// The bytes of a whole frame after filtering in place: bytes of no sample do not change.
std::vector<uint8_t> filtered_in_place(GstBuffer *frame, const GstVideoInfo &info, const FrameLayout &layout,
                                       const char *properties) {
  FrameBytes bytes(frame, info);
  reference::write(reference::filter(settings_of(properties), layout, reference::read(layout, bytes.view)), layout,
                   bytes.view);
  return std::move(bytes.bytes);
}

void check(Harness &h, const char *format, const Mode &mode, int height, const char *properties, Random &random) {
  const GstVideoInfo info = info_of(format, mode.mode, kWidth, height);
  const FrameLayout layout = layout_of(info, mode.fields);
  h.set_caps(info);
  for (const bool scattered : {false, true}) {
    // In place: regions cover the whole picture, and the buffer has no other reference.
    h.set("roi='0,0,11,40'");
    Ref<GstBuffer> in = frame_of(info, mode.fields, scattered, random);
    const std::vector<uint8_t> want = filtered_in_place(in.get(), info, layout, properties);
    fail_unless_equals_int(gst_harness_push(h.get(), in.release()), GST_FLOW_OK);
    Ref<GstBuffer> out = h.pull();
    const FrameBytes got(out.get(), info);
    const auto at = std::mismatch(got.bytes.begin(), got.bytes.end(), want.begin(), want.end());
    fail_unless(at.first == got.bytes.end() && at.second == want.end(), "%s of %d lines, mode %d, %s: byte %zu of %zu",
                format, height, mode.mode, properties, static_cast<size_t>(at.first - got.bytes.begin()), want.size());
    // Into another buffer.
    h.set("roi=");
    in = frame_of(info, mode.fields, scattered, random);
    out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, layout, properties);
  }
}

GST_START_TEST(all_rows_of_all_fields_are_filtered) {
  Random random = seeded();
  for (const char *format : {"I420", "NV12", "A420", "I420_10LE", "P010_10LE", "P012_LE", "NV16", "Y42B", "Y444",
                             "YUY2", "RGBA", "GRAY8", "RGB10A2_LE"}) {
    if (gst_video_format_from_string(format) == GST_VIDEO_FORMAT_UNKNOWN) continue;
    for (const Mode &mode : kModes) {
      const char *const properties = "mask=gauss5 chroma=filter";
      Harness h(properties);
      gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
      for (const int height : heights()) check(h, format, mode, height, properties, random);
    }
  }
}
GST_END_TEST;

// Tests every kind of operation, at heights whose last lines have their own row of chroma.
GST_START_TEST(all_masks_filter_the_last_rows) {
  Random random = seeded();
  for (const char *properties :
       {"mask=median chroma=filter", "mask=dilate size=9", "mask=open iterations=2", "mask=sobel chroma=filter",
        "mask=gauss9", "mask=box size=21 border=wrap", "mask=custom coefficients=1 bias=0.25 chroma=neutral",
        "mask=tophat chroma=filter border=reflect"})
    for (const Mode &mode : kModes) {
      Harness h(properties);
      gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
      for (const int height : {1, 2, 6, 9, 10, 38}) check(h, "NV12", mode, height, properties, random);
    }
}
GST_END_TEST;

// With regions, chroma of a field's last line is filtered with the line, and mosaics end with the field.
GST_START_TEST(regions_of_last_lines_have_chroma) {
  Random random = seeded();
  for (const char *format : {"I420", "NV12", "P010_10LE"})
    for (int height = 1; height <= 24; height++) {
      const GstVideoInfo info = info_of(format, GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 40, height);
      const FrameLayout layout = layout_of(info, true);
      for (const char *mask : {"mask=custom coefficients=0 bias=0.5", "mask=mosaic size=4"})
        for (int line = std::max(0, height - 3); line < height; line++) {
          Regions regions;
          regions.active = true;
          regions.region = {{10, line, 20, height - line}};
          const std::string roi = std::to_string(line) + ",20," + std::to_string(height - line);
          Harness h(std::string(mask) + " chroma=filter roi='10," + roi + "'", info);
          const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
          FrameBytes want(in.get(), info), got(out.get(), info);
          const reference::Frame source = reference::read(layout, want.view);
          reference::write(reference::filter(settings_of(mask), layout, source, regions), layout, want.view);
          for (int p = 0; p < layout.planes; p++)
            fail_unless(reference::read(layout, want.view).plane[p][0].sample ==
                            reference::read(layout, got.view).plane[p][0].sample,
                        "%s of %d lines, %s, line %d, plane %d", format, height, mask, line, p);
        }
    }
}
GST_END_TEST;

// A GstVideoMeta without room for the last row of chroma, which would overlap the next plane or the end of memory. The
// error says so, and no byte changes.
GST_START_TEST(frames_without_room_for_a_row_are_refused) {
  for (const char *format : {"I420", "NV12", "A420"})
    for (const char *properties : {"mask=gauss5", "mask=gauss5 roi='0,0,40,30'"}) {
      const GstVideoInfo info = info_of(format, GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 40, 30);
      const GstVideoInfo tight = info_of(format, GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, 40, 30);
      Harness h(properties, info);
      Ref<GstBuffer> in(new_placed_buffer(tight, 7));
      // Without the rows of padding at the end of some layouts.
      GstBuffer *const sent = gst_buffer_ref(in.get());
      fail_unless_equals_int(gst_harness_push(h.get(), in.release()), GST_FLOW_ERROR);
      const Report report = h.take_one(GST_MESSAGE_ERROR);
      fail_unless(report.text.find("plane") != std::string::npos || report.debug.find("plane") != std::string::npos,
                  "%s: %s", format, report.text.c_str());
      for (const uint8_t byte : FrameBytes(sent, tight).bytes) fail_unless_equals_int(byte, 7);
      gst_buffer_unref(sent);
    }
}
GST_END_TEST;

// The rows of planes may alternate, U beside V, if they do not overlap.
GST_START_TEST(planes_may_be_side_by_side) {
  Random random = seeded();
  const GstVideoInfo info = info_of("I420", GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 40, 30);
  GstVideoInfo beside = info;
  beside.stride[1] = beside.stride[2] = 48;
  beside.offset[2] = beside.offset[1] + 24;
  beside.size = beside.offset[1] + 16 * 48;
  Ref<GstBuffer> in(new_placed_buffer(beside, 0));
  for (gsize i = 0; i < beside.size; i++) {
    const guint8 byte = random();
    gst_buffer_fill(in.get(), i, &byte, 1);
  }
  Harness h("mask=gauss5", info);
  const Ref<GstBuffer> out = h.filter(in.get());
  assert_filtered(in.get(), out.get(), info, "mask=gauss5");
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("interlaced");
  TCase *tc = tcase_create("general");
  tcase_add_test(tc, all_rows_of_all_fields_are_filtered);
  tcase_add_test(tc, all_masks_filter_the_last_rows);
  tcase_add_test(tc, regions_of_last_lines_have_chroma);
  tcase_add_test(tc, frames_without_room_for_a_row_are_refused);
  tcase_add_test(tc, planes_may_be_side_by_side);
  suite_add_tcase(suite, tc);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "interlaced", make_suite, !strcmp(test_backend(), "cuda"));
}
