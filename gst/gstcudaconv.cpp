// SPDX-License-Identifier: LGPL-2.1-or-later

/**
 * SECTION:element-cudaconv
 * @title: cudaconv
 * @short_description: 2D convolution and morphology on the GPU and on the CPU
 *
 * Filters each video frame with a mask: blurs, sharpening, edge detectors, morphology, medians, or a custom mask of up
 * to 31x31 numbers. Frames may be in system memory or in CUDA memory. Output memory equals input memory, unless
 * downstream takes only the other kind or names CUDA memory in its caps. Format and size never change. Each plane is
 * filtered at its own resolution and depth, without conversion.
 *
 * Results are bit-exact: every GPU, the CPU and every #GstCudaConv:method give the same bytes.
 *
 * Masks are not flipped (the filter is a correlation), and their anchor is the centre. A linear mask c computes
 * floor(sum(c * p) / #GstCudaConv:divisor + #GstCudaConv:bias * 2^depth + 1/2), clamped to the range of the samples.
 *
 * All properties but #GstCudaConv:backend, #GstCudaConv:cuda-device-id, #GstCudaConv:n-threads and
 * #GstCudaConv:frames-in-flight may change while playing. All properties of one `g_object_set()` take effect
 * together, at the next frame. Invalid settings are an error at the start. While playing they are a warning, and the
 * last good settings stay in force. A setting that the mask does not use is a warning, too.
 *
 * #GstCudaConv:roi and #GstCudaConv:roi-meta limit the filter to regions; pixels outside are copied from the input, and
 * masks read across the edges of regions. Rectangles of #GstCudaConv:roi count from the corner of the picture. Regions
 * in metas count from the corner of the whole frame, also where a buffer holds one field of it. An element roihold in
 * front covers frames that a detector misses.
 *
 * Frames in system memory are fastest in buffers from the pool that the element proposes to upstream, since the GPU
 * reads that memory directly. Elements in a row on the same GPU keep frames in CUDA memory between them.
 *
 * If a buffer has a GstVideoCropMeta, the picture is that rectangle: the result equals cropping first and then
 * filtering. The manual, gst/README.md, says more.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc ! cudaconv mask=gauss5 ! videoconvert ! autovideosink
 * ]|
 * Blurs a test picture.
 * |[
 * gst-launch-1.0 videotestsrc ! cudaconv mask=custom coefficients="-1 0 1; -1 0 1; -1 0 1" bias=0.5 ! autovideosink
 * ]|
 * Vertical edges in relief, with a custom mask.
 * |[
 * gst-launch-1.0 filesrc location=video.h264 ! h264parse ! nvh264dec ! cudaconv mask=sobel ! cudadownload !
 * autovideosink
 * ]|
 * Finds edges on the GPU; frames leave it only for display.
 * |[
 * gst-launch-1.0 videotestsrc ! cudaconv mask=gauss roi-scale=0.2 roi="40,40,80,60; 200,100,64,64" roi-shape=ellipse !
 * autovideosink
 * ]|
 * Blurs two regions of the picture, each in proportion to its size.
 *
 * ## Presets
 *
 * The element implements GstPreset. A preset sets all properties that may change while playing. Properties that its
 * file does not name get their defaults.
 *
 * ## Pictures
 *
 * ![each mask on one frame](pictures/gallery.jpg)
 * ![before and after mask=gauss sigma=2](pictures/gauss.png)
 * ![before and after mask=sobel](pictures/sobel.png)
 * ![before and after mask=dilate size=5 shape=ellipse chroma=copy](pictures/dilate.png)
 * ![a face, and the mosaic in its place](pictures/privacy.png)
 */

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <algorithm>
#include <memory>

#include "gstcudaconvallocation.h"
#include "gstcudaconvflight.h"
#include "gstcudaconvformat.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvmetas.h"
#include "gstcudaconvneighbours.h"
#include "gstcudaconvpath.h"
#include "gstcudaconvproperties.h"
#include "gstcudaconvsession.h"

using namespace cudaconv;
using namespace cudaconv::gst;

struct GstCudaConvPrivate {
  explicit GstCudaConvPrivate(GstBaseTransform *trans)
      : messages(GST_ELEMENT_CAST(trans)),
        session(GST_ELEMENT_CAST(trans), properties, messages),
        regions(messages),
        flight(trans, session),
        path(trans, session, regions, flight) {}

  GstStructure *stats() const;
  void take_properties() {}  // the next frame does

