// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests failing calls of the CUDA runtime, on the stand-in, which can make each call fail. Also tests which calls the
// element makes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <thread>

#include "failingnew.h"
#include "gstcudaconvsession.h"
#undef GST_CAT_DEFAULT  // gst-check defines it, too
#include "devicememory.h"
#include "regions.h"
#include "standin.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

// Fails the test unless all objects of the CUDA runtime are released, as after the last element.
void check_nothing_left() {
  const standin::LiveObjects live = standin::live_objects();
  fail_unless(live.total() == 0,
              "%d device allocations, %d host allocations, %d streams, %d events, %d graphs are left", live.device,
              live.host, live.streams, live.events, live.graphs);
  standin::reset();
}

struct Failure {
  const char *call;
  cudaError_t error;
};
// Calls for a frame in system memory, with errors of single calls and errors that lose the device.
constexpr Failure kFailures[] = {
    {"cudaMemcpy2DAsync", cudaErrorInvalidValue}, {"cudaLaunchKernel", cudaErrorLaunchOutOfResources},
    {"cudaEventRecord", cudaErrorUnknown},        {"cudaEventQuery", cudaErrorIllegalAddress},
    {"cudaLaunchKernel", cudaErrorLaunchFailure}, {"cudaMemcpy2DAsync", cudaErrorECCUncorrectable},
    {"cudaEventElapsedTime", cudaErrorUnknown},   {"cudaEventQuery", cudaErrorContextIsDestroyed},
};

GST_START_TEST(with_backend_auto_the_cpu_filters_the_same_frame_and_goes_on) {
  Random random = seeded();
  for (const Failure &failure : kFailures) {
    {
      Harness h("backend=auto mask=gauss5", small());
      for (int i = 0; i < 6; i++) {
        if (i == 2) standin::fail_call(failure.call, 1, failure.error);
        const Ref<GstBuffer> in = random_frame(small(), random), out = h.filter(in.get());
        assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
        assert_same_text(stat_string(h, "backend"), i < 2 ? "cuda" : "cpu");
        if (i == 2) {
          const Report report = h.take_one(GST_MESSAGE_WARNING);
          fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_FAILED);
          fail_unless(strstr(report.text.c_str(), failure.call) != nullptr, "\"%s\" does not name %s",
                      report.text.c_str(), failure.call);
          // The line is the line of the call, not the line that posts the message.
          fail_unless(strstr(report.debug.c_str(), "kernels/") != nullptr, "%s", report.debug.c_str());
        }
      }
      fail_unless_equals_uint64(stat(h, "failovers"), 1);
      fail_unless_equals_uint64(stat(h, "frames"), 6);
      fail_unless(h.take(GST_MESSAGE_INFO).empty());
      // Settings and caps still change, and frames stay on the CPU.
      h.set("mask=sobel");
      h.set_caps(video_info("RGBA", 8, 8));
      h.set_caps(small());
      const Ref<GstBuffer> in = random_frame(small(), random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), small(), "mask=sobel");
      assert_same_text(stat_string(h, "backend"), "cpu");
    }
    check_nothing_left();
  }
}
GST_END_TEST;

GST_START_TEST(with_backend_auto_the_next_start_tries_the_device_again) {
  Random random = seeded();
  {
    Harness h("backend=auto mask=gauss5", small());
    standin::fail_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
    h.filter(random_frame(small(), random).get());
    h.take_one(GST_MESSAGE_WARNING);
    fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
    fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
    h.set_caps(video_info("RGBA", 8, 8));
    h.set_caps(small());
    const Ref<GstBuffer> in = random_frame(small(), random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
    assert_same_text(stat_string(h, "backend"), "cuda");
    fail_unless_equals_uint64(stat(h, "failovers"), 0);
  }
  check_nothing_left();
}
GST_END_TEST;

// After a failure the next start makes a new context, even if the application had set the failed context.
GST_START_TEST(the_next_start_does_not_try_the_context_that_failed) {
  Random random = seeded();
  {
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::create();
    Ref<GstElement> element = new_element("backend=auto mask=gauss5", false);
    device->share_with(element.get());
    Harness h(std::move(element));
    const auto in_that_context = [&] {
      const Ref<GstBuffer> frame = random_frame(small(), random);
      return device->holds(DeviceMemory::of(h.element())->copy(frame.get(), small()).get());
    };
    h.set_caps(small());
    h.filter(random_frame(small(), random).get());
    fail_unless(in_that_context());
    // A restart without a failure keeps the context.
    for (bool fails : {false, true}) {
      if (fails) {
        standin::fail_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
        h.filter(random_frame(small(), random).get());
        h.take_one(GST_MESSAGE_WARNING);
      }
      fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
      fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
      fail_unless_equals_int(in_that_context(), !fails);
      h.set_caps(video_info("RGBA", 8, 8));
      h.set_caps(small());
    }
  }
  check_nothing_left();
}
GST_END_TEST;

// Elements of a process share a context. Elements that start later do not get a failed context.
GST_START_TEST(a_failed_context_is_no_longer_shared) {
  Random random = seeded();
  {
    Harness failed(new_element("backend=auto mask=gauss5", false));
    failed.set_caps(small());
    failed.filter(random_frame(small(), random).get());
    const std::unique_ptr<DeviceMemory> before = DeviceMemory::of(failed.element());
    const auto is_shared = [&] {
      Harness later(new_element("backend=auto mask=gauss5", false));
      later.set_caps(small());
      const Ref<GstBuffer> frame = random_frame(small(), random);
      return before->holds(DeviceMemory::of(later.element())->copy(frame.get(), small()).get());
    };
    fail_unless(is_shared());
    standin::fail_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
    failed.filter(random_frame(small(), random).get());
    failed.take_one(GST_MESSAGE_WARNING);
    fail_if(is_shared());
  }
  check_nothing_left();
}
GST_END_TEST;

GST_START_TEST(with_backend_auto_frames_in_device_memory_are_not_lost_either) {
  Random random = seeded();
  for (bool device_out : {false, true}) {
    {
      Harness h("backend=auto mask=gauss5");
      set_caps(h, small(), true, device_out);
      const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
      for (int i = 0; i < 4; i++) {
        if (i == 2) standin::fail_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
        const Ref<GstBuffer> in = random_frame(small(), random), on_device = device->copy(in.get(), small());
        const Ref<GstBuffer> out = h.filter(on_device.get());
        fail_unless(device->holds(out.get()) == device_out);
        assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
      }
      h.take_one(GST_MESSAGE_WARNING);
      fail_unless_equals_uint64(stat(h, "failovers"), 1);
    }
    check_nothing_left();
  }
}
GST_END_TEST;

// A frame that is filtered in place in device memory is lost with the device. The one behind it may be in flight, too.
GST_START_TEST(the_frame_behind_a_lost_one_is_a_discontinuity) {
  Random random = seeded();
  {
    Harness h("backend=auto mask=gauss5 roi=0,0,100%,100% frames-in-flight=4");
    set_caps(h, small(), true, true);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
    const Ref<GstBuffer> in = random_frame(small(), random), shared = device->copy(in.get(), small());
    std::atomic<int> step{0};  // 1: downstream holds the first frame; 2: it goes on
    const auto hold = [](GstPad *, GstPadProbeInfo *, gpointer data) {
      auto *step = static_cast<std::atomic<int> *>(data);
      for (*step = 1; *step == 1;) g_usleep(1000);
      return GST_PAD_PROBE_REMOVE;
    };
    const Ref<GstPad> pad(gst_element_get_static_pad(h.element(), "src"));
    gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, hold, &step, nullptr);
    for (int i = 0; i < 3; i++) {  // of a slow filter, two are in flight at most
      Ref<GstBuffer> frame(i == 1 ? device->copy(in.get(), small()).release() : gst_buffer_copy(shared.get()));
      GST_BUFFER_PTS(frame.get()) = i;
      fail_unless_equals_int(gst_harness_push(h.get(), frame.release()), GST_FLOW_OK);
    }
    while (step == 0) g_usleep(1000);
    standin::fail_call("", 1, cudaErrorUnknown);
    step = 2;
    std::vector<Ref<GstBuffer>> outs;
    for (int i = 0; i < 2; i++) outs.push_back(h.pull());  // makes no call that could fail instead
    for (int i = 0; i < 2; i++) {
      fail_unless_equals_uint64(GST_BUFFER_PTS(outs[i].get()), 2 * i);
      fail_unless_equals_int(GST_BUFFER_IS_DISCONT(outs[i].get()), i == 1);
      assert_filtered(in.get(), outs[i].get(), small(), "mask=gauss5");
    }
    h.take_one(GST_MESSAGE_WARNING);
  }
  check_nothing_left();
}
GST_END_TEST;

