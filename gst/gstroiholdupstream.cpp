// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstroiholdupstream.h"

#include <algorithm>

#include "gstcudaconvformat.h"
#include "gstcudaconvsegment.h"

namespace cudaconv::gst {

namespace {

// The time between two frames where the caps have no framerate.
constexpr GstClockTime kUnknownDuration = GST_SECOND / 30;

// The number of buffers of a pool; 0: any number.
guint most_buffers(GstBufferPool *pool) {
  const Ref<GstStructure> config(gst_buffer_pool_get_config(pool));
  guint most = 0;
  gst_buffer_pool_config_get_params(config.get(), nullptr, nullptr, nullptr, &most);
  return most;
}

// Whether a pool acquires buffers in the way of the base class. In the pools of cameras and decoders a buffer comes
// with the next frame, which would be lost.
bool is_plain(GstBufferPool *pool) {
  const auto *base = static_cast<GstBufferPoolClass *>(g_type_class_peek(GST_TYPE_BUFFER_POOL));
  return GST_BUFFER_POOL_GET_CLASS(pool)->acquire_buffer == base->acquire_buffer;
}

bool is_empty(GstBufferPool *pool) {
  GstBufferPoolAcquireParams params = {};
  params.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT;
  GstBuffer *buffer = nullptr;
  const GstFlowReturn flow = gst_buffer_pool_acquire_buffer(pool, &buffer, &params);
  if (flow == GST_FLOW_OK) gst_buffer_unref(buffer);
  return flow == GST_FLOW_EOS;
}

}  // namespace

GstClockTime hold_latency(guint64 lookahead, const std::optional<GstVideoInfo> &info) {
  const GstClockTime wait = std::min<GstClockTime>(lookahead, G_MAXINT64);
  if (!info || wait == 0) return wait;
  if (!buffer_duration(*info)) return add_times(wait, kUnknownDuration);
  // The duration of a frame in nanoseconds may be a fraction.
  const guint64 per = static_cast<guint64>(info->fps_n), seconds = info->fps_d * GST_SECOND;
  const guint64 frames = has_fields(*info) ? gst_util_uint64_scale(wait, per, seconds) + 1
                                           : gst_util_uint64_scale_ceil(wait, per, seconds);
  return std::min<GstClockTime>(gst_util_uint64_scale_ceil(frames, seconds, per), G_MAXINT64);
}

// A pool is not offered if it is limited to fewer.
gboolean answer_allocation_query(GstPad *srcpad, GstQuery *query, GstClockTime latency) {
  GstCaps *caps;
  GstVideoInfo info;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (!caps || !gst_video_info_from_caps(&info, caps)) return gst_pad_peer_query(srcpad, query);
  constexpr GstClockTime kMost = 256;  // frames, since a pool allocates that number at once
  const GstClockTime known = buffer_duration(info), duration = known ? known : kUnknownDuration;
  const auto waiting = static_cast<guint>(std::min(latency / duration, kMost));
  const gboolean answered = gst_pad_peer_query(srcpad, query);
  if (!answered && !waiting) return FALSE;
  const guint count = gst_query_get_n_allocation_pools(query);
  for (guint i = 0; i < count && waiting; i++) {
    GstBufferPool *pool = nullptr;
    guint size, min, max;
    gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &min, &max);
    const Ref<GstBufferPool> owned(pool);
    const bool fits = !max || max >= min + waiting;
    gst_query_set_nth_allocation_pool(query, i, fits ? pool : nullptr, size, min + waiting, fits ? max : 0);
  }
  if (!count && waiting)
    gst_query_add_allocation_pool(query, nullptr, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), waiting + 1, 0);
  if (!gst_query_find_allocation_meta(query, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE, nullptr))
    gst_query_add_allocation_meta(query, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE, nullptr);
  return TRUE;
}

GstClockTimeDiff lateness_of(GstElement *element, GstClockTime running_time, GstClockTime upstream) {
  const Ref<GstClock> clock(gst_element_get_clock(element));
  if (!GST_CLOCK_TIME_IS_VALID(upstream) || !clock || !GST_CLOCK_TIME_IS_VALID(running_time))
    return GST_CLOCK_STIME_NONE;
  const GstClockTime now = gst_clock_get_time(clock.get()) - gst_element_get_base_time(element);
  return GST_CLOCK_DIFF(add_times(running_time, upstream), now);
}

bool awaits_frame(GstElement *element) {
  Ref<GstElement> top(GST_ELEMENT(gst_object_ref(element)));
  while (GstObject *bin = gst_object_get_parent(GST_OBJECT(top.get()))) top.reset(GST_ELEMENT(bin));
  return gst_element_get_state(top.get(), nullptr, nullptr, 0) == GST_STATE_CHANGE_ASYNC;
}

void UpstreamBuffers::know(GstBufferPool *pool) {
  if (pool == pool_.get()) return;
  forget();
  if (!pool) return;
  pool_.reset(GST_BUFFER_POOL(gst_object_ref(pool)));
  size_ = most_buffers(pool);
}

void UpstreamBuffers::forget() {
  pool_.reset();
  size_ = 0;
  most_waiting_ = G_MAXSIZE;
}

bool UpstreamBuffers::are_used(size_t waiting, size_t of_pool) const {
  return waiting > most_waiting_ || (size_ > 0 && of_pool >= size_);
}

bool UpstreamBuffers::can_be_asked() const {
  return size_ > 0 && is_plain(pool_.get());
}

bool UpstreamBuffers::are_none_left() const {
  return is_empty(pool_.get());
}

}  // namespace cudaconv::gst
