// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests frames in place: frames with regions, if the element has the only reference and downstream takes the buffer's
// layout.
#include <gst/video/video.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>

#include "support.h"
#ifdef HAVE_DEVICE_MEMORY
#include "devicememory.h"
#endif

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

constexpr char kRegions[] = "roi='7,5,19,12; 20,10,21,30'";

Ref<GstBuffer> copy_of(GstBuffer *buffer) {
  return Ref<GstBuffer>(gst_buffer_copy_deep(buffer));
}

// All bytes of a buffer, padding included.
std::vector<uint8_t> bytes_of(GstBuffer *buffer) {
  std::vector<uint8_t> bytes(gst_buffer_get_size(buffer));
  fail_unless_equals_uint64(gst_buffer_extract(buffer, 0, bytes.data(), bytes.size()), bytes.size());
  return bytes;
}

// A frame that was given to the element, with a copy, and with the identity of its buffer and memory.
struct Sent {
  Ref<GstBuffer> before;
  GstBuffer *buffer;
  GstMemory *memory;

  explicit Sent(GstBuffer *in) : before(copy_of(in)), buffer(in), memory(gst_buffer_peek_memory(in, 0)) {}
  bool is_same(GstBuffer *out) const { return out == buffer && gst_buffer_peek_memory(out, 0) == memory; }
};

Sent give(Harness &h, Ref<GstBuffer> in) {
  Sent sent(in.get());
  fail_unless_equals_int(gst_harness_push(h.get(), in.release()), GST_FLOW_OK);
  return sent;
}

// Filters a copy of the frame into a new buffer, with another element. Its properties keep no state. Its samples are
// right: tests of regions compare them with the reference.
Ref<GstBuffer> filtered_copy(GstBuffer *in, const GstVideoInfo &info, const std::string &properties) {
  Harness h(properties, info);
  Ref<GstBuffer> out = h.filter(in);
  fail_if(out.get() == in);
  return out;
}

// The frame in a buffer of these caps: a field with interlace-mode=alternate.
GstVideoInfo in_buffer(const GstVideoInfo &info) {
  if (GST_VIDEO_INFO_INTERLACE_MODE(&info) != GST_VIDEO_INTERLACE_MODE_ALTERNATE) return info;
  return video_info(GST_VIDEO_INFO_NAME(&info), GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_FIELD_HEIGHT(&info));
}

// Checks that `out` has the samples of `want`, and all other bytes of `before`.
void check_bytes(GstBuffer *out, GstBuffer *want, GstBuffer *before, const GstVideoInfo &info) {
  fail_unless(same_samples(out, want, in_buffer(info)), "%s: samples differ from a new buffer's",
              GST_VIDEO_INFO_NAME(&info));
  // With the samples of `before` written into it, `out` must equal `before`.
  GstVideoFrame from, to;
  const Ref<GstBuffer> restored = copy_of(out);
  fail_unless(gst_video_frame_map(&from, &info, before, GST_MAP_READ));
  fail_unless(gst_video_frame_map(&to, &info, restored.get(), GST_MAP_WRITE));
  fail_unless(gst_video_frame_copy(&to, &from));
  gst_video_frame_unmap(&to);
  gst_video_frame_unmap(&from);
  fail_unless(bytes_of(restored.get()) == bytes_of(before), "padding was written");
}

// Gives the element a frame, and checks that it comes out filtered in the same buffer.
void check_in_place(Harness &h, Ref<GstBuffer> in, const GstVideoInfo &info, const std::string &properties) {
  const Sent sent = give(h, std::move(in));
  const Ref<GstBuffer> out = h.pull();
  fail_unless(sent.is_same(out.get()), "%s %s: the frame came out in another buffer", GST_VIDEO_INFO_NAME(&info),
              properties.c_str());
  const Ref<GstBuffer> want = filtered_copy(sent.before.get(), info, properties);
  check_bytes(out.get(), want.get(), sent.before.get(), info);
}

