// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the element with frames in system memory, on the backend of CUDACONV_TEST_BACKEND.
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <set>

#include "formats.h"
#include "reference.h"
#include "overlappingcall.h"
#include "support.h"

using namespace cudaconv;
using namespace cudaconv::test;

namespace {

// Filters one frame through a new element and checks the result.
void check_frame(const GstVideoInfo &info, const std::string &properties) {
  Random random = seeded();
  Harness h(properties, info);
  const Ref<GstBuffer> in = random_frame(info, random);
  const Ref<GstBuffer> out = h.filter(in.get());
  assert_filtered(in.get(), out.get(), info, properties);
}

// ---- Properties -----------------------------------------------------------------------------------------------------

constexpr int kLive = G_PARAM_READWRITE | GST_PARAM_MUTABLE_PLAYING;
constexpr int kAnimated = kLive | GST_PARAM_CONTROLLABLE;
constexpr int kReady = G_PARAM_READWRITE | GST_PARAM_MUTABLE_READY;

struct Number {
  const char *name;
  double initial, min, max;
  int flags;
};
constexpr Number kNumbers[] = {
    {"size", 0, 0, 1501, kLive},
    {"size-y", 0, 0, 1501, kLive},
    {"sigma", -1, -1, 250, kAnimated},
    {"sigma-y", -1, -1, 250, kAnimated},
    {"sigma-range", 0.1, 0, 1, kAnimated},
    {"amount", 1, -100, 100, kAnimated},
    {"divisor", 0, -1e9, 1e9, kAnimated},
    {"bias", 0, -1, 1, kAnimated},
    {"threshold", 0, 0, 1, kAnimated},
    {"iterations", 1, 1, 1000, kAnimated},
    {"border-color", 0xff000000u, 0, G_MAXUINT32, kLive},
    {"fill-color", 0xff000000u, 0, G_MAXUINT32, kLive},
    {"cuda-device-id", -1, -1, G_MAXINT, kReady},
    {"n-threads", 0, 0, 16, kReady},
    {"frames-in-flight", 0, 0, 16, kReady},
    {"roi-meta", 0, 0, 1, kLive},
    {"roi-invert", 0, 0, 1, kLive},
    {"roi-grow", 0, 0, 4, kAnimated},
    {"roi-feather", 0, 0, 256, kAnimated},
    {"roi-scale", 0, 0, 1, kAnimated},
};

struct Choice {
  const char *name, *initial;
  int flags;
};
constexpr Choice kChoices[] = {
    {"mask", "gauss5", kLive},    {"shape", "rect", kLive},       {"negative", "auto", kLive},
    {"magnitude", "l2", kLive},   {"border", "replicate", kLive}, {"chroma", "auto", kLive},
    {"luma", "filter", kLive},    {"alpha", "copy", kLive},       {"method", "auto", kLive},
    {"roi-shape", "rect", kLive}, {"backend", "auto", kReady},
};

constexpr Choice kTexts[] = {{"coefficients", nullptr, kLive}, {"roi", nullptr, kLive}, {"roi-type", nullptr, kLive}};

GParamSpec *property_of(GstElement *element, const char *name) {
  GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), name);
  fail_unless(spec != nullptr, "there is no property %s", name);
  return spec;
}

void check_flags(const GParamSpec *spec, int flags) {
  constexpr int kLookedAt = G_PARAM_READWRITE | GST_PARAM_CONTROLLABLE | GST_PARAM_MUTABLE_READY |
                            GST_PARAM_MUTABLE_PAUSED | GST_PARAM_MUTABLE_PLAYING | GST_PARAM_CONDITIONALLY_AVAILABLE;
  fail_unless((spec->flags & kLookedAt) == flags, "the flags of %s are %x", spec->name, spec->flags);
  fail_unless(g_param_spec_get_blurb(const_cast<GParamSpec *>(spec)) != nullptr, "%s has no blurb", spec->name);
}

// The value of a number or boolean of any type.
double as_double(const GValue *value) {
  if (G_VALUE_HOLDS_BOOLEAN(value)) return g_value_get_boolean(value);
  GValue number = G_VALUE_INIT;
  g_value_init(&number, G_TYPE_DOUBLE);
  fail_unless(g_value_transform(value, &number));
  return g_value_get_double(&number);
}

double get_number(GstElement *element, const char *name) {
  GValue value = G_VALUE_INIT;
  g_object_get_property(G_OBJECT(element), name, &value);
  const double number = as_double(&value);
  g_value_unset(&value);
  return number;
}

void set_number(GstElement *element, const char *name, double number) {
  GValue from = G_VALUE_INIT, to = G_VALUE_INIT;
  g_value_init(&to, property_of(element, name)->value_type);
  if (G_VALUE_HOLDS_BOOLEAN(&to)) {
    g_value_set_boolean(&to, number != 0);
  } else {
    g_value_init(&from, G_TYPE_DOUBLE);
    g_value_set_double(&from, number);
    fail_unless(g_value_transform(&from, &to));
  }
  g_object_set_property(G_OBJECT(element), name, &to);
}

void limits_of(GParamSpec *spec, double *min, double *max) {
  if (G_IS_PARAM_SPEC_UINT(spec)) {
    *min = G_PARAM_SPEC_UINT(spec)->minimum;
    *max = G_PARAM_SPEC_UINT(spec)->maximum;
  } else if (G_IS_PARAM_SPEC_INT(spec)) {
    *min = G_PARAM_SPEC_INT(spec)->minimum;
    *max = G_PARAM_SPEC_INT(spec)->maximum;
  } else if (G_IS_PARAM_SPEC_BOOLEAN(spec)) {
    *min = 0;
    *max = 1;
  } else {
    *min = G_PARAM_SPEC_DOUBLE(spec)->minimum;
    *max = G_PARAM_SPEC_DOUBLE(spec)->maximum;
  }
}

std::string get_nick(GstElement *element, const char *name) {
  gint value;
  g_object_get(element, name, &value, nullptr);
  auto *klass = static_cast<GEnumClass *>(g_type_class_ref(property_of(element, name)->value_type));
  const std::string nick = g_enum_get_value(klass, value)->value_nick;
  g_type_class_unref(klass);
  return nick;
}

GST_START_TEST(properties_have_their_defaults_limits_and_flags) {
  const Ref<GstElement> owned(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("cudaconv", nullptr))));
  GstElement *element = owned.get();
  std::set<std::string> known = {"stats"};
  for (const Number &n : kNumbers) {
    known.insert(n.name);
    GParamSpec *spec = property_of(element, n.name);
    check_flags(spec, n.flags);
    double min, max;
    limits_of(spec, &min, &max);
    assert_equals_float(min, n.min);
    assert_equals_float(max, n.max);
    assert_equals_float(as_double(g_param_spec_get_default_value(spec)), n.initial);
    assert_equals_float(get_number(element, n.name), n.initial);
  }
  for (const Choice &c : kChoices) {
    known.insert(c.name);
    check_flags(property_of(element, c.name), c.flags);
    assert_same_text(get_nick(element, c.name), c.initial);
  }
  for (const Choice &t : kTexts) {
    known.insert(t.name);
    check_flags(property_of(element, t.name), t.flags);
    gchar *text;
    g_object_get(element, t.name, &text, nullptr);
    fail_unless(text == nullptr);
  }
  check_flags(property_of(element, "stats"), G_PARAM_READABLE);

  guint n;
  GParamSpec **all = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &n);
  for (guint i = 0; i < n; i++)
    fail_unless(all[i]->owner_type != G_OBJECT_TYPE(element) || known.count(all[i]->name), "%s is not tested",
                all[i]->name);
  g_free(all);
}
GST_END_TEST;

GST_START_TEST(properties_keep_what_they_are_set_to) {
  const Ref<GstElement> owned(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("cudaconv", nullptr))));
  GstElement *element = owned.get();
  for (const Number &n : kNumbers) {
    for (double value : {n.min, n.max, n.initial}) {
      set_number(element, n.name, value);
      assert_equals_float(get_number(element, n.name), value);
    }
  }
  for (const Choice &c : kChoices) {
    auto *klass = static_cast<GEnumClass *>(g_type_class_ref(property_of(element, c.name)->value_type));
    const std::vector<Nick> &nicks = nicks_of(c.name);
    fail_unless_equals_int(klass->n_values, nicks.size());
    for (const Nick &nick : nicks) {
      const GEnumValue *value = g_enum_get_value_by_nick(klass, nick.nick);
      fail_unless(value != nullptr, "%s has no %s", c.name, nick.nick);
      fail_unless_equals_int(value->value, nick.value);
      gst_util_set_object_arg(G_OBJECT(element), c.name, nick.nick);
      assert_same_text(get_nick(element, c.name), nick.nick);
    }
    g_type_class_unref(klass);
  }
  for (const Choice &t : kTexts) {
    gchar *text;
    g_object_set(element, t.name, "1 2 1", nullptr);
    g_object_get(element, t.name, &text, nullptr);
    fail_unless_equals_string(text, "1 2 1");
    g_free(text);
    g_object_set(element, t.name, nullptr, nullptr);
    g_object_get(element, t.name, &text, nullptr);
    fail_unless(text == nullptr);
  }
}
GST_END_TEST;

// The properties that a nick of `property` needs to have an effect.
std::string company_of(const std::string &property, const std::string &nick) {
  if (property == "mask") return nick == "custom" ? "coefficients='1 2 3; 0 5 0; -1 0 1'" : "";
  if (property == "shape")
    return nick == "custom" ? "mask=dilate coefficients='0 1 0; 1 0 0; 0 1 1'" : "mask=dilate size=7";
  if (property == "negative") return "mask=sobel-x chroma=filter";
  if (property == "magnitude") return "mask=prewitt chroma=filter";
  if (property == "border") return "mask=gauss9";
  if (property == "method") return nick == "cascade" ? "mask=dilate size=5" : "mask=gauss5";
  return "mask=box5";
}

GST_START_TEST(every_nick_of_every_enum_filters) {
  Random random = seeded();
  for (const char *format : {"NV12", "RGBA"}) {
    const GstVideoInfo info = video_info(format, 33, 19);
    const Ref<GstBuffer> in = random_frame(info, random);
    for (const Choice &c : kChoices) {
      if (!strcmp(c.name, "backend") || !strncmp(c.name, "roi-", 4)) continue;  // these have separate tests
      for (const Nick &nick : nicks_of(c.name)) {
        const std::string properties = company_of(c.name, nick.nick) + " " + c.name + "=" + nick.nick;
        Harness h(properties, info);
        const Ref<GstBuffer> out = h.filter(in.get());
        assert_filtered(in.get(), out.get(), info, properties);
        if (!strcmp(c.name, "method") && strcmp(nick.nick, "auto") != 0)
          assert_same_text(stat_string(h, "method"), nick.nick);
      }
    }
  }
}
GST_END_TEST;

GST_START_TEST(numbers_take_effect) {
  for (const char *properties :
       {"mask=box size=9", "mask=gauss size=7", "mask=gauss sigma=1.4", "mask=gauss size=5 sigma=4", "mask=unsharp",
        "mask=unsharp amount=2.5 sigma=1", "mask=unsharp amount=-1 size=3", "mask=gauss5 divisor=100",
        "mask=gauss3 bias=0.25", "mask=emboss bias=-0.125", "mask=box3 iterations=4", "mask=open iterations=3",
        "mask=median size=5", "mask=dilate size=11 shape=ellipse", "mask=erode size=127", "mask=mosaic size=6",
        "mask=custom coefficients='1 1 1 1 1 1 1 1 1'", "mask=custom coefficients='1, 2, 1'",
        "mask=custom coefficients='0.5; -1.25; 0.5;' bias=0.5"}) {
    check_frame(video_info("I420", 31, 23), properties);
    if (!strstr(properties, "1 1 1 1")) check_frame(video_info("GRAY16_LE", 31, 23), properties);
  }
}
GST_END_TEST;

// For most pixels the only coefficient other than 0 is outside the frame.
const char kFarLeft[] = "mask=custom coefficients='1 0 0 0 0 0 0 0 0 0 0 0 0' border=constant alpha=filter";

GST_START_TEST(border_color_is_converted_to_the_frames_colours) {
  struct Case {
    const char *format;
    guint32 argb;
    int value[4];  // of border-color, by plane and channel
  };
  // The expected values are BT.601's primaries in limited range at 8 and 10 bits. 0x80 is code 514 of 1023; grey has
  // full range.
  for (const Case &c : {Case{"RGBA", 0x80ff4020, {255, 64, 32, 128}}, Case{"ARGB", 0x80ff4020, {128, 255, 64, 32}},
                        Case{"I420", 0xffff0000, {81, 90, 240}}, Case{"NV12", 0xff0000ff, {41, 240, 110}},
                        Case{"P010_10LE", 0xffff0000, {326, 361, 960}}, Case{"GRAY8", 0xff808080, {128}},
                        Case{"RGB10A2_LE", 0xff80ff00, {514, 1023, 0, 3}}}) {
    const GstVideoInfo info = video_info(c.format, 9, 7);
    FrameLayout layout = layout_of(info);
    for (int p = 0, i = 0; p < layout.planes; p++)
      for (int k = 0; k < layout.plane[p].channels; k++)
        layout.plane[p].border_value[k] = static_cast<uint16_t>(c.value[i++]);
    const std::string properties = kFarLeft + (" border-color=" + std::to_string(c.argb));
    Random random = seeded();
    Harness h(properties, info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, layout, properties);
  }
}
GST_END_TEST;

GST_START_TEST(border_color_follows_the_colorimetry_of_the_caps) {
  const struct {
    const char *colorimetry;  // range:matrix:transfer:primaries
    int height;
    int value[3];
    const char *format = "Y444";
  } cases[] = {
      // The expected value is red for Kr = 0.299, 0.2126 and 0.2627 in limited range, and for the first two in full
      // range.
      {"2:4:0:0", 8, {81, 90, 240}},
      {"2:3:0:0", 8, {63, 102, 240}},
      {"2:6:0:0", 8, {74, 97, 240}},
      {"1:4:0:0", 8, {76, 85, 255}},
      {"1:3:0:0", 8, {54, 99, 255}},
      {"2:3:0:0", 600, {63, 102, 240}},
      // If the caps name no matrix, the frame's height decides between BT.601 and BT.709.
      {"2:0:0:0", 8, {81, 90, 240}},
      {"2:0:0:0", 577, {63, 102, 240}},
      {"2:0:0:0", 576, {81, 90, 240}},
      {"1:0:0:0", 576, {76}, "GRAY8"},
      {"1:0:0:0", 577, {54}, "GRAY8"},
      // Numbers that GStreamer does not know.
      {"9:4:0:0", 8, {76, 85, 255}},
      {"2:9:0:0", 8, {81, 90, 240}},
  };
  for (const auto &c : cases) {
    GstVideoInfo info = video_info(c.format, 9, c.height);
    fail_unless(gst_video_colorimetry_from_string(&info.colorimetry, c.colorimetry));
    FrameLayout layout = layout_of(info);
    for (int p = 0; p < layout.planes; p++) layout.plane[p].border_value[0] = static_cast<uint16_t>(c.value[p]);
    const std::string properties = kFarLeft + std::string(" border-color=4294901760");
    Random random = seeded();
    Harness h(properties, info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, layout, properties);
  }
}
GST_END_TEST;

// ---- Caps -----------------------------------------------------------------------------------------------------------

