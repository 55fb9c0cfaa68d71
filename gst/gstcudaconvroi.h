// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions of interest: which pixels of a frame the roi properties and the frame's own metas select.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "filter.h"
#include "gstcudaconvenums.h"
#include "gstcudaconvroishape.h"

namespace cudaconv::gst {

// The properties that begin with "roi", as the user set them.
struct RoiSettings {
  std::string rectangles;  // as parse_regions() takes them; empty: none
  bool meta = false;
  std::string types;  // separated by commas; empty: any
  RoiShape shape = RoiShape::Rect;
  bool invert = false;
  double grow = 0;   // of a region's sides, on each side
  guint64 hold = 0;  // nanoseconds
  double scale = 0;  // of a region's shorter side; 0: strength is as set
};

// What of a frame is filtered, and what the strength of regions and masks follows: their shorter sides, in pixels.
struct RoiSelection {
  Regions regions;
  std::vector<int> region_side, mask_side;
};

// The size of the whole frame in whose pixels regions are, also where a buffer holds one field.
FrameSize frame_size(const GstVideoInfo &info);

class RoiSelector {
 public:
  // Throws Error{Settings} where the rectangles cannot be read.
  explicit RoiSelector(const RoiSettings &settings);

  // Says, as a sentence, where nothing of a picture of `info` is filtered because all rectangles of the settings lie
  // outside it; else nothing.
  std::string complaint(const GstVideoInfo &info) const;

  // Whether regions come with the frames.
  bool takes_metas() const { return meta_; }

  // The regions that come with `buffer`, of the types that are wanted, in pixels of the visible picture of the whole
  // frame. `trouble`: becomes a sentence where a meta cannot be read, whose rectangle then is a region.
  RoiList find(GstBuffer *buffer, std::string *trouble) const;

  // What of `buffer` is filtered where these regions have come; those of the settings among them, all as large as they
  // are to be.
  RoiSelection select(const RoiList &found, GstBuffer *buffer, const GstVideoInfo &info) const;

 private:
  bool wants(const char *type) const;

  Regions fixed_;  // those of the settings
  bool meta_;
  double grow_;
  std::vector<std::string> types_;  // empty: any
};

}  // namespace cudaconv::gst
