// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that auto takes for larger linear masks of 8-bit samples that are not separable, up to 17 pixels wide
// and 15 high: sums of products by matrix instructions as in matrix.cuh, of squares of 4x4 results.
//
// A warp goes down a strip of 32 pixels' width, four rows a step. The 8 columns of the matrix of samples are as many
// squares side by side, whose windows reach five words of a row. Of each of a step's four rows the first four words are
// a chunk, lane t's the t-th; the fifth words of the four rows are one more, lane t's that of row t. Masks of up to 13
// pixels do with four words that begin between two. The 16 rows of the matrix of coefficients are the square's results,
// rows g and g + 8 pixels 2 * (g % 2) and the next, of row g / 2.
//
// A step is part of the windows of a few squares below each other. The instructions that add it to what the steps
// before have made of a square leave the sums where those of the square above have been: so sums move up without a
// move, and all steps are the same code.
#pragma once

#include <algorithm>

#include "cuda/mma/sums.cuh"

namespace cudaconv {

// For an H200; what they do is shown by kernel-bench --table=goals,formats --only="custom 11x11,custom 15x15".
struct Blocks4x4Tuning {
  static constexpr int kBlocks = 3;  // of a multiprocessor
  // Rows of a strip, results; and how many more it takes the time of besides those that windows reach, to prepare.
  static constexpr int kLeastRows = 8, kRowsStep = 4, kMoreRows = 8;
};

constexpr int kBlocks4x4Threads = 128,
              kBlocks4x4Warps = kBlocks4x4Threads / 32;  // of a block, whose strips lie side by side
constexpr int kBlocks4x4Width = 32;                      // pixels of a strip
constexpr int kBlocks4x4LineWords = 5;

// Pixels between where a strip's rows begin and windows do that take so many chunks a step.
CUDACONV_HOST_DEVICE constexpr int blocks4x4_margin(int chunks) {
  return chunks == 4 ? 2 : 0;
}

// The width of a tile in pixels.
CUDACONV_HOST_DEVICE constexpr int blocks4x4_tile_width(int channels) {
  return kBlocks4x4Warps * kBlocks4x4Width * subtiles(channels);
}

// The rows of a warp's strips, which lie side by side, as many as make four planes of bytes: those of a few steps, in
// shared memory. They are copied there asynchronously, as they lie in memory, and take no registers before they are
// needed; what windows reach beyond an edge is made of them once they have arrived. Lanes 8n ... 8n + 7 do that for row
// n of a step. Methods are for the whole warp.
template <int kChannels, int kChunks>
class Blocks4x4Window {
 public:
  static constexpr int kStrips = subtiles(kChannels), kWidth = kBlocks4x4Width * kStrips;
  static constexpr int kStages = 4;  // steps that are there or in flight
  // Words that hold four pixels: one more where these begin half a word into the first one.
  static constexpr bool kHalves = kChannels % 2 && blocks4x4_margin(kChunks) % 4;
  static constexpr int kWords = kChannels + (kHalves && kChannels > 1);

 private:
  // Rows begin at a multiple of 16 bytes, this many before the first pixel. Words of four rows at the same place, of
  // two columns of samples each, lie in different banks.
  static constexpr int kLead = kChannels % 2 * 8;
  static constexpr int kPieces = (kLead + (kWidth + 2 * kBlocks4x4Radius) * kChannels + 15) / 16,
                       kRowBytes = 16 * kPieces;
  static constexpr int kPitch = (kRowBytes + 31) / 32 % 2 ? (kRowBytes + 31) / 32 * 32 : kRowBytes / 32 * 32 + 32;
  static_assert(kPieces <= 16, "two pieces a lane");

  // Pixels consist of them, and are aligned to them.
  using Unit = std::conditional_t<kChannels == 4, uint32_t, std::conditional_t<kChannels == 2, uint16_t, uint8_t>>;
  static constexpr int kUnitBytes = static_cast<int>(sizeof(Unit)), kPixelUnits = kChannels / kUnitBytes;
  static constexpr int kLaneUnits = kBlocks4x4Radius * kPixelUnits / 8;  // beyond an edge