// The formats in system memory of the pad template.
std::vector<std::string> template_formats(const char *pad) {
  const Ref<GstElement> element = new_element("");
  const Ref<GstCaps> caps(gst_pad_template_get_caps(gst_element_get_pad_template(element.get(), pad)));
  gst_element_set_bus(element.get(), nullptr);
  std::vector<std::string> result;
  for (guint i = 0; i < gst_caps_get_size(caps.get()); i++) {
    if (!gst_caps_features_is_equal(gst_caps_get_features(caps.get(), i), GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY))
      continue;
    const GValue *list = gst_structure_get_value(gst_caps_get_structure(caps.get(), i), "format");
    for (guint k = 0; k < gst_value_list_get_size(list); k++)
      result.push_back(g_value_get_string(gst_value_list_get_value(list, k)));
  }
  return result;
}

GST_START_TEST(templates_list_every_format_with_planes_of_samples) {
  const std::vector<std::string> sink = template_formats("sink"), src = template_formats("src");
  fail_unless(sink == src);
  // Not listed: formats whose samples share words, except 32-bit little-endian words of one pixel; formats in which
  // other than two luma samples share chroma.
  const std::set<std::string> left_out = {"RGB16", "BGR16", "RGB15", "BGR15", "r210", "IYU1"};
  guint n;
  const GstVideoFormat *all = gst_video_formats_raw(&n);
  for (guint i = 0; i < n; i++) {
    const GstVideoFormatInfo *finfo = gst_video_format_get_info(all[i]);
    const std::string name = GST_VIDEO_FORMAT_INFO_NAME(finfo);
    const bool lies_in_planes = !GST_VIDEO_FORMAT_INFO_IS_COMPLEX(finfo) && !GST_VIDEO_FORMAT_INFO_IS_TILED(finfo) &&
                                !GST_VIDEO_FORMAT_INFO_HAS_PALETTE(finfo) && finfo->pixel_stride[0] > 0;
    const auto listed = std::count(sink.begin(), sink.end(), name);
    fail_unless(listed == (lies_in_planes && !left_out.count(name)), "%s is listed %d times", name.c_str(),
                int(listed));
  }
}
GST_END_TEST;

// A frame of random pixels, packed by GStreamer, so that unused bits are right.
Ref<GstBuffer> packed_frame(const GstVideoInfo &info, Random &random) {
  Ref<GstBuffer> buffer(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
  gst_buffer_memset(buffer.get(), 0, 0, GST_VIDEO_INFO_SIZE(&info));
  GstVideoFrame frame;
  fail_unless(gst_video_frame_map(&frame, &info, buffer.get(), GST_MAP_READWRITE));
  std::vector<guint16> row(4 * 32);
  for (int y = 0; y < GST_VIDEO_INFO_HEIGHT(&info); y++) {
    for (guint16 &value : row) value = static_cast<guint16>(random());
    info.finfo->pack_func(info.finfo, GST_VIDEO_PACK_FLAG_NONE, row.data(), 0, frame.data, frame.info.stride,
                          GST_VIDEO_CHROMA_SITE_NONE, y, GST_VIDEO_INFO_WIDTH(&info));
  }
  gst_video_frame_unmap(&frame);
  return buffer;
}

void check_by_unpacking(const char *format, const std::string &properties, const std::vector<int> &border_value) {
  Random random = seeded();
  // VYUY has an even width here: GStreamer exchanges U and V of the last pixel of odd rows.
  const GstVideoInfo info = video_info(format, strcmp(format, "VYUY") ? 13 : 14, 7);
  const Ref<GstBuffer> in = packed_frame(info, random);
  Harness h(properties, info);
  const Ref<GstBuffer> out = h.filter(in.get());
  std::string why;
  if (!is_filtered_by_unpacking(in.get(), out.get(), info, properties, border_value, &why)) fail("%s", why.c_str());
}

GST_START_TEST(every_format_filters) {
  for (const std::string &format : template_formats("sink")) {
    check_by_unpacking(format.c_str(),
                       "mask=custom coefficients='1 2 3; 0 5 0; 0 0 1' border=wrap chroma=filter alpha=filter", {});
    // The border is red, so that swapped components make a difference.
    const GstVideoInfo info = video_info(format.c_str(), 16, 16);
    std::vector<int> red;
    for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++) {
      const int depth = GST_VIDEO_INFO_COMP_DEPTH(&info, c), max = (1 << depth) - 1;
      const double limited[] = {16 + 219 * 0.299, 128 - 224 * 0.299 / 1.772, 128 + 224 * 0.5};
      if (c == GST_VIDEO_COMP_A)
        red.push_back(max);
      else if (GST_VIDEO_INFO_IS_YUV(&info))
        red.push_back(static_cast<int>(std::lround(std::ldexp(limited[c], depth - 8))));
      else if (GST_VIDEO_INFO_IS_GRAY(&info))
        red.push_back(static_cast<int>(std::lround(0.299 * max)));
      else
        red.push_back(c == 0 ? max : 0);
    }
    check_by_unpacking(format.c_str(), std::string(kFarLeft) + " border-color=4294901760", red);
  }
}
GST_END_TEST;

GST_START_TEST(common_formats_filter_byte_for_byte) {
  Random random = seeded();
  for (const Format &format : formats()) {
    if (gst_video_format_from_string(format.name) == GST_VIDEO_FORMAT_UNKNOWN) continue;
    const GstVideoInfo info = video_info(format.name, 21, 11);
    for (const char *properties :
         {"mask=gauss5", "mask=sobel", "mask=close alpha=filter", "mask=sharpen chroma=copy"}) {
      Harness h(properties, info);
      const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, properties);
    }
  }
}
GST_END_TEST;

Ref<GstCaps> query_caps(GstPad *pad, const char *filter = nullptr) {
  GstCaps *wanted = filter ? gst_caps_from_string(filter) : nullptr;
  Ref<GstCaps> result(gst_pad_peer_query_caps(pad, wanted));
  if (wanted) gst_caps_unref(wanted);
  return result;
}

GST_START_TEST(format_and_size_never_change) {
  Harness h;
  gst_harness_set_sink_caps_str(h.get(), "video/x-raw,format={NV12,RGBA},width=[16,64],height=48");
  // Upstream is offered the caps that downstream takes.
  const Ref<GstCaps> offered = query_caps(h.get()->srcpad, "video/x-raw,format={GRAY8,NV12}");
  const Ref<GstCaps> expected(
      gst_caps_from_string("video/x-raw,format=NV12,width=[16,64],height=48,framerate=[0/1,2147483647/1]"));
  fail_unless(gst_caps_is_subset(offered.get(), expected.get()) && !gst_caps_is_empty(offered.get()));

  Harness fixed("", video_info("NV12", 33, 19));
  const Ref<GstCaps> in(gst_pad_get_current_caps(fixed.get()->srcpad));
  const Ref<GstCaps> out(gst_pad_get_current_caps(fixed.get()->sinkpad));
  fail_unless(gst_caps_is_equal(in.get(), out.get()));
}
GST_END_TEST;

// Common formats come first among the formats that both neighbours take, in any order of the query's filter.
GST_START_TEST(common_formats_are_offered_first) {
  Harness h;
  const Ref<GstCaps> offered = query_caps(h.get()->srcpad, "video/x-raw,format={GRAY16_LE,ABGR64_LE,RGBA,NV12}");
  const GValue *formats = gst_structure_get_value(gst_caps_get_structure(offered.get(), 0), "format");
  std::string names;
  for (guint i = 0; i < gst_value_list_get_size(formats); i++)
    names += std::string(g_value_get_string(gst_value_list_get_value(formats, i))) + " ";
  assert_same_text(names, "NV12 RGBA ABGR64_LE GRAY16_LE ");
  // The order of downstream's caps does not matter either.
  gst_harness_set_sink_caps_str(h.get(), "video/x-raw,format={GRAY16_LE,ABGR64_LE,NV12}");
  const Ref<GstCaps> taken = query_caps(h.get()->srcpad);
  formats = gst_structure_get_value(gst_caps_get_structure(taken.get(), 0), "format");
  fail_unless_equals_string(g_value_get_string(gst_value_list_get_value(formats, 0)), "NV12");
}
GST_END_TEST;

GST_START_TEST(every_field_of_the_caps_is_kept) {
  Harness h;
  gst_harness_set_src_caps_str(
      h.get(),
      "video/x-raw,format=I420,width=32,height=18,framerate=30000/1001,pixel-aspect-ratio=4/3,colorimetry=bt2020,"
      "chroma-site=mpeg2,multiview-mode=mono,interlace-mode=progressive,views=1");
  const Ref<GstCaps> in(gst_pad_get_current_caps(h.get()->srcpad));
  const Ref<GstCaps> out(gst_pad_get_current_caps(h.get()->sinkpad));
  fail_unless(gst_caps_is_strictly_equal(in.get(), out.get()));
}
GST_END_TEST;

bool accepts(const char *caps) {
  Harness h;
  const Ref<GstCaps> wanted(gst_caps_from_string(caps));
  const Ref<GstQuery> query(gst_query_new_accept_caps(wanted.get()));
  gboolean accepted = FALSE;
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  gst_query_parse_accept_caps_result(query.get(), &accepted);
  return accepted;
}

// Pushes caps like Harness::set_caps(), but the element may refuse them. The next push shows it.
void push_caps(Harness &h, const GstVideoInfo &info) {
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(h.get(), gst_event_new_stream_start("test"));
  gst_harness_push_event(h.get(), gst_event_new_caps(caps.get()));
  gst_harness_push_event(h.get(), gst_event_new_segment(&segment));
}

GST_START_TEST(formats_without_planes_of_samples_are_refused) {
  const std::string size = ",width=16,height=16,framerate=30/1";
  fail_unless(accepts(("video/x-raw,format=NV12" + size).c_str()));
  for (const char *format : {"NV12_4L4", "v210", "UYVP", "RGB8P", "GRAY10_LE32", "NV12_10LE40", "ENCODED"})
    fail_if(accepts(("video/x-raw,format=" + std::string(format) + size).c_str()), "%s is accepted", format);
  fail_if(accepts(("video/x-raw(memory:GLMemory),format=RGBA" + size).c_str()));
  fail_if(accepts(("video/x-h264" + size).c_str()));
}
GST_END_TEST;

// Two fields or two views in separate memories, which GStreamer itself cannot map as one frame.
GST_START_TEST(frames_split_over_memories_are_refused) {
  const std::string caps = "video/x-raw,format=NV12,width=16,height=16,framerate=30/1";
  Harness h;
  for (const char *field : {"interlace-mode=fields", "multiview-mode=separated,views=2"}) {
    const std::string split = caps + "," + field;
    fail_if(accepts(split.c_str()), "%s is accepted", field);
    fail_unless(gst_caps_is_empty(query_caps(h.get()->srcpad, split.c_str()).get()), "%s is offered", field);
  }
  fail_unless(accepts((caps + ",interlace-mode=mixed,multiview-mode=multiview-frame-by-frame,views=2").c_str()));
  const Ref<GstCaps> offered = query_caps(h.get()->srcpad, (caps + ",interlace-mode={fields,mixed}").c_str());
  assert_same_text(gst_structure_get_string(gst_caps_get_structure(offered.get(), 0), "interlace-mode"), "mixed");
}
GST_END_TEST;

GST_START_TEST(a_source_of_every_format_takes_a_common_one) {
  Pipeline p("videotestsrc num-buffers=1 ! cudaconv name=filter backend=cpu ! fakesink");
  fail_unless(p.go_to(GST_STATE_PAUSED));
  const Ref<GstPad> pad(gst_element_get_static_pad(p.element("filter").get(), "src"));
  const Ref<GstCaps> caps(gst_pad_get_current_caps(pad.get()));
  assert_same_text(gst_structure_get_string(gst_caps_get_structure(caps.get(), 0), "format"), "NV12");
}
GST_END_TEST;

GstCaps *with_overlays(const GstVideoInfo &info) {
  GstCaps *caps = gst_video_info_to_caps(&info);
  gst_caps_set_features_simple(caps,
                               gst_caps_features_new(GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY,
                                                     GST_CAPS_FEATURE_META_GST_VIDEO_OVERLAY_COMPOSITION, nullptr));
  return caps;
}

void add_overlay(GstBuffer *buffer) {
  GstBuffer *pixels = gst_buffer_new_allocate(nullptr, 4 * 6 * 2, nullptr);
  gst_buffer_memset(pixels, 0, 0x80, 4 * 6 * 2);
  gst_buffer_add_video_meta(pixels, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_OVERLAY_COMPOSITION_FORMAT_RGB, 6, 2);
  GstVideoOverlayRectangle *rectangle =
      gst_video_overlay_rectangle_new_raw(pixels, 3, 4, 12, 5, GST_VIDEO_OVERLAY_FORMAT_FLAG_NONE);
  GstVideoOverlayComposition *overlay = gst_video_overlay_composition_new(rectangle);
  gst_buffer_add_video_overlay_composition_meta(buffer, overlay);
  gst_video_overlay_composition_unref(overlay);
  gst_video_overlay_rectangle_unref(rectangle);
  gst_buffer_unref(pixels);
}

// GstVideoOverlayComposition passes through for the sink to draw.
GST_START_TEST(overlays_beside_the_picture_pass_through) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Harness h(mask);
    gst_harness_set_sink_caps(h.get(), with_overlays(info));
    gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_OVERLAY_COMPOSITION_META_API_TYPE, nullptr);
    // textoverlay makes this query to leave the drawing to the sink.
    const Ref<GstCaps> caps(with_overlays(info));
    const Ref<GstCaps> offered(gst_pad_peer_query_caps(h.get()->srcpad, caps.get()));
    fail_if(gst_caps_is_empty(offered.get()));
    gst_harness_set_src_caps(h.get(), with_overlays(info));
    const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
    fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
    fail_unless(gst_query_find_allocation_meta(query.get(), GST_VIDEO_OVERLAY_COMPOSITION_META_API_TYPE, nullptr));

    Random random = seeded();
    const Ref<GstBuffer> in = random_frame(info, random);
    add_overlay(in.get());
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, mask);
    const Ref<GstCaps> kept(gst_pad_get_current_caps(h.get()->sinkpad));
    fail_unless(gst_caps_is_equal(kept.get(), caps.get()));
    fail_unless_equals_int(gst_buffer_get_n_meta(out.get(), GST_VIDEO_OVERLAY_COMPOSITION_META_API_TYPE), 1);
    GstVideoOverlayComposition *overlay = gst_buffer_get_video_overlay_composition_meta(out.get())->overlay;
    fail_unless_equals_int(gst_video_overlay_composition_n_rectangles(overlay), 1);
    GstVideoOverlayRectangle *rectangle = gst_video_overlay_composition_get_rectangle(overlay, 0);
    gint x, y;
    guint width, height;
    gst_video_overlay_rectangle_get_render_rectangle(rectangle, &x, &y, &width, &height);
    fail_unless(x == 3 && y == 4 && width == 12 && height == 5);
    GstBuffer *pixels =
        gst_video_overlay_rectangle_get_pixels_unscaled_raw(rectangle, GST_VIDEO_OVERLAY_FORMAT_FLAG_NONE);
    fail_unless_equals_int(gst_buffer_get_size(pixels), 4 * 6 * 2);
    const std::string grey(4 * 6 * 2, '\x80');
    fail_unless_equals_int(gst_buffer_memcmp(pixels, 0, grey.data(), grey.size()), 0);
  }
  // If downstream draws no overlays, upstream is offered none.
  Harness h;
  gst_harness_set_sink_caps_str(h.get(), "video/x-raw");
  const Ref<GstCaps> caps(with_overlays(info)), offered(gst_pad_peer_query_caps(h.get()->srcpad, caps.get()));
  fail_unless(gst_caps_is_empty(offered.get()));
}
GST_END_TEST;

