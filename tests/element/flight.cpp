// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests several frames on the GPU at the same time: no frame is lost, overtakes another or is held back. The CPU
// filters one frame at a time, with the same rules.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

bool on_gpu() {
  return !strcmp(test_backend(), "cuda");
}

GstClockTime time_of(int frame) {
  return gst_util_uint64_scale(frame, GST_SECOND, 30);
}

guint waiting(Harness &h) {
  return gst_harness_buffers_in_queue(h.get());
}

// Frames that were pushed into an element. They must come out in the same order.
class Stream {
 public:
  explicit Stream(Harness &h, const GstVideoInfo &info = small()) : h_(h), info_(info) {}

  // Pushes a frame. `properties`: the properties for the expected result.
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

  // Takes the next n frames that come out. Fails the test unless they are the next n pushed frames. Returns the last
  // frame.
  Ref<GstBuffer> check(guint n) {
    Ref<GstBuffer> out;
    for (guint i = 0; i < n; i++) {
      out = h_.pull();
      fail_unless(!in_.empty(), "more frames than went in");
      const Sent sent = std::move(in_.front());
      in_.erase(in_.begin());
      fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), GST_BUFFER_PTS(sent.buffer.get()));
      fail_unless_equals_uint64(GST_BUFFER_DURATION(out.get()), GST_BUFFER_DURATION(sent.buffer.get()));
      assert_filtered(sent.buffer.get(), out.get(), sent.info, sent.properties);
      // The input has no other reference, unless identity passed it through as the output.
      if (out.get() != sent.buffer.get()) ASSERT_BUFFER_REFCOUNT(sent.buffer.get(), "input", 1);
    }
    return out;
  }
  // Like check(), for all pushed frames.
  void check_rest() {
    check(static_cast<guint>(in_.size()));
    fail_unless_equals_int(waiting(h_), 0);
  }
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

// An allocator of memory that cannot be shared or mapped, so it cannot be copied, like protected frames.
struct Unreadable {
  GstAllocator parent;
};
struct UnreadableClass {
  GstAllocatorClass parent;
};
G_DEFINE_TYPE(Unreadable, unreadable, GST_TYPE_ALLOCATOR)
void unreadable_class_init(UnreadableClass *klass) {
  klass->parent.free = [](GstAllocator *, GstMemory *memory) { g_free(memory); };
}
void unreadable_init(Unreadable *allocator) {
  GST_ALLOCATOR(allocator)->mem_type = "unreadable";
  GST_ALLOCATOR(allocator)->mem_map = [](GstMemory *, gsize, GstMapFlags) -> gpointer { return nullptr; };
  GST_ALLOCATOR(allocator)->mem_unmap = [](GstMemory *) {};
}

// In passthrough, a shared buffer that cannot be copied passes without the flag. The next buffer gets the flag.
GST_START_TEST(a_buffer_that_cannot_be_copied_passes) {
  const Ref<GstAllocator> allocator(static_cast<GstAllocator *>(g_object_new(unreadable_get_type(), nullptr)));
  const gsize size = GST_VIDEO_INFO_SIZE(&small());
  Harness h("mask=identity", small());
  Random random = seeded();
  h.filter(random_frame(small(), random).get());
  gst_pad_set_active(h.get()->sinkpad, FALSE);  // refuses a frame
  fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_FLUSHING);
  gst_pad_set_active(h.get()->sinkpad, TRUE);
  const Ref<GstBuffer> shared(gst_buffer_new());
  GstMemory *memory = g_new0(GstMemory, 1);
  gst_memory_init(memory, GST_MEMORY_FLAG_NO_SHARE, allocator.get(), nullptr, size, 0, 0, size);
  gst_buffer_append_memory(shared.get(), memory);
  const Ref<GstBuffer> out = h.filter(shared.get());
  fail_unless(out.get() == shared.get());
  fail_unless(!GST_BUFFER_IS_DISCONT(out.get()));
  fail_unless(GST_BUFFER_IS_DISCONT(h.filter(random_frame(small(), random).get()).get()));
  fail_unless(!GST_BUFFER_IS_DISCONT(h.filter(random_frame(small(), random).get()).get()));
}
GST_END_TEST;

GST_START_TEST(a_hundred_frames_keep_their_order_and_their_bytes) {
  for (guint n : {0u, 1u, 2u, 4u, 16u}) {
    Harness h("mask=sobel " + in_flight(n), small());
    Stream stream(h);
    for (int i = 0; i < 100; i++) {
      stream.push("mask=sobel", 1);
      stream.check(waiting(h));
    }
    stream.check_rest();
    fail_unless_equals_uint64(stat(h, "frames"), 100);
  }
}
GST_END_TEST;

// A frame leaves without waiting for another frame, an event or a query.
GST_START_TEST(a_frame_leaves_whether_another_follows_or_not) {
  for (const char *properties : {"", "frames-in-flight=16"}) {
    for (bool live : {true, false}) {
      Harness h(properties);
      gst_harness_set_live(h.get(), live);
      h.set_caps(small());
      Stream stream(h);
      for (int i = 0; i < 20; i++) {
        stream.push("", 1);
        stream.check(1);
      }
      stream.push("", 3);
      stream.check(3);
    }
  }
}
GST_END_TEST;

struct Latency {
  gboolean live;
  GstClockTime min, max;
};
Latency latency_of(Harness &h) {
  const Ref<GstQuery> query(gst_query_new_latency());
  fail_unless(gst_pad_peer_query(h.get()->sinkpad, query.get()));
  Latency latency;
  gst_query_parse_latency(query.get(), &latency.live, &latency.min, &latency.max);
  return latency;
}

