// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Elements that are stopped in one of their own threads while frames wait: by pad probes and by handlers of messages.
// Elements whose threads the system refuses.
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <gst/base/gstbasetransform.h>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {
thread_local bool is_streaming_thread = true;
int calls_elsewhere = 0;
std::atomic<int> threads_to_refuse{0};
std::function<void()> before_pool_wakes;  // called once
std::atomic<bool> pool_flushes{false};
}  // namespace

extern "C" GstBufferPool *gst_base_transform_get_buffer_pool(GstBaseTransform *trans) {
  if (!is_streaming_thread) calls_elsewhere++;
  return reinterpret_cast<GstBufferPool *(*)(GstBaseTransform *)>(
      dlsym(RTLD_NEXT, "gst_base_transform_get_buffer_pool"))(trans);
}

extern "C" void gst_buffer_pool_set_flushing(GstBufferPool *pool, gboolean flushing) {
  if (!flushing)
    if (const auto call = std::exchange(before_pool_wakes, nullptr)) call();
  reinterpret_cast<decltype(&gst_buffer_pool_set_flushing)>(dlsym(RTLD_NEXT, "gst_buffer_pool_set_flushing"))(pool,
                                                                                                              flushing);
  pool_flushes = flushing;
}

// Replaces the system's function, to act like a limit on processes.
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*call)(void *), void *data) {
  if (threads_to_refuse > 0) {
    threads_to_refuse--;
    return EAGAIN;
  }
  return reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, call,
                                                                                         data);
}

namespace {

constexpr GstClockTime kFrame = 40 * GST_MSECOND;
constexpr int kSize = 48 * 32, kDot = 20 * 48 + 20;
constexpr char kWaits[] = "mask=fill roi-meta=true report=true lookahead=1000000000";

GstVideoInfo info() {
  GstVideoInfo info = video_info("GRAY8", 48, 32);
  info.fps_n = 25;
  info.fps_d = 1;
  return info;
}

// A bright frame with a region.
void draw(GstBuffer *frame, int n) {
  gst_buffer_memset(frame, 0, 200, static_cast<gsize>(-1));
  GST_BUFFER_PTS(frame) = n * kFrame;
  add_roi(frame, "face", 16, 16, 10, 10);
}

void push_frames(Harness &h, int count) {
  for (int i = 0; i < count; i++) {
    GstBuffer *frame = gst_buffer_new_allocate(nullptr, kSize, nullptr);
    draw(frame, i);
    fail_unless_equals_int(gst_harness_push(h.get(), frame), GST_FLOW_OK);
  }
}

void check_hidden(Harness &h, int frames) {
  for (int i = 0; i < frames; i++) {
    const Ref<GstBuffer> out = h.pull();
    fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), i * kFrame);
    guint8 dot;
    gst_buffer_extract(out.get(), kDot, &dot, 1);
    fail_unless(dot < 50, "frame %d shows %d", i, dot);
  }
  fail_unless(!gst_harness_try_pull(h.get()));
}

// Waits until another thread has brought the element to this state.
void wait_for_state(GstElement *element, GstState state) {
  wait_until([&] { return GST_STATE(element) == state && !GST_STATE_NEXT(element); });
  fail_unless_equals_int(GST_STATE(element), state);
}

// GStreamer's manual takes an element out of a pipeline when EOS leaves it. Here its frames take long to leave.
GST_START_TEST(a_probe_at_the_end_of_the_stream_stops_the_element) {
  Harness h(kWaits, info());
  const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "src"));
  const auto probe = [](GstPad *pad, GstPadProbeInfo *probed, gpointer) {
    if (probed->type & GST_PAD_PROBE_TYPE_BUFFER) g_usleep(60000);
    if (!(probed->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) ||
        GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(probed)) != GST_EVENT_EOS)
      return GST_PAD_PROBE_OK;
    gst_element_set_state(GST_ELEMENT(GST_OBJECT_PARENT(pad)), GST_STATE_NULL);
    return GST_PAD_PROBE_DROP;
  };
  gst_pad_add_probe(pad.get(),
                    static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                    probe, nullptr, nullptr);
  push_frames(h, 10);
  gst_harness_push_event(h.get(), gst_event_new_eos());
  wait_for_state(h.element(), GST_STATE_NULL);
  check_hidden(h, 10);
}
GST_END_TEST;

