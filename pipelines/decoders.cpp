// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decoders.h"

#include <gst/video/video.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "boxes.h"
#include "media.h"

namespace media {

namespace {

// The extension of a GIF that tells how often it plays: once, in little endian.
const std::string kLoop("\x21\xff\x0bNETSCAPE2.0\x03\x01", 16), kOnce("\x01\x00\x00", 3);

// gifdec gives no frame of a file without the extension.
std::string to_play_once(std::string gif) {
  constexpr size_t kFlags = 10, kHeader = 13;  // bytes
  if (gif.size() < kHeader || gif.compare(0, 3, "GIF") != 0) return gif;
  const auto flags = static_cast<unsigned char>(gif[kFlags]);
  const size_t colors = flags & 0x80 ? 3 << ((flags & 7) + 1) : 0;  // bytes
  const size_t loop = gif.find(kLoop);
  if (loop != std::string::npos)
    gif.replace(loop + kLoop.size(), kOnce.size() - 1, kOnce, 0, kOnce.size() - 1);
  else if (kHeader + colors <= gif.size())
    gif.insert(kHeader + colors, kLoop + kOnce);
  return gif;
}

// The file is decoded at its end; until then it is collected here.
GstPadProbeReturn collect(GstPad *pad, GstPadProbeInfo *info, gpointer file) {
  auto *gif = static_cast<std::string *>(file);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    GstBuffer *const part = GST_PAD_PROBE_INFO_BUFFER(info);
    GstMapInfo map;
    if (!gst_buffer_map(part, &map, GST_MAP_READ)) return GST_PAD_PROBE_OK;
    gif->append(reinterpret_cast<const char *>(map.data), map.size);
    gst_buffer_unmap(part, &map);
    return GST_PAD_PROBE_DROP;
  }
  if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) != GST_EVENT_EOS || gif->empty()) return GST_PAD_PROBE_OK;
  const std::string whole = to_play_once(std::move(*gif));
  gif->clear();
  // Not through the probe again.
  GST_PAD_CHAINFUNC(pad)(pad, GST_OBJECT_PARENT(pad), gst_buffer_new_memdup(whole.data(), whole.size()));
  return GST_PAD_PROBE_OK;
}

// avdemux_gif of GStreamer 1.22 reads on and on at the end of the file. Some reads there are usual.
constexpr int kReadsAtEnd = 100;

GstPadProbeReturn end_after_end(GstPad *pad, GstPadProbeInfo *info, gpointer reads) {
  gint64 size;
  if (!gst_pad_peer_query_duration(pad, GST_FORMAT_BYTES, &size) || info->offset < static_cast<guint64>(size))
    return GST_PAD_PROBE_PASS;
  int &count = *static_cast<int *>(reads);
  if (count++ > kReadsAtEnd) g_usleep(G_USEC_PER_SEC / 100);
  if (count != kReadsAtEnd) return GST_PAD_PROBE_PASS;
  const auto end = [](GstElement *, GstPad *out, gpointer) -> gboolean {
    gst_pad_push_event(out, gst_event_new_eos());
    return TRUE;
  };
  gst_element_foreach_src_pad(GST_ELEMENT(GST_OBJECT_PARENT(pad)), end, nullptr);
  return GST_PAD_PROBE_PASS;
}

// avdec_gif gives all frames the time of the first: the decoder of FFmpeg 5.1 hands out one frame again and again. It
// gives a frame for each buffer.
struct Times {
  GstClockTime begin = GST_CLOCK_TIME_NONE, duration = GST_CLOCK_TIME_NONE;

  static GstPadProbeReturn note(GstPad *, GstPadProbeInfo *info, gpointer times) {
    const GstBuffer *const coded = GST_PAD_PROBE_INFO_BUFFER(info);
    *static_cast<Times *>(times) = {GST_BUFFER_PTS(coded), GST_BUFFER_DURATION(coded)};
    return GST_PAD_PROBE_OK;
  }

  static GstPadProbeReturn set(GstPad *, GstPadProbeInfo *info, gpointer times) {
    GstBuffer *const frame = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    const auto *of = static_cast<const Times *>(times);
    GST_BUFFER_PTS(frame) = of->begin;
    GST_BUFFER_DURATION(frame) = of->duration;
    GST_PAD_PROBE_INFO_DATA(info) = frame;
    return GST_PAD_PROBE_OK;
  }
};

// qtdemux before GStreamer 1.26 says limited range of full range too, which cameras and phones write. The parsers of
// H.264 and H.265 find the range in the stream, but believe the demuxer: its colours are hidden from them, and come
// back where the stream names none.
struct Colorimetry {
  GstVideoColorimetry said = {};