// The minimum latency does not change, since no frame waits for another. The maximum grows by the frames that wait in
// the element while downstream blocks.
GST_START_TEST(latency_is_reported_and_its_change_announced) {
  const GstClockTime frame = GST_SECOND / 30, upstream = 20 * GST_MSECOND;
  for (guint n : {1u, 3u, 16u}) {
    const guint waits = on_gpu() && n > 1 ? n : 0;
    for (bool live : {true, false}) {
      Harness h(in_flight(n));
      gst_harness_set_live(h.get(), live);
      gst_harness_set_upstream_latency(h.get(), upstream);
      // The probe sets upstream's maximum latency; the harness cannot.
      gst_pad_add_probe(
          h.get()->srcpad, GST_PAD_PROBE_TYPE_QUERY_UPSTREAM,
          [](GstPad *, GstPadProbeInfo *info, gpointer) {
            GstQuery *query = GST_PAD_PROBE_INFO_QUERY(info);
            if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY || !(info->type & GST_PAD_PROBE_TYPE_PULL))
              return GST_PAD_PROBE_OK;
            gboolean is_live;
            GstClockTime min;
            gst_query_parse_latency(query, &is_live, &min, nullptr);
            gst_query_set_latency(query, is_live, min, GST_SECOND);
            return GST_PAD_PROBE_OK;
          },
          nullptr, nullptr);
      const auto check = [&](GstClockTime duration) {
        const Latency latency = latency_of(h);
        fail_unless_equals_int(latency.live, live);
        fail_unless_equals_uint64(latency.min, upstream);
        const bool fits = !waits || duration < G_MAXINT64 / waits;
        fail_unless_equals_uint64(latency.max, fits ? GST_SECOND + waits * duration : G_MAXINT64);
      };
      take_messages(h.element(), GST_MESSAGE_ANY);
      h.set_caps(small());
      fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_LATENCY).size(), waits ? 1 : 0);
      check(frame);
      // Cases: another framerate, fields, no framerate, no frames in flight.
      GstVideoInfo info = small();
      info.fps_n = 60;
      h.set_caps(info);
      fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_LATENCY).size(), waits ? 1 : 0);
      check(GST_SECOND / 60);
      GstVideoInfo fields;
      gst_video_info_set_interlaced_format(&fields, GST_VIDEO_FORMAT_NV12, GST_VIDEO_INTERLACE_MODE_ALTERNATE, 34, 18);
      fields.fps_n = 60;  // two buffers a frame
      h.set_caps(fields);
      check(GST_SECOND / 120);
      info.fps_n = 0;
      h.set_caps(info);
      check(0);
      info.fps_n = 1;
      info.fps_d = G_MAXINT;
      h.set_caps(info);
      check(G_MAXINT * GST_SECOND);  // 68 years
      h.set_caps(small());
      Stream stream(h);
      stream.push("", 4);
      take_messages(h.element(), GST_MESSAGE_ANY);
      h.set("mask=identity");
      stream.push("mask=identity", 1);
      fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_LATENCY).size(), waits ? 1 : 0);
      check(0);
      stream.check_rest();
    }
  }
  // An unlimited maximum stays unlimited.
  Harness unlimited(in_flight(3), small());
  fail_unless_equals_uint64(latency_of(unlimited).max, GST_CLOCK_TIME_NONE);
  // If upstream does not answer the query, the element does not answer it.
  Harness h("", small());
  gst_pad_add_probe(
      h.get()->srcpad, GST_PAD_PROBE_TYPE_QUERY_UPSTREAM,
      [](GstPad *, GstPadProbeInfo *, gpointer) { return GST_PAD_PROBE_DROP; }, nullptr, nullptr);
  const Ref<GstQuery> query(gst_query_new_latency());
  fail_if(gst_pad_peer_query(h.get()->sinkpad, query.get()));
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
  stream.check_rest();
}
GST_END_TEST;

GST_START_TEST(a_flush_drops_what_is_in_flight) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  for (int round = 0; round < 3; round++) {
    stream.push("", 6);
    Random random = seeded();
    push_event(h, gst_event_new_flush_start());
    fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_FLUSHING);
    push_event(h, gst_event_new_flush_stop(TRUE));
    stream.check(waiting(h));  // frames that were complete before the flush
    stream.forget();
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    push_event(h, gst_event_new_segment(&segment));
    fail_unless_equals_int(waiting(h), 0);
  }
  stream.push("", 2);
  stream.check_rest();
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
    fail_unless(waiting(h) <= 5);
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
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Harness h(std::string(mask) + " " + in_flight(4), small());
    Stream stream(h);
    for (int i = 0; i < 12; i++)
      fail_unless_equals_int(stream.push_one("", i == 6 ? GST_BUFFER_FLAG_DISCONT : 0), GST_FLOW_OK);
    for (int i = 0; i < 12; i++) {
      const Ref<GstBuffer> out = h.pull();
      fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), time_of(i));
      if (i) fail_unless_equals_int(GST_BUFFER_IS_DISCONT(out.get()), i == 6);
    }
    stream.forget();
    // A frame that comes too late is dropped, and the next one is a discontinuity. The QoS message counts frames
    // filtered and frames dropped.
    take_messages(h.element(), GST_MESSAGE_ANY);
    fail_unless(gst_harness_push_upstream_event(
        h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 0, time_of(12) + GST_MSECOND)));
    Random random = seeded();
    const Ref<GstBuffer> late = random_frame(small(), random);
    GST_BUFFER_PTS(late.get()) = time_of(11);
    fail_unless_equals_int(h.push(late.get()), GST_FLOW_OK);
    if (!strcmp(mask, "mask=gauss5")) {  // passthrough drops nothing
      const std::vector<Ref<GstMessage>> messages = take_messages(h.element(), GST_MESSAGE_QOS);
      fail_unless_equals_int(messages.size(), 1);
      GstFormat format;
      guint64 processed, dropped;
      gst_message_parse_qos_stats(messages[0].get(), &format, &processed, &dropped);
      fail_unless_equals_int(format, GST_FORMAT_BUFFERS);
      fail_unless_equals_uint64(processed, 12);
      fail_unless_equals_uint64(dropped, 1);
      // By the QoS event the first of these frames is too late, the others are not.
      fail_unless_equals_int(stream.push_one(""), GST_FLOW_OK);
      fail_unless_equals_int(stream.push_one(""), GST_FLOW_OK);
      fail_unless_equals_int(stream.push_one(""), GST_FLOW_OK);
      for (int i : {13, 14}) {
        const Ref<GstBuffer> next = h.pull();
        fail_unless_equals_uint64(GST_BUFFER_PTS(next.get()), time_of(i));
        fail_unless_equals_int(GST_BUFFER_IS_DISCONT(next.get()), i == 13);
      }
    }
  }
}
GST_END_TEST;