GST_START_TEST(the_plugin_says_whether_it_was_built_with_cuda) {
  const Ref<GstPlugin> plugin(gst_registry_find_plugin(gst_registry_get(), "cudaconv"));
  const bool without = strstr(gst_plugin_get_description(plugin.get()), "built without CUDA") != nullptr;
  const Ref<GstElement> element = new_element("");
  const Ref<GstCaps> caps(gst_pad_template_get_caps(gst_element_get_pad_template(element.get(), "sink")));
  const bool has_cuda_memory = gst_caps_features_contains(gst_caps_get_features(caps.get(), 0), "memory:CUDAMemory");
  fail_unless_equals_int(without, !has_cuda_memory);
  gst_element_set_bus(element.get(), nullptr);
}
GST_END_TEST;

GST_START_TEST(memory_features_are_interchangeable_if_there_is_cuda_memory) {
  Harness h;
  const Ref<GstCaps> offered =
      query_caps(h.get()->srcpad, "video/x-raw,format=NV12; video/x-raw(memory:CUDAMemory),format=NV12");
  const Ref<GstCaps> templ(gst_pad_template_get_caps(gst_element_get_pad_template(h.element(), "sink")));
  const bool has_cuda_memory = gst_caps_features_contains(gst_caps_get_features(templ.get(), 0), "memory:CUDAMemory");
  fail_unless_equals_int(gst_caps_get_size(offered.get()), has_cuda_memory ? 2 : 1);
}
GST_END_TEST;

// ---- Sizes and fields -----------------------------------------------------------------------------------------------

// Odd widths also check vector loads and stores in the last columns.
GST_START_TEST(odd_sizes_filter_to_the_last_column_and_row) {
  Random random = seeded();
  for (const char *format : {"I420", "GRAY8", "RGB", "P010_10LE", "YUY2"}) {
    Harness h("mask=gauss5 border=reflect101");
    for (int width = 1; width <= 67; width += width < 36 ? 1 : 3) {
      const GstVideoInfo info = video_info(format, width, 1 + width % 9);
      h.set_caps(info);
      const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, "mask=gauss5 border=reflect101");
    }
  }
  check_frame(video_info("NV12", 1998, 5), "mask=gauss5");
}
GST_END_TEST;

// A grid has up to 65,535 blocks in every dimension but one, and tiles have up to 32 rows.
GST_START_TEST(frames_of_more_than_65535_tiles_of_rows_filter) {
  check_frame(video_info("GRAY8", 1, 65536 * 32 + 7), "mask=gauss3");
  check_frame(video_info("GRAY8", 66001, 3), "mask=sobel");
}
GST_END_TEST;

GST_START_TEST(masks_larger_than_the_frame_read_the_border_only) {
  for (const Nick &border : nicks_of("border")) {
    check_frame(video_info("GRAY8", 1, 1), std::string("mask=gauss9 border=") + border.nick);
    check_frame(video_info("NV12", 3, 2), std::string("mask=box size=31 border=") + border.nick);
    check_frame(video_info("GRAY8", 5, 1), std::string("mask=dilate size=15 border=") + border.nick);
  }
}
GST_END_TEST;

GST_START_TEST(fields_are_filtered_separately) {
  Random random = seeded();
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, GST_VIDEO_FORMAT_I420, GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 21, 14);
  info.fps_n = 30;
  const FrameLayout progressive = layout_of(info, false), interlaced = layout_of(info, true);
  const std::string properties = "mask=sobel-y chroma=filter";
  {
    Harness h(properties, info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, interlaced, properties);
  }
  // With interlace-mode=mixed each buffer has a flag.
  GST_VIDEO_INFO_INTERLACE_MODE(&info) = GST_VIDEO_INTERLACE_MODE_MIXED;
  Harness h(properties, info);
  for (int i = 0; i < 4; i++) {
    const Ref<GstBuffer> in = random_frame(info, random);
    if (i % 2) GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_INTERLACED);
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, i % 2 ? interlaced : progressive, properties);
  }
}
GST_END_TEST;

GST_START_TEST(buffers_of_one_field_are_frames) {
  Random random = seeded();
  GstVideoInfo info;
  gst_video_info_set_interlaced_format(&info, GST_VIDEO_FORMAT_NV12, GST_VIDEO_INTERLACE_MODE_ALTERNATE, 21, 18);
  info.fps_n = 30;
  Harness h("mask=gauss5", info);
  const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
  const FrameLayout field = layout_of(video_info("NV12", 21, 9));
  assert_filtered(in.get(), out.get(), info, field, "mask=gauss5");
}
GST_END_TEST;

// ---- Allocation -----------------------------------------------------------------------------------------------------

GST_START_TEST(upstream_is_offered_a_pool_and_may_use_any_strides) {
  const GstVideoInfo info = video_info("NV12", 65, 49);
  Harness h("", info);
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  fail_unless(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
  fail_unless(gst_query_find_allocation_meta(query.get(), GST_VIDEO_CROP_META_API_TYPE, nullptr));
  fail_unless_equals_int(gst_query_get_n_allocation_pools(query.get()), 1);
  GstBufferPool *pool;
  guint size;
  gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, &size, nullptr, nullptr);
  fail_unless(pool != nullptr);
  fail_unless(size >= GST_VIDEO_INFO_SIZE(&info));
  // The pool is configured, so it can be activated.
  fail_unless(gst_buffer_pool_set_active(pool, TRUE));
  GstBuffer *buffer;
  fail_unless_equals_int(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
  fail_unless(gst_buffer_get_video_meta(buffer) != nullptr);
  gst_buffer_unref(buffer);
  fail_unless(gst_buffer_pool_set_active(pool, FALSE));
  gst_object_unref(pool);
}
GST_END_TEST;

GST_START_TEST(no_pool_is_made_if_none_is_needed) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Harness h("", info);
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  fail_unless_equals_int(gst_query_get_n_allocation_pools(query.get()), 0);
}
GST_END_TEST;

GST_START_TEST(downstream_that_knows_no_strides_gets_the_default_ones) {
  const GstVideoInfo info = video_info("NV12", 65, 49);
  Random random = seeded();
  Harness h("", info);
  const Ref<GstBuffer> in = random_frame(info, random, kScattered);
  const Ref<GstBuffer> out = h.filter(in.get());
  fail_unless_equals_int(gst_buffer_get_size(out.get()), 5100);
  if (const GstVideoMeta *meta = gst_buffer_get_video_meta(out.get())) {
    fail_unless_equals_int(meta->stride[0], 68);
    fail_unless_equals_int(meta->stride[1], 68);
    fail_unless_equals_int(meta->offset[1], 3400);
  }
  // The bytes of `out` are in the default layout, which needs no meta.
  const FrameBytes bytes(out.get(), info);
  const Ref<GstBuffer> plain(gst_buffer_new_memdup(bytes.bytes.data(), bytes.bytes.size()));
  assert_filtered(in.get(), plain.get(), info, "");
}
GST_END_TEST;

// A pool that makes larger buffers than requested, and reports it when it is configured.
struct StubbornPool {
  GstBufferPool parent;
};
struct StubbornPoolClass {
  GstBufferPoolClass parent_class;
};
G_DEFINE_TYPE(StubbornPool, stubborn_pool, GST_TYPE_BUFFER_POOL)
constexpr guint kMore = 1000;  // bytes
void stubborn_pool_class_init(StubbornPoolClass *klass) {
  GST_BUFFER_POOL_CLASS(klass)->set_config = [](GstBufferPool *pool, GstStructure *config) -> gboolean {
    GstCaps *caps;
    guint size, min, max;
    GstVideoInfo info;
    gst_buffer_pool_config_get_params(config, &caps, &size, &min, &max);
    if (!caps || !gst_video_info_from_caps(&info, caps)) return FALSE;
    const guint wanted = static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)) + kMore;
    gst_buffer_pool_config_set_params(config, caps, wanted, min, max);
    return GST_BUFFER_POOL_CLASS(stubborn_pool_parent_class)->set_config(pool, config) && size == wanted;
  };
}
void stubborn_pool_init(StubbornPool *) {}

GST_START_TEST(a_pool_that_alters_its_configuration_is_used) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const Ref<GstBufferPool> pool(GST_BUFFER_POOL(gst_object_ref_sink(g_object_new(stubborn_pool_get_type(), nullptr))));
  Harness h("mask=gauss5");
  offer_pool(h, pool.get());
  h.set_caps(info);
  const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
  fail_unless(out->pool == pool.get());
  fail_unless_equals_int(gst_buffer_get_size(out.get()), GST_VIDEO_INFO_SIZE(&info) + kMore);
  assert_filtered(in.get(), out.get(), info, "mask=gauss5");
}
GST_END_TEST;

GST_START_TEST(a_pool_of_at_least_more_buffers_than_at_most_is_used) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const Ref<GstBufferPool> pool(gst_video_buffer_pool_new());
  Harness h("mask=gauss5");
  offer_pool(h, pool.get(), 2, 9);
  h.set_caps(info);
  const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
  assert_filtered(in.get(), out.get(), info, "mask=gauss5");
}
GST_END_TEST;

// An allocator that makes no memory but by functions of its own, as for DMA buffers, and a pool of it that refuses to
// be configured again.
struct OwnAllocator {
  GstAllocator parent;
};
struct OwnAllocatorClass {
  GstAllocatorClass parent_class;
};
G_DEFINE_TYPE(OwnAllocator, own_allocator, GST_TYPE_ALLOCATOR)
void own_allocator_class_init(OwnAllocatorClass *) {}
void own_allocator_init(OwnAllocator *allocator) {
  GST_OBJECT_FLAG_SET(allocator, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}
struct FixedPool {
  GstBufferPool parent;
  bool is_configured;
};
struct FixedPoolClass {
  GstBufferPoolClass parent_class;
};
G_DEFINE_TYPE(FixedPool, fixed_pool, GST_TYPE_BUFFER_POOL)
void fixed_pool_class_init(FixedPoolClass *klass) {
  GST_BUFFER_POOL_CLASS(klass)->set_config = [](GstBufferPool *pool, GstStructure *) -> gboolean {
    return !std::exchange(reinterpret_cast<FixedPool *>(pool)->is_configured, true);
  };
}
void fixed_pool_init(FixedPool *) {}

GST_START_TEST(an_allocator_that_needs_its_own_pool_is_not_used_without_it) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  auto *allocator = static_cast<GstAllocator *>(gst_object_ref_sink(g_object_new(own_allocator_get_type(), nullptr)));
  const Ref<GstBufferPool> pool(GST_BUFFER_POOL(gst_object_ref_sink(g_object_new(fixed_pool_get_type(), nullptr))));
  GstStructure *config = gst_buffer_pool_get_config(pool.get());
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  gst_buffer_pool_config_set_params(config, caps.get(), static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), 0, 0);
  gst_buffer_pool_config_set_allocator(config, allocator, nullptr);
  fail_unless(gst_buffer_pool_set_config(pool.get(), config));
  for (const bool with_pool : {false, true}) {
    Harness h("mask=gauss5");
    if (with_pool)
      offer_pool(h, pool.get());
    else
      gst_harness_set_propose_allocator(h.get(), GST_ALLOCATOR(gst_object_ref(allocator)), nullptr);
    h.set_caps(info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
  }
  gst_object_unref(allocator);
}
GST_END_TEST;

// A pool that has memory for one buffer only.
struct DryPool {
  GstBufferPool parent;
  int buffers;
};
struct DryPoolClass {
  GstBufferPoolClass parent_class;
};
G_DEFINE_TYPE(DryPool, dry_pool, GST_TYPE_BUFFER_POOL)
void dry_pool_class_init(DryPoolClass *klass) {
  GST_BUFFER_POOL_CLASS(klass)->alloc_buffer = [](GstBufferPool *pool, GstBuffer **buffer,
                                                  GstBufferPoolAcquireParams *params) {
    if (reinterpret_cast<DryPool *>(pool)->buffers++) return GST_FLOW_ERROR;
    return GST_BUFFER_POOL_CLASS(dry_pool_parent_class)->alloc_buffer(pool, buffer, params);
  };
}
void dry_pool_init(DryPool *) {}

GST_START_TEST(a_pool_without_memory_is_an_error_message) {
  if (strcmp(test_backend(), "cpu") != 0) return;  // the CUDA backend takes several buffers at the start
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const Ref<GstBufferPool> pool(GST_BUFFER_POOL(gst_object_ref_sink(g_object_new(dry_pool_get_type(), nullptr))));
  Harness h("mask=gauss5");
  offer_pool(h, pool.get());
  h.set_caps(info);
  {
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    fail_unless(out->pool == pool.get());
    fail_unless_equals_int(h.push(in.get()), GST_FLOW_ERROR);
    const Report error = h.take_one(GST_MESSAGE_ERROR);
    fail_unless(error.domain == GST_RESOURCE_ERROR && error.code == GST_RESOURCE_ERROR_NO_SPACE_LEFT);
  }
  fail_unless(GST_BUFFER_IS_DISCONT(h.filter(random_frame(info, random).get()).get()));  // after the lost frame
}
GST_END_TEST;

// A change of passthrough reaches both neighbours: upstream gets a reconfigure event, and frames come from downstream's
// pool exactly while the element filters.
GST_START_TEST(neighbours_are_told_when_passthrough_comes_and_goes) {
  const GstVideoInfo info = video_info("NV12", 64, 48);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const Ref<GstBufferPool> pool(new_placed_pool(place(info, {128, 36, 20}), 0));
  Harness h("mask=identity");
  offer_pool(h, pool.get());
  h.set_caps(info);
  h.filter(in.get());
  for (const char *mask : {"mask=gauss5", "mask=identity", "mask=sobel"}) {
    while (GstEvent *event = gst_harness_try_pull_upstream_event(h.get())) gst_event_unref(event);
    h.set(mask);
    const Ref<GstBuffer> out = h.filter(in.get());
    fail_unless_equals_int(out->pool == pool.get(), strcmp(mask, "mask=identity") != 0);
    assert_filtered(in.get(), out.get(), info, mask);
    bool told = false;
    while (GstEvent *event = gst_harness_try_pull_upstream_event(h.get())) {
      told |= GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE;
      gst_event_unref(event);
    }
    fail_unless(told, "%s", mask);
  }
}
GST_END_TEST;

// After a change to identity upstream still sends some frames with the strides that it chose for the filter. Downstream
// without support for GstVideoMeta gets copies of these in the default layout.
GST_START_TEST(frames_pass_in_a_layout_that_downstream_knows) {
  const GstVideoInfo info = video_info("I420", 65, 49);
  Random random = seeded();
  for (const bool takes_strides : {false, true}) {
    Harness h("mask=gauss5");
    if (takes_strides) gst_harness_add_propose_allocation_meta(h.get(), GST_VIDEO_META_API_TYPE, nullptr);
    h.set_caps(info);
    h.filter(random_frame(info, random, kScattered).get());
    h.set("mask=identity");
    for (const bool changes : {true, false}) {
      const Ref<GstBuffer> in = random_frame(info, random, kScattered);
      const Ref<GstBuffer> out = h.filter(in.get());
      fail_unless(gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(h.element())));
      fail_unless_equals_int(out == in, takes_strides);
      const FrameBytes whole(out.get(), info);
      const Ref<GstBuffer> plain(gst_buffer_new_memdup(whole.bytes.data(), whole.bytes.size()));
      fail_unless(same_samples(in.get(), takes_strides ? out.get() : plain.get(), info));
      bool told = false;
      while (GstEvent *event = gst_harness_try_pull_upstream_event(h.get())) {
        told |= GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE;
        gst_event_unref(event);
      }
      fail_unless_equals_int(told, changes);
    }
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    fail_unless(out == in);
  }
}
GST_END_TEST;

