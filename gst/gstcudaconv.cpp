// SPDX-License-Identifier: LGPL-2.1-or-later

/**
 * SECTION:element-cudaconv
 * @title: cudaconv
 * @short_description: 2D convolution and morphology on the GPU and on the CPU
 *
 * Filters each video frame with a mask: blurs, sharpening, edge detectors, morphology, medians, or any mask of up to
 * 31x31 numbers of one's own. Frames may lie in system memory or in CUDA memory and leave in the memory they came in,
 * unless downstream takes only the other. Format and size never change, and no format is converted to another inside:
 * each plane is filtered at its own resolution and depth.
 *
 * Results are the same bytes on every GPU, on the CPU, and with every #GstCudaConv:method.
 *
 * Masks are not flipped (the filter is a correlation), and their anchor is in the centre. A linear mask c computes
 * floor(sum(c * p) / #GstCudaConv:divisor + #GstCudaConv:bias * 2^depth + 1/2), clamped to the range of the samples.
 *
 * All properties but #GstCudaConv:backend, #GstCudaConv:cuda-device-id and #GstCudaConv:frames-in-flight may change
 * while playing. A change takes effect whole at the next frame. Settings that cannot be carried out are an error at the
 * start; while playing they are a warning, and the last good ones stay in force.
 *
 * #GstCudaConv:roi and #GstCudaConv:roi-meta limit the filter to regions; what lies outside is copied from the input.
 * Rectangles count pixels of the whole frame, also where a buffer holds one field (interlace-mode=alternate). In
 * subsampled planes every pixel that a rectangle touches is filtered. Masks read across the edges of regions.
 *
 * Several frames are on the GPU at once, unless the pipeline is live: one is uploaded while another is filtered and a
 * third comes back. What is held back for that is reported as latency, and pushed before any event that follows it. See
 * #GstCudaConv:frames-in-flight. Frames in system memory go fastest where upstream takes them from the buffer pool that
 * the element proposes, since the GPU reads that memory by itself.
 *
 * A GstVideoCropMeta is passed on, and the full frame is filtered, so that pixels beyond the crop rectangle take part
 * in the windows of those within. It is accepted where downstream accepts it.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc ! cudaconv mask=gauss5 ! videoconvert ! autovideosink
 * ]|
 * Blurs a test picture.
 * |[
 * gst-launch-1.0 videotestsrc ! cudaconv mask=custom coefficients="-1 0 1; -1 0 1; -1 0 1" bias=0.5 ! autovideosink
 * ]|
 * Vertical edges in relief, with a mask of one's own.
 * |[
 * gst-launch-1.0 filesrc location=video.h264 ! h264parse ! nvh264dec ! cudaconv mask=sobel ! cudadownload !
 * autovideosink
 * ]|
 * Finds edges in frames that do not leave the GPU until they are shown.
 * |[
 * gst-launch-1.0 videotestsrc ! cudaconv mask=box size=31 roi="40,40,80,60; 200,100,64,64" roi-shape=ellipse !
 * autovideosink
 * ]|
 * Blurs two regions of the picture beyond recognition.
 */

#include "gstcudaconv.h"

#include <gst/video/video.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backend.h"
#include "gstcudaconvdevice.h"
#include "gstcudaconvenums.h"
#include "gstcudaconvformat.h"
#include "gstcudaconvpinned.h"
#include "gstcudaconvstream.h"
#include "gstcudaconvworkers.h"

using namespace cudaconv;
using namespace cudaconv::gst;

GST_DEBUG_CATEGORY_STATIC(gst_cuda_conv_debug);
#define GST_CAT_DEFAULT gst_cuda_conv_debug

enum {
  PROP_0,
  PROP_MASK,
  PROP_SIZE,
  PROP_SIGMA,
  PROP_AMOUNT,
  PROP_COEFFICIENTS,
  PROP_SHAPE,
  PROP_DIVISOR,
  PROP_BIAS,
  PROP_NEGATIVE,
  PROP_MAGNITUDE,
  PROP_ITERATIONS,
  PROP_BORDER,
  PROP_BORDER_COLOR,
  PROP_CHROMA,
  PROP_ALPHA,
  PROP_ROI,
  PROP_ROI_META,
  PROP_ROI_TYPE,
  PROP_ROI_SHAPE,
  PROP_ROI_INVERT,
  PROP_BACKEND,
  PROP_CUDA_DEVICE_ID,
  PROP_METHOD,
  PROP_FRAMES_IN_FLIGHT,
  PROP_STATS,
};

#define DEFAULT_BACKEND BackendChoice::Auto
#define DEFAULT_CUDA_DEVICE_ID -1
#define DEFAULT_FRAMES_IN_FLIGHT 0
#define MAX_FRAMES_IN_FLIGHT 16

namespace {

// One being uploaded, one in the kernels, one being downloaded, and one that the CPU is busy with meanwhile.
constexpr guint kFramesThatPay = 4;

// How many frames may be on the GPU at once, and how many of them wait for another frame to be pushed.
struct Flight {
  guint frames = 1, held = 0;
};

}  // namespace

struct GstCudaConvPrivate {
  std::mutex lock;  // guards what follows
  Settings settings;
  guint serial = 0;  // counts changes of the settings
  BackendChoice backend = DEFAULT_BACKEND;
  gint device_id = DEFAULT_CUDA_DEVICE_ID;
  guint frames_in_flight = DEFAULT_FRAMES_IN_FLIGHT;
  bool live = true;          // the pipeline, as far as is known
  GstClockTime latency = 0;  // as announced last
  std::shared_ptr<const StreamContext> context;
  guint tried_serial = 0;  // the settings that were last tried on the context, with or without success
  BackendStats totals;
  guint failovers = 0;

  const std::unique_ptr<DeviceFinder> finder = DeviceFinder::create();

  // State changes and the streaming thread, which GStreamer keeps apart.
  bool device_failed = false;
  bool chosen = false;  // what follows was chosen for chosen_backend and chosen_device_id
  BackendChoice chosen_backend = DEFAULT_BACKEND;
  gint chosen_device_id = DEFAULT_CUDA_DEVICE_ID;
  std::shared_ptr<Device> device;
  std::shared_ptr<Engine> cuda_engine;
  // Why set_caps() and decide_allocation() failed last: the base class calls them again and again.
  std::string caps_error, memory_error;
  // Oldest first; all of the latter are older than the former.
  std::deque<std::unique_ptr<Frame>> in_flight;  // to be pushed
  std::deque<std::unique_ptr<Frame>> pushed;     // downstream orders its work after that on them
  bool hold_nothing = false;                     // of this frame: see submit_input_buffer()
  GstFlowReturn drained = GST_FLOW_OK;           // what became of the frames pushed in places that cannot return it

  std::shared_ptr<const StreamContext> current_context() {
    std::lock_guard<std::mutex> guard(lock);
    return context;
  }
};

struct _GstCudaConv {
  GstBaseTransform parent;
  GstCudaConvPrivate *priv;
};

static void gst_cuda_conv_finalize(GObject *object);
static void gst_cuda_conv_set_property(GObject *object, guint id, const GValue *value, GParamSpec *pspec);
static void gst_cuda_conv_get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec);
static GstStateChangeReturn gst_cuda_conv_change_state(GstElement *element, GstStateChange transition);
static void gst_cuda_conv_set_context(GstElement *element, GstContext *context);
static gboolean gst_cuda_conv_start(GstBaseTransform *trans);
static gboolean gst_cuda_conv_stop(GstBaseTransform *trans);
static GstCaps *gst_cuda_conv_transform_caps(GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                             GstCaps *filter);
static GstCaps *gst_cuda_conv_fixate_caps(GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                          GstCaps *othercaps);
static gboolean gst_cuda_conv_get_unit_size(GstBaseTransform *trans, GstCaps *caps, gsize *size);
static gboolean gst_cuda_conv_set_caps(GstBaseTransform *trans, GstCaps *incaps, GstCaps *outcaps);
static gboolean gst_cuda_conv_sink_event(GstBaseTransform *trans, GstEvent *event);
static gboolean gst_cuda_conv_query(GstBaseTransform *trans, GstPadDirection direction, GstQuery *query);
static gboolean gst_cuda_conv_propose_allocation(GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query);
static gboolean gst_cuda_conv_decide_allocation(GstBaseTransform *trans, GstQuery *query);
static gboolean gst_cuda_conv_filter_meta(GstBaseTransform *trans, GstQuery *query, GType api,
                                          const GstStructure *params);
