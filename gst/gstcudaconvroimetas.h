// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The regions that come with a buffer, in its metas.
#pragma once

#include <gst/video/video.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gstcudaconvanalytics.h"
#include "gstcudaconvmessages.h"
#include "regions/shapes.h"
#include "regions/types.h"

namespace cudaconv::gst {

// The size of the whole frame, whose pixels regions count, also where a buffer holds only one field.
FrameSize frame_size(const GstVideoInfo &info);

// Where the picture of a buffer is: by its GstVideoCropMeta, else the whole frame.
PicturePlace picture_place(GstBuffer *buffer, const GstVideoInfo &info);

// Regions of the whole frame, in pixels of the picture. At odd corners the picture has its subsampled samples up to
// some pixels to the right of the pixels that they are made of, and below: regions cover both. Single fields have their
// rows one row beside.
RoiList moved_to_picture(RoiList regions, const PicturePlace &place, const GstVideoInfo &info);

// The rectangle of a meta. Its coordinates are unsigned, but it may begin left of the picture or above it: -5 comes as
// 4294967291.
Region region_of(const GstVideoRegionOfInterestMeta &meta);

// Adds a GstVideoRegionOfInterestMeta with the upright rectangle around a region. It begins in the picture, since
// coordinates are unsigned. nullptr where nothing is left.
GstVideoRegionOfInterestMeta *add_roi_meta(GstBuffer *buffer, GQuark type, const Region &region);

// Adds such metas for all but the first regions and masks. Where all of the frame is a region, one meta marks it: with
// roi-invert too, a cudaconv filters all of it. `repeat`: an analytics meta of the frame has the same regions.
void add_roi_metas(GstBuffer *buffer, const RoiList &regions, size_t first_region, size_t first_mask, FrameSize frame,
                   bool repeat = false);

// How many regions of each type or label came.
using RoiTypeCounts = std::map<std::string, guint64>;

// Counts of regions by type, for the properties "stats". Not locked.
class RoiCounts {
 public:
  // Adds the regions that came with a frame. Labels may carry the number of an object, so that new ones come for ever:
  // beyond a hundred types, further ones count as "other".
  void add(guint64 regions, const RoiTypeCounts &types);

  // Sets the fields "regions" and "regions-by-type". In type names, characters of ASCII that a field name cannot have
  // become "_".
  void write(GstStructure *structure) const;

 private:
  guint64 regions_ = 0;
  RoiTypeCounts types_;
};

// Reads the regions in the metas of frames. Leaves a warning where a meta cannot be read, and where the selected types
// match no region. One thread at a time.
class RoiMetaReader {
 public:
  // The metas that count beside the regions of a roihold: kOthers, those that the roihold has not seen; kAll, also
  // those that it has left out.
  enum class Beside { kOthers, kAll };
  // `property`: which selects the types, for the warning.
  RoiMetaReader(Messages &messages, const char *property, Beside beside)
      : messages_(messages), property_(property), beside_(beside) {}

  // To be called when the element starts.
  void start();
  // The regions of the types that are selected, in pixels of the whole frame: a GstVideoCropMeta does not change them.
  // `place`: of the picture.
  // Where a meta cannot be read, all of the frame, or the rectangle that the meta names, is a region. Counts the
  // regions by type in `counts`, and adds the labels of the others to `others`.
  RoiList read_again(GstBuffer *buffer, const PicturePlace &place, const TypeFilter &types, RoiTypeCounts *counts,
                     std::vector<Labels> *others = nullptr);
  // The same for each frame that comes. `now` is in nanoseconds, and grows as the stream plays. Warns where nothing has
  // matched for five seconds.
  RoiList read(GstBuffer *buffer, const PicturePlace &place, const TypeFilter &types, int64_t now,
               RoiTypeCounts *counts);
  // To be called for each event. Time may jump at a flush and a segment; at the end of the stream, warns where nothing
  // has matched at all.
  void look_at_event(const GstEvent *event);

 private:
  RoiList select(GstBuffer *buffer, const PicturePlace &place, const WantedLabels &wanted, std::string *trouble) const;
  void watch(bool some, const std::vector<Labels> &others, int64_t now);
  void warn();

  Messages &messages_;
  const char *const property_;
  const Beside beside_;
  std::string wanted_;
  bool matched_ = false;
  std::set<std::string> seen_;    // types since the last match
  std::optional<int64_t> first_;  // the first frame with metas since the last match
};

}  // namespace cudaconv::gst
