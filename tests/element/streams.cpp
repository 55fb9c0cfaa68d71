// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests CUDA memory that belongs to streams, on the stand-in: which side waits. Also tests what a flush forgets.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "devicememory.h"
#include "standin.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

// With frames-in-flight=1 the element waits for a frame before it pushes it. A reader then does not wait.
GST_START_TEST(readers_do_not_wait_for_complete_frames) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  {
    Harness h("mask=gauss5 frames-in-flight=1");
    set_caps(h, info, true, true);
    const Ref<GstBuffer> in = random_frame(info, random);
    const Ref<GstBuffer> out = h.filter(DeviceMemory::of(h.element())->copy(in.get(), info).get());
    const int before = standin::calls("cudaStreamSynchronize");
    GstMapInfo map;
    fail_unless(gst_buffer_map(out.get(), &map, GST_MAP_READ));
    gst_buffer_unmap(out.get(), &map);
    fail_unless_equals_int(standin::calls("cudaStreamSynchronize"), before);
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
  }
  standin::reset();
}
GST_END_TEST;

// Mapping CUDA memory uploads on its stream what the CPU has written, and does not wait.
GST_START_TEST(pixels_that_the_cpu_wrote_are_awaited) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  for (const bool device_out : {false, true}) {
    Harness h("mask=gauss5");
    set_caps(h, info, true, device_out);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> in = random_frame(info, random);
      const Ref<GstBuffer> out = h.filter(device->copy(in.get(), info).get());
      assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    }
  }
  standin::reset();
}
GST_END_TEST;

// Behind a tee another branch may be waiting for the frame. It has marked the frame as complete, which it is not yet.
GST_START_TEST(frames_that_another_branch_waits_for_are_awaited) {
  constexpr int kMapDevice = GST_MAP_FLAG_LAST << 1;  // GST_MAP_CUDA
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  {
    Harness h("mask=gauss5");
    set_caps(h, info, true, true);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
    const Ref<GstBuffer> in = random_frame(info, random), pending = device->copy(in.get(), info);
    GstMapInfo map;  // begins the upload
    fail_unless(gst_buffer_map(pending.get(), &map, static_cast<GstMapFlags>(GST_MAP_READ | kMapDevice)));
    gst_buffer_unmap(pending.get(), &map);
    device->forget_pending(pending.get());
    const Ref<GstBuffer> out = h.filter(pending.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
  }
  standin::reset();
}
GST_END_TEST;

// A pool of one buffer, from which an upstream element takes each of its frames.
Ref<GstBufferPool> pool_of_one(DeviceMemory &device, const GstVideoInfo &info) {
  Ref<GstBufferPool> pool(device.new_pool(info));
  gst_buffer_pool_set_active(pool.get(), FALSE);
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  GstCaps *caps;
  guint size;
  gst_buffer_pool_config_get_params(config, &caps, &size, nullptr, nullptr);
  gst_buffer_pool_config_set_params(config, caps, size, 1, 1);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config) && gst_buffer_pool_set_active(pool.get(), TRUE));
  return pool;
}

Ref<GstBuffer> take(GstBufferPool *pool) {
  GstBuffer *buffer = nullptr;
  fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
  return Ref<GstBuffer>(buffer);
}

// The bytes of a frame as they are in memory of the device.
std::vector<guint8> bytes_on_device(DeviceMemory &device, GstBuffer *frame, const GstVideoInfo &info) {
  const Ref<GstBuffer> copy = device.copy(frame, info);
  std::vector<guint8> bytes(gst_buffer_get_size(copy.get()));
  gst_buffer_extract(copy.get(), 0, bytes.data(), bytes.size());
  return bytes;
}

