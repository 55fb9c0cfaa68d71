// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The regions of each frame of a cudaconv: those that come with it, and the part of it that is filtered.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "gstcudaconvroimetas.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// For the thread that holds the stream lock of the sink pad, but for counts(). Leaves warnings in `messages`.
class RegionFinder {
 public:
  explicit RegionFinder(Messages &messages) : messages_(messages), metas_(messages, "roi-type") {}

  // To be called when the element starts.
  void start();
  // To be called for each event of the sink pad.
  void look_at_event(GstEvent *event);

  // The regions that come with a frame of this segment, in pixels of its picture.
  RoiList find(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment);
  // The plans and regions for a frame with the regions `found`. Throws Error; Error{Cancelled} when `cancelled` becomes
  // true.
  std::vector<PlannedView> plan(const StreamContext &context, GstBuffer *buffer, const RoiList &found,
                                const std::atomic<bool> &cancelled);

  // The regions that came with frames since start(). Any thread may call.
  RoiCounts counts() const;

 private:
  void warn(const std::string &text);

  Messages &messages_;
  RoiMetaReader metas_;
  std::optional<int64_t> last_time_;  // of the last frame
  mutable std::mutex lock_;           // guards counts_
  RoiCounts counts_;
};

}  // namespace cudaconv::gst
