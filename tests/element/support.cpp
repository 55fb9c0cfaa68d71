// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "formats.h"
#include "reference.h"

// Only defined if the element is built into the program.
extern "C" void gst_plugin_cudaconv_register() __attribute__((weak));
// Only defined if the program has AddressSanitizer.
extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace cudaconv::test {

int number_from_environment(const char *name, int otherwise) {
  const char *text = g_getenv(name);
  return text ? atoi(text) : otherwise;
}

bool has_address_sanitizer() {
  return __sanitizer_get_current_allocated_bytes != nullptr;
}

size_t heap_bytes() {
  if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

void wait_until(const std::function<bool()> &condition) {
  for (int i = 0; i < 100000 && !condition(); i++) g_usleep(1000);
}

// ---- Settings -------------------------------------------------------------------------------------------------------

namespace {

template <typename Enum, size_t n>
std::vector<Nick> nicks(const Named<Enum> (&names)[n]) {
  std::vector<Nick> list;
  for (const Named<Enum> &name : names) list.push_back({name.nick, static_cast<int>(name.value)});
  return list;
}

// Splits "name=value name='va lue'".
std::vector<std::pair<std::string, std::string>> split(const std::string &properties) {
  std::vector<std::pair<std::string, std::string>> result;
  size_t at = 0;
  while ((at = properties.find_first_not_of(' ', at)) != std::string::npos) {
    const size_t equals = properties.find('=', at);
    g_assert(equals != std::string::npos);
    const std::string name = properties.substr(at, equals - at);
    const bool quoted = properties[equals + 1] == '\'';
    const size_t begin = equals + (quoted ? 2 : 1);
    const size_t end = std::min(properties.find(quoted ? '\'' : ' ', begin), properties.size());
    result.emplace_back(name, properties.substr(begin, end - begin));
    at = end + (quoted ? 1 : 0);
  }
  return result;
}

// Parses rows of coefficients. Each row ends in ';'.
Coefficients coefficients_of(const std::string &text) {
  Coefficients c;
  const char *at = text.c_str();
  while (*at) {
    char *end;
    const double number = strtod(at, &end);
    if (end != at) {
      c.value.push_back(number);
      at = end;
    } else if (*at++ == ';') {
      c.height++;
    }
  }
  if (!text.empty() && text.back() != ';') c.height++;
  for (int side : {3, 5, 7})
    if (c.height == 1 && c.value.size() == static_cast<size_t>(side) * side) c.height = side;
  c.width = c.height ? static_cast<int>(c.value.size()) / c.height : 0;
  return c;
}

template <typename Enum>
void read_enum(const std::string &name, const std::string &value, Enum *field) {
  for (const Nick &n : nicks_of(name.c_str()))
    if (value == n.nick) *field = static_cast<Enum>(n.value);
}

}  // namespace

const std::vector<Nick> &nicks_of(const char *property) {
  static const std::map<std::string, std::vector<Nick>> all = {
      {"mask", nicks(kMaskNames)},
      {"shape", nicks(kShapeNames)},
      {"negative", nicks(kNegativeNames)},
      {"magnitude", nicks(kMagnitudeNames)},
      {"border", nicks(kBorderNames)},
      {"luma", nicks(kLumaNames)},
      {"chroma", nicks(kChromaNames)},
      {"alpha", nicks(kAlphaNames)},
      {"method", nicks(kMethodNames)},
      {"roi-shape", {{"rect", 0}, {"ellipse", 1}}},
      {"backend", {{"auto", 0}, {"cuda", 1}, {"cpu", 2}}},
  };
  return all.at(property);
}

FilterSettings settings_of(const std::string &properties) {
  FilterSettings s;
  for (const auto &[name, value] : split(properties)) {
    if (name == "mask") read_enum(name, value, &s.mask);
    if (name == "size") s.size = atoi(value.c_str());
    if (name == "size-y") s.size_y = atoi(value.c_str());
    if (name == "sigma-y") s.sigma_y = g_ascii_strtod(value.c_str(), nullptr);
    if (name == "sigma") s.sigma = g_ascii_strtod(value.c_str(), nullptr);
    if (name == "sigma-range") s.sigma_range = g_ascii_strtod(value.c_str(), nullptr);
    if (name == "amount") s.amount = g_ascii_strtod(value.c_str(), nullptr);
    if (name == "coefficients") s.coefficients = coefficients_of(value);
    if (name == "shape") read_enum(name, value, &s.shape);
    if (name == "divisor") s.divisor = g_ascii_strtod(value.c_str(), nullptr);
    if (name == "bias") s.bias = g_ascii_strtod(value.c_str(), nullptr);
    if (name == "negative") read_enum(name, value, &s.negative);
    if (name == "magnitude") read_enum(name, value, &s.magnitude);
    if (name == "threshold") s.threshold = g_ascii_strtod(value.c_str(), nullptr);
    if (name == "iterations") s.iterations = atoi(value.c_str());
    if (name == "border") read_enum(name, value, &s.border);
    if (name == "luma") read_enum(name, value, &s.luma);
    if (name == "chroma") read_enum(name, value, &s.chroma);
    if (name == "alpha") read_enum(name, value, &s.alpha);
  }
  return s;
}

// ---- Frames ---------------------------------------------------------------------------------------------------------

GstVideoInfo video_info(const char *format, int width, int height) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, gst_video_format_from_string(format), width, height);
  info.fps_n = 30;
  info.fps_d = 1;
  return info;
}

