// SPDX-License-Identifier: LGPL-2.1-or-later
//
// GstPreset: named settings in files, such as presets/GstCudaConv.prs.
#pragma once

#include <gst/gst.h>

namespace cudaconv::gst {

// Sets the functions of the element's interface.
void init_presets(gpointer iface, gpointer);

}  // namespace cudaconv::gst
