// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests what makes regions unrecognisable: roi-grow, roi-scale, and hold of roihold.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>

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
      {{-20, 3, 16, 10}, "0.5", {-28, -2, 32, 20}},  // outside the frame before it grows
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
        // Rectangles of the property roi grow, too.
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

// Regions in metas with any numbers grow right.
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

// A region outside the picture is warned of, unless it grows into the picture.
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

// The region of a face in frame `i`, which moves from frame to frame.
Region face_at(int i) {
  return {static_cast<int>(40 + 35 * std::sin(i * 0.13)), static_cast<int>(25 + 20 * std::cos(i * 0.09)), 17, 13};
}

}  // namespace

// A detector misses frames at random, for no longer than hold. Exactly the regions of that time are filtered.
GST_START_TEST(regions_that_a_detector_misses_stay_covered) {
  for (const int held : {1, 3, 12}) {
    Random random = seeded();
    const std::string hold = std::to_string(held * kFrame + kFrame / 2);
    Harness h("mask=gauss5 roi-meta=true hold=" + hold, gray());
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

// Decoders of some files give timestamps that go back by several frames.
GST_START_TEST(regions_are_held_for_frames_out_of_order) {
  Random random = seeded();
  const Region face = {10, 10, 20, 20};
  Harness h("mask=gauss5 roi-meta=true hold=100000000", gray());
  check_frame_at(h, frame_with({face}, random).get(), gray(), 0, "mask=gauss5", {{face}});
  for (const int ms : {80, 120, 160, 200, 100, 101, 240, 40}) {
    Selection selection;
    if (ms <= 100) selection.region.push_back(face);
    check_frame_at(h, random_frame(gray(), random).get(), gray(), ms * GST_MSECOND, "mask=gauss5", selection);
  }
}
GST_END_TEST;

GST_START_TEST(held_regions_are_forgotten) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20}, other = {50, 30, 9, 9};
  const auto bare = [&] { return random_frame(gray(), random); };
  Harness h(filter + " roi-meta=true hold=10000000000", gray());
  const auto see = [&](GstClockTime time) {
    check_frame_at(h, frame_with({face}, random).get(), gray(), time, filter, {{face}});
    check_frame_at(h, bare().get(), gray(), time + GST_SECOND, filter, {{face}});
  };
  see(5 * GST_SECOND);
  push_event(h, gst_event_new_flush_start());
  push_event(h, gst_event_new_flush_stop(TRUE));
  send_segment(h, 0);
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {});

  // An equal segment keeps the regions. So does a seek backwards, without a flush, for as long as they are in force.
  see(8 * GST_SECOND);
  send_segment(h, 0);
  check_frame_at(h, bare().get(), gray(), 10 * GST_SECOND, filter, {{face}});
  send_segment(h, 3 * GST_SECOND);
  check_frame_at(h, bare().get(), gray(), 3 * GST_SECOND, filter, {{face}});

  see(4 * GST_SECOND);
  gst_element_set_state(h.element(), GST_STATE_READY);
  gst_element_set_state(h.element(), GST_STATE_PLAYING);
  h.set_caps(gray());
  send_segment(h, 3 * GST_SECOND);
  check_frame_at(h, bare().get(), gray(), 5 * GST_SECOND, filter, {});

  // Held regions are forgotten when hold becomes 0.
  see(6 * GST_SECOND);
  h.set("hold=0 roi='50,30,9,9'");
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {{other}});
  h.set("hold=10000000000");
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {{other}});
  // Rectangles of the property roi are not held.
  h.set("roi=");
  check_frame_at(h, bare().get(), gray(), 7 * GST_SECOND, filter, {});
}
GST_END_TEST;