// What the CPU has written is uploaded when the frame is mapped. GStreamer copies memory that it cannot map.
GST_START_TEST(with_backend_auto_memory_that_cannot_be_mapped_is_a_failed_device) {
  Random random = seeded();
  for (const char *regions : {"", " roi=0,0,100%,100%"}) {
    for (const bool is_shared : {true, false}) {
      Harness h(std::string("backend=auto mask=gauss5") + regions);
      set_caps(h, small(), true, true);
      const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
      for (int i = 0; i < 3; i++) {
        const Ref<GstBuffer> in = random_frame(small(), random);
        Ref<GstBuffer> on_device = device->copy(in.get(), small());
        const Ref<GstBuffer> other(is_shared ? gst_buffer_ref(on_device.get()) : nullptr);
        if (i == 1) standin::fail_call("cudaMemcpy", 1, cudaErrorUnknown);
        fail_unless_equals_int(gst_harness_push(h.get(), on_device.release()), GST_FLOW_OK);
        const Ref<GstBuffer> out = h.pull();
        assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
      }
      // A frame that is to be filtered in place is mapped twice. The second time it is the copy, in system memory.
      fail_unless_equals_int(h.take(GST_MESSAGE_WARNING).size(), *regions && !is_shared ? 0 : 1);
    }
    check_nothing_left();
  }
}
GST_END_TEST;

// The device fails on the last frame in flight before a frame that comes in another context.
GST_START_TEST(with_backend_auto_another_context_does_not_undo_a_failure) {
  Random random = seeded();
  {
    Harness h("backend=auto mask=gauss5 frames-in-flight=4");
    set_caps(h, small(), true, true);
    const std::unique_ptr<DeviceMemory> own = DeviceMemory::of(h.element()), other = DeviceMemory::create();
    const Ref<GstBuffer> in = random_frame(small(), random);
    auto blocked = std::make_unique<Blocked>(h);
    for (int i = 0; i < 2; i++) h.push(own->copy(in.get(), small()).get());
    standin::fail_call("cudaEventElapsedTime", 1, cudaErrorUnknown);
    const Ref<GstBuffer> foreign = other->copy(in.get(), small());
    std::thread pusher([&] { h.push(foreign.get()); });
    g_usleep(50000);
    blocked.reset();
    pusher.join();
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> out = h.pull();
      assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
    }
    h.take_one(GST_MESSAGE_WARNING);
    fail_unless_equals_uint64(stat(h, "failovers"), 1);
    assert_same_text(stat_string(h, "backend"), "cpu");
  }
  check_nothing_left();
}
GST_END_TEST;

// The device is lost, and the next frame comes in another context, in which nothing can be made either.
GST_START_TEST(with_backend_cuda_a_lost_device_is_one_error_in_all_contexts) {
  Random random = seeded();
  for (const bool meanwhile : {true, false}) {  // the next frame comes before the device is lost, or after
    {
      Harness h("backend=cuda mask=gauss5 frames-in-flight=4");
      set_caps(h, small(), true, true);
      const std::unique_ptr<DeviceMemory> own = DeviceMemory::of(h.element()), other = DeviceMemory::create();
      const Ref<GstBuffer> in = random_frame(small(), random), foreign = other->copy(in.get(), small());
      auto blocked = std::make_unique<Blocked>(h);
      for (int i = 0; i < 2; i++) h.push(own->copy(in.get(), small()).get());
      standin::fail_call("cudaEventElapsedTime", 1, cudaErrorIllegalAddress);
      if (!meanwhile) {
        blocked.reset();
        h.settle();
      }
      std::thread pusher([&] { fail_unless_equals_int(h.push(foreign.get()), GST_FLOW_ERROR); });
      g_usleep(50000);
      blocked.reset();
      pusher.join();
      h.take_one(GST_MESSAGE_ERROR);
    }
    check_nothing_left();
  }
}
GST_END_TEST;

// The device is lost with a frame in flight. The next one needs no buffer of it, for which there would be no memory.
GST_START_TEST(with_backend_cuda_a_lost_device_is_one_error_in_place_too) {
  Random random = seeded();
  {
    Harness h("backend=cuda mask=gauss5 frames-in-flight=4 roi=0,0,100%,100%");
    set_caps(h, small(), true, true);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
    Ref<GstBuffer> one = device->copy(random_frame(small(), random).get(), small()),
                   other = device->copy(random_frame(small(), random).get(), small());
    standin::fail_call("cudaEventQuery", 1, cudaErrorIllegalAddress);
    fail_unless_equals_int(gst_harness_push(h.get(), one.release()), GST_FLOW_OK);
    h.settle();
    fail_unless_equals_int(gst_harness_push(h.get(), other.release()), GST_FLOW_ERROR);
    const Report report = h.take_one(GST_MESSAGE_ERROR);
    fail_unless(strstr(report.text.c_str(), "cudaEventQuery") != nullptr, "%s", report.text.c_str());
  }
  check_nothing_left();
}
GST_END_TEST;