static gboolean gst_cuda_conv_transform_meta(GstBaseTransform *trans, GstBuffer *outbuf, GstMeta *meta,
                                             GstBuffer *inbuf);
static void gst_cuda_conv_before_transform(GstBaseTransform *trans, GstBuffer *buffer);
static GstFlowReturn gst_cuda_conv_prepare_output_buffer(GstBaseTransform *trans, GstBuffer *inbuf, GstBuffer **outbuf);
static GstFlowReturn gst_cuda_conv_submit_input_buffer(GstBaseTransform *trans, gboolean is_discont, GstBuffer *input);
static GstFlowReturn gst_cuda_conv_generate_output(GstBaseTransform *trans, GstBuffer **outbuf);
static GstFlowReturn gst_cuda_conv_transform(GstBaseTransform *trans, GstBuffer *inbuf, GstBuffer *outbuf);

static GstFlowReturn drain(GstCudaConv *self);
static void discard(GstCudaConv *self);
static Flight current_flight(GstCudaConvPrivate *priv);
static void announce_latency(GstCudaConv *self);
static void look_for_liveness(GstCudaConv *self);

#define gst_cuda_conv_parent_class parent_class
G_DEFINE_TYPE(GstCudaConv, gst_cuda_conv, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(cudaconv, "cudaconv", GST_RANK_NONE, GST_TYPE_CUDA_CONV)

static void install_properties(GObjectClass *klass) {
  const auto flags = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING);
  const auto animated = static_cast<GParamFlags>(flags | GST_PARAM_CONTROLLABLE);
  const auto ready = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
  const FilterSettings defaults;

  const auto add_enum = [klass](guint id, const char *name, const char *nick, const char *blurb, GType type,
                                auto default_value, GParamFlags f) {
    g_object_class_install_property(klass, id,
                                    g_param_spec_enum(name, nick, blurb, type, static_cast<gint>(default_value), f));
    gst_type_mark_as_plugin_api(type, static_cast<GstPluginAPIFlags>(0));
  };
  const auto add_uint = [klass](guint id, const char *name, const char *nick, const char *blurb, guint min, guint max,
                                guint default_value, GParamFlags f) {
    g_object_class_install_property(klass, id, g_param_spec_uint(name, nick, blurb, min, max, default_value, f));
  };
  const auto add_double = [klass](guint id, const char *name, const char *nick, const char *blurb, gdouble min,
                                  gdouble max, gdouble default_value, GParamFlags f) {
    g_object_class_install_property(klass, id, g_param_spec_double(name, nick, blurb, min, max, default_value, f));
  };
  const auto add_bool = [klass](guint id, const char *name, const char *nick, const char *blurb, bool default_value,
                                GParamFlags f) {
    g_object_class_install_property(klass, id, g_param_spec_boolean(name, nick, blurb, default_value, f));
  };
  const auto add_string = [klass](guint id, const char *name, const char *nick, const char *blurb, GParamFlags f) {
    g_object_class_install_property(klass, id, g_param_spec_string(name, nick, blurb, nullptr, f));
  };

  add_enum(PROP_MASK, "mask", "Mask", "What to do with each frame.", GST_TYPE_CUDA_CONV_MASK, defaults.mask, flags);
  add_uint(PROP_SIZE, "size", "Size",
           "Side of box, gauss, unsharp, the morphology masks (up to 127) and median (up to 7), in pixels, odd. 0 is 3 "
           "for morphology and median, as sigma needs it for gauss and unsharp, else 5.",
           0, 127, defaults.size, animated);
  add_double(
      PROP_SIGMA, "sigma", "Sigma",
      "Standard deviation of gauss and unsharp in pixels. 0 is 0.3*((size-1)*0.5-1)+0.8. With size=0 the side is "
      "2*ceil(3*sigma)+1.",
      0, 100, defaults.sigma, animated);
  add_double(PROP_AMOUNT, "amount", "Amount", "Strength of unsharp: source + amount * (source - blurred source).", -100,
             100, defaults.amount, animated);
  /**
   * GstCudaConv:coefficients:
   *
   * A mask row by row. Rows end in a semicolon or a newline, numbers are separated by blanks or commas:
   * `"1 2 1; 2 4 2; 1 2 1"`. One row of 9, 25 or 49 numbers is taken as a square.
   */
  add_string(
      PROP_COEFFICIENTS, "coefficients", "Coefficients",
      "The mask of mask=custom, and the structuring element of shape=custom (its members are not 0). Rows end in "
      "';' or a newline, numbers are separated by blanks or commas: \"1 2 1; 2 4 2; 1 2 1\". One row of 9, 25 or "
      "49 numbers is taken as a square. Both sides are odd, 31 at most.",
      flags);
  add_enum(PROP_SHAPE, "shape", "Shape", "Structuring element of the morphology masks.", GST_TYPE_CUDA_CONV_SHAPE,
           defaults.shape, flags);
  add_double(
      PROP_DIVISOR, "divisor", "Divisor",
      "What the sum is divided by. 0 is the mask's own divisor; that of mask=custom is the sum of its coefficients, "
      "or 1 where that is 0.",
      -1e9, 1e9, defaults.divisor, animated);
  add_double(PROP_BIAS, "bias", "Bias",
             "Added to the result, as a fraction of the full range: 0.5 is mid-grey at every bit depth.", -1, 1,
             defaults.bias, animated);
  add_enum(PROP_NEGATIVE, "negative", "Negative", "What becomes of negative results.", GST_TYPE_CUDA_CONV_NEGATIVE,
           defaults.negative, flags);
  add_enum(PROP_MAGNITUDE, "magnitude", "Magnitude",
           "How sobel, scharr, prewitt and roberts join the two parts of the gradient.", GST_TYPE_CUDA_CONV_MAGNITUDE,
           defaults.magnitude, flags);
  add_uint(PROP_ITERATIONS, "iterations", "Iterations",
           "How often the filter runs over each frame, rounding to the format in between, as so many elements in a row "
           "would. For open and close: so many erosions, then so many dilations, or the other way round.",
           1, 1000, defaults.iterations, animated);
  add_enum(PROP_BORDER, "border", "Border", "What the mask reads outside the frame.", GST_TYPE_CUDA_CONV_BORDER,
           defaults.border, flags);
  /**
   * GstCudaConv:border-color:
   *
   * Full-range RGB. It is converted to the frame's own colour matrix, range and depth.
   */
  add_uint(PROP_BORDER_COLOR, "border-color", "Border colour",
           "What border=constant reads outside the frame, as 0xAARRGGBB; converted to the frame's own colour space and "
           "range.",
           0, G_MAXUINT32, Settings().border_color, flags);
  add_enum(PROP_CHROMA, "chroma", "Chroma", "What becomes of the chroma of YUV frames.", GST_TYPE_CUDA_CONV_CHROMA,
           defaults.chroma, flags);
  add_enum(PROP_ALPHA, "alpha", "Alpha", "What becomes of alpha.", GST_TYPE_CUDA_CONV_ALPHA, defaults.alpha, flags);
  add_string(
      PROP_ROI, "roi", "Regions of interest",
      "Rectangles \"x,y,w,h; x,y,w,h\" in pixels of the frame: only these are filtered, the rest is copied. What "
      "lies outside the frame is cut off. Where this is not set and roi-meta is off, the whole frame is filtered.",
      flags);
  /**
   * GstCudaConv:roi-meta:
   *
   * The rectangles come with each buffer, as detectors and trackers attach them; a buffer without any is only copied.
   */
  add_bool(PROP_ROI_META, "roi-meta", "Regions from metas",
           "Filter only the rectangles of the GstVideoRegionOfInterestMetas that come with each frame, and those of "
           "roi. A frame without either has no regions.",
           false, flags);
  add_string(PROP_ROI_TYPE, "roi-type", "Types of metas",
             "With roi-meta, the roi_type that metas have to have, or several separated by commas, such as "
             "\"face,plate\". Not set: any.",
             flags);
  add_enum(PROP_ROI_SHAPE, "roi-shape", "Shape of regions", "What of each rectangle is filtered.",
           GST_TYPE_CUDA_CONV_ROI_SHAPE, RoiSettings().shape, flags);
  add_bool(PROP_ROI_INVERT, "roi-invert", "Invert regions",
           "Filter everything but the regions. Has no effect where roi is not set and roi-meta is off.", false, flags);
  add_enum(PROP_BACKEND, "backend", "Backend", "What filters the frames. The results are the same.",
           GST_TYPE_CUDA_CONV_BACKEND, DEFAULT_BACKEND, ready);
  g_object_class_install_property(
      klass, PROP_CUDA_DEVICE_ID,
      g_param_spec_int("cuda-device-id", "CUDA device", "The GPU to use. -1 is that of the neighbours, else the first.",
                       -1, G_MAXINT, DEFAULT_CUDA_DEVICE_ID, ready));
  add_enum(PROP_METHOD, "method", "Method",
           "How the GPU goes about it. The results are the same; a mask that the method cannot do is an error.",
           GST_TYPE_CUDA_CONV_METHOD, defaults.method, flags);
  /**
   * GstCudaConv:frames-in-flight:
   *
   * With n frames in flight, n - 1 of them are held back until more follow, or an event does. That is the latency which
   * the element reports, in frames of the caps' framerate. Frames that leave in CUDA memory are not held back where
   * that memory belongs to a CUDA stream (GStreamer 1.24 and newer), and those that the CPU filters never are. Of
   * a limited buffer pool of upstream's no more than half is in flight.
   */
  add_uint(PROP_FRAMES_IN_FLIGHT, "frames-in-flight", "Frames in flight",
           "Frames that may be on the GPU at once; 0 = as many as pay off, and none held back in a live pipeline. "
           "Latency is reported.",
           0, MAX_FRAMES_IN_FLIGHT, DEFAULT_FRAMES_IN_FLIGHT, ready);
  /**
   * GstCudaConv:stats:
   *
   * A structure `application/x-cudaconv-stats` of what happened since the element was started:
   *
   * - `frames` (guint64): frames filtered
   * - `backend` (string): in use, `cuda` or `cpu`
   * - `method` (string): in use, as a nick of #GstCudaConv:method; with `auto` also `sliding`, `composite`,
   * `extremum`, `element`, `box`, `interleaved` or `tensor`, kernels that it alone selects. Of a filter of several
   * passes that of the first one
   * - `device-time` (guint64): nanoseconds that the GPU spent on the frames
   * - `bytes-uploaded`, `bytes-downloaded` (guint64): copied to and from the GPU
   * - `bytes-staged` (guint64): of these, copied by the CPU as well, since the GPU cannot copy from or to where they
   * lay
   * - `failovers` (guint): how often the CPU had to take over
   */
  g_object_class_install_property(
      klass, PROP_STATS,
      g_param_spec_boxed(
          "stats", "Statistics",
          "Since the start: frames, backend and method in use, device-time in nanoseconds, bytes-uploaded, "
          "bytes-downloaded, bytes-staged, failovers to the CPU.",
          GST_TYPE_STRUCTURE, static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

static void gst_cuda_conv_class_init(GstCudaConvClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS(klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS(klass);

  GST_DEBUG_CATEGORY_INIT(gst_cuda_conv_debug, "cudaconv", 0, "2D convolution and morphology");

  object_class->finalize = gst_cuda_conv_finalize;
  object_class->set_property = gst_cuda_conv_set_property;
  object_class->get_property = gst_cuda_conv_get_property;
  install_properties(object_class);

  gst_element_class_set_static_metadata(element_class, "CUDA convolution filter", "Filter/Effect/Video/Hardware",
                                        "Blurs, sharpens, finds edges, and does morphology and any convolution up to "
                                        "31x31, on NVIDIA GPUs and on the CPU",
                                        "The cudaconv developers");
  GstCaps *caps = template_caps();
  gst_element_class_add_pad_template(element_class, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
  gst_element_class_add_pad_template(element_class, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
  element_class->change_state = GST_DEBUG_FUNCPTR(gst_cuda_conv_change_state);
  element_class->set_context = GST_DEBUG_FUNCPTR(gst_cuda_conv_set_context);

  trans_class->start = GST_DEBUG_FUNCPTR(gst_cuda_conv_start);
  trans_class->stop = GST_DEBUG_FUNCPTR(gst_cuda_conv_stop);
  trans_class->transform_caps = GST_DEBUG_FUNCPTR(gst_cuda_conv_transform_caps);
  trans_class->fixate_caps = GST_DEBUG_FUNCPTR(gst_cuda_conv_fixate_caps);
  trans_class->get_unit_size = GST_DEBUG_FUNCPTR(gst_cuda_conv_get_unit_size);
  trans_class->set_caps = GST_DEBUG_FUNCPTR(gst_cuda_conv_set_caps);
  trans_class->sink_event = GST_DEBUG_FUNCPTR(gst_cuda_conv_sink_event);
  trans_class->query = GST_DEBUG_FUNCPTR(gst_cuda_conv_query);
  trans_class->propose_allocation = GST_DEBUG_FUNCPTR(gst_cuda_conv_propose_allocation);
  trans_class->decide_allocation = GST_DEBUG_FUNCPTR(gst_cuda_conv_decide_allocation);
  trans_class->filter_meta = GST_DEBUG_FUNCPTR(gst_cuda_conv_filter_meta);
  trans_class->transform_meta = GST_DEBUG_FUNCPTR(gst_cuda_conv_transform_meta);
  trans_class->before_transform = GST_DEBUG_FUNCPTR(gst_cuda_conv_before_transform);
  trans_class->prepare_output_buffer = GST_DEBUG_FUNCPTR(gst_cuda_conv_prepare_output_buffer);
  trans_class->submit_input_buffer = GST_DEBUG_FUNCPTR(gst_cuda_conv_submit_input_buffer);
  trans_class->generate_output = GST_DEBUG_FUNCPTR(gst_cuda_conv_generate_output);
  trans_class->transform = GST_DEBUG_FUNCPTR(gst_cuda_conv_transform);
}

static void gst_cuda_conv_init(GstCudaConv *self) {
  self->priv = new GstCudaConvPrivate();
  gst_base_transform_set_qos_enabled(GST_BASE_TRANSFORM(self), TRUE);
  // A gap buffer is filtered like any other, and remains one.
  gst_base_transform_set_gap_aware(GST_BASE_TRANSFORM(self), TRUE);
}

static void gst_cuda_conv_finalize(GObject *object) {
  delete GST_CUDA_CONV(object)->priv;
  G_OBJECT_CLASS(parent_class)->finalize(object);
}

/* properties */

static void gst_cuda_conv_set_property(GObject *object, guint id, const GValue *value, GParamSpec *pspec) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(object)->priv;
  std::lock_guard<std::mutex> guard(priv->lock);
  Settings &settings = priv->settings;
  FilterSettings &filter = settings.filter;

  const auto set = [priv](auto &field, auto wanted) {
    if (field == wanted) return;
    field = wanted;
    priv->serial++;
  };
  const auto set_enum = [&set, value](auto &field) {
    set(field, static_cast<std::remove_reference_t<decltype(field)>>(g_value_get_enum(value)));
  };
  const auto set_string = [&set, value](std::string &field) {
    const gchar *text = g_value_get_string(value);
    set(field, std::string(text ? text : ""));
  };

  switch (id) {
    case PROP_MASK:
      set_enum(filter.mask);
      break;
    case PROP_SIZE:
      set(filter.size, static_cast<int>(g_value_get_uint(value)));
      break;
    case PROP_SIGMA:
      set(filter.sigma, g_value_get_double(value));
      break;
    case PROP_AMOUNT:
      set(filter.amount, g_value_get_double(value));
      break;
    case PROP_COEFFICIENTS:
      set_string(settings.coefficients);
      break;
    case PROP_SHAPE:
      set_enum(filter.shape);
      break;
    case PROP_DIVISOR:
      set(filter.divisor, g_value_get_double(value));
      break;
    case PROP_BIAS:
      set(filter.bias, g_value_get_double(value));
      break;
    case PROP_NEGATIVE:
      set_enum(filter.negative);
      break;
    case PROP_MAGNITUDE:
      set_enum(filter.magnitude);
      break;
    case PROP_ITERATIONS:
      set(filter.iterations, static_cast<int>(g_value_get_uint(value)));
      break;
    case PROP_BORDER:
      set_enum(filter.border);
      break;
    case PROP_BORDER_COLOR:
      set(settings.border_color, g_value_get_uint(value));
      break;
    case PROP_CHROMA:
      set_enum(filter.chroma);
      break;
    case PROP_ALPHA:
      set_enum(filter.alpha);
      break;
    case PROP_ROI:
      set_string(settings.roi.rectangles);
      break;
    case PROP_ROI_META:
      set(settings.roi.meta, g_value_get_boolean(value) != FALSE);
      break;
    case PROP_ROI_TYPE:
      set_string(settings.roi.types);
      break;
    case PROP_ROI_SHAPE:
      set_enum(settings.roi.shape);
      break;
    case PROP_ROI_INVERT:
      set(settings.roi.invert, g_value_get_boolean(value) != FALSE);
      break;
    case PROP_BACKEND:
      priv->backend = static_cast<BackendChoice>(g_value_get_enum(value));
      break;
    case PROP_CUDA_DEVICE_ID:
      priv->device_id = g_value_get_int(value);
      break;
    case PROP_METHOD:
      set_enum(filter.method);
      break;
    case PROP_FRAMES_IN_FLIGHT:
      priv->frames_in_flight = g_value_get_uint(value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
      break;
  }
}

// Call with the lock held.
static GstStructure *make_stats(const GstCudaConvPrivate *priv) {
  const StreamContext *context = priv->context.get();
  const char *method = nullptr;
  if (context) method = priv->totals.kernels ? priv->totals.kernels : method_nick(context->method);
  // clang-format off
  return gst_structure_new(
      "application/x-cudaconv-stats",
      "frames", G_TYPE_UINT64, static_cast<guint64>(priv->totals.frames),
      "backend", G_TYPE_STRING, context ? context->engine->backend->name() : nullptr,
      "method", G_TYPE_STRING, method,
      "device-time", G_TYPE_UINT64, static_cast<guint64>(priv->totals.device_ns),
      "bytes-uploaded", G_TYPE_UINT64, static_cast<guint64>(priv->totals.bytes_uploaded),
      "bytes-downloaded", G_TYPE_UINT64, static_cast<guint64>(priv->totals.bytes_downloaded),
      "bytes-staged", G_TYPE_UINT64, static_cast<guint64>(priv->totals.bytes_staged),
      "failovers", G_TYPE_UINT, priv->failovers,
      nullptr);
  // clang-format on
}

static void gst_cuda_conv_get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(object)->priv;
  std::lock_guard<std::mutex> guard(priv->lock);
  const Settings &settings = priv->settings;
  const FilterSettings &filter = settings.filter;
  const auto get_enum = [value](auto field) { g_value_set_enum(value, static_cast<gint>(field)); };
  const auto get_string = [value](const std::string &field) {
    g_value_set_string(value, field.empty() ? nullptr : field.c_str());
  };

  switch (id) {
    case PROP_MASK:
      get_enum(filter.mask);
      break;
    case PROP_SIZE:
      g_value_set_uint(value, filter.size);
      break;
    case PROP_SIGMA:
      g_value_set_double(value, filter.sigma);
      break;
    case PROP_AMOUNT:
      g_value_set_double(value, filter.amount);
      break;
    case PROP_COEFFICIENTS:
      get_string(settings.coefficients);
      break;
    case PROP_SHAPE:
      get_enum(filter.shape);
      break;
    case PROP_DIVISOR:
      g_value_set_double(value, filter.divisor);
      break;
    case PROP_BIAS:
      g_value_set_double(value, filter.bias);
      break;
    case PROP_NEGATIVE:
      get_enum(filter.negative);
      break;
    case PROP_MAGNITUDE:
      get_enum(filter.magnitude);
      break;
    case PROP_ITERATIONS:
      g_value_set_uint(value, filter.iterations);
      break;
    case PROP_BORDER:
      get_enum(filter.border);
      break;
    case PROP_BORDER_COLOR:
      g_value_set_uint(value, settings.border_color);
      break;
    case PROP_CHROMA:
      get_enum(filter.chroma);
      break;
    case PROP_ALPHA:
      get_enum(filter.alpha);
      break;
    case PROP_ROI:
      get_string(settings.roi.rectangles);
      break;
    case PROP_ROI_META:
      g_value_set_boolean(value, settings.roi.meta);
      break;
    case PROP_ROI_TYPE:
      get_string(settings.roi.types);
      break;
    case PROP_ROI_SHAPE:
      get_enum(settings.roi.shape);
      break;
    case PROP_ROI_INVERT:
      g_value_set_boolean(value, settings.roi.invert);
      break;
    case PROP_BACKEND:
      get_enum(priv->backend);
      break;
    case PROP_CUDA_DEVICE_ID:
      g_value_set_int(value, priv->device_id);
      break;
    case PROP_METHOD:
      get_enum(filter.method);
      break;
    case PROP_FRAMES_IN_FLIGHT:
      g_value_set_uint(value, priv->frames_in_flight);
      break;
    case PROP_STATS:
      g_value_take_boxed(value, make_stats(priv));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
      break;
  }
}

/* errors */

static void post_error(GstCudaConv *self, const Error &e) {
  switch (e.kind()) {
    case Error::Kind::Settings:
      GST_ELEMENT_ERROR(self, LIBRARY, SETTINGS, ("%s", e.what()), (nullptr));
      break;
    case Error::Kind::NoDevice:
      GST_ELEMENT_ERROR(self, RESOURCE, NOT_FOUND, ("%s", e.what()), (nullptr));
      break;
    case Error::Kind::Device:
      GST_ELEMENT_ERROR(self, RESOURCE, FAILED, ("%s", e.what()), (nullptr));
      break;
  }
}

/* device and backend */

static void release_device(GstCudaConv *self) {
  GstCudaConvPrivate *priv = self->priv;
  priv->chosen = false;
  priv->cuda_engine = nullptr;
  priv->device = nullptr;
}

static void release_backend(GstCudaConv *self) {
  release_device(self);
  self->priv->finder->close();
}

// The bus is full, and the threads of other elements wait, well before all processors copy.
static ParallelFor make_staging() {
  return make_parallel_for(std::min(worker_count(), 8));
}

// False, with an error message posted, where backend=cuda finds no device.
static bool choose_backend(GstCudaConv *self) {
  GstCudaConvPrivate *priv = self->priv;
  BackendChoice choice;
  gint device_id;
  {
    std::lock_guard<std::mutex> guard(priv->lock);
    choice = priv->backend;
    device_id = priv->device_id;
  }
  if (priv->chosen && priv->chosen_backend == choice && priv->chosen_device_id == device_id) return true;

  // The context that the application may have set before stays, but for one whose device failed.
  if (std::exchange(priv->device_failed, false))
    release_backend(self);
  else
    release_device(self);
  if (choice != BackendChoice::Cpu) {
    std::string why;
    try {
      priv->device = priv->finder->open(GST_ELEMENT(self), device_id, &why);
      if (priv->device) priv->cuda_engine = std::make_shared<Engine>(priv->device->make_backend(make_staging()), true);
    } catch (const Error &e) {
      why = e.what();
    }
    if (!priv->cuda_engine && choice == BackendChoice::Cuda) {
      release_backend(self);
      GST_ELEMENT_ERROR(self, RESOURCE, NOT_FOUND,
                        ("backend=cuda found no CUDA device that it can use: %s", why.c_str()), (nullptr));
      return false;
    }
    if (!priv->cuda_engine)
      GST_ELEMENT_INFO(self, RESOURCE, NOT_FOUND, ("Frames are filtered on the CPU: %s", why.c_str()),
                       ("Frames are filtered on the CPU: %s", why.c_str()));  // gst-launch-1.0 shows only this
  }
  priv->chosen = true;
  priv->chosen_backend = choice;
  priv->chosen_device_id = device_id;
  return true;
}

static std::shared_ptr<Engine> make_cpu_engine(const GstVideoInfo &info) {
  // To hand work to another thread pays off from about this many pixels on.
  constexpr int kPixelsPerThread = 1 << 15;
  const gint64 pixels = static_cast<gint64>(GST_VIDEO_INFO_WIDTH(&info)) * GST_VIDEO_INFO_HEIGHT(&info);
  const int threads = static_cast<int>(std::clamp<gint64>(pixels / kPixelsPerThread, 1, worker_count()));
  return std::make_shared<Engine>(make_cpu_backend(make_parallel_for(threads), threads), false);
}

static GstStateChangeReturn gst_cuda_conv_change_state(GstElement *element, GstStateChange transition) {
  GstCudaConv *self = GST_CUDA_CONV(element);
  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !choose_backend(self)) return GST_STATE_CHANGE_FAILURE;
  const GstStateChangeReturn ret = GST_ELEMENT_CLASS(parent_class)->change_state(element, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL) release_backend(self);
  return ret;
}

static void gst_cuda_conv_set_context(GstElement *element, GstContext *context) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(element)->priv;
  gint device_id;
  {
    std::lock_guard<std::mutex> guard(priv->lock);
    device_id = priv->device_id;
  }
  priv->finder->set_context(element, context, device_id);
  GST_ELEMENT_CLASS(parent_class)->set_context(element, context);
}

static gboolean gst_cuda_conv_start(GstBaseTransform *trans) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  {
    std::lock_guard<std::mutex> guard(self->priv->lock);
    self->priv->totals = BackendStats();
    self->priv->failovers = 0;
  }
  self->priv->caps_error.clear();
  self->priv->memory_error.clear();
  // The choice was made on the way to READY, but the properties may have changed since, or the device have failed.
  return choose_backend(self);
}

static gboolean gst_cuda_conv_stop(GstBaseTransform *trans) {
  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  discard(GST_CUDA_CONV(trans));
  std::shared_ptr<const StreamContext> context;  // is destroyed after the lock is released
  std::lock_guard<std::mutex> guard(priv->lock);
  context.swap(priv->context);
  return TRUE;
}

/* caps */

static GstCaps *gst_cuda_conv_transform_caps(GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                             GstCaps *filter) {
  GstCaps *result = with_either_memory(caps);
  if (filter) {
    GstCaps *filtered = gst_caps_intersect_full(filter, result, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(result);
    result = filtered;
  }
  GST_DEBUG_OBJECT(trans, "%s caps %" GST_PTR_FORMAT " become %" GST_PTR_FORMAT,
                   direction == GST_PAD_SINK ? "sink" : "src", caps, result);
  return result;
}

// Keeps to the memory of `caps` where it can: the peer's order says nothing about what it costs to move a frame.
static GstCaps *gst_cuda_conv_fixate_caps(GstBaseTransform *, GstPadDirection, GstCaps *caps, GstCaps *othercaps) {
  const GstCapsFeatures *memory = gst_caps_get_features(caps, 0);
  for (guint i = 0; i < gst_caps_get_size(othercaps); i++) {
    if (!gst_caps_features_is_equal(gst_caps_get_features(othercaps, i), memory)) continue;
    GstCaps *same = gst_caps_copy_nth(othercaps, i);
    gst_caps_unref(othercaps);
    return gst_caps_fixate(same);
  }
  return gst_caps_fixate(othercaps);
}

static gboolean gst_cuda_conv_get_unit_size(GstBaseTransform *trans, GstCaps *caps, gsize *size) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) {
    GST_WARNING_OBJECT(trans, "these are no video caps: %" GST_PTR_FORMAT, caps);
    return FALSE;
  }
  *size = GST_VIDEO_INFO_SIZE(&info);
  return TRUE;
}

static void warn_of_settings(GstCudaConv *self, const Error &e) {
  GST_ELEMENT_WARNING(self, LIBRARY, SETTINGS, ("%s", e.what()), ("the last good settings stay in force"));
}

static void install_context(GstCudaConvPrivate *priv, std::shared_ptr<const StreamContext> context, guint serial) {
  std::lock_guard<std::mutex> guard(priv->lock);
  priv->context.swap(context);
  priv->tried_serial = serial;
}

static gboolean gst_cuda_conv_set_caps(GstBaseTransform *trans, GstCaps *incaps, GstCaps *outcaps) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  GstCudaConvPrivate *priv = self->priv;
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, incaps)) {
    GST_ERROR_OBJECT(self, "these are no video caps: %" GST_PTR_FORMAT, incaps);
    return FALSE;
  }
  const bool cuda_in = is_cuda_caps(incaps), cuda_out = is_cuda_caps(outcaps);
  priv->drained = drain(self);

  Settings settings;
  guint serial;
  std::shared_ptr<const StreamContext> previous;
  bool rejected;  // these settings, while playing
  {
    std::lock_guard<std::mutex> guard(priv->lock);
    settings = priv->settings;
    serial = priv->serial;
    previous = priv->context;
    rejected = previous && serial == priv->tried_serial;
  }
  try {
    const std::shared_ptr<Engine> engine = priv->cuda_engine ? priv->cuda_engine : make_cpu_engine(info);
    std::shared_ptr<const StreamContext> context;
    try {
      context = std::make_shared<const StreamContext>(info, cuda_in, cuda_out, engine, settings);
    } catch (const Error &e) {
      if (!previous || e.kind() != Error::Kind::Settings) throw;
      context = std::make_shared<const StreamContext>(info, cuda_in, cuda_out, engine, previous->settings);
      if (!rejected) warn_of_settings(self, e);
    }
    gst_base_transform_set_passthrough(trans, context->passthrough());
    install_context(priv, std::move(context), serial);
    look_for_liveness(self);
    announce_latency(self);
    priv->caps_error.clear();
    return TRUE;
  } catch (const Error &e) {
    if (priv->caps_error != e.what()) post_error(self, e);
    priv->caps_error = e.what();
  }
  return FALSE;
}