const GstVideoInfo &small() {
  static const GstVideoInfo info = video_info("NV12", 34, 18);
  return info;
}

// Whether GStreamer's interlaced frames have a row of chroma more than progressive frames if the fields need it.
static bool has_room_for_fields(GstVideoFormat format) {
  GstVideoInfo interlaced, progressive;
  gst_video_info_set_interlaced_format(&interlaced, format, GST_VIDEO_INTERLACE_MODE_INTERLEAVED, 16, 2);
  gst_video_info_set_format(&progressive, format, 16, 2);
  return GST_VIDEO_INFO_SIZE(&interlaced) > GST_VIDEO_INFO_SIZE(&progressive);
}

FrameLayout layout_of(const GstVideoInfo &info, bool fields) {
  const char *name = gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info));
  for (const Format &format : formats()) {
    if (strcmp(format.name, name) != 0) continue;
    const FrameLayout layout = format.layout(GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_FIELD_HEIGHT(&info));
    return fields ? with_fields(layout, has_room_for_fields(GST_VIDEO_INFO_FORMAT(&info))) : layout;
  }
  fail("no layout of %s", name);
  return {};
}

FrameLayout layout_of(const GstVideoInfo &info) {
  return layout_of(info, GST_VIDEO_INFO_INTERLACE_MODE(&info) == GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
}

GstVideoInfo place(GstVideoInfo info, const Placement &placement) {
  gsize size = 0;
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); p++) {
    const gsize next = p + 1 < GST_VIDEO_INFO_N_PLANES(&info) ? info.offset[p + 1] : info.size;
    const gsize rows = (next - info.offset[p]) / info.stride[p];
    info.offset[p] = size + placement.lead;
    info.stride[p] += placement.padding;
    size = info.offset[p] + rows * info.stride[p] + placement.tail;
    if (!placement.upward) continue;
    info.offset[p] += (rows - 1) * info.stride[p];
    info.stride[p] *= -1;
  }
  info.size = size;
  return info;
}

GstBuffer *new_placed_buffer(GstVideoInfo info, guint8 fill) {
  GstBuffer *buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  gst_buffer_memset(buffer, 0, fill, GST_VIDEO_INFO_SIZE(&info));
  gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info),
                                 GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                                 GST_VIDEO_INFO_N_PLANES(&info), info.offset, info.stride);
  return buffer;
}

// Whether containers have bits above the sample; these are always 0.
static bool has_spare_high_bits(const FrameLayout &layout) {
  const PlaneLayout &plane = layout.plane[0];
  return (plane.container == Container::U16 || plane.container == Container::U16BE) &&
         plane.channel[0].depth + plane.channel[0].shift < 16;
}

static void fill_randomly(GstBuffer *buffer, const GstVideoInfo &info, Random &random) {
  FrameBytes frame(buffer, info);
  for (uint8_t &byte : frame.bytes) byte = static_cast<uint8_t>(random());
  for (const Format &format : formats()) {
    if (strcmp(format.name, GST_VIDEO_INFO_NAME(&info)) != 0) continue;
    const FrameLayout layout = layout_of(info);
    if (has_spare_high_bits(layout)) reference::write(reference::read(layout, frame.view), layout, frame.view);
  }
  gst_buffer_fill(buffer, 0, frame.bytes.data(), frame.bytes.size());
}

Ref<GstBuffer> random_frame(const GstVideoInfo &info, Random &random) {
  GstBuffer *buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  fill_randomly(buffer, info, random);
  return Ref<GstBuffer>(buffer);
}

Ref<GstBuffer> random_frame(const GstVideoInfo &info, Random &random, const Placement &placement) {
  GstBuffer *buffer = new_placed_buffer(place(info, placement), 0);
  fill_randomly(buffer, info, random);
  return Ref<GstBuffer>(buffer);
}

