// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by structuring elements that are larger than the sliding kernels', in one launch: ellipses,
// crosses, and all whose rows are runs of samples about the middle, none longer than one nearer to it.
//
//       . . x . .     half width 0        Rows of a tile lie in shared memory. First each of their samples is that of
//       . x x x .                1        windows of half width 0; then warps widen the windows of their rows in place:
//       x x x x x                2        three of half width w, d apart, make one of w + d, d no more than 2w + 1.
//       . x x x .                1        When windows are as wide as some rows of the element, each thread takes what
//       . . x . .                0        it needs from the rows above and below its own.
//
// Samples are worked on as van_herk.cuh says; erosion is dilation of the complements.
#pragma once

#include "cuda/morphology/van_herk.cuh"

namespace cudaconv {

constexpr int kStructuringElementRadius = 63;  // the largest

// For an H200; what they do is shown by kernel-bench --table=goals,formats --only="dilate ellipse 15".
struct StructuringElementTuning {
  static constexpr int kWarps = 8, kRows = 8;  // of a block; of results that a thread has, one below the other
};

struct StructuringElementParams : FrameParams {
  U8x4Tile tile;
  uint32_t flip;         // xored with samples before and after
  uint32_t sample_bits;  // of a u8x4 of words
  int32_t stages;
  // From the narrowest rows on: their half width, and how far from the middle the nearest ones are. The farthest of the
  // first stage are tile.halo_y away, those of others one less than the nearest of the stage before.
  uint8_t half_width[kStructuringElementRadius + 1], nearest[kStructuringElementRadius + 1];
};

// kStep: u8x4s of a pixel.
template <typename Order_, int kStep_>
struct StructuringElementShape {
  using Order = Order_;
  static constexpr int kStep = kStep_;
  static constexpr int kWarps = StructuringElementTuning::kWarps, kRows = StructuringElementTuning::kRows;
  static constexpr int kWidth = 32, kHeight = kWarps * kRows;  // of a tile, u8x4s and rows
  // u8x4s that a lane has of a row and its halo.
  static constexpr int kMost = (kWidth + 2 * round_to_chunks(kStructuringElementRadius * kStep) + 31) / 32;
};

// Words of a row in shared memory.
CUDACONV_HOST_DEVICE inline int structuring_element_pitch(const U8x4Tile &tile) {
  return tile.width + 2 * tile.halo_x;
}

// Has windows of half width `width` of a row, `count` u8x4s of them, become `more` pixels wider on either side. The
// outermost `more` pixels on either side are left undefined.
template <typename Shape>
__device__ inline void widen(uint32_t *row, int count, int more) {
  using Order = typename Shape::Order;
  const int lane = static_cast<int>(threadIdx.x % 32), apart = more * Shape::kStep;
  const auto window = [&](int n) { return Order::split(row[min(max(n, 0), count - 1)]); };
  uint32_t wider[Shape::kMost];
#pragma unroll
  for (int i = 0; i < Shape::kMost && 32 * i < count; i++) {
    const int at = lane + 32 * i;
    wider[i] = Order::join(Order::template extreme<false>(window(at - apart), window(at), window(at + apart)));
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < Shape::kMost && 32 * i < count; i++)
    if (lane + 32 * i < count) row[lane + 32 * i] = wider[i];
  __syncwarp();
}

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps)
    structuring_element_kernel(const __grid_constant__ StructuringElementParams p) {
  using Order = typename Shape::Order;
  constexpr int kRows = Shape::kRows;
  const Tile tile = locate_u8x4_tile(p, p.tile);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int pitch = structuring_element_pitch(p.tile), radius = p.tile.halo_y;
  const int rows = min(Shape::kHeight, part.height - tile.y0) + 2 * radius;
  const int share = (rows + Shape::kWarps - 1) / Shape::kWarps;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  uint32_t *u8x4s = shared_memory<uint32_t>();
  if (begin < end)
    load_rows<Rows::U8x4s, Order::kWords>(p, p.tile, tile, begin, end - begin, pitch, u8x4s + begin * pitch);
  wait_for_copies();
  __syncwarp();
  if (Order::kWords || p.flip)
    for (int i = begin * pitch + lane; i < end * pitch; i += 32)
      u8x4s[i] = (Order::kWords ? u8x4s[i] & p.sample_bits : u8x4s[i]) ^ p.flip;
  __syncthreads();

  // The thread's results, and the samples in their place. Those below the last row are anything.
  const uint32_t *const first = u8x4s + (radius + warp * kRows) * pitch + p.tile.halo_x + lane;
  uint32_t originals[kRows];
  typename Order::Split results[kRows];
#pragma unroll
  for (int i = 0; i < kRows; i++) {
    originals[i] = first[i * pitch];
    results[i] = Order::split(originals[i]);
  }
  int width = 0, farthest = radius;
#pragma unroll 1
  for (int stage = 0; stage < p.stages; stage++) {
    if (width < p.half_width[stage]) {
      while (width < p.half_width[stage]) {
        const int more = min(p.half_width[stage] - width, 2 * width + 1);
#pragma unroll 1
        for (int y = begin; y < end; y++) widen<Shape>(u8x4s + y * pitch, pitch, more);
        width += more;
      }
      __syncthreads();
    }
#pragma unroll 1
    for (int dy = p.nearest[stage]; dy <= farthest; dy++) {
      const uint32_t *above = first - dy * pitch, *below = first + dy * pitch;
#pragma unroll
      for (int i = 0; i < kRows; i++, above += pitch, below += pitch)
        results[i] = Order::template extreme<false>(results[i], Order::split(*above), Order::split(*below));
    }
    farthest = p.nearest[stage] - 1;
    __syncthreads();
  }
  U8x4Writer writer(p.tile, tile, lane, warp * kRows);
  writer.template write<true>([&](auto put) {
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      const uint32_t result = Order::join(results[i]) ^ p.flip;
      put(part.has_unfiltered ? blend_channels(part, result, originals[i] ^ p.flip, lane % Shape::kStep) : result);
    }
  });
}

}  // namespace cudaconv
