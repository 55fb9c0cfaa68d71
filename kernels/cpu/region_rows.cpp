// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cpu/region_rows.h"

#include <algorithm>

namespace cudaconv {

namespace {

// Where runs begin and end along a row: how many more of them cover pixel x than cover the pixel before it. A bit for
// each pixel says where to look.
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

// Numbers 0, 1, ... in the order of their rows, each from 0 to rows - 1: those of row y are index[begin[y]] up to
// begin[y + 1].
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

}  // namespace

RegionRows::RegionRows(const Regions &regions, const Plan &plan, const Plan::Part &part,
                       const Cancellation &cancellation)
    : rows_(part.height) {
  const std::vector<PartRegion> list = regions_of_part(regions, plan, part);
  const int width = plan.layout.plane[part.plane].width;
  const auto clip = [](int64_t v, int end) { return static_cast<int32_t>(std::clamp<int64_t>(v, 0, end)); };
  const auto bottom = [&](const PartRegion &r) { return clip(int64_t{r.y} + r.height, part.height); };
  // Each region reaches into the part, so that it begins in one of its rows; it may end below the last one.
  const ByRow beginning(list.size(), part.height + 1, [&](size_t i) { return clip(list[i].y, part.height); });
  Edges edges(width);
  if (regions.ellipse) {
    std::vector<size_t> here;
    for (int y = 0; y < part.height && !cancellation.requested(); y++) {
      beginning.for_each(y, [&](size_t i) { here.push_back(i); });
      here.erase(std::remove_if(here.begin(), here.end(), [&](size_t i) { return bottom(list[i]) <= y; }), here.end());
      for (const size_t i : here) {
        const PartRegion &r = list[i];
        const PixelRun run = ellipse_row(r.width, r.height, int64_t{y} - r.y);
        edges.add({clip(r.x + run.begin, width), clip(r.x + run.end, width)});
      }
      const size_t begin = runs_.size();
      edges.list(&runs_);
      edges.clear();
      rows_[y] = {begin, runs_.size()};
    }
    return;
  }
  const ByRow ending(list.size(), part.height + 1, [&](size_t i) { return bottom(list[i]); });
  const auto run_of = [&](size_t i) { return Run{list[i].x, list[i].x + list[i].width}; };
  for (int y = 0; y < part.height && !cancellation.requested(); y++) {
    if (!beginning.has_any(y) && !ending.has_any(y)) {
      rows_[y] = y ? rows_[y - 1] : Row{0, 0};
      continue;
    }
    beginning.for_each(y, [&](size_t i) { edges.add(run_of(i)); });
    ending.for_each(y, [&](size_t i) { edges.remove(run_of(i)); });
    const size_t begin = runs_.size();
    edges.list(&runs_);
    rows_[y] = {begin, runs_.size()};
  }
}

}  // namespace cudaconv
