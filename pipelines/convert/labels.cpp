// SPDX-License-Identifier: LGPL-2.1-or-later
#include "labels.h"

#include <algorithm>
#include <cstring>

namespace media {

namespace {

constexpr char kDisplay[] = "mastering-display-info", kLight[] = "content-light-level";

bool has(const GstCaps *caps, const char *field) {
  return gst_structure_has_field(gst_caps_get_structure(caps, 0), field);
}

bool is_matroska(const Container &container) {
  return std::strcmp(container.muxer, "mp4mux") != 0;
}

}  // namespace

GstVideoColorimetry named_by_vp9enc(const GstVideoColorimetry &colors) {
  const char *name = nullptr;
  switch (colors.matrix) {
    case GST_VIDEO_COLOR_MATRIX_BT601:
      name = GST_VIDEO_COLORIMETRY_BT601;
      break;
    case GST_VIDEO_COLOR_MATRIX_BT709:
      name = GST_VIDEO_COLORIMETRY_BT709;
      break;
    case GST_VIDEO_COLOR_MATRIX_SMPTE240M:
      name = GST_VIDEO_COLORIMETRY_SMPTE240M;
      break;
    case GST_VIDEO_COLOR_MATRIX_BT2020:
      name = GST_VIDEO_COLORIMETRY_BT2020;
      break;
    default:
      return colors;
  }
  GstVideoColorimetry known;
  gst_video_colorimetry_from_string(&known, name);
  known.range = colors.range;
  return known;
}

GstCaps *labelled(const GstCaps *coded, const GstCaps *frames, const Container &container) {
  GstCaps *result = gst_caps_copy(coded);
  for (const char *field : {"colorimetry", kDisplay, kLight})
    if (const GValue *value = gst_structure_get_value(gst_caps_get_structure(frames, 0), field))
      gst_caps_set_value(result, field, value);
  // See Shape: the encoder may have got another one.
  const GValue *const rate = gst_structure_get_value(gst_caps_get_structure(frames, 0), "framerate");
  if (is_format(coded, kH265) && rate) gst_caps_set_value(result, "framerate", rate);
  // mp4mux of 1.22 reads it of VP9 where there is none.
  if (is_format(coded, kVp9) && !has(coded, "chroma-site"))
    gst_caps_set_simple(result, "chroma-site", G_TYPE_STRING, "mpeg2", nullptr);
  GstVideoMasteringDisplayInfo display;
  if (!is_matroska(container) || !gst_video_mastering_display_info_from_caps(&display, frames)) return result;
  // matroskamux divides by 50000 here too, where the unit is 1/10000 cd/m²; matroskademux reads it right. So does every
  // GStreamer from 1.22 to 1.28.
  constexpr guint32 kTooDark = 5;
  for (guint32 *each : {&display.max_display_mastering_luminance, &display.min_display_mastering_luminance})
    *each = std::min(*each, G_MAXUINT32 / kTooDark) * kTooDark;
  gst_video_mastering_display_info_add_to_caps(&display, result);
  return result;
}

bool loses_light(const GstCaps *frames, const Container &container, const Coding &coding) {
  if (is_matroska(container) || !(has(frames, kDisplay) || has(frames, kLight))) return false;
  for (const char *encoder : {"x265enc", "nvh265enc"})  // they write it into the stream
    if (coding.encoder == encoder) return false;
  return true;
}

}  // namespace media
