// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What frames are to become whose regions alone are filtered.
#pragma once

#include <string>
#include <vector>

#include "support.h"

namespace cudaconv::test {

struct Selection {
  std::vector<Region> region;
  bool ellipse = false, invert = false;
};

// What an unrestricted filter with these properties makes of a frame, where it is selected.
struct Layer {
  std::string filter;
  Selection selection;
};

void add_roi(GstBuffer *buffer, const char *type, guint x, guint y, guint w, guint h);

// Fails the test unless `out` has the samples of the last of the layers in which they are selected, else those of `in`.
void check_layers(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::vector<Layer> &layers);

// Pushes a frame through `h`, whose filter has the unrestricted properties `filter`.
void check_frame(Harness &h, GstBuffer *in, const GstVideoInfo &info, const std::string &filter,
                 const Selection &selection);

// The same at a time of its own, GST_CLOCK_TIME_NONE too.
void check_frame_at(Harness &h, GstBuffer *in, const GstVideoInfo &info, GstClockTime time, const std::string &filter,
                    const Selection &selection);

}  // namespace cudaconv::test