  static GstStructure *of(GstEvent *event) {
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    return gst_caps_get_structure(caps, 0);
  }
  static bool read(GstEvent *event, GstVideoColorimetry *colors) {
    const gchar *const text = gst_structure_get_string(of(event), "colorimetry");
    return text && gst_video_colorimetry_from_string(colors, text);
  }
  // Nothing: without the field.
  static void write(GstPadProbeInfo *info, const GstVideoColorimetry *colors) {
    GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
    GstStructure *const fields = gst_structure_copy(of(event));
    const Owned<gchar> text(colors ? gst_video_colorimetry_to_string(colors) : nullptr);
    if (text)
      gst_structure_set(fields, "colorimetry", G_TYPE_STRING, text.get(), nullptr);
    else
      gst_structure_remove_field(fields, "colorimetry");
    const Owned<GstCaps> caps(gst_caps_new_full(fields, nullptr));
    GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_caps(caps.get());
    gst_event_unref(event);
  }
  static GstPadProbeReturn hide(GstPad *, GstPadProbeInfo *info, gpointer colors) {
    auto *self = static_cast<Colorimetry *>(colors);
    if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
    self->said = {};
    const bool known = read(GST_PAD_PROBE_INFO_EVENT(info), &self->said);
    if (known && self->said.range == GST_VIDEO_COLOR_RANGE_16_235) write(info, nullptr);
    return GST_PAD_PROBE_OK;
  }
  static GstPadProbeReturn show(GstPad *, GstPadProbeInfo *info, gpointer colors) {
    GstVideoColorimetry found = {}, both = static_cast<const Colorimetry *>(colors)->said;
    GstEvent *const event = GST_PAD_PROBE_INFO_EVENT(info);
    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS || !both.range) return GST_PAD_PROBE_OK;
    read(event, &found);
    if (found.matrix != GST_VIDEO_COLOR_MATRIX_UNKNOWN) return GST_PAD_PROBE_OK;
    if (found.range) both.range = found.range;
    write(info, &both);
    return GST_PAD_PROBE_OK;
  }
};

// avidemux says that a key frame is shown when it is decoded. Without this time decoders put all frames in order.
void forget_display_time(GstElement *, GstPad *pad, gpointer) {
  const Owned<GstCaps> caps(gst_pad_get_current_caps(pad));
  if (!caps || !gst_structure_has_name(gst_caps_get_structure(caps.get(), 0), "video/mpeg")) return;
  const auto forget = +[](GstPad *, GstPadProbeInfo *info, gpointer) {
    GstBuffer *const coded = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_BUFFER_PTS(coded) = GST_CLOCK_TIME_NONE;
    GST_PAD_PROBE_INFO_DATA(info) = coded;
    return GST_PAD_PROBE_OK;
  };
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, forget, nullptr, nullptr);
}

// Where the edit list of a track enters its media at the latest, in units of the media.
guint64 latest_entry(const Box &track) {
  guint64 latest = 0;
  for (const Edit &edit : edits_of(track))
    latest = std::max(latest, static_cast<guint64>(std::max<gint64>(edit.entry, 0)));  // -1: nothing is shown
  return latest;
}

constexpr char kAdded[] = "cudaconv-added";  // the key under which a qtdemux has the nanoseconds added to its duration

// qtdemux ends each stream after the duration of the whole, but counts from the beginning of the media, also where an
// edit list leaves that out: a clip that was cut without encoding loses its end, or all. It also leaves out streams
// that are shorter than a fifth of the whole, as previews are: of several videos one may be. It is told longer
// durations.
void lengthen(GstElement *demuxer, const Box &movie) {
  const Length whole(movie.inside("mvhd"));
  const guint64 length = whole.scale ? whole.get() : 0;
  guint64 most = length;
  const auto each_track = [&](const auto &act) {
    for (const Box &track : movie.inside("trak"))
      for (const Box &media : track.inside("mdia"))
        if (const Length own(media.inside("mdhd")); own.scale && length) act(track, media, own);
  };
  const auto is_video = [](const Box &media) {
    const std::vector<Box> handlers = media.inside("hdlr");
    return !handlers.empty() && handlers[0].has(8, "vide");
  };
  int videos = 0;
  each_track([&](const Box &track, const Box &media, const Length &own) {
    most = std::max(most, length + gst_util_uint64_scale_ceil(latest_entry(track), whole.scale, own.scale));
    videos += is_video(media);
  });
  each_track([&](const Box &, const Box &media, const Length &own) {
    if (videos == 1 || !is_video(media))
      own.set(std::max(own.get(), gst_util_uint64_scale_ceil(most, own.scale, 5 * guint64{whole.scale})));
  });
  if (most == length) return;
  whole.set(most);
  g_object_set_data(G_OBJECT(demuxer), kAdded,
                    GSIZE_TO_POINTER(gst_util_uint64_scale(most - length, GST_SECOND, whole.scale)));
}

// Answers with the duration that the file has.
GstPadProbeReturn shorten(GstPad *pad, GstPadProbeInfo *info, gpointer) {
  GstQuery *const query = GST_PAD_PROBE_INFO_QUERY(info);
  GstFormat format;
  gint64 duration;
  if (GST_QUERY_TYPE(query) != GST_QUERY_DURATION) return GST_PAD_PROBE_OK;
  gst_query_parse_duration(query, &format, &duration);
  const auto added = GPOINTER_TO_SIZE(g_object_get_data(G_OBJECT(GST_OBJECT_PARENT(pad)), kAdded));
  if (format == GST_FORMAT_TIME && duration > static_cast<gint64>(added))
    gst_query_set_duration(query, format, duration - static_cast<gint64>(added));
  return GST_PAD_PROBE_OK;
}

