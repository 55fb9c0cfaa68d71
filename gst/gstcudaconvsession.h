// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The context of one element, made from caps, settings and engine.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "gstcudaconvallocation.h"
#include "gstcudaconvmessages.h"
#include "gstcudaconvproperties.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// Threads: state changes and the sink pad's streaming thread, which GStreamer keeps apart, call everything; other
// threads only what is marked so. Warnings of settings are left in `messages`; other messages are posted at once.
class Session {
 public:
  Session(GstElement *element, const Properties &properties, Messages &messages)
      : element_(element), properties_(properties), messages_(messages), engines_(element, properties) {}

  EngineChoice &engines() { return engines_; }

  // READY to PAUSED. Returns as EngineChoice::open() does.
  bool start();
  // PAUSED to READY: gives up the context of the caps; the engine stays.
  void stop();

  // Makes the context for new caps. Where the settings cannot be carried out with them, the last good ones stay in
  // force. False, with an error message posted once, where there are no good ones or the frames cannot be filtered at
  // all.
  bool configure(const GstVideoInfo &info, bool cuda_in, bool cuda_out);
  // Makes changed settings take effect, or warns. Returns whether they took effect. There is a context.
  bool update();
  // Whether the frames to come are to be filtered in the CUDA context of this buffer, or on its stream, instead of
  // those in use. To be called for each frame.
  bool is_elsewhere(const StreamContext &context, GstBuffer *buffer);
  // Changes over to these, if they are on the device that was asked for; to the CPU if that fails and backend=auto.
  // Nothing may be in flight. Returns whether it did. Throws Error.
  bool follow(GstBuffer *buffer);
  // Whether frames may leave before the GPU is done with them, where streams order all work on their memory.
  bool leaves_order_to_streams(const StreamContext &context) const;

  // Any thread may call the functions from here on.
  std::shared_ptr<const StreamContext> context() const;  // nullptr where there are no caps
  // Returns a replacement for the context of a frame on which the device failed. Throws the error if there is none.
  std::shared_ptr<const StreamContext> fail_over(const StreamContext &context, const Error &e);
  guint failovers() const { return failovers_; }  // since start()
  int device_in_use() const;                      // -1: the CPU
  // Frames that may be on the device at once; 1: each is waited for. `device_ns`: how long one takes there; 0: unknown.
  guint most_in_flight(const StreamContext &context, guint64 device_ns) const;
  // Nanoseconds that frames may wait in the element while downstream blocks, before upstream has to wait.
  GstClockTime longest_wait() const;
  // Leaves a message if that has changed.
  void announce_latency() const { messages_.announce_latency(longest_wait()); }
  // The argument `needs` for propose_allocation() and decide_allocation().
  AllocationNeeds allocation_needs() const;

 private:
  static constexpr guint kForGood = 64;  // frames of another stream until that one is used

  bool install(std::shared_ptr<const StreamContext> context, guint serial, const StreamContext *instead_of = nullptr);
  void warn_of_settings(const Settings &settings, const Error &e);
  void warn_of_unused(const Settings &settings);

  GstElement *const element_;
  const Properties &properties_;
  Messages &messages_;
  EngineChoice engines_;

  mutable std::mutex lock_;                       // guards the next member
  std::shared_ptr<const StreamContext> context_;  // nullptr where there are no caps
  std::atomic<guint> failovers_{0};

  // For the sink pad's streaming thread and state changes alone.
  guint tried_serial_ = 0;  // the settings that were last tried on the context, with or without success
  std::string caps_error_;  // which is not repeated when the base class tries again
  // Frames of other streams since the last one of the stream in use; kForGood where none of that has come.
  guint other_streams_ = kForGood;
};

}  // namespace cudaconv::gst
