// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvneighbours.h"

#include <gst/video/video.h>

#include "gstcudaconvformat.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvref.h"
#include "gstcudaconvsegment.h"

namespace cudaconv::gst {

namespace {

// The query that asks the next cudaconv downstream for its device. Elements between that do not know it pass it on.
constexpr char kDeviceQuery[] = "application/x-cudaconv-device";

// Whether the caps that downstream takes name CUDA memory. ANY caps and ANY features do not.
bool names_cuda(GstPad *srcpad) {
  const Ref<GstCaps> caps(gst_pad_peer_query_caps(srcpad, nullptr));
  if (!caps || gst_caps_is_any(caps.get())) return false;
  for (guint i = 0; i < gst_caps_get_size(caps.get()); i++)
    if (is_cuda(gst_caps_get_features(caps.get(), i))) return true;
  return false;
}

GstCaps *fixate(GstCaps *caps, GstCaps *othercaps, bool cuda) {
  GstCapsFeatures *const features = gst_caps_get_features(caps, 0);
  g_autoptr(GstCapsFeatures) wanted =
      is_cuda(features) == cuda ? gst_caps_features_copy(features) : in_other_memory(features);
  for (guint i = 0; wanted && i < gst_caps_get_size(othercaps); i++) {
    if (!gst_caps_features_is_equal(gst_caps_get_features(othercaps, i), wanted)) continue;
    GstCaps *chosen = gst_caps_copy_nth(othercaps, i);
    gst_caps_unref(othercaps);
    return gst_caps_fixate(chosen);
  }
  return gst_caps_fixate(othercaps);
}

}  // namespace

GstCaps *fixate_memory(GstPad *srcpad, GstCaps *caps, GstCaps *othercaps, int device) {
  bool cuda = is_cuda_caps(caps);
  if (device >= 0) {
    const Ref<GstQuery> query(
        gst_query_new_custom(GST_QUERY_CUSTOM, gst_structure_new(kDeviceQuery, "device-id", G_TYPE_INT, -1, nullptr)));
    int theirs = -1;
    if (gst_pad_peer_query(srcpad, query.get())) {
      gst_structure_get_int(gst_query_get_structure(query.get()), "device-id", &theirs);
      cuda = theirs == device;
      GST_DEBUG_OBJECT(srcpad, "the next cudaconv filters on device %d, this one on %d", theirs, device);
    } else if (!cuda) {
      cuda = names_cuda(srcpad);
    }
  }
  GstVideoInfo info;
  if (!is_cuda_caps(caps) && gst_video_info_from_caps(&info, caps) && loses_rows_in_cuda_memory(info)) cuda = false;
  GST_DEBUG_OBJECT(srcpad, "prefers %s memory", cuda ? "CUDA" : "system");
  return fixate(caps, othercaps, cuda);
}

bool answer_device_query(GstQuery *query, int device) {
  if (GST_QUERY_TYPE(query) != GST_QUERY_CUSTOM) return false;
  const GstStructure *structure = gst_query_get_structure(query);
  if (!structure || !gst_structure_has_name(structure, kDeviceQuery)) return false;
  gst_structure_set(gst_query_writable_structure(query), "device-id", G_TYPE_INT, device, nullptr);
  return true;
}

bool answer_latency_query(GstPad *sinkpad, GstQuery *query, GstClockTime add_min, GstClockTime add_max,
                          GstClockTime *upstream) {
  if (!gst_pad_peer_query(sinkpad, query)) return false;
  gboolean live;
  GstClockTime min, max;
  gst_query_parse_latency(query, &live, &min, &max);
  if (upstream) *upstream = live ? min : GST_CLOCK_TIME_NONE;
  if (GST_CLOCK_TIME_IS_VALID(max)) max = add_times(max, add_max);
  gst_query_set_latency(query, live, add_times(min, add_min), max);
  return true;
}

namespace {

// Elements that neither read nor write pixels. Some pass an ALLOCATION query on, and with it what it announces.
constexpr const char *kTransparent[] = {
    "capsfilter",         "capssetter",     "clocksync",  "concat",         "cudaconv",
    "errorignore",        "funnel",         "identity",   "input-selector", "multiqueue",
    "output-selector",    "progressreport", "queue",      "queue2",         "roihold",
    "streamsynchronizer", "taginject",      "tee",        "valve",          "videoconvert",
    "videoconvertscale",  "videorate",      "videoscale", "watchdog",       nullptr,
};

// The pad that data comes from: behind the pads by which bins hand it on. nullptr where there is none.
Ref<GstPad> source_of(GstPad *sinkpad) {
  Ref<GstPad> pad(gst_pad_get_peer(sinkpad));
  while (pad && GST_IS_PROXY_PAD(pad.get())) {
    const Ref<GstPad> other_side(GST_PAD_CAST(gst_proxy_pad_get_internal(GST_PROXY_PAD(pad.get()))));
    pad.reset(other_side ? gst_pad_get_peer(other_side.get()) : nullptr);
  }
  return pad;
}

// For gst_pad_forward(), which stops where these return TRUE.
gboolean has_raw_video(GstPad *pad, gpointer) {
  const Ref<GstCaps> caps(gst_pad_get_current_caps(pad));
  return caps && gst_structure_has_name(gst_caps_get_structure(caps.get(), 0), "video/x-raw");
}
gboolean refuses_crop_meta(GstPad *sinkpad, gpointer) {
  return !may_send_crop_meta(sinkpad);
}

}  // namespace

bool may_send_crop_meta(GstPad *sinkpad) {
  const Ref<GstPad> source = source_of(sinkpad);
  if (!source) return true;
  const Ref<GstElement> element(gst_pad_get_parent_element(source.get()));
  const GstElementFactory *const factory = element ? gst_element_get_factory(element.get()) : nullptr;
  const gchar *const name = factory ? GST_OBJECT_NAME(factory) : "";
  if (!element || !g_strcmp0(name, "videocrop")) return true;
  // A source or a decoder asks for itself.
  return !gst_pad_forward(source.get(), g_strv_contains(kTransparent, name) ? refuses_crop_meta : has_raw_video,
                          nullptr);
}

bool takes_meta(GstPad *srcpad, GType api) {
  const Ref<GstCaps> caps(gst_pad_get_current_caps(srcpad));
  const Ref<GstQuery> query(gst_query_new_allocation(caps.get(), FALSE));
  return gst_pad_peer_query(srcpad, query.get()) && gst_query_find_allocation_meta(query.get(), api, nullptr);
}

}  // namespace cudaconv::gst
