// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The debug categories, and C++ exceptions as messages of the element.
#pragma once

#include <gst/gst.h>

#include <exception>

#include "error.h"

GST_DEBUG_CATEGORY_EXTERN(gst_cuda_conv_debug);
GST_DEBUG_CATEGORY_EXTERN(gst_cuda_conv_performance);
#define GST_CAT_DEFAULT gst_cuda_conv_debug

namespace cudaconv::gst {

// Posts an error message for an exception; for an Error with the file and line that threw it. Nothing for
// Error{Cancelled}.
void post_error(GstElement *element, const std::exception &e);

// Calls `f` and returns what it returns. No exception may reach GStreamer, which is C: it is posted as an error
// message, and `otherwise` is returned.
template <typename T, typename F>
T guarded(gpointer element, T otherwise, const F &f) {
  try {
    return f();
  } catch (const std::exception &e) {
    post_error(GST_ELEMENT_CAST(element), e);
  }
  return otherwise;
}

}  // namespace cudaconv::gst
