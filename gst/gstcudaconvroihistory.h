// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions that stay in force for a while after the last frame that came with them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gstcudaconvroishape.h"

namespace cudaconv::gst {

// The thread of upstream's alone. Times are nanoseconds of running time.
//
// Regions of one eighth of the time to hold lie in a slice. Where it has more than kMostRegions or kMostMasks, equal
// ones are kept once, then neighbours are joined to one that has both: what is held is bounded, no region is lost, and
// none outlives the others of its slice.
class RoiHistory {
 public:
  static constexpr size_t kMostRegions = 2048, kMostMasks = 4;

  // Forgets all: a flush, another segment, the end.
  void clear();
  // From here on frames are of this size. What is held is scaled.
  void set_frame_size(FrameSize size);

  // A frame comes with `found`, at `time`. One without follows the frame before it by `duration`; where that is not
  // known either, 0, time stands still and regions stay. `ellipse`: what regions are to be when they are joined.
  void add(const RoiList &found, std::optional<int64_t> time, int64_t duration, uint64_t hold, bool ellipse);
  // What is in force for the frame that came last, its own regions among them.
  RoiList in_force() const;

 private:
  struct Slice {
    struct Held {
      Region region;
      int64_t at;
    };
    struct HeldMask {
      std::shared_ptr<const RoiMask> mask;
      int64_t at;
    };
    int64_t begin;
    std::vector<Held> region;
    std::vector<HeldMask> mask;

    void reduce(bool ellipse, FrameSize frame);
  };

  std::vector<Slice> slices_;
  std::optional<int64_t> now_;
  FrameSize size_;
};

}  // namespace cudaconv::gst
