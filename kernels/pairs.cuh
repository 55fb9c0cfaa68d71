// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto takes for linear masks of up to 9x9 without a row and a column: sums of products by matrix
// instructions as in matrix.cuh, but with the sums of all rows that windows reach in registers.
//
// A warp goes down a strip of 64 pixels' width, two rows a step. The 8 columns of the matrix of samples are as many
// blocks of 8 pixels side by side, its k are 2 rows of 16 pixels, from the fourth before a block to the fourth behind
// it: 4 of a row a lane. The 16 rows of the matrix of coefficients are the block's results, in two rows too. So a mask
// of h rows takes (h + 1) / 2 such matrices, one for each pair of rows that windows of two rows of results reach, and
// samples as many instructions, each of them for another pair of rows of results.
//
// Rows g and g + 8 of results are pixels 2 * (g % 4) and the next, of row g / 4.
//
// Samples come through shared memory, where each warp has a ring of rows to itself, and are on their way some steps
// before they are needed. Loads to registers would not do: to get one, a warp waits for all that are under way.
#pragma once

#include "sums.cuh"

namespace cudaconv {

constexpr int kPairWarps = 2, kPairThreads = 32 * kPairWarps;  // of a block; the warps' strips lie side by side
constexpr int kPairWidth = 64;                                 // pixels of a strip
constexpr int kPairSlots = 8;                                  // steps of a ring, a power of two
constexpr int kPairsAhead = 5;                                 // of those, how many are on their way
constexpr int kStartWords = 4;                                 // what sums start from, as the instructions want it

// How many strips side by side a warp has.
CUDACONV_HOST_DEVICE constexpr int pair_strips(int pixel_bytes) {
  return pixel_bytes < 3 ? 2 : 1;
}

// Of a block's tile, in pixels, and of a part, in tiles.
template <Samples kSamples>
CUDACONV_HOST_DEVICE inline int pair_tile_width(const PartParams &part) {
  return kPairWarps * kPairWidth * pair_strips(part.channels * sample_bytes(kSamples));
}
template <Samples kSamples>
CUDACONV_HOST_DEVICE inline int pair_columns(const PartParams &part) {
  return (part.width + pair_tile_width<kSamples>(part) - 1) / pair_tile_width<kSamples>(part);
}

// ---- Rows in shared memory ----

// In the background: `bytes` of 16 from global to shared memory, and zeros for the others; or four.
__device__ inline void copy_chunk(uint8_t *to, const uint8_t *from, int bytes) {
#ifndef __CUDACC__
  for (int i = 0; i < 16; i++) to[i] = i < bytes ? from[i] : 0;
#elif __CUDA_ARCH__ >= 800
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(bytes)
      : "memory");
#endif
}
__device__ inline void copy_word(uint8_t *to, const uint8_t *from) {
#ifndef __CUDACC__
  for (int i = 0; i < 4; i++) to[i] = from[i];
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
#endif
}

// Makes a group of the thread's copies since the last one; waits for all groups but the last kGroups.
__device__ inline void end_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kGroups>
__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

// The rows that a warp's windows reach, two a step, in its ring. The warp takes part in all of it together.
//
// What lies beside the frame is made of what lies in it once that has arrived, a pixel a lane. Only where the border
// wraps, which is at the other end of the row, is it copied.
template <int kPixelBytes>
class PairRows {
 public:
  static constexpr int kWidth = kPairWidth * pair_strips(kPixelBytes);  // of the strips, pixels
  // On either side of a row, whole 16 bytes, which hold the pixels beside the strips.
  static constexpr int kHalo = (kPairRadius * kPixelBytes + 15) / 16 * 16;
  static constexpr int kRowBytes = kWidth * kPixelBytes + 2 * kHalo;
  static constexpr int kBytes = kPairSlots * 2 * kRowBytes;

  // In words that it is aligned to.
  using Unit =
      std::conditional_t<kPixelBytes % 4 == 0, uint32_t, std::conditional_t<kPixelBytes == 2, uint16_t, uint8_t>>;
  static constexpr int kUnitBytes = sizeof(Unit), kUnits = kPixelBytes / kUnitBytes;
  struct Pixel {
    Unit unit[kUnits];
  };