 public:
  static constexpr int kStepBytes = 4 * kPitch;
  static constexpr size_t kMemory = kStages * kStepBytes;  // bytes

  // The strips begin at pixel x0. `rows` lists where rows are, see list_rows(), four a step, and `steps` counts those.
  // Where the border wraps, rows are a multiple of 16 bytes.
  __device__ Blocks4x4Window(const MmaParams &p, const PartParams &part, int x0, const int64_t *rows, int steps,
                             uint8_t *memory)
      : part_(part),
        rows_(rows + lane() / 8),
        steps_(steps),
        first_byte_((x0 - kBlocks4x4Radius) * kChannels - kLead),
        column_(part.source + (first_byte_ + 16 * piece(0))),
        memory_(memory),
        first_(memory + kLead + (lane() / 4 * 4 + lane() % 4 * 4 + blocks4x4_margin(kChunks)) * kChannels -
               (kHalves ? 2 : 0)) {
    const int row_bytes = part.width * kChannels, first_unit = first_byte_ / kUnitBytes;
    const bool before = first_byte_ < 0;
    const bool behind = first_byte_ + kRowBytes > row_bytes;
    const bool beside[2] = {before, behind};
    wraps_ = (before || behind) && p.border == Border::Wrap;
    no_edges_ = !wraps_ && (!behind || row_bytes % 16 == 0);
    constant_ = p.border == Border::Constant;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int byte = first_byte_ + 16 * piece(i);
      wanted_ |= (piece(i) < kPieces && (wraps_ || (byte >= 0 && byte < row_bytes))) << i;
    }
#pragma unroll
    for (int side = 0; side < 2; side++) {
      if (beside[side] && !wraps_) edges_ |= 1 << side;
      const int first = side ? part.width * kPixelUnits - first_unit : kLead / kUnitBytes;
#pragma unroll
      for (int k = 0; k < kLaneUnits; k++) {
        const int pixel = lane_unit(k) / kPixelUnits, to = first + lane_unit(k);
        const int from =
            border_index_no_div(p.border, side ? part.width + pixel : pixel - kBlocks4x4Radius, part.width);
        mended_[side][k] = kNone;
        if (edges_ >> side & 1 && to < kRowBytes / kUnitBytes)
          mended_[side][k] = static_cast<uint32_t>(from * kPixelUnits + lane_unit(k) % kPixelUnits - first_unit) << 16 |
                             static_cast<uint32_t>(to);
      }
    }
  }

  // Whether each piece of a row lies in the frame or beside it, so that rows are copied alike but for those that are
  // the border's value.
  __device__ bool no_edges() const {
    return no_edges_;
  }

  // Where the samples of the step after that at `slot` are.
  __device__ static int next(int slot) {
    return slot == (kStages - 1) * kStepBytes ? 0 : slot + kStepBytes;
  }

  // The offset of the lane's row of the step that is asked for next; undefined where there is none.
  __device__ int64_t row_offset() const {
    return *rows_;
  }