// A pad offset changes the running time of frames, and not their stream time, which counts. So does another speed or
// direction. An end that becomes known changes neither.
GST_START_TEST(regions_are_held_when_the_running_time_changes) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true hold=1000000000", gray());
  GstClockTime time = 0;
  const auto check = [&](bool detected, const Selection &selection) {
    const std::vector<Region> found = detected ? std::vector<Region>{face} : std::vector<Region>();
    check_frame_at(h, frame_with(found, random).get(), gray(), time, filter, selection);
    time += kFrame;
  };
  for (const gint64 offset : {20, -30, 0}) {
    check(true, {{face}});
    gst_pad_set_offset(h.get()->srcpad, offset * static_cast<gint64>(GST_MSECOND));
    check(false, {{face}});
  }
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  const std::function<void()> changes[] = {[&] { segment.start = segment.time = kFrame; },
                                           [&] { segment.stop = 100 * GST_SECOND; },
                                           [&] { segment.duration = 100 * GST_SECOND; },
                                           [&] { segment.flags = GST_SEGMENT_FLAG_TRICKMODE; },
                                           [&] { segment.rate = 2; },
                                           [&] { segment.rate = -1; }};
  for (const auto &change : changes) {
    check(true, {{face}});
    change();
    push_event(h, gst_event_new_segment(&segment));
    check(false, {{face}});
  }
  // Others change the stream time.
  for (const auto &change : {std::function<void()>([&] { segment.time = GST_SECOND; }),
                             std::function<void()>([&] { segment.applied_rate = 2; })}) {
    check(true, {{face}});
    change();
    push_event(h, gst_event_new_segment(&segment));
    check(false, {});
  }
  // The source turns the stream round: its end has the time of the segment.
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.applied_rate = -1;
  for (const auto &[end, keeps] : {std::pair(100, false), {90, true}, {90, true}, {80, false}}) {
    check(true, {{face}});
    segment.stop = end * GST_SECOND;
    if (end > 80) segment.time = (100 - end) * GST_SECOND;
    push_event(h, gst_event_new_segment(&segment));
    check(false, keeps ? Selection{{face}} : Selection{});
  }
  // The next stream may have the same stream times.
  gst_segment_init(&segment, GST_FORMAT_TIME);
  for (const char *stream : {"second", "third", "fourth"}) {
    check(true, {{face}});
    push_event(h, gst_event_new_stream_start(stream));
    if (strcmp(stream, "fourth")) segment.base = time;  // its segment is equal
    time = 0;
    push_event(h, gst_event_new_segment(&segment));
    check(false, {});
  }
}
GST_END_TEST;

GST_START_TEST(the_time_to_hold_may_change) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true hold=18446744073709551615", gray());
  check_frame_at(h, frame_with({face}, random).get(), gray(), 0, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100000 * GST_SECOND, filter, {{face}});
  h.set("hold=1000000000");
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100001 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100002 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100002 * GST_SECOND + 1, filter, {});
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100003 * GST_SECOND, filter, {{face}});
  h.set("hold=0");
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100003 * GST_SECOND, filter, {});
  // Regions are held as in the meta. The current frame's roi-grow applies to them.
  h.set("hold=1000000000");
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100004 * GST_SECOND, filter, {{face}});
  h.set("roi-grow=0.5");
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 100004 * GST_SECOND, filter, {{{0, 0, 40, 40}}});
}
GST_END_TEST;

