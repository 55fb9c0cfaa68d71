// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests long runs: starts and stops, changes of caps, and parallel streams whose settings change all the time. No frame
// is lost, compared frames are right, and memory does not grow.
//
// CUDACONV_TEST_ENDURANCE multiplies the length of each test: 25 makes 1,000 starts and 5,000 changes of caps. Each
// test prints a line of counts.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

int times(int n) {
  return n * number_from_environment("CUDACONV_TEST_ENDURANCE", 1);
}

// Memory in use after each round of the same work. The least growth of all rounds counts: one-time allocations of
// libraries are in some rounds only.
class Memory {
 public:
  void note() { bytes_.push_back(heap_bytes()); }
  void expect_flat(const char *what, size_t allowed) const {
    size_t least = SIZE_MAX;
    for (size_t i = 1; i < bytes_.size(); i++) least = std::min(least, bytes_[i] - std::min(bytes_[i - 1], bytes_[i]));
    printf("%s: heap %zu bytes after the first round, %zu after the last; least growth %zu\n", what, bytes_.front(),
           bytes_.back(), least);
    fflush(stdout);
    fail_unless(least <= allowed, "%s: each round leaves %zu bytes or more", what, least);
  }

 private:
  std::vector<size_t> bytes_;
};

constexpr int kRounds = 4;
// Bytes by which memory may grow from one round to the next, for any length of a round.
constexpr size_t kOfARound = 16 << 10;

// Drops the events and messages that the harness keeps.
void forget(Harness &h) {
  while (GstEvent *event = gst_harness_try_pull_event(h.get())) gst_event_unref(event);
  while (GstEvent *event = gst_harness_try_pull_upstream_event(h.get())) gst_event_unref(event);
  h.take(GST_MESSAGE_STATE_CHANGED);
}

