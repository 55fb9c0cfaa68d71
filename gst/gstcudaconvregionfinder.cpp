// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvregionfinder.h"

#include <string>
#include <utility>

#include "gstcudaconvsegment.h"
#include "regions/strength.h"

namespace cudaconv::gst {

void RegionFinder::start() {
  metas_.start();
  last_time_.reset();
  std::lock_guard<std::mutex> guard(lock_);
  counts_ = {};
}

void RegionFinder::look_at_event(GstEvent *event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) metas_.end();
  if (GST_EVENT_TYPE(event) != GST_EVENT_FLUSH_STOP && GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT) return;
  metas_.restart_time();
  last_time_.reset();
}

RoiList RegionFinder::find(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment) {
  if (!context.roi.takes_metas()) return {};
  const int64_t time = stream_time_of(buffer, segment, buffer_duration(context.info), last_time_).time;
  last_time_ = time;
  RoiTypeCounts types;
  RoiList found = metas_.read(buffer, context.roi.types(), plays_backwards(segment) ? -time : time, &types);
  if (!found.empty()) {
    std::lock_guard<std::mutex> guard(lock_);
    counts_.add(found.region.size() + found.mask.size(), types);
  }
  return moved_to_picture(std::move(found), picture_place(buffer, context.info), context.info);
}

std::vector<PlannedView> RegionFinder::plan(const StreamContext &context, GstBuffer *buffer, const RoiList &found,
                                            const std::atomic<bool> &cancelled) {
  std::vector<PlannedView> planned = context.plan_regions(buffer, found, cancelled);
  warn(context.roi.complaint());  // not at the caps: others may come before a frame
  if (context.strength) warn(context.strength->complaint());
  return planned;
}

// Warns of regions, or of their strengths.
void RegionFinder::warn(const std::string &text) {
  if (!text.empty()) messages_.warn_of_numbers(text, text, "the stream goes on", false);
}

RoiCounts RegionFinder::counts() const {
  std::lock_guard<std::mutex> guard(lock_);
  return counts_;
}

}  // namespace cudaconv::gst