// Gives the element a frame, and checks that it comes out filtered in another buffer.
void check_copied(Harness &h, Ref<GstBuffer> in, const GstVideoInfo &info, const std::string &properties) {
  const Sent sent = give(h, std::move(in));
  const Ref<GstBuffer> out = h.pull();
  fail_if(gst_buffer_peek_memory(out.get(), 0) == sent.memory, "%s: the frame came out in the same memory",
          properties.c_str());
  const Ref<GstBuffer> want = filtered_copy(sent.before.get(), info, properties);
  fail_unless(same_samples(out.get(), want.get(), info), "%s", properties.c_str());
}

void knows_video_meta(Harness &h) {
  gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
}

bool on_gpu() {
  return !strcmp(test_backend(), "cuda");
}

}  // namespace

GST_START_TEST(the_buffer_that_went_in_comes_out) {
  Random random = seeded();
  for (const char *format : {"GRAY8", "I420", "NV12", "YUY2", "RGB", "RGBA", "I420_10LE"}) {
    const GstVideoInfo info = video_info(format, 53, 37);
    for (const char *filter :
         {"mask=gauss5", "mask=box size=31", "mask=sobel", "mask=open size=5", "mask=median", "mask=dilate border=keep",
          "mask=gauss sigma=6 border=wrap", "mask=gauss3 iterations=3", "mask=median roi-shape=ellipse"}) {
      const std::string properties = std::string(filter) + " " + kRegions;
      Harness h(properties, info);
      for (int i = 0; i < 2; i++) check_in_place(h, random_frame(info, random), info, properties);
    }
  }
}
GST_END_TEST;

GST_START_TEST(regions_may_touch_the_edges_and_each_other) {
  Random random = seeded();
  for (const char *format : {"GRAY8", "I420"}) {
    const GstVideoInfo info = video_info(format, 53, 37);
    for (const char *roi : {"0,0,53,37", "-9,-9,20,20; 40,20,1000,1000", "4,4,8,8; 12,4,8,8; 4,12,8,8", "52,36,1,1",
                            "1,1,30,30; 5,5,10,10", "0,900,5,5; 3,3,9,9"}) {
      const std::string properties = std::string("mask=box size=9 roi='") + roi + "'";
      Harness h(properties, info);
      check_in_place(h, random_frame(info, random), info, properties);
    }
  }
}
GST_END_TEST;

GST_START_TEST(all_but_the_regions_of_a_frame) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  const std::string properties = std::string("mask=gauss5 roi-invert=true ") + kRegions;
  Harness h(properties, info);
  // The CPU would copy most of the GPU's results.
  if (on_gpu())
    check_copied(h, random_frame(info, random), info, properties);
  else
    check_in_place(h, random_frame(info, random), info, properties);
}
GST_END_TEST;

GST_START_TEST(without_regions_a_frame_has_a_new_buffer) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  Harness h("mask=gauss5", info);
  check_copied(h, random_frame(info, random), info, "mask=gauss5");
}
GST_END_TEST;

GST_START_TEST(buffers_that_others_hold_do_not_change) {
  Random random = seeded();
  const GstVideoInfo info = video_info("NV12", 53, 37);
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  Harness h(properties, info);
  const auto check_left_alone = [&](GstBuffer *kept, GstBuffer *given) {
    const Ref<GstBuffer> before = copy_of(kept);
    check_copied(h, Ref<GstBuffer>(given), info, properties);
    fail_unless(bytes_of(kept) == bytes_of(before.get()));
  };
  // The test keeps the buffer, its memory, or a part of the memory.
  const Ref<GstBuffer> kept = random_frame(info, random);
  check_left_alone(kept.get(), gst_buffer_ref(kept.get()));
  check_left_alone(kept.get(), gst_buffer_copy(kept.get()));
  check_left_alone(kept.get(), gst_buffer_copy_region(kept.get(), GST_BUFFER_COPY_ALL, 0, GST_VIDEO_INFO_SIZE(&info)));

  const std::vector<uint8_t> constant = bytes_of(kept.get());
  std::vector<uint8_t> bytes = constant;
  check_copied(h,
               Ref<GstBuffer>(gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, bytes.data(), bytes.size(), 0,
                                                          bytes.size(), nullptr, nullptr)),
               info, properties);
  fail_unless(bytes == constant);
}
GST_END_TEST;

