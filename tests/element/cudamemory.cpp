// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the element with CUDA memory at its input, its output, or both.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "devicememory.h"
#include "formats.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

Ref<GstCaps> caps_of(const GstVideoInfo &info, bool on_device) {
  return on_device ? device_caps(info) : Ref<GstCaps>(gst_video_info_to_caps(&info));
}

// A harness with caps of device memory or of system memory on either side.
std::unique_ptr<Harness> harness_between(const std::string &properties, const GstVideoInfo &info, bool device_in,
                                         bool device_out) {
  auto h = std::make_unique<Harness>(properties);
  set_caps(*h, info, device_in, device_out);
  return h;
}

// Filters frames in the given kinds of memory. Fails the test unless results are right and in the right memory.
void check_pair(const GstVideoInfo &info, const std::string &properties, bool device_in, bool device_out) {
  Random random = seeded();
  const std::unique_ptr<Harness> h = harness_between(properties, info, device_in, device_out);
  const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h->element());
  for (int i = 0; i < 3; i++) {
    const Ref<GstBuffer> in = random_frame(info, random);
    const Ref<GstBuffer> pushed = device_in ? device->copy(in.get(), info) : Ref<GstBuffer>(gst_buffer_ref(in.get()));
    const Ref<GstBuffer> out = h->filter(pushed.get());
    fail_unless(device->holds(out.get()) == device_out, "the output is in the wrong memory");
    assert_filtered(in.get(), out.get(), info, properties);
    // The input is unchanged.
    fail_unless(same_samples(in.get(), pushed.get(), info));
  }
}

GST_START_TEST(frames_go_from_either_memory_into_either) {
  // Heights are even: GStreamer 1.22 reads planar 4:2:0 of an odd height back from CUDA memory without its last rows.
  for (const char *format : {"NV12", planar_format(), "RGBA", "P010_10LE", "YUY2"})
    for (bool device_in : {false, true})
      for (bool device_out : {false, true})
        for (const char *mask : {"mask=gauss5", "mask=sobel", "mask=close iterations=2"})
          check_pair(video_info(format, 37, 16), mask, device_in, device_out);
}
GST_END_TEST;

GstVideoInfo interlaced_info(const char *format, int height) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(format),
                                       GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 36, height);
  return info;
}

// Checks that the rows of chroma from `rows` on are like the last row of their field.
void check_rows_are_repeated(GstBuffer *buffer, const GstVideoInfo &info, int rows) {
  GstVideoFrame frame;
  fail_unless(gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ));
  for (int c = 1; c < 3; c++) {
    const FrameLayout all = layout_of(info);
    const int stride = GST_VIDEO_FRAME_COMP_STRIDE(&frame, c);
    const auto *const data = static_cast<const uint8_t *>(GST_VIDEO_FRAME_COMP_DATA(&frame, c));
    for (int y = rows; y < all.plane[1].height; y++)
      for (int x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH(&frame, c); x++) {
        const auto *const sample = data + y * stride + x * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c);
        const auto *const above = sample - std::min(y, 2) * stride;
        fail_unless(!memcmp(sample, above, GST_VIDEO_FRAME_COMP_DEPTH(&frame, c) > 8 ? 2 : 1), "component %d: %d, %d",
                    c, x, y);
      }
  }
  gst_video_frame_unmap(&frame);
}

// GStreamer's CUDA memory lacks the row of chroma that only interlaced frames have. The others are filtered. In system
// memory the last row of the same field stands for it.
GST_START_TEST(interlaced_frames_have_the_rows_of_cuda_memory) {
  Random random = seeded();
  for (const char *format : {"NV12", planar_format(), "P010_10LE"})
    for (const char *properties : {"mask=gauss5 chroma=filter", "mask=gauss5 chroma=filter backend=cpu"})
      for (int height = 2; height <= 14; height += 2)
        for (const bool device_in : {false, true})
          for (const bool device_out : {false, true}) {
            const GstVideoInfo info = interlaced_info(format, height);
            FrameLayout layout = layout_of(info);
            for (PlaneLayout &plane : layout.plane)
              if (device_in || device_out) plane.height = std::min(plane.height, height >> plane.sub_y);
            const std::unique_ptr<Harness> h = harness_between(properties, info, device_in, device_out);
            const std::unique_ptr<DeviceMemory> device = DeviceMemory::create();
            const Ref<GstBuffer> in = random_frame(info, random);
            const Ref<GstBuffer> out = h->filter(device_in ? device->copy(in.get(), info).get() : in.get());
            assert_filtered(in.get(), out.get(), info, layout, properties);
            if (!device_out) check_rows_are_repeated(out.get(), info, layout.plane[1].height);
          }
}
GST_END_TEST;

// A copy of `frame` in CUDA memory whose GstVideoMeta counts the rows from bottom to top. The picture is upside down.
Ref<GstBuffer> turned_over(GstBuffer *frame, const GstVideoInfo &info, DeviceMemory &device) {
  Ref<GstBuffer> copy = device.copy(frame, info);
  GstVideoMeta *meta = gst_buffer_get_video_meta(copy.get());
  for (guint p = 0; p < meta->n_planes; p++) {
    const int rows = GST_VIDEO_SUB_SCALE(p ? 1 : 0, GST_VIDEO_INFO_HEIGHT(&info));
    meta->offset[p] += (rows - 1) * meta->stride[p];
    meta->stride[p] *= -1;
  }
  return copy;
}

