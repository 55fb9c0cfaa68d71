// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvenums.h"

#include "filter.h"

namespace {

using namespace cudaconv;
using cudaconv::gst::BackendChoice;
using cudaconv::gst::RoiShape;

// A GEnumValue from a scoped enumerator.
template <typename Enum>
constexpr GEnumValue value(Enum v, const char *nick, const char *text) {
  return {static_cast<gint>(v), text, nick};
}
constexpr GEnumValue kEnd = {0, nullptr, nullptr};

}  // namespace

GType gst_cuda_conv_mask_get_type() {
  static const GEnumValue values[] = {
      value(Mask::Identity, "identity", "Nothing: frames pass unchanged"),
      value(Mask::Box3, "box3", "Mean of 3x3 pixels"),
      value(Mask::Box5, "box5", "Mean of 5x5 pixels"),
      value(Mask::Box7, "box7", "Mean of 7x7 pixels"),
      value(Mask::Box, "box", "Mean of size x size pixels"),
      value(Mask::Gauss3, "gauss3", "Gaussian blur, [1 2 1]/4 by itself"),
      value(Mask::Gauss5, "gauss5", "Gaussian blur, [1 4 6 4 1]/16 by itself"),
      value(Mask::Gauss7, "gauss7", "Gaussian blur, [2 7 14 18 14 7 2]/64 by itself"),
      value(Mask::Gauss9, "gauss9", "Gaussian blur, [4 13 30 51 60 51 30 13 4]/256 by itself"),
      value(Mask::Gauss, "gauss", "Gaussian blur by sigma and size"),
      value(Mask::Sharpen, "sharpen", "Sharpening, [0 -1 0; -1 5 -1; 0 -1 0]"),
      value(Mask::Unsharp, "unsharp", "Unsharp masking by amount, sigma and size"),
      value(Mask::Emboss, "emboss", "Relief, [-2 -1 0; -1 1 1; 0 1 2]"),
      value(Mask::Laplace, "laplace", "Laplacian, [0 1 0; 1 -4 1; 0 1 0]"),
      value(Mask::Laplace8, "laplace8", "Laplacian of eight neighbours, [1 1 1; 1 -8 1; 1 1 1]"),
      value(Mask::Log5, "log5", "Laplacian of a Gaussian, 5x5"),
      value(Mask::SobelX, "sobel-x", "Horizontal Sobel gradient, [-1 0 1; -2 0 2; -1 0 1]"),
      value(Mask::SobelY, "sobel-y", "Vertical Sobel gradient"),
      value(Mask::Sobel, "sobel", "Magnitude of the Sobel gradient"),
      value(Mask::ScharrX, "scharr-x", "Horizontal Scharr gradient, [-3 0 3; -10 0 10; -3 0 3]"),
      value(Mask::ScharrY, "scharr-y", "Vertical Scharr gradient"),
      value(Mask::Scharr, "scharr", "Magnitude of the Scharr gradient"),
      value(Mask::PrewittX, "prewitt-x", "Horizontal Prewitt gradient, [-1 0 1; -1 0 1; -1 0 1]"),
      value(Mask::PrewittY, "prewitt-y", "Vertical Prewitt gradient"),
      value(Mask::Prewitt, "prewitt", "Magnitude of the Prewitt gradient"),
      value(Mask::Roberts, "roberts", "Magnitude of the diagonal differences of 2x2 pixels"),
      value(Mask::Kirsch, "kirsch", "Largest of the eight compass responses of [5 5 5; -3 0 -3; -3 -3 -3]"),
      value(Mask::Dilate, "dilate", "Largest value within the structuring element"),
      value(Mask::Erode, "erode", "Smallest value within the structuring element"),
      value(Mask::Open, "open", "Erosion, then dilation: removes small bright spots"),
      value(Mask::Close, "close", "Dilation, then erosion: removes small dark spots"),
      value(Mask::Gradient, "gradient", "Dilation minus erosion: outlines"),
      value(Mask::Tophat, "tophat", "Source minus its opening: small bright spots"),
      value(Mask::Blackhat, "blackhat", "Closing minus the source: small dark spots"),
      value(Mask::Median, "median", "Median of size x size pixels"),
      value(Mask::Mosaic, "mosaic",
            "The mean of each block of size x size pixels in its place; blocks begin at the top left corner of the "
            "frame or of each region"),
      value(Mask::Custom, "custom", "The mask in the property coefficients"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvMask", values);
  return type;
}

GType gst_cuda_conv_shape_get_type() {
  static const GEnumValue values[] = {
      value(Shape::Rect, "rect", "The whole square"),
      value(Shape::Cross, "cross", "The middle row and the middle column"),
      value(Shape::Ellipse, "ellipse", "The disc within the square"),
      value(Shape::Custom, "custom", "Where the property coefficients is not 0"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvShape", values);
  return type;
}

GType gst_cuda_conv_negative_get_type() {
  static const GEnumValue values[] = {
      value(Negative::Auto, "auto", "Absolute for directional gradients, laplace, laplace8 and log5, else clamp"),
      value(Negative::Clamp, "clamp", "Negative results become 0"),
      value(Negative::Absolute, "absolute", "Negative results lose their sign"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvNegative", values);
  return type;
}

GType gst_cuda_conv_magnitude_get_type() {
  static const GEnumValue values[] = {
      value(Magnitude::L2, "l2", "The length of the gradient, sqrt(gx^2 + gy^2)"),
      value(Magnitude::L1, "l1", "The sum of its parts, |gx| + |gy|"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvMagnitude", values);
  return type;
}

GType gst_cuda_conv_border_get_type() {
  static const GEnumValue values[] = {
      value(Border::Replicate, "replicate", "The edge pixel repeats: aaa|abcd|ddd"),
      value(Border::Reflect, "reflect", "The frame is mirrored at its edge: cba|abcd|dcb"),
      value(Border::Reflect101, "reflect101", "The frame is mirrored at its edge pixel: dcb|abcd|cba"),
      value(Border::Wrap, "wrap", "The frame repeats: bcd|abcd|abc"),
      value(Border::Constant, "constant", "Pixels outside have the colour border-color"),
      value(Border::Keep, "keep", "Pixels whose window crosses the edge are copied, not filtered"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvBorder", values);
  return type;
}

GType gst_cuda_conv_chroma_get_type() {
  static const GEnumValue values[] = {
      value(Chroma::Auto, "auto", "Neutral for gradients, laplacians and emboss, else filter"),
      value(Chroma::Filter, "filter", "Chroma is filtered like luma, at its own resolution"),
      value(Chroma::Copy, "copy", "Chroma is copied"),
      value(Chroma::Neutral, "neutral", "Chroma becomes grey"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvChroma", values);
  return type;
}

GType gst_cuda_conv_alpha_get_type() {
  static const GEnumValue values[] = {
      value(Alpha::Copy, "copy", "Alpha is copied"),
      value(Alpha::Filter, "filter", "Alpha is filtered like the colours"),
      value(Alpha::Weighted, "weighted",
            "Alpha is filtered, and colours are weighted by it: what is transparent does not bleed into what is not; "
            "for masks without negative coefficients"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvAlpha", values);
  return type;
}

GType gst_cuda_conv_roi_shape_get_type() {
  static const GEnumValue values[] = {
      value(RoiShape::Rect, "rect", "The whole rectangle"),
      value(RoiShape::Ellipse, "ellipse", "The ellipse within the rectangle"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvRoiShape", values);
  return type;
}

GType gst_cuda_conv_backend_get_type() {
  static const GEnumValue values[] = {
      value(BackendChoice::Auto, "auto", "CUDA where a device works, else the CPU"),
      value(BackendChoice::Cuda, "cuda", "CUDA only: without a device the element does not start"),
      value(BackendChoice::Cpu, "cpu", "The CPU only"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvBackend", values);
  return type;
}

GType gst_cuda_conv_method_get_type() {
  static const GEnumValue values[] = {
      value(Method::Auto, "auto", "Whichever is fastest for the mask, format and frame"),
      value(Method::Global, "global", "Frame and mask are read from global memory"),
      value(Method::Constant, "constant", "The mask is in constant memory, the frame read without a tile"),
      value(Method::Tiled, "tiled", "A shared-memory tile with its halo, mask in constant memory"),
      value(Method::TiledCached, "tiled-cached", "A tile without halo, whose neighbours are read through the cache"),
      value(Method::Blocked, "blocked", "Several pixels per thread, without shared memory"),
      value(Method::Cascade, "cascade", "5x5 morphology as two steps of 3x3 in one launch"),
      value(Method::Separable, "separable", "Row and column passes in one launch, for separable masks"),
      kEnd,
  };
  static const GType type = g_enum_register_static("GstCudaConvMethod", values);
  return type;
}
