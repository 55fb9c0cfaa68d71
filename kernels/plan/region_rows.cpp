// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/region_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cudaconv {

namespace {

// Where runs begin and end along a row: how many more runs cover pixel x than cover pixel x - 1. A bit set for each
// pixel with a change makes them quick to find.
class Edges {
 public:
  explicit Edges(int width) : change_(width + 1), set_(width / 64 + 1) {}

  void add(RegionRows::Run run) { add(run, 1); }
  void remove(RegionRows::Run run) { add(run, -1); }

  // Appends the union of the runs.
  void list(std::vector<RegionRows::Run> *runs) {
    for_each([&, depth = 0](int x, int change) mutable {
      if (depth == 0) runs->push_back({x, x});
      depth += change;
      if (depth == 0) runs->back().end = x;
    });
  }

  void clear() {
    for_each([&](int x, int) { change_[x] = 0; });
    std::fill(set_.begin(), set_.end(), 0);
  }

 private:
  void add(RegionRows::Run run, int count) {
    if (run.begin >= run.end) return;
    change_[run.begin] += count;
    change_[run.end] -= count;
    for (const int x : {run.begin, run.end}) set_[x / 64] |= uint64_t{1} << x % 64;
  }

  template <typename F>
  void for_each(F f) {
    for (size_t i = 0; i < set_.size(); i++)
      for (uint64_t left = set_[i]; left; left &= left - 1) {
        const int bit = __builtin_ctzll(left), x = static_cast<int>(i) * 64 + bit;
        if (change_[x])
          f(x, change_[x]);
        else
          set_[i] &= ~(uint64_t{1} << bit);
      }
  }

  std::vector<int32_t> change_;
  std::vector<uint64_t> set_;
};

// The numbers 0, 1, ... sorted by their rows, which are 0 to rows - 1: those of row y are index[begin[y]] up to
// index[begin[y + 1] - 1].
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

// How the pixels of a part lie in the frame that the regions' coordinates refer to.
struct PartGeometry {
  PartGeometry(const Regions &regions, const Plan &plan, const Plan::Part &part)
      : sub_x(plan.layout.plane[part.plane].sub_x),
        sub_y(plan.layout.plane[part.plane].sub_y),
        width(plan.layout.plane[part.plane].width),
        height(part.height) {
    const FrameRows rows = frame_rows_of(regions, part);
    first_row = rows.first;
    row_step = rows.step;
    const PartSize size = unsubsampled_size(plan, part);
    columns = size.columns;
    field_rows = size.rows;
  }

  // The rows of the field, not subsampled, that row y of the part covers.
  int64_t begin_row(int y) const { return int64_t{y} << sub_y; }
  int64_t end_row(int y) const { return std::min(int64_t{y + 1} << sub_y, field_rows); }
  int64_t frame_row(int64_t field_row) const { return first_row + field_row * row_step; }

  int sub_x, sub_y, width, height;
  int64_t columns, field_rows, first_row, row_step;
};

// A region that is rotated about its middle: a rectangle or the ellipse inscribed in it.
class TurnedRegion {
 public:
  TurnedRegion(const Region &region, bool ellipse, const PartGeometry &part)
      : part_(part),
        ellipse_(ellipse),
        half_width_(region.width / 2.0),
        half_height_(region.height / 2.0),
        x_(region.x + half_width_),
        y_(region.y + half_height_),
        cos_(std::cos(region.rotation)),
        sin_(std::sin(region.rotation)) {}

  // Rows of the part in which the region may have pixels.
  int top() const { return row_of(y_ - reach_y()); }
  int bottom() const { return row_of(y_ + reach_y()) + 1; }

