// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Counts of frames and their regions, for the property "stats" and the messages of roi-report.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace cudaconv::gst {

// How many regions of each type or label came.
using RoiTypeCounts = std::map<std::string, guint64>;

// Any thread may call.
class RoiCounts {
 public:
  void reset();
  void add_regions(guint64 regions, const RoiTypeCounts &types);
  void add_frame(bool marked);  // one that leaves, with or without a region in force
  void add_early() { add(&Counts::early); }

  // Adds all counts since reset() to the structure.
  void add_to(GstStructure *structure) const;
  // The counts since the last report, as the structure of a message; nullptr where the last report is less than a
  // second of stream time before `time`. `ended`: reports what is left. Transfer full.
  GstStructure *report(std::optional<int64_t> time, bool ended);

 private:
  struct Counts {
    guint64 marked = 0, unmarked = 0, early = 0, regions = 0;
    RoiTypeCounts types;
  };
  void add(guint64 Counts::*count);
  static void write(const Counts &counts, GstStructure *structure);

  mutable std::mutex lock_;  // guards the members below
  Counts all_, reported_;
  std::optional<int64_t> begin_;  // of the next report
};

}  // namespace cudaconv::gst
