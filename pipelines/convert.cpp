// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One file into another: uridecodebin takes it apart, encodebin encodes what has to be, a muxer joins it.
#include <gst/pbutils/pbutils.h>
#include <gst/video/video.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>

#include "media.h"

namespace media {

namespace {

// The settings of encoders, for good pictures and sound at any size.
const struct {
  const char *encoder;
  std::vector<std::pair<const char *, const char *>> settings;
} kEncoders[] = {
    {"vp8enc",
     {{"deadline", "1"},
      {"cpu-used", "-10"},
      {"end-usage", "cq"},
      {"cq-level", "16"},
      {"min-quantizer", "4"},
      {"max-quantizer", "40"},
      {"target-bitrate", "20000000"},
      {"keyframe-max-dist", "50"}}},
    {"vp9enc",
     {{"deadline", "1"}, {"cpu-used", "6"}, {"end-usage", "cq"}, {"cq-level", "20"}, {"target-bitrate", "20000000"}}},
    {"x264enc", {{"speed-preset", "veryfast"}, {"pass", "quant"}, {"quantizer", "20"}}},
    {"openh264enc", {{"rate-control", "off"}, {"qp-min", "20"}, {"qp-max", "24"}, {"gop-size", "50"}}},
    {"opusenc", {{"bitrate", "128000"}}},
    {"voaacenc", {{"bitrate", "160000"}}},
    {"avenc_aac", {{"bitrate", "160000"}}},
};

// encodebin makes an encoder.
void set_up_encoder(GstBin *, GstBin *, GstElement *element, gpointer) {
  const GstElementFactory *factory = gst_element_get_factory(element);
  for (const auto &known : kEncoders)
    if (factory && !strcmp(GST_OBJECT_NAME(factory), known.encoder))
      for (const auto &[name, value] : known.settings) gst_util_set_object_arg(G_OBJECT(element), name, value);
}

struct Container {
  const char *suffix, *muxer;
  bool text;  // takes subtitles; the muxer for WebM does not refuse them, but players do
  // Formats to encode to, the best first, and the packages that have encoders for them.
  std::vector<const char *> video, audio;
  const char *packages;
};
const Container kContainers[] = {
    {".webm",
     "webmmux",
     false,
     {"video/x-vp8", "video/x-vp9"},
     {"audio/x-opus", "audio/x-vorbis"},
     "gstreamer1.0-plugins-good"},
    {".mkv",
     "matroskamux",
     true,
     {"video/x-h264", "video/x-vp8"},
     {"audio/x-opus", "audio/x-vorbis"},
     "gstreamer1.0-plugins-ugly, or gstreamer1.0-plugins-good"},
    {".mp4",
     "mp4mux",
     true,
     {"video/x-h264"},
     {"audio/mpeg,mpegversion=4", "audio/x-opus"},
     "gstreamer1.0-plugins-ugly or gstreamer1.0-plugins-bad"},
};

const Container *container_of(const std::string &name) {
  for (const Container &c : kContainers)
    if (has_suffix(name, c.suffix)) return &c;
  return nullptr;
}

// The first of the formats but `unfit` that an installed element encodes to; nullptr where there is none.
GstCaps *find_format(const std::vector<const char *> &formats, GstElementFactoryListType kind, const char *unfit = "") {
  GList *encoders = gst_element_factory_list_get_elements(kind, GST_RANK_MARGINAL);
  GstCaps *found = nullptr;
  for (const char *format : formats) {
    if (!std::strcmp(format, unfit)) continue;
    GstCaps *caps = gst_caps_from_string(format);
    GList *able = gst_element_factory_list_filter(encoders, caps, GST_PAD_SRC, FALSE);
    if (able && !found)
      found = caps;
    else
      gst_caps_unref(caps);
    gst_plugin_feature_list_free(able);
  }
  gst_plugin_feature_list_free(encoders);
  return found;
}

// A pipeline to which the streams of its source are added as they appear.
struct Converter {
  GstElement *pipeline, *source, *muxer;  // not owned
  const Container *container;
  Covers covers;
  Owned<GstElement> filter;  // until a video stream has come
  gint width = 0, height = 0;
  bool has_frame = false;  // of that size
  Owned<GstCaps> video, audio;
};

void add(Converter *c, std::initializer_list<GstElement *> chain, GstPad *from, const char *request) {
  GstElement *last = nullptr;
  for (GstElement *element : chain) {
    gst_bin_add(GST_BIN(c->pipeline), element);
    if (last) gst_element_link(last, element);
    last = element;
  }
  if (request && !gst_element_link_pads(last, "src", c->muxer, request))
    post_failure(c->pipeline, "the container does not take the stream");
  for (auto element = std::rbegin(chain); element != std::rend(chain); ++element)
    gst_element_sync_state_with_parent(*element);
  const Owned<GstPad> sink(gst_element_get_static_pad(*chain.begin(), "sink"));
  if (gst_pad_link_full(from, sink.get(), GST_PAD_LINK_CHECK_NOTHING) != GST_PAD_LINK_OK)
    post_failure(c->pipeline, "a stream cannot be linked");
}

GstElement *make(const char *factory) {
  GstElement *element = gst_element_factory_make(factory, nullptr);
  if (!element) throw Failure(std::string("there is no element ") + factory);
  return element;
}

GstElement *make_encoder(GstEncodingProfile *profile) {
  GstElement *encoder = make("encodebin");
  g_signal_connect(encoder, "deep-element-added", G_CALLBACK(set_up_encoder), nullptr);
  g_object_set(encoder, "profile", profile, nullptr);
  gst_encoding_profile_unref(profile);
  return encoder;
}

GstElement *make_video_encoder(GstCaps *format) {
  const Owned<GstCaps> plays(gst_caps_from_string("video/x-raw,format={I420,NV12}"));  // what all players show
  GstEncodingVideoProfile *profile = gst_encoding_video_profile_new(format, nullptr, plays.get(), 0);
  gst_encoding_video_profile_set_variableframerate(profile, TRUE);  // no frame is dropped or repeated
  return make_encoder(GST_ENCODING_PROFILE(profile));
}

// Whether an installed encoder to the format takes this sound.
bool can_encode(const GstCaps *format, const GstCaps *sound) {
  GList *all = gst_element_factory_list_get_elements(GST_ELEMENT_FACTORY_TYPE_AUDIO_ENCODER, GST_RANK_MARGINAL);
  GList *able = gst_element_factory_list_filter(all, format, GST_PAD_SRC, FALSE);
  GList *fit = gst_element_factory_list_filter(able, sound, GST_PAD_SINK, FALSE);
  const bool can = fit != nullptr;
  for (GList *list : {all, able, fit}) gst_plugin_feature_list_free(list);
  return can;
}

// Left alone, an encoder for two channels at most gets surround sound as one channel.
GstElement *make_audio_encoder(GstCaps *format, const GstCaps *sound) {
  int channels = 0;
  gst_structure_get_int(gst_caps_get_structure(sound, 0), "channels", &channels);
  Owned<GstCaps> taken(gst_caps_new_simple("audio/x-raw", "channels", G_TYPE_INT, channels, nullptr));
  if (channels > 2 && !can_encode(format, taken.get())) {
    std::fprintf(stderr, "warning: %d channels of sound are mixed to 2, for want of an encoder\n", channels);
    gst_caps_set_simple(taken.get(), "channels", G_TYPE_INT, 2, nullptr);
  }
  return make_encoder(
      GST_ENCODING_PROFILE(gst_encoding_audio_profile_new(format, nullptr, channels > 2 ? taken.get() : nullptr, 0)));
}

// The name of a request pad of the muxer for such a stream; nullptr where it takes none.
const char *template_for(GstElement *muxer, const GstCaps *caps) {
  for (GList *pads = gst_element_class_get_pad_template_list(GST_ELEMENT_GET_CLASS(muxer)); pads; pads = pads->next) {
    auto *pad = GST_PAD_TEMPLATE(pads->data);
    if (GST_PAD_TEMPLATE_DIRECTION(pad) != GST_PAD_SINK) continue;
    const Owned<GstCaps> takes(gst_pad_template_get_caps(pad));
    if (gst_caps_can_intersect(takes.get(), caps)) return GST_PAD_TEMPLATE_NAME_TEMPLATE(pad);
  }
  return nullptr;
}

void drop(Converter *c, GstPad *pad, const std::string &what) {
  std::fprintf(stderr, "warning: %s is left out\n", what.c_str());
  GstElement *sink = make("fakesink");
  g_object_set(sink, "async", FALSE, "sync", FALSE, nullptr);
  add(c, {sink}, pad, nullptr);
}

// The text of Pango markup without its tags.
std::string plain_text(const std::string &markup) {
  std::string text;
  GMarkupParser parser = {};
  parser.text = [](GMarkupParseContext *, const gchar *part, gsize size, gpointer to, GError **) {
    static_cast<std::string *>(to)->append(part, size);
  };
  GMarkupParseContext *context = g_markup_parse_context_new(&parser, GMarkupParseFlags(0), &text, nullptr);
  const std::string whole = "<m>" + markup + "</m>";
  const bool good = g_markup_parse_context_parse(context, whole.c_str(), static_cast<gssize>(whole.size()), nullptr);
  g_markup_parse_context_free(context);
  return good ? text : markup;
}

// Takes the tags out of a subtitle.
GstPadProbeReturn make_plain(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstBuffer *const markup = GST_PAD_PROBE_INFO_BUFFER(info);
  GstMapInfo map;
  if (!gst_buffer_map(markup, &map, GST_MAP_READ)) return GST_PAD_PROBE_DROP;
  const std::string text = plain_text(std::string(reinterpret_cast<const char *>(map.data), map.size));
  gst_buffer_unmap(markup, &map);
  GstBuffer *plain = gst_buffer_new_memdup(text.data(), text.size());
  gst_buffer_copy_into(plain, markup, GstBufferCopyFlags(GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS), 0, -1);
  gst_buffer_unref(markup);
  GST_PAD_PROBE_INFO_DATA(info) = plain;
  return GST_PAD_PROBE_OK;
}

// Subtitles become plain text, the only kind of text that muxers take.
void add_text(Converter *c, GstPad *pad) {
  const Owned<GstCaps> caps(gst_caps_from_string("text/x-raw,format=utf8"));
  const char *request = c->container->text ? template_for(c->muxer, caps.get()) : nullptr;
  if (!request) return drop(c, pad, std::string("text, which ") + c->container->suffix + " does not take,");
  GstElement *text = make("capssetter");
  g_object_set(text, "caps", caps.get(), "join", FALSE, nullptr);
  const Owned<GstPad> end(gst_element_get_static_pad(text, "src"));
  gst_pad_add_probe(end.get(), GST_PAD_PROBE_TYPE_BUFFER, make_plain, nullptr, nullptr);
  add(c, {text, make("queue")}, pad, request);
}

constexpr char kH264[] = "video/x-h264";

bool is_interlaced(const GstCaps *video) {
  const gchar *mode = gst_structure_get_string(gst_caps_get_structure(video, 0), "interlace-mode");
  return mode && std::strcmp(mode, "progressive");
}

// VP8 and VP9 have no fields: players show both at once. No encoder here keeps alpha.
void warn_of_losses(const GstCaps *format, const GstCaps *video) {
  GstVideoInfo info;
  // A stream that ends before its first frame has no fixed caps.
  if (gst_caps_is_fixed(video) && gst_video_info_from_caps(&info, video) && GST_VIDEO_INFO_HAS_ALPHA(&info))
    std::fprintf(stderr, "warning: the video has alpha, which is left out\n");
  if (!is_interlaced(video) || gst_structure_has_name(gst_caps_get_structure(format, 0), kH264)) return;
  const Owned<gchar> name(gst_pb_utils_get_codec_description(format));
  std::fprintf(stderr, "warning: the video is interlaced, which %s does not keep\n", name.get());
}

// A file has one header for all of its H.264. A clip that is turned has another size before its first frame.
GstPadProbeReturn check_size(GstPad *, GstPadProbeInfo *info, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    c->has_frame = true;
    return GST_PAD_PROBE_OK;
  }
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps *caps;
  gst_event_parse_caps(event, &caps);
  const gint width = c->width, height = c->height;
  gst_structure_get(gst_caps_get_structure(caps, 0), "width", G_TYPE_INT, &c->width, "height", G_TYPE_INT, &c->height,
                    nullptr);
  if (!c->has_frame || (c->width == width && c->height == height)) return GST_PAD_PROBE_OK;
  post_failure(c->pipeline, "the size of the video changes, which H.264 does not keep here: write .webm instead");
  return GST_PAD_PROBE_DROP;
}

// Muxers leave out frames without a timestamp, and not all say so.
GstPadProbeReturn check_time(GstPad *, GstPadProbeInfo *info, gpointer converter) {
  if (GST_BUFFER_PTS_IS_VALID(GST_PAD_PROBE_INFO_BUFFER(info))) return GST_PAD_PROBE_OK;
  post_failure(static_cast<Converter *>(converter)->pipeline, "its frames have no timestamps, which video files need");
  return GST_PAD_PROBE_DROP;
}

// Video of an odd size is not written as H.264, which halves the chroma planes of both directions. Each field of
// interlaced video has its own chroma rows.
void add_video(Converter *c, GstPad *pad, const GstCaps *caps) {
  if (!c->filter) return drop(c, pad, "a second video");
  GstElement *size = make("capsfilter");
  const Owned<GstPad> sized(gst_element_get_static_pad(size, "src"));
  gst_pad_add_probe(sized.get(), GST_PAD_PROBE_TYPE_BUFFER, check_time, c, nullptr);
  add(c, {make("queue"), c->filter.get(), size}, pad, nullptr);
  c->filter.reset();  // now the pipeline's
  const bool fields = is_interlaced(caps);
  const std::string takes = fields ? "H.264 takes interlaced video only of even widths, and of heights divisible by 4"
                                   : "H.264 takes only even sizes";
  if (gst_structure_has_name(gst_caps_get_structure(c->video.get(), 0), kH264))
    gst_util_set_object_arg(G_OBJECT(size), "caps",  // a scaler in the filter obeys it
                            fields ? "video/x-raw(ANY),width=[2,2147483646,2],height=[4,2147483644,4]"
                                   : "video/x-raw(ANY),width=[2,2147483646,2],height=[2,2147483646,2]");
  const Owned<GstCaps> possible(gst_pad_peer_query_caps(pad, nullptr));
  if (!gst_caps_can_intersect(possible.get(), caps)) {
    c->video.reset(find_format(c->container->video, GST_ELEMENT_FACTORY_TYPE_VIDEO_ENCODER, kH264));
    if (!c->video) throw Failure(takes + ": write .webm or .mkv instead");
    const Owned<gchar> other(gst_pb_utils_get_codec_description(c->video.get()));
    std::fprintf(stderr, "warning: %s: the video is written as %s\n", takes.c_str(), other.get());
    g_object_set(size, "caps", nullptr, nullptr);
  }
  if (gst_structure_has_name(gst_caps_get_structure(c->video.get(), 0), kH264))
    gst_pad_add_probe(sized.get(), GstPadProbeType(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_BUFFER),
                      check_size, c, nullptr);
  warn_of_losses(c->video.get(), caps);
  add(c, {make("queue"), make_video_encoder(c->video.get())}, sized.get(), template_for(c->muxer, c->video.get()));
}

void add_stream(Converter *c, GstPad *pad) {
  Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  if (!caps) caps.reset(gst_pad_query_caps(pad, nullptr));
  const std::string name = gst_structure_get_name(gst_caps_get_structure(caps.get(), 0));
  if (g_str_has_prefix(name.c_str(), "video/")) return add_video(c, pad, caps.get());
  const Owned<gchar> description(gst_pb_utils_get_codec_description(caps.get()));
  const std::string what = description ? description.get() : name;
  if (name == "text/x-raw") return add_text(c, pad);
  if (name == "audio/x-raw") {
    if (!c->audio) return drop(c, pad, "the sound, for want of an encoder,");
    return add(c, {make("queue"), make_audio_encoder(c->audio.get(), caps.get())}, pad,
               template_for(c->muxer, c->audio.get()));
  }
  const bool fits = c->container->text || g_str_has_prefix(name.c_str(), "audio/");
  const char *request = fits ? template_for(c->muxer, caps.get()) : nullptr;
  if (!request) return drop(c, pad, what + ", which " + c->container->suffix + " does not take,");
  add(c, {make("queue")}, pad, request);
}

// Takes pictures, and data that only cameras understand and that may be a picture, out of tags.
GstPadProbeReturn drop_covers(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_TAG) return GST_PAD_PROBE_OK;
  GstTagList *all;
  gst_event_parse_tag(event, &all);
  GstTagList *kept = gst_tag_list_copy(all);
  for (int i = 0; i < gst_tag_list_n_tags(all); i++) {
    const gchar *name = gst_tag_list_nth_tag_name(all, i);
    const GType type = gst_tag_get_type(name);
    if (type == GST_TYPE_SAMPLE || type == GST_TYPE_BUFFER) gst_tag_list_remove_tag(kept, name);
  }
  GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_tag(kept);
  gst_event_unref(event);
  return GST_PAD_PROBE_OK;
}

