// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Several frames on the GPU at once: nothing is lost, nothing overtakes, and what is held back is reported. The CPU
// holds nothing back, and keeps to the same rules.
#include <algorithm>
#include <cstring>
#include <utility>

#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

bool on_gpu() {
  return !strcmp(test_backend(), "cuda");
}

// How many of `n` frames in flight are held back.
guint held_of(guint n) {
  return on_gpu() ? n - 1 : 0;
}

GstClockTime time_of(int frame) {
  return gst_util_uint64_scale(frame, GST_SECOND, 30);
}

guint waiting(Harness &h) {
  return gst_harness_buffers_in_queue(h.get());
}

// Frames on their way through an element, which come out in the order that they went in.
class Stream {
 public:
  explicit Stream(Harness &h, const GstVideoInfo &info = small()) : h_(h), info_(info) {}

  // `properties` are those that the frame is to be filtered with.
  GstFlowReturn push_one(const std::string &properties, guint flags = 0) {
    Ref<GstBuffer> in = random_frame(info_, random_);
    GST_BUFFER_PTS(in.get()) = time_of(next_++);
    GST_BUFFER_DURATION(in.get()) = time_of(1);
    GST_BUFFER_FLAG_SET(in.get(), flags);
    const GstFlowReturn flow = h_.push(in.get());
    if (flow == GST_FLOW_OK) in_.push_back({std::move(in), info_, properties});
    return flow;
  }
  void push(const std::string &properties, int n) {
    for (int i = 0; i < n; i++) fail_unless_equals_int(push_one(properties), GST_FLOW_OK);
  }
  void change(const GstVideoInfo &info) {
    info_ = info;
    h_.set_caps(info);
  }

  // Takes what has come out and fails the test unless it is what is due. Returns the last one.
  Ref<GstBuffer> check(guint n) {
    fail_unless_equals_int(waiting(h_), n);
    Ref<GstBuffer> out;
    for (guint i = 0; i < n; i++) {
      out.reset(gst_harness_pull(h_.get()));
      fail_unless(!in_.empty(), "more frames than went in");
      const Sent sent = std::move(in_.front());
      in_.erase(in_.begin());
      fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), GST_BUFFER_PTS(sent.buffer.get()));
      fail_unless_equals_uint64(GST_BUFFER_DURATION(out.get()), GST_BUFFER_DURATION(sent.buffer.get()));
      assert_filtered(sent.buffer.get(), out.get(), sent.info, sent.properties);
      // Nobody holds the input any longer, but identity's output may be it.
      if (out.get() != sent.buffer.get()) ASSERT_BUFFER_REFCOUNT(sent.buffer.get(), "input", 1);
    }
    return out;
  }
  size_t missing() const { return in_.size(); }
  void forget() { in_.clear(); }

 private:
  struct Sent {
    Ref<GstBuffer> buffer;
    GstVideoInfo info;
    std::string properties;
  };
  Harness &h_;
  GstVideoInfo info_;
  Random random_ = seeded();
  int next_ = 0;
  std::vector<Sent> in_;
};

std::string in_flight(guint n) {
  return "frames-in-flight=" + std::to_string(n);
}

GST_START_TEST(a_hundred_frames_keep_their_order_and_their_bytes) {
  for (guint n : {1u, 2u, 4u, 16u}) {
    Harness h("mask=sobel " + in_flight(n), small());
    Stream stream(h);
    for (guint i = 1; i <= 100; i++) {
      stream.push("mask=sobel", 1);
      stream.check(waiting(h));
      fail_unless_equals_int(stream.missing(), std::min(i, held_of(n)));
    }
    fail_unless_equals_int(stream.missing(), held_of(n));
    push_event(h, gst_event_new_eos());
    stream.check(held_of(n));
    fail_unless_equals_uint64(stat(h, "frames"), 100);
  }
}
GST_END_TEST;

