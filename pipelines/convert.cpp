// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One file into another: uridecodebin takes it apart, encodebin encodes what has to be, a muxer joins it.
#include <gst/pbutils/pbutils.h>
#include <gst/video/video.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "convert/branches.h"
#include "convert/mp4extras.h"
#include "convert/encoders.h"
#include "convert/labels.h"
#include "convert/shape.h"
#include "decoders.h"
#include "media.h"

namespace media {

namespace {

// A pipeline to which the streams of its source are added as they appear.
struct Converter {
  GstElement *pipeline, *muxer, *encoder;  // not owned; the encoder of the video
  const Container *container;
  Covers covers;
  Owned<GstElement> filter;  // until a video stream has come
  Coding video;
  Owned<GstCaps> audio;
  std::unique_ptr<Shape> shape;
  std::unique_ptr<Branches> branches;
  bool told_light = false, told_depth = false, told_captions = false;
  std::atomic<bool> told_timecodes{false}, told_chapters{false}, told_attachments{false}, told_cover{false};
};
constexpr char kConverter[] = "converter";  // where the pipeline keeps it

GstPadProbeReturn drop(GstPad *, GstPadProbeInfo *, gpointer) {
  return GST_PAD_PROBE_DROP;
}

void leave_out(GstPad *pad, const std::string &what) {
  std::fprintf(stderr, "warning: %s is left out\n", what.c_str());
  gst_pad_add_probe(pad, GstPadProbeType(GST_PAD_PROBE_TYPE_DATA_DOWNSTREAM), drop, nullptr, nullptr);
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
  if (!request) return leave_out(pad, std::string("text, which ") + c->container->suffix + " does not take,");
  GstElement *const text = make("capssetter"), *const queue = make("queue");
  g_object_set(text, "caps", caps.get(), "join", FALSE, nullptr);
  const Owned<GstPad> end(gst_element_get_static_pad(text, "src"));
  gst_pad_add_probe(end.get(), GST_PAD_PROBE_TYPE_BUFFER, make_plain, nullptr, nullptr);
  add_chain(c->pipeline, {text, queue});
  c->branches->add(Kind::kText, "text", pad, text, queue, queue, request);
}

// VP8 and VP9 have no fields: players show both at once. No encoder here keeps alpha.
void warn_of_losses(const GstCaps *format, const GstCaps *video) {
  // A stream that ends before its first frame has no fixed caps.
  if (has_alpha(video)) std::fprintf(stderr, "warning: the video has alpha, which is left out\n");
  if (!is_interlaced(video) || is_format(format, kH264)) return;
  const Owned<gchar> name(gst_pb_utils_get_codec_description(format));
  std::fprintf(stderr, "warning: the video is interlaced, which %s does not keep\n", name.get());
}

// Timecodes are a stream of some MP4 and QuickTime files, or come with frames. No muxer here writes them.
void warn_of_timecodes(Converter *c) {
  if (!c->told_timecodes.exchange(true))
    std::fprintf(stderr, "warning: timecodes, which GStreamer does not write to %s, are left out\n",
                 c->container->suffix);
}

// Prints which metas of a frame are lost.
GstPadProbeReturn tell_lost_metas(GstPad *, GstPadProbeInfo *info, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  GstBuffer *const frame = GST_PAD_PROBE_INFO_BUFFER(info);
  if (gst_buffer_get_video_time_code_meta(frame)) warn_of_timecodes(c);
  if (c->told_captions || !gst_buffer_get_video_caption_meta(frame) || keeps_captions(c->encoder))
    return GST_PAD_PROBE_OK;
  c->told_captions = true;
  const Owned<gchar> name(gst_pb_utils_get_codec_description(c->video.format.get()));
  std::fprintf(stderr, "warning: closed captions, which the encoder to %s does not keep, are left out\n", name.get());
  return GST_PAD_PROBE_OK;
}

// Muxers leave out frames without a timestamp, and not all say so.
GstPadProbeReturn check_time(GstPad *, GstPadProbeInfo *info, gpointer converter) {
  if (GST_BUFFER_PTS_IS_VALID(GST_PAD_PROBE_INFO_BUFFER(info))) return GST_PAD_PROBE_OK;
  post_failure(static_cast<Converter *>(converter)->pipeline, "its frames have no timestamps, which video files need");
  return GST_PAD_PROBE_DROP;
}

// The sizes that a coding takes; nullptr where it takes all. Video of an odd size is not written as H.264 or H.265,
// which halve the chroma planes of both directions. Each field of interlaced video has its own chroma rows.
const char *sizes_of(const Coding &coding, bool fields) {
  if (is_format(coding.format.get(), kH265)) return "video/x-raw(ANY),width=[16,2147483646,2],height=[16,2147483646,2]";
  if (!is_format(coding.format.get(), kH264)) return nullptr;
  return fields ? "video/x-raw(ANY),width=[2,2147483646,2],height=[4,2147483644,4]"
                : "video/x-raw(ANY),width=[2,2147483646,2],height=[2,2147483646,2]";
}

// Whether the filter, which `size` ends, may give frames to a coding. A scaler in it obeys.
bool fits(const Coding &coding, GstElement *head, GstElement *size, const GstCaps *caps) {
  const char *sizes = sizes_of(coding, is_interlaced(caps));
  const Owned<GstCaps> taken(sizes ? gst_caps_from_string(sizes) : gst_caps_new_any());
  g_object_set(size, "caps", taken.get(), nullptr);
  const Owned<GstPad> sink(gst_element_get_static_pad(head, "sink"));
  const Owned<GstCaps> possible(gst_pad_query_caps(sink.get(), nullptr));
  return gst_caps_can_intersect(possible.get(), caps);
}

// Whether frames of more than 8 bits come out of the filter.
bool gives_deep(GstElement *size) {
  const Owned<GstPad> src(gst_element_get_static_pad(size, "src"));
  const Owned<GstCaps> possible(gst_pad_query_caps(src.get(), nullptr));
  const Owned<GstCaps> deep(gst_caps_from_string("video/x-raw(ANY),format={I420_10LE,I420_12LE}"));
  return gst_caps_can_intersect(possible.get(), deep.get());
}

// The codings for a video: of more than 8 bits where the video has them, the filter gives them, and an encoder takes
// them. H.265 has no fields here.
std::vector<Coding> choices(Converter *c, GstElement *size, const GstCaps *caps) {
  const int depth = depth_of(caps);
  if (depth <= 8) return codings_of(*c->container, false);
  if (!gives_deep(size)) {
    std::fprintf(stderr, "warning: of the video's %d bits 8 are kept: the filter or the detector takes no more\n",
                 depth);
    return codings_of(*c->container, false);
  }
  std::vector<Coding> codings = codings_of(*c->container, true);
  if (is_interlaced(caps))
    std::stable_partition(codings.begin(), codings.end(),
                          [](const Coding &coding) { return is_format(coding.format.get(), kH264); });
  if (!codings.empty()) return codings;
  std::fprintf(stderr, "warning: of the video's %d bits 8 are kept: no installed encoder for %s takes more\n", depth,
               c->container->suffix);
  return codings_of(*c->container, false);
}

// `head` begins the filter, and `size` ends it. A later stream may have any size: it is scaled to the first.
void choose_format(Converter *c, GstElement *head, GstElement *size, const GstCaps *caps) {
  std::vector<Coding> codings = choices(c, size, caps);
  const auto chosen = std::find_if(codings.begin(), codings.end(),
                                   [&](const Coding &coding) { return fits(coding, head, size, caps); });
  const bool first = chosen == codings.begin();
  const bool h265 = is_format(codings.front().format.get(), kH265);
  const std::string takes = is_interlaced(caps)
                                ? "H.264 takes interlaced video only of even widths, and of heights divisible by 4"
                            : h265 ? "H.265 takes only even sizes, from 16 on"
                                   : "H.264 takes only even sizes";
  if (chosen == codings.end()) throw Failure(takes + ": write .webm or .mkv instead");
  c->video = std::move(*chosen);
  if (first) return;
  const Owned<gchar> name(gst_pb_utils_get_codec_description(c->video.format.get()));
  std::fprintf(stderr, "warning: %s: the video is written as %s\n", takes.c_str(), name.get());
}

// After the first frame has its size, all others are scaled to it.
GstPadProbeReturn take_any_size(GstPad *pad, GstPadProbeInfo *, gpointer) {
  g_object_set(GST_OBJECT_PARENT(pad), "caps", nullptr, nullptr);
  return GST_PAD_PROBE_REMOVE;
}

// A picture has no duration, and an encoder may name less than a millisecond: as the only frame of an .mp4 it would not
// be shown.
GstPadProbeReturn last_a_moment(GstPad *, GstPadProbeInfo *info, gpointer) {
  GstBuffer *const coded = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  if (!GST_BUFFER_DURATION_IS_VALID(coded) || GST_BUFFER_DURATION(coded) < GST_MSECOND)
    GST_BUFFER_DURATION(coded) = GST_SECOND / 25;
  GST_PAD_PROBE_INFO_DATA(info) = coded;
  return GST_PAD_PROBE_REMOVE;
}

// Between the encoder and the muxer.
GstPadProbeReturn label(GstPad *, GstPadProbeInfo *info, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS || !c->shape->written()) return GST_PAD_PROBE_OK;
  GstCaps *caps;
  gst_event_parse_caps(event, &caps);
  const bool dark = loses_light(c->shape->written(), *c->container, c->video);
  if (dark && !c->told_light)
    std::fprintf(stderr,
                 "warning: the mastering display and the light level of HDR are left out: %s keeps them only as "
                 "H.265\n",
                 c->container->suffix);
  c->told_light |= dark;
  const int depth = depth_of(c->shape->first()), kept = depth_of(c->shape->written());
  if (c->video.deep() && kept < depth && !c->told_depth)
    std::fprintf(stderr, "warning: of the video's %d bits %d are kept: the encoder takes no more\n", depth, kept);
  c->told_depth = true;
  const Owned<GstCaps> all(labelled(caps, c->shape->written(), *c->container));
  GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_caps(all.get());
  gst_event_unref(event);
  return GST_PAD_PROBE_OK;
}

void add_video(Converter *c, GstPad *pad, const GstCaps *caps) {
  if (!c->filter) return leave_out(pad, "a second video");
  GstElement *const head = make("queue"), *const size = make("capsfilter"), *const entry = make("queue");
  const Owned<GstPad> sized(gst_element_get_static_pad(size, "src"));
  for (const auto probe : {check_time, tell_lost_metas, take_any_size})
    gst_pad_add_probe(sized.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, c, nullptr);
  add_chain(c->pipeline, {head, c->filter.get(), size});
  c->filter.reset();  // now the pipeline's
  choose_format(c, head, size, caps);
  GstCaps *const format = c->video.format.get();
  warn_of_losses(format, caps);
  c->shape = std::make_unique<Shape>(c->video);
  g_object_set(entry, "max-size-buffers", 3, nullptr);  // what waits there is encoded before an interrupted file ends
  GstElement *const encoder = c->encoder = make_video_encoder(c->video);
  const Owned<GstPad> coded(gst_element_get_static_pad(encoder, "src"));
  gst_pad_add_probe(coded.get(), GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, label, c, nullptr);
  gst_pad_add_probe(coded.get(), GST_PAD_PROBE_TYPE_BUFFER, last_a_moment, nullptr, nullptr);
  std::vector<GstElement *> chain = c->shape->elements();
  chain.insert(chain.end(), {entry, encoder});
  add_chain(c->pipeline, chain);
  if (!gst_element_link(size, chain.front())) throw Failure("a stream cannot be linked");
  c->branches->add(Kind::kVideo, "the video", pad, head, entry, encoder, template_for(c->muxer, format));
}

// The encoder gets the rate and the channels of the first stream, also from later ones.
void add_sound(Converter *c, GstPad *pad, const GstCaps *caps) {
  if (!c->audio) return leave_out(pad, "the sound, for want of an encoder,");
  Owned<GstCaps> kept(gst_caps_new_empty_simple("audio/x-raw"));
  for (const char *field : {"rate", "channels", "channel-mask"})
    if (const GValue *value = gst_structure_get_value(gst_caps_get_structure(caps, 0), field))
      gst_caps_set_value(kept.get(), field, value);
  GstElement *const head = make("queue"), *const pins = make("capsfilter");
  g_object_set(pins, "caps", kept.get(), nullptr);
  GstElement *const encoder = make_audio_encoder(c->audio.get(), caps);
  add_chain(c->pipeline, {head, make("audioconvert"), make("audioresample"), pins, encoder});
  c->branches->add(Kind::kSound, "the sound", pad, head, head, encoder, template_for(c->muxer, c->audio.get()));
}

// A stream that is written as it comes, but for what frames its parts.
void add_coded(Converter *c, GstPad *pad, const std::string &what, const GstCaps *caps, const char *request) {
  std::vector<GstElement *> chain = {make("queue")};
  if (!gst_caps_is_equal(caps, as_muxed(caps).get())) chain.push_back(make("aacparse"));
  add_chain(c->pipeline, chain);
  c->branches->add(Kind::kCoded, what, pad, chain.front(), chain.front(), chain.back(), request);
}

void add_stream(Converter *c, GstPad *pad) {
  Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  if (!caps) caps.reset(gst_pad_query_caps(pad, nullptr));
  caps = mended(caps.get());
  const std::string name = gst_structure_get_name(gst_caps_get_structure(caps.get(), 0));
  const Owned<gchar> description(gst_caps_is_fixed(caps.get()) ? gst_pb_utils_get_codec_description(caps.get())
                                                               : nullptr);
  const std::string what = description ? description.get() : name;
  const Kind kind = g_str_has_prefix(name.c_str(), "video/") ? Kind::kVideo
                    : name == "audio/x-raw"                  ? Kind::kSound
                    : name == "text/x-raw"                   ? Kind::kText
                                                             : Kind::kCoded;
  if (c->branches->join(kind, pad)) return;
  if (c->branches->closed())
    return leave_out(pad, (kind == Kind::kSound ? "sound" : what) + ", which begins after the other streams,");
  if (kind == Kind::kVideo) return add_video(c, pad, caps.get());
  if (kind == Kind::kSound) return add_sound(c, pad, caps.get());
  if (kind == Kind::kText) return add_text(c, pad);
  const bool fits = c->container->text || g_str_has_prefix(name.c_str(), "audio/");
  const char *request = fits ? template_for(c->muxer, as_muxed(caps.get()).get()) : nullptr;
  if (!request) return leave_out(pad, what + ", which " + c->container->suffix + " does not take,");
  add_coded(c, pad, what, caps.get(), request);
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

// Chapters come as an event, attachments and covers as tags.
GstPadProbeReturn tell_extras(GstPad *, GstPadProbeInfo *info, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) == GST_EVENT_TOC && !GST_IS_TOC_SETTER(c->muxer) && !c->told_chapters.exchange(true))
    std::fprintf(stderr, "warning: chapters, which %s does not take, are left out\n", c->container->suffix);
  GstTagList *tags = nullptr;
  if (GST_EVENT_TYPE(event) == GST_EVENT_TAG) gst_event_parse_tag(event, &tags);
  if (tags && gst_tag_list_get_tag_size(tags, GST_TAG_ATTACHMENT) && !c->told_attachments.exchange(true))
    std::fprintf(stderr, "warning: attachments, which GStreamer does not write, are left out\n");
  const bool drops = c->covers == Covers::kDrop, takes = !std::strcmp(c->container->muxer, "mp4mux");
  if (tags && gst_tag_list_get_tag_size(tags, GST_TAG_IMAGE) && (drops || !takes) && !c->told_cover.exchange(true)) {
    const std::string why = drops ? "may show faces" : std::string(c->container->suffix) + " does not take";
    std::fprintf(stderr, "warning: a cover, which %s, is left out\n", why.c_str());
  }
  return GST_PAD_PROBE_OK;
}

