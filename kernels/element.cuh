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
// Samples are worked on as extremum.cuh says; erosion is dilation of the complements.
#pragma once

#include "extremum.cuh"

namespace cudaconv {

constexpr int kElementRadius = 63;  // the largest

struct ElementParams : FrameParams {
  QuadTile tile;
  uint32_t flip;         // xored with samples before and after
  uint32_t sample_bits;  // of a quad of words
  int32_t stages;
  // From the narrowest rows on: their half width, and how far from the middle the nearest ones are. The farthest of the
  // first stage are tile.halo_y away, those of others one less than the nearest of the stage before.
  uint8_t half_width[kElementRadius + 1], nearest[kElementRadius + 1];
};

// kStep: quads of a pixel.
template <typename Quads_, int kStep_>
struct ElementShape {
  using Quads = Quads_;
  static constexpr int kStep = kStep_, kWarps = 8, kRows = 8;  // of results that a thread has, one below the other
  static constexpr int kWidth = 32, kHeight = kWarps * kRows;  // of a tile, quads and rows
  // What a lane has of a row and its halo.
  static constexpr int kMost = (kWidth + 2 * round_to_chunks(kElementRadius * kStep) + 31) / 32;
};

// Words of a row in shared memory.
CUDACONV_HOST_DEVICE inline int element_pitch(const QuadTile &tile) {
  return tile.width + 2 * tile.halo_x;
}

// Has windows of half width `width` of a row, `count` quads of them, become `more` pixels wider on either side. Those
// near the ends become anything.
template <typename Shape>
__device__ inline void widen(uint32_t *row, int count, int more) {
  using Quads = typename Shape::Quads;
  const int lane = static_cast<int>(threadIdx.x % 32), apart = more * Shape::kStep;
  const auto window = [&](int n) { return Quads::split(row[min(max(n, 0), count - 1)]); };
  uint32_t wider[Shape::kMost];
#pragma unroll
  for (int i = 0; i < Shape::kMost && 32 * i < count; i++) {
    const int at = lane + 32 * i;
    wider[i] = Quads::join(Quads::template extreme<false>(window(at - apart), window(at), window(at + apart)));
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < Shape::kMost && 32 * i < count; i++)
    if (lane + 32 * i < count) row[lane + 32 * i] = wider[i];
  __syncwarp();
}

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps) element_kernel(const __grid_constant__ ElementParams p) {
  using Quads = typename Shape::Quads;
  constexpr int kRows = Shape::kRows;
  const Tile tile = locate_quad_tile(p, p.tile);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int pitch = element_pitch(p.tile), radius = p.tile.halo_y;
  const int rows = min(Shape::kHeight, part.height - tile.y0) + 2 * radius;
  const int share = (rows + Shape::kWarps - 1) / Shape::kWarps;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  uint32_t *quads = shared_memory<uint32_t>();
  if (begin < end)
    load_rows<Rows::Quads, Quads::kWords>(p, p.tile, tile, begin, end - begin, pitch, quads + begin * pitch);
  wait_for_chunks();
  __syncwarp();
  if (Quads::kWords || p.flip)
    for (int i = begin * pitch + lane; i < end * pitch; i += 32)
      quads[i] = (Quads::kWords ? quads[i] & p.sample_bits : quads[i]) ^ p.flip;
  __syncthreads();

  // The thread's results, and the samples in their place. Those below the last row are anything.
  const uint32_t *const first = quads + (radius + warp * kRows) * pitch + p.tile.halo_x + lane;
  uint32_t originals[kRows];
  typename Quads::Split results[kRows];
#pragma unroll
  for (int i = 0; i < kRows; i++) {
    originals[i] = first[i * pitch];
    results[i] = Quads::split(originals[i]);
  }
  int width = 0, farthest = radius;
#pragma unroll 1
  for (int stage = 0; stage < p.stages; stage++) {
    if (width < p.half_width[stage]) {
      while (width < p.half_width[stage]) {
        const int more = min(p.half_width[stage] - width, 2 * width + 1);
#pragma unroll 1
        for (int y = begin; y < end; y++) widen<Shape>(quads + y * pitch, pitch, more);
        width += more;
      }
      __syncthreads();
    }
#pragma unroll 1
    for (int dy = p.nearest[stage]; dy <= farthest; dy++) {
      const uint32_t *above = first - dy * pitch, *below = first + dy * pitch;
#pragma unroll
      for (int i = 0; i < kRows; i++, above += pitch, below += pitch)
        results[i] = Quads::template extreme<false>(results[i], Quads::split(*above), Quads::split(*below));
    }
    farthest = p.nearest[stage] - 1;
    __syncthreads();
  }
  QuadWriter writer(p.tile, tile, lane, warp * kRows);
  writer.template write<true>([&](auto put) {
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      const uint32_t result = Quads::join(results[i]) ^ p.flip;
      put(part.merges ? merge_word(part, result, originals[i] ^ p.flip, lane % Shape::kStep) : result);
    }
  });
}

}  // namespace cudaconv