FrameBytes::FrameBytes(GstBuffer *buffer, const GstVideoInfo &info) : bytes(gst_buffer_get_size(buffer)) {
  gst_buffer_extract(buffer, 0, bytes.data(), bytes.size());
  const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
  fail_unless(meta || bytes.size() >= info.size, "a frame of %zu bytes has %zu", info.size, bytes.size());
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); p++)
    view.plane[p] = {bytes.data() + (meta ? meta->offset[p] : info.offset[p]), meta ? meta->stride[p] : info.stride[p]};
}

static std::string text(const char *format, ...) G_GNUC_PRINTF(1, 2);
static std::string text(const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *result = g_strdup_vprintf(format, args);
  va_end(args);
  const std::string copy = result;
  g_free(result);
  return copy;
}

static std::string describe(const GstVideoInfo &info, const std::string &properties) {
  return text("%s %dx%d, %s: ", GST_VIDEO_INFO_NAME(&info), GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
              properties.empty() ? "defaults" : properties.c_str());
}

// Accepts a result that the reference leaves open if it is next to the real number, on either side.
static void accept_rounding(reference::Frame &want, const reference::Frame &got) {
  for (int p = 0; p < kMaxPlanes; p++) {
    for (size_t c = 0; c < want.plane[p].size(); c++) {
      reference::Channel &channel = want.plane[p][c];
      for (size_t i = 0; i < channel.real.size(); i++)
        if (std::abs(got.plane[p][c].sample[i] - channel.real[i]) <= 1) channel.sample[i] = got.plane[p][c].sample[i];
    }
  }
}

// Whether the colour `property` has its default, opaque black.
static bool is_black(const std::string &properties, const char *property) {
  return properties.find(property) == std::string::npos;
}

bool is_filtered(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const FrameLayout &layout,
                 const std::string &properties, std::string *why, int guard) {
  const FrameBytes source(in, info), got(out, info);
  FrameBytes want(out, info);
  if (guard >= 0) std::fill(want.bytes.begin(), want.bytes.end(), static_cast<uint8_t>(guard));
  reference::Frame result = reference::filter(settings_of(properties), layout, reference::read(layout, source.view));
  accept_rounding(result, reference::read(layout, got.view));
  reference::write(result, layout, want.view);
  for (size_t i = 0; i < want.bytes.size(); i++) {
    if (got.bytes[i] == want.bytes[i]) continue;
    *why = describe(info, properties) +
           text("byte %zu of %zu is %d and should be %d", i, want.bytes.size(), got.bytes[i], want.bytes[i]);
    return false;
  }
  return true;
}

bool is_filtered(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::string &properties,
                 std::string *why, int guard) {
  FrameLayout layout = layout_of(info);
  const FilterSettings settings = settings_of(properties);
  const bool border = settings.border == Border::Constant && is_black(properties, "border-color");
  const bool fill = settings.mask == Mask::Fill && is_black(properties, "fill-color");
  if (border || fill) {
    // 16 and 128 of YUV's limited range, all bits of alpha.
    for (int p = 0; p < layout.planes; p++) {
      for (int c = 0; c < layout.plane[p].channels; c++) {
        const ChannelLayout &channel = layout.plane[p].channel[c];
        int value = 0;
        if (channel.role == Role::Chroma) value = 1 << (channel.depth - 1);
        if (channel.role == Role::Alpha || channel.role == Role::Padding) value = (1 << channel.depth) - 1;
        if (channel.role == Role::Luma && GST_VIDEO_INFO_IS_YUV(&info)) value = 16 << (channel.depth - 8);
        (border ? layout.plane[p].border_value : layout.plane[p].fill_value)[c] = static_cast<uint16_t>(value);
      }
    }
  }
  return is_filtered(in, out, info, layout, properties, why, guard);
}

bool same_samples(GstBuffer *a, GstBuffer *b, const GstVideoInfo &info) {
  const FrameLayout layout = layout_of(info);
  const FrameBytes bytes_a(a, info), bytes_b(b, info);
  const reference::Frame frame_a = reference::read(layout, bytes_a.view),
                         frame_b = reference::read(layout, bytes_b.view);
  for (int p = 0; p < layout.planes; p++)
    for (int c = 0; c < layout.plane[p].channels; c++)
      if (frame_a.plane[p][c].sample != frame_b.plane[p][c].sample) return false;
  return true;
}

