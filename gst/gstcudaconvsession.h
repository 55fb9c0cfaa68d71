// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The device and backend of one element, and the context made from these, the caps and the settings.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gstcudaconvallocation.h"
#include "gstcudaconvdevice.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvproperties.h"
#include "gstcudaconvref.h"
#include "gstcudaconvroicounts.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// Threads: state changes and the sink pad's streaming thread, which GStreamer keeps apart, call everything; other
// threads only what is marked so. Warnings of settings are left in `messages`; other messages are posted at once.
class Session {
 public:
  Session(GstElement *element, const Properties &properties, Messages &messages)
      : element_(element), properties_(properties), messages_(messages) {}

  // NULL to READY: chooses device and backend. False, with an error message posted, where backend=cuda finds no device.
  bool open();
  // READY to NULL: gives up device and context.
  void close() { release(true); }
  // READY to PAUSED: chooses again where the properties have changed or the device has failed. Returns as open() does.
  bool start();
  // PAUSED to READY: gives up the context of the caps; the device stays.
  void stop();

  // Makes the context for new caps. Where the settings cannot be carried out with them, the last good ones stay in
  // force. False, with an error message posted once, where there are no good ones or the frames cannot be filtered at
  // all.
  bool configure(const GstVideoInfo &info, bool cuda_in, bool cuda_out);
  // Makes changed settings take effect, or warns. Returns whether they took effect.
  bool update();
  // Takes the current context, nullptr where there are no caps, if it is another one than `*context`.
  void take_context(std::shared_ptr<const StreamContext> *context);
  // Whether the buffer is a piece of CUDA memory of another context than the frames are filtered in.
  static bool is_foreign(const StreamContext &context, GstBuffer *buffer);
  // Changes over to the context that the buffer belongs to, if it is on the device that was asked for; to the CPU if
  // that fails and backend=auto. Nothing may be in flight. Returns whether it did. Throws Error.
  bool follow(GstBuffer *buffer);
  // Whether the frames to come are to be filtered on the stream of this buffer instead. To be called for each frame.
  bool is_on_other_stream(const StreamContext &context, GstBuffer *buffer);
  // Changes over to that stream; to the CPU if that fails and backend=auto. Nothing may be in flight. Returns whether
  // it did. Throws Error.
  bool follow_stream(GstBuffer *buffer);
  // Whether frames may leave before the GPU is done with them, where streams order all work on their memory.
  bool leaves_order_to_streams(const StreamContext &context) const;

  // The regions that come with a frame of this segment, in pixels of its picture.
  RoiList find_regions(const StreamContext &context, GstBuffer *buffer, const GstSegment &segment);
  // The plans and regions for a frame with the regions `found`. Throws Error; Error{Cancelled} when `cancelled` becomes
  // true.
  std::vector<PlannedView> plan_regions(const StreamContext &context, GstBuffer *buffer, const RoiList &found,
                                        const std::atomic<bool> &cancelled);
  // To be called for each event of the sink pad.
  void look_at_event(GstEvent *event);

  // Finds the device of the CUDA memory that downstream wants, also where the CPU filters. False, with an error message
  // posted once, where there is none.
  bool find_memory_device();

  // Any thread may call the functions from here on.
  std::shared_ptr<const StreamContext> context() const;  // nullptr where there are no caps
  // Returns a replacement for the context of a frame on which the device failed; nullptr, with an error message posted
  // once, if there is none.
  std::shared_ptr<const StreamContext> fail_over(const StreamContext &context, const Error &e);
  DeviceFinder &finder() const { return *finder_; }  // for contexts
  int device_in_use() const;                         // -1: the CPU
  // Frames that may be on the device at once; 1: each is waited for. `device_ns`: how long one takes there; 0: unknown.
  guint most_in_flight(const StreamContext &context, guint64 device_ns) const;
  // Nanoseconds that frames may wait in the element while downstream blocks, before upstream has to wait.
  GstClockTime longest_wait() const;
  // The argument `needs` for propose_allocation() and decide_allocation().
  AllocationNeeds allocation_needs() const;
  // The value of the property "stats", counted since start(); `totals`: of the frames. Transfer full.
  GstStructure *stats(const BackendStats &totals) const;

 private:
  void release(bool with_context);
  void use(std::shared_ptr<Device> device, std::shared_ptr<Engine> engine);
  void change_over(std::shared_ptr<Device> device);
  bool install(std::shared_ptr<const StreamContext> context, guint serial, const StreamContext *instead_of = nullptr);
  void warn_of_settings(const Settings &settings, const Error &e);
  void warn_of_unused(const Settings &settings);
  void warn_of_regions(const std::string &text);

  GstElement *const element_;
  const Properties &properties_;
  Messages &messages_;
  const std::unique_ptr<DeviceFinder> finder_ = DeviceFinder::create();

  mutable std::mutex lock_;  // guards the members below
  bool started_ = false;
  std::shared_ptr<const StreamContext> context_;  // nullptr unless started_
  std::shared_ptr<Device> device_;  // the device of cuda_engine_, or of the CUDA memory that the CPU's results go to
  std::shared_ptr<Engine> cuda_engine_;          // nullptr: the CPU filters
  std::shared_ptr<const Configuration> wanted_;  // the properties at the start, or when the device was opened
  bool chosen_ = false;                          // device and engine are chosen, as `wanted_` asks
  bool device_failed_ = false;
  guint failovers_ = 0;
  RoiCounts counts_;

  std::atomic<guint> contexts_{0};          // how often context_ has been set
  std::atomic<guint> frames_in_flight_{0};  // the property, when the device was opened; 0: automatic

  // For the sink pad's streaming thread and state changes alone.
  guint tried_serial_ = 0;  // the settings that were last tried on the context, with or without success
  // The errors that were posted last, which are not repeated when the base class tries again.
  std::string caps_error_, memory_error_;
  guint taken_ = 0;                   // contexts_ when take_context() was last called
  std::optional<int64_t> last_time_;  // of the last frame with a roi-type
  bool has_stream_ = false;           // a frame has come whose stream is the one in use
  guint other_streams_ = 0;           // frames of other streams since then
  RoiTypeWatch type_watch_{"roi-type"};
};

}  // namespace cudaconv::gst