// Where upstream has no buffer left, a thread of the element pushes the oldest frame.
GST_START_TEST(a_probe_stops_the_element_in_its_own_thread) {
  Harness h(std::string(kWaits) + " frames-in-flight=1", info());
  const Ref<GstBufferPool> pool(gst_buffer_pool_new());
  const GstVideoInfo frames = info();
  const Ref<GstCaps> caps(gst_video_info_to_caps(&frames));
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, caps.get(), kSize, 4, 4);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config) && gst_buffer_pool_set_active(pool.get(), TRUE));
  const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "src"));
  std::atomic<bool> stopped{false};
  const auto probe = [](GstPad *pad, GstPadProbeInfo *, gpointer stopped) {
    gst_element_set_state(GST_ELEMENT(GST_OBJECT_PARENT(pad)), GST_STATE_NULL);
    *static_cast<std::atomic<bool> *>(stopped) = true;
    return GST_PAD_PROBE_DROP;
  };
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, &stopped, nullptr);
  std::vector<Ref<GstBuffer>> buffers(4);
  for (Ref<GstBuffer> &buffer : buffers) {
    GstBuffer *acquired;
    fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool.get(), &acquired, nullptr), GST_FLOW_OK);
    buffer.reset(acquired);
  }
  for (int i = 0; i < 3; i++) {
    draw(buffers[i].get(), i);
    fail_unless_equals_int(gst_harness_push(h.get(), buffers[i].release()), GST_FLOW_OK);
  }
  wait_until([&] { return stopped.load(); });
  fail_unless(stopped);
  buffers.clear();
  gst_element_set_state(h.element(), GST_STATE_NULL);
  check_hidden(h, 0);
  gst_buffer_pool_set_active(pool.get(), FALSE);
  h.take(GST_MESSAGE_WARNING);
}
GST_END_TEST;

// A handler that changes the state of `element` when the message `left` has come.
struct Handler {
  GstState state;
  bool starts_again;
  std::atomic<int> left;
  GstElement *element = nullptr;
  std::atomic<bool> done{false};
};