// Upstream is asked for metas that downstream takes, if they are still true after the filter.
GST_START_TEST(upstream_is_asked_for_the_metas_that_are_kept) {
  const gchar *kept[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_SIZE_STR, nullptr};
  const gchar *lost[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_MEMORY_REFERENCE_STR, nullptr};
  const GstMetaInfo *of_picture = gst_meta_register_custom("cudaconv-test-picture", kept, nullptr, nullptr, nullptr);
  const GstMetaInfo *of_memory = gst_meta_register_custom("cudaconv-test-memory", lost, nullptr, nullptr, nullptr);
  const GstVideoInfo info = video_info("NV12", 64, 48);
  const Ref<GstCaps> caps(gst_video_info_to_caps(&info));
  Harness h("mask=gauss5");
  for (const GstMetaInfo *meta : {of_picture, of_memory})
    gst_harness_add_propose_allocation_meta(h.get(), meta->api, nullptr);
  h.set_caps(info);
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
  Random random = seeded();
  h.filter(random_frame(info, random).get());
  fail_unless(gst_pad_peer_query(h.get()->srcpad, query.get()));
  fail_unless(gst_query_find_allocation_meta(query.get(), of_picture->api, nullptr));
  fail_if(gst_query_find_allocation_meta(query.get(), of_memory->api, nullptr));
}
GST_END_TEST;

constexpr guint8 kGuard = 0xa7;

GST_START_TEST(strides_and_offsets_are_obeyed_and_padding_is_neither_read_nor_written) {
  Random random = seeded();
  for (const char *format : {"NV12", "I420", "RGB", "P010_10LE", "YUY2", "GRAY8", "RGB10A2_LE"}) {
    const GstVideoInfo info = video_info(format, 37, 15);
    GstBufferPool *pool = new_placed_pool(place(info, {128, 36, 20}), kGuard);
    Harness h("mask=gauss7");
    offer_pool(h, pool);
    h.set_caps(info);
    const Ref<GstBuffer> in = random_frame(info, random, kScattered);
    const Ref<GstBuffer> out = h.filter(in.get());
    fail_unless(out->pool == pool);
    assert_filtered(in.get(), out.get(), info, "mask=gauss7", static_cast<int>(kGuard));

    // The same picture in a buffer with other padding bytes.
    const FrameBytes picture(in.get(), info);
    const Ref<GstBuffer> again(new_placed_buffer(place(info, {32, 4, 0}), 0xff));
    FrameBytes copy(again.get(), info);
    const FrameLayout layout = layout_of(info);
    reference::write(reference::read(layout, picture.view), layout, copy.view);
    gst_buffer_fill(again.get(), 0, copy.bytes.data(), copy.bytes.size());
    const Ref<GstBuffer> out_again = h.filter(again.get());
    fail_unless(same_samples(out.get(), out_again.get(), info), "%s: padding was read", format);
    gst_object_unref(pool);
  }
}
GST_END_TEST;

GST_START_TEST(the_last_row_needs_no_padding) {
  for (const char *format : {"GRAY8", "I420", "RGB"}) {
    const GstVideoInfo info = video_info(format, 37, 15), placed = place(info, {0, 36, 0});
    Random random = seeded();
    Harness h("mask=gauss5", info);
    const Ref<GstBuffer> in = random_frame(info, random, {0, 36, 0});
    const int last = static_cast<int>(GST_VIDEO_INFO_N_PLANES(&info)) - 1;
    const gsize row = GST_VIDEO_INFO_COMP_WIDTH(&info, last) * GST_VIDEO_INFO_COMP_PSTRIDE(&info, last == 0 ? 0 : last);
    const gsize size = placed.offset[last] + row +
                       static_cast<gsize>(placed.stride[last]) * (GST_VIDEO_INFO_COMP_HEIGHT(&info, last) - 1);
    gst_buffer_set_size(in.get(), static_cast<gssize>(size));
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss5");
    // A byte less is an error.
    gst_buffer_set_size(in.get(), static_cast<gssize>(size) - 1);
    fail_unless_equals_int(h.push(in.get()), GST_FLOW_ERROR);
    h.take_one(GST_MESSAGE_ERROR);
  }
}
GST_END_TEST;

// A decoder's GstVideoMeta may have a larger size than the caps. Pixels beyond the caps' size do not belong to the
// picture.
GST_START_TEST(the_size_comes_from_the_caps) {
  const GstVideoInfo info = video_info("I420", 60, 40), coded = video_info("I420", 64, 48);
  Random random = seeded();
  Harness h("mask=box7", info);
  const Ref<GstBuffer> in(new_placed_buffer(coded, 0));
  FrameBytes bytes(in.get(), coded);
  for (uint8_t &byte : bytes.bytes) byte = static_cast<uint8_t>(random());
  gst_buffer_fill(in.get(), 0, bytes.bytes.data(), bytes.bytes.size());
  const Ref<GstBuffer> out = h.filter(in.get());
  assert_filtered(in.get(), out.get(), info, "mask=box7");
}
GST_END_TEST;

GST_START_TEST(planes_may_have_separate_memories) {
  GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("", info);
  const Ref<GstBuffer> whole = random_frame(info, random, Placement());
  for (bool at_planes : {true, false}) {
    Ref<GstBuffer> pieces(gst_buffer_new());
    const gsize size = gst_buffer_get_size(whole.get());
    const std::vector<gsize> cuts = at_planes ? std::vector<gsize>{0, info.offset[1], info.offset[2], size}
                                              : std::vector<gsize>{0, 100, info.offset[1] + 7, size};
    for (size_t i = 0; i + 1 < cuts.size(); i++) {
      GstMemory *memory = gst_allocator_alloc(nullptr, cuts[i + 1] - cuts[i], nullptr);
      GstMapInfo map;
      gst_memory_map(memory, &map, GST_MAP_WRITE);
      gst_buffer_extract(whole.get(), cuts[i], map.data, map.size);
      gst_memory_unmap(memory, &map);
      gst_buffer_append_memory(pieces.get(), memory);
    }
    if (at_planes)
      gst_buffer_add_video_meta_full(pieces.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, 32, 18, 3,
                                     info.offset, info.stride);
    const Ref<GstBuffer> out = h.filter(pieces.get());
    assert_filtered(whole.get(), out.get(), info, "");
  }
}
GST_END_TEST;

GST_START_TEST(input_is_never_written_and_released_with_its_output) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  std::vector<guint8> data(GST_VIDEO_INFO_SIZE(&info), 77);
  const std::vector<guint8> before = data;
  const Ref<GstBuffer> in(gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, data.data(), data.size(), 0,
                                                      data.size(), nullptr, nullptr));
  for (const char *properties : {"mask=dilate", "mask=identity", "mask=open iterations=2"}) {
    Harness h(properties, info);
    {
      const Ref<GstBuffer> out = h.filter(in.get());
      fail_unless_equals_int(out.get() == in.get(), !strcmp(properties, "mask=identity"));
      assert_filtered(in.get(), out.get(), info, properties);
    }
    ASSERT_BUFFER_REFCOUNT(in.get(), "in", 1);
    fail_unless(data == before);
  }
}
GST_END_TEST;

// ---- Metas, flags, timestamps ---------------------------------------------------------------------------------------

guint count_metas(GstBuffer *buffer, GType api) {
  return gst_buffer_get_n_meta(buffer, api);
}

GST_START_TEST(metas_are_kept_unless_they_are_about_the_memory) {
  const gchar *about_memory[] = {GST_META_TAG_MEMORY_STR, nullptr}, *others[] = {"audio", "a-test", nullptr};
  const GstMetaInfo *kept = gst_meta_register_custom("cudaconv-test-kept", others, nullptr, nullptr, nullptr);
  const GstMetaInfo *lost = gst_meta_register_custom("cudaconv-test-lost", about_memory, nullptr, nullptr, nullptr);
  const GstVideoInfo info = video_info("I420", 32, 18);
  const Ref<GstCaps> clock(gst_caps_from_string("timestamp/x-unix"));
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Random random = seeded();
    Harness h(mask, info);
    const Ref<GstBuffer> in = random_frame(info, random);
    GstVideoRegionOfInterestMeta *roi = gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 1, 2, 3, 4);
    gst_video_region_of_interest_meta_add_param(
        roi, gst_structure_new("detection", "confidence", G_TYPE_DOUBLE, 0.5, nullptr));
    gst_buffer_add_video_region_of_interest_meta(in.get(), "car", 5, 6, 7, 8);
    gst_buffer_add_video_time_code_meta_full(in.get(), 30, 1, nullptr, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, 3, 4, 0);
    const guint8 caption[] = {0xfc, 0x80, 0x80};
    gst_buffer_add_video_caption_meta(in.get(), GST_VIDEO_CAPTION_TYPE_CEA708_RAW, caption, sizeof caption);
    gst_buffer_add_reference_timestamp_meta(in.get(), clock.get(), 42, GST_CLOCK_TIME_NONE);
    gst_structure_set(gst_custom_meta_get_structure(gst_buffer_add_custom_meta(in.get(), "cudaconv-test-kept")),
                      "answer", G_TYPE_INT, 42, nullptr);
    gst_buffer_add_custom_meta(in.get(), "cudaconv-test-lost");

    const Ref<GstBuffer> out = h.filter(in.get());
    fail_unless_equals_int(count_metas(out.get(), GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), 2);
    gpointer state = nullptr;
    roi = reinterpret_cast<GstVideoRegionOfInterestMeta *>(
        gst_buffer_iterate_meta_filtered(out.get(), &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));
    fail_unless_equals_int(roi->x, 1);
    fail_unless_equals_int(roi->h, 4);
    fail_unless_equals_string(g_quark_to_string(roi->roi_type), "face");
    fail_unless(gst_video_region_of_interest_meta_get_param(roi, "detection") != nullptr);
    GstVideoTimeCodeMeta *timecode = gst_buffer_get_video_time_code_meta(out.get());
    fail_unless(timecode && timecode->tc.minutes == 2 && timecode->tc.frames == 4);
    GstVideoCaptionMeta *captions = gst_buffer_get_video_caption_meta(out.get());
    fail_unless(captions && captions->size == 3 && !memcmp(captions->data, caption, 3));
    fail_unless_equals_int(gst_buffer_get_reference_timestamp_meta(out.get(), clock.get())->timestamp, 42);
    gint answer = 0;
    gst_structure_get_int(gst_custom_meta_get_structure(gst_buffer_get_custom_meta(out.get(), "cudaconv-test-kept")),
                          "answer", &answer);
    fail_unless_equals_int(answer, 42);
    fail_unless_equals_int(count_metas(out.get(), kept->api), 1);
    if (!strcmp(mask, "mask=gauss5")) {
      fail_unless_equals_int(count_metas(out.get(), lost->api), 0);
      fail_unless(count_metas(out.get(), GST_VIDEO_META_API_TYPE) <= 1);
    }
    assert_filtered(in.get(), out.get(), info, mask);
  }
}
GST_END_TEST;

GST_START_TEST(flags_and_timestamps_are_kept) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  for (const char *mask : {"mask=gauss5", "mask=identity"}) {
    Harness h(mask, info);
    for (guint flag : {0u, static_cast<guint>(GST_BUFFER_FLAG_DISCONT), static_cast<guint>(GST_BUFFER_FLAG_CORRUPTED),
                       static_cast<guint>(GST_BUFFER_FLAG_GAP), static_cast<guint>(GST_BUFFER_FLAG_MARKER),
                       static_cast<guint>(GST_VIDEO_BUFFER_FLAG_TFF), static_cast<guint>(GST_VIDEO_BUFFER_FLAG_RFF)}) {
      const Ref<GstBuffer> in = random_frame(info, random);
      GST_BUFFER_FLAG_SET(in.get(), flag);
      GST_BUFFER_PTS(in.get()) = 3 * GST_SECOND;
      GST_BUFFER_DTS(in.get()) = 2 * GST_SECOND;
      GST_BUFFER_DURATION(in.get()) = 40 * GST_MSECOND;
      GST_BUFFER_OFFSET(in.get()) = 17;
      GST_BUFFER_OFFSET_END(in.get()) = 18;
      fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
      const Ref<GstBuffer> out(gst_harness_pull(h.get()));
      const guint all = GST_BUFFER_FLAG_DISCONT | GST_BUFFER_FLAG_CORRUPTED | GST_BUFFER_FLAG_GAP |
                        GST_BUFFER_FLAG_MARKER | GST_VIDEO_BUFFER_FLAG_TFF | GST_VIDEO_BUFFER_FLAG_RFF;
      fail_unless_equals_int(GST_BUFFER_FLAGS(out.get()) & all, flag);
      fail_unless_equals_uint64(GST_BUFFER_PTS(out.get()), 3 * GST_SECOND);
      fail_unless_equals_uint64(GST_BUFFER_DTS(out.get()), 2 * GST_SECOND);
      fail_unless_equals_uint64(GST_BUFFER_DURATION(out.get()), 40 * GST_MSECOND);
      fail_unless_equals_uint64(GST_BUFFER_OFFSET(out.get()), 17);
      fail_unless_equals_uint64(GST_BUFFER_OFFSET_END(out.get()), 18);
      assert_filtered(in.get(), out.get(), info, mask);  // the frame of a gap too
    }
  }
}
GST_END_TEST;

// ---- Changes while playing ------------------------------------------------------------------------------------------

GST_START_TEST(a_change_takes_effect_at_the_next_frame) {
  const GstVideoInfo info = video_info("NV12", 33, 19);
  Random random = seeded();
  Harness h("mask=gauss5", info);
  for (const char *change : {"mask=sobel",
                             "magnitude=l1",
                             "mask=custom coefficients='1 0 -1'",
                             "bias=0.5",
                             "divisor=4",
                             "negative=absolute",
                             "mask=dilate divisor=0 bias=0 negative=auto",
                             "size=5",
                             "shape=cross",
                             "iterations=2",
                             "border=wrap",
                             "size-y=9",
                             "mask=gauss size=0 size-y=0 sigma=2 iterations=1",
                             "sigma-y=0.5",
                             "sigma-y=-1",
                             "mask=unsharp",
                             "amount=3",
                             "chroma=copy",
                             "mask=custom coefficients='1 2 1;2 4 2;1 2 1'",
                             "method=separable",
                             "mask=identity",
                             "mask=gauss5 method=auto",
                             "border=constant"}) {
    h.set(change);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    // The current properties, in the form of a launch line.
    std::string now;
    for (const Choice &c : kChoices)
      if (strcmp(c.name, "backend") != 0) now += std::string(c.name) + "=" + get_nick(h.element(), c.name) + " ";
    for (const Number &n : kNumbers)
      if (n.flags == kAnimated || !strncmp(n.name, "size", 4))
        now += std::string(n.name) + "=" + std::to_string(get_number(h.element(), n.name)) + " ";
    gchar *coefficients;
    g_object_get(h.element(), "coefficients", &coefficients, nullptr);
    if (coefficients) now += std::string("coefficients='") + coefficients + "'";
    g_free(coefficients);
    assert_filtered(in.get(), out.get(), info, now);
  }
}
GST_END_TEST;

