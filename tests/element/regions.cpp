// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions.h"

#include <algorithm>

namespace cudaconv::test {

namespace {

// The rectangle in a subsampled plane of all pixels that `r` touches.
Region subsampled(const Region &r, int sub_x, int sub_y) {
  const int left = r.x >> sub_x, top = r.y >> sub_y;
  const int right = -(-(r.x + r.width) >> sub_x), bottom = -(-(r.y + r.height) >> sub_y);
  return {left, top, right - left, bottom - top};
}

bool contains(const Region &r, bool ellipse, int x, int y) {
  if (x < r.x || y < r.y || x >= r.x + r.width || y >= r.y + r.height) return false;
  const double dx = (x + 0.5 - r.x) / r.width * 2 - 1, dy = (y + 0.5 - r.y) / r.height * 2 - 1;
  return !ellipse || dx * dx + dy * dy <= 1 + 1e-9;
}

bool is_selected(const Selection &selection, const GstVideoFormatInfo *format, guint component, int x, int y) {
  const bool found = std::any_of(selection.region.begin(), selection.region.end(), [&](const Region &r) {
    return contains(
        subsampled(r, GST_VIDEO_FORMAT_INFO_W_SUB(format, component), GST_VIDEO_FORMAT_INFO_H_SUB(format, component)),
        selection.ellipse, x, y);
  });
  return found != selection.invert;
}

}  // namespace

void add_roi(GstBuffer *buffer, const char *type, guint x, guint y, guint w, guint h) {
  gst_buffer_add_video_region_of_interest_meta(buffer, type, x, y, w, h);
}

void check_layers(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::vector<Layer> &layers) {
  const FrameBytes source(in, info), got(out, info);
  std::vector<FrameBytes> filtered;
  for (const Layer &layer : layers) {
    Harness unrestricted(layer.filter, info);
    const Ref<GstBuffer> copy(gst_buffer_copy(in));
    filtered.emplace_back(unrestricted.filter(copy.get()).get(), info);
  }
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++) {
    const int plane = GST_VIDEO_INFO_COMP_PLANE(&info, c), step = GST_VIDEO_INFO_COMP_PSTRIDE(&info, c);
    for (int y = 0; y < GST_VIDEO_INFO_COMP_HEIGHT(&info, c); y++) {
      for (int x = 0; x < GST_VIDEO_INFO_COMP_WIDTH(&info, c); x++) {
        const FrameBytes *want = &source;
        const char *what = "the source";
        for (size_t i = 0; i < layers.size(); i++) {
          if (!is_selected(layers[i].selection, info.finfo, c, x, y)) continue;
          want = &filtered[i];
          what = layers[i].filter.c_str();
        }
        const auto sample = [&](const FrameBytes &frame) {
          const PlaneView &view = frame.view.plane[plane];
          const uint8_t *at = view.data + y * view.pitch + GST_VIDEO_INFO_COMP_POFFSET(&info, c) + x * step;
          return GST_VIDEO_INFO_COMP_DEPTH(&info, c) > 8 ? at[0] | at[1] << 8 : at[0];
        };
        if (sample(got) != sample(*want))
          fail("%s: component %u at %d,%d is %d and should be %d, that of %s", GST_VIDEO_INFO_NAME(&info), c, x, y,
               sample(got), sample(*want), what);
      }
    }
  }
}

void check_frame(Harness &h, GstBuffer *in, const GstVideoInfo &info, const std::string &filter,
                 const Selection &selection) {
  const Ref<GstBuffer> out = h.filter(in);
  check_layers(in, out.get(), info, {{filter, selection}});
}

void check_frame_at(Harness &h, GstBuffer *in, const GstVideoInfo &info, GstClockTime time, const std::string &filter,
                    const Selection &selection) {
  GST_BUFFER_PTS(in) = time;
  fail_unless_equals_int(h.push(in), GST_FLOW_OK);
  const Ref<GstBuffer> out = h.pull();
  check_layers(in, out.get(), info, {{filter, selection}});
}

}  // namespace cudaconv::test
