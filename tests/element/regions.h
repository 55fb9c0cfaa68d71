// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Checks frames in which only regions are filtered.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/regions.h"
#include "support.h"

namespace cudaconv::test {

struct Selection {
  std::vector<Region> region;
  bool ellipse = false, invert = false;
  std::vector<std::vector<std::pair<double, double>>> polygon = {};  // the points of each polygon
};

// In `selection`, expects the pixels of a whole frame filtered with the properties `filter`.
struct Layer {
  std::string filter;
  Selection selection;
};

void add_roi(GstBuffer *buffer, const char *type, guint x, guint y, guint w, guint h);

// Fails the test unless each sample of `out` equals the last layer that selects it, or `in` if none selects it.
void check_layers(GstBuffer *in, GstBuffer *out, const GstVideoInfo &info, const std::vector<Layer> &layers);

// Pushes a frame through `h` and checks the output. `filter`: the properties of `h` without the properties of regions.
void check_frame(Harness &h, GstBuffer *in, const GstVideoInfo &info, const std::string &filter,
                 const Selection &selection);

// Like check_frame(), with a timestamp, which may be GST_CLOCK_TIME_NONE.
void check_frame_at(Harness &h, GstBuffer *in, const GstVideoInfo &info, GstClockTime time, const std::string &filter,
                    const Selection &selection);

}  // namespace cudaconv::test
