// SPDX-License-Identifier: LGPL-2.1-or-later
//
// roihold: frames that wait for later ones, lookahead; frames without regions, unmarked; counts of regions, report.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <tuple>

#include "between.h"
#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr GstClockTime kFrame = 40 * GST_MSECOND;
constexpr char kFilter[] = "mask=gauss5";

GstVideoInfo info_of(const char *format) {
  GstVideoInfo info = video_info(format, 48, 32);
  info.fps_n = 25;
  info.fps_d = 1;
  return info;
}

std::string settings(guint64 lookahead, guint64 hold) {
  return std::string(kFilter) + " roi-meta=true lookahead=" + std::to_string(lookahead) +
         " hold=" + std::to_string(hold);
}

void send_segment(Harness &h, GstClockTime start, double rate = 1) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.rate = rate;
  segment.start = segment.time = start;
  if (rate < 0) segment.stop = start + 1000 * GST_SECOND;
  push_event(h, gst_event_new_segment(&segment));
}

// A harness that is ready for frames.
struct Stream : Harness {
  const GstVideoInfo info;

  explicit Stream(const std::string &properties, const char *format = "GRAY8", GstClockTime start = 0, double rate = 1)
      : Harness(properties, info_of(format)), info(info_of(format)) {
    send_segment(*this, start, rate);
  }
};

// A stream with known detections. Frames are identified by their timestamps.
class Clip {
 public:
  explicit Clip(Stream &h) : h_(h) {}

  struct Sent {
    Ref<GstBuffer> source;
    std::vector<Region> regions;
  };

  // Pushes a frame at a time with these regions. `in_place`: nobody else holds it.
  GstFlowReturn push(GstClockTime time, std::vector<Region> regions, bool in_place = false) {
    Ref<GstBuffer> frame = random_frame(h_.info, random_);
    Ref<GstBuffer> source(gst_buffer_copy_deep(frame.get()));
    GST_BUFFER_PTS(frame.get()) = time;
    for (const Region &r : regions) add_roi(frame.get(), "face", r.x, r.y, r.width, r.height);
    sent_[time] = {std::move(source), std::move(regions)};
    if (in_place) return gst_harness_push(h_.get(), frame.release());
    kept_.push_back(std::move(frame));
    return h_.push(kept_.back().get());
  }
  // Takes a frame. It must be the frame of `time`, filtered in the regions of frames from `before` to `after`.
  void check(GstClockTime time, GstClockTime before, GstClockTime after) {
    const Ref<GstBuffer> out = h_.pull();
    fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), time);
    Selection selection;
    for (const auto &[at, sent] : sent_)
      if (at >= before && at <= after)
        selection.region.insert(selection.region.end(), sent.regions.begin(), sent.regions.end());
    check_layers(sent_.at(time).source.get(), out.get(), h_.info, {{kFilter, selection}});
  }

 private:
  Stream &h_;
  Random random_ = seeded();
  std::map<GstClockTime, Sent> sent_;
  std::vector<Ref<GstBuffer>> kept_;
};

}  // namespace

// ---- Regions in force -----------------------------------------------------------------------------------------------

// A detector finds a face late and misses it for any number of frames. Exactly the regions of the frames from
// lookahead after a frame to hold before it are filtered, both ends included.
GST_START_TEST(what_a_detector_misses_is_covered_from_both_sides) {
  for (const char *format : {"GRAY8", "I420"})
    for (const auto &[ahead, held] : {std::pair(1, 0), {2, 0}, {3, 2}, {5, 7}})
      for (const bool in_place : {false, true}) {
        Stream h(settings(ahead * kFrame, held * kFrame), format);
        Clip clip(h);
        constexpr int kFrames = 60;
        int misses = 0, length = 1;
        std::vector<bool> detected;
        for (int i = 0; i < kFrames; i++) {
          // One detection, then misses: one more of them each time. The face is first found in frame 7.
          detected.push_back(i >= 7 && misses == 0);
          if (i >= 7) misses = misses ? misses - 1 : length++;
        }
        for (int i = 0; i < kFrames; i++) {
          std::vector<Region> regions;
          if (detected[i]) regions.push_back({i % 30, i / 4, 14, 9});
          fail_unless_equals_int(clip.push(i * kFrame, regions, in_place), GST_FLOW_OK);
          if (i >= ahead) {
            const int leaves = i - ahead;
            clip.check(leaves * kFrame, MAX(leaves - held, 0) * kFrame, (leaves + ahead) * kFrame);
          }
          fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
        }
        // The rest leaves at the end of the stream.
        push_event(h, gst_event_new_eos());
        for (int i = kFrames - ahead; i < kFrames; i++)
          clip.check(i * kFrame, (i - held) * kFrame, (i + ahead) * kFrame);
        fail_unless_equals_uint64(stat(h, "frames-early"), 0);
        fail_unless_equals_uint64(stat(h, "frames-marked") + stat(h, "frames-unmarked"), kFrames);
      }
}
GST_END_TEST;

// The time is stream time, and need not be a number of frames.
GST_START_TEST(times_of_any_length) {
  const Region face = {8, 8, 16, 12};
  for (const guint64 lookahead : {guint64{1}, kFrame - 1, kFrame, kFrame + 1, 3 * kFrame - 1}) {
    Stream h(settings(lookahead, 0), "GRAY8", GST_SECOND);
    Clip clip(h);
    for (int i = 0; i < 8; i++)
      clip.push(GST_SECOND + i * kFrame, i == 4 ? std::vector<Region>{face} : std::vector<Region>());
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 8; i++) {
      const GstClockTime time = GST_SECOND + i * kFrame;
      clip.check(time, time, time + lookahead);
    }
  }
}
GST_END_TEST;

// Playing backwards, the frames of hold before a frame in stream time come after it.
GST_START_TEST(a_stream_that_plays_backwards) {
  Stream h(settings(2 * kFrame, 3 * kFrame), "GRAY8", 0, -1);
  Clip clip(h);
  for (int i = 20; i >= 0; i--)
    clip.push(i * kFrame, i == 10 || i == 17 ? std::vector<Region>{{i, 8, 16, 12}} : std::vector<Region>());
  push_event(h, gst_event_new_eos());
  for (int i = 20; i >= 0; i--) clip.check(i * kFrame, i < 3 ? 0 : (i - 3) * kFrame, (i + 2) * kFrame);
}
GST_END_TEST;

// Pushes frames. Only the first may have a timestamp, `start`; frame number `marked` has a region. Expects the filter
// there in frames `first` to `last`.
void check_without_timestamps(Stream &h, int count, GstClockTime start, int marked, int first, int last) {
  Random random = seeded();
  const Region face = {8, 8, 16, 12};
  std::vector<Ref<GstBuffer>> sources;
  for (int i = 0; i < count; i++) {
    sources.push_back(random_frame(h.info, random));
    if (i == 0) GST_BUFFER_PTS(sources[0].get()) = start;
    if (i == marked) add_roi(sources[i].get(), "face", face.x, face.y, face.width, face.height);
    fail_unless_equals_int(h.push(sources[i].get()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < count; i++)
    check_layers(sources[i].get(), h.pull().get(), h.info,
                 {{kFilter, i >= first && i <= last ? Selection{{face}} : Selection()}});
}

// Frames without timestamps go back in time, too.
GST_START_TEST(a_stream_without_timestamps_that_plays_backwards) {
  Stream h(settings(2 * kFrame, 3 * kFrame), "GRAY8", 0, -1);
  check_without_timestamps(h, 10, GST_SECOND, 5, 2, 7);
}
GST_END_TEST;

// Frames without timestamps are as long in stream time as the source has made them.
GST_START_TEST(a_stream_without_timestamps_that_its_source_has_slowed) {
  Stream h(settings(2 * kFrame, kFrame));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.applied_rate = 0.5;
  push_event(h, gst_event_new_segment(&segment));
  check_without_timestamps(h, 12, GST_CLOCK_TIME_NONE, 6, 2, 8);
}
GST_END_TEST;

// With a negative applied rate, stream times fall where timestamps rise.
GST_START_TEST(a_stream_that_its_source_has_turned_round) {
  for (const int rate : {1, -1}) {
    Stream h(settings(2 * kFrame, 3 * kFrame));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.rate = rate;
    segment.applied_rate = -1;
    segment.stop = 100 * kFrame;
    push_event(h, gst_event_new_segment(&segment));
    Clip clip(h);
    const auto frame = [&](int i) { return 50 + rate * i; };
    for (int i = 0; i <= 20; i++)
      clip.push(frame(i) * kFrame, i == 10 || i == 17 ? std::vector<Region>{{i, 8, 16, 12}} : std::vector<Region>());
    const int waits = rate < 0 ? 2 : 3;
    for (int i = 0; i <= 20; i++) {
      if (i == 21 - waits) {
        fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
        push_event(h, gst_event_new_eos());
      }
      clip.check(frame(i) * kFrame, (frame(i) - 2) * kFrame, (frame(i) + 3) * kFrame);
    }
  }
}
GST_END_TEST;

// The regions of a frame that the filter drops because it is too late count as well.
GST_START_TEST(regions_of_late_frames_are_looked_at) {
  Stream h(settings(2 * kFrame, kFrame));
  Clip clip(h);
  clip.push(0, {});
  clip.push(kFrame, {{8, 8, 16, 12}});  // is dropped when it leaves
  clip.push(2 * kFrame, {});
  gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1, kFrame, 10));
  clip.push(3 * kFrame, {});
  gst_harness_push_upstream_event(
      h.get(), gst_event_new_qos(GST_QOS_TYPE_OVERFLOW, 1, -static_cast<GstClockTimeDiff>(kFrame), kFrame));
  clip.push(4 * kFrame, {});
  clip.check(0, 0, 2 * kFrame);
  clip.check(2 * kFrame, kFrame, 4 * kFrame);
  take_messages(h.element(), GST_MESSAGE_ANY);
}
GST_END_TEST;

// Where time jumps back or cannot be told, no later frame counts, and none is waited for.
GST_START_TEST(times_that_are_no_times) {
  {
    Stream h(settings(2 * kFrame, 0));
    Clip clip(h);
    clip.push(100 * kFrame, {});
    clip.push(101 * kFrame, {});
    clip.push(50 * kFrame, {{8, 8, 16, 12}});
    clip.check(100 * kFrame, 100 * kFrame, 102 * kFrame);
    clip.check(101 * kFrame, 101 * kFrame, 103 * kFrame);
  }
  GstVideoInfo timeless = info_of("GRAY8");
  timeless.fps_n = 0;
  Harness h(settings(2 * kFrame, 0), timeless);
  Random random = seeded();
  for (int i = 0; i < 3; i++) {
    fail_unless_equals_int(h.push(random_frame(timeless, random).get()), GST_FLOW_OK);
    h.pull();
  }
  fail_unless(h.take_one(GST_MESSAGE_WARNING).text.find("neither timestamp nor duration") != std::string::npos);
}
GST_END_TEST;

