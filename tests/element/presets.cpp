// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Presets: the file that is installed, and presets of users. GST_PRESET_PATH is the folder of the file.
#include <glib/gstdio.h>

#include <cstring>
#include <initializer_list>
#include <map>
#include <set>

#include "regions.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

// An element with another value than its default for every property that presets hold.
constexpr char kAllChanged[] =
    "mask=custom size=9 size-y=7 sigma=2.5 sigma-y=0.1 sigma-range=0.3 amount=-1.7 coefficients='1 2 1; 2 4 2; 1 2 1' "
    "shape=ellipse divisor=17 bias=0.25 negative=clamp magnitude=l1 threshold=0.03 iterations=2 border=wrap "
    "border-color=4278190081 "
    "fill-color=305419896 luma=copy chroma=copy alpha=filter roi='25%,0,50%,1e1; 0,0 9.5,0 9,9' roi-meta=true "
    "roi-type='!staff,Gäste am Tor' roi-grow=0.1 roi-feather=3.5 roi-scale=0.3 roi-shape=ellipse roi-invert=true "
    "method=tiled";

struct Strings {
  gchar **texts;
  ~Strings() { g_strfreev(texts); }
  gchar **begin() const { return texts; }
  gchar **end() const { return texts + (texts ? g_strv_length(texts) : 0); }
};

Strings property_names(GstElement *element) {
  return {gst_preset_get_property_names(GST_PRESET(element))};
}
Strings preset_names(GstElement *element) {
  return {gst_preset_get_preset_names(GST_PRESET(element))};
}
bool load(GstElement *element, const char *name) {
  return gst_preset_load_preset(GST_PRESET(element), name);
}

std::string value_of(GstElement *element, const char *property) {
  GValue value = G_VALUE_INIT;
  g_object_get_property(G_OBJECT(element), property, &value);
  gchar *text = gst_value_serialize(&value);
  const std::string result = text ? text : "none";
  g_free(text);
  g_value_unset(&value);
  return result;
}

// The values of all properties that presets hold.
std::map<std::string, std::string> values_of(GstElement *element) {
  std::map<std::string, std::string> values;
  for (const gchar *name : property_names(element)) values[name] = value_of(element, name);
  return values;
}

void assert_same_values(GstElement *a, GstElement *b) {
  for (const auto &[name, value] : values_of(b)) {
    const std::string got = value_of(a, name.c_str());
    fail_unless(got == value, "%s is %s and should be %s", name.c_str(), got.c_str(), value.c_str());
  }
}

// The properties of a preset in the installed file, as in a launch line.
std::string line_of(const char *preset, const char *type = "GstCudaConv") {
  const std::string name = std::string(type) + ".prs";
  gchar *path = g_build_filename(g_getenv("GST_PRESET_PATH"), name.c_str(), nullptr);
  GKeyFile *file = g_key_file_new();
  fail_unless(g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, nullptr));
  std::string line;
  for (const gchar *key : Strings{g_key_file_get_keys(file, preset, nullptr, nullptr)}) {
    if (g_str_has_prefix(key, "_meta/")) continue;
    gchar *value = g_key_file_get_value(file, preset, key, nullptr);
    line += std::string(line.empty() ? "" : " ") + key + "=" + value;
    g_free(value);
  }
  g_key_file_free(file);
  g_free(path);
  return line;
}

// Pushes frames with a region each, and returns the bytes of all that comes out. No row has padding, whose bytes the
// filter leaves as they are.
std::string bytes_through(Ref<GstElement> element, bool *changed) {
  GstVideoInfo info = video_info("I420", 96, 52);
  info.fps_n = 25;
  info.fps_d = 1;
  Random random = seeded();
  Harness h(std::move(element));
  h.set_caps(info);
  std::string bytes;
  *changed = false;
  std::vector<Ref<GstBuffer>> frames;
  for (int i = 0; i < 3; i++) {
    frames.push_back(random_frame(info, random));
    GST_BUFFER_PTS(frames.back().get()) = i * 40 * GST_MSECOND;
    for (const char *type : {"face", "plate"}) add_roi(frames.back().get(), type, 20, 8, 40, 30);
    fail_unless_equals_int(h.push(frames.back().get()), GST_FLOW_OK);
  }
  push_event(h, gst_event_new_eos());
  for (const Ref<GstBuffer> &frame : frames) {
    const Ref<GstBuffer> out = h.pull();
    *changed |= !same_samples(frame.get(), out.get(), info);
    const FrameBytes pixels(out.get(), info);
    bytes.append(pixels.bytes.begin(), pixels.bytes.end());
  }
  return bytes;
}

}  // namespace

