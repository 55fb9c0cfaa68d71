// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvformat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

namespace {

// The formats in system memory, by name since versions of GStreamer differ in which they know. They are in order of
// preference where both neighbours take several: 8 bits before more, which take longer, and common ones first.
// clang-format off
constexpr const char *kSystemFormats[] = {
    "NV12", "I420", "YV12", "NV21", "RGBA", "BGRA", "RGBx", "BGRx", "ARGB", "ABGR", "xRGB", "xBGR", "RBGA",
    "RGB", "BGR", "RGBP", "BGRP", "GBR", "GBRA", "Y42B", "Y444", "NV16", "NV61", "NV24", "Y41B", "YUV9", "YVU9",
    "A420", "A422", "A444", "AV12", "AYUV", "VUYA", "v308", "IYU2", "YUY2", "UYVY", "YVYU", "VYUY", "GRAY8",
    "P010_10LE", "P010_10BE", "P012_LE", "P012_BE", "P016_LE", "P016_BE",
    "I420_10LE", "I420_10BE", "I420_12LE", "I420_12BE", "I422_10LE", "I422_10BE", "I422_12LE", "I422_12BE",
    "Y444_10LE", "Y444_10BE", "Y444_12LE", "Y444_12BE", "Y444_16LE", "Y444_16BE",
    "A420_10LE", "A420_10BE", "A422_10LE", "A422_10BE", "A444_10LE", "A444_10BE",
    "A420_12LE", "A420_12BE", "A422_12LE", "A422_12BE", "A444_12LE", "A444_12BE",
    "A420_16LE", "A420_16BE", "A422_16LE", "A422_16BE", "A444_16LE", "A444_16BE",
    "GBR_10LE", "GBR_10BE", "GBR_12LE", "GBR_12BE", "GBR_16LE", "GBR_16BE",
    "GBRA_10LE", "GBRA_10BE", "GBRA_12LE", "GBRA_12BE",
    "ARGB64", "ARGB64_LE", "ARGB64_BE", "RGBA64_LE", "RGBA64_BE", "BGRA64_LE", "BGRA64_BE", "ABGR64_LE", "ABGR64_BE",
    "AYUV64", "Y412_LE", "Y412_BE", "Y416_LE", "Y416_BE",
    "Y210", "Y212_LE", "Y212_BE", "Y216_LE", "Y216_BE", "v216",
    "Y410", "BGR10A2_LE", "RGB10A2_LE", "BGR10x2_LE", "RGB10x2_LE",
    "GRAY16_LE", "GRAY16_BE", "GRAY10_LE16", nullptr,
};
// clang-format on

// A format as describe_frame() needs it. It is copied as bytes: some members are deprecated, and Clang warns of a copy.
struct Format : GstVideoFormatInfo {
  explicit Format(const GstVideoFormatInfo &info);
  Format(const Format &) = delete;

