// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroicounts.h"

#include <cstring>

namespace cudaconv::gst {

namespace {

// Labels may carry the number of an object, so that new ones come for ever.
constexpr size_t kMostTypes = 100;
constexpr const char *kOtherTypes = "other";

// A field name for a type, with which GStreamer can read the structure back from text.
std::string field_of(const std::string &type) {
  if (type.empty()) return "_";
  std::string name = type;
  const bool readable = g_utf8_validate(type.c_str(), -1, nullptr);
  for (char &c : name)
    if (!g_ascii_isalnum(c) && !std::strchr("_-+/:.", c) && !(readable && (c & 0x80))) c = '_';
  return name;
}

}  // namespace

void RoiCounts::reset() {
  std::lock_guard<std::mutex> guard(lock_);
  all_ = reported_ = {};
  begin_.reset();
}

void RoiCounts::add(guint64 Counts::*count) {
  std::lock_guard<std::mutex> guard(lock_);
  all_.*count += 1;
}

void RoiCounts::add_regions(guint64 regions, const RoiTypeCounts &types) {
  std::lock_guard<std::mutex> guard(lock_);
  all_.regions += regions;
  for (const auto &[type, count] : types) {
    const std::string field = field_of(type);
    const bool fits = all_.types.size() < kMostTypes || all_.types.count(field);
    all_.types[fits ? field : kOtherTypes] += count;
  }
}

void RoiCounts::add_frame(bool marked) {
  add(marked ? &Counts::marked : &Counts::unmarked);
}

void RoiCounts::write(const Counts &counts, GstStructure *structure) {
  GstStructure *types = gst_structure_new_empty("types");
  for (const auto &[type, count] : counts.types) gst_structure_set(types, type.c_str(), G_TYPE_UINT64, count, nullptr);
  // clang-format off
  gst_structure_set(structure,
      "frames-marked", G_TYPE_UINT64, counts.marked,
      "frames-unmarked", G_TYPE_UINT64, counts.unmarked,
      "frames-early", G_TYPE_UINT64, counts.early,
      "regions", G_TYPE_UINT64, counts.regions,
      "regions-by-type", GST_TYPE_STRUCTURE, types,
      nullptr);
  // clang-format on
  gst_structure_free(types);
}

void RoiCounts::add_to(GstStructure *structure) const {
  std::lock_guard<std::mutex> guard(lock_);
  write(all_, structure);
}

GstStructure *RoiCounts::report(std::optional<int64_t> time, bool ended) {
  std::lock_guard<std::mutex> guard(lock_);
  if (!begin_ || (time && *time < *begin_)) begin_ = time;
  const bool due = begin_ && time && static_cast<guint64>(*time) - static_cast<guint64>(*begin_) >= GST_SECOND;
  if (!due && !ended) return nullptr;
  Counts since = all_;
  since.marked -= reported_.marked;
  since.unmarked -= reported_.unmarked;
  since.early -= reported_.early;
  since.regions -= reported_.regions;
  for (const auto &[type, count] : reported_.types)
    if ((since.types[type] -= count) == 0) since.types.erase(type);
  if (ended && since.marked + since.unmarked == 0) return nullptr;
  GstStructure *structure = gst_structure_new_empty("cudaconv-regions");
  if (begin_ && *begin_ >= 0)
    gst_structure_set(structure, "stream-time", G_TYPE_UINT64, static_cast<guint64>(*begin_), nullptr);
  write(since, structure);
  reported_ = all_;
  if (time) begin_ = time;
  return structure;
}

}  // namespace cudaconv::gst