// ---- What presets hold ----------------------------------------------------------------------------------------------

// The filter's settings, without names, statistics and what depends on the machine.
GST_START_TEST(presets_hold_the_settings_of_the_filter) {
  const Ref<GstElement> element = new_element("");
  std::set<std::string> names;
  for (const gchar *name : property_names(element.get())) names.insert(name);
  for (const char *name :
       {"name", "parent", "qos", "stats", "backend", "cuda-device-id", "n-threads", "frames-in-flight"})
    fail_if(names.count(name), "%s is no setting of the filter", name);
  guint count = 0;
  GParamSpec **specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element.get()), &count);
  for (guint i = 0; i < count; i++)
    fail_unless(names.count(specs[i]->name) == !!(specs[i]->flags & GST_PARAM_MUTABLE_PLAYING), "%s", specs[i]->name);
  g_free(specs);
}
GST_END_TEST;

GST_START_TEST(every_value_is_the_same_after_saving_and_loading) {
  const Ref<GstElement> saved = new_element(kAllChanged), loaded = new_element(""), plain = new_element("");
  const auto defaults = values_of(plain.get());
  for (const auto &[name, value] : values_of(saved.get()))
    fail_if(value == defaults.at(name), "%s has its default: this test does not change it", name.c_str());
  fail_unless(gst_preset_save_preset(GST_PRESET(saved.get()), "All changed"));
  fail_unless(load(loaded.get(), "All changed"));
  assert_same_values(loaded.get(), saved.get());
  // Defaults are values too.
  fail_unless(gst_preset_save_preset(GST_PRESET(plain.get()), "Defaults"));
  fail_unless(load(loaded.get(), "Defaults"));
  assert_same_values(loaded.get(), plain.get());
}
GST_END_TEST;

GST_START_TEST(texts_are_the_same_after_saving_and_loading) {
  const Ref<GstElement> saved = new_element(""), loaded = new_element("");
  for (const char *text :
       {"1 2 1; 2 4 2; 1 2 1", "[[1, 2, 1], [2, 4, 2], [1, 2, 1]]", "1 2 1\n2 4 2\n1 2 1", "3: 1,2,1 2,4,2 1,2,1", "",
        " 1/9\t1/9 1/9;", "NULL", "#", "\\", "C:\\new\\101", "Gäste; Пост=1"}) {
    g_object_set(saved.get(), "coefficients", text, "roi", text, "roi-type", text, nullptr);
    fail_unless(gst_preset_save_preset(GST_PRESET(saved.get()), "Text"));
    fail_unless(load(loaded.get(), "Text"));
    assert_same_values(loaded.get(), saved.get());
  }
}
GST_END_TEST;

GST_START_TEST(only_presets_with_a_name_that_the_file_takes_are_saved) {
  const Ref<GstElement> saved = new_element("sigma=3"), loaded = new_element("");
  for (const auto &[name, takes] : std::initializer_list<std::pair<const char *, bool>>{{"a = b; #c", true},
                                                                                        {"Gäste", true},
                                                                                        {" ", true},
                                                                                        {"", false},
                                                                                        {"[x", false},
                                                                                        {"x]", false},
                                                                                        {"two\nlines", false},
                                                                                        {"\x7f", false},
                                                                                        {"_presets_", false}}) {
    fail_unless_equals_int(gst_preset_save_preset(GST_PRESET(saved.get()), name), takes);
    fail_unless_equals_int(load(loaded.get(), name), takes);
    if (takes) assert_same_values(loaded.get(), saved.get());
  }
}
GST_END_TEST;

GST_START_TEST(a_renamed_preset_is_never_lost_or_mixed_with_another) {
  const Ref<GstElement> first = new_element("mask=gauss sigma=3"), second = new_element(kAllChanged),
                        loaded = new_element("");
  fail_unless(gst_preset_save_preset(GST_PRESET(second.get()), "Second"));
  fail_unless(gst_preset_save_preset(GST_PRESET(first.get()), "First"));
  for (const char *name : {"", "[x", "x]", "two\nlines", "_presets_"})
    fail_if(gst_preset_rename_preset(GST_PRESET(first.get()), "First", name));
  fail_if(gst_preset_rename_preset(GST_PRESET(first.get()), "Nobody has saved this", "Second"));
  fail_unless(gst_preset_rename_preset(GST_PRESET(first.get()), "First", "First"));
  fail_unless(load(loaded.get(), "First"));
  assert_same_values(loaded.get(), first.get());
  fail_unless(load(loaded.get(), "Second"));
  assert_same_values(loaded.get(), second.get());
  // A preset has no texts that are unset.
  fail_unless(gst_preset_rename_preset(GST_PRESET(first.get()), "First", "Second"));
  fail_unless(load(loaded.get(), "Second"));
  assert_same_values(loaded.get(), first.get());
  fail_if(load(loaded.get(), "First"));
}
GST_END_TEST;

