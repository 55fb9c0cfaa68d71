// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/region_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "plan/run_union.h"

namespace cudaconv {

namespace {

// Sorts the numbers 0 ... count - 1 by row, 0 ... rows - 1. Row y has index[begin[y]] ... index[begin[y + 1] - 1].
struct ByRow {
  template <typename RowOf>
  ByRow(size_t count, int rows, RowOf row_of) : begin(rows + 2), index(count) {
    for (size_t i = 0; i < count; i++) begin[row_of(i) + 2]++;
    for (int y = 0; y < rows; y++) begin[y + 2] += begin[y + 1];
    for (size_t i = 0; i < count; i++) index[begin[row_of(i) + 1]++] = i;
  }
  template <typename F>
  void for_each(int y, F f) const {
    for (size_t i = begin[y]; i < begin[y + 1]; i++) f(index[i]);
  }
  bool has_any(int y) const { return begin[y] != begin[y + 1]; }

  std::vector<size_t> begin, index;
};

// The pixels [begin, end) of row `row`, 0 to height-1, of a width x height region whose centres are in the inscribed
// ellipse. Sides are at most 2^31. `Square`: an integer type that holds (width*height)^2.
struct Columns {
  int64_t begin, end;
};
template <typename Square>
Columns ellipse_row_in(int64_t width, int64_t height, int64_t row) {
  // The test is (dx/w)^2 + (dy/h)^2 <= 1, with distances from the centre doubled, times (w*h)^2.
  const int64_t dy = 2 * row + 1 - height;
  const auto square = [](int64_t v) { return static_cast<Square>(v) * v; };
  const Square room = square(width * height) - square(dy * width);
  const auto inside = [&](int64_t x) { return square((2 * x + 1 - width) * height) <= room; };
  // Estimates one end, up to rounding errors, and corrects it. The other end is its mirror image.
  const double reach = std::sqrt(static_cast<double>(room)) / static_cast<double>(height);
  const int64_t middle = (width + 1) / 2;
  int64_t begin = std::clamp<int64_t>(static_cast<int64_t>((static_cast<double>(width) - reach) / 2), 0, middle);
  while (begin > 0 && inside(begin - 1)) begin--;
  while (begin < middle && !inside(begin)) begin++;
  return {begin, std::max(begin, width - begin)};
}

Columns ellipse_row(int64_t width, int64_t height, int64_t row) {
  constexpr int64_t kLongest = (1 << 15) - 1;  // longest side for which (width*height)^2 fits 64 bits
  if (std::max(width, height) <= kLongest) return ellipse_row_in<int64_t>(width, height, row);
  return ellipse_row_in<__int128>(width, height, row);
}

// The pixels of a field, or of a frame without fields, and the position of its rows in the frame in which coordinates
// of regions count.
struct Field {
  Field(const Regions &regions, const Plan &plan, const Plan::Part &part)
      : columns(static_cast<int>(plan.layout.width())),
        rows(static_cast<int>(ceil_div(plan.layout.height() - part.first_row, part.row_step))),
        first_row(regions.first_row + int64_t{regions.row_step} * part.first_row),
        row_step(int64_t{regions.row_step} * part.row_step) {}

  int64_t frame_row(int64_t y) const { return first_row + y * row_step; }
  // The first row of the field at or below a row of the frame. It may be outside the field.
  int64_t row_from(int64_t frame_row) const { return ceil_div(frame_row - first_row, row_step); }
  int32_t clip(int64_t x) const { return static_cast<int32_t>(std::clamp<int64_t>(x, 0, columns)); }

  int columns, rows;
  int64_t first_row, row_step;
};

// A region that is not rotated, in pixels of the field: a rectangle clipped to the field, or a whole ellipse.
struct Upright {
  int64_t x0, x1, top, bottom;
};

// The regions that are not rotated and hold a pixel of the field.
std::vector<Upright> upright_regions(const Regions &regions, const Field &field) {
  std::vector<Upright> result;
  for (const Region &r : regions.region) {
    if (r.rotation != 0) continue;
    const Upright whole = {r.x, int64_t{r.x} + r.width, field.row_from(r.y), field.row_from(int64_t{r.y} + r.height)};
    const auto row = [&](int64_t y) { return std::clamp<int64_t>(y, 0, field.rows); };
    const Upright clipped = {field.clip(whole.x0), field.clip(whole.x1), row(whole.top), row(whole.bottom)};
    if (clipped.x0 < clipped.x1 && clipped.top < clipped.bottom) result.push_back(regions.ellipse ? whole : clipped);
  }
  return result;
}

// A region that is rotated about its centre: a rectangle or the ellipse inscribed in it.
class TurnedRegion {
 public:
  TurnedRegion(const Region &region, bool ellipse, const Field &field)
      : field_(field),
        ellipse_(ellipse),
        half_width_(region.width / 2.0),
        half_height_(region.height / 2.0),
        x_(region.x + half_width_),
        y_(region.y + half_height_),
        cos_(std::cos(region.rotation)),
        sin_(std::sin(region.rotation)) {}

