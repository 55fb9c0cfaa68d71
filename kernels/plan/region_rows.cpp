// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/region_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "plan/feather.h"
#include "plan/run_union.h"

namespace cudaconv {

namespace {

// The pixels [begin, end) of row `row`, 0 to height-1, of a width x height region whose centres are in the inscribed
// ellipse. Sides are at most 2^31.
struct Columns {
  int64_t begin, end;
};
Columns ellipse_row(int64_t width, int64_t height, int64_t row) {
  // The test is (dx/w)^2 + (dy/h)^2 <= 1, with distances from the centre doubled, times (w*h)^2.
  const int64_t dy = 2 * row + 1 - height;
  const auto square = [](int64_t v) { return Int128{v} * v; };
  const Int128 room = square(width * height) - square(dy * width);
  const auto inside = [&](int64_t x) { return square((2 * x + 1 - width) * height) <= room; };
  // Estimates one end, up to rounding errors, and corrects it. The other end is its mirror image.
  const double reach = std::sqrt(static_cast<double>(room)) / static_cast<double>(height);
  const int64_t middle = (width + 1) / 2;
  int64_t begin = std::clamp<int64_t>(static_cast<int64_t>((static_cast<double>(width) - reach) / 2), 0, middle);
  while (begin > 0 && inside(begin - 1)) begin--;
  while (begin < middle && !inside(begin)) begin++;
  return {begin, std::max(begin, width - begin)};
}

// The pixels of a field, or of a frame without fields, and the position of its rows and columns in the frame in which
// coordinates of regions count.
struct Field {
  int64_t frame_row(int64_t y) const { return first_row + y * row_step; }
  int64_t frame_column(int64_t x) const { return first_column + x * column_step; }
  // The first row of the field at or below a row of the frame. It may be outside the field.
  int64_t row_from(int64_t frame_row) const { return ceil_div(frame_row - first_row, row_step); }
  int64_t column_from(int64_t frame_column) const { return ceil_div(frame_column - first_column, column_step); }
  int32_t clip(int64_t x) const { return static_cast<int32_t>(std::clamp<int64_t>(x, 0, columns)); }
  // The field's pixels of columns [begin, end) of the frame.
  PixelRun run(int64_t begin, int64_t end) const { return {clip(column_from(begin)), clip(column_from(end))}; }

  int columns, rows;
  int64_t first_row, row_step, first_column, column_step;
};

// A region that is rotated about its centre: a rectangle or the ellipse inscribed in it.
class TurnedRegion {
 public:
  TurnedRegion(const Region &region, bool ellipse, const Field &field)
      : region_(region), field_(field), ellipse_(ellipse) {}

  // Rows of the field in which the region may have pixels.
  int top() const { return row_of(y_ - reach_y()); }
  int bottom() const { return row_of(y_ + reach_y()) + 1; }

  // The region's pixels of row y, which are one run because the region is convex.
  PixelRun row(int y) const {
    const double dy = static_cast<double>(field_.frame_row(y)) + 0.5 - y_;
    const Span span = span_of(dy);
    const auto column_of = [&](double v) {
      const double column = (v - static_cast<double>(field_.first_column)) / static_cast<double>(field_.column_step);
      return static_cast<int>(std::clamp<double>(column, 0, field_.columns));
    };
    if (!(span.begin <= span.end)) return {0, 0};
    // Start one pixel farther out at both ends, in case the ends were rounded inwards.
    int begin = column_of(std::floor(x_ + span.begin - 0.5)), end = column_of(std::ceil(x_ + span.end + 0.5) + 1);
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
      const double root = std::sqrt(std::max(b * b - a * c, 0.0));  // rows with no pixels are found by has()
      return {(-b - root) / a, (-b + root) / a};
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
    const double dx = static_cast<double>(field_.frame_column(x)) + 0.5 - x_, u = dx * cos_ + dy * sin_,
                 v = dy * cos_ - dx * sin_;
    if (ellipse_) {
      constexpr double kOnEdge = 1 + 1e-11;  // so that rounding does not take away centres on the edge
      return u * u * half_height_ * half_height_ + v * v * half_width_ * half_width_ <=
             kOnEdge * half_width_ * half_width_ * half_height_ * half_height_;
    }
    // Two rectangles overlap if their projections on the axes of both do.
    return std::abs(u) < half_width_ + pixel_reach() && std::abs(v) < half_height_ + pixel_reach() &&
           std::abs(dx) < kHalfPixel + half_width_ * std::abs(cos_) + half_height_ * std::abs(sin_) &&
           std::abs(dy) < kHalfPixel + reach_y();
  }