  Properties properties;
  Messages messages;
  Session session;
  RegionFinder regions;
  Flight flight;
  Path path;
  GstFlowReturn told = GST_FLOW_OK;  // the last failure but FLUSHING that upstream got since the start
  // Functions of the base class's pads, which ours call.
  GstPadActivateModeFunction base_activate_sink, base_activate_src;
  GstPadEventFunction base_event;
};

struct _GstCudaConv {
  GstBaseTransform parent;
  GstCudaConvPrivate *priv;
};

#define GST_TYPE_CUDA_CONV (gst_cuda_conv_get_type())
G_DECLARE_FINAL_TYPE(GstCudaConv, gst_cuda_conv, GST, CUDA_CONV, GstBaseTransform)
#define gst_cuda_conv_parent_class parent_class
G_DEFINE_TYPE_WITH_CODE(GstCudaConv, gst_cuda_conv, GST_TYPE_BASE_TRANSFORM,
                        G_IMPLEMENT_INTERFACE(GST_TYPE_PRESET, init_presets))
GST_ELEMENT_REGISTER_DEFINE(cudaconv, "cudaconv", GST_RANK_NONE, GST_TYPE_CUDA_CONV)

// The value of the property "stats". Transfer full.
GstStructure *GstCudaConvPrivate::stats() const {
  const std::shared_ptr<const StreamContext> context = session.context();
  const BackendStats totals = flight.counts().totals();
  const char *method = nullptr;
  if (context) {
    const bool selected = context->settings.filter.method != Method::Auto;
    method = totals.kernels && !selected ? totals.kernels : method_nick(context->method);
  }
  // clang-format off
  GstStructure *stats = gst_structure_new(
      "application/x-cudaconv-stats",
      "frames", G_TYPE_UINT64, static_cast<guint64>(totals.frames),
      "backend", G_TYPE_STRING, context ? context->engine->backend->name() : nullptr,
      "method", G_TYPE_STRING, method,
      "device-time", G_TYPE_UINT64, static_cast<guint64>(totals.device_ns),
      "bytes-uploaded", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_uploaded),
      "bytes-downloaded", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_downloaded),
      "bytes-staged", G_TYPE_UINT64, static_cast<guint64>(totals.bytes_staged),
      "failovers", G_TYPE_UINT, session.failovers(),
      nullptr);
  // clang-format on
  regions.counts().write(stats);
  return stats;
}

/* states */

static GstStateChangeReturn gst_cuda_conv_change_state(GstElement *element, GstStateChange transition) {
  EngineChoice &engines = GST_CUDA_CONV(element)->priv->session.engines();
  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !guarded(element, false, [&] { return engines.open(); }))
    return GST_STATE_CHANGE_FAILURE;
  const GstStateChangeReturn ret = GST_ELEMENT_CLASS(parent_class)->change_state(element, transition);
  const bool failed = transition == GST_STATE_CHANGE_NULL_TO_READY && ret == GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_READY_TO_NULL || failed) engines.close();
  return ret;
}

static gboolean gst_cuda_conv_start(GstBaseTransform *trans) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  priv->told = GST_FLOW_OK;
  priv->regions.start();
  if (!guarded(trans, false, [&] { return priv->session.start(); })) return FALSE;
  priv->flight.start();
  return TRUE;
}

static gboolean gst_cuda_conv_stop(GstBaseTransform *trans) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  priv->flight.halt(false);
  priv->flight.pool().set(nullptr);
  const Ref<GstStructure> stats(priv->stats());
  GST_INFO_OBJECT(trans, "%" GST_PTR_FORMAT, stats.get());
  priv->path.stop();
  priv->session.stop();
  return TRUE;
}

// Stops or resumes Flight before the base class activates the pad.
static gboolean activate(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(parent)->priv;
  Flight &flight = priv->flight;
  const GstPadActivateModeFunction base = GST_PAD_IS_SINK(pad) ? priv->base_activate_sink : priv->base_activate_src;
  const bool starts = active && GST_PAD_IS_SINK(pad) && mode == GST_PAD_MODE_PUSH;
  // base() joins the streaming thread of a pad that is deactivated: halt() first makes that thread return.
  if (!active)
    flight.halt(GST_PAD_IS_SRC(pad));
  else if (GST_PAD_IS_SRC(pad))
    flight.resume(true);
  // GstPad lets threads in before start(), after which the base class forgets caps and segments: they wait here.
  if (starts) {
    GST_PAD_STREAM_LOCK(pad);
    flight.let_in(true);
  }
  const gboolean done = base(pad, parent, mode, active);
  if (starts) {
    if (!done) flight.let_in(false);
    GST_PAD_STREAM_UNLOCK(pad);
  }
  return done;
}