  // Rows of the field in which the region may have pixels.
  int top() const { return row_of(y_ - reach_y()); }
  int bottom() const { return row_of(y_ + reach_y()) + 1; }

  // The region's pixels of row y, which are one run because the region is convex.
  PixelRun row(int y) const {
    const double dy = static_cast<double>(field_.frame_row(y)) + 0.5 - y_;
    const Span span = span_of(dy);
    const auto clip = [&](double v) { return static_cast<int>(std::clamp<double>(v, 0, field_.columns)); };
    if (!(span.begin <= span.end)) return {0, 0};
    // Start one pixel farther out at both ends, in case the ends were rounded inwards.
    int begin = clip(std::floor(x_ + span.begin - 0.5)), end = clip(std::ceil(x_ + span.end + 0.5));
    while (begin < end && !has(begin, dy)) begin++;
    while (end > begin && !has(end - 1, dy)) end--;
    return {begin, end};
  }

 private:
  static constexpr double kHalfPixel = 0.5 - kLeastOverlap;

  struct Span {
    double begin, end;
  };

  // Range of distances from x_ of the centres of the region's pixels, in the row `dy` below y_.
  Span span_of(double dy) const {
    if (ellipse_) {
      // The roots of the quadratic equation for the points of the row that are on the ellipse.
      const double w2 = half_width_ * half_width_, h2 = half_height_ * half_height_;
      const double a = h2 * cos_ * cos_ + w2 * sin_ * sin_, b = dy * cos_ * sin_ * (h2 - w2);
      const double c = dy * dy * (h2 * sin_ * sin_ + w2 * cos_ * cos_) - w2 * h2;
      const double root = b * b - a * c;
      if (root < 0) return {1, 0};
      return {(-b - std::sqrt(root)) / a, (-b + std::sqrt(root)) / a};
    }
    const double reach_x = half_width_ * std::abs(cos_) + half_height_ * std::abs(sin_) + kHalfPixel;
    Span span = {-reach_x, reach_x};
    // Narrows the span to |dx * by + offset| < most.
    const auto cut = [&](double by, double offset, double most) {
      if (by == 0) return;
      const double one = (-most - offset) / by, other = (most - offset) / by;
      span = {std::max(span.begin, std::min(one, other)), std::min(span.end, std::max(one, other))};
    };
    cut(cos_, dy * sin_, half_width_ + pixel_reach());
    cut(-sin_, dy * cos_, half_height_ + pixel_reach());
    return span;
  }

  double reach_y() const { return half_width_ * std::abs(sin_) + half_height_ * std::abs(cos_); }
  // The distance from a pixel's centre to its farthest corner, along the axes of the region.
  double pixel_reach() const { return (std::abs(cos_) + std::abs(sin_)) * kHalfPixel; }
  int row_of(double frame_row) const {
    const double row = (frame_row - static_cast<double>(field_.first_row)) / static_cast<double>(field_.row_step);
    return static_cast<int>(std::clamp<double>(std::floor(row), 0, field_.rows - 1));
  }

  // Whether the region has pixel x of a row whose middle is `dy` below y_.
  bool has(int x, double dy) const {
    const double dx = x + 0.5 - x_, u = dx * cos_ + dy * sin_, v = dy * cos_ - dx * sin_;
    if (ellipse_)
      return u * u * half_height_ * half_height_ + v * v * half_width_ * half_width_ <=
             half_width_ * half_width_ * half_height_ * half_height_;
    // Two rectangles overlap if their projections on the axes of both do.
    return std::abs(u) < half_width_ + pixel_reach() && std::abs(v) < half_height_ + pixel_reach() &&
           std::abs(dx) < kHalfPixel + half_width_ * std::abs(cos_) + half_height_ * std::abs(sin_) &&
           std::abs(dy) < kHalfPixel + reach_y();
  }

  const Field &field_;
  bool ellipse_;
  double half_width_, half_height_, x_, y_, cos_, sin_;
};

// A mask spread over its rectangle.
class SpreadMask {
 public:
  SpreadMask(const RegionMask &mask, const Field &field) : mask_(mask), field_(field) {}

  int64_t top() const { return field_.row_from(mask_.box.y); }
  int64_t bottom() const { return field_.row_from(int64_t{mask_.box.y} + mask_.box.height); }

