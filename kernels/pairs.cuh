// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto takes for linear masks of up to 9x9 without a row and a column: sums of products by matrix
// instructions as in tensor.cuh, but in registers alone.
//
// A warp goes down a strip of 64 pixels' width, two rows a step. The 8 columns of the matrix of samples are as many
// blocks of 8 pixels side by side, its k are 2 rows of 16 pixels, from the fourth before a block to the fourth behind
// it: 4 of a row a lane, which loads them itself. The 16 rows of the matrix of coefficients are the block's results, in
// two rows too. So a mask of h rows takes (h + 1) / 2 such matrices, one for each pair of rows that windows of two rows
// of results reach, and samples as many instructions, each of them for another pair of rows of results.
//
// Rows g and g + 8 of results are pixels 2 * (g % 4) and the next, of row g / 4.
#pragma once

#include "tensor.cuh"

namespace cudaconv {

constexpr int kPairThreads = 128;  // of a block, whose warps' strips lie side by side
constexpr int kPairWidth = 64;     // pixels of a strip
constexpr int kStartWords = 8;     // what sums start from, four times each, as the instructions want it

// Four pixels before the first one of a row, and from the last multiple of four on eight more: what windows reach
// beyond the edges, and what of the frame does not come in fours. Blocks that need them list them, of all rows, before
// they begin: to look for them step by step takes longer than all the rest.
template <int kPixelBytes>
class PairEdges {
 public:
  static constexpr int kGroups = 3, kRowBytes = kGroups * 4 * kPixelBytes;

  // `memory` is in shared memory.
  __device__ PairEdges(const PartParams &part, uint8_t *memory) : part_(part), memory_(memory) {}

  // Of as many rows, which are where `offsets` says, in bytes. All threads of the block take part.
  __device__ void list(Border border, const int64_t *offsets, int rows, bool right) const {
    const int pixels = right ? 8 : 4, n = static_cast<int>(threadIdx.x) % pixels;
    const int x = border_index(border, right ? last() + n : n - 4, part_.width);
    const uint8_t *from = part_.source + max(x, 0) * kPixelBytes;
    uint8_t *to = memory_ + ((right ? 4 : 0) + n) * kPixelBytes;
#pragma unroll 4
    for (int row = static_cast<int>(threadIdx.x) / pixels; row < rows; row += kPairThreads / pixels)
#pragma unroll
      for (int b = 0; b < kUnits; b++)
        reinterpret_cast<Unit *>(to + row * kRowBytes)[b] =
            x < 0 ? border_unit(b) : __ldg(reinterpret_cast<const Unit *>(from + offsets[row]) + b);
  }

  // Whether pixels x ... x + 3 are listed, and have to be; x is a multiple of 4.
  __device__ bool has(int x) const {
    return (x < 0) | ((x < last() + 8) & (x + 4 > part_.width));
  }

  __device__ void read(int row, int x, uint32_t (&words)[kPixelBytes]) const {
    const auto *from = reinterpret_cast<const uint32_t *>(memory_ + row * kRowBytes) +
                       (x < 0 ? 0 : (x - last()) / 4 + 1) * kPixelBytes;
#pragma unroll
    for (int i = 0; i < kPixelBytes; i++) words[i] = from[i];
  }

 private:
  // Pixels are aligned to it.
  using Unit =
      std::conditional_t<kPixelBytes % 4 == 0, uint32_t, std::conditional_t<kPixelBytes == 2, uint16_t, uint8_t>>;
  static constexpr int kUnits = kPixelBytes / static_cast<int>(sizeof(Unit));

  __device__ Unit border_unit(int i) const {
    const int byte = i * static_cast<int>(sizeof(Unit));
    return static_cast<Unit>(part_.border_word[byte / 4] >> byte % 4 * 8);
  }

  // The first pixel of the second group.
  __device__ int last() const {
    return part_.width & ~3;
  }

