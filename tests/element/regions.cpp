// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions.h"

#include <algorithm>

namespace cudaconv::test {

namespace {

bool contains(const Region &r, bool ellipse, int x, int y) {
  if (x < r.x || y < r.y || x >= r.x + r.width || y >= r.y + r.height) return false;
  const double dx = (x + 0.5 - r.x) / r.width * 2 - 1, dy = (y + 0.5 - r.y) / r.height * 2 - 1;
  return !ellipse || dx * dx + dy * dy <= 1 + 1e-9;
}

// Whether the centre of the pixel has an odd number of edges to its right.
bool encloses(const std::vector<std::pair<double, double>> &points, int x, int y) {
  bool inside = false;
  for (size_t i = 0, before = points.size() - 1; i < points.size(); before = i++) {
    const auto [ax, ay] = points[i];
    const auto [bx, by] = points[before];
    if ((ay > y + 0.5) != (by > y + 0.5) && x + 0.5 < (bx - ax) * (y + 0.5 - ay) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

bool has_pixel(const Selection &selection, int x, int y) {
  return std::any_of(selection.region.begin(), selection.region.end(),
                     [&](const Region &r) { return contains(r, selection.ellipse, x, y); }) ||
         std::any_of(selection.polygon.begin(), selection.polygon.end(),
                     [&](const auto &points) { return encloses(points, x, y); });
}

// Whether any pixel of sample (x, y) is selected.
bool is_selected(const Selection &selection, const GstVideoInfo &info, guint component, int x, int y) {
  const int sub_x = GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, component);
  const int sub_y = GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, component);
  for (int row = y << sub_y; row < std::min((y + 1) << sub_y, GST_VIDEO_INFO_FIELD_HEIGHT(&info)); row++)
    for (int column = x << sub_x; column < std::min((x + 1) << sub_x, GST_VIDEO_INFO_WIDTH(&info)); column++)
      if (has_pixel(selection, column, row) != selection.invert) return true;
  return false;
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
          if (!is_selected(layers[i].selection, info, c, x, y)) continue;
          want = &filtered[i];
          what = layers[i].filter.c_str();
        }
        const auto sample = [&](const FrameBytes &frame) {
          const PlaneView &view = frame.view.plane[plane];
          const uint8_t *at = view.data + y * view.pitch + GST_VIDEO_INFO_COMP_POFFSET(&info, c) + x * step;
          return GST_VIDEO_INFO_COMP_DEPTH(&info, c) > 8 ? at[0] | at[1] << 8 : at[0];
        };
        if (sample(got) != sample(*want))
          fail("%s: component %u at %d,%d is %d and should be %d, as in %s", GST_VIDEO_INFO_NAME(&info), c, x, y,
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
