// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What makes regions unrecognisable: their growth, and the time that they are held.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

const GstVideoInfo &gray() {
  static const GstVideoInfo info = video_info("GRAY8", 96, 64);
  return info;
}

Ref<GstBuffer> frame_with(const std::vector<Region> &regions, Random &random, const GstVideoInfo &info = gray()) {
  Ref<GstBuffer> frame = random_frame(info, random);
  for (const Region &r : regions) add_roi(frame.get(), "face", r.x, r.y, r.width, r.height);
  return frame;
}

void send_segment(Harness &h, GstClockTime start, double rate = 1) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.rate = rate;
  segment.start = segment.time = start;
  if (rate < 0) segment.stop = start + 1000 * GST_SECOND;
  push_event(h, gst_event_new_segment(&segment));
}

}  // namespace

// ---- Growth ---------------------------------------------------------------------------------------------------------

GST_START_TEST(regions_grow_by_a_fraction_of_their_sides) {
  const struct {
    Region region;
    const char *grow;
    Region grown;
  } cases[] = {
      {{30, 20, 20, 10}, "0.25", {25, 17, 30, 16}},  // 2.5 rows become 3
      {{30, 20, 1, 1}, "0.1", {29, 19, 3, 3}},
      {{30, 20, 9, 7}, "1", {21, 13, 27, 21}},
      {{40, 30, 10, 5}, "4", {0, 10, 90, 45}},
      {{0, 0, 10, 10}, "0.5", {-5, -5, 20, 20}},
      {{86, 54, 10, 10}, "0.5", {81, 49, 20, 20}},
      {{-20, 3, 16, 10}, "0.5", {-28, -2, 32, 20}},  // outside, until it has grown
      {{97, 30, 10, 10}, "0.25", {94, 27, 16, 16}},
      {{0, 0, 96, 64}, "2", {0, 0, 96, 64}},
  };
  Random random = seeded();
  for (const char *format : {"GRAY8", "I420"}) {
    const GstVideoInfo info = video_info(format, 96, 64);
    for (const auto &c : cases) {
      for (const bool ellipse : {false, true}) {
        const std::string properties =
            std::string("mask=gauss5 roi-meta=true roi-grow=") + c.grow + (ellipse ? " roi-shape=ellipse" : "");
        Region grown = c.grown;
        if (ellipse && c.region.width == 96) grown = {-192, -128, 480, 320};
        Harness h(properties, info);
        check_frame(h, frame_with({c.region}, random, info).get(), info, "mask=gauss5", {{grown}, ellipse});
        // Rectangles of the settings grow too.
        Harness fixed(properties, info);
        const std::string roi = std::to_string(c.region.x) + "," + std::to_string(c.region.y) + "," +
                                std::to_string(c.region.width) + "," + std::to_string(c.region.height);
        g_object_set(fixed.element(), "roi", roi.c_str(), "roi-meta", FALSE, nullptr);
        check_frame(fixed, random_frame(info, random).get(), info, "mask=gauss5", {{grown}, ellipse});
      }
    }
  }
}
GST_END_TEST;

// No number of a meta is too large to grow.
GST_START_TEST(regions_of_any_numbers_grow) {
  Random random = seeded();
  const struct {
    guint x, y, w, h;
    std::vector<Region> grown;
  } cases[] = {
      {90, 60, G_MAXUINT, G_MAXUINT, {{0, 0, 96, 64}}},
      {G_MAXINT, 0, G_MAXUINT, 10, {}},
      {0, 0, G_MAXUINT, 10, {{0, 0, 96, 15}}},
      {G_MAXINT, 0, 10, 10, {}},
      {static_cast<guint>(G_MININT), 10, 20, 10, {}},
      {static_cast<guint>(G_MININT), 10, G_MAXINT, 10, {{0, 5, 96, 20}}},
      {10, 10, 0, 10, {}},
      {10, 10, 10, 0, {}},
      {G_MAXUINT, G_MAXUINT, G_MAXUINT, G_MAXUINT, {{0, 0, 96, 64}}},
  };
  for (const auto &c : cases) {
    const Ref<GstBuffer> in = random_frame(gray(), random);
    add_roi(in.get(), "face", c.x, c.y, c.w, c.h);
    Harness h("mask=gauss5 roi-meta=true roi-grow=0.5", gray());
    check_frame(h, in.get(), gray(), "mask=gauss5", {c.grown});
  }
}
GST_END_TEST;

