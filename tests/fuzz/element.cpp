// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Fuzzes an element on the CPU: properties as texts, caps, events, and buffers with false metas. Each push must end
// with a frame downstream, or with a flow error and an error message on the bus.
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "bytes.h"
#include "gstcudaconvformat.h"
#include "layouts.h"

using namespace cudaconv;

GST_ELEMENT_REGISTER_DECLARE(cudaconv)

namespace {

constexpr int kMostSteps = 16;
constexpr int kMostBytes = 1 << 16;  // largest size of a buffer
constexpr gsize kLargestFrame = 1 << 24;

struct Unref {
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstBuffer *buffer) const { gst_buffer_unref(buffer); }
  void operator()(gpointer object) const { gst_object_unref(object); }
};
template <typename T>
using Ref = std::unique_ptr<T, Unref>;

const char *one_of(fuzz::Bytes &bytes, std::initializer_list<const char *> words) {
  return words.begin()[bytes.below(static_cast<int>(words.size()))];
}

// ---- Buffers --------------------------------------------------------------------------------------------------------

// Adds a GstVideoMeta, in which some fields may be false.
void add_video_meta(fuzz::Bytes &bytes, const GstVideoInfo &info, GstBuffer *buffer) {
  GstVideoInfo copy = info;  // not const, since the function takes its arrays
  GstVideoMeta *meta = gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info),
                                                      GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                                                      GST_VIDEO_INFO_N_PLANES(&info), copy.offset, copy.stride);
  for (int lies = bytes.below(4); lies > 0; lies--) {
    const int plane = bytes.below(GST_VIDEO_MAX_PLANES), field = bytes.below(8);
    const int32_t value = bytes.integer();
    if (field == 0) meta->offset[plane] = static_cast<gsize>(static_cast<gint64>(value));
    if (field == 1) meta->offset[plane] += static_cast<gsize>(static_cast<gint64>(value));
    if (field == 2) meta->stride[plane] = value;
    if (field == 3) meta->stride[plane] = static_cast<gint>(gint64{meta->stride[plane]} + value);
    if (field == 4) meta->width = static_cast<guint>(value);
    if (field == 5) meta->height = static_cast<guint>(value);
    if (field == 6) meta->n_planes = static_cast<guint>(value) % (GST_VIDEO_MAX_PLANES + 1);
    if (field == 7) meta->format = static_cast<GstVideoFormat>(static_cast<guint>(value) % 128);
  }
}

void add_metas(fuzz::Bytes &bytes, const GstVideoInfo &info, GstBuffer *buffer) {
  const int which = bytes.byte();
  const auto unsigned_integer = [&] { return static_cast<guint>(bytes.integer()); };
  if (which & 1) add_video_meta(bytes, info, buffer);
  if (which & 2) {
    GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta(buffer);
    crop->x = unsigned_integer();
    crop->y = unsigned_integer();
    crop->width = unsigned_integer();
    crop->height = unsigned_integer();
  }
  for (int n = which >> 2 & 7; n > 0; n--) {
    const char *type = one_of(bytes, {"face", "plate", ""});
    const guint x = unsigned_integer(), y = unsigned_integer(), w = unsigned_integer();
    gst_buffer_add_video_region_of_interest_meta(buffer, type, x, y, w, unsigned_integer());
  }
  if (which & 32) {
    GST_BUFFER_PTS(buffer) = bytes.raw<guint64>();
    GST_BUFFER_DURATION(buffer) = bytes.raw<guint64>();
  }
  if (which & 64) GST_BUFFER_FLAG_SET(buffer, bytes.raw<uint16_t>() << 4 & ~GST_BUFFER_FLAG_TAG_MEMORY);
  if (which & 128) GST_BUFFER_FLAG_SET(buffer, bytes.byte() << 20);  // flags of GstVideo
}

// Makes a buffer of the caps' size, or of another size, in one memory or several.
GstBuffer *make_buffer(fuzz::Bytes &bytes, const GstVideoInfo &info) {
  const gint64 wanted = std::min<gint64>(static_cast<gint64>(GST_VIDEO_INFO_SIZE(&info)), kMostBytes);
  const int kind = bytes.byte();
  gint64 left = kind & 1 ? std::clamp<gint64>(wanted + bytes.integer(), 0, kMostBytes) : wanted;
  GstBuffer *buffer = gst_buffer_new();
  for (int memories = 1 + (kind >> 1 & 3); memories > 0 && left > 0; memories--) {
    const gint64 size = memories == 1 ? left : std::min<gint64>(left, bytes.raw<uint16_t>());
    // The allocation is exactly as large as the memory, so that a sanitizer finds an access to the first byte behind
    // it.
    auto *data = static_cast<guint8 *>(g_malloc(std::max<gint64>(size, 1)));
    for (gint64 i = 0; i < size; i++) data[i] = static_cast<guint8>(i * 167 + (i >> 8) + kind);
    const auto flags = static_cast<GstMemoryFlags>(kind & 8 ? GST_MEMORY_FLAG_READONLY : 0);
    gst_buffer_append_memory(buffer, gst_memory_new_wrapped(flags, data, size, 0, size, data, g_free));
    left -= size;
  }
  add_metas(bytes, info, buffer);
  return buffer;
}

