// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A Plan is a FilterSettings worked out for a FrameLayout: the passes over the frame in integers, complete and exact,
// with nothing left for a backend to decide but how to carry them out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "filter.h"
#include "imageview.h"
#include "plan/decimation.h"
#include "plan/rounding.h"

namespace cudaconv {

enum class Op : uint8_t {
  Linear,     // sum of mask[0] * sample
  Magnitude,  // of the sums of mask[0] and mask[1]
  Compass,    // the largest of the eight responses of the kirsch mask, 3x3
  Minimum,    // over the structuring element
  Maximum,
  Median,      // over the square window
  Difference,  // source - subtrahend, sample by sample, clamped at 0
  Mosaic,      // the mean of the block that the pixel lies in, see plan/mosaic.h
  Blur,        // a Gaussian by way of a smaller frame, see plan/decimation.h; radii are those of all that it reads
  // The mean of samples weighted by mask[0] and, where they are colours, by the alpha of their pixels, see
  // plan/weighted.h.
  WeightedMean,
};

// How a magnitude becomes an integer: |x| + |y|; floor(sqrt(x^2 + y^2)), which is enough to round what is added to it;
// or, where an absolute value may subtract it, twice that with a last bit that says whether the root had a fraction.
enum class Norm : uint8_t { L1, L2, L2Fraction };

CUDACONV_HOST_DEVICE inline int magnitude(Norm norm, int x, int y) {
  if (norm == Norm::L1) return (x < 0 ? -x : x) + (y < 0 ? -y : y);
  const uint64_t square =
      static_cast<uint64_t>(static_cast<int64_t>(x) * x) + static_cast<uint64_t>(static_cast<int64_t>(y) * y);
  const uint32_t root = integer_sqrt(square);
  if (norm == Norm::L2) return static_cast<int>(root);
  return static_cast<int>(2 * root + (static_cast<uint64_t>(root) * root != square));
}

// What becomes of a channel in a pass.
enum class Action : uint8_t { Filter, Copy, Fill };

// An integer mask, width 2*radius_x+1, height 2*radius_y+1, rows from the top.
//
// Where both are there, value[j * width + i] == column[j] * row[i]. A mask with row_shift has factors alone: each row's
// sum is rounded, (sum + 2^(row_shift-1)) >> row_shift, before the column's factor multiplies it, whatever the method.
struct IntegerMask {
  std::vector<int32_t> value;
  std::vector<int32_t> row, column;
  int row_shift = 0;
  bool separable() const { return !row.empty(); }
  // Whether all coefficients are alike, and rows' sums not rounded: then a sum can slide from window to window.
  bool uniform() const;
};

// One pass reads frame buffer `source` whole and writes `target`. Buffer 0 is the input frame, kOutput the output
// frame; 1 and up are temporary frames of the same layout, with pitches of the backend's choice.
struct Pass {
  static constexpr int kInput = 0;
  static constexpr int kOutput = -1;

  Op op = Op::Linear;
  int source = kInput;
  int subtrahend = kInput;  // of Difference
  int target = kOutput;
  int radius_x = 0, radius_y = 0;  // pixels from the anchor to the window's edge
  // `border=keep`: pixels nearer than this to an edge are copied. 0 where border is another.
  int keep_x = 0, keep_y = 0;
  // What copied channels and kept pixels are copied from.
  int copy_source = kInput;
  // Whether pixels outside the regions become those of the input. Not so within an opening, say: only its end is seen.
  bool in_regions = true;
  Norm norm = Norm::L2;                          // of Magnitude
  int block = 0;                                 // Mosaic: the side of a block, pixels of the frame
  std::shared_ptr<const Decimation> decimation;  // Blur
  int row_bits = 0, sum_bits = 0;                // WeightedMean: that sums of a row and of a window take
  // WeightedMean whose sums take more than 63 bits: if not empty, the factors of mask[0] with more bits, which count.
  std::vector<int64_t> long_row, long_column;