// The device is lost with frames of its memory in flight, which the CPU cannot reach either. Upstream's thread notices
// it when it submits a frame or allocates its output, and the task when it waits for one.
GST_START_TEST(whoever_notices_a_lost_device_there_is_one_error) {
  Random random = seeded();
  for (const char *backend : {"auto", "cuda"})
    for (const char *call : {"cudaLaunchKernel", "cudaMalloc"}) {
      {
        Harness h(std::string("mask=gauss5 frames-in-flight=4 backend=") + backend);
        set_caps(h, small(), true, true);
        const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
        std::vector<Ref<GstBuffer>> frames;
        for (int i = 0; i < 3; i++) frames.push_back(device->copy(random_frame(small(), random).get(), small()));
        auto blocked = std::make_unique<Blocked>(h);
        for (int i = 0; i < 2; i++) fail_unless_equals_int(h.push(frames[i].get()), GST_FLOW_OK);
        // The thread that warns while it submits a frame waits until the task has failed, too.
        struct Seen {
          const bool waits;
          std::atomic<int> errors{0};
        } seen = {!strcmp(call, "cudaLaunchKernel")};
        const auto see = [](GstBus *, GstMessage *message, gpointer data) {
          auto *seen = static_cast<Seen *>(data);
          if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) seen->errors++;
          if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING && seen->waits)
            wait_until([&] { return seen->errors > 0; });
          return GST_BUS_PASS;
        };
        const Ref<GstBus> bus(gst_element_get_bus(h.element()));
        gst_bus_set_sync_handler(bus.get(), see, &seen, nullptr);
        const int calls = standin::calls(call);
        standin::fail_call(call, 1, cudaErrorIllegalAddress, true);
        std::thread unblocker([&] {
          wait_until([&] { return standin::calls(call) > calls; });
          blocked.reset();
        });
        fail_unless_equals_int(h.push(frames[2].get()), GST_FLOW_ERROR);
        unblocker.join();
        gst_harness_push_event(h.get(), gst_event_new_eos());
        gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
        fail_unless_equals_int(h.take(GST_MESSAGE_WARNING).size(), strcmp(backend, "auto") ? 0 : 1);
        h.take_one(GST_MESSAGE_ERROR);
      }
      check_nothing_left();
    }
}
GST_END_TEST;

// Frames come in another context, in which nothing can be made.
GST_START_TEST(with_backend_auto_a_context_that_cannot_be_used_is_a_failed_device) {
  Random random = seeded();
  const Failure kRefusals[] = {{"cudaStreamCreateWithFlags", cudaErrorMemoryAllocation},
                               {"cudaFuncGetAttributes", cudaErrorNoKernelImageForDevice}};
  for (const Failure &failure : kRefusals) {
    for (const bool can_stay : {true, false}) {
      Harness h(std::string("mask=gauss5 backend=") + (can_stay ? "auto" : "cuda"));
      set_caps(h, small(), true, true);
      const std::unique_ptr<DeviceMemory> own = DeviceMemory::of(h.element()), other = DeviceMemory::create();
      const Ref<GstBuffer> in = random_frame(small(), random);
      h.filter(own->copy(in.get(), small()).get());
      standin::fail_call(failure.call, 1, failure.error);
      const Ref<GstBuffer> foreign = other->copy(in.get(), small());
      if (can_stay) {
        for (int i = 0; i < 2; i++) {
          const Ref<GstBuffer> out = h.filter(foreign.get());
          assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
        }
        h.take_one(GST_MESSAGE_WARNING);
        fail_unless_equals_uint64(stat(h, "failovers"), 1);
        assert_same_text(stat_string(h, "backend"), "cpu");
      } else {
        fail_unless_equals_int(h.push(foreign.get()), GST_FLOW_ERROR);
        h.take_one(GST_MESSAGE_ERROR);
      }
    }
    check_nothing_left();
  }
}
GST_END_TEST;

// Pushes frames until one is refused: a later push reports the failure of a frame in flight.
GstFlowReturn push_until_refused(Harness &h, Random &random) {
  GstFlowReturn flow = GST_FLOW_OK;
  for (int i = 0; i < 20 && flow == GST_FLOW_OK; i++) {
    flow = h.push(random_frame(small(), random).get());
    h.settle();
  }
  return flow;
}

GST_START_TEST(with_backend_cuda_one_error_names_the_call) {
  Random random = seeded();
  for (const Failure &failure : kFailures) {
    {
      Harness h("backend=cuda mask=gauss5", small());
      h.filter(random_frame(small(), random).get());
      standin::fail_call(failure.call, 1, failure.error);
      fail_unless_equals_int(push_until_refused(h, random), GST_FLOW_ERROR);
      fail_unless_equals_int(gst_harness_buffers_received(h.get()), 1);
      const Report report = h.take_one(GST_MESSAGE_ERROR);
      fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_FAILED);
      fail_unless(strstr(report.text.c_str(), failure.call) != nullptr, "\"%s\" does not name %s", report.text.c_str(),
                  failure.call);
      fail_unless_equals_uint64(stat(h, "failovers"), 0);
    }
    check_nothing_left();
  }
}
GST_END_TEST;

// Checks that frames come out from the first on and in order. Returns their number.
int check_in_order(Harness &h, const std::vector<Ref<GstBuffer>> &in, const char *properties, const char *what, int n) {
  int frames = 0;
  while (GstBuffer *buffer = gst_harness_try_pull(h.get())) {
    const Ref<GstBuffer> out(buffer);
    fail_unless(frames < static_cast<int>(in.size()));
    fail_unless(GST_BUFFER_PTS(buffer) == static_cast<GstClockTime>(frames), "%s, %d: frame %d is lost", what, n,
                frames);
    assert_filtered(in[frames++].get(), buffer, small(), properties);
  }
  return frames;
}

GST_START_TEST(frames_in_flight_are_not_lost_with_the_device) {
  for (const Failure &failure : kFailures) {
    for (int failing = 0; failing < 8; failing++) {
      Random random = seeded();
      {
        Harness h("backend=auto mask=gauss5 frames-in-flight=4", small());
        std::vector<Ref<GstBuffer>> in;
        for (int i = 0; i < 8; i++) {
          in.push_back(random_frame(small(), random));
          GST_BUFFER_PTS(in.back().get()) = i;
          if (i == failing) standin::fail_call(failure.call, 1, failure.error);
          fail_unless_equals_int(h.push(in.back().get()), GST_FLOW_OK);
        }
        fail_unless(gst_harness_push_event(h.get(), gst_event_new_eos()));
        fail_unless_equals_int(check_in_order(h, in, "mask=gauss5", failure.call, failing), 8);
        const Report report = h.take_one(GST_MESSAGE_WARNING);
        // Once the context is lost every call fails. The first report may come from the other thread.
        fail_unless(strstr(report.text.c_str(), cudaGetErrorName(failure.error)) != nullptr, "%s", report.text.c_str());
        fail_unless_equals_uint64(stat(h, "failovers"), 1);
        fail_unless_equals_uint64(stat(h, "frames"), 8);
      }
      check_nothing_left();
    }
  }
}
GST_END_TEST;

