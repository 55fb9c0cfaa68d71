// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests properties without a stream.
#include <algorithm>
#include <atomic>
#include <cmath>
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

// Older versions of GLib let a number pass that exceeds the range by a rounding error. Newer ones refuse it with a
// critical, and the property keeps its value. Sums of steps and cubic curves make these numbers.
GST_START_TEST(numbers_stay_within_their_ranges) {
  const Ref<GstElement> element = new_element("backend=cpu");
  const struct {
    const char *name;
    double limit;
  } limits[] = {{"bias", 1},        {"bias", -1},     {"sigma", 250},      {"sigma", -1},
                {"sigma-range", 1}, {"roi-scale", 0}, {"roi-feather", 256}};
  gst_check_add_log_filter("GLib-GObject", G_LOG_LEVEL_CRITICAL,
                           g_regex_new("is invalid or out of range", G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT, nullptr),
                           nullptr, nullptr, nullptr);
  for (const auto &[name, limit] : limits) {
    g_object_set(element.get(), name, limit, nullptr);
    const double beyond = limit > 0 ? std::nextafter(limit, 1e9) : std::nextafter(limit, -1e9);
    g_object_set(element.get(), name, beyond, nullptr);
    double value = 0;
    g_object_get(element.get(), name, &value, nullptr);
    fail_unless(value == limit, "%s is %.17g", name, value);
  }
  gst_check_clear_log_filter();
}
GST_END_TEST;

// A line that is copied from a shell to a program.
GST_START_TEST(quotes_of_a_launch_line_are_not_of_the_text) {
  const struct {
    const char *line, *property, *text;
  } cases[] = {
      {"cudaconv roi-type='!staff'", "roi-type", "!staff"},
      {"cudaconv roi='0,0,20%,100%; 1,2 3,4 5,6'", "roi", "0,0,20%,100%; 1,2 3,4 5,6"},
      {"cudaconv coefficients='1 2 1'", "coefficients", "1 2 1"},
      {"roihold types='face,plate'", "types", "face,plate"},
      {"roihold types=''", "types", nullptr},
      {"roihold types=\"driver's\"", "types", "driver's"},
      {"roihold types=\"'a','b'\"", "types", "'a','b'"},
      {"roihold types=\"'\"", "types", "'"},
  };
  for (const auto &c : cases) {
    const Ref<GstElement> element(GST_ELEMENT(gst_object_ref_sink(gst_parse_launch(c.line, nullptr))));
    gchar *text = nullptr;
    g_object_get(element.get(), c.property, &text, nullptr);
    fail_unless_equals_string(text, c.text);
    g_free(text);
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("properties");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, a_text_that_another_thread_sets_is_read_whole);
  tcase_add_test(tc, numbers_stay_within_their_ranges);
  tcase_add_test(tc, quotes_of_a_launch_line_are_not_of_the_text);
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "properties", make_suite, false);
}
