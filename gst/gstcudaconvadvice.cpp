// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvadvice.h"

#include <gst/video/video.h>

#include <algorithm>

#include "gstcudaconvanalytics.h"

namespace cudaconv::gst {

namespace {

constexpr size_t kMostTypes = 8;  // in one message

// The properties that need regions. `by_roi`: the regions of the property roi are enough.
const struct {
  const char *property;
  bool (*is_set)(const RoiSettings &s, const RoiSettings &otherwise);
  bool by_roi;
} kRoiUsage[] = {
    {"roi-type", [](auto &s, auto &d) { return s.types != d.types; }, false},
    {"roi-hold", [](auto &s, auto &d) { return s.hold != d.hold; }, false},
    {"roi-lookahead", [](auto &s, auto &d) { return s.lookahead != d.lookahead; }, false},
    {"roi-unmarked", [](auto &s, auto &d) { return s.unmarked != d.unmarked; }, false},
    {"roi-report", [](auto &s, auto &d) { return s.report != d.report; }, false},
    {"roi-grow", [](auto &s, auto &d) { return s.grow != d.grow; }, true},
    {"roi-scale", [](auto &s, auto &d) { return s.scale != d.scale; }, true},
    {"roi-shape", [](auto &s, auto &d) { return s.shape != d.shape; }, true},
    {"roi-invert", [](auto &s, auto &d) { return s.invert != d.invert; }, true},
};

}  // namespace

std::vector<UnusedSetting> settings_that_are_set(const Settings &s) {
  const bool has_coefficients = !s.coefficients.empty();
  const std::vector<UnusedSetting> unused = unused_settings(s.filter, has_coefficients);
  FilterSettings nothing = s.filter;
  nothing.mask = Mask::Identity;  // uses none
  std::vector<UnusedSetting> all;
  for (const UnusedSetting &given : unused_settings(nothing, has_coefficients)) {
    const std::string property = given.property;
    const auto same = std::find_if(unused.begin(), unused.end(), [&](const auto &u) { return u.property == property; });
    all.push_back({given.property, same == unused.end() ? "" : same->text});
  }
  if (s.border_color != Settings().border_color)
    all.push_back({"border-color", s.filter.border == Border::Constant
                                       ? ""
                                       : std::string("border-color has no effect with border=") +
                                             border_nick(s.filter.border) + "; it is used with border=constant"});
  for (const auto &usage : kRoiUsage) {
    if (!usage.is_set(s.roi, RoiSettings())) continue;
    std::string text;
    if (usage.property == std::string("roi-scale")) text = RoiStrength::unused(s.filter);
    if (text.empty() && !s.roi.meta && (!usage.by_roi || s.roi.rectangles.empty()))
      text = std::string(usage.property) + " has no effect without " + (usage.by_roi ? "roi or " : "") + "roi-meta";
    if (text.empty() && s.roi.invert && usage.property == std::string("roi-scale"))
      text = "roi-scale has no effect with roi-invert=true";
    all.push_back({usage.property, text});
  }
  return all;
}

std::string RoiTypeWatch::look(GstBuffer *buffer, const RoiSettings &roi, const RoiList &found, int64_t now) {
  if (!roi.meta || roi.types != wanted_) {
    reset();
    wanted_ = roi.types;
  }
  if (!roi.meta || roi.types.empty()) return {};
  if (!found.region.empty() || !found.mask.empty() || found.everywhere) {
    matched_ = true;
    first_.reset();
    seen_.clear();
    return {};
  }
  bool carries_some = false;
  const auto see = [&](const std::vector<const char *> &types) {
    carries_some = true;
    for (const char *type : types)
      if (type && seen_.size() < kMostTypes) seen_.insert(type);
    return false;
  };
  gpointer state = nullptr;
  while (const GstMeta *meta =
             gst_buffer_iterate_meta_filtered(buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
    see({g_quark_to_string(reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta)->roi_type)});
  RoiList none;
  std::string trouble;
  add_analytics(buffer, {true, see}, &none, &trouble);
  if (!carries_some) return {};
  if (!first_ || now < *first_) first_ = now;
  return static_cast<guint64>(now) - static_cast<guint64>(*first_) >= 5 * GST_SECOND ? sentence() : std::string();
}

std::string RoiTypeWatch::end() const {
  return matched_ || !first_ ? std::string() : sentence();
}

std::string RoiTypeWatch::sentence() const {
  std::string types;
  for (const std::string &type : seen_) types += (types.empty() ? "" : ", ") + type;
  return "roi-type=" + wanted_ + " matches none of the regions that come with frames; their types are " +
         (types.empty() ? "not known" : types);
}

}  // namespace cudaconv::gst