  // The region's pixels of row y, which are one run because the region is convex.
  RegionRows::Run row(int y) const {
    const double pixel = 1 << part_.sub_x;
    const Span span = span_of(y, pixel / 2);
    const auto clip = [&](double v) { return static_cast<int>(std::clamp<double>(v, 0, part_.width)); };
    if (!(span.begin <= span.end)) return {0, 0};
    // Start one pixel farther out at either end, in case the ends were rounded inwards.
    int begin = clip(std::floor((x_ + span.begin) / pixel - 0.5)), end = clip(std::ceil((x_ + span.end) / pixel + 0.5));
    while (begin < end && !has(begin, y)) begin++;
    while (end > begin && !has(end - 1, y)) end--;
    return {begin, end};
  }

 private:
  struct Span {
    double begin, end;
  };

  // Range of distances from x_ in which the centres of the region's pixels of row y lie; half_pixel is half a pixel's
  // width.
  Span span_of(int y, double half_pixel) const {
    const double above = static_cast<double>(part_.frame_row(part_.begin_row(y)));
    const double below = static_cast<double>(part_.frame_row(part_.end_row(y) - 1) + 1);
    const double dy = (above + below) / 2 - y_, h = (below - above) / 2;
    if (ellipse_) {
      // The roots of the quadratic equation for the points of that row on the ellipse.
      const double w2 = half_width_ * half_width_, h2 = half_height_ * half_height_;
      const double a = h2 * cos_ * cos_ + w2 * sin_ * sin_, b = dy * cos_ * sin_ * (h2 - w2);
      const double c = dy * dy * (h2 * sin_ * sin_ + w2 * cos_ * cos_) - w2 * h2;
      const double root = b * b - a * c;
      if (root < 0) return {1, 0};
      return {(-b - std::sqrt(root)) / a, (-b + std::sqrt(root)) / a};
    }
    const double c = std::abs(cos_), s = std::abs(sin_);
    Span span = {-half_width_ * c - half_height_ * s - half_pixel, half_width_ * c + half_height_ * s + half_pixel};
    // Narrows the span to |dx * by + offset| < most.
    const auto cut = [&](double by, double offset, double most) {
      if (by == 0) return;
      const double one = (-most - offset) / by, other = (most - offset) / by;
      span = {std::max(span.begin, std::min(one, other)), std::min(span.end, std::max(one, other))};
    };
    cut(cos_, dy * sin_, half_width_ + half_pixel * c + h * s);
    cut(-sin_, dy * cos_, half_height_ + half_pixel * s + h * c);
    return span;
  }

  double reach_y() const { return half_width_ * std::abs(sin_) + half_height_ * std::abs(cos_); }
  int row_of(double frame_row) const {
    const double field_row = (frame_row - static_cast<double>(part_.first_row)) / static_cast<double>(part_.row_step);
    return static_cast<int>(std::clamp<double>(std::floor(field_row / (1 << part_.sub_y)), 0, part_.height - 1));
  }

  bool has(int x, int y) const {
    // The rectangle of the frame that the pixel covers.
    const double left = static_cast<double>(int64_t{x} << part_.sub_x);
    const double right = static_cast<double>(std::min((int64_t{x} + 1) << part_.sub_x, part_.columns));
    const double above = static_cast<double>(part_.frame_row(part_.begin_row(y)));
    const double below = static_cast<double>(part_.frame_row(part_.end_row(y) - 1) + 1);
    const double dx = (left + right) / 2 - x_, dy = (above + below) / 2 - y_;
    const double u = dx * cos_ + dy * sin_, v = dy * cos_ - dx * sin_;
    if (ellipse_)
      return u * u * half_height_ * half_height_ + v * v * half_width_ * half_width_ <=
             half_width_ * half_width_ * half_height_ * half_height_;
    // Two rectangles overlap if their projections on the axes of both do.
    const double w = (right - left) / 2, h = (below - above) / 2, c = std::abs(cos_), s = std::abs(sin_);
    return std::abs(u) < half_width_ + w * c + h * s && std::abs(v) < half_height_ + w * s + h * c &&
           std::abs(dx) < w + half_width_ * c + half_height_ * s && std::abs(dy) < h + reach_y();
  }

