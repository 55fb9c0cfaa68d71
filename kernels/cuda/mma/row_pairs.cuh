// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Linear masks of up to 9x9 that are not separable: sums of products by matrix instructions as in matrix.cuh, with the
// sums of all rows that windows reach in registers.
//
// A warp goes down a strip of 64 pixels' width, two rows a step. The 8 columns of the matrix of samples are 8 blocks of
// 8 pixels side by side. Its k are 2 rows of 16 pixels, from the fourth before a block to the fourth behind it; a lane
// has 4 of a row. The 16 rows of the matrix of coefficients are the block's results, in two rows too. So a mask of h
// rows takes (h + 1) / 2 such matrices, one for each pair of rows that windows of two rows of results reach, and each
// pair of rows of samples takes as many instructions, each for another pair of rows of results.
//
// Rows g and g + 8 of results are pixels 2 * (g % 4) and 2 * (g % 4) + 1 of row g / 4.
//
// Samples are copied to shared memory some steps before they are needed; each warp has a ring of rows of its own there.
// Loads to registers would not do: to use one of them, a warp waits for all that are in flight.
#pragma once

#include "cuda/mma/sums.cuh"

namespace cudaconv {

// Tuned on an H200 with kernel-bench --table=goals,formats --only="custom 7x7", and so are kMinBlocks and
// kUnrolledSteps of each shape.
struct RowPairTuning {
  // Rows of results of a strip, an even number, and how many more rows a strip takes the time of besides those that
  // windows reach.
  static constexpr int kLeastRows = 8, kMostRows = 256, kMoreRows = 6;
};

constexpr int kRowPairWarps = 2,
              kRowPairThreads = 32 * kRowPairWarps;  // of a block; the warps' strips lie side by side
constexpr int kRowPairWidth = 64;                    // pixels of a strip
constexpr int kRowPairSlots = 8;                     // steps of a ring, a power of two
constexpr int kRowPairsAhead = 5;                    // how many of these are in flight
constexpr int kStartWords = 4;  // copies of the initial value of sums, as the instructions take them

// How many strips side by side a warp works on.
CUDACONV_HOST_DEVICE constexpr int row_pair_strips(int pixel_bytes) {
  return pixel_bytes < 3 ? 2 : 1;
}

// The width of a block's tile in pixels, and of a part in tiles.
template <Samples kSamples>
CUDACONV_HOST_DEVICE inline int row_pair_tile_width(const PartParams &part) {
  return kRowPairWarps * kRowPairWidth * row_pair_strips(part.channels * sample_bytes(kSamples));
}
template <Samples kSamples>
CUDACONV_HOST_DEVICE inline int row_pair_columns(const PartParams &part) {
  return (part.width + row_pair_tile_width<kSamples>(part) - 1) / row_pair_tile_width<kSamples>(part);
}

// ---- Rows in shared memory ----

// The rows that a warp's windows reach, two a step, in its ring. The whole warp calls these methods together.
//
// Pixels beside the frame are made of pixels in it once these have arrived, a pixel a lane. Only if the border wraps
// are they copied from global memory, since they lie at the other end of the row.
template <int kPixelBytes>
class RowPairRing {
 public:
  static constexpr int kWidth = kRowPairWidth * row_pair_strips(kPixelBytes);  // pixels of the strips
  // Bytes on either side of a row for the pixels beside the strips, a multiple of 16.
  static constexpr int kHalo = (kRowPairRadius * kPixelBytes + 15) / 16 * 16;
  static constexpr int kRowBytes = kWidth * kPixelBytes + 2 * kHalo;
  static constexpr int kBytes = kRowPairSlots * 2 * kRowBytes;

  // The words that a pixel consists of and is aligned to.
  using Unit =
      std::conditional_t<kPixelBytes % 4 == 0, uint32_t, std::conditional_t<kPixelBytes == 2, uint16_t, uint8_t>>;
  static constexpr int kUnitBytes = sizeof(Unit), kUnits = kPixelBytes / kUnitBytes;
  struct Pixel {
    Unit unit[kUnits];
  };

