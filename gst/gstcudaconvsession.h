// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What one element filters with: its device and backend, and the context that caps and settings make of them.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gstcudaconvallocation.h"
#include "gstcudaconvdevice.h"
#include "gstcudaconvproperties.h"
#include "gstcudaconvroihistory.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// State changes and the thread of upstream, which GStreamer keeps apart, call everything; other threads what is marked.
// Messages are posted as the element's.
class Session {
 public:
  Session(GstElement *element, const Properties &properties) : element_(element), properties_(properties) {}

  // NULL to READY: chooses device and backend. False, with an error message posted, where backend=cuda finds no device.
  bool open();
  // READY to NULL.
  void close();
  // READY to PAUSED: chooses again where the properties have changed or the device has failed. As open().
  bool start();
  void stop();

  // Makes the context of new caps. Where they cannot be filtered with these settings, the last good ones stay in force;
  // false, with an error message posted once, where there are none, or the frames cannot be filtered at all.
  bool configure(const GstVideoInfo &info, bool cuda_in, bool cuda_out);
  // Makes changed settings take effect, or posts a warning. Whether they did.
  bool update();
  // Whether the buffer is CUDA memory of another context than the frames are filtered in.
  bool is_foreign(GstBuffer *buffer) const;
  // Goes over to that context, where it is of the device that was asked for. Nothing may be in flight. Whether it did.
  bool follow(GstBuffer *buffer);

  // Takes note of the regions that come with a frame of this segment, whatever becomes of the frame.
  void look_for_regions(GstBuffer *buffer, const GstSegment &segment);
  // What is done to that frame. Throws Error.
  std::vector<PlannedRegions> plan_regions(GstBuffer *buffer);
  // After a flush, or in another segment than `current`, no region of the frames so far stays in force.
  void look_at_event(GstEvent *event, const GstSegment &current);

  // Finds the device of the CUDA memory that downstream wants, also where the CPU filters. False, with an error message
  // posted once, where there is none.
  bool find_memory_device();

  // Any thread.
  std::shared_ptr<const StreamContext> context() const;  // nullptr where there are no caps
  // What takes the place of the context of a frame on which its device failed; nullptr, with an error message posted
  // once, where nothing may.
  std::shared_ptr<const StreamContext> fail_over(const StreamContext &context, const Error &e);
  void set_context(GstContext *context);
  bool answer_context_query(GstQuery *query);
  int device_in_use() const;     // -1: the CPU
  guint most_in_flight() const;  // frames that may be on the device at once; 1: none waits there for another
  // For how long frames may wait in the element before upstream has to.
  GstClockTime longest_wait() const;
  AllocationNeeds allocation_needs() const;
  guint failovers() const;

 private:
  bool choose(const Configuration &wanted);
  void release(bool with_context);
  void use(std::shared_ptr<Device> device, std::shared_ptr<Engine> engine);
  void install(std::shared_ptr<const StreamContext> context, guint serial);
  void warn_of_settings(const Settings &settings, const Error &e);
  void complain_of_unused(const Settings &settings);
  void complain_once(const std::string &about, const std::string &text);

  GstElement *const element_;
  const Properties &properties_;
  const std::unique_ptr<DeviceFinder> finder_ = DeviceFinder::create();

  mutable std::mutex lock_;  // guards what follows
  std::shared_ptr<const StreamContext> context_;
  std::shared_ptr<Device> device_;       // of the CUDA engine, or of the memory that the CPU delivers
  std::shared_ptr<Engine> cuda_engine_;  // nullptr: the CPU filters
  bool chosen_ = false;                  // these, for the following
  BackendChoice chosen_backend_ = BackendChoice::Auto;
  int chosen_device_id_ = -1;
  bool device_failed_ = false;
  guint failovers_ = 0;
  guint threads_ = 0, frames_in_flight_ = 0;  // as at the start

  // The thread of upstream's alone.
  guint tried_serial_ = 0;  // the settings that were last tried on the context, with or without success
  // What was said last, since the base class asks again and again.
  std::string caps_error_, memory_error_;
  RoiList found_;                     // the regions in force for the frame at hand
  RoiHistory held_;                   // where roi-hold is set
  std::set<std::string> complaints_;  // those made, and properties that none is to be made of
  std::string refused_;               // what the last warning of settings that cannot be carried out was about
  gint64 refused_at_ = 0;             // microseconds
};

}  // namespace cudaconv::gst