  // x0 is the strips' first pixel, y0 the first row of the first of `steps`; `rows` lists where rows are, in bytes from
  // the part's first. `ring` has kBytes, aligned to 16.
  __device__ PairRows(const FrameParams &p, const PartParams &part, int x0, int y0, int steps, const int64_t *rows,
                      uint8_t *ring)
      : part_(part),
        rows_(rows),
        ring_(ring),
        source_(part.source + x0 * kPixelBytes - kHalo + lane() * 16),
        steps_(steps),
        y0_(y0) {
#pragma unroll
    for (int i = 0; i < kChunks; i++) {
      const int chunk = 32 * i + lane(), first = x0 * kPixelBytes - kHalo + chunk * 16;
      const bool copies = first >= 0 && chunk < kRowBytes / 16;
      bytes_[i] = copies ? min(max(part.width * kPixelBytes - first, 0), 16) : 0;
    }
    const bool at_edge = (x0 == 0) | (x0 + kWidth + kPairRadius > part.width);
    const bool constant = p.border == Border::Constant, wraps = p.border == Border::Wrap;
    const bool fills = (at_edge & !wraps) | (constant & ((y0 < 0) | (y0 + 2 * steps > part.height)));
    // From one lane to all: the compiler keeps the bits together.
    edges_ = __shfl_sync(0xffffffffu, fills * kFills | (at_edge & wraps) * kWraps | constant * kConstant, 0);
    // Of the four pixels before the frame or behind it the lane has one, or where the border wraps one of their words.
    const int n = item() % 8, first = item() < 8 ? -kPairRadius : part.width;
    const int x = first + (wraps ? n * 4 / kPixelBytes : n);
    move_ = -1;
    if (!at_edge || n >= (wraps ? kPixelBytes : kPairRadius) || x < x0 - kPairRadius || x >= x0 + kWidth + kPairRadius)
      return;
    const int source = max(border_index(p.border, x, part.width), x0 - kPairRadius);
    move_ = wraps ? place(first - x0) + 4 * n : place(source - x0) << 16 | place(x - x0);
  }

  // Begins to copy the rows of a step, if there is one, as one group.
  __device__ void copy(int step) const {
    if (step < steps_) {
      const int64_t rows[2] = {rows_[2 * step], rows_[2 * step + 1]};
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const uint8_t *from = source_ + rows[h];
        uint8_t *to = row(step, h) + lane() * 16;
#pragma unroll
        for (int i = 0; i < kChunks; i++)
          if (bytes_[i]) copy_chunk(to + i * 512, from + i * 512, bytes_[i]);
      }
      if (edges_ & kWraps && move_ >= 0) {
        const int width = part_.width * kPixelBytes;
        const uint8_t *from = source_ - lane() * 16 + (row_of_lane() ? rows[1] : rows[0]);
        copy_word(row(step, row_of_lane()) + move_, from + move_ + (move_ < kHalo ? width : -width));
      }
    }
    end_copies();
  }

  // Waits for the rows of all steps but the last kBegun that have begun.
  template <int kBegun>
  __device__ void wait() const {
    wait_for_copies<kBegun>();
    __syncwarp();
  }

  // Of rows that have been waited for, the lane's pixel beside the frame, and its way to where it belongs. It is seen
  // by the warp after it has waited again.
  __device__ Pixel read_edge(int step) const {
    Pixel pixel = {};
    if (!(edges_ & kFills)) return pixel;
    uint8_t *const from = row(step, row_of_lane());
    if (edges_ & kConstant) {
#pragma unroll
      for (int i = 0; i < kUnits; i++)
        pixel.unit[i] = static_cast<Unit>(part_.border_word[i * kUnitBytes / 4] >> i * kUnitBytes % 4 * 8);
      const int y = y0_ + 2 * step + row_of_lane();
      if (y < 0 || y >= part_.height) fill(from);
    } else if (move_ >= 0) {
      pixel = *reinterpret_cast<const Pixel *>(from + (move_ >> 16));
    }
    return pixel;
  }
  __device__ void write_edge(int step, const Pixel &pixel) const {
    if (edges_ & kFills && move_ >= 0) *reinterpret_cast<Pixel *>(row(step, row_of_lane()) + (move_ & 0xffff)) = pixel;
  }

  // Words of row h of a step from pixel x of the strips on.
  template <int kWords>
  __device__ void read(int step, int h, int x, uint32_t *words) const {
    load_words<kWords>(row(step, h) + place(x), words);
  }

 private:
  static constexpr uint32_t kFills = 1, kWraps = 2, kConstant = 4;  // what there is to do at the edges
  static constexpr int kChunks = (kRowBytes / 16 + 31) / 32;        // of a row, a lane

  __device__ static int lane() {
    return threadIdx.x % 32;
  }
  // At the edges a half of the warp is for either row.
  __device__ static int row_of_lane() {
    return lane() / 16;
  }
  __device__ static int item() {
    return lane() % 16;
  }
  // Of pixel x of the strips, from a row's first byte.
  __device__ static int place(int x) {
    return kHalo + x * kPixelBytes;
  }

  __device__ uint8_t *row(int step, int h) const {
    return ring_ + (step % kPairSlots * 2 + h) * kRowBytes;
  }

  // A row outside, by half of the warp.
  __device__ void fill(uint8_t *row) const {
    constexpr int kFirst = kPairWidth * kPixelBytes - kHalo;  // as far from a pixel's first byte as a row's
#pragma unroll 1
    for (int i = item(); i < kRowBytes / 4; i += 16)
      reinterpret_cast<uint32_t *>(row)[i] = part_.border_word[(kFirst / 4 + i) % word_period(kPixelBytes)];
  }

  const PartParams &part_;
  const int64_t *rows_;
  uint8_t *ring_;
  const uint8_t *source_;  // of a row's 16 bytes that the lane copies
  int steps_, y0_, bytes_[kChunks];
  uint32_t edges_;
  // Nothing where negative. The place of the pixel beside the frame, and above 16 bits of the one that it is like; or
  // where the border wraps the place of the word.
  int move_;
};

