// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests starts and stops of the element, and pads that go inactive and active, while upstream pushes. The pads around
// the element are the test's: no bin holds data back until the element has started.
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "between.h"
#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

// The number of repetitions instead of `n`. It is smaller on the stand-in, which takes long.
int times(int n) {
  return n * number_from_environment("CUDACONV_TEST_STORM", 1) * number_from_environment("CUDACONV_TEST_FRAMES", 500) /
         500;
}

#ifdef CUDACONV_TEST_STATIC
constexpr int kWidth = 80, kHeight = 45, kCloses = 5000;
#else
constexpr int kWidth = 640, kHeight = 360, kCloses = 5;  // a GPU takes long to make a context
#endif

constexpr char kRegions[] = "mask=mosaic size=8 roi-meta=true hold=100000000 roi-scale=0.3";

// What changes: the state of the element, or a pad.
enum class Change { Ready, Null, SinkPad };

void start_while_upstream_pushes(Change change) {
  const GstVideoInfo info = video_info("I420", 64, 48);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  for (int i = 0; i < 40; i++) add_roi(frame.get(), "face", 8 + i % 5, 8 + i / 5, 24, 24);
  Between between(kRegions, info);
  {
    Harness h(kRegions, info);
    between.expected = h.filter(frame.get());
    fail_unless(!same_samples(frame.get(), between.expected.get(), info));
  }
  gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
  std::atomic<bool> ends{false};
  std::thread upstream([&] {
    between.announce();
    while (!ends)
      if (between.push(frame.get()) != GST_FLOW_OK) between.announce();
  });
  std::thread user([&] {
    // Settings that are refused or unused, with warnings that the next start forgets.
    for (guint i = 0; !ends; i++) {
      if (i % 2)
        set_properties(between.element.get(), "mask=custom coefficients='" + std::to_string(i) + " x'");
      else
        set_properties(between.element.get(), "mask=mosaic divisor=" + std::to_string(i / 2 % 2));
      take_messages(between.element.get(), GST_MESSAGE_ANY);
    }
  });
  const Ref<GstPad> pad = between.pad("sink");
  for (int i = 0; i < times(500); i++) {
    g_usleep(i % 16 * 150);
    if (change == Change::SinkPad) {
      gst_pad_set_active(pad.get(), FALSE);
      gst_pad_set_active(pad.get(), TRUE);
    } else {
      gst_element_set_state(between.element.get(), change == Change::Null ? GST_STATE_NULL : GST_STATE_READY);
      gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    }
  }
  const int before = between.frames;
  wait_until([&] { return between.frames > before; });  // the element still filters
  ends = true;
  upstream.join();
  user.join();
  fail_unless(between.frames > before, "no frame comes out any more");
  fail_unless_equals_int(between.wrong, 0);
  take_messages(between.element.get(), GST_MESSAGE_ANY);
}

GST_START_TEST(the_element_starts_while_upstream_pushes) {
  for (const Change change : {Change::Ready, Change::Null, Change::SinkPad}) start_while_upstream_pushes(change);
}
GST_END_TEST;

// The base class forgets caps and segment at each start, after it has called the element's start(). Until then GstPad
// has let upstream in.
struct Early {
  Between between;
  Ref<GstBuffer> frame;
  std::future<GstFlowReturn> flow = {};  // of the frame that comes before the base class has forgotten them
};

void push_early(GstDebugCategory *, GstDebugLevel, const gchar *, const gchar *, gint, GObject *object,
                GstDebugMessage *message, gpointer data) {
  auto *early = static_cast<Early *>(data);
  if (object != G_OBJECT(early->between.element.get()) ||
      !g_str_has_prefix(gst_debug_message_get(message), "have_same_caps "))
    return;
  GST_OBJECT_UNLOCK(object);  // which the base class has locked
  early->flow = std::async(std::launch::async, [early] {
    early->between.announce();
    return early->between.push(early->frame.get());
  });
  early->flow.wait_for(std::chrono::milliseconds(100));
  GST_OBJECT_LOCK(object);
}

GST_START_TEST(the_start_forgets_nothing_that_has_come_meanwhile) {
  const GstVideoInfo info = video_info("GRAY8", 16, 16);
  Random random = seeded();
  Early early = {{"mask=gauss5", info}, random_frame(info, random)};
  {
    Harness h("mask=gauss5", info);
    early.between.expected = h.filter(early.frame.get());
  }
  gst_debug_remove_log_function(gst_debug_log_default);
  gst_debug_add_log_function(push_early, &early, nullptr);
  gst_debug_set_threshold_for_name("basetransform", GST_LEVEL_DEBUG);
  gst_element_set_state(early.between.element.get(), GST_STATE_PLAYING);
  gst_debug_unset_threshold_for_name("basetransform");
  gst_debug_remove_log_function(push_early);
  gst_debug_add_log_function(gst_debug_log_default, nullptr, nullptr);
  if (!early.flow.valid()) {
    g_printerr("SKIP: the base class does not log its start\n");
    return;
  }
  fail_unless_equals_int(early.flow.get(), GST_FLOW_OK);
  fail_unless_equals_int(early.between.push(early.frame.get()), GST_FLOW_OK);
  early.between.end();
  fail_unless_equals_int(early.between.frames, 2);
  fail_unless_equals_int(early.between.wrong, 0);
}
GST_END_TEST;

