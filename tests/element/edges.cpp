// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests rare cases: neighbours with their own pools, and the changes at a restart.
#include <dirent.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

void restart(Harness &h, const std::string &properties, const GstVideoInfo &info) {
  fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  h.set(properties);
  fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
  h.set_caps(video_info("RGBA", 8, 8));
  h.set_caps(info);
}

// ---- Neighbours -----------------------------------------------------------------------------------------------------

// A pool whose frames are too small. It reports so when it is configured.
struct SmallPool {
  GstBufferPool parent;
};
struct SmallPoolClass {
  GstBufferPoolClass parent_class;
};
G_DEFINE_TYPE(SmallPool, small_pool, GST_TYPE_BUFFER_POOL)
void small_pool_class_init(SmallPoolClass *klass) {
  GST_BUFFER_POOL_CLASS(klass)->set_config = [](GstBufferPool *pool, GstStructure *config) -> gboolean {
    GstCaps *caps;
    guint size, min, max;
    gst_buffer_pool_config_get_params(config, &caps, &size, &min, &max);
    gst_buffer_pool_config_set_params(config, caps, 100, min, max);
    return GST_BUFFER_POOL_CLASS(small_pool_parent_class)->set_config(pool, config) && size == 100;
  };
}
void small_pool_init(SmallPool *) {}

GST_START_TEST(a_pool_of_frames_that_are_too_small_is_not_used) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const Ref<GstBufferPool> pool(GST_BUFFER_POOL(gst_object_ref_sink(g_object_new(small_pool_get_type(), nullptr))));
  Harness h("mask=gauss5");
  offer_pool(h, pool.get());
  h.set_caps(info);
  const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
  fail_unless(out->pool != pool.get());
  assert_filtered(in.get(), out.get(), info, "mask=gauss5");
}
GST_END_TEST;

// The element offers no pull mode, even if upstream has one.
GST_START_TEST(frames_are_pushed_and_never_pulled) {
  Harness h("", small());
  gst_pad_add_probe(
      h.get()->srcpad, GST_PAD_PROBE_TYPE_QUERY_UPSTREAM,
      [](GstPad *, GstPadProbeInfo *info, gpointer) {
        GstQuery *query = GST_PAD_PROBE_INFO_QUERY(info);
        if (GST_QUERY_TYPE(query) != GST_QUERY_SCHEDULING) return GST_PAD_PROBE_OK;
        gst_query_set_scheduling(query, GST_SCHEDULING_FLAG_SEEKABLE, 1, -1, 0);
        gst_query_add_scheduling_mode(query, GST_PAD_MODE_PULL);
        return GST_PAD_PROBE_HANDLED;
      },
      nullptr, nullptr);
  const Ref<GstQuery> query(gst_query_new_scheduling());
  fail_if(gst_pad_peer_query(h.get()->sinkpad, query.get()) &&
          gst_query_has_scheduling_mode(query.get(), GST_PAD_MODE_PULL));
}
GST_END_TEST;

// ---- Restarts -------------------------------------------------------------------------------------------------------

// All threads except GLib's thread that starts the threads of pools.
std::set<std::string> threads_of_the_process() {
  std::set<std::string> threads;
  DIR *tasks = opendir("/proc/self/task");
  while (const dirent *entry = readdir(tasks)) {
    std::string name;
    std::getline(std::ifstream(std::string("/proc/self/task/") + entry->d_name + "/comm"), name);
    if (entry->d_name[0] != '.' && name != "pool-spawner") threads.insert(entry->d_name);
  }
  closedir(tasks);
  return threads;
}

GST_START_TEST(a_new_number_of_threads_applies_at_the_next_start) {
  if (strcmp(test_backend(), "cpu") != 0) return;
  const GstVideoInfo info = video_info("GRAY8", 1280, 720);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  g_thread_pool_set_max_unused_threads(0);  // threads of an earlier element must not be used again
  Harness h("mask=median size=7 n-threads=1", info);
  h.filter(in.get());
  const std::set<std::string> before = threads_of_the_process();
  restart(h, "n-threads=6", info);
  h.filter(in.get());
  int more = 0;
  for (const std::string &thread : threads_of_the_process()) more += !before.count(thread);
  fail_unless(more >= 1 && more <= 6, "%d more threads", more);  // one is the task of the source pad
}
GST_END_TEST;

// The same warning is posted once a second, and again after a restart.
GST_START_TEST(a_warning_is_posted_again_after_a_restart) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(small(), random);
  Harness h("mask=box size=3", small());
  for (int i = 0; i < 3; i++) {
    h.set("size=4");
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), small(), "mask=box size=3");
    h.take_one(GST_MESSAGE_WARNING);
    restart(h, "size=3", small());
  }
}
GST_END_TEST;

// ThreadSanitizer sees what elements share.
GST_START_TEST(elements_are_made_while_others_start) {
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) gst_object_unref(gst_object_ref_sink(gst_element_factory_make("cudaconv", nullptr)));
  });
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(small(), random);
  Harness h("mask=sobel", small());
  for (int i = 0; i < 20; i++) {
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), small(), "mask=sobel");
    restart(h, "mask=sobel", small());
  }
  ends = true;
  other.join();
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("edges");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, a_pool_of_frames_that_are_too_small_is_not_used);
  tcase_add_test(tc, frames_are_pushed_and_never_pulled);
  tcase_add_test(tc, a_new_number_of_threads_applies_at_the_next_start);
  tcase_add_test(tc, a_warning_is_posted_again_after_a_restart);
  tcase_add_test(tc, elements_are_made_while_others_start);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "edges", make_suite, !strcmp(test_backend(), "cuda"));
}
