// SPDX-License-Identifier: LGPL-2.1-or-later
#include "shape.h"

#include <gst/video/video.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "labels.h"

namespace media {

namespace {

const GstStructure *fields_of(const GstCaps *caps) {
  return gst_caps_get_structure(caps, 0);
}

bool equal(const GstStructure *a, const GstStructure *b, const char *field) {
  const GValue *x = gst_structure_get_value(a, field), *y = gst_structure_get_value(b, field);
  return (!x && !y) || (x && y && gst_value_compare(x, y) == GST_VALUE_EQUAL);
}

void copy_field(GstStructure *to, const GstStructure *from, const char *field) {
  const GValue *value = gst_structure_get_value(from, field);
  if (value)
    gst_structure_set_value(to, field, value);
  else
    gst_structure_remove_field(to, field);
}

std::string size_of(const GstStructure *video) {
  int width = 0, height = 0, n = 1, d = 1;
  gst_structure_get(video, "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height, nullptr);
  gst_structure_get_fraction(video, "pixel-aspect-ratio", &n, &d);
  const std::string size = std::to_string(width) + "x" + std::to_string(height);
  return n == d ? size : size + " with pixels of " + std::to_string(n) + ":" + std::to_string(d);
}

}  // namespace

bool is_interlaced(const GstCaps *video) {
  const gchar *mode = gst_structure_get_string(fields_of(video), "interlace-mode");
  return mode && std::strcmp(mode, "progressive");
}

Shape::Shape(const Coding &coding)
    : vp8_(is_format(coding.format.get(), kVp8)),
      vp9_(is_format(coding.format.get(), kVp9)),
      h265_(is_format(coding.format.get(), kH265)),
      one_size_(!vp8_ && !vp9_),
      deep_(coding.deep()),
      frames_(gst_caps_ref(coding.frames.get())),
      fit_(make("videoconvertscale")),
      pins_(make("capsfilter")) {
  g_object_set(fit_, "add-borders", TRUE, nullptr);
  constexpr auto kAll = GstPadProbeType(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_BUFFER);
  const Owned<GstPad> sink(gst_element_get_static_pad(fit_, "sink")), src(gst_element_get_static_pad(pins_, "src"));
  gst_pad_add_probe(sink.get(), kAll, before, this, nullptr);
  gst_pad_add_probe(src.get(), kAll, after, this, nullptr);
}

GstPadProbeReturn Shape::before(GstPad *, GstPadProbeInfo *info, gpointer shape) {
  auto *self = static_cast<Shape *>(shape);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    self->has_frame_ = true;
    return GST_PAD_PROBE_OK;
  }
  if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps *caps;
  gst_event_parse_caps(GST_PAD_PROBE_INFO_EVENT(info), &caps);
  if (self->has_frame_)
    self->go_on(caps);
  else
    self->begin(caps);
  return GST_PAD_PROBE_OK;
}

// A clip that is turned has another size before its first frame: the last caps before it count.
void Shape::begin(const GstCaps *caps) {
  first_.reset(gst_caps_copy(caps));
  written_.reset();
  const Owned<GstCaps> pins(gst_caps_copy(frames_.get()));
  keep_grey(caps, pins.get());
  g_object_set(pins_, "caps", pins.get(), nullptr);
}

// Converters copy the codes of grey, and name the range of YUV in general.
void Shape::keep_grey(const GstCaps *caps, GstCaps *pins) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps) || !GST_VIDEO_INFO_IS_GRAY(&info) ||
      info.colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235)
    return;
  constexpr char kFull[] = "1:4:0:0";  // with the matrix of BT.601
  gst_caps_set_simple(pins, "colorimetry", G_TYPE_STRING, kFull, nullptr);
}

void Shape::go_on(const GstCaps *caps) {
  const GstStructure *const first = fields_of(first_.get()), *const now = fields_of(caps);
  const bool same_pixels = equal(first, now, "pixel-aspect-ratio");
  const bool same_size = same_pixels && equal(first, now, "width") && equal(first, now, "height");
  const bool scaled = !same_size && (one_size_ || !same_pixels);
  report(now, scaled);
  if (!written_) return;
  Owned<GstCaps> pins(gst_caps_new_empty_simple("video/x-raw"));
  for (const char *field : {"format", "width", "height", "pixel-aspect-ratio"}) {
    const bool own = !scaled && std::strcmp(field, "format");
    copy_field(gst_caps_get_structure(pins.get(), 0), own ? now : fields_of(written_.get()), field);
  }
  keep_grey(caps, pins.get());
  g_object_set(pins_, "caps", pins.get(), nullptr);
}