/* caps */

static GstCaps *gst_cuda_conv_transform_caps(GstBaseTransform *, GstPadDirection, GstCaps *caps, GstCaps *filter) {
  const Ref<GstCaps> result(with_common_formats_first(without_split_frames(with_either_memory(caps))));
  return filter ? gst_caps_intersect_full(result.get(), filter, GST_CAPS_INTERSECT_FIRST) : gst_caps_ref(result.get());
}

static GstCaps *gst_cuda_conv_fixate_caps(GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                          GstCaps *othercaps) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  const bool keeps = direction == GST_PAD_SRC || priv->properties.published()->settings.filter.mask == Mask::Identity;
  return fixate_memory(GST_BASE_TRANSFORM_SRC_PAD(trans), caps, othercaps, keeps ? -1 : priv->session.device_in_use());
}

// The size of a frame. Rows of the frame that it is made of may have gaps, so that size does not count.
static gboolean gst_cuda_conv_transform_size(GstBaseTransform *, GstPadDirection, GstCaps *, gsize, GstCaps *caps,
                                             gsize *size) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) return FALSE;
  *size = GST_VIDEO_INFO_SIZE(&info);
  return TRUE;
}

static gboolean gst_cuda_conv_set_caps(GstBaseTransform *trans, GstCaps *incaps, GstCaps *outcaps) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, incaps)) return FALSE;
  priv->flight.drain();
  const bool cuda_in = is_cuda_caps(incaps), cuda_out = is_cuda_caps(outcaps);
  if (!guarded(trans, false, [&] { return priv->session.configure(info, cuda_in, cuda_out); })) return FALSE;
  priv->path.take_caps();
  priv->session.announce_latency();
  return TRUE;
}

/* queries and allocation */

// Answers with the end of the frame that left last. The base class only knows of frames that it pushes itself.
static bool answer_position_query(GstBaseTransform *trans, GstQuery *query) {
  const GstClockTime position = GST_CUDA_CONV(trans)->priv->flight.counts().position();
  GstFormat format;
  gst_query_parse_position(query, &format, nullptr);
  if (format != GST_FORMAT_TIME || trans->segment.format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID(position))
    return false;
  // A frame may end after its segment, where there is no stream time.
  const guint64 inside = std::max(trans->segment.start, std::min(position, trans->segment.stop));
  gst_query_set_position(query, format, gst_segment_to_stream_time(&trans->segment, format, inside));
  return true;
}

static gboolean gst_cuda_conv_query(GstBaseTransform *trans, GstPadDirection direction, GstQuery *query) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  // A serialized query must not overtake frames in flight, and after it upstream may replace the buffers that they use.
  if (direction == GST_PAD_SINK && GST_QUERY_IS_SERIALIZED(query)) {
    if (!priv->flight.lets_in()) return FALSE;
    priv->flight.drain();
  }
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_CONTEXT:
      if (priv->session.engines().finder().answer_context_query(GST_ELEMENT(trans), query)) return TRUE;
      break;
    case GST_QUERY_LATENCY:
      // No frame waits for later ones, but frames wait in the element while downstream blocks.
      if (direction == GST_PAD_SRC)
        return answer_latency_query(GST_BASE_TRANSFORM_SINK_PAD(trans), query, 0, priv->session.longest_wait());
      break;
    case GST_QUERY_SCHEDULING:
      if (direction == GST_PAD_SRC) return FALSE;  // no pull mode
      break;
    case GST_QUERY_POSITION:
      if (answer_position_query(trans, query)) return TRUE;
      break;
    default:
      if (direction == GST_PAD_SINK && answer_device_query(query, priv->session.device_in_use())) return TRUE;
      break;
  }
  return GST_BASE_TRANSFORM_CLASS(parent_class)->query(trans, direction, query);
}

static gboolean gst_cuda_conv_propose_allocation(GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query) {
  if (!GST_BASE_TRANSFORM_CLASS(parent_class)->propose_allocation(trans, decide_query, query)) return FALSE;
  if (!decide_query) return TRUE;  // passthrough: the base class has asked downstream
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  return guarded(trans, false, [&] {
    AllocationNeeds needs = priv->session.allocation_needs();
    needs.crop = may_send_crop_meta(trans->sinkpad);
    return propose_allocation(query, needs, priv->path.downstream());
  });
}