  const PartParams &part_;
  uint8_t *memory_;
};

// Of a part, in pixels, and in tiles.
template <Samples kSamples>
CUDACONV_HOST_DEVICE inline int pair_tile_width(const PartParams &part) {
  return kPairThreads / 32 * kPairWidth * subtiles(part.channels * sample_bytes(kSamples));
}
template <Samples kSamples>
CUDACONV_HOST_DEVICE inline int pair_columns(const PartParams &part) {
  return (part.width + pair_tile_width<kSamples>(part) - 1) / pair_tile_width<kSamples>(part);
}

template <int kRowPairs, Samples kSamplesKind>
struct PairShape {
  static constexpr int kPairs = kRowPairs;  // of rows that windows reach
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr Weights kWeights = Weights::Byte;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr int kMostPixelBytes = kSamples == Samples::FourWords ? 8 : 4;  // of a pixel
  static constexpr bool kFour = kSamples == Samples::FourWords;
  static constexpr int kAhead = kFour ? 1 : 2;  // steps whose samples are on their way
  static constexpr int kMinBlocks = kFour ? (kPairs == 3 ? 3 : 2) : kPairs < 5 ? 4 : 3;
  static constexpr int kLine = padded_words(kPairLineWords),
                       kLines = 2 * kPairs + 1;  // the first before the mask
  static constexpr size_t kOperandBytes = ((kStartWords + kLines * kLine) * sizeof(uint32_t) + 15) / 16 * 16;

  // Rows that windows of as many rows of results reach, in pairs.
  CUDACONV_HOST_DEVICE static constexpr int source_rows(int rows) { return rows + 2 * kPairs - 2; }
  // Pixels that windows of the strips of a warp reach.
  CUDACONV_HOST_DEVICE static constexpr int source_columns(int strips) { return kPairWidth * strips + 2 * kPairRadius; }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int tile_height) {
    return kOperandBytes + source_rows(tile_height) * (sizeof(int64_t) + PairEdges<kMostPixelBytes>::kRowBytes);
  }
};

// The matrices of coefficients.
template <int kPairs>
struct PairOperands {
  uint32_t pair[kPairs][4];

  __device__ PairOperands(const uint32_t *lines) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < kPairs; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        // Line 0 is that before the mask.
        const uint32_t *line = lines + (2 * j + h + 1 - g / 4) * padded_words(kPairLineWords);
        const int first = 4 * t - g % 4 * 2;
        pair[j][2 * h] = four_bytes(line, first);
        pair[j][2 * h + 1] = four_bytes(line, first - 1);
      }
  }
};

// Sums to samples as SumScale says, and those to pixels as they lie in memory: two neighbours for column 2t, then those
// for 2t + 1.
template <int kChannels>
__device__ inline void scale_sums(const SumScale &scale, const PartialSums<1> (&sums)[kChannels],
                                  uint32_t (&words)[kChannels]) {
  const auto pack = [&](auto scaled) {
    // Sample n of the four pixels.
    const auto sample = [&](int n) {
      return scaled(sums[n % kChannels].part[0].v[n / kChannels % 2 * 2 + n / kChannels / 2]);
    };
#pragma unroll
    for (int i = 0; i < kChannels; i++)
      words[i] = choose_bytes(pack_clamped(sample(4 * i), sample(4 * i + 1)),
                              pack_clamped(sample(4 * i + 2), sample(4 * i + 3)), 0x7531);
  };
  const auto multiply = [&](int32_t v) {
    return __mulhi(static_cast<int32_t>(static_cast<uint32_t>(v) << scale.shift), scale.magic);
  };
  if (!scale.magic)
    pack([&](int32_t v) { return v >> scale.shift; });
  else if (!scale.absolute)
    pack(multiply);
  else
    pack([&](int32_t v) { return multiply(abs(v) + scale.half); });
}

