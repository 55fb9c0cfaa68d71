// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstroiholdupstream.h"

#include <algorithm>
#include <utility>

#include "gstcudaconvformat.h"
#include "gstcudaconvsegment.h"

namespace cudaconv::gst {

namespace {

// The time between two frames where the caps have no framerate.
constexpr GstClockTime kUnknownDuration = GST_SECOND / 30;

constexpr gint64 kTick = G_USEC_PER_SEC / 4;      // how long no frame has come when the first look is due
constexpr gint64 kVeryLong = 5 * G_USEC_PER_SEC;  // how long no frame has come when the first one leaves early

// How many frames may wait in buffers of a pool: all but one.
size_t most_waiting(GstBufferPool *pool) {
  const Ref<GstStructure> config(gst_buffer_pool_get_config(pool));
  guint most = 0;  // any number
  gst_buffer_pool_config_get_params(config.get(), nullptr, nullptr, nullptr, &most);
  return most ? most - 1 : G_MAXSIZE;
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

// Whether the pool pads the rows of its frames. Some detectors read rows as if they had no padding, and find nothing.
bool pads_rows(GstBufferPool *pool) {
  const Ref<GstStructure> config(gst_buffer_pool_get_config(pool));
  return gst_buffer_pool_config_has_option(config.get(), GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
}

// Whether a sink of the pipeline still waits for its first frame after the start, a seek or a pause.
bool awaits_frame(GstElement *element) {
  Ref<GstElement> top(GST_ELEMENT(gst_object_ref(element)));
  while (GstObject *bin = gst_object_get_parent(GST_OBJECT(top.get()))) top.reset(GST_ELEMENT(bin));
  return gst_element_get_state(top.get(), nullptr, nullptr, 0) == GST_STATE_CHANGE_ASYNC;
}

}  // namespace

GstClockTime hold_latency(guint64 lookahead, const std::optional<GstVideoInfo> &info, bool shares_times) {
  const GstClockTime wait = std::min<GstClockTime>(lookahead, G_MAXINT64);
  if (!info || wait == 0) return wait;
  if (!buffer_duration(*info)) return add_times(wait, kUnknownDuration);
  // The duration of a frame in nanoseconds may be a fraction.
  const guint64 per = static_cast<guint64>(info->fps_n), seconds = info->fps_d * GST_SECOND;
  const guint64 frames =
      shares_times ? gst_util_uint64_scale(wait, per, seconds) + 1 : gst_util_uint64_scale_ceil(wait, per, seconds);
  return std::min<GstClockTime>(gst_util_uint64_scale_ceil(frames, seconds, per), G_MAXINT64);
}

// A pool is not offered if it is limited to fewer, or if it pads rows.
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
  for (guint i = 0; i < count; i++) {
    GstBufferPool *pool = nullptr;
    guint size, min, max;
    gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &min, &max);
    const Ref<GstBufferPool> owned(pool);
    const bool fits = (!max || max >= min + waiting) && !(pool && pads_rows(pool));
    gst_query_set_nth_allocation_pool(query, i, fits ? pool : nullptr, size, min + waiting, fits ? max : 0);
  }
  if (!count && waiting)
    gst_query_add_allocation_pool(query, nullptr, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), waiting + 1, 0);
  if (!gst_query_find_allocation_meta(query, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE, nullptr))
    gst_query_add_allocation_meta(query, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE, nullptr);
  return TRUE;
}

void UpstreamWatch::know_pool(GstBufferPool *pool) {
  if (pool == pool_.get()) return;
  pool_.reset(pool ? GST_BUFFER_POOL(gst_object_ref(pool)) : nullptr);
  most_waiting_ = pool ? most_waiting(pool) : G_MAXSIZE;
}

// Nanoseconds since a live source should have sent the frame; GST_CLOCK_STIME_NONE if that is not known.
GstClockTimeDiff UpstreamWatch::lateness_of(GstClockTime running_time) const {
  const GstClockTime latency = latency_;
  const Ref<GstClock> clock(gst_element_get_clock(element_));
  if (!GST_CLOCK_TIME_IS_VALID(latency) || !clock || !GST_CLOCK_TIME_IS_VALID(running_time))
    return GST_CLOCK_STIME_NONE;
  const GstClockTime now = gst_clock_get_time(clock.get()) - gst_element_get_base_time(element_);
  return GST_CLOCK_DIFF(add_times(running_time, latency), now);
}

size_t UpstreamWatch::note_frame(int64_t time, GstClockTime running_time, guint64 wait) {
  const GstClockTimeDiff lateness = wait ? lateness_of(running_time) : GST_CLOCK_STIME_NONE;
  lateness_ = GST_CLOCK_STIME_IS_VALID(lateness) ? std::max<GstClockTimeDiff>(lateness, 0) : 0;
  came_ = g_get_monotonic_time();
  alarm_ = came_ + kTick;
  const std::vector<int64_t> left = std::exchange(left_by_clock_, {});
  return static_cast<size_t>(std::count_if(left.begin(), left.end(), [&](int64_t of) {
    return time >= of && static_cast<guint64>(time) - static_cast<guint64>(of) <= wait;
  }));
}

// Upstream may have fewer buffers than their pool says, or hold some itself. A pause is no standstill, unless a sink
// waits for a frame. If frames of a live source have come late, as from a detector that does not report its latency,
// the others may be as late.
const char *UpstreamWatch::look(size_t waiting, int64_t time, GstClockTime running_time, GstClockTime latency) {
  const gint64 now = g_get_monotonic_time();
  const bool plays = GST_STATE(element_) == GST_STATE_PLAYING;
  if (!plays && !awaits_frame(element_)) came_ = now;
  alarm_ = now + kTick;
  if (most_waiting_ != G_MAXSIZE && is_plain(pool_.get())) {
    if (is_empty(pool_.get())) {
      most_waiting_ = waiting - 1;
      return kShort;
    }
  } else if (now - came_ >= kVeryLong) {
    return "upstream has sent no frame for five seconds, perhaps because a queue of another branch is full and "
           "smaller than lookahead";
  }
  const GstClockTimeDiff lateness = plays ? lateness_of(running_time) : GST_CLOCK_STIME_NONE;
  if (!GST_CLOCK_STIME_IS_VALID(lateness)) return nullptr;
  const auto wait = static_cast<GstClockTimeDiff>(add_times(latency, lateness_));
  const GstClockTimeDiff left = lateness < 0 ? wait : wait - lateness;
  if (left >= 0) {
    alarm_ = now + std::min<gint64>(GST_TIME_AS_USECONDS(left) + 1, kTick);
    return nullptr;
  }
  alarm_ = now;
  left_by_clock_.push_back(time);
  return "";
}

}  // namespace cudaconv::gst
