// SPDX-License-Identifier: LGPL-2.1-or-later
#include "media.h"

#include <gst/video/video.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "ending.h"

#ifndef CUDACONV_VERSION  // compiled without Meson
#define CUDACONV_VERSION "(version unknown)"
#endif

namespace media {

namespace {

bool is_refusal(GstQuery *query) {
  GstCaps *caps = nullptr;
  gboolean accepted = TRUE;
  if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) gst_query_parse_caps_result(query, &caps);
  if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) gst_query_parse_accept_caps_result(query, &accepted);
  return !accepted || (caps && gst_caps_is_empty(caps));
}

// videoflip turns its caps when a tag tells the orientation. If a query of another thread comes at that moment, half of
// the answer is of before, and no caps are left: the query is answered again.
GstPadProbeReturn answer_again(GstPad *pad, GstPadProbeInfo *info, gpointer) {
  GstQuery *const query = GST_PAD_PROBE_INFO_QUERY(info);
  for (int i = 0; i < 3 && is_refusal(query); i++) GST_PAD_QUERYFUNC(pad)(pad, GST_OBJECT_PARENT(pad), query);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn mend_caps(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps *caps;
  gst_event_parse_caps(event, &caps);
  GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_caps(mended(caps).get());
  gst_event_unref(event);
  return GST_PAD_PROBE_OK;
}

Owned<GstElement> parsed(GstElement *element, const ErrorSlot &error) {
  Owned<GstElement> owned(element);
  error.check("cannot make the pipeline");
  end_without_threads();
  gst_object_ref_sink(owned.get());
  const auto probe = [element](const char *name, guint kinds, GstPadProbeCallback callback) {
    const Owned<GstElement> named(GST_IS_BIN(element) ? gst_bin_get_by_name(GST_BIN(element), name) : nullptr);
    if (named)
      gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(named.get(), "sink")).get(), GstPadProbeType(kinds),
                        callback, nullptr, nullptr);
  };
  probe("flip", GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PULL, answer_again);
  probe("entry", GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, mend_caps);
  return owned;
}

gboolean print_version(const gchar *, const gchar *, gpointer, GError **) {
  std::printf("%s %s\n", g_get_prgname(), CUDACONV_VERSION);
  std::exit(0);
}

}  // namespace

void check_value(const char *option, const gchar *value) {
  if (value && !*value) throw Failure(std::string(option) + " has an empty value");
}

GOptionEntry version_option() {
  const auto print = reinterpret_cast<gpointer>(print_version);
  return {"version", 0, G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, print, "print the version", nullptr};
}

void post_failure(GstElement *element, const std::string &text, GQuark domain, gint code) {
  GError *error = g_error_new_literal(domain, code, text.c_str());
  gst_element_post_message(element, gst_message_new_error(GST_OBJECT(element), error, nullptr));
  g_error_free(error);
}

bool has_suffix(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() &&
         g_ascii_strcasecmp(text.c_str() + text.size() - suffix.size(), suffix.c_str()) == 0;
}

std::string uri_of(const std::string &file) {
  if (gst_uri_is_valid(file.c_str()) && !g_file_test(file.c_str(), G_FILE_TEST_EXISTS)) return file;
  ErrorSlot error;
  const Owned<gchar> uri(gst_filename_to_uri(file.c_str(), error));
  error.check(file);
  return uri.get();
}

std::string path_of(const std::string &file_or_uri) {
  const Owned<gchar> path(g_filename_from_uri(uri_of(file_or_uri).c_str(), nullptr, nullptr));
  return path ? path.get() : "";
}

Owned<GstElement> find(GstElement *bin, const char *name) {
  Owned<GstElement> element(gst_bin_get_by_name(GST_BIN(bin), name));
  if (!element) throw Failure(std::string("there is no element ") + name);
  return element;
}

Owned<GstElement> make_pipeline(const std::string &line) {
  ErrorSlot error;
  GstElement *element = gst_parse_launch_full(line.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, error);
  return parsed(element, error);
}

Owned<GstElement> make_bin(const std::string &line) {
  ErrorSlot error;
  GstElement *element =
      gst_parse_bin_from_description_full(line.c_str(), TRUE, nullptr, GST_PARSE_FLAG_FATAL_ERRORS, error);
  return parsed(element, error);
}