GstBusSyncReply handle(GstBus *, GstMessage *message, gpointer data) {
  auto *handler = static_cast<Handler *>(data);
  constexpr int kKinds = GST_MESSAGE_WARNING | GST_MESSAGE_ERROR | GST_MESSAGE_LATENCY | GST_MESSAGE_ELEMENT;
  if ((GST_MESSAGE_TYPE(message) & kKinds) && handler->left-- == 0) {
    gst_element_set_state(handler->element, handler->state);
    if (handler->starts_again) gst_element_set_state(handler->element, GST_STATE_PLAYING);
    handler->done = true;
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

// Fails the test unless the element is in this state, and has forgotten caps and settings. Nothing of the stream before
// leaves it.
void check_stopped(GstElement *element, GstState state) {
  fail_unless_equals_int(GST_STATE(element), state);
  fail_unless(!gst_structure_get_string(stats_of(element).get(), "backend"), "a stopped element has a backend");
  const Ref<GstPad> pad(gst_element_get_static_pad(element, "src"));
  for (const GstEventType type : {GST_EVENT_CAPS, GST_EVENT_EOS})
    fail_unless(!Ref<GstEvent>(gst_pad_get_sticky_event(pad.get(), type, 0)), "the source pad has an event");
}

GST_START_TEST(a_handler_stops_the_element_while_it_gets_caps) {
  for (const GstState state : {GST_STATE_READY, GST_STATE_NULL})
    for (const bool starts_again : {false, true})
      for (const bool has_caps : {false, true}) {
        Handler handler = {state, starts_again, {0}};
        Harness h("mask=gauss5");
        handler.element = h.element();
        if (has_caps) h.set_caps(info());
        // Without effect, or refused: a warning if there are good settings.
        h.set(has_caps ? "mask=custom coefficients='1 2 x'" : "sigma=3");
        const Ref<GstBus> bus(gst_element_get_bus(h.element()));
        gst_bus_set_sync_handler(bus.get(), handle, &handler, nullptr);
        const GstVideoInfo frames = video_info("GRAY8", 64, 32);
        const Ref<GstCaps> caps(gst_video_info_to_caps(&frames));
        gst_harness_push_event(h.get(), gst_event_new_caps(caps.get()));
        check_stopped(h.element(), starts_again ? GST_STATE_PLAYING : state);
        gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
      }
}
GST_END_TEST;

// After the restart a failure is posted as an error again.
GST_START_TEST(a_handler_of_an_error_starts_the_element_again) {
  Handler handler = {GST_STATE_READY, true, {0}};
  Harness h("mask=custom coefficients='1 2 x'");
  handler.element = h.element();
  const Ref<GstBus> bus(gst_element_get_bus(h.element()));
  gst_bus_set_sync_handler(bus.get(), handle, &handler, nullptr);
  const GstVideoInfo frames = info();
  const Ref<GstCaps> caps(gst_video_info_to_caps(&frames));
  for (int errors = 1; errors <= 2; errors++) {
    gst_harness_push_event(h.get(), gst_event_new_stream_start("again"));
    gst_harness_push_event(h.get(), gst_event_new_caps(caps.get()));
    fail_unless_equals_int(handler.left, -errors);
  }
  gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
}
GST_END_TEST;

// Settings that post messages when the frames leave, and others.
constexpr const char *kSettings[] = {"divisor=3", "mask=custom coefficients='1 2 x'", "mask=identity", "lookahead=1",
                                     "types=car", "roi-meta=false roi='900,900,2,2'", "roi-grow=0"};

GST_START_TEST(handlers_of_messages_stop_the_element) {
  for (const GstState state : {GST_STATE_READY, GST_STATE_NULL})
    for (const bool starts_again : {false, true})
      for (const char *settings : kSettings)
        for (int left = 0; left < 3; left++)
          for (const char *then : {"a frame", "other caps", "the end"}) {
            Handler handler = {state, starts_again, {-1}};
            Harness h(kWaits, info());
            handler.element = h.element();
            const Ref<GstBus> bus(gst_element_get_bus(h.element()));
            gst_bus_set_sync_handler(bus.get(), handle, &handler, nullptr);
            push_frames(h, 20);
            while (const Ref<GstBuffer> out = Ref<GstBuffer>(gst_harness_try_pull(h.get()))) continue;
            h.set(settings);
            handler.left = left;
            if (!strcmp(then, "the end")) {
              gst_harness_push_event(h.get(), gst_event_new_eos());
            } else if (!strcmp(then, "other caps")) {
              const GstVideoInfo other = video_info("GRAY8", 64, 32);
              const Ref<GstCaps> caps(gst_video_info_to_caps(&other));
              gst_harness_push_event(h.get(), gst_event_new_caps(caps.get()));
            } else {
              GstBuffer *early = gst_buffer_new_allocate(nullptr, kSize, nullptr);
              draw(early, 0);  // time jumps back, which lets all frames go
              const GstFlowReturn flow = gst_harness_push(h.get(), early);
              fail_unless(flow == GST_FLOW_OK || flow == GST_FLOW_FLUSHING, "%s: %s", settings,
                          gst_flow_get_name(flow));
            }
            const bool was_called = handler.left < 0;
            wait_until([&] { return !was_called || handler.done; });
            while (const Ref<GstBuffer> out = Ref<GstBuffer>(gst_harness_try_pull(h.get()))) {
              guint8 dot;
              gst_buffer_extract(out.get(), kDot, &dot, 1);
              if (!strcmp(settings, "divisor=3") || !strcmp(settings, "roi-grow=0"))
                fail_unless(dot < 50, "a frame shows %d", dot);
            }
            if (was_called) check_stopped(h.element(), starts_again ? GST_STATE_PLAYING : state);
            gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
          }
}
GST_END_TEST;

// The frame before the start is not counted after it.
GST_START_TEST(a_handler_of_a_report_starts_the_element_again) {
  for (const char *unmarked : {"pass", "mark", "drop"}) {
    Handler handler = {GST_STATE_READY, true, {0}};
    Harness h(std::string("mask=fill roi-meta=true report=true frames-in-flight=1 unmarked=") + unmarked, info());
    handler.element = h.element();
    const Ref<GstBus> bus(gst_element_get_bus(h.element()));
    gst_bus_set_sync_handler(bus.get(), handle, &handler, nullptr);
    for (const int second : {0, 1}) {
      GstBuffer *frame = gst_buffer_new_allocate(nullptr, kSize, nullptr);
      GST_BUFFER_PTS(frame) = second * GST_SECOND;
      const GstFlowReturn flow = gst_harness_push(h.get(), frame);
      fail_unless(flow == GST_FLOW_OK || (second && flow == GST_FLOW_FLUSHING), "%s", gst_flow_get_name(flow));
    }
    wait_until([&] { return handler.done.load(); });
    fail_unless_equals_int(handler.left, -1);
    fail_unless_equals_uint64(stat(h, "frames-unmarked"), 0);
    gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
  }
}
GST_END_TEST;

// Sends what comes before frames.
void send_start(Harness &h) {
  const GstVideoInfo frames = info();
  const Ref<GstCaps> caps(gst_video_info_to_caps(&frames));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  for (GstEvent *event :
       {gst_event_new_stream_start("again"), gst_event_new_caps(caps.get()), gst_event_new_segment(&segment)})
    push_event(h, event);
}

// The report that a flush ends must not keep the end of the flush from downstream, which would take nothing any more.
GST_START_TEST(a_handler_of_a_report_stops_the_element_in_a_flush) {
  for (const GstState state : {GST_STATE_READY, GST_STATE_NULL})
    for (const bool starts_again : {false, true}) {
      Handler handler = {state, starts_again, {-1}};
      Harness h("mask=fill roi-meta=true report=true", info());
      handler.element = h.element();
      const Ref<GstBus> bus(gst_element_get_bus(h.element()));
      gst_bus_set_sync_handler(bus.get(), handle, &handler, nullptr);
      push_frames(h, 1);
      h.pull();
      handler.left = 0;
      gst_harness_push_event(h.get(), gst_event_new_flush_start());
      gst_harness_push_event(h.get(), gst_event_new_flush_stop(TRUE));
      fail_unless_equals_int(handler.left, -1);
      check_stopped(h.element(), starts_again ? GST_STATE_PLAYING : state);
      gst_element_set_state(h.element(), GST_STATE_PLAYING);
      send_start(h);
      push_frames(h, 1);
      h.pull();
      gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
    }
}
GST_END_TEST;

// gst_base_transform_get_buffer_pool() takes no lock: only the streaming thread, which replaces the pool, may call it.
GST_START_TEST(interruptions_know_the_pool_themselves) {
  Harness h("mask=fill", info());
  push_frames(h, 2);
  check_hidden(h, 2);
  is_streaming_thread = false;
  calls_elsewhere = 0;
  const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "src"));
  gst_harness_push_event(h.get(), gst_event_new_flush_start());
  gst_harness_push_event(h.get(), gst_event_new_flush_stop(TRUE));
  fail_unless(gst_pad_set_active(pad.get(), FALSE) && gst_pad_set_active(pad.get(), TRUE));
  gst_element_set_state(h.element(), GST_STATE_READY);
  is_streaming_thread = true;
  fail_unless_equals_int(calls_elsewhere, 0);
}
GST_END_TEST;