// ---- Products and results ----

template <int kRowPairs, Samples kSamplesKind>
struct PairShape {
  static constexpr int kPairs = kRowPairs;  // of rows that windows reach
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr Weights kWeights = Weights::Byte;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr bool kFour = kSamples == Samples::FourWords;
  static constexpr int kMinBlocks = kFour ? (kPairs == 3 ? 6 : 4) : kPairs < 5 ? 8 : 6;
  // Steps of the loop. Of bytes with as many as there are pairs sums stay where they are; of more the code is then too
  // long for the cache of instructions next to a scheduler, and sums move on.
  static constexpr int kTogether = kSamples == Samples::Bytes ? kPairs : 2;
  static constexpr int kLine = padded_words(kPairLineWords),
                       kLines = 2 * kPairs + 1;  // the first before the mask
  static constexpr size_t kOperandBytes = ((kStartWords + kLines * kLine) * sizeof(uint32_t) + 15) / 16 * 16;
  static constexpr size_t kWarpBytes = PairRows<(kFour ? 8 : 4)>::kBytes;  // no format takes more

  // Rows that windows of as many rows of results reach, in pairs.
  CUDACONV_HOST_DEVICE static constexpr int source_rows(int rows) { return rows + 2 * kPairs - 2; }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int tile_height) {
    return kOperandBytes + kPairWarps * kWarpBytes + source_rows(tile_height) * sizeof(int64_t);
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
// for 2t + 1. Of several strips at once, so that none waits for another.
template <int kStrips, typename Channels>
__device__ inline void scale_sums(const SumScale &scale, const Channels &channels,
                                  const PartialSums<1> (&sums)[kStrips][Channels::kCount],
                                  uint32_t (&words)[kStrips][Channels::kChannels]) {
  PartialSums<1> scaled[kStrips][Channels::kCount];
#pragma unroll
  for (int i = 0; i < kStrips * Channels::kCount; i++)
    scaled[i / Channels::kCount][i % Channels::kCount] = sums[i / Channels::kCount][i % Channels::kCount];
  const auto for_all = [&](auto make) {
#pragma unroll
    for (auto &strip : scaled)
#pragma unroll
      for (PartialSums<1> &sum : strip)
#pragma unroll
        for (int32_t &v : sum.part[0].v) v = make(v);
  };
  int shift = scale.shift;
  if (scale.magic) {
    if (scale.absolute) for_all([&](int32_t v) { return abs(v) + scale.half; });
    for_all([&](int32_t v) { return __mulhi(static_cast<int32_t>(static_cast<uint32_t>(v) << shift), scale.magic); });
    shift = 0;
  }
#pragma unroll
  for (int s = 0; s < kStrips; s++) channels.pack_sums(scaled[s], words[s], [&](int32_t v) { return v >> shift; });
}

// What sums of bytes start from. Read each time anew: registers are short, and of values that it knows the compiler
// makes copies for each instruction.
__device__ inline Sums read_start(const int32_t *from) {
#ifdef __CUDACC__
  Sums s;
  asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(s.v[0]), "=r"(s.v[1]), "=r"(s.v[2]), "=r"(s.v[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))));
  return s;
#else
  return all(*from);
#endif
}

