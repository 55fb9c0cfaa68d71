// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions as shapes: what they cover, how they grow and become one. Whatever is not exact covers more, never less.
#pragma once

#include <memory>
#include <vector>

#include "filter.h"

namespace cudaconv::gst {

// A mask that came with a frame. Never changed.
struct RoiMask {
  RegionMask mask;
  int shorter_side = 0;  // pixels, of the smallest rectangle around the members
};

// Regions that came with frames, in pixels of the frame.
struct RoiList {
  std::vector<Region> region;
  std::vector<std::shared_ptr<const RoiMask>> mask;
};

struct FrameSize {
  int width = 0, height = 0;
};

// Whether no pixel of the frame can be in the region. An empty one is outside everywhere.
bool is_outside(const Region &region, FrameSize frame);

// The region with `fraction` of its width and of its height more on each side, along its own axes. Sides end at 2^31-1.
Region grown(const Region &region, double fraction);

// The mask with all that lies within `fraction` of its shorter side of a member, across and down, and at most one
// sample more. nullptr where nothing of it is in the frame.
std::shared_ptr<const RoiMask> grown(const RoiMask &mask, double fraction, FrameSize frame);

// A region that has both, and stays one that has them where it is the ellipse inscribed in it.
Region joined(const Region &a, const Region &b, bool ellipse);

// A mask that has those of all that are in the frame, of which there may be none: then nullptr. Its shorter side is the
// longest of theirs.
std::shared_ptr<const RoiMask> joined(const std::vector<std::shared_ptr<const RoiMask>> &masks, FrameSize frame);

// The region in a frame of another size.
Region rescaled(const Region &region, FrameSize from, FrameSize to);

}  // namespace cudaconv::gst