GST_START_TEST(starts_and_stops_leave_nothing) {
  const int starts = times(10);
  Random random = seeded();
  Memory memory;
  Harness h("mask=gauss5 frames-in-flight=2");
  for (int round = 0; round < kRounds; round++) {
    for (int i = 0; i < starts; i++) {
      // Two changes of caps, since the harness does not pass on equal caps.
      h.set_caps(video_info("RGBA", 8, 8));
      h.set_caps(small());
      const Ref<GstBuffer> in = random_frame(small(), random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), small(), "mask=gauss5");
      fail_unless_equals_uint64(gst_element_set_state(h.element(), GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
      fail_unless_equals_uint64(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
      forget(h);
    }
    memory.note();
  }
  printf("%d starts\n", starts * kRounds);
  memory.expect_flat("starts and stops", kOfARound + static_cast<size_t>(starts) * 16);
}
GST_END_TEST;

GST_START_TEST(changes_of_caps_leave_nothing) {
  const int changes = times(50);
  const char *formats[] = {"NV12", "I420", "RGBA", "GRAY8", "RGB", "YUY2", "P010_10LE", "GRAY16_LE"};
  Random random = seeded();
  Memory memory;
  Harness h("mask=box3 frames-in-flight=2");
  for (int round = 0; round < kRounds; round++) {
    int n = 0;  // starts at 0, so that every round has the same caps
    for (int i = 0; i < changes; i++, n++) {
      const GstVideoInfo info = video_info(formats[n % 8], 2 + n * 7 % 61, 2 + n * 5 % 37);
      h.set_caps(info);
      const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, "mask=box3");
      forget(h);
    }
    memory.note();
  }
  printf("%d changes of caps\n", changes * kRounds);
  memory.expect_flat("changes of caps", kOfARound + static_cast<size_t>(changes) * 16);
}
GST_END_TEST;

GST_START_TEST(streams_whose_settings_change_lose_no_frame) {
  constexpr int kStreams = 8, kWarmUp = 8;
  const int frames = times(25);
  const char *settings[] = {"mask=gauss5",
                            "mask=gauss sigma=2",
                            "mask=median size=5",
                            "mask=dilate size=7",
                            "mask=box size=9",
                            "mask=sobel",
                            "mask=open size=3",
                            "mask=unsharp sigma=1",
                            "mask=mosaic size=5",
                            "roi=1,2,9,7 roi-invert=true",
                            "roi='' roi-invert=false",
                            "frames-in-flight=1",
                            "frames-in-flight=4"};
  std::atomic<int> lost{0}, wrong{0};
  Memory memory;
  std::vector<std::unique_ptr<Harness>> streams;
  for (int i = 0; i < kStreams; i++) streams.push_back(std::make_unique<Harness>("mask=box3", small()));
  for (int round = 0; round < kRounds; round++) {
    std::vector<std::thread> threads;
    for (int stream = 0; stream < kStreams; stream++) {
      threads.emplace_back([&, stream, round] {
        Random random(static_cast<unsigned>(stream + kStreams * round));
        Harness &h = *streams[stream];
        // The first round is longer: every slot then has the memory for every setting.
        const int count = round ? frames : kWarmUp * frames;
        for (int i = 0; i < count; i++) {
          h.set(settings[random() % std::size(settings)]);
          lost += h.push(random_frame(small(), random).get()) != GST_FLOW_OK;
        }
        h.settle();
        int out = 0;
        while (GstBuffer *buffer = gst_harness_try_pull(h.get())) {
          gst_buffer_unref(buffer);
          out++;
        }
        lost += count - out;
        // A frame with plain settings, which must have no trace of earlier settings.
        h.set("mask=gauss5 size=0 sigma=-1 roi='' roi-invert=false");
        const Ref<GstBuffer> in = random_frame(small(), random);
        h.push(in.get());
        h.settle();
        const Ref<GstBuffer> after(gst_harness_try_pull(h.get()));
        std::string why;
        wrong += !after || !is_filtered(in.get(), after.get(), small(), "mask=gauss5", &why);
      });
    }
    for (std::thread &thread : threads) thread.join();
    for (const auto &h : streams) {
      h->take(GST_MESSAGE_WARNING);  // about settings that the current mask does not use
      forget(*h);
    }
    memory.note();
  }
  printf("%d streams, %d frames each: %d lost, %d wrong\n", kStreams, (frames + 1) * kRounds + (kWarmUp - 1) * frames,
         lost.load(), wrong.load());
  fail_unless_equals_int(lost, 0);
  fail_unless_equals_int(wrong, 0);
  memory.expect_flat("streams", kOfARound * kStreams + static_cast<size_t>(frames) * kStreams * 16);
}
GST_END_TEST;

// Two cameras in one stream, one of which always sends the time 0. Regions between the times of both are forgotten.
GST_START_TEST(times_that_jump_leave_nothing) {
  for (const char *also : {"", " lookahead=8000000"}) {
    const int frames = times(100);
    Random random = seeded();
    Memory memory;
    Harness h(std::string("mask=gauss5 roi-meta=true hold=8000000") + also, small());
    GstClockTime time = 0;
    for (int round = 0; round < kRounds; round++) {
      for (int i = 0; i < frames; i++) {
        const Ref<GstBuffer> in = random_frame(small(), random);
        time += 40 * GST_MSECOND;
        GST_BUFFER_PTS(in.get()) = i % 2 ? 0 : time;
        for (guint k = 0; k < 100; k++)
          gst_buffer_add_video_region_of_interest_meta(in.get(), "face", k % 20, k / 20, 5, 5);
        fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
      }
      h.settle();
      while (GstBuffer *buffer = gst_harness_try_pull(h.get())) gst_buffer_unref(buffer);
      forget(h);
      memory.note();
    }
    memory.expect_flat("times that jump", kOfARound);
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("endurance");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_set_timeout(tc, 0);  // no limit here: Meson sets one
  tcase_add_test(tc, starts_and_stops_leave_nothing);
  tcase_add_test(tc, changes_of_caps_leave_nothing);
  tcase_add_test(tc, streams_whose_settings_change_lose_no_frame);
  tcase_add_test(tc, times_that_jump_leave_nothing);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "endurance", make_suite, !strcmp(test_backend(), "cuda"));
}
