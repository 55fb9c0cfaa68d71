// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which pixels of a frame the roi properties and the regions that came with it select.
#pragma once

#include <string>
#include <vector>

#include "filter.h"
#include "plan/maskparser.h"
#include "plan/polygon.h"
#include "plan/regions.h"
#include "regions/shapes.h"
#include "regions/types.h"

namespace cudaconv::gst {

enum class RoiShape { Rect, Ellipse };
inline constexpr Named<RoiShape> kRoiShapeNames[] = {
    {RoiShape::Rect, "rect", "Whole rectangle"},
    {RoiShape::Ellipse, "ellipse", "Ellipse inscribed in the rectangle"},
};

// The properties that begin with "roi", as the user set them.
struct RoiSettings {
  std::string rectangles;  // and polygons, as parse_regions() takes them; empty: none
  bool meta = false;
  std::string types;  // as TypeFilter takes them
  RoiShape shape = RoiShape::Rect;
  bool invert = false;
  double grow = 0;     // fraction of a region's width and height, added on each side
  double feather = 0;  // pixels over which results fade into the original around a region
  double scale = 0;    // strength as a fraction of a region's shorter side; 0: as set
};

// The filtered regions and masks of one frame, and the shorter side of each mask in pixels, for roi-scale.
struct RoiSelection {
  Regions regions;
  std::vector<int> mask_side;
};

// Selects what is filtered of each frame by the roi settings.
class RoiSelector {
 public:
  // `frame`: the size of the whole frame, whose pixels regions count, also where a buffer holds only one field.
  // `alternates`: rows or columns alternate between two fields or views. Throws Error{Settings} where a region of the
  // settings is none.
  RoiSelector(const RoiSettings &settings, FrameSize frame, bool alternates);

  // After select(): a sentence for the user where regions of the settings have no effect, because all lie outside the
  // picture or one is smaller than a pixel; else empty.
  const std::string &complaint() const { return complaint_; }
  bool takes_metas() const { return meta_; }
  const TypeFilter &types() const { return types_; }

  // The part of a frame that is filtered: the settings' regions and those `found` in its metas, enlarged by roi-grow.
  // Regions that have no pixel in the picture are dropped; in frames that alternate the rectangles around them count.
  // `first_row`, `row_step`: the rows of the frame that the buffer holds. Throws Error{Cancelled}. One thread at a
  // time.
  RoiSelection select(const RoiList &found, int first_row, int row_step, const Cancellation &cancellation) const;

 private:
  void add_fixed(const WrittenRegion &written, size_t number);
  void complete(const Cancellation &cancellation) const;
  void keep_those_in_picture(std::vector<Region> *regions) const;

  const TypeFilter types_;
  const FrameSize frame_;
  const bool alternates_;
  const bool meta_;
  const double grow_;
  std::vector<std::vector<Point>> polygons_;
  // The first select() completes these.
  mutable bool complete_ = false;
  mutable Regions fixed_;  // of the settings, enlarged by roi-grow
  mutable std::string complaint_;
};

// Whether no pixel of the frame is in any of the regions.
bool is_outside(const RoiList &regions, FrameSize frame);

// Moves what the regions select by dx, dy pixels of the buffer.
void move_regions(Regions *regions, int dx, int dy);

}  // namespace cudaconv::gst
