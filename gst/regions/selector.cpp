// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regions/selector.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>

#include "plan/region_rows.h"

namespace cudaconv::gst {

RoiSelector::RoiSelector(const RoiSettings &settings, FrameSize frame, bool alternates)
    : types_(settings.types), frame_(frame), alternates_(alternates), meta_(settings.meta), grow_(settings.grow) {
  if (!settings.rectangles.empty()) {
    const std::vector<WrittenRegion> written = parse_regions(settings.rectangles);
    for (size_t i = 0; i < written.size(); i++) add_fixed(written[i], i + 1);
  }
  fixed_.active = meta_ || !settings.rectangles.empty();
  fixed_.ellipse = settings.shape == RoiShape::Ellipse;
  fixed_.invert = settings.invert;
  fixed_.feather = static_cast<int>(std::lround(settings.feather * 256));
}

// Adds region `number` of the settings.
void RoiSelector::add_fixed(const WrittenRegion &written, size_t number) {
  std::vector<double> v;
  for (size_t i = 0; i < written.number.size(); i++) {
    const WrittenRegion::Number &n = written.number[i];
    constexpr double kFarthest = INT_MAX;  // pixels
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
  std::vector<Point> &points = polygons_.emplace_back();
  for (size_t i = 0; i < v.size(); i += 2) points.push_back({v[i], v[i + 1]});
}

// Returns the complaint about regions of the settings that all lie outside the picture.
static std::string complaint_of_outside(const std::vector<Region> &rectangles,
                                        const std::vector<std::shared_ptr<const RegionPixels>> &polygons,
                                        FrameSize frame) {
  const Region &r = rectangles.empty() ? polygons[0]->box : rectangles[0];
  return std::string("nothing is filtered: all ") + (polygons.empty() ? "rectangles" : "regions") +
         " of roi, such as " + (rectangles.empty() ? "the polygon within " : "") + std::to_string(r.x) + "," +
         std::to_string(r.y) + "," + std::to_string(r.width) + "," + std::to_string(r.height) +
         ", lie outside the picture of " + std::to_string(frame.width) + "x" + std::to_string(frame.height) +
         (polygons.empty() ? "" : " or have none of its pixels");
}

// Makes the pixels of polygons, which takes long where they have many points. Complains if all regions of the settings
// lie outside the picture.
void RoiSelector::complete(const Cancellation &cancellation) const {
  if (complete_) return;
  std::vector<std::shared_ptr<const RegionPixels>> pixels;
  for (const std::vector<Point> &points : polygons_)
    pixels.push_back(polygon_pixels(points, grow_, frame_.width, frame_.height, cancellation));
  std::vector<Region> inside = fixed_.region;
  keep_those_in_picture(&inside);
  auto seen = pixels;
  const auto is_empty = [](const auto &polygon) { return polygon->run.empty(); };
  seen.erase(std::remove_if(seen.begin(), seen.end(), is_empty), seen.end());
  if (inside.empty() && seen.empty() && !(fixed_.region.empty() && pixels.empty()) && !meta_ && !fixed_.invert)
    complaint_ = complaint_of_outside(fixed_.region, pixels, frame_);
  fixed_.region.swap(inside);
  fixed_.pixels.swap(seen);
  complete_ = true;
}

// Enlarges the regions by roi-grow, and drops those that have no pixel in the picture: they would be rounded up to a
// pixel of a subsampled plane.
void RoiSelector::keep_those_in_picture(std::vector<Region> *regions) const {
  std::vector<Region> kept;
  for (const Region &given : *regions) {
    const Region region = grown(given, grow_);
    if (!is_outside(region, frame_)) kept.push_back(region);
  }
  // Of an ellipse or a turned rectangle, the rectangle around it may reach into the picture alone. The pixel in its
  // middle is always a pixel of it.
  const auto has_pixel = [&](const Region &r) {
    const Region middle = {r.x + r.width / 2, r.y + r.height / 2, 1, 1};
    return alternates_ || (!fixed_.ellipse && r.rotation == 0) || !is_outside(middle, frame_);
  };
  if (!kept.empty() && std::none_of(kept.begin(), kept.end(), has_pixel)) {
    Regions shapes;
    shapes.ellipse = fixed_.ellipse;
    shapes.region.swap(kept);
    if (have_pixels(shapes, frame_.width, frame_.height)) kept.swap(shapes.region);
  }
  regions->swap(kept);
}

RoiSelection RoiSelector::select(const RoiList &found, int first_row, int row_step,
                                 const Cancellation &cancellation) const {
  complete(cancellation);
  RoiSelection selection;
  selection.regions = fixed_;
  Regions &regions = selection.regions;
  regions.first_row = first_row;
  regions.row_step = row_step;
  if (found.everywhere) {
    regions.ellipse = false;
    regions.region.clear();
    regions.pixels.clear();
    if (!regions.invert) regions.region.push_back(grown(Region{0, 0, frame_.width, frame_.height}, grow_));
    return selection;
  }
  std::vector<Region> detected;
  for (const DetectedRegion &one : found.region)
    detected.push_back(regions.invert    ? for_invert(one, regions.ellipse)
                       : regions.ellipse ? for_ellipse(one)
                                         : one.region);
  keep_those_in_picture(&detected);
  regions.region.insert(regions.region.end(), detected.begin(), detected.end());
  for (const auto &given : found.mask) {
    if (regions.invert && given->cover != Cover::Exact) continue;  // it would show more than was detected
    const auto mask = grow_ > 0 ? grown(*given, grow_, frame_) : given;
    if (!mask || is_outside(mask->mask, {0, 0, frame_.width, frame_.height})) continue;
    regions.mask.push_back(mask->mask);
    selection.mask_side.push_back(mask->shorter_side);
  }
  return selection;
}

bool is_outside(const RoiList &regions, FrameSize frame) {
  const auto has_pixel = [&](const auto &found) { return !is_outside(found->mask, {0, 0, frame.width, frame.height}); };
  if (regions.everywhere || std::any_of(regions.mask.begin(), regions.mask.end(), has_pixel)) return false;
  Regions turned;  // the rectangle around one may reach into the frame alone
  for (const DetectedRegion &found : regions.region) {
    if (is_outside(found.region, frame)) continue;
    if (found.region.rotation == 0) return false;
    turned.region.push_back(found.region);
  }
  return turned.region.empty() || !have_pixels(turned, frame.width, frame.height);
}

void move_regions(Regions *regions, int dx, int dy) {
  if (dx == 0 && dy == 0) return;
  const Pixel by = {dx, int64_t{dy} * regions->row_step};
  for (Region &r : regions->region) r = moved(r, by);
  for (RegionMask &m : regions->mask) m.box = moved(m.box, by);
  for (auto &pixels : regions->pixels) {
    auto copy = std::make_shared<RegionPixels>(*pixels);
    copy->box = moved(copy->box, by);
    copy->top += dy * regions->row_step;
    for (PixelRun &run : copy->run) run = {run.begin + dx, run.end + dx};
    pixels = std::move(copy);
  }
}

}  // namespace cudaconv::gst