  const PartGeometry &part_;
  bool ellipse_;
  double half_width_, half_height_, x_, y_, cos_, sin_;
};

// A mask spread over its rectangle.
class SpreadMask {
 public:
  SpreadMask(const RegionMask &mask, const PartGeometry &part) : mask_(mask), part_(part) {}

  int top() const { return row_of(mask_.box.y); }
  int bottom() const { return row_of(int64_t{mask_.box.y} + mask_.box.height - 1) + 1; }

  // Calls f(run) for runs of pixels of row y, which may touch and overlap.
  template <typename F>
  void for_each(int y, F f) {
    const int64_t width = mask_.box.width, height = mask_.box.height;
    for (int64_t field_row = part_.begin_row(y); field_row < part_.end_row(y); field_row++) {
      const int64_t row = part_.frame_row(field_row) - mask_.box.y;
      if (row < 0 || row >= height) continue;
      read(static_cast<int>((2 * row + 1) * mask_.height / (2 * height)));
      for (const RegionRows::Run &members : members_) {
        // Pixel k of the row falls on sample (2k + 1) * samples / (2 * width).
        const auto first_on = [&](int64_t sample) {
          return sample ? (2 * width * sample - mask_.width + 2 * int64_t{mask_.width} - 1) / (2 * int64_t{mask_.width})
                        : 0;
        };
        const auto clip = [&](int64_t x) { return std::clamp<int64_t>(x, 0, part_.columns); };
        const int64_t left = clip(mask_.box.x + first_on(members.begin));
        const int64_t right = clip(mask_.box.x + std::min(first_on(members.end), width));
        if (left < right)
          f(RegionRows::Run{static_cast<int32_t>(left >> part_.sub_x),
                            static_cast<int32_t>(((right - 1) >> part_.sub_x) + 1)});
      }
    }
  }

 private:
  int row_of(int64_t frame_row) const {
    const int64_t field_row = std::max<int64_t>(frame_row - part_.first_row, 0) / part_.row_step;
    return static_cast<int>(std::min<int64_t>(field_row >> part_.sub_y, part_.height - 1));
  }

  // Finds the runs of members in a row of samples, and skips eight samples at a time that continue the current state.
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
  const PartGeometry &part_;
  int read_ = -1;
  std::vector<RegionRows::Run> members_;
};

// Works out each row by itself, for lists with regions that are not plain rectangles.
class RowByRow {
 public:
  RowByRow(const Regions &regions, const PartGeometry &geometry, const std::vector<PartRegion> &plain)
      : geometry_(geometry), plain_(plain), ellipse_(regions.ellipse) {
    for (const Region &r : regions.region)
      if (r.rotation != 0 && r.width > 0 && r.height > 0) turned_.emplace_back(r, regions.ellipse, geometry);
    for (const RegionMask &m : regions.mask)
      if (m.width > 0 && m.height > 0 && m.box.width > 0 && m.box.height > 0) masks_.emplace_back(m, geometry);
    for (size_t i = 0; i < plain.size(); i++) add(Kind::Plain, i, plain[i].y, int64_t{plain[i].y} + plain[i].height);
    for (size_t i = 0; i < turned_.size(); i++) add(Kind::Turned, i, turned_[i].top(), turned_[i].bottom());
    for (size_t i = 0; i < masks_.size(); i++) add(Kind::Mask, i, masks_[i].top(), masks_[i].bottom());
    std::sort(shapes_.begin(), shapes_.end(), [](const Shape &a, const Shape &b) { return a.top < b.top; });
  }

  // Adds the runs of row y. Call it for rows in rising order.
  void add_row(int y, Edges &edges) {
    while (next_ < shapes_.size() && shapes_[next_].top <= y) here_.push_back(shapes_[next_++]);
    here_.erase(std::remove_if(here_.begin(), here_.end(), [&](const Shape &s) { return s.bottom <= y; }), here_.end());
    for (const Shape &shape : here_) add_shape(shape, y, edges);
  }

