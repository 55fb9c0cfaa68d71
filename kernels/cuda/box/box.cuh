// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Means over rectangles of up to 127x127 pixels, in one launch, by running sums. There are two ways.
//
// Tiles, for windows of up to 15 pixels' width in small frames: running sums along the rows of a tile in shared memory,
// in place, then down the columns of these sums.
//
// Strips, for other windows, by what changes from row to row: the difference between the row that enters the windows
// and the row that leaves them is summed along the row and added to the sums of the windows above. A block goes down a
// strip of rows, some rows a step, and keeps the rows in a ring in shared memory from when they enter until they leave.
// First each warp takes rows of its own: a lane has eight neighbouring u8x4s of a row, and computes prefix sums of what
// changes. Then each thread goes down a column of u8x4s: what its windows change by is the difference of two prefix
// sums. Few more rows are loaded than there are results, but a strip takes some time to begin.
//
// Sums of up to 127 bytes fit 16 bits, so two share a register. All is exact modulo 2^32, whatever the signs: a pair is
// its lower half + 65536 * the upper half, and a word is even pair + 256 * odd pair; neither is split before it has to
// be.
#pragma once

#include <cmath>

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv {

// Tuned on an H200 with kernel-bench --table=goals,formats --only="box 15,box 31".
struct BoxTuning {
  // Tiles are for windows of up to this width, in frames so small that strips would be lower than kLeastStripHeight,
  // since strips take some time to begin.
  static constexpr int kMostTileWidth = 15, kLeastStripHeight = 32;
  static constexpr int kMostTileRows = 96;  // rows of results
  // Blocks of a multiprocessor for which tile heights are chosen, and for which the registers of a thread are limited;
  // limits for more than one block have not been measured yet.
  static constexpr int kTileBlocks = 3, kTileBoundBlocks = 1;
  static constexpr int kStripBlocks = 3;  // both, for strips
};

struct BoxParams : FrameParams {
  U8x4Tile tile;          // for strips without their halo
  int32_t width, height;  // of the window
  int32_t pitch;          // pitch of a strip's rows in shared memory, in bytes
  int32_t factor;         // factor of all samples
  // Whether results are just floor((sum + start) / divisor), see Rounding, without absolute value or clamping.
  int32_t unclamped;
  uint32_t start;
  float reciprocal;  // of the divisor, rounded up
};

// Fills in the rounding, from the window's size and the factor; p.unclamped if it is only a division.
inline void plan_box_epilogue(const Rounding &rounding, BoxParams &p) {
  const int64_t start = rounding.offset + rounding.half, divisor = 2 * rounding.half;
  const int64_t samples = int64_t{p.width} * p.height;
  p.unclamped = !rounding.absolute && p.factor > 0 && divisor % p.factor == 0 && divisor / p.factor < 1 << 15 &&
                start >= 0 && start + 255 * samples * p.factor <= rounding.limit;
  if (!p.unclamped) return;
  // floor((factor * sum + start) / divisor), with numerator and denominator divided by the factor.
  p.start = static_cast<uint32_t>(start / p.factor);
  const float quotient = static_cast<float>(divisor / p.factor), nearest = 1 / quotient;
  p.reciprocal = static_cast<double>(nearest) * quotient < 1 ? std::nextafter(nearest, 1.0f) : nearest;
}

// floor(v / divisor) for integers v below 2^23 and below 256 * divisor, and a divisor below 2^15: the product is too
// large by less than 2^-15, too little to reach the next integer. The bits of integer v are those of the float v *
// 2^-149, the smallest unit of floats, so the product is rounded down to an integer number of units.
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