// A start that fails releases upstream, with GST_FLOW_FLUSHING.
GST_START_TEST(a_start_that_fails_keeps_nobody_waiting) {
  const GstVideoInfo info = video_info("GRAY8", 16, 16);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  Between between("mask=gauss5 backend=cpu", info);
  fail_unless(gst_element_set_state(between.element.get(), GST_STATE_READY) == GST_STATE_CHANGE_SUCCESS);
  // The index of a GPU that no machine has.
  set_properties(between.element.get(), "backend=cuda cuda-device-id=1000000");
  std::atomic<bool> ends{false};
  std::thread upstream([&] {
    while (!ends) {
      between.announce();
      between.push(frame.get());
    }
  });
  for (int i = 0; i < 50 || !between.count(GST_FLOW_FLUSHING); i++)
    fail_unless(gst_element_set_state(between.element.get(), GST_STATE_PAUSED) == GST_STATE_CHANGE_FAILURE);
  ends = true;
  upstream.join();
  fail_unless_equals_int(between.frames, 0);
  fail_unless_equals_int(between.count(GST_FLOW_ERROR), 0);
  take_messages(between.element.get(), GST_MESSAGE_ANY);
}
GST_END_TEST;

// An element upstream may still be active when this one has stopped, and query it.
GST_START_TEST(a_stopped_element_answers_serialized_queries) {
  const GstVideoInfo info = video_info("GRAY8", 16, 16);
  Between between("mask=gauss5", info);
  for (const GstState state : {GST_STATE_NULL, GST_STATE_READY, GST_STATE_PLAYING, GST_STATE_READY}) {
    gst_element_set_state(between.element.get(), state);
    if (state == GST_STATE_PLAYING) continue;
    std::promise<void> answered;
    std::thread upstream([&, pad = between.pad("sink")] {
      const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
      const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
      gst_pad_query(pad.get(), query.get());
      answered.set_value();
    });
    const bool in_time = answered.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    in_time ? upstream.join() : upstream.detach();
    fail_unless(in_time, "in %s a query waits", gst_element_state_get_name(state));
  }
}
GST_END_TEST;

// The element may give its device up while a neighbour asks for it.
GST_START_TEST(a_neighbour_asks_for_the_device_while_it_is_given_up) {
  Between between("mask=gauss5", video_info("GRAY8", 16, 16));
  std::atomic<bool> ends{false};
  std::vector<std::thread> neighbours;
  for (int i = 0; i < 3; i++)
    neighbours.emplace_back([&, pad = between.pad("sink")] {
      while (!ends) {
        const Ref<GstQuery> query(gst_query_new_custom(
            GST_QUERY_CUSTOM,
            gst_structure_new("application/x-cudaconv-device", "device-id", G_TYPE_INT, -2, nullptr)));
        gst_pad_query(pad.get(), query.get());
      }
    });
  for (int i = 0; i < kCloses; i++)
    for (const GstState state : {GST_STATE_READY, GST_STATE_NULL}) gst_element_set_state(between.element.get(), state);
  ends = true;
  for (std::thread &neighbour : neighbours) neighbour.join();
}
GST_END_TEST;

// While the source pad is inactive, the element flushes. This is not an error.
GST_START_TEST(an_inactive_source_pad_is_no_error) {
  const GstVideoInfo info = video_info("GRAY8", 16, 16);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Between between(mask, info);
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    fail_unless_equals_int(between.push(frame.get()), GST_FLOW_OK);
    const Ref<GstPad> pad = between.pad("src");
    // GstPad marks a pad before it tells the element that the pad becomes inactive.
    GST_PAD_SET_FLUSHING(pad.get());
    between.announce();
    fail_unless_equals_int(between.push(frame.get()), GST_FLOW_FLUSHING);
    GST_PAD_UNSET_FLUSHING(pad.get());
    gst_pad_set_active(pad.get(), FALSE);
    fail_unless_equals_int(between.push(frame.get()), GST_FLOW_FLUSHING);
    between.announce();
    fail_unless_equals_int(between.push(frame.get()), GST_FLOW_FLUSHING);
    gst_pad_set_active(pad.get(), TRUE);
    between.announce();
    fail_unless_equals_int(between.push(frame.get()), GST_FLOW_OK);
  }
}
GST_END_TEST;