  // x0 is the strips' first pixel, y0 the first row of the first of `steps` steps; `rows` lists where rows are, as byte
  // offsets from the part's first row. `ring` has kBytes bytes and is aligned to 16.
  __device__ RowPairRing(const FrameParams &p, const PartParams &part, int x0, int y0, int steps, const int64_t *rows,
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
    const bool at_edge = (x0 == 0) | (x0 + kWidth + kRowPairRadius > part.width);
    const bool constant = p.border == Border::Constant, wraps = p.border == Border::Wrap;
    const bool fills = (at_edge & !wraps) | (constant & ((y0 < 0) | (y0 + 2 * steps > part.height)));
    // Broadcast, so that the compiler keeps the bits together.
    edges_ = __shfl_sync(0xffffffffu, fills * kFills | (at_edge & wraps) * kWraps | constant * kConstant, 0);
    // The lane fills one of the four pixels before the frame or of the four behind it or, if the border wraps, one of
    // their words.
    const int n = item() % 8, first = item() < 8 ? -kRowPairRadius : part.width;
    const int x = first + (wraps ? n * 4 / kPixelBytes : n);
    move_ = -1;
    if (!at_edge || n >= (wraps ? kPixelBytes : kRowPairRadius) || x < x0 - kRowPairRadius ||
        x >= x0 + kWidth + kRowPairRadius)
      return;
    const int source = max(border_index(p.border, x, part.width), x0 - kRowPairRadius);
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
          if (bytes_[i]) copy_async(to + i * 512, from + i * 512, bytes_[i]);
      }
      if (edges_ & kWraps && move_ >= 0) {
        const int width = part_.width * kPixelBytes;
        const uint8_t *from = source_ - lane() * 16 + (row_of_lane() ? rows[1] : rows[0]);
        copy_word_async(row(step, row_of_lane()) + move_, from + move_ + (move_ < kHalo ? width : -width));
      }
    }
    commit_copies();
  }

  // Waits for the rows of all steps that have begun except the last kBegun.
  template <int kBegun>
  __device__ void wait() const {
    wait_for_groups<kBegun>();
    __syncwarp();
  }

  // Read and then write this lane's pixel beside the frame in the rows of a step that has been waited for. The warp
  // sees it after the next wait().
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

  // Reads words of row h of a step from pixel x of the strips on.
  template <int kWords>
  __device__ void read(int step, int h, int x, uint32_t *words) const {
    load_words<kWords>(row(step, h) + place(x), words);
  }

 private:
  static constexpr uint32_t kFills = 1, kWraps = 2, kConstant = 4;  // bits of edges_: what to do at the edges
  static constexpr int kChunks = (kRowBytes / 16 + 31) / 32;        // chunks of a row for each lane

  __device__ static int lane() {
    return threadIdx.x % 32;
  }
  // At the edges each half of the warp handles one of the two rows.
  __device__ static int row_of_lane() {
    return lane() / 16;
  }
  __device__ static int item() {
    return lane() % 16;
  }
  // Offset of pixel x of the strips from a row's first byte.
  __device__ static int place(int x) {
    return kHalo + x * kPixelBytes;
  }

  __device__ uint8_t *row(int step, int h) const {
    return ring_ + (step % kRowPairSlots * 2 + h) * kRowBytes;
  }

  // Fills a row outside the frame with the border value, by half a warp.
  __device__ void fill(uint8_t *row) const {
    constexpr int kFirst = kRowPairWidth * kPixelBytes - kHalo;  // the row's first byte, 64 pixels farther
#pragma unroll 1
    for (int i = item(); i < kRowBytes / 4; i += 16)
      reinterpret_cast<uint32_t *>(row)[i] = part_.border_word[(kFirst / 4 + i) % word_period(kPixelBytes)];
  }

  const PartParams &part_;
  const int64_t *rows_;
  uint8_t *ring_;
  const uint8_t *source_;  // of the lane's 16 bytes in row 0 of the part
  int steps_, y0_, bytes_[kChunks];
  uint32_t edges_;
  // What the lane fills; negative: nothing. The offset of the pixel beside the frame, and above 16 bits that of the
  // pixel that it equals or, if the border wraps, the offset of the word.
  int move_;
};

// ---- Products and results ----

template <int kRowPairs, Samples kSamplesKind>
struct RowPairShape {
  static constexpr int kPairs = kRowPairs;  // pairs of rows that windows reach
  static constexpr Samples kSamples = kSamplesKind;
  static constexpr Weights kWeights = Weights::S8;
  static constexpr int kSampleBytes = sample_bytes(kSamples);
  static constexpr bool kFour = kSamples == Samples::U16x4;
  static constexpr int kMinBlocks = kFour ? (kPairs == 3 ? 6 : 4) : kPairs < 5 ? 8 : 6;
  // Steps of the loop's body. For 8-bit samples it is the number of pairs, so that sums stay in their registers; with
  // more bytes that code would be too long for the instruction cache of a scheduler, so sums move from register to
  // register.
  static constexpr int kUnrolledSteps = kSamples == Samples::U8 ? kPairs : 2;
  static constexpr int kLine = padded_words(kRowPairLineWords),
                       kLines = 2 * kPairs + 1;  // the first line, before the mask, is zeros
  static constexpr size_t kOperandBytes = ((kStartWords + kLines * kLine) * sizeof(uint32_t) + 15) / 16 * 16;
  static constexpr size_t kWarpBytes = RowPairRing<(kFour ? 8 : 4)>::kBytes;  // no format takes more