// The warp's strips, as many side by side as make four planes of bytes, of which tile.x0 is the first pixel.
template <int kChannels, typename Shape>
__device__ inline void filter_pairs(const PairTensorParams &p, const Tile &tile, const volatile int32_t *starts,
                                    const uint32_t *lines, const int64_t *rows, uint8_t *listed) {
  constexpr Samples kSamples = Shape::kSamples;
  constexpr int kSampleBytes = Shape::kSampleBytes, kPixelBytes = kChannels * kSampleBytes;
  constexpr int kPairs = Shape::kPairs, kAhead = Shape::kAhead, kStrips = subtiles(kPixelBytes);
  constexpr int kUnroll = kPairs % kAhead ? kPairs * kAhead : kPairs;
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int bottom = min(tile.y0 + p.tile_height, part.height), steps = (bottom - tile.y0 + 1) / 2 + kPairs - 1;
  const int left = tile.x0 - kPairRadius, first_row = tile.y0 - p.radius_y;
  const bool inside = lies_inside(p, part, left, Shape::source_columns(kStrips), first_row, 2 * steps);
  const int first = left + 8 * g + 4 * t;  // pixel of the lane
  const uint8_t *source = part.source + first * kPixelBytes;
  const PairEdges<kPixelBytes> edges(part, listed);
  // Whether the results of a strip, or `radius` pixels beside them, reach beyond an edge: the same for the whole warp.
  const auto at_edge = [&](int strip, int radius) {
    const int x = tile.x0 + strip * kPairWidth;
    return !inside && ((x < radius) | (x + kPairWidth + radius > part.width));
  };
  // What lies in the frame of the rows of a step. Nothing waits for it.
  const auto fetch = [&](int step, uint32_t(&words)[2][kStrips][kPixelBytes]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint8_t *from = source + rows[2 * step + h];
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        const int x = s * kPairWidth;
        if (!at_edge(s, kPairRadius) || ((first + x >= 0) & (first + x + 4 <= part.width)))
          read_four_pixels<kPixelBytes>(from + x * kPixelBytes, words[h][s]);
      }
    }
  };
  // The rest of them, once that has arrived.
  const auto complete = [&](int step, uint32_t(&words)[2][kStrips][kPixelBytes]) {
#pragma unroll
    for (int s = 0; s < kStrips; s++)
      if (at_edge(s, kPairRadius) && edges.has(first + s * kPairWidth))
#pragma unroll
        for (int h = 0; h < 2; h++) edges.read(2 * step + h, first + s * kPairWidth, words[h][s]);
    if (p.border != Border::Constant) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int y = first_row + 2 * step + h;
      if (y >= 0 && y < part.height) continue;
#pragma unroll
      for (int s = 0; s < kStrips; s++)
#pragma unroll
        for (int i = 0; i < kPixelBytes; i++) words[h][s][i] = part.border_word[i % word_period(kPixelBytes)];
    }
  };
  const bool merges = part.merges;
  const int64_t target_pitch = part.target_pitch;
  using Place = ResultPlace<kPixelBytes, 8, 0>;
  const int x = tile.x0 + 16 * t + (Place::kJoins ? g % 2 * 8 + g % 4 / 2 * 4 : g % 4 * 2);
  int y = tile.y0 + g / 4;
  uint8_t *to = part.target + y * target_pitch + x * kPixelBytes;
  uint32_t ahead[kAhead][2][kStrips][kPixelBytes];
#pragma unroll
  for (int i = 0; i < kAhead; i++)
    if (i < steps) fetch(i, ahead[i]);

  const PairOperands<kPairs> operands(lines);
  PartialSums<kSampleBytes> sums[kPairs][kStrips][kChannels] = {};  // of as many pairs of rows of results
#pragma unroll 1
  for (int step0 = 0;; step0 += kUnroll) {
#pragma unroll
    for (int i = 0; i < kUnroll; i++) {
      const int step = step0 + i;
      if (step >= steps) return;
      if (!inside) {
        complete(step, ahead[i % kAhead]);
        __syncwarp();
      }
      // Read anew each time: registers are short, and of a value that it knows the compiler makes four copies for each
      // instruction.
      Sums start[kSampleBytes];
#pragma unroll
      for (int k = 0; k < 4 * kSampleBytes; k++) start[k / 4].v[k % 4] = starts[k];
      uint32_t words[2][kStrips][kPixelBytes];
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int s = 0; s < kStrips; s++) take_apart<kSamples>(p, ahead[i % kAhead][h][s], words[h][s]);
#pragma unroll
      for (int j = 0; j < kPairs; j++)
#pragma unroll
        for (int s = 0; s < kStrips; s++)
#pragma unroll
          for (int c = 0; c < kPixelBytes; c++) {
            Sums &sum = sums[(i + kPairs - j) % kPairs][s][c / kSampleBytes].part[c % kSampleBytes];
            sum = mma<true, false, 2>(operands.pair[j], {words[0][s][c], words[1][s][c]},
                                      j ? sum : start[c % kSampleBytes]);
          }
      if (step + kAhead < steps) fetch(step + kAhead, ahead[i % kAhead]);
      if (step < kPairs - 1) continue;
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        const auto &total = sums[(i + 1) % kPairs][s];
        uint32_t pixels[kPixelBytes];
        if constexpr (kSamples == Samples::Bytes)
          scale_sums(p.scale, total, pixels);
        else
          make_pixels<kChannels, Shape>(
              p, [&](int c) { return total[c]; }, pixels);
        Place::put(part, to + s * kPairWidth * kPixelBytes, x + s * kPairWidth, y, bottom, !at_edge(s, 0), merges,
                   pixels);
      }
      to += 2 * target_pitch;
      y += 2;
    }
  }
}