  const Region &region_;
  const Field &field_;
  bool ellipse_;
  double half_width_ = region_.width / 2.0, half_height_ = region_.height / 2.0;
  double x_ = region_.x + half_width_, y_ = region_.y + half_height_;
  double cos_ = std::cos(region_.rotation), sin_ = std::sin(region_.rotation);
};

// The first element from `begin` on that is 0, or that is not 0; `end` if there is none.
int end_of_others(const uint8_t *line, int begin, int end) {
  const void *const zero = std::memchr(line + begin, 0, end - begin);
  return zero ? static_cast<int>(static_cast<const uint8_t *>(zero) - line) : end;
}
int end_of_zeros(const uint8_t *line, int begin, int end) {
  for (uint64_t eight; begin + 8 <= end; begin += 8) {
    std::memcpy(&eight, line + begin, 8);
    if (eight) break;
  }
  while (begin < end && !line[begin]) begin++;
  return begin;
}

// A mask spread over its rectangle.
class SpreadMask {
 public:
  SpreadMask(const RegionMask &mask, const Field &field) : mask_(mask), field_(field) {}

  int64_t top() const { return field_.row_from(mask_.box.y); }
  int64_t bottom() const { return field_.row_from(int64_t{mask_.box.y} + mask_.box.height); }

  // Lists the runs of row y, which may touch.
  void list_row(int y, std::vector<PixelRun> *runs) {
    const int64_t width = mask_.box.width, height = mask_.box.height;
    read(static_cast<int>((2 * (field_.frame_row(y) - mask_.box.y) + 1) * mask_.height / (2 * height)));
    for (const PixelRun &members : members_) {
      // Pixel k of the row falls on sample (2k + 1) * samples / (2 * width). The first pixel on a sample:
      const auto first_on = [&](int64_t sample) {
        return (2 * width * sample + mask_.width - 1) / (2 * int64_t{mask_.width});
      };
      runs->push_back(
          field_.run(mask_.box.x + first_on(members.begin), mask_.box.x + std::min(first_on(members.end), width)));
    }
  }

 private:
  // Finds the runs of members in a row of samples.
  void read(int sample_row) {
    if (sample_row == read_) return;
    read_ = sample_row;
    members_.clear();
    const uint8_t *const row = mask_.member.data() + static_cast<size_t>(sample_row) * mask_.width;
    for (int x = end_of_zeros(row, 0, mask_.width), end; x < mask_.width; x = end_of_zeros(row, end, mask_.width)) {
      end = end_of_others(row, x, mask_.width);
      members_.push_back({x, end});
    }
  }