GST_START_TEST(qos_messages_count_from_the_flush_on) {
  Harness h(in_flight(4), small());
  Stream stream(h);
  stream.push("", 5);
  stream.check_rest();
  push_event(h, gst_event_new_flush_start());
  push_event(h, gst_event_new_flush_stop(TRUE));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  push_event(h, gst_event_new_segment(&segment));
  stream.push("", 2);
  stream.check_rest();
  take_messages(h.element(), GST_MESSAGE_ANY);
  fail_unless(gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 0, time_of(12))));
  fail_unless_equals_int(stream.push_one(""), GST_FLOW_OK);
  const std::vector<Ref<GstMessage>> messages = take_messages(h.element(), GST_MESSAGE_QOS);
  fail_unless_equals_int(messages.size(), 1);
  guint64 processed, dropped;
  gst_message_parse_qos_stats(messages[0].get(), nullptr, &processed, &dropped);
  fail_unless_equals_uint64(processed, 2);
  fail_unless_equals_uint64(dropped, 1);
}
GST_END_TEST;

// A probe on the harness's sink pad, which returns `result` for each buffer from number `first` on.
class Failing {
 public:
  Failing(Harness &h, int first, GstFlowReturn result) : first_(first), result_(result), pad_(h.get()->sinkpad) {
    probe_ = gst_pad_add_probe(
        pad_, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad *, GstPadProbeInfo *info, gpointer data) {
          auto *self = static_cast<Failing *>(data);
          if (self->seen_++ < self->first_) return GST_PAD_PROBE_OK;
          gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
          GST_PAD_PROBE_INFO_FLOW_RETURN(info) = self->result_;
          return GST_PAD_PROBE_HANDLED;
        },
        this, nullptr);
  }
  ~Failing() { gst_pad_remove_probe(pad_, probe_); }
  Failing(const Failing &) = delete;
  int seen() const { return seen_; }

 private:
  const int first_;
  const GstFlowReturn result_;
  GstPad *const pad_;
  gulong probe_;
  std::atomic<int> seen_{0};
};

GST_START_TEST(what_downstream_returns_reaches_upstream_once) {
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    for (GstFlowReturn result : {GST_FLOW_ERROR, GST_FLOW_EOS, GST_FLOW_NOT_LINKED, GST_FLOW_CUSTOM_ERROR}) {
      Harness h(std::string(mask) + " " + in_flight(4), small());
      Stream stream(h);
      {
        Failing failing(h, 3, result);
        int pushed = 0;
        GstFlowReturn flow = GST_FLOW_OK;
        while (flow == GST_FLOW_OK && pushed < 20) {
          flow = stream.push_one(mask);
          pushed++;
          if (pushed == 6) {
            // An event after the error does not hide it, and is not lost.
            push_event(h, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "Blur", nullptr)));
            if (flow == GST_FLOW_OK) flow = stream.push_one(mask);
          }
        }
        fail_unless_equals_int(flow, result);
        // Frames behind the one that failed are not pushed.
        h.settle();
        fail_unless_equals_int(failing.seen(), 4);
        stream.check(3);
        stream.forget();
      }
      // The flow return was for frames in flight. The next frames are filtered, the first with a discontinuity.
      stream.push(mask, 3);
      const Ref<GstBuffer> next = stream.check(1);
      fail_unless(GST_BUFFER_IS_DISCONT(next.get()));
      const Ref<GstBuffer> last = stream.check(2);
      fail_if(GST_BUFFER_IS_DISCONT(last.get()));
    }
  }
}
GST_END_TEST;

// Where upstream has nothing more to send that would return it, it is an error of the element.
GST_START_TEST(what_downstream_returns_for_the_last_frame_is_an_error) {
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    for (GstFlowReturn result : {GST_FLOW_NOT_LINKED, GST_FLOW_NOT_NEGOTIATED, GST_FLOW_ERROR, GST_FLOW_EOS}) {
      Harness h(std::string(mask) + " " + in_flight(4), small());
      Failing failing(h, 0, result);
      Stream stream(h);
      const GstFlowReturn flow = stream.push_one(mask);
      push_event(h, gst_event_new_eos());
      fail_unless_equals_int(failing.seen(), 1);
      if (flow == GST_FLOW_OK && (result == GST_FLOW_NOT_LINKED || result == GST_FLOW_NOT_NEGOTIATED))
        assert_same_text(h.take_one(GST_MESSAGE_ERROR).text, "Internal data stream error.");
      stream.forget();
    }
  }
}
GST_END_TEST;

// A kind of success loses no frame.
GST_START_TEST(downstream_may_return_a_kind_of_success) {
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Harness h(std::string(mask) + " " + in_flight(4), small());
    Failing sink(h, 0, GST_FLOW_CUSTOM_SUCCESS_2);
    Stream stream(h);
    stream.push(mask, 12);
    push_event(h, gst_event_new_eos());
    fail_unless_equals_int(sink.seen(), 12);
  }
}
GST_END_TEST;