  bool bit_fields = false;  // the components are bit fields of a 32-bit word, and `shift` is the lowest bit of each
};

// Corrects the formats whose GstVideoFormatInfo describes them incompletely.
struct Correction {
  enum Unit { Bytes, Bits };
  const char *format;  // how their names begin
  // The start of each component: bytes from the start of the pixel, or its lowest bit in a 32-bit word.
  Unit unit;
  guint position[GST_VIDEO_MAX_COMPONENTS];
};
constexpr Correction kCorrections[] = {
    {"P01", Correction::Bytes, {0, 0, 2}},      // P010_10LE, P012_BE and others: Y, and U V
    {"VYUY", Correction::Bytes, {1, 2, 0}},     // as GStreamer packs and unpacks it
    {"Y21", Correction::Bytes, {0, 2, 6}},      // Y210, Y212 and Y216: Y U Y V
    {"Y412", Correction::Bytes, {2, 0, 4, 6}},  // U Y V A
    {"Y416", Correction::Bytes, {2, 0, 4, 6}},  // likewise
    {"Y410", Correction::Bits, {10, 0, 20, 30}},
    {"BGR10", Correction::Bits, {20, 10, 0, 30}},  // with two bits of alpha or of padding
    {"RGB10", Correction::Bits, {0, 10, 20, 30}},
};

Format::Format(const GstVideoFormatInfo &info) {
  memcpy(static_cast<GstVideoFormatInfo *>(this), &info, sizeof info);
  const auto is_named = [&](const char *other) { return !strcmp(name, other); };
  // v216 and Y210 are little endian too, but lack the flag.
  if (is_named("v216") || is_named("Y210")) flags = static_cast<GstVideoFormatFlags>(flags | GST_VIDEO_FORMAT_FLAG_LE);
  for (const Correction &correction : kCorrections) {
    if (!g_str_has_prefix(name, correction.format)) continue;
    bit_fields = correction.unit == Correction::Bits;
    for (guint c = 0; c < n_components; c++) (bit_fields ? shift : poffset)[c] = correction.position[c];
  }
  if (is_named("Y210"))
    for (guint &bits : shift) bits = 6;  // the sample is in the high bits of its 16
}

Role role_of(const Format &format, guint component) {
  if (component == GST_VIDEO_COMP_A) return Role::Alpha;
  return GST_VIDEO_FORMAT_INFO_IS_YUV(&format) && component != GST_VIDEO_COMP_Y ? Role::Chroma : Role::Luma;
}

// A colour as the sample value of each component. Padding channels, such as the x of RGBx, have its alpha.
struct Color {
  guint32 alpha = 0;  // of 255
  int value[GST_VIDEO_MAX_COMPONENTS];
};

// An enumeration's number: caps and metas may have numbers that C++ must not read as the enumeration.
template <typename Enum>
guint number_of(const Enum &value) {
  guint number;
  static_assert(sizeof number == sizeof value);
  memcpy(&number, &value, sizeof number);
  return number;
}

// `value`, or 0 for "unknown" where GStreamer has no name for it.
template <typename Enum>
Enum known(const Enum &value, Enum last) {
  return number_of(value) <= number_of(last) ? value : Enum{};
}

// Converts `argb` to the colour matrix and range of `info`.
Color convert_color(const GstVideoInfo &info, guint32 argb) {
  Color result;
  result.alpha = argb >> 24;
  const double a = ((argb >> 24) & 0xff) / 255.0, r = ((argb >> 16) & 0xff) / 255.0, g = ((argb >> 8) & 0xff) / 255.0,
               b = (argb & 0xff) / 255.0;
  double color[GST_VIDEO_MAX_COMPONENTS] = {r, g, b, a};
  if (!GST_VIDEO_INFO_IS_RGB(&info)) {
    double kr, kb;
    if (!gst_video_color_matrix_get_Kr_Kb(known(info.colorimetry.matrix, GST_VIDEO_COLOR_MATRIX_BT2020), &kr, &kb))
      gst_video_color_matrix_get_Kr_Kb(info.height > 576 ? GST_VIDEO_COLOR_MATRIX_BT709 : GST_VIDEO_COLOR_MATRIX_BT601,
                                       &kr, &kb);
    const double y = kr * r + (1 - kr - kb) * g + kb * b;
    color[0] = y;
    color[1] = (b - y) / (2 * (1 - kb));
    color[2] = (r - y) / (2 * (1 - kr));
  }
  gint offset[GST_VIDEO_MAX_COMPONENTS], scale[GST_VIDEO_MAX_COMPONENTS];
  gst_video_color_range_offsets(known(info.colorimetry.range, GST_VIDEO_COLOR_RANGE_16_235), info.finfo, offset, scale);
  for (guint c = 0; c < info.finfo->n_components; c++) {
    const int max = (1 << info.finfo->depth[c]) - 1;
    result.value[c] = std::clamp(static_cast<int>(std::floor(offset[c] + scale[c] * color[c] + 0.5)), 0, max);
  }
  return result;
}

// Components in one plane of memory with the same step and subsampling, which make up one plane of a FrameLayout.
struct Group {
  std::vector<guint> component;
  bool alone = true;  // no other components are in that plane of memory
};

Group group_of(guint first, const Format &format) {
  Group group;
  const auto of = [&](guint c) { return std::make_tuple(format.pixel_stride[c], format.w_sub[c], format.h_sub[c]); };
  for (guint c = 0; c < format.n_components; c++) {
    if (format.plane[c] != format.plane[first]) continue;
    if (of(c) == of(first))
      group.component.push_back(c);
    else
      group.alone = false;
  }
  return group;
}

// Fills in channels, step and container of `plane` for the components of `group`. False where no PlaneLayout expresses
// them.
bool describe_pixel(const Group &group, const Format &format, const Color &border, const Color &fill,
                    PlaneLayout *plane) {
  const guint lead = group.component[0];
  if (format.bit_fields)
    plane->container = Container::Packed32;
  else if (format.depth[lead] + format.shift[lead] <= 8)
    plane->container = Container::U8;
  else
    plane->container = GST_VIDEO_FORMAT_INFO_IS_LE(&format) ? Container::U16 : Container::U16BE;
  const int bytes = plane->bytes_per_container(), stride = format.pixel_stride[lead];
  if (stride <= 0 || stride % bytes) return false;
  plane->step = stride / bytes;

  // The components, or -1 for padding, by their position in bits of the word or in containers.
  std::map<int, int> pixel;
  for (const guint c : group.component) {
    const auto offset = static_cast<int>(format.poffset[c]), shift = static_cast<int>(format.shift[c]);
    if (!format.bit_fields && (offset % bytes || static_cast<int>(format.depth[c]) + shift > 8 * bytes)) return false;
    if (!pixel.emplace(format.bit_fields ? shift : offset / bytes, c).second) return false;  // two share a container
  }
  if (group.alone && !format.bit_fields)
    for (int position = 0; position < plane->step; position++) pixel.emplace(position, -1);  // where none is
  if (pixel.size() > kMaxChannels) return false;

  plane->first = format.bit_fields ? 0 : pixel.begin()->first;
  for (const auto [position, c] : pixel) {
    const int i = plane->channels++;
    ChannelLayout &channel = plane->channel[i];
    channel.offset = static_cast<uint8_t>(position - plane->first);
    if (c < 0) {
      channel.role = Role::Padding;
      channel.depth = static_cast<uint8_t>(8 * bytes);
      plane->fill_value[i] = static_cast<uint16_t>(bytes == 1 ? fill.alpha : 257 * fill.alpha);
      continue;
    }
    channel.role = role_of(format, static_cast<guint>(c));
    channel.depth = static_cast<uint8_t>(format.depth[c]);
    channel.shift = static_cast<uint8_t>(format.bit_fields ? 0 : format.shift[c]);
    plane->border_value[i] = static_cast<uint16_t>(border.value[c]);
    plane->fill_value[i] = static_cast<uint16_t>(fill.value[c]);
  }
  return true;
}

// The rows of the component's plane that the default layout has room for.
int rows_allocated(const GstVideoInfo &info, guint component) {
  const guint plane = GST_VIDEO_INFO_COMP_PLANE(&info, component);
  const gsize begin = GST_VIDEO_INFO_PLANE_OFFSET(&info, plane);
  gsize end = GST_VIDEO_INFO_SIZE(&info);
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); p++)
    if (GST_VIDEO_INFO_PLANE_OFFSET(&info, p) > begin) end = std::min(end, GST_VIDEO_INFO_PLANE_OFFSET(&info, p));
  return static_cast<int>((end - begin) / GST_VIDEO_INFO_PLANE_STRIDE(&info, plane));
}