GST_START_TEST(by_default_frames_are_held_where_the_pipeline_is_not_live) {
  for (bool live : {true, false}) {
    Harness h("mask=gauss5");
    gst_harness_set_live(h.get(), live);
    h.set_caps(small());
    Stream stream(h);
    stream.push("mask=gauss5", 10);
    const size_t held = 10 - waiting(h);
    fail_unless_equals_int(held > 0, on_gpu() && !live);
    push_event(h, gst_event_new_eos());
    stream.check(10);
  }
}
GST_END_TEST;

GST_START_TEST(latency_is_reported_and_its_change_announced) {
  const GstClockTime frame = GST_SECOND / 30, upstream = 20 * GST_MSECOND;
  for (guint n : {1u, 3u}) {
    for (bool live : {true, false}) {
      Harness h(in_flight(n));
      gst_harness_set_live(h.get(), live);
      gst_harness_set_upstream_latency(h.get(), upstream);
      take_messages(h.element(), GST_MESSAGE_ANY);
      h.set_caps(small());
      fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_LATENCY).size(), held_of(n) ? 1 : 0);
      fail_unless_equals_uint64(gst_harness_query_latency(h.get()), upstream + held_of(n) * frame);
      // Another framerate, none, and no frames that are held.
      GstVideoInfo info = small();
      info.fps_n = 60;
      h.set_caps(info);
      fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_LATENCY).size(), held_of(n) ? 1 : 0);
      fail_unless_equals_uint64(gst_harness_query_latency(h.get()), upstream + held_of(n) * (GST_SECOND / 60));
      info.fps_n = 0;
      h.set_caps(info);
      fail_unless_equals_uint64(gst_harness_query_latency(h.get()), upstream);
      h.set_caps(small());
      Stream stream(h);
      stream.push("", 4);
      take_messages(h.element(), GST_MESSAGE_ANY);
      h.set("mask=identity");
      stream.push("mask=identity", 1);
      fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_LATENCY).size(), held_of(n) ? 1 : 0);
      fail_unless_equals_uint64(gst_harness_query_latency(h.get()), upstream);
      stream.check(5);
    }
  }
  // By default it depends on whether the pipeline is live, and may turn out late.
  for (bool live : {true, false}) {
    Harness h("");
    gst_harness_set_live(h.get(), live);
    h.set_caps(small());
    fail_unless_equals_int(gst_harness_query_latency(h.get()) > 0, on_gpu() && !live);
    gst_harness_set_live(h.get(), !live);
    fail_unless_equals_int(gst_harness_query_latency(h.get()) > 0, on_gpu() && live);
    Stream stream(h);
    stream.push("", 6);
    push_event(h, gst_event_new_eos());
    stream.check(6);
  }
}
GST_END_TEST;

GST_START_TEST(frames_come_out_before_the_event_that_follows_them) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  Order order(h);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  const auto expect = [&](const char *what) {
    const std::string came_out = order.take();
    assert_same_text(came_out, what);
  };
  stream.push("", 2);
  push_event(h, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "Blur", nullptr)));
  expect("buffer buffer tag ");
  stream.push("", 3);
  push_event(h, gst_event_new_gap(GST_SECOND, GST_SECOND));
  expect("buffer buffer buffer gap ");
  stream.push("", 1);
  push_event(h, gst_event_new_segment(&segment));
  expect("buffer segment ");
  stream.push("", 2);
  push_event(h, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty("marker")));
  expect("buffer buffer custom-downstream ");
  stream.push("", 2);
  h.set_caps(video_info("NV12", 36, 20));
  expect("buffer buffer caps segment ");
  h.set_caps(small());
  order.take();
  stream.push("", 2);
  push_event(h, gst_event_new_eos());
  expect("buffer buffer eos ");
  stream.check(12);
}
GST_END_TEST;

GST_START_TEST(a_flush_drops_what_is_in_flight) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  for (int round = 0; round < 3; round++) {
    stream.push("", 6);
    stream.check(6 - held_of(4));
    Random random = seeded();
    push_event(h, gst_event_new_flush_start());
    fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_FLUSHING);
    push_event(h, gst_event_new_flush_stop(TRUE));
    fail_unless_equals_int(waiting(h), 0);
    stream.forget();
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    push_event(h, gst_event_new_segment(&segment));
    fail_unless_equals_int(waiting(h), 0);
  }
  stream.push("", 2);
  push_event(h, gst_event_new_eos());
  stream.check(2);
}
GST_END_TEST;