  // Adds the runs of row y, which may touch.
  void add_row(int y, RunUnion &row) {
    const int64_t width = mask_.box.width, height = mask_.box.height;
    read(static_cast<int>((2 * (field_.frame_row(y) - mask_.box.y) + 1) * mask_.height / (2 * height)));
    for (const PixelRun &members : members_) {
      // Pixel k of the row falls on sample (2k + 1) * samples / (2 * width). The first pixel on a sample:
      const auto first_on = [&](int64_t sample) {
        return (2 * width * sample + mask_.width - 1) / (2 * int64_t{mask_.width});
      };
      row.add({field_.clip(mask_.box.x + first_on(members.begin)),
               field_.clip(mask_.box.x + std::min(first_on(members.end), width))});
    }
  }

 private:
  // Finds the runs of members in a row of samples. Skips eight samples at a time if they continue the current state.
  void read(int sample_row) {
    if (sample_row == read_) return;
    read_ = sample_row;
    members_.clear();
    const uint8_t *const row = mask_.member.data() + static_cast<size_t>(sample_row) * mask_.width;
    bool inside = false;
    const auto step = [&](int x) {
      if ((row[x] != 0) == inside) return;
      if (!inside) members_.push_back({x, mask_.width});
      if (inside) members_.back().end = x;
      inside = !inside;
    };
    int x = 0;
    for (; x + 8 <= mask_.width; x += 8) {
      uint64_t eight;
      std::memcpy(&eight, row + x, 8);
      constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
      const uint64_t set = (((eight & kLow) + kLow) | eight) & ~kLow;  // the highest bit of each byte that is not 0
      if (set == (inside ? ~kLow : 0)) continue;
      for (int i = 0; i < 8; i++) step(x + i);
    }
    for (; x < mask_.width; x++) step(x);
  }

  const RegionMask &mask_;
  const Field &field_;
  int read_ = -1;
  std::vector<PixelRun> members_;
};

// Computes one row after the other, for lists with regions other than upright rectangles.
class RowByRow {
 public:
  RowByRow(const Regions &regions, const Field &field, const std::vector<Upright> &upright) {
    for (const Upright &r : upright)
      add_shape(r.top, r.bottom, [&, ellipse = regions.ellipse](int y, RunUnion &row) {
        const Columns in = ellipse ? ellipse_row(r.x1 - r.x0, r.bottom - r.top, y - r.top) : Columns{0, r.x1 - r.x0};
        row.add({field.clip(r.x0 + in.begin), field.clip(r.x0 + in.end)});
      });
    for (const Region &r : regions.region) {
      if (r.rotation == 0 || r.width <= 0 || r.height <= 0) continue;
      const TurnedRegion turned(r, regions.ellipse, field);
      add_shape(turned.top(), turned.bottom(), [turned](int y, RunUnion &row) { row.add(turned.row(y)); });
    }
    for (const RegionMask &m : regions.mask) {
      if (m.width <= 0 || m.height <= 0 || m.box.width <= 0 || m.box.height <= 0) continue;
      SpreadMask mask(m, field);
      add_shape(mask.top(), mask.bottom(), [mask](int y, RunUnion &row) mutable { mask.add_row(y, row); });
    }
    for (const auto &p : regions.pixels)
      add_shape(field.row_from(p->top), field.row_from(p->bottom()), [&](int y, RunUnion &row) {
        const auto at = static_cast<size_t>(field.frame_row(y) - p->top);
        for (size_t i = p->first[at]; i < p->first[at + 1]; i++)
          row.add({field.clip(p->run[i].begin), field.clip(p->run[i].end)});
      });
    std::sort(shapes_.begin(), shapes_.end(), [](const Shape &a, const Shape &b) { return a.top < b.top; });
  }

  // Adds the runs of row y. Call it for rows in rising order.
  void add_row(int y, RunUnion &row) {
    while (next_ < shapes_.size() && shapes_[next_].top <= y) here_.push_back(&shapes_[next_++]);
    here_.erase(std::remove_if(here_.begin(), here_.end(), [&](const Shape *s) { return s->bottom <= y; }),
                here_.end());
    for (Shape *shape : here_) shape->add_row(y, row);
  }

 private:
  struct Shape {
    int64_t top, bottom;  // rows
    std::function<void(int y, RunUnion &row)> add_row;
  };

  template <typename AddRow>
  void add_shape(int64_t top, int64_t bottom, AddRow add_row) {
    shapes_.push_back({top, bottom, std::move(add_row)});
  }

