// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the warnings about settings without effect, and about metas that the build cannot read.
#include <algorithm>
#include <cstring>
#include <map>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

const GstVideoInfo &gray() {
  static const GstVideoInfo info = video_info("GRAY8", 48, 32);
  return info;
}

GST_START_TEST(each_setting_without_effect_is_a_warning) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  const struct {
    const char *properties, *text;
  } cases[] = {
      {"roi-type=face", "roi-type has no effect without roi-meta"},
      {"roi-type=face roi=0,0,48,32", "roi-type has no effect without roi-meta"},
      {"roi-grow=0.5", "roi-grow has no effect without roi or roi-meta"},
      {"roi-feather=3", "roi-feather has no effect without roi or roi-meta"},
      {"mask=box roi-scale=0.5", "roi-scale has no effect without roi or roi-meta"},
      {"roi-scale=0.5 roi=0,0,48,32", "roi-scale has no effect with mask=gauss5; it is used by "},
      {"mask=box roi-scale=0.5 roi=-9,-9,3,3 roi-invert=true", "roi-scale has no effect with roi-invert=true"},
      {"roi-shape=ellipse", "roi-shape has no effect without roi or roi-meta"},
      {"roi-invert=true", "roi-invert has no effect without roi or roi-meta"},
      {"border-color=0xffffffff", "border-color has no effect with border=replicate; it is used with border=constant"},
      {"mask=mosaic border-color=0xffffffff", "border-color has no effect with mask=mosaic; it is used by all but "},
  };
  for (const auto &c : cases) {
    Harness h(c.properties, gray());
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), gray(), c.properties);
    }
    const Report warning = h.take_one(GST_MESSAGE_WARNING);
    fail_unless(warning.text.rfind(c.text, 0) == 0, "%s", warning.text.c_str());
    fail_unless(warning.domain == GST_LIBRARY_ERROR && warning.code == GST_LIBRARY_ERROR_SETTINGS);
  }
  // No warning if they have an effect, or have had one.
  Harness h(
      "roi-meta=true roi-type=face roi-grow=0.5 roi-shape=ellipse roi-invert=true border=constant "
      "border-color=0xffffffff",
      gray());
  h.filter(in.get());
  h.set("roi-meta=false border=replicate");
  h.filter(in.get());
}
GST_END_TEST;

// The signal says before a setting is made what the warning says after it.
GST_START_TEST(has_effect_agrees_with_the_warnings) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  const char *const masks[] = {"gauss5",
                               "gauss",
                               "unsharp",
                               "dilate",
                               "dilate shape=custom coefficients=1",
                               "mosaic",
                               "median",
                               "bilateral",
                               "custom coefficients=1",
                               "fill",
                               "sobel border=constant"};
  const char *const settings[] = {"sigma=2",
                                  "size=3",
                                  "size-y=3",
                                  "sigma-y=2",
                                  "amount=2",
                                  "divisor=2",
                                  "bias=0.25",
                                  "magnitude=l1",
                                  "shape=cross",
                                  "iterations=2",
                                  "sigma-range=0.2",
                                  "negative=absolute",
                                  "fill-color=0xffffffff",
                                  "border=wrap",
                                  "border-color=0xffffffff",
                                  "roi-grow=0.5",
                                  "roi-feather=4",
                                  "roi-scale=0.5",
                                  "roi-type=face",
                                  "chroma=copy",
                                  "luma=copy",
                                  "coefficients=3"};
  for (const char *mask : masks) {
    for (const char *regions : {"", " roi=0,0,24,16", " roi-meta=true", " roi-meta=true roi-invert=true"}) {
      for (const std::string setting : settings) {
        const std::string before = std::string("mask=") + mask + regions;
        const std::string name = setting.substr(0, setting.find('='));
        Harness h(before.c_str(), gray());
        gboolean has_effect = FALSE;
        g_signal_emit_by_name(h.element(), "has-effect", name.c_str(), &has_effect);
        h.set(setting.c_str());
        h.filter(in.get());
        const std::vector<Report> warnings = h.take(GST_MESSAGE_WARNING);
        const bool warned = std::any_of(warnings.begin(), warnings.end(), [&](const Report &warning) {
          return warning.text.rfind(name + " has no effect", 0) == 0;
        });
        fail_unless_equals_int(has_effect, !warned);
      }
    }
  }
  Harness h("mask=gauss", gray());
  gboolean has_effect = TRUE;
  g_signal_emit_by_name(h.element(), "has-effect", "no-such-thing", &has_effect);
  fail_if(has_effect);
  h.set("mask=sobel sigma=2");  // also where it is set
  g_signal_emit_by_name(h.element(), "has-effect", "sigma", &has_effect);
  fail_if(has_effect);
  g_signal_emit_by_name(h.element(), "has-effect", "mask", &has_effect);
  fail_unless(has_effect);
  h.take(GST_MESSAGE_WARNING);
}
GST_END_TEST;