// Frames that waited while the source pad was inactive are dropped, as a flush drops them. Frames after that leave.
GST_START_TEST(frames_wait_after_the_source_pad_was_inactive) {
  const GstVideoInfo info = video_info("GRAY8", 16, 16);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  Between between("mask=fill roi-meta=true lookahead=1000000000 frames-in-flight=1", info);
  gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
  between.announce();
  const Ref<GstPad> pad = between.pad("src"), sink = between.pad("sink");
  const auto push = [&](int number) {
    Ref<GstBuffer> copy(gst_buffer_copy(frame.get()));
    GST_BUFFER_PTS(copy.get()) = number * GST_MSECOND;
    return between.push(std::move(copy));
  };
  fail_unless_equals_int(push(0), GST_FLOW_OK);
  gst_pad_set_active(pad.get(), FALSE);
  const Ref<GstQuery> drain(gst_query_new_drain());
  gst_pad_query(sink.get(), drain.get());
  gst_pad_set_active(pad.get(), TRUE);
  between.announce();
  // The frame that comes next learns what became of the one before, and waits itself.
  for (int i = 1; i < 4; i++) fail_unless_equals_int(push(i), i == 1 ? GST_FLOW_FLUSHING : GST_FLOW_OK);
  between.end();
  fail_unless_equals_int(between.frames, 3);
}
GST_END_TEST;

// The source pad goes off and on while the element negotiates, which fails. The next frame may succeed.
GST_START_TEST(caps_that_fail_with_the_source_pad_are_no_error) {
  const GstVideoInfo info = video_info("GRAY8", 16, 16);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  Between between("mask=gauss5", info);
  gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
  between.announce();
  fail_unless_equals_int(between.push(frame.get()), GST_FLOW_OK);
  const Ref<GstPad> pad = between.pad("src"), sink(gst_pad_get_peer(pad.get()));
  gst_pad_set_query_function(sink.get(), [](GstPad *sink, GstObject *parent, GstQuery *query) -> gboolean {
    if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS) return gst_pad_query_default(sink, parent, query);
    const Ref<GstPad> pad(gst_pad_get_peer(sink));
    gst_pad_set_active(pad.get(), FALSE);
    gst_pad_set_active(pad.get(), TRUE);
    const Ref<GstCaps> none(gst_caps_new_empty());
    gst_query_set_caps_result(query, none.get());
    return TRUE;
  });
  gst_pad_mark_reconfigure(pad.get());
  fail_unless_equals_int(between.push(frame.get()), GST_FLOW_FLUSHING);
  gst_pad_set_query_function(sink.get(), gst_pad_query_default);
  between.announce();
  fail_unless_equals_int(between.push(frame.get()), GST_FLOW_OK);
}
GST_END_TEST;

GST_START_TEST(the_source_pad_goes_off_and_on_during_a_long_frame) {
  const GstVideoInfo info = video_info("RGBA", kWidth, kHeight);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  Between between("mask=median size=15", info);
  {
    Harness h("mask=median size=15", info);
    between.expected = h.filter(frame.get());
  }
  gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
  std::atomic<bool> ends{false};
  std::thread upstream([&] {
    between.announce();
    while (!ends)
      if (between.push(frame.get()) != GST_FLOW_OK) between.announce();
  });
  const Ref<GstPad> pad = between.pad("src");
  for (int i = 0; i < times(100); i++) {
    g_usleep(i % 10 * 1000);
    gst_pad_set_active(pad.get(), FALSE);
    gst_pad_set_active(pad.get(), TRUE);
  }
  ends = true;
  upstream.join();
  fail_unless_equals_int(between.wrong, 0);
  fail_unless_equals_int(between.count(GST_FLOW_ERROR), 0);
  fail_unless_equals_int(between.count(GST_FLOW_NOT_NEGOTIATED), 0);
  fail_unless(take_messages(between.element.get(), GST_MESSAGE_ERROR).empty());
}
GST_END_TEST;

// Memory that deactivates a pad while it is mapped.
struct Deactivating {
  GstAllocator parent;
  GstPad *pad;
};
struct DeactivatingClass {
  GstAllocatorClass parent_class;
};
G_DEFINE_TYPE(Deactivating, deactivating, GST_TYPE_ALLOCATOR)

void deactivating_class_init(DeactivatingClass *klass) {
  klass->parent_class.free = [](GstAllocator *, GstMemory *memory) { g_free(memory); };
}

void deactivating_init(Deactivating *self) {
  self->parent.mem_type = "CudaconvTestDeactivating";
  self->parent.mem_map = [](GstMemory *memory, gsize, GstMapFlags) -> gpointer {
    static guint8 data[64 * 48];
    gst_pad_set_active(reinterpret_cast<Deactivating *>(memory->allocator)->pad, FALSE);
    return data;
  };
  self->parent.mem_unmap = [](GstMemory *memory) {
    gst_pad_set_active(reinterpret_cast<Deactivating *>(memory->allocator)->pad, TRUE);
  };
}

