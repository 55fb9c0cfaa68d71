// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions of GStreamer's analytics library, which detectors and segmenters attach since 1.24. The build looks for what
// the library has: CUDACONV_ANALYTICS is defined where it has detections, CUDACONV_ANALYTICS_ORIENTED where they may be
// turned, CUDACONV_ANALYTICS_MASKS where it has masks.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <string>

#include "gstcudaconvroishape.h"

namespace cudaconv::gst {

// What this build understands, for the documentation of a property.
#if defined(CUDACONV_ANALYTICS_MASKS)
#define CUDACONV_ROI_METAS                                                                 \
  "GstVideoRegionOfInterestMeta, and of GstAnalyticsRelationMeta GstAnalyticsODMtd, also " \
  "turned ones, and GstAnalyticsSegmentationMtd"
#elif defined(CUDACONV_ANALYTICS)
#define CUDACONV_ROI_METAS "GstVideoRegionOfInterestMeta, and of GstAnalyticsRelationMeta GstAnalyticsODMtd"
#else
#define CUDACONV_ROI_METAS "GstVideoRegionOfInterestMeta"
#endif

// Which detections and which regions of masks are wanted.
struct WantedLabels {
  bool only_some;                                // false: all but the background
  std::function<bool(const char *label)> wants;  // the label may be nullptr
};

// G_TYPE_INVALID where the build does without.
GType analytics_meta_api();

// Adds what comes with the buffer to the list. Of a segmentation mask, each value that is wanted is a mask of its own,
// where they are not many: its label is that of the classes that are related to the mask, and also the value as a
// decimal number. The background is value 0, but for one whose class has another name than "background".
// `trouble`: becomes a sentence where a mask cannot be read; then all of its rectangle is a region.
void add_analytics(GstBuffer *buffer, const WantedLabels &wanted, RoiList *list, std::string *trouble);

}  // namespace cudaconv::gst
