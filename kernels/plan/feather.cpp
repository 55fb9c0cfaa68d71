// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Exact Euclidean distances, as in A. Meijster, J. Roerdink and W. Hesselink, "A general algorithm for computing
// distance transforms in linear time", 2000: first the distances down each column, then in each row the lower envelope
// of the parabolas that have these as their vertices. P. Felzenszwalb and D. Huttenlocher describe the same envelope in
// "Distance transforms of sampled functions", 2012. Only columns within reach of a region are visited, and rows between
// two pixels of a region only where they leave it.
#include "plan/feather.h"

#include <algorithm>
#include <utility>

#include "plan/run_union.h"

namespace cudaconv {

namespace {

class Feathering {
 public:
  Feathering(const RegionRows &pixels, int columns, const Feather &feather)
      : pixels_(pixels), columns_(columns), feather_(feather) {}

  RegionRows run(const Cancellation &cancellation) {
    look_up(cancellation);
    std::vector<int> below(columns_, kFar);  // by column, the nearest row below with a pixel of a region
    for (int y = pixels_.rows() - 1; y >= 0 && !cancellation.requested(); y--) {
      const bool like_last = y + 1 < pixels_.rows() && pixels_.row(y) == pixels_.row(y + 1);
      if (like_last && !has_sources(y) && !has_sources(y + 1))
        result_.repeat();
      else
        fade_row(y, below.data());
      if (y == 0 || !(pixels_.row(y - 1) == pixels_.row(y))) mark(y, &below);
    }
    result_.reverse();
    return std::move(result_);
  }

 private:
  static constexpr int kFar = INT32_MAX / 2;  // a row, or a number of rows

  // A column of a row, and the squared distance down or up to the nearest pixel of a region.
  struct Source {
    int64_t x, square;
  };
  // A source that is the nearest one of some pixels, from `from` on.
  struct Nearest {
    Source source;
    int64_t from;
  };

  bool has_sources(int y) const { return first_source_[y] < first_source_[y + 1]; }

  // Calls body(run) for the runs of row y, which may be outside.
  template <typename Body>
  void for_runs(int y, Body body) const {
    if (y < 0 || y >= pixels_.rows()) return;
    for (size_t i = pixels_.row(y).begin; i < pixels_.row(y).end; i++) body(pixels_.runs()[i]);
  }

  void mark(int y, std::vector<int> *rows) const {
    for_runs(y, [&](const PixelRun &run) { std::fill(rows->begin() + run.begin, rows->begin() + run.end, y); });
  }

  // Finds the columns outside regions with a pixel of a region within reach above or below, and its distance above.
  void look_up(const Cancellation &cancellation) {
    std::vector<int> above(columns_, -kFar);  // by column, the nearest row above with a pixel of a region
    RunUnion near(columns_);
    std::vector<PixelRun> runs;
    for (int y = 0; y < reach_y_; y++) for_runs(y, [&](const PixelRun &run) { near.add(run); });
    first_source_.assign(1, 0);
    for (int y = 0; y < pixels_.rows() && !cancellation.requested(); y++) {
      for_runs(y + reach_y_, [&](const PixelRun &run) { near.add(run); });
      for_runs(y - reach_y_ - 1, [&](const PixelRun &run) { near.remove(run); });
      runs.clear();
      near.list(&runs);
      size_t next = pixels_.row(y).begin;
      for (const PixelRun &run : runs)
        for (int x = run.begin; x < run.end;) {
          while (next < pixels_.row(y).end && pixels_.runs()[next].end <= x) next++;
          const bool more = next < pixels_.row(y).end && pixels_.runs()[next].begin < run.end;
          const int end = more ? pixels_.runs()[next].begin : run.end;
          if (x < end) source_.push_back({x, end});
          for (int column = x; column < end; column++)
            above_.push_back(static_cast<uint16_t>(std::min(y - above[column], UINT16_MAX)));
          x = more ? pixels_.runs()[next].end : run.end;
        }
      first_source_.push_back(source_.size());
      first_above_.push_back(above_.size());
      if (y + 1 == pixels_.rows() || !(pixels_.row(y + 1) == pixels_.row(y))) mark(y, &above);
    }
  }

  // Appends row y to the result.
  void fade_row(int y, const int *below) {
    runs_.clear();
    sources_ = 0;
    begin_ = 0;
    size_t source = first_source_[y], inside = pixels_.row(y).begin;
    const uint16_t *above = above_.data() + (y ? first_above_[y - 1] : 0);
    while (source < first_source_[y + 1] || inside < pixels_.row(y).end) {
      const bool is_source = source < first_source_[y + 1] &&
                             (inside == pixels_.row(y).end || source_[source].begin < pixels_.runs()[inside].begin);
      const PixelRun &run = is_source ? source_[source++] : pixels_.runs()[inside++];
      if (sources_ && run.begin - source_list_[sources_ - 1].x > 2 * reach_x_) fade_to(columns_);
      if (is_source) {
        for (int x = run.begin; x < run.end; x++) {
          const int64_t distance = std::min<int>(*above++, below[x] - y);
          if (distance <= reach_y_) add_source(x, square_y_ * distance * distance);
        }
        continue;
      }
      add_source(run.begin, 0);
      fade_to(run.begin);
      runs_.push_back(run);
      std::fill(&share_[run.begin], &share_[run.begin] + run.end - run.begin, uint8_t{0});
      add_source(run.end - 1, 0);
      begin_ = run.end;
    }
    fade_to(columns_);
    result_.append(runs_, share_.data());
  }