void watch_streams(GstElement *uridecodebin, void (*tell)(gpointer), gpointer data) {
  struct Watch {
    void (*tell)(gpointer);
    gpointer data;
    std::atomic<bool> complete{true};  // the source element has all of its pads
  };
  auto *const watch = new Watch{tell, data};
  // A source such as rtspsrc gets pads for its streams one after the other, and uridecodebin a decoder for each: it
  // tells that it has no more pads also where the next stream has not come.
  const auto wait_for = +[](GstElement *, GstElement *source, gpointer of) {
    bool later = false;
    for (GList *pads = gst_element_class_get_pad_template_list(GST_ELEMENT_GET_CLASS(source)); pads;
         pads = pads->next) {
      auto *pad = GST_PAD_TEMPLATE(pads->data);
      later |= GST_PAD_TEMPLATE_DIRECTION(pad) == GST_PAD_SRC && GST_PAD_TEMPLATE_PRESENCE(pad) == GST_PAD_SOMETIMES;
    }
    if (!later) return;
    static_cast<Watch *>(of)->complete = false;
    const auto complete = +[](GstElement *, gpointer of) { static_cast<Watch *>(of)->complete = true; };
    g_signal_connect(source, "no-more-pads", G_CALLBACK(complete), of);  // before uridecodebin is told
  };
  const auto pass_on = +[](GstElement *, gpointer of) {
    const auto *const self = static_cast<Watch *>(of);
    if (self->complete) self->tell(self->data);
  };
  g_signal_connect(uridecodebin, "source-setup", G_CALLBACK(wait_for), watch);
  g_signal_connect_data(
      uridecodebin, "no-more-pads", G_CALLBACK(pass_on), watch,
      [](gpointer of, GClosure *) { delete static_cast<Watch *>(of); }, GConnectFlags(0));
}

namespace {

// Whether to decode a stream further: sound would be decoded in vain. A demuxer may find video in it.
gboolean decodes(GstElement *, GstPad *, GstCaps *caps, gpointer) {
  if (!g_str_has_prefix(gst_structure_get_name(gst_caps_get_structure(caps, 0)), "audio/")) return TRUE;
  GList *all = gst_element_factory_list_get_elements(GST_ELEMENT_FACTORY_TYPE_DEMUXER, GST_RANK_MARGINAL);
  GList *able = gst_element_factory_list_filter(all, caps, GST_PAD_SINK, FALSE);
  const bool taken_apart = able != nullptr;
  for (GList *list : {all, able}) gst_plugin_feature_list_free(list);
  return taken_apart;
}

// Links the video. Where files are joined, for example, another stream takes its place.
void take_stream(GstElement *, GstPad *pad, gpointer decoded) {
  const Owned<GstPad> sink(gst_element_get_static_pad(GST_ELEMENT(decoded), "sink"));
  Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  if (!caps) caps.reset(gst_pad_query_caps(pad, nullptr));
  const bool video = !gst_caps_is_empty(caps.get()) && !gst_caps_is_any(caps.get()) &&
                     gst_structure_has_name(gst_caps_get_structure(caps.get(), 0), "video/x-raw");
  const auto drop = +[](GstPad *, GstPadProbeInfo *, gpointer) { return GST_PAD_PROBE_DROP; };
  if (!video)
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_DATA_DOWNSTREAM, drop, nullptr, nullptr);
  else if (!gst_pad_is_linked(sink.get()))
    gst_pad_link(pad, sink.get());
}

// A part of the input has no more streams.
void check_video(gpointer decoded) {
  auto *const queue = GST_ELEMENT(decoded);
  const Owned<GstPad> sink(gst_element_get_static_pad(queue, "sink"));
  if (gst_pad_is_linked(sink.get())) return;
  if (!Owned<GstCaps>(gst_pad_get_current_caps(sink.get())))  // the error of decoders that are missing: see Runner
    return post_failure(GST_ELEMENT(GST_OBJECT_PARENT(queue)), "there is no decoder for its video", GST_CORE_ERROR,
                        GST_CORE_ERROR_MISSING_PLUGIN);
  std::fprintf(stderr, "warning: the input goes on without the video\n");
  gst_element_call_async(
      queue, [](GstElement *, gpointer to) { gst_pad_send_event(GST_PAD(to), gst_event_new_eos()); },
      gst_object_ref(sink.get()), gst_object_unref);
}

}  // namespace

