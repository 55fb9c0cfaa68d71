// SPDX-License-Identifier: LGPL-2.1-or-later

/**
 * SECTION:element-roihold
 * @title: roihold
 * @short_description: keeps regions in force before and after the frames that they come with
 *
 * Stands between a detector and elements that take regions, such as cudaconv and encoders. A detector finds an object
 * late, and misses it in some frames. The element keeps each region in force for some time after its last frame
 * (#GstRoiHold:hold) and before its first one (#GstRoiHold:lookahead). It selects types of regions, handles frames
 * without any, counts regions and reports them.
 *
 * It takes raw video in any memory and touches no pixel. A frame gets the regions of all frames from #GstRoiHold:hold
 * before it to #GstRoiHold:lookahead after it, both ends included, in stream time. They leave with the frame in a meta
 * of the plugin. With the property roi-meta, cudaconv takes it in place of the metas that this element has seen; marks
 * of later elements count too. Regions that did not come with the frame are attached as GstVideoRegionOfInterestMeta
 * too. The manual, gst/README.md, says more.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 filesrc location=people.mp4 ! decodebin ! videoconvert ! facedetect display=false ! videoconvert !
 * roihold types=face hold=500000000 lookahead=500000000 ! cudaconv roi-meta=true mask=mosaic roi-scale=0.125 !
 * videoconvert ! autovideosink
 * ]|
 * Hides faces, also in the half second before and after a detection.
 */

#include <gst/video/video.h>

#include "gstcudaconvanalytics.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvneighbours.h"
#include "gstcudaconvpropertytable.h"
#include "gstroiholdqueue.h"

using namespace cudaconv::gst;

constexpr Property<HoldSettings> kProperties[] = {
    /**
     * GstRoiHold:types:
     *
     * Metas of other types stay on the frame for other elements. A cudaconv behind does not filter them.
     */
    property<HoldSettings, &HoldSettings::types>(
        "types", "Types of regions",
        "Only regions of these types (roi_type, label, or class or value of a segmentation mask) "
        "count, comma-separated: face,plate. !staff excludes a type; unset = all types. This build "
        "understands " CUDACONV_ROI_METAS ".",
        kPlaying),
    /**
     * GstRoiHold:hold:
     *
     * All regions of the frames within this time are in force together, without tracking. Without
     * #GstRoiHold:lookahead it counts in both directions of time, and is longer where the stream plays faster. A flush,
     * the next start and a segment in which frames have other stream times forget all regions. Beyond a bound,
     * neighbours are joined to one region that covers both.
     */
    property<HoldSettings, &HoldSettings::hold>(
        "hold", "Time to hold regions",
        "Nanoseconds that each region stays in force after its last frame, to cover frames that a "
        "detector misses",
        kPlaying),
    /**
     * GstRoiHold:lookahead:
     *
     * Each frame waits in the element, in its own memory, until a frame comes that is later by this time. The element
     * adds the time to its latency, and asks upstream for more buffers accordingly. If upstream has too few, the oldest
     * frame leaves early, with the regions known so far: `frames-early` of #GstRoiHold:stats counts these frames.
     */
    property<HoldSettings, &HoldSettings::lookahead>(
        "lookahead", "Time to look ahead",
        "Nanoseconds that each region is in force before its first frame. Frames are delayed by this "
        "time.",
        kPlaying),
    /**
     * GstRoiHold:interpolate:
     *
     * Follows objects that move, where a detector runs only on each fifth frame, for example. Detections with the same
     * id are one object. Without ids two of the same type are one object: first the two that overlap most, then the two
     * with the nearest centres. Where a match is certain, the moving rectangle takes the place of those that
     * #GstRoiHold:hold and #GstRoiHold:lookahead keep in force. Elsewhere these stay too: more is filtered, never less.
     * Segmentation masks do not move.
     */
    property<HoldSettings, &HoldSettings::interpolate>(
        "interpolate", "Interpolate regions",
        "Move the rectangle of an object in a straight line between two detections at most hold + "
        "lookahead apart. Frames are delayed by both times.",
        kPlaying),
    /**
     * GstRoiHold:unmarked:
     *
     * Regions outside the picture do not count. A gap event replaces each dropped frame.
     */
    enumeration<kUnmarkedNames, HoldSettings, &HoldSettings::unmarked>(
        "unmarked", "Frames without regions", "Handling of frames for which no region is in force", kPlaying),
    /**
     * GstRoiHold:report:
     *
     * The message has the fields of #GstRoiHold:stats, counted since the previous message, and `stream-time` (guint64),
     * the start of the counts.
     */
    property<HoldSettings, &HoldSettings::report>(
        "report", "Report regions",
        "Post an element message roihold-regions for each second of stream time, with counts of "
        "frames and regions",
        kPlaying),
};