GST_START_TEST(whichever_call_fails_the_frames_in_flight_come_out_in_order) {
  for (const char *backend : {"auto", "cuda"}) {
    for (cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorIllegalAddress}) {
      bool failed = true;
      for (int nth = 1; failed; nth++) {
        Random random = seeded();
        standin::reset();
        {
          Harness h(std::string("mask=open frames-in-flight=3 backend=") + backend);
          standin::fail_call("", nth, error);
          h.set_caps(small());
          std::vector<Ref<GstBuffer>> in;
          GstFlowReturn flow = GST_FLOW_OK;
          for (int i = 0; i < 6 && flow == GST_FLOW_OK; i++) {
            in.push_back(random_frame(small(), random));
            GST_BUFFER_PTS(in.back().get()) = i;
            flow = h.push(in.back().get());
          }
          gst_harness_push_event(h.get(), gst_event_new_eos());
          const int out = check_in_order(h, in, "mask=open", backend, nth);
          const size_t errors = h.take(GST_MESSAGE_ERROR).size();
          fail_unless(errors <= 1, "call %d: %zu error messages", nth, errors);
          fail_unless(out == 6 || errors == 1, "call %d: frames are lost without an error", nth);
          fail_unless(errors == 0 || !strcmp(backend, "cuda"), "call %d: the stream ended", nth);
          h.take(GST_MESSAGE_WARNING);
          for (const Ref<GstBuffer> &buffer : in) ASSERT_BUFFER_REFCOUNT(buffer.get(), "in", 1);
          failed = standin::calls() >= nth;
        }
        const standin::LiveObjects live = standin::live_objects();
        fail_unless(live.total() == 0, "call %d: %d objects are left", nth, live.total());
      }
    }
  }
  standin::reset();
}
GST_END_TEST;

// A filter that differs when it is applied once more.
constexpr char kInPlace[] = "mask=box size=5 iterations=2 roi='3,2,9,7; 10,4,30,5'";

// Copies a frame into a buffer of the allocator that the element proposes.
Ref<GstBuffer> in_proposed_memory(Harness &h, GstBuffer *frame) {
  const Ref<GstCaps> caps(gst_video_info_to_caps(&small()));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  GstAllocator *allocator = nullptr;
  fail_unless(gst_query_get_n_allocation_params(query.get()) > 0);
  gst_query_parse_nth_allocation_param(query.get(), 0, &allocator, nullptr);
  const gsize size = gst_buffer_get_size(frame);
  Ref<GstBuffer> buffer(gst_buffer_new_allocate(allocator, size, nullptr));
  gst_clear_object(&allocator);
  GstMapInfo map;
  fail_unless(gst_buffer_map(frame, &map, GST_MAP_READ));
  fail_unless_equals_uint64(gst_buffer_fill(buffer.get(), 0, map.data, map.size), size);
  gst_buffer_unmap(frame, &map);
  return buffer;
}

// Pushes copies of frames in system memory, to which the element has the only reference, while call `nth` of the
// runtime fails. Checks that they come out in order, as `want`. Returns whether call `nth` was made.
bool fails_in_place(const GstVideoInfo &info, const std::vector<Ref<GstBuffer>> &frames,
                    const std::vector<Ref<GstBuffer>> &want, bool pinned, int nth, cudaError_t error) {
  standin::reset();
  Harness h(std::string("backend=auto frames-in-flight=2 ") + kInPlace, info);
  std::vector<Ref<GstBuffer>> given;
  for (const Ref<GstBuffer> &frame : frames) {
    given.push_back(pinned ? in_proposed_memory(h, frame.get()) : Ref<GstBuffer>(gst_buffer_copy_deep(frame.get())));
    GST_BUFFER_PTS(given.back().get()) = given.size();
  }
  const int before = standin::calls();
  standin::fail_call("", nth, error);
  for (Ref<GstBuffer> &buffer : given) fail_unless_equals_int(gst_harness_push(h.get(), buffer.release()), GST_FLOW_OK);
  gst_harness_push_event(h.get(), gst_event_new_eos());
  const bool failed = standin::calls() - before >= nth;
  for (size_t i = 0; i < frames.size(); i++) {
    const Ref<GstBuffer> out = h.pull();
    fail_unless(GST_BUFFER_PTS(out.get()) == i + 1, "call %d: frame %zu is lost", nth, i);
    fail_unless(same_samples(out.get(), want[i].get(), info), "call %d: frame %zu is wrong", nth, i);
  }
  h.take(GST_MESSAGE_WARNING);
  return failed;
}

// After a failure the CPU filters a frame in place from its original pixels, which the device has not overwritten. Of
// two views of stereo, one may be complete.
GST_START_TEST(whichever_call_fails_frames_in_place_are_right) {
  for (const bool in_views : {false, true}) {
    GstVideoInfo info = small();
    if (in_views) GST_VIDEO_INFO_MULTIVIEW_MODE(&info) = GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE;
    Random random = seeded();
    Harness cpu(std::string("backend=cpu ") + kInPlace, info);
    std::vector<Ref<GstBuffer>> frames, want;
    for (int i = 0; i < 3; i++) {
      frames.push_back(random_frame(info, random));
      want.push_back(cpu.filter(frames.back().get()));
    }
    for (const bool pinned : {false, true})
      for (cudaError_t error : {cudaErrorIllegalAddress, cudaErrorMemoryAllocation}) {
        if (in_views && error == cudaErrorMemoryAllocation) continue;
        for (int nth = 1; fails_in_place(info, frames, want, pinned, nth, error); nth++) {
        }
      }
  }
  standin::reset();
}
GST_END_TEST;