  // Asks for the samples of the next step, if there is such, which is `step`.
  __device__ void request(int step, int slot, int64_t offset) {
    if (step < steps_) {
      uint8_t *const row = own_row(slot);
      const int row_bytes = part_.width * kChannels;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        if (!(wanted_ >> i & 1)) continue;
        int byte = first_byte_ + 16 * piece(i);
        if (wraps_) byte = border_index(Border::Wrap, byte, row_bytes);
        if (offset == kNoRow)
          put_border(row + 16 * piece(i), byte / 4);
        else
          copy(row + 16 * piece(i), part_.source + offset + byte, min(row_bytes - byte, 16));
      }
    }
    rows_ += 4;
    commit_copies();
  }

  // request() where no_edges(), of a step none of whose rows is the border's value.
  __device__ void request_no_edges(int step, int slot, int64_t offset) {
    if (step < steps_) {
      const uint8_t *const from = column_ + offset;
      uint8_t *const row = own_row(slot) + 16 * piece(0);
#pragma unroll
      for (int i = 0; i < 2; i++)
        if (wanted_ >> i & 1) copy_async<Cache::L1>(row + 16 * 8 * i, from + 16 * 8 * i);
    }
    rows_ += 4;
    commit_copies();
  }

  // Waits for the step at `slot`, kStages - 1 after which have been asked for; the warp is done with the one before it.
  __device__ void wait(int slot) const {
    wait_for_groups<kStages - 2>();
    __syncwarp();
    if (!edges_) return;  // the same for the whole warp
    Unit *const row = reinterpret_cast<Unit *>(own_row(slot));
#pragma unroll
    for (int side = 0; side < 2; side++) {
      if (!(edges_ >> side & 1)) continue;
#pragma unroll
      for (int k = 0; k < kLaneUnits; k++)
        if (mended_[side][k] != kNone)
          row[mended_[side][k] & 0xffffu] =
              constant_ ? border_unit(lane_unit(k) % kPixelUnits) : row[mended_[side][k] >> 16];
    }
    __syncwarp();
  }

  // The lane's four pixels of chunk c of strip s of a step, as they lie in memory.
  __device__ void read(int slot, int c, int s, uint32_t (&words)[kWords]) const {
    const int t = lane() % 4;
    const uint8_t *const from =
        first_ + slot + kBlocks4x4Width * s * kChannels + (c < 4 ? c * kPitch : t * kPitch + 4 * (4 - t) * kChannels);
    if constexpr (kHalves && kChannels == 1) {
      uint32_t both[2];
      load_words<1>(from, both);
      load_words<1>(from + 4, both + 1);
      words[0] = __byte_perm(both[0], both[1], 0x5432);
    } else if constexpr (kChannels == 3) {
#pragma unroll
      for (int i = 0; i < kWords; i++) load_words<1>(from + 4 * i, words + i);
    } else if constexpr (blocks4x4_margin(kChunks)) {
#pragma unroll
      for (int i = 0; i < 2; i++) load_words<kChannels / 2>(from + 2 * i * kChannels, words + i * kChannels / 2);
    } else {
      load_words<kChannels>(from, words);
    }
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  __device__ static int lane() {
    return threadIdx.x % 32;
  }
  __device__ static int piece(int i) {
    return lane() % 8 + 8 * i;
  }
  __device__ static int lane_unit(int k) {
    return lane() % 8 + 8 * k;
  }
  __device__ uint8_t *own_row(int slot) const {
    return memory_ + slot + lane() / 8 * kPitch;
  }

  __device__ Unit border_unit(int i) const {
    const int byte = i * kUnitBytes;
    return static_cast<Unit>(part_.border_word[byte / 4] >> byte % 4 * 8);
  }

  // `word` is that of the part's row.
  __device__ void put_border(uint8_t *to, int word) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = part_.border_word[kChannels == 3 ? (word + i) % 3 : i % 2];
    store_words<4>(to, words);
  }

  // Copies 16 bytes, of which only the first `bytes` are there, to L1 too: strips side by side read some of them twice.
  __device__ static void copy(uint8_t *to, const uint8_t *from, int bytes) {
    if (bytes == 16)
      copy_async<Cache::L1>(to, from);
    else
      copy_async<Cache::L1>(to, from, bytes);
  }

  const PartParams &part_;
  const int64_t *rows_;
  int steps_;
  int first_byte_;         // of the window, in a row of the part
  const uint8_t *column_;  // of the lane's first piece
  uint8_t *memory_;
  const uint8_t *first_;  // of the lane's pixels
  bool wraps_, no_edges_, constant_;
  int wanted_ = 0;  // pieces of the lane that are there to be copied, a bit each
  // The edges that the window reaches beyond, a bit each, left and right; and for either where in the row the lane's
  // units beyond it come from, in the high half, and go to.
  int edges_ = 0;
  uint32_t mended_[2][kLaneUnits];
};
constexpr size_t kBlocks4x4Memory = std::max({Blocks4x4Window<1, 4>::kMemory, Blocks4x4Window<2, 4>::kMemory,
                                              Blocks4x4Window<3, 4>::kMemory, Blocks4x4Window<4, 4>::kMemory});

