// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Metas of the frames of cudaconv: the regions in them, and the metas that go from an input to its output.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "gstcudaconvroimetas.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// Finds and plans the regions of frames. For the thread that holds the stream lock of the sink pad, but for counts().
// Leaves warnings in `messages`.
class RegionFinder {
 public:
  explicit RegionFinder(Messages &messages)
      : messages_(messages), metas_(messages, "roi-type", RoiMetaReader::Beside::kOthers) {}

  // To be called when the element starts.
  void start();
  // To be called for each event of the sink pad.
  void look_at_event(GstEvent *event);

  // The plans and regions for a frame of this segment. Throws Error; Error{Cancelled} when `cancelled` becomes true.
  std::vector<PlannedView> plan(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment,
                                const std::atomic<bool> &cancelled);

  // The regions that came with frames since start(). Any thread may call.
  RoiCounts counts() const;

 private:
  RoiList find(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment);

  Messages &messages_;
  RoiMetaReader metas_;
  std::optional<int64_t> last_time_;  // of the last frame
  mutable std::mutex lock_;           // guards counts_
  RoiCounts counts_;
};

// Whether metas of this type go from the input to the output. The filter keeps size, position and meaning of the
// pixels, so that every meta which is not tied to the memory stays true.
bool keeps_meta(GType api);

// Copies a meta that says where something is in the picture, if keeps_meta() is true and the input has a
// GstVideoCropMeta: the output is the rectangle alone, so positions count from its corner. The regions of
// analytics metas are added as GstVideoRegionOfInterestMetas too: GStreamer moves these metas since 1.28, and to within
// a pixel. Without a crop rectangle it copies only the detections that GStreamer would lose, see copy_detections().
// `place`: of the input. `info`: of the output. Returns false where the meta can be copied as it is.
bool copy_moved_meta(GstBuffer *output, const GstMeta *meta, GstBuffer *input, const PicturePlace &place,
                     const GstVideoInfo &info);

}  // namespace cudaconv::gst