// Returns the frames that one branch of a tee gets, while the launch line `other` filters them in another branch.
std::vector<std::vector<uint8_t>> frames_of_branch(const std::string &other) {
  Pipeline pipeline(
      "videotestsrc num-buffers=6 pattern=ball ! video/x-raw,format=I420,width=64,height=48 ! tee name=t "
      "t. ! queue ! fakesink name=plain t. ! queue ! " +
      other + " ! fakesink");
  std::vector<std::vector<uint8_t>> frames;
  const Ref<GstElement> sink = pipeline.element("plain");
  const Ref<GstPad> pad(gst_element_get_static_pad(sink.get(), "sink"));
  gst_pad_add_probe(
      pad.get(), GST_PAD_PROBE_TYPE_BUFFER,
      [](GstPad *, GstPadProbeInfo *info, gpointer data) {
        g_usleep(5000);  // so that the other branch runs first
        static_cast<std::vector<std::vector<uint8_t>> *>(data)->push_back(bytes_of(GST_PAD_PROBE_INFO_BUFFER(info)));
        return GST_PAD_PROBE_OK;
      },
      &frames, nullptr);
  fail_unless(pipeline.go_to(GST_STATE_PLAYING));
  assert_same_text(pipeline.wait_for_end(), "");
  fail_unless(pipeline.go_to(GST_STATE_NULL));
  return frames;
}

GST_START_TEST(another_branch_of_a_tee_keeps_its_pixels) {
  const auto plain = frames_of_branch("identity");
  fail_unless_equals_int(plain.size(), 6);
  const std::string backend = std::string(" backend=") + test_backend();
  fail_unless(frames_of_branch("cudaconv mask=box size=31 roi=\"0,0,64,48\"" + backend) == plain);
  fail_unless(frames_of_branch("cudaconv mask=box size=31 roi-meta=true" + backend) == plain);
}
GST_END_TEST;

GST_START_TEST(only_downstream_with_video_meta_gets_strides) {
  Random random = seeded();
  for (const char *format : {"GRAY8", "I420", "NV12", "YUY2", "RGBA", "I420_10LE"}) {
    const GstVideoInfo info = video_info(format, 53, 37);
    const std::string properties = std::string("mask=gauss5 ") + kRegions;
    Harness unaware(properties, info);
    check_copied(unaware, random_frame(info, random, kScattered), info, properties);
    check_in_place(unaware, random_frame(info, random), info, properties);
    check_in_place(unaware, random_frame(info, random, {}), info, properties);

    Harness h(properties);
    knows_video_meta(h);
    h.set_caps(info);
    check_in_place(h, random_frame(info, random, kScattered), info, properties);
    check_in_place(h, random_frame(info, random), info, properties);
  }
}
GST_END_TEST;

// Downstream without support for GstVideoMeta would take bytes behind the frame as part of the frame.
GST_START_TEST(only_downstream_with_video_meta_gets_a_buffer_that_is_too_long) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  const auto long_frame = [&] {
    Ref<GstBuffer> frame = random_frame(info, random);
    return Ref<GstBuffer>(gst_buffer_append(frame.release(), gst_buffer_new_allocate(nullptr, 16, nullptr)));
  };
  Harness unaware(properties, info);
  const Sent sent = give(unaware, long_frame());
  const Ref<GstBuffer> out = unaware.pull();
  fail_unless_equals_uint64(gst_buffer_get_size(out.get()), GST_VIDEO_INFO_SIZE(&info));
  Harness h(properties);
  knows_video_meta(h);
  h.set_caps(info);
  const Sent longer = give(h, long_frame());
  fail_unless(h.pull().get() == longer.buffer);
}
GST_END_TEST;