// The next program that reads the file finds all presets, and no other.
GST_START_TEST(a_comment_has_one_line) {
  const Ref<GstElement> element = new_element("");
  GstPreset *preset = GST_PRESET(element.get());
  fail_unless(gst_preset_save_preset(preset, "Commented"));
  fail_unless(gst_preset_set_meta(preset, "Commented", "comment", "Wanted: [a] = b; c"));
  for (const char *text : {"two\nlines", "two\nlines\n[Another]\nmask=fill", "two\rlines"})
    fail_if(gst_preset_set_meta(preset, "Commented", "comment", text));
  fail_if(gst_preset_set_meta(preset, "Nobody has saved this", "comment", "Unwanted"));
  fail_if(load(element.get(), "Nobody has saved this"));
  gchar *comment = nullptr;
  fail_unless(gst_preset_get_meta(preset, "Commented", "comment", &comment));
  assert_same_text(comment, "Wanted: [a] = b; c");
  g_free(comment);
}
GST_END_TEST;

GST_START_TEST(an_unknown_preset_changes_nothing) {
  const Ref<GstElement> element = new_element(kAllChanged), same = new_element(kAllChanged);
  fail_if(load(element.get(), "Nobody has saved this"));
  assert_same_values(element.get(), same.get());
}
GST_END_TEST;

// A frame that comes while a preset is loaded has all of its settings, or none. With mask=custom and no coefficients
// yet, or with the coefficients before, it would be wrong.
GST_START_TEST(all_properties_of_a_preset_take_effect_together) {
  constexpr char kBefore[] = "mask=custom coefficients='0 1 0; 1 2 1; 0 1 0'";
  constexpr char kAfter[] = "mask=custom coefficients='1 2 3; 4 5 6; 7 8 9' divisor=45";
  const Ref<GstElement> preset = new_element(kAfter);
  fail_unless(gst_preset_save_preset(GST_PRESET(preset.get()), "Together"));
  for (const char *property : {"mask", "coefficients", "divisor", "method"}) {
    Random random = seeded();
    Harness h(kBefore, small());
    const Ref<GstBuffer> in = random_frame(small(), random);
    assert_filtered(in.get(), h.filter(in.get()).get(), small(), kBefore);
    struct Probe {
      Harness *h;
      GstBuffer *in;
      std::vector<Ref<GstBuffer>> out;
    } probe = {&h, in.get(), {}};
    const std::string signal = std::string("notify::") + property;
    g_signal_connect(h.element(), signal.c_str(), G_CALLBACK(+[](GObject *, GParamSpec *, gpointer data) {
                       auto *p = static_cast<Probe *>(data);
                       p->out.push_back(p->h->filter(p->in));
                     }),
                     &probe);
    fail_unless(load(h.element(), "Together"));
    fail_unless_equals_int(probe.out.size(), 1);
    assert_filtered(in.get(), probe.out[0].get(), small(), kAfter);
    g_signal_handlers_disconnect_by_data(h.element(), &probe);
  }
}
GST_END_TEST;

// ---- The presets that come along ------------------------------------------------------------------------------------

// A preset sets what its file says, sets everything else to its default, and filters a frame like these settings. The
// harness fails the test where a preset causes a warning.
GST_START_TEST(each_preset_does_what_the_file_says) {
  const Ref<GstElement> list = new_element("");
  int count = 0;
  for (const gchar *name : preset_names(list.get())) {
    const std::string line = line_of(name);
    if (line.empty()) continue;  // saved by another test
    GST_INFO("preset \"%s\": %s", name, line.c_str());
    gchar *comment = nullptr;
    fail_unless(gst_preset_get_meta(GST_PRESET(list.get()), name, "comment", &comment) && comment, "%s", name);
    g_free(comment);
    Ref<GstElement> loaded = new_element(kAllChanged), set = new_element(line);
    fail_unless(load(loaded.get(), name), "%s", name);
    assert_same_values(loaded.get(), set.get());
    bool changed = false, also_changed = false;
    const std::string bytes = bytes_through(std::move(loaded), &changed);
    fail_unless(bytes == bytes_through(std::move(set), &also_changed), "%s", name);
    fail_unless(changed && also_changed, "%s changes no frame", name);
    count++;
  }
  fail_unless(count >= 10, "%d presets are not those of the file", count);
}
GST_END_TEST;

