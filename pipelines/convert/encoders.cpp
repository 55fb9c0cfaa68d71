// SPDX-License-Identifier: LGPL-2.1-or-later
#include "encoders.h"

#include <gst/pbutils/pbutils.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace media {

namespace {

// The settings of encoders, for good pictures and sound at any size.
const struct {
  const char *encoder;
  std::vector<std::pair<const char *, const char *>> settings;
  guint priming = 0;  // samples that come before the sound, without a word of it
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
    {"x265enc", {{"speed-preset", "superfast"}, {"qp", "20"}}},
    {"openh264enc", {{"rate-control", "off"}, {"qp-min", "20"}, {"qp-max", "24"}, {"gop-size", "50"}}},
    {"opusenc", {{"bitrate", "128000"}}},
    {"voaacenc", {{"bitrate", "160000"}}, 1600},
    {"avenc_aac", {{"bitrate", "160000"}}, 1024},
};

// Puts coded sound at its time. mp4mux cannot say that players have to skip the priming: its packets are dropped.
struct Priming {
  static constexpr guint kPacket = 1024;  // samples
  const guint samples;
  const guint silent = (kPacket - samples % kPacket) % kPacket;  // before the sound: only whole packets can be dropped
  GstClockTime begin = GST_CLOCK_TIME_NONE;                      // of the sound

  static GstClockTime length(GstPad *pad, guint samples) {
    const Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
    int rate = 0;
    if (caps) gst_structure_get_int(gst_caps_get_structure(caps.get(), 0), "rate", &rate);
    return rate > 0 ? gst_util_uint64_scale(samples, GST_SECOND, rate) : 0;
  }

  static void send_silence(GstPad *pad, GstClockTime time, gsize samples) {
    const Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
    const GstStructure *const sound = caps ? gst_caps_get_structure(caps.get(), 0) : nullptr;
    int channels = 0;
    if (!sound || !gst_structure_get_int(sound, "channels", &channels) ||
        g_strcmp0(gst_structure_get_string(sound, "format"), "S16LE"))
      return;
    const gsize bytes = 2 * channels * samples;  // of which each has two bytes
    GstBuffer *const silence = gst_buffer_new_allocate(nullptr, bytes, nullptr);
    gst_buffer_memset(silence, 0, 0, bytes);
    GST_BUFFER_PTS(silence) = time;
    GST_PAD_CHAINFUNC(pad)(pad, GST_OBJECT_PARENT(pad), silence);
  }

  static GstPadProbeReturn put_behind(GstPad *pad, GstPadProbeInfo *info, gpointer priming) {
    auto *self = static_cast<Priming *>(priming);
    GstBuffer *const raw = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_DATA(info) = raw;
    if (!GST_CLOCK_TIME_IS_VALID(self->begin)) {
      self->begin = GST_BUFFER_PTS(raw);
      if (self->silent) send_silence(pad, self->begin, self->silent);
    }
    if (GST_BUFFER_PTS_IS_VALID(raw)) GST_BUFFER_PTS(raw) += length(pad, self->silent);
    return GST_PAD_PROBE_OK;
  }

  static GstPadProbeReturn take_off(GstPad *pad, GstPadProbeInfo *info, gpointer priming) {
    const auto *self = static_cast<const Priming *>(priming);
    const GstClockTime all = length(pad, self->silent + self->samples);
    GstBuffer *const coded = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_DATA(info) = coded;
    if (GST_BUFFER_PTS(coded) + GST_MSECOND < self->begin + all) return GST_PAD_PROBE_DROP;
    GST_BUFFER_PTS(coded) -= all;
    GST_BUFFER_DTS(coded) = GST_BUFFER_PTS(coded);
    return GST_PAD_PROBE_OK;
  }

  // voaacenc keeps the last samples to itself: silence behind them drives them out.
  static GstPadProbeReturn drive_out(GstPad *pad, GstPadProbeInfo *info, gpointer priming) {
    if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS)
      send_silence(pad, GST_CLOCK_TIME_NONE, static_cast<const Priming *>(priming)->samples + kPacket - 1);
    return GST_PAD_PROBE_OK;
  }
};

// encodebin makes an encoder.
void set_up_encoder(GstBin *, GstBin *, GstElement *element, gpointer) {
  const GstElementFactory *factory = gst_element_get_factory(element);
  for (const auto &known : kEncoders) {
    if (!factory || strcmp(GST_OBJECT_NAME(factory), known.encoder)) continue;
    for (const auto &[name, value] : known.settings) gst_util_set_object_arg(G_OBJECT(element), name, value);
    if (!known.priming) continue;
    auto *const priming = new Priming{known.priming};
    const Owned<GstPad> sink(gst_element_get_static_pad(element, "sink"));
    gst_pad_add_probe(sink.get(), GST_PAD_PROBE_TYPE_BUFFER, Priming::put_behind, priming, nullptr);
    gst_pad_add_probe(sink.get(), GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, Priming::drive_out, priming, nullptr);
    gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(element, "src")).get(), GST_PAD_PROBE_TYPE_BUFFER,
                      Priming::take_off, priming, [](gpointer data) { delete static_cast<Priming *>(data); });
  }
}

