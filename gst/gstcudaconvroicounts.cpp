// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroicounts.h"

#include <cstring>
#include <string>

namespace cudaconv::gst {

namespace {

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

void RoiCounts::add(guint64 regions, const RoiTypeCounts &types, const RoiCounts &like) {
  regions_ += regions;
  for (const auto &[type, count] : types) {
    std::string field = field_of(type);
    if (like.types_.size() >= kMostTypes && !like.types_.count(field)) field = kOtherTypes;
    types_[field] += count;
  }
}

void RoiCounts::write(GstStructure *structure) const {
  g_autoptr(GstStructure) types = gst_structure_new_empty("types");
  for (const auto &[type, count] : types_) gst_structure_set(types, type.c_str(), G_TYPE_UINT64, count, nullptr);
  gst_structure_set(structure, "regions", G_TYPE_UINT64, regions_, "regions-by-type", GST_TYPE_STRUCTURE, types,
                    nullptr);
}

}  // namespace cudaconv::gst