template <int kWindowRows, int kWindowChunks>
struct Blocks4x4Shape {
  static constexpr int kRows = kWindowRows;      // that windows of a square reach, even
  static constexpr int kChunks = kWindowChunks;  // of a step: 4 for masks of up to 13 pixels, else 5
  static constexpr int kSteps = (kRows + 3) / 4;
  static constexpr int kLine = padded_words(kBlocks4x4LineWords),
                       kLines = 4 * kSteps + 3;  // three before the mask
  static constexpr int kFifths = kChunks > 4 ? kSteps : 0;
  // Words of the operands in shared memory: lanes' [pair of rows][lane][4], from kFifth on [step][lane][2] of the fifth
  // words, and four times what sums begin with: of a value that it knows the compiler makes copies for each
  // instruction.
  static constexpr int kFifth = kRows * 64, kStart = kFifth + kFifths * 64, kWords = kStart + 4;

  CUDACONV_HOST_DEVICE static constexpr int source_rows(int rows) { return (rows + 3) / 4 * 4 + 4 * (kSteps - 1); }
  CUDACONV_HOST_DEVICE static constexpr size_t shared_bytes(int tile_height) {
    return kBlocks4x4Warps * kBlocks4x4Memory + source_rows(tile_height) * sizeof(int64_t) +
           (kWords + kLines * kLine) * sizeof(uint32_t);
  }
};

// The matrices of coefficients of the steps that windows reach, from the first.
template <typename Shape>
struct Blocks4x4Operands {
  uint32_t rows[Shape::kRows / 2][4];
  uint32_t fifths[Shape::kFifths + 1][2];

  // From where make() put them.
  __device__ explicit Blocks4x4Operands(const uint32_t *operands) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Shape::kRows / 2; i++) load_words<4>(operands + (i * 32 + lane) * 4, rows[i]);
#pragma unroll
    for (int i = 0; i < Shape::kFifths; i++) load_words<2>(operands + Shape::kFifth + (i * 32 + lane) * 2, fifths[i]);
  }

  // For the whole block: lines of coefficients with zeros around them, and what is made of those.
  __device__ static void make_lines(const DenseMmaParams &p, uint32_t *lines) {
    constexpr int kSkipped = (16 - kBlocks4x4Radius) / 4;  // words of a line of the class
    constexpr int kFirst = kLinePadding / 4;
    static_assert(kBlocks4x4Height * kBlocks4x4LineWords <= kBlocks4x4Threads && kBlocks4x4Height + 3 <= Shape::kLines,
                  "");
    const int thread = static_cast<int>(threadIdx.x), row = thread / kBlocks4x4LineWords,
              word = thread % kBlocks4x4LineWords;
    const uint32_t value = row < kBlocks4x4Height ? p.line[0][row][kSkipped + word] : 0;
#pragma unroll
    for (int i = thread; i < Shape::kLines * Shape::kLine; i += kBlocks4x4Threads) lines[i] = 0;
    __syncthreads();
    if (row < kBlocks4x4Height) lines[(row + 3) * Shape::kLine + kFirst + word] = value;
  }
  __device__ static void make(const uint32_t *lines, int32_t start, uint32_t *operands) {
    if (threadIdx.x < 4) operands[Shape::kStart + threadIdx.x] = static_cast<uint32_t>(start);
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll 1
    for (int n = static_cast<int>(threadIdx.x) / 32; n < Shape::kRows + Shape::kFifths; n += kBlocks4x4Warps) {
      const int step = n - Shape::kRows;
      const int row = (step < 0 ? n : 4 * step + t) - g / 2;
      const int sample = (step < 0 ? 4 * t : 16) + blocks4x4_margin(Shape::kChunks) - g % 2 * 2;
      uint32_t *const to =
          operands + (step < 0 ? (n / 2 * 32 + lane) * 4 + n % 2 * 2 : Shape::kFifth + (step * 32 + lane) * 2);
#pragma unroll
      for (int i = 0; i < 2; i++) to[i] = four_bytes(lines + (row + 3) * Shape::kLine, sample - i);
    }
  }
};

