// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvmessages.h"

#include <new>

#include "gstcudaconvframe.h"

namespace cudaconv::gst {

void post_error(GstElement *element, const std::exception &e) {
  if (const auto *error = dynamic_cast<const Error *>(&e)) {
    const auto post = [&](GQuark domain, int code) {
      gst_element_message_full(element, GST_MESSAGE_ERROR, domain, code, g_strdup(e.what()), nullptr, error->file(), "",
                               error->line());
    };
    switch (error->kind()) {
      case Error::Kind::Settings:
        return post(GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS);
      case Error::Kind::Format:
        return post(GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT);
      case Error::Kind::NoDevice:
        return post(GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND);
      case Error::Kind::Device:
        return post(GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED);
      case Error::Kind::Cancelled:
        return;  // no failure: a flush or a change of state asked for it
    }
  } else if (dynamic_cast<const FrameError *>(&e)) {
    GST_ELEMENT_ERROR(element, STREAM, FAILED, ("%s", e.what()), (nullptr));
  } else if (dynamic_cast<const std::bad_alloc *>(&e)) {
    GST_ELEMENT_ERROR(element, RESOURCE, NO_SPACE_LEFT, ("There is not enough memory."), (nullptr));
  } else {
    GST_ELEMENT_ERROR(element, LIBRARY, FAILED, ("%s", e.what()), (nullptr));
  }
}

}  // namespace cudaconv::gst
