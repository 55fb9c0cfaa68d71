// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The backend of one element, the device that it runs on, and counts of the frames that they have filtered.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "gstcudaconvdevice.h"

namespace cudaconv::gst {

struct Configuration;
class Properties;

// A backend and the device that it runs on, if any.
struct Engine {
  std::shared_ptr<Device> device;  // nullptr: the CPU
  std::shared_ptr<Backend> backend;
  BackendStats counted;  // statistics that the element's already contain

  bool cuda() const { return device != nullptr; }
};

// Makes a CUDA backend on the device. Throws Error.
std::shared_ptr<Engine> make_cuda_engine(std::shared_ptr<Device> device);

// Chooses the engine, as the properties ask. State changes and the sink pad's streaming thread, which GStreamer keeps
// apart, call everything; other threads only what is marked so.
class EngineChoice {
 public:
  EngineChoice(GstElement *element, const Properties &properties) : element_(element), properties_(properties) {}

  // Chooses, again where the properties have changed or the device has failed. False, with an error message posted,
  // where backend=cuda finds no device.
  bool open();
  // Gives up device and context.
  void close();
  // Finds the device of the CUDA memory that downstream wants, also where the CPU filters. False, with an error message
  // posted once since open(), where there is none.
  bool find_memory_device();
  // The device of the CUDA context that the buffer belongs to, if it is the one that was asked for; else nullptr.
  std::shared_ptr<Device> device_of(GstBuffer *buffer);
  // Changes over to another device, and to its engine; nullptr: the CPU filters.
  void set(std::shared_ptr<Device> device, std::shared_ptr<Engine> engine);

  // Any thread may call the functions from here on.
  // Notes that the device has failed: the next open() tries it again. Returns whether the CPU may replace it.
  bool fail();
  std::shared_ptr<Engine> cpu(const GstVideoInfo &info) const;  // for frames of this size
  std::shared_ptr<Device> device() const;  // of the engine, or of the CUDA memory that the CPU's results go to
  std::shared_ptr<Engine> engine() const;  // nullptr: the CPU filters
  guint frames_in_flight() const { return frames_in_flight_; }  // the property, at open(); 0: automatic
  DeviceFinder &finder() const { return *finder_; }             // for contexts

 private:
  GstElement *const element_;
  const Properties &properties_;
  const std::unique_ptr<DeviceFinder> finder_ = DeviceFinder::create();
  std::string memory_error_;  // which is not repeated when the base class tries again
  std::atomic<guint> frames_in_flight_{0};

  mutable std::mutex lock_;  // guards the members below
  std::shared_ptr<Device> device_;
  std::shared_ptr<Engine> engine_;               // nullptr: the CPU filters
  std::shared_ptr<const Configuration> wanted_;  // the properties at open(); nullptr: nothing is chosen
  bool failed_ = false;
};

// Counts of the frames of an element, for the property "stats" and for queries. Any thread may call.
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