// A layout with one component a plane, in GStreamer's order.
static FrameLayout component_layout(const GstVideoInfo &info) {
  FrameLayout layout;
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++) {
    PlaneLayout &plane = layout.plane[layout.planes++];
    plane.width = GST_VIDEO_INFO_COMP_WIDTH(&info, c);
    plane.height = GST_VIDEO_INFO_COMP_HEIGHT(&info, c);
    plane.channels = plane.step = 1;
    plane.memory_plane = static_cast<int>(c);
    plane.container = Container::U16;
    plane.channel[0].depth = static_cast<uint8_t>(GST_VIDEO_INFO_COMP_DEPTH(&info, c));
    plane.channel[0].role = c == GST_VIDEO_COMP_A                   ? Role::Alpha
                            : GST_VIDEO_INFO_IS_YUV(&info) && c > 0 ? Role::Chroma
                                                                    : Role::Luma;
  }
  return layout;
}

static reference::Frame unpack(GstBuffer *buffer, const GstVideoInfo &info) {
  const FrameBytes frame(buffer, info);
  const GstVideoFormatInfo *finfo = info.finfo;
  const bool wide = GST_VIDEO_FORMAT_INFO_BITS(gst_video_format_get_info(finfo->unpack_format)) == 16;
  gpointer data[GST_VIDEO_MAX_PLANES];
  gint stride[GST_VIDEO_MAX_PLANES];
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); p++) {
    data[p] = frame.view.plane[p].data;
    stride[p] = static_cast<gint>(frame.view.plane[p].pitch);
  }
  const FrameLayout layout = component_layout(info);
  reference::Frame result;
  for (int c = 0; c < layout.planes; c++)
    result.plane[c].push_back({layout.plane[c].width, layout.plane[c].height, {}, {}});
  std::vector<guint16> row(4 * (GST_VIDEO_INFO_WIDTH(&info) + 16));  // unpacking may write slightly more than a row
  for (int y = 0; y < GST_VIDEO_INFO_HEIGHT(&info); y++) {
    finfo->unpack_func(finfo, GST_VIDEO_PACK_FLAG_TRUNCATE_RANGE, row.data(), data, stride, 0, y,
                       GST_VIDEO_INFO_WIDTH(&info));
    for (int c = 0; c < layout.planes; c++) {
      if (y & ((1 << finfo->h_sub[c]) - 1)) continue;
      const int position = c == GST_VIDEO_COMP_A ? 0 : c + 1;  // unpacked formats have alpha first
      for (int x = 0; x < layout.plane[c].width; x++) {
        const int i = 4 * (x << finfo->w_sub[c]) + position;
        const int value = wide ? row[i] : reinterpret_cast<guint8 *>(row.data())[i];
        result.plane[c][0].sample.push_back(value >> ((wide ? 16 : 8) - static_cast<int>(finfo->depth[c])));
      }
    }
  }
  return result;
}

bool is_filtered_by_unpacking(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::string &properties,
                              const std::vector<int> &border_value, std::string *why) {
  FrameLayout layout = component_layout(info);
  for (int c = 0; c < std::min<int>(layout.planes, border_value.size()); c++)
    layout.plane[c].border_value[0] = static_cast<uint16_t>(border_value[c]);
  const reference::Frame got = unpack(out, info);
  reference::Frame want = reference::filter(settings_of(properties), layout, unpack(in, info));
  accept_rounding(want, got);
  for (int c = 0; c < layout.planes; c++) {
    for (size_t i = 0; i < want.plane[c][0].sample.size(); i++) {
      if (got.plane[c][0].sample[i] == want.plane[c][0].sample[i]) continue;
      *why = describe(info, properties) + text("sample %zu of component %d is %d and should be %d", i, c,
                                               got.plane[c][0].sample[i], want.plane[c][0].sample[i]);
      return false;
    }
  }
  return true;
}

// ---- The element ----------------------------------------------------------------------------------------------------

bool reads_back(const GstVideoInfo &info) {
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  const bool half = GST_VIDEO_INFO_N_PLANES(&info) == 3 && GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, 1);
  return minor < 24 || minor > 25 || !half;
}

const char *planar_format() {
  return reads_back(video_info("I420", 16, 16)) ? "I420" : "Y444";
}

const char *test_backend() {
  const char *backend = g_getenv("CUDACONV_TEST_BACKEND");
  return backend ? backend : "cpu";
}

namespace {

constexpr char kCudaContext[] = "gst.cuda.context";
GstContext *shared_context = nullptr;  // until the process ends

// Keeps the context that an element found or made, since making one takes up to a second.
void keep_context_of(GstElement *element) {
  const Ref<GstQuery> query(gst_query_new_context(kCudaContext));
  const Ref<GstPad> pad(gst_element_get_static_pad(element, "src"));
  GstContext *context = nullptr;
  if (shared_context || !gst_pad_query(pad.get(), query.get())) return;
  gst_query_parse_context(query.get(), &context);
  if (context) shared_context = gst_context_ref(context);
}

}  // namespace