// For frames without timestamps, durations give the time. Without durations, regions stay.
GST_START_TEST(frames_without_timestamps_hold_too) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true hold=" + std::to_string(2 * kFrame + 9), gray());
  check_frame_at(h, frame_with({face}, random).get(), gray(), GST_CLOCK_TIME_NONE, filter, {{face}});
  for (int i = 1; i < 5; i++) {
    const Ref<GstBuffer> in = random_frame(gray(), random);
    check_frame_at(h, in.get(), gray(), GST_CLOCK_TIME_NONE, filter, i <= 2 ? Selection{{face}} : Selection{});
  }
  // The first frame of a segment is at its start.
  Harness later(filter + " roi-meta=true hold=" + std::to_string(kFrame), gray());
  send_segment(later, 7 * GST_SECOND);
  check_frame_at(later, frame_with({face}, random).get(), gray(), GST_CLOCK_TIME_NONE, filter, {{face}});
  check_frame_at(later, random_frame(gray(), random).get(), gray(), 7 * GST_SECOND + kFrame, filter, {{face}});
  GstVideoInfo timeless = gray();
  timeless.fps_n = 0;
  Harness still(filter + " roi-meta=true hold=1", timeless);
  check_frame_at(still, frame_with({face}, random).get(), timeless, GST_CLOCK_TIME_NONE, filter, {{face}});
  for (int i = 1; i < 5; i++)
    check_frame_at(still, random_frame(timeless, random).get(), timeless, GST_CLOCK_TIME_NONE, filter, {{face}});
  // At the largest possible time, time does not advance and regions stay.
  Harness last(filter + " roi-meta=true hold=1", gray());
  check_frame_at(last, frame_with({face}, random).get(), gray(), G_MAXINT64, filter, {{face}});
  check_frame_at(last, random_frame(gray(), random).get(), gray(), GST_CLOCK_TIME_NONE, filter, {{face}});
}
GST_END_TEST;

// A frame that is dropped for being late still adds its regions.
GST_START_TEST(regions_of_late_frames_are_held) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true hold=1000000000", gray());
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

// Playing backwards, frames come with falling timestamps and rising running time.
GST_START_TEST(regions_are_held_when_a_stream_plays_backwards) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true hold=1000000000", gray());
  send_segment(h, 0, -2);
  check_frame_at(h, frame_with({face}, random).get(), gray(), 100 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 98 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 97 * GST_SECOND, filter, {});
}
GST_END_TEST;

// In slow motion a detector misses as many frames as else.
GST_START_TEST(regions_are_held_for_as_many_frames_in_slow_motion) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true hold=1000000000", gray());
  send_segment(h, 0, 0.25);
  check_frame_at(h, frame_with({face}, random).get(), gray(), 0, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), GST_SECOND + 1, filter, {});
}
GST_END_TEST;

// Frames before the segment have negative running times, which count the same.
GST_START_TEST(frames_before_the_segment_have_times_too) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  const Region face = {10, 10, 20, 20};
  Harness h(filter + " roi-meta=true hold=1000000000", gray());
  send_segment(h, 10 * GST_SECOND);
  check_frame_at(h, frame_with({face}, random).get(), gray(), 7 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 8 * GST_SECOND, filter, {{face}});
  check_frame_at(h, random_frame(gray(), random).get(), gray(), 13 * GST_SECOND, filter, {});
}
GST_END_TEST;

// Held regions are scaled when frames come in another size, since they show the same scene.
GST_START_TEST(held_regions_follow_a_change_of_size) {
  Random random = seeded();
  const std::string filter = "mask=gauss5";
  Harness h(filter + " roi-meta=true hold=1000000000", gray());
  check_frame_at(h, frame_with({{10, 11, 21, 20}}, random).get(), gray(), 0, filter, {{{10, 11, 21, 20}}});
  const GstVideoInfo half = video_info("GRAY8", 48, 32), again = gray();
  h.set_caps(half);
  check_frame_at(h, random_frame(half, random).get(), half, GST_MSECOND, filter, {{{5, 5, 11, 11}}});
  h.set_caps(again);
  check_frame_at(h, random_frame(again, random).get(), again, GST_MSECOND, filter, {{{10, 10, 22, 22}}});
}
GST_END_TEST;

