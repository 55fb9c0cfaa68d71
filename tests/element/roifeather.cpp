// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests roi-feather: in regions nothing of the original is left, around them it comes back by the distance.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference.h"
#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

// Fails the test unless the element makes the reference's frame of `in`. `regions`: in pixels of the frame, without
// their feather.
void check_feather(const char *format, const std::string &filter, const std::string &roi, Regions regions,
                   double feather, bool fields = false) {
  GstVideoInfo info = video_info(format, 61, 44);
  if (fields)
    gst_video_info_set_interlaced_format(&info, GST_VIDEO_INFO_FORMAT(&info), GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 61,
                                         44);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const FrameLayout layout = layout_of(info, fields);
  regions.active = true;
  regions.feather = static_cast<int>(std::lround(feather * 256));
  Harness h(filter + " " + roi + " roi-feather=" + std::to_string(feather), info);
  const FrameBytes source(in.get(), info);
  const reference::Frame want =
      reference::filter(settings_of(filter), layout, reference::read(layout, source.view), regions);
  // The second frame has the same regions.
  for (int i = 0; i < 2; i++) {
    const Ref<GstBuffer> out = h.filter(in.get());
    const FrameBytes result(out.get(), info);
    const reference::Frame got = reference::read(layout, result.view);
    for (int p = 0; p < layout.planes; p++)
      for (size_t c = 0; c < want.plane[p].size(); c++)
        fail_unless(got.plane[p][c].sample == want.plane[p][c].sample,
                    "frame %d: plane %d, channel %zu of %s with %s %s %g", i, p, c, format, filter.c_str(), roi.c_str(),
                    feather);
  }
}

Regions rectangles(std::vector<Region> list, bool ellipse = false) {
  Regions regions;
  regions.region = std::move(list);
  regions.ellipse = ellipse;
  return regions;
}

const char *const kFormats[] = {"GRAY8", "I420", "NV12", "YUY2", "RGBA", "A420", "P010_10LE", "GRAY16_LE", "AYUV"};

GST_START_TEST(results_fade_into_the_original) {
  for (const char *format : kFormats)
    for (const char *filter : {"mask=gauss5", "mask=dilate size=5 alpha=filter", "mask=mosaic size=6", "mask=sobel"}) {
      check_feather(format, filter, "roi='20,15,9,12'", rectangles({{20, 15, 9, 12}}), 7);
      check_feather(format, filter, "roi='-5,-6,12,13; 30,20,7,5; 33,22,9,9; 55,3,20,8'",
                    rectangles({{-5, -6, 12, 13}, {30, 20, 7, 5}, {33, 22, 9, 9}, {55, 3, 20, 8}}), 3.5);
      check_feather(format, filter, "roi='20,15,19,12' roi-shape=ellipse", rectangles({{20, 15, 19, 12}}, true), 256);
    }
  for (const char *format : {"GRAY8", "NV12", "RGBA"}) {
    check_feather(format, "mask=gauss5", "roi='20,15,9,12'", rectangles({{20, 15, 9, 12}}), 6, true);
    check_feather(format, "mask=gauss5 iterations=3", "roi='20,15,9,12'", rectangles({{20, 15, 9, 12}}), 6);
    check_feather(format, "mask=open size=3 iterations=2", "roi='20,15,9,12'", rectangles({{20, 15, 9, 12}}), 6);
  }
}
GST_END_TEST;

// A white frame, and black in regions. The fade is a straight line, and the pixels of a region are black throughout.
GST_START_TEST(the_edge_is_a_straight_line) {
  const GstVideoInfo info = video_info("GRAY8", 64, 9);
  const Ref<GstBuffer> in(new_placed_buffer(info, 255));
  Harness h("mask=custom coefficients=0 divisor=1 roi='0,0,20,9' roi-feather=15", info);
  const Ref<GstBuffer> out = h.filter(in.get());
  const FrameBytes got(out.get(), info);
  for (int y = 0; y < 9; y++)
    for (int x = 0; x < 64; x++) {
      const int share = std::min(16 * std::max(x - 19, 0), 256), want = (255 * share + 128) / 256;
      fail_unless_equals_int(got.view.plane[0].data[y * got.view.plane[0].pitch + x], want);
    }
}
GST_END_TEST;