GST_START_TEST(rows_from_bottom_to_top_are_filtered) {
  Random random = seeded();
  const GstVideoInfo info = video_info("NV12", 38, 22);
  for (const char *properties : {"mask=gauss5", "mask=gauss5 method=tiled", "mask=median size=3 backend=cpu"})
    for (const char *roi : {"", " roi='3,2,20,15'"})
      for (const bool device_out : {false, true}) {
        const std::unique_ptr<Harness> h = harness_between(std::string(properties) + roi, info, true, device_out);
        const std::unique_ptr<DeviceMemory> device = DeviceMemory::create();
        const Ref<GstBuffer> in = random_frame(info, random);
        Ref<GstBuffer> pushed = turned_over(in.get(), info, *device);
        // The same rows in the usual order.
        const Ref<GstBuffer> usual(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
        GstVideoFrame source, target;
        fail_unless(gst_video_frame_map(&source, &info, pushed.get(), GST_MAP_READ));
        fail_unless(gst_video_frame_map(&target, &info, usual.get(), GST_MAP_WRITE));
        fail_unless(gst_video_frame_copy(&target, &source));
        gst_video_frame_unmap(&target);
        gst_video_frame_unmap(&source);
        const Ref<GstBuffer> want = Harness(std::string(properties) + " backend=cpu" + roi, info).filter(usual.get());
        fail_unless_equals_int(gst_harness_push(h->get(), pushed.release()), GST_FLOW_OK);
        const Ref<GstBuffer> out = h->pull();
        fail_unless(same_samples(out.get(), want.get(), info), "%s%s, to CUDA memory %d", properties, roi, device_out);
      }
}
GST_END_TEST;

// The views of frames in CUDA memory, also of column-interleaved ones, which the CPU takes apart.
GST_START_TEST(views_of_stereo_are_filtered_apart) {
  Random random = seeded();
  for (const auto mode : {GST_VIDEO_MULTIVIEW_MODE_SIDE_BY_SIDE, GST_VIDEO_MULTIVIEW_MODE_ROW_INTERLEAVED,
                          GST_VIDEO_MULTIVIEW_MODE_COLUMN_INTERLEAVED})
    for (const char *properties : {"mask=gauss5 chroma=filter", "mask=mosaic size=6 roi='5,3,21,14'"})
      for (const bool device_in : {false, true})
        for (const bool device_out : {false, true}) {
          GstVideoInfo info = video_info("NV12", 40, 28);
          GST_VIDEO_INFO_MULTIVIEW_MODE(&info) = mode;
          info.views = 2;
          const std::unique_ptr<Harness> h = harness_between(properties, info, device_in, device_out);
          const std::unique_ptr<DeviceMemory> device = DeviceMemory::create();
          const Ref<GstBuffer> in = random_frame(info, random);
          const Ref<GstBuffer> want = Harness(std::string(properties) + " backend=cpu", info).filter(in.get());
          const Ref<GstBuffer> out = h->filter(device_in ? device->copy(in.get(), info).get() : in.get());
          fail_unless(same_samples(out.get(), want.get(), info), "mode %d, %s, from CUDA memory %d, to it %d", mode,
                      properties, device_in, device_out);
        }
}
GST_END_TEST;

// Between two elements such frames stay in system memory, where no row is lost, unless one of them needs CUDA memory.
GST_START_TEST(interlaced_frames_keep_all_rows_between_elements) {
  Random random = seeded();
  for (const int height : {12, 14}) {
    const GstVideoInfo info = interlaced_info("NV12", height);
    Ref<GstElement> chain(GST_ELEMENT(gst_object_ref_sink(
        gst_parse_bin_from_description("cudaconv name=first mask=gauss5 ! cudaconv mask=sobel", TRUE, nullptr))));
    GstHarness *h = gst_harness_new_with_element(chain.get(), "sink", "src");
    gst_harness_set_sink_caps(h, gst_video_info_to_caps(&info));
    gst_harness_set_src_caps(h, gst_video_info_to_caps(&info));
    Harness alone("mask=gauss5", info);
    const Ref<GstBuffer> in = random_frame(info, random);
    fail_unless_equals_int(gst_harness_push(h, gst_buffer_ref(in.get())), GST_FLOW_OK);
    const Ref<GstBuffer> out(gst_harness_pull(h)), middle = alone.filter(in.get());
    assert_filtered(in.get(), middle.get(), info, "mask=gauss5");
    assert_filtered(middle.get(), out.get(), info, "mask=sobel");
    const Ref<GstElement> first(gst_bin_get_by_name(GST_BIN(chain.get()), "first"));
    const Ref<GstPad> pad(gst_element_get_static_pad(first.get(), "src"));
    const Ref<GstCaps> caps(gst_pad_get_current_caps(pad.get()));
    const gboolean on_device = gst_caps_features_contains(gst_caps_get_features(caps.get(), 0), "memory:CUDAMemory");
    fail_unless_equals_int(on_device, height % 4 == 0);
    gst_harness_teardown(h);
  }
}
GST_END_TEST;

GST_START_TEST(the_cpu_also_takes_and_delivers_cuda_memory) {
  for (bool device_in : {false, true}) {
    const GstVideoInfo info = video_info("NV12", 37, 15);
    Random random = seeded();
    const std::unique_ptr<Harness> h = harness_between("backend=cpu", info, device_in, true);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::create();
    const Ref<GstBuffer> in = random_frame(info, random);
    const Ref<GstBuffer> pushed = device_in ? device->copy(in.get(), info) : Ref<GstBuffer>(gst_buffer_ref(in.get()));
    const Ref<GstBuffer> out = h->filter(pushed.get());
    assert_same_text(stat_string(*h, "backend"), "cpu");
    fail_unless(DeviceMemory::of(h->element())->holds(out.get()));
    assert_filtered(in.get(), out.get(), info, "");
  }
}
GST_END_TEST;

GST_START_TEST(identity_moves_frames_from_one_memory_to_the_other) {
  const GstVideoInfo info = video_info("NV12", 37, 15);
  check_pair(info, "mask=identity", false, true);
  check_pair(info, "mask=identity", true, false);
  // If both sides have the same memory, frames pass through.
  Random random = seeded();
  const std::unique_ptr<Harness> h = harness_between("mask=identity", info, true, true);
  const Ref<GstBuffer> frame = random_frame(info, random);
  const Ref<GstBuffer> in = DeviceMemory::of(h->element())->copy(frame.get(), info);
  fail_unless(h->filter(in.get()).get() == in.get());
}
GST_END_TEST;

GST_START_TEST(every_format_of_cuda_memory_filters) {
  const Ref<GstElement> element = new_element("");
  gst_element_set_bus(element.get(), nullptr);
  const Ref<GstCaps> caps(gst_pad_template_get_caps(gst_element_get_pad_template(element.get(), "sink")));
  fail_unless(gst_caps_features_contains(gst_caps_get_features(caps.get(), 0), "memory:CUDAMemory"));
  const GValue *list = gst_structure_get_value(gst_caps_get_structure(caps.get(), 0), "format");
  Random random = seeded();
  for (guint i = 0; i < gst_value_list_get_size(list); i++) {
    const GstVideoInfo info = video_info(g_value_get_string(gst_value_list_get_value(list, i)), 38, 16);
    if (!reads_back(info)) continue;
    const std::unique_ptr<Harness> h = harness_between("mask=gauss3 border=wrap", info, true, true);
    const Ref<GstBuffer> in = random_frame(info, random);
    const Ref<GstBuffer> pushed = DeviceMemory::of(h->element())->copy(in.get(), info);
    const Ref<GstBuffer> out = h->filter(pushed.get());
    std::string why;
    if (!is_filtered_by_unpacking(pushed.get(), out.get(), info, "mask=gauss3 border=wrap", {}, &why))
      fail("%s", why.c_str());
  }
}
GST_END_TEST;

// Downstream gets CUDA memory if its caps name it. Downstream that takes any caps gets the memory of the input.
GST_START_TEST(the_memory_follows_what_downstream_names) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  enum class Named { Both, Any, AnyMemory, System };
  for (const char *properties : {"mask=gauss5", "mask=identity", "mask=gauss5 backend=cpu"}) {
    const bool filters_there = !strcmp(properties, "mask=gauss5");
    for (bool on_device : {false, true}) {
      for (Named named : {Named::Both, Named::Any, Named::AnyMemory, Named::System}) {
        for (bool system_first : {false, true}) {
          Harness h(properties);
          GstCaps *taken = nullptr;
          if (named == Named::Any) taken = gst_caps_new_any();
          if (named == Named::AnyMemory) taken = gst_caps_from_string("video/x-raw(ANY)");
          if (named == Named::System) taken = caps_of(info, false).release();
          if (named == Named::Both) {
            taken = caps_of(info, !system_first).release();
            gst_caps_append(taken, caps_of(info, system_first).release());
          }
          gst_harness_set_sink_caps(h.get(), taken);
          gst_harness_set_src_caps(h.get(), caps_of(info, on_device).release());
          const Ref<GstCaps> out(gst_pad_get_current_caps(h.get()->sinkpad));
          const bool device_out = named != Named::System && (on_device || (named == Named::Both && filters_there));
          const Ref<GstCaps> expected = caps_of(info, device_out);
          fail_unless(gst_caps_is_equal(out.get(), expected.get()), "%s, %d, %d", properties, on_device,
                      static_cast<int>(named));
        }
      }
    }
  }
}
GST_END_TEST;