  // Rows that windows of `rows` rows of results reach, in pairs.
  CUDACONV_HOST_DEVICE static constexpr int source_rows(int rows) { return rows + 2 * kPairs - 2; }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int tile_height) {
    return kOperandBytes + kRowPairWarps * kWarpBytes + source_rows(tile_height) * sizeof(int64_t);
  }
};

// A lane's words of the matrices of coefficients.
template <int kPairs>
struct RowPairOperands {
  uint32_t pair[kPairs][4];

  __device__ RowPairOperands(const uint32_t *lines) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < kPairs; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        // Line 0 is the one before the mask.
        const uint32_t *line = lines + (2 * j + h + 1 - g / 4) * padded_words(kRowPairLineWords);
        const int first = 4 * t - g % 4 * 2;
        pair[j][2 * h] = four_bytes(line, first);
        pair[j][2 * h + 1] = four_bytes(line, first - 1);
      }
  }
};

// Reads the initial value of 8-bit sums from shared memory each time: registers are scarce, and the compiler would copy
// a value that it knows for each instruction.
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

// Writes neighbouring pixels, of which `n` lie in the part: two of four bytes or more, or four smaller ones.
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

// Stores the lines of coefficients with their padding, and a line of zeros before them.
template <typename Shape>
__device__ inline void load_pair_lines(const RowPairMmaParams &p, uint32_t *lines) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < Shape::kLines * Shape::kLine; i += kRowPairThreads) {
    const int row = i / Shape::kLine - 1;
    lines[i] = row < 0 ? 0 : padded_word(p.line[row], kRowPairLineWords, i % Shape::kLine);
  }
}

// How a lane writes results: four pixels of less than four bytes at once, after joining them with its neighbour's, else
// two pixels twice.
template <int kPixelBytes>
struct RowPairPlace {
  static constexpr bool kJoins = kPixelBytes < 4;
  static constexpr int kTimes = kJoins ? 1 : 2, kWords = kPixelBytes / kTimes;
};

// The sums of a warp's strips, for each pair of rows of results whose windows contain the pair of rows of a step.
template <typename Shape, typename Channels>
class RowPairSums {
 public:
  static constexpr int kPixelBytes = Channels::kChannels * Shape::kSampleBytes;
  static constexpr int kStrips = row_pair_strips(kPixelBytes);

  __device__ RowPairSums(const PartParams &part, const uint32_t *lines) : channels_(part), operands_(lines) {}

  // Adds the rows of a step, whose number is i modulo kUnrolledSteps; `words` are as they lie in memory. The sums of
  // the new pair of rows of results begin with `start`.
  __device__ void add(const RowPairMmaParams &p, int i, uint32_t (&words)[kStrips][2][kPixelBytes], const Sums &start) {
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      uint32_t bytes[2][kSummedBytes];
#pragma unroll
      for (int h = 0; h < 2; h++) channels_.template take_apart<Shape::kSamples>(p, words[s][h], bytes[h]);
#pragma unroll
      for (int j = 0; j < kPairs; j++)
#pragma unroll
        for (int c = 0; c < kSummedBytes; c++) {
          Sums &sum = sums_[(i + kPairs - j) % kPairs].of[s][c / kSampleBytes].part[c % kSampleBytes];
          sum = mma<true, false, 2>(operands_.pair[j], {bytes[0][c], bytes[1][c]}, j ? sum : start);
        }
    }
  }

  // The lane's results, in two rows, that are complete with step i.
  __device__ void make_pixels(const RowPairMmaParams &p, int i, uint32_t (&pixels)[kStrips][kPixelBytes]) const {
    const auto &total = sums_[(i + 1) % kPairs].of;
    if constexpr (Shape::kSamples == Samples::U8) {
      scale_sums(p.scale, channels_, total, pixels);
    } else {
      const auto started = [&](int s, int c) {
        PartialSums<2> sum = total[s][c];
#pragma unroll
        for (int n = 0; n < 4; n++) {
          sum.part[0].v[n] += p.epilogue.start;
          sum.part[1].v[n] += p.epilogue.start_high;
        }
        return sum;
      };
      cudaconv::make_pixels<kStrips, Channels::kChannels, Shape>(p, started, pixels);
    }
    if constexpr (RowPairPlace<kPixelBytes>::kJoins) {
#pragma unroll
      for (int s = 0; s < kStrips; s++) join_pairs<kPixelBytes>(pixels[s]);
    }
  }

  // Moves sums to where the next kUnrolledSteps steps expect them.
  __device__ void move_on() {
    Pair before[kPairs];
#pragma unroll
    for (int i = 0; i < kPairs; i++) before[i] = sums_[i];
#pragma unroll
    for (int i = 0; i < kPairs; i++) sums_[i] = before[(i + Shape::kUnrolledSteps) % kPairs];
  }

 private:
  static constexpr int kPairs = Shape::kPairs, kSampleBytes = Shape::kSampleBytes;
  static constexpr int kSummedBytes = Channels::kCount * kSampleBytes;
  struct Pair {
    PartialSums<kSampleBytes> of[kStrips][Channels::kCount];
  };

  Channels channels_;
  RowPairOperands<kPairs> operands_;
  Pair sums_[kPairs] = {};
};

