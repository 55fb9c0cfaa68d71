// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The meta in which a roihold sends the regions that are in force for a frame. It takes the place of the metas with
// regions that the roihold has seen, also where it is empty. Marks of later elements count beside it. It moves with
// the picture like GstVideoRegionOfInterestMeta.
#pragma once

#include <gst/gst.h>

#include <string>

#include "gstcudaconvanalytics.h"
#include "regions/shapes.h"

namespace cudaconv::gst {

struct RegionsInForce {
  RoiList regions;          // in pixels of the whole frame
  std::string types;        // that the roihold has selected, as TypeFilter takes them
  SeenAnalytics analytics;  // that the roihold has seen
  bool mixed = false;       // metas of other pictures are before it, as behind a compositor: it has seen none
};

// The API type of the meta.
GType held_regions_api();

// The lengths of the analytics metas of a buffer as far as the meta `end`.
SeenAnalytics analytics_lengths(GstBuffer *buffer, const GstMeta *end = nullptr);

// Sets the meta of a writable buffer. It becomes the last one: metas before it are those that the roihold has seen.
void set_held_regions(GstBuffer *buffer, RegionsInForce held);

// The regions in force that a meta of held_regions_api() has.
const RegionsInForce &held_regions(const GstMeta *meta);
// The regions in force that a buffer's first meta has; nullptr where there is none.
const RegionsInForce *get_held_regions(GstBuffer *buffer);

// How much of a buffer's analytics metas a roihold has seen: detectors add to them. Nothing where `held` is nullptr.
SeenAnalytics seen_analytics(GstBuffer *buffer, const RegionsInForce *held);

}  // namespace cudaconv::gst