GstElement *add_source(GstElement *pipeline, const std::string &input) {
  const Owned<GstElement> decoded = find(pipeline, "decoded");
  GstElement *const source = gst_element_factory_make("uridecodebin", nullptr);
  if (!source) throw Failure("there is no element uridecodebin");
  // All streams, also those that are dropped: between parts of its input decodebin waits for the end of each one.
  g_object_set(source, "uri", uri_of(input).c_str(), nullptr);
  gst_bin_add(GST_BIN(pipeline), source);
  g_signal_connect(source, "autoplug-continue", G_CALLBACK(decodes), nullptr);
  g_signal_connect(source, "pad-added", G_CALLBACK(take_stream), decoded.get());  // both live with the pipeline
  watch_streams(source, check_video, decoded.get());
  return source;
}

GstClockTime time_at(GstPad *pad, GstClockTime timestamp, guint64 (*convert)(const GstSegment *, GstFormat, guint64)) {
  const Owned<GstEvent> event(gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0));
  if (!event) return GST_CLOCK_TIME_NONE;
  const GstSegment *segment;
  gst_event_parse_segment(event.get(), &segment);
  return convert(segment, GST_FORMAT_TIME, timestamp);
}

Owned<GstCaps> mended(GstCaps *caps) {
  GstVideoInfo info;
  Owned<GstCaps> result(gst_caps_copy(caps));
  GstStructure *const video = gst_caps_get_structure(result.get(), 0);
  int n = 1, d = 1;
  if (!gst_caps_is_fixed(caps) || !gst_structure_has_name(video, "video/x-raw")) return result;
  // avidemux gives pixels a negative width where a header has a negative height: bare RGB whose rows go from top to
  // bottom. Scalers refuse it.
  gst_structure_get_fraction(video, "pixel-aspect-ratio", &n, &d);
  if (n < 0) gst_structure_set(video, "pixel-aspect-ratio", GST_TYPE_FRACTION, -n, d, nullptr);
  // Decoders name a range without a matrix. For YUV GStreamer then forgets the range, and it garbles grey.
  GstVideoColorimetry colors;
  const gchar *const text = gst_structure_get_string(video, "colorimetry");
  if (!text || !gst_video_colorimetry_from_string(&colors, text) || colors.matrix != GST_VIDEO_COLOR_MATRIX_UNKNOWN ||
      !gst_video_info_from_caps(&info, result.get()))
    return result;
  constexpr int kMostRows = 576;  // of standard definition
  colors.matrix = info.height > kMostRows ? GST_VIDEO_COLOR_MATRIX_BT709 : GST_VIDEO_COLOR_MATRIX_BT601;
  const Owned<gchar> known(gst_video_colorimetry_to_string(&colors));
  if (known) gst_structure_set(video, "colorimetry", G_TYPE_STRING, known.get(), nullptr);
  return result;
}

int depth_of(const GstCaps *video) {
  GstVideoInfo info;
  return gst_caps_is_fixed(video) && gst_video_info_from_caps(&info, video) ? GST_VIDEO_INFO_COMP_DEPTH(&info, 0) : 0;
}

bool has_alpha(const GstCaps *video) {
  GstVideoInfo info;
  return gst_caps_is_fixed(video) && gst_video_info_from_caps(&info, video) && GST_VIDEO_INFO_HAS_ALPHA(&info);
}

void warn_of_rgb(GstElement *decoded, const std::string &reason) {
  const Owned<GstPad> pad(gst_element_get_static_pad(decoded, "src"));
  const Owned<GstCaps> caps(gst_pad_get_current_caps(pad.get()));
  const int depth = caps ? depth_of(caps.get()) : 0;
  if (depth > 8) std::fprintf(stderr, "warning: of the video's %d bits 8 are kept: %s\n", depth, reason.c_str());
  if (caps && has_alpha(caps.get())) std::fprintf(stderr, "warning: the video has alpha, which is left out\n");
}

void check_display() {
  const auto is_set = [](const char *name) { return g_getenv(name) && *g_getenv(name); };
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
    throw Failure("there is no display to show a window on; -o FILE.webm writes a video instead");
  GList *sinks = gst_element_factory_list_get_elements(
      GST_ELEMENT_FACTORY_TYPE_SINK | GST_ELEMENT_FACTORY_TYPE_MEDIA_VIDEO, GST_RANK_MARGINAL);
  const bool have_sink = sinks != nullptr;
  gst_plugin_feature_list_free(sinks);
  if (!have_sink) throw Failure("no element here shows a window: install gstreamer1.0-x");
}

}  // namespace media