// ---- roi-type -------------------------------------------------------------------------------------------------------

// Pushes a frame with a region of each of the types.
void push(Harness &h, double seconds, const std::vector<const char *> &types) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  for (const char *type : types) add_roi(in.get(), type, 5, 5, 20, 20);
  GST_BUFFER_PTS(in.get()) = static_cast<GstClockTime>(seconds * GST_SECOND);
  fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
  h.pull();
}

GST_START_TEST(a_type_without_a_match_for_five_seconds_is_a_warning) {
  Harness h("roi-meta=true roi-type=Face,plate", gray());
  push(h, 1, {});  // no metas: nothing to match
  push(h, 9, {"face", "person"});
  push(h, 13.9, {"car"});
  fail_unless(h.take(GST_MESSAGE_WARNING).empty());
  push(h, 14, {"face"});
  assert_same_text(h.take_one(GST_MESSAGE_WARNING).text,
                   "roi-type=Face,plate matches none of the regions that come with frames; their types are car, face, "
                   "person");
  push(h, 25, {"face"});
  push(h, 60, {"face"});  // warned of once
  push_event(h, gst_event_new_eos());
}
GST_END_TEST;

GST_START_TEST(the_warning_prints_no_control_characters) {
  Harness h("roi-meta=true roi-type=Face", gray());
  push(h, 1, {"face\r", "a\033[2Jb", "caf\xe9", "K\xc3\xa4se"});  // a label that is not UTF-8 would be no text
  push_event(h, gst_event_new_eos());
  assert_same_text(h.take_one(GST_MESSAGE_WARNING).text,
                   "roi-type=Face matches none of the regions that come with frames; their types are K\xc3\xa4se, "
                   "a\\033[2Jb, caf\\351, face");
}
GST_END_TEST;

GST_START_TEST(backward_playback_without_a_match_is_a_warning_too) {
  Harness h("roi-meta=true roi-type=plate", gray());
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.rate = -1;
  segment.stop = 60 * GST_SECOND;
  push_event(h, gst_event_new_segment(&segment));
  push(h, 59, {"face"});
  push(h, 54.1, {"face"});
  fail_unless(h.take(GST_MESSAGE_WARNING).empty());
  push(h, 54, {"face"});
  h.take_one(GST_MESSAGE_WARNING);
}
GST_END_TEST;

GST_START_TEST(a_match_from_time_to_time_prevents_the_warning) {
  Harness h("roi-meta=true roi-type=plate", gray());
  for (int i = 0; i < 40; i++) push(h, i, {"face", i % 4 ? "person" : "plate"});
  for (int i = 40; i < 80; i++) push(h, i, {});
  push_event(h, gst_event_new_eos());
  // The time starts again with another roi-type, and with a seek.
  Harness other("roi-meta=true roi-type=plate", gray());
  push(other, 1, {"plate"});
  push(other, 2, {"face"});
  push(other, 5, {"face"});
  other.set("roi-type=car");
  push(other, 8, {"face"});
  push(other, 2, {"face"});
  push(other, 6, {"face"});
  other.set("roi-type=''");
  push(other, 60, {"face"});
}
GST_END_TEST;

