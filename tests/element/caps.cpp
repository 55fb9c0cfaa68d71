// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the functions on caps and formats alone: with CUDA memory in every build, and with formats that the installed
// GStreamer may not know yet.
#include "gstcudaconvformat.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "formats.h"
#include "gstcudaconvdevice.h"
#include "support.h"

// Replaces the list of formats of the build.
const char *const *cudaconv::gst::cuda_memory_formats() {
  static constexpr const char *kFormats[] = {"P010_10LE", "ARGB", "NV12", "no-format", nullptr};
  return kFormats;
}

using namespace cudaconv;
using namespace cudaconv::gst;
using namespace cudaconv::test;

namespace {

GstCaps *caps_of(const std::string &text) {
  GstCaps *caps = gst_caps_from_string(text.c_str());
  fail_unless(caps != nullptr, "not caps: %s", text.c_str());
  return caps;
}

// Compares caps, the order of structures and formats included.
#define assert_caps(caps, text)                                                                           \
  do {                                                                                                    \
    const Ref<GstCaps> got_(caps), want_(caps_of(text));                                                  \
    fail_unless(gst_caps_is_strictly_equal(got_.get(), want_.get()), "the caps are %s and should be %s",  \
                Text(gst_caps_to_string(got_.get())).get(), Text(gst_caps_to_string(want_.get())).get()); \
  } while (0)
struct Free {
  void operator()(gchar *text) const { g_free(text); }
};
using Text = std::unique_ptr<gchar, Free>;

const std::string kOverlay = "meta:GstVideoOverlayComposition";

GST_START_TEST(either_memory_adds_the_same_caps_with_the_other_memory) {
  const std::string rest = ",format=NV12,width=16", other = "(memory:GLMemory)" + rest;
  const auto either = [](const std::string &text) {
    const Ref<GstCaps> caps(caps_of(text));
    return with_either_memory(caps.get());
  };
  const std::string system = "video/x-raw" + rest, cuda = "video/x-raw(memory:CUDAMemory)" + rest;
  assert_caps(either(system), system + ";" + cuda);
  assert_caps(either(cuda), cuda + ";" + system);
  assert_caps(either(system + ";" + cuda), system + ";" + cuda);

  const std::string metas = kOverlay + ", meta:Another";
  const std::string with_metas = "video/x-raw(memory:SystemMemory, " + metas + ")" + rest,
                    cuda_with_metas = "video/x-raw(memory:CUDAMemory, " + metas + ")" + rest,
                    metas_alone = "video/x-raw(" + metas + ")" + rest;
  assert_caps(either(with_metas), with_metas + ";" + cuda_with_metas);
  assert_caps(either(cuda_with_metas), cuda_with_metas + ";" + with_metas);
  assert_caps(either(metas_alone), metas_alone + ";" + cuda_with_metas);
  assert_caps(either(system + ";" + cuda_with_metas), system + ";" + cuda_with_metas + ";" + cuda + ";" + with_metas);

  // Caps do not change if they have memory that the element does not support, fields (format:Interlaced) or ANY
  // features.
  for (const char *features : {"memory:GLMemory", "memory:GLMemory, meta:Another", "format:Interlaced", "ANY"})
    assert_caps(either("video/x-raw(" + std::string(features) + ")" + rest),
                "video/x-raw(" + std::string(features) + ")" + rest);
  assert_caps(either("ANY"), "ANY");
  assert_caps(either("EMPTY"), "EMPTY");
}
GST_END_TEST;

GST_START_TEST(caps_are_cuda_memory_if_their_first_structure_is) {
  const auto is_cuda = [](const std::string &text) {
    const Ref<GstCaps> caps(caps_of(text));
    return is_cuda_caps(caps.get());
  };
  fail_unless(is_cuda("video/x-raw(memory:CUDAMemory)"));
  fail_unless(is_cuda("video/x-raw(memory:CUDAMemory, " + kOverlay + ");video/x-raw"));
  for (const char *text : {"video/x-raw", "video/x-raw;video/x-raw(memory:CUDAMemory)", "video/x-raw(memory:GLMemory)",
                           "video/x-raw(meta:Another)", "video/x-raw(ANY)", "ANY", "EMPTY"})
    fail_if(is_cuda(text), "%s", text);
}
GST_END_TEST;

GST_START_TEST(templates_have_each_memory_with_and_without_overlays) {
  const Ref<GstCaps> caps(template_caps());
  const std::string features[] = {"memory:CUDAMemory",   "memory:CUDAMemory, " + kOverlay,
                                  "memory:SystemMemory", "memory:SystemMemory, " + kOverlay,
                                  "format:Interlaced",   "format:Interlaced, " + kOverlay};
  fail_unless_equals_int(gst_caps_get_size(caps.get()), G_N_ELEMENTS(features));
  for (guint i = 0; i < G_N_ELEMENTS(features); i++) {
    GstCapsFeatures *wanted = gst_caps_features_from_string(features[i].c_str());
    fail_unless(gst_caps_features_is_equal(gst_caps_get_features(caps.get(), i), wanted), "%s", features[i].c_str());
    gst_caps_features_free(wanted);
    const GstStructure *structure = gst_caps_get_structure(caps.get(), i);
    const GValue *formats = gst_structure_get_value(structure, "format");
    fail_unless_equals_string(g_value_get_string(gst_value_list_get_value(formats, 0)), "NV12");
    fail_unless(i > 1 || gst_value_list_get_size(formats) == 3);
    const char *mode = gst_structure_get_string(structure, "interlace-mode");
    fail_unless_equals_string(mode, i > 3 ? "alternate" : nullptr);
  }
}
GST_END_TEST;

GST_START_TEST(frames_split_over_memories_are_taken_out_of_caps) {
  const auto whole = [](const std::string &text) { return without_split_frames(caps_of(text)); };
  for (const char *text : {"video/x-raw", "video/x-raw,interlace-mode={mixed,interleaved}", "ANY", "EMPTY",
                           "video/x-raw,interlace-mode=progressive,multiview-mode=multiview-frame-by-frame"})
    assert_caps(whole(text), text);
  for (const char *text : {"video/x-raw,interlace-mode=fields", "video/x-raw,multiview-mode=separated",
                           "video/x-raw(memory:CUDAMemory),interlace-mode={fields},multiview-mode=mono"})
    assert_caps(whole(text), "EMPTY");
  assert_caps(whole("video/x-raw,interlace-mode={progressive,fields,mixed},multiview-mode={mono,separated}"),
              "video/x-raw,interlace-mode={progressive,mixed},multiview-mode=mono");
  assert_caps(whole("video/x-raw,interlace-mode=fields;video/x-raw,width=16"), "video/x-raw,width=16");
}
GST_END_TEST;

GST_START_TEST(common_formats_come_first) {
  const auto sorted = [](const std::string &text) { return with_common_formats_first(caps_of(text)); };
  assert_caps(sorted("video/x-raw,format={unknown,ABGR64_LE,GRAY8,I420_10LE,RGBA,NV12,another}"),
              "video/x-raw,format={NV12,RGBA,GRAY8,I420_10LE,ABGR64_LE,unknown,another}");
  for (const char *text : {"video/x-raw,format=ABGR64_LE;video/x-raw,format=NV12", "video/x-raw,width=16", "ANY"})
    assert_caps(sorted(text), text);
}
GST_END_TEST;

// RGB10x2_LE and BGR10x2_LE exist since GStreamer 1.28. The test makes them from RGB10A2_LE.
GST_START_TEST(rgb_of_ten_bits_without_alpha_leaves_two_bits_alone) {
  for (const char *name : {"RGB10x2_LE", "BGR10x2_LE"}) {
    GstVideoFormatInfo finfo;  // memcpy, since an assignment would use deprecated members
    std::memcpy(&finfo, gst_video_format_get_info(GST_VIDEO_FORMAT_RGB10A2_LE), sizeof finfo);
    finfo.name = name;
    finfo.flags = static_cast<GstVideoFormatFlags>(finfo.flags & ~GST_VIDEO_FORMAT_FLAG_ALPHA);
    finfo.n_components = 3;
    GstVideoInfo info = video_info("RGB10A2_LE", 5, 3);
    info.finfo = &finfo;
    FrameLayout layout;
    fail_unless(describe_frame(info, 0xff000080, &layout));
    fail_unless_equals_int(layout.planes, 1);
    const PlaneLayout &plane = layout.plane[0];
    fail_unless(plane.container == Container::Packed32 && plane.step == 1 && plane.first == 0);
    fail_unless_equals_int(plane.channels, 3);
    for (int c = 0; c < 3; c++) {
      fail_unless(plane.channel[c].role == Role::Luma);
      fail_unless_equals_int(plane.channel[c].offset, 10 * c);
      fail_unless_equals_int(plane.channel[c].depth, 10);
      // Blue is the highest field of RGB10x2_LE and the lowest of BGR10x2_LE.
      fail_unless_equals_int(plane.border_value[c], c == (name[0] == 'R' ? 2 : 0) ? 514 : 0);
    }
  }
}
GST_END_TEST;

// The rows of its plane that hold a component, as GStreamer's unpacking reads them. A row counts if it changes the
// samples of a line.
std::vector<bool> rows_that_unpacking_reads(const GstVideoInfo &info, bool interlaced, guint component) {
  constexpr int kRows = 44, kStride = 256;
  const int lines = GST_VIDEO_INFO_FIELD_HEIGHT(&info), width = GST_VIDEO_INFO_WIDTH(&info);
  // Modes that differ in none of these are unpacked alike.
  static std::map<std::tuple<const GstVideoFormatInfo *, bool, int, int, guint>, std::vector<bool>> known;
  std::vector<bool> &read = known[{info.finfo, interlaced, lines, width, component}];
  if (!read.empty()) return read;
  const guint plane = GST_VIDEO_INFO_COMP_PLANE(&info, component);
  std::vector<std::vector<guint8>> bytes(GST_VIDEO_MAX_PLANES, std::vector<guint8>(kRows * kStride));
  gpointer data[GST_VIDEO_MAX_PLANES];
  gint stride[GST_VIDEO_MAX_PLANES];
  for (int p = 0; p < GST_VIDEO_MAX_PLANES; p++) data[p] = bytes[p].data(), stride[p] = kStride;
  const auto flags = static_cast<GstVideoPackFlags>(interlaced ? GST_VIDEO_PACK_FLAG_INTERLACED : 0);
  const auto unpacked = [&] {
    std::vector<guint16> all;
    for (int y = 0; y < lines; y++) {
      std::vector<guint16> line(4 * (width + 16));
      info.finfo->unpack_func(info.finfo, flags, line.data(), data, stride, 0, y, width);
      all.insert(all.end(), line.begin(), line.end());
    }
    return all;
  };
  const std::vector<guint16> blank = unpacked();
  for (int row = 0; row < kRows; row++) {
    const auto at = bytes[plane].begin() + row * kStride;
    std::fill(at, at + kStride, 255);
    read.push_back(unpacked() != blank);
    std::fill(at, at + kStride, 0);
  }
  return read;
}

// For each format and height, a frame has the rows that GStreamer reads and has room for. The layouts of tests have the
// same rows.
GST_START_TEST(planes_have_the_rows_that_gstreamer_gives_them) {
  auto *known = static_cast<GEnumClass *>(g_type_class_ref(GST_TYPE_VIDEO_FORMAT));
  int subsampled = 0;
  for (guint n = 0; n < known->n_values; n++)
    for (const GstVideoInterlaceMode mode : {GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, GST_VIDEO_INTERLACE_MODE_INTERLEAVED,
                                             GST_VIDEO_INTERLACE_MODE_MIXED, GST_VIDEO_INTERLACE_MODE_ALTERNATE})
      for (int height = 1; height <= 40; height++)
        for (const bool fields : {false, true}) {
          const auto format = static_cast<GstVideoFormat>(known->values[n].value);
          if (format == GST_VIDEO_FORMAT_UNKNOWN || format == GST_VIDEO_FORMAT_ENCODED) continue;
          if (fields && mode != GST_VIDEO_INTERLACE_MODE_INTERLEAVED && mode != GST_VIDEO_INTERLACE_MODE_MIXED)
            continue;
          GstVideoInfo info;
          FrameLayout layout;
          if (!gst_video_info_set_interlaced_format(&info, format, mode, 9, height) ||
              !describe_frame(info, 0, &layout, fields))
            continue;
          const std::string where = std::string(GST_VIDEO_INFO_NAME(&info)) + " of " + std::to_string(height) +
                                    " lines, mode " + std::to_string(mode) + (fields ? ", fields" : "");
          for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++) {
            const auto plane = std::find_if(layout.plane, layout.plane + layout.planes, [&](const PlaneLayout &p) {
              return p.memory_plane == static_cast<int>(GST_VIDEO_INFO_COMP_PLANE(&info, c)) &&
                     p.sub_y == static_cast<int>(GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, c));
            });
            const std::vector<bool> read = rows_that_unpacking_reads(info, fields, c);
            const int rows = static_cast<int>(std::find(read.rbegin(), read.rend(), true).base() - read.begin());
            // Bytes behind the plane, in other planes or beyond the frame, do not belong to it.
            GstVideoInfo placed = place(info, {0, 0, 0});
            const gsize end = GST_VIDEO_INFO_COMP_PLANE(&info, c) + 1 < GST_VIDEO_INFO_N_PLANES(&info)
                                  ? placed.offset[plane->memory_plane + 1]
                                  : placed.size;
            const int room =
                static_cast<int>((end - placed.offset[plane->memory_plane]) / placed.stride[plane->memory_plane]);
            fail_unless_equals_int(std::count(read.begin(), read.end(), true), rows);
            fail_unless(plane->height == std::min(rows, room), "%s: plane %d has %d rows and should have %d",
                        where.c_str(), plane->memory_plane, plane->height, std::min(rows, room));
            subsampled += fields && plane->sub_y > 0;
          }
          for (const Format &tested : formats()) {
            if (strcmp(tested.name, GST_VIDEO_INFO_NAME(&info)) != 0) continue;
            const FrameLayout want = layout_of(info, fields);
            for (int p = 0; p < want.planes; p++)
              fail_unless(layout.plane[p].height == want.plane[p].height, "%s, tests", where.c_str());
          }
        }
  g_type_class_unref(known);
  fail_unless(subsampled > 0);
}
GST_END_TEST;

Suite *make_suite() {
  Suite *suite = suite_create("caps");
  TCase *tc = tcase_create("general");
  tcase_add_test(tc, either_memory_adds_the_same_caps_with_the_other_memory);
  tcase_add_test(tc, caps_are_cuda_memory_if_their_first_structure_is);
  tcase_add_test(tc, templates_have_each_memory_with_and_without_overlays);
  tcase_add_test(tc, frames_split_over_memories_are_taken_out_of_caps);
  tcase_add_test(tc, common_formats_come_first);
  tcase_add_test(tc, planes_have_the_rows_that_gstreamer_gives_them);
  tcase_add_test(tc, rgb_of_ten_bits_without_alpha_leaves_two_bits_alone);
  suite_add_tcase(suite, tc);
  return suite;
}

}  // namespace

int main(int argc, char **argv) {
  return run_suite(argc, argv, "caps", make_suite, false);
}