// Whether the caps of the element's source pad have CUDA memory. The pipeline must be playing.
bool leaves_on_device(const Pipeline &pipeline, const char *name) {
  const Ref<GstElement> element = pipeline.element(name);
  const Ref<GstPad> pad(gst_element_get_static_pad(element.get(), "src"));
  const Ref<GstCaps> caps(gst_pad_get_current_caps(pad.get()));
  fail_unless(caps != nullptr, "%s has no caps", name);
  return gst_caps_features_contains(gst_caps_get_features(caps.get(), 0), "memory:CUDAMemory");
}

guint64 stat_of(const Pipeline &pipeline, const char *name, const char *field) {
  const Ref<GstElement> element = pipeline.element(name);
  GstStructure *stats = nullptr;
  g_object_get(element.get(), "stats", &stats, nullptr);
  guint64 value = 0;
  fail_unless(gst_structure_get_uint64(stats, field, &value));
  gst_structure_free(stats);
  return value;
}

GST_START_TEST(elements_in_a_row_keep_frames_on_the_device) {
  const struct {
    const char *between;  // elements between two cudaconv
    const char *second;   // properties of the second cudaconv
    bool on_device;       // whether frames stay on the device between both
  } cases[] = {
      {"", "", true},
      {"! queue", "", true},
      {"! identity", "", true},
      {"! capsfilter caps=video/x-raw(ANY)", "", true},
      {"! tee ! queue", "", true},
      {"! queue ! identity ! tee", "mask=sobel", true},
      {"! video/x-raw", "", false},
      {"", "backend=cpu", false},
      {"! queue", "backend=cpu", false},
      {"", "cuda-device-id=1", false},
  };
  for (const auto &c : cases) {
    if (strstr(c.second, "device-id") && !DeviceMemory::exists(1)) continue;
    Pipeline pipeline(
        "videotestsrc num-buffers=6 pattern=snow ! video/x-raw,format=NV12,width=64,height=48 ! "
        "cudaconv name=a mask=box3 cuda-device-id=0 " +
        std::string(c.between) + " ! cudaconv name=b " + c.second + " ! fakesink name=sink");
    pipeline.go_to(GST_STATE_PLAYING);
    const std::string why = pipeline.wait_for_end();
    assert_same_text(why, "");
    fail_unless_equals_int(leaves_on_device(pipeline, "a"), c.on_device);
    // fakesink takes any caps, so it gets the memory of the input of "b".
    fail_unless_equals_int(leaves_on_device(pipeline, "b"), c.on_device);
    const guint64 bytes = 6 * 64 * 48 * 3 / 2;
    fail_unless_equals_uint64(stat_of(pipeline, "a", "bytes-uploaded"), bytes);
    fail_unless_equals_uint64(stat_of(pipeline, "a", "bytes-downloaded"), c.on_device ? 0 : bytes);
    if (c.on_device) fail_unless_equals_uint64(stat_of(pipeline, "b", "bytes-uploaded"), 0);
  }
}
GST_END_TEST;

