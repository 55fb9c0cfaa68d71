// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstroiholdcounts.h"

#include <algorithm>
#include <utility>

namespace cudaconv::gst {

void HoldCounts::add_frame(bool marked, guint64 regions, const RoiTypeCounts &types) {
  for (Counts *counts : {&all_, &since_}) {
    (marked ? counts->marked : counts->unmarked)++;
    counts->regions.add(regions, types, all_.regions);
  }
}

void HoldCounts::add_early() {
  all_.early++;
  since_.early++;
}

void HoldCounts::write(const Counts &counts, GstStructure *structure) {
  // clang-format off
  gst_structure_set(structure,
      "frames-marked", G_TYPE_UINT64, counts.marked,
      "frames-unmarked", G_TYPE_UINT64, counts.unmarked,
      "frames-early", G_TYPE_UINT64, counts.early,
      nullptr);
  // clang-format on
  counts.regions.write(structure);
}

GstStructure *HoldCounts::all() const {
  GstStructure *structure = gst_structure_new_empty("application/x-roihold-stats");
  write(all_, structure);
  return structure;
}

void HoldCounts::restart_reports() {
  since_ = {};
  begin_.reset();
}

GstStructure *HoldCounts::report(std::optional<int64_t> time, bool ended) {
  if (!begin_) begin_ = time;
  const int64_t at = time.value_or(0), begin = begin_.value_or(at);  // backwards, the end comes first
  const guint64 passed = static_cast<guint64>(std::max(at, begin)) - static_cast<guint64>(std::min(at, begin));
  const bool due = time && passed >= GST_SECOND;
  if (!due && !ended) return nullptr;
  const std::optional<int64_t> from = std::exchange(begin_, time);
  if (ended && since_.marked + since_.unmarked == 0) return nullptr;
  GstStructure *structure = gst_structure_new_empty("roihold-regions");
  if (from && *from >= 0)
    gst_structure_set(structure, "stream-time", G_TYPE_UINT64, static_cast<guint64>(*from), nullptr);
  write(since_, structure);
  since_ = {};
  return structure;
}

}  // namespace cudaconv::gst