GST_START_TEST(an_element_stops_with_frames_in_flight) {
  Harness h(in_flight(4), small());
  for (int round = 0; round < 3; round++) {
    Random random = seeded();
    std::vector<Ref<GstBuffer>> in;
    for (int i = 0; i < 5; i++) {
      in.push_back(random_frame(small(), random));
      fail_unless_equals_int(h.push(in.back().get()), GST_FLOW_OK);
    }
    fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
    for (const Ref<GstBuffer> &buffer : in) ASSERT_BUFFER_REFCOUNT(buffer.get(), "in", 1);
    fail_unless_equals_int(waiting(h), 5 - held_of(4));
    while (waiting(h)) gst_buffer_unref(gst_harness_pull(h.get()));
    fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
    h.set_caps(video_info("RGBA", 8, 8));
    h.set_caps(small());
  }
}
GST_END_TEST;

GST_START_TEST(caps_change_with_frames_in_flight) {
  Harness h("mask=log5 " + in_flight(3));
  Stream stream(h);
  for (const GstVideoInfo &info : {small(), video_info("RGBA", 33, 17), video_info("P010_10LE", 16, 16), small()}) {
    stream.change(info);
    stream.push("mask=log5", 5);
  }
  push_event(h, gst_event_new_eos());
  stream.check(20);
}
GST_END_TEST;

GST_START_TEST(downstream_may_ask_for_other_buffers_with_frames_in_flight) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  for (int i = 0; i < 4; i++) {
    stream.push("", 3);
    fail_unless(gst_pad_push_event(h.get()->sinkpad, gst_event_new_reconfigure()));
  }
  push_event(h, gst_event_new_eos());
  stream.check(12);
}
GST_END_TEST;

GST_START_TEST(upstream_gets_its_buffers_back_when_it_asks) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  const Ref<GstCaps> caps(gst_video_info_to_caps(&small()));
  for (GstQuery *asked : {gst_query_new_drain(), gst_query_new_allocation(caps.get(), TRUE)}) {
    const Ref<GstQuery> query(asked);
    stream.push("", 3);
    gst_pad_peer_query(h.get()->srcpad, query.get());
    stream.check(3);
  }
}
GST_END_TEST;

GST_START_TEST(frames_in_flight_keep_the_settings_that_they_began_with) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  const char *masks[] = {"mask=gauss5",   "mask=sobel",    "mask=identity", "mask=dilate", "mask=gauss7 border=wrap",
                         "mask=identity", "mask=identity", "mask=open",     "mask=median", "mask=box3"};
  for (const char *mask : masks) {
    h.set(std::string("border=replicate ") + mask);
    stream.push(mask, 1);
  }
  push_event(h, gst_event_new_eos());
  stream.check(std::size(masks));
}
GST_END_TEST;

GST_START_TEST(a_discontinuity_stays_with_its_frame) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  for (int i = 0; i < 12; i++)
    fail_unless_equals_int(stream.push_one("", i == 6 ? GST_BUFFER_FLAG_DISCONT : 0), GST_FLOW_OK);
  // A frame that comes too late is dropped, and the next one is a discontinuity.
  fail_unless(gst_harness_push_upstream_event(
      h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 0, time_of(12) + GST_MSECOND)));
  Random random = seeded();
  const Ref<GstBuffer> late = random_frame(small(), random);
  GST_BUFFER_PTS(late.get()) = time_of(11);
  fail_unless_equals_int(h.push(late.get()), GST_FLOW_OK);
  // A DISCONT makes everything before it come out, and so does a frame that is dropped.
  fail_unless_equals_int(waiting(h), 12);
  for (int i = 0; i < 12; i++) {
    const Ref<GstBuffer> out(gst_harness_pull(h.get()));
    fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), time_of(i));
    if (i) fail_unless_equals_int(GST_BUFFER_IS_DISCONT(out.get()), i == 6);
  }
  stream.forget();
  // The QoS event's time is over for the second one from here.
  fail_unless_equals_int(stream.push_one(""), GST_FLOW_OK);
  fail_unless_equals_int(stream.push_one(""), GST_FLOW_OK);
  push_event(h, gst_event_new_eos());
  fail_unless_equals_int(waiting(h), 1);
  const Ref<GstBuffer> next(gst_harness_pull(h.get()));
  fail_unless_equals_uint64(GST_BUFFER_PTS(next.get()), time_of(13));
  fail_unless(GST_BUFFER_IS_DISCONT(next.get()));
}
GST_END_TEST;