// Timestamps that are not in order do not keep a frame's own regions from it.
GST_START_TEST(times_that_are_not_in_order) {
  for (const int rate : {1, -1}) {
    const guint64 lookahead = rate < 0 ? 1 : 2 * kFrame, hold = rate < 0 ? 2 * kFrame : 1;
    Stream h(settings(lookahead, hold), "GRAY8", 0, rate);
    Clip clip(h);
    const auto time = [&](int ms) { return (1000 + rate * ms) * GST_MSECOND; };
    for (const int ms : {0, 40, 39, 80, 119, 120, 160})
      clip.push(time(ms), ms == 39 ? std::vector<Region>{{8, 8, 16, 12}} : std::vector<Region>());
    push_event(h, gst_event_new_eos());
    for (const int ms : {0, 40, 39, 80, 119, 120, 160}) clip.check(time(ms), time(ms) - hold, time(ms) + lookahead);
    // A frame that comes before the first one that waits ends no wait.
    Stream start(settings(lookahead, hold), "GRAY8", 0, rate);
    Clip first(start);
    for (const int ms : {40, 0, 80, 120, 160, 200})
      first.push(time(ms), ms == 120 ? std::vector<Region>{{8, 8, 16, 12}} : std::vector<Region>());
    push_event(start, gst_event_new_eos());
    for (const int ms : {40, 0, 80, 120, 160, 200}) first.check(time(ms), time(ms) - hold, time(ms) + lookahead);
  }
  // A frame ahead of its neighbours waits longer than its regions are in force at their times.
  Stream h(settings(3 * kFrame, 0));
  Clip clip(h);
  clip.push(0, {});
  clip.push(100 * GST_MSECOND, {{8, 8, 16, 12}});
  h.set("lookahead=40000000");
  for (const int ms : {10, 20}) clip.push(ms * GST_MSECOND, {});
  push_event(h, gst_event_new_eos());
  for (const int ms : {0, 100, 10, 20}) clip.check(ms * GST_MSECOND, ms * GST_MSECOND, (ms + 40) * GST_MSECOND);
}
GST_END_TEST;

// The settings with which a frame leaves count for the frames that it waited for, too.
GST_START_TEST(settings_change_while_frames_wait) {
  Stream h(settings(3 * kFrame, 0) + " types=plate");
  Clip clip(h);
  for (int i = 0; i < 3; i++)
    clip.push(i * kFrame, i == 2 ? std::vector<Region>{{8, 8, 16, 12}} : std::vector<Region>());
  h.set("types=face");
  clip.push(3 * kFrame, {});
  clip.check(0, 0, 3 * kFrame);
  // Without look-ahead all leave.
  h.set("lookahead=0");
  clip.push(4 * kFrame, {});
  for (int i = 1; i < 5; i++) clip.check(i * kFrame, i * kFrame, i * kFrame);
  fail_unless_equals_uint64(stat(h, "frames-early"), 0);
}
GST_END_TEST;

// So do regions that types selects no longer, but for those of frames that have left. Frames may have the same time,
// and need not follow each other then.
GST_START_TEST(types_change_while_frames_wait) {
  Stream h(settings(2 * kFrame, 0) + " types=face");
  const Region face = {2, 2, 10, 9}, other = {20, 4, 11, 8}, plate = {30, 20, 9, 9}, tree = {3, 20, 9, 7};
  Random random = seeded();
  std::vector<Ref<GstBuffer>> sources;
  const auto push = [&](int number, const char *type, const Region &r) {
    sources.push_back(random_frame(h.info, random));
    GST_BUFFER_PTS(sources.back().get()) = number * kFrame;
    add_roi(sources.back().get(), type, r.x, r.y, r.width, r.height);
    fail_unless_equals_int(h.push(sources.back().get()), GST_FLOW_OK);
  };
  size_t next = 0;
  const auto check = [&](const std::vector<Region> &regions) {
    check_layers(sources[next++].get(), h.pull().get(), h.info, {{kFilter, {regions}}});
  };
  push(0, "face", face);
  push(1, "face", face);
  push(1, "tree", tree);
  push(2, "face", other);
  push(1, "plate", plate);
  check({face, other});
  h.set("types=plate,tree");
  push(2, "face", face);
  push(3, "dog", face);
  check({plate, tree});
  check({plate, tree});
  h.set("types=face");
  push(4, "dog", plate);
  check({other, face});
  check({other, face, tree});
}
GST_END_TEST;

// Two frames of one time have equal regions of two types. Each is searched again for its own.
GST_START_TEST(types_change_where_frames_of_one_time_have_equal_regions) {
  Stream h(settings(2 * kFrame, 0) + " types=plate");
  Random random = seeded();
  const Region region = {2, 2, 10, 9};
  std::vector<Ref<GstBuffer>> sources;
  for (const char *type : {"", "face", "plate"}) {
    sources.push_back(random_frame(h.info, random));
    GST_BUFFER_PTS(sources.back().get()) = *type ? kFrame : 0;
    if (*type) add_roi(sources.back().get(), type, region.x, region.y, region.width, region.height);
    fail_unless_equals_int(h.push(sources.back().get()), GST_FLOW_OK);
  }
  h.set("types=face");
  push_event(h, gst_event_new_eos());
  for (const Ref<GstBuffer> &source : sources)
    check_layers(source.get(), h.pull().get(), h.info, {{kFilter, {{region}}}});
}
GST_END_TEST;

// A second search does not forget the regions of frames that have left: the next frame may have their time.
GST_START_TEST(types_change_before_time_steps_back) {
  Stream h(settings(kFrame, 0) + " types=face");
  Random random = seeded();
  const Region face = {2, 2, 10, 9};
  std::vector<Ref<GstBuffer>> sources;
  for (const int number : {2, 3, 2}) {
    sources.push_back(random_frame(h.info, random));
    GST_BUFFER_PTS(sources.back().get()) = number * kFrame;
    if (sources.size() == 1) add_roi(sources[0].get(), "face", face.x, face.y, face.width, face.height);
    if (sources.size() == 3) h.set("types=face,plate");
    fail_unless_equals_int(h.push(sources.back().get()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  for (size_t i = 0; i < 3; i++)
    check_layers(sources[i].get(), h.pull().get(), h.info, {{kFilter, i == 1 ? Selection() : Selection{{face}}}});
}
GST_END_TEST;

// Frames wait in the memory that they came in, and are filtered there.
GST_START_TEST(frames_that_wait_are_not_copied) {
  Stream h(settings(3 * kFrame, 0), "RGBA");
  Random random = seeded();
  std::vector<GstMemory *> memory;
  for (int i = 0; i < 10; i++) {
    Ref<GstBuffer> frame = random_frame(h.info, random);
    GST_BUFFER_PTS(frame.get()) = i * kFrame;
    add_roi(frame.get(), "face", 8, 8, 16, 12);
    memory.push_back(gst_buffer_peek_memory(frame.get(), 0));
    fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < 10; i++) fail_unless(gst_buffer_peek_memory(h.pull().get(), 0) == memory[i], "frame %d", i);
}
GST_END_TEST;

namespace {

GstClockTime latency_of(Harness &h, GstClockTime *max) {
  const Ref<GstQuery> query(gst_query_new_latency());
  fail_unless(gst_pad_peer_query(h.get()->sinkpad, query.get()));
  GstClockTime min;
  gst_query_parse_latency(query.get(), nullptr, &min, max);
  return min;
}

constexpr Region kFace = {8, 8, 16, 12};

// A stream in which several frames have the same time.
struct Several {
  Stream &h;
  Random random = seeded();
  std::vector<Ref<GstBuffer>> sources{};

  void push(GstClockTime time, bool detected, const Region &face = kFace) {
    sources.push_back(random_frame(h.info, random));
    GST_BUFFER_PTS(sources.back().get()) = time;
    if (detected) add_roi(sources.back().get(), "face", face.x, face.y, face.width, face.height);
    fail_unless_equals_int(h.push(sources.back().get()), GST_FLOW_OK);
  }
  guint left() const { return gst_harness_buffers_received(h.get()); }
  // Takes frame `number`, in which `regions` must be filtered.
  void check(size_t number, const std::vector<Region> &regions) {
    check_layers(sources[number].get(), h.pull().get(), h.info, {{kFilter, {regions}}});
  }
};

}  // namespace

// Several frames may have the same time, as those of several cameras. All count, at both ends of the times.
GST_START_TEST(frames_of_one_time_all_count) {
  for (const int each : {2, 3}) {
    Stream h(settings(2 * kFrame, kFrame));
    Several frames{h};
    const int count = 10 * each;
    for (int i = 0; i < count; i++) frames.push(i / each * kFrame, i == 6 * each - 1);  // the last one of its time
    GstClockTime max;
    fail_unless_equals_uint64(latency_of(h, &max), 3 * kFrame);
    const Ref<GstElement> hold = part_of(h.element(), "hold");
    int changes = 0;  // of roihold's latency; cudaconv on a GPU has its own
    for (const Ref<GstMessage> &message : take_messages(h.element(), GST_MESSAGE_LATENCY))
      changes += GST_MESSAGE_SRC(message.get()) == GST_OBJECT(hold.get());
    fail_unless_equals_int(changes, 2);
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < count; i++) {
      const bool in_force = i / each >= 3 && i / each <= 6;
      frames.check(i, in_force ? std::vector<Region>{kFace} : std::vector<Region>());
    }
    fail_unless_equals_uint64(stat(h, "frames-early"), 0);
  }
}
GST_END_TEST;

// Where time does not go on, frames do not wait for ever: all have the same time, or a short clip starts again and
// again. Those that wait leave with frame 128 of those that are not later, again and again.
GST_START_TEST(time_that_stands_still_ends_the_wait) {
  for (const int length : {1, 4}) {
    Stream h(settings(5 * kFrame, 0));
    Several frames{h};
    for (int i = 0; i < 400; i++) frames.push(i % length * kFrame, false);
    fail_unless(frames.left() >= 200);  // a GPU still filters some of those that left
    fail_unless_equals_uint64(stat(h, "frames-early"), 3 * (128 + length) - 1);
    fail_unless(h.take_one(GST_MESSAGE_WARNING).text.find("timestamps do not go on") == 0);
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 400; i++) frames.check(i, {});
  }
}
GST_END_TEST;

// A clip that starts again without a flush, and is shorter than the look-ahead. Regions count in stream time.
GST_START_TEST(a_clip_that_starts_again_ends_the_wait) {
  for (const int length : {4, 12}) {
    Stream h(settings(10 * kFrame, 0));
    Several frames{h};
    for (int round = 0; round < 4; round++) {
      if (round > 0) {
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        segment.base = round * length * kFrame;
        push_event(h, gst_event_new_segment(&segment));
      }
      for (int i = 0; i < length; i++) {
        frames.push(i * kFrame, round == 1 && i == 2);
        if (i == 0) fail_unless_equals_int(frames.left(), round * length);
      }
    }
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 4 * length; i++)
      frames.check(i, i >= length && i % length <= 2 ? std::vector<Region>{kFace} : std::vector<Region>());
  }
}
GST_END_TEST;

