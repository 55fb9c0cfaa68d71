// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Bilateral: a Gaussian that keeps edges. p are the samples of a window, c is its middle sample. With
// alpha=weighted a is the alpha of their pixels, otherwise 1. A result is
//
//   sum(s * r(|p - c|) * a * p) / sum(s * r(|p - c|) * a)
//
// The weight s falls with the distance from the middle, r with the difference. Both are integers of 16 bits, so that
// sums are exact in any order, and each quotient is rounded once. Where all weights of a window are 0, they count
// without alpha.
//
// The colours of an RGB pixel have one weight: r of the sum of their three differences. Alpha has its own.
//
// Sums without alpha fit 64 bits: 31 * 31 * 65535^3 < 2^58.
#pragma once

#include <cstdint>
#include <vector>

#include "filter.h"
#include "imageview.h"
#include "plan/rounding.h"

namespace cudaconv {

struct Pass;

// The weight of the middle sample: the largest s and the largest r.
constexpr int kBilateralOne = 65535;
// The most entries of a table. Tables of differences up to 1023 have an entry for each.
constexpr int kMostRangeEntries = 1025;

// The weights r of sums of `components` differences between samples of `depth` bits. Entry i is the pair of
// r(i * 2^shift), in its low half, and how much less r((i + 1) * 2^shift) is, in its high half. Between the two, r is
// linear. If sums lie beyond the table, its last entry is 0, and they weigh 0.
struct RangeTable {
  int depth = 0, components = 1, shift = 0;
  std::vector<uint32_t> entry;

  int last() const { return static_cast<int>(entry.size()) - 1; }
};

constexpr int kColours = 3;  // of RGB

struct BilateralTables {
  std::vector<RangeTable> range;                 // at most two
  uint8_t table[kMaxPlanes][kMaxChannels] = {};  // index in `range` for each channel
  // RGB: where the colours of a pixel are. They are in one plane, or each has a plane.
  bool is_rgb = false;
  struct Place {
    int plane = 0, channel = 0;
  } colour[kColours];

  const RangeTable &of(int plane, int channel) const { return range[table[plane][channel]]; }
  bool is_colour(int plane, int channel) const;
  // Whether a plane has colours, and whether other planes have more of them.
  bool has_colours(int plane) const;
  bool is_planar() const { return is_rgb && colour[0].plane != colour[1].plane; }
  // The table of the colours of RGB.
  const RangeTable &of_colours() const { return of(colour[0].plane, colour[0].channel); }
  // The tables for a frame in which channel c of plane 0 has become channel 0 of plane c.
  BilateralTables spread() const;
};

// r of a difference, which is 0 or more, by the `last + 1` entries of a table.
CUDACONV_HOST_DEVICE inline uint32_t range_weight(const uint32_t *entry, int shift, int last, int difference) {
  const int at = difference >> shift, i = at < last ? at : last;
  const uint32_t pair = entry[i], rest = static_cast<uint32_t>(difference - (i << shift));
  return (pair & 0xffff) - (((pair >> 16) * rest + ((1u << shift) >> 1)) >> shift);
}

// floor(n / d + 1/2)
CUDACONV_HOST_DEVICE inline int rounded_mean(uint64_t n, uint64_t d) {
  return static_cast<int>((n + d / 2) / d);
}

// Fills in operation, radii, mask (s, rows from the top) and tables of a pass. Throws Error{Settings}.
void compile_bilateral(const FilterSettings &settings, const FrameLayout &layout, Pass &pass);

}  // namespace cudaconv
