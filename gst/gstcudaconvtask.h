// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The task of a pad.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

// gst_pad_start_task(), after which the pad has no task where the system has no thread for it: to wait for its end
// would take for ever.
bool start_task(GstPad *pad, GstTaskFunction function, gpointer data);

}  // namespace cudaconv::gst