// VP8 has colours of BT.601 in limited range (RFC 6386, 9.2). Of 8 bits, VP9 has no other than BT.709 beside them.
GstVideoColorimetry Shape::written_as(const GstVideoColorimetry &colors) const {
  GstVideoColorimetry result = colors;
  if (vp8_) {
    result.range = GST_VIDEO_COLOR_RANGE_16_235;
    result.matrix = GST_VIDEO_COLOR_MATRIX_BT601;
  }
  if (vp9_ && !deep_ && colors.matrix != GST_VIDEO_COLOR_MATRIX_BT601) {
    gst_video_colorimetry_from_string(&result, GST_VIDEO_COLORIMETRY_BT709);
    result.range = colors.range;
  }
  return result;
}

// The caps for the encoder. They are the first, but for a size that may change.
GstCaps *Shape::write_as(const GstCaps *caps) {
  gst_video_info_from_caps(&info_, caps);
  if (!written_) {
    const GstVideoColorimetry target = written_as(info_.colorimetry);
    const Owned<gchar> text(gst_video_colorimetry_to_string(&target));
    written_.reset(gst_caps_copy(caps));
    if (text) gst_caps_set_simple(written_.get(), "colorimetry", G_TYPE_STRING, text.get(), nullptr);
    const GstStructure *const came = fields_of(first_.get()), *const goes = fields_of(caps);
    if (!equal(came, goes, "width") || !equal(came, goes, "height"))
      std::fprintf(stderr, "warning: the video is scaled from %s to %s, since the file takes no smaller one\n",
                   size_of(came).c_str(), size_of(goes).c_str());
  }
  GstVideoInfo target;
  gst_video_info_from_caps(&target, written_.get());
  colors_.reset();
  const bool differ = Colors::differ(info_.colorimetry, target.colorimetry);
  if (differ && deep_ && !told_colors_)
    std::fprintf(stderr, "warning: the video changes its colours, which is not converted\n");
  told_colors_ |= differ;
  if (differ && !deep_ && Colors::convertible(info_.colorimetry) && Colors::convertible(target.colorimetry))
    colors_.emplace(info_.colorimetry, target.colorimetry);
  if (vp9_ && deep_) target.colorimetry = named_by_vp9enc(target.colorimetry);
  const Owned<gchar> named(gst_video_colorimetry_to_string(&target.colorimetry));
  GstCaps *result = gst_caps_copy(written_.get());
  for (const char *field : {"width", "height", "pixel-aspect-ratio"})
    copy_field(gst_caps_get_structure(result, 0), fields_of(caps), field);
  if (vp9_ && deep_ && named) gst_caps_set_simple(result, "colorimetry", G_TYPE_STRING, named.get(), nullptr);
  // x265enc does not start without a frame rate, such as of a clip that a browser has recorded. Frames keep their
  // times, and the muxer gets the true caps.
  if (h265_ && !info_.fps_n) gst_caps_set_simple(result, "framerate", GST_TYPE_FRACTION, 25, 1, nullptr);
  return result;
}

GstPadProbeReturn Shape::after(GstPad *pad, GstPadProbeInfo *info, gpointer shape) {
  auto *self = static_cast<Shape *>(shape);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    if (!self->colors_) return GST_PAD_PROBE_OK;
    GstBuffer *const buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_DATA(info) = buffer;
    GstVideoFrame frame;
    if (!gst_video_frame_map(&frame, &self->info_, buffer, GST_MAP_READWRITE)) {
      post_failure(GST_ELEMENT(GST_OBJECT_PARENT(pad)), "cannot map a frame");
      return GST_PAD_PROBE_DROP;
    }
    self->colors_->convert(&frame);
    gst_video_frame_unmap(&frame);
    return GST_PAD_PROBE_OK;
  }
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps *caps;
  gst_event_parse_caps(event, &caps);
  GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_caps(Owned<GstCaps>(self->write_as(caps)).get());
  gst_event_unref(event);
  return GST_PAD_PROBE_OK;
}

void Shape::report(const GstStructure *now, bool scaled) {
  if (scaled && !told_size_)
    std::fprintf(stderr, "warning: the video changes to %s: it is scaled to its first size, %s\n", size_of(now).c_str(),
                 size_of(fields_of(first_.get())).c_str());
  told_size_ |= scaled;
  const Owned<GstCaps> caps(gst_caps_new_full(gst_structure_copy(now), nullptr));
  const bool new_fields = is_interlaced(caps.get()) && !is_interlaced(first_.get());
  if (new_fields && !told_fields_)
    std::fprintf(stderr, "warning: the video becomes interlaced, which the file does not tell\n");
  told_fields_ |= new_fields;
}

}  // namespace media