// ---- The element ----------------------------------------------------------------------------------------------------

class Script {
 public:
  explicit Script(fuzz::Bytes &bytes);
  ~Script();
  Script(const Script &) = delete;

  // Does one step with the element. Returns false if the stream has ended.
  bool step();

 private:
  void set_property();
  void set_caps();
  bool push();
  void send_event();
  void restart();
  // Drops messages. Returns whether there was an error since the last call.
  bool take_messages();
  void check_output(GstBuffer *in, GstBuffer *out);

  fuzz::Bytes &bytes_;
  Ref<GstElement> element_;
  Ref<GstBus> bus_;
  GstHarness *harness_;
  GstVideoInfo info_;
  bool has_caps_ = false, ended_ = false;
};

Script::Script(fuzz::Bytes &bytes)
    : bytes_(bytes),
      element_(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("cudaconv", nullptr)))),
      bus_(gst_bus_new()) {
  gst_element_set_bus(element_.get(), bus_.get());
  gst_util_set_object_arg(G_OBJECT(element_.get()), "backend", "cpu");
  g_object_set(element_.get(), "n-threads", 1, nullptr);
  for (int n = bytes.below(8); n > 0; n--) set_property();
  gst_video_info_set_format(&info_, GST_VIDEO_FORMAT_GRAY8, 16, 16);
  harness_ = gst_harness_new_with_element(element_.get(), "sink", "src");
  const int metas = bytes.byte();  // metas that downstream takes
  if (metas & 1) gst_harness_add_propose_allocation_meta(harness_, GST_VIDEO_META_API_TYPE, nullptr);
  if (metas & 2) gst_harness_add_propose_allocation_meta(harness_, GST_VIDEO_CROP_META_API_TYPE, nullptr);
  gst_harness_play(harness_);
  gst_harness_push_event(harness_, gst_event_new_stream_start("fuzz"));
}

Script::~Script() {
  gst_harness_teardown(harness_);
  gst_element_set_state(element_.get(), GST_STATE_NULL);
  gst_element_set_bus(element_.get(), nullptr);
}

void Script::set_property() {
  static const auto *const names = new std::vector<std::string>([this] {
    guint count;
    GParamSpec **specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element_.get()), &count);
    std::vector<std::string> list;
    for (guint i = 0; i < count; i++)
      if (specs[i]->owner_type == G_OBJECT_TYPE(element_.get()) && specs[i]->flags & G_PARAM_WRITABLE &&
          g_strcmp0(specs[i]->name, "backend") != 0)
        list.emplace_back(specs[i]->name);
    g_free(specs);
    return list;
  }());
  const std::string &name = (*names)[bytes_.byte() % names->size()];
  GObject *object = G_OBJECT(element_.get());
  // Larger values only take longer.
  if (name == "iterations" || name == "n-threads") return g_object_set(object, name.c_str(), bytes_.below(4), nullptr);
  GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), name.c_str());
  if (G_IS_PARAM_SPEC_ENUM(spec)) {
    const GEnumClass *klass = G_PARAM_SPEC_ENUM(spec)->enum_class;
    g_object_set(object, name.c_str(), klass->values[bytes_.byte() % klass->n_values].value, nullptr);
  } else if (G_IS_PARAM_SPEC_STRING(spec)) {
    g_object_set(object, name.c_str(), bytes_.text().c_str(), nullptr);
  } else {
    gst_util_set_object_arg(object, name.c_str(), bytes_.text().c_str());
  }
}