/* latency */

// With the lock held.
static Flight flight_of(const GstCudaConvPrivate *priv) {
  Flight flight;
  if (!priv->context || !priv->context->engine->cuda) return flight;
  flight.frames = priv->frames_in_flight ? priv->frames_in_flight : kFramesThatPay;
  if (priv->context->cuda_out && priv->device->is_stream_ordered()) return flight;
  if (!priv->frames_in_flight && priv->live) flight.frames = 1;
  flight.held = flight.frames - 1;
  return flight;
}

static Flight current_flight(GstCudaConvPrivate *priv) {
  std::lock_guard<std::mutex> guard(priv->lock);
  return flight_of(priv);
}

// With the lock held.
static GstClockTime latency_of(const GstCudaConvPrivate *priv) {
  if (!priv->context || priv->context->passthrough()) return 0;
  return flight_of(priv).held * priv->context->buffer_duration();
}

// Posts a message where the latency is another one than before.
static void announce_latency(GstCudaConv *self) {
  GstCudaConvPrivate *priv = self->priv;
  {
    std::lock_guard<std::mutex> guard(priv->lock);
    const GstClockTime latency = latency_of(priv);
    if (priv->latency == latency) return;
    priv->latency = latency;
  }
  gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
}

static void look_for_liveness(GstCudaConv *self) {
  const Ref<GstQuery> query(gst_query_new_latency());
  gboolean live = TRUE;  // as far as anybody knows
  if (gst_pad_peer_query(GST_BASE_TRANSFORM_SINK_PAD(self), query.get()))
    gst_query_parse_latency(query.get(), &live, nullptr, nullptr);
  std::lock_guard<std::mutex> guard(self->priv->lock);
  self->priv->live = live;
}