// Objects of another stream are others, also where its segment is equal: none moves to them.
GST_START_TEST(objects_of_another_stream_do_not_move) {
  const Region other = {18, 8, 16, 12};
  for (const char *interpolate : {"", " interpolate=true"}) {
    Stream h(settings(5 * kFrame, 5 * kFrame) + interpolate);
    Several frames{h};
    for (int i = 0; i < 20; i++) {
      if (i == 10) {
        push_event(h, gst_event_new_stream_start("other"));
        send_segment(h, 0);
      }
      frames.push(i * kFrame, i == 8 || i == 12, i == 8 ? kFace : other);
    }
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 20; i++) {
      std::vector<Region> regions;
      if (i >= 3 && i <= 17) regions.push_back(i < 10 ? kFace : other);
      frames.check(i, regions);
    }
  }
}
GST_END_TEST;

// ---- Latency, allocation --------------------------------------------------------------------------------------------

GST_START_TEST(the_time_is_reported_as_latency) {
  const GstVideoInfo info = info_of("GRAY8");
  Harness h(settings(2 * kFrame, 0));
  gst_harness_set_upstream_latency(h.get(), GST_SECOND);
  GstClockTime max;
  fail_unless_equals_uint64(latency_of(h, &max), GST_SECOND + 2 * kFrame);  // also before there are caps
  take_messages(h.element(), GST_MESSAGE_ANY);
  h.set_caps(info);
  send_segment(h, 0);
  const auto check = [&](const std::string &properties, GstClockTime latency, bool changes) {
    take_messages(h.element(), GST_MESSAGE_ANY);
    h.set(properties);
    Random random = seeded();
    const Ref<GstBuffer> frame = random_frame(info, random);
    static GstClockTime time = 0;
    GST_BUFFER_PTS(frame.get()) = time += kFrame;
    fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
    fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_LATENCY).size(), changes);
    fail_unless_equals_uint64(latency_of(h, &max), GST_SECOND + latency);
    fail_unless(!GST_CLOCK_TIME_IS_VALID(max) || max >= GST_SECOND + latency);
  };
  check("lookahead=80000000", 2 * kFrame, false);
  check("lookahead=80000001", 3 * kFrame, true);  // a frame leaves when the next one has come
  check("lookahead=120000000", 3 * kFrame, false);
  check("lookahead=0", 0, true);
  // Without a framerate, a frame may wait for one that comes some time after the look-ahead.
  GstVideoInfo any_rate = info;
  any_rate.fps_n = 0;
  h.set_caps(any_rate);
  send_segment(h, 0);
  check("lookahead=80000000", 2 * kFrame + GST_SECOND / 30, true);
  // Three frames, each of a fraction of a nanosecond more than 33366666.
  GstVideoInfo ntsc = info;
  ntsc.fps_n = 30000;
  ntsc.fps_d = 1001;
  h.set_caps(ntsc);
  send_segment(h, 0);
  check("lookahead=100100000", 100100000, false);
  check("lookahead=100100001", 133466667, true);
  // Never more than 292 years, to which sinks add times of their own.
  Harness longest(settings(G_MAXUINT64, 0), info);
  for (const guint64 upstream : {guint64{GST_SECOND}, guint64{G_MAXINT64}}) {
    gst_harness_set_upstream_latency(longest.get(), upstream);
    fail_unless_equals_uint64(latency_of(longest, &max), G_MAXINT64);
  }
}
GST_END_TEST;

// An element may be taken out of a pipeline that plays, and put into another one.
GST_START_TEST(the_latency_is_announced_again_after_a_restart) {
  Between between("roi-meta=true frames-in-flight=1 lookahead=0", info_of("GRAY8"));
  const std::tuple<const char *, GstState, size_t> starts[] = {
      {"lookahead=0", GST_STATE_NULL, 0},        {"lookahead=80000000", GST_STATE_NULL, 1},
      {"lookahead=80000000", GST_STATE_NULL, 1}, {"lookahead=80000000", GST_STATE_READY, 1},
      {"lookahead=0", GST_STATE_READY, 1},       {"lookahead=0", GST_STATE_READY, 0},
  };
  for (const auto &[properties, state, messages] : starts) {
    gst_element_set_state(between.element.get(), state);
    set_properties(between.element.get(), properties);
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    fail_unless_equals_int(take_messages(between.element.get(), GST_MESSAGE_LATENCY).size(), messages);
  }
}
GST_END_TEST;

GST_START_TEST(upstream_is_asked_for_more_buffers) {
  const GstVideoInfo info = info_of("GRAY8");
  const auto buffers = [&](const std::string &properties, guint downstream = 0) {
    Harness h(properties);
    const Ref<GstBufferPool> offered(gst_video_buffer_pool_new());
    if (downstream) offer_pool(h, offered.get(), 0, downstream);
    h.set_caps(info);
    const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
    const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
    fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
    fail_unless(gst_query_get_n_allocation_pools(query.get()) == 1);
    GstBufferPool *pool;
    guint min, max;
    gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, nullptr, &min, &max);
    gst_object_unref(pool);
    fail_unless_equals_int(max, 0);
    return min;
  };
  fail_unless(buffers(settings(10 * kFrame, 0)) >= buffers(settings(0, 0)) + 10);
  // Buffers of frames that are filtered in place also wait downstream, such as in another cudaconv.
  fail_unless(buffers(settings(10 * kFrame, 0), 9) >= buffers(settings(10 * kFrame, 0)) + 9);
  fail_unless(buffers(settings(0, 0), 9) >= 9);
  fail_unless_equals_int(buffers(kFilter, 9), buffers(kFilter));
}
GST_END_TEST;

// ---- What ends the wait ---------------------------------------------------------------------------------------------

GST_START_TEST(other_caps_and_segments_let_frames_go_and_flushes_do_not) {
  Stream h(settings(5 * kFrame, 0));
  Clip clip(h);
  const auto push_three = [&](int first) {
    for (int i = 0; i < 3; i++) clip.push((first + i) * kFrame, {{8 + i, 8, 16, 12}});
    fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  };
  const auto check_three = [&](int first) {
    for (int i = 0; i < 3; i++) clip.check((first + i) * kFrame, (first + i) * kFrame, (first + 2) * kFrame);
  };
  push_three(0);
  send_segment(h, 0);  // the same one
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  GstSegment other;
  gst_segment_init(&other, GST_FORMAT_TIME);
  other.start = 100 * kFrame;  // has stream time 0
  push_event(h, gst_event_new_segment(&other));
  check_three(0);
  push_three(100);
  push_event(h, gst_event_new_caps(Ref<GstCaps>(gst_video_info_to_caps(&h.info)).get()));  // the same ones
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  h.set_caps(info_of("RGBA"));
  check_three(100);
  h.set_caps(h.info);
  push_three(110);
  h.settle();  // a DRAIN query: upstream wants its buffers
  check_three(110);
  push_three(120);
  push_event(h, gst_event_new_flush_start());
  push_event(h, gst_event_new_flush_stop(TRUE));
  send_segment(h, 200 * kFrame);
  push_three(200);
  push_event(h, gst_event_new_stream_group_done(1));  // comes before the end
  check_three(200);
  push_three(210);
  push_event(h, gst_event_new_eos());
  check_three(210);
  fail_unless_equals_uint64(stat(h, "frames-early"), 0);
}
GST_END_TEST;

// An element that is replaced upstream makes the events of the stream arrive again. Frames go on waiting. The stream
// may have got other flags.
GST_START_TEST(a_new_element_upstream_lets_no_frame_go) {
  Stream h(settings(2 * kFrame, kFrame));
  Clip clip(h);
  for (int i = 0; i < 8; i++) {
    for (const GstEventType type : {GST_EVENT_STREAM_START, GST_EVENT_CAPS, GST_EVENT_SEGMENT}) {
      const Ref<GstEvent> event(gst_pad_get_sticky_event(h.get()->srcpad, type, 0));
      GstEvent *again = gst_event_copy(event.get());
      if (type == GST_EVENT_STREAM_START && i == 4) gst_event_set_stream_flags(again, GST_STREAM_FLAG_SELECT);
      push_event(h, again);
    }
    clip.push(i * kFrame, {{8 + i, 8, 16, 12}});
    if (i >= 2) clip.check((i - 2) * kFrame, MAX(i - 3, 0) * kFrame, i * kFrame);
    fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  }
  // Another stream begins, then its next run.
  push_event(h, gst_event_new_stream_start("other"));
  for (int i = 6; i < 8; i++) clip.check(i * kFrame, (i - 1) * kFrame, 7 * kFrame);
  clip.push(8 * kFrame, {{8, 8, 16, 12}});
  GstEvent *run = gst_event_new_stream_start("other");
  gst_event_set_group_id(run, 1);
  push_event(h, run);
  clip.check(8 * kFrame, 7 * kFrame, 8 * kFrame);
}
GST_END_TEST;

// The stream times of frames stay as they are where a demuxer brings its segment up to date, in another running time,
// at another speed, and where the end becomes known. Frames go on waiting.
GST_START_TEST(a_segment_of_the_same_stream_times_lets_no_frame_go) {
  Stream h(settings(2 * kFrame, kFrame));
  Clip clip(h);
  Order order(h);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  for (int i = 0; i < 9; i++) {
    if (i == 1) segment.start = segment.time = kFrame;
    if (i == 2) segment.base = kFrame;
    if (i == 3) segment.offset = kFrame;
    if (i == 4) segment.rate = 2;
    if (i == 5) segment.flags = GST_SEGMENT_FLAG_TRICKMODE;
    if (i == 6) segment.stop = 100 * kFrame;
    if (i == 7) segment.duration = 100 * kFrame;
    push_event(h, gst_event_new_segment(&segment));
    if (i == 1) order.take();
    clip.push(i * kFrame, {{8 + i, 8, 16, 12}});
    if (i >= 2) {
      clip.check((i - 2) * kFrame, MAX(i - 3, 0) * kFrame, i * kFrame);
      assert_same_text(order.take(), "buffer segment ");
    }
    fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  }
  // Where the stream turns round, other frames follow.
  segment.rate = -1;
  push_event(h, gst_event_new_segment(&segment));
  for (int i = 7; i < 9; i++) clip.check(i * kFrame, (i - 1) * kFrame, 8 * kFrame);
}
GST_END_TEST;