// Writes the results of a warp's strips, two rows at a time, from tile.x0 and tile.y0 on.
template <int kPixelBytes>
class RowPairWriter {
 public:
  static constexpr int kStrips = row_pair_strips(kPixelBytes);
  using Place = RowPairPlace<kPixelBytes>;

  __device__ RowPairWriter(const Tile &tile, int bottom)
      : part_(tile.part),
        x_(16 * t() + (Place::kJoins ? g() % 2 * 8 + g() % 4 / 2 * 4 : g() % 4 * 2)),
        right_(part_.width - tile.x0 - x_),
        below_(bottom - tile.y0 - g() / 4),
        whole_(tile.x0 + kRowPairWidth * kStrips <= part_.width && (bottom - tile.y0) % 2 == 0),
        has_unfiltered_(part_.has_unfiltered),
        target_pitch_(part_.target_pitch),
        to_(part_.target + (tile.y0 + g() / 4) * target_pitch_ + (tile.x0 + x_) * kPixelBytes) {}

  // Merges unfiltered channels into the results. They come from the rows in the middle of the windows, which `source`
  // still holds: row `middle` is that of the first of the two rows of results.
  __device__ void blend(const RowPairRing<kPixelBytes> &source, int middle,
                        uint32_t (&pixels)[kStrips][kPixelBytes]) const {
    if (!has_unfiltered_) return;
    const int row = middle + g() / 4;
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      uint32_t original[kPixelBytes];
#pragma unroll
      for (int u = 0; u < Place::kTimes; u++)
        source.template read<Place::kWords>(row / 2, row % 2, s * kRowPairWidth + x_ + 8 * u,
                                            original + u * Place::kWords);
      blend_pixels<kPixelBytes>(part_, original, pixels[s]);
    }
  }

  // Writes rows y and y + 1 of the tile; the next call writes the two rows below.
  __device__ void store(int y, const uint32_t (&pixels)[kStrips][kPixelBytes]) {
#pragma unroll
    for (int n = 0; n < kStrips * Place::kTimes; n++) {
      const int right_of = n / Place::kTimes * kRowPairWidth + n % Place::kTimes * 8;  // of the lane's first pixel
      uint8_t *const at = to_ + right_of * kPixelBytes;
      const uint32_t *const words = pixels[n / Place::kTimes] + n % Place::kTimes * Place::kWords;
      if (whole_)
        store_words<Place::kWords>(at, words);
      else if (y < below_)
        store_pixels<kPixelBytes>(at, words, right_ - right_of);
    }
    to_ += 2 * target_pitch_;
  }

 private:
  __device__ static int g() {
    return threadIdx.x % 32 / 4;
  }
  __device__ static int t() {
    return threadIdx.x % 4;
  }

  const PartParams &part_;
  int x_;              // the lane's first pixel in a strip
  int right_, below_;  // how many pixels and rows there are from the lane's first one on
  bool whole_;         // whether that is enough for all results in every row
  bool has_unfiltered_;
  int64_t target_pitch_;
  uint8_t *to_;
};

