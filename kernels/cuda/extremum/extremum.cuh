// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Dilations and erosions by squares up to 63x63, in one launch. plan/lower.h divides larger ones into passes.
//
// Computes the largest sample of the window around each sample, as extremum() of methods/operations.cuh does. For
// erosions samples are complemented before and after. A block loads a tile into shared memory, filters its rows in
// place, then its columns. Both use the method of van Herk and of Gil and Werman, in registers:
//
//       first pair             last pair
//   x0  x1   x2  x3  ...  xK-3  xK-2 | xK-1  xK ... x2K-2      2K-1 samples, K results, K odd
//   |---------- a window ------------------|                   each window crosses the bar
//
// The part of a window left of the bar is a suffix, the part right of it a prefix. The window's maximum is the larger
// of the maxima of both. Suffixes and prefixes grow by two samples at a time, with maxima of three. Two results share
// each of them, so a result costs two maxima for any window size.
//
// Example, K = 3, samples 5 1 | 4 2 7: the suffixes have the maxima 5 and 1, the prefixes 4, 4 and 7. The results are
// max(5, 4) = 5 for 5 1 4, max(1, 4) = 4 for 1 4 2, and 7 for 4 2 7.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/device/order.cuh"

namespace cudaconv::extremum {

// Tuned on an H200 with kernel-bench --table=goals,formats --only="dilate 15,dilate 31", and so are the groups and
// blocks of each shape in extremum.cu.
struct VanHerkTuning {
  static constexpr int kMostRows = 96;  // of results of a tile; tile heights are multiples of the window's size
};

struct VanHerkParams : U8x4ExtremumParams {
  int32_t size;
};

// Computes kSize results at once. It has registers for the largest size that it can do; with kExact that is the only
// size, known at compile time.
template <typename Order, int kLargest, bool kExact>
class VanHerk {
 public:
  // load(n) returns u8x4 n of 2 * size - 1.
  template <typename Load>
  __device__ void run(int size, Load load) {
    if (kExact) size = kLargest;
    Split so_far = {};
#pragma unroll
    for (int m = 0; m < kPairs; m++) {
      if (!there(m, size)) continue;
      const int i = size - 3 - 2 * m;
      const Split next = Order::split(load(i + 1));
      so_far = m == 0 ? next : Order::greatest(so_far, next, Order::split(first_[m - 1]));
      first_[m] = load(i);
      keep(m, so_far);
    }
    last_ = load(size - 1);
    so_far = Order::split(last_);
#pragma unroll
    for (int m = kPairs - 1; m >= 0; m--) {
      if (!there(m, size)) continue;
      const int i = size - 3 - 2 * m;
      const Split next = Order::split(load(i + size)), after = Order::split(load(i + size + 1)), suffix = kept(m);
      first_[m] = Order::join(Order::greatest(Order::split(first_[m]), suffix, so_far));
      second_[m] = Order::join(Order::greatest(suffix, so_far, next));
      so_far = Order::greatest(so_far, next, after);
    }
    last_ = Order::join(so_far);
  }

  // Calls function(n, result n) for all results, from the first one on; it may change them.
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

 private:
  using Split = typename Order::Split;
  static constexpr int kPairs = kLargest / 2;
  // Whether suffixes are kept in one register instead of two, for large windows.
  static constexpr bool kJoined = Order::kWords || kLargest > 31;

  __device__ static bool there(int m, int size) {
    return kExact || 2 * m + 1 < size;
  }
  __device__ void keep(int m, Split suffix) {
    if constexpr (kJoined) {
      second_[m] = Order::join(suffix);
    } else {
      second_[m] = suffix.odd;
      even_[m] = suffix.even;
    }
  }
  __device__ Split kept(int m) const {
    if constexpr (kJoined)
      return Order::split(second_[m]);
    else
      return {even_[m], second_[m]};
  }

  uint32_t first_[kPairs], second_[kPairs], even_[kJoined ? 1 : kPairs], last_;
};

// Pitch of a row in shared memory in words, with its halo and what the last group reads beyond it. The lanes of a warp
// are at different rows and, in each row, an odd number of words apart; the pitch puts their u8x4s in different banks.
__host__ __device__ constexpr int van_herk_pitch(int groups, int largest, int step) {
  const int odd_multiple_of = groups > 4 ? groups : 4;
  int words = groups * largest + 2 * round_to_chunks(step * (largest / 2));
  while (words % (2 * odd_multiple_of) != odd_multiple_of) words++;
  return words;
}

// How a block works. Its warps load and then filter rows, 32 / kGroups at a time; kGroups groups of a row compute as
// many results each as the window is wide. Then each thread does the same with columns.
// kExact: only for windows of that size, which is known at compile time.
// kMostStep: u8x4s of the largest pixel.
template <typename Order_, int kLargest_, bool kExact_, int kGroups_, int kMinBlocks_,
          int kMostStep_ = Order_::kWords ? 2 : 1>
struct VanHerkShape {
  using Order = Order_;
  static constexpr int kLargest = kLargest_;
  static constexpr bool kExact = kExact_;
  static constexpr int kGroups = kGroups_;
  static constexpr int kMinBlocks = kMinBlocks_;
  static constexpr int kWarps = 8;
  static constexpr int kRowsAtOnce = 32 / kGroups, kRowsOfRound = kRowsAtOnce * kWarps;
  static constexpr int kMostStep = kMostStep_;
  static constexpr int kPitch = van_herk_pitch(kGroups, kLargest, kMostStep);
  static_assert(kGroups % kMostStep == 0);
};

// A block's tile in shared memory: rows are filtered in place, results of columns go to the frame.
template <typename Shape>
class VanHerkTile {
 public:
  __device__ explicit VanHerkTile(const VanHerkParams &p) : p_(p) {}

