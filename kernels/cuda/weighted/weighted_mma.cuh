// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel for weighted means of pixels of four bytes by separable masks up to 33x33, on the matrix instructions. It
// makes the same bytes as weighted_samples_kernel() of weighted.cuh.
//
// It goes down strips like separable/separable.cuh, with other operands: two bytes of the product of each colour and
// alpha, and one byte of alpha. Sums along a row have four bytes for colours, three for alpha. All sums are exact.
//
// Example: red 200 with alpha 100 enters as 20000 = 78 * 256 + 32, the bytes 78 and 32.
#pragma once

#include "cuda/device/mma/strip_source.cuh"
#include "cuda/device/rounded_means.cuh"
#include "cuda/device/words.cuh"

namespace cudaconv::weighted {

// `line` holds two bytes of each coefficient of the mask's row, and three of its column.
// row_start, row_shift, epilogue and sharpening are not used.
struct WeightedMmaParams : SeparableMmaParams {
  bool alpha_first;  // alpha is the first byte of a pixel, else the last
  uint64_t all;      // the sum of the mask
};

// The largest factors and sums that the kernel can do. Sums of a row: of 255 * 255 times each factor in 32 bits, of 255
// times each in 24.
constexpr int32_t kMostRowFactor = (1 << 16) - 1, kMostColumnFactor = (1 << 24) - 1;
constexpr uint64_t kMostRowFactors = ((1 << 24) - 1) / 255;
constexpr int kMostMmaRadius = 16;

// Rows of a strip as in SeparableTuning. Each radius has the most blocks with which nothing spills.
struct WeightedMmaTuning {
  static constexpr int kLeastRows = 32, kMoreRows = 8;
};

template <int kRadiusClass>
struct WeightedMmaShape : SeparableShape<kRadiusClass, Samples::U8, 3> {
  static constexpr int kMinBlocks = kRadiusClass > 8 ? 2 : 3;
};

// A lane's four neighbouring pixels as words of the matrices of samples. Of pixels with alpha first, the colours are
// the last byte, the second and the third one.
struct WeightedWords {
  uint32_t product[3][2];  // [colour][byte]
  uint32_t alpha;

  // `channel` has a word for each byte of the pixels. Unless `weighted`, products are the colours.
  __device__ void multiply(const uint32_t (&channel)[4], bool alpha_first, bool weighted) {
    alpha = alpha_first ? channel[0] : channel[3];
    uint32_t weight[4];
#pragma unroll
    for (int i = 0; i < 4; i++) weight[i] = (weighted ? alpha : 0x01010101u) & 0xffu << 8 * i;
#pragma unroll
    for (int c = 0; c < 3; c++) {
      const uint32_t colour = c == 0 && alpha_first ? channel[3] : channel[c];
      uint32_t of_pixel[4];
#pragma unroll
      for (int i = 0; i < 4; i++) of_pixel[i] = __dp4a(colour, weight[i], 0u);
      const uint32_t first = __byte_perm(of_pixel[0], of_pixel[1], 0x5410);
      const uint32_t second = __byte_perm(of_pixel[2], of_pixel[3], 0x5410);
      product[c][0] = __byte_perm(first, second, 0x6420);
      product[c][1] = __byte_perm(first, second, 0x7531);
    }
  }
};

// The latest row sums of a colour or of alpha, which have kSumBytes bytes, and the sums of columns.
template <typename Shape, int kSumBytes>
class WeightedSums {
 public:
  static constexpr int kRowBytes = 2, kColumnBytes = 3;  // of factors

  // Sums the next 8 rows of kBytes bytes; window(byte, chunk) is a word of the matrix of samples.
  template <int kBytes, typename Window>
  __device__ void enter(const SeparableOperands<Shape> &k, Window window) {
    PartialSums<kBytes + kRowBytes - 1> parts = {};
#pragma unroll
    for (int i = 0; i < kBytes; i++) {
      uint32_t words[Shape::kChunksX];
#pragma unroll
      for (int c = 0; c < Shape::kChunksX; c++) words[c] = window(i, c);
#pragma unroll
      for (int b = 0; b < kRowBytes; b++)
        parts.part[i + b] = multiply<false, false>(k.row[b], words, parts.part[i + b]);
    }
    rows_.enter(parts.total());
  }

  // The sums of 8 rows of results.
  __device__ PartialSums<kSumBytes + kColumnBytes - 1> total(const SeparableOperands<Shape> &k) const {
    PartialSums<kSumBytes + kColumnBytes - 1> parts = {};
    each<kSumBytes, kColumnBytes>([&](int i, int b) {
      parts.part[i + b] = multiply<false, false>(rows_.byte[i], k.column[b], parts.part[i + b]);
    });
    return parts;
  }

 private:
  RowSumBytes<Shape, kSumBytes> rows_;
};

// Sum i of parts without signs. Two parts together fit 32 bits: each is the sum of at most three products of bytes for
// each of 33 rows.
template <int kParts>
__device__ inline uint64_t sum_of_parts(const PartialSums<kParts> &sums, int i) {
  const auto two = [&](int k) {
    const uint32_t low = static_cast<uint32_t>(sums.part[k].v[i]);
    return k + 1 < kParts ? low + (static_cast<uint32_t>(sums.part[k + 1].v[i]) << 8) : low;
  };
  static_assert(kParts == 5 || kParts == 6, "three pairs");
  return (uint64_t{two(4)} << 32) + (uint64_t{two(2)} << 16) + two(0);
}

// A warp's strip of 16 pixels' width.
template <typename Shape>
class WeightedMmaStrip {
 public:
  using Kind = StripKind<4, 4, Pixels::Any, Shape>;

