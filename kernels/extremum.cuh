// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by squares of any size, in one launch: along the rows of a tile in shared memory, in place,
// then down its columns. Both by van Herk's and Gil's and Werman's method, in registers:
//
//       first pair             last pair
//   x0  x1   x2  x3  ...  xK-3  xK-2 | xK-1  xK ... x2K-2      2K-1 samples, K results, K odd
//   |---------- a window ------------------|                   each window crosses the bar
//
// A window's maximum is that of its samples left of the bar, a suffix, and of those right of it, a prefix. Suffixes
// and prefixes grow by two samples at once, with maxima of three; a pair of results shares both, so that a result
// costs two maxima whatever the size.
//
// Bytes are worked on two by two in 16-bit lanes: the even ones masked, the odd ones as the upper bytes of the quad as
// it is, because they decide alone.
#pragma once

#include "lanes.cuh"
#include "quads.cuh"

namespace cudaconv {

struct ExtremumParams : FrameParams {
  QuadTile tile;
  int32_t size;
  uint32_t flip;  // see ExtremumShape
};

// kSize results at once. Its registers are those of the largest size that it can do; where it is to do that one only
// (kExact), nothing asks for the size.
template <int kLargest, bool kExact, bool kLeast>
class VanHerk {
 public:
  // load(n) is quad n of 2 * size - 1.
  template <typename Load>
  __device__ void run(int size, Load load) {
    if (kExact) size = kLargest;
    uint32_t even = 0, odd = 0;
#pragma unroll
    for (int m = 0; m < kPairs; m++) {
      if (!there(m, size)) continue;
      const int i = size - 3 - 2 * m;
      const uint32_t next = load(i + 1);
      if (m == 0) {
        even = even_bytes(next);
        odd = next;
      } else {
        even = extreme(even, even_bytes(next), even_bytes(first_[m - 1]));
        odd = extreme(odd, next, first_[m - 1]);
      }
      first_[m] = load(i);
      keep(m, even, odd);
    }
    last_ = load(size - 1);
    even = even_bytes(last_);
    odd = last_;
#pragma unroll
    for (int m = kPairs - 1; m >= 0; m--) {
      if (!there(m, size)) continue;
      const int i = size - 3 - 2 * m;
      const uint32_t next = load(i + size), after = load(i + size + 1), suffix_even = kept_even(m);
      const uint32_t suffix_odd = second_[m], next_even = even_bytes(next);
      first_[m] = join_bytes(extreme(even_bytes(first_[m]), suffix_even, even), extreme(first_[m], suffix_odd, odd));
      second_[m] = join_bytes(extreme(suffix_even, even, next_even), extreme(suffix_odd, odd, next));
      even = extreme(even, next_even, even_bytes(after));
      odd = extreme(odd, next, after);
    }
    last_ = join_bytes(even, odd);
  }

  // Calls function(n, result n), from the first.
  template <typename Function>
  __device__ void each(int size, Function function) {
    if (kExact) size = kLargest;
#pragma unroll
    for (int m = kPairs - 1; m >= 0; m--) {
      if (!there(m, size)) continue;
      function(size - 3 - 2 * m, first_[m]);
      function(size - 2 - 2 * m, second_[m]);
    }
    function(size - 1, last_);
  }

  // The same; what function returns becomes the result.
  template <typename Function>
  __device__ void change(int size, Function function) {
    if (kExact) size = kLargest;
#pragma unroll
    for (int m = kPairs - 1; m >= 0; m--) {
      if (!there(m, size)) continue;
      first_[m] = function(size - 3 - 2 * m, first_[m]);
      second_[m] = function(size - 2 - 2 * m, second_[m]);
    }
    last_ = function(size - 1, last_);
  }

 private:
  __device__ static uint32_t extreme(uint32_t a, uint32_t b, uint32_t c) {
    return kLeast ? ByteLanes<4>::least(a, b, c) : ByteLanes<4>::largest(a, b, c);
  }

  static constexpr int kPairs = kLargest / 2;
  // Suffixes of large windows share a register.
  static constexpr bool kJoined = kLargest > 31;

  __device__ static bool there(int m, int size) {
    return kExact || 2 * m + 1 < size;
  }
  __device__ void keep(int m, uint32_t even, uint32_t odd) {
    second_[m] = kJoined ? join_bytes(even, odd) : odd;
    if constexpr (!kJoined) even_[m] = even;
  }
  __device__ uint32_t kept_even(int m) const {
    if constexpr (kJoined)
      return even_bytes(second_[m]);
    else
      return even_[m];
  }

