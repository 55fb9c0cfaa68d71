// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regions that are in force for some time before and after the frames that they came with. Between two of these frames
// the regions of objects move.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regions/shapes.h"
#include "regions/times.h"
#include "regions/tracks.h"

namespace cudaconv::gst {

// One thread at a time. Times are nanoseconds of stream time. No function that throws changes anything.
//
// A slice has the regions of one eighth of the longer one of the times. Where these are more than kMostRegions
// or kMostMasks, equal ones are kept once, then neighbours are joined to one that covers both. Neighbours of the same
// type are joined first. So memory is bounded, no region is lost, and none is in force for longer than the others of
// its slice.
class RoiHistory {
 public:
  static constexpr size_t kMostRegions = 2048, kMostMasks = 4;

  // Forgets all regions: after a flush, in another segment, at the start.
  void clear() {
    slices_.clear();
    tracks_.clear();
    place_.reset();
  }
  // Sets where the pictures of the frames to come are. Returns the corner of the picture in the coordinates of the
  // held regions. These coordinates begin as the whole frame's. If the picture moves within frames of one size, held
  // regions keep their place in the frame. If frames have another size, for example other padding, held regions keep
  // their place in the picture. If the sizes of both change, regions are scaled.
  Pixel set_picture(const PicturePlace &place);

  // Adds the regions of the frame at `time`. Drops those that are in force neither at that time nor within `open`, even
  // by twice the longer one of the `times`. `open`: the times of the frames that still wait and of the frame before.
  // `before`: the regions that an earlier call added for this frame. Then only these are dropped, each once, since
  // another frame of this time may have an equal one.
  void add(const RoiList &found, int64_t time, const TimeSpan &open, RoiTimes times, const RoiList *before = nullptr);
  // Forgets which detections are of one object. To be called before all frames that wait are added again.
  void forget_tracks() { tracks_.clear(); }
  // The regions in force at the time of a frame, first its `own`. These are in force even where they are no longer
  // held, such as after the times have become shorter.
  RoiList in_force(int64_t time, RoiTimes times, const RoiList &own) const;

 private:
  // A region, and the times of the frames that it came with.
  template <typename T>
  struct Held {
    T region;
    TimeSpan at;
  };
  struct Slice {
    int64_t begin;
    std::vector<Held<DetectedRegion>> region;
    std::vector<Held<std::shared_ptr<const RoiMask>>> mask;
    TimeSpan everywhere;  // of frames all of which is a region

    // `to_frame`: what moves regions into the coordinates of the frame.
    void reduce(FrameSize frame, Pixel to_frame);
  };

  void rescale(Pixel by, FrameSize from, FrameSize to);

  std::vector<Slice> slices_;
  RoiTracks tracks_;
  std::optional<PicturePlace> place_;  // of the last frame
  Pixel origin_;                       // of its picture, in the coordinates of the regions
};

}  // namespace cudaconv::gst