// An element that a bin has tried and taken away again is not missed, nor one that stops.
gboolean post_again(gpointer error) {
  auto *const message = static_cast<GstMessage *>(error);
  const Owned<GstObject> bin(gst_object_get_parent(GST_MESSAGE_SRC(message)));
  if (bin && GST_STATE_TARGET(bin.get()) > GST_STATE_READY)
    gst_element_post_message(GST_ELEMENT(bin.get()), gst_message_ref(message));
  return G_SOURCE_REMOVE;
}

// What the bin itself does with messages of its elements, but for errors.
GstBusSyncReply note_errors(GstBus *, GstMessage *message, gpointer bin) {
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR && GST_OBJECT_PARENT(GST_MESSAGE_SRC(message)) == bin)
    g_timeout_add_full(G_PRIORITY_DEFAULT, 500, post_again, gst_message_ref(message),
                       [](gpointer noted) { gst_message_unref(static_cast<GstMessage *>(noted)); });
  GST_BIN_GET_CLASS(bin)->handle_message(GST_BIN(bin), message);
  return GST_BUS_DROP;
}

}  // namespace

bool is_made_by(gpointer element, const char *name) {
  GstElementFactory *const factory = gst_element_get_factory(GST_ELEMENT(element));
  return factory && !g_strcmp0(GST_OBJECT_NAME(factory), name);
}

void avoid_gifdec() {
  const Owned<GstElementFactory> gifdec(gst_element_factory_find("gifdec")),
      other(gst_element_factory_find("avdec_gif"));
  if (gifdec && other && gst_plugin_feature_get_rank(GST_PLUGIN_FEATURE(other.get())) >= GST_RANK_MARGINAL)
    gst_plugin_feature_set_rank(GST_PLUGIN_FEATURE(gifdec.get()), GST_RANK_NONE);
}

void mend_gif(GstElement *element) {
  if (is_made_by(element, "avdec_gif")) {
    auto *const times = new Times;
    gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(element, "sink")).get(), GST_PAD_PROBE_TYPE_BUFFER,
                      Times::note, times, nullptr);
    gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(element, "src")).get(), GST_PAD_PROBE_TYPE_BUFFER,
                      Times::set, times, [](gpointer data) { delete static_cast<Times *>(data); });
    return;
  }
  const bool decoder = is_made_by(element, "gifdec");
  if (!decoder && !is_made_by(element, "avdemux_gif")) return;
  const Owned<GstPad> sink(gst_element_get_static_pad(element, "sink"));
  if (decoder)
    gst_pad_add_probe(sink.get(), GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                      collect, new std::string, [](gpointer file) { delete static_cast<std::string *>(file); });
  else
    gst_pad_add_probe(sink.get(),
                      GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_PULL | GST_PAD_PROBE_TYPE_BLOCK),
                      end_after_end, new int(0), [](gpointer reads) { delete static_cast<int *>(reads); });
}

void mend_avi(GstElement *element) {
  if (is_made_by(element, "avidemux")) g_signal_connect(element, "pad-added", G_CALLBACK(forget_display_time), nullptr);
}

void mend_durations(GstElement *element) {
  if (!is_made_by(element, "qtdemux")) return;
  watch_movie(Owned<GstPad>(gst_element_get_static_pad(element, "sink")).get(),
              [element](const Box &movie) { lengthen(element, movie); });
  const auto answer = +[](GstElement *, GstPad *pad, gpointer) {
    gst_pad_add_probe(pad, GstPadProbeType(GST_PAD_PROBE_TYPE_QUERY_UPSTREAM | GST_PAD_PROBE_TYPE_PULL), shorten,
                      nullptr, nullptr);
  };
  g_signal_connect(element, "pad-added", G_CALLBACK(answer), nullptr);
}

void mend_range(GstElement *element) {
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  const bool mended = major > 1 || minor >= 26;
  if (mended || !(is_made_by(element, "h264parse") || is_made_by(element, "h265parse"))) return;
  auto *const colors = new Colorimetry;
  gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(element, "sink")).get(),
                    GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, Colorimetry::hide, colors, nullptr);
  gst_pad_add_probe(Owned<GstPad>(gst_element_get_static_pad(element, "src")).get(),
                    GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, Colorimetry::show, colors,
                    [](gpointer data) { delete static_cast<Colorimetry *>(data); });
}

void keep_errors(GstBin *bin, GstElement *element) {
  if (!is_made_by(bin, "decodebin") && !is_made_by(bin, "parsebin")) return;
  const Owned<GstBus> bus(gst_element_get_bus(element));
  if (bus) gst_bus_set_sync_handler(bus.get(), note_errors, bin, nullptr);
}

}  // namespace media
