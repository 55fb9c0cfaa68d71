// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvmetas.h"

#include <string>
#include <utility>

#include "gstcudaconvanalytics.h"
#include "gstcudaconvsegment.h"
#include "gstroiholdmeta.h"
#include "regions/strength.h"

namespace cudaconv::gst {

namespace {

void copy_roi_meta(GstBuffer *output, const GstVideoRegionOfInterestMeta &meta, const PicturePlace &place,
                   const GstVideoInfo &info) {
  const RoiList moved = moved_to_picture({{{{}, region_of(meta)}}, {}}, place, info);
  GstVideoRegionOfInterestMeta *copy = add_roi_meta(output, meta.roi_type, moved.region.front().region);
  if (!copy) return;
  copy->id = meta.id;
  copy->parent_id = meta.parent_id;
  for (const GList *param = meta.params; param; param = param->next)
    gst_video_region_of_interest_meta_add_param(copy, gst_structure_copy(static_cast<GstStructure *>(param->data)));
}

}  // namespace

// ---- Regions --------------------------------------------------------------------------------------------------------

void RegionFinder::start() {
  metas_.start();
  last_time_.reset();
  std::lock_guard<std::mutex> guard(lock_);
  counts_ = {};
}

void RegionFinder::look_at_event(GstEvent *event) {
  metas_.look_at_event(event);
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP || GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) last_time_.reset();
}

// The regions that come with a frame, in pixels of its picture.
RoiList RegionFinder::find(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment) {
  if (!context.roi.takes_metas()) return {};
  const int64_t time = stream_time_of(buffer, segment, buffer_duration(context.info), last_time_).time;
  last_time_ = time;
  RoiTypeCounts types;
  const PicturePlace place = picture_place(buffer, context.info);
  RoiList found = metas_.read(buffer, place, context.roi.types(), plays_backwards(segment) ? -time : time, &types);
  if (!found.empty()) {
    std::lock_guard<std::mutex> guard(lock_);
    counts_.add(found.count(), types);
  }
  return moved_to_picture(std::move(found), place, context.info);
}

std::vector<PlannedView> RegionFinder::plan(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment,
                                            const std::atomic<bool> &cancelled) {
  std::vector<PlannedView> planned = context.plan_regions(buffer, find(context, buffer, segment), cancelled);
  const auto warn = [this](const std::string &text) {
    if (!text.empty()) messages_.warn_of_numbers(text, text, "the stream goes on", false);
  };
  warn(context.roi.complaint());  // not at the caps: others may come before a frame
  if (context.strength) warn(context.strength->complaint());
  return planned;
}

RoiCounts RegionFinder::counts() const {
  std::lock_guard<std::mutex> guard(lock_);
  return counts_;
}

// ---- From the input to the output -----------------------------------------------------------------------------------

bool keeps_meta(GType api) {
  if (api == GST_VIDEO_CROP_META_API_TYPE) return false;  // the output is only the rectangle
  const auto has_tag = [api](const gchar *tag) { return gst_meta_api_type_has_tag(api, g_quark_from_string(tag)); };
  return !has_tag(GST_META_TAG_MEMORY_STR) && !has_tag(GST_META_TAG_MEMORY_REFERENCE_STR);
}

// Whether analytics metas move with the picture, so that the regions of the output are in them too.
constexpr bool kAnalyticsMove = GST_CHECK_VERSION(1, 28, 0);

// Adds the regions in a part of the input's analytics metas as GstVideoRegionOfInterestMetas. `repeat`: see
// add_roi_metas().
static void add_analytics_regions(GstBuffer *output, GstBuffer *input, const AnalyticsPart &part,
                                  const PicturePlace &place, const GstVideoInfo &info, bool repeat) {
  RoiList found;
  std::string trouble;  // the reader of the input's regions says it
  const WantedLabels all = {[](const Labels &, bool background) { return !background; }, [](const Labels &) {}};
  add_analytics(input, place, all, part, &found, &trouble);
  add_roi_metas(output, moved_to_picture(std::move(found), place, info), 0, 0, place.picture, repeat);
}

// Adds the regions that detectors behind a roihold have added, whose meta is `held`.
static void add_later_regions(GstBuffer *output, GstBuffer *input, const GstMeta *held, const PicturePlace &place,
                              const GstVideoInfo &info) {
  const SeenAnalytics earlier(analytics_lengths(input, held).size(), G_MAXSIZE);
  SeenAnalytics seen = seen_analytics(input, get_held_regions(input));
  seen.resize(earlier.size());
  seen.resize(analytics_lengths(input).size(), G_MAXSIZE);
  // In metas before `held`: in the output all of these count as seen.
  add_analytics_regions(output, input, {seen, false}, place, info, false);
  add_analytics_regions(output, input, {earlier, false}, place, info, kAnalyticsMove);
}

bool copy_moved_meta(GstBuffer *output, const GstMeta *meta, GstBuffer *input, const PicturePlace &place,
                     const GstVideoInfo &info) {
  const GType api = meta->info->api;
  if (place.corner.x == 0 && place.corner.y == 0)
    return api == analytics_meta_api() && copy_detections(output, meta, input);
  if (api == GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) {
    copy_roi_meta(output, *reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta), place, info);
    return true;
  }
  if (api == held_regions_api()) {
    const RegionsInForce &held = held_regions(meta);
    // Later detectors may have added to analytics metas that are before it: a meta of its own stands for each region.
    set_held_regions(
        output, {moved_to_picture(held.regions, place, info), held.types, analytics_lengths(input, meta), held.mixed});
    add_later_regions(output, input, meta, place, info);
    return true;
  }
  if (api != analytics_meta_api()) return false;
#if GST_CHECK_VERSION(1, 28, 0)
  GstVideoInfo whole = info;
  whole.width = place.frame.width;
  whole.height = place.frame.height;
  const GstVideoRectangle from = {static_cast<gint>(place.corner.x), static_cast<gint>(place.corner.y),
                                  place.picture.width, place.picture.height};
  const GstVideoRectangle to = {0, 0, place.picture.width, place.picture.height};
  GstVideoMetaTransformMatrix transform;
  gst_video_meta_transform_matrix_init(&transform, &whole, &from, &info, &to);
  if (!meta->info->transform_func(output, const_cast<GstMeta *>(meta), input,
                                  gst_video_meta_transform_matrix_get_quark(), &transform))
    return false;
#endif
  if (meta != gst_buffer_get_meta(input, api)) return true;  // the first one stands for all
  const RegionsInForce *const held = get_held_regions(input);
  add_analytics_regions(output, input, {seen_analytics(input, held), held != nullptr}, place, info, kAnalyticsMove);
  return true;
}

}  // namespace cudaconv::gst