// As store_words() where `writes`, without a branch that what the words are made of might be moved into.
template <int kWords>
__device__ inline void store_words_if(bool writes, uint8_t *to, const uint32_t *from) {
#ifdef __CUDACC__
  if constexpr (kWords == 4) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v4.u32 [%1], {%2, %3, %4, %5}; }" ::"r"(
                     static_cast<uint32_t>(writes)),
                 "l"(to), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
  } else if constexpr (kWords == 2) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v2.u32 [%1], {%2, %3}; }" ::"r"(
                     static_cast<uint32_t>(writes)),
                 "l"(to), "r"(from[0]), "r"(from[1])
                 : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i++)
      asm volatile(
          "{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.u32 [%1], %2; }" ::"r"(static_cast<uint32_t>(writes)),
          "l"(to + 4 * i), "r"(from[i])
          : "memory");
  }
#else
  if (writes) store_words<kWords>(to, from);
#endif
}

// Four words where `reads`, which else are what they were: asked for here, without a branch.
__device__ inline void load_words_if(bool reads, const uint8_t *from, uint32_t (&to)[4]) {
#ifdef __CUDACC__
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%5]; }"
               : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
               : "r"(static_cast<uint32_t>(reads)), "l"(from));
#else
  if (reads) load_words<4>(from, to);
#endif
}

// deinterleave() of pixels of three channels that begin half a word into the first of four.
__device__ inline void deinterleave_halves(const uint32_t (&in)[4], uint32_t (&channel)[3]) {  // --ab cabc abca bc--
  channel[0] = __byte_perm(__byte_perm(in[0], in[1], 0x0052), in[2], 0x7410);
  channel[1] = __byte_perm(__byte_perm(in[0], in[1], 0x0063), __byte_perm(in[2], in[3], 0x0041), 0x5410);
  channel[2] = __byte_perm(__byte_perm(in[1], in[2], 0x0630), in[3], 0x5210);
}