static gboolean answer_latency_query(GstCudaConv *self, GstQuery *query) {
  if (!gst_pad_peer_query(GST_BASE_TRANSFORM_SINK_PAD(self), query)) return FALSE;
  gboolean live;
  GstClockTime min, max;
  gst_query_parse_latency(query, &live, &min, &max);
  GstCudaConvPrivate *priv = self->priv;
  std::lock_guard<std::mutex> guard(priv->lock);
  priv->live = live;
  const GstClockTime latency = latency_of(priv);
  if (GST_CLOCK_TIME_IS_VALID(max)) max += latency;
  gst_query_set_latency(query, live, min + latency, max);
  return TRUE;
}

/* queries and allocation */

static gboolean gst_cuda_conv_query(GstBaseTransform *trans, GstPadDirection direction, GstQuery *query) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_CONTEXT:
      if (self->priv->finder->answer_context_query(GST_ELEMENT(trans), query)) return TRUE;
      break;
    case GST_QUERY_LATENCY:
      if (direction == GST_PAD_SRC) return answer_latency_query(self, query);
      break;
    case GST_QUERY_ALLOCATION:
    case GST_QUERY_DRAIN:
      // Upstream may be about to replace its buffers.
      if (direction == GST_PAD_SINK) self->priv->drained = drain(self);
      break;
    default:
      break;
  }
  return GST_BASE_TRANSFORM_CLASS(parent_class)->query(trans, direction, query);
}