// Filters the warp's strips, of which tile.x0 is the first pixel; a warp may have none. All threads of the block have
// made the list `rows`; all of them make `lines` here.
template <typename Shape, typename Channels>
__device__ inline void filter_row_pairs(const RowPairMmaParams &p, const Tile &tile, int32_t *starts,
                                        const int64_t *rows, uint32_t *lines, uint8_t *ring) {
  constexpr int kPixelBytes = Channels::kChannels * Shape::kSampleBytes;
  constexpr int kPairs = Shape::kPairs, kStrips = row_pair_strips(kPixelBytes);
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int bottom = min(tile.y0 + p.tile_height, part.height);
  const int steps = tile.x0 < part.width ? (bottom - tile.y0 + 1) / 2 + kPairs - 1 : 0;
  const RowPairRing<kPixelBytes> source(p, part, tile.x0, tile.y0 - p.radius_y, steps, rows, ring);
#pragma unroll 1
  for (int i = 0; i < kRowPairsAhead; i++) source.copy(i);
  if (threadIdx.x < kStartWords) starts[threadIdx.x] = p.epilogue.start;
  load_pair_lines<Shape>(p, lines);
  __syncthreads();
  if (!steps) return;

  RowPairWriter<kPixelBytes> writer(tile, bottom);
  RowPairSums<Shape, Channels> sums(part, lines);
  source.template wait<kRowPairsAhead - 1>();
  source.write_edge(0, source.read_edge(0));
#pragma unroll 1
  for (int step0 = 0;; step0 += Shape::kUnrolledSteps) {
#pragma unroll
    for (int i = 0; i < Shape::kUnrolledSteps; i++) {
      const int step = step0 + i;
      if (step >= steps) return;
      source.template wait<kRowPairsAhead - 2>();  // waits for the next step, too
      uint32_t words[kStrips][2][kPixelBytes];
#pragma unroll
      for (int s = 0; s < kStrips; s++)
#pragma unroll
        for (int h = 0; h < 2; h++)
          source.template read<kPixelBytes>(step, h, s * kRowPairWidth + 8 * g + 4 * t - kRowPairRadius, words[s][h]);
      source.copy(step + kRowPairsAhead);
      const auto edge = source.read_edge(step + 1);
      Sums start = {};
      if constexpr (Shape::kSamples == Samples::U8) start = read_start(starts);
      sums.add(p, i, words, start);
      source.write_edge(step + 1, edge);
      const int y = 2 * (step - kPairs + 1);  // row of the results
      if (y < 0) continue;
      uint32_t pixels[kStrips][kPixelBytes];
      sums.make_pixels(p, i, pixels);
      writer.blend(source, y + p.radius_y, pixels);
      writer.store(y, pixels);
    }
    sums.move_on();
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kRowPairThreads, Shape::kMinBlocks)
    row_pair_kernel(const __grid_constant__ RowPairMmaParams p) {
  if constexpr (kHasMma) {
    constexpr Samples kSamples = Shape::kSamples;
    Tile tile = locate_tile(p, p.tile_height);
    const PartParams &part = tile.part;
    const int width = row_pair_tile_width<kSamples>(part);
    if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, width, p.tile_height);
    int32_t *const starts = shared_memory<int32_t>();
    uint32_t *const lines = shared_memory<uint32_t>() + kStartWords;
    uint8_t *const rings = shared_memory<uint8_t>() + Shape::kOperandBytes;
    int64_t *const rows = reinterpret_cast<int64_t *>(rings + kRowPairWarps * Shape::kWarpBytes);
    // Rows that are the border value are filled later; any row can be read in their place.
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < Shape::source_rows(p.tile_height); i += kRowPairThreads)
      rows[i] = max(border_index(p.border, tile.y0 - p.radius_y + i, part.height), 0) * part.source_pitch;
    __syncthreads();
    const int warp = warp_uniform(static_cast<int>(threadIdx.x) / 32);
    tile.x0 += warp * (width / kRowPairWarps);
    for_channels<kSamples>(part.channels, [&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
      tile.x0 = aligned_column<kChannels * sample_bytes(kSamples)>(tile.x0);
      uint8_t *const ring = rings + warp * Shape::kWarpBytes;
      if constexpr (kSamples == Samples::U8 && kChannels == 4)
        if (part.has_unfiltered)
          return filter_row_pairs<Shape, SummedChannels<4, 3>>(p, tile, starts, rows, lines, ring);
      filter_row_pairs<Shape, SummedChannels<kChannels>>(p, tile, starts, rows, lines, ring);
    });
  }
}

}  // namespace cudaconv