GST_START_TEST(with_backend_cuda_frames_in_flight_end_with_one_error) {
  Random random = seeded();
  for (const Failure &failure : kFailures) {
    {
      Harness h("backend=cuda mask=gauss5 frames-in-flight=4", small());
      for (int i = 0; i < 5; i++) fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_OK);
      standin::fail_call(failure.call, 1, failure.error, true);
      fail_unless_equals_int(push_until_refused(h, random), GST_FLOW_ERROR);
      gst_harness_push_event(h.get(), gst_event_new_eos());
      const Report report = h.take_one(GST_MESSAGE_ERROR);
      fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_FAILED);
      // After the failure all calls of both threads fail. The error may name the next call of the other thread.
      const char *const calls[] = {failure.call, "cudaMemcpy2DAsync", "cudaEventQuery"};
      const auto names = [&](const char *name) { return strstr(report.text.c_str(), name) != nullptr; };
      fail_unless(std::any_of(std::begin(calls), std::end(calls), names), "\"%s\" names neither %s nor a later call",
                  report.text.c_str(), failure.call);
      fail_unless(names(cudaGetErrorName(failure.error)), "\"%s\" does not name %s", report.text.c_str(),
                  cudaGetErrorName(failure.error));
    }
    check_nothing_left();
  }
}
GST_END_TEST;

// Earlier frames in flight are pushed before upstream gets the error.
GST_START_TEST(with_backend_cuda_earlier_frames_come_out_before_the_error) {
  Random random = seeded();
  {
    Harness h("backend=cuda mask=gauss5 frames-in-flight=4", small());
    auto blocked = std::make_unique<Blocked>(h);
    std::vector<Ref<GstBuffer>> in;
    for (int i = 0; i < 4; i++) {
      in.push_back(random_frame(small(), random));
      GST_BUFFER_PTS(in.back().get()) = i;
      if (i < 3) fail_unless_equals_int(h.push(in.back().get()), GST_FLOW_OK);
    }
    standin::fail_call("cudaMemcpy2DAsync", 1, cudaErrorInvalidValue);
    std::atomic<bool> returned{false};
    std::atomic<GstFlowReturn> flow{GST_FLOW_OK};
    std::thread pusher([&] {
      flow = h.push(in.back().get());
      returned = true;
    });
    g_usleep(200000);
    const bool too_early = returned;
    blocked.reset();
    pusher.join();
    fail_if(too_early);
    fail_unless_equals_int(flow, GST_FLOW_ERROR);
    fail_unless_equals_int(check_in_order(h, in, "mask=gauss5", "cudaMemcpy2DAsync", 3), 3);
    h.take_one(GST_MESSAGE_ERROR);
  }
  check_nothing_left();
}
GST_END_TEST;

// Each frame is filtered on the CPU with the settings that it had on the device.
GST_START_TEST(frames_in_flight_keep_their_settings_when_the_device_fails) {
  const char *masks[] = {"mask=gauss5", "mask=sobel", "mask=dilate", "mask=box3"};
  Random random = seeded();
  {
    Harness h("backend=auto frames-in-flight=4", small());
    auto blocked = std::make_unique<Blocked>(h);
    std::vector<Ref<GstBuffer>> in;
    for (const char *mask : masks) {
      h.set(mask);
      in.push_back(random_frame(small(), random));
      fail_unless_equals_int(h.push(in.back().get()), GST_FLOW_OK);
    }
    // The first frame waits in the blocked pad; the others are on the device.
    standin::fail_call("", 1, cudaErrorIllegalAddress);
    blocked.reset();
    for (int i = 0; i < 4; i++) {
      const Ref<GstBuffer> out = h.pull();
      assert_filtered(in[i].get(), out.get(), small(), masks[i]);
    }
    h.take_one(GST_MESSAGE_WARNING);
  }
  check_nothing_left();
}
GST_END_TEST;

// The device fails on a frame in flight while settings change: at the warning of a setting without effect, the new
// settings are ready, and not yet in force.
GST_START_TEST(settings_change_while_the_device_fails) {
  Random random = seeded();
  {
    Harness h("backend=auto mask=gauss5 frames-in-flight=4", small());
    struct Failing {
      std::unique_ptr<Blocked> blocked;
      std::atomic<bool> failed{false};
    } failing;
    failing.blocked = std::make_unique<Blocked>(h);
    std::vector<Ref<GstBuffer>> in;
    for (int i = 0; i < 5; i++) in.push_back(random_frame(small(), random));
    for (int i = 0; i < 3; i++) fail_unless_equals_int(h.push(in[i].get()), GST_FLOW_OK);
    const Ref<GstBus> bus(gst_element_get_bus(h.element()));
    const auto see = [](GstBus *, GstMessage *message, gpointer data) {
      auto *failing = static_cast<Failing *>(data);
      if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_WARNING) return GST_BUS_PASS;
      if (report_of(message).domain == GST_RESOURCE_ERROR) failing->failed = true;
      if (failing->failed) return GST_BUS_PASS;
      standin::fail_call("", 1, cudaErrorIllegalAddress);
      failing->blocked.reset();
      wait_until([&] { return failing->failed.load(); });
      return GST_BUS_PASS;
    };
    gst_bus_set_sync_handler(bus.get(), see, &failing, nullptr);
    h.set("mask=sobel sigma=3");
    for (int i = 3; i < 5; i++) fail_unless_equals_int(h.push(in[i].get()), GST_FLOW_OK);
    for (int i = 0; i < 5; i++) {
      const Ref<GstBuffer> out = h.pull();
      assert_filtered(in[i].get(), out.get(), small(), i < 3 ? "mask=gauss5" : "mask=sobel");
    }
    fail_unless(failing.failed);
    gst_bus_set_sync_handler(bus.get(), nullptr, nullptr, nullptr);
    fail_unless_equals_int(h.take(GST_MESSAGE_WARNING).size(), 2);
    fail_unless_equals_uint64(stat(h, "failovers"), 1);
  }
  check_nothing_left();
}
GST_END_TEST;

bool has_context(GstElement *element) {
  const Ref<GstQuery> query(gst_query_new_context("gst.cuda.context"));
  const Ref<GstPad> pad(gst_element_get_static_pad(element, "src"));
  return gst_pad_query(pad.get(), query.get());
}