namespace {

constexpr const char *kHoldProperties[] = {"types", "hold", "lookahead", "interpolate", "unmarked", "report"};

GstElement *make(const char *factory) {
  GstElement *element = gst_element_factory_make(factory, nullptr);
  fail_unless(element != nullptr, "no element %s: is GST_PLUGIN_PATH_1_0 set?", factory);
  return element;
}

bool has_property(GstElement *element, const std::string &name) {
  return g_object_class_find_property(G_OBJECT_GET_CLASS(element), name.c_str()) != nullptr;
}

// A bin of a roihold and a cudaconv behind it, in place of a cudaconv.
GstElement *make_pair() {
  GstElement *bin = gst_bin_new(nullptr), *hold = make("roihold"), *filter = make("cudaconv");
  gst_object_set_name(GST_OBJECT(hold), "hold");
  gst_object_set_name(GST_OBJECT(filter), "filter");
  gst_bin_add_many(GST_BIN(bin), hold, filter, nullptr);
  fail_unless(gst_element_link(hold, filter));
  const Ref<GstPad> sink(gst_element_get_static_pad(hold, "sink")), src(gst_element_get_static_pad(filter, "src"));
  gst_element_add_pad(bin, gst_ghost_pad_new("sink", sink.get()));
  gst_element_add_pad(bin, gst_ghost_pad_new("src", src.get()));
  return bin;
}

}  // namespace

Ref<GstElement> part_of(GstElement *element, const char *name) {
  return Ref<GstElement>(GST_IS_BIN(element) ? gst_bin_get_by_name(GST_BIN(element), name)
                                             : GST_ELEMENT(gst_object_ref(element)));
}

Ref<GstElement> new_element(const std::string &properties, bool shares_context) {
  bool holds = false;
  for (const auto &[name, value] : split(properties))
    for (const char *of_hold : kHoldProperties) holds |= name == of_hold;
  GstElement *element = holds ? make_pair() : make("cudaconv");
  gst_object_ref_sink(element);
  GstBus *bus = gst_bus_new();
  gst_element_set_bus(element, bus);
  gst_object_unref(bus);
  if (shares_context && shared_context) gst_element_set_context(element, shared_context);
  set_properties(element, std::string("backend=") + test_backend());
  set_properties(element, properties);
  return Ref<GstElement>(element);
}

Ref<GstElement> new_bin(const std::string &line) {
  GError *error = nullptr;
  GstElement *bin = gst_parse_bin_from_description(line.c_str(), TRUE, &error);
  fail_unless(bin && !error, "%s: %s", line.c_str(), error ? error->message : "");
  gst_object_ref_sink(bin);
  const Ref<GstBus> bus(gst_bus_new());
  gst_element_set_bus(bin, bus.get());
  if (shared_context) gst_element_set_context(bin, shared_context);
  return Ref<GstElement>(bin);
}

void set_properties(GstElement *element, const std::string &properties) {
  const Ref<GstElement> filter = part_of(element, "filter"), hold = part_of(element, "hold");
  for (const auto &[name, value] : split(properties)) {
    GstElement *const of = has_property(filter.get(), name) ? filter.get() : hold.get();
    fail_unless(has_property(of, name), "there is no property %s", name.c_str());
    gst_util_set_object_arg(G_OBJECT(of), name.c_str(), value.c_str());
  }
}

bool has_device() {
  GstElement *made = gst_element_factory_make("cudaconv", nullptr);
  if (!made) return true;  // the tests report that
  const Ref<GstElement> element(GST_ELEMENT(gst_object_ref_sink(made)));
  gst_util_set_object_arg(G_OBJECT(made), "backend", "cuda");
  if (shared_context) gst_element_set_context(made, shared_context);
  const bool ready = gst_element_set_state(made, GST_STATE_READY) == GST_STATE_CHANGE_SUCCESS;
  keep_context_of(made);
  gst_element_set_state(made, GST_STATE_NULL);
  return ready;
}

void forget_context() {
  if (shared_context) gst_context_unref(std::exchange(shared_context, nullptr));
}

std::vector<Ref<GstMessage>> take_messages(GstElement *element, GstMessageType type) {
  std::vector<Ref<GstMessage>> result;
  GstBus *bus = gst_element_get_bus(element);
  while (GstMessage *message = gst_bus_pop(bus)) {
    Ref<GstMessage> owned(message);
    if (GST_MESSAGE_TYPE(message) & type) result.push_back(std::move(owned));
  }
  gst_object_unref(bus);
  return result;
}