// A seek without a flush, back to the start: the next frame is not late, although its segment still waits.
GST_START_TEST(the_first_frame_of_a_segment_that_waits_is_not_late) {
  Stream h(settings(5 * kFrame, 0));
  Random random = seeded();
  const Region face = {8, 8, 16, 12};
  std::vector<Ref<GstBuffer>> sources;
  size_t next = 0;
  const auto check = [&] { check_layers(sources[next++].get(), h.pull().get(), h.info, {{kFilter, {{face}}}}); };
  for (int i = 0; i < 40; i++) {
    if (i == 20) {
      while (next < 15) check();
      gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_OVERFLOW, 1, -1, 14 * kFrame));
      GstSegment segment;
      gst_segment_init(&segment, GST_FORMAT_TIME);
      segment.base = 20 * kFrame;
      push_event(h, gst_event_new_segment(&segment));
      fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
    }
    sources.push_back(random_frame(h.info, random));
    GST_BUFFER_PTS(sources.back().get()) = i % 20 * kFrame;
    add_roi(sources.back().get(), "face", face.x, face.y, face.width, face.height);
    fail_unless_equals_int(h.push(sources.back().get()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  while (next < sources.size()) check();
}
GST_END_TEST;

// A flush drops caps that wait, since those of the source pad may name another memory. Tags stay.
GST_START_TEST(a_flush_leaves_the_source_pad_its_caps) {
  Stream h(settings(5 * kFrame, 0));
  Clip clip(h);
  clip.push(0, {});
  const Ref<GstPad> source(gst_element_get_static_pad(h.element(), "src"));
  const Ref<GstEvent> caps(gst_pad_get_sticky_event(source.get(), GST_EVENT_CAPS, 0));
  fail_unless(caps != nullptr);
  push_event(h, gst_event_new_caps(Ref<GstCaps>(gst_video_info_to_caps(&h.info)).get()));  // the same ones
  push_event(h, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "title", nullptr)));
  push_event(h, gst_event_new_flush_start());
  push_event(h, gst_event_new_flush_stop(TRUE));
  const Ref<GstEvent> left(gst_pad_get_sticky_event(source.get(), GST_EVENT_CAPS, 0));
  fail_unless(left == caps);
  const Ref<GstPad> of_hold(gst_element_get_static_pad(part_of(h.element(), "hold").get(), "src"));
  const Ref<GstEvent> tag(gst_pad_get_sticky_event(of_hold.get(), GST_EVENT_TAG, 0));
  fail_unless(tag != nullptr);
}
GST_END_TEST;

GST_START_TEST(events_keep_their_places_between_frames) {
  Stream h(settings(2 * kFrame, 0));
  h.settle();
  Order order(h);
  Clip clip(h);
  const auto custom = [](GstEventType type) {
    return gst_event_new_custom(type, gst_structure_new_empty("application/x-test"));
  };
  clip.push(0, {});
  push_event(h, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "title", nullptr)));
  clip.push(kFrame, {});
  push_event(h, custom(GST_EVENT_CUSTOM_DOWNSTREAM));
  assert_same_text(order.take(), "");
  push_event(h, custom(GST_EVENT_CUSTOM_DOWNSTREAM_OOB));  // overtakes frames
  assert_same_text(order.take(), "custom-downstream-oob ");
  clip.push(2 * kFrame, {});
  clip.check(0, 0, 2 * kFrame);
  assert_same_text(order.take(), "buffer tag ");
  push_event(h, gst_event_new_gap(3 * kFrame, kFrame));
  clip.push(4 * kFrame, {});
  clip.check(kFrame, kFrame, 3 * kFrame);
  clip.check(2 * kFrame, 2 * kFrame, 4 * kFrame);
  assert_same_text(order.take(), "buffer custom-downstream buffer gap ");
}
GST_END_TEST;

// Decoders send a gap event before the frames that they still hold. The regions of these frames count.
GST_START_TEST(a_gap_event_overtakes_frames_in_a_decoder) {
  Stream h(settings(2 * kFrame, 0));
  h.settle();
  Order order(h);
  Clip clip(h);
  clip.push(0, {});
  clip.push(kFrame, {});
  push_event(h, gst_event_new_gap(3 * kFrame, GST_SECOND));
  assert_same_text(order.take(), "");
  clip.push(2 * kFrame, {{8, 8, 16, 12}});
  clip.push(3 * kFrame + GST_SECOND, {});
  for (int i = 0; i < 3; i++) clip.check(i * kFrame, i * kFrame, (i + 2) * kFrame);
  assert_same_text(order.take(), "buffer buffer gap buffer ");
}
GST_END_TEST;

// Events behind a frame that downstream refuses go on.
GST_START_TEST(events_follow_a_frame_that_is_refused) {
  Stream h(settings(2 * kFrame, 0) + " frames-in-flight=1");
  Clip clip(h);
  clip.push(0, {});
  push_event(h, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "title", nullptr)));
  clip.push(kFrame, {});
  gst_pad_set_active(h.get()->sinkpad, FALSE);
  clip.push(2 * kFrame, {});
  clip.push(3 * kFrame, {});
  h.settle();
  gst_pad_set_active(h.get()->sinkpad, TRUE);
  send_segment(h, GST_SECOND);
  for (int i = 0; i < 4; i++) clip.push(GST_SECOND + i * kFrame, {{8, 8, 16, 12}});
  for (int i = 0; i < 2; i++)
    clip.check(GST_SECOND + i * kFrame, GST_SECOND + i * kFrame, GST_SECOND + (i + 2) * kFrame);
}
GST_END_TEST;

// The next push returns what downstream returned for an earlier frame. Its own frame is not lost.
GST_START_TEST(the_frame_after_a_lost_one_is_a_discontinuity) {
  Stream h(settings(kFrame, 0) + " frames-in-flight=1");
  Random random = seeded();
  const auto push = [&](int i) {
    const Ref<GstBuffer> frame = random_frame(h.info, random);
    GST_BUFFER_PTS(frame.get()) = i * kFrame;
    return h.push(frame.get());
  };
  fail_unless_equals_int(push(0), GST_FLOW_OK);
  gst_pad_set_active(h.get()->sinkpad, FALSE);
  gst_harness_push_event(h.get(), gst_event_new_stream_group_done(1));
  gst_pad_set_active(h.get()->sinkpad, TRUE);
  h.set("mask=identity");
  fail_unless_equals_int(push(1), GST_FLOW_FLUSHING);
  for (int i = 1; i < 3; i++) {
    fail_unless_equals_int(push(i + 1), GST_FLOW_OK);
    const Ref<GstBuffer> out = h.pull();
    fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), i * kFrame);
    fail_unless_equals_int(GST_BUFFER_IS_DISCONT(out.get()), i == 1);
  }
}
GST_END_TEST;

// So is the frame after those that are late when they leave.
GST_START_TEST(the_frame_after_a_late_one_is_a_discontinuity) {
  Stream h(settings(2 * kFrame, 0));
  Clip clip(h);
  for (int i = 0; i < 10; i++) {
    if (i == 5)  // up to here frames are late
      gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1, kFrame, 4 * kFrame));
    clip.push(i * kFrame, {});
  }
  push_event(h, gst_event_new_eos());
  for (const int i : {0, 1, 2, 6, 7, 8, 9}) {
    const Ref<GstBuffer> out = h.pull();
    fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), i * kFrame);
    fail_unless_equals_int(GST_BUFFER_IS_DISCONT(out.get()), i == 6);
  }
  take_messages(h.element(), GST_MESSAGE_ANY);
}
GST_END_TEST;

// Frames before one that cannot be filtered come out, though they are in flight when that one fails.
GST_START_TEST(frames_before_one_that_fails_come_out) {
  const GstVideoInfo info = video_info("RGBA", 320, 240);
  Harness h("mask=dilate size=9 roi-meta=true unmarked=mark lookahead=10000000000", info);
  Random random = seeded();
  std::vector<Ref<GstBuffer>> in;
  for (int i = 0; i < 3; i++) {
    in.push_back(random_frame(info, random));
    GST_BUFFER_PTS(in.back().get()) = i * kFrame;
    fail_unless_equals_int(h.push(in.back().get()), GST_FLOW_OK);
  }
  GstBuffer *const small = gst_buffer_new_allocate(nullptr, 100, nullptr);
  GST_BUFFER_PTS(small) = 3 * kFrame;
  fail_unless_equals_int(gst_harness_push(h.get(), small), GST_FLOW_OK);
  push_event(h, gst_event_new_eos());
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), in.size());
  for (const Ref<GstBuffer> &frame : in) {
    const Ref<GstBuffer> out = h.pull();
    assert_filtered(frame.get(), out.get(), info, "mask=dilate size=9");
  }
  assert_same_text(h.take_one(GST_MESSAGE_ERROR).text,
                   "An input buffer of 100 bytes is too small for its caps: a frame of 320x240 RGBA takes 307200.");
}
GST_END_TEST;

// Downstream refuses a frame that waited until the stream ends. Upstream sends no frame more that would tell it.
// Upstream that has been told with an earlier frame, and goes on, accepts it.
GST_START_TEST(a_frame_that_is_refused_at_the_end_is_an_error) {
  for (const bool told : {false, true})
    for (GstFlowReturn refusal : {GST_FLOW_NOT_LINKED, GST_FLOW_NOT_NEGOTIATED, GST_FLOW_CUSTOM_ERROR, GST_FLOW_ERROR,
                                  GST_FLOW_FLUSHING, GST_FLOW_EOS, GST_FLOW_OK, GST_FLOW_CUSTOM_SUCCESS}) {
      Stream h(settings((told ? 2 : 10) * kFrame, 0) + " frames-in-flight=1");
      gst_pad_add_probe(
          h.get()->sinkpad, GST_PAD_PROBE_TYPE_BUFFER,
          [](GstPad *, GstPadProbeInfo *info, gpointer data) {
            gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
            GST_PAD_PROBE_INFO_FLOW_RETURN(info) = static_cast<GstFlowReturn>(GPOINTER_TO_INT(data));
            return GST_PAD_PROBE_HANDLED;
          },
          GINT_TO_POINTER(refusal), nullptr);
      Clip clip(h);
      bool returned = false;
      for (int i = 0; i < 6; i++) returned |= clip.push(i * kFrame, {}) == refusal;
      fail_unless(refusal >= GST_FLOW_OK || returned == told);
      push_event(h, gst_event_new_eos());
      fail_unless(GST_PAD_IS_EOS(h.get()->sinkpad));
      // An element that returns GST_FLOW_ERROR has posted an error.
      if (!told &&
          (refusal == GST_FLOW_NOT_LINKED || refusal == GST_FLOW_NOT_NEGOTIATED || refusal == GST_FLOW_CUSTOM_ERROR))
        assert_same_text(h.take_one(GST_MESSAGE_ERROR).text, "Internal data stream error.");
    }
}
GST_END_TEST;

// ---- Few buffers ----------------------------------------------------------------------------------------------------

