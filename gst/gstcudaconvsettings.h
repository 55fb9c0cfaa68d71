// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the properties of cudaconv are set to.
#pragma once

#include <glib.h>

#include <string>

#include "regions/selector.h"

namespace cudaconv::gst {

// The settings of the filter, as the properties have them.
struct Settings {
  FilterSettings filter;              // without its coefficients, see complete()
  std::string coefficients;           // as text
  guint32 border_color = 0xff000000;  // ARGB
  RoiSettings roi;

  // `filter` with its coefficients parsed, where the mask or shape uses them. Throws Error{Settings}.
  FilterSettings complete() const;
  // Throws Error{Settings} where roi-feather does not work with the other settings.
  void check_feather() const;
};

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
};

}  // namespace cudaconv::gst