// Buffers of the default size may have another layout: swapped planes or narrower rows.
GST_START_TEST(a_buffer_of_the_default_size_may_have_another_layout) {
  Random random = seeded();
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  GstVideoInfo swapped = video_info("I420", 56, 40), narrow = video_info("GRAY8", 53, 37);
  std::swap(swapped.offset[1], swapped.offset[2]);
  narrow.stride[0] = 53;  // the default is 56
  for (GstVideoInfo layout : {swapped, narrow}) {
    const GstVideoInfo info = video_info(GST_VIDEO_INFO_NAME(&layout), layout.width, layout.height);
    const auto frame = [&] {
      Ref<GstBuffer> in = random_frame(info, random);
      gst_buffer_add_video_meta_full(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info), layout.width,
                                     layout.height, GST_VIDEO_INFO_N_PLANES(&info), layout.offset, layout.stride);
      return in;
    };
    Harness unaware(properties, info);
    check_copied(unaware, frame(), info, properties);
    Harness h(properties);
    knows_video_meta(h);
    h.set_caps(info);
    check_in_place(h, frame(), info, properties);
  }
}
GST_END_TEST;

// In place, the results of one plane would be the input of the other.
GST_START_TEST(planes_that_overlap_have_a_new_buffer) {
  Random random = seeded();
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  GstVideoInfo info = video_info("I420", 56, 40);
  Ref<GstBuffer> in = random_frame(info, random);
  info.offset[2] -= 280;
  gst_buffer_add_video_meta_full(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, info.width, info.height, 3,
                                 info.offset, info.stride);
  Harness h(properties);
  knows_video_meta(h);
  h.set_caps(info);
  check_copied(h, std::move(in), info, properties);
}
GST_END_TEST;

GST_START_TEST(each_field_is_filtered_separately) {
  Random random = seeded();
  for (const char *format : {"GRAY8", "Y42B", "I420", "RGBA"}) {
    for (const GstVideoInterlaceMode mode :
         {GST_VIDEO_INTERLACE_MODE_INTERLEAVED, GST_VIDEO_INTERLACE_MODE_ALTERNATE}) {
      GstVideoInfo info;
      gst_video_info_set_interlaced_format(&info, gst_video_format_from_string(format), mode, 53, 48);
      const std::string properties = std::string("mask=gauss5 ") + kRegions;
      Harness h(properties, info);
      for (const bool bottom : {false, true}) {
        Ref<GstBuffer> in = random_frame(info, random);
        if (mode == GST_VIDEO_INTERLACE_MODE_ALTERNATE)
          GST_BUFFER_FLAG_SET(in.get(), bottom ? GST_VIDEO_BUFFER_FLAG_BOTTOM_FIELD : GST_VIDEO_BUFFER_FLAG_TOP_FIELD);
        check_in_place(h, std::move(in), info, properties);
      }
    }
  }
}
GST_END_TEST;

GST_START_TEST(several_frames_are_in_flight) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 128, 96);
  const std::string properties = std::string("mask=box size=21 ") + kRegions;
  Harness h(properties, info);
  std::deque<Sent> sent;
  for (int i = 0; i < 24; i++) sent.push_back(give(h, random_frame(info, random)));
  for (const Sent &frame : sent) {
    const Ref<GstBuffer> out = h.pull();
    fail_unless(frame.is_same(out.get()));
    const Ref<GstBuffer> want = filtered_copy(frame.before.get(), info, properties);
    check_bytes(out.get(), want.get(), frame.before.get(), info);
  }
  fail_unless_equals_uint64(stat(h, "frames"), 24);
}
GST_END_TEST;

GST_START_TEST(settings_change_between_frames) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  const std::string regions = kRegions;
  Harness h("mask=gauss5 " + regions, info);
  for (int i = 0; i < 2; i++) {
    check_in_place(h, random_frame(info, random), info, "mask=gauss5 " + regions);
    h.set("mask=identity");
    Sent sent = give(h, random_frame(info, random));
    Ref<GstBuffer> out = h.pull();
    fail_unless(sent.is_same(out.get()));
    fail_unless(bytes_of(out.get()) == bytes_of(sent.before.get()));
    h.set("mask=median roi=");
    check_copied(h, random_frame(info, random), info, "mask=median");
    h.set("roi='1,2,30,30'");
    check_in_place(h, random_frame(info, random), info, "mask=median roi='1,2,30,30'");
    h.set("mask=gauss5 " + regions);
  }
}
GST_END_TEST;