  uint32_t first_[kPairs], second_[kPairs], even_[kJoined ? 1 : kPairs], last_;
};

// Words of a row in shared memory, its halo and what the last group reads beyond included; such that the lanes of a
// warp, which are at different rows and an odd number of words apart in each, find their quads in different banks.
__host__ __device__ constexpr int extremum_pitch(int groups, int largest) {
  const int odd_multiple_of = groups > 4 ? groups : 4;
  int words = groups * largest + 2 * round_to_chunks(largest / 2);
  while (words % (2 * odd_multiple_of) != odd_multiple_of) words++;
  return words;
}

// How a block works. Its warps load and then filter rows, 32 / kGroups at a time, in each kGroups times as many results
// as the window is wide; then each thread does the same with columns. kExact: for windows of that size only, and in one
// direction, with all that is known beforehand; else for either, the least samples being the complements of their
// complements' largest ones: samples are xored with `flip` before and after.
template <int kLargest_, bool kExact_, int kGroups_, int kMinBlocks_, bool kLeast_>
struct ExtremumShape {
  static constexpr int kLargest = kLargest_;
  static constexpr bool kExact = kExact_, kLeast = kLeast_;
  static_assert(kExact || !kLeast);
  static constexpr int kGroups = kGroups_;
  static constexpr int kMinBlocks = kMinBlocks_;
  static constexpr int kWarps = 8;
  // Shared memory does not hold a tile as high as the window.
  static constexpr bool kLow = kLargest > 63;
  static constexpr int kRowsAtOnce = 32 / kGroups, kRowsOfRound = kRowsAtOnce * kWarps;
  static constexpr int kPitch = extremum_pitch(kGroups, kLargest);
};

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps, blocks_at_once(Shape::kMinBlocks))
    extremum_kernel(const __grid_constant__ ExtremumParams p) {
  constexpr int kPitch = Shape::kPitch;
  const QuadTile &shape = p.tile;
  const Tile tile = locate_quad_tile(p, shape);
  const PartParams &part = tile.part;
  const int size = Shape::kExact ? Shape::kLargest : p.size, radius = size / 2;
  const uint32_t flip = Shape::kExact ? 0 : p.flip;
  uint32_t *quads = shared_memory<uint32_t>();
  VanHerk<Shape::kLargest, Shape::kExact, Shape::kLeast> window;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rows = min(shape.height, part.height - tile.y0) + 2 * radius;
  const int share = (rows + Shape::kRowsOfRound - 1) / Shape::kRowsOfRound * Shape::kRowsAtOnce;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  if (begin < end) load_rows(p, shape, tile, begin, end - begin, kPitch, quads + begin * kPitch);
  wait_for_chunks();
  __syncwarp();
  // Each warp filters the rows that it has loaded: once all of a row is in registers, results take its place, pixels
  // to be copied in the place of theirs.
  for (int row0 = begin; row0 < end; row0 += Shape::kRowsAtOnce) {
    const int row = row0 + lane / Shape::kGroups, column = lane % Shape::kGroups * size;
    uint32_t *first = quads + row * kPitch + column;
    if (row < end) {
      const uint32_t *source = first + shape.halo_x - radius;
      window.run(size, [&](int n) { return source[n] ^ flip; });
    }
    if (part.merges && row < end)
      window.change(size, [&](int n, uint32_t quad) { return merge_quad(part, quad, first[n + shape.halo_x]); });
    __syncwarp();
    if (row < end) window.each(size, [&](int n, uint32_t quad) { first[n] = quad; });
  }
  __syncthreads();

  const int results = rows - 2 * radius, groups = (results + size - 1) / size;
  for (int item = threadIdx.x; item - lane < shape.width * groups; item += 32 * Shape::kWarps) {
    const int group = item / shape.width, column = item - group * shape.width;
    if (__all_sync(0xffffffffu, tile.x0 + column >= part.width)) continue;
    // Lanes beyond the last column of the last group write nothing.
    const int row = min(group, groups - 1) * size, last = rows - 1 - row;
    const uint32_t *first = quads + row * kPitch + column;
    window.run(size, [&](int n) { return first[(Shape::kLow ? min(n, last) : n) * kPitch]; });
    if (part.merges)
      window.change(size, [&](int n, uint32_t quad) {
        const uint32_t pixel = first[(Shape::kLow ? min(n + radius, last) : n + radius) * kPitch];
        return merge_quad(part, quad ^ flip, pixel) ^ flip;
      });
    QuadWriter writer(shape, tile, column, group * size);
    writer.template write<!Shape::kExact>(
        [&](auto put) { window.each(size, [&](int, uint32_t quad) { put(quad ^ flip); }); });
  }
}

}  // namespace cudaconv