// Whatever happens in between, each frame comes out once, in its place, with the settings that it came with.
GST_START_TEST(anything_may_happen_between_frames) {
  const std::vector<GstVideoInfo> infos = {small(), video_info("RGBA", 9, 7), video_info("GRAY8", 40, 5)};
  const char *masks[] = {"mask=gauss3", "mask=sobel", "mask=identity", "mask=dilate", "mask=median"};
  Random random = seeded();
  for (guint n : {1u, 2u, 3u, 5u}) {
    Harness h(std::string(masks[0]) + " " + in_flight(n));
    Stream stream(h);
    stream.change(infos[0]);
    const Ref<GstCaps> caps(gst_video_info_to_caps(&infos[0]));
    const char *mask = masks[0];
    guint frames = 0;
    for (int i = 0; i < 200; i++) {
      switch (random() % 16) {
        case 0:
          mask = masks[random() % std::size(masks)];
          h.set(mask);
          break;
        case 1:
          stream.change(infos[random() % infos.size()]);
          break;
        case 2:
          gst_pad_push_event(h.get()->sinkpad, gst_event_new_reconfigure());
          break;
        case 3:
          push_event(h, gst_event_new_gap(0, GST_SECOND));
          break;
        case 4: {
          const Ref<GstQuery> query(random() % 2 ? gst_query_new_drain() : gst_query_new_allocation(caps.get(), FALSE));
          gst_pad_peer_query(h.get()->srcpad, query.get());
          break;
        }
        case 5:
          gst_harness_query_latency(h.get());
          break;
        default:
          fail_unless_equals_int(stream.push_one(mask, random() % 8 ? 0 : GST_BUFFER_FLAG_DISCONT), GST_FLOW_OK);
          frames++;
      }
    }
    push_event(h, gst_event_new_eos());
    stream.check(frames);
  }
}
GST_END_TEST;

// Input buffers from the pool that the element proposes.
GST_START_TEST(memory_of_the_proposed_pool_is_never_staged) {
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Harness h("mask=gauss5 method=constant " + in_flight(3), info);
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  GstBufferPool *proposed = nullptr;
  gst_query_parse_nth_allocation_pool(query.get(), 0, &proposed, nullptr, nullptr, nullptr);
  const Ref<GstBufferPool> pool(proposed);
  fail_unless(gst_buffer_pool_set_active(pool.get(), TRUE));
  Random random = seeded();
  std::vector<Ref<GstBuffer>> copies;
  for (int i = 0; i < 12; i++) {
    GstBuffer *buffer = nullptr;
    fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &buffer, nullptr), GST_FLOW_OK);
    copies.push_back(random_frame(info, random));
    const FrameBytes frame(copies.back().get(), info);
    gst_buffer_fill(buffer, 0, frame.bytes.data(), frame.bytes.size());
    const Ref<GstBuffer> owned(buffer);
    fail_unless_equals_int(h.push(buffer), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  for (const Ref<GstBuffer> &copy : copies) {
    const Ref<GstBuffer> out(gst_harness_pull(h.get()));
    assert_filtered(copy.get(), out.get(), info, "mask=gauss5");
  }
  fail_unless_equals_uint64(stat(h, "bytes-uploaded"), on_gpu() ? 12 * 256 * 172 * 3 / 2 : 0);
  fail_unless_equals_uint64(stat(h, "bytes-downloaded"), on_gpu() ? 12 * 256 * 172 * 3 / 2 : 0);
  fail_unless_equals_uint64(stat(h, "bytes-staged"), 0);
  fail_unless(gst_buffer_pool_set_active(pool.get(), FALSE));
}
GST_END_TEST;

