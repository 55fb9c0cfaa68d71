// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The regions in the GstVideoRegionOfInterestMetas of a frame, as outlines over the picture.
#pragma once

#include <gst/gst.h>

#include <vector>

#include "regions.h"

namespace tune {

struct Outline {
  Region region;
  bool is_held;  // the roihold has added it: it did not come with the frame
};

// Notes in each meta of the buffer that it came with the frame; call it before the roihold. Returns the buffer, or a
// copy in its place if it is not writable.
GstBuffer *note_regions(GstBuffer *buffer);

// The regions of a buffer behind the roihold, within a picture of this size.
std::vector<Outline> outlines_of(GstBuffer *buffer, int width, int height);

}  // namespace tune