struct GstRoiHoldPrivate {
  GstRoiHoldPrivate(GstElement *element, GstPad *sinkpad, GstPad *srcpad)
      : messages(element), queue(element, sinkpad, srcpad, properties, messages) {}

  GstStructure *stats() const { return queue.stats(); }
  void take_properties() {
    queue.update();
    messages.post();
  }

  PropertyValues<HoldSettings> properties{kProperties};
  Messages messages;
  HoldQueue queue;
};

struct _GstRoiHold {
  GstElement parent;
  GstPad *sinkpad, *srcpad;
  GstRoiHoldPrivate *priv;
};

#define GST_TYPE_ROI_HOLD (gst_roi_hold_get_type())
G_DECLARE_FINAL_TYPE(GstRoiHold, gst_roi_hold, GST, ROI_HOLD, GstElement)
#define gst_roi_hold_parent_class parent_class
G_DEFINE_TYPE_WITH_CODE(GstRoiHold, gst_roi_hold, GST_TYPE_ELEMENT,
                        G_IMPLEMENT_INTERFACE(GST_TYPE_PRESET, init_presets))
GST_ELEMENT_REGISTER_DEFINE(roihold, "roihold", GST_RANK_NONE, GST_TYPE_ROI_HOLD)

/* pads */

static GstFlowReturn gst_roi_hold_chain(GstPad *, GstObject *parent, GstBuffer *buffer) {
  GstRoiHold *self = GST_ROI_HOLD(parent);
  const GstFlowReturn flow = self->priv->queue.take(Ref<GstBuffer>(buffer));
  self->priv->messages.post();
  return flow;
}

static GstFlowReturn gst_roi_hold_sink_event(GstPad *pad, GstObject *parent, GstEvent *event) {
  GstRoiHoldPrivate *priv = GST_ROI_HOLD(parent)->priv;
  const GstEventType type = GST_EVENT_TYPE(event);
  const bool flushes = type == GST_EVENT_FLUSH_START || type == GST_EVENT_FLUSH_STOP;
  if (!flushes && !GST_EVENT_IS_SERIALIZED(event))
    return gst_pad_event_default(pad, parent, event) ? GST_FLOW_OK : GST_FLOW_ERROR;
  const GstFlowReturn flow = guarded(parent, GST_FLOW_ERROR, [&] {
    Ref<GstEvent> owned(event);
    return flushes ? priv->queue.flush(std::move(owned)) : priv->queue.take_event(std::move(owned));
  });
  priv->messages.post();
  return flow;
}

static gboolean gst_roi_hold_sink_query(GstPad *pad, GstObject *parent, GstQuery *query) {
  GstRoiHold *self = GST_ROI_HOLD(parent);
  return GST_QUERY_IS_SERIALIZED(query) ? self->priv->queue.take_query(query)
                                        : gst_pad_query_default(pad, parent, query);
}

static gboolean gst_roi_hold_src_event(GstPad *pad, GstObject *parent, GstEvent *event) {
  const GstEventType type = GST_EVENT_TYPE(event);
  if (type == GST_EVENT_FLUSH_START || type == GST_EVENT_FLUSH_STOP)
    GST_ROI_HOLD(parent)->priv->queue.flush_source(type == GST_EVENT_FLUSH_START);
  return gst_pad_event_default(pad, parent, event);
}