// Checks that every frame is filtered with one of two settings while a thread changes them, never with a mixture.
void check_never_a_mixture(const char *property, const GValue &one, const GValue &other, const std::string &company,
                           const char *text_one, const char *text_other) {
  const GstVideoInfo info = video_info("I420", 64, 48);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const auto filtered = [&](const char *text) {
    const std::string properties = company + " " + property + "='" + text + "'";
    Harness h(properties, info);
    Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, properties);
    h.take(GST_MESSAGE_WARNING);
    return FrameBytes(out.get(), info);
  };
  const FrameBytes want_one = filtered(text_one), want_other = filtered(text_other);
  fail_if(want_one.bytes == want_other.bytes);

  Harness h(company + " " + property + "='" + text_one + "'", info);
  GstHarnessThread *threads[] = {gst_harness_stress_property_start_full(h.get(), property, &one, 300),
                                 gst_harness_stress_property_start_full(h.get(), property, &other, 400)};
  bool seen_one = false, seen_other = false;
  const gint64 deadline = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
  for (int i = 0; i < 60 || (!(seen_one && seen_other) && g_get_monotonic_time() < deadline); i++) {
    const FrameBytes got(h.filter(in.get()).get(), info);
    const bool is_one = got.bytes == want_one.bytes, is_other = got.bytes == want_other.bytes;
    fail_unless(is_one || is_other, "frame %d has neither setting", i);
    seen_one |= is_one;
    seen_other |= is_other;
    g_usleep(100);
  }
  for (GstHarnessThread *thread : threads) gst_harness_stress_thread_stop(thread);
  fail_unless(seen_one && seen_other);
  h.take(GST_MESSAGE_WARNING);  // some settings have no effect with one of the masks
}

GST_START_TEST(frames_are_never_filtered_by_a_mixture_of_masks) {
  GValue one = G_VALUE_INIT, other = G_VALUE_INIT;
  const Ref<GstElement> element = new_element("");
  gst_element_set_bus(element.get(), nullptr);
  for (GValue *value : {&one, &other}) g_value_init(value, property_of(element.get(), "mask")->value_type);
  g_value_set_enum(&one, static_cast<int>(Mask::Gauss7));
  g_value_set_enum(&other, static_cast<int>(Mask::Dilate));
  check_never_a_mixture("mask", one, other, "size=5", "gauss7", "dilate");
  // A change to and from identity also changes passthrough.
  g_value_set_enum(&other, static_cast<int>(Mask::Identity));
  check_never_a_mixture("mask", one, other, "", "gauss7", "identity");
}
GST_END_TEST;

GST_START_TEST(frames_are_never_filtered_by_a_mixture_of_coefficients) {
  const char *small = "0 1 0; 1 1 1; 0 1 0", *large = "1 2 3 4 5; 5 4 3 2 1; 1 1 1 1 1; 9 8 7 6 5; 0 0 0 0 -1";
  GValue one = G_VALUE_INIT, other = G_VALUE_INIT;
  for (GValue *value : {&one, &other}) g_value_init(value, G_TYPE_STRING);
  g_value_set_static_string(&one, small);
  g_value_set_static_string(&other, large);
  check_never_a_mixture("coefficients", one, other, "mask=custom", small, large);
}
GST_END_TEST;

// Moves a property along a straight line through the first second.
void animate(Harness &h, const char *property, double from, double to) {
  GstControlSource *source = gst_interpolation_control_source_new();
  g_object_set(source, "mode", GST_INTERPOLATION_MODE_LINEAR, nullptr);
  gst_timed_value_control_source_set(GST_TIMED_VALUE_CONTROL_SOURCE(source), 0, from);
  gst_timed_value_control_source_set(GST_TIMED_VALUE_CONTROL_SOURCE(source), GST_SECOND, to);
  fail_unless(gst_object_add_control_binding(
      GST_OBJECT(h.element()), gst_direct_control_binding_new_absolute(GST_OBJECT(h.element()), property, source)));
  gst_object_unref(source);
}

GST_START_TEST(numbers_can_be_animated) {
  const GstVideoInfo info = video_info("GRAY8", 32, 18);
  Random random = seeded();
  Harness h("mask=gauss3", info);
  // Control sources use stream time, which differs from timestamps here.
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = segment.position = 5 * GST_SECOND;
  push_event(h, gst_event_new_segment(&segment));
  animate(h, "bias", 0, 0.5);
  animate(h, "iterations", 1, 9);
  for (int i = 0; i <= 8; i++) {
    const Ref<GstBuffer> in = random_frame(info, random);
    GST_BUFFER_PTS(in.get()) = segment.start + i * GST_SECOND / 8;
    fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
    const Ref<GstBuffer> out(gst_harness_pull(h.get()));
    const std::string now = "mask=gauss3 bias=" + std::to_string(i / 16.0) + " iterations=" + std::to_string(1 + i);
    assert_filtered(in.get(), out.get(), info, now);
  }
}
GST_END_TEST;

GST_START_TEST(a_blur_grows_out_of_nothing) {
  const GstVideoInfo info = video_info("GRAY8", 32, 18);
  Random random = seeded();
  for (const std::string mask : {"mask=gauss", "mask=gauss size=9", "mask=unsharp"}) {
    Harness h(mask, info);
    animate(h, "sigma", 0, 2);
    for (int i = 0; i <= 4; i++) {
      const Ref<GstBuffer> in = random_frame(info, random);
      GST_BUFFER_PTS(in.get()) = i * GST_SECOND / 4;
      fail_unless_equals_int(h.push(in.get()), GST_FLOW_OK);
      const Ref<GstBuffer> out = h.pull();
      if (i == 0) fail_unless(same_samples(in.get(), out.get(), info), "%s", mask.c_str());
      assert_filtered(in.get(), out.get(), info, mask + " sigma=" + std::to_string(i / 2.0));
    }
  }
}
GST_END_TEST;

// ---- Events ---------------------------------------------------------------------------------------------------------

void push_frames(Harness &h, const GstVideoInfo &info, int n) {
  static Random random = seeded();
  for (int i = 0; i < n; i++) fail_unless_equals_int(h.push(random_frame(info, random).get()), GST_FLOW_OK);
}

GST_START_TEST(events_keep_their_order_among_the_frames) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Harness h("", info);
  Order order(h);
  push_frames(h, info, 2);
  push_event(h, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "Blur", nullptr)));
  push_frames(h, info, 1);
  push_event(h, gst_event_new_gap(GST_SECOND, GST_SECOND));
  push_frames(h, info, 1);
  push_event(h, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty("marker")));
  push_frames(h, info, 2);
  push_event(h, gst_event_new_eos());
  const std::string came_out = order.take();
  assert_same_text(came_out, "buffer buffer tag buffer gap buffer custom-downstream buffer buffer eos ");
  Random random = seeded();
  fail_unless_equals_int(h.push(random_frame(info, random).get()), GST_FLOW_EOS);
}
GST_END_TEST;

GST_START_TEST(after_a_flush_a_new_segment_starts_the_stream) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("mask=box3", info);
  push_frames(h, info, 3);
  h.settle();
  Order order(h);
  push_event(h, gst_event_new_flush_start());
  fail_unless_equals_int(h.push(random_frame(info, random).get()), GST_FLOW_FLUSHING);
  push_event(h, gst_event_new_flush_stop(TRUE));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = segment.position = segment.time = 5 * GST_SECOND;
  push_event(h, gst_event_new_segment(&segment));
  while (gst_harness_buffers_in_queue(h.get())) gst_buffer_unref(gst_harness_pull(h.get()));
  const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
  assert_filtered(in.get(), out.get(), info, "mask=box3");
  const std::string came_out = order.take();
  assert_same_text(came_out, "flush-start flush-stop segment buffer ");
}
GST_END_TEST;

GST_START_TEST(a_seek_goes_upstream) {
  Harness h("", video_info("I420", 32, 18));
  while (GstEvent *event = gst_harness_try_pull_upstream_event(h.get())) gst_event_unref(event);
  GstEvent *seek =
      gst_event_new_seek(1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET, GST_SECOND, GST_SEEK_TYPE_NONE, 0);
  fail_unless(gst_harness_push_upstream_event(h.get(), gst_event_ref(seek)));
  const Ref<GstEvent> arrived(gst_harness_pull_upstream_event(h.get()));
  fail_unless(arrived.get() == seek);
  gst_event_unref(seek);
}
GST_END_TEST;

GST_START_TEST(a_pipeline_plays_seeks_and_ends) {
  const std::string line = std::string(
                               "videotestsrc ! video/x-raw,format=I420,width=64,height=48,framerate=30/1 ! "
                               "cudaconv mask=sobel backend=") +
                           test_backend() + " ! fakesink name=sink sync=false";
  Pipeline pipeline(line);
  struct Seen {
    int frames = 0;
    GstClockTime first = 0;
  } seen[2];
  Seen *now;
  const Ref<GstElement> sink = pipeline.element("sink");
  const Ref<GstPad> pad(gst_element_get_static_pad(sink.get(), "sink"));
  gst_pad_add_probe(
      pad.get(), GST_PAD_PROBE_TYPE_BUFFER,
      [](GstPad *, GstPadProbeInfo *info, gpointer data) {
        Seen *s = *static_cast<Seen **>(data);
        if (s->frames++ == 0) s->first = GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info));
        return GST_PAD_PROBE_OK;
      },
      &now, nullptr);
  const auto flags = static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE);
  now = &seen[0];
  bool ended = pipeline.go_to(GST_STATE_PAUSED);
  for (Seen &s : seen) {
    s = Seen();
    now = &s;
    const GstClockTime start = &s == seen ? 0 : GST_SECOND;
    ended &= gst_element_seek(pipeline.get(), 1, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, start, GST_SEEK_TYPE_SET,
                              2 * GST_SECOND);
    gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
    ended &= pipeline.wait_for_end().empty();
  }
  pipeline.go_to(GST_STATE_NULL);
  fail_unless(ended);
  fail_unless_equals_int(seen[0].frames, 60);
  fail_unless_equals_uint64(seen[0].first, 0);
  fail_unless_equals_int(seen[1].frames, 30);
  fail_unless_equals_uint64(seen[1].first, GST_SECOND);
}
GST_END_TEST;

GST_START_TEST(caps_may_change_in_mid_stream) {
  Random random = seeded();
  Harness h("mask=log5");
  Order order(h);
  for (const GstVideoInfo &info : {video_info("I420", 32, 18), video_info("I420", 320, 180), video_info("RGBA", 33, 17),
                                   video_info("P010_10LE", 16, 16), video_info("I420", 32, 18)}) {
    h.set_caps(info);
    for (int i = 0; i < 2; i++) {
      const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, "mask=log5");
    }
  }
  const std::string all = order.take();
  int changes = 0;
  for (size_t at = all.find("caps "); at != std::string::npos; at = all.find("caps ", at + 1)) changes++;
  fail_unless_equals_int(changes, 5);
  fail_unless_equals_int(stat(h, "frames"), 10);
}
GST_END_TEST;

GST_START_TEST(late_frames_are_dropped_after_a_qos_event) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("", info);
  fail_unless(gst_harness_push_upstream_event(
      h.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, GST_SECOND / 2, GST_SECOND)));
  const Ref<GstBuffer> late = random_frame(info, random), in_time = random_frame(info, random);
  GST_BUFFER_PTS(late.get()) = GST_SECOND;
  GST_BUFFER_PTS(in_time.get()) = 3 * GST_SECOND;
  fail_unless_equals_int(h.push(late.get()), GST_FLOW_OK);
  fail_unless_equals_int(gst_harness_buffers_received(h.get()), 0);
  fail_unless_equals_int(take_messages(h.element(), GST_MESSAGE_QOS).size(), 1);
  fail_unless_equals_int(h.push(in_time.get()), GST_FLOW_OK);
  const Ref<GstBuffer> out(gst_harness_pull(h.get()));
  fail_unless(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_DISCONT));
  assert_filtered(in_time.get(), out.get(), info, "");
}
GST_END_TEST;

GST_START_TEST(a_live_pipeline_waits_for_no_further_frame) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("", info);
  gst_harness_set_live(h.get(), TRUE);
  gst_harness_set_upstream_latency(h.get(), 20 * GST_MSECOND);
  fail_unless_equals_uint64(gst_harness_query_latency(h.get()), 20 * GST_MSECOND);
  for (int i = 0; i < 3; i++) h.filter(random_frame(info, random).get());
}
GST_END_TEST;

// ---- Several elements -----------------------------------------------------------------------------------------------

// Elements must not share a mask: each result is compared with the element's own mask.
GST_START_TEST(elements_side_by_side_never_see_each_others_masks) {
  check_side_by_side({"mask=gauss3", "mask=sobel", "mask=custom coefficients='1 2 3; 4 5 6; 7 8 9'",
                      "mask=custom coefficients='9 8 7; 6 5 4; 3 2 1'", "mask=dilate size=5",
                      "mask=gauss9 bias=0.125"});
}
GST_END_TEST;

// ---- When things go wrong -------------------------------------------------------------------------------------------

struct BadSettings {
  const char *properties;
  std::vector<const char *> says;
};
const std::vector<BadSettings> &bad_settings() {
  static const std::vector<BadSettings> all = {
      {"mask=custom coefficients='1 2 3; 4 x 6; 7 8 9'", {"coefficients", "row 2, column 2", "\"x\""}},
      {"mask=custom coefficients='1 2 3; 4 5 6; 7 8 nan'", {"coefficients", "row 3, column 3"}},
      {"mask=custom coefficients='1,,3'", {"coefficients", "row 1, column 2"}},
      {"mask=custom coefficients='1 2 3; 4 5; 6 7 8'", {"coefficients", "row 2 has 2 numbers"}},
      {"mask=custom coefficients='1 2; 3 4'", {"coefficients", "not odd"}},
      {"mask=custom", {"mask=custom", "coefficients"}},
      {"mask=dilate shape=custom", {"shape=custom", "coefficients"}},
      {"mask=bilateral shape=cross", {"shape=cross", "mask=bilateral", "shape=rect or shape=ellipse"}},
      {"mask=bilateral size-y=33", {"size-y=33", "mask=bilateral", "1 to 31"}},
      {"mask=dilate shape=custom coefficients='0 0 0'", {"shape=custom", "empty"}},
      {"mask=box size=4", {"size=4", "mask=box", "odd"}},
      {"mask=box size-y=4", {"size-y=4", "mask=box", "odd"}},
      {"mask=median size-y=129", {"size-y=129", "mask=median", "127"}},
      {"mask=mosaic size=8 size-y=256", {"size-y=256", "mask=mosaic", "255"}},
      {"mask=gauss sigma-y=-0.5", {"sigma-y=-0.5", "as sigma", "250"}},
      {"mask=median size=129", {"size=129", "mask=median", "127"}},
      {"mask=gauss size=1500", {"size=1500", "mask=gauss", "1501"}},
      {"mask=gauss5 method=cascade", {"method=cascade", "tiled", "separable"}},
      {"mask=laplace method=separable", {"method=separable", "tiled", "blocked"}},
      {"mask=median method=separable", {"method=separable", "tiled"}},
      {"mask=mosaic method=tiled", {"method=tiled", "mask=mosaic", "auto, constant"}},
  };
  return all;
}

void check_says(const Report &report, const BadSettings &bad) {
  fail_unless(report.domain == GST_LIBRARY_ERROR && report.code == GST_LIBRARY_ERROR_SETTINGS);
  for (const char *word : bad.says)
    fail_unless(strstr(report.text.c_str(), word) != nullptr, "%s: \"%s\" does not say \"%s\"", bad.properties,
                report.text.c_str(), word);
}

GST_START_TEST(bad_settings_at_the_start_are_an_error_that_names_them) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  for (const BadSettings &bad : bad_settings()) {
    Harness h(bad.properties);
    push_caps(h, info);
    fail_unless_equals_int(h.push(random_frame(info, random).get()), GST_FLOW_NOT_NEGOTIATED);
    fail_unless_equals_int(gst_harness_buffers_received(h.get()), 0);
    check_says(h.take_one(GST_MESSAGE_ERROR), bad);
  }
}
GST_END_TEST;

