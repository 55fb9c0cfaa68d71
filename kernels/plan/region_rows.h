// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cancellation.h"
#include "plan/plan.h"
#include "plan/regions.h"

namespace cudaconv {

class RunUnion;

// In pixels. After a quarter turn, whose sine and cosine are rounded, a rectangle thus has no pixels beside it.
constexpr double kLeastOverlap = 1e-6;

// The samples of a part that active regions filter, as runs along its rows. Overlapping regions cost no more: each
// sample is listed once.
class RegionRows {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Row {
    uint32_t begin, end;  // in runs()
    bool operator==(const Row &other) const { return begin == other.begin && end == other.end; }
  };

  // Appends a row with the runs of `row`; with `invert`, with the gaps between them up to `width`.
  void append(RunUnion &row, bool invert, int width);
  // Appends a row with these runs, which are in rising order and may touch. share[x]: the original's share in sample x.
  void append(const std::vector<PixelRun> &runs, const uint8_t *share);
  void repeat() { rows_.push_back(rows_.back()); }  // appends a row like the last one
  void reverse();                                   // the last row becomes the first one

  // The runs of a row are in rising order. They touch only where one of them fades. Rows of equal runs may share them.
  const std::vector<PixelRun> &runs() const { return runs_; }
  // The original's share in each sample of a run that fades, see plan/feather.h; nullptr: the run has nothing of it.
  const uint8_t *shares(size_t run) const {
    return first_share_.empty() || first_share_[run] == kNone ? nullptr : &share_[first_share_[run]];
  }
  // The lists themselves, for a device. first_shares(): by run, where its shares begin in all_shares(), or kNone; empty
  // if no run fades.
  const std::vector<Row> &all_rows() const { return rows_; }
  const std::vector<uint32_t> &first_shares() const { return first_share_; }
  const std::vector<uint8_t> &all_shares() const { return share_; }
  bool fades() const { return !share_.empty(); }  // whether any run does
  Row row(int y) const { return rows_[y]; }
  int rows() const { return static_cast<int>(rows_.size()); }

 private:
  void append_row(size_t begin) {
    rows_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(runs_.size())});
  }

  std::vector<PixelRun> runs_;
  std::vector<Row> rows_;
  std::vector<uint32_t> first_share_;
  std::vector<uint8_t> share_;
};

// The rows of each part of a plan; an empty list if the frame is cancelled. Parts may share rows. n rectangles take O(n
// log n + pixels / 64); other regions take O(their rows) in addition.
//
// The pixels of the frame, or of a field, that belong to a region:
//   rectangle                   every pixel that it touches; a pixel is a square of the frame
//   rotated rectangle           every pixel that it touches by more than kLeastOverlap
//   ellipse                     pixels whose centre is in the ellipse inscribed in all pixels that its rectangle
//                               touches; if rotated, in the ellipse itself
//   mask                        pixels whose centre falls on a member
//   polygon                     pixels whose centre is in it
// `invert` selects the pixels that belong to no region. A subsampled plane selects each sample that covers a selected
// pixel, so that chroma shows nothing of a hidden region. With `feather`, the pixels that fade are added, see
// plan/feather.h; the original's share in a sample of a subsampled plane is the least share of its pixels.
std::vector<std::shared_ptr<const RegionRows>> region_rows(const Regions &regions, const Plan &plan,
                                                           const Cancellation &cancellation);

// Whether any pixel of a frame of this size, without fields, belongs to the regions.
bool have_pixels(const Regions &regions, int width, int height);

}  // namespace cudaconv