Report report_of(GstMessage *message) {
  GError *error = nullptr;
  gchar *debug = nullptr;
  switch (GST_MESSAGE_TYPE(message)) {
    case GST_MESSAGE_ERROR:
      gst_message_parse_error(message, &error, &debug);
      break;
    case GST_MESSAGE_WARNING:
      gst_message_parse_warning(message, &error, &debug);
      break;
    default:
      gst_message_parse_info(message, &error, &debug);
      break;
  }
  const Report report = {error->domain, error->code, error->message, debug ? debug : ""};
  g_error_free(error);
  g_free(debug);
  return report;
}

Harness::Harness(Ref<GstElement> element) : element_(std::move(element)) {
  // Reports why the element does not start, which GstHarness does not say.
  if (gst_element_set_state(element_.get(), GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
    std::string why;
    for (const Ref<GstMessage> &message : take_messages(element_.get(), GST_MESSAGE_ERROR))
      why += report_of(message.get()).text + "; ";
    fail("the element does not start: %s", why.c_str());
  }
  harness_ = gst_harness_new_with_element(element_.get(), "sink", "src");
}

Harness::Harness(const std::string &properties, const GstVideoInfo &info) : Harness(properties) {
  set_caps(info);
}

Harness::~Harness() {
  gst_harness_teardown(harness_);
  const std::vector<Report> left = take(static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_WARNING));
  gst_element_set_bus(element(), nullptr);
  if (!left.empty()) fail("unexpected message: %s (%s)", left[0].text.c_str(), left[0].debug.c_str());
}

void Harness::set_caps(const GstVideoInfo &info) {
  gst_harness_set_src_caps(harness_, gst_video_info_to_caps(&info));
}

GstFlowReturn Harness::push(GstBuffer *in) {
  return gst_harness_push(harness_, gst_buffer_ref(in));
}

Ref<GstBuffer> Harness::filter(GstBuffer *in) {
  GST_BUFFER_PTS(in) = gst_util_uint64_scale(frames_++, GST_SECOND, 30);
  const GstFlowReturn flow = push(in);
  if (flow != GST_FLOW_OK) {
    const std::vector<Report> errors = take(GST_MESSAGE_ERROR);
    fail("the flow is %s: %s", gst_flow_get_name(flow), errors.empty() ? "no message" : errors[0].text.c_str());
  }
  Ref<GstBuffer> out = pull();
  fail_unless_equals_int(gst_harness_buffers_in_queue(harness_), 0);
  return out;
}

Ref<GstBuffer> Harness::pull() {
  Ref<GstBuffer> out(gst_harness_pull(harness_));
  fail_unless(out != nullptr, "no frame comes out");
  return out;
}

void Harness::settle() const {
  const Ref<GstQuery> query(gst_query_new_drain());
  gst_pad_peer_query(harness_->srcpad, query.get());
}

std::vector<Report> Harness::take(GstMessageType type) {
  const auto any = static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_WARNING | GST_MESSAGE_INFO);
  for (Ref<GstMessage> &message : take_messages(element(), any)) messages_.push_back(std::move(message));
  std::vector<Report> result;
  std::vector<Ref<GstMessage>> others;
  for (Ref<GstMessage> &message : messages_) {
    if (GST_MESSAGE_TYPE(message.get()) & type)
      result.push_back(report_of(message.get()));
    else
      others.push_back(std::move(message));
  }
  messages_ = std::move(others);
  return result;
}

Report Harness::take_one(GstMessageType type) {
  const std::vector<Report> reports = take(type);
  fail_unless(reports.size() == 1, "%zu %s messages instead of one", reports.size(), gst_message_type_get_name(type));
  return reports[0];
}

Ref<GstStructure> Harness::stats() const {
  settle();
  return stats_of(element());
}

Ref<GstStructure> stats_of(GstElement *element) {
  GstStructure *stats = nullptr, *held = nullptr;
  g_object_get(part_of(element, "filter").get(), "stats", &stats, nullptr);
  if (!GST_IS_BIN(element)) return Ref<GstStructure>(stats);
  g_object_get(part_of(element, "hold").get(), "stats", &held, nullptr);
  const Ref<GstStructure> owned(held);
  for (gint i = 0; i < gst_structure_n_fields(held); i++) {
    const gchar *const name = gst_structure_nth_field_name(held, static_cast<guint>(i));
    gst_structure_set_value(stats, name, gst_structure_get_value(held, name));
  }
  return Ref<GstStructure>(stats);
}

guint64 stat(const Harness &h, const char *field) {
  const Ref<GstStructure> stats = h.stats();
  const GValue *value = gst_structure_get_value(stats.get(), field);
  fail_unless(value != nullptr, "stats has no %s", field);
  return G_VALUE_HOLDS_UINT(value) ? g_value_get_uint(value) : g_value_get_uint64(value);
}

