// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The task of a pad.
#pragma once

#include <gst/gst.h>

#include <utility>

#include "gstcudaconvref.h"

namespace cudaconv::gst {

// gst_pad_start_task(), after which the pad has no task where the system has no thread for it: to wait for its end
// would take for ever.
inline bool start_task(GstPad *pad, GstTaskFunction function, gpointer data) {
  if (gst_pad_start_task(pad, function, data, nullptr)) return true;
  GST_OBJECT_LOCK(pad);
  const Ref<GstTask> task(std::exchange(GST_PAD_TASK(pad), nullptr));
  GST_OBJECT_UNLOCK(pad);
  if (task) {  // a thread may take it later, and ends at once: after the pad, perhaps
    gst_task_set_leave_callback(task.get(), nullptr, nullptr, nullptr);
    gst_task_stop(task.get());
  }
  return false;
}

}  // namespace cudaconv::gst