// Upstream has a pool of few buffers and waits for one when all are used. The oldest frame leaves early, with the
// regions that are known. `keeps`: how many buffers upstream never sends.
void send_from_pool(guint size, guint keeps) {
  Stream h(settings(8 * kFrame, 0));
  const Ref<GstBufferPool> pool(gst_buffer_pool_new());
  const Ref<GstCaps> caps(gst_video_info_to_caps(&h.info));
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, caps.get(), static_cast<guint>(GST_VIDEO_INFO_SIZE(&h.info)), size, size);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config));
  fail_unless(gst_buffer_pool_set_active(pool.get(), TRUE));
  constexpr int kFrames = 24;
  std::vector<Ref<GstBuffer>> kept(keeps);
  for (Ref<GstBuffer> &buffer : kept) {
    GstBuffer *acquired;
    fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &acquired, nullptr), GST_FLOW_OK);
    buffer.reset(acquired);
  }
  std::atomic<int> wrong{0};
  std::thread upstream([&] {
    for (int i = 0; i < kFrames; i++) {
      GstBuffer *buffer;
      if (gst_buffer_pool_acquire_buffer(pool.get(), &buffer, nullptr) != GST_FLOW_OK) wrong++;
      gst_buffer_memset(buffer, 0, static_cast<guint8>(100 + i), static_cast<gsize>(-1));
      gst_buffer_memset(buffer, 20 * 48 + 20, 0, 1);  // a dot within the regions
      GST_BUFFER_PTS(buffer) = i * kFrame;
      add_roi(buffer, "face", 16, 16, 10, 10);
      if (gst_harness_push(h.get(), buffer) != GST_FLOW_OK) wrong++;
    }
    push_event(h, gst_event_new_eos());
  });
  for (int i = 0; i < kFrames; i++) {
    const Ref<GstBuffer> out = h.pull();
    fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), i * kFrame);
    GstMapInfo map;
    fail_unless(gst_buffer_map(out.get(), &map, GST_MAP_READ));
    fail_unless(map.data[20 * 48 + 20] > 50, "frame %d is not filtered", i);
    gst_buffer_unmap(out.get(), &map);
  }
  upstream.join();
  fail_unless_equals_int(wrong, 0);
  const guint64 early = stat(h, "frames-early");
  fail_unless(size >= 20 ? early == 0 : early > 0 && early <= kFrames, "%d frames are early", static_cast<int>(early));
  if (early)
    assert_same_text(
        h.take_one(GST_MESSAGE_WARNING).text,
        "upstream has too few buffers for lookahead or interpolate: frames leave early, with the regions known so far");
  kept.clear();
  gst_buffer_pool_set_active(pool.get(), FALSE);
}

GST_START_TEST(frames_leave_early_where_upstream_has_too_few_buffers) {
  for (const guint size : {1u, 2u, 4u, 8u, 20u}) send_from_pool(size, 0);
  send_from_pool(6, 3);
}
GST_END_TEST;

// Like the pool of a camera: who acquires a buffer takes the next frame, and waits for it.
struct CameraPool {
  GstBufferPool parent;
};
struct CameraPoolClass {
  GstBufferPoolClass parent_class;
};
G_DEFINE_TYPE(CameraPool, camera_pool, GST_TYPE_BUFFER_POOL)
std::atomic<int> frames_taken{0};
void camera_pool_class_init(CameraPoolClass *klass) {
  GST_BUFFER_POOL_CLASS(klass)->acquire_buffer = [](GstBufferPool *pool, GstBuffer **buffer,
                                                    GstBufferPoolAcquireParams *params) {
    frames_taken++;
    return GST_BUFFER_POOL_CLASS(camera_pool_parent_class)->acquire_buffer(pool, buffer, params);
  };
}
void camera_pool_init(CameraPool *) {}

GST_START_TEST(the_frames_of_a_slow_camera_are_not_taken) {
  Stream h(settings(5 * kFrame, 0));
  const Ref<GstBufferPool> pool(
      static_cast<GstBufferPool *>(gst_object_ref_sink(g_object_new(camera_pool_get_type(), nullptr))));
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, nullptr, static_cast<guint>(GST_VIDEO_INFO_SIZE(&h.info)), 4, 4);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config) && gst_buffer_pool_set_active(pool.get(), TRUE));
  for (int i = 0; i < 2; i++) {
    GstBuffer *frame;
    fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &frame, nullptr), GST_FLOW_OK);
    GST_BUFFER_PTS(frame) = i * kFrame;
    fail_unless_equals_int(gst_harness_push(h.get(), frame), GST_FLOW_OK);
    g_usleep(700000);
  }
  fail_unless_equals_int(frames_taken, 2);
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < 2; i++) fail_unless_equals_uint64(GST_BUFFER_PTS(h.pull().get()), i * kFrame);
  fail_unless_equals_uint64(stat(h, "frames-early"), 0);
  gst_buffer_pool_set_active(pool.get(), FALSE);
}
GST_END_TEST;

// After a flush the source sends frames that have no pool.
GST_START_TEST(the_pool_of_frames_before_a_flush_does_not_count) {
  Stream h(settings(8 * kFrame, 0));
  const Ref<GstBufferPool> pool(gst_buffer_pool_new());
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, nullptr, static_cast<guint>(GST_VIDEO_INFO_SIZE(&h.info)), 2, 2);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config) && gst_buffer_pool_set_active(pool.get(), TRUE));
  GstBuffer *frame;
  fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &frame, nullptr), GST_FLOW_OK);
  GST_BUFFER_PTS(frame) = 0;
  fail_unless_equals_int(gst_harness_push(h.get(), frame), GST_FLOW_OK);
  push_event(h, gst_event_new_flush_start());
  push_event(h, gst_event_new_flush_stop(TRUE));
  send_segment(h, 0);
  Clip clip(h);
  for (int i = 0; i < 5; i++) clip.push(i * kFrame, {});
  g_usleep(700000);  // the watcher looks
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < 5; i++) clip.check(i * kFrame, i * kFrame, i * kFrame);
  fail_unless_equals_uint64(stat(h, "frames-early"), 0);
  gst_buffer_pool_set_active(pool.get(), FALSE);
}
GST_END_TEST;

// A full queue in another branch can hold up the source for good. After five seconds the oldest frame leaves, even if
// events come all the time.
GST_START_TEST(a_frame_leaves_early_where_nothing_comes) {
  Stream h(settings(5 * kFrame, 0)), with_events(settings(5 * kFrame, 0)), paused(settings(5 * kFrame, 0));
  Clip clip(h), clip_with_events(with_events), clip_of_paused(paused);
  for (Clip *c : {&clip, &clip_with_events})
    for (int i = 0; i < 2; i++) c->push(i * kFrame, {{8 + i, 8, 16, 12}});
  for (int i = 0; i < 7; i++) clip_of_paused.push(i * kFrame, {});
  for (int i = 0; i < 2; i++) clip_of_paused.check(i * kFrame, 0, 0);
  gst_element_set_state(paused.element(), GST_STATE_PAUSED);
  const gint64 late = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
  while (!gst_harness_buffers_in_queue(with_events.get()) && g_get_monotonic_time() < late) {
    push_event(with_events, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty("an-event")));
    g_usleep(50000);
  }
  for (Stream *s : {&h, &with_events}) {
    (s == &h ? clip : clip_with_events).check(0, 0, kFrame);
    const guint64 early = stat(*s, "frames-early");  // the second one, too, where five more seconds have passed
    fail_unless(early == 1 || early == 2);
    assert_same_text(
        s->take_one(GST_MESSAGE_WARNING).text,
        "upstream has sent no frame for five seconds, perhaps because a queue of another branch is full and "
        "smaller than lookahead: frames leave early, with the regions known so far");
  }
  // A pause does not count.
  gst_element_set_state(paused.element(), GST_STATE_PLAYING);
  g_usleep(G_USEC_PER_SEC);
  fail_unless_equals_uint64(stat(paused, "frames-early"), 0);
}
GST_END_TEST;

// A pause waits until each sink has a frame. A queue of the other branch, which is full, holds up the source meanwhile.
GST_START_TEST(a_frame_leaves_early_where_a_pause_waits_for_it) {
  Pipeline pipeline(
      "videotestsrc ! video/x-raw,width=48,height=32,framerate=100/1 ! tee name=t ! queue name=queue "
      "max-size-buffers=30 ! fakesink sync=true t. ! queue ! roihold lookahead=100000000 ! cudaconv roi-meta=true "
      "backend=" +
      std::string(test_backend()) + " ! fakesink sync=true");
  fail_unless(pipeline.go_to(GST_STATE_PLAYING));
  g_object_set(pipeline.element("queue").get(), "max-size-buffers", 2, nullptr);
  g_usleep(G_USEC_PER_SEC);  // until it has only two frames, and all frames behind it wait
  fail_unless(pipeline.go_to(GST_STATE_PAUSED));
  fail_unless(pipeline.go_to(GST_STATE_PLAYING));
}
GST_END_TEST;

// Where a live source sends nothing for a while, frames leave when it would have sent all that they wait for.
GST_START_TEST(frames_of_a_live_source_that_stops_leave_in_time) {
  Stream h(settings(5 * kFrame, 0));
  gst_harness_use_testclock(h.get());
  gst_harness_set_live(h.get(), TRUE);
  gst_harness_set_upstream_latency(h.get(), kFrame);
  GstClockTime max;
  latency_of(h, &max);
  Clip clip(h);
  for (int i = 0; i < 3; i++) clip.push(i * kFrame, {{8 + i, 8, 16, 12}});
  gst_harness_set_time(h.get(), 6 * kFrame);
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  gst_harness_set_time(h.get(), 10 * kFrame);
  for (int i = 0; i < 3; i++) clip.check(i * kFrame, i * kFrame, 2 * kFrame);
  // A frame comes late after all: two of the three frames have left without its regions.
  clip.push(6 * kFrame, {{20, 8, 16, 12}});
  fail_unless_equals_uint64(stat(h, "frames-early"), 2);
  assert_same_text(
      h.take_one(GST_MESSAGE_WARNING).text,
      "frames come later than the latency of upstream allows: frames leave early, with the regions known so far");
}
GST_END_TEST;

// After a restart upstream may be another one, which is not live.
GST_START_TEST(frames_wait_after_a_live_source_was_replaced) {
  Stream h(settings(5 * kFrame, 0));
  gst_harness_use_testclock(h.get());
  gst_harness_set_live(h.get(), TRUE);
  GstClockTime max;
  latency_of(h, &max);
  gst_element_set_state(h.element(), GST_STATE_READY);
  gst_element_set_state(h.element(), GST_STATE_PLAYING);
  h.set_caps(h.info);
  send_segment(h, 0);
  Clip clip(h);
  for (int i = 0; i < 3; i++) clip.push(i * kFrame, {{8 + i, 8, 16, 12}});
  gst_harness_set_time(h.get(), 100 * kFrame);
  g_usleep(G_USEC_PER_SEC / 2);
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < 3; i++) clip.check(i * kFrame, i * kFrame, 2 * kFrame);
}
GST_END_TEST;

// A detector that takes long and does not report it sends all frames late. They wait for the others all the same.
GST_START_TEST(frames_of_a_slow_detector_wait) {
  Stream h(settings(5 * kFrame, 0));
  gst_harness_use_testclock(h.get());
  gst_harness_set_live(h.get(), TRUE);
  GstClockTime max;
  latency_of(h, &max);
  Clip clip(h);
  for (int i = 0; i < 2; i++) {
    gst_harness_set_time(h.get(), (10 + i) * kFrame);
    clip.push(i * kFrame, {{8 + i, 8, 16, 12}});
  }
  g_usleep(G_USEC_PER_SEC / 2);
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  gst_harness_set_time(h.get(), 17 * kFrame);
  for (int i = 0; i < 2; i++) clip.check(i * kFrame, i * kFrame, kFrame);
  fail_unless_equals_uint64(stat(h, "frames-early"), 0);
}
GST_END_TEST;