std::string stat_string(const Harness &h, const char *field) {
  const Ref<GstStructure> stats = h.stats();
  const gchar *value = gst_structure_get_string(stats.get(), field);
  return value ? value : "";
}

void push_event(Harness &h, GstEvent *event) {
  fail_unless(gst_harness_push_event(h.get(), event));
}

Order::Order(Harness &h) : pad_(h.get()->sinkpad) {
  const auto note = [](GstPad *, GstPadProbeInfo *info, gpointer data) {
    static_cast<Order *>(data)->items_ +=
        GST_IS_BUFFER(info->data) ? "buffer " : std::string(GST_EVENT_TYPE_NAME(info->data)) + " ";
    return GST_PAD_PROBE_OK;
  };
  probe_ =
      gst_pad_add_probe(pad_,
                        static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM |
                                                     GST_PAD_PROBE_TYPE_EVENT_FLUSH),
                        note, this, nullptr);
}

Blocked::Blocked(Harness &h) : pad_(gst_pad_get_peer(h.get()->sinkpad)) {
  probe_ = gst_pad_add_probe(
      pad_.get(), static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER),
      [](GstPad *, GstPadProbeInfo *, gpointer) { return GST_PAD_PROBE_OK; }, nullptr, nullptr);
}

void offer_pool(Harness &h, GstBufferPool *pool, guint max, guint min) {
  struct Offer {
    GstBufferPool *pool;
    guint max, min;
  };
  const auto answer = [](GstPad *, GstPadProbeInfo *info, gpointer data) {
    GstQuery *query = GST_PAD_PROBE_INFO_QUERY(info);
    if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return GST_PAD_PROBE_OK;
    const auto *offer = static_cast<Offer *>(data);
    gst_query_add_allocation_pool(query, offer->pool, 0, offer->min, offer->max);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    return GST_PAD_PROBE_HANDLED;
  };
  gst_pad_add_probe(h.get()->sinkpad,
                    static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PUSH), answer,
                    new Offer{pool, max, min}, [](gpointer offer) { delete static_cast<Offer *>(offer); });
}

namespace {

// Filters `n` frames, repeating the frames of `in`, and counts in `wrong` the results that differ from `want`. For
// threads other than the main thread, where gst-check cannot fail.
void filter_many(Harness &h, const std::vector<Ref<GstBuffer>> &in, const std::vector<FrameBytes> &want,
                 const GstVideoInfo &info, int n, std::atomic<int> &wrong) {
  int out = 0;
  for (int i = 0; i <= n; i++) {
    if (i < n) {
      GstBuffer *frame = gst_buffer_copy(in[i % in.size()].get());
      GST_BUFFER_PTS(frame) = i;
      if (gst_harness_push(h.get(), frame) != GST_FLOW_OK) wrong++;
    } else if (!gst_harness_push_event(h.get(), gst_event_new_eos())) {
      wrong++;
    }
    while (GstBuffer *buffer = gst_harness_try_pull(h.get())) {
      const Ref<GstBuffer> owned(buffer);
      const int k = out++;
      if (GST_BUFFER_PTS(buffer) != static_cast<GstClockTime>(k)) wrong++;
      if (FrameBytes(buffer, info).bytes != want[k % in.size()].bytes) wrong++;
    }
  }
  if (out != n) wrong++;
}

}  // namespace

void check_side_by_side(const std::vector<std::string> &properties) {
  const GstVideoInfo info = video_info("I420", 64, 32);  // no padding in the default layout
  const int frames = number_from_environment("CUDACONV_TEST_FRAMES", 500);
  Random random = seeded();
  std::vector<Ref<GstBuffer>> in;
  for (int i = 0; i < 3; i++) in.push_back(random_frame(info, random));
  std::vector<std::unique_ptr<Harness>> harness;
  std::vector<std::vector<FrameBytes>> want;
  for (const std::string &here : properties) {
    Harness alone(here + " frames-in-flight=1", info);
    want.emplace_back();
    for (const Ref<GstBuffer> &buffer : in) {
      const Ref<GstBuffer> out = alone.filter(buffer.get());
      assert_filtered(buffer.get(), out.get(), info, here);
      want.back().emplace_back(out.get(), info);
    }
    harness.push_back(std::make_unique<Harness>(here, info));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < harness.size(); i++)
    threads.emplace_back([&, i] { filter_many(*harness[i], in, want[i], info, frames, wrong); });
  for (std::thread &thread : threads) thread.join();
  fail_unless_equals_int(wrong, 0);
  for (const auto &h : harness) fail_unless_equals_int(stat(*h, "frames"), frames);
}

// ---- Pipelines ------------------------------------------------------------------------------------------------------

namespace {

constexpr GstClockTime kPatience = 100 * GST_SECOND;

}  // namespace