void on_pad_added(GstElement *, GstPad *pad, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, tell_extras, c, nullptr);
  if (c->covers == Covers::kDrop)
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, drop_covers, nullptr, nullptr);
  try {
    add_stream(c, pad);
  } catch (const Failure &e) {
    post_failure(c->pipeline, e.what());
  }
}

void on_pad_removed(GstElement *, GstPad *pad, gpointer converter) {
  static_cast<Converter *>(converter)->branches->leave(pad);
}

void on_element(GstBin *, GstBin *, GstElement *element, gpointer converter) {
  if (!is_made_by(element, "qtdemux")) return;
  const auto tell = [c = static_cast<Converter *>(converter)](const Box &movie) {
    if (has_chapters(movie) && !c->told_chapters.exchange(true))
      std::fprintf(stderr, "warning: chapters of .mp4, which GStreamer does not read, are left out\n");
    if (has_timecodes(movie)) warn_of_timecodes(c);
  };
  watch_movie(Owned<GstPad>(gst_element_get_static_pad(element, "sink")).get(), tell);
}

void on_complete(gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  if (c->filter)  // the error of decoders that are missing: Runner knows whether there are any
    post_failure(c->pipeline, "there is no decoder for its video", GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN);
  c->branches->complete();
}

void on_drained(GstElement *, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  if (!c->filter) c->branches->complete();
}

