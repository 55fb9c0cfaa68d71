// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroimetas.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "gstcudaconvformat.h"
#include "gstroiholdmeta.h"

namespace cudaconv::gst {

namespace {

constexpr char kWholeFrame[] = "whole-frame";  // the type, and the name of a parameter, of a meta of all of a frame

// The name of a parameter of a meta that stands for a detection. Its fields: the labels of the detection, and whether
// the analytics meta that has the detection is on the frame too.
constexpr char kDetection[] = "analytics-detection", kLabels[] = "labels", kRepeats[] = "repeats";

// Escapes control characters, and all but ASCII in a text that is not UTF-8.
std::string printable(const std::string &text) {
  std::string as_it_is = "\"\\";
  if (g_utf8_validate(text.c_str(), -1, nullptr))
    for (int c = 0x80; c <= 0xff; c++) as_it_is += static_cast<char>(c);
  g_autofree gchar *escaped = g_strescape(text.c_str(), as_it_is.c_str());
  return escaped;
}

Labels labels_of(const Detected &found) {
  return found.labels ? *found.labels : Labels();
}

void describe(GstVideoRegionOfInterestMeta *meta, const Detected &found, bool repeats) {
  const Labels labels = labels_of(found);
  if (labels.size() < 2 && !repeats) return;
  std::vector<const char *> texts;
  for (const std::string &label : labels) texts.push_back(label.c_str());
  texts.push_back(nullptr);
  gst_video_region_of_interest_meta_add_param(meta, gst_structure_new(kDetection, kLabels, G_TYPE_STRV, texts.data(),
                                                                      kRepeats, G_TYPE_BOOLEAN, repeats, nullptr));
}

// The type of a meta, and the other labels of the detection that it stands for.
Labels labels_of(const GstVideoRegionOfInterestMeta &meta, const GstStructure *detection) {
  const gchar *const type = g_quark_to_string(meta.roi_type);
  Labels labels = type ? Labels{type} : Labels();
  g_auto(GStrv) texts = nullptr;
  if (detection) gst_structure_get(detection, kLabels, G_TYPE_STRV, &texts, nullptr);
  for (guint i = 1; texts && texts[0] && texts[i]; i++) labels.push_back(texts[i]);
  return labels;
}

// Adds the regions of a roihold that are wanted. A region that was joined of several types always is.
void add_held(const RoiList &held, const WantedLabels &wanted, RoiList *list) {
  const auto takes = [&](const Detected &found, bool counts) {
    if (found.labels && !wanted.wants(*found.labels, false)) return false;
    if (counts) wanted.count(labels_of(found));
    return true;
  };
  std::copy_if(held.region.begin(), held.region.end(), std::back_inserter(list->region),
               [&](const auto &found) { return takes(found, !found.repeats); });
  std::copy_if(held.mask.begin(), held.mask.end(), std::back_inserter(list->mask),
               [&](const auto &mask) { return takes(*mask, true); });
  list->everywhere |= held.everywhere;
}

// Adds the regions that are wanted in the metas that a roihold has seen, or in all others. `held`: its regions, nullptr
// where there is none. `trouble`: see add_analytics().
void add_metas(GstBuffer *buffer, const PicturePlace &place, const RegionsInForce *held, bool seen,
               const WantedLabels &wanted, RoiList *list, std::string *trouble) {
  bool is_seen = held && !held->mixed;
  gpointer state = nullptr;
  while (GstMeta *meta = gst_buffer_iterate_meta(buffer, &state)) {
    if (meta->info->api == held_regions_api()) is_seen = false;  // it has seen those before its own
    if (is_seen != seen || meta->info->api != GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) continue;
    auto *roi = reinterpret_cast<GstVideoRegionOfInterestMeta *>(meta);
    if (gst_video_region_of_interest_meta_get_param(roi, kWholeFrame)) {
      list->everywhere = true;
      continue;
    }
    const GstStructure *const detection = gst_video_region_of_interest_meta_get_param(roi, kDetection);
    const Labels labels = labels_of(*roi, detection);
    if (!wanted.wants(labels, false)) continue;
    list->add(region_of(*roi), labels, roi->id);
    gboolean repeats = FALSE;
    if (detection) gst_structure_get_boolean(detection, kRepeats, &repeats);
    list->region.back().repeats = repeats && has_meta(buffer, kAnalyticsApi);
    if (!list->region.back().repeats) wanted.count(labels);
  }
  add_analytics(buffer, place, wanted, {seen_analytics(buffer, held), seen}, list, trouble);
}

constexpr size_t kMostTypes = 100;

// A field name for a type: characters of ASCII that GStreamer cannot read back from text become "_".
std::string field_of(const std::string &type) {
  if (type.empty()) return "_";
  std::string name = type;
  const bool readable = g_utf8_validate(type.c_str(), -1, nullptr);
  for (char &c : name)
    if (!g_ascii_isalnum(c) && !std::strchr("_-+/:.", c) && !(readable && (c & 0x80))) c = '_';
  return name;
}

}  // namespace

// Both fields have the same number of rows in GStreamer, even if the frame has an odd number.
static int rows_of(const GstVideoInfo &info, guint height) {
  return static_cast<int>(has_fields(info) ? GST_ROUND_UP_2(height) : height);
}

FrameSize frame_size(const GstVideoInfo &info) {
  return {GST_VIDEO_INFO_WIDTH(&info), rows_of(info, static_cast<guint>(GST_VIDEO_INFO_HEIGHT(&info)))};
}

PicturePlace picture_place(GstBuffer *buffer, const GstVideoInfo &info) {
  const FrameSize picture = frame_size(info);
  const GstVideoCropMeta *crop = gst_buffer_get_video_crop_meta(buffer);
  const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
  // A frame whose metas contradict its caps is refused later. A meta may give any size up to the largest guint.
  const guint width = meta ? std::min<guint>(meta->width, G_MAXINT - 1) : 0;
  const guint height = meta ? std::min<guint>(meta->height, G_MAXINT - 1) : 0;
  if (!crop || gint64{crop->x} + GST_VIDEO_INFO_WIDTH(&info) > width ||
      gint64{crop->y} + GST_VIDEO_INFO_HEIGHT(&info) > height)
    return {picture, picture, {}};
  return {{static_cast<int>(width), rows_of(info, height)}, picture, {crop->x, crop->y}};
}

RoiList moved_to_picture(RoiList regions, const PicturePlace &place, const GstVideoInfo &info) {
  const GstVideoMultiviewMode views = GST_VIDEO_INFO_MULTIVIEW_MODE(&info);
  const bool columns = views == GST_VIDEO_MULTIVIEW_MODE_COLUMN_INTERLEAVED,
             rows = views == GST_VIDEO_MULTIVIEW_MODE_ROW_INTERLEAVED || GST_VIDEO_INFO_IS_INTERLACED(&info);
  // How far subsampled samples are off their pixels: to the right and below. Where rows or columns alternate, also to
  // the left and above, since only the first pixels of a sample at an edge are in the picture.
  Pixel off, before;
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); c++) {
    const guint across = GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, c), down = GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, c);
    if (across) off.x = std::max(off.x, place.corner.x % (int64_t{columns ? 2 : 1} << across));
    if (down) off.y = std::max(off.y, place.corner.y % (int64_t{rows ? 2 : 1} << down));
    if (columns && off.x) before.x = std::max(before.x, (int64_t{2} << across) - 2);
    if (rows && off.y && !has_fields(info)) before.y = std::max(before.y, (int64_t{2} << down) - 2);
  }
  // If the row of the corner is odd, rows of the top field count as rows of the bottom field, and the reverse.
  if (has_fields(info) && place.corner.y % 2) {
    off.y = std::max<int64_t>(off.y, 1);
    before.y = std::max<int64_t>(before.y, 1);
  }
  return widened(moved(std::move(regions), Pixel{} - place.corner - before), {off.x + before.x, off.y + before.y},
                 place.picture);
}

