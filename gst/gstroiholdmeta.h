// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The meta in which a roihold sends the regions that are in force for a frame. It takes the place of all other metas
// with regions, also where it is empty. It moves with the picture like GstVideoRegionOfInterestMeta.
#pragma once

#include <gst/gst.h>

#include "regions/shapes.h"

namespace cudaconv::gst {

// The API type of the meta.
GType held_regions_api();

// Sets the regions of a writable buffer, in pixels of its whole frame.
void set_held_regions(GstBuffer *buffer, RoiList regions);

// The regions of a buffer; nullptr where it has no such meta.
const RoiList *get_held_regions(GstBuffer *buffer);

}  // namespace cudaconv::gst
