// SPDX-License-Identifier: LGPL-2.1-or-later
#include "encoders.h"

#include <gst/pbutils/pbutils.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "../media.h"

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

}  // namespace

const Container *container_of(const std::string &name) {
  for (const Container &c : kContainers)
    if (has_suffix(name, c.suffix)) return &c;
  return nullptr;
}

bool is_format(const GstCaps *caps, const char *name) {
  return gst_structure_has_name(gst_caps_get_structure(caps, 0), name);
}

GstCaps *find_format(const std::vector<const char *> &formats, GstElementFactoryListType kind, const char *unfit) {
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

GstElement *make(const char *factory) {
  GstElement *element = gst_element_factory_make(factory, nullptr);
  if (!element) throw Failure(std::string("there is no element ") + factory);
  return element;
}

GstElement *make_video_encoder(GstCaps *format) {
  const Owned<GstCaps> plays(gst_caps_from_string("video/x-raw,format={I420,NV12}"));  // what all players show
  GstEncodingVideoProfile *profile = gst_encoding_video_profile_new(format, nullptr, plays.get(), 0);
  gst_encoding_video_profile_set_variableframerate(profile, TRUE);  // no frame is dropped or repeated
  return make_encoder(GST_ENCODING_PROFILE(profile));
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

}  // namespace media
