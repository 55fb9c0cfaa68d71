// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A Plan is the FilterSettings computed for a FrameLayout: the passes over the frame, in integers, complete and exact.
// Backends only decide how to execute them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "filter.h"
#include "imageview.h"
#include "plan/rounding.h"

namespace cudaconv {

struct BilateralTables;
struct Decimation;

enum class Op : uint8_t {
  Linear,      // the sum of mask[0] * sample
  Magnitude,   // the magnitude of the vector made of the sums of mask[0] and mask[1]
  Compass,     // the largest of the eight responses of the 3x3 kirsch mask
  Minimum,     // the smallest sample within the structuring element
  Maximum,     // the largest one
  Median,      // the median of the window
  Difference,  // source - operand, sample by sample, clamped at 0
  Threshold,   // source where it differs from the operand by more than Rounding::threshold, else the operand
  Mosaic,      // the mean of the pixel's block, see plan/mosaic.h
  Blur,        // a Gaussian through a smaller frame, see plan/decimation.h; the radii cover all samples that it reads
  // The mean of samples weighted by mask[0] and, in colour channels, by the alpha of their pixels, see plan/weighted.h.
  WeightedMean,
  Bilateral,  // the mean of samples weighted by their distance and their difference, see plan/bilateral.h
};

// Whether each sample is made of one sample of each of two frames, the source and the operand.
CUDACONV_HOST_DEVICE constexpr bool is_pointwise(Op op) {
  return op == Op::Difference || op == Op::Threshold;
}

// How a magnitude becomes an integer.
// L1: |x| + |y|.
// L2: floor(sqrt(x^2 + y^2)), enough for exact rounding if the offset is only added.
// L2Fraction: 2 * floor(sqrt(x^2 + y^2)) + (1 if the root had a fraction), for a negative offset followed by an
// absolute value, which may subtract the root.
enum class Norm : uint8_t { L1, L2, L2Fraction };

// kSmall: |x| and |y| are below 2^22, see integer_sqrt().
template <bool kSmall = false>
CUDACONV_HOST_DEVICE inline int magnitude(Norm norm, int x, int y) {
  if (norm == Norm::L1) return (x < 0 ? -x : x) + (y < 0 ? -y : y);
  const uint64_t square =
      static_cast<uint64_t>(static_cast<int64_t>(x) * x) + static_cast<uint64_t>(static_cast<int64_t>(y) * y);
  const uint32_t root = integer_sqrt<kSmall>(square);
  if (norm == Norm::L2) return static_cast<int>(root);
  return static_cast<int>(2 * root + (static_cast<uint64_t>(root) * root != square));
}

// A pass filters a channel, copies it, or fills it with Plan::fill.
enum class Action : uint8_t { Filter, Copy, Fill };

// An integer mask, width 2*radius_x+1, height 2*radius_y+1, rows from the top.
//
// If both `value` and its factors exist, value[j * width + i] == column[j] * row[i]. A mask with row_shift has only the
// factors. Every method then rounds each row sum, (sum + 2^(row_shift-1)) >> row_shift, before it multiplies by the
// column's factor.
struct IntegerMask {
  std::vector<int32_t> value;
  std::vector<int32_t> row, column;
  int row_shift = 0;
  bool separable() const { return !row.empty(); }
  // Whether all coefficients are equal and row sums are not rounded, so that a running sum can slide from window to
  // window.
  bool uniform() const;
  // The rounded sum of a row whose samples all are `sample`.
  int64_t row_sum(int64_t sample) const;
};

// A pass reads frame buffer `source` and writes `target`. Buffer 0 is the input frame, kOutput the output frame.
// Buffers from 1 on are temporary frames of the same layout; the backend chooses their pitches.
struct Pass {
  static constexpr int kInput = 0;
  static constexpr int kOutput = -1;

  Op op = Op::Linear;
  int source = kInput;
  int operand = kInput;  // pointwise passes: the other frame buffer that is read
  int target = kOutput;
  int radius_x = 0, radius_y = 0;  // pixels from the anchor to the window's edge
  // `border=keep`: pixels nearer than this to an edge are copied. 0 with other border modes.
  int keep_x = 0, keep_y = 0;
  // The frame buffer that copied channels and kept pixels are copied from.
  int copy_source = kInput;
  // Whether pixels outside the regions are copied from the input. False for inner passes: regions apply only to the
  // last result, for example to the opening, not to its erosion.
  bool in_regions = true;
  Norm norm = Norm::L2;                          // Magnitude
  int block_x = 0, block_y = 0;                  // Mosaic: the sides of a block in pixels of the frame
  std::shared_ptr<const Decimation> decimation;  // Blur: along rows
  // Blur: down columns. Only the blur of coarse samples differs from rows.
  std::shared_ptr<const Decimation> decimation_y;
  std::shared_ptr<const BilateralTables> bilateral;  // Bilateral
  bool weighs_alpha = false;                         // Bilateral: colours are weighted by alpha, too
  int sum_bits = 0;                                  // WeightedMean: bits of window sums
  // WeightedMean with sums of more than 63 bits: the factors of mask[0] with more bits. Unless empty, they replace the
  // mask's own.
  std::vector<int64_t> long_row, long_column;