// A stream that is left by a seek has not gone on for the time that the seek jumped over.
GST_START_TEST(a_seek_takes_no_time) {
  Harness h("roi-meta=true roi-type=plate", gray());
  for (const int rate : {1, -1, 1}) {
    push_event(h, gst_event_new_flush_start());
    push_event(h, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.rate = rate;
    segment.stop = 1000 * GST_SECOND;
    push_event(h, gst_event_new_segment(&segment));
    push(h, rate > 0 ? 500 : 600, {"face"});
    push(h, rate > 0 ? 504 : 596, {"face"});
    fail_unless(h.take(GST_MESSAGE_WARNING).empty());
  }
  push(h, 505, {"face"});
  h.take_one(GST_MESSAGE_WARNING);
}
GST_END_TEST;

GST_START_TEST(a_short_stream_without_a_match_is_a_warning_at_its_end) {
  for (const bool matches : {false, true}) {
    Harness h("roi-meta=true roi-type=Face", gray());
    push(h, 0, {"face"});
    if (matches) push(h, 0.1, {"Face"});
    push(h, 0.2, {"face"});
    push_event(h, gst_event_new_eos());
    if (!matches)
      assert_same_text(h.take_one(GST_MESSAGE_WARNING).text,
                       "roi-type=Face matches none of the regions that come with frames; their types are face");
  }
}
GST_END_TEST;

// ---- coefficients ---------------------------------------------------------------------------------------------------

void set_array(GstElement *element, const std::vector<double> &numbers, bool whole) {
  GValue array = G_VALUE_INIT, number = G_VALUE_INIT;
  g_value_init(&array, GST_TYPE_ARRAY);
  g_value_init(&number, whole ? G_TYPE_INT : G_TYPE_DOUBLE);
  for (const double n : numbers) {
    if (whole)
      g_value_set_int(&number, static_cast<int>(n));
    else
      g_value_set_double(&number, n);
    gst_value_array_append_value(&array, &number);
  }
  g_object_set_property(G_OBJECT(element), "coefficients", &array);
  g_value_unset(&number);
  g_value_unset(&array);
}

// GObject converts arrays of integers and of doubles to text. Only the text of integers is exact.
GST_START_TEST(arrays_of_doubles_are_refused) {
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  Harness whole("mask=custom coefficients=1");
  set_array(whole.element(), {1, 0, 300000}, true);
  whole.set_caps(gray());
  const Ref<GstBuffer> out = whole.filter(in.get());
  assert_filtered(in.get(), out.get(), gray(), "mask=custom coefficients='1 0 300000'");
  for (const std::vector<double> &numbers : {std::vector<double>{1e-7, 4e-7, 1e-7}, {1, 2, 1}}) {
    Harness h("mask=gauss3", gray());
    set_array(h.element(), numbers, false);
    h.set("mask=custom");
    const Ref<GstBuffer> same = h.filter(in.get());
    assert_filtered(in.get(), same.get(), gray(), "mask=gauss3");
    assert_same_text(
        h.take_one(GST_MESSAGE_WARNING).text,
        "coefficients: the numbers of an array of doubles come rounded to six digits; set a string, such as \"1 2 1\"");
  }
}
GST_END_TEST;

// Each is a warning of its own, and not every one is remembered.
GST_START_TEST(bad_settings_that_are_ever_new_take_bounded_memory) {
  Harness h("mask=custom coefficients=1", gray());
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(gray(), random);
  size_t before = 0;
  for (int i = 0; i < 600; i++) {
    const std::string text =
        std::string(50000, 'x') + static_cast<char>('a' + i % 26) + static_cast<char>('a' + i / 26);
    g_object_set(h.element(), "coefficients", text.c_str(), nullptr);
    const Ref<GstBuffer> out = h.filter(in.get());
    fail_unless(same_samples(in.get(), out.get(), gray()));
    h.take_one(GST_MESSAGE_WARNING);
    if (i == 100) before = heap_bytes();
  }
  const size_t after = heap_bytes();
  fail_unless(after < before + (10 << 20), "%zu bytes, then %zu", before, after);
}
GST_END_TEST;

// ---- Metas that the build cannot read -------------------------------------------------------------------------------

#ifndef CUDACONV_ANALYTICS

gboolean init_meta(GstMeta *, gpointer, GstBuffer *) {
  return TRUE;
}

// Adds a meta like one of the analytics library, without its headers.
void add_meta(GstBuffer *buffer, const char *name) {
  static std::map<std::string, const GstMetaInfo *> known;
  const GstMetaInfo *&info = known[name];
  if (!info) {
    static const gchar *tags[] = {nullptr};
    const GType api = gst_meta_api_type_register((std::string(name) + "API").c_str(), tags);
    info = gst_meta_register(api, name, sizeof(GstMeta), init_meta, nullptr, nullptr);
  }
  fail_unless(gst_buffer_add_meta(buffer, info, nullptr) != nullptr);
}

void add_relations(GstBuffer *buffer) {
  add_meta(buffer, "GstAnalyticsRelationMeta");
}

GST_START_TEST(a_frame_with_tensors_alone_is_filtered_whole) {
  Random random = seeded();
  Harness h("mask=gauss5 roi-meta=true", gray());
  for (int i = 0; i < 2; i++) {
    const Ref<GstBuffer> marked = random_frame(gray(), random);
    add_meta(marked.get(), "GstTensorMeta");
    const Ref<GstBuffer> out = h.filter(marked.get());
    assert_filtered(marked.get(), out.get(), gray(), "mask=gauss5");
  }
  fail_unless(strstr(h.take_one(GST_MESSAGE_WARNING).text.c_str(), "tensors that no element has decoded"));
}
GST_END_TEST;

GST_START_TEST(a_frame_with_metas_that_cannot_be_read_is_filtered_whole) {
  Random random = seeded();
  const Selection all = {{{0, 0, 48, 32}}}, none;
  for (const char *more : {"", " roi-shape=ellipse", " roi-invert=true", " roi-type=face", " roi=1,2,3,4"}) {
    Harness h(std::string("mask=gauss5 roi-meta=true") + more, gray());
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> marked = random_frame(gray(), random), plain = random_frame(gray(), random);
      add_relations(marked.get());
      const Ref<GstBuffer> out = h.filter(marked.get());
      assert_filtered(marked.get(), out.get(), gray(), "mask=gauss5");
      if (!strstr(more, "roi=") && !strstr(more, "invert")) check_frame(h, plain.get(), gray(), "mask=gauss5", none);
    }
    const Report warning = h.take_one(GST_MESSAGE_WARNING);
    fail_unless(strstr(warning.text.c_str(), "cannot read the analytics metas") != nullptr, "%s", warning.text.c_str());
  }
  // roihold holds these metas like regions.
  Harness h("mask=gauss5 roi-meta=true hold=1000000000", gray());
  const Ref<GstBuffer> in = random_frame(gray(), random), marked = random_frame(gray(), random);
  add_relations(marked.get());
  check_frame_at(h, in.get(), gray(), 0, "mask=gauss5", none);
  check_frame_at(h, marked.get(), gray(), GST_SECOND, "mask=gauss5", all);
  check_frame_at(h, in.get(), gray(), 2 * GST_SECOND, "mask=gauss5", all);
  check_frame_at(h, in.get(), gray(), 2 * GST_SECOND + 1, "mask=gauss5", none);
  h.take_one(GST_MESSAGE_WARNING);
  // Without roi-meta the element reads no metas.
  Harness without("mask=gauss5 roi=1,2,3,4", gray());
  check_frame(without, marked.get(), gray(), "mask=gauss5", {{{1, 2, 3, 4}}});
}
GST_END_TEST;

