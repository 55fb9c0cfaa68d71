// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions that come with frames, and their geometry: growing, joining and scaling them. Inexact results cover more,
// never less.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/regions.h"

namespace cudaconv::gst {

// The names of a detection, the usual one first; often there is none. An empty name separates the names of
// several detections.
using Labels = std::vector<std::string>;

// How a region covers what was detected: exactly; with edges rounded outwards by less than a pixel; likewise, but where
// it may have moved to; or together with others.
enum class Cover : uint8_t { Exact, Rounded, Moved, Joined };

// The part that rectangles and masks have in common.
struct Detected {
  std::shared_ptr<const Labels> labels;  // nullptr: of several detections, thus of any type
  int64_t id = 0;                        // of the object, by its tracker; 0: unknown
  Cover cover = Cover::Exact;
};

struct DetectedRegion : Detected {
  Region region;
  bool repeats = false;  // another region of the frame is of the same detection
};

// A segmentation mask. It never changes.
struct RoiMask : Detected {
  RegionMask mask;
  int shorter_side = 0;  // in pixels, of the smallest rectangle around the members
};

// Regions that came with frames, in pixels of the frame.
struct RoiList {
  std::vector<DetectedRegion> region;
  std::vector<std::shared_ptr<const RoiMask>> mask;
  bool everywhere = false;  // a meta that cannot be read marks a part of the frame: all of it is a region

  bool empty() const { return region.empty() && mask.empty() && !everywhere; }
  // The number of regions, without those that repeat others.
  size_t count() const;
  // Adds a rectangle. Neighbours with equal labels share them. A negative id is none.
  void add(const Region &rectangle, const Labels &labels, int64_t id = 0, Cover cover = Cover::Exact);
};

// Whether both are of the same types.
bool have_same_labels(const Detected &a, const Detected &b);
// An order of labels: regions of any type come first. 0: both have the same labels.
int compare_labels(const Detected &a, const Detected &b);
// Whether both are the same region, of the same types.
bool is_same(const DetectedRegion &a, const DetectedRegion &b);

struct FrameSize {
  int width = 0, height = 0;
  bool operator==(const FrameSize &other) const { return width == other.width && height == other.height; }
};

struct Pixel {
  int64_t x = 0, y = 0;
};
inline Pixel operator-(Pixel a, Pixel b) {
  return {a.x - b.x, a.y - b.y};
}

// The part of a whole frame that is its picture, as by a GstVideoCropMeta, in pixels of the frame.
struct PicturePlace {
  FrameSize frame, picture;
  Pixel corner;  // of the picture
};

// Whether no pixel of the frame can be in the region. An empty region is outside of every frame.
bool is_outside(const Region &region, FrameSize frame);
// Whether no pixel of an upright rectangle is a member of the mask.
bool is_outside(const RegionMask &mask, const Region &rectangle);

// The nearest int.
inline int to_int(int64_t v) {
  return static_cast<int>(std::clamp<int64_t>(v, INT_MIN, INT_MAX));
}

// Regions moved by some pixels.
Region moved(Region region, Pixel by);
std::shared_ptr<const RoiMask> moved(const std::shared_ptr<const RoiMask> &mask, Pixel by);
RoiList moved(RoiList regions, Pixel by);

// Regions that cover where they are, where a move by `by` puts them, and all between. `by` is not negative. `frame`:
// see joined().
RoiList widened(RoiList regions, Pixel by, FrameSize frame);

// The smallest region around a rectangle, to 2^-20 of a pixel. What is beyond 2^30 pixels from the corner of the frame,
// which no frame reaches, may be cut off.
Region rectangle_around(double left, double top, double right, double bottom);
// The smallest upright region around a region that may be turned.
Region upright(const Region &region);
// The part that two upright regions have in common; without width or height where there is none.
Region common(const Region &a, const Region &b);

// The region enlarged on each side by `fraction` of its width and height, along its own axes. Sides end at 2^31-1
// pixels.
Region grown(const Region &region, double fraction);

// The mask enlarged by `fraction` of its shorter side, across and down, and at most one sample more, within the frame.
// nullptr where nothing of it is in the frame.
std::shared_ptr<const RoiMask> grown(const RoiMask &mask, double fraction, FrameSize frame);

// A region that covers both. `ellipse`: the ellipse inscribed in it covers both too.
Region joined(const Region &a, const Region &b, bool ellipse);

// A mask that covers all of `masks` that are in the frame; nullptr where none is. Its shorter side is the longest of
// the masks' shorter sides.
std::shared_ptr<const RoiMask> joined(const std::vector<std::shared_ptr<const RoiMask>> &masks, FrameSize frame);

// Regions scaled from one size of frames to another. A turned one becomes an upright one, and the ellipse inscribed in
// that covers it too.
Region rescaled(const Region &region, FrameSize from, FrameSize to);
DetectedRegion rescaled(DetectedRegion region, FrameSize from, FrameSize to);
std::shared_ptr<const RoiMask> rescaled(const RoiMask &mask, FrameSize from, FrameSize to);
RoiList rescaled(const RoiList &regions, FrameSize from, FrameSize to);

// A region for roi-shape=ellipse: the ellipse inscribed in it covers the detection, even if the region was rounded or
// joined.
Region for_ellipse(const DetectedRegion &region);
// A region for roi-invert, which shows it: it lies within the detection. Empty where no such region is known.
// `ellipse`: the ellipse inscribed in it lies within the detected one.
Region for_invert(const DetectedRegion &region, bool ellipse);

}  // namespace cudaconv::gst