// The sink pad goes off while the source pad comes on. The streaming thread must not wait for a buffer then.
GST_START_TEST(a_pad_that_comes_on_wakes_no_pool_of_a_stopped_element) {
  Harness h("mask=gauss5", info());
  push_frames(h, 1);
  h.settle();
  const Ref<GstPad> source(gst_element_get_static_pad(h.element(), "src"));
  const Ref<GstPad> sink(gst_element_get_static_pad(h.element(), "sink"));
  gst_pad_set_active(source.get(), FALSE);
  fail_unless(pool_flushes);
  pool_flushes = false;
  std::thread other;
  before_pool_wakes = [&] {
    other = std::thread([&] { gst_pad_set_active(sink.get(), FALSE); });
    for (int i = 0; i < 100 && !pool_flushes; i++) g_usleep(1000);
  };
  gst_pad_set_active(source.get(), TRUE);
  fail_unless(!before_pool_wakes);
  other.join();
  fail_unless(pool_flushes);
}
GST_END_TEST;

// Upstream sends the events of its pad again with the first frame. A flush comes while one of them is held downstream:
// the frame is flushed, which is no error.
GST_START_TEST(an_event_that_a_flush_interrupts_is_no_error) {
  static std::atomic<bool> reached, goes_on;
  reached = goes_on = false;
  const Ref<GstElement> hold(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("roihold", nullptr))));
  const Ref<GstPad> source(GST_PAD(gst_object_ref_sink(gst_pad_new("source", GST_PAD_SRC))));
  const Ref<GstPad> sink(gst_element_get_static_pad(hold.get(), "sink"));
  const Ref<GstPad> out(gst_element_get_static_pad(hold.get(), "src"));
  fail_unless_equals_int(gst_pad_link(source.get(), sink.get()), GST_PAD_LINK_OK);
  gst_pad_set_active(source.get(), TRUE);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_pad_push_event(source.get(), gst_event_new_stream_start("stream"));  // neither arrives yet
  gst_pad_push_event(source.get(), gst_event_new_segment(&segment));
  gst_element_set_state(hold.get(), GST_STATE_PLAYING);
  const auto holds = [](GstPad *, GstPadProbeInfo *, gpointer) {
    reached = true;
    while (!goes_on) g_usleep(1000);
    return GST_PAD_PROBE_OK;
  };
  gst_pad_add_probe(out.get(), GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, holds, nullptr, nullptr);
  std::thread flushes([&] {
    while (!reached) g_usleep(1000);
    gst_pad_send_event(sink.get(), gst_event_new_flush_start());
  });
  const GstFlowReturn flow = gst_pad_push(source.get(), gst_buffer_new());
  goes_on = true;
  flushes.join();
  gst_element_set_state(hold.get(), GST_STATE_NULL);
  fail_unless_equals_int(flow, GST_FLOW_FLUSHING);
}
GST_END_TEST;

