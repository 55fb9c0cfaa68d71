// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvenums.h"

#include "filter.h"

namespace {

using namespace cudaconv;
using cudaconv::gst::BackendChoice;
using cudaconv::gst::RoiShape;
using cudaconv::gst::RoiUnmarked;

// A GEnumValue from a scoped enumerator.
template <typename Enum>
constexpr GEnumValue value(Enum v, const char *nick, const char *text) {
  return {static_cast<gint>(v), text, nick};
}
constexpr GEnumValue kEnd = {0, nullptr, nullptr};

// Registers an enum of filter.h.
template <typename Enum, size_t n>
GType register_enum(const char *name, const Named<Enum> (&names)[n]) {
  static GEnumValue values[n + 1] = {};  // the last one is the end
  for (size_t i = 0; i < n; i++) values[i] = value(names[i].value, names[i].nick, names[i].text);
  return g_enum_register_static(name, values);
}

}  // namespace

GType gst_cuda_conv_mask_get_type() {
  static const GType type = register_enum("GstCudaConvMask", kMaskNames);
  return type;
}

GType gst_cuda_conv_shape_get_type() {
  static const GType type = register_enum("GstCudaConvShape", kShapeNames);
  return type;
}

GType gst_cuda_conv_negative_get_type() {
  static const GType type = register_enum("GstCudaConvNegative", kNegativeNames);
  return type;
}

GType gst_cuda_conv_magnitude_get_type() {
  static const GType type = register_enum("GstCudaConvMagnitude", kMagnitudeNames);
  return type;
}

GType gst_cuda_conv_border_get_type() {
  static const GType type = register_enum("GstCudaConvBorder", kBorderNames);
  return type;
}

GType gst_cuda_conv_luma_get_type() {
  static const GType type = register_enum("GstCudaConvLuma", kLumaNames);
  return type;
}

GType gst_cuda_conv_chroma_get_type() {
  static const GType type = register_enum("GstCudaConvChroma", kChromaNames);
  return type;
}

GType gst_cuda_conv_alpha_get_type() {
  static const GType type = register_enum("GstCudaConvAlpha", kAlphaNames);
  return type;
}

GType gst_cuda_conv_roi_shape_get_type() {
  static const GEnumValue values[] = {
      value(RoiShape::Rect, "rect", "Whole rectangle"),
      value(RoiShape::Ellipse, "ellipse", "Ellipse inscribed in the rectangle"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvRoiShape", values);
  return type;
}

GType gst_cuda_conv_roi_unmarked_get_type() {
  static const GEnumValue values[] = {
      value(RoiUnmarked::Pass, "pass", "Filter only the regions of roi, or with roi-invert everything but these"),
      value(RoiUnmarked::Filter, "filter", "Filter the whole frame"),
      value(RoiUnmarked::Drop, "drop", "Drop the frame"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvRoiUnmarked", values);
  return type;
}

GType gst_cuda_conv_backend_get_type() {
  static const GEnumValue values[] = {
      value(BackendChoice::Auto, "auto", "CUDA if a GPU can be used, else the CPU"),
      value(BackendChoice::Cuda, "cuda", "CUDA only; without a GPU the element does not start"),
      value(BackendChoice::Cpu, "cpu", "CPU only"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvBackend", values);
  return type;
}

GType gst_cuda_conv_method_get_type() {
  static const GType type = register_enum("GstCudaConvMethod", kMethodNames);
  return type;
}