// Elements in a row give the same result as each element alone, one after the other.
GST_START_TEST(elements_in_a_row_filter_right) {
  const GstVideoInfo info = video_info("I420", 64, 48);
  Random random = seeded();
  Ref<GstElement> chain(GST_ELEMENT(gst_object_ref_sink(gst_parse_bin_from_description(
      "cudaconv mask=gauss5 ! queue ! cudaconv mask=sobel ! cudaconv mask=dilate", TRUE, nullptr))));
  GstHarness *h = gst_harness_new_with_element(chain.get(), "sink", "src");
  gst_harness_set_sink_caps(h, gst_video_info_to_caps(&info));
  gst_harness_set_src_caps(h, gst_video_info_to_caps(&info));
  Harness first("mask=gauss5", info), second("mask=sobel", info);
  for (int i = 0; i < 8; i++) {
    const Ref<GstBuffer> in = random_frame(info, random);
    fail_unless_equals_int(gst_harness_push(h, gst_buffer_ref(in.get())), GST_FLOW_OK);
    const Ref<GstBuffer> out(gst_harness_pull(h)), a = first.filter(in.get()), b = second.filter(a.get());
    assert_filtered(in.get(), a.get(), info, "mask=gauss5");
    assert_filtered(a.get(), b.get(), info, "mask=sobel");
    assert_filtered(b.get(), out.get(), info, "mask=dilate");
  }
  gst_harness_teardown(h);
}
GST_END_TEST;

GST_START_TEST(frames_on_the_device_never_leave_it) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  for (bool device_in : {false, true}) {
    for (bool device_out : {false, true}) {
      const std::unique_ptr<Harness> h = harness_between("mask=gauss5", info, device_in, device_out);
      const Ref<GstBuffer> frame = random_frame(info, random);
      const Ref<GstBuffer> in = device_in ? DeviceMemory::of(h->element())->copy(frame.get(), info)
                                          : Ref<GstBuffer>(gst_buffer_ref(frame.get()));
      h->filter(in.get());
      const guint64 bytes = 64 * 48 * 3 / 2;
      fail_unless_equals_uint64(stat(*h, "bytes-uploaded"), device_in ? 0 : bytes);
      fail_unless_equals_uint64(stat(*h, "bytes-downloaded"), device_out ? 0 : bytes);
    }
  }
}
GST_END_TEST;

GST_START_TEST(frames_on_the_device_are_in_flight_and_never_copied) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const std::unique_ptr<Harness> h = harness_between("mask=gauss5 frames-in-flight=4", info, true, true);
  const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h->element());
  std::vector<Ref<GstBuffer>> sent, pushed, came;
  for (int i = 0; i < 20; i++) {
    sent.push_back(random_frame(info, random));
    pushed.push_back(device->copy(sent.back().get(), info));
    GST_BUFFER_PTS(pushed.back().get()) = i;
    fail_unless_equals_int(h->push(pushed.back().get()), GST_FLOW_OK);
    while (GstBuffer *out = gst_harness_try_pull(h->get())) came.emplace_back(out);
  }
  h->settle();
  while (GstBuffer *out = gst_harness_try_pull(h->get())) came.emplace_back(out);
  fail_unless_equals_int(came.size(), 20);
  for (int i = 0; i < 20; i++) {
    fail_unless_equals_uint64(GST_BUFFER_PTS(came[i].get()), i);
    fail_unless(device->holds(came[i].get()));
    ASSERT_BUFFER_REFCOUNT(pushed[i].get(), "input", 1);
    assert_filtered(sent[i].get(), came[i].get(), info, "mask=gauss5");
  }
  for (const char *bytes : {"bytes-uploaded", "bytes-downloaded", "bytes-staged"})
    fail_unless_equals_uint64(stat(*h, bytes), 0);
}
GST_END_TEST;

// A GstMemory counts maps in eight bits. The frames of all elements are in flight, as long as downstream blocks. Where
// streams order the frames, the thread that blocks is the one that pushes them in.
GST_START_TEST(one_picture_may_be_in_flight_in_many_elements) {
  if (GST_CHECK_VERSION(1, 24, 0) || g_getenv("CUDACONV_TEST_STREAMS")) return;
  const GstVideoInfo info = video_info("I420", 64, 48);
  Random random = seeded();
  const Ref<GstBuffer> picture = random_frame(info, random);
  Ref<GstBuffer> on_device;
  std::vector<std::unique_ptr<Harness>> elements;
  std::vector<gulong> blocks;
  const auto source_of = [](const std::unique_ptr<Harness> &h) {
    return Ref<GstPad>(gst_element_get_static_pad(h->element(), "src"));
  };
  constexpr int kElements = 8, kFrames = 16;  // and three planes
  for (int i = 0; i < kElements; i++) {
    elements.push_back(harness_between("mask=gauss5 frames-in-flight=16", info, true, true));
    Harness &h = *elements.back();
    if (!on_device) on_device = DeviceMemory::of(h.element())->copy(picture.get(), info);
    blocks.push_back(gst_pad_add_probe(
        source_of(elements.back()).get(),
        static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER),
        [](GstPad *, GstPadProbeInfo *, gpointer) { return GST_PAD_PROBE_OK; }, nullptr, nullptr));
    for (int n = 0; n < kFrames; n++) fail_unless_equals_int(h.push(on_device.get()), GST_FLOW_OK);
  }
  for (int i = 0; i < kElements; i++) gst_pad_remove_probe(source_of(elements[i]).get(), blocks[i]);
  for (const std::unique_ptr<Harness> &h : elements) {
    h->settle();
    for (int n = 0; n < kFrames; n++) {
      const Ref<GstBuffer> out(gst_harness_try_pull(h->get()));
      fail_unless(out != nullptr);
      assert_filtered(picture.get(), out.get(), info, "mask=gauss5");
    }
  }
}
GST_END_TEST;