void on_pad_added(GstElement *, GstPad *pad, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  if (c->covers == Covers::kDrop)
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, drop_covers, nullptr, nullptr);
  try {
    add_stream(c, pad);
  } catch (const Failure &e) {
    post_failure(c->pipeline, e.what());
  }
}

void on_no_more_pads(GstElement *, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  if (c->filter)  // the error of decoders that are missing: Runner knows whether there are any
    post_failure(c->pipeline, "there is no decoder for its video", GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN);
}

// Raw streams, and streams that have no decoder.
constexpr char kFinal[] =
    "video/x-raw(ANY); audio/x-raw(ANY); text/x-raw(ANY); subpicture/x-dvd; subpicture/x-dvb; subpicture/x-pgs; "
    "subpicture/x-xsub; application/x-ssa; application/x-ass; closedcaption/x-cea-608; closedcaption/x-cea-708";

// Whether the muxer takes this sound as it is. Sound with incomplete caps goes to a parser first.
bool takes_sound(GstElement *muxer, const GstCaps *caps) {
  const GstStructure *const sound = gst_caps_get_structure(caps, 0);
  if (gst_structure_has_name(sound, "audio/x-flac") && !gst_structure_has_field(sound, "framed")) return false;
  for (GList *pads = gst_element_class_get_pad_template_list(GST_ELEMENT_GET_CLASS(muxer)); pads; pads = pads->next) {
    auto *pad = GST_PAD_TEMPLATE(pads->data);
    if (!g_str_has_prefix(GST_PAD_TEMPLATE_NAME_TEMPLATE(pad), "audio")) continue;
    const Owned<GstCaps> takes(gst_pad_template_get_caps(pad));
    if (gst_caps_is_subset(caps, takes.get())) return true;
  }
  return false;
}