const Container kContainers[] = {
    {".webm",
     "webmmux",
     false,
     {kVp8, kVp9},
     {"audio/x-opus", "audio/x-vorbis"},
     {kVp9, kAv1},
     "gstreamer1.0-plugins-good"},
    {".mkv",
     "matroskamux",
     true,
     {kH264, kVp8},
     {"audio/x-opus", "audio/x-vorbis"},
     {kH265, kH264, kVp9, kAv1},
     "gstreamer1.0-plugins-ugly, or gstreamer1.0-plugins-good"},
    {".mp4",
     "mp4mux",
     true,
     {kH264},
     {"audio/mpeg,mpegversion=4", "audio/x-opus"},
     {kH265, kH264, kVp9, kAv1},
     "gstreamer1.0-plugins-ugly or gstreamer1.0-plugins-bad"},
};

GstElement *make_encoder(GstEncodingProfile *profile) {
  GstElement *encoder = make("encodebin");
  g_signal_connect(encoder, "deep-element-added", G_CALLBACK(set_up_encoder), nullptr);
  g_object_set(encoder, "profile", profile, nullptr);
  gst_encoding_profile_unref(profile);
  return encoder;
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

// The formats of more than 8 bits that encoders take, without alpha.
constexpr char kDeep[] =
    "video/x-raw,format={I420_10LE,I422_10LE,Y444_10LE,P010_10LE,I420_12LE,I422_12LE,Y444_12LE,P012_LE,P016_LE}";

// The encoders to a format, and what each takes of more than 8 bits.
void add_deep(const char *format, std::vector<Coding> *codings) {
  const Owned<GstCaps> coded(gst_caps_from_string(format)), deep(gst_caps_from_string(kDeep));
  GList *all = gst_element_factory_list_get_elements(GST_ELEMENT_FACTORY_TYPE_VIDEO_ENCODER, GST_RANK_MARGINAL);
  GList *able = gst_element_factory_list_filter(all, coded.get(), GST_PAD_SRC, FALSE);
  able = g_list_sort(able, gst_plugin_feature_rank_compare_func);
  for (GList *each = able; each; each = each->next) {
    auto *const factory = GST_ELEMENT_FACTORY(each->data);
    const Owned<GstElement> encoder(gst_element_factory_create(factory, nullptr));  // its class has the templates
    if (!encoder) continue;
    gst_object_ref_sink(encoder.get());
    const Owned<GstPad> sink(gst_element_get_static_pad(encoder.get(), "sink"));
    const Owned<GstCaps> takes(sink ? gst_pad_get_pad_template_caps(sink.get()) : gst_caps_new_empty());
    GstCaps *frames = gst_caps_intersect_full(deep.get(), takes.get(), GST_CAPS_INTERSECT_FIRST);
    for (guint i = 0; i < gst_caps_get_size(frames); i++)  // the formats only
      for (const char *field : {"width", "height", "framerate"})
        gst_structure_remove_field(gst_caps_get_structure(frames, i), field);
    if (gst_caps_is_empty(frames))
      gst_caps_unref(frames);
    else
      codings->push_back(
          {Owned<GstCaps>(gst_caps_copy(coded.get())), Owned<GstCaps>(frames), GST_OBJECT_NAME(factory)});
  }
  for (GList *list : {all, able}) gst_plugin_feature_list_free(list);
}

}  // namespace

std::vector<Coding> codings_of(const Container &container, bool deep) {
  // libav has it everywhere. It works only on boards with libraries for OpenMAX.
  const Owned<GstElementFactory> omx(gst_element_factory_find("avenc_h264_omx"));
  if (omx) gst_plugin_feature_set_rank(GST_PLUGIN_FEATURE(omx.get()), GST_RANK_NONE);
  std::vector<Coding> codings;
  for (const char *format : deep ? container.deep : container.video) {
    if (deep)
      add_deep(format, &codings);
    else if (GstCaps *coded = find_format({format}, GST_ELEMENT_FACTORY_TYPE_VIDEO_ENCODER))
      codings.push_back({Owned<GstCaps>(coded),
                         Owned<GstCaps>(gst_caps_from_string("video/x-raw,format={I420,NV12}")),  // all players show it
                         ""});
  }
  return codings;
}

