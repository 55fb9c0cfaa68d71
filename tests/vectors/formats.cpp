// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Checks that vectors and element have the same formats, byte for byte, as far as the installed GStreamer knows them.
#include <gst/gst.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "gstcudaconvdevice.h"
#include "gstcudaconvformat.h"
#include "layouts.h"

// Replaces the list of formats in CUDA memory. All of these exist in system memory, too.
const char *const *cudaconv::gst::cuda_memory_formats() {
  static constexpr const char *kNone[] = {nullptr};
  return kNone;
}

namespace cudaconv::verify {

namespace {

int failures = 0;

void expect(bool passed, const std::string &what) {
  if (passed) return;
  failures++;
  std::printf("FAILED %s\n", what.c_str());
}

// The names of the formats in the pad templates.
std::set<std::string> formats_of_element() {
  std::set<std::string> names;
  GstCaps *caps = gst::template_caps();
  for (guint i = 0; i < gst_caps_get_size(caps); i++) {
    const GValue *list = gst_structure_get_value(gst_caps_get_structure(caps, i), "format");
    for (guint k = 0; k < gst_value_list_get_size(list); k++)
      names.insert(g_value_get_string(gst_value_list_get_value(list, k)));
  }
  gst_caps_unref(caps);
  return names;
}

bool same(const PlaneLayout &a, const PlaneLayout &b) {
  if (a.width != b.width || a.height != b.height || a.channels != b.channels || a.step != b.step ||
      a.first != b.first || a.sub_x != b.sub_x || a.sub_y != b.sub_y || a.memory_plane != b.memory_plane ||
      a.container != b.container)
    return false;
  for (int c = 0; c < a.channels; c++) {
    const ChannelLayout &x = a.channel[c], &y = b.channel[c];
    if (x.role != y.role || x.offset != y.offset || x.depth != y.depth || x.shift != y.shift) return false;
  }
  return true;
}

void check(const std::string &name) {
  for (const int width : {1, 2, 5, 16, 31}) {
    for (const int height : {1, 2, 7}) {
      GstVideoInfo info;
      gst_video_info_set_format(&info, gst_video_format_from_string(name.c_str()), width, height);
      FrameLayout got;
      FrameLayout want = layout_of(name, width, height);
      // These have the byte order of the machine. Vectors have them as little endian.
      if (G_BYTE_ORDER == G_BIG_ENDIAN && (name == "ARGB64" || name == "AYUV64"))
        want.plane[0].container = Container::U16BE;
      bool right = gst::describe_frame(info, 0, &got) && got.planes == want.planes;
      for (int p = 0; right && p < want.planes; p++) right = same(got.plane[p], want.plane[p]);
      expect(right, name + " " + std::to_string(width) + "x" + std::to_string(height));
    }
  }
}

int run() {
  const std::set<std::string> element = formats_of_element();
  const std::set<std::string> vectors(format_names().begin(), format_names().end());
  for (const std::string &name : element) expect(vectors.count(name), name + " has no vectors");
  for (const std::string &name : vectors) {
    if (gst_video_format_from_string(name.c_str()) == GST_VIDEO_FORMAT_UNKNOWN) continue;
    expect(element.count(name), name + " is not a format of the element");
    check(name);
  }
  std::printf("%zu formats, %zu of them known here, %d failed\n", vectors.size(), element.size(), failures);
  return failures ? 1 : 0;
}

}  // namespace

}  // namespace cudaconv::verify

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  return cudaconv::verify::run();
}
