// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests properties without a stream.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

// The texts are long, so that a thread is interrupted while it copies one.
GST_START_TEST(a_text_that_another_thread_sets_is_read_whole) {
  constexpr size_t kLength = 1 << 20;
  const Ref<GstElement> element = new_element("backend=cpu");
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (int i = 0; i < 80; i++)
      g_object_set(element.get(), "coefficients", std::string(kLength + i % 3 * kLength, i % 2 ? '1' : '2').c_str(),
                   nullptr);
    done = true;
  });
  int torn = 0;
  while (!done) {
    gchar *text = nullptr;
    g_object_get(element.get(), "coefficients", &text, nullptr);
    if (text) {
      const std::string copy = text;
      torn += copy.size() % kLength || copy.find_first_not_of(copy[0]) != copy.npos;
    }
    g_free(text);
  }
  setter.join();
  fail_unless_equals_int(torn, 0);
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("properties");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, a_text_that_another_thread_sets_is_read_whole);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "properties", make_suite, false);
}