// A setting that the mask does not use is one warning. There is no warning if the setting had an effect before, or with
// identity.
GST_START_TEST(settings_without_effect_are_a_warning) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  const struct {
    const char *properties, *same, *text;
  } cases[] = {
      {"sigma=3", "", "sigma has no effect with mask=gauss5; it is used by gauss, unsharp, bilateral"},
      {"size=4", "",
       "size has no effect with mask=gauss5; it is used by box, gauss, unsharp, dilate, erode, open, close, gradient, "
       "tophat, blackhat, median, mosaic, bilateral"},
      {"size-y=3", "", "size-y has no effect with mask=gauss5; it is used by box, gauss, unsharp, dilate, "},
      {"mask=box sigma-y=0", "mask=box", "sigma-y has no effect with mask=box; it is used by gauss, unsharp"},
      {"sigma-range=0.2", "", "sigma-range has no effect with mask=gauss5; it is used by bilateral"},
      {"mask=bilateral divisor=7", "mask=bilateral", "divisor has no effect with mask=bilateral; "},
      {"shape=ellipse", "",
       "shape has no effect with mask=gauss5; it is used by dilate, erode, open, close, gradient, tophat, blackhat, "
       "bilateral"},
      {"coefficients='1 2 1'", "",
       "coefficients has no effect with mask=gauss5; it is used by custom, and with shape=custom by dilate, erode, "
       "open, close, gradient, tophat, blackhat"},
      {"coefficients='no numbers'", "", "coefficients has no effect with mask=gauss5; "},
      {"mask=median divisor=7", "mask=median", "divisor has no effect with mask=median; "},
      {"mask=unsharp divisor=7", "mask=unsharp", "divisor has no effect with mask=unsharp; "},
      {"mask=fill threshold=0.5", "mask=fill",
       "threshold has no effect with mask=fill; it is used by all but identity, fill"},
  };
  for (const auto &c : cases) {
    for (bool at_start : {true, false}) {
      Harness h(at_start ? c.properties : c.same, info);
      if (!at_start) {
        h.filter(in.get());
        h.set(c.properties);
      }
      for (int i = 0; i < 3; i++) {
        const Ref<GstBuffer> out = h.filter(in.get());
        assert_filtered(in.get(), out.get(), info, c.same);
      }
      const Report warning = h.take_one(GST_MESSAGE_WARNING);
      fail_unless(warning.text.rfind(c.text, 0) == 0, "%s", warning.text.c_str());
      fail_unless(warning.domain == GST_LIBRARY_ERROR && warning.code == GST_LIBRARY_ERROR_SETTINGS);
    }
  }
  // After a restart the warning is posted again.
  Harness again("sigma=3", info);
  again.take_one(GST_MESSAGE_WARNING);
  gst_element_set_state(again.element(), GST_STATE_READY);
  gst_element_set_state(again.element(), GST_STATE_PLAYING);
  again.set_caps(video_info("RGBA", 8, 8));
  again.set_caps(info);
  again.take_one(GST_MESSAGE_WARNING);

  Harness h("mask=identity sigma=3", info);
  for (const char *change : {"mask=gauss", "mask=gauss5", "sigma=4", "mask=identity", "mask=sobel"}) {
    h.set(change);
    h.filter(in.get());
  }
}
GST_END_TEST;

// Bad values come with every frame, as from a slider at even sizes, while an application moves a region. About one
// warning a second is posted.
GST_START_TEST(bad_values_in_every_frame_are_not_a_warning_for_every_frame) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=box size=3", info);
  const gint64 before = g_get_monotonic_time();
  for (int size = 4; size < 60; size++) {
    const std::string roi = std::to_string(5 - size) + ",0,1000,1000";  // from left of the picture on
    g_object_set(h.element(), "size", size, "roi", roi.c_str(), nullptr);
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=box size=" + std::to_string(size - (size % 2 == 0)));
  }
  const size_t seconds = (g_get_monotonic_time() - before) / G_USEC_PER_SEC + 1;
  const size_t warnings = h.take(GST_MESSAGE_WARNING).size();
  fail_unless(warnings >= 1 && warnings <= seconds + 1, "%zu warnings", warnings);
  // Another mistake is a warning at once.
  g_object_set(h.element(), "mask", Mask::Custom, "coefficients", "1 2", nullptr);
  h.filter(in.get());
  h.take_one(GST_MESSAGE_WARNING);
}
GST_END_TEST;

// There is no second warning if a property is set to its present value, or if only n-threads changes, which applies at
// the next start.
GST_START_TEST(a_repeated_mistake_is_a_warning_again) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=box size=3", info);
  h.set("size=4");
  h.filter(in.get());
  h.take_one(GST_MESSAGE_WARNING);
  g_usleep(G_USEC_PER_SEC + G_USEC_PER_SEC / 10);  // the same mistake is a warning once a second
  h.set("size=4 mask=box n-threads=2");
  h.filter(in.get());
  fail_unless(h.take(GST_MESSAGE_WARNING).empty());
  const GstVideoInfo larger = video_info("I420", 40, 20);
  h.set_caps(larger);
  h.filter(random_frame(larger, random).get());
  fail_unless(h.take(GST_MESSAGE_WARNING).empty());
  h.set("size=6");
  h.filter(random_frame(larger, random).get());
  h.take_one(GST_MESSAGE_WARNING);
}
GST_END_TEST;

GST_START_TEST(an_error_is_posted_again_after_a_restart) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Harness h("mask=box size=4");
  for (int i = 0; i < 2; i++) {
    push_caps(h, info);
    push_caps(h, info);  // the same caps again, without a second error
    h.take_one(GST_MESSAGE_ERROR);
    gst_element_set_state(h.element(), GST_STATE_READY);
    gst_element_set_state(h.element(), GST_STATE_PLAYING);
  }
}
GST_END_TEST;

// The current mask is used, with or without passthrough in the stream before.
GST_START_TEST(a_filter_that_is_set_between_two_streams_filters) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=identity", info);
  fail_unless(h.filter(in.get()).get() == in.get());
  gst_element_set_state(h.element(), GST_STATE_READY);
  h.set("mask=box5");
  gst_element_set_state(h.element(), GST_STATE_PLAYING);
  h.set_caps(video_info("RGBA", 8, 8));
  h.set_caps(info);
  const Ref<GstBuffer> out = h.filter(in.get());
  assert_filtered(in.get(), out.get(), info, "mask=box5");
}
GST_END_TEST;

// The message names the line of code that found the mistake, not the line that posted it.
GST_START_TEST(errors_name_their_origin) {
  Harness h("mask=custom coefficients='1 2'");
  push_caps(h, video_info("I420", 32, 18));
  const Report error = h.take_one(GST_MESSAGE_ERROR);
  fail_unless(strstr(error.debug.c_str(), "maskparser.cpp(") != nullptr, "%s", error.debug.c_str());
}
GST_END_TEST;

GST_START_TEST(settings_of_one_call_take_effect_together) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=box size=3", info);
  // Notifications are frozen between two properties of one g_object_set().
  g_object_freeze_notify(G_OBJECT(h.element()));
  h.set("mask=dilate size=5 iterations=2");
  guint size;
  g_object_get(h.element(), "size", &size, nullptr);
  fail_unless_equals_int(size, 5);
  const Ref<GstBuffer> before = h.filter(in.get());
  assert_filtered(in.get(), before.get(), info, "mask=box size=3");
  g_object_thaw_notify(G_OBJECT(h.element()));
  const Ref<GstBuffer> after = h.filter(in.get());
  assert_filtered(in.get(), after.get(), info, "mask=dilate size=5 iterations=2");
}
GST_END_TEST;

// Two threads set the same properties. No frame meets one property of the first and one of the second.
GST_START_TEST(settings_of_calls_that_overlap_are_not_mixed) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=box size=3", info);
  OverlappingCall other(h.element(), "mask=dilate", "size=5");
  g_object_set(h.element(), "mask", static_cast<int>(Mask::Erode), "size", 7, nullptr);
  const Ref<GstBuffer> before = h.filter(in.get());
  assert_filtered(in.get(), before.get(), info, "mask=box size=3");
  other.end();
  const Ref<GstBuffer> after = h.filter(in.get());
  assert_filtered(in.get(), after.get(), info, "mask=dilate size=5");
}
GST_END_TEST;

// The number of threads does not change results.
GST_START_TEST(threads_change_nothing_but_the_time) {
  const GstVideoInfo info = video_info("NV12", 333, 222);
  for (const char *threads : {"1", "2", "3", "16"}) {
    Random random = seeded();
    Harness h(std::string("mask=gauss7 n-threads=") + threads, info);
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss7");
  }
}
GST_END_TEST;

std::set<std::string> threads_of_the_process() {
  std::set<std::string> threads;
  GDir *tasks = g_dir_open("/proc/self/task", 0, nullptr);
  while (const gchar *task = tasks ? g_dir_read_name(tasks) : nullptr) threads.insert(task);
  if (tasks) g_dir_close(tasks);
  return threads;
}

// The sink pad's streaming thread is one of the threads. The other threads stay for half a second after their work.
GST_START_TEST(the_requested_number_of_threads_filters) {
  if (strcmp(test_backend(), "cpu") != 0) return;
  const GstVideoInfo info = video_info("GRAY8", 1280, 720);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  g_thread_pool_set_max_unused_threads(0);  // threads of an earlier element must not be reused
  for (int threads : {2, 1, 6, 3}) {
    Harness h("mask=median size=7 n-threads=" + std::to_string(threads), info);
    const std::set<std::string> before = threads_of_the_process();
    h.filter(in.get());
    int more = 0;
    for (const std::string &thread : threads_of_the_process()) more += !before.count(thread);
    // A quick thread may leave no work for another.
    fail_unless(more <= threads - 1 && more >= threads / 2, "%d more threads for %d", more, threads);
  }
}
GST_END_TEST;

GST_START_TEST(bad_settings_while_playing_are_a_warning_and_the_last_good_ones_stay) {
  const GstVideoInfo info = video_info("I420", 32, 18), larger = video_info("I420", 40, 20);
  Random random = seeded();
  for (const BadSettings &bad : bad_settings()) {
    Harness h("mask=gauss3 border=wrap", info);
    const auto check = [&](const GstVideoInfo &i, const char *properties) {
      const Ref<GstBuffer> in = random_frame(i, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), i, properties);
    };
    check(info, "mask=gauss3 border=wrap");
    h.set(bad.properties);
    check(info, "mask=gauss3 border=wrap");
    check_says(h.take_one(GST_MESSAGE_WARNING), bad);
    check(info, "mask=gauss3 border=wrap");  // no second warning
    h.set_caps(larger);
    check(larger, "mask=gauss3 border=wrap");
    fail_unless(h.take(GST_MESSAGE_WARNING).empty());
    h.set("mask=sharpen size=0 sigma=-1 method=auto");
    check(larger, "mask=sharpen border=wrap");
    h.take(GST_MESSAGE_WARNING);  // sharpen may not use the bad setting
  }
}
GST_END_TEST;

void check_refused(Harness &h, GstBuffer *buffer) {
  fail_unless_equals_int(h.push(buffer), GST_FLOW_ERROR);
  fail_unless_equals_int(gst_harness_buffers_received(h.get()), 0);
  const Report report = h.take_one(GST_MESSAGE_ERROR);
  fail_unless(report.domain == GST_STREAM_ERROR && report.code == GST_STREAM_ERROR_FAILED, "%s", report.text.c_str());
}

GST_START_TEST(a_buffer_too_small_for_its_caps_is_an_error) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  for (gsize size : {gsize{0}, gsize{1}, GST_VIDEO_INFO_SIZE(&info) - 1}) {
    Harness h("", info);
    const Ref<GstBuffer> in(gst_buffer_new_allocate(nullptr, size, nullptr));
    check_refused(h, in.get());
  }
}
GST_END_TEST;

GST_START_TEST(a_video_meta_that_contradicts_caps_or_memory_is_an_error) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  const auto refused = [&](auto spoil) {
    Harness h("", info);
    const Ref<GstBuffer> in(new_placed_buffer(info, 0));
    spoil(gst_buffer_get_video_meta(in.get()));
    check_refused(h, in.get());
  };
  refused([](GstVideoMeta *meta) { meta->stride[0] = 31; });
  refused([](GstVideoMeta *meta) { meta->stride[1] = -15; });
  refused([](GstVideoMeta *meta) { meta->stride[0] = -32; });
  refused([](GstVideoMeta *meta) { meta->stride[2] = -(1 << 20); });
  refused([](GstVideoMeta *meta) { meta->stride[2] = 1 << 20; });
  refused([](GstVideoMeta *meta) { meta->offset[2] += 200; });
  refused([](GstVideoMeta *meta) { meta->width = 30; });
  refused([](GstVideoMeta *meta) { meta->height = 16; });
  refused([](GstVideoMeta *meta) { meta->format = GST_VIDEO_FORMAT_NV12; });
  // The message names the buffer, the plane and the position.
  Harness h("", info);
  const Ref<GstBuffer> in(new_placed_buffer(info, 0));
  gst_buffer_get_video_meta(in.get())->offset[1] = 5000;
  fail_unless_equals_int(h.push(in.get()), GST_FLOW_ERROR);
  assert_same_text(h.take_one(GST_MESSAGE_ERROR).text,
                   "An input buffer of 864 bytes has a GstVideoMeta that puts plane 1 at byte 5000.");
}
GST_END_TEST;

// The element filters in place and never uses its pool.
GST_START_TEST(a_flush_and_a_stop_log_no_warning) {
  static std::atomic<int> warnings;
  warnings = 0;
  const GstLogFunction count = [](GstDebugCategory *, GstDebugLevel, const gchar *, const gchar *, gint, GObject *,
                                  GstDebugMessage *, gpointer) { warnings++; };
  gst_debug_remove_log_function(gst_debug_log_default);
  {
    Harness h("roi=2,2,9,9", video_info("GRAY8", 16, 16));
    Random random = seeded();
    fail_unless_equals_int(gst_harness_push(h.get(), random_frame(video_info("GRAY8", 16, 16), random).release()),
                           GST_FLOW_OK);
    h.pull();
    gst_debug_add_log_function(count, nullptr, nullptr);
    gst_debug_set_threshold_for_name("bufferpool", GST_LEVEL_WARNING);
    push_event(h, gst_event_new_flush_start());
    push_event(h, gst_event_new_flush_stop(TRUE));
    fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
  }
  gst_debug_unset_threshold_for_name("bufferpool");
  gst_debug_remove_log_function(count);
  gst_debug_add_log_function(gst_debug_log_default, nullptr, nullptr);
  fail_unless_equals_int(warnings, 0);
}
GST_END_TEST;

// Caps of all formats have thousands of characters each and would hide the rest of the log.
GST_START_TEST(the_log_up_to_debug_has_short_lines) {
  static std::atomic<size_t> longest;
  longest = 0;
  const GstLogFunction look = [](GstDebugCategory *category, GstDebugLevel, const gchar *, const gchar *, gint,
                                 GObject *, GstDebugMessage *message, gpointer) {
    if (!strcmp(gst_debug_category_get_name(category), "cudaconv"))
      longest = std::max(longest.load(), strlen(gst_debug_message_get(message)));
  };
  gst_debug_remove_log_function(gst_debug_log_default);
  gst_debug_add_log_function(look, nullptr, nullptr);
  gst_debug_set_threshold_for_name("cudaconv", GST_LEVEL_DEBUG);
  {
    Pipeline pipeline("videotestsrc num-buffers=2 ! cudaconv backend=" + std::string(test_backend()) + " ! fakesink");
    fail_unless(pipeline.go_to(GST_STATE_PLAYING));
    assert_same_text(pipeline.wait_for_end(), "");
  }
  gst_debug_unset_threshold_for_name("cudaconv");
  gst_debug_remove_log_function(look);
  gst_debug_add_log_function(gst_debug_log_default, nullptr, nullptr);
  fail_unless(longest > 0);
  fail_unless(longest < 1000, "%zu characters", longest.load());
}
GST_END_TEST;