// A frame that is dropped because it is late does not hide what downstream has returned for an earlier one.
GST_START_TEST(what_downstream_returns_is_not_hidden_by_dropped_frames) {
  for (GstFlowReturn result : {GST_FLOW_ERROR, GST_FLOW_EOS}) {
    Harness h("qos=true " + in_flight(4), small());
    Failing failing(h, 0, result);
    Random random = seeded();
    const auto push = [&](int i) {
      const Ref<GstBuffer> frame = random_frame(small(), random);
      GST_BUFFER_PTS(frame.get()) = time_of(i);
      return h.push(frame.get());
    };
    GstFlowReturn flow = push(0);
    h.settle();
    fail_unless(
        gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 0, time_of(9))));
    if (flow == GST_FLOW_OK) flow = push(1);
    fail_unless_equals_int(flow, result);
    fail_unless_equals_int(failing.seen(), 1);
  }
}
GST_END_TEST;

// A new segment or stream cancels a pending GST_FLOW_EOS. A later frame still returns other flow returns.
GST_START_TEST(the_end_of_one_segment_is_not_that_of_the_next) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  for (GstFlowReturn result : {GST_FLOW_EOS, GST_FLOW_NOT_LINKED}) {
    for (bool new_stream : {false, true}) {
      Harness h(in_flight(4), small());
      Stream stream(h);
      GstFlowReturn flow = GST_FLOW_OK;
      {
        Failing failing(h, 2, result);
        for (int i = 0; i < 3; i++) flow = stream.push_one("");
        h.settle();
      }
      stream.check(2);
      stream.forget();
      const bool told = flow != GST_FLOW_OK;  // the third push has already returned it
      push_event(h, new_stream ? gst_event_new_stream_start("next") : gst_event_new_segment(&segment));
      const GstFlowReturn expected = result == GST_FLOW_EOS || told ? GST_FLOW_OK : result;
      fail_unless_equals_int(stream.push_one(""), expected);
      stream.push("", 2);
      stream.check_rest();
    }
  }
}
GST_END_TEST;

// Frames in flight keep their order with an empty gap buffer and with serialized queries.
GST_START_TEST(gaps_and_serialized_queries_keep_their_place) {
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Harness h(std::string(mask) + " " + in_flight(4), small());
    std::string order;
    gst_pad_add_probe(
        h.get()->sinkpad,
        static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM |
                                     GST_PAD_PROBE_TYPE_PUSH),
        [](GstPad *, GstPadProbeInfo *info, gpointer data) {
          auto &text = *static_cast<std::string *>(data);
          if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
            GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
            text += gst_buffer_get_size(buffer) ? "frame " : "gap ";
            if (!gst_buffer_get_size(buffer))
              fail_unless(GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_GAP) && GST_BUFFER_PTS(buffer) == 77);
          } else {
            text += "query ";
          }
          return GST_PAD_PROBE_OK;
        },
        &order, nullptr);
    Stream stream(h);
    stream.push(mask, 3);
    GstBuffer *gap = gst_buffer_new();
    GST_BUFFER_FLAG_SET(gap, GST_BUFFER_FLAG_GAP);
    GST_BUFFER_PTS(gap) = 77;
    fail_unless_equals_int(gst_harness_push(h.get(), gap), GST_FLOW_OK);
    stream.push(mask, 2);
    constexpr auto kSerialized =
        static_cast<GstQueryType>(GST_QUERY_MAKE_TYPE(250, GST_QUERY_TYPE_DOWNSTREAM | GST_QUERY_TYPE_SERIALIZED));
    const Ref<GstQuery> query(gst_query_new_custom(kSerialized, gst_structure_new_empty("marker")));
    gst_pad_peer_query(h.get()->srcpad, query.get());
    assert_same_text(order, "frame frame frame gap frame frame query ");
    stream.check(3);
    gst_buffer_unref(gst_harness_pull(h.get()));
    stream.check_rest();
  }
}
GST_END_TEST;

constexpr gint64 kLater = 20 * GST_SECOND;

// Both pads answer with the same position.
gint64 position_of(Harness &h) {
  gint64 source, sink;
  fail_unless(gst_pad_peer_query_position(h.get()->sinkpad, GST_FORMAT_TIME, &source));
  fail_unless(gst_pad_peer_query_position(h.get()->srcpad, GST_FORMAT_TIME, &sink));
  fail_unless_equals_int64(sink, source);
  return source;
}

GST_START_TEST(the_position_is_the_last_frame_that_left) {
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Harness h(std::string(mask) + " " + in_flight(4), small());
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.time = kLater;
    push_event(h, gst_event_new_segment(&segment));
    Stream stream(h);
    for (int i = 1; i <= 4; i++) {
      stream.push(mask, 2);
      h.settle();
      fail_unless_equals_int64(position_of(h), kLater + time_of(2 * i - 1) + time_of(1));
    }
    stream.check_rest();
    // The position in bytes is unknown.
    const Ref<GstQuery> query(gst_query_new_position(GST_FORMAT_BYTES));
    fail_if(gst_pad_peer_query(h.get()->sinkpad, query.get()));
    // A flush resets the position.
    push_event(h, gst_event_new_flush_start());
    push_event(h, gst_event_new_flush_stop(TRUE));
    push_event(h, gst_event_new_segment(&segment));
    fail_unless_equals_int64(position_of(h), kLater);
    segment.time = segment.start = segment.position = kLater;
    push_event(h, gst_event_new_segment(&segment));
    fail_unless_equals_int64(position_of(h), kLater);
    // A frame may end after its segment.
    segment.stop = segment.start + time_of(1) / 2;
    push_event(h, gst_event_new_segment(&segment));
    Random random = seeded();
    const Ref<GstBuffer> last = random_frame(small(), random);
    GST_BUFFER_PTS(last.get()) = segment.start;
    GST_BUFFER_DURATION(last.get()) = time_of(1);
    fail_unless_equals_int(h.push(last.get()), GST_FLOW_OK);
    h.settle();
    fail_unless_equals_int64(position_of(h), kLater + time_of(1) / 2);
  }
}
GST_END_TEST;

