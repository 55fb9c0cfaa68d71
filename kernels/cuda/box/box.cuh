// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Means over rectangles of any size, in one launch, by running sums. There are two ways:
//
// Of up to 15 pixels' width, where frames are small, along the rows of a tile in shared memory, in place, and then down
// the columns of these sums.
//
// Others by what changes from row to row: the row that enters the windows less the one that leaves them, summed along
// the row and added to the sums of the windows above. A block goes down a strip of rows, some a step, which it has in a
// ring in shared memory from when they enter until they leave. First each warp takes rows of its own: a lane has eight
// neighbouring u8x4s of a row, and adds up what changes from the row's first u8x4 on. Then each thread goes down a
// column of u8x4s: what windows change by is the difference of two of these sums. That takes few rows more than there
// are results, but some time to begin.
//
// Sums of up to 127 bytes fit 16 bits, so two lie in a register. All is exact modulo 2^32, whatever the signs: a pair
// is its lower lane + 65536 * the upper one, and a word is even pair + 256 * odd pair; neither is taken apart before it
// has to be.
#pragma once

#include <cmath>

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv {

// For an H200; what they do is shown by kernel-bench --table=goals,formats --only="box 15,box 31".
struct BoxTuning {
  // Tiles are for windows of up to this width, where frames are so small that strips are lower than that: these take
  // some time to begin.
  static constexpr int kMostTileWidth = 15, kLeastStripHeight = 32;
  static constexpr int kMostTileRows = 96;  // of results
  // Blocks of a multiprocessor that tile heights are chosen for, and that bound the registers of a thread; bounds
  // for more than one are still to be measured.
  static constexpr int kTileBlocks = 3, kTileBoundBlocks = 1;
  static constexpr int kStripBlocks = 3;  // the same, of strips
};

struct BoxParams : FrameParams {
  U8x4Tile tile;          // of strips without their halo
  int32_t width, height;  // of the window
  int32_t pitch;          // of a strip's rows in shared memory, bytes
  int32_t factor;         // of all samples
  // Results are floor((sum + start) / divisor), no more than that, see Rounding: no magnitude, and no clamping.
  int32_t unclamped;
  uint32_t start;
  float reciprocal;  // of the divisor, not below it
};

// Fills in how sums of samples become samples where that is but a division, from the window and the factor.
inline void plan_box_epilogue(const Rounding &rounding, BoxParams &p) {
  const int64_t start = rounding.offset + rounding.half, divisor = 2 * rounding.half;
  const int64_t samples = int64_t{p.width} * p.height;
  p.unclamped = !rounding.absolute && p.factor > 0 && divisor % p.factor == 0 && divisor / p.factor < 1 << 15 &&
                start >= 0 && start + 255 * samples * p.factor <= rounding.limit;
  if (!p.unclamped) return;
  // floor((factor * sum + start) / divisor), divided by the factor above and below.
  p.start = static_cast<uint32_t>(start / p.factor);
  const float quotient = static_cast<float>(divisor / p.factor), nearest = 1 / quotient;
  p.reciprocal = static_cast<double>(nearest) * quotient < 1 ? std::nextafter(nearest, 1.0f) : nearest;
}

// floor(v / divisor), v an integer below 2^23 and 256 * divisor, the divisor below 2^15: the product is too large by
// less than 2^-15, and so reaches no further integer. The bits of an integer are those of a float as many times 2^-149,
// the least there is, and of such the product is rounded down to one.
__device__ inline int32_t divide(uint32_t v, float reciprocal) {
#ifdef __CUDA_ARCH__
  return __float_as_int(__fmul_rd(__uint_as_float(v), reciprocal));
#else
  return static_cast<int32_t>(static_cast<double>(v) * static_cast<double>(reciprocal));
#endif
}

__device__ inline uint32_t odd_pair(uint32_t u8x4) {
  return __byte_perm(u8x4, 0, 0x4341);
}

}  // namespace cudaconv