// Where one stream orders all work, frames leave before the GPU has run, and their input is written again at once.
GST_START_TEST(frames_leave_in_the_order_of_their_stream) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  for (const char *properties : {"mask=gauss5", "mask=open size=9", "mask=gauss sigma=20", "mask=median size=15",
                                 "mask=gauss5 roi=8,8,20,20", "mask=gauss5 roi=8,8,40,8,24,40", "mask=identity"}) {
    {
      Harness h(properties);
      set_caps(h, info, true, true);
      const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
      const Ref<GstBufferPool> pool = pool_of_one(*device, info);
      std::vector<Ref<GstBuffer>> in, out;
      std::vector<std::vector<guint8>> bytes;
      const auto filter = [&] {
        in.push_back(random_frame(info, random));
        bytes.push_back(bytes_on_device(*device, in.back().get(), info));
        const Ref<GstBuffer> frame = take(pool.get());
        device->write_in_order(frame.get(), bytes.back());
        out.push_back(h.filter(frame.get()));
      };
      const bool passes = strstr(properties, "identity") != nullptr;  // and keeps the pool's only buffer
      for (int i = 0; i < (passes ? 1 : 20); i++) filter();
      Harness cpu(std::string("backend=cpu ") + properties, info);
      for (size_t i = 0; i < in.size(); i++)
        fail_unless(same_samples(cpu.filter(in[i].get()).get(), out[i].get(), info), "%s: frame %zu", properties, i);
    }
    standin::reset();
  }
}
GST_END_TEST;

// What the CPU writes is uploaded without waiting, so the CPU may write it again only after that.
GST_START_TEST(frames_that_the_cpu_writes_are_held) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  {
    Harness h("mask=gauss5");
    set_caps(h, info, true, true);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
    const Ref<GstBufferPool> pool = pool_of_one(*device, info);
    std::vector<Ref<GstBuffer>> in, out;
    for (int i = 0; i < 10; i++) {
      in.push_back(random_frame(info, random));
      const std::vector<guint8> bytes = bytes_on_device(*device, in.back().get(), info);
      const Ref<GstBuffer> frame = take(pool.get());
      gst_buffer_fill(frame.get(), 0, bytes.data(), bytes.size());
      fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
      out.push_back(h.pull());
    }
    for (size_t i = 0; i < in.size(); i++) assert_filtered(in[i].get(), out[i].get(), info, "mask=gauss5");
  }
  standin::reset();
}
GST_END_TEST;

// Frames of the first stream leave, frames of another one are waited for. After many frames the element changes over to
// the other stream.
GST_START_TEST(frames_of_two_streams) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  {
    Harness h("mask=gauss5");
    set_caps(h, info, true, true);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
    const Ref<GstBufferPool> pools[] = {pool_of_one(*device, info), pool_of_one(*device, info)};
    std::vector<Ref<GstBuffer>> in, out;
    std::vector<std::vector<guint8>> bytes;
    for (int i = 0; i < 150; i++) {
      in.push_back(random_frame(info, random));
      bytes.push_back(bytes_on_device(*device, in.back().get(), info));
      const Ref<GstBuffer> frame = take(pools[i < 20 ? i % 2 : 1].get());
      device->write_in_order(frame.get(), bytes.back());
      fail_unless_equals_int(h.push(frame.get()), GST_FLOW_OK);
      out.push_back(h.pull());
    }
    for (size_t i = 0; i < in.size(); i++) assert_filtered(in[i].get(), out[i].get(), info, "mask=gauss5");
  }
  standin::reset();
}
GST_END_TEST;

// A flush forgets downstream's flow return for an earlier frame.
GST_START_TEST(a_flush_forgets_what_downstream_returned) {
  Random random = seeded();
  {
    Harness h("mask=gauss5 frames-in-flight=4", small());
    const gulong probe = gst_pad_add_probe(
        h.get()->sinkpad, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad *, GstPadProbeInfo *info, gpointer) {
          gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
          GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_NOT_LINKED;
          return GST_PAD_PROBE_HANDLED;
        },
        nullptr, nullptr);
    fail_unless_equals_int(h.push(random_frame(small(), random).get()), GST_FLOW_OK);
    h.settle();
    gst_pad_remove_probe(h.get()->sinkpad, probe);
    push_event(h, gst_event_new_flush_start());
    push_event(h, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    push_event(h, gst_event_new_segment(&segment));
    const Ref<GstBuffer> in = random_frame(small(), random);
    fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
    const Ref<GstBuffer> out = h.pull();
    assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
  }
  standin::reset();
}
GST_END_TEST;