// With thousands of regions in each frame, for seconds, all stay covered. Time and memory do not grow with their
// number.
GST_START_TEST(the_number_of_held_regions_is_bounded) {
  const GstVideoInfo info = video_info("GRAY8", 640, 480);
  Random random = seeded();
  for (const char *shape : {"rect", "ellipse"}) {
    Harness h(std::string("mask=box3 roi-meta=true hold=1000000000 roi-shape=") + shape, info);
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

// With roi-invert, all is hidden that no region has ever had.
GST_START_TEST(thousands_of_held_regions_show_nothing_else) {
  const GstVideoInfo info = video_info("GRAY8", 640, 480);
  Random random = seeded();
  Harness h("mask=fill roi-meta=true roi-invert=true hold=1000000000", info);
  std::vector<bool> seen(640 * 480);
  for (int i = 0; i < 4; i++) {
    std::vector<Region> now;
    for (int n = 0; n < 1000; n++)
      now.push_back({static_cast<int>(random() % 630), static_cast<int>(random() % 470), 2, 3});
    for (const Region &r : now)
      for (int k = 0; k < r.width * r.height; k++) seen[(r.y + k / r.width) * 640 + r.x + k % r.width] = true;
    const Ref<GstBuffer> in = frame_with(now, random, info);
    GST_BUFFER_PTS(in.get()) = i;
    fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
    const FrameBytes got(h.pull().get(), info);
    int shown = 0;
    for (int y = 0; y < 480; y++)
      for (int x = 0; x < 640; x++)
        shown += !seen[y * 640 + x] && got.view.plane[0].data[y * got.view.plane[0].pitch + x] != 0;
    fail_unless_equals_int(shown, 0);
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
  for (const char *more : {"", " hold=1000000000", " roi-scale=0.1", " roi-grow=4"}) {
    Harness h(std::string("mask=gauss size=5 roi-meta=true") + more, info);
    const std::clock_t begin = std::clock();  // of the processor: the machine may do other work
    for (int i = 0; i < 3; i++) h.filter(in.get());
    const std::clock_t took = (std::clock() - begin) / 3;
    fail_unless(took < 5 * CLOCKS_PER_SEC, "a frame takes %ld us%s", static_cast<long>(took), more);
  }
}
GST_END_TEST;

// ---- Strength -------------------------------------------------------------------------------------------------------

GST_START_TEST(strength_follows_the_size_of_a_region) {
  const struct {
    const char *filter, *roi;
    Region region;
    const char *strength;
  } cases[] = {
      {"mask=gauss", "roi-scale=0.125", {10, 5, 60, 40}, "sigma=5.656854249492381"},  // 5 is rounded up to 2^(10/4)
      {"mask=gauss", "roi-scale=0.125", {10, 5, 32, 50}, "sigma=4"},
      {"mask=gauss sigma=9 size=3", "roi-scale=0.125", {10, 5, 32, 50}, "sigma=4 size=0"},
      {"mask=gauss", "roi-scale=0.01", {10, 5, 20, 20}, "sigma=0.5"},
      {"mask=gauss", "roi-scale=0.125 roi-shape=ellipse", {10, 5, 32, 50}, "sigma=4"},
      {"mask=unsharp amount=2", "roi-scale=0.1", {10, 5, 30, 31}, "sigma=3.363585661014858"},
      {"mask=box", "roi-scale=0.25", {10, 5, 40, 41}, "size=11"},  // the steps are 9, then 9.5, which becomes 11
      {"mask=box", "roi-scale=0.25", {10, 5, 41, 36}, "size=9"},
      {"mask=box", "roi-scale=0.001", {10, 5, 41, 36}, "size=3"},
      {"mask=bilateral sigma-range=0.3", "roi-scale=0.25", {10, 5, 40, 41}, "size=11"},
      {"mask=bilateral", "roi-scale=1", {10, 5, 40, 41}, "size=31"},
      {"mask=bilateral size=9 size-y=3 shape=ellipse", "roi-scale=0.25", {10, 5, 40, 41}, "size=11 size-y=5"},
      {"mask=median", "roi-scale=0.1", {10, 5, 48, 49}, "size=5"},
      {"mask=dilate", "roi-scale=0.5", {10, 5, 30, 31}, "size=15"},
      {"mask=open shape=ellipse iterations=2", "roi-scale=0.5", {10, 5, 31, 33}, "size=17"},
      {"mask=gauss border=reflect", "roi-scale=0.125", {-20, -9, 40, 40}, "sigma=5.656854249492381"},
      {"mask=box", "roi-scale=0.25", {80, 50, 40, 41}, "size=11"},
      // Heights follow in proportion, to the next size that the mask has.
      {"mask=gauss sigma=4 sigma-y=1", "roi-scale=0.125", {10, 5, 32, 50}, "sigma=4 sigma-y=1"},
      {"mask=gauss sigma=1 sigma-y=3", "roi-scale=0.125", {10, 5, 32, 50}, "sigma=4 sigma-y=12"},
      {"mask=gauss sigma=2 sigma-y=0", "roi-scale=0.125", {10, 5, 32, 50}, "sigma=4 sigma-y=0"},
      {"mask=gauss sigma=0 sigma-y=2", "roi-scale=0.125", {10, 5, 32, 50}, "sigma=0 sigma-y=4"},
      {"mask=gauss sigma=0", "roi-scale=0.125", {10, 5, 32, 50}, "sigma=4"},
      {"mask=gauss size=9 size-y=1", "roi-scale=0.125", {10, 5, 32, 50}, "size=0 sigma=4 size-y=0 sigma-y=0"},
      {"mask=box size=9 size-y=3", "roi-scale=0.25", {10, 5, 40, 41}, "size=11 size-y=5"},
      {"mask=median size-y=9", "roi-scale=0.1", {10, 5, 48, 49}, "size=5 size-y=15"},
      {"mask=dilate size=5 size-y=1 shape=ellipse", "roi-scale=0.5", {10, 5, 30, 31}, "size=15 size-y=3"},
  };
  Random random = seeded();
  for (const char *format : {"GRAY8", "NV12"}) {
    const GstVideoInfo info = video_info(format, 96, 64);
    for (const auto &c : cases) {
      Harness h(std::string(c.filter) + " roi-meta=true " + c.roi, info);
      for (int i = 0; i < 2; i++)
        check_frame(h, frame_with({c.region}, random, info).get(), info, std::string(c.filter) + " " + c.strength,
                    {{c.region}, strstr(c.roi, "ellipse") != nullptr});
    }
  }
  // The size of a region is its size after roi-grow.
  Harness h("mask=gauss roi='40,20,16,20' roi-scale=0.125 roi-grow=0.5", gray());
  check_frame(h, random_frame(gray(), random).get(), gray(), "mask=gauss sigma=4", {{{32, 10, 32, 40}}});
  h.set("roi-scale=0 sigma=2");
  check_frame(h, random_frame(gray(), random).get(), gray(), "mask=gauss sigma=2", {{{32, 10, 32, 40}}});
  h.set("roi-scale=0.0625 roi-grow=0");
  check_frame(h, random_frame(gray(), random).get(), gray(), "mask=gauss sigma=1", {{{40, 20, 16, 20}}});
  // With roi-invert the strength is as set, since the area outside regions has no size.
  h.set("roi-invert=true");
  check_frame(h, random_frame(gray(), random).get(), gray(), "mask=gauss sigma=2", {{{40, 20, 16, 20}}, false, true});
}
GST_END_TEST;

GST_START_TEST(each_region_has_its_own_strength) {
  const Region small = {3, 3, 8, 9}, middle = {20, 4, 17, 30}, alike = {70, 5, 16, 16}, large = {30, 20, 40, 44};
  // The strongest filter wins in any order of regions: `middle` and `large` overlap.
  const std::vector<Layer> layers = {{"mask=gauss sigma=1", {{small}}},
                                     {"mask=gauss sigma=2", {{alike}}},
                                     {"mask=gauss sigma=2.378414230005442", {{middle}}},
                                     {"mask=gauss sigma=5.656854249492381", {{large}}}};
  Random random = seeded();
  for (const char *format : {"GRAY8", "NV12", "RGBA"}) {
    const GstVideoInfo info = video_info(format, 96, 64);
    std::vector<Region> regions = {small, middle, alike, large};
    Harness h("mask=gauss roi-meta=true roi-scale=0.125", info);
    do {
      const Ref<GstBuffer> in = frame_with(regions, random, info), out = h.filter(in.get());
      check_layers(in.get(), out.get(), info, layers);
      std::rotate(regions.begin(), regions.begin() + 1, regions.end());
    } while (regions[0].x != small.x);
  }
}
GST_END_TEST;

// Nanoseconds of processor time.
static gint64 time_on(clockid_t clock) {
  timespec t;
  fail_unless(clock_gettime(clock, &t) == 0);
  return t.tv_sec * G_GINT64_CONSTANT(1000000000) + t.tv_nsec;
}

// Regions of many sizes need many plans, some of which take long to make. A flush waits for the present one alone.
GST_START_TEST(a_flush_ends_the_making_of_plans) {
  std::vector<Region> regions;
  for (int side = 4; side < 3000; side += 4) regions.push_back({0, 0, side, side});
  Random random = seeded();
  const Ref<GstBuffer> in = frame_with(regions, random, gray());
  gint64 whole = 0;
  for (const bool flushes : {false, true}) {
    Harness h("mask=unsharp roi-meta=true roi-scale=0.1", gray());
    std::atomic<gint64> took{0};
    GstFlowReturn flow = GST_FLOW_OK;
    std::thread pusher([&] {
      flow = h.push(in.get());
      took = time_on(CLOCK_THREAD_CPUTIME_ID);
    });
    if (flushes) {
      clockid_t clock;
      fail_unless_equals_int(pthread_getcpuclockid(pusher.native_handle(), &clock), 0);
      while (time_on(clock) < whole / 16) g_usleep(100);
      const gint64 before = time_on(clock);
      push_event(h, gst_event_new_flush_start());
      pusher.join();
      fail_unless_equals_int(flow, GST_FLOW_FLUSHING);
      fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
      fail_unless(took - before < whole / 2, "the flush waits for %d of %d us", int((took - before) / 1000),
                  int(whole / 1000));
    } else {
      pusher.join();
      fail_unless_equals_int(flow, GST_FLOW_OK);
      whole = took;
    }
  }
}
GST_END_TEST;

// The largest odd size that mask=box takes.
static int largest_box() {
  int works = 1, fails = 100001;
  while (fails - works > 2) {
    const int side = (works + fails) / 4 * 2 + 1;
    Harness h;
    const GParamSpec *size = g_object_class_find_property(G_OBJECT_GET_CLASS(h.element()), "size");
    bool refused = static_cast<guint>(side) > G_PARAM_SPEC_UINT(size)->maximum;
    if (!refused) {
      h.set("mask=box size=" + std::to_string(side));
      h.set_caps(gray());
      gst_harness_push(h.get(), gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&gray()), nullptr));
      refused = !h.take(GST_MESSAGE_ERROR).empty();
    }
    (refused ? fails : works) = side;
  }
  return works;
}

GST_START_TEST(strength_is_limited_by_the_mask) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  add_roi(in.get(), "face", 20, 10, 100000, 100000);
  Harness h("mask=box roi-meta=true roi-scale=1", gray());
  check_frame(h, in.get(), gray(), "mask=box size=" + std::to_string(largest_box()), {{{20, 10, 76, 54}}});
  // This takes the largest sigma of the mask.
  h.set("mask=gauss");
  h.filter(in.get());
  h.set("mask=median");
  h.filter(in.get());
  h.set("mask=dilate");
  h.filter(in.get());
}
GST_END_TEST;

