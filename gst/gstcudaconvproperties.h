// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The element's properties: the table that defines them, and the values they are set to.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gstcudaconvstream.h"

namespace cudaconv::gst {

constexpr guint kMostFramesInFlight = 16;  // maximum of the property frames-in-flight

enum class BackendChoice { Auto, Cuda, Cpu };
inline constexpr Named<BackendChoice> kBackendNames[] = {
    {BackendChoice::Auto, "auto", "CUDA if a GPU can be used, else the CPU"},
    {BackendChoice::Cuda, "cuda", "CUDA only; without a GPU the element does not start"},
    {BackendChoice::Cpu, "cpu", "CPU only"},
};

// The value of every property that can be set.
struct Configuration {
  Settings settings;
  BackendChoice backend = BackendChoice::Auto;
  int device_id = -1;          // -1: the GPU of the neighbours, else GPU 0
  guint threads = 0;           // of the CPU backend; 0: automatic
  guint frames_in_flight = 0;  // 0: automatic
  guint serial = 0;            // changes whenever the settings do
};

// The names of the properties that differ from their defaults.
std::vector<std::string> properties_that_are_set(const Settings &settings);
// Why a property has no effect with the mask and the other settings, as a sentence; empty where it has one.
std::string why_without_effect(const std::string &property, const Settings &settings);

// Installs all properties but "stats", with ids from 1. Returns the id for "stats".
guint install_properties(GObjectClass *klass);

// The values of one element's properties. Changes are staged, and published together at the end of a g_object_set(). So
// no frame is filtered with a part of one call's changes. Any thread may call.
class Properties {
 public:
  // For GObject's set_property and get_property, which GObject calls with ids of install_properties().
  void set(guint id, const GValue *value);
  void get(guint id, GValue *value) const;  // staged changes included

  // Whether another value than the default has an effect, with the mask and the other settings as they are. False where
  // there is no such property.
  bool has_effect(const std::string &name) const;

  // Publishes the staged values of these properties. For GObject's dispatch_properties_changed, called once for each
  // g_object_set() with what it has set; calls of several threads that overlap may share one. The other properties may
  // belong to a call that another thread has just begun.
  void publish(guint count, GParamSpec *const *specs);

  std::shared_ptr<const Configuration> published() const;  // what frames are filtered with
  guint serial() const { return serial_; }                 // of published()

 private:
  mutable std::mutex lock_;
  Configuration staged_;
  std::shared_ptr<const Configuration> published_ = std::make_shared<const Configuration>();
  std::atomic<guint> serial_{0};
};

}  // namespace cudaconv::gst
