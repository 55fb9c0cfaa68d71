// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions from metas of GStreamer's analytics library, which detectors and segmenters attach to buffers since 1.24. The
// build checks what the library offers: CUDACONV_ANALYTICS is defined where it has detections,
// CUDACONV_ANALYTICS_ORIENTED where these may be rotated, CUDACONV_ANALYTICS_MASKS where it has segmentation masks,
// CUDACONV_ANALYTICS_KEYPOINTS where it has keypoints, groups and semantic tags.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <string>
#include <vector>

#include "gstcudaconvref.h"
#include "regions/shapes.h"

namespace cudaconv::gst {

// The metas that this build understands, for the documentation.
#if defined(CUDACONV_ANALYTICS_KEYPOINTS)
#define CUDACONV_ROI_METAS                                                                 \
  "GstVideoRegionOfInterestMeta, and of GstAnalyticsRelationMeta GstAnalyticsODMtd, also " \
  "turned ones, GstAnalyticsSegmentationMtd and groups of GstAnalyticsKeypointMtd"
#elif defined(CUDACONV_ANALYTICS_MASKS)
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
  std::function<bool(const Labels &labels, bool background)> wants;  // `background`: of a segmentation mask
  std::function<void(const Labels &labels)> count;                   // to be called for each region that is wanted
};

// The API type of GstAnalyticsRelationMeta; G_TYPE_INVALID in builds without the analytics library.
GType analytics_meta_api();

constexpr char kAnalyticsApi[] = "GstAnalyticsRelationMetaAPI";
// Whether a buffer has a meta of an API that this build may not know.
bool has_meta(GstBuffer *buffer, const char *api);
// Whether a meta is a GstAnalyticsRelationMeta, also in builds without the analytics library.
bool is_analytics(const GstMeta *meta);
// How many mtds it has; 1 in builds without the library.
gsize analytics_length(const GstMeta *meta);

// Adds a copy of a GstAnalyticsRelationMeta to a buffer with the same picture. GStreamer 1.28.0 to 1.28.2 lose its
// detections where a buffer is copied. Returns false where they do not: then it adds nothing.
bool copy_detections(GstBuffer *to, const GstMeta *meta, GstBuffer *from);
// gst_buffer_copy() that loses no detections. nullptr where memory cannot be copied.
Ref<GstBuffer> copy_buffer(GstBuffer *buffer);

// How many mtds of each GstAnalyticsRelationMeta of a buffer a roihold has seen, in the order of these metas. It has
// seen none of those behind the last one.
using SeenAnalytics = std::vector<gsize>;
// These mtds, or all others.
struct AnalyticsPart {
  const SeenAnalytics &seen;
  bool is_seen;

  bool has(size_t meta, guint mtd) const { return (meta < seen.size() && mtd < seen[meta]) == is_seen; }
};

// Adds the regions in this part of the buffer's GstAnalyticsRelationMetas to `list`, in pixels of the whole frame:
// - the rectangle of each detection, but not where a mask that is related to it has pixels of the picture in the
//   rectangle. Its labels are its type, its semantic tag, the most probable classes that are related to it, and the
//   tags of its groups;
// - each value of a segmentation mask as one mask, or all values as one mask if they are many. A value has the labels
//   of the detection that is related to the mask, the name of its class and its number in decimal. The name is from the
//   classes that are related to the mask. Values with the class "background" and value 0 without a class are
//   background;
// - a rectangle around each group of keypoints.
// All of the frame becomes a region where there is anything else, such as tensors that nothing has decoded. `trouble`
// then receives a sentence for the user.
void add_analytics(GstBuffer *buffer, const PicturePlace &place, const WantedLabels &wanted, const AnalyticsPart &part,
                   RoiList *list, std::string *trouble);

}  // namespace cudaconv::gst