Pipeline::Pipeline(const std::string &line) {
  GError *error = nullptr;
  GstElement *made = gst_parse_launch(line.c_str(), &error);
  fail_unless(made && !error, "%s: %s", line.c_str(), error ? error->message : "");
  pipeline_.reset(GST_ELEMENT(gst_object_ref_sink(made)));
}

Pipeline::~Pipeline() {
  gst_element_set_state(get(), GST_STATE_NULL);
}

Ref<GstElement> Pipeline::element(const char *name) const {
  return Ref<GstElement>(gst_bin_get_by_name(GST_BIN(get()), name));
}

bool Pipeline::go_to(GstState state) {
  gst_element_set_state(get(), state);
  return gst_element_get_state(get(), nullptr, nullptr, kPatience) == GST_STATE_CHANGE_SUCCESS;
}

std::string Pipeline::wait_for_end() {
  const Ref<GstBus> bus(gst_element_get_bus(get()));
  const Ref<GstMessage> message(gst_bus_timed_pop_filtered(
      bus.get(), kPatience, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
  if (!message) return "it does not end";
  return GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ERROR ? report_of(message.get()).text : "";
}

// ---- A pool of placed buffers ---------------------------------------------------------------------------------------

namespace {

struct PlacedPool {
  GstBufferPool parent;
  GstVideoInfo info;
  guint8 fill;
};
struct PlacedPoolClass {
  GstBufferPoolClass parent_class;
};

G_DEFINE_TYPE(PlacedPool, placed_pool, GST_TYPE_BUFFER_POOL)

void placed_pool_class_init(PlacedPoolClass *klass) {
  GstBufferPoolClass *pool_class = GST_BUFFER_POOL_CLASS(klass);
  pool_class->get_options = [](GstBufferPool *) {
    static const gchar *options[] = {GST_BUFFER_POOL_OPTION_VIDEO_META, nullptr};
    return options;
  };
  pool_class->alloc_buffer = [](GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *) {
    const auto *self = reinterpret_cast<PlacedPool *>(pool);
    *buffer = new_placed_buffer(self->info, self->fill);
    return GST_FLOW_OK;
  };
}

void placed_pool_init(PlacedPool *) {}

}  // namespace

GstBufferPool *new_placed_pool(const GstVideoInfo &info, guint8 fill) {
  auto *pool = static_cast<PlacedPool *>(g_object_new(placed_pool_get_type(), nullptr));
  gst_object_ref_sink(pool);
  pool->info = info;
  pool->fill = fill;
  return GST_BUFFER_POOL(pool);
}

// ---- Memory that cannot be mapped -----------------------------------------------------------------------------------

namespace {

struct Unmappable {
  GstAllocator parent;
};
struct UnmappableClass {
  GstAllocatorClass parent_class;
};
G_DEFINE_TYPE(Unmappable, unmappable, GST_TYPE_ALLOCATOR)
void unmappable_class_init(UnmappableClass *klass) {
  GST_ALLOCATOR_CLASS(klass)->free = [](GstAllocator *, GstMemory *memory) { g_free(memory); };
}
void unmappable_init(Unmappable *self) {
  GST_ALLOCATOR_CAST(self)->mem_type = "unmappable";
  GST_ALLOCATOR_CAST(self)->mem_map = [](GstMemory *, gsize, GstMapFlags) -> gpointer { return nullptr; };
  GST_ALLOCATOR_CAST(self)->mem_unmap = [](GstMemory *) {};
}

}  // namespace

Ref<GstBuffer> unmappable_buffer(gsize size) {
  const Ref<GstAllocator> allocator(
      static_cast<GstAllocator *>(gst_object_ref_sink(g_object_new(unmappable_get_type(), nullptr))));
  GstMemory *memory = g_new0(GstMemory, 1);
  gst_memory_init(memory, GST_MEMORY_FLAG_NO_SHARE, allocator.get(), nullptr, size, 0, 0, size);
  Ref<GstBuffer> buffer(gst_buffer_new());
  gst_buffer_append_memory(buffer.get(), memory);
  return buffer;
}

int run_suite(int argc, char **argv, const char *name, Suite *(*make_suite)(), bool needs_device) {
  gst_check_init(&argc, &argv);
  if (gst_plugin_cudaconv_register) gst_plugin_cudaconv_register();
  if (needs_device && !has_device()) {
    g_printerr("SKIP: no CUDA device\n");
    return 77;
  }
  const int failed = gst_check_run_suite(make_suite(), name, name);
  std::fflush(nullptr);
  if (failed) std::_Exit(1);  // at a regular exit GStreamer would wait for the elements of tests that have failed
  return 0;
}

}  // namespace cudaconv::test