GST_START_TEST(a_frame_without_detections_passes_through) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  Harness h("mask=gauss5 roi-meta=true", info);
  for (int i = 0; i < 3; i++) {
    const Sent sent = give(h, random_frame(info, random));
    const Ref<GstBuffer> out = h.pull();
    fail_unless(sent.is_same(out.get()));
    fail_unless(bytes_of(out.get()) == bytes_of(sent.before.get()));

    Ref<GstBuffer> detected = random_frame(info, random);
    gst_buffer_add_video_region_of_interest_meta(detected.get(), "face", 9, 8, 20, 12);
    check_in_place(h, std::move(detected), info, "mask=gauss5 roi='9,8,20,12'");
  }
}
GST_END_TEST;

GST_START_TEST(the_rectangle_of_a_crop_has_a_new_buffer) {
  Random random = seeded();
  const GstVideoInfo whole = video_info("GRAY8", 64, 48), info = video_info("GRAY8", 20, 16);
  Harness h("mask=gauss5 roi='2,2,9,9'");
  knows_video_meta(h);
  h.set_caps(info);
  Ref<GstBuffer> in = random_frame(whole, random, {});
  GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(in.get());
  crop->x = 7;
  crop->y = 5;
  crop->width = 20;
  crop->height = 16;
  const Sent sent = give(h, std::move(in));
  const Ref<GstBuffer> out = h.pull();
  fail_if(gst_buffer_peek_memory(out.get(), 0) == sent.memory);
  fail_if(gst_buffer_get_video_crop_meta(out.get()));
}
GST_END_TEST;

// If downstream's pool places its buffers itself, it is used and the frame is copied. A plain pool is not used.
// The meta's function uploads the source's pixels, maybe from elsewhere than the buffer's memory.
GST_START_TEST(a_frame_with_a_texture_of_its_own_has_a_new_buffer) {
  Harness h(kRegions, small());
  Random random = seeded();
  Ref<GstBuffer> in = random_frame(small(), random);
  GstVideoGLTextureType types[4] = {};
  fail_unless(gst_buffer_add_video_gl_texture_upload_meta(
                  in.get(), GST_VIDEO_GL_TEXTURE_ORIENTATION_X_NORMAL_Y_NORMAL, 1, types,
                  [](GstVideoGLTextureUploadMeta *, guint *) -> gboolean { return FALSE; }, nullptr, nullptr,
                  nullptr) != nullptr);
  const Sent sent = give(h, std::move(in));
  const Ref<GstBuffer> out = h.pull();
  fail_if(sent.is_same(out.get()));
  fail_if(gst_buffer_get_video_gl_texture_upload_meta(out.get()));
  const Ref<GstBuffer> want = filtered_copy(sent.before.get(), small(), kRegions);
  fail_unless(same_samples(out.get(), want.get(), small()));
}
GST_END_TEST;

GST_START_TEST(a_special_pool_of_downstream_is_used) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  {
    Harness h(properties);
    const Ref<GstBufferPool> pool(new_placed_pool(place(info, kScattered), 0x5a));
    offer_pool(h, pool.get());
    h.set_caps(info);
    const Sent sent = give(h, random_frame(info, random));
    const Ref<GstBuffer> out = h.pull();
    fail_unless(out->pool == pool.get());
    const Ref<GstBuffer> want = filtered_copy(sent.before.get(), info, properties);
    fail_unless(same_samples(out.get(), want.get(), info));
  }
  {
    Harness h(properties);
    const Ref<GstBufferPool> pool(gst_video_buffer_pool_new());
    offer_pool(h, pool.get());
    h.set_caps(info);
    check_in_place(h, random_frame(info, random), info, properties);
  }
}
GST_END_TEST;