// Whether a header of Vorbis or FLAC has a cover in it.
bool has_cover(const GValue *header) {
  GstBuffer *const buffer = GST_VALUE_HOLDS_BUFFER(header) ? gst_value_get_buffer(header) : nullptr;
  GstMapInfo map;
  if (!buffer || !gst_buffer_map(buffer, &map, GST_MAP_READ)) return false;
  std::string text(reinterpret_cast<const char *>(map.data), map.size);
  gst_buffer_unmap(buffer, &map);
  for (char &c : text) c = g_ascii_tolower(c);
  for (const char *sign : {"metadata_block_picture=", "coverart=", "image/"})
    if (text.find(sign) != std::string::npos) return true;
  return false;
}

bool has_cover(const GstCaps *caps) {
  const GValue *headers = gst_structure_get_value(gst_caps_get_structure(caps, 0), "streamheader");
  for (guint i = 0; headers && GST_VALUE_HOLDS_ARRAY(headers) && i < gst_value_array_get_size(headers); i++)
    if (has_cover(gst_value_array_get_value(headers, i))) return true;
  return false;
}

// Whether to decode a stream further. Sound is decoded if the muxer does not take it, or to lose its cover.
gboolean on_autoplug_continue(GstElement *, GstPad *, GstCaps *caps, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  return !takes_sound(c->muxer, caps) || (c->covers == Covers::kDrop && has_cover(caps));
}

}  // namespace