// Pushes frames on a separate thread until one is refused.
class Pusher {
 public:
  explicit Pusher(Harness &h)
      : thread_([&h, this] {
          Random random = seeded();
          while ((flow_ = h.push(random_frame(small(), random).get())) == GST_FLOW_OK) pushed_++;
        }) {}
  GstFlowReturn join() {
    thread_.join();
    return flow_;
  }
  int pushed() const { return pushed_; }

 private:
  std::atomic<int> pushed_{0};
  std::atomic<GstFlowReturn> flow_{GST_FLOW_OK};
  std::thread thread_;
};

// The element holds the largest number of frames in flight, and one more frame is in the blocked pad.
GST_START_TEST(a_flush_and_a_stop_work_while_downstream_blocks) {
  for (bool flush : {true, false}) {
    Harness h(in_flight(4), small());
    auto blocked = std::make_unique<Blocked>(h);
    Pusher pusher(h);
    const int most = on_gpu() ? 5 : 0;
    wait_until([&] { return pusher.pushed() >= most; });
    g_usleep(20000);
    fail_unless_equals_int(pusher.pushed(), most);
    if (flush)
      push_event(h, gst_event_new_flush_start());
    else
      fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
    fail_unless_equals_int(pusher.join(), GST_FLOW_FLUSHING);
    blocked.reset();
    if (flush)
      push_event(h, gst_event_new_flush_stop(TRUE));
    else
      fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
    if (!flush) h.set_caps(video_info("RGBA", 8, 8));
    h.set_caps(small());
    while (waiting(h)) gst_buffer_unref(gst_harness_pull(h.get()));
    Stream stream(h);
    stream.push("", 6);
    stream.check_rest();
  }
}
GST_END_TEST;

// A probe of the source pad seeks in the thread that pushes the frame.
GST_START_TEST(a_probe_flushes_while_it_holds_a_frame) {
  for (guint n : {1u, 4u}) {
    Harness h(in_flight(n), small());
    struct Probe {
      Harness &h;
      std::atomic<int> pushed{0};
      std::atomic<bool> flushed{false};
    } probe{h};
    const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "src"));
    const auto flush = [](GstPad *, GstPadProbeInfo *, gpointer data) {
      auto *probe = static_cast<Probe *>(data);
      for (int i = 0; i < 100 && probe->pushed < 3; i++) g_usleep(1000);  // others are in flight, too
      gst_harness_push_event(probe->h.get(), gst_event_new_flush_start());
      gst_harness_push_event(probe->h.get(), gst_event_new_flush_stop(TRUE));
      probe->flushed = true;
      return GST_PAD_PROBE_DROP;
    };
    const gulong id = gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, flush, &probe, nullptr);
    Random random = seeded();
    for (int i = 0; i < (n > 1 && on_gpu() ? 3 : 1); i++) {
      fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_OK);
      probe.pushed++;
    }
    wait_until([&] { return probe.flushed.load(); });
    fail_unless(probe.flushed, "the flush does not end");
    gst_pad_remove_probe(pad.get(), id);
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    push_event(h, gst_event_new_segment(&segment));
    fail_unless_equals_int(waiting(h), 0);
    Stream stream(h);
    stream.push("", 6);
    stream.check_rest();
  }
}
GST_END_TEST;

// A handler of downstream seeks while it holds a frame and the lock of its pad. Caps come meanwhile, for which the
// element asks downstream for buffers.
GST_START_TEST(downstream_flushes_while_caps_wait_for_its_frame) {
  Harness h(in_flight(4), small());
  std::atomic<bool> flushed{false};
  struct Probe {
    Harness &h;
    std::atomic<bool> &flushed;
  } probe{h, flushed};
  const auto flush = [](GstPad *, GstPadProbeInfo *, gpointer data) {
    auto *probe = static_cast<Probe *>(data);
    g_usleep(50000);  // until the caps have come
    gst_harness_push_event(probe->h.get(), gst_event_new_flush_start());
    gst_harness_push_event(probe->h.get(), gst_event_new_flush_stop(TRUE));
    probe->flushed = true;
    return GST_PAD_PROBE_REMOVE;
  };
  gst_pad_add_probe(h.get()->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, flush, &probe, nullptr);
  Random random = seeded();
  fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_OK);
  GstVideoInfo other = small();
  other.fps_n = 7;
  other.fps_d = 1;
  const Ref<GstCaps> caps(gst_video_info_to_caps(&other));
  gst_harness_push_event(h.get(), gst_event_new_caps(caps.get()));
  wait_until([&] { return flushed.load(); });
  fail_unless(flushed, "the flush does not end");
  // The caps count for the frames that follow.
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  push_event(h, gst_event_new_segment(&segment));
  fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_OK);
  h.settle();
  const Ref<GstCaps> now(gst_pad_get_current_caps(h.get()->sinkpad));
  fail_unless(now && gst_caps_is_equal(now.get(), caps.get()));
}
GST_END_TEST;

// The position is the position of the last frame that left, not of frames in flight.
GST_START_TEST(the_position_ignores_frames_in_flight) {
  if (!on_gpu()) return;
  Harness h(in_flight(4), small());
  Stream stream(h);
  stream.push("", 1);
  stream.check(1);
  auto blocked = std::make_unique<Blocked>(h);
  stream.push("", 3);
  fail_unless(position_of(h) <= static_cast<gint64>(time_of(2)));
  blocked.reset();
  stream.check_rest();
}
GST_END_TEST;