GST_START_TEST(errors_of_buffers_name_the_fault_and_its_position) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  const auto text_for = [&](auto spoil) {
    Harness h("", info);
    Ref<GstBuffer> in(new_placed_buffer(info, 0));
    spoil(in);
    fail_unless_equals_int(h.push(in.get()), GST_FLOW_ERROR);
    return h.take_one(GST_MESSAGE_ERROR).text;
  };
  const auto meta_of = [](const Ref<GstBuffer> &in) { return gst_buffer_get_video_meta(in.get()); };
  const auto add_crop = [](const Ref<GstBuffer> &in, guint x, guint y) {
    GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(in.get());
    crop->x = x;
    crop->y = y;
  };
  assert_same_text(text_for([](Ref<GstBuffer> &in) { in.reset(gst_buffer_new_allocate(nullptr, 863, nullptr)); }),
                   "An input buffer of 863 bytes is too small for its caps: a frame of 32x18 I420 takes 864.");
  // alphacolor leaves the meta as it was.
  const std::string both =
      ", but its caps say I420; elements that change the format must change both, as videoconvert does.";
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->format = GST_VIDEO_FORMAT_YV12; }),
                   "An input buffer has a GstVideoMeta of format YV12" + both);
  for (const int unknown : {0, 9999})
    assert_same_text(
        text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->format = static_cast<GstVideoFormat>(unknown); }),
        "An input buffer has a GstVideoMeta of format number " + std::to_string(unknown) + both);
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->n_planes = 4; }),
                   "An input buffer has a GstVideoMeta with 4 planes, but I420 has 3 planes.");
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->n_planes = 1; }),
                   "An input buffer has a GstVideoMeta with 1 plane, but I420 has 3 planes.");
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->width = 30; }),
                   "An input buffer has a GstVideoMeta of 30x18, which is smaller than the 32x18 I420 of its caps.");
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) { add_crop(in, 3, 4); }),
                   "An input buffer has a GstVideoCropMeta at 3,4, from where the 32x18 I420 of its caps do not fit "
                   "into the frame of 32x18.");
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) {
                     meta_of(in)->width = meta_of(in)->height = G_MAXUINT;
                     add_crop(in, G_MAXUINT - 47, 2);
                   }),
                   "An input buffer has a GstVideoCropMeta at 4294967248,2, from where the 32x18 I420 of its caps do "
                   "not fit into the frame of 2147483647x2147483647.");
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->stride[0] = 31; }),
                   "An input buffer has a stride of 31 bytes in plane 0, whose rows take 32.");
  assert_same_text(text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->stride[1] = -15; }),
                   "An input buffer has a stride of -15 bytes in plane 1, whose rows take 16.");
  // Rows from bottom to top begin at the last row in memory.
  assert_same_text(
      text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->stride[0] = -32; }),
      "An input buffer is too small for its caps: plane 0 needs 576 bytes from byte -544 of a memory of 864.");
  assert_same_text(
      text_for([&](const Ref<GstBuffer> &in) { meta_of(in)->offset[2] += 1; }),
      "An input buffer is too small for its caps: plane 2 needs 144 bytes from byte 721 of a memory of 864.");
}
GST_END_TEST;

// Planes begin in one memory of the buffer and end in another memory.
GST_START_TEST(a_plane_may_span_several_memories) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  GstVideoInfo placed = place(info, kScattered);
  Random random = seeded();
  Harness h("mask=gauss5", info);
  for (gsize first : {gsize{100}, gsize{700}, GST_VIDEO_INFO_SIZE(&placed) - 90}) {
    const Ref<GstBuffer> whole = random_frame(info, random, kScattered);
    const FrameBytes bytes(whole.get(), info);
    const Ref<GstBuffer> in(gst_buffer_copy_region(whole.get(), GST_BUFFER_COPY_METADATA, 0, -1));
    const auto append = [&](gsize from, gsize to) {
      GstMemory *memory = gst_allocator_alloc(nullptr, to - from, nullptr);
      gst_buffer_append_memory(in.get(), memory);
      gst_buffer_fill(in.get(), from, bytes.bytes.data() + from, to - from);
    };
    append(0, first);
    append(first, bytes.bytes.size());
    fail_unless_equals_int(gst_buffer_n_memory(in.get()), 2);
    if (!gst_buffer_get_video_meta(in.get()))
      gst_buffer_add_video_meta_full(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info), 32, 18, 3,
                                     placed.offset, placed.stride);
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(whole.get(), out.get(), info, "mask=gauss5");
  }
}
GST_END_TEST;

// Caps with 536,870,911 pixels a row are negotiated or refused at once.
GST_START_TEST(huge_widths_are_negotiated_at_once) {
  Harness h("");
  const clock_t before = clock();  // of the processor: other programs do not count
  push_caps(h, video_info("RGBA", 536870911, 1));
  h.take(GST_MESSAGE_ERROR);
  fail_unless(clock() - before < 20 * CLOCKS_PER_SEC);
}
GST_END_TEST;

// No memory is an error message. The element continues afterwards.
GST_START_TEST(no_memory_is_an_error_message) {
  if (strcmp(test_backend(), "cpu") != 0) return;  // a CUDA driver may reserve any amount of address space
  const GstVideoInfo info = video_info("RGBA", 4000, 4000);
  const Ref<GstBuffer> in(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr));
  gst_buffer_memset(in.get(), 0, 100, GST_VIDEO_INFO_SIZE(&info));
  Harness h("mask=tophat n-threads=1", info);  // needs two temporary frames
  gchar *status = nullptr;
  fail_unless(g_file_get_contents("/proc/self/statm", &status, nullptr, nullptr));
  const rlim_t used = g_ascii_strtoull(status, nullptr, 10) * sysconf(_SC_PAGESIZE);
  g_free(status);
  rlimit limit;
  fail_unless(getrlimit(RLIMIT_AS, &limit) == 0);
  const rlimit low = {used + (100 << 20), limit.rlim_max};
  fail_unless(setrlimit(RLIMIT_AS, &low) == 0);
  const GstFlowReturn flow = h.push(in.get());
  setrlimit(RLIMIT_AS, &limit);
  fail_unless_equals_int(flow, GST_FLOW_ERROR);
  const Report error = h.take_one(GST_MESSAGE_ERROR);
  fail_unless(error.domain == GST_RESOURCE_ERROR && error.code == GST_RESOURCE_ERROR_NO_SPACE_LEFT);
  h.filter(in.get());
}
GST_END_TEST;

GST_START_TEST(a_buffer_that_cannot_be_mapped_is_an_error) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  for (bool with_meta : {false, true}) {
    Harness h("", info);
    const Ref<GstBuffer> in = unmappable_buffer(GST_VIDEO_INFO_SIZE(&info));
    if (with_meta) gst_buffer_add_video_meta(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, 32, 18);
    check_refused(h, in.get());
  }
}
GST_END_TEST;

GST_START_TEST(after_an_error_of_one_buffer_the_element_continues) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("", info);
  const Ref<GstBuffer> small(gst_buffer_new_allocate(nullptr, 8, nullptr));
  for (int i = 0; i < 2; i++) check_refused(h, small.get());  // each is an error
  for (int i = 0; i < 2; i++) {
    const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "");
    fail_unless_equals_int(GST_BUFFER_IS_DISCONT(out.get()), i == 0);  // after the lost frame
  }
}
GST_END_TEST;

// ---- Backend, statistics, passthrough -------------------------------------------------------------------------------

