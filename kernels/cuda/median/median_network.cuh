// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Medians of squares of kSize, 7 to 15, by networks in registers. They have the same bytes as median() of
// methods/operations.cuh. Four windows share most of their samples:
//
// clang-format off
//   o a a a a a a p      The windows of the four results consist of o, a, c and m; of a, p, m and d; of c, m, q and b;
//   c m m m m m m d      and of m, d, b and r.
//   c m m m m m m d
//        ...             m is merged from sorted pairs of rows. Each step down makes one new pair and keeps the others.
//   c m m m m m m d      Samples of m that cannot be the median are dropped, then more of them when a, or b, is merged.
//   q b b b b b b r      Columns c and d and the corners decide.
// clang-format on
//
// Example, kSize = 7: a window has 49 samples, 36 of them in m. The other 13 move the median by at most 13 ranks, so 14
// samples of m can be the median. Merging the 6 samples of a leaves 8. The 6 of c and the corner o then decide.
//
// Each lane filters two columns of u8x4s: first their even bytes, then their odd bytes. Words of two 16-bit samples are
// filtered as they are.
#pragma once

#include "cuda/device/networks.cuh"
#include "cuda/device/u8x4_tile.cuh"

namespace cudaconv::median {

template <int kSize_, bool kWords_>
struct NetworkMedianShape {
  static constexpr int kSize = kSize_;
  static constexpr bool kWords = kWords_, kHalf = !kWords;
  static constexpr int kWarps = kSize == 15 ? 6 : kSize == 13 ? 8 : 4, kRows = 16;  // of a block; of a warp, of results
  static constexpr int kWidth = 64, kHeight = kWarps * kRows, kThreads = 32 * kWarps;
  static constexpr int kMinBlocks = kSize >= 13 ? 1 : kSize == 7 ? 5 : kSize == 9 ? 3 : 2;
};

// Medians of the kSize x kSize windows around four neighbouring samples, in registers of two. The sorted pairs of rows
// of m are in a ring in shared memory: medians do not depend on the order of the pairs.
template <typename Shape>
struct FourMedians {
  using Networks = PairNetworks<Shape::kHalf>;
  static constexpr int kSize = Shape::kSize, kSide = kSize - 1, kPairs = kSide / 2, kPair = 2 * kSide;
  // The samples of m, once sorted, that can be the median: kMiddle of them from rank kFirst on. kOthers samples of a
  // window are not in m.
  static constexpr int kOthers = kSize * kSize - kSide * kSide, kFirst = kSize * kSize / 2 - kOthers;
  static constexpr int kMiddle = kOthers + 1, kRest = kSize + 1;

  // `memory`: kPairs * kPair words for each thread of the block.
  __device__ explicit FourMedians(uint32_t *memory) : pairs_(memory + threadIdx.x) {}

  // Moves the windows down by two sorted rows.
  __device__ void push(const uint32_t (&upper)[kSide], const uint32_t (&lower)[kSide]) {
    uint32_t rows[kPair];
    Networks::template merge<0>(upper, lower, rows);
    uint32_t *const to = pairs_ + next_ * kPair * Shape::kThreads;
    each<kPair>([&](int n) { to[n * Shape::kThreads] = rows[n]; });
    next_ = next_ + 1 < kPairs ? next_ + 1 : 0;
  }

  // The samples of m that can be the median, sorted.
  __device__ void middle(uint32_t (&m)[kMiddle]) const {
    uint32_t first[kPairs / 2 * kPair], second[(kPairs + 1) / 2 * kPair];
    collect<0>(first);
    collect<kPairs / 2>(second);
    Networks::template merge<kFirst>(first, second, m);
  }

  // Merges a sorted row beside m, and leaves out samples that can no longer be the median.
  __device__ static void narrow(const uint32_t (&m)[kMiddle], const uint32_t (&row)[kSide], uint32_t (&rest)[kRest]) {
    Networks::template merge<kSide>(m, row, rest);
  }

  // The median of the remaining samples, a sorted column beside m, and a corner.
  __device__ static uint32_t median(const uint32_t (&rest)[kRest], const uint32_t (&column)[kSide], uint32_t corner) {
    const uint32_t low = Networks::template pick<kSide>(rest, column);
    const uint32_t high = Networks::template pick<kSide + 1>(rest, column);
    return Networks::vmax(low, Networks::vmin(corner, high));
  }

 private:
  // Merges pairs from number kBegin on.
  template <int kBegin, int kCount>
  __device__ void collect(uint32_t (&out)[kCount]) const {
    constexpr int kLists = kCount / kPair;
    if constexpr (kLists == 1) {
      each<kPair>([&](int n) { out[n] = pairs_[(kBegin * kPair + n) * Shape::kThreads]; });
    } else {
      uint32_t first[kLists / 2 * kPair], second[(kLists + 1) / 2 * kPair];
      collect<kBegin>(first);
      collect<kBegin + kLists / 2>(second);
      Networks::template merge<0>(first, second, out);
    }
  }

  uint32_t *const pairs_;
  int next_ = 0;  // the pair that is replaced next
};

// Reads the samples of a lane's windows from shared memory: the even bytes of u8x4s, or the odd ones.
template <typename Shape>
class WindowReader {
 public:
  static constexpr int kSize = Shape::kSize, kSide = kSize - 1;

  // `row` is the first row of the first window.
  __device__ WindowReader(const U8x4Tile &shape, const uint32_t *u8x4s, int row, bool odd)
      : pitch_(shape.whole_row()), step_(step_of<Shape::kWords>(shape)), odd_(odd) {
    first_ = u8x4s + row * pitch_ + shape.halo_x + column(shape, 0) - kSize / 2 * step_;
  }

