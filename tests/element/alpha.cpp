// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests alpha=weighted: transparent pixels do not bleed into others.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

using Pixel = std::array<uint8_t, 4>;

// A frame of one byte a channel, with pixel(x, y) at each position.
template <typename F>
Ref<GstBuffer> frame_of(const GstVideoInfo &info, F pixel) {
  Ref<GstBuffer> buffer(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
  FrameBytes frame(buffer.get(), info);
  for (int y = 0; y < GST_VIDEO_INFO_HEIGHT(&info); y++)
    for (int x = 0; x < GST_VIDEO_INFO_WIDTH(&info); x++) {
      const Pixel p = pixel(x, y);
      std::copy(p.begin(), p.end(), frame.view.plane[0].data + y * frame.view.plane[0].pitch + 4 * x);
    }
  gst_buffer_fill(buffer.get(), 0, frame.bytes.data(), frame.bytes.size());
  return buffer;
}

Pixel pixel_at(const FrameBytes &frame, int x, int y) {
  Pixel p;
  std::copy_n(frame.view.plane[0].data + y * frame.view.plane[0].pitch + 4 * x, 4, p.begin());
  return p;
}

// Side and centre of the frame; first and last row and column of the square in it.
constexpr int kSide = 48, kMiddle = 24, kFirst = 16, kLast = 31;

bool in_square(int x, int y) {
  return x >= kFirst && x <= kLast && y >= kFirst && y <= kLast;
}

constexpr const char *kMasks[] = {"mask=box3",        "mask=gauss5",
                                  "mask=gauss9",      "mask=gauss sigma=3",
                                  "mask=box size=15", "mask=custom coefficients='1 2 1; 3 0 3; 1 2 2'"};

}  // namespace

// The frame has an opaque red square, and transparent green around it.
GST_START_TEST(transparent_green_does_not_bleed_into_an_opaque_red_square) {
  const GstVideoInfo info = video_info("RGBA", kSide, kSide);
  const Ref<GstBuffer> in = frame_of(info, [](int x, int y) {
    return in_square(x, y) ? Pixel{255, 0, 0, 255} : Pixel{0, 255, 0, 0};
  });
  for (const char *mask : kMasks) {
    Harness h(std::string(mask) + " alpha=weighted", info), plain(std::string(mask) + " alpha=filter", info);
    const FrameBytes out(h.filter(in.get()).get(), info), filtered(plain.filter(in.get()).get(), info);
    int soft = 0;
    for (int y = 0; y < kSide; y++)
      for (int x = 0; x < kSide; x++) {
        const Pixel p = pixel_at(out, x, y);
        // Alpha is as with alpha=filter. Where the square is visible, it is red. Where its alpha is rounded to 0, the
        // colour may be either.
        fail_unless(std::abs(p[3] - pixel_at(filtered, x, y)[3]) <= 1, "%s: alpha of %d,%d", mask, x, y);
        if (p[3] > 0)
          fail_unless((p == Pixel{255, 0, 0, p[3]}), "%s: %d,%d is %d %d %d %d", mask, x, y, p[0], p[1], p[2], p[3]);
        soft += p[3] > 0 && p[3] < 255;
      }
    fail_unless(soft > 0, "%s: alpha has no edge", mask);
    fail_unless((pixel_at(out, 0, 0) == Pixel{0, 255, 0, 0}), "%s: pixels far away change", mask);
    fail_unless((pixel_at(out, kMiddle, kMiddle)[0] == 255), "%s: the middle is not red", mask);
    fail_unless(pixel_at(filtered, kFirst, kMiddle)[1] > 0, "%s: with alpha=filter green does not bleed", mask);
  }
}
GST_END_TEST;

// A single pixel has alpha, the smallest above 0.
GST_START_TEST(a_lone_pixel_gives_its_colour) {
  const GstVideoInfo info = video_info("RGBA", kSide, kSide);
  const Ref<GstBuffer> in = frame_of(info, [](int x, int y) {
    return x == kMiddle && y == kMiddle ? Pixel{201, 7, 99, 1} : Pixel{0, 255, 31, 0};
  });
  for (const char *mask : {"mask=gauss5", "mask=gauss sigma=2", "mask=gauss sigma=6"}) {
    Harness h(std::string(mask) + " alpha=weighted", info);
    const FrameBytes out(h.filter(in.get()).get(), info);
    for (const int d : {-2, -1, 0, 1, 2}) {
      const Pixel p = pixel_at(out, kMiddle + d, kMiddle - d);
      fail_unless(p[0] == 201 && p[1] == 7 && p[2] == 99, "%s: %d away: %d %d %d", mask, d, p[0], p[1], p[2]);
    }
  }
}
GST_END_TEST;

// If alpha has a separate plane, chroma is weighted by the mean alpha of the pixels that a sample covers.
GST_START_TEST(every_format_with_alpha_is_weighted) {
  Random random = seeded();
  for (const char *format : {"RGBA", "ARGB", "AYUV", "ARGB64", "A420", "A422_12LE", "Y410", "Y416_LE"}) {
    if (gst_video_format_from_string(format) == GST_VIDEO_FORMAT_UNKNOWN) continue;
    const GstVideoInfo info = video_info(format, 37, 21);
    for (const char *border : {"replicate", "constant", "wrap", "keep"}) {
      const std::string properties = std::string("mask=gauss5 alpha=weighted border=") + border;
      Harness h(properties, info);
      const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, properties);
    }
  }
}
GST_END_TEST;

// These masks are refused if the format has alpha. Without alpha, alpha=weighted has no effect.
GST_START_TEST(masks_with_negative_coefficients_are_refused) {
  Random random = seeded();
  for (const char *mask : {"sharpen", "sobel", "median", "dilate", "unsharp", "custom coefficients='1 -1 2'"}) {
    const std::string properties = std::string("alpha=weighted mask=") + mask;
    Harness h(properties);
    const GstVideoInfo info = video_info("RGBA", 32, 18), without = video_info("NV12", 32, 18);
    const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(h.get(), gst_event_new_stream_start("test"));
    gst_harness_push_event(h.get(), gst_event_new_caps(caps.get()));
    gst_harness_push_event(h.get(), gst_event_new_segment(&segment));
    fail_unless_equals_int(h.push(random_frame(info, random).get()), GST_FLOW_NOT_NEGOTIATED);
    const Report error = h.take_one(GST_MESSAGE_ERROR);
    fail_unless(error.text.find("alpha=weighted") != std::string::npos, "%s: %s", mask, error.text.c_str());

    Harness harmless(properties, without);
    const Ref<GstBuffer> in = random_frame(without, random), out = harmless.filter(in.get());
    assert_filtered(in.get(), out.get(), without, std::string("mask=") + mask);
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("alpha");
  TCase *tc = tcase_create("alpha");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, transparent_green_does_not_bleed_into_an_opaque_red_square);
  tcase_add_test(tc, a_lone_pixel_gives_its_colour);
  tcase_add_test(tc, every_format_with_alpha_is_weighted);
  tcase_add_test(tc, masks_with_negative_coefficients_are_refused);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "alpha", make_suite, !strcmp(test_backend(), "cuda"));
}