// A region that is only worth a warning may grow into the picture.
GST_START_TEST(growth_counts_for_what_lies_outside) {
  Random random = seeded();
  Harness h("mask=gauss5 roi='96,10,20,20' roi-grow=0.25", gray());
  check_frame(h, random_frame(gray(), random).get(), gray(), "mask=gauss5", {{{91, 5, 30, 30}}});
  h.set("roi-grow=0");
  check_frame(h, random_frame(gray(), random).get(), gray(), "mask=gauss5", {});
  assert_same_text(h.take_one(GST_MESSAGE_WARNING).text,
                   "nothing is filtered: all rectangles of roi, such as 96,10,20,20, lie outside the picture of 96x64");
}
GST_END_TEST;

// ---- Holding --------------------------------------------------------------------------------------------------------

namespace {

constexpr GstClockTime kFrame = GST_SECOND / 30;

// Where a face is in frame `i`: it walks about.
Region face_at(int i) {
  return {static_cast<int>(40 + 35 * std::sin(i * 0.13)), static_cast<int>(25 + 20 * std::cos(i * 0.09)), 17, 13};
}

}  // namespace

// A detector that drops frames at random within the time to hold: everything that was a region within it is filtered,
// and nothing else.
GST_START_TEST(what_a_detector_misses_stays_covered) {
  for (const int held : {1, 3, 12}) {
    Random random = seeded();
    const std::string hold = std::to_string(held * kFrame + kFrame / 2);
    Harness h("mask=gauss5 roi-meta=true roi-hold=" + hold, gray());
    std::vector<std::pair<int, Region>> seen;
    int missed = 0;
    for (int i = 0; i < 150; i++) {
      const bool detected = missed == held || random() % 4 == 0;
      missed = detected ? 0 : missed + 1;
      if (detected) seen.emplace_back(i, face_at(i));
      Selection selection;
      for (const auto &[at, region] : seen)
        if (i - at <= held) selection.region.push_back(region);
      fail_if(selection.region.empty() && i > held);
      const Ref<GstBuffer> in = frame_with(detected ? std::vector<Region>{face_at(i)} : std::vector<Region>(), random);
      check_frame_at(h, in.get(), gray(), i * kFrame, "mask=gauss5", selection);
    }
  }
}
GST_END_TEST;

GST_START_TEST(held_regions_are_forgotten) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20}, other = {50, 30, 9, 9};
  const auto bare = [&] { return random_frame(gray(), random); };
  Harness h(filter + " roi-meta=true roi-hold=10000000000", gray());
  const auto see = [&](GstClockTime time) {
    check_frame_at(h, frame_with({face}, random).get(), gray(), time, filter, {{face}});
    check_frame_at(h, bare().get(), gray(), time + GST_SECOND, filter, {{face}});
  };
  see(5 * GST_SECOND);
  push_event(h, gst_event_new_flush_start());
  push_event(h, gst_event_new_flush_stop(TRUE));
  send_segment(h, 0);
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {});

  // A seek backwards without a flush; but not the same segment once more.
  see(8 * GST_SECOND);
  send_segment(h, 0);
  check_frame_at(h, bare().get(), gray(), 10 * GST_SECOND, filter, {{face}});
  send_segment(h, 3 * GST_SECOND);
  check_frame_at(h, bare().get(), gray(), 3 * GST_SECOND, filter, {});

  see(4 * GST_SECOND);
  gst_element_set_state(h.element(), GST_STATE_READY);
  gst_element_set_state(h.element(), GST_STATE_PLAYING);
  h.set_caps(gray());
  send_segment(h, 3 * GST_SECOND);
  check_frame_at(h, bare().get(), gray(), 5 * GST_SECOND, filter, {});

  // Not where metas are no longer wanted.
  see(6 * GST_SECOND);
  h.set("roi-meta=false roi='50,30,9,9'");
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {{other}});
  h.set("roi-meta=true");
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {{other}});
  // Rectangles of the settings are not held.
  h.set("roi=");
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {});
}
GST_END_TEST;