// Memory belongs to streams: a frame is pushed before it is complete, since readers wait for its stream. So the thread
// that pushes the input also pushes the output, and no thread waits for the device.
GST_START_TEST(frames_of_streams_leave_before_they_are_complete) {
  if (!g_getenv("CUDACONV_TEST_STREAMS")) return;
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const std::unique_ptr<Harness> h = harness_between("mask=gauss5 frames-in-flight=4", info, true, true);
  GThread *pushed_by = nullptr;
  gst_pad_add_probe(
      h->get()->sinkpad, GST_PAD_PROBE_TYPE_BUFFER,
      [](GstPad *, GstPadProbeInfo *, gpointer data) {
        *static_cast<GThread **>(data) = g_thread_self();
        return GST_PAD_PROBE_OK;
      },
      &pushed_by, nullptr);
  const Ref<GstBuffer> in = random_frame(info, random);
  const Ref<GstBuffer> out = h->filter(DeviceMemory::of(h->element())->copy(in.get(), info).get());
  fail_unless(pushed_by == g_thread_self());
  assert_filtered(in.get(), out.get(), info, "mask=gauss5");
}
GST_END_TEST;

// With interlace-mode=mixed the flags of each buffer say what it holds, also of one that has been pushed already.
GST_START_TEST(frames_of_streams_may_be_progressive_or_interlaced) {
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, GST_VIDEO_FORMAT_NV12, GST_VIDEO_INTERLACE_MODE_MIXED, 64, 48);
  Random random = seeded();
  const std::unique_ptr<Harness> h = harness_between("mask=gauss5 frames-in-flight=4", info, true, true);
  for (const bool fields : {false, true}) {
    Ref<GstBuffer> in = random_frame(info, random);
    if (fields) GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_INTERLACED);
    const Ref<GstBuffer> device = DeviceMemory::of(h->element())->copy(in.get(), info);
    if (fields) GST_BUFFER_FLAG_SET(device.get(), GST_VIDEO_BUFFER_FLAG_INTERLACED);
    const Ref<GstBuffer> out = h->filter(device.get());
    assert_filtered(in.get(), out.get(), info, layout_of(info, fields), "mask=gauss5");
  }
}
GST_END_TEST;

// Plain caps may come with CUDA memory: cudadownload passes it through if downstream takes any strides.
GST_START_TEST(the_buffer_and_not_the_caps_decides_the_memory) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  for (bool device_caps_in : {false, true}) {
    const std::unique_ptr<Harness> h = harness_between("mask=gauss5", info, device_caps_in, device_caps_in);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h->element());
    const Ref<GstBuffer> in = random_frame(info, random);
    for (bool on_device : {true, false, true}) {
      const guint64 uploaded = stat(*h, "bytes-uploaded");
      const Ref<GstBuffer> pushed = on_device ? device->copy(in.get(), info) : Ref<GstBuffer>(gst_buffer_ref(in.get()));
      const Ref<GstBuffer> out = h->filter(pushed.get());
      assert_filtered(in.get(), out.get(), info, "mask=gauss5");
      fail_unless_equals_int(stat(*h, "bytes-uploaded") == uploaded, on_device);
    }
  }
}
GST_END_TEST;

// Frames in another context of the same device are not copied through system memory. The element switches to that
// context, like GStreamer's own CUDA elements.
GST_START_TEST(the_context_of_incoming_memory_is_followed) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  for (bool device_caps : {false, true}) {  // cudadownload passes CUDA memory through under plain caps
    const std::unique_ptr<Harness> h = harness_between("mask=gauss5", info, device_caps, true);
    const std::unique_ptr<DeviceMemory> foreign = DeviceMemory::create(), own = DeviceMemory::of(h->element());
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> in = random_frame(info, random);
      const Ref<GstBuffer> pushed = foreign->copy(in.get(), info);
      fail_if(own->holds(pushed.get()));
      const Ref<GstBuffer> out = h->filter(pushed.get());
      fail_unless(foreign->holds(out.get()));
      assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    }
    for (const char *bytes : {"bytes-uploaded", "bytes-downloaded"}) fail_unless_equals_uint64(stat(*h, bytes), 0);
  }
}
GST_END_TEST;

// A frame in several pieces of CUDA memory is not followed to its context. It is copied.
GST_START_TEST(frames_in_several_pieces_of_memory_are_copied) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const std::unique_ptr<Harness> h = harness_between("mask=gauss5", info, true, true);
  const std::unique_ptr<DeviceMemory> foreign = DeviceMemory::create(), own = DeviceMemory::of(h->element());
  for (DeviceMemory *device : {own.get(), foreign.get()}) {
    for (int i = 0; i < 2; i++) {
      const Ref<GstBuffer> in = random_frame(info, random), more = device->copy(in.get(), info);
      const Ref<GstBuffer> pushed = device->copy(in.get(), info);
      gst_buffer_append_memory(pushed.get(), gst_buffer_get_memory(more.get(), 0));
      const Ref<GstBuffer> out = h->filter(pushed.get());
      assert_filtered(in.get(), out.get(), info, "mask=gauss5");
      fail_unless(own->holds(out.get()));
    }
  }
}
GST_END_TEST;

GST_START_TEST(a_downstream_pool_of_this_context_is_used) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  for (bool foreign : {false, true}) {
    Harness h("mask=gauss5");
    gst_harness_set_sink_caps(h.get(), caps_of(info, true).release());
    const std::unique_ptr<DeviceMemory> own = DeviceMemory::of(h.element());
    const std::unique_ptr<DeviceMemory> other = foreign ? DeviceMemory::create() : DeviceMemory::of(h.element());
    GstBufferPool *pool = other->new_pool(info);
    gst_buffer_pool_set_active(pool, FALSE);
    offer_pool(h, pool);
    gst_harness_set_src_caps(h.get(), caps_of(info, false).release());
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    fail_unless_equals_int(out->pool == pool, !foreign);
    fail_unless(own->holds(out.get()));
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    gst_object_unref(pool);
  }
}
GST_END_TEST;

GST_START_TEST(upstream_is_offered_a_pool_of_device_memory) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  const std::unique_ptr<Harness> h = harness_between("", info, true, true);
  const Ref<GstCaps> caps = device_caps(info);
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  fail_unless(gst_pad_peer_query(h->get()->srcpad, query.get()));
  fail_unless_equals_int(gst_query_get_n_allocation_pools(query.get()), 1);
  GstBufferPool *pool;
  gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, nullptr, nullptr, nullptr);
  fail_unless(gst_buffer_pool_set_active(pool, TRUE));
  GstBuffer *buffer;
  fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
  fail_unless(DeviceMemory::of(h->element())->holds(buffer));
  gst_buffer_unref(buffer);
  fail_unless(gst_buffer_pool_set_active(pool, FALSE));
  gst_object_unref(pool);
}
GST_END_TEST;