// In state NULL the element holds nothing of the device, even if it never reached READY.
GST_START_TEST(an_element_in_null_holds_no_device) {
  const Ref<GstElement> element = new_element("backend=cuda", false);
  GstElementClass *base = GST_ELEMENT_CLASS(g_type_class_peek_parent(G_OBJECT_GET_CLASS(element.get())));
  const auto change_state = base->change_state;
  base->change_state = [](GstElement *, GstStateChange) { return GST_STATE_CHANGE_FAILURE; };
  const GstStateChangeReturn failed = gst_element_set_state(element.get(), GST_STATE_READY);
  base->change_state = change_state;
  fail_unless_equals_int(failed, GST_STATE_CHANGE_FAILURE);
  fail_unless_equals_int(standin::live_objects().total(), 0);
  fail_if(has_context(element.get()));

  fail_unless_equals_int(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  fail_unless(standin::live_objects().total() > 0 && has_context(element.get()));
  fail_unless_equals_int(gst_element_set_state(element.get(), GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
  fail_unless_equals_int(standin::live_objects().total(), 0);
  fail_if(has_context(element.get()));
  gst_element_set_bus(element.get(), nullptr);
  check_nothing_left();
}
GST_END_TEST;

// The compositor of GStreamer 1.22 never releases an allocator that is proposed to it.
GST_START_TEST(an_allocator_that_upstream_keeps_holds_no_device) {
  g_setenv("CUDACONV_TEST_STREAMS", "1", TRUE);  // each device has a stream, which is counted
  const GstVideoInfo info = small();
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  {
    Harness h("mask=gauss5", info);
    fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  }
  check_nothing_left();
  GstAllocator *allocator;
  gst_query_parse_nth_allocation_param(query.get(), 0, &allocator, nullptr);
  const Ref<GstAllocator> kept(allocator);
  GstMemory *const memory = gst_allocator_alloc(kept.get(), 100, nullptr);
  fail_unless(memory != nullptr);
  check_nothing_left();  // it is plain memory
  gst_memory_unref(memory);
  g_unsetenv("CUDACONV_TEST_STREAMS");
}
GST_END_TEST;

// All of a GstMemory is pinned, also its hidden bytes before the offset, and nothing behind it.
GST_START_TEST(memory_is_pinned_from_its_first_byte_to_its_last) {
  constexpr gsize kHidden = 64 << 10;
  const GstVideoInfo info = video_info("NV12", 256, 172);
  Random random = seeded();
  {
    Harness h("mask=gauss5 method=constant", info);
    const Ref<GstBuffer> frame = random_frame(info, random);
    const FrameBytes picture(frame.get(), info);
    const gsize size = picture.bytes.size();
    GstMemory *memory = gst_allocator_alloc(nullptr, kHidden + size, nullptr);
    GstMapInfo map;
    fail_unless(gst_memory_map(memory, &map, GST_MAP_WRITE));
    guint8 *const first = map.data;
    memcpy(first + kHidden, picture.bytes.data(), size);
    gst_memory_unmap(memory, &map);
    gst_memory_resize(memory, kHidden, size);
    const Ref<GstBuffer> in(gst_buffer_new());
    gst_buffer_append_memory(in.get(), memory);
    for (int i = 0; i < 4; i++) {
      const Ref<GstBuffer> out = h.filter(in.get());
      assert_filtered(frame.get(), out.get(), info, "mask=gauss5");
    }
    gsize whole;
    gst_memory_get_sizes(memory, nullptr, &whole);
    const auto is_pinned = [](guint8 *byte) {
      cudaPointerAttributes attributes = {};
      return cudaPointerGetAttributes(&attributes, byte) == cudaSuccess && attributes.type == cudaMemoryTypeHost;
    };
    fail_unless(is_pinned(first) && is_pinned(first + kHidden) && is_pinned(first + kHidden + size - 1));
    fail_if(is_pinned(first + whole));
    // Small memories are not pinned, since they share their pages with others.
    h.set_caps(small());
    const Ref<GstBuffer> little = random_frame(small(), random);
    for (int i = 0; i < 4; i++) h.filter(little.get());
    fail_unless(gst_buffer_map(little.get(), &map, GST_MAP_READ));
    const bool shares = is_pinned(map.data);
    gst_buffer_unmap(little.get(), &map);
    fail_if(shares);
  }
  check_nothing_left();
}
GST_END_TEST;

// Like GStreamer's own allocator, the proposed one clears padding where it is asked to.
GST_START_TEST(padding_of_pinned_memory_is_cleared) {
  const GstVideoInfo info = small();
  Harness h("mask=gauss5", info);
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  GstAllocator *proposed = nullptr;
  gst_query_parse_nth_allocation_param(query.get(), 0, &proposed, nullptr);
  const Ref<GstAllocator> allocator(proposed);
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  params.flags = GST_MEMORY_FLAG_ZERO_PADDED;
  params.padding = 64;
  for (int i = 0; i < 2; i++) {  // the second one where the first was
    GstMemory *memory = gst_allocator_alloc(allocator.get(), 100, &params);
    gst_memory_resize(memory, 0, 164);
    GstMapInfo map;
    fail_unless(gst_memory_map(memory, &map, GST_MAP_READWRITE));
    for (int at = 100; at < 164; at++) fail_unless_equals_int(map.data[at], 0);
    memset(map.data, 0xff, map.size);
    gst_memory_unmap(memory, &map);
    gst_memory_unref(memory);
  }
}
GST_END_TEST;

// Allocations take the driver long, so none are made while frames flow.
GST_START_TEST(once_frames_flow_nothing_is_allocated) {
  Random random = seeded();
  const struct {
    const char *properties;
    int in_flight;
  } cases[] = {{"frames-in-flight=1", 0},
               {"frames-in-flight=4", 4},
               {"frames-in-flight=3 mask=open iterations=3", 3},
               {"frames-in-flight=2 roi='2,2,8,8'", 2}};
  for (const auto &c : cases) {
    {
      Harness h(c.properties, small());
      std::vector<Ref<GstBuffer>> in;
      for (int i = 0; i < 5; i++) in.push_back(random_frame(small(), random));
      const auto allocations = [] {
        int calls = 0;
        for (const char *call : {"cudaMalloc", "cudaHostAlloc", "cudaHostRegister", "cudaEventCreateWithFlags",
                                 "cudaStreamCreateWithFlags", "cudaFree", "cudaFreeHost"})
          calls += standin::calls(call);
        return calls;
      };
      // First the largest possible number of frames: on the device, one in the blocked pad, and one that waits for a
      // slot.
      auto blocked = std::make_unique<Blocked>(h);
      std::atomic<int> pushed{0};
      std::thread pusher([&] {
        for (; pushed < c.in_flight + 2; pushed++) h.push(in[pushed % in.size()].get());
      });
      const int most = c.in_flight ? c.in_flight + 1 : 0;
      wait_until([&] { return pushed >= most; });
      g_usleep(50000);
      blocked.reset();
      pusher.join();
      int before = 0;
      for (int i = 0; i < 40; i++) {
        if (i == 15) before = allocations();
        fail_unless_equals_int(h.push(in[i % in.size()].get()), GST_FLOW_OK);
        while (GstBuffer *out = gst_harness_try_pull(h.get())) gst_buffer_unref(out);
      }
      fail_unless_equals_int(allocations(), before);
    }
    check_nothing_left();
  }
}
GST_END_TEST;

GST_START_TEST(a_device_that_cannot_run_the_kernels_counts_as_none) {
  Random random = seeded();
  {
    standin::fail_call("cudaFuncGetAttributes", 1, cudaErrorNoKernelImageForDevice);
    Harness h("backend=auto mask=gauss5", small());
    const Report report = h.take_one(GST_MESSAGE_INFO);
    fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_NOT_FOUND);
    const Ref<GstBuffer> in = random_frame(small(), random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
    assert_same_text(stat_string(h, "backend"), "cpu");
    fail_unless_equals_uint64(stat(h, "failovers"), 0);
  }
  standin::fail_call("cudaFuncGetAttributes", 1, cudaErrorNoKernelImageForDevice);
  const Ref<GstElement> element = new_element("backend=cuda");
  fail_unless_equals_int(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  const std::vector<Ref<GstMessage>> errors = take_messages(element.get(), GST_MESSAGE_ERROR);
  fail_unless_equals_int(errors.size(), 1);
  const Report report = report_of(errors[0].get());
  fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_NOT_FOUND);
  fail_unless(strstr(report.text.c_str(), "no kernel image") != nullptr, "%s", report.text.c_str());
  gst_element_set_state(element.get(), GST_STATE_NULL);
  gst_element_set_bus(element.get(), nullptr);
  check_nothing_left();
}
GST_END_TEST;

GST_START_TEST(a_machine_without_devices_says_so) {
  const std::string devices = g_getenv("CUDACONV_STANDIN_DEVICES");
  g_setenv("CUDACONV_STANDIN_DEVICES", "0", TRUE);
  standin::reset();
  {
    // Downstream takes only CUDA memory. The error is posted once for each start.
    Harness h("backend=cpu");
    gst_harness_set_sink_caps(h.get(), device_caps(small()).release());
    const Ref<GstCaps> caps(gst_video_info_to_caps(&small()));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    for (int start = 0; start < 2; start++) {
      gst_harness_push_event(h.get(), gst_event_new_stream_start("test"));
      gst_harness_push_event(h.get(), gst_event_new_caps(caps.get()));
      gst_harness_push_event(h.get(), gst_event_new_segment(&segment));
      Random random = seeded();
      for (int i = 0; i < 3; i++)
        fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_NOT_NEGOTIATED);
      const Report report = h.take_one(GST_MESSAGE_ERROR);
      fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_NOT_FOUND);
      fail_unless(strstr(report.text.c_str(), "CUDA memory") != nullptr, "%s", report.text.c_str());
      gst_element_set_state(h.element(), GST_STATE_READY);
      gst_element_set_state(h.element(), GST_STATE_PLAYING);
    }
  }
  {
    const Ref<GstElement> element = new_element("backend=cuda");
    fail_unless_equals_int(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
    const std::vector<Ref<GstMessage>> errors = take_messages(element.get(), GST_MESSAGE_ERROR);
    fail_unless_equals_int(errors.size(), 1);
    const Report report = report_of(errors[0].get());
    fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_NOT_FOUND);
    gst_element_set_state(element.get(), GST_STATE_NULL);
    gst_element_set_bus(element.get(), nullptr);
  }
  g_setenv("CUDACONV_STANDIN_DEVICES", devices.c_str(), TRUE);
  standin::reset();
}
GST_END_TEST;

// Starts an element, pushes frames and stops it, while call `nth` of the CUDA runtime fails. Checks that frames that
// come out are right, and that no frame is missing without an error message. Returns whether call `nth` was made.
bool run_with_failure(int nth, cudaError_t error, const std::string &mask, const char *backend, bool on_device) {
  Random random = seeded();
  standin::reset();
  standin::fail_call("", nth, error);
  {
    Ref<GstElement> element = new_element(mask + " backend=" + backend);
    if (gst_element_set_state(element.get(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
      fail_unless_equals_int(take_messages(element.get(), GST_MESSAGE_ERROR).size(), 1);
      fail_unless_equals_string(backend, "cuda");
      gst_element_set_state(element.get(), GST_STATE_NULL);
      gst_element_set_bus(element.get(), nullptr);
    } else {
      Harness h(std::move(element));
      const bool can_stay = !strcmp(backend, "cuda");
      set_caps(h, small(), on_device, on_device);
      int frames = 0, errors = 0;
      for (int i = 0; i < 3 && !errors; i++) {
        const Ref<GstBuffer> in = random_frame(small(), random);
        GstFlowReturn flow = h.push(in.get());
        h.settle();
        const Ref<GstBuffer> out(gst_harness_try_pull(h.get()));
        if (flow == GST_FLOW_OK && !out) flow = h.push(in.get());
        if (flow == GST_FLOW_OK) {
          frames++;
          fail_unless(out != nullptr, "call %d: frame %d is lost", nth, i);
          // A frame in failed device memory cannot be mapped, so it cannot be compared.
          GstMapInfo map;
          if (!gst_buffer_map(out.get(), &map, GST_MAP_READ)) continue;
          gst_buffer_unmap(out.get(), &map);
          assert_filtered(in.get(), out.get(), small(), mask);
        } else {
          fail_unless(flow == GST_FLOW_ERROR || flow == GST_FLOW_NOT_NEGOTIATED);
          fail_unless_equals_int(gst_harness_buffers_in_queue(h.get()), 0);
          errors = static_cast<int>(h.take(GST_MESSAGE_ERROR).size());
          fail_unless(errors == 1, "call %d: %d error messages, %s", nth, errors, gst_flow_get_name(flow));
        }
      }
      // With frames in device memory the stream may end when the device fails.
      fail_unless(frames == 3 || can_stay || on_device, "call %d: the stream ended", nth);
      h.take(GST_MESSAGE_WARNING);
    }
  }
  const bool failed = standin::calls() >= nth;
  const standin::LiveObjects live = standin::live_objects();
  fail_unless(live.total() == 0,
              "%s, %s, on device %d, %s, call %d: %d device, %d host, %d streams, %d events, %d graphs are left",
              mask.c_str(), backend, on_device, cudaGetErrorName(error), nth, live.device, live.host, live.streams,
              live.events, live.graphs);
  standin::reset();
  return failed;
}

GST_START_TEST(whichever_call_fails_no_frame_is_wrong_and_nothing_leaks) {
  for (const char *backend : {"auto", "cuda"}) {
    for (bool on_device : {false, true}) {
      for (cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorIllegalAddress}) {
        int nth = 1;
        while (run_with_failure(nth, error, "mask=open", backend, on_device)) nth++;
        fail_unless(nth > 20, "only %d calls were made", nth);
      }
    }
  }
}
GST_END_TEST;

// Masks of several passes need memory for temporary frames, whose allocation may fail.
GST_START_TEST(whichever_call_fails_frames_of_several_passes_are_right) {
  for (const char *mask : {"mask=gauss sigma=12", "mask=tophat shape=cross size=7"})
    for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorIllegalAddress})
      for (int nth = 1; run_with_failure(nth, error, mask, "auto", false); nth++) {
      }
}
GST_END_TEST;