// Downstream may flush the source pad, also while frames wait. The threads of the elements hold the lock of that pad.
GST_START_TEST(a_flush_of_the_source_pad_ends) {
  for (const char *properties : {"mask=fill", "mask=fill roi-meta=true hold=1", kWaits}) {
    Harness h(properties, info());
    for (int i = 0; i < 3; i++) {
      GstSegment segment;
      gst_segment_init(&segment, GST_FORMAT_TIME);
      push_event(h, gst_event_new_segment(&segment));
      for (int n = 0; n < 3; n++) {
        Ref<GstBuffer> frame(gst_buffer_new_allocate(nullptr, kSize, nullptr));
        GST_BUFFER_PTS(frame.get()) = n * kFrame;
        fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
        if (properties != kWaits) h.pull();
      }
      fail_unless(gst_pad_push_event(h.get()->sinkpad, gst_event_new_flush_start()));
      fail_unless(gst_pad_push_event(h.get()->sinkpad, gst_event_new_flush_stop(TRUE)));
      if (properties != kWaits) {  // upstream does not know that frames may be lost
        push_event(h, gst_event_new_segment(&segment));
        fail_unless_equals_int(gst_harness_push(h.get(), gst_buffer_new_allocate(nullptr, kSize, nullptr)),
                               GST_FLOW_OK);
        fail_unless(GST_BUFFER_FLAG_IS_SET(h.pull().get(), GST_BUFFER_FLAG_DISCONT));
      }
      push_event(h, gst_event_new_flush_start());
      push_event(h, gst_event_new_flush_stop(TRUE));
    }
  }
}
GST_END_TEST;