// Neither results in regions nor pixels beyond reach of them depend on the feather.
GST_START_TEST(regions_and_far_pixels_are_as_without) {
  Random random = seeded();
  for (const char *format : kFormats) {
    const GstVideoInfo info = video_info(format, 61, 44);
    const Ref<GstBuffer> in = random_frame(info, random);
    const FrameLayout layout = layout_of(info);
    const std::string line = "mask=gauss5 chroma=filter alpha=filter roi='20,15,9,12; 40 20 50 20 44 33'";
    Harness hard(line, info), soft(line + " roi-feather=5", info);
    const auto samples = [&](Harness &h) {
      const Ref<GstBuffer> out = h.filter(in.get());
      const FrameBytes bytes(out.get(), info);
      return reference::read(layout, bytes.view);
    };
    const FrameBytes bytes(in.get(), info);
    const reference::Frame source = reference::read(layout, bytes.view), a = samples(hard), b = samples(soft);
    int fading = 0;
    for (int p = 0; p < layout.planes; p++)
      for (size_t c = 0; c < a.plane[p].size(); c++)
        for (size_t i = 0; i < a.plane[p][c].sample.size(); i++) {
          const int before = source.plane[p][c].sample[i];
          if (a.plane[p][c].sample[i] != before)
            fail_unless_equals_int(b.plane[p][c].sample[i], a.plane[p][c].sample[i]);
          fading += a.plane[p][c].sample[i] == before && b.plane[p][c].sample[i] != before;
        }
    fail_unless(fading > 200, "%s: %d samples fade", format, fading);
  }
}
GST_END_TEST;

// Regions of several strengths: each fades over the ones before, and in each of them nothing of the original is left.
GST_START_TEST(strengths_fade_one_over_the_other) {
  const GstVideoInfo info = video_info("GRAY8", 96, 64);
  const FrameLayout layout = layout_of(info);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const FrameBytes bytes(in.get(), info);
  reference::Frame want = reference::read(layout, bytes.view);
  const reference::Frame source = want;
  // A quarter of sides of 12, 24 and 48 pixels, rounded up to an odd size.
  const struct {
    Region region;
    int size;
  } kRegions[] = {{{50, 8, 12, 30}, 3}, {{40, 20, 24, 30}, 6}, {{4, 6, 48, 48}, 12}};
  for (const auto &[region, size] : kRegions) {
    FilterSettings settings;
    settings.mask = Mask::Dilate;
    settings.size = size | 1;
    const reference::Frame filtered = reference::filter(settings, layout, source);
    for (int y = 0; y < 64; y++)
      for (int x = 0; x < 96; x++) {
        const int dx = std::max({region.x - x, x - region.x - region.width + 1, 0}),
                  dy = std::max({region.y - y, y - region.y - region.height + 1, 0});
        const int share = std::min(static_cast<int>(256 * std::sqrt(dx * dx + dy * dy) / 10), 256);
        int &sample = want.plane[0][0].sample[y * 96 + x];
        sample = (filtered.plane[0][0].sample[y * 96 + x] * (256 - share) + sample * share + 128) / 256;
      }
  }
  Harness h("mask=dilate roi='50,8,12,30; 40,20,24,30; 4,6,48,48' roi-scale=0.25 roi-feather=9", info);
  const Ref<GstBuffer> out = h.filter(in.get());
  const FrameBytes result(out.get(), info);
  const reference::Frame got = reference::read(layout, result.view);
  for (int i = 0; i < 96 * 64; i++)
    fail_unless(got.plane[0][0].sample[i] == want.plane[0][0].sample[i], "%d,%d: %d, not %d", i % 96, i / 96,
                got.plane[0][0].sample[i], want.plane[0][0].sample[i]);
}
GST_END_TEST;