// A frame that is dropped for QoS does not wait for frames in flight.
GST_START_TEST(a_frame_that_comes_too_late_waits_for_none) {
  if (!on_gpu()) return;
  Harness h(in_flight(4), small());
  Stream stream(h);
  stream.push("", 1);
  stream.check(1);
  auto blocked = std::make_unique<Blocked>(h);
  stream.push("", 2);
  fail_unless(gst_harness_push_upstream_event(h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 0, time_of(12))));
  Random random = seeded();
  const Ref<GstBuffer> late = random_frame(small(), random);
  GST_BUFFER_PTS(late.get()) = time_of(3);
  std::atomic<bool> dropped{false};
  std::thread pusher([&] {
    h.push(late.get());
    dropped = true;
  });
  wait_until([&] { return dropped.load(); });
  const bool in_time = dropped;
  blocked.reset();
  pusher.join();
  fail_unless(in_time);
  stream.check_rest();
}
GST_END_TEST;

// One frame is in the blocked pad, four are behind it, and one waits for a slot: its push returns the error.
GST_START_TEST(frames_behind_a_refused_one_are_dropped) {
  if (!on_gpu()) return;
  Harness h("mask=median size=7 " + in_flight(4), small());
  Failing failing(h, 0, GST_FLOW_NOT_LINKED);
  auto blocked = std::make_unique<Blocked>(h);
  Pusher pusher(h);
  wait_until([&] { return pusher.pushed() >= 5; });
  g_usleep(50000);
  blocked.reset();
  fail_unless_equals_int(pusher.join(), GST_FLOW_NOT_LINKED);
  h.settle();
  fail_unless_equals_int(failing.seen(), 1);
}
GST_END_TEST;

// With a slow filter, more than two frames in flight would only delay a stop.
GST_START_TEST(no_more_than_two_frames_of_a_slow_filter_are_in_flight) {
  if (!on_gpu()) return;
  const GstVideoInfo info = small();
  Random random = seeded();
  Harness h("mask=median size=7 iterations=12 " + in_flight(4), info);
  for (guint64 i = 0, before = 0; i < 2; i++) {
    h.filter(random_frame(info, random).get());
    const guint64 now = stat(h, "device-time");
    if (now - std::exchange(before, now) <= 20 * GST_MSECOND) return;  // a fast device, perhaps with other work
  }
  auto blocked = std::make_unique<Blocked>(h);
  Pusher pusher(h);
  wait_until([&] { return pusher.pushed() >= 3; });
  g_usleep(500000);  // for a fourth
  const int pushed = pusher.pushed();
  push_event(h, gst_event_new_flush_start());
  pusher.join();
  fail_unless_equals_int(pushed, 3);  // two in flight and one in the blocked pad
}
GST_END_TEST;

// The sink pad's streaming thread may wait for a buffer of an empty pool. A flush or a stop must wake it.
GST_START_TEST(a_flush_and_a_stop_work_while_a_pool_is_empty) {
  for (bool flush : {true, false}) {
    const Ref<GstBufferPool> pool(new_placed_pool(small(), 0));
    Harness h(in_flight(4));
    offer_pool(h, pool.get(), 2);
    h.set_caps(small());
    Pusher pusher(h);  // the harness keeps the output
    wait_until([&] { return waiting(h) >= 2; });
    g_usleep(20000);
    fail_unless_equals_int(waiting(h), 2);
    if (flush)
      push_event(h, gst_event_new_flush_start());
    else
      fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
    fail_unless_equals_int(pusher.join(), GST_FLOW_FLUSHING);
    if (flush)
      push_event(h, gst_event_new_flush_stop(TRUE));
    else
      fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
    while (waiting(h)) gst_buffer_unref(gst_harness_pull(h.get()));
    if (!flush) {
      h.set_caps(video_info("RGBA", 8, 8));
      h.set_caps(small());
    }
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    push_event(h, gst_event_new_segment(&segment));
    Stream stream(h);
    for (int i = 0; i < 4; i++) {
      stream.push("", 1);
      stream.check_rest();
    }
  }
}
GST_END_TEST;

// A flush and a stop wait for at most one pass of the current frame, or a strip of a pass; and for no polygon.
GST_START_TEST(a_flush_and_a_stop_work_during_a_slow_filter) {
#ifdef CUDACONV_TEST_STATIC  // all passes would take the stand-in many minutes
  const GstVideoInfo info = video_info("RGBA", 64, 48);
  constexpr bool kStandin = true;
#else
  const GstVideoInfo info = video_info("RGBA", 640, 480);
  constexpr bool kStandin = false;
#endif
  // Microseconds of the processor, since the machine may do other work. While a GPU filters, the processor only waits.
  const auto now = [] {
    return kStandin || !on_gpu() ? std::clock() * G_USEC_PER_SEC / CLOCKS_PER_SEC : g_get_monotonic_time();
  };
  std::string spikes = "roi-grow=4 roi='";
  for (int i = 0; i < 20000; i++) spikes += std::to_string(i % 64) + "," + (i % 2 ? "-" : "") + "2000 ";
  for (int how = 0; how < 6; how++) {
    Harness h(how < 3 ? "mask=median size=15 iterations=1000" : spikes + "'", info);
    std::atomic<GstFlowReturn> flow{GST_FLOW_OK};
    Random random = seeded();
    const Ref<GstBuffer> in = random_frame(info, random);
    std::thread pusher([&] { flow = h.push(in.get()); });
    g_usleep(100000);
    const gint64 before = now();
    if (how % 3 == 0)
      push_event(h, gst_event_new_flush_start());
    else if (how % 3 == 1)
      fail_unless(gst_element_set_state(h.element(), GST_STATE_NULL) == GST_STATE_CHANGE_SUCCESS);
    else
      fail_unless(gst_pad_set_active(GST_PAD_PEER(h.get()->srcpad), FALSE));
    pusher.join();
    const gint64 took = now() - before;
    fail_unless_equals_int(flow, GST_FLOW_FLUSHING);
    fail_unless(took < 5 * G_USEC_PER_SEC, "it took %d ms", static_cast<int>(took / 1000));
    fail_unless_equals_int(waiting(h), 0);
    ASSERT_BUFFER_REFCOUNT(in.get(), "in", 1);
  }
}
GST_END_TEST;

