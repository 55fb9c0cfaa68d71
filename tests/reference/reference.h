// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The reference filter defines the expected results as plainly as possible: one output sample at a time, borders step
// by step, rounding by its definition. It shares plain data types with kernels/, but no code, and it is slow.
#pragma once

#include <vector>

#include "filter.h"
#include "imageview.h"
#include "plan/regions.h"

namespace cudaconv::reference {

// The samples of one channel of one plane, rows from the top.
struct Channel {
  int width = 0, height = 0;
  std::vector<int> sample;
  // The real results before rounding, clamped to the range of a sample. Empty if results are exact: coefficients,
  // divisor and bias are integers.
  std::vector<long double> real;
};

struct Frame {
  std::vector<Channel> plane[kMaxPlanes];  // indexed by channel
};

// Reads the sample values of a frame in host memory. Does not read padding and unused bits.
Frame read(const FrameLayout &layout, const FrameView &view);

// Writes all samples; unused low bits and unnamed fields of Packed32 become 0. Writes no other bytes.
void write(const Frame &frame, const FrameLayout &layout, const FrameView &view);

// Filters a frame. `settings.method` has no effect. Settings that make no sense are not diagnosed.
Frame filter(const FilterSettings &settings, const FrameLayout &layout, const Frame &source,
             const Regions &regions = {});

// The result of `filter` with a threshold, from its result without and its input.
Frame above_threshold(const FilterSettings &settings, const FrameLayout &layout, const Frame &result,
                      const Frame &source);

// The frame `filtered` in regions, `original` elsewhere, and mixtures of both where regions have a feather.
Frame in_regions(const Frame &filtered, const Frame &original, const FrameLayout &layout, const Regions &regions);

// Whether results of a mask, with default settings, are one sum of samples with coefficients or weights of 0 or more.
bool is_mean(Mask mask);

// The position in [0, n) that is read at position i of a line of n samples; -1 for the border value.
int position(Border border, int i, int n);

// The positions, by position(), of the samples of all windows of `length` around the n samples of a line. Window i
// begins at index i.
std::vector<int> positions(Border border, int n, int length);

}  // namespace cudaconv::reference