// A preset of roihold goes with the preset of cudaconv that has its name. Together they change frames with regions.
GST_START_TEST(presets_of_roihold_go_with_those_of_the_filter) {
  const auto make = [] {
    return Ref<GstElement>(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("roihold", nullptr))));
  };
  const Ref<GstElement> list = make();
  int count = 0;
  for (const gchar *name : preset_names(list.get())) {
    const Ref<GstElement> loaded = make(), set = make();
    set_properties(loaded.get(), "types=dog hold=1 lookahead=2 unmarked=drop report=true");
    set_properties(set.get(), line_of(name, "GstRoiHold"));
    fail_unless(load(loaded.get(), name), "%s", name);
    assert_same_values(loaded.get(), set.get());
    Ref<GstElement> pair = new_element("hold=0");
    fail_unless(load(part_of(pair.get(), "hold").get(), name) && load(part_of(pair.get(), "filter").get(), name), "%s",
                name);
    bool changed = false;
    bytes_through(std::move(pair), &changed);
    fail_unless(changed, "%s changes no frame", name);
    count++;
  }
  fail_unless_equals_int(count, 5);
}
GST_END_TEST;

// Each works in a pipeline whose frames carry no regions, from the first frame to the end.
GST_START_TEST(each_preset_runs_in_a_pipeline) {
  const Ref<GstElement> list = new_element("");
  for (const gchar *name : preset_names(list.get())) {
    if (line_of(name).empty()) continue;
    for (const char *format : {"NV12", "RGBA", "GRAY8"}) {
      Pipeline p(std::string("videotestsrc num-buffers=3 ! video/x-raw,width=64,height=48,format=") + format +
                 " ! cudaconv name=filter backend=" + test_backend() + " ! fakesink");
      fail_unless(load(p.element("filter").get(), name));
      fail_unless(p.go_to(GST_STATE_PLAYING), "%s does not start with %s", name, format);
      assert_same_text(p.wait_for_end(), "");
    }
  }
}
GST_END_TEST;

// GStreamer loads it after the properties of the line.
GST_START_TEST(a_launch_line_may_name_a_preset) {
  const Ref<GstElement> list = new_element("");
  for (const gchar *name : preset_names(list.get())) {
    if (line_of(name).empty()) continue;
    std::string escaped;
    for (const char c : std::string(name)) escaped += c == ' ' ? "\\ " : std::string(1, c);
    const Ref<GstElement> loaded = new_element("");
    const std::string line = "cudaconv size=9 @preset=" + escaped;
    const Ref<GstElement> launched(GST_ELEMENT(gst_object_ref_sink(gst_parse_launch(line.c_str(), nullptr))));
    fail_unless(load(loaded.get(), name));
    assert_same_values(launched.get(), loaded.get());
  }
}
GST_END_TEST;

static Suite *make_suite() {
  Suite *suite = suite_create("presets");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, presets_hold_the_settings_of_the_filter);
  tcase_add_test(tc, each_preset_does_what_the_file_says);
  tcase_add_test(tc, presets_of_roihold_go_with_those_of_the_filter);
  tcase_add_test(tc, each_preset_runs_in_a_pipeline);
  tcase_add_test(tc, a_launch_line_may_name_a_preset);
  tcase_add_test(tc, every_value_is_the_same_after_saving_and_loading);
  tcase_add_test(tc, texts_are_the_same_after_saving_and_loading);
  tcase_add_test(tc, only_presets_with_a_name_that_the_file_takes_are_saved);
  tcase_add_test(tc, a_renamed_preset_is_never_lost_or_mixed_with_another);
  tcase_add_test(tc, a_comment_has_one_line);
  tcase_add_test(tc, an_unknown_preset_changes_nothing);
  tcase_add_test(tc, all_properties_of_a_preset_take_effect_together);
  return suite;
}

int main(int argc, char **argv) {
  // Presets of users go here, and not among the presets of whoever runs the test.
  gchar *folder = g_dir_make_tmp("presets-XXXXXX", nullptr);
  g_setenv("XDG_DATA_HOME", folder, TRUE);
  const int code = run_suite(argc, argv, "presets", make_suite, false);
  gchar *presets = g_build_filename(folder, "gstreamer-1.0", "presets", nullptr);
  for (const char *name : {"GstCudaConv.prs", "GstCudaConv.prs.bak"}) {
    gchar *path = g_build_filename(presets, name, nullptr);
    g_unlink(path);
    g_free(path);
  }
  g_rmdir(presets);
  *std::strrchr(presets, '/') = '\0';
  g_rmdir(presets);
  g_rmdir(folder);
  g_free(presets);
  g_free(folder);
  return code;
}