void Script::set_caps() {
  const std::vector<std::string> &names = verify::format_names();
  const size_t format = bytes_.byte() % (names.size() + 2);
  const int kind = bytes_.byte();
  const auto side = [&] { return kind & 1 ? bytes_.raw<int32_t>() : 1 + bytes_.below(64); };
  const int width = side(), height = side();
  Ref<GstCaps> caps(gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING,
                                        format < names.size()    ? names[format].c_str()
                                        : format == names.size() ? "NV12_4L4"
                                                                 : "none",
                                        "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, "framerate",
                                        GST_TYPE_FRACTION, bytes_.byte(), 1 + bytes_.byte(), nullptr));
  const char *interlacing = one_of(bytes_, {nullptr, "interleaved", "mixed", "alternate", "fields"});
  if (interlacing) gst_caps_set_simple(caps.get(), "interlace-mode", G_TYPE_STRING, interlacing, nullptr);
  if (g_strcmp0(interlacing, "alternate") == 0)
    gst_caps_set_features(caps.get(), 0, gst_caps_features_new_single(GST_CAPS_FEATURE_FORMAT_INTERLACED));
  const char *colorimetry = one_of(bytes_, {nullptr, "bt601", "bt709", "bt2020", "sRGB", "1:4:0:0", "2:0:0:0"});
  if (colorimetry) gst_caps_set_simple(caps.get(), "colorimetry", G_TYPE_STRING, colorimetry, nullptr);
  const char *const views[] = {nullptr, nullptr, "side-by-side", "top-bottom"};
  if (const char *view = views[kind >> 1 & 3])
    gst_caps_set_simple(caps.get(), "multiview-mode", G_TYPE_STRING, view, nullptr);
  if ((kind & 0xf0) == 0xf0) gst_caps_set_features(caps.get(), 0, gst_caps_features_new_single("memory:CUDAMemory"));
  gst_harness_push_event(harness_, gst_event_new_caps(caps.get()));
  // The pad shows whether caps were accepted; the return value of the push does not.
  const Ref<GstPad> pad(gst_element_get_static_pad(element_.get(), "sink"));
  const Ref<GstCaps> taken(gst_pad_get_current_caps(pad.get()));
  has_caps_ = taken && gst_caps_is_equal(taken.get(), caps.get());
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_harness_push_event(harness_, gst_event_new_segment(&segment));
  GstVideoInfo info;
  if (has_caps_ && !gst_video_info_from_caps(&info, caps.get())) fuzz::fault("caps without content were accepted");
  if (has_caps_) info_ = info;
  // Frames of gigabytes are not filtered: they only take memory.
  has_caps_ &= GST_VIDEO_INFO_SIZE(&info_) <= kLargestFrame;
}

bool Script::take_messages() {
  bool failed = false;
  while (GstMessage *message = gst_bus_pop(bus_.get())) {
    const GstMessageType type = GST_MESSAGE_TYPE(message);
    GError *error = nullptr;
    gchar *debug = nullptr;
    if (type == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, &debug);
    if (type == GST_MESSAGE_WARNING) gst_message_parse_warning(message, &error, &debug);
    if (error && (!g_utf8_validate(error->message, -1, nullptr) || !*error->message))
      fuzz::fault(std::string("a message that is not text: ") + error->message);
    g_clear_error(&error);
    g_free(debug);
    gst_message_unref(message);
    failed |= type == GST_MESSAGE_ERROR;
  }
  return failed;
}

// Reads all visible bytes of the output, so that a sanitizer checks them.
void Script::check_output(GstBuffer *in, GstBuffer *out) {
  if (out == in || gst_buffer_get_size(out) == 0) return;  // passthrough and gaps
  if (gst_buffer_get_video_crop_meta(out) && gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(element_.get())))
    return;
  if (gst_buffer_get_video_crop_meta(out)) fuzz::fault("the output has a crop rectangle");
  FrameLayout layout;
  if (!gst::describe_frame(info_, 0, &layout)) fuzz::fault("the output's format is not known");
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &info_, out, GST_MAP_READ)) fuzz::fault("the output cannot be mapped");
  static volatile guint sum;
  for (int p = 0; p < layout.planes; p++) {
    const PlaneLayout &plane = layout.plane[p];
    for (int y = 0; y < plane.height; y++) {
      const auto *row = static_cast<const guint8 *>(GST_VIDEO_FRAME_PLANE_DATA(&frame, plane.memory_plane)) +
                        gssize{y} * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, plane.memory_plane);
      for (gsize x = 0; x < gst::row_bytes(plane); x++) sum = sum + row[x];
    }
  }
  gst_video_frame_unmap(&frame);
}