GST_START_TEST(strengths_that_a_method_does_not_support_are_a_warning) {
  Random random = seeded();
  const auto in = [&](int side) { return frame_with({{2, 3, side, side}}, random); };
  Harness h("mask=dilate size=5 method=cascade roi-meta=true roi-scale=0.25", gray());
  for (const int side : {40, 30, 20, 50})
    check_frame(h, in(side).get(), gray(), "mask=dilate size=5", {{{2, 3, side, side}}});
  assert_same_text(h.take_one(GST_MESSAGE_WARNING).text,
                   "roi-scale asks for size=11, but method=cascade does not support mask=dilate: it needs dilate "
                   "or erode of size 5 with shape=rect; use method=auto, global, constant, tiled, tiled-cached, "
                   "blocked, separable; size=5 is used instead");
  Harness weak("mask=dilate size=5 method=cascade roi-meta=true roi-scale=0.1", gray());
  check_frame(weak, in(30).get(), gray(), "mask=dilate size=5", {{{2, 3, 30, 30}}});
  const std::string text = weak.take_one(GST_MESSAGE_WARNING).text;
  fail_unless(g_str_has_prefix(text.c_str(), "roi-scale asks for size=3, but method=cascade does not support") &&
                  g_str_has_suffix(text.c_str(), "; the strength as set is used instead"),
              "%s", text.c_str());
}
GST_END_TEST;

