// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests mask=fill: one colour replaces the pixels, and nothing of them remains, in every format.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

// The formats in system memory of the pad template.
std::vector<std::string> system_formats() {
  const Ref<GstElement> element = new_element("");
  const Ref<GstCaps> caps(gst_pad_template_get_caps(gst_element_get_pad_template(element.get(), "sink")));
  std::vector<std::string> formats;
  for (guint i = 0; i < gst_caps_get_size(caps.get()); i++) {
    if (!gst_caps_features_contains(gst_caps_get_features(caps.get(), i), GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY))
      continue;
    const GValue *list = gst_structure_get_value(gst_caps_get_structure(caps.get(), i), "format");
    for (guint f = 0; formats.size() < gst_value_list_get_size(list); f++)
      formats.emplace_back(g_value_get_string(gst_value_list_get_value(list, f)));
  }
  return formats;
}

GST_START_TEST(fill_color_is_converted_to_the_frames_colours) {
  struct Case {
    const char *format;
    guint32 argb;
    int value[4];  // by plane and channel
    const char *colorimetry = nullptr;
    int height = 7;
  };
  for (const Case &c :
       {Case{"RGBA", 0x80ff4020, {255, 64, 32, 128}}, Case{"ARGB", 0x80ff4020, {128, 255, 64, 32}},
        Case{"RGBx", 0x80ff4020, {255, 64, 32, 128}}, Case{"RGB", 0xffc81e28, {200, 30, 40}},
        Case{"I420", 0xffff0000, {81, 90, 240}}, Case{"NV12", 0xff0000ff, {41, 240, 110}},
        Case{"YUY2", 0xff0000ff, {41, 240, 110}}, Case{"AYUV", 0x400000ff, {64, 41, 240, 110}},
        Case{"P010_10LE", 0xffff0000, {326, 361, 960}}, Case{"I420_10BE", 0xffff0000, {326, 361, 960}},
        Case{"GRAY8", 0xff808080, {128}}, Case{"RGB10A2_LE", 0xff80ff00, {514, 1023, 0, 3}},
        Case{"ARGB64", 0x8000ff00, {0x8080, 0, 0xffff, 0}}, Case{"Y444", 0xffff0000, {63, 102, 240}, "2:3:0:0"},
        Case{"Y444", 0xffff0000, {54, 99, 255}, "1:3:0:0"}, Case{"Y444", 0xffff0000, {63, 102, 240}, "2:0:0:0", 600},
        // The luma is midway between two codes. A fused multiply-add would round to the other code.
        Case{"Y444", 0xff7bfbf9, {198, 146, 72}, "2:4:0:0"}, Case{"Y444", 0xffd9595b, {126, 110, 184}, "2:4:0:0"}}) {
    GstVideoInfo info = video_info(c.format, 9, c.height);
    if (c.colorimetry) fail_unless(gst_video_colorimetry_from_string(&info.colorimetry, c.colorimetry));
    FrameLayout layout = layout_of(info);
    for (int p = 0, i = 0; p < layout.planes; p++)
      for (int k = 0; k < layout.plane[p].channels; k++)
        layout.plane[p].fill_value[k] = static_cast<uint16_t>(c.value[i++]);
    const std::string properties = "mask=fill fill-color=" + std::to_string(c.argb);
    Random random = seeded();
    Harness h(properties, info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, layout, properties);
  }
}
GST_END_TEST;

// A frame in which every byte is the complement of the byte in `frame`.
Ref<GstBuffer> complement(GstBuffer *frame) {
  Ref<GstBuffer> result(gst_buffer_copy_deep(frame));
  GstMapInfo map;
  fail_unless(gst_buffer_map(result.get(), &map, GST_MAP_READWRITE));
  for (gsize i = 0; i < map.size; i++) map.data[i] = static_cast<guint8>(~map.data[i]);
  gst_buffer_unmap(result.get(), &map);
  return result;
}

