// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Medians of squares of kSize, 7 to 15, by networks in registers. Four windows share most of their samples:
//
// clang-format off
//   o a a a a a a p      The window of the first consists of o, a, c and m, those of the others of a, p, m and d; of c,
//   c m m m m m m d      m, q and b; and of m, d, b and r.
//   c m m m m m m d
//        ...             m is merged from sorted rows, two by two: going down, each step has two rows more, and the
//   c m m m m m m d      pairs of rows of the step before. Of its samples those stay that can be the middle of kSize^2
//   q b b b b b b r      with so many others beside them; a, or b, leaves fewer, and the columns c and d and the corners
//                        are the last.
// clang-format on
//
// A warp has two columns of u8x4s a lane; of each the even bytes come first, then the odd ones. Samples of 16 bits are
// two a word as they are.
#pragma once

#include "cuda/device/u8x4_tile.cuh"
#include "cuda/median/networks.cuh"

namespace cudaconv {

struct NetworkMedianParams : FrameParams {
  U8x4Tile tile;
  uint32_t sample_bits;  // of a u8x4 of words
};

// kStep: u8x4s of a pixel.
template <int kSize_, bool kWords_, int kStep_>
struct NetworkMedianShape {
  static constexpr int kSize = kSize_, kStep = kStep_;
  static constexpr bool kWords = kWords_, kHalf = !kWords;
  // The sorted pairs of rows of larger windows and what is merged from them are more than a thread has registers.
  static constexpr bool kPairsInShared = kSize >= 13;
  static constexpr int kWarps = kSize == 15 ? 6 : kSize == 13 ? 8 : 4, kRows = 16;  // of a block; of results, of a warp
  static constexpr int kWidth = 64, kHeight = kWarps * kRows, kThreads = 32 * kWarps;
  static constexpr int kMinBlocks = kPairsInShared ? 1 : kSize == 7 ? 5 : kSize == 9 ? 3 : 2;
};

// The sorted pairs of rows of a thread's windows, of which the one that came first goes when one more comes.
template <int kPairs, int kPair>
struct PairsInRegisters {
  uint32_t pair[kPairs][kPair];

  __device__ explicit PairsInRegisters(uint32_t *) {}
  __device__ void push(const uint32_t (&rows)[kPair]) {
#pragma unroll
    for (int i = 0; i + 1 < kPairs; i++)
#pragma unroll
      for (int n = 0; n < kPair; n++) pair[i][n] = pair[i + 1][n];
#pragma unroll
    for (int n = 0; n < kPair; n++) pair[kPairs - 1][n] = rows[n];
  }
  template <int kIndex>
  __device__ void get(uint32_t (&rows)[kPair]) const {
#pragma unroll
    for (int n = 0; n < kPair; n++) rows[n] = pair[kIndex][n];
  }
};

// The same in shared memory: a ring, since medians do not depend on the order of the pairs.
template <int kPairs, int kPair, int kThreads>
struct PairsInShared {
  uint32_t *const words;
  int next = 0;

  __device__ explicit PairsInShared(uint32_t *memory) : words(memory + threadIdx.x) {}
  __device__ void push(const uint32_t (&rows)[kPair]) {
    uint32_t *const to = words + next * kPair * kThreads;
#pragma unroll
    for (int n = 0; n < kPair; n++) to[n * kThreads] = rows[n];
    next = next + 1 < kPairs ? next + 1 : 0;
  }
  template <int kIndex>
  __device__ void get(uint32_t (&rows)[kPair]) const {
#pragma unroll
    for (int n = 0; n < kPair; n++) rows[n] = words[(kIndex * kPair + n) * kThreads];
  }
};

// The windows of kSize around four neighbouring samples, in registers of two.
template <typename Shape>
struct FourMedians {
  using Networks = PairNetworks<Shape::kHalf>;
  static constexpr int kSize = Shape::kSize, kSide = kSize - 1, kPairs = kSide / 2, kPair = 2 * kSide;
  // Of m, sorted: those that can still be the median, with one more on either side than there are others.
  static constexpr int kOthers = kSize * kSize - kSide * kSide, kFirst = kSize * kSize / 2 - kOthers;
  static constexpr int kMiddle = kOthers + 1, kRest = kSize + 1;

  std::conditional_t<Shape::kPairsInShared, PairsInShared<kPairs, kPair, Shape::kThreads>,
                     PairsInRegisters<kPairs, kPair>>
      pairs;  // rows of m, two by two, sorted

  // `memory`: kPairs * kPair words a thread of the block, where they are in shared memory.
  __device__ explicit FourMedians(uint32_t *memory) : pairs(memory) {}

  // Goes down by the two sorted rows.
  __device__ void push(const uint32_t (&upper)[kSide], const uint32_t (&lower)[kSide]) {
    uint32_t rows[kPair];
    Networks::template merge<0>(upper, lower, rows);
    pairs.push(rows);
  }

  // The middle of m.
  __device__ void middle(uint32_t (&m)[kMiddle]) const {
    uint32_t first[kPairs / 2 * kPair], second[(kPairs + 1) / 2 * kPair];
    collect<0>(first);
    collect<kPairs / 2>(second);
    Networks::template merge<kFirst>(first, second, m);
  }

  // Without those that a row beside m, sorted, leaves no chance.
  __device__ static void narrow(const uint32_t (&m)[kMiddle], const uint32_t (&row)[kSide], uint32_t (&rest)[kRest]) {
    Networks::template merge<kSide>(m, row, rest);
  }