// After the first one the others leave on time: not one at each look.
GST_START_TEST(many_frames_of_a_live_source_that_stops_leave_in_time) {
  constexpr int kFrames = 20;
  Stream h(settings(2 * kFrames * kFrame, 0));
  gst_harness_use_testclock(h.get());
  gst_harness_set_live(h.get(), TRUE);
  GstClockTime max;
  latency_of(h, &max);
  Clip clip(h);
  for (int i = 0; i < kFrames; i++) clip.push(i * kFrame, {{8 + i, 8, 16, 12}});
  const gint64 start = g_get_monotonic_time();
  gst_harness_set_time(h.get(), 3 * kFrames * kFrame);
  while (gst_harness_buffers_in_queue(h.get()) < kFrames) g_usleep(1000);
  const gint64 took = g_get_monotonic_time() - start;
  fail_unless(took < 5 * G_USEC_PER_SEC / 2, "%d ms", static_cast<int>(took / 1000));
  for (int i = 0; i < kFrames; i++) clip.check(i * kFrame, i * kFrame, kFrames * kFrame);
  fail_unless_equals_uint64(stat(h, "frames-early"), 0);
}
GST_END_TEST;

// Where time jumps back, all frames leave before the one that has come. Its regions are found with the settings that
// it is filtered with, even if these change meanwhile.
GST_START_TEST(settings_change_while_frames_leave_before_a_jump) {
  Stream h(settings(5 * kFrame, 0) + " types=plate");
  Clip clip(h);
  for (int i = 0; i < 3; i++) clip.push(GST_SECOND + i * kFrame, {});
  const auto set = [](GstPad *pad, GstPadProbeInfo *, gpointer) {
    set_properties(GST_ELEMENT(GST_OBJECT_PARENT(pad)), "types=face");
    return GST_PAD_PROBE_REMOVE;
  };
  const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "src"));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, set, nullptr, nullptr);
  clip.push(0, {{8, 8, 16, 12}});
  // A GPU's thread pushes frames some time later, and only then calls the probe.
  for (int i = 0; i < 3; i++) clip.check(GST_SECOND + i * kFrame, GST_SECOND, 2 * GST_SECOND);
  clip.push(kFrame, {{30, 2, 8, 8}});
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < 2; i++) clip.check(i * kFrame, i * kFrame, kFrame);
}
GST_END_TEST;

namespace {

// Sets properties once, when the next frame leaves. The element pushes frames in the thread that brings them.
void set_at_next_frame(Stream &h, const char *properties) {
  const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "src"));
  const auto set = [](GstPad *pad, GstPadProbeInfo *, gpointer properties) {
    set_properties(GST_ELEMENT(GST_OBJECT_PARENT(pad)), static_cast<const char *>(properties));
    return GST_PAD_PROBE_REMOVE;
  };
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, set, const_cast<char *>(properties), nullptr);
}

}  // namespace

// The regions of the frame that has come count for those that leave before it, with their settings.
GST_START_TEST(types_change_while_frames_leave_before_a_jump) {
  Stream h(settings(5 * kFrame, 2 * GST_SECOND) + " types=plate frames-in-flight=1");
  Clip clip(h);
  for (int i = 0; i < 3; i++) clip.push(GST_SECOND + i * kFrame, {});
  set_at_next_frame(h, "types=face");
  clip.push(0, {{8, 8, 16, 12}});
  for (int i = 0; i < 3; i++) clip.check(GST_SECOND + i * kFrame, i ? 0 : GST_SECOND, 2 * GST_SECOND);
}
GST_END_TEST;

// Look-ahead is turned off, and on again while the frames leave that have waited. The regions of those that are left
// count again.
GST_START_TEST(look_ahead_is_turned_on_while_frames_leave) {
  Stream h(settings(3 * kFrame, 0) + " types=plate frames-in-flight=1");
  Clip clip(h);
  for (int i = 0; i < 3; i++)
    clip.push(i * kFrame, i == 2 ? std::vector<Region>{{8, 8, 16, 12}} : std::vector<Region>());
  set_at_next_frame(h, "lookahead=120000000");
  h.set("types=face lookahead=0");
  clip.push(3 * kFrame, {});
  clip.check(0, 0, 0);
  clip.push(4 * kFrame, {});
  clip.check(kFrame, kFrame, 4 * kFrame);
}
GST_END_TEST;

// Where several frames may leave at once, a longer look-ahead holds from the next one on.
GST_START_TEST(look_ahead_is_raised_while_frames_leave) {
  Stream h(settings(3 * kFrame, 0) + " frames-in-flight=1");
  Clip clip(h);
  for (int i = 0; i < 3; i++) clip.push(i * kFrame, {});
  set_at_next_frame(h, "lookahead=1200000000");
  clip.push(20 * kFrame, {});
  clip.check(0, 0, 0);
  clip.push(31 * kFrame, {{8, 8, 16, 12}});
  clip.check(kFrame, kFrame, 31 * kFrame);
  fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
  fail_unless_equals_uint64(stat(h, "frames-early"), 0);
}
GST_END_TEST;

// With interlace-mode=alternate both fields of a frame may have the same time. A region counts that comes with the
// second field of the last frame within the look-ahead.
GST_START_TEST(both_fields_of_a_frame_count) {
  for (const double rate : {1.0, -1.0}) {
    GstVideoInfo info;
    gst_video_info_set_interlaced_format(&info, GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_INTERLACE_MODE_ALTERNATE, 48, 32);
    info.fps_n = 25;
    info.fps_d = 1;
    Harness h("mask=fill frames-in-flight=1 roi-meta=true lookahead=80000000 hold=80000000", info);
    send_segment(h, 0, rate);
    GstClockTime max;
    fail_unless_equals_uint64(latency_of(h, &max), 3 * kFrame);
    for (guint i = 0; i < 7; i++) {
      fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
      GstBuffer *field = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
      gst_buffer_memset(field, 0, 200, GST_VIDEO_INFO_SIZE(&info));
      GST_BUFFER_PTS(field) = 10 * kFrame + i / 2 * (rate < 0 ? -kFrame : kFrame);
      GST_BUFFER_FLAG_SET(field, i % 2 ? GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD : GST_VIDEO_BUFFER_FLAG_TOP_FIELD);
      if (i == 5) add_roi(field, "face", 8, 8, 16, 12);
      fail_unless_equals_int(gst_harness_push(h.get(), field), GST_FLOW_OK);
    }
    fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 2);
    for (int i = 0; i < 2; i++) {
      const Ref<GstBuffer> out = h.pull();
      const FrameBytes field(out.get(), info);
      for (int y = 0; y < 16; y++)
        for (int x = 0; x < 48; x++) {
          const bool hidden = x >= 8 && x < 24 && y >= 4 && y < 10;
          fail_unless_equals_int(field.bytes[y * 48 + x], hidden ? 0 : 200);
        }
    }
  }
}
GST_END_TEST;

// ---- Frames without regions -----------------------------------------------------------------------------------------

GST_START_TEST(frames_without_regions_pass_are_filtered_or_dropped) {
  const Region face = {8, 8, 16, 12};
  for (const char *format : {"GRAY8", "I420"})
    for (const char *more :
         {"", " hold=40000000", " lookahead=40000000", " roi-shape=ellipse", " roi='2,2,5,5'", " roi-grow=0.5"})
      for (const char *unmarked : {"pass", "mark", "drop"}) {
        Stream h(std::string(kFilter) + " roi-meta=true unmarked=" + unmarked + more, format);
        Random random = seeded();
        std::vector<Ref<GstBuffer>> sources;
        for (int i = 0; i < 12; i++) {
          sources.push_back(random_frame(h.info, random));
          GST_BUFFER_PTS(sources[i].get()) = i * kFrame;
          if (i == 3 || i == 7) add_roi(sources[i].get(), "face", face.x, face.y, face.width, face.height);
          if (i == 9) add_roi(sources[i].get(), "face", 100, 100, 5, 5);  // outside the picture
          fail_unless_equals_int(h.push(sources[i].get()), GST_FLOW_OK);
        }
        push_event(h, gst_event_new_eos());
        guint64 marked = 0;
        bool lost = false;
        for (int i = 0; i < 12; i++) {
          const bool held = !strcmp(more, " hold=40000000") && (i == 4 || i == 8);
          const bool ahead = !strcmp(more, " lookahead=40000000") && (i == 2 || i == 6);
          const bool is_marked = i == 3 || i == 7 || held || ahead;
          marked += is_marked;
          if (!is_marked && !strcmp(unmarked, "drop")) {
            lost = true;
            continue;
          }
          Selection selection;
          if (is_marked) selection.region.push_back(!strcmp(more, " roi-grow=0.5") ? Region{0, 2, 32, 24} : face);
          selection.ellipse = !strcmp(more, " roi-shape=ellipse");
          if (!strcmp(more, " roi='2,2,5,5'")) selection.region.push_back({2, 2, 5, 5});
          if (!is_marked && !strcmp(unmarked, "mark")) selection = {{{0, 0, 48, 32}}};
          const Ref<GstBuffer> out = h.pull();
          fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), i * kFrame);
          fail_unless_equals_int(GST_BUFFER_IS_DISCONT(out.get()), lost);
          lost = false;
          check_layers(sources[i].get(), out.get(), h.info, {{kFilter, selection}});
        }
        fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
        fail_unless_equals_uint64(stat(h, "frames-marked"), marked);
        fail_unless_equals_uint64(stat(h, "frames-unmarked"), 12 - marked);
      }
}
GST_END_TEST;

// With roi-invert all of a frame without regions is filtered. A dropped frame leaves a gap.
GST_START_TEST(frames_without_regions_in_other_ways) {
  const GstVideoInfo info = info_of("GRAY8");
  Random random = seeded();
  for (const char *unmarked : {"pass", "mark"}) {
    Harness h(std::string(kFilter) + " roi-meta=true roi-invert=true roi='4,4,8,8' unmarked=" + unmarked, info);
    const Ref<GstBuffer> frame = random_frame(info, random);
    Selection selection = {{{4, 4, 8, 8}}, false, true};
    if (!strcmp(unmarked, "mark")) selection.region.clear();
    check_frame(h, frame.get(), info, kFilter, selection);
  }
  // The rectangle around an ellipse reaches into the picture, which counts. The ellipse itself does in the second frame
  // alone.
  for (const int left : {-10, -9}) {
    Harness h(std::string(kFilter) + " roi-meta=true roi-shape=ellipse unmarked=mark", info);
    const Ref<GstBuffer> frame = random_frame(info, random);
    add_roi(frame.get(), "face", left, left, 12, 12);
    check_frame(h, frame.get(), info, kFilter,
                left == -9 ? Selection{{{left, left, 12, 12}}, true, false} : Selection());
    fail_unless_equals_uint64(stat(h, "frames-marked"), 1);
  }
  Stream h("roi-meta=true unmarked=drop");
  h.settle();
  Order order(h);
  const Ref<GstBuffer> frame = random_frame(info, random);
  GST_BUFFER_PTS(frame.get()) = kFrame;
  fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
  assert_same_text(order.take(), "gap ");
}
GST_END_TEST;

