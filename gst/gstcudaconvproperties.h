// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The element's properties: one table, and what they are set to.
#pragma once

#include <gst/gst.h>

#include <atomic>
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

struct Published {
  Configuration configuration;
  guint serial;  // changes with the settings, and with nothing else
};

// Installs all properties but "stats", whose id is the one returned.
guint install_properties(GObjectClass *klass);

// What the properties of one element are set to. Changes are staged, and published together when the calls that make
// them are through: no frame is filtered with a part of what one g_object_set() sets. Any thread may call.
class Properties {
 public:
  // For GObject's set_property and get_property. False where there is no such property.
  bool set(guint id, const GValue *value);
  bool get(guint id, GValue *value) const;  // staged changes included

  // For GObject's dispatch_properties_changed, which is called once for all that one g_object_set() has set, on the
  // thread whose call ends last. Publishes what is staged, unless another call has begun meanwhile: then that one does.
  // Returns further properties that are to be dispatched. `spec` is one of those that are being dispatched.
  std::vector<GParamSpec *> publish(GObject *object, GParamSpec *spec);
  // Whether the dispatch is one that publish() has asked for, and is answered by that.
  bool answers_probe(guint count, GParamSpec **specs);

  Published published() const;
  guint serial() const;  // of what is published

 private:
  mutable std::mutex lock_;
  Configuration staged_;
  Published published_ = {};
  // The rest is that of publish(), while it asks whether a call is under way.
  std::atomic<std::thread::id> prober_{};
  GParamSpec *probe_ = nullptr;
  bool nobody_sets_ = false;
  std::vector<GParamSpec *> dispatched_;
};

}  // namespace cudaconv::gst