  // The median of those, a sorted column beside m, and a corner.
  __device__ static uint32_t median(const uint32_t (&rest)[kRest], const uint32_t (&column)[kSide], uint32_t corner) {
    const uint32_t low = Networks::template pick<kSide>(rest, column);
    const uint32_t high = Networks::template pick<kSide + 1>(rest, column);
    return Networks::vmax(low, Networks::vmin(corner, high));
  }

 private:
  template <int kBegin, int kCount>
  __device__ void collect(uint32_t (&out)[kCount]) const {
    constexpr int kLists = kCount / kPair;
    if constexpr (kLists == 1) {
      pairs.template get<kBegin>(out);
    } else {
      uint32_t first[kLists / 2 * kPair], second[(kLists + 1) / 2 * kPair];
      collect<kBegin>(first);
      collect<kBegin + kLists / 2>(second);
      Networks::template merge<0>(first, second, out);
    }
  }
};

// The samples of a lane's windows in shared memory, even or odd ones.
template <typename Shape>
class WindowReader {
 public:
  static constexpr int kSize = Shape::kSize, kSide = kSize - 1;

  // `row` is that of the first window's first row.
  __device__ WindowReader(const U8x4Tile &shape, const uint32_t *u8x4s, int row, bool odd)
      : pitch_(pitch_of(shape)), odd_(odd) {
    first_ = u8x4s + row * pitch_ + shape.halo_x + column(0) - kSize / 2 * Shape::kStep;
  }
  // Words of a row in shared memory.
  CUDACONV_HOST_DEVICE static int pitch_of(const U8x4Tile &shape) { return shape.width + 2 * shape.halo_x; }

  // The u8x4 of the lane's left or right results, from the tile's first.
  __device__ static int column(int right) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (Shape::kStep == 1) return 2 * lane + right;
    return lane / 2 * 4 + lane % 2 + 2 * right;
  }

  __device__ uint32_t at(int row, int x) const { return take(first_[row * pitch_ + x * Shape::kStep]); }

  // The samples of a row that both windows have, sorted.
  __device__ void sorted_row(int row, uint32_t (&v)[kSide]) const {
    const uint32_t *const from = first_ + row * pitch_;
    if constexpr (Shape::kStep == 1) {
      // Pairs of words that begin at an even one.
      constexpr int kBefore = kSize / 2 % 2 ? 0 : 1;
#pragma unroll
      for (int i = 0; i < kSide + kBefore; i += 2) {
        const uint2 two = *reinterpret_cast<const uint2 *>(from + 1 - kBefore + i);
        if (i - kBefore >= 0) v[i - kBefore] = take(two.x);
        if (i - kBefore + 1 < kSide) v[i - kBefore + 1] = take(two.y);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kSide; i++) v[i] = take(from[(1 + i) * Shape::kStep]);
    }
    PairNetworks<Shape::kHalf>::sort(v);
  }

  // The samples of the left or right windows alone, of the rows that both have, sorted.
  __device__ void sorted_column(int row, int right, uint32_t (&v)[kSide]) const {
#pragma unroll
    for (int j = 0; j < kSide; j++) v[j] = at(row + j, right ? kSize : 0);
    PairNetworks<Shape::kHalf>::sort(v);
  }

 private:
  __device__ uint32_t take(uint32_t word) const {
    if constexpr (Shape::kWords) return word;
    return __byte_perm(word, 0, odd_ ? 0x4341 : 0x4240);
  }

  const int pitch_;
  const bool odd_;
  const uint32_t *first_;
};

// The medians of a warp's rows of results, of which there are `rows`, from row `first` of the tile on: to `results`,
// where of bytes the odd ones join the even ones.
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
#pragma unroll
    for (int right = 0; right < 2; right++) {
      const int column = WindowReader<Shape>::column(right), x = right ? Shape::kSize : 0;
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
__device__ inline void filter_by_networks(const NetworkMedianParams &p) {
  const Tile tile = locate_u8x4_tile(p, p.tile);
  const PartParams &part = tile.part;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int pitch = WindowReader<Shape>::pitch_of(p.tile), radius = Shape::kSize / 2;
  const int rows = min(Shape::kHeight, part.height - tile.y0) + 2 * radius;
  const int share = (rows + Shape::kWarps - 1) / Shape::kWarps;
  const int begin = min(warp * share, rows), end = min(begin + share, rows);
  uint32_t *const u8x4s = shared_memory<uint32_t>();
  if (begin < end)
    load_rows<Rows::U8x4s, Shape::kWords>(p, p.tile, tile, begin, end - begin, pitch, u8x4s + begin * pitch);
  wait_for_copies();
  __syncwarp();
  if constexpr (Shape::kWords)
    for (int i = begin * pitch + lane; i < end * pitch; i += 32) u8x4s[i] &= p.sample_bits;
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
    writer.write([&](auto put) {
#pragma unroll 4
      for (int y = 0; y < own_rows; y++) {
        const uint32_t result = results[y * Shape::kWidth + column];
        put(part.has_unfiltered ? blend_channels(part, result, originals[y * pitch], column % Shape::kStep) : result);
      }
    });
  }
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, kBlocksAtOnce<Shape>)
    network_median_kernel(const __grid_constant__ NetworkMedianParams p) {
  if constexpr (kHas<Feature::MaskKernels>) filter_by_networks<Shape>(p);
}

}  // namespace cudaconv