  IntegerMask mask[2];           // Linear and Magnitude
  std::vector<uint8_t> element;  // Minimum, Maximum: 1 for pixels of the window that are members; empty: all
  bool wide = false;             // Linear: the sum needs 64 bits
  // The value that is rounded is sum_gain * sum + center_gain * centre sample. Unless the gains are 1 and 0, it is
  // computed in 64 bits, from the sum rounded to (sum + 2^(sum_shift-1)) >> sum_shift.
  int64_t sum_gain = 1, center_gain = 0;
  int sum_shift = 0;
  Rounding rounding[kMaxPlanes][kMaxChannels];  // by plane and channel, since depths may differ

  bool is_pointwise() const { return cudaconv::is_pointwise(op); }
  bool reads(int frame) const {
    return source == frame || copy_source == frame || (is_pointwise() && operand == frame);
  }

  bool has_gain() const { return sum_gain != 1 || center_gain != 0; }
  bool separable() const;

  // Whether the pass reads the alpha of other pixels to filter colours.
  bool reads_alpha() const { return op == Op::WeightedMean || weighs_alpha; }
  // Whether the colours of a pixel have one weight, so that each is filtered by all.
  bool reads_colours() const;

  int width() const { return 2 * radius_x + 1; }
  int height() const { return 2 * radius_y + 1; }

  // Minimum, Maximum: whether the window's pixel at this offset from the anchor is a member.
  bool has_member(int dx, int dy) const {
    return element.empty() || element[(radius_y + dy) * width() + radius_x + dx];
  }
};

// One plane of memory, and the bytes of it that the views of a layout use.
struct MemoryPlane {
  struct Run {
    size_t begin, length;  // bytes of a row
  };
  size_t row_bytes = 0;
  int height = 0;  // rows
  // The bytes of a row that belong to pixels. Bytes between runs belong to no pixel and are never written, for example
  // at the end of an odd row of packed 4:2:2.
  std::vector<Run> runs;
};

struct Plan {
  FrameLayout layout;
  Border border = Border::Replicate;
  Method method = Method::Auto;  // the user's choice; with `auto` the backend chooses for each pass
  Action action[kMaxPlanes][kMaxChannels] = {};
  uint16_t fill[kMaxPlanes][kMaxChannels] = {};
  std::vector<Pass> passes;         // never empty
  int temporaries = 0;              // number of temporary frames
  std::vector<MemoryPlane> memory;  // by PlaneLayout::memory_plane

  // An image that is filtered separately: a plane of the layout or, in an interlaced frame, one field of a plane.
  struct Part {
    int plane;  // in layout
    int first_row, row_step;
    int height;  // rows, at least 1
  };
  std::vector<Part> parts;
};

// The index of the part of a plane that has the same field as `part`.
inline size_t part_of_plane(const Plan &plan, int plane, const Plan::Part &part) {
  size_t i = 0;
  while (i < plan.parts.size() && (plan.parts[i].plane != plane || plan.parts[i].first_row != part.first_row)) i++;
  return i;
}

// Row 0 of a part of a frame, and the pitch from row to row of the part.
inline PlaneView part_of(const FrameView &frame, const Plan &plan, const Plan::Part &part) {
  const PlaneView &view = frame.plane[plan.layout.plane[part.plane].memory_plane];
  return {view.data + part.first_row * view.pitch, view.pitch * part.row_step};
}

// Applies the gains of a pass to its sum. The result has not been rounded yet.
CUDACONV_HOST_DEVICE inline int64_t apply_gain(int64_t sum, int sum_shift, int64_t sum_gain, int64_t center_gain,
                                               int center) {
  if (sum_shift) sum = (sum + (int64_t{1} << (sum_shift - 1))) >> sum_shift;
  return sum_gain * sum + center_gain * center;
}

// The result of a pointwise pass from a sample of its source and one of its operand.
CUDACONV_HOST_DEVICE inline int combine_samples(Op op, int source, int operand, const Rounding &rounding) {
  const int more = source - operand;
  if (op == Op::Difference) return more > 0 ? more : 0;
  return (more < 0 ? -more : more) > rounding.threshold ? source : operand;
}

// One line for a debug log: method, border and the size of each part. Each pass adds its operation, window,
// separability, bits of sums and rounding, and buffers.
std::string describe(const Plan &plan);

// The planes of memory that hold frames of this layout, indexed by PlaneLayout::memory_plane.
std::vector<MemoryPlane> memory_planes_of(const FrameLayout &layout);

// Throws Error{Settings} if the settings contradict each other or the layout, or if the method does not support the
// mask. Throws Error{Format} if no settings could filter the layout.
std::shared_ptr<const Plan> make_plan(const FilterSettings &settings, const FrameLayout &layout);

}  // namespace cudaconv
