// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/polygon.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "plan/rounding.h"
#include "plan/run_union.h"

namespace cudaconv {

namespace {

// Coordinates are integers, so that a centre is on the same side of an edge on every machine.
constexpr int64_t kPixel = 1 << 16, kCentre = kPixel / 2;
constexpr int64_t kFarthest = (1 << 30) - 1;  // limit of the sides of a box, beyond every frame
constexpr int64_t kMostGrowth = 1 << 15;      // pixels

using Wide = Int128;

struct Corner {
  int64_t x, y;
};

std::vector<Corner> corners_of(const std::vector<Point> &points) {
  std::vector<Corner> corners;
  for (const Point &p : points) corners.push_back({std::llround(p.x * kPixel), std::llround(p.y * kPixel)});
  return corners;
}

// The outline of a polygon, row by row, as far as columns from `first` to `last`.
class Outline {
 public:
  Outline(const std::vector<Corner> &corners, int64_t first, int64_t last)
      : first_(first), last_(last), crossed_((last - first) / 64 + 1) {
    for (size_t i = 0; i < corners.size(); i++) {
      const Corner &a = corners[i], &b = corners[(i + 1) % corners.size()];
      // An edge covers the rows whose centres c are in a.y <= c < b.y.
      const Edge edge = a.y < b.y ? Edge{a, b} : Edge{b, a};
      if (edge.first_row() < edge.end_row()) edges_.push_back(edge);
    }
    std::sort(edges_.begin(), edges_.end(), [](const Edge &a, const Edge &b) { return a.first_row() < b.first_row(); });
  }

  // Calls f(begin, end) for the pixels of row y between each pair of edges. Call it for rows in rising order.
  template <typename F>
  void for_each_run(int64_t y, F f) {
    while (next_ < edges_.size() && edges_[next_].first_row() <= y) here_.push_back(edges_[next_++]);
    here_.erase(std::remove_if(here_.begin(), here_.end(), [&](const Edge &e) { return e.end_row() <= y; }),
                here_.end());
    // Two edges that cross the row at one place enclose nothing there.
    for (const Edge &edge : here_) {
      const int64_t x = std::clamp(edge.first_pixel(y), first_, last_) - first_;
      crossed_[x / 64] ^= uint64_t{1} << x % 64;
    }
    int64_t begin = 0;
    bool inside = false;
    for (size_t i = 0; i < crossed_.size(); i++)
      for (uint64_t &left = crossed_[i]; left; left &= left - 1, inside = !inside) {
        const int64_t x = first_ + static_cast<int64_t>(i) * 64 + __builtin_ctzll(left);
        if (inside)
          f(begin, x);
        else
          begin = x;
      }
  }

 private:
  struct Edge {
    Corner top, bottom;

    int64_t first_row() const { return ceil_div(top.y - kCentre, kPixel); }
    int64_t end_row() const { return ceil_div(bottom.y - kCentre, kPixel); }
    // The first pixel of row y whose centre is on the edge or to the right of it.
    int64_t first_pixel(int64_t y) const {
      const Wide height = bottom.y - top.y, down = y * kPixel + kCentre - top.y;
      return ceil_div((top.x - kCentre) * height + down * (bottom.x - top.x), height * kPixel);
    }
  };

  const int64_t first_, last_;
  std::vector<Edge> edges_, here_;
  std::vector<uint64_t> crossed_;  // a bit for each column at which an odd number of edges cross the row
  size_t next_ = 0;
};

}  // namespace

bool are_on_a_line(const std::vector<Point> &points) {
  const std::vector<Corner> corners = corners_of(points);
  const Corner &a = corners[0];
  const auto b =
      std::find_if(corners.begin(), corners.end(), [&](const Corner &c) { return c.x != a.x || c.y != a.y; });
  return std::all_of(b, corners.end(),
                     [&](const Corner &c) { return Wide{b->x - a.x} * (c.y - a.y) == Wide{b->y - a.y} * (c.x - a.x); });
}

std::shared_ptr<const RegionPixels> polygon_pixels(const std::vector<Point> &points, double grow, int width, int height,
                                                   const Cancellation &cancellation) {
  std::vector<Corner> corners = corners_of(points);
  int64_t x0 = kFarthest, y0 = kFarthest, x1 = -kFarthest, y1 = -kFarthest;
  for (const Corner &c : corners) {
    x0 = std::min(x0, floor_div(c.x, kPixel));
    y0 = std::min(y0, floor_div(c.y, kPixel));
    x1 = std::max(x1, ceil_div(c.x, kPixel));
    y1 = std::max(y1, ceil_div(c.y, kPixel));
  }
  const auto growth = [&](int64_t side) { return static_cast<int64_t>(std::ceil(grow * static_cast<double>(side))); };
  int64_t dx = growth(x1 - x0), dy = growth(y1 - y0);
  const auto limited = [](int64_t v) { return std::clamp(v, -kFarthest, kFarthest); };
  x0 = limited(x0 - dx), x1 = limited(x1 + dx), y0 = limited(y0 - dy), y1 = limited(y1 + dy);
  if (std::max(dx, dy) > kMostGrowth) {
    dx = dy = 0;
    corners = {
        {x0 * kPixel, y0 * kPixel}, {x1 * kPixel, y0 * kPixel}, {x1 * kPixel, y1 * kPixel}, {x0 * kPixel, y1 * kPixel}};
  }

  auto result = std::make_shared<RegionPixels>();
  result->box = {static_cast<int>(x0), static_cast<int>(y0), static_cast<int>(x1 - x0), static_cast<int>(y1 - y0)};
  const auto clip = [](int64_t v, int end) { return static_cast<int32_t>(std::clamp<int64_t>(v, 0, end)); };
  result->top = clip(y0, height);
  const int bottom = clip(y1, height);
  // A pixel grows to the rectangle around it; a row takes the runs of all rows of `near`.
  Outline outline(corners, -dx, width + dx);
  RunUnion row(width);
  std::deque<std::vector<PixelRun>> near;
  for (int64_t y = result->top - dy; y < bottom + dy; y++) {
    cancellation.check();
    near.emplace_back();
    outline.for_each_run(y, [&](int64_t begin, int64_t end) {
      near.back().push_back({clip(begin - dx, width), clip(end + dx, width)});
      row.add(near.back().back());
    });
    if (static_cast<int64_t>(near.size()) > 2 * dy + 1) {
      for (const PixelRun &run : near.front()) row.remove(run);
      near.pop_front();
    }
    if (y - dy < result->top) continue;
    row.list(&result->run);
    result->first.push_back(result->run.size());
  }
  return result;
}

}  // namespace cudaconv