GST_START_TEST(the_time_to_hold_may_change) {
  Random random = seeded();
  Harness unset;
  const GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(unset.element()), "roi-hold");
  fail_unless(G_PARAM_SPEC_UINT64(spec)->minimum == 0 && G_PARAM_SPEC_UINT64(spec)->maximum == G_MAXUINT64);
  fail_unless_equals_uint64(G_PARAM_SPEC_UINT64(spec)->default_value, 0);
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true roi-hold=18446744073709551615", gray());
  check_frame_at(h, frame_with({face}, random).get(), gray(), 0, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100000 * GST_SECOND, filter, {{face}});
  h.set("roi-hold=1000000000");
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100001 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100002 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100002 * GST_SECOND + 1, filter, {});
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100003 * GST_SECOND, filter, {{face}});
  h.set("roi-hold=0");
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100003 * GST_SECOND, filter, {});
  // As metas have it, with the settings of the frame at hand.
  h.set("roi-hold=1000000000");
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100004 * GST_SECOND, filter, {{face}});
  h.set("roi-grow=0.5");
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100004 * GST_SECOND, filter, {{{0, 0, 40, 40}}});
}
GST_END_TEST;

// Frames without timestamps follow one another by their duration, and where that is not known regions stay.
GST_START_TEST(frames_without_timestamps_hold_too) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true roi-hold=" + std::to_string(2 * kFrame + 9), gray());
  check_frame_at(h, frame_with({face}, random).get(), gray(), GST_CLOCK_TIME_NONE, filter, {{face}});
  for (int i = 1; i < 5; i++) {
    const Ref<GstBuffer> in = random_frame(gray(), random);
    check_frame_at(h, in.get(), gray(), GST_CLOCK_TIME_NONE, filter, i <= 2 ? Selection{{face}} : Selection{});
  }
  GstVideoInfo timeless = gray();
  timeless.fps_n = 0;
  Harness still(filter + " roi-meta=true roi-hold=1", timeless);
  check_frame_at(still, frame_with({face}, random).get(), timeless, GST_CLOCK_TIME_NONE, filter, {{face}});
  for (int i = 1; i < 5; i++)
    check_frame_at(still, random_frame(timeless, random).get(), timeless, GST_CLOCK_TIME_NONE, filter, {{face}});
}
GST_END_TEST;

// A frame that comes too late is dropped, but its regions are not.
GST_START_TEST(regions_of_late_frames_are_held) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true roi-hold=1000000000", gray());
  send_segment(h, 0);
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 0, filter, {});
  gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1, GST_SECOND, GST_SECOND));
  const Ref<GstBuffer> late = frame_with({face}, random);
  GST_BUFFER_PTS(late.get()) = 500 * GST_MSECOND;
  fail_unless_equals_int(h.push(late.get()), GST_FLOW_OK);
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_OVERFLOW, 1, -GST_SECOND, GST_SECOND));
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 1200 * GST_MSECOND, filter, {{face}});
}
GST_END_TEST;

// Backwards frames come with falling timestamps, and running time rises.
GST_START_TEST(regions_are_held_when_a_stream_plays_backwards) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true roi-hold=1000000000", gray());
  send_segment(h, 0, -2);
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 98 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 97 * GST_SECOND, filter, {});
}
GST_END_TEST;

// Frames of another size show the same scene.
GST_START_TEST(held_regions_follow_a_change_of_size) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  Harness h(filter + " roi-meta=true roi-hold=1000000000", gray());
  check_frame_at(h, frame_with({{10, 11, 21, 20}}, random).get(), gray(), 0, filter, {{{10, 11, 21, 20}}});
  const GstVideoInfo half = video_info("GRAY8", 48, 32), again = gray();
  h.set_caps(half);
  check_frame_at(h, random_frame(half, random).get(), half, GST_MSECOND, filter, {{{5, 5, 11, 11}}});
  h.set_caps(again);
  check_frame_at(h, random_frame(again, random).get(), again, GST_MSECOND, filter, {{{10, 10, 22, 22}}});
}
GST_END_TEST;