// Iterations are elements in a row, each with its soft edge.
GST_START_TEST(iterations_are_elements_in_a_row) {
  const GstVideoInfo info = video_info("NV12", 61, 44);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const std::string line = "mask=gauss5 roi='20,15,9,12' roi-feather=6.25";
  Harness once(line, info), again(line, info), twice(line + " iterations=2", info);
  const Ref<GstBuffer> first = once.filter(in.get()), want = again.filter(first.get()), got = twice.filter(in.get());
  fail_unless(same_samples(want.get(), got.get(), info));
}
GST_END_TEST;

const struct {
  const char *settings, *text;
} kBad[] = {
    {"roi-feather=2.5 roi-invert=true",
     "roi-feather=2.5 does not work with roi-invert=true: a soft edge shows a part of the pixels that are to be "
     "hidden; "
     "set roi-feather=0"},
    {"roi-feather=16 mask=fill",
     "roi-feather=16 does not work with mask=fill: a soft edge shows a part of the pixels that are to be hidden; set "
     "roi-feather=0"},
};

GST_START_TEST(what_hides_all_has_no_soft_edge) {
  const GstVideoInfo info = video_info("GRAY8", 53, 37);
  for (const auto &bad : kBad) {
    Harness h(std::string("roi='5,5,9,9' ") + bad.settings);
    GstCaps *caps = gst_video_info_to_caps(&info);
    gst_pad_push_event(h.get()->srcpad, gst_event_new_caps(caps));
    gst_caps_unref(caps);
    const Report error = h.take_one(GST_MESSAGE_ERROR);
    fail_unless(error.domain == GST_LIBRARY_ERROR && error.code == GST_LIBRARY_ERROR_SETTINGS);
    assert_same_text(error.text, bad.text);
  }
}
GST_END_TEST;

GST_START_TEST(a_bad_setting_while_playing_is_a_warning) {
  const GstVideoInfo info = video_info("GRAY8", 53, 37);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  for (const auto &bad : kBad) {
    Harness h("mask=box5 roi='5,5,9,9' roi-feather=3", info), hard("mask=box5 roi='5,5,9,9'", info);
    const Ref<GstBuffer> good = h.filter(in.get());
    h.set(bad.settings);
    const Ref<GstBuffer> still = h.filter(in.get());
    fail_unless(same_samples(still.get(), good.get(), info));
    assert_same_text(h.take_one(GST_MESSAGE_WARNING).text, bad.text);
    h.set("roi-feather=0 mask=box5 roi-invert=false");
    const Ref<GstBuffer> changed = h.filter(in.get()), want = hard.filter(in.get());
    fail_unless(same_samples(changed.get(), want.get(), info));
    fail_if(same_samples(changed.get(), good.get(), info));
  }
}
GST_END_TEST;

// The feather may change with each frame, as a controller makes it.
GST_START_TEST(the_feather_may_change_with_each_frame) {
  const GstVideoInfo info = video_info("I420", 61, 44);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const std::string line = "mask=gauss5 roi='20,15,9,12'";
  Harness h(line, info);
  for (const double feather : {0.0, 4.0, 0.3, 100.0, 0.0}) {
    const std::string setting = " roi-feather=" + std::to_string(feather);
    h.set(setting);
    Harness fixed(line + setting, info);
    const Ref<GstBuffer> got = h.filter(in.get()), want = fixed.filter(in.get());
    fail_unless(same_samples(got.get(), want.get(), info), "roi-feather=%g", feather);
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("roifeather");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, results_fade_into_the_original);
  tcase_add_test(tc, the_edge_is_a_straight_line);
  tcase_add_test(tc, regions_and_far_pixels_are_as_without);
  tcase_add_test(tc, strengths_fade_one_over_the_other);
  tcase_add_test(tc, iterations_are_elements_in_a_row);
  tcase_add_test(tc, what_hides_all_has_no_soft_edge);
  tcase_add_test(tc, a_bad_setting_while_playing_is_a_warning);
  tcase_add_test(tc, the_feather_may_change_with_each_frame);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "roifeather", make_suite, !strcmp(test_backend(), "cuda"));
}