// Sources and decoders configure the pool once more.
GST_START_TEST(a_source_that_takes_the_proposed_pool_is_never_staged) {
  const std::string line = std::string("videotestsrc num-buffers=8 ! video/x-raw,format=NV12,width=64,height=48 ! ") +
                           "cudaconv name=c mask=box3 backend=" + test_backend() + " ! fakesink";
  Pipeline pipeline(line);
  pipeline.go_to(GST_STATE_PLAYING);
  const std::string why = pipeline.wait_for_end();
  assert_same_text(why, "");
  const Ref<GstElement> element = pipeline.element("c");
  GstStructure *stats = nullptr;
  g_object_get(element.get(), "stats", &stats, nullptr);
  guint64 frames = 0, uploaded = 0, staged = 1;
  gst_structure_get(stats, "frames", G_TYPE_UINT64, &frames, "bytes-uploaded", G_TYPE_UINT64, &uploaded, "bytes-staged",
                    G_TYPE_UINT64, &staged, nullptr);
  gst_structure_free(stats);
  fail_unless_equals_uint64(frames, 8);
  fail_unless_equals_int(uploaded > 0, on_gpu());
  fail_unless_equals_uint64(staged, 0);
}
GST_END_TEST;

GST_START_TEST(memory_that_comes_round_again_is_staged_no_more) {
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Random random = seeded();
  Harness h("mask=gauss5 method=constant", info);
  {
    const Ref<GstBuffer> in = random_frame(info, random), part(gst_buffer_copy(in.get()));
    for (int i = 0; i < 3; i++) h.filter(in.get());
    const guint64 staged = stat(h, "bytes-staged");
    fail_unless_equals_int(staged > 0, on_gpu());
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, "mask=gauss5");
      const Ref<GstBuffer> same = h.filter(part.get());
      assert_filtered(in.get(), same.get(), info, "mask=gauss5");
    }
    fail_unless_equals_uint64(stat(h, "bytes-staged"), staged);
  }
  // Its memory is gone, and what lies there now is new.
  for (int i = 0; i < 3; i++) {
    const guint64 staged = stat(h, "bytes-staged");
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    fail_unless_equals_int(stat(h, "bytes-staged") > staged, on_gpu());
  }
}
GST_END_TEST;

// Whatever the element, GStreamer and the runtime keep of a frame they have dropped soon after it. What libraries
// allocate once, at any time, is in no more than one of several rounds. The method is that which takes the stand-in the
// least time.
GST_START_TEST(frames_leave_nothing_behind) {
  constexpr int kRounds = 3, kFrames = 100, kWarmUp = 20;
  constexpr size_t kOfAFrame = 12;  // bytes
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  const FrameBytes picture(frame.get(), info);
  for (const char *properties : {"frames-in-flight=4", "frames-in-flight=2 roi='8,8,16,16'"}) {
    for (bool new_memory : {false, true}) {
      Harness h(std::string("mask=box3 method=blocked ") + properties, info);
      const auto filter = [&](int frames) {
        for (int i = 0; i < frames; i++) {
          const Ref<GstBuffer> in(new_memory ? gst_buffer_new_memdup(picture.bytes.data(), picture.bytes.size())
                                             : gst_buffer_copy(frame.get()));
          gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 1, 2, 3, 4);
          fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
          while (GstBuffer *out = gst_harness_try_pull(h.get())) gst_buffer_unref(out);
          h.stats();
        }
      };
      filter(kWarmUp);
      size_t bytes[kRounds + 1] = {heap_bytes()}, least = SIZE_MAX;
      for (int i = 0; i < kRounds; i++) {
        filter(kFrames);
        bytes[i + 1] = heap_bytes();
        least = std::min(least, bytes[i + 1] - std::min(bytes[i], bytes[i + 1]));
      }
      fail_unless(least < kFrames * kOfAFrame, "%s: %zu bytes, then %zu, %zu, %zu", properties, bytes[0], bytes[1],
                  bytes[2], bytes[3]);
    }
  }
}
GST_END_TEST;

