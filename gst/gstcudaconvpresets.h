// SPDX-License-Identifier: LGPL-2.1-or-later
//
// GstPreset: named settings in files of the folder presets/, for each element of the plugin.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

// Sets the functions of GstPreset, the element's interface.
void init_presets(gpointer iface, gpointer);

}  // namespace cudaconv::gst
