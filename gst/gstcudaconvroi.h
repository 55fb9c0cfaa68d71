// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions of interest: which pixels of a frame the roi properties and the frame's own metas select.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "filter.h"
#include "gstcudaconvenums.h"

namespace cudaconv::gst {

// The properties that begin with "roi", as the user set them.
struct RoiSettings {
  std::string rectangles;  // as parse_regions() takes them; empty: none
  bool meta = false;
  std::string types;  // separated by commas; empty: any
  RoiShape shape = RoiShape::Rect;
  bool invert = false;
};

class RoiSelector {
 public:
  // Throws Error{Settings} where the rectangles cannot be read.
  explicit RoiSelector(const RoiSettings &settings);

  // Says, as a sentence, where nothing of a picture of `info` is filtered because all rectangles of the settings lie
  // outside it; else nothing.
  std::string complaint(const GstVideoInfo &info) const;

  // Whether regions come with the frames.
  bool takes_metas() const { return meta_; }

  // What of `buffer` is filtered, in the rows that the buffer has: where interlace-mode is alternate, those of one
  // field. Rectangles, in the settings and in metas, are in pixels of the visible picture of the whole frame.
  Regions regions_of(GstBuffer *buffer, const GstVideoInfo &info) const;

 private:
  bool wants_type(GQuark type) const;
  void add_metas(GstBuffer *buffer, std::vector<Region> *regions) const;

  Regions fixed_;  // those of the settings
  bool meta_;
  std::vector<std::string> types_;  // empty: any
};

}  // namespace cudaconv::gst
