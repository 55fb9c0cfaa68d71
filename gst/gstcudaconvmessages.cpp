// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvmessages.h"

#include <new>

#include "gstcudaconvframe.h"

namespace cudaconv::gst {

void post_error(GstElement *element, const std::exception &e) {
  if (const auto *error = dynamic_cast<const Error *>(&e)) {
    GQuark domain = GST_RESOURCE_ERROR;
    int code = GST_RESOURCE_ERROR_FAILED;
    switch (error->kind()) {
      case Error::Kind::Settings:
        domain = GST_LIBRARY_ERROR;
        code = GST_LIBRARY_ERROR_SETTINGS;
        break;
      case Error::Kind::Format:
        domain = GST_STREAM_ERROR;
        code = GST_STREAM_ERROR_FORMAT;
        break;
      case Error::Kind::NoDevice:
        code = GST_RESOURCE_ERROR_NOT_FOUND;
        break;
      case Error::Kind::Device:
        break;
      case Error::Kind::Cancelled:
        return;  // no failure: a flush or a change of state asked for it
    }
    gst_element_message_full(element, GST_MESSAGE_ERROR, domain, code, g_strdup(e.what()), nullptr, error->file(), "",
                             error->line());
  } else if (dynamic_cast<const FrameError *>(&e)) {
    GST_ELEMENT_ERROR(element, STREAM, FAILED, ("%s", e.what()), (nullptr));
  } else if (dynamic_cast<const std::bad_alloc *>(&e)) {
    GST_ELEMENT_ERROR(element, RESOURCE, NO_SPACE_LEFT, ("There is not enough memory."), (nullptr));
  } else {
    GST_ELEMENT_ERROR(element, LIBRARY, FAILED, ("%s", e.what()), (nullptr));
  }
}

void post_warning(GstElement *element, const char *text, const char *debug) {
  GST_ELEMENT_WARNING(element, LIBRARY, SETTINGS, ("%s", text), ("%s", debug));
}

}  // namespace cudaconv::gst
