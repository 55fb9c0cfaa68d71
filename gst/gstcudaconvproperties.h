// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The element's properties: the table that defines them, and the values they are set to.
#pragma once

#include <string>
#include <vector>

#include "gstcudaconvpropertytable.h"
#include "gstcudaconvsettings.h"

namespace cudaconv::gst {

// The names of the properties that differ from their defaults.
std::vector<std::string> properties_that_are_set(const Settings &settings);
// Why a property has no effect with the mask and the other settings, as a sentence; empty where it has one.
std::string why_without_effect(const std::string &property, const Settings &settings);

class Properties : public PropertyValues<Configuration> {
 public:
  Properties();
  static void install(GObjectClass *klass, const char *stats);

  // Whether another value than the default has an effect, with the mask and the other settings as they are. False where
  // there is no such property.
  bool has_effect(const std::string &name) const;
};

}  // namespace cudaconv::gst
