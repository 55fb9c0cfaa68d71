// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The meta in which a roihold sends the regions that are in force for a frame. It takes the place of the metas with
// regions that the roihold has seen, also where it is empty. Marks of later elements count beside it. It moves with
// the picture like GstVideoRegionOfInterestMeta.
#pragma once

#include <gst/gst.h>

#include <set>
#include <vector>

#include "gstcudaconvanalytics.h"
#include "regions/shapes.h"

namespace cudaconv::gst {

struct RegionsInForce {
  RoiList regions;               // in pixels of the whole frame
  std::vector<gsize> analytics;  // the lengths of the analytics metas that the roihold has seen, in their order
};

// The API type of the meta.
GType held_regions_api();

// The lengths of the analytics metas of a buffer, in their order, as far as the meta `end`.
std::vector<gsize> analytics_lengths(GstBuffer *buffer, const GstMeta *end = nullptr);

// Sets the meta of a writable buffer. It becomes the last one: metas before it are those that the roihold has seen.
void set_held_regions(GstBuffer *buffer, RegionsInForce held);

// The content of the meta of a buffer; nullptr where it has none.
const RegionsInForce *get_held_regions(GstBuffer *buffer);

// The metas of a buffer that a roihold has seen.
class SeenMetas {
 public:
  // None, or where `held` is set, those that are before its meta in the buffer.
  SeenMetas(GstBuffer *buffer, const RegionsInForce *held);
  bool has(const GstMeta *meta) const { return metas_.count(meta) != 0; }
  // How much of them it has seen of analytics metas: detectors add to them.
  const SeenAnalytics &analytics() const { return analytics_; }

 private:
  std::set<const GstMeta *> metas_;
  SeenAnalytics analytics_;
};

}  // namespace cudaconv::gst