GST_START_TEST(memory_caps_and_settings_may_change_in_mid_stream) {
  const GstVideoInfo info = video_info("NV12", 64, 48), other = video_info("RGBA", 33, 17);
  Random random = seeded();
  Harness h("mask=gauss5");
  const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
  for (int i = 0; i < 8; i++) {
    const GstVideoInfo &now = i & 1 ? other : info;
    const bool device_in = i & 2, device_out = i & 4;
    // Caps of the harness's sink pad change first. Otherwise the renegotiation that the other caps cause fails.
    GstCaps *sink_caps = caps_of(now, device_out).release();
    gst_pad_push_event(h.get()->sinkpad, gst_event_new_reconfigure());
    gst_harness_set_sink_caps(h.get(), sink_caps);
    gst_harness_set_src_caps(h.get(), caps_of(now, device_in).release());
    h.set(i & 1 ? "mask=sobel" : "mask=gauss5");
    const Ref<GstBuffer> in = random_frame(now, random);
    const Ref<GstBuffer> pushed = device_in ? device->copy(in.get(), now) : Ref<GstBuffer>(gst_buffer_ref(in.get()));
    const Ref<GstBuffer> out = h.filter(pushed.get());
    fail_unless(device->holds(out.get()) == device_out);
    assert_filtered(in.get(), out.get(), now, i & 1 ? "mask=sobel" : "mask=gauss5");
  }
}
GST_END_TEST;

GST_START_TEST(metas_and_timestamps_survive_on_the_device) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const std::unique_ptr<Harness> h = harness_between("mask=gauss5", info, true, true);
  const Ref<GstBuffer> frame = random_frame(info, random);
  const Ref<GstBuffer> in = DeviceMemory::of(h->element())->copy(frame.get(), info);
  gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 1, 2, 3, 4);
  gst_buffer_add_video_time_code_meta_full(in.get(), 30, 1, nullptr, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, 3, 4, 0);
  GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_TFF);
  const Ref<GstBuffer> out = h->filter(in.get());
  fail_unless(gst_buffer_get_video_region_of_interest_meta_id(out.get(), 0) != nullptr);
  fail_unless(gst_buffer_get_video_time_code_meta(out.get()) != nullptr);
  fail_unless(GST_BUFFER_FLAG_IS_SET(out.get(), GST_VIDEO_BUFFER_FLAG_TFF));
  fail_unless_equals_int(gst_buffer_get_n_meta(out.get(), GST_VIDEO_META_API_TYPE), 1);
}
GST_END_TEST;

// Chains of two elements on one context, each chain on a separate thread.
GST_START_TEST(chains_of_elements_on_one_context_do_not_disturb_each_other) {
  const GstVideoInfo info = video_info(planar_format(), 64, 32);
  const int frames = number_from_environment("CUDACONV_TEST_FRAMES", 500) / 5;
  const char *masks[] = {"mask=gauss3", "mask=sobel", "mask=dilate size=5",
                         "mask=custom coefficients='1 2 3; 4 5 6; 7 8 9'"};
  Random random = seeded();
  const std::unique_ptr<DeviceMemory> device = DeviceMemory::create();
  const Ref<GstBuffer> frame = random_frame(info, random), in = device->copy(frame.get(), info);
  struct Chain {
    std::unique_ptr<Harness> first, second;
    std::unique_ptr<FrameBytes> want;
    Ref<GstBuffer> run(GstBuffer *buffer) {
      if (first->push(buffer) != GST_FLOW_OK) return nullptr;
      const Ref<GstBuffer> middle(gst_harness_pull(first->get()));
      if (!middle || second->push(middle.get()) != GST_FLOW_OK) return nullptr;
      return Ref<GstBuffer>(gst_harness_pull(second->get()));
    }
  };
  std::vector<Chain> chains;
  const auto make = [&](const char *mask) {
    Ref<GstElement> element = new_element(mask, false);
    device->share_with(element.get());
    auto h = std::make_unique<Harness>(std::move(element));
    set_caps(*h, info, true, true);
    return h;
  };
  for (const char *mask : masks) {
    Chain chain{make(mask), make("mask=sharpen"), nullptr};
    const Ref<GstBuffer> out = chain.run(in.get());
    fail_unless(out != nullptr);
    // A single element gives the expected result of the chain's first element. The reference filter checks both steps.
    Harness alone(mask, info);
    const Ref<GstBuffer> middle = alone.filter(frame.get());
    assert_filtered(frame.get(), middle.get(), info, mask);
    assert_filtered(middle.get(), out.get(), info, "mask=sharpen");
    chain.want = std::make_unique<FrameBytes>(out.get(), info);
    chains.push_back(std::move(chain));
  }
  const FrameLayout layout = layout_of(info);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (Chain &chain : chains) {
    threads.emplace_back([&] {
      for (int i = 0; i < frames; i++) {
        const Ref<GstBuffer> out = chain.run(in.get());
        if (!out) {
          wrong++;
          continue;
        }
        const FrameBytes got(out.get(), info);
        for (int p = 0; p < layout.planes; p++) {
          const PlaneView &a = got.view.plane[p], &b = chain.want->view.plane[p];
          for (int y = 0; y < layout.plane[p].height; y++)
            if (memcmp(a.data + y * a.pitch, b.data + y * b.pitch, layout.plane[p].width) != 0) wrong++;
        }
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  fail_unless_equals_int(wrong, 0);
}
GST_END_TEST;

GST_START_TEST(an_applications_context_is_used) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const std::unique_ptr<DeviceMemory> device = DeviceMemory::create();
  Ref<GstElement> element = new_element("mask=gauss5", false);
  device->share_with(element.get());
  Harness h(std::move(element));
  set_caps(h, info, false, true);
  const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
  fail_unless(device->holds(out.get()));
  assert_filtered(in.get(), out.get(), info, "mask=gauss5");
}
GST_END_TEST;

// Frames come from two contexts in turn, several in flight, with new caps or with the new context itself. The element
// always filters in the context of its input.
GST_START_TEST(the_context_may_change_in_mid_stream) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  enum class Change { Memory, Caps, Context };
  for (Change change : {Change::Memory, Change::Caps, Change::Context}) {
    for (bool device_out : {false, true}) {
      Random random = seeded();
      const std::unique_ptr<Harness> h = harness_between("mask=sobel frames-in-flight=4", info, true, device_out);
      const std::unique_ptr<DeviceMemory> own = DeviceMemory::of(h->element()), other = DeviceMemory::create();
      std::vector<Ref<GstBuffer>> sent, pushed;
      for (int i = 0; i < 24; i++) {
        DeviceMemory &memory = i / 6 % 2 ? *other : *own;
        if (i % 6 == 0 && i > 0) {
          if (change == Change::Caps) set_caps(*h, info, true, device_out);
          if (change == Change::Context) memory.share_with(h->element());
        }
        sent.push_back(random_frame(info, random));
        pushed.push_back(memory.copy(sent.back().get(), info));
        GST_BUFFER_PTS(pushed.back().get()) = i;
        fail_unless_equals_int(h->push(pushed.back().get()), GST_FLOW_OK);
      }
      push_event(*h, gst_event_new_eos());
      for (int i = 0; i < 24; i++) {
        const Ref<GstBuffer> out(gst_harness_try_pull(h->get()));
        fail_unless(out != nullptr, "frame %d is lost", i);
        fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), i);
        fail_unless((i / 6 % 2 ? other : own)->holds(out.get()) == device_out);
        assert_filtered(sent[i].get(), out.get(), info, "mask=sobel");
        ASSERT_BUFFER_REFCOUNT(pushed[i].get(), "input", 1);
      }
    }
  }
}
GST_END_TEST;