static gboolean gst_cuda_conv_decide_allocation(GstBaseTransform *trans, GstQuery *query) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  priv->flight.drain();
  return guarded(trans, FALSE, [&]() -> gboolean {
    GstCaps *caps;
    gst_query_parse_allocation(query, &caps, nullptr);
    if (is_cuda_caps(caps) && !priv->session.engines().find_memory_device()) return FALSE;
    priv->path.set_downstream(decide_allocation(GST_OBJECT(trans), query, priv->session.allocation_needs()));
    const gboolean decided = GST_BASE_TRANSFORM_CLASS(parent_class)->decide_allocation(trans, query);
    GstBufferPool *pool = nullptr;
    if (decided) gst_query_parse_nth_allocation_pool(query, 0, &pool, nullptr, nullptr, nullptr);
    priv->flight.pool().set(Ref<GstBufferPool>(pool));
    return decided;
  });
}

/* events and messages */

// Maps failures to flow returns like GstPad, except that a failure while the stream is interrupted is no error.
static GstFlowReturn gst_cuda_conv_sink_event(GstPad *pad, GstObject *parent, GstEvent *event) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(parent)->priv;
  Flight &flight = priv->flight;
  Ref<GstEvent> owned(event);
  const GstEventType type = GST_EVENT_TYPE(event);
  if (GST_EVENT_IS_SERIALIZED(event) && !flight.lets_in()) return GST_FLOW_FLUSHING;
  const guint interruptions = flight.begin();
  if (type == GST_EVENT_FLUSH_START) flight.begin_flush(false);
  if (type == GST_EVENT_FLUSH_STOP) {
    flight.end_flush(false);
  } else if (GST_EVENT_IS_SERIALIZED(event)) {
    flight.drain();
    // Downstream may flush while it holds a frame, and with it the lock that a query of the base class waits for.
    if (flight.stopped() && GST_PAD_IS_ACTIVE(GST_BASE_TRANSFORM_SRC_PAD(parent))) return GST_FLOW_FLUSHING;
  }
  if (type == GST_EVENT_SEGMENT || type == GST_EVENT_STREAM_START) flight.forget_eos();
  if (type == GST_EVENT_EOS) post_last_flow(GST_ELEMENT(parent), flight.take_flow(), priv->told);
  guarded(parent, [&] { priv->regions.look_at_event(event); });
  const GstFlowReturn failure = type == GST_EVENT_CAPS ? GST_FLOW_NOT_NEGOTIATED : GST_FLOW_ERROR;
  const bool done = priv->base_event(pad, parent, owned.release());
  const GstFlowReturn flow = done ? GST_FLOW_OK : flight.flow_of_failure(interruptions, failure);
  priv->messages.post();
  return flow;
}

// Downstream may flush the source pad: FLUSH_STOP takes its stream lock, which the task holds.
static gboolean gst_cuda_conv_src_event(GstBaseTransform *trans, GstEvent *event) {
  Flight &flight = GST_CUDA_CONV(trans)->priv->flight;
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_START) flight.begin_flush(true);
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) flight.end_flush(true);
  return GST_BASE_TRANSFORM_CLASS(parent_class)->src_event(trans, event);
}

// Corrects the number of frames in QOS messages: the base class only counts those that it pushes itself.
static gboolean gst_cuda_conv_post_message(GstElement *element, GstMessage *message) {
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_QOS && GST_MESSAGE_SRC(message) == GST_OBJECT_CAST(element)) {
    guint64 dropped;
    gst_message_parse_qos_stats(message, nullptr, nullptr, &dropped);
    gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, GST_CUDA_CONV(element)->priv->flight.counts().pushed(),
                              dropped);
  }
  return GST_ELEMENT_CLASS(parent_class)->post_message(element, message);
}

/* the type */

static gboolean gst_cuda_conv_has_effect(GstCudaConv *self, const gchar *property) {
  return property && guarded(self, false, [&] { return self->priv->properties.has_effect(property); });
}