bool is_video_file(const std::string &name) {
  return container_of(name) != nullptr;
}

bool is_picture_file(const std::string &name) {
  return has_suffix(name, ".png") || has_suffix(name, ".jpg") || has_suffix(name, ".jpeg");
}

bool is_bare_file(const std::string &name) {
  std::error_code none;
  const std::filesystem::file_status file = std::filesystem::status(name, none);
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) return true;
  return has_suffix(name, ".rgb") || has_suffix(name, ".raw") || !std::filesystem::path(name).has_extension();
}

Owned<GstElement> make_converter(const std::string &input, const std::string &part, const std::string &output,
                                 Owned<GstElement> filter, Covers covers) {
  const Container *container = container_of(output);
  if (!container) throw Failure("a video is written as .webm, .mkv or .mp4, not as " + output);
  auto c = std::make_unique<Converter>();
  c->container = container;
  c->covers = covers;
  c->filter = std::move(filter);
  c->video.reset(find_format(container->video, GST_ELEMENT_FACTORY_TYPE_VIDEO_ENCODER));
  c->audio.reset(find_format(container->audio, GST_ELEMENT_FACTORY_TYPE_AUDIO_ENCODER));
  if (!c->video) throw Failure(std::string(container->suffix) + " needs an encoder: install " + container->packages);

  Owned<GstElement> pipeline(gst_pipeline_new(nullptr));
  gst_object_ref_sink(pipeline.get());
  c->pipeline = pipeline.get();
  c->source = make("uridecodebin");
  gst_bin_add(GST_BIN(c->pipeline), c->source);
  c->muxer = make(container->muxer);
  gst_object_set_name(GST_OBJECT(c->muxer), "muxer");
  gst_bin_add(GST_BIN(c->pipeline), c->muxer);
  GstElement *file = make("filesink");
  gst_bin_add(GST_BIN(c->pipeline), file);
  gst_element_link(c->muxer, file);
  const Owned<GstCaps> caps(gst_caps_from_string(kFinal));
  g_object_set(c->source, "uri", uri_of(input).c_str(), "caps", caps.get(), nullptr);
  g_object_set(file, "location", part.c_str(), nullptr);
  g_signal_connect(c->source, "autoplug-continue", G_CALLBACK(on_autoplug_continue), c.get());
  g_signal_connect(c->source, "no-more-pads", G_CALLBACK(on_no_more_pads), c.get());
  GstElement *const source = c->source;
  g_signal_connect_data(
      source, "pad-added", G_CALLBACK(on_pad_added), c.release(),
      [](gpointer data, GClosure *) { delete static_cast<Converter *>(data); }, GConnectFlags());
  return pipeline;
}

}  // namespace media