// Any thread may ask for the latency.
GST_START_TEST(the_latency_is_asked_for_while_caps_come_and_go) {
  {
    const Ref<GstElement> element = new_element("");
    const gst::Properties properties;
    gst::Messages messages(element.get());
    gst::Session session(element.get(), properties, messages);
    fail_unless(session.engines().open());
    std::atomic<bool> ended{false};
    std::thread asks([&] {
      while (!ended) session.longest_wait();
    });
    const GstVideoInfo info = video_info("GRAY8", 16, 16);
    for (int i = 0; i < 50000; i++) {
      fail_unless(session.start() && session.configure(info, false, false));
      session.stop();
    }
    ended = true;
    asks.join();
    session.engines().close();
  }
  check_nothing_left();
}
GST_END_TEST;

// Memory on the host runs out while a frame is filtered: the device no longer uses the frame once it is dropped, and
// nothing of it is left.
GST_START_TEST(a_frame_without_memory_leaves_nothing_behind) {
  Random random = seeded();
  long n = 0;
  for (const bool in_place : {true, false})
    for (n = 1;; n++) {
      bool failed;
      {
        Harness h("mask=gauss5 roi='4,4,20,16' frames-in-flight=1", small());
        h.filter(random_frame(small(), random).get());
        Ref<GstBuffer> frame = random_frame(small(), random);
        failed =
            with_failing_new(n, [&] { in_place ? gst_harness_push(h.get(), frame.release()) : h.push(frame.get()); });
        fail_unless_equals_int(h.take(GST_MESSAGE_ERROR).size(), failed && !gst_harness_buffers_in_queue(h.get()));
        while (GstBuffer *out = gst_harness_try_pull(h.get())) gst_buffer_unref(out);
        check_frame(h, random_frame(small(), random).get(), small(), "mask=gauss5", {{{4, 4, 20, 16}}});
      }
      check_nothing_left();
      if (!failed) break;
    }
  fail_unless(n > 10);
}
GST_END_TEST;

