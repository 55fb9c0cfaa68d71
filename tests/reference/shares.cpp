// SPDX-License-Identifier: LGPL-2.1-or-later
#include "shares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace cudaconv::reference {

namespace {

using Integer = __int128;

// The common area of a rectangle rotated about its centre and an upright rectangle: the sides of one cut the other.
double common_area(const Region &r, double left, double top, double right, double bottom) {
  using Point = std::pair<double, double>;
  const double w = r.width / 2.0, h = r.height / 2.0, c = std::cos(r.rotation), s = std::sin(r.rotation);
  std::vector<Point> polygon;
  for (const Point &corner : {Point{-w, -h}, Point{w, -h}, Point{w, h}, Point{-w, h}})
    polygon.emplace_back(r.x - left + w + corner.first * c - corner.second * s,
                         r.y - top + h + corner.first * s + corner.second * c);
  // Keeps the part of the polygon where distance(point) is not negative.
  const auto cut = [&](auto distance) {
    std::vector<Point> kept;
    for (size_t i = 0; i < polygon.size(); i++) {
      const Point &p = polygon[i], &q = polygon[(i + 1) % polygon.size()];
      const double dp = distance(p), dq = distance(q);
      if (dp >= 0) kept.push_back(p);
      if ((dp < 0) == (dq < 0)) continue;
      const double t = dp / (dp - dq);
      kept.emplace_back(p.first + t * (q.first - p.first), p.second + t * (q.second - p.second));
    }
    polygon = kept;
  };
  cut([&](const Point &p) { return p.first; });
  cut([&](const Point &p) { return right - left - p.first; });
  cut([&](const Point &p) { return p.second; });
  cut([&](const Point &p) { return bottom - top - p.second; });
  double area = 0;
  for (size_t i = 0; i < polygon.size(); i++) {
    const Point &p = polygon[i], &q = polygon[(i + 1) % polygon.size()];
    area += (p.first * q.second - q.first * p.second) / 2;
  }
  return std::abs(area);
}

// Whether a pixel of the frame is in a rotated region.
bool is_in_turned(const Region &r, bool ellipse, int64_t x, int64_t y) {
  const double left = static_cast<double>(x), top = static_cast<double>(y);
  // Touching a pixel by less than a millionth of it does not count.
  constexpr double kEdge = 1e-6;
  if (!ellipse) return common_area(r, left + kEdge, top + kEdge, left + 1 - kEdge, top + 1 - kEdge) > 1e-14;
  const double dx = left + 0.5 - (r.x + r.width / 2.0), dy = top + 0.5 - (r.y + r.height / 2.0);
  const double c = std::cos(r.rotation), s = std::sin(r.rotation);
  const double u = 2 * (dx * c + dy * s) / r.width, v = 2 * (dy * c - dx * s) / r.height;
  return u * u + v * v <= 1 + 1e-11;  // so that rounding does not take away centres on the edge
}

// The rows, or columns, of the frame that exist: first, first + step, ...
struct Line {
  int64_t first, step;

  // How many come before a row of the frame; may be negative.
  int64_t before(int64_t at) const {
    int64_t n = (at - first) / step;
    while (first + n * step < at) n++;
    while (first + (n - 1) * step >= at) n--;
    return n;
  }
};

// Whether pixel (x, y) of the frame is in an upright region. An ellipse is inscribed in the existing rows and columns
// of the region.
bool is_in_upright(const Region &r, bool ellipse, int64_t x, int64_t y, const Line &columns, const Line &rows) {
  const int64_t right = int64_t{r.x} + r.width, bottom = int64_t{r.y} + r.height;
  if (x < r.x || x >= right || y < r.y || y >= bottom) return false;
  if (!ellipse) return true;
  // Diameters, and distances from the centre, in half pixels.
  const Integer w = columns.before(right) - columns.before(r.x), h = rows.before(bottom) - rows.before(r.y);
  const Integer dx = 2 * Integer{columns.before(x)} + 1 - columns.before(r.x) - columns.before(right);
  const Integer dy = 2 * Integer{rows.before(y)} + 1 - rows.before(r.y) - rows.before(bottom);
  return dx * dx * h * h + dy * dy * w * w <= w * w * h * h;
}

bool is_member(const RegionMask &mask, int64_t x, int64_t y) {
  x -= mask.box.x;
  y -= mask.box.y;
  if (x < 0 || y < 0 || x >= mask.box.width || y >= mask.box.height) return false;
  const int column = static_cast<int>((static_cast<double>(x) + 0.5) * mask.width / mask.box.width);
  const int row = static_cast<int>((static_cast<double>(y) + 0.5) * mask.height / mask.box.height);
  return mask.member[static_cast<size_t>(row) * mask.width + column] != 0;
}

bool has_pixel(const RegionPixels &pixels, int64_t x, int64_t y) {
  if (y < pixels.top || y >= pixels.bottom()) return false;
  for (size_t i = pixels.first[y - pixels.top]; i < pixels.first[y - pixels.top + 1]; i++)
    if (x >= pixels.run[i].begin && x < pixels.run[i].end) return true;
  return false;
}

}  // namespace