// An allocator of an unknown type.
struct OtherAllocator {
  GstAllocator parent;
};
struct OtherAllocatorClass {
  GstAllocatorClass parent_class;
};
G_DEFINE_TYPE(OtherAllocator, other_allocator, GST_TYPE_ALLOCATOR)
std::atomic<int> other_allocations{0};
void other_allocator_class_init(OtherAllocatorClass *klass) {
  GST_ALLOCATOR_CLASS(klass)->alloc = [](GstAllocator *, gsize size, GstAllocationParams *params) {
    other_allocations++;
    GstMemory *memory = gst_allocator_alloc(nullptr, size, params);
    gst_mini_object_set_qdata(GST_MINI_OBJECT(memory), g_quark_from_static_string("other"), memory, nullptr);
    return memory;
  };
  GST_ALLOCATOR_CLASS(klass)->free = [](GstAllocator *, GstMemory *) {};
}
void other_allocator_init(OtherAllocator *) {}

GST_START_TEST(an_allocator_that_downstream_names_is_used) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  Harness h(properties);
  auto *allocator = static_cast<GstAllocator *>(gst_object_ref_sink(g_object_new(other_allocator_get_type(), nullptr)));
  gst_harness_set_propose_allocator(h.get(), allocator, nullptr);
  h.set_caps(info);
  give(h, random_frame(info, random));
  const Ref<GstBuffer> out = h.pull();
  fail_unless(gst_mini_object_get_qdata(GST_MINI_OBJECT(gst_buffer_peek_memory(out.get(), 0)),
                                        g_quark_from_static_string("other")) != nullptr);
}
GST_END_TEST;

// A buffer that does not match its caps is refused before an output buffer is allocated, which may have gigabytes.
GST_START_TEST(a_bad_buffer_is_refused_before_memory_is_allocated) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  Harness h("mask=gauss5");
  auto *allocator = static_cast<GstAllocator *>(gst_object_ref_sink(g_object_new(other_allocator_get_type(), nullptr)));
  gst_harness_set_propose_allocator(h.get(), allocator, nullptr);
  h.set_caps(info);
  other_allocations = 0;
  const Ref<GstBuffer> small(gst_buffer_new_allocate(nullptr, 16, nullptr));
  fail_unless_equals_int(h.push(small.get()), GST_FLOW_ERROR);
  h.take_one(GST_MESSAGE_ERROR);
  fail_unless_equals_int(other_allocations, 0);
  give(h, random_frame(info, random));
  const Ref<GstBuffer> out = h.pull();
  fail_unless(other_allocations > 0);
}
GST_END_TEST;

// Memory that is still mapped for reading cannot be mapped for writing, even if the buffer has no other reference.
GST_START_TEST(memory_that_cannot_be_mapped_for_writing_is_copied) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  Harness h(properties, info);
  Ref<GstBuffer> in = random_frame(info, random);
  GstMemory *memory = gst_memory_ref(gst_buffer_peek_memory(in.get(), 0));
  GstMapInfo map;
  fail_unless(gst_memory_map(memory, &map, GST_MAP_READ));
  check_copied(h, std::move(in), info, properties);
  gst_memory_unmap(memory, &map);
  gst_memory_unref(memory);
}
GST_END_TEST;

GST_START_TEST(times_flags_and_metas_stay) {
  Random random = seeded();
  const GstVideoInfo info = video_info("I420", 53, 37);
  Harness h("mask=gauss5 roi-meta=true", info);
  Ref<GstBuffer> in = random_frame(info, random);
  GST_BUFFER_PTS(in.get()) = 5 * GST_SECOND;
  GST_BUFFER_DTS(in.get()) = 4 * GST_SECOND;
  GST_BUFFER_DURATION(in.get()) = GST_SECOND / 25;
  GST_BUFFER_OFFSET(in.get()) = 77;
  GST_BUFFER_FLAG_SET(in.get(), GST_BUFFER_FLAG_MARKER);
  gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 9, 8, 20, 12);
  gst_buffer_add_video_time_code_meta_full(in.get(), 25, 1, nullptr, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, 3, 4, 0);
  give(h, std::move(in));
  const Ref<GstBuffer> out = h.pull();
  fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), 5 * GST_SECOND);
  fail_unless_equals_uint64(GST_BUFFER_DTS(out.get()), 4 * GST_SECOND);
  fail_unless_equals_uint64(GST_BUFFER_DURATION(out.get()), GST_SECOND / 25);
  fail_unless_equals_uint64(GST_BUFFER_OFFSET(out.get()), 77);
  fail_unless(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_MARKER));
  fail_unless_equals_int(gst_buffer_get_n_meta(out.get(), GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), 1);
  fail_unless_equals_int(gst_buffer_get_n_meta(out.get(), GST_VIDEO_TIME_CODE_META_API_TYPE), 1);
  fail_unless(gst_buffer_is_writable(out.get()));
}
GST_END_TEST;