Region region_of(const GstVideoRegionOfInterestMeta &meta) {
  // A region begins at most 2^30 pixels before the picture, so that its size fits.
  const auto start = [](guint at) { return std::max(static_cast<int>(at), -(1 << 30)); };
  const auto length = [&](guint at, guint size) { return to_int(gint64{static_cast<int>(at)} + size - start(at)); };
  return {start(meta.x), start(meta.y), length(meta.x, meta.w), length(meta.y, meta.h)};
}

GstVideoRegionOfInterestMeta *add_roi_meta(GstBuffer *buffer, GQuark type, const Region &given) {
  const Region region = upright(given);
  const gint64 left = std::max(region.x, 0), top = std::max(region.y, 0);
  const gint64 width = gint64{region.x} + region.width - left, height = gint64{region.y} + region.height - top;
  if (width <= 0 || height <= 0) return nullptr;
  return gst_buffer_add_video_region_of_interest_meta_id(buffer, type, static_cast<guint>(left),
                                                         static_cast<guint>(top), static_cast<guint>(width),
                                                         static_cast<guint>(height));
}

void add_roi_metas(GstBuffer *buffer, const RoiList &regions, size_t first_region, size_t first_mask, FrameSize frame,
                   bool repeat) {
  const auto add = [&](const Detected &found, const Region &region) {
    const std::string type = type_of(found);
    auto *meta = add_roi_meta(buffer, type.empty() ? 0 : g_quark_from_string(type.c_str()), region);
    if (!meta) return;
    meta->id = static_cast<gint>(found.id);
    describe(meta, found, repeat);
  };
  const Region all = {0, 0, frame.width, frame.height};
  auto *const whole = regions.everywhere ? add_roi_meta(buffer, g_quark_from_static_string(kWholeFrame), all) : nullptr;
  if (whole) gst_video_region_of_interest_meta_add_param(whole, gst_structure_new_empty(kWholeFrame));
  for (size_t i = first_region; i < regions.region.size(); i++) add(regions.region[i], regions.region[i].region);
  for (size_t i = first_mask; i < regions.mask.size(); i++) add(*regions.mask[i], regions.mask[i]->mask.box);
}

