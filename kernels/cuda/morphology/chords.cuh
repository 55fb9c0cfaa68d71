// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by structuring elements of any form up to 31x31, in one launch. The element is a union of
// chords, see plan/chords.h. Rows of a tile lie in shared memory, as u8x4s that first are single pixels. Each thread
// has a column of results, which take from them what chords of that length say; then each is made the extremum of
// itself and of one to its right, in its place, so that all of them are of runs twice as long:
//
//       x . x x . x x x      chords of 1     x . . . . . . .      of 2     . . x x . x x .
//                                                                        . . . . . . x x
//
// Chords of two rows take a row more than results, each for two of them; others are taken two at a time. What a block
// takes is mostly the loads of all this from shared memory.
//
// Samples are worked on as van_herk.cuh says; erosion is dilation of the complements.
#pragma once

#include "cuda/morphology/van_herk.cuh"

namespace cudaconv {

constexpr int kChordsRadius = 15, kChordsSide = 2 * kChordsRadius + 1;  // of the largest element
constexpr int kChordsLevels = 5;                                        // runs of 1, 2, 4, 8, 16
constexpr int kMostChords = (kChordsSide + 1) / 2 * kChordsSide + kChordsLevels;

// For an H200; what they do is shown by kernel-bench --table=goals,formats --only="dilate custom".
struct ChordsTuning {
  static constexpr int kWarpsAcross = 2, kWarpsDown = 8;  // of a block
  static constexpr int kRows = 8;                         // of results that a thread has, one below the other
  static constexpr int kMinBlocks = 2;
};

struct ChordsParams : FrameParams {
  U8x4Tile tile;
  uint32_t flip;         // xored with samples before and after
  uint32_t sample_bits;  // of a u8x4 of words
  int32_t levels;
  // Of each level, where those of two rows end, and the others, of which there are an even number.
  uint16_t two_rows_end[kChordsLevels], end[kChordsLevels];
  uint16_t chord[kMostChords];  // words from the place of a result's window to the chord
};

// kStep: u8x4s of a pixel.
template <typename Order_, int kStep_>
struct ChordsShape {
  using Order = Order_;
  using Tuning = ChordsTuning;
  static constexpr int kStep = kStep_, kRows = Tuning::kRows, kMinBlocks = Tuning::kMinBlocks;
  static constexpr int kWarps = Tuning::kWarpsAcross * Tuning::kWarpsDown;
  static constexpr int kWidth = 32 * Tuning::kWarpsAcross, kHeight = kRows * Tuning::kWarpsDown;  // of a tile
  static constexpr int kPitch = kWidth + 2 * round_to_chunks(kChordsRadius * kStep);              // words
};

// Has the u8x4s of a row, runs of `apart` u8x4s, become runs twice as long. Some of the last are anything then.
template <typename Shape>
__device__ inline void double_runs(uint32_t *row, int count, int apart) {
  using Order = typename Shape::Order;
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 1
  for (int at = lane; at - lane < count; at += 32) {
    const auto one = Order::split(row[min(at, count - 1)]), other = Order::split(row[min(at + apart, count - 1)]);
    const uint32_t both = Order::join(Order::template extreme<false>(one, other, other));
    // Those that lie farther to the right have been read by no lane that is ahead.
    __syncwarp();
    if (at < count) row[at] = both;
  }
  __syncwarp();
}

// Has the results take what the chords of a level say. `window` is the place of the first one's window.
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
      results[i] = Order::template extreme<false>(results[i], upper, lower);
      upper = lower;
    }
  }
#pragma unroll 1
  for (; n < p.end[level]; n += 2) {
    const uint32_t *one = window + p.chord[n], *other = window + p.chord[n + 1];
#pragma unroll
    for (int i = 0; i < kRows; i++)
      results[i] =
          Order::template extreme<false>(results[i], Order::split(one[i * kPitch]), Order::split(other[i * kPitch]));
  }
}

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps, kBlocksAtOnce<Shape>)
    chords_kernel(const __grid_constant__ ChordsParams p) {
  using Order = typename Shape::Order;
  constexpr int kRows = Shape::kRows, kPitch = Shape::kPitch;
  const Tile tile = locate_u8x4_tile(p, p.tile);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int rows = min(Shape::kHeight, part.height - tile.y0) + 2 * p.tile.halo_y;
  const int share = (rows + Shape::kWarps - 1) / Shape::kWarps;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  const int count = p.tile.width + 2 * p.tile.halo_x;
  uint32_t *u8x4s = shared_memory<uint32_t>();
  if (begin < end)
    load_rows<Rows::U8x4s, Order::kWords>(p, p.tile, tile, begin, end - begin, kPitch, u8x4s + begin * kPitch);
  wait_for_copies();
  __syncwarp();
  if (Order::kWords || p.flip)
    for (int i = begin * kPitch + lane; i < end * kPitch; i += 32)
      u8x4s[i] = (Order::kWords ? u8x4s[i] & p.sample_bits : u8x4s[i]) ^ p.flip;
  __syncthreads();

  // The thread's results, and the samples in their place. Those below the last row are anything.
  const int column = warp % ChordsTuning::kWarpsAcross * 32 + lane, y = warp / ChordsTuning::kWarpsAcross * kRows;
  const uint32_t *const window = u8x4s + y * kPitch + column;
  const uint32_t *const centre = window + p.tile.halo_y * kPitch + p.tile.halo_x;
  uint32_t originals[kRows] = {};
  typename Order::Split results[kRows] = {};
  if (part.has_unfiltered) {
#pragma unroll
    for (int i = 0; i < kRows; i++) originals[i] = centre[i * kPitch];
  }
#pragma unroll 1
  for (int level = 0; level < p.levels; level++) {
    if (level) {
      __syncthreads();
#pragma unroll 1
      for (int row = begin; row < end; row++)
        double_runs<Shape>(u8x4s + row * kPitch, count, Shape::kStep << (level - 1));
      __syncthreads();
    }
    take_chords<Shape>(p, level, window, results);
  }
  U8x4Writer writer(p.tile, tile, column, y);
  writer.template write<true>([&](auto put) {
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      const uint32_t result = Order::join(results[i]) ^ p.flip;
      put(part.has_unfiltered ? blend_channels(part, result, originals[i] ^ p.flip, lane % Shape::kStep) : result);
    }
  });
}

}  // namespace cudaconv