  __device__ WeightedMmaStrip(const WeightedMmaParams &p, const Tile &tile, const uint32_t *lines, const int64_t *rows,
                              const int *columns, bool inside)
      : p_(p),
        part_(tile.part),
        y0_(tile.y0),
        x_(tile.x0 + static_cast<int>(threadIdx.x) % 32 / 4 * 2),
        bottom_(min(tile.y0 + p.tile_height, tile.part.height)),
        operands_(lines),
        source_(p, tile, rows, columns, inside) {}

  // Writes the results of windows with alpha if `weighted`, else of windows without. Returns whether the lane has
  // windows of the other kind.
  __device__ bool filter(bool weighted) {
    const int steps = (bottom_ - y0_ + 7) / 8 + Shape::kSteps - 1;
    bool others = false;
    WeightedSums<Shape, 4> colour[3];
    WeightedSums<Shape, 3> alpha;
    source_.read(0);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      if (step + SeparableTuning::kPrefetchSteps < steps) source_.prefetch(step + SeparableTuning::kPrefetchSteps);
      typename Kind::Words channels;
      source_.take(channels);
      if (step + 1 < steps) source_.read(step + 1);
      WeightedWords words[Kind::kColumns];
#pragma unroll
      for (int c = 0; c < Kind::kColumns; c++) words[c].multiply(channels[c], p_.alpha_first, weighted);
#pragma unroll
      for (int i = 0; i < 3; i++)
        colour[i].template enter<2>(operands_, [&](int byte, int c) { return words[c].product[i][byte]; });
      alpha.template enter<1>(operands_, [&](int, int c) { return words[c].alpha; });
      if (step < Shape::kSteps - 1) continue;
      others |= write(y0_ + 8 * (step - Shape::kSteps + 1), weighted, colour, alpha);
    }
    return others;
  }

 private:
  // Writes 8 rows of results, from row y on. A lane has sums of two neighbouring pixels in each of two rows: sum 2i + h
  // is of pixel i and row h.
  __device__ bool write(int y, bool weighted, const WeightedSums<Shape, 4> (&colour)[3],
                        const WeightedSums<Shape, 3> &alpha) const {
    uint64_t n[4], d[4], weight[4];
    uint32_t channel[4], pixel[4];
    const auto of_alpha = alpha.total(operands_);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      weight[i] = sum_of_parts(of_alpha, i);
      d[i] = p_.all;
    }
    channel[3] = rounded_means(weight, d);
#pragma unroll
    for (int c = 0; c < 3; c++) {
      const auto of_colour = colour[c].total(operands_);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        n[i] = sum_of_parts(of_colour, i);
        d[i] = weighted ? weight[i] : p_.all;
      }
      channel[c] = rounded_means(n, d);
    }
    const uint32_t first = channel[0];
    if (p_.alpha_first) {
      channel[0] = channel[3];
      channel[3] = first;
    }
    transpose(channel, pixel);
    bool others = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int to_x = x_ + i / 2, to_y = y + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2;
      if (to_x >= part_.width || to_y >= bottom_) continue;
      if ((weight[i] != 0) != weighted) {
        others = true;
        continue;
      }
      if (part_.has_unfiltered)
        pixel[i] = blend_channels(part_, pixel[i],
                                  reinterpret_cast<const uint32_t *>(part_.copy + to_y * part_.copy_pitch)[to_x]);
      reinterpret_cast<uint32_t *>(part_.target + to_y * part_.target_pitch)[to_x] = pixel[i];
    }
    return others;
  }

  const WeightedMmaParams &p_;
  const PartParams &part_;
  const int y0_, x_, bottom_;  // x_: the lane's first pixel
  const SeparableOperands<Shape> operands_;
  StripSource<Kind> source_;
};

template <typename Shape>
__global__ void __launch_bounds__(kStripThreads, Shape::kMinBlocks)
    weighted_mma_kernel(const __grid_constant__ WeightedMmaParams p) {
  if constexpr (kHasMma) {
    constexpr int kPixels = 16 * Shape::kChunksX;  // of a row that a warp reads
    Tile tile = locate_tile(p, p.tile_height);
    const PartParams &part = tile.part;
    const int warp = static_cast<int>(threadIdx.x) / 32, first_row = tile.y0 - Shape::kRadius;
    const int height = strip_rows(p.tile_height, Shape::kRadius);
    tile.x0 = aligned_column<4>(tile.x0, warp * 16);
    uint32_t *const lines = shared_memory<uint32_t>();
    int64_t *const rows = reinterpret_cast<int64_t *>(shared_memory<uint8_t>() + Shape::kLineBytes);
    int *const columns = reinterpret_cast<int *>(rows + height) + warp * 16 * kMostColumns;
    Shape::load_lines(p, lines);
    list_rows(p, part, first_row, height, rows, static_cast<int>(blockDim.x));
    const int first = tile.x0 - Shape::kReach;
    const bool inside = lies_inside(p, part, first, kPixels, first_row, height);
    if (!inside) list_columns(p, part, first, kPixels, columns, 32);
    __syncthreads();
    if (tile.x0 >= part.width) return;
    WeightedMmaStrip<Shape> strip(p, tile, lines, rows, columns, inside);
    // If alpha is 0 in a whole window, its colours are means without alpha: strips with such windows are done twice.
#pragma unroll 1
    for (int weighted = 1; weighted >= 0; weighted--)
      if (!__any_sync(0xffffffffu, strip.filter(weighted))) break;
  }
}

}  // namespace cudaconv::weighted
