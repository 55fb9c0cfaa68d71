// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The enumerations of kernels/filter.h and of the element as GObject enum types. The values are the same, and nicks are
// the words of launch lines.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

enum class BackendChoice { Auto, Cuda, Cpu };
enum class RoiShape { Rect, Ellipse };
enum class RoiUnmarked { Pass, Filter, Drop };

}  // namespace cudaconv::gst

#define GST_TYPE_CUDA_CONV_MASK (gst_cuda_conv_mask_get_type())
#define GST_TYPE_CUDA_CONV_SHAPE (gst_cuda_conv_shape_get_type())
#define GST_TYPE_CUDA_CONV_NEGATIVE (gst_cuda_conv_negative_get_type())
#define GST_TYPE_CUDA_CONV_MAGNITUDE (gst_cuda_conv_magnitude_get_type())
#define GST_TYPE_CUDA_CONV_BORDER (gst_cuda_conv_border_get_type())
#define GST_TYPE_CUDA_CONV_LUMA (gst_cuda_conv_luma_get_type())
#define GST_TYPE_CUDA_CONV_CHROMA (gst_cuda_conv_chroma_get_type())
#define GST_TYPE_CUDA_CONV_ALPHA (gst_cuda_conv_alpha_get_type())
#define GST_TYPE_CUDA_CONV_ROI_SHAPE (gst_cuda_conv_roi_shape_get_type())
#define GST_TYPE_CUDA_CONV_ROI_UNMARKED (gst_cuda_conv_roi_unmarked_get_type())
#define GST_TYPE_CUDA_CONV_BACKEND (gst_cuda_conv_backend_get_type())
#define GST_TYPE_CUDA_CONV_METHOD (gst_cuda_conv_method_get_type())

GType gst_cuda_conv_mask_get_type();
GType gst_cuda_conv_shape_get_type();
GType gst_cuda_conv_negative_get_type();
GType gst_cuda_conv_magnitude_get_type();
GType gst_cuda_conv_border_get_type();
GType gst_cuda_conv_luma_get_type();
GType gst_cuda_conv_chroma_get_type();
GType gst_cuda_conv_alpha_get_type();
GType gst_cuda_conv_roi_shape_get_type();
GType gst_cuda_conv_roi_unmarked_get_type();
GType gst_cuda_conv_backend_get_type();
GType gst_cuda_conv_method_get_type();
