// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Counts of frames and their regions, for the property "stats" of roihold and its reports.
#pragma once

#include <cstdint>
#include <optional>

#include "gstcudaconvroimetas.h"

namespace cudaconv::gst {

// Not locked.
class HoldCounts {
 public:
  // A frame that leaves, with or without a region in force, and the regions that came with it.
  void add_frame(bool marked, guint64 regions, const RoiTypeCounts &types);
  void add_early();

  // All counts. Transfer full.
  GstStructure *all() const;
  // Begins the counts of the next report anew, while there are no reports.
  void restart_reports();
  // The counts since the last report, as the structure of a message; nullptr where the last report is less than a
  // second of stream time before `time`. `ended`: reports what is left. Transfer full.
  GstStructure *report(std::optional<int64_t> time, bool ended);

 private:
  struct Counts {
    guint64 marked = 0, unmarked = 0, early = 0;
    RoiCounts regions;
  };
  static void write(const Counts &counts, GstStructure *structure);

  Counts all_, since_;            // since the start, since the last report
  std::optional<int64_t> begin_;  // of the next report
};

}  // namespace cudaconv::gst