void RoiCounts::add(guint64 regions, const RoiTypeCounts &types) {
  regions_ += regions;
  for (const auto &[type, count] : types) {
    std::string field = field_of(type);
    if (types_.size() >= kMostTypes && !types_.count(field)) field = "other";
    types_[field] += count;
  }
}

void RoiCounts::write(GstStructure *structure) const {
  g_autoptr(GstStructure) types = gst_structure_new_empty("types");
  for (const auto &[type, count] : types_) gst_structure_set(types, type.c_str(), G_TYPE_UINT64, count, nullptr);
  gst_structure_set(structure, "regions", G_TYPE_UINT64, regions_, "regions-by-type", GST_TYPE_STRUCTURE, types,
                    nullptr);
}

RoiList RoiMetaReader::select(GstBuffer *buffer, const PicturePlace &place, const WantedLabels &wanted,
                              std::string *trouble) const {
  RoiList list;
  const RegionsInForce *const held = get_held_regions(buffer);
  gpointer state = nullptr;
  while (const GstMeta *meta = gst_buffer_iterate_meta_filtered(buffer, &state, held_regions_api()))
    add_held(held_regions(meta).regions, wanted, &list);
  add_metas(buffer, place, held, false, wanted, &list, trouble);
  if (!held || beside_ == Beside::kOthers) return list;
  const TypeFilter taken(held->types);
  const auto left_out = [&](const Labels &labels, bool background) {
    return !taken.wants(labels, background) && wanted.wants(labels, background);
  };
  add_metas(buffer, place, held, true, {left_out, wanted.count}, &list, trouble);
  return list;
}

RoiList RoiMetaReader::read_again(GstBuffer *buffer, const PicturePlace &place, const TypeFilter &types,
                                  RoiTypeCounts *counts, std::vector<Labels> *others) {
  std::string trouble;
  const auto wants = [&](const Labels &labels, bool background) {
    const bool wanted = types.wants(labels, background);
    if (!wanted && others && (!background || types.names_some())) others->push_back(labels);
    return wanted;
  };
  const auto count = [&](const Labels &labels) { (*counts)[labels.empty() ? "" : trimmed(labels.front())]++; };
  RoiList list = select(buffer, place, {wants, count}, &trouble);
  if (!trouble.empty()) messages_.warn_once("metas", trouble);
  return list;
}

RoiList RoiMetaReader::read(GstBuffer *buffer, const PicturePlace &place, const TypeFilter &types, int64_t now,
                            RoiTypeCounts *counts) {
  if (types.text() != wanted_) {
    start();
    wanted_ = types.text();
  }
  std::vector<Labels> others;
  RoiList found = read_again(buffer, place, types, counts, &others);
  watch(!found.empty(), others, now);
  return found;
}

// ---- Types that match nothing ---------------------------------------------------------------------------------------

void RoiMetaReader::start() {
  wanted_.clear();
  matched_ = false;
  seen_.clear();
  first_.reset();
}

// `others`: the labels of regions that are not wanted.
void RoiMetaReader::watch(bool some, const std::vector<Labels> &others, int64_t now) {
  if (some) {
    matched_ = true;
    first_.reset();
    seen_.clear();
  }
  if (some || others.empty()) return;
  constexpr size_t kMostNamed = 8;  // types in one message
  for (const Labels &labels : others)
    for (const std::string &label : labels)
      if (!label.empty() && seen_.size() < kMostNamed) seen_.insert(printable(trimmed(label)));
  if (!first_ || now < *first_) first_ = now;
  if (static_cast<guint64>(now) - static_cast<guint64>(*first_) >= 5 * GST_SECOND) warn();
}

void RoiMetaReader::look_at_event(const GstEvent *event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP || GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) first_.reset();
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS && !matched_ && first_) warn();
}

void RoiMetaReader::warn() {
  std::string types;
  for (const std::string &type : seen_) types += (types.empty() ? "" : ", ") + type;
  messages_.warn_once("matches", std::string(property_) + "=" + wanted_ +
                                     " matches none of the regions that come with frames; their types are " +
                                     (types.empty() ? "not known" : types));
}

}  // namespace cudaconv::gst
