// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by structuring elements of any form up to 31x31, in one launch.
//
// Computes the largest sample under the element, as extremum() of methods/operations.cuh does. For erosions samples
// are complemented before and after. order.cuh compares samples.
//
// The element is a union of chords, see plan/chords.h. Rows of a tile are in shared memory as u8x4s, at first single
// pixels. Each thread has a column of results, and updates them with the u8x4s at all chords of the current length.
// Then each u8x4 becomes the extremum of itself and one to its right, so that all are extrema of runs twice as long:
//
//       x . x x . x x x      chords of 1     x . . . . . . .      of 2     . . x x . x x .
//                                                                         . . . . . . x x
//
// For chords of two rows a thread loads one row more than it has results, and each row serves two results. Other chords
// are processed two at a time. Most of a block's time goes to these loads from shared memory.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/order.cuh"

namespace cudaconv::element {

constexpr int kChordsRadius = 15, kChordsSide = 2 * kChordsRadius + 1;  // of the largest element
constexpr int kChordsLevels = 5;                                        // runs of 1, 2, 4, 8, 16
constexpr int kMostChords = (kChordsSide + 1) / 2 * kChordsSide + kChordsLevels;

// Tuned on an H200 with kernel-bench --table=goals,formats --only="dilate custom".
struct ChordsTuning {
  static constexpr int kWarpsAcross = 2, kWarpsDown = 8;  // warps of a block
  static constexpr int kRows = 8;                         // results of a thread, one below the other
  static constexpr int kMinBlocks = 2;
};

struct ChordsParams : U8x4ExtremumParams {
  int32_t levels;
  // For each level, where the chords of two rows end in `chord`, and where the other chords end, an even number.
  uint16_t two_rows_end[kChordsLevels], end[kChordsLevels];
  uint16_t chord[kMostChords];  // offset in words from a result's window to the chord
};

template <typename Order_>
struct ChordsShape {
  using Order = Order_;
  using Tuning = ChordsTuning;
  static constexpr int kMostStep = Order::kWords ? 2 : 1;  // u8x4s of a pixel
  static constexpr int kRows = Tuning::kRows, kMinBlocks = Tuning::kMinBlocks;
  static constexpr int kWarps = Tuning::kWarpsAcross * Tuning::kWarpsDown;
  static constexpr int kWidth = 32 * Tuning::kWarpsAcross, kHeight = kRows * Tuning::kWarpsDown;  // of a tile
  static constexpr int kPitch = kWidth + 2 * round_to_chunks(kChordsRadius * kMostStep);          // words
};

// Makes runs twice as long: of a row of `count` u8x4s, which are extrema of runs of `apart` u8x4s. Some at the end of
// the row become undefined.
template <typename Shape>
__device__ inline void double_runs(uint32_t *row, int count, int apart) {
  using Order = typename Shape::Order;
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 1
  for (int at = lane; at - lane < count; at += 32) {
    const auto one = Order::split(row[min(at, count - 1)]), other = Order::split(row[min(at + apart, count - 1)]);
    const uint32_t both = Order::join(Order::greatest(one, other, other));
    // All lanes have read before any of them writes; u8x4s farther to the right are still unchanged.
    __syncwarp();
    if (at < count) row[at] = both;
  }
  __syncwarp();
}

// Updates the results with the chords of a level. `window` points to the first result's window.
template <typename Shape>
__device__ inline void take_chords(const ChordsParams &p, int level, const uint32_t *window,
                                   typename Shape::Order::Split (&results)[Shape::kRows]) {
  using Order = typename Shape::Order;
  constexpr int kRows = Shape::kRows, kPitch = Shape::kPitch;
  int n = level ? p.end[level - 1] : 0;
#pragma unroll 1
  for (; n < p.two_rows_end[level]; n++) {
    const uint32_t *from = window + p.chord[n];
    auto upper = Order::split(from[0]);
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      const auto lower = Order::split(from[(i + 1) * kPitch]);
      results[i] = Order::greatest(results[i], upper, lower);
      upper = lower;
    }
  }
#pragma unroll 1
  for (; n < p.end[level]; n += 2) {
    const uint32_t *one = window + p.chord[n], *other = window + p.chord[n + 1];
#pragma unroll
    for (int i = 0; i < kRows; i++)
      results[i] = Order::greatest(results[i], Order::split(one[i * kPitch]), Order::split(other[i * kPitch]));
  }
}

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps, kBlocksAtOnce<Shape>)
    chords_kernel(const __grid_constant__ ChordsParams p) {
  using Order = typename Shape::Order;
  constexpr int kRows = Shape::kRows, kPitch = Shape::kPitch;
  const Tile tile = locate_tile(p, p.tile.height);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int rows = min(Shape::kHeight, part.height - tile.y0) + 2 * p.tile.halo_y;
  const int count = p.tile.whole_row(), step = step_of<Order::kWords>(p.tile);
  uint32_t *u8x4s = shared_memory<uint32_t>();
  const WarpRows own = load_share<Shape::kWarps, Order::kWords>(p, p.tile, tile, rows, kPitch, u8x4s);
  wait_for_copies();
  __syncwarp();
  if (Order::kWords || p.flip)
    for (int i = own.begin * kPitch + lane; i < own.end * kPitch; i += 32)
      u8x4s[i] = (Order::kWords ? u8x4s[i] & p.sample_bits : u8x4s[i]) ^ p.flip;
  __syncthreads();

  // The thread's results, and the samples at their places; results below the last row are undefined.
  const int column = warp % ChordsTuning::kWarpsAcross * 32 + lane, y = warp / ChordsTuning::kWarpsAcross * kRows;
  const uint32_t *const window = u8x4s + y * kPitch + column;
  const uint32_t *const centre = window + p.tile.halo_y * kPitch + p.tile.halo_x;
  uint32_t originals[kRows] = {};
  typename Order::Split results[kRows] = {};
  if (part.has_unfiltered) {
    each<kRows>([&](int i) { originals[i] = centre[i * kPitch]; });
  }
#pragma unroll 1
  for (int level = 0; level < p.levels; level++) {
    if (level) {
      __syncthreads();
#pragma unroll 1
      for (int row = own.begin; row < own.end; row++)
        double_runs<Shape>(u8x4s + row * kPitch, count, step << (level - 1));
      __syncthreads();
    }
    take_chords<Shape>(p, level, window, results);
  }
  U8x4Writer writer(p.tile, tile, column, y);
#pragma unroll
  for (int i = 0; i < kRows; i++) {
    const uint32_t result = Order::join(results[i]) ^ p.flip;
    writer.put(part.has_unfiltered ? blend_channels(part, result, originals[i] ^ p.flip, lane % step) : result);
  }
}

}  // namespace cudaconv::element