GST_START_TEST(masks_without_strength_are_a_warning) {
  Random random = seeded();
  const Region region = {10, 10, 40, 40};
  for (const char *mask : {"gauss5", "sobel", "custom coefficients='0 1 0;1 1 1;0 1 0'"}) {
    const std::string filter = std::string("mask=") + mask;
    Harness h(filter + " roi-meta=true roi-scale=0.25", gray());
    for (int i = 0; i < 2; i++) check_frame(h, frame_with({region}, random).get(), gray(), filter, {{region}});
    const std::string text = h.take_one(GST_MESSAGE_WARNING).text;
    const std::string begin = "roi-scale has no effect with mask=" + std::string(mask, strcspn(mask, " ")) +
                              "; it is used by box, gauss, unsharp, dilate, erode, ";
    fail_unless(g_str_has_prefix(text.c_str(), begin.c_str()), "%s", text.c_str());
  }
  const std::string filter = "mask=dilate shape=custom coefficients='0 1 0;1 1 1;0 1 0'";
  Harness h(filter + " roi-meta=true roi-scale=0.25", gray());
  check_frame(h, frame_with({region}, random).get(), gray(), filter, {{region}});
  assert_same_text(h.take_one(GST_MESSAGE_WARNING).text,
                   "roi-scale has no effect with mask=dilate and shape=custom; it is used with shape=rect, cross, "
                   "ellipse");
  // With mask=identity there is no warning, since the filter may be switched on later.
  Harness off("mask=identity roi-scale=0.25", gray());
  off.filter(random_frame(gray(), random).get());
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("privacy");
  TCase *tc = tcase_create("privacy");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, regions_grow_by_a_fraction_of_their_sides);
  tcase_add_test(tc, regions_of_any_numbers_grow);
  tcase_add_test(tc, growth_counts_for_what_lies_outside);
  tcase_add_test(tc, regions_that_a_detector_misses_stay_covered);
  tcase_add_test(tc, regions_are_held_for_frames_out_of_order);
  tcase_add_test(tc, held_regions_are_forgotten);
  tcase_add_test(tc, regions_are_held_when_the_running_time_changes);
  tcase_add_test(tc, the_time_to_hold_may_change);
  tcase_add_test(tc, frames_without_timestamps_hold_too);
  tcase_add_test(tc, regions_of_late_frames_are_held);
  tcase_add_test(tc, regions_are_held_when_a_stream_plays_backwards);
  tcase_add_test(tc, regions_are_held_for_as_many_frames_in_slow_motion);
  tcase_add_test(tc, frames_before_the_segment_have_times_too);
  tcase_add_test(tc, held_regions_follow_a_change_of_size);
  tcase_add_test(tc, the_number_of_held_regions_is_bounded);
  tcase_add_test(tc, thousands_of_held_regions_show_nothing_else);
  tcase_add_test(tc, thousands_of_regions_take_bounded_time);
  tcase_add_test(tc, strength_follows_the_size_of_a_region);
  tcase_add_test(tc, each_region_has_its_own_strength);
  tcase_add_test(tc, a_flush_ends_the_making_of_plans);
  tcase_add_test(tc, strength_is_limited_by_the_mask);
  tcase_add_test(tc, strengths_that_a_method_does_not_support_are_a_warning);
  tcase_add_test(tc, masks_without_strength_are_a_warning);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "privacy", make_suite, !strcmp(test_backend(), "cuda"));
}