// The rows of the component's plane. Each field of an interlaced frame has rows of its own: with 4:2:0, lines 0 and 2
// share a row of chroma, and so do lines 1 and 3. A frame of 486 lines has 244 rows of chroma, a progressive one 243.
// GstVideoInfo of 1.22 has no room for the last row in P010_10LE and related formats.
int rows_of(const GstVideoInfo &info, guint component, bool interlaced) {
  const int rows = GST_VIDEO_INFO_COMP_HEIGHT(&info, component);
  if (!interlaced) return rows;
  const int lines = GST_VIDEO_INFO_HEIGHT(&info);
  const auto scaled = [&](int n) { return GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(info.finfo, component, n); };
  const int top = scaled((lines + 1) / 2), bottom = scaled(lines / 2);
  return std::min(std::max(2 * top - 1, 2 * bottom), std::max(rows, rows_allocated(info, component)));
}

// The formats that GStreamer knows and a FrameLayout can express. The list of their names ends with nullptr.
std::vector<GstVideoFormat> known_formats(const char *const *names) {
  std::vector<GstVideoFormat> formats;
  for (; *names; names++) {
    GstVideoInfo info;
    FrameLayout layout;
    const GstVideoFormat format = gst_video_format_from_string(*names);
    if (format != GST_VIDEO_FORMAT_UNKNOWN && gst_video_info_set_format(&info, format, 16, 16) &&
        describe_frame(info, 0, &layout))
      formats.push_back(format);
  }
  return formats;
}

constexpr guint kNowhere = std::size(kSystemFormats) - 1;

