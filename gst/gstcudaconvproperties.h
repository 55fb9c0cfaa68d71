// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The properties of cudaconv: the table that defines them, and the values they are set to.
#pragma once

#include <string>
#include <vector>

#include "gstcudaconvpropertytable.h"
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

// The names of the properties that differ from their defaults.
std::vector<std::string> properties_that_are_set(const Settings &settings);
// Why a property has no effect with the mask and the other settings, as a sentence; empty where it has one.
std::string why_without_effect(const std::string &property, const Settings &settings);

class Properties : public PropertyValues<Configuration> {
 public:
  Properties();
  static void install(GObjectClass *klass);

  // Whether another value than the default has an effect, with the mask and the other settings as they are. False where
  // there is no such property.
  bool has_effect(const std::string &name) const;
};

}  // namespace cudaconv::gst