// Caps, settings, events and queries come in random order. Each frame comes out once, in order, filtered with its
// settings.
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

// Input buffers come from the pool that the element proposes.
GST_START_TEST(memory_of_the_proposed_pool_is_never_staged) {
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Harness h("mask=gauss5 method=blocked " + in_flight(3), info);
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

// Sources and decoders configure the proposed pool again.
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

GST_START_TEST(memory_that_returns_is_no_longer_staged) {
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Random random = seeded();
  Harness h("mask=gauss5 method=blocked", info);
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
  // The memory has been freed: new memory at the same address is staged again.
  for (int i = 0; i < 3; i++) {
    const guint64 staged = stat(h, "bytes-staged");
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    fail_unless_equals_int(stat(h, "bytes-staged") > staged, on_gpu());
  }
}
GST_END_TEST;

// The memory that the element, GStreamer and the runtime keep for a frame is freed soon after. One-time allocations of
// libraries are in one of the rounds only, so the least growth counts. method=blocked is the fastest on the stand-in.
GST_START_TEST(frames_leave_nothing_behind) {
  constexpr int kRounds = 3, kFrames = 100, kWarmUp = 20;
  constexpr size_t kOfAFrame = 12;  // bytes
  const GstVideoInfo info = video_info("NV12", 32, 24);
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

// A pool of pinned memory replaces a pool of plain memory. Any other pool is used.
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

// Pools have a buffer for each frame in flight, and one more for the neighbour.
GST_START_TEST(pools_have_buffers_for_all_frames_in_flight) {
  for (guint n : {1u, 4u}) {
    for (guint max : {0u, 3u}) {
      const guint in_flight_here = on_gpu() && n > 1 ? n : 0;
      const Ref<GstBufferPool> pool(new_placed_pool(small(), 0));
      Harness h(in_flight(n));
      offer_pool(h, pool.get(), max);  // with at least 1 buffer
      h.set_caps(small());
      Random random = seeded();
      h.filter(random_frame(small(), random).get());
      GstStructure *config = gst_buffer_pool_get_config(pool.get());
      guint least;
      gst_buffer_pool_config_get_params(config, nullptr, nullptr, &least, nullptr);
      gst_structure_free(config);
      fail_unless_equals_int(least, max ? std::min(1 + in_flight_here, max) : 1 + in_flight_here);

      const Ref<GstCaps> caps(gst_video_info_to_caps(&small()));
      const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
      fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
      fail_unless_equals_int(gst_query_get_n_allocation_pools(query.get()), 1);
      gst_query_parse_nth_allocation_pool(query.get(), 0, nullptr, nullptr, &least, nullptr);
      fail_unless_equals_int(least, in_flight_here ? in_flight_here + 1 : 0);
    }
  }
}
GST_END_TEST;

GST_START_TEST(a_pool_of_few_buffers_is_enough) {
  for (guint max : {1u, 2u, 3u}) {
    const Ref<GstBufferPool> pool(new_placed_pool(small(), 0));
    Harness h(in_flight(8));
    offer_pool(h, pool.get(), max);
    h.set_caps(small());
    int out = 0;  // frames in the right order
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
    push_event(h, gst_event_new_eos());
    fail_unless_equals_int(out, 10);
  }
  // Upstream's pool has few buffers, too, and upstream waits for them.
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

// An allocator whose memory does not have GStreamer's system type.
struct MarkedAllocator {
  GstAllocator parent;
};
struct MarkedAllocatorClass {
  GstAllocatorClass parent_class;
};
G_DEFINE_TYPE(MarkedAllocator, marked_allocator, GST_TYPE_ALLOCATOR)

struct MarkedMemory {
  GstMemory memory;
  gpointer data;
};

void marked_allocator_class_init(MarkedAllocatorClass *klass) {
  GST_ALLOCATOR_CLASS(klass)->alloc = [](GstAllocator *allocator, gsize size, GstAllocationParams *) {
    auto *self = g_new0(MarkedMemory, 1);
    gst_memory_init(&self->memory, static_cast<GstMemoryFlags>(0), allocator, nullptr, size, 0, 0, size);
    self->data = g_malloc0(size);
    return &self->memory;
  };
  GST_ALLOCATOR_CLASS(klass)->free = [](GstAllocator *, GstMemory *memory) {
    g_free(reinterpret_cast<MarkedMemory *>(memory)->data);
    g_free(memory);
  };
}

void marked_allocator_init(MarkedAllocator *self) {
  GstAllocator *allocator = GST_ALLOCATOR_CAST(self);
  allocator->mem_type = "CudaconvTestMarked";
  allocator->mem_map = [](GstMemory *memory, gsize, GstMapFlags) {
    return reinterpret_cast<MarkedMemory *>(memory)->data;
  };
  allocator->mem_unmap = [](GstMemory *) {};
}

GstAllocator *new_marked_allocator() {
  return GST_ALLOCATOR(gst_object_ref_sink(g_object_new(marked_allocator_get_type(), nullptr)));
}

// The allocator in downstream's answer is used, since downstream may share its memory, for example with other
// processes.
GST_START_TEST(downstreams_allocator_is_used) {
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Random random = seeded();
  for (bool in_pool : {false, true}) {
    Harness h("mask=gauss5 method=constant");
    struct Named {
      Ref<GstAllocator> allocator;
      Ref<GstBufferPool> pool;
    } named = {Ref<GstAllocator>(new_marked_allocator()), nullptr};
    if (in_pool) {
      named.pool.reset(gst_video_buffer_pool_new());
      GstStructure *config = gst_buffer_pool_get_config(named.pool.get());
      const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
      gst_buffer_pool_config_set_params(config, caps.get(), static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), 1, 0);
      gst_buffer_pool_config_set_allocator(config, named.allocator.get(), nullptr);
      fail_unless(gst_buffer_pool_set_config(named.pool.get(), config));
    }
    gst_pad_add_probe(
        h.get()->sinkpad, static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PUSH),
        [](GstPad *, GstPadProbeInfo *probe, gpointer data) {
          GstQuery *query = GST_PAD_PROBE_INFO_QUERY(probe);
          if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return GST_PAD_PROBE_OK;
          const auto *offer = static_cast<Named *>(data);
          if (offer->pool)
            gst_query_add_allocation_pool(query, offer->pool.get(), 0, 1, 0);
          else
            gst_query_add_allocation_param(query, offer->allocator.get(), nullptr);
          return GST_PAD_PROBE_HANDLED;
        },
        &named, nullptr);
    h.set_caps(info);
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, "mask=gauss5");
      fail_unless(gst_buffer_peek_memory(out.get(), 0)->allocator == named.allocator.get());
      if (in_pool) fail_unless(out->pool == named.pool.get());
    }
  }
}
GST_END_TEST;