// The place of a format in kSystemFormats, or kNowhere. Each query of caps asks for hundreds of them.
guint place_of(const GValue *format) {
  static GHashTable *const places = [] {
    GHashTable *table = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < kNowhere; i++)
      g_hash_table_insert(table, const_cast<char *>(kSystemFormats[i]), GUINT_TO_POINTER(kNowhere - i));
    return table;
  }();
  return kNowhere - GPOINTER_TO_UINT(g_hash_table_lookup(places, g_value_get_string(format)));
}

// Removes `text` from the values that `field` may have. False where none is left.
bool exclude(GstStructure *structure, const char *field, const char *text) {
  const GValue *texts = gst_structure_get_value(structure, field);
  if (!texts) return true;
  GValue excluded = G_VALUE_INIT, rest = G_VALUE_INIT;
  g_value_init(&excluded, G_TYPE_STRING);
  g_value_set_static_string(&excluded, text);
  const bool some_left = gst_value_subtract(&rest, texts, &excluded);
  if (some_left) gst_structure_take_value(structure, field, &rest);
  return some_left;
}

}  // namespace

bool describe_frame(const GstVideoInfo &info, guint32 border_color, FrameLayout *layout, bool interlaced,
                    guint32 fill_color) {
  const GstVideoFormatInfo *finfo = info.finfo;
  if (GST_VIDEO_FORMAT_INFO_IS_COMPLEX(finfo) || GST_VIDEO_FORMAT_INFO_IS_TILED(finfo) ||
      GST_VIDEO_FORMAT_INFO_HAS_PALETTE(finfo))
    return false;
  const Format format(*finfo);
  const Color border = convert_color(info, border_color), fill = convert_color(info, fill_color);

  *layout = FrameLayout();
  layout->interlaced = interlaced;
  bool described[GST_VIDEO_MAX_COMPONENTS] = {};
  for (guint first = 0; first < format.n_components; first++) {
    if (described[first]) continue;
    const Group group = group_of(first, format);
    for (const guint c : group.component) described[c] = true;

    if (layout->planes == kMaxPlanes) return false;
    PlaneLayout &plane = layout->plane[layout->planes++];
    plane.width = GST_VIDEO_INFO_COMP_WIDTH(&info, first);
    plane.height = rows_of(info, first, interlaced);
    plane.sub_x = static_cast<int>(GST_VIDEO_FORMAT_INFO_W_SUB(finfo, first));
    plane.sub_y = static_cast<int>(GST_VIDEO_FORMAT_INFO_H_SUB(finfo, first));
    plane.memory_plane = static_cast<int>(format.plane[first]);
    if (!describe_pixel(group, format, border, fill, &plane)) return false;
  }
  return layout->planes > 0;
}

bool loses_rows_in_cuda_memory(const GstVideoInfo &info) {
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  if (mode != GST_VIDEO_INTERLACE_MODE_INTERLEAVED && mode != GST_VIDEO_INTERLACE_MODE_MIXED) return false;
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++)
    if (rows_of(info, c, true) > GST_VIDEO_INFO_COMP_HEIGHT(&info, c)) return true;
  return false;
}

guint format_of(const GstVideoMeta &meta) {
  return number_of(meta.format);
}

std::string format_text(guint format) {
  // gst_video_format_to_string() of GStreamer 1.26 must not be called with a number that it does not know.
  auto *known = static_cast<GEnumClass *>(g_type_class_ref(GST_TYPE_VIDEO_FORMAT));
  const bool named = format != GST_VIDEO_FORMAT_UNKNOWN && g_enum_get_value(known, static_cast<gint>(format));
  g_type_class_unref(known);
  return named ? gst_video_format_to_string(static_cast<GstVideoFormat>(format)) : "number " + std::to_string(format);
}

gsize row_bytes(const PlaneLayout &plane) {
  int last = 0;
  if (plane.container != Container::Packed32)
    for (int c = 0; c < plane.channels; c++) last = std::max<int>(last, plane.channel[c].offset);
  const gsize containers = plane.first + static_cast<gsize>(plane.width - 1) * plane.step + last + 1;
  return containers * plane.bytes_per_container();
}