  const RegionMask &mask_;
  const Field &field_;
  int read_ = -1;
  std::vector<PixelRun> members_;
};

// The pixels of all regions, row by row. Upright rectangles change the union of runs only where they begin and end.
// Other shapes list their runs in each row.
class RowByRow {
 public:
  RowByRow(const Regions &regions, const Field &field) : row_(field.columns) {
    for (const Region &r : regions.region) {
      if (r.width <= 0 || r.height <= 0) continue;
      const int64_t top = field.row_from(r.y), bottom = field.row_from(r.y + int64_t{r.height}),
                    left = field.column_from(r.x), right = field.column_from(r.x + int64_t{r.width});
      if (r.rotation != 0) {
        const TurnedRegion turned(r, regions.ellipse, field);
        add_shape(turned.top(), turned.bottom(),
                  [turned](int y, std::vector<PixelRun> *runs) { runs->push_back(turned.row(y)); });
      } else if (regions.ellipse) {
        add_shape(top, bottom, [=, &field](int y, std::vector<PixelRun> *runs) {
          const Columns in = ellipse_row(right - left, bottom - top, y - top);
          runs->push_back({field.clip(left + in.begin), field.clip(left + in.end)});
        });
      } else {
        const PixelRun run = {field.clip(left), field.clip(right)};
        edges_.push_back({top, run, true});
        edges_.push_back({bottom, run, false});
      }
    }
    for (const RegionMask &m : regions.mask) {
      if (m.width <= 0 || m.height <= 0 || m.box.width <= 0 || m.box.height <= 0) continue;
      SpreadMask mask(m, field);
      add_shape(mask.top(), mask.bottom(),
                [mask](int y, std::vector<PixelRun> *runs) mutable { mask.list_row(y, runs); });
    }
    for (const auto &p : regions.pixels)
      add_shape(field.row_from(p->top), field.row_from(p->bottom()), [&](int y, std::vector<PixelRun> *runs) {
        const auto at = static_cast<size_t>(field.frame_row(y) - p->top);
        for (size_t i = p->first[at]; i < p->first[at + 1]; i++)
          runs->push_back(field.run(p->run[i].begin, p->run[i].end));
      });
    std::sort(shapes_.begin(), shapes_.end(), [](const Shape &a, const Shape &b) { return a.top < b.top; });
    std::sort(edges_.begin(), edges_.end(), [](const Edge &a, const Edge &b) { return a.row < b.row; });
  }

  // Appends row y. Call it for rows in rising order.
  void append_to(RegionRows *rows, int y, bool invert, int width) {
    bool same = y > 0 && here_.empty();
    for (; next_edge_ < edges_.size() && edges_[next_edge_].row <= y; next_edge_++, same = false) {
      const Edge &edge = edges_[next_edge_];
      edge.begins ? row_.add(edge.run) : row_.remove(edge.run);
    }
    for (; next_ < shapes_.size() && shapes_[next_].top <= y; next_++, same = false) here_.push_back(&shapes_[next_]);
    if (same) return rows->repeat();
    here_.erase(std::remove_if(here_.begin(), here_.end(), [&](const Shape *s) { return s->bottom <= y; }),
                here_.end());
    runs_.clear();
    for (Shape *shape : here_) shape->list_row(y, &runs_);
    for (const PixelRun &run : runs_) row_.add(run);
    rows->append(row_, invert, width);
    for (const PixelRun &run : runs_) row_.remove(run);
  }

 private:
  // Where an upright rectangle begins, or the row below its last one.
  struct Edge {
    int64_t row;
    PixelRun run;
    bool begins;
  };
  struct Shape {
    int64_t top, bottom;  // rows
    std::function<void(int y, std::vector<PixelRun> *runs)> list_row;
  };

  template <typename ListRow>
  void add_shape(int64_t top, int64_t bottom, ListRow list_row) {
    shapes_.push_back({top, bottom, std::move(list_row)});
  }