// Thousands of regions a frame, for seconds: all stay covered, in time and memory that do not rise with their number.
GST_START_TEST(what_is_held_is_bounded) {
  const GstVideoInfo info = video_info("GRAY8", 640, 480);
  Random random = seeded();
  for (const char *shape : {"rect", "ellipse"}) {
    Harness h(std::string("mask=box3 roi-meta=true roi-hold=1000000000 roi-shape=") + shape, info);
    Harness all("mask=box3", info);
    std::vector<Region> seen;
    const gint64 begin = g_get_monotonic_time();
    for (int i = 0; i < 24; i++) {
      std::vector<Region> now;
      for (int n = 0; n < 400; n++)
        now.push_back({static_cast<int>(random() % 300), static_cast<int>(random() % 220), 4 + i % 3, 5});
      seen.insert(seen.end(), now.begin(), now.end());
      const Ref<GstBuffer> in = frame_with(now, random, info);
      GST_BUFFER_PTS(in.get()) = i * kFrame;
      fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
      const FrameBytes got(h.pull().get(), info), want(all.filter(in.get()).get(), info);
      int wrong = 0, outside = 0;
      const auto differs = [&](int x, int y) {
        const auto at = [&](const FrameBytes &f) { return f.view.plane[0].data[y * f.view.plane[0].pitch + x]; };
        return at(got) != at(want);
      };
      for (const Region &r : seen)
        for (int y = r.y + 1; y < r.y + r.height - 1; y++) wrong += differs(r.x + r.width / 2, y);
      fail_unless_equals_int(wrong, 0);
      for (int y = 300; y < 480; y++)
        for (int x = 400; x < 640; x++) outside += differs(x, y);
      fail_if(outside == 0);
    }
    GST_INFO("%s: %d ms", shape, static_cast<int>((g_get_monotonic_time() - begin) / 1000));
  }
}
GST_END_TEST;

GST_START_TEST(thousands_of_regions_take_bounded_time) {
  Random random = seeded();
  const GstVideoInfo info = video_info("GRAY8", 320, 240);
  std::vector<Region> regions;
  for (int n = 0; n < 10000; n++)
    regions.push_back({static_cast<int>(random() % 320), static_cast<int>(random() % 240),
                       static_cast<int>(random() % 200), static_cast<int>(random() % 200)});
  const Ref<GstBuffer> in = frame_with(regions, random, info);
  for (const char *more : {"", " roi-hold=1000000000", " roi-grow=4"}) {
    Harness h(std::string("mask=gauss size=5 roi-meta=true") + more, info);
    const gint64 begin = g_get_monotonic_time();
    for (int i = 0; i < 3; i++) h.filter(in.get());
    const gint64 took = (g_get_monotonic_time() - begin) / 3;
    fail_unless(took < 5 * G_USEC_PER_SEC, "a frame takes %" G_GINT64_FORMAT " us%s", took, more);
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("privacy");
  TCase *tc = tcase_create("privacy");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, regions_grow_by_a_fraction_of_their_sides);
  tcase_add_test(tc, regions_of_any_numbers_grow);
  tcase_add_test(tc, growth_counts_for_what_lies_outside);
  tcase_add_test(tc, what_a_detector_misses_stays_covered);
  tcase_add_test(tc, held_regions_are_forgotten);
  tcase_add_test(tc, the_time_to_hold_may_change);
  tcase_add_test(tc, frames_without_timestamps_hold_too);
  tcase_add_test(tc, regions_of_late_frames_are_held);
  tcase_add_test(tc, regions_are_held_when_a_stream_plays_backwards);
  tcase_add_test(tc, held_regions_follow_a_change_of_size);
  tcase_add_test(tc, what_is_held_is_bounded);
  tcase_add_test(tc, thousands_of_regions_take_bounded_time);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "privacy", make_suite, !strcmp(test_backend(), "cuda"));
}
