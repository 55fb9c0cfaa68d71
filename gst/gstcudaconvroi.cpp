// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvroi.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gstcudaconvformat.h"
#include "plan/maskparser.h"
#include "plan/messages.h"
#include "plan/polygon.h"
#include "plan/region_rows.h"

namespace cudaconv::gst {

namespace {

std::vector<std::string> split_types(const std::string &text) {
  std::vector<std::string> types;
  g_auto(GStrv) words = g_strsplit(text.c_str(), ",", -1);
  for (gchar **word = words; *word; word++)
    if (*g_strstrip(*word)) types.emplace_back(*word);
  return types;
}

// Labels often come from files of other systems, with blanks or a carriage return at their ends.
std::string trimmed(const std::string &label) {
  g_autofree gchar *text = g_strdup(label.c_str());
  return g_strstrip(text);
}

// The text with its control characters as escapes.
std::string printable(const std::string &text) {
  std::string result;
  for (const char c : text) {
    g_autofree gchar *escaped = g_strescape(std::string(1, c).c_str(), "\"\\");
    result += g_ascii_iscntrl(c) ? escaped : std::string(1, c);
  }
  return result;
}

// Adds the regions in the metas of a buffer that are wanted. `trouble`: see add_analytics().
void add_metas(GstBuffer *buffer, const WantedLabels &wanted, RoiList *list, std::string *trouble) {
  gpointer state = nullptr;
  while (const GstMeta *meta =
             gst_buffer_iterate_meta_filtered(buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
    const auto *roi = reinterpret_cast<const GstVideoRegionOfInterestMeta *>(meta);
    const gchar *const type = g_quark_to_string(roi->roi_type);
    if (wanted.take(type ? Labels{type} : Labels())) list->region.push_back(region_of(*roi));
  }
  add_analytics(buffer, wanted, list, trouble);
}

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

FrameSize frame_size(const GstVideoInfo &info) {
  // Both fields have the same number of rows in GStreamer, even if the frame has an odd number.
  return {GST_VIDEO_INFO_WIDTH(&info), (has_fields(info) ? 2 : 1) * GST_VIDEO_INFO_FIELD_HEIGHT(&info)};
}

Region region_of(const GstVideoRegionOfInterestMeta &meta) {
  const auto limited = [](guint v) { return static_cast<int>(std::min<guint>(v, G_MAXINT)); };
  return {static_cast<int>(meta.x), static_cast<int>(meta.y), limited(meta.w), limited(meta.h)};
}

PicturePlace picture_place(GstBuffer *buffer, const GstVideoInfo &info) {
  const FrameSize picture = frame_size(info);
  const GstVideoCropMeta *crop = gst_buffer_get_video_crop_meta(buffer);
  const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
  const auto fits = [](gint64 at, int length, guint whole) { return at + length <= whole && whole <= G_MAXINT; };
  // A frame whose metas contradict its caps is refused later.
  if (!crop || !meta || !fits(crop->x, picture.width, meta->width) || !fits(crop->y, picture.height, meta->height))
    return {picture, picture, {}};
  return {{static_cast<int>(meta->width), static_cast<int>(meta->height)}, picture, {crop->x, crop->y}};
}

RoiSelector::RoiSelector(const RoiSettings &settings, const GstVideoInfo &info)
    : frame_(frame_size(info)),
      interlaced_(GST_VIDEO_INFO_IS_INTERLACED(&info)),
      meta_(settings.meta),
      grow_(settings.grow) {
  bool any = false;
  for (const std::string &type : split_types(settings.types)) {
    const bool excludes = type[0] == '!' || type[0] == '-';
    const size_t name = excludes ? type.find_first_not_of(" \t", 1) : 0;
    any |= type == "*";
    if (name != std::string::npos) (excludes ? but_ : only_).push_back(type.substr(name));
  }
  if (any) only_.clear();
  if (!settings.rectangles.empty()) {
    const std::vector<WrittenRegion> written = parse_regions(settings.rectangles);
    for (size_t i = 0; i < written.size(); i++) add_fixed(written[i], i + 1);
  }
  fixed_.active = meta_ || !settings.rectangles.empty();
  fixed_.ellipse = settings.shape == RoiShape::Ellipse;
  fixed_.invert = settings.invert;
  look_for_outside();
  fixed_.region = in_picture({fixed_.region, {}, false}).region;
  const auto is_empty = [](const auto &polygon) { return polygon->run.empty(); };
  fixed_.pixels.erase(std::remove_if(fixed_.pixels.begin(), fixed_.pixels.end(), is_empty), fixed_.pixels.end());
}

// Adds region `number` of the settings.
void RoiSelector::add_fixed(const WrittenRegion &written, size_t number) {
  std::vector<double> v;
  for (size_t i = 0; i < written.number.size(); i++) {
    const WrittenRegion::Number &n = written.number[i];
    constexpr double kFarthest = G_MAXINT;  // pixels
    v.push_back(std::clamp(n.percent ? n.value * (i % 2 ? frame_.height : frame_.width) / 100 : n.value, -kFarthest,
                           kFarthest));
  }
  if (!written.is_polygon()) {
    if ((v[2] < 1 && !written.number[2].percent) || (v[3] < 1 && !written.number[3].percent))
      complaint_ = "roi: region " + std::to_string(number) +
                   " is less than a pixel wide or high; parts of the picture are percentages, such as 25%";
    fixed_.region.push_back(rectangle_around(v[0], v[1], v[0] + v[2], v[1] + v[3]));
    return;
  }
  std::vector<Point> points;
  for (size_t i = 0; i < v.size(); i += 2) points.push_back({v[i], v[i + 1]});
  fixed_.pixels.push_back(polygon_pixels(points, grow_, frame_.width, frame_.height));
}

// Complains if all regions of the settings lie outside the picture.
void RoiSelector::look_for_outside() {
  const std::vector<Region> &all = fixed_.region;
  if ((all.empty() && fixed_.pixels.empty()) || meta_ || fixed_.invert) return;
  if (!in_picture({all, {}, false}).empty()) return;
  for (const auto &polygon : fixed_.pixels)
    if (!polygon->run.empty()) return;
  const Region &r = all.empty() ? fixed_.pixels[0]->box : all[0];
  complaint_ = std::string("nothing is filtered: all ") + (fixed_.pixels.empty() ? "rectangles" : "regions") +
               " of roi, such as " + std::string(all.empty() ? "the polygon within " : "") + std::to_string(r.x) + "," +
               std::to_string(r.y) + "," + std::to_string(r.width) + "," + std::to_string(r.height) +
               ", lie outside the picture of " + std::to_string(frame_.width) + "x" + std::to_string(frame_.height) +
               (fixed_.pixels.empty() ? "" : " or have none of its pixels");
}

// Whether the settings select a region with these labels. roi-type cannot name a label with commas as a whole: one of
// its parts selects it, and only all of them exclude it.
bool RoiSelector::wants(const Labels &labels) const {
  const auto is_in = [](const std::vector<std::string> &types) {
    return [&types](const std::string &part) { return std::find(types.begin(), types.end(), part) != types.end(); };
  };
  bool selected = only_.empty(), excluded = false;
  for (const std::string &label : labels) {
    const std::vector<std::string> parts = split_types(label);
    selected |= std::any_of(parts.begin(), parts.end(), is_in(only_));
    excluded |= !parts.empty() && std::all_of(parts.begin(), parts.end(), is_in(but_));
  }
  return selected && !excluded;
}

RoiList RoiSelector::find(GstBuffer *buffer, std::string *trouble, RoiTypeCounts *types) const {
  RoiList list;
  if (!meta_) return list;
  const auto wanted = [&](const Labels &labels) { return wants(labels); };
  const auto count = [&](const Labels &labels) { (*types)[labels.empty() ? "" : trimmed(labels.front())]++; };
  add_metas(buffer, {!only_.empty(), wanted, count}, &list, trouble);
  list.everywhere |= fixed_.invert && !trouble->empty();  // what cannot be read is not known to be harmless
  return list;
}

// Regions outside the frame are dropped here: they would be rounded up to a pixel of a subsampled plane.
RoiList RoiSelector::in_picture(const RoiList &regions) const {
  RoiList list;
  list.everywhere = regions.everywhere;
  for (const Region &given : regions.region) {
    const Region region = grown(given, grow_);
    if (!is_outside(region, frame_)) list.region.push_back(region);
  }
  // Of an ellipse or a turned rectangle, the rectangle around it may reach into the picture alone. The pixel in its
  // middle is always a pixel of it.
  const auto has_pixel = [&](const Region &r) {
    const Region middle = {r.x + r.width / 2, r.y + r.height / 2, 1, 1};
    return interlaced_ || (!fixed_.ellipse && r.rotation == 0) || !is_outside(middle, frame_);
  };
  if (!list.region.empty() && std::none_of(list.region.begin(), list.region.end(), has_pixel)) {
    Regions shapes;
    shapes.ellipse = fixed_.ellipse;
    shapes.region.swap(list.region);
    if (have_pixels(shapes, frame_.width, frame_.height)) list.region.swap(shapes.region);
  }
  for (const auto &given : regions.mask) {
    auto mask = grow_ > 0 ? grown(*given, grow_, frame_) : given;
    if (mask && !is_outside(mask->mask, frame_)) list.mask.push_back(std::move(mask));
  }
  return list;
}

RoiSelection RoiSelector::select(const RoiList &found, GstBuffer *buffer, const GstVideoInfo &info) const {
  RoiSelection selection;
  selection.regions = fixed_;
  Regions &regions = selection.regions;
  if (has_fields(info)) {
    regions.first_row = GST_VIDEO_BUFFER_IS_BOTTOM_FIELD(buffer) ? 1 : 0;
    regions.row_step = 2;
  }
  if (found.everywhere) {
    regions.ellipse = false;
    regions.region.clear();
    regions.pixels.clear();
    if (!regions.invert) regions.region.push_back(grown(Region{0, 0, frame_.width, frame_.height}, grow_));
    return selection;
  }
  regions.region.insert(regions.region.end(), found.region.begin(), found.region.end());
  for (const auto &mask : found.mask) {
    regions.mask.push_back(mask->mask);
    selection.mask_side.push_back(mask->shorter_side);
  }
  return selection;
}

void move_regions(Regions *regions, int dx, int dy) {
  const auto move = [regions, dx, dy](Region *r) {
    const auto within = [](gint64 v) { return static_cast<int>(std::clamp<gint64>(v, G_MININT, G_MAXINT)); };
    r->x = within(gint64{r->x} + dx);
    r->y = within(gint64{r->y} + gint64{dy} * regions->row_step);
  };
  for (Region &r : regions->region) move(&r);
  for (RegionMask &m : regions->mask) move(&m.box);
  if (dx == 0 && dy == 0) return;
  for (auto &pixels : regions->pixels) {
    auto moved = std::make_shared<RegionPixels>(*pixels);
    move(&moved->box);
    moved->top += dy * regions->row_step;
    for (PixelRun &run : moved->run) run = {run.begin + dx, run.end + dx};
    pixels = std::move(moved);
  }
}

// ---- Types that match nothing ---------------------------------------------------------------------------------------

std::string RoiTypeWatch::look(GstBuffer *buffer, const RoiSettings &roi, const RoiList &found, int64_t now) {
  if (!roi.meta || roi.types != wanted_) {
    reset();
    wanted_ = roi.types;
  }
  if (!roi.meta || roi.types.empty()) return {};
  if (!found.empty()) {
    matched_ = true;
    first_.reset();
    seen_.clear();
    return {};
  }
  constexpr size_t kMostNamed = 8;  // types in one message
  bool carries_some = false;
  const auto see = [&](const Labels &labels) {
    carries_some = true;
    for (const std::string &label : labels)
      if (seen_.size() < kMostNamed) seen_.insert(printable(trimmed(label)));
    return false;
  };
  RoiList none;
  std::string trouble;
  add_metas(buffer, {true, see, [](const Labels &) {}}, &none, &trouble);
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

// ---- Counts ---------------------------------------------------------------------------------------------------------

void RoiCounts::reset() {
  std::lock_guard<std::mutex> guard(lock_);
  all_ = since_ = {};
  begin_.reset();
}

void RoiCounts::add_early() {
  std::lock_guard<std::mutex> guard(lock_);
  all_.early++;
  since_.early++;
}

void RoiCounts::add_frame(bool marked, guint64 regions, const RoiTypeCounts &types) {
  std::lock_guard<std::mutex> guard(lock_);
  for (Counts *counts : {&all_, &since_}) {
    (marked ? counts->marked : counts->unmarked)++;
    counts->regions += regions;
  }
  for (const auto &[type, count] : types) {
    std::string field = field_of(type);
    if (all_.types.size() >= kMostTypes && !all_.types.count(field)) field = kOtherTypes;
    all_.types[field] += count;
    since_.types[field] += count;
  }
}

void RoiCounts::write(const Counts &counts, GstStructure *structure) {
  g_autoptr(GstStructure) types = gst_structure_new_empty("types");
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
}

void RoiCounts::add_to(GstStructure *structure) const {
  std::lock_guard<std::mutex> guard(lock_);
  write(all_, structure);
}

void RoiCounts::restart_reports() {
  std::lock_guard<std::mutex> guard(lock_);
  since_ = {};
  begin_.reset();
}

GstStructure *RoiCounts::report(std::optional<int64_t> time, bool ended) {
  std::lock_guard<std::mutex> guard(lock_);
  if (!begin_) begin_ = time;
  const int64_t at = time.value_or(0), begin = begin_.value_or(at);  // backwards, the end comes first
  const guint64 passed = static_cast<guint64>(std::max(at, begin)) - static_cast<guint64>(std::min(at, begin));
  const bool due = time && passed >= GST_SECOND;
  if (!due && !ended) return nullptr;
  const std::optional<int64_t> from = std::exchange(begin_, time);
  if (ended && since_.marked + since_.unmarked == 0) return nullptr;
  GstStructure *structure = gst_structure_new_empty("cudaconv-regions");
  if (from && *from >= 0)
    gst_structure_set(structure, "stream-time", G_TYPE_UINT64, static_cast<guint64>(*from), nullptr);
  write(since_, structure);
  since_ = {};
  return structure;
}

}  // namespace cudaconv::gst
