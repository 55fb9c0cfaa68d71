// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The element's properties: the table that defines them, and the values they are set to.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gstcudaconvenums.h"
#include "gstcudaconvstream.h"

namespace cudaconv::gst {

// The value of every property that can be set.
struct Configuration {
  Settings settings;
  BackendChoice backend = BackendChoice::Auto;
  int device_id = -1;          // -1: that of the neighbours, else the first
  guint threads = 0;           // of the CPU backend; 0: as many as pay off
  guint frames_in_flight = 0;  // 0: as many as pay off
};

// The configuration that frames are filtered with.
struct Published {
  Configuration configuration;
  guint serial = 0;  // changes whenever the settings in `configuration` do
};

// Installs all properties but "stats", with ids from 1. Returns the id for "stats".
guint install_properties(GObjectClass *klass);

// The values of one element's properties. Changes are staged, and published together when every g_object_set() that
// makes some has ended, so that no frame is filtered with a part of what one call sets. Any thread may call.
class Properties {
 public:
  // For GObject's set_property and get_property. False where there is no such property.
  bool set(guint id, const GValue *value);
  bool get(guint id, GValue *value) const;  // staged changes included

  // For GObject's dispatch_properties_changed, which is called once for all that one g_object_set() sets, on the thread
  // whose call ends last. Publishes what is staged, unless another g_object_set() has begun meanwhile, which then
  // publishes it at its end. `spec` is one of the properties that are being dispatched. Returns further properties that
  // are to be dispatched.
  std::vector<GParamSpec *> publish(GObject *object, GParamSpec *spec);
  // Whether it is publish() that has caused this dispatch, to find out whether a g_object_set() is under way. If so
  // there is nothing to dispatch.
  bool answers_probe(guint count, GParamSpec **specs);

  std::shared_ptr<const Published> published() const;

 private:
  mutable std::mutex lock_;
  std::shared_ptr<const Published> staged_ = std::make_shared<const Published>(), published_ = staged_;
  // Used by publish() and answers_probe(), while publish() finds out whether a g_object_set() is under way.
  std::atomic<std::thread::id> prober_{};
  GParamSpec *probe_ = nullptr;
  bool nobody_sets_ = false;
  std::vector<GParamSpec *> dispatched_;
};

}  // namespace cudaconv::gst