// Of CUDA memory where there is a device, else of system memory. Transfer full.
static GstBufferPool *new_pool(Device *device) {
  return device ? device->new_pool() : gst_video_buffer_pool_new();
}

// For the element's own pools of system memory. Nullptr: GStreamer's own.
static Ref<GstAllocator> system_allocator(const GstCudaConvPrivate *priv) {
  return Ref<GstAllocator>(priv->cuda_engine ? new_pinned_allocator(priv->device) : nullptr);
}

// Prepares the pool for `caps` and says how large its buffers are, at least `*size`. `device`, if any, is that of the
// pool's memory; `allocator`, if any, provides that.
static bool configure_pool(GstBufferPool *pool, Device *device, GstAllocator *allocator, GstCaps *caps, guint *size,
                           guint min, guint max) {
  GstStructure *config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps, *size, min, max);
  if (gst_buffer_pool_has_option(pool, GST_BUFFER_POOL_OPTION_VIDEO_META))
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (device) device->configure_pool(config);
  if (allocator) gst_buffer_pool_config_set_allocator(config, allocator, nullptr);
  if (!gst_buffer_pool_set_config(pool, config)) {
    // The pool has changed what it was asked for into what it can do.
    config = gst_buffer_pool_get_config(pool);
    if (!gst_buffer_pool_config_validate_params(config, caps, *size, min, max)) {
      gst_structure_free(config);
      return false;
    }
    if (!gst_buffer_pool_set_config(pool, config)) return false;
  }
  config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_get_params(config, nullptr, size, nullptr, nullptr);
  gst_structure_free(config);
  return true;
}