// Downstream seeks in the thread that pushes to it, and its pad then flushes the frame. The frame after the seek
// passes.
GST_START_TEST(a_frame_that_a_seek_ends_fails_no_later_one) {
  const Ref<GstElement> hold(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("roihold", nullptr))));
  const Ref<GstPad> source(GST_PAD(gst_object_ref_sink(gst_pad_new("source", GST_PAD_SRC))));
  const Ref<GstPad> end(GST_PAD(gst_object_ref_sink(gst_pad_new("end", GST_PAD_SINK))));
  const Ref<GstPad> in(gst_element_get_static_pad(hold.get(), "sink")),
      out(gst_element_get_static_pad(hold.get(), "src"));
  static std::atomic<bool> has_sought;
  has_sought = false;
  gst_pad_set_element_private(end.get(), in.get());
  gst_pad_set_event_function(end.get(), [](GstPad *, GstObject *, GstEvent *event) -> gboolean {
    gst_event_unref(event);
    return TRUE;
  });
  gst_pad_set_chain_function(end.get(), [](GstPad *pad, GstObject *, GstBuffer *buffer) -> GstFlowReturn {
    gst_buffer_unref(buffer);
    if (has_sought) return GST_FLOW_OK;
    auto *const in = static_cast<GstPad *>(gst_pad_get_element_private(pad));
    gst_pad_send_event(in, gst_event_new_flush_start());
    gst_pad_send_event(in, gst_event_new_flush_stop(TRUE));
    has_sought = true;
    return GST_FLOW_FLUSHING;
  });
  fail_unless_equals_int(gst_pad_link(source.get(), in.get()), GST_PAD_LINK_OK);
  fail_unless_equals_int(gst_pad_link(out.get(), end.get()), GST_PAD_LINK_OK);
  gst_pad_set_active(end.get(), TRUE);
  gst_element_set_state(hold.get(), GST_STATE_PLAYING);
  gst_pad_set_active(source.get(), TRUE);
  const GstVideoInfo frames = info();
  const Ref<GstCaps> caps(gst_video_info_to_caps(&frames));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_pad_push_event(source.get(), gst_event_new_stream_start("stream"));
  gst_pad_push_event(source.get(), gst_event_new_caps(caps.get()));
  gst_pad_push_event(source.get(), gst_event_new_segment(&segment));
  fail_unless_equals_int(gst_pad_push(source.get(), gst_buffer_new()), GST_FLOW_FLUSHING);
  while (!has_sought) g_usleep(1000);
  gst_pad_push_event(source.get(), gst_event_new_segment(&segment));
  fail_unless_equals_int(gst_pad_push(source.get(), gst_buffer_new()), GST_FLOW_OK);
  gst_element_set_state(hold.get(), GST_STATE_NULL);
}
GST_END_TEST;

// Both pads go off and on, each in its own thread, while upstream pushes.
GST_START_TEST(pads_change_at_the_same_time) {
  Harness h("mask=fill", info());
  gst_check_add_log_filter(
      "GStreamer", G_LOG_LEVEL_WARNING,
      g_regex_new("Got data flow before|Sticky event misordering", G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT, nullptr),
      nullptr, nullptr, nullptr);
  const Ref<GstPad> source(gst_element_get_static_pad(h.element(), "src"));
  const Ref<GstPad> sink(gst_element_get_static_pad(h.element(), "sink"));
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      gst_pad_set_active(source.get(), FALSE);
      gst_pad_set_active(source.get(), TRUE);
      g_usleep(100);
    }
  });
  std::thread upstream([&] {
    while (!ends) {
      GstBuffer *frame = gst_buffer_new_allocate(nullptr, kSize, nullptr);
      draw(frame, 0);
      if (gst_harness_push(h.get(), frame) != GST_FLOW_OK) h.set_caps(info());
    }
  });
  Random random = seeded();
  for (int i = 0; i < 800; i++) {
    gst_pad_set_active(sink.get(), i % 2);
    g_usleep(random() % 2000);
  }
  ends = true;
  other.join();
  upstream.join();
  while (const Ref<GstBuffer> out = Ref<GstBuffer>(gst_harness_try_pull(h.get()))) {
    guint8 dot;
    gst_buffer_extract(out.get(), kDot, &dot, 1);
    fail_unless(dot < 50, "a frame shows %d", dot);
  }
  take_messages(h.element(), GST_MESSAGE_ANY);  // frames before the caps are not negotiated
  gst_check_clear_log_filter();
}
GST_END_TEST;

// The base class waits for the streaming thread before it stops the element. A query that comes later must not enter.
GST_START_TEST(no_query_enters_an_element_that_is_being_stopped) {
  Harness h("mask=fill", info());
  const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "sink"));
  const Ref<GstCaps> caps(gst_pad_get_current_caps(pad.get()));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  fail_unless(gst_pad_query(pad.get(), query.get()));
  GST_PAD_STREAM_LOCK(pad.get());
  std::thread stops([&] { gst_pad_set_active(pad.get(), FALSE); });
  g_usleep(100000);  // until it waits for the lock
  const Ref<GstQuery> late(gst_query_new_allocation(caps.get(), TRUE));
  fail_unless(!gst_pad_query(pad.get(), late.get()));
  GST_PAD_STREAM_UNLOCK(pad.get());
  stops.join();
  fail_unless(gst_pad_set_active(pad.get(), TRUE));
}
GST_END_TEST;