GstCaps *template_caps() {
  GstCaps *caps = gst_caps_new_empty();
  // All come a second time with the feature of overlays that stay beside the picture, for the sink to draw.
  const auto append = [caps](const std::vector<GstVideoFormat> &formats, const char *feature, const char *mode) {
    const std::initializer_list<const char *> both = {nullptr, GST_CAPS_FEATURE_META_GST_VIDEO_OVERLAY_COMPOSITION};
    for (const char *overlays : both) {
      GstCapsFeatures *features = gst_caps_features_new(feature, overlays, nullptr);
      GstCaps *more = gst_video_make_raw_caps_with_features(formats.data(), formats.size(), features);
      if (mode) gst_caps_set_simple(more, "interlace-mode", G_TYPE_STRING, mode, nullptr);
      gst_caps_append(caps, more);
    }
  };
  if (*cuda_memory_formats()) append(known_formats(cuda_memory_formats()), kFeatureCudaMemory, nullptr);
  const std::vector<GstVideoFormat> formats = known_formats(kSystemFormats);
  append(formats, GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY, nullptr);
  // With interlace-mode=alternate each buffer holds one field, which is filtered as a frame of its own.
  append(formats, GST_CAPS_FEATURE_FORMAT_INTERLACED, "alternate");
  return with_common_formats_first(caps);
}

bool is_cuda(const GstCapsFeatures *features) {
  return !gst_caps_features_is_any(features) && gst_caps_features_contains(features, kFeatureCudaMemory);
}

bool is_cuda_caps(const GstCaps *caps) {
  return !gst_caps_is_empty(caps) && !gst_caps_is_any(caps) && is_cuda(gst_caps_get_features(caps, 0));
}

GstCapsFeatures *in_other_memory(const GstCapsFeatures *features) {
  const char *memory = GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY, *other_memory = kFeatureCudaMemory;
  if (gst_caps_features_contains(features, kFeatureCudaMemory)) std::swap(memory, other_memory);
  GstCapsFeatures *other = gst_caps_features_new_single(other_memory);
  for (guint i = 0; i < gst_caps_features_get_size(features); i++) {
    const gchar *feature = gst_caps_features_get_nth(features, i);
    if (g_str_has_prefix(feature, "meta:")) {
      gst_caps_features_add(other, feature);
    } else if (strcmp(feature, memory) != 0) {
      gst_caps_features_free(other);
      return nullptr;
    }
  }
  return other;
}

GstCaps *with_either_memory(const GstCaps *caps) {
  GstCaps *result = gst_caps_copy(caps);
  if (!*cuda_memory_formats()) return result;
  for (guint i = 0; i < gst_caps_get_size(caps); i++) {
    GstCapsFeatures *other = in_other_memory(gst_caps_get_features(caps, i));
    if (other)
      result = gst_caps_merge_structure_full(result, gst_structure_copy(gst_caps_get_structure(caps, i)), other);
  }
  return result;
}

GstCaps *without_split_frames(GstCaps *caps) {
  caps = gst_caps_make_writable(caps);
  const auto is_left = [](GstCapsFeatures *, GstStructure *structure, gpointer) -> gboolean {
    return exclude(structure, "interlace-mode", "fields") && exclude(structure, "multiview-mode", "separated");
  };
  gst_caps_filter_and_map_in_place(caps, is_left, nullptr);
  return caps;
}

GstCaps *with_common_formats_first(GstCaps *caps) {
  caps = gst_caps_make_writable(caps);
  for (guint i = 0; i < gst_caps_get_size(caps); i++) {
    GstStructure *structure = gst_caps_get_structure(caps, i);
    const GValue *formats = gst_structure_get_value(structure, "format");
    if (!formats || !GST_VALUE_HOLDS_LIST(formats)) continue;
    const GValue *common[kNowhere] = {};
    GValue sorted = G_VALUE_INIT;
    gst_value_list_init(&sorted, gst_value_list_get_size(formats));
    for (guint k = 0; k < gst_value_list_get_size(formats); k++) {
      const GValue *format = gst_value_list_get_value(formats, k);
      if (place_of(format) < kNowhere) common[place_of(format)] = format;
    }
    for (const GValue *one : common)
      if (one) gst_value_list_append_value(&sorted, one);
    for (guint k = 0; k < gst_value_list_get_size(formats); k++) {
      const GValue *format = gst_value_list_get_value(formats, k);
      if (place_of(format) == kNowhere) gst_value_list_append_value(&sorted, format);
    }
    gst_structure_take_value(structure, "format", &sorted);
  }
  return caps;
}

}  // namespace cudaconv::gst