// Whoever makes use of the query's pool configures it again, with the allocator that the query has.
static void set_allocator(GstQuery *query, GstAllocator *allocator) {
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  if (gst_query_get_n_allocation_params(query) > 0) {
    gst_query_parse_nth_allocation_param(query, 0, nullptr, &params);
    gst_query_set_nth_allocation_param(query, 0, allocator, &params);
  } else {
    gst_query_add_allocation_param(query, allocator, &params);
  }
}

static gboolean gst_cuda_conv_propose_allocation(GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query) {
  if (!GST_BASE_TRANSFORM_CLASS(parent_class)->propose_allocation(trans, decide_query, query)) return FALSE;
  if (!decide_query) return TRUE;  // passthrough: downstream has answered

  GstCudaConvPrivate *priv = GST_CUDA_CONV(trans)->priv;
  GstCaps *caps;
  gboolean need_pool;
  GstVideoInfo info;
  gst_query_parse_allocation(query, &caps, &need_pool);
  if (!caps || !gst_video_info_from_caps(&info, caps)) return FALSE;

  const bool cuda = is_cuda_caps(caps);
  Device *device = cuda ? priv->device.get() : nullptr;
  if (need_pool && (device || !cuda)) {
    const guint frames = current_flight(priv).frames, min = frames > 1 ? frames + 1 : 0;
    const Ref<GstAllocator> allocator = cuda ? nullptr : system_allocator(priv);
    GstBufferPool *pool = new_pool(device);
    guint size = GST_VIDEO_INFO_SIZE(&info);
    if (pool && configure_pool(pool, device, allocator.get(), caps, &size, min, 0))
      gst_query_add_allocation_pool(query, pool, size, min, 0);
    if (allocator) set_allocator(query, allocator.get());
    gst_clear_object(&pool);
  }
  // The parent's decide_allocation() has removed it as tied to memory, which it is not: we read any strides.
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  return TRUE;
}

static gboolean gst_cuda_conv_decide_allocation(GstBaseTransform *trans, GstQuery *query) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  GstCudaConvPrivate *priv = self->priv;
  GstCaps *caps;
  GstVideoInfo info;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (!caps || !gst_video_info_from_caps(&info, caps)) return FALSE;

  Device *device = nullptr;
  if (is_cuda_caps(caps)) {
    // Also the CPU backend has to deliver CUDA memory where downstream takes nothing else.
    std::string why = "it does not offer CUDA memory";
    if (!priv->device) priv->device = priv->finder->open(GST_ELEMENT(self), priv->chosen_device_id, &why);
    device = priv->device.get();
    if (!device) {
      if (priv->memory_error != why)
        GST_ELEMENT_ERROR(self, RESOURCE, NOT_FOUND,
                          ("CUDA memory was asked for, but no CUDA device can be used: %s", why.c_str()), (nullptr));
      priv->memory_error = why;
      return FALSE;
    }
    priv->memory_error.clear();
  }

  const bool proposed = gst_query_get_n_allocation_pools(query) > 0;
  GstBufferPool *pool = nullptr;
  guint size = 0, min = 0, max = 0;
  if (proposed) gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &min, &max);
  size = MAX(size, GST_VIDEO_INFO_SIZE(&info));
  min += current_flight(priv).held;
  if (max) min = MIN(min, max);

  const Ref<GstAllocator> allocator = device ? nullptr : system_allocator(priv);
  const bool suits = pool && (device ? device->owns(pool) : !allocator || !is_plain_pool(pool));
  if (pool && (!suits || !configure_pool(pool, device, nullptr, caps, &size, min, max))) {
    GST_DEBUG_OBJECT(self, "downstream's %" GST_PTR_FORMAT " does not suit", pool);
    gst_clear_object(&pool);
  }
  if (!pool) {
    pool = new_pool(device);
    if (!pool || !configure_pool(pool, device, allocator.get(), caps, &size, min, max)) {
      gst_clear_object(&pool);
      GST_ELEMENT_ERROR(self, RESOURCE, SETTINGS, (nullptr),
                        ("no buffer pool could be made for %" GST_PTR_FORMAT, caps));
      return FALSE;
    }
    if (allocator) set_allocator(query, allocator.get());
  }
  if (proposed)
    gst_query_set_nth_allocation_pool(query, 0, pool, size, min, max);
  else
    gst_query_add_allocation_pool(query, pool, size, min, max);
  gst_object_unref(pool);
  return GST_BASE_TRANSFORM_CLASS(parent_class)->decide_allocation(trans, query);
}