  // Member by member: processors wait where a pair is loaded that was just stored in two parts.
  void add_source(int64_t x, int64_t square) {
    Source &source = source_list_[sources_++];
    source.x = x;
    source.square = square;
  }

  // Fades the pixels from begin_ to `end` - 1 by the distances from the sources, and forgets these.
  void fade_to(int64_t end) {
    if (!sources_) return;
    const int64_t first = std::max<int64_t>(begin_, source_list_[0].x - reach_x_);
    begin_ = end = std::min(end, source_list_[sources_ - 1].x + reach_x_ + 1);
    size_t nearest = 0;  // sources in envelope_
    for (size_t i = 0; i < sources_; i++) {
      const Source &source = source_list_[i];
      int64_t from = first;
      for (; nearest > 0; nearest--) {
        const Nearest &before = envelope_[nearest - 1];
        if (square_to(before.source, before.from) > square_to(source, before.from)) continue;
        from = 1 + meeting_of(before.source, source);
        break;
      }
      if (from >= end) continue;
      envelope_[nearest].source = source;
      envelope_[nearest++].from = from;
    }
    for (size_t i = 0; i < nearest; i++) {
      const auto &[source, from] = envelope_[i];
      const int64_t stop = i + 1 < nearest ? envelope_[i + 1].from : end, reach = reach_by_square_[source.square];
      fade_run(source, static_cast<int32_t>(std::max(from, source.x - reach)),
               static_cast<int32_t>(std::min(stop, source.x + reach + 1)));
    }
    sources_ = 0;
  }

  // The last pixel, from 0 on, that is not nearer to `b` than to `a`, a source on its left. One is there.
  int64_t meeting_of(const Source &a, const Source &b) const {
    if (a.square == b.square) return (a.x + b.x) / 2;
    // Exact, and faster than integers: the quotient of numbers below 2^50 and 2^20 is not rounded to the next integer.
    const int64_t dividend = square_x_ * (b.x * b.x - a.x * a.x) + b.square - a.square;
    return static_cast<int64_t>(static_cast<double>(dividend) / static_cast<double>(2 * square_x_ * (b.x - a.x)));
  }

  // Fades pixels begin ... end - 1. All are within reach of the source.
  void fade_run(const Source &source, int32_t begin, int32_t end) {
    if (begin >= end) return;
    for (int32_t x = begin; x < end; x++) share_[x] = share_by_square_[square_to(source, x)];
    if (!runs_.empty() && runs_.back().end == begin)
      runs_.back().end = end;
    else
      runs_.push_back({begin, end});
  }

  int64_t square_to(const Source &source, int64_t x) const {
    return square_x_ * (x - source.x) * (x - source.x) + source.square;
  }

  // By squared distance from the region, how many pixels to either side fade.
  std::vector<int> reaches() const {
    std::vector<int> result;
    int reach = reach_x_;
    const auto most = static_cast<int64_t>(share_by_square_.size());
    for (int64_t square = 0; square < most; square++) {
      while (square_x_ * reach * reach + square >= most) reach--;
      result.push_back(reach);
    }
    return result;
  }

  const RegionRows &pixels_;
  const int columns_;
  const Feather &feather_;
  // Squares of the distances between neighbours.
  const int64_t square_x_ = feather_.column_step * feather_.column_step;
  const int64_t square_y_ = feather_.row_step * feather_.row_step;
  const int reach_x_ = static_cast<int>(feather_.reach() / feather_.column_step);  // pixels of the part
  const int reach_y_ = static_cast<int>(feather_.reach() / feather_.row_step);
  const std::vector<uint8_t> share_by_square_ = shares_by_square(feather_.width);
  const std::vector<int> reach_by_square_ = reaches();
  RegionRows result_;
  // By row: the columns that look_up() found, and the rows up to the nearest pixel of a region.
  std::vector<size_t> first_source_, first_above_;
  std::vector<PixelRun> source_;
  std::vector<uint16_t> above_;
  // The row at hand: shares by column, complete runs, and the sources that pixels from begin_ on fade from.
  std::vector<uint8_t> share_ = std::vector<uint8_t>(columns_);
  std::vector<PixelRun> runs_;
  std::vector<Source> source_list_ = std::vector<Source>(columns_ + 2);
  size_t sources_ = 0;
  std::vector<Nearest> envelope_ = std::vector<Nearest>(columns_ + 2);
  int64_t begin_ = 0;
};

}  // namespace

std::vector<uint8_t> shares_by_square(int feather) {
  // floor(2^16 * d / r), where r is the 256ths of pixels at which nothing of the result is left. It grows with d.
  const int64_t r = 256 + feather;
  std::vector<uint8_t> shares;
  int64_t share = 0;
  for (int64_t square = 0; square << 16 < r * r; square++) {
    while ((share + 1) * (share + 1) * r * r <= square << 32) share++;
    shares.push_back(static_cast<uint8_t>(share));
  }
  return shares;
}

RegionRows feathered(const RegionRows &pixels, int columns, const Feather &feather, const Cancellation &cancellation) {
  return Feathering(pixels, columns, feather).run(cancellation);
}

}  // namespace cudaconv