  std::vector<Edge> edges_;    // by their rows
  std::vector<Shape> shapes_;  // by their first rows
  size_t next_edge_ = 0, next_ = 0;
  std::vector<Shape *> here_;   // with pixels in the row
  std::vector<PixelRun> runs_;  // of these shapes
  RunUnion row_;
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

Field field_of(const Regions &regions, const Plan &plan, const Plan::Part &part) {
  return {plan.layout.width(),
          static_cast<int>(ceil_div(plan.layout.height() - part.first_row, part.row_step)),
          regions.first_row + int64_t{regions.row_step} * part.first_row,
          int64_t{regions.row_step} * part.row_step,
          regions.first_column,
          regions.column_step};
}

RegionRows pixels_of(const Regions &regions, const Field &field, const Cancellation &cancellation) {
  RowByRow shapes(regions, field);
  RegionRows result;
  for (int y = 0; y < field.rows && !cancellation.requested(); y++)
    shapes.append_to(&result, y, regions.invert, field.columns);
  return result;
}

// The samples of a subsampled part that cover any pixel in `pixels`.
RegionRows samples_of(const RegionRows &pixels, const PlaneLayout &plane, int height) {
  RegionRows result;
  RunUnion row(plane.width);
  std::vector<PixelRun> runs;
  std::vector<uint8_t> share(pixels.fades() ? plane.width : 0, UINT8_MAX);
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
        const int begin = run.begin >> plane.sub_x, end = std::min(((run.end - 1) >> plane.sub_x) + 1, plane.width);
        if (begin >= end) continue;  // the last columns may have no chroma
        row.add({begin, end});
        if (share.empty()) continue;
        const uint8_t *const shares = pixels.shares(r);
        if (!shares) std::fill(&share[begin], &share[begin] + end - begin, uint8_t{0});
        for (int x = run.begin; shares && x < std::min(run.end, end << plane.sub_x); x++) {
          uint8_t &least = share[x >> plane.sub_x];
          least = std::min(least, shares[x - run.begin]);
        }
      }
    if (share.empty()) {
      result.append(row, false, plane.width);
    } else {
      runs.clear();
      row.list(&runs);
      result.append(runs, share.data());
      for (const PixelRun &run : runs) std::fill(&share[run.begin], &share[run.begin] + run.end - run.begin, UINT8_MAX);
    }
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
  append_row(begin);
}

void RegionRows::append(const std::vector<PixelRun> &runs, const uint8_t *share) {
  const size_t begin = runs_.size(), first_share = share_.size();
  for (const PixelRun &run : runs)
    for (int x = run.begin, end; x < run.end; x = end) {
      const bool fades = share[x] != 0;
      end = fades ? end_of_others(share, x, run.end) : end_of_zeros(share, x, run.end);
      if (runs_.size() > begin && runs_.back().end == x && (first_share_.back() != kNone) == fades) {
        runs_.back().end = end;
      } else {
        runs_.push_back({x, end});
        first_share_.push_back(fades ? static_cast<uint32_t>(share_.size()) : kNone);
      }
      if (fades) share_.insert(share_.end(), share + x, share + end);
    }
  const auto is_like_last = [&] {
    const Row last = rows_.back();
    if (last.end - last.begin != runs_.size() - begin) return false;
    for (size_t i = last.begin, j = begin; i < last.end; i++, j++) {
      const PixelRun &a = runs_[i], &b = runs_[j];
      const uint8_t *const x = shares(i), *const y = shares(j);
      if (a.begin != b.begin || a.end != b.end || !x != !y || (x && std::memcmp(x, y, a.end - a.begin) != 0))
        return false;
    }
    return true;
  };
  if (rows_.empty() || !is_like_last()) return append_row(begin);
  runs_.resize(begin);
  first_share_.resize(begin);
  share_.resize(first_share);
  repeat();
}

void RegionRows::reverse() {
  std::reverse(rows_.begin(), rows_.end());
}

bool have_pixels(const Regions &regions, int width, int height) {
  return !pixels_of(regions, {width, height, 0, 1, 0, 1}, Cancellation(nullptr)).runs().empty();
}

std::vector<std::shared_ptr<const RegionRows>> region_rows(const Regions &regions, const Plan &plan,
                                                           const Cancellation &cancellation) {
  std::vector<std::shared_ptr<const RegionRows>> of_field(2), of_part;
  for (const Plan::Part &part : plan.parts) {
    std::shared_ptr<const RegionRows> &pixels = of_field[part.first_row];
    if (!pixels) {
      const Field field = field_of(regions, plan, part);
      RegionRows inside = pixels_of(regions, field, cancellation);
      if (regions.feather && !cancellation.requested())
        inside = feathered(inside, field.columns, {regions.feather, field.column_step, field.row_step}, cancellation);
      pixels = std::make_shared<const RegionRows>(std::move(inside));
    }
    if (cancellation.requested()) return {};
    const PlaneLayout &plane = plan.layout.plane[part.plane];
    const bool whole = plane.sub_x == 0 && plane.sub_y == 0 && part.height == pixels->rows();
    of_part.push_back(whole ? pixels : std::make_shared<const RegionRows>(samples_of(*pixels, plane, part.height)));
  }
  return of_part;
}

}  // namespace cudaconv