// A pool that adds nothing to plain memory gives way to one of pinned memory, and any other does not.
GST_START_TEST(downstreams_pool_is_used_unless_it_is_plain) {
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Random random = seeded();
  for (bool plain : {true, false}) {
    const Ref<GstBufferPool> pool(plain ? gst_video_buffer_pool_new() : new_placed_pool(info, 0));
    Harness h("mask=gauss5 method=constant");
    offer_pool(h, pool.get());
    h.set_caps(info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    const bool replaced = plain && on_gpu();
    fail_unless_equals_int(out->pool == pool.get(), !replaced);
    const guint64 size = on_gpu() ? 256 * 172 * 3 / 2 : 0;
    fail_unless_equals_uint64(stat(h, "bytes-staged"), replaced ? size : 2 * size);
  }
}
GST_END_TEST;

GST_START_TEST(a_pool_of_few_buffers_is_enough) {
  for (guint max : {1u, 2u, 3u}) {
    const Ref<GstBufferPool> pool(new_placed_pool(small(), 0));
    Harness h(in_flight(8));
    offer_pool(h, pool.get(), max);
    h.set_caps(small());
    int out = 0;  // in the right order
    gst_pad_add_probe(
        h.get()->sinkpad, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad *, GstPadProbeInfo *info, gpointer data) {
          int &n = *static_cast<int *>(data);
          if (GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)) == time_of(n)) n++;
          return GST_PAD_PROBE_DROP;
        },
        &out, nullptr);
    Stream stream(h);
    stream.push("", 10);
    fail_unless(out >= 10 - static_cast<int>(max));
    push_event(h, gst_event_new_eos());
    fail_unless_equals_int(out, 10);
  }
  // Upstream's, which waits for its buffers.
  for (guint max : {1u, 2u, 8u}) {
    const Ref<GstBufferPool> pool(new_placed_pool(small(), 0));
    const Ref<GstCaps> caps(gst_video_info_to_caps(&small()));
    GstStructure *config = gst_buffer_pool_get_config(pool.get());
    gst_buffer_pool_config_set_params(config, caps.get(), static_cast<guint>(GST_VIDEO_INFO_SIZE(&small())), 0, max);
    fail_unless(gst_buffer_pool_set_config(pool.get(), config));
    fail_unless(gst_buffer_pool_set_active(pool.get(), TRUE));
    Harness h(in_flight(16), small());
    for (int i = 0; i < 20; i++) {
      GstBuffer *buffer = nullptr;
      fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &buffer, nullptr), GST_FLOW_OK);
      fail_unless_equals_int(gst_harness_push(h.get(), buffer), GST_FLOW_OK);
    }
    push_event(h, gst_event_new_eos());
    fail_unless_equals_int(waiting(h), 20);
    fail_unless(gst_buffer_pool_set_active(pool.get(), FALSE));
  }
}
GST_END_TEST;

GST_START_TEST(elements_side_by_side_keep_their_frames_apart) {
  check_side_by_side({"mask=gauss3 frames-in-flight=2", "mask=sobel frames-in-flight=3",
                      "mask=dilate size=5 frames-in-flight=4",
                      "mask=custom coefficients='1 2 3; 4 5 6; 7 8 9' frames-in-flight=5"});
}
GST_END_TEST;