static void gst_cuda_conv_class_init(GstCudaConvClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS(klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS(klass);

  init_debug();
  set_object_functions<GstCudaConv>(object_class);
  Properties::install(object_class);

  /**
   * GstCudaConv::has-effect:
   * @property: the name of a property
   *
   * For applications that show the properties: tells which of them the mask and the other settings use, set or not.
   *
   * Returns: whether another value than the default has an effect
   */
  g_signal_new_class_handler(
      "has-effect", G_TYPE_FROM_CLASS(klass), static_cast<GSignalFlags>(G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION),
      G_CALLBACK(gst_cuda_conv_has_effect), nullptr, nullptr, nullptr, G_TYPE_BOOLEAN, 1, G_TYPE_STRING);

  gst_element_class_set_static_metadata(element_class, "CUDA convolution filter", "Filter/Effect/Video/Hardware",
                                        "Blurs, sharpens, detects edges, and applies morphology or any convolution up "
                                        "to 31x31, on NVIDIA GPUs or the CPU",
                                        "The cudaconv developers");
  GstCaps *caps = template_caps();
  gst_element_class_add_pad_template(element_class, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
  gst_element_class_add_pad_template(element_class, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
  element_class->change_state = GST_DEBUG_FUNCPTR(gst_cuda_conv_change_state);
  element_class->set_context = [](GstElement *element, GstContext *context) {
    GstCudaConvPrivate *priv = GST_CUDA_CONV(element)->priv;
    priv->session.engines().finder().set_context(element, context, priv->properties.published()->device_id);
    GST_ELEMENT_CLASS(parent_class)->set_context(element, context);
  };
  element_class->post_message = GST_DEBUG_FUNCPTR(gst_cuda_conv_post_message);

  trans_class->src_event = GST_DEBUG_FUNCPTR(gst_cuda_conv_src_event);
  trans_class->start = GST_DEBUG_FUNCPTR(gst_cuda_conv_start);
  trans_class->stop = GST_DEBUG_FUNCPTR(gst_cuda_conv_stop);
  trans_class->transform_caps = GST_DEBUG_FUNCPTR(gst_cuda_conv_transform_caps);
  trans_class->fixate_caps = GST_DEBUG_FUNCPTR(gst_cuda_conv_fixate_caps);
  trans_class->transform_size = GST_DEBUG_FUNCPTR(gst_cuda_conv_transform_size);
  trans_class->set_caps = GST_DEBUG_FUNCPTR(gst_cuda_conv_set_caps);
  trans_class->query = GST_DEBUG_FUNCPTR(gst_cuda_conv_query);
  trans_class->propose_allocation = GST_DEBUG_FUNCPTR(gst_cuda_conv_propose_allocation);
  trans_class->decide_allocation = GST_DEBUG_FUNCPTR(gst_cuda_conv_decide_allocation);
  // Whether to propose to upstream a meta API that downstream takes, and whether to copy a meta to the output.
  trans_class->filter_meta = [](auto *, auto *, GType api, auto *) -> gboolean { return keeps_meta(api); };
  trans_class->transform_meta = [](GstBaseTransform *trans, GstBuffer *output, GstMeta *meta,
                                   GstBuffer *input) -> gboolean {
    const Path &path = GST_CUDA_CONV(trans)->priv->path;
    // If that fails, the output has the other metas with regions.
    return keeps_meta(meta->info->api) && !guarded(trans, true, [&] { return path.copy_moved(output, meta, input); });
  };
  trans_class->submit_input_buffer = [](GstBaseTransform *trans, gboolean is_discont, GstBuffer *input) {
    GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
    const GstFlowReturn flow = priv->path.take(is_discont, Ref<GstBuffer>(input));
    if (flow < GST_FLOW_OK && flow != GST_FLOW_FLUSHING) priv->told = flow;
    priv->messages.post();
    return flow;
  };
  // Never called, but must be set: the base class takes an element without it for one that only works in place.
  trans_class->transform = [](auto *, auto *, auto *) -> GstFlowReturn { g_return_val_if_reached(GST_FLOW_ERROR); };
}

static void gst_cuda_conv_init(GstCudaConv *self) {
  GstBaseTransform *trans = GST_BASE_TRANSFORM(self);
  self->priv = new GstCudaConvPrivate(trans);
  self->priv->base_activate_sink = GST_PAD_ACTIVATEMODEFUNC(trans->sinkpad);
  self->priv->base_activate_src = GST_PAD_ACTIVATEMODEFUNC(trans->srcpad);
  self->priv->base_event = GST_PAD_EVENTFUNC(trans->sinkpad);
  gst_pad_set_activatemode_function(trans->sinkpad, GST_DEBUG_FUNCPTR(activate));
  gst_pad_set_activatemode_function(trans->srcpad, GST_DEBUG_FUNCPTR(activate));
  gst_pad_set_event_full_function(trans->sinkpad, GST_DEBUG_FUNCPTR(gst_cuda_conv_sink_event));
  // Keeps the order of transform_caps, common formats first; the base class would prefer downstream's order.
  gst_base_transform_set_prefer_passthrough(trans, FALSE);
  gst_base_transform_set_qos_enabled(trans, TRUE);
  // A buffer with the GAP flag is filtered like any other, and keeps the flag.
  gst_base_transform_set_gap_aware(trans, TRUE);
}
