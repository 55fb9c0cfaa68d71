// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The element `cudaconv`. gstcudaconv.cpp has its documentation.
#pragma once

#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_CUDA_CONV (gst_cuda_conv_get_type())
G_DECLARE_FINAL_TYPE(GstCudaConv, gst_cuda_conv, GST, CUDA_CONV, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(cudaconv)

G_END_DECLS
