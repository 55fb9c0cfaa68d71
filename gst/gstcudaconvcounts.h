// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Counts of the frames of a cudaconv, for the property "stats" and for queries.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <mutex>

#include "gstcudaconvengine.h"

namespace cudaconv::gst {

// Counts of the frames. Any thread may call.
class FrameCounts {
 public:
  explicit FrameCounts(gpointer element) : element_(element) {}

  void restart();           // when the element starts
  void restart_position();  // after a flush
  void note_push(GstBuffer *buffer);
  // Adds the engine's statistics since the last call. `views`: of each frame.
  void add(Engine &engine, size_t views);

  BackendStats totals() const;                         // since restart()
  guint64 device_ns() const { return device_ns_; }     // of the latest frame; 0 before the first one
  guint64 pushed() const { return pushed_; }           // frames since restart() or restart_position()
  GstClockTime position() const { return position_; }  // end timestamp of the frame that was pushed last

 private:
  const gpointer element_;  // for the log
  std::atomic<guint64> pushed_{0};
  std::atomic<guint64> device_ns_{0};
  std::atomic<GstClockTime> position_{GST_CLOCK_TIME_NONE};
  mutable std::mutex lock_;  // guards totals_, and what engines have counted
  BackendStats totals_;
};

}  // namespace cudaconv::gst