// The warp's strips, of which tile.x0 is the first pixel; there may be none. The whole block makes the operands of the
// lines while samples are in flight.
template <typename Shape, typename Channels>
__device__ inline void filter_blocks4x4(const DenseMmaParams &p, const Tile &tile, uint32_t *operands_at,
                                        const uint32_t *lines, const int64_t *rows, uint8_t *memory) {
  constexpr int kChannels = Channels::kChannels, kSummed = Channels::kCount;
  using Window = Blocks4x4Window<kChannels, Shape::kChunks>;
  constexpr int kSteps = Shape::kSteps, kStrips = Window::kStrips;
  constexpr bool kBlends = kSummed < kChannels;
  const PartParams &part = tile.part;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int bottom = min(tile.y0 + p.tile_height, part.height), first_row = tile.y0 - p.radius_y;
  const int steps = tile.x0 < part.width ? (bottom - tile.y0 + 3) / 4 + kSteps - 1 : 0;
  Window window(p, part, tile.x0, rows, steps, memory);
  const bool inside = tile.x0 + Window::kWidth <= part.width, has_unfiltered = part.has_unfiltered;
  // No bounds are checked, so that one instruction can hide behind another.
  const bool no_edges = inside && (kBlends || !has_unfiltered) && p.magic && window.no_edges() &&
                        (p.border != Border::Constant || (first_row >= 0 && first_row + 4 * steps <= part.height));
#pragma unroll 1
  for (int i = 0; i < Window::kStages; i++) {
    if (no_edges)
      window.request_no_edges(i, i * Window::kStepBytes, window.row_offset());
    else
      window.request(i, i * Window::kStepBytes, window.row_offset());
  }
  Blocks4x4Operands<Shape>::make(lines, p.epilogue.start, operands_at);
  __syncthreads();
  if (!steps) return;
  const Blocks4x4Operands<Shape> operands(operands_at);
  const Channels channels(part);
  PartialSums<1> sums[kSteps][kStrips][kSummed] = {};
  uint32_t words[Shape::kChunks][kStrips][Window::kWords];
  const auto read = [&](int slot, int c) {
#pragma unroll
    for (int s = 0; s < kStrips; s++) window.read(slot, c, s, words[c][s]);
  };
  const auto take_apart = [&](int c) {
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      uint32_t samples[kSummed];
      if constexpr (Window::kWords > kChannels)
        deinterleave_halves(words[c][s], samples);
      else
        channels.template take_apart<Samples::U8>(p, words[c][s], samples);
#pragma unroll
      for (int i = 0; i < kSummed; i++) words[c][s][i] = samples[i];
    }
  };
  // The first or the second two rows of a step, half 0 and 1, and their fifth words: what they add to the sums of the
  // squares whose windows they are part of.
  const auto add_rows = [&](auto half) {
    constexpr int kHalf = decltype(half)::value;
    Sums start = {};
    if constexpr (!kHalf) load_words<4>(operands_at + Shape::kStart, reinterpret_cast<uint32_t *>(start.v));
#pragma unroll
    for (int j = kSteps - 1; j >= 0; j--) {
      if (4 * j + 2 * kHalf >= Shape::kRows) continue;
#pragma unroll
      for (int s = 0; s < kStrips; s++)
#pragma unroll
        for (int c = 0; c < kSummed; c++) {
          const Sums sum = kHalf ? sums[j][s][c].part[0] : j ? sums[j ? j - 1 : 0][s][c].part[0] : start;
          sums[j][s][c].part[0] = mma<true, false, 2>(operands.rows[2 * j + kHalf],
                                                      {words[2 * kHalf][s][c], words[2 * kHalf + 1][s][c]}, sum);
        }
    }
  };
  const auto add_fifths = [&] {
#pragma unroll
    for (int j = Shape::kFifths - 1; j >= 0; j--)
#pragma unroll
      for (int s = 0; s < kStrips; s++)
#pragma unroll
        for (int c = 0; c < kSummed; c++) {
          Sums &sum = sums[j][s][c].part[0];
          sum = mma<true, false, 1>(operands.fifths[j], {words[Shape::kChunks - 1][s][c]}, sum);
        }
  };
  const int x = tile.x0 + 8 * t + g % 2 * 4;
  uint8_t *to = part.target + (tile.y0 + g / 2 - 4 * (kSteps - 1)) * part.target_pitch + x * kChannels;
  // request(step, slot, offset) asks for a step's samples, begin(square) for what put(square) needs besides sums to
  // write the squares that are done, the ones `square` squares below the tile's first. What is read is used only after
  // what can be done without it.
  const auto go_down = [&](auto request, auto begin, auto put) {
    window.wait(0);
    read(0, 0);
    read(0, 1);
    int slot = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      const int64_t offset = window.row_offset();
      begin(step - (kSteps - 1));
#pragma unroll
      for (int c = 2; c < Shape::kChunks; c++) read(slot, c);
      take_apart(0);
      take_apart(1);
      add_rows(std::integral_constant<int, 0>());
#pragma unroll
      for (int c = 2; c < Shape::kChunks; c++) take_apart(c);
      add_fifths();
      const int next = Window::next(slot);
      window.wait(next);
      request(step + Window::kStages, slot, offset);
      slot = next;
      read(slot, 0);
      read(slot, 1);
      add_rows(std::integral_constant<int, 1>());
      put(step - (kSteps - 1));
      to += 4 * part.target_pitch;
    }
  };
  const auto scaled = [&](int32_t v) { return __mulhi(v, p.magic); };
  const auto scaled_up = [&](int32_t v) { return __mulhi(v * p.factor, p.magic); };
  const auto scaled_size = [&](int32_t v) {
    return __mulhi(static_cast<int32_t>(static_cast<uint32_t>(abs(v) + p.scale.half) << p.scale.shift), p.scale.magic);
  };
  const auto go_down_no_edges = [&](auto make_sample) {
    const unsigned squares = (bottom - tile.y0 - g / 2 + 3) / 4;  // in which the lane's row is above the bottom
    [[maybe_unused]] const uint8_t *from =
        part.source + (tile.y0 + g / 2 - 4 * (kSteps - 1)) * part.source_pitch + x * kChannels;
    [[maybe_unused]] uint32_t original[kChannels] = {};
    go_down([&](int step, int slot, int64_t offset) { window.request_no_edges(step, slot, offset); },
            [&](int square) {
              if constexpr (kBlends) {
                load_words_if(static_cast<unsigned>(square) < squares, from, original);
                from += 4 * part.source_pitch;
              }
            },
            [&](int square) {
#pragma unroll
              for (int s = 0; s < kStrips; s++) {
                uint32_t pixels[kChannels];
                channels.pack_sums(sums[kSteps - 1][s], pixels, make_sample);
                join_pairs<kChannels>(pixels);
                if constexpr (kBlends)
#pragma unroll
                  for (int i = 0; i < kChannels; i++) pixels[i] = blend_channels(part, pixels[i], original[i]);
                store_words_if<kChannels>(static_cast<unsigned>(square) < squares, to + s * kBlocks4x4Width * kChannels,
                                          pixels);
              }
            });
  };
  if (no_edges && p.factor == 1) {
    go_down_no_edges(scaled);
  } else if (no_edges) {
    go_down_no_edges(scaled_up);
  } else {
    go_down([&](int step, int slot, int64_t offset) { window.request(step, slot, offset); }, [](int) {},
            [&](int square) {
              if (square < 0) return;
#pragma unroll
              for (int s = 0; s < kStrips; s++) {
                uint32_t pixels[kChannels];
                if (p.magic)
                  channels.pack_sums(sums[kSteps - 1][s], pixels, scaled_up);
                else
                  channels.pack_sums(sums[kSteps - 1][s], pixels, scaled_size);
                join_pairs<kChannels>(pixels);
                put_pixels<4, kChannels, 1, 0, 0>(part, to + s * kBlocks4x4Width * kChannels, x + s * kBlocks4x4Width,
                                                  tile.y0 + 4 * square + g / 2, bottom, inside, has_unfiltered, pixels);
              }
            });
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kBlocks4x4Threads, Blocks4x4Tuning::kBlocks)
    blocks4x4_kernel(const __grid_constant__ DenseMmaParams p) {
  if constexpr (kHasMma) {
    Tile tile = locate_tile(p, 1, p.tile_height);
    const PartParams &part = tile.part;
    const int width = blocks4x4_tile_width(part.channels), first_row = tile.y0 - p.radius_y;
    tile.x0 *= width;
    if (!part.has_filtered) return copy_tile(part, tile.x0, tile.y0, width, p.tile_height);
    uint8_t *const stages = shared_memory<uint8_t>();
    int64_t *const rows = reinterpret_cast<int64_t *>(stages + kBlocks4x4Warps * kBlocks4x4Memory);
    const int count = Shape::source_rows(p.tile_height);
    uint32_t *const operands = reinterpret_cast<uint32_t *>(rows + count), *const lines = operands + Shape::kWords;
    Blocks4x4Operands<Shape>::make_lines(p, lines);
    list_rows(p, part, first_row, count, rows, kBlocks4x4Threads);
    __syncthreads();
    const int warp = warp_uniform(static_cast<int>(threadIdx.x) / 32);
    tile.x0 += width / kBlocks4x4Warps * warp;
    for_channels<Samples::U8>(part.channels, [&](auto channels) {
      constexpr int kChannels = decltype(channels)::value;
      uint8_t *const memory = stages + warp * kBlocks4x4Memory;
      if constexpr (kChannels == 4)
        if (part.has_unfiltered)
          return filter_blocks4x4<Shape, SummedChannels<4, 3>>(p, tile, operands, lines, rows, memory);
      filter_blocks4x4<Shape, SummedChannels<kChannels>>(p, tile, operands, lines, rows, memory);
    });
  }
}

}  // namespace cudaconv