std::vector<int> original_shares(const FeatherGrid &grid, const std::function<bool(int x, int y)> &in_region) {
  const size_t pixels = static_cast<size_t>(grid.columns) * grid.rows;
  std::vector<bool> inside(pixels);
  for (size_t i = 0; i < pixels; i++)
    inside[i] = in_region(static_cast<int>(i % grid.columns), static_cast<int>(i / grid.columns));
  // No pixel farther away fades.
  const int reach = static_cast<int>(std::ceil(grid.feather)) + 1;
  std::vector<int> shares;
  for (int y = 0; y < grid.rows; y++)
    for (int x = 0; x < grid.columns; x++) {
      long double share = 256;
      for (int j = std::max(y - reach, 0); j <= std::min(y + reach, grid.rows - 1); j++)
        for (int i = std::max(x - reach, 0); i <= std::min(x + reach, grid.columns - 1); i++) {
          if (!inside[static_cast<size_t>(j) * grid.columns + i]) continue;
          const long double dx = (i - x) * grid.step_x, dy = (j - y) * grid.step_y;
          share = std::min(share, 256 * std::sqrt(dx * dx + dy * dy) / (static_cast<long double>(grid.feather) + 1));
        }
      shares.push_back(static_cast<int>(std::floor(share)));
    }
  return shares;
}

int mixed(int filtered, int original, int share) {
  // Halves are rounded up.
  return static_cast<int>(std::floor((filtered * (256.0 - share) + original * 1.0 * share) / 256 + 0.5));
}

Shares shares_of(const Regions &regions, int columns, int rows, const PlaneLayout &plane, bool interlaced, int field) {
  if (!regions.active) return [](int, int) { return 0; };
  // Rows and columns count in the frame of the regions. The given frame may be a field of it, or every second column.
  const int step = (interlaced ? 2 : 1) * regions.row_step;
  const int first = regions.first_row + field * regions.row_step;
  const Line lines{first, step}, line{regions.first_column, regions.column_step};
  const auto is_in = [=, &regions](int64_t column, int64_t row) {
    for (const RegionMask &mask : regions.mask)
      if (is_member(mask, column, row)) return true;
    for (const auto &pixels : regions.pixels)
      if (has_pixel(*pixels, column, row)) return true;
    for (const Region &r : regions.region)
      if (r.width > 0 && r.height > 0 &&
          (r.rotation != 0 ? is_in_turned(r, regions.ellipse, column, row)
                           : is_in_upright(r, regions.ellipse, column, row, line, lines)))
        return true;
    return false;
  };
  const auto is_selected = [=, &regions](int column, int row) {
    return is_in(line.first + column * line.step, first + row * step) != regions.invert;
  };
  const int field_rows = interlaced ? (rows - field + 1) / 2 : rows, feather = regions.feather;
  std::vector<int> shares;
  if (feather)
    shares = original_shares({columns, field_rows, static_cast<int>(line.step), step, feather / 256.0}, is_selected);
  return [=](int x, int y) {
    int least = 256;
    for (int row = y << plane.sub_y; row < std::min((y + 1) << plane.sub_y, field_rows); row++)
      for (int column = x << plane.sub_x; column < std::min((x + 1) << plane.sub_x, columns); column++)
        if (feather)
          least = std::min(least, shares[static_cast<size_t>(row) * columns + column]);
        else if (is_selected(column, row))
          return 0;
    return least;
  };
}

Shares shares_of(const Regions &regions, int columns, int rows, const PlaneLayout &plane, bool interlaced) {
  if (!interlaced) return shares_of(regions, columns, rows, plane, false, 0);
  return [field = std::array{shares_of(regions, columns, rows, plane, true, 0),
                             shares_of(regions, columns, rows, plane, true, 1)}](int x, int y) {
    return field[y % 2](x, y / 2);
  };
}

}  // namespace cudaconv::reference