// The device that an element reports to a cudaconv upstream; -1: the CPU.
int device_of(Harness &h) {
  const Ref<GstQuery> query(gst_query_new_custom(
      GST_QUERY_CUSTOM, gst_structure_new("application/x-cudaconv-device", "device-id", G_TYPE_INT, -2, nullptr)));
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  int device = -2;
  gst_structure_get_int(gst_query_get_structure(query.get()), "device-id", &device);
  return device;
}

GST_START_TEST(another_device_or_backend_is_taken_at_the_next_start) {
  if (!DeviceMemory::exists(1)) return;
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  Harness h(new_element("mask=gauss5 cuda-device-id=0", false));
  const struct {
    const char *properties;
    int device;
  } cases[] = {{"", 0}, {"cuda-device-id=1", 1}, {"backend=cpu", -1}, {"backend=auto", 1}, {"cuda-device-id=0", 0}};
  for (const auto &c : cases) {
    gst_element_set_state(h.element(), GST_STATE_READY);
    h.set(c.properties);
    fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
    fail_unless_equals_int(device_of(h), c.device);
    h.set_caps(video_info("RGBA", 8, 8));
    h.set_caps(info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    assert_same_text(stat_string(h, "backend"), c.device < 0 ? "cpu" : "cuda");
  }
}
GST_END_TEST;

GST_START_TEST(elements_on_two_devices_filter_each_others_frames) {
  if (!DeviceMemory::exists(1)) {
    g_printerr("SKIP: no second device for elements on two devices\n");
    return;
  }
  const GstVideoInfo info = video_info("NV12", 64, 48);
  for (bool on_device : {false, true}) {  // whether frames between the elements are in CUDA memory
    Random random = seeded();
    std::vector<std::unique_ptr<Harness>> chain;
    for (const char *properties :
         {"mask=gauss5 cuda-device-id=0", "mask=sharpen cuda-device-id=1", "mask=sobel cuda-device-id=0"}) {
      chain.push_back(std::make_unique<Harness>(new_element(properties, false)));
      const bool first = chain.size() == 1, last = chain.size() == 3;
      set_caps(*chain.back(), info, on_device && !first, on_device && !last);
    }
    const std::unique_ptr<DeviceMemory> zero = DeviceMemory::of(chain[0]->element()),
                                        one = DeviceMemory::of(chain[1]->element());
    for (int i = 0; i < 6; i++) {
      const Ref<GstBuffer> in = random_frame(info, random), blurred = chain[0]->filter(in.get()),
                           sharpened = chain[1]->filter(blurred.get()), out = chain[2]->filter(sharpened.get());
      fail_unless(zero->holds(blurred.get()) == on_device && one->holds(sharpened.get()) == on_device);
      fail_if(one->holds(blurred.get()) || zero->holds(sharpened.get()));
      assert_filtered(in.get(), blurred.get(), info, "mask=gauss5");
      assert_filtered(blurred.get(), sharpened.get(), info, "mask=sharpen");
      assert_filtered(sharpened.get(), out.get(), info, "mask=sobel");
    }
  }
  // Elements on both devices also run at the same time.
  check_side_by_side({"mask=gauss3 cuda-device-id=0", "mask=gauss3 cuda-device-id=1",
                      "mask=gauss sigma=4 cuda-device-id=0 frames-in-flight=3",
                      "mask=gauss sigma=4 cuda-device-id=1 frames-in-flight=3"});
}
GST_END_TEST;

#ifndef CUDACONV_TEST_STATIC
GST_START_TEST(chains_of_upload_filter_and_download_run) {
  const std::string source = "videotestsrc num-buffers=20 ! video/x-raw,format=NV12,width=322,height=242 ! ";
  for (const char *chain :
       {"cudaupload ! cudaconv mask=gauss5 backend=cuda ! cudadownload ! fakesink",
        "cudaupload ! cudaconv mask=sobel backend=cuda ! cudaconv mask=dilate backend=cuda ! cudadownload ! fakesink",
        "cudaconv mask=gauss5 backend=cuda ! cudadownload ! video/x-raw ! fakesink",
        "cudaupload ! cudaconv mask=gauss5 backend=cuda ! video/x-raw ! fakesink",
        "cudaconv backend=cuda ! video/x-raw(memory:CUDAMemory) ! cudaconv backend=cuda ! video/x-raw ! fakesink",
        "cudaupload ! tee name=t t. ! queue ! cudaconv mask=gauss3 backend=cuda ! fakesink t. ! queue ! "
        "cudaconv mask=sobel backend=cuda ! fakesink"}) {
    Pipeline pipeline(source + chain);
    pipeline.go_to(GST_STATE_PLAYING);
    const std::string why = pipeline.wait_for_end();
    fail_unless(why.empty(), "%s: %s", chain, why.c_str());
  }
}
GST_END_TEST;

GST_START_TEST(neighbours_share_one_context) {
  Pipeline pipeline(
      "videotestsrc num-buffers=3 ! video/x-raw,format=NV12,width=64,height=48 ! cudaconv name=a backend=cuda ! "
      "video/x-raw(memory:CUDAMemory) ! cudaconv name=b backend=cuda ! video/x-raw(memory:CUDAMemory) ! fakesink");
  fail_unless(pipeline.go_to(GST_STATE_PAUSED));
  const Ref<GstElement> a = pipeline.element("a"), b = pipeline.element("b");
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const Ref<GstBuffer> frame = random_frame(info, random);
  fail_unless(DeviceMemory::of(b.get())->holds(DeviceMemory::of(a.get())->copy(frame.get(), info).get()));
}
GST_END_TEST;

// If neither the application nor a neighbour has a context, elements of all pipelines share one. It ends with the last
// element.
GST_START_TEST(pipelines_of_a_process_share_one_context) {
  const char *description =
      "videotestsrc num-buffers=3 ! video/x-raw,format=NV12,width=64,height=48 ! cudaconv name=a backend=cuda ! "
      "fakesink";
  int released = 0;
  forget_context();
  {
    Pipeline one(description), other(description);
    fail_unless(one.go_to(GST_STATE_PAUSED) && other.go_to(GST_STATE_PAUSED));
    const Ref<GstElement> a = one.element("a"), b = other.element("a");
    const GstVideoInfo info = video_info("NV12", 64, 48);
    Random random = seeded();
    const Ref<GstBuffer> frame = random_frame(info, random);
    const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(a.get());
    fail_unless(DeviceMemory::of(b.get())->holds(device->copy(frame.get(), info).get()));
    device->notify_of_release(&released);
  }
  fail_unless_equals_int(released, 1);
}
GST_END_TEST;

// An unreleased pool or pool configuration would keep the context, and some hundred megabytes with it.
GST_START_TEST(the_context_is_released_with_the_element) {
  forget_context();
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  for (int pair = 0; pair < 4; pair++) {
    int released = 0;
    {
      Harness h(new_element("mask=gauss5", false));
      set_caps(h, info, pair & 2, pair & 1);
      const Ref<GstBuffer> frame = random_frame(info, random);
      const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
      device->notify_of_release(&released);
      h.filter(pair & 2 ? device->copy(frame.get(), info).get() : frame.get());
    }
    fail_unless_equals_int(released, 1);
  }
}
GST_END_TEST;
#endif

Suite *make_suite() {
  g_setenv("CUDACONV_TEST_BACKEND", "cuda", TRUE);
  Suite *suite = suite_create("cudamemory");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, frames_go_from_either_memory_into_either);
  tcase_add_test(tc, interlaced_frames_have_the_rows_of_cuda_memory);
  tcase_add_test(tc, rows_from_bottom_to_top_are_filtered);
  tcase_add_test(tc, views_of_stereo_are_filtered_apart);
  tcase_add_test(tc, interlaced_frames_keep_all_rows_between_elements);
  tcase_add_test(tc, the_cpu_also_takes_and_delivers_cuda_memory);
  tcase_add_test(tc, identity_moves_frames_from_one_memory_to_the_other);
  tcase_add_test(tc, every_format_of_cuda_memory_filters);
  tcase_add_test(tc, the_memory_follows_what_downstream_names);
  tcase_add_test(tc, elements_in_a_row_keep_frames_on_the_device);
  tcase_add_test(tc, elements_in_a_row_filter_right);
  tcase_add_test(tc, frames_on_the_device_never_leave_it);
  tcase_add_test(tc, frames_on_the_device_are_in_flight_and_never_copied);
  tcase_add_test(tc, one_picture_may_be_in_flight_in_many_elements);
  tcase_add_test(tc, frames_of_streams_leave_before_they_are_complete);
  tcase_add_test(tc, frames_of_streams_may_be_progressive_or_interlaced);
  tcase_add_test(tc, the_buffer_and_not_the_caps_decides_the_memory);
  tcase_add_test(tc, the_context_of_incoming_memory_is_followed);
  tcase_add_test(tc, frames_in_several_pieces_of_memory_are_copied);
  tcase_add_test(tc, a_downstream_pool_of_this_context_is_used);
  tcase_add_test(tc, upstream_is_offered_a_pool_of_device_memory);
  tcase_add_test(tc, memory_caps_and_settings_may_change_in_mid_stream);
  tcase_add_test(tc, metas_and_timestamps_survive_on_the_device);
  tcase_add_test(tc, chains_of_elements_on_one_context_do_not_disturb_each_other);
  tcase_add_test(tc, an_applications_context_is_used);
  tcase_add_test(tc, the_context_may_change_in_mid_stream);
  tcase_add_test(tc, another_device_or_backend_is_taken_at_the_next_start);
  tcase_add_test(tc, elements_on_two_devices_filter_each_others_frames);
#ifndef CUDACONV_TEST_STATIC
  tcase_add_test(tc, chains_of_upload_filter_and_download_run);
  tcase_add_test(tc, neighbours_share_one_context);
  tcase_add_test(tc, pipelines_of_a_process_share_one_context);
  tcase_add_test(tc, the_context_is_released_with_the_element);
#endif
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "cudamemory", make_suite, true);
}