/* metas */

// Nothing moves, and neither sizes nor the meaning of colours change: whatever is not tied to the memory stays true.
static bool keeps_meta(GType api) {
  static const gchar *const kept[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_ORIENTATION_STR,
                                      GST_META_TAG_VIDEO_SIZE_STR, GST_META_TAG_VIDEO_COLORSPACE_STR, nullptr};
  const gchar *const *tags = gst_meta_api_type_get_tags(api);
  for (; tags && *tags; tags++)
    if (!g_strv_contains(kept, *tags)) return false;
  return true;
}

// What downstream wants, upstream may send.
static gboolean gst_cuda_conv_filter_meta(GstBaseTransform *, GstQuery *, GType api, const GstStructure *) {
  return keeps_meta(api);
}

static gboolean gst_cuda_conv_transform_meta(GstBaseTransform *, GstBuffer *, GstMeta *meta, GstBuffer *) {
  return keeps_meta(meta->info->api);
}

/* frames */

// Makes a change of the settings take effect.
static void update_settings(GstCudaConv *self) {
  GstCudaConvPrivate *priv = self->priv;
  GstBaseTransform *trans = GST_BASE_TRANSFORM(self);
  std::shared_ptr<const StreamContext> context;
  Settings settings;
  guint serial;
  {
    std::lock_guard<std::mutex> guard(priv->lock);
    if (!priv->context || priv->serial == priv->tried_serial) return;
    priv->tried_serial = serial = priv->serial;
    context = priv->context;
    settings = priv->settings;
  }
  try {
    context = context->with(settings);
  } catch (const Error &e) {
    warn_of_settings(self, e);
    return;
  }
  install_context(priv, context, serial);
  if (context->passthrough() != gst_base_transform_is_passthrough(trans)) {
    priv->drained = drain(self);
    announce_latency(self);
    // Both pads' buffer pools depend on it.
    gst_base_transform_set_passthrough(trans, context->passthrough());
    gst_base_transform_reconfigure_src(trans);
    gst_base_transform_reconfigure_sink(trans);
  }
}

static void gst_cuda_conv_before_transform(GstBaseTransform *trans, GstBuffer *buffer) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  if (trans->segment.format == GST_FORMAT_TIME) {
    const GstClockTime time = gst_segment_to_stream_time(&trans->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(self), time);
  }
  update_settings(self);
}

static GstFlowReturn gst_cuda_conv_prepare_output_buffer(GstBaseTransform *trans, GstBuffer *inbuf,
                                                         GstBuffer **outbuf) {
  const GstFlowReturn ret = GST_BASE_TRANSFORM_CLASS(parent_class)->prepare_output_buffer(trans, inbuf, outbuf);
  if (ret == GST_FLOW_ERROR) {
    GstBufferPool *pool = gst_base_transform_get_buffer_pool(trans);
    // The base class posts an error of its own where the pool cannot even be activated.
    if (pool && gst_buffer_pool_is_active(pool))
      GST_ELEMENT_ERROR(trans, RESOURCE, NO_SPACE_LEFT, ("No memory could be allocated for an output frame."),
                        (nullptr));
    gst_clear_object(&pool);
  }
  return ret;
}

// Adds what the engine has done since the last call to the statistics.
static void count(GstCudaConvPrivate *priv, Engine &engine) {
  const BackendStats now = engine.backend->stats();
  std::lock_guard<std::mutex> guard(priv->lock);
  priv->totals.frames += now.frames - engine.counted.frames;
  priv->totals.device_ns += now.device_ns - engine.counted.device_ns;
  priv->totals.bytes_uploaded += now.bytes_uploaded - engine.counted.bytes_uploaded;
  priv->totals.bytes_downloaded += now.bytes_downloaded - engine.counted.bytes_downloaded;
  priv->totals.bytes_staged += now.bytes_staged - engine.counted.bytes_staged;
  priv->totals.kernels = now.kernels;
  engine.counted = now;
}

// Waits for the frames in flight, and drops them.
static void discard(GstCudaConv *self) {
  GstCudaConvPrivate *priv = self->priv;
  for (auto *frames : {&priv->pushed, &priv->in_flight}) {
    for (; !frames->empty(); frames->pop_front()) {
      const Frame &frame = *frames->front();
      try {
        frame.context->engine->backend->retire(frame.ticket);
        count(priv, *frame.context->engine);
      } catch (const Error &e) {
        GST_DEBUG_OBJECT(self, "of a frame that is dropped: %s", e.what());
      }
    }
  }
  priv->drained = GST_FLOW_OK;
}

// What takes the place of `context`, of one frame, after its device has failed; nullptr, with an error message posted
// and the other frames dropped, where nothing may.
static std::shared_ptr<const StreamContext> fail_over(GstCudaConv *self, const StreamContext &context, const Error &e) {
  GstCudaConvPrivate *priv = self->priv;
  if (e.kind() == Error::Kind::Settings || !context.engine->cuda || priv->chosen_backend != BackendChoice::Auto) {
    post_error(self, e);
    discard(self);
    return nullptr;
  }
  std::shared_ptr<const StreamContext> current = priv->current_context();
  if (current->engine != context.engine) return context.with(current->engine);  // others in flight came first

  const std::shared_ptr<const StreamContext> replacement = current->with(make_cpu_engine(context.info));
  guint serial;
  {
    std::lock_guard<std::mutex> guard(priv->lock);
    priv->failovers++;
    serial = priv->tried_serial;
  }
  install_context(priv, replacement, serial);
  // The next start may find the device in order again.
  priv->cuda_engine = nullptr;
  priv->chosen = false;
  priv->device_failed = true;
  GST_ELEMENT_WARNING(self, RESOURCE, FAILED,
                      ("The CUDA device failed; from this frame on the CPU filters. %s", e.what()), (nullptr));
  return current.get() == &context ? replacement : context.with(replacement->engine);
}

// False, with an error message posted, where the frame cannot be filtered.
static bool start_frame(GstCudaConv *self, Frame &frame) {
  try {
    while (frame.context) {
      try {
        frame.submit(self->priv->device);
        count(self->priv, *frame.context->engine);
        return true;
      } catch (const Error &e) {
        frame.unmap();
        frame.context = fail_over(self, *frame.context, e);
      }
    }
  } catch (const FrameError &e) {
    GST_ELEMENT_ERROR(self, STREAM, FAILED, ("%s", e.what()), (nullptr));
  } catch (const std::exception &e) {
    GST_ELEMENT_ERROR(self, RESOURCE, FAILED, (nullptr), ("%s", e.what()));
  }
  return false;
}

// Waits until the frame is complete, and has the CPU filter it where the device failed on it. False, with an error
// message posted, where it is lost.
static bool finish_frame(GstCudaConv *self, Frame &frame) {
  for (;;) {
    Engine &engine = *frame.context->engine;
    try {
      engine.backend->retire(frame.ticket);
      const bool on_device = frame.out_map && frame.out_map->view().on_device;
      frame.unmap();
      if (on_device) self->priv->device->mark_complete(frame.out.get());
      count(self->priv, engine);
      return true;
    } catch (const Error &e) {
      frame.unmap();
      frame.context = fail_over(self, *frame.context, e);
      if (!frame.context || !frame.out) return frame.context != nullptr;
    }
    if (!start_frame(self, frame)) return false;
  }
}