  // Loads and filters rows; each warp has rows of its own, for which no other warp waits. When all of a row is in
  // registers, results replace it, and pixels to be copied replace their results.
  __device__ void filter_rows() {
    const WarpRows own =
        load_share<Shape::kWarps, Order::kWords, Shape::kRowsAtOnce>(p_, p_.tile, tile_, rows_, kPitch, words_);
    wait_for_copies();
    __syncwarp();
    const int halo = p_.tile.halo_x, from = halo - size_ / 2 * step();
    for (int row0 = own.begin; row0 < own.end; row0 += Shape::kRowsAtOnce) {
      const int row = row0 + lane() / Shape::kGroups, group = lane() % Shape::kGroups, word = group % step();
      uint32_t *first = words_ + row * kPitch + (group - word) * size_ + word;
      if (row < own.end)
        window_.run(size_, [&](int n) {
          const uint32_t u8x4 = first[from + n * step()];
          return (Order::kWords ? u8x4 & p_.sample_bits : u8x4) ^ flip_;
        });
      if (part_.has_unfiltered && row < own.end)
        window_.each(
            size_, [&](int n, uint32_t &u8x4) { u8x4 = blend_channels(part_, u8x4, first[halo + n * step()], word); });
      __syncwarp();
      if (row < own.end) window_.each(size_, [&](int n, uint32_t result) { first[n * step()] = result; });
    }
  }

  __device__ void filter_columns() {
    const U8x4Tile &shape = p_.tile;
    const int radius = size_ / 2, results = rows_ - 2 * radius, groups = (results + size_ - 1) / size_;
    for (int item = threadIdx.x; item - lane() < shape.width * groups; item += 32 * Shape::kWarps) {
      const int group = item / shape.width, column = item - group * shape.width;
      if (__all_sync(0xffffffffu, tile_.x0 + column >= part_.width)) continue;
      // Lanes beyond the last column of the last group write nothing.
      const int row = min(group, groups - 1) * size_;
      const uint32_t *first = words_ + row * kPitch + column;
      window_.run(size_, [&](int n) { return first[n * kPitch]; });
      if (part_.has_unfiltered)
        window_.each(size_, [&](int n, uint32_t &u8x4) {
          const uint32_t pixel = first[(n + radius) * kPitch];
          u8x4 = blend_channels(part_, u8x4 ^ flip_, pixel, column % step()) ^ flip_;
        });
      U8x4Writer writer(shape, tile_, column, group * size_);
      if (Shape::kExact && writer.puts_words())
        window_.each(size_, [&](int, uint32_t u8x4) { writer.put_word(u8x4 ^ flip_); });
      else
        window_.each(size_, [&](int, uint32_t u8x4) { writer.put(u8x4 ^ flip_); });
    }
  }

 private:
  using Order = typename Shape::Order;
  using Window = VanHerk<Order, Shape::kLargest, Shape::kExact>;
  static constexpr int kPitch = Shape::kPitch;

  __device__ static int lane() { return threadIdx.x % 32; }
  __device__ int step() const { return step_of<(Shape::kMostStep > 1)>(p_.tile); }

  const VanHerkParams &p_;
  const Tile tile_ = locate_tile(p_, p_.tile.height);
  const PartParams &part_ = tile_.part;
  const int size_ = Shape::kExact ? Shape::kLargest : p_.size;                       // of windows
  const int rows_ = min(p_.tile.height, part_.height - tile_.y0) + 2 * (size_ / 2);  // of the tile with its halo
  const uint32_t flip_ = p_.flip;
  uint32_t *const words_ = shared_memory<uint32_t>();
  Window window_;
};

template <typename Shape>
__global__ void __launch_bounds__(32 * Shape::kWarps, kBlocksAtOnce<Shape>)
    van_herk_kernel(const __grid_constant__ VanHerkParams p) {
  VanHerkTile<Shape> tile(p);
  tile.filter_rows();
  __syncthreads();
  tile.filter_columns();
}

}  // namespace cudaconv::extremum