#ifdef HAVE_DEVICE_MEMORY
GST_START_TEST(frames_in_device_memory_stay_where_they_are) {
  Random random = seeded();
  const std::string properties = std::string("mask=gauss5 ") + kRegions;
  for (const char *format : {planar_format(), "NV12", "RGBA"}) {
    // The height is even: with odd heights, I420's last plane starts within a row and is not copied to the device.
    const GstVideoInfo info = video_info(format, 53, 38);
    for (const bool to_device : {true, false}) {
      Harness h(properties);
      set_caps(h, info, true, to_device);
      const std::unique_ptr<DeviceMemory> device = DeviceMemory::of(h.element());
      for (int i = 0; i < 6; i++) {
        const Ref<GstBuffer> in = random_frame(info, random);
        Ref<GstBuffer> on_device = device->copy(in.get(), info);
        GstMemory *const memory = gst_buffer_peek_memory(on_device.get(), 0);
        fail_unless_equals_int(gst_harness_push(h.get(), on_device.release()), GST_FLOW_OK);
        const Ref<GstBuffer> out = h.pull();
        fail_unless_equals_int(gst_buffer_peek_memory(out.get(), 0) == memory, to_device);
        fail_unless_equals_int(device->holds(out.get()), to_device);
        const Ref<GstBuffer> want = filtered_copy(in.get(), info, properties);
        fail_unless(same_samples(out.get(), want.get(), info));
      }
    }
    // Frames go from system memory to the device.
    Harness h(properties);
    set_caps(h, info, false, true);
    check_copied(h, random_frame(info, random), info, properties);
  }
}
GST_END_TEST;
#endif

static Suite *make_suite() {
  Suite *suite = suite_create("inplace");
  TCase *tc = tcase_create("inplace");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, the_buffer_that_went_in_comes_out);
  tcase_add_test(tc, regions_may_touch_the_edges_and_each_other);
  tcase_add_test(tc, all_but_the_regions_of_a_frame);
  tcase_add_test(tc, without_regions_a_frame_has_a_new_buffer);
  tcase_add_test(tc, buffers_that_others_hold_do_not_change);
  tcase_add_test(tc, another_branch_of_a_tee_keeps_its_pixels);
  tcase_add_test(tc, only_downstream_with_video_meta_gets_strides);
  tcase_add_test(tc, only_downstream_with_video_meta_gets_a_buffer_that_is_too_long);
  tcase_add_test(tc, a_buffer_of_the_default_size_may_have_another_layout);
  tcase_add_test(tc, planes_that_overlap_have_a_new_buffer);
  tcase_add_test(tc, each_field_is_filtered_separately);
  tcase_add_test(tc, several_frames_are_in_flight);
  tcase_add_test(tc, settings_change_between_frames);
  tcase_add_test(tc, a_frame_without_detections_passes_through);
  tcase_add_test(tc, the_rectangle_of_a_crop_has_a_new_buffer);
  tcase_add_test(tc, a_frame_with_a_texture_of_its_own_has_a_new_buffer);
  tcase_add_test(tc, a_special_pool_of_downstream_is_used);
  tcase_add_test(tc, an_allocator_that_downstream_names_is_used);
  tcase_add_test(tc, a_bad_buffer_is_refused_before_memory_is_allocated);
  tcase_add_test(tc, memory_that_cannot_be_mapped_for_writing_is_copied);
  tcase_add_test(tc, times_flags_and_metas_stay);
#ifdef HAVE_DEVICE_MEMORY
  if (on_gpu()) tcase_add_test(tc, frames_in_device_memory_stay_where_they_are);
#endif
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "inplace", make_suite, on_gpu());
}