std::vector<guint8> bytes_of(GstBuffer *buffer) {
  std::vector<guint8> bytes(gst_buffer_get_size(buffer));
  gst_buffer_extract(buffer, 0, bytes.data(), bytes.size());
  return bytes;
}

// A frame's size, and a region in it.
constexpr int kWidth = 45, kHeight = 34;
constexpr Region kRegion = {7, 5, 21, 16};

// Whether any pixel of sample (x, y) of a component should be filled. In interlaced frames a row of chroma belongs to
// rows of its field.
bool is_to_be_filled(int x, int y, int sub_x, int sub_y, bool interlaced, bool invert) {
  const int step = interlaced ? 2 : 1;
  for (int j = 0; j < 1 << sub_y; j++)
    for (int column = x << sub_x; column < std::min((x + 1) << sub_x, kWidth); column++) {
      const int row = ((y / step << sub_y) + j) * step + y % step;
      const bool inside = column >= kRegion.x && column < kRegion.x + kRegion.width && row >= kRegion.y &&
                          row < kRegion.y + kRegion.height;
      if (row < kHeight && inside != invert) return true;
    }
  return false;
}

// Fills two frames that differ in every byte. Samples with a pixel in the region then have the same bytes; all others
// do not change.
void check_nothing_is_left(const std::string &format, const std::string &settings, bool interlaced, bool invert) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(
      &info, gst_video_format_from_string(format.c_str()),
      interlaced ? GST_VIDEO_INTERLACE_MODE_INTERLEAVED : GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, kWidth, kHeight);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random), other = complement(in.get());
  Harness h("mask=fill fill-color=0x40208090 roi='7,5,21,16' " + settings + (invert ? " roi-invert=true" : ""), info);
  const std::vector<guint8> before[] = {bytes_of(in.get()), bytes_of(other.get())};
  const std::vector<guint8> after[] = {bytes_of(h.filter(in.get()).get()), bytes_of(h.filter(other.get()).get())};
  h.take(GST_MESSAGE_WARNING);  // settings may have no effect
  // In packed formats all bytes of a pixel are compared, also bytes of no component.
  const bool words = format.find("10A2") != format.npos || format.find("10x2") != format.npos || format == "Y410";
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++) {
    const int sub_x = GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, c), sub_y = GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, c);
    // GstVideoFormatInfo has other positions for these; tests/kernels compares them with the reference.
    if (c > 0 && (format.compare(0, 3, "Y21") == 0 || format.compare(0, 3, "P01") == 0)) continue;
    const int step = words ? 4 : GST_VIDEO_INFO_COMP_PSTRIDE(&info, c);
    const bool pixels =
        GST_VIDEO_INFO_N_PLANES(&info) == 1 && info.finfo->w_sub[GST_VIDEO_INFO_N_COMPONENTS(&info) - 1] == 0;
    const size_t bytes = pixels ? step : GST_VIDEO_INFO_COMP_DEPTH(&info, c) > 8 ? 2 : 1;
    for (int y = 0; y < GST_VIDEO_INFO_COMP_HEIGHT(&info, c); y++)
      for (int x = 0; x < GST_VIDEO_INFO_COMP_WIDTH(&info, c); x++) {
        const size_t at = pixels ? static_cast<size_t>(y) * GST_VIDEO_INFO_PLANE_STRIDE(&info, 0) + x * step
                                 : GST_VIDEO_INFO_COMP_OFFSET(&info, c) +
                                       static_cast<size_t>(y) * GST_VIDEO_INFO_COMP_STRIDE(&info, c) +
                                       static_cast<size_t>(x) * step;
        const bool fill = is_to_be_filled(x, y, sub_x, sub_y, interlaced, invert);
        for (size_t b = at; b < at + bytes; b++)
          fail_unless(fill ? after[0][b] == after[1][b] : after[0][b] == before[0][b] && after[1][b] == before[1][b],
                      "%s, %s: component %u at %d,%d is not %s", format.c_str(), settings.c_str(), c, x, y,
                      fill ? "filled" : "as it was");
      }
  }
}