// ---- Counts ---------------------------------------------------------------------------------------------------------

guint64 number(const GstStructure *structure, const char *field) {
  guint64 value = 0;
  fail_unless(gst_structure_get_uint64(structure, field, &value), "there is no %s", field);
  return value;
}

guint64 of_type(const GstStructure *structure, const char *type) {
  const GValue *value = gst_structure_get_value(structure, "regions-by-type");
  fail_unless(value && GST_VALUE_HOLDS_STRUCTURE(value));
  const GstStructure *types = gst_value_get_structure(value);
  return gst_structure_has_field(types, type) ? number(types, type) : 0;
}

GST_START_TEST(regions_are_counted_and_reported) {
  for (const int rate : {1, -1}) {
    Stream h(settings(2 * kFrame, 0) + " report=true types=face,plate", "GRAY8", 0, rate);
    const auto time = [&](int frames) { return 1000 * GST_SECOND + rate * frames * static_cast<gint64>(kFrame); };
    Random random = seeded();
    std::vector<Ref<GstMessage>> reports;
    for (int i = 0; i < 60; i++) {  // 2.4 seconds
      const Ref<GstBuffer> frame = random_frame(h.info, random);
      GST_BUFFER_PTS(frame.get()) = time(i);
      if (i % 10 == 5) add_roi(frame.get(), "face", 4, 4, 8, 8);
      if (i % 20 == 5) add_roi(frame.get(), "plate", 14, 14, 8, 8);
      if (i % 20 == 5) add_roi(frame.get(), "tree", 14, 14, 8, 8);
      fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
    }
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 60; i++) h.pull();
    reports = take_messages(h.element(), GST_MESSAGE_ELEMENT);
    fail_unless_equals_int(reports.size(), 3);
    guint64 marked = 0, unmarked = 0, regions = 0, faces = 0, plates = 0;
    for (size_t i = 0; i < reports.size(); i++) {
      const GstStructure *report = gst_message_get_structure(reports[i].get());
      fail_unless(gst_structure_has_name(report, "roihold-regions"));
      fail_unless_equals_uint64(number(report, "stream-time"), time(25 * static_cast<int>(i)));
      fail_unless_equals_uint64(number(report, "frames-marked") + number(report, "frames-unmarked"), i < 2 ? 25 : 10);
      fail_unless_equals_uint64(number(report, "frames-early"), 0);
      marked += number(report, "frames-marked");
      unmarked += number(report, "frames-unmarked");
      regions += number(report, "regions");
      faces += of_type(report, "face");
      plates += of_type(report, "plate");
    }
    fail_unless_equals_uint64(marked, 6 * 3);
    fail_unless_equals_uint64(unmarked, 60 - 6 * 3);
    fail_unless_equals_uint64(regions, 6 + 3);
    fail_unless_equals_uint64(faces, 6);
    fail_unless_equals_uint64(plates, 3);
    const Ref<GstStructure> stats = h.stats();
    fail_unless_equals_uint64(number(stats.get(), "frames-marked"), marked);
    fail_unless_equals_uint64(number(stats.get(), "regions"), regions);
    fail_unless_equals_uint64(of_type(stats.get(), "face"), faces);
    fail_unless_equals_uint64(of_type(stats.get(), "tree"), 0);
  }
}
GST_END_TEST;

// A report has the regions of its own frames, not those of the frame that comes next.
GST_START_TEST(frames_and_their_regions_are_in_the_same_report) {
  for (const int waiting : {0, 2}) {
    Stream h("mask=gauss5 roi-meta=true report=true lookahead=" + std::to_string(waiting * kFrame));
    Random random = seeded();
    for (int i = 0; i < 60; i++) {
      const Ref<GstBuffer> frame = random_frame(h.info, random);
      GST_BUFFER_PTS(frame.get()) = i * kFrame;
      add_roi(frame.get(), "face", 4, 4, 8, 8);
      fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
    }
    push_event(h, gst_event_new_eos());
    for (int i = 0; i < 60; i++) h.pull();
    const std::vector<Ref<GstMessage>> reports = take_messages(h.element(), GST_MESSAGE_ELEMENT);
    fail_unless_equals_int(reports.size(), 3);
    for (size_t i = 0; i < reports.size(); i++) {
      const GstStructure *report = gst_message_get_structure(reports[i].get());
      fail_unless_equals_uint64(number(report, "frames-marked"), i < 2 ? 25 : 10);
      fail_unless_equals_uint64(number(report, "regions"), i < 2 ? 25 : 10);
      fail_unless_equals_uint64(of_type(report, "face"), i < 2 ? 25 : 10);
    }
  }
}
GST_END_TEST;

// A report counts from its stream-time on, not the frames that left while there were no reports.
GST_START_TEST(reports_begin_when_they_are_turned_on) {
  Stream h("mask=gauss5 roi-meta=true report=false");
  Random random = seeded();
  for (int i = 0; i < 200; i++) {
    if (i % 50 == 0) h.set(i % 100 ? "report=true" : "report=false");  // from 2 to 4 and from 6 to 8 seconds
    const Ref<GstBuffer> frame = random_frame(h.info, random);
    GST_BUFFER_PTS(frame.get()) = i * kFrame;
    add_roi(frame.get(), "face", 4, 4, 8, 8);
    fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
    h.pull();
  }
  push_event(h, gst_event_new_eos());
  const std::vector<Ref<GstMessage>> reports = take_messages(h.element(), GST_MESSAGE_ELEMENT);
  const int seconds[] = {2, 6, 7};  // turned off at 4 seconds, before the frame that ends the report of 3 seconds
  fail_unless_equals_int(reports.size(), std::size(seconds));
  for (size_t i = 0; i < reports.size(); i++) {
    const GstStructure *report = gst_message_get_structure(reports[i].get());
    fail_unless_equals_uint64(number(report, "stream-time"), seconds[i] * GST_SECOND);
    fail_unless_equals_uint64(number(report, "frames-marked"), 25);
    fail_unless_equals_uint64(of_type(report, "face"), 25);
  }
}
GST_END_TEST;

// The last report of a stream is followed by the first one of the next stream.
GST_START_TEST(a_stream_after_the_end_has_its_own_reports) {
  Stream h("mask=gauss5 roi-meta=true report=true");
  Random random = seeded();
  for (const int frames : {30, 25, 10}) {  // of a second and a fifth, a second, and less
    for (int i = 0; i < frames; i++) {
      const Ref<GstBuffer> frame = random_frame(h.info, random);
      GST_BUFFER_PTS(frame.get()) = i * kFrame;
      fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
      h.pull();
    }
    push_event(h, gst_event_new_eos());
    push_event(h, gst_event_new_flush_start());
    push_event(h, gst_event_new_flush_stop(TRUE));
    send_segment(h, 0);
    guint64 time = 0, counted = 0;
    for (const Ref<GstMessage> &message : take_messages(h.element(), GST_MESSAGE_ELEMENT)) {
      const GstStructure *report = gst_message_get_structure(message.get());
      fail_unless_equals_uint64(number(report, "stream-time"), time);
      time += GST_SECOND;
      counted += number(report, "frames-unmarked");
    }
    fail_unless_equals_uint64(counted, frames);
  }
}
GST_END_TEST;

// No report has frames from before and after a seek or in two runs of a loop.
GST_START_TEST(reports_end_where_time_may_jump) {
  const std::function<void(Harness &)> ends[] = {
      [](Harness &h) {
        push_event(h, gst_event_new_flush_start());
        push_event(h, gst_event_new_flush_stop(TRUE));
        send_segment(h, 0);
      },
      [](Harness &h) { send_segment(h, 3 * kFrame); },
      [](Harness &h) { push_event(h, gst_event_new_segment_done(GST_FORMAT_TIME, 10 * kFrame)); }};
  for (const auto &end : ends) {
    Stream h("mask=gauss5 roi-meta=true report=true");
    Random random = seeded();
    for (const int start : {0, 5}) {
      for (int i = start; i < start + 10; i++) {
        const Ref<GstBuffer> frame = random_frame(h.info, random);
        GST_BUFFER_PTS(frame.get()) = i * kFrame;
        fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
        h.pull();
      }
      start ? push_event(h, gst_event_new_eos()) : end(h);
      const std::vector<Ref<GstMessage>> reports = take_messages(h.element(), GST_MESSAGE_ELEMENT);
      fail_unless_equals_int(reports.size(), 1);
      const GstStructure *report = gst_message_get_structure(reports[0].get());
      fail_unless_equals_uint64(number(report, "stream-time"), start * kFrame);
      fail_unless_equals_uint64(number(report, "frames-unmarked"), 10);
    }
  }
}
GST_END_TEST;

// Regions of frames that wait are counted once, though they are looked for again when settings change.
GST_START_TEST(regions_of_frames_that_wait_are_counted_once) {
  Stream h(settings(2 * kFrame, 0));
  Random random = seeded();
  for (int i = 0; i < 4; i++) {
    const Ref<GstBuffer> frame = random_frame(h.info, random);
    GST_BUFFER_PTS(frame.get()) = i * kFrame;
    add_roi(frame.get(), "face", 4, 4, 8, 8);
    fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
    if (i == 1) h.set("types='!plate'");
    if (i == 2) h.set("types=face");
  }
  push_event(h, gst_event_new_eos());
  for (int i = 0; i < 4; i++) h.pull();
  fail_unless_equals_uint64(number(h.stats().get(), "regions"), 4);
  fail_unless_equals_uint64(of_type(h.stats().get(), "face"), 4);
}
GST_END_TEST;

// A detector's labels have blanks. A tracker's labels have numbers. Programs read the counts back from a log, and the
// counts do not grow for ever.
GST_START_TEST(labels_are_counted_under_names_that_can_be_read_back) {
  Stream h("mask=gauss5 roi-meta=true");
  Random random = seeded();
  const auto push = [&](const std::vector<std::string> &labels) {
    const Ref<GstBuffer> frame = random_frame(h.info, random);
    for (const std::string &label : labels) add_roi(frame.get(), label.c_str(), 4, 4, 8, 8);
    fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
    h.pull();
  };
  const auto check = [](const GstStructure *stats, const std::vector<std::pair<const char *, guint64>> &counts) {
    for (const auto &[name, count] : counts) fail_unless_equals_uint64(of_type(stats, name), count);
  };
  push({"cell phone", "cell phone", "", "caf\xe9", "a=b", "x;\"y\"", "person/1", "1st"});
  const std::vector<std::pair<const char *, guint64>> counts = {
      {"cell_phone", 2}, {"_", 1}, {"caf_", 1}, {"a_b", 1}, {"x__y_", 1}, {"person/1", 1}, {"1st", 1}};
  const Ref<GstStructure> stats = h.stats();
  gchar *text = gst_structure_to_string(stats.get());
  const Ref<GstStructure> back(gst_structure_from_string(text, nullptr));
  fail_unless(back != nullptr, "GStreamer cannot read this: %s", text);
  g_free(text);
  check(stats.get(), counts);
  check(back.get(), counts);
  push({"K\xc3\xa4se"});
  check(h.stats().get(), {{"K\xc3\xa4se", 1}});
  for (int i = 0; i < 200; i++) push({"car " + std::to_string(i), "1st"});
  check(h.stats().get(), {{"car_91", 1}, {"car_92", 0}, {"other", 108}, {"1st", 201}, {"cell_phone", 2}});
  fail_unless_equals_uint64(number(h.stats().get(), "regions"), 8 + 1 + 2 * 200);
}
GST_END_TEST;