// The source pad is active again before the element knows that the frame was cancelled.
GST_START_TEST(a_cancelled_frame_is_no_error) {
  if (!strcmp(test_backend(), "cuda")) return;  // a GPU completes its frames
  const GstVideoInfo info = video_info("GRAY8", 64, 48);
  Between between("mask=median n-threads=1", info);
  gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
  const Ref<GstPad> pad = between.pad("src");
  const Ref<GstAllocator> allocator(GST_ALLOCATOR(gst_object_ref_sink(g_object_new(deactivating_get_type(), nullptr))));
  reinterpret_cast<Deactivating *>(allocator.get())->pad = pad.get();
  GstMemory *memory = g_new0(GstMemory, 1);
  gst_memory_init(memory, GST_MEMORY_FLAG_NO_SHARE, allocator.get(), nullptr, info.size, 0, 0, info.size);
  const Ref<GstBuffer> frame(gst_buffer_new());
  gst_buffer_append_memory(frame.get(), memory);
  between.announce();
  fail_unless_equals_int(between.push(frame.get()), GST_FLOW_FLUSHING);
  fail_unless_equals_int(between.frames, 0);
  fail_unless(take_messages(between.element.get(), GST_MESSAGE_ERROR).empty());
  Random random = seeded();
  between.announce();
  fail_unless_equals_int(between.push(random_frame(info, random)), GST_FLOW_OK);
  fail_unless_equals_int(between.frames, 1);
}
GST_END_TEST;

// A probe starts the element again, or seeks, in the thread that pushes an earlier frame before it submits the next
// one. That one is of the stream before, too.
GST_START_TEST(no_frame_leaves_that_came_before_a_restart) {
  if (!strcmp(test_backend(), "cuda")) return;  // another thread pushes
  for (const bool seeks : {false, true}) {
    Random random = seeded();
    const GstVideoInfo info = video_info("GRAY8", 16, 8);
    const Ref<GstBuffer> frame = random_frame(info, random);
    Between between("mask=fill frames-in-flight=4", info);
    struct Probe {
      const bool seeks;
      const std::thread::id thread = std::this_thread::get_id();
      bool changed = false;
      int later = 0;  // frames that leave after the change
    } probe{seeks};
    const auto change = [](GstPad *pad, GstPadProbeInfo *, gpointer data) {
      auto *probe = static_cast<Probe *>(data);
      if (probe->changed) probe->later++;
      if (probe->changed || std::this_thread::get_id() != probe->thread) return GST_PAD_PROBE_OK;
      probe->changed = true;
      auto *element = GST_ELEMENT(GST_OBJECT_PARENT(pad));
      if (probe->seeks) {
        const Ref<GstPad> sink(gst_element_get_static_pad(element, "sink"));
        gst_pad_send_event(sink.get(), gst_event_new_flush_start());
        gst_pad_send_event(sink.get(), gst_event_new_flush_stop(TRUE));
      } else {
        gst_element_set_state(element, GST_STATE_READY);
        gst_element_set_state(element, GST_STATE_PLAYING);
      }
      return GST_PAD_PROBE_DROP;
    };
    const Ref<GstPad> pad = between.pad("src");
    gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, change, &probe, nullptr);
    gst_element_set_state(between.element.get(), GST_STATE_PLAYING);
    between.announce();
    for (int i = 0; i < 1000 && !probe.changed; i++) between.push(frame.get());
    fail_unless(probe.changed);
    g_usleep(20000);
    fail_unless_equals_int(probe.later, 0);
    between.announce();
    fail_unless_equals_int(between.push(frame.get()), GST_FLOW_OK);
    between.end();
    fail_unless_equals_int(probe.later, 1);
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("restarts");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, the_element_starts_while_upstream_pushes);
  tcase_add_test(tc, the_start_forgets_nothing_that_has_come_meanwhile);
  tcase_add_test(tc, a_start_that_fails_keeps_nobody_waiting);
  tcase_add_test(tc, a_stopped_element_answers_serialized_queries);
  tcase_add_test(tc, a_neighbour_asks_for_the_device_while_it_is_given_up);
  tcase_add_test(tc, an_inactive_source_pad_is_no_error);
  tcase_add_test(tc, frames_wait_after_the_source_pad_was_inactive);
  tcase_add_test(tc, caps_that_fail_with_the_source_pad_are_no_error);
  tcase_add_test(tc, the_source_pad_goes_off_and_on_during_a_long_frame);
  tcase_add_test(tc, a_cancelled_frame_is_no_error);
  tcase_add_test(tc, no_frame_leaves_that_came_before_a_restart);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "restarts", make_suite, !strcmp(test_backend(), "cuda"));
}