const Container *container_of(const std::string &name) {
  for (const Container &c : kContainers)
    if (has_suffix(name, c.suffix)) return &c;
  return nullptr;
}

bool is_format(const GstCaps *caps, const char *name) {
  return gst_structure_has_name(gst_caps_get_structure(caps, 0), name);
}

GstCaps *find_format(const std::vector<const char *> &formats, GstElementFactoryListType kind) {
  GList *encoders = gst_element_factory_list_get_elements(kind, GST_RANK_MARGINAL);
  GstCaps *found = nullptr;
  for (const char *format : formats) {
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

GstElement *make(const char *factory) {
  GstElement *element = gst_element_factory_make(factory, nullptr);
  if (!element) throw Failure(std::string("there is no element ") + factory);
  return element;
}

GstElement *make_video_encoder(const Coding &coding) {
  GstEncodingVideoProfile *profile =
      gst_encoding_video_profile_new(coding.format.get(), nullptr, coding.frames.get(), 0);
  if (!coding.encoder.empty())
    gst_encoding_profile_set_preset_name(GST_ENCODING_PROFILE(profile), coding.encoder.c_str());
  gst_encoding_video_profile_set_variableframerate(profile, TRUE);  // no frame is dropped or repeated
  return make_encoder(GST_ENCODING_PROFILE(profile));
}

bool keeps_captions(GstElement *encoder) {
  bool keeps = false;
  GstIterator *elements = gst_bin_iterate_recurse(GST_BIN(encoder));
  const auto look = [](const GValue *value, gpointer result) {
    auto *const element = GST_ELEMENT(g_value_get_object(value));
    GstElementFactory *const factory = gst_element_get_factory(element);
    *static_cast<bool *>(result) |= (factory && !g_strcmp0(GST_OBJECT_NAME(factory), "x264enc")) ||
                                    g_object_class_find_property(G_OBJECT_GET_CLASS(element), "cc-insert");
  };
  gst_iterator_foreach(elements, look, &keeps);
  gst_iterator_free(elements);
  return keeps;
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

const char *template_for(GstElement *muxer, const GstCaps *caps) {
  for (GList *pads = gst_element_class_get_pad_template_list(GST_ELEMENT_GET_CLASS(muxer)); pads; pads = pads->next) {
    auto *pad = GST_PAD_TEMPLATE(pads->data);
    if (GST_PAD_TEMPLATE_DIRECTION(pad) != GST_PAD_SINK) continue;
    const Owned<GstCaps> takes(gst_pad_template_get_caps(pad));
    if (gst_caps_can_intersect(takes.get(), caps)) return GST_PAD_TEMPLATE_NAME_TEMPLATE(pad);
  }
  return nullptr;
}

Owned<GstCaps> as_muxed(const GstCaps *caps) {
  Owned<GstCaps> muxed(gst_caps_copy(caps));
  GstStructure *const stream = gst_caps_get_structure(muxed.get(), 0);
  if (!g_strcmp0(gst_structure_get_string(stream, "stream-format"), "adts") &&
      gst_structure_has_field(stream, "framed"))
    gst_structure_set(stream, "stream-format", G_TYPE_STRING, "raw", nullptr);
  return muxed;
}

namespace {

// The headers of FLAC that muxers take: flacparse makes them. Those of qtdemux are others.
bool has_flac_headers(const GstStructure *sound) {
  const GValue *const headers = gst_structure_get_value(sound, "streamheader");
  if (!headers || !GST_VALUE_HOLDS_ARRAY(headers) || !gst_value_array_get_size(headers)) return false;
  GstBuffer *const first = gst_value_get_buffer(gst_value_array_get_value(headers, 0));
  return first && gst_buffer_memcmp(first, 0,
                                    "\x7f"
                                    "FLAC",
                                    5) == 0;
}

}  // namespace

bool takes_sound(GstElement *muxer, const GstCaps *coded) {
  const Owned<GstCaps> muxed = as_muxed(coded);
  const GstCaps *const caps = muxed.get();
  const GstStructure *const sound = gst_caps_get_structure(caps, 0);
  if (gst_structure_has_name(sound, "audio/x-flac") && !has_flac_headers(sound)) return false;
  for (GList *pads = gst_element_class_get_pad_template_list(GST_ELEMENT_GET_CLASS(muxer)); pads; pads = pads->next) {
    auto *pad = GST_PAD_TEMPLATE(pads->data);
    if (!g_str_has_prefix(GST_PAD_TEMPLATE_NAME_TEMPLATE(pad), "audio")) continue;
    const Owned<GstCaps> takes(gst_pad_template_get_caps(pad));
    if (gst_caps_is_subset(caps, takes.get())) return true;
  }
  return false;
}

}  // namespace media