GST_START_TEST(elements_side_by_side_keep_their_frames_apart) {
  check_side_by_side({"mask=gauss3 frames-in-flight=2", "mask=sobel frames-in-flight=3",
                      "mask=dilate size=5 frames-in-flight=4",
                      "mask=custom coefficients='1 2 3; 4 5 6; 7 8 9' frames-in-flight=5"});
}
GST_END_TEST;

// Elements on several threads of a pipeline, with seeks while frames are in flight.
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
    // All seeks but the first come in mid-stream.
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
  tcase_add_test(tc, a_buffer_that_cannot_be_copied_passes);
  tcase_add_test(tc, a_hundred_frames_keep_their_order_and_their_bytes);
  tcase_add_test(tc, a_frame_leaves_whether_another_follows_or_not);
  tcase_add_test(tc, latency_is_reported_and_its_change_announced);
  tcase_add_test(tc, frames_come_out_before_the_event_that_follows_them);
  tcase_add_test(tc, a_flush_drops_what_is_in_flight);
  tcase_add_test(tc, an_element_stops_with_frames_in_flight);
  tcase_add_test(tc, caps_change_with_frames_in_flight);
  tcase_add_test(tc, downstream_may_ask_for_other_buffers_with_frames_in_flight);
  tcase_add_test(tc, upstream_gets_its_buffers_back_when_it_asks);
  tcase_add_test(tc, frames_in_flight_keep_the_settings_that_they_began_with);
  tcase_add_test(tc, a_discontinuity_stays_with_its_frame);
  tcase_add_test(tc, qos_messages_count_from_the_flush_on);
  tcase_add_test(tc, what_downstream_returns_reaches_upstream_once);
  tcase_add_test(tc, what_downstream_returns_for_the_last_frame_is_an_error);
  tcase_add_test(tc, downstream_may_return_a_kind_of_success);
  tcase_add_test(tc, what_downstream_returns_is_not_hidden_by_dropped_frames);
  tcase_add_test(tc, the_end_of_one_segment_is_not_that_of_the_next);
  tcase_add_test(tc, gaps_and_serialized_queries_keep_their_place);
  tcase_add_test(tc, the_position_is_the_last_frame_that_left);
  tcase_add_test(tc, a_flush_and_a_stop_work_while_downstream_blocks);
  tcase_add_test(tc, a_probe_flushes_while_it_holds_a_frame);
  tcase_add_test(tc, downstream_flushes_while_caps_wait_for_its_frame);
  tcase_add_test(tc, the_position_ignores_frames_in_flight);
  tcase_add_test(tc, a_frame_that_comes_too_late_waits_for_none);
  tcase_add_test(tc, frames_behind_a_refused_one_are_dropped);
  tcase_add_test(tc, no_more_than_two_frames_of_a_slow_filter_are_in_flight);
  tcase_add_test(tc, a_flush_and_a_stop_work_while_a_pool_is_empty);
  tcase_add_test(tc, a_flush_and_a_stop_work_during_a_slow_filter);
  tcase_add_test(tc, anything_may_happen_between_frames);
  tcase_add_test(tc, memory_of_the_proposed_pool_is_never_staged);
  tcase_add_test(tc, a_source_that_takes_the_proposed_pool_is_never_staged);
  tcase_add_test(tc, memory_that_returns_is_no_longer_staged);
  tcase_add_test(tc, frames_leave_nothing_behind);
  tcase_add_test(tc, downstreams_pool_is_used_unless_it_is_plain);
  tcase_add_test(tc, downstreams_allocator_is_used);
  tcase_add_test(tc, pools_have_buffers_for_all_frames_in_flight);
  tcase_add_test(tc, a_pool_of_few_buffers_is_enough);
  tcase_add_test(tc, elements_side_by_side_keep_their_frames_apart);
  tcase_add_test(tc, a_pipeline_seeks_with_frames_in_flight);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "flight", make_suite, !strcmp(test_backend(), "cuda"));
}