  IntegerMask mask[2];           // Linear and Magnitude
  std::vector<uint8_t> element;  // Minimum, Maximum: members of the window; empty: all of it
  bool wide = false;             // Linear: the sum needs 64 bits
  // What is rounded is sum_gain * sum + center_gain * centre sample; beyond 1 and 0 it is computed in 64 bits, from the
  // sum rounded to (sum + 2^(sum_shift-1)) >> sum_shift.
  int64_t sum_gain = 1, center_gain = 0;
  int sum_shift = 0;
  Rounding rounding[kMaxPlanes][kMaxChannels];  // by plane and channel, since depths may differ

  bool has_gain() const { return sum_gain != 1 || center_gain != 0; }
  bool separable() const;

  int width() const { return 2 * radius_x + 1; }
  int height() const { return 2 * radius_y + 1; }

  // Minimum, Maximum: whether the pixel of the window so far from its anchor is a member.
  bool has_member(int dx, int dy) const {
    return element.empty() || element[(radius_y + dy) * width() + radius_x + dx];
  }
};

// A plane of memory as the views of a layout use it together.
struct MemoryPlane {
  struct Run {
    size_t begin, length;  // bytes of a row
  };
  size_t row_bytes = 0;
  int height = 0;  // rows
  // The bytes of a row that belong to pixels. Between them, at the end of an odd row of packed 4:2:2, may lie some that
  // do not, and nothing is written there.
  std::vector<Run> runs;
};

struct Plan {
  FrameLayout layout;
  Border border = Border::Replicate;
  Method method = Method::Auto;  // what the user selected; auto leaves the choice to the backend, pass by pass
  Action action[kMaxPlanes][kMaxChannels] = {};
  uint16_t fill[kMaxPlanes][kMaxChannels] = {};
  std::vector<Pass> passes;         // never empty
  int temporaries = 0;              // number of temporary frames
  std::vector<MemoryPlane> memory;  // by PlaneLayout::memory_plane

  // What the filter runs over independently: the planes of the layout, in an interlaced frame each field of each.
  struct Part {
    int plane;  // in layout
    int first_row, row_step;
    int height;  // rows, at least 1
  };
  std::vector<Part> parts;
};

// The sum with the gains of its pass applied; to be rounded.
CUDACONV_HOST_DEVICE inline int64_t apply_gain(int64_t sum, int sum_shift, int64_t sum_gain, int64_t center_gain,
                                               int center) {
  if (sum_shift) sum = (sum + (int64_t{1} << (sum_shift - 1))) >> sum_shift;
  return sum_gain * sum + center_gain * center;
}

// A region in pixels of one part of a plane.
struct PartRegion {
  int32_t x, y, width, height;
};

// The regions that are not turned as a part of a plane sees them, see RegionRows: rectangles cut off where the part
// ends, ellipses whole. Those that touch no pixel are left out.
std::vector<PartRegion> regions_of_part(const Regions &regions, const Plan &plan, const Plan::Part &part);

// Row y of a part that is not subsampled is row first + y * step of the frame in whose pixels the regions are.
struct FrameRows {
  int64_t first, step;
};
FrameRows frame_rows_of(const Regions &regions, const Plan::Part &part);

// The size of a part of a plane as it is where planes are not subsampled.
struct PartSize {
  int64_t columns, rows;
};
PartSize unsubsampled_size(const Plan &plan, const Plan::Part &part);

// The pixels [begin, end) of row `row`, 0 to height-1, of a width x height region whose centres lie in the ellipse
// inscribed in it. Sides are at most 2^31.
struct PixelRun {
  int64_t begin, end;
};
PixelRun ellipse_row(int64_t width, int64_t height, int64_t row);

// One line for a debug log: method, border, the size of each part, and of each pass the operation, the window, whether
// it is separable, how many bits sums and their rounding take, and which buffer it reads and writes.
std::string describe(const Plan &plan);

// The planes of memory that hold frames of this layout, by PlaneLayout::memory_plane.
std::vector<MemoryPlane> memory_planes_of(const FrameLayout &layout);

// Throws Error{Settings} where the settings contradict themselves or the layout, or where the method cannot do the
// mask; Error{Format} where no settings could filter the layout.
std::shared_ptr<const Plan> make_plan(const FilterSettings &settings, const FrameLayout &layout);

}  // namespace cudaconv
