// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions from metas of GStreamer's analytics library, which detectors and segmenters attach to buffers since 1.24. The
// build checks what the library offers: CUDACONV_ANALYTICS is defined where it has detections,
// CUDACONV_ANALYTICS_ORIENTED where these may be rotated, CUDACONV_ANALYTICS_MASKS where it has segmentation masks.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <string>
#include <vector>

#include "gstcudaconvroishape.h"

namespace cudaconv::gst {

// The metas that this build understands, for the documentation of roi-meta.
#if defined(CUDACONV_ANALYTICS_MASKS)
#define CUDACONV_ROI_METAS                                                                 \
  "GstVideoRegionOfInterestMeta, and of GstAnalyticsRelationMeta GstAnalyticsODMtd, also " \
  "turned ones, and GstAnalyticsSegmentationMtd"
#elif defined(CUDACONV_ANALYTICS)
#define CUDACONV_ROI_METAS "GstVideoRegionOfInterestMeta, and of GstAnalyticsRelationMeta GstAnalyticsODMtd"
#else
#define CUDACONV_ROI_METAS "GstVideoRegionOfInterestMeta"
#endif

// Selects the detections, and the values of segmentation masks, that are regions.
struct WantedLabels {
  bool with_background;                                                // false: never the background
  std::function<bool(const std::vector<const char *> &labels)> wants;  // a label may be nullptr
};

// The API type of GstAnalyticsRelationMeta; G_TYPE_INVALID in builds without the analytics library.
GType analytics_meta_api();

// Adds the regions in the buffer's GstAnalyticsRelationMetas to `list`. Each wanted value of a segmentation mask
// becomes one mask, or all values share one mask if they are many. The labels of a value are its number in decimal and
// the name of its class, from the classes that are related to the mask. Values with the class "background" and value 0
// without a class are background. `trouble` receives a sentence where a mask cannot be read: its rectangle is then a
// region.
void add_analytics(GstBuffer *buffer, const WantedLabels &wanted, RoiList *list, std::string *trouble);

}  // namespace cudaconv::gst
