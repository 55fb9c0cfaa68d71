// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions of interest: which pixels of a frame the roi properties and the frame's own metas select, and their counts.
#pragma once

#include <gst/video/video.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "filter.h"
#include "gstcudaconvanalytics.h"
#include "gstcudaconvroishape.h"
#include "plan/maskparser.h"

namespace cudaconv::gst {

enum class RoiShape { Rect, Ellipse };
enum class RoiUnmarked { Pass, Filter, Drop };
inline constexpr Named<RoiShape> kRoiShapeNames[] = {
    {RoiShape::Rect, "rect", "Whole rectangle"},
    {RoiShape::Ellipse, "ellipse", "Ellipse inscribed in the rectangle"},
};
inline constexpr Named<RoiUnmarked> kRoiUnmarkedNames[] = {
    {RoiUnmarked::Pass, "pass", "Filter only the regions of roi, or with roi-invert everything but these"},
    {RoiUnmarked::Filter, "filter", "Filter the whole frame"},
    {RoiUnmarked::Drop, "drop", "Drop the frame"},
};

// The properties that begin with "roi", as the user set them.
struct RoiSettings {
  std::string rectangles;  // and polygons, as parse_regions() takes them; empty: none
  bool meta = false;
  std::string types;  // separated by commas; empty: any
  RoiShape shape = RoiShape::Rect;
  bool invert = false;
  double grow = 0;                  // fraction of a region's width and height, added on each side
  guint64 hold = 0, lookahead = 0;  // nanoseconds
  RoiUnmarked unmarked = RoiUnmarked::Pass;
  bool report = false;
  double scale = 0;  // strength as a fraction of a region's shorter side; 0: as set

  bool holds_metas() const { return meta && (hold || lookahead); }  // whether they count for other frames too
};

// The filtered regions and masks of one frame, and the shorter side of each mask in pixels, for roi-scale.
struct RoiSelection {
  Regions regions;
  std::vector<int> mask_side;
};

// The size of the whole frame, whose pixels regions count, also where a buffer holds only one field.
FrameSize frame_size(const GstVideoInfo &info);

// The rectangle of a meta. Its coordinates are unsigned, but it may begin left of the picture or above it: -5 comes as
// 4294967291.
Region region_of(const GstVideoRegionOfInterestMeta &meta);

// Where the picture of a buffer is: by its GstVideoCropMeta, else the whole frame.
PicturePlace picture_place(GstBuffer *buffer, const GstVideoInfo &info);

// How many regions of each type or label came.
using RoiTypeCounts = std::map<std::string, guint64>;

// Selects what is filtered of each frame by the roi settings.
class RoiSelector {
 public:
  // `info`: of the frames. Throws Error{Settings} where a region of the settings is none.
  RoiSelector(const RoiSettings &settings, const GstVideoInfo &info);

  // A sentence for the user where regions of the settings have no effect, because all lie outside the picture or one is
  // smaller than a pixel; else empty.
  const std::string &complaint() const { return complaint_; }

  // The regions in the metas of `buffer`, of the types that the settings select, in pixels of the whole frame: a
  // GstVideoCropMeta does not change them. `trouble` receives a sentence where a meta cannot be read: all of the frame,
  // or the rectangle that the meta names, is then a region. Counts the regions by type in `types`.
  RoiList find(GstBuffer *buffer, std::string *trouble, RoiTypeCounts *types) const;

  // Returns the regions that are in the picture when roi-grow has enlarged them; none if they have no pixel there. In
  // interlaced frames the rectangles around them count.
  RoiList in_picture(const RoiList &regions) const;

  // The part of `buffer` that is filtered: the settings' regions and the regions `found`, which in_picture() returned.
  RoiSelection select(const RoiList &found, GstBuffer *buffer, const GstVideoInfo &info) const;

 private:
  void add_fixed(const WrittenRegion &written, size_t number);
  void look_for_outside();
  bool wants(const Labels &labels) const;

  const FrameSize frame_;
  const bool interlaced_;
  const bool meta_;
  const double grow_;
  Regions fixed_;                        // of the settings, enlarged by roi-grow
  std::vector<std::string> only_, but_;  // types; `only_` empty: any
  std::string complaint_;
};

// Moves what the regions select by dx, dy pixels of the buffer.
void move_regions(Regions *regions, int dx, int dy);

// Detects a roi-type that matches no region. Only for the sink pad's streaming thread.
class RoiTypeWatch {
 public:
  void reset() { *this = {}; }
  // To be called for each frame, with the regions in its metas that the settings select. `now` is in nanoseconds, and
  // grows as the stream plays. Returns a sentence for the user where nothing has matched for five seconds, else an
  // empty text.
  std::string look(GstBuffer *buffer, const RoiSettings &roi, const RoiList &found, int64_t now);
  // To be called after a flush, which time may jump at.
  void restart_time() { first_.reset(); }
  // To be called at the end of the stream: returns the sentence where nothing has matched at all.
  std::string end() const;

 private:
  std::string sentence() const;

  std::string wanted_;  // roi-type
  bool matched_ = false;
  std::set<std::string> seen_;    // types since the last match
  std::optional<int64_t> first_;  // the first frame with metas since the last match
};

// Counts of frames and their regions, for the property "stats" and the messages of roi-report. Any thread may call.
class RoiCounts {
 public:
  void reset();
  // A frame that leaves, with or without a region in force, and the regions that came with it.
  void add_frame(bool marked, guint64 regions, const RoiTypeCounts &types);
  void add_early();

  // Adds all counts since reset() to the structure.
  void add_to(GstStructure *structure) const;
  // Begins the counts of the next report anew, while there are no reports.
  void restart_reports();
  // The counts since the last report, as the structure of a message; nullptr where the last report is less than a
  // second of stream time before `time`. `ended`: reports what is left. Transfer full.
  GstStructure *report(std::optional<int64_t> time, bool ended);

 private:
  struct Counts {
    guint64 marked = 0, unmarked = 0, early = 0, regions = 0;
    RoiTypeCounts types;
  };
  static void write(const Counts &counts, GstStructure *structure);

  mutable std::mutex lock_;       // guards the members below
  Counts all_, since_;            // since reset(), since the last report
  std::optional<int64_t> begin_;  // of the next report
};

}  // namespace cudaconv::gst