static gboolean gst_roi_hold_src_query(GstPad *pad, GstObject *parent, GstQuery *query) {
  GstRoiHold *self = GST_ROI_HOLD(parent);
  if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return gst_pad_query_default(pad, parent, query);
  HoldQueue &queue = self->priv->queue;
  const GstClockTime latency = queue.latency();
  GstClockTime upstream;
  if (!answer_latency_query(self->sinkpad, query, latency, latency, &upstream)) return FALSE;
  queue.set_live_latency(upstream);
  return TRUE;
}

static gboolean gst_roi_hold_activate(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active) {
  return mode == GST_PAD_MODE_PUSH && GST_ROI_HOLD(parent)->priv->queue.activate(pad, active);
}

static GstStateChangeReturn gst_roi_hold_change_state(GstElement *element, GstStateChange transition) {
  HoldQueue &queue = GST_ROI_HOLD(element)->priv->queue;
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) queue.start();
  const GstStateChangeReturn ret = GST_ELEMENT_CLASS(parent_class)->change_state(element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) queue.stop();
  return ret;
}

/* the type */

static void gst_roi_hold_class_init(GstRoiHoldClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS(klass);
  init_debug();
  set_object_functions<GstRoiHold>(object_class);
  /**
   * GstRoiHold:stats:
   *
   * A structure `application/x-roihold-stats`, counted since the element was started:
   *
   * - `frames-marked`, `frames-unmarked` (guint64): frames that left with and without a region in force
   * - `frames-early` (guint64): frames that left before their wait was over: upstream had too few buffers,
   * sent no frame for five seconds, or sent frames too late, or timestamps did not go on
   * - `regions` (guint64): regions in the metas of frames that left
   * - `regions-by-type` (GstStructure): the number of regions of each type or label, one field (guint64) each
   */
  install_properties<HoldSettings>(object_class, kProperties,
                                   "Statistics since the start: frames-marked, frames-unmarked, frames-early, regions, "
                                   "regions-by-type");
  element_class->change_state = GST_DEBUG_FUNCPTR(gst_roi_hold_change_state);
  gst_element_class_set_static_metadata(
      element_class, "Regions in time", "Filter/Video",
      "Keeps regions of interest in force before and after the frames that they come with", "The cudaconv developers");
  GstCaps *caps = gst_caps_from_string("video/x-raw(ANY)");
  gst_element_class_add_pad_template(element_class, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
  gst_element_class_add_pad_template(element_class, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
}

static void gst_roi_hold_init(GstRoiHold *self) {
  GstElementClass *klass = GST_ELEMENT_GET_CLASS(self);
  self->sinkpad = gst_pad_new_from_template(gst_element_class_get_pad_template(klass, "sink"), "sink");
  self->srcpad = gst_pad_new_from_template(gst_element_class_get_pad_template(klass, "src"), "src");
  self->priv = new GstRoiHoldPrivate(GST_ELEMENT_CAST(self), self->sinkpad, self->srcpad);
  gst_pad_set_chain_function(self->sinkpad, GST_DEBUG_FUNCPTR(gst_roi_hold_chain));
  gst_pad_set_event_full_function(self->sinkpad, GST_DEBUG_FUNCPTR(gst_roi_hold_sink_event));
  gst_pad_set_query_function(self->sinkpad, GST_DEBUG_FUNCPTR(gst_roi_hold_sink_query));
  gst_pad_set_event_function(self->srcpad, GST_DEBUG_FUNCPTR(gst_roi_hold_src_event));
  gst_pad_set_query_function(self->srcpad, GST_DEBUG_FUNCPTR(gst_roi_hold_src_query));
  for (GstPad *pad : {self->sinkpad, self->srcpad}) {
    gst_pad_set_activatemode_function(pad, GST_DEBUG_FUNCPTR(gst_roi_hold_activate));
    GST_PAD_SET_PROXY_CAPS(pad);
    gst_element_add_pad(GST_ELEMENT(self), pad);
  }
}