// Raw streams, and streams that have no decoder.
constexpr char kFinal[] =
    "video/x-raw(ANY); audio/x-raw(ANY); text/x-raw(ANY); subpicture/x-dvd; subpicture/x-dvb; subpicture/x-pgs; "
    "subpicture/x-xsub; application/x-ssa; application/x-ass; closedcaption/x-cea-608; closedcaption/x-cea-708";

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

// Whether to decode a stream further. Sound is decoded if the muxer does not take it, to lose its cover, or to go on
// with sound that is encoded.
gboolean on_autoplug_continue(GstElement *, GstPad *, GstCaps *caps, gpointer converter) {
  auto *c = static_cast<Converter *>(converter);
  if (!takes_sound(c->muxer, caps) || (c->covers == Covers::kDrop && has_cover(caps))) return TRUE;
  return c->branches->closed() && !c->branches->goes_on_with(caps);
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
  c->audio.reset(find_format(container->audio, GST_ELEMENT_FACTORY_TYPE_AUDIO_ENCODER));
  if (codings_of(*container, false).empty())
    throw Failure(std::string(container->suffix) + " needs an encoder: install " + container->packages);

  if (const int programs = transport_programs(path_of(input)); programs > 1)
    std::fprintf(stderr, "warning: the input has %d programs: all but one are left out\n", programs);

  Owned<GstElement> pipeline(gst_pipeline_new(nullptr));
  gst_object_ref_sink(pipeline.get());
  c->pipeline = pipeline.get();
  GstElement *const source = make("uridecodebin"), *const file = make("filesink");
  c->muxer = make(container->muxer);
  mend_opus(c->muxer);
  mend_durations_of(c->muxer);
  gst_bin_add_many(GST_BIN(c->pipeline), source, c->muxer, file, nullptr);
  gst_element_link(c->muxer, file);
  c->branches = std::make_unique<Branches>(c->pipeline, c->muxer, file);
  const Owned<GstCaps> caps(gst_caps_from_string(kFinal));
  g_object_set(source, "uri", uri_of(input).c_str(), "caps", caps.get(), nullptr);
  g_object_set(file, "location", part.c_str(), nullptr);
  g_signal_connect(source, "deep-element-added", G_CALLBACK(on_element), c.get());
  g_signal_connect(source, "autoplug-continue", G_CALLBACK(on_autoplug_continue), c.get());
  g_signal_connect(source, "pad-added", G_CALLBACK(on_pad_added), c.get());
  g_signal_connect(source, "pad-removed", G_CALLBACK(on_pad_removed), c.get());
  watch_streams(source, on_complete, c.get());
  g_signal_connect(source, "drained", G_CALLBACK(on_drained), c.get());
  g_object_set_data_full(G_OBJECT(pipeline.get()), kConverter, c.release(),
                         [](gpointer data) { delete static_cast<Converter *>(data); });
  return pipeline;
}

bool finish_conversion(GstElement *pipeline) {
  auto *c = static_cast<Converter *>(g_object_get_data(G_OBJECT(pipeline), kConverter));
  if (c) c->branches->finish();
  return c;
}

}  // namespace media