GST_START_TEST(backend_cuda_without_a_device_does_not_start) {
  const Ref<GstElement> element = new_element("backend=cuda cuda-device-id=1000");
  fail_unless_equals_int(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  const std::vector<Ref<GstMessage>> errors = take_messages(element.get(), GST_MESSAGE_ERROR);
  fail_unless_equals_int(errors.size(), 1);
  const Report report = report_of(errors[0].get());
  fail_unless(report.domain == GST_RESOURCE_ERROR && report.code == GST_RESOURCE_ERROR_NOT_FOUND);
  fail_unless(strstr(report.text.c_str(), "CUDA") != nullptr, "%s", report.text.c_str());
  gst_element_set_state(element.get(), GST_STATE_NULL);

  if (!has_device()) {
    set_properties(element.get(), "cuda-device-id=-1");
    fail_unless_equals_int(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
    fail_unless_equals_int(take_messages(element.get(), GST_MESSAGE_ERROR).size(), 1);
    gst_element_set_state(element.get(), GST_STATE_NULL);
  }
  // The element starts when it is given another backend.
  set_properties(element.get(), "backend=cpu");
  fail_unless_equals_int(gst_element_set_state(element.get(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  gst_element_set_state(element.get(), GST_STATE_NULL);
  gst_element_set_bus(element.get(), nullptr);
}
GST_END_TEST;

GST_START_TEST(backend_auto_reports_the_cpu_once) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  for (const char *device : {"-1", "1000"}) {
    const bool expected = has_device() && !strcmp(device, "-1");
    Harness h(std::string("backend=auto cuda-device-id=") + device, info);
    for (int i = 0; i < 3; i++) {
      const Ref<GstBuffer> in = random_frame(info, random), out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, "");
    }
    const std::vector<Report> reports = h.take(GST_MESSAGE_INFO);
    fail_unless_equals_int(reports.size(), expected ? 0 : 1);
    assert_same_text(stat_string(h, "backend"), expected ? "cuda" : "cpu");
    if (!expected) fail_unless(reports[0].domain == GST_RESOURCE_ERROR && !reports[0].text.empty());
  }
}
GST_END_TEST;

GST_START_TEST(backend_cpu_looks_for_no_device) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("backend=cpu cuda-device-id=1000", info);
  h.filter(random_frame(info, random).get());
  fail_unless(h.take(GST_MESSAGE_INFO).empty());
  assert_same_text(stat_string(h, "backend"), "cpu");
}
GST_END_TEST;

GST_START_TEST(stats_count_from_the_start) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  Harness h("mask=gauss7 method=blocked");
  fail_unless(gst_structure_has_name(h.stats().get(), "application/x-cudaconv-stats"));
  fail_unless_equals_uint64(stat(h, "frames"), 0);
  assert_same_text(stat_string(h, "backend"), "");
  h.set_caps(info);
  for (int i = 0; i < 4; i++) h.filter(random_frame(info, random).get());
  const bool cuda = !strcmp(test_backend(), "cuda");
  fail_unless_equals_uint64(stat(h, "frames"), 4);
  assert_same_text(stat_string(h, "backend"), test_backend());
  assert_same_text(stat_string(h, "method"), "blocked");
  fail_unless_equals_uint64(stat(h, "bytes-uploaded"), cuda ? 4 * 32 * 18 * 3 / 2 : 0);
  fail_unless_equals_uint64(stat(h, "bytes-downloaded"), cuda ? 4 * 32 * 18 * 3 / 2 : 0);
  fail_unless_equals_int(stat(h, "device-time") > 0, cuda);
  fail_unless_equals_uint64(stat(h, "failovers"), 0);
  // auto may select kernels that do not belong to a method.
  h.set("method=auto");
  h.filter(random_frame(info, random).get());
  const std::string selected = stat_string(h, "method");
  fail_if(selected == "blocked");
  if (!cuda) fail_unless(selected == "avx512" || selected == "avx2" || selected == "baseline", "%s", selected.c_str());
  // A restart resets the counts.
  fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  fail_unless_equals_int(gst_element_set_state(h.element(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
  fail_unless_equals_uint64(stat(h, "frames"), 0);
}
GST_END_TEST;

GST_START_TEST(only_identity_is_passthrough) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  for (const Nick &mask : nicks_of("mask")) {
    const bool custom = !strcmp(mask.nick, "custom");
    Harness h(std::string(custom ? "coefficients=1 " : "") + "mask=" + mask.nick, info);
    const Ref<GstBuffer> out = h.filter(in.get());
    const bool identity = !strcmp(mask.nick, "identity");
    fail_unless_equals_int(out.get() == in.get(), identity);
    fail_unless_equals_int(gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(h.element())), identity);
  }
  // Passthrough also follows changes of the mask while playing.
  Harness h("mask=identity iterations=3 border=wrap bias=0.5", info);
  for (const char *mask : {"identity", "gauss5", "identity", "sobel"}) {
    h.set(std::string("iterations=1 bias=0 border=replicate mask=") + mask);
    const Ref<GstBuffer> out = h.filter(in.get());
    fail_unless_equals_int(out.get() == in.get(), !strcmp(mask, "identity"));
    assert_filtered(in.get(), out.get(), info, std::string("mask=") + mask);
  }
  // Applications cannot change it.
  for (const char *mask : {"identity", "gauss5"})
    for (const bool passthrough : {false, true, false}) {
      h.set(std::string("mask=") + mask);
      gst_base_transform_set_passthrough(GST_BASE_TRANSFORM(h.element()), passthrough);
      const Ref<GstBuffer> out = h.filter(in.get());
      fail_unless_equals_int(out.get() == in.get(), !strcmp(mask, "identity"));
      assert_filtered(in.get(), out.get(), info, std::string("mask=") + mask);
    }
}
GST_END_TEST;

// ---- Frequent mistakes of filters -----------------------------------------------------------------------------------

GST_START_TEST(an_asymmetric_mask_is_not_flipped) {
  const GstVideoInfo info = video_info("GRAY8", 4, 1);
  const Ref<GstBuffer> in(gst_buffer_new_memdup("\x0a\x14\x1e\x28", 4));
  Harness h("mask=custom coefficients='1 0 0'", info);  // copies the left neighbour
  const Ref<GstBuffer> out = h.filter(in.get());
  fail_unless_equals_int(gst_buffer_memcmp(out.get(), 0, "\x0a\x0a\x14\x1e", 4), 0);
}
GST_END_TEST;

GST_START_TEST(iterations_equal_elements_in_a_row) {
  const GstVideoInfo info = video_info("I420", 33, 19);
  Random random = seeded();
  for (const char *mask : {"mask=gauss5", "mask=sharpen", "mask=median", "mask=dilate", "mask=median threshold=0.2",
                           "mask=dilate threshold=0.5", "mask=sharpen threshold=0.1"}) {
    const Ref<GstBuffer> in = random_frame(info, random);
    Harness once(mask, info), thrice(std::string(mask) + " iterations=3", info);
    const Ref<GstBuffer> one = once.filter(in.get()), two = once.filter(one.get()), three = once.filter(two.get());
    const Ref<GstBuffer> out = thrice.filter(in.get());
    fail_unless(same_samples(three.get(), out.get(), info), "%s", mask);
  }
}
GST_END_TEST;

GST_START_TEST(samples_within_the_threshold_do_not_change) {
  // With median, 100 becomes 10 and 12 does not: 2 of 255 is within 0.01, 3 is not.
  const GstVideoInfo grey = video_info("GRAY8", 9, 1);
  const Ref<GstBuffer> in(gst_buffer_new_memdup("\x0a\x0a\x64\x0a\x0a\x0c\x0a\x0d\x0a\0\0", 12));
  const struct {
    const char *properties, *out;
  } cases[] = {
      {"mask=median size=3 threshold=0", "\x0a\x0a\x0a\x0a\x0a\x0a\x0c\x0a\x0a"},
      {"mask=median size=3 threshold=0.01", "\x0a\x0a\x0a\x0a\x0a\x0c\x0a\x0a\x0a"},
      {"mask=median size=3 threshold=0.00784313725490196", "\x0a\x0a\x0a\x0a\x0a\x0c\x0a\x0a\x0a"},  // 2/255
      {"mask=median size=3 threshold=0.0078", "\x0a\x0a\x0a\x0a\x0a\x0a\x0c\x0a\x0a"},
      {"mask=median size=3 threshold=0.35", "\x0a\x0a\x0a\x0a\x0a\x0c\x0a\x0d\x0a"},
      {"mask=median size=3 threshold=1", "\x0a\x0a\x64\x0a\x0a\x0c\x0a\x0d\x0a"},
  };
  for (const auto &c : cases) {
    Harness h(c.properties, grey);
    fail_unless_equals_int(gst_buffer_memcmp(h.filter(in.get()).get(), 0, c.out, 9), 0);
  }
  for (const char *format : {"I420", "NV12", "P010_10LE", "RGBA", "RGB", "AYUV", "YUY2", "GRAY16_BE", "RGB10A2_LE"})
    for (const char *properties :
         {"mask=median threshold=0.1", "mask=sobel threshold=0.3 chroma=filter", "mask=sobel threshold=0.3",
          "mask=sharpen threshold=0.2 alpha=filter", "mask=box3 threshold=0.05 alpha=weighted",
          "mask=mosaic size=5 threshold=0.1", "mask=tophat threshold=0.2", "mask=open threshold=0.1 border=keep",
          "mask=dilate threshold=0.4 iterations=2 luma=copy"})
      check_frame(video_info(format, 37, 19), properties);
}
GST_END_TEST;

GST_START_TEST(negative_halves_of_edges_are_not_lost) {
  const GstVideoInfo info = video_info("GRAY8", 8, 1);
  const Ref<GstBuffer> in(gst_buffer_new_memdup("\0\0\0\x14\x14\0\0\0", 8));
  Harness h("mask=sobel-x border=wrap", info);
  const Ref<GstBuffer> out = h.filter(in.get());
  fail_unless_equals_int(gst_buffer_memcmp(out.get(), 0, "\0\0\x50\x50\x50\x50\0\0", 8), 0);
}
GST_END_TEST;

GST_START_TEST(tiny_and_zero_sigma_make_sense) {
  const GstVideoInfo info = video_info("GRAY8", 33, 19);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  for (const char *properties :
       {"mask=gauss sigma=0.000001", "mask=gauss sigma=1e-300", "mask=unsharp sigma=1e-300", "mask=gauss sigma=0",
        "mask=gauss sigma=0 size=31", "mask=unsharp sigma=0 amount=7.3", "mask=unsharp sigma=0 size=63 amount=-2.1"}) {
    Harness h(properties, info);
    fail_unless(same_samples(in.get(), h.filter(in.get()).get(), info), "%s", properties);
  }
  check_frame(info, "mask=gauss sigma=-1");
  check_frame(info, "mask=gauss sigma=-1 size=31");
  check_frame(info, "mask=gauss sigma=0 size=5 divisor=2 bias=0.25 border=constant");
}
GST_END_TEST;

GST_START_TEST(bias_means_the_same_at_every_depth) {
  for (const char *format : {"GRAY8", "GRAY16_LE", "P010_10LE", "RGB10A2_LE"})
    check_frame(video_info(format, 16, 8), "mask=emboss bias=0.5 chroma=copy");
  const GstVideoInfo info = video_info("GRAY16_LE", 1, 1);
  const Ref<GstBuffer> in(gst_buffer_new_memdup("\0\0\0\0", 4));
  Harness h("mask=laplace bias=0.5 negative=clamp", info);
  fail_unless_equals_int(gst_buffer_memcmp(h.filter(in.get()).get(), 0, "\x00\x80", 2), 0);
}
GST_END_TEST;

GST_START_TEST(the_six_low_bits_of_p010_are_ignored_and_written_as_zero) {
  const GstVideoInfo info = video_info("P010_10LE", 18, 10);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random), clean(gst_buffer_copy_deep(in.get()));
  GstMapInfo map;
  gst_buffer_map(clean.get(), &map, GST_MAP_READWRITE);
  for (gsize i = 0; i < map.size; i += 2) map.data[i] &= 0xc0;
  gst_buffer_unmap(clean.get(), &map);
  for (const char *mask : {"mask=gauss5", "mask=gauss5 chroma=copy", "mask=median"}) {
    Harness h(mask, info);
    const Ref<GstBuffer> out = h.filter(in.get()), out_clean = h.filter(clean.get());
    fail_unless(same_samples(out.get(), out_clean.get(), info));
    assert_filtered(in.get(), out.get(), info, mask);
    gst_buffer_map(out.get(), &map, GST_MAP_READ);
    for (gsize i = 0; i < map.size; i += 2) fail_unless_equals_int(map.data[i] & 0x3f, 0);
    gst_buffer_unmap(out.get(), &map);
  }
}
GST_END_TEST;

GST_START_TEST(planes_that_are_not_filtered_are_copied_or_neutral_and_never_garbage) {
  for (const char *properties : {"mask=box3 chroma=copy", "mask=box3 chroma=neutral", "mask=sobel",
                                 "mask=box3 alpha=copy", "mask=open chroma=copy", "mask=box3 iterations=2 chroma=copy",
                                 "mask=tophat chroma=neutral", "mask=median size=5 chroma=copy"})
    for (const char *format : {"I420", "NV12", "A420", "AYUV", "YUY2", "RGBA", "RGBx"})
      check_frame(video_info(format, 19, 9), properties);
}
GST_END_TEST;

GST_START_TEST(all_methods_give_the_same_bytes_at_every_border) {
  const GstVideoInfo info = video_info("NV12", 45, 21);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  for (const Nick &border : nicks_of("border")) {
    for (const Nick &method : nicks_of("method")) {
      const bool cascade = !strcmp(method.nick, "cascade");
      const std::string properties = std::string(cascade ? "mask=erode size=5" : "mask=gauss5") +
                                     " border=" + border.nick + " method=" + method.nick;
      Harness h(properties, info);
      const Ref<GstBuffer> out = h.filter(in.get());
      assert_filtered(in.get(), out.get(), info, properties);
    }
  }
}
GST_END_TEST;

gsize resident_bytes() {
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long total = 0, resident = 0;
  const bool read = file && fscanf(file, "%lu %lu", &total, &resident) == 2;
  if (file) fclose(file);
  return read ? resident * static_cast<gsize>(sysconf(_SC_PAGESIZE)) : 0;
}

GST_START_TEST(starts_and_stops_do_not_grow_the_process) {
  const GstVideoInfo info = video_info("I420", 320, 240);
  const int starts = number_from_environment("CUDACONV_TEST_STARTS", 200);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  gsize before = 0;
  for (int i = -20; i < starts; i++) {
    if (i == 0) before = resident_bytes();
    Harness h("mask=gauss3", info);
    h.filter(in.get());
  }
  const gsize after = resident_bytes();
  // A leak of one frame per start would be 23 MB for 200 starts.
  fail_unless(after < before + (6u << 20), "from %zu to %zu kB", before >> 10, after >> 10);
}
GST_END_TEST;

GST_START_TEST(one_element_starts_and_stops_again_and_again) {
  const GstVideoInfo info = video_info("I420", 32, 18);
  Random random = seeded();
  const Ref<GstBuffer> in = random_frame(info, random);
  Harness h("mask=gauss3", info);
  for (GstState state : {GST_STATE_READY, GST_STATE_NULL, GST_STATE_PAUSED, GST_STATE_READY, GST_STATE_NULL}) {
    const Ref<GstBuffer> out = h.filter(in.get());
    assert_filtered(in.get(), out.get(), info, "mask=gauss3");
    fail_if(gst_element_set_state(h.element(), state) == GST_STATE_CHANGE_FAILURE);
    fail_if(gst_element_set_state(h.element(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE);
    h.set_caps(video_info("RGB", 8, 8));
    h.set_caps(info);
  }
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("cudaconv");
  TCase *tc = tcase_create("general");
  suite_add_tcase(suite, tc);
  tcase_add_test(tc, properties_have_their_defaults_limits_and_flags);
  tcase_add_test(tc, properties_keep_what_they_are_set_to);
  tcase_add_test(tc, every_nick_of_every_enum_filters);
  tcase_add_test(tc, numbers_take_effect);
  tcase_add_test(tc, border_color_is_converted_to_the_frames_colours);
  tcase_add_test(tc, border_color_follows_the_colorimetry_of_the_caps);
  tcase_add_test(tc, templates_list_every_format_with_planes_of_samples);
  tcase_add_test(tc, every_format_filters);
  tcase_add_test(tc, common_formats_filter_byte_for_byte);
  tcase_add_test(tc, format_and_size_never_change);
  tcase_add_test(tc, common_formats_are_offered_first);
  tcase_add_test(tc, every_field_of_the_caps_is_kept);
  tcase_add_test(tc, formats_without_planes_of_samples_are_refused);
  tcase_add_test(tc, frames_split_over_memories_are_refused);
  tcase_add_test(tc, a_source_of_every_format_takes_a_common_one);
  tcase_add_test(tc, overlays_beside_the_picture_pass_through);
  tcase_add_test(tc, the_plugin_says_whether_it_was_built_with_cuda);
  tcase_add_test(tc, memory_features_are_interchangeable_if_there_is_cuda_memory);
  tcase_add_test(tc, odd_sizes_filter_to_the_last_column_and_row);
  if (!has_address_sanitizer()) tcase_add_test(tc, frames_of_more_than_65535_tiles_of_rows_filter);
  tcase_add_test(tc, masks_larger_than_the_frame_read_the_border_only);
  tcase_add_test(tc, fields_are_filtered_separately);
  tcase_add_test(tc, buffers_of_one_field_are_frames);
  tcase_add_test(tc, upstream_is_offered_a_pool_and_may_use_any_strides);
  tcase_add_test(tc, no_pool_is_made_if_none_is_needed);
  tcase_add_test(tc, downstream_that_knows_no_strides_gets_the_default_ones);
  tcase_add_test(tc, a_pool_that_alters_its_configuration_is_used);
  tcase_add_test(tc, a_pool_of_at_least_more_buffers_than_at_most_is_used);
  tcase_add_test(tc, an_allocator_that_needs_its_own_pool_is_not_used_without_it);
  tcase_add_test(tc, a_pool_without_memory_is_an_error_message);
  tcase_add_test(tc, neighbours_are_told_when_passthrough_comes_and_goes);
  tcase_add_test(tc, frames_pass_in_a_layout_that_downstream_knows);
  tcase_add_test(tc, upstream_is_asked_for_the_metas_that_are_kept);
  tcase_add_test(tc, strides_and_offsets_are_obeyed_and_padding_is_neither_read_nor_written);
  tcase_add_test(tc, the_last_row_needs_no_padding);
  tcase_add_test(tc, the_size_comes_from_the_caps);
  tcase_add_test(tc, planes_may_have_separate_memories);
  tcase_add_test(tc, input_is_never_written_and_released_with_its_output);
  tcase_add_test(tc, metas_are_kept_unless_they_are_about_the_memory);
  tcase_add_test(tc, flags_and_timestamps_are_kept);
  tcase_add_test(tc, a_change_takes_effect_at_the_next_frame);
  tcase_add_test(tc, frames_are_never_filtered_by_a_mixture_of_masks);
  tcase_add_test(tc, frames_are_never_filtered_by_a_mixture_of_coefficients);
  tcase_add_test(tc, numbers_can_be_animated);
  tcase_add_test(tc, a_blur_grows_out_of_nothing);
  tcase_add_test(tc, events_keep_their_order_among_the_frames);
  tcase_add_test(tc, after_a_flush_a_new_segment_starts_the_stream);
  tcase_add_test(tc, a_seek_goes_upstream);
  tcase_add_test(tc, a_pipeline_plays_seeks_and_ends);
  tcase_add_test(tc, caps_may_change_in_mid_stream);
  tcase_add_test(tc, late_frames_are_dropped_after_a_qos_event);
  tcase_add_test(tc, a_live_pipeline_waits_for_no_further_frame);
  tcase_add_test(tc, elements_side_by_side_never_see_each_others_masks);
  tcase_add_test(tc, bad_settings_at_the_start_are_an_error_that_names_them);
  tcase_add_test(tc, settings_without_effect_are_a_warning);
  tcase_add_test(tc, bad_values_in_every_frame_are_not_a_warning_for_every_frame);
  tcase_add_test(tc, a_repeated_mistake_is_a_warning_again);
  tcase_add_test(tc, an_error_is_posted_again_after_a_restart);
  tcase_add_test(tc, a_filter_that_is_set_between_two_streams_filters);
  tcase_add_test(tc, errors_name_their_origin);
  tcase_add_test(tc, settings_of_one_call_take_effect_together);
  tcase_add_test(tc, settings_of_calls_that_overlap_are_not_mixed);
  tcase_add_test(tc, threads_change_nothing_but_the_time);
  tcase_add_test(tc, the_requested_number_of_threads_filters);
  tcase_add_test(tc, bad_settings_while_playing_are_a_warning_and_the_last_good_ones_stay);
  tcase_add_test(tc, a_buffer_too_small_for_its_caps_is_an_error);
  tcase_add_test(tc, a_video_meta_that_contradicts_caps_or_memory_is_an_error);
  tcase_add_test(tc, a_flush_and_a_stop_log_no_warning);
  tcase_add_test(tc, the_log_up_to_debug_has_short_lines);
  tcase_add_test(tc, errors_of_buffers_name_the_fault_and_its_position);
  tcase_add_test(tc, a_plane_may_span_several_memories);
  tcase_add_test(tc, huge_widths_are_negotiated_at_once);
  if (!has_address_sanitizer()) tcase_add_test(tc, no_memory_is_an_error_message);
  tcase_add_test(tc, a_buffer_that_cannot_be_mapped_is_an_error);
  tcase_add_test(tc, after_an_error_of_one_buffer_the_element_continues);
  tcase_add_test(tc, backend_cuda_without_a_device_does_not_start);
  tcase_add_test(tc, backend_auto_reports_the_cpu_once);
  tcase_add_test(tc, backend_cpu_looks_for_no_device);
  tcase_add_test(tc, stats_count_from_the_start);
  tcase_add_test(tc, only_identity_is_passthrough);
  tcase_add_test(tc, an_asymmetric_mask_is_not_flipped);
  tcase_add_test(tc, iterations_equal_elements_in_a_row);
  tcase_add_test(tc, samples_within_the_threshold_do_not_change);
  tcase_add_test(tc, negative_halves_of_edges_are_not_lost);
  tcase_add_test(tc, tiny_and_zero_sigma_make_sense);
  tcase_add_test(tc, bias_means_the_same_at_every_depth);
  tcase_add_test(tc, the_six_low_bits_of_p010_are_ignored_and_written_as_zero);
  tcase_add_test(tc, planes_that_are_not_filtered_are_copied_or_neutral_and_never_garbage);
  tcase_add_test(tc, all_methods_give_the_same_bytes_at_every_border);
  if (!has_address_sanitizer()) tcase_add_test(tc, starts_and_stops_do_not_grow_the_process);
  tcase_add_test(tc, one_element_starts_and_stops_again_and_again);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "cudaconv", make_suite, !strcmp(test_backend(), "cuda"));
}
