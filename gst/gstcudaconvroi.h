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
  double grow = 0;   // fraction of a region's width and height, added on each side
  guint64 hold = 0;  // nanoseconds
  double scale = 0;  // strength as a fraction of a region's shorter side; 0: as set
};

// The regions and masks of one frame that are filtered, and the shorter side of each in pixels, which its strength
// follows.
struct RoiSelection {
  Regions regions;
  std::vector<int> region_side, mask_side;
};

// The size of the whole frame, whose pixels regions count, also where a buffer holds only one field.
FrameSize frame_size(const GstVideoInfo &info);
// Selects what is filtered of each frame by the roi settings.

class RoiSelector {
 public:
  // Throws Error{Settings} where the rectangles cannot be parsed.
  explicit RoiSelector(const RoiSettings &settings);

  // A sentence for the user where nothing of a picture of `info` is filtered because all rectangles of the settings lie
  // outside it; else empty.
  std::string complaint(const GstVideoInfo &info) const;

  // Whether regions are taken from the metas of frames.
  bool takes_metas() const { return meta_; }

  // The regions in the metas of `buffer`, of the types that the settings select, in pixels of the visible picture of
  // the whole frame. `trouble` receives a sentence where a meta cannot be read: its rectangle is then a region.
  RoiList find(GstBuffer *buffer, std::string *trouble) const;

  // The part of `buffer` that is filtered: the regions `found` and those of the settings, both enlarged by roi-grow.
  RoiSelection select(const RoiList &found, GstBuffer *buffer, const GstVideoInfo &info) const;

 private:
  bool wants(const char *type) const;

  Regions fixed_;  // the rectangles of the settings
  bool meta_;
  double grow_;
  std::vector<std::string> types_;  // empty: any
};

// Moves what the regions select by dx, dy pixels of the buffer.
void move_regions(Regions *regions, int dx, int dy);

}  // namespace cudaconv::gst