// Writes neighbouring pixels of which `n` lie in the part, two of four bytes or more, else four.
template <int kPixelBytes>
__device__ inline void store_pixels(uint8_t *to, const uint32_t *words, int n) {
  constexpr int kPixels = kPixelBytes < 4 ? 4 : 2;
  if (n >= kPixels) {
    store_words<kPixels * kPixelBytes / 4>(to, words);
  } else if constexpr (kPixelBytes >= 4) {
    if (n > 0) store_words<kPixelBytes / 4>(to, words);
  } else {
#pragma unroll
    for (int w = 0; w < kPixelBytes; w++)
#pragma unroll 1
      for (int b = 4 * w; b < min(n * kPixelBytes, 4 * w + 4); b++) to[b] = static_cast<uint8_t>(words[w] >> b % 4 * 8);
  }
}

// The warp's strips, of which tile.x0 is the first pixel; there may be none. `rows` is a list that all threads of the
// block have made, `lines` is made by them here.
template <typename Shape, typename Channels>
__device__ inline void filter_pairs(const PairTensorParams &p, const Tile &tile, int32_t *starts, const int64_t *rows,
                                    uint32_t *lines, uint8_t *ring) {
  constexpr Samples kSamples = Shape::kSamples;
  constexpr int kSampleBytes = Shape::kSampleBytes, kPixelBytes = Channels::kChannels * kSampleBytes;
  constexpr int kSummedBytes = Channels::kCount * kSampleBytes;
  constexpr int kPairs = Shape::kPairs, kStrips = pair_strips(kPixelBytes);
  // What a lane writes at a time: of fewer than four bytes four pixels, which neighbours join, else twice two.
  constexpr bool kJoins = kPixelBytes < 4;
  constexpr int kTimes = kJoins ? 1 : 2, kWords = kPixelBytes / kTimes;
  const PartParams &part = tile.part;
  const Channels channels(part);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int bottom = min(tile.y0 + p.tile_height, part.height);
  const int steps = tile.x0 < part.width ? (bottom - tile.y0 + 1) / 2 + kPairs - 1 : 0;
  const PairRows<kPixelBytes> source(p, part, tile.x0, tile.y0 - p.radius_y, steps, rows, ring);
#pragma unroll 1
  for (int i = 0; i < kPairsAhead; i++) source.copy(i);
  if (threadIdx.x < kStartWords) starts[threadIdx.x] = p.finish.start;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < Shape::kLines * Shape::kLine; i += kPairThreads) {
    const int row = i / Shape::kLine - 1;
    lines[i] = row < 0 ? 0 : padded_word(p.line[row], kPairLineWords, i % Shape::kLine);
  }
  __syncthreads();
  if (!steps) return;

  const int x = 16 * t + (kJoins ? g % 2 * 8 + g % 4 / 2 * 4 : g % 4 * 2);       // of the lane's results in a strip
  const int right = part.width - tile.x0 - x, below = bottom - tile.y0 - g / 4;  // how many there are from there on
  const bool whole = tile.x0 + kPairWidth * kStrips <= part.width && (bottom - tile.y0) % 2 == 0, merges = part.merges;
  const int64_t target_pitch = part.target_pitch;
  uint8_t *to = part.target + (tile.y0 + g / 4) * target_pitch + (tile.x0 + x) * kPixelBytes;

  const PairOperands<kPairs> operands(lines);
  source.template wait<kPairsAhead - 1>();
  source.write_edge(0, source.read_edge(0));
  constexpr int kTogether = Shape::kTogether;
  struct {
    PartialSums<kSampleBytes> of[kStrips][Channels::kCount];
  } sums[kPairs] = {}, before[kPairs];  // of as many pairs of rows of results
