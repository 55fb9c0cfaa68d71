// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvcounts.h"

#include "gstcudaconvmessages.h"
#include "gstcudaconvsegment.h"

namespace cudaconv::gst {

void FrameCounts::restart() {
  restart_position();
  device_ns_ = 0;
  std::lock_guard<std::mutex> guard(lock_);
  totals_ = BackendStats();
}

void FrameCounts::restart_position() {
  pushed_ = 0;
  position_ = GST_CLOCK_TIME_NONE;
}

void FrameCounts::note_push(GstBuffer *buffer) {
  if (GST_BUFFER_PTS_IS_VALID(buffer)) position_ = end_time(buffer);
  pushed_++;
}

void FrameCounts::add(Engine &engine, size_t views) {
  std::lock_guard<std::mutex> guard(lock_);
  const BackendStats now = engine.backend->stats();
  if (g_strcmp0(now.kernels, totals_.kernels) != 0)
    GST_DEBUG_OBJECT(element_, "kernels of the first pass: %s", now.kernels ? now.kernels : "the method's");
  if (now.bytes_staged > engine.counted.bytes_staged)
    GST_CAT_LOG_OBJECT(gst_cuda_conv_performance, element_,
                       "%" G_GUINT64_FORMAT " bytes are copied by the CPU too, since their memory is pageable",
                       static_cast<guint64>(now.bytes_staged - engine.counted.bytes_staged));
  const guint64 filtered = now.frames - engine.counted.frames;
  if (filtered) device_ns_ = (now.device_ns - engine.counted.device_ns) / filtered * views;
  totals_.frames += filtered / views;
  totals_.device_ns += now.device_ns - engine.counted.device_ns;
  totals_.bytes_uploaded += now.bytes_uploaded - engine.counted.bytes_uploaded;
  totals_.bytes_downloaded += now.bytes_downloaded - engine.counted.bytes_downloaded;
  totals_.bytes_staged += now.bytes_staged - engine.counted.bytes_staged;
  totals_.kernels = now.kernels;
  engine.counted = now;
  engine.counted.frames -= filtered % views;  // counts with the other views
}

BackendStats FrameCounts::totals() const {
  std::lock_guard<std::mutex> guard(lock_);
  return totals_;
}

}  // namespace cudaconv::gst