// ---- Storms ---------------------------------------------------------------------------------------------------------

// Flushes, seeks, settings and gaps at random, while frames wait: those that come out are in order, and hide at least
// their own regions.
GST_START_TEST(frames_wait_in_a_storm) {
  Stream h(settings(4 * kFrame, 2 * kFrame));
  // Data that comes after a flush and before the segment.
  gst_check_add_log_filter("GStreamer", G_LOG_LEVEL_WARNING,
                           g_regex_new("Got data flow before", G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT, nullptr),
                           nullptr, nullptr, nullptr);
  std::atomic<bool> ends{false};
  std::thread user([&] {
    Random random = seeded();
    while (!ends) {
      static const char *const changes[] = {
          "lookahead=160000000", "lookahead=80000000", "lookahead=0",      "hold=0",
          "hold=80000000",       "types=face",         "roi-grow=0",       "report=true",
          "unmarked=mark",       "interpolate=true",   "interpolate=false"};
      h.set(changes[random() % std::size(changes)]);
      if (random() % 32 == 0) {
        gst_harness_push_event(h.get(), gst_event_new_flush_start());
        gst_harness_push_event(h.get(), gst_event_new_flush_stop(FALSE));
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_harness_push_event(h.get(), gst_event_new_segment(&segment));
      }
      g_usleep(random() % 2000);
    }
  });
  int shown = 0, disorder = 0, frames = 0;
  GstClockTime last = 0;
  const auto look = [&] {
    while (const Ref<GstBuffer> out = Ref<GstBuffer>(gst_harness_try_pull(h.get()))) {
      frames++;
      disorder += GST_BUFFER_PTS(out.get()) < last;
      last = GST_BUFFER_PTS(out.get());
      GstMapInfo map;
      gst_buffer_map(out.get(), &map, GST_MAP_READ);
      shown += map.data[20 * 48 + 20] < 50;
      gst_buffer_unmap(out.get(), &map);
    }
  };
  Random random = seeded();
  const int kFrames = 1500 * number_from_environment("CUDACONV_TEST_STORM", 1);
  for (int i = 0; i < kFrames; i++) {
    Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&h.info), nullptr));
    gst_buffer_memset(frame.get(), 0, 200, static_cast<gsize>(-1));
    gst_buffer_memset(frame.get(), 20 * 48 + 20, 0, 1);
    GST_BUFFER_PTS(frame.get()) = i * kFrame;
    add_roi(frame.get(), "face", 16, 16, 10, 10);
    if (random() % 2) gst_buffer_ref(frame.get());
    const bool shared = GST_MINI_OBJECT_REFCOUNT_VALUE(frame.get()) > 1;
    GstBuffer *const raw = frame.get();
    // Without a pause, frames that fail would keep the end of a flush from its turn.
    if (gst_harness_push(h.get(), frame.release()) == GST_FLOW_FLUSHING) g_usleep(1000);
    if (shared) gst_buffer_unref(raw);
    look();
    if (random() % 50 == 0) gst_harness_push_event(h.get(), gst_event_new_gap(i * kFrame, kFrame));
    if (random() % 60 == 0)
      gst_harness_push_event(h.get(), gst_event_new_caps(Ref<GstCaps>(gst_video_info_to_caps(&h.info)).get()));
  }
  ends = true;
  user.join();
  gst_harness_push_event(h.get(), gst_event_new_eos());
  look();
  g_print("%d of %d frames came out\n", frames, kFrames);
  fail_unless(frames > 0);
  fail_unless_equals_int(shown, 0);
  fail_unless_equals_int(disorder, 0);
  take_messages(h.element(), GST_MESSAGE_ANY);
  gst_check_clear_log_filter();
}
GST_END_TEST;

// Upstream pushes while the element starts and stops, and nothing hangs.
GST_START_TEST(an_element_stops_while_frames_wait) {
  for (int i = 0; i < 20; i++) {
    Pipeline pipeline("videotestsrc is-live=" + std::string(i % 2 ? "true" : "false") +
                      " ! video/x-raw,width=48,height=32,framerate=100/1 ! roihold lookahead=50000000 ! cudaconv "
                      "name=f roi-meta=true backend=" +
                      test_backend() + " ! fakesink sync=" + (i % 2 ? "true" : "false"));
    fail_unless(pipeline.go_to(GST_STATE_PLAYING));
    g_usleep(1000 * i);
    if (i % 3 == 0) fail_unless(pipeline.go_to(GST_STATE_READY) && pipeline.go_to(GST_STATE_PLAYING));
  }
}
GST_END_TEST;

// A live pipeline: no frame comes too late for its sink, since the latency is reported.
GST_START_TEST(a_live_sink_gets_its_frames_in_time) {
  Pipeline pipeline(
      "videotestsrc is-live=true num-buffers=40 ! video/x-raw,width=48,height=32,framerate=50/1 ! roihold "
      "lookahead=200000000 ! cudaconv qos=false roi-meta=true backend=" +
      std::string(test_backend()) + " ! fakesink name=sink sync=true qos=true max-lateness=60000000");
  fail_unless(pipeline.go_to(GST_STATE_PLAYING));
  assert_same_text(pipeline.wait_for_end(), "");
  GstStructure *stats;
  g_object_get(pipeline.element("sink").get(), "stats", &stats, nullptr);
  guint64 dropped, rendered;
  fail_unless(
      gst_structure_get(stats, "dropped", G_TYPE_UINT64, &dropped, "rendered", G_TYPE_UINT64, &rendered, nullptr));
  gst_structure_free(stats);
  fail_unless(rendered + dropped == 40 && rendered >= 20, "%d frames are rendered and %d dropped",
              static_cast<int>(rendered), static_cast<int>(dropped));
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("lookahead");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, what_a_detector_misses_is_covered_from_both_sides);
  tcase_add_test(tc, times_of_any_length);
  tcase_add_test(tc, a_stream_that_plays_backwards);
  tcase_add_test(tc, a_stream_without_timestamps_that_plays_backwards);
  tcase_add_test(tc, a_stream_without_timestamps_that_its_source_has_slowed);
  tcase_add_test(tc, a_stream_that_its_source_has_turned_round);
  tcase_add_test(tc, regions_of_late_frames_are_looked_at);
  tcase_add_test(tc, times_that_are_no_times);
  tcase_add_test(tc, times_that_are_not_in_order);
  tcase_add_test(tc, settings_change_while_frames_wait);
  tcase_add_test(tc, types_change_while_frames_wait);
  tcase_add_test(tc, types_change_where_frames_of_one_time_have_equal_regions);
  tcase_add_test(tc, types_change_before_time_steps_back);
  tcase_add_test(tc, frames_that_wait_are_not_copied);
  tcase_add_test(tc, frames_of_one_time_all_count);
  tcase_add_test(tc, time_that_stands_still_ends_the_wait);
  tcase_add_test(tc, a_clip_that_starts_again_ends_the_wait);
  tcase_add_test(tc, objects_of_another_stream_do_not_move);
  tcase_add_test(tc, the_time_is_reported_as_latency);
  tcase_add_test(tc, the_latency_is_announced_again_after_a_restart);
  tcase_add_test(tc, upstream_is_asked_for_more_buffers);
  tcase_add_test(tc, other_caps_and_segments_let_frames_go_and_flushes_do_not);
  tcase_add_test(tc, a_new_element_upstream_lets_no_frame_go);
  tcase_add_test(tc, a_segment_of_the_same_stream_times_lets_no_frame_go);
  tcase_add_test(tc, the_first_frame_of_a_segment_that_waits_is_not_late);
  tcase_add_test(tc, a_flush_leaves_the_source_pad_its_caps);
  tcase_add_test(tc, events_keep_their_places_between_frames);
  tcase_add_test(tc, a_gap_event_overtakes_frames_in_a_decoder);
  tcase_add_test(tc, events_follow_a_frame_that_is_refused);
  tcase_add_test(tc, the_frame_after_a_lost_one_is_a_discontinuity);
  tcase_add_test(tc, the_frame_after_a_late_one_is_a_discontinuity);
  tcase_add_test(tc, frames_before_one_that_fails_come_out);
  tcase_add_test(tc, a_frame_that_is_refused_at_the_end_is_an_error);
  tcase_add_test(tc, frames_leave_early_where_upstream_has_too_few_buffers);
  tcase_add_test(tc, the_frames_of_a_slow_camera_are_not_taken);
  tcase_add_test(tc, the_pool_of_frames_before_a_flush_does_not_count);
  tcase_add_test(tc, a_frame_leaves_early_where_nothing_comes);
  tcase_add_test(tc, a_frame_leaves_early_where_a_pause_waits_for_it);
  tcase_add_test(tc, frames_of_a_live_source_that_stops_leave_in_time);
  tcase_add_test(tc, frames_wait_after_a_live_source_was_replaced);
  tcase_add_test(tc, frames_of_a_slow_detector_wait);
  tcase_add_test(tc, many_frames_of_a_live_source_that_stops_leave_in_time);
  tcase_add_test(tc, settings_change_while_frames_leave_before_a_jump);
  tcase_add_test(tc, types_change_while_frames_leave_before_a_jump);
  tcase_add_test(tc, look_ahead_is_turned_on_while_frames_leave);
  tcase_add_test(tc, look_ahead_is_raised_while_frames_leave);
  tcase_add_test(tc, both_fields_of_a_frame_count);
  tcase_add_test(tc, frames_without_regions_pass_are_filtered_or_dropped);
  tcase_add_test(tc, frames_without_regions_in_other_ways);
  tcase_add_test(tc, regions_are_counted_and_reported);
  tcase_add_test(tc, frames_and_their_regions_are_in_the_same_report);
  tcase_add_test(tc, reports_begin_when_they_are_turned_on);
  tcase_add_test(tc, a_stream_after_the_end_has_its_own_reports);
  tcase_add_test(tc, reports_end_where_time_may_jump);
  tcase_add_test(tc, regions_of_frames_that_wait_are_counted_once);
  tcase_add_test(tc, labels_are_counted_under_names_that_can_be_read_back);
  tcase_add_test(tc, frames_wait_in_a_storm);
  tcase_add_test(tc, an_element_stops_while_frames_wait);
  tcase_add_test(tc, a_live_sink_gets_its_frames_in_time);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "lookahead", make_suite, !strcmp(test_backend(), "cuda"));
}