#pragma unroll 1
  for (int step0 = 0;; step0 += kTogether) {
#pragma unroll
    for (int i = 0; i < kTogether; i++) {
      const int step = step0 + i;
      if (step >= steps) return;
      source.template wait<kPairsAhead - 2>();  // for the next step too
      uint32_t words[kStrips][2][kPixelBytes];
#pragma unroll
      for (int s = 0; s < kStrips; s++)
#pragma unroll
        for (int h = 0; h < 2; h++)
          source.template read<kPixelBytes>(step, h, s * kPairWidth + 8 * g + 4 * t - kPairRadius, words[s][h]);
      source.copy(step + kPairsAhead);
      const auto edge = source.read_edge(step + 1);
      Sums start = {};
      if constexpr (kSamples == Samples::Bytes) start = read_start(starts);
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        uint32_t bytes[2][kSummedBytes];
#pragma unroll
        for (int h = 0; h < 2; h++) channels.template take_apart<kSamples>(p, words[s][h], bytes[h]);
#pragma unroll
        for (int j = 0; j < kPairs; j++)
#pragma unroll
          for (int c = 0; c < kSummedBytes; c++) {
            Sums &sum = sums[(i + kPairs - j) % kPairs].of[s][c / kSampleBytes].part[c % kSampleBytes];
            sum = mma<true, false, 2>(operands.pair[j], {bytes[0][c], bytes[1][c]}, j ? sum : start);
          }
      }
      source.write_edge(step + 1, edge);
      const int y = 2 * (step - kPairs + 1);  // of the results
      if (y < 0) continue;
      const auto &total = sums[(i + 1) % kPairs].of;
      uint32_t pixels[kStrips][kPixelBytes];
      if constexpr (kSamples == Samples::Bytes) {
        scale_sums(p.scale, channels, total, pixels);
      } else {
        const auto started = [&](int s, int c) {
          PartialSums<2> sum = total[s][c];
#pragma unroll
          for (int n = 0; n < 4; n++) {
            sum.part[0].v[n] += p.finish.start;
            sum.part[1].v[n] += p.finish.start_high;
          }
          return sum;
        };
        make_pixels<kStrips, Channels::kChannels, Shape>(p, started, pixels);
      }
      if constexpr (kJoins) {
#pragma unroll
        for (int s = 0; s < kStrips; s++) join_pairs<kPixelBytes>(pixels[s]);
      }
      if (merges) {
        // From the rows in the middle of the windows, one or two steps before.
        const int row = y + p.radius_y + g / 4;
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
          uint32_t original[kPixelBytes];
#pragma unroll
          for (int u = 0; u < kTimes; u++)
            source.template read<kWords>(row / 2, row % 2, s * kPairWidth + x + 8 * u, original + u * kWords);
          merge_pixels<kPixelBytes>(part, original, pixels[s]);
        }
      }
#pragma unroll
      for (int n = 0; n < kStrips * kTimes; n++) {
        const int right_of = n / kTimes * kPairWidth + n % kTimes * 8;  // the lane's first pixel
        uint8_t *const at = to + right_of * kPixelBytes;
        const uint32_t *const words = pixels[n / kTimes] + n % kTimes * kWords;
        if (whole)
          store_words<kWords>(at, words);
        else if (y < below)
          store_pixels<kPixelBytes>(at, words, right - right_of);
      }
      to += 2 * target_pitch;
    }
    // To where the next steps look for them.
#pragma unroll
    for (int i = 0; i < kPairs; i++) before[i] = sums[i];
#pragma unroll
    for (int i = 0; i < kPairs; i++) sums[i] = before[(i + kTogether) % kPairs];
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kPairThreads, Shape::kMinBlocks)
    pair_kernel(const __grid_constant__ PairTensorParams p) {
  if constexpr (kHasMatrixInstructions) {
    constexpr Samples kSamples = Shape::kSamples;
    Tile tile = locate_tile(p, 1, p.tile_height);
    const PartParams &part = tile.part;
    const int width = pair_tile_width<kSamples>(part);
    tile.x0 *= width;
    if (!part.filters) return copy_tile(part, tile.x0, tile.y0, width, p.tile_height);
    int32_t *const starts = shared_memory<int32_t>();
    uint32_t *const lines = shared_memory<uint32_t>() + kStartWords;
    uint8_t *const rings = shared_memory<uint8_t>() + Shape::kOperandBytes;
    int64_t *const rows = reinterpret_cast<int64_t *>(rings + kPairWarps * Shape::kWarpBytes);
    // In place of rows that there are not, others are read.
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < Shape::source_rows(p.tile_height); i += kPairThreads)
      rows[i] = max(border_index(p.border, tile.y0 - p.radius_y + i, part.height), 0) * part.source_pitch;
    __syncthreads();
    // From one lane to all: the compiler sees that the warp branches together.
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    tile.x0 += warp * (width / kPairWarps);
    for_channels<kSamples>(part.channels, [&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
      uint8_t *const ring = rings + warp * Shape::kWarpBytes;
      if constexpr (kSamples == Samples::Bytes && kChannels == 4)
        if (part.merges) return filter_pairs<Shape, SummedChannels<4, 3>>(p, tile, starts, rows, lines, ring);
      filter_pairs<Shape, SummedChannels<kChannels>>(p, tile, starts, rows, lines, ring);
    });
  }
}

}  // namespace cudaconv