// Counts the driver calls for sixteen frames, after the first frames: launches, copies and the order of streams, no
// more than needed. One frame in sixteen is timed, which takes two more records. The kernels are one graph, but in a
// frame that is timed. Frames on the device are all on one stream: none waits, at most one event a frame tells how far
// the GPU is behind, and polls are few.
GST_START_TEST(a_frame_asks_little_of_the_driver) {
  struct Kind {
    const char *properties, *format;
    bool on_device;
    int launches, copies, records, waits;
  };
  constexpr int kFrames = 16, kTimed = 2;
  const Kind kinds[] = {
      {"mask=gauss5", "NV12", true, 1, 0, 1, 0},
      {"mask=gauss7", "RGBA", true, 1, 0, 1, 0},
      {"mask=open size=3", "RGBA", true, 1, 0, 1, 0},
      {"mask=gauss sigma=20", "RGBA", true, 4, 0, 1, 0},
      {"mask=gauss5 roi=8,8,20,20", "RGBA", true, 3, 0, 1, 0},  // launches: copy, filter, put in place
      // The lists of a region that stays as it is are on the device.
      {"mask=gauss5 roi=8,8,40,8,24,40", "RGBA", true, 3, 0, 1, 0},
      {"mask=gauss5", "NV12", false, 1, 4, 3, 2},  // copies: each plane up and down
  };
  Random random = seeded();
  for (const Kind &kind : kinds) {
    const GstVideoInfo info = video_info(kind.format, 64, 48);
    Harness h(kind.properties);
    set_caps(h, info, kind.on_device, kind.on_device);
    Ref<GstBuffer> frame = random_frame(info, random);
    if (kind.on_device) frame = DeviceMemory::of(h.element())->copy(frame.get(), info);
    const auto filter = [&] {
      for (int i = 0; i < kFrames; i++) h.filter(frame.get());
      h.settle();
    };
    for (int i = 0; i < 3; i++) filter();  // a graph is made after the frames that are all timed
    std::map<std::string, int> expected = {
        {"cudaLaunchKernel", kind.launches * kFrames},
        {"cudaMemcpyAsync", kind.on_device ? kind.copies * kFrames : 0},
        {"cudaMemcpy2DAsync", kind.on_device ? 0 : kind.copies * kFrames},
        {"cudaEventRecord", kind.records * kFrames + kTimed},
        {"cudaStreamWaitEvent", kind.waits * kFrames},
        {"cudaStreamIsCapturing", kFrames},
        {"cudaEventElapsedTime", 1},
        {"cudaGraphLaunch", kFrames},
        {"cudaGraphExecKernelNodeSetParams", kind.launches * kFrames},
    };
    const std::string poll = "cudaEventQuery";
    std::map<std::string, int> before;
    for (const auto &[name, count] : expected) before[name] = standin::calls(name);
    const auto others = [&] {
      int count = standin::calls();
      for (const auto &[name, unused] : expected) count -= standin::calls(name);
      return count - standin::calls(poll);
    };
    const int others_before = others();
    filter();
    for (const auto &[name, count] : expected) {
      const int calls = standin::calls(name) - before[name];
      const bool of_graphs = name.find("Graph") != name.npos;
      int least = count;
      if (of_graphs) least = count / kFrames * (kFrames - 1);
      if (kind.on_device && (name == "cudaEventRecord" || name == "cudaEventElapsedTime")) least = 0;
      fail_unless(least <= calls && calls <= count, "%s %s: %d %s", kind.properties, kind.format, calls, name.c_str());
    }
    fail_unless_equals_int(others() - others_before, 0);
  }
  standin::reset();
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("streams");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, readers_do_not_wait_for_complete_frames);
  tcase_add_test(tc, pixels_that_the_cpu_wrote_are_awaited);
  tcase_add_test(tc, frames_that_another_branch_waits_for_are_awaited);
  tcase_add_test(tc, frames_leave_in_the_order_of_their_stream);
  tcase_add_test(tc, frames_that_the_cpu_writes_are_held);
  tcase_add_test(tc, frames_of_two_streams);
  tcase_add_test(tc, a_flush_forgets_what_downstream_returned);
  tcase_add_test(tc, a_frame_asks_little_of_the_driver);
  return suite;
}

int main(int argc, char **argv) {
  g_setenv("CUDACONV_TEST_STREAMS", "1", TRUE);
  return run_suite(argc, argv, "streams", make_suite, true);
}