  // The column, in u8x4s of the tile, of the lane's left or right results. Example: lane 3 has columns 6 and 7; with
  // two u8x4s a pixel, columns 5 and 7.
  __device__ static int column(const U8x4Tile &shape, int right) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return step_of<Shape::kWords>(shape) == 1 ? 2 * lane + right : lane / 2 * 4 + lane % 2 + 2 * right;
  }

  __device__ uint32_t at(int row, int x) const { return take(first_[row * pitch_ + x * step_]); }

  // Sorts the samples of a row that both windows contain.
  __device__ void sorted_row(int row, uint32_t (&v)[kSide]) const {
    each<kSide>([&](int i) { v[i] = at(row, 1 + i); });
    PairNetworks<Shape::kHalf>::sort(v);
  }

  // Sorts the samples that only the left, or only the right, windows contain, in the rows that both rows of windows
  // contain.
  __device__ void sorted_column(int row, int right, uint32_t (&v)[kSide]) const {
    each<kSide>([&](int j) { v[j] = at(row + j, right ? kSize : 0); });
    PairNetworks<Shape::kHalf>::sort(v);
  }

 private:
  __device__ uint32_t take(uint32_t word) const {
    if constexpr (Shape::kWords) return word;
    return __byte_perm(word, 0, odd_ ? 0x4341 : 0x4240);
  }

  const int pitch_, step_;
  const bool odd_;
  const uint32_t *first_;
};

// Stores the medians of a warp's `rows` rows of results, from row `first` of the tile on, in `results`. For 8-bit
// samples the odd bytes are merged into the even ones.
template <typename Shape>
__device__ inline void filter_rows(const U8x4Tile &shape, const uint32_t *u8x4s, int first, int rows, bool odd,
                                   uint32_t *results, uint32_t *pairs) {
  using Windows = FourMedians<Shape>;
  constexpr int kSide = Shape::kSize - 1;
  const WindowReader<Shape> reader(shape, u8x4s, first, odd);
  Windows windows(pairs);
  uint32_t row[kSide], next[kSide];
#pragma unroll 1
  for (int j = 1; j < kSide; j += 2) {
    reader.sorted_row(j, row);
    reader.sorted_row(j + 1, next);
    windows.push(row, next);
  }
#pragma unroll 1
  for (int y = 0; y < rows; y += 2) {
    uint32_t middle[Windows::kMiddle], above[Windows::kRest], below[Windows::kRest];
    windows.middle(middle);
    reader.sorted_row(y, row);
    Windows::narrow(middle, row, above);
    reader.sorted_row(y + Shape::kSize, next);
    Windows::narrow(middle, next, below);
#pragma unroll 1
    for (int right = 0; right < 2; right++) {
      const int column = WindowReader<Shape>::column(shape, right), x = right ? Shape::kSize : 0;
      uint32_t beside[kSide];
      reader.sorted_column(y + 1, right, beside);
      uint32_t *const out = results + y * Shape::kWidth + column;
      const auto put = [&](uint32_t *to, uint32_t median) { *to = !Shape::kWords && odd ? *to | median << 8 : median; };
      put(out, Windows::median(above, beside, reader.at(y, x)));
      put(out + Shape::kWidth, Windows::median(below, beside, reader.at(y + Shape::kSize, x)));
    }
    if (y + 2 >= rows) break;
    reader.sorted_row(y + Shape::kSize + 1, row);
    windows.push(next, row);
  }
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, kBlocksAtOnce<Shape>)
    network_median_kernel(const __grid_constant__ U8x4Params p) {
  const Tile tile = locate_tile(p, p.tile.height);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int pitch = p.tile.whole_row(), radius = Shape::kSize / 2;
  const int rows = min(Shape::kHeight, part.height - tile.y0) + 2 * radius;
  uint32_t *const u8x4s = shared_memory<uint32_t>();
  const WarpRows own = load_share<Shape::kWarps, Shape::kWords>(p, p.tile, tile, rows, pitch, u8x4s);
  wait_for_copies();
  __syncwarp();
  if constexpr (Shape::kWords)
    for (int i = own.begin * pitch + lane; i < own.end * pitch; i += 32) u8x4s[i] &= p.sample_bits;
  __syncthreads();
  const int first = warp * Shape::kRows, own_rows = min(Shape::kRows, rows - 2 * radius - first);
  if (own_rows <= 0) return;
  uint32_t *const all_results = u8x4s + (Shape::kHeight + 2 * radius) * pitch;
  uint32_t *const pairs = all_results + Shape::kHeight * Shape::kWidth, *const results =
                                                                            all_results + first * Shape::kWidth;
  const int halves = !part.has_filtered ? 0 : Shape::kWords ? 1 : 2;
#pragma unroll 1
  for (int odd = 0; odd < halves; odd++) filter_rows<Shape>(p.tile, u8x4s, first, own_rows, odd, results, pairs);
  __syncwarp();
#pragma unroll 1
  for (int column = lane; column < Shape::kWidth; column += 32) {
    const uint32_t *const originals = u8x4s + (first + radius) * pitch + p.tile.halo_x + column;
    U8x4Writer writer(p.tile, tile, column, first);
#pragma unroll 4
    for (int y = 0; y < own_rows; y++) {
      const uint32_t result = results[y * Shape::kWidth + column];
      writer.put(part.has_unfiltered ? blend_channels(part, result, originals[y * pitch], column % p.tile.step)
                                     : result);
    }
  }
}

}  // namespace cudaconv::median