// Lets go of the inputs of frames that have been pushed, where that takes no waiting, and of all but `most` others.
static bool release_inputs(GstCudaConv *self, guint most) {
  std::deque<std::unique_ptr<Frame>> &pushed = self->priv->pushed;
  while (!pushed.empty()) {
    const Frame &oldest = *pushed.front();
    try {
      if (pushed.size() <= most && !oldest.context->engine->backend->is_done(oldest.ticket)) break;
    } catch (const Error &) {
      // finish_frame() finds out.
    }
    const std::unique_ptr<Frame> frame = std::move(pushed.front());
    pushed.pop_front();
    if (!finish_frame(self, *frame)) return false;
  }
  return true;
}

// The buffer of the oldest frame in flight, ready to be pushed.
static GstFlowReturn take_oldest(GstCudaConv *self, GstBuffer **outbuf) {
  GstCudaConvPrivate *priv = self->priv;
  std::unique_ptr<Frame> frame = std::move(priv->in_flight.front());
  priv->in_flight.pop_front();
  if (frame->out_map->view().stream) {
    // Who reads the buffer does so after what is on its stream.
    frame->out_map.reset();
    *outbuf = frame->out.release();
    priv->pushed.push_back(std::move(frame));
    return GST_FLOW_OK;
  }
  if (!release_inputs(self, 0) || !finish_frame(self, *frame)) return GST_FLOW_ERROR;
  *outbuf = frame->out.release();
  return GST_FLOW_OK;
}

// Pushes the oldest frame in flight. The base class is not in on it.
static GstFlowReturn push_oldest(GstCudaConv *self) {
  GstBaseTransform *trans = GST_BASE_TRANSFORM(self);
  GstBuffer *out;
  const GstFlowReturn flow = take_oldest(self, &out);
  if (flow != GST_FLOW_OK) return flow;
  if (trans->segment.format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID(out)) {
    trans->segment.position = GST_BUFFER_PTS(out);
    if (GST_BUFFER_DURATION_IS_VALID(out)) trans->segment.position += GST_BUFFER_DURATION(out);
  }
  return gst_pad_push(GST_BASE_TRANSFORM_SRC_PAD(trans), out);
}

// Pushes all frames in flight, and has nothing left on the GPU.
static GstFlowReturn drain(GstCudaConv *self) {
  GstFlowReturn flow = GST_FLOW_OK;
  while (!self->priv->in_flight.empty() && flow == GST_FLOW_OK) flow = push_oldest(self);
  if (flow == GST_FLOW_OK && !release_inputs(self, 0)) flow = GST_FLOW_ERROR;
  discard(self);
  return flow;
}

static gboolean gst_cuda_conv_sink_event(GstBaseTransform *trans, GstEvent *event) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP)
    discard(self);
  else if (GST_EVENT_IS_SERIALIZED(event))
    self->priv->drained = drain(self);
  return GST_BASE_TRANSFORM_CLASS(parent_class)->sink_event(trans, event);
}

// Like the base class's, but for a buffer of a pool that is empty because of the frames in flight, which are pushed
// then.
static GstFlowReturn new_output(GstCudaConv *self, GstBuffer *in, GstBuffer **out) {
  GstBaseTransform *trans = GST_BASE_TRANSFORM(self);
  GstBaseTransformClass *klass = GST_BASE_TRANSFORM_GET_CLASS(trans);
  const Ref<GstBufferPool> pool(gst_base_transform_get_buffer_pool(trans));
  GstBufferPoolAcquireParams without_waiting = {};
  without_waiting.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT;
  while (pool && !self->priv->in_flight.empty()) {
    GstFlowReturn flow = gst_buffer_pool_acquire_buffer(pool.get(), out, &without_waiting);
    if (flow == GST_FLOW_OK) {
      klass->copy_metadata(trans, in, *out);
      return GST_FLOW_OK;
    }
    if (flow != GST_FLOW_EOS) break;
    flow = push_oldest(self);
    if (flow != GST_FLOW_OK) return flow;
  }
  return klass->prepare_output_buffer(trans, in, out);
}

// Upstream may wait for its buffers to come back before it sends another: of a limited pool half may be in flight.
static guint most_in_flight(const GstBuffer *in) {
  if (!in->pool) return G_MAXUINT;
  GstStructure *config = gst_buffer_pool_get_config(in->pool);
  guint max = 0;
  gst_buffer_pool_config_get_params(config, nullptr, nullptr, nullptr, &max);
  gst_structure_free(config);
  return max ? MAX(max / 2, 1) : G_MAXUINT;
}

static GstFlowReturn gst_cuda_conv_submit_input_buffer(GstBaseTransform *trans, gboolean is_discont, GstBuffer *input) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  GstCudaConvPrivate *priv = self->priv;
  GstFlowReturn flow = std::exchange(priv->drained, GST_FLOW_OK);
  // The frames in flight precede a renegotiation, and the DISCONT that the base class sets on whatever is pushed next:
  // on this frame, if it is not held either.
  if (flow == GST_FLOW_OK && (is_discont || GST_PAD_NEEDS_RECONFIGURE(trans->srcpad))) flow = drain(self);
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref(input);
    return flow;
  }
  priv->hold_nothing = is_discont;

  flow = GST_BASE_TRANSFORM_CLASS(parent_class)->submit_input_buffer(trans, is_discont, input);
  if (flow == GST_BASE_TRANSFORM_FLOW_DROPPED) {
    const GstFlowReturn drained = drain(self);
    return drained == GST_FLOW_OK ? flow : drained;
  }
  if (flow != GST_FLOW_OK || gst_base_transform_is_passthrough(trans)) return flow;

  auto frame = std::make_unique<Frame>();
  frame->in.reset(std::exchange(trans->queued_buf, nullptr));
  GstBuffer *out = nullptr;
  flow = new_output(self, frame->in.get(), &out);
  if (flow != GST_FLOW_OK) return flow;
  frame->out.reset(out);
  frame->most_in_flight = most_in_flight(frame->in.get());
  frame->context = priv->current_context();
  if (!frame->context) return GST_FLOW_NOT_NEGOTIATED;
  if (!start_frame(self, *frame)) return GST_FLOW_ERROR;
  priv->in_flight.push_back(std::move(frame));
  return GST_FLOW_OK;
}

static GstFlowReturn gst_cuda_conv_generate_output(GstBaseTransform *trans, GstBuffer **outbuf) {
  GstCudaConv *self = GST_CUDA_CONV(trans);
  GstCudaConvPrivate *priv = self->priv;
  if (gst_base_transform_is_passthrough(trans))
    return GST_BASE_TRANSFORM_CLASS(parent_class)->generate_output(trans, outbuf);

  *outbuf = nullptr;
  announce_latency(self);
  if (priv->in_flight.empty() && priv->pushed.empty()) return GST_FLOW_OK;
  const Flight flight = current_flight(priv);
  const Frame &latest = priv->in_flight.empty() ? *priv->pushed.back() : *priv->in_flight.back();
  const guint held = priv->hold_nothing ? 0 : MIN(flight.held, latest.most_in_flight - 1);
  if (priv->in_flight.size() > held) return take_oldest(self, outbuf);
  return release_inputs(self, MIN(flight.frames, latest.most_in_flight)) ? GST_FLOW_OK : GST_FLOW_ERROR;
}

// Never called, but the base class takes an element without it for one that works in place.
static GstFlowReturn gst_cuda_conv_transform(GstBaseTransform *, GstBuffer *, GstBuffer *) {
  g_return_val_if_reached(GST_FLOW_ERROR);
}