// Device memory runs out while the first of two elements in a row gets buffers for its output.
GST_START_TEST(elements_in_a_row_without_device_memory_leave_nothing_behind) {
  Random random = seeded();
  for (int n = 1; n <= 12; n++) {
    {
      const Ref<GstElement> chain(GST_ELEMENT(gst_object_ref_sink(
          gst_parse_bin_from_description("cudaconv mask=gauss5 ! cudaconv mask=sobel", TRUE, nullptr))));
      GstHarness *h = gst_harness_new_with_element(chain.get(), "sink", "src");
      gst_harness_set_sink_caps(h, gst_video_info_to_caps(&small()));
      gst_harness_set_src_caps(h, gst_video_info_to_caps(&small()));
      standin::fail_call("cudaMalloc", n, cudaErrorMemoryAllocation);
      gst_harness_push(h, random_frame(small(), random).release());
      gst_harness_teardown(h);
    }
    check_nothing_left();
  }
}
GST_END_TEST;

// The allocator that the element proposes is called by other elements, which no exception may reach.
GST_START_TEST(pinned_memory_without_memory_for_its_mark_is_plain_memory) {
  {
    Harness h("", small());
    const Ref<GstCaps> caps(gst_video_info_to_caps(&small()));
    const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
    fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
    GstAllocator *allocator = nullptr;
    gst_query_parse_nth_allocation_param(query.get(), 0, &allocator, nullptr);
    const Ref<GstAllocator> owned(allocator);
    fail_unless(allocator != nullptr);
    GstMemory *memory = nullptr;
    fail_unless(with_failing_new(1, [&] { memory = gst_allocator_alloc(allocator, 1000, nullptr); }));
    fail_unless(memory != nullptr);
    gst_memory_unref(memory);
  }
  check_nothing_left();
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("failures");
  TCase *tc = tcase_create("general");
  // A failed test must not leave failing calls to the next test, which would wait for its frames for ever.
  tcase_add_checked_fixture(tc, standin::reset, nullptr);
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, with_backend_auto_the_cpu_filters_the_same_frame_and_goes_on);
  tcase_add_test(tc, with_backend_auto_the_next_start_tries_the_device_again);
  tcase_add_test(tc, the_next_start_does_not_try_the_context_that_failed);
  tcase_add_test(tc, a_failed_context_is_no_longer_shared);
  tcase_add_test(tc, with_backend_auto_frames_in_device_memory_are_not_lost_either);
  tcase_add_test(tc, the_frame_behind_a_lost_one_is_a_discontinuity);
  tcase_add_test(tc, with_backend_auto_memory_that_cannot_be_mapped_is_a_failed_device);
  tcase_add_test(tc, with_backend_auto_another_context_does_not_undo_a_failure);
  tcase_add_test(tc, with_backend_cuda_a_lost_device_is_one_error_in_all_contexts);
  tcase_add_test(tc, with_backend_cuda_a_lost_device_is_one_error_in_place_too);
  tcase_add_test(tc, whoever_notices_a_lost_device_there_is_one_error);
  tcase_add_test(tc, with_backend_auto_a_context_that_cannot_be_used_is_a_failed_device);
  tcase_add_test(tc, with_backend_cuda_one_error_names_the_call);
  tcase_add_test(tc, frames_in_flight_are_not_lost_with_the_device);
  tcase_add_test(tc, whichever_call_fails_the_frames_in_flight_come_out_in_order);
  tcase_add_test(tc, whichever_call_fails_frames_in_place_are_right);
  tcase_add_test(tc, with_backend_cuda_frames_in_flight_end_with_one_error);
  tcase_add_test(tc, with_backend_cuda_earlier_frames_come_out_before_the_error);
  tcase_add_test(tc, frames_in_flight_keep_their_settings_when_the_device_fails);
  tcase_add_test(tc, settings_change_while_the_device_fails);
  tcase_add_test(tc, the_latency_is_asked_for_while_caps_come_and_go);
  tcase_add_test(tc, an_element_in_null_holds_no_device);
  tcase_add_test(tc, an_allocator_that_upstream_keeps_holds_no_device);
  tcase_add_test(tc, padding_of_pinned_memory_is_cleared);
  tcase_add_test(tc, memory_is_pinned_from_its_first_byte_to_its_last);
  tcase_add_test(tc, once_frames_flow_nothing_is_allocated);
  tcase_add_test(tc, a_device_that_cannot_run_the_kernels_counts_as_none);
  tcase_add_test(tc, a_machine_without_devices_says_so);
  tcase_add_test(tc, whichever_call_fails_no_frame_is_wrong_and_nothing_leaks);
  tcase_add_test(tc, whichever_call_fails_frames_of_several_passes_are_right);
  tcase_add_test(tc, a_frame_without_memory_leaves_nothing_behind);
  tcase_add_test(tc, elements_in_a_row_without_device_memory_leave_nothing_behind);
  tcase_add_test(tc, pinned_memory_without_memory_for_its_mark_is_plain_memory);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "failures", make_suite, true);
}