template <int kChannels, typename Shape>
__device__ inline void filter_pairs(const PairTensorParams &p, Tile tile) {
  constexpr int kPixelBytes = kChannels * Shape::kSampleBytes, kStrips = subtiles(kPixelBytes);
  constexpr int kWidth = kPairWidth * kStrips, kWarps = kPairThreads / 32;
  const PartParams &part = tile.part;
  const int first_row = tile.y0 - p.radius_y, height = Shape::source_rows(p.tile_height);
  int32_t *starts = shared_memory<int32_t>();
  uint32_t *lines = shared_memory<uint32_t>() + kStartWords;
  int64_t *rows = reinterpret_cast<int64_t *>(shared_memory<uint8_t>() + Shape::kOperandBytes);
  uint8_t *listed = reinterpret_cast<uint8_t *>(rows + height);
  if (threadIdx.x < kStartWords) starts[threadIdx.x] = threadIdx.x < 4 ? p.finish.start : p.finish.start_high;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < Shape::kLines * Shape::kLine; i += kPairThreads) {
    const int row = i / Shape::kLine - 1;
    lines[i] = row < 0 ? 0 : padded_word(p.line[row], kPairLineWords, i % Shape::kLine);
  }
  // Where rows are, in bytes from the part's first; of rows that there are not it is read in their place.
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < height; i += kPairThreads)
    rows[i] = max(border_index(p.border, first_row + i, part.height), 0) * part.source_pitch;
  tile.x0 *= kWidth * kWarps;
  const bool left = tile.x0 == 0, right = tile.x0 + kWidth * kWarps + kPairRadius > part.width;
  __syncthreads();
  if (left || right) {
    const PairEdges<kPixelBytes> edges(part, listed);
    if (left) edges.list(p.border, rows, height, false);
    if (right) edges.list(p.border, rows, height, true);
    __syncthreads();
  }
  // From one lane to all: the compiler sees that the warp branches together.
  tile.x0 += kWidth * __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  if (tile.x0 >= part.width) return;
  filter_pairs<kChannels, Shape>(p, tile, starts, lines, rows, listed);
}

template <typename Shape>
__global__ void __launch_bounds__(kPairThreads, Shape::kMinBlocks)
    pair_kernel(const __grid_constant__ PairTensorParams p) {
  if constexpr (kHasMatrixInstructions) {
    constexpr Samples kSamples = Shape::kSamples;
    // Tiles below each other follow each other, and those at the edges, which take longer, come first.
    const Tile place = locate_tile(p, 1, 1);
    const PartParams &part = place.part;
    const int columns = pair_columns<kSamples>(part), column = place.y0 ? place.y0 - 1 : columns - 1;
    const Tile tile = {part, column, place.x0 * p.tile_height};
    if (!part.filters) {
      const int width = pair_tile_width<kSamples>(part);
      return copy_tile<kSamples>(part, tile.x0 * width, tile.y0, width, p.tile_height);
    }
    // Those of two channels stay with tensor.cuh.
    for_channels<kSamples>(part.channels, [&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
      if constexpr (kChannels != 2) filter_pairs<kChannels, Shape>(p, tile);
    });
  }
}

}  // namespace cudaconv