// Frames that wait need a thread of their own. Here the system refuses it.
GST_START_TEST(roihold_without_a_thread_does_not_start) {
  gst_check_add_log_filter("GStreamer", G_LOG_LEVEL_WARNING,
                           g_regex_new("failed to create thread", G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT, nullptr),
                           nullptr, nullptr, nullptr);
  const auto start = [] {
    const Ref<GstElement> element = new_element(kWaits);
    const bool fails = gst_element_set_state(element.get(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE;
    fail_unless_equals_int(take_messages(element.get(), GST_MESSAGE_ERROR).size(), fails);
    gst_element_set_state(element.get(), GST_STATE_NULL);
    gst_element_set_bus(element.get(), nullptr);
    return !fails;
  };
  g_thread_pool_stop_unused_threads();
  threads_to_refuse = 1000;
  const bool starts = start();
  fail_unless(!starts || threads_to_refuse == 1000,
              "a thread was refused, and the element starts");  // else GLib had one
  threads_to_refuse = 0;
  // The element is gone. The next thread takes the task that it left.
  static std::atomic<bool> runs{false};
  GRecMutex lock;
  g_rec_mutex_init(&lock);
  const Ref<GstTask> next(gst_task_new([](gpointer) { runs = true; }, nullptr, nullptr));
  gst_task_set_lock(next.get(), &lock);
  gst_task_start(next.get());
  while (!runs) g_usleep(1000);
  gst_task_join(next.get());
  g_rec_mutex_clear(&lock);
  fail_unless(start());
  gst_check_clear_log_filter();
}
GST_END_TEST;

// The task of the filter has no thread either.
GST_START_TEST(frames_go_one_by_one_without_threads) {
  gst_check_add_log_filter("GStreamer", G_LOG_LEVEL_WARNING,
                           g_regex_new("failed to create thread", G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT, nullptr),
                           nullptr, nullptr, nullptr);
  threads_to_refuse = 1000;
  {
    Harness h("mask=fill roi-meta=true", info());
    push_frames(h, 6);
    check_hidden(h, 6);
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(h.get(), gst_event_new_flush_start());
    gst_harness_push_event(h.get(), gst_event_new_flush_stop(TRUE));
    gst_harness_push_event(h.get(), gst_event_new_segment(&segment));
    push_frames(h, 6);
    check_hidden(h, 6);
    gst_element_set_state(h.element(), GST_STATE_NULL);
    threads_to_refuse = 0;
    gst_element_set_state(h.element(), GST_STATE_PLAYING);
    gst_harness_push_event(h.get(), gst_event_new_stream_start("again"));
    h.set_caps(info());
    gst_harness_push_event(h.get(), gst_event_new_segment(&segment));
    push_frames(h, 6);
    check_hidden(h, 6);
  }
  gst_check_clear_log_filter();
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("stops");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, a_probe_at_the_end_of_the_stream_stops_the_element);
  tcase_add_test(tc, a_probe_stops_the_element_in_its_own_thread);
  tcase_add_test(tc, a_handler_stops_the_element_while_it_gets_caps);
  tcase_add_test(tc, a_handler_of_an_error_starts_the_element_again);
  tcase_add_test(tc, handlers_of_messages_stop_the_element);
  tcase_add_test(tc, a_handler_of_a_report_starts_the_element_again);
  tcase_add_test(tc, a_handler_of_a_report_stops_the_element_in_a_flush);
  tcase_add_test(tc, interruptions_know_the_pool_themselves);
  tcase_add_test(tc, a_pad_that_comes_on_wakes_no_pool_of_a_stopped_element);
  tcase_add_test(tc, an_event_that_a_flush_interrupts_is_no_error);
  tcase_add_test(tc, a_flush_of_the_source_pad_ends);
  tcase_add_test(tc, a_frame_that_a_seek_ends_fails_no_later_one);
  tcase_add_test(tc, pads_change_at_the_same_time);
  tcase_add_test(tc, no_query_enters_an_element_that_is_being_stopped);
  tcase_add_test(tc, roihold_without_a_thread_does_not_start);
  tcase_add_test(tc, frames_go_one_by_one_without_threads);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "stops", make_suite, !strcmp(test_backend(), "cuda"));
}