  std::vector<Shape> shapes_;  // by their first rows
  std::vector<Shape *> here_;  // with pixels in the row
  size_t next_ = 0;
};

// Replaces the runs from `begin` on by the gaps between them.
void invert_runs(std::vector<PixelRun> &runs, size_t begin, int width) {
  std::vector<PixelRun> between;
  int x = 0;
  for (size_t i = begin; i < runs.size(); i++) {
    if (x < runs[i].begin) between.push_back({x, runs[i].begin});
    x = runs[i].end;
  }
  if (x < width) between.push_back({x, width});
  runs.resize(begin);
  runs.insert(runs.end(), between.begin(), between.end());
}

RegionRows pixels_of(const Regions &regions, const Field &field, const Cancellation &cancellation) {
  const std::vector<Upright> list = upright_regions(regions, field);
  RegionRows result;
  RunUnion row(field.columns);
  const bool turned =
      std::any_of(regions.region.begin(), regions.region.end(), [](const Region &r) { return r.rotation != 0; });
  if (regions.ellipse || turned || !regions.mask.empty() || !regions.pixels.empty()) {
    RowByRow shapes(regions, field, list);
    for (int y = 0; y < field.rows && !cancellation.requested(); y++) {
      shapes.add_row(y, row);
      result.append(row, regions.invert, field.columns);
      row.clear();
    }
    return result;
  }
  // Each rectangle begins in a row of the field, and ends in a row or just below the last row.
  const ByRow beginning(list.size(), field.rows + 1, [&](size_t i) { return list[i].top; });
  const ByRow ending(list.size(), field.rows + 1, [&](size_t i) { return list[i].bottom; });
  const auto run_of = [&](size_t i) {
    return PixelRun{static_cast<int32_t>(list[i].x0), static_cast<int32_t>(list[i].x1)};
  };
  for (int y = 0; y < field.rows && !cancellation.requested(); y++) {
    if (y > 0 && !beginning.has_any(y) && !ending.has_any(y)) {
      result.repeat();
      continue;
    }
    beginning.for_each(y, [&](size_t i) { row.add(run_of(i)); });
    ending.for_each(y, [&](size_t i) { row.remove(run_of(i)); });
    result.append(row, regions.invert, field.columns);
  }
  return result;
}

// The samples of a subsampled part that cover any pixel in `pixels`.
RegionRows samples_of(const RegionRows &pixels, const PlaneLayout &plane, int height) {
  RegionRows result;
  RunUnion row(plane.width);
  const int step = 1 << plane.sub_y;
  // The last row of samples may reach beyond the last row of pixels.
  const auto at = [&](int64_t y) { return pixels.row(static_cast<int>(std::min<int64_t>(y, pixels.rows() - 1))); };
  for (int y = 0; y < height; y++) {
    const int64_t top = int64_t{y} * step;
    bool same = y > 0;
    for (int64_t i = top - step; same && i + 1 < top + step; i++) same = at(i) == at(i + 1);
    if (same) {
      result.repeat();
      continue;
    }
    for (int64_t i = top; i < top + step; i++)
      for (size_t r = at(i).begin; r < at(i).end; r++) {
        const PixelRun &run = pixels.runs()[r];
        row.add({run.begin >> plane.sub_x, std::min(((run.end - 1) >> plane.sub_x) + 1, plane.width)});
      }
    result.append(row, false, plane.width);
    row.clear();
  }
  return result;
}

}  // namespace

void RegionRows::append(RunUnion &row, bool invert, int width) {
  const size_t begin = runs_.size();
  row.list(&runs_);
  if (invert) invert_runs(runs_, begin, width);
  const auto same = [](const PixelRun &a, const PixelRun &b) { return a.begin == b.begin && a.end == b.end; };
  if (!rows_.empty() && std::equal(runs_.begin() + static_cast<ptrdiff_t>(begin), runs_.end(),
                                   runs_.begin() + static_cast<ptrdiff_t>(rows_.back().begin),
                                   runs_.begin() + static_cast<ptrdiff_t>(rows_.back().end), same)) {
    runs_.resize(begin);
    return repeat();
  }
  rows_.push_back({begin, runs_.size()});
}

std::vector<std::shared_ptr<const RegionRows>> region_rows(const Regions &regions, const Plan &plan,
                                                           const Cancellation &cancellation) {
  std::vector<std::shared_ptr<const RegionRows>> of_field(2), of_part;
  for (const Plan::Part &part : plan.parts) {
    std::shared_ptr<const RegionRows> &pixels = of_field[part.first_row];
    if (!pixels)
      pixels = std::make_shared<const RegionRows>(pixels_of(regions, Field(regions, plan, part), cancellation));
    if (cancellation.requested()) return {};
    const PlaneLayout &plane = plan.layout.plane[part.plane];
    const bool whole = plane.sub_x == 0 && plane.sub_y == 0 && part.height == pixels->rows();
    of_part.push_back(whole ? pixels : std::make_shared<const RegionRows>(samples_of(*pixels, plane, part.height)));
  }
  return of_part;
}

}  // namespace cudaconv
