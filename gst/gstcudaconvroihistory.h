// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions that stay in force for some time after the last frame that came with them, by roi-hold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gstcudaconvroishape.h"

namespace cudaconv::gst {

// For the sink pad's streaming thread alone. Times are nanoseconds of running time.
//
// A slice has the regions of one eighth of the time to hold. Where these are more than kMostRegions or kMostMasks,
// equal ones are kept once, then neighbours are joined to one that covers both. So memory is bounded, no region is
// lost, and none stays in force for longer than the others of its slice.
class RoiHistory {
 public:
  static constexpr size_t kMostRegions = 2048, kMostMasks = 4;

  // Forgets all regions: after a flush, in another segment, at the start.
  void clear();
  // Nothing changes where a function throws std::bad_alloc.
  //
  // Sets the size of the frames to come, and scales the regions that are held to it.
  void set_frame_size(FrameSize size);

  // Adds the regions of a frame, and drops those of frames more than `hold` nanoseconds away. A frame without `time`
  // follows the one before it by `duration`; where that is not known either, and 0, time stands still and regions stay.
  // `ellipse`: regions are ellipses, which joining allows for.
  void add(const RoiList &found, std::optional<int64_t> time, int64_t duration, uint64_t hold, bool ellipse);
  // All regions in force for the frame that was added last, its own among them.
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
  std::optional<int64_t> everywhere_;  // the last frame all of which is a region
  std::optional<int64_t> now_;
  FrameSize size_;
};

}  // namespace cudaconv::gst