 private:
  enum class Kind { Plain, Turned, Mask };
  struct Shape {
    Kind kind;
    size_t index;
    int64_t top, bottom;
  };

  void add(Kind kind, size_t index, int64_t top, int64_t bottom) { shapes_.push_back({kind, index, top, bottom}); }

  void add_shape(const Shape &shape, int y, Edges &edges) {
    if (shape.kind == Kind::Turned) return edges.add(turned_[shape.index].row(y));
    if (shape.kind == Kind::Mask) return masks_[shape.index].for_each(y, [&](RegionRows::Run run) { edges.add(run); });
    const PartRegion &r = plain_[shape.index];
    const auto clip = [&](int64_t v) { return static_cast<int32_t>(std::clamp<int64_t>(v, 0, geometry_.width)); };
    const PixelRun run = ellipse_ ? ellipse_row(r.width, r.height, int64_t{y} - r.y) : PixelRun{0, r.width};
    edges.add({clip(r.x + run.begin), clip(r.x + run.end)});
  }

  const PartGeometry &geometry_;
  const std::vector<PartRegion> &plain_;
  const bool ellipse_;
  std::vector<TurnedRegion> turned_;
  std::vector<SpreadMask> masks_;
  std::vector<Shape> shapes_, here_;
  size_t next_ = 0;
};

// Replaces the runs from `begin` on by the gaps between them.
void invert_runs(std::vector<RegionRows::Run> &runs, size_t begin, int width) {
  std::vector<RegionRows::Run> between;
  int x = 0;
  for (size_t i = begin; i < runs.size(); i++) {
    if (x < runs[i].begin) between.push_back({x, runs[i].begin});
    x = runs[i].end;
  }
  if (x < width) between.push_back({x, width});
  runs.resize(begin);
  runs.insert(runs.end(), between.begin(), between.end());
}

}  // namespace

RegionRows::RegionRows(const Regions &regions, const Plan &plan, const Plan::Part &part,
                       const Cancellation &cancellation)
    : rows_(part.height) {
  const std::vector<PartRegion> list = regions_of_part(regions, plan, part);
  const int width = plan.layout.plane[part.plane].width;
  Edges edges(width);
  const auto list_row = [&](int y) {
    const size_t begin = runs_.size();
    edges.list(&runs_);
    if (regions.invert) invert_runs(runs_, begin, width);
    rows_[y] = {begin, runs_.size()};
  };
  const bool turned =
      std::any_of(regions.region.begin(), regions.region.end(), [](const Region &r) { return r.rotation != 0; });
  if (regions.ellipse || turned || !regions.mask.empty()) {
    const PartGeometry geometry(regions, plan, part);
    RowByRow shapes(regions, geometry, list);
    for (int y = 0; y < part.height && !cancellation.requested(); y++) {
      shapes.add_row(y, edges);
      list_row(y);
      edges.clear();
    }
    return;
  }
  // Each rectangle reaches into the part, so it begins in one of its rows and ends in one or just below the last one.
  const ByRow beginning(list.size(), part.height + 1, [&](size_t i) { return list[i].y; });
  const ByRow ending(list.size(), part.height + 1, [&](size_t i) { return list[i].y + list[i].height; });
  const auto run_of = [&](size_t i) { return Run{list[i].x, list[i].x + list[i].width}; };
  for (int y = 0; y < part.height && !cancellation.requested(); y++) {
    if (y > 0 && !beginning.has_any(y) && !ending.has_any(y)) {
      rows_[y] = rows_[y - 1];
      continue;
    }
    beginning.for_each(y, [&](size_t i) { edges.add(run_of(i)); });
    ending.for_each(y, [&](size_t i) { edges.remove(run_of(i)); });
    list_row(y);
  }
}

}  // namespace cudaconv