GST_START_TEST(nothing_of_the_source_remains) {
  for (const std::string &format : system_formats())
    for (const bool invert : {false, true}) {
      check_nothing_is_left(format, "", false, invert);
      check_nothing_is_left(format, "", true, invert);
    }
  // Settings that keep pixels with other masks do not with fill.
  for (const char *format : {"RGBA", "A420", "NV12", "RGBx", "AYUV", "P010_10LE"})
    for (const char *settings : {"alpha=filter", "alpha=weighted", "chroma=copy", "chroma=neutral", "border=keep",
                                 "size=9 iterations=3", "method=tiled", "method=cascade"})
      for (const bool invert : {false, true}) {
        check_nothing_is_left(format, settings, false, invert);
      }
}
GST_END_TEST;

// Whole frames, in place and not, with polygons and ellipses: a sample is filled if any of its pixels is selected.
GST_START_TEST(regions_are_filled_with_all_their_samples) {
  Random random = seeded();
  for (const char *format : {"I420", "NV12", "YUY2", "RGBA", "RGBx", "GRAY8", "I420_10LE", "Y42B"}) {
    const GstVideoInfo info = video_info(format, 53, 37);
    const Ref<GstBuffer> in = random_frame(info, random);
    Harness h("mask=fill", info);
    const Ref<GstBuffer> whole = h.filter(in.get());
    assert_filtered(in.get(), whole.get(), info, "mask=fill");
    Harness shapes("mask=fill roi='4,3 50,6 20,31; 30,20,11,9' roi-shape=ellipse", info);
    check_frame(shapes, in.get(), info, "mask=fill", {{{30, 20, 11, 9}}, true, false, {{{4, 3}, {50, 6}, {20, 31}}}});
    Harness inverted("mask=fill roi='4,3 50,6 20,31' roi-invert=true", info);
    check_frame(inverted, in.get(), info, "mask=fill", {{}, false, true, {{{4, 3}, {50, 6}, {20, 31}}}});
  }
}
GST_END_TEST;

GST_START_TEST(settings_that_fill_does_not_use_are_a_warning) {
  const GstVideoInfo info = video_info("RGBA", 16, 12);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const struct {
    const char *properties, *text;
  } cases[] = {
      {"mask=fill alpha=filter", "alpha has no effect with mask=fill; it is used by all but identity, fill"},
      {"mask=fill chroma=copy", "chroma has no effect with mask=fill; it is used by all but identity, fill"},
      {"mask=gauss5 fill-color=0xffff0000", "fill-color has no effect with mask=gauss5; it is used by fill"},
      {"mask=fill roi-scale=0.5", "roi-scale has no effect with mask=fill; "},
  };
  for (const auto &c : cases) {
    Harness h(c.properties, info);
    h.filter(in.get());
    const std::string text = h.take_one(GST_MESSAGE_WARNING).text;
    fail_unless(text.compare(0, strlen(c.text), c.text) == 0, "%s: %s", c.properties, text.c_str());
  }
  // The colour may change while playing.
  Harness h("mask=fill", video_info("RGB", 8, 8));
  for (const guint32 argb : {0xff000000u, 0xffffffffu, 0xffc81e28u}) {
    g_object_set(h.element(), "fill-color", argb, nullptr);
    const Ref<GstBuffer> frame = random_frame(video_info("RGB", 8, 8), random);
    const std::vector<guint8> bytes = bytes_of(h.filter(frame.get()).get());
    fail_unless(bytes[0] == (argb >> 16 & 0xff) && bytes[1] == (argb >> 8 & 0xff) && bytes[2] == (argb & 0xff));
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("fill");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, fill_color_is_converted_to_the_frames_colours);
  tcase_add_test(tc, nothing_of_the_source_remains);
  tcase_add_test(tc, regions_are_filled_with_all_their_samples);
  tcase_add_test(tc, settings_that_fill_does_not_use_are_a_warning);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "fill", make_suite, !strcmp(test_backend(), "cuda"));
}
