// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Warnings about settings that have no effect.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gstcudaconvstream.h"
#include "plan/masks.h"

namespace cudaconv::gst {

// The settings that differ from their defaults. `text` is empty where a setting has an effect; else it says in a
// sentence why there is none.
std::vector<UnusedSetting> settings_that_are_set(const Settings &settings);

// Detects a roi-type that matches no region. Only for the sink pad's streaming thread.
class RoiTypeWatch {
 public:
  void reset() { *this = {}; }
  // To be called for each frame, with the regions in its metas that the settings select. `now` is in nanoseconds.
  // Returns a sentence for the user where nothing has matched for five seconds, else an empty text.
  std::string look(GstBuffer *buffer, const RoiSettings &roi, const RoiList &found, int64_t now);
  // To be called at the end of the stream: returns the sentence where nothing has matched at all.
  std::string end() const;

 private:
  std::string sentence() const;

  std::string wanted_;  // roi-type
  bool matched_ = false;
  std::set<std::string> seen_;    // types since the last match
  std::optional<int64_t> first_;  // the first frame with metas since the last match
};

}  // namespace cudaconv::gst