#endif

}  // namespace

static Suite *make_suite() {
  Suite *suite = suite_create("advice");
  TCase *tc = tcase_create("advice");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, each_setting_without_effect_is_a_warning);
  tcase_add_test(tc, has_effect_agrees_with_the_warnings);
  tcase_add_test(tc, a_type_without_a_match_for_five_seconds_is_a_warning);
  tcase_add_test(tc, the_warning_prints_no_control_characters);
  tcase_add_test(tc, backward_playback_without_a_match_is_a_warning_too);
  tcase_add_test(tc, a_match_from_time_to_time_prevents_the_warning);
  tcase_add_test(tc, a_seek_takes_no_time);
  tcase_add_test(tc, a_short_stream_without_a_match_is_a_warning_at_its_end);
  tcase_add_test(tc, arrays_of_doubles_are_refused);
  tcase_add_test(tc, bad_settings_that_are_ever_new_take_bounded_memory);
#ifndef CUDACONV_ANALYTICS
  tcase_add_test(tc, a_frame_with_metas_that_cannot_be_read_is_filtered_whole);
  tcase_add_test(tc, a_frame_with_tensors_alone_is_filtered_whole);
#endif
  return suite;
}

int main(int argc, char **argv) {
  return run_suite(argc, argv, "advice", make_suite, !strcmp(test_backend(), "cuda"));
}