// Elements in a pipeline of threads, with a seek while frames are in flight.
GST_START_TEST(a_pipeline_seeks_with_frames_in_flight) {
  const std::string line = std::string(
                               "videotestsrc ! video/x-raw,format=I420,width=64,height=48,framerate=30/1 ! "
                               "cudaconv mask=sobel frames-in-flight=4 backend=") +
                           test_backend() +
                           " ! queue ! cudaconv mask=box3 frames-in-flight=3 backend=" + test_backend() +
                           " ! fakesink name=sink sync=false";
  Pipeline pipeline(line);
  struct Seen {
    int frames = 0, disorder = 0;
    GstClockTime next = 0;
  } seen;
  const Ref<GstElement> sink = pipeline.element("sink");
  const Ref<GstPad> pad(gst_element_get_static_pad(sink.get(), "sink"));
  gst_pad_add_probe(
      pad.get(), GST_PAD_PROBE_TYPE_BUFFER,
      [](GstPad *, GstPadProbeInfo *info, gpointer data) {
        Seen *s = static_cast<Seen *>(data);
        const GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
        if (s->frames++ && GST_BUFFER_PTS(buffer) != s->next) s->disorder++;
        s->next = GST_BUFFER_PTS(buffer) + GST_BUFFER_DURATION(buffer);
        return GST_PAD_PROBE_OK;
      },
      &seen, nullptr);
  const Ref<GstBus> bus(gst_element_get_bus(pipeline.get()));
  const auto flags = static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE);
  bool ended = pipeline.go_to(GST_STATE_PAUSED);
  for (int i = 0; i < 5; i++) {
    // In mid-stream, but for the last.
    ended &= pipeline.go_to(GST_STATE_PAUSED);
    ended &= gst_element_seek(pipeline.get(), 1, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, i * GST_SECOND,
                              GST_SEEK_TYPE_SET, (i + 2) * GST_SECOND);
    ended &= pipeline.go_to(GST_STATE_PAUSED);
    while (GstMessage *earlier = gst_bus_pop(bus.get())) gst_message_unref(earlier);
    seen = Seen();
    seen.frames = 1;  // has prerolled
    seen.next = i * GST_SECOND + gst_util_uint64_scale(1, GST_SECOND, 30);
    gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
    if (i < 4)
      g_usleep(2000);
    else
      ended &= pipeline.wait_for_end().empty();
  }
  pipeline.go_to(GST_STATE_NULL);
  fail_unless(ended);
  fail_unless_equals_int(seen.frames, 60);
  fail_unless_equals_int(seen.disorder, 0);
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("flight");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, a_hundred_frames_keep_their_order_and_their_bytes);
  tcase_add_test(tc, by_default_frames_are_held_where_the_pipeline_is_not_live);
  tcase_add_test(tc, latency_is_reported_and_its_change_announced);
  tcase_add_test(tc, frames_come_out_before_the_event_that_follows_them);
  tcase_add_test(tc, a_flush_drops_what_is_in_flight);
  tcase_add_test(tc, an_element_stops_with_frames_in_flight);
  tcase_add_test(tc, caps_change_with_frames_in_flight);
  tcase_add_test(tc, downstream_may_ask_for_other_buffers_with_frames_in_flight);
  tcase_add_test(tc, upstream_gets_its_buffers_back_when_it_asks);
  tcase_add_test(tc, frames_in_flight_keep_the_settings_that_they_began_with);
  tcase_add_test(tc, a_discontinuity_stays_with_its_frame);
  tcase_add_test(tc, anything_may_happen_between_frames);
  tcase_add_test(tc, memory_of_the_proposed_pool_is_never_staged);
  tcase_add_test(tc, a_source_that_takes_the_proposed_pool_is_never_staged);
  tcase_add_test(tc, memory_that_comes_round_again_is_staged_no_more);
  tcase_add_test(tc, frames_leave_nothing_behind);
  tcase_add_test(tc, downstreams_pool_is_used_unless_it_is_plain);
  tcase_add_test(tc, a_pool_of_few_buffers_is_enough);
  tcase_add_test(tc, elements_side_by_side_keep_their_frames_apart);
  tcase_add_test(tc, a_pipeline_seeks_with_frames_in_flight);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "flight", make_suite, !strcmp(test_backend(), "cuda"));
}