bool Script::push() {
  Ref<GstBuffer> in(make_buffer(bytes_, info_));
  // The element must not write to a buffer that others hold.
  const bool held = bytes_.flag();
  gpointer before = nullptr, after = nullptr;
  gsize size = 0;
  if (held) gst_buffer_extract_dup(in.get(), 0, -1, &before, &size);
  GstBuffer *const pushed = in.get();
  take_messages();
  const GstFlowReturn flow = gst_harness_push(harness_, held ? gst_buffer_ref(pushed) : in.release());
  const bool failed = take_messages();
  const Ref<GstBuffer> out(gst_harness_try_pull(harness_));
  if (flow == GST_FLOW_OK && !out && !ended_) fuzz::fault("a frame is missing");
  if (flow == GST_FLOW_OK && failed) fuzz::fault("an error message and no flow error");
  if (flow != GST_FLOW_OK && out) fuzz::fault("a frame and a flow error");
  if (flow != GST_FLOW_OK && !failed && has_caps_ && !ended_)
    fuzz::fault(std::string("no error message with the flow ") + gst_flow_get_name(flow));
  if (out) check_output(pushed, out.get());
  if (held) {
    gst_buffer_extract_dup(in.get(), 0, -1, &after, &size);
    if (size && memcmp(before, after, size) != 0) fuzz::fault("a buffer that others hold was written");
    g_free(before);
    g_free(after);
  }
  return flow == GST_FLOW_OK;
}

void Script::send_event() {
  GstSegment segment;
  switch (bytes_.below(8)) {
    case 0:
      gst_harness_push_event(harness_, gst_event_new_flush_start());
      gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
      gst_segment_init(&segment, GST_FORMAT_TIME);
      gst_harness_push_event(harness_, gst_event_new_segment(&segment));
      ended_ = false;
      break;
    case 1:
      gst_segment_init(&segment, bytes_.flag() ? GST_FORMAT_BYTES : GST_FORMAT_TIME);
      segment.rate = bytes_.flag() ? -1 : 1;
      segment.start = bytes_.raw<guint64>();
      segment.base = bytes_.raw<guint64>();
      segment.offset = bytes_.raw<uint32_t>();
      if (segment.rate < 0) segment.stop = G_MAXINT64;  // a segment without an end is a mistake of the application
      gst_harness_push_event(harness_, gst_event_new_segment(&segment));
      break;
    case 2:
      gst_harness_push_event(harness_, gst_event_new_gap(bytes_.raw<uint32_t>(), bytes_.raw<uint32_t>()));
      break;
    case 3:
      gst_harness_push_upstream_event(harness_, gst_event_new_reconfigure());
      break;
    case 4:
      gst_harness_push_event(harness_, gst_event_new_eos());
      ended_ = true;
      break;
    case 5: {
      GstStructure *stats = nullptr;
      g_object_get(element_.get(), "stats", &stats, nullptr);
      if (!stats) fuzz::fault("no stats");
      gst_structure_free(stats);
      break;
    }
    case 6: {
      const Ref<GstCaps> caps(gst_pad_get_current_caps(harness_->srcpad));
      if (!caps) break;
      GstQuery *query = gst_query_new_allocation(caps.get(), TRUE);
      gst_pad_peer_query(harness_->srcpad, query);
      gst_query_unref(query);
      break;
    }
    default:
      restart();
  }
}

void Script::restart() {
  gst_element_set_state(element_.get(), GST_STATE_READY);
  gst_element_set_state(element_.get(), GST_STATE_PLAYING);
  gst_harness_push_event(harness_, gst_event_new_stream_start("again"));
  has_caps_ = ended_ = false;
}

bool Script::step() {
  const int kind = bytes_.byte();
  if (kind < 0x50)
    set_property();
  else if (kind < 0x80 || !has_caps_)
    set_caps();
  else if (kind < 0xe0)
    return push();
  else
    send_event();
  take_messages();
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const bool ready = [] {
    // Only the element is needed, and this program contains it.
    g_setenv("GST_REGISTRY_DISABLE", "yes", TRUE);
    g_setenv("GST_PLUGIN_SYSTEM_PATH_1_0", "", TRUE);
    gst_init(nullptr, nullptr);
    // Values out of range are no fault: GObject warns of them, in newer versions with a critical message.
    g_log_set_default_handler(
        [](const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data) {
          if (!(level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL)) || strstr(message, "invalid or out of range"))
            return;
          g_log_default_handler(domain, level, message, data);
          fuzz::fault(message);
        },
        nullptr);
    gst_debug_set_default_threshold(GST_LEVEL_NONE);
    return GST_ELEMENT_REGISTER(cudaconv, nullptr) != FALSE;
  }();
  if (!ready) fuzz::fault("the element cannot be registered");
  fuzz::Bytes bytes(data, size);
  Script script(bytes);
  for (int i = 0; i < kMostSteps && !bytes.empty() && script.step(); i++) {
  }
  return 0;
}
