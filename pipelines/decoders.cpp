// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decoders.h"

#include <string>

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

}  // namespace

void avoid_gifdec() {
  const Owned<GstElementFactory> gifdec(gst_element_factory_find("gifdec")),
      other(gst_element_factory_find("avdec_gif"));
  if (gifdec && other && gst_plugin_feature_get_rank(GST_PLUGIN_FEATURE(other.get())) >= GST_RANK_MARGINAL)
    gst_plugin_feature_set_rank(GST_PLUGIN_FEATURE(gifdec.get()), GST_RANK_NONE);
}

void play_once(GstElement *element) {
  GstElementFactory *const factory = gst_element_get_factory(element);
  if (!factory || g_strcmp0(GST_OBJECT_NAME(factory), "gifdec")) return;
  const Owned<GstPad> sink(gst_element_get_static_pad(element, "sink"));
  gst_pad_add_probe(sink.get(), GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                    collect, new std::string, [](gpointer file) { delete static_cast<std::string *>(file); });
}

}  // namespace media
